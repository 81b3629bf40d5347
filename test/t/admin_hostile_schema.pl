# What the owner of a database, who owns the schema of the commands, and may have created the
# extension, puts in the way of a superuser who calls them: he renames the schema, creates
# functions of the same names, or drops the extension.  None of his functions runs.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('hostile_schema');
value('postgres', 'CREATE ROLE boss LOGIN');
my $ids = q{INSERT INTO app.%s SELECT public.next_id(5), n FROM generate_series(1, 20) AS n};

# A database of boss, in which he has created the extension if told so
sub new_database
{
	my ($name, $creator) = @_;

	value('postgres', "CREATE DATABASE $name OWNER boss");
	value($name, sprintf q{SET SESSION AUTHORIZATION %s; CREATE EXTENSION snowflake_admin CASCADE}, $creator);
	value($name, 'CREATE SCHEMA app AUTHORIZATION app; GRANT USAGE ON SCHEMA app TO boss');
	return $name;
}

# Boss gives the schema another name, and puts one with a function of each of its functions in its
# place: with the types of the extension, and with types of his own.
my $rename = <<'EOS';
ALTER SCHEMA public RENAME TO pub;
CREATE SCHEMA public;
GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE DOMAIN public.snowflake_layout AS text;
SET LOCAL search_path = pg_catalog;
SET LOCAL check_function_bodies = off;
SELECT DISTINCT format('CREATE %s public.%I(%s) %s LANGUAGE plpgsql AS %L', kind, proname, arguments,
	'RETURNS ' || pg_get_function_result(p.oid), format('BEGIN RAISE ''%s of boss runs as %%'', current_user; END', proname))
FROM pg_proc AS p, pg_get_function_arguments(p.oid) AS own,
	unnest(ARRAY[own, replace(own, 'pub.snowflake_layout', 'public.snowflake_layout')]) AS arguments,
	substring('FUNCTION PROCEDURE' FROM CASE prokind WHEN 'p' THEN 'P.*' ELSE '^F\w*' END) AS kind
WHERE pronamespace = 'pub'::regnamespace AND prokind IN ('f', 'p')
	AND NOT EXISTS (SELECT FROM pg_type AS t
		WHERE (t.oid = ANY (proargtypes) OR t.oid = prorettype) AND typtype = 'p' AND typname NOT IN ('void', 'record')) \gexec
EOS

# A session of boss that is about to rename the schema
sub renaming
{
	my ($database) = @_;
	my $boss = $node->background_psql($database, extra_params => [ '-U', 'boss' ]);

	$boss->query_safe("BEGIN;\n$rename");
	return $boss;
}

# Whether a session waits for a lock
sub waits
{
	my ($session) = @_;
	return $node->poll_query_until('postgres',
		"SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $session->{backend} AND NOT granted)");
}

