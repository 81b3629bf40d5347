# What "Before you begin" of doc/migrating.md says of programs, commands and old rows
# is what happens after a key has moved, its queries find what they look for, and a
# bigserial moves as the document shows.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('before');
my $text = slurp_file("$top/doc/migrating.md") =~ s/\s+/ /gr;

# Code that a sentence of the document contains
sub said
{
	my ($pattern) = @_;
	return $text =~ $pattern ? $1 : die "the document does not say $pattern";
}

new_database('app');
$node->safe_psql('app', q{
	CREATE EXTENSION snowflake_admin;
	CREATE TABLE photos (id bigserial PRIMARY KEY, title text);
	CREATE TABLE likes (photo_id integer REFERENCES photos)});

SKIP:
{
	skip 'pg_stat_statements is not installed', 1
	  unless value('app', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_stat_statements'});
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_stat_statements'\n");
	$node->restart;
	$node->safe_psql('app', q{CREATE EXTENSION pg_stat_statements});
	$node->safe_psql('app', q{SELECT nextval('photos_id_seq'); SELECT 1});
	is(value('app', said(qr/lists such calls: `(SELECT [^`]+)`/)), '1|SELECT nextval($1)', 'statements of programs are found');
}

# --- what programs get after the move --------------------------------------

fails_with($node, "BEGIN; INSERT INTO photos VALUES (1::bigint << 60); INSERT INTO likes (photo_id) SELECT max(id) FROM photos",
	qr/^22003 integer out of range/, 'an integer column cannot refer to an ID', dbname => 'app');
$node->safe_psql('app', q{INSERT INTO photos VALUES (1, 'old'), (2000000, 'old'), (2000000000, 'old')});
like(sqlstate_of($node, q{CALL snowflake_move('photos', 5)}, dbname => 'app'), qr/^55000 cannot move/, '... so that the key does not move');
$node->safe_psql('app', q{
	ALTER TABLE likes ALTER photo_id TYPE bigint;
	CALL snowflake_move('photos', 5, own_sequence => true);
	INSERT INTO photos (title) VALUES ('new');
	INSERT INTO photos VALUES (nextval('photos_id_seq'), 'overlooked')});
is(value('app', q{SELECT string_agg(DISTINCT title, ' ' ORDER BY title) FROM photos WHERE id > (SELECT max(id) FROM photos WHERE title = 'old')}),
	'new overlooked', 'a number of nextval() sorts after the old rows');
is(value('app', q{SELECT title FROM photos ORDER BY id DESC LIMIT 1}), 'new', '... and before the new ones');
is(value('app', said(qr/calls `(SELECT next_id[^`]+)`/) . ' > max(id) FROM photos'), 't', 'a program can take an ID before its row');

# --- commands that reset the sequence --------------------------------------

my $last = q{SELECT last_value FROM photos_id_seq};
my $before = value('app', $last);
$node->safe_psql('app', $_) foreach
  q{SELECT setval(pg_get_serial_sequence('photos', 'id'), coalesce(max(id), 1), max(id) IS NOT NULL) FROM photos},
  'BEGIN; TRUNCATE photos, likes RESTART IDENTITY; ROLLBACK';
is(value('app', $last), $before, 'a reset by the column does nothing');
$node->safe_psql('app', 'CREATE TABLE rows AS TABLE photos; TRUNCATE photos, likes RESTART IDENTITY; INSERT INTO photos TABLE rows');
is(value('app', $last), $before, '... nor does one that is committed');
$node->safe_psql('app', said(qr/by its name, such as `(ALTER SEQUENCE [^`]+)`/));
is(value('app', $last), 1, 'a reset by the name sets the sequence back');

# --- old rows --------------------------------------------------------------

is(value('app', q{SELECT DISTINCT snowflake_timestamp(id)::date FROM photos WHERE title = 'old'}), said(qr/read as IDs of ([\d-]+)/),
	'old rows seem to have this day');
my $delete = said(qr/lower bound first: `(DELETE [^`]+)`/);
my $old = q{SELECT count(*) FROM photos WHERE title = 'old'};
is(value('app', "BEGIN; $delete; $old; ROLLBACK") =~ s/\s//gr, 3, 'a deletion with a lower bound keeps old rows');
my $unbound = $delete =~ s/ AND .*//r;
is(value('app', "BEGIN; $unbound; $old; ROLLBACK") =~ s/\s//gr, 0, '... and one without takes all of them');

# --- a bigserial, as the document shows ------------------------------------

new_database('shown');
run_examples($node, 'shown', recipe('From bigserial or identity'));
$node->safe_psql('shown', q{CALL snowflake_move_back('photos')});
is(value('shown', q{INSERT INTO photos (title) VALUES ('back') RETURNING id > 1::bigint << 60}), 't', 'a key that has moved back begins beyond all IDs');

# --- the checks of a new row -------------------------------------------------

my @timely = slurp_file("$top/doc/migrating.md") =~ /, ([^,]+) AS timely/g;
is(scalar @timely, 2, 'two sections check the time of a new ID');
is(join(' ', map { value('app', "SELECT $_ FROM (VALUES (snowflake_id('2012-01-01Z', 5, 0)), (next_id(5))) AS v (id) ORDER BY id") } @timely),
	join(' ', ("f\nt") x @timely), 'an ID of long ago is not timely, and a new one is');

$node->stop;
done_testing();
