/* admin/make_partitions.sql */

-- CALL snowflake_make_partitions(): the partitions that a table lacks.  For each, one
-- transaction:
--
--     1. keep others from changing the table, and look whether the range is still free
--     2. look whether the DEFAULT partition has rows of the range
--     3. create a table like the partitioned one
--     4. attach it, and give it the privileges of the partitioned table, and what its indexes and
--        statistics objects have
--
-- Before, it looks whether the clock has jumped since the table was in use.
--
-- Nobody who reads or writes waits for this, unless by foreign keys or a DEFAULT partition.  A call
-- that is interrupted leaves no table behind.  Knows not which ranges are missing: ranges.sql does.

-- A free name for a new partition, with its schema, quoted.  It says the time at which the
-- partition begins, as short as the unit and other names allow.  The last form is random, so that
-- nobody can have taken all of them.
CREATE FUNCTION snowflake_admin.partition_name(parent regclass, since timestamptz, unit text) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('%I.%I', nspname, name)
	FROM pg_class AS p JOIN pg_namespace ON pg_namespace.oid = p.relnamespace,
		unnest(CASE unit WHEN 'year' THEN '{_YYYY,_YYYYMMDD}'::text[] WHEN 'month' THEN '{_YYYYMM,_YYYYMMDD}'
				WHEN 'hour' THEN '{}' ELSE '{_YYYYMMDD}' END
			|| ARRAY['_YYYYMMDDHH24', '_YYYYMMDDHH24MISSMS',
				format('_YYYYMMDDHH24MISSMS_"%s"', left(gen_random_uuid()::text, 8))])
			WITH ORDINALITY AS forms (form, n),
		to_char(since AT TIME ZONE 'UTC', form) AS suffix,
		with_suffix(p.relname, suffix) AS name
	WHERE p.oid = parent
		AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = p.relnamespace AND c.relname = name)
		AND NOT EXISTS (SELECT FROM pg_type WHERE typnamespace = p.relnamespace AND typname = name)
	ORDER BY n LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_admin.partition_name IS 'for naming a new partition by the time at which it begins';

-- The commands that create a table which can be attached.  PostgreSQL allows no storage parameters
-- for a partitioned table, so those are of another partition, the "model".  A role with privileges on the
-- partition itself must not see there what the table's policies hide.
--
-- CREATE TABLE ... PARTITION OF would lock everybody out of the table.  ATTACH PARTITION locks them
-- out of the DEFAULT partition alone, if there is one.  It evaluates CHECKs and index expressions, so
-- it runs as the table's owner, and creates the indexes when the partition is that role's, too.
CREATE FUNCTION snowflake_admin.creation_of_partition(parent regclass, model regclass, partition text) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_remove(ARRAY[
		format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY EXCLUDING INDEXES)', partition, parent)
			|| coalesce(' USING ' || (SELECT quote_ident(amname) FROM pg_am WHERE pg_am.oid = relam), '')
			|| coalesce(' TABLESPACE ' || (SELECT quote_ident(spcname)
				FROM pg_tablespace WHERE pg_tablespace.oid = reltablespace), ''),
		storage_like(model, partition)], NULL)
		|| ARRAY(SELECT column_options_like(parent, partition))
		|| (format('ALTER TABLE %s OWNER TO %s, %s ROW LEVEL SECURITY', partition, relowner::regrole,
			CASE WHEN relrowsecurity THEN 'ENABLE' ELSE 'DISABLE' END)
			|| CASE relreplident WHEN 'f' THEN ', REPLICA IDENTITY FULL'
				WHEN 'n' THEN ', REPLICA IDENTITY NOTHING' ELSE '' END)
	FROM pg_class WHERE pg_class.oid = parent
$$;
COMMENT ON FUNCTION snowflake_admin.creation_of_partition IS 'for creating a table that can be attached as a partition';

