/* admin/ranges.sql */

-- Partitions by time: snowflake_partitions(), and what creating and dropping partitions
-- share.  Changes nothing, and knows no row but the newest.
--
-- Bounds are IDs, as PostgreSQL keeps them.  MINVALUE and MAXVALUE stand here as
-- the least and the largest bigint, which are no IDs.  Units of time are those of
-- UTC: they are counted in timestamps without time zone.
--
-- A clock that is far ahead makes all rows old, and all partitions past.  Nothing here tells the
-- right time but the newest rows: a command that would act on what they contradict is refused
-- until somebody has looked at the clock.

-- The column by whose ranges a table is partitioned, quoted.  An error if there is none, or if its
-- values cannot be IDs.
CREATE FUNCTION snowflake_admin.partition_key(parent regclass) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	strategy "char";
	key text;
	suits boolean;
BEGIN
	SELECT partstrat, quote_ident(attname), partnatts = 1 AND is_id(atttypid)
	INTO strategy, key, suits
	FROM pg_partitioned_table LEFT JOIN pg_attribute
		ON attrelid = partrelid AND attnum = partattrs[0] AND attnum > 0
	WHERE partrelid = parent;
	IF parent IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'parent must not be null';
	ELSIF NOT FOUND THEN
		RAISE wrong_object_type USING
			MESSAGE = format('%s is not a partitioned table', parent),
			HINT = format('CALL %s(...) turns a table into a partitioned table.', own_name('snowflake_partition'));
	ELSIF strategy <> 'r' OR suits IS NOT TRUE THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s is not partitioned by ranges of one bigint or snowflake column',
				parent),
			DETAIL = format('It is partitioned by %s.', pg_get_partkeydef(parent));
	END IF;
	RETURN key;
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_key IS 'for the column by which a table is partitioned';

-- The key of a partitioned table, quoted, as partition_key() returns it.  An error if its values
-- are those of an identity or of nextval(), by which new rows would be old.  Without any
-- default, programs may take IDs themselves.  If the table is itself a partition, rows come by
-- the tables above it, too, whose default counts.
CREATE FUNCTION snowflake_admin.time_key(parent regclass) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	key text := partition_key(parent);
	made record;
BEGIN
	SELECT tab::regclass, made_by INTO made FROM keys_of(ARRAY(SELECT relid FROM pg_partition_ancestors(parent)))
	WHERE quote_ident(col_name) = key AND made_by <> 'next_id';
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('the key of table %s does not contain the time', parent),
			DETAIL = format('Column %s is %s. Its new rows look older than they are.', key, CASE made.made_by
				WHEN 'nextval' THEN 'filled by nextval()' ELSE made.made_by || ' AS IDENTITY' END),
			HINT = format('%s first. If programs supply all keys, drop the identity or default.',
				call_of('snowflake_move', made.tab));
	END IF;
	RETURN key;
END
$$;
COMMENT ON FUNCTION snowflake_admin.time_key IS 'for the key of a table whose new rows tell their time';

-- The layout of the IDs that a partitioned table's key gets by its own default, not its domain's.
-- Without one, it is that of next_id().
CREATE FUNCTION snowflake_admin.key_layout(parent regclass) RETURNS snowflake_layout
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT to_layout(coalesce(
		min(layout_of(pg_get_expr(adbin, adrelid), seqrelid)), 'instagram'))
	FROM pg_partitioned_table JOIN pg_attrdef AS d ON adrelid = partrelid AND adnum = partattrs[0]
	LEFT JOIN (pg_depend JOIN pg_sequence ON seqrelid = refobjid)
		ON classid = 'pg_attrdef'::regclass AND objid = d.oid AND refclassid = 'pg_class'::regclass
	WHERE partrelid = parent
$$;
COMMENT ON FUNCTION snowflake_admin.key_layout IS 'for the layout of the IDs in a partitioned table';

-- All partitions with their bounds.  The DEFAULT partition has none: both are NULL.  A partition that is
-- pending detach is none any more, but still occupies its range.  Given no table, pg_get_expr() does not
-- open the partition, for which it would wait if somebody had locked it.
--
-- The body is BEGIN ATOMIC, and so a part of the caller's query: one that asks for few partitions does not
-- read the bounds of all.
CREATE FUNCTION snowflake_admin.ranges(parent regclass)
RETURNS TABLE (partition regclass, lower_id bigint, upper_id bigint, pending boolean)
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT oid::regclass,
		pg_catalog.replace(substring(bound FROM 'FROM \(''?([^'')]+)'), 'MINVALUE', '-9223372036854775808')::bigint,
		pg_catalog.replace(substring(bound FROM 'TO \(''?([^'')]+)'), 'MAXVALUE', '9223372036854775807')::bigint,
		inhdetachpending
	FROM pg_inherits JOIN pg_class ON oid = inhrelid, pg_catalog.pg_get_expr(relpartbound, 0) AS bound
	WHERE inhparent = parent::oid;
