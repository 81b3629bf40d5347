// Knex, whose alter() drops defaults, and Objection's models, whose jsonSchema validates IDs.
import knex from 'knex';
import { Model } from 'objection';
import { print, printVersion, report, titles } from './report.mjs';

const db = knex({ client: 'pg', connection: {} });
const nextId = db.raw('next_id(5)');
await db.schema.createTable('photos', (t) => {
  t.bigInteger('id').primary().defaultTo(nextId);
  t.text('title').notNullable();
});
await db.schema.createTable('tags', (t) => t.specificType('id', 'snowflake').primary().defaultTo(nextId));

class Photo extends Model {
  static tableName = 'photos';
}
class Tag extends Model {
  static tableName = 'tags';
}
Model.knex(db);

const [{ id: one }] = await db('photos').insert({ title: 'one' }).returning('id');
const many = await db.batchInsert('photos', titles, 300).returning('id');
const [{ id: tag }] = await db('tags').insert({}).returning('id');
const photo = await Photo.query().insert({ title: 'model' });
const found = await Tag.query().findById(tag);
printVersion('Knex', 'knex');
printVersion('Objection', 'objection');
report('Knex', { one, many, tags: [tag, found.id] });
print('types', 'Objection:', typeof photo.id, typeof found.id);
print('model', photo.id);

const validate = (type) => {
  class Checked extends Photo {
    static jsonSchema = { type: 'object', properties: { id: { type } } };
  }
  try {
    return Checked.fromJson({ id: one }).id;
  } catch (error) {
    return error.name;
  }
};
print('json_schema', validate('integer'), validate('string'));

const alter = async (column) => {
  await db.schema.alterTable('tags', (t) => column(t.bigInteger('id')).alter({ alterNullable: false }));
  return (await db('tags').columnInfo('id')).defaultValue ?? 'null';
};
print('altered', await alter((id) => id), await alter((id) => id.defaultTo(nextId)));
await db.destroy();
