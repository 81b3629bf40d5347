-- IDs for rows of earlier times: snowflake_backdated_id()
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_lines

-- Rows of one moment get IDs in order, 1,024 in its millisecond and the next ones in the milliseconds after it.
CREATE TABLE old_photos AS
SELECT n AS id, '2019-05-01Z'::timestamptz + n / 3000 * interval '1 ms' AS created_at
FROM generate_series(1, 3010) AS n;
CREATE TABLE photo_ids AS
SELECT id AS old_id, created_at, snowflake_backdated_id(created_at, 4) OVER (ORDER BY created_at, id) AS id
FROM old_photos;
SELECT count(*) AS rows, count(DISTINCT id) AS ids, min(snowflake_shard(id)) AS shard,
       min(snowflake_timestamp(id) - created_at) AS earliest,
       max(snowflake_timestamp(id) - created_at) AS latest, count(*) FILTER (WHERE id <= before) AS out_of_order
FROM (SELECT *, lag(id) OVER (ORDER BY old_id) AS before FROM photo_ids) AS t;
SELECT old_id, snowflake_timestamp(id), snowflake_sequence_number(id) FROM photo_ids
WHERE old_id IN (1, 1024, 1025, 3010) ORDER BY old_id;

-- A row that is alone in its millisecond gets the first ID of it.
SELECT count(*) AS rows_alone, count(*) FILTER (WHERE id = snowflake_id(ts, 7, 0)) AS with_the_first_id
FROM (SELECT ts, snowflake_backdated_id(ts, 7) OVER (ORDER BY ts) AS id
	  FROM generate_series('2020-01-01Z'::timestamptz, '2020-01-02Z', '1 h') AS ts) AS t;
-- A literal is read as timestamptz.  Rows that come out of order get IDs of their own, with later times.
SELECT (SELECT snowflake_timestamp(snowflake_backdated_id('2020-01-01 12:00+01', 4) OVER ())) AS of_untyped_time,
       count(*) AS rows_out_of_order, count(DISTINCT id) AS ids_out_of_order,
       min(snowflake_timestamp(id) - ts) >= '0' AS none_earlier_than_its_row
FROM (SELECT ts, snowflake_backdated_id(ts, 4) OVER (ORDER BY ts DESC) AS id
	  FROM generate_series('2020-01-01Z'::timestamptz, '2020-01-02Z', '1 min') AS ts) AS t;
-- If the shard changes from row to row, IDs differ in their other bits, too.
SELECT count(*) AS rows_of_shards, count(DISTINCT id) AS ids_of_shards,
       count(DISTINCT id & ~(8191 << 10)) AS ids_without_the_shard
FROM (SELECT snowflake_backdated_id('2020-01-01Z', n % 3) OVER () AS id
      FROM generate_series(1, 3000) AS n) AS t;
-- In each window partition the sequence number begins at 0.
SELECT count(DISTINCT id) AS ids_of_partitions,
       count(*) FILTER (WHERE snowflake_sequence_number(id) = 0) AS first_ids_of_partitions
FROM (SELECT shard, snowflake_backdated_id('2020-01-01Z', shard) OVER (PARTITION BY shard) AS id
	  FROM generate_series(1, 1000) AS n, generate_series(0, 2) AS shard) AS t;
-- A row without a time gets no ID.  The first ID is 1, not 0.
SELECT array_agg(id - snowflake_id('2020-01-01Z', 4, 0)) AS after_the_first,
       (SELECT snowflake_backdated_id('2011-08-24 21:07:01.721Z', 0) OVER ()) AS first_id
FROM (SELECT snowflake_backdated_id(CASE WHEN n <> 2 THEN '2020-01-01Z'::timestamptz END, 4) OVER (ORDER BY n) AS id
      FROM generate_series(1, 3) AS n) AS t;

-- All layouts that have a timestamp, and a custom one
SELECT name = 'own' AS custom, count(DISTINCT name) AS layouts, count(DISTINCT (name, id)) AS ids,
       bool_and(snowflake_timestamp(id, layout) >= ts) AS none_earlier,
       max(snowflake_timestamp(id, layout) - ts) AS latest
FROM (SELECT name, layout, ts, snowflake_backdated_id(ts, 1 % shards, layout) OVER (PARTITION BY name ORDER BY ts) AS id
	  FROM (SELECT name, name::snowflake_layout AS layout, shards FROM snowflake_layouts()
			WHERE expires IS NOT NULL
			UNION ALL SELECT 'own', 'timestamp:32 sequence:5 epoch:2020-01-01T00:00:00Z tick:1s', 1) AS l,
		   LATERAL (SELECT '2024-01-01Z'::timestamptz + n / 100 * interval '1 s' AS ts
              FROM generate_series(0, 299) AS n) AS t) AS t
GROUP BY custom ORDER BY custom;

-- The last millisecond of the layout has 1,024 IDs, and then there are no more.
SELECT count(DISTINCT id) AS ids_of_the_last_millisecond
FROM (SELECT snowflake_backdated_id('2046-06-27 17:00:49.495Z', 4) OVER () AS id FROM generate_series(1, 1024)) AS t;
SELECT * FROM error_of('SELECT snowflake_backdated_id(''2046-06-27 17:00:49.495Z'', 4) OVER ()
    FROM generate_series(1, 1025)');
SELECT * FROM error_of('SELECT snowflake_backdated_id(now(), 1, l::snowflake_layout) OVER ()
    FROM unnest(''{twitter,discord}''::text[]) l');
SELECT * FROM error_of('SELECT snowflake_backdated_id(now()::timestamp, 4) OVER ()');
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT snowflake_backdated_id(now()::timestamp, 4, ''twitter'') OVER ()',
    'SELECT snowflake_backdated_id(''2011-08-24 21:07:01.720Z'', 4) OVER ()',
    'SELECT snowflake_backdated_id(''infinity'', 4) OVER ()',
    'SELECT snowflake_backdated_id(now(), 8192) OVER ()',
    'SELECT snowflake_backdated_id(now(), -1) OVER ()',
    'SELECT snowflake_backdated_id(now(), NULL) OVER ()',
    'SELECT snowflake_backdated_id(now(), 4, NULL) OVER ()',
    'SELECT snowflake_backdated_id(now(), 4, ''trace'') OVER ()',
    'SELECT snowflake_backdated_id(now(), 4, ''decimal'') OVER ()'
]) AS statement, error_of(statement);
