/* admin/check/partitions.sql */

-- snowflake_check() judges tables that are partitioned by ranges of their IDs: they must have
-- partitions for the IDs of now and of soon.  Creates none, and knows nothing of old ones.

-- The row about one such table, for the first time that has no partition.  An error of it
-- is a row, and leaves other tables alone.
CREATE FUNCTION snowflake_admin.check_partitions_of(tab regclass, layout snowflake_layout)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	missing record;
	has_default boolean;
	unit text := newest_unit(tab, layout);
	yesterday timestamp := clock_timestamp() AT TIME ZONE 'UTC' - interval '1 day';
BEGIN
	SELECT n, name, ts INTO missing
	FROM (VALUES (1, 'now', clock_timestamp()),
		(2, 'now + max_lead', clock_timestamp() + partitions_lead()),
		(3, 'tomorrow', clock_timestamp() + interval '1 day'),
		-- Yesterday's call of snowflake_make_partitions() has created these, if there was one.
		(4, 'the next days', greatest(yesterday + interval '3 days',
			date_trunc(unit, yesterday) + 2 * ('1 ' || unit)::interval) AT TIME ZONE 'UTC' - interval '1 min'))
		AS times (n, name, ts)
	CROSS JOIN LATERAL bound(ts, layout) AS id
	-- After the end of the layout, there is no ID.
	WHERE id < bound('infinity', layout)
		AND NOT EXISTS (SELECT FROM ranges(tab) WHERE NOT pending AND lower_id <= id AND id < upper_id)
	ORDER BY n LIMIT 1;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	has_default := EXISTS (SELECT FROM ranges(tab) WHERE NOT pending AND lower_id IS NULL);
	severity := CASE WHEN missing.n = 1 AND NOT has_default THEN 'error' ELSE 'warning' END;
	object := format('table %s', tab);
	problem := concat_ws(' ', format('It has no partition for IDs of %s (%s), so %s. Look at the clock first: '
		'with partitions for the wrong time, it would get future-dated IDs.',
		missing.name, date_trunc('second', missing.ts),
		CASE WHEN missing.n = 4 THEN 'nobody has called snowflake_make_partitions() for a day'
			WHEN has_default THEN 'such rows go to the DEFAULT partition'
			ELSE 'an INSERT of such a row fails' END), only_owner(tab));
	-- The command refuses to follow a clock that may have jumped.
	remedy := CASE WHEN (SELECT max(upper_id) FROM ranges(tab)) < recent_id(unit, layout)
		THEN format('If the clock is right, %s.', call_of('snowflake_make_partitions', tab, ', trust_clock => true'))
		ELSE call_of('snowflake_make_partitions', tab) END;
	RETURN NEXT;
EXCEPTION WHEN OTHERS THEN
	RETURN QUERY SELECT * FROM unseen(tab, SQLSTATE, SQLERRM);
END
$$;
COMMENT ON FUNCTION snowflake_admin.check_partitions_of IS 'for the row about missing partitions of one table';

-- The tables that are partitioned by ranges of their IDs, with the layouts of these.  One
-- within a partition of a range needs only that range, and is not there.
CREATE FUNCTION snowflake_admin.partitioned_by_id(fillers filler[])
RETURNS TABLE (tab regclass, layout text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT tab, layout FROM unnest(fillers) JOIN pg_partitioned_table ON partrelid = tab
	JOIN pg_attribute ON attrelid = tab AND attname = col AND attnum = partattrs[0]
	WHERE partstrat = 'r' AND partnatts = 1 AND is_id(atttypid)
	AND NOT EXISTS (SELECT FROM pg_partition_ancestors(tab) AS a JOIN pg_partitioned_table AS above
		ON above.partrelid = a.relid AND a.relid <> tab WHERE above.partstrat = 'r')
$$;
COMMENT ON FUNCTION snowflake_admin.partitioned_by_id IS 'for tables that are partitioned by their IDs';

-- One row, the worst one, for each table that lacks a partition.  One whose layout has no time has
-- no partitions for a time.
CREATE FUNCTION snowflake_admin.check_partitions(fillers filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT ON (tab) p.* FROM partitioned_by_id(fillers)
	CROSS JOIN LATERAL to_layout(layout) AS l (timed)
	CROSS JOIN LATERAL check_partitions_of(tab, timed) AS p
	WHERE has_time(timed)
	ORDER BY tab, p.severity
$$;
COMMENT ON FUNCTION snowflake_admin.check_partitions IS 'for rows about missing partitions';
