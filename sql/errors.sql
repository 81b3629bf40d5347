--
-- Every error: its SQLSTATE, its message, and what it tells to do
--
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup
\pset format unaligned
\pset tuples_only on

-- shard and sequence
SELECT * FROM error_of('SELECT next_id(-1)');
SELECT * FROM error_of('SELECT next_id(8192)');
SELECT * FROM error_of('SELECT next_id(9223372036854775807)');
SELECT * FROM error_of('SELECT next_id(NULL)');
SELECT * FROM error_of('SELECT next_id(5, NULL)');
SELECT * FROM error_of('SELECT next_id(5, ''no_such_seq'')');
SELECT * FROM error_of('SELECT next_id(5, 4294967295::oid)');
SELECT * FROM error_of('SELECT next_id(5, ''pg_class'')');
SELECT * FROM error_of('SELECT next_id(5, ''pg_class_oid_index'')');
SELECT * FROM error_of('SELECT next_id(5, ''pg_roles'')');
SELECT sequence, layout, state FROM snowflake_sequences('pg_class');

-- shard from the setting
SELECT * FROM error_of('SELECT next_id()');
SET snowflake.shard = 8192;
SELECT * FROM error_of('SELECT next_id()');
RESET snowflake.shard;

-- where nothing may be written
BEGIN READ ONLY;
SELECT * FROM error_of('SELECT next_id(5)');
-- reading is fine
SELECT expires, state <> 'refuses' AS usable FROM snowflake_sequences('next_id_seq');
ROLLBACK;
BEGIN;
SELECT next_id(5) > 0;
SET TRANSACTION READ ONLY;
SELECT * FROM error_of('SELECT next_id(5)');
ROLLBACK;

-- in a parallel worker, however the caller was labelled
CREATE FUNCTION mislabelled() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE
AS 'BEGIN RETURN next_id(5); END';
CREATE FUNCTION mislabelled_advance() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE
AS 'BEGIN PERFORM snowflake_advance(''next_id_seq'', 1); RETURN 1; END';
CREATE TABLE rows_ AS SELECT g FROM generate_series(1, 1000) g;
ALTER TABLE rows_ SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT sqlstate_, message FROM error_of('SELECT max(mislabelled()) FROM rows_');
SELECT sqlstate_, message FROM error_of('SELECT max(mislabelled_advance()) FROM rows_');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
DROP TABLE rows_;
DROP FUNCTION mislabelled(), mislabelled_advance();

-- sequences that would break the promise
CREATE TEMPORARY SEQUENCE temporary_seq;
SELECT * FROM error_of('SELECT next_id(5, ''temporary_seq'')');
CREATE UNLOGGED SEQUENCE unlogged_seq;
SELECT * FROM error_of('SELECT next_id(5, ''unlogged_seq'')');
CREATE TABLE serials (id serial, small smallserial, big bigserial, identity bigint GENERATED ALWAYS AS IDENTITY);
SELECT * FROM error_of('SELECT next_id(5, ''serials_id_seq'')');
SELECT * FROM error_of('SELECT next_id(5, ''serials_small_seq'')');
SELECT * FROM error_of('SELECT next_id(5, ''serials_big_seq'')');
SELECT * FROM error_of('SELECT next_id(5, ''serials_identity_seq'')');
CREATE DOMAIN regress_sf_key AS bigint;
CREATE DOMAIN regress_sf_small AS integer;
ALTER TABLE serials ADD domain regress_sf_key, ADD narrow regress_sf_small;
CREATE SEQUENCE serials_domain_seq OWNED BY serials.domain;
SELECT hint FROM error_of('SELECT next_id(5, ''serials_domain_seq'')');
ALTER SEQUENCE serials_domain_seq OWNED BY serials.narrow;
SELECT hint FROM error_of('SELECT next_id(5, ''serials_domain_seq'')');
ALTER SEQUENCE serials_identity_seq MAXVALUE 1125899906841599 CACHE 5;
SELECT * FROM error_of('SELECT next_id(5, ''serials_identity_seq'')');
CREATE SEQUENCE by_two INCREMENT 2 MAXVALUE 1125899906841599;
SELECT * FROM error_of('SELECT next_id(5, ''by_two'')');
CREATE SEQUENCE backwards INCREMENT -1;
SELECT * FROM error_of('SELECT next_id(5, ''backwards'')');
CREATE SEQUENCE cached CACHE 32 MAXVALUE 1125899906841599;
SELECT * FROM error_of('SELECT next_id(5, ''cached'')');
CREATE SEQUENCE cycling CYCLE MAXVALUE 1125899906841599;
SELECT * FROM error_of('SELECT next_id(5, ''cycling'')');
CREATE SEQUENCE "Short" MAXVALUE 1000000;
SELECT * FROM error_of('SELECT next_id(5, ''"Short"'')');
SELECT sequence, layout, state FROM snowflake_sequences('"Short"');
CREATE SEQUENCE narrow_counter AS integer MAXVALUE 1048575;
SELECT * FROM error_of('SELECT next_id(0, ''narrow_counter'', ''sequence:20'')');

