# snowflake_make_partitions(), snowflake_drop_partitions() and snowflake_partitions():
# partitions are whole units of UTC in any time zone, for any kind of table, and are
# made and dropped beside sessions that write, beside other calls, and again after
# calls that were killed.

use strict;
use warnings;
use AdminTest;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = start_admin_server('partitions', 'load');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake_admin CASCADE');

sub query { my ($sql) = @_; return $node->safe_psql('postgres', $sql) }

# What a call says, and its NOTICEs, which are commands
sub said_by
{
	my ($sql) = @_;
	return ($node->psql('postgres', $sql, on_error_stop => 1))[2];
}
sub commands_of { return join "\n", said_by(@_) =~ /NOTICE:  (.*)/g }

sub partitions
{
	my ($table, $layout) = @_;
	return query("SELECT * FROM snowflake_partitions('$table'" . ($layout ? ", '$layout'" : '') . ')');
}

# Make a partition by hand.
sub partition
{
	my ($name, $since, $until) = @_;
	my ($table) = $name =~ /^(\w+?)_/;
	my ($from, $to) = map { /VALUE/ ? $_ : query("SELECT snowflake_min_id($_)") } $since, $until;

	query("CREATE TABLE $name PARTITION OF $table FOR VALUES FROM ($from) TO ($to)");
	return;
}

