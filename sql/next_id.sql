--
-- IDs in INSERT, exact slots, and the sequence beneath
--
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup
\pset format unaligned
\pset tuples_only on

-- the main job
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text);
INSERT INTO photos (title) SELECT 'photo ' || g FROM generate_series(1, 3000) g;
INSERT INTO photos (title) VALUES ('the last') RETURNING snowflake_shard(id);
SELECT count(*), count(DISTINCT id) AS ids, min(snowflake_shard(id)) AS min_shard,
       max(snowflake_shard(id)) AS max_shard
FROM photos;
-- in the order of insertion
SELECT bool_and(id > before) AS growing
FROM (SELECT id, lag(id) OVER (ORDER BY ctid) AS before FROM photos) p;
SELECT title FROM photos ORDER BY id DESC LIMIT 1;
-- of the present, at most a lead ahead
SELECT bool_and(snowflake_timestamp(id) BETWEEN now() - interval '1 minute'
                                        AND clock_timestamp() + interval '1 second') AS present
FROM photos;
-- with the arithmetic that is published for these IDs
SELECT bool_and((id >> 23) + 1314220021721 =
                (extract(epoch FROM snowflake_timestamp(id)) * 1000)::bigint) AS time,
       bool_and((id & 8388607) >> 10 = snowflake_shard(id)) AS shard,
       bool_and(id & 1023 = snowflake_sequence_number(id)) AS sequence
FROM photos;

-- all shards; an integer, and an expression of bigint
SELECT snowflake_shard(next_id(0)), snowflake_shard(next_id(8191)),
       snowflake_shard(next_id(1000000005::bigint % 8192));
-- names and notations
SELECT snowflake_shard(next_id(shard => 3)), snowflake_shard(next_id(4, sequence => 'next_id_seq'));

-- shard from the setting
SET snowflake.shard = 42;
SELECT snowflake_shard(next_id()) FROM generate_series(1, 2);
RESET snowflake.shard;

-- a sequence modulo 1024, literally: the slot goes on by one, whatever the time
CREATE TABLE slow (n serial, id bigint);
DO $$
BEGIN
    FOR i IN 1..64 LOOP
        INSERT INTO slow (id) VALUES (next_id(5));
        PERFORM pg_sleep(0.002);
    END LOOP;
END $$;
SELECT count(*) AS numbers, min(c) AS at_least, max(c) AS at_most
FROM (SELECT count(*) AS c FROM slow GROUP BY id % 8) s;
SELECT bool_and((snowflake_sequence_number(id) - snowflake_sequence_number(before) + 1024) % 1024 = 1) AS by_one,
       bool_and(snowflake_timestamp(id) > snowflake_timestamp(before)) AS later
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM slow) s;

-- exact slots: far enough ahead that the clock does not matter
SET snowflake.max_lead = '2h';
CREATE SEQUENCE exact MAXVALUE 1125899906841599;
SELECT (snowflake_min_id(date_trunc('second', now()) + interval '1 hour') >> 23) AS tick \gset
SELECT setval('exact', :tick * 1024 + 1021) = :tick * 1024 + 1021 AS set;
SELECT (id >> 23) - :tick AS tick, (id >> 10) & 8191 AS shard, id & 1023 AS slot
FROM (SELECT next_id(77, 'exact') AS id FROM generate_series(1, 4)) i;
SELECT last_value - :tick * 1024 AS value, is_called FROM exact;

-- not called yet: the first value is the sequence's own
SELECT setval('exact', :tick * 1024 + 7, false) IS NOT NULL AS set;
SELECT (id >> 23) - :tick AS tick, id & 1023 AS slot
FROM (SELECT next_id(77, 'exact') AS id FROM generate_series(1, 2)) i;

-- nextval() takes a slot, setval() is obeyed
SELECT nextval('exact') - :tick * 1024 AS value;
SELECT (id >> 23) - :tick AS tick, id & 1023 AS slot FROM (SELECT next_id(77, 'exact') AS id) i;
SELECT setval('exact', (:tick + 60000) * 1024) IS NOT NULL AS set;
SELECT (id >> 23) - :tick AS tick, id & 1023 AS slot FROM (SELECT next_id(77, 'exact') AS id) i;
SELECT nextval('exact') - :tick * 1024 AS value;
-- currval() and lastval() do not follow next_id()
SELECT currval('exact') = last_value AS current FROM exact;
SELECT next_id(77, 'exact') IS NOT NULL AS taken;
SELECT currval('exact') = last_value AS current FROM exact;

-- behind the clock: the slot goes on, the tick is the clock's
SELECT setval('exact', (:tick - 7200000) * 1024 + 500) IS NOT NULL AS set;
SELECT snowflake_timestamp(id) BETWEEN now() - interval '1 second'
                               AND clock_timestamp() AS present, id & 1023 AS slot
