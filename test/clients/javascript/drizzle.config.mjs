import { url } from './report.mjs';

export default { dialect: 'postgresql', schema: './drizzle_schema.mjs', dbCredentials: { url } };
