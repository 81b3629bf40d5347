/* admin/widen/columns.sql */

-- What snowflake_widen() is about: the columns that are to become bigint, their tables, and
-- the indexes and constraints that go with them; and for each, what a former call has made
-- in its place.  Changes nothing, and knows no order of steps.
--
-- What is made is named snowflake_widen_ and a number: that of the column in its table, or
-- the OID of the index or constraint that it is to replace.

CREATE TYPE snowflake_admin.widening AS (rel regclass, num smallint, place integer, narrow name, wide name,
	wide_num smallint, func text, trig name);

COMMENT ON TYPE snowflake_admin.widening IS
'for snowflake_widen(): a column that is to become bigint, and the new column, trigger and function beside it';

-- All such columns of a chain.  Those that are bigint already are not among them.  A place is
-- that of the table.  A column that a former call has added has a wide_num, and is complete:
-- its trigger came with it.
CREATE FUNCTION snowflake_admin.widen_columns(tab regclass, col name) RETURNS SETOF snowflake_admin.widening
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT c.rel, a.attnum, max(c.place) OVER (PARTITION BY c.rel), a.attname, wide.name, b.attnum,
		format('%s.%I', relnamespace::regnamespace, format('snowflake_widen_%s_%s', c.rel::oid, a.attnum)),
		format('zz_snowflake_widen_%s', a.attnum)::name
	FROM chain(tab, col) AS c
	JOIN pg_attribute AS a ON a.attrelid = c.rel AND a.attname = c.name
	JOIN pg_class ON pg_class.oid = c.rel
	CROSS JOIN LATERAL CAST(format('snowflake_widen_%s', a.attnum) AS name) AS wide (name)
	LEFT JOIN pg_attribute AS b ON b.attrelid = c.rel AND b.attname = wide.name AND NOT b.attisdropped
	WHERE a.atttypid IN ('smallint'::regtype, 'integer'::regtype)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_columns IS 'for finding the columns that are to become bigint';

-- The body of a column's trigger function.  It looks up no name: the assignment takes
-- PostgreSQL's own cast.
CREATE FUNCTION snowflake_admin.widen_body(narrow name, wide name) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('BEGIN NEW.%I := NEW.%I; RETURN NEW; END', wide, narrow)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_body IS
'for creating the function that keeps two columns equal, and for recognizing it';

-- The indexes of which such a column is a part, and the new ones that a former call or the
-- caller has created.  "tail" is what follows USING in the definition.  Only the caller can
-- create one CONCURRENTLY, and drop what an interrupted try has left.  That of a small table
-- can be created here, while writers wait for some tenths of a second.
CREATE FUNCTION snowflake_admin.widen_indexes(columns widening[])
RETURNS TABLE (rel regclass, index oid, name name, is_unique boolean, tail text, fresh text, fresh_oid oid,
	fresh_valid boolean, by_caller boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT c.rel, i.indexrelid, r.relname, i.indisunique,
		substr(pg_get_indexdef(i.indexrelid), 1 + length(format('CREATE %sINDEX %I ON %s.%I USING ',
			CASE WHEN i.indisunique THEN 'UNIQUE ' END, r.relname, r.relnamespace::regnamespace, t.relname))),
		format('%s.snowflake_widen_%s', r.relnamespace::regnamespace, i.indexrelid), fresh.oid, f.indisvalid,
		fresh.oid IS NOT NULL OR pg_relation_size(c.rel) > 8 * 1024 * 1024
	FROM (SELECT rel, array_agg(num) AS nums FROM unnest(columns) GROUP BY rel) AS c
	JOIN pg_class AS t ON t.oid = c.rel
	JOIN pg_index AS i ON i.indrelid = c.rel
	JOIN pg_class AS r ON r.oid = i.indexrelid
	LEFT JOIN (pg_index AS f JOIN pg_class AS fresh ON fresh.oid = f.indexrelid)
		ON f.indrelid = c.rel AND fresh.relname = format('snowflake_widen_%s', i.indexrelid)
	WHERE NOT starts_with(r.relname, 'snowflake_widen_')
		AND (i.indkey::smallint[] && c.nums OR EXISTS (SELECT FROM pg_depend
			WHERE classid = 'pg_class'::regclass AND objid = i.indexrelid
				AND refclassid = 'pg_class'::regclass AND refobjid = c.rel AND refobjsubid = ANY (c.nums)))
$$;
COMMENT ON FUNCTION snowflake_admin.widen_indexes IS
'for finding the indexes that new columns need, and those that they have';

-- The foreign keys of which such a column is a part, on either side, and the new ones.
-- A place is that of the table that refers to the other.
CREATE FUNCTION snowflake_admin.widen_keys(columns widening[])
RETURNS TABLE (con oid, name name, child regclass, parent regclass, place integer, validated boolean,
	fresh name, fresh_validated boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT c.oid, c.conname, c.conrelid, c.confrelid, coalesce(p.place, 0), c.convalidated, n.fresh, f.convalidated
	FROM pg_constraint AS c
	CROSS JOIN LATERAL CAST(format('snowflake_widen_%s', c.oid) AS name) AS n (fresh)
	LEFT JOIN pg_constraint AS f ON f.conrelid = c.conrelid AND f.conname = n.fresh
	LEFT JOIN (SELECT rel, max(place) AS place FROM unnest(columns) GROUP BY rel) AS p ON p.rel = c.conrelid
	WHERE c.contype = 'f' AND c.conparentid = 0 AND NOT starts_with(c.conname, 'snowflake_widen_') AND c.oid IN (
		SELECT oid FROM unnest(columns) JOIN pg_constraint ON conrelid = rel AND num = ANY (conkey)
		UNION SELECT oid FROM unnest(columns) JOIN pg_constraint ON confrelid = rel AND num = ANY (confkey))
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
-- like the column.
CREATE FUNCTION snowflake_admin.widen_checks(columns widening[])
RETURNS TABLE (rel regclass, place integer, con oid, validated boolean, fresh name, fresh_validated boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT c.rel, c.place, c.con, c.validated, c.fresh, f.convalidated
	FROM (
		SELECT rel, place, NULL::oid AS con, true AS validated, wide AS fresh FROM unnest(columns)
		UNION ALL SELECT DISTINCT rel, place, oid, convalidated, format('snowflake_widen_%s', oid)::name
		FROM unnest(columns) JOIN pg_constraint ON conrelid = rel AND contype = 'c' AND num = ANY (conkey)
		WHERE NOT starts_with(conname, 'snowflake_widen_')
	) AS c
	LEFT JOIN pg_constraint AS f ON f.conrelid = c.rel AND f.conname = c.fresh
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
