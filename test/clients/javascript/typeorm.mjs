// TypeORM: it changes the text of a default before it compares it with PostgreSQL's, and does not know the type
// snowflake.
import { DataSource, EntitySchema } from 'typeorm';
import { print, printVersion, report, titles, url } from './report.mjs';

const id = { type: 'bigint', primary: true, default: () => 'next_id((5))' };
const entity = (id) =>
  new EntitySchema({
    name: 'Photo',
    tableName: 'photos',
    columns: { id, title: { type: 'text' } },
    relations: {
      parent: {
        type: 'many-to-one', target: 'Photo', inverseSide: 'children', joinColumn: { name: 'parent_id' },
        nullable: true,
      },
      children: { type: 'one-to-many', target: 'Photo', inverseSide: 'parent' },
    },
  });
const Tag = (type) => new EntitySchema({ name: 'Tag', tableName: 'tags', columns: { id: { ...id, type } } });

const connect = (entity) => new DataSource({ type: 'postgres', url, entities: [entity] }).initialize();

// The statements that synchronize(), or a generated migration, would run
const differences = async (db) => (await db.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query);
const count = (statements, what) => statements.filter((statement) => statement.includes(what)).length;

const db = await connect(entity(id));
await db.synchronize();
print('differences', (await differences(db)).length);
const photos = db.getRepository('Photo');
const photo = await photos.save({ title: 'one' });
const many = titles.map((row) => ({ ...row }));
await photos.insert(many);
const child = await photos.save({ title: 'child', parent: photo });
const parent = await photos.findOne({ where: { id: photo.id }, relations: { children: true } });

await db.query('CREATE TABLE tags (id snowflake PRIMARY KEY DEFAULT next_id((5)))');
const tagged = await connect(Tag('bigint'));
const tag = await tagged.getRepository('Tag').save({});
printVersion('TypeORM', 'typeorm');
report('TypeORM', { one: photo.id, many, tags: [tag.id] });
print('children', parent.children[0].id === child.id);
print('entity_of_snowflake', await connect(Tag('snowflake')).then(() => 'done', (error) => error.name));
print('columns_dropped', count(await differences(tagged), 'DROP COLUMN "id"'));
await tagged.destroy();

// What is left to change after synchronize(): foreign keys, and defaults
for (const form of ['next_id()', 'next_id(5)', 'next_id((5)::bigint)']) {
  const other = await connect(entity({ ...id, default: () => form }));
  await other.synchronize();
  const statements = await differences(other);
  print(`differences_of_${form}`, count(statements, 'DROP CONSTRAINT'), count(statements, 'SET DEFAULT next_id'));
  await other.destroy();
}

const generated = await connect(entity({ type: 'bigint', primary: true, generated: 'increment' }));
await generated.synchronize();
await generated.synchronize();
const stored = "SELECT pg_get_expr(adbin, adrelid) AS value FROM pg_attrdef WHERE adrelid = 'photos'::regclass";
print('generated', (await db.query(stored))[0].value);
await db.synchronize();
await generated.destroy();
await db.destroy();
