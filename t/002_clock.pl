# A clock that steps, in a running server.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

plan skip_all => 'libfaketime is not installed' unless faketime_library();

my $node = PostgreSQL::Test::Cluster->new('clock');
$node->init;
# PostgreSQL leaves the timer of authentication_timeout running in a session.  It
# must not end a sleep that only the new clock should end.
$node->append_conf('postgresql.conf', "authentication_timeout = '10min'\n");
start_with_clock($node, '+0');
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE other MAXVALUE 1125899906841599;
	CREATE TABLE taken (n int GENERATED ALWAYS AS IDENTITY, id bigint DEFAULT next_id(5));
	INSERT INTO taken DEFAULT VALUES;
});

sub take { return $node->safe_psql('postgres', 'INSERT INTO taken DEFAULT VALUES RETURNING id') }

# Seconds that the next ID's time is from the server's clock.
sub off
{
	return $node->safe_psql('postgres',
		'SELECT extract(epoch FROM snowflake_timestamp(next_id(5)) - clock_timestamp())');
}

# Steps that do not matter
my $before = take();
set_clock($node, '-0.5');
my $after = take();
cmp_ok($after, '>', $before, 'the clock half a second back: IDs grow');
set_clock($node, '+7200');
my $forward = take();
is(($forward >> 23) - ($after >> 23) > 7_190_000, 1, 'two hours forward: so are the IDs');

# Back by more than is waited for
set_clock($node, '+0');
like(
	sqlstate_of($node, q{SET snowflake.max_wait = '1h'; INSERT INTO taken DEFAULT VALUES},
		timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \my $late),
	qr/^53400 sequence "next_id_seq" is 0[12]:[\d:.]+ ahead of the clock/,
	'two hours back: refused at once, not after max_wait');
is( $node->safe_psql('postgres',
		q{SELECT lead > interval '1 hour 50 minutes' FROM snowflake_status()}),
	't', 'the status shows it');

# Nor does a session that has seen the clock before rely on that
set_clock($node, '+7200');
my $open = $node->background_psql('postgres', on_error_stop => 0);
$forward = $open->query_safe('BEGIN; SELECT next_id(5)');
set_clock($node, '+0');
$open->query('SELECT next_id(5)');
like($open->{stderr}, qr/is 0[12]:[\d:.]+ ahead of the clock/,
	'a transaction that took an ID before the step is refused the next one');
$open->{stderr} = '';
$open->quit;

# What a longer lead does, and that the slot goes on
$after = $node->safe_psql('postgres',
	q{SET snowflake.max_lead = '3h'; INSERT INTO taken DEFAULT VALUES RETURNING id});
is($after, $forward + 1, 'with a lead of 3 hours the next one is the next one');

# Back by less than is waited for
set_clock($node, '+7204');
take();
my $start = time();
set_clock($node, '+7201');
$before = $after;
$after = take();
cmp_ok($after, '>', $before, 'three seconds back: the next ID comes');
cmp_ok(time() - $start, '>', 1.5, 'after a wait');
cmp_ok(off(), '<=', 1, 'and is at most a second ahead');

# Setting the clock forward ends a wait that would otherwise take an hour, which
# is longer than this test waits for anything.
set_clock($node, '+10900');
take();
set_clock($node, '+7300');
my $psql = $node->background_psql('postgres');
$psql->query_safe(q{SET snowflake.max_wait = '2h'});
$psql->{stdin} .= "INSERT INTO taken DEFAULT VALUES; SELECT 'done';\n";
$psql->{run}->pump_nb;
ok( $node->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_stat_activity
		  WHERE query LIKE 'INSERT%' AND wait_event_type = 'Extension'}),
	'a waiting session shows a wait event');
set_clock($node, '+10910');
ok(wait_for(sub { $psql->{run}->pump_nb; $psql->{stdout} =~ /done/ }),
	'the clock set forward ends the wait');
$psql->quit;

