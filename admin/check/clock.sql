/* admin/check/clock.sql */

-- snowflake_check() judges the clock: by times that the server has noted, by sequences
-- that are ahead of it, and by rows, which come every day where a table is in use.  Nothing else
-- tells a clock that is fast, and once partitions have been created by it, nothing fails.  Knows no
-- partition.

-- Times that the server has noted or, on a standby, its primary
CREATE FUNCTION snowflake_admin.noted_times()
RETURNS TABLE (what text, ts timestamptz)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RETURN QUERY VALUES ('the server was started', pg_postmaster_start_time()),
		('the configuration was read', pg_conf_load_time());
	RETURN QUERY SELECT format('session %s was active', pid),
		greatest(backend_start, xact_start, query_start, state_change) FROM pg_stat_activity
		WHERE backend_type = 'client backend';
	IF has_function_privilege('pg_control_checkpoint()', 'EXECUTE') THEN
		RETURN QUERY SELECT 'a checkpoint began', checkpoint_time FROM pg_control_checkpoint();
	END IF;
	IF current_setting('track_commit_timestamp')::boolean AND NOT pg_is_in_recovery() THEN
		RETURN QUERY SELECT 'a transaction was committed', timestamp FROM pg_last_committed_xact();
	END IF;
	RETURN QUERY SELECT 'the last replayed transaction was committed', pg_last_xact_replay_timestamp();
END
$$;
COMMENT ON FUNCTION snowflake_admin.noted_times IS 'for times that the server has noted';

-- A table that gets IDs with a time
CREATE TYPE snowflake_admin.dated_column AS (tab regclass, col name, layout snowflake_layout);
COMMENT ON TYPE snowflake_admin.dated_column IS 'for snowflake_check(): a column whose rows tell their time';

