--
-- The settings, and a library that is loaded late
--
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup
\pset format unaligned
\pset tuples_only on

SELECT next_id(5) > 0;
SHOW snowflake.shard;
SHOW snowflake.max_lead;
SHOW snowflake.max_wait;
SELECT name, context, vartype, unit, min_val FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name;
SELECT name FROM pg_settings WHERE name LIKE 'snowflake.%' AND (short_desc = '') IS NOT FALSE;

-- units
SET snowflake.max_lead = '2min';
SHOW snowflake.max_lead;
SET snowflake.max_lead = '250us';
SHOW snowflake.max_lead;
SET snowflake.max_lead = 1500;
SHOW snowflake.max_lead;
SET snowflake.max_lead = '400d';
SHOW snowflake.max_lead;
SET snowflake.max_wait = '1min';
SHOW snowflake.max_wait;

-- ranges
\set VERBOSITY terse
SET snowflake.shard = -2;
SET snowflake.shard = 8192;
SET snowflake.shard = 2147483648;
SELECT sqlstate_ FROM error_of('SET snowflake.max_lead = -1');
SET snowflake.max_lead = 'soon';
SELECT sqlstate_ FROM error_of('SET snowflake.max_wait = -1');
SET snowflake.no_such_setting = 1;
\set VERBOSITY default

-- values given before the library is loaded
CREATE FUNCTION set_for_database(setting text, val text) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN EXECUTE format('ALTER DATABASE %I SET %s = %L', current_database(), setting, val); END $$;
SELECT set_for_database('snowflake.shard', '77');
SELECT set_for_database('snowflake.max_lead', '3s');
\c -
SELECT snowflake_shard(next_id());
SHOW snowflake.max_lead;
\c -
SHOW snowflake.shard;
SET snowflake.shard = 78;
SELECT snowflake_shard(next_id());
RESET snowflake.shard;
SELECT snowflake_shard(next_id());

-- the same when it is loaded in the middle of a parallel query
CREATE TABLE known AS
SELECT snowflake_id('2020-01-01Z'::timestamptz + g * interval '1 s', 6, 1) AS id
FROM generate_series(1, 20000) g;
ALTER TABLE known SET (parallel_workers = 2);
ANALYZE known;
-- (a plain call would load it before the workers start)
CREATE FUNCTION late(id bigint) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE
AS 'BEGIN RETURN snowflake_shard(id); END';
\c -
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET snowflake.max_wait = '4s';
EXPLAIN (COSTS OFF) SELECT sum(late(id)) FROM known;
SELECT sum(late(id)) FROM known;
SELECT snowflake_shard(next_id());
SHOW snowflake.max_lead;
SHOW snowflake.max_wait;
SELECT sum(late(id)) FROM known;
SHOW snowflake.shard;
-- and by the leader alone
\c -
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers = 0;
SELECT sum(late(id)) FROM known;
SELECT snowflake_shard(next_id());
SHOW snowflake.max_lead;

-- a value that is no good: refused, or, by a session that cannot know yet,
-- ignored with a warning when the library is loaded
SELECT set_for_database('snowflake.shard', 'five');
\c -
SELECT set_for_database('snowflake.shard', 'five');
\c -
SELECT snowflake_shard(next_id(9));
SHOW snowflake.shard;
SELECT * FROM error_of('SELECT next_id()');
-- a setting for the database is not one for this session yet
SELECT set_for_database('snowflake.shard', '8191');
SELECT sqlstate_, hint FROM error_of('SELECT next_id()');
\c -
SELECT snowflake_shard(next_id());

DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET snowflake.shard', current_database()); END $$;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET snowflake.max_lead', current_database()); END $$;
DROP FUNCTION late(bigint);
DROP TABLE known;
DROP FUNCTION set_for_database(text, text);
