-- Defaults in COPY, and other expressions that are planned without a query
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_table

-- Each row that COPY writes gets its own ID from each form of next_id().
CREATE SEQUENCE copied MAXVALUE 9007199254736895;
CREATE SEQUENCE copied_rows;
CREATE TABLE lines (
    id bigint PRIMARY KEY DEFAULT next_id(5),
    n int,
    tweet bigint DEFAULT next_id(33, 'copied', 'twitter'),
    setting bigint DEFAULT next_id(),
    txt text DEFAULT 'p' || next_id(6)::text,
    spread bigint DEFAULT next_id((random() * 0)::bigint + 8),
    served bigint DEFAULT next_id(34, 'copied'),
    typed snowflake DEFAULT next_id(35));
SET snowflake.shard = 7;
COPY lines (n) FROM stdin;
1
2
3
\.
COPY lines (n) FROM stdin WHERE next_id(5) > 0;
4
5
\.
-- The errors are those of next_id(): no shard is set, and a sequence serves another layout, or none.
RESET snowflake.shard;
\set VERBOSITY terse
COPY lines (n) FROM stdin;
7
\.
\set VERBOSITY default
ALTER TABLE lines ALTER setting DROP DEFAULT;
ALTER TABLE lines ALTER tweet SET DEFAULT next_id(33, 'copied', 'instagram');
COPY lines (n) FROM stdin;
7
\.
ALTER TABLE lines ALTER tweet SET DEFAULT next_id(33, 'copied_rows');
COPY lines (n) FROM stdin;
7
\.
ALTER TABLE lines ALTER tweet DROP DEFAULT;

-- A new column, and a new type with USING, give each row its own ID.
ALTER TABLE lines ADD COLUMN added bigint DEFAULT next_id(9);
SET snowflake.shard = 10;
ALTER TABLE lines ADD COLUMN added_setting bigint NOT NULL DEFAULT next_id();
RESET snowflake.shard;
ALTER TABLE lines ALTER n TYPE bigint USING next_id(11);
-- (The rows that failed are not there.)
SELECT name, count(*) AS rows, count(DISTINCT made) AS different_ids, min(shard) AS shard, max(shard) AS same_shard,
       count(*) FILTER (WHERE made < before) AS out_of_order
FROM (SELECT name, made, lag(made) OVER (PARTITION BY name ORDER BY id) AS before,
             CASE WHEN name IN ('tweet', 'served') THEN snowflake_shard(made, 'twitter')
                  ELSE snowflake_shard(made) END AS shard
      FROM lines, LATERAL (VALUES ('id', id), ('tweet', tweet), ('setting', setting), ('txt', substr(txt, 2)::bigint),
          ('spread', spread), ('served', served), ('typed', typed), ('added', added), ('added_setting', added_setting),
          ('n', n)) AS m (name, made)) AS t GROUP BY name ORDER BY name;
-- The stored default is what was typed.
SELECT attname, pg_get_expr(adbin, adrelid) AS stored_default
FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE adrelid = 'lines'::regclass
ORDER BY attnum;

-- A domain's default and CHECK
:as_lines
CREATE DOMAIN stamped AS bigint DEFAULT next_id(12) CHECK (VALUE < next_id(12));
CREATE TABLE stamps (n int, id stamped);
COPY stamps (n) FROM stdin;
1
2
\.
INSERT INTO stamps (n) VALUES (4);
SELECT snowflake_shard(id) AS shard_of_domain, count(*) AS rows_of_domain, count(DISTINCT id) AS ids_of_domain,
       (SELECT sqlstate_ FROM error_of('INSERT INTO stamps VALUES (5, 9223372036854775807)')) AS beyond_the_check
FROM stamps GROUP BY shard_of_domain;
-- Parameters, CALL and PL/pgSQL
PREPARE shard_of (bigint) AS SELECT snowflake_shard($1) AS shard_of_parameter;
EXECUTE shard_of (next_id(13));
CREATE PROCEDURE show_shard(id bigint) LANGUAGE plpgsql AS $$ BEGIN RAISE INFO 'shard %', snowflake_shard(id); END $$;
CALL show_shard(next_id(14));
DO $$
DECLARE
    a bigint[] := ARRAY[next_id(5), next_id(5)];
    b text := next_id(5);
BEGIN
    RAISE INFO 'in order: % %', a[2] > a[1], b::bigint > a[2];
END $$;
-- Partitions
CREATE TABLE parts (id bigint DEFAULT next_id(5), n int) PARTITION BY LIST (n);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
COPY parts (n) FROM stdin;
1
2
\.
SELECT count(DISTINCT id) AS ids_of_two_rows FROM parts;

-- COPY inserts rows in batches: none is in the table yet when the CHECK of the last is evaluated.  Beside another
-- volatile function it inserts row by row.
CREATE TABLE batch (id bigint DEFAULT next_id(5), setting bigint DEFAULT next_id(6, 'copied', 'twitter'), n int,
    CONSTRAINT table_is_empty CHECK (pg_relation_size('batch') = 0));
