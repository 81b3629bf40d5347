/* admin/widen/columns.sql */

-- What snowflake_widen() is about: the columns that are to become bigint, their tables, and
-- the indexes and constraints that go with them; and for each, what a former call has made
-- in its place.  Changes nothing, and knows no order of steps.
--
-- All of it lasts through dump and restore, which changes OIDs and the numbers of columns, and
-- through pg_upgrade.  A new column and its function are found through the trigger.  What replaces
-- an index or a constraint is on the same table, and its name has a number that comes from that
-- one's name.  Where somebody has taken a name, one more number follows.

-- A column that is to become bigint, its table and the table's place in the chain, and the new
-- column beside it with its trigger
CREATE TYPE snowflake_admin.widening AS (rel regclass, num smallint, place integer, narrow name, wide name,
	wide_num smallint, func text, trig name);
COMMENT ON TYPE snowflake_admin.widening IS
'for snowflake_widen(): a column that is to become bigint, and the new column, trigger and function beside it';

-- A name, or one like it that is not taken
CREATE FUNCTION snowflake_admin.free_name(base text, taken name[]) RETURNS name
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	candidate name := base;
	n integer := 1;
BEGIN
	WHILE candidate = ANY (taken) LOOP
		n := n + 1;
		candidate := with_suffix(base, '_' || n);
	END LOOP;
	RETURN candidate;
END
$$;
COMMENT ON FUNCTION snowflake_admin.free_name IS 'for making something although somebody has taken its name';

-- The name of what replaces an index or a constraint, if nobody has taken it
CREATE FUNCTION snowflake_admin.widen_name(replaced name) RETURNS name
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('snowflake_widen_%s', hashtext(replaced::text)::bigint & 4294967295)::name
$$;
COMMENT ON FUNCTION snowflake_admin.widen_name IS 'for naming what replaces an index or a constraint';

-- Is this such a name, or one like it?
CREATE FUNCTION snowflake_admin.widen_is_name(name name, replaced name) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT regexp_replace(name::text, '^(snowflake_widen_\d+)_\d+$', '\1') = widen_name(replaced)::text
$$;
COMMENT ON FUNCTION snowflake_admin.widen_is_name IS 'for finding what replaces an index or a constraint';

-- A column that is to become bigint, with what a former call has made beside it.  If that has a
-- wide_num, it is complete: it came with its trigger.  Otherwise the names are those that it will
-- get.  The trigger must fire after all others, which may change the old column.  Triggers fire in
-- the order of their names, so it is named after the last one that others have given such a name.
CREATE FUNCTION snowflake_admin.widen_column(tab regclass, num smallint, place integer) RETURNS widening
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT tab, a.attnum, $3, attname,
		coalesce(wide, free_name(format('snowflake_widen_%s', a.attnum),
			ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = tab
				UNION ALL SELECT conname FROM pg_constraint WHERE conrelid = tab))), wide_num,
		coalesce(func::text, format('%s.%I', relnamespace::regnamespace, free_name(
			with_suffix(('snowflake_widen_' || relname)::name, '_' || a.attnum),
			ARRAY(SELECT proname FROM pg_proc WHERE pronamespace = relnamespace
				AND proname >= 'snowflake_widen_' AND proname < 'snowflake_widen`')))),
		coalesce(trig, free_name(format('%s_%s', coalesce(
				(SELECT max(tgname COLLATE "C") FROM pg_trigger WHERE tgrelid = tab AND tgname > 'zz_snowflake_widen_'
					AND tgname LIKE 'zz\_snowflake\_widen\_%' AND tgname NOT IN (SELECT p.trig FROM widen_pairs(tab) AS p)),
				'zz_snowflake_widen'), a.attnum),
			ARRAY(SELECT tgname FROM pg_trigger WHERE tgrelid = tab)))
	FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = attrelid
	LEFT JOIN LATERAL (
		SELECT * FROM widen_pairs(tab) AS p WHERE p.num = a.attnum ORDER BY wide_num, trig LIMIT 1) AS p ON true
	WHERE attrelid = tab AND a.attnum = $2
