-- What the catalogs say of a database, a line for each fact, with names in place of OIDs.  Leaves out what belongs
-- to an extension or to schema lab, and what rows tell, as the values of sequences.
WITH rel AS (
	SELECT c.*, format('%I.%I', nspname, relname) AS name
		FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = relnamespace
	WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'lab', 'snowflake_admin')
		AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
), func AS (
	SELECT p.*, format('%I.%I(%s)', nspname, proname, pg_get_function_identity_arguments(p.oid)) AS name
	FROM pg_proc AS p JOIN pg_namespace AS s ON s.oid = pronamespace
	WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'lab', 'snowflake_admin')
		AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
), col AS (
	-- The columns of an index keep the names that the table's had before.
	SELECT a.*, rel.name AS rel_name, rel.name || '.' || quote_ident(attname) AS name, relowner, relkind,
		row_number() OVER (PARTITION BY attrelid ORDER BY attnum) AS place
	FROM pg_attribute AS a JOIN rel ON rel.oid = attrelid WHERE attnum > 0 AND NOT attisdropped
), acl AS (
	SELECT 'relation ' || name AS object, relowner AS owner,
		coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner)) AS acl
	FROM rel WHERE relkind NOT IN ('i', 'I', 't')
	UNION ALL SELECT 'column ' || name, relowner, attacl FROM col WHERE attacl IS NOT NULL
	UNION ALL SELECT 'function ' || name, proowner, coalesce(proacl, acldefault('f', proowner)) FROM func
	UNION ALL SELECT 'schema ' || nspname, nspowner, nspacl FROM pg_namespace WHERE nspname !~ '^pg_'
		AND nspacl IS NOT NULL
)
SELECT line FROM (
	SELECT concat_ws(' ', 'relation', name, relkind, relowner::regrole, relpersistence,
		CASE WHEN relrowsecurity THEN 'rls' END,
		CASE WHEN relforcerowsecurity THEN 'forced' END, 'identity', relreplident, reloptions, (SELECT spcname
			FROM pg_tablespace WHERE oid = reltablespace),
		(SELECT amname FROM pg_am WHERE oid = relam), pg_get_expr(relpartbound, oid),
			CASE relkind WHEN 'p' THEN pg_get_partkeydef(oid) END,
		obj_description(oid, 'pg_class')) FROM rel WHERE relkind <> 't'
	UNION ALL SELECT concat_ws(' ', 'privilege', object,
		CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, privilege_type, is_grantable,
		'of', CASE WHEN grantor = owner THEN 'the owner' ELSE grantor::regrole::text END)
	FROM acl, aclexplode(acl)
	UNION ALL SELECT concat_ws(' ', 'column', name, place, format_type(atttypid, atttypmod),
		CASE WHEN attnotnull THEN 'not null' END,
		'default ' || (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum),
			attidentity, attgenerated,
		nullif(attcollation, 0)::regcollation, attstorage, attcompression, col_description(attrelid, attnum))
	FROM col WHERE relkind NOT IN ('i', 'I', 'S')
	UNION ALL SELECT concat_ws(' ', 'statistics of', CASE WHEN relkind IN ('i', 'I') THEN rel_name || '.'
		|| attnum ELSE name END, coalesce(attstattarget, -1),
		(SELECT string_agg(o, ',') FROM unnest(attoptions) AS o WHERE o LIKE 'n\_distinct%')) FROM col
			WHERE relkind <> 'S'
	-- PostgreSQL chooses the names of those that partitions have from their parent, and a restore those
	-- of NOT NULL.  Before 18, a foreign key that is validated after a restore leaves them NOT VALID,
	-- which changes nothing.
	UNION ALL SELECT concat_ws(' ', 'constraint', rel.name,
		CASE WHEN contype = 'n' THEN NULL WHEN conparentid = 0 THEN quote_ident(conname) ELSE 'of parent' END, contype,
		CASE WHEN conparentid = 0 THEN pg_get_constraintdef(c.oid)
			ELSE replace(pg_get_constraintdef(c.oid), ' NOT VALID', '') END,
		conparentid <> 0 OR convalidated, condeferrable, condeferred, obj_description(c.oid, 'pg_constraint'))
	FROM pg_constraint AS c JOIN rel ON rel.oid = conrelid
	UNION ALL SELECT concat_ws(' ', 'index', pg_get_indexdef(indexrelid), indisvalid, indisready, indisunique,
		indisprimary, indisclustered, indisreplident,
		(SELECT 'of ' || inhparent::regclass FROM pg_inherits WHERE inhrelid = indexrelid))
	FROM pg_index JOIN rel ON rel.oid = indrelid WHERE relkind <> 't'
	UNION ALL SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(t.oid), tgenabled,
		CASE WHEN tgparentid <> 0 THEN 'of parent' END, obj_description(t.oid, 'pg_trigger'))
	FROM pg_trigger AS t JOIN rel ON rel.oid = tgrelid WHERE NOT tgisinternal
	UNION ALL SELECT concat_ws(' ', 'policy', rel.name, quote_ident(polname), polcmd, polpermissive,
		(SELECT string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE r::regrole::text END, ',' ORDER BY r)
			FROM unnest(polroles) AS r),
		pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid), obj_description(p.oid, 'pg_policy'))
	FROM pg_policy AS p JOIN rel ON rel.oid = polrelid
	UNION ALL SELECT concat_ws(' ', 'rule', rel.name, pg_get_ruledef(r.oid))
		FROM pg_rewrite AS r JOIN rel ON rel.oid = ev_class
	UNION ALL SELECT concat_ws(' ', 'function', name, proowner::regrole, prosecdef, proconfig, prosrc) FROM func
	UNION ALL SELECT concat_ws(' ', 'type', format_type(t.oid, NULL), typowner::regrole, typtype,
		format_type(nullif(typbasetype, 0), typtypmod), typdefault)
	FROM pg_type AS t JOIN pg_namespace AS s ON s.oid = typnamespace
	WHERE typtype IN ('d', 'e', 'r') AND nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'lab',
		'snowflake_admin')
		AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_type'::regclass AND objid = t.oid AND deptype IN ('e',
			'i'))
	UNION ALL SELECT concat_ws(' ', 'sequence', name, seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax,
		seqcache, seqcycle,
		(SELECT format('owned by %s.%I %s', refobjid::regclass, attname, deptype)
			FROM pg_depend JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
			WHERE classid = 'pg_class'::regclass AND objid = rel.oid AND deptype IN ('a', 'i')))
	FROM pg_sequence JOIN rel ON rel.oid = seqrelid
	UNION ALL SELECT concat_ws(' ', 'statistics', pg_get_statisticsobjdef(s.oid),
		(to_jsonb(s) ->> 'stxstattarget')::integer) FROM pg_statistic_ext AS s JOIN rel ON rel.oid = stxrelid
	UNION ALL SELECT concat_ws(' ', 'published', pubname, schemaname, tablename,
		ARRAY(SELECT unnest(attnames) ORDER BY 1), rowfilter)
		FROM pg_publication_tables WHERE schemaname <> 'lab'
	UNION ALL SELECT concat_ws(' ', 'child', c.name, 'of', inhparent::regclass, inhdetachpending)
		FROM pg_inherits JOIN rel AS c ON c.oid = inhrelid
	UNION ALL SELECT concat_ws(' ', 'event trigger', evtname, evtenabled) FROM pg_event_trigger
) AS facts (line) ORDER BY line COLLATE "C"
