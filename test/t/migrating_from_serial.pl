# From serial to next_id(), by the recipe of doc/migrating.md, while sessions
# insert, read and change rows; giving up before the columns are swapped; and the
# recipe for a column that refers to a key which is a bigint already.

use strict;
use warnings;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('from_serial');
my ($tables, @steps) = recipe('From serial', 'Fill the columns', 'Index and check the columns');
my $rows = q{
	INSERT INTO photos (title) SELECT 'photo ' || n FROM generate_series(1, 20000) AS n;
	INSERT INTO comments (photo_id, body) SELECT n, 'on ' || n FROM generate_series(1, 20000) AS n};

# Each session locks two rows in the opposite order of the backfill.
my $script = <<'EOS';
SELECT count(*) / (count(*) = least(:last, 1::bigint))::int FROM photos WHERE id = :last;
BEGIN;
INSERT INTO photos (title) VALUES ('') RETURNING id AS photo, 1 / (id > :last)::int AS growing \gset
INSERT INTO comments (photo_id, body) VALUES (:photo, :photo::text) RETURNING id AS comment \gset
COMMIT;
UPDATE photos SET title = :photo::text WHERE id = :photo;
\set low random(1, 19000)
\set high :low + random(1, 1000)
BEGIN;
UPDATE photos SET title = 'changed' WHERE id = :high;
\sleep 10 ms
UPDATE photos SET title = 'changed' WHERE id = :low;
COMMIT;
UPDATE comments SET photo_id = :low, body = :low::text WHERE id = :comment;
SELECT 1 / (count(*) = 1)::int FROM comments JOIN photos ON photos.id = photo_id WHERE comments.id = :comment;
\set last :photo
EOS

# Lock a row until the backfill has filled all others.
my $locks_row = <<'EOS';
BEGIN; SELECT FROM photos WHERE id = 20000 FOR UPDATE;
\echo locked
DO $$ BEGIN WHILE (SELECT count(*) > 1 FROM photos WHERE new_id IS NULL) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$; COMMIT;
EOS

# --- to the end -----------------------------------------------------------

new_database('swapped');
run_examples($node, 'swapped', $tables);
$node->safe_psql('swapped', $rows);
my $sessions = start_sessions('swapped', $script);
my $prepared = $node->background_psql('swapped', on_error_stop => 0);
$prepared->query_safe('PREPARE p AS SELECT id FROM photos LIMIT 1; EXECUTE p');
my $locking = $node->background_psql('swapped');
foreach my $step (@steps)
{
	$locking->query_until(qr/locked/, $locks_row) if $step->{code} =~ /^CALL/;
	run_examples($node, 'swapped', $step);
}
$locking->quit;
my ($agree, $swap, $check) = recipe('Swap the columns');
$node->safe_psql('swapped', q{CREATE FUNCTION in_text() RETURNS bigint LANGUAGE sql AS 'SELECT max(photo_id) FROM comments'});
run_examples($node, 'swapped', $agree);
run_without_scan('swapped', $swap);
run_examples($node, 'swapped', $check);
$prepared->query('EXECUTE p');
like($prepared->{stderr}, qr/cached plan must not change result type/, 'a prepared statement whose result has another type fails');
$prepared->quit;
sessions_end_without_error($sessions);

is(value('swapped', q{SELECT count(*) FROM photos WHERE title ~ '^\d+$' AND title <> id::text}), 0,
	'every row has the ID that its session got');
is(value('swapped', q{SELECT count(*) FROM comments WHERE body <> photo_id::text AND body NOT LIKE 'on %'}), 0,
	'comments of the sessions are on their photos');
is(value('swapped', q{SELECT count(*) FROM comments WHERE body <> 'on ' || photo_id AND body LIKE 'on %'}), 0,
	'old comments are on their photos');
is(value('swapped', q{SELECT count(*) FROM photos WHERE id <= 20000}), 20000, 'no old row is lost');
is(value('swapped', q{SELECT count(DISTINCT id > 1::bigint << 60) FROM photos}), 2, 'photos has small numbers and IDs');
is(tables_of('swapped'), <<'EOS', 'the tables have the new columns, and nothing of the old ones');
Table "public.photos"
Column|Type|Collation|Nullable|Default
title|text|||
id|bigint||not null|next_id(5::bigint, 'photos_id_seq'::regclass)
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

# From here on, the table is one with a bigserial.
my (undef, undef, undef, undef, $back, $again) = recipe('A bigserial');
run_without_scan('swapped', $back);
is(value('swapped', q{
		INSERT INTO photos (title) SELECT '' FROM generate_series(1, 2000);
		SELECT pg_get_serial_sequence('photos', 'id'), count(*) FROM photos WHERE title = '' AND id > (SELECT max(photo_id) FROM comments)}),
	'public.photos_id_seq|2000', 'back at nextval(), keys go on above the last ID');
