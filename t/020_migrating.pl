# The recipes of doc/migrating.md, typed as they stand there while sessions
# insert, read, change and refer to rows: no session gets an error, no ID comes
# twice, each session's IDs grow, and no row is lost.
#
# Functions in SQL stand in for pgEdge's extension: they keep a sequence as it
# does, with the last ID for its value.

use strict;
use warnings;
use List::Util qw(min sum);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('migrating');
$node->init;
# A backfill that does not end is a failure, too.
$node->append_conf('postgresql.conf',
	"timezone = 'UTC'\nstatement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s'\n");
$node->start;

my @document = blocks('doc/migrating.md');
my $text = slurp_file("$FindBin::RealBin/../doc/migrating.md");
my $dir = PostgreSQL::Test::Utils::tempdir;

# A database with the extension
sub new_database
{
	my ($database) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION snowflake');
	return;
}

# The blocks of sections, in their order
sub recipe
{
	my @blocks = map { my $title = $_; grep { $_->{section} eq $title } @document } @_;

	return @blocks;
}

# Sessions that run a script over and over until they are stopped.  A script
# can say what must be so: a query for \gset that has no row, or divides by
# zero, is an error.
my $loads = 0;

sub load
{
	my ($database, $script, @options) = @_;
	my %load = (database => $database, output => '');
	my $file = "$dir/load" . ++$loads . '.sql';

	append_to_file($file, $script);
	local $ENV{PGAPPNAME} = $load{name} = "load$loads";
	$load{pgbench} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '4', '-R', '150', '-T', '3600', '-P', '1', '--verbose-errors', '-D', 'last=0',
			@options, '-f', $file, '-h', $node->host, '-p', $node->port, $database ],
		'>', '/dev/null', '2>', \$load{output});
	at_work(\%load, "$database: sessions are at work");
	return \%load;
}

# Transactions a second, of each second so far.  It is pgbench that says so, as
# the server's statistics come late.
my $progress = qr/^progress: [\d.]+ s, ([\d.]+) tps.*\n/m;

sub rates
{
	my ($load) = @_;
	eval { $load->{pgbench}->pump_nb; 1 } or return;
	return $load->{output} =~ /$progress/g;
}

# Have the sessions carried out more transactions since now?
sub at_work
{
	my ($load, $name) = @_;
	my $seconds = rates($load) + 1;	# and one that has begun

	ok(wait_for(sub {
		my @rates = rates($load);
		return sum(0, splice(@rates, min($seconds, scalar @rates))) > 200 }), $name);
	return;
}

