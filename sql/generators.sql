-- Making IDs in every layout
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_table

-- The built-in layouts, and custom ones
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
CREATE FUNCTION serve(name text, layout snowflake_layout, OUT before text, OUT detail_before text, OUT max_value bigint)
LANGUAGE plpgsql AS $$
DECLARE
    sequence text := name || '_seq';
BEGIN
    EXECUTE format('CREATE SEQUENCE %I', sequence);
    SELECT sqlstate_, detail INTO before, detail_before
    FROM error_of(format('SELECT next_id(0, %L, %L)', sequence, layout));
    PERFORM snowflake_alter_sequence(sequence::regclass, layout);
    SELECT seqmax INTO max_value FROM pg_sequence WHERE seqrelid = sequence::regclass;
END $$;
CREATE TABLE served AS SELECT name, s.* FROM systems, serve(name, layout) AS s;
SELECT name, max_value FROM served ORDER BY name;
-- snowflake_layouts() has the same MAXVALUE.
SELECT name, l.max_value AS of_layout, served.max_value AS of_sequence
FROM snowflake_layouts() AS l LEFT JOIN served USING (name) WHERE l.max_value IS DISTINCT FROM served.max_value;
-- A sequence with another MAXVALUE is refused, and the detail says which one it needs.
SELECT name, before, detail_before FROM served WHERE before <> '55000' OR detail_before IS DISTINCT FROM
    'The sequence has MAXVALUE 9223372036854775807, but a sequence for this layout has MAXVALUE ' || max_value || '.';

-- Each layout's sequence makes IDs, seconds one in a second.
SELECT clock_timestamp() AS start \gset
CREATE TABLE made AS SELECT name, n, next_id(shard, (name || '_seq')::regclass, layout) AS id, clock_timestamp() AS at
FROM systems, generate_series(1, 1100) AS n WHERE name <> 'seconds' OR n <= 2;
CREATE VIEW decoded AS
SELECT *, lag(id) OVER (PARTITION BY name ORDER BY n) AS before FROM made JOIN systems USING (name);
-- They are different, positive and in order.
SELECT name, count(*) AS ids, count(DISTINCT id) AS different, count(*) FILTER (WHERE id <= 0) AS not_positive,
       count(*) FILTER (WHERE id <= before) AS out_of_order FROM decoded GROUP BY name ORDER BY name;
-- They have the shard of the call, where the layout has one.
SELECT name, shard, count(*) FILTER (WHERE snowflake_shard(id, layout) <> shard) AS with_another_shard
FROM decoded WHERE name NOT IN ('mastodon', 'tidb', 'seconds') GROUP BY name, shard ORDER BY name;
-- They have as many sequence numbers as there is room for, where the layout has them.
SELECT name, count(DISTINCT snowflake_sequence_number(id, layout)) AS sequence_numbers
FROM decoded WHERE name NOT IN ('cockroachdb', 'atproto', 'seconds') GROUP BY name ORDER BY name;
-- They have the time of the call, within a second, where the layout tells it.
SELECT name, count(*) FILTER (WHERE time < :'start'::timestamptz - interval '1 s') AS too_early,
       count(*) FILTER (WHERE time > at + interval '1 s') AS too_late
FROM (SELECT name, at, snowflake_timestamp(id, layout) AS time
      FROM decoded WHERE name NOT IN ('trace', 'decimal', 'counter')) AS t GROUP BY name ORDER BY name;
-- snowflake_sequences() shows times as far as a layout has any.
SELECT name, last_timestamp IS NOT NULL AS has_time, lead IS NOT NULL AS has_lead, expires
FROM systems AS s, snowflake_sequences((name || '_seq')::regclass, s.layout)
WHERE name IN ('twitter', 'trace', 'decimal', 'cockroachdb', 'counter') ORDER BY name;

-- A shard is refused where a layout has none, and a sequence makes IDs of one layout.
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    $$SELECT next_id(1, 'mastodon_seq', 'mastodon')$$,
    $$SELECT next_id(1024, 'twitter_seq', 'twitter')$$,
    $$SELECT next_id(5, 'idgen_seq', 'twitter')$$,
    $$SELECT next_ids(5, 3, 'idgen_seq')$$,
    $$SELECT next_id(5, 'instagram_seq', 'timestamp:41 shard:13 sequence:10 epoch:0')$$,
    $$SELECT next_id(5, 'next_id_seq', 'timestamp:41 shard:13 sequence:10 epoch:0')$$,
    $$SELECT sum(next_id(5, 'twitter_seq', l)) FROM unnest('{twitter,twitter,pgedge}'::snowflake_layout[]) l$$,
    $$SELECT snowflake_advance('idgen_seq', 1)$$,
    $$SELECT (layout, last_timestamp, lead, state) FROM snowflake_sequences('next_id_seq', 'twitter')$$
]) AS statement, error_of(statement);
:as_lines
CREATE SEQUENCE unserved;
SELECT * FROM error_of('SELECT next_id(0, ''unserved'', ''twitter'')');

-- javascript's are no larger than a number of JavaScript can be.
SELECT max(id) < 2::numeric ^ 53 AS safe_in_javascript FROM made WHERE name = 'javascript';
-- trace counts from 1, and its time is that of the clock, modulo 2^25 seconds.
SELECT min(snowflake_sequence_number(id, 'trace')) AS first_of_trace,
       max(snowflake_sequence_number(id, 'trace')) AS last_of_trace,
       (min(id >> 38) - extract(epoch FROM :'start'::timestamptz)::bigint) % 33554432 BETWEEN -1 AND 1 AS time_of_trace
