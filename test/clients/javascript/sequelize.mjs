// Sequelize: a key without defaultValue is sent as NULL, and sync() with alter leaves the default.
import { DataTypes, Sequelize, literal } from 'sequelize';
import { print, printVersion, report, titles, url } from './report.mjs';

const statements = [];
const db = new Sequelize(url, {
  define: { timestamps: false, underscored: true },
  logging: (statement) => statements.push(statement),
});

const id = { type: DataTypes.BIGINT, primaryKey: true, defaultValue: literal('next_id(5)') };
const Photo = db.define('photo', { id, title: DataTypes.TEXT });
const Tag = db.define('tag', { id: { ...id, type: 'snowflake' } });
Photo.hasMany(Photo, { as: 'children', foreignKey: 'parentId' });
await db.sync();

const photo = await Photo.create({ title: 'one' });
const many = await Photo.bulkCreate(titles);
const child = await Photo.create({ title: 'child', parentId: photo.id });
const [parent] = await Photo.findAll({ where: { id: photo.id }, include: 'children' });
const tag = await Tag.findByPk((await Tag.create()).id);
printVersion('Sequelize', 'sequelize');
report('Sequelize', { one: photo.id, many, tags: [tag.id] });
print('children', parent.id === photo.id, parent.children[0].id === child.id);

const before = statements.length;
await db.sync({ alter: true });
const altered = statements.slice(before).filter((statement) => /ALTER.*COLUMN "id"/.test(statement));
print('altered_keys', altered.length);

const key = { type: DataTypes.BIGINT, primaryKey: true };
const Bare = db.define('bare', { id: key, title: DataTypes.TEXT }, { tableName: 'photos' });
print('without_default', await Bare.create({ title: 'bare' }).then(() => 'done', (error) => error.parent.code));
const Auto = db.define('auto', { id: { ...key, autoIncrement: true }, title: DataTypes.TEXT }, { tableName: 'photos' });
const left = await Auto.create({ title: 'auto' });
print('with_autoincrement', left.id);
await db.close();
