/* admin/partition/state.sql */

-- What snowflake_partition() finds: how far a table is, its key, and the names that are to
-- change.  Changes nothing, and composes no command.

-- An error unless the CHECK, if there is one, bounds this column
CREATE FUNCTION snowflake_admin.partition_require_mark(target regclass, col name) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF EXISTS (SELECT FROM partition_mark(target) AS c WHERE c.col IS DISTINCT FROM partition_require_mark.col) THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('constraint snowflake_partition of table %s is not of snowflake_partition()', target),
			DETAIL = format('It should be CHECK (%I < snowflake_admin.partition_limit()).', col),
			HINT = format('ALTER TABLE %s RENAME CONSTRAINT snowflake_partition TO ... first, or drop it.', target);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_require_mark IS
'for refusing a constraint that only has the name of the one that marks a table';

-- The partitioned table, and that which has become its first partition, given either of them.
-- Both are NULL for a table that is still to become a partition.  An error for all else.
CREATE FUNCTION snowflake_admin.partition_target(target regclass, OUT parent regclass, OUT old regclass)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	tab record;
BEGIN
	SELECT relkind, relispartition, relpersistence INTO tab FROM pg_class WHERE oid = target;
	IF target IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'tab must not be null';
	ELSIF tab.relkind IS NULL OR tab.relkind NOT IN ('r', 'p') THEN
		RAISE wrong_object_type USING MESSAGE = format('%s is not a table', target);
	ELSIF tab.relpersistence = 't' THEN
		RAISE object_not_in_prerequisite_state USING MESSAGE = format('table %s is temporary', target);
	END IF;
	PERFORM require_owner(ARRAY[target]);
	IF tab.relispartition THEN
		SELECT inhparent INTO parent FROM pg_inherits WHERE inhrelid = target;
	ELSIF tab.relkind = 'p' THEN
		parent := target;
	END IF;
	-- An error unless its bounds are IDs
	IF parent IS NOT NULL THEN
		PERFORM partition_key(parent);
	END IF;
	SELECT r.partition INTO old FROM ranges(parent) AS r
	WHERE lower_id = '-9223372036854775808' AND (tab.relkind = 'p' OR r.partition = target);
	IF parent IS NOT NULL AND old IS NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = CASE tab.relkind WHEN 'p' THEN format('table %s is partitioned already', target)
				ELSE format('table %s is a partition of %s', target, parent) END,
			HINT = 'CALL snowflake_make_partitions(...) creates the next partitions of a partitioned table.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_target IS
'for knowing whether a table has become a partition already';

-- The column that next_id() fills, preferably one of the primary key, and the last ID's time
CREATE FUNCTION snowflake_admin.partition_id(target regclass, OUT col name, OUT layout snowflake_layout,
	OUT last_time timestamptz)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	key record;
BEGIN
	SELECT attname, min(expression) AS expression, array_agg(sequence) AS sequences INTO key
	FROM filled(ARRAY[target]) AS f JOIN pg_attribute ON attrelid = tab AND attnum = f.col
	LEFT JOIN pg_index AS i ON i.indrelid = tab AND indisprimary AND attnum = ANY (indkey[0:indnkeyatts - 1])
	WHERE made_by = 'next_id' AND is_id(atttypid)
	GROUP BY attname, attnum ORDER BY bool_or(i.indrelid IS NOT NULL) DESC, attnum LIMIT 1;
	IF NOT FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has no bigint or snowflake key that next_id() generates', target),
			HINT = coalesce((
				SELECT leave_domain(target, attname)
				FROM filled(ARRAY[target]) AS f JOIN pg_attribute ON attrelid = tab AND attnum = f.col
				WHERE made_by = 'next_id' AND is_id(base_type(atttypid)) LIMIT 1), (
				SELECT call_of('snowflake_widen', target, format(', %L::name', min(k.col_name)))
					|| ' first, and then snowflake_move(), because the key must contain the time.'
				FROM keys_of(ARRAY[target::oid]) AS k
				HAVING bool_and(base_type(k.type) IN ('smallint'::regtype, 'integer'::regtype))),
				call_of('snowflake_move', target) || ' first, because the key must contain the time.');
	END IF;
	col := key.attname;
	layout := coalesce(layout_of(key.expression, key.sequences[1]), 'instagram');
	SELECT max(last_timestamp) INTO last_time
	FROM unnest(key.sequences) AS s, sequence_states(s,
		partition_id.layout);
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_id IS
'for knowing by which column a table is to be partitioned, and where its IDs end';

-- A name with _old at its end, or _old2 and so on, that no relation, type or statistics object of
-- a schema has: the n-th one that is free.  NULL if somebody has taken a thousand of them.
CREATE FUNCTION snowflake_admin.old_name(name name, schema oid, n bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	candidate name;
BEGIN
	FOR i IN 1 .. 1000 LOOP
		candidate := with_suffix(name, concat('_old', nullif(i, 1)));
		n := n - (NOT (EXISTS (SELECT FROM pg_class WHERE relnamespace = schema AND relname = candidate)
			-- PostgreSQL itself renames the type of an array that is in the way.
			OR EXISTS (SELECT FROM pg_type WHERE typnamespace = schema AND typname = candidate AND typcategory <> 'A')
			OR EXISTS (SELECT FROM pg_statistic_ext WHERE stxnamespace = schema AND stxname = candidate)))::integer;
		IF n = 0 THEN
			RETURN candidate;
		END IF;
	END LOOP;
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_admin.old_name IS 'for renaming what gives its name to something new';

-- The table, its indexes, the sequences of its identities and its extended statistics, with
-- other names.  What the new table gets has the present ones.  The kind is that of pg_class, and
-- x for statistics.
CREATE FUNCTION snowflake_admin.partition_names(target regclass)
RETURNS TABLE (object oid, kind "char", qualified text, old_name text, old_qualified text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH objects (object, kind, name, schema) AS (
		SELECT oid, relkind, relname, relnamespace FROM pg_class WHERE oid = target
		UNION ALL SELECT oid, 'i', relname, relnamespace FROM pg_index JOIN pg_class ON oid = indexrelid
		WHERE indrelid = target AND indisvalid
		UNION ALL SELECT oid, relkind, relname, relnamespace FROM pg_depend JOIN pg_class ON oid = objid
		WHERE classid = 'pg_class'::regclass AND refclassid = classid AND refobjid = target AND deptype = 'i'
			AND relkind = 'S'
		UNION ALL SELECT oid, 'x', stxname, stxnamespace FROM pg_statistic_ext WHERE stxrelid = target
	), numbered AS (
		-- Long names may differ only at the end, which the suffix takes.
		SELECT *, row_number() OVER (PARTITION BY schema, with_suffix(name, '_old') ORDER BY kind <> 'r', object) AS n
		FROM objects
	)
	SELECT object, kind, format('%I.%I', nspname, name), old_name, format('%I.', nspname) || quote_ident(old_name)
	FROM numbered JOIN pg_namespace ON pg_namespace.oid = schema, old_name(name, schema, n) AS old_name
$$;
COMMENT ON FUNCTION snowflake_admin.partition_names IS
'for knowing what is renamed, so that the new table can have the names';
