# snowflake_check() finds each fault that it knows, says what to do, and is silent
# again when that has been done.  Faults of the clock are in admin_check_clock.pl.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', "timezone = 'UTC'");
$node->start;

my $database;

sub value { my ($query) = @_; return $node->safe_psql($database, $query) }

# Execute commands that may leave out schemas.
sub plant { my ($commands) = @_; return value(qq{SET search_path = shop, "Id's", "The Admin"; $commands}) }

# The rows of the check.  Nothing that is named without its schema is found, and all
# names need quotes.
sub rows
{
	my ($role) = @_;
	$role //= 'postgres';
	return value(qq{SET SESSION AUTHORIZATION $role;
		SELECT concat_ws('|', severity || ' ' || object, problem, remedy) FROM "The Admin".snowflake_check()});
}

sub new_database
{
	my ($name, $shard) = @_;

	$database = $name;
	$node->safe_psql('postgres', qq{CREATE DATABASE "$name"; ALTER DATABASE "$name" SET search_path = ''});
	value(qq{
		CREATE SCHEMA "Id's";
		CREATE SCHEMA "The Admin";
		CREATE EXTENSION snowflake SCHEMA "Id's";
		CREATE EXTENSION snowflake_admin SCHEMA "The Admin";
		SELECT "Id's".snowflake_set_shard($shard)});
	return;
}

sub healthy
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(rows(), '', $name);
}

