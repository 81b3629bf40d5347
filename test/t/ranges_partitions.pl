# Partitions by time: the examples of doc/ranges.md, which partitions queries read, and
# IDs that are ahead of the clock.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('partitions', "autovacuum = off\nmax_parallel_workers_per_gather = 0\n");
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');

sub value { my ($sql) = @_; return $node->safe_psql('postgres', $sql) }

my ($logs) = blocks_in('doc/ranges.md', 'Partitions');
$node->safe_psql('postgres', 'CREATE DATABASE documented');
$node->safe_psql('documented', 'CREATE EXTENSION snowflake');
run_examples($node, 'documented', map { blocks_in('doc/ranges.md', $_) } 'Partitions', 'Dropping old ones', 'An existing table');
is($node->safe_psql('documented', q{SELECT string_agg(partition::text, ' ' ORDER BY since) ~ '^photos_old photos_\d{8}', count(*) > 1 FROM snowflake_partitions('photos')}),
	't|t', 'a table that was in use is the first partition');

# By days
run_examples($node, 'postgres', blocks_in('doc/ranges.md', 'Time ranges and partitions'), $logs);
value(q{
	CREATE EXTENSION snowflake_admin;
	CALL snowflake_make_partitions('logs', '0');
	DO $$ BEGIN FOR day IN 2 .. 5 LOOP
		EXECUTE format('CREATE TABLE logs_2026110%s PARTITION OF logs FOR VALUES FROM (%s) TO (%s)', day,
			snowflake_min_id(format('2026-11-0%sZ', day)::timestamptz), snowflake_min_id(format('2026-11-0%sZ', day + 1)::timestamptz));
	END LOOP; END $$});
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
	qr/Subplans Removed: 4/, 'the executor leaves out the others');
is(scalar(split / /, partitions_read("EXECUTE these('{$id}')", 'SET plan_cache_mode = force_generic_plan;
		PREPARE these (bigint[]) AS SELECT * FROM logs WHERE id = ANY ($1);')), 6, '... but one with id = ANY($1) reads all of them');
is(partitions_read("SELECT * FROM logs WHERE id >= snowflake_min_id($midnight) AND id < snowflake_min_id($midnight + interval '1 day')"),
	$today, 'a query that depends on now() reads the partition of today');
is(partitions_read(q{SELECT * FROM shown_logs WHERE id >= snowflake_min_id('2026-11-02Z') AND id < snowflake_min_id('2026-11-03Z')},
		'CREATE VIEW shown_logs AS SELECT id, snowflake_timestamp(id) AS created_at, kind FROM logs;'),
	'logs_20261102', 'a view leads to the partition of the day');
is(scalar(split / /, partitions_read(q{SELECT * FROM shown_logs WHERE created_at >= '2026-11-03Z'})), 6,
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

# Ahead of the clock, as after the clock was set back by three days
value(setval_ahead('next_id_seq', '3 days'));
my $insert = q{LOAD 'snowflake'; SET snowflake.max_lead = '4d'; INSERT INTO logs (kind) VALUES ('ahead')};
fails_with($node, $insert, qr/^23514 no partition of relation "logs"/, 'IDs that are days ahead of the clock need partitions of those days');
value(q{CALL snowflake_make_partitions('logs', '4 days')});
is(value("$insert; SELECT count(*) FROM logs WHERE kind = 'ahead' AND id < snowflake_min_id(now())"), 0,
	'IDs that are ahead of the clock go to their partitions, and are not found among those up to now');

$node->stop;
done_testing();
