-- Which sequences serve a layout: snowflake_alter_sequence() and snowflake_sequences()
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_lines

CREATE ROLE regress_sf_app;
CREATE ROLE regress_sf_owner;

-- Calls of next_id() cannot make a bigserial's sequence serve a layout, ...
CREATE TABLE orders (id bigserial PRIMARY KEY, n int);
INSERT INTO orders (n) SELECT generate_series(1, 1000);
GRANT USAGE ON SEQUENCE orders_id_seq TO regress_sf_app;
SET ROLE regress_sf_app;
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT next_id(1, ''orders_id_seq'')', 'SELECT next_ids(1, 10, ''orders_id_seq'')',
    'SELECT (layout, last_timestamp, state) FROM snowflake_sequences(''orders_id_seq'')',
    -- ... nor can a role that has only USAGE on it.
    'SELECT snowflake_alter_sequence(''orders_id_seq'')'
]) AS statement, error_of(statement);
RESET ROLE;
SELECT nextval('orders_id_seq');

-- Its owner can.  Then no column owns it any more.
ALTER SEQUENCE orders_id_seq CACHE 20 CYCLE INCREMENT 3;
SELECT snowflake_alter_sequence('orders_id_seq') \gset
SELECT seqtypid::regtype AS type, seqincrement AS increment, seqmax AS max_value, seqcache AS cache,
       seqcycle AS cycle, pg_get_serial_sequence('orders', 'id') AS serial_sequence, last_value
FROM pg_sequence, orders_id_seq WHERE seqrelid = 'orders_id_seq'::regclass;
ALTER TABLE orders ALTER id SET DEFAULT next_id(7, 'orders_id_seq');
INSERT INTO orders (n) VALUES (1001);
SELECT count(*) AS rows, snowflake_shard(max(id)) AS shard_of_the_last FROM orders;
-- A second call changes neither the sequence nor its grants, and rewrites no file.
SELECT last_value AS before, pg_relation_filenode('orders_id_seq') AS file,
       snowflake_alter_sequence('orders_id_seq', 'Instagram') FROM orders_id_seq \gset
SELECT last_value = :before AS unchanged, pg_relation_filenode('orders_id_seq') = :file AS same_file FROM orders_id_seq;
SET ROLE regress_sf_app;
SELECT next_id(7, 'orders_id_seq') > 0 AS app_takes_id;
RESET ROLE;
DROP TABLE orders;
SELECT next_id(7, 'orders_id_seq') > 0 AS taken_without_the_table;

-- A serial's sequence can serve, also another layout than instagram.
CREATE TABLE small (id serial, n int);
ALTER TABLE small ALTER id TYPE bigint;
CREATE SEQUENCE own;
\set layout 'timestamp:41 node:11 sequence:11 epoch:2020-01-01T00:00:00Z'
CREATE SEQUENCE numbers START 5001;
SELECT snowflake_alter_sequence('small_id_seq', 'twitter'), snowflake_alter_sequence('own', :'layout'),
       snowflake_alter_sequence('numbers', 'decimal') \gset
SELECT snowflake_shard(next_id(33, 'small_id_seq', 'twitter'), 'twitter') AS shard_of_twitter,
       next_id(5, 'own', :'layout') > 0 AS taken_of_custom_layout,
       next_id(7, 'numbers', 'decimal') AS number_5001_of_decimal;

-- A sequence that was used for another layout is refused, ...
SELECT * FROM error_of('SELECT snowflake_alter_sequence(''small_id_seq'')', '(?<=last value )\d+');
-- ... even if it has lost its MAXVALUE: a last value of 2^40 or more is too large for a counter of rows.
ALTER SEQUENCE small_id_seq NO MAXVALUE;
SELECT * FROM error_of('SELECT snowflake_alter_sequence(''small_id_seq'', ''twitter'')', '(?<=last value )\d+');
ALTER SEQUENCE small_id_seq MAXVALUE 9007199254736895;
SELECT snowflake_alter_sequence('small_id_seq', 'twitter') \gset
-- A sequence with the last value of one layout, if that has a timestamp, cannot serve another.
CREATE SEQUENCE passing;
SELECT count(*) AS pairs, count(*) FILTER (WHERE e.detail ~ 'too large for a counter of rows') AS refused
FROM snowflake_layouts() AS a, snowflake_layouts() AS b,
     error_of(format('SELECT setval(''passing'', %s), snowflake_alter_sequence(''passing'', %L)',
         (extract(epoch FROM now() - a.epoch) / extract(epoch FROM a.tick) * a.ids_per_tick)::bigint, b.name)) AS e
