/* admin/check/fillers.sql */

-- snowflake_check() finds what generates IDs, and which columns it fills: defaults, domains and
-- triggers.  Knows neither where a sequence stands nor what a table contains.
--
-- None of the functions in check/ writes, so they run on a standby, too.  Called by
-- snowflake_check(), none waits for a lock for more than 20 ms.

-- The shard that sessions of this database begin with, if their role has no own
-- setting.  A setting that the client has sent is taken from this session; those of
-- other sessions cannot be looked up.  What is no shard is ignored when the library is loaded.
CREATE FUNCTION snowflake_admin.shard_setting(OUT place text, OUT shard integer)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT place, CASE WHEN to_integer(value) BETWEEN 0 AND 8191 THEN to_integer(value) END FROM (
		SELECT * FROM shard_settings() WHERE place NOT LIKE 'setting of role %'
		UNION ALL
		SELECT 'client', reset_val FROM pg_settings WHERE name = 'snowflake.shard' AND source = 'client'
	) AS settings
	ORDER BY place <> 'client', place NOT LIKE 'setting of database %', place <> 'setting of all roles',
		place <> 'command line'
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_admin.shard_setting IS 'for the shard of new sessions, and where it is set';

-- Does a role have its own shard?  Then sessions of one sequence may have any.
CREATE FUNCTION snowflake_admin.has_role_shards() RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT EXISTS (SELECT FROM shard_settings() WHERE place LIKE 'setting of role %')
$$;
COMMENT ON FUNCTION snowflake_admin.has_role_shards IS 'for settings of the shard that are those of roles';

-- The columns to which a function assigns IDs as a trigger: names that stand between NEW and
-- an assignment, in a statement that then calls something that generates IDs
CREATE FUNCTION snowflake_admin.assigned(code text) RETURNS SETOF name
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT coalesce(replace(m[2], '""', '"'), lower(m[1]))::name
	FROM string_to_table(code, ';') AS statement
	CROSS JOIN LATERAL (SELECT substring(statement, '(?i)^(.*)' || call_pattern())) AS s (before)
	CROSS JOIN LATERAL regexp_matches(before,
		'\mnew\.(?:(\w+)|"((?:[^"]|"")+)")[ \t\r\n]*:?=', 'gi') AS m
$$;
COMMENT ON FUNCTION snowflake_admin.assigned IS 'for columns that a trigger function assigns IDs to';