-- the hints work
ALTER SEQUENCE public.unlogged_seq SET LOGGED;
SELECT snowflake_alter_sequence('public.unlogged_seq', 'instagram');
CREATE SEQUENCE another;
SELECT snowflake_alter_sequence('another');
ALTER TABLE serials ALTER big SET DEFAULT next_id(5, 'another');
INSERT INTO serials DEFAULT VALUES RETURNING snowflake_shard(big);
SELECT abs(-5 % 8192), snowflake_shard(next_id(abs(-8197 % 8192))), snowflake_shard(next_id(abs((-9223372036854775807 - 1) % 8192)));
SELECT snowflake_alter_sequence('public.by_two', 'instagram');
SELECT snowflake_alter_sequence('public.cached', 'instagram');
SELECT snowflake_alter_sequence('public.cycling', 'instagram');
SELECT snowflake_alter_sequence('public."Short"', 'instagram');
SELECT snowflake_alter_sequence('public.narrow_counter', 'sequence:20');
SELECT next_id(0, 'narrow_counter', 'sequence:20');
SELECT snowflake_shard(next_id(5, s))
FROM unnest(ARRAY['unlogged_seq', 'another', 'by_two', 'cached', 'cycling', '"Short"']::regclass[]) s;
-- and a good sequence that is changed is looked at again
ALTER SEQUENCE by_two INCREMENT 3;
SELECT sqlstate_, detail FROM error_of('SELECT next_id(5, ''by_two'')');
BEGIN;
SELECT next_id(5, 'cached') > 0;
ALTER SEQUENCE cached CACHE 7;
SELECT sqlstate_, detail FROM error_of('SELECT next_id(5, ''cached'')');
ROLLBACK;
SELECT next_id(5, 'cached') > 0;

-- too far ahead of the clock: refused at once, naming how far
CREATE SEQUENCE ahead MAXVALUE 1125899906841599;
SELECT (snowflake_min_id(clock_timestamp() + interval '3 days 1 hour 59 minutes 30 seconds') >> 23) AS tick \gset
SELECT setval('ahead', :tick * 1024) > 0;
SELECT sqlstate_,
       regexp_replace(message, '3 days 01:59:[\d.]+', '(nearly 3 days and 2 hours)'),
       regexp_replace(detail, '\d+-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?', '(time)', 'g'), hint
FROM error_of('SELECT next_id(5, ''ahead'')');
-- by less than a day, it is a matter of time
SELECT setval('ahead', (snowflake_min_id(clock_timestamp() + interval '23 hours 59 minutes') >> 23) * 1024) > 0;
SELECT sqlstate_, hint FROM error_of('SELECT next_id(5, ''ahead'')');
SELECT setval('ahead', :tick * 1024) > 0;
-- the times in the detail are as far apart as the message says
SELECT clock BETWEEN now() AND clock_timestamp() AS clock,
       substring(detail, 'have the time (.*); the clock')::timestamptz - clock = substring(message, 'is (.*) ahead')::interval AS lead
FROM error_of('SELECT next_id(5, ''ahead'')'),
     LATERAL (SELECT substring(detail, 'clock says (.*)\. "snowflake\.max_lead"')::timestamptz AS clock) c;
