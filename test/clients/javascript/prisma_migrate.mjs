// Prisma's migrations that widen and move a key, and the migrations that it would generate.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import pg from 'pg';
import { print } from './report.mjs';

const schema = (type, make) => `
datasource db {
  provider = "postgresql"
  url      = "postgresql://unused"
}

model User {
  id    ${type}  @id @default(${make})
  posts Post[]
}

model Post {
  id     Int  @id @default(autoincrement())
  user   User @relation(fields: [userId], references: [id])
  userId ${type}
}`;
const moved = schema('BigInt', 'dbgenerated("next_id()")');
const autoincrement = schema('BigInt', 'autoincrement()');

// This role has the shard of development, which the shadow database needs.
const db = new pg.Client();
await db.connect();
await db.query('CREATE ROLE developer SUPERUSER LOGIN');
await db.query('ALTER ROLE developer SET snowflake.shard = 99');
const program = 'node_modules/prisma6/build/index.js';
const prisma = (command, user = 'developer') =>
  spawnSync(process.execPath, [program, ...command, '--config=prisma_migrate.config.mjs'], {
    encoding: 'utf8',
    // It downloads native engines unless it is told of them.
    env: {
      ...process.env,
      PGUSER: user,
      PRISMA_QUERY_ENGINE_LIBRARY: process.execPath,
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    },
  });
const succeed = (...command) => {
  const { status, stdout, stderr } = prisma(command);
  if (status !== 0) throw new Error(`prisma ${command.join(' ')}: ${stdout}${stderr}`);
  return stdout;
};
const migration = (name, sql) => {
  mkdirSync(`moves/migrations/${name}`, { recursive: true });
  writeFileSync(`moves/migrations/${name}/migration.sql`, sql);
};
const diff = (from, text) => {
  writeFileSync('moves/other.prisma', text);
  return ['migrate', 'diff', from, '--to-schema-datamodel=moves/other.prisma', '--script'];
};
// What Prisma would generate to get from the migrations to a schema
const generated = (text) => succeed(...diff('--from-migrations=moves/migrations', text));
const errorOf = (sql) => db.query(sql).then(() => 'none', (error) => error.code);

mkdirSync('moves/migrations', { recursive: true });
writeFileSync('moves/migrations/migration_lock.toml', 'provider = "postgresql"\n');
writeFileSync('moves/schema.prisma', moved);
migration('1_initial', succeed(...diff('--from-empty', schema('Int', 'autoincrement()'))));
succeed('migrate', 'deploy');
await db.query('INSERT INTO "User" DEFAULT VALUES');
await db.query('INSERT INTO "Post" ("userId") VALUES (1)');
print('generated_for_autoincrement', await errorOf(generated(autoincrement)));
print('generated_for_next_id', generated(moved).match(/"(id|userId)" SET DATA TYPE BIGINT/g));

migration('2_extension', 'CREATE EXTENSION IF NOT EXISTS snowflake_admin CASCADE;\n');
migration('3_widen', `CALL snowflake_widen('"User"', 'id');\n`);
succeed('migrate', 'deploy');
print('widened', generated(autoincrement).match(/empty migration/));
// The move is made outside of Prisma, which is then told of it.
migration('4_move', `CALL snowflake_move('"User"');\n`);
const shadow = prisma(diff('--from-migrations=moves/migrations', moved), process.env.PGUSER);
print('shadow_without_shard', shadow.stderr.match(/"snowflake.shard" is not set/));
await db.query('SET snowflake.shard = 5');
await db.query(`CALL snowflake_move('"User"')`);
succeed('migrate', 'resolve', '--applied=4_move');
print('dev', succeed('migrate', 'dev', '--skip-generate').match(/Already in sync/));

const { rows } = await db.query('INSERT INTO "User" DEFAULT VALUES RETURNING id');
await db.query('INSERT INTO "Post" ("userId") VALUES ($1)', [rows[0].id]);
print('moved', rows[0].id);

// What a schema with the former default does, as the tables' owner
await db.query(`SET ROLE developer; ${generated(autoincrement)}`);
print('returned_to_autoincrement', await errorOf('INSERT INTO "User" DEFAULT VALUES'));
await db.end();
