# psycopg 3.  test/external/clients.pl compares what this prints with the tables.

from datetime import datetime, timedelta, timezone
import psycopg
from psycopg.types import TypeInfo
from psycopg.types.numeric import Int8BinaryLoader, IntLoader

with psycopg.connect() as db:
    # The column's default makes the ID; RETURNING brings it back.
    photo_id, = db.execute("INSERT INTO photos (title) VALUES (%s) RETURNING id", ["draft"]).fetchone()

    # Insert or update by ID.
    db.execute("""INSERT INTO photos (id, title) VALUES (%s, %s)
                  ON CONFLICT (id) DO UPDATE SET title = excluded.title""", [photo_id, "first"])

    # IDs taken first, for rows that refer to each other.
    album_id, cover_id = (id for id, in db.execute("SELECT next_ids(5, 2)"))
    db.execute("INSERT INTO albums (id, title, cover_id) VALUES (%s, %s, %s)", [album_id, "album", cover_id])
    db.execute("INSERT INTO photos (id, title, album_id) VALUES (%s, %s, %s)", [cover_id, "cover", album_id])

    # Many rows: their IDs in one call, then COPY.
    titles = [f"bulk {n}" for n in range(10000)]
    ids = [id for id, in db.execute("SELECT next_ids(5, %s)", [len(titles)])]
    with db.cursor().copy("COPY photos (id, title) FROM STDIN") as copy:
        for row in zip(ids, titles):
            copy.write_row(row)

    # A page of the newest, and the one that follows it.
    page = db.execute("SELECT id, title FROM photos ORDER BY id DESC LIMIT 20").fetchall()
    last_id = page[-1][0]
    next_page = db.execute("SELECT id, title FROM photos WHERE id < %s ORDER BY id DESC LIMIT 20",
                           [last_id]).fetchall()

    # When a row was made, and the rows of the last hour.
    made_at, = db.execute("SELECT snowflake_timestamp(%s)", [photo_id]).fetchone()
    hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    recent = db.execute("SELECT id FROM photos WHERE id >= snowflake_min_id(%s) ORDER BY id", [hour_ago]).fetchall()

    # The ID of a column of type snowflake is text, unless loaders of numbers are registered for the type.
    by_id = "SELECT id FROM tags WHERE id = %s"
    tag_id, = db.execute("INSERT INTO tags (id) VALUES (%s) RETURNING id", [photo_id]).fetchone()
    oid = TypeInfo.fetch(db, "snowflake").oid
    db.adapters.register_loader(oid, IntLoader)
    db.adapters.register_loader(oid, Int8BinaryLoader)
    registered, = db.execute(by_id, [photo_id]).fetchone()
    binary, = db.execute(by_id, [photo_id], binary=True).fetchone()

print("version psycopg", psycopg.__version__)
print("one", photo_id)
print("pair", album_id, cover_id)
print("bulk", *ids)
print("pages", *(id for id, _ in page + next_page))
print("made", round(made_at.timestamp() * 1000))
print("recent", *(id for id, in recent))
print("types psycopg:", *(type(id).__name__ for id in (photo_id, tag_id, registered)))
print("tags", tag_id, registered, binary)
