# snowflake_renumber() gives rows new IDs, and changes all that refer to them, while
# sessions work with these rows.
#
# Each row has a title that nobody changes, by which the tests know it again.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('renumber', 'load');

# Photos with shard 3, of which each tenth refers to another one, and rows that refer
# to photos: one, a chain of two, by two columns.
my $rows = 6_000;
my $tables = q{
	CREATE TABLE photos (
		id bigint PRIMARY KEY DEFAULT next_id(3), parent bigint REFERENCES photos, title text UNIQUE, n int DEFAULT 0);
	CREATE INDEX ON photos (parent);
	CREATE TABLE comments (nr serial PRIMARY KEY, title text, n integer NOT NULL DEFAULT 0,
		photo_id bigint NOT NULL REFERENCES photos ON DELETE CASCADE);
	CREATE INDEX ON comments (photo_id);
	CREATE INDEX ON comments (title);
	CREATE TABLE details (
		photo_id bigint PRIMARY KEY REFERENCES photos ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, title text);
	CREATE TABLE notes (nr serial PRIMARY KEY, title text,
		photo_id bigint REFERENCES details ON DELETE CASCADE ON UPDATE CASCADE);
	CREATE INDEX ON notes (photo_id) WHERE photo_id IS NOT NULL;
	CREATE TABLE pairs (nr serial PRIMARY KEY, title text, a bigint REFERENCES photos ON DELETE CASCADE,
		b bigint REFERENCES photos ON DELETE CASCADE ON UPDATE RESTRICT);
	CREATE INDEX ON pairs (a);
	CREATE INDEX ON pairs (b);
	CREATE TABLE deleted (title text PRIMARY KEY)};
my $fill = qq{
	INSERT INTO photos (title) SELECT 'old ' || n FROM generate_series(1, $rows) AS n;
	UPDATE photos AS p SET parent = q.id FROM photos AS q
	WHERE p.title LIKE '%0' AND q.title = 'old ' || 1 + substr(p.title, 5)::int / 10 % 9;
	INSERT INTO comments (title, photo_id) SELECT title, id FROM photos;
	INSERT INTO details (title, photo_id) SELECT title, id FROM photos WHERE title LIKE '%5';
	INSERT INTO notes (title, photo_id) SELECT title, photo_id FROM details;
	INSERT INTO pairs (title, a, b) SELECT title, id, coalesce(parent, id) FROM photos WHERE title LIKE '%0';
	ALTER TABLE photos ALTER id SET DEFAULT next_id(6);
	ANALYZE};

# Rows that do not lead to the row that they led to at first
my $strays = q{
	SELECT c.title, c.id FROM (SELECT title, photo_id FROM comments UNION ALL SELECT title, photo_id FROM details
		UNION ALL SELECT title, photo_id FROM notes UNION ALL SELECT title, a FROM pairs) AS c (title, id)
		LEFT JOIN photos AS p USING (id) WHERE p.title IS DISTINCT FROM c.title
	UNION ALL SELECT title, b FROM pairs JOIN photos USING (title) WHERE b <> coalesce(parent, id)
	UNION ALL SELECT p.title, p.parent FROM photos AS p LEFT JOIN photos AS q ON q.id = p.parent
		WHERE p.parent IS NOT NULL AND (q.title ~ '^old \d$') IS NOT TRUE};
my $remaining = 'SELECT count(*) FROM photos WHERE snowflake_shard(id) = 3';

# --- under load: sessions insert parents and children, update and delete -------------

value('load', "$tables; $fill; CREATE PUBLICATION everything FOR ALL TABLES");
my $load = start_sessions('load', <<EOS, '-R', '100');
\\set old 10 * random(1, $rows / 10) + random(-2, 6)
\\set removed 10 * random(1, $rows / 10) + 7
BEGIN;
INSERT INTO photos (title) VALUES (gen_random_uuid()) RETURNING id, title \\gset
INSERT INTO comments (title, photo_id) VALUES (':title', :id), (':title', :id);
INSERT INTO details (title, photo_id) VALUES (':title', :id);
INSERT INTO notes (title, photo_id) VALUES (':title', :id);
COMMIT;
BEGIN;
UPDATE comments SET n = n + 1 WHERE title = 'old ' || :old;
UPDATE photos SET n = n + 1 WHERE title = 'old ' || :old;
COMMIT;
WITH gone AS (DELETE FROM photos WHERE title = 'old ' || :removed RETURNING title)
INSERT INTO deleted SELECT title FROM gone;
EOS

my $said = run_psql('load', q{CALL snowflake_renumber('photos', 3, 6, batch => 200)});
unlike($said, qr/ERROR|WARNING/, 'a call under load ends without an error or warning');
like($said,
	qr/NOTICE:  \w+: [1-9]\d* rows of public.photos have new IDs; public.photos_renumbered keeps old and new$/m,
	'... and says how many rows it has renumbered');
