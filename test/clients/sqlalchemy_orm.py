# SQLAlchemy, and the differences that Alembic finds in its tables.
# test/external/clients.pl compares what this prints with the tables.

import alembic
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from datetime import datetime, timedelta, timezone
from sqlalchemy import BigInteger, Column, ForeignKey, Text, create_engine, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.orm import Session, declarative_base
from sqlalchemy.types import UserDefinedType

# The default is written as PostgreSQL keeps it, for Alembic, which compares texts.
Base = declarative_base()


class Album(Base):
    __tablename__ = "albums"
    id = Column(BigInteger, primary_key=True, server_default=text("next_id((5)::bigint)"))
    title = Column(Text, nullable=False)
    cover_id = Column(ForeignKey("photos.id", name="albums_cover_id_fkey", use_alter=True,
                                 deferrable=True, initially="DEFERRED"))


class Photo(Base):
    __tablename__ = "photos"
    id = Column(BigInteger, primary_key=True, server_default=text("next_id((5)::bigint)"))
    title = Column(Text, nullable=False)
    album_id = Column(ForeignKey("albums.id"))


# Drivers return text for the type snowflake.  ischema_names is for what reads a database's tables, as Alembic does.
class Snowflake(UserDefinedType):
    cache_ok = True

    def get_col_spec(self, **options):
        return "snowflake"

    def result_processor(self, dialect, coltype):
        return lambda value: None if value is None else int(value)


ischema_names["snowflake"] = Snowflake


class Tag(Base):
    __tablename__ = "tags"
    id = Column(Snowflake, primary_key=True, server_default=text("next_id((5)::bigint)"))
    parent_id = Column(ForeignKey("tags.id"))


engine = create_engine("postgresql://", future=True)
Base.metadata.create_all(engine)

with engine.begin() as db:
    db.execute(text("INSERT INTO photos VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')"))

with Session(engine) as session, session.begin():
    # The column's default makes the ID; it is in the object after flush().
    photo = Photo(title="draft")
    session.add(photo)
    session.flush()

    # Insert or update by ID.
    upsert = insert(Photo).values(id=photo.id, title="first")
    session.execute(upsert.on_conflict_do_update(index_elements=[Photo.id], set_={"title": upsert.excluded.title}))

    # IDs taken first, for rows that refer to each other.
    album_id, cover_id = session.scalars(select(func.next_ids(5, 2)))
    session.add(Album(id=album_id, title="album", cover_id=cover_id))
    session.add(Photo(id=cover_id, title="cover", album_id=album_id))

    # Many rows: their IDs in one call, then one INSERT.
    ids = session.scalars(select(func.next_ids(5, 10000))).all()
    session.execute(insert(Photo), [{"id": id, "title": f"bulk {n}"} for n, id in enumerate(ids)])

    # A page of the newest, and the one that follows it.
    newest = select(Photo).order_by(Photo.id.desc()).limit(20)
    page = session.scalars(newest).all()
    next_page = session.scalars(newest.where(Photo.id < page[-1].id)).all()

    # When a row was made, and the rows of the last hour.
    made_at = session.scalar(select(func.snowflake_timestamp(photo.id)))
    hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    recent = session.scalars(
        select(Photo).where(Photo.id >= func.snowflake_min_id(hour_ago)).order_by(Photo.id)).all()

    tag = Tag()
    session.add(tag)
    session.flush()
    # As a column of the type BigInteger would have it, and by the class
    tag_id, = session.execute(text("SELECT id FROM tags WHERE id = :id"), {"id": tag.id}).one()
    registered, = session.execute(select(Tag.id).where(Tag.id == tag.id)).one()

    print("types SQLAlchemy:", *(type(id).__name__ for id in (photo.id, tag_id, registered)))
    print("tags", tag_id, registered)
    print("version SQLAlchemy", sqlalchemy.__version__)
    print("version Alembic", alembic.__version__)
    print("one", photo.id)
    print("pair", album_id, cover_id)
    print("bulk", *ids)
    print("pages", *(row.id for row in page + next_page))
    print("made", round(made_at.timestamp() * 1000))
    print("recent", *(row.id for row in recent))

# What Alembic would change: with the default as above, and in short.
with engine.connect() as db:
    context = MigrationContext.configure(db, opts={"compare_server_default": True, "compare_type": True})
    print("drift", len(compare_metadata(context, Base.metadata)))
    Photo.__table__.c.id.server_default.arg = text("next_id(5)")
    print("drift_if_short", len(compare_metadata(context, Base.metadata)))
    Photo.__table__.c.id.server_default.arg = text("next_id()")
    db.execute(text("ALTER TABLE photos ALTER id SET DEFAULT next_id()"))
    print("drift_if_setting", len(compare_metadata(context, Base.metadata)))