# The command has ended without an error.
sub ends_well
{
	my ($caller, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	session_prints($caller, qr/^done/m);
	is(join(', ', $caller->{stderr} =~ /(?:ERROR|FATAL): .*/g), '', $name);
	$caller->quit;
	return;
}

# --- a schema that is renamed while a command runs --------------------------

# The table is locked until the schema has another name.
{
	my $database = new_database('partitioned', 'postgres');
	value($database, 'CREATE TABLE app.t (id bigint PRIMARY KEY DEFAULT public.next_id(5), n int);' . sprintf $ids, 't');
	my $reader = $node->background_psql($database);
	my $boss = renaming($database);
	my $caller = session($node, $database);

	$reader->query_safe('BEGIN; SELECT FROM app.t');
	send_sql($caller, q{CALL public.snowflake_partition('app.t', 'hour', tries => 1000); SELECT 'done'});
	waits($caller) or die 'does not wait';
	$boss->query_safe('COMMIT');
	$reader->query_safe('COMMIT');
	ends_well($caller, 'snowflake_partition() calls functions of the extension after the schema was renamed');
	holds($database, '... and has created the partitions' => q{count(*) > 40 FROM pg_inherits WHERE inhparent = 'app.t'::regclass});
	$_->quit foreach $reader, $boss;
}

# A row is locked until the schema has another name.
{
	my $database = new_database('renumbered', 'postgres');
	value($database, 'CREATE TABLE app.t (id bigint PRIMARY KEY, n int);' . sprintf $ids, 't');
	my $holder = $node->background_psql($database);
	my $caller = session($node, $database);

	$holder->query_safe('BEGIN; SELECT FROM app.t WHERE n = 20 FOR UPDATE');
	send_sql($caller,
		q{CALL public.snowflake_renumber('app.t', 5, 6, layout => 'instagram', batch => 3, tries => 1000); SELECT 'done'});
	$node->poll_query_until($database, q{SELECT count(*) = 19 FROM app.t_renumbered}) or die 'does not renumber';
	value($database, "SET SESSION AUTHORIZATION boss; BEGIN;\n$rename\nCOMMIT");
	$holder->query_safe('COMMIT');
	ends_well($caller, 'snowflake_renumber() goes on with functions of the extension after the schema was renamed');
	holds($database, '... and has changed all rows' => q{bool_and(pub.snowflake_shard(id) = 6) FROM app.t});
	$holder->quit;
}

# The sequence is locked until the schema has another name.
{
	my $database = new_database('moved', 'postgres');
	value($database, q{
		CREATE TABLE app.t (id bigserial PRIMARY KEY);
		SELECT setval('app.t_id_seq', 2000000000000)});
	my $holder = $node->background_psql($database);
	my $boss = renaming($database);
	my $caller = session($node, $database);

	$holder->query_safe(q{BEGIN; SELECT nextval('app.t_id_seq')});
	send_sql($caller, q{CALL public.snowflake_move('app.t', 5, own_sequence => true, tries => 1000); SELECT 'done'});
	waits($caller) or die 'does not wait';
	$boss->query_safe('COMMIT');
	$holder->query_safe('COMMIT');
	ends_well($caller, 'snowflake_move() finds functions of the extension after the schema was renamed');
	holds($database, '... and the default is one of them' => q{pg_get_expr(adbin, 0) ~ '^pub.next_id' FROM pg_attrdef});
	$_->quit foreach $holder, $boss;
}

# --- a schema that was renamed before ---------------------------------------

{
	my $database = new_database('renamed', 'postgres');
	value($database, q{
		CREATE TABLE app.ahead (id bigint PRIMARY KEY DEFAULT public.next_id(5), n int);
		CREATE TABLE app.parts (id bigint PRIMARY KEY DEFAULT public.next_id(5)) PARTITION BY RANGE (id);
		CREATE TABLE app.serials (id bigserial PRIMARY KEY, n int);
		CREATE TABLE app.small (id serial PRIMARY KEY, n text);
		INSERT INTO app.small (n) SELECT repeat('x', 700) FROM generate_series(1, 14000);
		CREATE TABLE app.given (id bigint PRIMARY KEY, n int);
		} . sprintf($ids, 'given') . ';' . setval_ahead('next_id_seq', '1 hour'));
	value($database, "SET SESSION AUTHORIZATION boss; BEGIN;\n$rename\nCOMMIT");

	# The schema is in no search_path, so what is found by a name is boss's.
	foreach my $call (
		'SELECT * FROM pub.snowflake_check()', 'SELECT * FROM pub.snowflake_keys()', 'SELECT * FROM pub.snowflake_uses()',
		q{CALL pub.snowflake_make_partitions('app.parts')}, q{SELECT * FROM pub.snowflake_partitions('app.parts')},
		q{CALL pub.snowflake_drop_partitions('app.parts', '1 day')},
		q{CALL pub.snowflake_partition('app.given', 'day')}, q{CALL pub.snowflake_widen('app.small', 'id')},
		q{SELECT * FROM pub.snowflake_widen_indexes('app.small', 'id')}, q{CALL pub.snowflake_move('app.serials', 5)},
		q{CALL pub.snowflake_move('app.serials', 6, own_sequence => true)},
		q{CALL pub.snowflake_partition('app.serials', 'day')}, q{CALL pub.snowflake_move_back('app.serials')},
		q{CALL pub.snowflake_move_schema('app', 5)}, q{CALL pub.snowflake_move_back_schema('app')},
		q{CALL pub.snowflake_renumber('app.given', 5, 6, layout => 'instagram')},
		q{CALL pub.snowflake_renumber_schema('app', 5, 6)}, q{CALL pub.snowflake_set_back('pub.next_id_seq')})
	{
		my (undef, $rows, $said) = $node->psql($database, $call);
		unlike("$rows$said", qr/of boss runs|\bpublic\./, "finds no function in the schema's former place: $call");
	}
	like(value($database, 'SELECT remedy FROM pub.snowflake_check()'), qr/^CALL pub\.snowflake_/m,
		'remedies name the schema as it is now');
}

# --- an extension that is dropped while a command runs ----------------------

# Who keeps an extension from being dropped
my $locks = q{SELECT count(*) FROM pg_locks WHERE locktype = 'object' AND classid = 'pg_extension'::regclass};

# A session of boss, who has created the extension, does not get to drop it.
sub cannot_drop
{
	my ($database, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	like(run_psql($database, q{SET SESSION AUTHORIZATION boss; SET lock_timeout = '300ms'; DROP EXTENSION snowflake_admin}),
		qr/ERROR:  55P03/, $name);
	return;
}

my $owned = new_database('dropped', 'boss');
value($owned, q{
	CREATE TABLE app.given (id bigint PRIMARY KEY, n int);
	CREATE TABLE app.parts (id bigint PRIMARY KEY DEFAULT public.next_id(5)) PARTITION BY RANGE (id);
	CREATE TABLE app.serials (id bigserial PRIMARY KEY)} . '; ' . sprintf $ids, 'given');
{
	my $holder = $node->background_psql($owned);
	my $caller = session($node, $owned);

	$holder->query_safe('BEGIN; SELECT FROM app.given WHERE n = 20 FOR UPDATE');
	send_sql($caller,
		q{CALL public.snowflake_renumber('app.given', 5, 6, layout => 'instagram', tries => 1000); SELECT 'done'});
	$node->poll_query_until($owned, q{SELECT count(*) = 19 FROM app.given_renumbered}) or die 'does not renumber';
	cannot_drop($owned, 'the extension cannot be dropped between the transactions of a command');
	$holder->query_safe('COMMIT');
	ends_well($caller, '... which goes on');
	is(value('postgres', $locks), 0, '... and then no longer keeps the extension');
	$holder->quit;
}
foreach my $statement (
	'SELECT count(*) FROM snowflake_check()', 'SELECT count(*) FROM snowflake_keys()', 'SELECT count(*) FROM snowflake_uses()',
	q{SELECT count(*) FROM snowflake_partitions('app.parts')}, q{CALL snowflake_move('app.serials', 5, dry_run => true)},
	q{CALL snowflake_move_back('app.serials')})
{
	my $caller = $node->background_psql($owned);
	$caller->query_safe("SET client_min_messages = warning; BEGIN; $statement");
	cannot_drop($owned, "nor while one transaction calls it: $statement");
	$caller->quit;
}

# A session that stays connected keeps nothing, whatever becomes of a command.
{
	value($owned, q{
		CREATE TABLE app.log (n int);
		CREATE FUNCTION app.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'at COMMIT'; END $$;
		CREATE CONSTRAINT TRIGGER t AFTER INSERT ON app.log DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.fail();
		CREATE FUNCTION app.note() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF current_setting('test.fail', true) = 'on' THEN
				INSERT INTO app.log VALUES (1);
			END IF;
		END $$;
		CREATE EVENT TRIGGER note ON ddl_command_end EXECUTE FUNCTION app.note()});
	my $make = q{CALL snowflake_make_partitions('app.parts', ahead => '0', unit => 'year')};
	my $session = session($node, $owned);
	my $leaves_nothing = sub {
		my ($sql, $expected, $name) = @_;
		my $setup = $sql =~ s/^(SET .*?;)//s ? $1 : 'SELECT 1';

		$session->query($setup);
		$session->{stderr} = '';
		$session->query($sql);
		like($session->{stderr}, $expected, "$name: ends as expected");
		$session->query('ROLLBACK; RESET ALL');
		is($session->query($locks), 0, '... and keeps nothing'); };

	$leaves_nothing->("SET test.fail = 'on'; $make", qr/ERROR:  at COMMIT/, 'an error in the last COMMIT');
	$leaves_nothing->($make, qr/^(?!.*ERROR)/s, 'success');
	$leaves_nothing->("DO \$\$ BEGIN $make; CALL snowflake_partition('app.parts', 'year'); END \$\$",
		qr/ERROR:  table app.parts is partitioned already/, 'an error in the second of two commands');
	$leaves_nothing->("DO \$\$ BEGIN $make; $make; END \$\$", qr/^(?!.*ERROR)/s, 'two commands');
	$leaves_nothing->("CALL snowflake_renumber('app.parts', NULL)", qr/ERROR:  shard must not be null/, 'an error');
	$leaves_nothing->("BEGIN; $make", qr/ERROR:  .* cannot run inside a transaction block/, 'a transaction block');
	$leaves_nothing->("DO \$\$ BEGIN BEGIN $make; EXCEPTION WHEN OTHERS THEN RAISE WARNING '%', SQLERRM; END; END \$\$",
		qr/WARNING:  .*(?:inside a transaction block|subtransaction is active)/, 'an error that the caller catches');
	my $holder = $node->background_psql($owned);
	$holder->query_safe('BEGIN; LOCK TABLE app.given');
	$leaves_nothing->(q{SET statement_timeout = '500ms'; CALL snowflake_renumber('app.given', 6, 7, layout => 'instagram')},
		qr/ERROR:  canceling statement due to statement timeout/, 'a cancel');
	$holder->quit;
	$leaves_nothing->(q{CALL snowflake_partition('app.serials', 'day')}, qr/NOTICE:  table app.serials is partitioned/,
		'a command that calls another one')
	  if value($owned, q{CALL snowflake_move('app.serials', 5); SELECT true});
	$session->quit;
	like(run_psql($owned, q{SELECT snowflake_admin.do_as_owner('app.given', 'SELECT snowflake_admin.release_extension()')}),
		qr/ERROR:  42501/, 'the code of a table cannot release what its caller keeps')
	  if value($owned, 'ALTER TABLE app.given OWNER TO app; SELECT true');
}

# The extension is dropped just when a command begins: nothing that has its functions' names runs.
{
	my $boss = $node->background_psql($owned, extra_params => [ '-U', 'boss' ]);
	my $caller = session($node, $owned);

	$boss->query_safe(q{
		BEGIN;
		DROP EXTENSION snowflake_admin;
		CREATE SCHEMA snowflake_admin;
		GRANT USAGE ON SCHEMA snowflake_admin TO PUBLIC;
		CREATE PROCEDURE snowflake_admin.next_transaction() LANGUAGE plpgsql AS
			$$ BEGIN RAISE WARNING 'next_transaction() of boss runs as %', current_user; END $$});
	send_sql($caller, q{CALL public.snowflake_renumber('app.given', 6, 7, layout => 'instagram'); SELECT 'done'});
	waits($caller) or die 'does not wait';
	$boss->query_safe('COMMIT');
	session_prints($caller, qr/^done/m);
	like($caller->{stderr}, qr/ERROR:  extension "snowflake_admin" was dropped by a concurrent transaction/,
		'a command that waits while the extension is dropped ends');
	unlike($caller->{stderr}, qr/of boss/, '... and runs nothing that has a name of its functions');
	is(value('postgres', $locks), 0, '... and keeps nothing');
	$_->quit foreach $boss, $caller;
}

# --- functions beside the commands, and the schema's name -------------------

# Who may create functions beside the commands can make a call ambiguous, or have it call his own.
{
	my $database = new_database('overloaded', 'postgres');
	value($database, q{
		CREATE TABLE app.t (id bigint PRIMARY KEY DEFAULT next_id(5));
		CREATE TABLE app.hidden (id bigserial) PARTITION BY RANGE (id);
		CREATE TABLE app.small (id serial PRIMARY KEY);
		SET SESSION AUTHORIZATION boss;
		CREATE PROCEDURE public.snowflake_make_partitions(regclass, unit text, tries integer) LANGUAGE sql AS '';
		CREATE FUNCTION public.snowflake_keys(integer DEFAULT 1) RETURNS integer LANGUAGE sql AS 'SELECT 1';
		CREATE PROCEDURE public.snowflake_move(text) LANGUAGE sql AS ''});
	succeeds($database, q{CALL snowflake_partition('app.t', 'hour')}, 'overloads of a command make no call of it ambiguous');
	like(value($database, 'SELECT problem FROM snowflake_check()'), qr/^(?!.*It failed)/s, '... nor in the check');
	my $said = join '', map { said($_, $database) } q{CALL public.snowflake_make_partitions('app.hidden')},
	  q{CALL public.snowflake_move('app.small', 5)}, q{CALL public.snowflake_partition('app.t', 'day', dry_run => true)};
	like($said, qr/HINT:  CALL public\.snowflake_move\('app\.hidden'::regclass\) first/,
		'a call that is shown has the types of the command');
	like($said, qr/HINT:  CALL public\.snowflake_widen\('app\.small'::regclass, 'id'::name\) changes/, '... whatever it calls');
	unlike($said, qr/CALL [a-z.]*\w+\('[^']*'[,)]/, '... each of them');
}

# A name that is a format, too
{
	my $lab = '"50%Lab %s"';
	value('postgres', 'CREATE DATABASE lab');
	value('lab', qq{
		CREATE SCHEMA $lab;
		CREATE EXTENSION snowflake SCHEMA $lab;
		CREATE EXTENSION snowflake_admin SCHEMA $lab;
		CREATE TABLE serials (id bigserial PRIMARY KEY);
		CREATE TABLE ids (id bigint PRIMARY KEY DEFAULT $lab.next_id(5), small integer);
		CREATE TABLE parts (id bigint PRIMARY KEY DEFAULT $lab.next_id(5)) PARTITION BY RANGE (id);
		CREATE TABLE hidden (id bigserial) PARTITION BY RANGE (id);
		CREATE TABLE narrow (id integer PRIMARY KEY DEFAULT $lab.next_id(5))});
	unlike(said($_, 'lab'), qr/too few arguments|unrecognized format/, "a schema's name is no format: $_")
	  foreach map { s/snowflake_/$lab.snowflake_/r } q{CALL snowflake_partition('serials', 'day')},
	  q{CALL snowflake_make_partitions('hidden')}, q{CALL snowflake_make_partitions('ids')},
	  q{CALL snowflake_move('narrow')}, q{CALL snowflake_move('serials', 5, own_sequence => true)},
	  q{CALL snowflake_renumber('serials', 5, 6)}, q{CALL snowflake_partition('ids', 'day', dry_run => true)},
	  q{CALL snowflake_move_back('serials')}, q{CALL snowflake_widen('narrow', 'id')};
	my $check = value('lab', "SELECT problem, remedy FROM $lab.snowflake_check()");
	unlike($check, qr/It failed/, '... nor in the check');
	like($check, qr/\|CALL "50%Lab %s"\.snowflake_make_partitions\('public\.parts'::regclass\);/, '... which shows it');
}

is(value('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'boss'}), 'f', 'boss is no superuser');
done_testing();
