// Sequelize: a key without defaultValue is sent as NULL.
import { DataTypes, Sequelize, literal } from 'sequelize';
import { print, printVersion, report, titles, url } from './report.mjs';

const db = new Sequelize(url, { define: { timestamps: false }, logging: false });
const id = { type: DataTypes.BIGINT, primaryKey: true, defaultValue: literal('next_id(5)') };
const Photo = db.define('photo', { id, title: DataTypes.TEXT });
const Tag = db.define('tag', { id: { ...id, type: 'snowflake' } });
await db.sync();

const photo = await Photo.create({ title: 'one' });
const many = await Photo.bulkCreate(titles);
const tag = await Tag.findByPk((await Tag.create()).id);
printVersion('Sequelize', 'sequelize');
report('Sequelize', { one: photo.id, many, tags: [tag.id] });

const key = { type: DataTypes.BIGINT, primaryKey: true };
const Bare = db.define('bare', { id: key, title: DataTypes.TEXT }, { tableName: 'photos' });
print('without_default', await Bare.create({ title: 'bare' }).then(() => 'done', (error) => error.parent.code));
const Auto = db.define('auto', { id: { ...key, autoIncrement: true }, title: DataTypes.TEXT }, { tableName: 'photos' });
const left = await Auto.create({ title: 'auto' });
print('with_autoincrement', left.id);
await db.close();
