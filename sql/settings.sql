-- The settings, and a library that is loaded late
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup

-- The settings, each with a description, are there when the library has been loaded.
SELECT next_id(5) > 0 AS taken;
SELECT name, current_setting(name) AS value, context, vartype, unit, min_val, max_val,
       short_desc <> '' AS described
FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name;

-- Times have units, and the lead may be shorter than a millisecond.
CREATE FUNCTION shown(name text, value text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config(name, value, true);
    RETURN current_setting(name);
END $$;
SELECT name, value, shown(name, value) FROM (VALUES
    ('snowflake.max_lead', '2min'), ('snowflake.max_lead', '250us'), ('snowflake.max_lead', '1500'),
    ('snowflake.max_lead', '400d'), ('snowflake.max_wait', '1min')) AS settings (name, value);

-- Values that are out of range, of another type, or of no setting.  PostgreSQL's messages change.
SELECT sqlstate_, setting FROM unnest(ARRAY['shard = -2', 'shard = 8192', 'shard = 2147483648', 'max_lead = -1',
    'max_lead = ''soon''', 'max_wait = -1', 'no_such_setting = 1']) AS setting, error_of('SET snowflake.' || setting);

-- Values that were given before the library is loaded count when it is loaded by a call, ...
CREATE FUNCTION set_for_database(setting text, val text) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN EXECUTE format('ALTER DATABASE %I SET %s = %L', current_database(), setting, val); END $$;
SELECT set_for_database('snowflake.shard', '77'), set_for_database('snowflake.max_lead', '3s') \gset
\c -
\x on \t on
SELECT snowflake_shard(next_id()) AS shard, current_setting('snowflake.max_lead') AS max_lead;
-- ... and a session's own value overrides them, ...
\c -
SHOW snowflake.shard;
SET snowflake.shard = 78;
SELECT snowflake_shard(next_id()) AS shard;
RESET snowflake.shard;
SELECT snowflake_shard(next_id()) AS shard_after_reset;
-- ... when it is loaded in the middle of a parallel query, ...
CREATE TABLE known AS
SELECT snowflake_id('2020-01-01Z'::timestamptz + g * interval '1 s', 6, 1) AS id
FROM generate_series(1, 20000) g;
ALTER TABLE known SET (parallel_workers = 2);
ANALYZE known;
-- (A plain call would load it before the workers start.)
CREATE FUNCTION late(id bigint) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE
AS 'BEGIN RETURN snowflake_shard(id); END';
\c -
CALL prefer_parallel();
SET snowflake.max_wait = '4s';
SELECT plans_workers('SELECT sum(late(id)) FROM known');
SELECT sum(late(id)) FROM known;
SELECT snowflake_shard(next_id()) AS shard, current_setting('snowflake.max_lead') AS max_lead,
       current_setting('snowflake.max_wait') AS max_wait;
SELECT sum(late(id)) FROM known;
SHOW snowflake.shard;
-- ... and when it is loaded by the leader alone.
\c -
CALL prefer_parallel();
SET max_parallel_workers = 0;
SELECT sum(late(id)) FROM known;
SELECT snowflake_shard(next_id()) AS shard, current_setting('snowflake.max_lead') AS max_lead;
DROP FUNCTION late(bigint);
DROP TABLE known;

-- A value that is no number is refused, ...
SELECT sqlstate_ FROM error_of('SELECT set_for_database(''snowflake.shard'', ''five'')');
-- ... or, by a session that has not loaded the library, accepted, and ignored with a warning when it
-- is loaded.
\c -
SELECT set_for_database('snowflake.shard', 'five') \gset
\c -
SELECT snowflake_shard(next_id(9)) AS shard;
SHOW snowflake.shard;
CALL show_error('SELECT next_id()');
-- A database's setting does not count in sessions that are there already.
SELECT set_for_database('snowflake.shard', '8191') \gset
CALL show_error('SELECT next_id()');
\c -
SELECT snowflake_shard(next_id()) AS shard_of_a_new_session;

DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET snowflake.shard', current_database()); END $$;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET snowflake.max_lead', current_database()); END $$;
DROP FUNCTION set_for_database(text, text);
