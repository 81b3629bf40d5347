# SQLObject.  test/external/clients.pl compares what this prints with the tables.

import os
from datetime import datetime, timedelta, timezone

import sqlobject
from sqlobject import BigIntCol, SQLObject, UnicodeCol, connectionForURI, sqlhub
from sqlobject.sqlbuilder import Insert, func

db = connectionForURI("postgres://{PGUSER}@{PGHOST}:{PGPORT}/{PGDATABASE}".format(**os.environ))


# The tables are made in SQL: createTable() would make the key a serial.
class Album(SQLObject):
    class sqlmeta:
        table = "albums"
    title = UnicodeCol()
    coverID = BigIntCol(default=None, dbName="cover_id")


class Photo(SQLObject):
    class sqlmeta:
        table = "photos"
    title = UnicodeCol()
    albumID = BigIntCol(default=None, dbName="album_id")


class Tag(SQLObject):
    class sqlmeta:
        table = "tags"


sqlhub.processConnection = db.transaction()

# The column's default makes the ID; SQLObject reads it back with RETURNING.
photo = Photo(title="draft")

# Insert or update by ID, which SQLObject leaves to SQL.
upsert = db.sqlrepr(Insert("photos", [{"id": photo.id, "title": "first"}]))
sqlhub.processConnection.query(upsert + " ON CONFLICT (id) DO UPDATE SET title = excluded.title")

# IDs taken first, for rows that refer to each other, and for many rows, each of
# which is an INSERT of its own.
album_id, cover_id, *ids = (id for id, in sqlhub.processConnection.queryAll("SELECT next_ids(5, 10002)"))
Album(id=album_id, title="album", coverID=cover_id)
Photo(id=cover_id, title="cover", albumID=album_id)
for n, id in enumerate(ids):
    Photo(id=id, title=f"bulk {n}")
sqlhub.processConnection.commit()

# A page of the newest, and the one that follows it.
page = list(Photo.select(orderBy="-id")[:20])
next_page = list(Photo.select(Photo.q.id < page[-1].id, orderBy="-id")[:20])

# When a row was made, and the rows of the last hour.
(made_at,), = sqlhub.processConnection.queryAll(f"SELECT snowflake_timestamp({photo.id})")
hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
recent = list(Photo.select(Photo.q.id >= func.snowflake_min_id(hour_ago.isoformat()), orderBy="id"))

# An ID of the type snowflake is text until SQLObject reads it again.
new_tag = Tag()
tag, = Tag.select(Tag.q.id == int(new_tag.id))
sqlhub.processConnection.cache.clear()
print("version SQLObject", sqlobject.__version__.version)
print("types SQLObject:", type(photo.id).__name__, type(tag.id).__name__)
print("tags", new_tag.id, tag.id)
print("new_snowflake", type(new_tag.id).__name__)
print("one", photo.id)
print("pair", album_id, cover_id)
print("bulk", *ids)
print("pages", *(row.id for row in page + next_page))
print("made", round(made_at.timestamp() * 1000))
print("recent", *(row.id for row in recent))
# A datetime goes out without its zone, for the session's.
print("zone", "kept" if "+00" in db.sqlrepr(hour_ago) else "lost")
print("plain", db.createIDColumn(Photo))
sqlhub.processConnection.commit(close=True)
