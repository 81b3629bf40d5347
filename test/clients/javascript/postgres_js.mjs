// postgres.js prepares and pipelines what it is sent.  IDs are strings, or BigInts by an option that names the types.
import postgres from 'postgres';
import { print, printVersion, report, titles } from './report.mjs';

const sql = postgres({ max: 1 });
const insert = ({ title }) => sql`INSERT INTO photos (title) VALUES (${title}) RETURNING id`;
const [{ id: one }] = await insert({ title: 'one' });
const many = (await Promise.all(titles.map(insert))).map(([row]) => row.id);
const [{ id: tag }] = await sql`INSERT INTO tags ${sql({ id: one })} RETURNING id`;

// The type snowflake has another number in each database.
const [{ oid }] = await sql`SELECT 'snowflake'::regtype::oid`;
const snowflake = { ...postgres.BigInt, to: oid, from: [oid] };
const exact = postgres({ types: { bigint: postgres.BigInt, snowflake } });
const [row] = await exact`SELECT p.id, t.id AS tag FROM photos p JOIN tags t USING (id) WHERE t.id = ${BigInt(one)}`;
await exact.end();
printVersion('postgres.js', 'postgres');
report('postgres.js', { one, many, tags: [tag, row.tag] });
print('with_types', typeof row.id, typeof row.tag, row.id);
await sql.end();
