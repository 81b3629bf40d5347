// Drizzle, whose "with" makes JSON in SQL, and drizzle-kit, which compares defaults as texts.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { drizzle } from 'drizzle-orm/node-postgres';
import { eq } from 'drizzle-orm';
import { bigint, pgTable, text } from 'drizzle-orm/pg-core';
import pg from 'pg';
import * as schema from './drizzle_schema.mjs';
import { print, printVersion, report, titles } from './report.mjs';

const { photos, tags } = schema;
const pool = new pg.Pool();
const db = drizzle(pool, { schema });
const kit = (...command) => {
  const program = ['node_modules/drizzle-kit/bin.cjs', ...command, '--config=drizzle.config.mjs'];
  return execFileSync(process.execPath, program, { encoding: 'utf8', stdio: 'pipe' });
};
const outcome = (output) =>
  /No changes|No schema changes/.test(output) ? 'same' : /Changes applied|\.sql/.test(output) ? 'changed' : 'failed';
const twice = (command) => [outcome(kit(command)), outcome(kit(command))];

print('push', twice('push'));
print('generate', twice('generate'));
const [migration] = readdirSync('drizzle').filter((name) => name.endsWith('.sql'));
print('sequence_of_generate', readFileSync(`drizzle/${migration}`, 'utf8').match(/CREATE SEQUENCE \S+/));

const [{ id: one }] = await db.insert(photos).values({ title: 'one' }).returning({ id: photos.id });
const many = await db.insert(photos).values(titles).returning({ id: photos.id });
const [tag] = await db.insert(tags).values({ photoId: one }).returning();
const photo = await db.query.photos.findFirst({ where: eq(photos.id, one), with: { tags: true } });
printVersion('Drizzle', 'drizzle-orm');
printVersion('drizzle-kit', 'drizzle-kit');
report('Drizzle', { one, many, tags: [tag.id, photo.tags[0].id] });
print('with', typeof photo.tags[0].photoId, photo.tags[0].photoId);

// mode: 'number', which pull writes, rounds an ID that it reads.
const numbered = pgTable('photos', { id: bigint({ mode: 'number' }).primaryKey(), title: text() });
const [{ id: number }] = await db.select().from(numbered).where(eq(numbered.title, 'one'));
print('as_number', BigInt(number));
kit('pull');
print('pulled', readFileSync('drizzle/schema.ts', 'utf8').match(/\tid: \w+\(.*?\)/g).sort());

// What push would drop if the model did not have the extension's sequence, and what it changes if the default is in
// another form.  It exits with 0 in any case.
const source = readFileSync('drizzle_schema.mjs', 'utf8');
writeFileSync('drizzle_schema.mjs', source.replace(/^export const nextIdSeq = .*$/m, ''));
const output = kit('push', '--verbose');
print('push_without_sequence', outcome(output), output.match(/^(?:DROP|ALTER) .*$/gm));
writeFileSync('drizzle_schema.mjs', source.replaceAll('next_id((5)::bigint)', 'next_id(5)'));
print('push_of_next_id(5)', twice('push'));
writeFileSync('drizzle_schema.mjs', source);
await pool.end();
