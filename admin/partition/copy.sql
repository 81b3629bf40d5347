/* admin/partition/copy.sql */

-- The commands that create a partitioned table like another table, which has become its first
-- partition.  Executes none of them, and knows no other step.
--
-- They are composed before anything is renamed, so "target" has the name that the new table
-- gets, while "old" is the name that the target gets.  What the target lacks is NULL, and is
-- left out in the end.

-- The command that creates the new table, under any name, like a table of any name
CREATE FUNCTION snowflake_admin.partition_new(target regclass, col name, source text, new text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING INDEXES EXCLUDING IDENTITY '
			'EXCLUDING STATISTICS) '
			'PARTITION BY RANGE (%I)', new, source, col)
		|| CASE WHEN current_setting('server_version_num')::integer >= 170000
			THEN ' USING ' || quote_ident(amname) ELSE '' END
		|| coalesce(' TABLESPACE ' || quote_ident(spcname), '')
	FROM pg_class AS t LEFT JOIN pg_am ON pg_am.oid = relam
	LEFT JOIN pg_tablespace AS s ON s.oid = reltablespace
	WHERE t.oid = target
$$;
COMMENT ON FUNCTION snowflake_admin.partition_new IS
'for creating a partitioned table with the columns of another one';

-- The commands that create each index without partitions, and those that give it the old table's as
-- its first one, so that names stay and no index need be built on the old table.  A rehearsal
-- creates them on a table of the name that the old one gets later, under the names that the old ones
-- get later.
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
	JOIN partition_names(target) AS n ON n.kind = 'i' AND n.object = indexrelid
	JOIN partition_names(target) AS t ON t.kind = 'r'
	LEFT JOIN pg_constraint AS c ON conindid = indexrelid AND conrelid = target
		AND contype IN ('p', 'u', 'x'),
	LATERAL (SELECT CASE WHEN rehearsal THEN t.old_qualified ELSE t.qualified END,
		CASE WHEN rehearsal THEN n.old_name ELSE relname END) AS names (new_table, new_name)
	WHERE indrelid = target ORDER BY indexrelid
$$;
COMMENT ON FUNCTION snowflake_admin.partition_indexes IS
'for creating the indexes and constraints with an index, and attaching those that are there';

-- What the new table gets before the old one is attached: owner, row-level security, privileges,
-- sequences, options of columns and extended statistics.  Nobody can give a sequence to another
-- identity, so a new one goes on from the old one's value.
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
	LEFT JOIN partition_names(target) AS n ON kind = 'S' AND object = objid,
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
	SELECT column_options_like(target, target::text)
	UNION ALL SELECT c FROM pg_statistic_ext AS x JOIN pg_namespace AS n ON n.oid = stxnamespace,
		unnest(pg_get_statisticsobjdef(x.oid)
			|| ARRAY(SELECT statistics_options(x.oid, format('%I.%I', nspname, stxname)))
			|| (format('COMMENT ON STATISTICS %I.%I IS ', nspname, stxname)
				|| quote_literal(obj_description(x.oid, 'pg_statistic_ext')))) AS c
	WHERE stxrelid = target
$$;
COMMENT ON FUNCTION snowflake_admin.partition_before IS
'for giving a new table what it must have before the first partition is attached';

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
COMMENT ON FUNCTION snowflake_admin.partition_code IS 'for giving a new table the code that runs as its owner';

-- The commands for foreign keys.  ATTACH PARTITION takes over those of the old table to others, and
-- checks no row again.  Those that refer to it are added again without a check, which VALIDATE
-- CONSTRAINT does later.  So is one of the table to itself: the partition has it first, and the new
-- table takes it over when it is valid.
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
COMMENT ON FUNCTION snowflake_admin.partition_keys IS
'for moving foreign keys to a new table, before and after the first partition is attached';