WHERE a.tick IS NOT NULL;
-- 2^40 is the first value that is too large.  A START beyond the layout's MAXVALUE is refused, too.
CREATE SEQUENCE large;
CREATE SEQUENCE beyond START 4611686018427387904;
SELECT setval('large', 1099511627776) \gset
SELECT l.detail AS of_large, b.detail AS of_beyond FROM error_of('SELECT snowflake_alter_sequence(''large'')') AS l,
    error_of('SELECT snowflake_alter_sequence(''beyond'')') AS b;
SELECT setval('large', 1099511627775), snowflake_alter_sequence('large') \gset

-- snowflake_sequences() lists sequences of defaults that have lost their MAXVALUE, as by a schema tool, ...
CREATE SEQUENCE views_id_seq MAXVALUE 1125899906841599;
CREATE TABLE views (id bigint DEFAULT next_id(5, 'views_id_seq'));
CREATE SEQUENCE tweets_id_seq MAXVALUE 9007199254736895;
CREATE TABLE tweets (id bigint DEFAULT next_id(5, 'tweets_id_seq', 'twitter'));
CREATE SEQUENCE in_domain_seq;
CREATE DOMAIN regress_sf_id AS bigint DEFAULT next_id(5, 'in_domain_seq');
CREATE TABLE owned (id bigint DEFAULT next_id(5, 'own', :'layout'));
CREATE TABLE counted (id bigserial, n bigint DEFAULT next_id(5));
SELECT next_id(5) AS last_of_default, next_id(5, 'views_id_seq') AS last \gset
ALTER SEQUENCE views_id_seq NO MAXVALUE;
ALTER SEQUENCE tweets_id_seq NO MAXVALUE;
ALTER SEQUENCE next_id_seq NO MAXVALUE;
SELECT sequence, layout, last_timestamp, expires, state FROM snowflake_sequences() WHERE layout IS NULL
ORDER BY sequence::text COLLATE "C";
-- ... and obeying the hints of errors repairs them.
SELECT arguments, e.* FROM unnest(ARRAY['5, ''views_id_seq''', '5, ''next_id_seq''', '5']) AS arguments,
    error_of('SELECT next_id(' || arguments || ')') AS e;
ALTER SEQUENCE next_id_seq MAXVALUE 9007199254736895;
SELECT * FROM error_of('SELECT next_id(5)');
ALTER SEQUENCE public.views_id_seq MAXVALUE 1125899906841599;
ALTER SEQUENCE public.tweets_id_seq MAXVALUE 9007199254736895;
ALTER SEQUENCE public.next_id_seq MAXVALUE 1125899906841599;
SELECT sequence, layout, state, CASE sequence::text WHEN 'next_id_seq' THEN next_id(5) > :last_of_default
    WHEN 'views_id_seq' THEN next_id(5, 'views_id_seq') > :last END AS is_repaired FROM snowflake_sequences()
WHERE sequence IN ('views_id_seq'::regclass, 'tweets_id_seq', 'next_id_seq', 'in_domain_seq')
ORDER BY sequence::text COLLATE "C";

-- It shows a sequence that is named, with or without a layout, and a state for an OID that does not exist.
:as_table
SELECT place, layout, last_timestamp IS NOT NULL AS has_time, expires, state FROM (
    SELECT 'own' AS place, * FROM snowflake_sequences('own')
    UNION ALL SELECT 'own, as it is', * FROM snowflake_sequences('own', :'layout')
    UNION ALL SELECT 'views', * FROM snowflake_sequences('views_id_seq')
    UNION ALL SELECT 'views as twitter', * FROM snowflake_sequences('views_id_seq', 'twitter')
    UNION ALL SELECT 'a table', * FROM snowflake_sequences('counted')
    UNION ALL SELECT 'nothing', * FROM snowflake_sequences(4294967295::oid)) AS s;

-- An identity column keeps its sequence.  What the hint offers is tested with snowflake_admin.
:as_lines
CREATE TABLE tags ("Id" bigint GENERATED ALWAYS AS IDENTITY, n int);
INSERT INTO tags (n) VALUES (1);
SELECT * FROM error_of('SELECT snowflake_alter_sequence(''"tags_Id_seq"'')');

