# From Instagram's function to next_id() by doc/migrating.md, while sessions insert
# rows, and while the clock stands still, where every collision shows.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('from_instagram');
new_database('app');
my $photos = slurp_file("$top/bench/instagram.sql") . q{
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), title text);
	INSERT INTO insta5.photos (title) SELECT 'photo ' || n FROM generate_series(1, 1000) AS n;};
$node->safe_psql('app', $photos);
my ($first, $move) = recipe(q{From Instagram's own function});
my $published = value('app', q{SELECT pg_get_functiondef('insta5.next_id'::regproc)});

# Changed functions, which the recipe is not for
foreach my $change ([ '1314220021721', '1420070400000', 'epoch', '5\|f' ], [ '<< 23', '<< 22', 'shift of the time', '\d+\|f' ], [ '<< 10', '<< 12', 'shift of the shard', '20\|t' ])
{
	my ($from, $to, $what, $shown) = @$change;
	my $changed = $published =~ s/\Q$from\E/$to/r;
	is($changed eq $published, '', "the function can have another $what");
	like(value('app', "BEGIN; $changed; $first->{code} ROLLBACK"), qr/^$shown$/, "the first query shows that a function has another $what");
}

my $sessions = start_sessions('app', <<'EOS', '-c', '8', '-R', '800');
INSERT INTO insta5.photos (title) VALUES ('') RETURNING 1 / (id > :last)::int AS growing, id AS last \gset
INSERT INTO insta5.photos (title) SELECT '' FROM generate_series(1, 12);
EOS
run_examples($node, 'app', $first);
# A second table, which the block does not name
$node->safe_psql('app', 'CREATE TABLE insta5.albums (id bigint PRIMARY KEY DEFAULT insta5.next_id())');
my (undef, undef, $refusal) = $node->psql('app', $move->{code} =~ s/'300ms'/'10s'/r, on_error_stop => 0);
like($refusal, qr/default value for column id of table insta5\.albums depends on function/, 'a table that the block leaves out is named');
is(value('app', q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'insta5.photos'::regclass}), 'insta5.next_id()', '... and nothing changes');
$node->safe_psql('app', 'DROP TABLE insta5.albums');
run_examples($node, 'app', $move);
sessions_end_without_error($sessions);
is(value('app', 'SELECT count(DISTINCT snowflake_shard(id)) FROM insta5.photos'), 1, 'IDs of both functions have one shard');
$node->stop;

# The clock stands still, and the sequence is at the last slot of a tick.
my $still = server_with_clock('still', '2026-11-21 12:00:00', "snowflake.max_lead = '1h'\n");
my ($advance) = $move->{code} =~ /^(SELECT snowflake_advance.*\n)/m or die 'the block does not advance the sequence';
foreach my $case ([ 'whole', $move->{code}, qr/^no error/ ], [ 'control', $move->{code} =~ s/\Q$advance\E//r, qr/^23505 duplicate key/ ])
{
	my ($database, $block, $expected) = @$case;
	$still->safe_psql('postgres', "CREATE DATABASE $database");
	$still->safe_psql($database, slurp_file("$top/bench/instagram.sql") . q{
		CREATE EXTENSION snowflake;
		CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id());
		SELECT setval('insta5.table_id_seq', 999);
		INSERT INTO insta5.photos SELECT FROM generate_series(1, 100)});
	$still->safe_psql($database, $block);
	like(sqlstate_of($still, 'INSERT INTO insta5.photos SELECT FROM generate_series(1, 3000)', dbname => $database), $expected,
		$database eq 'whole' ? 'IDs of both functions differ within one millisecond' : 'control: without snowflake_advance(), they meet');
}

$still->stop;
done_testing();
