# From UUID keys to next_id(), by the recipe of doc/migrating.md, while sessions
# with the old key and with the new one insert, read and change rows; to the end
# in one database, where the new columns get the names of the old ones, and back in
# others.

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
	push @steps, recipe('Fill the columns of old rows');

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
my $view = 'VIEW recent AS SELECT comments.body, title FROM photos JOIN comments ON ';
$node->safe_psql('forward', "CREATE ${view}photos.id = photo_id; GRANT SELECT ON recent TO commenter");
like(error_of_step($node, 'forward', $drop->{code}), qr/cannot drop column photo_id of table comments because other objects depend on it/,
	'a view that joins by the UUID stops the step that drops UUIDs');
$drop->{code} =~ s/^(LOCK TABLE comments, )(photos .*;\n)/$1recent, $2DROP VIEW recent;\n/m or die 'the step locks no tables';
$drop->{code} =~ s/^(?=COMMIT;)/CREATE ${view}photos.new_id = new_photo_id;\nGRANT SELECT ON recent TO commenter;\n/m;
$node->safe_psql('forward', q{
	CREATE ROLE reader;
	CREATE ROLE stranger;
	CREATE ROLE clerk;
	CREATE FUNCTION title_of(photos) RETURNS text LANGUAGE sql AS 'SELECT $1.title';
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
	['SET ROLE reader; SELECT title FROM photos', qr/^42501 permission denied for table photos_table/],
	['SELECT photos.id, title, count(*) FROM photos JOIN comments ON photo_id = photos.id GROUP BY photos.id', qr/^42803 column "photos.title" must appear in the GROUP BY clause/],
	['INSERT INTO photos (id) VALUES (1) ON CONFLICT ON CONSTRAINT photos_pkey DO NOTHING', qr/^42704 constraint "photos_pkey" for table "photos" does not exist/],
	['CREATE TABLE likes (photo_id bigint REFERENCES photos)', qr/^42809 referenced relation "photos" is not a table/],
	['SELECT xmin FROM photos', qr/^42703 column "xmin" does not exist/], ['SELECT ctid FROM photos', qr/^42703 column "ctid" does not exist/],
	['ALTER TABLE photos ADD n integer', qr/^42809 /], ['SELECT title_of(photos) FROM photos', qr/^42883 /],
	$node->pg_version < 17 ? ["MERGE INTO photos USING (VALUES (1)) AS v (id) ON photos.id = v.id WHEN MATCHED THEN DELETE", qr/^0A000 cannot execute MERGE on relation "photos"/] : ();
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

my ($drop_ids, $back, $validate) = recipe('Go back to UUIDs');
($before, $old, $new) = switch_primary_key('back');
sessions_end_without_error($new);
like(error_of_step($node, 'back', $drop_ids->{code}), qr/constraint "comments_photo_id_fkey" of relation "comments" does not exist/,
	'after step 7, the way back from the steps before it fails');
run_without_scan('back', $back);
run_examples($node, 'back', $validate);
sessions_end_without_error($old);
is(tables_of('back'), $before, 'going back restores the tables as they were');

# --- keys that may be NULL, and triggers of the tables' own -------------------

my ($tables, undef, @steps) = recipe('From UUID keys');
my ($procedure, $fill, @constraints) = recipe('Fill the columns of old rows');
my $own_triggers = q{
	CREATE TABLE audit (row text);
	GRANT ALL ON audit TO PUBLIC;
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit SELECT NEW; RETURN NULL; END $$;
	CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.updated_at := clock_timestamp(); RETURN NEW; END $$};
my $of_table = q{
	ALTER TABLE %1$s ADD updated_at timestamptz;
	CREATE TRIGGER zz_touch BEFORE UPDATE ON %1$s FOR EACH ROW EXECUTE FUNCTION touch();
	CREATE TRIGGER note AFTER UPDATE ON %1$s FOR EACH ROW EXECUTE FUNCTION note();};
new_database('nullable');
run_examples($node, 'nullable', $tables);
$node->safe_psql('nullable', "$own_triggers; SELECT format('${\($of_table =~ s/'/''/gr)}', t) FROM unnest(ARRAY['photos', 'comments']) AS t \\gexec\n" . q{
	ALTER TABLE comments ALTER photo_id DROP NOT NULL;
	INSERT INTO photos (title) SELECT n FROM generate_series(1, 100) AS n;
	INSERT INTO comments (photo_id, body) SELECT id, title FROM photos;
	INSERT INTO comments (body) VALUES ('of none')});
$before = tables_of('nullable');
run_examples($node, 'nullable', @steps, $procedure);

# The owner of the tables, who is not a superuser
$node->safe_psql('nullable', q{CREATE ROLE owner LOGIN; ALTER TABLE photos OWNER TO owner; ALTER TABLE comments OWNER TO owner; ALTER TABLE photos_new_ids OWNER TO owner});
my @owner = (dbname => 'nullable', extra_params => [ '-U', 'owner' ]);
fails_with($node, $fill->{code}, qr/^42501 permission denied to set parameter "session_replication_role"/,
	'who may not keep triggers from firing cannot fill a column', @owner);
is(value('nullable', 'SELECT (SELECT count(new_id) FROM photos), (SELECT count(new_photo_id) FROM comments)'), '0|0', '... and has filled no row');
my ($grant) = slurp_file("$top/doc/migrating.md") =~ /(GRANT\s+SET\s+ON\s+PARAMETER\s+session_replication_role\s+TO\s+\w+)/ or die 'no way to grant it';
$node->safe_psql('nullable', $grant =~ s/\w+$/owner/r);
$node->safe_psql('nullable', $fill->{code}, extra_params => [ '-U', 'owner' ]);
is(value('nullable', q{SELECT (SELECT count(*) FROM audit), (SELECT count(updated_at) FROM photos), (SELECT count(updated_at) FROM comments)}), '0|0|0',
	'filling a column fires no trigger of the tables');
is(value('nullable', q{SELECT count(*) FROM comments LEFT JOIN photos ON photos.id = photo_id WHERE new_photo_id IS DISTINCT FROM photos.new_id}), 0,
	'... and fills it in all rows');
fails_with($node, $_->[0], $_->[1], "filling a column fails where it would not end: $_->[0]", dbname => 'nullable')
  foreach [q{CREATE TABLE parts (id bigint, new_id bigint) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF parts DEFAULT;
	INSERT INTO parts SELECT FROM generate_series(1, 2); CALL backfill('parts', 'new_id', '1')}, qr/^P0001 parts has partitions/];

run_examples($node, 'nullable', map { { %$_, code => $_->{code} =~ s/ADD CONSTRAINT new_photo_id_there.*\n\s*|VALIDATE CONSTRAINT new_photo_id_there, //gr } } @constraints);
my ($switch) = recipe('Switch the primary key');
my $switched = $switch->{code} =~ s/, ALTER new_photo_id SET NOT NULL//r =~ s/^.*new_photo_id_there;\n//mr;
foreach my $step ('before', 'after')
{
	if ($step eq 'after')
	{
		run_examples($node, 'nullable', { %$switch, code => $switched });
	}
	my ($of_1, $new_of_1, $of_2, $new_of_2) = split /[|\n]/, value('nullable', q{SELECT id, new_id FROM photos WHERE title IN ('1', '2') ORDER BY title::int});
	my $none = '00000000-0000-0000-0000-000000000000';
	my ($both, $both_of_2) = ("$of_1|$new_of_1", "$of_2|$new_of_2");
	is(value('nullable', "UPDATE comments SET $_->[1] WHERE body = '$_->[0]' RETURNING photo_id, new_photo_id"), $_->[2],
		"$step the switch, a comment gets both keys by: $_->[0], $_->[1]")
	  foreach [ 'of none', "new_photo_id = $new_of_1", $both ], [ 'of none', 'new_photo_id = NULL', '|' ],
	  [ 'of none', "photo_id = '$of_1'", $both ], [ 'of none', "new_photo_id = $new_of_2", $both_of_2 ], [ 'of none', 'body = body', $both_of_2 ],
	  [ 'of none', "photo_id = '$of_1', new_photo_id = $new_of_1", $both ], [ 'of none', 'photo_id = NULL', '|' ],
	  [ 'of none', 'body = body', '|' ];
	is(value('nullable', "INSERT INTO comments ($_->[0]) VALUES ($_->[1]) RETURNING photo_id, new_photo_id"), $_->[2],
		"$step the switch, a new comment gets both keys from: $_->[0]")
	  foreach [ 'photo_id', "'$of_1'", $both ], [ 'new_photo_id', $new_of_2, $both_of_2 ], [ 'photo_id, new_photo_id', "'$of_1', $new_of_1", $both ],
	  [ 'body', "'new'", '|' ];
	fails_with($node, $_, qr/^23503 /, "$step the switch, a comment on no photo is refused: $_", dbname => 'nullable')
	  foreach "INSERT INTO comments (photo_id) VALUES ('$none')", 'INSERT INTO comments (new_photo_id) VALUES (7)',
	  "UPDATE comments SET photo_id = '$none' WHERE body = '3'", "UPDATE comments SET new_photo_id = 7 WHERE body = '3'";
	next if $step eq 'after';

	# Rows that nobody has filled are filled in the same way, even where triggers fire.
	value('nullable', q{ALTER TABLE comments DISABLE TRIGGER keys; UPDATE comments SET new_photo_id = NULL WHERE body = '3'; ALTER TABLE comments ENABLE TRIGGER keys});
	is(value('nullable', q{SELECT photo_id AS kept FROM comments WHERE body = '3' \gset
			UPDATE comments SET new_photo_id = photos.new_id FROM photos WHERE photos.id = photo_id AND comments.body = '3' RETURNING photo_id = :'kept', new_photo_id = new_id}), 't|t',
		'an update that fills a row keeps its photo');
}

# --- given up before the primary key is another one -----------------------------

new_database('given_up');
run_examples($node, 'given_up', $tables);
$node->safe_psql('given_up', q{
	INSERT INTO photos (title) SELECT n FROM generate_series(1, 100) AS n;
	INSERT INTO comments (photo_id, body) SELECT id, title FROM photos});
$before = tables_of('given_up');
my $sessions = start_sessions('given_up', $with_old_key, '-D', 'last=' . value('given_up', 'SELECT id FROM photos LIMIT 1'));
run_examples($node, 'given_up', @steps, $procedure, $fill, @constraints);
run_without_scan('given_up', $drop_ids);
sessions_end_without_error($sessions);
is(tables_of('given_up'), $before, 'giving up before step 7 restores the tables as they were');
is(value('given_up', q{SELECT count(*) FROM pg_class WHERE relname = 'photos_new_ids'}), 0, '... and drops the table of IDs');
foreach my $count (1 .. @steps)
{
	run_examples($node, 'given_up', @steps[ 0 .. $count - 1 ]);
	$node->safe_psql('given_up', $drop_ids->{code});
	is(tables_of('given_up'), $before, "giving up after step $count restores the tables as they were");
}

# --- other times -----------------------------------------------------------

my ($add, $choose) = @steps;
new_database('times');
run_examples($node, 'times', $tables);
$node->safe_psql('times', q{
	INSERT INTO photos (id, created_at) VALUES ('017f22e2-79b0-7cc3-98c4-dc0c0c07398f', '1970-01-01Z');
	ALTER TABLE photos ALTER created_at DROP NOT NULL;
	INSERT INTO photos (id, created_at) VALUES ('017f22e2-79b1-7cc3-98c4-dc0c0c07398f', NULL)});
run_examples($node, 'times', $add);
my ($replacements) = slurp_file("$top/doc/migrating.md") =~ /another expression in place of `created_at`:\n(.*?)\n\[`snowflake_backdated/s or die 'no other times';
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
