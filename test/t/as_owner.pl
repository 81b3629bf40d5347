# What a table's owner made runs with the owner's rights when snowflake_admin lets a
# command run as the owner: triggers, CHECK constraints, index expressions, defaults and
# policies.  None of it gets at the caller, who is a superuser, in the command or after.

use SnowflakeTest;

my $node = server_in_utc('as_owner');

sub value { return $node->sql(@_) }

# The SQLSTATE and the message of an error, or "no error"
sub refused
{
	my ($sql, $role) = @_;
	my (undef, undef, $said) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql",
		extra_params => [ '-U', $role // 'postgres' ]);
	return $said =~ /ERROR:  (.*)/ ? $1 : 'no error';
}

value(q{
	CREATE FUNCTION as_owner(owner_of regclass, command text) RETURNS SETOF record
	AS '$libdir/snowflake', 'snowflake_as_owner' LANGUAGE C;
	CREATE FUNCTION as_owner(owner_of regclass, command text, VARIADIC "any") RETURNS SETOF record
	AS '$libdir/snowflake', 'snowflake_as_owner' LANGUAGE C;
	CREATE FUNCTION do_as_owner(owner_of regclass, command text) RETURNS bigint
	AS '$libdir/snowflake', 'snowflake_do_as_owner' LANGUAGE C;
	CREATE FUNCTION do_as_owner(owner_of regclass, command text, VARIADIC "any") RETURNS bigint
	AS '$libdir/snowflake', 'snowflake_do_as_owner' LANGUAGE C;

	CREATE ROLE mallory LOGIN;
	CREATE ROLE member LOGIN IN ROLE mallory;
	CREATE ROLE stranger LOGIN;
	CREATE SCHEMA hostile AUTHORIZATION mallory;
	GRANT USAGE ON SCHEMA hostile TO PUBLIC;

	-- What ran, what it tried, as whom, and what came of it.  Everybody can write here.
	CREATE TABLE seen (place text, attempt text, result text, who name);
	GRANT SELECT, INSERT ON seen TO PUBLIC});

# Each piece of mallory's code tries all that would lead to the caller's rights.
value(q{
	SET SESSION AUTHORIZATION mallory;
	SET search_path = hostile, public;
	CREATE TABLE later (n int);
	CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO public.seen VALUES ('deferred trigger', '', '', current_user);
		RETURN NULL;
	END $$;
	CREATE CONSTRAINT TRIGGER later AFTER INSERT ON later DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION later();
	CREATE FUNCTION attack(place text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		attempt text;
		result text;
	BEGIN
		FOREACH attempt IN ARRAY ARRAY[
			'RESET ROLE', 'SET ROLE postgres', 'SET SESSION AUTHORIZATION DEFAULT',
			'COPY (SELECT) TO PROGRAM ''true''', 'SET session_replication_role = replica',
			'CREATE TEMP TABLE of_' || left(md5(place || clock_timestamp()), 8) || ' (n int)',
			'INSERT INTO hostile.later VALUES (1)', 'DECLARE held CURSOR WITH HOLD FOR SELECT 1',
			'SET search_path = hostile', 'SET my.setting = ''set''']
		LOOP
			BEGIN
				EXECUTE attempt;
				result := 'done';
			EXCEPTION WHEN others THEN
				result := SQLSTATE || ' ' || SQLERRM;
			END;
			INSERT INTO public.seen VALUES (place, left(attempt, 20), result, current_user);
		END LOOP;
	END $$;
	CREATE FUNCTION volatile(place text, n int) RETURNS int LANGUAGE plpgsql
	AS $$ BEGIN PERFORM hostile.attack(place); RETURN n; END $$;
	CREATE FUNCTION immutable(place text, n int) RETURNS int IMMUTABLE LANGUAGE plpgsql
	AS $$ BEGIN PERFORM hostile.attack(place); RETURN n; END $$;
	CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM hostile.attack('trigger');
		RETURN NEW;
	END $$;
	CREATE TABLE t (id int, n int DEFAULT volatile('default', 1) CHECK (volatile('check', n) > 0));
	CREATE INDEX ON t ((immutable('index', n)));
	CREATE INDEX ON t ((n + immutable('constant', 5)));
	CREATE TRIGGER t BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION on_row();
	CREATE POLICY t ON t USING (volatile('policy', 1) = 1);
	ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	CREATE TABLE own (id int, n int);
	CREATE TABLE target (id int PRIMARY KEY);
	INSERT INTO target VALUES (1);
	CREATE TRIGGER own BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION on_row()});

# What ran during commands, and whether it could do any harm
sub harmless
{
	my ($what, $places, $commands) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	value('TRUNCATE seen');
	my $after = (split /\n/, value(qq{
		$commands;
		SELECT concat_ws(', ', 'current_user ' || current_user, 'session_user ' || session_user,
			'search_path ' || current_setting('search_path'), 'session_replication_role ' ||
			current_setting('session_replication_role'), 'my.setting ' || nullif(current_setting('my.setting', true), ''))}))[-1];
	is(value(q{SELECT string_agg(DISTINCT place, ' ' ORDER BY place) FROM seen}), $places, "$what: the owner's code runs");
	is(value(q{SELECT string_agg(DISTINCT who, ' ') FROM seen}), 'mallory', '... as the owner');
	is(value(q{SELECT string_agg(DISTINCT attempt, ', ' ORDER BY attempt) FROM seen
			WHERE result = 'done' AND attempt NOT LIKE 'SET %'}), '', '... does nothing but set something');
	is(value(q{SELECT string_agg(DISTINCT attempt, ', ' ORDER BY attempt) FROM seen WHERE result = 'done'}),
		'SET my.setting = \'se, SET search_path = ho', '... that every role may set');
	is($after, 'current_user postgres, session_user postgres, search_path "$user", public, session_replication_role origin',
		'... and after the command, the caller has his settings again');
}

harmless('INSERT', 'check constant default index policy trigger',
	q{SELECT do_as_owner('hostile.t', 'INSERT INTO hostile.t (id) VALUES (1), (2)')});
harmless('UPDATE', 'check constant index policy trigger',
	q{SELECT do_as_owner('hostile.t', 'UPDATE hostile.t SET n = n + $1 WHERE id = $2', 1, 2)});
harmless('SELECT', 'constant policy',
	q{SELECT * FROM as_owner('hostile.t', 'SELECT id, n FROM hostile.t ORDER BY id') AS (id int, n int)});
harmless('ALTER TABLE', 'constant default index',
	q{SELECT do_as_owner('hostile.t', 'ALTER TABLE hostile.t ADD more int DEFAULT hostile.volatile(''default'', 3)')});
harmless('ANALYZE', 'constant index', q{SELECT do_as_owner('hostile.t', 'ANALYZE hostile.t')});

# An error leaves the caller as it was, too.
harmless('an error', 'check constant default index policy trigger', q{
	DO $$
	BEGIN
		PERFORM do_as_owner('hostile.t', 'INSERT INTO hostile.t (id, n) VALUES (3, 7)');
		BEGIN
			PERFORM do_as_owner('hostile.t', 'INSERT INTO hostile.t (id, n) VALUES (3, 1 / 0)');
		EXCEPTION WHEN division_by_zero THEN
			INSERT INTO public.seen VALUES ('check', 'caught', '', CASE current_user WHEN 'postgres' THEN 'mallory' END);
		END;
	END $$});
is(value(q{SELECT count(*) FROM seen WHERE attempt = 'caught' AND who = 'mallory'}), '1',
	'... and whoever catches it is the caller');

# --- cursors ----------------------------------------------------------------

# PL/Perl and PL/Python keep a cursor of a function that has ended, and the rest of its query
# would run as the caller when a procedure of the caller's commits.
value(q{
	SET SESSION AUTHORIZATION mallory;
	CREATE TABLE hostile.opens (n int);
	CREATE FUNCTION hostile.opens() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE
		c refcursor;
	BEGIN
		OPEN c FOR SELECT 1;
		RETURN NEW;
	END $$;
	CREATE TRIGGER opens BEFORE INSERT ON hostile.opens FOR EACH ROW EXECUTE FUNCTION hostile.opens()});
my $insert = q{SELECT do_as_owner('hostile.opens', 'INSERT INTO hostile.opens VALUES (1)')};
is(refused($insert), '55000: code of a table left cursor "<unnamed portal 1>" open', 'a cursor that stays open is refused');
is(value('SELECT count(*) FROM hostile.opens'), '0', '... and nothing is done');
is(value(qq{BEGIN; DECLARE ours CURSOR FOR SELECT 'ours'; SELECT do_as_owner('hostile.opens', 'ANALYZE hostile.opens');
		FETCH ours}), "0\nours", 'a cursor of the caller may be open');

# Code that puts its own cursor in the place of the caller's would have the caller run its query.
# Those of drivers are closed and opened by their names in the same way.
value(q{
	SET SESSION AUTHORIZATION mallory;
	CREATE FUNCTION hostile.evil() RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO public.seen VALUES ('cursor', '', '', current_user);
		RETURN 'evil';
	END $$;
	CREATE TABLE hostile.replaces (n int);
	CREATE FUNCTION hostile.replaces() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE
		c refcursor := 'ours';
	BEGIN
		CLOSE c;
		OPEN c FOR SELECT hostile.evil();
		RETURN NEW;
	END $$;
	CREATE TRIGGER replaces BEFORE INSERT ON hostile.replaces FOR EACH ROW EXECUTE FUNCTION hostile.replaces()});
value('TRUNCATE seen');
my $replace = q{SELECT do_as_owner('hostile.replaces', 'INSERT INTO hostile.replaces VALUES (1)')};
is(refused("BEGIN; DECLARE ours CURSOR FOR SELECT 'ours'; $replace; FETCH ours; COMMIT"),
	'24000: cannot drop pinned portal "ours"', "a cursor of the caller's cannot be replaced");
is(refused("BEGIN; DECLARE ours CURSOR WITH HOLD FOR SELECT 'ours'; COMMIT; $replace; FETCH ours"),
	'24000: cannot drop pinned portal "ours"', '... nor one that is held');
is(value('SELECT count(*) FROM seen'), '0', '... so its query does not run');
is(value(qq{BEGIN; DECLARE ours CURSOR FOR SELECT 'ours'; SAVEPOINT s;
		DO \$\$ BEGIN PERFORM do_as_owner('hostile.replaces', 'INSERT INTO hostile.replaces VALUES (1)');
		EXCEPTION WHEN invalid_cursor_state THEN NULL; END \$\$; FETCH ours; CLOSE ours; SELECT count(*) FROM pg_cursors}),
	"ours\n0", '... and after the error the caller closes it');
is(value(qq{BEGIN; DECLARE ours CURSOR FOR SELECT 'ours'; SELECT do_as_owner('hostile.own', 'ANALYZE hostile.own');
		CLOSE ours; SELECT count(*) FROM pg_cursors}), "0\n0", '... as after a command without one');

# --- who may ----------------------------------------------------------------

is(refused(q{SELECT do_as_owner('hostile.own', 'DELETE FROM hostile.own')}, 'stranger'),
	'42501: must be able to SET ROLE "mallory"', 'a stranger is refused');
is(refused(q{SELECT * FROM as_owner('hostile.own', 'SELECT 1') AS (n int)}, 'stranger'),
	'42501: must be able to SET ROLE "mallory"', '... what returns rows, too');
is(refused(q{SELECT do_as_owner('seen', 'DELETE FROM seen')}, 'mallory'),
	'42501: must be able to SET ROLE "postgres"', "the owner is refused a superuser's table");

value('TRUNCATE seen');
is(refused(q{SELECT do_as_owner('hostile.own', 'INSERT INTO hostile.own VALUES (1)')}, 'member'), 'no error', 'a member may');
is(value(q{SELECT string_agg(DISTINCT who, ' ') FROM seen}), 'mallory', "... and the owner's code has the owner's rights");
is(value(q{SELECT count(*) FROM seen WHERE attempt ~ '^(RESET|SET ROLE|SET SESS|CREATE|DECLARE|COPY)' AND result = 'done'}),
	'0', '... and can do no more');

value('TRUNCATE seen');
value(q{BEGIN; SELECT do_as_owner('hostile.own', 'INSERT INTO hostile.own VALUES (2)'); COMMIT},
	extra_params => [ '-U', 'mallory' ]);
is(value(q{SELECT string_agg(DISTINCT attempt, ', ' ORDER BY attempt) FROM seen WHERE result = 'done'}),
	q{CREATE TEMP TABLE of, DECLARE held CURSOR , INSERT INTO hostile., SET my.setting = 'se, SET search_path = ho},
	'what the owner runs is not restricted');
is(value(q{SELECT count(*) FROM seen WHERE place = 'deferred trigger'}), '1', '... so deferred triggers run');

value('TRUNCATE seen');
value(q{SET ROLE mallory; SELECT do_as_owner('hostile.own', 'INSERT INTO hostile.own VALUES (3)')});
is(value(q{SELECT string_agg(DISTINCT who, ' ') FROM seen WHERE place = 'trigger'}), 'mallory',
	'a superuser that has SET ROLE does not get its role back from the code');

# A foreign key is a trigger, too.
value(q{
	SET SESSION AUTHORIZATION mallory;
	SET search_path = hostile;
	CREATE TABLE referring (target int REFERENCES target ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED);
	INSERT INTO referring VALUES (1)});
my $change = q{SELECT do_as_owner('hostile.own', 'UPDATE hostile.target SET id = 3 - id')};
is(refused($change), '42501: cannot fire deferred trigger within security-restricted operation', 'deferred foreign keys are refused');
is(value(qq{BEGIN; SET CONSTRAINTS ALL IMMEDIATE; $change; COMMIT; SELECT target FROM hostile.referring}), "1\n2",
	'... unless they are made immediate before');
value('DROP TABLE hostile.referring; UPDATE hostile.target SET id = 1');

# --- what it runs -----------------------------------------------------------

is(value(q{SELECT * FROM as_owner('hostile.own', 'SELECT $1 || $2::text, $3, current_user', 'a'::text, 5, NULL::date)
	AS (a text, b date, c name)}), 'a5||mallory', 'parameters have the types of the arguments');
is(value(q{SELECT * FROM as_owner('hostile.own', 'SELECT $1 + $2', VARIADIC ARRAY[3, 4]) AS (n int)}), '7',
	'... also those of an array');
is(value(q{SELECT count(*) FROM as_owner('hostile.own', 'SELECT 1 WHERE false') AS (n int)}), '0', 'there may be no rows');
is(value(q{SELECT * FROM as_owner('hostile.own', 'INSERT INTO hostile.target VALUES ($1), ($2) RETURNING id', 2, 3) AS (id int)}),
	"2\n3", 'a command with RETURNING returns rows');
is(value(q{SELECT do_as_owner('hostile.own', 'UPDATE hostile.target SET id = id + 10 RETURNING id')}), '3',
	'others return the number of rows');
is(value(q{SELECT do_as_owner('hostile.own', 'SELECT FROM hostile.target')}), '3', '... a query, too');
is(value(q{SELECT do_as_owner('hostile.own', 'ALTER TABLE hostile.target ADD n int')}), '0', '... which is 0 for those without');
value(q{SET search_path = hostile; SELECT public.do_as_owner('own', 'CREATE TABLE made (n int)')});
is(value(q{SELECT relowner::regrole FROM pg_class WHERE oid = 'hostile.made'::regclass}), 'mallory',
	'what it makes is the owner\'s, in the search_path of the caller');
is(value(q{DO $$
	BEGIN
		PERFORM do_as_owner('hostile.own', 'INSERT INTO hostile.made VALUES (1)');
		PERFORM 1 FROM hostile.made;
		IF NOT FOUND OR NOT EXISTS (SELECT FROM as_owner('hostile.own', 'SELECT n FROM hostile.made') AS (n int)) THEN
			RAISE 'not seen';
		END IF;
	END $$; SELECT 'seen'}), 'seen', 'each sees what was done before');

my $fit = '42804: rows of the command do not fit the column definition list';
is(refused(q{SELECT * FROM as_owner('hostile.own', 'SELECT 1') AS (n bigint)}), $fit, 'a column of another type is refused');
is(refused(q{SELECT * FROM as_owner('hostile.own', 'SELECT 1, 2') AS (n int)}), $fit, '... a column too many');
is(refused(q{SELECT * FROM as_owner('hostile.own', 'SELECT 1') AS (n int, m int)}), $fit, '... a column too few');
is(refused(q{SELECT as_owner('hostile.own', 'SELECT 1')}),
	'42601: a column definition list is needed for the rows of a command', '... no column definition list');
is(refused(q{SELECT * FROM as_owner('hostile.own', 'DELETE FROM hostile.own') AS (n int)}),
	'42601: DELETE query does not return tuples', '... no rows');
is(value('SELECT count(*) FROM hostile.own'), '3', '... before anything is done');
is(refused(q{SELECT do_as_owner('hostile.own', 'SELECT $1', 'x')}), '42P18: parameter $1 has no type', 'a literal without a type is refused');
is(refused(q{SELECT do_as_owner('hostile.own', 'SELECT $1', 5, NULL)}), '42P18: parameter $2 has no type', '... NULL, too');
is(refused(q{SELECT do_as_owner('hostile.own', NULL)}), '22004: command must not be null', 'NULL is refused as the command');
is(refused(q{SELECT do_as_owner(NULL, 'SELECT 1')}), '22004: owner_of must not be null', '... as the relation');
is(refused(q{SELECT do_as_owner('hostile.own', 'SELECT 1', VARIADIC NULL::int[])}),
	'22004: the array of parameters must not be null', '... as the array');
is(refused(q{SELECT do_as_owner(1::regclass, 'SELECT 1')}), '42P01: relation with OID 1 does not exist', 'a relation that is not there is refused');
is(refused(q{SELECT do_as_owner('hostile.own', 'ROLLBACK')}),
	'0A000: cannot run "ROLLBACK" as the owner of a table', 'the end of the transaction is refused');
is(refused(q{SELECT do_as_owner('hostile.own', 'COPY hostile.own TO STDOUT')}),
	'0A000: cannot run "COPY hostile.own TO STDOUT" as the owner of a table', 'COPY to the client is refused');

done_testing();
