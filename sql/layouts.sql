-- The type of layouts, and IDs of other systems
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_table

SELECT * FROM snowflake_layouts();
-- Each layout has its own MAXVALUE.  In version 1.0, a name and its definition are the same layout.
SELECT count(*) AS layouts, count(DISTINCT max_value) AS max_values,
       count(*) FILTER (WHERE snowflake_layout_send(name::snowflake_layout)
                              = snowflake_layout_send(definition::snowflake_layout)) AS same_in_binary,
       count(*) FILTER (WHERE definition::snowflake_layout::text = name) AS shown_by_name,
       bool_and(name::snowflake_layout::text = name) AS read_and_shown_again
FROM snowflake_layouts();

-- Text that is read, and what is written
SELECT layout::snowflake_layout,
       layout::snowflake_layout::text::snowflake_layout::text = layout::snowflake_layout::text AS same_when_read_again
FROM unnest(ARRAY[
    'twitter', E' \t\n twitter \n', 'Twitter', 'INSTAGRAM',
    'timestamp:41 datacenter:5 worker:5 sequence:12 epoch:1288834974657',
    'tick:1ms epoch:1288834974657 timestamp:41 datacenter:5 worker:5 sequence:12',
    'epoch:1288834974657 timestamp:41 datacenter:5 worker:5 sequence:12',
    E'\ttimestamp:48\nnode:15   epoch:2015-01-01T00:00:00Z tick:10us ',
    'timestamp:48 node:15 epoch:2014-12-31T19:00:00.000000-05:00 tick:10us',
    'timestamp:40 epoch:1969-12-31T23:59:59.999Z', 'timestamp:40 epoch:-62135596800000',
    'timestamp:40 epoch:253402300799999 tick:1s', 'timestamp:64 epoch:0 tick:1us', 'timestamp:2 epoch:0',
    'timestamp:1 sequence:2 epoch:0', 'timestamp:1 a:1 b:1 c:1 d:1 e:1 f:1 sequence:2 epoch:0',
    'timestamp:30 abcdefghij_1234:31 epoch:2024-02-29T23:59:59.5+0530', 'sequence:31', 'shard:31 sequence:31',
    'sequence:10 SHARD:3 shard:2'
]) AS layout;

-- Text that is no layout: the detail says where, and why.
SELECT l.layout, error.hint <> '' AS with_hint, error.detail
FROM unnest(ARRAY[
    '  ', 'twitters', 'twitter epoch:0', 'timestamp:41 twitter epoch:0', 'timestamp:41',
    'timestamp:41 sequence:22 tick:1ms', 'timestamp epoch:0', 'timestamp: epoch:0', ':41 epoch:0',
    'timestamp:0 epoch:0', 'timestamp:65 epoch:0', 'timestamp:-1 epoch:0', 'timestamp:4x epoch:0',
    'timestamp:99999999999999999999 epoch:0', 'timestamp:41:2 epoch:0', 'shard:13 timestamp:41 epoch:0',
    'timestamp:20 timestamp:21 epoch:0', 'timestamp:41 node:5 node:5 epoch:0',
    'timestamp:41 sequence:5 sequence:5 epoch:0', 'timestamp:30 sequence:32 epoch:0',
    'timestamp:30 a:16 b:16 epoch:0', 'timestamp:41 shard:13 sequence:11 epoch:0',
    'timestamp:41 sixteen_letters_:5 epoch:0', 'timestamp:41 no-de:5 epoch:0',
    'timestamp:1 a:1 b:1 c:1 d:1 e:1 f:1 g:1 h:1 epoch:0', 'timestamp:1 epoch:0', 'timestamp:1 sequence:1 epoch:0',
    'sequence:1', 'shard:5', 'shard:5 sequence:5 epoch:0', 'sequence:5 tick:1ms', 'epoch:0', 'tick:1ms',
    'timestamp:41 epoch:0 epoch:0', 'timestamp:41 epoch:0 tick:1ms tick:1ms', 'epoch:0 epoch:0', 'tick:1s tick:1s',
    'timestamp:41 shard:13 Sequence:10 epoch:0', 'Timestamp:41 epoch:0', 'timestamp:41 EPOCH:9',
    'timestamp:41 epoch:0 tick:2ms', 'timestamp:41 epoch:0 tick:', 'timestamp:41 epoch:0 tick:1MS',
    'timestamp:41 nöde:5 epoch:0'
]) WITH ORDINALITY AS l (layout, n),
     error_of(format('SELECT %L::snowflake_layout', layout)) AS error