END;
COMMENT ON FUNCTION snowflake_admin.ranges IS 'for the partitions of a table with their bounds as IDs';

-- The partitions of a table, oldest first, with the times of their bounds.  Without a layout, it is
-- that of the key.
CREATE FUNCTION snowflake_admin.partitions(parent regclass, layout snowflake_layout)
RETURNS TABLE (partition regclass, since timestamptz, until timestamptz)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	PERFORM partition_key(parent);
	layout := coalesce(layout, key_layout(parent));
	-- A layout without a time is an error also where there is no partition.
	PERFORM bound(now(), layout);
	RETURN QUERY SELECT r.partition, bound_time(lower_id, layout),
			bound_time(upper_id, layout)
		FROM ranges(parent) AS r WHERE NOT pending
		ORDER BY lower_id;
END
$$;
COMMENT ON FUNCTION snowflake_admin.partitions IS 'for snowflake_partitions()';

-- The same for users
CREATE FUNCTION @extschema@.snowflake_partitions(parent regclass, layout snowflake_layout DEFAULT NULL)
RETURNS TABLE (partition regclass, since timestamptz, until timestamptz)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	PERFORM keep_extension(false);
	RETURN QUERY SELECT * FROM partitions(parent, layout);
END
$$;
COMMENT ON FUNCTION @extschema@.snowflake_partitions(regclass, snowflake_layout) IS
'partitions of a table that is partitioned by its IDs, oldest first, with the times of their bounds';

-- The tables that foreign keys connect with a table, and that the caller may lock.  Those to
-- which it refers have place -1, before the table, and those that refer to it have place 1.
CREATE FUNCTION snowflake_admin.related_tables(parent regclass)
RETURNS TABLE (tab regclass, place integer)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT other, min(sign)
	FROM pg_constraint, LATERAL (VALUES (confrelid, -1), (conrelid, 1)) AS side (other, sign)
	WHERE contype = 'f' AND conparentid = 0 AND confrelid <> conrelid
		AND parent = CASE sign WHEN 1 THEN confrelid ELSE conrelid END
		AND has_table_privilege(other, 'UPDATE, DELETE, TRUNCATE')
	GROUP BY other
$$;
COMMENT ON FUNCTION snowflake_admin.related_tables IS 'for the tables to be locked together with a table';

-- The smallest unit into which the newest partition fits, as its first part may belong to the
-- partition before it; a day if there is none
CREATE FUNCTION snowflake_admin.newest_unit(parent regclass, layout snowflake_layout) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(
		(SELECT CASE WHEN span <= '1 hour' THEN 'hour' WHEN span <= '24 hours' THEN 'day'
				WHEN span <= '7 days' THEN 'week' WHEN span <= '31 days' THEN 'month' ELSE 'year' END
			FROM partitions(parent, layout),
				LATERAL (SELECT until - since) AS length (span)
			WHERE isfinite(since) AND isfinite(until) ORDER BY since DESC LIMIT 1),
		'day')
$$;
COMMENT ON FUNCTION snowflake_admin.newest_unit IS 'for the unit in which the partitions of a table go on';

