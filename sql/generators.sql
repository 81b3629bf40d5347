--
-- Making IDs in every layout
--
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup
\pset format unaligned
\pset tuples_only on

CREATE TABLE systems AS SELECT name, name::snowflake_layout AS layout, shards - 1 AS shard FROM snowflake_layouts();
INSERT INTO systems VALUES
    ('cockroachdb', 'timestamp:48 node:15 epoch:1420070400000 tick:10us', 32767),
    ('baidu', 'timestamp:29 worker:21 sequence:13 epoch:2020-01-01T00:00:00Z tick:1s', 2097151),
    ('yitter', 'timestamp:51 worker:6 sequence:6 epoch:1582165202020', 63),
    ('idgen', 'timestamp:41 generator:10 sequence:12 epoch:1420070400000', 1023),
    ('tidb', 'timestamp:46 sequence:18 epoch:0', 0),
    ('atproto', 'timestamp:53 shard:10 epoch:0 tick:1us', 1023),
    ('instagram2020', 'timestamp:41 shard:13 sequence:10 epoch:2020-01-01T00:00:00Z', 8191),
    ('seconds', 'timestamp:32 epoch:0 tick:1s', 0),
    ('hundredths', 'timestamp:39 shard:10 sequence:10 epoch:2020-01-01T00:00:00Z tick:10ms', 1023),
    ('counter', 'shard:13 sequence:31', 8191);

-- a sequence for each, as the error tells
CREATE FUNCTION prepare(name text, layout snowflake_layout) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    refused record;
BEGIN
    EXECUTE format('CREATE SEQUENCE %I', name || '_seq');
    SELECT * INTO refused FROM error_of(format('SELECT next_id(0, %L, %L)', name || '_seq', layout));
    PERFORM snowflake_alter_sequence((name || '_seq')::regclass, layout);
    RETURN refused.sqlstate_ || ' ' || refused.message || ' ' || refused.detail || ' ' || refused.hint;
END $$;
SELECT prepare(name, layout) FROM systems WHERE name <> 'instagram';
CREATE SEQUENCE instagram_seq MAXVALUE 1125899906841599;
DROP FUNCTION prepare;
-- built-in layouts: the MAXVALUE that snowflake_layouts() has
SELECT count(*) FROM snowflake_layouts() l
JOIN pg_sequence ON seqrelid = (l.name || '_seq')::regclass AND seqmax = l.max_value;

-- IDs of all shapes: unique, in order, positive, their parts right
SET client_min_messages = error;
CREATE TABLE made AS
SELECT name, g AS n, next_id(shard, (name || '_seq')::regclass, layout) AS id
FROM systems, generate_series(1, 2) g WHERE name = 'seconds'
UNION ALL
SELECT name, g AS n, next_id(shard, (name || '_seq')::regclass, layout) AS id
FROM systems, generate_series(1, 3000) g WHERE name <> 'seconds';
RESET client_min_messages;
\pset tuples_only off
SELECT name, count(*) = count(DISTINCT id) AS unique,
       bool_and(id > coalesce(before, 0)) AS ordered,
       bool_and((SELECT snowflake_shard(id, layout) = shard WHERE layout::text NOT IN ('mastodon', 'timestamp:46 sequence:18 epoch:0', 'timestamp:32 epoch:0 tick:1s'))) AS shard,
       count(DISTINCT (SELECT snowflake_sequence_number(id, layout)
                       WHERE layout::text NOT IN ('timestamp:48 node:15 epoch:1420070400000 tick:10us', 'timestamp:53 shard:10 epoch:0 tick:1us', 'timestamp:32 epoch:0 tick:1s'))) AS sequences,
       bool_and((SELECT abs(extract(epoch FROM snowflake_timestamp(id, layout) - clock_timestamp())) < 120
                 WHERE layout::text NOT IN ('trace', 'decimal', 'shard:13 sequence:31'))) AS time
