# Queries for ranges of time: the recipes of doc/ranges.md up to partitions do
# what they show, and the indexes serve what the text says.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('ranges', "autovacuum = off\nmax_parallel_workers_per_gather = 0\n");
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');

sub value { my ($sql) = @_; return $node->safe_psql('postgres', $sql) }

value(q{CREATE TABLE visits (id bigint NOT NULL DEFAULT next_id(5), path text);
	INSERT INTO visits (id, path)
	SELECT snowflake_id(t, 5, 0), '/' FROM generate_series('2026-11-13Z'::timestamptz, '2026-11-19 23:59:59Z', '1 second') AS t});
my @recipes = blocks_in('doc/ranges.md', 'Time ranges and partitions', 'The rule', 'Pages', 'Reading what is new', 'Counting per day',
	'Deleting old rows', 'Views', 'BRIN, for very large tables');
run_examples($node, 'postgres', @recipes);
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
like(plan_of($node, q{SELECT * FROM events WHERE snowflake_timestamp(id) >= '2026-11-19Z'}, 'DROP INDEX events_created_at;'),
	qr/^Seq Scan on events/, 'a condition on snowflake_timestamp(id) is not served by the primary key');
value($_->{code}) foreach grep { $_->{code} =~ /INDEX events_created_at/ } blocks_in('doc/ranges.md', 'Views');
value('ANALYZE events');
like(plan_of($node, q{SELECT * FROM events WHERE id >= snowflake_min_id(now() - interval '24 hours')}),
	$key, 'the primary key serves a bound that depends on now()');
like(plan_of($node, q{SELECT * FROM events WHERE id >= snowflake_min_id('2026-11-01Z') AND id < snowflake_min_id('2026-11-08Z')}),
	qr/^Index Scan using events_pkey on events\n +$bound AND \(id < /, 'the primary key serves a range of time');
is(value('SELECT id FROM events ORDER BY id DESC LIMIT 2'), "4034188275856970752\n4034187772540490752",
	'the next page begins at the last ID of the first one');
like(plan_of($node, q{SELECT id, kind FROM events WHERE id < 4034187269224010752 ORDER BY id DESC LIMIT 3}),
	qr/^Limit\n +-> +Index Scan Backward using events_pkey on events\n +$bound/, 'a page reads the primary key backwards');
is(value(q{SELECT id FROM events WHERE id < snowflake_min_id('2026-11-01 12:00Z') ORDER BY id DESC LIMIT 1}),
	4020779924829770752, 'a page can begin at a time');
like(plan_of($node, q{SELECT id FROM events WHERE kind = 'hour' AND id < snowflake_min_id('2026-11-01Z') ORDER BY id DESC LIMIT 20},
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
	qr/Index Only Scan using events_pkey on events\n +Index Cond: \(\(id >= snowflake_min_id\(day/, 'the index counts a series of days');
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
is(value(q{SELECT snowflake_min_id('2026-11-01Z', 'twitter'), snowflake_min_id('2026-11-01Z', 'discord')}),
	'2116681624581046272|1566240355123200000', 'bounds of other layouts');

# A generated column, as the text writes it
my ($generated) = slurp_file("$top/doc/ranges.md") =~ /`(created_at timestamptz[^`]+STORED)`/ or die 'no generated column';
is(value("CREATE TABLE generated (id bigint DEFAULT next_id(6), $generated); INSERT INTO generated DEFAULT VALUES;
		SELECT created_at = snowflake_timestamp(id) FROM generated"),
	't', 'a generated column has the time of the ID');

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

# Numbers of a serial are older than everything.
is(value(q{INSERT INTO events VALUES (1, 'serial'), (2147483647, 'serial')} . '; ' . ($deletion =~ s/2026-10-15/2026-10-16/r) . q{;
		SELECT count(*) FILTER (WHERE kind = 'serial'), min(snowflake_timestamp(id)) FILTER (WHERE kind <> 'serial') FROM events}),
	'2|2026-10-16 00:00:00+00', 'a deletion by age keeps the rows of a serial');

$node->stop;
done_testing();