COPY batch (n) FROM stdin;
1
2
3
\.
TRUNCATE batch;
ALTER TABLE batch ALTER id SET DEFAULT next_id(5) + (random() * 0)::bigint;
\set VERBOSITY terse
COPY batch (n) FROM stdin;
1
2
\.
\set VERBOSITY default
DROP TABLE batch;

-- A role that may not call next_id() may not do so in COPY.
CREATE ROLE regress_sf_app;
CREATE TABLE held (id bigint DEFAULT next_id(5), n int);
CREATE TABLE held_setting (id bigint DEFAULT next_id(), n int);
GRANT INSERT ON held, held_setting TO regress_sf_app;
REVOKE EXECUTE ON FUNCTION next_id(bigint), next_id() FROM PUBLIC;
SET snowflake.shard = 10;
SET ROLE regress_sf_app;
COPY held (n) FROM stdin;
1
\.
COPY held_setting (n) FROM stdin;
1
\.
RESET ROLE;
GRANT EXECUTE ON FUNCTION next_id(bigint), next_id() TO PUBLIC;
SET ROLE regress_sf_app;
COPY held (n) FROM stdin;
1
2
\.
COPY held_setting (n) FROM stdin;
1
\.
-- One that may call next_id(), but not its replacement in COPY, can copy.
RESET ROLE;
REVOKE EXECUTE ON FUNCTION snowflake_next_id_in_copy FROM PUBLIC;
SET ROLE regress_sf_app;
COPY held (n) FROM stdin;
3
4
\.
COPY held_setting (n) FROM stdin;
2
\.
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_next_id_in_copy TO PUBLIC;
SELECT count(DISTINCT held.id) AS ids_of_four_rows, count(DISTINCT held_setting.id) AS ids_of_two_rows
FROM held, held_setting;
-- Nobody can call the replacement.
SELECT sqlstate_ IN ('0A000', '42883') AS replacement_is_refused
FROM error_of('SELECT snowflake_next_id_in_copy(NULL, ''next_id(bigint)''::regprocedure, 5, NULL, NULL)');
RESET snowflake.shard;

-- COPY, ADD COLUMN, EXECUTE and CALL do what INSERT does where next_id() has been altered: its setting counts, ...
CREATE TABLE altered (id bigint DEFAULT next_id(), n int);
SET snowflake.shard = 3;
ALTER FUNCTION next_id() SET snowflake.shard = 7;
INSERT INTO altered (n) VALUES (1);
COPY altered (n) FROM stdin;
2
\.
ALTER TABLE altered ADD COLUMN added bigint DEFAULT next_id();
SELECT string_agg(format('%s: %s, %s', n, snowflake_shard(id), snowflake_shard(added)), '; ' ORDER BY n)
    AS altered_shards FROM altered;
EXECUTE shard_of (next_id());
CALL show_shard(next_id());
ALTER FUNCTION next_id() RESET ALL;
-- ... one of the replacement does not, ...
ALTER FUNCTION snowflake_next_id_in_copy SET snowflake.shard = 8;
COPY altered (n) FROM stdin;
3
\.
SELECT snowflake_shard(id) AS not_altered_by_replacement FROM altered WHERE n = 3;
ALTER FUNCTION snowflake_next_id_in_copy RESET ALL;
RESET snowflake.shard;
-- ... and neither does the caller's lack of privileges if it has its owner's rights.
CREATE SEQUENCE closed MAXVALUE 1125899906841599;
CREATE TABLE defined (id bigint DEFAULT next_id(5, 'closed'), n int);
GRANT INSERT ON defined TO regress_sf_app;
ALTER FUNCTION next_id(bigint, regclass) SECURITY DEFINER;
SET ROLE regress_sf_app;
INSERT INTO defined (n) VALUES (1);
COPY defined (n) FROM stdin;
2
\.
RESET ROLE;
ALTER FUNCTION next_id(bigint, regclass) SECURITY INVOKER;

-- Another's function that has the replacement's name is never called, wherever next_id() is, ...
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.snowflake_next_id_in_copy(
    value internal, replaced oid, shard bigint, sequence regclass, layout snowflake_layout)
