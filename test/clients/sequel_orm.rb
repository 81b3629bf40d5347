# Sequel.  test/external/clients.pl compares what this prints with the tables.

require "sequel"

DB = Sequel.connect(adapter: "postgres", database: ENV.fetch("PGDATABASE"))

DB.create_table(:albums) do
  column :id, :bigint, primary_key: true, default: Sequel.lit("next_id(5)")
  String :title, null: false, text: true
  Bignum :cover_id
end
DB.create_table(:photos) do
  column :id, :bigint, primary_key: true, default: Sequel.lit("next_id(5)")
  String :title, null: false, text: true
  foreign_key :album_id, :albums, type: :bigint
end
DB.create_table(:tags) { column :id, :snowflake, primary_key: true, default: Sequel.lit("next_id(5)") }
DB.alter_table(:albums) { add_foreign_key [:cover_id], :photos, deferrable: true }
DB.run("INSERT INTO photos VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')")

class Album < Sequel::Model
  unrestrict_primary_key
end

class Photo < Sequel::Model
  unrestrict_primary_key # so that create() takes an ID
  many_to_one :album
end

# The column's default makes the ID; create() reads it back.
photo = Photo.create(title: "draft")

# Insert or update by ID.
Photo.dataset.insert_conflict(target: :id, update: { title: Sequel[:excluded][:title] })
     .insert(id: photo.id, title: "first")

# IDs taken first, for rows that refer to each other.
album_id, cover_id = DB[Sequel.function(:next_ids, 5, 2).as(:id)].select_map(:id)
DB.transaction do
  Album.create(id: album_id, title: "album", cover_id: cover_id)
  Photo.create(id: cover_id, title: "cover", album_id: album_id)
end

# Many rows in one statement, which returns their IDs.
bulk = Photo.dataset.returning(:id).import([:title], (0...10_000).map { |n| ["bulk #{n}"] })

# A page of the newest, and the one that follows it.
newest = Photo.reverse(:id).limit(20)
page = newest.all
next_page = newest.where { id < page.last.id }.all

# When a row was made, and the rows of the last hour.
made_at = DB.get(Sequel.function(:snowflake_timestamp, photo.id))
recent = Photo.where { id >= snowflake_min_id(Time.now - 3600) }.order(:id)

# An ID of the type snowflake is a String, unless there is a conversion for the type.
class Tag < Sequel::Model; end
tag = Tag.create
DB.add_conversion_proc(DB.get(Sequel.lit("'snowflake'::regtype::oid")), &:to_i)
registered = Tag.first

puts "version Sequel #{Sequel.version}"
puts "types Sequel: #{photo.id.class} #{tag.id.class} #{registered.id.class}"
puts "tags #{tag.id} #{registered.id}"
puts "one #{photo.id}"
puts "pair #{album_id} #{cover_id}"
puts "bulk #{bulk.join(" ")}"
puts "pages #{(page + next_page).map(&:id).join(" ")}"
puts "made #{(made_at.to_r * 1000).round}"
puts "recent #{recent.select_map(:id).join(" ")}"

# A migration with the tables' default, if it is dumped with same_db, and the
# tables that it makes, dumped again.
DB.extension :schema_dumper
Sequel.extension :migration
dump = DB.dump_schema_migration(same_db: true)
DB.transaction(rollback: :always) do
  DB.drop_table(:albums, :photos, :tags, cascade: true)
  eval(dump).apply(DB, :up)
  puts "schema #{DB.dump_schema_migration(same_db: true) == dump ? "same" : "differs"}"
end
puts "same_db #{DB.dump_table_schema(:photos, same_db: true)[/:id.*/]}"
puts "without #{DB.dump_table_schema(:photos)[/:id.*/]}"
