/* admin/check/clock.sql */

-- snowflake_check() judges the clock, by times that the server, or a standby's primary, has noted and
-- by sequences that are ahead of it.  Knows no table.

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

-- The row about a clock that is slow, or was fast until it was set back: the server has noted a
-- later time, or several sequences are ahead of it by about the same time.  A sequence that is ahead
-- alone has been set ahead.
CREATE FUNCTION snowflake_admin.check_clock(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH latest AS (
		SELECT what, ts FROM noted_times() WHERE ts > clock_timestamp() + interval '1 s'
		ORDER BY ts DESC LIMIT 1
	), ahead AS (
		SELECT count(*) AS n, min(lead) AS least, max(lead) AS most
		FROM unnest(generators) WHERE lead > '1 s' HAVING count(*) > 1
	), evidence (line) AS (
		SELECT format('%s at %s', what, ts) FROM latest
		UNION ALL SELECT format('%s sequences are ahead of it by %s to %s', n, least, most) FROM ahead
		WHERE most - least < '1 min'
	)
	SELECT 'warning', 'clock', format('The clock says %s, but %s. '
			'So it is slow, or was fast until it was set back.',
			clock_timestamp(), string_agg(line, ', and ')),
		'Compare the clock with that of other servers (date, chronyc tracking): '
			'if it is slow, set it right, and calls succeed.'
	FROM evidence HAVING count(*) > 0
$$;
COMMENT ON FUNCTION snowflake_admin.check_clock IS 'for the row about the clock';
