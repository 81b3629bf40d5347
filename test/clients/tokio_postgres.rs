// tokio-postgres: all values are binary, and an i64 is refused as a snowflake in both directions.  Statements that are
// sent together are a pipeline.

use futures_util::future::try_join_all;
use std::error::Error;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{to_sql_checked, FromSql, IsNull, ToSql, Type};
use tokio_postgres::NoTls;

// The same bits as an i64, by the type's name
#[derive(Debug)]
struct Snowflake(i64);

impl ToSql for Snowflake {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.0.to_sql(ty, out)
    }
    fn accepts(ty: &Type) -> bool {
        ty.name() == "snowflake"
    }
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Snowflake {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Snowflake(i64::from_sql(ty, raw)?))
    }
    fn accepts(ty: &Type) -> bool {
        ty.name() == "snowflake"
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let variable = |name| std::env::var(name).unwrap();
    let (db, connection) = tokio_postgres::Config::new()
        .host(&variable("PGHOST")).port(variable("PGPORT").parse()?)
        .user(&variable("PGUSER")).dbname(&variable("PGDATABASE"))
        .connect(NoTls).await?;
    tokio::spawn(connection);

    let insert = db.prepare("INSERT INTO photos (title) VALUES ($1) RETURNING id").await?;
    let one: i64 = db.query_one(&insert, &[&"one"]).await?.get(0);
    let titles: Vec<String> = (0..1000).map(|n| format!("many {}", n)).collect();
    let many = try_join_all(titles.iter().map(|title| {
        let (db, insert) = (&db, &insert);
        async move { db.query_one(insert, &[title]).await }
    })).await?;
    let many: Vec<String> = many.iter().map(|row| row.get::<_, i64>(0).to_string()).collect();

    let insert = "INSERT INTO tags (id) VALUES ($1)";
    println!("insert_of_i64 {}", db.execute(insert, &[&one]).await.is_ok());
    db.execute(insert, &[&Snowflake(one)]).await?;
    let tag = db.query_one("SELECT id, id::bigint FROM tags WHERE id = $1::bigint", &[&one]).await?;
    println!("types tokio-postgres: i64 {}", if tag.try_get::<_, i64>(0).is_ok() { "i64" } else { "error" });
    println!("tags {} {}", tag.get::<_, Snowflake>(0).0, tag.get::<_, i64>(1));
    println!("one {}", one);
    println!("many {}", many.join(" "));

    println!("shard_as_i32 {}", db.query_one("SELECT next_id($1)", &[&5i32]).await.is_ok());
    println!("sequence_as_text {}", db.query_one("SELECT next_id(5, $1)", &[&"next_id_seq"]).await.is_ok());
    let cast = "SELECT next_id($1, $2::text::regclass, $3::text::snowflake_layout)";
    println!("cast_of_text {}", db.query_one(cast, &[&5i64, &"next_id_seq", &"instagram"]).await.is_ok());
    Ok(())
}
