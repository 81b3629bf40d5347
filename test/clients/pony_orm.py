# Pony.  test/external/clients.pl compares what this prints with the tables.

import os
from datetime import datetime, timedelta, timezone

import pony
from pony.orm import Database, Optional, PrimaryKey, Required, Set, commit, db_session, desc, flush, raw_sql, select

db = Database()


# sql_default alone: Pony leaves the column out of the INSERT and reads it back with
# RETURNING.
class Album(db.Entity):
    _table_ = "albums"
    id = PrimaryKey(int, size=64, sql_default="next_id(5)")
    title = Required(str)
    cover = Optional("Photo", column="cover_id")
    photos = Set("Photo", reverse="album")


class Photo(db.Entity):
    _table_ = "photos"
    id = PrimaryKey(int, size=64, sql_default="next_id(5)")
    title = Required(str)
    album = Optional(Album, column="album_id", reverse="photos")
    covered = Optional(Album, reverse="cover")


class Tag(db.Entity):
    _table_ = "tags"
    id = PrimaryKey(int, size=64, sql_type="snowflake", sql_default="next_id(5)")


db.bind("postgres", database=os.environ["PGDATABASE"])
db.generate_mapping(create_tables=True)

with db_session:
    db.execute("INSERT INTO photos VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')")

    # The column's default makes the ID; flush() reads it back.
    photo = Photo(title="draft")
    flush()
    photo_id = photo.id

    # Insert or update by ID, which Pony leaves to SQL.
    title = "first"
    db.execute("INSERT INTO photos (id, title) VALUES ($photo_id, $title) ON CONFLICT (id) DO UPDATE SET title = excluded.title")

    # Rows that refer to each other, in the order of their references.
    album = Album(title="album")
    flush()
    album.cover = Photo(title="cover", album=album)
    flush()
    album_id, cover_id = album.id, album.cover.id

    # Many rows, each of which is an INSERT of its own.
    bulk = [Photo(title=f"bulk {n}") for n in range(10000)]
    # An ID of the type snowflake is text until Pony reads it again.
    tag = Tag()
    commit()
    tag_id = tag.id
    ids = [row.id for row in bulk]

with db_session:
    # A page of the newest, and the one that follows it.
    page = select(p for p in Photo).order_by(lambda p: desc(p.id))[:20]
    last_id = page[-1].id
    next_page = select(p for p in Photo if p.id < last_id).order_by(lambda p: desc(p.id))[:20]

    # When a row was made, and the rows of the last hour.
    made_at = db.get("SELECT snowflake_timestamp($photo_id)")
    hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    recent = select(p for p in Photo if raw_sql("p.id >= snowflake_min_id($hour_ago)")).order_by(Photo.id)[:]

    tag = select(t for t in Tag).first()

    print("version Pony", pony.__version__)
    print("one", photo_id)
    print("pair", album_id, cover_id)
    print("bulk", *ids)
    print("pages", *(row.id for row in page), *(row.id for row in next_page))
    print("made", round(made_at.timestamp() * 1000))
    print("recent", *(row.id for row in recent))
    print("types Pony:", type(photo_id).__name__, type(tag.id).__name__)
    print("tags", tag_id, tag.id)
    print("new_snowflake", type(tag_id).__name__)

# What auto=True makes, whatever the size
plain = Database("postgres", database=os.environ["PGDATABASE"])


class Plain(plain.Entity):
    id = PrimaryKey(int, size=64, auto=True)


plain.generate_mapping(create_tables=True)
with db_session:
    print("plain", plain.get("SELECT data_type FROM information_schema.columns WHERE table_name = 'plain'"))
