--
-- portable/to_extension.sql
--	  Moves a database from portable/snowflake.sql to the extension "snowflake".
--
-- Stop the programs that generate IDs, and run this file by psql, as the owner of
-- the database, of the functions and of the tables.  It is one transaction: after
-- an error, nothing has changed.  The last error may be that other objects depend
-- on the old functions, such as views, indexes and generated columns.  Drop these
-- first, and create them again afterwards.
--
-- Steps: move the old objects out of the way and create the extension in their
-- place; move defaults and columns; take over the shard, and begin above the old
-- IDs; drop the old objects.  Other sequences serve both versions as they are.
--
\set QUIET 1
\set ON_ERROR_STOP 1
BEGIN;
SET LOCAL lock_timeout = '5s';
SET LOCAL client_min_messages = warning;

SELECT pronamespace::pg_catalog.regnamespace AS schema FROM pg_catalog.pg_proc
WHERE oid OPERATOR(pg_catalog.=) 'snowflake_take(bigint, bigint, pg_catalog.regclass, bigint)'::pg_catalog.regprocedure \gset
SET LOCAL search_path = :schema, pg_temp;
\ir require_closed_schema.sql

-- The functions are named one by one, because the schema may have others like them.
SELECT pg_catalog.array_agg(function::pg_catalog.oid) AS functions
FROM pg_catalog.unnest('{
	next_id(),
	next_id(bigint),
	"next_id(bigint, regclass)",
	"next_ids(bigint, bigint)",
	"next_ids(bigint, bigint, regclass)",
	"snowflake_advance(regclass, bigint)",
	snowflake_alter_sequence(regclass),
	snowflake_fields(bigint),
	"snowflake_id(timestamptz, bigint, bigint)",
	snowflake_max_id(timestamptz),
	snowflake_min_id(timestamptz),
	snowflake_no_shard(),
	"snowflake_replace_shard(bigint, regprocedure, regprocedure)",
	snowflake_sequence_number(bigint),
	snowflake_set_shard(bigint),
	snowflake_shard(),
	snowflake_shard(bigint),
	"snowflake_take(bigint, bigint, regclass, bigint)",
	snowflake_timestamp(bigint),
	snowflake_to_json(snowflake),
	"snowflake_to_text(bigint, text)"}'::pg_catalog.text[]) AS name, pg_catalog.to_regprocedure(name) AS function
WHERE function IS NOT NULL \gset
SET LOCAL search_path = pg_catalog, pg_temp;
SELECT array_agg(classid) AS old_classes, array_agg(objid) AS old_objects FROM (
	SELECT 'pg_proc'::regclass::oid, unnest(:'functions'::oid[])
	UNION ALL SELECT 'pg_class'::regclass, (:'schema' || '.next_id_seq')::regclass
	UNION ALL SELECT 'pg_type'::regclass, (:'schema' || '.snowflake')::regtype) AS old (classid, objid) \gset
\ir require_owner.sql
SET LOCAL search_path = :schema, pg_temp;

CREATE SCHEMA snowflake_portable;
SELECT format('ALTER FUNCTION %s SET SCHEMA snowflake_portable', function::regprocedure)
FROM unnest(:'functions'::oid[]) AS function \gexec
ALTER SEQUENCE next_id_seq SET SCHEMA snowflake_portable;
ALTER DOMAIN snowflake SET SCHEMA snowflake_portable;
CREATE EXTENSION snowflake SCHEMA :schema;

-- An expression is read with the old objects first in the search_path, and so without
-- their schema.  Parsed without them, it means the extension's.
SET LOCAL search_path = snowflake_portable, :schema, pg_temp;
SELECT coalesce(string_agg(format('ALTER TABLE ONLY %s ALTER %I SET DEFAULT %s',
	adrelid::regclass, attname, pg_get_expr(adbin, adrelid)), '; '), '') AS commands
FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
WHERE attgenerated = '' AND EXISTS (
	SELECT FROM pg_depend JOIN pg_proc ON pg_proc.oid = refobjid
	WHERE classid = 'pg_attrdef'::regclass AND objid = pg_attrdef.oid
	  AND refclassid = 'pg_proc'::regclass AND pronamespace = 'snowflake_portable'::regnamespace) \gset
SET LOCAL search_path = :schema, pg_temp;
:commands;
SELECT format('ALTER TABLE %s ALTER %I TYPE snowflake', attrelid::regclass, attname)
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE atttypid = 'snowflake_portable.snowflake'::regtype AND relkind IN ('r', 'p', 'f') AND attinhcount = 0 \gexec

DO $$ BEGIN
	PERFORM snowflake_set_shard(snowflake_portable.snowflake_shard())
	WHERE NOT EXISTS (SELECT FROM pg_depend
					  WHERE objid = 'snowflake_portable.snowflake_shard()'::regprocedure
						AND refobjid = 'snowflake_portable.snowflake_no_shard()'::regprocedure);
	PERFORM snowflake_advance('next_id_seq', snowflake_portable.next_id(8191));
END $$;

DROP CAST (snowflake_portable.snowflake AS json);
SELECT 'DROP FUNCTION ' || string_agg(oid::regprocedure::text, ', ') FROM pg_proc
WHERE pronamespace = 'snowflake_portable'::regnamespace \gexec
DROP SEQUENCE snowflake_portable.next_id_seq;
DROP DOMAIN snowflake_portable.snowflake;
DROP SCHEMA snowflake_portable;
COMMIT;
