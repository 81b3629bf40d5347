# Queries for ranges of time: the recipes of doc/ranges.md do what they show, indexes serve
# what the text says, and queries read the partitions of their times.  IDs that are ahead
# of the clock need partitions, too.

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
	CREATE VIEW shown_logs AS SELECT id, snowflake_timestamp(id) AS created_at, kind FROM logs;
	ANALYZE logs});

my $id = value(q{SELECT id FROM logs WHERE id >= snowflake_min_id('2026-11-03Z') LIMIT 1});
my $generic = 'SET plan_cache_mode = force_generic_plan;';
my $midnight = q{date_trunc('day', now(), 'UTC')};
my $today = value(qq{SELECT to_char($midnight, '"logs_"YYYYMMDD')});
my $all = value(q{SELECT string_agg(partition::text, ' ' ORDER BY since) FROM snowflake_partitions('logs')});

# Queries, the partitions that they read, and what comes before them
foreach my $case (
	[ q{SELECT * FROM logs WHERE id > snowflake_min_id('2026-11-04Z') AND id < snowflake_min_id('2026-11-04 13:00Z')},
		'logs_20261104' ],
	[ "SELECT * FROM logs WHERE id = $id", 'logs_20261103' ],
	[ q{EXECUTE since('2026-11-04 12:00Z', '2026-11-05 12:00Z')}, 'logs_20261104 logs_20261105',
		"$generic PREPARE since (timestamptz, timestamptz) AS
			SELECT * FROM logs WHERE id >= snowflake_min_id(\$1) AND id < snowflake_min_id(\$2);" ],
	[ "EXECUTE these('{$id}')", $all, "$generic PREPARE these (bigint[]) AS SELECT * FROM logs WHERE id = ANY (\$1);" ],
	[ "SELECT * FROM logs
			WHERE id >= snowflake_min_id($midnight) AND id < snowflake_min_id($midnight + interval '1 day')",
		$today ],
	[ q{SELECT * FROM shown_logs WHERE id < snowflake_min_id('2026-11-03Z')}, 'logs_20261102' ],
	[ q{SELECT * FROM shown_logs WHERE created_at >= '2026-11-03Z'}, $all ])
{
	my ($query, $partitions, $before) = @$case;
	my %seen;
	is(join(' ', grep { !$seen{$_}++ } plan_of($node, $query, $before) =~ /^[^\n]* on (logs_\d{8})/mg), $partitions,
		"the partitions that this reads: $query");
}

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
# In slices
my ($deletion) = map { $_->{code} } blocks_in('doc/ranges.md', 'Deleting old rows');
is(value('SELECT count(*) FROM events'), 62000, 'a deletion deletes 10,000 rows at once');
# Numbers of a serial are older than everything, and the recipe has a lower bound.
value(q{INSERT INTO events VALUES (1, 'serial'), (2147483647, 'serial')});
value($deletion) foreach 1 .. 2;
is(value('SELECT count(*), min(snowflake_timestamp(id)) FROM events WHERE id > 2147483647'),
	'51840|2026-10-15 00:00:00+00', 'the rows before a time are deleted, and no others');
is(value(q{SELECT count(*) FROM events WHERE kind = 'serial'}), 2, 'a deletion by age keeps the rows of a serial');
is(value(q{SELECT created_at FROM recent_events WHERE id < snowflake_min_id('2026-11-01 00:02Z') ORDER BY id}),
	"2026-11-01 00:00:00+00\n2026-11-01 00:01:00+00", 'a view shows the times of rows that are found by their IDs');

# Which index serves what the text says
value("VACUUM ANALYZE $_") foreach 'events', 'visits';
my $bound = qr/Index Cond: \(?\(id [<>]=? '\d{19}'::bigint\)/;
my $key = qr/Index Scan using events_pkey on events\n +Index Cond: \(id >= snowflake_min_id\(/;
my $slow = q{SELECT * FROM events WHERE snowflake_timestamp(id) >= '2026-11-19Z'};
like(plan_of($node, $slow, 'BEGIN; DROP INDEX events_created_at;'), qr/^Seq Scan on events/,
	'a condition on snowflake_timestamp(id) is not served by the primary key');
foreach my $case (
	[ $slow, qr/^Index Scan using events_created_at on events/ ],
	[ q{SELECT kind FROM recent_events WHERE created_at >= '2026-11-19 12:00Z'},
		qr/^Index Scan using events_created_at on events/ ],
	[ q{SELECT * FROM events WHERE id >= snowflake_min_id('2026-11-01Z') AND id < snowflake_min_id('2026-11-08Z')},
		qr/^Index Scan using events_pkey on events\n +$bound AND \(id < / ],
	[ q{SELECT * FROM events WHERE id >= snowflake_min_id(now() - interval '24 hours')}, $key ],
	[ q{EXECUTE since('2026-11-19Z')}, $key,
		"$generic PREPARE since (timestamptz) AS SELECT * FROM events WHERE id >= snowflake_min_id(\$1);" ],
	[ q{SELECT id, kind FROM events WHERE id < 4034187269224010752 ORDER BY id DESC LIMIT 3},
		qr/^Limit\n +-> +Index Scan Backward using events_pkey on events\n +$bound/ ],
	[ q{SELECT id FROM events WHERE kind = 'hour' AND id < snowflake_min_id('2026-11-01Z') ORDER BY id DESC LIMIT 20},
		qr/Index Only Scan Backward using events_kind_id_idx .*\n +Index Cond: \(\(kind = 'hour'::text\) AND \(id < /,
		'BEGIN; CREATE INDEX ON events (kind, id);' ],
	[ q{SELECT count(*) FROM events WHERE id >= snowflake_min_id('2026-11-17Z')},
		qr/^Aggregate\n +-> +Index Only Scan using events_pkey on events\n +$bound/ ],
	[ q{SELECT day, n FROM generate_series('2026-11-18Z'::timestamptz, '2026-11-21Z', '24 hours') AS day,
			LATERAL (SELECT count(*) AS n FROM events
				WHERE id >= snowflake_min_id(day) AND id < snowflake_min_id(day + interval '24 hours')) AS that_day},
		qr/Index Only Scan using events_pkey on events\n +Index Cond: \(\(id >= snowflake_min_id\(day/ ],
	[ q{SELECT created_at, kind FROM recent_events WHERE id < snowflake_min_id('2026-11-02Z')},
		qr/^Index Scan using events_pkey on events\n +$bound AND \(id < / ],
	[ q{SELECT count(*) FROM visits
			WHERE id >= snowflake_min_id('2026-11-15 12:00Z') AND id < snowflake_min_id('2026-11-15 13:00Z')},
		qr/-> +Bitmap Index Scan on visits_brin/ ])
{
	my ($query, $plan, $before) = @$case;
	like(plan_of($node, $query, $before), $plan, "an index serves $query");
}

# Days are those of UTC in any session, also in one with a day of 25 hours: New
# York has one on 2026-11-01, the invented zone on 2026-11-18.
foreach my $zone ('America/New_York', 'EST5EDT,M3.2.0,M11.3.3')
{
	local $ENV{PGTZ} = $zone;
	run_examples($node, 'postgres', blocks_in('doc/ranges.md', 'Counting per day'));
}

$node->stop;
done_testing();