WHERE error.sqlstate_ = '22P02'
      AND error.message = format('invalid input syntax for type snowflake_layout: "%s"', layout)
ORDER BY n;

-- The errors in full: of no text, of values that this release has not stored, and of text that is no epoch
:as_lines
SELECT * FROM error_of('SELECT ''''::snowflake_layout');
CREATE CAST (bytea AS snowflake_layout) WITHOUT FUNCTION;
SELECT * FROM error_of($$SELECT '\x6374'::bytea::snowflake_layout::text$$);
SELECT * FROM error_of($$SELECT '\x0174'::bytea::snowflake_layout::text$$);
SELECT * FROM error_of('SELECT ''timestamp:41 epoch:''::snowflake_layout');
-- Other text that is no epoch
SELECT count(*) AS epochs, string_agg(l.epoch, ', ') FILTER (
           WHERE error.sqlstate_ <> '22P02' OR split_part(l.epoch, ' ', 1)
               IS DISTINCT FROM substring(error.detail, '^At character 14, "epoch:(.*)": an epoch is')) AS others
FROM unnest(ARRAY[
    '', '-', '1.5', '253402300800000', '-62135596800001', '99999999999999999999', '2020-01-01', '2020-01-01T00:00:00',
    '2020-01-01 00:00:00Z', '2020-13-01T00:00:00Z', '2021-02-29T00:00:00Z', '1900-02-29T00:00:00Z',
    '2020-04-31T00:00:00Z', '2020-01-01T24:00:00Z', '2020-01-01T00:00:60Z', '2020-01-01T00:00:00.0001Z',
    '2020-01-01T00:00:00.Z', '2020-01-01T00:00:00+16', '0999-01-01T00:00:00Z', '2020-01-01T00:00:00+01:60',
    '2020-01-01T00:00:00Zulu', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59-01'
]) AS l (epoch), error_of(format('SELECT %L::snowflake_layout', 'timestamp:41 epoch:' || epoch)) AS error;

-- A column can be of the type.
CREATE TABLE systems (name text PRIMARY KEY, layout snowflake_layout);
INSERT INTO systems SELECT name, name::snowflake_layout FROM snowflake_layouts();
INSERT INTO systems VALUES
    ('cockroachdb', 'timestamp:48 node:15 epoch:1420070400000 tick:10us'),
    ('baidu', 'timestamp:29 worker:21 sequence:13 epoch:1474329600000 tick:1s'),
    ('yitter', 'timestamp:51 worker:6 sequence:6 epoch:1582165202020'),
    ('idgen', 'timestamp:41 generator:10 sequence:12 epoch:1420070400000'),
    ('tidb', 'timestamp:46 sequence:18 epoch:0'),
    ('atproto', 'timestamp:53 shard:10 epoch:0 tick:1us'),
    ('another twitter', 'twitter'), ('none', NULL);
-- It has no operators: its text compares.  The binary form is the version and the text.  A long word is not
-- repeated in full in an error.
SELECT string_agg(name, ' ' ORDER BY name) FILTER (WHERE layout::text = 'twitter') AS twitters,
       (SELECT count(*) FROM pg_operator WHERE 'snowflake_layout'::regtype IN (oprleft, oprright)) AS operators,
       (SELECT count(*) FROM pg_opclass WHERE opcintype = 'snowflake_layout'::regtype) AS operator_classes,
       snowflake_layout_send('twitter') = '\x01'::bytea || 'twitter'::bytea AS is_version_and_text,
       sum(pg_column_size(layout)) / count(layout) AS mean_size,
       (SELECT length(detail) < 200 FROM error_of(format('SELECT %L::snowflake_layout', repeat('ö', 1000)))) AS is_short
FROM systems;

-- IDs that the systems made, or wrote about, are decoded and composed as far as a layout has the parts.
CREATE TABLE known (name text, id bigint, time timestamptz, shard int, sequence int, fields text);
INSERT INTO known VALUES
    ('instagram', 1671372309237077023, '2017-12-16T22:25:27.280Z', 5, 31, 'timestamp=199243105559 shard=5 sequence=31'),
    ('instagram', 11637205501278089, '2011-09-09T22:28:04.721Z', 1341, 905,
     'timestamp=1387263000 shard=1341 sequence=905'),
    ('discord', 175928847299117063, '2016-04-30T11:18:25.796Z', 32, 7,
     'timestamp=41944705796 worker=1 process=0 sequence=7'),
    ('discord', 111773356109402112, '2015-11-05T10:27:24.745Z', 17, 0,
     'timestamp=26648844745 worker=0 process=17 sequence=0'),
    ('mastodon', 101767036616676231, '2019-03-17T16:55:45.249Z', NULL, 37767, 'timestamp=1552841745249 sequence=37767'),
    ('pgedge', 136169504773242881, '2024-01-11T18:08:59.845Z', 0, 1, 'timestamp=32465339845 node=0 sequence=1'),
    ('sonyflake', 282372624875847938, '2020-01-01T00:00:00Z', 258, 5, 'timestamp=16830720000 sequence=5 machine=258'),
    ('shardingsphere', 624998537125429249, '2021-07-22T16:01:03.162Z', 0, 1,
     'timestamp=149011263162 worker=0 sequence=1'),
    ('cockroachdb', 235191684988928001, '2017-04-10T17:26:46.210Z', 1, NULL, 'timestamp=7177480621000 node=1'),
    ('baidu', 180363646902239241, '2017-01-19T12:15:46Z', 4, 9, 'timestamp=10498546 worker=4 sequence=9'),
    ('yitter', 129053495681099, '2021-02-18T18:20:03.114Z', 1, 11, 'timestamp=31507201094 worker=1 sequence=11'),
    ('idgen', 862817670527975424, '2021-07-08T22:09:23.031Z', 0, 0, 'timestamp=205711763031 generator=0 sequence=0'),
    ('decimal', 14150009200065, NULL, 65, 1415, 'counter=1415 generator=92 launch=65');
SELECT count(*) AS ids, count(time = made) AS with_time, count(shard = of_shard) AS with_shard,
       count(sequence = number) AS with_number, string_agg(name, ' ') FILTER (
           WHERE fields <> shown OR time <> made OR shard <> of_shard OR sequence <> number OR id <> composed) AS wrong
FROM (SELECT *, CASE WHEN time IS NOT NULL THEN snowflake_timestamp(id, layout) END AS made,
             CASE WHEN shard IS NOT NULL THEN snowflake_shard(id, layout) END AS of_shard,
             CASE WHEN sequence IS NOT NULL THEN snowflake_sequence_number(id, layout) END AS number,
             (SELECT string_agg(field || '=' || value, ' ') FROM snowflake_fields(id, layout)) AS shown,
             snowflake_id(time, coalesce(shard, 0), coalesce(sequence, 0), layout) AS composed
      FROM known JOIN systems USING (name)) AS k;

-- Other systems make IDs with the sign bit when a layout's 63 bits are used up: their last moments
:as_table
SELECT name, snowflake_timestamp(-1, name::snowflake_layout)
FROM snowflake_layouts() WHERE name NOT IN ('javascript', 'trace', 'decimal') ORDER BY name;
-- What a layout does not have, or cannot compose
SELECT e.* FROM unnest(ARRAY['timestamp(1, ''trace'')', 'id(''2020-01-01Z'', 0, 0, ''trace'')',
    'id(''1999-01-01Z'', 0, 0, ''twitter'')', 'id(''2020-01-01Z'', 1, 1, ''mastodon'')',
    'id(''2020-01-01Z'', 1, 1, ''timestamp:48 node:15 epoch:0'')',
    'id(''2020-01-01Z'', 0, 32768, ''timestamp:48 sequence:15 epoch:0 tick:10us'')',
    'timestamp(1, ''decimal'')']) AS call, error_of('SELECT snowflake_' || call) AS e;
-- The last moment that a timestamp can hold is in the year 294276.
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT snowflake_min_id(now(), ''trace'')', 'SELECT snowflake_max_id(now(), ''trace'')',
    'SELECT snowflake_min_id(now(), ''decimal'')', 'SELECT snowflake_id(now(), 1, 1, ''decimal'')',
    'SELECT snowflake_timestamp(1, ''shard:5 sequence:5'')', 'SELECT snowflake_shard(1, ''mastodon'')',
    'SELECT snowflake_sequence_number(1, ''timestamp:48 node:15 epoch:0'')',
    'SELECT snowflake_id(''2020-01-01Z'', 0, 1024, ''trace'')',
    'SELECT snowflake_id(''2080-07-10 17:30:30.208Z'', 0, 0, ''twitter'')',
    'SELECT snowflake_id(''1970-01-01Z'', 0, 0, ''mastodon'')',
    'SELECT snowflake_timestamp(9223372036854775807, ''timestamp:63 epoch:0 tick:1s'')',
    'SELECT snowflake_timestamp(-1, ''timestamp:64 epoch:0'')', 'SELECT next_id(5, ''next_id_seq'', NULL)',
    'SELECT snowflake_timestamp(9224318015999, ''timestamp:44 epoch:0 tick:1s'')',
    'SELECT snowflake_timestamp(9224318016000, ''timestamp:44 epoch:0 tick:1s'')'
]) AS statement, error_of(statement);

-- trace composes, and its timestamp wraps around after 2^25 seconds.
:as_lines
SELECT snowflake_id('1970-01-02Z', 3 << 12 | 2, 1, 'trace')
       = snowflake_id('1971-01-25T08:40:32Z', 3 << 12 | 2, 1, 'trace') AS same_after_2_to_the_25_seconds,
       (SELECT string_agg(field || '=' || value, ' ')
        FROM snowflake_fields(snowflake_id('2020-01-01Z', 3 << 12 | 2, 1023, 'trace'), 'trace')) AS fields;

-- The bounds of ranges keep the promise that sql/decode.sql shows for the default layout.
CREATE TABLE moments AS SELECT epoch + (tick * n) + micro * interval '1 microsecond' AS t
FROM (VALUES ('2010-11-04 01:42:54.657Z'::timestamptz, interval '1 ms'), ('2014-09-01Z', '10 ms'),
             ('2015-01-01Z', '10 microseconds'), ('1970-01-01Z', '1 s'), ('2080-07-10 17:30:30.208Z', '1 ms'),
             ('2188-11-16 03:28:58.87Z', '10 ms')) e (epoch, tick),
     generate_series(-2, 2) n, generate_series(-1, 1) micro
UNION SELECT unnest(ARRAY['-infinity', 'infinity', '2026-06-01 12:00:00.123456Z', '4714-11-24 00:00:00Z BC',
                          '294276-12-31 23:59:59.999999Z'])::timestamptz;
SELECT count(DISTINCT name) AS layouts, count(*) AS pairs,
       count(*) FILTER (WHERE (id >= snowflake_min_id(t, layout)) <> (snowflake_timestamp(id, layout) >= t))
           AS wrong_min,
       count(*) FILTER (WHERE (id <= snowflake_max_id(t, layout)) <> (snowflake_timestamp(id, layout) <= t))
           AS wrong_max
FROM systems, moments,
     LATERAL (SELECT snowflake_id(m.t, 0, 0, layout) AS id FROM moments m
              WHERE m.t BETWEEN '2020-01-01' AND '2050-01-01'
              UNION SELECT 1 UNION SELECT snowflake_min_id('infinity', layout) - 1) ids
WHERE name NOT IN ('trace', 'decimal', 'none');

-- A session keeps any number of layouts that it has used, in less than 2 kB each.
CREATE FUNCTION kept() RETURNS bigint LANGUAGE sql AS
$$ SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts $$;
CREATE TABLE many AS SELECT n,
    ('timestamp:41 shard:13 sequence:10 epoch:' || 1500000000000 + n)::snowflake_layout AS layout
    FROM generate_series(1, 3000) n;
SELECT kept() AS before \gset
SELECT count(DISTINCT layout::text) AS layouts FROM many;
SELECT kept() - :before < 100000 AS none_kept;
SELECT count(*) AS layouts, count(DISTINCT snowflake_timestamp(1::bigint << 23, layout)) AS times,
       bool_and(snowflake_shard(snowflake_id('2020-01-01Z', 77, 5, layout), layout) = 77) AS shards_are_right
       FROM many;
SELECT kept() - :before < 3000 * 2048 AS less_than_2_kb_each;
-- The last of many layouts makes IDs, and another is named in an error.
CREATE SEQUENCE late;
\set last 'timestamp:41 shard:13 sequence:10 epoch:1500000002999'
SELECT snowflake_alter_sequence('late', :'last') \gset
SELECT count(DISTINCT id) AS ids, min(snowflake_shard(id, :'last')) AS shard
FROM next_ids(77, 3000, 'late', :'last') id;
SELECT message FROM error_of('SELECT next_id(7, ''late'', ''timestamp:41 shard:10 sequence:12 epoch:1500000000000'')');
