# What the tests of portable/snowflake.sql share: databases with the portable
# version.
package PortableTest;

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Utils;
use SnowflakeTest;

our @EXPORT = qw(install_portable new_portable_database server_with_both_versions);

# Install the portable version in a database.  With "max_lead", in milliseconds, a
# copy of the file allows sequences to be that far ahead of the clock, whose own
# progress would hide an ID that comes again.
sub install_portable
{
	my ($node, $database, %params) = @_;
	my $sql = slurp_file("$top/portable/snowflake.sql");
	my $copy = PostgreSQL::Test::Utils::tempdir() . '/snowflake.sql';

	$sql =~ s/max_lead constant bigint := \K1000(?=;)/$params{max_lead}/ or die 'no max_lead' if $params{max_lead};
	$sql = "SET search_path = $params{schema};\n$sql" if $params{schema};
	# PostgreSQL warns that it ignores the cast of a domain.
	write_file($copy, "SET client_min_messages = error;\n$sql");
	$node->command_ok([ 'psql', '-Xq', '-1', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($database), '-f', $copy ],
		"the portable version is installed in database $database");
	return;
}

sub new_portable_database
{
	my ($node, $database, %params) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	return install_portable($node, $database, %params);
}

# A server whose database "beside" has the extension, and the portable version in
# the schema "portable".
sub server_with_both_versions
{
	my $node = server_in_utc('both_versions');

	$node->safe_psql('postgres', 'CREATE DATABASE beside');
	$node->safe_psql('beside', 'CREATE SCHEMA portable');
	install_portable($node, 'beside', schema => 'portable');
	$node->safe_psql('beside', 'CREATE EXTENSION snowflake');
	return $node;
}

1;
