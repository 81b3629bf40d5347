--
-- portable/from_extension.sql
--	  Moves a database from the extension "snowflake" to portable/snowflake.sql.
--
-- Stop the programs that generate IDs, and run this file by psql, as the owner of
-- the database, of the extension and of the tables.  The functions will belong to
-- this role.  It is one transaction: after an error, nothing has changed.  The last
-- error may be that other objects depend on the extension, such as views, indexes
-- and generated columns.  Drop these first, and create them again afterwards.
--
-- Steps: install the portable version beside the extension; move defaults and
-- columns; take over the shard, and begin above the extension's IDs; drop the
-- extension, and move the portable version into its place.  Other sequences serve
-- both versions as they are.
--
\set QUIET 1
\set ON_ERROR_STOP 1
BEGIN;
SET LOCAL lock_timeout = '5s';

SET LOCAL search_path = pg_catalog, pg_temp;
SELECT extnamespace::regnamespace AS schema, array_agg(classid) AS old_classes, array_agg(objid) AS old_objects
FROM pg_extension JOIN pg_depend ON refclassid = 'pg_extension'::regclass AND refobjid = pg_extension.oid
WHERE extname = 'snowflake' AND deptype = 'e' GROUP BY extnamespace \gset
\ir require_owner.sql
SET LOCAL search_path = :schema, pg_temp;
\ir require_closed_schema.sql
DO $$
DECLARE
	other record;
BEGIN
	SELECT * INTO other FROM snowflake_sequences() WHERE layout <> 'instagram' LIMIT 1;
	IF FOUND THEN
		RAISE feature_not_supported USING
			MESSAGE = format('sequence %s serves layout "%s"', other.sequence, other.layout),
			DETAIL = 'The portable version has no layout but "instagram".';
	END IF;
END $$;

-- PostgreSQL warns that it ignores the cast of a domain.
SET LOCAL client_min_messages = error;
CREATE SCHEMA snowflake_portable;
SET LOCAL search_path = snowflake_portable, pg_temp;
\ir snowflake.sql
SET LOCAL client_min_messages = warning;

-- An expression is read with the extension first in the search_path, and so without
-- its schema.  Parsed with the new objects first, it means these.
SET LOCAL search_path = :schema, pg_temp;
SELECT coalesce(string_agg(format('ALTER TABLE ONLY %s ALTER %I SET DEFAULT %s',
	adrelid::regclass, attname, pg_get_expr(adbin, adrelid)), '; '), '') AS commands
FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
WHERE attgenerated = '' AND EXISTS (
	SELECT FROM pg_depend AS used
		JOIN pg_depend AS member ON member.classid = used.refclassid AND member.objid = used.refobjid
		JOIN pg_extension ON member.refclassid = 'pg_extension'::regclass AND member.refobjid = pg_extension.oid
	WHERE used.classid = 'pg_attrdef'::regclass AND used.objid = pg_attrdef.oid
	  AND member.deptype = 'e' AND extname = 'snowflake') \gset
SELECT coalesce(string_agg(format('ALTER TABLE %s ALTER %I TYPE snowflake_portable.snowflake',
	attrelid::regclass, attname), '; '), '') AS types
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE atttypid = 'snowflake'::regtype AND relkind IN ('r', 'p', 'f') AND attinhcount = 0 \gset
SET LOCAL search_path = snowflake_portable, :schema, pg_temp;
:commands;
:types;

-- Nobody takes an ID from the extension's sequence after this.
SET LOCAL search_path = :schema, pg_temp;
ALTER SEQUENCE next_id_seq NO CYCLE;
DO $$ BEGIN
	PERFORM snowflake_portable.snowflake_set_shard(current_setting('snowflake.shard')::bigint);
	PERFORM snowflake_set_shard(NULL);
	PERFORM snowflake_portable.snowflake_advance('snowflake_portable.next_id_seq', next_id(8191));
END $$;

DROP EXTENSION IF EXISTS snowflake_admin;
DROP EXTENSION snowflake;
SELECT format('ALTER FUNCTION %s SET SCHEMA %s', oid::regprocedure, :'schema') FROM pg_proc
WHERE pronamespace = 'snowflake_portable'::regnamespace \gexec
ALTER SEQUENCE snowflake_portable.next_id_seq SET SCHEMA :schema;
ALTER DOMAIN snowflake_portable.snowflake SET SCHEMA :schema;
DROP SCHEMA snowflake_portable;
COMMIT;
