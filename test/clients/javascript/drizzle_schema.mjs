// Drizzle's tables, for drizzle.mjs and for drizzle-kit.  The default is in the
// form in which PostgreSQL stores it, which drizzle-kit compares with.
import { sql } from 'drizzle-orm';
import { bigint, customType, pgSequence, pgTable, text } from 'drizzle-orm/pg-core';
import { relations } from 'drizzle-orm';

// For push, which would drop the extension's sequence.  Without it for generate, whose first migration would make one.
export const nextIdSeq = pgSequence('next_id_seq', { maxValue: '1125899906841599' });

const key = () => bigint({ mode: 'bigint' }).primaryKey().default(sql`next_id((5)::bigint)`);

export const albums = pgTable('albums', {
  id: key(),
  title: text().notNull(),
  coverId: bigint('cover_id', { mode: 'bigint' }),
});

export const photos = pgTable('photos', {
  id: key(),
  title: text().notNull(),
  albumId: bigint('album_id', { mode: 'bigint' }).references(() => albums.id),
});

// An ID of the type snowflake, a BigInt as the others
const snowflake = customType({ dataType: () => 'snowflake', fromDriver: BigInt });

export const tags = pgTable('tags', {
  id: snowflake().primaryKey().default(sql`next_id((5)::bigint)`),
  albumId: snowflake('album_id').references(() => albums.id),
});

export const albumRelations = relations(albums, ({ many }) => ({ photos: many(photos), tags: many(tags) }));
export const tagRelations = relations(tags, ({ one }) => ({
  album: one(albums, { fields: [tags.albumId], references: [albums.id] }),
}));
export const photoRelations = relations(photos, ({ one }) => ({
  album: one(albums, { fields: [photos.albumId], references: [albums.id] }),
}));
