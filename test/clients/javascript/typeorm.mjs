// TypeORM: it changes the text of a default before it compares it with PostgreSQL's, and makes a snowflake a bigint.
import { DataSource, EntitySchema } from 'typeorm';
import { print, printVersion, report, titles, url } from './report.mjs';

const id = { type: 'bigint', primary: true, default: () => 'next_id((5))' };
const entity = (id) =>
  new EntitySchema({
    name: 'Photo',
    tableName: 'photos',
    columns: { id, title: { type: 'text' } },
    relations: { parent: { type: 'many-to-one', target: 'Photo', joinColumn: true } },
  });
const Tag = new EntitySchema({ name: 'Tag', tableName: 'tags', columns: { id } });

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

await db.query('CREATE TABLE tags (id snowflake PRIMARY KEY DEFAULT next_id((5)))');
const tagged = await connect(Tag);
const tag = await tagged.getRepository('Tag').save({});
printVersion('TypeORM', 'typeorm');
report('TypeORM', { one: photo.id, many, tags: [tag.id] });
print('columns_dropped', count(await differences(tagged), 'DROP COLUMN "id"'));
await tagged.destroy();

// What is left to change after synchronize(): foreign keys, and defaults
const other = await connect(entity({ ...id, default: () => 'next_id(5)' }));
await other.synchronize();
const left = await differences(other);
print('differences_of_next_id(5)', count(left, 'DROP CONSTRAINT'), count(left, 'SET DEFAULT next_id'));
await other.destroy();
await db.destroy();
