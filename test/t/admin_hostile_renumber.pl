# snowflake_renumber() runs what the owner of a table made as that owner at most, also when
# a superuser calls it, and nobody else can put code of his own into it, or stop it.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('hostile_renumber', 'shop');
$node->append_conf('postgresql.conf', "max_prepared_transactions = 2\n");
$node->restart;

# mallory owns tables in a schema in which he may create nothing.
value('shop', q{
	CREATE ROLE mallory LOGIN;
	CREATE ROLE member LOGIN IN ROLE mallory;
	CREATE ROLE stranger LOGIN;
	CREATE SCHEMA shop;
	GRANT USAGE ON SCHEMA shop TO PUBLIC;
	CREATE SCHEMA code;
	GRANT USAGE, CREATE ON SCHEMA code TO PUBLIC;

	-- What ran, as whom, what it tried, and what came of it.  The code does nothing in the
	-- sessions of a superuser that prepares something or looks.
	CREATE TABLE seen (place text, who name, attempt text, result text);
	GRANT INSERT ON seen TO PUBLIC;

	CREATE FUNCTION code.attack(place text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		attempt text;
		result text;
	BEGIN
		IF current_setting('test.armed', true) IS DISTINCT FROM 'on' THEN
			RETURN;
		END IF;
		FOREACH attempt IN ARRAY ARRAY['RESET ROLE', 'SET SESSION AUTHORIZATION postgres',
			'ALTER ROLE mallory SUPERUSER', 'ALTER ROLE stranger SUPERUSER']
		LOOP
			BEGIN
				EXECUTE attempt;
				result := 'done';
			EXCEPTION WHEN others THEN
				result := SQLSTATE;
			END;
			INSERT INTO public.seen VALUES (place, current_user, attempt, result);
		END LOOP;
	END $$;
	CREATE FUNCTION code.volatile(place text, n bigint) RETURNS bigint LANGUAGE plpgsql
	AS $$ BEGIN PERFORM code.attack(place); RETURN n; END $$;
	CREATE FUNCTION code.immutable(place text, n bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql
	AS $$ BEGIN PERFORM code.attack(place); RETURN n; END $$;
	CREATE FUNCTION code.on_row() RETURNS trigger LANGUAGE plpgsql
	AS $$ BEGIN PERFORM code.attack(TG_ARGV[0]); RETURN NEW; END $$;
	CREATE DOMAIN code.photo AS bigint CHECK (code.volatile('domain', VALUE) > 0)});

# A table of mallory's and another one that refers to it, with code wherever there can be some
sub hostile_tables
{
	my ($name) = @_;

	value('shop', qq{
		SET search_path = shop, public;
		CREATE TABLE $name (
			id bigint PRIMARY KEY DEFAULT code.volatile('default', next_id(5)),
			title text, n bigint DEFAULT 1 CHECK (code.volatile('check', n) > 0),
			made bigint GENERATED ALWAYS AS (code.immutable('generated', id)) STORED);
		INSERT INTO $name (title) SELECT 'photo ' || g FROM generate_series(1, 20) AS g;
		INSERT INTO $name (id, title)
		SELECT snowflake_id(now() + interval '1 hour', 4, g), 'future ' || g FROM generate_series(1, 20) AS g;
		CREATE TABLE of_$name (photo code.photo REFERENCES $name, title text);
		INSERT INTO of_$name SELECT id, title FROM $name;
		CREATE INDEX ON of_$name (photo);
		CREATE INDEX ON $name (code.immutable('index', id));
		CREATE INDEX ON $name ((id + code.immutable('constant', 5)));
		CREATE INDEX ON of_$name ((photo + code.immutable('constant of child', 5)));
		CREATE TRIGGER first BEFORE UPDATE ON $name FOR EACH ROW EXECUTE FUNCTION code.on_row('before');
		CREATE TRIGGER last AFTER UPDATE ON $name FOR EACH ROW EXECUTE FUNCTION code.on_row('after');
		CREATE CONSTRAINT TRIGGER later AFTER UPDATE ON $name DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION code.on_row('deferred');
		CREATE TRIGGER child BEFORE UPDATE ON of_$name FOR EACH ROW EXECUTE FUNCTION code.on_row('child');
		ALTER TABLE $name OWNER TO mallory;
		ALTER TABLE of_$name OWNER TO mallory});
}

# A superuser's call succeeds, and runs code in these places, as mallory.
sub harmless
{
	my ($name, $places, $call) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	value('shop', 'TRUNCATE seen');
	succeeds('shop', "SET test.armed = on; $call", $name);
	is(value('shop', q{SELECT string_agg(DISTINCT place, ', ' ORDER BY place) FROM seen}), $places,
		'... and runs code of the owner');
	is(value('shop', q{SELECT string_agg(DISTINCT who, ', ') FROM seen}), $places ? 'mallory' : '', '... as the owner');
	is(value('shop', q{SELECT count(*) FROM seen WHERE result = 'done'}), 0, '... which gains nothing');
}

# Calls are refused, dry or not, before they run any code.
sub refused
{
	my ($name, $error, $call, $before) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	value('shop', 'TRUNCATE seen');
	foreach my $dry_run ('true', 'false')
	{
		like(run_psql('shop', 'SET test.armed = on; ' . ($before // '') . "; CALL snowflake_renumber($call, dry_run => $dry_run)"), $error,
			$dry_run eq 'true' ? $name : '... and not only in a dry run');
	}
	is(value('shop', 'SELECT count(*) FROM seen'), 0, '... and runs no code');
}

# Rows of tables made by hostile_tables() that do not lead to the row that they led to before
sub strays { return value('shop', "SELECT count(*) FROM shop.of_$_[0] AS c LEFT JOIN shop.$_[0] AS p ON p.id = photo
	WHERE p.title IS DISTINCT FROM c.title") }

# --- the owner's code ------------------------------------------------------

hostile_tables('photos');
# As on some services
value('shop', 'ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO stranger; ALTER DEFAULT PRIVILEGES IN SCHEMA shop
	GRANT SELECT ON TABLES TO PUBLIC');

my $change = 'after, before, check, child, constant, constant of child, deferred, domain, generated, index';
harmless('a dry run by a superuser', 'constant',
	q{CALL snowflake_renumber('shop.photos', 5, 6, layout => 'instagram', dry_run => true)});
is(value('shop', q{SELECT to_regclass('shop.photos_renumbered')}), '', '... and makes no list');
harmless('a call by a superuser', $change,
	q{CALL snowflake_renumber('shop.photos', 5, 6, layout => 'instagram', batch => 7)});
holds('shop',
	'... and renumbers the rows' => 'count(*) = 20 FROM shop.photos WHERE snowflake_shard(id) = 6',
	'... whose list belongs to the owner' =>
		q{relowner = 'mallory'::regrole FROM pg_class WHERE oid = 'shop.photos_renumbered'::regclass},
	'... and to nobody else, whatever the default privileges are' => q{NOT EXISTS (SELECT FROM pg_class,
		aclexplode(relacl) WHERE pg_class.oid = 'shop.photos_renumbered'::regclass AND grantee <> relowner)},
	'... and has all rows' => 'count(*) = 20 FROM shop.photos JOIN shop.photos_renumbered ON new = id');
harmless('a call for future-dated rows', $change =~ s/deferred/default, deferred/r,
	q{CALL snowflake_renumber('shop.photos', 4, layout => 'instagram', batch => 7)});
is(value('shop', 'SELECT count(*) FROM shop.photos WHERE id > snowflake_max_id(now())'), 0, '... gives them IDs of the present');
is(strays('photos'), 0, 'every row leads to the row that it led to before');

# A caller who may act as the owner
value('shop', 'TRUNCATE seen');
is(value('shop', q{SET test.armed = on; SET SESSION AUTHORIZATION member;
	CALL snowflake_renumber('shop.photos', 6, 7, layout => 'instagram')}), '', 'a member of the owner may call it');
is(value('shop', q{SELECT string_agg(DISTINCT who, ', ') FROM seen}), 'mallory', '... and the code runs as the owner');
value('shop', 'GRANT ALL ON shop.photos, shop.of_photos, shop.photos_renumbered TO stranger');
refused('a role with all privileges but the ownership may not', qr/ERROR:  42501: must be owner of table shop.photos/,
	q{'shop.photos', 7, 8, layout => 'instagram'}, 'SET SESSION AUTHORIZATION stranger');
value('shop', 'REVOKE ALL ON shop.photos, shop.of_photos, shop.photos_renumbered FROM stranger');

# Policies: nothing is skipped in silence.
value('shop', q{
	CREATE TABLE shop.hidden (id bigint PRIMARY KEY DEFAULT next_id(5), n bigint DEFAULT 1);
	INSERT INTO shop.hidden SELECT FROM generate_series(1, 20);
	CREATE POLICY p ON shop.hidden USING (code.volatile('policy', n) = code.immutable('constant policy', 1));
	ALTER TABLE shop.hidden OWNER TO mallory;
	ALTER TABLE shop.hidden ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY});
refused('policies that hide rows from the owner are an error', qr/ERROR:  42501: query would be affected by row-level security/,
	q{'shop.hidden', 5, 6});
value('shop', 'ALTER TABLE shop.hidden NO FORCE ROW LEVEL SECURITY');
harmless('policies for others are no obstacle', '', q{CALL snowflake_renumber('shop.hidden', 5, 6)});
is(value('shop', 'SELECT count(*) FROM shop.hidden WHERE snowflake_shard(id) = 6'), 20, '... and all rows have new IDs');

value('shop', q{
	CREATE RULE also AS ON UPDATE TO shop.hidden DO ALSO SELECT code.attack('rule');
	TRUNCATE seen});
fails_with($node, q{SET test.armed = on; CALL snowflake_renumber('shop.hidden', 6, 7)}, qr/^0A000 .*rules are not supported/,
	'a rule is an error of PostgreSQL', dbname => 'shop');
is(value('shop', 'SELECT count(*) FROM seen'), 0, '... and does not run');

# --- a stranger's tables ---------------------------------------------------

# A role with REFERENCES puts its own table into the chain.
hostile_tables('users');
value('shop', q{
	GRANT REFERENCES ON shop.users TO stranger;
	SET SESSION AUTHORIZATION stranger;
	CREATE TABLE code.trap (user_id bigint REFERENCES shop.users ON UPDATE CASCADE);
	CREATE INDEX ON code.trap (user_id);
	CREATE INDEX ON code.trap ((user_id + code.immutable('trap', 5)));
	CREATE TRIGGER trap BEFORE UPDATE ON code.trap FOR EACH ROW EXECUTE FUNCTION code.on_row('trap');
	GRANT ALL ON code.trap TO PUBLIC});
my $named = qr/ERROR:  55000: table code.trap, whose foreign keys lead to table shop.users, has another owner
DETAIL:  It belongs to stranger, and table shop.users to mallory. Its triggers would run with the rights of mallory\./;
refused("a superuser learns of a stranger's table in the chain", $named, q{'shop.users', 5, 6, layout => 'instagram'});
refused('... and so does the owner', $named, q{'shop.users', 5, 6, layout => 'instagram'}, 'SET SESSION AUTHORIZATION mallory');
value('shop', 'DROP TABLE code.trap');

# The list
sub list_is_refused
{
	my ($name, $why, $commands) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	value('shop', "SET search_path = shop; DROP TABLE IF EXISTS users_renumbered; $commands");
	refused("refused: $name",
		qr/ERROR:  55000: shop.users_renumbered exists, and is not a list of old and new IDs\nDETAIL:  It belongs to $why\./,
		q{'shop.users', 5, 6, layout => 'instagram'});
}
my $list = 'CREATE TABLE users_renumbered (old bigint PRIMARY KEY, new bigint)';
my $give = 'ALTER TABLE users_renumbered OWNER TO';
list_is_refused("a stranger's list", 'stranger, and table shop.users to mallory', "$list; $give stranger;
	CREATE TRIGGER trap BEFORE INSERT ON users_renumbered FOR EACH ROW EXECUTE FUNCTION code.on_row('list')");
list_is_refused("a superuser's list", 'postgres, and table shop.users to mallory', $list);
list_is_refused("a list with $_->[0]", "mallory, and $_->[1]", "$list; $give mallory; $_->[2]")
  foreach [ 'a trigger', 'has trigger "trap"',
	q{CREATE TRIGGER trap BEFORE INSERT ON users_renumbered FOR EACH ROW EXECUTE FUNCTION code.on_row('list')} ],
  [ 'a rule', 'has rule "trap"', q{CREATE RULE trap AS ON INSERT TO users_renumbered DO ALSO SELECT code.attack('list')} ],
  [ 'a policy', 'has row-level security', 'ALTER TABLE users_renumbered ENABLE ROW LEVEL SECURITY' ],
  [ 'a CHECK', 'has constraint "trap"', q{ALTER TABLE users_renumbered ADD CONSTRAINT trap CHECK (code.volatile('list', new) > 0)} ],
  [ 'a foreign key', 'has constraint "trap"', 'ALTER TABLE users_renumbered ADD CONSTRAINT trap FOREIGN KEY (new) REFERENCES photos' ],
  [ 'a default', 'has a default', q{ALTER TABLE users_renumbered ALTER new SET DEFAULT code.volatile('list', 1)} ],
  [ 'an index expression', 'has index "shop.trap"', q{CREATE INDEX trap ON users_renumbered (code.immutable('list', new))} ],
  [ 'a child', 'has a parent or child table', 'CREATE TABLE child () INHERITS (users_renumbered); ALTER TABLE child OWNER TO mallory' ];
value('shop', 'DROP TABLE shop.child');
list_is_refused('a list without a primary key', 'mallory, and has no primary key',
	"CREATE TABLE users_renumbered (old bigint, new bigint); $give mallory");
list_is_refused('a list with a generated column', 'mallory, and has a default',
	"CREATE TABLE users_renumbered (old bigint PRIMARY KEY, new bigint GENERATED ALWAYS AS (1) STORED); $give mallory");
list_is_refused('a list of other types', 'mallory, and does not have the columns of a list',
	"CREATE TABLE users_renumbered (old bigint PRIMARY KEY, new code.photo); $give mallory");
value('shop', "SET search_path = shop; DROP TABLE users_renumbered; $list; $give mallory");
harmless('a list of the owner without any code is used', $change,
	q{CALL snowflake_renumber('shop.users', 5, 6, layout => 'instagram')});
is(strays('users'), 0, 'every row leads to the row that it led to before');

# --- all tables of a schema --------------------------------------------------

# Of a schema where strangers create tables, each table of theirs, and what they have put into the way of
# another one, stays as it is, and so do their lists.
value('shop', q{
	CREATE SCHEMA "a 'b"" c";
	GRANT USAGE, CREATE ON SCHEMA "a 'b"" c" TO stranger, mallory;
	SET SESSION AUTHORIZATION mallory;
	SET search_path = "a 'b"" c", public;
	CREATE TABLE "x'); SELECT code.attack('name'); --" ("%I ""$1" bigint PRIMARY KEY DEFAULT next_id(5));
	CREATE TABLE chained (id bigint PRIMARY KEY DEFAULT next_id(5));
	CREATE TABLE listed (id bigint PRIMARY KEY DEFAULT next_id(5));
	GRANT REFERENCES ON chained TO stranger;
	INSERT INTO "x'); SELECT code.attack('name'); --" DEFAULT VALUES;
	INSERT INTO chained DEFAULT VALUES;
	INSERT INTO listed DEFAULT VALUES;
	SET SESSION AUTHORIZATION stranger;
	CREATE TABLE of_chained (id bigint REFERENCES chained ON UPDATE CASCADE);
	CREATE TABLE listed_renumbered (old bigint PRIMARY KEY, new bigint NOT NULL);
	CREATE TABLE theirs (id bigint PRIMARY KEY DEFAULT next_id(5), n bigint DEFAULT code.volatile('default', 1));
	INSERT INTO theirs DEFAULT VALUES;
	CREATE TRIGGER trap BEFORE INSERT ON listed_renumbered FOR EACH ROW EXECUTE FUNCTION code.on_row('list');
	CREATE TRIGGER trap BEFORE UPDATE ON theirs FOR EACH ROW EXECUTE FUNCTION code.on_row('table of a stranger');
	GRANT ALL ON listed_renumbered, theirs, of_chained TO PUBLIC});
my $schema_call = q{SET test.armed = on; CALL snowflake_renumber_schema('a ''b" c', 5, 6)};
value('shop', 'TRUNCATE seen');
my $said = run_psql('shop', "SET SESSION AUTHORIZATION mallory; $schema_call");
my $in = q{"a 'b"" c"};
is(join("\n", $said =~ /WARNING:  \w+: (.*)/g), qq{$in.chained keeps its IDs: table $in.of_chained, whose foreign keys lead to table $in.chained, has another owner
$in.listed keeps its IDs: $in.listed_renumbered exists, and is not a list of old and new IDs
$in.theirs keeps its IDs: must be owner of table $in.theirs}, "the owner's call for a schema leaves out what a stranger has a hand in, and says why");
like($said, qr/NOTICE:  \w+: 1 rows of .*code.attack.* have new IDs.*NOTICE:  \w+: 1 of 4 tables done/s,
	'... and renumbers the other one, whatever its names are');
is(value('shop', 'SELECT count(*) FROM seen'), 0, '... and runs no code');
like(run_psql('shop', $schema_call), qr/NOTICE:  \w+: 1 rows of \Q$in\E\.theirs have new IDs.*NOTICE:  \w+: 2 of 4 tables done/s,
	"a superuser's call for it renumbers the stranger's table");
is(value('shop', q{SELECT string_agg(DISTINCT place || ' ' || who, ', '), count(*) FILTER (WHERE result = 'done') FROM seen}),
	'table of a stranger stranger|0', '... as the stranger, who gains nothing');
is(value('shop', qq{SELECT string_agg(t || ' ' || shard, ', ' ORDER BY t) FROM (SELECT 'chained', snowflake_shard(id) FROM $in.chained
	UNION ALL SELECT 'listed', snowflake_shard(id) FROM $in.listed UNION ALL SELECT 'theirs', snowflake_shard(id) FROM $in.theirs
	UNION ALL SELECT 'x', snowflake_shard("%I ""\$1") FROM $in."x'); SELECT code.attack('name'); --") AS s (t, shard)}),
	'chained 5, listed 5, theirs 6, x 6', '... and no other row has a new ID');

# --- between two transactions ----------------------------------------------

# A call that waits for a row that somebody holds goes on after $meanwhile.  Returns what it says.
sub meets_in_the_middle
{
	my ($shard, $meanwhile, $prints) = @_;
	my $holder = $node->background_psql('shop');
	my $caller = $node->background_psql('shop', on_error_stop => 0);
	my $pid = $caller->query_safe('SET test.armed = on; SELECT pg_backend_pid()');

	value('shop', 'TRUNCATE seen');
	$holder->query_safe("BEGIN; SELECT FROM shop.users
		WHERE id = (SELECT min(id) FROM shop.users WHERE snowflake_shard(id) = $shard) FOR UPDATE");
	send_sql($caller, sprintf q{CALL snowflake_renumber('shop.users', %s, %s, layout => 'instagram', tries => 1000)},
		$shard, $shard + 1);
	wait_for(sub { value('shop', "SELECT wait_event FROM pg_stat_activity WHERE pid = $pid") eq 'PgSleep' && value('shop',
		"SELECT count(*) FROM shop.users WHERE snowflake_shard(id) = $shard") == 1 }) or die;
	my $stop = $meanwhile->();
	$holder->query_safe('COMMIT');
	$holder->quit;
	my $found = session_prints($caller, $prints);
	$caller->quit;
	$stop->() if ref $stop;
	return $found;
}

ok(meets_in_the_middle(6, sub { value('shop', qq{
		SET search_path = shop;
		BEGIN;
		ALTER TABLE users_renumbered RENAME TO kept;
		$list; $give stranger;
		CREATE TRIGGER trap BEFORE INSERT ON users_renumbered FOR EACH ROW EXECUTE FUNCTION code.on_row('list');
		GRANT ALL ON users_renumbered TO PUBLIC;
		COMMIT}) },
	qr/ERROR:  shop.users_renumbered exists, and is not a list/), "a stranger's list in place of the list is refused");
is(value('shop', q{SELECT count(*) FROM seen WHERE place = 'list'}), 0, '... and its code does not run');
value('shop', q{SET search_path = shop; DROP TABLE users_renumbered; ALTER TABLE kept RENAME TO users_renumbered});

ok(meets_in_the_middle(7, sub { value('shop', q{
		BEGIN;
		ALTER TABLE shop.of_users RENAME TO kept;
		CREATE TABLE shop.of_users (photo bigint, title text);
		ALTER TABLE shop.of_users OWNER TO stranger;
		CREATE INDEX ON shop.of_users ((photo + code.immutable('trap', 5)));
		GRANT ALL ON shop.of_users TO PUBLIC;
		COMMIT}) },
	qr/ERROR:  table shop.users, one that refers to it, or shop.users_renumbered was changed, renamed or dropped by/),
	"a stranger's table in place of one that refers to the IDs is refused");
is(value('shop', q{SELECT count(*) FROM seen WHERE place = 'trap'}), 0, '... and its code does not run');
value('shop', q{DROP TABLE shop.of_users; ALTER TABLE shop.kept RENAME TO of_users;
	ALTER TABLE shop.of_users OWNER TO stranger});
refused('a table that has got another owner is refused', qr/ERROR:  55000: table shop.of_users, .* has another owner/,
	q{'shop.users', 7, 8, layout => 'instagram'});
value('shop', 'ALTER TABLE shop.of_users OWNER TO mallory');
is(strays('users'), 0, 'every row leads to the row that it led to before');

# --- locks that everybody can take -----------------------------------------

# All kinds of advisory locks that belong to a table, with keys that pg_locks would show for ours
sub advisory_locks
{
	my ($work, $table, $xact) = @_;
	my $class = "(hashtext('$work') & 2147483647)";
	return "SELECT pg_advisory_${xact}lock($class\::bigint << 32 | '$table'::regclass::oid::bigint),
		pg_advisory_${xact}lock($class, '$table'::regclass::oid::int)";
}

value('shop', q{CREATE TABLE shop.narrow (id integer PRIMARY KEY); ALTER TABLE shop.narrow OWNER TO mallory;
	INSERT INTO shop.narrow SELECT generate_series(1, 100)});
foreach my $of ([ 'snowflake_renumber()', 'shop.photos' ], [ 'snowflake_widen()', 'shop.narrow' ])
{
	value('shop', 'SET SESSION AUTHORIZATION stranger; BEGIN; ' . advisory_locks(@$of, 'xact_')
		. "; PREPARE TRANSACTION '$of->[0]'");
}
fails_with($node, qq{SET SESSION AUTHORIZATION stranger; SELECT snowflake_admin.lock_turn(1, 'shop.photos'::regclass, false)},
	qr/^42501 must be owner of table photos/, "nobody but the owner can take the lock of a table's turn", dbname => 'shop');
succeeds('shop', q{CALL snowflake_renumber('shop.photos', 7, 8, layout => 'instagram')},
	"a stranger's prepared transaction does not stop it");
succeeds('shop', q{CALL snowflake_widen('shop.narrow', 'id')}, '... nor snowflake_widen()');
holds('shop',
	'... and all rows are renumbered' => 'count(*) = 20 FROM shop.photos WHERE snowflake_shard(id) = 8',
	'... and the key widened' => q{atttypid = 'bigint'::regtype FROM pg_attribute WHERE attrelid = 'shop.narrow'::regclass
		AND attname = 'id'});
value('shop', "ROLLBACK PREPARED 'snowflake_renumber()'");
value('shop', "ROLLBACK PREPARED 'snowflake_widen()'");

ok(meets_in_the_middle(7, sub {
		my $stranger = $node->background_psql('shop');
		$stranger->query_safe('SET SESSION AUTHORIZATION stranger; ' . advisory_locks('snowflake_renumber()', 'shop.users', ''));
		# The server keeps the value of an index's constant expression until the index is altered.
		value('shop', 'ALTER INDEX shop.users_expr_idx SET (fillfactor = 90)');
		return sub { $stranger->quit } },
	qr/NOTICE:  \d+ rows of shop.users have new IDs/), "a stranger's lock does not make it wait in the middle");
is(value('shop', q{SELECT string_agg(DISTINCT who, ', ') FROM seen WHERE place = 'constant'}), 'mallory',
	'... and an index is evaluated again as the owner');
is(strays('users'), 0, 'every row leads to the row that it led to before');

# --- chains ----------------------------------------------------------------

# There are more than 12! ways through tables that all refer to each other.
value('shop', q{
	CREATE SCHEMA dense;
	DO $$ BEGIN FOR n IN 1 .. 12 LOOP
		EXECUTE format('CREATE TABLE dense.t%s (id bigint PRIMARY KEY DEFAULT next_id(5))', n);
		FOR i IN 1 .. n - 1 LOOP
			EXECUTE format('ALTER TABLE dense.t%s ADD FOREIGN KEY (id) REFERENCES dense.t%s', n, i);
			EXECUTE format('ALTER TABLE dense.t%s ADD FOREIGN KEY (id) REFERENCES dense.t%s', i, n);
		END LOOP;
	END LOOP; END $$});
is(value('shop', q{SELECT count(*), count(DISTINCT rel), min(place) FILTER (WHERE rel = 'dense.t1'::regclass), min(place)
	FROM snowflake_admin.chain('dense.t1', 'id')}), '12|12|1|1', 'of tables that all refer to each other, each is found once');
succeeds('shop', q{CALL snowflake_renumber('dense.t1', 5, 6, dry_run => true)}, '... before a timeout');

value('shop', q{
	CREATE SCHEMA diamond;
	CREATE TABLE diamond.a (id bigint PRIMARY KEY, near bigint REFERENCES diamond.a);
	CREATE TABLE diamond.e (id bigint PRIMARY KEY REFERENCES diamond.a);
	CREATE TABLE diamond.b (id bigint PRIMARY KEY REFERENCES diamond.a);
	CREATE TABLE diamond.c (id bigint PRIMARY KEY REFERENCES diamond.a);
	CREATE TABLE diamond.d (id bigint PRIMARY KEY REFERENCES diamond.b, too bigint REFERENCES diamond.c);
	ALTER TABLE diamond.d ADD FOREIGN KEY (id) REFERENCES diamond.c;
	ALTER TABLE diamond.e ADD FOREIGN KEY (id) REFERENCES diamond.d});
is(value('shop', q{SELECT string_agg(format('%s.%s %s', rel, name, place), ', ' ORDER BY rel::text, name)
	FROM snowflake_admin.chain('diamond.a', 'id')}),
	'diamond.a.id 1, diamond.a.near 2, diamond.b.id 2, diamond.c.id 2, diamond.d.id 3, diamond.d.too 3, diamond.e.id 4',
	'the place of a column is the longest way to it');

is(value('shop', q{SELECT string_agg(rolname, ', ') FROM pg_roles WHERE rolsuper}), 'postgres', 'nobody has become a superuser');
$node->stop;
done_testing();
