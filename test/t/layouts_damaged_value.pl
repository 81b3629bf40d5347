# A stored layout that is damaged, or of a later version, is an error.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

# Checksums, which clusters have since 18, would find the damage first.
my $node = server_ahead_of_clock('damaged', "ignore_checksum_failure = on\n");
$node->safe_psql('postgres', q{
	CREATE TABLE layouts (layout snowflake_layout);
	INSERT INTO layouts VALUES ('instagram'), ('instagram'), ('instagram');
	CHECKPOINT});
my $path = file_of($node, 'layouts');
$node->stop;
my $page = slurp_file($path);
my ($upper, $special) = unpack 'SS', substr($page, 14, 4);
my $size = ($special - $upper) / 3;
# The first row is last on the page.  After its length, a value has its version
# and its text, which ends with a zero.
substr($page, $special - $size + 28, 1) = "\x63";
substr($page, $special - 2 * $size + 29, 1) = 'x';
substr($page, $special - 3 * $size + 29 + length('instagram'), 1) = 'x';
write_file($path, $page);
$node->start;
foreach my $use ('layout', 'snowflake_shard(5, layout)', q{next_id(5, 'used', layout)},
	q{next_ids(5, 1, 'used', layout)})
{
	my @errors = map { sqlstate_of($node, "SELECT $use FROM layouts WHERE ctid = '(0,$_)'") } 1 .. 3;
	like($errors[0], qr/^0A000 unsupported version 99 of type snowflake_layout/, "$use reports a layout of an unknown version");
	like($errors[1], qr/^XX001 damaged value of type snowflake_layout/, "$use reports a layout with a damaged text");
	like($errors[2], qr/^XX001 damaged value of type snowflake_layout/, "$use reports a layout whose text does not end");
}

$node->stop;
done_testing();
