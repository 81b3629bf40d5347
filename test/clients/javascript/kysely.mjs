// Kysely: its schema builder, its queries, and its helpers for JSON.
import { Kysely, PostgresDialect, sql } from 'kysely';
import { jsonArrayFrom, jsonObjectFrom } from 'kysely/helpers/postgres';
import pg from 'pg';
import { print, printTypes, printVersion } from './report.mjs';

const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool() }) });

for (const [table, reference] of [['albums', 'cover_id'], ['photos', 'album_id']])
  await db.schema
    .createTable(table)
    .addColumn('id', 'bigint', (column) => column.primaryKey().defaultTo(sql`next_id(5)`))
    .addColumn('title', 'text', (column) => column.notNull())
    .addColumn(reference, 'bigint')
    .execute();
await db.schema
  .createTable('tags')
  .addColumn('id', sql`snowflake`, (column) => column.primaryKey().defaultTo(sql`next_id(5)`))
  .addColumn('album_id', 'bigint')
  .execute();
await sql`INSERT INTO photos (id, title) VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')`.execute(db);

// The column's default makes the ID, a string: "id: Generated<string>" in the table's type.
const inserted = await db.insertInto('photos').values({ title: 'draft' }).returning('id').executeTakeFirstOrThrow();

// Insert or update by ID.
await db
  .insertInto('photos')
  .values({ id: inserted.id, title: 'first' })
  .onConflict((conflict) => conflict.column('id').doUpdateSet({ title: (eb) => eb.ref('excluded.title') }))
  .execute();

// IDs taken first, for rows that refer to each other.
const [albumId, coverId] = (await sql`SELECT next_ids(5, 2) AS id`.execute(db)).rows.map((row) => row.id);
await db.transaction().execute(async (db) => {
  await db.insertInto('albums').values({ id: albumId, title: 'album', cover_id: coverId }).execute();
  await db.insertInto('photos').values({ id: coverId, title: 'cover', album_id: albumId }).execute();
});

// A parent with its children.  jsonArrayFrom() and jsonObjectFrom() make JSON in SQL, where a bigint is rounded, and a
// snowflake is not: as the type of a column, or by a cast.
await db.insertInto('tags').values({ album_id: albumId }).execute();
const album = await db
  .selectFrom('albums')
  .select((eb) => [
    'albums.id',
    jsonArrayFrom(
      eb
        .selectFrom('photos')
        .select((eb) => [eb.cast('photos.id', sql`snowflake`).as('id'), 'photos.id as rounded'])
        .whereRef('photos.album_id', '=', 'albums.id'),
    ).as('photos'),
    jsonObjectFrom(eb.selectFrom('tags').select('tags.id').whereRef('tags.album_id', '=', 'albums.id')).as('tag'),
  ])
  .executeTakeFirstOrThrow();

// Many rows in one statement, which returns their IDs.
const titles = Array.from({ length: 10000 }, (_, n) => ({ title: `bulk ${n}` }));
const bulk = await db.insertInto('photos').values(titles).returning('id').execute();

// A page of the newest, and the one that follows it.
const newest = db.selectFrom('photos').select('id').orderBy('id', 'desc').limit(20);
const page = await newest.execute();
const nextPage = await newest.where('id', '<', page.at(-1).id).execute();

// When a row was made, and the rows of the last hour.
const { at } = await db
  .selectFrom('photos')
  .select(sql`snowflake_timestamp(id)`.as('at'))
  .where('id', '=', inserted.id)
  .executeTakeFirstOrThrow();
const hourAgo = new Date(Date.now() - 3600 * 1000);
const recent = await db
  .selectFrom('photos')
  .select('id')
  .where('id', '>=', sql`snowflake_min_id(${hourAgo})`)
  .orderBy('id')
  .execute();

// An ID of the type snowflake
const tag = await db.selectFrom('tags').select('id').where('album_id', '=', albumId).executeTakeFirstOrThrow();

const ids = (rows) => rows.map((row) => row.id);
printVersion('Kysely', 'kysely');
printTypes('Kysely', inserted.id, tag.id);
print('tags', tag.id, album.tag.id);
print('one', inserted.id);
print('pair', albumId, coverId);
print('relation', album.id, ids(album.photos));
print('rounded', BigInt(album.photos[0].rounded));
print('bulk', ids(bulk));
print('pages', ids(page), ids(nextPage));
print('made', at.getTime());
print('recent', ids(recent));
await db.destroy();
