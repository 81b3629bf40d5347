# Ranges of time and partitions: the recipes of doc/ranges.md and of
# doc/partitioning.md do what they show, and what they promise beyond that:
# nobody is locked out, nobody misses a row, time zones change nothing.

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

foreach my $database (qw(ranges partitioning))
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION snowflake');
}

run_examples($node, 'ranges', blocks('doc/ranges.md'));

# Days are those of UTC, wherever the session is, and whatever its clocks do on 2026-11-01.
{
	my @counts = grep { $_->{section} eq 'Counting per day' && $_->{shown} =~ /^ +day/ } blocks('doc/ranges.md');
	local $ENV{PGTZ} = 'America/New_York';
	run_examples($node, 'ranges', @counts);
	(my $changing = $counts[-1]->{code}) =~ s/2026-11-(18|21)Z/$1 == 18 ? '2026-10-31Z' : '2026-11-03Z'/ge;
	is($node->safe_psql('ranges', $changing), join("\n", map { "2026-$_|1440" } qw(10-31 11-01 11-02 11-03)),
		'where the session has a day of 25 hours');
}

# Numbers of a serial are older than everything, unless a deletion begins after them.
is($node->safe_psql('ranges', q{
		BEGIN;
		INSERT INTO events VALUES (1, 'serial');
		DELETE FROM events WHERE id >= snowflake_min_id('2011-08-25Z') AND id < snowflake_min_id('2026-10-17Z');
		SELECT count(*) FROM events WHERE kind = 'serial';
		DELETE FROM events WHERE id < snowflake_min_id('2026-10-17Z');
		SELECT count(*) FROM events WHERE kind = 'serial';
		ROLLBACK}), "1\n0", 'a deletion by age takes the rows of a serial, or keeps them');

# A reader that remembers the last ID: transactions that commit in another order
# than they took their IDs hide rows from one that knows no better.
my ($safely) = map { $_->{code} } grep { $_->{section} eq 'Reading what is new' } blocks('doc/ranges.md');
my ($early, $late) = map { $node->background_psql('ranges') } 1 .. 2;
my $last = 4034187269224010752;
my (@naive, @read, @missed);
foreach my $round (1 .. 20)
{
	# Begun and used in one message, so mostly in one millisecond.
	$early->query_safe("BEGIN; INSERT INTO events (kind) VALUES ('early $round')");
	$late->query_safe("INSERT INTO events (kind) VALUES ('late $round')");
	push @naive, $node->safe_psql('ranges', "SELECT kind FROM events WHERE id > $last ORDER BY id");
	(my $sql = $safely) =~ s/4034187269224010752/$last/ or die;
	push @read, $node->safe_psql('ranges', $sql);
	$last = (split /\|/, $1)[0] if $read[-1] =~ /^([^\n]*)\z/m && $1 ne '';
	$early->query_safe('COMMIT');
}
(my $sql = $safely) =~ s/4034187269224010752/$last/ or die;
push @read, $node->safe_psql('ranges', $sql);
my @kinds = map { (split /\|/, $_)[1] } split /\n/, join("\n", grep { $_ ne '' } @read);
is_deeply([ grep { /early|late/ } @kinds ], [ map { ("early $_", "late $_") } 1 .. 20 ],
	'a reader that stops short of running transactions misses nothing, and reads nothing twice');
is(scalar(grep { /late (\d+)$/ && !/early $1\n/ } @naive), 20, 'control: one that does not stop skips rows');
$_->quit foreach $early, $late;

run_examples($node, 'partitioning', grep { $_->{section} !~ /pg_partman [45]|daily run|TimescaleDB/ } blocks('doc/partitioning.md'));