-- Does code make another value of the IDs that it generates, such as an obfuscated one?  It does if it
-- gives one to an operator or a function, but not if it casts IDs, or chooses among them.
CREATE FUNCTION snowflake_admin.alters_ids(code text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH marked (code) AS (
		SELECT regexp_replace(regexp_replace(left(code, 10000),
			'(?:(?:\w+|"(?:[^"]|"")*")\.)?"?\mnext_ids?"?[ \t\r\n]*\(' || inside_pattern() || '\)', chr(1), 'gi'),
			'''[^'']*''|::[ \t\r\n]*(?:[\w.]|"[^"]*")+', ' ', 'g')
	)
	SELECT code ~ (chr(1) || '[ \t\r\n)]*[-+*/%#&|^<>=~!@]') OR code ~ ('[-+*/%#&|^<>=~!@][ \t\r\n(]*' || chr(1))
		OR code ~* ('(?:\m(?!(?:coalesce|nullif|greatest|least|case|when|then|else|and|or|not|in)\M)\w+|")[ \t\r\n]*'
			|| '\((?:[^()]|\((?:[^()]|\([^()]*\))*\)|\()*' || chr(1))
	FROM marked
$$;
COMMENT ON FUNCTION snowflake_admin.alters_ids IS 'for defaults whose values are no IDs';

-- The same for the default of a column, its own or that of its domain
CREATE FUNCTION snowflake_admin.is_altered(tab regclass, col name) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(bool_or(alters_ids(pg_get_expr(tree, 0))), false)
	FROM column_defaults(ARRAY[is_altered.tab::oid]) AS d
	JOIN pg_attribute ON attrelid = d.tab AND attnum = d.col WHERE attname = is_altered.col
$$;
COMMENT ON FUNCTION snowflake_admin.is_altered IS 'for columns whose values are no IDs';

-- One way in which an object generates IDs, or an object whose code could not be read
CREATE TYPE snowflake_admin.maker AS (
	class oid, object oid,		-- a column's default, a domain, a rule or a function
	owner oid,
	is_read boolean,			-- if not, all that follows is NULL
	code text,					-- tells only whether two have the same
	alters boolean,				-- does a default make other values of its IDs?
	assigns name[],				-- the columns to which a trigger function assigns IDs
	by_setting boolean,			-- is the shard that of the setting?
	shard integer,				-- NULL if it is that of the setting, or computed
	shard_text text,			-- as the call has it, 'NULL' if any argument is NULL
	sequence regclass,			-- NULL if it is computed
	names_layout boolean,
	layout text					-- NULL if none is named, or if it is computed
);
COMMENT ON TYPE snowflake_admin.maker IS 'for snowflake_check(): one way in which an object generates IDs';

-- Everything that takes IDs of a sequence, or may do so.  What does it in several ways is there once for each.
CREATE FUNCTION snowflake_admin.id_makers() RETURNS SETOF maker
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH pieces AS MATERIALIZED (
		SELECT *, class <> 'pg_proc'::regclass AND alters_ids(code) AS alters FROM pieces()
	), calls AS MATERIALIZED (
		SELECT DISTINCT n, c.shard, c.sequence, literal(c.sequence) AS name, c.layout
		FROM pieces CROSS JOIN LATERAL calls(code) AS c WHERE function IN ('next_id', 'next_ids') AND complete
	)
	SELECT DISTINCT class, object, pieces.owner, true, hashtextextended(code, 0)::text,
		pieces.alters, CASE WHEN class = 'pg_proc'::regclass THEN ARRAY(SELECT assigned(code)) END,
		coalesce(c.shard ~* 'snowflake_shard"?[ \t\r\n]*\([ \t\r\n]*\)|current_setting', c.shard IS NULL),
		to_integer(literal(c.shard)),
		CASE WHEN EXISTS (SELECT FROM unnest(ARRAY[c.shard, c.sequence, c.layout]) AS argument
			WHERE argument ~* '^[ \t\r\n(]*null\M') THEN 'NULL' ELSE literal(c.shard) END,
		CASE WHEN c.sequence IS NULL THEN next_id_seq() ELSE coalesce(own.oid, every.oid) END::regclass,
		c.layout IS NOT NULL, literal(c.layout)
	FROM calls AS c JOIN pieces USING (n)
	LEFT JOIN sequence_names() AS every ON every.name = c.name AND every.owner = 0
	LEFT JOIN sequence_names() AS own ON own.name = c.name AND own.owner = pieces.owner
	UNION ALL SELECT class, object, owner, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
	FROM pieces WHERE NOT is_read
$$;
COMMENT ON FUNCTION snowflake_admin.id_makers IS 'for all code that takes IDs of sequences';

-- The columns that these objects fill.  Each object may be there more than once.  Rules fill
-- none.
CREATE FUNCTION snowflake_admin.filled_columns(makers maker[])
RETURNS TABLE (class oid, object oid, tab oid, num int2)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH makers AS MATERIALIZED (SELECT DISTINCT class, object, assigns FROM unnest(makers) WHERE is_read)
	-- A column's own default
	SELECT class, object, adrelid, adnum
	FROM makers JOIN pg_attrdef AS d ON class = 'pg_attrdef'::regclass AND object = d.oid
	JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE attgenerated = ''
	-- A column of a domain, if it has no own default
	UNION SELECT class, object, attrelid, attnum
	FROM makers JOIN pg_attribute ON class = 'pg_type'::regclass AND atttypid = object
		AND NOT atthasdef AND attnum > 0
	-- A function that a column's own default calls
	UNION SELECT class, object, adrelid, adnum
	FROM makers JOIN pg_depend ON class = 'pg_proc'::regclass AND refclassid = class AND refobjid = object
	JOIN pg_attrdef AS d ON classid = 'pg_attrdef'::regclass AND objid = d.oid
	-- A trigger BEFORE INSERT FOR EACH ROW
	UNION SELECT class, object, tgrelid, attnum
	FROM makers JOIN pg_trigger ON class = 'pg_proc'::regclass AND tgfoid = object AND tgtype & 7 = 7
	CROSS JOIN LATERAL unnest(assigns) AS name
	JOIN pg_attribute ON attrelid = tgrelid AND attnum > 0 AND lower(attname) = lower(name)
$$;
COMMENT ON FUNCTION snowflake_admin.filled_columns IS 'for the columns that defaults, domains and triggers fill';

-- The topmost parent of each partition and child table
CREATE FUNCTION snowflake_admin.topmost_parents()
RETURNS TABLE (tab oid, top oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE parents (tab, parent) AS (
		SELECT inhrelid, inhparent FROM pg_inherits
		UNION SELECT tab, inhparent FROM parents JOIN pg_inherits ON inhrelid = parent
	)
	SELECT tab, max(parent) FROM parents
	WHERE parent NOT IN (SELECT inhrelid FROM pg_inherits) GROUP BY tab
$$;
COMMENT ON FUNCTION snowflake_admin.topmost_parents IS 'for the topmost parents of partitions and child tables';

-- One way in which a column is filled with IDs
CREATE TYPE snowflake_admin.filler AS (
	tab regclass, col name, root regclass,	-- the table's topmost parent, or itself
	class oid, object oid, code text,		-- of the maker
	alters boolean,
	by_setting boolean,						-- is the shard that of the setting?
	shard integer,							-- NULL if it is computed, or the setting is missing
	shard_text text,						-- of the maker, or that of the setting
	sequence regclass,
	layout text, is_built_in boolean		-- as the call or the sequence's MAXVALUE says
);
COMMENT ON TYPE snowflake_admin.filler IS 'for snowflake_check(): what fills a column with IDs';

-- What fills columns with IDs: a column's own default or that of its domain, the functions
-- that its own default calls, and triggers that assign to the column.  One that generates IDs in
-- several ways is there once for each.
CREATE FUNCTION snowflake_admin.fillers(makers maker[]) RETURNS SETOF filler
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	SELECT c.tab, attname, coalesce(top, c.tab), class, object, code, alters, by_setting,
		CASE WHEN by_setting THEN s.shard ELSE m.shard END, CASE WHEN by_setting THEN s.shard::text ELSE m.shard_text END,
		m.sequence, CASE WHEN names_layout THEN m.layout ELSE l.name END,
		NOT names_layout OR m.layout IN (SELECT name FROM layouts())
	FROM filled_columns(makers) AS c JOIN unnest(makers) AS m USING (class, object)
	JOIN pg_class ON pg_class.oid = c.tab AND relkind IN ('r', 'p') AND relpersistence <> 't'
	JOIN pg_attribute ON attrelid = c.tab AND attnum = c.num AND NOT attisdropped
	LEFT JOIN topmost_parents() AS t ON t.tab = c.tab
	LEFT JOIN pg_sequence ON seqrelid = m.sequence
	LEFT JOIN layouts() AS l ON max_value = seqmax
	CROSS JOIN shard_setting() AS s
$$;
COMMENT ON FUNCTION snowflake_admin.fillers IS 'for what fills columns with IDs';