-- A session that has used the sequence before notices when its parameters change.
CREATE SEQUENCE watched MAXVALUE 1125899906841599;
SELECT next_id(5, 'watched') AS id \gset
CREATE FUNCTION next_id_after(change text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'ALTER SEQUENCE watched ' || change;
    RETURN (SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''watched'')'));
END $$;
SELECT change, next_id_after(change), undo, next_id_after(undo) FROM (VALUES
    ('CACHE 2', 'CACHE 1'), ('INCREMENT 2', 'INCREMENT 1'), ('CYCLE', 'NO CYCLE'),
    ('MAXVALUE 1125899906841600', 'MAXVALUE 1125899906841599')) AS changes (change, undo);

-- Sequences and arguments that cannot serve
CREATE TEMPORARY SEQUENCE temporary_seq;
CREATE UNLOGGED SEQUENCE unlogged_seq;
SELECT * FROM error_of('SELECT snowflake_alter_sequence(''next_id_seq'', ''twitter'')');
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT snowflake_alter_sequence(NULL)', 'SELECT snowflake_alter_sequence(''own'', NULL)',
    'SELECT snowflake_alter_sequence(''tags'')', 'SELECT snowflake_alter_sequence(4294967295::oid)',
    'SELECT snowflake_alter_sequence(''temporary_seq'')', 'SELECT snowflake_alter_sequence(''unlogged_seq'')',
    'SELECT snowflake_alter_sequence(''next_id_seq'')'
]) AS statement, error_of(statement);
-- A call that fails, or is rolled back, changes nothing.
CREATE SEQUENCE kept INCREMENT 3 START 2000000000000000;
SELECT sqlstate_ AS of_kept FROM error_of('SELECT snowflake_alter_sequence(''kept'')');
BEGIN;
SELECT snowflake_alter_sequence('kept', 'twitter') \gset
ROLLBACK;
SELECT seqincrement AS increment_of_kept, seqmax AS max_value_of_kept
FROM pg_sequence WHERE seqrelid = 'kept'::regclass;
-- Operators and tables of a schema before pg_catalog are not used.
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.equal(oid, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1';
CREATE OPERATOR hostile.= (LEFTARG = oid, RIGHTARG = bigint, FUNCTION = hostile.equal);
CREATE TABLE hostile.pg_sequence (n int);
SET search_path = hostile, pg_catalog;
SELECT public.snowflake_alter_sequence('public.kept', 'twitter') \gset
RESET search_path;
-- The owner need not be a superuser.
ALTER SEQUENCE kept INCREMENT 3;
ALTER SEQUENCE kept OWNER TO regress_sf_owner;
SET ROLE regress_sf_owner;
SELECT snowflake_alter_sequence('kept', 'twitter') \gset
RESET ROLE;

-- snowflake_sequences() has every sequence whose MAXVALUE is a built-in layout's.
SET snowflake.max_lead = '10 min';
SET snowflake.max_wait = '1 h';
SELECT setval('small_id_seq', (snowflake_min_id(now() + interval '50 hours 1 min', 'twitter') >> 22) * 4096) \gset
CREATE SEQUENCE waiting MAXVALUE 1125899906841599;
CREATE SEQUENCE ahead MAXVALUE 1125899906841599;
CREATE SEQUENCE ended MAXVALUE 1125899906841599;
CREATE SEQUENCE ended_counter MAXVALUE 92233720199999;
SELECT setval('waiting', (snowflake_min_id(now() + interval '30 min') >> 23) * 1024),
       setval('ahead', (snowflake_min_id(now() + interval '5 min') >> 23) * 1024),
       setval('ended', 1125899906841599), setval('ended_counter', 92233720199999) \gset
CREATE SEQUENCE cached MAXVALUE 1125899906841599 CACHE 7;
CREATE SEQUENCE impossible MINVALUE -5 START -5 MAXVALUE 1125899906841599;
CREATE UNLOGGED SEQUENCE careless MAXVALUE 1125899906841599;
CREATE TEMPORARY SEQUENCE hidden MAXVALUE 1125899906841599;
CREATE TEMPORARY TABLE shown AS
SELECT sequence, layout, last_timestamp IS NOT NULL AS has_time, lead > '0' AS has_lead, expires, state
FROM snowflake_sequences();
SELECT date_trunc('hour', lead) AS lead_of_small FROM snowflake_sequences('small_id_seq');

-- A role without privileges sees the same, and a read-only transaction does, too.
:as_table
BEGIN READ ONLY;
SET LOCAL ROLE regress_sf_app;
SELECT sequence, last_timestamp IS NOT NULL AS has_time, expires IS NOT NULL AS has_end, state
FROM snowflake_sequences() WHERE sequence IN ('ended'::regclass, 'cached', 'next_id_seq', 'orders_id_seq')
ORDER BY sequence::text COLLATE "C";
COMMIT;
-- next_id() does what the state says: where it would wait, it fails with a shorter max_wait.
SET snowflake.max_wait = '1ms';
SELECT shown.*, s.state AS state_in_1ms, error.sqlstate_ AS next_id
FROM shown LEFT JOIN snowflake_sequences() AS s USING (sequence),
     LATERAL error_of(format('SELECT next_id(1, %L, %L)', sequence, shown.layout)) AS error
ORDER BY sequence::text COLLATE "C";
