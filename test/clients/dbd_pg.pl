# DBD::Pg, and Rose::DB::Object, which sends a wrong ID, or none, unless the key has a generator.

use strict;
use warnings;
use B;
use DBI;

my $db = DBI->connect('dbi:Pg:', '', '', { RaiseError => 1, PrintError => 0 });
my $insert = $db->prepare('INSERT INTO photos (title) VALUES (?) RETURNING id');

sub inserted
{
	my ($statement, @values) = @_;
	$statement->execute(@values);
	return $statement->fetchrow_arrayref->[0];
}

# What perl holds: 64 bits, or a text
sub type_of { return B::svref_2object(\$_[0])->FLAGS & B::SVf_IOK ? 'integer' : 'text' }

my $one = inserted($insert, 'one');
my @many;
$db->begin_work;
push @many, inserted($insert, "many $_") foreach 0 .. 999;
$db->commit;
my $tag = inserted($db->prepare('INSERT INTO tags (id) VALUES (?) RETURNING id'), $one);
my ($found) = $db->selectrow_array('SELECT id FROM tags WHERE id = ?', undef, $one);

print "version DBD::Pg $DBD::Pg::VERSION\n";
print 'types DBD::Pg: ', type_of($one), ' ', type_of($tag), "\n";
print "tags $tag $found\n";
print "one $one\n";
print "many @many\n";

# Rose's objects with a key that is read from the database, that is declared, and that is declared with a generator
package Gallery { use parent 'Rose::DB' }
Gallery->register_db(driver => 'pg', dsn => 'dbi:Pg:');
package Photo { use parent 'Rose::DB::Object'; sub init_db { return Gallery->new } }
package Photo::Read { use parent -norequire, 'Photo' }
package Photo::Declared { use parent -norequire, 'Photo' }
package Photo::Generated { use parent -norequire, 'Photo' }

my @declared = (
	table => 'photos',
	columns => [ id => { type => 'bigint' }, title => { type => 'text' } ],
	primary_key_columns => ['id']);
Photo::Read->meta->table('photos');
Photo::Read->meta->auto_initialize;
Photo::Declared->meta->setup(@declared);
Photo::Generated->meta->setup(@declared,
	primary_key_generator => sub { my ($meta, $db) = @_; return $db->dbh->selectrow_array('SELECT next_id(5)') });

foreach my $class (qw(Read Declared Generated))
{
	my $photo = "Photo::$class"->new(title => $class);
	print "rose_\L$class\E ", eval { $photo->save } ? $photo->id : $DBI::state, "\n";
}
print "version Rose::DB::Object $Rose::DB::Object::VERSION\n";
