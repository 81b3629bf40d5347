// JDBC: name the key's column, as RETURN_GENERATED_KEYS returns all columns.  The driver rewrites a batch as INSERTs of
// many rows each, unless it must return generated keys.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

class Jdbc {
    static ResultSet query(Connection db, String sql, Object... values) throws SQLException {
        PreparedStatement statement = db.prepareStatement(sql);
        for (int i = 0; i < values.length; i++)
            statement.setObject(i + 1, values[i]);
        ResultSet rows = statement.executeQuery();
        rows.next();
        return rows;
    }

    public static void main(String[] arguments) throws SQLException {
        Connection db = DriverManager.getConnection(String.format("jdbc:postgresql://%s:%s/%s?user=%s&reWriteBatchedInserts=true",
                System.getenv("PGHOST"), System.getenv("PGPORT"), System.getenv("PGDATABASE"), System.getenv("PGUSER")));
        PreparedStatement insert = db.prepareStatement("INSERT INTO photos (title) VALUES ('one')", new String[] {"id"});
        insert.executeUpdate();
        ResultSet keys = insert.getGeneratedKeys();
        keys.next();
        long one = keys.getLong(1);

        List<String> many = new ArrayList<>();
        ResultSet taken = query(db, "SELECT array(SELECT next_ids(5, ?))", 1000);
        PreparedStatement batch = db.prepareStatement("INSERT INTO photos (id, title) VALUES (?, ?)");
        for (Long id : (Long[]) taken.getArray(1).getArray()) {
            batch.setLong(1, id);
            batch.setString(2, "many " + many.size());
            batch.addBatch();
            many.add(id.toString());
        }
        batch.executeBatch();

        insert = db.prepareStatement("INSERT INTO tags (id) VALUES (?)", Statement.RETURN_GENERATED_KEYS);
        insert.setLong(1, one);
        insert.executeUpdate();
        keys = insert.getGeneratedKeys();
        keys.next();
        ResultSet found = query(db, "SELECT id, id::bigint FROM tags WHERE id = ?", one);

        System.out.println("version JDBC " + db.getMetaData().getDriverVersion());
        System.out.println("types JDBC: " + found.getObject(2).getClass().getSimpleName()
                + " " + found.getObject(1).getClass().getSimpleName());
        System.out.println("tags " + keys.getLong(1) + " " + found.getLong(1));
        System.out.println("columns_of_generated_keys " + keys.getMetaData().getColumnCount());
        System.out.println("one " + one);
        System.out.println("many " + String.join(" ", many));
        db.close();
    }
}
