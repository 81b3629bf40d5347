# What other roles make neither runs in snowflake_check(), snowflake_uses() and
# snowflake_keys(), nor stops them, nor changes what they say of others' tables.

use SnowflakeTest;

my $node = server_in_utc('hostile');
my @looks = qw(check uses keys);
my @callers = qw(postgres boss reader monitor);

$node->sql(q{
	CREATE ROLE mallory LOGIN;
	CREATE ROLE app LOGIN;
	CREATE ROLE boss LOGIN;
	CREATE ROLE reader LOGIN IN ROLE pg_read_all_data;
	CREATE ROLE monitor LOGIN IN ROLE pg_monitor});

# --- what the callers see of a database with faults --------------------------------

sub new_database
{
	my ($database) = @_;

	$node->sql("CREATE DATABASE $database OWNER boss");
	$node->safe_psql($database, q{
		REVOKE CREATE ON SCHEMA public FROM PUBLIC;
		CREATE EXTENSION snowflake_admin CASCADE;
		SELECT snowflake_set_shard(5);
		CREATE SCHEMA mine AUTHORIZATION mallory;
		CREATE SCHEMA shop AUTHORIZATION app;
		SET ROLE app;
		CREATE TABLE shop.photos (id bigint PRIMARY KEY DEFAULT public.next_id());
		CREATE TABLE shop.tight (id integer PRIMARY KEY DEFAULT public.next_id());
		CREATE TABLE shop.events (id bigint PRIMARY KEY DEFAULT public.next_id()) PARTITION BY RANGE (id);
		CREATE TABLE shop.counted (id bigserial PRIMARY KEY);
		CREATE SEQUENCE shop.tweets_id_seq;
		SELECT public.snowflake_alter_sequence('shop.tweets_id_seq', 'twitter');
		CREATE TABLE shop.tweets (id bigint PRIMARY KEY);
		CREATE FUNCTION shop.fill() RETURNS trigger LANGUAGE plpgsql
		AS $$ BEGIN NEW.id := public.next_id(7, 'tweets_id_seq'); RETURN NEW; END $$;
		CREATE TRIGGER fill BEFORE INSERT ON shop.tweets FOR EACH ROW EXECUTE FUNCTION shop.fill();
		SET search_path = shop;
		INSERT INTO tweets DEFAULT VALUES});
	return $database;
}

# The rows of a look, and what the server says meanwhile.  No caller waits for long.
sub look
{
	my ($database, $caller, $what) = @_;
	my ($status, $rows, $said) = $node->psql($database, "SELECT concat_ws('|', "
		  . ($what eq 'check' ? 'severity, object, problem, remedy'
			: $what eq 'uses' ? 'place, shard, sequence, layout, code'
			: 'tab, col, type, made_by, sequence, obstacle')
		  . ") FROM snowflake_$what()",
		connstr => $node->connstr($database) . " user=$caller options='-c statement_timeout=20s'");
	return ($rows, $status == 0 ? $said : "status $status: $said");
}

# What is said of others' objects, without times of the clock, which go on
sub of_others
{
	my ($rows) = @_;
	return join "\n", grep { !/^\w+\|role |\bmine\b|pg_temp/ }
	  split /\n/, $rows =~ s/\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d[.+\d]*|\d+:\d\d:\d\d[.\d]*/.../gr;
}

my $database = new_database('app');
my %expected;
foreach my $caller (@callers)
{
	$expected{"$caller $_"} = of_others((look($database, $caller, $_))[0]) foreach @looks;
}
like($expected{"$_ check"}, qr/^error\|table shop.events\|.*\nerror\||^error\|shop.tight.id\|/m,
	"$_ sees faults of others' tables")
  foreach @callers;

# All callers see the same of others' objects as before, quickly, and nobody's code has run.
# Returns the rows of a superuser's check.
sub nothing_else_changes
{
	my ($when) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $rows;

	foreach my $caller (@callers)
	{
		foreach my $what (@looks)
		{
			my ($found, $said) = look($database, $caller, $what);
			is($said, '', "$when: snowflake_$what() ends, and runs nobody's code, for $caller");
			is(of_others($found), $expected{"$caller $what"}, "... and says of others' objects what it said before")
				or diag $found;
			$rows //= $found;
		}
	}
	return $rows;
}

