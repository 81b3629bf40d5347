# Queries for ranges of time: the recipes of doc/ranges.md do what they show, indexes serve
# what the text says, and queries read the partitions of their times.

use SnowflakeTest;

my $node = server_in_utc('ranges', "autovacuum = off\nmax_parallel_workers_per_gather = 0\n");
$node->sql('CREATE EXTENSION snowflake; CREATE DATABASE documented');
$node->safe_psql('documented', 'CREATE EXTENSION snowflake');

# --- partitions ------------------------------------------------------------------

my ($logs) = blocks_in('doc/ranges.md', 'Partitions');
run_examples($node, 'documented', map { blocks_in('doc/ranges.md', $_) } 'Partitions', 'Dropping old ones',
	'An existing table');
is($node->safe_psql('documented', q{
		SELECT string_agg(partition::text, ' ' ORDER BY since) ~ '^photos_old photos_\d{8}'
		FROM snowflake_partitions('photos')}),
	't', 'a table that was in use is the first partition');

# The nightly job, from a file and by a pg_cron that only notes its jobs
my ($file, $jobs) = blocks_in('doc/ranges.md', 'The nightly job');
run_examples($node, 'documented', $file);
$node->safe_psql('documented', q{
	CREATE SCHEMA cron;
	CREATE TABLE cron.job (jobid bigserial, jobname text, schedule text, command text);
	CREATE FUNCTION cron.schedule(job_name text, schedule text, command text) RETURNS bigint LANGUAGE sql
	AS 'INSERT INTO cron.job (jobname, schedule, command) VALUES ($1, $2, $3) RETURNING jobid'});
run_examples($node, 'documented', $jobs);
my @jobs = split /\n/, $node->safe_psql('documented', 'SELECT command FROM cron.job');
is(join(";\n", @jobs, ''), $file->{code}, 'the jobs of pg_cron are the calls of the file');
$node->command_ok([ 'psql', '-Xq', '-d', $node->connstr('documented'), '-c', $_ ], "as a job: $_") foreach @jobs;
$node->command_fails_like([ 'psql', '-Xq', '-d', $node->connstr('documented'), '-c', join '; ', @jobs ],
	qr/cannot run inside a transaction block/, '... and all in one job fail');

# By days
run_examples($node, 'postgres', blocks_in('doc/ranges.md', 'Time ranges and partitions'), $logs);
$node->sql(q{
	CREATE EXTENSION snowflake_admin;
	CALL snowflake_make_partitions('logs', '0');
	SELECT format('CREATE TABLE logs_2026110%s PARTITION OF logs FOR VALUES FROM (%s) TO (%s)', day,
		snowflake_min_id(format('2026-11-0%sZ', day)::timestamptz),
		snowflake_min_id(format('2026-11-0%sZ', day + 1)::timestamptz)) FROM generate_series(2, 5) AS day \gexec
	INSERT INTO logs SELECT id, kind FROM events
	WHERE id >= snowflake_min_id('2026-11-02Z') AND id < snowflake_min_id('2026-11-06Z');
	ANALYZE logs});

my $id = $node->sql(q{SELECT id FROM logs WHERE id >= snowflake_min_id('2026-11-03Z') LIMIT 1});
my $generic = 'SET plan_cache_mode = force_generic_plan;';
my $today = $node->sql(q{SELECT to_char(now(), '"logs_"YYYYMMDD')});
my $all = $node->sql(q{SELECT string_agg(partition::text, ' ' ORDER BY since) FROM snowflake_partitions('logs')});