$$;
COMMENT ON FUNCTION snowflake_admin.widen_column IS 'for finding or naming what is made beside a column';

-- All such columns of a chain.  Those that are bigint already are not among them.  A place is
-- that of the table.
CREATE FUNCTION snowflake_admin.widen_columns(tab regclass, col name) RETURNS SETOF widening
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT w.*
	FROM (
		SELECT c.rel, attnum, max(c.place) OVER (PARTITION BY c.rel) AS place
		FROM chain(tab, col) AS c JOIN pg_attribute ON attrelid = c.rel AND attname = c.name
		WHERE atttypid IN ('smallint'::regtype, 'integer'::regtype)) AS c,
	widen_column(c.rel, c.attnum, c.place) AS w
$$;
COMMENT ON FUNCTION snowflake_admin.widen_columns IS 'for finding the columns that are to become bigint';

-- Is one of these columns of its table a part of an index, or in one of its expressions?
CREATE FUNCTION snowflake_admin.index_has(index oid, nums smallint[]) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT indkey::smallint[] && nums OR EXISTS (SELECT FROM pg_depend
		WHERE classid = 'pg_class'::regclass AND objid = indexrelid
			AND refclassid = 'pg_class'::regclass AND refobjid = indrelid AND refobjsubid = ANY (nums))
	FROM pg_index WHERE indexrelid = index
$$;
COMMENT ON FUNCTION snowflake_admin.index_has IS 'for telling which indexes go with columns';