-- An error if the DEFAULT partition has rows of a range.  ATTACH PARTITION scans it for them in any
-- case, unless a constraint says that there are none, while nobody else can use it.  So this only
-- fails earlier, before anybody waits: the key's index finds one.
CREATE FUNCTION snowflake_admin.require_not_in_default(parent regclass, default_partition regclass, key text,
	low bigint, high bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	found_id bigint;
BEGIN
	SELECT look.id INTO found_id FROM as_owner(default_partition,
		format('SELECT min(%1$s) FROM %2$s WHERE %1$s >= %3$s AND %1$s < %4$s',
			key, default_partition, low, high)) AS look (id bigint);
	IF found_id IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('default partition %s has rows of the partition that is missing', default_partition),
			DETAIL = format('The first of them has the ID %s; the partition would have those from %s to %s.',
				found_id, low, high - 1),
			HINT = format('Detach %s, call this procedure again, and move those rows into %s.',
				default_partition, parent);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_not_in_default IS 'for a range of which the DEFAULT partition has rows';

-- Create one partition with the storage parameters of another one, or nothing if another session has
-- just created it.  Partitions that are "known" have other ranges, and are not looked at, which would
-- cost time for each.  Returns the partition, or NULL.  ATTACH PARTITION locks the DEFAULT partition
-- against everybody.  With foreign keys, it locks the other tables against writers.
CREATE FUNCTION snowflake_admin.make_partition(parent regclass, key text, low bigint, high bigint, unit text,
	layout snowflake_layout, model regclass, known oid[], tries integer, dry_run boolean) RETURNS regclass
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	default_partition regclass;
	partition text;
BEGIN
	PERFORM lock(ARRAY[parent], tries, dry_run);
	IF EXISTS (SELECT FROM ranges(parent) AS r
		WHERE r.partition NOT IN (SELECT unnest(known)) AND lower_id < high AND upper_id > low) THEN
		RETURN NULL;
	END IF;
	SELECT nullif(partdefid, 0) INTO default_partition FROM pg_partitioned_table WHERE partrelid = parent;
	IF default_partition IS NOT NULL THEN
		PERFORM require_not_in_default(parent, default_partition, key, low, high);
	END IF;
	partition := partition_name(parent, bound_time(low, layout), unit);
	PERFORM run(creation_of_partition(parent, model, partition), ARRAY[parent], tries, dry_run, mode => NULL);
	PERFORM run(
		format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)', parent, partition, low, high)
			|| ARRAY(SELECT privileges_like(parent, caller(), partition)),
		ARRAY(SELECT tab FROM related_tables(parent) ORDER BY place, tab)
			|| array_remove(ARRAY[default_partition], NULL),
		tries, dry_run, mode => 'SHARE ROW EXCLUSIVE', owner_of => parent, by_owner => ARRAY[true]);
	IF dry_run THEN
		RETURN NULL;
	END IF;
	PERFORM run(ARRAY(SELECT partition_options(parent, partition::regclass)), '{}', 1, false, mode => NULL);
	RETURN partition;
END
$$;
COMMENT ON FUNCTION snowflake_admin.make_partition IS 'for creating one partition under its locks';

-- An error unless the owner of a table may execute the functions of those triggers that every new
-- partition gets from it
CREATE FUNCTION snowflake_admin.require_trigger_functions(parent regclass) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	lacking record;
BEGIN
	SELECT * INTO lacking FROM forbidden_triggers(parent) WHERE for_each_row LIMIT 1;
	IF FOUND THEN
		RAISE insufficient_privilege USING
			MESSAGE = format('permission denied for function %s', lacking.function),
			DETAIL = format('Role %s, which owns table %s, may not execute the function of its trigger %I.', lacking.owner,
				parent, lacking.trigger),
			HINT = format('Role %s, who owns the function, can GRANT EXECUTE ON FUNCTION %s TO %s.',
				(SELECT proowner::regrole FROM pg_proc WHERE oid = lacking.function), lacking.function, lacking.owner);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_trigger_functions IS 'for triggers that a new partition could not get';

