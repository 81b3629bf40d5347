--
-- Which sequences serve a layout: snowflake_alter_sequence() and
-- snowflake_sequences()
--
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_sf_app;
CREATE ROLE regress_sf_owner;

-- a bigserial's counter does not become a clock by a call
CREATE TABLE orders (id bigserial PRIMARY KEY, n int);
INSERT INTO orders (n) SELECT generate_series(1, 1000);
GRANT USAGE ON SEQUENCE orders_id_seq TO regress_sf_app;
SET ROLE regress_sf_app;
SELECT * FROM error_of('SELECT next_id(1, ''orders_id_seq'')');
SELECT sqlstate_ FROM error_of('SELECT next_ids(1, 10, ''orders_id_seq'')');
SELECT layout, last_timestamp, state FROM snowflake_sequences('orders_id_seq');
-- nor does one with USAGE make it serve a layout
SELECT sqlstate_, message FROM error_of('SELECT snowflake_alter_sequence(''orders_id_seq'')');
RESET ROLE;
SELECT nextval('orders_id_seq');

-- its owner makes it serve one, and no column owns it then
ALTER SEQUENCE orders_id_seq CACHE 20 CYCLE INCREMENT 3;
SELECT snowflake_alter_sequence('orders_id_seq') IS NOT NULL;
SELECT seqtypid::regtype, seqincrement, seqmax, seqcache, seqcycle, pg_get_serial_sequence('orders', 'id'), last_value
FROM pg_sequence, orders_id_seq WHERE seqrelid = 'orders_id_seq'::regclass;
ALTER TABLE orders ALTER id SET DEFAULT next_id(7, 'orders_id_seq');
INSERT INTO orders (n) VALUES (1001);
SELECT count(*), snowflake_shard(max(id)) FROM orders;
-- a second time it changes nothing, also for its grants
SELECT last_value AS before FROM orders_id_seq \gset
SELECT snowflake_alter_sequence('orders_id_seq', 'Instagram') IS NOT NULL;
SELECT last_value = :before FROM orders_id_seq;
SET ROLE regress_sf_app;
SELECT next_id(7, 'orders_id_seq') > 0;
RESET ROLE;
DROP TABLE orders;
SELECT next_id(7, 'orders_id_seq') > 0;

-- also a serial's, and for another layout
CREATE TABLE small (id serial, n int);
ALTER TABLE small ALTER id TYPE bigint;
SELECT snowflake_alter_sequence('small_id_seq', 'twitter') IS NOT NULL;
SELECT snowflake_shard(next_id(33, 'small_id_seq', 'twitter'), 'twitter');
CREATE SEQUENCE own;
SELECT snowflake_alter_sequence('own', 'timestamp:41 node:11 sequence:11 epoch:2020-01-01T00:00:00Z') IS NOT NULL;
SELECT next_id(5, 'own', 'timestamp:41 node:11 sequence:11 epoch:2020-01-01T00:00:00Z') > 0;
CREATE SEQUENCE numbers;
SELECT setval('numbers', 5000) > 0;
SELECT snowflake_alter_sequence('numbers', 'decimal') IS NOT NULL;
SELECT next_id(7, 'numbers', 'decimal');

