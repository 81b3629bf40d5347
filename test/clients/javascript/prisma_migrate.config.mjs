// npm has no schema engine but the one in WebAssembly, which reaches the database through the adapter.
import { PrismaPg } from '@prisma/adapter-pg';

// The engine reads catalogs, whose type "char" the adapter does not know: it becomes text.
const readable = (db) => {
  const performIO = db.performIO.bind(db);
  db.performIO = async (query) => {
    const result = await performIO(query);
    result.fields?.filter((field) => field.dataTypeID === 18).forEach((field) => (field.dataTypeID = 25));
    return result;
  };
  return db;
};

class Adapter extends PrismaPg {
  async connect() {
    return readable(await super.connect());
  }

  // The adapter's own shadow database is dropped while it is in use, which fails.
  async connectToShadowDb() {
    const db = await this.connect();
    await db.executeScript('DROP DATABASE IF EXISTS shadow; CREATE DATABASE shadow');
    await db.dispose();
    return readable(await new PrismaPg({ database: 'shadow' }).connect());
  }
}

export default {
  schema: 'moves/schema.prisma',
  migrations: { path: 'moves/migrations' },
  experimental: { adapter: true },
  engine: 'js',
  adapter: async () => new Adapter({}),
};
