// Prisma with its adapter for node-postgres: IDs are BigInts, and times are UTC's.
import { execFileSync } from 'node:child_process';
import { PrismaPg } from '@prisma/adapter-pg';
import { print, printVersion, report, titles } from './report.mjs';

// The CLI downloads a native schema engine unless it is told of one, which generating the client does not call.
execFileSync(process.execPath, ['node_modules/prisma/build/index.js', 'generate', '--config=prisma.config.mjs'], {
  env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath },
  stdio: 'pipe',
});
const { PrismaClient } = await import('./prisma/client.ts');
const connect = (timezone) => new PrismaClient({ adapter: new PrismaPg({ options: `-c timezone=${timezone}` }) });

const db = connect('UTC');
await db.$executeRaw`CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text)`;
await db.$executeRaw`CREATE TABLE tags (id snowflake PRIMARY KEY DEFAULT next_id(5))`;

const photo = await db.photo.create({ data: { title: 'one' } });
const many = await db.photo.createManyAndReturn({ data: titles, select: { id: true } });
const tag = await db.tag.create({ data: {} });
const found = await db.tag.findUniqueOrThrow({ where: { id: tag.id } });
const hourAgo = new Date(Date.now() - 3600 * 1000);
const readTimes = async (db) => {
  const [row] =
    await db.$queryRaw`SELECT snowflake_timestamp(${photo.id}) AS made, snowflake_min_id(${hourAgo}) AS bound`;
  return row;
};
printVersion('Prisma', '@prisma/client');
report('Prisma', { one: photo.id, many, tags: [tag.id, found.id] });

const tokyo = connect('Asia/Tokyo');
const here = await readTimes(db);
const there = await readTimes(tokyo);
print('hours_off', (there.made - here.made) / 3600000, Number(there.bound - here.bound) / 2 ** 23 / 3600000);
await tokyo.$disconnect();
await db.$disconnect();
