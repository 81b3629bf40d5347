-- snowflake_advance(): IDs beyond a given one
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_lines

CREATE SEQUENCE used MAXVALUE 1125899906841599;
SELECT setval('used', (snowflake_min_id('2020-01-01Z') >> 23) * 1024) \gset
PREPARE look (text) AS
SELECT $1 AS after, snowflake_timestamp(last_value / 1024 << 23) AS time, last_value % 1024 AS slot, log_cnt, is_called
FROM used;

-- The last sequence number of the ID's time counts as used, so that the next ID of each shard is larger.
SELECT snowflake_advance('used', snowflake_id('2021-01-01Z', 5, 31)) \gset
EXECUTE look ('an ID');
-- The same ID, or a smaller one, changes nothing.
SELECT snowflake_advance('used', snowflake_id('2021-01-01Z', 5, 31)),
       snowflake_advance('used', snowflake_id('2021-01-01Z', 0, 0)), snowflake_advance('used', 1) \gset
EXECUTE look ('smaller IDs');
-- A rollback does not undo it.
BEGIN;
SELECT snowflake_advance('used', snowflake_id('2022-01-01Z', 8191, 1023)) \gset
ROLLBACK;
EXECUTE look ('a rollback');
-- An unused sequence counts as used then.
CREATE SEQUENCE unused MAXVALUE 1125899906841599;
SELECT snowflake_advance('unused', 17) \gset
SELECT last_value AS value_of_unused, is_called FROM unused;
-- It works in the transaction that has created the sequence, also after a RESTART.
BEGIN;
CREATE SEQUENCE fresh MAXVALUE 1125899906841599;
SELECT snowflake_advance('fresh', snowflake_id('2021-01-01Z', 5, 31)) \gset
SELECT snowflake_shard(next_id(7, 'fresh')) AS shard_of_fresh;
ALTER SEQUENCE fresh RESTART;
SELECT snowflake_advance('fresh', snowflake_id('2021-01-01Z', 5, 31)) \gset
SELECT snowflake_timestamp(last_value / 1024 << 23) AS time_after_restart FROM fresh;
COMMIT;

-- In each layout that tells an ID's time, the next ID of shard 0 is in the next tick, although the clock is behind.
SET snowflake.max_lead = '2 min';
CREATE TABLE advanced AS SELECT name, name::snowflake_layout AS layout,
       snowflake_id(clock_timestamp() + interval '1 min', shards - 1, 0, name::snowflake_layout) AS beyond
FROM snowflake_layouts() WHERE name NOT IN ('trace', 'decimal');
INSERT INTO advanced SELECT 'own', layout, snowflake_id(clock_timestamp() + interval '1 min', 1023, 2047, layout)
FROM CAST('timestamp:42 region:4 worker:6 sequence:11 epoch:2024-01-01T00:00:00Z' AS snowflake_layout) AS layout;
CREATE FUNCTION next_after(name text, layout snowflake_layout, beyond bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE SEQUENCE %I', name);
    PERFORM snowflake_alter_sequence(name::regclass, layout);
    IF name = 'own' THEN
        PERFORM snowflake_advance(name::regclass, beyond, layout);
    ELSE
        PERFORM snowflake_advance(name::regclass, beyond);
    END IF;
    RETURN next_id(0, name::regclass, layout);
END $$;
SELECT snowflake_timestamp(id, layout) - snowflake_timestamp(beyond, layout) AS later_by, count(*) AS layouts,
       count(*) FILTER (WHERE id > beyond) AS larger
FROM advanced, next_after(name, layout, beyond) AS id GROUP BY later_by ORDER BY later_by;
RESET snowflake.max_lead;
-- A warning says that calls will wait or fail, also if the sequence was there before.
\set VERBOSITY sqlstate
SELECT snowflake_advance('used', snowflake_max_id(clock_timestamp())) \gset
SELECT snowflake_advance('used', snowflake_max_id(clock_timestamp() + interval '1 h')) \gset
SELECT snowflake_advance('used', 17) \gset
\set VERBOSITY default
SELECT sqlstate_, message ~ 'ahead of the clock' AS ahead FROM error_of('SELECT next_id(5, ''used'')');

-- Errors
CREATE SEQUENCE serves_none;
SELECT arguments, e.* FROM unnest(ARRAY['NULL, 17', '''used'', NULL', '''used'', 17, NULL', '''used'', 0',
    '''used'', -4034545001605108739', '''used'', 9223372036854775807', '''javascript'', 4034545001605108739',
    '''used'', 17, ''twitter''', '''next_id_seq'', 17, ''twitter''', '''serves_none'', 17', '''advanced'', 17',
    '1, 17']) AS arguments, error_of('SELECT snowflake_advance(' || arguments || ')') AS e;
SELECT * FROM error_of('SELECT snowflake_advance(''used'', snowflake_id(''2040-01-01Z'', 5, 31))',
    '(?<=clock says ).*');
SELECT snowflake_alter_sequence('serves_none', 'decimal') \gset
SELECT * FROM error_of('SELECT snowflake_advance(''serves_none'', 17)');
ALTER SEQUENCE unused MINVALUE -10;
SELECT setval('unused', -5) \gset
SELECT * FROM error_of('SELECT snowflake_advance(''unused'', 17)');
SELECT setval('unused', 0), snowflake_advance('unused', 17) \gset
-- It needs UPDATE, as setval() does, also for the default sequence, and tells nothing of a sequence without it.
CREATE ROLE regress_sf_app;
SET snowflake.max_lead = '2 min';
GRANT USAGE, SELECT ON SEQUENCE used, twitter TO regress_sf_app;
SET ROLE regress_sf_app;
SELECT * FROM error_of('SELECT snowflake_advance(''next_id_seq'', 17)');
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT next_id(0, ''twitter'') > 0', 'SELECT snowflake_advance(''twitter'', 17)',
    'SELECT snowflake_advance(''serves_none'', -17)', 'RESET ROLE',
    'GRANT UPDATE ON SEQUENCE twitter TO regress_sf_app', 'SET ROLE regress_sf_app',
    'SELECT snowflake_advance(''twitter'', 17)'
]) AS statement, error_of(statement);
