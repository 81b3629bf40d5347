// tokio-postgres.  test/external/clients.pl compares what this prints with the tables.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{to_sql_checked, FromSql, IsNull, ToSql, Type};
use tokio_postgres::{Client, NoTls};

// A layout in the binary protocol: a byte with the version, 1, and its text
#[derive(Debug)]
struct Layout(u8, String);

impl ToSql for Layout {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&[self.0]);
        out.extend_from_slice(self.1.as_bytes());
        Ok(IsNull::No)
    }
    fn accepts(ty: &Type) -> bool {
        ty.name() == "snowflake_layout"
    }
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Layout {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Layout(raw[0], String::from_utf8(raw[1..].to_vec())?))
    }
    fn accepts(ty: &Type) -> bool {
        ty.name() == "snowflake_layout"
    }
}

// An i64 is refused as a snowflake, so this has the same bits by the type's name.
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

type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

async fn column(db: &Client, sql: &str, values: Values<'_>) -> Result<Vec<i64>, tokio_postgres::Error> {
    Ok(db.query(sql, values).await?.iter().map(|row| row.get(0)).collect())
}

fn report(what: &str, numbers: &[i64]) {
    let numbers: Vec<String> = numbers.iter().map(|number| number.to_string()).collect();
    println!("{} {}", what, numbers.join(" "));
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let variable = |name| std::env::var(name).unwrap();
    let (mut db, connection) = tokio_postgres::Config::new()
        .host(&variable("PGHOST")).port(variable("PGPORT").parse()?)
        .user(&variable("PGUSER")).dbname(&variable("PGDATABASE"))
        .connect(NoTls).await?;
    tokio::spawn(connection);

    // The column's default makes the ID; RETURNING brings it back.
    let photo_id: i64 = db.query_one("INSERT INTO photos (title) VALUES ($1) RETURNING id", &[&"draft"]).await?.get(0);

    // Insert or update by ID.
    db.execute("INSERT INTO photos (id, title) VALUES ($1, $2)
                ON CONFLICT (id) DO UPDATE SET title = excluded.title", &[&photo_id, &"first"]).await?;

    // IDs taken first, for rows that refer to each other.  The shard is an i64.
    let pair = column(&db, "SELECT next_ids($1, 2)", &[&5i64]).await?;
    let transaction = db.transaction().await?;
    transaction.execute("INSERT INTO albums (id, title, cover_id) VALUES ($1, $2, $3)", &[&pair[0], &"album", &pair[1]]).await?;
    transaction.execute("INSERT INTO photos (id, title, album_id) VALUES ($1, $2, $3)", &[&pair[1], &"cover", &pair[0]]).await?;
    transaction.commit().await?;

    // Many rows in one statement, which returns their IDs.
    let titles: Vec<String> = (0..10000).map(|n| format!("bulk {}", n)).collect();
    let bulk = column(&db, "INSERT INTO photos (title) SELECT unnest($1::text[]) RETURNING id", &[&titles]).await?;

    // A page of the newest, and the one that follows it.
    let mut pages = column(&db, "SELECT id FROM photos ORDER BY id DESC LIMIT 20", &[]).await?;
    let next = column(&db, "SELECT id FROM photos WHERE id < $1 ORDER BY id DESC LIMIT 20", &[pages.last().unwrap()]).await?;
    pages.extend(next);

    // When a row was made, and the rows of the last hour.
    let made_at: SystemTime = db.query_one("SELECT snowflake_timestamp($1)", &[&photo_id]).await?.get(0);
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    let recent = column(&db, "SELECT id FROM photos WHERE id >= snowflake_min_id($1) ORDER BY id", &[&hour_ago]).await?;

    // An ID of the type snowflake: an i64 needs casts in both directions, or a type of its own.
    let insert = "INSERT INTO tags (id) VALUES ($1)";
    println!("insert_i64 {}", db.execute(insert, &[&photo_id]).await.is_ok());
    db.execute(insert, &[&Snowflake(photo_id)]).await?;
    let row = db.query_one("SELECT id, id::bigint FROM tags WHERE id = $1::bigint", &[&photo_id]).await?;
    let (own, cast): (Snowflake, i64) = (row.get(0), row.get(1));
    println!("types tokio-postgres: i64 {} i64", if row.try_get::<_, i64>(0).is_ok() { "i64" } else { "error" });
    report("tags", &[own.0, cast]);

    report("one", &[photo_id]);
    report("pair", &pair);
    report("bulk", &bulk);
    report("pages", &pages);
    report("made", &[made_at.duration_since(UNIX_EPOCH)?.as_millis() as i64]);
    report("recent", &recent);

    // An i32 as shard is refused before it is sent.
    println!("shard_i32 {}", column(&db, "SELECT next_id($1)", &[&5i32]).await.is_ok());
    // So is text as regclass, which a cast makes possible.
    println!("regclass {}", column(&db, "SELECT next_id(5, $1)", &[&"next_id_seq"]).await.is_ok());
    println!("regclass_cast {}", column(&db, "SELECT next_id(5, $1::text::regclass)", &[&"next_id_seq"]).await.is_ok());

    // A layout as text by a cast, and in binary: sent, received, of another version
    let discord = 175928847299117063i64;
    let shard: i32 = db.query_one("SELECT snowflake_shard($1, $2::text::snowflake_layout)", &[&discord, &"discord"]).await?.get(0);
    println!("layout_cast {}", shard);
    let shard: i32 = db.query_one("SELECT snowflake_shard($1, $2)", &[&discord, &Layout(1, "discord".into())]).await?.get(0);
    println!("layout_binary {}", shard);
    let layout: Layout = db.query_one("SELECT $1::snowflake_layout", &[&Layout(1, "discord".into())]).await?.get(0);
    println!("layout_received {} {}", layout.0, layout.1);
    let error = db.query_one("SELECT $1::snowflake_layout", &[&Layout(2, "discord".into())]).await.unwrap_err();
    println!("layout_version {}", error.code().unwrap().code());
    Ok(())
}
