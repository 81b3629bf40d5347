/* admin/check/behind.sql */

-- snowflake_check() judges a sequence that is behind IDs of its tables: it makes them again,
-- sooner or later, or it has served another layout when it made them.

-- The row about a sequence that goes on in another layout, so that its next IDs are smaller
-- than this one, "latest" of its tables: the largest ID is ahead of the clock in the layout
-- that it serves now, and of the past and closer in the one that made it.  The IDs of a layout
-- that ends may be larger than those of the next one.
CREATE FUNCTION snowflake_admin.check_other_layout(g generator, served snowflake_layout, tab regclass, latest bigint)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'error', format('sequence %s', g.sequence),
		format('It serves layout %s, but %s has IDs of layout %s, the last of them %s of %s, and its next '
			'IDs are smaller. If it made those until something changed its MAXVALUE, set that back. '
			'IDs that it has made since stay as they are.', g.layout, tab, n.layout, latest, n.ts),
		set_back(g.sequence, g.tabs, g.cols, n.layout, n.max_value, false)
	FROM nearest(NULL, latest) AS n
	-- Nothing makes a sequence serve a custom layout by accident.
	WHERE g.layout NOT LIKE '%:%' AND n.ts < clock_timestamp() + interval '1 min'
		AND n.expires > clock_timestamp() + interval '1 year'
		AND clock_timestamp() - n.ts < bound_time(latest, served) - clock_timestamp()
$$;
COMMENT ON FUNCTION snowflake_admin.check_other_layout(generator, snowflake_layout, regclass, bigint) IS
'for the row about a sequence that has served another layout';

-- Rows about future-dated IDs of other shards, from "future" on.  A sequence cannot make
-- these again, as it makes those of its own.
CREATE FUNCTION snowflake_admin.check_other_shards(g generator, layout snowflake_layout, future bigint)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'warning', format('table %s', c.tab), format(
			'Future-dated IDs of shard %s, while new rows get those of shard %s: %s%s, the latest of %s. '
			'If this server made them, and nobody outside has seen them, give their rows new ones.', c.shard,
			c.own_shard, CASE WHEN c.more THEN 'at least ' END, c.number, bound_time(c.largest, layout)),
		CASE WHEN g.lead > '2 s'
			THEN format('Do what the row of sequence %s says, and check again.', g.sequence)
			ELSE renumber_command(c.tab, c.col, c.shard) END
	FROM id_counts(g.tabs, g.cols, g.shards, layout, future, 10001) AS c
	WHERE NOT c.is_own
$$;
COMMENT ON FUNCTION snowflake_admin.check_other_shards(generator, snowflake_layout, bigint) IS
'for rows about future-dated IDs of other shards';

-- The row about a sequence that is behind the IDs of its tables, of which some are not below "low"
CREATE FUNCTION snowflake_admin.check_behind(g generator, layout snowflake_layout, low bigint)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	newer record;
	id_time timestamptz;
BEGIN
	SELECT * INTO newer FROM id_totals(g.tabs, g.cols, g.shards, layout, low, 10001);
	IF newer.own = 0 THEN
		RETURN;
	END IF;
	-- Other sessions have gone on, and the sequence is ahead of all that they have inserted.
	id_time := bound_time(newer.largest, layout);
	IF EXISTS (SELECT FROM sequence_states(g.sequence, layout) AS s
		WHERE s.last_timestamp >= id_time) THEN
		RETURN;
	END IF;
	severity := CASE WHEN id_time > clock_timestamp() THEN 'error' ELSE 'warning' END;
	object := format('sequence %s', g.sequence);
	problem := format('%s, but %s has the ID %s of %s, with its shard. %s',
		coalesce('Its last ID has the time ' || g.last_timestamp, 'It has made no ID'), newer.tab,
			newer.largest, id_time,
		CASE severity WHEN 'error' THEN 'It will make such IDs again.'
			ELSE 'If the clock is set back, it makes such IDs again.' END);
	-- To advance the sequence far beyond the clock would stop all calls.
	remedy := CASE WHEN id_time > clock_timestamp() + interval '1 day'
		THEN new_shard(g.sequence, g.tabs, g.by_setting)
		WHEN id_time > clock_timestamp() + current_setting('snowflake.max_lead')::interval
			+ current_setting('snowflake.max_wait')::interval
		THEN (SELECT string_agg(DISTINCT renumber_command(c.tab, c.col, c.shard), '; ')
			FROM id_counts(g.tabs, g.cols, g.shards, layout, low, 10001) AS c
			WHERE c.is_own AND c.obstacle IS NULL)
		ELSE format('SELECT %s.snowflake_advance(%L::regclass, %s::bigint%s)', snowflake_schema(), g.sequence,
			newer.largest, CASE WHEN g.layout LIKE '%:%' THEN layout_argument(g.layout) END) END;
	RETURN NEXT;
END
$$;
COMMENT ON FUNCTION snowflake_admin.check_behind(generator, snowflake_layout, bigint) IS
'for the row about a sequence that is behind its tables';
