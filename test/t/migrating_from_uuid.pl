# From UUID keys to next_id(), by the recipe of doc/migrating.md, while sessions
# with the old key and with the new one insert, read and change rows; to the end
# in one database, and back in another.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('from_uuid');

my $with_old_key = <<'EOS';
SELECT count(*) / (count(*) = 1)::int FROM photos WHERE id = ':last';
BEGIN;
INSERT INTO photos (title) VALUES ('') RETURNING id AS photo \gset
INSERT INTO comments (photo_id, body) VALUES (':photo', ':photo') RETURNING id AS comment \gset
COMMIT;
UPDATE photos SET title = ':photo' WHERE id = ':photo';
UPDATE comments SET photo_id = ':last', body = ':last' WHERE id = :comment;
SELECT 1 / (count(*) = 1)::int FROM comments JOIN photos ON photos.id = photo_id WHERE comments.id = :comment;
SELECT ':photo' AS last \gset
EOS
my $with_new_key = <<'EOS';
SELECT count(*) / (count(*) = least(:last, 1::bigint))::int FROM photos WHERE new_id = :last;
BEGIN;
INSERT INTO photos (title) VALUES ('') RETURNING new_id AS photo, 1 / (new_id > :last)::int AS growing \gset
INSERT INTO comments (new_photo_id, body) VALUES (:photo, :photo::text) RETURNING id AS comment \gset
COMMIT;
UPDATE photos SET title = :photo::text WHERE new_id = :photo;
UPDATE comments SET new_photo_id = photos.new_id, body = photos.new_id::text FROM photos
	WHERE comments.id = :comment AND photos.new_id IN (:last, :photo) AND photos.new_id <> :photo;
SELECT 1 / (count(*) = 1)::int FROM comments JOIN photos ON photos.new_id = new_photo_id WHERE comments.id = :comment;
\set last :photo
EOS

# Migrate a database up to where both keys work.  Returns its tables as they
# were, and the sessions with either key.
sub switch_primary_key
{
	my ($database) = @_;
	my ($tables, @steps) = recipe('From UUID keys');
	my ($backfill) = grep { $_->{code} =~ /CREATE PROCEDURE/ } recipe('Fill the columns');

	new_database($database);
	run_examples($node, $database, $tables);
	$node->safe_psql($database, q{
		INSERT INTO photos (title, created_at)
		SELECT 'photo ' || n, '2026-01-01Z'::timestamptz + n / 2500 * interval '1 ms' FROM generate_series(0, 19999) AS n;
		INSERT INTO comments (photo_id, body) SELECT id, 'on ' || title FROM photos});
	my $before = tables_of($database);
	my $first = value($database, 'SELECT id FROM photos LIMIT 1');
	my $old = start_sessions($database, $with_old_key, '-D', "last=$first");
	run_examples($node, $database, $backfill, @steps, recipe('Index and check the columns'));
	my ($switch, $agree) = recipe('Switch the primary key');
	run_without_scan($database, $switch);
	run_examples($node, $database, $agree);
	is(value($database, q{SELECT string_agg(n::text, ' ') FROM (SELECT count(*) AS n FROM photos_new_ids
			GROUP BY snowflake_timestamp(new_id) ORDER BY snowflake_timestamp(new_id) LIMIT 3) AS first}),
		'1024 1024 1024', "a millisecond with more than 1,024 rows uses the next ones in database $database");
	is(tables_of($database), <<'EOS', "new_id is the primary key in database $database");
Table "public.photos"
Column|Type|Collation|Nullable|Default
id|uuid||not null|gen_random_uuid()
title|text|||
created_at|timestamp with time zone||not null|now()
new_id|bigint||not null|next_id(5::bigint)
Indexes:
    "photos_pkey" PRIMARY KEY, btree (new_id)
    "photos_id_key" UNIQUE, btree (id)
Referenced by:
    TABLE "comments" CONSTRAINT "comments_new_photo_id_fkey" FOREIGN KEY (new_photo_id) REFERENCES photos(new_id)
Table "public.comments"
Column|Type|Collation|Nullable|Default
id|bigint||not null|next_id(5::bigint)
photo_id|uuid||not null|
body|text|||
new_photo_id|bigint||not null|
Indexes:
    "comments_pkey" PRIMARY KEY, btree (id)
    "comments_new_photo_id_idx" btree (new_photo_id)
    "comments_photo_id_idx" btree (photo_id)
Foreign-key constraints:
    "comments_new_photo_id_fkey" FOREIGN KEY (new_photo_id) REFERENCES photos(new_id)
Triggers:
    keys BEFORE INSERT OR UPDATE ON comments FOR EACH ROW EXECUTE FUNCTION comments_keys()
EOS
	my $new = start_sessions($database, $with_new_key);
	sessions_go_on($old, "sessions with the old key go on beside those with the new one in database $database");

	is(value($database, q{
		SELECT count(*) FROM comments JOIN photos ON photos.new_id = new_photo_id
		WHERE body NOT IN ('on ' || title, photos.id::text, new_id::text)}),
		0, "comments are on their photos in database $database");
	is(value($database, q{
		SELECT count(*) FROM (SELECT new_id, lag(new_id) OVER (ORDER BY created_at, id) AS before
			FROM photos WHERE title LIKE 'photo %' OR snowflake_shard(new_id) = 4) AS t WHERE new_id <= before}),
		0, "IDs of old rows are in the order of their times in database $database");
	is(value($database, q{
		SELECT count(*) FROM photos WHERE title LIKE 'photo %'
		AND (snowflake_shard(new_id) <> 4 OR snowflake_timestamp(new_id) < created_at
		     OR snowflake_timestamp(new_id) > created_at + interval '12 ms')}),
		0, "IDs of old rows are near their times, with a shard of their own, in database $database");
	is(value($database, q{SELECT count(*) FROM photos WHERE snowflake_shard(new_id) = 4 AND title LIKE 'photo %'}), 20000,
		"no old row is lost in database $database");
	is(value($database, 'SELECT count(DISTINCT snowflake_shard(new_id)) FROM photos'), 2,
		"new rows have the shard of next_id() in database $database");
	return ($before, $old, $new);
}

