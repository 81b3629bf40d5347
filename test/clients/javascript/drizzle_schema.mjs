// Drizzle's tables, for drizzle.mjs and drizzle-kit, which compares the default with its stored form.
import { sql } from 'drizzle-orm';
import { bigint, customType, pgSequence, pgTable, text } from 'drizzle-orm/pg-core';
import { relations } from 'drizzle-orm';

// For push, which would drop the extension's sequence.  Without it for generate, whose first migration would make one.
export const nextIdSeq = pgSequence('next_id_seq', { maxValue: '1125899906841599' });

// An ID of the type snowflake, a BigInt as the others
const snowflake = customType({ dataType: () => 'snowflake', fromDriver: BigInt });

export const photos = pgTable('photos', {
  id: bigint({ mode: 'bigint' }).primaryKey().default(sql`next_id((5)::bigint)`),
  title: text().notNull(),
});

export const tags = pgTable('tags', {
  id: snowflake().primaryKey().default(sql`next_id((5)::bigint)`),
  photoId: bigint('photo_id', { mode: 'bigint' }).references(() => photos.id),
});

export const photoRelations = relations(photos, ({ many }) => ({ tags: many(tags) }));
export const tagRelations = relations(tags, ({ one }) => ({
  photo: one(photos, { fields: [tags.photoId], references: [photos.id] }),
}));
