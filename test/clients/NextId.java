// Takes the IDs of Hibernate's entities before their rows.

import java.io.Serializable;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import org.hibernate.HibernateException;
import org.hibernate.engine.SessionImplementor;
import org.hibernate.id.IdentifierGenerator;

public class NextId implements IdentifierGenerator {
    public Serializable generate(SessionImplementor session, Object entity) {
        try (PreparedStatement query = session.connection().prepareStatement("SELECT next_id(5)");
             ResultSet row = query.executeQuery()) {
            row.next();
            return row.getLong(1);
        } catch (SQLException e) {
            throw new HibernateException(e);
        }
    }
}
