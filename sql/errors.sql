-- Every error: its SQLSTATE, its message, and what it tells to do
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_lines

-- Shards that are out of range, and relations that are no sequence or do not exist
SELECT * FROM error_of('SELECT next_id(-1)');
SELECT * FROM error_of('SELECT next_id(8192)');
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT next_id(9223372036854775807)',
    'SELECT next_id(NULL)',
    'SELECT next_id(5, NULL)',
    'SELECT next_id(5, ''no_such_seq'')',
    'SELECT next_id(5, 4294967295::oid)',
    'SELECT next_id(5, ''pg_class'')',
    'SELECT (sequence, layout, state) FROM snowflake_sequences(''pg_class'')'
]) AS statement, error_of(statement);

-- No shard is set.
SELECT * FROM error_of('SELECT next_id()');

-- Nothing may be written, but shown, also in a transaction that has taken an ID.  A read-only transaction is
-- reported before the shard.
CREATE SEQUENCE another;
BEGIN;
SELECT next_id(5) AS id \gset
SET TRANSACTION READ ONLY;
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT next_id(5)', 'SELECT next_id(99999)', 'SELECT next_ids(5, 3)',
    'SELECT snowflake_advance(''next_id_seq'', 17)', 'SELECT snowflake_alter_sequence(''another'')',
    'SELECT snowflake_set_shard(5)',
    'SELECT (expires, state <> ''refuses'') FROM snowflake_sequences(''next_id_seq'')'
]) AS statement, error_of(statement);
ROLLBACK;
-- Later statements of a transaction that keeps its snapshot do not see which IDs are settled.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM error_of('SELECT snowflake_settled_id()');
ROLLBACK;

-- A parallel worker makes no IDs, however its function is labelled.
CREATE FUNCTION mislabelled() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE
AS 'BEGIN RETURN next_id(5); END';
CREATE FUNCTION mislabelled_advance() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE
AS 'BEGIN PERFORM snowflake_advance(''next_id_seq'', 1); RETURN 1; END';
CREATE FUNCTION mislabelled_set_shard() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE
AS 'BEGIN PERFORM snowflake_set_shard(5); RETURN 1; END';
CREATE TABLE rows_ AS SELECT g FROM generate_series(1, 1000) g;
ALTER TABLE rows_ SET (parallel_workers = 2);
CALL prefer_parallel();
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT max(mislabelled()) FROM rows_', 'SELECT max(mislabelled_advance()) FROM rows_',
    'SELECT max(mislabelled_set_shard()) FROM rows_'
]) AS statement, error_of(statement);
CALL prefer_parallel(false);

-- Sequences that would repeat IDs, or return them out of order
CREATE TEMPORARY SEQUENCE temporary_seq;
CREATE UNLOGGED SEQUENCE unlogged_seq;
CREATE DOMAIN regress_sf_key AS bigint;
CREATE DOMAIN regress_sf_small AS integer;
CREATE TABLE serials (id serial, small smallserial, big bigserial, identity bigint GENERATED ALWAYS AS IDENTITY,
    cached bigint GENERATED ALWAYS AS IDENTITY (MAXVALUE 1125899906841599 CACHE 5),
    domain regress_sf_key, narrow regress_sf_small);
CREATE SEQUENCE serials_domain_seq OWNED BY serials.domain;
CREATE SEQUENCE serials_narrow_seq OWNED BY serials.narrow;
CREATE SEQUENCE by_two INCREMENT 2 MAXVALUE 1125899906841599;
CREATE SEQUENCE cached CACHE 32 MAXVALUE 1125899906841599;
CREATE SEQUENCE cycling CYCLE MAXVALUE 1125899906841599;
CREATE SEQUENCE narrow_counter AS integer MAXVALUE 1048575;
CREATE SEQUENCE backwards INCREMENT -1;
CREATE SEQUENCE "Short" MAXVALUE 1000000;
SELECT seq, e.*
FROM unnest(ARRAY['temporary_seq', 'unlogged_seq', 'serials_id_seq', 'serials_small_seq', 'serials_big_seq',
    'serials_identity_seq', 'serials_cached_seq', 'serials_domain_seq', 'serials_narrow_seq', 'by_two', 'cached',
    'cycling', 'backwards', '"Short"']) AS seq, error_of(format('SELECT next_id(5, %L)', seq)) AS e
UNION ALL SELECT 'narrow_counter', * FROM error_of('SELECT next_id(0, ''narrow_counter'', ''sequence:20'')');

-- The hints work.
ALTER SEQUENCE public.unlogged_seq SET LOGGED;
SELECT snowflake_alter_sequence(s::regclass, 'instagram')
FROM unnest(ARRAY['unlogged_seq', 'another', 'by_two', 'public.cached', 'cycling', 'public."Short"']) AS s
    OFFSET 5 \gset
SELECT snowflake_alter_sequence('public.narrow_counter', 'sequence:20') \gset
SELECT count(*) AS sequences, count(*) FILTER (WHERE snowflake_shard(next_id(5, s)) = 5) AS served,
       next_id(0, 'narrow_counter', 'sequence:20') AS first_of_counter,
       snowflake_shard(next_id(abs(-8197 % 8192))) AS shard_5,
       snowflake_shard(next_id(abs((-9223372036854775807 - 1) % 8192))) AS shard_0
