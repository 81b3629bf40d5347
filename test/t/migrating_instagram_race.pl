# Replacing Instagram's function by the recipe of doc/migrating.md repeats no ID,
# even while the clock stands still, where every collision shows; nor does its way
# back.  The controls leave out, in turn, what the recipe has and a mere
# replacement lacks.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $clock = '2026-11-21 12:00:00';
my $node = server_with_clock('instagram_race', $clock, "snowflake.max_lead = '1h'\n");

# The recipe's transaction and its three statements
my ($recipe) = map { $_->{code} } grep { $_->{code} =~ /CREATE OR REPLACE/ } recipe(q{From Instagram's own function});
my ($lock, $advance, $replace) =
  $recipe =~ /^(SELECT snowflake_alter_sequence.*?\\gset\n).*^(SELECT snowflake_advance.*?\\gset\n)(CREATE OR REPLACE.*?plpgsql;\n)/ms
  or die 'the recipe has other statements';
# The clock stands still, and so the next value would be the first of its millisecond.
my $without_lead = q{SELECT setval('insta5.table_id_seq', last_value - 501 * 1024) FROM insta5.table_id_seq;};

# A database whose function has made IDs on both sides of its 1024th number
sub new_instagram
{
	my ($database) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, slurp_file("$top/bench/instagram.sql") . q{
		CREATE EXTENSION snowflake;
		CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id());
		SELECT setval('insta5.table_id_seq', 999);
		INSERT INTO insta5.photos SELECT FROM generate_series(1, 100)});
	return $database;
}

sub short { return $_[0] =~ /(duplicate key)/ ? $1 : $_[0] }

# Run some SQL and insert many rows.  Returns the error of either.
sub error_of_rows_after
{
	my ($database, $sql) = @_;
	return short(($node->psql($database, "$sql INSERT INTO insta5.photos SELECT FROM generate_series(1, 3000)"))[2]);
}

# Interrupt a session in Instagram's function, after it has taken its number and
# before it reads the clock.
sub interrupted_session
{
	my ($database) = @_;

	$node->safe_psql($database, $node->safe_psql($database, q{
		SELECT regexp_replace(pg_get_functiondef('insta5.next_id'::regproc),
			'SELECT FLOOR', 'PERFORM pg_advisory_xact_lock(1); SELECT FLOOR')}));
	my $holder = $node->background_psql($database);
	$holder->query_safe('BEGIN; SELECT pg_advisory_xact_lock(1)');
	my $session = $node->background_psql($database, on_error_stop => 0);
	$session->query_until(qr/begun/, "\\echo begun\nINSERT INTO insta5.photos DEFAULT VALUES;\n");
	$node->poll_query_until($database, q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
	return ($holder, $session);
}

# Let an interrupted session go on half a second later.  Returns its error.
sub error_of_session
{
	my ($holder, $session) = @_;

	set_clock($node, "$clock.502");
	$holder->query_safe('COMMIT');
	$session->query('SELECT 1');
	my $error = $session->{stderr};
	$_->quit foreach $holder, $session;
	set_clock($node, $clock);
	return short($error);
}

is(error_of_rows_after(new_instagram('whole'), $recipe), '', 'IDs of both functions differ within one millisecond');
is(error_of_rows_after(new_instagram('no_setval'), $lock . $replace), 'duplicate key',
	'control: without snowflake_advance(), IDs of both functions meet');
is(error_of_rows_after(new_instagram('no_lead'), $lock . $advance . $without_lead . $replace), 'duplicate key',
	'control: with the sequence at the clock itself, IDs of both functions meet');

my $database = new_instagram('no_lock');
$node->safe_psql($database, $lock);
my @sessions = interrupted_session($database);
error_of_rows_after($database, $advance . $replace);
is(error_of_session(@sessions), 'duplicate key', 'control: without the lock, a session that has its number meets an ID');

$database = new_instagram('lock');
@sessions = interrupted_session($database);
like(($node->psql($database, $recipe))[2], qr/canceling statement due to lock timeout/,
	'the recipe does not go on while a session has its number');
is(error_of_session(@sessions), '', 'a session that had its number makes its row');
set_clock($node, "$clock.502");
is(error_of_rows_after($database, $recipe), '', 'the recipe succeeds after the session has made its row');

# The way back, of which the first part sets defaults and the second restores the
# function.  Between them, rows come by the default, and by the function.
my ($keep, $by_extension, @back) = map { $_->{code} } (recipe(q{From Instagram's own function}))[ 2, -3 .. -1 ];
my $rows = 'INSERT INTO insta5.photos SELECT FROM generate_series(1, 1000);
	INSERT INTO insta5.photos SELECT insta5.next_id() FROM generate_series(1, 400)';
foreach my $case ([ 'back', '', @back ], [ 'wrong_way_back', 'duplicate key', reverse @back ])
{
	my ($name, $error, $first, $second) = @$case;
	# pg_sleep() ends only if the clock moves.
	set_clock($node, '@2026-11-21 12:01:00');
	new_instagram($name);
	$node->safe_psql($name, $_) foreach $keep, $recipe, $by_extension, $first;
	set_clock($node, '2026-11-21 12:02:00');
	is(short(($node->psql($name, $rows))[2]), $error,
		($error ? 'control: ' : '') . "half-way back, with the steps in this order, the error is: '$error'");
	set_clock($node, '@2026-11-21 12:03:00');
	$node->safe_psql($name, $second);
	is(short(($node->psql($name, 'INSERT INTO insta5.photos SELECT FROM generate_series(1, 1000)'))[2]), '',
		'IDs of the function that is back differ from all earlier ones');
}

$node->stop;
done_testing();
