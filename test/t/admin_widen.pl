# snowflake_widen(): an integer key and all that refers to it become bigint while
# sessions insert, change and delete rows.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('widen', 'loaded');

# One key has it all: a chain of foreign keys, one to itself, a composite one, options.
sub make_tables
{
	my ($database, $type, $rows) = @_;

	value('postgres', qq{ALTER DATABASE $database SET search_path = "My App", public});
	value($database, <<EOS);
CREATE SCHEMA "My App";
CREATE TABLE photos (
	id $type GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant integer NOT NULL DEFAULT 1, title text,
	"Parent Id" integer REFERENCES photos, size integer GENERATED ALWAYS AS (length(title)) STORED,
	updated_at timestamptz DEFAULT '2000-01-01Z', UNIQUE (tenant, id), CHECK (id > 0 OR title = ''));
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.updated_at := now(); RETURN NEW; END';
CREATE TRIGGER touch BEFORE UPDATE ON photos FOR EACH ROW EXECUTE FUNCTION touch();
CREATE TABLE comments (
	n integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text,
	photo_id integer NOT NULL REFERENCES photos ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
	UNIQUE (n, photo_id) INCLUDE (n));
ALTER TABLE comments REPLICA IDENTITY FULL, CLUSTER ON comments_n_photo_id_n1_key, ALTER photo_id SET STATISTICS 7;
ALTER TABLE comments ADD CHECK (photo_id <> -1) NOT VALID;
CREATE INDEX ON comments ((photo_id % 10), (n + 1)) WITH (fillfactor = 60) WHERE photo_id > 10;
ALTER INDEX comments_expr_expr1_idx ALTER COLUMN 1 SET STATISTICS 900;
CREATE STATISTICS "My stats" (dependencies, mcv) ON n, photo_id FROM comments;
ALTER STATISTICS "My stats" SET STATISTICS 300;
COMMENT ON STATISTICS "My stats" IS 'statistics';
CREATE TABLE likes (
	tenant integer DEFAULT 1, photo_id integer DEFAULT 7, name text,
	FOREIGN KEY (tenant, photo_id) REFERENCES photos (tenant, id) MATCH FULL ON UPDATE CASCADE ON DELETE SET DEFAULT);
CREATE INDEX "by photo" ON likes (photo_id);
COMMENT ON COLUMN photos.id IS 'it''s';
COMMENT ON INDEX comments_expr_expr1_idx IS 'an index';
COMMENT ON CONSTRAINT comments_photo_id_fkey ON comments IS 'a key';
GRANT SELECT (photo_id), INSERT (photo_id) ON comments TO PUBLIC;
GRANT USAGE ON SEQUENCE photos_id_seq TO PUBLIC;
CREATE TABLE ledger (photo bigint PRIMARY KEY, deleted boolean DEFAULT false);
INSERT INTO ledger SELECT generate_series(1, $rows);
INSERT INTO photos (title, "Parent Id") SELECT repeat('old', 300), nullif(photo / 2, 0) FROM ledger ORDER BY photo;
INSERT INTO comments (body, photo_id) SELECT 'on ' || photo || repeat(' ', 500), photo FROM ledger;
INSERT INTO likes SELECT 1, photo, 'on ' || photo FROM ledger;
VACUUM ANALYZE;
EOS
	return tables_of($database);
}

