/* admin/check/find.sql */

-- snowflake_check() finds: what fills columns with IDs, which sequences make them, and
-- which IDs are in the tables, by indexes only.  Judges nothing.
--
-- None of the functions in check/ writes, so they run on a standby, too.  None waits for
-- locks for more than 20 ms: what somebody else has locked is in a row of its own.

-- The shard that sessions of this database begin with, if their role has no own
-- setting.  What a client brings along counts for this session's client alone, but
-- nobody can look up what others bring.
CREATE FUNCTION snowflake_admin.shard_setting(OUT place text, OUT shard integer)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT place, nullif(to_integer(value), -1) FROM (
		SELECT * FROM shard_settings() WHERE place NOT LIKE 'setting of role %'
		UNION ALL
		SELECT 'client', reset_val FROM pg_settings WHERE name = 'snowflake.shard' AND source = 'client'
	) AS settings
	ORDER BY place <> 'client', place NOT LIKE 'setting of database %', place <> 'setting of all roles',
		place <> 'command line'
	LIMIT 1
$$;

CREATE TYPE snowflake_admin.filler AS (tab regclass, col name, root regclass, class oid, object oid,
	code text, by_setting boolean, shard integer, sequence regclass, layout text, is_built_in boolean);

COMMENT ON TYPE snowflake_admin.filler IS
'for snowflake_check(): what fills a column with IDs';

CREATE TYPE snowflake_admin.generator AS (sequence regclass, layout text, last_timestamp timestamptz,
	lead interval, expires timestamptz, state text, named text, by_setting boolean, unset boolean,
	tabs regclass[], cols name[], shards integer[]);

COMMENT ON TYPE snowflake_admin.generator IS
'for snowflake_check(): a sequence that makes IDs, and the tables that it fills';

-- The columns to which a function assigns IDs as a trigger: names that stand between NEW and
-- an assignment, in a statement that then calls something that makes IDs
CREATE FUNCTION snowflake_admin.assigned(code text) RETURNS SETOF name
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT coalesce(replace(m[2], '""', '"'), lower(m[1]))::name
	FROM string_to_table(code, ';') AS statement
	CROSS JOIN LATERAL (SELECT substring(statement, '(?i)^(.*)' || call_pattern())) AS s (before)
	CROSS JOIN LATERAL regexp_matches(before,
		'\mnew\.(?:(\w+)|"((?:[^"]|"")+)")[ \t\r\n]*:?=', 'gi') AS m
$$;

