# snowflake_check() finds each fault that it knows, says what to do, and is silent
# again when that has been done.  Faults of the clock are in admin_check_clock.pl.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', "timezone = 'UTC'\nmax_locks_per_transaction = 256");
$node->start;

my ($database, $check);

sub value { my ($query) = @_; return $node->safe_psql($database, $query) }

# Nothing that is named without its schema is found, and all names need quotes.
sub new_database
{
	my ($name, $shard) = @_;

	$database = $name;
	$node->safe_psql('postgres', qq{CREATE DATABASE "$name"; ALTER DATABASE "$name" SET search_path = ''});
	value(q{CREATE SCHEMA "Id's"; CREATE EXTENSION snowflake SCHEMA "Id's";
		CREATE SCHEMA "The Admin"; CREATE EXTENSION snowflake_admin SCHEMA "The Admin"});
	$check = 'FROM "The Admin".snowflake_check()';
	value(qq{SELECT "Id's".snowflake_set_shard($shard)}) if defined $shard;
	return;
}

sub healthy
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is(value("SELECT * $check"), '', $name);
}

# Plant a fault.  One row must say so.  Its remedy is executed, with a number in place
# of N, and the row must be gone.
sub fault
{
	my ($name, $plant, $severity, $object, $problem, $remedy, %params) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	value($plant) if defined $plant;
	my ($row, @others) = split /\n/, $node->safe_psql($database, "SELECT * $check", extra_params => [ '-F', "\x01" ]);
	my @row = split /\x01/, $row // '';
	is("@others", '', "$name: nothing else is found") unless $params{others};
	is(join(' ', @row[0, 1]), "$severity $object", "$name: it is found") && like($row[2], $problem, '... and described');
	is($row[3], $remedy =~ s/[^.;]\K$/;/r, '... with a remedy');
	my $command = $params{by_hand} // $row[3] =~ s/\bN\b/$params{number} \/\/ 6/ger;
	my $status = $node->psql($database, $command, stderr => \my $error, on_error_stop => 1);
	foreach my $next (@{ $params{then} // [] })
	{
		is(my $remedies = value("SELECT remedy $check WHERE remedy NOT LIKE 'Do what %'"), $next, '... then there is another one');
		value($remedies);
	}
	is($status, 0, '... which can be executed') or diag $error;
	healthy('... and is all there is to do');
	value($params{clean}) if defined $params{clean};
	return;
}

# --- a database without faults ---------------------------------------------------

new_database('faults 1', 5);
value(q{
	CREATE SCHEMA shop;
	CREATE TABLE shop.photos (id bigint PRIMARY KEY DEFAULT "Id's".next_id(), title text);
	CREATE TABLE shop.notes (id bigint PRIMARY KEY DEFAULT "Id's".next_id(), photo_id bigint REFERENCES shop.photos);
	CREATE INDEX ON shop.notes (photo_id);
	CREATE SEQUENCE shop."Tweets' seq";
	SELECT "Id's".snowflake_alter_sequence('shop."Tweets'' seq"', 'twitter');
	CREATE TABLE shop."Tweets" (id "Id's".snowflake PRIMARY KEY
		DEFAULT "Id's".next_id("Id's".snowflake_shard(), 'shop."Tweets'' seq"'));
	CREATE DOMAIN shop.key AS bigint DEFAULT "Id's".next_id(7);
	CREATE TABLE shop.views (id shop.key PRIMARY KEY, tenant integer NOT NULL);
	CREATE TABLE shop.events (id bigint DEFAULT "Id's".next_id(), PRIMARY KEY (id)) PARTITION BY RANGE (id);
	CREATE SEQUENCE shop.one;
	CREATE SEQUENCE shop.two;
	SELECT "Id's".snowflake_alter_sequence('shop.one'), "Id's".snowflake_alter_sequence('shop.two');
	CREATE TABLE shop.spread (id bigint PRIMARY KEY DEFAULT CASE WHEN random() < 0.5
		THEN "Id's".next_id(1, 'shop.one') ELSE "Id's".next_id(2, 'shop.two') END);
	CREATE TABLE shop.counted (id bigserial PRIMARY KEY);
	CREATE TABLE shop.moved (id bigserial PRIMARY KEY);
	INSERT INTO shop.moved SELECT FROM generate_series(1, 1000);
	CALL "The Admin".snowflake_move('shop.moved', own_sequence => true);
	CREATE SEQUENCE shop.own;
	SELECT "Id's".snowflake_alter_sequence('shop.own', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000');
	CREATE TABLE shop.owned (id bigint PRIMARY KEY
		DEFAULT "Id's".next_id(3, 'shop.own', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000'));
	CREATE SEQUENCE shop.traces;
	SELECT "Id's".snowflake_alter_sequence('shop.traces', 'trace');
	CREATE TABLE shop.traced (id bigint PRIMARY KEY DEFAULT "Id's".next_id(3, 'shop.traces'))});
$node->safe_psql($database, q{CALL "The Admin".snowflake_make_partitions('shop.events')});
my @tables = qw(photos notes "Tweets" views events spread counted moved owned traced);
my $insert = join ';', map { 'INSERT INTO shop.' . $_ . ($_ eq 'views' ? '(tenant) VALUES (1)' : ' DEFAULT VALUES') } @tables;
healthy('a database without rows is healthy');
value($insert) foreach 1 .. 20;
healthy('... and one with rows');

# --- defaults ---------------------------------------------------------------------

fault('no shard is set', q{SELECT "Id's".snowflake_set_shard(NULL)}, 'error', 'database "faults 1"',
	qr/default of shop."Tweets".id fails, and 4 more\. The newest IDs .*photos has rows of shard 5/,
	q{SELECT "Id's".snowflake_set_shard(N); -- N is this server's number in your list.}, number => 5);
value(q{SELECT "Id's".snowflake_set_shard(NULL); CREATE ROLE service; ALTER ROLE service SET snowflake.shard = 4});
healthy('each role may have its own shard');
value(q{SELECT "Id's".snowflake_set_shard(5); ALTER ROLE service RESET ALL});

fault('another database has the same shard', 'CREATE DATABASE "Other"; ALTER DATABASE "Other" SET snowflake.shard = 5',
	'note', 'database "faults 1"', qr/^Other databases of this server with its shard 5: "Other"\. /, q{SELECT "Id's".snowflake_set_shard(N); -- N is a number from your list that no server uses.},
	clean => q{DROP DATABASE "Other"; SELECT "Id's".snowflake_set_shard(5)});

fault('a table has the default of another database', q{
		CREATE TABLE shop.copied (id bigint PRIMARY KEY DEFAULT "Id's".next_id(8));
		INSERT INTO shop.copied DEFAULT VALUES},
	'warning', 'shop.copied.id', qr/^The default makes IDs of shard 8, but the database has number 5\. /,
	q{ALTER TABLE shop.copied ALTER id SET DEFAULT "Id's".next_id()}, clean => 'DROP TABLE shop.copied');

fault('two shards in one table', q{
		CREATE TABLE shop.old (id bigint PRIMARY KEY DEFAULT "Id's".next_id(5));
		ALTER TABLE shop.old ADD kind text;
		CREATE TABLE shop.older (id bigint DEFAULT "Id's".next_id(9)) INHERITS (shop.old)},
	'warning', 'shop.old.id', qr/default of shop.old makes IDs of shard 5, and the default of shop.older those of shard 9/,
	q{ALTER TABLE shop.older ALTER id SET DEFAULT "Id's".next_id((5)::bigint)});
fault('two sequences with one shard in one table',
	q{ALTER TABLE shop.older ALTER id SET DEFAULT "Id's".next_id(5, 'shop.one')},
	'error', 'shop.old.id', qr/Two sequences make IDs of shard 5, .*"Id's".next_id_seq in .* shop.old, and shop.one in .* shop.older/,
	q{ALTER TABLE shop.older ALTER id SET DEFAULT "Id's".next_id((5)::bigint)});
fault('two sequences with one shard, which a trigger has', q{
		CREATE FUNCTION shop.fill() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			NEW.id := "Id's".next_id(5, 'shop.one');
			RETURN NEW;
		END $$;
		CREATE TRIGGER fill BEFORE INSERT ON shop.old FOR EACH ROW EXECUTE FUNCTION shop.fill()},
	'error', 'shop.old.id', qr/shop.one in function shop.fill\(\)/,
	'Give one of these two another free shard, or the sequence of the other.',
	by_hand => 'DROP TRIGGER fill ON shop.old');
fault('two sequences with one shard, in one default', q{
		ALTER TABLE shop.spread ALTER id SET DEFAULT CASE WHEN random() < 0.5
			THEN "Id's".next_id(1, 'shop.one') ELSE "Id's".next_id(1, 'shop.two') END},
	'error', 'shop.spread.id', qr/shop.one in the default of shop.spread, and shop.two in the default of shop.spread/,
	'Give one of these two another free shard, or the sequence of the other.',
	others => 1, by_hand => q{ALTER TABLE shop.spread ALTER id SET DEFAULT "Id's".next_id(1, 'shop.one')},
	clean => 'DROP TABLE shop.older, shop.old');

# --- parameters of sequences -------------------------------------------------------

fault('the MAXVALUE is lost', q{ALTER SEQUENCE "Id's".next_id_seq NO MAXVALUE},
	'error', q{sequence "Id's".next_id_seq}, qr/MAXVALUE 9223372036854775807/,
	q{ALTER SEQUENCE "Id's".next_id_seq MAXVALUE 1125899906841599});
fault('the MAXVALUE of another layout is lost', q{ALTER SEQUENCE shop."Tweets' seq" NO MAXVALUE},
	'error', q{sequence shop."Tweets' seq"}, qr/schema tool/, q{ALTER SEQUENCE shop."Tweets' seq" MAXVALUE 9007199254736895});
fault('the MAXVALUE of a custom layout is lost', q{ALTER SEQUENCE shop.own NO MAXVALUE},
	'error', 'sequence shop.own', qr/not those of its layout/,
	q{SELECT "Id's".snowflake_alter_sequence('shop.own', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000')},
	by_hand => q{DO $$ BEGIN PERFORM "Id's".snowflake_alter_sequence('shop.own', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000');
		EXCEPTION WHEN OTHERS THEN DECLARE hint text; BEGIN GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
		EXECUTE substring(hint, 'ALTER SEQUENCE \S+ MAXVALUE \d+'); END; END $$});
value(q{ALTER SEQUENCE shop."Tweets' seq" NO MAXVALUE RESTART});
like(value("SELECT remedy $check"), qr/^SELECT "Id's".snowflake_alter_sequence\('shop."Tweets'' seq"', 'twitter'\);$/,
	'the rows tell the layout of a sequence that has begun anew');
value(value("SELECT remedy $check"));
fault('the sequence has begun anew', undef, 'warning', q{sequence shop."Tweets' seq"}, qr/If the clock is set back/,
	q{SELECT "Id's".snowflake_advance('shop."Tweets'' seq"', } . value('SELECT max(id) FROM shop."Tweets"') . q{)});
fault('a sequence has CYCLE', 'ALTER SEQUENCE shop.one CYCLE CACHE 10', 'error', 'sequence shop.one', qr/not those of its layout/,
	q{SELECT "Id's".snowflake_alter_sequence('shop.one', 'instagram')});
fault('a sequence is unlogged', 'ALTER SEQUENCE shop.one SET UNLOGGED', 'error', 'sequence shop.one', qr/unlogged/,
	'ALTER SEQUENCE shop.one SET LOGGED');

# --- sequences ahead of the clock, and behind their tables ----------------------------

sub ahead
{
	my ($sequence, $lead) = @_;
	return qq{SELECT setval($sequence, ("Id's".snowflake_min_id(clock_timestamp() + interval '$lead') >> 23) * 1024)};
}
sub row_of
{
	my ($table, $time, $shard) = @_;
	return qq{INSERT INTO shop.$table (id) SELECT "Id's".snowflake_id(clock_timestamp() + interval '$time', $shard, n) FROM generate_series(1, 3) AS n};
}
my $restart = q{BEGIN; SET LOCAL lock_timeout = '300ms'; ALTER SEQUENCE %s RESTART; %sCOMMIT;};
my $beyond = q{SELECT "Id's".snowflake_advance('%s', max(id)) FROM %s }
  . q{WHERE id <= "Id's".snowflake_max_id(now() + interval '1 s') HAVING max(id) >= 1::bigint << 40; };
fault('a sequence is ahead, and no row has its IDs', ahead(q{'shop.moved_id_seq'}, '1 day'), 'error', 'sequence shop.moved_id_seq',
	qr/ahead of the clock.* fails until .*No row of shop.moved has/,
	sprintf($restart, 'shop.moved_id_seq', sprintf $beyond, 'shop.moved_id_seq', 'shop.moved'));
my $renumber = sub { return join "\n", map { qq{CALL "The Admin".snowflake_renumber('shop.$_', $_[-1], since => now() + interval '1 s');} } @_[0 .. $#_ - 1] };
my @by_default = qw(shop.events shop.notes shop.photos shop.views);
fault('next_id_seq is ahead, and no row has its IDs', ahead(q{'"Id''s".next_id_seq'}, '1 day'),
	'error', q{sequence "Id's".next_id_seq}, qr/No row of shop.events, shop.notes, shop.photos, shop.views has/,
	sprintf($restart, q{"Id's".next_id_seq}, join '', map { sprintf $beyond, q{"Id''s".next_id_seq}, $_ } @by_default));
fault('a sequence is ahead, and rows have its IDs',
	'CREATE TABLE shop.shots (id bigint PRIMARY KEY); ' . row_of('shots', '1 day', 8)
	  . q{; ALTER TABLE shop.shots ALTER id SET DEFAULT "Id's".next_id(8, 'shop.two'); } . ahead(q{'shop.two'}, '1 day 1 s'),
	'error', 'sequence shop.two', qr/Future-dated IDs of its shard: 3, the latest of .* in shop.shots. So it must not be set back/,
	q{CALL "The Admin".snowflake_move('shop.shots', shard => N, own_sequence => true); -- N is a number from your list that no server uses.}, number => 9,
	by_hand => q{CALL "The Admin".snowflake_move('shop.shots', shard => 9, own_sequence => true); DROP SEQUENCE shop.two},
	then => [ $renumber->('shots', 8) ],
	clean => 'DROP TABLE shop.shots; DROP SEQUENCE shop.shots_id_seq');
fault('a sequence that nothing uses is ahead',
	q{CREATE SEQUENCE shop.unused; SELECT "Id's".snowflake_alter_sequence('shop.unused'); } . ahead(q{'shop.unused'}, '1 day'),
	'note', 'sequence shop.unused', qr/No default of this database uses it/, 'DROP SEQUENCE shop.unused');
my $client = q{SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity }
  . q{WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'; };
value(q{DROP TABLE shop.views; DROP DOMAIN shop.key});
pop @by_default;
fault('next_id_seq is ahead, rows have its IDs, and one setting gives the shard',
	row_of('photos', '1 day', 5) . ';' . row_of('notes', '1 day', 5) . ';' . ahead(q{'"Id''s".next_id_seq'}, '1 day 1 s'),
	'error', q{sequence "Id's".next_id_seq}, qr/^It is 1 day 00:00:0.*Future-dated IDs of its shard: 6/,
	q{SELECT "Id's".snowflake_set_shard(N); -- N is a number from your list that no server uses.},
	then => [ $client . sprintf($restart, q{"Id's".next_id_seq}, join '', map { sprintf $beyond, q{"Id''s".next_id_seq}, $_ } @by_default),
		$renumber->('photos', 'notes', 5) ]);
is(value(q{SELECT "Id's".snowflake_shard("Id's".next_id())}), 6, '... and IDs have the new shard');
value(row_of('photos', '1 day', 5) . ';' . ahead(q{'"Id''s".next_id_seq'}, '1 day'));
like(value("SELECT problem || remedy $check"), qr/Future-dated IDs of other shards, which it cannot make again: 3\.SELECT pg_terminate_backend\(.*RESTART/,
	'sessions that may have the old shard are ended before the sequence is set back');
value(value("SELECT remedy $check LIMIT 1") . q{; DELETE FROM shop.photos WHERE id > "Id's".snowflake_max_id(now() + '1 s'); SELECT "Id's".snowflake_set_shard(5)});

# More rows than are looked at at once
value(qq{INSERT INTO shop.photos (id) SELECT "Id's".snowflake_id(clock_timestamp() + interval '1 day', 8, n % 1000) + 8388608 * (n / 1000)
		FROM generate_series(1, 25000) AS n; } . ahead(q{'"Id''s".next_id_seq'}, '1 day'));
like(value("SELECT problem || remedy $check"), qr/No row of .* Future-dated IDs of other shards, which it cannot make again: 25000\..*RESTART/,
	'a sequence can be set back beside many IDs of other shards');
value(q{INSERT INTO shop.photos (id) VALUES ("Id's".snowflake_id(clock_timestamp() + interval '10 hours', 5, 1))});
like(value("SELECT problem || remedy $check"), qr/Future-dated IDs of its shard: 1, .*set_shard/, '... but not if one is of its own');
value(q{DELETE FROM shop.photos WHERE id > "Id's".snowflake_max_id(now() + '1 s')});
value(value("SELECT remedy $check LIMIT 1"));
healthy('... and in the end it is');

value(ahead(q{'shop.one'}, '5 s'));
like(value("SELECT concat_ws('|', severity, problem, remedy) $check"), qr/^warning\|.*next_id\(\) waits.*\|Wait until /,
	'a sequence for which calls wait is a warning');
ok(wait_for(sub { value("SELECT count(*) $check") eq '0' }), '... until the clock has caught up');

my $largest = q{(SELECT max(id) FROM shop.moved)};
value('INSERT INTO shop.moved DEFAULT VALUES');
fault('a sequence is behind its table', 'ALTER SEQUENCE shop.moved_id_seq RESTART', 'warning', 'sequence shop.moved_id_seq',
	qr/It has made no ID, but shop.moved has the ID \d+/,
	q{SELECT "Id's".snowflake_advance('shop.moved_id_seq', } . value('SELECT max(id) FROM shop.moved') . ')');
value(row_of('moved', '500 ms', 6));
healthy('IDs of another shard may be larger');
value(row_of('moved', '2 days', 5));
like(value("SELECT concat_ws('|', severity, object, problem, remedy) $check"),
	qr/^error\|sequence shop.moved_id_seq\|.*It will make such IDs again\.\|SELECT "Id's".snowflake_set_shard\(N\); -- N is a number/,
	'a sequence that will make IDs of its table again is an error');
value(q{DELETE FROM shop.moved WHERE id > "Id's".snowflake_max_id(now())});

# Something takes the MAXVALUE of a layout, and somebody gives the sequence that of another.
fault('a sequence goes on in another layout, with smaller IDs',
	'ALTER SEQUENCE shop.moved_id_seq MAXVALUE 9007199254736895; INSERT INTO shop.moved DEFAULT VALUES',
	'error', 'sequence shop.moved_id_seq',
	qr/^It serves layout twitter, but shop.moved has IDs of layout instagram, the last of them \d+ of .* its next IDs are smaller/,
	sprintf($restart =~ s/RESTART/$& MAXVALUE 1125899906841599/r, 'shop.moved_id_seq', sprintf $beyond, 'shop.moved_id_seq', 'shop.moved'));
fault('... or years ahead', q{ALTER SEQUENCE shop."Tweets' seq" MAXVALUE 9007199254736894},
	'error', q{sequence shop."Tweets' seq"}, qr/^It serves layout discord, but shop."Tweets" has IDs of layout twitter/,
	sprintf($restart =~ s/RESTART/$& MAXVALUE 9007199254736895/r, q{shop."Tweets' seq"},
		sprintf($beyond, q{shop."Tweets'' seq"}, 'shop."Tweets"') =~ s/(interval '1 s')/$1, 'twitter'/r));
value(q{INSERT INTO shop."Tweets" SELECT "Id's".snowflake_id(now() + n * interval '1 day', 9, 1, 'twitter') FROM unnest('{2,400}'::integer[]) AS n});
is(value("SELECT count(*) $check WHERE severity = 'error'"), 0, 'future-dated IDs of another server are not of another layout');
value('DELETE FROM shop."Tweets" WHERE "Id\'s".snowflake_timestamp(id, \'twitter\') > now()');

# --- columns, privileges, partitions, keys of nextval() -----------------------------------

fault('a column that refers to a key is too small', 'ALTER TABLE shop.notes ALTER photo_id TYPE integer USING NULL',
	'error', 'shop.notes.photo_id', qr/^It is integer, which is too small for IDs of shop.photos.id/,
	q{CALL "The Admin".snowflake_widen('shop.notes', 'photo_id')});
fault('a key is too small',
	q{CREATE TABLE shop."Small" ("Id" integer PRIMARY KEY DEFAULT "Id's".next_id())},
	'error', 'shop."Small"."Id"', qr/^It is integer/, q{CALL "The Admin".snowflake_widen('shop."Small"', 'Id')},
	clean => 'DROP TABLE shop."Small"');
fault('a role may insert, but not use the sequence',
	'CREATE ROLE "App"; GRANT USAGE ON SCHEMA shop TO "App"; GRANT INSERT ON shop."Tweets", shop.photos TO "App"',
	'error', q{sequence shop."Tweets' seq"}, qr/^"App" may insert into shop."Tweets"/, q{GRANT USAGE ON SEQUENCE shop."Tweets' seq" TO "App"});
fault('everybody may insert, but not use the sequence', 'GRANT INSERT (id) ON shop."Tweets" TO PUBLIC',
	'error', q{sequence shop."Tweets' seq"}, qr/^PUBLIC may insert/, q{GRANT USAGE ON SEQUENCE shop."Tweets' seq" TO PUBLIC});
fault('a custom layout needs more', 'GRANT INSERT ON shop.owned TO "App"; GRANT USAGE ON SEQUENCE shop.own TO "App"',
	'error', 'sequence shop.own', qr/^"App" may insert/, 'GRANT UPDATE ON SEQUENCE shop.own TO "App"');
fault('another role owns the table', q{GRANT USAGE ON SCHEMA shop, "Id's", "The Admin" TO "App"; ALTER TABLE shop.moved OWNER TO "App"},
	'error', 'sequence shop.moved_id_seq', qr/^"App" may insert/, 'GRANT USAGE ON SEQUENCE shop.moved_id_seq TO "App"');
fault('nobody may call next_id()', q{REVOKE ALL ON FUNCTION "Id's".next_id() FROM PUBLIC},
	'error', q{function "Id's".next_id()}, qr/^"App" may insert/, q{GRANT EXECUTE ON FUNCTION "Id's".next_id() TO "App"});

my $make = q{CALL "The Admin".snowflake_make_partitions('shop.events')};
my $partitions = join ', ', split /\n/, value(q{SELECT partition FROM "The Admin".snowflake_partitions('shop.events') ORDER BY since});
my ($last) = $partitions =~ /.*, (\S+)/;
fault('there is no partition for the present', "DROP TABLE $partitions", 'error', 'table shop.events',
	qr/no partition for IDs of now \(.*an INSERT of such a row fails/, $make);
fault('there is no partition for tomorrow', qq{
		DO \$\$ BEGIN EXECUTE (SELECT 'DROP TABLE ' || string_agg(partition::text, ', ')
			FROM "The Admin".snowflake_partitions('shop.events') WHERE since > now() + '1 s'); END \$\$},
	'warning', 'table shop.events', qr/no partition for IDs of tomorrow/, $make);
fault('rows go to the DEFAULT partition', qq{
		DO \$\$ BEGIN EXECUTE (SELECT 'DROP TABLE ' || string_agg(partition::text, ', ')
			FROM "The Admin".snowflake_partitions('shop.events')); END \$\$;
		CREATE TABLE shop.other_events PARTITION OF shop.events DEFAULT},
	'warning', 'table shop.events', qr/now \(.*such rows go to the DEFAULT partition/, $make,
	clean => 'DROP TABLE shop.other_events');

value(q{INSERT INTO shop.moved VALUES ("Id's".snowflake_min_id('2011-08-25Z'))});
healthy('a row that was imported with the first time of the layout is no key of nextval()');
fault('a program still calls nextval()', q{INSERT INTO shop.moved SELECT nextval('shop.moved_id_seq') FROM generate_series(1, 2)},
	'warning', 'table shop.moved', qr/^Keys that nextval\(\) made in place of next_id\(\): 2, the last of them /,
	'UPDATE shop.moved SET id = DEFAULT WHERE id BETWEEN 463877712157696 AND 1125899906841599');
fault('a default still calls nextval()',
	q{CREATE TABLE shop.later (id bigint PRIMARY KEY DEFAULT nextval('shop.one')); ALTER TABLE shop.spread ALTER id DROP DEFAULT},
	'warning', 'shop.later.id', qr/nextval\(\) of shop.one, which makes IDs/,
	q{ALTER TABLE shop.later ALTER id SET DEFAULT "Id's".next_id(N, 'shop.one'); -- N is this server's number in your list.}, number => 1,
	clean => q{DROP TABLE shop.later; SELECT "Id's".snowflake_advance('shop.one', max(id)) FROM shop.spread;
		ALTER TABLE shop.spread ALTER id SET DEFAULT "Id's".next_id(1, 'shop.one')});

# --- what a role may not see, and what others have locked ---------------------------------

my $as_reader = 'SET SESSION AUTHORIZATION reader; ';
value(q{CREATE ROLE reader; GRANT USAGE ON SCHEMA shop, "Id's", "The Admin" TO reader});
$check = "$check WHERE current_user = current_user";
my $hidden = value("${as_reader}SELECT severity, object, problem, remedy $check");
like($hidden, qr/\Anote\|role reader\|It may not read \d+ sequences, so .*\|GRANT SELECT ON SEQUENCE ("Id's".next_id_seq, )?shop.moved_id_seq, .* TO reader;\nnote\|role reader\|It may not read \d+ tables, so .*\|GRANT SELECT ON TABLE shop."Tweets", .* TO reader;\z/,
	'a role without privileges gets notes of what it may not read');
value(value("${as_reader}SELECT remedy $check"));
is(value("${as_reader}SELECT * $check"), '', '... until it may');
value('ALTER TABLE shop.photos ENABLE ROW LEVEL SECURITY');
is(value("${as_reader}SELECT severity, object, problem $check"),
	'note|table shop.photos|Policies hide rows from this role, so its IDs were not looked at.', 'policies that hide rows are a note');
value('ALTER TABLE shop.photos DISABLE ROW LEVEL SECURITY');

my $other = $node->background_psql($database);
$other->query_safe('BEGIN; LOCK TABLE shop.photos; ALTER SEQUENCE shop.one RESTART');
like(value("SET statement_timeout = '20s'; SELECT severity, object, problem $check"),
	qr/\Anote\|sequence shop.one\|Somebody has locked it.*\nnote\|table shop.photos\|Somebody has locked it, .* Process \d+ has used shop.photos in a transaction since/,
	'what another session has locked is a note, without a wait');
$other->query_safe('ROLLBACK');
$other->quit;
healthy('... until it ends');
is(value("BEGIN; SELECT * $check; SELECT DISTINCT relation::regclass FROM pg_locks WHERE relation >= 16384; SELECT pg_current_xact_id_if_assigned()"),
	'', 'a check holds no lock of a table, and has no transaction ID');

value(q{CREATE FUNCTION shop.nonsense() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN NEW.id := "Id's".next_id(1, 'shop.one', 'nonsense'); NEW.id := "Id's".next_id('x', 'y z'); RETURN NEW; END $$;
	CREATE TRIGGER nonsense BEFORE INSERT ON shop.photos FOR EACH ROW EXECUTE FUNCTION shop.nonsense()});
is($node->psql($database, "SELECT count(*) $check"), 0, 'code that makes no sense does not make a check fail');
value('DROP FUNCTION shop.nonsense() CASCADE');

value(q{CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO PUBLIC;
	CREATE FUNCTION evil.fail() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'hostile function'; END $$});
foreach my $function ('format(text, text)', 'format(text, text, text)', 'concat_ws(text, text, text)', 'substring(text, text)', 'min(text)',
	'regexp_replace(text, text, text)', 'date_trunc(text, timestamptz)', 'now()', 'clock_timestamp()', 'current_setting(text)', 'lower(text)')
{
	value("CREATE FUNCTION evil.$function RETURNS text LANGUAGE sql AS 'SELECT evil.fail()'");
}
value(q{CREATE FUNCTION evil.same(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT evil.fail()::boolean';
	CREATE OPERATOR evil.= (FUNCTION = evil.same, LEFTARG = text, RIGHTARG = text)});
is(value("SET search_path = evil, pg_catalog; SELECT * $check"), '', 'functions and operators of the search_path are not called');

# --- while the tables are in use ---------------------------------------------------------

append_to_file($node->basedir . '/insert.sql', $insert =~ s/INSERT INTO shop.views[^;]*;//r . ';');
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', '4', '-T', '300', '-f', $node->basedir . '/insert.sql', '-h', $node->host, '-p', $node->port, $database ],
	'>', '/dev/null', '2>', \my $said);
ok(wait_for(sub { value('SELECT count(*) > 2000 FROM shop.photos') eq 't' }), 'sessions insert rows');
my @found = map { value("SELECT concat_ws('|', severity, object, problem) $check") } 1 .. 8;
is("@found" =~ s/^ *$//r, '', 'a healthy database that is in use has no faults');
ok($load->pumpable, 'sessions still insert rows');
$load->signal('TERM');
$load->finish;
is($said =~ s/^(pgbench \(|tps|.*interrupted).*\n//gmr, '', '... without an error');

# --- standbys ----------------------------------------------------------------------------

$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_conninfo = '" . $node->connstr . " application_name=s3'");
$standby->start;
$node->wait_for_catchup('s3');
is($standby->safe_psql($database, "SELECT * $check"), '', 'a standby can be checked');

sub standbys
{
	my ($names) = @_;

	$node->append_conf('postgresql.conf', "synchronous_standby_names = '$names'");
	$node->reload;
	ok(wait_for(sub { value('SHOW synchronous_standby_names') eq $names }), "synchronous_standby_names = $names");
	return;
}
standbys('FIRST 1 ("s-1", S3)');
is(value("SELECT severity, object, problem $check"),
	'warning|synchronous_standby_names|It names standbys that are not streaming: s-1. Others suffice for now.', 'a missing standby of two is a warning');
standbys('ANY 1 (*)');
healthy('any standby may be meant');
$standby->stop;
ok(wait_for(sub { value('SELECT count(*) FROM pg_stat_replication') eq '0' }), 'the standby has gone');
is(value("SELECT severity, problem, remedy $check"), q{error|It is 'ANY 1 (*)', but none of these standbys is streaming, so commits and next_id() wait. }
	  . q{Repair a standby; or else, unless Patroni or CloudNativePG manages this setting, continue without one: then a failover can lose commits and repeat IDs.|}
	  . q{ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf();}, 'no standby at all is an error');
$standby->start;
ok(wait_for(sub { value('SELECT count(*) FROM pg_stat_replication WHERE state = $$streaming$$') eq '1' }), 'the standby has come back');
standbys('s1');
is(value("${as_reader}SELECT severity, problem, remedy $check"),
	'note|reader may not see which standbys are streaming.|GRANT pg_read_all_stats TO reader;', 'a role that may not see standbys gets a note');
my ($problem, $remedy) = split /\|/, value("SELECT problem, remedy $check");
is($problem, q{It is 's1', but none of these standbys is streaming, so commits and next_id() wait. }
	  . 'Repair s1; or else, unless Patroni or CloudNativePG manages this setting, name the standbys that are streaming.', 'a standby that does not stream is named, ...');
is($remedy, q{ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 ("s3")'; SELECT pg_reload_conf();}, '... and one that does');
$node->psql($database, $remedy);
ok(wait_for(sub { value("SELECT count(*) $check") eq '0' }), '... and then nothing is wrong');
value(q{ALTER SYSTEM SET synchronous_standby_names = ''});
$node->reload;
$standby->stop;

# --- a subscription that stops at an ID that exists ---------------------------------------------

new_database('sender', 8);
value('CREATE TABLE public.sent (id bigint PRIMARY KEY); CREATE PUBLICATION everything FOR ALL TABLES; SELECT pg_create_logical_replication_slot($$s1$$, $$pgoutput$$)');
new_database('receiver', 6);
value('CREATE TABLE public.sent (id bigint PRIMARY KEY); INSERT INTO public.sent VALUES (1); CREATE SUBSCRIPTION s1 CONNECTION '
	  . q{'} . $node->connstr('sender') =~ s/'/''/gr . q{' PUBLICATION everything WITH (create_slot = false, copy_data = false)});
healthy('a subscription that runs is no problem');
$node->safe_psql('sender', 'INSERT INTO public.sent VALUES (1)');
my $stopped = qr/^warning\|subscription s1\|It is not running, and has had \d+ errors\.\|The server log .*"IDs came twice" in/;
ok(wait_for(sub { value("SELECT * $check") =~ $stopped }), 'one that stops with an error is a warning');
is($node->safe_psql('sender', "SELECT * $check"), '', '... in its own database');
value('DELETE FROM public.sent');
ok(wait_for(sub { value('SELECT count(*) FROM public.sent') eq '1' }), '... until it runs again');
healthy('... and then it is none');
value('ALTER SUBSCRIPTION s1 DISABLE');

# --- many tables ---------------------------------------------------------------------------

new_database('many', 7);
value(q{DO $$ BEGIN FOR n IN 1 .. 300 LOOP
	IF n % 3 = 0 THEN
		EXECUTE format('CREATE TABLE public.t%s (id bigint PRIMARY KEY DEFAULT "Id''s".next_id())', n);
	ELSE
		EXECUTE format('CREATE SEQUENCE public.s%s', n);
		PERFORM "Id's".snowflake_alter_sequence(format('public.s%s', n)::regclass);
		EXECUTE format('CREATE TABLE public.t%s (id bigint PRIMARY KEY DEFAULT "Id''s".next_id("Id''s".snowflake_shard(), ''public.s%s''))', n, n);
	END IF;
	EXECUTE format('INSERT INTO public.t%s DEFAULT VALUES', n);
	END LOOP; END $$});
$check = 'FROM "The Admin".snowflake_check()';
my ($time) = value("SELECT * $check;\n\\timing on\nSELECT * $check;") =~ /Time: ([\d.]+) ms/;
healthy('a database of 300 tables is healthy');
note("to check a database of 300 tables took $time ms");

# --- a renumbering that needs an index -------------------------------------------------------

new_database('without index', 11);
fault('the rows that refer to a future-dated ID have no index', q{
		CREATE TABLE public.photos (id bigint PRIMARY KEY DEFAULT "Id's".next_id());
		CREATE TABLE public.notes (photo bigint REFERENCES public.photos);
		INSERT INTO public.photos VALUES ("Id's".snowflake_id(clock_timestamp() + interval '1 day', 5, 1));
		INSERT INTO public.notes SELECT id FROM public.photos},
	'warning', 'table public.photos', qr/^Future-dated IDs of shard 5, while new rows get those of shard 11: 1, /,
	q{CREATE INDEX CONCURRENTLY ON public.notes (photo); CALL "The Admin".snowflake_renumber('public.photos', 5, since => now() + interval '1 s')});

$node->stop;
done_testing();
