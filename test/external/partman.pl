# pg_partman drives a table by ID range with its bounds at UTC midnights: the
# recipe of doc/ranges.md, and what becomes of the table as days go by.
#
# Packages: postgresql-@MAJOR@-partman

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('partman');

my ($version) = split /\./,
  $node->safe_psql('postgres', "SELECT default_version FROM pg_available_extensions WHERE name = 'pg_partman'");
plan skip_all => 'pg_partman is not in this installation of PostgreSQL' if !$version;
note "pg_partman $version";

my ($create, $settings, $ahead, $move) = blocks_in('doc/ranges.md', 'pg_partman');
$create->{code} =~ s/'range'/'native'/ or die 'no type of partitions' if $version < 5;
run_examples($node, 'postgres', $create);
is($node->safe_psql('postgres', q{SELECT DISTINCT snowflake_min_id(day + interval '24 hours') - snowflake_min_id(day)
		FROM generate_series('2026-11-01Z'::timestamptz, '2026-11-30Z', '24 hours') AS day}),
	724775731200000, 'a day has as many IDs as doc/ranges.md says');

# Of each partition but the default one: from when, until when, how many rows
my $partitions = <<'EOS';
SELECT snowflake_timestamp(bounds[1]), snowflake_timestamp(bounds[2]),
	(xpath('//n/text()', query_to_xml('SELECT count(*) AS n FROM ' || partition, true, true, '')))[1]
FROM (SELECT inhrelid::regclass AS partition, regexp_match(pg_get_expr(relpartbound, oid), '\(''(\d+)''\) TO \(''(\d+)''\)')::bigint[]
	FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'events'::regclass) AS p (partition, bounds)
WHERE bounds IS NOT NULL ORDER BY 1
EOS
my $today = $node->safe_psql('postgres', "SELECT date_trunc('day', now(), 'UTC')");
# The same of empty partitions from a day on, one for each day
my $days = q{SELECT t, t + interval '1 day', 0 FROM generate_series('%s'::timestamptz, '%1$s'::timestamptz + interval '%s days', '1 day') AS t};
is($node->safe_psql('postgres', $partitions), $node->safe_psql('postgres', sprintf $days, $today, 1),
	'the first partitions are today and tomorrow in UTC');

# Without rows
$node->safe_psql('postgres', 'CREATE DATABASE without_rows');
run_examples($node, 'without_rows', $create, $settings);
is($node->safe_psql('without_rows', $partitions), $node->safe_psql('postgres', sprintf $days, $today, 1),
	'control: maintenance makes no partitions for a table without rows');
run_examples($node, 'without_rows', $ahead);
is($node->safe_psql('without_rows', $partitions), $node->safe_psql('postgres', sprintf $days, $today, 7),
	'partitions are made by the clock');
# Maintenance of pg_partman 5 does not look at the default partition before it comes to its days.
$node->safe_psql('without_rows', qq{INSERT INTO events (kind) VALUES ('now');
	INSERT INTO events SELECT snowflake_id('$today'::timestamptz + hours * interval '1 hour', 5, 0), 'later' FROM unnest(ARRAY[180, 200]) AS hours});
fails_with($node, q{SELECT partman.run_maintenance('public.events')}, qr/default partition .* would be violated/,
	'maintenance fails when rows came after all partitions', dbname => 'without_rows');
run_examples($node, 'without_rows', $move);
my @expected = split /\n/, $node->safe_psql('postgres', sprintf $days, $today, 8);
s/\|0$/|1/ foreach @expected[0, -2, -1];
is($node->safe_psql('without_rows', $partitions), join("\n", @expected),
	'rows are moved from the default partition to one that begins at midnight');
is($node->safe_psql('without_rows', q{SELECT count(*) FROM partman.check_default(); SELECT partman.run_maintenance('public.events') IS NULL}),
	"0\nf", 'then maintenance goes on');

# IDs of now, and of the coming days
$node->safe_psql('postgres', "INSERT INTO events (kind) SELECT 'now' FROM generate_series(1, 100)");
run_examples($node, 'postgres', $settings);
my $last = 0;
foreach my $day (1 .. 5)
{
	$node->safe_psql('postgres', <<EOS);
INSERT INTO events (id, kind) SELECT snowflake_id('$today'::timestamptz + interval '$day days' + n * interval '1 hour', 5, n), 'later'
FROM generate_series(0, 23) AS n;
SELECT partman.run_maintenance('public.events');
EOS
}
$last = $node->safe_psql('postgres', "SELECT max(snowflake_timestamp(t)) - '$today' FROM (SELECT (regexp_match(pg_get_expr(relpartbound, oid), '\\(''(\\d+)'))[1]::bigint FROM pg_class WHERE relispartition AND relkind = 'r') AS p (t)");
ok($node->safe_psql('postgres', "SELECT '$last'::interval BETWEEN '11 days' AND '13 days'") eq 't', 'maintenance makes partitions seven days ahead of the last row') or diag $last;
my $expected = $node->safe_psql('postgres', <<EOS);
SELECT t, t + interval '1 day', CASE WHEN t = '$today' THEN 100 WHEN t <= '$today'::timestamptz + interval '5 days' THEN 24 ELSE 0 END
FROM generate_series('$today'::timestamptz, '$today'::timestamptz + '$last', '1 day') AS t
EOS
is($node->safe_psql('postgres', $partitions), $expected, 'each partition has a day from UTC midnight to midnight, and its rows');
is($node->safe_psql('postgres', 'SELECT count(*) FROM events_default'), 0, 'the default partition is empty');

# Retention: three days before the last row, which is 23 o'clock of the fifth day
$node->safe_psql('postgres', <<EOS);
UPDATE partman.part_config SET retention = (3 * 724775731200000)::text;
SELECT partman.run_maintenance('public.events');
EOS
is( $node->safe_psql('postgres', "SELECT min(snowflake_timestamp(id)) - '$today' FROM events"), '2 days',
	'maintenance drops partitions older than the retention, and no others');

# What the document warns of
$node->safe_psql('postgres', <<EOS);
INSERT INTO events (id, kind) VALUES (snowflake_id('$today'::timestamptz + interval '40 days', 5, 0), 'far');
SELECT partman.partition_data_id('public.events');
EOS
like($node->safe_psql('postgres', $partitions), qr/21:07:01\.721.*21:07:01\.721[^\n]*\|1$/,
	'partition_data_id() makes bounds that are not midnights');

$node->stop;
done_testing();