RETURNS bigint LANGUAGE internal STABLE AS 'int8abs';
ALTER FUNCTION next_id(bigint, regclass) SET SCHEMA hostile;
COPY defined (n) FROM stdin;
5
\.
-- ... and whatever its name is, ...
ALTER FUNCTION hostile.next_id(bigint, regclass) RENAME TO new_id;
COPY defined (n) FROM stdin;
6
\.
SELECT string_agg(format('%s: %s', n, snowflake_shard(id)), '; ' ORDER BY n) AS defined_shards FROM defined;
ALTER FUNCTION hostile.new_id(bigint, regclass) RENAME TO next_id;
ALTER FUNCTION hostile.next_id(bigint, regclass) SET SCHEMA public;
-- ... also for roles other than superusers.
ALTER FUNCTION next_id(bigint) RENAME TO new_id;
SET ROLE regress_sf_app;
COPY held (n) FROM stdin;
6
\.
RESET ROLE;
ALTER FUNCTION new_id(bigint) RENAME TO next_id;
SELECT snowflake_shard(id) AS shard_of_renamed FROM held WHERE n = 6;
-- A domain's CHECK is planned once, here for a superuser, and evaluated for all roles.
REVOKE EXECUTE ON FUNCTION snowflake_next_id_in_copy FROM PUBLIC;
CREATE DOMAIN old_id AS bigint CHECK (VALUE < next_id(5));
SELECT 17::old_id AS superuser;
SET ROLE regress_sf_app;
SELECT 18::old_id AS app;
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_next_id_in_copy TO PUBLIC;

-- Queries keep next_id() as it is.
:as_table
EXPLAIN (VERBOSE, COSTS OFF) SELECT next_id(5), next_id();

-- Planning takes no ID, whatever the planner estimates, and works where none can be taken.
CREATE SEQUENCE planned MAXVALUE 1125899906841599;
CREATE TABLE places (id bigint PRIMARY KEY, n int) PARTITION BY RANGE (id);
CREATE TABLE places_old PARTITION OF places FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2020-01-01Z'));
CREATE TABLE places_new PARTITION OF places FOR VALUES FROM (snowflake_min_id('2020-01-01Z')) TO (MAXVALUE);
INSERT INTO places SELECT snowflake_id('2019-01-01Z'::timestamptz + g * interval '1 day', 5, 0), g % 7
FROM generate_series(1, 1000) g;
ANALYZE places;
CREATE FUNCTION outcome_of_planning(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    taken boolean;
BEGIN
    EXECUTE 'EXPLAIN ' || replace(command, 'ID', 'next_id(5, ''planned'')');
    SELECT is_called INTO taken FROM planned;
    RETURN CASE WHEN taken THEN 'has taken an ID' ELSE 'planned' END;
EXCEPTION WHEN others THEN
    RETURN SQLERRM;
END $$;
BEGIN READ ONLY;
SELECT outcome, count(*) AS commands, min(command) FILTER (WHERE outcome <> 'planned') AS for_example
FROM unnest(ARRAY[
    'SELECT FROM places WHERE id = ID', 'SELECT FROM places WHERE id < ID',
    'SELECT FROM places WHERE id BETWEEN 3 AND ID', 'SELECT FROM places WHERE id IN (ID, 3)',
    'SELECT FROM places WHERE id < ALL (ARRAY[3, ID])', 'SELECT FROM places WHERE (id, n) < (ID, 3)',
    'SELECT FROM places WHERE ARRAY[id] @> ARRAY[ID]', 'SELECT FROM places WHERE id::text LIKE ID || ''%''',
    'SELECT FROM places WHERE int8range(ID, NULL) @> id',
    'SELECT FROM places WHERE CASE ID WHEN 3 THEN id = ID ELSE n = 3 END',
    'SELECT FROM places a JOIN places b ON a.id = b.id AND b.id IN (ID, 3)',
    'SELECT FROM places TABLESAMPLE bernoulli (ID % 100)', 'SELECT FROM places LIMIT ID OFFSET ID',
    'SELECT n, count(*) FILTER (WHERE id IN (ID, 3)) FROM places GROUP BY n HAVING max(id) IN (ID, 3)',
    'SELECT max(id) OVER (ORDER BY n ROWS ID PRECEDING) FROM places ORDER BY id IN (ID, 3)',
    'SELECT FROM generate_series(1, ID) g', 'SELECT FROM next_ids(ID % 5, ID)', 'VALUES (ID), (3)',
    'INSERT INTO places VALUES (ID, 3) ON CONFLICT (id) DO UPDATE SET n = 4 WHERE places.id IN (ID, 3) RETURNING ID',
    'UPDATE places SET n = 4 WHERE id IN (ID, 3)',
    'MERGE INTO places USING (SELECT ID AS id) AS new ON places.id = new.id AND places.id IN (ID, 3)
     WHEN MATCHED AND n IN (ID, 3) THEN DELETE'
    ]) AS command, outcome_of_planning(command) AS outcome
GROUP BY outcome;
ROLLBACK;

-- The planner knows how many rows next_ids() returns, ...
CREATE FUNCTION planned_rows(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || command INTO plan;
    RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
CREATE OPERATOR ### (FUNCTION = next_ids, LEFTARG = bigint, RIGHTARG = bigint);
SELECT command, planned_rows(command) FROM unnest(ARRAY[
    'SELECT * FROM next_ids(5, 17)',
    'SELECT * FROM next_ids(5, 0)',
    'SELECT * FROM next_ids(5, (random() * 3)::int)',
    -- ... but not where an operator stands for the function.
    'SELECT 5::bigint ### 17::bigint']) AS command;
