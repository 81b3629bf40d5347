/* admin/keys.sql */

-- The keys that a sequence, an identity or next_id() generates, and what keeps one from
-- moving: snowflake_keys().  Changes nothing, and knows no command.

-- A key: a column, what generates its values, and the default if that does.  A column of which
-- the default names several sequences is there once for each.
CREATE TYPE snowflake_admin.key AS (tab oid, col int2, col_name name, type oid, made_by text, sequence oid,
	expression text);
COMMENT ON TYPE snowflake_admin.key IS 'for snowflake_keys(): a key, and what generates it';

-- The functions below say that they return few rows, because then PostgreSQL finds what belongs to
-- these rows by indexes: it takes no longer to look at one table where there are many others.

-- All tables and views, whose columns may have defaults
CREATE FUNCTION snowflake_admin.all_tables() RETURNS oid[]
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT ARRAY(SELECT oid FROM pg_class WHERE relkind IN ('r', 'p', 'f', 'v'))
$$;
COMMENT ON FUNCTION snowflake_admin.all_tables IS 'for looking at all tables, where a function can look at some';

-- The default of each column of tables that has one, its own or that of its domain
CREATE FUNCTION snowflake_admin.column_defaults(tables oid[])
RETURNS TABLE (class oid, object oid, tab oid, col int2, tree pg_node_tree)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 10 SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'pg_attrdef'::regclass, oid, adrelid, adnum, adbin FROM unnest(tables) AS t JOIN pg_attrdef ON adrelid = t
	UNION ALL SELECT 'pg_type'::regclass, pg_type.oid, attrelid, attnum, typdefaultbin
	FROM unnest(tables) AS t JOIN pg_attribute ON attrelid = t AND NOT atthasdef AND attnum > 0
	JOIN pg_type ON pg_type.oid = atttypid AND typtype = 'd' AND typdefaultbin IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_admin.column_defaults IS 'for finding what fills columns';

-- Columns of tables that next_id() or nextval() fills by such a default.  That it calls nextval()
-- is not in pg_depend, only in the expression.  An old dump may name the sequence as a text:
-- then the default does not depend on it, and the sequence is NULL.
CREATE FUNCTION snowflake_admin.filled(tables oid[] DEFAULT snowflake_admin.all_tables())
RETURNS TABLE (tab oid, col int2, made_by text, sequence oid, expression text)
LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 10 SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH makers AS MATERIALIZED (
		SELECT p.oid FROM extension_members() JOIN pg_proc AS p ON class = 'pg_proc'::regclass AND p.oid = object
		WHERE extension = 'snowflake' AND proname = 'next_id'
	), defaults AS MATERIALIZED (
		SELECT *, EXISTS (SELECT FROM pg_depend
			WHERE classid = class AND objid = object AND refclassid = 'pg_proc'::regclass
			AND refobjid IN (SELECT * FROM makers)) AS is_own
		FROM column_defaults(tables)
	)
	SELECT DISTINCT tab, col, CASE WHEN is_own THEN 'next_id' ELSE 'nextval' END,
		coalesce(seqrelid, CASE WHEN is_own THEN next_id_seq() END), pg_get_expr(tree, 0)
	FROM defaults LEFT JOIN (pg_depend JOIN pg_sequence ON seqrelid = refobjid)
		ON classid = class AND objid = object AND refclassid = 'pg_class'::regclass AND deptype = 'n'
	WHERE is_own OR tree::text LIKE '%:funcid ' || 'nextval'::regproc::oid || ' %'
$$;
COMMENT ON FUNCTION snowflake_admin.filled IS 'for finding the columns that next_id() or nextval() fills';

