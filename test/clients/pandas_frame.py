# pandas.  test/external/clients.pl compares what this prints with the tables.

from datetime import timedelta

import pandas
from sqlalchemy import create_engine, text

engine = create_engine("postgresql://", future=True)

with engine.begin() as db:
    def column(sql, **values):
        return pandas.read_sql(text(sql), db, params=values).iloc[:, 0]

    # The column's default makes the ID; RETURNING brings it back.
    photo_id = int(column("INSERT INTO photos (title) VALUES ('draft') RETURNING id")[0])

    # Insert or update by ID, which to_sql() leaves to SQL.
    db.execute(text("""INSERT INTO photos (id, title) VALUES (:id, 'first')
                       ON CONFLICT (id) DO UPDATE SET title = excluded.title"""), {"id": photo_id})

    # IDs taken first, for rows that refer to each other.
    album_id, cover_id = column("SELECT next_ids(5, 2)")
    pandas.DataFrame({"id": [album_id], "title": "album", "cover_id": cover_id}).to_sql(
        "albums", db, if_exists="append", index=False)
    pandas.DataFrame({"id": [cover_id], "title": "cover", "album_id": album_id}).to_sql(
        "photos", db, if_exists="append", index=False)

    # Many rows: their IDs in one call, and then the frame with them.  Without an
    # "id" in the frame, the column's default makes them.
    bulk = pandas.DataFrame({"id": column("SELECT next_ids(5, 10000)")})
    bulk["title"] = [f"bulk {n}" for n in bulk.index]
    bulk.to_sql("photos", db, if_exists="append", index=False, method="multi", chunksize=1000)

    # A page of the newest, and the one that follows it.
    page = column("SELECT id FROM photos ORDER BY id DESC LIMIT 20")
    next_page = column("SELECT id FROM photos WHERE id < :last ORDER BY id DESC LIMIT 20", last=int(page.iloc[-1]))

    # When a row was made, and the rows of the last hour.
    made_at = column("SELECT snowflake_timestamp(:id)", id=photo_id)[0]
    hour_ago = pandas.Timestamp.now(tz="UTC") - timedelta(hours=1)
    recent = column("SELECT id FROM photos WHERE id >= snowflake_min_id(:since) ORDER BY id", since=hour_ago)

    print("version pandas", pandas.__version__)
    print("one", photo_id)
    print("pair", album_id, cover_id)
    print("bulk", *bulk["id"])
    print("pages", *page, *next_page)
    print("made", round(made_at.timestamp() * 1000))
    print("recent", *recent)

    # A column of type snowflake is text, from which "Int64" loses nothing if there are NULLs.
    pandas.DataFrame({"id": [photo_id]}).to_sql("tags", db, if_exists="append", index=False)
    tags = pandas.read_sql(text("SELECT id FROM tags"), db)
    with_null = pandas.read_sql_query(text("SELECT id FROM tags UNION ALL SELECT NULL"), db, dtype={"id": "Int64"})
    print("types pandas:", bulk["id"].dtype, tags["id"].dtype)
    print("tags", tags["id"][0], with_null["id"].min())

    # A column that also has NULLs: as it comes, with a type named, and as text.
    query = text("SELECT album_id, album_id::text AS text FROM photos ORDER BY album_id NULLS LAST LIMIT 2")
    frame = pandas.read_sql(query, db)
    print("nullable", frame["album_id"].dtype, int(frame["album_id"][0]))
    frame = pandas.read_sql_query(query, db, coerce_float=False, dtype={"album_id": "Int64"})
    print("named", frame["album_id"].dtype, frame["album_id"][0])
    print("text", frame["text"][0])
    # if_exists="replace" makes another table.
    bulk[:1].to_sql("replaced", db, if_exists="replace", index=False)
    print("replaced", db.scalar(text("SELECT count(*) FROM pg_index WHERE indrelid = 'replaced'::regclass")))