FROM (SELECT *, lag(id) OVER (PARTITION BY name ORDER BY n) AS before FROM made) made
JOIN systems USING (name) GROUP BY name ORDER BY name;
-- what JavaScript can hold
SELECT max(id) < 2::numeric ^ 53 AS safe FROM made WHERE name = 'javascript';
SELECT min(snowflake_sequence_number(id, 'trace')), max(snowflake_sequence_number(id, 'trace')) FROM made WHERE name = 'trace';
-- the status, with a clock and without
SELECT name, last_timestamp IS NOT NULL AS last, lead IS NOT NULL AS lead, expires
FROM systems AS s, snowflake_sequences((name || '_seq')::regclass, s.layout) WHERE name IN ('twitter', 'trace', 'decimal', 'cockroachdb', 'counter') ORDER BY name;
\pset tuples_only on

-- trace: the seconds of the clock, modulo 2^25
SELECT (SELECT value FROM snowflake_fields(id, 'trace') WHERE field = 'timestamp')
       - extract(epoch FROM clock_timestamp())::bigint % 33554432 BETWEEN -120 AND 2
FROM made WHERE name = 'trace' AND n = 1;

-- decimal: counter, generator, launch; each server has a generator to begin with
SELECT next_id(65, 'decimal_seq', 'decimal');
ALTER SEQUENCE decimal_seq START 84855023998 RESTART;
SELECT next_id(65, 'decimal_seq', 'decimal');
ALTER SEQUENCE decimal_seq START 84855022584 RESTART;
SELECT next_id(65, 'decimal_seq', 'decimal'), next_id(65, 'decimal_seq', 'decimal');
-- after the last counter comes the next generator
SELECT setval('decimal_seq', 93::bigint * 922337202 - 2) > 0;
SELECT next_id(65, 'decimal_seq', 'decimal'), next_id(65, 'decimal_seq', 'decimal'), next_id(65, 'decimal_seq', 'decimal');
-- the largest ID there is, and the end
SELECT setval('decimal_seq', 92233720199998) > 0;
SELECT next_id(99999, 'decimal_seq', 'decimal');
SELECT sqlstate_, message, hint FROM error_of('SELECT next_id(65, ''decimal_seq'', ''decimal'')');
-- launch 0 is for tests, which is said once
ALTER SEQUENCE decimal_seq RESTART;
SELECT next_id(0, 'decimal_seq', 'decimal');
SELECT next_id(0, 'decimal_seq', 'decimal');
SELECT * FROM error_of('SELECT next_id(100000, ''decimal_seq'', ''decimal'')');
-- without a clock a setting of it does not matter
SET snowflake.max_lead = 0;
SELECT next_id(1, 'decimal_seq', 'decimal') > 0;
RESET snowflake.max_lead;

-- to wait for the next tick is no error, however little patience there is
SET snowflake.max_lead = 0;
SET snowflake.max_wait = 0;
SELECT count(DISTINCT id)
FROM (SELECT next_id(1, 'cockroachdb_seq', 'timestamp:48 node:15 epoch:1420070400000 tick:10us') AS id FROM generate_series(1, 100000)) t;
RESET snowflake.max_lead;
RESET snowflake.max_wait;

-- a counter
SELECT setval('counter_seq', 2147483645) > 0;
SELECT next_id(5, 'counter_seq', 'shard:13 sequence:31') = (5::bigint << 31) + 2147483646;
SELECT next_id(5, 'counter_seq', 'shard:13 sequence:31') = (5::bigint << 31) + 2147483647;
SELECT sqlstate_, message FROM error_of('SELECT next_id(5, ''counter_seq'', ''shard:13 sequence:31'')');
-- the ID 0 is never made
CREATE SEQUENCE zero MINVALUE 0 START 0 MAXVALUE 1023;
SELECT next_id(0, 'zero', 'sequence:10');
SELECT next_id(0, 'zero', 'sequence:10');

