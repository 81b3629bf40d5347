/* admin/partition/obstacles.sql */

-- What keeps a table from becoming a partition: whatever would not come along, or would mean
-- something else.  Changes nothing that lasts, and knows nothing of steps.

-- The owner and the schema of an object that depends on a table.  No row for a kind of object
-- that has neither.
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
COMMENT ON FUNCTION snowflake_admin.owner_and_schema IS
'for leaving out what other sessions, or roles that could not use it, have made';

-- Whether a role may do anything with a table
CREATE FUNCTION snowflake_admin.has_privilege(role oid, tab oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT has_any_column_privilege(role, tab, 'SELECT, INSERT, UPDATE, REFERENCES')
		OR has_table_privilege(role, tab, 'DELETE, TRUNCATE, TRIGGER')
$$;
COMMENT ON FUNCTION snowflake_admin.has_privilege IS 'for telling roles that can use a table from all others';

-- What depends on the table or on its row type and does not come along.  A view would go on
-- without an error, and miss the rows of later partitions.  Everybody can make temporary
-- objects, and whoever may do nothing with the table can make others, which could not be
-- used.  Those of other sessions and of such roles do not count.
CREATE FUNCTION snowflake_admin.partition_dependents(target regclass)
RETURNS TABLE (class oid, object oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH types AS (
		SELECT ARRAY[t.oid, typarray] AS oids FROM pg_class AS c JOIN pg_type AS t ON t.oid = reltype
		WHERE c.oid = target
	), found AS (
		SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_class'::regclass AND refobjid = target
		UNION SELECT classid, objid FROM types, unnest(oids) AS type
		JOIN pg_depend ON refclassid = 'pg_type'::regclass AND refobjid = type
	)
	SELECT classid, objid FROM found
	-- What the new table gets, or the old one keeps
	WHERE NOT CASE classid
		WHEN 'pg_class'::regclass THEN (SELECT relkind IN ('i', 'S', 't') FROM pg_class WHERE oid = objid)
		WHEN 'pg_type'::regclass THEN (SELECT objid = ANY (oids) FROM types)
		WHEN 'pg_attrdef'::regclass THEN EXISTS (SELECT FROM pg_attrdef WHERE oid = objid AND adrelid = target)
		WHEN 'pg_constraint'::regclass THEN EXISTS (
			SELECT FROM pg_constraint WHERE oid = objid AND target IN (conrelid, confrelid))
		WHEN 'pg_trigger'::regclass THEN EXISTS (
			SELECT FROM pg_trigger WHERE oid = objid AND (tgrelid = target OR tgisinternal))
		WHEN 'pg_policy'::regclass THEN EXISTS (SELECT FROM pg_policy WHERE oid = objid AND polrelid = target)
		WHEN 'pg_statistic_ext'::regclass THEN EXISTS (
			SELECT FROM pg_statistic_ext WHERE oid = objid AND stxrelid = target)
		ELSE classid = 'pg_publication_rel'::regclass END
	AND (classid = 'pg_class'::regclass AND EXISTS (SELECT FROM pg_inherits WHERE inhrelid = objid)
		OR NOT EXISTS (SELECT FROM owner_and_schema(classid, objid)
			WHERE pg_is_other_temp_schema(schema) OR NOT has_privilege(owner, target)))
$$;
COMMENT ON FUNCTION snowflake_admin.partition_dependents IS
'for finding views, functions and types that would be left with the old table';

-- What the table itself is, and whether its owner's rights suffice
CREATE FUNCTION snowflake_admin.partition_table_obstacles(target regclass, col name)
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
	UNION ALL SELECT format('role %s may not execute the function %s of its trigger %I', owner, function, trigger),
		format('GRANT EXECUTE ON FUNCTION %s TO %s first.', function, owner)
	FROM forbidden_triggers(target)
	-- ALTER TABLE ... OWNER TO leaves them with the former owner.
	UNION ALL SELECT format('statistics object %s belongs to role %s', named, stxowner::regrole),
		format('Let that role, or a superuser, ALTER STATISTICS %s OWNER TO %s first.', named, relowner::regrole)
	FROM pg_statistic_ext JOIN pg_namespace AS s ON s.oid = stxnamespace JOIN pg_class AS c ON c.oid = stxrelid,
		format('%I.%I', nspname, stxname) AS named
	WHERE stxrelid = target AND NOT pg_has_role(stxowner, 'USAGE')
	UNION ALL SELECT format('names such as %s_old and %1$s_old1000 are taken', qualified),
		'Rename what has these names.'
	FROM partition_names(target) WHERE old_name IS NULL
$$;
COMMENT ON FUNCTION snowflake_admin.partition_table_obstacles IS
'for refusing tables that cannot be partitions, or whose owner lacks a right';

-- Indexes and triggers that a partitioned table cannot have, and the index that is needed
CREATE FUNCTION snowflake_admin.partition_index_obstacles(target regclass, col name)
RETURNS TABLE (obstacle text, hint text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('%s %s does not contain column %I',
		CASE WHEN indisexclusion THEN 'index of exclusion constraint' ELSE 'unique index' END,
		indexrelid::regclass, col),
		'PostgreSQL would have to look for equal values in all partitions. Drop the index or its '
		'constraint if the application does not need this check. Otherwise do not partition the table.'
	FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attname = col
	WHERE indrelid = target AND indisvalid AND (indisunique OR indisexclusion)
		AND attnum <> ALL (indkey[0:indnkeyatts - 1])
	UNION ALL SELECT format('no index begins with column %I', attname),
		format('CREATE INDEX CONCURRENTLY ON %s (%I) first. By the index, the largest ID is found at once while '
			'nobody else can use the table.', target, attname)
	FROM pg_attribute WHERE attrelid = target AND attname = col AND NOT EXISTS (
		SELECT FROM pg_index JOIN pg_opclass AS o ON o.oid = indclass[0] JOIN pg_am AS a ON a.oid = opcmethod
		WHERE indrelid = target AND indkey[0] = attnum AND indisvalid AND indpred IS NULL
			AND amname = 'btree' AND opcdefault)
	UNION ALL SELECT format('trigger %I is FOR EACH ROW and has transition tables', tgname),
		'Make it a trigger FOR EACH STATEMENT first.'
	FROM pg_trigger WHERE tgrelid = target AND tgtype & 1 <> 0
		AND (tgoldtable IS NOT NULL OR tgnewtable IS NOT NULL)
$$;
COMMENT ON FUNCTION snowflake_admin.partition_index_obstacles IS
'for refusing what PostgreSQL does not know of partitioned tables';

-- What depends on the table, and constraints that the new table could not have
CREATE FUNCTION snowflake_admin.partition_dependent_obstacles(target regclass)
RETURNS TABLE (obstacle text, hint text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT place || ' depends on it', CASE WHEN place LIKE 'table %'
			THEN 'ALTER TABLE ... NO INHERIT, or drop its column of that type, first.'
			ELSE 'Save its definition, drop it, call snowflake_partition() again, and create it again '
				'after that.' END
	FROM partition_dependents(target), LATERAL (
		SELECT place(class, object)) AS p (place)
	-- Before PostgreSQL 18, the part of a foreign key that refers to a partition stays NOT VALID
	-- when the foreign key is validated.
	UNION ALL SELECT format('constraint %I of table %s is NOT VALID, NOT ENFORCED or NO INHERIT', conname,
			conrelid::regclass),
		format('ALTER TABLE %s VALIDATE CONSTRAINT %I first, or drop it.', conrelid::regclass, conname)
	FROM pg_constraint WHERE contype IN ('c', 'f', 'n') AND (conrelid = target OR confrelid = target)
		AND conparentid = 0 AND (NOT convalidated OR contype = 'c' AND connoinherit)
		AND NOT (conrelid = target AND conname = 'snowflake_partition')
	UNION ALL
	SELECT format('foreign key %I of partitioned table %s refers to it', conname, conrelid::regclass),
		'Drop it, call snowflake_partition() again, and add it again after that.'
	FROM pg_constraint JOIN pg_class AS c ON c.oid = conrelid
	WHERE contype = 'f' AND confrelid = target AND conparentid = 0 AND relkind = 'p'
$$;
COMMENT ON FUNCTION snowflake_admin.partition_dependent_obstacles IS 'for refusing what would be left with the old table';

-- What would replicate the table in another way
CREATE FUNCTION snowflake_admin.partition_replication_obstacles(target regclass)
RETURNS TABLE (obstacle text, hint text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('subscription %I fills it', subname),
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
COMMENT ON FUNCTION snowflake_admin.partition_replication_obstacles IS
'for refusing publications that would name partitions, and subscriptions';

-- An error if there are obstacles, which names all, and says how to remove the first of them
CREATE FUNCTION snowflake_admin.partition_require_no_obstacle(target regclass, col name) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	obstacles text[];
	hints text[];
BEGIN
	SELECT array_agg(o.obstacle), array_agg(o.hint) INTO obstacles, hints
	FROM (
		SELECT * FROM partition_table_obstacles(target, col)
		UNION ALL SELECT * FROM partition_index_obstacles(target, col)
		UNION ALL SELECT * FROM partition_dependent_obstacles(target)
		UNION ALL SELECT * FROM partition_replication_obstacles(target)) AS o;
	IF obstacles IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot partition table %s: %s', target, obstacles[1]),
			DETAIL = format('All obstacles: %s.', array_to_string(obstacles, '; ')),
			HINT = hints[1];
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_require_no_obstacle IS 'for refusing a table, with all that is in the way';

-- An error unless the caller, who is the table's owner or may become that role, may do what the
-- commands do to other objects
CREATE FUNCTION snowflake_admin.partition_require_rights(target regclass) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	lacking text;
BEGIN
	PERFORM require_one_owner(ARRAY[target] || ARRAY(
		SELECT conrelid::regclass FROM pg_constraint WHERE contype = 'f' AND confrelid = target));
	SELECT format('must be owner of publication %I', pubname) INTO lacking
	FROM pg_publication AS p JOIN pg_publication_rel ON prpubid = p.oid
	WHERE prrelid = target AND NOT pg_has_role(pubowner, 'USAGE')
	UNION ALL
	SELECT format('must have privilege REFERENCES on table %s', confrelid::regclass)
	FROM pg_constraint
	WHERE contype = 'f' AND conrelid = target AND NOT has_any_column_privilege(confrelid, 'REFERENCES');
	IF lacking IS NOT NULL THEN
		RAISE insufficient_privilege USING MESSAGE = lacking;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_require_rights IS
'for refusing a caller who could not execute all commands';

-- Create the new table and its indexes, under the names that the old ones get later, and roll
-- that back.  So PostgreSQL's own errors come before anything has been changed.  The indexes are
-- created when the table is the owner's, because PostgreSQL evaluates their expressions with the
-- rights of that role.
CREATE FUNCTION snowflake_admin.partition_rehearse(target regclass, col name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET client_min_messages = warning AS $$
DECLARE
	command text;
BEGIN
	FOR command IN
		SELECT partition_new(target, col, target::text, old_qualified)
		FROM partition_names(target) WHERE kind = 'r'
		UNION ALL SELECT format('ALTER TABLE %s OWNER TO %s', old_qualified, relowner::regrole)
		FROM partition_names(target) JOIN pg_class ON oid = object WHERE kind = 'r'
		UNION ALL SELECT create_command FROM partition_indexes(target, true)
	LOOP
		BEGIN
			EXECUTE command;
		EXCEPTION
			WHEN insufficient_privilege OR lock_not_available THEN
				RAISE;
			WHEN OTHERS THEN
				RAISE object_not_in_prerequisite_state USING
					MESSAGE = format('PostgreSQL cannot create a partitioned table like %s: %s', target, SQLERRM),
					DETAIL = format('The command was: %s', command);
		END;
	END LOOP;
	RAISE SQLSTATE 'SF000';
EXCEPTION WHEN SQLSTATE 'SF000' THEN
	NULL;
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_rehearse IS
'for raising PostgreSQL''s own errors before anything has been changed';

-- An error unless a table can become a partition
CREATE FUNCTION snowflake_admin.partition_require(target regclass, col name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	PERFORM partition_require_rights(target);
	PERFORM partition_require_no_obstacle(target, col);
	PERFORM require_plain_constants(target, index_trees(ARRAY(
		SELECT indexrelid FROM pg_index WHERE indrelid = target)), format('an index of table %s', target));
	PERFORM require_plain_constants(target, stxexprs::text, format('statistics object %I', stxname))
	FROM pg_statistic_ext WHERE stxrelid = target;
	PERFORM require_plain_constants(target, prqual::text, format('publication %I', pubname))
	FROM pg_publication AS p JOIN pg_publication_rel ON prpubid = p.oid WHERE prrelid = target;
	PERFORM partition_rehearse(target, col);
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_require IS 'for refusing a table before anything has been changed';
