# snowflake_largest_ids() returns what a query would, from any table with an index, and
# runs nothing that others made: no index expression, partition key, cast, operator or
# policy.  What it cannot read it names.

use SnowflakeTest;

my $node = server_in_utc('largest', undef, allows_streaming => 1);

sub value { return $node->sql(@_) }

value(q{
	CREATE EXTENSION snowflake;
	CREATE FUNCTION largest_ids(tab regclass, col name, low bigint, high bigint, most integer,
		OUT ids bigint[], OUT obstacle text)
	AS '$libdir/snowflake', 'snowflake_largest_ids' LANGUAGE C VOLATILE STRICT;

	-- Compare with a query, for bounds on, below and above values.  Return "same", or how many
	-- calls returned something else, and those three of them that returned least.
	CREATE FUNCTION compared(tab regclass, col name DEFAULT 'id') RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		bounds bigint[];
		low bigint;
		high bigint;
		most int;
		expected bigint[];
		found record;
		calls int := 0;
		wrong text[] := '{}';
		is_table boolean := (SELECT relkind = 'r' FROM pg_class WHERE oid = tab);
		only_ text := CASE WHEN is_table THEN 'ONLY' ELSE '' END;
	BEGIN
		EXECUTE format('SELECT array_agg(DISTINCT v + d) || ARRAY[%L, %L]::bigint[]
			FROM (SELECT %I::bigint AS v FROM %s %s ORDER BY random() LIMIT 4) s, generate_series(-1, 1) d
			WHERE v BETWEEN -9e18 AND 9e18', -9223372036854775807 - 1, 9223372036854775807, col, only_, tab) INTO bounds;
		FOREACH low IN ARRAY bounds LOOP
			FOREACH high IN ARRAY bounds LOOP
				FOREACH most IN ARRAY ARRAY[1, 3, 17, 1000000] LOOP
					EXECUTE format('SELECT array_agg(v ORDER BY v DESC) FROM (SELECT %I::bigint AS v FROM %s %s
						WHERE %1$I::bigint BETWEEN $1 AND $2 ORDER BY 1 DESC LIMIT $3) s', col, only_, tab)
					INTO expected USING low, high, most;
					found := largest_ids(tab, col, low, high, most);
					calls := calls + 1;
					IF found.ids IS DISTINCT FROM expected OR found.obstacle IS NOT NULL THEN
						wrong := wrong || format('largest_ids(%L, %L, %s, %s, %s) returns %L, obstacle %L, in place of %L',
							tab, col, low, high, most, found.ids, found.obstacle, expected);
					END IF;
				END LOOP;
			END LOOP;
		END LOOP;
		RETURN CASE WHEN calls < 4 THEN 'few calls' WHEN wrong = '{}' THEN 'same' ELSE format(
			E'%s of %s calls for %s %s, such as\n%s', cardinality(wrong), calls,
			CASE WHEN is_table THEN 'table' ELSE 'partitioned table' END, tab,
			array_to_string(ARRAY(SELECT w FROM unnest(wrong) AS w ORDER BY length(w) LIMIT 3), E'\n')) END;
	END $$});

# A table, made and filled by SQL, reads as a query does.
sub reads
{
	my ($what, $sql, @arguments) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	value($sql);
	my $arguments = join ', ', map { "'$_'" } @arguments ? @arguments : 't';
	is(value("SELECT compared($arguments)"), 'same', "largest_ids() returns what a query does: $what")
	  or diag "The table: $sql";
	value('DROP TABLE IF EXISTS t CASCADE; DROP DOMAIN IF EXISTS id CASCADE');
}

# --- tables -----------------------------------------------------------------

my $many = 'SELECT (random() * 1e6)::bigint * (random() * 1e12)::bigint FROM generate_series(1, 1000)';
reads('bigint', "CREATE TABLE t (id bigint PRIMARY KEY); INSERT INTO t $many ON CONFLICT DO NOTHING");
reads('the limits of bigint', q{CREATE TABLE t (id bigint PRIMARY KEY);
	INSERT INTO t VALUES (-9223372036854775808), (0), (9223372036854775807)});
reads('an empty table', 'CREATE TABLE t (id bigint PRIMARY KEY)');
reads('integer, also negative', 'CREATE TABLE t (id int PRIMARY KEY);
	INSERT INTO t SELECT n * 40000 FROM generate_series(-53000, 53000, 101) n');
reads('smallint', 'CREATE TABLE t (id smallint PRIMARY KEY); INSERT INTO t SELECT generate_series(-32000, 32000, 100)');
reads('snowflake', "CREATE TABLE t (id snowflake PRIMARY KEY); INSERT INTO t $many ON CONFLICT DO NOTHING");
reads('a domain of a domain of snowflake', "CREATE DOMAIN id AS snowflake; CREATE DOMAIN small_id AS id;
	CREATE TABLE t (id small_id PRIMARY KEY); INSERT INTO t $many ON CONFLICT DO NOTHING");
reads('a domain of integer', 'CREATE DOMAIN id AS int; CREATE TABLE t (id id PRIMARY KEY);
	INSERT INTO t SELECT generate_series(1, 100)');
reads('duplicates and NULL', "CREATE TABLE t (id bigint); CREATE INDEX ON t (id);
	INSERT INTO t SELECT nullif(n % 7, 3) FROM generate_series(1, 300) n");
reads('a descending index', "CREATE TABLE t (id bigint); CREATE INDEX ON t (id DESC); INSERT INTO t $many");
reads('a descending index with NULL last', "CREATE TABLE t (id bigint); CREATE INDEX ON t (id DESC NULLS LAST);
	INSERT INTO t VALUES (NULL); INSERT INTO t $many");
reads('the first column of an index of several', "CREATE TABLE t (note text, id bigint);
	CREATE INDEX ON t (id, note, (lower(note))); INSERT INTO t (id) $many");
reads('indexes that do not serve, and one that does', "CREATE TABLE t (note text, id bigint);
	CREATE INDEX ON t (id) WHERE id > 5; CREATE INDEX ON t ((id + 1)); CREATE INDEX ON t (note, id);
	CREATE INDEX ON t USING hash (id); CREATE INDEX ON t USING brin (id); CREATE INDEX last ON t (id); INSERT INTO t (id) $many");
reads('indexes on columns of the same type before and after it', "CREATE TABLE t (before bigint, id bigint, after bigint);
	CREATE INDEX ON t (before); CREATE INDEX ON t (after, id); CREATE INDEX ON t (id);
	INSERT INTO t SELECT n, 5000 - n, n * 2 FROM generate_series(1, 1000) AS n");
reads('a column that old rows lack', q{CREATE TABLE t (n int); INSERT INTO t SELECT generate_series(1, 20);
	ALTER TABLE t ADD id bigint DEFAULT 55; INSERT INTO t VALUES (0, 54), (0, 56); CREATE INDEX ON t (id)});
reads('dropped columns and strange names', q{CREATE TABLE "T's" (a int, b text, "The ID" bigint);
	ALTER TABLE "T's" DROP a; CREATE INDEX ON "T's" ("The ID"); INSERT INTO "T's" SELECT 'b', generate_series(1, 50)},
	q{"T''s"}, 'The ID');
reads('dead rows', "CREATE TABLE t (id bigint PRIMARY KEY, n int DEFAULT 0); INSERT INTO t SELECT generate_series(1, 5000);
	DELETE FROM t WHERE id > 4000; UPDATE t SET n = 1; UPDATE t SET id = -id WHERE id % 3 = 0");
reads('a parent of tables, itself only', 'CREATE TABLE t (id bigint PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 50);
	CREATE TABLE other () INHERITS (t); INSERT INTO other VALUES (1000)');

# --- partitions -------------------------------------------------------------

my $parts = sub {
	my ($by, @bounds) = @_;
	my $n = 0;
	return "CREATE TABLE t (id bigint, kind int) PARTITION BY $by; CREATE INDEX ON t (id);"
	  . join(';', map { 'CREATE TABLE t' . $n++ . " PARTITION OF t FOR VALUES $_" } @bounds)
	  . '; INSERT INTO t SELECT n, n % 3 FROM generate_series(0, 2999) n' };
reads('partitions by range', $parts->('RANGE (id)', 'FROM (0) TO (1000)', 'FROM (1000) TO (2000)', 'FROM (2000) TO (9000)'));
reads('partitions by list', $parts->('LIST (kind)', 'IN (0)', 'IN (1)', 'IN (2)'));
reads('partitions by hash', $parts->('HASH (id)', map { "WITH (MODULUS 3, REMAINDER $_)" } 0 .. 2));
reads('nested partitions, with other numbers of the column', q{
	CREATE TABLE t (a int, id bigint, kind int) PARTITION BY LIST (kind);
	ALTER TABLE t DROP a;
	CREATE TABLE inner_ (kind int, x text, id bigint) PARTITION BY RANGE (id);
	ALTER TABLE inner_ DROP x;
	CREATE TABLE low (b int, c int, d int, kind int, id bigint);
	ALTER TABLE low DROP b, DROP c, DROP d;
	ALTER TABLE inner_ ATTACH PARTITION low FOR VALUES FROM (0) TO (500);
	CREATE TABLE high PARTITION OF inner_ FOR VALUES FROM (500) TO (5000);
	ALTER TABLE t ATTACH PARTITION inner_ FOR VALUES IN (1, 2);
	CREATE TABLE rest PARTITION OF t DEFAULT;
	CREATE TABLE without PARTITION OF t FOR VALUES IN (77) PARTITION BY LIST (kind);
	CREATE INDEX ON low (id);
	CREATE INDEX ON high (id DESC);
	CREATE INDEX ON rest (id, kind);
	INSERT INTO t SELECT n, n % 4 FROM generate_series(0, 999) n});
reads('a partitioned table without partitions', 'CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY RANGE (id)');

# --- what others do ---------------------------------------------------------

sub largest
{
	my ($table, %params) = @_;
	my $before = $params{before} // '';
	return (split /\n/, value("$before; SELECT ids, obstacle FROM largest_ids('$table', '" . ($params{column} // 'id')
			. "', 1, 9e18::bigint, 2)", extra_params => [ '-U', $params{role} // 'postgres' ]))[-1];
}

value(q{CREATE TABLE seen_by_me (id bigint PRIMARY KEY); INSERT INTO seen_by_me VALUES (1), (2), (3)});
my $other = session($node);
$other->query_safe('BEGIN; INSERT INTO seen_by_me VALUES (9); DELETE FROM seen_by_me WHERE id = 3');
is(largest('seen_by_me'), '{3,2}|', 'what others have not committed does not count');
my $reader = session($node);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$other->query_safe('COMMIT');
is(largest('seen_by_me'), '{9,2}|', '... what they have counts');
like($reader->query_safe(q{SELECT ids FROM largest_ids('seen_by_me', 'id', 1, 10, 2)}), qr/\{3,2\}/, '... unless the snapshot is older');
$reader->query_safe('COMMIT');

$other->query_safe('BEGIN; LOCK TABLE seen_by_me');
my (undef, undef, $said) = $node->psql('postgres', q{\set VERBOSITY sqlstate
	SET lock_timeout = '100ms';
	SELECT * FROM largest_ids('seen_by_me', 'id', 1, 10, 2)});
like($said, qr/55P03/, "lock_timeout ends the wait for another's lock");
value(q{CREATE ROLE stranger LOGIN; CREATE ROLE reader LOGIN; CREATE ROLE reader_of_column LOGIN});
is(largest('seen_by_me', role => 'stranger', before => q{SET lock_timeout = '100ms'}), '|no privilege',
	'a role without privileges does not even wait');
$other->query_safe('ROLLBACK');

value(q{CREATE TABLE parts (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
	CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
	CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
	INSERT INTO parts VALUES (5), (15)});
is(value(q{BEGIN; SELECT ids FROM largest_ids('parts', 'id', 1, 100, 5); SELECT ids FROM largest_ids('seen_by_me', 'id', 1, 2, 5);
	SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation >= 16384}), "{15,5}\n{2,1}\n0", 'no lock is held after the call');

# --- what is not run --------------------------------------------------------

value(q{
	CREATE ROLE mallory LOGIN;
	CREATE TABLE seen (place text, who name);
	GRANT SELECT, INSERT ON seen TO PUBLIC;
	CREATE SCHEMA hostile AUTHORIZATION mallory;
	GRANT USAGE ON SCHEMA hostile TO PUBLIC;
	SET SESSION AUTHORIZATION mallory;
	SET search_path = hostile, public;
	CREATE FUNCTION note(place text) RETURNS int LANGUAGE plpgsql
	AS $$ BEGIN INSERT INTO public.seen VALUES (place, current_user); RETURN 1; END $$;
	CREATE FUNCTION immutable(place text, n int) RETURNS int IMMUTABLE LANGUAGE plpgsql
	AS $$ BEGIN PERFORM hostile.note(place); RETURN n; END $$;
	CREATE TABLE t (id bigint, n int);
	CREATE INDEX ON t ((n + immutable('index', 5)));
	CREATE INDEX ON t (id) WHERE n > immutable('predicate', 5);
	CREATE INDEX ON t (id, (n + immutable('later column', 5)));
	CREATE POLICY t ON t USING (immutable('policy', 5) = n);
	ALTER TABLE t ENABLE ROW LEVEL SECURITY;
	GRANT SELECT ON t TO reader;
	INSERT INTO t SELECT n, n FROM generate_series(1, 100) n;
	CREATE TABLE parts (id bigint, n int, CHECK (n > immutable('check', 0))) PARTITION BY RANGE ((n + immutable('key', 5)));
	CREATE TABLE part PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
	CREATE INDEX ON part ((n + immutable('index of partition', 5)));
	CREATE INDEX ON part (id);
	INSERT INTO parts SELECT n, n FROM generate_series(1, 100) n;
	CREATE TYPE pair AS (a bigint, b bigint);
	CREATE FUNCTION pair_as_bigint(pair) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT hostile.note(''cast'')::bigint';
	CREATE CAST (pair AS bigint) WITH FUNCTION pair_as_bigint(pair) AS IMPLICIT;
	CREATE TABLE pairs (id pair PRIMARY KEY);
	INSERT INTO pairs VALUES ((1, 2));
	CREATE DOMAIN id AS bigint;
	CREATE FUNCTION ge(id, bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT hostile.note(''operator'') = 1';
	CREATE OPERATOR >= (FUNCTION = ge, LEFTARG = id, RIGHTARG = bigint);
	CREATE TABLE domains (id id PRIMARY KEY);
	INSERT INTO domains VALUES (1), (2), (3)});
foreach my $case ([ 't', '{100,99}|' ], [ 'parts', '{100,99}|' ], [ 'pairs', '|type pair' ], [ 'domains', '{3,2}|' ])
{
	my ($table, $expected) = @$case;
	value('TRUNCATE seen');
	is(largest("hostile.$table", before => 'SET search_path = hostile, public, pg_catalog'), $expected,
		"$table of a hostile owner can be looked at");
	is(value('SELECT count(*) FROM seen'), '0', '... and runs nothing of the owner');
}
value('TRUNCATE seen; SELECT FROM hostile.t WHERE id > 5; SELECT FROM hostile.parts WHERE id > 5');
like(value(q{SELECT string_agg(DISTINCT place || ' ' || who, ', ' ORDER BY place || ' ' || who) FROM seen}),
	qr/index of partition postgres.*index postgres/, '... where a query does (control)');

# --- what it cannot read ----------------------------------------------------

value('TRUNCATE seen');
is(largest('hostile.t', role => 'reader'), '|policies hide rows', 'policies');
is(largest('hostile.t', role => 'reader', before => 'SET row_security = off'), '|policies hide rows', '... also without row_security');
is(value('SELECT count(*) FROM seen'), '0', '... which are not run');
value(q{GRANT SELECT ON parts TO reader; GRANT SELECT (id) ON parts TO reader_of_column});
is(largest('parts', role => $_), '{15,5}|', "$_ needs no privilege on partitions") foreach 'reader', 'reader_of_column';
is(largest('part_1', role => 'reader'), '|no privilege', '... but on a partition that is named');
is(largest('hostile.parts', role => 'stranger'), '|no privilege', 'a stranger has none');

my $temp = session($node);
$temp->query_safe('CREATE TEMP TABLE of_session (id bigint PRIMARY KEY)');
value(q{
	CREATE TABLE plain (id bigint, note text PRIMARY KEY, amount numeric);
	CREATE INDEX ON plain (id) WHERE id > 0;
	CREATE INDEX ON plain ((id + 0));
	CREATE INDEX ON plain USING hash (id);
	CREATE INDEX invalid ON plain (id);
	UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'invalid'::regclass;
	CREATE INDEX ON plain (amount);
	CREATE VIEW a_view AS SELECT 1::bigint AS id;
	CREATE FOREIGN DATA WRAPPER nowhere;
	CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
	CREATE TABLE mixed (id bigint, kind int) PARTITION BY LIST (kind);
	CREATE TABLE "Mixed 1" PARTITION OF mixed FOR VALUES IN (1);
	CREATE INDEX ON "Mixed 1" (id);
	CREATE FOREIGN TABLE far_away PARTITION OF mixed FOR VALUES IN (2) SERVER nowhere});
is(largest('plain'), '|no index', 'no index of all rows');
is(largest('plain', column => 'note'), '|type text', 'a column of another type');
is(largest('plain', column => 'amount'), '|type numeric', '... also of numbers');
is(largest('plain', column => 'nothing'), '|no such column', 'no column');
is(largest('plain', column => 'ctid'), '|no such column', '... a system column');
is(largest('a_view'), '|not a table', 'a view');
is(value(q{SELECT obstacle FROM largest_ids(1::regclass, 'id', 1, 2, 3)}), 'no such table', 'no table');
is(value(q{SELECT obstacle FROM pg_class, largest_ids(pg_class.oid, 'id', 1, 2, 3) WHERE relname = 'of_session'}),
	'temporary table of another session', 'a temporary table of another session');
is(largest('mixed'), '|foreign table (partition public.far_away)', 'a foreign partition');
value('DROP FOREIGN TABLE far_away; DROP INDEX "Mixed 1_id_idx"');
is(largest('mixed'), '|no index (partition public."Mixed 1")', 'a partition without an index');
foreach my $most (0, -1, 1000001)
{
	(undef, undef, $said) = $node->psql('postgres', qq{\\set VERBOSITY verbose
		SELECT * FROM largest_ids('plain', 'id', 1, 2, $most)});
	like($said, qr/ERROR:  22023: most $most is out of range/, "$most values");
}

# --- a standby --------------------------------------------------------------

value(q{CREATE UNLOGGED TABLE unlogged (id bigint PRIMARY KEY); INSERT INTO unlogged VALUES (5)});
is(largest('unlogged'), '{5}|', 'an unlogged table');
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
value(q{INSERT INTO parts VALUES (16)});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->sql(q{SELECT ids, obstacle FROM largest_ids('parts', 'id', 1, 100, 5)}), '{16,15,5}|', 'a standby has the rows');
is($standby->sql(q{SELECT ids, obstacle FROM largest_ids('unlogged', 'id', 1, 100, 5)}), '|unlogged table on a standby',
	'... but not those of unlogged tables');
$standby->stop;
$_->quit foreach $other, $reader, $temp;

done_testing();
