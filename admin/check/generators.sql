/* admin/check/generators.sql */

-- snowflake_check() finds the sequences that make IDs, and the tables that each one fills.

CREATE TYPE snowflake_admin.generator AS (
	-- As snowflake_sequences() has it
	sequence regclass, layout text, last_timestamp timestamptz, lead interval, expires timestamptz, state text,
	-- As the defaults and triggers have it that name it.  NULL if there are none.
	named text,									-- its layout
	by_setting boolean,							-- do all of them take their shard from the setting?
	unset boolean,								-- ... and does one of them find none there?
	tabs regclass[], cols name[], shards integer[]		-- a shard is NULL if it is computed
);
COMMENT ON TYPE snowflake_admin.generator IS
'for snowflake_check(): a sequence that makes IDs, and the tables that it fills';

-- The columns that each sequence fills, with its shard there: one row for each shard, or one
-- without a shard if any is computed.  Partitions count as their topmost parent.
CREATE FUNCTION snowflake_admin.sequence_columns(fillers filler[])
RETURNS TABLE (sequence regclass, tab regclass, col name, shard integer)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT sequence, tab, col, CASE WHEN NOT bool_or(shard IS NULL) OVER one THEN shard END
	FROM (
		SELECT f.sequence, CASE WHEN relispartition THEN f.root ELSE f.tab END, f.col, f.shard
		FROM unnest(fillers) AS f JOIN pg_class ON oid = f.tab
		WHERE f.sequence IS NOT NULL
	) AS named (sequence, tab, col, shard)
	WINDOW one AS (PARTITION BY sequence, tab, col)
$$;
COMMENT ON FUNCTION snowflake_admin.sequence_columns(filler[]) IS 'for the columns that sequences fill';

-- All sequences that make IDs, with their tables.  Those of a custom layout are known by the
-- defaults that name it.
CREATE FUNCTION snowflake_admin.generators(fillers filler[]) RETURNS SETOF generator
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH named AS (
		SELECT f.sequence, min(f.layout) AS layout, bool_and(f.is_built_in) AS is_built_in,
			bool_and(f.by_setting) AS by_setting, bool_or(f.by_setting AND f.shard IS NULL) AS unset
		FROM unnest(fillers) AS f WHERE f.sequence IS NOT NULL GROUP BY f.sequence
	), columns AS (
		SELECT sequence, array_agg(tab ORDER BY tab, col, shard) AS tabs,
			array_agg(col ORDER BY tab, col, shard) AS cols, array_agg(shard ORDER BY tab, col, shard) AS shards
		FROM sequence_columns(fillers) GROUP BY sequence
	), users AS MATERIALIZED (
		SELECT *, NOT is_built_in AND layout IS NOT NULL AS is_custom FROM named JOIN columns USING (sequence)
	)
	SELECT s.sequence, s.layout, s.last_timestamp, justify_hours(s.lead), s.expires, s.state,
		u.layout, u.by_setting, u.unset, u.tabs, u.cols, u.shards
	FROM sequence_states() AS s LEFT JOIN users AS u USING (sequence)
	WHERE u.is_custom IS NOT TRUE
	UNION ALL SELECT u.sequence, u.layout, s.last_timestamp, justify_hours(s.lead), s.expires, s.state,
		u.layout, u.by_setting, u.unset, u.tabs, u.cols, u.shards
	FROM users AS u CROSS JOIN LATERAL sequence_states(u.sequence, to_layout(u.layout)) AS s
	WHERE u.is_custom
$$;
COMMENT ON FUNCTION snowflake_admin.generators(filler[]) IS 'for the sequences that make IDs, and their tables';
