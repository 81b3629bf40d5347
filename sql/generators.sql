-- Making IDs in every layout
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_table

CREATE TABLE systems AS SELECT name, name::snowflake_layout AS layout, shards - 1 AS shard
FROM snowflake_layouts();
INSERT INTO systems VALUES
    ('cockroachdb', 'timestamp:48 node:15 epoch:1420070400000 tick:10us', 32767),
    ('baidu', 'timestamp:29 worker:21 sequence:13 epoch:2020-01-01T00:00:00Z tick:1s', 2097151),
    ('idgen', 'timestamp:41 generator:10 sequence:12 epoch:1420070400000', 1023),
    ('tidb', 'timestamp:46 sequence:18 epoch:0', 0),
    ('atproto', 'timestamp:53 shard:10 epoch:0 tick:1us', 1023),
    ('seconds', 'timestamp:32 epoch:0 tick:1s', 0),
    ('hundredths', 'timestamp:39 shard:10 sequence:10 epoch:2020-01-01T00:00:00Z tick:10ms', 1023),
    ('counter', 'shard:13 sequence:31', 8191);

-- A sequence serves a layout by its MAXVALUE.  Users' sequences keep it, so no custom layout's ever changes.
CREATE FUNCTION serve(name text, layout snowflake_layout,
    OUT error_before text, OUT max_value bigint, OUT max_value_of_error boolean) LANGUAGE plpgsql AS $$
DECLARE
    error record;
BEGIN
    EXECUTE format('CREATE SEQUENCE %I', name || '_seq');
    SELECT * INTO error FROM error_of(format('SELECT next_id(0, %L, %L)', name || '_seq', layout));
    PERFORM snowflake_alter_sequence((name || '_seq')::regclass, layout);
    error_before := error.sqlstate_;
    SELECT seqmax INTO max_value FROM pg_sequence WHERE seqrelid = (name || '_seq')::regclass;
    max_value_of_error := error.detail LIKE '%a sequence for this layout has MAXVALUE ' || max_value || '.';
END $$;
CREATE SEQUENCE unserved;
SELECT * FROM error_of('SELECT next_id(0, ''unserved'', ''twitter'')');
CREATE TABLE served AS SELECT name, served.*, served.max_value = l.max_value AS max_value_of_layouts
FROM systems CROSS JOIN serve(name, layout) AS served LEFT JOIN snowflake_layouts() AS l USING (name);

-- IDs of all layouts are unique and in order, and their parts are right.  seconds has one ID a second.
SELECT clock_timestamp() AS start \gset
CREATE TABLE made AS SELECT name, n, next_id(shard, (name || '_seq')::regclass, layout) AS id, clock_timestamp() AS at
FROM systems, generate_series(1, 1100) AS n WHERE name <> 'seconds' OR n <= 2;
SELECT served.*, count(*) AS ids, count(DISTINCT id) AS different_ids, bool_and(id > before) AS in_order,
       bool_and(snowflake_shard(id, layout) = shard)
           FILTER (WHERE name NOT IN ('mastodon', 'tidb', 'seconds')) AS shard,
       count(DISTINCT snowflake_sequence_number(id, layout))
           FILTER (WHERE name NOT IN ('cockroachdb', 'atproto', 'seconds')) AS sequence_numbers,
       bool_and(CASE WHEN name NOT IN ('trace', 'decimal', 'counter') THEN snowflake_timestamp(id, layout)
                     BETWEEN :'start'::timestamptz - interval '1 s' AND at + interval '1 s' END) AS time
