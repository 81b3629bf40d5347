--
-- portable/require_closed_schema.sql
--	  Fails if others than its owner, the current role and superusers may create objects
--	  in the first schema of the search_path, or have functions or operators there.
--
-- For to_extension.sql and from_extension.sql, which find names in that schema.  A copy of
-- the same command in snowflake.sql, which is pasted into consoles, and so is one file.
--
DO $$
DECLARE
	schema record;
	other record;
BEGIN
	IF pg_catalog.array_position(pg_catalog.current_schemas(true), 'pg_catalog'::pg_catalog.name) OPERATOR(pg_catalog.>=)
		pg_catalog.array_position(pg_catalog.current_schemas(true), pg_catalog.current_schema()) THEN
		RAISE invalid_schema_name USING
			MESSAGE = 'pg_catalog is not the first schema to be searched',
			HINT = 'Leave pg_catalog out of the search_path.';
	END IF;

	SELECT n.oid, quote_ident(nspname::text) AS name,
		CASE pg_get_userbyid(nspowner) WHEN 'pg_database_owner'::name THEN datdba ELSE nspowner END AS owner
	INTO schema FROM pg_namespace AS n, pg_database WHERE nspname = current_schema() AND datname = current_database();
	SELECT * INTO other FROM (
		SELECT grantee, 'may create objects in '::text || schema.name, 'REVOKE CREATE ON SCHEMA '::text || schema.name
			|| ' FROM '::text || CASE grantee WHEN 0::oid THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)::text) END
		FROM pg_namespace, aclexplode(nspacl)
		WHERE oid = schema.oid AND privilege_type = 'CREATE' AND grantee <> nspowner
		UNION ALL
		SELECT proowner, 'owns '::text || name, 'DROP ROUTINE '::text || name
		FROM pg_proc, LATERAL (SELECT (pg_identify_object('pg_proc'::regclass::oid, oid, 0)).identity) AS object (name)
		WHERE pronamespace = schema.oid
		UNION ALL
		SELECT oprowner, 'owns '::text || name, 'DROP OPERATOR '::text || name
		FROM pg_operator, LATERAL (SELECT (pg_identify_object('pg_operator'::regclass::oid, oid, 0)).identity) AS object (name)
		WHERE oprnamespace = schema.oid) AS others (role, act, remedy)
	WHERE role <> schema.owner
	  AND NOT EXISTS (SELECT FROM pg_roles WHERE oid = role AND (rolsuper OR rolname = current_user))
	LIMIT 1;
	IF FOUND THEN
		RAISE insufficient_privilege USING
			MESSAGE = 'others could choose what names in schema '::text || schema.name || ' mean'::text,
			DETAIL = CASE other.role WHEN 0::oid THEN 'Every role'::text
				ELSE 'Role '::text || quote_ident(pg_get_userbyid(other.role)::text) END || ' '::text || other.act || '.'::text,
			HINT = 'As the owner of the schema: '::text || other.remedy || '.'::text;
	END IF;
END $$;
