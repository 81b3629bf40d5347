/* admin/engines.sql */

-- Tables whose rows Citus or TimescaleDB keeps in other tables: in shards, mostly of other servers,
-- and in chunks.  Commands that read, lock or copy the table itself would miss these rows.  The
-- catalogs that are read here belong to superusers, and are plain tables.  Knows no command.

-- Which of these tables an engine manages, and by which column Citus distributes the rows, if it does
CREATE FUNCTION snowflake_admin.engines(tables oid[]) RETURNS TABLE (tab oid, engine text, distributed_by name)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
		RETURN QUERY SELECT logicalrelid::oid, 'Citus', column_to_column_name(logicalrelid, partkey)::name
			FROM pg_catalog.pg_dist_partition WHERE logicalrelid = ANY (tables);
	END IF;
	IF EXISTS (SELECT FROM pg_extension WHERE extname = 'timescaledb') THEN
		-- A chunk is a child of its hypertable, in all versions, whose catalogs name chunks differently.
		RETURN QUERY SELECT DISTINCT t.oid, 'TimescaleDB', NULL::name
			FROM unnest(tables) AS t (oid) LEFT JOIN pg_inherits ON inhrelid = t.oid
			JOIN pg_class AS c ON c.oid IN (t.oid, inhparent) JOIN pg_namespace AS s ON s.oid = relnamespace
			JOIN _timescaledb_catalog.hypertable ON schema_name = nspname AND table_name = relname;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.engines IS 'for telling the tables of Citus and TimescaleDB from others';

-- An error if one of these engines manages a table of a command that does not know how
CREATE FUNCTION snowflake_admin.require_no_engine(command text, tables oid[],
	refused text[] DEFAULT '{Citus,TimescaleDB}', hint text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	managed record;
BEGIN
	SELECT tab::regclass AS tab, engine INTO managed FROM engines(tables) AS e
	WHERE engine = ANY (refused) ORDER BY e.tab LIMIT 1;
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot call %s for table %s of %s', command, managed.tab, managed.engine),
			DETAIL = format('%s keeps its rows in other tables.', managed.engine),
			HINT = coalesce(hint, CASE managed.engine
				WHEN 'Citus' THEN 'Call it before create_distributed_table(), or call undistribute_table() first.'
				ELSE 'Call it for a copy of the table, and then create_hypertable().' END);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_no_engine IS 'for refusing tables whose rows a command would miss';