FROM (SELECT *, lag(id, 1, 0::bigint) OVER (PARTITION BY name ORDER BY n) AS before FROM made) AS made
JOIN systems USING (name) JOIN served USING (name)
GROUP BY served.name, error_before, max_value, max_value_of_error, max_value_of_layouts ORDER BY served.name;
-- snowflake_sequences() shows times as far as a layout has any
SELECT name, last_timestamp IS NOT NULL AS has_time, lead IS NOT NULL AS has_lead, expires
FROM systems AS s, snowflake_sequences((name || '_seq')::regclass, s.layout)
WHERE name IN ('twitter', 'trace', 'decimal', 'cockroachdb', 'counter') ORDER BY name;
-- A shard is refused where a layout has none, and a sequence makes IDs of one layout.
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    $$SELECT next_id(1, 'mastodon_seq', 'mastodon')$$, $$SELECT next_id(1024, 'twitter_seq', 'twitter')$$,
    $$SELECT next_id(5, 'idgen_seq', 'twitter')$$, $$SELECT next_ids(5, 3, 'idgen_seq')$$,
    $$SELECT next_id(5, 'instagram_seq', 'timestamp:41 shard:13 sequence:10 epoch:0')$$,
    $$SELECT next_id(5, 'next_id_seq', 'timestamp:41 shard:13 sequence:10 epoch:0')$$,
    $$SELECT sum(next_id(5, 'twitter_seq', l)) FROM unnest('{twitter,twitter,pgedge}'::snowflake_layout[]) l$$,
    $$SELECT snowflake_advance('idgen_seq', 1)$$,
    $$SELECT (layout, last_timestamp, lead, state) FROM snowflake_sequences('next_id_seq', 'twitter')$$
]) AS statement, error_of(statement);
:as_lines
-- javascript's are no larger than a number of JavaScript can be.  trace counts from 1, and its time is that of
-- the clock, modulo 2^25 seconds.
SELECT max(id) FILTER (WHERE name = 'javascript') < 2::numeric ^ 53 AS safe_in_javascript,
       min(snowflake_sequence_number(id, 'trace')) FILTER (WHERE name = 'trace') AS first_of_trace,
       max(snowflake_sequence_number(id, 'trace')) FILTER (WHERE name = 'trace') AS last_of_trace,
       (min(id >> 38) FILTER (WHERE name = 'trace') - extract(epoch FROM :'start'::timestamptz)::bigint) % 33554432
           BETWEEN -1 AND 1 AS time_of_trace
FROM made;
-- decimal: counter, generator, launch.  Each server has a generator to begin with.
SELECT next_id(65, 'decimal_seq', 'decimal') AS counter_1101_generator_0;
ALTER SEQUENCE decimal_seq START 84855022584 RESTART;
SELECT next_id(65, 'decimal_seq', 'decimal') AS counter_1, next_id(65, 'decimal_seq', 'decimal') AS counter_2;
-- after the last counter comes the next generator
SELECT setval('decimal_seq', 93::bigint * 922337202 - 2) \gset
SELECT next_id(65, 'decimal_seq', 'decimal') AS last_of_92,
       next_id(65, 'decimal_seq', 'decimal') AS first_of_93,
       next_id(65, 'decimal_seq', 'decimal') AS second_of_93;
-- the largest ID, and the end
SELECT setval('decimal_seq', 92233720199998) \gset
SELECT next_id(99999, 'decimal_seq', 'decimal') AS largest;
SELECT * FROM error_of('SELECT next_id(65, ''decimal_seq'', ''decimal'')');
-- launch 0 is for tests, which is said once
ALTER SEQUENCE decimal_seq RESTART;
SELECT next_id(0, 'decimal_seq', 'decimal') AS of_launch_0;
SELECT next_id(0, 'decimal_seq', 'decimal') AS again;
SELECT * FROM error_of('SELECT next_id(100000, ''decimal_seq'', ''decimal'')');
-- there is no clock that it could be ahead of
SET snowflake.max_lead = 0;
SELECT next_id(1, 'decimal_seq', 'decimal') AS without_lead;
-- Waiting for the next tick is no error, however short max_wait is.
SET snowflake.max_wait = 0;
SELECT count(DISTINCT next_id(1, 'cockroachdb_seq', layout)) AS ids_without_max_wait
FROM systems, generate_series(1, 10000) WHERE name = 'cockroachdb';
RESET snowflake.max_lead;
RESET snowflake.max_wait;

-- A counter goes on to its last number.
SELECT setval('counter_seq', 2147483645) \gset
SELECT next_id(5, 'counter_seq', 'shard:13 sequence:31') - (5::bigint << 31) AS last_but_one,
       next_id(5, 'counter_seq', 'shard:13 sequence:31') - (5::bigint << 31) AS last;
SELECT sqlstate_ AS after_the_last FROM error_of('SELECT next_id(5, ''counter_seq'', ''shard:13 sequence:31'')');
-- The ID 0 is never made.
CREATE SEQUENCE zero MINVALUE 0 START 0 MAXVALUE 1023;
SELECT next_id(0, 'zero', 'sequence:10') AS first_of_counter, next_id(0, 'zero', 'sequence:10') AS second_of_counter;

