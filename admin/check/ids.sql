/* admin/check/ids.sql */

-- snowflake_check() looks at the IDs in tables, by indexes only.  Knows no default and no
-- sequence.

-- The largest values of a column, read by an index that begins with it and without running code
-- of the table, or what kept this from reading them
CREATE FUNCTION snowflake_admin.largest_ids(tab regclass, col name, low bigint, high bigint, most integer,
	OUT ids bigint[], OUT obstacle text)
AS 'MODULE_PATHNAME', 'snowflake_largest_ids' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION snowflake_admin.largest_ids IS
'for reading the largest values of a column without running code of its table';

-- The IDs in a range, at most "most", the largest first, or why they could not be read.  Both are
-- NULL if there are none, or if a bound is NULL, as those of a layout without a time are.  Rows of
-- partitions are read through their table, those of other children are not.
CREATE FUNCTION snowflake_admin.ids_between(tab regclass, col name, low bigint, high bigint, most integer,
	OUT ids bigint[], OUT obstacle text)
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	SELECT 'Citus keeps its rows in shards' INTO obstacle FROM engines(ARRAY[tab]) WHERE engine = 'Citus';
	IF obstacle IS NULL THEN
		SELECT * INTO ids, obstacle FROM largest_ids(tab, col, low, high, most);
	END IF;
EXCEPTION
	WHEN lock_not_available THEN obstacle := 'locked';
	WHEN OTHERS THEN obstacle := SQLERRM;
END
$$;
COMMENT ON FUNCTION snowflake_admin.ids_between IS 'for the largest IDs of a range, without an error';

-- The time of an ID.  The largest bigint, which as a bound is infinite, has the one of the
-- ID before it.
CREATE FUNCTION snowflake_admin.id_time(id bigint, layout snowflake_layout) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT bound_time(least(id, 9223372036854775806), layout)
$$;
COMMENT ON FUNCTION snowflake_admin.id_time IS 'for the time of an ID';

-- Have the IDs of a layout shards?  Without them, as with mastodon, another shard generates the same IDs.
CREATE FUNCTION snowflake_admin.has_shards(layout snowflake_layout) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT shards_of(ARRAY[least_id()], layout) IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_admin.has_shards IS 'for telling layouts without shards';

-- The table that has the largest ID from "low" on, and that ID
CREATE FUNCTION snowflake_admin.largest_id(tabs regclass[], cols name[], low bigint)
RETURNS TABLE (tab regclass, id bigint)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT tab, ids[1] FROM unnest(tabs, cols) AS t (tab, col)
	CROSS JOIN LATERAL ids_between(tab, col, low, 9223372036854775807, 1)
	WHERE ids IS NOT NULL ORDER BY ids[1] DESC LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_admin.largest_id IS 'for the largest ID of several tables';

-- How many of the IDs from "low" on are of each shard, for each table, at most "most" of
-- them; with "more", there may be others.  The own ones are those of the given shards, NULL for any.
-- In a layout without shards all are own ones if any shard is given.
CREATE FUNCTION snowflake_admin.id_counts(tabs regclass[], cols name[], shards integer[],
	layout snowflake_layout, low bigint, most integer)
RETURNS TABLE (tab regclass, col name, shard integer, is_own boolean, number bigint, more boolean, largest bigint,
	obstacle text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT t.tab, t.col, i.shard, coalesce(i.shard = ANY (shards), true), count(id),
		cardinality(f.ids) = most, max(id), f.obstacle
	FROM (SELECT DISTINCT * FROM unnest(tabs, cols)) AS t (tab, col)
	CROSS JOIN LATERAL ids_between(t.tab, t.col, low, 9223372036854775807, most) AS f
	LEFT JOIN LATERAL unnest(f.ids, shards_of(f.ids, layout)) AS i (id, shard)
		ON true
	WHERE id IS NOT NULL OR f.obstacle IS NOT NULL
	GROUP BY t.tab, t.col, i.shard, cardinality(f.ids), f.obstacle
$$;
COMMENT ON FUNCTION snowflake_admin.id_counts IS 'for counts of IDs by table and shard';

-- The same of all tables together, with the table of the largest own ID, their shards, and what could
-- not be read, all of it in words, and the first
CREATE FUNCTION snowflake_admin.id_totals(tabs regclass[], cols name[], shards integer[],
	layout snowflake_layout, low bigint, most integer,
	OUT own bigint, OUT others bigint, OUT more boolean, OUT largest bigint, OUT tab regclass, OUT own_shards integer[],
	OUT unseen text, OUT unseen_tab regclass, OUT unseen_col name, OUT obstacle text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(sum(c.number) FILTER (WHERE is_own), 0)::bigint,
		coalesce(sum(c.number) FILTER (WHERE NOT is_own), 0)::bigint, coalesce(bool_or(c.more), false),
		max(c.largest) FILTER (WHERE is_own),
		(array_agg(c.tab ORDER BY c.largest DESC) FILTER (WHERE is_own AND c.obstacle IS NULL))[1],
		array_agg(DISTINCT c.shard) FILTER (WHERE is_own AND c.obstacle IS NULL),
		string_agg(DISTINCT format('%s (%s)', c.tab, c.obstacle), ', ') FILTER (WHERE c.obstacle IS NOT NULL),
		(array_agg(c.tab ORDER BY c.tab, c.col) FILTER (WHERE c.obstacle IS NOT NULL))[1],
		(array_agg(c.col ORDER BY c.tab, c.col) FILTER (WHERE c.obstacle IS NOT NULL))[1],
		(array_agg(c.obstacle ORDER BY c.tab, c.col) FILTER (WHERE c.obstacle IS NOT NULL))[1]
	FROM id_counts(tabs, cols, shards, layout, low, most) AS c
$$;
COMMENT ON FUNCTION snowflake_admin.id_totals IS 'for counts of IDs of all tables of a sequence';
