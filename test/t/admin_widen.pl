# snowflake_widen(): an integer key and all that refers to it become bigint while
# sessions insert, change and delete rows.

use strict;
use warnings;
use Test::More;
use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('widen', 'loaded');

# What psql shows of tables, without the OIDs of anything.
sub tables_of
{
	my ($database, @tables) = @_;
	my $shown = value($database, join "\n", '\pset tuples_only off', map({ "\\d+ $_" } @tables), '\ds+ app.*', '\df app.*', '\dp app.*');

	# What psql of 18 and later shows otherwise
	return $shown =~ s/^Not-null constraints:\n(?: +".*\n)+//mgr =~ s/^List of sequences$/List of relations/mgr;
}

# --- under load -----------------------------------------------------------

# One key has it all: a chain of foreign keys, one to itself, a composite one, options.
value('loaded', <<'EOS');
CREATE SCHEMA "My App";
SET search_path = "My App";
CREATE TABLE photos (
	id serial PRIMARY KEY, tenant integer NOT NULL DEFAULT 1, title text, "Parent Id" integer REFERENCES photos,
	size integer GENERATED ALWAYS AS (length(title)) STORED, updated_at timestamptz DEFAULT '2000-01-01Z', UNIQUE (tenant, id));
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.updated_at := now(); RETURN NEW; END $$;
CREATE TRIGGER touch BEFORE UPDATE ON photos FOR EACH ROW EXECUTE FUNCTION touch();
CREATE TABLE comments (
	id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text,
	photo_id integer NOT NULL REFERENCES photos ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
CREATE INDEX ON comments (photo_id) WHERE photo_id > 10;
CREATE TABLE likes (
	tenant integer, photo_id integer, name text,
	FOREIGN KEY (tenant, photo_id) REFERENCES photos (tenant, id) MATCH FULL ON UPDATE CASCADE ON DELETE CASCADE);
CREATE INDEX "by photo" ON likes (photo_id);
CREATE TABLE ledger (photo bigint, deleted boolean);
INSERT INTO photos (title, "Parent Id") SELECT repeat('old', 300), nullif(n / 2, 0) FROM generate_series(1, 10000) AS n;
INSERT INTO comments (body, photo_id) SELECT 'on ' || n || repeat(' ', 500), n FROM generate_series(1, 10000) AS n;
INSERT INTO likes SELECT 1, n, 'on ' || n FROM generate_series(1, 5000) AS n;
VACUUM ANALYZE;
EOS
my $load = start_sessions('loaded', <<'EOS', '-R', '60');
\set old random(1, 10000)
\set delete random(0, 3)
BEGIN;
INSERT INTO "My App".photos (title, "Parent Id") VALUES ('new', :old) RETURNING id AS photo \gset
INSERT INTO "My App".comments (body, photo_id) VALUES ('on ' || :photo, :photo) RETURNING id AS comment \gset
INSERT INTO "My App".likes (tenant, photo_id, name) VALUES (1, :photo, 'on ' || :photo), (NULL, NULL, NULL);
INSERT INTO "My App".ledger VALUES (:photo, false);
COMMIT;
UPDATE "My App".photos SET title = 'changed' WHERE id = :old;
UPDATE "My App".comments SET body = 'on ' || :old, photo_id = :old WHERE id = :comment;
SELECT 1 / (count(*) = 1)::integer FROM "My App".comments JOIN "My App".photos ON photos.id = photo_id
WHERE comments.id = :comment AND body = 'on ' || photos.id;
\if :delete
\else
BEGIN;
DELETE FROM "My App".photos WHERE id = :photo;
INSERT INTO "My App".ledger VALUES (:photo, true);
COMMIT;
\endif
EOS
my $call = q{CALL snowflake_widen('"My App".photos', 'id')};
my ($status, $output, $error) = $node->psql('loaded', $call);
like($error, qr/new columns need indexes.*CREATE UNIQUE INDEX CONCURRENTLY snowflake_widen_\d+ ON "My App".photos USING btree \(snowflake_widen_1\);/s,
	'indexes of large tables are left to the caller');
like($error, qr/NOTICE:  CREATE INDEX snowflake_widen_\d+ ON "My App".likes/, 'those of small tables are created');
value('loaded', q{
	SELECT * FROM snowflake_widen_indexes('"My App".photos', 'id') LIMIT 1 \gexec
	-- as if it had been cancelled
	UPDATE pg_index SET indisvalid = false FROM pg_class WHERE pg_class.oid = indexrelid AND relname LIKE 'snowflake\_widen%' AND indisunique});
like(value('loaded', q{SELECT * FROM snowflake_widen_indexes('"My App".photos', 'id')}),
	qr/DROP INDEX CONCURRENTLY "My App".(snowflake_widen_\d+)\nCREATE UNIQUE INDEX CONCURRENTLY \1 /, 'an invalid index is to be created again');
value('loaded', q{SELECT * FROM snowflake_widen_indexes('"My App".photos', 'id') \gexec});
is(value('loaded', q{SELECT count(*) FROM snowflake_widen_indexes('"My App".photos', 'id')}), 0, 'no index lacks then');
($status, $output, $error) = $node->psql('loaded', $call);
is($status, 0, 'the second call goes on and swaps the columns') or diag $error;
my $prepared = qr/bigint\nHINT:  A session with a prepared statement .* fails after the swap/;
like($error, $prepared, '... and says what it does to prepared statements');
sessions_go_on($load, 'sessions go on after the swap');
end_sessions($load);
is(value('loaded', q{
		SELECT format('%s.%s %s', attrelid::regclass, attname, format_type(atttypid, NULL)) FROM pg_attribute
		WHERE attrelid IN ('"My App".photos'::regclass, '"My App".comments'::regclass, '"My App".likes'::regclass)
			AND attnum > 0 AND NOT attisdropped AND atttypid = 'bigint'::regtype ORDER BY 1}),
	qq{"My App".comments.photo_id bigint\n"My App".likes.photo_id bigint\n"My App".photos."Parent Id" bigint\n"My App".photos.id bigint} =~ s/"Parent Id"/Parent Id/r,
	'all columns are bigint, and no other column came');
is(value('loaded', q{
		(SELECT id FROM "My App".photos EXCEPT (SELECT generate_series(1, 10000) UNION SELECT photo FROM "My App".ledger))
		UNION ALL (SELECT generate_series(1, 10000) UNION SELECT photo FROM "My App".ledger
			EXCEPT SELECT photo FROM "My App".ledger WHERE deleted EXCEPT SELECT id FROM "My App".photos)}), '', 'no photo is lost');
is(value('loaded', q{SELECT count(*) FROM "My App".comments WHERE rtrim(body) <> 'on ' || photo_id}), 0, 'comments are on their photos');
is(value('loaded', q{SELECT count(*) FROM "My App".comments} ), value('loaded', q{SELECT 10000 + count(*) FROM "My App".ledger WHERE NOT deleted}),
	'no comment is lost, as all of them were on old photos in the end');
is(value('loaded', q{SELECT count(*) FILTER (WHERE name <> 'on ' || photo_id), count(*) FILTER (WHERE name IS NULL AND photo_id IS NOT NULL),
		count(photo_id) - 5000 - (SELECT sum(CASE WHEN deleted THEN -1 ELSE 1 END) FROM "My App".ledger) FROM "My App".likes}),
	'0|0|0', 'likes are on their photos, and none is lost');
is(value('loaded', q{SELECT count(*) FROM "My App".photos WHERE "Parent Id" IS DISTINCT FROM nullif(id / 2, 0) AND id <= 10000}), 0,
	'photos have their parents');
is(value('loaded', q{SELECT count(*) FROM "My App".photos WHERE (title = 'changed') <> (updated_at > '2000-01-01Z')}), 0,
	'no trigger of the application fired but for its own changes');
is(value('loaded', q{SELECT count(*) FROM pg_constraint WHERE NOT convalidated}), 0, 'all constraints are valid');
value('loaded', q{ALTER SEQUENCE "My App".photos_id_seq RESTART 5000000000});
is(value('loaded', q{
		WITH p AS (INSERT INTO "My App".photos (title) VALUES ('large') RETURNING id)
		INSERT INTO "My App".comments (photo_id) SELECT id FROM p RETURNING photo_id}), 5000000000, 'the sequence makes larger keys');

# --- killed ---------------------------------------------------------------

my $tables = <<'EOS';
CREATE SCHEMA app;
SET search_path = app;
CREATE TABLE photos (id smallint GENERATED ALWAYS AS IDENTITY (START 7 INCREMENT 2) PRIMARY KEY, title text, CHECK (id > 0 OR title = ''));
CREATE TABLE comments (n integer, photo_id integer NOT NULL REFERENCES photos ON DELETE SET DEFAULT DEFERRABLE, UNIQUE (n, photo_id) INCLUDE (n));
ALTER TABLE comments REPLICA IDENTITY FULL, CLUSTER ON comments_n_photo_id_n1_key, ALTER photo_id SET STATISTICS 7;
ALTER TABLE comments ADD CHECK (photo_id <> -1) NOT VALID;
CREATE INDEX ON comments ((photo_id % 10), (n + 1)) WITH (fillfactor = 60) WHERE photo_id > 1;
COMMENT ON COLUMN photos.id IS 'it''s';
COMMENT ON INDEX comments_expr_expr1_idx IS 'an index';
COMMENT ON CONSTRAINT comments_photo_id_fkey ON comments IS 'a key';
GRANT SELECT (photo_id), INSERT (photo_id) ON comments TO PUBLIC;
GRANT USAGE ON SEQUENCE photos_id_seq TO PUBLIC;
INSERT INTO photos (title) SELECT 'photo ' || n FROM generate_series(1, 1000) AS n;
INSERT INTO comments SELECT id, id FROM photos;
EOS
my $kills = run_killed_at_each_step('killed', sub { value('killed', $tables) }, q{CALL snowflake_widen('app.photos', 'id')},
	sub { tables_of('killed', 'app.photos', 'app.comments') . value('killed', 'SELECT sum(id) FROM app.photos; SELECT sum(n - photo_id) FROM app.comments;'
		. "INSERT INTO app.photos (title) VALUES ('') RETURNING id % 2, id > 2005") }, once_a_transaction => 1);
cmp_ok($kills, '>', 8, "killed $kills times");
is(value('killed', q{SELECT obj_description('app.comments_expr_expr1_idx'::regclass, 'pg_class'), obj_description(oid, 'pg_constraint'), conname FROM pg_constraint
		WHERE confrelid = 'app.photos'::regclass}), 'an index|a key|comments_photo_id_fkey', 'comments on indexes and constraints are kept');
is(tables_of('killed', 'app.photos', 'app.comments') . "\n", <<'EOS', 'the tables have all that they had');
Table "app.photos"
Column|Type|Collation|Nullable|Default|Storage|Compression|Stats target|Description
title|text||||extended|||
id|bigint||not null|generated always as identity|plain|||it's
Indexes:
    "photos_pkey" PRIMARY KEY, btree (id)
Check constraints:
    "photos_check" CHECK (id > 0 OR title = ''::text)
Referenced by:
    TABLE "app.comments" CONSTRAINT "comments_photo_id_fkey" FOREIGN KEY (photo_id) REFERENCES app.photos(id) ON DELETE SET DEFAULT DEFERRABLE
Access method: heap
Table "app.comments"
Column|Type|Collation|Nullable|Default|Storage|Compression|Stats target|Description
n|integer||||plain|||
photo_id|bigint||not null||plain||7|
Indexes:
    "comments_expr_expr1_idx" btree ((photo_id % 10::bigint), (n + 1)) WITH (fillfactor='60') WHERE photo_id > 1
    "comments_n_photo_id_n1_key" UNIQUE CONSTRAINT, btree (n, photo_id) INCLUDE (n) CLUSTER
Check constraints:
    "comments_photo_id_check" CHECK (photo_id <> '-1'::integer) NOT VALID
Foreign-key constraints:
    "comments_photo_id_fkey" FOREIGN KEY (photo_id) REFERENCES app.photos(id) ON DELETE SET DEFAULT DEFERRABLE
Replica Identity: FULL
Access method: heap
List of relations
Schema|Name|Type|Owner|Persistence|Size|Description
app|photos_id_seq|sequence|postgres|permanent|8192 bytes|
(1 row)
List of functions
Schema|Name|Result data type|Argument data types|Type
(0 rows)
Access privileges
Schema|Name|Type|Access privileges|Column privileges|Policies
app|comments|table||photo_id:
  =ar/postgres|
app|photos|table|||
app|photos_id_seq|sequence|postgres=rwU/postgres
=U/postgres||
(3 rows)
EOS

# --- two at once, interrupted, undone -------------------------------------

new_admin_database('undone');
value('undone', $tables . 'INSERT INTO photos (title) SELECT n FROM generate_series(1, 5000) AS n');
my $before = tables_of('undone', 'app.photos', 'app.comments');
my $widening = $node->background_psql('undone', on_error_stop => 0);
$widening->query_until(qr/begun/, "\\echo begun\nCALL snowflake_widen('app.photos', 'id', pause => '1 h');\n");
my $pid;
ok(wait_for(sub { $pid = value('undone', q{SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'snowflake\_widen: app.photos: %'}) }),
	'pg_stat_activity shows what it is at');
ok(wait_for(sub { value('undone', 'SELECT count(*) > 0 FROM app.photos WHERE snowflake_widen_1 = id') eq 't' }), '... and it fills rows');
fails_with($node, q{CALL snowflake_widen('app.comments', 'photo_id')}, qr/55000 snowflake_widen\(\) works on table app.comments in process $pid/,
	'a second session is refused, also for a column of the chain', dbname => 'undone');
$node->psql('undone', q{CALL snowflake_widen('app.photos', 'id')}) foreach 1 .. 10;
is(value('undone', "SELECT state FROM pg_stat_activity WHERE pid = $pid"), 'active', '... and however often, the first one goes on');
value('undone', "SELECT pg_terminate_backend($pid, 60000)");
$widening->{run}->finish;
is(value('undone', 'SELECT count(*) BETWEEN 1 AND 4999 FROM app.photos WHERE snowflake_widen_1 = id'), 't', 'some rows are filled when it is ended');
my $half = tables_of('undone', 'app.photos', 'app.comments');
value('undone', q{CALL snowflake_widen('app.photos', 'id', dry_run => true, undo => true)});
is(tables_of('undone', 'app.photos', 'app.comments'), $half, 'a dry run of undo changes nothing');
value('undone', q{CALL snowflake_widen('app.photos', 'id', undo => true)});
is(tables_of('undone', 'app.photos', 'app.comments'), $before, 'undo leaves nothing behind');
value('undone', q{CALL snowflake_widen('app.photos', 'id', undo => true)});
is(tables_of('undone', 'app.photos', 'app.comments'), $before, 'undo has nothing to do then');
my $shown = run_psql('undone', q{CALL snowflake_widen('app.photos', 'id', dry_run => true)});
like($shown, qr/ALTER TABLE app.photos ADD snowflake_widen_1 bigint;.*ALTER TABLE app.comments DROP photo_id;/s, 'a dry run shows the commands');
like($shown, $prepared, '... and says that, too');
is(tables_of('undone', 'app.photos', 'app.comments'), $before, '... and changes nothing');

unlike(run_psql('undone', q{CALL snowflake_widen('app.photos', 'id')}), qr/ERROR/, 'called again, it ends');
like(run_psql('undone', q{CALL snowflake_widen('app.photos', 'id')}), qr/are bigint/, 'a further call has nothing to do');
unlike(run_psql('undone', q{CALL snowflake_widen('app.photos', 'id')}), qr/ALTER/, '... and does nothing');

# --- only a column that refers to the key ---------------------------------

value('undone', <<'EOS');
CREATE TABLE keys (id bigserial PRIMARY KEY);
CREATE TABLE refers (n integer, key integer REFERENCES keys MATCH FULL);
CREATE TABLE further (key smallint REFERENCES keys, other integer REFERENCES app.photos);
INSERT INTO keys VALUES (1);
INSERT INTO refers VALUES (1, 1);
INSERT INTO further VALUES (1, 7);
CALL snowflake_widen('refers', 'key');
EOS
is(value('undone', q{SELECT pg_typeof(refers.key), pg_typeof(further.key) FROM refers, further}), 'bigint|smallint', 'only the named column is widened');
value('undone', q{CALL snowflake_widen('keys', 'id')});
is(value('undone', q{SELECT pg_typeof(keys.id), pg_typeof(further.key), pg_typeof(other) FROM keys, further}), 'bigint|bigint|integer',
	'the columns that refer to a bigint key are widened');
is(value('undone', q{SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid IN ('refers'::regclass, 'further'::regclass) ORDER BY 1}),
	"further_key_fkey|FOREIGN KEY (key) REFERENCES keys(id)\nfurther_other_fkey|FOREIGN KEY (other) REFERENCES app.photos(id)\n"
	. 'refers_key_fkey|FOREIGN KEY (key) REFERENCES keys(id) MATCH FULL', 'with their constraints');

# --- refused --------------------------------------------------------------

new_admin_database('refused');
value('refused', 'CREATE SCHEMA app; CREATE TABLE app.t (id serial PRIMARY KEY, n integer)');
$before = tables_of('refused', 'app.t');
foreach my $case (
	[ 'CREATE VIEW app."V" AS SELECT id FROM app.t', 'DROP VIEW app."V"', qr/View app."V" depends on column id of table app.t/ ],
	[ 'CREATE RULE r AS ON DELETE TO app.t DO NOTHING', 'DROP RULE r ON app.t', qr/or has a rule/ ],
	[ 'CREATE POLICY p ON app.t USING (id > 0)', 'DROP POLICY p ON app.t', qr/Policy p on table app.t depends/ ],
	[ 'CREATE TRIGGER t BEFORE UPDATE OF id ON app.t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()', 'DROP TRIGGER t ON app.t', qr/Trigger t on table app.t depends/ ],
	[ 'CREATE TRIGGER zzz BEFORE INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()', 'DROP TRIGGER zzz ON app.t', qr/Trigger "zzz" .* would fire after/ ],
	[ 'CREATE FUNCTION app.f() RETURNS integer BEGIN ATOMIC SELECT max(id) FROM app.t; END', 'DROP FUNCTION app.f', qr/Function app.f\(\) depends/ ],
	[ 'ALTER TABLE app.t ADD g integer GENERATED ALWAYS AS (id + 1) STORED', 'ALTER TABLE app.t DROP g', qr/column g of table app.t depends/i ],
	[ 'ALTER TABLE app.t ADD EXCLUDE USING btree (id WITH =)', 'ALTER TABLE app.t DROP CONSTRAINT t_id_excl', qr/Constraint t_id_excl on table app.t depends/ ],
	[ 'ALTER TABLE app.t ADD CONSTRAINT late UNIQUE (n, id) DEFERRABLE', 'ALTER TABLE app.t DROP CONSTRAINT late', qr/Constraint "late" of table app.t is deferrable/ ],
	[ 'CREATE PUBLICATION "P" FOR TABLE app.t', 'DROP PUBLICATION "P"', qr/in publication "P"/ ],
	[ 'CREATE TABLE app.child () INHERITS (app.t)', 'DROP TABLE app.child', qr/Table app.t is partitioned/ ],
	[ 'CREATE TABLE app.p (t integer REFERENCES app.t) PARTITION BY LIST (t); CREATE TABLE app.p1 PARTITION OF app.p DEFAULT', 'DROP TABLE app.p', qr/Table app.p1? is partitioned/ ],
	[ 'CREATE TABLE app.p (t bigint REFERENCES app.t) PARTITION BY LIST (t)', 'DROP TABLE app.p', qr/Foreign key "p_t_fkey" of partitioned table app.p refers to it/ ],
	[ 'CREATE INDEX snowflake_widen_99999 ON app.t (n)', 'DROP INDEX app.snowflake_widen_99999', qr/"snowflake_widen_99999" of table app.t replaces something that has been dropped/ ],
	[ q{CREATE TABLE app.i (id int NOT NULL GENERATED ALWAYS AS IDENTITY REFERENCES app.t); CREATE TABLE app.u (id int DEFAULT nextval('app.i_id_seq'))}, 'DROP TABLE app.u, app.i', qr/The sequence of identity column id of table app.i is used by column app.u.id/ ],
	[ 'CREATE DOMAIN app.d AS integer; CREATE TABLE app.of_d (t app.d REFERENCES app.t)', 'DROP TABLE app.of_d; DROP DOMAIN app.d', qr/Column t of table app.of_d has type app.d/ ],
	[ 'CREATE FUNCTION app.half(integer) RETURNS integer IMMUTABLE RETURN $1 / 2; CREATE INDEX ON app.t (app.half(id))', 'DROP FUNCTION app.half CASCADE', qr/index or a constraint of table app.t.*app.half\(bigint\) does not exist/s ])
{
	my ($make, $drop, $message) = @$case;
	next if $make =~ /PARTITION BY LIST \(t\)$/ && $node->pg_version >= 18;	# which can carry it
	my @errors = split /(?=ERROR:)/, run_psql('refused', "$make;\nCALL snowflake_widen('app.t', 'id');\n$drop;", on_error_stop => 0);

	is(@errors, 2, "refused: $make") && like($errors[1], qr/^ERROR:  55000.*$message/s, '... by name');
}
is(tables_of('refused', 'app.t'), $before, 'a table that is refused is left as it is');
value('refused', q{SELECT format('CREATE TABLE app.snowflake_widen_%s ()', 'app.t_pkey'::regclass::oid) \gexec});
like(run_psql('refused', q{CALL snowflake_widen('app.t', 'id')}), qr/42P07: relation "snowflake_widen_\d+" already exists/, 'another relation with the name of an index is not taken for it');
value('refused', q{SELECT format('DROP TABLE app.snowflake_widen_%s', 'app.t_pkey'::regclass::oid) \gexec
	CALL snowflake_widen('app.t', 'id', undo => true)});
like(run_psql('refused', q{BEGIN; CALL snowflake_widen('app.t', 'id')}), qr/2D000: snowflake_widen\(\) cannot run inside a transaction block/, 'refused in a transaction block');
like(run_psql('refused', q{CALL snowflake_widen('app.t', 'none')}), qr/42703: column "none" of table app.t does not exist/, 'a column must exist');
value('refused', <<'EOS');
GRANT USAGE ON SCHEMA app TO nobody, owner; GRANT CREATE ON SCHEMA app TO owner;
CREATE FUNCTION app.touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.n := 5; RETURN NEW; END';
CREATE TRIGGER touch BEFORE UPDATE ON app.t FOR EACH ROW EXECUTE FUNCTION app.touch();
ALTER TABLE app.t OWNER TO owner;
INSERT INTO app.t (n) VALUES (1);
EOS
like(run_psql('refused', q{SET ROLE nobody; CALL snowflake_widen('app.t', 'id')}), qr/42501: must be owner of table app.t/, 'a role that owns nothing is refused');
like(run_psql('refused', q{SET ROLE owner; CALL snowflake_widen('app.t', 'id')}), qr/55000.*Triggers of table app.t would fire.*GRANT SET ON PARAMETER session_replication_role TO owner/s,
	'triggers must not fire');
value('refused', 'GRANT SET ON PARAMETER session_replication_role TO owner; ALTER TABLE app.t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY');
like(run_psql('refused', q{SET ROLE owner; CALL snowflake_widen('app.t', 'id')}), qr/55000.*Row-level security of table app.t applies to you/s, 'row-level security must not hide rows');
value('refused', 'ALTER TABLE app.t NO FORCE ROW LEVEL SECURITY');

hostile_schema($node, 'refused');
unlike(run_psql('refused', q{SET ROLE owner; SET search_path = evil, pg_catalog, public; CALL snowflake_widen('app.t', 'id')}), qr/ERROR/,
	'the owner can call it, with a hostile search_path');
is(value('refused', 'SELECT pg_typeof(id), n FROM app.t'), 'bigint|1', '... and no trigger fired');

# --- as the document says -------------------------------------------------

new_admin_database('documented');
{
	local $ENV{PGOPTIONS} = '-c client_min_messages=warning';
	run_examples($node, 'documented', blocks_in('doc/migrating.md', 'From serial'));
}
is(value('documented', q{SELECT attrelid::regclass, attname FROM pg_attribute WHERE attname IN ('id', 'photo_id') AND attnum > 0
		AND attrelid IN ('photos'::regclass, 'comments'::regclass) AND atttypid <> 'bigint'::regtype}), '', 'no column is an integer in the end');

$node->stop;
done_testing();
