/* snowflake--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

--
-- The default sequence
--
-- Its MAXVALUE is the last value of the layout, so that monitors of sequences
-- show how much of it is used.  It belongs to the extension's owner, who may
-- not be the superuser that runs this script, or that owner could not dump
-- and restore it.
--

CREATE SEQUENCE next_id_seq MAXVALUE 1125899906841599;

ALTER SEQUENCE next_id_seq OWNER TO @extowner@;

SELECT pg_catalog.pg_extension_config_dump('next_id_seq', '');

COMMENT ON SEQUENCE next_id_seq IS
'time and slot of the last ID made by next_id() without a sequence of its own';

--
-- Making IDs
--

CREATE FUNCTION next_id()
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_next_id_setting'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION next_id() IS
'next ID for the shard in the setting snowflake.shard';

CREATE FUNCTION next_id(shard bigint, sequence regclass DEFAULT 'next_id_seq')
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_next_id'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION next_id(bigint, regclass) IS
'next ID for a shard, unique and larger than all before it from the same sequence';

CREATE FUNCTION snowflake_id(ts timestamptz, shard bigint, sequence bigint)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_id(timestamptz, bigint, bigint) IS
'compose an ID from a time, a shard and a sequence number, as for rows of earlier times';

--
-- Taking IDs apart
--

CREATE FUNCTION snowflake_timestamp(id bigint)
RETURNS timestamptz
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
'time at which an ID was made';

CREATE FUNCTION snowflake_shard(id bigint)
RETURNS integer
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_shard(bigint) IS
'shard for which an ID was made';

CREATE FUNCTION snowflake_sequence(id bigint)
RETURNS integer
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_sequence(bigint) IS
'sequence number of an ID within its time';

CREATE FUNCTION snowflake_fields(id bigint)
RETURNS TABLE (field text, value bigint)
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE ROWS 3;

COMMENT ON FUNCTION snowflake_fields(bigint) IS
'fields of an ID as numbers, most significant first';

--
-- Ranges of time
--

CREATE FUNCTION snowflake_min_id(ts timestamptz)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
'smallest ID of a time: id >= snowflake_min_id(t) selects the IDs made at t or later';

CREATE FUNCTION snowflake_max_id(ts timestamptz)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
'largest ID of a time: id <= snowflake_max_id(t) selects the IDs made at t or earlier';

--
-- Watching a sequence
--

CREATE FUNCTION snowflake_status(
	sequence regclass DEFAULT 'next_id_seq',
	OUT last_timestamp timestamptz,
	OUT lead interval,
	OUT logged_ahead interval,
	OUT expires timestamptz)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_status(regclass) IS
'last ID''s time, its lead over the clock, the time logged beyond it, and the layout''s end';
