/* admin/check/generators.sql */

-- snowflake_check() finds the sequences that generate IDs, and the tables that each one fills.  Knows
-- nothing of the rows in these.

-- A sequence that generates IDs
CREATE TYPE snowflake_admin.generator AS (
	-- As snowflake_sequences() has it
	sequence regclass, layout text, last_timestamp timestamptz, lead interval, expires timestamptz, state text,
	-- As code has it that names the sequence
	is_used boolean,							-- is there any?
	has_own_shard boolean,						-- does any name a shard?
	used integer[],								-- all their shards, and NULL if any is computed
	lacks_shard boolean,						-- does any need the setting, which is missing?
	unread oid[],								-- objects whose code could not be read, and might
	-- As the defaults and triggers have it that name it.  NULL if there are none.
	named text,									-- its layout
	by_setting boolean,							-- do all of them take their shard from the setting?
	tabs regclass[], cols name[], shards integer[],		-- a shard is NULL if it is computed
	unset boolean[],							-- ... or if the setting is missing, and then this is true
	altered regclass[]							-- those whose defaults make other values of its IDs
);
COMMENT ON TYPE snowflake_admin.generator IS
'for snowflake_check(): a sequence that generates IDs, and the tables that it fills';

-- Was nothing seen of a sequence because somebody has locked it?
CREATE FUNCTION snowflake_admin.is_locked(g generator) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT g.state = 'waits' AND g.last_timestamp IS NULL
$$;
COMMENT ON FUNCTION snowflake_admin.is_locked IS 'for sequences that somebody has locked';