-- The indexes of which such a column is a part, and the new ones that a former call or the
-- caller has created.  "tail" is what follows USING in the definition.  Only the caller can
-- create one CONCURRENTLY, and drop what an interrupted try has left.  That of a small table
-- can be created here, while writers wait for some tenths of a second.
CREATE FUNCTION snowflake_admin.widen_indexes(columns widening[])
RETURNS TABLE (rel regclass, index oid, name name, is_unique boolean, tail text, schema regnamespace, fresh name,
	fresh_oid oid, fresh_valid boolean, by_caller boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT c.rel, i.indexrelid, r.relname, i.indisunique,
		substr(pg_get_indexdef(i.indexrelid), 1 + length(format('CREATE %sINDEX %I ON %s.%I USING ',
			CASE WHEN i.indisunique THEN 'UNIQUE ' END, r.relname, r.relnamespace::regnamespace, t.relname))),
		r.relnamespace, coalesce(f.relname, free_name(widen_name(r.relname), ARRAY(SELECT relname FROM pg_class
			WHERE relnamespace = r.relnamespace AND relname >= 'snowflake_widen_' AND relname < 'snowflake_widen`'))),
		f.oid, f.indisvalid, f.oid IS NOT NULL OR pg_relation_size(c.rel) > 8 * 1024 * 1024
	FROM (SELECT rel, array_agg(num) AS nums, array_agg(wide_num) AS wide_nums FROM unnest(columns) GROUP BY rel) AS c
	JOIN pg_class AS t ON t.oid = c.rel
	JOIN pg_index AS i ON i.indrelid = c.rel
	JOIN pg_class AS r ON r.oid = i.indexrelid
	LEFT JOIN LATERAL (
		SELECT * FROM pg_index JOIN pg_class ON oid = indexrelid
		WHERE indrelid = c.rel AND widen_is_name(relname, r.relname)) AS f ON true
	WHERE index_has(i.indexrelid, c.nums) AND NOT index_has(i.indexrelid, c.wide_nums)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_indexes IS
'for finding the indexes that new columns need, and those that they have';

-- The constraint that replaces another one of its table, or the name that it will have
CREATE FUNCTION snowflake_admin.widen_new_constraint(con oid, OUT name name, OUT validated boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(f.conname, free_name(widen_name(c.conname),
			ARRAY(SELECT conname FROM pg_constraint WHERE conrelid = c.conrelid))), f.convalidated
	FROM pg_constraint AS c
	LEFT JOIN pg_constraint AS f ON f.conrelid = c.conrelid AND f.contype = c.contype
		AND widen_is_name(f.conname, c.conname)
	WHERE c.oid = con
$$;
COMMENT ON FUNCTION snowflake_admin.widen_new_constraint IS 'for finding or naming what replaces a constraint';

-- The constraints in which such a column is, or the new one.  No index finds foreign keys by the table to
-- which they refer, but one of pg_depend does.  PostgreSQL expects few constraints in a database, and
-- would read what all of them depend on, if it did not look up the columns first.
CREATE FUNCTION snowflake_admin.widen_constraints(columns widening[]) RETURNS TABLE (con oid, is_new boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH dependents AS MATERIALIZED (
		SELECT classid, objid, refobjsubid IS NOT DISTINCT FROM wide_num AS is_new
		FROM unnest(columns) JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = rel
			AND refobjsubid IN (num, wide_num)
	)
	SELECT objid, bool_or(is_new) FROM dependents WHERE classid = 'pg_constraint'::regclass GROUP BY objid
$$;
COMMENT ON FUNCTION snowflake_admin.widen_constraints IS 'for telling new constraints from those that they replace';

-- The foreign keys of which such a column is a part, on either side, and the new ones.
-- A place is that of the table that refers to the other.
CREATE FUNCTION snowflake_admin.widen_keys(columns widening[])
RETURNS TABLE (con oid, name name, child regclass, parent regclass, place integer, validated boolean,
	fresh name, fresh_validated boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT c.oid, c.conname, c.conrelid, c.confrelid, coalesce(p.place, 0), c.convalidated,
		f.name, f.validated
	FROM widen_constraints(columns) AS o CROSS JOIN LATERAL (	-- OFFSET has them looked up, and many expected
		SELECT * FROM pg_constraint WHERE oid = o.con AND contype = 'f' AND conparentid = 0 OFFSET 0) AS c
	CROSS JOIN LATERAL widen_new_constraint(c.oid) AS f
	LEFT JOIN (SELECT rel, max(place) AS place FROM unnest(columns) GROUP BY rel) AS p ON p.rel = c.conrelid
	WHERE NOT o.is_new
$$;
COMMENT ON FUNCTION snowflake_admin.widen_keys IS
'for finding the foreign keys that new columns need, and those that they have';

-- A list of columns of a table, in which new columns have the places of those that they replace
CREATE FUNCTION snowflake_admin.widen_list(columns widening[], tab oid, nums smallint[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT string_agg(quote_ident(coalesce(wide, attname)), ', ' ORDER BY n)
	FROM unnest(nums) WITH ORDINALITY AS u (k, n)
	JOIN pg_attribute ON attrelid = tab AND attnum = k
	LEFT JOIN unnest(columns) ON rel = tab AND num = k
$$;
COMMENT ON FUNCTION snowflake_admin.widen_list IS 'for naming the columns of a new foreign key';

-- The definition of a new foreign key.  It consists of columns only, so it is composed anew.
CREATE FUNCTION snowflake_admin.widen_key_definition(columns widening[], con oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH action (code, command) AS (
		VALUES ('a', NULL), ('r', 'RESTRICT'), ('c', 'CASCADE'), ('n', 'SET NULL'), ('d', 'SET DEFAULT'))
	SELECT format('FOREIGN KEY (%s) REFERENCES %s (%s)', widen_list(columns, conrelid, conkey),
			confrelid::regclass, widen_list(columns, confrelid, confkey))
		|| CASE confmatchtype WHEN 'f' THEN ' MATCH FULL' ELSE '' END
		|| coalesce(' ON UPDATE ' || u.command, '')
		|| coalesce(' ON DELETE ' || d.command
			|| coalesce(' (' || widen_list(columns, conrelid, confdelsetcols) || ')', ''), '')
		|| CASE WHEN condeferrable THEN ' DEFERRABLE' ELSE '' END
		|| CASE WHEN condeferred THEN ' INITIALLY DEFERRED' ELSE '' END
	FROM pg_constraint JOIN action AS u ON u.code = confupdtype JOIN action AS d ON d.code = confdeltype
	WHERE oid = con
$$;
COMMENT ON FUNCTION snowflake_admin.widen_key_definition IS 'for adding foreign keys between new columns';

-- The CHECK constraints of new columns: those that replace one of an old column, and for each
-- column the proof that the new one equals it in all rows, which replaces none and is named
-- like the new column.  Many tables may have one of that name: contypid, which is 0, lets an index find
-- the table's.
CREATE FUNCTION snowflake_admin.widen_checks(columns widening[])
RETURNS TABLE (rel regclass, place integer, con oid, validated boolean, fresh name, fresh_validated boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT rel, place, NULL::oid, true, wide, f.convalidated
	FROM unnest(columns) LEFT JOIN pg_constraint AS f ON f.conrelid = rel AND f.contypid = 0 AND f.conname = wide
	UNION ALL SELECT DISTINCT rel, place, c.oid, c.convalidated, f.name, f.validated
	FROM unnest(columns)
	JOIN pg_constraint AS c ON c.conrelid = rel AND c.contype = 'c' AND num = ANY (c.conkey)
		AND c.oid NOT IN (SELECT con FROM widen_constraints(columns) WHERE is_new)
	CROSS JOIN LATERAL widen_new_constraint(c.oid) AS f
$$;
COMMENT ON FUNCTION snowflake_admin.widen_checks IS
'for finding the CHECK constraints that new columns need, and those that they have';

-- All tables, those that a foreign key refers to first
CREATE FUNCTION snowflake_admin.widen_tables(columns widening[]) RETURNS regclass[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_agg(rel ORDER BY place, rel) FROM (
		SELECT rel, max(place) AS place FROM (
			SELECT rel, place FROM unnest(columns)
			UNION ALL SELECT parent, 0 FROM widen_keys(columns)
			UNION ALL SELECT child, place FROM widen_keys(columns)) AS t
		GROUP BY rel) AS t
$$;
COMMENT ON FUNCTION snowflake_admin.widen_tables IS 'for locking all tables, parents before those that refer to them';

-- The extended statistics of such columns, and what replaces them in the last step.  Those that
-- have expressions are refused.
CREATE FUNCTION snowflake_admin.widen_statistics(columns widening[])
RETURNS TABLE (rel regclass, statistics oid, name name, schema regnamespace, fresh name, fresh_oid oid,
	kinds text, list text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT c.rel, s.oid, s.stxname, s.stxnamespace, coalesce(f.stxname, free_name(widen_name(s.stxname),
			ARRAY(SELECT stxname FROM pg_statistic_ext WHERE stxnamespace = s.stxnamespace))), f.oid,
		(SELECT string_agg(CASE kind WHEN 'd' THEN 'ndistinct' WHEN 'f' THEN 'dependencies' ELSE 'mcv' END, ', ')
			FROM unnest(s.stxkind) AS kind), widen_list(columns, c.rel, s.stxkeys::smallint[])
	FROM (SELECT rel, array_agg(num) AS nums FROM unnest(columns) GROUP BY rel) AS c
	JOIN pg_statistic_ext AS s ON s.stxrelid = c.rel AND s.stxexprs IS NULL AND s.stxkeys::smallint[] && nums
	LEFT JOIN pg_statistic_ext AS f ON f.stxrelid = c.rel AND widen_is_name(f.stxname, s.stxname)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_statistics IS 'for finding the extended statistics that new columns need';
