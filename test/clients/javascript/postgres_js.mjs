// postgres.js: IDs are strings, or BigInts by an option that names the types.
import postgres from 'postgres';
import { hourAgo, meant, other, print, printVersion, report, titles } from './report.mjs';

const sql = postgres();
const [{ id: one }] = await sql`INSERT INTO photos (title) VALUES ('one') RETURNING id`;
const many = (await sql`INSERT INTO photos ${sql(titles)} RETURNING id`).map((row) => row.id);
const [{ made, bound }] = await sql`SELECT snowflake_timestamp(${one}) AS made, snowflake_min_id(${hourAgo}) AS bound`;
const [{ id: tag }] = await sql`INSERT INTO tags ${sql({ id: one })} RETURNING id`;

// The type snowflake has another number in each database.
const [{ oid }] = await sql`SELECT 'snowflake'::regtype::oid`;
const snowflake = { ...postgres.BigInt, to: oid, from: [oid] };
const exact = postgres({ types: { bigint: postgres.BigInt, snowflake } });
const [row] = await exact`SELECT p.id, t.id AS tag FROM photos p JOIN tags t USING (id) WHERE t.id = ${BigInt(one)}`;
await exact.end();
printVersion('postgres.js', 'postgres');
report('postgres.js', { one, many, made, bound, tags: [tag, row.tag] });
print('with_types', typeof row.id, typeof row.tag, row.id);

// A Number can be another row's ID, so that the wrong row is found, updated and deleted.
const number = Number(meant);
const session = await sql.reserve();
await session`BEGIN`;
await session`INSERT INTO photos (id, title) VALUES (${meant}, 'meant'), (${other}, 'other')`;
const [found] = await session`SELECT id FROM photos WHERE id = ${number}`;
const [updated] = await session`UPDATE photos SET title = 'changed' WHERE id = ${number} RETURNING id`;
const [deleted] = await session`DELETE FROM photos WHERE id = ${number} RETURNING id`;
await session`ROLLBACK`;
session.release();
print('mistaken', found.id, updated.id, deleted.id);
await sql.end();
