// node-postgres, with the tables of doc/clients.md.
import pg from 'pg';
import { pickMistakable, print, printTypes, printVersion } from './report.mjs';

const db = new pg.Client();
await db.connect();

// The column's default makes the ID; RETURNING brings it back, as a string: leave it one.
const inserted = await db.query('INSERT INTO photos (title) VALUES ($1) RETURNING id', ['draft']);
const photoId = inserted.rows[0].id;

// Insert or update by ID.
const upserted = await db.query(
  'INSERT INTO photos (id, title) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET title = excluded.title RETURNING id, title',
  [photoId, 'first'],
);

// IDs taken first, for rows that refer to each other.
const taken = await db.query('SELECT next_ids(5, 2) AS id');
const [albumId, coverId] = taken.rows.map((row) => row.id);
await db.query('BEGIN');
await db.query('INSERT INTO albums (id, title, cover_id) VALUES ($1, $2, $3)', [albumId, 'album', coverId]);
await db.query('INSERT INTO photos (id, title, album_id) VALUES ($1, $2, $3)', [coverId, 'cover', albumId]);
await db.query('COMMIT');

// Many rows in one statement, which returns their IDs.
const titles = Array.from({ length: 10000 }, (_, n) => `bulk ${n}`);
const bulk = await db.query('INSERT INTO photos (title) SELECT unnest($1::text[]) RETURNING id', [titles]);

// A page of the newest, and the one that follows it.
const page = await db.query('SELECT id, title FROM photos ORDER BY id DESC LIMIT 20');
const lastId = page.rows[page.rows.length - 1].id;
const nextPage = await db.query('SELECT id, title FROM photos WHERE id < $1 ORDER BY id DESC LIMIT 20', [lastId]);

// When a row was made, and the rows of the last hour.
const made = await db.query('SELECT snowflake_timestamp($1) AS at', [photoId]);
const hourAgo = new Date(Date.now() - 3600 * 1000);
const recent = await db.query('SELECT id FROM photos WHERE id >= snowflake_min_id($1) ORDER BY id', [hourAgo]);

// A row's ID is a string in JSON, too: what JSON.parse() gives back is the ID.
const sent = JSON.stringify(upserted.rows[0]);
const received = JSON.parse(sent).id;

// JSON that SQL makes has a number, which JSON.parse() rounds; for a column of type json, the driver calls it.
const byRow = 'SELECT row_to_json(photos) AS photo FROM photos WHERE id = $1';
const rounded = (await db.query(byRow, [photoId])).rows[0].photo.id;

// So have the ID as text there, in digits or shorter; snowflake_from_text() reads the latter.
const byText = `SELECT json_build_object('id', id::text, 'short', snowflake_to_text(id), 'title', title) AS photo
                FROM photos WHERE id = $1`;
const { id, short } = (await db.query(byText, [photoId])).rows[0].photo;

// An ID of the type snowflake is text there without a cast.
const tagged = await db.query('INSERT INTO tags (id) VALUES ($1) RETURNING id, to_json(tags) AS tag', [photoId]);
const { id: tagId, tag } = tagged.rows[0];

// IDs of the layout 'javascript' stay below 2^53, so they may be numbers.
const note = await db.query("INSERT INTO notes (body) VALUES ('first') RETURNING id, to_json(id) AS number");
const noteId = note.rows[0].number;

const ids = (result) => result.rows.map((row) => row.id);
printVersion('node-postgres', 'pg');
printTypes('node-postgres', photoId, tagId);
print('tags', tagId, tag.id);
print('one', ids(inserted));
print('pair', albumId, coverId);
print('bulk', ids(bulk));
print('pages', ids(page), ids(nextPage));
print('made', made.rows[0].at.getTime());
print('recent', ids(recent));
print('received', received);
print('rounded', BigInt(rounded));
print('text', id);
print('short', short);
print('note', typeof noteId, Number.isSafeInteger(noteId), noteId);

// The traps: a number out of JSON is often another row's ID, so that the wrong row is found, updated and deleted.
const meant = pickMistakable(ids(bulk));
const { photo } = (await db.query(byRow, [meant])).rows[0];
await db.query('BEGIN');
const found = await db.query('SELECT id FROM photos WHERE id = $1', [photo.id]);
const updated = await db.query("UPDATE photos SET title = 'changed' WHERE id = $1 RETURNING id", [photo.id]);
const deleted = await db.query('DELETE FROM photos WHERE id = $1 RETURNING id', [photo.id]);
await db.query('ROLLBACK');
print('mistaken', meant, ids(found), ids(updated), ids(deleted));

// The driver reads some IDs wrongly in the binary format.
const binary = new pg.Client({ binary: true });
await binary.connect();
const fixed = await binary.query('SELECT $1::bigint AS id, $1::text AS text', ['4020418040280650772']);
print('binary', typeof fixed.rows[0].id, fixed.rows[0].id === fixed.rows[0].text);
await binary.end();
await db.end();
