// Knex: its schema builder and queries, and Objection's models of the tables.
import knex from 'knex';
import { Model } from 'objection';
import { print, printTypes, printVersion } from './report.mjs';

const db = knex({ client: 'pg', connection: {} });

for (const [table, reference] of [['albums', 'cover_id'], ['photos', 'album_id']])
  await db.schema.createTable(table, (t) => {
    t.bigInteger('id').primary().defaultTo(db.raw('next_id(5)'));
    t.text('title').notNullable();
    t.bigInteger(reference);
  });
await db('photos').insert({ id: db.raw("snowflake_id('2020-01-01Z', 5, 1)"), title: 'old' });
await db.schema.createTable('tags', (t) => t.specificType('id', 'snowflake').primary().defaultTo(db.raw('next_id(5)')));

// The column's default makes the ID, a string.
const [inserted] = await db('photos').insert({ title: 'draft' }).returning('id');

// Insert or update by ID.
await db('photos').insert({ id: inserted.id, title: 'first' }).onConflict('id').merge();

// Many rows, in statements of 1,000 rows that return their IDs.
const titles = Array.from({ length: 10000 }, (_, n) => ({ title: `bulk ${n}` }));
const bulk = await db.batchInsert('photos', titles, 1000).returning('id');

// When a row was made.
const { at } = await db('photos').where('id', inserted.id).first(db.raw('snowflake_timestamp(id) AS at'));

// Objection takes the key's default, too.
class Photo extends Model {
  static tableName = 'photos';
}
class Album extends Model {
  static tableName = 'albums';
  static relationMappings = {
    photos: { relation: Model.HasManyRelation, modelClass: Photo, join: { from: 'albums.id', to: 'photos.album_id' } },
  };
}
class Tag extends Model {
  static tableName = 'tags';
}
Model.knex(db);

// A parent and its child in one call, then the parent's reference to the child.
const graph = await Album.transaction(async (trx) => {
  const album = await Album.query(trx).insertGraph({ title: 'album', photos: [{ title: 'cover' }] });
  await album.$query(trx).patch({ cover_id: album.photos[0].id });
  return album;
});
const album = await Album.query().findById(graph.id).withGraphFetched('photos');

// A page of the newest, and the one that follows it.
const newest = db('photos').select('id').orderBy('id', 'desc').limit(20);
const page = await newest.clone();
const nextPage = await newest.clone().where('id', '<', page.at(-1).id);

// The rows of the last hour.
const hourAgo = new Date(Date.now() - 3600 * 1000);
const recent = await Photo.query().whereRaw('id >= snowflake_min_id(?)', [hourAgo]).orderBy('id');

// An ID of the type snowflake
const [tag] = await db('tags').insert({}).returning('id');
const found = await Tag.query().findById(tag.id);

const ids = (rows) => rows.map((row) => row.id);
printVersion('Knex', 'knex');
printVersion('Objection', 'objection');
printTypes('Knex', inserted.id, tag.id);
printTypes('Objection', graph.id, found.id);
print('tags', tag.id, found.id);
print('one', inserted.id);
print('pair', graph.id, graph.photos[0].id);
print('relation', album.id, ids(album.photos));
print('joined', (await Album.query().findById(graph.id).withGraphJoined('photos')).photos[0].id);
print('bulk', ids(bulk));
print('pages', ids(page), ids(nextPage));
print('made', at.getTime());
print('recent', ids(recent));

// The traps: an ID, which is a string, is refused as an integer.
const validate = (type) => {
  class Checked extends Photo {
    static jsonSchema = { type: 'object', properties: { id: { type } } };
  }
  try { return Checked.fromJson({ id: inserted.id, title: 'checked' }).id; } catch (error) { return error.name; }
};
print('json_schema', validate('integer'), validate('string'));

// alter() sets everything that it does not repeat back, the default with it.
await db.schema.createTable('altered', (t) => t.bigInteger('id').primary().defaultTo(db.raw('next_id(5)')));
const hasDefault = async () => (await db('altered').columnInfo('id')).defaultValue;
await db.schema.alterTable('altered', (t) => t.bigInteger('id').alter({ alterNullable: false }));
print('altered', await hasDefault() ?? 'null');
await db.schema.alterTable('altered', (t) => t.bigInteger('id').defaultTo(db.raw('next_id(5)')).alter({ alterNullable: false }));
print('altered_with_default', await hasDefault());
await db.schema.dropTable('altered');
await db.destroy();