-- A shard has the parts that the layout's fields have.
SELECT string_agg(field || ' ' || value, ', ') AS parts_of_shard
FROM snowflake_fields(next_id(3 * 32 + 7, 'twitter_seq', 'twitter'), 'twitter') WHERE field IN ('datacenter', 'worker');
-- A sequence belongs to one layout, and the extension's own to instagram; a custom layout must be named.
SELECT * FROM error_of('SELECT next_id(5, ''twitter_seq'', ''instagram'')');
SELECT * FROM error_of('SELECT next_id(5, ''next_id_seq'', ''twitter'')');
SELECT * FROM error_of('SELECT next_id(5, ''idgen_seq'')');
-- Layouts and sequences by turns in one statement, with and without the layout.  A definition that is a built-in
-- layout's is that layout.
SELECT count(DISTINCT next_id(5, (l || '_seq')::regclass, l::snowflake_layout)) AS ids_by_turns,
       count(DISTINCT next_id(5, (l || '_seq')::regclass)) AS ids_without_layout,
       next_id(5, 'twitter_seq', 'timestamp:41 datacenter:5 worker:5 sequence:12 epoch:1288834974657') > 0
           AS by_definition
FROM unnest('{twitter,pgedge,twitter,instagram,decimal,twitter}'::text[]) AS l;
-- A call without a layout uses the built-in one that the sequence serves: IDs with and without it are in order.
SELECT count(*) AS layouts, string_agg(name, ' ') FILTER (WHERE NOT in_order) AS out_of_order,
       string_agg(name, ' ') FILTER (WHERE shown IS DISTINCT FROM as_layout) AS shown_differently
FROM (SELECT name, ids[1] < ids[2] AND ids[2] < ids[3] AND ids[3] < ids[4] AND ids[4] < ids[5] AS in_order,
             (SELECT (layout, last_timestamp, expires, state)::text FROM snowflake_sequences(seq)) AS shown,
             (SELECT (layout, last_timestamp, expires, state)::text FROM snowflake_sequences(seq, t.layout))
                 AS as_layout
      FROM (SELECT name, seq, layout, ARRAY[next_id(shard, seq, layout), next_id(shard, seq)] ||
                   ARRAY(SELECT next_ids(shard, 2, seq)) || next_id(shard, seq, layout) AS ids
            FROM systems, CAST(name || '_seq' AS regclass) AS seq
            WHERE name IN (SELECT name FROM snowflake_layouts()) OFFSET 0) AS t) AS t;
-- A change of the layout counts at once, also within a transaction
CREATE SEQUENCE changing;
BEGIN;
SELECT snowflake_alter_sequence('changing', 'twitter') \gset
SELECT snowflake_shard(next_id(5, 'changing'), 'twitter') AS shard_of_twitter;
ALTER SEQUENCE changing MAXVALUE 140737488355071 RESTART;
SELECT snowflake_shard(next_id(6, 'changing'), 'sonyflake') AS shard_of_sonyflake;
ROLLBACK;
SELECT sqlstate_ AS after_rollback FROM error_of('SELECT next_id(5, ''changing'')');

-- Nobody who has only EXECUTE and USAGE pushes a sequence out of its time: try each sequence with each layout, with
-- old epochs and with short ticks.  Only a sequence's own layout makes an ID, and no sequence is ahead.
CREATE ROLE regress_sf_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO regress_sf_app;
REVOKE ALL ON SEQUENCE next_id_seq FROM regress_sf_app;
GRANT SELECT ON systems TO regress_sf_app;
SET client_min_messages = error;
SET ROLE regress_sf_app;
SELECT json_object_agg(sqlstate_, n ORDER BY sqlstate_) AS attempts, string_agg(others, ', ') AS of_another_name
FROM (SELECT sqlstate_, count(*) AS n, string_agg(sequence || ' ' || layout, ', ')
          FILTER (WHERE sqlstate_ = '00000' AND sequence::text <> layout || '_seq') AS others
      FROM (SELECT name FROM systems UNION SELECT 'next_id') AS s, CAST(name || '_seq' AS regclass) AS sequence,
          (SELECT name FROM snowflake_layouts() UNION SELECT unnest(ARRAY[
              'timestamp:41 shard:13 sequence:10 epoch:0', 'timestamp:41 datacenter:5 worker:5 sequence:12 epoch:0',
              'timestamp:42 worker:5 process:5 sequence:12 epoch:0', 'timestamp:41 shard:5 sequence:7 epoch:0',
              'timestamp:41 worker:10 sequence:12 epoch:0 tick:10us', 'timestamp:39 sequence:8 machine:16 epoch:0',
              'timestamp:48 sequence:16 epoch:1900-01-01T00:00:00Z', 'timestamp:48 node:15 epoch:0 tick:10us'
          ])) AS l (layout),
          error_of(format('SELECT next_id(0, %L, %L)', sequence, layout)) GROUP BY sqlstate_) AS a;
RESET client_min_messages;
-- A custom layout needs UPDATE, ...
SELECT * FROM error_of(
    'SELECT next_id(5, ''idgen_seq'', ''timestamp:41 generator:10 sequence:12 epoch:1420070400000'')');
