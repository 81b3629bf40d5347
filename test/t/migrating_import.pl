# Old rows get IDs of their times by doc/migrating.md, while sessions insert new ones.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('import');
my ($tables, $choose, $insert, $check) = recipe('Import old rows');

# --- as printed ------------------------------------------------------------

new_database('app');
run_examples($node, 'app', $tables);
my $sessions = start_sessions('app', <<'EOS');
INSERT INTO photos (title) VALUES ('new') RETURNING id AS photo, 1 / (id > :last)::int AS growing \gset
SELECT 1 / count(*) FROM photos WHERE id = :photo;
\set last :photo
EOS
run_examples($node, 'app', $choose, $insert, $check);
sessions_end_without_error($sessions);

# --- rows of many times, some without one ----------------------------------

new_database('many');
run_examples($node, 'many', $tables);
$node->safe_psql('many', q{
	TRUNCATE old_photos;
	INSERT INTO old_photos SELECT n, 'photo ' || n, CASE n % 1000 WHEN 0 THEN NULL WHEN 1 THEN '1970-01-01Z'
		ELSE '2026-01-01Z'::timestamptz + n / 2500 * interval '1 ms' + random() * interval '3 ms' END
	FROM generate_series(1, 20000) AS n});
fails_with($node, $choose->{code}, qr/^22008 timestamp 1970-01-01 00:00:00\+00 is out of range/,
	'a time before that of the layout is refused', dbname => 'many');
my ($greatest) = slurp_file("$top/doc/migrating.md") =~ /before\s+2011-08-25,\s+write\s+`([^`]+)`/ or die 'no other time';
$node->safe_psql('many', ($choose->{code} =~ s/^CREATE TABLE.*\n//r =~ s/created_at/$greatest/gr) . $insert->{code});
is(value('many', q{
	SELECT count(*), count(*) FILTER (WHERE id <= before)
	FROM (SELECT p.id, lag(p.id) OVER (ORDER BY greatest(created_at, '2011-08-25Z'), o.id) AS before
		FROM photos AS p JOIN photo_ids AS i ON i.id = p.id JOIN old_photos AS o ON o.id = old_id) AS t}),
	'20000|0', 'all rows are there, and their IDs are in the order of their times');
is(value('many', q{SELECT count(*) FILTER (WHERE created_at > '2026-01-01Z' AND (snowflake_timestamp(p.id) < date_trunc('milliseconds', created_at)
			OR snowflake_timestamp(p.id) > created_at + interval '15 ms')),
		count(*) FILTER (WHERE snowflake_timestamp(p.id) < '2011-08-26Z')
		FROM photo_ids AS p JOIN old_photos AS o ON o.id = old_id}),
	'0|40', 'IDs are near the times of their rows, and rows without a useful time come first');

# A session's time zone does not shift rows whose time has none.
$node->safe_psql('many', q{TRUNCATE photo_ids; ALTER TABLE old_photos ALTER created_at TYPE timestamp USING '2026-01-01 12:00'});
my $without_casts = $choose->{code} =~ s/^CREATE TABLE.*\n//r;
fails_with($node, $without_casts, qr/^42804 /, 'a time without a time zone is refused', dbname => 'many');
my ($in_utc) = slurp_file("$top/doc/migrating.md") =~ /has no time\s+zone,\s+write\s+`([^`]+)`/ or die 'no time zone';
$node->safe_psql('many', q{SET timezone = 'Europe/Berlin'; } . $without_casts =~ s/created_at/$in_utc/r);
is(value('many', 'SELECT min(snowflake_timestamp(id)) FROM photo_ids'), '2026-01-01 12:00:00+00', '... and read as UTC where the statement says so');

$node->stop;
done_testing();