-- An error unless it is a unit of partitions
CREATE FUNCTION snowflake_admin.require_unit(unit text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF unit NOT IN ('hour', 'day', 'week', 'month', 'year') THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('unit must be hour, day, week, month or year, not %L', unit);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_unit IS 'for refusing what is no unit of partitions';

-- How far ahead of the clock IDs need partitions: by max_lead, of which 31 days count at most, as a
-- setting of a hundred years says nothing
CREATE FUNCTION snowflake_admin.partitions_lead() RETURNS interval
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT least(time_setting('max_lead'), '31 days')
$$;
COMMENT ON FUNCTION snowflake_admin.partitions_lead IS 'for the partitions of IDs that are ahead of the clock';

-- Until when there should be partitions: for a time from the latest time that IDs may have now, which
-- is max_lead ahead of the clock, and at least for one whole unit after the unit of that time
CREATE FUNCTION snowflake_admin.needed_until(ahead interval, unit text) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	newest timestamp := clock_timestamp() AT TIME ZONE 'UTC' + partitions_lead();
BEGIN
	RETURN greatest(newest + ahead, date_trunc(unit, newest) + 2 * ('1 ' || unit)::interval) AT TIME ZONE 'UTC';
END
$$;
COMMENT ON FUNCTION snowflake_admin.needed_until IS 'for the time until which a table should have partitions';

-- An error if policies could hide rows of tables, which have one owner, from that owner
CREATE FUNCTION snowflake_admin.require_all_rows(tables regclass[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	hidden text := (SELECT string_agg(tab::text, ' and ') FROM unnest(tables) AS tab,
		as_owner(tab, format('SELECT row_security_active(%L::regclass)', tab)) AS look (is_hidden boolean)
		WHERE is_hidden);
BEGIN
	IF hidden IS NOT NULL THEN
		RAISE insufficient_privilege USING
			MESSAGE = format('row-level security can hide rows of table %s from its owner', hidden),
			HINT = format('ALTER TABLE ... NO FORCE ROW LEVEL SECURITY for %s first.', hidden);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_all_rows IS 'for policies that could hide rows which count';

-- The largest ID of a partitioned table that is less than a day ahead of the clock, or NULL if it
-- has none.  An ID that is further ahead tells nothing about the present.
CREATE FUNCTION snowflake_admin.newest_id(parent regclass, key text, layout snowflake_layout) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	PERFORM require_all_rows(ARRAY[parent]);
	RETURN (SELECT id FROM as_owner(parent, format('SELECT max(%1$s) FROM %2$s WHERE %1$s < %3$s',
		key, parent, bound(clock_timestamp() + interval '24 hours', layout))) AS look (id bigint));
END
$$;
COMMENT ON FUNCTION snowflake_admin.newest_id IS 'for the newest row of a partitioned table';

-- The least ID that is not far older than the clock.  A table that is in use may get no rows for
-- a long weekend, or for a whole unit of its partitions.
CREATE FUNCTION snowflake_admin.recent_id(unit text, layout snowflake_layout) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT bound((clock_timestamp() AT TIME ZONE 'UTC' - greatest(interval '3 days', ('1 ' || unit)::interval))
		AT TIME ZONE 'UTC', layout)
$$;
COMMENT ON FUNCTION snowflake_admin.recent_id IS 'for rows that are far older than the clock';

-- Refuse what rests on the clock alone.
CREATE FUNCTION snowflake_admin.refuse_clock(message text, newest bigint, layout snowflake_layout, command text)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE object_not_in_prerequisite_state USING
		MESSAGE = message,
		DETAIL = format('By the clock it is %s, and the newest row is of %s.', clock_timestamp(),
			bound_time(newest, layout)),
		HINT = format('Set the clock if it is wrong. If it is right, call %s with trust_clock => true.', command);
END
$$;
COMMENT ON FUNCTION snowflake_admin.refuse_clock IS 'for refusing what rests on the clock alone';

-- The ranges without a partition until a time, in their order.  The first begins where the newest
-- partition that has begun ends, which need not be where a unit begins; without such a partition, it
-- begins with the present unit.  Each range ends with its unit, or where the next partition begins.
CREATE FUNCTION snowflake_admin.missing_ranges(parent regclass, unit text, until timestamptz,
	layout snowflake_layout)
RETURNS TABLE (low bigint, high bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	present timestamp := clock_timestamp() AT TIME ZONE 'UTC';
	stop bigint := bound(until, layout);
	existing record;
BEGIN
	SELECT max(upper_id) INTO low FROM ranges(parent)
	WHERE lower_id <= bound(present AT TIME ZONE 'UTC', layout);
	low := coalesce(low,
		bound(date_trunc(unit, present) AT TIME ZONE 'UTC', layout));
	-- The gap before each of the next partitions, and the one after all of them
	FOR existing IN SELECT lower_id, upper_id FROM ranges(parent) WHERE upper_id > low
		UNION ALL SELECT 9223372036854775807, NULL ORDER BY lower_id
	LOOP
		WHILE low < least(existing.lower_id, stop) LOOP
			high := least(existing.lower_id, bound((date_trunc(unit, bound_time(low, layout) AT TIME ZONE 'UTC')
				+ ('1 ' || unit)::interval) AT TIME ZONE 'UTC', layout));
			-- The layout's time ends here.
			IF high <= low THEN
				RETURN;
			END IF;
			RETURN NEXT;
			low := high;
		END LOOP;
		low := existing.upper_id;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.missing_ranges IS 'for the ranges of the partitions that a table lacks';