sub stop
{
	my ($load) = @_;

	at_work($load, "$load->{database}: sessions are at work at the end");
	$load->{pgbench}->signal('TERM');
	$load->{pgbench}->finish;
	is($load->{output} =~ s/$progress//gr, '', "$load->{database}: no session got an error");
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = '$load->{name}'");
	return;
}

sub value
{
	my ($database, $query) = @_;
	return $node->safe_psql($database, $query);
}

# bigserial and identity: there, and back
{
	my ($before, @steps) = recipe('From bigserial or identity');
	new_database('counter');
	run_examples($node, 'counter', $before);
	my $load = load('counter', <<'EOS', '-M', 'prepared');
SELECT count(*) / (count(*) = least(:last, 1::bigint))::int FROM photos WHERE id = :last;
BEGIN;
INSERT INTO photos (title) VALUES ('') RETURNING id AS photo, 1 / (id > :last)::int AS growing \gset
INSERT INTO albums (name) VALUES ('') RETURNING id AS album \gset
INSERT INTO entries VALUES (:album, :photo);
COMMIT;
UPDATE photos SET title = :photo WHERE id = :photo;
\set last :photo
EOS

	# A transaction that stays open costs a step, but not the application.
	my $open = $node->background_psql('counter');
	$open->query_safe('BEGIN; SELECT count(*) FROM photos');
	my ($ret, $out, $error) = $node->psql('counter', $steps[0]->{code});
	like($error, qr/canceling statement due to lock timeout/, 'a step that cannot get its lock fails after lock_timeout');
	at_work($load, 'sessions go on after a step failed');
	is(value('counter', q{SELECT column_default FROM information_schema.columns WHERE table_name = 'photos' AND column_name = 'id'}),
		q{nextval('photos_id_seq'::regclass)}, 'a step that failed has changed nothing');
	$open->quit;

	foreach my $step (@steps)
	{
		run_examples($node, 'counter', $step);
		# There must be rows of each step, however slow the machine is.
		my $largest = value('counter', 'SELECT max(id) FROM albums');
		ok($node->poll_query_until('counter', "SELECT max(id) > $largest FROM albums"), 'rows are inserted after a step');
	}
	stop($load);
	is(value('counter', q{SELECT count(*) FROM photos WHERE title ~ '^\d+$' AND title <> id::text}), 0, 'counter: every row has the ID that its session got');
	is(value('counter', q{SELECT count(DISTINCT id > 1::bigint << 60) FROM photos}), 2, 'photos has small numbers and IDs');
	is(value('counter', q{SELECT count(DISTINCT id > 1::bigint << 60) FROM albums}), 2, 'albums has small numbers and IDs');
	is(value('counter', q{SELECT attidentity FROM pg_attribute WHERE attrelid = 'albums'::regclass AND attname = 'id'}),
		'a', 'the column is an identity again');
	is(value('counter', q{SELECT pg_get_serial_sequence('photos', 'id'), max_value FROM pg_sequences WHERE sequencename = 'photos_id_seq'}),
		'public.photos_id_seq|9223372036854775807', 'the column of the bigserial owns its sequence again');
}

# What psql shows of the tables.
sub described
{
	my ($database) = @_;
	return $node->safe_psql($database, "\\pset tuples_only off\n\\d photos\n\\d comments") . "\n";
}

# serial
{
	my $load_script = <<'EOS';
SELECT count(*) / (count(*) = least(:last, 1::bigint))::int FROM photos WHERE id = :last;
BEGIN;
INSERT INTO photos (title) VALUES ('') RETURNING id AS photo, 1 / (id > :last)::int AS growing \gset
INSERT INTO comments (photo_id, body) VALUES (:photo, :photo::text) RETURNING id AS comment \gset
COMMIT;
UPDATE photos SET title = :photo::text WHERE id = :photo;
\set low random(1, 19000)
\set high :low + random(1, 1000)
-- the other way round than the backfill
BEGIN;
UPDATE photos SET title = 'changed' WHERE id = :high;
\sleep 10 ms
UPDATE photos SET title = 'changed' WHERE id = :low;
COMMIT;
UPDATE comments SET photo_id = :low, body = :low::text WHERE id = :comment;
SELECT 1 / (count(*) = 1)::int FROM comments JOIN photos ON photos.id = photo_id WHERE comments.id = :comment;
\set last :photo
EOS
	my ($before, @steps) = recipe('From serial', 'Fill the columns', 'Index and check the columns');
	new_database('serial');
	run_examples($node, 'serial', $before);
	my $load = load('serial', $load_script);
	my $prepared = $node->background_psql('serial', on_error_stop => 0);
	$prepared->query_safe('PREPARE p AS SELECT id FROM photos LIMIT 1; EXECUTE p');
	# A session locks a row until the backfill has filled all others.
	my $locking = $node->background_psql('serial');
	foreach my $step (@steps)
	{
		$locking->query_until(qr/locked/, <<'EOS') if $step->{code} =~ /^CALL/;
BEGIN; SELECT FROM photos WHERE id = 20000 FOR UPDATE;
\echo locked
DO $$ BEGIN WHILE (SELECT count(*) > 1 FROM photos WHERE new_id IS NULL) LOOP PERFORM pg_sleep(0.01); END LOOP; END $$; COMMIT;
EOS
		run_examples($node, 'serial', $step);
	}
	$locking->quit;
	run_examples($node, 'serial', recipe('Swap the columns'));
	$prepared->query('EXECUTE p');
	like($prepared->{stderr}, qr/cached plan must not change result type/, 'a prepared statement whose result has another type fails');
	$prepared->quit;
	stop($load);
	is(value('serial', q{SELECT count(*) FROM photos WHERE title ~ '^\d+$' AND title <> id::text}), 0, 'serial: every row has the ID that its session got');
	is(value('serial', q{SELECT count(*) FROM comments WHERE body <> photo_id::text AND body NOT LIKE 'on %'}), 0, 'comments of the load are on their photos');
	is(value('serial', q{SELECT count(*) FROM comments WHERE body <> 'on ' || photo_id AND body LIKE 'on %'}), 0, 'old comments are on their photos');
	is(value('serial', q{SELECT count(*) FROM photos WHERE id <= 20000}), 20000, 'serial: no old row is lost');
	is(value('serial', q{SELECT count(DISTINCT id > 1::bigint << 60) FROM photos}), 2, 'serial: there are small numbers and IDs');
	is(described('serial'), <<'EOS', 'serial: the tables have the new columns, and nothing of the old ones');
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

	# up to the swap
	new_database('serial_still');
	run_examples($node, 'serial_still', $before);
	my $described = described('serial_still');
	$load = load('serial_still', $load_script);
	run_examples($node, 'serial_still', @steps, recipe('Give up before the swap'));
	stop($load);
	is(described('serial_still'), $described, 'giving up restores the tables as they were');
}

# Instagram's function, and a table that uses it
my $instagram = <<'EOS';
CREATE SCHEMA insta5;
CREATE SEQUENCE insta5.table_id_seq;
CREATE FUNCTION insta5.next_id(OUT result bigint) AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('insta5.table_id_seq') % 1024 INTO seq_id;
    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), title text);
