/* admin/snowflake.sql */

-- The functions of the extension "snowflake" that the rest needs.  Only that extension
-- knows which bits of an ID are what, and it may be in any schema: a body that is BEGIN
-- ATOMIC names its functions for good, and commands that are shown name them by
-- snowflake_schema(), the schema's present name.  Knows no table.

-- Which bits of an ID are what, only the extension "snowflake" knows.
--
-- No name is looked up in the caller's search_path.  Functions have their own;
-- procedures that commit may not have one.  So each of their transactions begins
-- with SET LOCAL, and their declarations, which are compiled before that, name the
-- schema of types that are no keywords.  Functions of "snowflake" may be in any
-- schema: they are called in bodies that are BEGIN ATOMIC, which name them for
-- good, and in commands by the schema's present name.

CREATE FUNCTION snowflake_admin.snowflake_schema() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT pg_catalog.quote_ident(nspname::text) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
	WHERE extname = 'snowflake';
END;

-- The built-in layouts, and the MAXVALUE of their sequences.  Some have no time.
CREATE FUNCTION snowflake_admin.layouts()
RETURNS TABLE (name text, max_value bigint, epoch timestamptz, tick interval, ids_per_tick bigint,
	expires timestamptz)
LANGUAGE sql STABLE PARALLEL RESTRICTED
BEGIN ATOMIC
	SELECT name, max_value, epoch, tick, ids_per_tick, expires FROM snowflake_layouts();
END;

-- Partitions by time
CREATE FUNCTION snowflake_admin.bound(ts timestamptz, layout snowflake_layout) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT snowflake_min_id(ts, layout);
END;

-- A bound need not be an ID that anything has made.
CREATE FUNCTION snowflake_admin.bound_time(id bigint, layout snowflake_layout) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
	SELECT CASE id
		WHEN '-9223372036854775808' THEN '-infinity'
		WHEN 9223372036854775807 THEN 'infinity'
		ELSE snowflake_timestamp(greatest(id, 0), layout) END;
END;

CREATE FUNCTION snowflake_admin.is_id(type oid) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT type IN ('bigint'::regtype::oid, 'snowflake'::regtype::oid);
END;

-- A shard that the layout has, or that of the setting, or next_id()'s errors.  The
-- layout is a text, because its type may be in another schema than we are.
CREATE FUNCTION snowflake_admin.require_shard(shard bigint, layout text) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT CASE WHEN shard IS NULL THEN snowflake_shard()
		ELSE snowflake_shard(snowflake_id(pg_catalog.now(), shard, 1::bigint, layout::snowflake_layout), layout::snowflake_layout) END;
END;

-- snowflake_sequences(), whatever schema it is in, of all sequences or of one
CREATE FUNCTION snowflake_admin.sequence_states(sequence regclass DEFAULT NULL, layout snowflake_layout DEFAULT NULL)
RETURNS TABLE (sequence regclass, layout text, last_timestamp timestamptz, lead interval, expires timestamptz,
	state text)
LANGUAGE sql VOLATILE
BEGIN ATOMIC
	SELECT * FROM snowflake_sequences() WHERE $1 IS NULL
	UNION ALL SELECT * FROM snowflake_sequences($1, $2);
END;

-- The layout of a text.  In the code of a function it may be none, and is NULL then.
CREATE FUNCTION snowflake_admin.to_layout(layout text) RETURNS snowflake_layout
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RETURN layout;
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END
$$;

-- Shards of IDs, or NULL if the layout has none
CREATE FUNCTION snowflake_admin.shards_of(ids bigint[], layout snowflake_layout) RETURNS integer[]
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT pg_catalog.array_agg(snowflake_shard(id, layout) ORDER BY n) FROM pg_catalog.unnest(ids) WITH ORDINALITY AS i (id, n)
	WHERE EXISTS (SELECT FROM snowflake_fields(ids[1], layout) WHERE field NOT IN ('timestamp', 'sequence'));
END;
