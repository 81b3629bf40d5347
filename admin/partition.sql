/* admin/partition.sql */

-- CALL snowflake_partition(): a live table becomes the first partition of a new one.  Each
-- step is one transaction, and what is still to do is read from the catalogs:
--
--     1. add a CHECK that the table has only IDs before the bound, and validate it
--     2. swap: rename the table, create the new one, give it all that the table has, attach the
--        old one and make the first partitions
--     3. make the partitions that are still missing
--     4. validate foreign keys that refer to it, analyze it, and drop the CHECK
--
-- A CHECK constraint, whose name ends with the bound, marks a table that is to
-- become a partition, and one that has become it while something is left to do.
-- While a step decides and acts, a SHARE UPDATE EXCLUSIVE lock keeps out other such
-- calls and all that would change the table's definition.  Only views, functions,
-- publications of all tables and GRANT do not ask for a lock that conflicts with it.
--
-- What proves or checks something about rows or indexes evaluates expressions that the table's
-- owner has written, and runs as that role: VALIDATE CONSTRAINT, ATTACH PARTITION, and a foreign
-- key that is checked at once.  All else is the caller's.

-- The constraint that spares ATTACH PARTITION its scan, and the column that it bounds, unless
-- somebody has made a constraint of such a name that says something else
CREATE FUNCTION snowflake_admin.partition_check(target regclass)
RETURNS TABLE (name name, bound bigint, validated boolean, col name)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT conname, number::bigint, convalidated, attname
	FROM pg_constraint CROSS JOIN substring(conname, '\d+$') AS number
	LEFT JOIN pg_attribute ON attrelid = conrelid AND conkey = ARRAY[attnum] AND is_id(atttypid)
		AND replace(translate(pg_get_expr(conbin, conrelid), '()''', ''), '::bigint', '')
			= translate(format('%I < %s', attname, number), '()''', '')
	WHERE conrelid = target AND contype = 'c' AND conname ~ '^snowflake_partition_before_\d{10,19}$'
$$;

CREATE FUNCTION snowflake_admin.require_partition_check(target regclass, col name) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	other record;
BEGIN
	SELECT * INTO other FROM partition_check(target) AS c WHERE c.col IS DISTINCT FROM require_partition_check.col;
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('constraint %I of table %s is not of snowflake_partition()', other.name, target),
			DETAIL = format('It should be CHECK (%I < %s).', col, other.bound),
			HINT = format('ALTER TABLE %s RENAME CONSTRAINT %I TO ... first, or drop it.', target, other.name);
	END IF;
END
$$;

