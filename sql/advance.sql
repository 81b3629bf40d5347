--
-- snowflake_advance(): IDs beyond a given one
--
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup
\pset format unaligned
\pset tuples_only on
CREATE SEQUENCE used;
SELECT snowflake_alter_sequence('used');
SELECT setval('used', (snowflake_min_id('2020-01-01Z') >> 23) * 1024) > 0;

-- the last sequence number of the ID's time counts as used, so that the next ID of each shard is larger
SELECT snowflake_advance('used', snowflake_id('2021-01-01Z', 5, 31));
SELECT snowflake_timestamp(last_value / 1024 << 23), last_value % 1024, log_cnt, is_called FROM used;
-- a smaller ID changes nothing, nor does the same one
SELECT snowflake_advance('used', snowflake_id('2021-01-01Z', 0, 0)), snowflake_advance('used', 1), snowflake_advance('used', snowflake_id('2021-01-01Z', 5, 31));
SELECT snowflake_timestamp(last_value / 1024 << 23), last_value % 1024, log_cnt, is_called FROM used;
-- it is not undone
BEGIN;
SELECT snowflake_advance('used', snowflake_id('2022-01-01Z', 8191, 1023));
ROLLBACK;
SELECT snowflake_timestamp(last_value / 1024 << 23), last_value % 1024, log_cnt, is_called FROM used;
-- an unused sequence
CREATE SEQUENCE unused;
SELECT snowflake_alter_sequence('unused');
SELECT snowflake_advance('unused', 17);
SELECT last_value, is_called FROM unused;
-- in the transaction that made the sequence, and after it was rewritten
BEGIN;
CREATE SEQUENCE fresh MAXVALUE 1125899906841599;
SELECT snowflake_advance('fresh', snowflake_id('2021-01-01Z', 5, 31));
SELECT snowflake_shard(next_id(7, 'fresh'));
ALTER SEQUENCE fresh RESTART;
SELECT snowflake_advance('fresh', snowflake_id('2021-01-01Z', 5, 31));
SELECT snowflake_timestamp(last_value / 1024 << 23) FROM fresh;
COMMIT;
DROP SEQUENCE fresh;

-- every layout that tells an ID's time: with the clock set back, the next ID of shard 0 is larger
SET snowflake.max_lead = '2 min';
CREATE TABLE advanced (name text, layout snowflake_layout, beyond bigint);
INSERT INTO advanced SELECT name, name::snowflake_layout, snowflake_id(clock_timestamp() + interval '1 min', shards - 1, 0, name::snowflake_layout)
FROM snowflake_layouts() WHERE name NOT IN ('trace', 'decimal');
INSERT INTO advanced VALUES ('own', 'timestamp:42 region:4 worker:6 sequence:11 epoch:2024-01-01T00:00:00Z', snowflake_id(clock_timestamp() + interval '1 min',
    1023, 2047, 'timestamp:42 region:4 worker:6 sequence:11 epoch:2024-01-01T00:00:00Z'));
DO $$ DECLARE a record; next bigint; ahead interval; BEGIN
    FOR a IN SELECT * FROM advanced LOOP
        EXECUTE format('CREATE SEQUENCE %I', a.name);
        PERFORM snowflake_alter_sequence(a.name::regclass, a.layout);
        IF a.name = 'own' THEN
            PERFORM snowflake_advance(a.name::regclass, a.beyond, a.layout);
        ELSE
            PERFORM snowflake_advance(a.name::regclass, a.beyond);
        END IF;
        next := next_id(0, a.name::regclass, a.layout);
        ahead := snowflake_timestamp(next, a.layout) - snowflake_timestamp(a.beyond, a.layout);
        RAISE NOTICE '%: %, by %', a.name, next > a.beyond, ahead;
    END LOOP;
END $$;
-- what waits, or fails, is announced
RESET snowflake.max_lead;
\set VERBOSITY sqlstate
SELECT snowflake_advance('used', snowflake_max_id(clock_timestamp()));
SELECT snowflake_advance('used', snowflake_max_id(clock_timestamp() + interval '1 h'));
SELECT snowflake_advance('used', 17);
\set VERBOSITY default
SELECT sqlstate_, message ~ 'ahead of the clock' FROM error_of('SELECT next_id(5, ''used'')');

-- errors
SELECT * FROM error_of('SELECT snowflake_advance(NULL, 17)');
SELECT * FROM error_of('SELECT snowflake_advance(''used'', max(oid::bigint)) FROM pg_class WHERE false');
SELECT * FROM error_of('SELECT snowflake_advance(''used'', 17, NULL)');
SELECT * FROM error_of('SELECT snowflake_advance(''used'', 0)');
SELECT * FROM error_of('SELECT snowflake_advance(''used'', -4034545001605108739)');
SELECT sqlstate_, message, hint FROM error_of('SELECT snowflake_advance(''used'', snowflake_id(''2040-01-01Z'', 5, 31))');
SELECT * FROM error_of('SELECT snowflake_advance(''used'', 9223372036854775807)');
SELECT * FROM error_of('SELECT snowflake_advance(''javascript'', 4034545001605108739)');
SELECT * FROM error_of('SELECT snowflake_advance(''used'', 17, ''twitter'')');
SELECT * FROM error_of('SELECT snowflake_advance(''next_id_seq'', 17, ''twitter'')');
CREATE SEQUENCE serves_none;
SELECT * FROM error_of('SELECT snowflake_advance(''serves_none'', 17)');
SELECT snowflake_alter_sequence('serves_none', 'decimal');
SELECT * FROM error_of('SELECT snowflake_advance(''serves_none'', 17)');
SELECT * FROM error_of('SELECT snowflake_advance(''advanced'', 17)');
SELECT * FROM error_of('SELECT snowflake_advance(1, 17)');
ALTER SEQUENCE unused MINVALUE -10;
SELECT setval('unused', -5);
SELECT * FROM error_of('SELECT snowflake_advance(''unused'', 17)');
SELECT setval('unused', 0);
SELECT snowflake_advance('unused', 17);
BEGIN READ ONLY;
SELECT sqlstate_, message FROM error_of('SELECT snowflake_advance(''used'', 17)');
COMMIT;
-- it needs what setval() needs, also for the extension's own sequence, and says nothing of a sequence without it
CREATE ROLE regress_sf_app;
SET snowflake.max_lead = '2 min';
GRANT USAGE, SELECT ON SEQUENCE used, twitter TO regress_sf_app;
SET ROLE regress_sf_app;
SELECT * FROM error_of('SELECT snowflake_advance(''next_id_seq'', 17)');
BEGIN;
SELECT next_id(0, 'twitter') IS NULL;
SELECT * FROM error_of('SELECT snowflake_advance(''twitter'', 17)');
COMMIT;
SELECT sqlstate_ FROM error_of('SELECT snowflake_advance(''serves_none'', -17)');
RESET ROLE;
GRANT UPDATE ON SEQUENCE twitter TO regress_sf_app;
SET ROLE regress_sf_app;
SELECT snowflake_advance('twitter', 17);
RESET ROLE;

DROP TABLE advanced;
DROP SEQUENCE used, unused, serves_none, instagram, twitter, discord, shardingsphere, sonyflake, mastodon, pgedge, javascript, own;
DROP ROLE regress_sf_app;