-- (the best of three, as the machine may be busy)
CREATE FUNCTION refusal_time() RETURNS interval LANGUAGE plpgsql AS $$
DECLARE
    start timestamptz := clock_timestamp();
BEGIN
    PERFORM next_id(5, 'ahead');
EXCEPTION WHEN configuration_limit_exceeded THEN
    RETURN clock_timestamp() - start;
END $$;
SELECT least(refusal_time(), refusal_time(), refusal_time()) < interval '100 ms' AS at_once;
DROP FUNCTION refusal_time();
SELECT lead > interval '3 days 1 hour' AS lead, state FROM snowflake_sequences('ahead');
-- nothing was taken
SELECT last_value = :tick * 1024 FROM ahead;
-- the ways out: patience, a longer lead, or setval() by the owner
SELECT (snowflake_min_id(clock_timestamp() + interval '1.5 seconds') >> 23) AS tick \gset
SELECT setval('ahead', :tick * 1024) > 0;
SET snowflake.max_wait = '100ms';
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''ahead'')');
RESET snowflake.max_wait;
SELECT next_id(5, 'ahead') > 0;
SELECT setval('ahead', :tick * 1024 + 3600 * 1000 * 1024::bigint) > 0;
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''ahead'')');
SET snowflake.max_lead = '1h';
SELECT next_id(5, 'ahead') > 0;
RESET snowflake.max_lead;

-- the end of the layout; waiting for that is of no use
SELECT setval('ahead', 1125899906841598) > 0;
SET snowflake.max_lead = '36500d';
SELECT next_id(8191, 'ahead');
SELECT regexp_replace(detail, 'clock says [^;]*', 'clock says (time)'), sqlstate_, message, hint
FROM error_of('SELECT next_id(8191, ''ahead'')');
RESET snowflake.max_lead;
SELECT sqlstate_, message FROM error_of('SELECT next_id(8191, ''ahead'')');

-- values that the layout cannot have: PostgreSQL refuses those that are too large
SELECT sqlstate_, message FROM error_of('SELECT setval(''ahead'', 1125899906841600)');
CREATE SEQUENCE negative MINVALUE -10 START -10 MAXVALUE 1125899906841599;
SELECT * FROM error_of('SELECT next_id(5, ''negative'')');
SELECT sequence, last_timestamp, lead, state FROM snowflake_sequences('negative');

-- composing
SELECT * FROM error_of('SELECT snowflake_id(''2011-08-24 21:07:01.720999Z'', 1, 1)');
SELECT * FROM error_of('SELECT snowflake_id(''2046-06-27 17:00:49.496Z'', 1, 1)');
SELECT * FROM error_of('SELECT snowflake_id(''infinity'', 1, 1)');
SELECT * FROM error_of('SELECT snowflake_id(''-infinity'', 1, 1)');
SELECT * FROM error_of('SELECT snowflake_id(''2020-01-01Z'', 8192, 1)');
SELECT * FROM error_of('SELECT snowflake_id(''2020-01-01Z'', -1, 1)');
SELECT * FROM error_of('SELECT snowflake_id(''2020-01-01Z'', 1, 1024)');
SELECT * FROM error_of('SELECT snowflake_id(''2020-01-01Z'', 1, -1)');
SELECT * FROM error_of('SELECT snowflake_id(''2011-08-24 21:07:01.721Z'', 0, 0)');

-- mistakes that people make
CREATE TABLE narrow (id integer DEFAULT next_id(5));
SELECT sqlstate_, message FROM error_of('INSERT INTO narrow DEFAULT VALUES');
CREATE TABLE with_identity (id bigint GENERATED ALWAYS AS IDENTITY);
SELECT sqlstate_, message FROM error_of('ALTER TABLE with_identity ALTER id SET DEFAULT next_id(5)');
SELECT sqlstate_, message FROM error_of('SELECT next_id(5.5)');
SELECT sqlstate_, message FROM error_of('SELECT next_id(''photos'')');

DROP TABLE serials, narrow, with_identity;
DROP DOMAIN regress_sf_key, regress_sf_small;
DROP SEQUENCE another, unlogged_seq, by_two, backwards, cached, cycling, "Short", narrow_counter, ahead, negative;