RESET ROLE;
GRANT UPDATE ON SEQUENCE idgen_seq TO regress_sf_app;
SET ROLE regress_sf_app;
SELECT next_id(5, 'idgen_seq', 'timestamp:41 generator:10 sequence:12 epoch:1420070400000') > 0 AS taken_with_update;
-- ... also after a built-in layout has been used in the same transaction, with less.
BEGIN;
SELECT next_id(5, 'discord_seq', 'discord') > 0 AS taken_with_usage;
SELECT * FROM error_of('SELECT next_id(5, ''discord_seq'', ''timestamp:42 a:10 sequence:12 epoch:0'')');
COMMIT;
RESET ROLE;
SELECT count(lead) AS sequences_with_time, count(*) FILTER (WHERE lead > '2 minutes') AS ahead
FROM systems AS s, snowflake_sequences((name || '_seq')::regclass, s.layout);

-- The last year is announced with its first value, once.
SET snowflake.max_lead = '36500d';
SELECT setval('twitter_seq', (snowflake_min_id('2079-07-11 17:30:30.208Z', 'twitter') >> 22) * 4096 - 2) \gset
SELECT next_id(5, 'twitter_seq', 'twitter') > 0 AS before_the_last_year;
SELECT next_id(5, 'twitter_seq', 'twitter') > 0 AS first_of_the_last_year;
SELECT next_id(5, 'twitter_seq', 'twitter') > 0 AS second_of_the_last_year;

-- Defaults and prepared statements keep their layout.
CREATE TABLE tweets (id bigint PRIMARY KEY DEFAULT next_id(33, 'pgedge_seq', 'pgedge'), n int);
INSERT INTO tweets (n) SELECT generate_series(1, 1000);
SELECT snowflake_shard(id, 'pgedge') AS shard_of_default, count(*),
       (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'tweets'::regclass) AS stored_default
FROM tweets GROUP BY shard_of_default;
PREPARE shard_of_next_id (bigint, snowflake_layout, regclass) AS
SELECT snowflake_shard(next_id($1, $3, $2), $2) AS shard_of_prepared;
EXECUTE shard_of_next_id (5, 'twitter', 'twitter_seq');
EXECUTE shard_of_next_id (6, 'pgedge', 'pgedge_seq');
RESET snowflake.max_lead;

-- A session remembers the tick of its last ID, but notices another layout of the next call.
\set seconds 'timestamp:33 shard:10 sequence:10 epoch:0 tick:1s'
CREATE SEQUENCE ticks MINVALUE 0;
SELECT snowflake_alter_sequence('ticks', :'seconds') \gset
BEGIN;
SELECT next_id(1, 'ticks', :'seconds') AS id \gset
SELECT sqlstate_ AS with_another_epoch, message ~ 'ahead of the clock' AS is_ahead
FROM error_of('SELECT next_id(1, ''ticks'', ''timestamp:33 shard:10 sequence:10 epoch:2020-01-01T00:00:00Z tick:1s'')');
COMMIT;
-- It notices that the sequence is set back between two calls: the next ID has the clock's time.
SELECT bool_and(snowflake_timestamp(id, :'seconds') > now() - interval '1 min') AS of_the_present_after_setval
FROM (SELECT n, CASE n WHEN 2 THEN setval('ticks', 5) ELSE next_id(1, 'ticks', :'seconds') END AS id
      FROM generate_series(1, 3) AS n OFFSET 0) AS t WHERE n <> 2;
-- It notices that the sequence is set to a value that is yet to be taken.
SELECT string_agg(snowflake_sequence_number(id, :'seconds')::text, ' ' ORDER BY n) AS numbers_after_setval
FROM (SELECT n, CASE n WHEN 2 THEN
                           (SELECT setval('ticks', last_value - last_value % 1024 + 700 + n - n, false) FROM ticks)
                       ELSE next_id(1, 'ticks', :'seconds') END AS id
      FROM generate_series(1, 4) AS n OFFSET 0) AS t WHERE n > 2;
-- It notices that a shorter lead is allowed.
BEGIN;
SET LOCAL snowflake.max_lead = '1h';
SELECT count(*) AS ids_with_lead FROM next_ids(1, 100000, 'ticks', :'seconds');
SELECT sqlstate_ AS without_lead, message ~ 'ahead of the clock' AS is_ahead
FROM error_of('SELECT CASE n WHEN 2 THEN set_config(''snowflake.max_lead'', ''0'', true)
                             ELSE next_id(1, ''ticks'', ''timestamp:33 shard:10 sequence:10 epoch:0 tick:1s'')::text END
               FROM generate_series(1, 3) AS n');
COMMIT;
