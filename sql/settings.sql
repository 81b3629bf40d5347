-- The settings, and a library that is loaded late
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_table

-- The settings, each with a description, are there when the library has been loaded.
SELECT next_id(5) AS id \gset
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
SELECT format('ALTER DATABASE %I', current_database()) AS alter_database \gset
:alter_database SET snowflake.shard = 77;
:alter_database SET snowflake.max_lead = '3s';
:as_lines
\c -
SELECT snowflake_shard(next_id()) AS shard_of_database, current_setting('snowflake.max_lead') AS max_lead;
-- ... and a session's own value overrides them, ...
\c -
SHOW snowflake.shard;
SET snowflake.shard = 78;
SELECT snowflake_shard(next_id()) AS shard_of_session;
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
SELECT sum(late(id)) AS sum_of_workers FROM known;
SELECT snowflake_shard(next_id()) AS shard, current_setting('snowflake.max_lead') AS max_lead,
       current_setting('snowflake.max_wait') AS max_wait;
SHOW snowflake.shard;
-- ... and when it is loaded by the leader alone.
\c -
CALL prefer_parallel();
SET max_parallel_workers = 0;
SELECT sum(late(id)) AS sum_of_leader FROM known;
SELECT snowflake_shard(next_id()) AS shard_of_leader, current_setting('snowflake.max_lead') AS max_lead;

-- A value that is no number is refused, ...
SELECT sqlstate_ AS shard_five FROM error_of(:'alter_database' || ' SET snowflake.shard = five');
-- ... or, by a session that has not loaded the library, accepted, and ignored with a warning when it
-- is loaded.
\c -
:alter_database SET snowflake.shard = five;
\c -
SELECT snowflake_shard(next_id(9)) AS given_shard;
SHOW snowflake.shard;
-- A database's setting does not count in sessions that are there already.
:alter_database SET snowflake.shard = 8191;
SELECT message AS of_an_old_session FROM error_of('SELECT next_id()');
\c -
SELECT snowflake_shard(next_id()) AS shard_of_a_new_session;
-- In a session that loads the library in the middle of a parallel query, the shard is set, or is not.
CREATE FUNCTION late_shard() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN snowflake_shard(); END';
\c -
CALL prefer_parallel();
SET max_parallel_workers = 0;
SELECT DISTINCT late_shard() FROM known;

:alter_database RESET snowflake.shard;
:alter_database RESET snowflake.max_lead;
\c -
CALL prefer_parallel();
SET max_parallel_workers = 0;
SELECT DISTINCT late_shard() FROM known;
