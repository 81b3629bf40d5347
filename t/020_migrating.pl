# The recipes of doc/migrating.md, typed as they stand there while sessions
# insert, read, change and refer to rows: none of them gets an error, no ID
# comes twice, each session's IDs grow, and no row is lost.
#
# Functions in SQL stand in for pgEdge's extension: they keep a sequence as it
# does, with the last ID for its value.

use strict;
use warnings;
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
my $dir = PostgreSQL::Test::Utils::tempdir;

# The blocks of a section, and a database to type them into.
sub section
{
	my ($title, $database) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION snowflake');
	return grep { $_->{section} eq $title } @document;
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
		[ 'pgbench', '-n', '-c', '4', '-R', '150', '-T', '3600', '--verbose-errors', '-D', 'last=0',
			@options, '-f', $file, '-h', $node->host, '-p', $node->port, $database ],
		'>', '/dev/null', '2>', \$load{output});
	at_work(\%load, 'the sessions are at work');
	return \%load;
}

# Wait until the sessions have carried out more transactions; false if they gave
# up.
sub at_work
{
	my ($load, $name) = @_;
	my $commits = "SELECT xact_commit FROM pg_stat_database WHERE datname = '$load->{database}'";
	my $before = $node->safe_psql('postgres', $commits);

	my $alive;
	wait_for(sub {
		$alive = eval { $load->{pgbench}->pump_nb; 1 };
		return !$alive || $node->safe_psql('postgres', $commits) > $before + 200 });
	ok($alive, $name);
	return;
}

sub stop
{
	my ($load) = @_;

	at_work($load, 'and are so at the end');
	$load->{pgbench}->signal('TERM');
	$load->{pgbench}->finish;
	is($load->{output}, '', 'none of them got an error');
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
	my ($before, @steps) = section('From bigserial or identity', 'counter');
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
	like($error, qr/canceling statement due to lock timeout/, 'a step that does not get its lock gives up');
	at_work($load, 'so that the others go on');
	is(value('counter', q{SELECT column_default FROM information_schema.columns WHERE table_name = 'photos' AND column_name = 'id'}),
		q{nextval('photos_id_seq'::regclass)}, 'and nothing is changed');
	$open->quit;

	foreach my $step (@steps)
	{
		run_examples($node, 'counter', $step);
		# There must be rows of each step, however slow the machine is.
		my $largest = value('counter', 'SELECT max(id) FROM albums');
		ok($node->poll_query_until('counter', "SELECT max(id) > $largest FROM albums"), 'then rows are inserted');
	}
	stop($load);
	is(value('counter', q{SELECT count(*) FROM photos WHERE title ~ '^\d+$' AND title <> id::text}), 0, 'rows are those that were made');
	is(value('counter', q{SELECT count(DISTINCT id > 1::bigint << 60) FROM photos}), 2, 'small IDs and large ones');
	is(value('counter', q{SELECT count(DISTINCT id > 1::bigint << 60) FROM albums}), 2, 'in both tables');
	is(value('counter', q{SELECT attidentity FROM pg_attribute WHERE attrelid = 'albums'::regclass AND attname = 'id'}),
		'a', 'the identity is back');
	is(value('counter', q{SELECT pg_get_serial_sequence('photos', 'id'), max_value FROM pg_sequences WHERE sequencename = 'photos_id_seq'}),
		'public.photos_id_seq|9223372036854775807', 'the sequence of the bigserial is its column\'s again');
}

# What psql shows of the tables.
sub described
{
	my ($database) = @_;
	return $node->safe_psql($database, "\\d photos\n\\d comments");
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
	my ($before, @steps) = section('From serial', 'serial');
	run_examples($node, 'serial', $before);
	my $load = load('serial', $load_script);
	my $prepared = $node->background_psql('serial', on_error_stop => 0);
	$prepared->query_safe('PREPARE p AS SELECT id FROM photos LIMIT 1; EXECUTE p');
	run_examples($node, 'serial', @steps);
	$prepared->query('EXECUTE p');
	like($prepared->{stderr}, qr/cached plan must not change result type/, 'a prepared statement has to be prepared anew');
	$prepared->quit;
	stop($load);
	is(value('serial', q{SELECT count(*) FROM photos WHERE title ~ '^\d+$' AND title <> id::text}), 0, 'rows are those that were made');
	is(value('serial', q{SELECT count(*) FROM comments WHERE body <> photo_id::text AND body NOT LIKE 'on %'}), 0, 'and refer to those that they did');
	is(value('serial', q{SELECT count(*) FROM comments WHERE body <> 'on ' || photo_id AND body LIKE 'on %'}), 0, 'also the old ones');
	is(value('serial', q{SELECT count(*) FROM photos WHERE id <= 20000}), 20000, 'none is lost');
	is(value('serial', q{SELECT count(DISTINCT id > 1::bigint << 60) FROM photos}), 2, 'small IDs and large ones');

	# one step before the swap
	my ($giving_up) = grep { $_->{section} eq 'Giving up before the swap' } @document;
	section('From serial', 'serial_still');
	run_examples($node, 'serial_still', $before);
	my $described = described('serial_still');
	$load = load('serial_still', $load_script);
	pop @steps until $steps[-1]->{code} =~ /IS DISTINCT FROM/;
	run_examples($node, 'serial_still', @steps, $giving_up);
	stop($load);
	is(described('serial_still'), $described, 'giving up: everything is as before');
}

