# snowflake_widen() on a table whose owner is hostile.  Code of his is in each place of the table
# and of one that refers to it, and tries to become superuser.  A superuser widens it: none of the
# code runs with more rights than the owner's.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('hostile_widen', 'hostile');
my $call = q{CALL snowflake_widen('mine.t', 'id', pause => '0')};
my $indexes = q{SELECT * FROM snowflake_widen_indexes('mine.t', 'id')};
# What has our names
my $left = q{
	SELECT relname FROM pg_class WHERE relname LIKE '%snowflake\_widen%'
	UNION ALL SELECT attname FROM pg_attribute WHERE attname LIKE '%snowflake\_widen%' AND attrelid IN
		(SELECT oid FROM pg_class WHERE relkind = 'r')
	UNION ALL SELECT conname FROM pg_constraint WHERE conname LIKE '%snowflake\_widen%'
	UNION ALL SELECT tgname FROM pg_trigger WHERE tgname LIKE '%snowflake\_widen%'
	UNION ALL SELECT proname FROM pg_proc WHERE proname ~ '^snowflake_widen_\w+_\d+$'
	ORDER BY 1};
my $types = q{SELECT string_agg(atttypid::regtype::text, ' ') FROM pg_attribute
	WHERE attrelid IN ('mine.t'::regclass, 'mine.c'::regclass) AND attname IN ('id', 't')};

value('postgres', q{
	CREATE ROLE mallory LOGIN; CREATE ROLE other LOGIN; CREATE ROLE third;
	-- The attempts need subtransactions, which a parallel operation has not.
	ALTER DATABASE hostile SET max_parallel_maintenance_workers = 0});

