# COPY writes rows whose IDs come from a default a page at a time, as it does with
# nextval().  No ID is repeated when the server is killed meanwhile.  sql/copy.sql
# shows that each row has its own ID.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_ahead_of_clock('copy', "snowflake.shard = 7\nautovacuum = off\n");

# Count the WAL records of a COPY of 1,000 rows: those of many rows and of one row.
sub records_of_copy
{
	my ($table) = @_;
	my $from = $node->lsn('insert');
	$node->safe_psql('postgres', "COPY $table (n) FROM stdin;\n" . join("\n", 1 .. 1000) . "\n\\.\n");
	my $to = $node->safe_psql('postgres', 'SELECT pg_switch_wal()');
	my $records = wal_records($node, $from, $to);
	my $many = () = $records =~ /desc: MULTI_INSERT/g;
	my $one = () = $records =~ /desc: INSERT(?:\+INIT)? off/g;
	return ($many, $one);
}

foreach my $column (
	'bigint GENERATED ALWAYS AS IDENTITY',
	'bigint DEFAULT next_id(5)',
	'bigint DEFAULT next_id()',
	q{bigint DEFAULT next_id(5, 'used')},
	q{bigint DEFAULT next_id(5, 'used', 'instagram')},
	q{bigint DEFAULT next_id(snowflake_shard(), 'used')},
	'snowflake DEFAULT next_id(5)',
	'snowflake DEFAULT next_id()',
	'text DEFAULT snowflake_to_text(next_id(5))')
{
	$node->safe_psql('postgres', "DROP TABLE IF EXISTS photos; CREATE TABLE photos (id $column, n int)");
	my ($many, $one) = records_of_copy('photos');
	ok($many > 0 && $many < 50, "COPY into a table with $column writes many rows in one record");
	is($one, 0, "COPY into a table with $column writes no record of one row");
}
$node->safe_psql('postgres', 'CREATE TABLE volatile (id bigint DEFAULT next_id((random() * 8)::bigint), n int)');
is(join(' ', records_of_copy('volatile')), '0 1000',
	'COPY into a table whose default calls another volatile function writes a record for each row');

# Kill the server while many sessions copy.  The clock's progress would hide a
# repeated ID.  So one sequence is ahead of the clock, and the other is a counter,
# whose WAL covers fewer values than one COPY takes.
$node->safe_psql('postgres', q{
	CREATE SEQUENCE counter;
	SELECT snowflake_alter_sequence('counter', 'shard:13 sequence:31');
	CREATE TABLE lines (n int,
		id bigint DEFAULT next_id(5, 'used'),
		number bigint DEFAULT next_id(5, 'counter', 'shard:13 sequence:31'))});
my $input = $node->basedir . '/lines';
append_to_file($input, join("\n", 1 .. 3000) . "\n");
append_to_file("$input.sql", "COPY lines (n) FROM '$input'\n");
foreach my $round (1 .. 5)
{
	my $before = $node->safe_psql('postgres', 'SELECT count(*) FROM lines');
	my $load = IPC::Run::start(
		[ 'pgbench', '-n', '-c', 8, '-T', 3600, '-f', "$input.sql", $node->connstr('postgres') ],
		'>', \my $out, '2>', \my $err);
	ok( $node->poll_query_until('postgres', "SELECT count(*) >= $before + 40000 FROM lines"),
		"sessions copy 40,000 rows before crash $round");
	crash($node);
	$load->finish;
	$node->start;
	is( $node->safe_psql('postgres', q{
			SELECT next_id(5, 'used') > max(id), next_id(5, 'counter', 'shard:13 sequence:31') > max(number) FROM lines}),
		't|t', "the next IDs after crash $round are larger than all that were copied");
}
is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id), count(*) - count(DISTINCT number) FROM lines'),
	'0|0', 'no ID was copied twice amid crashes');

$node->stop;
done_testing();
