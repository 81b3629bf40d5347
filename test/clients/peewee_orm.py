# peewee.  test/external/clients.pl compares what this prints with the tables.

import os
from datetime import datetime, timedelta, timezone

import peewee
from peewee import SQL, BigAutoField, BigIntegerField, DeferredForeignKey, ForeignKeyField, Model, TextField, fn
from playhouse.reflection import generate_models

db = peewee.PostgresqlDatabase(os.environ["PGDATABASE"])


# Peewee does not send the field, and reads it back with RETURNING, as it does for
# a BigAutoField.  Only the column's type differs, which there is "bigserial".
class SnowflakeField(BigAutoField):
    field_type = "BIGINT"

    def __init__(self, shard, *args, **kwargs):
        super().__init__(*args, constraints=[SQL(f"DEFAULT next_id({shard})")], **kwargs)


class Base(Model):
    class Meta:
        database = db


class Album(Base):
    id = SnowflakeField(5)
    title = TextField()
    cover = DeferredForeignKey("Photo", null=True, deferrable="INITIALLY DEFERRED")

    class Meta:
        table_name = "albums"


class Photo(Base):
    id = SnowflakeField(5)
    title = TextField()
    album = ForeignKeyField(Album, null=True)

    class Meta:
        table_name = "photos"


class Tag(Base):
    class TagField(SnowflakeField):
        field_type = "SNOWFLAKE"

    id = TagField(5)

    class Meta:
        table_name = "tags"


# What a plain BigAutoField makes
class Plain(Base):
    id = BigAutoField()


db.create_tables([Album, Photo, Plain, Tag])
Album._schema.create_foreign_key(Album.cover)
db.execute_sql("INSERT INTO photos VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')")

# The column's default makes the ID; create() reads it back.
photo = Photo.create(title="draft")

# Insert or update by ID.
Photo.insert(id=photo.id, title="first").on_conflict(conflict_target=[Photo.id], preserve=[Photo.title]).execute()

with db.atomic():
    # IDs taken first, for rows that refer to each other.  create() with an ID
    # inserts; save() would update, unless it has force_insert=True.
    album_id, cover_id = (id for id, in db.execute_sql("SELECT next_ids(5, 2)"))
    Album.create(id=album_id, title="album", cover=cover_id)
    Photo.create(id=cover_id, title="cover", album=album_id)
    updated = Photo(id=cover_id + 1, title="lost").save()

    # Many rows by INSERTs of a thousand, which return their IDs.
    rows = [(f"bulk {n}",) for n in range(10000)]
    ids = []
    for batch in peewee.chunked(rows, 1000):
        ids += [row.id for row in Photo.insert_many(batch, fields=[Photo.title]).returning(Photo.id).objects()]

# A page of the newest, and the one that follows it.
newest = Photo.select().order_by(Photo.id.desc()).limit(20)
page = list(newest)
next_page = list(newest.where(Photo.id < page[-1].id))

# When a row was made, and the rows of the last hour.
made_at = Photo.select(fn.snowflake_timestamp(Photo.id)).where(Photo.id == photo.id).scalar()
hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
recent = list(Photo.select().where(Photo.id >= fn.snowflake_min_id(hour_ago)).order_by(Photo.id))

# An ID of the type snowflake: peewee makes an int of it.
tag = Tag.create()
read = Tag.get(Tag.id == tag.id)

print("version peewee", peewee.__version__)
print("one", photo.id)
print("pair", album_id, cover_id)
print("bulk", *ids)
print("pages", *(row.id for row in page + next_page))
print("made", round(made_at.timestamp() * 1000))
print("recent", *(row.id for row in recent))
print("types peewee:", type(photo.id).__name__, type(read.id).__name__)
print("tags", tag.id, read.id)
print("updated", updated)
print("plain", Plain.create().id)
# pwiz and generate_models() read the tables.
print("reflected", type(generate_models(db)["photos"]._meta.primary_key).__name__)
