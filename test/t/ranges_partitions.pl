# Partitions by time: make_partitions() of doc/ranges.md makes a partition for each
# day of UTC, and queries read those that they need.  It does so in other time zones,
# schemas and kinds of tables, and beside sessions that write to the table or call
# it, too.  Partitions are detached beside sessions, and made for IDs that are ahead
# of the clock.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('partitions', "autovacuum = off\nmax_parallel_workers_per_gather = 0\n");
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');

sub value { my ($sql) = @_; return $node->safe_psql('postgres', $sql) }

my ($logs, $function, $daily) = blocks_in('doc/ranges.md', 'Partitions');
run_examples($node, 'postgres', blocks_in('doc/ranges.md', 'Time ranges and partitions'), $logs, $function, $daily);
is(value(q{SELECT make_partitions('logs', '2026-11-02Z', '2026-11-05Z')}),
	join("\n", map { "logs_2026110$_" } 2 .. 5), 'make_partitions() makes a partition for each day');
is(value(q{SELECT make_partitions('logs', '2026-11-01 23:00Z', '2026-11-05 01:00Z')}), 'logs_20261101',
	'make_partitions() makes what is missing');
run_examples($node, 'postgres', blocks_in('doc/ranges.md', 'Dropping old ones'));
is(value(q{
		SELECT bool_and(relname = 'logs_' || to_char(bounds[1], 'YYYYMMDD') AND bounds[1] = date_trunc('day', bounds[1])
			AND bounds[2] = bounds[1] + interval '1 day'), count(*) FROM (
			SELECT relname, array_agg(snowflake_timestamp(bound[1]::bigint) ORDER BY nr) AS bounds
			FROM pg_inherits JOIN pg_class ON oid = inhrelid,
				regexp_matches(pg_get_expr(relpartbound, oid), '\d+', 'g') WITH ORDINALITY AS b (bound, nr)
			WHERE inhparent = 'logs'::regclass GROUP BY relname) AS partitions}),
	't|7', 'each partition has the day of UTC that its name says');
value(q{INSERT INTO logs SELECT id, kind FROM events WHERE id >= snowflake_min_id('2026-11-02Z') AND id < snowflake_min_id('2026-11-06Z');
	ANALYZE logs});
is(value(q{SELECT string_agg(DISTINCT tableoid::regclass::text, ' ') FROM logs WHERE id < snowflake_min_id('2026-11-03Z')}),
	'logs_20261102', 'rows are in the partition of their day');

# Which partitions a query reads
sub partitions_read
{
	my $plan = plan_of($node, @_);
	my %seen;
	return join ' ', grep { !$seen{$_}++ } $plan =~ /^[^\n]* on (logs_\w+)/mg;
}

my ($id) = value(q{SELECT id FROM logs WHERE id >= snowflake_min_id('2026-11-03Z') LIMIT 1});
my $generic = 'SET plan_cache_mode = force_generic_plan; PREPARE since (timestamptz, timestamptz) AS
	SELECT * FROM logs WHERE id >= snowflake_min_id($1) AND id < snowflake_min_id($2);';
my $midnight = q{date_trunc('day', now(), 'UTC')};
my $today = value(qq{SELECT to_char($midnight, '"logs_"YYYYMMDD')});
is(partitions_read(q{SELECT * FROM logs WHERE id >= snowflake_min_id('2026-11-04 12:00Z') AND id < snowflake_min_id('2026-11-04 12:30Z')}),
	'logs_20261104', 'a query reads the partition of its time');
is(partitions_read("SELECT * FROM logs WHERE id = $id"), 'logs_20261103', 'an ID is looked for in one partition');
is(partitions_read(q{EXECUTE since('2026-11-04 12:00Z', '2026-11-05 12:00Z')}, $generic),
	'logs_20261104 logs_20261105', 'a prepared statement reads the partitions of its times');
like(plan_of($node, q{EXECUTE since('2026-11-04 12:00Z', '2026-11-05 12:00Z')}, $generic),
	qr/Subplans Removed: 5/, 'the executor leaves out the others');
is(partitions_read("SELECT * FROM logs WHERE id >= snowflake_min_id($midnight) AND id < snowflake_min_id($midnight + interval '1 day')"),
	$today, 'a query that depends on now() reads the partition of today');
is(partitions_read(q{SELECT * FROM shown_logs WHERE id >= snowflake_min_id('2026-11-02Z') AND id < snowflake_min_id('2026-11-03Z')},
		'CREATE VIEW shown_logs AS SELECT id, snowflake_timestamp(id) AS created_at, kind FROM logs;'),
	'logs_20261102', 'a view leads to the partition of the day');
is(scalar(split / /, partitions_read(q{SELECT * FROM shown_logs WHERE created_at >= '2026-11-03Z'})), 7,
	'a condition on snowflake_timestamp(id) leads to all partitions');
like(plan_of($node, q{SELECT * FROM logs WHERE id < snowflake_min_id('2026-11-04 12:00Z') ORDER BY id DESC LIMIT 20}),
	qr/^Limit\n +-> +Append\n.*_20261104\w* .*_20261103\w* .*_20261102\w* /s, 'a page reads the newest partition first');

