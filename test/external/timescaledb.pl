# TimescaleDB: the recipe of doc/ranges.md does what it shows, and commands of snowflake_admin are
# for its tables, or refuse them.  Debian has it for 17, without what its makers license otherwise:
# policies, continuous aggregates and compression.  test/external/citus.pl says how to test with
# another one.
#
# Packages: postgresql-@MAJOR@-timescaledb

use SnowflakeTest;

plan skip_all => 'TimescaleDB is not installed: see the head of this test' unless get_extension('timescaledb');

my $node = server_in_utc('timescaledb', <<EOC);
shared_preload_libraries = 'timescaledb'
timescaledb.telemetry_level = off
timescaledb.max_background_workers = 0
snowflake.shard = 5
EOC

run_examples($node, 'postgres', blocks_in('doc/ranges.md', 'TimescaleDB'));
$node->sql(q{
	INSERT INTO events (id, kind)
	SELECT snowflake_id(t, 5, 0), 'minute'
	FROM generate_series('2026-11-01 00:00Z'::timestamptz, '2026-11-05 23:59Z', '1 minute') AS t;
	INSERT INTO events (kind) VALUES ('now')});

# Which of these chunks are read, by their numbers.  All is 1 to 7, the last of which is that of now.
my %read = (
	q{SELECT * FROM events WHERE id < snowflake_min_id('2026-11-02 12:00Z')} => '1 2',
	q{SELECT * FROM events WHERE id >= snowflake_min_id(now() - interval '1 minute')} => '7',
	q{EXECUTE since(now() - interval '1 minute')} => '7',
	q{EXECUTE one(snowflake_min_id('2026-11-02 12:00Z'))} => '2',
	q{SELECT * FROM events WHERE snowflake_timestamp(id) < '2026-11-02 12:00Z'} => '1 2 3 4 5 6 7');
