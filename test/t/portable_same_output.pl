# The extension's own SQL tests, run on portable/snowflake.sql, have the output
# that they have with the extension.  portable_same_output.diff lists where it
# differs, other than by a layout that needs the extension.  A run leaves that list
# as it found it in tmp_check.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use PortableTest;
use SnowflakeTest;

my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = server_in_utc('portable');
my ($error_of) = slurp_file("$top/sql/extension.sql") =~ /^(CREATE FUNCTION error_of.*)/ms;
my $needs_extension = qr/layout "(?!instagram"|javascript")[^"]*" needs the extension|The portable version has the layouts/;
my %listed = slurp_file("$top/test/t/portable_same_output.diff") =~ /^(\w+)\n((?:[-+ @].*\n)*)/mg;

# The output in a form that depends neither on the width of columns nor on how a
# release words its own errors
sub canonical
{
	my ($output) = @_;

	$output =~ s/([ -])[ -]+/$1/g;
	$output =~ s/^ +//mg;
	$output =~ s/^(LINE \d+:|\^|(?:DETAIL|HINT): .*\bfunction\b|CONTEXT:|SQL statement|SQL function "|PL\/pgSQL function).*\n//mg;
	$output =~ s/(does not exist)\|.*/$1/g;
	$output =~ s/^(42883\|)No function .*/$1/mg;
	$output =~ s/ALTER DATABASE \w+ SET/ALTER DATABASE ... SET/g;
	$output =~ s/cannot (start subtransactions|execute \w+\(\)) during/cannot ... during/g;
	return $output;
}

# The lines in which the output differs from what is expected
sub differences
{
	my ($name, $expected, $output) = @_;

	append_to_file("$dir/$name.expected", canonical($expected));
	append_to_file("$dir/$name.output", canonical($output));
	my ($difference) = run_command([ 'diff', '-U1', "$dir/$name.expected", "$dir/$name.output" ]);
	$difference =~ s/\A---.*\n\+\+\+.*\n//;
	$difference =~ s/^@@.*/@@/mg;
	# That the other layouts need the extension is no news.
	$difference =~ s/^(?:-.*\n)*(?:\+.*$needs_extension.*\n)+(?=[ @]|\z)//mg;
	$difference =~ s/^@@\n(?: .*\n)*(?=@@|\z)//mg;
	return $difference eq '' ? '' : "$difference\n";
}

my @tests = qw(decode next_id next_ids advance errors sequences);
# When COMMIT fills a cursor WITH HOLD, an error that PL/pgSQL catches trips an
# assertion of PostgreSQL's, though nothing is wrong.
push @tests, 'transactions' if $node->safe_psql('postgres', 'SHOW debug_assertions') eq 'off';

foreach my $test (@tests)
{
	my $sql = slurp_file("$top/sql/$test.sql");
	my $expected = slurp_file("$top/expected/$test.out");
	my $output;

	foreach ($sql, $expected)
	{
		# The portable version is slower, ...
		s/\b2000000\b/100000/g;
		# and sets the sequence.
		s/GRANT USAGE ON SEQUENCE orders/GRANT USAGE, UPDATE ON SEQUENCE orders/;
	}

	new_portable_database($node, "test_$test");
	$node->safe_psql("test_$test", $error_of);
	{
		# as pg_regress does it
		local %ENV = (%ENV, PGTZ => 'PST8PDT', PGDATESTYLE => 'Postgres, MDY',
			PGOPTIONS => '-c intervalstyle=postgres_verbose');
		IPC::Run::run([ 'psql', '-X', '-a', '-q', '-d', $node->connstr("test_$test") ], '<', \$sql, '>&', \$output);
	}
	my $difference = differences($test, $expected, $output);
	append_to_file("$PostgreSQL::Test::Utils::tmp_check/portable_same_output.diff", "$test\n$difference");
	is($difference, $listed{$test}, "the portable version's output of sql/$test.sql differs as listed, and in nothing else");
}

$node->stop;
done_testing();
