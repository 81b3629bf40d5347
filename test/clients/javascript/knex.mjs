// Knex, whose alter() drops defaults, and Objection's models, whose jsonSchema validates IDs.
import knex from 'knex';
import { Model } from 'objection';
import { hourAgo, print, printVersion, report, titles } from './report.mjs';

const db = knex({ client: 'pg', connection: {} });
const next_id = db.raw('next_id(5)');
await db.schema.createTable('photos', (t) => {
  t.bigInteger('id').primary().defaultTo(next_id);
  t.text('title').notNullable();
  t.bigInteger('parent_id');
});
await db.schema.createTable('tags', (t) => t.specificType('id', 'snowflake').primary().defaultTo(next_id));

const [{ id: one }] = await db('photos').insert({ title: 'one' }).returning('id');
const many = await db.batchInsert('photos', titles, 300).returning('id');
const { made, bound } = await db('photos').where('id', one)
  .first(db.raw('snowflake_timestamp(id) AS made'), db.raw('snowflake_min_id(?) AS bound', [hourAgo]));
const [{ id: tag }] = await db('tags').insert({}).returning('id');

class Tag extends Model {
  static tableName = 'tags';
}
class Photo extends Model {
  static tableName = 'photos';
  static relationMappings = {
    children: { relation: Model.HasManyRelation, modelClass: Photo, join: { from: 'photos.id', to: 'photos.parent_id' } },
  };
}
Model.knex(db);
const graph = await Photo.query().insertGraph({ title: 'parent', children: [{ title: 'child' }] });
const joined = await Photo.query().findById(graph.id).withGraphJoined('children');
const found = await Tag.query().findById(tag);
printVersion('Knex', 'knex');
printVersion('Objection', 'objection');
report('Knex', { one, many, made, bound, tags: [tag, found.id] });
print('types', 'Objection:', typeof graph.id, typeof found.id);
print('graph', graph.id, graph.children[0].id);
print('joined', joined.id, joined.children[0].id);

const validate = (type) => {
  class Checked extends Photo {
    static jsonSchema = { type: 'object', properties: { id: { type } } };
  }
  try { return Checked.fromJson({ id: one }).id; } catch (error) { return error.name; }
};
print('json_schema', validate('integer'), validate('string'));

const alter = async (column) => {
  await db.schema.alterTable('tags', (t) => column(t.bigInteger('id')).alter({ alterNullable: false }));
  return (await db('tags').columnInfo('id')).defaultValue ?? 'null';
};
print('altered', await alter((id) => id), await alter((id) => id.defaultTo(next_id)));
await db.destroy();
