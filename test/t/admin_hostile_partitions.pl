# What the owner of a table has written runs with the owner's rights at most when a superuser
# partitions the table, or makes and drops partitions of it, in dry runs, too.  Nobody gets
# a privilege by these commands that the table does not give.

use SnowflakeTest;

my $node = server_in_utc('hostile_partitions', "autovacuum = off\nmax_prepared_transactions = 0\n");

$node->sql(q{
	CREATE ROLE mallory LOGIN; CREATE ROLE stranger LOGIN; CREATE ROLE anon LOGIN; CREATE ROLE app LOGIN;
	CREATE ROLE lender LOGIN; CREATE ROLE borrower LOGIN;
	CREATE EXTENSION snowflake_admin CASCADE;
	SELECT snowflake_set_shard(5);
	CREATE SCHEMA app; CREATE SCHEMA mine AUTHORIZATION mallory; CREATE SCHEMA strange AUTHORIZATION stranger;
	GRANT USAGE ON SCHEMA app, mine, strange TO PUBLIC;
	GRANT CREATE ON SCHEMA app TO mallory;
	ALTER DEFAULT PRIVILEGES FOR ROLE mallory, postgres GRANT ALL ON TABLES TO anon;
	ALTER DEFAULT PRIVILEGES FOR ROLE mallory, postgres IN SCHEMA app GRANT ALL ON SEQUENCES TO anon;
	ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA app GRANT SELECT ON TABLES TO PUBLIC});

# Mallory connects: SET SESSION AUTHORIZATION would leave a way back to the superuser.  Nor
# does the superuser of this test query a table of hers.
sub as_role
{
	my ($role, $sql) = @_;
	return $node->sql("SET client_min_messages = warning; $sql", extra_params => [ '-U', $role ]);
}

