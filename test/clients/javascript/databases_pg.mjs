// @databases/pg: a bigint is rounded unless bigIntMode is "bigint" or "string".
import createConnectionPool, { sql } from '@databases/pg';
import { print, printVersion, report, titles, url } from './report.mjs';

const connect = (options) => createConnectionPool.default({ connectionString: url, ...options });
const db = connect({ bigIntMode: 'bigint' });
const [{ id: one }] = await db.query(sql`INSERT INTO photos (title) VALUES (${'one'}) RETURNING id`);
const rows = sql.join(titles.map(({ title }) => sql`(${title})`), ', ');
const many = await db.query(sql`INSERT INTO photos (title) VALUES ${rows} RETURNING id`);
const [tag] = await db.query(sql`INSERT INTO tags (id) VALUES (${one}) RETURNING id`);
printVersion('@databases/pg', '@databases/pg');
report('@databases/pg', { one, many, tags: [tag.id] });

const rounding = connect({});
const [{ id: rounded }] = await rounding.query(sql`SELECT id FROM photos WHERE title = 'one'`);
print('by_default', typeof rounded, BigInt(rounded));
await rounding.dispose();
await db.dispose();