# Queries, the partitions that they read, and what comes before them
foreach my $case (
	[ q{SELECT * FROM logs WHERE id > snowflake_min_id('2026-11-04Z') AND id < snowflake_min_id('2026-11-04 13:00Z')},
		'logs_20261104' ],
	[ q{EXECUTE since('2026-11-04 12:00Z', '2026-11-05 12:00Z')}, 'logs_20261104 logs_20261105',
		"$generic PREPARE since (timestamptz, timestamptz) AS
			SELECT * FROM logs WHERE id >= snowflake_min_id(\$1) AND id < snowflake_min_id(\$2);" ],
	[ "EXECUTE these('{$id}')", $all, "$generic PREPARE these (bigint[]) AS SELECT * FROM logs WHERE id = ANY (\$1);" ],
	[ "SELECT * FROM logs WHERE id >= snowflake_min_id(date_trunc('day', now(), 'UTC'))
			AND id < snowflake_min_id(date_trunc('day', now(), 'UTC') + interval '1 day')", $today ],
	[ q{SELECT * FROM logs WHERE snowflake_timestamp(id) >= '2026-11-03Z'}, $all ])
{
	my ($query, $partitions, $before) = @$case;
	my %seen;
	is(join(' ', grep { !$seen{$_}++ } plan_of($node, $query, $before) =~ /^[^\n]* on (logs_\d{8})/mg), $partitions,
		"the partitions that this reads: $query");
}

# --- indexes -----------------------------------------------------------------------

$node->sql(q{CREATE TABLE visits (id bigint NOT NULL DEFAULT next_id(5), path text);
	INSERT INTO visits (id, path)
	SELECT snowflake_id(t, 5, 0), '/'
	FROM generate_series('2026-11-13Z'::timestamptz, '2026-11-19 23:59:59Z', '1 second') AS t});
run_examples($node, 'postgres', blocks_in('doc/ranges.md', 'The rule', 'Pages', 'Reading what is new',
		'Deleting old rows', 'Views'));
$node->sql('CREATE INDEX visits_brin ON visits USING brin (id) WITH (autosummarize = on)');
# In slices
my ($deletion) = map { $_->{code} } blocks_in('doc/ranges.md', 'Deleting old rows');
is($node->sql('SELECT count(*) FROM events'), 62000, 'a deletion deletes 10,000 rows at once');
# Numbers of a serial are older than everything, and the recipe has a lower bound.
$node->sql(q{INSERT INTO events VALUES (1, 'serial'), (2147483647, 'serial')});
$node->sql($deletion) foreach 1 .. 2;
is($node->sql('SELECT count(*), min(snowflake_timestamp(id)) FROM events WHERE id > 2147483647'),
	'51840|2026-10-15 00:00:00+00', 'the rows before a time are deleted, and no others');
is($node->sql(q{SELECT count(*) FROM events WHERE kind = 'serial'}), 2, 'a deletion by age keeps the rows of a serial');

# Which index serves what the text says
$node->sql("VACUUM ANALYZE $_") foreach 'events', 'visits';
my $bound = qr/Index Cond: \(?\(id [<>]=? '\d{19}'::bigint\)/;
my $key = qr/Index Scan using events_pkey on events\n +Index Cond: \(id >= snowflake_min_id\(/;
my $slow = q{SELECT * FROM events WHERE snowflake_timestamp(id) >= '2026-11-19Z'};
like(plan_of($node, $slow, 'BEGIN; DROP INDEX events_created_at;'), qr/^Seq Scan on events/,
	'a condition on snowflake_timestamp(id) is not served by the primary key');
foreach my $case (
	[ $slow, qr/^Index Scan using events_created_at on events/ ],
	[ q{SELECT * FROM events WHERE id >= snowflake_min_id('2026-11-01Z') AND id < snowflake_min_id('2026-11-08Z')},
		qr/^Index Scan using events_pkey on events\n +$bound AND \(id < / ],
	[ q{EXECUTE since('2026-11-19Z')}, $key,
		"$generic PREPARE since (timestamptz) AS SELECT * FROM events WHERE id >= snowflake_min_id(\$1);" ],
	[ q{SELECT day, n FROM generate_series('2026-11-18Z'::timestamptz, '2026-11-21Z', '24 hours') AS day,
			LATERAL (SELECT count(*) AS n FROM events
				WHERE id >= snowflake_min_id(day) AND id < snowflake_min_id(day + interval '24 hours')) AS that_day},
		qr/Index Only Scan using events_pkey on events\n +Index Cond: \(\(id >= snowflake_min_id\(day/ ],
	[ q{SELECT count(*) FROM visits
			WHERE id >= snowflake_min_id('2026-11-15 12:00Z') AND id < snowflake_min_id('2026-11-15 13:00Z')},
		qr/-> +Bitmap Index Scan on visits_brin/ ])
{
	my ($query, $plan, $before) = @$case;
	like(plan_of($node, $query, $before), $plan, "an index serves $query");
}

done_testing();