-- Such columns of each owner of tables, twenty at most: those that are partitioned, and the largest
-- ones.  Whoever has a table can write any ID into it, so one owner's rows say nothing of the tables
-- of others.
CREATE FUNCTION snowflake_admin.dated_columns(generators generator[])
RETURNS TABLE (owner regrole, columns dated_column[], are_partitioned boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH columns AS (
		SELECT DISTINCT t.tab, t.col, g.layout FROM unnest(generators) AS g
		CROSS JOIN LATERAL unnest(g.tabs, g.cols) AS t (tab, col)
		WHERE g.expires IS NOT NULL
	), ranked AS (
		SELECT relowner, ROW(tab, col, to_layout(layout))::dated_column AS dated, relkind = 'p' AS is_partitioned,
			row_number() OVER (PARTITION BY relowner ORDER BY relkind <> 'p', reltuples DESC, tab) AS n
		FROM columns JOIN pg_class ON oid = tab
	)
	SELECT relowner, array_agg(dated ORDER BY n), bool_or(is_partitioned) FROM ranked WHERE n <= 20 GROUP BY relowner
$$;
COMMENT ON FUNCTION snowflake_admin.dated_columns IS 'for the columns by whose rows the clock is judged';

-- Has any of these columns an ID of this span?  NULL if none was seen, but not all could be read.
CREATE FUNCTION snowflake_admin.have_ids(columns dated_column[], since timestamptz, until timestamptz) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	dated dated_column;
	look record;
	all_seen boolean := true;
BEGIN
	FOREACH dated IN ARRAY columns LOOP
		SELECT * INTO look FROM ids_between(dated.tab, dated.col, bound(since, dated.layout),
			bound(until, dated.layout), 1);
		IF look.ids IS NOT NULL THEN
			RETURN true;
		ELSIF look.obstacle IS NOT NULL THEN
			all_seen := false;
		END IF;
	END LOOP;
	RETURN CASE WHEN all_seen THEN false END;
END
$$;
COMMENT ON FUNCTION snowflake_admin.have_ids IS 'for the days on which tables got rows';

-- Have these columns IDs of each of so many units, one after the other?
CREATE FUNCTION snowflake_admin.have_ids_of_each(columns dated_column[], since timestamptz, unit interval,
	units integer) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	FOR n IN REVERSE units - 1 .. 0 LOOP
		IF have_ids(columns, since + n * unit, since + (n + 1) * unit) IS NOT TRUE THEN
			RETURN false;
		END IF;
	END LOOP;
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_admin.have_ids_of_each IS 'for tables that got rows every day';

-- The last time for which these columns have no IDs, if it covers two of the last five units, counted
-- back from now, one after the other, after seven units of each of which they have some.  Otherwise NULL.
-- So it is not missed if it lasted three units or more and ended less than three units ago, or not yet.
-- "until" is the end of such a unit.
CREATE FUNCTION snowflake_admin.gap(columns dated_column[], unit interval, OUT since timestamptz, OUT until timestamptz)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	present timestamptz := clock_timestamp();
	empty integer := 0;		-- units without an ID, one after the other
	newest timestamptz;
BEGIN
	FOR n IN 0 .. 4 LOOP
		empty := CASE have_ids(columns, present - (n + 1) * unit, present - n * unit)
			WHEN false THEN empty + 1 ELSE 0 END;
		IF empty = 2 THEN
			SELECT max(id_time(ids[1], layout)) INTO newest FROM unnest(columns)
			CROSS JOIN LATERAL ids_between(tab, col, least_id(), bound(present - (n + 1) * unit, layout), 1);
			IF have_ids_of_each(columns, newest - 7 * unit + interval '1 s', unit, 7) THEN
				since := newest;
				until := present - (n - 1) * unit;
			END IF;
			RETURN;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.gap IS 'for a time that a clock may have left out';

-- What tells that the clock is slow, or was fast until it was set back: the server has noted a
-- later time, several sequences are ahead of it by about the same time, or one of them is ahead by
-- days, of each of which tables of one owner have rows, whatever fills these.  A sequence that is ahead
-- without these has been set ahead.
CREATE FUNCTION snowflake_admin.signs_of_slow_clock(generators generator[]) RETURNS SETOF text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	(SELECT format('%s at %s', what, ts) FROM noted_times() WHERE ts > clock_timestamp() + interval '1 s'
		ORDER BY ts DESC LIMIT 1)
	UNION ALL SELECT format('%s sequences are ahead of it by %s to %s', count(*), min(lead), max(lead))
	FROM unnest(generators) WHERE lead > '1 s' HAVING count(*) > 1 AND max(lead) - min(lead) < '1 min'
	UNION ALL SELECT format('tables of %s have rows of each of the next %s days', owner, days)
	FROM (SELECT least(7, extract(day FROM max(lead)))::integer AS days FROM unnest(generators)) AS d,
		dated_columns(generators)
	WHERE days > 1 AND have_ids_of_each(columns, clock_timestamp(), '1 day', days)
$$;
COMMENT ON FUNCTION snowflake_admin.signs_of_slow_clock IS 'for what tells that the clock is slow, or was fast';

-- The row about such a clock
CREATE FUNCTION snowflake_admin.check_clock(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'warning', 'clock', format('The clock says %s, but %s. '
			'So it is slow, or was fast until it was set back.',
			clock_timestamp(), string_agg(sign, ', and ')),
		'Compare the clock with that of other servers (date, chronyc tracking): '
			'if it is slow, set it right, and calls succeed.'
	FROM signs_of_slow_clock(generators) AS sign HAVING count(*) > 0
$$;
COMMENT ON FUNCTION snowflake_admin.check_clock IS 'for the row about the clock';

-- The rows about a clock that may have jumped ahead, one for each owner of tables: these got rows of each
-- day, or of each week, and then none for a while.  Partitions that are created by that clock do
-- not change this.  Where there are none, no table can lose rows by it.
CREATE FUNCTION snowflake_admin.check_clock_jump(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT ON (owner) CASE WHEN are_partitioned THEN 'warning' ELSE 'note' END, 'clock',
		format('The clock says %s. Tables of %s have rows of each %s until %s, and then none until %s. '
			'Unless nobody inserted rows in between, the clock is fast.', clock_timestamp(), owner, word,
			g.since, g.until),
		'Compare the clock with that of other servers (date, chronyc tracking) before partitions are created or dropped. '
			'If it is right, do nothing.'
	FROM dated_columns(generators) CROSS JOIN (VALUES (1, 'day', interval '1 day'), (2, 'week', interval '7 days'))
		AS u (n, word, unit)
	CROSS JOIN LATERAL gap(columns, unit) AS g
	WHERE g.since IS NOT NULL ORDER BY owner, n
$$;
COMMENT ON FUNCTION snowflake_admin.check_clock_jump IS 'for the rows about a clock that may have jumped ahead';