# A clock that stands still: the slots of a tick, and then no waiting for ever
set_clock($node, '2026-01-01 00:00:00');
like(
	sqlstate_of($node, q{
		SET snowflake.max_lead = 0; SET snowflake.max_wait = '200ms';
		SELECT count(next_id(5, 'other')) FROM generate_series(1, 5000)}),
	qr/^53400 sequence "other" is /,
	'the clock stands still: an error after max_wait');
# likewise a few microseconds before the next tick, where it does not sleep
set_clock($node, '2026-01-01 00:00:01.720990');
like(
	sqlstate_of($node, q{
		SET snowflake.max_lead = 0; SET snowflake.max_wait = '200ms';
		SELECT count(next_id(5, 'other')) FROM generate_series(1, 5000)}),
	qr/^53400 sequence "other" is 00:00:00.00001 ahead/,
	'the clock stands still just before a tick');
is( $node->safe_psql('postgres', q{
		SET snowflake.max_lead = '1s';
		SELECT count(next_id(5, 'other')) FROM generate_series(1, 5000)}),
	5000, 'but what the lead holds can be used');

# Dump and restore, with the clock a day back
set_clock($node, '+10920');
$before = take();
$node->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN;
	CREATE DATABASE mine OWNER alice;
	CREATE DATABASE restored OWNER alice;
	ALTER ROLE alice SET snowflake.max_lead = '2d';
});
my $alice = $node->connstr('mine') . ' user=alice';
$node->safe_psql('', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE mine (id bigint PRIMARY KEY DEFAULT next_id(5));
	INSERT INTO mine SELECT FROM generate_series(1, 1000);
}, connstr => $alice);
my $dump = PostgreSQL::Test::Utils::tempdir . '/mine.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $alice ], 'dump by an owner who is no superuser');
set_clock($node, '-86400');
$node->command_ok(
	[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('restored') . ' user=alice' ],
	'restore by that owner, with the clock a day back');
is( $node->safe_psql('', q{
		SELECT max(id) AS last FROM mine \gset
		INSERT INTO mine DEFAULT VALUES RETURNING id > :last},
		connstr => $node->connstr('restored') . ' user=alice'),
	't', 'the next ID is larger than all before');
is( $node->safe_psql('restored', q{SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'next_id_seq'}),
	'alice', 'her sequence is hers');

# Outside the layout's time
set_clock($node, '2011-08-24 21:07:01');
$node->safe_psql('postgres', 'CREATE SEQUENCE early MAXVALUE 1125899906841599');
like(
	sqlstate_of($node, q{SELECT next_id(5, 'early')}),
	qr/^22008 the clock is behind the epoch of the layout/,
	'before the epoch');
set_clock($node, '2011-08-24 21:07:02');
is($node->safe_psql('postgres', q{SELECT next_id(5, 'early') BETWEEN 1 AND 1::bigint << 40}),
	't', 'after the epoch: the first IDs');

SKIP:
{
	skip 'the clock ends in 2038', 3 unless far_future($node);

	set_clock($node, '2046-06-27 17:00:45');
	$after = $node->safe_psql('postgres', q{SELECT next_id(8191, 'early')});
	cmp_ok($after, '>', 9_223_371_900_000_000_000, 'in the last seconds');
	set_clock($node, '2046-06-27 17:00:50');
	like(
		sqlstate_of($node, q{SELECT next_id(5, 'early')}),
		qr/^2200H the time of the layout is used up/,
		'after the end');
	set_clock($node, '@2080-01-01 00:00:00');
	like(
		sqlstate_of($node, q{SELECT next_id(5, 'early')}),
		qr/^2200H the time of the layout is used up/,
		'long after the end');
}

# All that was kept is in order, whatever the clock did
is( $node->safe_psql('postgres', q{
		SELECT count(*) FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM taken) t
		WHERE id <= before}),
	0, 'all IDs grew');

$node->stop;
done_testing();
