// Prisma with its adapter for node-postgres.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { PrismaPg } from '@prisma/adapter-pg';
import { push } from './prisma_engine.mjs';
import { pickMistakable, print, printTypes, printVersion } from './report.mjs';

// The CLI downloads a native schema engine unless it is told of one, which generating the client does not call.
execFileSync(process.execPath, ['node_modules/prisma/build/index.js', 'generate', '--config=prisma.config.mjs'], {
  env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath },
  stdio: 'pipe',
});
const { Prisma, PrismaClient } = await import('./prisma/client.ts');

const schema = readFileSync('schema.prisma', 'utf8');
await push(schema);
print('drift', await push(schema));

// The adapter takes the session's time zone for UTC, so make it UTC.
const db = new PrismaClient({ adapter: new PrismaPg({ options: '-c timezone=UTC' }) });
await db.$executeRaw`INSERT INTO photos (id, title) VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')`;

// The column's default makes the ID, a BigInt.
const photo = await db.photo.create({ data: { title: 'draft' } });

// Insert or update by ID.
await db.photo.upsert({ where: { id: photo.id }, create: { id: photo.id, title: 'first' }, update: { title: 'first' } });

// IDs taken first, for rows that refer to each other.
const [{ id: albumId }, { id: coverId }] = await db.$queryRaw`SELECT next_ids(5, 2) AS id`;
await db.$transaction([
  db.album.create({ data: { id: albumId, title: 'album', coverId } }),
  db.photo.create({ data: { id: coverId, title: 'cover', albumId } }),
]);

// A parent with its children.
const album = await db.album.findUniqueOrThrow({ where: { id: albumId }, include: { photos: true } });

// Many rows in one call, which returns them.
const titles = Array.from({ length: 10000 }, (_, n) => ({ title: `bulk ${n}` }));
const bulk = await db.photo.createManyAndReturn({ data: titles, select: { id: true } });

// A page of the newest, and the one that follows it.
const page = await db.photo.findMany({ orderBy: { id: 'desc' }, take: 20 });
const nextPage = await db.photo.findMany({ where: { id: { lt: page.at(-1).id } }, orderBy: { id: 'desc' }, take: 20 });

// When a row was made, and the rows of the last hour.
const [{ at }] = await db.$queryRaw`SELECT snowflake_timestamp(${photo.id}) AS at`;
const hourAgo = new Date(Date.now() - 3600 * 1000);
const [{ min }] = await db.$queryRaw`SELECT snowflake_min_id(${hourAgo}) AS min`;
const recent = await db.photo.findMany({ where: { id: { gte: min } }, orderBy: { id: 'asc' } });

const ids = (rows) => rows.map((row) => row.id);
printVersion('Prisma', '@prisma/client');
print('one', photo.id);
print('pair', albumId, coverId);
print('relation', album.id, ids(album.photos));
print('bulk', ids(bulk));
print('pages', ids(page), ids(nextPage));
print('made', at.getTime());
print('recent', ids(recent));

// An ID of the type snowflake is a BigInt, too.  The schema engine makes a bigint of the column.
await db.$executeRaw`ALTER TABLE tags ALTER id TYPE snowflake`;
await push(schema);
const [{ type }] = await db.$queryRaw`SELECT atttypid::regtype::text AS type FROM pg_attribute WHERE attrelid = 'tags'::regclass AND attname = 'id'`;
print('pushed', type);
await db.$executeRaw`ALTER TABLE tags ALTER id TYPE snowflake`;
const tag = await db.tag.create({ data: { albumId } });
printTypes('Prisma', photo.id, tag.id);

// A join makes JSON in SQL, in which Prisma casts IDs to text.
const joined = await db.album.findFirstOrThrow({ relationLoadStrategy: 'join', include: { photos: true, tags: true } });
print('joined', ids(joined.photos));
print('tags', tag.id, ids(joined.tags));
await db.$executeRaw`ALTER TABLE tags ALTER id TYPE bigint`;

// The traps: JSON.stringify() refuses a BigInt, so name how to write it.
const asText = (key, value) => (typeof value === 'bigint' ? String(value) : value);
let refused = 'none';
try { JSON.stringify(photo); } catch (error) { refused = error.name; }
print('json', refused, JSON.parse(JSON.stringify(photo, asText)).id);

// A Number is often another row's ID, so that the wrong row is found, updated and deleted.
const meant = pickMistakable(ids(bulk));
const where = { id: Number(meant) };
const undo = new Error('undo');
await db.$transaction(async (tx) => {
  const found = await tx.photo.findMany({ where });
  const updated = await tx.photo.update({ where, data: { title: 'changed' } });
  const deleted = await tx.photo.delete({ where });
  print('mistaken', meant, ids([...found, updated, deleted]));
  throw undo;
}).catch((error) => { if (error !== undo) throw error; });

// A text in the place of an interval has no type.
const outcome = (query) => query.then(() => 'done', (error) => error.meta.driverAdapterError.cause.originalCode);
print('interval', await outcome(db.$queryRaw`SELECT snowflake_min_id(now() - ${'1 day'})`));
print('interval_cast', await outcome(db.$queryRaw`SELECT snowflake_min_id(now() - ${'1 day'}::interval)`));
await db.$disconnect();

// In a session in another zone, times are off in both directions.
const local = new PrismaClient({ adapter: new PrismaPg({ options: '-c timezone=Asia/Tokyo' }) });
const [{ at: read, min: sent }] = await local.$queryRaw`
  SELECT snowflake_timestamp(${photo.id}) AS at, snowflake_timestamp(snowflake_min_id(${hourAgo}))::text AS min`;
print('hours_off', (read - at) / 3600000, (new Date(sent.replace(/\+09$/, '+09:00')) - hourAgo) / 3600000);
await local.$disconnect();

// With the default in another form than the stored one, each push sets it.
const pushTwice = async (form) => {
  const other = schema.replaceAll('next_id((5)::bigint)', form);
  return [await push(other), await push(other)];
};
print('drift_if_setting', await pushTwice('next_id()'));
print('drift_if_short', await pushTwice('next_id(5)'));

// The schema engine's timers would keep the program for a minute.
process.exit();
