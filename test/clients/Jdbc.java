// JDBC.  test/external/clients.pl compares what this prints with the tables.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;

class Jdbc {
    static final String URL = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/"
            + System.getenv("PGDATABASE") + "?user=" + System.getenv("PGUSER");

    /** The first column of what a query, or an INSERT with RETURNING, gives. */
    static <T> List<T> column(Connection db, Class<T> type, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++)
                statement.setObject(i + 1, values[i]);
            List<T> column = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next())
                    column.add(rows.getObject(1, type));
            }
            return column;
        }
    }

    static void print(String what, List<Long> numbers) {
        StringBuilder line = new StringBuilder(what);
        for (long number : numbers)
            line.append(' ').append(number);
        System.out.println(line);
    }

    public static void main(String[] arguments) throws SQLException {
        Connection db = DriverManager.getConnection(URL + "&reWriteBatchedInserts=true");
        db.setAutoCommit(false);

        // The column's default makes the ID.  Name the column: RETURN_GENERATED_KEYS returns all of them.
        long photoId;
        try (PreparedStatement insert = db.prepareStatement(
                "INSERT INTO photos (title) VALUES (?)", new String[] {"id"})) {
            insert.setString(1, "draft");
            insert.executeUpdate();
            ResultSet keys = insert.getGeneratedKeys();
            keys.next();
            photoId = keys.getLong(1);
        }

        // Insert or update by ID.
        column(db, Long.class, "INSERT INTO photos (id, title) VALUES (?, ?)"
                + " ON CONFLICT (id) DO UPDATE SET title = excluded.title RETURNING id", photoId, "first");

        // IDs taken first, for rows that refer to each other.
        List<Long> pair = column(db, Long.class, "SELECT next_ids(5, 2)");
        long albumId = pair.get(0), coverId = pair.get(1);
        column(db, Long.class, "INSERT INTO albums (id, title, cover_id) VALUES (?, ?, ?) RETURNING id",
                albumId, "album", coverId);
        column(db, Long.class, "INSERT INTO photos (id, title, album_id) VALUES (?, ?, ?) RETURNING id",
                coverId, "cover", albumId);

        // Many rows: their IDs in one call, then a batch, which the driver rewrites as INSERTs of
        // many rows each.  It does not do so where it must return generated keys.
        List<Long> bulk = column(db, Long.class, "SELECT next_ids(5, ?)", 10000);
        try (PreparedStatement insert = db.prepareStatement("INSERT INTO photos (id, title) VALUES (?, ?)")) {
            for (int n = 0; n < bulk.size(); n++) {
                insert.setLong(1, bulk.get(n));
                insert.setString(2, "bulk " + n);
                insert.addBatch();
            }
            insert.executeBatch();
        }
        db.commit();

        // A page of the newest, and the one that follows it.
        List<Long> page = column(db, Long.class, "SELECT id FROM photos ORDER BY id DESC LIMIT 20");
        List<Long> nextPage = column(db, Long.class, "SELECT id FROM photos WHERE id < ? ORDER BY id DESC LIMIT 20",
                page.get(page.size() - 1));

        // When a row was made, and the rows of the last hour.
        OffsetDateTime madeAt = column(db, OffsetDateTime.class, "SELECT snowflake_timestamp(?)", photoId).get(0);
        List<Long> recent = column(db, Long.class, "SELECT id FROM photos WHERE id >= snowflake_min_id(?) ORDER BY id",
                OffsetDateTime.now().minusHours(1));

        // An ID of the type snowflake: setLong() and getLong() work, getObject() returns a PGobject.
        long tagId, foundId;
        Object bigint, snowflake;
        try (PreparedStatement insert = db.prepareStatement("INSERT INTO tags (id) VALUES (?)", new String[] {"id"});
                PreparedStatement find = db.prepareStatement("SELECT id, id::bigint FROM tags WHERE id = ?")) {
            insert.setLong(1, photoId);
            insert.executeUpdate();
            ResultSet keys = insert.getGeneratedKeys();
            keys.next();
            tagId = keys.getLong(1);
            find.setLong(1, tagId);
            ResultSet rows = find.executeQuery();
            rows.next();
            foundId = rows.getLong(1);
            snowflake = rows.getObject(1);
            bigint = rows.getObject(2);
        }
        db.commit();

        System.out.println("types JDBC: " + bigint.getClass().getSimpleName() + " " + snowflake.getClass().getSimpleName());
        print("tags", List.of(tagId, foundId));
        System.out.println("version JDBC " + db.getMetaData().getDriverVersion());
        print("one", List.of(photoId));
        print("pair", pair);
        print("bulk", bulk);
        page.addAll(nextPage);
        print("pages", page);
        print("made", List.of(madeAt.toInstant().toEpochMilli()));
        print("recent", recent);
        db.close();
    }
}
