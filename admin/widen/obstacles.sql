/* admin/widen/obstacles.sql */

-- What keeps snowflake_widen() from going on: rights, what it cannot carry over to the new
-- columns, and what only looks like something that it has made.  Changes nothing.

-- Indexes and constraints that have our names, but are not on the columns, or not of the kind,
-- of what they are to replace
CREATE FUNCTION snowflake_admin.widen_misfits(columns widening[]) RETURNS TABLE (object text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	-- Indexes
	SELECT format('Index %s', fresh_oid::regclass)
	FROM widen_indexes(columns) AS n JOIN pg_index AS i ON i.indexrelid = index
	JOIN pg_index AS f ON f.indexrelid = fresh_oid
	WHERE (i.indisunique, i.indnkeyatts, i.indpred IS NULL) <> (f.indisunique, f.indnkeyatts, f.indpred IS NULL)
		OR f.indkey::text <> (SELECT string_agg(coalesce(wide_num, k)::text, ' ' ORDER BY pos)
			FROM unnest(i.indkey::smallint[]) WITH ORDINALITY AS u (k, pos)
			LEFT JOIN unnest(columns) AS w ON w.rel = n.rel AND num = k)
	-- Foreign keys
	UNION ALL SELECT format('Constraint "%s" of table %s', conname, conrelid::regclass)
	FROM widen_keys(columns) JOIN pg_constraint ON conrelid = child AND conname = fresh
	WHERE replace(regexp_replace(pg_get_constraintdef(oid), ' NOT VALID$', ''), ' (', '(')
		<> replace(widen_key_definition(columns, con), ' (', '(')
	-- The proof that a new column equals the old one
	UNION ALL SELECT format('Constraint "%s" of table %s', conname, rel)
	FROM unnest(columns) JOIN pg_constraint ON conrelid = rel AND contypid = 0 AND conname = wide
	WHERE regexp_replace(pg_get_constraintdef(oid), ' NOT VALID$', '') NOT IN (
		format('CHECK (((%1$I IS NOT NULL) AND (%1$I = %2$I)))', wide, narrow),
		format('CHECK ((NOT (%I IS DISTINCT FROM %I)))', wide, narrow))
	-- Other CHECK constraints
	UNION ALL SELECT format('Constraint "%s" of table %s', f.conname, c.rel)
	FROM widen_checks(columns) AS c
	JOIN pg_constraint AS o ON o.oid = con JOIN pg_constraint AS f ON f.conrelid = c.rel AND f.conname = fresh
	CROSS JOIN LATERAL (SELECT array_agg(coalesce(wide_num, k)) AS nums
		FROM unnest(o.conkey) AS k LEFT JOIN unnest(columns) AS w ON w.rel = c.rel AND num = k) AS wanted
	WHERE NOT (f.contype = 'c' AND f.conkey @> wanted.nums AND f.conkey <@ wanted.nums)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_misfits IS
'for finding indexes and constraints that others have given our names';

-- What has our names, but will not do as what we make, and what we made for something that is
-- there no longer
CREATE FUNCTION snowflake_admin.widen_name_obstacles(columns widening[])
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT object || ' has a name that snowflake_widen() uses, but is not what it creates.',
		'Drop or rename it, then call this again.'
	FROM widen_misfits(columns)
	UNION ALL SELECT format('"%s" of table %s replaces something that has been dropped or renamed.', relname, c.rel),
		'Drop it first, too, or call snowflake_widen() with undo => true.'
	FROM (SELECT rel, array_agg(wide_num) AS wide_nums FROM unnest(columns) GROUP BY rel) AS c
	JOIN pg_index ON indrelid = c.rel JOIN pg_class ON oid = indexrelid
	WHERE starts_with(relname, 'snowflake_widen_') AND index_has(oid, wide_nums)
		AND oid NOT IN (SELECT fresh_oid FROM widen_indexes(columns) WHERE fresh_oid IS NOT NULL)
	UNION ALL SELECT format('"%s" of table %s replaces something that has been dropped or renamed.', conname,
			conrelid::regclass),
		'Drop it first, too, or call snowflake_widen() with undo => true.'
	FROM widen_constraints(columns) JOIN pg_constraint ON oid = con AND is_new
	WHERE conparentid = 0 AND starts_with(conname, 'snowflake_widen_') AND (conrelid, conname) NOT IN (
		SELECT rel, fresh FROM widen_checks(columns) UNION ALL SELECT child, fresh FROM widen_keys(columns))
$$;
COMMENT ON FUNCTION snowflake_admin.widen_name_obstacles IS 'for refusing what has our names and is something else';

-- What to do with a column of a type that is neither a small integer nor that of IDs.  Columns that
-- refer to it and have its type come first: a bigint may refer to another number, but not the other
-- way round.
CREATE FUNCTION snowflake_admin.widen_instead(tab regclass, col name) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE typcategory
		WHEN 'S' THEN 'It need not become wider: 11 characters hold what snowflake_to_text() returns, and 19 hold an ID in '
			'decimal digits.'
		WHEN 'N' THEN 'While the application is stopped: ' || (
			SELECT string_agg(format('ALTER TABLE %s ALTER %I TYPE bigint', c.rel, c.name), '; ' ORDER BY place DESC, c.rel)
			FROM chain(tab, col) AS c JOIN pg_attribute AS a ON a.attrelid = c.rel AND a.attname = c.name
			WHERE a.atttypid = own.atttypid) || '.'
		ELSE 'Name a column of integers.' END
	FROM pg_attribute AS own JOIN pg_type ON pg_type.oid = atttypid WHERE attrelid = tab AND attname = col
$$;
COMMENT ON FUNCTION snowflake_admin.widen_instead IS 'for columns of other types than integers';

-- Columns of the chain that cannot become bigint, or not with all that they have.  PostgreSQL lets only
-- integers refer to an integer, so no more than the named column can be of another type.
CREATE FUNCTION snowflake_admin.widen_column_obstacles(tab regclass, col name, columns widening[])
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('Column %I of table %s has type %s.', attname, c.rel, format_type(atttypid, NULL)),
		leave_domain(c.rel, attname)
	FROM chain(tab, col) AS c
	JOIN pg_attribute ON attrelid = c.rel AND attname = c.name
	JOIN pg_type ON pg_type.oid = atttypid
	WHERE typtype = 'd' AND base_type(atttypid) IN ('smallint'::regtype, 'integer'::regtype)
	UNION ALL SELECT format('Column %I of table %s has type %s, and snowflake_widen() replaces smallint and integer only.',
			attname, tab, format_type(atttypid, atttypmod)), widen_instead(tab, col)
	FROM pg_attribute CROSS JOIN LATERAL base_type(atttypid) AS base
	WHERE attrelid = tab AND attname = col AND base NOT IN ('smallint'::regtype, 'integer'::regtype) AND NOT is_id(base)
	UNION ALL SELECT format('Column %I of table %s is generated, or has a security label.', narrow, rel),
		'Make it an ordinary column first.'
	FROM unnest(columns) JOIN pg_attribute ON attrelid = rel AND attnum = num
	WHERE attgenerated <> '' OR EXISTS (SELECT FROM pg_seclabel
		WHERE classoid = 'pg_class'::regclass AND objoid = rel AND objsubid = num)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_column_obstacles IS 'for refusing columns that cannot become bigint';

-- Tables that the command refuses, whatever the column
CREATE FUNCTION snowflake_admin.widen_table_obstacles(columns widening[])
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH t AS (SELECT * FROM pg_class WHERE oid IN (SELECT rel FROM unnest(columns)))
	SELECT format('Table %s %s.', oid::regclass, reason),
		'Change this first, or the type by ALTER TABLE while the application is stopped.'
	FROM t CROSS JOIN LATERAL (SELECT CASE
		WHEN relkind = 'p' THEN 'is partitioned'
		WHEN relkind <> 'r' OR relpersistence = 't' OR reloftype <> 0 THEN 'is foreign, temporary or typed'
		WHEN EXISTS (SELECT FROM pg_inherits WHERE oid IN (inhrelid, inhparent)) THEN 'is a partition, a parent or a child'
		WHEN EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = oid) THEN 'is filled by a subscription'
		WHEN EXISTS (SELECT FROM pg_rewrite WHERE ev_class = t.oid) THEN 'has a rule' END) AS r (reason)
	WHERE reason IS NOT NULL
	UNION ALL SELECT format('Row-level security of table %s applies to its owner, as whom its rows are filled.',
			t.oid::regclass),
		format('If nobody else uses role %s, ALTER TABLE %s NO FORCE ROW LEVEL SECURITY until it has ended.',
			relowner::regrole, t.oid::regclass)
	FROM t JOIN pg_roles ON pg_roles.oid = relowner
	WHERE relrowsecurity AND relforcerowsecurity AND NOT rolsuper AND NOT rolbypassrls
