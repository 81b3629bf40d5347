/* admin/check/position.sql */

-- snowflake_check() judges where each sequence stands: ahead of the clock (ahead.sql), or
-- behind the IDs of its tables (behind.sql).  Knows nothing of what generates IDs.

-- All rows about where a sequence stands.  Its error is a row, and leaves other sequences alone.
CREATE FUNCTION snowflake_admin.check_position_of(g generator, served snowflake_layout)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	-- The smallest ID after the last one that the sequence has generated, and the smallest
	-- future-dated one.  NULL if the layout has no time.
	beyond bigint;
	future bigint;
	newest record;
	latest bigint;
BEGIN
	IF g.expires IS NOT NULL THEN
		beyond := greatest(least_id(), bound(
			coalesce(g.last_timestamp + interval '1 microsecond', '-infinity'), served));
		-- Clocks of other servers may differ a little.
		future := bound(clock_timestamp() + interval '1 min', served);
	END IF;
	FOR newest IN SELECT c.tab, i.ids[1] AS id, i.obstacle
		FROM (SELECT DISTINCT tab, col FROM unnest(g.tabs, g.cols) AS t (tab, col)) AS c
		CROSS JOIN LATERAL ids_between(c.tab, c.col, least(beyond, future), 9223372036854775807, 1) AS i
		WHERE i.ids IS NOT NULL OR i.obstacle = 'locked'
	LOOP
		IF newest.obstacle IS NOT NULL THEN
			RETURN QUERY SELECT * FROM unseen(newest.tab, '55P03', NULL);
		ELSIF newest.id >= future THEN
			RETURN QUERY SELECT * FROM check_other_layout(g, served, newest.tab, newest.id);
			IF FOUND THEN
				RETURN;
			END IF;
		END IF;
		latest := greatest(latest, newest.id);
	END LOOP;
	-- After a crash, and on a standby, the value read may be up to a second ahead of the last ID.
	IF g.lead > '2 s' THEN
		RETURN QUERY SELECT * FROM check_ahead(g, served);
	END IF;
	IF latest >= future THEN
		RETURN QUERY SELECT * FROM check_other_shards(g, served, future);
	END IF;
	IF latest >= beyond AND (g.state = 'ok' OR g.last_timestamp IS NOT NULL) THEN
		RETURN QUERY SELECT * FROM check_behind(g, served, beyond);
	END IF;
EXCEPTION WHEN OTHERS THEN
	-- What a remedy needs to know of a table may be locked, too.
	RETURN QUERY SELECT * FROM unseen(coalesce(CASE SQLSTATE WHEN '55P03' THEN locked_table(g.tabs) END, g.sequence),
		SQLSTATE, SQLERRM);
END
$$;
COMMENT ON FUNCTION snowflake_admin.check_position_of IS 'for rows about where one sequence stands';

-- All rows about where sequences stand.  Those without a layout are refused for their parameters.
CREATE FUNCTION snowflake_admin.check_position(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT p.* FROM unnest(generators) AS g
	CROSS JOIN LATERAL check_position_of(g, to_layout(g.layout)) AS p
	WHERE g.layout IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_admin.check_position IS 'for rows about where sequences stand';
