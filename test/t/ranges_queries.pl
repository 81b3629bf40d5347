# Queries for ranges of time: the recipes of doc/ranges.md do what they show, indexes serve
# what the text says, and queries read the partitions of their times.  IDs that are ahead
# of the clock need partitions, too.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('ranges', "autovacuum = off\nmax_parallel_workers_per_gather = 0\n");
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE DATABASE documented');
$node->safe_psql('documented', 'CREATE EXTENSION snowflake');

sub value { my ($sql) = @_; return $node->safe_psql('postgres', $sql) }

# --- partitions ------------------------------------------------------------------

my ($logs) = blocks_in('doc/ranges.md', 'Partitions');
run_examples($node, 'documented', map { blocks_in('doc/ranges.md', $_) } 'Partitions', 'Dropping old ones',
	'An existing table');
is($node->safe_psql('documented', q{
		SELECT string_agg(partition::text, ' ' ORDER BY since) ~ '^photos_old photos_\d{8}'
		FROM snowflake_partitions('photos')}),
	't', 'a table that was in use is the first partition');

# By days
run_examples($node, 'postgres', blocks_in('doc/ranges.md', 'Time ranges and partitions'), $logs);
value(q{
	CREATE EXTENSION snowflake_admin;
	CALL snowflake_make_partitions('logs', '0');
	SELECT format('CREATE TABLE logs_2026110%s PARTITION OF logs FOR VALUES FROM (%s) TO (%s)', day,
		snowflake_min_id(format('2026-11-0%sZ', day)::timestamptz),
		snowflake_min_id(format('2026-11-0%sZ', day + 1)::timestamptz)) FROM generate_series(2, 5) AS day \gexec
	INSERT INTO logs SELECT id, kind FROM events
	WHERE id >= snowflake_min_id('2026-11-02Z') AND id < snowflake_min_id('2026-11-06Z');
	ANALYZE logs});
is(value(q{SELECT string_agg(DISTINCT tableoid::regclass::text, ' ') FROM logs
		WHERE id < snowflake_min_id('2026-11-03Z')}),
	'logs_20261102', 'rows are in the partition of their day');

# Which partitions a query reads
sub partitions_read
{
	my $plan = plan_of($node, @_);
	my %seen;
	return join ' ', grep { !$seen{$_}++ } $plan =~ /^[^\n]* on (logs_\w+)/mg;
}

my $id = value(q{SELECT id FROM logs WHERE id >= snowflake_min_id('2026-11-03Z') LIMIT 1});
my $generic = 'SET plan_cache_mode = force_generic_plan; PREPARE since (timestamptz, timestamptz) AS
	SELECT * FROM logs WHERE id >= snowflake_min_id($1) AND id < snowflake_min_id($2);';
my $midnight = q{date_trunc('day', now(), 'UTC')};
my $today = value(qq{SELECT to_char($midnight, '"logs_"YYYYMMDD')});
is(partitions_read(q{SELECT * FROM logs WHERE id >= snowflake_min_id('2026-11-04 12:00Z')
		AND id < snowflake_min_id('2026-11-04 12:30Z')}),
	'logs_20261104', 'a query reads the partition of its time');
is(partitions_read("SELECT * FROM logs WHERE id = $id"), 'logs_20261103', 'an ID is looked for in one partition');
is(partitions_read(q{EXECUTE since('2026-11-04 12:00Z', '2026-11-05 12:00Z')}, $generic),
	'logs_20261104 logs_20261105', 'a prepared statement reads the partitions of its times');
like(plan_of($node, q{EXECUTE since('2026-11-04 12:00Z', '2026-11-05 12:00Z')}, $generic),
	qr/Subplans Removed: 4/, 'the executor leaves out the others');
