# DBIx::Class.  test/external/clients.pl compares what this prints with the tables.

use strict;
use warnings;

package Schema::Result::Album;
use base 'DBIx::Class::Core';
__PACKAGE__->table('albums');
# retrieve_on_insert: create() reads the ID back with RETURNING, without a warning.
__PACKAGE__->add_columns(
	id       => { data_type => 'bigint', retrieve_on_insert => 1 },
	title    => { data_type => 'text' },
	cover_id => { data_type => 'bigint', is_nullable => 1 });
__PACKAGE__->set_primary_key('id');

package Schema::Result::Photo;
use base 'DBIx::Class::Core';
__PACKAGE__->table('photos');
__PACKAGE__->add_columns(
	id       => { data_type => 'bigint', retrieve_on_insert => 1 },
	title    => { data_type => 'text' },
	album_id => { data_type => 'bigint', is_nullable => 1 });
__PACKAGE__->set_primary_key('id');

package Schema;
use base 'DBIx::Class::Schema';
__PACKAGE__->register_class(Album => 'Schema::Result::Album');
__PACKAGE__->register_class(Photo => 'Schema::Result::Photo');

package main;
use B;
use POSIX qw(strftime);
use DBIx::Class::Schema::Loader qw(make_schema_at);

my $schema = Schema->connect('dbi:Pg:', undef, undef, { AutoCommit => 1, RaiseError => 1 });
my $photos = $schema->resultset('Photo');
my $db = $schema->storage->dbh;

# The column's default makes the ID.
my $photo = $photos->create({ title => 'draft' });

# Insert or update by ID: an UPDATE, or an INSERT if it finds no row.
$photos->update_or_create({ id => $photo->id, title => 'first' });

# IDs taken first, for rows that refer to each other, and for many rows.
my ($album_id, $cover_id, @bulk) = @{ $db->selectcol_arrayref('SELECT next_ids(5, 10002)') };
$schema->txn_do(
	sub {
		$schema->resultset('Album')->create({ id => $album_id, title => 'album', cover_id => $cover_id });
		$photos->create({ id => $cover_id, title => 'cover', album_id => $album_id });
		# in void context, one statement that is executed for all rows
		$photos->populate([ [qw(id title)], map { [ $bulk[$_], "bulk $_" ] } 0 .. $#bulk ]);
	});

# A page of the newest, and the one that follows it.
my $newest = $photos->search({}, { order_by => { -desc => 'id' }, rows => 20 });
my @page = $newest->all;
my @next_page = $newest->search({ id => { '<' => $page[-1]->id } })->all;

# When a row was made, and the rows of the last hour.
my ($made_at) = $db->selectrow_array('SELECT (extract(epoch FROM snowflake_timestamp(?)) * 1000)::bigint', undef, $photo->id);
my $hour_ago = strftime('%Y-%m-%dT%H:%M:%SZ', gmtime(time - 3600));
my @recent = $photos->search({ id => { '>=' => \[ 'snowflake_min_id(?)', $hour_ago ] } }, { order_by => 'id' })->all;

print "version DBIx::Class $DBIx::Class::VERSION\n";
print "one ", $photo->id, "\n";
print "pair $album_id $cover_id\n";
print "bulk @bulk\n";
print "pages ", join(' ', map { $_->id } @page, @next_page), "\n";
print "made $made_at\n";
print "recent ", join(' ', map { $_->id } @recent), "\n";

# An ID of the type snowflake is text.
my ($tag_id) = $db->selectrow_array('INSERT INTO tags (id) VALUES (?) RETURNING id', undef, $photo->id);
print "types DBIx::Class: ", join(' ', map { B::svref_2object(\$_)->FLAGS & B::SVf_IOK ? 'number' : 'text' }
	  $db->selectrow_array('SELECT id FROM photos'), $tag_id), "\n";
print "tags $tag_id\n";

# Without retrieve_on_insert
my $warning = 'none';
$SIG{__WARN__} = sub { $warning = $_[0] =~ /^(?:.*: )?(\w+ \w+)/ ? $1 : $_[0] };
$photos->result_source->column_info('id')->{retrieve_on_insert} = 0;
my $other = $photos->create({ title => 'other' });
print "warned ", $warning, "\n";
print "without ", $other->id, "\n";
print "stored ", $db->selectrow_array("DELETE FROM photos WHERE title = 'other' RETURNING id"), "\n";

# What the schema loader reads from the tables
$SIG{__WARN__} = sub { };
make_schema_at('Loaded', { naming => 'v8' }, ['dbi:Pg:']);
my $loaded = Loaded->source('Photo')->column_info('id');
print "loaded $loaded->{data_type} ", ${ $loaded->{default_value} // \'' }, ' ', Loaded->source('Tag')->column_info('id')->{data_type}, "\n";
