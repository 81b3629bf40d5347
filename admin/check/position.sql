/* admin/check/position.sql */

-- snowflake_check() judges: where a sequence stands, ahead of the clock or behind the IDs
-- of its tables.

-- Set a sequence back, but beyond the IDs of its tables.  Where the shard has been changed
-- before, sessions that still have the old one would make the future-dated IDs again.
CREATE FUNCTION snowflake_admin.set_back(sequence regclass, tabs regclass[], cols name[], layout text,
	max_value bigint, end_sessions boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT concat_ws('; ',
		CASE WHEN end_sessions THEN 'SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity '
			'WHERE datname = current_database() AND pid <> pg_backend_pid() '
			'AND backend_type = ''client backend''' END,
		'BEGIN', 'SET LOCAL lock_timeout = ''300ms''',
		format('ALTER SEQUENCE %s RESTART', sequence) || coalesce(' MAXVALUE ' || max_value, ''),
		(SELECT string_agg(DISTINCT format('SELECT %1$s.snowflake_advance(%2$L::regclass, max(%3$I::bigint)%5$s) '
				'FROM %4$s WHERE %3$I::bigint <= %1$s.snowflake_max_id(now() + interval ''1 s''%6$s) '
				'HAVING max(%3$I::bigint) >= 1::bigint << 40',
				snowflake_schema(), sequence, col, tab,
				CASE WHEN layout LIKE '%:%' THEN layout_argument(layout) END,
				CASE WHEN layout <> 'instagram' THEN layout_argument(layout) END), '; ')
			FROM unnest(tabs, cols) AS t (tab, col)),
		'COMMIT')
$$;

-- Another shard for those who use a sequence, as rows have IDs that it must not make
-- again.  The next check then shows how to set the sequence back.
CREATE FUNCTION snowflake_admin.new_shard(sequence regclass, tabs regclass[], by_setting boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN by_setting AND coalesce(place, 'client') LIKE 'setting of database %' AND NOT EXISTS (
				SELECT FROM @extschema@.snowflake_uses() AS u
				WHERE u.sequence = new_shard.sequence AND u.shard IS NOT NULL)
			THEN format('SELECT %s.snowflake_set_shard(N::bigint)', snowflake_schema())
		ELSE (SELECT string_agg(DISTINCT format(
				'CALL @extschema@.snowflake_move(%L::regclass, shard => N::bigint, own_sequence => true)', tab), '; ')
			FROM unnest(tabs) AS t (tab)) END || '; -- N is a number from your list that no server uses.'
	FROM (VALUES (sequence)) AS new_shard (sequence) CROSS JOIN shard_setting()
$$;

-- Who has future-dated IDs of a sequence that is ahead, and what follows
CREATE FUNCTION snowflake_admin.who_is_ahead(g generator, own bigint, others bigint,
	more boolean, latest timestamptz, tab regclass, unseen text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT concat_ws(' ',
		CASE WHEN g.tabs IS NULL THEN 'No default of this database uses it, but programs may.' END, CASE
		WHEN own = 0 AND NOT more AND unseen IS NULL AND g.expires IS NOT NULL
			THEN format('No row of %s has a future-dated ID of its %s. '
			'Set it back only if no program has kept one of this %2$s (if unsure, wait or take a new shard), '
			'and if this server is neither a restored copy nor a promoted asynchronous standby, which may lack '
			'IDs that the original made. Check again directly before. After a lock timeout, wait for '
			'the transaction that uses the sequence to end, and check again.',
			coalesce((SELECT string_agg(DISTINCT t::text, ', ') FROM unnest(g.tabs) AS t), 'a table'), kind)
		WHEN own > 0 THEN format('Future-dated IDs of its %s: %s%s, the latest of %s in %s. '
			'So it must not be set back.%s', kind, CASE WHEN more THEN 'at least ' END, own, latest, tab,
			CASE kind WHEN 'shard'
			THEN ' When another shard is in use, check again to see how their rows get new ones.' END) END,
		CASE WHEN others > 0 THEN format(
			'Future-dated IDs of other shards, which it cannot make again: %s%s.',
			CASE WHEN more THEN 'at least ' END, others) END,
		'Nobody could look at ' || unseen || '.')
	FROM (VALUES (CASE WHEN g.tabs IS NULL THEN 'layout' ELSE 'shard' END)) AS k (kind)
$$;

CREATE FUNCTION snowflake_admin.ahead(g generator, layout snowflake_layout)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	reach record;
	patience interval := current_setting('snowflake.max_lead')::interval
		+ current_setting('snowflake.max_wait')::interval;
	until timestamptz := date_trunc('second', g.last_timestamp - patience) + interval '1 s';
	present bigint := CASE WHEN g.expires IS NOT NULL
		THEN bound(clock_timestamp() + interval '1 s', layout) END;
	tabs regclass[];
	cols name[];
	shards integer[];
BEGIN
	-- Tables that have moved to another sequence may still have IDs of this one: of any
	-- shard, if no default names this sequence and its shard any more.
	SELECT g.tabs || coalesce(array_agg(k.tab), '{}'), g.cols || coalesce(array_agg(k.col), '{}'),
		g.shards || coalesce(array_agg(s.shard), '{}')
	INTO tabs, cols, shards
	FROM (SELECT DISTINCT u.tab, u.col FROM @extschema@.snowflake_keys() AS u
			JOIN sequence_states() AS o ON o.sequence = u.sequence AND o.layout = g.layout
			WHERE u.made_by = 'next_id' AND u.sequence <> g.sequence) AS k
		CROSS JOIN (SELECT DISTINCT unnest(coalesce(g.shards, '{NULL}'))) AS s (shard);
	SELECT * INTO reach FROM reach(tabs, cols,
		-- A role with a setting of its own may have made IDs of any shard.
		CASE WHEN NOT EXISTS (SELECT FROM shard_settings()
			WHERE place LIKE 'setting of role %') THEN shards END,
		layout, present, 1000000);
	severity := CASE WHEN g.tabs IS NULL
		AND NOT EXISTS (SELECT FROM @extschema@.snowflake_uses() AS u WHERE u.sequence = g.sequence)
		THEN 'note' WHEN g.state <> 'refuses' THEN 'warning' ELSE 'error' END;
	object := format('sequence %s', g.sequence);
	problem := concat_ws(' ',
		format('It is %s ahead of the clock: its last ID has the time %s, and the clock says %s, so '
			'next_id() %s.',
			g.lead, g.last_timestamp, clock_timestamp(),
			CASE g.state WHEN 'refuses' THEN 'fails until ' || until WHEN 'waits' THEN 'waits'
				ELSE 'makes future-dated IDs, as max_lead is ' || current_setting('snowflake.max_lead') END),
		'If the clock is slow, set it right, and do nothing else.',
		nullif(who_is_ahead(g, reach.own, reach.others, reach.more,
			bound_time(reach.largest, layout), reach.tab, reach.unseen), ''));
	remedy := CASE
		WHEN g.state <> 'refuses' THEN format('Wait until %s.',
			date_trunc('second', g.last_timestamp) + interval '1 s')
		WHEN severity = 'note' AND g.sequence <> next_id_seq()
			THEN format('DROP SEQUENCE %s', g.sequence)
		WHEN present IS NULL THEN format('Wait until %s. If neither rows nor programs have '
			'future-dated IDs of it, ALTER SEQUENCE %s RESTART sets it back.', until, g.sequence)
		WHEN reach.unseen IS NOT NULL THEN
			'Find out whether those tables have future-dated IDs, as a role that may read them.'
		WHEN reach.own = 0 AND NOT reach.more THEN set_back(
			g.sequence, g.tabs, g.cols, g.layout, NULL, g.by_setting AND reach.others > 0)
		WHEN g.tabs IS NULL THEN format('Wait until %s, or check again when these rows have new IDs.', until)
		WHEN g.lead < patience + interval '10 min' THEN format('Wait until %s.', until)
		ELSE new_shard(g.sequence, g.tabs, g.by_setting) END;
	RETURN NEXT;
END
$$;

CREATE FUNCTION snowflake_admin.behind(g generator, layout snowflake_layout, low bigint)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	reach record;
	id_time timestamptz;
BEGIN
	SELECT * INTO reach FROM reach(g.tabs, g.cols, g.shards, layout, low, 10001);
	IF reach.own = 0 THEN
		RETURN;
	END IF;
	-- Other sessions have gone on, and the sequence is ahead of all that they have inserted.
	id_time := bound_time(reach.largest, layout);
	IF EXISTS (SELECT FROM sequence_states(g.sequence, layout) AS s
		WHERE s.last_timestamp >= id_time) THEN
		RETURN;
	END IF;
	severity := CASE WHEN id_time > clock_timestamp() THEN 'error' ELSE 'warning' END;
	object := format('sequence %s', g.sequence);
	problem := format('%s, but %s has the ID %s of %s, with its shard. %s',
		coalesce('Its last ID has the time ' || g.last_timestamp, 'It has made no ID'), reach.tab,
			reach.largest, id_time,
		CASE severity WHEN 'error' THEN 'It will make such IDs again.'
			ELSE 'If the clock is set back, it makes such IDs again.' END);
	-- To advance the sequence far beyond the clock would stop all calls.
	remedy := CASE WHEN id_time > clock_timestamp() + interval '1 day'
		THEN new_shard(g.sequence, g.tabs, g.by_setting)
		WHEN id_time > clock_timestamp() + current_setting('snowflake.max_lead')::interval
			+ current_setting('snowflake.max_wait')::interval
		THEN reach.renumber
		ELSE format('SELECT %s.snowflake_advance(%L::regclass, %s::bigint%s)', snowflake_schema(), g.sequence,
			reach.largest, CASE WHEN g.layout LIKE '%:%' THEN layout_argument(g.layout) END) END;
	RETURN NEXT;
END
$$;

-- A sequence that is ahead of the clock, or behind its tables
CREATE FUNCTION snowflake_admin.check_position(g generator, served snowflake_layout)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	beyond bigint;
	future bigint;
	latest record;
BEGIN
	IF g.expires IS NOT NULL THEN
		beyond := greatest(least_id(), bound(
			coalesce(g.last_timestamp + interval '1 microsecond', '-infinity'), served));
		-- Clocks of other servers may differ a little.
		future := bound(clock_timestamp() + interval '1 min', served);
	END IF;
	SELECT * INTO latest FROM largest_id(g.tabs, g.cols, least(beyond, future));
	IF latest.id >= future THEN
		-- A sequence served another layout before, and its IDs go back by that, if the largest
		-- ID of its tables is ahead of the clock in the layout that it serves now, and of the
		-- past and closer in the one that made it.  The IDs of a layout that ends may be larger
		-- than those of the next one.
		RETURN QUERY SELECT 'error', format('sequence %s', g.sequence),
			format('It serves layout %s, but %s has IDs of layout %s, the last of them %s of %s, and its next '
				'IDs are smaller. If it made those until something changed its MAXVALUE, set that back. '
				'IDs that it has made since stay as they are.', g.layout, latest.tab, n.layout, latest.id, n.ts),
			set_back(g.sequence, g.tabs, g.cols, n.layout, n.max_value, false)
		FROM nearest(NULL, latest.id) AS n
		-- Nothing makes a sequence serve a custom layout by accident.
		WHERE g.layout NOT LIKE '%:%' AND n.ts < clock_timestamp() + interval '1 min'
			AND n.expires > clock_timestamp() + interval '1 year' AND clock_timestamp() - n.ts
				< bound_time(latest.id, served) - clock_timestamp();
		IF FOUND THEN
			RETURN;
		END IF;
	END IF;
	-- After a crash, and on a standby, it may be what WAL covers for another second.
	IF g.lead > '2 s' THEN
		RETURN QUERY SELECT * FROM ahead(g, served);
	END IF;
	IF latest.id >= future THEN
		-- It cannot make these again, as it makes those of another shard.
		RETURN QUERY SELECT 'warning', format('table %s', c.tab), format(
				'Future-dated IDs of shard %s, while new rows get those of shard %s: %s%s, the latest of %s. '
				'If this server made them, and nobody outside has seen them, give their rows new ones.', c.shard,
				c.own_shard, CASE WHEN c.more THEN 'at least ' END, c.number,
				bound_time(c.largest, served)),
			CASE WHEN g.lead > '2 s'
				THEN format('Do what the row of sequence %s says, and check again.', g.sequence)
				ELSE renumber_command(c.tab, c.col, c.shard) END
		FROM id_counts(g.tabs, g.cols, g.shards, served, future, 10001) AS c
		WHERE NOT c.is_own;
	END IF;
	IF latest.id >= beyond AND NOT g.unset AND (g.state = 'ok' OR g.last_timestamp IS NOT NULL) THEN
		RETURN QUERY SELECT * FROM behind(g, served, beyond);
	END IF;
EXCEPTION WHEN OTHERS THEN
	RETURN QUERY SELECT * FROM note(g.sequence, SQLSTATE, SQLERRM);
END
$$;