end_sessions($load);

is(value('load', $remaining), 0, 'no row has the old shard');
is(value('load', $strays), '', 'every row leads to the row that it led to before');
holds('load',
	'every row is there, or deleted by a session' => qq{count(DISTINCT title) = $rows
		FROM (SELECT title FROM photos UNION ALL SELECT title FROM deleted) AS t WHERE title LIKE 'old %'},
	'no deleted row is there' => 'count(*) = 0 FROM photos JOIN deleted USING (title)',
	'no update is lost' =>
	q{bool_and(p.n = c.n) FROM photos AS p JOIN comments AS c USING (title) WHERE title LIKE 'old %'},
	'sessions have updated rows' => 'sum(n) > 0 FROM photos',
	'a publication of all tables does not send the list' =>
	q{relpersistence = 'u' FROM pg_class WHERE relname = 'photos_renumbered'},
	'new IDs keep their times and sequence numbers' => q{bool_and(snowflake_timestamp(old) = snowflake_timestamp(new)
		AND snowflake_sequence_number(old) = snowflake_sequence_number(new)
		AND snowflake_shard(old) = 3 AND snowflake_shard(new) = 6) FROM photos_renumbered},
	'the list has every row' => q{count(*) = count(new) FROM photos LEFT JOIN photos_renumbered ON new = id
		WHERE title LIKE 'old %'});

# --- a move back that has begun before ------------------------------------

new_admin_database('back');
value('back', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(3));
	INSERT INTO photos SELECT next_id(3) FROM generate_series(1, 10)});
my ($reader, $back, $late) = map { session($node, 'back') } 1 .. 3;
my $waits = q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event IN ('PgSleep', 'relation') AND pid = };
$reader->query_safe('BEGIN; SELECT FROM photos');
send_sql($back, q{CALL snowflake_move_back('photos', tries => 1000)});
$node->poll_query_until('back', $waits . $back->{backend}) or die;
send_sql($late, qq{\\set ON_ERROR_STOP 0\nCALL snowflake_renumber('photos', 3, 6, tries => 1000)});
# It has left its mark by then, or waits for the other one.
$node->poll_query_until('back', q{SELECT clock_timestamp() - query_start > '3 s' OR EXISTS (SELECT FROM snowflake_admin.unfinished())
	FROM pg_stat_activity WHERE pid = } . $late->{backend}) or die;
$reader->quit;
ok(session_prints($late, qr/ERROR:  column "id" of table public.photos gets its values from nextval/), 'a move back that is waiting comes first');
$_->quit foreach $back, $late;
is(value('back', q{SELECT count(*) FROM snowflake_admin.unfinished()}), 0, '... and leaves nothing half done');

# --- killed with its server, again and again -------------------------------

new_admin_database('kills');
value('kills', "$tables; $fill");
my ($kills, $shown) = (0, '');
for my $try (1 .. 6)
{
	my $call = $node->background_psql('kills', on_error_stop => 0);
	my $pid = $call->query_safe('SELECT pg_backend_pid()');
	my $goal = $rows - $try * $rows / 8;
	send_sql($call, q{CALL snowflake_renumber('photos', 3, 6, batch => 100)});
	wait_for(sub {
		$shown = value('kills', "SELECT application_name FROM pg_stat_activity WHERE pid = $pid") unless $shown =~ /%$/;
		return value('kills', $remaining) < $goal }) or last;
	select(undef, undef, undef, rand(0.1));
	my $offset = -s $node->logfile;
	kill 'KILL', $pid;
	ends($call->{run}, 'the session that renumbers');
	wait_for_restart($offset);
	$kills++ if value('kills', $remaining) > 0;
	is(value('kills', $strays), '', "killed, every row leads to the row that it led to before ($try)");
}
cmp_ok($kills, '>=', 4, 'several calls are killed before their end');
like($shown, qr/^renumbering public.photos: \d+ of about \d+ rows, \d+ %$/,
	'... and show their progress in pg_stat_activity');
my $unfinished = q{SELECT object, problem, remedy FROM snowflake_check() WHERE problem ~ 'renumber'};
my $call = q{CALL public.snowflake_renumber('public.photos'::regclass, 3::bigint, new_shard => 6::bigint);};
is(value('kills', $unfinished), 'table public.photos|snowflake_renumber() has begun to give rows of shard 3 new IDs, '
	  . "and has not ended. To give up: COMMENT ON TABLE public.photos_renumbered IS NULL.|$call",
	'... and snowflake_check() shows the call');

