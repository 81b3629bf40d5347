# pg_dump in its formats and parts, restored where the clock is behind the last IDs.
# Sequences a day ahead of the clock stand for a clock set back by a day.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = server_ahead_of_clock('original', '');
ahead_of_clock($node, 'next_id_seq', '1 day');
$node->safe_psql('postgres', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), n int);
	INSERT INTO photos SELECT FROM generate_series(1, 100);
	ALTER SEQUENCE used OWNED BY photos.id});
my %last = map { $_ => next_id($node, $_) } 'used', 'next_id_seq';

my %options = (
	plain => ['-Fp'], custom => ['-Fc'], directory => [ '-Fd', '-j2' ],
	schema => [ '-Fc', '-s' ], data => [ '-Fc', '-a' ]);
foreach my $dump (sort keys %options)
{
	$node->command_ok(
		[ 'pg_dump', @{ $options{$dump} }, '-f', "$dir/$dump", '-d', $node->connstr('postgres') ],
		"pg_dump writes a dump: $dump");
}
$node->stop;

my $target = server_in_utc('target', "snowflake.max_lead = '30d'\n");

# Restore dumps into a new database that is named after them.
sub restore
{
	my (@dumps) = @_;
	my $database = join '_', @dumps;

	$target->safe_psql('postgres', "CREATE DATABASE $database");
	foreach my $dump (@dumps)
	{
		my @program = $dump eq 'plain' ? ('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f') : ('pg_restore', '-e');
		$target->command_ok([ @program, "$dir/$dump", '-d', $target->connstr($database) ],
			"a dump is restored into database $database: $dump");
	}
	return $database;
}

foreach my $dumps ([ 'plain' ], [ 'custom' ], [ 'directory' ], [ 'schema', 'data' ])
{
	my $database = restore(@$dumps);
	foreach my $sequence (sort keys %last)
	{
		cmp_ok(next_id($target, $sequence, $database), '>', $last{$sequence},
			"the next ID of $sequence is larger after a restore: $database");
	}
}
is( $target->safe_psql(restore('schema'), q{
		SELECT abs(extract(epoch FROM snowflake_timestamp(next_id(5)) - clock_timestamp())) < 3600}),
	't', 'IDs begin with the clock after a restore of the schema only');

$target->stop;
done_testing();