-- The columns that each sequence fills, with its shard there: one row for each shard, or one
-- without a shard if any is computed.  Partitions count as their topmost parent.  Nothing can be told
-- from values that a default has made of IDs, so such columns are not there.
CREATE FUNCTION snowflake_admin.sequence_columns(fillers filler[])
RETURNS TABLE (sequence regclass, tab regclass, col name, shard integer, unset boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT sequence, tab, col, CASE WHEN NOT bool_or(shard IS NULL) OVER one THEN shard END,
		bool_or(shard IS NULL AND by_setting) OVER one
	FROM (
		SELECT f.sequence, CASE WHEN relispartition THEN f.root ELSE f.tab END, f.col, f.shard, f.by_setting
		FROM unnest(fillers) AS f JOIN pg_class ON oid = f.tab
		WHERE f.sequence IS NOT NULL AND NOT f.alters
	) AS named (sequence, tab, col, shard, by_setting)
	WINDOW one AS (PARTITION BY sequence, tab, col)
$$;
COMMENT ON FUNCTION snowflake_admin.sequence_columns IS 'for the columns that sequences fill';

-- May a role generate IDs of a sequence?  Every role may use next_id_seq.
CREATE FUNCTION snowflake_admin.may_use(role oid, sequence regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT sequence = next_id_seq() OR has_sequence_privilege(role, sequence::oid, 'USAGE, UPDATE')
$$;
COMMENT ON FUNCTION snowflake_admin.may_use IS 'for whose code counts for a sequence';

-- The shards with which code may generate IDs of each sequence, or of any if "sequence" is NULL
CREATE FUNCTION snowflake_admin.used_shards(makers maker[])
RETURNS TABLE (sequence regclass, owner oid, shard integer, is_lacking boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT m.sequence, m.owner, CASE WHEN by_setting THEN s.shard ELSE m.shard END, by_setting AND s.shard IS NULL
	FROM unnest(makers) AS m CROSS JOIN shard_setting() AS s WHERE m.is_read
$$;
COMMENT ON FUNCTION snowflake_admin.used_shards IS 'for the shards with which code generates IDs';

-- The layout that defaults name for each sequence.  Anybody can name any layout in the default
-- of a table of his, so those of roles count that may use the sequence with it.  A layout that
-- is not built in takes UPDATE.
CREATE FUNCTION snowflake_admin.named_layouts(fillers filler[])
RETURNS TABLE (sequence regclass, layout text, is_custom boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT f.sequence, min(f.layout), NOT bool_and(f.is_built_in)
	FROM unnest(fillers) AS f JOIN pg_class ON oid = f.tab
	WHERE f.sequence <> next_id_seq() AND has_sequence_privilege(relowner, f.sequence::oid,
		CASE WHEN f.is_built_in THEN 'USAGE, UPDATE' ELSE 'UPDATE' END)
	GROUP BY f.sequence
$$;
COMMENT ON FUNCTION snowflake_admin.named_layouts IS 'for the layouts that defaults name for sequences';

-- Where all sequences stand, in the custom layout that defaults name, if they do
CREATE FUNCTION snowflake_admin.positions(fillers filler[])
RETURNS TABLE (sequence regclass, layout text, last_timestamp timestamptz, lead interval, expires timestamptz,
	state text, named text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH named AS MATERIALIZED (SELECT * FROM named_layouts(fillers)),
	custom AS (SELECT * FROM named WHERE is_custom AND layout IS NOT NULL)
	SELECT s.*, n.layout FROM sequence_states() AS s LEFT JOIN named AS n USING (sequence)
	WHERE s.sequence NOT IN (SELECT sequence FROM custom)
	UNION ALL SELECT c.sequence, c.layout, s.last_timestamp, s.lead, s.expires, s.state, c.layout
	FROM custom AS c CROSS JOIN LATERAL sequence_states(c.sequence, to_layout(c.layout)) AS s
$$;
COMMENT ON FUNCTION snowflake_admin.positions IS 'for where sequences stand';

-- All sequences that generate IDs, with their tables and what else is known of them.  Anybody can name
-- any sequence in the default of a table of his.  So one that serves no layout is there only if
-- code names it whose owner may use it: nothing else tells it from others' counters.
CREATE FUNCTION snowflake_admin.generators(makers maker[], fillers filler[]) RETURNS SETOF generator
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH columns AS (
		SELECT sequence, array_agg(tab ORDER BY tab, col, shard) AS tabs,
			array_agg(col ORDER BY tab, col, shard) AS cols, array_agg(shard ORDER BY tab, col, shard) AS shards,
			array_agg(unset ORDER BY tab, col, shard) AS unset
		FROM sequence_columns(fillers) GROUP BY sequence
	), settings AS (
		SELECT sequence, bool_and(f.by_setting) AS by_setting FROM unnest(fillers) AS f GROUP BY sequence
	), uses AS (
		SELECT sequence, bool_or(shard IS NOT NULL) AS has_own_shard FROM unnest(makers) GROUP BY sequence
	), altering AS (
		SELECT sequence, array_agg(DISTINCT f.root ORDER BY f.root) AS tabs FROM unnest(fillers) AS f
		WHERE f.alters GROUP BY sequence
	), shards AS MATERIALIZED (
		SELECT * FROM used_shards(makers)
	)
	SELECT p.sequence, p.layout, p.last_timestamp, justify_hours(p.lead), p.expires, p.state,
		u.sequence IS NOT NULL, coalesce(u.has_own_shard, false), w.used, coalesce(w.lacks_shard, false),
		ARRAY(SELECT m.object FROM unnest(makers) AS m WHERE NOT m.is_read AND may_use(m.owner, p.sequence)),
		p.named, s.by_setting, c.tabs, c.cols, c.shards, c.unset, coalesce(a.tabs, '{}')
	FROM positions(fillers) AS p LEFT JOIN columns AS c USING (sequence)
	LEFT JOIN settings AS s USING (sequence) LEFT JOIN uses AS u USING (sequence)
	LEFT JOIN altering AS a USING (sequence)
	CROSS JOIN LATERAL (SELECT coalesce(array_agg(DISTINCT d.shard) FILTER (WHERE NOT is_lacking), '{}') AS used,
		bool_or(is_lacking) AS lacks_shard
		FROM shards AS d WHERE coalesce(d.sequence, p.sequence) = p.sequence AND may_use(d.owner, p.sequence)) AS w
	WHERE p.layout IS NOT NULL OR p.sequence = next_id_seq()
		OR EXISTS (SELECT FROM shards AS d WHERE d.sequence = p.sequence AND may_use(d.owner, p.sequence))
$$;
COMMENT ON FUNCTION snowflake_admin.generators IS 'for the sequences that generate IDs, and their tables';
