# psycopg 3: the type snowflake is text, unless loaders are registered for it.

import psycopg
from psycopg.types import TypeInfo
from psycopg.types.numeric import Int8BinaryLoader, IntLoader

with psycopg.connect() as db:
    one, = db.execute("INSERT INTO photos (title) VALUES (%s) RETURNING id", ["one"]).fetchone()

    # Their IDs in one call, then COPY
    many = [id for id, in db.execute("SELECT next_ids(5, %s)", [1000])]
    with db.cursor().copy("COPY photos (id, title) FROM STDIN") as copy:
        for n, id in enumerate(many):
            copy.write_row((id, f"many {n}"))

    tag, = db.execute("INSERT INTO tags (id) VALUES (%s) RETURNING id", [one]).fetchone()
    oid = TypeInfo.fetch(db, "snowflake").oid
    db.adapters.register_loader(oid, IntLoader)
    db.adapters.register_loader(oid, Int8BinaryLoader)
    by_id = "SELECT id FROM tags WHERE id = %s"
    registered, = db.execute(by_id, [one]).fetchone()
    binary, = db.execute(by_id, [one], binary=True).fetchone()

print("version psycopg", psycopg.__version__)
print("types psycopg:", *(type(id).__name__ for id in (one, tag, registered)))
print("tags", tag, registered, binary)
print("one", one)
print("many", *many)
