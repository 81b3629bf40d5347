// Hibernate, and the IDs that its pooled optimiser makes up.  test/external/clients.pl
// compares what this prints with the tables.

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import javax.persistence.Column;
import javax.persistence.Entity;
import javax.persistence.EntityManager;
import javax.persistence.EntityManagerFactory;
import javax.persistence.GeneratedValue;
import javax.persistence.GenerationType;
import javax.persistence.Id;
import javax.persistence.PersistenceException;
import javax.persistence.SequenceGenerator;
import javax.persistence.Table;
import javax.persistence.TemporalType;
import org.hibernate.annotations.GenericGenerator;
import org.hibernate.dialect.PostgreSQLDialect;
import org.hibernate.ejb.Ejb3Configuration;

@Entity
@Table(name = "photos")
class Photo {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    Long id;
    String title;
}

@Entity
@Table(name = "albums")
class Album {
    @Id
    @GeneratedValue(generator = "next_id")
    @GenericGenerator(name = "next_id", strategy = "NextId")
    Long id;
    String title;
    @Column(name = "cover_id")
    Long coverId;
}

@Entity
@Table(name = "photos")
class Picture {
    @Id
    @GeneratedValue(generator = "next_id")
    @GenericGenerator(name = "next_id", strategy = "NextId")
    Long id;
    String title;
    @Column(name = "album_id")
    Long albumId;
}

@Entity
@Table(name = "tags")
class Tag {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    Long id;
    String name;
}

@Entity
@Table(name = "photos")
class Pooled {
    @Id
    @GeneratedValue(generator = "pooled")
    @SequenceGenerator(name = "pooled", sequenceName = "next_id_seq", allocationSize = 50)
    Long id;
    String title;
}

public class Hibernate {
    // For what one should not do: an ID in place of nextval(), to count 50 from.
    public static class Dialect extends PostgreSQLDialect {
        public String getSequenceNextValString(String sequence) {
            return "SELECT next_id(5, '" + sequence + "')";
        }
    }

    static void print(String what, Object... values) {
        StringBuilder line = new StringBuilder(what);
        for (Object value : values)
            line.append(' ').append(value);
        System.out.println(line);
    }

    static void printIds(String what, List<Photo> photos) {
        print(what, photos.stream().map(photo -> photo.id).toArray());
    }

    @SuppressWarnings("unchecked")
    static void recipes(EntityManager em) {
        em.getTransaction().begin();

        // The column's default makes the ID; persist() inserts at once, and reads it back.
        Photo photo = new Photo();
        photo.title = "draft";
        em.persist(photo);

        // Insert or update by ID: merge() reads the row first.
        Photo changed = new Photo();
        changed.id = photo.id;
        changed.title = "first";
        em.merge(changed);

        // IDs before the rows: persist() takes them, and the rows go out together, by batches.
        Album album = new Album();
        Picture cover = new Picture();
        album.title = "album";
        cover.title = "cover";
        em.persist(album);
        cover.albumId = album.id;
        em.persist(cover);
        album.coverId = cover.id;

        List<Picture> bulk = new ArrayList<>();
        for (int n = 0; n < 10000; n++) {
            Picture picture = new Picture();
            picture.title = "bulk " + n;
            em.persist(picture);
            bulk.add(picture);
        }
        em.getTransaction().commit();

        // A page of the newest, and the one that follows it.
        List<Photo> page = em.createQuery("select p from Photo p order by p.id desc").setMaxResults(20).getResultList();
        List<Photo> nextPage = em.createQuery("select p from Photo p where p.id < :last order by p.id desc")
                .setParameter("last", page.get(page.size() - 1).id).setMaxResults(20).getResultList();

        // When a row was made, and the rows of the last hour.
        Date madeAt = (Date) em.createNativeQuery("SELECT snowflake_timestamp(?1)")
                .setParameter(1, photo.id).getSingleResult();
        Date hourAgo = new Date(System.currentTimeMillis() - 3600 * 1000);
        List<Photo> recent = em.createNativeQuery(
                "SELECT id, title FROM photos WHERE id >= snowflake_min_id(?1) ORDER BY id", Photo.class)
                .setParameter(1, hourAgo, TemporalType.TIMESTAMP).getResultList();

        // An ID of the type snowflake
        em.getTransaction().begin();
        Tag tag = new Tag();
        em.persist(tag);
        em.getTransaction().commit();
        em.clear();
        Tag found = em.find(Tag.class, tag.id);

        print("types Hibernate:", photo.id.getClass().getSimpleName(), found.id.getClass().getSimpleName());
        print("tags", tag.id, found.id);
        print("one", photo.id);
        print("pair", album.id, cover.id);
        print("bulk", bulk.stream().map(picture -> picture.id).toArray());
        page.addAll(nextPage);
        printIds("pages", page);
        print("made", madeAt.getTime());
        printIds("recent", recent);
    }

    // Others take and use 30 IDs; what the optimiser then makes are the same again, and 20 of another shard.
    // That there be no other result, the sequence is where the clock does not move it.
    static void pooled(EntityManager em) {
        em.getTransaction().begin();
        em.createNativeQuery("SELECT setval('next_id_seq', (snowflake_min_id(now() + interval '1 min') >> 23) * 1024 - 1)")
                .getSingleResult();
        print("others", em.createNativeQuery(
                "INSERT INTO photos (title) SELECT 'others' FROM generate_series(1, 30) RETURNING id")
                .getResultList().toArray());
        em.getTransaction().commit();

        em.getTransaction().begin();
        List<Pooled> rows = new ArrayList<>();
        for (int n = 0; n < 50; n++) {
            Pooled row = new Pooled();
            row.title = "pooled";
            em.persist(row);
            rows.add(row);
        }
        print("pooled", rows.stream().map(row -> row.id).toArray());
        try {
            em.getTransaction().commit();
            print("duplicate", "none");
        } catch (PersistenceException e) {
            Throwable cause = e;
            while (cause.getCause() != null)
                cause = cause.getCause();
            print("duplicate", ((SQLException) cause).getSQLState());
        }
    }

    public static void main(String[] arguments) {
        EntityManagerFactory factory = new Ejb3Configuration()
                .setProperty("hibernate.connection.driver_class", "org.postgresql.Driver")
                .setProperty("hibernate.connection.url", "jdbc:postgresql://" + System.getenv("PGHOST") + ":"
                        + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE") + "?reWriteBatchedInserts=true")
                .setProperty("hibernate.connection.username", System.getenv("PGUSER"))
                .setProperty("hibernate.dialect", "Hibernate$Dialect")
                .setProperty("hibernate.id.new_generator_mappings", "true")
                .setProperty("hibernate.jdbc.batch_size", "50")
                .addAnnotatedClass(Photo.class)
                .addAnnotatedClass(Album.class)
                .addAnnotatedClass(Picture.class)
                .addAnnotatedClass(Pooled.class)
                .addAnnotatedClass(Tag.class)
                .buildEntityManagerFactory();
        EntityManager em = factory.createEntityManager();
        recipes(em);
        pooled(em);
        em.close();
        factory.close();
    }
}
