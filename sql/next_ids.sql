-- Many IDs at once
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_lines

CREATE SEQUENCE many MAXVALUE 1125899906841599;

-- IDs are in order, have their shard, and leave no slot out.
SELECT count(*) AS ids, bool_and(id > before) AS in_order, bool_and(snowflake_shard(id) = 8191) AS shard,
       bool_and(snowflake_sequence_number(id) = (snowflake_sequence_number(before) + 1) % 1024) AS slots_run_on,
       max(snowflake_timestamp(id)) - min(snowflake_timestamp(id)) < '1 s' AS within_a_second
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
      FROM next_ids(8191, 10000, 'many') WITH ORDINALITY AS t (id, n)) t;
SELECT next_id(5, 'many') > max(id) AS the_next_is_larger FROM next_ids(5, 10, 'many') id;
-- They are different in each place that a query has for them.
SELECT place, count(*) AS ids, count(DISTINCT id) AS different_ids FROM (
    SELECT 'lateral' AS place, id FROM generate_series(1, 3) g, LATERAL next_ids(g, 1500) id
    UNION ALL (SELECT 'union', next_ids(5, 3000) UNION ALL SELECT 'union', next_ids(6, 2000))
    UNION ALL SELECT 'two columns', id FROM (SELECT next_ids(5, 2000) AS a, next_ids(5, 2000) AS b) t,
        LATERAL (VALUES (a), (b)) AS v (id)
    UNION ALL SELECT 'select list', next_ids(5, 2) FROM generate_series(1, 2)) t GROUP BY place ORDER BY place;

-- In the select list, IDs that are not fetched are not taken, except for one batch.
-- (An hour ahead of the clock, it does not move the values.)
CREATE SEQUENCE exact MAXVALUE 1125899906841599;
SET snowflake.max_lead = '2h';
SELECT setval('exact', (snowflake_min_id(now() + interval '1 hour') >> 23) * 1024) AS before \gset
SELECT count(*) AS fetched_of_list FROM (SELECT next_ids(5, 1000000, 'exact') LIMIT 3) t;
SELECT last_value - :before AS taken_of_list, log_cnt > 0 AS logged_ahead FROM exact;
BEGIN;
DECLARE few CURSOR FOR SELECT (id >> 23) * 1024 + (id & 1023) - :before AS value_of_cursor
FROM (SELECT next_ids(5, 1000000, 'exact') AS id) t;
FETCH few;
MOVE 2000 FROM few;
FETCH few;
ROLLBACK;
-- In FROM, all are taken.
SELECT last_value AS before FROM exact \gset
SELECT count(*) AS fetched_of_from FROM (SELECT * FROM next_ids(5, 5000, 'exact') LIMIT 3) t;
SELECT last_value - :before AS taken_of_from FROM exact;
RESET snowflake.max_lead;

-- No ID is further ahead of the clock than allowed, however many are asked for.
CREATE TABLE made (time timestamptz, id bigint);
SET snowflake.max_lead = 0;
INSERT INTO made SELECT clock_timestamp(), id FROM (SELECT next_ids(5, 6000, 'many') AS id) t;
SELECT count(DISTINCT id) AS ids_without_lead, bool_and(snowflake_timestamp(id) <= time) AS not_ahead FROM made;
SET snowflake.max_lead = '20ms';
TRUNCATE made;
INSERT INTO made SELECT clock_timestamp(), id FROM (SELECT next_ids(5, 60000, 'many') AS id) t;
SELECT count(DISTINCT id) AS ids_with_lead, bool_and(snowflake_timestamp(id) <= time + interval '20 ms') AS within_20_ms
FROM made;
RESET snowflake.max_lead;

-- Other layouts: with another number of slots, a first slot of 1, none, and no clock.
CREATE SEQUENCE tweets MAXVALUE 9007199254736895;
SELECT count(DISTINCT id) AS ids_of_twitter, bool_and(snowflake_shard(id, 'twitter') = 1023) AS shard_of_twitter
FROM next_ids(1023, 10000, 'tweets', 'twitter') id;
CREATE SEQUENCE chunks MAXVALUE 9435509593701641;
SELECT count(DISTINCT id) AS ids_of_trace, min(snowflake_sequence_number(id, 'trace')) AS first,
       max(snowflake_sequence_number(id, 'trace')) AS last
FROM next_ids(5, 2500, 'chunks', 'trace') id;
CREATE SEQUENCE rows_ MAXVALUE 281474976710654;
SELECT count(DISTINCT id) AS ids_without_slots,
       count(DISTINCT snowflake_timestamp(id, 'timestamp:48 node:15 epoch:0 tick:10us')) AS times
FROM next_ids(7, 5000, 'rows_', 'timestamp:48 node:15 epoch:0 tick:10us') id;
CREATE SEQUENCE orders MAXVALUE 92233720199999 START 922337200;
SELECT string_agg(id::text, ' ') AS ids_of_decimal FROM next_ids(7, 4, 'orders', 'decimal') id;

-- A layout's last numbers are taken, and no more.
CREATE SEQUENCE short MAXVALUE 1023;
SELECT count(*) AS ids_of_counter, min(id), max(id) FROM next_ids(0, 1000, 'short', 'sequence:10') id;
SELECT sqlstate_ AS after_too_many FROM error_of('SELECT next_ids(0, 100, ''short'', ''sequence:10'')');
SELECT last_value, sqlstate_ AS after_the_last
FROM short, error_of('SELECT count(*) FROM next_ids(0, 1, ''short'', ''sequence:10'')');

-- An ORM reserves IDs for rows that refer to each other.
CREATE TABLE parents (id bigint PRIMARY KEY);
CREATE TABLE children (id bigint PRIMARY KEY, parent bigint REFERENCES parents);
WITH ids AS MATERIALIZED (SELECT array_agg(id ORDER BY n) AS ids
    FROM next_ids(5, 3) WITH ORDINALITY AS t (id, n)),
     parent AS (INSERT INTO parents SELECT ids[1] FROM ids)
INSERT INTO children SELECT unnest(ids[2:]), ids[1] FROM ids;
SELECT count(*) AS children, bool_and(id > parent) AS after_their_parent FROM children;

-- Errors
SELECT * FROM error_of('SELECT next_ids(5, 0)');
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT next_ids(NULL, 1)', 'SELECT next_ids(5, NULL)', 'SELECT next_ids(5, 1, NULL)',
    'SELECT next_ids(5, 1, ''many'', NULL)', 'SELECT * FROM next_ids(5, -3)', 'SELECT next_ids(8192, 3)',
    'SELECT next_ids(5, 3, ''tweets'', ''instagram'')', 'SELECT next_ids(5, 3, ''next_id_seq'', ''twitter'')',
    'SELECT next_ids(5, 3, ''pg_class'')'
]) AS statement, error_of(statement);
SELECT count(*) AS ids, bool_and(snowflake_shard(id, 'twitter') = 5) AS of_the_served_layout
FROM next_ids(5, 3, 'tweets') AS id;
-- A sequence that is ahead of the clock is refused.
SELECT setval('many', (snowflake_min_id(clock_timestamp() + interval '1 hour') >> 23) * 1024) \gset
SELECT sqlstate_ AS ids_ahead_of_the_clock FROM error_of('SELECT next_ids(5, 3, ''many'')');
