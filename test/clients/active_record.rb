# Active Record, its schema.rb dumped and loaded, and its reset of sequences.  The tables "plain" and "altered" are there
# already.

require "active_record"
require "stringio"

ActiveRecord::Base.establish_connection(adapter: "postgresql", database: ENV.fetch("PGDATABASE"))
ActiveRecord::Migration.verbose = false
DB = ActiveRecord::Base.connection

class CreatePhotos < ActiveRecord::Migration[6.1]
  def change
    create_table :photos, id: :bigint, default: -> { "next_id(5)" } do |t|
      t.text :title, null: false
      t.references :original, foreign_key: { to_table: :photos }
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

class Photo < ActiveRecord::Base; end
class Tag < ActiveRecord::Base; end

class DeclaredTag < ActiveRecord::Base
  self.table_name = "tags"
  attribute :id, :big_integer
end

CreatePhotos.migrate(:up)
schema = dump
puts "default_in_schema #{schema[/create_table "photos".*default: -> \{ "(.*?)" \}/, 1]}"
puts "sequences_in_schema #{schema.scan(/next_id_seq/).size}"
eval(schema)
puts "schema_loaded #{dump == schema ? 'same' : 'changed'}"
CreateTags.migrate(:up)
puts "tags_in_schema #{dump[/# (Could not dump table "tags")/, 1]}"

photo = Photo.create!(title: "one")
many = Photo.insert_all!((0...1000).map { |n| { title: "many #{n}" } }).pluck("id")
declared = DeclaredTag.create!
tag = Tag.find(declared.id)

puts "version Active Record #{ActiveRecord.version}"
puts "types Active Record: #{photo.id.class} #{tag.id.class} #{declared.id.class}"
puts "tags #{tag.id} #{declared.id}"
puts "one #{photo.id}"
puts "many #{many.join(' ')}"

DB.execute("INSERT INTO plain (id, title) VALUES (10, 'before')")
DB.execute("INSERT INTO altered (title) VALUES ('before')")
%w[plain altered].each do |table|
  DB.reset_pk_sequence!(table)
  DB.execute("INSERT INTO #{table} (title) VALUES ('after')")
end