value('kills', q{DO $$ BEGIN EXECUTE format('COMMENT ON TABLE photos_renumbered IS %L',
	obj_description('photos_renumbered'::regclass) || E'\nfor support'); END $$});
like(value('kills', $unfinished), qr/To give up: take the line "snowflake_renumber.*" out of the comment on table public\.photos_renumbered\./,
	'... and a way back that keeps what others have noted there');

# A copy that is made then, with more rows
my $dump = PostgreSQL::Test::Utils::tempdir() . '/half.sql';
run_command([ 'pg_dump', '-d', $node->connstr('kills'), '-f', $dump ]);
value('postgres', 'CREATE DATABASE copy TEMPLATE template0');
value('copy', "\\i $dump");
my $done = value('copy', 'CREATE TABLE before AS TABLE photos_renumbered; SELECT count(*) FROM before JOIN photos ON new = id');
is(value('copy', $remaining) + $done, $rows, 'a copy has renumbered rows and others');
value('copy', q{
	INSERT INTO photos (id, title) SELECT snowflake_id(now() - interval '1 hour' - n * interval '1 s', 3, 0), 'late ' || n FROM generate_series(1, 500) AS n;
	INSERT INTO comments (title, photo_id) SELECT title, id FROM photos WHERE title LIKE 'late%' OR title LIKE '%7'});
value('copy', value('copy', $unfinished =~ s/object, problem, //r));
is(value('copy', $remaining), 0, 'a copy goes on by the command that its snowflake_check() shows');
is(value('copy', $strays), '', '... and every row leads to the row that it led to before');
holds('copy',
	'... and all rows are there' => "count(*) = count(DISTINCT title) AND count(*) = $rows + 500 FROM photos",
	'... and no row has got two new IDs' => qq{count(*) = $rows + 500 AND bool_and(snowflake_shard(old) = 3
		AND snowflake_timestamp(old) = snowflake_timestamp(new)) FROM photos_renumbered JOIN photos ON new = id},
	'... and those that were renumbered before the copy was made have kept their IDs' =>
		"count(*) = $done FROM before JOIN photos_renumbered USING (old, new) JOIN photos ON new = id");
is(value('copy', $unfinished), '', '... and snowflake_check() no longer shows it');

value('kills', $call);
is(value('kills', $remaining), 0, 'called again, it renumbers the rows that are left');
is(value('kills', $unfinished), '', '... and has ended');
is(value('kills', $strays), '', '... and every row leads to the row that it led to before');
is(value('kills', 'SELECT count(*), sum(n), count(DISTINCT title) FROM photos'), "$rows|0|$rows",
	'... and no other column has changed');
is(value('kills', 'SELECT count(*) FROM photos JOIN photos_renumbered ON new = id'), $rows,
	'without a publication, the list is logged, and survives all crashes');

# --- two sessions at once, and a row that somebody holds -------------------

value('kills', q{DELETE FROM photos WHERE title !~ '^old \d{1,4}$'});
my $left = 'SELECT count(*) FROM photos WHERE snowflake_shard(id) = 6';
my $holder = $node->background_psql('kills');
my $holders_pid = $holder->query_safe('SELECT pg_backend_pid()');
$holder->query_safe(q{BEGIN; UPDATE comments SET n = 1 WHERE title = 'old 77'});
like(run_psql('kills', q{CALL snowflake_renumber('photos', 6, 7, tries => 3)}),
	qr/ERROR:  55P03: could not renumber all rows of public.photos in 3 tries, such as \d+
DETAIL:  .*Process $holders_pid has used public.(comments|photos).*UPDATE comments/,
	'after some tries it gives up, and names the session in the way');
is(value('kills', $left), 1, '... when it has renumbered all rows but one that somebody holds');

my $first = $node->background_psql('kills', on_error_stop => 0);
my $pid = $first->query_safe('SELECT pg_backend_pid()');
send_sql($first, q{CALL snowflake_renumber('photos', 6, 7, tries => 1000)});
# It says this when it has counted its rows.
session_prints($first, qr/for each batch of old IDs/);
ok(wait_for(sub { value('kills', "SELECT wait_event FROM pg_stat_activity WHERE pid = $pid") eq 'PgSleep' }),
	'a session waits for that row');
fails_with($node, q{CALL snowflake_renumber('photos', 6, 7)},
	qr/^55000 snowflake_renumber\(\) works on table public.photos in process $pid$/,
	'a second session is refused, and learns of the first', dbname => 'kills');
value('kills', q{INSERT INTO photos (title) VALUES ('late')});
$holder->query_safe('COMMIT');
$holder->quit;
ok(session_prints($first, qr/WARNING:  table public.photos still gets IDs of shard 6, such as \d+
HINT:  .*snowflake_uses\(\) .*older sessions generate them: end those/),
	'it does not follow rows that come while it runs, and warns of them');
$first->quit;
value('kills', q{CALL snowflake_renumber('photos', 6, 7)});
is(value('kills', $left), 0, 'called again, it renumbers these rows, too');
is(value('kills', q{SELECT n FROM comments WHERE title = 'old 77'}), 1, 'the other session\'s update is not lost');
is(value('kills', $strays), '', 'every row leads to the row that it led to before');

# --- rounds ------------------------------------------------------------------

# The first round changes a row, whose trigger ends the session that holds the other one.
new_admin_database('rounds');
value('rounds', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(3), title text);
	CREATE FUNCTION end_holder() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		PERFORM pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'holder';
		RETURN NULL;
	END $$;
	CREATE TRIGGER end_holder AFTER UPDATE ON photos FOR EACH ROW EXECUTE FUNCTION end_holder();
	INSERT INTO photos (title) VALUES ('first'), ('second');
	ALTER TABLE photos ALTER id SET DEFAULT next_id(6)});