run_examples($node, 'swapped', $again, $check);
fails_with($node, 'SELECT in_text()', qr/^42P13 return type mismatch|^no error/, 'a function in text, which names the column, does not stop the swap', dbname => 'swapped');

# --- given up before the swap ---------------------------------------------

new_database('given_up');
run_examples($node, 'given_up', $tables);
$node->safe_psql('given_up', $rows);
my $before = tables_of('given_up');
$sessions = start_sessions('given_up', $script);
run_examples($node, 'given_up', @steps);
foreach my $obstacle ([ 'VIEW old', 'AS SELECT photo_id FROM comments' ], [ 'POLICY old', 'ON comments USING (photo_id > 0)', ' ON comments' ],
	[ 'TRIGGER old', 'BEFORE UPDATE OF photo_id ON comments FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()', ' ON comments' ],
	[ 'FUNCTION old()', 'RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT max(photo_id) FROM comments; END' ])
{
	my ($what, $definition, $on) = @$obstacle;
	$node->safe_psql('given_up', "CREATE $what $definition");
	like(error_of_step($node, 'given_up', $swap->{code}), qr/cannot drop column photo_id of table comments because other objects depend on it/,
		"the swap fails if there is a $what");
	$node->safe_psql('given_up', "DROP $what" . ($on // ''));
}
run_examples($node, 'given_up', recipe('Give up before the swap'));
sessions_end_without_error($sessions);
is(tables_of('given_up'), $before, 'giving up restores the tables as they were');

# --- only a column that refers to the key ---------------------------------

my ($of_likes, $add, $fill, $constraints, $validate, $give_up, $swap_of_likes) = recipe('Only a column that refers to the key');
my (undef, $list) = recipe('Columns of type integer');
my ($procedure) = recipe('Fill the columns');
new_database('referring');
run_examples($node, 'referring', $of_likes);
is(value('referring', $list->{code}), "photos|id|bigint\nlikes|photo_id|integer", 'the column is listed with its type');
$node->safe_psql('referring', q{
	INSERT INTO photos (title) SELECT 'photo ' || n FROM generate_series(1, 20000) AS n;
	INSERT INTO likes (photo_id, name) SELECT n, 'on ' || n FROM generate_series(1, 20000) AS n});
$sessions = start_sessions('referring', <<'EOS', '-M', 'prepared');
\set old random(1, 20000)
BEGIN;
INSERT INTO photos (title) VALUES ('') RETURNING id AS photo \gset
INSERT INTO likes (photo_id, name) VALUES (:photo, 'on ' || :photo);
COMMIT;
UPDATE likes SET photo_id = :old, name = 'on ' || :old WHERE photo_id = :photo;
SELECT 1 / (count(*) > 0)::int FROM likes WHERE photo_id = :old AND name = 'on ' || :old;
EOS
$before = value('referring', '\d likes');
run_examples($node, 'referring', $add, $procedure, $fill, $constraints, $validate);
run_without_scan('referring', $give_up);
is(value('referring', '\d likes'), $before, 'giving up restores the table as it was');
run_examples($node, 'referring', $add, $fill, $constraints, $validate);
run_without_scan('referring', $swap_of_likes);
sessions_go_on($sessions, 'rows are inserted after the swap');
is(value('referring', $list->{code}), "photos|id|bigint\nlikes|photo_id|bigint", 'no integer column is listed any more');
sessions_end_without_error($sessions);
is(value('referring', q{SELECT count(*) FROM likes WHERE name <> 'on ' || photo_id}), 0, 'likes are on their photos');
is(value('referring', "\\pset tuples_only off\n\\d likes") . "\n", <<'EOS', 'the table has the new column, and nothing of the old one');
Table "public.likes"
Column|Type|Collation|Nullable|Default
name|text|||
photo_id|bigint||not null|
Indexes:
    "likes_photo_id_idx" btree (photo_id)
Foreign-key constraints:
    "likes_photo_id_fkey" FOREIGN KEY (photo_id) REFERENCES photos(id)
EOS
run_examples($node, 'referring', (recipe('A bigserial'))[1]);
is(value('referring', q{
		INSERT INTO photos (title) VALUES ('');
		INSERT INTO likes SELECT '', max(id) FROM photos;
		SELECT count(*) FROM likes WHERE photo_id > 1::bigint << 60}), 1, 'the column can refer to an ID');

$node->stop;
done_testing();
