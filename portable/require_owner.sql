--
-- portable/require_owner.sql
--	  Fails if what the script would change belongs to another role than the current one,
--	  unless that is a superuser.
--
-- To change a column, PostgreSQL runs code that the table's owner has chosen, such as that
-- of constraints and index expressions, with the rights of the current role.  The owner of
-- the functions has chosen what snowflake_shard() does.  Included by to_extension.sql and
-- from_extension.sql, with pg_catalog alone in the search_path.  The variable schema names
-- the schema of the functions.  The array old_objects has the OIDs of the objects that the
-- script replaces, and old_classes those of their catalogs.
--
WITH old AS (
	SELECT * FROM unnest(:'old_classes'::oid[], :'old_objects'::oid[]) AS old (classid, objid)
), changes (tab, command) AS (
	SELECT adrelid, format('ALTER TABLE ONLY %s ALTER %I DROP DEFAULT', adrelid::regclass, attname)
	FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
	WHERE attgenerated = '' AND EXISTS (
		SELECT FROM pg_depend AS d JOIN old ON old.classid = refclassid AND old.objid = refobjid
		WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = pg_attrdef.oid)
	UNION ALL
	SELECT attrelid, CASE attinhcount WHEN 0 THEN format('ALTER TABLE %s ALTER %I TYPE bigint', attrelid::regclass, attname) END
	FROM pg_attribute JOIN old ON old.classid = 'pg_type'::regclass AND atttypid = old.objid
		JOIN pg_class ON pg_class.oid = attrelid WHERE relkind IN ('r', 'p', 'f')
), objects (rank, name, owner, commands) AS (
	SELECT 1, 'schema ' || quote_ident(nspname), CASE nspowner WHEN 'pg_database_owner'::regrole THEN datdba ELSE nspowner END, NULL
	FROM pg_namespace, pg_database WHERE pg_namespace.oid = :'schema'::regnamespace AND datname = current_database()
	UNION ALL
	SELECT 2, 'function ' || proc.oid::regprocedure, proowner, NULL
	FROM pg_proc AS proc JOIN old ON classid = 'pg_proc'::regclass AND objid = proc.oid
	UNION ALL
	SELECT 3, 'sequence ' || class.oid::regclass, relowner, NULL
	FROM pg_class AS class JOIN old ON classid = 'pg_class'::regclass AND objid = class.oid
	UNION ALL
	SELECT 4, 'table ' || class.oid::regclass, relowner, string_agg(command, '; ' ORDER BY command)
	FROM pg_class AS class JOIN changes ON tab = class.oid GROUP BY class.oid
), others AS (
	SELECT rank, name, quote_ident(rolname) AS role, commands FROM objects JOIN pg_roles ON oid = owner
	WHERE NOT rolsuper AND rolname <> current_user
)
SELECT format('DO %L', format('BEGIN RAISE insufficient_privilege USING MESSAGE = %L, DETAIL = %L, HINT = %L; END',
	(array_agg(format('%s belongs to role %s', name, role) ORDER BY rank, name))[1],
	format('The script could run code of %s with the rights of %I.', string_agg(DISTINCT role, ', '), current_user),
	'If one role owns the schema, the functions and all tables, run the script as this role.'
	|| coalesce(' Otherwise, first run, and afterwards set again what this removes:'
		|| string_agg(format(E'\n(as %s) %s;', role, commands), '' ORDER BY name), '')))
FROM others HAVING count(*) > 0 \gexec