FROM made WHERE name = 'trace';

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
-- Layouts and sequences by turns in one statement, with and without the layout
SELECT count(DISTINCT next_id(5, (l || '_seq')::regclass, l::snowflake_layout)) AS ids_by_turns,
       count(DISTINCT next_id(5, (l || '_seq')::regclass)) AS ids_without_layout
FROM unnest('{twitter,pgedge,twitter,instagram,decimal,twitter}'::text[]) AS l;
-- A definition that is a built-in layout's is that layout.
SELECT next_id(5, 'twitter_seq', 'timestamp:41 datacenter:5 worker:5 sequence:12 epoch:1288834974657') > 0
    AS taken_by_definition;

-- A call without a layout uses the built-in one that the sequence serves: IDs with and without it are in order, ...
:as_table
CREATE TABLE both_ways AS
SELECT name, layout, seq, next_id(shard, seq, layout) AS with_layout, next_id(shard, seq) AS without,
       ARRAY(SELECT next_ids(shard, 2, seq)) AS ids_without, next_id(shard, seq, layout) AS with_layout_again
FROM systems, CAST(name || '_seq' AS regclass) AS seq WHERE name IN (SELECT name FROM snowflake_layouts());
SELECT name, with_layout < without AND without < ids_without[1] AND ids_without[1] < ids_without[2]
             AND ids_without[2] < with_layout_again AS in_order
FROM both_ways ORDER BY name;
-- ... and snowflake_sequences() shows the same with and without it.
SELECT name, shown.layout, (shown.*) IS NOT DISTINCT FROM (in_layout.*) AS same_with_the_layout
FROM both_ways AS b,
     LATERAL (SELECT layout::text, last_timestamp, expires, state FROM snowflake_sequences(seq)) AS shown,
     LATERAL (SELECT layout::text, last_timestamp, expires, state FROM snowflake_sequences(seq, b.layout)) AS in_layout
ORDER BY name;

-- A change of the layout counts at once, also within a transaction.
:as_lines
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
CREATE VIEW pairs AS SELECT s.name || '_seq' AS sequence, layout
FROM (SELECT name FROM systems UNION SELECT 'next_id') AS s,
     (SELECT name FROM snowflake_layouts() UNION SELECT unnest(ARRAY[
          'timestamp:41 shard:13 sequence:10 epoch:0', 'timestamp:41 datacenter:5 worker:5 sequence:12 epoch:0',
          'timestamp:42 worker:5 process:5 sequence:12 epoch:0', 'timestamp:41 shard:5 sequence:7 epoch:0',
          'timestamp:41 worker:10 sequence:12 epoch:0 tick:10us', 'timestamp:39 sequence:8 machine:16 epoch:0',
          'timestamp:48 sequence:16 epoch:1900-01-01T00:00:00Z', 'timestamp:48 node:15 epoch:0 tick:10us'
      ])) AS l (layout);
GRANT SELECT ON systems, pairs TO regress_sf_app;
SET client_min_messages = error;
SET ROLE regress_sf_app;
:as_table
SELECT sqlstate_, count(*) AS pairs, string_agg(sequence || ' ' || layout, ', ')
       FILTER (WHERE sqlstate_ = '00000' AND sequence <> layout || '_seq') AS of_another_name
FROM pairs, error_of(format('SELECT next_id(0, %L, %L)', sequence, layout)) GROUP BY sqlstate_ ORDER BY sqlstate_;
:as_lines
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

-- Whatever a session may remember of its last ID, within a transaction it notices another layout of the next call, ...
\set seconds 'timestamp:33 shard:10 sequence:10 epoch:0 tick:1s'
\set later 'timestamp:33 shard:10 sequence:10 epoch:2020-01-01T00:00:00Z tick:1s'
CREATE SEQUENCE ticks MINVALUE 0;
SELECT snowflake_alter_sequence('ticks', :'seconds') \gset
BEGIN;
SELECT next_id(1, 'ticks', :'seconds') > 0 AS taken;
SELECT sqlstate_ AS with_another_epoch, message ~ 'ahead of the clock' AS is_ahead
FROM error_of(format('SELECT next_id(1, ''ticks'', %L)', :'later'));
-- ... that the sequence is set back: the next ID has the clock's time, ...
SELECT setval('ticks', 5) \gset
SELECT snowflake_timestamp(next_id(1, 'ticks', :'seconds'), :'seconds') BETWEEN now() - interval '1 min'
    AND now() + interval '1 min' AS of_the_present;
-- ... that it is set to a value that is yet to be taken, ...
SELECT setval('ticks', last_value - last_value % 1024 + 700, false) FROM ticks \gset
SELECT snowflake_sequence_number(next_id(1, 'ticks', :'seconds'), :'seconds') AS number_of_the_first,
       snowflake_sequence_number(next_id(1, 'ticks', :'seconds'), :'seconds') AS number_of_the_second;
-- ... and that a shorter lead is allowed.
SET LOCAL snowflake.max_lead = '1h';
SELECT count(*) AS ids_with_lead FROM next_ids(1, 100000, 'ticks', :'seconds');
SET LOCAL snowflake.max_lead = 0;
SELECT sqlstate_ AS without_lead, message ~ 'ahead of the clock' AS is_ahead
FROM error_of(format('SELECT next_id(1, ''ticks'', %L)', :'seconds'));
COMMIT;
