// Prisma with its adapter for node-postgres: IDs are BigInts, a join makes JSON in SQL, and times are UTC's.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { PrismaPg } from '@prisma/adapter-pg';
import { push } from './prisma_engine.mjs';
import { hourAgo, meant, other, print, printVersion, report, titles } from './report.mjs';

// The CLI downloads a native schema engine unless it is told of one, which generating the client does not call.
execFileSync(process.execPath, ['node_modules/prisma/build/index.js', 'generate', '--config=prisma.config.mjs'], {
  env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath },
  stdio: 'pipe',
});
const { PrismaClient } = await import('./prisma/client.ts');
const connect = (timezone) => new PrismaClient({ adapter: new PrismaPg({ options: `-c timezone=${timezone}` }) });

const schema = readFileSync('schema.prisma', 'utf8');
await push(schema);
print('differences', await push(schema));
const db = connect('UTC');
const toSnowflake = () => db.$executeRaw`ALTER TABLE tags ALTER id TYPE snowflake`;
await toSnowflake();
await push(schema);
const [{ type }] = await db.$queryRaw`SELECT atttypid::regtype::text AS type FROM pg_attribute WHERE attrelid = 'tags'::regclass AND attname = 'id'`;
print('pushed_type', type);
await toSnowflake();

const photo = await db.photo.create({ data: { title: 'one' } });
const many = await db.photo.createManyAndReturn({ data: titles, select: { id: true } });
const tag = await db.tag.create({ data: { photoId: photo.id } });
const joined = await db.photo.findFirstOrThrow({ where: { id: photo.id }, relationLoadStrategy: 'join', include: { tags: true } });
const readTimes = async (db) => {
  const [row] = await db.$queryRaw`SELECT snowflake_timestamp(${photo.id}) AS made, snowflake_min_id(${hourAgo}) AS bound`;
  return row;
};
const { made, bound } = await readTimes(db);
printVersion('Prisma', '@prisma/client');
report('Prisma', { one: photo.id, many, made, bound, tags: [tag.id, joined.tags[0].id] });
print('joined', typeof joined.tags[0].photoId, joined.tags[0].photoId);

const asText = (key, value) => (typeof value === 'bigint' ? String(value) : value);
let refused = 'none';
try { JSON.stringify(photo); } catch (error) { refused = error.name; }
print('json', refused, JSON.parse(JSON.stringify(photo, asText)).id);

// A Number can be another row's ID, so that the wrong row is found, updated and deleted.
const where = { id: Number(meant) };
const undo = new Error('undo');
await db.$transaction(async (tx) => {
  await tx.photo.createMany({ data: [{ id: BigInt(meant), title: 'meant' }, { id: BigInt(other), title: 'other' }] });
  const [found] = await tx.photo.findMany({ where });
  const updated = await tx.photo.update({ where, data: { title: 'changed' } });
  const deleted = await tx.photo.delete({ where });
  print('mistaken', found.id, updated.id, deleted.id);
  throw undo;
}).catch((error) => { if (error !== undo) throw error; });

const outcome = (query) => query.then(() => 'done', (error) => error.meta.driverAdapterError.cause.originalCode);
print('interval', await outcome(db.$queryRaw`SELECT snowflake_min_id(now() - ${'1 day'})`));
print('interval_cast', await outcome(db.$queryRaw`SELECT snowflake_min_id(now() - ${'1 day'}::interval)`));

const tokyo = connect('Asia/Tokyo');
const there = await readTimes(tokyo);
print('hours_off', (there.made - made) / 3600000, Number(there.bound - bound) / 2 ** 23 / 3600000);
await tokyo.$disconnect();
await db.$executeRaw`ALTER TABLE tags ALTER id TYPE bigint`;
for (const form of ['next_id()', 'next_id(5)', 'next_id((5)::bigint)']) {
  const other = schema.replaceAll('next_id((5)::bigint)', form);
  await push(other);
  print(`differences_of_${form}`, await push(other));
}
await toSnowflake();

// The schema engine's timers would keep the program for a minute.
process.exit();
