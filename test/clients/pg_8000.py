# pg8000.  test/external/clients.pl compares what this prints with the tables.

import os
from datetime import datetime, timedelta, timezone

import pg8000

db = pg8000.connect(user=os.environ["PGUSER"], host=os.environ["PGHOST"], port=int(os.environ["PGPORT"]),
                    database=os.environ["PGDATABASE"])
cursor = db.cursor()


def column(sql, *values):
    cursor.execute(sql, values)
    return [row[0] for row in cursor.fetchall()]


# The column's default makes the ID; RETURNING brings it back.
photo_id, = column("INSERT INTO photos (title) VALUES (%s) RETURNING id", "draft")

# Insert or update by ID.
cursor.execute("""INSERT INTO photos (id, title) VALUES (%s, %s)
                  ON CONFLICT (id) DO UPDATE SET title = excluded.title""", (photo_id, "first"))

# IDs taken first, for rows that refer to each other.
album_id, cover_id = column("SELECT next_ids(5, 2)")
cursor.execute("INSERT INTO albums (id, title, cover_id) VALUES (%s, %s, %s)", (album_id, "album", cover_id))
cursor.execute("INSERT INTO photos (id, title, album_id) VALUES (%s, %s, %s)", (cover_id, "cover", album_id))

# Many rows in one statement, which returns their IDs.
titles = [f"bulk {n}" for n in range(10000)]
ids = column("INSERT INTO photos (title) SELECT unnest(%s) RETURNING id", titles)
db.commit()

# A page of the newest, and the one that follows it.
page = column("SELECT id FROM photos ORDER BY id DESC LIMIT 20")
next_page = column("SELECT id FROM photos WHERE id < %s ORDER BY id DESC LIMIT 20", page[-1])

# When a row was made, and the rows of the last hour.
made_at, = column("SELECT snowflake_timestamp(%s)", photo_id)
hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
recent = column("SELECT id FROM photos WHERE id >= snowflake_min_id(%s) ORDER BY id", hour_ago)

# The ID of a column of type snowflake is text.
tag_id, = column("INSERT INTO tags (id) VALUES (%s) RETURNING id", photo_id)
db.commit()

print("version pg8000", pg8000.__version__)
print("types pg8000:", type(photo_id).__name__, type(tag_id).__name__)
print("tags", tag_id)
print("one", photo_id)
print("pair", album_id, cover_id)
print("bulk", *ids)
print("pages", *page, *next_page)
print("made", round(made_at.timestamp() * 1000))
print("recent", *recent)