-- shards
SELECT * FROM error_of('SELECT next_id(1, ''mastodon_seq'', ''mastodon'')');
SELECT * FROM error_of('SELECT next_id(1024, ''twitter_seq'', ''twitter'')');
SELECT snowflake_fields(next_id(3 * 32 + 7, 'twitter_seq', 'twitter'), 'twitter')::text ~ '\((datacenter,3|worker,7|timestamp,\d+|sequence,\d+)\)';

-- a sequence belongs to one layout
SELECT sqlstate_, message, detail, hint FROM error_of('SELECT next_id(5, ''twitter_seq'', ''instagram'')');
SELECT sqlstate_, message, detail, hint FROM error_of('SELECT next_id(5, ''twitter_seq'', ''pgedge'')');
SELECT sqlstate_, message, detail, hint FROM error_of('SELECT next_id(5, ''instagram_seq'', ''timestamp:41 shard:13 sequence:10 epoch:0'')');
SELECT sqlstate_, message, detail, hint FROM error_of('SELECT next_id(5, ''next_id_seq'', ''twitter'')');
SELECT sqlstate_, message, detail, hint FROM error_of('SELECT next_id(5, ''next_id_seq'', ''timestamp:41 shard:13 sequence:10 epoch:0'')');
SELECT layout, last_timestamp, lead, state FROM snowflake_sequences('next_id_seq', 'twitter');
-- in one statement and session, by turns
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''twitter_seq'', l) FROM unnest(''{twitter,twitter,pgedge}''::snowflake_layout[]) l');
SELECT count(DISTINCT next_id(5, (l || '_seq')::regclass, l::snowflake_layout)) FROM unnest('{twitter,pgedge,twitter,instagram,decimal,twitter}'::text[]) l;
-- a definition of one's own that is a built-in's is the built-in
SELECT next_id(5, 'twitter_seq', 'timestamp:41 datacenter:5 worker:5 sequence:12 epoch:2010-11-04T01:42:54.657Z') > 0;

-- without a layout: the built-in one that the sequence serves, if it serves one
SELECT name, ids[1] < ids[2] AND ids[2] < ids[3] AND ids[3] < ids[4] AND ids[4] < ids[5] AS growing
FROM (SELECT name, ARRAY[next_id(shard, seq, layout), next_id(shard, seq)] || ARRAY(SELECT next_ids(shard, 2, seq)) || next_id(shard, seq, layout) AS ids
      FROM systems, CAST(name || '_seq' AS regclass) AS seq WHERE name IN (SELECT name FROM snowflake_layouts())) AS t ORDER BY name;
SELECT count(*), bool_and(a = b) FROM systems AS s, snowflake_sequences((name || '_seq')::regclass) AS a, snowflake_sequences((name || '_seq')::regclass, s.layout) AS b
WHERE s.name IN (SELECT name FROM snowflake_layouts()) AND s.name <> 'trace' AND a.lead = '0';
SELECT * FROM error_of('SELECT next_id(5, ''idgen_seq'')');
SELECT sqlstate_, message, detail FROM error_of('SELECT next_ids(5, 3, ''idgen_seq'')');
SELECT layout, last_timestamp, lead, state FROM snowflake_sequences('idgen_seq');
-- by turns in one statement, and after a change in one transaction
SELECT count(DISTINCT next_id(5, (l || '_seq')::regclass)) FROM unnest('{twitter,pgedge,twitter,instagram,decimal,twitter}'::text[]) l;
CREATE SEQUENCE changing;
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''changing'')');
BEGIN;
SELECT snowflake_alter_sequence('changing', 'twitter') IS NOT NULL AS altered, snowflake_shard(next_id(5, 'changing'), 'twitter');
ALTER SEQUENCE changing MAXVALUE 140737488355071 RESTART;
SELECT snowflake_shard(next_id(6, 'changing'), 'sonyflake');
ROLLBACK;
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''changing'')');
DROP SEQUENCE changing;
-- errors
SELECT sqlstate_, message FROM error_of('SELECT next_id(5, NULL::regclass)');
SELECT sqlstate_, message FROM error_of('SELECT next_id(NULL, ''twitter_seq'')');
SELECT sqlstate_, message FROM error_of('SELECT next_id(5, ''systems'')');
SELECT sqlstate_, message FROM error_of('SELECT next_id(5, ''1'')');
BEGIN READ ONLY;
SELECT sqlstate_, message FROM error_of('SELECT next_id(5, ''twitter_seq'')');
ROLLBACK;

