// Drizzle, with the tables of drizzle_schema.mjs, which drizzle-kit makes.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { drizzle } from 'drizzle-orm/node-postgres';
import { desc, eq, gte, lt, sql } from 'drizzle-orm';
import { bigint, pgTable, text } from 'drizzle-orm/pg-core';
import pg from 'pg';
import * as schema from './drizzle_schema.mjs';
import { pickMistakable, print, printTypes, printVersion } from './report.mjs';

const { albums, photos, tags } = schema;
const pool = new pg.Pool();
const db = drizzle(pool, { schema });
const kit = (...command) =>
  execFileSync(process.execPath, ['node_modules/drizzle-kit/bin.cjs', ...command, '--config=drizzle.config.mjs'], { encoding: 'utf8', stdio: 'pipe' });
const outcome = (output) => (/No changes|No schema changes/.test(output) ? 'same' : /Changes applied|\.sql/.test(output) ? 'changed' : 'failed');

print('push', outcome(kit('push')), outcome(kit('push')));
print('generate', outcome(kit('generate')), outcome(kit('generate')));
const [migration] = readdirSync('drizzle').filter((name) => name.endsWith('.sql'));
print('migration', readFileSync(`drizzle/${migration}`, 'utf8').match(/CREATE SEQUENCE \S+/));

await db.insert(photos).values({ id: sql`snowflake_id('2020-01-01Z', 5, 1)`, title: 'old' });

// The column's default makes the ID, a BigInt.
const [inserted] = await db.insert(photos).values({ title: 'draft' }).returning({ id: photos.id });

// Insert or update by ID.
await db
  .insert(photos)
  .values({ id: inserted.id, title: 'first' })
  .onConflictDoUpdate({ target: photos.id, set: { title: sql`excluded.title` } });

// IDs taken first, for rows that refer to each other.
const taken = await db.execute(sql`SELECT next_ids(5, 2) AS id`);
const [albumId, coverId] = taken.rows.map((row) => BigInt(row.id));
await db.transaction(async (tx) => {
  await tx.insert(albums).values({ id: albumId, title: 'album', coverId });
  await tx.insert(photos).values({ id: coverId, title: 'cover', albumId });
});

// A parent with its children: by a join.
const joined = await db.select().from(albums).innerJoin(photos, eq(photos.albumId, albums.id)).where(eq(albums.id, albumId));

// Many rows in one statement, which returns their IDs.
const titles = Array.from({ length: 10000 }, (_, n) => ({ title: `bulk ${n}` }));
const bulk = await db.insert(photos).values(titles).returning({ id: photos.id });

// A page of the newest, and the one that follows it.
const newest = db.select({ id: photos.id }).from(photos).orderBy(desc(photos.id)).limit(20);
const page = await newest;
const nextPage = await db
  .select({ id: photos.id })
  .from(photos)
  .where(lt(photos.id, page.at(-1).id))
  .orderBy(desc(photos.id))
  .limit(20);

// When a row was made, and the rows of the last hour.  The driver returns the time as text.
const [{ at }] = await db.select({ at: sql`snowflake_timestamp(${photos.id})` }).from(photos).where(eq(photos.id, inserted.id));
const hourAgo = new Date(Date.now() - 3600 * 1000).toISOString();
const recent = await db
  .select({ id: photos.id })
  .from(photos)
  .where(gte(photos.id, sql`snowflake_min_id(${hourAgo})`))
  .orderBy(photos.id);

const ids = (rows) => rows.map((row) => row.id);
// An ID of the type snowflake
const [tag] = await db.insert(tags).values({ albumId }).returning();

printVersion('Drizzle', 'drizzle-orm');
printVersion('drizzle-kit', 'drizzle-kit');
printTypes('Drizzle', inserted.id, tag.id);
print('one', inserted.id);
print('pair', albumId, coverId);
print('relation', joined[0].albums.id, joined[0].photos.id);
print('bulk', ids(bulk));
print('pages', ids(page), ids(nextPage));
print('made', new Date(at).getTime());
print('recent', ids(recent));

// The traps: "with" reads children as JSON, whose numbers are rounded before mode: 'bigint' sees them.  A snowflake is
// text in JSON.
const album = await db.query.albums.findFirst({ with: { photos: true, tags: true } });
print('with', album.id, typeof album.photos[0].id, album.photos[0].id);
print('tags', tag.id, album.tags[0].id);
print('with_snowflake', album.tags[0].albumId);

// mode: 'number', which pull writes, rounds an ID that it reads.
const numbered = pgTable('photos', { id: bigint({ mode: 'number' }).primaryKey(), title: text() });
const [row] = await db.select().from(numbered).where(eq(numbered.title, 'cover'));
print('number', BigInt(row.id));

// The number is often another row's ID, so that the wrong row is found, updated and deleted.
const meant = pickMistakable(ids(bulk));
const [{ id: number }] = await db.select().from(numbered).where(sql`id = ${meant}`);
const exactly = { id: sql`id::text` };
const client = await pool.connect();
const session = drizzle(client);
await session.execute(sql`BEGIN`);
const found = await session.select(exactly).from(numbered).where(eq(numbered.id, number));
const updated = await session.update(numbered).set({ title: 'changed' }).where(eq(numbered.id, number)).returning(exactly);
const deleted = await session.delete(numbered).where(eq(numbered.id, number)).returning(exactly);
await session.execute(sql`ROLLBACK`);
client.release();
print('mistaken', meant, ids(found), ids(updated), ids(deleted));
kit('pull');
print('pulled', readFileSync('drizzle/schema.ts', 'utf8').match(/\tid: \w+\(.*?\)/g).sort());

// What push would drop if the model did not have the extension's sequence.  It prints the error and exits with 0.
const source = readFileSync('drizzle_schema.mjs', 'utf8');
writeFileSync('drizzle_schema.mjs', source.replace(/^export const nextIdSeq = .*$/m, ''));
const output = kit('push', '--verbose');
print('push_without_sequence', outcome(output), output.match(/^(?:DROP|ALTER) .*$/gm));

// With the default in another form than the stored one, push sets it each time.
const pushTwice = (form) => {
  writeFileSync('drizzle_schema.mjs', source.replaceAll('next_id((5)::bigint)', form));
  return [outcome(kit('push')), outcome(kit('push'))];
};
print('push_if_setting', pushTwice('next_id()'));
print('push_if_short', pushTwice('next_id(5)'));
await pool.end();