$$;
COMMENT ON FUNCTION snowflake_admin.widen_table_obstacles IS 'for refusing tables that cannot be widened';

-- Published tables.  A subscriber to which a row comes with a column that it lacks stops until it
-- has that column.  So the caller must say that all subscribers have the new columns; after the
-- swap, rows come with the old names again, and a bigint.  A subscriber that compares all columns,
-- because the table sends them all as its replica identity, would then find no row: it still has
-- the new columns, which are NULL in what comes.  It would go on without the change.
CREATE FUNCTION snowflake_admin.widen_publication_obstacles(columns widening[], published boolean)
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH t AS MATERIALIZED (
		SELECT c.oid, pubname, relreplident
		FROM (SELECT DISTINCT rel FROM unnest(columns)) AS w
		JOIN pg_class AS c ON c.oid = rel JOIN pg_namespace AS n ON n.oid = relnamespace
		JOIN pg_publication_tables ON schemaname = nspname AND tablename = relname)
	SELECT format('Table %s is in publication "%s", and has REPLICA IDENTITY FULL.', oid::regclass, pubname),
		format('ALTER TABLE %s REPLICA IDENTITY DEFAULT, or USING INDEX, until the columns of its subscribers are '
			'dropped again.', oid::regclass)
	FROM t WHERE relreplident = 'f'
	UNION ALL SELECT format('Table %s is in publication "%s".', oid::regclass, pubname),
		format('Execute this on each subscriber, or it will stop: %s Then call this with published => true. When '
			'it has ended and the subscriber has caught up, drop the columns there that are named snowflake_widen_.',
			(SELECT string_agg(format('ALTER TABLE %s %s;', rel, changes), ' ' ORDER BY place, rel) FROM (
				SELECT rel, place, string_agg(format('ADD %I bigint, ALTER %I TYPE bigint', wide, narrow), ', '
					ORDER BY num) AS changes
				FROM unnest(columns) WHERE rel IN (SELECT oid FROM t) GROUP BY rel, place) AS c))
	FROM t WHERE published IS NOT TRUE
