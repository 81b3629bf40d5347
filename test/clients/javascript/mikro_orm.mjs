// MikroORM.
import { MikroORM, defineEntity, p, raw } from '@mikro-orm/postgresql';
import { print, printTypes, printVersion } from './report.mjs';

// autoincrement: false keeps the key from becoming a bigserial.  The default has the form in which PostgreSQL stores it.
const key = () => p.bigint('string').primary().autoincrement(false).defaultRaw('next_id((5)::bigint)');
const entities = (key) => {
  const Album = defineEntity({
    name: 'Album',
    tableName: 'albums',
    properties: {
      id: key(),
      title: p.text(),
      coverId: p.bigint('string').nullable(),
      photos: () => p.oneToMany(Photo).mappedBy('album'),
    },
  });
  const Photo = defineEntity({
    name: 'Photo',
    tableName: 'photos',
    properties: { id: key(), title: p.text(), album: () => p.manyToOne(Album).nullable() },
  });
  const Tag = defineEntity({ name: 'Tag', tableName: 'tags', properties: { id: key().columnType('snowflake') } });
  return [Album, Photo, Tag];
};
const [Album, Photo, Tag] = entities(key);

const connect = (entities, options = {}) =>
  MikroORM.init({
    entities,
    host: process.env.PGHOST,
    port: Number(process.env.PGPORT),
    user: process.env.PGUSER,
    dbName: process.env.PGDATABASE,
    ...options,
  });
const drift = async (orm) => (await orm.schema.getUpdateSchemaSQL({ wrap: false })).split('\n').filter(Boolean);

const orm = await connect([Album, Photo, Tag]);
await orm.schema.update();
print('drift', (await drift(orm)).length);

const em = orm.em.fork();
await em.execute("INSERT INTO photos (id, title) VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')");

// The column's default makes the ID; it is in the entity after flush().
const photo = em.create(Photo, { title: 'draft' });
await em.flush();

// Insert or update by ID.
await em.upsert(Photo, { id: photo.id, title: 'first' });

// IDs taken first, for rows that refer to each other.
const [{ id: albumId }, { id: coverId }] = await em.execute('SELECT next_ids(5, 2) AS id');
em.create(Album, { id: albumId, title: 'album', coverId });
em.create(Photo, { id: coverId, title: 'cover', album: albumId });
await em.flush();

// A parent with its children.
const album = await orm.em.fork().findOneOrFail(Album, albumId, { populate: ['photos'] });

// Many rows, which go out in batches; the IDs are in the entities.
const bulk = Array.from({ length: 10000 }, (_, n) => em.create(Photo, { title: `bulk ${n}` }));
await em.flush();

// A page of the newest, and the one that follows it.
const page = await em.find(Photo, {}, { orderBy: { id: 'desc' }, limit: 20 });
const nextPage = await em.find(Photo, { id: { $lt: page.at(-1).id } }, { orderBy: { id: 'desc' }, limit: 20 });

// When a row was made, and the rows of the last hour.  The driver returns the time as text.
const [{ at }] = await em.execute('SELECT snowflake_timestamp(?) AS at', [photo.id]);
const hourAgo = new Date(Date.now() - 3600 * 1000);
const recent = await em.find(Photo, { id: { $gte: raw('snowflake_min_id(?)', [hourAgo]) } }, { orderBy: { id: 'asc' } });

// An ID of the type snowflake
const tag = em.create(Tag, {});
await em.flush();
const found = await orm.em.fork().findOneOrFail(Tag, tag.id);

const ids = (rows) => rows.map((row) => row.id);
printVersion('MikroORM', '@mikro-orm/core');
printTypes('MikroORM', photo.id, found.id);
print('tags', tag.id, found.id);
print('one', photo.id);
print('pair', albumId, coverId);
print('relation', album.id, ids(album.photos.getItems()));
print('bulk', ids(bulk));
print('pages', ids(page), ids(nextPage));
print('made', new Date(at).getTime());
print('recent', ids(recent));

// The traps: of plain rows, insertMany() returns the first ID alone.
const pair = await em.insertMany(Photo, [{ title: 'plain' }, { title: 'plain' }]);
await em.nativeDelete(Photo, { title: 'plain' });
print('insert_many', pair.length);

// What is left to change after an update of the schema with other defaults; and what defaultRaw makes without
// autoincrement: false.
const driftAfter = async (form) => {
  const other = await connect(entities(() => key().defaultRaw(form)));
  await other.schema.update();
  const statements = await drift(other);
  await other.close();
  return statements.length;
};
print('drift_if_setting', await driftAfter('next_id()'));
print('drift_if_short', await driftAfter('next_id(5)'));
const serial = await connect(entities(() => p.bigint('string').primary().defaultRaw('next_id(5)')), { schema: 'empty' });
print('serial', (await drift(serial)).filter((statement) => statement.includes('bigserial')).length);
await serial.close();
await orm.close();
