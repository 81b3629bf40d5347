// Kysely: its schema builder, and its helpers, which make JSON in SQL, where a bigint is rounded.
import { Kysely, PostgresDialect, sql } from 'kysely';
import { jsonArrayFrom, jsonObjectFrom } from 'kysely/helpers/postgres';
import pg from 'pg';
import { hourAgo, print, printVersion, report, titles } from './report.mjs';

const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool() }) });
const key = (column) => column.primaryKey().defaultTo(sql`next_id(5)`);
await db.schema.createTable('photos').addColumn('id', 'bigint', key).addColumn('title', 'text').execute();
await db.schema.createTable('tags').addColumn('id', sql`snowflake`, key).addColumn('photo_id', 'bigint').execute();

const { id: one } = await db.insertInto('photos').values({ title: 'one' }).returning('id').executeTakeFirstOrThrow();
const many = await db.insertInto('photos').values(titles).returning('id').execute();
const tag = await db.insertInto('tags').values({ photo_id: one }).returning('id').executeTakeFirstOrThrow();
const { made, bound } = await db
  .selectFrom('photos')
  .select([sql`snowflake_timestamp(id)`.as('made'), sql`snowflake_min_id(${hourAgo})`.as('bound')])
  .where('id', '=', one)
  .executeTakeFirstOrThrow();

const photo = await db
  .selectFrom('photos')
  .select((eb) => [
    jsonArrayFrom(
      eb
        .selectFrom('tags')
        .select((eb) => [eb.cast('photo_id', sql`snowflake`).as('cast'), 'photo_id'])
        .whereRef('photo_id', '=', 'photos.id'),
    ).as('tags'),
    jsonObjectFrom(eb.selectFrom('tags').select('tags.id').whereRef('photo_id', '=', 'photos.id')).as('tag'),
  ])
  .where('id', '=', one)
  .executeTakeFirstOrThrow();
printVersion('Kysely', 'kysely');
report('Kysely', { one, many, made, bound, tags: [tag.id, photo.tag.id] });
print('json', BigInt(photo.tags[0].photo_id));
print('json_of_cast', photo.tags[0].cast);
await db.destroy();