# --- to the end -----------------------------------------------------------

my ($before, $old, $new) = switch_primary_key('forward');
sessions_end_without_error($old);
run_examples($node, 'forward', recipe('Drop the UUIDs'));
is(tables_of('forward'), <<'EOS', 'only the new keys are left');
Table "public.photos"
Column|Type|Collation|Nullable|Default
title|text|||
created_at|timestamp with time zone||not null|now()
new_id|bigint||not null|next_id(5::bigint)
Indexes:
    "photos_pkey" PRIMARY KEY, btree (new_id)
Referenced by:
    TABLE "comments" CONSTRAINT "comments_new_photo_id_fkey" FOREIGN KEY (new_photo_id) REFERENCES photos(new_id)
Table "public.comments"
Column|Type|Collation|Nullable|Default
id|bigint||not null|next_id(5::bigint)
body|text|||
new_photo_id|bigint||not null|
Indexes:
    "comments_pkey" PRIMARY KEY, btree (id)
    "comments_new_photo_id_idx" btree (new_photo_id)
Foreign-key constraints:
    "comments_new_photo_id_fkey" FOREIGN KEY (new_photo_id) REFERENCES photos(new_id)
EOS
sessions_end_without_error($new);
is(value('forward', 'SELECT count(*) FROM comments JOIN photos ON new_id = new_photo_id'),
	value('forward', 'SELECT count(*) FROM comments'), 'every comment has its photo');

# --- and back -------------------------------------------------------------

($before, $old, $new) = switch_primary_key('back');
sessions_end_without_error($new);
run_without_scan('back', recipe('Go back to UUIDs'));
sessions_end_without_error($old);
is(tables_of('back'), $before, 'going back restores the tables as they were');

# --- UUIDs that have a time -----------------------------------------------

my ($time) = slurp_file("$top/doc/migrating.md") =~ /UUID of version 7 has its\s+time:\s+`([^`]+)`/
  or die 'no time of a UUID';
is(value('postgres', "SELECT $time FROM CAST('017f22e2-79b0-7cc3-98c4-dc0c0c07398f' AS uuid) AS id"),
	'2022-02-22 19:22:22+00', 'a UUID of version 7 has its time');

$node->stop;
done_testing();