-- Names that end with _old, for the table, its indexes and the sequences of its
-- identities.  The new table's get the present ones.
CREATE FUNCTION snowflake_admin.partition_names(target regclass)
RETURNS TABLE (object oid, kind "char", qualified text, old_name text, old_qualified text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH relations (rel) AS (
		SELECT target::oid UNION ALL
		SELECT indexrelid FROM pg_index WHERE indrelid = target AND indisvalid UNION ALL
		SELECT objid FROM pg_depend JOIN pg_sequence ON seqrelid = objid
		WHERE classid = 'pg_class'::regclass AND refclassid = classid AND refobjid = target AND deptype = 'i'
	)
	SELECT rel, relkind, format('%I.%I', nspname, relname), old_name, format('%I.%I', nspname, old_name)
	FROM relations JOIN pg_class AS c ON c.oid = rel JOIN pg_namespace AS s ON s.oid = relnamespace,
		LATERAL (SELECT substr(('_old' || relname)::name::text, 5) || '_old') AS fitting (old_name)
$$;

-- Whose is an object that depends on a table, and in which schema?
CREATE FUNCTION snowflake_admin.owner_and_schema(class oid, object oid)
RETURNS TABLE (owner oid, schema oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT proowner, pronamespace FROM pg_proc WHERE class = 'pg_proc'::regclass AND oid = object
	UNION ALL SELECT typowner, typnamespace FROM pg_type WHERE class = 'pg_type'::regclass AND oid = object
	UNION ALL SELECT typowner, typnamespace FROM pg_constraint JOIN pg_type ON pg_type.oid = contypid
	WHERE class = 'pg_constraint'::regclass AND pg_constraint.oid = object
	UNION ALL SELECT relowner, relnamespace FROM pg_class WHERE pg_class.oid = CASE class
		WHEN 'pg_class'::regclass THEN object
		WHEN 'pg_rewrite'::regclass THEN (SELECT ev_class FROM pg_rewrite WHERE oid = object)
		WHEN 'pg_attrdef'::regclass THEN (SELECT adrelid FROM pg_attrdef WHERE oid = object)
		WHEN 'pg_constraint'::regclass THEN (SELECT conrelid FROM pg_constraint WHERE oid = object) END
$$;

-- May a role do anything with a table?
CREATE FUNCTION snowflake_admin.has_privilege(role oid, tab oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT has_any_column_privilege(role, tab, 'SELECT, INSERT, UPDATE, REFERENCES')
		OR has_table_privilege(role, tab, 'DELETE, TRUNCATE, TRIGGER')
$$;

-- What depends on the table or on its row type and does not come along.  A view would go on
-- without an error, and miss the rows of later partitions.  Everybody can make temporary
-- objects, and whoever may do nothing with the table can make others, which could not be
-- used.  Those of other sessions and of such roles do not count.
CREATE FUNCTION snowflake_admin.partition_dependents(target regclass)
RETURNS TABLE (class oid, object oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT classid, objid
	FROM pg_class AS t JOIN pg_type AS r ON r.oid = t.reltype
	JOIN pg_depend AS d ON refclassid = 'pg_class'::regclass AND refobjid = t.oid
		OR refclassid = 'pg_type'::regclass AND refobjid IN (r.oid, r.typarray)
	WHERE t.oid = target AND (classid, objid) NOT IN (
		SELECT 'pg_class'::regclass, oid FROM pg_class WHERE relkind IN ('i', 'S', 't')
		UNION ALL SELECT 'pg_type'::regclass, unnest(ARRAY[r.oid, r.typarray])
		UNION ALL SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid = target
		UNION ALL SELECT 'pg_constraint'::regclass, oid FROM pg_constraint
			WHERE target IN (conrelid, confrelid)
		UNION ALL SELECT 'pg_trigger'::regclass, oid FROM pg_trigger WHERE tgrelid = target OR tgisinternal
		UNION ALL SELECT 'pg_policy'::regclass, oid FROM pg_policy WHERE polrelid = target
		UNION ALL SELECT 'pg_statistic_ext'::regclass, oid FROM pg_statistic_ext WHERE stxrelid = target
		UNION ALL SELECT 'pg_publication_rel'::regclass, oid FROM pg_publication_rel)
	AND (classid = 'pg_class'::regclass AND EXISTS (SELECT FROM pg_inherits WHERE inhrelid = objid)
		OR NOT EXISTS (SELECT FROM owner_and_schema(classid, objid)
			WHERE pg_is_other_temp_schema(schema) OR NOT has_privilege(owner, target)))
$$;

CREATE FUNCTION snowflake_admin.partition_obstacles(target regclass, col name)
RETURNS TABLE (obstacle text, hint text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'it is unlogged, typed, inherited, of an extension, excepted from a publication, '
		'or has a security label', 'Change this first, or do not partition the table.'
	FROM pg_class WHERE oid = target AND (relpersistence = 'u' OR reloftype <> 0
		OR EXISTS (SELECT FROM pg_inherits WHERE inhrelid = target)
		OR EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = target
			AND deptype = 'e')
		OR EXISTS (SELECT FROM pg_publication_rel AS r WHERE prrelid = target
			AND to_jsonb(r) ->> 'prexcept' = 'true')
		OR EXISTS (SELECT FROM pg_seclabel WHERE classoid = 'pg_class'::regclass AND objoid = target))
	UNION ALL SELECT format('column %I may be NULL', attname),
		'ALTER TABLE ... ALTER ... SET NOT NULL first, or make it the primary key.'
	FROM pg_attribute WHERE attrelid = target AND attname = col
		AND (NOT attnotnull OR EXISTS (SELECT FROM pg_constraint
			WHERE conrelid = target AND contype = 'n' AND NOT convalidated AND conkey[1] = attnum))
	UNION ALL SELECT format('row-level security applies to its owner, as whom PostgreSQL validates foreign keys that '
			'refer to it'), format('If nobody else uses role %s, ALTER TABLE %s NO FORCE ROW LEVEL SECURITY until all '
			'steps are done.', relowner::regrole, c.oid::regclass)
	FROM pg_class AS c JOIN pg_roles ON pg_roles.oid = relowner
	WHERE relrowsecurity AND relforcerowsecurity AND NOT rolsuper AND NOT rolbypassrls
		AND EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND confrelid = target)
		AND (c.oid = target OR c.oid IN (SELECT conrelid FROM pg_constraint WHERE contype = 'f' AND confrelid = target))
	UNION ALL SELECT format('role %s may not execute the function %s of its trigger %I', relowner::regrole,
			tgfoid::regprocedure, tgname),
		format('GRANT EXECUTE ON FUNCTION %s TO %s first.', tgfoid::regprocedure, relowner::regrole)
	FROM pg_trigger JOIN pg_class AS c ON c.oid = tgrelid
	WHERE tgrelid = target AND NOT tgisinternal AND NOT has_function_privilege(relowner, tgfoid, 'EXECUTE')
	UNION ALL SELECT format('name %s is taken', old_qualified), 'Rename what has this name.'
	FROM partition_names(target) AS n JOIN pg_class AS c ON c.oid = object
	WHERE EXISTS (SELECT FROM pg_class AS other WHERE other.relnamespace = c.relnamespace AND other.relname = old_name)
		OR kind = 'r' AND EXISTS (SELECT FROM pg_type AS other WHERE typnamespace = c.relnamespace
			AND typname = old_name AND typcategory <> 'A')
	UNION ALL SELECT format('its replica identity is index %s', indexrelid::regclass),
		'ALTER TABLE ... REPLICA IDENTITY DEFAULT or FULL first.'
	FROM pg_index JOIN pg_class AS t ON t.oid = indrelid WHERE t.oid = target AND relreplident = 'i'
		AND indisreplident AND NOT indisprimary
	UNION ALL SELECT format('%s %s does not contain column %I',
		CASE WHEN indisexclusion THEN 'index of exclusion constraint' ELSE 'unique index' END,
		indexrelid::regclass, col),
		'PostgreSQL would have to look for equal values in all partitions. Drop the index or its '
		'constraint if the application does not need this check. Otherwise do not partition the table.'
	FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attname = col
	WHERE indrelid = target AND indisvalid AND (indisunique OR indisexclusion)
		AND attnum <> ALL (indkey[0:indnkeyatts - 1])
	UNION ALL SELECT format('trigger %I is FOR EACH ROW and has transition tables', tgname),
		'Make it a trigger FOR EACH STATEMENT first.'
	FROM pg_trigger WHERE tgrelid = target AND tgtype & 1 <> 0
		AND (tgoldtable IS NOT NULL OR tgnewtable IS NOT NULL)
	UNION ALL SELECT place || ' depends on it', CASE WHEN place LIKE 'table %'
			THEN 'ALTER TABLE ... NO INHERIT, or drop its column of that type, first.'
			ELSE 'Save its definition, drop it, call snowflake_partition() again, and create it again '
				'after that.' END
	FROM partition_dependents(target), LATERAL (
		SELECT place(class, object)) AS p (place)
	UNION ALL SELECT format('constraint %I of table %s is NOT VALID, NOT ENFORCED or NO INHERIT', conname,
			conrelid::regclass),
		format('ALTER TABLE %s VALIDATE CONSTRAINT %I first, or drop it.', conrelid::regclass, conname)
	FROM pg_constraint WHERE contype IN ('c', 'f', 'n') AND (conrelid = target OR confrelid = target)
		AND (NOT convalidated OR contype = 'c' AND connoinherit)
		AND conname NOT IN (SELECT name FROM partition_check(target))
	UNION ALL
	SELECT format('foreign key %I of partitioned table %s refers to it', conname, conrelid::regclass),
		'Drop it, call snowflake_partition() again, and add it again after that.'
	FROM pg_constraint JOIN pg_class AS c ON c.oid = conrelid
	WHERE contype = 'f' AND confrelid = target AND conparentid = 0 AND relkind = 'p'
	UNION ALL SELECT format('subscription %I fills it', subname),
		'Let it end first. It would not know the new table, and skip all rows.'
	FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid WHERE srrelid = target
	UNION ALL SELECT format('publication %I would publish its partitions', pubname),
		format('ALTER PUBLICATION %I SET (publish_via_partition_root = true) first, unless that changes how '
			'tables that are partitioned already are published.', pubname)
	FROM pg_publication AS p WHERE NOT pubviaroot AND (puballtables
		OR EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = p.oid AND prrelid = target)
		OR EXISTS (SELECT FROM pg_publication_namespace JOIN pg_class AS c ON relnamespace = pnnspid
			WHERE pnpubid = p.oid AND c.oid = target))
$$;

-- In the end, create the new table under the old one's later name and roll that back, so that
-- PostgreSQL's own errors come before anything has been changed.  Its indexes are created when
-- it is the owner's, because PostgreSQL evaluates their expressions with the rights of that role.
CREATE FUNCTION snowflake_admin.partition_require(target regclass, col name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET client_min_messages = warning AS $$
DECLARE
	lacking text;
	obstacles text[];
	hints text[];
	command text;
BEGIN
	PERFORM require_one_owner(ARRAY[target] || ARRAY(
		SELECT conrelid::regclass FROM pg_constraint WHERE contype = 'f' AND confrelid = target));
	SELECT format('must be owner of publication %I', pubname) INTO lacking FROM pg_publication AS p
		JOIN pg_publication_rel ON prpubid = p.oid
	WHERE prrelid = target AND NOT pg_has_role(pubowner, 'USAGE')
	UNION ALL
	SELECT format('must have privilege REFERENCES on table %s', confrelid::regclass) FROM pg_constraint
	WHERE contype = 'f' AND conrelid = target AND NOT has_any_column_privilege(confrelid, 'REFERENCES');
	IF lacking IS NOT NULL THEN
		RAISE insufficient_privilege USING MESSAGE = lacking;
	END IF;
	SELECT array_agg(o.obstacle), array_agg(o.hint) INTO obstacles, hints
	FROM partition_obstacles(target, col) AS o;
	IF obstacles IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot partition table %s: %s', target, obstacles[1]),
			DETAIL = format('All obstacles: %s.', array_to_string(obstacles, '; ')),
			HINT = hints[1];
	END IF;
	PERFORM require_plain_constants(target, index_trees(ARRAY(SELECT indexrelid FROM pg_index
		WHERE indrelid = target)), format('an index of table %s', target));
	PERFORM require_plain_constants(target, prqual::text, format('publication %I', pubname))
	FROM pg_publication AS p JOIN pg_publication_rel ON prpubid = p.oid WHERE prrelid = target;
	FOR command IN SELECT c FROM partition_names(target),
			partition_new(target, col, target::text, old_qualified) AS c
				WHERE object = target
		UNION ALL SELECT format('ALTER TABLE %s OWNER TO %s', old_qualified, relowner::regrole)
		FROM partition_names(target) JOIN pg_class ON oid = object
			WHERE oid = target
		UNION ALL SELECT create_command FROM partition_indexes(target, true)
	LOOP
		EXECUTE command;
	END LOOP;
	command := '';
	RAISE 'end of the rehearsal';
EXCEPTION WHEN insufficient_privilege OR lock_not_available THEN
	RAISE;
WHEN OTHERS THEN
	IF command IS NULL THEN
		RAISE;
	ELSIF command <> '' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('PostgreSQL cannot make a partitioned table like %s: %s', target, SQLERRM),
			DETAIL = format('The command was: %s', command);
	END IF;
END
$$;

CREATE FUNCTION snowflake_admin.partition_new(target regclass, col name, source text, new text)
RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING INDEXES EXCLUDING IDENTITY) '
			'PARTITION BY RANGE (%I)', new, source, col)
		|| CASE WHEN current_setting('server_version_num')::integer >= 170000
			THEN ' USING ' || quote_ident(amname) ELSE '' END
		|| coalesce(' TABLESPACE ' || quote_ident(spcname), '')
	FROM pg_class AS t LEFT JOIN pg_am ON pg_am.oid = relam
	LEFT JOIN pg_tablespace AS s ON s.oid = reltablespace
	WHERE t.oid = target
$$;

-- Each index is created without partitions and gets the old table's as its first
-- one, so that names stay and no index can be built on the old table.
CREATE FUNCTION snowflake_admin.partition_indexes(target regclass, rehearsal boolean)
RETURNS TABLE (create_command text, attach_command text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN c.oid IS NOT NULL THEN
			format('ALTER TABLE ONLY %s ADD CONSTRAINT %I %s', new_table, new_name,
				pg_get_constraintdef(c.oid))
		ELSE format('CREATE %sINDEX %I ON ONLY %s USING %s', CASE WHEN indisunique THEN 'UNIQUE ' END,
			new_name, new_table,
			substr(pg_get_indexdef(indexrelid), 1 + length(format('CREATE %sINDEX %I ON %s USING ',
				CASE WHEN indisunique THEN 'UNIQUE ' END, relname, target)))) END,
		format('ALTER INDEX %s ATTACH PARTITION %s', n.qualified, n.old_qualified)
	FROM pg_index JOIN pg_class AS i ON i.oid = indexrelid
	JOIN partition_names(target) AS n ON n.object = indexrelid
	JOIN partition_names(target) AS t ON t.object = target
	LEFT JOIN pg_constraint AS c ON conindid = indexrelid AND conrelid = target
		AND contype IN ('p', 'u', 'x'),
	LATERAL (SELECT CASE WHEN rehearsal THEN t.old_qualified ELSE t.qualified END,
		CASE WHEN rehearsal THEN n.old_name ELSE relname END) AS names (new_table, new_name)
	WHERE indrelid = target ORDER BY indexrelid
$$;

-- What the new table gets before the old one is attached.  Nobody can give a sequence to
-- another identity, so that a new one goes on from the old one's value.
CREATE FUNCTION snowflake_admin.partition_before(target regclass, old text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER TABLE %s OWNER TO %s, %s ROW LEVEL SECURITY, %s ROW LEVEL SECURITY', target,
		relowner::regrole, CASE WHEN relrowsecurity THEN 'ENABLE' ELSE 'DISABLE' END,
		CASE WHEN relforcerowsecurity THEN 'FORCE' ELSE 'NO FORCE' END)
	FROM pg_class WHERE oid = target
	UNION ALL SELECT privileges_like(target, caller(), target::text)
	UNION ALL SELECT command
	FROM pg_depend AS d JOIN pg_sequence ON seqrelid = objid JOIN pg_class AS s ON s.oid = objid
	JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
	LEFT JOIN partition_names(target) AS n ON object = objid,
	LATERAL (
		SELECT format('ALTER SEQUENCE %s OWNED BY %s.%I', s.oid::regclass, target, attname)
			WHERE d.deptype = 'a'
		UNION ALL SELECT i.command FROM identity_like(s.oid, n.old_qualified,
			target::text, attname, n.qualified) AS i
			WHERE d.deptype = 'i'
		UNION ALL SELECT format('ALTER TABLE %s ALTER %I DROP IDENTITY', old, attname) WHERE d.deptype = 'i'
	) AS of_sequence (command)
	WHERE d.classid = 'pg_class'::regclass AND d.refclassid = d.classid AND d.refobjid = target
		AND d.deptype IN ('a', 'i')
	UNION ALL
	SELECT c FROM pg_attribute, column_commands(target, attnum, target::text,
		attname) AS c
	WHERE attrelid = target AND attnum > 0 AND NOT attisdropped
$$;

-- The policies and triggers that the new table gets.  A trigger of the old table would fire
-- beside that which the partition gets.  Their expressions may have constants of types that
-- the owner has made, so these commands run as the owner.
CREATE FUNCTION snowflake_admin.partition_code(target regclass, old text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('CREATE POLICY %I ON %s AS %s FOR %s TO %s%s%s', polname, target,
		CASE WHEN polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
		CASE polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
			WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
		(SELECT string_agg(CASE role WHEN 0 THEN 'PUBLIC' ELSE role::regrole::text END, ', ')
			FROM unnest(polroles) AS role),
		' USING (' || pg_get_expr(polqual, polrelid) || ')',
		' WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')')
	FROM pg_policy WHERE polrelid = target
	UNION ALL (
		SELECT c FROM pg_trigger AS g, unnest(ARRAY[
			format('DROP TRIGGER %I ON %s', tgname, old),
			pg_get_triggerdef(oid),
			'ALTER TABLE ' || target || CASE tgenabled WHEN 'D' THEN ' DISABLE' WHEN 'R' THEN ' ENABLE REPLICA'
				WHEN 'A' THEN ' ENABLE ALWAYS' END || format(' TRIGGER %I', tgname),
			format('COMMENT ON TRIGGER %I ON %s IS ', tgname, target)
				|| quote_literal(obj_description(oid, 'pg_trigger'))]) WITH ORDINALITY AS u (c, n)
		WHERE tgrelid = target AND NOT tgisinternal ORDER BY g.oid, n
	)
$$;

-- Foreign keys.  ATTACH PARTITION takes over those of the old table to others, and
-- checks no row again.  Those that refer to it are added again without a check, which
-- VALIDATE CONSTRAINT does later.  So is one of the table to itself: the partition
-- has it first, and the new table takes it over when it is valid.
CREATE FUNCTION snowflake_admin.partition_keys(target regclass, old text, attached boolean) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE
		WHEN confrelid <> target THEN format('ALTER TABLE %s ADD CONSTRAINT %I %s', target, conname,
			pg_get_constraintdef(oid))
		WHEN attached THEN format('ALTER TABLE %s ADD CONSTRAINT %I %s NOT VALID', referring, conname,
			pg_get_constraintdef(oid))
		ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', referring, conname) END
	FROM pg_constraint, LATERAL (
		SELECT CASE conrelid WHEN target THEN old ELSE conrelid::regclass::text END) AS r (referring)
	WHERE contype = 'f' AND conparentid = 0 AND (conrelid = target OR confrelid = target)
		AND NOT (attached AND confrelid <> target)
	ORDER BY oid
$$;

-- What the new table gets in the end.  LIKE copies comments of columns and CHECK constraints.
CREATE FUNCTION snowflake_admin.partition_after(target regclass, old text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	(
		SELECT c FROM pg_publication AS p JOIN pg_publication_rel ON prpubid = p.oid, unnest(ARRAY[
			format('ALTER PUBLICATION %I DROP TABLE %s', pubname, old),
			format('ALTER PUBLICATION %I ADD TABLE %s%s%s', pubname, target,
				(SELECT format(' (%s)', string_agg(quote_ident(attname), ', ' ORDER BY attnum)) FROM pg_attribute
					WHERE attrelid = target AND attnum = ANY (prattrs) HAVING count(*) > 0),
				' WHERE (' || pg_get_expr(prqual, prrelid) || ')')]) WITH ORDINALITY AS u (c, n)
		WHERE prrelid = target ORDER BY p.oid, n
	)
	UNION ALL
	SELECT format('COMMENT ON TABLE %s IS ', target) || quote_literal(obj_description(target, 'pg_class'))
	UNION ALL SELECT format('COMMENT ON INDEX %s IS ', indexrelid::regclass)
		|| quote_literal(obj_description(indexrelid, 'pg_class'))
	FROM pg_index WHERE indrelid = target AND indisvalid
	UNION ALL SELECT format('COMMENT ON CONSTRAINT %I ON %s IS ', conname,
			CASE WHEN conrelid = confrelid THEN old ELSE conrelid::regclass::text END)
		|| quote_literal(obj_description(oid, 'pg_constraint'))
	FROM pg_constraint WHERE (conrelid = target AND contype <> 'c' OR confrelid = target) AND conparentid = 0
	UNION ALL SELECT format('COMMENT ON POLICY %I ON %s IS ', polname, target)
		|| quote_literal(obj_description(oid, 'pg_policy')) FROM pg_policy WHERE polrelid = target
	UNION ALL SELECT format('ALTER TABLE %s REPLICA IDENTITY ', target)
		|| CASE relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING' END
	FROM pg_class WHERE oid = target
$$;

-- All commands that put the new table in the old one's place, and which of them run as the
-- owner.  After the first ones, the old table's former name is the new table's.  What the old
-- table lacks is left out.
CREATE FUNCTION snowflake_admin.partition_swap_commands(target regclass, col name, "check" name, bound bigint,
	OUT commands text[], OUT by_owner boolean[])
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_agg(command ORDER BY part, n), array_agg(p.by_owner ORDER BY part, n)
	FROM partition_names(target) AS t, LATERAL (SELECT t.old_qualified) AS o (old),
	LATERAL (VALUES
		(1, false, ARRAY[format('ALTER TABLE %s RENAME TO %I', target, t.old_name)]
			|| ARRAY(SELECT format('ALTER %s %s RENAME TO %I',
					CASE kind WHEN 'S' THEN 'SEQUENCE' ELSE 'INDEX' END, qualified, old_name)
				FROM partition_names(target) WHERE object <> target ORDER BY object)),
		(2, false, ARRAY(SELECT partition_new(target, col, old, target::text))
			|| format('ALTER TABLE %s DROP CONSTRAINT %I', target, "check")),
		(3, false, ARRAY(SELECT partition_before(target, old))),
		(4, true, ARRAY(SELECT partition_code(target, old))),
		(5, false, ARRAY(SELECT partition_keys(target, old, false))),
		(6, true, ARRAY[format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (MINVALUE) TO (%s)',
			target, old, bound)]),
		(7, false, ARRAY(SELECT create_command FROM partition_indexes(target, false))),
		(8, true, ARRAY(SELECT attach_command FROM partition_indexes(target, false))),
		(9, false, ARRAY(SELECT partition_keys(target, old, true))),
		(10, false, ARRAY(SELECT partition_after(target, old)))
	) AS p (part, by_owner, commands), unnest(p.commands) WITH ORDINALITY AS c (command, n)
	WHERE t.object = target AND command IS NOT NULL
$$;

-- One transaction: the new table, with the old one and the partitions after it, so
-- that no ID is without a partition for some time, even if nobody calls again.  In the end the
-- old table is closed to all but its owner, because what is revoked on the new one, or hidden
-- by a later policy there, would be open by the old one's name.
CREATE FUNCTION snowflake_admin.partition_swap(target regclass, commands text[], by_owner boolean[], unit text,
	tries integer) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	parent regclass;
	piece record;
BEGIN
	PERFORM run(commands, ARRAY(
		SELECT tab FROM (SELECT tab, place FROM related_tables(target)
			UNION ALL VALUES (target, 0)) AS involved ORDER BY place, tab), tries, false,
		owner_of => target, by_owner => by_owner);
	SELECT inhparent INTO STRICT parent FROM pg_inherits WHERE inhrelid = target;
	-- Others may have done this while the swap waited for its locks.
	IF EXISTS (SELECT FROM partition_dependents(target))
		OR all_privileges(target) <> all_privileges(parent)
	THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('somebody has granted or revoked a privilege on table %s, or created something that '
				'depends on it, in this moment', parent),
			HINT = 'Call snowflake_partition() again.';
	END IF;
	PERFORM run(ARRAY(SELECT revoke_commands(target, target::text)), '{}', 1, false, mode => NULL);
	-- Here all locks are there, while later each partition would have to try for those
	-- of foreign keys.  Five do not take long.
	FOR piece IN SELECT low, high, layout
		FROM key_layout(parent) AS layout,
			partition_check(target),
			bound_time(bound, layout) AS at,
			missing_ranges(parent, unit,
				greatest(needed_until('3 days', unit),
					(at AT TIME ZONE 'UTC' + ('1 ' || unit)::interval) AT TIME ZONE 'UTC'), layout) LIMIT 5
	LOOP
		PERFORM make_partition(parent,
			partition_key(parent), piece.low, piece.high, unit, piece.layout, tries,
			false);
	END LOOP;
END
$$;

-- The column that next_id() fills, rather one of the primary key, and the last ID's time
CREATE FUNCTION snowflake_admin.partition_id(target regclass, OUT col name, OUT layout snowflake_layout,
	OUT last_time timestamptz)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	key record;
BEGIN
	SELECT attname, min(expression) AS expression, array_agg(sequence) AS sequences INTO key
	FROM filled() AS f JOIN pg_attribute ON attrelid = tab AND attnum = f.col
	LEFT JOIN pg_index AS i ON i.indrelid = tab AND indisprimary AND attnum = ANY (indkey[0:indnkeyatts - 1])
	WHERE tab = target AND made_by = 'next_id' AND is_id(atttypid)
	GROUP BY attname, attnum ORDER BY bool_or(i.indrelid IS NOT NULL) DESC, attnum LIMIT 1;
	IF NOT FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has no bigint or snowflake key that next_id() makes', target),
			HINT = 'CALL snowflake_move(...) first, because the key''s numbers must be times.';
	END IF;
	col := key.attname;
	layout := coalesce(layout_of(key.expression, key.sequences[1]), 'instagram');
	-- This also loads the library, whose setting is read later.
	SELECT max(last_timestamp) INTO last_time
	FROM unnest(key.sequences) AS s, sequence_states(s,
		partition_id.layout);
END
$$;

-- The first ID that is not to be the old table's.  There must be none of it yet, and
-- none before the new table is there.
CREATE FUNCTION snowflake_admin.partition_bound(target regclass, col name, unit text, at timestamptz,
	layout snowflake_layout, last_time timestamptz) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	earliest timestamptz := clock_timestamp() + interval '5 minutes'
		+ least(current_setting('snowflake.max_lead')::interval, '31 days');
	tomorrow timestamp := clock_timestamp() AT TIME ZONE 'UTC' + interval '24 hours';
	since timestamptz := coalesce(at, (date_trunc(unit,
		tomorrow) + ('1 ' || unit)::interval) AT TIME ZONE 'UTC');
	bound bigint := bound(since, layout);
	newest bigint;
BEGIN
	IF since < earliest THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('at must be later than %s, and not %s', date_trunc('second', earliest), since),
			DETAIL = 'Until the new table is there, the old one rejects the IDs of that time and later.';
	ELSIF NOT isfinite(since)
		OR bound_time(bound, layout)
			NOT BETWEEN since AND since + interval '10 seconds' THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('IDs of table %s cannot have the time %s', target, since),
			DETAIL = format('Their layout is %s.', layout);
	END IF;
	SELECT look.id INTO newest FROM as_owner(target,
		format('SELECT max(%1$I) FROM %2$s WHERE %1$I >= %3$s', col, target, bound)) AS look (id bigint);
	IF newest IS NOT NULL OR last_time > since - interval '5 minutes' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s would reject IDs that it has, or soon gets', target),
			DETAIL = format('They reach to %s, and new partitions would begin at %s.',
				greatest(last_time, bound_time(newest, layout)), since),
			HINT = 'Give a later time as at. SELECT * FROM snowflake_check() says more about IDs that are '
				'ahead of the clock.';
	END IF;
	RETURN bound;
END
$$;

-- What is left to do after the swap.  Each step is gone from here once it is done.
-- Before the swap this is only a plan, and old and parent are the same table.  What "by_owner"
-- says runs as the owner of the first relation.
CREATE FUNCTION snowflake_admin.partition_rest(parent regclass, old regclass, old_name text, "check" name,
	planned boolean)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text, by_owner boolean[])
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'validate', ARRAY[format('ALTER TABLE %s VALIDATE CONSTRAINT %I',
		CASE conrelid WHEN old THEN old_name ELSE conrelid::regclass::text END, conname)],
			ARRAY[conrelid::regclass], NULL, ARRAY[true]
	FROM pg_constraint
	WHERE contype = 'f' AND conparentid = 0 AND confrelid = parent AND (planned OR NOT convalidated)
	UNION ALL SELECT 'add', array_remove(ARRAY[
			format('ALTER TABLE %s ADD CONSTRAINT %I %s', parent, conname, pg_get_constraintdef(oid)),
			format('COMMENT ON CONSTRAINT %I ON %s IS ', conname, parent)
				|| quote_literal(obj_description(oid, 'pg_constraint'))], NULL),
		ARRAY[parent], 'SHARE ROW EXCLUSIVE', ARRAY[true]
	FROM pg_constraint
	WHERE contype = 'f' AND conparentid = 0 AND conrelid = old AND confrelid = parent
	UNION ALL
	-- Autovacuum analyzes partitions, but not the table above them.  ANALYZE itself becomes the owner.
	SELECT 'analyze', ARRAY[format('ANALYZE %s', parent)], ARRAY[parent], NULL, NULL
	FROM pg_class WHERE oid = parent AND (planned OR reltuples < 0)
	UNION ALL
	SELECT 'drop', ARRAY[format('ALTER TABLE %s DROP CONSTRAINT %I', old_name, "check")], ARRAY[old],
		'ACCESS EXCLUSIVE', NULL
$$;

-- The table, or the partitioned table that has already taken its name
CREATE FUNCTION snowflake_admin.partition_target(target regclass, OUT parent regclass, OUT old regclass)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	tab record;
BEGIN
	SELECT relkind, relispartition, relpersistence INTO tab FROM pg_class WHERE oid = target;
	IF target IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'tab must not be null';
	ELSIF tab.relkind IS NULL OR tab.relkind NOT IN ('r', 'p') THEN
		RAISE wrong_object_type USING MESSAGE = format('%s is not a table', target);
	ELSIF tab.relpersistence = 't' THEN
		RAISE object_not_in_prerequisite_state USING MESSAGE = format('table %s is temporary', target);
	END IF;
	PERFORM require_owner(ARRAY[target]);
	IF tab.relispartition THEN
		SELECT inhparent INTO parent FROM pg_inherits WHERE inhrelid = target;
	ELSIF tab.relkind = 'p' THEN
		parent := target;
	END IF;
	-- An error unless its bounds are IDs
	IF parent IS NOT NULL THEN
		PERFORM partition_key(parent);
	END IF;
	SELECT r.partition INTO old FROM ranges(parent) AS r
	WHERE lower_id = '-9223372036854775808' AND (tab.relkind = 'p' OR r.partition = target);
	IF parent IS NOT NULL AND old IS NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = CASE tab.relkind WHEN 'p' THEN format('table %s is partitioned already', target)
				ELSE format('table %s is a partition of %s', target, parent) END,
			HINT = 'CALL snowflake_make_partitions(...) makes the next partitions of a partitioned table.';
	END IF;
END
$$;

-- The steps that are left.  A CHECK constraint whose time has nearly come, or that
-- has another bound than the caller asks for, goes first of all.
CREATE FUNCTION snowflake_admin.partition_steps(target regclass, unit text, at timestamptz)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text, by_owner boolean[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
#variable_conflict use_column
DECLARE
	done record;
	id record;
	found record;
	bound bigint;
	name name;
BEGIN
	IF unit IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'unit must not be null';
	END IF;
	SELECT * INTO done FROM partition_target(target);
	IF done.old IS NOT NULL THEN
		PERFORM require_partition_check(done.old, attname) FROM pg_attribute
		WHERE attrelid = done.parent AND quote_ident(attname) = partition_key(done.parent);
		RETURN QUERY SELECT 'partition', '{}'::text[], ARRAY[done.parent::regclass], NULL, NULL::boolean[]
			FROM partition_check(done.old),
				key_layout(done.parent) AS layout
			-- The first call here loads the library, whose setting the second one reads.
			WHERE bound(now(), layout) IS NOT NULL AND EXISTS (
				SELECT FROM needed_until('3 days', unit) AS until,
					missing_ranges(done.parent, unit, until, layout));
		RETURN QUERY SELECT r.* FROM partition_check(done.old) AS c,
			partition_rest(done.parent, done.old, done.old::text, c.name, false) AS r;
		RETURN;
	END IF;
	SELECT * INTO id FROM partition_id(target);
	PERFORM needed_until('3 days', unit);
	PERFORM require_partition_check(target, id.col);
	SELECT * INTO found FROM partition_check(target);
	IF bound_time(found.bound, id.layout)
			< clock_timestamp() + interval '1 minute' +
				least(current_setting('snowflake.max_lead')::interval, '31 days')
		OR bound(at, id.layout) <> found.bound THEN
		RETURN QUERY SELECT 'give up', ARRAY[format('ALTER TABLE %s DROP CONSTRAINT %I', target, found.name)],
			ARRAY[target], 'ACCESS EXCLUSIVE', NULL::boolean[];
		RETURN;
	END IF;
	PERFORM partition_require(target, id.col);
	bound := coalesce(found.bound,
		partition_bound(target, id.col, unit, at, id.layout, id.last_time));
	name := 'snowflake_partition_before_' || bound;
	RETURN QUERY SELECT s.kind, s.commands, ARRAY[target], s.mode, s.by_owner
		FROM partition_names(target) AS n, partition_swap_commands(target, id.col, name, bound) AS swap,
		LATERAL (VALUES
			('check', ARRAY[format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%I < %s) NOT VALID', target, name,
				id.col, bound)], 'ACCESS EXCLUSIVE', NULL),
			('validate', ARRAY[format('ALTER TABLE %s VALIDATE CONSTRAINT %I', target, name)], NULL, ARRAY[true]),
			('swap', swap.commands, 'ACCESS EXCLUSIVE', swap.by_owner),
			('plan', ARRAY(SELECT revoke_commands(target, n.old_qualified)), NULL, NULL),
			('plan', ARRAY[format('CALL @extschema@.snowflake_make_partitions(%L, unit => %L)', target, unit)],
				NULL, NULL)) AS s (kind, commands, mode, by_owner)
		WHERE n.object = target
			AND NOT (s.kind = 'check' AND found.name IS NOT NULL OR s.kind = 'validate' AND found.validated IS TRUE);
	RETURN QUERY SELECT 'plan', r.commands, r.relations, r.mode, r.by_owner
		FROM partition_names(target) AS n,
			partition_rest(target, target, n.old_qualified, name, true) AS r
		WHERE n.object = target;
END
$$;

CREATE PROCEDURE @extschema@.snowflake_partition(tab regclass, unit text, at timestamptz DEFAULT NULL,
	dry_run boolean DEFAULT false, tries integer DEFAULT 30)
LANGUAGE plpgsql AS $$
DECLARE
	step pg_catalog.record;
	trigger pg_catalog.name;
BEGIN
	CALL snowflake_admin.require_no_transaction('snowflake_partition()');
	LOOP
		SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
		PERFORM partition_target(tab);
		PERFORM lock(ARRAY[tab], tries, false);
		PERFORM keep_names(ARRAY(SELECT r.tab::oid FROM related_tables(tab) AS r), tries);
		SELECT * INTO step FROM partition_steps(tab, unit, at) LIMIT 1;
		EXIT WHEN NOT FOUND;
		PERFORM set_config('application_name',
			format('snowflake_partition: %s %s', step.kind, step.relations[1])::name::text, true);
		IF step.kind = 'check' THEN
			FOR trigger IN SELECT tgname FROM pg_trigger JOIN pg_proc AS p ON p.oid = tgfoid
				WHERE tgrelid = tab AND NOT tgisinternal AND tgtype & 1 <> 0
					AND prosrc ~* '\mtg_(table_name|relname|relid)\M'
			LOOP
				RAISE WARNING 'trigger % of table % will see the name of the partition in TG_TABLE_NAME',
					quote_ident(trigger), tab;
			END LOOP;
			PERFORM warn_of_grantors(ARRAY(
				SELECT object FROM partition_names(tab) WHERE kind IN ('r', 'S') ORDER BY kind DESC));
			RAISE NOTICE '%', format('only its owner will have privileges on the old table, %s: REVOKE and policies '
					'of the new one do not reach it, and rows are found by the new one', old_qualified)
				FROM partition_names(tab)
				WHERE object = tab AND EXISTS (SELECT revoke_commands(tab, old_qualified));
			RAISE NOTICE '%', (
				SELECT format('table %1$s rejects IDs from %2$s on until all steps are done; to give up: '
					'ALTER TABLE %1$s DROP CONSTRAINT %3$s;', tab,
					bound_time(substring(name, '\d+')::bigint, layout), name)
				FROM partition_id(tab),
					substring(step.commands[1], 'snowflake_partition_before_\d+') AS name);
		END IF;
		IF dry_run THEN
			PERFORM run(commands, relations, tries, true,
				owner_of => CASE WHEN by_owner IS NOT NULL THEN relations[1] END, by_owner => by_owner)
			FROM partition_steps(tab, unit, at);
			EXIT;
		ELSIF step.kind = 'swap' THEN
			PERFORM partition_swap(tab, step.commands, step.by_owner, unit, tries);
		ELSIF step.kind = 'partition' THEN
			CALL @extschema@.snowflake_make_partitions(step.relations[1], unit => unit, tries => tries);
		ELSE
			PERFORM run(step.commands, step.relations, tries, false, mode => step.mode,
				owner_of => CASE WHEN step.by_owner IS NOT NULL THEN step.relations[1] END,
				by_owner => step.by_owner);
		END IF;
		COMMIT;
	END LOOP;
	IF NOT dry_run THEN
		RAISE NOTICE 'table % is partitioned',
			(SELECT parent FROM partition_target(tab));
	END IF;
END
$$;

COMMENT ON PROCEDURE @extschema@.snowflake_partition(regclass, text, timestamptz, boolean, integer) IS
'let a table that is in use become the first partition of a new table, by ranges of time of its IDs';
