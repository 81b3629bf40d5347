// Sequelize.
import { DataTypes, Op, Sequelize, fn, literal } from 'sequelize';
import { print, printTypes, printVersion } from './report.mjs';

const statements = [];
const db = new Sequelize({
  dialect: 'postgres',
  host: process.env.PGHOST,
  port: process.env.PGPORT,
  username: process.env.PGUSER,
  database: process.env.PGDATABASE,
  define: { timestamps: false, underscored: true },
  logging: (statement) => statements.push(statement),
});

const id = { type: DataTypes.BIGINT, primaryKey: true, defaultValue: literal('next_id(5)') };
const Album = db.define('album', { id, title: { type: DataTypes.TEXT, allowNull: false }, coverId: DataTypes.BIGINT });
const Photo = db.define('photo', { id, title: { type: DataTypes.TEXT, allowNull: false } });
const Tag = db.define('tag', { id: { ...id, type: 'snowflake' } });
Album.hasMany(Photo);
Photo.belongsTo(Album);
await db.sync();
await Photo.create({ id: literal("snowflake_id('2020-01-01Z', 5, 1)"), title: 'old' });

// The INSERT calls next_id() itself, and returns the ID, a string.
const photo = await Photo.create({ title: 'draft' });

// Insert or update by ID.
await Photo.upsert({ id: photo.id, title: 'first' });

// IDs taken first, for rows that refer to each other.
const [taken] = await db.query('SELECT next_ids(5, 2) AS id');
const [albumId, coverId] = taken.map((row) => row.id);
await db.transaction(async (transaction) => {
  await Album.create({ id: albumId, title: 'album', coverId }, { transaction });
  await Photo.create({ id: coverId, title: 'cover', albumId }, { transaction });
});

// A parent with its children.
const album = await Album.findByPk(albumId, { include: Photo });

// Many rows in one statement; the IDs are in the objects.
const bulk = await Photo.bulkCreate(Array.from({ length: 10000 }, (_, n) => ({ title: `bulk ${n}` })));

// A page of the newest, and the one that follows it.
const page = await Photo.findAll({ order: [['id', 'DESC']], limit: 20 });
const nextPage = await Photo.findAll({ where: { id: { [Op.lt]: page.at(-1).id } }, order: [['id', 'DESC']], limit: 20 });

// When a row was made, and the rows of the last hour.
const made = await Photo.findByPk(photo.id, { attributes: [[fn('snowflake_timestamp', db.col('id')), 'at']] });
const hourAgo = new Date(Date.now() - 3600 * 1000);
const recent = await Photo.findAll({ where: { id: { [Op.gte]: fn('snowflake_min_id', hourAgo) } }, order: ['id'] });

// An ID of the type snowflake
const tag = await Tag.findByPk((await Tag.create()).id);

const ids = (rows) => rows.map((row) => row.id);
printVersion('Sequelize', 'sequelize');
printTypes('Sequelize', photo.id, tag.id);
print('tags', tag.id);
print('one', photo.id);
print('pair', albumId, coverId);
print('relation', album.id, ids(album.photos));
print('bulk', ids(bulk));
print('pages', ids(page), ids(nextPage));
print('made', made.get('at').getTime());
print('recent', ids(recent));

// sync({ alter: true }) makes the foreign key again each time, but leaves the key's default.
const before = statements.length;
await db.sync({ alter: true });
await db.sync({ alter: true });
const altered = statements.slice(before).filter((statement) => statement.includes('ALTER'));
print('altered', altered.filter((s) => s.includes('ADD FOREIGN KEY')).length, altered.filter((s) => s.includes('COLUMN "id"')).length);

// The trap: without defaultValue, NULL is sent for the key.  autoIncrement leaves it to the default of a table made
// elsewhere, but sync() would make a bigserial of it.
const key = { type: DataTypes.BIGINT, primaryKey: true };
const Bare = db.define('bare', { id: key, title: DataTypes.TEXT }, { tableName: 'photos' });
print('without_default', await Bare.create({ title: 'bare' }).then(() => 'done', (error) => error.parent.code));
const Auto = db.define('auto', { id: { ...key, autoIncrement: true }, title: DataTypes.TEXT }, { tableName: 'photos' });
const left = await Auto.create({ title: 'auto' });
print('left_to_default', left.id);
await left.destroy();
await db.close();