$$;
COMMENT ON FUNCTION snowflake_admin.widen_publication_obstacles IS
'for refusing published tables whose subscribers are not ready';

-- Is an object in another session's temporary schema?  Such objects are no obstacle, and are
-- dropped with the old column.
CREATE FUNCTION snowflake_admin.is_others_temporary(class oid, object oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(bool_or(pg_is_other_temp_schema(schema)), false) FROM (
		SELECT relnamespace FROM pg_class WHERE class = 'pg_class'::regclass AND oid = object
		UNION ALL SELECT pronamespace FROM pg_proc WHERE class = 'pg_proc'::regclass AND oid = object
		UNION ALL SELECT relnamespace FROM pg_rewrite JOIN pg_class ON pg_class.oid = ev_class
			WHERE class = 'pg_rewrite'::regclass AND pg_rewrite.oid = object
		UNION ALL SELECT relnamespace FROM pg_attrdef JOIN pg_class ON pg_class.oid = adrelid
			WHERE class = 'pg_attrdef'::regclass AND pg_attrdef.oid = object) AS s (schema)
$$;
COMMENT ON FUNCTION snowflake_admin.is_others_temporary IS 'for letting no temporary object stop a command';

-- Does such an object depend on a column, or on the sequence of its identity?
CREATE FUNCTION snowflake_admin.has_others_temporary(rel oid, num smallint) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH dependents AS MATERIALIZED (
		SELECT classid, objid, deptype FROM pg_depend
		WHERE refclassid = 'pg_class'::regclass AND refobjid = rel AND refobjsubid = num
	)
	SELECT coalesce(bool_or(is_others_temporary(classid, objid)), false) FROM (
		SELECT classid, objid FROM dependents
		UNION ALL SELECT d.classid, d.objid FROM dependents AS s
		JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.objid
		WHERE s.classid = 'pg_class'::regclass AND s.deptype = 'i') AS d
$$;
COMMENT ON FUNCTION snowflake_admin.has_others_temporary IS
'for dropping an old column with other sessions'' temporary objects';

-- The types of which values contain rows of a table: the row type, arrays, domains, ranges and
-- multiranges of such a type, and row types of which a column is of such a type.  PostgreSQL's
-- own ALTER TABLE ... TYPE looks for the same.
CREATE FUNCTION snowflake_admin.types_with_row_of(tables oid[]) RETURNS TABLE (tab oid, type oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE parts (type, part) AS MATERIALIZED (
		SELECT oid, typelem FROM pg_type WHERE typelem <> 0
		UNION ALL SELECT oid, typbasetype FROM pg_type WHERE typtype = 'd'
		UNION ALL SELECT rngtypid, rngsubtype FROM pg_range
		UNION ALL SELECT rngmultitypid, rngtypid FROM pg_range
		UNION ALL SELECT reltype, atttypid FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
		WHERE reltype <> 0 AND attnum > 0 AND NOT attisdropped
	), found (tab, type) AS (
		SELECT oid, reltype FROM pg_class WHERE oid = ANY (tables)
		UNION SELECT tab, parts.type FROM found JOIN parts ON part = found.type
	)
	SELECT tab, type FROM found
$$;
COMMENT ON FUNCTION snowflake_admin.types_with_row_of IS 'for finding values that a change of a table would change';

-- Where rows of tables are stored as values: in columns of tables and of materialized views, and
-- in indexes.  Their field of the old column would be gone with it.  What other roles have counts
-- only if something is stored there, as everybody may use the type; other sessions' temporary
-- tables never do.
CREATE FUNCTION snowflake_admin.stored_rows(tables oid[])
RETURNS TABLE (tab oid, rel oid, col name, owner oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT t.oid, c.oid, attname, c.relowner
	FROM types_with_row_of(tables) AS w JOIN pg_class AS t ON t.oid = w.tab
	JOIN pg_attribute ON atttypid = w.type AND attnum > 0 AND NOT attisdropped
	JOIN pg_class AS c ON c.oid = attrelid
	WHERE c.relkind IN ('r', 'p', 'm', 'i', 'I') AND NOT pg_is_other_temp_schema(c.relnamespace)
		AND (c.relowner = t.relowner OR pg_relation_size(c.oid) > 0)
$$;
COMMENT ON FUNCTION snowflake_admin.stored_rows IS 'for refusing what would empty a column in stored rows';

-- What depends on an old column, or on the sequence of its identity, and is not made anew
CREATE FUNCTION snowflake_admin.widen_dependents(columns widening[])
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('The sequence of identity column %I of table %s is used by %s.', narrow, rel,
			place(u.class, u.object)),
		'Give that its own sequence first.'
	FROM unnest(columns)
	JOIN pg_depend AS d ON refclassid = 'pg_class'::regclass AND refobjid = rel AND refobjsubid = num
		AND classid = 'pg_class'::regclass AND deptype = 'i'
	JOIN sequence_users() AS u ON u.sequence = d.objid
	WHERE NOT is_others_temporary(u.class, u.object)
	UNION ALL SELECT format('%s depends on column %I of table %s.', upper(left(o.name, 1)) || substr(o.name, 2),
			narrow, rel),
		CASE classid WHEN 'pg_publication_rel'::regclass
			THEN 'Publish all rows and columns of the table first, with columns that its subscribers have.'
			ELSE 'Save its definition and its privileges, drop it, and create it again afterwards.' END
	FROM unnest(columns)
	JOIN pg_depend AS d ON refclassid = 'pg_class'::regclass AND refobjid = rel AND refobjsubid = num
	CROSS JOIN LATERAL (SELECT CASE classid WHEN 'pg_rewrite'::regclass
		THEN (SELECT pg_describe_object('pg_class'::regclass, ev_class, 0) FROM pg_rewrite WHERE oid = objid)
		WHEN 'pg_attrdef'::regclass
		THEN (SELECT format('generated column %I of table %s', attname, adrelid::regclass)
			FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE pg_attrdef.oid = objid)
		ELSE pg_describe_object(classid, objid, objsubid) END) AS o (name)
	WHERE NOT CASE classid
			WHEN 'pg_class'::regclass THEN EXISTS (SELECT FROM pg_class WHERE oid = objid AND relkind IN ('i', 'S'))
			WHEN 'pg_attrdef'::regclass THEN EXISTS (SELECT FROM pg_attrdef
				WHERE oid = objid AND adrelid = rel AND adnum = num)
			WHEN 'pg_statistic_ext'::regclass THEN EXISTS (SELECT FROM pg_statistic_ext
				WHERE oid = objid AND stxexprs IS NULL)
			WHEN 'pg_constraint'::regclass THEN EXISTS (SELECT FROM pg_constraint
				WHERE oid = objid AND contype IN ('c', 'f', 'n', 'p', 'u'))
			ELSE false END
		AND NOT is_others_temporary(classid, objid)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_dependents IS 'for refusing what would go with an old column';

-- Rows of the tables that are stored as values
CREATE FUNCTION snowflake_admin.widen_row_obstacles(columns widening[])
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('Column %I of %s, which belongs to %s, stores rows of table %s.', s.col,
			pg_describe_object('pg_class'::regclass, s.rel, 0), s.owner::regrole, s.tab::regclass),
		format('Their %I would become NULL. First drop what stores them, or give its column another type, such as jsonb.',
			(SELECT min(narrow) FROM unnest(columns) AS w WHERE w.rel = s.tab))
	FROM stored_rows(ARRAY(SELECT DISTINCT rel::oid FROM unnest(columns))) AS s
$$;
COMMENT ON FUNCTION snowflake_admin.widen_row_obstacles IS 'for refusing tables whose rows are stored elsewhere';

-- Indexes and constraints that cannot be made anew
CREATE FUNCTION snowflake_admin.widen_constraint_obstacles(columns widening[])
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('Foreign key "%s" of partitioned table %s refers to it.', name, child),
		'Drop it first, and add it again afterwards.'
	FROM widen_keys(columns) JOIN pg_class ON oid = child
	WHERE relkind = 'p' AND current_setting('server_version_num')::integer < 180000
	UNION ALL SELECT format('Constraint "%s" of table %s is deferrable, for periods, not enforced, or not valid.',
			conname, conrelid::regclass),
		'Drop it first.'
	FROM widen_constraints(columns) JOIN pg_constraint AS c ON oid = con
	WHERE contype IN ('p', 'u') AND condeferrable OR contype = 'n' AND NOT convalidated
		OR 'true' = to_jsonb(c) ->> 'conperiod' OR 'false' = to_jsonb(c) ->> 'conenforced'
	UNION ALL SELECT format('Index "%s" is invalid.', name), 'Drop it first, or create it again.'
	FROM widen_indexes(columns) JOIN pg_index ON indexrelid = index
	WHERE NOT indisvalid
$$;
COMMENT ON FUNCTION snowflake_admin.widen_constraint_obstacles IS
'for refusing indexes and constraints that new columns could not have';

-- The triggers that an UPDATE of only the new columns fires.  Those of UPDATE OF do if they name a new
-- column, or a generated one, which may depend on it.  Ordinary ones are off while a table is filled, by
-- session_replication_role.  Then those that are ENABLE REPLICA fire.  Those that are ALWAYS do in any case.
CREATE FUNCTION snowflake_admin.widen_fires(rel regclass, enabled "char")
RETURNS TABLE (trig name)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT tgname FROM pg_trigger
	WHERE tgrelid = rel AND NOT tgisinternal AND tgenabled = enabled AND tgtype & 16 <> 0
		AND (tgattr = '' OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = rel AND attnum = ANY (tgattr)
			AND (attgenerated <> '' OR attnum IN (SELECT p.wide_num FROM widen_pairs(rel) AS p))))
	EXCEPT SELECT p.trig FROM widen_pairs(rel) AS p
$$;
COMMENT ON FUNCTION snowflake_admin.widen_fires IS
'for telling which triggers would fire while a table is filled';

-- Is a type one of PostgreSQL's own, one that only a superuser can create, an enum, or an array of
-- such?  To read or make a value of another one may run code of its owner's: the CHECK of a domain or
-- the canonical function of a range, also where it is a part of a row.
CREATE FUNCTION snowflake_admin.is_plain_type(type oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(e.typnamespace, t.typnamespace) = 'pg_catalog'::regnamespace
		OR coalesce(e.typtype, t.typtype) IN ('b', 'e')
	FROM pg_type AS t LEFT JOIN pg_type AS e ON e.oid = t.typelem AND e.typarray = t.oid
	WHERE t.oid = type
$$;
COMMENT ON FUNCTION snowflake_admin.is_plain_type IS 'for trusting PostgreSQL''s own functions with values of a type';

-- What PostgreSQL evaluates for each row that is filled, and which may run code that is not its own.
-- All runs but what is known to be harmless, as one of PostgreSQL's functions may run a query that it is
-- given as text:
--
-- - pg_depend, which lists nothing of PostgreSQL's own, shows no more than the table and plain types.
--   Only superusers can create operator classes, and what text search runs.  A collation runs nothing.
-- - The expressions consist of nodes of these kinds, and of columns of plain types.  PostgreSQL 16 has
--   given some kinds another name.  A cast by input and output functions is one of them, and to a
--   plain type runs only these.
-- - All functions in them are IMMUTABLE.
--
-- A column of a domain is not checked again unless it is assigned to.  Policies do not apply to the
-- owner, and rules are refused; see widen_table_obstacles().
CREATE FUNCTION snowflake_admin.widen_code(rel regclass) RETURNS TABLE (object text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH code (class, oid, tree) AS MATERIALIZED (
		SELECT 'pg_class'::regclass, indexrelid, concat(indexprs, ' ', indpred) FROM pg_index WHERE indrelid = rel
		UNION ALL SELECT 'pg_attrdef'::regclass, d.oid, adbin::text
		FROM pg_attrdef AS d JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
		WHERE adrelid = rel AND attgenerated <> ''
		UNION ALL SELECT 'pg_constraint'::regclass, oid, conbin::text FROM pg_constraint
		WHERE conrelid = rel AND contype = 'c'
	)
	SELECT pg_describe_object(class, oid, 0) FROM code
	WHERE EXISTS (SELECT FROM pg_depend WHERE classid = class AND objid = code.oid AND CASE refclassid
			WHEN 'pg_class'::regclass THEN refobjid <> rel
			WHEN 'pg_type'::regclass THEN is_plain_type(refobjid) IS NOT TRUE
			ELSE refclassid NOT IN ('pg_constraint'::regclass, 'pg_opclass'::regclass, 'pg_ts_config'::regclass,
				'pg_collation'::regclass, 'pg_extension'::regclass) END)
		OR EXISTS (SELECT FROM pg_index JOIN pg_attribute ON attrelid = rel AND attnum = ANY (indkey)
			WHERE indexrelid = code.oid AND is_plain_type(base_type(atttypid)) IS NOT TRUE)
		OR EXISTS (SELECT FROM regexp_matches(tree, '\{(\w+)', 'g') AS kind
			WHERE kind[1] <> ALL ('{VAR,CONST,FUNCEXPR,OPEXPR,DISTINCTEXPR,NULLIFEXPR,SCALARARRAYOPEXPR,BOOLEXPR,NULLTEST,
				BOOLEANTEST,CASE,CASEEXPR,WHEN,CASEWHEN,CASETESTEXPR,COALESCE,COALESCEEXPR,MINMAX,MINMAXEXPR,RELABELTYPE,
				COERCEVIAIO,ARRAYCOERCEEXPR,ARRAY,ARRAYEXPR,SUBSCRIPTINGREF,COLLATE,COLLATEEXPR}'))
		OR EXISTS (SELECT FROM regexp_matches(tree, ' :vartype (\d+)', 'g') AS var
			WHERE is_plain_type(var[1]::oid) IS NOT TRUE)
		OR EXISTS (SELECT FROM regexp_matches(tree, ' :(funcid|opno) (\d+)', 'g') AS used
			LEFT JOIN pg_operator AS o ON used[1] = 'opno' AND o.oid = used[2]::oid
			LEFT JOIN pg_proc AS p ON p.oid = CASE used[1] WHEN 'opno' THEN oprcode ELSE used[2]::oid END
			WHERE provolatile IS DISTINCT FROM 'i')
$$;
COMMENT ON FUNCTION snowflake_admin.widen_code IS 'for refusing to turn triggers off beside an owner''s code';

-- The triggers of a table and their functions, and which version of each is there.  No lock on the
-- table keeps their owners from replacing functions.
CREATE FUNCTION snowflake_admin.widen_trigger_functions(rel regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT string_agg(concat_ws(' ', t.oid, p.oid, p.xmin), ', ' ORDER BY t.oid)
	FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = tgfoid WHERE tgrelid = rel AND NOT tgisinternal
$$;
COMMENT ON FUNCTION snowflake_admin.widen_trigger_functions IS 'for seeing that somebody has changed a function meanwhile';

-- Triggers that would fire after a new column's or for old rows, and a new column's that does not
-- fire always
CREATE FUNCTION snowflake_admin.widen_trigger_obstacles(columns widening[])
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH t AS (SELECT DISTINCT rel FROM unnest(columns))
	SELECT format('Trigger "%s" of table %s does not fire always.', tgname, rel),
		format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I first.', rel, tgname)
	FROM unnest(columns) JOIN pg_trigger ON tgrelid = rel AND tgname = trig
	WHERE tgenabled <> 'A'
	UNION ALL SELECT format('Trigger "%s" of table %s would fire after "%s".', tgname, rel, trig),
		'Rename it first.'
	FROM unnest(columns) JOIN pg_trigger ON tgrelid = rel
	WHERE tgtype & 3 = 3 AND tgname > trig COLLATE "C" AND NOT tgisinternal
		AND tgname NOT IN (SELECT p.trig FROM widen_pairs(rel) AS p)
	UNION ALL SELECT format('Trigger "%s" of table %s would fire for old rows, since it is ENABLE ALWAYS.', trig, rel),
		format('ALTER TABLE %1$s ENABLE TRIGGER %2$I first, and ENABLE ALWAYS TRIGGER %2$I after the command. Meanwhile it '
			'does not fire for rows that a subscription writes.', rel, trig)
	FROM t, widen_fires(rel, 'A')
	UNION ALL SELECT format('Trigger "%s" of table %s would fire for old rows while ordinary triggers are off, since it '
			'is ENABLE REPLICA.', trig, rel),
		format('ALTER TABLE %1$s DISABLE TRIGGER %2$I first, and ENABLE REPLICA TRIGGER %2$I after the command. Meanwhile '
			'it does not fire for rows that a subscription writes.', rel, trig)
	FROM t, widen_fires(rel, 'R') WHERE EXISTS (SELECT FROM widen_fires(rel, 'O'))
	UNION ALL SELECT format('Triggers of table %s would fire for old rows.', rel),
		format('Let a superuser GRANT SET ON PARAMETER session_replication_role TO %I. Then only this command turns them '
			'off. Or ALTER TABLE %s %s, and enable them after the command. Until then, no session fires them.',
			current_user, rel, o.disable)
	FROM t, LATERAL (SELECT string_agg(format('DISABLE TRIGGER %I', trig), ', ' ORDER BY trig) AS disable
		FROM widen_fires(rel, 'O')) AS o
	WHERE o.disable IS NOT NULL AND NOT has_parameter_privilege('session_replication_role', 'SET')
	-- While ordinary triggers are off, they and foreign keys are off for all that code writes.
	UNION ALL SELECT format('Triggers of table %s would fire for old rows, or other code of its owner would run while '
			'no ordinary trigger and no foreign key works, as %s uses more than immutable functions and types of '
			'PostgreSQL.', rel, object),
		format('If role %s is trusted with that, let a superuser GRANT SET ON PARAMETER session_replication_role TO %1$s, '
			'and REVOKE it afterwards. Or ALTER TABLE %s %s, and enable them after the command. Until then, no session '
			'fires them.', relowner::regrole, rel, o.disable)
	FROM t JOIN pg_class ON oid = rel, LATERAL (SELECT string_agg(format('DISABLE TRIGGER %I', trig), ', ' ORDER BY trig)
		FROM widen_fires(rel, 'O')) AS o (disable), LATERAL (SELECT min(c.object) FROM widen_code(rel) AS c) AS c (object)
	WHERE o.disable IS NOT NULL AND object IS NOT NULL
		AND NOT has_parameter_privilege(relowner, 'session_replication_role', 'SET')
$$;
COMMENT ON FUNCTION snowflake_admin.widen_trigger_obstacles IS
'for refusing triggers that would see or change too much';

-- An error unless the caller may do what the owner of all the tables may do.  A table may also
-- refer to a new column.
CREATE FUNCTION snowflake_admin.widen_require_owner(tab regclass, col name, columns widening[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
BEGIN
	PERFORM require_owner(ARRAY[tab]);
	PERFORM require_one_owner(ARRAY(
		SELECT rel FROM (
			SELECT rel FROM chain(tab, col)
			UNION SELECT conrelid FROM unnest(columns)
			JOIN pg_constraint ON contype = 'f' AND confrelid = rel AND wide_num = ANY (confkey)) AS t
		ORDER BY rel <> tab, rel));
	PERFORM require_owner(widen_tables(columns));
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_require_owner IS
'for refusing callers who do not own the tables, and tables of several owners';

-- Obstacles that others can make although all the tables are locked
CREATE FUNCTION snowflake_admin.widen_unlocked_obstacles(columns widening[], published boolean)
RETURNS TABLE (problem text, remedy text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
BEGIN
	RETURN QUERY SELECT * FROM widen_publication_obstacles(columns, published);
	RETURN QUERY SELECT * FROM widen_dependents(columns);
	RETURN QUERY SELECT * FROM widen_row_obstacles(columns);
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_unlocked_obstacles IS
'for finding what has come in the way of the swap although all tables are locked';

-- All that keeps the command from going on, what concerns most first
CREATE FUNCTION snowflake_admin.widen_obstacles(tab regclass, col name, columns widening[], published boolean)
RETURNS TABLE (problem text, remedy text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
BEGIN
	RETURN QUERY SELECT * FROM widen_table_obstacles(columns);
	RETURN QUERY SELECT * FROM widen_column_obstacles(tab, col, columns);
	RETURN QUERY SELECT * FROM widen_unlocked_obstacles(columns, published);
	RETURN QUERY SELECT * FROM widen_constraint_obstacles(columns);
	RETURN QUERY SELECT * FROM widen_name_obstacles(columns);
	RETURN QUERY SELECT * FROM widen_trigger_obstacles(columns);
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_obstacles IS 'for finding all that is in the way';

-- The error of an obstacle
CREATE FUNCTION snowflake_admin.widen_refuse(tab regclass, col name, problem text, remedy text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE object_not_in_prerequisite_state USING
		MESSAGE = format('cannot widen column %I of table %s', col, tab),
		DETAIL = problem, HINT = remedy;
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_refuse IS 'for saying what is in the way';

-- An error if the widening of a key has begun on one of these tables and not ended, unless that key
-- is one of these columns.  Then this call takes over what has been made.
CREATE FUNCTION snowflake_admin.widen_require_no_other(columns widening[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
DECLARE
	other record;
BEGIN
	SELECT m.* INTO other FROM widen_marks(ARRAY(SELECT rel FROM unnest(columns))) AS m
	WHERE NOT EXISTS (SELECT FROM unnest(columns) WHERE rel = m.key_of AND narrow = m.key) LIMIT 1;
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('snowflake_widen() has begun to widen column %I of table %s, and has not ended', other.key,
				other.key_of),
			DETAIL = format('It has added a column to table %s.', other.tab),
			HINT = format('First: %s, or to give up that, the same with undo => true.',
				call_of('snowflake_widen', other.key_of, format(', %L::name', other.key)));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_require_no_other IS
'for leaving what is being made for another key to its own calls';

-- The columns, or an error if something is in the way.  To undo what has been made, or to look
-- at it, the caller only needs the right to do it.
CREATE FUNCTION snowflake_admin.widen_require(tab regclass, col name, to_go_on boolean,
	published boolean DEFAULT false) RETURNS widening[]
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
DECLARE
	columns widening[];
BEGIN
	IF tab IS NULL OR col IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = format('%s must not be null',
			CASE WHEN tab IS NULL THEN 'tab' ELSE 'col' END);
	ELSIF NOT EXISTS (SELECT FROM pg_attribute
		WHERE attrelid = tab AND attname = col AND attnum > 0 AND NOT attisdropped)
	THEN
		RAISE undefined_column USING MESSAGE = format('column "%s" of table %s does not exist', col, tab);
	END IF;
	columns := ARRAY(SELECT w FROM widen_columns(tab, col) AS w);
	PERFORM widen_require_owner(tab, col, columns);
	IF to_go_on THEN
		PERFORM require_no_engine('snowflake_widen()', ARRAY(SELECT rel FROM unnest(columns)),
			hint => 'Copy its rows to a table whose key is bigint.');
		PERFORM widen_require_no_other(columns);
		PERFORM widen_refuse(tab, col, problem, remedy) FROM widen_obstacles(tab, col, columns, published);
	END IF;
	RETURN columns;
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_require IS
'for refusing what cannot be widened, or undone, with the first reason';
