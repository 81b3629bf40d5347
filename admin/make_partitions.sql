/* admin/make_partitions.sql */

-- CALL snowflake_make_partitions(): the partitions that a table lacks, each in one
-- transaction:
--
--     1. keep others from changing the table, and look whether the range is still free
--     2. create the table
--     3. attach it, and give it the privileges of the partitioned table

-- Make one partition, or nothing if another session has just made it.  ATTACH PARTITION
-- scans the DEFAULT partition while nobody else can use it, and fails if that has rows
-- of the range.  Such a row is found here by the key's index.
CREATE FUNCTION snowflake_admin.make_partition(parent regclass, key text, low bigint, high bigint, unit text,
	layout snowflake_layout, tries integer, dry_run boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	commands text[];
	default_partition regclass;
	found_id bigint;
BEGIN
	PERFORM lock(ARRAY[parent], tries, dry_run);
	IF EXISTS (SELECT FROM ranges(parent)
			WHERE lower_id < high AND upper_id > low) THEN
		RETURN;
	END IF;
	SELECT partition INTO default_partition FROM ranges(parent)
	WHERE lower_id IS NULL;
	IF FOUND THEN
		SELECT look.id INTO found_id FROM as_owner(default_partition,
			format('SELECT min(%1$s) FROM %2$s WHERE %1$s >= %3$s AND %1$s < %4$s',
				key, default_partition, low, high)) AS look (id bigint);
	END IF;
	IF found_id IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('default partition %s has rows of the partition that is missing', default_partition),
			DETAIL = format('The first of them has the ID %s; the partition would have those from %s to %s.',
				found_id, low, high - 1),
			HINT = format('Detach %s, call this procedure again, and move those rows into %s.',
				default_partition, parent);
	END IF;
	-- CREATE TABLE ... PARTITION OF would lock out everybody.  ATTACH PARTITION does
	-- not, but with foreign keys it locks the other tables against writers.  It evaluates CHECKs and
	-- index expressions, so it runs as the table's owner, and creates the indexes when the partition
	-- is that role's, too.  A role with privileges on the partition itself must not see there what
	-- the table's policies hide.
	--
	-- The partition's name says the time at which it begins, as short as the unit allows; the
	-- cast to the type name keeps 63 bytes.  Nobody can have taken all names, as the last one is random.
	SELECT ARRAY[
		format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY EXCLUDING INDEXES)', partition, parent)
			|| coalesce(' USING ' || (SELECT quote_ident(amname) FROM pg_am WHERE pg_am.oid = relam), '')
			|| coalesce(' TABLESPACE ' || (SELECT quote_ident(spcname)
				FROM pg_tablespace WHERE pg_tablespace.oid = reltablespace), ''),
		format('ALTER TABLE %s OWNER TO %s, %s ROW LEVEL SECURITY', partition, relowner::regrole,
			CASE WHEN relrowsecurity THEN 'ENABLE' ELSE 'DISABLE' END)
			|| CASE relreplident WHEN 'f' THEN ', REPLICA IDENTITY FULL'
				WHEN 'n' THEN ', REPLICA IDENTITY NOTHING' ELSE '' END,
		format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)',
			parent, partition, low, high)]
		|| ARRAY(SELECT privileges_like(parent, caller(), partition))
	INTO commands
	FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace,
		unnest(ARRAY[CASE unit WHEN 'year' THEN '_YYYY' WHEN 'month' THEN '_YYYYMM' ELSE '_YYYYMMDD' END,
			'_YYYYMMDD', '_YYYYMMDDHH24', '_YYYYMMDDHH24MISSMS', '_YYYYMMDDHH24MISSMS_'])
			WITH ORDINALITY AS forms (form, nr),
		concat(to_char(bound_time(low, layout) AT TIME ZONE 'UTC', form),
			CASE nr WHEN 5 THEN left(gen_random_uuid()::text, 8) END) AS suffix,
		concat(substr((suffix || relname)::name::text, 1 + length(suffix)), suffix) AS name,
		format('%I.%I', nspname, name) AS partition
	WHERE pg_class.oid = parent AND (unit <> 'hour' OR nr >= 3) AND (nr = 5
		OR NOT EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = pg_namespace.oid AND c.relname = name)
			AND NOT EXISTS (SELECT FROM pg_type WHERE typnamespace = pg_namespace.oid AND typname = name))
	ORDER BY nr LIMIT 1;
	PERFORM run(commands[1:2], ARRAY[parent], tries, dry_run, mode => NULL);
	PERFORM run(commands[3:],
		ARRAY(SELECT tab FROM related_tables(parent) ORDER BY place, tab)
			|| array_remove(ARRAY[default_partition], NULL),
		tries, dry_run, mode => 'SHARE ROW EXCLUSIVE', owner_of => parent, by_owner => ARRAY[true]);
END
$$;

-- An error unless the owner of a table may execute the functions of its triggers, which every new
-- partition gets from the table
CREATE FUNCTION snowflake_admin.require_trigger_functions(parent regclass) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	lacking record;
BEGIN
	SELECT tgfoid::regprocedure AS function, tgname, relowner::regrole AS owner INTO lacking
	FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
	WHERE tgrelid = parent AND NOT tgisinternal AND NOT has_function_privilege(relowner, tgfoid, 'EXECUTE')
	LIMIT 1;
	IF FOUND THEN
		RAISE insufficient_privilege USING
			MESSAGE = format('permission denied for function %s', lacking.function),
			DETAIL = format('Role %s, which owns table %s, may not execute the function of its trigger %I.', lacking.owner,
				parent, lacking.tgname),
			HINT = format('GRANT EXECUTE ON FUNCTION %s TO %s', lacking.function, lacking.owner);
	END IF;
END
$$;

-- A partition is created and attached in one transaction, so a call that is
-- interrupted leaves no table behind.
CREATE PROCEDURE @extschema@.snowflake_make_partitions(parent regclass, ahead interval DEFAULT '3 days',
	unit text DEFAULT NULL, layout snowflake_layout DEFAULT NULL, dry_run boolean DEFAULT false,
	tries integer DEFAULT 30)
LANGUAGE plpgsql AS $$
DECLARE
	key pg_catalog.text;
	until pg_catalog.timestamptz;
	pieces pg_catalog.record;
	piece pg_catalog.record;
BEGIN
	SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
	CALL require_no_transaction('snowflake_make_partitions()');
	key := require_times(parent);
	PERFORM require_owner(ARRAY[parent]);
	PERFORM require_trigger_functions(parent);
	layout := coalesce(layout, key_layout(parent));
	unit := coalesce(unit, newest_unit(parent, layout));
	-- This loads the library, whose setting the next function reads.
	PERFORM bound(now(), layout);
	until := needed_until(ahead, unit);
	SELECT count(*), min(low) AS low INTO pieces
	FROM missing_ranges(parent, unit, until, layout);
	IF pieces.count > 1000 THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s lacks %s partitions, which is more than 1000', parent, pieces.count),
			DETAIL = format('They are missing from %s until %s.',
				bound_time(pieces.low, layout), until),
			HINT = 'Check the clock. If it is right, give a longer unit.';
	END IF;
	FOR piece IN SELECT * FROM missing_ranges(parent, unit, until, layout) LOOP
		SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
		PERFORM make_partition(
			parent, key, piece.low, piece.high, unit, layout, tries, dry_run);
		COMMIT;
	END LOOP;
END
$$;

COMMENT ON PROCEDURE @extschema@.snowflake_make_partitions(regclass, interval, text, snowflake_layout, boolean,
	integer) IS
'make the partitions that a table lacks, from its last one on, up to a time ahead of now';
