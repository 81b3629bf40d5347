/* admin/check/waits.sql */

-- snowflake_check() judges what stands still: sessions that wait for a sequence, and work that
-- a command of snowflake_admin has begun and not ended.  Knows no IDs.

-- The sessions that others wait for, directly or not, and that wait for nobody themselves
CREATE FUNCTION snowflake_admin.waited_for(waiting integer[]) RETURNS SETOF integer
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE chain (pid) AS (
		SELECT unnest(waiting)
		UNION SELECT b FROM chain CROSS JOIN LATERAL unnest(pg_blocking_pids(pid)) AS b
	)
	SELECT pid FROM chain WHERE pg_blocking_pids(pid) = '{}' AND pid <> ALL (waiting)
$$;
COMMENT ON FUNCTION snowflake_admin.waited_for IS 'for the sessions at the head of a queue';

-- The role of a session, or "unknown" if it has just ended
CREATE FUNCTION snowflake_admin.role_of(session integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce((SELECT quote_ident(usename) FROM pg_stat_activity WHERE pid = session), 'unknown')
$$;
COMMENT ON FUNCTION snowflake_admin.role_of IS 'for naming the role of a session in the way';

-- Sequences that sessions wait for, and for whom.  A prepared transaction is session 0.  A session that
-- waits for a lock which conflicts with the one of next_id() has others queue behind it.
CREATE FUNCTION snowflake_admin.check_waits(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH queues AS MATERIALIZED (
		SELECT relation::regclass AS sequence, array_agg(DISTINCT pid) AS waiting,
			(array_agg(pid ORDER BY waitstart) FILTER (WHERE mode NOT IN ('AccessShareLock', 'RowShareLock',
				'RowExclusiveLock')))[1] AS strong
		FROM pg_locks
		WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND relation IN (SELECT g.sequence FROM unnest(generators) AS g)
		GROUP BY relation
	)
	SELECT 'error', format('sequence %s', q.sequence), concat_ws(' ',
			format('Sessions that wait for it: %s.', cardinality(waiting)),
			CASE WHEN pid = 0 THEN 'They wait for a prepared transaction (see pg_prepared_xacts).'
				ELSE regexp_replace(format('They wait for process %s, of role %s, which is %s', pid, role_of(pid),
					describe_transaction(a.xact_start, a.query)), '\s+', ' ', 'g') END,
			'Others queue behind process ' || strong || ', of role ' || role_of(strong) || '.'),
		CASE WHEN pid = 0 THEN coalesce((SELECT b.remedy FROM blocker(ARRAY[q.sequence], 'AccessShareLock') AS b
				WHERE b.remedy LIKE '% PREPARED %'), 'Commit or roll back that transaction.')
			ELSE format('End that transaction, if need be by SELECT pg_terminate_backend(%s), as a member of its role or of '
				'pg_signal_backend.', pid) END
			|| coalesce(' Or let the others go on by SELECT pg_cancel_backend(' || strong || ').', '')
	FROM queues AS q
	-- Nobody, if the wait has just ended
	CROSS JOIN LATERAL (SELECT * FROM waited_for(q.waiting) AS w (pid) ORDER BY pid LIMIT 1) AS w
	LEFT JOIN pg_stat_activity AS a USING (pid)
$$;
COMMENT ON FUNCTION snowflake_admin.check_waits IS 'for rows about sessions that wait for a sequence';

-- Tables that a command has begun to change.  All goes on with them, but the work is not done.  Of a
-- table that somebody has taken from next_id() meanwhile, snowflake_partition() cannot make partitions.
CREATE FUNCTION snowflake_admin.check_unfinished()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT 'note', format('table %s', tab),
		concat_ws(' ', format('%s has begun %s, and has not ended.', command, begun),
			CASE WHEN can_go_on THEN 'To give up: ' || way_back || '.'
				ELSE 'It cannot go on, because next_id() no longer fills the key, so give up.' END,
			only_owner(tab)),
		CASE WHEN can_go_on THEN way_on ELSE way_back END
	FROM unfinished() AS u CROSS JOIN LATERAL (
		SELECT command <> 'snowflake_partition()' OR way_back IS NULL OR EXISTS (
			SELECT FROM filled(ARRAY[u.tab]) AS f JOIN pg_attribute ON attrelid = f.tab AND attnum = f.col
			WHERE made_by = 'next_id' AND is_id(atttypid)) AS can_go_on) AS l
$$;
COMMENT ON FUNCTION snowflake_admin.check_unfinished IS 'for rows about commands that have not ended';
