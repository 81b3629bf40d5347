# From UUID keys to next_id(), by the recipe of doc/migrating.md, while sessions
# with the old key and with the new one insert, read and change rows; to the end
# in one database, where the new columns get the names of the old ones, and back in
# another.

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
	my ($tables, @steps) = recipe('From UUID keys', 'Fill the columns of old rows');

	new_database($database);
	run_examples($node, $database, $tables);
	$node->safe_psql($database, q{
		INSERT INTO photos (title, created_at)
		SELECT 'photo ' || n, '2026-01-01Z'::timestamptz + n / 2500 * interval '1 ms' FROM generate_series(0, 19999) AS n;
		INSERT INTO comments (photo_id, body) SELECT id, 'on ' || title FROM photos});
	my $before = tables_of($database);
	my $first = value($database, 'SELECT id FROM photos LIMIT 1');
	my $old = start_sessions($database, $with_old_key, '-D', "last=$first");
	run_examples($node, $database, @steps);
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
	my $new = start_sessions($database, $with_new_key, '-M', 'prepared');
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

# A role that may write comments, but sees no photo
my ($photo, $photo_new) = split /\|/, value('forward', 'SELECT id, new_id FROM photos LIMIT 1');
$node->safe_psql('forward', q{
	CREATE ROLE commenter;
	GRANT SELECT, INSERT, UPDATE ON comments TO commenter});
foreach my $sees_none ('has no privilege to read photos', 'is kept from all photos by row-level security')
{
	is(value('forward', "SET ROLE commenter; INSERT INTO comments ($_->[0], body) VALUES ('$_->[1]', '') RETURNING photo_id, new_photo_id"),
		"$photo|$photo_new", "a comment gets both keys from $_->[0] by a role that $sees_none")
	  foreach [ 'photo_id', $photo ], [ 'new_photo_id', $photo_new ];
	$node->safe_psql('forward', 'GRANT SELECT ON photos TO commenter; ALTER TABLE photos ENABLE ROW LEVEL SECURITY');
}
$node->safe_psql('forward', 'ALTER TABLE photos DISABLE ROW LEVEL SECURITY');

# The rest is also right if the UUIDs are kept.
my ($drop) = recipe('Drop the UUIDs');
my ($rename, $replace_views) = recipe('Rename the columns');
my ($kept, $keep) = slurp_file("$top/doc/migrating.md") =~ /write\s+`(ALTER TABLE photos RENAME id TO uuid)` in place of\s+`(ALTER TABLE photos DROP id)`/
  or die 'no way to keep the UUIDs';