EOS

# There and back, again and again
{
	new_database('insta');
	$node->safe_psql('insta', "$instagram INSERT INTO insta5.photos (title) SELECT 'photo ' || n FROM generate_series(1, 1000) AS n");
	my $original = value('insta', q{SELECT pg_get_functiondef('insta5.next_id'::regproc)});
	# IDs from a default, by the dozen, and taken before the row is made.
	my $load = load('insta', <<'EOS', '-c', '8', '-R', '800');
INSERT INTO insta5.photos (title) VALUES ('');
INSERT INTO insta5.photos (title) SELECT '' FROM generate_series(1, 12);
SELECT insta5.next_id() AS id \gset
INSERT INTO insta5.photos (id) VALUES (:id);
EOS
	run_examples($node, 'insta', recipe(q{From Instagram's own function})) foreach 1 .. 4;
	stop($load);
	is(value('insta', 'SELECT count(DISTINCT snowflake_shard(id)) FROM insta5.photos'), 1, 'IDs of both functions have one shard');
	is(value('insta', q{SELECT pg_get_functiondef('insta5.next_id'::regproc)}), $original, 'the old function is back');
}

# The same with a clock that stands still, where every collision shows.  The
# controls leave out, in turn, what the recipe has and a mere replacement of the
# function lacks.
SKIP:
{
	skip 'libfaketime is not installed', 7 unless faketime_library();
	my ($switch) = map { $_->{code} } grep { $_->{code} =~ /CREATE OR REPLACE/ } recipe(q{From Instagram's own function});
	my $lock = q{SELECT snowflake_alter_sequence('insta5.table_id_seq');};
	my $replace = q{CREATE OR REPLACE FUNCTION insta5.next_id(OUT result bigint) LANGUAGE plpgsql
		AS $$ BEGIN result := public.next_id(5, 'insta5.table_id_seq'); END $$;};
	my $setval = q{SELECT setval('insta5.table_id_seq', last_value %% 1024 + 1024 * (%d + (snowflake_id(clock_timestamp(), 5, 0) >> 23)))
		FROM insta5.table_id_seq;};
	my $clock = '2026-11-21 12:00:00';

	my $still = PostgreSQL::Test::Cluster->new('still');
	$still->init;
	$still->append_conf('postgresql.conf', "snowflake.max_lead = '1h'\n");
	start_with_clock($still, $clock);

	# A database whose function has made some IDs on both sides of the 1024th.
	my $fresh = sub {
		my ($database) = @_;
		$still->safe_psql('postgres', "CREATE DATABASE $database");
		$still->safe_psql($database, "CREATE EXTENSION snowflake; $instagram");
		$still->safe_psql($database, q{
			SELECT setval('insta5.table_id_seq', 999);
			INSERT INTO insta5.photos SELECT FROM generate_series(1, 100)});
		return $database;
	};
	# The error that many IDs more, or some SQL before them, end with
	my $error_of_more = sub {
		my ($database, $sql) = @_;
		my ($ret, $out, $error) = $still->psql($database, ($sql // '') . 'INSERT INTO insta5.photos SELECT FROM generate_series(1, 3000)');
		return $error =~ /(duplicate key)/ ? $1 : $error;
	};

	is($error_of_more->($fresh->('whole'), $switch), '', 'IDs of both functions differ within one millisecond');
	is($error_of_more->($fresh->('no_setval'), $lock . $replace), 'duplicate key', 'control: without setval() they meet');
	is($error_of_more->($fresh->('no_lead'), $lock . sprintf($setval, 0) . $replace),
		'duplicate key', 'control: with setval() to the clock itself they meet');

	# A session that has its number, and loses the CPU before it reads the clock.
	my $interrupted = sub {
		my ($database) = @_;
		$still->safe_psql($database, $still->safe_psql($database, q{
			SELECT regexp_replace(pg_get_functiondef('insta5.next_id'::regproc),
				'SELECT FLOOR', 'PERFORM pg_advisory_xact_lock(1); SELECT FLOOR')}));
		my $holder = $still->background_psql($database);
		$holder->query_safe('BEGIN; SELECT pg_advisory_xact_lock(1)');
		my $session = $still->background_psql($database, on_error_stop => 0);
		$session->query_until(qr/begun/, "\\echo begun\nINSERT INTO insta5.photos DEFAULT VALUES;\n");
		$still->poll_query_until($database, q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted});
		return ($holder, $session);
	};
	# It gets the CPU back half a second later.
	my $go_on = sub {
		my ($holder, $session) = @_;
		set_clock($still, "$clock.502");
		$holder->query_safe('COMMIT');
		$session->query('SELECT 1');
		$holder->quit;
		my $error = $session->{stderr};
		$session->quit;
		set_clock($still, $clock);
		return $error =~ /(duplicate key)/ ? $1 : $error;
	};

	my $database = $fresh->('no_lock');
	$still->safe_psql($database, $lock);
	my @sessions = $interrupted->($database);
	$error_of_more->($database, sprintf($setval, 500) . $replace);
	is($go_on->(@sessions), 'duplicate key', 'control: without the lock, a session that has its number meets an ID');

	$database = $fresh->('lock');
	@sessions = $interrupted->($database);
	like(($still->psql($database, $switch))[2], qr/canceling statement due to lock timeout/,
		'the recipe does not go on while a session has its number');
	is($go_on->(@sessions), '', 'that session makes its row');
	set_clock($still, "$clock.502");
	is($error_of_more->($database, $switch), '', 'the function can be exchanged after that');
	$still->stop;
}

# pgEdge's snowflake
{
	my @steps = recipe(q{From pgEdge's snowflake});
	new_database('pgedge');
	$node->safe_psql('pgedge', q{
		CREATE SCHEMA snowflake;
		CREATE FUNCTION snowflake.nextval(sequence regclass) RETURNS bigint LANGUAGE plpgsql AS $$
		DECLARE
			last bigint;
			clock bigint := extract(epoch FROM clock_timestamp()) * 1000 - 1672531200000;
		BEGIN
			PERFORM pg_advisory_lock(1);
			EXECUTE 'SELECT last_value FROM ' || sequence INTO last;
			last := CASE WHEN clock > last >> 22 THEN clock << 22
				WHEN last & 4095 = 4095 THEN ((last >> 22) + 1) << 22
				ELSE last + 1 END | (10 << 12);
			PERFORM setval(sequence, last), pg_advisory_unlock(1);
			RETURN last;
		END $$;
		-- so that it goes with the extension, and holds it up
		ALTER EXTENSION snowflake ADD FUNCTION snowflake.nextval(regclass)});
	$node->safe_psql('pgedge', q{
		CREATE SEQUENCE orders_id_seq;
		CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake.nextval('orders_id_seq'), item text);
		INSERT INTO orders (item) SELECT 'order ' || n FROM generate_series(1, 1000) AS n});
	# It may be ahead of the clock.
	$node->safe_psql('pgedge', q{SELECT setval('orders_id_seq', last_value + (600::bigint << 22)) FROM orders_id_seq});
	my $load = load('pgedge', <<'EOS');
INSERT INTO orders (item) VALUES ('') RETURNING id AS order, 1 / (id > :last)::int AS growing \gset
SELECT 1 / count(*) FROM orders WHERE id = :order;
\set last :order
EOS
	like(join('', $node->psql('pgedge', 'DROP EXTENSION snowflake')), qr/default value for column id of table orders depends on/,
		'DROP EXTENSION refuses while a default needs the extension');
	foreach my $step (@steps)
	{
		my $last = value('pgedge', 'SELECT max(id) FROM orders');
		run_examples($node, 'pgedge', $step);
		at_work($load, 'rows are inserted after a step');
		is(value('pgedge', "SELECT count(*) FROM orders WHERE id > $last AND snowflake_shard(id, 'pgedge') <> 10"), 0, 'IDs keep their node')
		  if value('pgedge', q{SELECT count(*) FROM pg_extension WHERE extname = 'snowflake'});
	}
	stop($load);
	is(value('pgedge', q{
		SELECT last_value = (max(id) >> 22) * 4096 + (max(id) & 4095) FROM orders, orders_next_seq GROUP BY last_value}),
		't', 'the new sequence has the value of the last ID');
	like(sqlstate_of($node, q{SELECT snowflake_alter_sequence('orders_id_seq', 'pgedge')}, dbname => 'pgedge'),
		qr/^55000 cannot make sequence "orders_id_seq" serve layout "pgedge"/, 'pgEdge\'s sequence is refused');
	is(value('pgedge', q{
		SET snowflake.shard = 10;
		SELECT next_id(current_setting('snowflake.shard')::bigint, 'orders_next_seq', 'pgedge') > max(id) FROM orders}),
		't', 'the node can come from snowflake.shard');
}

# UUIDs
{
	my ($time) = $text =~ /UUID of version 7 has its\s+time:\s+`([^`]+)`/ or die 'no time of a UUID';
	is($node->safe_psql('postgres', "SELECT $time FROM CAST('017f22e2-79b0-7cc3-98c4-dc0c0c07398f' AS uuid) AS id"),
		'2022-02-22 19:22:22+00', 'a UUID of version 7 has its time');
	my $old = <<'EOS';
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
	my $new = <<'EOS';
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
	my $comments_agree = q{
		SELECT count(*) FROM comments JOIN photos ON photos.new_id = new_photo_id
		WHERE body NOT IN ('on ' || title, photos.id::text, new_id::text)};

	foreach my $database ('uuid', 'uuid_still')
	{
		my ($before, @steps) = recipe('From UUID keys');
		new_database($database);
		run_examples($node, $database, $before);
		my $described = described($database);
		my $first = value($database, 'SELECT id FROM photos LIMIT 1');
		my $load_old = load($database, $old, '-D', "last=$first");
		run_examples($node, $database, grep { $_->{code} =~ /CREATE PROCEDURE/ } recipe('Fill the columns'));
		run_examples($node, $database, @steps, recipe('Index and check the columns', 'Switch the primary key'));
		is(described($database), <<'EOS', "$database: new_id is the primary key");
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
		my $load_new = load($database, $new);
		at_work($load_old, 'sessions with the old key go on beside those with the new one');

		is(value($database, $comments_agree), 0, "$database: comments are on their photos");
		is(value($database, q{
			SELECT count(*) FROM (SELECT new_id, lag(new_id) OVER (ORDER BY created_at, id) AS before
				FROM photos WHERE title LIKE 'photo %' OR snowflake_shard(new_id) = 4) AS t WHERE new_id <= before}),
			0, 'IDs of old rows are in the order of their times');
		is(value($database, q{
			SELECT count(*) FROM photos WHERE title LIKE 'photo %'
			AND (snowflake_shard(new_id) <> 4 OR snowflake_timestamp(new_id) < created_at
			     OR snowflake_timestamp(new_id) > created_at + interval '12 ms')}),
			0, 'IDs of old rows are near their time, with a shard of their own');
		is(value($database, q{SELECT count(*) FROM photos WHERE snowflake_shard(new_id) = 4 AND title LIKE 'photo %'}), 20000, "$database: no old row is lost");
		is(value($database, q{SELECT count(DISTINCT snowflake_shard(new_id)) FROM photos}), 2, 'new rows have the shard of next_id()');

		if ($database eq 'uuid')
		{
			stop($load_old);
			run_examples($node, $database, recipe('Drop the UUIDs'));
			is(described($database), <<'EOS', 'uuid: only the new keys are left');
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
			stop($load_new);
			is(value($database, q{SELECT count(*) FROM comments JOIN photos ON new_id = new_photo_id}),
				value($database, 'SELECT count(*) FROM comments'), 'every comment has its photo');
		}
		else
		{
			stop($load_new);
			run_examples($node, $database, recipe('Go back to UUIDs'));
			stop($load_old);
			is(described($database), $described, 'going back restores the tables as they were');
		}
	}
}

$node->stop;
done_testing();
