/* admin/keys.sql */

-- The keys that a sequence, an identity or next_id() makes, and what keeps one from
-- moving: snowflake_keys().  Changes nothing, and knows no command.

-- A key: a column, what makes its values, and the default if that does.  A column of which
-- the default names several sequences is there once for each.
CREATE TYPE snowflake_admin.key AS (tab oid, col int2, col_name name, type oid, made_by text, sequence oid,
	expression text);

COMMENT ON TYPE snowflake_admin.key IS 'for snowflake_keys(): a key, and what makes it';

-- The default of each column that has one, its own or that of its domain
CREATE FUNCTION snowflake_admin.column_defaults()
RETURNS TABLE (class oid, object oid, tab oid, col int2, tree pg_node_tree)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'pg_attrdef'::regclass, oid, adrelid, adnum, adbin FROM pg_attrdef
	UNION ALL SELECT 'pg_type'::regclass, t.oid, attrelid, attnum, typdefaultbin
	FROM pg_type AS t JOIN pg_attribute ON atttypid = t.oid AND NOT atthasdef AND attnum > 0
	WHERE typtype = 'd' AND typdefaultbin IS NOT NULL
$$;

COMMENT ON FUNCTION snowflake_admin.column_defaults IS 'for finding what fills columns';

-- Columns that next_id() or nextval() fills by such a default.  That it calls nextval() is not
-- in pg_depend, only in the expression.  An old dump may name the sequence as a text, on which
-- nothing depends.
CREATE FUNCTION snowflake_admin.filled()
RETURNS TABLE (tab oid, col int2, made_by text, sequence oid, expression text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH callers AS MATERIALIZED (
		SELECT classid, objid
		FROM extension_members()
		JOIN pg_proc AS p ON class = 'pg_proc'::regclass AND p.oid = object
		JOIN pg_depend ON refclassid = class AND refobjid = object
		WHERE extension = 'snowflake' AND proname = 'next_id'
	), fillers AS MATERIALIZED (
		SELECT *, (class, object) IN (SELECT * FROM callers) AS is_own FROM column_defaults()
		WHERE (class, object) IN (SELECT * FROM callers)
		OR tree::text LIKE '%:funcid ' || 'nextval'::regproc::oid || ' %'
	)
	SELECT DISTINCT tab, col, CASE WHEN is_own THEN 'next_id' ELSE 'nextval' END,
		coalesce(seqrelid, CASE WHEN is_own THEN next_id_seq() END), pg_get_expr(tree, 0)
	FROM fillers LEFT JOIN (pg_depend JOIN pg_sequence ON seqrelid = refobjid)
		ON classid = class AND objid = object AND refclassid = 'pg_class'::regclass AND deptype = 'n'
$$;

COMMENT ON FUNCTION snowflake_admin.filled IS 'for finding the columns that next_id() or nextval() fills';

-- All keys but those that a partition or child table has from its parent, as they
-- move together with it
CREATE FUNCTION snowflake_admin.all_keys() RETURNS SETOF key
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH found AS (
		SELECT * FROM filled()
		UNION ALL SELECT attrelid, attnum, 'GENERATED ' || CASE attidentity WHEN 'a' THEN 'ALWAYS'
			ELSE 'BY DEFAULT' END, objid, NULL
		FROM pg_attribute JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = attrelid
			AND refobjsubid = attnum AND classid = 'pg_class'::regclass AND deptype = 'i'
		WHERE attidentity <> ''
	), made AS MATERIALIZED (
		SELECT f.*, attname, atttypid
		FROM found AS f
		JOIN pg_class AS c ON c.oid = tab AND relkind IN ('r', 'p', 'f') AND relpersistence <> 't'
		JOIN pg_attribute ON attrelid = tab AND attnum = col AND NOT attisdropped
	)
	SELECT tab, col, attname, atttypid, made_by, sequence, expression FROM made AS m
	WHERE NOT EXISTS (
		SELECT FROM pg_inherits JOIN made AS parent ON parent.tab = inhparent
		WHERE inhrelid = m.tab AND parent.attname = m.attname
		AND (parent.made_by = m.made_by OR parent.made_by <> 'next_id' AND m.made_by = 'nextval')
		AND coalesce(parent.sequence, 0) = coalesce(m.sequence, 0))
$$;

COMMENT ON FUNCTION snowflake_admin.all_keys IS 'for listing keys';

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

-- Columns that take over the values of another one, by a foreign key or from a parent
CREATE FUNCTION snowflake_admin.column_links()
RETURNS TABLE (tab oid, col int2, to_tab oid, to_col int2)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT confrelid, f.col, conrelid, f.to_col
	FROM pg_constraint, unnest(confkey, conkey) AS f (col, to_col)
	WHERE contype = 'f' AND conparentid = 0
	UNION ALL SELECT inhparent, parent.attnum, inhrelid, child.attnum FROM pg_inherits
	JOIN pg_attribute AS parent ON parent.attrelid = inhparent AND parent.attnum > 0
	JOIN pg_attribute AS child ON child.attrelid = inhrelid AND child.attname = parent.attname
$$;

COMMENT ON FUNCTION snowflake_admin.column_links IS 'for following a key to the columns that take over its values';

-- Which columns are too small for the IDs of the n-th key: its own, and all that refer to it
-- or to one of its partitions.  A column that is one of a parent's is not named again.
CREATE FUNCTION snowflake_admin.too_small(tabs oid[], cols int2[])
RETURNS TABLE (n bigint, obstacle text, tab oid, col int2)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH RECURSIVE links AS MATERIALIZED (SELECT * FROM column_links()),
	takers AS (
		SELECT * FROM unnest(tabs, cols) WITH ORDINALITY AS k (tab, col, n)
		UNION SELECT to_tab, to_col, n FROM takers JOIN links USING (tab, col)
	), small AS MATERIALIZED (
		SELECT t.*, atttypid, attname FROM takers AS t JOIN pg_attribute ON attrelid = tab AND attnum = t.col
		WHERE NOT is_id(base_type(atttypid))
	)
	SELECT n, format('%s is %s',
		(pg_identify_object('pg_class'::regclass, tab, col)).identity, format_type(atttypid, NULL)), tab, col
	FROM small AS s
	WHERE NOT EXISTS (
		SELECT FROM pg_inherits JOIN small AS parent ON parent.tab = inhparent
		WHERE inhrelid = s.tab AND parent.attname = s.attname AND parent.n = s.n)
$$;

COMMENT ON FUNCTION snowflake_admin.too_small IS 'for finding the columns that cannot hold IDs';

-- What depends on a sequence, and for the default of a column, this column.  A child table that
-- has its parent's default does not count.
CREATE FUNCTION snowflake_admin.sequence_users()
RETURNS TABLE (sequence oid, class oid, object oid, tab oid, col int2)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH users AS MATERIALIZED (
		SELECT DISTINCT seqrelid, classid, objid, adrelid, adnum, attname
		FROM pg_depend JOIN pg_sequence ON seqrelid = refobjid
		LEFT JOIN (pg_attrdef AS d JOIN pg_attribute AS a ON attrelid = adrelid AND attnum = adnum)
			ON classid = 'pg_attrdef'::regclass AND objid = d.oid
		WHERE refclassid = 'pg_class'::regclass AND deptype = 'n'
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

-- Functions whose code, in lower case, may name a sequence, or ask for a table's.  The
-- condition on the code is for speed, as it leaves few functions to be searched for each of
-- many names.
CREATE FUNCTION snowflake_admin.functions_with_sequences()
RETURNS TABLE (function oid, owner oid, code text, asks_for_table boolean)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT p.oid, proowner, code, code ~ 'lastval|pg_get_serial_sequence'
	FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang, lower(prosrc) AS code
	WHERE p.oid >= 16384 AND lanname NOT IN ('c', 'internal') AND prosqlbody IS NULL
	AND code ~ 'seq|(?:next|curr|set|last)val|last_value'
	AND p.oid NOT IN (SELECT object FROM extension_members() WHERE class = 'pg_proc'::regclass)
	AND p.oid NOT IN (SELECT object FROM temporary_objects() WHERE class = 'pg_proc'::regclass)
$$;

COMMENT ON FUNCTION snowflake_admin.functions_with_sequences IS 'for choosing the functions whose code is searched';

-- Functions that name the n-th sequence, or that ask for the last number of the n-th
-- table, if there is one.  Nothing finds a name that a function composes.  Only what belongs to a role that may
-- use the sequence, or insert into the table, counts: others' functions may hold any text.
CREATE FUNCTION snowflake_admin.namers(sequences oid[], tables oid[])
RETURNS TABLE (n bigint, function oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH functions AS MATERIALIZED (SELECT * FROM functions_with_sequences()),
	names AS MATERIALIZED (
		SELECT n, lower(relname) AS name, oid IS DISTINCT FROM sequence AS of_table, sequence, tab
		FROM unnest(sequences, tables) WITH ORDINALITY AS k (sequence, tab, n)
		JOIN pg_class ON oid IN (sequence, tab)
	), owners AS MATERIALIZED (
		SELECT DISTINCT owner, n FROM (SELECT DISTINCT owner FROM functions) AS o, names
		WHERE has_sequence_privilege(owner, sequence, 'USAGE, SELECT, UPDATE')
			OR has_table_privilege(owner, tab, 'INSERT')
	)
	SELECT DISTINCT n, function
	FROM functions JOIN owners USING (owner) JOIN names USING (n)
	WHERE strpos(code, name) > 0 AND (asks_for_table OR NOT of_table)
		AND code ~ ('(?<!\w)' || regexp_replace(name, '(\W)', '\\\1', 'g') || '(?!\w)')
$$;

COMMENT ON FUNCTION snowflake_admin.namers IS 'for finding functions that need a sequence or its numbers';

-- The last value of a sequence, or NULL if it has none, or if it cannot be read: because the
-- caller may not, because somebody has locked it, or because it is another session's.
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
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH keys AS MATERIALIZED (
		SELECT *, row_number() OVER () AS n FROM unnest(keys) WHERE made_by <> 'next_id'
	), arrays AS MATERIALIZED (
		SELECT array_agg(tab ORDER BY n) AS tabs, array_agg(col ORDER BY n) AS cols,
			array_agg(sequence ORDER BY n) AS sequences
		FROM keys
	), obstacles (n, obstacle) AS (
		SELECT s.n, s.obstacle FROM arrays, too_small(tabs, cols) AS s
		UNION ALL SELECT n, place(class, object) || ' uses its sequence'
		FROM keys JOIN sequence_users() AS u USING (sequence)
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
		UNION ALL SELECT n, CASE WHEN sequence IS NULL THEN 'its default names the sequence as a text'
			ELSE 'its default is an expression' END
		FROM keys WHERE expression IS NOT NULL AND is_plain_nextval(expression, sequence) IS NOT TRUE
		-- That of a key that was moved back advances by id_step(), and has IDs as its numbers.
		UNION ALL SELECT n, 'its sequence advances by ' || seqincrement
		FROM keys JOIN pg_sequence ON seqrelid = sequence AND seqincrement <> 1
		WHERE coalesce(sequence_last_value(sequence), 0) < least_id()
		UNION ALL SELECT n, 'its numbers are larger than new IDs'
		FROM keys WHERE sequence_last_value(sequence) >= bound(now(), to_layout('instagram'))
	)
	SELECT k.tab, k.col, k.sequence, o.obstacle FROM keys AS k JOIN obstacles AS o USING (n)
$$;

COMMENT ON FUNCTION snowflake_admin.obstacles IS 'for snowflake_keys(): what keeps a key from moving';

CREATE FUNCTION @extschema@.snowflake_keys()
RETURNS TABLE (tab regclass, col name, type regtype, made_by text, sequence regclass, obstacle text)
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH found AS MATERIALIZED (SELECT array_agg(k) AS keys FROM all_keys() AS k)
	SELECT k.tab::regclass, k.col_name, k.type::regtype, k.made_by, k.sequence::regclass, o.obstacle
	FROM unnest((SELECT keys FROM found)) AS k LEFT JOIN obstacles((SELECT keys FROM found)) AS o
		ON o.tab = k.tab AND o.col = k.col AND o.sequence IS NOT DISTINCT FROM k.sequence
	ORDER BY k.tab::regclass::text COLLATE "C", col_name, k.sequence::regclass::text COLLATE "C",
		obstacle COLLATE "C"
$$;

COMMENT ON FUNCTION @extschema@.snowflake_keys() IS
'keys that a sequence, an identity or next_id() makes, and what keeps them from moving to next_id()';
