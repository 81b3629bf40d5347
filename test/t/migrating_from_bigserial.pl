# From bigserial and identity to next_id(), and back, by the recipes of
# doc/migrating.md, while sessions insert, read and change rows.

use strict;
use warnings;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('from_bigserial');
my ($tables, $too_small, @steps) = recipe('From bigserial or identity');
new_database('app');
run_examples($node, 'app', $tables, $too_small);
$node->safe_psql('app', q{
	CREATE TABLE entries (album_id bigint REFERENCES albums, photo_id bigint REFERENCES photos, PRIMARY KEY (album_id, photo_id));
	INSERT INTO photos (title) SELECT 'photo ' || n FROM generate_series(1, 1000) AS n;
	INSERT INTO albums (name) VALUES ('summer'), ('winter')});

my $sessions = start_sessions('app', <<'EOS', '-M', 'prepared');
SELECT count(*) / (count(*) = least(:last, 1::bigint))::int FROM photos WHERE id = :last;
BEGIN;
INSERT INTO photos (title) VALUES ('') RETURNING id AS photo, 1 / (id > :last)::int AS growing \gset
INSERT INTO albums (name) VALUES ('') RETURNING id AS album \gset
INSERT INTO entries VALUES (:album, :photo);
COMMIT;
UPDATE photos SET title = :photo WHERE id = :photo;
\set last :photo
EOS

# An open transaction has the lock that the first step needs.
my $open = $node->background_psql('app');
$open->query_safe('BEGIN; SELECT count(*) FROM photos');
like(($node->psql('app', $steps[0]->{code}))[2], qr/canceling statement due to lock timeout/,
	'a step that cannot get its lock fails after lock_timeout');
sessions_go_on($sessions, 'sessions go on after a step failed');
is(value('app', q{SELECT column_default FROM information_schema.columns WHERE table_name = 'photos' AND column_name = 'id'}),
	q{nextval('photos_id_seq'::regclass)}, 'a step that failed has changed nothing');
$open->quit;

foreach my $step (@steps)
{
	run_without_scan('app', $step);
	# There must be rows of each step, even on a slow machine.
	my $largest = value('app', 'SELECT max(id) FROM albums');
	ok($node->poll_query_until('app', "SELECT max(id) > $largest FROM albums"), 'rows are inserted after a step');
}
sessions_end_without_error($sessions);

is(value('app', q{SELECT count(*) FROM photos WHERE title ~ '^\d+$' AND title <> id::text}), 0,
	'every row has the ID that its session got');
is(value('app', "SELECT count(DISTINCT id > 1::bigint << 60) FROM $_"), 2, "$_ has small numbers and IDs")
  foreach 'photos', 'albums';
is(value('app', q{SELECT attidentity FROM pg_attribute WHERE attrelid = 'albums'::regclass AND attname = 'id'}),
	'a', 'the column of the identity is an identity again');
is(value('app', q{SELECT pg_get_serial_sequence('photos', 'id'), max_value FROM pg_sequences WHERE sequencename = 'photos_id_seq'}),
	'public.photos_id_seq|9223372036854775807', 'the column of the bigserial owns its sequence again');

# --- with a column that is too small for IDs -------------------------------

new_database('too_small');
run_examples($node, 'too_small', $tables);
is(value('too_small', qq{
		CREATE TABLE likes (n bigint REFERENCES albums, photo_id integer REFERENCES photos);
		$too_small->{code}}), 'likes|photo_id|integer', 'an integer column that refers to the key is listed');
run_examples($node, 'too_small', $steps[0]);
fails_with($node, q{INSERT INTO photos (title) VALUES (''); INSERT INTO likes (photo_id) SELECT id FROM photos},
	qr/^22003 integer out of range/, 'an integer column cannot refer to an ID', dbname => 'too_small');

$node->stop;
done_testing();
