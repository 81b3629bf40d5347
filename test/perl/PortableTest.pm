# What the tests of portable/snowflake.sql share: databases with the portable
# version.
package PortableTest;

use strict;
use warnings;
use Exporter 'import';
use File::Basename;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

our @EXPORT = qw(install_portable new_portable_database server_with_both_versions);

# Install the portable version in a database.  Returns what psql reports.
sub install_portable
{
	my ($node, $database, @settings) = @_;

	local $ENV{PGOPTIONS} = join(' ', map { "-c $_" } @settings);
	my ($out, $err) = run_command([ 'psql', '-XqAt', '-1', '-d', $node->connstr($database),
		'-f', "$top/portable/snowflake.sql" ]);
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
			detail text;
			hint text;
		BEGIN
			EXECUTE command INTO result;
			RETURN result;
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
			RETURN concat_ws(' ', SQLSTATE, SQLERRM, nullif(detail, ''), nullif(hint, ''));
		END $$});
	return $node;
}

1;