-- nobody with only EXECUTE or USAGE pushes a sequence out of its time
CREATE ROLE regress_sf_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO regress_sf_app;
REVOKE ALL ON SEQUENCE next_id_seq FROM regress_sf_app;
CREATE FUNCTION attempts() RETURNS TABLE (sequence text, layout text, result text) LANGUAGE plpgsql AS $$
DECLARE
    target text;
    name text;
BEGIN
    -- every MAXVALUE there is, named with every layout and with old epochs and short ticks
    FOREACH target IN ARRAY array_prepend('next_id', ARRAY(SELECT s.name FROM systems s)) LOOP
        FOREACH name IN ARRAY ARRAY(SELECT l.name FROM snowflake_layouts() l) ||
            '{timestamp:41 shard:13 sequence:10 epoch:0,timestamp:41 datacenter:5 worker:5 sequence:12 epoch:0,
              timestamp:42 worker:5 process:5 sequence:12 epoch:0,timestamp:41 worker:10 sequence:12 epoch:0 tick:10us,
              timestamp:39 sequence:8 machine:16 epoch:0,timestamp:41 shard:5 sequence:7 epoch:0,
              timestamp:48 sequence:16 epoch:1900-01-01T00:00:00Z,timestamp:48 node:15 epoch:0 tick:10us}' LOOP
            sequence := target;
            attempts.layout := name;
            SELECT sqlstate_ INTO result FROM error_of(format('SELECT next_id(0, %L, %L)', target || '_seq', name));
            RETURN NEXT;
        END LOOP;
    END LOOP;
END $$;
GRANT SELECT ON systems TO regress_sf_app;
SET client_min_messages = error;
SET ROLE regress_sf_app;
SELECT * FROM attempts() WHERE result NOT IN ('55000', '42501');
SELECT result, count(*) FROM attempts() GROUP BY result ORDER BY result;
RESET ROLE;
RESET client_min_messages;
DROP FUNCTION attempts;
SELECT count(lead) AS shown, count(*) FILTER (WHERE lead > '2 minutes') AS ahead
FROM systems AS s, snowflake_sequences((name || '_seq')::regclass, s.layout);
-- a layout of one's own needs UPDATE
SET ROLE regress_sf_app;
SELECT * FROM error_of('SELECT next_id(5, ''idgen_seq'', ''timestamp:41 generator:10 sequence:12 epoch:1420070400000'')');
RESET ROLE;
GRANT UPDATE ON SEQUENCE idgen_seq, twitter_seq TO regress_sf_app;
SET ROLE regress_sf_app;
SELECT next_id(5, 'idgen_seq', 'timestamp:41 generator:10 sequence:12 epoch:1420070400000') > 0;
-- also if a built-in one was used in the same transaction, with less
BEGIN;
SELECT next_id(5, 'discord_seq', 'discord') > 0;
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''discord_seq'', ''timestamp:42 a:10 sequence:12 epoch:0'')');
COMMIT;
RESET ROLE;

-- the last year is announced with its first value, once
SELECT setval('twitter_seq', (snowflake_min_id('2079-07-11 17:30:30.208Z', 'twitter') >> 22) * 4096 - 2) > 0;
SET snowflake.max_lead = '36500d';
SELECT next_id(5, 'twitter_seq', 'twitter') > 0;
\set VERBOSITY sqlstate
SELECT next_id(5, 'twitter_seq', 'twitter') > 0;
\set VERBOSITY default
SELECT next_id(5, 'twitter_seq', 'twitter') > 0;
RESET snowflake.max_lead;

