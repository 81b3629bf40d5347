# asyncpg.  test/external/clients.pl compares what this prints with the tables.

import asyncio
from datetime import datetime, timedelta, timezone

import asyncpg


async def main():
    db = await asyncpg.connect()

    # The column's default makes the ID; RETURNING brings it back.
    photo_id = await db.fetchval("INSERT INTO photos (title) VALUES ($1) RETURNING id", "draft")

    # Insert or update by ID.
    await db.execute("""INSERT INTO photos (id, title) VALUES ($1, $2)
                        ON CONFLICT (id) DO UPDATE SET title = excluded.title""", photo_id, "first")

    async with db.transaction():
        # IDs taken first, for rows that refer to each other.
        album_id, cover_id = [row[0] for row in await db.fetch("SELECT next_ids($1, 2)", 5)]
        await db.execute("INSERT INTO albums (id, title, cover_id) VALUES ($1, $2, $3)", album_id, "album", cover_id)
        await db.execute("INSERT INTO photos (id, title, album_id) VALUES ($1, $2, $3)", cover_id, "cover", album_id)

        # Many rows: their IDs in one call, then COPY.
        titles = [f"bulk {n}" for n in range(10000)]
        ids = [row[0] for row in await db.fetch("SELECT next_ids(5, $1)", len(titles))]
        await db.copy_records_to_table("photos", columns=["id", "title"], records=zip(ids, titles))

    # A page of the newest, and the one that follows it.
    page = await db.fetch("SELECT id, title FROM photos ORDER BY id DESC LIMIT 20")
    next_page = await db.fetch("SELECT id, title FROM photos WHERE id < $1 ORDER BY id DESC LIMIT 20", page[-1]["id"])

    # When a row was made, and the rows of the last hour.
    made_at = await db.fetchval("SELECT snowflake_timestamp($1)", photo_id)
    hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    recent = await db.fetch("SELECT id FROM photos WHERE id >= snowflake_min_id($1) ORDER BY id", hour_ago)

    # The ID of a column of type snowflake is text, also as a parameter that has this type and in COPY, unless the codec
    # of bigint is set for it.
    insert = "INSERT INTO tags (id) VALUES ($1) RETURNING id"
    tag_id = await db.fetchval(insert, str(photo_id))
    try:
        await db.fetchval(insert, photo_id)
    except asyncpg.DataError:
        print("int_as_snowflake refused")
    await db.set_builtin_type_codec("snowflake", codec_name="int8")
    await db.execute("DELETE FROM tags")
    await db.copy_records_to_table("tags", columns=["id"], records=[(photo_id,)])
    registered = await db.fetchval("SELECT id FROM tags WHERE id = $1", photo_id)

    print("version asyncpg", asyncpg.__version__)
    print("types asyncpg:", *(type(id).__name__ for id in (photo_id, tag_id, registered)))
    print("tags", tag_id, registered)
    print("one", photo_id)
    print("pair", album_id, cover_id)
    print("bulk", *ids)
    print("pages", *(row["id"] for row in page + next_page))
    print("made", round(made_at.timestamp() * 1000))
    print("recent", *(row["id"] for row in recent))

    # A layout in text, as asyncpg binds types that it does not know.
    discord = 175928847299117063
    print("layout_text", await db.fetchval("SELECT snowflake_shard($1, $2)", discord, "discord"))

    # And in binary: a byte with the version, 1, and the text.
    await db.set_type_codec("snowflake_layout", format="binary",
                            encoder=lambda text: b"\1" + text.encode(), decoder=bytes)
    print("layout_binary", await db.fetchval("SELECT snowflake_shard($1, $2)", discord, "discord"))
    print("layout_sent", (await db.fetchval("SELECT $1::snowflake_layout", "discord")).hex())
    await db.set_type_codec("snowflake_layout", format="binary",
                            encoder=lambda text: b"\2" + text.encode(), decoder=bytes)
    try:
        await db.fetchval("SELECT snowflake_shard($1, $2)", discord, "discord")
    except asyncpg.PostgresError as error:
        print("layout_version", error.sqlstate)

    # A time without a zone is taken for the client's own.
    naive = await db.fetchval("SELECT snowflake_min_id($1)", hour_ago.replace(tzinfo=None))
    aware = await db.fetchval("SELECT snowflake_min_id($1)", hour_ago)
    print("naive", (aware - naive) / 2**23 / 3600000)

    # A number in text is refused before it is sent.
    try:
        await db.fetchval("SELECT next_id($1)", "5")
    except asyncpg.DataError:
        print("shard_text refused")
    await db.close()


asyncio.run(main())
