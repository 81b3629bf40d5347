# TimescaleDB: the recipe of doc/partitioning.md does what it shows, and its
# chunks are UTC days.  Debian has it for 17; its edition there knows no
# compression, so that is tested with TimescaleDB's own packages only.
#
# Packages: postgresql-@MAJOR@-timescaledb

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib "$FindBin::RealBin/../t";
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('timescaledb');
$node->init;
$node->append_conf('postgresql.conf', "timezone = 'UTC'\n");
$node->start;
my $version = $node->safe_psql('postgres', "SELECT default_version FROM pg_available_extensions WHERE name = 'timescaledb'");
plan skip_all => 'TimescaleDB is not in this installation of PostgreSQL' if !$version;
note "TimescaleDB $version";
$node->append_conf('postgresql.conf', <<EOC);
shared_preload_libraries = 'timescaledb'
timescaledb.telemetry_level = off
EOC
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');

run_examples($node, 'postgres', grep { $_->{section} eq 'TimescaleDB' } blocks('doc/partitioning.md'));

is( $node->safe_psql('postgres', <<EOS), '2026-11-03|2026-11-04|2026-11-05', 'a chunk is a day of UTC');
SELECT string_agg(DISTINCT snowflake_timestamp(id)::date::text, '|')
FROM (SELECT tableoid, min(id) AS first, max(id) AS last FROM events GROUP BY tableoid
	HAVING count(DISTINCT snowflake_timestamp(id)::date) = 1) AS chunks JOIN events ON id = first
WHERE id < snowflake_min_id('2026-11-06Z')
EOS
is( $node->safe_psql('postgres', <<EOS), 't', 'a chunk for what is inserted now');
SELECT tableoid::regclass <> 'events'::regclass FROM events WHERE kind = 'now'
EOS

SKIP:
{
	skip 'this edition of TimescaleDB has no compression', 1
	  if $node->safe_psql('postgres', 'SHOW timescaledb.license') ne 'timescale';
	$node->safe_psql('postgres', 'CREATE DATABASE compression');
	my $report = $node->safe_psql('compression', '\i ' . "$FindBin::RealBin/../bench/timescaledb.sql");
	note $report;
	my %compressed = map { (split /\|/)[ 0, 2 ] } split /\n/, $report;
	cmp_ok($compressed{ids}, '<', $compressed{uuids} / 2, 'compressed IDs take less than half the room of UUIDs');
}

$node->stop;
done_testing();
