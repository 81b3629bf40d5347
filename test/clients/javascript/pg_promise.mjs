// pg-promise: it writes values into the statement by itself, a BigInt with all its digits, and makes one INSERT of many rows.
import pgPromise from 'pg-promise';
import { print, printVersion, report, titles, url } from './report.mjs';

const pgp = pgPromise();
const db = pgp(url);
const insert = new pgPromise.PreparedStatement({
  name: 'photo',
  text: 'INSERT INTO photos (title) VALUES ($1) RETURNING id',
  values: ['one'],
});
const { id: one } = await db.one(insert);
const columns = new pgp.helpers.ColumnSet(['title'], { table: 'photos' });
const many = await db.many(`${pgp.helpers.insert(titles, columns)} RETURNING id`);
const tag = await db.one('INSERT INTO tags (id) VALUES ($1) RETURNING id', one);
const found = await db.one('SELECT id FROM tags WHERE id = ${id}', { id: BigInt(one) });
printVersion('pg-promise', 'pg-promise');
report('pg-promise', { one, many, tags: [tag.id, found.id] });
await db.$pool.end();