# Code of mallory's in each place: it says in "seen" where it ran, and as whom.
sub make_tables
{
	my ($database, $rows) = @_;

	value($database, q{
		DROP SCHEMA IF EXISTS mine, theirs CASCADE;
		DROP TABLE IF EXISTS seen;
		CREATE TABLE seen (place text, who name);
		GRANT SELECT, INSERT ON seen TO PUBLIC;
		CREATE SCHEMA mine;
		GRANT USAGE, CREATE ON SCHEMA mine TO mallory});
	value($database, qq{
		SET client_min_messages = error;
		SET SESSION AUTHORIZATION mallory;
		SET search_path = mine, public;
		-- Harmless while it is created
		CREATE FUNCTION code(place text, n bigint) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN n; END';
		CREATE FUNCTION immutable_code(place text, n bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql
		AS 'BEGIN RETURN mine.code(place, n); END';
		CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql AS \$\$
		BEGIN
			PERFORM mine.code('trigger ' || TG_NAME, 1);
			RETURN coalesce(NEW, OLD);
		END \$\$;
		CREATE DOMAIN d AS integer DEFAULT immutable_code('domain default', 1) CHECK (immutable_code('domain', VALUE) > 0);
		CREATE TABLE t (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text, n d,
			g bigint GENERATED ALWAYS AS (immutable_code('generated', 1)) STORED,
			CHECK (immutable_code('check', id) > 0), CHECK (id + immutable_code('constant in check', 1) > 0),
			CHECK (immutable_code('check of others', 1) > 0));
		CREATE TABLE c (t integer NOT NULL DEFAULT immutable_code('default', 1) REFERENCES t ON UPDATE CASCADE, v text,
			CHECK (immutable_code('check', t) > 0), CHECK (t + immutable_code('constant in check', 1) > 0) NOT VALID);
		INSERT INTO t (v, n) SELECT repeat('x', 1900), 5 FROM generate_series(1, $rows);
		INSERT INTO c SELECT id, 'x' FROM t LIMIT 10;
		CREATE INDEX ON t (immutable_code('index', id));
		CREATE INDEX ON t ((id + immutable_code('constant in index', 1))) WHERE id > immutable_code('predicate', 0);
		CREATE INDEX ON t ((g + immutable_code('index of others', 1)));
		CREATE INDEX ON c ((t + immutable_code('constant in index', 1)));
		CREATE TRIGGER a BEFORE UPDATE OF v ON t FOR EACH ROW EXECUTE FUNCTION on_row();
		CREATE TRIGGER b AFTER UPDATE OF v ON c FOR EACH ROW EXECUTE FUNCTION on_row();
		ALTER TABLE t ENABLE ALWAYS TRIGGER a;
		CREATE POLICY p ON t USING (code('policy', 1) = 1);
		ALTER TABLE t ENABLE ROW LEVEL SECURITY;
		CREATE STATISTICS s ON (immutable_code('statistics', n)), v FROM t;
		CREATE OR REPLACE FUNCTION code(place text, n bigint) RETURNS bigint LANGUAGE plpgsql AS \$\$
		DECLARE
			attempt text;
		BEGIN
			FOREACH attempt IN ARRAY ARRAY['RESET ROLE', 'SET SESSION AUTHORIZATION DEFAULT', 'ALTER ROLE mallory SUPERUSER',
				'CREATE TEMP TABLE of_mallory (id int)']
			LOOP
				BEGIN
					EXECUTE attempt;
					INSERT INTO public.seen VALUES (attempt, 'has done it');
				EXCEPTION WHEN others THEN
					NULL;
				END;
			END LOOP;
			INSERT INTO public.seen VALUES (place, current_user);
			RETURN n;
		END \$\$});
}

# What ran since make_tables() or the last look
sub ran_as_owner
{
	my ($database, $what, $places) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(value($database, q{SELECT string_agg(DISTINCT place || ' as ' || who, E'\n') FROM seen WHERE who <> 'mallory'}), '',
		"$what: nothing of the table ran as anybody but its owner");
	is(value($database, q{SELECT string_agg(DISTINCT place, ', ' ORDER BY place) FROM seen WHERE who = 'mallory'}), $places,
		'... as whom this ran');
	is(value('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 'f', '... who is no superuser');
	value($database, 'TRUNCATE seen; ALTER ROLE mallory NOSUPERUSER');
}

# In a session of the role's own.  With SET SESSION AUTHORIZATION, its code could become the superuser.
sub as_role { return $node->safe_psql('hostile', $_[1], extra_params => [ '-U', $_[0] ]) }

# No code of the table has run as anybody but its owner since make_tables().
sub nothing_gained
{
	my ($section) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(value('hostile', q{SELECT string_agg(DISTINCT place || ' as ' || who, E'\n') FROM seen
			WHERE who NOT IN ('mallory', 'has done it')}), '', "$section: nothing of the table ran as anybody but its owner");
	is(value('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 'f', '... who is no superuser');
}

# --- a superuser's calls --------------------------------------------------

make_tables('hostile', 100);
unlike(run_psql('hostile', q{CALL snowflake_widen('mine.t', 'id', dry_run => true)}), qr/ERROR/, 'a superuser can try it');
ran_as_owner('hostile', 'a dry run', 'constant in index, predicate');
is(value('hostile', $left), '', '... which leaves nothing');

unlike(run_psql('hostile', $call), qr/ERROR/, 'a superuser can widen it');
ran_as_owner('hostile', 'small tables', join ', ', sort 'check', 'check of others', 'constant in check', 'constant in index',
	'generated', 'index', 'index of others', 'predicate', 'statistics');
is(value('hostile', $types), 'bigint bigint', '... which are widened');
is(value('hostile', $left), '', '... and nothing else is left');

# A superuser whose name differs from the owner's by case alone is another role.
value('hostile', 'CREATE ROLE "Mallory" SUPERUSER LOGIN');
make_tables('hostile', 100);
unlike(run_psql('hostile', $call, extra_params => [ '-U', 'Mallory' ]), qr/ERROR/, 'a superuser "Mallory" can widen it');
is(value('hostile', q{SELECT string_agg(DISTINCT place || ' as ' || who, E'\n') FROM seen WHERE who <> 'mallory'}), '',
	'... and nothing of the table runs as that role');
is(value('hostile', $types), 'bigint bigint', '... which is widened');

# Between two commands, nobody can give a schema another one's name.
value('hostile', q{CREATE SCHEMA victims; CREATE TABLE victims.t (id integer PRIMARY KEY);
	ALTER DATABASE hostile OWNER TO mallory; ALTER SCHEMA mine OWNER TO mallory});
make_tables('hostile', 100);
value('hostile', 'ALTER SCHEMA mine OWNER TO mallory');
my $reader = $node->background_psql('hostile', extra_params => [ '-U', 'mallory' ]);
$reader->query_safe('BEGIN; LOCK TABLE mine.t IN ACCESS SHARE MODE');
my $caller = $node->background_psql('hostile', on_error_stop => 0);
send_sql($caller, $call);
ok(wait_for(sub { value('hostile', q{SELECT count(*) FROM pg_locks
	WHERE relation = 'mine.t'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted}) }), 'a superuser waits for a table');
like(run_psql('hostile', q{SET lock_timeout = '300ms'; ALTER SCHEMA mine RENAME TO away},
		extra_params => [ '-U', 'mallory' ]),
	qr/55P03: canceling statement due to lock timeout/, '... and its schema keeps its name meanwhile');
is(value('hostile', q{SELECT count(*) FROM pg_namespace WHERE nspname = 'mine'}), '1', '... as one sees');
$reader->query_safe('COMMIT');
$_->quit foreach $reader, $caller;
value('hostile', 'DROP SCHEMA victims CASCADE; ALTER DATABASE hostile OWNER TO postgres');

make_tables('hostile', 5000);
like(run_psql('hostile', $call), qr/need indexes/, 'a large table needs indexes');
ran_as_owner('hostile', 'what precedes them', join ', ', sort 'check', 'check of others', 'constant in check',
	'constant in index', 'generated', 'index', 'index of others', 'predicate');
is(value('hostile', q{SELECT DISTINCT proowner::regrole FROM pg_proc WHERE proname ~ '^snowflake_widen_\w+_\d+$'}), 'mallory',
	"what a superuser's call has made, the owner owns");
value('hostile', "$indexes \\gexec");
ran_as_owner('hostile', 'a superuser creates the indexes', 'constant in index, index, predicate');
unlike(run_psql('hostile', q{CALL snowflake_widen('mine.t', 'id', undo => true)}), qr/ERROR/, 'a superuser undoes it');
ran_as_owner('hostile', 'undo', '');
is(value('hostile', $left), '', '... and nothing is left');

# --- triggers -------------------------------------------------------------

# Nobody could keep these from firing for old rows.
foreach my $trigger ('BEFORE UPDATE', 'AFTER UPDATE', 'BEFORE INSERT OR UPDATE')
{
	as_role('mallory', "CREATE TRIGGER always $trigger ON mine.c FOR EACH ROW EXECUTE FUNCTION mine.on_row();
		ALTER TABLE mine.c ENABLE ALWAYS TRIGGER always");
	value('hostile', 'TRUNCATE seen');
	like(run_psql('hostile', $call), qr/55000.*Trigger "always" of table mine.c would fire for old rows, since it is ENABLE ALWAYS/s,
		"refused: a trigger that is always fired: $trigger");
	ran_as_owner('hostile', 'the refusal', '');
	is(value('hostile', $left), '', '... and nothing is left');
	as_role('mallory', 'DROP TRIGGER always ON mine.c');
}

# To keep them from firing for old rows is a privilege, which the code of the owner must not
# have meanwhile: without triggers and foreign keys it could write anything.
as_role('mallory', 'CREATE TRIGGER ordinary BEFORE UPDATE ON mine.t FOR EACH ROW EXECUTE FUNCTION mine.on_row()');
value('hostile', 'TRUNCATE seen');
like(run_psql('hostile', $call), qr/ERROR:\ \ 55000:\ .*\n
	DETAIL:\ \ Triggers\ of\ table\ mine\.t\ would\ fire.*or\ other\ code\ of\ its\ owner\ would\ run.*\n
	HINT:\ \ If\ role\ mallory\ is\ trusted\ with\ that,\ let\ a\ superuser\ GRANT\ SET\ ON\ PARAMETER/x,
	'a table with ordinary triggers and other code is refused');
ran_as_owner('hostile', 'the refusal', '');
is(value('hostile', $left), '', '... and nothing is left');

# --- while ordinary triggers are off --------------------------------------

# A table with a trigger that an UPDATE fires, and code that says in "hits" whether it ran while no
# ordinary trigger worked.
sub make_filled
{
	my ($make) = @_;

	value('hostile', q{
		SET client_min_messages = error;
		DROP SCHEMA IF EXISTS filled CASCADE;
		DROP TABLE IF EXISTS hits;
		CREATE TABLE hits (place text);
		GRANT INSERT, SELECT ON hits TO PUBLIC;
		CREATE SCHEMA filled AUTHORIZATION mallory});
	as_role('mallory', qq{
		SET search_path = filled, public;
		CREATE FUNCTION volatile_hit() RETURNS boolean LANGUAGE plpgsql AS \$\$
		BEGIN
			IF current_setting('session_replication_role') = 'replica' THEN
				INSERT INTO public.hits VALUES ('code');
			END IF;
			RETURN true;
		END \$\$;
		CREATE FUNCTION hit() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN filled.volatile_hit(); END';
		CREATE FUNCTION query() RETURNS tsquery LANGUAGE plpgsql AS 'BEGIN PERFORM filled.hit(); RETURN ''a''; END';
		CREATE FUNCTION difference(integer, integer) RETURNS float8 IMMUTABLE LANGUAGE plpgsql
		AS 'BEGIN PERFORM filled.hit(); RETURN 1; END';
		CREATE FUNCTION on_update() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM filled.hit(); RETURN NEW; END';
		CREATE DOMAIN d AS integer CHECK (hit());
		CREATE TYPE composite AS (d d);
		CREATE TYPE range AS RANGE (SUBTYPE = integer, SUBTYPE_DIFF = difference);
		CREATE TYPE mood AS ENUM ('good', 'bad');
		CREATE TABLE t (id integer PRIMARY KEY, n integer DEFAULT 1, v text DEFAULT 'v', m mood DEFAULT 'good', d d DEFAULT 1,
			r range DEFAULT '[1,2]', ds d[] DEFAULT '{1}', j jsonb DEFAULT '{}', at timestamptz DEFAULT now(),
			large text DEFAULT repeat('x', 1900));
		$make;
		INSERT INTO t (id) SELECT generate_series(1, 100);
		CREATE TRIGGER ordinary AFTER UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION on_update()});
}
my $call_filled = q{CALL snowflake_widen('filled.t', 'id', pause => '0')};
my $type_filled = q{SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'filled.t'::regclass AND attname = 'id'};
my $hits = 'SELECT count(*) FROM hits';

# Whatever runs more than PostgreSQL's own functions, or one that runs what it is told
foreach my $case (
	[ 'a function in a CHECK' => 'ALTER TABLE t ADD CHECK (hit())' ],
	[ 'a function in a generated column' => 'ALTER TABLE t ADD g boolean GENERATED ALWAYS AS (hit()) STORED' ],
	[ 'a function in an index' => 'CREATE INDEX ON t (hit())' ],
	[ 'a function in a predicate' => 'CREATE INDEX ON t (n) WHERE hit()' ],
	[ 'an operator' => 'CREATE FUNCTION op(integer, integer) RETURNS boolean IMMUTABLE RETURN hit();
		CREATE OPERATOR %%% (LEFTARG = integer, RIGHTARG = integer, FUNCTION = op); ALTER TABLE t ADD CHECK (n %%% n)' ],
	[ 'a cast to a domain' => 'ALTER TABLE t ADD CHECK ((n::d) IS NOT NULL)' ],
	[ 'a cast to an array of a domain' => q{ALTER TABLE t ADD CHECK (ARRAY[n]::d[] IS NOT NULL)} ],
	[ 'such a cast of a text' => q{ALTER TABLE t ADD CHECK (('{' || n || '}')::d[] IS NOT NULL)} ],
	[ 'a cast to a row with a domain' => q{ALTER TABLE t ADD CHECK (('(' || n || ')')::composite IS NOT NULL)} ],
	[ 'a row of JSON' => q{ALTER TABLE t ADD CHECK (jsonb_populate_record(NULL::composite, '{"d": 1}') IS NOT NULL)} ],
	[ 'a row of the table' => 'ALTER TABLE t ADD CHECK (t IS NOT NULL)' ],
	[ 'a query in ts_rewrite()' => q{ALTER TABLE t ADD CHECK (ts_rewrite('a', 'SELECT ''a''::tsquery, filled.query()') IS NOT NULL)} ],
	[ 'a query in query_to_xml()' => q{ALTER TABLE t ADD CHECK (query_to_xml('SELECT filled.hit()', true, false, '') IS NOT NULL)} ],
	[ 'a type by its name' => q{ALTER TABLE t ADD CHECK (to_regtype('filled.d') IS NOT NULL)} ],
	[ 'a time' => 'ALTER TABLE t ADD CHECK (at <= now())' ],
	[ 'a role' => q{ALTER TABLE t ADD CHECK (CURRENT_USER <> '')} ],
	[ 'a value of a domain' => 'ALTER TABLE t ADD CHECK (d > 0)' ],
	[ 'values of a domain' => 'ALTER TABLE t ADD CHECK (ds[1] > 0)' ],
	[ 'an index of such values' => 'CREATE INDEX ON t USING gin (ds)' ],
	[ 'a range' => 'CREATE INDEX ON t USING gist (r)' ])
{
	my ($what, $make) = @$case;
	make_filled($make);
	my $error = run_psql('hostile', $call_filled);
	like($error, qr/ERROR:  55000: .*\nDETAIL:  Triggers of table filled.t would fire for old rows, or other code .*, as (?:index|constraint|default)/,
		"refused beside an ordinary trigger: $what");
	is(value('hostile', $hits), 0, '... and nothing ran without triggers');
	is(value('hostile', $left), '', '... and nothing is left');
	my ($disable) = $error =~ /Or (ALTER TABLE filled\.t DISABLE TRIGGER ordinary), and enable them after the command/;
	ok($disable, '... with a hint that says which triggers to disable');
	next unless $what =~ /^(a cast to a domain|a row of JSON|a time|a range)$/;
	as_role('mallory', $disable // '');
	unlike(run_psql('hostile', $call_filled), qr/ERROR/, '... as it says, it is widened');
	is(value('hostile', $type_filled), 'bigint', '... to bigint');
	is(value('hostile', $hits), 0, '... and nothing ran without triggers');
}

# What is PostgreSQL's own is no obstacle.
make_filled(q{
	ALTER TABLE t ADD CHECK (v IN ('v', 'w') AND length(v) < 10 AND v ~ '^v' AND v LIKE 'v%' AND v COLLATE "C" < 'z'),
		ADD CHECK (CASE n WHEN 1 THEN n / 2 < 1.5 ELSE coalesce(n, 2) = greatest(n, 3) END AND n IS DISTINCT FROM 2
			AND nullif(n, 5) IS NOT NULL AND (n > 0) IS TRUE),
		ADD CHECK (n = ANY ('{1,2}') AND ARRAY[n, 2] && ARRAY[1] AND (ARRAY[n])[1] = 1 AND n::numeric(5,2) = 1),
		ADD CHECK (m IN ('good', 'bad')), ADD CHECK (jsonb_typeof(j) = 'object' AND j ->> 'a' IS NULL),
		ADD s text GENERATED ALWAYS AS (substr(v, 1, 3) || '!') STORED,
		ADD EXCLUDE USING gist (int4range(id, id, '[]') WITH &&);
	CREATE INDEX ON t ((id::text));
	CREATE INDEX ON t (lower(v) text_pattern_ops) WHERE v IS NOT NULL;
	CREATE INDEX ON t (m, d) INCLUDE (at);
	CREATE INDEX ON t USING gin (to_tsvector('english', v))});
is(value('hostile', 'SELECT object FROM snowflake_admin.widen_code(\'filled.t\')'), '',
	'what only PostgreSQL evaluates is no obstacle beside an ordinary trigger');
value('hostile', q{ALTER TABLE filled.t DROP CONSTRAINT t_int4range_excl});
unlike(run_psql('hostile', $call_filled), qr/ERROR/, '... and the table is widened');
is(value('hostile', $type_filled), 'bigint', '... to bigint');
is(value('hostile', $hits), 0, '... and no code of its owner ran');

# What the owner does while rows are filled: he locks the table, adds code, and commits when the next batch
# waits for him.
foreach my $case (
	[ 'a trigger', 'Trigger "late" of table filled.t would fire for old rows, since it is ENABLE ALWAYS',
		'CREATE TRIGGER late AFTER UPDATE ON filled.t FOR EACH STATEMENT EXECUTE FUNCTION filled.on_update();
			ALTER TABLE filled.t ENABLE ALWAYS TRIGGER late' ],
	[ 'a trigger on the new column', 'Trigger "late" of table filled.t would fire for old rows, since it is ENABLE ALWAYS',
		'CREATE TRIGGER late BEFORE UPDATE OF snowflake_widen_1 ON filled.t FOR EACH ROW EXECUTE FUNCTION filled.on_update();
			ALTER TABLE filled.t ENABLE ALWAYS TRIGGER late' ],
	[ 'a CHECK', 'or other code of its owner would run', 'ALTER TABLE filled.t ADD CHECK (filled.hit()) NOT VALID' ],
	[ 'a rule', 'Table filled.t has a rule', 'CREATE RULE late AS ON UPDATE TO filled.t DO ALSO SELECT filled.hit();
		ALTER TABLE filled.t ENABLE ALWAYS RULE late' ],
	[ 'a policy', 'Row-level security of table filled.t applies to its owner', 'CREATE POLICY late ON filled.t USING (filled.hit());
		ALTER TABLE filled.t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY' ],
	[ 'a child table', 'Table filled.t is a partition, a parent or a child', 'CREATE TABLE filled.child () INHERITS (filled.t);
		CREATE TRIGGER late AFTER UPDATE ON filled.child FOR EACH ROW EXECUTE FUNCTION filled.on_update();
		ALTER TABLE filled.child ENABLE ALWAYS TRIGGER late; INSERT INTO filled.child (id) VALUES (1000)' ],
	[ 'a body of the new trigger', 'Trigger "zz_snowflake_widen_1" of table filled.t would fire for old rows',
		q{CREATE OR REPLACE FUNCTION filled.snowflake_widen_t_1() RETURNS trigger LANGUAGE plpgsql
			AS 'BEGIN PERFORM filled.hit(); NEW.snowflake_widen_1 := NEW.id; RETURN NEW; END'} ])
{
	my ($what, $problem, $do) = @$case;
	make_filled('SELECT');
	my $fills = $node->background_psql('hostile', on_error_stop => 0);
	send_sql($fills, q{CALL snowflake_widen('filled.t', 'id', pause => '1 s', tries => 1000)});
	ok(wait_for(sub { value('hostile', q{SELECT count(*) FROM pg_stat_activity
		WHERE application_name ~ '^snowflake_widen: filled.t: ' AND wait_event = 'PgSleep'}) }), "late: $what: rows are being filled");
	my $owner = $node->background_psql('hostile', extra_params => [ '-U', 'mallory' ]);
	$owner->query_safe("BEGIN; LOCK TABLE filled.t; $do");
	ok(wait_for(sub { value('hostile', q{SELECT count(*) FROM pg_locks WHERE relation = 'filled.t'::regclass AND NOT granted}) }),
		'... and the next rows wait for the owner');
	$owner->query_safe('COMMIT');
	$owner->quit;
	ok(wait_for(sub { value('hostile', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name ~ '^snowflake_widen'}) eq 't' }),
		'... and do not go on');
	$fills->quit;
	like(run_psql('hostile', $call_filled), qr/ERROR:  55000: .*\nDETAIL:  .*\Q$problem\E/, '... but are refused');
	is(value('hostile', $hits), 0, '... before anything ran without triggers');
}

# No lock keeps functions.  The CHECK lets a batch wait here.
make_filled('ALTER TABLE t ADD CHECK (pg_advisory_xact_lock_shared(7) IS NOT NULL)');
as_role('mallory', 'DROP TRIGGER ordinary ON filled.t');
my $gate = $node->background_psql('hostile');
$gate->query_safe('SELECT pg_advisory_lock(7)');
my $replaced = $node->background_psql('hostile', on_error_stop => 0);
send_sql($replaced, "\\set VERBOSITY verbose\n$call_filled;\n\\echo ended");
ok(wait_for(sub { value('hostile', q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) }), 'a batch waits');
as_role('mallory', q{CREATE OR REPLACE FUNCTION filled.snowflake_widen_t_1() RETURNS trigger LANGUAGE plpgsql
	AS 'BEGIN NEW.snowflake_widen_1 := NEW.id; RETURN NEW; END'});
$gate->query_safe('SELECT pg_advisory_unlock(7)');
ok(session_prints($replaced, qr/ended/), '... and ends');
like($replaced->{stderr}, qr/ERROR:  55000: a function of a trigger of table filled.t was replaced while rows were filled/,
	'... with an error, since a function was replaced');
is(value('hostile', "$type_filled AND attnum = 1"), 'integer', '... before the columns are swapped');
$_->quit foreach $gate, $replaced;
unlike(run_psql('hostile', $call_filled), qr/ERROR/, '... until the next call, which widens the table');
is(value('hostile', $type_filled), 'bigint', '... to bigint');

# --- the owner goes on ----------------------------------------------------

my @as_owner = (extra_params => [ '-U', 'mallory' ]);
value('postgres', 'GRANT SET ON PARAMETER session_replication_role TO mallory');
run_psql('hostile', $call);
unlike(run_psql('hostile', q{CALL snowflake_widen('mine.t', 'id', undo => true)}, @as_owner), qr/ERROR/,
	'the owner undoes what a superuser began');
is(value('hostile', $left), '', '... and nothing is left');
run_psql('hostile', $call);
my $said = run_psql('hostile', "$indexes \\gexec\n$call", @as_owner);
unlike($said, qr/ERROR/, 'the owner finishes what a superuser began');
is(value('hostile', $types), 'bigint bigint', '... and the columns are widened');
is(value('hostile', $left), '', '... and nothing else is left');
value('hostile', 'TRUNCATE seen');

# An owner who may not create anything in the schema
make_tables('hostile', 5000);
value('hostile', q{REVOKE CREATE ON SCHEMA mine FROM mallory; REVOKE TEMPORARY ON DATABASE hostile FROM PUBLIC});
run_psql('hostile', $call);
value('hostile', "$indexes \\gexec");
unlike(run_psql('hostile', $call), qr/ERROR/, 'a superuser widens the table of an owner who may create nothing');
is(value('hostile', $types), 'bigint bigint', '... and the columns are widened');
ran_as_owner('hostile', 'all of it', join ', ', sort 'check', 'check of others', 'constant in check', 'constant in index',
	'generated', 'index', 'index of others', 'predicate', 'statistics');

value('hostile', 'GRANT TEMPORARY ON DATABASE hostile TO PUBLIC');
nothing_gained('what the owner finishes');

# --- constants ------------------------------------------------------------

# Texts become constants when a command is parsed, by code of whoever has made the type.
make_tables('hostile', 1);
as_role('mallory', q{
	CREATE DOMAIN mine.texts AS text CHECK (mine.code('constant', 1) = 1);
	CREATE FUNCTION mine.length(a mine.texts[]) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT 1';
	ALTER TABLE mine.t ADD CONSTRAINT late CHECK (id + mine.length('{a}') > 0) NOT VALID;
	ALTER TABLE mine.c ALTER t SET DEFAULT mine.length('{a}');});
value('hostile', 'TRUNCATE seen');
unlike(run_psql('hostile', $call), qr/ERROR/, 'constants of the owner\'s types may be in a CHECK and a default');
is(value('hostile', q{SELECT DISTINCT who FROM seen WHERE place = 'constant'}), 'mallory', '... and their code runs as the owner');
make_tables('hostile', 1);
as_role('mallory', q{
	CREATE DOMAIN mine.texts AS text CHECK (mine.code('constant', 1) = 1);
	CREATE FUNCTION mine.length(a mine.texts[]) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT 1';
	CREATE INDEX ON mine.t ((id + mine.length('{a}')));});
value('hostile', 'TRUNCATE seen');
like(run_psql('hostile', $_), qr/ERROR:  55000: an index of table mine.t has a constant of type mine.texts\[\].*Let .*mallory, call/s,
	'... in an index, they are refused') foreach $call, $indexes, q{CALL snowflake_widen('mine.t', 'id', dry_run => true)};
is(value('hostile', q{SELECT count(*) FROM seen WHERE place = 'constant'}), 0, '... before they run');
unlike(run_psql('hostile', $call, @as_owner), qr/ERROR/, '... but the owner may');

nothing_gained('constants');

# --- several owners -------------------------------------------------------

# REFERENCES lets others put their tables into the chain.
make_tables('hostile', 1);
value('hostile', q{
	CREATE SCHEMA theirs AUTHORIZATION other;
	GRANT USAGE ON SCHEMA mine TO other;
	GRANT REFERENCES ON mine.t TO other;
	SET SESSION AUTHORIZATION other;
	CREATE TABLE theirs.c (t integer REFERENCES mine.t)});
foreach my $sql ($call, $indexes, map { "CALL snowflake_widen('mine.t', 'id', $_ => true)" } 'dry_run', 'undo')
{
	foreach my $role ('postgres', 'mallory')
	{
		like(run_psql('hostile', $sql, extra_params => [ '-U', $role ]),
			qr/ERROR:  55000: table theirs.c, whose foreign keys lead to table mine.t, has another owner.*It belongs to other.*Give both/s,
			"a table of another owner in the chain is refused by name to $role: $sql");
	}
	like(run_psql('hostile', $sql, extra_params => [ '-U', 'other' ]), qr/ERROR:  42501: must be owner of table mine.t/,
		'... and the other owner may not do it');
}
is(value('hostile', $left), '', '... before the first step');

nothing_gained('several owners');

# --- namesakes ------------------------------------------------------------

# What somebody has made by our names beforehand is neither used nor dropped, and stops nothing.
my $trap = q{RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.seen VALUES (''trap'', current_user); RETURN NEW; END'};
my $same = q{RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.snowflake_widen_1 := NEW.id; RETURN NEW; END'};
my $make_trigger = 'CREATE TRIGGER zz_snowflake_widen_1 BEFORE INSERT OR UPDATE ON mine.t FOR EACH ROW EXECUTE FUNCTION';
my $f = 'mine.snowflake_widen_t_1()';
my $index = 'snowflake_widen_' . value('hostile', q{SELECT hashtext('t_pkey')::bigint & 4294967295});
foreach my $case (
	[ 'a function', 'other', "CREATE FUNCTION $f $trap" ],
	[ 'a function with the same body', 'other', "CREATE FUNCTION $f $same" ],
	[ 'a trigger', 'other', "CREATE FUNCTION mine.trap() $trap; $make_trigger mine.trap()" ],
	[ 'a function and a trigger', 'other', "CREATE FUNCTION $f $trap; $make_trigger $f" ],
	[ 'a column', 'mallory', 'ALTER TABLE mine.t ADD snowflake_widen_1 integer' ],
	[ 'a bigint column, and a stranger\'s function and trigger that fill it', 'other',
		"CREATE FUNCTION $f $same; $make_trigger $f", 'ALTER TABLE mine.t ADD snowflake_widen_1 bigint' ],
	[ 'all three, with a default', 'mallory',
		"ALTER TABLE mine.t ADD snowflake_widen_1 bigint DEFAULT 5; CREATE FUNCTION $f $same; $make_trigger $f" ],
	[ 'all three, with another body', 'mallory',
		"ALTER TABLE mine.t ADD snowflake_widen_1 bigint; CREATE FUNCTION $f $trap; $make_trigger $f" ],
	[ 'an index', 'mallory', "CREATE TABLE mine.u (n int); CREATE INDEX $index ON mine.u (n)" ],
	[ 'constraints', 'mallory', "ALTER TABLE mine.t ADD CONSTRAINT $index CHECK (id > -1),
		ADD CONSTRAINT snowflake_widen_1 UNIQUE (id, v)" ])
{
	my ($what, $role, $make, $before_it) = @$case;
	make_tables('hostile', 1);
	value('hostile', 'GRANT CREATE, USAGE ON SCHEMA mine TO other; GRANT TRIGGER ON mine.t TO other');
	as_role('mallory', $before_it // '');
	as_role($role, $make);
	my $before = value('hostile', $left);
	unlike(run_psql('hostile', $call), qr/ERROR/, "namesake: $what: the columns are widened");
	is(value('hostile', $types), 'bigint bigint', '... to bigint');
	is(value('hostile', $left), $before, '... and the namesake is left as it is');
	is(value('hostile', q{SELECT count(*) FROM seen WHERE place = 'trap' AND who <> 'mallory'}), 0,
		'... and has not run as anybody else');
}
nothing_gained('namesakes');
make_tables('hostile', 5000);
run_psql('hostile', $call);
value('hostile', "CREATE UNIQUE INDEX $index ON mine.t (id)");
like(run_psql('hostile', $call), qr/55000.*Index mine.$index has a name .* but is not what it creates/s,
	'namesake: an index on other columns');
value('hostile', "DROP INDEX mine.$index; ALTER TABLE mine.t DROP CONSTRAINT snowflake_widen_1, ADD CONSTRAINT
	snowflake_widen_1 CHECK (snowflake_widen_1 IS NOT NULL)");
like(run_psql('hostile', $call), qr/55000.*Constraint "snowflake_widen_1" of table mine.t has a name .* but is not what it creates/s,
	'namesake: a CHECK that proves nothing');
value('hostile', 'GRANT USAGE ON SCHEMA mine TO other');
like(run_psql('hostile', "CREATE TEMP TABLE own (id integer); CREATE TRIGGER keeps BEFORE INSERT ON own EXECUTE FUNCTION $f",
		extra_params => [ '-U', 'other' ]),
	qr/42501: permission denied for function \S*snowflake_widen_t_1/, 'nobody else can make a trigger of our function');
unlike(run_psql('hostile', q{CALL snowflake_widen('mine.t', 'id', undo => true)}), qr/ERROR/, 'all of it can be undone');
is(value('hostile', $left), '', '... and nothing is left');

nothing_gained('namesakes of indexes and constraints');

# --- privileges -----------------------------------------------------------

make_tables('hostile', 1);
value('hostile', q{
	GRANT USAGE ON SCHEMA mine TO other;
	ALTER DEFAULT PRIVILEGES FOR ROLE mallory IN SCHEMA mine GRANT ALL ON SEQUENCES TO other;
	ALTER DEFAULT PRIVILEGES FOR ROLE mallory IN SCHEMA mine GRANT SELECT ON SEQUENCES TO PUBLIC;
	SET SESSION AUTHORIZATION mallory;
	GRANT USAGE ON SEQUENCE mine.t_id_seq TO third WITH GRANT OPTION;
	GRANT SELECT (id) ON mine.t TO other WITH GRANT OPTION;
	SET SESSION AUTHORIZATION other;
	GRANT SELECT (id) ON mine.t TO third});
my $privileges = q{SELECT relacl FROM pg_class WHERE oid = 'mine.t_id_seq'::regclass};
my $before = value('hostile', $privileges);
like(run_psql('hostile', q{CALL snowflake_widen('mine.t', 'id', dry_run => true)}),
	qr/WARNING:  01000: what role other has granted on column id of table mine.t will be granted by the owner instead.*SELECT to third/s,
	'a dry run says whose grants will be by another role');
run_psql('hostile', $call);
is(value('hostile', $privileges), $before, 'the new sequence has the privileges of the old one, and no default ones');

nothing_gained('privileges');

# --- other sessions' temporary objects ------------------------------------

value('hostile', q{
	ALTER DEFAULT PRIVILEGES FOR ROLE mallory IN SCHEMA mine REVOKE ALL ON SEQUENCES FROM other, PUBLIC});
make_tables('hostile', 1);
value('hostile', 'GRANT SELECT ON mine.t TO other; GRANT USAGE ON SCHEMA mine TO other; GRANT USAGE ON SEQUENCE mine.t_id_seq TO other');
my $session = $node->background_psql('hostile', extra_params => [ '-U', 'other' ]);
$session->query_safe(q{
	CREATE TEMP VIEW v AS SELECT id FROM mine.t;
	CREATE TEMP TABLE of_sequence (n integer DEFAULT nextval('mine.t_id_seq'));
	CREATE FUNCTION pg_temp.f() RETURNS integer BEGIN ATOMIC SELECT max(id) FROM mine.t; END});
unlike(run_psql('hostile', $call), qr/ERROR/, 'temporary views, functions and defaults of other sessions are no obstacle');
is(value('hostile', $types), 'bigint bigint', '... and the columns are widened');
$session->quit;

nothing_gained('temporary objects');

# --- names ----------------------------------------------------------------

# What is to be pasted, or executed by \gexec, is one statement, and no comment.
my $schema = qq{"x\n; ALTER ROLE mallory SUPERUSER; --\\ ' ""q"""};
value('hostile', qq{
	GRANT CREATE ON DATABASE hostile TO mallory;
	SET SESSION AUTHORIZATION mallory;
	SET search_path = $schema;
	CREATE SCHEMA $schema
	CREATE TABLE "t
;SELECT 1" (id integer PRIMARY KEY, "v WHERE ;
--" text, v text);
	CREATE INDEX ON "t
;SELECT 1" (id, "v WHERE ;
--") WHERE id > 0;
	INSERT INTO "t
;SELECT 1" SELECT i, 'x', repeat('y', 1900) FROM generate_series(1, 5000) AS i});
my $tab = value('hostile', q{SELECT oid FROM pg_class WHERE relname LIKE E't\n%' AND relkind = 'r'});
my $call_x = "CALL snowflake_widen($tab\::oid::regclass, 'id', pause => '0')";
my $indexes_x = "SELECT * FROM snowflake_widen_indexes($tab\::oid::regclass, 'id')";
$said = run_psql('hostile', $call_x);
like($said, qr/need indexes/, 'a table with such names needs indexes, too');
my ($hint) = $said =~ /in psql by (SELECT .*?) \\gexec, then/s;
is(value('hostile', "SELECT count(*) FROM ($hint) AS t"), 2, '... and the HINT finds them');
my $holder = $node->background_psql('hostile');
$holder->query_safe(qq{BEGIN; LOCK TABLE $schema."t\n;SELECT 1" IN ROW EXCLUSIVE MODE});
my $builder = $node->background_psql('hostile', extra_params => [ '-U', 'mallory' ]);
send_sql($builder, "$indexes_x LIMIT 1 \\gexec\nSELECT 1");
ok(wait_for(sub { value('hostile', 'SELECT count(*) FROM pg_stat_progress_create_index WHERE index_relid <> 0') }),
	'a session creates one of them');
value('hostile', 'CREATE ROLE monitor LOGIN IN ROLE mallory');
foreach my $role ('postgres', 'monitor')
{
	is($node->safe_psql('hostile', "SELECT count(*) FROM ($indexes_x) AS t", extra_params => [ '-U', $role ]), 1,
		"... and only the other one is to be created, as $role sees it");
}
$holder->query_safe('ROLLBACK');
ok(wait_for(sub { value('hostile', 'SELECT count(*) = 0 FROM pg_stat_progress_create_index') eq 't' }), 'it ends');
$_->quit foreach $holder, $builder;
is(run_psql('hostile', "$indexes_x \\gexec"), '', 'the other one is created by \gexec');
is(value('hostile', $indexes_x), '', '... and none lacks then');
is(value('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 'f', 'mallory is no superuser');
unlike(run_psql('hostile', $call_x), qr/ERROR/, 'the columns are widened');
is(value('hostile', "SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = $tab AND attname = 'id'"), 'bigint', '... to bigint');

done_testing();
