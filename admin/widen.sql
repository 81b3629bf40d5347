/* admin/widen.sql */

-- CALL snowflake_widen(): an integer column, and all that refer to it, become bigint while
-- the application goes on.  What is still to do is read from the catalogs, so a call goes on
-- where another one ended:
--
--     1. add a second column of type bigint to each table, and a trigger that keeps it equal
--     2. fill it for old rows, in batches
--     3. prove by a validated CHECK that all rows agree
--     4. create the indexes; those of large tables the caller creates CONCURRENTLY
--     5. add the foreign keys, and validate them
--     6. analyze, and swap all columns in one transaction
--
-- What the steps make is named snowflake_widen_ and a number: that of the column in its
-- table, or the OID of the index or constraint that it is to replace.
--
-- The tables' code runs as their owner: while columns are filled, and where an expression is
-- parsed, planned or proved.  All else the caller does, and PostgreSQL builds indexes as the
-- owner of their table.

-- A column that a former call has added is complete: its trigger came with it.
CREATE FUNCTION snowflake_admin.widen_columns(tab regclass, col name)
RETURNS TABLE (rel regclass, num smallint, place integer, narrow name, wide name, wide_num smallint, func text,
	trig name, added boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT c.rel, a.attnum, max(c.place) OVER (PARTITION BY c.rel), a.attname, wide.name, b.attnum,
		format('%s.%I', relnamespace::regnamespace, format('snowflake_widen_%s_%s', c.rel::oid, a.attnum)),
		format('zz_snowflake_widen_%s', a.attnum)::name, b.attnum IS NOT NULL
	FROM chain(tab, col) AS c
		JOIN pg_attribute AS a ON a.attrelid = c.rel AND a.attname = c.name
		JOIN pg_class ON pg_class.oid = c.rel
		CROSS JOIN LATERAL CAST(format('snowflake_widen_%s', a.attnum) AS name) AS wide (name)
		LEFT JOIN pg_attribute AS b ON b.attrelid = c.rel AND b.attname = wide.name AND NOT b.attisdropped
	WHERE a.atttypid IN ('smallint'::regtype, 'integer'::regtype)
$$;

-- The body of a column's trigger function.  It looks up no name: the assignment takes
-- PostgreSQL's own cast.
CREATE FUNCTION snowflake_admin.widen_body(narrow name, wide name) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('BEGIN NEW.%I := NEW.%I; RETURN NEW; END', wide, narrow)
$$;

-- Columns, triggers and functions that have our names, but are not what we make.  Whoever has
-- TRIGGER on a table can create such a trigger, and whoever may create objects in its schema
-- such a function, which would then run for each row that somebody writes.
CREATE FUNCTION snowflake_admin.widen_strangers(tab regclass, col name)
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('%s has a name that snowflake_widen() uses, but is not what it makes.', CASE
			WHEN NOT f.is_ours OR f.is_ours AND t.is_ours IS NULL THEN format('Function %s()', func)
			WHEN NOT t.is_ours OR t.is_ours AND w.wide_num IS NULL THEN format('Trigger "%s" of table %s', trig, rel)
			ELSE format('Column %I of table %s', wide, rel) END),
		format('In one transaction, drop what there is of column %I and trigger %I of table %s, and of function '
			'%s(). Then call this again.', wide, trig, rel, func)
	FROM widen_columns(tab, col) AS w
		JOIN pg_class ON pg_class.oid = rel
		LEFT JOIN LATERAL (SELECT atttypid = 'bigint'::regtype AND NOT atthasdef AND attidentity = '' AS is_ours
			FROM pg_attribute WHERE attrelid = rel AND attnum = wide_num) AS c ON true
		LEFT JOIN LATERAL (SELECT p.oid, pg_has_role(proowner, relowner, 'USAGE') AND NOT prosecdef
				AND lanname = 'plpgsql' AND prosrc = widen_body(narrow, wide) AND proconfig IS NULL
				AND prorettype = 'trigger'::regtype AS is_ours
			FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
			WHERE pronamespace = relnamespace AND pronargs = 0
				AND proname = format('snowflake_widen_%s_%s', rel::oid, num)) AS f ON true
		LEFT JOIN LATERAL (SELECT coalesce(tgfoid = f.oid, false) AND tgtype = 23 AND NOT tgisinternal
				AND tgnargs = 0 AND tgattr = '' AND tgqual IS NULL AND tgconstraint = 0 AS is_ours
			FROM pg_trigger WHERE tgrelid = rel AND tgname = trig) AS t ON true
	WHERE coalesce(c.is_ours, t.is_ours, f.is_ours) IS NOT NULL
		AND (c.is_ours IS NOT TRUE OR t.is_ours IS NOT TRUE OR f.is_ours IS NOT TRUE)
$$;

CREATE FUNCTION snowflake_admin.widen_indexes(tab regclass, col name)
RETURNS TABLE (rel regclass, index oid, name name, is_unique boolean, tail text, fresh text, fresh_oid oid,
	fresh_valid boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT c.rel, i.indexrelid, r.relname, i.indisunique,
		substr(pg_get_indexdef(i.indexrelid), 1 + length(format('CREATE %sINDEX %I ON %s.%I USING ',
			CASE WHEN i.indisunique THEN 'UNIQUE ' END, r.relname, r.relnamespace::regnamespace, t.relname))),
		format('%s.snowflake_widen_%s', r.relnamespace::regnamespace, i.indexrelid), fresh.oid, f.indisvalid
	FROM (SELECT rel, array_agg(num) AS nums FROM widen_columns(tab, col)
		GROUP BY rel) AS c
		JOIN pg_class AS t ON t.oid = c.rel
		JOIN pg_index AS i ON i.indrelid = c.rel
		JOIN pg_class AS r ON r.oid = i.indexrelid
		LEFT JOIN (pg_index AS f JOIN pg_class AS fresh ON fresh.oid = f.indexrelid)
			ON f.indrelid = c.rel AND fresh.relname = format('snowflake_widen_%s', i.indexrelid)
	WHERE NOT starts_with(r.relname, 'snowflake_widen_')
		AND (i.indkey::smallint[] && c.nums OR EXISTS (SELECT FROM pg_depend
			WHERE classid = 'pg_class'::regclass AND objid = i.indexrelid
				AND refclassid = 'pg_class'::regclass
				AND refobjid = c.rel AND refobjsubid = ANY (c.nums)))
$$;

-- Foreign keys consist of columns only, so they are composed anew.
CREATE FUNCTION snowflake_admin.widen_keys(tab regclass, col name)
RETURNS TABLE (con oid, name name, child regclass, parent regclass, place integer, definition text,
	validated boolean, fresh text, fresh_validated boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH w AS (SELECT * FROM widen_columns(tab, col)),
	action (code, command) AS (VALUES ('a', ''), ('r', 'RESTRICT'), ('c', 'CASCADE'), ('n', 'SET NULL'),
		('d', 'SET DEFAULT'))
	SELECT c.oid, c.conname, c.conrelid, c.confrelid,
		coalesce((SELECT max(w.place) FROM w WHERE rel = c.conrelid), 0),
		format('FOREIGN KEY (%s) REFERENCES %s (%s)', names.referring, c.confrelid::regclass, names.referred)
			|| CASE c.confmatchtype WHEN 'f' THEN ' MATCH FULL' ELSE '' END
			|| coalesce(' ON UPDATE ' || nullif(u.command, ''), '')
			|| coalesce(' ON DELETE ' || nullif(d.command, '') || coalesce(' (' || names.set || ')', ''), '')
			|| CASE WHEN c.condeferrable THEN ' DEFERRABLE' ELSE '' END
			|| CASE WHEN c.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END,
		c.convalidated, fresh.name, f.convalidated
	FROM pg_constraint AS c JOIN action AS u ON u.code = c.confupdtype
		JOIN action AS d ON d.code = c.confdeltype
		CROSS JOIN LATERAL format('snowflake_widen_%s', c.oid) AS fresh (name)
		LEFT JOIN pg_constraint AS f ON f.conrelid = c.conrelid AND f.conname = fresh.name
		CROSS JOIN LATERAL (SELECT
			string_agg(quote_ident(names.name), ', ' ORDER BY n) FILTER (WHERE which = 1) AS referring,
			string_agg(quote_ident(names.name), ', ' ORDER BY n) FILTER (WHERE which = 2) AS referred,
			string_agg(quote_ident(names.name), ', ' ORDER BY n) FILTER (WHERE which = 3) AS set
			FROM (SELECT which, n, coalesce(w.wide, attname) AS name
				FROM (SELECT 1 AS which, c.conrelid AS of_rel, k, n
					FROM unnest(c.conkey) WITH ORDINALITY AS x (k, n)
					UNION ALL SELECT 2, c.confrelid, k, n FROM unnest(c.confkey) WITH ORDINALITY AS x (k, n)
					UNION ALL SELECT 3, c.conrelid, k, n
						FROM unnest(c.confdelsetcols) WITH ORDINALITY AS x (k, n)) AS k
				JOIN pg_attribute ON attrelid = of_rel AND attnum = k
					LEFT JOIN w ON w.rel = of_rel AND w.num = k) AS names) AS names
	WHERE c.contype = 'f' AND c.conparentid = 0 AND NOT starts_with(c.conname, 'snowflake_widen_')
		AND EXISTS (SELECT FROM w WHERE rel = c.conrelid AND num = ANY (c.conkey) OR rel = c.confrelid
			AND num = ANY (c.confkey))
$$;

-- How indexes and CHECK constraints read with the new columns, PostgreSQL itself must say,
-- because they may have expressions.  An empty copy of the table, whose columns are bigint,
-- gets them, and then the columns get the new names.  This is also a rehearsal, which fails
-- where an expression does not accept a bigint.
--
-- PostgreSQL plans the expressions of an index, and so may call what they call, as the owner
-- of the table.  So the copy has the same owner.
CREATE FUNCTION snowflake_admin.widen_rehearse(tab regclass, col name)
RETURNS TABLE (object oid, definition text, predicate text)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET client_min_messages = warning AS $$
DECLARE
	copy record;
	command text;
	trees text;
BEGIN
	FOR copy IN SELECT rel, array_agg(num) AS nums, array_agg(narrow) AS narrow, array_agg(wide) AS wide,
			min(relowner::regrole::text) AS owner, bool_or(relowner <> caller()) AS is_others
		FROM widen_columns(tab, col) JOIN pg_class ON oid = rel GROUP BY rel
	LOOP
		EXECUTE format('CREATE TEMPORARY TABLE snowflake_widen (LIKE %s)', copy.rel);
		EXECUTE 'ALTER TABLE pg_temp.snowflake_widen ' || string_agg(
			format('DROP COLUMN IF EXISTS %I, ALTER %I TYPE bigint', wide, narrow), ', ')
		FROM unnest(copy.wide, copy.narrow) AS c (wide, narrow);
		IF copy.is_others THEN
			EXECUTE 'ALTER TABLE pg_temp.snowflake_widen OWNER TO ' || copy.owner;
		END IF;
		-- The expressions of an index, which are checked, are read with the command that repeats
		-- them as text, as nobody is kept from creating other indexes meanwhile.
		FOR command, trees IN
			SELECT format('ALTER TABLE pg_temp.snowflake_widen ADD CONSTRAINT snowflake_widen_%s %s', oid,
				pg_get_constraintdef(oid)) || CASE WHEN convalidated THEN ' NOT VALID' ELSE '' END, NULL
			FROM pg_constraint WHERE conrelid = copy.rel AND contype = 'c' AND conkey && copy.nums
				AND NOT starts_with(conname, 'snowflake_widen_')
			UNION ALL SELECT format('CREATE %sINDEX snowflake_widen_%s ON pg_temp.snowflake_widen USING %s',
				CASE WHEN is_unique THEN 'UNIQUE ' END, index, tail), concat(indexprs, ' ', indpred)
			FROM widen_indexes(tab, col) JOIN pg_index ON indexrelid = index WHERE rel = copy.rel
		LOOP
			PERFORM require_plain_constants(copy.rel, trees, format('an index of table %s', copy.rel));
			BEGIN
				IF trees IS NULL THEN
					PERFORM do_as_owner(copy.rel, command);
				ELSE
					EXECUTE command;
				END IF;
			EXCEPTION WHEN insufficient_privilege THEN
				RAISE;
			WHEN syntax_error_or_access_rule_violation OR invalid_text_representation THEN
				RAISE object_not_in_prerequisite_state USING
					MESSAGE = format('an index or a constraint of table %s cannot be made for type bigint',
						copy.rel),
					DETAIL = SQLERRM,
					HINT = 'It calls something that has an argument of type integer, or none for bigint.';
			END;
		END LOOP;
		FOR command IN
			SELECT format('ALTER TABLE pg_temp.snowflake_widen RENAME %I TO %I', narrow, wide)
			FROM unnest(copy.wide, copy.narrow) AS c (wide, narrow)
		LOOP
			EXECUTE command;
		END LOOP;
		-- What is returned, the caller executes.
		PERFORM require_plain_constants(copy.rel, index_trees(ARRAY(SELECT indexrelid FROM pg_index
			WHERE indrelid = 'pg_temp.snowflake_widen'::regclass)), format('an index of table %s', copy.rel));
		RETURN QUERY SELECT substr(relname, 17)::oid, substr(def, 7 + strpos(def, ' USING ')),
				coalesce(' WHERE ' || pg_get_expr(indpred, indrelid), '')
			FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid, pg_get_indexdef(indexrelid) AS d (def)
			WHERE indrelid = 'pg_temp.snowflake_widen'::regclass
			UNION ALL SELECT substr(conname, 17)::oid,
				left(pg_get_constraintdef(oid), -length(' NOT VALID')), NULL
			FROM pg_constraint WHERE conrelid = 'pg_temp.snowflake_widen'::regclass AND contype = 'c';
		DROP TABLE pg_temp.snowflake_widen;
	END LOOP;
END
$$;

-- A trigger that is ENABLE REPLICA or ALWAYS is meant to fire while columns are filled.
CREATE FUNCTION snowflake_admin.widen_fires(rel regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT EXISTS (SELECT FROM pg_trigger
		WHERE tgrelid = rel AND NOT tgisinternal AND tgenabled = 'O' AND tgtype & 16 <> 0)
$$;

-- Does code of a table run for each row that is filled, even while its ordinary triggers are off?
-- Functions and operators that a superuser has made are trusted, and pg_depend does not list
-- PostgreSQL's own.
CREATE FUNCTION snowflake_admin.widen_runs_code(rel regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT EXISTS (SELECT FROM pg_trigger
			WHERE tgrelid = rel AND NOT tgisinternal AND tgenabled IN ('A', 'R')
			AND tgname !~ '^zz_snowflake_widen_')
		OR EXISTS (SELECT FROM pg_depend JOIN (
				SELECT 'pg_proc'::regclass AS class, oid, proowner AS owner FROM pg_proc
				UNION ALL SELECT 'pg_operator'::regclass, oid, oprowner FROM pg_operator) AS code
				ON refclassid = code.class AND refobjid = code.oid
			JOIN pg_roles ON pg_roles.oid = code.owner AND NOT rolsuper
			WHERE (classid, objid) IN (
				SELECT 'pg_class'::regclass, indexrelid FROM pg_index WHERE indrelid = rel
				UNION ALL SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid = rel
				UNION ALL SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE conrelid = rel))
$$;

-- Indexes and constraints that have our names, but are not on the columns, or not of the kind,
-- of what they are to replace
CREATE FUNCTION snowflake_admin.widen_misfits(tab regclass, col name) RETURNS TABLE (object text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH w AS MATERIALIZED (SELECT * FROM widen_columns(tab, col))
	SELECT format('Index %s', fresh_oid::regclass)
	FROM widen_indexes(tab, col) AS n JOIN pg_index AS i ON i.indexrelid = index
		JOIN pg_index AS f ON f.indexrelid = fresh_oid
	WHERE (i.indisunique, i.indnkeyatts, i.indpred IS NULL) <> (f.indisunique, f.indnkeyatts, f.indpred IS NULL)
		OR f.indkey::text <> (SELECT string_agg(coalesce(wide_num, k)::text, ' ' ORDER BY pos)
			FROM unnest(i.indkey::smallint[]) WITH ORDINALITY AS u (k, pos)
				LEFT JOIN w ON w.rel = n.rel AND num = k)
	UNION ALL SELECT format('Constraint "%s" of table %s', conname, conrelid::regclass)
	FROM widen_keys(tab, col) JOIN pg_constraint ON conrelid = child AND conname = fresh
	WHERE replace(regexp_replace(pg_get_constraintdef(oid), ' NOT VALID$', ''), ' (', '(')
		<> replace(definition, ' (', '(')
	UNION ALL SELECT format('Constraint "%s" of table %s', conname, rel)
	FROM w JOIN pg_constraint ON conrelid = rel AND conname = wide
	WHERE regexp_replace(pg_get_constraintdef(oid), ' NOT VALID$', '') NOT IN (
		format('CHECK (((%1$I IS NOT NULL) AND (%1$I = %2$I)))', wide, narrow),
		format('CHECK ((NOT (%I IS DISTINCT FROM %I)))', wide, narrow))
	UNION ALL SELECT format('Constraint "%s" of table %s', f.conname, f.conrelid::regclass)
	FROM pg_constraint AS o JOIN pg_constraint AS f ON f.conrelid = o.conrelid
			AND f.conname = format('snowflake_widen_%s', o.oid)
		CROSS JOIN LATERAL (SELECT array_agg(coalesce(wide_num, k)) AS nums
			FROM unnest(o.conkey) AS k LEFT JOIN w ON rel = o.conrelid AND num = k) AS wanted
	WHERE o.contype = 'c' AND o.conrelid IN (SELECT rel FROM w)
		AND NOT (f.contype = 'c' AND f.conkey @> wanted.nums AND f.conkey <@ wanted.nums)
$$;

-- Objects of other sessions that go with these.  They are no obstacle, and are dropped with the
-- old column.
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

-- Does such an object depend on a column, or on the sequence of its identity?
CREATE FUNCTION snowflake_admin.has_others_temporary(rel oid, num smallint) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(bool_or(is_others_temporary(classid, objid)), false) FROM pg_depend
	WHERE refclassid = 'pg_class'::regclass AND (refobjid = rel AND refobjsubid = num OR refobjid IN (
		SELECT objid FROM pg_depend WHERE classid = 'pg_class'::regclass AND refclassid = classid
			AND refobjid = rel AND refobjsubid = num AND deptype = 'i'))
$$;

CREATE FUNCTION snowflake_admin.widen_obstacle(tab regclass, col name)
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH w AS (SELECT * FROM widen_columns(tab, col)),
	t AS (SELECT DISTINCT w.rel, pg_class.* FROM w JOIN pg_class ON oid = w.rel)
	SELECT format('Column %I of table %s has type %s.', attname, c.rel, format_type(atttypid, NULL)),
		'Give it type integer or bigint first.'
	FROM chain(tab, col) AS c
		JOIN pg_attribute ON attrelid = c.rel AND attname = c.name
		JOIN pg_type ON pg_type.oid = atttypid
	WHERE typtype = 'd' AND typbasetype <> 'bigint'::regtype OR typtype <> 'd' AND typcategory <> 'N'
	UNION ALL SELECT format('Table %s %s.', rel, reason),
		'Change this first, or the type by ALTER TABLE while the application is stopped.'
	FROM t CROSS JOIN LATERAL (SELECT CASE
		WHEN relkind = 'p' THEN 'is partitioned'
		WHEN relkind <> 'r' OR relpersistence = 't' OR reloftype <> 0 THEN 'is foreign, temporary or typed'
		WHEN EXISTS (SELECT FROM pg_inherits WHERE rel IN (inhrelid, inhparent)) THEN 'is a partition, a parent or a child'
		WHEN EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = rel) THEN 'is filled by a subscription'
		WHEN EXISTS (SELECT FROM pg_rewrite WHERE ev_class = rel) THEN 'has a rule' END) AS r (reason)
	WHERE reason IS NOT NULL
	UNION ALL SELECT format('Foreign key "%s" of partitioned table %s refers to it.', name, child),
		'Drop it first, and add it again afterwards.'
	FROM widen_keys(tab, col) JOIN pg_class ON oid = child
	WHERE relkind = 'p' AND current_setting('server_version_num')::integer < 180000
	UNION ALL SELECT format('Table %s is in publication "%s".', rel, p.pubname),
		'Its subscribers would not get the new column. Take it out of the publication first.'
	FROM t JOIN pg_publication_tables AS p ON quote_ident(schemaname) = relnamespace::regnamespace::text
		AND tablename = relname
	UNION ALL SELECT format('Row-level security of table %s applies to its owner, as whom its rows are filled.', rel),
		format('If nobody else uses role %s, ALTER TABLE %s NO FORCE ROW LEVEL SECURITY until it has ended.',
			relowner::regrole, rel)
	FROM t JOIN pg_roles ON pg_roles.oid = relowner
	WHERE relrowsecurity AND relforcerowsecurity AND NOT rolsuper AND NOT rolbypassrls
	UNION ALL SELECT format('Column %I of table %s is generated, or has a security label.', narrow, w.rel),
		'Make it an ordinary column first.'
	FROM w JOIN pg_attribute ON attrelid = rel AND attnum = num
	WHERE attgenerated <> '' OR EXISTS (SELECT FROM pg_seclabel
		WHERE classoid = 'pg_class'::regclass AND objoid = rel AND objsubid = num)
	UNION ALL SELECT format('The sequence of identity column %I of table %s is used by %s.', narrow, rel,
		place(u.class, u.object)),
		'Give that its own sequence first.'
	FROM w JOIN pg_depend AS d ON refclassid = 'pg_class'::regclass AND refobjid = rel AND refobjsubid = num
		AND classid = 'pg_class'::regclass AND deptype = 'i'
	JOIN sequence_users() AS u ON u.sequence = d.objid
	WHERE NOT is_others_temporary(u.class, u.object)
	UNION ALL SELECT format('%s depends on column %I of table %s.', upper(left(o.name, 1))
		|| substr(o.name, 2), narrow, rel),
		'Save its definition and its privileges, drop it, and create it again afterwards.'
	FROM w JOIN pg_depend AS d ON refclassid = 'pg_class'::regclass AND refobjid = rel AND refobjsubid = num
		CROSS JOIN LATERAL (SELECT CASE classid WHEN 'pg_rewrite'::regclass
			THEN (SELECT pg_describe_object('pg_class'::regclass, ev_class, 0) FROM pg_rewrite
				WHERE oid = objid)
			ELSE pg_describe_object(classid, objid, objsubid) END) AS o (name)
	WHERE CASE WHEN (classid, objid) NOT IN (
		SELECT 'pg_class'::regclass, oid FROM pg_class WHERE relkind IN ('i', 'S')
		UNION ALL SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid = rel AND adnum = num
		UNION ALL SELECT 'pg_constraint'::regclass, oid FROM pg_constraint
			WHERE contype IN ('c', 'f', 'n', 'p', 'u'))
		THEN NOT is_others_temporary(classid, objid) END
	UNION ALL
	SELECT format('Constraint "%s" of table %s is deferrable, for periods, not enforced, or not valid.',
		conname, conrelid::regclass), 'Drop it first.'
	FROM pg_constraint AS c
		JOIN w ON conrelid = rel AND num = ANY (conkey) OR confrelid = rel AND num = ANY (confkey)
	WHERE contype IN ('p', 'u') AND condeferrable OR contype = 'n' AND NOT convalidated
		OR 'true' = to_jsonb(c) ->> 'conperiod' OR 'false' = to_jsonb(c) ->> 'conenforced'
	UNION ALL SELECT format('"%s" of table %s replaces something that has been dropped.', fresh.name,
		fresh.rel), 'Drop it first, too, or call snowflake_widen() with undo => true.'
	FROM (
		SELECT indrelid::regclass, relname FROM pg_index JOIN pg_class ON oid = indexrelid
		WHERE indrelid IN (SELECT rel FROM w)
		UNION SELECT conrelid, conname FROM pg_constraint
		WHERE conparentid = 0 AND (conrelid IN (SELECT rel FROM w) OR confrelid IN (SELECT rel FROM w))
	) AS fresh (rel, name)
	WHERE fresh.name ~ '^snowflake_widen_\d{5,}$' AND fresh.name NOT IN (
		SELECT 'snowflake_widen_' || indexrelid FROM pg_index
		UNION SELECT 'snowflake_widen_' || oid FROM pg_constraint)
	UNION ALL SELECT object || ' has a name that snowflake_widen() uses, but is not what it makes.',
		'Drop or rename it, then call this again.'
	FROM widen_misfits(tab, col)
	UNION ALL SELECT format('Trigger "%s" of table %s does not fire always.', tgname, rel),
		format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I first.', rel, tgname)
	FROM w JOIN pg_trigger ON tgrelid = rel AND tgname = trig WHERE tgenabled <> 'A'
	UNION ALL SELECT format('Index "%s" is invalid.', name), 'Drop it first, or create it again.'
	FROM widen_indexes(tab, col) JOIN pg_index ON indexrelid = index
		WHERE NOT indisvalid
	UNION ALL SELECT format('Trigger "%s" of table %s would fire after "%s".', tgname, rel, trig),
		'Rename it first.'
	FROM w JOIN pg_trigger ON tgrelid = rel
	WHERE tgtype & 3 = 3 AND tgname > trig COLLATE "C" AND tgname !~ '^zz_snowflake_widen_'
		AND NOT tgisinternal
	UNION ALL SELECT format('Triggers of table %s would fire for old rows.', rel),
		format('A superuser can prevent it: GRANT SET ON PARAMETER session_replication_role TO %I.',
			current_user)
	FROM t WHERE widen_fires(rel)
		AND NOT has_parameter_privilege('session_replication_role', 'SET')
	-- While ordinary triggers are off, they and foreign keys are off for all that code writes.
	UNION ALL SELECT format('Triggers of table %s would fire for old rows, or other code of its owner would run while '
			'no ordinary trigger and no foreign key works.', rel),
		format('If role %s is trusted with that: GRANT SET ON PARAMETER session_replication_role TO %1$s, and REVOKE '
			'it afterwards.', relowner::regrole)
	FROM t WHERE widen_fires(rel) AND widen_runs_code(rel)
		AND NOT has_parameter_privilege(relowner, 'session_replication_role', 'SET')
	LIMIT 1
$$;

-- All tables, those that a foreign key refers to first
CREATE FUNCTION snowflake_admin.widen_tables(tab regclass, col name) RETURNS regclass[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_agg(rel ORDER BY place, rel) FROM (
		SELECT rel, max(place) AS place FROM (
			SELECT rel, place FROM widen_columns(tab, col)
			UNION ALL SELECT parent, 0 FROM widen_keys(tab, col)
			UNION ALL SELECT child, place FROM widen_keys(tab, col)) AS t
				GROUP BY rel) AS t
$$;

-- What must hold before anything is done, or undone.  A table may also refer to a new column.
CREATE FUNCTION snowflake_admin.widen_require(tab regclass, col name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
DECLARE
	first record;
BEGIN
	IF tab IS NULL OR col IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = format('%s must not be null',
			CASE WHEN tab IS NULL THEN 'tab' ELSE 'col' END);
	ELSIF NOT EXISTS (SELECT FROM chain(tab, col)) THEN
		RAISE undefined_column USING MESSAGE = format('column "%s" of table %s does not exist', col, tab);
	END IF;
	PERFORM require_owner(ARRAY[tab]);
	PERFORM require_one_owner(ARRAY(
		SELECT rel FROM (
			SELECT rel FROM chain(tab, col)
			UNION SELECT conrelid FROM widen_columns(tab, col)
			JOIN pg_constraint ON contype = 'f' AND confrelid = rel AND wide_num = ANY (confkey)) AS t
		ORDER BY rel <> tab, rel));
	PERFORM require_owner(widen_tables(tab, col));
	SELECT * INTO first FROM widen_strangers(tab, col);
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot widen column %I of table %s', col, tab),
			DETAIL = first.problem, HINT = first.remedy;
	END IF;
END
$$;

CREATE FUNCTION snowflake_admin.widen_check(tab regclass, col name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
DECLARE
	first record;
BEGIN
	PERFORM widen_require(tab, col);
	SELECT * INTO first FROM widen_obstacle(tab, col);
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot widen column %I of table %s', col, tab),
			DETAIL = first.problem, HINT = first.remedy;
	END IF;
END
$$;

-- Warn of grants that the swap makes anew.
CREATE FUNCTION snowflake_admin.widen_warn(tab regclass, col name) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
DECLARE
	granted record;
BEGIN
	FOR granted IN
		SELECT object, grantor::regrole, string_agg(format('%s to %s', privilege_type,
			grantee_name(grantee)), ', ') AS grants
		FROM (
			SELECT format('column %I of table %s', narrow, rel), relowner, attacl
			FROM widen_columns(tab, col) JOIN pg_class ON oid = rel
				JOIN pg_attribute ON attrelid = rel AND attnum = num
			UNION ALL SELECT format('sequence %s', objid::regclass), relowner, relacl
			FROM widen_columns(tab, col) JOIN pg_depend ON classid = 'pg_class'::regclass
				AND refclassid = classid AND refobjid = rel AND refobjsubid = num AND deptype = 'i'
				JOIN pg_class ON oid = objid) AS a (object, owner, acl), aclexplode(acl)
		WHERE grantor <> owner GROUP BY object, grantor ORDER BY object, 2
	LOOP
		PERFORM warn_of_grantor(granted.object::text, granted.grantor::text, granted.grants);
	END LOOP;
END
$$;

-- Steps 1 and 2: add columns, each with its trigger, and fill them.  The trigger fires
-- always, also in a session that replays changes of another server.  Step 3: a CHECK that
-- both columns agree, whose validation is the proof for all rows.
CREATE FUNCTION snowflake_admin.widen_first_steps(tab regclass, col name)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text, owner_of regclass)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH w AS (SELECT * FROM widen_columns(tab, col)),
	c AS (
		SELECT rel, place, wide AS name, true AS validated, format(CASE WHEN attnotnull
			THEN 'CHECK (%1$I IS NOT NULL AND %1$I = %2$I)' ELSE 'CHECK (%1$I IS NOT DISTINCT FROM %2$I)' END,
				wide, narrow) AS def
		FROM w JOIN pg_attribute ON attrelid = rel AND attnum = num
		UNION ALL
		SELECT DISTINCT rel, place, format('snowflake_widen_%s', o.oid), o.convalidated, r.definition
		FROM w JOIN pg_constraint AS o ON o.conrelid = rel AND o.contype = 'c' AND num = ANY (o.conkey)
			LEFT JOIN widen_rehearse(tab, col) AS r ON r.object = o.oid
		WHERE NOT starts_with(o.conname, 'snowflake_widen_')
	),
	todo AS (SELECT c.*, f.convalidated FROM c
		LEFT JOIN pg_constraint AS f ON f.conrelid = rel AND f.conname = name)
	(SELECT 'add', array_agg(command ORDER BY num, n) FILTER (WHERE command IS NOT NULL), ARRAY[rel],
		'ACCESS EXCLUSIVE', NULL::regclass
	FROM w JOIN pg_class ON oid = rel, unnest(ARRAY[
		format('ALTER TABLE %s ADD %I bigint', rel, wide),
		format('CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS %L', func, widen_body(narrow, wide)),
		-- so that he can go on with it, or undo it
		CASE WHEN relowner <> caller() AND (has_schema_privilege(relowner, relnamespace, 'CREATE')
			OR (SELECT rolsuper FROM pg_roles WHERE oid = caller()))
			THEN format('ALTER FUNCTION %s() OWNER TO %s', func, relowner::regrole) END,
		format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION %s()', trig,
			rel, func),
		format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', rel, trig)]) WITH ORDINALITY AS c (command, n)
	WHERE NOT added GROUP BY rel, place ORDER BY place, rel)
	UNION ALL (SELECT 'fill', ARRAY[format('UPDATE %s SET %s WHERE %s', rel,
		string_agg(format('%I = %I', wide, narrow), ', ' ORDER BY num),
		string_agg(format('%I IS DISTINCT FROM %I', wide, narrow), ' OR ' ORDER BY num))], ARRAY[rel], NULL, rel
	FROM w WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = rel AND conname = wide)
	GROUP BY rel, place ORDER BY place, rel)
	UNION ALL (SELECT 'check', ARRAY[format('ALTER TABLE %s %s', rel,
		string_agg(format('ADD CONSTRAINT %s %s NOT VALID', name, def), ', '))], ARRAY[rel],
			'ACCESS EXCLUSIVE', rel
	FROM todo WHERE convalidated IS NULL GROUP BY rel, place ORDER BY place, rel)
	UNION ALL (SELECT 'validate', ARRAY[format('ALTER TABLE %s %s', rel,
		string_agg('VALIDATE CONSTRAINT ' || name, ', '))],
		ARRAY[rel], 'SHARE UPDATE EXCLUSIVE', rel
	FROM todo WHERE validated AND NOT coalesce(convalidated, false) GROUP BY rel, place ORDER BY place, rel)
$$;

-- What the new columns get before the old ones go, with their indexes and constraints, and
-- then the names of these.  The validated CHECK proves NOT NULL without a scan.  The
-- sequence of an identity column cannot change its column, so a new one takes its place.
--
-- For NOT NULL, and for a default, PostgreSQL looks at expressions of the table, so these
-- commands are its owner's, and come first.
CREATE FUNCTION snowflake_admin.widen_swap(tab regclass, col name)
RETURNS TABLE (part integer, command text, is_owners boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH w AS (SELECT * FROM widen_columns(tab, col)
		JOIN pg_attribute ON attrelid = rel AND attnum = num),
	s AS (SELECT w.*, objid::regclass AS seq,
		format('%s.%I', relnamespace::regnamespace, relname) AS seq_name,
			format('snowflake_widen_%s', objid) AS away, relnamespace::regnamespace AS schema, deptype
		FROM w JOIN pg_depend ON classid = 'pg_class'::regclass AND refclassid = classid AND refobjid = rel
			AND refobjsubid = num
			JOIN pg_class ON pg_class.oid = objid AND relkind = 'S'),
	i AS (SELECT w.rel, index, name, fresh, indisclustered, indisreplident, con.oid AS con, contype,
		relnamespace::regnamespace AS schema
		FROM widen_indexes(tab, col) AS w JOIN pg_index ON indexrelid = index
			JOIN pg_class ON pg_class.oid = index
			LEFT JOIN pg_constraint AS con ON conindid = index AND conrelid = w.rel
				AND contype IN ('p', 'u')),
	k AS (SELECT con, name, child AS rel FROM widen_keys(tab, col)
		UNION SELECT oid, conname, rel FROM w
			JOIN pg_constraint ON conrelid = rel AND contype IN ('c', 'n') AND num = ANY (conkey)
		WHERE NOT starts_with(conname, 'snowflake_widen_')),
	command (part, text) AS (
	SELECT 10, format('ALTER TABLE %s DROP CONSTRAINT %I', child, name)
	FROM widen_keys(tab, col)
	UNION ALL SELECT 20, format('ALTER TABLE %s ALTER %I SET NOT NULL', rel, wide) FROM w
	WHERE attnotnull AND NOT EXISTS (SELECT FROM pg_constraint
		WHERE conrelid = rel AND contype = 'n' AND num = ANY (conkey))
	UNION ALL SELECT 20, format('ALTER TABLE %s ADD CONSTRAINT snowflake_widen_%s NOT NULL %I', rel, c.oid,
		wide)
	FROM w JOIN pg_constraint AS c ON conrelid = rel AND contype = 'n' AND num = ANY (conkey)
	UNION ALL SELECT 21, format('ALTER SEQUENCE %s AS bigint', seq) FROM (
		SELECT seq FROM s WHERE deptype = 'a'
		UNION SELECT d.refobjid::regclass FROM w JOIN pg_attrdef ON adrelid = rel AND adnum = num
			JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = pg_attrdef.oid
				AND d.refclassid = 'pg_class'::regclass) AS u
		JOIN pg_sequence ON seqrelid = seq WHERE seqtypid <> 'bigint'::regtype
	UNION ALL SELECT 22, format('ALTER SEQUENCE %s OWNED BY %s.%I', seq, rel, wide) FROM s WHERE deptype = 'a'
	UNION ALL SELECT 23, format('ALTER TABLE %s ALTER %I SET DEFAULT %s', rel, wide,
		pg_get_expr(adbin, adrelid))
	FROM w JOIN pg_attrdef ON adrelid = rel AND adnum = num
	UNION ALL SELECT 24, format('ALTER SEQUENCE %s RENAME TO %s', seq, away) FROM s WHERE deptype = 'i'
	UNION ALL SELECT 24 + n, i.command FROM s,
		identity_like(seq, format('%s.%s', schema, away), rel::text, wide,
			seq_name) AS i
	UNION ALL SELECT 29, g FROM w,
		grant_commands(attacl, format(' (%I)', wide), rel::text) AS g
	UNION ALL SELECT 29, format('COMMENT ON COLUMN %s.%I IS ', rel, wide)
		|| quote_literal(col_description(rel, num)) FROM w
	UNION ALL SELECT 29, c FROM w, column_commands(rel, num, rel::text, wide) AS c
	UNION ALL SELECT 30, format('DROP TRIGGER %I ON %s', trig, rel) FROM w
	UNION ALL SELECT 31, format('DROP FUNCTION %s()', func) FROM w
	UNION ALL SELECT 40, format('ALTER TABLE %s DROP %I%s', rel, narrow,
		CASE WHEN has_others_temporary(rel, num) THEN ' CASCADE' END) FROM w
	UNION ALL SELECT 50, format('ALTER INDEX %s RENAME TO %I', fresh, name) FROM i
	UNION ALL SELECT 51, format('ALTER TABLE %1$s ADD CONSTRAINT %2$I %3$s USING INDEX %2$I', rel, name,
		CASE contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END) FROM i WHERE con IS NOT NULL
	UNION ALL SELECT 51, format('ALTER TABLE %s RENAME %I TO %I', rel, wide, narrow) FROM w
	UNION ALL SELECT 52, format('ALTER TABLE %s RENAME CONSTRAINT snowflake_widen_%s TO %I', rel, con, name)
		FROM k
	UNION ALL SELECT 53, format('ALTER TABLE %s CLUSTER ON %I', rel, name) FROM i WHERE indisclustered
	UNION ALL SELECT 53, format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', rel, name) FROM i
		WHERE indisreplident
	UNION ALL SELECT 54, format('COMMENT ON INDEX %s.%I IS ', schema, name)
		|| quote_literal(obj_description(index, 'pg_class')) FROM i
	UNION ALL SELECT 54, format('COMMENT ON CONSTRAINT %I ON %s IS ', name, rel)
		|| quote_literal(obj_description(con, 'pg_constraint'))
	FROM (SELECT con, name, rel FROM i UNION SELECT con, name, rel FROM k) AS c)
	SELECT part, text, part IN (20, 23) FROM command WHERE text IS NOT NULL
$$;

-- What is still to do.  The last transaction analyzes and swaps all columns: without
-- statistics of the new columns, queries would be planned badly after it.
CREATE FUNCTION snowflake_admin.widen_steps(tab regclass, col name)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text, owner_of regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM widen_columns(tab, col)) THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT * FROM widen_first_steps(tab, col);
	-- Step 4: indexes.  Only the caller can create one CONCURRENTLY.  That of a small
	-- table is created here, while writers wait for some tenths of a second.  Of an index that
	-- a session is creating, we know no more than that, if the session is another role's.
	RETURN QUERY SELECT CASE WHEN builder.pid IS NOT NULL THEN 'building' WHEN small THEN 'index'
				ELSE 'concurrently' END,
			CASE WHEN builder.pid IS NOT NULL THEN '{}' ELSE array_remove(ARRAY[
				CASE WHEN fresh_oid IS NOT NULL THEN format('DROP INDEX CONCURRENTLY %s', fresh) END,
				format('CREATE %sINDEX %sON %s USING %s', CASE WHEN is_unique THEN 'UNIQUE ' END,
					CASE WHEN small THEN '' ELSE 'CONCURRENTLY ' END || 'snowflake_widen_' || index || ' ', rel,
					left(definition, length(definition) - length(predicate))
						|| coalesce(' TABLESPACE ' || quote_ident(spcname::text), '') || predicate)], NULL)
			END, ARRAY[rel], coalesce(builder.pid::text, 'SHARE'), NULL::regclass
		FROM widen_indexes(tab, col)
			JOIN widen_rehearse(tab, col) ON object = index
			JOIN pg_class ON oid = index LEFT JOIN pg_tablespace ON pg_tablespace.oid = reltablespace
			LEFT JOIN LATERAL (SELECT p.pid FROM pg_stat_progress_create_index AS p
				WHERE p.index_relid = fresh_oid OR p.index_relid IS NULL AND fresh_oid IS NOT NULL
					AND EXISTS (SELECT FROM pg_locks AS l WHERE l.pid = p.pid AND l.relation = rel AND l.granted
						AND l.mode = 'ShareUpdateExclusiveLock') LIMIT 1) AS builder ON true,
			LATERAL (SELECT pg_relation_size(rel) <= 8 * 1024 * 1024 AND fresh_oid IS NULL) AS s (small)
		WHERE fresh_valid IS NOT TRUE ORDER BY small DESC, rel, index;
	-- Step 5: foreign keys, in which the parents' new columns need their indexes.
	RETURN QUERY WITH k AS (SELECT * FROM widen_keys(tab, col))
		(SELECT 'key', ARRAY[format('ALTER TABLE %s ADD CONSTRAINT %s %s NOT VALID', child, fresh, definition)],
			CASE WHEN parent = child THEN ARRAY[child] ELSE ARRAY[parent, child] END, 'SHARE ROW EXCLUSIVE',
			NULL::regclass
		FROM k WHERE fresh_validated IS NULL ORDER BY place, con)
		UNION ALL
		(SELECT 'validate', ARRAY[format('ALTER TABLE %s VALIDATE CONSTRAINT %s', child, fresh)], ARRAY[child],
			'SHARE UPDATE EXCLUSIVE', child
		FROM k WHERE validated AND NOT coalesce(fresh_validated, false) ORDER BY place, con);
	RETURN QUERY SELECT 'analyze', ARRAY(SELECT DISTINCT format('ANALYZE %s', rel)
		FROM widen_columns(tab, col)),
		widen_tables(tab, col), NULL, NULL::regclass;
	RETURN QUERY SELECT 'swap', array_agg(command ORDER BY part, starts_with(command, 'GRANT '), command),
		widen_tables(tab, col), 'ACCESS EXCLUSIVE', CASE WHEN is_owners THEN tab END
	FROM widen_swap(tab, col) GROUP BY is_owners ORDER BY is_owners DESC;
END
$$;

-- Until the swap, all can be taken back.
CREATE FUNCTION snowflake_admin.widen_undo(tab regclass, col name) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH w AS (SELECT * FROM widen_columns(tab, col) WHERE added)
	SELECT coalesce(array_agg(command ORDER BY part, command), '{}') FROM (
		SELECT DISTINCT 1, format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
		FROM w JOIN pg_constraint ON confrelid = rel AND contype = 'f' AND conparentid = 0
		WHERE starts_with(conname, 'snowflake_widen_') AND wide_num = ANY (confkey)
		UNION ALL SELECT 2, format('DROP TRIGGER %I ON %s', trig, rel) FROM w
		UNION ALL SELECT 3, format('DROP FUNCTION %s()', func) FROM w
		UNION ALL SELECT 4, format('ALTER TABLE %s DROP %I', rel, wide) FROM w) AS c (part, command)
$$;

-- Fill new columns of a table's old rows, 16 pages at a time.  Rows that somebody has locked
-- are left to the next round.  The pause, in which vacuum and standbys keep up, is made at
-- the beginning of a transaction, which holds no lock on rows yet.
CREATE PROCEDURE snowflake_admin.widen_fill(tab regclass, col name, filling regclass, chain oid[],
	pause interval)
LANGUAGE plpgsql AS $$
DECLARE
	assignments pg_catalog.text;
	lacking pg_catalog.text;
	total bigint;
	pages bigint;
	page bigint;
	filled bigint;
	begun pg_catalog.timestamptz;
	reported pg_catalog.timestamptz;
	left_over boolean;
BEGIN
	SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
	SELECT string_agg(format('%I = %I', wide, narrow), ', '),
		string_agg(format('%I IS DISTINCT FROM %I', wide, narrow), ' OR ')
	INTO assignments, lacking
	FROM widen_columns(tab, col) WHERE rel = filling;
	reported := clock_timestamp();
	LOOP
		SELECT greatest(reltuples, 0), pg_relation_size(filling) / current_setting('block_size')::integer
		INTO total, pages FROM pg_class WHERE oid = filling;
		begun := clock_timestamp();
		page := 0;
		filled := 0;
		WHILE page < pages LOOP
			PERFORM take_turn('snowflake_widen()', chain, true);
			reported := progress(format('snowflake_widen: %s', filling),
				total * page / pages, total, begun, reported);
			IF filled > 0 THEN
				PERFORM pg_sleep(extract(epoch FROM pause));
			END IF;
			IF widen_fires(filling) THEN
				SET LOCAL session_replication_role = replica;
			END IF;
			-- A deferred trigger would run at the commit, no longer as the owner, and is an error.
			SET CONSTRAINTS ALL IMMEDIATE;
			filled := do_as_owner(filling,
				format('UPDATE %1$s SET %2$s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$s '
				'WHERE ctid >= ''(%3$s,0)'' AND ctid < ''(%4$s,0)'' AND (%5$s) FOR NO KEY UPDATE SKIP LOCKED))',
				filling, assignments, page, page + 16, lacking));
			page := page + 16;
			COMMIT;
			SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
		END LOOP;
		SELECT lacks INTO left_over
		FROM as_owner(filling, format('SELECT EXISTS (SELECT FROM %s WHERE %s)', filling, lacking))
			AS (lacks boolean);
		COMMIT;
		EXIT WHEN NOT left_over;
		-- Some rows were locked.
		SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
		PERFORM pg_sleep(1);
	END LOOP;
END
$$;

CREATE FUNCTION @extschema@.snowflake_widen_indexes(tab regclass, col name)
RETURNS TABLE (command text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT widen_require(tab, col);
	SELECT unnest(commands)
	FROM (SELECT *, bool_or(kind = 'fill') OVER () AS lacks_rows
		FROM widen_steps(tab, col)) AS s
	WHERE kind = 'concurrently' AND NOT lacks_rows
$$;

COMMENT ON FUNCTION @extschema@.snowflake_widen_indexes(regclass, name) IS
'commands that create the indexes for which snowflake_widen() waits';

CREATE PROCEDURE @extschema@.snowflake_widen(tab regclass, col name, dry_run boolean DEFAULT false,
	tries integer DEFAULT 30, undo boolean DEFAULT false, pause interval DEFAULT '10 ms')
LANGUAGE plpgsql AS $$
DECLARE
	step pg_catalog.record;
	chain pg_catalog.oid[];
	undoing pg_catalog.text[];
	going_on boolean := false;
	lacking pg_catalog.text;
BEGIN
	CALL snowflake_admin.require_no_transaction('snowflake_widen()');
	SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
	chain := ARRAY(SELECT DISTINCT rel FROM chain(tab, col) ORDER BY 1);
	LOOP
		SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
		PERFORM take_turn('snowflake_widen()', chain, going_on);
		going_on := true;
		PERFORM keep_names(ARRAY(SELECT DISTINCT rel::oid FROM chain(tab, col)), tries);
		IF undo THEN
			PERFORM widen_require(tab, col);
			IF NOT dry_run THEN
				PERFORM lock(widen_tables(tab, col), tries, false);
				PERFORM widen_require(tab, col);
			END IF;
			undoing := widen_undo(tab, col);
			IF undoing = '{}' THEN
				RAISE NOTICE 'nothing to undo: column % of table % is being widened no longer, or not yet',
					quote_ident(col), tab;
			END IF;
			PERFORM run(undoing, widen_tables(tab, col), tries, dry_run);
			EXIT;
		END IF;
		PERFORM widen_check(tab, col);
		IF dry_run THEN
			PERFORM run(commands, relations, tries, true, mode => mode, owner_of => owner_of)
			FROM widen_steps(tab, col);
			PERFORM widen_warn(tab, col);
		END IF;
		SELECT * INTO step FROM widen_steps(tab, col) LIMIT 1;
		IF NOT FOUND OR dry_run THEN
			RAISE NOTICE 'column % of table %, and all that refer to it, % bigint', quote_ident(col), tab,
				CASE WHEN FOUND THEN 'would be' ELSE 'are' END
				USING HINT = 'A session with a prepared statement that returns such a column fails after the swap with '
				'"cached plan must not change result type" until it reconnects or prepares it again.';
			EXIT;
		ELSIF step.kind IN ('concurrently', 'building') THEN
			SELECT string_agg(command || ';', E'\n') INTO lacking
			FROM @extschema@.snowflake_widen_indexes(tab, col);
			IF lacking IS NULL AND step.kind = 'concurrently' THEN
				COMMIT;
				CONTINUE;
			ELSIF lacking IS NULL THEN
				RAISE object_not_in_prerequisite_state USING
					MESSAGE = 'an index that the new columns need is being created',
					DETAIL = format('Process %s creates it for table %s.', step.mode, step.relations[1]),
					HINT = 'Wait for it to end, then call snowflake_widen() again.';
			END IF;
			RAISE object_not_in_prerequisite_state USING
				MESSAGE = 'the new columns need indexes, which a procedure cannot create concurrently',
				DETAIL = lacking,
				HINT = format('Execute these commands, in psql by SELECT * FROM %s(%L, %L) \gexec, '
					'then call snowflake_widen() again.', '@extschema@.snowflake_widen_indexes', tab, col);
		END IF;
		PERFORM set_config('application_name',
			format('snowflake_widen: %s %s', step.kind, step.relations[1])::name::text, true);
		IF step.kind = 'fill' THEN
			PERFORM run(step.commands, step.relations, tries, true, mode => step.mode, owner_of => step.owner_of);
			CALL widen_fill(tab, col, step.relations[1], chain, pause);
			-- The CHECK marks in the catalogs that this has been done.
			SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
			PERFORM take_turn('snowflake_widen()', chain, true);
			PERFORM widen_check(tab, col);
			SELECT * INTO STRICT step FROM widen_steps(tab, col)
			WHERE kind = 'check' AND relations = step.relations;
		ELSIF step.kind = 'analyze' THEN
			-- From here to the swap, this lock keeps others from creating indexes and
			-- constraints, which would go with the old columns.
			PERFORM lock(step.relations, tries, false);
			PERFORM widen_check(tab, col);
			PERFORM widen_warn(tab, col);
			FOR step IN SELECT * FROM widen_steps(tab, col) LOOP
				EXIT WHEN step.kind NOT IN ('analyze', 'swap');
				PERFORM run(step.commands, step.relations, tries, false, mode => step.mode, owner_of => step.owner_of);
				IF step.kind = 'analyze'
					AND (SELECT bool_or(has_others_temporary(rel, num)) FROM widen_columns(tab, col))
				THEN
					-- Columns are dropped with CASCADE, which must not find anything else.
					PERFORM lock(step.relations, tries, false, 'ACCESS EXCLUSIVE');
					PERFORM widen_check(tab, col);
				END IF;
			END LOOP;
			COMMIT;
			CONTINUE;
		END IF;
		PERFORM run(step.commands, step.relations, tries, false, mode => step.mode, owner_of => step.owner_of);
		COMMIT;
	END LOOP;
END
$$;

COMMENT ON PROCEDURE @extschema@.snowflake_widen(regclass, name, boolean, integer, boolean, interval) IS
'replace an integer column, and all that refer to it, by bigint columns while they are in use';
