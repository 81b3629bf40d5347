# SQLAlchemy, and what Alembic, which compares defaults as texts, finds to change in its tables.

import alembic
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import BigInteger, Column, Text, create_engine, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.orm import Session, declarative_base
from sqlalchemy.types import UserDefinedType

Base = declarative_base()


class Photo(Base):
    __tablename__ = "photos"
    id = Column(BigInteger, primary_key=True, server_default=text("next_id((5)::bigint)"))
    title = Column(Text, nullable=False)


class Snowflake(UserDefinedType):
    cache_ok = True

    def get_col_spec(self, **options):
        return "snowflake"

    def result_processor(self, dialect, coltype):
        return lambda value: None if value is None else int(value)


# for what reads a database's tables, as Alembic does
ischema_names["snowflake"] = Snowflake


class Tag(Base):
    __tablename__ = "tags"
    id = Column(Snowflake, primary_key=True, server_default=text("next_id((5)::bigint)"))


engine = create_engine("postgresql://", future=True)
Base.metadata.create_all(engine)
with Session(engine) as session, session.begin():
    photo, tag = Photo(title="one"), Tag()
    session.add_all([photo, tag])
    session.flush()
    many = session.scalars(select(func.next_ids(5, 1000))).all()
    session.execute(insert(Photo), [{"id": id, "title": f"many {n}"} for n, id in enumerate(many)])
    # as the driver returns it, and by the class
    tag_id, = session.execute(text("SELECT id FROM tags WHERE id = :id"), {"id": tag.id}).one()
    registered, = session.execute(select(Tag.id).where(Tag.id == tag.id)).one()

    print("version SQLAlchemy", sqlalchemy.__version__)
    print("version Alembic", alembic.__version__)
    print("types SQLAlchemy:", *(type(id).__name__ for id in (photo.id, tag_id, registered)))
    print("tags", tag_id, registered)
    print("one", photo.id)
    print("many", *many)

with engine.connect() as db:
    context = MigrationContext.configure(db, opts={"compare_server_default": True, "compare_type": True})
    print("differences", len(compare_metadata(context, Base.metadata)))
    Photo.__table__.c.id.server_default.arg = text("next_id(5)")
    print("differences_of_short_form", len(compare_metadata(context, Base.metadata)))
    Photo.__table__.c.id.server_default.arg = text("next_id()")
    db.execute(text("ALTER TABLE photos ALTER id SET DEFAULT next_id()"))
    print("differences_without_shard", len(compare_metadata(context, Base.metadata)))