-- What fills columns with IDs: a column's own default or that of its domain, the functions
-- that such a default calls, and triggers that assign to the column.  "shard" is NULL where
-- it is computed, or comes from a setting that is missing.  "code" only tells whether two are
-- the same.  One that makes IDs in several ways is there once for each.
CREATE FUNCTION snowflake_admin.fillers() RETURNS SETOF filler
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH RECURSIVE tops (tab, top) AS (
		SELECT inhrelid, inhparent FROM pg_inherits
		UNION SELECT tab, inhparent FROM tops JOIN pg_inherits ON inhrelid = top
	), pieces AS MATERIALIZED (
		SELECT p.n, p.class, p.object, p.owner, p.code, hashtextextended(p.code, 0)::text AS hash
		FROM pieces() AS p WHERE p.class <> 'pg_rewrite'::regclass
	), calls AS MATERIALIZED (
		SELECT n, c.shard, c.sequence, c.layout
		FROM pieces CROSS JOIN LATERAL calls(code) AS c WHERE function IN ('next_id', 'next_ids') AND complete
	), makers AS MATERIALIZED (
		SELECT DISTINCT n, coalesce(c.shard ~* 'snowflake_shard"?[ \t\r\n]*\([ \t\r\n]*\)|current_setting',
				c.shard IS NULL) AS by_setting,
			to_integer(literal(c.shard)) AS number,
			CASE WHEN c.sequence IS NULL THEN (SELECT next_id_seq())
				ELSE coalesce(own.oid, s.oid) END AS seq,
			c.layout IS NULL AS unnamed, literal(c.layout) AS layout
		FROM (SELECT DISTINCT *, literal(calls.sequence) AS name FROM calls) AS c JOIN pieces USING (n)
		LEFT JOIN sequence_names() AS s ON s.name = c.name AND s.owner = 0
		LEFT JOIN sequence_names() AS own ON own.name = c.name AND own.owner = pieces.owner
	), assigned AS MATERIALIZED (
		SELECT n, a.name FROM pieces CROSS JOIN LATERAL assigned(code) AS a (name)
		WHERE class = 'pg_proc'::regclass
	), columns AS MATERIALIZED (
		SELECT adrelid AS tab, adnum AS num, n
		FROM pieces JOIN pg_attrdef AS d ON class = 'pg_attrdef'::regclass AND object = d.oid
		JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE attgenerated = ''
		UNION SELECT attrelid, attnum, n
		FROM pieces JOIN pg_attribute ON class = 'pg_type'::regclass AND atttypid = object
			AND NOT atthasdef AND attnum > 0
		UNION SELECT adrelid, adnum, n
		FROM pieces JOIN pg_depend AS p ON class = 'pg_proc'::regclass AND refclassid = class AND refobjid = object
		JOIN pg_attrdef AS d ON classid = 'pg_attrdef'::regclass AND objid = d.oid
		UNION SELECT tgrelid, attnum, n
		FROM pieces JOIN pg_trigger ON class = 'pg_proc'::regclass AND tgfoid = object
			AND tgtype & 7 = 7	-- BEFORE INSERT FOR EACH ROW
		JOIN assigned USING (n)
		JOIN pg_attribute ON attrelid = tgrelid AND attnum > 0 AND lower(attname) = lower(name)
	)
	SELECT c.tab, attname, coalesce(top, c.tab), class, object, hash, by_setting,
		CASE WHEN by_setting THEN (SELECT s.shard FROM shard_setting() AS s)
			ELSE number END,
		seq, CASE WHEN unnamed THEN l.name ELSE m.layout END,
		unnamed OR m.layout IN (SELECT name FROM layouts())
	FROM columns AS c JOIN makers AS m USING (n) JOIN pieces USING (n)
	JOIN pg_class ON pg_class.oid = c.tab AND relkind IN ('r', 'p') AND relpersistence <> 't'
	JOIN pg_attribute ON attrelid = c.tab AND attnum = num AND NOT attisdropped
	LEFT JOIN (SELECT tab, max(top) AS top FROM tops
		WHERE top NOT IN (SELECT inhrelid FROM pg_inherits) GROUP BY tab) AS t
		ON t.tab = c.tab
	LEFT JOIN pg_sequence ON seqrelid = seq
	LEFT JOIN layouts() AS l ON max_value = seqmax
$$;

-- The largest values of a column, read by an index that begins with it, and by nobody's
-- code, or what kept this from reading them
CREATE FUNCTION snowflake_admin.largest_ids(tab regclass, col name, low bigint, high bigint, most integer,
	OUT ids bigint[], OUT obstacle text)
AS 'MODULE_PATHNAME', 'snowflake_largest_ids' LANGUAGE C VOLATILE STRICT;

-- The largest IDs in a range, most of them first, or why they could not be read.  A
-- layout without a time has no range.  Rows of partitions are read through their table,
-- those of other children are not.
CREATE FUNCTION snowflake_admin.ids_between(tab regclass, col name, low bigint, high bigint, most integer,
	OUT ids bigint[], OUT obstacle text)
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	SELECT * INTO ids, obstacle FROM largest_ids(tab, col, low, high, most);
EXCEPTION
	WHEN lock_not_available THEN obstacle := 'locked';
	WHEN OTHERS THEN obstacle := SQLERRM;
END
$$;

-- A layout as the last argument in a command
CREATE FUNCTION snowflake_admin.layout_argument(layout text) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format(', %L::%s.snowflake_layout', layout, snowflake_schema())
$$;

