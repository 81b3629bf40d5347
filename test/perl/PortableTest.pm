# What the tests of portable/snowflake.sql share.
package PortableTest;

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Utils;
use SnowflakeTest;

our @EXPORT = qw(new_portable_database);

# Make a database with the portable version, in a schema if one is named.  With
# "max_lead", in milliseconds, sequences may be that far ahead of the clock, whose
# own progress would hide an ID that comes again.
sub new_portable_database
{
	my ($node, $database, %params) = @_;
	my $sql = slurp_file("$top/portable/snowflake.sql");

	$sql =~ s/max_lead constant bigint := \K1000(?=;)/$params{max_lead}/ or die 'no max_lead' if $params{max_lead};
	$sql = "CREATE SCHEMA $params{schema}; SET search_path = $params{schema};\n$sql" if $params{schema};
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	# PostgreSQL warns that it ignores the cast of a domain.
	$node->safe_psql($database, "SET client_min_messages = error;\n$sql");
	return;
}

1;
