/* admin/partition/attach.sql */

-- How a table becomes the first partition without a look at each of its rows, and without a
-- moment in which it rejects one.  Knows no other step of snowflake_partition().
--
-- ATTACH PARTITION reads all rows, while nobody can use the table, unless a valid CHECK proves
-- the partition's bound.  But a CHECK of a bound rejects the IDs of a day to come, if the call
-- that has made it is interrupted and forgotten.  So the CHECK is
--
--     CHECK (id < snowflake_admin.partition_limit())
--
-- which is true for all IDs, today and later.  PostgreSQL computes what is IMMUTABLE when it looks
-- for a proof.  To the one command that attaches the table, and to nothing that runs inside it, the
-- function returns the partition's bound.  Under its locks, that session knows by an index that all
-- IDs are below it.  No setting does this, because anybody could set it, and hide rows.

-- What all IDs of a table are below, while it is to become a partition: the largest bigint, or
-- the bound that attach_below() is about
CREATE FUNCTION snowflake_admin.partition_limit() RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_partition_limit' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_admin.partition_limit IS
'for the CHECK of a table that is to become a partition, which proves its bound and rejects nothing';

-- Attach a table as the partition of all IDs below a bound, without a look whether they are.  ATTACH
-- PARTITION evaluates CHECKs and expressions of indexes, so it runs as the table's owner.
CREATE FUNCTION snowflake_admin.attach_below(parent regclass, tab regclass, bound bigint) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_attach_below' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_admin.attach_below IS 'for the one command that partition_limit() is about';

-- The largest ID of a table from a bound on, or NULL if there is none.  Rows that a policy hides
-- from the table's owner are an error.
CREATE FUNCTION snowflake_admin.id_beyond(tab regclass, col text, bound bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp SET row_security = off AS $$
BEGIN
	RETURN (SELECT id FROM as_owner(tab,
		format('SELECT max(%1$s)::bigint FROM %2$s WHERE %1$s >= %3$s', col, tab, bound)) AS look (id bigint));
END
$$;
COMMENT ON FUNCTION snowflake_admin.id_beyond IS 'for knowing whether all IDs of a table are below a bound';

-- Attach a table as the partition of all IDs below a bound, or fail if one is not below it.
CREATE FUNCTION snowflake_admin.attach_before(parent regclass, tab regclass, bound bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	key text := partition_key(parent);
	is_forced boolean := (SELECT relforcerowsecurity FROM pg_class WHERE oid = tab);
	largest bigint;
BEGIN
	PERFORM require_owner(ARRAY[parent, tab]);
	PERFORM require_read_committed('snowflake_admin.attach_before()');
	PERFORM lock(ARRAY[tab], 1, false, 'ACCESS EXCLUSIVE');
	-- FORCE would make the look at the largest ID an error.  Everybody is locked out until it is back.
	IF is_forced THEN
		EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', tab);
	END IF;
	largest := id_beyond(tab, key, bound);
	IF is_forced THEN
		EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', tab);
	END IF;
	IF largest IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has IDs from %s on', parent, bound),
			DETAIL = format('The largest is %s.', largest),
			HINT = 'Call snowflake_partition() again, with at => a later time.';
	END IF;
	PERFORM attach_below(parent, tab, bound);
END
$$;
COMMENT ON FUNCTION snowflake_admin.attach_before IS 'for attaching the first partition without reading its rows';
