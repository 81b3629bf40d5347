-- IDs in INSERT, exact slots, and the sequence beneath
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_lines

-- The main job: a default makes an ID of its shard for each row.
SELECT clock_timestamp() AS start \gset
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text);
INSERT INTO photos (title) SELECT 'photo ' || g FROM generate_series(1, 3000) g;
INSERT INTO photos (title) VALUES ('the last') RETURNING snowflake_shard(id) AS shard_of_the_last;
-- IDs are in the order of insertion.  Their times are those of the calls, or at most a second ahead.
SELECT min(snowflake_shard(id)) AS shard_of_all, count(*) AS rows, count(DISTINCT id) AS ids,
       bool_and(id > before) AS in_order,
       bool_and(snowflake_timestamp(id) BETWEEN :'start'::timestamptz - interval '1 ms'
                AND clock_timestamp() + interval '1 second') AS of_the_present
FROM (SELECT id, lag(id, 1, 0::bigint) OVER (ORDER BY ctid) AS before FROM photos) p;
-- Published arithmetic finds the parts that Instagram's IDs have.
SELECT bool_and((id >> 23) + 1314220021721 = (extract(epoch FROM snowflake_timestamp(id)) * 1000)::bigint)
           AS published_time,
       bool_and((id & 8388607) >> 10 = snowflake_shard(id)) AS published_shard,
       bool_and(id & 1023 = snowflake_sequence_number(id)) AS published_sequence_number
FROM photos;

-- The shard can be any, and an expression; arguments have names.  Without one, it is that of the setting.
SET snowflake.shard = 42;
SELECT snowflake_shard(next_id(0)) AS first_shard, snowflake_shard(next_id(8191)) AS last_shard,
       snowflake_shard(next_id(1000000005::bigint % 8192)) AS of_a_key,
       snowflake_shard(next_id(shard => 3)) AS by_name, snowflake_shard(next_id()) AS of_the_setting,
       snowflake_shard(next_id(4, sequence => 'next_id_seq')) AS of_a_named_sequence;
RESET snowflake.shard;

-- The slot is a sequence modulo 1024: it goes on by one, however much time passes between two calls.
CREATE TABLE slow (n serial, id bigint);
DO $$
BEGIN
    FOR i IN 1..64 LOOP
        INSERT INTO slow (id) VALUES (next_id(5));
        PERFORM pg_sleep(0.002);
    END LOOP;
END $$;
SELECT bool_and((snowflake_sequence_number(id) - snowflake_sequence_number(before) + 1024) % 1024 = 1) AS slots_by_one,
       bool_and(snowflake_timestamp(id) > snowflake_timestamp(before)) AS times_grow
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM slow) s;

-- An hour ahead of the clock, where it does not matter, values are exact.
SET snowflake.max_lead = '2h';
CREATE SEQUENCE exact MAXVALUE 1125899906841599;
SELECT (snowflake_min_id(date_trunc('second', now()) + interval '1 hour') >> 23) AS tick \gset
SELECT setval('exact', :tick * 1024 + 1021) \gset
SELECT string_agg(format('%s/%s/%s', (id >> 23) - :tick, (id >> 10) & 8191, id & 1023), ' ') AS tick_shard_slot
FROM (SELECT next_id(77, 'exact') AS id FROM generate_series(1, 4)) i;
-- The first value of a sequence that has not been called is its own.
SELECT setval('exact', :tick * 1024 + 7, false) \gset
SELECT (next_id(77, 'exact') >> 23) - :tick AS first_tick, next_id(77, 'exact') & 1023 AS slot_of_the_second;
-- nextval() takes a slot, and setval() is obeyed.
SELECT nextval('exact') - :tick * 1024 AS value_of_nextval, next_id(77, 'exact') & 1023 AS slot_after_nextval;
SELECT setval('exact', (:tick + 60000) * 1024) \gset
SELECT (next_id(77, 'exact') >> 23) - :tick AS tick_of_setval, nextval('exact') - (:tick + 60000) * 1024 AS next_value;
-- currval() does not follow next_id().
SELECT currval('exact') = last_value AS current_after_nextval FROM exact;
SELECT next_id(77, 'exact') AS id \gset
SELECT currval('exact') = last_value AS current_after_next_id FROM exact;
-- Behind the clock, the slot goes on, and the tick is the clock's.
SELECT setval('exact', (:tick - 7200000) * 1024 + 1023) \gset
SELECT snowflake_timestamp(id) BETWEEN now() - interval '1 second' AND clock_timestamp() AS of_the_present,
       id & 1023 AS slot_of_the_present
