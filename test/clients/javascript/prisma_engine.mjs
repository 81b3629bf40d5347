// Prisma's schema engine in its WebAssembly build, which npm has: it is what
// "prisma db push" and "prisma migrate diff" run.  Those commands themselves
// download a native build from elsewhere.
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import { SchemaEngine } from '@prisma/schema-engine-wasm';

const CHAR = 18, TEXT = 25;

// The adapter refuses the type "char", which the engine reads catalogs with.
const connect = async (factory) => {
  const adapter = await factory.connect();
  const performIO = adapter.performIO.bind(adapter);
  adapter.performIO = async (query) => {
    const result = await performIO(query);
    for (const field of result.fields) if (field.dataTypeID === CHAR) field.dataTypeID = TEXT;
    return result;
  };
  return adapter;
};

// Change the database to what a schema says; return the number of changes.
export const push = async (content) => {
  const schema = { files: [{ path: 'schema.prisma', content }] };
  const adapter = await connect(new PrismaPg({}));
  const engine = await SchemaEngine.new(
    { datamodels: [['schema.prisma', content]] },
    () => {},
    bindMigrationAwareSqlAdapterFactory({ connect: () => adapter, provider: 'postgres', adapterName: adapter.adapterName }),
  );
  const { executedSteps } = await engine.schemaPush({
    force: false,
    schema,
    filters: { externalTables: [], externalEnums: [] },
  });
  await adapter.dispose();
  return executedSteps;
};
