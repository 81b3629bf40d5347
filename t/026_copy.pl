# COPY: rows whose IDs come from a default are written a page at a time, as for
# nextval(), and no ID comes twice when servers are killed during it.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $sessions = 8;
my $crashes = 5;

my $node = PostgreSQL::Test::Cluster->new('copy');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', "snowflake.max_lead = '30d'\nsnowflake.shard = 7\nautovacuum = off\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE ahead;
	SELECT snowflake_alter_sequence('ahead')});

# The WAL records of a COPY of 1,000 rows: those of many rows, and of one row.
sub records_of_copy
{
	my ($table) = @_;
	my $from = $node->lsn('insert');
	$node->safe_psql('postgres', "COPY $table (n) FROM stdin;\n" . join("\n", 1 .. 1000) . "\n\\.\n");
	my $to = $node->safe_psql('postgres', 'SELECT pg_switch_wal()');
	my ($records) = run_command([ 'pg_waldump', '-p', $node->data_dir . '/pg_wal', '-s', $from, '-e', $to ]);
	my $many = () = $records =~ /desc: MULTI_INSERT/g;
	my $one = () = $records =~ /desc: INSERT(?:\+INIT)? off/g;
	return ($many, $one);
}

foreach my $case (
	[ 'identity', 'bigint GENERATED ALWAYS AS IDENTITY' ],
	[ 'argument', 'bigint DEFAULT next_id(5)' ],
	[ 'setting', 'bigint DEFAULT next_id()' ],
	[ 'sequence', q{bigint DEFAULT next_id(5, 'ahead')} ],
	[ 'expression', q{text DEFAULT snowflake_to_text(next_id(5))} ])
{
	my ($table, $column) = @$case;
	$node->safe_psql('postgres', "CREATE TABLE $table (id $column, n int)");
	my ($many, $one) = records_of_copy($table);
	ok($many > 0 && $many < 50, "COPY into a table with $column writes many rows in one record");
	is($one, 0, "COPY into a table with $column writes no record of one row");
	is($node->safe_psql('postgres', "SELECT count(DISTINCT id) FROM $table"), 1000,
		"COPY into a table with $column makes an ID for each row");
}
$node->safe_psql('postgres', 'CREATE TABLE volatile (id bigint DEFAULT next_id((random() * 8)::bigint), n int)');
my ($many, $one) = records_of_copy('volatile');
is("$many $one", '0 1000', 'COPY into a table whose default calls another volatile function writes a record for each row');

# A subscriber evaluates defaults of columns that the publisher lacks.
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->start;
$subscriber->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE notes (n int PRIMARY KEY, id bigint DEFAULT next_id(6))});
my $publisher = $node->connstr . ' dbname=postgres';
$node->safe_psql('postgres', q{
	CREATE TABLE notes (n int PRIMARY KEY);
	INSERT INTO notes SELECT generate_series(1, 100);
	CREATE PUBLICATION notes FOR TABLE notes});
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION notes CONNECTION '$publisher' PUBLICATION notes");
$subscriber->wait_for_subscription_sync($node, 'notes');
$node->safe_psql('postgres', 'INSERT INTO notes SELECT generate_series(101, 200)');
$node->wait_for_catchup('notes');
is( $subscriber->safe_psql('postgres', 'SELECT count(DISTINCT id), bool_and(snowflake_shard(id) = 6) FROM notes'),
	'200|t', 'a subscriber makes an ID for each row, copied or replicated');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION notes');
$subscriber->stop;

# Killed while many sessions copy.  The clock's progress cannot hide an ID that
# comes twice from a sequence ahead of it, or from a counter, which logs ahead
# fewer values than one COPY takes.
$node->safe_psql('postgres', q{
	CREATE SEQUENCE counter;
	SELECT snowflake_alter_sequence('counter', 'shard:13 sequence:31');
	CREATE TABLE lines (n int,
		id bigint DEFAULT next_id(5, 'ahead'),
		number bigint DEFAULT next_id(5, 'counter', 'shard:13 sequence:31'))});
ahead_of_clock($node, 'ahead', '1 day');
my $input = $node->basedir . '/lines';
append_to_file($input, join("\n", 1 .. 3000) . "\n");
foreach my $round (1 .. $crashes)
{
	my $script = $node->basedir . "/copy$round.sql";
	append_to_file($script, "\\copy lines (n) FROM '$input'\n" x 500);
	my @loads = map {
		IPC::Run::start([ 'psql', '-Xq', '-d', $node->connstr('postgres'), '-f', $script ], '>', \my $out, '2>', \my $err)
	} 1 .. $sessions;
	my $before = $node->safe_psql('postgres', 'SELECT count(*) FROM lines');
	ok(wait_for(sub { $node->safe_psql('postgres', 'SELECT count(*) FROM lines') >= $before + 40_000 }),
		"sessions copy 40,000 rows before crash $round");
	crash($node);
	$_->finish foreach @loads;
	$node->start;
	is( $node->safe_psql('postgres', q{
			SELECT next_id(5, 'ahead') > max(id), next_id(5, 'counter', 'shard:13 sequence:31') > max(number) FROM lines}),
		't|t', "the next IDs after crash $round are larger than all that were copied");
}

is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id), count(*) - count(DISTINCT number) FROM lines'),
	'0|0', 'no ID was copied twice amid crashes');

$node->stop;
done_testing();
