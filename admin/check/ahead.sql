/* admin/check/ahead.sql */

-- snowflake_check() judges a sequence that is ahead of the clock: may it be set back, or have
-- rows future-dated IDs that it would make again?

-- The future-dated IDs of a sequence's tables, and of those that have moved to another
-- sequence: they may still have some of this one, of any shard if no default names this
-- sequence and its shard any more.
CREATE FUNCTION snowflake_admin.future_ids(g generator, layout snowflake_layout, present bigint,
	OUT own bigint, OUT others bigint, OUT more boolean, OUT largest bigint, OUT tab regclass, OUT unseen text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	tabs regclass[];
	cols name[];
	shards integer[];
BEGIN
	SELECT g.tabs || coalesce(array_agg(k.tab), '{}'), g.cols || coalesce(array_agg(k.col), '{}'),
		g.shards || coalesce(array_agg(s.shard), '{}')
	INTO tabs, cols, shards
	FROM (SELECT DISTINCT u.tab, u.col FROM @extschema@.snowflake_keys() AS u
			JOIN sequence_states() AS o ON o.sequence = u.sequence AND o.layout = g.layout
			WHERE u.made_by = 'next_id' AND u.sequence <> g.sequence) AS k
		CROSS JOIN (SELECT DISTINCT unnest(coalesce(g.shards, '{NULL}'))) AS s (shard);
	-- A role with a setting of its own may have made IDs of any shard.
	IF EXISTS (SELECT FROM shard_settings() WHERE place LIKE 'setting of role %') THEN
		shards := NULL;
	END IF;
	SELECT * INTO own, others, more, largest, tab, unseen
	FROM id_totals(tabs, cols, shards, layout, present, 1000000);
END
$$;
COMMENT ON FUNCTION snowflake_admin.future_ids(generator, snowflake_layout, bigint) IS
'for future-dated IDs that a sequence has made';

-- What these IDs mean, in words.  "latest" is the time of the largest own one.
CREATE FUNCTION snowflake_admin.describe_future_ids(g generator, own bigint, others bigint, more boolean,
	latest timestamptz, tab regclass, unseen text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	at_least text := CASE WHEN more THEN 'at least ' ELSE '' END;
	kind text := CASE WHEN g.tabs IS NULL THEN 'layout' ELSE 'shard' END;
	own_text text;
BEGIN
	IF own > 0 THEN
		own_text := format('Future-dated IDs of its %s: %s%s, the latest of %s in %s. So it must not be set back.',
			kind, at_least, own, latest, tab);
		IF kind = 'shard' THEN
			own_text := own_text
				|| ' When another shard is in use, check again to see how their rows get new ones.';
		END IF;
	ELSIF NOT more AND unseen IS NULL AND g.expires IS NOT NULL THEN
		own_text := format('No row of %s has a future-dated ID of its %s. '
			'Set it back only if no program has kept one of this %2$s (if unsure, wait or take a new shard), '
			'and if this server is neither a restored copy nor a promoted asynchronous standby, which may lack '
			'IDs that the original made. Check again directly before. After a lock timeout, wait for '
			'the transaction that uses the sequence to end, and check again.',
			coalesce((SELECT string_agg(DISTINCT t::text, ', ') FROM unnest(g.tabs) AS t), 'a table'), kind);
	END IF;
	RETURN concat_ws(' ',
		CASE WHEN g.tabs IS NULL THEN 'No default of this database uses it, but programs may.' END,
		own_text,
		CASE WHEN others > 0 THEN format('Future-dated IDs of other shards, which it cannot make again: %s%s.',
			at_least, others) END,
		'Nobody could look at ' || unseen || '.');
END
$$;
COMMENT ON FUNCTION snowflake_admin.describe_future_ids IS
'for the problem of a sequence that is ahead';

-- The row about a sequence that is ahead of the clock
CREATE FUNCTION snowflake_admin.check_ahead(g generator, layout snowflake_layout)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	patience interval := current_setting('snowflake.max_lead')::interval
		+ current_setting('snowflake.max_wait')::interval;
	until timestamptz := date_trunc('second', g.last_timestamp - patience) + interval '1 s';
	-- NULL if the layout has no time
	present bigint := CASE WHEN g.expires IS NOT NULL
		THEN bound(clock_timestamp() + interval '1 s', layout) END;
	future record;
BEGIN
	SELECT * INTO future FROM future_ids(g, layout, present);
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
		nullif(describe_future_ids(g, future.own, future.others, future.more,
			bound_time(future.largest, layout), future.tab, future.unseen), ''));
	remedy := CASE
		WHEN g.state <> 'refuses' THEN format('Wait until %s.',
			date_trunc('second', g.last_timestamp) + interval '1 s')
		WHEN severity = 'note' AND g.sequence <> next_id_seq()
			THEN format('DROP SEQUENCE %s', g.sequence)
		WHEN present IS NULL THEN format('Wait until %s. If neither rows nor programs have '
			'future-dated IDs of it, ALTER SEQUENCE %s RESTART sets it back.', until, g.sequence)
		WHEN future.unseen IS NOT NULL THEN
			'Find out whether those tables have future-dated IDs, as a role that may read them.'
		WHEN future.own = 0 AND NOT future.more THEN set_back(
			g.sequence, g.tabs, g.cols, g.layout, NULL, g.by_setting AND future.others > 0)
		WHEN g.tabs IS NULL THEN format('Wait until %s, or check again when these rows have new IDs.', until)
		WHEN g.lead < patience + interval '10 min' THEN format('Wait until %s.', until)
		ELSE new_shard(g.sequence, g.tabs, g.by_setting) END;
	RETURN NEXT;
END
$$;
COMMENT ON FUNCTION snowflake_admin.check_ahead(generator, snowflake_layout) IS
'for the row about a sequence that is ahead of the clock';