$holder = session($node, 'rounds');
$holder->query_safe(q{SET application_name = 'holder'; BEGIN; SELECT FROM photos WHERE title = 'first' FOR UPDATE});
succeeds('rounds', q{CALL snowflake_renumber('photos', 3, 6, tries => 1)}, 'a round that has changed a row is no try');
is(value('rounds', 'SELECT count(*) FROM photos WHERE snowflake_shard(id) = 6'), 2, '... and another one follows it');
$holder->{run}->kill_kill;

# A batch of two rows fails, and then each of them.
value('rounds', q{
	CREATE SEQUENCE errors;
	CREATE OR REPLACE FUNCTION end_holder() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE foreign_key_violation USING MESSAGE = 'error ' || nextval('errors');
	END $$});
like(run_psql('rounds', q{CALL snowflake_renumber('photos', 6, 7, tries => 1)}),
	qr/could not renumber all rows .*\nDETAIL:  The last error was: error 3\./, 'the last error is named, and not the first one');

# Between two batches, a superuser gives the tables to another role.  The trigger lets him come first.
value('rounds', q{
	CREATE OR REPLACE FUNCTION end_holder() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		WHILE NOT EXISTS (SELECT FROM pg_locks WHERE relation = 'photos'::regclass AND NOT granted) LOOP
			PERFORM pg_sleep(0.01);
		END LOOP;
		RETURN NULL;
	END $$;
	DROP TABLE photos_renumbered;
	GRANT CREATE ON SCHEMA public TO owner;
	ALTER TABLE photos OWNER TO owner});