FROM (SELECT next_id(77, 'exact') AS id) i;

-- A second's worth of values is logged ahead, in nextval()'s units.
SELECT setval('exact', :tick * 1024), next_id(77, 'exact') \gset
SELECT log_cnt AS after_one FROM exact;
SELECT next_id(77, 'exact') \gset
SELECT log_cnt AS after_two FROM exact;
SELECT nextval('exact') - :tick * 1024 AS third_value;
SELECT log_cnt AS after_nextval FROM exact;
-- IDs go on by one where the values that have been logged are used up.
SELECT count(*) AS ids_of_exact, max(value) - min(value) + 1 AS values,
       bool_and(value = :tick * 1024 + n + 3) AS values_by_one
FROM (SELECT n, (id >> 23) * 1024 + (id & 1023) AS value
      FROM (SELECT n, next_id(77, 'exact') AS id FROM generate_series(1, 1100000) AS n OFFSET 0) AS i) AS v;
SELECT log_cnt > 0 AS logged_again FROM exact;
RESET snowflake.max_lead;

-- What snowflake_sequences() shows of a sequence: used, and ahead
CREATE SEQUENCE fresh MAXVALUE 1125899906841599;
SELECT next_id(1, 'fresh') AS id \gset
SELECT last_timestamp = snowflake_timestamp(:id) AS time_is_shown, lead <= interval '1 ms' AS no_lead
FROM snowflake_sequences('fresh');
SELECT setval('fresh', :tick * 1024) \gset
SELECT lead > interval '50 minutes' AND lead <= interval '1 hour' AS an_hour_ahead, state AS state_of_fresh
FROM snowflake_sequences('fresh');

-- An identity column's sequence serves.
CREATE TABLE tags (id bigint GENERATED BY DEFAULT AS IDENTITY (MAXVALUE 1125899906841599) PRIMARY KEY, n int);
INSERT INTO tags (n) VALUES (1);
INSERT INTO tags (id, n) VALUES (next_id(6, 'tags_id_seq'), 2);
SELECT array_agg(n ORDER BY id) AS tags_in_order, count(*) FILTER (WHERE id < 1000) AS old_tags FROM tags;

-- Many rows in one statement, into a primary key
CREATE TABLE bulk (id bigint PRIMARY KEY DEFAULT next_id(9), n int);
INSERT INTO bulk (n) SELECT g FROM generate_series(1, 200000) g;
SELECT count(*) AS rows_of_bulk, bool_and(n = before + 1) AS bulk_in_order
FROM (SELECT n, lag(n, 1, 0) OVER (ORDER BY id) AS before FROM bulk) b;

-- No ID is more than a second ahead of the clock when it is made, even if the sequence was.
SELECT setval('fresh', (snowflake_min_id(clock_timestamp() + interval '3 seconds') >> 23) * 1024) \gset
SELECT count(*) AS ids_of_fresh, bool_and(snowflake_timestamp(id) <= time + interval '1 second') AS within_a_second
FROM (SELECT next_id(5, 'fresh') AS id, clock_timestamp() AS time FROM generate_series(1, 20000) OFFSET 0) i;
-- None is ahead of it at all with max_lead = 0, ...
SET snowflake.max_lead = 0;
CREATE SEQUENCE punctual MAXVALUE 1125899906841599;
SELECT count(*) AS ids_of_punctual, bool_and(snowflake_timestamp(id) <= time) AS never_ahead
FROM (SELECT next_id(5, 'punctual') AS id, clock_timestamp() AS time FROM generate_series(1, 20000) OFFSET 0) i;
-- ... and to wait for the next tick is no error, however short max_wait is.
SET snowflake.max_wait = 0;
SELECT count(DISTINCT next_id(5, 'punctual')) AS ids_without_max_wait FROM generate_series(1, 20000);
RESET snowflake.max_wait;
RESET snowflake.max_lead;

-- A range of times uses the primary key.
:as_table
ANALYZE bulk;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM bulk
WHERE id >= snowflake_min_id(now() - interval '1 hour') AND id < snowflake_min_id(now());
