# asyncpg: all values are binary, and an int is refused where a parameter is a snowflake, unless a codec is set.

import asyncio
from datetime import datetime, timedelta, timezone
import asyncpg


async def main():
    db = await asyncpg.connect()
    one = await db.fetchval("INSERT INTO photos (title) VALUES ($1) RETURNING id", "one")

    # Their IDs in one call, then COPY
    many = [row[0] for row in await db.fetch("SELECT next_ids($1, 1000)", 5)]
    rows = [(id, f"many {n}") for n, id in enumerate(many)]
    await db.copy_records_to_table("photos", columns=["id", "title"], records=rows)

    hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    bound = await db.fetchval("SELECT snowflake_min_id($1)", hour_ago)
    without_zone = await db.fetchval("SELECT snowflake_min_id($1)", hour_ago.replace(tzinfo=None))

    insert = "INSERT INTO tags (id) VALUES ($1) RETURNING id"
    tag = await db.fetchval(insert, str(one))
    try:
        await db.fetchval(insert, one)
    except asyncpg.DataError as error:
        print("int_for_snowflake", error.sqlstate)
    await db.set_builtin_type_codec("snowflake", codec_name="int8")
    await db.execute("DELETE FROM tags")
    await db.copy_records_to_table("tags", columns=["id"], records=[(one,)])
    registered = await db.fetchval("SELECT id FROM tags WHERE id = $1", one)

    print("version asyncpg", asyncpg.__version__)
    print("types asyncpg:", *(type(id).__name__ for id in (one, tag, registered)))
    print("tags", tag, registered)
    print("one", one)
    print("many", *many)
    print("hours_off_without_zone", (bound - without_zone) / 2**23 / 3600000)
    await db.close()


asyncio.run(main())
