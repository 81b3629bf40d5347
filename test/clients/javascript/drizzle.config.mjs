export default {
  dialect: 'postgresql',
  schema: './drizzle_schema.mjs',
  dbCredentials: {
    host: process.env.PGHOST,
    port: Number(process.env.PGPORT),
    user: process.env.PGUSER,
    database: process.env.PGDATABASE,
    ssl: false,
  },
};
