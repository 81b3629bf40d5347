# pandas: a column with NULLs becomes float64, which rounds IDs.

import pandas
from sqlalchemy import create_engine, text

engine = create_engine("postgresql://", future=True)

with engine.begin() as db:
    def frame(sql, **options):
        return pandas.read_sql_query(text(sql), db, **options)

    one = frame("INSERT INTO photos (title) VALUES ('one') RETURNING id")["id"][0]
    many = frame("SELECT next_ids(5, 1000) AS id")
    many["title"] = [f"many {n}" for n in many.index]
    many.to_sql("photos", db, if_exists="append", index=False, method="multi")
    pandas.DataFrame({"id": [one]}).to_sql("tags", db, if_exists="append", index=False)
    tags = frame("SELECT id FROM tags")

    print("version pandas", pandas.__version__)
    print("types pandas:", many["id"].dtype, tags["id"].dtype)
    print("one", one)
    print("many", *many["id"])

    # with a NULL: as it comes, with a type named, and as text
    query = "SELECT id FROM photos WHERE title = 'one' UNION ALL SELECT NULL"
    for what, options in ("null", {}), ("null_in_Int64", {"dtype": "Int64", "coerce_float": False}):
        ids = frame(query, **options)["id"]
        print(what, ids.dtype, int(ids.dropna()[0]))
    exact = frame("SELECT id FROM tags UNION ALL SELECT NULL", dtype="Int64")["id"]
    print("tags", tags["id"][0], exact.min())
