# From bigserial and identity to next_id(), back, and forward again, by the recipes
# of doc/migrating.md, while sessions insert, read and change rows.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('from_bigserial');
my ($photos, $move, $check, $between, $back, $again) = recipe('A bigserial');
my ($albums, @of_identity) = recipe('An identity column');
new_database('app');
run_examples($node, 'app', $photos, $albums);
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
like(($node->psql('app', $move->{code}))[2], qr/canceling statement due to lock timeout/,
	'a step that cannot get its lock fails after lock_timeout');
sessions_go_on($sessions, 'sessions go on after a step failed');
is(value('app', q{SELECT column_default FROM information_schema.columns WHERE table_name = 'photos' AND column_name = 'id'}),
	q{nextval('photos_id_seq'::regclass)}, 'a step that failed has changed nothing');
$open->quit;

sub run_while_rows_are_inserted
{
	foreach my $step (@_)
	{
		run_without_scan('app', $step);
		# There must be rows of each step, even on a slow machine.
		my $largest = value('app', 'SELECT max(id) FROM albums');
		ok($node->poll_query_until('app', "SELECT max(id) > $largest FROM albums"), 'rows are inserted after a step');
	}
	return;
}

run_while_rows_are_inserted($move, $check, $between, @of_identity, $back);
is(value('app', q{SELECT pg_get_serial_sequence('photos', 'id'), max_value FROM pg_sequences WHERE sequencename = 'photos_id_seq'}),
	'public.photos_id_seq|9223372036854775807', 'the column of the bigserial owns its sequence again');
like(($node->psql('app', $move->{code}))[2], qr/cannot make sequence "photos_id_seq" serve layout "instagram"/,
	'the first step fails when the sequence has gone back');
# Rows far ahead of the clock, whose own progress would hide an ID that is not larger
$node->safe_psql('app', q{
	LOAD 'snowflake';
	ALTER SYSTEM SET snowflake.max_lead = '1h';
	SELECT pg_reload_conf(), setval('photos_id_seq', last_value + (600000::bigint << 23)) FROM photos_id_seq});
sessions_go_on($sessions, 'rows are inserted ahead of the clock');
run_while_rows_are_inserted($again, $check, $back);
sessions_end_without_error($sessions);

is(value('app', q{SELECT count(*) FROM photos WHERE title ~ '^\d+$' AND title <> id::text}), 0,
	'every row has the ID that its session got');
is(value('app', "SELECT count(DISTINCT id > 1::bigint << 60) FROM $_"), 2, "$_ has small numbers and IDs")
  foreach 'photos', 'albums';
is(value('app', q{SELECT attidentity FROM pg_attribute WHERE attrelid = 'albums'::regclass AND attname = 'id'}),
	'a', 'the column of the identity is an identity again');
# --- what keeps programs from choosing keys --------------------------------

my ($privileges) = slurp_file("$top/doc/migrating.md") =~ /insert into the other\s+columns only:\s+`([^`]+)`/
  or die 'no privileges';
new_database('privileges');
run_examples($node, 'privileges', $albums, $of_identity[0]);
$node->safe_psql('privileges', "CREATE ROLE app; GRANT INSERT ON albums TO app; $privileges");
is(value('privileges', q{SET ROLE app; INSERT INTO albums (name) VALUES (''); SELECT 'inserted'}), 'inserted',
	'a role that may insert into the other columns gets a key');
fails_with($node, q{SET ROLE app; INSERT INTO albums (id, name) VALUES (7, '')}, qr/^42501 permission denied for table albums/,
	'... and cannot choose one', dbname => 'privileges');

$node->stop;
done_testing();
