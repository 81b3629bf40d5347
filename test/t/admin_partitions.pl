# snowflake_make_partitions(), snowflake_drop_partitions() and snowflake_partitions():
# partitions are whole units of UTC in any time zone, for any kind of table, and are
# made and dropped beside sessions that write, beside other calls, and again after
# calls that were killed.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('partitions', 'load');
$node->sql('CREATE EXTENSION snowflake_admin CASCADE');

# Make a partition by hand.  Without a time it has no bound there.
my $part = q{
	CREATE FUNCTION part(tab text, name text, since timestamptz, until timestamptz) RETURNS void
	LANGUAGE plpgsql AS $$ BEGIN
		EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s)', name, tab,
			coalesce(snowflake_min_id(since)::text, 'MINVALUE'), coalesce(snowflake_min_id(until)::text, 'MAXVALUE'));
	END $$};
my $today = q{date_trunc('day', now(), 'UTC')};
$node->safe_psql($_, $part) foreach 'postgres', 'load';

# The NOTICEs of a call, which are commands.  If the call fails, that ends the test, as for any other SQL here.
sub commands_of
{
	my ($call) = @_;
	my ($status, undef, $said) = $node->psql('postgres', $call);

	if ($status != 0)
	{
		diag "$call\n$said";
		die 'a call failed';
	}
	return join "\n", $said =~ /NOTICE:  (.*)/g;
}