# --- tables whose code would run ----------------------------------------------------

sub as_mallory
{
	my ($sql) = @_;
	return $node->safe_psql($database, "SET search_path = mine, public;\n$sql",
		connstr => $node->connstr($database) . ' user=mallory');
}

# Whoever else runs this learns it, also in a subtransaction that is rolled back.
as_mallory(q{
	CREATE FUNCTION report(what text) RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
		IF current_user <> 'mallory' THEN
			RAISE WARNING 'hostile % runs as %', what, current_user;
		END IF;
		RETURN true;
	END $$;
	CREATE FUNCTION quiet(bigint, what text) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM mine.report(what);
		RETURN $1;
	END $$;
	CREATE FUNCTION hidden(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		IF current_user <> 'mallory' THEN
			RAISE SQLSTATE 'SF000';
		END IF;
		RETURN $1;
	END $$;
	CREATE SEQUENCE s;
	SELECT snowflake_alter_sequence('s');
	GRANT USAGE ON SEQUENCE s TO PUBLIC;
	CREATE TABLE indexed (id bigint PRIMARY KEY DEFAULT next_id(1, 'mine.s'));
	CREATE INDEX ON indexed ((id + quiet(1, 'index expression')));
	CREATE TABLE hiding (id bigint PRIMARY KEY DEFAULT next_id(2, 'mine.s'));
	CREATE INDEX ON hiding ((id + hidden(1)));
	INSERT INTO hiding VALUES (snowflake_id(now() + interval '1 hour', 2, 1));
	CREATE TYPE evil AS (x bigint);
	CREATE FUNCTION evil(bigint) RETURNS evil LANGUAGE sql AS 'SELECT ROW($1)::mine.evil';
	CREATE FUNCTION to_big(evil) RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM mine.report('cast');
		RETURN $1.x;
	END $$;
	CREATE CAST (bigint AS evil) WITH FUNCTION evil(bigint) AS ASSIGNMENT;
	CREATE CAST (evil AS bigint) WITH FUNCTION to_big(evil) AS IMPLICIT;
	CREATE TABLE composed (id evil PRIMARY KEY DEFAULT next_id(3, 'mine.s'));
	INSERT INTO composed DEFAULT VALUES;
	CREATE DOMAIN checked AS bigint CHECK (report('domain')) DEFAULT next_id(4, 'mine.s');
	CREATE TABLE of_domain (id checked PRIMARY KEY);
	INSERT INTO of_domain DEFAULT VALUES;
	CREATE TABLE constrained (id bigint PRIMARY KEY DEFAULT next_id(5, 'mine.s'),
		CHECK (id > quiet(0, 'constraint')), v bigint GENERATED ALWAYS AS (quiet(6, 'generated column')) STORED);
	INSERT INTO constrained DEFAULT VALUES;
	CREATE TABLE hidden_rows (id bigint PRIMARY KEY DEFAULT next_id(6, 'mine.s'));
	ALTER TABLE hidden_rows ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	CREATE POLICY p ON hidden_rows USING (report('policy'));
	CREATE TABLE parted (id bigint DEFAULT next_id(7, 'mine.s')) PARTITION BY RANGE ((id + quiet(1, 'partition key')));
	CREATE INDEX ON parted (id);
	CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (1) TO (MAXVALUE);
	INSERT INTO parted DEFAULT VALUES;
	CREATE VIEW viewed AS SELECT next_id(8, 'mine.s') AS id, report('view');
	CREATE FUNCTION parsed(boolean DEFAULT report('parameter')) RETURNS bigint LANGUAGE sql
		BEGIN ATOMIC SELECT next_id(9, 'mine.s') WHERE report('body'); END;
	CREATE TABLE counted (id bigint PRIMARY KEY DEFAULT quiet(nextval('s'), 'default'));
	CREATE FUNCTION equal(evil, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT mine.report('operator') $$;
	CREATE OPERATOR >= (FUNCTION = equal, LEFTARG = evil, RIGHTARG = bigint)});
$node->safe_psql($database, q{
	CREATE FOREIGN DATA WRAPPER nowhere;
	CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
	GRANT USAGE ON FOREIGN SERVER nowhere TO mallory});
as_mallory(q{
	CREATE TABLE far (id bigint DEFAULT next_id(10, 'mine.s')) PARTITION BY RANGE (id);
	CREATE FOREIGN TABLE far_1 PARTITION OF far FOR VALUES FROM (1) TO (MAXVALUE) SERVER nowhere});
my $rows = nothing_else_changes('code of tables');
like($rows, qr/^note\|table mine\.composed\|Its IDs were not looked at: type mine\.evil\./m,
	'a column of a type that is none of an ID is a note');
like($rows, qr/^note\|table mine\.far\|Its IDs were not looked at: foreign table \(partition mine\.far_1\)\./m,
	'... and so is a foreign table');
like($rows, qr/^error\|table mine\.hiding\|It has the ID .*, which belongs to mallory, with the shard of sequence mine\.s\./m,
	"an error of an index's expression hides no table");

# --- code that waits, or that no pattern expects ---------------------------------------

# A sequence of a session's temporary schema has the name of another.
my $session = $node->background_psql($database, extra_params => [ '-U', 'mallory' ]);
$session->query_safe(q{
	SET search_path = public;
	CREATE TEMP SEQUENCE tweets_id_seq;
	CREATE SEQUENCE mine.tweets_id_seq;
	CREATE TEMP TABLE busy (id bigint DEFAULT next_id(11));
	CREATE TEMP VIEW seen AS SELECT next_id(12) FROM busy;
	CREATE FUNCTION pg_temp.waits() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT next_id(13) FROM busy; END;
	CREATE FUNCTION pg_temp.names() RETURNS void LANGUAGE plpgsql AS $$ BEGIN /* counted_id_seq next_id(7) */ END $$;
	CREATE DOMAIN pg_temp.id AS bigint DEFAULT next_id(14);
	CREATE TABLE mine.busy (id bigint, t timestamptz,
		made bigint GENERATED ALWAYS AS (snowflake_id(t, 15, 1)) STORED);
	CREATE VIEW mine.seen AS SELECT next_id(16) FROM mine.busy;
	CREATE FUNCTION mine.waits() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT next_id(17, 'mine.s') FROM mine.busy; END;
	CREATE FUNCTION mine.names() RETURNS void LANGUAGE plpgsql AS $$ BEGIN /* counted_id_seq */ END $$;
	CREATE TABLE mine.waiting (id bigint PRIMARY KEY DEFAULT mine.waits());
	CREATE TABLE mine.of_temp (id bigint PRIMARY KEY DEFAULT nextval('pg_temp.tweets_id_seq'));
	CREATE TABLE mine.serial (id bigserial PRIMARY KEY);
	CREATE TABLE mine.parts (id bigint DEFAULT next_id(18, 'mine.s')) PARTITION BY RANGE (id);
	CREATE TABLE mine.part PARTITION OF mine.parts FOR VALUES FROM (MINVALUE) TO (1)});
# Spaces and digits that are none for PostgreSQL, in functions that assign to a column
my @odd = map { "next_id('$_')" } "\x{2003}5", "\x{3000}5", "\x{1680}5", "\x{2028}5", "\x{665}", "5\x{2003}";
my $odd = join ' ', map { "NEW.id := $_;" } @odd;
utf8::encode($odd);
my $odd_sql = sub { my ($schema) = @_; return qq{
	CREATE FUNCTION $schema.odd() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN $odd END \$\$;
	CREATE TABLE $schema.odd (id bigint PRIMARY KEY);
	CREATE TRIGGER odd BEFORE INSERT ON $schema.odd FOR EACH ROW EXECUTE FUNCTION $schema.odd()} };
$session->query_safe(join ';', 'CREATE TEMP TABLE first ()', map { $odd_sql->($_) =~ s/TABLE pg_temp/TEMP TABLE pg_temp/r } 'pg_temp', 'mine');
$rows = nothing_else_changes('spaces of other scripts');
unlike($rows, qr/^error\|check of/m, '... and no part of the check fails');
unlike((look($database, 'postgres', 'uses'))[0], qr/pg_temp/, 'what is temporary is no place that makes IDs');

$session->query_safe(q{
	BEGIN;
	LOCK TABLE busy, mine.busy, mine.part;
	ALTER SEQUENCE mine.serial_id_seq RESTART});
$rows = nothing_else_changes('locked tables');
like($rows, qr/^warning\|\Q$_\E\|Its code could not be read, .* Process \d+ has used mine\.busy /m,
	"$_, which names a locked table, is a warning")
  foreach 'function mine.waits()', 'view mine.seen', 'column mine.busy.made';
my ($uses) = look($database, 'postgres', 'uses');
like($uses, qr/^\Q$_\E$/m, '... and a place whose code is NULL')
  foreach 'function mine.waits()', 'view mine.seen', 'column mine.busy.made';
is($node->safe_psql($database, q{
		BEGIN;
		SELECT count(*) > 0 FROM snowflake_check(), snowflake_uses();
		SELECT count(*) FROM pg_locks WHERE relation >= 16384 AND pid = pg_backend_pid()}), "t\n0",
	'a look keeps no lock of a table');
$session->query_safe('COMMIT');
like((look($database, 'postgres', 'uses'))[0], qr/^function mine\.waits\(\)\|17\|mine\.s\|instagram\|next_id\(/m,
	'... until it is free');

my $call = q{BEGIN; CALL snowflake_move('shop.counted', 5, dry_run => true); CALL snowflake_move('shop.counted', 5); ROLLBACK};
is(($node->psql($database, "SET ROLE app; $call"))[0], 0, "text in others' functions stops no move of a table");
$node->safe_psql($database, q{
	CREATE FUNCTION public.names() RETURNS void LANGUAGE plpgsql AS $$ BEGIN /* counted_id_seq */ END $$});
like(($node->psql($database, "SET ROLE app; $call"))[2], qr/function public\.names\(\) names its sequence/,
	"... but that of a role that may use the table's sequence does");
$node->safe_psql($database, 'DROP FUNCTION public.names()');
$session->quit;

# --- sequences that mallory may not use -----------------------------------------------------

# A regclass can be given as an OID without a privilege on the schema.
my $counter = $node->safe_psql($database, q{SELECT 'shop.counted_id_seq'::regclass::oid});
as_mallory(qq{
	CREATE TABLE naming (id bigint PRIMARY KEY DEFAULT next_id(5, '$counter'));
	CREATE TABLE naming_layout (id bigint PRIMARY KEY DEFAULT next_id(5, '$counter', 'twitter'))});
$rows = nothing_else_changes("another role's counter in a default");
like($rows, qr/^error\|table mine\.naming\w*\|mallory may insert into mine\.naming\w*, but not use sequence shop\.counted_id_seq/m,
	'... and the row is about the table');
unlike($rows, qr/^\w+\|sequence shop\.counted/m, '... not about the counter');
as_mallory('DROP TABLE naming, naming_layout');

# --- what takes time ------------------------------------------------------------------------

# How long does it take if a text of mallory's is that long?  Twice the text may take three
# times as long, for the noise of the machine.
my $timed = session($node, $database);

sub seconds
{
	my ($what, $code) = @_;
	my $quoted = $code =~ s/'/''/gr;
	as_mallory(qq{
		SET check_function_bodies = off;
		CREATE OR REPLACE FUNCTION long() RETURNS trigger LANGUAGE plpgsql AS '$quoted';
		CREATE TABLE IF NOT EXISTS long (id bigint PRIMARY KEY);
		CREATE OR REPLACE TRIGGER long BEFORE INSERT ON long FOR EACH ROW EXECUTE FUNCTION long()});
	my @times = map {
		my $begun = cpu_seconds($timed->{backend});
		$timed->query_safe("SELECT count(*) FROM snowflake_$what()");
		cpu_seconds($timed->{backend}) - $begun } 1 .. 2;
	return (sort { $a <=> $b } @times)[0];
}

my %long = (
	'calls in calls' => sub { return 'NEW.id := next_id(5); ' . 'next_id(' x ($_[0] / 8) },
	'assignments' => sub { return 'BEGIN ' . 'NEW.id := next_id(5) ' x ($_[0] / 21) },
	'parentheses' => sub { return 'NEW.id := next_id(' . '(' x $_[0] },
	'closed parentheses' => sub { return 'NEW.id := next_id(' . '()' x ($_[0] / 2) },
	'quotes' => sub { return 'NEW.id := next_id(' . q{'"} x ($_[0] / 2) },
	'spaces' => sub { return 'NEW.id := next_id' . ' ' x $_[0] . '(5)' },
	'settings' => sub { return 'next_id(' . q{set_config('snowflake.shard', '} x ($_[0] / 31) },
	'arguments' => sub { return 'NEW.id := next_id(' . '5,' x ($_[0] / 2) . '5)' });
foreach my $kind (sort keys %long)
{
	my $longest = $ENV{EMULATED} ? 40000 : 160000;
	foreach my $what ('uses', 'check')
	{
		my ($half, $whole) = map { seconds($what, 'BEGIN ' . $long{$kind}->($_) . ' END') } $longest / 2, $longest;
		note("$kind: snowflake_$what() takes $half s for half a text, $whole s for all");
		cmp_ok($whole, '<', 3 * $half + 0.5, "the time of snowflake_$what() grows like a text of $kind");
		cmp_ok($whole, '<', 10, '... and is short');
	}
}
as_mallory('DROP TABLE long; DROP FUNCTION long()');
$timed->quit;

# Each of many tables refers to each other, so there are very many ways through them.
as_mallory(q{
	CREATE SEQUENCE crowd_seq;
	SELECT snowflake_alter_sequence('crowd_seq');
	CREATE TABLE c1 (id bigint PRIMARY KEY DEFAULT next_id(5, 'mine.crowd_seq'));
	INSERT INTO c1 VALUES (snowflake_id(clock_timestamp() + interval '1 hour', 5, 1));
	DO $$ BEGIN FOR n IN 2..10 LOOP
		EXECUTE format('CREATE TABLE c%s (id bigint PRIMARY KEY)', n);
		FOR i IN 1 .. n - 1 LOOP
			EXECUTE format('ALTER TABLE c%s ADD FOREIGN KEY (id) REFERENCES c%s', n, i);
			IF i > 1 THEN EXECUTE format('ALTER TABLE c%s ADD FOREIGN KEY (id) REFERENCES c%s', i, n); END IF;
		END LOOP;
	END LOOP; END $$});
like(nothing_else_changes('foreign keys between all tables'), qr/^error\|table mine\.c1\|.* sequence mine\.crowd_seq\..*snowflake_renumber/m,
	'... and the row of the table is there');

# --- layouts, parameters of sequences -------------------------------------------------------

as_mallory(q{
	CREATE SEQUENCE timeless_seq MAXVALUE 2147483647;
	CREATE TABLE timeless (id bigint PRIMARY KEY DEFAULT next_id(5, 'mine.timeless_seq', 'shard:13 sequence:31'))
		PARTITION BY RANGE (id);
	CREATE SEQUENCE largest_seq START 9223372036854775806;
	SELECT nextval('largest_seq');
	CREATE TABLE largest (id bigint PRIMARY KEY DEFAULT next_id(5, 'mine.largest_seq'))});
$rows = nothing_else_changes('a layout without a time, and the largest value');
unlike($rows, qr/^error\|check of/m, '... and no part of the check fails');

# --- who may create functions that fit better -----------------------------------------------------

sub schema_rows
{
	return $node->safe_psql($database, q{
		SELECT severity, object, split_part(problem, '. ', 1), remedy FROM snowflake_check() WHERE object LIKE 'schema %'});
}

is(schema_rows(), '', 'the owner of the database may create objects');
$node->safe_psql($database, q{
	GRANT CREATE ON SCHEMA public TO boss, mallory, PUBLIC;
	CREATE ROLE "a b"; CREATE ROLE b; CREATE ROLE c; CREATE ROLE d; CREATE ROLE e;
	GRANT CREATE ON SCHEMA public TO "a b", b, c, d, e});
like(schema_rows(), qr/^warning\|schema public\|PUBLIC, mallory, "a b", b, c and 2 other roles may create objects in it\|REVOKE CREATE ON SCHEMA public FROM PUBLIC, mallory, "a b", b, c, d, e;$/,
	'... but others who may are named');
$node->safe_psql($database, (split /\|/, schema_rows())[-1]);
is(schema_rows(), '', '... until they may no longer');

# --- names that end a comment, a string or a statement --------------------------------------------

my $bad = qq{x\\'"\n; CREATE TABLE public.injected (); --\n/* \$\$ is };

# The name, with something before it
sub ident { return '"' . ($_[0] . $bad) =~ s/"/""/gr . '"' }

$database = 'names';
$node->sql('CREATE DATABASE names');
my ($ids, $col) = map { ident($_) } qw(ids c);
# PostgreSQL allows fewer characters here.
my $admin = q{"The; Admin"};
$node->safe_psql($database, join ";\n", map { s/<(\w+)>/ident($1)/ger } (
	"CREATE SCHEMA $ids; CREATE SCHEMA $admin; CREATE SCHEMA <s>; CREATE ROLE <r>",
	"CREATE EXTENSION snowflake SCHEMA $ids; CREATE EXTENSION snowflake_admin SCHEMA $admin",
	"SET search_path = <s>, $ids",
	"CREATE TABLE <small> ($col integer PRIMARY KEY DEFAULT next_id(8))",
	"CREATE TABLE <parts> ($col bigint PRIMARY KEY DEFAULT next_id()) PARTITION BY RANGE ($col)",
	"CREATE TABLE <parent> ($col bigint PRIMARY KEY DEFAULT next_id(5))",
	"CREATE TABLE <child> ($col bigint DEFAULT next_id(6)) INHERITS (<parent>)",
	"CREATE TABLE <serial> ($col bigserial PRIMARY KEY)",
	"CREATE TABLE <lost> ($col bigserial PRIMARY KEY)",
	"CREATE TABLE <ahead> ($col bigserial PRIMARY KEY)",
	"CALL $admin.snowflake_move('" . ident('lost') =~ s/'/''/gr . "', 5, own_sequence => true)",
	"CALL $admin.snowflake_move('" . ident('ahead') =~ s/'/''/gr . "', 5, own_sequence => true)",
	"SELECT setval(oid, (snowflake_min_id(now() + interval '1 day') >> 23) * 1024) FROM pg_class WHERE relname LIKE 'ahead%seq'",
	"CREATE FUNCTION <lose>() RETURNS void LANGUAGE plpgsql AS " . q{$f$ BEGIN EXECUTE format('ALTER SEQUENCE %s NO MAXVALUE CYCLE',
		(SELECT oid::regclass FROM pg_class WHERE relname LIKE 'lost%seq')); END $f$},
	'SELECT <lose>()',
	"GRANT INSERT ON <ahead> TO <r>",
	"GRANT CREATE ON SCHEMA $ids, $admin TO <r>"));
my @remedies = map { pack 'H*', $_ } split /\n/, $node->safe_psql($database,
	"SELECT encode(convert_to(remedy, 'UTF8'), 'hex') FROM $admin.snowflake_check()");
my @commands = grep { !/\.\z/ } @remedies;
cmp_ok(scalar(@commands), '>=', 8, 'the check has commands for objects with odd names');
foreach my $command (@commands)
{
	my ($status, $count, $said) = $node->psql($database, "\\set VERBOSITY verbose\nBEGIN;\n" . $command =~ s/\bN\b/6/gr
		  . "\nSELECT 'injected: ' || count(*) FROM pg_class WHERE relname = 'injected';\nROLLBACK", on_error_stop => 1);
	my ($what) = $command =~ /^(\w+)/;
	# Such a command commits, or begins a transaction, so it has been understood.
	unlike($said, qr/ERROR:  (?!2D000|25001)/, "$what is one command");
	like($count, qr/^injected: 0$/m, '... and does nothing else') unless $said =~ /ERROR/;
}
is($node->safe_psql($database, "SELECT count(*) FROM pg_class WHERE relname = 'injected'"), '0', '... and nothing stays');
is($node->safe_psql($database, qq{
		SELECT count(*) FROM $admin.snowflake_keys() WHERE obstacle IS NULL AND made_by = 'nextval'}), '1',
	'a default that names such a sequence is no expression');
done_testing();
