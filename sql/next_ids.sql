--
-- Many IDs at once
--
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup
\pset format unaligned
\pset tuples_only on

CREATE SEQUENCE many MAXVALUE 1125899906841599;

-- in order, without a gap but that of the clock, each with its parts
SELECT count(*), count(DISTINCT id), bool_and(id > before) AS ordered, bool_and(snowflake_shard(id) = 8191) AS shard,
       bool_and(snowflake_sequence_number(id) = (snowflake_sequence_number(before) + 1) % 1024) AS slots_run_on,
       max(snowflake_timestamp(id)) - min(snowflake_timestamp(id)) < '1 s' AS lead
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM next_ids(8191, 10000, 'many') WITH ORDINALITY AS t (id, n)) t
WHERE before IS NOT NULL OR snowflake_sequence_number(id) >= 0;
SELECT next_id(5, 'many') > max(id) FROM next_ids(5, 10, 'many') id;
SELECT count(*), count(DISTINCT id) FROM generate_series(1, 3) g, LATERAL next_ids(g, 1500) id;
SELECT count(DISTINCT id) FROM (SELECT next_ids(5, 3000) AS id UNION ALL SELECT next_ids(6, 2000)) t;
SELECT count(DISTINCT a), count(DISTINCT b) FROM (SELECT next_ids(5, 2000) AS a, next_ids(5, 2000) AS b) t;
SELECT next_ids(5, 2) > 0 FROM generate_series(1, 2);

-- in the select list, what is not fetched is not taken, except for one batch
-- (an hour ahead, where the clock does not move the values)
CREATE SEQUENCE exact MAXVALUE 1125899906841599;
SET snowflake.max_lead = '2h';
SELECT setval('exact', (snowflake_min_id(now() + interval '1 hour') >> 23) * 1024) AS before \gset
SELECT count(*) FROM (SELECT next_ids(5, 1000000, 'exact') LIMIT 3) t;
SELECT last_value - :before AS taken, log_cnt > 0 AS logged FROM exact;
BEGIN;
DECLARE few CURSOR FOR SELECT next_ids(5, 1000000, 'many') > 0 AS id;
FETCH 2 FROM few;
MOVE 2000 FROM few;
FETCH 2 FROM few;
ROLLBACK;
-- while FROM takes all
SELECT last_value AS before FROM exact \gset
SELECT count(*) FROM (SELECT * FROM next_ids(5, 5000, 'exact') LIMIT 3) t;
SELECT last_value - :before AS taken FROM exact;
RESET snowflake.max_lead;
DROP SEQUENCE exact;

-- no further ahead of the clock than allowed, however many are wanted
SET snowflake.max_lead = 0;
CREATE TABLE made AS SELECT clock_timestamp() AS time, id FROM (SELECT next_ids(5, 6000, 'many') AS id) t;
SELECT count(DISTINCT id), bool_and(snowflake_timestamp(id) <= time) AS not_ahead FROM made;
SET snowflake.max_lead = '20ms';
TRUNCATE made;
INSERT INTO made SELECT clock_timestamp(), id FROM (SELECT next_ids(5, 60000, 'many') AS id) t;
SELECT count(DISTINCT id), bool_and(snowflake_timestamp(id) <= time + interval '20 ms') AS bounded FROM made;
RESET snowflake.max_lead;
DROP TABLE made;

-- other layouts
CREATE SEQUENCE tweets MAXVALUE 9007199254736895;
SELECT count(DISTINCT id), bool_and(snowflake_shard(id, 'twitter') = 1023) AS shard FROM next_ids(1023, 10000, 'tweets', 'twitter') id;
CREATE SEQUENCE chunks MAXVALUE 9435509593701641;
SELECT count(DISTINCT id), min(snowflake_sequence_number(id, 'trace')), max(snowflake_sequence_number(id, 'trace')) FROM next_ids(5, 2500, 'chunks', 'trace') id;
CREATE SEQUENCE rows_ MAXVALUE 281474976710654;
SELECT count(DISTINCT id), count(DISTINCT snowflake_timestamp(id, 'timestamp:48 node:15 epoch:0 tick:10us'))
FROM next_ids(7, 5000, 'rows_', 'timestamp:48 node:15 epoch:0 tick:10us') id;
CREATE SEQUENCE orders MAXVALUE 92233720199999 START 922337200;
SELECT snowflake_fields(id, 'decimal') FROM next_ids(7, 4, 'orders', 'decimal') id;

-- up to the last, and not beyond
CREATE SEQUENCE short MAXVALUE 1023;
SELECT count(*), min(id), max(id) FROM next_ids(0, 1000, 'short', 'sequence:10') id;
SELECT sqlstate_, message FROM error_of('SELECT next_ids(0, 100, ''short'', ''sequence:10'')');
SELECT last_value FROM short;
SELECT sqlstate_ FROM error_of('SELECT count(*) FROM next_ids(0, 1, ''short'', ''sequence:10'')');

-- into a table, as an ORM would reserve them
CREATE TABLE parents (id bigint PRIMARY KEY);
CREATE TABLE children (id bigint PRIMARY KEY, parent bigint REFERENCES parents);
WITH ids AS MATERIALIZED (SELECT array_agg(id ORDER BY n) AS ids FROM next_ids(5, 3) WITH ORDINALITY AS t (id, n)),
     parent AS (INSERT INTO parents SELECT ids[1] FROM ids)
INSERT INTO children SELECT unnest(ids[2:]), ids[1] FROM ids;
SELECT count(*), bool_and(id > parent) FROM children;
DROP TABLE children, parents;

-- errors
SELECT * FROM error_of('SELECT next_ids(NULL, 1)');
SELECT * FROM error_of('SELECT next_ids(5, NULL)');
SELECT * FROM error_of('SELECT next_ids(5, 1, NULL)');
SELECT * FROM error_of('SELECT next_ids(5, 1, ''many'', NULL)');
SELECT * FROM error_of('SELECT next_ids(5, 0)');
SELECT * FROM error_of('SELECT * FROM next_ids(5, -3)');
SELECT * FROM error_of('SELECT next_ids(8192, 3)');
SELECT count(*), bool_and(snowflake_shard(id, 'twitter') = 5) FROM next_ids(5, 3, 'tweets') AS id;
SELECT * FROM error_of('SELECT next_ids(5, 3, ''tweets'', ''instagram'')');
SELECT * FROM error_of('SELECT next_ids(5, 3, ''next_id_seq'', ''twitter'')');
SELECT sqlstate_, message FROM error_of('SELECT next_ids(5, 3, ''pg_class'')');
BEGIN READ ONLY;
SELECT sqlstate_, message FROM error_of('SELECT next_ids(5, 3)');
ROLLBACK;
-- what was taken before the error is not taken again
SELECT setval('many', (snowflake_min_id(clock_timestamp() + interval '1 hour') >> 23) * 1024) > 0;
SELECT sqlstate_ FROM error_of('SELECT next_ids(5, 3, ''many'')');
CREATE ROLE regress_sf_app;
SET ROLE regress_sf_app;
SELECT sqlstate_, message FROM error_of('SELECT next_ids(5, 3, ''many'')');
SELECT count(*) FROM next_ids(5, 3);
RESET ROLE;
DROP ROLE regress_sf_app;
DROP SEQUENCE many, tweets, chunks, rows_, orders, short;
