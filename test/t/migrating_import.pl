# Old rows get IDs of their times by the recipe of doc/migrating.md, while sessions
# insert new ones.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('import');
my ($tables, $free, $choose, $late, $insert, $there, $back) = recipe('Import old rows');
my $script = <<'EOS';
INSERT INTO photos (title) VALUES ('new') RETURNING id AS photo, 1 / (id > :last)::int AS growing \gset
INSERT INTO comments (photo_id, body) VALUES (:photo, 'on new');
SELECT 1 / count(*) FROM photos WHERE id = :photo;
\set last :photo
EOS

# --- as printed, and back --------------------------------------------------

new_database('app');
run_examples($node, 'app', $tables);
$node->safe_psql('app', q{INSERT INTO photos SELECT n, 'small' FROM generate_series(1, 6000) AS n});
my $sessions = start_sessions('app', $script);
run_examples($node, 'app', $free, $choose, $late, $insert, $there);
is(value('app', q{
	SELECT count(*) FROM comments AS c JOIN photos AS p ON p.id = photo_id
	WHERE snowflake_shard(p.id) = 4 AND body = 'on ' || replace(title, 'photo ', '')}), 3000, 'comments are on their photos');
isnt(value('app', $free->{code}), 0, 'a shard that has rows is seen');
run_examples($node, 'app', $back, $free);
sessions_end_without_error($sessions);
is(value('app', q{SELECT count(*) FROM photos WHERE title = 'small'}), 6000, 'on the way back, old rows with small keys stay');
is(value('app', q{SELECT count(*) FROM comments WHERE body <> 'on new'}), 0, 'on the way back, comments go with their photos');

# --- rows of many times, some without one ----------------------------------

new_database('many');
run_examples($node, 'many', $tables);
$node->safe_psql('many', q{
	TRUNCATE old_photos, old_comments;
	INSERT INTO old_photos SELECT n, 'photo ' || n, CASE n % 1000 WHEN 0 THEN NULL WHEN 1 THEN '1970-01-01Z'
		ELSE '2026-01-01Z'::timestamptz + n / 2500 * interval '1 ms' + random() * interval '3 ms' END
	FROM generate_series(1, 20000) AS n});
fails_with($node, $choose->{code}, qr/^22008 timestamp 1970-01-01 00:00:00\+00 is out of range/,
	'a time before that of the layout is refused', dbname => 'many');
my ($greatest) = slurp_file("$top/doc/migrating.md") =~ /imported rows may be NULL or before\s+2011-08-25, write\s+`([^`]+)`\s+in place of\s+`created_at`/
  or die 'no other time';
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

$node->stop;
done_testing();