-- defaults of columns keep their layout
CREATE TABLE tweets (id bigint PRIMARY KEY DEFAULT next_id(33, 'pgedge_seq', 'pgedge'), n int);
INSERT INTO tweets (n) SELECT generate_series(1, 1000);
SELECT count(*), bool_and(snowflake_shard(id, 'pgedge') = 33) FROM tweets;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'tweets'::regclass;
PREPARE one (bigint, snowflake_layout, regclass) AS SELECT snowflake_shard(next_id($1, $3, $2), $2);
SET snowflake.max_lead = '36500d';
EXECUTE one (5, 'twitter', 'twitter_seq');
EXECUTE one (6, 'pgedge', 'pgedge_seq');
EXECUTE one (7, 'instagram', 'instagram_seq');
RESET snowflake.max_lead;

-- what a session remembers of a tick does not outlive a change of anything else
CREATE SEQUENCE seconds MINVALUE 0;
SELECT snowflake_alter_sequence('seconds', 'timestamp:33 shard:10 sequence:10 epoch:0 tick:1s') IS NOT NULL AS altered;
BEGIN;
SELECT next_id(1, 'seconds', 'timestamp:33 shard:10 sequence:10 epoch:0 tick:1s') > 0 AS taken;
-- another layout
SELECT sqlstate_, message ~ 'ahead of the clock' AS ahead
FROM error_of('SELECT next_id(1, ''seconds'', ''timestamp:33 shard:10 sequence:10 epoch:2020-01-01T00:00:00Z tick:1s'')');
COMMIT;
-- a sequence that was set back between two calls: the next ID has the clock's time
SELECT bool_and(snowflake_timestamp(id, 'timestamp:33 shard:10 sequence:10 epoch:0 tick:1s') > now() - interval '1 min') AS present
FROM (SELECT g, CASE g WHEN 2 THEN setval('seconds', 5)
                       ELSE next_id(1, 'seconds', 'timestamp:33 shard:10 sequence:10 epoch:0 tick:1s') END AS id
      FROM generate_series(1, 3) g OFFSET 0) t WHERE g <> 2;
-- a value that is yet to be taken
SELECT array_agg(snowflake_sequence_number(id, 'timestamp:33 shard:10 sequence:10 epoch:0 tick:1s') ORDER BY g) AS slots
FROM (SELECT g, CASE g WHEN 2 THEN (SELECT setval('seconds', last_value - last_value % 1024 + 700 + g - g, false) FROM seconds)
                       ELSE next_id(1, 'seconds', 'timestamp:33 shard:10 sequence:10 epoch:0 tick:1s') END AS id
      FROM generate_series(1, 4) g OFFSET 0) t WHERE g > 2;