my $caller = session($node, 'rounds');
send_sql($caller, q{SET SESSION AUTHORIZATION owner; CALL snowflake_renumber('photos', 6, 7, batch => 1)});
ok(wait_for(sub { value('rounds', "SELECT count(*) FROM pg_stat_activity WHERE pid = $caller->{backend}
		AND application_name LIKE 'renumbering %' AND wait_event = 'PgSleep'") }), 'a batch waits');
value('rounds', 'BEGIN; ALTER TABLE photos OWNER TO app; GRANT ALL ON photos TO owner; COMMIT');
ok(session_prints($caller, qr/ERROR:  must be owner of table public.photos\n/),
	'a table that another role owns by the next batch is not renumbered any more') or diag $caller->{stderr};
is(value('rounds', q{SELECT string_agg(title, ' ') FROM photos WHERE snowflake_shard(id) = 6}), 'second', '... after the first batch');
$caller->quit;

# --- names, schemas, triggers and keys of many kinds -----------------------

new_admin_database('odd');
value('odd', q{
	CREATE SCHEMA "Far away";
	SET search_path = "Far away", public;
	CREATE TABLE "Photo's" (
		tenant int NOT NULL, "the ID" snowflake DEFAULT next_id(3), title text, changes int NOT NULL DEFAULT 0,
		twice bigint GENERATED ALWAYS AS ("the ID"::bigint / 2) STORED, UNIQUE (tenant, "the ID"));
	CREATE UNIQUE INDEX ON "Photo's" ("the ID");
	CREATE DOMAIN photo AS bigint CHECK (value > 0);
	CREATE TABLE "100% ""new""" (tenant int, "photo's" photo, title text,
		FOREIGN KEY (tenant, "photo's") REFERENCES "Photo's" (tenant, "the ID")
			MATCH FULL ON UPDATE CASCADE DEFERRABLE);
	CREATE INDEX ON "100% ""new""" ("photo's");
	CREATE TABLE log (title text);
	CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN INSERT INTO log VALUES (NEW.title); NEW.changes := OLD.changes OPERATOR(pg_catalog.+) 1; RETURN NEW; END';
	CREATE TRIGGER log BEFORE UPDATE ON "Photo's" FOR EACH ROW EXECUTE FUNCTION log();
	INSERT INTO "Photo's" (tenant, title) SELECT n % 3, n FROM generate_series(1, 1000) AS n;
	INSERT INTO "100% ""new""" SELECT tenant, "the ID", title FROM "Photo's" UNION ALL SELECT NULL, NULL, 'none'});
value('postgres', 'ALTER DATABASE odd SET search_path = "Far away", public');
hostile_schema($node, 'odd');
my $serializable = q{
	SET default_transaction_isolation = serializable;
	SET search_path = evil, pg_catalog, "Far away";
	CALL public.snowflake_renumber('"Photo''s"', 3, 6, batch => 100, dry_run => };
like(run_psql('odd', "$serializable true)"),
	qr/CREATE TABLE "Far away"."Photo's_renumbered" .* 1000 rows of "Far away"."Photo's" would get new IDs$/ms,
	'a dry run shows what it would do');
like(run_psql('odd', "$serializable false)"), qr/NOTICE:  \w+: 1000 rows of "Far away"."Photo's" have new IDs/,
	'names that need quotes are no obstacle, and neither is a hostile schema in search_path');
is(value('odd', q{SELECT count(*) FROM "Photo's" AS p JOIN "100% ""new""" AS n
	ON p.title = n.title AND "the ID" = "photo's" AND p.tenant = n.tenant
	WHERE snowflake_shard("the ID") = 6 AND twice = "the ID" / 2 AND changes = 1}), 1000,
	'a column of type snowflake, a domain, a foreign key of two columns and a generated column change together');
is(value('odd', 'SELECT count(DISTINCT title) FROM log'), 1000, q{triggers run, with the caller's search_path});

value('postgres', 'ALTER DATABASE odd RESET search_path');
like(run_psql('odd', q{
	SET search_path = evil, pg_catalog, "Far away";
	CALL public.snowflake_renumber_schema('Far away', 6, 8)}), qr/NOTICE:  \w+: 1 of 1 tables done/, 'and all tables of their schema');
value('postgres', 'ALTER DATABASE odd SET search_path = "Far away", public');
is(value('odd', 'SELECT count(*) FROM log'), 2000, q{... with the caller's search_path});

# A trigger that keeps the old IDs
value('odd', q{
	CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
	CREATE TRIGGER keep BEFORE UPDATE ON "Photo's" FOR EACH ROW WHEN (OLD.title = '500') EXECUTE FUNCTION keep();
	DELETE FROM "100% ""new""" WHERE title = '500'});
fails_with($node, q{CALL snowflake_renumber('"Photo''s"', 8, 7, batch => 100)},
	qr/^55000 1 of 100 rows kept their IDs/, 'a trigger that prevents the change is an error', dbname => 'odd');

# --- rows dated in the future, with a key of a domain of a domain -----------

new_admin_database('future');
value('future', q{
	CREATE DOMAIN number AS bigint;
	CREATE DOMAIN photo_number AS number;
	CREATE TABLE photos (id photo_number PRIMARY KEY DEFAULT next_id(4), title text);
	CREATE TABLE comments (title text, photo_id bigint REFERENCES photos);
	CREATE INDEX ON comments (photo_id);
	INSERT INTO photos (title) SELECT 'present ' || n FROM generate_series(1, 100) AS n;
	INSERT INTO photos (id, title)
	SELECT snowflake_id(now() + interval '1 hour', shard, n), format('future %s, %s', shard, n)
	FROM generate_series(3, 4) AS shard, generate_series(1, 500) AS n;
	INSERT INTO comments SELECT title, id FROM photos;
	CREATE TABLE before AS TABLE photos});
fails_with($node, q{
		CREATE FUNCTION interrupt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'interrupted'; END $$;
		CREATE TRIGGER interrupt BEFORE UPDATE ON photos FOR EACH ROW WHEN (OLD.title = 'future 3, 300') EXECUTE FUNCTION interrupt();
		CALL snowflake_renumber('photos', 3, since => now() + interval '0.1 s', batch => 100)},
	qr/^P0001 interrupted/, 'a call is interrupted', dbname => 'future');
value('future', 'DROP TRIGGER interrupt ON photos');
like(my $rest = value('future', $unfinished =~ s/object, problem, //r),
	qr/^CALL public.snowflake_renumber\('public.photos'::regclass, 3::bigint, since => '20.*'::timestamptz\);$/,
	'... and snowflake_check() shows it, with a time that has passed');
value('future', $rest);
is(value('future', $unfinished), '', '... which goes on to its end');
my $dated = q{SELECT count(*) FILTER (WHERE id > snowflake_max_id(now() + interval '1 s')) FROM photos};
is(value('future', $dated), 500, 'rows dated in the future get new IDs, those of another shard do not');
value('future', q{CALL snowflake_renumber('photos', 4, since => now() + '10 min', until => now() + '1 day')});
is(value('future', $dated), 0, 'the shard may be the one that the default has');
holds('future',
	'every row leads to the row that it led to before' =>
	'count(*) = 1100 FROM photos JOIN comments ON photo_id = id AND photos.title = comments.title',
	'no other row has a new ID' => 'count(*) = 100 FROM photos JOIN before USING (id, title)',
	'the new IDs have the order of the old ones' =>
		q{bool_and(n = row) FROM (SELECT split_part(title, ', ', 2)::int AS n,
		row_number() OVER (ORDER BY id) AS row FROM photos WHERE title LIKE 'future 3%') AS t});
value('future', q{
	INSERT INTO photos VALUES (snowflake_min_id('2026-01-02Z') - 1, 'in time'), (snowflake_id('2026-01-02Z', 8191, 0), 'too late');
	CALL snowflake_renumber('photos', 8191, 8190, until => '2026-01-02Z')});
is(value('future', q{SELECT string_agg(title || ' ' || snowflake_shard(id), ', ' ORDER BY id) FROM photos
	WHERE title IN ('in time', 'too late')}), 'in time 8190, too late 8191', 'a range of time ends before its end');
fails_with($node, q{
		ALTER TABLE photos ALTER id SET DEFAULT snowflake_id(now() + interval '2 hours', 5, 1);
		INSERT INTO photos DEFAULT VALUES;
		CALL snowflake_renumber('photos', 5)},
	qr/^55000 the default of table public.photos generates future-dated IDs, too/,
	'new IDs that are dated in the future as well are an error', dbname => 'future');

# --- partitions ------------------------------------------------------------

new_admin_database('parts');
value('parts', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(3), title text) PARTITION BY RANGE (id);
	DO $$ BEGIN FOR year IN 2024 .. 2030 LOOP
		EXECUTE format('CREATE TABLE photos_%s PARTITION OF photos FOR VALUES FROM (%s) TO (%s)', year,
			snowflake_min_id(make_timestamptz(year, 1, 1, 0, 0, 0)),
			snowflake_min_id(make_timestamptz(year + 1, 1, 1, 0, 0, 0)));
	END LOOP; END $$;
	CREATE TABLE comments (title text, photo_id bigint REFERENCES photos) PARTITION BY HASH (photo_id);
	CREATE TABLE comments_0 PARTITION OF comments FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE comments_1 PARTITION OF comments FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	CREATE INDEX ON comments (photo_id);
	INSERT INTO photos (id, title)
	SELECT snowflake_id(now() - n * interval '5 hours', 3, 1), n::text FROM generate_series(1, 1000) AS n
	UNION ALL SELECT snowflake_id('2030-06-01Z', 4, n), 'future' FROM generate_series(1, 100) AS n;
	INSERT INTO comments SELECT title, id FROM photos});
value('parts', q{CALL snowflake_renumber('photos', 3, 6, batch => 100)});
value('parts', q{CALL snowflake_renumber('photos', 4)});
is(value('parts', q{
		SELECT snowflake_shard(id), p.title = 'future', count(*)
		FROM photos AS p JOIN comments ON photo_id = id AND comments.title = p.title GROUP BY 1, 2 ORDER BY 1}),
	"3|t|100\n6|f|1000", 'rows of partitions get new IDs, and move to other partitions');
fails_with($node, q{CALL snowflake_renumber('photos_2025', 6, 7)}, qr/^55000 public.photos_2025 is a partition/,
	'a partition is refused', dbname => 'parts');

# --- all tables of a schema ------------------------------------------------

new_admin_database('schemas');
my $keys = q{SELECT string_agg(tab || ' ' || rows || ' ' || shards, ', ' ORDER BY tab) FROM (
	SELECT tab, count(*) AS rows, string_agg(DISTINCT snowflake_shard(id)::text, '+') AS shards FROM (
		SELECT 'big' AS tab, id FROM "My shop"."Big's" UNION ALL SELECT 'link', id FROM "My shop".links
		UNION ALL SELECT 'detail', id FROM "My shop".details UNION ALL SELECT 'day', id FROM "My shop".days
		UNION ALL SELECT 'other', id FROM "My shop".others UNION ALL SELECT 'far', id FROM far) AS t GROUP BY tab) AS t};
value('schemas', q{
	CREATE SCHEMA "My shop";
	SET search_path = "My shop", public;
	CREATE TABLE "Big's" (id bigint PRIMARY KEY DEFAULT next_id(3), parent bigint REFERENCES "Big's", title text);
	CREATE INDEX ON "Big's" (parent);
	CREATE TABLE details (id bigint PRIMARY KEY DEFAULT next_id(3) REFERENCES "Big's");
	CREATE TABLE links (id bigint PRIMARY KEY DEFAULT next_id(3), "big's" bigint REFERENCES "Big's");
	CREATE INDEX ON links ("big's");
	CREATE TABLE days (id bigint PRIMARY KEY DEFAULT next_id(3)) PARTITION BY RANGE (id);
	CREATE TABLE day PARTITION OF days DEFAULT;
	CREATE TABLE others (id bigint PRIMARY KEY DEFAULT next_id(3));
	CREATE TABLE bare (id bigint DEFAULT next_id(3));
	CREATE TABLE counted (id bigserial PRIMARY KEY);
	CREATE TABLE public.far (id bigint PRIMARY KEY DEFAULT next_id(3));
	INSERT INTO "Big's" (title) SELECT n FROM generate_series(1, 30) AS n;
	INSERT INTO details SELECT id FROM "Big's" LIMIT 10;
	INSERT INTO links ("big's") SELECT id FROM "Big's";
	INSERT INTO days SELECT FROM generate_series(1, 5);
	INSERT INTO others DEFAULT VALUES;
	INSERT INTO far DEFAULT VALUES;
	GRANT USAGE, CREATE ON SCHEMA "My shop" TO owner;
	DO $$ BEGIN EXECUTE (SELECT string_agg(format('ALTER TABLE %s OWNER TO owner', oid::regclass), ';') FROM pg_class
		WHERE relnamespace = '"My shop"'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'others'); END $$;
	CREATE FUNCTION interrupt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'interrupted'; END $$;
	CREATE TRIGGER interrupt BEFORE UPDATE ON links FOR EACH ROW WHEN (OLD.id <> NEW.id) EXECUTE FUNCTION interrupt()});
my $call_schema = q{SET ROLE owner; CALL snowflake_renumber_schema('My shop', 3, 6};
$said = run_psql('schemas', "$call_schema, dry_run => true)");
like($said, qr/WARNING:  \w+: "My shop".bare keeps its IDs: table "My shop".bare has no column of IDs\n/, 'a table without a key is named');
like($said, qr/WARNING:  \w+: "My shop".others keeps its IDs: must be owner of table "My shop".others\n/, '... and one of another owner');
is(join(', ', $said =~ /(\d+ rows of .*|\d+ of \d+ tables) (?:would get new IDs|done)/g),
	q{30 rows of "My shop"."Big's", 5 rows of "My shop".days, 30 rows of "My shop".links, 3 of 5 tables},
	'a dry run says how many rows of which tables get new IDs, but not of those that get them with others');
is(value('schemas', $keys), 'big 30 3, day 5 3, detail 10 3, far 1 3, link 30 3, other 1 3', '... and changes nothing');
like(run_psql('schemas', "$call_schema)"), qr/ERROR:  P0001: interrupted/, 'an error in one table ends the call');
is(value('schemas', $keys), 'big 30 6, day 5 6, detail 10 6, far 1 3, link 30 3, other 1 3',
	'... when the tables before it are done');
value('schemas', q{DROP TRIGGER interrupt ON "My shop".links});
my $list = value('schemas', q{SELECT count(*), min(old), max(new) FROM "My shop"."Big's_renumbered"});
like($said = run_psql('schemas', "$call_schema)"), qr/NOTICE:  \w+: 0 rows of "My shop"."Big's" have new IDs\n.*NOTICE:  \w+: 3 of 5 tables done/s,
	'another call goes on');
is(value('schemas', $keys), 'big 30 6, day 5 6, detail 10 6, far 1 3, link 30 6, other 1 3', '... to the end');
is(value('schemas', q{SELECT count(*), min(old), max(new) FROM "My shop"."Big's_renumbered"}), $list,
	'... and changes no row again');
is(value('schemas', $unfinished), '', '... and nothing is half done');
fails_with($node, @$_, dbname => 'schemas') foreach
  [ q{CALL snowflake_renumber_schema('none', 3, 6)}, qr/^3F000 schema "none" does not exist/, 'refused: a schema that does not exist' ],
  [ q{CALL snowflake_renumber_schema('My shop', 3, 3)}, qr/^22023 new shard 3 is the old one/, 'refused: the shard that rows have' ],
  [ q{BEGIN; CALL snowflake_renumber_schema('My shop', 3, 6)}, qr/^2D000 .*cannot run inside a transaction block/, 'refused: a block' ];

# --- what it refuses -------------------------------------------------------

new_admin_database('refusals');
value('refusals', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(3));
	CREATE TABLE child () INHERITS (photos);
	INSERT INTO photos SELECT FROM generate_series(1, 10);
	CREATE TABLE comments (nr serial PRIMARY KEY, photo_id bigint REFERENCES photos);
	CREATE TABLE serials (id bigserial PRIMARY KEY);
	CREATE TABLE identities (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
	CREATE TABLE plain (id bigint PRIMARY KEY);
	CREATE TABLE small (id integer PRIMARY KEY);
	CREATE TABLE other (id bigint PRIMARY KEY, more bigint GENERATED ALWAYS AS (id) STORED REFERENCES photos);
	CREATE TABLE taken (id bigint PRIMARY KEY DEFAULT next_id(3));
	INSERT INTO taken VALUES (snowflake_id('2026-01-01Z', 3, 1)), (snowflake_id('2026-01-01Z', 6, 1));
	CREATE TABLE named (id bigint PRIMARY KEY DEFAULT next_id(3));
	INSERT INTO named DEFAULT VALUES;
	CREATE VIEW named_renumbered AS SELECT 1 AS old;
	CREATE TABLE listed (id bigint PRIMARY KEY DEFAULT next_id(3));
	CREATE TABLE listed_renumbered (old bigint PRIMARY KEY, new bigint NOT NULL)});
sub refuses
{
	my ($sql, $error, $name) = @_;
	return fails_with($node, $sql, $error, "refused: $name", dbname => 'refusals');
}
refuses("CALL snowflake_renumber($_->[0])", @$_[ 1, 2 ])
  foreach [ q{'photos', 3, 6},
	qr/^55000 column "photo_id" of table public.comments holds IDs that would change, and has no index/, 'no index' ],
  [ q{'photos', 3, 3}, qr/^22023 new shard 3 is the old one/, 'the same shard' ],
  [ q{'photos', NULL}, qr/^22004 shard must not be null/, 'no shard' ],
  [ q{'photos', 3, 6, '2026-01-02Z', '2026-01-01Z'}, qr/^22023 no ID is from/, 'times in the wrong order' ],
  [ q{'photos', 3, since => '2026-01-02Z'}, qr/^22023 without new_shard, only future-dated rows/,
	'the past without a new shard' ],
  [ q{'photos', 3, 6, batch => 0}, qr/^22023 batch 0 is not positive/, 'batches of no row' ],
  [ q{'serials', 3, 6}, qr/^55000 column "id" of table public.serials gets its values from nextval\(\)/, 'serial' ],
  [ q{'identities', 3, 6}, qr/^55000 column "id" of table public.identities gets its values from nextval\(\)/,
	'an identity' ],
  [ q{'plain', 3}, qr/^55000 column "id" of table public.plain has no default that generates IDs/,
	'no default, without a new shard' ],
  [ q{'small', 3, 6}, qr/^55000 table public.small has no column of IDs/, 'an integer' ],
  [ q{'taken', 3, 6}, qr/^55000 table public.taken already has an ID that another row would get: \d+/,
	'an ID that is not free' ],
  [ q{'named', 3, 6}, qr/^55000 public.named_renumbered exists, and is not a list of old and new IDs/,
	q{the list's name is taken} ];
refuses("CREATE INDEX ON comments (photo_id); $call",
	qr/^55000 column "more" of table public.other refers to the IDs, and is generated/, 'a generated column');
value('refusals', 'DROP TABLE other');
value('refusals', q{
	CREATE TABLE named_twice (photo_id bigint REFERENCES photos REFERENCES comments);
	CREATE INDEX ON named_twice (photo_id)});
refuses($call, qr/^55000 column "photo_id" of table public.named_twice also refers to table public.comments/,
	'a column that refers to another column of a table in the chain, too');
value('refusals', 'DROP TABLE named_twice');
refuses("BEGIN; $call", qr/^2D000 snowflake_renumber\(\) cannot run inside a transaction block/, 'a transaction block');
refuses("SET ROLE nobody; $call", qr/^42501 must be owner of table public.photos/, 'a role without the owner\'s rights');
is(value('refusals', 'SELECT count(*) FROM photos WHERE snowflake_shard(id) = 3'), 10, 'a refusal changes nothing');
refuses(q{CREATE PUBLICATION p FOR TABLES IN SCHEMA public; CALL snowflake_renumber('listed', 3, 6)},
	qr/^55000 publication p would send the rows of public.listed_renumbered/, 'a list that a publication would send');
like(run_psql('refusals', $call), qr/table public.child inherits from public.photos, and its rows have kept their IDs/,
	'tables that inherit keep their IDs, with a warning');
done_testing();