FROM unnest(ARRAY['unlogged_seq', 'another', 'by_two', 'cached', 'cycling', '"Short"']::regclass[]) AS s;
-- A sequence that has served is looked at again when it has been changed.
BEGIN;
SELECT next_id(5, 'cached') > 0 AS taken;
ALTER SEQUENCE cached CACHE 7;
SELECT detail AS of_the_changed_sequence FROM error_of('SELECT next_id(5, ''cached'')');
ROLLBACK;
SELECT next_id(5, 'cached') > 0 AS taken_after_rollback;

-- A sequence that is further ahead of the clock than a call may wait for is refused at once.
CREATE SEQUENCE ahead MAXVALUE 1125899906841599;
SELECT (snowflake_min_id(clock_timestamp() + interval '3 days 1 hour 59 minutes 30 seconds') >> 23) AS tick \gset
SELECT setval('ahead', :tick * 1024) \gset
SET snowflake.max_wait = '1h';
SET statement_timeout = '1min';
SELECT * FROM error_of('SELECT next_id(5, ''ahead'')', '\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*|(?<=3 days 01:)[:.\d]+');
RESET statement_timeout;
RESET snowflake.max_wait;
-- The times in the detail are as far apart as the message says.
SELECT lead > interval '3 days 1 hour' AS has_lead, state, last_value = :tick * 1024 AS nothing_was_taken,
       clock BETWEEN now() AND clock_timestamp() AS clock_is_right,
       substring(detail, 'have the time (.*); the clock')::timestamptz - clock
           = substring(message, 'is (.*) ahead')::interval AS lead_is_right
FROM snowflake_sequences('ahead'), ahead, error_of('SELECT next_id(5, ''ahead'')'),
     CAST(substring(detail, 'clock says (.*)\. "snowflake\.max_lead"') AS timestamptz) AS clock;
-- Less than a day has the same hint.
SELECT setval('ahead', (snowflake_min_id(clock_timestamp() + interval '23 hours 59 minutes') >> 23) * 1024) \gset
SELECT sqlstate_, hint ~ '^Correct the clock' AS same_hint FROM error_of('SELECT next_id(5, ''ahead'')');
-- The ways out are to wait, or to allow a longer lead.
SELECT (snowflake_min_id(clock_timestamp() + interval '1.5 seconds') >> 23) AS tick \gset
SELECT setval('ahead', :tick * 1024) \gset
SET snowflake.max_wait = '100ms';
SELECT sqlstate_ AS with_a_short_wait FROM error_of('SELECT next_id(5, ''ahead'')');
RESET snowflake.max_wait;
SELECT next_id(5, 'ahead') > 0 AS taken_with_a_longer_wait;
SELECT setval('ahead', :tick * 1024 + 3600 * 1000 * 1024::bigint) \gset
SELECT sqlstate_ AS with_a_short_lead FROM error_of('SELECT next_id(5, ''ahead'')');
SET snowflake.max_lead = '1h';
SELECT next_id(5, 'ahead') > 0 AS taken_with_a_longer_lead;
RESET snowflake.max_lead;

-- The layout's time is used up: no call waits for that.
SELECT setval('ahead', 1125899906841598) \gset
SET snowflake.max_lead = '36500d';
SELECT next_id(8191, 'ahead') AS largest;
SELECT * FROM error_of('SELECT next_id(8191, ''ahead'')', '(?<=clock says )[^;]*');
RESET snowflake.max_lead;
SELECT message AS with_the_default_lead FROM error_of('SELECT next_id(8191, ''ahead'')');
-- It is over, or has not begun.
\set over 'timestamp:30 sequence:10 epoch:0'
\set to_come 'timestamp:41 sequence:10 epoch:2999-01-01T00:00:00Z'
CREATE SEQUENCE late;
CREATE SEQUENCE early;
SELECT snowflake_alter_sequence('late', :'over'), snowflake_alter_sequence('early', :'to_come') \gset
SELECT * FROM error_of(format('SELECT next_id(0, ''late'', %L)', :'over'), '(?<=clock says )[^;]*');
SELECT * FROM error_of(format('SELECT next_id(0, ''early'', %L)', :'to_come'), '(?<=clock says )[^;]*');

-- Values that the layout cannot have
CREATE SEQUENCE negative MINVALUE -10 START -10 MAXVALUE 1125899906841599;
SELECT * FROM error_of('SELECT next_id(5, ''negative'')');
SELECT num_nonnulls(last_timestamp, lead) AS times_of_negative, state FROM snowflake_sequences('negative');

-- IDs that cannot be composed
SELECT * FROM error_of('SELECT snowflake_id(''2020-01-01Z'', 1, 1024)');
SELECT arguments, e.sqlstate_, e.message, e.detail FROM unnest(ARRAY['2011-08-24 21:07:01.720999Z'', 1, 1',
    '2011-08-24 21:07:01.721Z'', 0, 0', '2046-06-27 17:00:49.496Z'', 1, 1', 'infinity'', 1, 1', '-infinity'', 1, 1',
    '2020-01-01Z'', 8192, 1', '2020-01-01Z'', -1, 1', '2020-01-01Z'', 1, -1']) AS arguments,
    error_of('SELECT snowflake_id(''' || arguments || ')') AS e;
