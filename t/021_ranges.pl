# Ranges of time and partitions: the recipes of doc/ranges.md do what they show,
# and what the text promises beyond that.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('ranges');
$node->init;
$node->append_conf('postgresql.conf', <<EOC);
timezone = 'UTC'
autovacuum = off
max_parallel_workers_per_gather = 0
EOC
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE ranges');
$node->safe_psql('ranges', 'CREATE EXTENSION snowflake');

sub value { my ($sql) = @_; return $node->safe_psql('ranges', $sql) }

# The plan of a query, after settings if there are any
sub plan_of
{
	my ($query, $settings) = @_;
	return value(($settings // '') . "EXPLAIN (COSTS OFF) $query");
}

my @blocks = grep { $_->{section} !~ /pg_partman|TimescaleDB/ } blocks('doc/ranges.md');
my ($partitions_begin, $dropping, $existing) = map {
	my $what = $_;
	(grep { $blocks[$_]->{code} =~ $what } 0 .. $#blocks)[0]
} qr/PARTITION BY/, qr/DETACH/, qr/photos_old/;
value(q{CREATE TABLE visits (id bigint NOT NULL DEFAULT next_id(5), path text);
	INSERT INTO visits (id, path)
	SELECT snowflake_id(t, 5, 0), '/' FROM generate_series('2026-11-13Z'::timestamptz, '2026-11-19 23:59:59Z', '1 second') AS t});
run_examples($node, 'ranges', @blocks[ 0 .. $partitions_begin - 1 ]);
value("VACUUM ANALYZE $_") foreach 'events', 'visits';
is(value('SELECT count(*), min(snowflake_timestamp(id)) FROM events'),
	'51840|2026-10-15 00:00:00+00', 'the rows before a time are deleted, and no others');
is(value(q{SELECT created_at FROM recent_events WHERE id < snowflake_min_id('2026-11-01 00:02Z') ORDER BY id}),
	"2026-11-01 00:00:00+00\n2026-11-01 00:01:00+00", 'a view shows the times of rows that are found by their IDs');

# Which index serves what the text says
my $key = qr/Index Scan using events_pkey on events\n +Index Cond: \(id >= snowflake_min_id\(/;
my $bound = qr/Index Cond: \(?\(id [<>]=? '\d{19}'::bigint\)/;
like(plan_of(q{SELECT * FROM events WHERE snowflake_timestamp(id) >= '2026-11-19Z'}, 'DROP INDEX events_created_at;'),
	qr/^Seq Scan on events/, 'a condition on snowflake_timestamp(id) is not served by the primary key');
value($_->{code}) foreach grep { $_->{code} =~ /INDEX events_created_at/ } @blocks;
value('ANALYZE events');
like(plan_of(q{SELECT * FROM events WHERE id >= snowflake_min_id(now() - interval '24 hours')}),
	$key, 'the primary key serves a bound that depends on now()');
like(plan_of(q{SELECT * FROM events WHERE id >= snowflake_min_id('2026-11-01Z') AND id < snowflake_min_id('2026-11-08Z')}),
	qr/^Index Scan using events_pkey on events\n +$bound AND \(id < /, 'the primary key serves a range of time');
is(value('SELECT id FROM events ORDER BY id DESC LIMIT 2'), "4034188275856970752\n4034187772540490752",
	'the next page begins at the last ID of the first one');
like(plan_of(q{SELECT id, kind FROM events WHERE id < 4034187269224010752 ORDER BY id DESC LIMIT 3}),
	qr/^Limit\n +-> +Index Scan Backward using events_pkey on events\n +$bound/, 'a page reads the primary key backwards');
is(value(q{SELECT id FROM events WHERE id < snowflake_min_id('2026-11-01 12:00Z') ORDER BY id DESC LIMIT 1}),
	4020779924829770752, 'a page can begin at a time');
like(plan_of(q{SELECT id FROM events WHERE kind = 'hour' AND id < snowflake_min_id('2026-11-01Z') ORDER BY id DESC LIMIT 20},
		'CREATE INDEX events_kind_id ON events (kind, id);'),
	qr/Index Only Scan Backward using events_kind_id on events\n +Index Cond: \(\(kind = 'hour'::text\) AND \(id < /,
	'an index on the kind and the ID serves a page of one kind');
like(plan_of(q{SELECT count(*) FROM events WHERE id >= snowflake_min_id('2026-11-17Z')}),
	qr/^Aggregate\n +-> +Index Only Scan using events_pkey on events\n +$bound/, 'the index alone counts a range');
like(plan_of(q{SELECT day, n FROM generate_series('2026-11-18Z'::timestamptz, '2026-11-21Z', '24 hours') AS day,
		LATERAL (SELECT count(*) AS n FROM events
			WHERE id >= snowflake_min_id(day) AND id < snowflake_min_id(day + interval '24 hours')) AS that_day}),
	qr/Index Only Scan using events_pkey on events\n +Index Cond: \(\(id >= snowflake_min_id\(day/, 'the index counts a series of days');
like(plan_of(q{DELETE FROM events WHERE id < snowflake_min_id('2026-10-16Z')}),
	qr/^Delete on events\n +-> +Index Scan using events_pkey on events\n +$bound/, 'a deletion reads the primary key');
like(plan_of(q{EXECUTE since('2026-11-19Z')}, q{SET plan_cache_mode = force_generic_plan;
		PREPARE since (timestamptz) AS SELECT * FROM events WHERE id >= snowflake_min_id($1);}),
	$key, 'the primary key serves a generic plan');
like(plan_of(q{SELECT created_at, kind FROM recent_events WHERE id < snowflake_min_id('2026-11-02Z')}),
	qr/^Index Scan using events_pkey on events\n +$bound AND \(id < /, 'the primary key serves a view');
like(plan_of(q{SELECT kind FROM recent_events WHERE created_at >= '2026-11-19 12:00Z'}),
	qr/^Index Scan using events_created_at on events/, 'an index on snowflake_timestamp(id) serves its time');
like(plan_of(q{SELECT count(*) FROM visits
		WHERE id >= snowflake_min_id('2026-11-15 12:00Z') AND id < snowflake_min_id('2026-11-15 13:00Z')}),
	qr/-> +Bitmap Index Scan on visits_brin/, 'BRIN serves a range');
cmp_ok(value(q{SELECT pg_relation_size('visits_brin') / 8192}), '<', 10, 'a BRIN index has a few pages');
is(value(q{SELECT snowflake_min_id('2026-11-01Z', 'twitter'), snowflake_min_id('2026-11-01Z', 'discord')}),
	'2116681624581046272|1566240355123200000', 'bounds of other layouts');

# Days are those of UTC, wherever the session is, and whatever its clocks do on 2026-11-01.
{
	my ($counts) = grep { $_->{section} eq 'Counting per day' } @blocks;
	local $ENV{PGTZ} = 'America/New_York';
	run_examples($node, 'ranges', $counts);
	is(value(q{
			SELECT (snowflake_timestamp(id) AT TIME ZONE 'UTC')::date AS day, count(*)
			FROM events WHERE id >= snowflake_min_id('2026-11-15Z') GROUP BY 1 ORDER BY 1}),
		join("\n", map { "2026-11-$_|1440" } 15 .. 19), 'rows are counted by days of UTC where the session has others');
	(my $changing = $counts->{code}) =~ s/2026-11-(18|21)Z/$1 == 18 ? '2026-10-31Z' : '2026-11-03Z'/ge;
	is(value($changing), join("\n", map { "2026-$_|1440" } qw(10-31 11-01 11-02 11-03)),
		'days are those of UTC where the session has a day of 25 hours');
}

# Numbers of a serial are older than everything, unless a deletion begins after them.
is(value(q{
		BEGIN;
		INSERT INTO events VALUES (1, 'serial');
		DELETE FROM events WHERE id >= snowflake_min_id('2011-08-25Z') AND id < snowflake_min_id('2026-10-17Z');
		SELECT count(*) FROM events WHERE kind = 'serial';
		DELETE FROM events WHERE id < snowflake_min_id('2026-10-17Z');
		SELECT count(*) FROM events WHERE kind = 'serial';
		ROLLBACK}), "1\n0", 'a deletion by age takes the rows of a serial, or keeps them');

# A reader that remembers the last ID: transactions that commit in another order
# than they took their IDs hide rows from one that knows no better.
my ($safely) = map { $_->{code} } grep { $_->{section} eq 'Reading what is new' } @blocks;
$safely =~ s/SELECT id FROM/SELECT id, kind FROM/ or die;
my ($early, $late) = map { $node->background_psql('ranges') } 1 .. 2;
my $last = 4034187269224010752;
my (@naive, @read);
foreach my $round (1 .. 20)
{
	# Begun and used in one message, so mostly in one millisecond.
	$early->query_safe("BEGIN; INSERT INTO events (kind) VALUES ('early $round')");
	$late->query_safe("INSERT INTO events (kind) VALUES ('late $round')");
	push @naive, value("SELECT kind FROM events WHERE id > $last ORDER BY id");
	(my $sql = $safely) =~ s/4034187269224010752/$last/ or die;
	push @read, value($sql);
	$last = (split /\|/, $1)[0] if $read[-1] =~ /^([^\n]*)\z/m && $1 ne '';
	$early->query_safe('COMMIT');
}
(my $sql = $safely) =~ s/4034187269224010752/$last/ or die;
push @read, value($sql);
my @kinds = map { (split /\|/, $_)[1] } split /\n/, join("\n", grep { $_ ne '' } @read);
is_deeply([ grep { /early|late/ } @kinds ], [ map { ("early $_", "late $_") } 1 .. 20 ],
	'a reader that stops short of running transactions misses nothing, and reads nothing twice');
is(scalar(grep { /late (\d+)$/ && !/early $1\n/ } @naive), 20, 'control: a reader that does not stop short of them skips rows');
$_->quit foreach $early, $late;

run_examples($node, 'ranges', @blocks[ $partitions_begin .. $dropping - 1 ]);
is(value(q{SELECT make_partitions('logs', '2026-11-02Z', '2026-11-05Z')}),
	join("\n", map { "logs_2026110$_" } 2 .. 5), 'make_partitions() makes a partition for each day');
is(value(q{SELECT make_partitions('logs', '2026-11-01 23:00Z', '2026-11-05 01:00Z')}), 'logs_20261101',
	'make_partitions() makes what is missing');
run_examples($node, 'ranges', @blocks[ $dropping .. $existing - 1 ]);
value(q{CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text);
	INSERT INTO photos (title) VALUES ('sunrise'), ('harbour')});
run_examples($node, 'ranges', @blocks[ $existing .. $#blocks ]);
is(value(q{INSERT INTO photos (title) VALUES ('night market'); SELECT title, tableoid::regclass FROM photos ORDER BY id}),
	"sunrise|photos_old\nharbour|photos_old\nnight market|photos_old", 'an existing table is the first partition');
is(value(q{INSERT INTO photos VALUES (snowflake_id(now() + interval '3 days', 5, 0)) RETURNING
		tableoid::regclass::text = to_char(now() AT TIME ZONE 'UTC' + interval '3 days', '"photos_"YYYYMMDD')}),
	't', 'an existing table gets a partition for each coming day');

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
	my $plan = plan_of(@_);
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
like(plan_of(q{EXECUTE since('2026-11-04 12:00Z', '2026-11-05 12:00Z')}, $generic),
	qr/Subplans Removed: 5/, 'the executor leaves out the others');
is(partitions_read("SELECT * FROM logs WHERE id >= snowflake_min_id($midnight) AND id < snowflake_min_id($midnight + interval '1 day')"),
	$today, 'a query that depends on now() reads the partition of today');
is(partitions_read(q{SELECT * FROM shown_logs WHERE id >= snowflake_min_id('2026-11-02Z') AND id < snowflake_min_id('2026-11-03Z')},
		'CREATE VIEW shown_logs AS SELECT id, snowflake_timestamp(id) AS created_at, kind FROM logs;'),
	'logs_20261102', 'a view leads to the partition of the day');
is(scalar(split / /, partitions_read(q{SELECT * FROM shown_logs WHERE created_at >= '2026-11-03Z'})), 7,
	'a condition on snowflake_timestamp(id) leads to all partitions');
like(plan_of(q{SELECT * FROM logs WHERE id < snowflake_min_id('2026-11-04 12:00Z') ORDER BY id DESC LIMIT 20}),
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

# What the text says of an existing table that has foreign keys and views
{
	my ($block) = grep { $_->{section} eq 'An existing table' } @blocks;
	my $with = sub {
		my ($database, $addition) = @_;
		$node->safe_psql('postgres', "CREATE DATABASE $database");
		$node->safe_psql($database, 'CREATE EXTENSION snowflake;' . (grep { /FUNCTION make_partitions/ }
			map { $_->{code} } @blocks)[0]);
		(my $sql = $block->{code}) =~ s/^(ALTER TABLE photos ATTACH)/$addition\n$1/m or die;
		$node->safe_psql($database, q{
			CREATE TABLE users (id bigint PRIMARY KEY);
			CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text, user_id bigint REFERENCES users);
			CREATE VIEW titles AS SELECT title FROM photos});
		$node->safe_psql($database, $sql);
		return sqlstate_of($node, q{INSERT INTO photos VALUES (snowflake_id(now() + interval '3 days', 5, 0), 'later', 666)},
			dbname => $database);
	};
	like($with->('kept', <<EOS), qr/^23503/, 'a foreign key that was added before ATTACH is kept');
ALTER TABLE photos ADD CONSTRAINT photos_user_id_fkey FOREIGN KEY (user_id) REFERENCES users;
DROP VIEW titles; CREATE VIEW titles AS SELECT title FROM photos;
EOS
	is($node->safe_psql('kept', q{SELECT count(*) FROM pg_constraint WHERE conrelid = 'photos_old'::regclass AND contype = 'f'}),
		1, 'that foreign key takes over the one of the old table');
	$node->safe_psql('kept', q{INSERT INTO photos VALUES (snowflake_id(now() + interval '3 days', 5, 0), 'later')});
	is($node->safe_psql('kept', q{SELECT count(*) FROM titles WHERE title = 'later'}), 1, 'a view that was created again has all rows');
	like($with->('lost', ''), qr/^no error/, 'control: LIKE copies no foreign key');
	is($node->safe_psql('lost', q{SELECT count(*) FROM titles WHERE title = 'later'}), 0, 'control: a view stays with the old table');
}

# Nobody is locked out, nor locks out the recipe
my $writer = $node->background_psql('ranges');
$writer->query_safe("BEGIN; INSERT INTO logs (kind) VALUES ('writing')");
is( value(<<EOS), 'logs_20121201',
SET lock_timeout = '5s';
SELECT make_partitions('logs', '2012-12-01', '2012-12-01');
EOS
	'partitions are made while others write');
like(
	sqlstate_of($node, "SET lock_timeout = '100ms'; CREATE TABLE e PARTITION OF logs FOR VALUES FROM (1) TO (2)",
		dbname => 'ranges'),
	qr/^55P03/,
	'control: CREATE TABLE ... PARTITION OF waits for writers');
$writer->query_safe('COMMIT');

# Two at once
my ($one, $two) = map { $node->background_psql('ranges') } 1 .. 2;
$one->query_safe("BEGIN; SELECT make_partitions('logs', '2012-12-02', '2012-12-03')");
$two->query_until(qr/begun/, "\\echo begun\nSELECT 'made ' || count(*) FROM make_partitions('logs', '2012-12-02', '2012-12-04');\n");
ok(wait_for(sub {
		value("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0;
	}), 'a second call of make_partitions() waits for the first one');
$one->query_safe('COMMIT');
like($two->query('SELECT 1'), qr/made 1\b/, 'the second call makes what is still missing');
$_->quit foreach $one, $two, $writer;

$node->stop;
done_testing();