my $rolled_back = join '', map { $_->{code} =~ s/^(BEGIN|COMMIT);\n//gmr } $drop, $rename, $replace_views;
$rolled_back =~ s/\Q$keep\E;/$kept;/ or die "the step has no $keep";
run_examples($node, 'forward', { %$drop, code => "BEGIN;\n${rolled_back}SELECT count(uuid) = count(*) AS kept FROM photos;\nROLLBACK;\n",
		shown => " kept\n------\n t\n" });

# A view of the UUIDs stops the step, and is made again in it.
my $view = 'VIEW recent AS SELECT comments.body, title FROM comments JOIN photos ON ';
$node->safe_psql('forward', "CREATE ${view}photos.id = photo_id; GRANT SELECT ON recent TO commenter");
my $error;
wait_for(sub { $node->psql('forward', $drop->{code}, stderr => \$error); return $error !~ /lock timeout/ });
like($error, qr/cannot drop column photo_id of table comments because other objects depend on it/,
	'a view that joins by the UUID stops the step that drops UUIDs');
$drop->{code} =~ s/^LOCK TABLE \K(.*;\n)/recent, $1DROP VIEW recent;\n/m or die 'the step locks no tables';
$drop->{code} =~ s/^(?=COMMIT;)/CREATE ${view}photos.new_id = new_photo_id;\nGRANT SELECT ON recent TO commenter;\n/m;
$node->safe_psql('forward', q{
	CREATE ROLE reader;
	CREATE ROLE stranger;
	CREATE ROLE clerk;
	GRANT SELECT (title) ON photos TO reader;
	GRANT SELECT, INSERT ON photos TO clerk});
run_without_scan('forward', $drop);
is(value('forward', q{SET ROLE commenter; SELECT count(*) > 0 FROM recent}), 't', 'the view is there again, with its privileges');
run_without_scan('forward', $rename);
is(value('forward', q{SET ROLE clerk; INSERT INTO photos (title) VALUES ('of the clerk'); SELECT count(*) FROM photos WHERE title = 'of the clerk'}), 1,
	'a role can do with the view what it can do with the table');
fails_with($node, "SET ROLE stranger; $_", qr/^42501 permission denied for table photos_table/,
	'a view gives a role no privilege that it lacks on the table', dbname => 'forward')
  foreach 'SELECT title FROM photos', 'DELETE FROM photos';
fails_with($node, $_->[0], $_->[1], "while photos is a view, this fails, as the document says: $_->[0]", dbname => 'forward')
  foreach ['TRUNCATE photos', qr/^42809 "photos" is not a table/], ['COPY photos FROM stdin', qr/^42809 cannot copy to view "photos"/],
	['SET ROLE reader; SELECT title FROM photos', qr/^42501 permission denied for table photos_table/];
is(value('forward', qq{
		INSERT INTO photos ($_, title) SELECT $_, '' FROM photos LIMIT 1
		ON CONFLICT ($_) DO UPDATE SET title = photos.title RETURNING 'one'}), 'one', "while photos is a view, $_ can be the target of ON CONFLICT")
  foreach 'id', 'new_id';
my $renamed = start_sessions('forward', $with_new_key =~ s/\bnew_//gr, '-M', 'prepared');
sessions_go_on($new, 'sessions with the former names go on beside those with the new names');
sessions_end_without_error($new);
run_without_scan('forward', $replace_views);
is(tables_of('forward'), <<'EOS', 'only the new keys are left, with the names of the old ones');
Table "public.photos"
Column|Type|Collation|Nullable|Default
title|text|||
created_at|timestamp with time zone||not null|now()
id|bigint||not null|next_id(5::bigint)
Indexes:
    "photos_pkey" PRIMARY KEY, btree (id)
Referenced by:
    TABLE "comments" CONSTRAINT "comments_photo_id_fkey" FOREIGN KEY (photo_id) REFERENCES photos(id)
Table "public.comments"
Column|Type|Collation|Nullable|Default
id|bigint||not null|next_id(5::bigint)
body|text|||
photo_id|bigint||not null|
Indexes:
    "comments_pkey" PRIMARY KEY, btree (id)
    "comments_photo_id_idx" btree (photo_id)
Foreign-key constraints:
    "comments_photo_id_fkey" FOREIGN KEY (photo_id) REFERENCES photos(id)
EOS
sessions_end_without_error($renamed);
is(value('forward', 'SELECT count(*) FROM comments JOIN photos ON photos.id = photo_id'),
	value('forward', 'SELECT count(*) FROM comments'), 'every comment has its photo');
is(value('forward', q{SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'v'}), 'recent',
	'of the views, only the application\'s is left');

# --- and back -------------------------------------------------------------

($before, $old, $new) = switch_primary_key('back');
sessions_end_without_error($new);
run_without_scan('back', recipe('Go back to UUIDs'));
sessions_end_without_error($old);
is(tables_of('back'), $before, 'going back restores the tables as they were');

# --- the procedure ---------------------------------------------------------

my ($procedure, $of_serial) = map { (grep { $_->{code} =~ /CREATE PROCEDURE/ } recipe($_))[0]->{code} }
  'Fill the columns of old rows', 'Fill the columns';
is($procedure, $of_serial, 'the procedure is the one of the recipe for serial');

# --- other times -----------------------------------------------------------

my ($tables, undef, $add, $choose) = recipe('From UUID keys');
new_database('times');
run_examples($node, 'times', $tables);
$node->safe_psql('times', q{
	INSERT INTO photos (id, created_at) VALUES ('017f22e2-79b0-7cc3-98c4-dc0c0c07398f', '1970-01-01Z');
	ALTER TABLE photos ALTER created_at DROP NOT NULL;
	INSERT INTO photos (id, created_at) VALUES ('017f22e2-79b1-7cc3-98c4-dc0c0c07398f', NULL)});
run_examples($node, 'times', $add);
my ($replacements) = slurp_file("$top/doc/migrating.md") =~ /another expression in place of `created_at`:\n(.*?)\nBelow/s or die 'no other times';
my @times = $replacements =~ /`([^`]{20,})`/g;
my @expected = ("2011-08-25 00:00:00+00\n2011-08-25 00:00:00+00", "2022-02-22 19:22:22+00\n2022-02-22 19:22:22.001+00",
	"2011-08-25 00:00:00+00\n2011-08-25 00:00:00+00");
is(scalar @times, scalar @expected, 'the document has expressions for rows without a useful time');
while (my $time = shift @times)
{
	is(value('times', 'BEGIN;' . ($choose->{code} =~ s/created_at AS/$time AS/r)
			. 'SELECT snowflake_timestamp(new_id) FROM photos_new_ids ORDER BY new_id; ROLLBACK'),
		shift @expected, "rows get IDs of the times that this expression has: $time");
}

$node->stop;
done_testing();
