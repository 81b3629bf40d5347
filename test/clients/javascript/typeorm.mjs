// TypeORM.
import { DataSource, EntitySchema, LessThan, Raw } from 'typeorm';
import { print, printTypes, printVersion } from './report.mjs';

// The default has a form that neither changes when TypeORM compares it, nor when PostgreSQL stores it.
const id = { type: 'bigint', primary: true, default: () => 'next_id((5))' };

const Album = new EntitySchema({
  name: 'Album',
  tableName: 'albums',
  columns: { id, title: { type: 'text' }, coverId: { name: 'cover_id', type: 'bigint', nullable: true } },
  relations: { photos: { type: 'one-to-many', target: 'Photo', inverseSide: 'album' } },
});
const Photo = new EntitySchema({
  name: 'Photo',
  tableName: 'photos',
  columns: { id, title: { type: 'text' } },
  relations: {
    album: { type: 'many-to-one', target: 'Album', inverseSide: 'photos', joinColumn: { name: 'album_id' }, nullable: true },
  },
});

const connect = (entities) =>
  new DataSource({
    type: 'postgres',
    host: process.env.PGHOST,
    port: Number(process.env.PGPORT),
    username: process.env.PGUSER,
    database: process.env.PGDATABASE,
    entities,
  }).initialize();

// The statements that synchronize(), or a generated migration, would run.
const drift = async (db) => (await db.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query);

const db = await connect([Album, Photo]);
await db.synchronize();
print('drift', (await drift(db)).length);
const photos = db.getRepository('Photo');
const albums = db.getRepository('Album');
await db.query("INSERT INTO photos (id, title) VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')");

// The column's default makes the ID, a string, which save() reads back.
const photo = await photos.save({ title: 'draft' });

// Insert or update by ID.
await photos.upsert({ id: photo.id, title: 'first' }, ['id']);

// IDs taken first, for rows that refer to each other.
const [{ id: albumId }, { id: coverId }] = await db.query('SELECT next_ids(5, 2) AS id');
await db.transaction(async (manager) => {
  await manager.insert('Album', { id: albumId, title: 'album', coverId });
  await manager.insert('Photo', { id: coverId, title: 'cover', album: { id: albumId } });
});

// A parent with its children.
const album = await albums.findOne({ where: { id: albumId }, relations: { photos: true } });

// Many rows; the IDs are in the objects.
const bulk = Array.from({ length: 10000 }, (_, n) => ({ title: `bulk ${n}` }));
await photos.insert(bulk);

// A page of the newest, and the one that follows it.
const page = await photos.find({ order: { id: 'DESC' }, take: 20 });
const nextPage = await photos.find({ where: { id: LessThan(page.at(-1).id) }, order: { id: 'DESC' }, take: 20 });

// When a row was made, and the rows of the last hour.
const { at } = await photos
  .createQueryBuilder('photo')
  .select('snowflake_timestamp(photo.id)', 'at')
  .where({ id: photo.id })
  .getRawOne();
const hourAgo = new Date(Date.now() - 3600 * 1000);
const recent = await photos.find({
  where: { id: Raw((id) => `${id} >= snowflake_min_id(:hourAgo)`, { hourAgo }) },
  order: { id: 'ASC' },
});

// An ID of the type snowflake
await db.query('CREATE TABLE tags (id snowflake PRIMARY KEY DEFAULT next_id((5)))');
const Tag = (type) => new EntitySchema({ name: 'Tag', tableName: 'tags', columns: { id: { ...id, type } } });
const tagged = await connect([Tag('bigint')]);
const tag = await tagged.getRepository('Tag').save({});

const ids = (rows) => rows.map((row) => row.id);
printVersion('TypeORM', 'typeorm');
printTypes('TypeORM', photo.id, tag.id);
print('tags', tag.id);
print('one', photo.id);
print('pair', albumId, coverId);
print('relation', album.id, ids(album.photos));
print('bulk', ids(bulk));
print('pages', ids(page), ids(nextPage));
print('made', at.getTime());
print('recent', ids(recent));

// The traps: TypeORM knows no type snowflake, and where it expects a bigint, synchronize() would make the column anew.
print('unknown_type', await connect([Tag('snowflake')]).then(() => 'done', (error) => error.name));
print('tags_lost', (await drift(tagged)).filter((statement) => statement.includes('DROP COLUMN "id"')).length);
await tagged.destroy();

// What is left to change after synchronize(), if the key is declared in another way.
const driftAfter = async (id) => {
  const variant = ({ options }) => new EntitySchema({ ...options, columns: { ...options.columns, id } });
  const other = await connect([Album, Photo].map(variant));
  await other.synchronize();
  const statements = await drift(other);
  await other.destroy();
  return ['DROP CONSTRAINT', 'SET DEFAULT next_id'].map((what) => statements.filter((s) => s.includes(what)).length);
};
print('drift_if_setting', await driftAfter({ ...id, default: () => 'next_id()' }));
print('drift_if_short', await driftAfter({ ...id, default: () => 'next_id(5)' }));
print('drift_if_stored', await driftAfter({ ...id, default: () => 'next_id((5)::bigint)' }));

// A generated key, synchronized twice: the default is dropped, then it is that of a bigserial.
const generated = { ...Photo.options.columns, id: { type: 'bigint', primary: true, generated: 'increment' } };
const other = await connect([Album, new EntitySchema({ ...Photo.options, columns: generated })]);
const defaultAfter = async () => {
  await other.synchronize();
  const [row] = await other.query("SELECT column_default FROM information_schema.columns WHERE (table_name, column_name) = ('photos', 'id')");
  return row.column_default ?? 'none';
};
print('generated', await defaultAfter(), await defaultAfter());
await db.synchronize();
await other.destroy();
await db.destroy();