# Plant a fault.  One row must say so: its problem, and then the others of its columns.
# Its remedy is executed, with a number in place of N, and the row must be gone, or
# only the next rows be there.
sub fault
{
	my ($name, $commands, $problem, $expected, %params) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	plant($commands);
	like(rows(), qr/\|$problem/, "$name: it is described");
	foreach my $next (ref $expected ? @$expected : $expected)
	{
		my $found = rows();
		is($found =~ s/\|.*\|/: /gr, $next =~ s/[^.;]\K$/;/gmr, '... nothing else, and with a remedy');
		my $remedies = $params{by_hand} // $found =~ s/.*\|//gr =~ s/\bN\b/$params{number} \/\/ 6/ger;
		my ($status, undef, $error) = $node->psql($database, $remedies, on_error_stop => 1);
		is($status, 0, '... which can be executed') or diag $error;
	}
	healthy('... and is all there is to do');
	plant($params{clean} // '');
	return;
}

# --- a database without faults ---------------------------------------------------

new_database('faults 1', 5);
value('CREATE SCHEMA shop');
plant(q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
	CREATE TABLE notes (id bigint PRIMARY KEY DEFAULT next_id(), photo_id bigint REFERENCES photos);
	CREATE INDEX ON notes (photo_id);
	CREATE SEQUENCE "Tweets' seq";
	SELECT snowflake_alter_sequence('"Tweets'' seq"', 'twitter');
	CREATE TABLE "Tweets" (id snowflake PRIMARY KEY DEFAULT next_id(snowflake_shard(), '"Tweets'' seq"'));
	CREATE DOMAIN key AS bigint DEFAULT next_id(7);
	CREATE TABLE views (id key PRIMARY KEY, tenant integer NOT NULL DEFAULT 1);
	CREATE TABLE events (id bigint DEFAULT next_id(), PRIMARY KEY (id)) PARTITION BY RANGE (id);
	CREATE SEQUENCE one;
	CREATE SEQUENCE two;
	SELECT snowflake_alter_sequence('one'), snowflake_alter_sequence('two');
	CREATE TABLE spread (
		id bigint PRIMARY KEY DEFAULT CASE WHEN random() < 0.5 THEN next_id(1, 'one') ELSE next_id(2, 'two') END);
	CREATE TABLE counted (id bigserial PRIMARY KEY);
	CREATE TABLE moved (id bigserial PRIMARY KEY);
	INSERT INTO moved SELECT FROM generate_series(1, 1000);
	CALL snowflake_move('moved', own_sequence => true);
	CREATE SEQUENCE own;
	SELECT snowflake_alter_sequence('own', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000');
	CREATE TABLE owned (
		id bigint PRIMARY KEY DEFAULT next_id(3, 'own', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000'));
	CREATE SEQUENCE traces;
	SELECT snowflake_alter_sequence('traces', 'trace');
	CREATE TABLE traced (id bigint PRIMARY KEY DEFAULT next_id(3, 'traces'))});
plant(q{CALL snowflake_make_partitions('events')});
my $insert = join '', map { "INSERT INTO shop.$_ DEFAULT VALUES;\n" }
  qw(photos notes "Tweets" views events spread counted moved owned traced);
healthy('a database without rows is healthy');
value($insert) foreach 1 .. 20;
healthy('... and one with rows');

# --- shards and defaults ------------------------------------------------------------

my $set_own = q{SELECT "Id's".snowflake_set_shard(N); -- N is this server's number in your list.};
my $set_free = q{SELECT "Id's".snowflake_set_shard(N); -- N is a number from your list that no server uses.};
fault('no shard is set', 'SELECT snowflake_set_shard(NULL)',
	qr/No shard is set, so the default of shop."Tweets".id fails, and 4 more\. .*photos has rows of shard 5/,
	qq{error database "faults 1": $set_own}, number => 5);
plant('SELECT snowflake_set_shard(NULL); CREATE ROLE service; ALTER ROLE service SET snowflake.shard = 4');
healthy('each role may have its own shard');
plant('SELECT snowflake_set_shard(5); ALTER ROLE service RESET ALL');
fault('another database has the same shard', 'CREATE DATABASE "Other"; ALTER DATABASE "Other" SET snowflake.shard = 5',
	qr/Other databases of this server with its shard 5: "Other"\. /, qq{note database "faults 1": $set_free},
	clean => 'DROP DATABASE "Other"; SELECT snowflake_set_shard(5)');
fault('a table has the default of another database', q{
		CREATE TABLE copied (id bigint PRIMARY KEY DEFAULT next_id(8));
		INSERT INTO copied DEFAULT VALUES},
	qr/The default makes IDs of shard 8, but the database has number 5\. /,
	q{warning shop.copied.id: ALTER TABLE shop.copied ALTER id SET DEFAULT "Id's".next_id()},
	clean => 'DROP TABLE copied');
fault('two shards in one table', q{
		CREATE TABLE old (id bigint PRIMARY KEY DEFAULT next_id(5), kind text);
		CREATE TABLE older (id bigint DEFAULT next_id(9)) INHERITS (old)},
	qr/the default of shop.old makes IDs of shard 5, and the default of shop.older those of shard 9/,
	q{warning shop.old.id: ALTER TABLE shop.older ALTER id SET DEFAULT "Id's".next_id((5)::bigint)});
fault('two sequences with one shard in one table', q{ALTER TABLE older ALTER id SET DEFAULT next_id(5, 'one')},
	qr/Two sequences make IDs of shard 5, .*"Id's".next_id_seq in .* shop.old, and shop.one in .* shop.older/,
	q{error shop.old.id: ALTER TABLE shop.older ALTER id SET DEFAULT "Id's".next_id((5)::bigint)});
my $give_another = 'Give one of these two another free shard, or the sequence of the other.';
fault('two sequences with one shard, which a trigger has', q{
		CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			NEW.id := "Id's".next_id(5, 'shop.one');
			RETURN NEW;
		END $$;
		CREATE TRIGGER fill BEFORE INSERT ON old FOR EACH ROW EXECUTE FUNCTION fill()},
	qr/.*shop.one in function shop.fill\(\)/, "error shop.old.id: $give_another",
	by_hand => 'DROP TRIGGER fill ON shop.old',
	clean => 'DROP TABLE older, old');
fault('two sequences with one shard, in one default', q{
		CREATE TABLE mixed (
			id bigint DEFAULT CASE WHEN random() < 0.5 THEN next_id(1, 'one') ELSE next_id(1, 'two') END)},
	qr/.*shop.one in the default of shop.mixed, and shop.two in the default of shop.mixed/,
	"error shop.mixed.id: $give_another", by_hand => 'DROP TABLE shop.mixed');

# --- parameters of sequences -------------------------------------------------------

fault('the MAXVALUE is lost', 'ALTER SEQUENCE next_id_seq NO MAXVALUE', qr/Its MAXVALUE 9223372036854775807/,
	q{error sequence "Id's".next_id_seq: ALTER SEQUENCE "Id's".next_id_seq MAXVALUE 1125899906841599});
fault('the MAXVALUE of another layout is lost', q{ALTER SEQUENCE "Tweets' seq" NO MAXVALUE}, qr/.*schema tool/,
	q{error sequence shop."Tweets' seq": ALTER SEQUENCE shop."Tweets' seq" MAXVALUE 9007199254736895});
my $alter = q{SELECT "Id's".snowflake_alter_sequence};
fault('the MAXVALUE of a custom layout is lost', 'ALTER SEQUENCE own NO MAXVALUE',
	qr/Its parameters are not those of its layout/,
	"error sequence shop.own: $alter('shop.own', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000')",
	by_hand => 'ALTER SEQUENCE shop.own MAXVALUE 1125899906841591');
fault('a sequence begins anew, and its rows tell the layout', q{ALTER SEQUENCE "Tweets' seq" NO MAXVALUE RESTART},
	qr/.*schema tool/,
	[ qq{error sequence shop."Tweets' seq": $alter('shop."Tweets'' seq"', 'twitter')},
		q{warning sequence shop."Tweets' seq": SELECT "Id's".snowflake_advance('shop."Tweets'' seq"', }
		  . value('SELECT max(id) FROM shop."Tweets"') . ')' ]);
fault('a sequence has CYCLE', 'ALTER SEQUENCE one CYCLE CACHE 10', qr/Its parameters are not those of its layout/,
	"error sequence shop.one: $alter('shop.one', 'instagram')");
fault('a sequence is unlogged', 'ALTER SEQUENCE one SET UNLOGGED', qr/It is unlogged/,
	'error sequence shop.one: ALTER SEQUENCE shop.one SET LOGGED');

# --- sequences ahead of the clock, and behind their tables ----------------------------

sub ahead
{
	my ($sequence, $lead) = @_;
	return "SELECT setval($sequence, (snowflake_min_id(clock_timestamp() + interval '$lead') >> 23) * 1024);";
}

sub rows_of
{
	my ($table, $time, $shard) = @_;
	return qq{INSERT INTO $table (id)
		SELECT snowflake_id(clock_timestamp() + interval '$time', $shard, n) FROM generate_series(1, 3) AS n;};
}

# The command that sets a sequence back, but beyond the IDs of its tables
sub set_back
{
	my ($sequence, $parameters, $time, @tables) = @_;
	return "BEGIN; SET LOCAL lock_timeout = '300ms'; ALTER SEQUENCE $sequence RESTART$parameters; "
	  . join('', map { qq{SELECT "Id's".snowflake_advance('} . $sequence =~ s/'/''/gr . qq{', max(id)) FROM $_ }
		  . qq{WHERE id <= "Id's".snowflake_max_id($time) HAVING max(id) >= 1::bigint << 40; } } @tables) . 'COMMIT';
}

my $soon = q{now() + interval '1 s'};
fault('a sequence is ahead, and no row has its IDs', ahead(q{'moved_id_seq'}, '1 day'),
	qr/.*ahead of the clock.* fails until .*No row of shop.moved has/,
	'error sequence shop.moved_id_seq: ' . set_back('shop.moved_id_seq', '', $soon, 'shop.moved'));
fault('next_id_seq is ahead, and no row has its IDs', ahead(q{'next_id_seq'}, '1 day'),
	qr/.*No row of shop.events, shop.notes, shop.photos, shop.views has/, q{error sequence "Id's".next_id_seq: }
	  . set_back(q{"Id's".next_id_seq}, '', $soon, qw(shop.events shop.notes shop.photos shop.views)));
fault('a sequence is ahead, and rows have its IDs', q{
		CREATE SEQUENCE shot;
		SELECT snowflake_alter_sequence('shot');
		CREATE TABLE shots (id bigint PRIMARY KEY DEFAULT next_id(8, 'shot'));}
	  . rows_of('shots', '1 day', 8) . ahead(q{'shot'}, '1 day 1 s'),
	qr/.*Future-dated IDs of its shard: 3, the latest of .* in shop.shots. So it must not be set back/,
	[ q{error sequence shop.shot: CALL "The Admin".snowflake_move('shop.shots', shard => N, own_sequence => true); }
		  . '-- N is a number from your list that no server uses.',
		qq{warning table shop.shots: CALL "The Admin".snowflake_renumber('shop.shots', 8, since => $soon)\n}
		  . 'note sequence shop.shot: DROP SEQUENCE shop.shot' ],
	clean => 'DROP TABLE shots; DROP SEQUENCE shots_id_seq');
fault('a sequence that nothing uses is ahead',
	q{CREATE SEQUENCE unused; SELECT snowflake_alter_sequence('unused');} . ahead(q{'unused'}, '1 day'),
	qr/.*No default of this database uses it/, 'note sequence shop.unused: DROP SEQUENCE shop.unused');

# More rows than are looked at at once
plant(ahead(q{'next_id_seq'}, '1 day') . q{
	INSERT INTO photos (id)
		SELECT snowflake_id(clock_timestamp() + interval '1 day', 8, n % 1000) + 8388608 * (n / 1000)
		FROM generate_series(1, 25000) AS n});
like(rows(), qr/No row of .* Future-dated IDs of other shards, which it cannot make again: 25000\..*RESTART/,
	'a sequence can be set back beside many IDs of other shards');
plant(q{INSERT INTO photos (id) VALUES (snowflake_id(clock_timestamp() + interval '10 hours', 5, 1))});
like(rows(), qr/Future-dated IDs of its shard: 1, .*snowflake_move/, '... but not if one is of its own');
plant(q{DELETE FROM photos WHERE id > snowflake_max_id(now() + '1 s'); ALTER SEQUENCE next_id_seq RESTART});
value($insert);
healthy('... and in the end it is');

plant(ahead(q{'one'}, '5 s'));
like(rows(), qr/^warning.*next_id\(\) waits.*\|Wait until /, 'a sequence for which calls wait is a warning');
ok(wait_for(sub { rows() eq '' }), '... until the clock has caught up');
plant(rows_of('moved', '500 ms', 6));
healthy('IDs of another shard may be larger');
plant(rows_of('moved', '2 days', 5));
like(rows(), qr/^error sequence shop.moved_id_seq\|.* It will make such IDs again\.\|\Q$set_free\E$/,
	'a sequence that will make IDs of its table again is an error');
plant('DELETE FROM moved WHERE id > snowflake_max_id(now())');

# Something takes the MAXVALUE of a layout, and somebody gives the sequence that of another.
fault('a sequence goes on in another layout, with smaller IDs',
	'ALTER SEQUENCE moved_id_seq MAXVALUE 9007199254736895; INSERT INTO moved DEFAULT VALUES',
	qr/It serves layout twitter, but shop.moved has IDs of layout instagram, the last .* its next IDs are smaller/,
	'error sequence shop.moved_id_seq: '
	  . set_back('shop.moved_id_seq', ' MAXVALUE 1125899906841599', $soon, 'shop.moved'));
fault('... or years ahead', q{ALTER SEQUENCE "Tweets' seq" MAXVALUE 9007199254736894},
	qr/It serves layout discord, but shop."Tweets" has IDs of layout twitter/, q{error sequence shop."Tweets' seq": }
	  . set_back(q{shop."Tweets' seq"}, ' MAXVALUE 9007199254736895', "$soon, 'twitter'", 'shop."Tweets"'));
plant(q{INSERT INTO "Tweets"
	SELECT snowflake_id(now() + n * interval '1 day', 9, 1, 'twitter') FROM unnest('{2,400}'::integer[]) AS n});
unlike(rows(), qr/^error/m, 'future-dated IDs of another server are not of another layout');
plant(q{DELETE FROM "Tweets" WHERE snowflake_timestamp(id, 'twitter') > now()});

# --- columns, privileges, partitions, keys of nextval() -----------------------------------

fault('a column that refers to a key is too small', 'ALTER TABLE notes ALTER photo_id TYPE integer USING NULL',
	qr/It is integer, which is too small for IDs of shop.photos.id/,
	q{error shop.notes.photo_id: CALL "The Admin".snowflake_widen('shop.notes', 'photo_id')});
fault('a key is too small', q{CREATE TABLE "Small" ("Id" integer PRIMARY KEY DEFAULT next_id())}, qr/It is integer/,
	q{error shop."Small"."Id": CALL "The Admin".snowflake_widen('shop."Small"', 'Id')}, clean => 'DROP TABLE "Small"');

my $grant = q{GRANT USAGE ON SEQUENCE shop."Tweets' seq" TO};
fault('a role may insert, but not use the sequence',
	'CREATE ROLE "App"; GRANT USAGE ON SCHEMA shop TO "App"; GRANT INSERT ON "Tweets", photos TO "App"',
	qr/"App" may insert into shop."Tweets"/, qq{error sequence shop."Tweets' seq": $grant "App"});
fault('everybody may insert, but not use the sequence', 'GRANT INSERT (id) ON "Tweets" TO PUBLIC',
	qr/PUBLIC may insert/, qq{error sequence shop."Tweets' seq": $grant PUBLIC});
fault('a custom layout needs more', 'GRANT INSERT ON owned TO "App"; GRANT USAGE ON SEQUENCE own TO "App"',
	qr/"App" may insert/, 'error sequence shop.own: GRANT UPDATE ON SEQUENCE shop.own TO "App"');
fault('another role owns the table',
	q{GRANT USAGE ON SCHEMA shop, "Id's", "The Admin" TO "App"; ALTER TABLE moved OWNER TO "App"}, qr/"App" may insert/,
	'error sequence shop.moved_id_seq: GRANT USAGE ON SEQUENCE shop.moved_id_seq TO "App"');
fault('nobody may call next_id()', 'REVOKE ALL ON FUNCTION next_id() FROM PUBLIC', qr/"App" may insert/,
	q{error function "Id's".next_id(): GRANT EXECUTE ON FUNCTION "Id's".next_id() TO "App"});

my $make = q{table shop.events: CALL "The Admin".snowflake_make_partitions('shop.events')};
my $drop = q{DO $$ BEGIN EXECUTE (SELECT 'DROP TABLE ' || string_agg(partition::text, ', ')
	FROM snowflake_partitions('events') WHERE since > %s); END $$;};
fault('there is no partition for the present', sprintf($drop, q{'-infinity'}),
	qr/.*no partition for IDs of now \(.*an INSERT of such a row fails/, "error $make");
fault('there is no partition for tomorrow', sprintf($drop, q{now() + '1 s'}), qr/.*no partition for IDs of tomorrow/,
	"warning $make");
fault('rows go to the DEFAULT partition',
	sprintf($drop, q{'-infinity'}) . 'CREATE TABLE other_events PARTITION OF events DEFAULT',
	qr/.*now \(.*such rows go to the DEFAULT partition/, "warning $make", clean => 'DROP TABLE other_events');

plant(q{INSERT INTO moved VALUES (snowflake_min_id('2011-08-25Z'))});
healthy('a row that was imported with the first time of the layout is no key of nextval()');
fault('a program still calls nextval()', q{INSERT INTO moved SELECT nextval('moved_id_seq') FROM generate_series(1, 2)},
	qr/Keys that nextval\(\) made in place of next_id\(\): 2, the last of them /,
	'warning table shop.moved: UPDATE shop.moved SET id = DEFAULT '
	  . 'WHERE id BETWEEN 463877712157696 AND 1125899906841599');
fault('a default still calls nextval()', q{
		CREATE SEQUENCE three;
		SELECT snowflake_alter_sequence('three');
		CREATE TABLE later (id bigint PRIMARY KEY DEFAULT nextval('three'))},
	qr/.*nextval\(\) of shop.three, which makes IDs/,
	q{warning shop.later.id: ALTER TABLE shop.later ALTER id SET DEFAULT "Id's".next_id(N, 'shop.three'); }
	  . q{-- N is this server's number in your list.},
	clean => 'DROP TABLE later; DROP SEQUENCE three');

# --- what a role may not see, and what others have locked ---------------------------------

value(q{CREATE ROLE reader; GRANT USAGE ON SCHEMA shop, "Id's", "The Admin" TO reader});
my $hidden = rows('reader');
my $sequences = qr/note role reader\|It may not read \d+ sequences, so .*\|GRANT SELECT ON SEQUENCE .* TO reader;/;
my $tables = qr/note role reader\|It may not read \d+ tables, so .*\|GRANT SELECT ON TABLE .* TO reader;/;
like($hidden, qr/\A$sequences\n$tables\z/, 'a role without privileges gets notes of what it may not read');
value($hidden =~ s/.*\|//gr);
is(rows('reader'), '', '... until it may');
plant('ALTER TABLE photos ENABLE ROW LEVEL SECURITY');
like(rows('reader'), qr/\Anote table shop.photos\|Policies hide rows from this role, so its IDs were not looked at/,
	'policies that hide rows are a note');
plant('ALTER TABLE photos DISABLE ROW LEVEL SECURITY');

my $other = $node->background_psql($database);
$other->query_safe('BEGIN; LOCK TABLE shop.photos; ALTER SEQUENCE shop.one RESTART');
my $locked = rows();
like($locked, qr/\Anote sequence shop.one\|Somebody has locked.*\nnote table shop.photos\|Somebody has locked[^\n]*\z/,
	'what another session has locked is a note, without a wait');
like($locked, qr/ Process \d+ has used shop.photos in a transaction since/, '... and says which session');
$other->query_safe('ROLLBACK');
$other->quit;
healthy('... until it ends');
is(value(q{
		BEGIN;
		SELECT * FROM "The Admin".snowflake_check();
		SELECT DISTINCT relation::regclass FROM pg_locks WHERE relation >= 16384;
		SELECT pg_current_xact_id_if_assigned()}),
	'', 'a check holds no lock of a table, and has no transaction ID');

plant(q{
	CREATE FUNCTION nonsense() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN NEW.id := "Id's".next_id(1, 'shop.one', 'nonsense'); NEW.id := "Id's".next_id('x', 'y z'); RETURN NEW; END $$;
	CREATE TRIGGER nonsense BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION nonsense()});
unlike(rows(), qr/^note check of/m, 'code that makes no sense does not make a check fail');
plant('DROP FUNCTION nonsense() CASCADE');

# --- while the tables are in use ---------------------------------------------------------

my $load = start_load($node->connstr($database), $insert, '-R', '1000');
ok(wait_for(sub { value('SELECT count(*) > 2000 FROM shop.photos') eq 't' }), 'sessions insert rows');
is(join('', map { rows() } 1 .. 8), '', 'a healthy database that is in use has no faults');
end_load($load, 'a check');

# --- standbys ----------------------------------------------------------------------------

$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_conninfo = '" . $node->connstr . " application_name=s3'");
$standby->start;
$node->wait_for_catchup('s3');
is($standby->safe_psql($database, 'SELECT * FROM "The Admin".snowflake_check()'), '', 'a standby can be checked');

# With this setting, or for this role, the check soon has this row or none.
sub check_says
{
	my ($names, $row, $name, $role) = @_;

	$node->append_conf('postgresql.conf', "synchronous_standby_names = '$names'");
	$node->reload;
	ok(wait_for(sub { rows($role) eq $row }), $name) or diag rows($role);
	return;
}

my $none = 'but none of these standbys is streaming, so commits and next_id() wait.';
my $or_else = 'or else, unless Patroni or CloudNativePG manages this setting,';
my $continue = 'continue without one: then a failover can lose commits and repeat IDs.';
my $alter_system = 'ALTER SYSTEM SET synchronous_standby_names =';
check_says('FIRST 1 ("s-1", S3)', 'warning synchronous_standby_names|It names standbys that are not streaming: s-1. '
	  . 'Others suffice for now.|Repair them, or remove them from the setting.',
	'a missing standby of two is a warning');
check_says('ANY 1 (*)', '', 'any standby may be meant');
$standby->stop;
check_says('ANY 1 (*)', "error synchronous_standby_names|It is 'ANY 1 (*)', $none Repair a standby; $or_else $continue"
	  . "|$alter_system ''; SELECT pg_reload_conf();", 'no standby at all is an error');
$standby->start;
check_says('s1', "error synchronous_standby_names|It is 's1', $none Repair s1; $or_else name the standbys that are "
	  . qq{streaming.|$alter_system 'FIRST 1 ("s3")'; SELECT pg_reload_conf();},
	'a standby that does not stream is named, and one that does');
check_says('s1', 'note synchronous_standby_names|reader may not see which standbys are streaming.'
	  . '|GRANT pg_read_all_stats TO reader;', 'a role that may not see standbys gets a note', 'reader');
$node->psql($database, rows() =~ s/.*\|//r);
ok(wait_for(sub { rows() eq '' }), 'the remedy is one');
value(q{ALTER SYSTEM SET synchronous_standby_names = ''});
$node->reload;
$standby->stop;

# --- a subscription that stops at an ID that exists ---------------------------------------------

new_database('sender', 8);
value(q{
	CREATE TABLE public.sent (id bigint PRIMARY KEY);
	CREATE PUBLICATION everything FOR ALL TABLES});
value(q{SELECT pg_create_logical_replication_slot('s1', 'pgoutput')});
new_database('receiver', 6);
my $sender = $node->connstr('sender') =~ s/'/''/gr;
value(qq{
	CREATE TABLE public.sent (id bigint PRIMARY KEY);
	INSERT INTO public.sent VALUES (1);
	CREATE SUBSCRIPTION s1 CONNECTION '$sender' PUBLICATION everything WITH (create_slot = false, copy_data = false)});
healthy('a subscription that runs is no problem');
$node->safe_psql('sender', 'INSERT INTO public.sent VALUES (1)');
my $stopped = qr/^warning subscription s1\|It is not running, and has had \d+ errors\..*IDs came twice/;
ok(wait_for(sub { rows() =~ $stopped }), 'one that stops with an error is a warning');
$database = 'sender';
healthy('... in its own database');
$database = 'receiver';
value('DELETE FROM public.sent');
ok(wait_for(sub { value('SELECT count(*) FROM public.sent') eq '1' }), '... until it runs again');
healthy('... and then it is none');
value('ALTER SUBSCRIPTION s1 DISABLE');

$node->stop;
done_testing();