# Pruned while the query runs
my $plan = value(<<EOS);
CREATE TABLE times AS SELECT '2026-11-03 12:00Z'::timestamptz AS since, '2026-11-03 13:00Z'::timestamptz AS until;
SET enable_hashjoin = off; SET enable_mergejoin = off;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT logs.* FROM times, logs WHERE id >= snowflake_min_id(since) AND id < snowflake_min_id(until);
EOS
like($plan, qr/logs_20261103_pkey[^\n]*actual rows=60/, 'a join reads the partition of its time');
unlike($plan =~ s/[^\n]*logs_20261103[^\n]*//r, qr/ on logs_\d+ [^\n]*actual/, 'a join reads no other partition');

# What an INSERT without a partition says
my ($shown) = slurp_file("$top/doc/ranges.md") =~ /^( +ERROR:  no partition .*\n +DETAIL: .*)$/m or die 'no error';
my ($shown_id) = $shown =~ /\((\d+)\)/;
value('CREATE SCHEMA empty; CREATE TABLE empty.logs (id bigint PRIMARY KEY) PARTITION BY RANGE (id)');
$node->psql('postgres', "INSERT INTO empty.logs VALUES ($shown_id)", stderr => \my $said);
like($said, qr/\Q@{[ $shown =~ s{^ +}{}gmr ]}\E$/, 'a row without a partition gets the error that doc/ranges.md shows');

# --- make_partitions() elsewhere, and beside others --------------------------------

# Foreign time zones, where a midnight is missing at that: of 2018-11-04
is(value(<<EOS), 't', 'partitions begin at UTC midnights, wherever the session is');
SET timezone = 'America/Sao_Paulo';
CREATE TABLE days (id bigint) PARTITION BY RANGE (id);
SELECT FROM make_partitions('days', '2018-11-03', '2018-11-05');
SELECT array_agg(relname || pg_get_expr(relpartbound, oid) ORDER BY relname) =
	(SELECT array_agg(format('days_2018110%sFOR VALUES FROM (''%s'') TO (''%s'')', day,
		snowflake_min_id(format('2018-11-%s 00:00Z', day)::timestamptz),
		snowflake_min_id(format('2018-11-%s 00:00Z', day + 1)::timestamptz))) FROM generate_series(3, 5) AS day)
FROM pg_class WHERE relname LIKE 'days\\_%';
EOS

# Weeks and months, across a change of the clock
is(value(<<'EOS'), join("\n", 'weeks_20181105 2018-11-05 2018-11-12', 'weeks_20181029 2018-10-29 2018-11-05',
SET timezone = 'America/Sao_Paulo';
CREATE TABLE weeks (id bigint) PARTITION BY RANGE (id);
CREATE TABLE months (id bigint) PARTITION BY RANGE (id);
SELECT FROM make_partitions('weeks', '2018-10-28 23:00', '2018-11-05', 'week');       -- in UTC a Monday
SELECT FROM make_partitions('months', '2018-12-31 23:00', '2019-03-01', 'month');    -- in UTC January
SET timezone = 'UTC';
SELECT relname, to_char(snowflake_timestamp(bound[1]::bigint), 'YYYY-MM-DD HH24:MI:SS.MS') AS since,
	to_char(snowflake_timestamp(bound[2]::bigint), 'YYYY-MM-DD HH24:MI:SS.MS') AS until
INTO TEMPORARY bounds FROM pg_class, regexp_match(pg_get_expr(relpartbound, oid), '\D(\d+)\D+(\d+)') AS bound
WHERE relname ~ '^(weeks|months)_';
SELECT format('%s %s %s', relname, since, until) FROM (
	SELECT relname, replace(since, ' 00:00:00.000', '') AS since, replace(until, ' 00:00:00.000', '') AS until FROM bounds) AS b
ORDER BY relname DESC, 1;
EOS
		'months_201903 2019-03-01 2019-04-01', 'months_201902 2019-02-01 2019-03-01', 'months_201901 2019-01-01 2019-02-01'),
	'partitions of weeks and months begin at UTC midnights');

# Other schemas and names that need quotes
is(value(<<EOS), q{"the Shard"."Photos_20261101"}, 'make_partitions() quotes names');
CREATE SCHEMA "the Shard";
CREATE TABLE "the Shard"."Photos" (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT make_partitions('"the Shard"."Photos"', '2026-11-01', '2026-11-01');
EOS

# A numbered column stays that of the parent.
is(value(<<EOS), "1\n1", 'partitions have no sequences of their own');
CREATE TABLE numbered (id bigint PRIMARY KEY, nr bigint GENERATED ALWAYS AS IDENTITY) PARTITION BY RANGE (id);
SELECT FROM make_partitions('numbered', '2026-11-01', '2026-11-01');
INSERT INTO numbered (id) VALUES (snowflake_id('2026-11-01 12:00Z', 5, 0)) RETURNING nr;
SELECT count(*) FROM pg_class WHERE relkind = 'S' AND relname LIKE 'numbered%';
EOS

# Nobody is locked out, nor locks out the recipe
my $writer = $node->background_psql('postgres');
$writer->query_safe("BEGIN; INSERT INTO logs (kind) VALUES ('writing')");
is( value(<<EOS), 'logs_20121201',
SET lock_timeout = '5s';
SELECT make_partitions('logs', '2012-12-01', '2012-12-01');
EOS
	'partitions are made while others write');
like(
	sqlstate_of($node, "SET lock_timeout = '100ms'; CREATE TABLE e PARTITION OF logs FOR VALUES FROM (1) TO (2)",
		dbname => 'postgres'),
	qr/^55P03/,
	'control: CREATE TABLE ... PARTITION OF waits for writers');
$writer->query_safe('COMMIT');

# Two at once
my ($one, $two) = map { $node->background_psql('postgres') } 1 .. 2;
$one->query_safe("BEGIN; SELECT make_partitions('logs', '2012-12-02', '2012-12-03')");
$two->query_until(qr/begun/, "\\echo begun\nSELECT 'made ' || count(*) FROM make_partitions('logs', '2012-12-02', '2012-12-04');\n");
ok(wait_for(sub {
		value("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0;
	}), 'a second call of make_partitions() waits for the first one');
$one->query_safe('COMMIT');
like($two->query('SELECT 1'), qr/made 1\b/, 'the second call makes what is still missing');
$_->quit foreach $one, $two;

# A table of that name that is no partition
value('CREATE TABLE logs_20121210 (id bigint)');
fails_with($node, q{SELECT make_partitions('logs', '2012-12-10', '2012-12-10')}, qr/^42P07/,
	'make_partitions() does not take another table for the partition that is missing');

# Detached beside others
value(q{
	SELECT FROM make_partitions('logs', '2012-12-05', '2012-12-07');
	INSERT INTO logs SELECT snowflake_id('2012-12-06 12:00Z', 5, 0)});
sub detach
{
	my ($day, $how) = @_;
	return sqlstate_of($node, "SET lock_timeout = '300ms'; ALTER TABLE logs DETACH PARTITION logs_201212$day $how");
}
$writer->query_safe("BEGIN; INSERT INTO logs (kind) VALUES ('writing')");
like(detach('05', 'CONCURRENTLY'), qr/^55P03/, 'DETACH ... CONCURRENTLY waits for a transaction that uses the table');
is(value(q{SET lock_timeout = '5s'; INSERT INTO logs (kind) VALUES ('later') RETURNING kind}), 'later',
	'the transaction for which DETACH ... CONCURRENTLY waits holds up no writer');
like(detach('05', 'CONCURRENTLY'), qr/^55000 .* already pending detach/, 'a DETACH ... CONCURRENTLY that failed is pending');
$writer->query_safe('COMMIT');
like(detach('05', 'FINALIZE'), qr/^no error/, 'FINALIZE ends a pending DETACH');

value(q{CREATE TABLE notes (log_id bigint REFERENCES logs); INSERT INTO notes SELECT id FROM logs WHERE tableoid = 'logs_20121206'::regclass});
like(detach('06', 'CONCURRENTLY'), qr/^23503/, 'a partition with rows to which others refer is not detached');
$writer->query_safe('BEGIN; INSERT INTO notes VALUES (NULL)');
like(detach('07', 'CONCURRENTLY'), qr/^55P03/, 'DETACH ... CONCURRENTLY waits for writers of a table that refers to this one');
$writer->query_safe('COMMIT');
like(detach('07', 'CONCURRENTLY'), qr/^no error/, 'DETACH ... CONCURRENTLY that could not look at the other table can be repeated');
$writer->quit;

value(q{
	CREATE TABLE users (id bigint PRIMARY KEY);
	ALTER TABLE logs ADD user_id bigint REFERENCES users;
	SELECT FROM make_partitions('logs', '2012-12-08', '2012-12-08')});
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN; SELECT count(*) FROM users');
like(detach('08', 'CONCURRENTLY'), qr/^no error/, 'DETACH ... CONCURRENTLY does not wait for readers of a table to which this one refers');
fails_with($node, q{SET lock_timeout = '300ms'; DROP TABLE logs_20121208}, qr/^55P03/,
	'DROP TABLE waits for readers of a table to which the partition refers');
$reader->query_safe('COMMIT');
value('DROP TABLE logs_20121208');
$reader->quit;

# Ahead of the clock, as after the clock was set back by three days
value(setval_ahead('next_id_seq', '3 days'));
my $insert = q{LOAD 'snowflake'; SET snowflake.max_lead = '4d'; INSERT INTO logs (kind) VALUES ('ahead')};
fails_with($node, $insert, qr/^23514 no partition of relation "logs"/, 'IDs that are days ahead of the clock need partitions of those days');
value(q{SELECT FROM make_partitions('logs', now(), now() + interval '4 days')});
is(value("$insert; SELECT count(*) FROM logs WHERE kind = 'ahead' AND id < snowflake_min_id(now())"), 0,
	'IDs that are ahead of the clock go to their partitions, and are not found among those up to now');

$node->stop;
done_testing();
