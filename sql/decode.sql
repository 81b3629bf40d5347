-- Taking IDs apart and putting them together; ranges of time
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_table

-- IDs that Instagram has made, or described
CREATE TABLE known (id bigint, time timestamptz, shard int, sequence int);
INSERT INTO known VALUES
    (1671372309237077023, '2017-12-16T22:25:27.280Z', 5, 31),
    (11637205501278089, '2011-09-09T22:28:04.721Z', 1341, 905);
SELECT id, snowflake_timestamp(id), snowflake_timestamp(id) = time AS time_is_right,
       snowflake_shard(id) = shard AS shard_is_right,
       snowflake_sequence_number(id) = sequence AS sequence_number_is_right,
       snowflake_id(time, shard, sequence) = id AS composed_again
FROM known;
SELECT * FROM snowflake_fields(11637205501278089);

-- The first ID and the last, and one that others made with the sign bit
SELECT id, snowflake_timestamp(id), snowflake_shard(id), snowflake_sequence_number(id)
FROM unnest(ARRAY[1, 9223372036854775807, -1]) AS id;
SELECT * FROM snowflake_fields(-9223372036854775808);

-- snowflake_id() composes the first ID and the last, takes fractions of a tick for the tick, ...
SELECT snowflake_id('2011-08-24 21:07:01.721Z', 0, 1) AS first_id,
       snowflake_id('2046-06-27 17:00:49.495999Z', 8191, 1023) AS last_id,
       snowflake_id('2020-01-01 00:00:00.123999Z', 1, 2) = snowflake_id('2020-01-01 00:00:00.123Z', 1, 2)
           AS same_as_without_the_fraction;
-- ... and is the inverse of the three decoders.
SELECT count(*) AS not_composed_again
FROM (SELECT (random() * 1099511627775)::bigint << 23 | (random() * 8388607)::bigint AS id
      FROM generate_series(1, 10000)) r
WHERE id > 0 AND id < 9223372036846387200
  AND snowflake_id(snowflake_timestamp(id), snowflake_shard(id), snowflake_sequence_number(id)) <> id;

-- The bounds of ranges: within the layout, at its ends, and outside of it
SELECT t AS time, snowflake_min_id(t), snowflake_max_id(t)
FROM unnest(ARRAY['2017-12-16T22:25:27.280Z', '-infinity', '4713-11-24 00:00:00Z BC', '1970-01-01Z',
    '2011-08-24 21:07:01.720999Z', '2011-08-24 21:07:01.721Z', '2011-08-24 21:07:01.721001Z',
    '2011-08-24 21:07:01.722Z', '2046-06-27 17:00:49.494Z', '2046-06-27 17:00:49.494001Z', '2046-06-27 17:00:49.495Z',
    '2046-06-27 17:00:49.496Z', '2100-01-01Z', '294276-12-31 23:59:59.999999Z', 'infinity']::timestamptz[]) t;

-- For every ID that next_id() can make and every time t, id >= snowflake_min_id(t) exactly if
-- snowflake_timestamp(id) >= t, and id <= snowflake_max_id(t) exactly if snowflake_timestamp(id) <= t.
CREATE TABLE ids AS SELECT (random() * 1099511627774)::bigint << 23 | (random() * 8388607)::bigint AS id
FROM generate_series(1, 1000)
UNION SELECT unnest(ARRAY[1, 2, 1023, 1024, 8388607, 8388608, 8388609, 9223372036846387199, 9223372036837998592,
                          1671372309237077023]);
DELETE FROM ids WHERE id NOT BETWEEN 1 AND 9223372036846387199;
CREATE TABLE times AS SELECT snowflake_timestamp(id) + d AS t
FROM ids, unnest(ARRAY['0', '1 us', '-1 us', '499 us', '1 ms', '-1 ms']::interval[]) d
UNION SELECT now() + (random() * 2 - 1) * interval '40 years' FROM generate_series(1, 500)
UNION SELECT unnest(ARRAY['-infinity', 'infinity', '4713-11-24 00:00:00Z BC', '0044-03-15 12:00:00Z BC',
    '1970-01-01Z', '294276-12-31 23:59:59.999999Z', '2011-08-24 21:07:01.721Z', '2011-08-24 21:07:01.720999Z',
    '2046-06-27 17:00:49.496Z']::timestamptz[]);
SELECT count(*) > 5000000 AS over_five_million_pairs,
       count(*) FILTER (WHERE (id >= min_id) <> (time >= t)) AS wrong_with_min_id,
       count(*) FILTER (WHERE (id <= max_id) <> (time <= t)) AS wrong_with_max_id
FROM (SELECT id, snowflake_timestamp(id) AS time FROM ids OFFSET 0) i,
     (SELECT t, snowflake_min_id(t) AS min_id, snowflake_max_id(t) AS max_id FROM times OFFSET 0) x;