-- not one that has been used for another layout
CREATE FUNCTION shown(command text) RETURNS TABLE (sqlstate_ text, message text, detail text, hint text) LANGUAGE sql AS
$$ SELECT sqlstate_, message, regexp_replace(detail, '\d{12,16}\M', '(value)'), hint FROM error_of(command) $$;
SELECT * FROM shown('SELECT snowflake_alter_sequence(''small_id_seq'')');
-- nor one whose MAXVALUE no longer tells what it has been used for: values from 2^40 on are no counter's
SELECT max_value AS twitter FROM snowflake_layouts() WHERE name = 'twitter' \gset
ALTER SEQUENCE small_id_seq MAXVALUE 9223372036854775807;
SELECT * FROM shown('SELECT snowflake_alter_sequence(''small_id_seq'', ''twitter'')');
SELECT sqlstate_, hint FROM shown('SELECT snowflake_alter_sequence(''small_id_seq'', ''decimal'')');
ALTER SEQUENCE small_id_seq MAXVALUE :twitter;
SELECT snowflake_alter_sequence('small_id_seq', 'twitter') IS NOT NULL;
CREATE FUNCTION accepted(serves text, other text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    result boolean;
BEGIN
    EXECUTE 'CREATE SEQUENCE passing';
    PERFORM setval('passing', ((SELECT extract(epoch FROM now() - epoch) / extract(epoch FROM tick) FROM snowflake_layouts() WHERE name = serves)
                               * (SELECT ids_per_tick FROM snowflake_layouts() WHERE name = serves))::bigint);
    SELECT sqlstate_ = 'none' INTO result FROM error_of(format('SELECT snowflake_alter_sequence(''passing'', %L)', other));
    EXECUTE 'DROP SEQUENCE passing';
    RETURN result;
END $$;
SELECT count(*), count(*) FILTER (WHERE accepted(a.name, b.name)) AS accepted FROM snowflake_layouts() a, snowflake_layouts() b WHERE a.tick IS NOT NULL;
DROP FUNCTION accepted(text, text);
-- 2^40 is the first value that is too large
CREATE SEQUENCE large;
SELECT setval('large', 1099511627776) > 0;
SELECT * FROM error_of('SELECT snowflake_alter_sequence(''large'')');
SELECT setval('large', 1099511627775) > 0;
SELECT snowflake_alter_sequence('large') IS NOT NULL;
-- nor one that is beyond the layout's values, even if it has not been used
CREATE SEQUENCE beyond START 4611686018427387904;
SELECT * FROM error_of('SELECT snowflake_alter_sequence(''beyond'')');

-- a sequence whose MAXVALUE a schema tool has set back: the hints lead to the way back
\pset tuples_only off
CREATE SEQUENCE views_id_seq;
SELECT snowflake_alter_sequence('views_id_seq');
SELECT next_id(5, 'views_id_seq') AS last \gset
ALTER SEQUENCE views_id_seq NO MAXVALUE;
SELECT sqlstate_, message, hint FROM error_of('SELECT next_id(5, ''views_id_seq'')');
SELECT sqlstate_, hint FROM shown('SELECT snowflake_alter_sequence(''views_id_seq'')');
ALTER SEQUENCE public.views_id_seq MAXVALUE 1125899906841599;
SELECT next_id(5, 'views_id_seq') > :last AS repaired;
SELECT next_id(5) AS last \gset
ALTER SEQUENCE next_id_seq NO MAXVALUE;
SELECT sqlstate_, message, hint FROM error_of('SELECT next_id(5)');
SELECT sqlstate_, message, hint FROM error_of('SELECT next_id(5, ''next_id_seq'')');
ALTER SEQUENCE next_id_seq MAXVALUE 9007199254736895;
SELECT sqlstate_, message, hint FROM error_of('SELECT next_id(5)');
ALTER SEQUENCE public.next_id_seq MAXVALUE 1125899906841599;
SELECT next_id(5) > :last AS repaired;
DROP SEQUENCE views_id_seq;
\pset tuples_only on

-- an identity column's sequence cannot be disowned
CREATE TABLE tags ("Id" bigint GENERATED ALWAYS AS IDENTITY, n int);
INSERT INTO tags (n) VALUES (1);
SELECT * FROM error_of('SELECT snowflake_alter_sequence(''"tags_Id_seq"'')');
-- the hint works
ALTER TABLE public.tags ALTER COLUMN "Id" DROP IDENTITY;
ALTER TABLE tags ALTER "Id" SET DEFAULT next_id(5);
INSERT INTO tags (n) VALUES (2);
SELECT n FROM tags ORDER BY "Id";

-- each change of its parameters is noticed by a session that has used the sequence
CREATE SEQUENCE watched MAXVALUE 1125899906841599;
SELECT next_id(5, 'watched') > 0;
CREATE FUNCTION noticed(change text, undo text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    states text[];
BEGIN
    EXECUTE 'ALTER SEQUENCE watched ' || change;
    states := ARRAY[(SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''watched'')'))];
    EXECUTE 'ALTER SEQUENCE watched ' || undo;
    RETURN states || (SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''watched'')')) = '{55000,none}';
END $$;
SELECT noticed('CACHE 2', 'CACHE 1'), noticed('INCREMENT 2', 'INCREMENT 1'), noticed('CYCLE', 'NO CYCLE'),
    noticed('MAXVALUE 1125899906841600', 'MAXVALUE 1125899906841599');
DROP FUNCTION noticed(text, text);

-- other mistakes
SELECT sqlstate_, message FROM error_of('SELECT snowflake_alter_sequence(NULL)');
SELECT sqlstate_, message FROM error_of('SELECT snowflake_alter_sequence(''own'', NULL)');
SELECT sqlstate_, message FROM error_of('SELECT snowflake_alter_sequence(''tags'')');
SELECT sqlstate_, message FROM error_of('SELECT snowflake_alter_sequence(4294967295::oid)');
SELECT * FROM error_of('SELECT snowflake_alter_sequence(''next_id_seq'', ''twitter'')');
SELECT snowflake_alter_sequence('next_id_seq') IS NOT NULL;
CREATE TEMPORARY SEQUENCE temporary_seq;
SELECT sqlstate_, detail FROM error_of('SELECT snowflake_alter_sequence(''temporary_seq'')');
CREATE UNLOGGED SEQUENCE unlogged_seq;
SELECT sqlstate_, hint FROM error_of('SELECT snowflake_alter_sequence(''unlogged_seq'')');
BEGIN READ ONLY;
SELECT sqlstate_, message FROM error_of('SELECT snowflake_alter_sequence(''own'')');
COMMIT;
-- what fails, or is rolled back, changes nothing
CREATE SEQUENCE kept INCREMENT 3 START 2000000000000000;
SELECT sqlstate_ FROM error_of('SELECT snowflake_alter_sequence(''kept'')');
BEGIN;
SELECT snowflake_alter_sequence('kept', 'twitter') IS NOT NULL;
ROLLBACK;
SELECT seqincrement, seqmax FROM pg_sequence WHERE seqrelid = 'kept'::regclass;
-- no search path leads it to another's operator or sequence
CREATE SCHEMA regress_sf_trap;
CREATE FUNCTION regress_sf_trap.equal(oid, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1';
CREATE OPERATOR regress_sf_trap.= (LEFTARG = oid, RIGHTARG = bigint, FUNCTION = regress_sf_trap.equal);
CREATE TABLE regress_sf_trap.pg_sequence (n int);
SET search_path = regress_sf_trap, pg_catalog;
SELECT public.snowflake_alter_sequence('public.kept', 'twitter') IS NOT NULL;
RESET search_path;

-- an owner who is no superuser
ALTER SEQUENCE kept OWNER TO regress_sf_owner;
SET ROLE regress_sf_owner;
SELECT snowflake_alter_sequence('kept', 'twitter') IS NOT NULL;
RESET ROLE;

-- snowflake_sequences() has every sequence whose MAXVALUE is a built-in layout's
SELECT setval('small_id_seq', (snowflake_min_id(now() + interval '2 days', 'twitter') >> 22) * 4096) > 0;
CREATE SEQUENCE waiting MAXVALUE 1125899906841599;
SELECT setval('waiting', (snowflake_min_id(now() + interval '30 min') >> 23) * 1024) > 0;
SET snowflake.max_lead = '10 min';
SET snowflake.max_wait = '1 h';
CREATE SEQUENCE ahead MAXVALUE 1125899906841599;
SELECT setval('ahead', (snowflake_min_id(now() + interval '5 min') >> 23) * 1024) > 0;
CREATE SEQUENCE ended MAXVALUE 1125899906841599;
SELECT setval('ended', 1125899906841599) > 0;
CREATE SEQUENCE ended_counter MAXVALUE 92233720199999;
SELECT setval('ended_counter', 92233720199999) > 0;
CREATE SEQUENCE cached MAXVALUE 1125899906841599 CACHE 7;
CREATE SEQUENCE impossible MINVALUE -5 START -5 MAXVALUE 1125899906841599;
CREATE UNLOGGED SEQUENCE careless MAXVALUE 1125899906841599;
CREATE TEMPORARY SEQUENCE hidden MAXVALUE 1125899906841599;
\pset tuples_only off
SELECT sequence, layout, last_timestamp IS NOT NULL AS last, lead > '0' AS lead, expires, state
FROM snowflake_sequences() ORDER BY sequence::text COLLATE "C";
-- to a role without privileges, too
SET ROLE regress_sf_app;
SELECT sequence, last_timestamp IS NOT NULL AS last, expires IS NOT NULL AS expires, state
FROM snowflake_sequences() WHERE sequence IN ('ended'::regclass, 'cached', 'next_id_seq', 'orders_id_seq') ORDER BY sequence::text COLLATE "C";
RESET ROLE;
\pset tuples_only on
-- what it says is what happens
SET snowflake.max_wait = '1ms';
SELECT sequence, state, (SELECT sqlstate_ FROM error_of(format('SELECT next_id(1, %L, %L)', sequence, layout)))
FROM snowflake_sequences() ORDER BY sequence::text COLLATE "C";
RESET snowflake.max_lead;
RESET snowflake.max_wait;
-- in a read-only transaction
BEGIN READ ONLY;
SELECT count(*) > 5 FROM snowflake_sequences();
COMMIT;

DROP TABLE small, tags, regress_sf_trap.pg_sequence;
DROP OPERATOR regress_sf_trap.= (oid, bigint);
DROP FUNCTION regress_sf_trap.equal(oid, bigint);
DROP SCHEMA regress_sf_trap;
DROP FUNCTION shown(text);
DROP SEQUENCE orders_id_seq, own, numbers, large, beyond, kept, waiting, ahead, ended, ended_counter, cached, impossible, careless, watched,
    temporary_seq, unlogged_seq, hidden;
DROP ROLE regress_sf_app, regress_sf_owner;