# How many of a table's partitions, beside the first one, are whole units that begin
# where the one before ends?
sub whole_units
{
	my ($table, $unit) = @_;
	return query("
		SELECT count(*) FILTER (WHERE since = date_trunc('$unit', since, 'UTC') AND since = before
			AND until = (since AT TIME ZONE 'UTC' + interval '1 $unit') AT TIME ZONE 'UTC'), count(*)
		FROM (SELECT *, lag(until) OVER (ORDER BY since) AS before FROM snowflake_partitions('$table')) AS p WHERE before IS NOT NULL");
}

# --- units and bounds ------------------------------------------------------------

# Zones where a day has 23.5 hours, where midnights are missing, and where it is tomorrow
foreach my $unit (
	[ 'hour', 72, 73, 'YYYYMMDDHH24' ],
	[ 'day', 3, 3, 'YYYYMMDD' ],
	[ 'week', 1, 1, 'YYYYMMDD' ],
	[ 'month', 1, 1, 'YYYYMM' ],
	[ 'year', 1, 1, 'YYYY' ])
{
	my ($name, $least, $most, $form) = @$unit;

	foreach my $zone ('Australia/Lord_Howe', $name eq 'day' ? ('America/Sao_Paulo', 'Pacific/Kiritimati') : ())
	{
		query("
			DROP TABLE IF EXISTS logs; CREATE TABLE logs (id bigint PRIMARY KEY DEFAULT next_id(5), kind text) PARTITION BY RANGE (id);
			SET timezone = '$zone'; CALL snowflake_make_partitions('logs', unit => '$name')");
		my ($whole, $all) = split /\|/, whole_units('logs', $name);
		# The hour or day may change during the call, and a week or a month may end soon.
		ok($whole == $all && $all >= $least && $all <= $most + 1, "partitions are $name after $name in UTC, in time zone $zone")
		  or diag("$whole of $all\n" . partitions('logs'));
		is(query("SELECT bool_and(partition::text = 'logs_' || to_char(since, '$form')) AND min(since) = date_trunc('$name', now())
			FROM snowflake_partitions('logs')"), 't', 'the first one is that of now, and their names say their time');
		ok(query("SELECT max(until) >= now() + '3 days' AND max(until) >= date_trunc('$name', now()) + '2 $name' FROM snowflake_partitions('logs')") eq 't',
			'they last for three days, and for a whole unit after the present one');
		is(commands_of(qq{CALL snowflake_make_partitions('logs')}), '', 'another call has nothing to do, and knows the unit');
	}
}

query(q{CREATE TABLE old (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id)});
partition('old_table', 'MINVALUE', q{date_trunc('month', now(), 'UTC') + interval '9 days 01:02:03.004'});
query(q{CALL snowflake_make_partitions('old', '1 year', unit => 'month')});
is(whole_units('old', 'month') =~ s/(\d+)\|(\d+)/$2 - $1/re, 1, 'the first partition begins in the middle of a month, where the last one ended');
is(query(q{SELECT partition::text = to_char(now(), '"old_"YYYYMM') AND to_char(since, 'DD HH24:MI:SS.MS') = '10 01:02:03.004'
	FROM snowflake_partitions('old') ORDER BY since OFFSET 1 LIMIT 1}), 't', 'it is named like a whole one');
is(query(q{SELECT count(*) FROM snowflake_partitions('old') WHERE since = '-infinity' AND partition = 'old_table'::regclass}), 1,
	'a partition without a lower bound is shown since -infinity');

query(q{CREATE TABLE gap (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id)});
partition('gap_later', q{date_trunc('day', now(), 'UTC') + interval '30 hours'}, q{date_trunc('day', now(), 'UTC') + interval '40 hours'});
query(q{CALL snowflake_make_partitions('gap', '2 days', 'day')});
is(query(q{SELECT string_agg(until - since || '', ' ' ORDER BY since) FROM snowflake_partitions('gap') WHERE until < now() + interval '60 hours'}) =~ /^1 day 06:00:00 10:00:00 08:00:00/ ? 1 : 0, 1,
	'gaps before and after a partition that somebody made are filled') or diag(partitions('gap'));

query(q{CREATE TABLE never (id bigint PRIMARY KEY) PARTITION BY RANGE (id)});
partition('never_ends', q{'2026-01-01Z'}, 'MAXVALUE');
is(commands_of(q{CALL snowflake_make_partitions('never')}), '', 'after a partition without an upper bound nothing is missing');

# --- kinds of tables -------------------------------------------------------------

# Everything that needs quoting or another schema, with a hostile search_path
query(q{
	CREATE SCHEMA "the Shard's";
	CREATE TABLE "the Shard's"."Photos of ""me"" %s" ("the Id" bigint PRIMARY KEY DEFAULT next_id(5), tag text) PARTITION BY RANGE ("the Id")});
hostile_schema($node, 'postgres');
my $hostile = 'SET search_path = evil, pg_catalog';
my $photos = q{$$"the Shard's"."Photos of ""me"" %s"$$};
my $planned = commands_of("$hostile; CALL public.snowflake_make_partitions($photos, unit => 'day', dry_run => true)");
is(query("SELECT count(*) FROM snowflake_partitions($photos)"), 0, 'a dry run makes nothing');
query("$hostile; BEGIN; $planned; COMMIT");
is(commands_of("CALL snowflake_make_partitions($photos)"), '', 'the commands that a dry run shows can be pasted, and make all partitions');
query("DO \$do\$ DECLARE p regclass; BEGIN FOR p IN SELECT partition FROM snowflake_partitions($photos) LOOP EXECUTE 'DROP TABLE ' || p; END LOOP; END \$do\$");
is(commands_of("$hostile; CALL public.snowflake_make_partitions($photos, unit => 'day')"), $planned, 'a call shows the commands that it executes');
is(query("SELECT count(*) >= 4 FROM snowflake_partitions($photos) WHERE partition::text ~ '^\"the Shard''s\".\"Photos of \"\"me\"\" %s_2'"), 't',
	'partitions of a quoted name in a schema outside search_path are made, with a hostile search_path');
query(qq{DO \$do\$ BEGIN EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s)',
	\$\$"the Shard's"."Last year's"\$\$, $photos, snowflake_min_id('2025-01-01Z'), snowflake_min_id('2025-01-02Z')); END \$do\$});
is(commands_of("$hostile; CALL public.snowflake_drop_partitions($photos, '1 year')") =~ /^DROP TABLE (.*);$/m ? $1 : '', q{"the Shard's"."Last year's"},
	'they are dropped, too');
is(query("$hostile; SELECT pg_catalog.count(*) FROM public.snowflake_partitions($photos)"), query("SELECT count(*) FROM snowflake_partitions($photos)"),
	'a hostile search_path does not change what is listed');

# Names that are long in bytes, or taken
my $long = "\xc3\xa4" x 30;
query(qq{CREATE TABLE "$long" (id bigint) PARTITION BY RANGE (id); CALL snowflake_make_partitions('"$long"')});
is(query(qq{SELECT bool_and(octet_length(partition::text) - 2 <= 63 AND partition::text ~ '^"\xc3\xa4{27}_\\d{8}"\$') FROM snowflake_partitions('"$long"')}), 't',
	"a long name is shortened by whole characters") or diag(partitions(qq{"$long"}));
query(q{CREATE TABLE taken (id bigint) PARTITION BY RANGE (id)});
query(q{DO $$ BEGIN EXECUTE format('CREATE TABLE taken_%s (id bigint)', to_char(now(), 'YYYYMMDD')); END $$;
	CALL snowflake_make_partitions('taken', '0')});
is(query(q{SELECT string_agg(partition::text, ' ' ORDER BY since) = to_char(now(), '"taken_"YYYYMMDD"00"') || to_char(now() + interval '1 day', '" taken_"YYYYMMDD')
	FROM snowflake_partitions('taken')}), 't', "another table's name is not taken") or diag(partitions('taken'));

# Columns, row security and the rest
query(q{
	CREATE TABLE all_kinds (id bigint DEFAULT next_id(5), tenant int NOT NULL, nr bigint GENERATED ALWAYS AS IDENTITY, twice int GENERATED ALWAYS AS (tenant * 2) STORED,
		PRIMARY KEY (id, tenant), CHECK (tenant > 0)) PARTITION BY RANGE (id);
	CREATE INDEX ON all_kinds (twice);
	CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.tenant := NEW.tenant + 1; RETURN NEW; END';
	CREATE TRIGGER noted BEFORE INSERT ON all_kinds FOR EACH ROW EXECUTE FUNCTION noted();
	ALTER TABLE all_kinds REPLICA IDENTITY FULL, ENABLE ROW LEVEL SECURITY;
	CREATE POLICY one ON all_kinds USING (tenant = 2);
	CREATE PUBLICATION all_kinds FOR TABLE all_kinds WITH (publish = 'insert');
	ALTER TABLE all_kinds OWNER TO owner; GRANT CREATE ON SCHEMA public TO owner;
	ALTER DEFAULT PRIVILEGES FOR ROLE owner GRANT SELECT ON TABLES TO app;
	SET ROLE owner; GRANT SELECT ON all_kinds TO app; CALL snowflake_make_partitions('all_kinds');
	INSERT INTO all_kinds (tenant) VALUES (1), (2);
	UPDATE all_kinds SET tenant = 9 WHERE tenant = 3});
is(query('SELECT tenant, nr, twice FROM all_kinds ORDER BY id'), "2|1|4\n9|2|18", 'partitions have identity, generated columns and triggers');
my $today = query(q{SELECT partition FROM snowflake_partitions('all_kinds') LIMIT 1});
is(query('SET ROLE app; SELECT count(*) FROM all_kinds'), 1, "a table's policies apply");
is(query("SET ROLE app; SELECT count(*) FROM $today"), 0, 'nobody sees in a partition what the policies of the table hide');
is(query("SELECT relowner::regrole, relreplident, relrowsecurity, (SELECT count(*) FROM pg_publication_tables WHERE tablename = relname)
	FROM pg_class WHERE oid = '$today'::regclass"), 'owner|f|t|1', 'a partition has the owner, the replica identity and the publication of the table');

# Layouts
query(q{
	CREATE SEQUENCE twitter_seq; SELECT snowflake_alter_sequence('twitter_seq', 'twitter');
	CREATE SEQUENCE own_seq AS bigint; SELECT snowflake_alter_sequence('own_seq', 'timestamp:42 node:10 sequence:11 epoch:2020-01-01T00:00:00Z');
	CREATE TABLE tweets (id snowflake PRIMARY KEY DEFAULT next_id(5, 'twitter_seq')) PARTITION BY RANGE (id);
	CREATE TABLE own (id bigint PRIMARY KEY DEFAULT next_id(5, 'own_seq', 'timestamp:42 node:10 sequence:11 epoch:2020-01-01T00:00:00Z')) PARTITION BY RANGE (id);
	CREATE TABLE told (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
	CALL snowflake_make_partitions('tweets');
	CALL snowflake_make_partitions('own');
	CALL snowflake_make_partitions('told', layout => 'discord');
	INSERT INTO tweets DEFAULT VALUES; INSERT INTO own DEFAULT VALUES});
foreach my $case ([ 'tweets', 'twitter' ], [ 'own', 'timestamp:42 node:10 sequence:11 epoch:2020-01-01T00:00:00Z' ], [ 'told', 'discord' ])
{
	my ($table, $layout) = @$case;
	is(query("SELECT min(since) = date_trunc('day', now()) AND bool_and(until - since = '1 day') FROM snowflake_partitions('$table', '$layout')"), 't',
		"partitions are days in layout $layout");
}
is(partitions('tweets'), partitions('tweets', 'twitter'), "a sequence's layout is found");
is(partitions('own'), partitions('own', 'timestamp:42 node:10 sequence:11 epoch:2020-01-01T00:00:00Z'), "a default's layout is found");
foreach my $call ("SELECT * FROM snowflake_partitions('told', 'trace')", "CALL snowflake_make_partitions('told', layout => 'decimal')",
	"CALL snowflake_drop_partitions('told', '1 day', 'trace')")
{
	fails_with($node, $call, qr/^0A000/, "a layout without a time is refused: $call");
}

# --- what is refused -------------------------------------------------------------

query(q{
	CREATE TABLE plain (id bigint);
	CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
	CREATE TABLE by_two (id bigint, nr bigint) PARTITION BY RANGE (id, nr);
	CREATE TABLE by_day (day date) PARTITION BY RANGE (day);
	CREATE TABLE computed (id bigint) PARTITION BY RANGE ((id + 1));
	CREATE TABLE forgotten (id bigint) PARTITION BY RANGE (id)});
partition('forgotten_since', q{'2013-01-01Z'}, q{'2013-01-02Z'});
foreach my $case (
	[ 'plain', qr/^42809 public.plain is not a partitioned table/ ],
	[ 'listed', qr/^55000 table public.listed is not partitioned by ranges of one/ ],
	[ 'by_two', qr/^55000 table public.by_two is not/ ],
	[ 'by_day', qr/^55000 table public.by_day is not/ ],
	[ 'computed', qr/^55000 table public.computed is not/ ])
{
	my ($table, $error) = @$case;
	fails_with($node, $_, $error, $_)
	  foreach "SELECT * FROM snowflake_partitions('$table')", "CALL snowflake_make_partitions('$table')",
	  "CALL snowflake_drop_partitions('$table', '1 day')";
}
foreach my $case (
	[ q{CALL snowflake_make_partitions(NULL)}, qr/^22004/ ],
	[ q{CALL snowflake_drop_partitions('logs', NULL)}, qr/^22004/ ],
	[ q{CALL snowflake_make_partitions('logs', unit => 'quarter')}, qr/^22023 unit must be hour, day, week, month or year, not 'quarter'/ ],
	[ q{CALL snowflake_make_partitions('logs', '-1 day')}, qr/^22023 ahead must be at least 0/ ],
	[ q{CALL snowflake_drop_partitions('logs', '-1 day')}, qr/^22023 older_than must be at least 0/ ],
	[ q{BEGIN; CALL snowflake_make_partitions('logs')}, qr/^2D000/ ],
	[ q{BEGIN; CALL snowflake_drop_partitions('logs', '1 day')}, qr/^2D000/ ],
	[ q{CALL snowflake_make_partitions('forgotten')}, qr/^55000 table public.forgotten lacks \d+ partitions, which is more than 1000/ ],
	[ q{SET ROLE app; CALL snowflake_make_partitions('forgotten', unit => 'year')}, qr/^42501/ ])
{
	fails_with($node, @$case, $case->[0]);
}
query(q{CALL snowflake_make_partitions('forgotten', unit => 'month')});
like(whole_units('forgotten', 'month'), qr/^(\d+)\|(?!\1)/, 'a longer unit can be given instead');

# A key that tells no time, as it was moved back or never came from next_id()
query(q{
	CREATE TABLE returned (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	CREATE TABLE numbered (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
	CALL snowflake_make_partitions('returned');
	INSERT INTO returned DEFAULT VALUES});
$today = query('SELECT tableoid::regclass FROM returned');
foreach my $dry_run ('true', 'false')
{
	like(said_by("CALL snowflake_move_back('returned', dry_run => $dry_run)"), qr/^[^\n]*WARNING:  new keys of table public.returned will not tell the time\nDETAIL:  Their rows will all go into public.$today\.\nHINT:  Stop jobs that call snowflake_make_partitions\(\) and snowflake_drop_partitions\(\)\.\n.*NOTICE:  ALTER TABLE/s,
		"moving back a partition key warns, dry_run => $dry_run");
}
foreach my $table ('returned', 'numbered')
{
	fails_with($node, $_, qr/^55000 the key of table public.$table does not tell the time/, $_)
	  foreach "CALL snowflake_make_partitions('$table')", "CALL snowflake_drop_partitions('$table', '4 seconds')";
}
query(q{ALTER TABLE returned ALTER id DROP IDENTITY; CALL snowflake_make_partitions('returned', '5 days')});
is(query(q{SELECT max(until) >= now() + interval '5 days' FROM snowflake_partitions('returned')}), 't', 'programs may supply the key themselves');

# A DEFAULT partition
query(q{
	CREATE TABLE caught (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	CREATE TABLE caught_rest PARTITION OF caught DEFAULT;
	INSERT INTO caught VALUES (7);
	CALL snowflake_make_partitions('caught', '0')});
is(query(q{SELECT count(*), count(since) FROM snowflake_partitions('caught')}), '3|2', 'partitions are made beside a DEFAULT partition, which has no times');
query(q{INSERT INTO caught VALUES (snowflake_min_id(now() + interval '3 days'))});
fails_with($node, q{CALL snowflake_make_partitions('caught')}, qr/^55000 default partition public.caught_rest has rows of the partition that is missing/,
	'a DEFAULT partition with rows of the range is named');
query(q{ALTER TABLE caught DETACH PARTITION caught_rest; CALL snowflake_make_partitions('caught', '4 days');
	INSERT INTO caught SELECT * FROM caught_rest WHERE id > 7});
is(query('SELECT count(*) FROM caught'), 1, 'what the hint says helps');

# --- dropping ----------------------------------------------------------------------

sub days_of
{
	my ($table, $columns) = @_;
	query(qq{
		CREATE TABLE $table (id bigint PRIMARY KEY DEFAULT next_id(5) $columns) PARTITION BY RANGE (id);
		DO \$\$ BEGIN FOR day IN 0 .. 9 LOOP
			EXECUTE format('CREATE TABLE ${table}_%s PARTITION OF $table FOR VALUES FROM (%s) TO (%s)', day,
				snowflake_min_id(date_trunc('day', now(), 'UTC') - interval '10 days' + day * interval '24 hours'),
				snowflake_min_id(date_trunc('day', now(), 'UTC') - interval '10 days' + (day + 1) * interval '24 hours'));
		END LOOP; END \$\$;
		INSERT INTO $table SELECT snowflake_id(date_trunc('day', now(), 'UTC') - interval '10 days' + n * interval '1 hour', 6, 0) FROM generate_series(0, 239) AS n});
	return;
}
days_of('visits', '');
fails_with($node, q{GRANT ALL ON visits TO app; SET ROLE app; CALL snowflake_drop_partitions('visits', '5 days')},
	qr/^42501 permission denied for table visits_0/, 'only the owner may drop partitions');
my $would = commands_of(q{CALL snowflake_drop_partitions('visits', '5 days', dry_run => true)});
is(query('SELECT count(*) FROM visits'), 240, 'a dry run drops nothing');
is(join(' ', $would =~ /DROP TABLE (\S+);/g), join(' ', map { "public.visits_$_" } 0 .. 4), 'a dry run lists the partitions, oldest first');
is(commands_of(q{SET timezone = 'Pacific/Kiritimati'; CALL snowflake_drop_partitions('visits', '5 days')}), $would, 'a call drops them');
is(query('SELECT count(*), count(*) FILTER (WHERE id < snowflake_min_id(now() - interval \'6 days\')) FROM visits'), '120|0',
	'rows of older partitions are gone, and others stay');
is(commands_of(q{CALL snowflake_drop_partitions('visits', '5 days')}), '', 'another call has nothing to do');
query(q{CALL snowflake_drop_partitions('visits', '0')});
is(query(q{SELECT string_agg(partition::text, ' ') FROM snowflake_partitions('visits')}), 'visits_9', 'the newest partition is never dropped');

# Pending
days_of('pended', '');
{
	my $reader = $node->background_psql('postgres');
	$reader->query_safe('BEGIN; SELECT count(*) FROM pended');
	fails_with($node, q{SET lock_timeout = '100ms'; ALTER TABLE pended DETACH PARTITION pended_2 CONCURRENTLY}, qr/^55P03/, 'DETACH ... CONCURRENTLY is interrupted');
	is(query(q{SELECT count(*) FROM snowflake_partitions('pended')}), 9, 'a partition that is pending detach is not listed');
	fails_with($node, q{CALL snowflake_drop_partitions('pended', '5 days', tries => 2)}, qr/^55P03 could not get the locks in 2 tries/, 'a reader holds up the drop');
	is(query(q{SET lock_timeout = '1s'; SELECT count(*) FROM pended}), 216, 'nobody waits after it has given up');
	$reader->query_safe('COMMIT');
	$reader->quit;
}
query(q{CALL snowflake_drop_partitions('pended', '5 days')});
is(query(q{SELECT count(*) FROM snowflake_partitions('pended')}), 5, 'a partition that is pending detach is dropped, too');
is(query(q{SELECT to_regclass('pended_2') IS NULL}), 't', 'it is gone');

# Foreign keys
days_of('kept', ', original bigint REFERENCES kept DEFERRABLE INITIALLY DEFERRED');
query(q{
	CREATE TABLE notes (nr int, kept_id bigint REFERENCES kept ON DELETE CASCADE);
	CREATE TABLE "no notes" (kept_id bigint REFERENCES kept);
	INSERT INTO notes SELECT 1, min(id) FROM kept_3 UNION SELECT 2, min(id) FROM kept_5; INSERT INTO "no notes" SELECT max(id) FROM kept});
my $bound = query(q{SELECT snowflake_min_id(date_trunc('day', now(), 'UTC') - interval '120 hours')});
my $delete = "DELETE FROM public.notes WHERE kept_id < $bound;";
my $hint = qr/HINT:  Delete such rows first: \Q$delete\E$/m;
like(said_by(q{CALL snowflake_drop_partitions('kept', '5 days', dry_run => true)}), qr/WARNING:  rows refer to old rows of table public.kept\n$hint/,
	'a dry run warns of rows that refer to old ones, and shows what deletes them');
fails_with($node, q{CALL snowflake_drop_partitions('kept', '5 days')},
	qr/^23503 removing partition "kept_3" violates foreign key constraint/, 'a partition with rows to which others refer is named');
like(said_by(q{CALL snowflake_drop_partitions('kept', '5 days')}), qr/ERROR: .*DETAIL: .*$hint/s, 'what deletes the rows that refer to them is shown again');
is(query(q{SELECT min(partition::text), count(*), (SELECT count(*) FROM notes) FROM snowflake_partitions('kept')}), 'kept_3|7|2',
	'older partitions are dropped, and neither that one nor the rows that refer to it');
query("$delete CALL snowflake_drop_partitions('kept', '5 days')");
is(query(q{SELECT min(partition::text), count(*), (SELECT string_agg(nr::text, ' ') FROM notes) FROM snowflake_partitions('kept')}), 'kept_5|5|2',
	'after this it is dropped, and newer rows stay');
query(q{CALL snowflake_make_partitions('kept'); INSERT INTO kept (original) SELECT max(id) FROM kept; INSERT INTO notes SELECT 3, max(id) FROM kept});
fails_with($node, $_, qr/^23503/, "foreign keys apply in new partitions: $_") foreach 'INSERT INTO kept (original) VALUES (7)', 'INSERT INTO notes VALUES (4, 7)';

# A former table
query(q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text) PARTITION BY RANGE (id);
	CREATE TABLE deleted (n bigint);
	CREATE FUNCTION count_deleted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
		INSERT INTO deleted SELECT count(*) FROM old;
		IF current_setting($$app.stop_after$$, true)::int <= (SELECT count(*) FROM deleted) THEN RAISE $$interrupted$$; END IF;
		RETURN NULL; END';
	CREATE TRIGGER count_deleted AFTER DELETE ON photos REFERENCING OLD TABLE AS old FOR EACH STATEMENT EXECUTE FUNCTION count_deleted()});
partition('photos_old', 'MINVALUE', q{date_trunc('day', now(), 'UTC')});
query(q{
	INSERT INTO photos SELECT n FROM generate_series(1, 10) AS n;
	INSERT INTO photos SELECT snowflake_id(now() - interval '130 days' + n * interval '5 minutes', 6, 0) FROM generate_series(1, 30000) AS n;
	ANALYZE photos_old;
	CALL snowflake_make_partitions('photos', unit => 'month')});
my $first = query(q{SELECT snowflake_min_id('2011-08-25Z')});
$bound = query(q{SELECT snowflake_min_id(date_trunc('day', now() - interval '50 days', 'UTC'))});
my $older = query("SELECT count(*) FROM photos WHERE id > 10 AND id < $bound");
like(commands_of(q{CALL snowflake_drop_partitions('photos', '50 days', dry_run => true)}),
	qr/^rows of public.photos_old with id below \d+ stay until it is dropped.*\nDELETE FROM public.photos WHERE id >= $first AND id < $bound;$/,
	'a dry run says which rows of a former table would be deleted, up to the beginning of a day, and which stay');
is(query('SELECT count(*) FROM photos'), 30010, 'a dry run deletes nothing');
query(qq{CREATE TABLE frames (photo_id snowflake REFERENCES photos); CREATE TABLE gone (photo_id bigint REFERENCES photos ON DELETE CASCADE);
	INSERT INTO frames SELECT unnest(ARRAY[7, min(id) FILTER (WHERE id > $first), max(id)]) FROM photos; INSERT INTO gone TABLE frames});
$delete = "DELETE FROM public.frames WHERE photo_id >= $first AND photo_id < $bound;";
like(said_by("$hostile, public; CALL snowflake_drop_partitions('photos', '50 days'$_)"), qr/HINT:  Delete such rows first: \Q$delete\E$/m, "foreign keys to a former table$_")
  foreach ', dry_run => true', '';
query("$delete TRUNCATE deleted");
is(query('SELECT count(*) FROM frames'), 2, 'only the row that refers to an old one is deleted');
fails_with($node, q{SET app.stop_after = 3; CALL snowflake_drop_partitions('photos', '50 days')}, qr/^P0001 interrupted/, 'deleting is interrupted');
is(query('SELECT sum(n), count(*) FROM deleted'), '20000|2', 'the first slices stay deleted');
my $deleting = commands_of("$hostile, public; CALL snowflake_drop_partitions('photos', '50 days')");
like($deleting, qr/^deleted @{[ $older - 20000 ]} rows of public.photos_old$/m, 'another call goes on with the others, and says how many they were');
unlike($deleting, qr/truncated/, 'the name of its step is no notice');
is(query('SELECT max(n) FROM deleted'), 10000, 'no slice has more than 10,000 rows');
is(query("SELECT count(*) FILTER (WHERE id <= 10), count(*) FILTER (WHERE id > 10 AND id < $bound), count(*) FROM photos"), "10|0|@{[ 30010 - $older ]}",
	'newer rows and numbers of a serial stay');
query(q{DROP TABLE frames, gone; CALL snowflake_drop_partitions('photos', '0')});
is(query(q{SELECT to_regclass('photos_old') IS NULL, count(*) FROM photos}), 't|0', 'when all of it is old, the former table is dropped as a whole');

# --- beside others -----------------------------------------------------------------

# Two at once
days_of('shared', '');
{
	my ($one, $two, $three) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 3;
	$one->query_safe('BEGIN; LOCK TABLE ONLY shared IN SHARE UPDATE EXCLUSIVE MODE');
	foreach ($two, $three)
	{
		$_->query_until(qr/begun/, "\\echo begun\nCALL snowflake_make_partitions('shared', '1 day'); CALL snowflake_drop_partitions('shared', '5 days');\n");
	}
	ok(wait_for(sub { query(q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CALL snowflake_make%' AND state = 'active'}) == 2 }), 'two sessions call it at once');
	$one->query_safe('COMMIT');
	$_->query('SELECT 1') foreach $two, $three;
	unlike($_->{stderr}, qr/ERROR/, 'neither gets an error') foreach $two, $three;
	$_->quit foreach $one, $two, $three;
}
like(query(q{SELECT count(*) FROM snowflake_partitions('shared')}), qr/^[78]$/, 'both together made and dropped each partition once');

# Writers hold up neither, where there is no foreign key.
{
	my $writer = $node->background_psql('postgres');
	$writer->query_safe('BEGIN; INSERT INTO shared DEFAULT VALUES');
	isnt(commands_of(q{CALL snowflake_make_partitions('shared', '9 days', tries => 1)}), '', 'partitions are made beside an open transaction that writes');
	is(query(q{SELECT max(until) >= now() + interval '9 days' FROM snowflake_partitions('shared')}), 't', 'all of them');
	$writer->query_safe('COMMIT');
	$writer->quit;
}

# Under load: writers insert into a table, into one that refers to it and into one to
# which it refers, while its partitions are made and dropped.
value('load', q{
	CREATE TABLE users (id bigint PRIMARY KEY, made bigint DEFAULT 0);
	INSERT INTO users SELECT n FROM generate_series(1, 1000) AS n;
	CREATE TABLE logs (id bigint PRIMARY KEY DEFAULT next_id(5), user_id bigint NOT NULL REFERENCES users, changes int DEFAULT 0) PARTITION BY RANGE (id);
	CREATE TABLE notes (log_id bigint NOT NULL REFERENCES logs, text text);
	CREATE INDEX ON notes (log_id);
	DO $$ BEGIN FOR hour IN 0 .. 40 LOOP
		EXECUTE format('CREATE TABLE logs_%s PARTITION OF logs FOR VALUES FROM (%s) TO (%s)', hour,
			snowflake_min_id(date_trunc('hour', now()) - interval '40 hours' + hour * interval '1 hour'),
			snowflake_min_id(date_trunc('hour', now()) - interval '39 hours' + hour * interval '1 hour'));
	END LOOP; END $$;
	INSERT INTO logs SELECT snowflake_id(date_trunc('hour', now()) - interval '40 hours' + n * interval '7 second', 6, 0), n % 1000 + 1, 0 FROM generate_series(0, 19999) AS n;
	VACUUM ANALYZE});
my $load = start_sessions('load', <<'EOS');
\set user random(1, 1000)
BEGIN;
UPDATE users SET made = made + 1 WHERE id = :user;
INSERT INTO logs (user_id) VALUES (:user) RETURNING id \gset
INSERT INTO notes VALUES (:id, 'kept'), (:id, 'deleted');
UPDATE logs SET changes = changes + 1 WHERE id = :id;
DELETE FROM notes WHERE log_id = :id AND text = 'deleted';
COMMIT;
BEGIN;
INSERT INTO logs (user_id) VALUES (:user) RETURNING id AS other \gset
DELETE FROM logs WHERE id = :other;
COMMIT;
SELECT 1 / count(*) FROM logs WHERE id = :id;
EOS
my @calls = (q{CALL snowflake_make_partitions('logs', '20 hours', 'hour')}, q{CALL snowflake_drop_partitions('logs', '10 hours')});
foreach my $call (@calls)
{
	my $status = $node->psql('load', $call, stderr => \my $error);
	is($status, 0, "$call: while sessions write") or diag($error =~ /((?:ERROR|DETAIL):.*)/g);
}
sessions_go_on($load, 'sessions go on afterwards');
end_sessions($load);
is(value('load', q{SELECT count(*), sum(changes) = count(*) FROM logs WHERE id NOT IN (SELECT id FROM logs WHERE snowflake_shard(id) = 6)}),
	value('load', q{SELECT sum(made), true FROM users}), 'no row of the load is lost or changed');
is(value('load', q{SELECT count(*) FROM notes}), value('load', q{SELECT sum(made) FROM users}), 'nor one that refers to them');
is(value('load', q{SELECT count(*) FILTER (WHERE since >= date_trunc('hour', now()) - interval '12 hours') = count(*), count(*) FILTER (WHERE since > now()) >= 20
	FROM snowflake_partitions('logs')}), 't|t', 'the partitions are those that were asked for');
is(value('load', q{SELECT count(*) > 4000 AND count(*) = count(*) FILTER (WHERE id >= snowflake_min_id(date_trunc('hour', now()) - interval '12 hours'))
	FROM logs WHERE snowflake_shard(id) = 6}), 't', 'old rows are gone, and younger ones stay');

# --- killed ----------------------------------------------------------------------

my $kills = 0;
foreach my $call ("CALL snowflake_make_partitions('logs', '0')", "CALL snowflake_drop_partitions('logs', '1 day')")
{
	$kills += run_killed_at_each_step(
		'killed',
		sub {
			my ($database) = @_;
			value($database, q{
				CREATE TABLE users (id bigint PRIMARY KEY);
				CREATE TABLE logs (id bigint PRIMARY KEY DEFAULT next_id(5), user_id bigint REFERENCES users) PARTITION BY RANGE (id);
				DO $$ BEGIN FOR day IN 2 .. 4 LOOP
					EXECUTE format('CREATE TABLE logs_old_%s PARTITION OF logs FOR VALUES FROM (%s) TO (%s)', day,
						snowflake_min_id(date_trunc('day', now(), 'UTC') - day * interval '24 hours'),
						snowflake_min_id(date_trunc('day', now(), 'UTC') - (day - 1) * interval '24 hours'));
				END LOOP; END $$;
				INSERT INTO logs SELECT snowflake_id(now() - day * interval '1 day', 6, 0) FROM generate_series(2, 4) AS day});
		},
		$call,
		sub {
			my ($database) = @_;
			return value($database, q{
				SELECT string_agg(relname || relispartition, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace;
				SELECT *, snowflake_timestamp(0) FROM snowflake_partitions('logs');
				SELECT count(*) FROM logs});
		});
}
note("kills survived: $kills");
cmp_ok($kills, '>=', 9, 'each step was killed');

# --- across the end of a year -------------------------------------------------------

$node->stop;
SKIP:
{
	skip 'libfaketime is not installed', 4 unless faketime_library();
	start_with_clock($node, '2027-12-31 23:59:58');
	query(q{
		CREATE TABLE eve (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
		CALL snowflake_make_partitions('eve', '0');
		INSERT INTO eve DEFAULT VALUES});
	set_clock($node, '2028-01-01 00:00:01');
	is(query('INSERT INTO eve DEFAULT VALUES; SELECT tableoid::regclass FROM eve ORDER BY id'), "eve_20271231\neve_20280101",
		'rows made after midnight have a partition');
	query(q{CALL snowflake_make_partitions('eve', '0')});
	is(query(q{SELECT max(partition::text) FROM snowflake_partitions('eve')}), 'eve_20280102', 'and the next midnight, too');
	set_clock($node, '2033-01-01 00:00:00');
	fails_with($node, q{CALL snowflake_make_partitions('eve')}, qr/^55000 table public.eve lacks 18\d\d partitions, which is more than 1000/,
		'a clock that is years ahead makes no partitions');
	is(query(q{SELECT count(*) FROM snowflake_partitions('eve')}), 3, 'none of them');
	$node->stop;
}
done_testing();