# What psql shows of the tables, without the OIDs of anything
sub tables_of
{
	my ($database) = @_;
	my $shown = value($database, <<'EOS');
\pset tuples_only off
\d+ *.(photos|comments|likes|t)
\ds+ *.*_seq
\df *.*widen*
\dp *.(photos|comments|likes|photos_id_seq)
SELECT pg_describe_object(classoid, objoid, objsubid) AS object, description FROM pg_description
WHERE pg_describe_object(classoid, objoid, objsubid) ~ 'comments|photos|stats' ORDER BY 1;
SELECT attrelid::regclass, attnum, attstattarget FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relkind = 'i' AND attstattarget >= 0 AND relnamespace::regnamespace::text = '"My App"';
EOS

	# What psql of 18 and later shows otherwise
	return $shown =~ s/^Not-null constraints:\n(?: +".*\n)+//mgr =~ s/^List of sequences$/List of relations/mgr;
}

# --- under load -----------------------------------------------------------

my $before = make_tables('loaded', 'integer', 10000);
my $load = start_sessions('loaded', <<'EOS', '-R', '60');
\set old random(1, 10000)
\set delete random(0, 3)
BEGIN;
INSERT INTO photos (title, "Parent Id") VALUES ('new', :old) RETURNING id AS photo \gset
INSERT INTO comments (body, photo_id) VALUES ('on ' || :photo, :photo) RETURNING n AS comment \gset
INSERT INTO likes (tenant, photo_id, name) VALUES (1, :photo, 'on ' || :photo), (NULL, NULL, NULL);
INSERT INTO ledger VALUES (:photo);
COMMIT;
UPDATE photos SET title = 'changed' WHERE id = :old;
UPDATE comments SET body = 'on ' || :old, photo_id = :old WHERE n = :comment;
SELECT 1 / (count(*) = 1)::integer FROM comments JOIN photos ON photos.id = photo_id
WHERE n = :comment AND body = 'on ' || photos.id;
\if :delete
\else
BEGIN;
DELETE FROM photos WHERE id = :photo;
UPDATE ledger SET deleted = true WHERE photo = :photo;
COMMIT;
\endif
EOS
my $call = q{CALL snowflake_widen('photos', 'id', tries => 1000)};
my $indexes = q{SELECT * FROM snowflake_widen_indexes('photos', 'id')};
like(run_psql('loaded', $call),
	qr/ UNIQUE INDEX CONCURRENTLY snowflake_widen_\d+ ON "My App".photos USING btree \(snowflake_widen_1\);/,
	'indexes of large tables are left to the caller');
unlike(value('loaded', $indexes), qr/ ON "My App".likes/, '... and those of small tables are not');
value('loaded', qq{
	$indexes LIMIT 1 \\gexec
	-- as if it had been cancelled
	UPDATE pg_index SET indisvalid = false FROM pg_class
	WHERE pg_class.oid = indexrelid AND relname LIKE 'snowflake\\_widen%' AND indisunique});
like(value('loaded', $indexes),
	qr/DROP INDEX CONCURRENTLY "My App".(snowflake_widen_\d+)\nCREATE UNIQUE INDEX CONCURRENTLY \1 /,
	'an invalid index is to be created again');
value('loaded', "$indexes \\gexec");
is(value('loaded', $indexes), '', 'no index lacks then');
succeeds('loaded', $call, 'the second call goes on and swaps the columns');
sessions_go_on($load, 'sessions go on after the swap');
end_sessions($load);

# New columns are the last ones of their tables.
$before =~ s/^(id|photo_id|Parent Id)\|integer\|/$1|bigint|/mg;
$before =~ s/photo_id % 10/photo_id % 10::bigint/;
my ($had, $have) = map { join "\n", sort split /\n/ } $before, tables_of('loaded');
is($have, $had, 'but for the type, the tables have all that they had, and no more');
holds('loaded',
	'no photo is lost, and none that was deleted is there' => q{array_agg(id ORDER BY id)
		= (SELECT array_agg(photo ORDER BY photo) FROM ledger WHERE NOT deleted) FROM photos},
	'photos have their parents' =>
	q{bool_and("Parent Id" IS NOT DISTINCT FROM nullif(id / 2, 0)) FROM photos WHERE id <= 10000},
	'no trigger of the application fired but for its own changes' =>
	q{bool_and((title = 'changed') = (updated_at > '2000-01-01Z')) FROM photos},
	'comments are on their photos' => q{bool_and(rtrim(body) = 'on ' || photo_id) FROM comments},
	'no comment is lost, as in the end all were on old ones' =>
	'count(*) = (SELECT count(*) FROM ledger) FROM comments',
	'likes are on their photos, or where those were deleted, on the default' =>
	q{bool_and(name IS NOT DISTINCT FROM 'on ' || photo_id OR photo_id = 7 AND deleted)
		FROM likes LEFT JOIN ledger ON 'on ' || photo = name},
	'no like is lost' => 'count(photo_id) = (SELECT count(*) FROM ledger) FROM likes');

# --- killed ---------------------------------------------------------------

my $sums = q{
	SELECT sum(id), sum("Parent Id") FROM photos;
	SELECT sum(n - photo_id) FROM comments;
	SELECT sum(photo_id) FROM likes;
	INSERT INTO photos (title) VALUES ('') RETURNING id > 300};
my $kills = run_killed_at_each_step('killed', sub { make_tables('killed', 'smallint', 300) }, $call,
	sub { tables_of('killed') . value('killed', $sums) }, once_a_transaction => 1);
cmp_ok($kills, '>', 8, "killed $kills times");
is(value('killed', q{
		ALTER SEQUENCE photos_id_seq RESTART 5000000000;
		WITH p AS (INSERT INTO photos (title) VALUES ('large') RETURNING id)
		INSERT INTO comments (photo_id) SELECT id FROM p RETURNING photo_id}),
	5000000000, 'the sequence of a smallint makes larger keys');

# --- two at once, interrupted, undone -------------------------------------

new_admin_database('undone');
$before = make_tables('undone', 'smallint', 1000);
my $widening = $node->background_psql('undone', on_error_stop => 0);
send_sql($widening, q{CALL snowflake_widen('photos', 'id', pause => '1 h')});
my $pid;
my $shown = q{SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'snowflake\_widen: "My App".photos: %'};
ok(wait_for(sub { $pid = value('undone', $shown) }), 'pg_stat_activity shows what it is at');
my $filled = 'SELECT count(*) FROM photos WHERE snowflake_widen_1 = id';
ok(wait_for(sub { value('undone', $filled) > 0 }), '... and it fills rows');
is(value('undone', "SELECT objid::regclass FROM pg_locks WHERE pid = $pid AND locktype = 'advisory' AND objsubid = 3"),
	'photos', '... holding the turn on the key, and not on all tables');
fails_with($node, q{CALL snowflake_widen('comments', 'photo_id')},
	qr/55000 snowflake_widen\(\) works on table "My App".photos in process $pid/,
	'a second session is refused, also for a column of the chain', dbname => 'undone');
$node->psql('undone', $call) foreach 1 .. 10;
is(value('undone', "SELECT state FROM pg_stat_activity WHERE pid = $pid"), 'active',
	'... and however often, the first one goes on');
value('undone', "SELECT pg_terminate_backend($pid, 60000)");
ends($widening->{run}, 'the session that widens');
cmp_ok(value('undone', $filled), '<', 1000, 'some rows are filled when it is ended');
my $holder = $node->background_psql('undone');
$holder->query_safe('BEGIN; SELECT FROM photos WHERE snowflake_widen_1 IS DISTINCT FROM id LIMIT 1 FOR UPDATE');
$widening = session($node, 'undone');
send_sql($widening, $call);
# While it waits for its turn, it sleeps for 0.1 s.
ok(wait_for(sub { value('undone', "SELECT count(*) FROM pg_stat_activity WHERE pid = $widening->{backend}
		AND wait_event = 'PgSleep' AND clock_timestamp() - xact_start > '0.5 s'") }),
	'a call that finds only rows that somebody has locked pauses before it looks again');
value('undone', "SELECT pg_terminate_backend($widening->{backend}, 60000)");
ends($widening->{run}, 'the session that pauses');
$holder->quit;
like(run_psql('undone', q{CALL snowflake_widen('photos', 'id', undo => true)}),
	qr/HINT:  VACUUM "My App".comments, "My App".likes, "My App".photos makes the space of old versions/,
	'undo says how the space becomes usable');
is(tables_of('undone'), $before, 'undo leaves nothing behind');
like(run_psql('undone', q{CALL snowflake_widen('photos', 'id', dry_run => true)}),
	qr/ "My App".photos ADD snowflake_widen_1 bigint;.* "My App".comments DROP photo_id;.*prepared statement .* fails.*Rails/s,
	'a dry run shows the commands, and what programs notice');
is(tables_of('undone'), $before, '... and changes nothing');
value('undone', $call);
like(run_psql('undone', q{CALL snowflake_widen('photos', 'id', undo => true)}), qr/NOTICE:  \w+: nothing to undo/,
	'nothing can be undone when it has finished');
like(run_psql('undone', $call), qr/^\S+ NOTICE:  \w+: column id .* are wider than integer\n/,
	'called again when it has ended, it does nothing');

# --- only a column that refers to the key ---------------------------------

value('undone', <<'EOS');
CREATE TABLE keys (id bigserial PRIMARY KEY);
CREATE TABLE refers (n integer, key integer REFERENCES keys MATCH FULL);
CREATE TABLE further (key smallint REFERENCES keys, other integer REFERENCES photos);
INSERT INTO keys VALUES (1);
INSERT INTO refers VALUES (1, 1);
INSERT INTO further VALUES (1, 7);
CALL snowflake_widen('refers', 'key');
EOS
my $types = 'SELECT pg_typeof(refers.key), pg_typeof(further.key), pg_typeof(other) FROM refers, further';
is(value('undone', $types), 'bigint|smallint|integer', 'only the named column is widened');
value('undone', q{CALL snowflake_widen('keys', 'id')});
is(value('undone', $types), 'bigint|bigint|integer', 'the columns that refer to a bigint key are widened');
is(value('undone', q{SELECT count(*) FROM pg_constraint WHERE conrelid::regclass::text IN ('refers', 'further')}), 3,
	'with their constraints');

# --- dumped and restored --------------------------------------------------

# Tables in the middle of it, in a copy that has other OIDs and other numbers of columns
new_admin_database('dumped');
value('dumped', <<'EOS');
CREATE TABLE nodes (gone text, id serial PRIMARY KEY, v text);
CREATE TABLE links (gone text, "From" integer NOT NULL REFERENCES nodes, "to" integer REFERENCES nodes ON DELETE CASCADE,
	CHECK ("From" <> "to"), EXTRA text);
CREATE INDEX ON links ("to", ("From" + 1)) WHERE "From" > 2;
INSERT INTO nodes (v) SELECT repeat('y', 1900) FROM generate_series(1, 6000);
INSERT INTO links SELECT NULL, id, id + 1 FROM nodes WHERE id < 6000;
ALTER TABLE nodes DROP gone;
ALTER TABLE links DROP gone;
VACUUM ANALYZE;
EOS
my $call_nodes = q{CALL snowflake_widen('nodes', 'id')};
my $sums_nodes = 'SELECT count(*), sum("From"), sum("to" - "From"), sum(id) FROM links JOIN nodes ON id = "to"';
my $before_nodes = value('dumped', '\d nodes
	\d links') . value('dumped', $sums_nodes);
my $fills = $node->background_psql('dumped', on_error_stop => 0);
send_sql($fills, q{CALL snowflake_widen('nodes', 'id', pause => '1 h')});
ok(wait_for(sub { value('dumped', q{SELECT count(*) FROM pg_attribute
	WHERE attrelid IN ('nodes'::regclass, 'links'::regclass) AND attname ~ '^snowflake_widen_'}) == 3
		&& value('dumped', 'SELECT count(*) FROM nodes WHERE snowflake_widen_2 = id') > 0 }), 'a table is being filled');
value('dumped', q{SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name ~ '^snowflake_widen'});
ends($fills->{run}, 'the session that fills');
foreach my $step ('half filled', 'without its indexes')
{
	like(run_psql('dumped', $call_nodes), qr/need indexes/, 'the rest of it is done') if $step eq 'without its indexes';
	my $file = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
	run_command([ 'pg_dump', '-d', $node->connstr('dumped'), '-f', $file ]);
	foreach my $way ('goes on', 'is undone')
	{
		my $copy = $way eq 'goes on' ? 'copy_on' : 'copy_back';
		value('postgres', "DROP DATABASE IF EXISTS $copy");
		value('postgres', "CREATE DATABASE $copy TEMPLATE template0");
		value($copy, "\\i $file");
		is(value($copy, q{SELECT string_agg(problem, ' ' ORDER BY object) FROM snowflake_check() WHERE problem ~ 'widen'}),
			q{snowflake_widen() has begun to widen column id, and has not ended. }
				. q{To give up: CALL public.snowflake_widen('public.nodes'::regclass, 'id'::name, undo => true).},
			"snowflake_check() sees a copy that is $step");
		if ($way eq 'is undone')
		{
			value($copy, q{CALL snowflake_widen('nodes', 'id', undo => true)});
			is(value($copy, '\d nodes
				\d links') . value($copy, $sums_nodes), $before_nodes, "a copy that is $step is undone");
		}
		else
		{
			value($copy, 'ALTER TABLE nodes ADD CONSTRAINT later CHECK (id > 0)');
			like(run_psql($copy, $call_nodes), qr/need indexes/, "a copy that is $step goes on");
			value($copy, q{SELECT * FROM snowflake_widen_indexes('nodes', 'id') \gexec});
			succeeds($copy, $call_nodes, '... and ends');
			is(value($copy, 'SELECT DISTINCT pg_typeof(id), pg_typeof("From"), pg_typeof("to") FROM nodes JOIN links ON id = "to"'),
				'bigint|bigint|bigint', '... with bigint columns');
			is(value($copy, $sums_nodes), value('dumped', $sums_nodes), '... that have the same numbers');
			is(value($copy, q{SELECT pg_get_constraintdef(oid), convalidated FROM pg_constraint WHERE conname = 'later'}),
				'CHECK ((id > 0))|t', '... and a CHECK that has come meanwhile');
		}
		is(value($copy, q{SELECT count(*) FROM (SELECT relname FROM pg_class UNION ALL SELECT conname FROM pg_constraint
			UNION ALL SELECT tgname FROM pg_trigger UNION ALL SELECT proname FROM pg_proc WHERE proname ~ 'snowflake_widen_\w+_\d'
			UNION ALL SELECT attname FROM pg_attribute WHERE attrelid IN ('nodes'::regclass, 'links'::regclass)) AS n (name) WHERE name ~ 'snowflake_widen_'
				AND name !~ '_indexes$'}), 0, '... and nothing else is left');
	}
}

# --- refused --------------------------------------------------------------

new_admin_database('refused');
value('refused', 'ALTER DATABASE refused SET search_path = app, public');
my $call_t = q{CALL snowflake_widen('app.t', 'id')};
foreach my $case (
	[ 'CREATE VIEW "V" AS SELECT id FROM t', qr/View app."V" depends on column id of table app.t/ ],
	[ 'CREATE RULE r AS ON DELETE TO t DO NOTHING', qr/Table app.t has a rule/ ],
	[ 'CREATE TRIGGER zzz BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION nothing()',
		qr/Trigger "zzz" .* would fire after/ ],
	[ 'CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT max(id) FROM t; END', qr/Function app.f\(\) depends/ ],
	[ 'ALTER TABLE t ADD g integer GENERATED ALWAYS AS (id + 1) STORED', qr/column g of table app.t depends/i ],
	[ 'ALTER TABLE t ADD EXCLUDE USING btree (id WITH =)', qr/Constraint t_id_excl on table app.t depends/ ],
	[ 'ALTER TABLE t ADD CONSTRAINT late UNIQUE (n, id) DEFERRABLE',
		qr/Constraint "late" of table app.t is deferrable/ ],
	[ 'CREATE PUBLICATION "P" FOR TABLE t', qr/in publication "P"/ ],
	[ 'CREATE TABLE p (t integer REFERENCES t) PARTITION BY LIST (t); CREATE TABLE p1 PARTITION OF p DEFAULT',
		qr/Table app.p1? is partitioned/ ],
	[ 'CREATE TABLE p (t bigint REFERENCES t) PARTITION BY LIST (t)',
		qr/Foreign key "p_t_fkey" of partitioned table app.p refers to it/ ],
	[ q{CREATE TABLE i (id int NOT NULL GENERATED ALWAYS AS IDENTITY REFERENCES t);
		CREATE TABLE u (id int DEFAULT nextval('i_id_seq'))},
		qr/The sequence of identity column id of table app.i is used by column app.u.id/ ],
	[ 'CREATE DOMAIN d AS integer; CREATE TABLE of_d (t d REFERENCES t)',
		qr/Column t of table app.of_d has type app.d/ ],
	[ 'CREATE FUNCTION half(integer) RETURNS integer IMMUTABLE RETURN $1 / 2; CREATE INDEX ON t (half(id))',
		qr/index or a constraint of table app.t.*app.half\(bigint\) does not exist/s ])
{
	my ($make, $message) = @$case;
	next if $make =~ /PARTITION BY LIST \(t\)$/ && $node->pg_version >= 18;	# which can carry it
	value('refused', qq{
		DROP SCHEMA IF EXISTS app CASCADE;
		CREATE SCHEMA app;
		CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TABLE t (id serial PRIMARY KEY, n integer);
		$make});
	$before = tables_of('refused');
	like(run_psql('refused', $call_t), qr/ERROR:  55000.*$message/s, "refused: $make");
	is(tables_of('refused'), $before, '... and left as it is');
}

# A column that is no integer is refused with what to do, which is done.
foreach my $case (
	[ 'numeric', 'numeric' ], [ 'double precision', 'double precision' ], [ 'oid', 'oid' ])
{
	my ($type, $shown) = @$case;
	value('refused', qq{
		DROP SCHEMA IF EXISTS app CASCADE;
		CREATE SCHEMA app;
		CREATE TABLE t (id $type PRIMARY KEY DEFAULT 1);
		CREATE TABLE c (t $type REFERENCES t);
		INSERT INTO t DEFAULT VALUES;
		INSERT INTO c VALUES (1)});
	my ($do) = run_psql('refused', $call_t) =~ /ERROR:  55000.*
DETAIL:  Column id of table app.t has type \Q$shown\E, and snowflake_widen\(\) replaces smallint and integer only\.
HINT:  While the application is stopped: (.*)\./;
	ok($do, "refused: a key of type $type");
	value('refused', $do // '');
	is(value('refused', 'SELECT DISTINCT pg_typeof(id), pg_typeof(t) FROM t, c'), 'bigint|bigint', '... and as the hint says, it becomes a bigint');
	like(run_psql('refused', $call_t), qr/^\S+ NOTICE:  \w+: column id of table app.t, .* are wider than integer\n/, '... then nothing is to be done');
}
foreach my $type ('text', 'varchar(20)', 'uuid', 'snowflake')
{
	value('refused', qq{
		DROP SCHEMA IF EXISTS app CASCADE;
		CREATE SCHEMA app;
		CREATE TABLE t (id $type PRIMARY KEY)});
	like(run_psql('refused', $call_t), $type eq 'snowflake' ? qr/^\S+ NOTICE:  \w+: column id .* are wider than integer\n/
		: qr/ERROR:  55000.*replaces smallint and integer only.*HINT:  (?:It need not become wider|Name a column of integers)/s,
		"a key of type $type need not, or cannot, be widened");
}
value('refused', q{
	CREATE TABLE n (id numeric PRIMARY KEY);
	CREATE TABLE i (n integer REFERENCES n)});
unlike(run_psql('refused', q{CALL snowflake_widen('app.i', 'n')}), qr/ERROR/, 'an integer that refers to a numeric is widened');
is(value('refused', q{INSERT INTO n VALUES (5000000000); INSERT INTO i VALUES (5000000000) RETURNING n}), 5000000000,
	'... and refers to larger keys');

# Rows that are stored as values would lose the key.  PostgreSQL's ALTER TYPE refuses the same.
foreach my $case (
	[ 'CREATE TABLE audit (was t)', 'Column was of table app.audit' ],
	[ 'CREATE TABLE many (rows t[])', 'Column rows of table app.many' ],
	[ 'CREATE TYPE two AS (one t, n int); CREATE TABLE nested (pair two)', 'Column pair of table app.nested' ],
	[ 'CREATE DOMAIN d AS t; CREATE TABLE of_d (d d[])', 'Column d of table app.of_d' ],
	[ 'CREATE TYPE r AS RANGE (SUBTYPE = t, MULTIRANGE_TYPE_NAME = rs); CREATE TABLE ranges (r rs) PARTITION BY LIST (r)',
		'Column r of table app.ranges' ],
	[ 'CREATE VIEW v AS SELECT t AS whole FROM t; CREATE TABLE of_v (v v)', 'Column v of table app.of_v' ],
	[ 'CREATE MATERIALIZED VIEW m AS SELECT t AS whole FROM t', 'Column whole of materialized view app.m' ],
	[ 'CREATE INDEX i ON t ((t))', 'Column t of index app.i' ],
	[ 'SET ROLE nobody; CREATE TABLE theirs AS SELECT ROW(1, 2)::t AS t', 'Column t of table app.theirs', 'nobody' ])
{
	my ($make, $what, $owner) = (@$case, 'postgres');
	value('refused', qq{
		DROP SCHEMA IF EXISTS app CASCADE;
		CREATE SCHEMA app;
		GRANT ALL ON SCHEMA app TO nobody;
		CREATE TABLE t (id serial PRIMARY KEY, n integer);
		INSERT INTO t (n) VALUES (1);
		$make});
	$before = tables_of('refused');
	like(run_psql('refused', $call_t), qr/ERROR:  55000.*$what, which belongs to $owner, stores rows of table app.t\./s,
		"refused: $make");
	is(tables_of('refused'), $before, '... and left as it is');
}
value('refused', 'TRUNCATE theirs; CREATE VIEW v AS SELECT t AS whole FROM t');
unlike(run_psql('refused', $call_t), qr/ERROR/, 'a view, and a column of another role without rows, are no obstacle');
is(value('refused', 'SELECT (whole).id FROM v'), 1, '... and the view shows the key');
value('refused', q{
	DROP SCHEMA app CASCADE;
	CREATE SCHEMA app;
	CREATE TABLE t (id serial PRIMARY KEY, n integer);
	INSERT INTO t (n) VALUES (1)});
my $others = session($node, 'refused');
$others->query_safe('CREATE TEMP TABLE stored AS SELECT t AS whole FROM t');
succeeds('refused', $call_t, "another session's temporary table that stores rows is no obstacle");
is(value('refused', 'SELECT pg_typeof(id) FROM t'), 'bigint', '... and the key is a bigint');
is($others->query_safe('SELECT count(*) FROM stored'), 1, '... and the temporary table is there');
$others->quit;

value('refused', <<'EOS');
DROP SCHEMA app CASCADE;
CREATE SCHEMA app;
GRANT USAGE ON SCHEMA app TO nobody, owner;
GRANT CREATE ON SCHEMA app TO owner;
CREATE TABLE t (id serial PRIMARY KEY, n integer);
ALTER TABLE t OWNER TO owner;
INSERT INTO t (n) VALUES (1);
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.n := 5; RETURN NEW; END';
CREATE TRIGGER touch BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION touch();
EOS
# A trigger that fires only on INSERT does not fire for rows that are filled.
value('refused', <<'EOS');
SET ROLE owner;
CREATE TABLE inserted (id serial PRIMARY KEY);
INSERT INTO inserted DEFAULT VALUES;
CREATE TRIGGER touch BEFORE INSERT ON inserted FOR EACH ROW EXECUTE FUNCTION touch();
EOS
unlike(run_psql('refused', q{SET ROLE owner; CALL snowflake_widen('app.inserted', 'id')}), qr/ERROR/,
	'a table whose triggers fire only on INSERT is widened by a role that cannot turn triggers off');

# Triggers that would fire while ordinary ones are off; each advice is followed.
value('refused', <<'EOS');
CREATE TABLE touched (id serial PRIMARY KEY, n integer);
INSERT INTO touched (n) VALUES (1);
CREATE TRIGGER ordinary BEFORE UPDATE ON touched FOR EACH ROW EXECUTE FUNCTION touch();
CREATE TRIGGER "by replica" BEFORE UPDATE ON touched FOR EACH ROW EXECUTE FUNCTION touch();
CREATE TRIGGER "in any case" AFTER UPDATE ON touched FOR EACH ROW EXECUTE FUNCTION touch();
CREATE TRIGGER of_n BEFORE UPDATE OF n ON touched FOR EACH ROW EXECUTE FUNCTION touch();
ALTER TABLE touched ENABLE REPLICA TRIGGER "by replica", ENABLE ALWAYS TRIGGER "in any case", ENABLE ALWAYS TRIGGER of_n;
EOS
my $call_touched = q{CALL snowflake_widen('app.touched', 'id')};
my $enabled = q{SELECT string_agg(format('%s %s', tgname, tgenabled), ', ' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = 'app.touched'::regclass};
my $triggers = value('refused', $enabled);
my @afterwards;
foreach my $trigger ('in any case', 'by replica')
{
	my ($first, $then) = run_psql('refused', $call_touched) =~ qr/ERROR:  55000.*Trigger "$trigger" .*would fire for old rows.*
HINT:  (ALTER TABLE app.touched .*) first, and (.*) after the command/s;

	ok($first, "refused: trigger \"$trigger\"");
	value('refused', $first);
	push @afterwards, "ALTER TABLE app.touched $then";
}
unlike(run_psql('refused', $call_touched), qr/ERROR/, 'as the hints say, it is widened');
value('refused', $_) foreach @afterwards;
is(value('refused', $enabled), $triggers, '... and the triggers are as before');
is(value('refused', 'SELECT pg_typeof(id), n FROM touched'), 'bigint|1', '... and none fired');


# What an owner without that privilege can do
value('refused', <<'EOS');
SET ROLE owner;
CREATE TABLE disabled (id serial PRIMARY KEY, n integer);
INSERT INTO disabled (n) VALUES (1);
CREATE TRIGGER touch BEFORE UPDATE ON disabled FOR EACH ROW EXECUTE FUNCTION touch();
EOS
my $call_disabled = q{SET ROLE owner; CALL snowflake_widen('app.disabled', 'id')};
my ($disable) = run_psql('refused', $call_disabled) =~ /HINT:.* Or (ALTER TABLE app.disabled .*), and enable them/
  or fail('the hint says how to disable triggers');
value('refused', "SET ROLE owner; $disable");
unlike(run_psql('refused', $call_disabled), qr/ERROR/, 'an owner whose triggers are disabled can widen a table');
is(value('refused', 'SELECT pg_typeof(id), n FROM disabled'), 'bigint|1', '... and none fired');

# A generated column
value('refused', 'CREATE TABLE generated (id serial PRIMARY KEY, twice bigint GENERATED ALWAYS AS (id * 2) STORED);
	INSERT INTO generated DEFAULT VALUES');
my $call_generated = q{CALL snowflake_widen('app.generated', 'id')};
like(run_psql('refused', $call_generated), qr/Generated column twice of table app.generated depends on column id of .*drop it, and create it again/s,
	'refused: a generated column');
value('refused', 'ALTER TABLE generated DROP twice');
unlike(run_psql('refused', $call_generated), qr/ERROR/, 'without it, the table is widened');
is(value('refused', 'ALTER TABLE generated ADD twice bigint GENERATED ALWAYS AS (id * 2) STORED; SELECT id, twice FROM generated'),
	'1|2', '... and it is created again');

my $grant = 'GRANT SET ON PARAMETER session_replication_role TO owner';
like(run_psql('refused', $_->[0]), qr/ERROR:  $_->[1]/, "refused: $_->[2]")
  foreach
  [ "BEGIN; $call_t", qr/2D000: snowflake_widen\(\) cannot run inside a transaction block/, 'a transaction block' ],
  [ q{CALL snowflake_widen('t', NULL)}, qr/22004: col must not be null/, 'NULL' ],
  [ q{CALL snowflake_widen('t', 'none')}, qr/42703: column "none" of table app.t does not exist/, 'no column' ],
  [ "SET ROLE nobody; $call_t", qr/42501: must be owner of table app.t/, 'a role that owns nothing' ],
  [ q{CREATE TABLE others (id integer PRIMARY KEY); GRANT REFERENCES ON others TO owner; SET ROLE owner;
	CREATE TABLE parent (id serial PRIMARY KEY); CREATE TABLE child (id integer REFERENCES parent REFERENCES others);
	CALL snowflake_widen('parent', 'id')}, qr/42501: must be owner of table app.others/, 'a column that refers to another table, too' ],
  [ "SET ROLE owner; $call_t", qr/55000.*Triggers of table app.t would fire.*$grant/s, 'triggers that would fire' ],
  [ "$grant; ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; SET ROLE owner; $call_t",
	qr/55000.*Row-level security of table app.t applies to its owner/s, 'row-level security that could hide rows' ];
value('refused', 'ALTER TABLE t NO FORCE ROW LEVEL SECURITY');
hostile_schema($node, 'refused');
unlike(run_psql('refused', "SET ROLE owner; SET search_path = evil, pg_catalog, public; $call_t"), qr/ERROR/,
	'the owner can call it, with a hostile search_path');
is(value('refused', 'SELECT pg_typeof(id), n FROM t'), 'bigint|1', '... and no trigger fired');
is(value('refused', q{ALTER SEQUENCE t_id_seq RESTART 5000000000; INSERT INTO t DEFAULT VALUES RETURNING id}),
	5000000000, 'the sequence of a serial makes larger keys, too');

# --- what others do meanwhile ---------------------------------------------

# While the swap waits for its last locks, others change what a lock on a table does not keep them from.
new_admin_database('changed');
value('changed', <<'EOS');
CREATE TABLE photos (id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, v text);
CREATE TABLE likes (photo integer REFERENCES photos);
CREATE INDEX likes_photo ON likes ((photo + 1));
INSERT INTO photos (v) SELECT repeat('x', 1900) FROM generate_series(1, 5000);
GRANT SELECT (id), UPDATE (id) ON photos TO nobody;
GRANT USAGE ON SEQUENCE photos_id_seq TO nobody;
EOS
my $call_photos = q{CALL snowflake_widen('photos', 'id', tries => 1000)};
is(value('changed', q{SELECT * FROM snowflake_widen_indexes('photos', 'id')}), '',
	'no index is asked for before rows are filled');
# A trigger notes whether the command has the turn when it changes the table.
value('changed', <<'EOS');
CREATE TABLE turns (held boolean);
CREATE FUNCTION note_turn() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO public.turns SELECT count(*) > 0 FROM pg_locks
	WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objid = 'public.photos'::regclass;
END $$;
CREATE EVENT TRIGGER note_turn ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION note_turn();
EOS
like(run_psql('changed', $call_photos), qr/need indexes/, 'all but the last steps are done');
is(value('changed', 'SELECT count(*) > 3, bool_and(held) FROM turns'), 't|t', '... each in the turn of the session');
value('changed', 'DROP EVENT TRIGGER note_turn');
value('changed', q{SELECT * FROM snowflake_widen_indexes('photos', 'id') \gexec});
my $reader = $node->background_psql('changed');
$reader->query_safe('BEGIN; LOCK TABLE photos IN ACCESS SHARE MODE');
my $waits = $node->background_psql('changed', on_error_stop => 0);
send_sql($waits, $call_photos);
ok(wait_for(sub { value('changed', q{SELECT count(*) FROM pg_locks
	WHERE relation = 'photos'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted}) }), 'the swap waits');
value('changed', <<'EOS');
REVOKE UPDATE (id) ON photos FROM nobody;
GRANT INSERT (id) ON photos TO nobody;
REVOKE USAGE ON SEQUENCE photos_id_seq FROM nobody;
GRANT SELECT ON SEQUENCE photos_id_seq TO owner;
ALTER SEQUENCE photos_id_seq INCREMENT 10 CACHE 5;
COMMENT ON INDEX likes_photo IS 'late';
EOS
my $late = q{
	SELECT attacl FROM pg_attribute WHERE attrelid = 'photos'::regclass AND attname = 'id';
	SELECT relacl, seqincrement, seqcache FROM pg_class JOIN pg_sequence ON seqrelid = oid WHERE relname = 'photos_id_seq';
	SELECT obj_description('likes_photo'::regclass)};
$before = value('changed', $late);
$reader->query_safe('COMMIT');
ok(wait_for(sub { value('changed', 'SELECT pg_typeof(max(id)) FROM photos') eq 'bigint' }), 'it swaps the columns when it can');
$_->quit foreach $reader, $waits;
is(value('changed', $late), $before, '... with privileges, options and comments that were changed while it waited');

# In the swap itself: what is changed between two of its commands, as by the event trigger, is an error.
value('changed', <<'EOS');
DROP TABLE likes, photos;
CREATE TABLE photos (id serial PRIMARY KEY);
CREATE FUNCTION grants() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN GRANT SELECT (id) ON public.photos TO nobody; END';
CREATE EVENT TRIGGER grants ON ddl_command_end WHEN TAG IN ('ALTER SEQUENCE') EXECUTE FUNCTION grants();
EOS
like(run_psql('changed', $call_photos), qr/55000: a privilege, a sequence or an index of table public.photos, .* was changed by/,
	'a change in the middle of the swap is an error');
is(value('changed', 'SELECT pg_typeof(max(id)) FROM photos'), 'integer', '... and nothing is swapped');
value('changed', 'DROP EVENT TRIGGER grants');
succeeds('changed', $call_photos, '... but by the next call');

# An event trigger that forbids to drop tables is no obstacle: nothing that the command makes is dropped as one.
value('changed', <<'EOS');
CREATE TABLE keys (id serial PRIMARY KEY, CHECK (id > 0));
CREATE FUNCTION forbid() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
	IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() WHERE object_type = 'table') THEN RAISE 'no'; END IF; END $$;
CREATE EVENT TRIGGER forbid ON sql_drop EXECUTE FUNCTION forbid();
CALL snowflake_widen('keys', 'id', dry_run => true);
CALL snowflake_widen('keys', 'id');
EOS
is(value('changed', 'SELECT pg_typeof(max(id)) FROM keys'), 'bigint', 'a table is widened where no table may be dropped');

# --- as the document says -------------------------------------------------

new_admin_database('documented');
{
	local $ENV{PGOPTIONS} = '-c client_min_messages=warning';
	run_examples($node, 'documented', blocks_in('doc/migrating.md', 'From serial'));
}
is(value('documented', q{SELECT DISTINCT atttypid::regtype FROM pg_attribute
		WHERE attrelid IN ('photos'::regclass, 'comments'::regclass) AND attname IN ('id', 'photo_id')}),
	'bigint', 'no key is an integer in the end');

done_testing();