# What a call says, its error included.  If it says something else, the call is shown.
sub call_says
{
	my ($call, $pattern, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return like(said($call, 'postgres'), $pattern, $name) || diag $call;
}

# The same for what a call shows as its commands
sub call_shows
{
	my ($call, $pattern, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return like(commands_of($call), $pattern, $name) || diag $call;
}

my $nothing = qr/\A\z/;

sub partitions
{
	my ($table, $layout) = @_;
	return $node->sql("SELECT * FROM snowflake_partitions('$table'" . ($layout ? ", '$layout'" : '') . ')');
}

# How many of a table's partitions, beside the first one, are whole units that begin
# where the one before ends?
sub whole_units
{
	my ($table, $unit) = @_;
	return $node->sql("
		SELECT count(*) FILTER (WHERE since = date_trunc('$unit', since, 'UTC') AND since = before
			AND until = (since AT TIME ZONE 'UTC' + interval '1 $unit') AT TIME ZONE 'UTC'), count(*)
		FROM (SELECT *, lag(until) OVER (ORDER BY since) AS before FROM snowflake_partitions('$table')) AS p
		WHERE before IS NOT NULL");
}

# --- a long max_lead --------------------------------------------------------------

# PostgreSQL shows long ones with six digits and an exponent.
foreach my $case ([ '1234567ms', 1234567 ], [ '1000001s', 1000001000 ], [ '36525d', 3155760000000 ],
	[ '1h', 3600000 ], [ '1s', 1000 ], [ '1.5ms', 1.5 ], [ '20us', 0.02 ], [ '0', 0 ])
{
	my ($lead, $msecs) = @$case;
	is(join('', ($node->psql('postgres', "
			LOAD 'snowflake';
			SET snowflake.max_lead = '$lead';
			SELECT abs(extract(epoch FROM snowflake_admin.time_setting('max_lead')) * 1000 - $msecs) <= $msecs / 1e5"))[1, 2]), 't',
		"a max_lead of $lead is read as an interval");
}
is($node->safe_psql('postgres', q{SELECT snowflake_admin.time_setting('max_lead')}), '00:00:01',
	'... also in a session that has not loaded the library');
is(join('', ($node->psql('postgres', q{
		SET client_min_messages = warning;
		CREATE TABLE logs (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
		LOAD 'snowflake';
		SET snowflake.max_lead = '1234567ms';
		CALL snowflake_make_partitions('logs', unit => 'day');
		SELECT count(*) FROM snowflake_check() WHERE object ~ 'logs'}))[1, 2]), 0,
	'partitions are made and checked with a max_lead of seven digits');
is(join('', ($node->psql('postgres', q{
		SET client_min_messages = warning;
		CREATE TABLE leading_logs (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
		LOAD 'snowflake';
		SET snowflake.max_lead = '10 d';
		CALL snowflake_make_partitions('leading_logs', '0', 'day');
		SELECT max(until) >= now() + interval '11 days' FROM snowflake_partitions('leading_logs')}))[1, 2]), 't',
	'... as far as IDs may be ahead of the clock');

# --- units and bounds ------------------------------------------------------------

# Zones where a day has 23.5 hours, and where midnights are missing
my $lord_howe = 'Australia/Lord_Howe';
foreach my $case (
	[ 'hour', $lord_howe, 72, 73, 'YYYYMMDDHH24' ],
	[ 'day', 'America/Sao_Paulo', 3, 3, 'YYYYMMDD' ],
	[ 'week', $lord_howe, 1, 1, 'YYYYMMDD' ],
	[ 'month', $lord_howe, 1, 1, 'YYYYMM' ],
	[ 'year', $lord_howe, 1, 1, 'YYYY' ])
{
	my ($unit, $zone, $least, $most, $form) = @$case;

	$node->sql("
		DROP TABLE IF EXISTS logs;
		CREATE TABLE logs (id bigint PRIMARY KEY DEFAULT next_id(5), kind text) PARTITION BY RANGE (id);
		SET timezone = '$zone';
		CALL snowflake_make_partitions('logs', unit => '$unit')");
	my ($whole, $all) = split /\|/, whole_units('logs', $unit);
	# The hour or day may change during the call, and a week or a month may end soon.
	ok($whole == $all && $all >= $least && $all <= $most + 1, "partitions are a $unit of UTC each, in time zone $zone")
	  or diag("$whole of $all\n" . partitions('logs'));
	is($node->sql("
			SELECT bool_and(partition::text = 'logs_' || to_char(since, '$form')),
				min(since) = date_trunc('$unit', now()),
				max(until) >= greatest(now() + '3 days', date_trunc('$unit', now()) + '2 $unit')
			FROM snowflake_partitions('logs')"),
		't|t|t', 'they have the names of their times, and last from now for three days and for a whole unit');
	call_shows(q{CALL snowflake_make_partitions('logs')}, $nothing, 'another call knows the unit, and does nothing');
}

# The newest partition tells the unit.
$node->sql(q{
	CREATE TABLE changed (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	CALL snowflake_make_partitions('changed', unit => 'month');
	CALL snowflake_make_partitions('changed', '65 days', unit => 'day')});
my $longer = q{CALL snowflake_make_partitions('changed', '70 days', dry_run => true%s)};
my $in_days = commands_of(sprintf $longer, q{, unit => 'day'});
like($in_days, qr/(CREATE TABLE.*){5}/s, 'partitions of days can follow those of months');
is(commands_of(sprintf $longer, ''), $in_days, '... and go on without a unit');

$node->sql(qq{
	CREATE TABLE old (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	SELECT part('old', 'old_table', NULL, date_trunc('month', now(), 'UTC') + interval '9 days 01:02:03.004');
	CALL snowflake_make_partitions('old', '1 year', unit => 'month');
	CREATE TABLE gap (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	SELECT part('gap', 'gap_later', $today + interval '30 hours', $today + interval '40 hours');
	CALL snowflake_make_partitions('gap', '2 days', 'day');
	CREATE TABLE never (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
	SELECT part('never', 'never_ends', '2026-01-01Z', NULL)});
is(whole_units('old', 'month') =~ s/(\d+)\|(\d+)/$2 - $1/re, 1,
	'the first partition begins in the middle of a month, where the last one ended');
is($node->sql(q{SELECT bool_and(partition::text = to_char(since, '"old_"YYYYMM')),
		to_char(min(since), 'DD HH24:MI:SS.MS')
		FROM snowflake_partitions('old') WHERE isfinite(since)}),
	't|10 01:02:03.004', 'it is named like a whole one, as all are, also in another year');
is($node->sql(q{SELECT partition, since FROM snowflake_partitions('old') LIMIT 1}), 'old_table|-infinity',
	'a partition without a lower bound is shown since -infinity');
like($node->sql(q{SELECT string_agg(until - since || '', ' ' ORDER BY since) FROM snowflake_partitions('gap')}),
	qr/^1 day 06:00:00 10:00:00 08:00:00/, 'gaps before and after a partition that somebody made are filled');
call_shows(q{CALL snowflake_make_partitions('never')}, $nothing, 'nothing is missing after one without an upper bound');

# --- kinds of tables -------------------------------------------------------------

# Everything that needs quoting or another schema, with a hostile search_path
$node->sql(q{
	CREATE SCHEMA "the Shard's";
	CREATE TABLE "the Shard's"."Photos of ""me"" %s" ("the Id" bigint PRIMARY KEY DEFAULT next_id(5))
	PARTITION BY RANGE ("the Id")});
hostile_schema($node, 'postgres');
my $hostile = 'SET search_path = evil, pg_catalog';
my $photos = q{$$"the Shard's"."Photos of ""me"" %s"$$};
my $planned = commands_of("$hostile; CALL public.snowflake_make_partitions($photos, unit => 'day', dry_run => true)");
is($node->sql("SELECT count(*) FROM snowflake_partitions($photos)"), 0, 'a dry run makes nothing');
$node->sql("$hostile; BEGIN; $planned; COMMIT");
call_shows("CALL snowflake_make_partitions($photos)", $nothing,
	'the commands that a dry run shows can be pasted, and make all partitions');
$node->sql("SELECT format('DROP TABLE %s', partition) FROM snowflake_partitions($photos) \\gexec");
is(commands_of("$hostile; CALL public.snowflake_make_partitions($photos, unit => 'day')"), $planned,
	'a call shows the commands that it executes');
$node->sql(qq{SELECT part($photos, \$\$"the Shard's"."Last year's"\$\$, '2025-01-01Z', '2025-01-02Z')});
call_shows("$hostile; CALL public.snowflake_drop_partitions($photos, '1 year')",
	qr/^DROP TABLE "the Shard's"."Last year's";$/m, 'they are dropped, too');

# Names that are long in bytes, or taken
my $long = "\xc3\xa4" x 30;
$node->sql(qq{
	CREATE TABLE "$long" (id bigint) PARTITION BY RANGE (id);
	CALL snowflake_make_partitions('"$long"');
	CREATE TABLE taken (id bigint) PARTITION BY RANGE (id);
	SELECT format('CREATE TABLE taken_%s (id bigint)', to_char(now(), 'YYYYMMDD')) \\gexec
	CALL snowflake_make_partitions('taken', '0')});
is($node->sql(qq{
		SELECT bool_and(octet_length(partition::text) - 2 <= 63 AND partition::text ~ '^"\xc3\xa4{27}_\\d{8}"\$')
		FROM snowflake_partitions('"$long"')}), 't', 'a long name is shortened by whole characters');
is($node->sql(q{
		SELECT string_agg(partition::text, ' ' ORDER BY since)
			= to_char(now(), '"taken_"YYYYMMDD"00"') || to_char(now() + interval '1 day', '" taken_"YYYYMMDD')
		FROM snowflake_partitions('taken')}), 't', q{another table's name is not taken}) or diag(partitions('taken'));

# Columns, row security and the rest
$node->sql(q{
	CREATE TABLE all_kinds (
		id bigint DEFAULT next_id(5), tenant int NOT NULL, nr bigint GENERATED ALWAYS AS IDENTITY,
		twice int GENERATED ALWAYS AS (tenant * 2) STORED, PRIMARY KEY (id, tenant)) PARTITION BY RANGE (id);
	CREATE INDEX ON all_kinds (twice);
	ALTER TABLE all_kinds REPLICA IDENTITY FULL, ENABLE ROW LEVEL SECURITY;
	ALTER TABLE all_kinds OWNER TO owner;
	GRANT CREATE ON SCHEMA public TO owner;
	SET ROLE owner;
	CALL snowflake_make_partitions('all_kinds');
	INSERT INTO all_kinds (tenant) VALUES (1), (2)});
is($node->sql('SELECT tenant, nr, twice FROM all_kinds ORDER BY id'), "1|1|2\n2|2|4",
	'partitions have identity and generated columns');
is($node->sql(q{
		SELECT DISTINCT relowner::regrole, relreplident, relrowsecurity
		FROM snowflake_partitions('all_kinds') JOIN pg_class ON oid = partition}),
	'owner|f|t', 'partitions have the owner, the replica identity and the row security of the table');

# What is kept for each partition, and known by the names of its indexes and statistics objects
$node->sql(q{
	CREATE TABLE tuned (id bigint PRIMARY KEY DEFAULT next_id(5), a int NOT NULL, b int, c text) PARTITION BY RANGE (id);
	SELECT part('tuned', 'tuned_first', NULL, date_trunc('day', now(), 'UTC'));
	ALTER TABLE tuned_first
		SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, toast.autovacuum_enabled = false);
	CREATE UNIQUE INDEX tuned_identity ON tuned (id, a);
	CREATE INDEX tuned_sum ON tuned ((a + b));
	CREATE STATISTICS tuned_both ON a, b FROM tuned;
	ALTER STATISTICS tuned_both SET STATISTICS 300;
	ALTER INDEX tuned_sum ALTER COLUMN 1 SET STATISTICS 400;
	ALTER TABLE tuned ALTER a SET STATISTICS 500, ALTER a SET (n_distinct = -0.5), REPLICA IDENTITY USING INDEX tuned_identity;
	CALL snowflake_make_partitions('tuned')});
is($node->sql(q{
		SELECT DISTINCT c.reloptions, t.reloptions, attstattarget, 'n_distinct=-0.5' = ANY (attoptions), c.relreplident,
			(SELECT indkey FROM pg_index WHERE indrelid = c.oid AND indisreplident),
			(SELECT stxstattarget FROM pg_statistic_ext WHERE stxrelid = c.oid),
			(SELECT a.attstattarget FROM pg_index JOIN pg_attribute AS a ON a.attrelid = indexrelid
				WHERE indrelid = c.oid AND indexprs IS NOT NULL)
		FROM snowflake_partitions('tuned') JOIN pg_class AS c ON c.oid = partition
		LEFT JOIN pg_class AS t ON t.oid = c.reltoastrelid
		JOIN pg_attribute ON attrelid = c.oid AND attname = 'a' WHERE isfinite(since)}),
	'{autovacuum_vacuum_scale_factor=0.01,fillfactor=70}|{autovacuum_enabled=false}|500|t|i|1 2|300|400',
	'partitions have the storage parameters of the newest one, and the options of columns, indexes and statistics');

# Layouts
my $own = 'timestamp:42 node:10 sequence:11 epoch:2020-01-01T00:00:00Z';
$node->sql(qq{
	CREATE SEQUENCE twitter_seq;
	SELECT snowflake_alter_sequence('twitter_seq', 'twitter');
	CREATE SEQUENCE own_seq AS bigint;
	SELECT snowflake_alter_sequence('own_seq', '$own');
	CREATE TABLE tweets (id snowflake PRIMARY KEY DEFAULT next_id(5, 'twitter_seq')) PARTITION BY RANGE (id);
	CREATE TABLE own (id bigint PRIMARY KEY DEFAULT next_id(5, 'own_seq', '$own')) PARTITION BY RANGE (id);
	CREATE TABLE told (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
	CALL snowflake_make_partitions('tweets');
	CALL snowflake_make_partitions('own');
	CALL snowflake_make_partitions('told', layout => 'discord');
	INSERT INTO tweets DEFAULT VALUES;
	INSERT INTO own DEFAULT VALUES});
foreach my $case ([ 'tweets', 'twitter' ], [ 'own', $own ], [ 'told', 'discord' ])
{
	my ($table, $layout) = @$case;
	is($node->sql("SELECT min(since) = date_trunc('day', now()) AND bool_and(until - since = '1 day')
			FROM snowflake_partitions('$table', '$layout')"), 't', "partitions are days in layout $layout");
	is(partitions($table), partitions($table, $layout), '... which is found') unless $table eq 'told';
}
fails_with($node, q{SELECT * FROM snowflake_partitions('told', 'trace')}, qr/^0A000/,
	'a layout without a time is refused');

# --- what is refused -------------------------------------------------------------

$node->sql(qq{
	CREATE TABLE plain (id bigint);
	CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
	CREATE TABLE by_two (id bigint, nr bigint) PARTITION BY RANGE (id, nr);
	CREATE TABLE by_day (day date) PARTITION BY RANGE (day);
	CREATE TABLE computed (id bigint) PARTITION BY RANGE ((id + 1));
	CREATE TABLE hourly (id bigint) PARTITION BY RANGE (id);
	SELECT part('hourly', 'hourly_1', $today, $today + interval '1 hour');
	CREATE TABLE forgotten (id bigint) PARTITION BY RANGE (id);
	SELECT part('forgotten', 'forgotten_since', $today - interval '1100 days', $today - interval '1099 days')});
fails_with($node, $_, qr/^42809 public.plain is not a partitioned table/, $_)
  foreach q{SELECT * FROM snowflake_partitions('plain')}, q{CALL snowflake_make_partitions('plain')},
  q{CALL snowflake_drop_partitions('plain', '1 day')};
fails_with($node, "SELECT * FROM snowflake_partitions('$_')",
	qr/^55000 table public.$_ is not partitioned by ranges of one/, "the key of table $_ is refused")
  foreach 'listed', 'by_two', 'by_day', 'computed';
fails_with($node, @$_, $_->[0])
  foreach [ q{CALL snowflake_make_partitions(NULL)}, qr/^22004/ ],
  [ q{CALL snowflake_drop_partitions('logs', NULL)}, qr/^22004/ ],
  [ q{CALL snowflake_make_partitions('logs', unit => 'quarter')},
	qr/^22023 unit must be hour, day, week, month or year, not 'quarter'/ ],
  [ q{CALL snowflake_make_partitions('logs', '-1 day')}, qr/^22023 ahead must be at least 0/ ],
  [ q{CALL snowflake_drop_partitions('logs', '-1 day')}, qr/^22023 older_than must be at least 0/ ],
  [ q{CALL snowflake_drop_partitions('hourly', '30')}, qr/^22023 older_than must be 0, or at least 01:00:00, not 00:00:30/ ],
  [ q{CALL snowflake_drop_partitions('never', '90')}, qr/^22023 older_than must be 0, or at least 1 day, not 00:01:30/ ],
  [ q{BEGIN; CALL snowflake_make_partitions('logs')}, qr/^2D000/ ],
  [ q{BEGIN; CALL snowflake_drop_partitions('logs', '1 day')}, qr/^2D000/ ],
  [ q{CALL snowflake_make_partitions('forgotten')},
	qr/^55000 table public.forgotten lacks \d+ partitions, which is more than 1000/ ];
$node->sql(q{CALL snowflake_make_partitions('forgotten', unit => 'month')});
like(whole_units('forgotten', 'month'), qr/^(\d+)\|(?!\1)/, 'a longer unit can be given instead');

# Creating 1000 partitions takes long, so another session keeps this call from its first one.
$node->sql(qq{
	CREATE TABLE late (id bigint) PARTITION BY RANGE (id);
	SELECT part('late', 'late_since', $today - interval '997 days', $today - interval '996 days')});
my $keeper = session($node);
$keeper->query_safe('BEGIN; LOCK TABLE late IN SHARE UPDATE EXCLUSIVE MODE');
fails_with($node, q{CALL snowflake_make_partitions('late', '4 days', tries => 1)},
	qr/^55000 table public.late lacks 1001 partitions/, 'no call creates more than 1000 partitions');
fails_with($node, q{CALL snowflake_make_partitions('late', '3 days', tries => 1)}, qr/^55P03 could not get the locks/,
	'... but it creates as many');
$keeper->quit;

# A key that tells no time, as it was moved back or never came from next_id()
$node->sql(q{
	CREATE TABLE returned (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	CREATE TABLE numbered (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
	CALL snowflake_make_partitions('returned');
	INSERT INTO returned DEFAULT VALUES});
my $partition = $node->sql('SELECT tableoid::regclass FROM returned');
call_says("CALL snowflake_move_back('returned', dry_run => $_)",
	qr/^WARNING:  new keys of table public.returned will not follow the clock
DETAIL:  Their rows will go into public.$partition until it has \d+ more\.
HINT:  Stop jobs that call snowflake_make_partitions\(\) and snowflake_drop_partitions\(\)\.
.*NOTICE:  ALTER TABLE/, "moving back a partition key warns, dry_run => $_") foreach 'true', 'false';
fails_with($node, $_, qr/^55000 the key of table public.\w+ does not contain the time/, $_)
  foreach q{CALL snowflake_make_partitions('returned')}, q{CALL snowflake_drop_partitions('numbered', '4 seconds')};
is($node->sql(q{SELECT count(*) FROM pg_attrdef JOIN pg_inherits ON inhrelid = adrelid
		WHERE inhparent = 'returned'::regclass}), 0, 'no partition has a default of its own after a move back');
$node->sql(q{ALTER TABLE returned ALTER id DROP IDENTITY; CALL snowflake_make_partitions('returned', '5 days')});
is($node->sql(q{SELECT max(until) >= now() + interval '5 days' FROM snowflake_partitions('returned')}), 't',
	'programs may supply the key themselves');

# A DEFAULT partition
$node->sql(q{
	CREATE TABLE caught (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	CREATE TABLE caught_rest PARTITION OF caught DEFAULT;
	INSERT INTO caught VALUES (7);
	CALL snowflake_make_partitions('caught', '0')});
is($node->sql(q{SELECT count(*), count(since) FROM snowflake_partitions('caught')}), '3|2',
	'partitions are made beside a DEFAULT partition, which has no times');
$node->sql(q{INSERT INTO caught VALUES (snowflake_min_id(now() + interval '3 days'))});
fails_with($node, q{CALL snowflake_make_partitions('caught')},
	qr/^55000 default partition public.caught_rest has rows of the partition that is missing/,
	'a DEFAULT partition with rows of the range is named');
my $missing = $node->sql(q{
	SELECT format('The first of them has the ID %s; the partition would have those from %s to %s.',
		(SELECT max(id) FROM caught), snowflake_min_id(day), snowflake_min_id(day + interval '1 day') - 1)
	FROM date_trunc('day', now() + interval '3 days') AS day});
call_says(q{CALL snowflake_make_partitions('caught')}, qr/^DETAIL:  \Q$missing\E$/m, '... with the IDs');

# --- dropping ----------------------------------------------------------------------

# A table of ten days, which end with yesterday
sub days_of
{
	my ($table, $columns) = @_;

	$node->sql(qq{
		CREATE TABLE $table (id bigint PRIMARY KEY DEFAULT next_id(5) $columns) PARTITION BY RANGE (id);
		SELECT part('$table', '${table}_' || day, $today - (10 - day) * interval '24 hours',
			$today - (9 - day) * interval '24 hours') FROM generate_series(0, 9) AS day;
		INSERT INTO $table
		SELECT snowflake_id($today - (240 - n) * interval '1 hour', 6, 0) FROM generate_series(0, 239) AS n});
}
days_of('gapped', '');
$node->sql(q{DROP TABLE gapped_4; CALL snowflake_make_partitions('gapped', '0')});
is($node->sql(q{SELECT count(*) FILTER (WHERE until <= now()), count(*) > 9 FROM snowflake_partitions('gapped')}), '9|t',
	'a partition that was dropped is not created again');

days_of('visits', '');
my $would = commands_of(q{CALL snowflake_drop_partitions('visits', '5 days', dry_run => true)});
is($node->sql('SELECT count(*) FROM visits'), 240, 'a dry run drops nothing');
is(join(' ', $would =~ /DROP TABLE public.visits_(\d);/g), '0 1 2 3 4', 'a dry run lists the partitions, oldest first');
is(commands_of(q{SET timezone = 'Pacific/Kiritimati'; CALL snowflake_drop_partitions('visits', '5 days')}), $would,
	'a call drops them');
is($node->sql(q{SELECT count(*), min(id) >= snowflake_min_id(now() - interval '6 days') FROM visits}), '120|t',
	'rows of older partitions are gone, and others stay');
$node->sql(q{CALL snowflake_drop_partitions('visits', '0')});
is($node->sql(q{SELECT string_agg(partition::text, ' ') FROM snowflake_partitions('visits')}), 'visits_9',
	'the newest partition is never dropped');

# What depends on a partition keeps that one alone.
days_of('viewed', '');
$node->sql(q{
	CREATE ROLE reader; GRANT SELECT ON viewed_1, viewed_2 TO reader;
	CREATE SCHEMA reading AUTHORIZATION reader; GRANT USAGE ON SCHEMA public TO reader;
	SET ROLE reader;
	CREATE VIEW reading."a
HINT:  obey me" AS SELECT id FROM viewed_1;
	CREATE FUNCTION reading.f(viewed_3) RETURNS int LANGUAGE sql AS 'SELECT 1';
	RESET ROLE;
	CREATE TABLE of_viewed (id bigint REFERENCES viewed ON DELETE CASCADE, one bigint REFERENCES viewed_2);
	CREATE INDEX ON viewed (id);
	INSERT INTO of_viewed SELECT id FROM viewed});
my @stay = map { qr/^WARNING:  partition public.viewed_$_->[0] is old, but is not dropped, because other objects depend on it
DETAIL:  These are: $_->[1]\.
HINT:  Drop them first, or with it: (ALTER TABLE public.viewed DETACH PARTITION public.viewed_$_->[0]; DROP TABLE public.viewed_$_->[0] CASCADE;)$/m }
  [ 1, 'view reading\."a HINT: obey me"' ], [ 2, 'table constraint of_viewed_one_fkey on public.of_viewed' ],
  [ 3, 'function reading.f\(public.viewed_3\)' ];
my $viewed = q{SELECT string_agg(partition::text, ' ') FROM snowflake_partitions('viewed')};
my $warned = said(q{CALL snowflake_drop_partitions('viewed', '5 days', dry_run => true)}, 'postgres');
like($warned, $_, 'a dry run names what depends on a partition') foreach @stay;
unlike($warned, qr/ERROR/, '... and does not fail');
my $failed = said(q{CALL snowflake_drop_partitions('viewed', '5 days')}, 'postgres');
like($failed, $_, 'a call names what depends on a partition') foreach @stay;
is($node->sql($viewed), join(' ', map { "viewed_$_" } 1, 2, 3, 5 .. 9), '... and drops all others');
is($node->sql('SELECT count(*) FROM of_viewed JOIN viewed USING (id)'), 192, '... and leaves alone what refers to those that stay');
fails_with($node, q{CALL snowflake_drop_partitions('viewed', '5 days')},
	qr/^2BP01 partitions of table public.viewed that are old, but were not dropped: 3/, '... and fails in the end');
my $kept_one = said(q{DELETE FROM of_viewed; CALL snowflake_drop_partitions('viewed', '8 days', keep => true)}, 'postgres');
unlike($kept_one, qr/old, but|ERROR/, 'what depends on a partition does not keep it from being detached');
$node->sql($failed =~ $_ ? $1 : die) foreach @stay[ 1, 2 ];
call_says(q{CALL snowflake_drop_partitions('viewed', '5 days')}, $nothing, 'what the hint says drops the partitions');

# Somebody makes a view while the call waits for its last locks.
days_of('late_view', '');
{
	my ($reader, $caller) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
	$reader->query_safe('BEGIN; SELECT count(*) FROM late_view_3');
	send_sql($caller, "CALL snowflake_drop_partitions('late_view', '5 days', tries => 1000);\n\\echo it is over\n");
	ok(wait_for(sub { $node->sql(q{SELECT to_regclass('late_view_2') IS NULL}) eq 't' }), 'a call waits for a partition');
	$reader->query_safe('CREATE VIEW of_late AS SELECT id FROM late_view_3; COMMIT');
	session_prints($caller, qr/it is over/);
	like($caller->{stderr}, qr/WARNING:  partition public.late_view_3 is old, .*\nDETAIL:  view public.of_late depends on table public.late_view_3\n.*ERROR:  partitions of table public.late_view .*: 1/s,
		'a view that is made meanwhile is named');
	$_->quit foreach $reader, $caller;
}
is($node->sql(q{SELECT count(*) FROM snowflake_partitions('late_view')}), 6, '... and others are dropped');

# Kept
days_of('detached', ', note text');
$node->sql(q{CREATE TABLE marks (detached_id bigint REFERENCES detached ON DELETE CASCADE);
	INSERT INTO marks SELECT max(id) FROM detached_2});
my $detach = q{CALL snowflake_drop_partitions('detached', '5 days', keep => true)};
call_says($detach,
	qr/ERROR:  removing partition "detached_2" violates foreign key constraint.*HINT: .* DELETE FROM public.marks WHERE /s,
	'a partition to which rows refer cannot be kept, whatever the foreign key says');
is($node->sql(q{SELECT count(*) FROM marks; DELETE FROM marks}), 1, '... and they stay');
call_shows($detach, qr/\A(?!.*(DROP|DELETE)).*DETACH PARTITION/s, 'partitions are detached, and not dropped');
is($node->sql(q{SELECT count(*), (SELECT count(*) FROM detached_0), (SELECT count(*) FROM detached_4)
		FROM snowflake_partitions('detached')}), '5|24|24', 'they stay as tables with their rows');

# Pending
days_of('pended', '');
{
	my $reader = $node->background_psql('postgres');
	$reader->query_safe('BEGIN; SELECT count(*) FROM pended');
	fails_with($node, q{SET lock_timeout = '100ms'; ALTER TABLE pended DETACH PARTITION pended_2 CONCURRENTLY},
		qr/^55P03/, 'DETACH ... CONCURRENTLY is interrupted');
	is($node->sql(q{SELECT count(*) FROM snowflake_partitions('pended')}), 9, 'what is pending detach is not listed');
	$reader->quit;
}
my $left = qr/^WARNING:  partition public.pended_2 is old, but is not dropped, because its detach is pending$/m;
call_says(q{CALL snowflake_drop_partitions('pended', '5 days')}, $left,
	'a partition that somebody has begun to detach is named');
is($node->sql(q{SELECT count(*), (SELECT count(*) FROM pended_2) FROM snowflake_partitions('pended')}), '5|24',
	'it stays, and others are dropped');
call_says(q{ALTER TABLE pended DETACH PARTITION pended_2 FINALIZE;
		CALL snowflake_drop_partitions('pended', '5 days')}, $nothing,
	'the hint completes its detaching, and nothing is left to be said');
is($node->sql('SELECT count(*) FROM pended_2'), 24, 'a table that has been detached stays');

# Somebody begins to detach a partition while the call waits for its first lock.
{
	my ($reader, $holder, $detacher, $caller) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 4;
	my $waiting = q{SELECT count(*) FROM pg_locks WHERE relation = 'pended'::regclass AND NOT granted};
	$reader->query_safe('BEGIN; SELECT count(*) FROM pended');
	$holder->query_safe('BEGIN; LOCK TABLE ONLY pended IN SHARE UPDATE EXCLUSIVE MODE');
	send_sql($detacher, 'ALTER TABLE pended DETACH PARTITION pended_5 CONCURRENTLY');
	ok(wait_for(sub { $node->sql($waiting) == 1 }), 'DETACH ... CONCURRENTLY waits');
	send_sql($caller, q{SET default_transaction_isolation = 'repeatable read';
		CALL snowflake_drop_partitions('pended', '0')});
	ok(wait_for(sub { $node->sql($waiting) == 2 }), 'the call waits behind it, when it knows what is old');
	$holder->query_safe('COMMIT');
	ok(session_prints($caller, qr/WARNING:  partition public.pended_5 is old, but is not dropped/),
		'it sees that the partition has been marked meanwhile');
	$reader->query_safe('COMMIT');
	$_->query('SELECT 1') foreach $detacher, $caller;
	unlike($_->{stderr}, qr/ERROR/, 'neither DETACH PARTITION nor snowflake_drop_partitions() gets an error') foreach $detacher, $caller;
	$_->quit foreach $reader, $holder, $detacher, $caller;
}
is($node->sql(q{SELECT count(*), (SELECT count(*) FROM pended_5) FROM snowflake_partitions('pended')}), '1|24',
	'the rows of that partition are there, and the others are dropped');

# Foreign keys
days_of('kept', ', original bigint REFERENCES kept DEFERRABLE INITIALLY DEFERRED');
$node->sql(q{
	CREATE TABLE notes (nr int, kept_id bigint REFERENCES kept);
	CREATE TABLE "no notes" (kept_id bigint REFERENCES kept);
	INSERT INTO notes SELECT 1, min(id) FROM kept_3 UNION SELECT 2, min(id) FROM kept_5;
	INSERT INTO "no notes" SELECT max(id) FROM kept});
my $bound = $node->sql("SELECT snowflake_min_id($today - interval '120 hours')");
my $delete = "DELETE FROM public.notes WHERE kept_id < $bound;";
my $hint = qr/HINT:  Delete such rows first: \Q$delete\E$/m;
call_says(q{CALL snowflake_drop_partitions('kept', '5 days', dry_run => true)},
	qr/WARNING:  rows refer to old rows of table public.kept\n$hint/,
	'a dry run warns of rows that refer to old ones, and shows what deletes them');
call_says(q{CALL snowflake_drop_partitions('kept', '5 days')},
	qr/ERROR:  removing partition "kept_3" violates foreign key constraint.*DETAIL: .*$hint/s,
	'a partition with rows to which others refer is named, and what deletes them is shown again');
foreach my $action ('RESTRICT', 'NO ACTION')
{
	$node->sql("ALTER TABLE notes DROP CONSTRAINT notes_kept_id_fkey, ADD FOREIGN KEY (kept_id) REFERENCES kept ON DELETE $action");
	my $reader = $node->background_psql('postgres');
	$reader->query_safe('BEGIN; SELECT FROM kept_3');
	call_says(q{CALL snowflake_drop_partitions('kept', '5 days', tries => 1)},
		qr/ERROR:  removing partition "kept_3" violates foreign key constraint/, "... before anybody is locked out, with ON DELETE $action");
	$reader->quit;
}
my $kept = q{
	SELECT min(partition::text), count(*) FROM snowflake_partitions('kept');
	SELECT string_agg(nr::text, ' ' ORDER BY nr) FROM notes};
is($node->sql($kept), "kept_3|7\n1 2",
	'older partitions are dropped, and neither that one nor the rows that refer to it');
$node->sql("$delete CALL snowflake_drop_partitions('kept', '5 days')");
is($node->sql($kept), "kept_5|5\n2", 'after this it is dropped, and newer rows stay');

# Foreign keys with actions.  A row that refers to nothing, as its tenant is NULL, stays as it is.
days_of('acted', ', tenant int DEFAULT 1, original bigint REFERENCES acted ON DELETE CASCADE, UNIQUE (tenant, id)');
$node->sql(q{
	CREATE TABLE gone_with (acted_id bigint REFERENCES acted ON DELETE CASCADE, n int);
	CREATE INDEX ON gone_with (acted_id);
	CREATE TABLE bills (nr int, acted_id bigint REFERENCES acted ON DELETE SET NULL);
	CREATE TABLE pairs (nr int, tenant int, acted_id bigint,
		FOREIGN KEY (tenant, acted_id) REFERENCES acted (tenant, id) ON DELETE SET NULL (acted_id));
	CREATE TABLE defaults (acted_id bigint DEFAULT 0 REFERENCES acted ON DELETE SET DEFAULT);
	CREATE TABLE changes (tab text, n bigint);
	CREATE FUNCTION count_changes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
		INSERT INTO changes SELECT TG_TABLE_NAME, count(*) FROM old; RETURN NULL; END';
	CREATE TRIGGER t AFTER DELETE ON gone_with REFERENCING OLD TABLE AS old EXECUTE FUNCTION count_changes();
	CREATE TRIGGER t AFTER UPDATE ON bills REFERENCING OLD TABLE AS old EXECUTE FUNCTION count_changes();
	INSERT INTO gone_with SELECT id, n FROM acted, generate_series(1, 500) AS n;
	INSERT INTO bills SELECT row_number() OVER (), id FROM acted;
	INSERT INTO pairs SELECT 1, 1, min(id) FROM acted UNION SELECT 2, NULL, min(id) FROM acted;
	INSERT INTO defaults SELECT min(id) FROM acted;
	SELECT format('ALTER TABLE defaults ALTER acted_id SET DEFAULT %s', max(id)) FROM acted \gexec
	UPDATE acted SET original = (SELECT min(id) FROM acted) WHERE id = (SELECT id FROM acted ORDER BY id DESC OFFSET 1 LIMIT 1)});
my @actions = ('DELETE FROM public.acted', 'UPDATE public.bills SET acted_id = NULL', 'DELETE FROM public.gone_with',
	'UPDATE public.defaults SET acted_id = DEFAULT', 'UPDATE public.pairs SET acted_id = NULL');
my $planned_actions = said(q{CALL snowflake_drop_partitions('acted', '5 days', dry_run => true)}, 'postgres');
unlike($planned_actions, qr/WARNING/, 'a dry run warns of no row that a foreign key takes care of');
like($planned_actions, qr/^NOTICE:  \Q$_\E WHERE (\w+ < \d+|\w+ >= \d+ AND \w+ < \d+)( AND tenant IS NOT NULL)?;$/m,
	"... but shows what it does: $_") foreach @actions;
is($node->sql('SELECT count(*), (SELECT count(*) FROM gone_with) FROM acted'), '240|120000', '... and changes nothing');
$node->sql(q{CALL snowflake_drop_partitions('acted', '5 days')});
is($node->sql(q{SELECT count(*) FROM snowflake_partitions('acted')}), 5, 'rows that refer to old ones hold up nothing');
is($node->sql(q{
		SELECT (SELECT count(*) FROM acted), (SELECT count(*) FROM gone_with),
			(SELECT count(*) = count(DISTINCT nr) AND count(*) = 240 AND count(acted_id) = 119 FROM bills),
			(SELECT string_agg(concat(nr, tenant, acted_id IS NOT NULL), ' ' ORDER BY nr) FROM pairs),
			(SELECT acted_id = (SELECT max(id) FROM acted) FROM defaults)}), '119|59500|t|11f 2t|t',
	'they are deleted, refer to nothing or to the default, as their foreign keys say, and others stay');
is($node->sql(q{SELECT tab, sum(n), max(n) <= 10000 FROM changes GROUP BY tab ORDER BY tab}),
	"bills|121|t\ngone_with|60500|t", 'this is done in slices, with triggers that need the search_path');

# A former table
$node->sql(q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text) PARTITION BY RANGE (id);
	CREATE TABLE deleted (n bigint);
	CREATE FUNCTION count_deleted() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS 'BEGIN
		INSERT INTO deleted SELECT count(*) FROM old;
		IF current_setting($$app.stop_after$$, true)::int <= (SELECT count(*) FROM deleted) THEN
			RAISE $$interrupted$$;
		END IF;
		RETURN NULL; END';
	CREATE TRIGGER count_deleted AFTER DELETE ON photos REFERENCING OLD TABLE AS old EXECUTE FUNCTION count_deleted()});
$node->sql(qq{
	SELECT part('photos', 'photos_old', NULL, $today);
	INSERT INTO photos SELECT n FROM generate_series(1, 10) AS n;
	INSERT INTO photos
	SELECT snowflake_id(now() - interval '130 days' + n * interval '5 min', 6, 0) FROM generate_series(1, 30000) AS n;
	ANALYZE photos_old;
	CALL snowflake_make_partitions('photos', unit => 'month')});
my $first = $node->sql(q{SELECT snowflake_min_id('2011-08-25Z')});
$bound = $node->sql(q{SELECT snowflake_min_id(date_trunc('day', now() - interval '50 days', 'UTC'))});
my $older = $node->sql("SELECT count(*) FROM photos WHERE id > 10 AND id < $bound");
call_shows(q{CALL snowflake_drop_partitions('photos', '50 days', dry_run => true)},
	qr/^rows of public.photos_old with id below \d+ stay until it is dropped.*
partition public.photos_old is not dropped, but its old rows are deleted
DELETE FROM public.photos WHERE id >= $first AND id < $bound;$/,
	'a dry run says which rows of a former table would be deleted, up to the beginning of a day, and which stay');
is($node->sql('SELECT count(*) FROM photos'), 30010, '... and deletes none');
call_shows(q{CALL snowflake_drop_partitions('photos', '50 days', keep => true)}, $nothing,
	'a call that keeps old partitions has nothing to do for a former table');
is($node->sql('SELECT count(*) FROM photos'), 30010, '... and deletes no row of it');
$node->sql(qq{
	CREATE TABLE frames (photo_id snowflake REFERENCES photos);
	CREATE TABLE gone (photo_id bigint REFERENCES photos ON DELETE CASCADE);
	INSERT INTO frames SELECT unnest(ARRAY[7, min(id) FILTER (WHERE id > $first), max(id)]) FROM photos;
	INSERT INTO gone TABLE frames});
$delete = "DELETE FROM public.frames WHERE photo_id >= $first AND photo_id < $bound;";
call_says("$hostile, public; CALL snowflake_drop_partitions('photos', '50 days'$_->[0])",
	qr/^$_->[1].*\nHINT:  Delete such rows first: \Q$delete\E$/ms,
	"$_->[2] what deletes rows that refer to old rows of a former table, where their foreign key does not")
  foreach [ ', dry_run => true', 'WARNING:  rows refer to old rows of table public.photos', 'a dry run shows' ],
  [ '', 'ERROR:  update or delete on table "photos_old" violates foreign key', 'a call fails, and shows' ];
is($node->sql('SELECT count(*) FROM photos'), 30010, '... and no row of the former table is deleted');
$node->sql("$delete TRUNCATE deleted");
my $stopped = q{SET app.stop_after = 3; CALL snowflake_drop_partitions('photos', '50 days')};
fails_with($node, $stopped, qr/^P0001 interrupted/, 'an error of a trigger ends the deleting of old rows of a former table')
  or diag $stopped;
is($node->sql('SELECT sum(n), count(*) FROM deleted'), '20000|2', '... and the slices before it stay deleted');
call_shows("$hostile, public; CALL snowflake_drop_partitions('photos', '50 days')",
	qr/^deleted @{[ $older - 20000 ]} rows of public.photos_old$/m,
	'the next call deletes the others, and says how many they were');
is($node->sql('SELECT max(n) FROM deleted'), 10000, 'no slice has more than 10,000 rows');
is($node->sql("SELECT count(*), count(*) FILTER (WHERE id <= 10), count(*) FILTER (WHERE id < $bound) FROM photos"),
	"@{[ 30010 - $older ]}|10|10", 'newer rows and numbers of a serial stay');
$node->sql(q{DROP TABLE frames; CALL snowflake_drop_partitions('photos', '0', trust_clock => true)});
is($node->sql(q{SELECT to_regclass('photos_old') IS NULL, count(*), (SELECT count(*) FROM gone) FROM photos}), 't|0|0',
	'when all of it is old, the former table is dropped as a whole, with what refers to it');

# Such a look at one partition, which is taken for each that is dropped, reads the bounds of no other.
like($node->sql(q{EXPLAIN (COSTS off) SELECT FROM snowflake_admin.ranges('logs') AS r WHERE r.partition = 'pg_class'::regclass}),
	qr/inhrelid = '1259'/, 'the bounds of one partition are looked up');

# --- a clock that can be wrong -----------------------------------------------------

# By a clock that is far ahead, all rows are old.  So they are by the right clock where nothing has
# been inserted for a long time.
sub day_partition
{
	my ($table, $days_ago, @ids) = @_;

	$node->sql(qq{
		SELECT part('$table', '${table}_$days_ago', $today - interval '24 hours' * $days_ago,
			$today - interval '24 hours' * ($days_ago - 1));
		INSERT INTO $table SELECT snowflake_id($today - interval '24 hours' * $days_ago + interval '1 hour', 6, 0)});
}
my $rows_of = sub { $node->sql("SELECT count(*) FROM $_[0]") };
my $parts_of = sub { $node->sql("SELECT count(*) FROM snowflake_partitions('$_[0]')") };
my $trust = qr/HINT:  Set the clock if it is wrong\. If it is right, call snowflake_\w+\(\) with trust_clock => true\.$/m;
$node->sql('CREATE TABLE jumped (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id)');
day_partition('jumped', $_) foreach 400 .. 402;
foreach my $more ('', ', dry_run => true')
{
	call_says("CALL snowflake_make_partitions('jumped'$more)",
		qr/^ERROR:  the partitions of table public.jumped end on [-\d]+ 00:00:00\+00, long before the clock's time
DETAIL:  By the clock it is .*, and the newest row is of [-\d]+ 01:00:00\+00\.\n$trust/m,
		"no partitions are made after a jump$more");
}
is($parts_of->('jumped'), 3, 'none has been made');
$node->sql(q{CALL snowflake_make_partitions('jumped', unit => 'month', trust_clock => true)});
cmp_ok($parts_of->('jumped'), '>', 15, '... until the clock is trusted');
call_shows(q{CALL snowflake_make_partitions('jumped')}, $nothing, 'then a call needs to trust nothing');
foreach my $more ('', ', dry_run => true', ', keep => true')
{
	call_says("CALL snowflake_drop_partitions('jumped', '30 days'$more)",
		qr/^ERROR:  all rows of table public.jumped are older than 30 days\n.*\n$trust/m,
		"not all partitions with rows are dropped$more");
}
$node->sql(q{INSERT INTO jumped VALUES (snowflake_min_id(now() + interval '25 hours'))});
call_says(q{CALL snowflake_drop_partitions('jumped', '30 days')}, qr/^ERROR:  all rows/m,
	'a row that is dated ahead is no evidence');
is($rows_of->('jumped'), 4, 'all rows are there');
$node->sql(q{CALL snowflake_drop_partitions('jumped', '30 days', trust_clock => true)});
is($rows_of->('jumped'), 1, '... until the clock is trusted');

$node->sql('CREATE TABLE idle (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id)');
day_partition('idle', $_) foreach 5, 10, 20;
$node->sql(q{CALL snowflake_make_partitions('idle', '1 day', unit => 'week'); CALL snowflake_drop_partitions('idle', '15 days')});
is($rows_of->('idle'), 2, 'a table may get no rows for as long as a unit of its partitions');
$node->sql(q{
	SELECT format('DROP TABLE %s', partition) FROM snowflake_partitions('idle') WHERE until > now() \gexec
	CALL snowflake_make_partitions('idle', '0', unit => 'day', trust_clock => true)});
call_says(q{CALL snowflake_drop_partitions('idle', '8 days')},
	qr/^ERROR:  the newest row of table public.idle is far older than the clock\n.*\n$trust/m,
	'nothing is dropped where the newest row is far older than the clock');
call_shows(q{CALL snowflake_drop_partitions('idle', '30 days')}, $nothing, '... but where nothing is old, all is well');
$node->sql(q{INSERT INTO idle DEFAULT VALUES; CALL snowflake_drop_partitions('idle', '8 days')});
is($rows_of->('idle'), 2, '... and where there is a new row, too');

# A former table
$node->sql(qq{
	CREATE TABLE sleeping (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	SELECT part('sleeping', 'sleeping_old', NULL, $today);
	INSERT INTO sleeping VALUES (7), (snowflake_min_id(now() - interval '20 days'));
	CALL snowflake_make_partitions('sleeping', '0', 'day')});
call_says(q{CALL snowflake_drop_partitions('sleeping', '10 days')},
	qr/^ERROR:  all rows of table public.sleeping are older than 10 days/m, 'a former table is not emptied');
call_shows(q{CALL snowflake_drop_partitions('sleeping', '30 days')}, qr/\Arows of public.sleeping_old [^\n]*\z/,
	'... but where none of its rows is old, all is well');

# --- beside others -----------------------------------------------------------------

# Two at once
days_of('shared', '');
{
	my ($one, $two, $three) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 3;
	$one->query_safe('BEGIN; LOCK TABLE ONLY shared IN SHARE UPDATE EXCLUSIVE MODE');
	my $calls = q{CALL snowflake_make_partitions('shared', '1 d'); CALL snowflake_drop_partitions('shared', '5 d')};
	my $active = q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CALL snowflake_make%' AND state = 'active'};
	send_sql($_, $calls) foreach $two, $three;
	ok(wait_for(sub { $node->sql($active) == 2 }), 'two sessions make and drop partitions of one table at once');
	$one->query_safe('COMMIT');
	$_->query('SELECT 1') foreach $two, $three;
	unlike($_->{stderr}, qr/ERROR/, 'neither of the two calls gets an error') foreach $two, $three;
	$_->quit foreach $one, $two, $three;
}
like($node->sql(q{SELECT count(*) FROM snowflake_partitions('shared')}), qr/^[78]$/,
	'both together made and dropped each partition once');

# Writers hold up neither, where there is no foreign key.
{
	my $writer = $node->background_psql('postgres');
	$writer->query_safe('BEGIN; INSERT INTO shared DEFAULT VALUES');
	$node->sql(q{CALL snowflake_make_partitions('shared', '9 days', tries => 1)});
	is($node->sql(q{SELECT max(until) >= now() + interval '9 days' FROM snowflake_partitions('shared')}), 't',
		'partitions are made beside an open transaction that writes');
	$writer->query_safe('COMMIT');
	$writer->quit;
}

# A large table that refers to this one is named, unless it has the index that the hint creates.
days_of('seen', '');
value('postgres', q{
	CREATE TABLE seen_by (seen_id bigint REFERENCES seen, note text DEFAULT repeat('x', 900));
	CREATE INDEX ON seen_by USING brin (seen_id);
	INSERT INTO seen_by SELECT id FROM (SELECT max(id) FROM seen) AS newest (id), generate_series(1, 10000)});
my $scans = said(q{CALL snowflake_drop_partitions('seen', '5 days')}, 'postgres');
like($scans, qr/WARNING:  table public\.seen_by, .* has no index that begins with column seen_id\nDETAIL: .* has read the whole table\./,
	'a referring table that PostgreSQL reads under the locks is named');
value('postgres', $scans =~ /HINT:  (CREATE INDEX CONCURRENTLY .*)/);
call_says(q{CALL snowflake_drop_partitions('seen', '3 days')}, qr/\A(?!.*(WARNING|ERROR)).*DROP TABLE/s,
	'... until it has an index');

# Under load: writers insert into a table, into one that refers to it and into one to
# which it refers, while its partitions are made and dropped.
value('load', q{
	CREATE TABLE users (id bigint PRIMARY KEY, made bigint DEFAULT 0);
	INSERT INTO users SELECT n FROM generate_series(1, 1000) AS n;
	CREATE TABLE logs (
		id bigint PRIMARY KEY DEFAULT next_id(5), user_id bigint NOT NULL REFERENCES users)
		PARTITION BY RANGE (id);
	CREATE TABLE notes (log_id bigint NOT NULL REFERENCES logs);
	CREATE INDEX ON notes (log_id);
	CREATE TABLE likes (log_id bigint REFERENCES logs ON DELETE CASCADE);
	CREATE INDEX ON likes (log_id);
	CREATE TABLE views (log_id bigint REFERENCES logs ON DELETE SET NULL);
	CREATE INDEX ON views (log_id);
	CREATE TABLE liked (log_id bigint);
	SELECT part('logs', 'logs_' || hour, date_trunc('hour', now()) - (40 - hour) * interval '1 hour',
		date_trunc('hour', now()) - (39 - hour) * interval '1 hour') FROM generate_series(0, 40) AS hour;
	INSERT INTO logs SELECT snowflake_id(date_trunc('hour', now()) - interval '40 hours' + n * interval '7 s', 6, 0),
		n % 1000 + 1 FROM generate_series(0, 19999) AS n;
	VACUUM ANALYZE});
my $load = start_sessions('load', <<'EOS');
\set user random(1, 1000)
BEGIN;
UPDATE users SET made = made + 1 WHERE id = :user;
INSERT INTO logs (user_id) VALUES (:user) RETURNING id \gset
INSERT INTO notes VALUES (:id);
COMMIT;
BEGIN;
INSERT INTO logs (user_id) VALUES (:user) RETURNING id AS other \gset
DELETE FROM logs WHERE id = :other;
COMMIT;
SELECT 1 / count(*) FROM logs WHERE id = :id;
WITH old AS (SELECT id FROM logs ORDER BY id LIMIT 1 FOR KEY SHARE), likes AS (INSERT INTO likes TABLE old),
	views AS (INSERT INTO views TABLE old) INSERT INTO liked TABLE old;
EOS
foreach my $call (
	q{CALL snowflake_make_partitions('logs', '20 hours', 'hour')},
	q{CALL snowflake_drop_partitions('logs', '10 hours')})
{
	succeeds('load', $call, "$call: while sessions write");
}
sessions_go_on($load, 'sessions go on afterwards');
end_sessions($load);
my $kept_hours = q{date_trunc('hour', now()) - interval '12 hours'};
holds('load',
	'no row of the load is lost' =>
	'count(*) = (SELECT sum(made) FROM users) FROM logs WHERE snowflake_shard(id) = 5',
	'nor one that refers to them' => 'count(*) = (SELECT sum(made) FROM users) FROM notes',
	'those that refer to what is dropped are deleted with it, and no others' =>
	'count(*) > 0 AND count(*) = (SELECT count(*) FROM liked JOIN logs ON id = log_id) FROM likes',
	'... or stay and refer to nothing' => 'count(*) = (SELECT count(*) FROM liked)
		AND count(log_id) = (SELECT count(*) FROM likes) AND count(*) > count(log_id) FROM views',
	'the partitions are those that were asked for' => qq{bool_and(since >= $kept_hours)
		AND count(*) FILTER (WHERE since > now()) >= 20 FROM snowflake_partitions('logs')},
	'old rows are gone, and younger ones stay' => qq{count(*) > 4000 AND bool_and(id >= snowflake_min_id($kept_hours))
		FROM logs WHERE snowflake_shard(id) = 6});

# --- killed ----------------------------------------------------------------------

my $prepare = qq{
	$part;
	CREATE TABLE users (id bigint PRIMARY KEY);
	CREATE TABLE logs (id bigint PRIMARY KEY DEFAULT next_id(5), user_id bigint REFERENCES users)
	PARTITION BY RANGE (id);
	SELECT part('logs', 'logs_old_' || day, $today - day * interval '24 h', $today - (day - 1) * interval '24 h')
	FROM generate_series(2, 4) AS day;
	INSERT INTO logs SELECT snowflake_id(now() - day * interval '1 day', 6, 0) FROM generate_series(2, 4) AS day};
my $state = q{
	SELECT oid::regclass, relispartition FROM pg_class
	WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname;
	SELECT *, snowflake_timestamp(0) FROM snowflake_partitions('logs');
	SELECT count(*) FROM logs};
my $kills = 0;
$kills += run_killed_at_each_step('killed', sub { value('killed', $prepare) }, $_, sub { value('killed', $state) })
  foreach q{CALL snowflake_make_partitions('logs', '0')}, q{CALL snowflake_drop_partitions('logs', '1 day')};
cmp_ok($kills, '>=', 9, "each step was killed, $kills in all");

done_testing();
