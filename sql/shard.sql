-- This server's shard: snowflake_shard() and snowflake_set_shard()
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_lines

-- A session that has just ended may still count as one that keeps its value.
SET client_min_messages = warning;
SELECT * FROM error_of('SELECT snowflake_shard()');
SELECT snowflake_set_shard(5) \gset
SELECT snowflake_shard() AS shard, snowflake_shard(next_id()) AS shard_of_id;

-- It serves in the default of a table with its own sequence, and follows a change, also in a generic plan.
CREATE SEQUENCE views_id_seq MAXVALUE 1125899906841599;
CREATE TABLE views (id bigint PRIMARY KEY DEFAULT next_id(snowflake_shard(), 'views_id_seq'), photo int);
INSERT INTO views (photo) VALUES (1);
COPY views (photo) FROM stdin;
2
3
\.
:as_table
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO views (photo) VALUES (1);
:as_lines
PREPARE view AS INSERT INTO views (photo) SELECT 10 RETURNING snowflake_shard(id) AS shard_of_prepared;
SET plan_cache_mode = force_generic_plan;
EXECUTE view;
SELECT snowflake_set_shard(8191) \gset
EXECUTE view;
RESET plan_cache_mode;
SELECT json_object_agg(shard, rows ORDER BY shard) AS rows_of_shards
FROM (SELECT snowflake_shard(id) AS shard, count(*) AS rows FROM views GROUP BY shard) AS s;

-- New sessions have it before they load the library.
\c -
SET client_min_messages = warning;
SELECT current_setting('snowflake.shard') AS setting, snowflake_shard() AS shard_of_a_new_session;

-- A rollback undoes it, in the session and for new ones.
BEGIN;
SELECT snowflake_set_shard(6) \gset
SELECT snowflake_shard() AS shard_before_rollback;
ROLLBACK;
SELECT snowflake_shard() AS shard_after_rollback;
BEGIN;
SAVEPOINT before;
SELECT snowflake_set_shard(6) \gset
ROLLBACK TO before;
SELECT snowflake_set_shard(7) \gset
COMMIT;
SELECT snowflake_shard() AS shard_after_commit;
SELECT setting AS setting_of_the_database
FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase, unnest(setconfig) AS setting
WHERE datname = current_database() AND setting LIKE 'snowflake%';

-- Parallel workers have it, whether the library is loaded before them or by them.
CREATE TABLE many AS SELECT generate_series(1, 20000) AS n;
ALTER TABLE many SET (parallel_workers = 2);
ANALYZE many;
-- (A plain call would load the library before the workers start.)
CREATE FUNCTION late() RETURNS integer LANGUAGE plpgsql STABLE PARALLEL SAFE
AS 'BEGIN RETURN snowflake_shard(); END';
CALL prefer_parallel();
SELECT plans_workers('SELECT count(*) FROM many WHERE n % 8192 < snowflake_shard()');
SELECT count(*) AS loaded_before FROM many WHERE n % 8192 < snowflake_shard();
\c -
SET client_min_messages = warning;
CALL prefer_parallel();
SELECT plans_workers('SELECT count(*) FROM many WHERE n % 8192 < late()');
SELECT count(*) AS loaded_by_workers FROM many WHERE n % 8192 < late();

-- A warning says what overrides it, as long as it does.
CREATE ROLE regress_sf_app;
CREATE ROLE "regress sf second";
ALTER ROLE regress_sf_app SET snowflake.shard = 17;
SELECT format('ALTER ROLE "regress sf second" IN DATABASE %I', current_database()) AS alter_second \gset
:alter_second SET snowflake.shard = 18;
CREATE FUNCTION made_elsewhere(photo int) RETURNS bigint
LANGUAGE sql SET snowflake.shard = 19 RETURN next_id();
SELECT snowflake_set_shard(5) \gset
ALTER ROLE regress_sf_app RESET snowflake.shard;
:alter_second RESET snowflake.shard;
ALTER ROUTINE made_elsewhere(int) RESET snowflake.shard;
SELECT snowflake_set_shard(5) \gset
-- Errors
SELECT * FROM error_of('SELECT snowflake_set_shard(-2)');
SELECT sqlstate_ AS shard_8192 FROM error_of('SELECT snowflake_set_shard(8192)');
SET ROLE regress_sf_app;
SELECT sqlstate_ AS without_privilege FROM error_of('SELECT snowflake_set_shard(8192)');
SELECT snowflake_shard() AS unchanged;
RESET ROLE;

-- The caller's search path leads it to no other function or operator.
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.format(text, VARIADIC text[]) RETURNS text
LANGUAGE plpgsql AS 'BEGIN RAISE ''hostile''; END';
CREATE FUNCTION hostile.equal(text, text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE ''hostile''; END';
CREATE OPERATOR hostile.= (LEFTARG = text, RIGHTARG = text, FUNCTION = hostile.equal);
ALTER ROUTINE made_elsewhere(int) SET snowflake.shard = 19;
SET search_path = hostile, pg_catalog, public;
SELECT snowflake_set_shard(6) \gset
RESET search_path;
ALTER ROUTINE made_elsewhere(int) RESET snowflake.shard;

-- -1 and NULL remove it, also for new sessions.
SELECT snowflake_set_shard(-1) \gset
SELECT message AS after_minus_1 FROM error_of('SELECT snowflake_shard()');
SELECT snowflake_set_shard(5) \gset
SELECT snowflake_set_shard(NULL) \gset
SELECT message AS after_null
FROM error_of('COPY (SELECT next_id(snowflake_shard(), ''views_id_seq'')) TO ''/dev/null''');
\c -
SELECT message AS in_a_new_session FROM error_of('SELECT snowflake_shard()');
SELECT message AS of_a_default FROM error_of('INSERT INTO views DEFAULT VALUES');
