# Active Record, and its schema.rb dumped and loaded.  At the end, Rails resets
# the sequences of tables that the argument makes.  test/external/clients.pl compares what
# this prints with the tables.

require "active_record"
require "active_record/fixtures"
require "stringio"
require "tmpdir"

ActiveRecord::Base.establish_connection(adapter: "postgresql", database: ENV.fetch("PGDATABASE"))
ActiveRecord::Migration.verbose = false

class CreateGallery < ActiveRecord::Migration[6.1]
  def change
    enable_extension "snowflake"
    create_table :albums, id: :bigint, default: -> { "next_id(5)" } do |t|
      t.text :title, null: false
      t.bigint :cover_id
    end
    create_table :photos, id: :bigint, default: -> { "next_id(5)" } do |t|
      t.text :title, null: false
      t.references :album, foreign_key: true
    end
  end
end

class CreateTags < ActiveRecord::Migration[6.1]
  def change
    create_table :tags, id: :snowflake, default: -> { "next_id(5)" }
  end
end

def dump
  # From 7.2 on it takes the pool.
  source = ActiveRecord.version < Gem::Version.new("7.2") ? :connection : :connection_pool
  ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.public_send(source), StringIO.new).string
end

CreateGallery.migrate(:up)
schema = dump
ActiveRecord::Base.connection.drop_table(:photos)
ActiveRecord::Base.connection.drop_table(:albums)
eval(schema)
puts "schema #{dump == schema ? 'same' : 'changed'}"
puts "schema_default #{schema[/create_table "photos".*default: -> \{ "(.*?)" \}/, 1]}"

class Album < ActiveRecord::Base
  belongs_to :cover, class_name: "Photo", optional: true
end

class Photo < ActiveRecord::Base
  belongs_to :album, optional: true
end

ActiveRecord::Base.connection.execute("INSERT INTO photos VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')")

# The column's default makes the ID; create! reads it back.
photo = Photo.create!(title: "draft")

# Insert or update by ID.
Photo.upsert({ id: photo.id, title: "first" })

# IDs taken first, for rows that refer to each other.
album_id, cover_id = Photo.connection.select_values("SELECT next_ids(5, 2)")
Photo.transaction do
  Album.create!(id: album_id, title: "album", cover_id: cover_id)
  Photo.create!(id: cover_id, title: "cover", album_id: album_id)
end

# Many rows in one statement, which returns their IDs.
bulk = Photo.insert_all!((0...10_000).map { |n| { title: "bulk #{n}" } }).pluck("id")

# A page of the newest, and the one that follows it.
newest = Photo.order(id: :desc).limit(20)
page = newest.to_a
next_page = newest.where(id: ...page.last.id).to_a

# All rows by batches: find_each goes by id, and so by time.
all = Photo.find_each(batch_size: 3000).map(&:id)

# When a row was made, and the rows of the last hour.
made_at = Photo.where(id: photo.id).pick(Arel.sql("snowflake_timestamp(id)"))
recent = Photo.where("id >= snowflake_min_id(?)", 1.hour.ago).order(:id)

# An ID of the type snowflake is a String, unless the model declares it.
CreateTags.migrate(:up)

class Tag < ActiveRecord::Base; end

class DeclaredTag < ActiveRecord::Base
  self.table_name = "tags"
  attribute :id, :big_integer
end

declared = DeclaredTag.create!
tag = Tag.find(declared.id)
puts "types Active Record: #{photo.id.class} #{tag.id.class} #{declared.id.class}"
puts "tags #{tag.id} #{declared.id}"
puts "schema_of_tags #{dump[/# (Could not dump table "tags")/, 1]}"

puts "version Active Record #{ActiveRecord.version}"
puts ["one", photo.id].join(" ")
puts ["pair", album_id, cover_id].join(" ")
puts ["bulk", *bulk].join(" ")
puts ["pages", *(page + next_page).map(&:id)].join(" ")
puts ["all", *all].join(" ")
puts ["made", (made_at.to_r * 1000).round].join(" ")
puts ["recent", *recent.map(&:id)].join(" ")

# The SQLSTATE of what fails, or "done".
def outcome
  yield
  "done"
rescue ActiveRecord::StatementInvalid => e
  e.cause.result.error_field(PG::Result::PG_DIAG_SQLSTATE)
end

def id_of_new_row(table)
  ActiveRecord::Base.connection.select_value("INSERT INTO #{table} (title) VALUES ('new') RETURNING id")
end

# As tests do with their fixtures: delete a table's rows, load others, reset its sequence.
def load_fixtures(table, id)
  Dir.mktmpdir do |dir|
    File.write("#{dir}/#{table}.yml", "loaded:\n  id: #{id}\n  title: loaded\n")
    ActiveRecord::FixtureSet.reset_cache
    ActiveRecord::FixtureSet.create_fixtures(dir, [table])
  end
end

ActiveRecord::Base.connection.execute(ARGV[0])
%w[plain altered by_hand].each do |table|
  id = id_of_new_row(table)
  reset = outcome { ActiveRecord::Base.connection.reset_pk_sequence!(table) }
  after_reset = id_of_new_row(table)
  fixtures = outcome { load_fixtures(table, after_reset) }
  puts ["reset_#{table}", reset, fixtures, id, after_reset, id_of_new_row(table)].join(" ")
end
