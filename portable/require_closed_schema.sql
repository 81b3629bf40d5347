--
-- portable/require_closed_schema.sql
--	  Fails if others than its owner may create objects in the schema whose OID is the
--	  variable schema_oid.
--
-- to_extension.sql and from_extension.sql find names in that schema, where others could
-- have put their own.  Included by them, with pg_catalog alone in the search_path.  Sets
-- the variable schema to the schema's name.
--
SELECT :schema_oid::regnamespace AS schema, EXISTS (
	SELECT FROM pg_namespace, aclexplode(nspacl) AS a
	WHERE pg_namespace.oid = :schema_oid AND privilege_type = 'CREATE' AND grantee <> nspowner) AS others_create \gset
\if :others_create
\warn 'others may create objects in the schema; as its owner: REVOKE CREATE ON SCHEMA' :schema 'FROM PUBLIC, and from other roles'
DO $$ BEGIN RAISE insufficient_privilege USING MESSAGE = 'others may create objects in the schema of the functions'; END $$;
\endif
