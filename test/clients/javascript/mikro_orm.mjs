// MikroORM: without autoincrement(false) the key becomes a bigserial.
import { MikroORM, defineEntity, p } from '@mikro-orm/postgresql';
import { print, printVersion, report, titles, url } from './report.mjs';

const key = () => p.bigint('string').primary().autoincrement(false).defaultRaw('next_id((5)::bigint)');
const entities = (key) => [
  defineEntity({ name: 'Photo', tableName: 'photos', properties: { id: key(), title: p.text() } }),
  defineEntity({ name: 'Tag', tableName: 'tags', properties: { id: key().columnType('snowflake') } }),
];
const [Photo, Tag] = entities(key);

const connect = (entities, options = {}) => MikroORM.init({ entities, clientUrl: url, ...options });
const differences = async (orm) => (await orm.schema.getUpdateSchemaSQL({ wrap: false })).split('\n').filter(Boolean);

const orm = await connect([Photo, Tag]);
await orm.schema.update();
print('differences', (await differences(orm)).length);
const em = orm.em.fork();
const photo = em.create(Photo, { title: 'one' });
await em.flush();
const many = titles.map((row) => em.create(Photo, row));
const tag = em.create(Tag, {});
await em.flush();
const found = await orm.em.fork().findOneOrFail(Tag, tag.id);
printVersion('MikroORM', '@mikro-orm/core');
report('MikroORM', { one: photo.id, many, tags: [found.id, tag.id] });
print('ids_of_insertMany', (await em.insertMany(Photo, [{ title: 'plain' }, { title: 'plain' }])).length);

// What is left to change after an update of the schema with other defaults
for (const form of ['next_id()', 'next_id(5)']) {
  const other = await connect(entities(() => key().defaultRaw(form)));
  await other.schema.update();
  print(`differences_of_${form}`, (await differences(other)).length);
  await other.close();
}
await orm.schema.update();
const bare = () => p.bigint('string').primary().defaultRaw('next_id(5)');
const serial = await connect(entities(bare), { schema: 'empty' });
print('bigserials', (await differences(serial)).filter((statement) => statement.includes('bigserial')).length);
await serial.close();
await orm.close();