foreach my $query (sort keys %read)
{
	my $plan = $node->sql(qq{
		ANALYZE events;
		SET plan_cache_mode = force_generic_plan;
		PREPARE since(timestamptz) AS SELECT * FROM events WHERE id >= snowflake_min_id(\$1);
		PREPARE one(bigint) AS SELECT * FROM events WHERE id = \$1;
		EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query});
	is(join(' ', sort { $a <=> $b } $plan =~ /_hyper_\d+_(\d+)_chunk \(/g), $read{$query}, "only these chunks are read: $query");
}
is($node->sql(<<'EOS'), join("\n", map { "2026-11-0$_ 00:00:00+00|1440" } 1 .. 5), 'time_bucket() counts days');
SELECT time_bucket('1 day', snowflake_timestamp(id)) AS day, count(*) FROM events
WHERE id < snowflake_min_id('2026-11-06Z') GROUP BY day ORDER BY day
EOS
is($node->sql(q{SELECT count(*) FROM drop_chunks('events', older_than => snowflake_min_id('2026-11-03Z'))}), 2,
	'drop_chunks() takes an ID');
is($node->sql('SELECT min(snowflake_timestamp(id))::date FROM events'), '2026-11-02', 'chunks before an ID are dropped');
is($node->sql(<<EOS), 't', 'a row that is inserted now is in a chunk');
SELECT tableoid::regclass <> 'events'::regclass FROM events WHERE kind = 'now'
EOS

SKIP:
{
	skip 'this TimescaleDB has no policies', 4 if $node->sql('SHOW timescaledb.license') eq 'apache';

	$node->sql(q{
		CREATE MATERIALIZED VIEW events_per_day WITH (timescaledb.continuous) AS
		SELECT time_bucket(724775731200000, id) AS since, count(*) FROM events GROUP BY since WITH NO DATA;
		SELECT add_continuous_aggregate_policy('events_per_day', start_offset => 90 * 724775731200000,
			end_offset => 724775731200000, schedule_interval => interval '1 hour');
		ALTER TABLE events SET (timescaledb.compress);
		SELECT add_compression_policy('events', compress_after => 7 * 724775731200000);
		SELECT add_retention_policy('events', drop_after => 90 * 724775731200000);
		INSERT INTO events (id, kind) SELECT snowflake_id(now() - n * interval '1 day', 5, 1), 'day' FROM generate_series(1, 99) n;
		CALL refresh_continuous_aggregate('events_per_day', NULL, NULL)});
	$node->sql("CALL run_job($_)") foreach split /\n/, $node->sql(q{
		SELECT job_id FROM timescaledb_information.jobs WHERE hypertable_name IN ('events', 'events_per_day')
			AND proc_name LIKE 'policy%' ORDER BY proc_name <> 'policy_refresh_continuous_aggregate', job_id});
	is($node->sql(q{SELECT sum(count) > 90 FROM events_per_day}), 't', 'a continuous aggregate counts');
	is($node->sql(q{SELECT count(*) FILTER (WHERE is_compressed) > 80, bool_or(is_compressed
			AND range_end_integer > snowflake_min_id(now() - interval '7 days')) FROM timescaledb_information.chunks
			WHERE hypertable_name = 'events'}), 't|f', 'chunks older than a week are compressed');
	is($node->sql(q{SELECT count(*) FROM events WHERE id < snowflake_min_id(now() - interval '91 days')}), 0,
		'chunks older than 90 days are dropped');
	is($node->sql(q{SELECT count(*) FROM events WHERE kind = 'day' AND id > snowflake_min_id(now() - interval '90 days')}), 89,
		'... and no others');
}

# Commands of snowflake_admin
$node->sql(q{
	CREATE EXTENSION snowflake_admin;
	CREATE TABLE serials (id bigserial PRIMARY KEY, kind text);
	CREATE TABLE identities (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text);
	CREATE TABLE owns (id bigserial PRIMARY KEY, kind text);
	CREATE TABLE narrow (id serial PRIMARY KEY, kind text)});
$node->sql("SELECT create_hypertable('$_', by_range('id', 1000)); INSERT INTO $_ (kind) SELECT 'old' FROM generate_series(1, 3000)")
  foreach qw(serials identities owns narrow);
is($node->sql(q{SELECT string_agg(concat_ws(' ', tab, obstacle), '; ' ORDER BY tab::text) FROM snowflake_keys()}),
	'events; identities; narrow public.narrow.id is integer; owns; serials', 'keys of hypertables, and none of catalogs');
foreach my $case ([ serials => '' ], [ identities => '' ], [ owns => ', own_sequence => true' ])
{
	my ($table, $argument) = @$case;
	my $insert = "INSERT INTO $table (kind) VALUES ('new') RETURNING snowflake_shard(id), id > (SELECT max(id) FROM $table)";

	$node->sql("CALL snowflake_move('$table'$argument)");
	is($node->sql($insert), '5|t', "snowflake_move() of hypertable $table");
	$node->sql("CALL snowflake_move_back('$table')");
	is($node->sql($insert), '5|t', '... and snowflake_move_back()');
	is($node->sql("SELECT attidentity FROM pg_attribute WHERE attrelid = '$table'::regclass AND attname = 'id'"), 'd',
		'... to an identity');
	is($node->sql("SELECT count(*), count(DISTINCT id) FROM $table"), '3002|3002', '... with all rows');
}
my $chunk = $node->sql('SELECT tableoid::regclass FROM events LIMIT 1');
foreach my $case ([ widen => q{'narrow', 'id'} ], [ renumber => q{'events', 5, 9} ], [ renumber => qq{'$chunk', 5, 9} ],
	[ partition => q{'events', 'day'} ])
{
	my ($name, $arguments) = @$case;
	fails_with($node, "CALL snowflake_$name($arguments, dry_run => $_)",
		qr/^55000 cannot call snowflake_$name\(\) for table \S+ of TimescaleDB/,
		"snowflake_$name($arguments) is refused, with dry_run => $_") foreach 'true', 'false';
}
$node->sql(q{
	CREATE TABLE copied (LIKE events INCLUDING ALL);
	INSERT INTO copied SELECT * FROM events;
	CALL snowflake_renumber('copied', 5, 9)});
$node->sql(q{SELECT create_hypertable('copied', by_range('id', 724775731200000), migrate_data => true)});
is($node->sql('SELECT count(*) FILTER (WHERE snowflake_shard(id) = 9) = (SELECT count(*) FROM events) FROM copied'), 't',
	'a copy is renumbered, and becomes a hypertable');

$node->stop;
done_testing();
