// Drizzle's tables, for drizzle.mjs and for drizzle-kit.  The default is in the
// form in which PostgreSQL stores it, which drizzle-kit compares with.
import { sql } from 'drizzle-orm';
import { bigint, pgSequence, pgTable, text } from 'drizzle-orm/pg-core';
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

export const albumRelations = relations(albums, ({ many }) => ({ photos: many(photos) }));
export const photoRelations = relations(photos, ({ one }) => ({
  album: one(albums, { fields: [photos.albumId], references: [albums.id] }),
}));