is(scalar(split / /, partitions_read("EXECUTE these('{$id}')", 'SET plan_cache_mode = force_generic_plan;
		PREPARE these (bigint[]) AS SELECT * FROM logs WHERE id = ANY ($1);')), 6,
			'... but one with id = ANY($1) reads all of them');
is(partitions_read("SELECT * FROM logs
		WHERE id >= snowflake_min_id($midnight) AND id < snowflake_min_id($midnight + interval '1 day')"),
	$today, 'a query that depends on now() reads the partition of today');
is(partitions_read(q{SELECT * FROM shown_logs WHERE id >= snowflake_min_id('2026-11-02Z')
		AND id < snowflake_min_id('2026-11-03Z')},
		'CREATE VIEW shown_logs AS SELECT id, snowflake_timestamp(id) AS created_at, kind FROM logs;'),
	'logs_20261102', 'a view leads to the partition of the day');
is(scalar(split / /, partitions_read(q{SELECT * FROM shown_logs WHERE created_at >= '2026-11-03Z'})), 6,
	'a condition on snowflake_timestamp(id) leads to all partitions');
like(plan_of($node, q{SELECT * FROM logs WHERE id < snowflake_min_id('2026-11-04 12:00Z') ORDER BY id DESC LIMIT 20}),
	qr/^Limit\n +-> +Append\n.*_20261104\w* .*_20261103\w* .*_20261102\w* /s,
		'a page reads the newest partition first');

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
fails_with($node, $insert, qr/^23514 no partition of relation "logs"/,
	'IDs that are days ahead of the clock need partitions of those days');
value(q{CALL snowflake_make_partitions('logs', '4 days')});
is(value("$insert; SELECT count(*) FROM logs WHERE kind = 'ahead' AND id < snowflake_min_id(now())"), 0,
	'IDs that are ahead of the clock go to their partitions, and are not found among those up to now');

value('ALTER SEQUENCE next_id_seq RESTART');

# --- indexes -----------------------------------------------------------------------

value(q{CREATE TABLE visits (id bigint NOT NULL DEFAULT next_id(5), path text);
	INSERT INTO visits (id, path)
	SELECT snowflake_id(t, 5, 0), '/'
	FROM generate_series('2026-11-13Z'::timestamptz, '2026-11-19 23:59:59Z', '1 second') AS t});
run_examples($node, 'postgres', blocks_in('doc/ranges.md', 'The rule', 'Pages', 'Reading what is new',
		'Counting per day', 'Deleting old rows', 'Views', 'BRIN, for very large tables'));
my ($deletion) = map { $_->{code} } blocks_in('doc/ranges.md', 'Deleting old rows');
# In slices
is(value('SELECT count(*) FROM events'), 62000, 'a deletion deletes 10,000 rows at once');
value($deletion) foreach 1 .. 2;
value("VACUUM ANALYZE $_") foreach 'events', 'visits';
is(value('SELECT count(*), min(snowflake_timestamp(id)) FROM events'),
	'51840|2026-10-15 00:00:00+00', 'the rows before a time are deleted, and no others');
is(value(q{SELECT created_at FROM recent_events WHERE id < snowflake_min_id('2026-11-01 00:02Z') ORDER BY id}),
	"2026-11-01 00:00:00+00\n2026-11-01 00:01:00+00", 'a view shows the times of rows that are found by their IDs');

# Which index serves what the text says
my $key = qr/Index Scan using events_pkey on events\n +Index Cond: \(id >= snowflake_min_id\(/;
my $bound = qr/Index Cond: \(?\(id [<>]=? '\d{19}'::bigint\)/;
like(plan_of($node, q{SELECT * FROM events
		WHERE snowflake_timestamp(id) >= '2026-11-19Z'}, 'DROP INDEX events_created_at;'),
	qr/^Seq Scan on events/, 'a condition on snowflake_timestamp(id) is not served by the primary key');
value($_->{code}) foreach grep { $_->{code} =~ /INDEX events_created_at/ } blocks_in('doc/ranges.md', 'Views');
value('ANALYZE events');
like(plan_of($node, q{SELECT * FROM events WHERE id >= snowflake_min_id(now() - interval '24 hours')}),
	$key, 'the primary key serves a bound that depends on now()');
like(plan_of($node, q{SELECT * FROM events WHERE id >= snowflake_min_id('2026-11-01Z')
		AND id < snowflake_min_id('2026-11-08Z')}),
	qr/^Index Scan using events_pkey on events\n +$bound AND \(id < /, 'the primary key serves a range of time');
is(value('SELECT id FROM events ORDER BY id DESC LIMIT 2'), "4034188275856970752\n4034187772540490752",
	'the next page begins at the last ID of the first one');
like(plan_of($node, q{SELECT id, kind FROM events WHERE id < 4034187269224010752 ORDER BY id DESC LIMIT 3}),
	qr/^Limit\n +-> +Index Scan Backward using events_pkey on events\n +$bound/,
		'a page reads the primary key backwards');
is(value(q{SELECT id FROM events WHERE id < snowflake_min_id('2026-11-01 12:00Z') ORDER BY id DESC LIMIT 1}),
	4020779924829770752, 'a page can begin at a time');
like(plan_of($node, q{SELECT id FROM events WHERE kind = 'hour' AND id < snowflake_min_id('2026-11-01Z')
		ORDER BY id DESC LIMIT 20},
		'CREATE INDEX events_kind_id ON events (kind, id);'),
	qr/Index Only Scan Backward using events_kind_id on events\n +Index Cond: \(\(kind = 'hour'::text\) AND \(id < /,
	'an index on the kind and the ID serves a page of one kind');
# PostgreSQL 18 could skip through this index, which would serve the next queries.
value('DROP INDEX events_kind_id');
like(plan_of($node, q{SELECT count(*) FROM events WHERE id >= snowflake_min_id('2026-11-17Z')}),
	qr/^Aggregate\n +-> +Index Only Scan using events_pkey on events\n +$bound/, 'the index alone counts a range');
like(plan_of($node, q{SELECT day, n FROM generate_series('2026-11-18Z'::timestamptz, '2026-11-21Z', '24 hours') AS day,
		LATERAL (SELECT count(*) AS n FROM events
			WHERE id >= snowflake_min_id(day) AND id < snowflake_min_id(day + interval '24 hours')) AS that_day}),
	qr/Index Only Scan using events_pkey on events\n +Index Cond: \(\(id >= snowflake_min_id\(day/,
		'the index counts a series of days');
like(plan_of($node, q{DELETE FROM events WHERE id < snowflake_min_id('2026-10-16Z')}),
	qr/^Delete on events\n +-> +Index Scan using events_pkey on events\n +$bound/, 'a deletion reads the primary key');
like(plan_of($node, q{EXECUTE since('2026-11-19Z')}, q{SET plan_cache_mode = force_generic_plan;
		PREPARE since (timestamptz) AS SELECT * FROM events WHERE id >= snowflake_min_id($1);}),
	$key, 'the primary key serves a generic plan');
like(plan_of($node, q{SELECT created_at, kind FROM recent_events WHERE id < snowflake_min_id('2026-11-02Z')}),
	qr/^Index Scan using events_pkey on events\n +$bound AND \(id < /, 'the primary key serves a view');
like(plan_of($node, q{SELECT kind FROM recent_events WHERE created_at >= '2026-11-19 12:00Z'}),
	qr/^Index Scan using events_created_at on events/, 'an index on snowflake_timestamp(id) serves its time');
like(plan_of($node, q{SELECT count(*) FROM visits
		WHERE id >= snowflake_min_id('2026-11-15 12:00Z') AND id < snowflake_min_id('2026-11-15 13:00Z')}),
	qr/-> +Bitmap Index Scan on visits_brin/, 'BRIN serves a range');
cmp_ok(value(q{SELECT pg_relation_size('visits_brin') / 8192}), '<', 10, 'a BRIN index has a few pages');

# Days are those of UTC in any session, also in one with a day of 25 hours: New
# York has one on 2026-11-01, the invented zone on 2026-11-18.
my ($counts) = blocks_in('doc/ranges.md', 'Counting per day');
foreach my $zone ('America/New_York', 'EST5EDT,M3.2.0,M11.3.3')
{
	local $ENV{PGTZ} = $zone;
	run_examples($node, 'postgres', $counts);
	is(value(q{
			SELECT (snowflake_timestamp(id) AT TIME ZONE 'UTC')::date AS day, count(*)
			FROM events WHERE id >= snowflake_min_id('2026-11-15Z') GROUP BY 1 ORDER BY 1}),
		join("\n", map { "2026-11-$_|1440" } 15 .. 19), "rows are grouped by days of UTC in a session of $zone");
}

# Numbers of a serial are older than everything, and the recipe has a lower bound.
value(q{INSERT INTO events VALUES (1, 'serial'), (2147483647, 'serial')});
value($deletion);
is(value(q{SELECT count(*) FROM events WHERE kind = 'serial'}), 2, 'a deletion by age keeps the rows of a serial');

$node->stop;
done_testing();