-- a shorter lead
BEGIN;
SET LOCAL snowflake.max_lead = '1h';
SELECT count(*) FROM next_ids(1, 100000, 'seconds', 'timestamp:33 shard:10 sequence:10 epoch:0 tick:1s');
SELECT sqlstate_, message ~ 'ahead of the clock' AS ahead
FROM error_of('SELECT CASE g WHEN 2 THEN set_config(''snowflake.max_lead'', ''0'', true)
                             ELSE next_id(1, ''seconds'', ''timestamp:33 shard:10 sequence:10 epoch:0 tick:1s'')::text END
               FROM generate_series(1, 3) g');
COMMIT;
DROP SEQUENCE seconds;

DROP TABLE tweets, systems, made;
DROP OWNED BY regress_sf_app;
DROP ROLE regress_sf_app;
DROP SEQUENCE instagram_seq, twitter_seq, discord_seq, shardingsphere_seq, sonyflake_seq, mastodon_seq, pgedge_seq, javascript_seq,
    trace_seq, decimal_seq, cockroachdb_seq, baidu_seq, yitter_seq, idgen_seq, tidb_seq, atproto_seq, instagram2020_seq,
    seconds_seq, hundredths_seq, counter_seq, zero;

-- a custom layout must be named: neither message nor hint names a layout that nobody has named
\pset tuples_only off
CREATE SEQUENCE own;
SELECT snowflake_alter_sequence('own', 'timestamp:41 node:11 sequence:11 epoch:2020-01-01T00:00:00Z');
SELECT next_id(5, 'own', 'timestamp:41 node:11 sequence:11 epoch:2020-01-01T00:00:00Z') > 0 AS taken;
SELECT sqlstate_, message, detail, hint FROM error_of('SELECT next_id(5, ''own'')');
SELECT sqlstate_, message, hint FROM error_of('SELECT next_id(5, ''own'', ''twitter'')');
SELECT sqlstate_, message, hint FROM error_of('SELECT snowflake_advance(''own'', 1)');
SELECT sqlstate_, message, hint FROM error_of('SELECT next_ids(5, 2, ''own'')');

-- snowflake_sequences() lists sequences of defaults with next_id() that have lost their MAXVALUE
CREATE SEQUENCE views_id_seq;
SELECT snowflake_alter_sequence('views_id_seq');
SELECT next_id(5) > 0 AND next_id(5, 'views_id_seq') > 0 AS taken;
CREATE TABLE views (id bigint DEFAULT next_id(5, 'views_id_seq'));
CREATE SEQUENCE tweets_id_seq;
SELECT snowflake_alter_sequence('tweets_id_seq', 'twitter');
CREATE TABLE tweets (id bigint DEFAULT next_id(5, 'tweets_id_seq', 'twitter'));
CREATE SEQUENCE in_domain_seq;
CREATE DOMAIN regress_sf_id AS bigint DEFAULT next_id(5, 'in_domain_seq');
CREATE TABLE owned (id bigint DEFAULT next_id(5, 'own', 'timestamp:41 node:11 sequence:11 epoch:2020-01-01T00:00:00Z'));
CREATE TABLE counted (id bigserial, n bigint DEFAULT next_id(5));
ALTER SEQUENCE views_id_seq NO MAXVALUE;
ALTER SEQUENCE tweets_id_seq NO MAXVALUE;
ALTER SEQUENCE next_id_seq NO MAXVALUE;
SELECT sequence, layout, last_timestamp, expires, state FROM snowflake_sequences() WHERE layout IS NULL ORDER BY sequence::text COLLATE "C";
ALTER SEQUENCE views_id_seq MAXVALUE 1125899906841599;
ALTER SEQUENCE tweets_id_seq MAXVALUE 9007199254736895;
ALTER SEQUENCE next_id_seq MAXVALUE 1125899906841599;
SELECT sequence, layout, state FROM snowflake_sequences()
WHERE sequence IN ('views_id_seq'::regclass, 'tweets_id_seq', 'next_id_seq', 'in_domain_seq') ORDER BY sequence::text COLLATE "C";
-- any sequence can be looked at by its name, also one of a custom layout
SELECT sequence, layout, last_timestamp IS NOT NULL AS last, expires, state FROM snowflake_sequences('own');
SELECT sequence, layout, last_timestamp IS NOT NULL AS last, expires, state
FROM snowflake_sequences('own', 'timestamp:41 node:11 sequence:11 epoch:2020-01-01T00:00:00Z');
SELECT sequence, layout, last_timestamp IS NOT NULL AS last, expires, state FROM snowflake_sequences('views_id_seq');
SELECT sequence, layout, last_timestamp IS NOT NULL AS last, state FROM snowflake_sequences('views_id_seq', 'twitter');
SELECT sequence, layout, state FROM snowflake_sequences('counted');
SELECT sequence, layout, state FROM snowflake_sequences(4294967295::oid);
DROP TABLE views, tweets, owned, counted;
DROP DOMAIN regress_sf_id;
DROP SEQUENCE own, views_id_seq, tweets_id_seq, in_domain_seq;