FROM (SELECT next_id(77, 'exact') AS id) i;
SELECT setval('exact', (:tick - 7200000) * 1024 + 1023) IS NOT NULL AS set;
SELECT snowflake_timestamp(id) BETWEEN now() - interval '1 second'
                               AND clock_timestamp() AS present, id & 1023 AS slot
FROM (SELECT next_id(77, 'exact') AS id) i;

-- what is logged ahead is in nextval()'s units, and a second's worth
SELECT setval('exact', :tick * 1024) IS NOT NULL AS set;
SELECT next_id(77, 'exact') IS NOT NULL AS taken;
SELECT log_cnt FROM exact;
SELECT next_id(77, 'exact') IS NOT NULL AS taken;
SELECT log_cnt FROM exact;
SELECT nextval('exact') - :tick * 1024 AS value;
SELECT log_cnt FROM exact;
RESET snowflake.max_lead;

-- what is shown of a sequence
CREATE SEQUENCE fresh MAXVALUE 1125899906841599;
SELECT last_timestamp, lead, expires AT TIME ZONE 'UTC' AS expires, state
FROM snowflake_sequences('fresh');
SELECT next_id(1, 'fresh') AS id \gset
SELECT last_timestamp = snowflake_timestamp(:id) AS last, lead <= interval '1 ms' AS lead
FROM snowflake_sequences('fresh');
SELECT setval('fresh', :tick * 1024) IS NOT NULL AS set;
SELECT lead > interval '50 minutes' AND lead <= interval '1 hour' AS lead, state
FROM snowflake_sequences('fresh');
SELECT last_timestamp > now() - interval '1 hour' AS default_sequence FROM snowflake_sequences('next_id_seq');

-- a bigserial's own sequence, and an identity column's
CREATE TABLE albums (id bigserial PRIMARY KEY, n int);
INSERT INTO albums (n) VALUES (1), (2);
SELECT snowflake_alter_sequence('albums_id_seq');
ALTER TABLE albums ALTER id SET DEFAULT next_id(6, 'albums_id_seq');
INSERT INTO albums (n) VALUES (3), (4);
SELECT n, CASE WHEN id < 1000 THEN id END AS old, snowflake_shard(id) AS shard,
       snowflake_sequence_number(id) AS slot
FROM albums ORDER BY id;
CREATE TABLE tags (id bigint GENERATED BY DEFAULT AS IDENTITY (MAXVALUE 1125899906841599) PRIMARY KEY, n int);
INSERT INTO tags (n) VALUES (1);
INSERT INTO tags (id, n) VALUES (next_id(6, 'tags_id_seq'), 2);
SELECT n, id < 1000 AS old FROM tags ORDER BY id;

-- many rows in one statement, into a primary key
CREATE TABLE bulk (id bigint PRIMARY KEY DEFAULT next_id(9), n int);
INSERT INTO bulk (n) SELECT g FROM generate_series(1, 2000000) g;
SELECT count(*) = 2000000 AS complete FROM bulk;
SELECT bool_and(n = before + 1) AS in_order
FROM (SELECT n, lag(n) OVER (ORDER BY id) AS before FROM bulk) b WHERE before IS NOT NULL;

-- no ID is more than a second ahead of the clock when it is made, even if the
-- sequence is
SELECT setval('fresh', (snowflake_min_id(clock_timestamp() + interval '3 seconds') >> 23) * 1024) IS NOT NULL AS set;
SELECT count(*), bool_and(snowflake_timestamp(id) <= time + interval '1 second') AS bounded
FROM (SELECT next_id(5, 'fresh') AS id, clock_timestamp() AS time
      FROM generate_series(1, 20000) OFFSET 0) i;

-- never ahead of the clock
SET snowflake.max_lead = 0;
CREATE SEQUENCE punctual MAXVALUE 1125899906841599;
SELECT count(*), bool_and(snowflake_timestamp(id) <= time) AS never_ahead
FROM (SELECT next_id(5, 'punctual') AS id, clock_timestamp() AS time
      FROM generate_series(1, 20000) OFFSET 0) i;
-- waiting for the next tick is no error, however short the patience
SET snowflake.max_wait = 0;
SELECT count(DISTINCT next_id(5, 'punctual')) FROM generate_series(1, 20000);
RESET snowflake.max_wait;
RESET snowflake.max_lead;

-- a time range through the primary key
ANALYZE bulk;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF)
SELECT * FROM bulk WHERE id >= snowflake_min_id(now() - interval '1 hour')
                     AND id < snowflake_min_id(now());
EXPLAIN (COSTS OFF)
SELECT * FROM bulk WHERE id < 4000000000000000000 ORDER BY id DESC LIMIT 10;
RESET enable_seqscan;

DROP TABLE photos, slow, albums, tags, bulk;
DROP SEQUENCE exact, fresh, punctual, albums_id_seq;
