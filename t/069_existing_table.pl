# An existing table becomes the first partition by the recipe of doc/ranges.md,
# alone, and with what the text says of foreign keys and views.

use strict;
use warnings;
use FindBin;
use Test::More;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = server_in_utc('existing_table');
my ($function) = grep { $_->{code} =~ /FUNCTION make_partitions/ } blocks_in('doc/ranges.md', 'Partitions');
my ($recipe) = blocks_in('doc/ranges.md', 'An existing table');
my $in_three_days = q{snowflake_id(now() + interval '3 days', 5, 0)};

# A database with make_partitions() and a table, or tables
sub database_with
{
	my ($database, $tables) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, "CREATE EXTENSION snowflake; $function->{code}; $tables");
	return;
}

# --- alone ----------------------------------------------------------------

database_with('alone', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text);
	INSERT INTO photos (title) VALUES ('sunrise'), ('harbour')});
run_examples($node, 'alone', $recipe);
is($node->safe_psql('alone', q{INSERT INTO photos (title) VALUES ('night market'); SELECT title, tableoid::regclass FROM photos ORDER BY id}),
	"sunrise|photos_old\nharbour|photos_old\nnight market|photos_old", 'an existing table is the first partition');
is($node->safe_psql('alone', qq{INSERT INTO photos VALUES ($in_three_days) RETURNING
		tableoid::regclass::text = to_char(now() AT TIME ZONE 'UTC' + interval '3 days', '"photos_"YYYYMMDD')}),
	't', 'an existing table gets a partition for each coming day');

# --- with a foreign key and a view ----------------------------------------

my $with_view = q{
	CREATE TABLE users (id bigint PRIMARY KEY);
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text, user_id bigint REFERENCES users);
	CREATE VIEW titles AS SELECT title FROM photos};
my $no_such_user = "INSERT INTO photos VALUES ($in_three_days, 'later', 666)";
my $later_titles = q{SELECT count(*) FROM titles WHERE title = 'later'};

database_with('recreated', $with_view);
my ($until_attach, $from_attach) = split /^(?=ALTER TABLE photos ATTACH)/m, $recipe->{code};
die 'the recipe has no ATTACH' unless $from_attach;
$node->safe_psql('recreated', $until_attach . q{
	ALTER TABLE photos ADD CONSTRAINT photos_user_id_fkey FOREIGN KEY (user_id) REFERENCES users;
	DROP VIEW titles; CREATE VIEW titles AS SELECT title FROM photos;
	} . $from_attach);
fails_with($node, $no_such_user, qr/^23503/, 'a foreign key that was added before ATTACH is kept', dbname => 'recreated');
is($node->safe_psql('recreated', q{SELECT count(*) FROM pg_constraint WHERE conrelid = 'photos_old'::regclass AND contype = 'f'}),
	1, 'a foreign key that was added before ATTACH takes over that of the old table');
$node->safe_psql('recreated', "INSERT INTO photos VALUES ($in_three_days, 'later')");
is($node->safe_psql('recreated', $later_titles), 1, 'a view that was created again has all rows');

database_with('left_alone', $with_view);
$node->safe_psql('left_alone', $recipe->{code});
like(sqlstate_of($node, $no_such_user, dbname => 'left_alone'), qr/^no error/, 'control: LIKE copies no foreign key');
is($node->safe_psql('left_alone', $later_titles), 0, 'control: a view stays with the old table');

$node->stop;
done_testing();