# Instagram's function: there and back, again and again
{
	my ($before, @steps) = section(q{From Instagram's own function}, 'insta');
	run_examples($node, 'insta', $before);
	# IDs from a default, by the dozen, and taken before the row is made.
	my $load = load('insta', <<'EOS', '-c', '8', '-R', '800');
INSERT INTO insta5.photos (title) VALUES ('');
INSERT INTO insta5.photos (title) SELECT '' FROM generate_series(1, 12);
SELECT insta5.next_id() AS id \gset
INSERT INTO insta5.photos (id) VALUES (:id);
EOS
	run_examples($node, 'insta', @steps) foreach 1 .. 4;
	stop($load);
	is(value('insta', q{SELECT count(DISTINCT snowflake_shard(id)) FROM insta5.photos}), 1, 'the shard stays');
}

# The same with a clock that stands still, in which all can be seen.  What the
# recipe has and a mere replacement of the function has not is left out by
# turns, to see that it is needed.
SKIP:
{
	skip 'libfaketime is not installed', 7 unless faketime_library();
	my ($before, $ready, $switch) = grep { $_->{section} eq q{From Instagram's own function} } @document;
	my ($text) = ($switch->{code});
	(my $no_lock = $text) =~ s/^SELECT snowflake_alter_sequence.*\n//m or die;
	(my $no_setval = $text) =~ s/^SELECT setval.*?;\n//ms or die;
	(my $no_lead = $text) =~ s/500 \+/0 +/ or die;

	my $still = PostgreSQL::Test::Cluster->new('still');
	$still->init;
	$still->append_conf('postgresql.conf', "snowflake.max_lead = '1h'\n");
	start_with_clock($still, '2026-11-21 12:00:00');

	# A thousand numbers are gone, and some IDs made on both sides of the 1024th.
	my $fresh = sub {
		my ($database) = @_;
		$still->safe_psql('postgres', "CREATE DATABASE $database");
		$still->safe_psql($database, 'CREATE EXTENSION snowflake');
		$still->safe_psql($database, $before->{code} =~ s/^INSERT.*//smr);
		$still->safe_psql($database, q{
			SELECT setval('insta5.table_id_seq', 999);
			INSERT INTO insta5.photos SELECT FROM generate_series(1, 100)});
		return $database;
	};
	my $more = 'INSERT INTO insta5.photos SELECT FROM generate_series(1, 3000)';
	my $outcome = sub {
		my ($database, $sql) = @_;
		my ($ret, $out, $error) = $still->psql($database, $sql);
		return $error =~ /(duplicate key)/ ? $1 : $error;
	};

	my $database = $fresh->('whole');
	$still->safe_psql($database, $text);
	is($outcome->($database, $more), '', 'within one millisecond: IDs of both functions differ');
	$database = $fresh->('no_setval');
	$still->safe_psql($database, $no_setval);
	is($outcome->($database, $more), 'duplicate key', 'they do not without setval()');
	$database = $fresh->('no_lead');
	$still->safe_psql($database, $no_lead);
	is($outcome->($database, $more), 'duplicate key', 'nor if it goes no further than the clock');

	# A session that has its number, and then loses the CPU for half a second.
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
	my $finish = sub {
		my ($holder, $session) = @_;
		$holder->query_safe('COMMIT');
		$session->query('SELECT 1');
		$holder->quit;
		my $error = $session->{stderr};
		$session->quit;
		return $error =~ /(duplicate key)/ ? $1 : $error;
	};

	$database = $fresh->('no_lock');
	$still->safe_psql($database, q{SELECT snowflake_alter_sequence('insta5.table_id_seq')});
	my @sessions = $interrupted->($database);
	$still->safe_psql($database, $no_lock);
	$still->safe_psql($database, $more);
	set_clock($still, '2026-11-21 12:00:00.502');
	is($finish->(@sessions), 'duplicate key', 'nor without the lock, for a session that has its number');

	set_clock($still, '2026-11-21 12:00:00');
	$database = $fresh->('lock');
	@sessions = $interrupted->($database);
	my $switching = $still->background_psql($database);
	$switching->query_until(qr/begun/, "\\echo begun\n" . $text =~ s/^SET LOCAL lock_timeout.*\n//mr . "\n");
	ok($still->poll_query_until($database, q{
		SELECT count(*) = 1 FROM pg_locks WHERE relation = 'insta5.table_id_seq'::regclass AND NOT granted}),
		'with it, the recipe waits');
	set_clock($still, '2026-11-21 12:00:00.502');
	is($finish->(@sessions), '', 'until that session has made its row');
	$switching->query_safe('SELECT 1');
	$switching->quit;
	is($outcome->($database, $more), '', 'and then the function is exchanged');
	$still->stop;
}

# pgEdge's snowflake
{
	my ($before, @steps) = section(q{From pgEdge's snowflake}, 'pgedge');
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
	run_examples($node, 'pgedge', $before);
	# It may be ahead of the clock.
	$node->safe_psql('pgedge', q{SELECT setval('orders_id_seq', last_value + (600::bigint << 22)) FROM orders_id_seq});
	my $load = load('pgedge', <<'EOS');
INSERT INTO orders (item) VALUES ('') RETURNING id AS order, 1 / (id > :last)::int AS growing \gset
SELECT 1 / count(*) FROM orders WHERE id = :order;
\set last :order
EOS
	like(join('', $node->psql('pgedge', 'DROP EXTENSION snowflake')), qr/default value for column id of table orders depends on/,
		'DROP EXTENSION refuses while a default needs it');
	foreach my $step (@steps)
	{
		my $last = value('pgedge', 'SELECT max(id) FROM orders');
		run_examples($node, 'pgedge', $step);
		at_work($load, 'rows are inserted all the while');
		is(value('pgedge', "SELECT count(*) FROM orders WHERE id > $last AND snowflake_shard(id, 'pgedge') <> 10"), 0, 'with the same node')
		  if value('pgedge', q{SELECT count(*) FROM pg_extension WHERE extname = 'snowflake'});
	}
	stop($load);
	is(value('pgedge', q{
		SELECT last_value = (max(id) >> 22) * 4096 + (max(id) & 4095) FROM orders, orders_next_seq GROUP BY last_value}),
		't', 'the sequence is where the last ID says');
	like(sqlstate_of($node, q{SELECT snowflake_alter_sequence('orders_id_seq', 'pgedge')}, dbname => 'pgedge'),
		qr/^55000 cannot make sequence "orders_id_seq" serve layout "pgedge"/, 'a sequence that holds IDs is refused');
	is(value('pgedge', q{
		SET snowflake.shard = 10;
		SELECT next_id(current_setting('snowflake.shard')::bigint, 'orders_next_seq', 'pgedge') > max(id) FROM orders}),
		't', 'the node can come from a setting');
}

# UUIDs
{
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
		my ($before, @steps) = section('From UUID keys', $database);
		run_examples($node, $database, $before);
		my $described = described($database);
		my $first = value($database, 'SELECT id FROM photos LIMIT 1');
		my $load_old = load($database, $old, '-D', "last=$first");
		my @last_steps;
		unshift @last_steps, pop @steps until $steps[-1]->{code} =~ /^\\d photos\nSELECT count/;
		run_examples($node, $database, @steps);
		my $load_new = load($database, $new);
		at_work($load_old, 'with the old key and the new one');

		is(value($database, $comments_agree), 0, 'comments are on the photos that they were');
		is(value($database, q{
			SELECT count(*) FROM (SELECT new_id, lag(new_id) OVER (ORDER BY created_at, id) AS before
				FROM photos WHERE title LIKE 'photo %' OR snowflake_shard(new_id) = 4) AS t WHERE new_id <= before}),
			0, 'the old rows\' IDs are in their order');
		is(value($database, q{
			SELECT count(*) FROM photos WHERE title LIKE 'photo %'
			AND (snowflake_shard(new_id) <> 4 OR snowflake_timestamp(new_id) < created_at
			     OR snowflake_timestamp(new_id) > created_at + interval '12 ms')}),
			0, 'near their time, of a shard of their own');
		is(value($database, q{SELECT count(*) FROM photos WHERE snowflake_shard(new_id) = 4 AND title LIKE 'photo %'}), 20000, 'none is lost');
		is(value($database, q{SELECT count(DISTINCT snowflake_shard(new_id)) FROM photos}), 2, 'new rows are of next_id()\'s');

		if ($database eq 'uuid')
		{
			stop($load_old);
			run_examples($node, $database, @last_steps);
			stop($load_new);
			is(value($database, q{SELECT count(*) FROM comments JOIN photos ON new_id = new_photo_id}),
				value($database, 'SELECT count(*) FROM comments'), 'every comment has its photo');
		}
		else
		{
			stop($load_new);
			run_examples($node, $database, grep { $_->{section} eq 'Going back to UUIDs' } @document);
			stop($load_old);
			is(described($database), $described, 'going back: everything is as before');
		}
	}
}

$node->stop;
done_testing();
