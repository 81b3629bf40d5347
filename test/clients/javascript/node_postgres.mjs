// node-postgres: IDs are strings, and JSON that SQL makes has numbers, which are rounded.
import pg from 'pg';
import { print, printVersion, report, titles } from './report.mjs';

const db = new pg.Client();
await db.connect();
const first = async (sql, ...values) => (await db.query(sql, values)).rows[0];

const { id: one } = await first("INSERT INTO photos (title) VALUES ('one') RETURNING id");
const insert = 'INSERT INTO photos (title) SELECT unnest($1::text[]) RETURNING id';
const many = (await db.query(insert, [titles.map((row) => row.title)])).rows.map((row) => row.id);
const tagged = await first('INSERT INTO tags (id) VALUES ($1) RETURNING id, to_json(tags) AS tag', one);
printVersion('node-postgres', 'pg');
report('node-postgres', { one, many, tags: [tagged.id, tagged.tag.id] });

const json = 'SELECT to_json(photos) AS photo, to_json(id::snowflake) AS cast FROM photos WHERE id = $1';
const { photo, cast } = await first(json, one);
print('json', BigInt(photo.id));
print('json_of_cast', cast);

// A number out of JSON can be another row's ID, so that the wrong row is deleted: node-postgres sends the shortest
// digits that name the double.  Both are IDs of shard 5 and of the same millisecond.
const meant = '4020418040280650772';
const other = '4020418040280651000';
await db.query('BEGIN');
await db.query("INSERT INTO photos (id, title) VALUES ($1, 'meant'), ($2, 'other')", [meant, other]);
const mistaken = (await first(json, meant)).photo.id;
const deleted = await first('DELETE FROM photos WHERE id = $1 RETURNING id', mistaken);
await db.query('ROLLBACK');
print('mistaken', deleted.id);

const binary = new pg.Client({ binary: true });
await binary.connect();
const { rows: [fixed] } = await binary.query('SELECT $1::bigint AS id', [meant]);
print('binary', typeof fixed.id, fixed.id === meant);
await binary.end();
await db.end();
