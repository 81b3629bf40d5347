/* snowflake--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

-- PostgreSQL runs this script as a superuser for anybody who may create the extension,
-- and looks up names in pg_catalog and in the extension's schema, where others may have
-- created whatever they like.  Of functions and operators with one name it takes the one
-- that fits the arguments best, in whichever schema that is, and a body that is BEGIN
-- ATOMIC keeps it for good.  So here is the rule.  A call of a function that is not the
-- extension's own names pg_catalog.  Operators, and the extension's own functions, get
-- arguments of exactly the types for which they are declared, so that nothing fits better.
-- Nothing is created OR REPLACE or IF NOT EXISTS: an object that others have created in
-- the place of one of the extension's own is an error.

--
-- Layouts
--

CREATE TYPE snowflake_layout;

CREATE FUNCTION snowflake_layout_in(cstring) RETURNS snowflake_layout
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_layout_in(cstring) IS 'I/O';

CREATE FUNCTION snowflake_layout_out(snowflake_layout) RETURNS cstring
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_layout_out(snowflake_layout) IS 'I/O';

CREATE FUNCTION snowflake_layout_recv(internal) RETURNS snowflake_layout
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_layout_recv(internal) IS 'I/O';

CREATE FUNCTION snowflake_layout_send(snowflake_layout) RETURNS bytea
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_layout_send(snowflake_layout) IS 'I/O';

CREATE TYPE snowflake_layout (
	INPUT = snowflake_layout_in,
	OUTPUT = snowflake_layout_out,
	RECEIVE = snowflake_layout_recv,
	SEND = snowflake_layout_send,
	INTERNALLENGTH = VARIABLE
);
COMMENT ON TYPE snowflake_layout IS
'which bits of an ID are its time, shard and sequence: a built-in layout''s name or a definition';

CREATE FUNCTION snowflake_layouts(
	OUT name text, OUT definition text, OUT epoch timestamptz, OUT tick interval,
	OUT shards bigint, OUT ids_per_tick bigint, OUT expires timestamptz, OUT max_value bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 10;
COMMENT ON FUNCTION snowflake_layouts() IS
'the built-in layouts: fields, limits, end, and the MAXVALUE of a sequence for each';

--
-- The default sequence
--
-- Its MAXVALUE is the last value of the layout, so that monitors of sequences
-- show how much of it is used.  It belongs to the extension's owner, who may
-- not be the superuser that runs this script, or that owner could not dump
-- and restore it.
--

CREATE SEQUENCE next_id_seq MAXVALUE 1125899906841599;
COMMENT ON SEQUENCE next_id_seq IS 'time and slot of the last ID of calls that name no sequence';

-- Not by PostgreSQL's macro for the owner's name, which refuses names with
-- quotes.
DO $$
BEGIN
	EXECUTE (SELECT pg_catalog.format('ALTER SEQUENCE next_id_seq OWNER TO %I', rolname)
			 FROM pg_catalog.pg_extension JOIN pg_catalog.pg_roles ON pg_roles.oid = extowner
			 WHERE extname = 'snowflake');
END
$$;

SELECT pg_catalog.pg_extension_config_dump('next_id_seq', '');

--
-- The version of the library, which may be newer than this script
--

CREATE FUNCTION snowflake_version() RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_version() IS 'version of the extension''s library on this server';

--
-- The shard
--

CREATE FUNCTION snowflake_shard() RETURNS integer
AS 'MODULE_PATHNAME', 'snowflake_shard_setting' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_shard() IS 'the shard of this session, from the setting snowflake.shard';

CREATE FUNCTION snowflake_set_shard(shard bigint) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION snowflake_set_shard(bigint) IS
'set the shard of this database, for new sessions and this one; -1 or NULL removes it';

--
-- Generating IDs
--

CREATE FUNCTION snowflake_support(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_support(internal) IS
'for the planner: support function of next_id() and next_ids()';

CREATE FUNCTION next_id() RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_next_id' LANGUAGE C VOLATILE PARALLEL UNSAFE SUPPORT snowflake_support;
COMMENT ON FUNCTION next_id() IS 'next ID for the shard in the setting snowflake.shard';

-- Overloads in place of default arguments, which the planner would read again
-- for each INSERT that is not prepared.

CREATE FUNCTION next_id(shard bigint) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_next_id' LANGUAGE C VOLATILE PARALLEL UNSAFE SUPPORT snowflake_support;
COMMENT ON FUNCTION next_id(bigint) IS
'next ID for a shard, unique and larger than all earlier ones of this shard';

CREATE FUNCTION next_id(shard bigint, sequence regclass) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_next_id' LANGUAGE C VOLATILE PARALLEL UNSAFE SUPPORT snowflake_support;
COMMENT ON FUNCTION next_id(bigint, regclass) IS
'next ID for a shard from a sequence, in the built-in layout that the sequence serves';

CREATE FUNCTION next_id(shard bigint, sequence regclass, layout snowflake_layout) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_next_id' LANGUAGE C VOLATILE PARALLEL UNSAFE SUPPORT snowflake_support;
COMMENT ON FUNCTION next_id(bigint, regclass, snowflake_layout) IS
'next ID for a shard from a sequence, in a given layout';

CREATE FUNCTION next_ids(shard bigint, count bigint) RETURNS SETOF bigint
AS 'MODULE_PATHNAME', 'snowflake_next_ids' LANGUAGE C VOLATILE PARALLEL UNSAFE SUPPORT snowflake_support;
COMMENT ON FUNCTION next_ids(bigint, bigint) IS
'next IDs for a shard, in order; faster than as many calls of next_id()';

CREATE FUNCTION next_ids(shard bigint, count bigint, sequence regclass) RETURNS SETOF bigint
AS 'MODULE_PATHNAME', 'snowflake_next_ids' LANGUAGE C VOLATILE PARALLEL UNSAFE SUPPORT snowflake_support;
COMMENT ON FUNCTION next_ids(bigint, bigint, regclass) IS
'next IDs for a shard from a sequence, in the built-in layout that the sequence serves';

CREATE FUNCTION next_ids(shard bigint, count bigint, sequence regclass, layout snowflake_layout)
RETURNS SETOF bigint
AS 'MODULE_PATHNAME', 'snowflake_next_ids' LANGUAGE C VOLATILE PARALLEL UNSAFE SUPPORT snowflake_support;
COMMENT ON FUNCTION next_ids(bigint, bigint, regclass, snowflake_layout) IS
'next IDs for a shard from a sequence, in a given layout';

-- STABLE in place of VOLATILE, for COPY alone; planner.c says why.
CREATE FUNCTION snowflake_next_id_in_copy(
	internal, replaced oid, shard bigint, sequence regclass, layout snowflake_layout)
RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_next_id_in_copy(internal, oid, bigint, regclass, snowflake_layout) IS
'for the planner: stands for next_id() while COPY evaluates a column default';

CREATE FUNCTION snowflake_id(ts timestamptz, shard bigint, sequence_number bigint) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_id(timestamptz, bigint, bigint) IS
'compose an ID from a time, a shard and a sequence number, as for rows of earlier times';

CREATE FUNCTION snowflake_id(ts timestamptz, shard bigint, sequence_number bigint, layout snowflake_layout)
RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_id(timestamptz, bigint, bigint, snowflake_layout) IS
'compose an ID from a time, a shard and a sequence number, as for rows of earlier times, in a given layout';

CREATE FUNCTION snowflake_backdated_id(ts timestamptz, shard bigint) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C WINDOW IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_backdated_id(timestamptz, bigint) IS
'ID at or after a time that no earlier row of the window partition has';

CREATE FUNCTION snowflake_backdated_id(ts timestamptz, shard bigint, layout snowflake_layout) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C WINDOW IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_backdated_id(timestamptz, bigint, snowflake_layout) IS
'ID at or after a time that no earlier row of the window partition has, in a given layout';

-- Only to refuse a time without a time zone, which would otherwise be taken
-- for one of the session's time zone.

CREATE FUNCTION snowflake_backdated_id(ts timestamp, shard bigint) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_backdated_id_without_zone' LANGUAGE C WINDOW IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_backdated_id(timestamp, bigint) IS
'error that asks for a timestamp with time zone';

CREATE FUNCTION snowflake_backdated_id(ts timestamp, shard bigint, layout snowflake_layout) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_backdated_id_without_zone' LANGUAGE C WINDOW IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_backdated_id(timestamp, bigint, snowflake_layout) IS
'error that asks for a timestamp with time zone';

--
-- Taking IDs apart
--

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS 'time at which an ID was generated';

CREATE FUNCTION snowflake_timestamp(id bigint, layout snowflake_layout) RETURNS timestamptz
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_timestamp(bigint, snowflake_layout) IS
'time at which an ID was generated, in a given layout';

CREATE FUNCTION snowflake_shard(id bigint) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_shard(bigint) IS 'shard for which an ID was generated';

CREATE FUNCTION snowflake_shard(id bigint, layout snowflake_layout) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_shard(bigint, snowflake_layout) IS
'shard for which an ID was generated, in a given layout';

CREATE FUNCTION snowflake_sequence_number(id bigint) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_sequence_number(bigint) IS 'sequence number of an ID within its time';

CREATE FUNCTION snowflake_sequence_number(id bigint, layout snowflake_layout) RETURNS integer
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_sequence_number(bigint, snowflake_layout) IS
'sequence number of an ID within its time, in a given layout';

CREATE FUNCTION snowflake_fields(id bigint) RETURNS TABLE (field text, value bigint)
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE ROWS 3;
COMMENT ON FUNCTION snowflake_fields(bigint) IS 'fields of an ID as numbers, most significant first';

CREATE FUNCTION snowflake_fields(id bigint, layout snowflake_layout) RETURNS TABLE (field text, value bigint)
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 3;
COMMENT ON FUNCTION snowflake_fields(bigint, snowflake_layout) IS
'fields of an ID as numbers, most significant first, in a given layout';

--
-- Ranges of time
--

CREATE FUNCTION snowflake_min_id(ts timestamptz) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
'smallest ID of a time: id >= snowflake_min_id(t) selects the IDs of t or later';

CREATE FUNCTION snowflake_min_id(ts timestamptz, layout snowflake_layout) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_min_id(timestamptz, snowflake_layout) IS
'smallest ID of a time: id >= snowflake_min_id(t) selects the IDs of t or later; in a given layout';

CREATE FUNCTION snowflake_max_id(ts timestamptz) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
'largest ID of a time: id <= snowflake_max_id(t) selects the IDs of t or earlier';

CREATE FUNCTION snowflake_max_id(ts timestamptz, layout snowflake_layout) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_max_id(timestamptz, snowflake_layout) IS
'largest ID of a time: id <= snowflake_max_id(t) selects the IDs of t or earlier; in a given layout';

--
-- Reading what is new
--

CREATE FUNCTION snowflake_settled_id() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_settled_id() IS
'bound of the IDs that are settled: every one below it is committed, or will never be, except those of this transaction';

CREATE FUNCTION snowflake_settled_id(layout snowflake_layout) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_settled_id(snowflake_layout) IS
'bound of the IDs that are settled: every one below it is committed, or will never be, except those of this transaction; in a given layout';

--
-- Watching a sequence
--

CREATE FUNCTION snowflake_sequences(
	sequence regclass,
	OUT sequence regclass, OUT layout text, OUT last_timestamp timestamptz,
	OUT lead interval, OUT expires timestamptz, OUT state text)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE ROWS 1;
COMMENT ON FUNCTION snowflake_sequences(regclass) IS
'layout of a sequence, last ID''s time, its lead over the clock, the layout''s end, and ok, ahead, waits, refuses or no privilege';

CREATE FUNCTION snowflake_sequences(
	sequence regclass, layout snowflake_layout,
	OUT sequence regclass, OUT layout text, OUT last_timestamp timestamptz,
	OUT lead interval, OUT expires timestamptz, OUT state text)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE ROWS 1;
COMMENT ON FUNCTION snowflake_sequences(regclass, snowflake_layout) IS
'last ID''s time of a sequence, its lead over the clock, the layout''s end, and ok, ahead, waits, refuses or no privilege, in a given layout';

-- The sequences that serve a built-in layout, as their MAXVALUE tells, and
-- those that should serve one: the extension's own, and those that the default
-- of a column or domain names in a call of next_id().  Where that call names a
-- layout, too, the layout may be a custom one, which a sequence with any
-- MAXVALUE but bigint's may serve: none has as many values as bigint.
CREATE FUNCTION snowflake_sequences(
	OUT sequence regclass, OUT layout text, OUT last_timestamp timestamptz,
	OUT lead interval, OUT expires timestamptz, OUT state text)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 10
BEGIN ATOMIC
SELECT found.*
FROM pg_catalog.pg_sequence
JOIN pg_catalog.pg_class ON pg_class.oid = seqrelid
CROSS JOIN LATERAL snowflake_sequences(seqrelid::regclass) AS found
WHERE relpersistence <> 't' AND
	(seqmax IN (SELECT max_value FROM snowflake_layouts()) OR
	 seqrelid = 'next_id_seq'::regclass::oid OR
	 EXISTS (SELECT
			 FROM pg_catalog.pg_depend AS named
			 JOIN pg_catalog.pg_depend AS called USING (classid, objid)
			 WHERE named.refclassid = 'pg_catalog.pg_class'::regclass::oid AND
				 named.refobjid = seqrelid AND
				 classid IN ('pg_catalog.pg_attrdef'::regclass::oid, 'pg_catalog.pg_type'::regclass::oid) AND
				 called.refclassid = 'pg_catalog.pg_proc'::regclass::oid AND
				 (called.refobjid = 'next_id(bigint, regclass)'::regprocedure::oid OR
				  called.refobjid = 'next_id(bigint, regclass, snowflake_layout)'::regprocedure::oid AND
				  seqmax = 9223372036854775807)));
END;
COMMENT ON FUNCTION snowflake_sequences() IS
'sequences that generate IDs, by their MAXVALUE or a default, except temporary ones: layout, last ID''s time, its lead over the clock, the layout''s end, and ok, ahead, waits, refuses or no privilege';

CREATE FUNCTION snowflake_alter_sequence(sequence regclass, layout snowflake_layout DEFAULT 'instagram')
RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_alter_sequence(regclass, snowflake_layout) IS
'make an existing sequence serve a layout: set its type, MAXVALUE and other parameters, and detach it from its column';

CREATE FUNCTION snowflake_advance(sequence regclass, id bigint) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_advance(regclass, bigint) IS
'make every later ID of a sequence larger than an ID, in the built-in layout that the sequence serves';

CREATE FUNCTION snowflake_advance(sequence regclass, id bigint, layout snowflake_layout) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_advance(regclass, bigint, snowflake_layout) IS
'make every later ID of a sequence larger than an ID, in a given layout';

--
-- IDs as text, and IDs that do not show their order
--

CREATE FUNCTION snowflake_to_text(id bigint, encoding text DEFAULT 'base62') RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_to_text(bigint, text) IS 'ID as text: base62, base32 or base64url';

CREATE FUNCTION snowflake_from_text(encoded text, encoding text DEFAULT 'base62') RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_from_text(text, text) IS 'ID from its text: base62, base32 or base64url';

CREATE FUNCTION snowflake_obfuscate(id bigint, key bigint) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_obfuscate(bigint, bigint) IS
'number that shows neither time nor order of an ID: obscured, not encrypted';

CREATE FUNCTION snowflake_reveal(id bigint, key bigint) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_reveal(bigint, bigint) IS
'ID from what snowflake_obfuscate() returned for it with the same key';

--
-- IDs that JSON cannot round
--
-- A bigint in all but its JSON: the functions that make JSON write a number
-- without quotes only if it has one of PostgreSQL's own types.
--

CREATE TYPE snowflake;

CREATE FUNCTION snowflake_in(cstring) RETURNS snowflake
AS 'int8in' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_in(cstring) IS 'I/O';

CREATE FUNCTION snowflake_out(snowflake) RETURNS cstring
AS 'int8out' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_out(snowflake) IS 'I/O';

CREATE FUNCTION snowflake_recv(internal) RETURNS snowflake
AS 'int8recv' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_recv(internal) IS 'I/O';

CREATE FUNCTION snowflake_send(snowflake) RETURNS bytea
AS 'int8send' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_send(snowflake) IS 'I/O';

CREATE TYPE snowflake (
	INPUT = snowflake_in,
	OUTPUT = snowflake_out,
	RECEIVE = snowflake_recv,
	SEND = snowflake_send,
	LIKE = bigint,
	CATEGORY = 'N'
);
COMMENT ON TYPE snowflake IS
'bigint that JSON shows as a string of digits, so that JavaScript does not round it';

CREATE FUNCTION snowflake(integer) RETURNS snowflake
AS 'int48' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION snowflake(integer) IS 'convert integer to snowflake';

CREATE FUNCTION snowflake(smallint) RETURNS snowflake
AS 'int28' LANGUAGE internal IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
COMMENT ON FUNCTION snowflake(smallint) IS 'convert smallint to snowflake';

CREATE FUNCTION snowflake(numeric) RETURNS snowflake
AS 'numeric_int8' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake(numeric) IS 'convert numeric to snowflake';

CREATE FUNCTION snowflake(double precision) RETURNS snowflake
AS 'dtoi8' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake(double precision) IS 'convert double precision to snowflake';

CREATE CAST (snowflake AS bigint) WITHOUT FUNCTION AS IMPLICIT;
COMMENT ON CAST (snowflake AS bigint) IS 'the same bits, so that the operators and indexes of bigint apply';

CREATE CAST (bigint AS snowflake) WITHOUT FUNCTION AS ASSIGNMENT;
COMMENT ON CAST (bigint AS snowflake) IS
'the same bits; on assignment alone, so that bigint and snowflake compare as bigint';

-- Implicit, so that coalesce(id, 0) has a type.
CREATE CAST (integer AS snowflake) WITH FUNCTION snowflake(integer) AS IMPLICIT;
COMMENT ON CAST (integer AS snowflake) IS 'integer as an ID';

-- Not implicit: where f exists for snowflake and for integer or bigint, a call
-- with a smallint would be ambiguous.
CREATE CAST (smallint AS snowflake) WITH FUNCTION snowflake(smallint) AS ASSIGNMENT;
COMMENT ON CAST (smallint AS snowflake) IS 'smallint as an ID';

CREATE CAST (numeric AS snowflake) WITH FUNCTION snowflake(numeric);
COMMENT ON CAST (numeric AS snowflake) IS 'numeric as an ID';

CREATE CAST (double precision AS snowflake) WITH FUNCTION snowflake(double precision);
COMMENT ON CAST (double precision AS snowflake) IS 'double precision as an ID';

-- Not with the functions of bigint, although these take a snowflake: pg_upgrade
-- may create a cast before that to bigint.

CREATE FUNCTION snowflake_to_integer(snowflake) RETURNS integer
AS 'int84' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_to_integer(snowflake) IS 'convert snowflake to integer';

CREATE CAST (snowflake AS integer) WITH FUNCTION snowflake_to_integer(snowflake);
COMMENT ON CAST (snowflake AS integer) IS 'ID as integer';

CREATE FUNCTION snowflake_to_numeric(snowflake) RETURNS numeric
AS 'int8_numeric' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_to_numeric(snowflake) IS 'convert snowflake to numeric';

CREATE CAST (snowflake AS numeric) WITH FUNCTION snowflake_to_numeric(snowflake);
COMMENT ON CAST (snowflake AS numeric) IS 'ID as numeric';

CREATE FUNCTION snowflake_to_float8(snowflake) RETURNS double precision
AS 'i8tod' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_to_float8(snowflake) IS 'convert snowflake to double precision';

CREATE CAST (snowflake AS double precision) WITH FUNCTION snowflake_to_float8(snowflake);
COMMENT ON CAST (snowflake AS double precision) IS 'ID as double precision, which rounds it';