-- The keys of tables but those that a partition or child table has from its parent, as they
-- move together with it
CREATE FUNCTION snowflake_admin.keys_of(tables oid[] DEFAULT snowflake_admin.all_tables()) RETURNS SETOF key
LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 10
	SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH looked_at AS MATERIALIZED (
		SELECT t FROM unnest(tables) AS t
		UNION SELECT inhparent FROM unnest(tables) AS t JOIN pg_inherits ON inhrelid = t
	), found AS (
		SELECT * FROM filled(ARRAY(SELECT t FROM looked_at))
		UNION ALL SELECT attrelid, attnum, 'GENERATED ' || CASE attidentity WHEN 'a' THEN 'ALWAYS'
			ELSE 'BY DEFAULT' END, objid, NULL
		FROM looked_at JOIN pg_attribute ON attrelid = t AND attidentity <> ''
		JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = attrelid AND refobjsubid = attnum
			AND classid = 'pg_class'::regclass AND deptype = 'i'
	), made AS MATERIALIZED (
		SELECT f.*, attname, atttypid
		FROM found AS f
		JOIN pg_class AS c ON c.oid = tab AND relkind IN ('r', 'p', 'f') AND relpersistence <> 't'
		JOIN pg_attribute ON attrelid = tab AND attnum = col AND NOT attisdropped
	)
	SELECT tab, col, attname, atttypid, made_by, sequence, expression FROM made AS m
	-- IS TRUE makes PostgreSQL look tables up in a hash.  It expects few, and would compare each with each.
	WHERE (tab IN (SELECT unnest(tables))) IS TRUE AND NOT EXISTS (
		SELECT FROM pg_inherits JOIN made AS parent ON parent.tab = inhparent
		WHERE inhrelid = m.tab AND parent.attname = m.attname
		AND (parent.made_by = m.made_by OR parent.made_by <> 'next_id' AND m.made_by = 'nextval')
		AND coalesce(parent.sequence, 0) = coalesce(m.sequence, 0))
$$;
COMMENT ON FUNCTION snowflake_admin.keys_of IS 'for listing keys';

-- The type on which a domain is based in the end, or the type itself
CREATE FUNCTION snowflake_admin.base_type(type oid) RETURNS oid
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE base (oid, of_type) AS (
		SELECT oid, typbasetype FROM pg_type WHERE oid = type
		UNION ALL SELECT t.oid, t.typbasetype FROM base JOIN pg_type AS t ON t.oid = of_type
	)
	SELECT oid FROM base WHERE of_type = 0
$$;
COMMENT ON FUNCTION snowflake_admin.base_type IS 'for looking through domains';

-- The advice to give a column the type on which its domain is based, with the default that it has by
-- the domain, or NULL for a column of no domain
CREATE FUNCTION snowflake_admin.leave_domain(tab regclass, col name) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER TABLE %s ALTER %I TYPE %s', tab, col, format_type(base_type(atttypid), NULL))
		|| CASE WHEN atthasdef THEN ''
			ELSE coalesce(format(', ALTER %I SET DEFAULT ', col) || pg_get_expr(typdefaultbin, 0), '') END
		|| ' first. What the domain checks, a CHECK of the table can check.'
	FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
	WHERE attrelid = tab AND attname = col AND typtype = 'd'
$$;
COMMENT ON FUNCTION snowflake_admin.leave_domain IS 'for columns that cannot have the type of a domain';

-- Columns that take over the values of this one, by a foreign key or from a parent.  No index finds
-- foreign keys by the table to which they refer, but one of pg_depend does.
CREATE FUNCTION snowflake_admin.takers(tab oid, col int2)
RETURNS TABLE (to_tab oid, to_col int2)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 2 SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT conrelid, f.to_col
	FROM pg_depend JOIN pg_constraint AS c ON c.oid = objid AND contype = 'f' AND conparentid = 0 AND confrelid = tab,
		unnest(confkey, conkey) AS f (key, to_col)
	WHERE classid = 'pg_constraint'::regclass AND refclassid = 'pg_class'::regclass AND refobjid = tab
		AND refobjsubid = col AND f.key = col
	UNION SELECT inhrelid, child.attnum FROM pg_inherits
	JOIN pg_attribute AS parent ON parent.attrelid = inhparent AND parent.attnum = col
	JOIN pg_attribute AS child ON child.attrelid = inhrelid AND child.attname = parent.attname
	WHERE inhparent = tab
$$;
COMMENT ON FUNCTION snowflake_admin.takers IS 'for following a key to the columns that take over its values';