CREATE FUNCTION snowflake_admin.renumber_command(tab regclass, col name, shard integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT concat_ws('; ', string_agg(command, '; ' ORDER BY command),
		format('CALL @extschema@.snowflake_renumber(%L::regclass, %s::bigint, since => now() + interval ''1 s'')',
			tab, coalesce(shard, 0)))
	FROM renumber_indexes(tab, col)
$$;

-- The largest IDs of each table from "low" on, "most" of them; with "more", there may be
-- others.  A sequence's own are those of its shard for the table, NULL for any.
CREATE FUNCTION snowflake_admin.id_counts(tabs regclass[], cols name[], shards integer[],
	layout snowflake_layout, low bigint, most integer)
RETURNS TABLE (tab regclass, col name, own_shard integer, shard integer, is_own boolean, number bigint,
	more boolean, largest bigint, obstacle text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT t.tab, t.col, t.shard, coalesce(i.shard, t.shard), coalesce(i.shard = t.shard, true), count(id),
		cardinality(f.ids) = most, max(id), f.obstacle
	FROM unnest(tabs, cols, shards) AS t (tab, col, shard)
	CROSS JOIN LATERAL ids_between(t.tab, t.col, low, 9223372036854775807, most) AS f
	LEFT JOIN LATERAL unnest(f.ids, shards_of(f.ids, layout)) AS i (id, shard)
		ON true
	WHERE id IS NOT NULL OR f.obstacle IS NOT NULL
	GROUP BY t.tab, t.col, t.shard, i.shard, cardinality(f.ids), f.obstacle
$$;

-- ... all together, and a command for each table that has a sequence's own
CREATE FUNCTION snowflake_admin.reach(tabs regclass[], cols name[], shards integer[], layout snowflake_layout,
	low bigint, most integer, OUT own bigint, OUT others bigint, OUT more boolean, OUT largest bigint,
	OUT tab regclass, OUT renumber text, OUT unseen text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(sum(number) FILTER (WHERE is_own), 0)::bigint,
		coalesce(sum(number) FILTER (WHERE NOT is_own), 0)::bigint, coalesce(bool_or(more), false),
		max(largest) FILTER (WHERE is_own),
		(array_agg(tab ORDER BY largest DESC) FILTER (WHERE is_own AND obstacle IS NULL))[1],
		string_agg(DISTINCT renumber_command(tab, col, shard), '; ')
			FILTER (WHERE is_own AND obstacle IS NULL),
		string_agg(DISTINCT format('%s (%s)', tab, obstacle), ', ') FILTER (WHERE obstacle IS NOT NULL)
	FROM id_counts(tabs, cols, shards, layout, low, most)
$$;

-- All sequences that make IDs, with their tables, and the shard of the sequence's IDs
-- there, NULL for any.  Those of a custom layout are known by the defaults that name it.
CREATE FUNCTION snowflake_admin.generators(fillers snowflake_admin.filler[])
RETURNS SETOF generator
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH read AS (
		SELECT f.sequence, min(f.layout) OVER s AS layout, bool_and(f.is_built_in) OVER s AS is_built_in,
			bool_and(f.by_setting) OVER s AS by_setting,
			bool_or(f.by_setting AND f.shard IS NULL) OVER s AS unset,
			CASE WHEN relispartition THEN f.root ELSE f.tab END AS tab, f.col, f.shard
		FROM unnest(fillers) AS f JOIN pg_class ON oid = f.tab
		WHERE f.sequence IS NOT NULL
		WINDOW s AS (PARTITION BY f.sequence)
	), counted AS (
		SELECT DISTINCT sequence, layout, is_built_in, by_setting, unset, tab, col,
			CASE WHEN count(*) OVER c = count(shard) OVER c THEN shard END AS shard
		FROM read
		WINDOW c AS (PARTITION BY sequence, tab, col)
	), readers AS MATERIALIZED (
		SELECT sequence, layout, NOT is_built_in AND layout IS NOT NULL AS is_custom, by_setting, unset,
			array_agg(tab ORDER BY tab, col, shard) AS tabs, array_agg(col ORDER BY tab, col, shard) AS cols,
			array_agg(shard ORDER BY tab, col, shard) AS shards
		FROM counted GROUP BY sequence, layout, is_built_in, by_setting, unset
	)
	SELECT s.sequence, s.layout, s.last_timestamp, justify_hours(s.lead), s.expires, s.state,
		r.layout, r.by_setting, r.unset, r.tabs, r.cols, r.shards
	FROM sequence_states() AS s LEFT JOIN readers AS r USING (sequence)
	WHERE r.is_custom IS NOT TRUE
	UNION ALL SELECT r.sequence, r.layout, s.last_timestamp, justify_hours(s.lead), s.expires, s.state,
		r.layout, r.by_setting, r.unset, r.tabs, r.cols, r.shards
	FROM readers AS r CROSS JOIN LATERAL
		sequence_states(r.sequence, to_layout(r.layout)) AS s
	WHERE r.is_custom
$$;

CREATE FUNCTION snowflake_admin.largest_id(tabs regclass[], cols name[], low bigint)
RETURNS TABLE (tab regclass, id bigint)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT tab, ids[1] FROM unnest(tabs, cols) AS t (tab, col)
	CROSS JOIN LATERAL ids_between(tab, col, low, 9223372036854775807, 1)
	WHERE ids IS NOT NULL ORDER BY ids[1] DESC LIMIT 1
$$;
