# CREATE EXTENSION makes of each version the objects that are on record: what
# t/catalog.sql prints of version 1.0 is t/catalog--1.0.txt.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('catalog');
$node->init;
$node->start;
# Not a superuser, so that the record tells the owner's objects from the superuser's.
$node->safe_psql('postgres', 'CREATE ROLE owner');

foreach my $version (map { /--([^-]+)\.sql$/ } glob "$FindBin::RealBin/../snowflake--*.sql")
{
	my $record = "catalog--$version.txt";
	my $made = PostgreSQL::Test::Utils::tempdir . "/$record";

	$node->safe_psql('postgres', qq{CREATE DATABASE "$version" OWNER owner});
	$node->safe_psql($version, qq{SET ROLE owner; CREATE EXTENSION snowflake VERSION '$version'});
	append_to_file($made, catalog_of($node, $version) . "\n");
	my ($difference, $error) = run_command([ 'diff', '-U0', "$FindBin::RealBin/$record", $made ]);
	is("$error$difference", '', "version $version consists of what t/$record says") or diag <<EOM;
If version $version is released, do not change it: write an upgrade script to a
new version, and add the record of that one.  Until then, replace the record.
This prints it, if a role that is no superuser has created the extension:
    psql -XAt -f t/catalog.sql >t/$record
EOM
}

$node->stop;
done_testing();