-- Which columns cannot hold the IDs of the n-th key, among its own and all that refer to it
-- or to one of its partitions.  A column that is one of a parent's is not named again.
CREATE FUNCTION snowflake_admin.cannot_hold_ids(tabs oid[], cols int2[])
RETURNS TABLE (n bigint, obstacle text, tab oid, col int2)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH RECURSIVE takers AS (
		SELECT * FROM unnest(tabs, cols) WITH ORDINALITY AS k (tab, col, n)
		UNION SELECT to_tab, to_col, n FROM takers AS t CROSS JOIN LATERAL takers(t.tab, t.col)
	), unfit AS MATERIALIZED (	-- LIMIT has each column looked up by its index, before its type is
		SELECT t.*, atttypid, attname
		FROM takers AS t CROSS JOIN LATERAL (
			SELECT * FROM pg_attribute WHERE attrelid = t.tab AND attnum = t.col LIMIT 1) AS a
		WHERE NOT is_id(base_type(atttypid))
	)
	SELECT n, format('%s is %s%s', (pg_identify_object('pg_class'::regclass, tab, col)).identity,
		format_type(atttypid, NULL),
		', based on ' || format_type(nullif(base_type(atttypid), atttypid), NULL)), tab, col
	FROM unfit AS u
	WHERE NOT EXISTS (
		SELECT FROM pg_inherits JOIN unfit AS parent ON parent.tab = inhparent
		WHERE inhrelid = u.tab AND parent.attname = u.attname AND parent.n = u.n)
$$;
COMMENT ON FUNCTION snowflake_admin.cannot_hold_ids IS 'for finding columns of other types than IDs have';

-- All sequences
CREATE FUNCTION snowflake_admin.all_sequences() RETURNS oid[]
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT ARRAY(SELECT seqrelid FROM pg_sequence)
$$;
COMMENT ON FUNCTION snowflake_admin.all_sequences IS 'for looking at all sequences, where a function can look at some';

-- What depends on sequences, and for the default of a column, this column.  A child table that
-- has its parent's default does not count.
CREATE FUNCTION snowflake_admin.sequence_users(sequences oid[] DEFAULT snowflake_admin.all_sequences())
RETURNS TABLE (sequence oid, class oid, object oid, tab oid, col int2)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 10 SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH users AS MATERIALIZED (
		SELECT DISTINCT s AS seqrelid, classid, objid, adrelid, adnum, attname
		FROM unnest(sequences) AS s
		JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = s AND deptype = 'n'
		LEFT JOIN (pg_attrdef AS d JOIN pg_attribute AS a ON attrelid = adrelid AND attnum = adnum)
			ON classid = 'pg_attrdef'::regclass AND objid = d.oid
	)
	SELECT seqrelid, classid, objid, adrelid, adnum FROM users AS u
	WHERE NOT EXISTS (
		SELECT FROM pg_inherits JOIN users AS parent ON parent.adrelid = inhparent
		WHERE inhrelid = u.adrelid AND parent.attname = u.attname AND parent.seqrelid = u.seqrelid)
	AND NOT EXISTS (	-- of the parent's identity
		SELECT FROM pg_inherits JOIN pg_attribute AS a ON attrelid = inhparent AND attidentity <> ''
		JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = attrelid AND refobjsubid = attnum
			AND classid = 'pg_class'::regclass AND deptype = 'i'
		WHERE inhrelid = u.adrelid AND a.attname = u.attname AND pg_depend.objid = u.seqrelid)
$$;
COMMENT ON FUNCTION snowflake_admin.sequence_users IS 'for finding what else needs a sequence';

-- Functions whose code, in lower case, may name one of these sequences, or ask for the sequence of
-- one of these tables.  Where there are few names, the others are left out.
CREATE FUNCTION snowflake_admin.functions_with_sequences(names text[])
RETURNS TABLE (function oid, owner oid, code text, asks_for_table boolean)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT p.oid, proowner, code, code ~ 'lastval|pg_get_serial_sequence'
	FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang, lower(prosrc) AS code
	WHERE p.oid >= 16384 AND lanname NOT IN ('c', 'internal') AND prosqlbody IS NULL
	AND (cardinality(names) > 10 OR EXISTS (SELECT FROM unnest(names) AS name WHERE strpos(code, name) > 0))
	AND code ~ 'seq|(?:next|curr|set|last)val|last_value'
	AND pronamespace NOT IN (SELECT * FROM temporary_schemas())
	AND p.oid NOT IN (SELECT object FROM extension_members() WHERE class = 'pg_proc'::regclass)
$$;
COMMENT ON FUNCTION snowflake_admin.functions_with_sequences IS 'for choosing the functions whose code is searched';