# Each piece of code says in the server's log, which no rollback undoes, as whom it runs, and
# what of its attempts to get more rights has succeeded.
my $attack = q{
	CREATE FUNCTION %1$s.attack(place text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		attempt text;
	BEGIN
		RAISE LOG 'hostile code: % runs as %', place, current_user;
		FOREACH attempt IN ARRAY ARRAY['RESET ROLE', 'SET ROLE postgres', 'SET SESSION AUTHORIZATION postgres',
			'ALTER ROLE stranger SUPERUSER', 'ALTER ROLE mallory SUPERUSER'] LOOP
			BEGIN
				EXECUTE attempt;
				RAISE LOG 'hostile code: % succeeds in %', attempt, place;
			EXCEPTION WHEN OTHERS THEN
				NULL;
			END;
		END LOOP;
	END $$;
	CREATE FUNCTION %1$s.now(place text, n bigint) RETURNS bigint LANGUAGE plpgsql
	AS $$ BEGIN PERFORM %1$s.attack(place); RETURN n; END $$;
	CREATE FUNCTION %1$s.always(place text, n bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql
	AS $$ BEGIN PERFORM %1$s.attack(place); RETURN n; END $$;
	CREATE FUNCTION %1$s.on_change() RETURNS trigger LANGUAGE plpgsql
	AS $$ BEGIN PERFORM %1$s.attack(TG_ARGV[0]); RETURN coalesce(NEW, OLD); END $$};
as_role('mallory', $attack =~ s/%1\$s/mine/gr);
as_role('stranger', $attack =~ s/%1\$s/strange/gr);

# What every table of mallory has
sub armed
{
	my ($table) = @_;
	return qq{
		ALTER TABLE $table ADD CHECK (mine.always('constant CHECK', 1) > 0),
			ADD CHECK (mine.always('CHECK', n) > 0);
		CREATE INDEX ON $table ((n + mine.always('constant in index', 1)));
		CREATE INDEX ON $table ((mine.always('index', n)));
		CREATE INDEX ON $table (n) WHERE mine.always('predicate', 1) > 0;
		CREATE UNIQUE INDEX ON $table (id, (mine.always('unique index', 1)));
		CREATE STATISTICS ${table}_statistics ON (mine.always('statistics', n)), n FROM $table;
		CREATE TRIGGER before BEFORE INSERT OR UPDATE OR DELETE ON $table FOR EACH ROW
			EXECUTE FUNCTION mine.on_change('row trigger');
		CREATE TRIGGER conditional AFTER DELETE ON $table FOR EACH ROW
			WHEN (mine.always('WHEN', 1) > 0 AND '{a}'::mine.texts[] IS NOT NULL)
			EXECUTE FUNCTION mine.on_change('conditional trigger');
		CREATE TRIGGER after AFTER DELETE ON $table EXECUTE FUNCTION mine.on_change('statement trigger');
		CREATE CONSTRAINT TRIGGER late AFTER DELETE ON $table DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
			EXECUTE FUNCTION mine.on_change('deferred trigger');
		CREATE POLICY p ON $table USING (mine.now('policy', 1) > 0 AND mine.always('constant in policy', 1) > 0
			AND '{a}'::mine.texts[] IS NOT NULL);
		ALTER TABLE $table ENABLE ROW LEVEL SECURITY};
}
my $columns = q{id bigint DEFAULT next_id() PRIMARY KEY, n bigint DEFAULT mine.now('default', 7), d mine.hostile DEFAULT 1,
	g bigint GENERATED ALWAYS AS (mine.always('constant in generated column', 1)) STORED,
	nr int GENERATED ALWAYS AS IDENTITY};
my $docs = q{
	-- While a command is parsed, its texts become constants by the code of whoever has made the type.
	CREATE DOMAIN mine.texts AS text CHECK (mine.always('constant', 1) = 1);
	CREATE DOMAIN mine.hostile AS bigint CHECK (mine.always('domain', 1) > 0 AND mine.now('domain', VALUE) > 0);
	CREATE TABLE app.docs (} . $columns . q{);
	INSERT INTO app.docs (id) SELECT snowflake_id(now() - interval '100 days' + i * interval '1 minute', 5, 0)
		FROM generate_series(1, 40) AS i;
	INSERT INTO app.docs DEFAULT VALUES;
	CREATE TABLE app.notes (doc_id bigint REFERENCES app.docs ON DELETE CASCADE, other_id bigint REFERENCES app.docs);
	CREATE INDEX ON app.notes ((doc_id + mine.always('index of the referring table', 1)));
	CREATE TRIGGER after AFTER DELETE ON app.notes FOR EACH ROW EXECUTE FUNCTION mine.on_change('cascaded trigger');
	INSERT INTO app.notes SELECT id FROM app.docs;
	} . armed('app.docs') . q{;
	REVOKE ALL ON app.docs, app.notes, app.docs_nr_seq FROM anon, PUBLIC};
as_role('mallory', $docs);
$node->sql('REVOKE CREATE ON SCHEMA app FROM mallory');

# A superuser's call.  Returns what the call says.
sub called
{
	my ($call, $places) = @_;
	my $offset = -s $node->logfile;
	my ($status, undef, $said) = $node->psql('postgres', $call);
	my @log = grep { s/.*hostile code: // } split /\n/, slurp_file($node->logfile, $offset);
	my %ran = map { /^(.*) runs as (.*)$/ ? ($1 => 1) : () } @log;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($status, 0, "a superuser executes $call") or diag $said;
	is(join("\n", grep { !/ runs as mallory$/ } @log), '',
		"... and nothing of the table runs with other rights than its owner's");
	foreach my $place (split /, /, $places)
	{
		ok($ran{$place}, "... but $place does run");
	}
	return $said;
}

# The commands that a call has shown
sub commands_in { return grep { /;$/ && !/^table / } $_[0] =~ /NOTICE:  (.*)/g }

# Each privilege on what is in the schema that somebody but the owner has
my $privileges = q{
	SELECT relname, grantee_name(grantee) AS grantee, privilege, is_grantable FROM (
		SELECT relname, a.grantee, privilege, a.is_grantable FROM pg_class AS c, snowflake_admin.privileges(c.oid) AS a
		WHERE relnamespace = 'app'::regnamespace AND relkind IN ('r', 'p', 'S') AND a.grantee <> relowner
		UNION ALL SELECT relname || '.' || attname, a.grantee, privilege_type, a.is_grantable
		FROM pg_class AS c JOIN pg_attribute ON attrelid = c.oid, aclexplode(attacl) AS a
		WHERE relnamespace = 'app'::regnamespace) AS p ORDER BY 1, 2, 3};
$privileges =~ s/grantee_name/snowflake_admin.grantee_name/;

# --- a table becomes a partition ---------------------------------------------

my $warned = qr/WARNING:  what role lender has granted on app.docs will be granted by the owner instead\n
	DETAIL:\s+It\ has\ granted\ SELECT\ to\ borrower,\ UPDATE\ \(n\)\ to\ borrower\.\n
	HINT:\s+REVOKE\ \.\.\.\ FROM\ lender\ CASCADE\ will\ no\ longer\ take\ this\ back/x;
$warned = qr/WARNING:  what role lender has granted on app.docs will be granted by the owner instead
DETAIL:  It has granted SELECT to borrower, UPDATE \(n\) to borrower.
HINT:  REVOKE ... FROM lender CASCADE will no longer take this back\./;
as_role('mallory', q{
	GRANT SELECT ON app.docs TO app; GRANT INSERT (n) ON app.docs TO app; GRANT USAGE ON SEQUENCE app.docs_nr_seq TO app;
	GRANT SELECT, UPDATE ON app.docs TO lender WITH GRANT OPTION});
as_role('lender', q{
	GRANT SELECT ON app.docs TO borrower; GRANT UPDATE (n) ON app.docs TO borrower});
my $said = called(q{CALL snowflake_partition('app.docs', 'day', dry_run => true)}, '');
like($said, $warned, 'a dry run warns of grants that lose their grantor');
like($said, qr/NOTICE:  only its owner will have privileges on the old table, app.docs_old: /,
	'... and of the privileges on the old table');
like($said, qr/NOTICE:  REVOKE ALL ON app.docs_old FROM app, borrower, lender CASCADE;/, '... which a command takes away');
called(join("\n", 'BEGIN;', (grep { !/^(?:CALL|ANALYZE) / } commands_in($said)), 'ROLLBACK'), 'constant CHECK');
# Objects of a role that may do nothing with the table are in nobody's way, ...
as_role('stranger', q{
	CREATE VIEW strange.docs AS SELECT id FROM app.docs;
	CREATE FUNCTION strange.title(app.docs) RETURNS text LANGUAGE sql AS 'SELECT NULL';
	CREATE FUNCTION strange.count() RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM app.docs; END;
	CREATE TABLE strange.copies (doc app.docs)});

# ... and a temporary view neither.
my $other = $node->background_psql('postgres');
$other->query_safe('SET ROLE app; CREATE TEMP VIEW v AS SELECT id FROM app.docs;
	CREATE FUNCTION pg_temp.f(app.docs) RETURNS int LANGUAGE sql RETURN 1');
my $before = $node->sql($privileges);
$said = called(q{CALL snowflake_partition('app.docs', 'day')}, 'constant CHECK, statistics');
like($said, $warned, 'a call warns of grants that lose their grantor, too');
$other->quit;
is($node->sql(qq{SELECT * FROM ($privileges) AS p WHERE relname !~ '^docs_\\d'}), $before,
	'the new table and its sequence have the privileges of the old ones, and what was there has no other');
is($node->sql(qq{SELECT DISTINCT 'docs' || substr(relname, 14), grantee, privilege, is_grantable FROM ($privileges) AS p
		WHERE relname ~ '^docs_\\d' ORDER BY 1, 2, 3}),
	$node->sql(qq{SELECT * FROM ($privileges) AS p WHERE relname ~ '^docs(\$|\\.)' ORDER BY 1, 2, 3}),
	'so have the partitions, without default privileges');
is($node->sql(q{SELECT count(*) FROM pg_attribute, aclexplode(attacl) WHERE attrelid = 'app.docs_old'::regclass}), '0',
	'no privilege on a column of the old table is left, by whomever it was granted');
fails_with($node, 'SELECT id FROM app.docs_old', qr/^42501 permission denied for table docs_old/,
	"the old table is closed to $_", extra_params => [ '-U', $_ ]) foreach qw(app anon lender borrower);
is(as_role('mallory', 'SELECT count(*) FROM app.docs'), '41', 'its rows are those of the new table');

# --- partitions are made ----------------------------------------------------

$said = called(q{CALL snowflake_make_partitions('app.docs', '6 days', dry_run => true)}, '');
unlike($said, qr/(?:TO|FROM) (?:postgres|mallory)\b(?!,)/, 'privileges that the owner has anyhow are not granted again');
called(join("\n", 'BEGIN;', commands_in($said), 'ROLLBACK'), 'constant in index');
called(q{CALL snowflake_make_partitions('app.docs', '6 days')}, 'constant CHECK, constant in index, predicate');
is($node->sql(q{
		SELECT DISTINCT relowner::regrole, relrowsecurity, count(*) OVER (PARTITION BY c.oid) FROM pg_inherits
		JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_index ON indrelid = c.oid
		WHERE inhparent = 'app.docs'::regclass}), 'mallory|t|5',
	'the partitions are the owner\'s, and have all indexes, though the owner may not create tables there');
is($node->sql(qq{SELECT count(*) FROM ($privileges) AS p WHERE grantee IN ('anon', 'PUBLIC')}), '0',
	'no default privilege is left on anything');
as_role('mallory', 'ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM mallory');
$node->sql(q{
	GRANT CREATE ON SCHEMA app TO mallory;
	CALL snowflake_make_partitions('app.docs', '7 days')});
as_role('mallory', q{CALL snowflake_make_partitions('app.docs', '8 days');
	ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO mallory});
is($node->sql(qq{SELECT DISTINCT 'docs' || substr(relname, 14), grantee, privilege, is_grantable FROM ($privileges) AS p
		WHERE relname ~ '^docs_\\d' ORDER BY 1, 2, 3}),
	$node->sql(qq{SELECT * FROM ($privileges) AS p WHERE relname ~ '^docs(\$|\\.)' ORDER BY 1, 2, 3}),
	'whoever calls, partitions have the privileges of the table');
is($node->sql(q{
		SELECT DISTINCT (SELECT count(*) FROM snowflake_admin.privileges(c.oid) WHERE grantee = relowner)
			= (SELECT count(*) FROM snowflake_admin.privileges('app.docs'::regclass) WHERE grantee = relowner)
		FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid WHERE inhparent = 'app.docs'::regclass}), 't',
	'... also those of the owner');

# Names that others have taken
$node->sql(q{
	CREATE TABLE app.taken (id bigint PRIMARY KEY DEFAULT next_id()) PARTITION BY RANGE (id);
	ALTER TABLE app.taken OWNER TO mallory;
	SELECT format('CREATE %s', object) FROM unnest(ARRAY['TYPE app.taken_%s AS ENUM ()', 'VIEW app.taken_%s00 AS SELECT',
		'SEQUENCE app.taken_%s00000000']) AS form, format(form, to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')) AS object \gexec
	CREATE TABLE IF NOT EXISTS app.nothing ()});
$node->sql(q{SELECT format('CREATE TABLE app.taken_%s ()', to_char(date_trunc('day', now(), 'UTC') AT TIME ZONE 'UTC',
	'YYYYMMDDHH24MISSMS')) \gexec});
called(q{CALL snowflake_make_partitions('app.taken', '0', unit => 'day')}, '');
is($node->sql(q{SELECT count(*) >= 2, bool_or(partition::text ~ '^app\.taken_\d+_[0-9a-f]{8}$')
		FROM snowflake_partitions('app.taken')}), 't|t', 'a partition has a name that nobody has taken, nor could have');

# The look at the DEFAULT partition
as_role('mallory', q{CREATE TABLE app.rest PARTITION OF app.docs DEFAULT;
	CREATE INDEX ON app.rest ((n + mine.always('constant in index of the DEFAULT partition', 1)))});
called(q{CALL snowflake_make_partitions('app.docs', '9 days')}, 'constant in index of the DEFAULT partition');

# --- partitions are dropped -------------------------------------------------

called(q{CALL snowflake_drop_partitions('app.docs', '50 days', dry_run => true)}, 'constant in index, predicate');
called(q{CALL snowflake_drop_partitions('app.docs', '50 days')},
	'row trigger, statement trigger, conditional trigger, deferred trigger, cascaded trigger');
is(as_role('mallory', 'SELECT count(*), (SELECT count(*) FROM app.notes) FROM app.docs'), '1|1', 'the old rows are deleted');

as_role('mallory', q{
	CREATE TABLE app.logs (} . $columns =~ s/,\s+nr .*//r . q{) PARTITION BY RANGE (id);
	SELECT format('CREATE TABLE app.logs_%s PARTITION OF app.logs FOR VALUES FROM (%s) TO (%s)', i,
		snowflake_min_id(t), snowflake_min_id(t + interval '24 hours'))
	FROM generate_series(0, 3) AS i, date_trunc('day', now() - (5 - i) * interval '24 hours') AS t \gexec
	CREATE TABLE app.sights (log_id bigint REFERENCES app.logs, n bigint);
	CREATE INDEX ON app.sights ((log_id + mine.always('index of the referring table', 1)));
	} . armed('app.logs') . q{;
	INSERT INTO app.logs (id) SELECT snowflake_id(now() - hours * interval '1 hour', 5, 0) FROM unnest('{100,48}'::int[]) AS hours;
	INSERT INTO app.sights SELECT min(id) FROM app.logs});
$said = called(q{CALL snowflake_drop_partitions('app.logs', '3 days', dry_run => true)}, 'index of the referring table');
my ($remedy) = $said =~ /HINT:  Delete such rows first: (SELECT snowflake_admin.do_as_owner\('app.sights', .*;)$/m;
ok($remedy, 'a superuser is told to delete rows that refer to old ones as their owner') or diag $said;
as_role('mallory', q{
	CREATE TRIGGER after AFTER DELETE ON app.sights FOR EACH ROW EXECUTE FUNCTION mine.on_change('remedy')});
called($remedy, 'remedy');
as_role('mallory', q{
	ALTER TABLE app.sights DROP CONSTRAINT sights_log_id_fkey,
		ADD FOREIGN KEY (log_id) REFERENCES app.logs ON DELETE SET NULL;
	CREATE TRIGGER before BEFORE UPDATE ON app.sights FOR EACH ROW EXECUTE FUNCTION mine.on_change('SET NULL');
	CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON app.sights DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
		EXECUTE FUNCTION mine.on_change('deferred after SET NULL');
	INSERT INTO app.sights SELECT min(id) FROM app.logs});
called(q{CALL snowflake_drop_partitions('app.logs', '3 days')},
	'index of the referring table, SET NULL, deferred after SET NULL');
is($node->sql(q{SELECT count(*) FROM snowflake_partitions('app.logs')}), '2', 'old partitions are dropped');

# Policies that would hide rows from the owner, who deletes them
$node->sql('ALTER TABLE app.docs FORCE ROW LEVEL SECURITY');
fails_with($node, q{CALL snowflake_drop_partitions('app.docs', '50 days')},
	qr/^42501 row-level security can hide rows of table app.docs from its owner/,
	'rows that policies hide are not left behind');

# --- tables of others ---------------------------------------------------------

as_role('mallory', 'DROP TABLE app.sights');
$node->sql(q{
	CREATE TABLE app.users (id bigint PRIMARY KEY DEFAULT next_id(), n int);
	ALTER TABLE app.users OWNER TO app; GRANT REFERENCES ON app.users, app.logs TO stranger;
	GRANT CREATE ON SCHEMA app TO app});
as_role('stranger', q{
	CREATE TABLE strange.users (id bigint REFERENCES app.users);
	CREATE TABLE strange.logs (id bigint REFERENCES app.logs);
	CREATE INDEX ON strange.users ((id + strange.always('index of a stranger', 1)));
	CREATE INDEX ON strange.logs ((id + strange.always('index of a stranger', 1)));
	GRANT SELECT ON strange.users, strange.logs TO PUBLIC});
fails_with($node, q{CALL snowflake_partition('app.users', 'day', dry_run => true)},
	qr/^55000 table strange.users, whose foreign keys lead to table app.users, has another owner/,
	"a table of another owner that refers to the table is named to $_", extra_params => [ '-U', $_ ]) foreach 'app', 'postgres';
{
	my $offset = -s $node->logfile;
	my $refused = qr/^55000 table strange.logs, whose foreign keys lead to table app.logs, has another owner/;
	foreach my $role ('mallory', 'postgres')
	{
		fails_with($node, "CALL snowflake_drop_partitions('app.logs', '2 days'$_)", $refused,
			"... to $role, who drops partitions$_", extra_params => [ '-U', $role ]) foreach '', ', dry_run => true';
	}
	unlike(slurp_file($node->logfile, $offset), qr/index of a stranger/, "... and no code of the other owner's runs");
}

# --- what PostgreSQL checks as the owner --------------------------------------

as_role('stranger', 'DROP TABLE strange.logs');
$node->sql('GRANT CREATE ON SCHEMA app TO mallory');
as_role('mallory', q{
	INSERT INTO app.logs (id) SELECT snowflake_min_id(min(until) - interval '1 hour') FROM snowflake_partitions('app.logs');
	CREATE TABLE app.sights (log_id bigint REFERENCES app.logs);
	INSERT INTO app.sights SELECT min(id) FROM app.logs;
	REVOKE SELECT ON app.sights FROM mallory});
my $drop = q{CALL snowflake_drop_partitions('app.logs', '0')};
fails_with($node, $drop,
	qr/^42501 role mallory, which owns table app.logs, may not read table app.sights, which refers to it/,
	'a table that the owner may not read, so that PostgreSQL would detach nothing, is named');
as_role('mallory', q{
	GRANT SELECT ON app.sights TO mallory;
	CREATE POLICY nothing ON app.sights USING (false);
	ALTER TABLE app.sights ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY});
fails_with($node, $_, qr/^42501 query would be affected by row-level security policy for table "sights"/,
	"rows that a policy hides from the owner are not left without what they refer to: $_")
  foreach $drop, $drop =~ s/\)$/, dry_run => true)/r;

$node->sql(q{
	CREATE FUNCTION app.audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
	CREATE FUNCTION app.audit_all() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
	REVOKE EXECUTE ON FUNCTION app.audit(), app.audit_all() FROM PUBLIC;
	CREATE TABLE app.audited (id bigint PRIMARY KEY DEFAULT next_id());
	CREATE TRIGGER audit AFTER INSERT ON app.audited FOR EACH ROW EXECUTE FUNCTION app.audit();
	CREATE TRIGGER audit AFTER INSERT ON app.logs FOR EACH ROW EXECUTE FUNCTION app.audit();
	-- No partition gets this one.
	CREATE TRIGGER audit_all AFTER INSERT ON app.logs FOR EACH STATEMENT EXECUTE FUNCTION app.audit_all();
	ALTER TABLE app.audited OWNER TO mallory});
my $unable = qr/may not execute the function app.audit\(\) of its trigger audit/;
fails_with($node, q{CALL snowflake_partition('app.audited', 'day', dry_run => true)},
	qr/^55000 cannot partition table app.audited: role mallory $unable/, 'a trigger that a partition cannot get is named');
fails_with($node, q{CALL snowflake_make_partitions('app.logs', '30 days')},
	qr/^42501 permission denied for function app.audit\(\)/, '... when partitions are made, too');
$node->sql('GRANT EXECUTE ON FUNCTION app.audit() TO mallory');
called(q{CALL snowflake_make_partitions('app.logs', '30 days')}, '');

# --- what proves the bound ----------------------------------------------------

# Between the first step and the last one, a CHECK is true for all IDs.  PostgreSQL would not look for
# rows of which it can prove that there are none.
as_role('mallory', q{
	CREATE TABLE mine.parents (id bigint PRIMARY KEY DEFAULT next_id());
	CREATE TABLE mine.children (id bigint PRIMARY KEY DEFAULT next_id() REFERENCES mine.parents ON DELETE CASCADE,
		CONSTRAINT snowflake_partition CHECK (id < snowflake_admin.partition_limit()));
	GRANT SELECT, DELETE ON mine.parents TO stranger;
	INSERT INTO mine.parents SELECT next_id() FROM generate_series(1, 3); INSERT INTO mine.children TABLE mine.parents});
as_role('stranger', q{
	SET snowflake_admin.partition_bound = '1'; SET constraint_exclusion = on; DELETE FROM mine.parents});
is(as_role('mallory', 'SELECT count(*) FROM mine.children'), '0',
	'no setting of another role hides rows from a foreign key of a table that is to become a partition');

# The owner's code runs inside the command that attaches the table.
as_role('mallory', q{
	CREATE FUNCTION mine.limit() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT snowflake_admin.partition_limit()';
	CREATE FUNCTION mine.look(n bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
	DECLARE
		context text;
		in_expression bigint := snowflake_admin.partition_limit();
		in_query bigint := (SELECT snowflake_admin.partition_limit() FROM pg_catalog.pg_class LIMIT 1);
		in_function bigint := mine.limit();
		in_command bigint;
	BEGIN
		EXECUTE 'SELECT snowflake_admin.partition_limit()' INTO in_command;
		GET DIAGNOSTICS context = PG_CONTEXT;
		IF context ~ 'ATTACH PARTITION mine.looking' THEN
			RAISE LOG 'hostile code: limits in ATTACH PARTITION: %', ARRAY[in_expression, in_query, in_function, in_command];
		END IF;
		RETURN n;
	END $$;
	CREATE TABLE mine.looking (id bigint PRIMARY KEY DEFAULT next_id(), n bigint, CHECK (mine.look(1) > 0));
	INSERT INTO mine.looking DEFAULT VALUES});
{
	my $offset = -s $node->logfile;
	$node->sql(q{CALL snowflake_partition('mine.looking', 'day')});
	my %limits = map { $_ => 1 } slurp_file($node->logfile, $offset) =~ /limits in ATTACH PARTITION: (.*)/g;
	is(join("\n", keys %limits), '{' . join(',', ('9223372036854775807') x 4) . '}',
		'code that runs inside ATTACH PARTITION sees no bound, in whatever statement');
}

# --- names that mean something ------------------------------------------------

$node->sql(q{
	CREATE TABLE app.named (id bigint PRIMARY KEY DEFAULT next_id(), n int);
	ALTER TABLE app.named OWNER TO mallory;
	CREATE FUNCTION app.partition_limit() RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 7';
	ALTER TABLE app.named ADD CONSTRAINT snowflake_partition CHECK (id < app.partition_limit());
	CREATE TABLE app.renamed (id bigint PRIMARY KEY DEFAULT next_id());
	CREATE TABLE strange.anything (); ALTER TABLE strange.anything SET SCHEMA app;
	ALTER TABLE app.anything RENAME TO renamed_old});
my $refused = q{CALL snowflake_partition('app.named', 'day')};
fails_with($node, $refused,
	qr/^55000 constraint snowflake_partition of table app.named is not of snowflake_partition\(\)/,
	'a constraint of our name that says something else is not taken for ours');
called(q{CALL snowflake_partition('app.renamed', 'day')}, '');
is($node->sql(q{SELECT partition FROM snowflake_partitions('app.renamed') LIMIT 1}), 'app.renamed_old2',
	'a stranger who takes the name of the old table stops nothing');
fails_with($node, $_, qr/^42501 must be owner of table app.docs/, "a stranger: $_", extra_params => [ '-U', 'stranger' ])
  foreach q{CALL snowflake_partition('app.docs', 'day')}, q{CALL snowflake_make_partitions('app.docs')},
  q{CALL snowflake_drop_partitions('app.docs', '1 day')};
done_testing();
