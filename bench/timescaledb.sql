-- bench/timescaledb.sql: what TimescaleDB's compression makes of IDs and of UUIDs
--
-- A million rows of one day each: IDs, which hold their time, and UUIDs with a
-- created_at beside.  Run it by psql in an empty database of a server that has
-- TimescaleDB's community edition; the Apache edition has no compression.

\set ON_ERROR_STOP on
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS timescaledb;

CREATE TABLE ids (id bigint PRIMARY KEY DEFAULT next_id(5), device integer);
CREATE TABLE uuids (created_at timestamptz, id uuid DEFAULT gen_random_uuid(), device integer, PRIMARY KEY (id, created_at));
SELECT FROM create_hypertable('ids', by_range('id', interval '1 day', partition_func => 'snowflake_timestamp(bigint)'::regprocedure));
SELECT FROM create_hypertable('uuids', by_range('created_at', interval '1 day'));

-- at random moments, as rows come in
CREATE TEMP TABLE moments AS
SELECT row_number() OVER (ORDER BY t) AS n, t
FROM (SELECT '2026-11-05 00:00Z'::timestamptz + random() * interval '1 day' FROM generate_series(1, 1000000)) AS r (t);

INSERT INTO ids SELECT snowflake_id(t, 5, n % 1024), random() * 100 FROM moments ORDER BY n;
INSERT INTO uuids SELECT t, gen_random_uuid(), random() * 100 FROM moments ORDER BY n;

ALTER TABLE ids SET (timescaledb.compress, timescaledb.compress_orderby = 'id', timescaledb.compress_segmentby = '');
ALTER TABLE uuids SET (timescaledb.compress, timescaledb.compress_orderby = 'created_at', timescaledb.compress_segmentby = '');
SELECT FROM (SELECT compress_chunk(c) FROM show_chunks('ids') AS c) AS compressed;
SELECT FROM (SELECT compress_chunk(c) FROM show_chunks('uuids') AS c) AS compressed;

SELECT name AS "table", round(before_compression_total_bytes / 1e6, 1) AS bytes_a_row,
	round(after_compression_total_bytes / 1e6, 1) AS compressed,
	round(before_compression_total_bytes::numeric / after_compression_total_bytes, 1) AS factor
FROM unnest(ARRAY['ids', 'uuids']) AS name, hypertable_compression_stats(name::regclass);