-- Functions that name the n-th sequence, or that query the last value of the n-th table, if
-- there is one.  Nothing finds a name that a function composes.  Only what belongs to a role that may
-- use the sequence, or insert into the table, counts: others' functions may hold any text.
--
-- So that many names in many functions take no longer than both together, names and functions
-- meet by a word: the first one of the name, which has to be a word of the code, too.
CREATE FUNCTION snowflake_admin.namers(sequences oid[], tables oid[])
RETURNS TABLE (n bigint, function oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH names AS MATERIALIZED (
		SELECT n, lower(relname) AS name, coalesce(substring(lower(relname), '\w+'), '') AS word,
			oid IS DISTINCT FROM sequence AS of_table, sequence, tab
		FROM unnest(sequences, tables) WITH ORDINALITY AS k (sequence, tab, n)
		JOIN pg_class ON oid IN (sequence, tab)
	), functions AS MATERIALIZED (
		SELECT * FROM functions_with_sequences(ARRAY(SELECT name FROM names))
	), words AS MATERIALIZED (
		SELECT DISTINCT function, word[1] AS word FROM functions, regexp_matches(code, '\w+', 'g') AS word
		UNION ALL SELECT function, '' FROM functions
	)
	SELECT DISTINCT n, function
	FROM names JOIN words USING (word) JOIN functions USING (function)
	WHERE (asks_for_table OR NOT of_table)
		AND (name = word OR strpos(code, name) > 0
			AND code ~ ('(?<!\w)' || regexp_replace(name, '(\W)', '\\\1', 'g') || '(?!\w)'))
		AND (has_sequence_privilege(owner, sequence, 'USAGE, SELECT, UPDATE') OR has_table_privilege(owner, tab, 'INSERT'))
$$;
COMMENT ON FUNCTION snowflake_admin.namers IS 'for finding functions that need a sequence or its values';

-- The last value of a sequence, or NULL if it has none, or if it cannot be read: because the
-- caller may not, because somebody has locked it, or because it is temporary or, on a standby,
-- unlogged.
CREATE FUNCTION snowflake_admin.sequence_last_value(sequence regclass) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp
	SET lock_timeout = '20ms' AS $$
BEGIN
	RETURN (SELECT CASE WHEN has_sequence_privilege(sequence, 'USAGE, SELECT')
			AND (relpersistence = 'p' OR relpersistence = 'u' AND NOT pg_is_in_recovery())
			THEN pg_sequence_last_value(sequence) END
		FROM pg_class WHERE oid = sequence);
EXCEPTION WHEN lock_not_available OR undefined_table THEN
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_admin.sequence_last_value IS 'for looking at a sequence without waiting';

-- Is a default, as PostgreSQL prints it, nextval() of a sequence and nothing else?  It quotes
-- the name without E'', whatever characters the name has.
CREATE FUNCTION snowflake_admin.is_plain_nextval(expression text, sequence regclass) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT expression = 'nextval(''' || replace(sequence::text, '''', '''''') || '''::regclass)'
$$;
COMMENT ON FUNCTION snowflake_admin.is_plain_nextval IS 'for telling whether a default may be replaced';

-- What keeps keys that have not moved yet from moving to next_id(), a row for each obstacle
CREATE FUNCTION snowflake_admin.obstacles(keys snowflake_admin.key[])
RETURNS TABLE (tab oid, col int2, sequence oid, obstacle text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH keys AS MATERIALIZED (
		SELECT *, row_number() OVER () AS n FROM unnest(keys) WHERE made_by <> 'next_id'
	), arrays AS MATERIALIZED (
		SELECT array_agg(tab ORDER BY n) AS tabs, array_agg(col ORDER BY n) AS cols,
			array_agg(sequence ORDER BY n) AS sequences
		FROM keys
	), obstacles (n, obstacle) AS (
		SELECT c.n, c.obstacle FROM arrays, cannot_hold_ids(tabs, cols) AS c
		UNION ALL SELECT n, place(class, object) || ' uses its sequence'
		FROM arrays CROSS JOIN LATERAL sequence_users(sequences) AS u JOIN keys USING (sequence)
		WHERE (u.tab, u.col) IS DISTINCT FROM (keys.tab, keys.col)
			-- Others' objects cannot use it, and another column can go on with it.  But an identity
			-- cannot be dropped beside them.
			AND (made_by <> 'nextval'
				OR (class, object) NOT IN (SELECT t.class, t.object FROM temporary_objects() AS t)
				AND has_sequence_privilege(owner_of(class, object), sequence, 'USAGE, SELECT, UPDATE')
					IS NOT FALSE
				AND NOT EXISTS (SELECT FROM pg_attrdef WHERE class = 'pg_attrdef'::regclass AND oid = object
					AND is_plain_nextval(pg_get_expr(adbin, 0), sequence)))
		UNION ALL SELECT n, place('pg_proc'::regclass, function) || ' names its sequence'
		FROM arrays, namers(sequences, tabs)
		UNION ALL SELECT n, 'it is not in the primary key' FROM keys
		WHERE NOT EXISTS (SELECT FROM pg_index WHERE indrelid = tab AND indisprimary AND col = ANY (indkey))
		UNION ALL SELECT n, CASE WHEN sequence IS NULL THEN 'its default names the sequence as text'
			ELSE 'its default is an expression' END
		FROM keys WHERE expression IS NOT NULL AND is_plain_nextval(expression, sequence) IS NOT TRUE
		-- That of a key that was moved back advances by id_step(), and has IDs as its values.
		UNION ALL SELECT n, 'its sequence advances by ' || seqincrement
		FROM keys JOIN pg_sequence ON seqrelid = sequence AND seqincrement <> 1
		WHERE coalesce(sequence_last_value(sequence), 0) < least_id()
		UNION ALL SELECT n, 'its values are larger than new IDs'
		FROM keys WHERE sequence_last_value(sequence) >= bound(now(), to_layout('instagram'))
		UNION ALL SELECT n, CASE WHEN col_name = distributed_by THEN 'Citus distributes the rows by it'
			ELSE 'Citus does not drop its identity' END
		FROM arrays CROSS JOIN LATERAL engines(tabs) AS e JOIN keys USING (tab)
		WHERE engine = 'Citus' AND (made_by <> 'nextval' OR col_name = distributed_by)
	)
	SELECT k.tab, k.col, k.sequence, o.obstacle FROM keys AS k JOIN obstacles AS o USING (n)
$$;
COMMENT ON FUNCTION snowflake_admin.obstacles IS 'for snowflake_keys(): what keeps a key from moving';

-- The keys of tables, with a row for each obstacle
CREATE FUNCTION snowflake_admin.keys_with_obstacles(tables oid[] DEFAULT snowflake_admin.all_tables())
RETURNS TABLE (tab regclass, col name, type regtype, made_by text, sequence regclass, obstacle text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH found AS MATERIALIZED (SELECT array_agg(k) AS keys FROM keys_of(tables) AS k)
	SELECT k.tab::regclass, k.col_name, k.type::regtype, k.made_by, k.sequence::regclass, o.obstacle
	FROM unnest((SELECT keys FROM found)) AS k LEFT JOIN obstacles((SELECT keys FROM found)) AS o
		ON o.tab = k.tab AND o.col = k.col AND o.sequence IS NOT DISTINCT FROM k.sequence
$$;
COMMENT ON FUNCTION snowflake_admin.keys_with_obstacles IS 'for deciding whether keys can move';

-- All keys of this database, with a row for each obstacle.  Extensions keep their own catalogs, which
-- nobody moves.
CREATE FUNCTION snowflake_admin.keys()
RETURNS TABLE (tab regclass, col name, type regtype, made_by text, sequence regclass, obstacle text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT * FROM keys_with_obstacles() AS k
	WHERE k.made_by = 'next_id' OR NOT EXISTS (SELECT FROM pg_depend
		WHERE classid = 'pg_class'::regclass AND objid = k.tab AND deptype = 'e')
	ORDER BY k.tab::text COLLATE "C", k.col, k.sequence::text COLLATE "C", k.obstacle COLLATE "C"
$$;
COMMENT ON FUNCTION snowflake_admin.keys IS 'for snowflake_keys()';

-- The same for users
CREATE FUNCTION @extschema@.snowflake_keys()
RETURNS TABLE (tab regclass, col name, type regtype, made_by text, sequence regclass, obstacle text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT keep_extension(false);
	SELECT * FROM keys()
$$;
COMMENT ON FUNCTION @extschema@.snowflake_keys() IS
'keys that a sequence, an identity or next_id() generates, and what keeps them from moving to next_id()';
