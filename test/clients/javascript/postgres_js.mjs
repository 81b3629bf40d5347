// postgres.js, with the tables of doc/clients.md.
import postgres from 'postgres';
import { pickMistakable, print, printTypes, printVersion } from './report.mjs';

// An ID is a string; with types: { bigint: postgres.BigInt } it is a BigInt.
const sql = postgres();

// The column's default makes the ID.
const [inserted] = await sql`INSERT INTO photos (title) VALUES ('draft') RETURNING id`;

// Insert or update by ID.
await sql`INSERT INTO photos ${sql({ id: inserted.id, title: 'first' })}
          ON CONFLICT (id) DO UPDATE SET title = excluded.title`;

// IDs taken first, for rows that refer to each other.
const [{ id: albumId }, { id: coverId }] = await sql`SELECT next_ids(5, 2) AS id`;
await sql.begin(async (sql) => {
  await sql`INSERT INTO albums ${sql({ id: albumId, title: 'album', cover_id: coverId })}`;
  await sql`INSERT INTO photos ${sql({ id: coverId, title: 'cover', album_id: albumId })}`;
});

// Many rows in one statement, which returns their IDs.
const titles = Array.from({ length: 10000 }, (_, n) => ({ title: `bulk ${n}` }));
const bulk = await sql`INSERT INTO photos ${sql(titles)} RETURNING id`;

// A page of the newest, and the one that follows it.
const page = await sql`SELECT id FROM photos ORDER BY id DESC LIMIT 20`;
const nextPage = await sql`SELECT id FROM photos WHERE id < ${page.at(-1).id} ORDER BY id DESC LIMIT 20`;

// When a row was made, and the rows of the last hour.
const [{ at }] = await sql`SELECT snowflake_timestamp(${inserted.id}) AS at`;
const hourAgo = new Date(Date.now() - 3600 * 1000);
const recent = await sql`SELECT id FROM photos WHERE id >= snowflake_min_id(${hourAgo}) ORDER BY id`;

const ids = (rows) => rows.map((row) => row.id);
printVersion('postgres.js', 'postgres');
print('one', inserted.id);
print('pair', albumId, coverId);
print('bulk', ids(bulk));
print('pages', ids(page), ids(nextPage));
print('made', at.getTime());
print('recent', ids(recent));

// An ID of the type snowflake is a string, too; its type has another number in each database.
const [{ id: tagId }] = await sql`INSERT INTO tags ${sql({ id: inserted.id })} RETURNING id`;
const [{ oid }] = await sql`SELECT 'snowflake'::regtype::oid`;

const snowflake = { ...postgres.BigInt, to: oid, from: [oid] };
const exact = postgres({ types: { bigint: postgres.BigInt, snowflake } });
const [{ id, tag_id: exactTagId }] = await exact`
  SELECT p.id, t.id AS tag_id FROM photos p JOIN tags t USING (id) WHERE t.id = ${BigInt(tagId)}`;
print('bigint', typeof id, id);
printTypes('postgres.js', inserted.id, tagId);
print('tags', tagId, exactTagId);
print('snowflake_as_bigint', typeof exactTagId);
await exact.end();

// The traps: JSON that SQL makes has a number, which is rounded.
const [{ photo }] = await sql`SELECT to_json(photos) AS photo FROM photos WHERE id = ${inserted.id}`;
print('rounded', BigInt(photo.id));

// A number is often another row's ID, so that the wrong row is found, updated and deleted.
const meant = pickMistakable(ids(bulk));
const number = Number(meant);
const session = await sql.reserve();
await session`BEGIN`;
const found = await session`SELECT id FROM photos WHERE id = ${number}`;
const updated = await session`UPDATE photos SET title = 'changed' WHERE id = ${number} RETURNING id`;
const deleted = await session`DELETE FROM photos WHERE id = ${number} RETURNING id`;
await session`ROLLBACK`;
session.release();
print('mistaken', meant, ids(found), ids(updated), ids(deleted));
await sql.end();