-- What the new table gets in the end: publications, comments, statistics targets of indexes and a
-- replica identity.  LIKE copies comments of columns and CHECK constraints.
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
	UNION ALL SELECT c FROM pg_index, index_statistics(indexrelid, indexrelid::regclass::text) AS c
	WHERE indrelid = target AND indisvalid
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
		|| CASE relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING' WHEN 'i' THEN (
			SELECT format('USING INDEX %I', relname) FROM pg_index JOIN pg_class AS i ON i.oid = indexrelid
			WHERE indrelid = target AND indisreplident) END
	FROM pg_class WHERE oid = target
$$;
COMMENT ON FUNCTION snowflake_admin.partition_after IS
'for giving a new table what it can have only with its partition, indexes and foreign keys';

-- What the new table gets, but a lock on the table does not keep others from changing, in one
-- text to be compared: privileges and definitions of the sequences of identities, options of
-- statistics objects, and comments.  Privileges on the table are compared in another way.  ALTER INDEX
-- ... SET and SET STATISTICS in these moments are not noticed.
CREATE FUNCTION snowflake_admin.partition_unlocked(target regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT string_agg(concat_ws(' ', kind, object, relacl, pg_sequence, stxowner, stxstattarget,
		obj_description(object, CASE kind WHEN 'x' THEN 'pg_statistic_ext' ELSE 'pg_class' END)), E'\n'
		ORDER BY kind, object)
	FROM partition_names(target) LEFT JOIN pg_class AS c ON kind <> 'x' AND c.oid = object
	LEFT JOIN pg_sequence ON kind = 'S' AND seqrelid = object
	LEFT JOIN pg_statistic_ext AS x ON kind = 'x' AND x.oid = object
	WHERE kind <> 'r'
$$;
COMMENT ON FUNCTION snowflake_admin.partition_unlocked IS
'for finding what others have changed while commands were composed';

-- The commands that free the names for the new table
CREATE FUNCTION snowflake_admin.partition_renames(target regclass) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_agg(format('ALTER %s %s RENAME TO %I',
		CASE kind WHEN 'r' THEN 'TABLE' WHEN 'i' THEN 'INDEX' WHEN 'S' THEN 'SEQUENCE' ELSE 'STATISTICS' END,
		qualified, old_name) ORDER BY kind <> 'r', kind, object)
	FROM partition_names(target)
$$;
COMMENT ON FUNCTION snowflake_admin.partition_renames IS
'for freeing the names of a table, its indexes and its sequences';

-- The commands that, after the renames, put the new table in the old one's place, and which of
-- them run as the owner
CREATE FUNCTION snowflake_admin.partition_swap_commands(target regclass, col name, bound bigint,
	OUT commands text[], OUT by_owner boolean[])
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_agg(command ORDER BY part, n), array_agg(p.by_owner ORDER BY part, n)
	FROM partition_names(target) AS t, LATERAL (SELECT t.old_qualified) AS o (old),
	LATERAL (VALUES
		(1, false, ARRAY[partition_new(target, col, old, target::text),
			format('ALTER TABLE %s DROP CONSTRAINT snowflake_partition', target)]),
		(2, false, ARRAY(SELECT partition_before(target, old))),
		(3, true, ARRAY(SELECT partition_code(target, old))),
		(4, false, ARRAY(SELECT partition_keys(target, old, false))),
		(5, false, ARRAY[format('SELECT snowflake_admin.attach_before(%L::regclass, %L::regclass, %s::bigint)',
			target, old, bound)]),
		(6, false, ARRAY(SELECT create_command FROM partition_indexes(target, false))),
		(7, true, ARRAY(SELECT attach_command FROM partition_indexes(target, false))),
		(8, false, ARRAY(SELECT partition_keys(target, old, true))),
		(9, false, ARRAY(SELECT partition_after(target, old)))
	) AS p (part, by_owner, commands), unnest(p.commands) WITH ORDINALITY AS c (command, n)
	WHERE t.kind = 'r' AND command IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_admin.partition_swap_commands IS
'for composing the transaction that puts a new table in the place of the old one';
