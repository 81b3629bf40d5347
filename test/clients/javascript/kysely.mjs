// Kysely, whose helpers make JSON in SQL, where a bigint is rounded.
import { Kysely, PostgresDialect, sql } from 'kysely';
import { jsonArrayFrom, jsonObjectFrom } from 'kysely/helpers/postgres';
import pg from 'pg';
import { print, printVersion, report, titles } from './report.mjs';

const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool() }) });
const key = (column) => column.primaryKey().defaultTo(sql`next_id(5)`);
await db.schema.createTable('photos').addColumn('id', 'bigint', key).addColumn('title', 'text').execute();
await db.schema.createTable('tags').addColumn('id', sql`snowflake`, key).addColumn('photo_id', 'bigint').execute();

const { id: one } = await db.insertInto('photos').values({ title: 'one' }).returning('id').executeTakeFirstOrThrow();
const many = await db.insertInto('photos').values(titles).returning('id').execute();
const tag = await db.insertInto('tags').values({ photo_id: one }).returning('id').executeTakeFirstOrThrow();

const tagsOf = (eb) => eb.selectFrom('tags').whereRef('photo_id', '=', 'photos.id');
const photo = await db
  .selectFrom('photos')
  .select((eb) => [
    jsonArrayFrom(tagsOf(eb).select('photo_id')).as('tags'),
    jsonObjectFrom(tagsOf(eb).select(['id', 'photo_id'])).as('tag'),
    jsonObjectFrom(tagsOf(eb).select((eb) => eb.cast('photo_id', sql`snowflake`).as('id'))).as('cast'),
  ])
  .where('id', '=', one)
  .executeTakeFirstOrThrow();
printVersion('Kysely', 'kysely');
report('Kysely', { one, many, tags: [tag.id, photo.tag.id] });
print('json', BigInt(photo.tags[0].photo_id), BigInt(photo.tag.photo_id));
print('json_of_cast', photo.cast.id);
await db.destroy();
