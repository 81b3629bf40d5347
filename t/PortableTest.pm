# What the tests of portable/snowflake.sql share: databases with the portable
# version, and clients that keep a ledger of its IDs.
package PortableTest;

use strict;
use warnings;
use Exporter 'import';
use File::Basename;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

our @EXPORT = qw(install_portable new_portable_database server_with_both_versions
  start_ledger ledger_has_no_fault);

# Install the portable version in a database.  Returns what psql reports.
sub install_portable
{
	my ($node, $database, @settings) = @_;

	local $ENV{PGOPTIONS} = join(' ', map { "-c $_" } @settings);
	my ($out, $err) = run_command([ 'psql', '-XqAt', '-1', '-d', $node->connstr($database),
		'-f', dirname(__FILE__) . '/../portable/snowflake.sql' ]);
	return $err;
}

sub new_portable_database
{
	my ($node, $database) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	die if install_portable($node, $database) ne '';
	return;
}

# A server whose database "beside" has the extension, and the portable version in
# a schema.
sub server_with_both_versions
{
	my $node = server_in_utc('both_versions');

	$node->safe_psql('postgres', 'CREATE DATABASE beside');
	$node->safe_psql('beside', 'CREATE SCHEMA portable');
	install_portable($node, 'beside', 'search_path=portable');
	$node->safe_psql('beside', q{
		CREATE EXTENSION snowflake;
		-- the result of a command, or its error
		CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE
			result text;
		BEGIN
			EXECUTE command INTO result;
			RETURN result;
		EXCEPTION WHEN OTHERS THEN
			RETURN SQLSTATE || ' ' || SQLERRM;
		END $$});
	return $node;
}

# Start clients that make IDs and write them to a ledger, a path.
sub start_ledger
{
	my ($node, $database, $ledger, @options) = @_;
	return IPC::Run::start([ ledger_program(), 'run', '--connection', $node->connstr($database),
		'--shards', '5,8191', @options, $ledger ]);
}

# Ledgers report no faults, and no errors but those that a pattern allows.
sub ledger_has_no_fault
{
	my ($name, $allowed, @ledgers) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($report) = run_command([ ledger_program(), 'check', @ledgers ]);

	note($report);
	like($report, qr/^$_ +0$/m, "the ledger of $name has no fault: $_")
	  foreach 'duplicates', 'not growing within a call', 'out of order in time', 'wrong shard',
	  'too far ahead of the clock', 'behind the clock';
	my ($seen) = $report =~ /^errors by SQLSTATE +(.*)$/m;
	is(join(' ', grep { !/^($allowed)$/ } $seen =~ /(\w{5}):/g), '', "the ledger of $name has no errors but $allowed");
	return;
}

1;
