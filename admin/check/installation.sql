/* admin/check/installation.sql */

-- snowflake_check() judges how the extensions are installed: their versions, and who may create
-- objects beside theirs.  Knows nothing of what they are used for.

-- The version of the library that this session runs, as the scripts have it: without the third number
CREATE FUNCTION snowflake_admin.library_version() RETURNS text
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT pg_catalog.regexp_replace(snowflake_version(), '\.[^.]*$'::text, ''::text);
END;
COMMENT ON FUNCTION snowflake_admin.library_version IS 'for comparing the library with the script';

-- Is a version older than another one?
CREATE FUNCTION snowflake_admin.is_older(version text, other text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT string_to_array(version, '.')::integer[] < string_to_array(other, '.')::integer[]
$$;
COMMENT ON FUNCTION snowflake_admin.is_older IS 'for comparing versions';

-- An extension whose script is of another version than the files on this server, or than the library
-- that runs.  An older library lacks functions of the script.  With shared_preload_libraries, it
-- runs until the server is started again.
CREATE FUNCTION snowflake_admin.check_version()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN has_old_library THEN 'error' ELSE 'warning' END, format('extension %I', name),
		concat_ws(' ', format('Its objects are those of version %s, but %s.', installed_version, concat_ws(', and ',
				CASE WHEN installed_version <> default_version
					THEN format('the server has the files of version %s', default_version) END,
				CASE WHEN has_old_library
					THEN format('this session runs the library of version %s', library_version()) END)),
			CASE WHEN can_update THEN only_role(extowner, 'the extension') END),
		CASE WHEN can_update THEN format('ALTER EXTENSION %I UPDATE', name)
			WHEN are_there THEN 'Connect again. If that does not help, restart the server, which has loaded the library '
				'that was there when it was started.'
			ELSE format('Install the files of version %s on this server.', installed_version) END
	FROM pg_available_extensions AS e JOIN pg_extension ON extname = e.name CROSS JOIN LATERAL (SELECT
		EXISTS (SELECT FROM pg_extension_update_paths(e.name)
			WHERE source = installed_version AND target = default_version AND path IS NOT NULL),
		EXISTS (SELECT FROM pg_available_extension_versions AS v
			WHERE v.name = e.name AND v.version = installed_version),
		name = 'snowflake' AND is_older(library_version(), installed_version))
		AS files (can_update, are_there, has_old_library)
	WHERE name IN ('snowflake', 'snowflake_admin')
		AND (installed_version <> default_version AND (can_update OR NOT are_there) OR has_old_library)
$$;
COMMENT ON FUNCTION snowflake_admin.check_version IS
'for rows about extensions of another version than their files or their library';

-- The roles that may create objects in the schemas of the extensions' commands.  Not there are
-- superusers and the owners of the extensions, who can do what the commands do in any case, and the
-- database's owner, who has the schema public by pg_database_owner.
CREATE FUNCTION snowflake_admin.schema_creators()
RETURNS TABLE (schema name, extensions name[], grantee oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH schemas AS (
		SELECT n.oid, array_agg(extname ORDER BY extname) AS extensions, array_agg(extowner) AS owners
		FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace
		WHERE extname IN ('snowflake', 'snowflake_admin')
		GROUP BY n.oid
	)
	SELECT DISTINCT nspname, extensions, grantee
	FROM schemas JOIN pg_namespace USING (oid),
		aclexplode(coalesce(nspacl, acldefault('n', nspowner)))
	WHERE privilege_type = 'CREATE' AND grantee <> ALL (owners) AND NOT EXISTS (
		SELECT FROM pg_roles AS r WHERE r.oid = grantee AND (rolsuper OR rolname = 'pg_database_owner'
			OR r.oid = (SELECT datdba FROM pg_database WHERE datname = current_database())))
$$;
COMMENT ON FUNCTION snowflake_admin.schema_creators IS
'for roles that may create objects beside those of the extensions';

-- Roles that may create functions beside the commands, and so can do what their callers could
CREATE FUNCTION snowflake_admin.check_schemas()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH creators AS (
		SELECT schema, extensions, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS role,
			row_number() OVER (PARTITION BY schema ORDER BY grantee) AS n
		FROM schema_creators()
	)
	SELECT 'warning', format('schema %I', schema),
		concat_ws(' ', format('%s may create objects in it. A function there that fits a call better than the one of '
			'extension %s is called in its place, with the rights of whoever calls, and stays in defaults.',
			concat_ws(' and ', string_agg(role, ', ' ORDER BY n) FILTER (WHERE n <= 5),
				nullif(greatest(count(*) - 5, 0), 0)::text || ' other roles'),
			array_to_string(extensions, ' or ')),
			(SELECT CASE WHEN nspowner::regrole::text = 'pg_database_owner' THEN only_database_owner()
				ELSE only_role(nspowner, 'the schema') END FROM pg_namespace WHERE nspname = schema)),
		format('REVOKE CREATE ON SCHEMA %I FROM %s', schema, string_agg(role, ', ' ORDER BY n))
	FROM creators GROUP BY schema, extensions
$$;
COMMENT ON FUNCTION snowflake_admin.check_schemas IS
'for rows about roles that may create objects beside those of the extensions';
