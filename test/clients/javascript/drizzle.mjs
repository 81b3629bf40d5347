// Drizzle, whose "with" makes JSON in SQL, and drizzle-kit, which compares defaults as texts.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { drizzle } from 'drizzle-orm/node-postgres';
import { eq, sql } from 'drizzle-orm';
import { bigint, pgTable, text } from 'drizzle-orm/pg-core';
import pg from 'pg';
import * as schema from './drizzle_schema.mjs';
import { hourAgo, meant, other, print, printVersion, report, titles } from './report.mjs';

const { photos, tags } = schema;
const pool = new pg.Pool();
const db = drizzle(pool, { schema });
const kit = (...command) =>
  execFileSync(process.execPath, ['node_modules/drizzle-kit/bin.cjs', ...command, '--config=drizzle.config.mjs'], { encoding: 'utf8', stdio: 'pipe' });
const outcome = (output) => (/No changes|No schema changes/.test(output) ? 'same' : /Changes applied|\.sql/.test(output) ? 'changed' : 'failed');
const twice = (command) => [outcome(kit(command)), outcome(kit(command))];

print('push', twice('push'));
print('generate', twice('generate'));
const [migration] = readdirSync('drizzle').filter((name) => name.endsWith('.sql'));
print('sequence_of_generate', readFileSync(`drizzle/${migration}`, 'utf8').match(/CREATE SEQUENCE \S+/));

const [{ id: one }] = await db.insert(photos).values({ title: 'one' }).returning({ id: photos.id });
const many = await db.insert(photos).values(titles).returning({ id: photos.id });
const times = { made: sql`snowflake_timestamp(id)`, bound: sql`snowflake_min_id(${hourAgo.toISOString()})` };
const [{ made, bound }] = await db.select(times).from(photos).where(eq(photos.id, one));
const [tag] = await db.insert(tags).values({ photoId: one }).returning();
const photo = await db.query.photos.findFirst({ where: eq(photos.id, one), with: { tags: true } });
printVersion('Drizzle', 'drizzle-orm');
printVersion('drizzle-kit', 'drizzle-kit');
report('Drizzle', { one, many, made, bound, tags: [tag.id, photo.tags[0].id] });
print('with', typeof photo.tags[0].photoId, photo.tags[0].photoId);

// mode: 'number', which pull writes, rounds an ID that it reads, and it can be another row's ID, so that the wrong row
// is found, updated and deleted.
const numbered = pgTable('photos', { id: bigint({ mode: 'number' }).primaryKey(), title: text() });
const exactly = { id: sql`id::text` };
const client = await pool.connect();
const session = drizzle(client);
await session.execute(sql`BEGIN`);
await session.insert(photos).values([{ id: BigInt(meant), title: 'meant' }, { id: BigInt(other), title: 'other' }]);
const [{ id: number }] = await session.select().from(numbered).where(sql`id = ${meant}`);
const [found] = await session.select(exactly).from(numbered).where(eq(numbered.id, number));
const [updated] = await session.update(numbered).set({ title: 'changed' }).where(eq(numbered.id, number)).returning(exactly);
const [deleted] = await session.delete(numbered).where(eq(numbered.id, number)).returning(exactly);
await session.execute(sql`ROLLBACK`);
client.release();
print('mistaken', found.id, updated.id, deleted.id);
kit('pull');
print('pulled', readFileSync('drizzle/schema.ts', 'utf8').match(/\tid: \w+\(.*?\)/g).sort());

// What push would drop if the model did not have the extension's sequence, and what it changes if the default is in
// another form.  It exits with 0 in any case.
const source = readFileSync('drizzle_schema.mjs', 'utf8');
writeFileSync('drizzle_schema.mjs', source.replace(/^export const nextIdSeq = .*$/m, ''));
const output = kit('push', '--verbose');
print('push_without_sequence', outcome(output), output.match(/^(?:DROP|ALTER) .*$/gm));
for (const form of ['next_id()', 'next_id(5)']) {
  writeFileSync('drizzle_schema.mjs', source.replaceAll('next_id((5)::bigint)', form));
  print(`push_of_${form}`, twice('push'));
}
writeFileSync('drizzle_schema.mjs', source);
await pool.end();