-- An error if the partitions of a table end long before the clock's time, and so do its rows: none
-- is as recent as recent_id().  Either nothing has been inserted since, or nothing could be, or the
-- clock has jumped.  A table without rows is no error.
CREATE FUNCTION snowflake_admin.require_no_jump(parent regclass, key text, unit text, layout snowflake_layout)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	recent bigint := recent_id(unit, layout);
	last_end bigint := (SELECT max(upper_id) FROM ranges(parent));
	newest bigint;
BEGIN
	IF last_end < recent THEN
		newest := newest_id(parent, key, layout);
		IF newest < recent THEN
			PERFORM refuse_clock(format('the partitions of table %s end on %s, long before the clock''s time', parent,
				bound_time(last_end, layout)), newest, layout, 'snowflake_make_partitions()');
		END IF;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_no_jump IS 'for a clock that has jumped';

-- The command: checks its arguments, and creates one partition in each transaction.
CREATE PROCEDURE snowflake_admin.make_partitions(parent regclass, ahead interval, unit text, layout snowflake_layout,
	dry_run boolean, tries integer, trust_clock boolean)
LANGUAGE plpgsql AS $$
DECLARE
	key pg_catalog.text;
	until pg_catalog.timestamptz;
	pieces pg_catalog.record;
	piece pg_catalog.record;
	model pg_catalog.regclass;
	known pg_catalog.oid[];
BEGIN
	CALL snowflake_admin.begin_command('snowflake_make_partitions()');
	key := time_key(parent);
	PERFORM require_owner(ARRAY[parent]);
	PERFORM require_trigger_functions(parent);
	layout := coalesce(layout, key_layout(parent));
	unit := coalesce(unit, newest_unit(parent, layout));
	PERFORM require_unit(unit);
	IF ahead IS NULL OR ahead < interval '0' THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('ahead must be at least 0, not %s', coalesce(ahead::text, 'null'));
	END IF;
	until := needed_until(ahead, unit);
	IF trust_clock IS NOT TRUE THEN
		PERFORM require_no_jump(parent, key, unit, layout);
	END IF;
	SELECT count(*), min(low) AS low INTO pieces
	FROM missing_ranges(parent, unit, until, layout);
	IF pieces.count > 1000 THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s lacks %s partitions, which is more than 1000', parent, pieces.count),
			DETAIL = format('They are missing from %s until %s.',
				bound_time(pieces.low, layout), until),
			HINT = 'Check the clock. If it is right, use a longer unit.';
	END IF;
	model := (SELECT partition FROM ranges(parent) WHERE NOT pending AND lower_id IS NOT NULL
		ORDER BY lower_id DESC LIMIT 1);
	known := ARRAY(SELECT inhrelid FROM pg_inherits WHERE inhparent = parent);
	FOR piece IN SELECT * FROM missing_ranges(parent, unit, until, layout) LOOP
		CALL next_transaction();
		known := known || array_remove(ARRAY[make_partition(
			parent, key, piece.low, piece.high, unit, layout, model, known, tries, dry_run)::oid], NULL);
	END LOOP;
	CALL snowflake_admin.end_command();
END
$$;
COMMENT ON PROCEDURE snowflake_admin.make_partitions IS 'for snowflake_make_partitions()';

-- The same for users
CREATE PROCEDURE @extschema@.snowflake_make_partitions(parent regclass, ahead interval DEFAULT '3 days',
	unit text DEFAULT NULL, layout snowflake_layout DEFAULT NULL, dry_run boolean DEFAULT false,
	tries integer DEFAULT 30, trust_clock boolean DEFAULT false)
LANGUAGE plpgsql AS $$
BEGIN
	CALL snowflake_admin.make_partitions(parent, ahead, unit, layout, dry_run, tries, trust_clock);
END
$$;
COMMENT ON PROCEDURE @extschema@.snowflake_make_partitions(regclass, interval, text, snowflake_layout, boolean,
	integer, boolean) IS
'create the partitions that a table lacks, from the newest that has begun up to a time ahead of now';
