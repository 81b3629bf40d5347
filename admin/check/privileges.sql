/* admin/check/privileges.sql */

-- snowflake_check() judges privileges: who may insert into a table, but not use what its
-- default uses.  Whoever inserts needs that privilege.  Knows nothing of shards and IDs.

-- The sequences that those who insert may not use, each with one of the tables, the sequence's owner, and
-- what grants the privilege
CREATE FUNCTION snowflake_admin.lacking_sequences(fillers filler[])
RETURNS TABLE (role text, tab regclass, thing text, command text, owner oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT ON (role, sequence, needed) role, f.tab, 'sequence ' || sequence,
		format('GRANT %s ON SEQUENCE %s TO %s', needed, sequence, role),
		(SELECT relowner FROM pg_class WHERE oid = sequence)
	FROM unnest(fillers) AS f
	JOIN inserters(ARRAY(SELECT u.tab FROM unnest(fillers) AS u)) AS i ON i.tab = f.tab
	CROSS JOIN LATERAL (SELECT CASE WHEN is_built_in THEN 'USAGE' ELSE 'UPDATE' END) AS n (needed)
	WHERE sequence <> next_id_seq()
		AND NOT has_sequence_privilege(grantee, sequence::oid, needed || ', UPDATE')
$$;
COMMENT ON FUNCTION snowflake_admin.lacking_sequences IS 'for sequences that those who insert may not use';

-- The functions that such roles may not execute
CREATE FUNCTION snowflake_admin.lacking_functions(fillers filler[])
RETURNS TABLE (role text, tab regclass, function oid, thing text, command text, owner oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT ON (role, p.oid) role, f.tab, p.oid, 'function ' || p.oid::regprocedure,
		format('GRANT EXECUTE ON FUNCTION %s TO %s', p.oid::regprocedure, role), proowner
	FROM unnest(fillers) AS f
	JOIN inserters(ARRAY(SELECT u.tab FROM unnest(fillers) AS u)) AS i ON i.tab = f.tab
	JOIN pg_depend AS d ON (d.classid, d.objid) = (f.class, f.object) AND d.refclassid = 'pg_proc'::regclass
	JOIN pg_proc AS p ON p.oid = d.refobjid
	WHERE f.class <> 'pg_proc'::regclass AND NOT has_function_privilege(grantee, p.oid, 'EXECUTE')
$$;
COMMENT ON FUNCTION snowflake_admin.lacking_functions IS 'for functions that those who insert may not execute';

-- Privileges that those who insert lack.  Whoever owns a table can name anybody's sequence or
-- function in its default, so the GRANT is shown only if both have one owner, or if the function is
-- of the extensions.  Otherwise the row is about the table.
CREATE FUNCTION snowflake_admin.check_privileges(fillers filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH fillers AS MATERIALIZED (
		-- A trigger's function may have its owner's privileges.
		SELECT array_agg(f) AS array FROM unnest(fillers) AS f
		WHERE object NOT IN (SELECT oid FROM pg_proc WHERE prosecdef)
	), lacking AS (
		SELECT l.*, false AS is_ours FROM fillers CROSS JOIN LATERAL lacking_sequences(fillers.array) AS l
		UNION ALL SELECT role, tab, thing, command, owner,
			function IN (SELECT object FROM extension_members() WHERE class = 'pg_proc'::regclass)
		FROM fillers CROSS JOIN LATERAL lacking_functions(fillers.array)
	)
	SELECT 'error', CASE WHEN is_ours OR owner = relowner THEN thing ELSE format('table %s', tab) END,
		format('%s may insert into %s, but not use %s, so such an INSERT fails.%s', role, tab,
			CASE WHEN is_ours OR owner = relowner THEN 'this ' || split_part(thing, ' ', 1) ELSE thing END,
			CASE WHEN NOT pg_has_role(owner, 'USAGE') THEN format(' Only %s can grant this.',
				CASE WHEN is_ours THEN 'a superuser' ELSE owner::regrole::text END) END),
		CASE WHEN is_ours OR owner = relowner THEN command
			ELSE format('It belongs to %s, who can grant this to %s. Otherwise give the table another default.',
				owner::regrole, role) END
	FROM lacking JOIN pg_class ON pg_class.oid = tab
$$;
COMMENT ON FUNCTION snowflake_admin.check_privileges IS 'for rows about roles that may insert, but not generate IDs';