# Pruned while the query runs
my $plan = $node->safe_psql('partitioning', <<EOS);
CREATE TABLE times AS SELECT '2026-11-03 12:00Z'::timestamptz AS since, '2026-11-03 13:00Z'::timestamptz AS until;
SET enable_hashjoin = off; SET enable_mergejoin = off;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT events.* FROM times, events WHERE id >= snowflake_min_id(since) AND id < snowflake_min_id(until);
EOS
like($plan, qr/events_20261103_pkey[^\n]*actual rows=60/, 'a join reads the partition of its time');
unlike($plan =~ s/[^\n]*events_20261103[^\n]*//r, qr/ on events_\d+ [^\n]*actual/, 'and no other one');

# Foreign time zones, where a midnight is missing at that: of 2018-11-04
is($node->safe_psql('partitioning', <<EOS), 't', 'partitions begin at UTC midnights, wherever the session is');
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
is($node->safe_psql('partitioning', <<EOS), q{"the Shard"."Photos_20261101"}, 'names that need quotes');
CREATE SCHEMA "the Shard";
CREATE TABLE "the Shard"."Photos" (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT make_partitions('"the Shard"."Photos"', '2026-11-01', '2026-11-01');
EOS

# A numbered column stays that of the parent.
is($node->safe_psql('partitioning', <<EOS), "1\n1", 'partitions have no sequence of their own');
CREATE TABLE numbered (id bigint PRIMARY KEY, nr bigint GENERATED ALWAYS AS IDENTITY) PARTITION BY RANGE (id);
SELECT FROM make_partitions('numbered', '2026-11-01', '2026-11-01');
INSERT INTO numbered (id) VALUES (snowflake_id('2026-11-01 12:00Z', 5, 0)) RETURNING nr;
SELECT count(*) FROM pg_class WHERE relkind = 'S' AND relname LIKE 'numbered%';
EOS

# What the text says of a table that is there already and has foreign keys, views and publications
{
	my ($block) = grep { $_->{section} eq 'A table that is there already' } blocks('doc/partitioning.md');
	my $with = sub {
		my ($database, $addition) = @_;
		$node->safe_psql('postgres', "CREATE DATABASE $database");
		$node->safe_psql($database, 'CREATE EXTENSION snowflake;' . (grep { /FUNCTION make_partitions/ }
			map { $_->{code} =~ s/^SELECT make_partitions.*//smr } blocks('doc/partitioning.md'))[0]);
		(my $sql = $block->{code}) =~ s/(title text)\);/$1, user_id bigint REFERENCES users);
			CREATE VIEW titles AS SELECT title FROM photos;/ or die;
		$sql =~ s/^(ALTER TABLE photos ATTACH)/$addition\n$1/m or die;
		$node->safe_psql($database, "CREATE TABLE users (id bigint PRIMARY KEY); $sql");
		return sqlstate_of($node, q{INSERT INTO photos VALUES (snowflake_id(now() + interval '5 days', 5, 0), 'later', 666)},
			dbname => $database);
	};
	like($with->('kept', <<EOS), qr/^23503/, 'a foreign key that was added before ATTACH is kept');
ALTER TABLE photos ADD CONSTRAINT photos_user_id_fkey FOREIGN KEY (user_id) REFERENCES users;
DROP VIEW titles; CREATE VIEW titles AS SELECT title FROM photos;
EOS
	is($node->safe_psql('kept', q{SELECT count(*) FROM pg_constraint WHERE conrelid = 'photos_old'::regclass AND contype = 'f'}),
		1, 'and that of the old table is taken for it');
	$node->safe_psql('kept', q{INSERT INTO photos VALUES (snowflake_id(now() + interval '5 days', 5, 0), 'later')});
	is($node->safe_psql('kept', q{SELECT count(*) FROM titles WHERE title = 'later'}), 1, 'a view made anew has all rows');
	like($with->('lost', ''), qr/^no error/, 'control: LIKE copies no foreign key');
	is($node->safe_psql('lost', q{SELECT count(*) FROM titles WHERE title = 'later'}), 0, 'control: nor does a view follow');
}

# Nobody is locked out, nor locks out the recipe
my $writer = $node->background_psql('partitioning');
$writer->query_safe("BEGIN; INSERT INTO events (kind) VALUES ('writing')");
is( $node->safe_psql('partitioning', <<EOS), 'events_20121201',
SET lock_timeout = '5s';
SELECT make_partitions('events', '2012-12-01', '2012-12-01');
EOS
	'partitions are made while others write');
like(
	sqlstate_of($node, "SET lock_timeout = '100ms'; CREATE TABLE e PARTITION OF events FOR VALUES FROM (1) TO (2)",
		dbname => 'partitioning'),
	qr/^55P03/,
	'control: CREATE TABLE ... PARTITION OF waits for them');
$writer->query_safe('COMMIT');

# Two at once
my ($one, $two) = map { $node->background_psql('partitioning') } 1 .. 2;
$one->query_safe("BEGIN; SELECT make_partitions('events', '2012-12-02', '2012-12-03')");
$two->query_until(qr/begun/, "\\echo begun\nSELECT 'made ' || count(*) FROM make_partitions('events', '2012-12-02', '2012-12-04');\n");
ok(wait_for(sub {
		$node->safe_psql('partitioning', "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0;
	}), 'a second call waits for the first one');
$one->query_safe('COMMIT');
like($two->query('SELECT 1'), qr/made 1\b/, 'and makes what is still missing');
$_->quit foreach $one, $two, $writer;

$node->stop;
done_testing();
