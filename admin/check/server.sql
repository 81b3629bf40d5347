/* admin/check/server.sql */

-- snowflake_check() judges: standbys, subscriptions, the clock, the library's version, and who
-- may create objects beside those of the extensions.

-- Every commit and every ID waits for the standbys that synchronous_standby_names
-- asks for.  On a standby, the setting is for later.  Subscriptions stop with an error, such
-- as an ID that exists.  A worker that is about to start again has no process.
CREATE FUNCTION snowflake_admin.check_replication()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH setting AS (
		SELECT value, coalesce(substring(value, '^\s*(?:[a-zA-Z]+\s+)?(\d+)\s*\(')::integer, 1) AS needed,
			regexp_replace(value, '^\s*(?:[a-zA-Z]+\s+)?\d+\s*\((.*)\)\s*$', '\1') AS list
		FROM current_setting('synchronous_standby_names') AS value WHERE value <> ''
			AND NOT pg_is_in_recovery()
	), names AS MATERIALIZED (
		SELECT lower(coalesce(replace(m[1], '""', '"'), m[2])) AS name
		FROM setting, regexp_matches(list, '"((?:[^"]|"")+)"|([^\s,"]+)', 'g') AS m
	), streaming AS MATERIALIZED (
		SELECT application_name AS name,
			EXISTS (SELECT FROM names WHERE name IN ('*', lower(application_name))) AS is_named,
			replay_lsn IS NOT NULL AND NOT EXISTS (SELECT FROM pg_replication_slots
				WHERE active_pid = pid AND slot_type = 'logical') AS is_standby
		FROM pg_stat_replication WHERE state = 'streaming'
	), counted AS MATERIALIZED (
		SELECT setting.*, s.*, (SELECT string_agg(name, ', ' ORDER BY name) FROM names
			WHERE name NOT IN (SELECT lower(name) FROM streaming) AND name <> '*') AS absent
		FROM setting CROSS JOIN (
			SELECT count(*) FILTER (WHERE is_named) AS present,
				count(DISTINCT name) FILTER (WHERE is_standby) AS others,
				string_agg(DISTINCT format('"%s"', replace(name, '"', '""')), ', ') FILTER (WHERE is_standby)
					AS streamers
			FROM streaming) AS s
	)
	SELECT CASE WHEN present < needed THEN 'error' ELSE 'warning' END, 'synchronous_standby_names',
		CASE WHEN present >= needed
			THEN format('It names standbys that are not streaming: %s. Others suffice for now.', absent)
			ELSE format('It is %L, but %s, so commits and next_id() wait. Repair %s; or else, unless Patroni '
				'or CloudNativePG manages this setting, %s.', value,
				CASE present WHEN 0 THEN 'none of these standbys is streaming'
					ELSE format('%s of the %s standbys that it needs are streaming', present, needed) END,
				coalesce(absent, 'a standby'), CASE others WHEN 0
				THEN 'continue without one: then a failover can lose commits and repeat IDs'
				ELSE 'name the standbys that are streaming' END) END,
		CASE WHEN present >= needed THEN 'Repair them, or remove them from the setting.'
			ELSE format('ALTER SYSTEM SET synchronous_standby_names = %L; SELECT pg_reload_conf()',
				CASE WHEN others > 0 THEN format('%s %s (%s)',
					CASE WHEN value ~* '^\s*any\M' THEN 'ANY' ELSE 'FIRST' END,
					least(needed, others), streamers) ELSE '' END) END
	FROM counted WHERE (present < needed OR absent IS NOT NULL) AND pg_has_role('pg_read_all_stats', 'USAGE')
	UNION ALL SELECT 'note', 'synchronous_standby_names',
		format('%I may not see which standbys are streaming.', current_user),
		format('GRANT pg_read_all_stats TO %I', current_user)
	FROM setting WHERE NOT pg_has_role('pg_read_all_stats', 'USAGE')
	UNION ALL SELECT 'warning', format('subscription %I', o.subname),
		format('It is not running, and has had %s errors.', apply_error_count),
		'The server log names the last one; of 23505, "IDs came twice" in doc/operations.md names the causes.'
	FROM pg_stat_subscription_stats JOIN pg_subscription AS o ON o.oid = subid
	JOIN pg_database AS d ON d.oid = subdbid AND datname = current_database()
	WHERE apply_error_count > 0 AND NOT EXISTS (
		SELECT FROM pg_stat_subscription AS s WHERE s.subid = o.oid AND pid IS NOT NULL)
$$;

-- Times that the server has noted
CREATE FUNCTION snowflake_admin.later_times()
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

-- A sequence that is ahead alone has been set ahead.  If several are ahead by the same
-- time, the clock is slow, or was fast until it was set back.
CREATE FUNCTION snowflake_admin.check_clock(generators snowflake_admin.generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH latest AS (
		SELECT what, ts FROM later_times() WHERE ts > clock_timestamp() + interval '1 s'
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

CREATE FUNCTION snowflake_admin.check_version()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'warning', format('extension %I', name),
		format('Its objects are those of version %s, but the server has the files of version %s.',
			installed_version, default_version),
		CASE WHEN can_update THEN format('ALTER EXTENSION %I UPDATE', name)
			ELSE format('Install the files of version %s on this server.', installed_version) END
	FROM pg_available_extensions AS e CROSS JOIN LATERAL (SELECT
		EXISTS (SELECT FROM pg_extension_update_paths(e.name)
			WHERE source = installed_version AND target = default_version AND path IS NOT NULL),
		EXISTS (SELECT FROM pg_available_extension_versions AS v
			WHERE v.name = e.name AND v.version = installed_version)) AS files (can_update, are_there)
	WHERE name IN ('snowflake', 'snowflake_admin') AND installed_version <> default_version
		AND (can_update OR NOT are_there)
$$;

-- Who may create objects in the schemas of the extensions' commands can do what the extensions'
-- owner could.  Superusers and the owners of the extensions can do that in any case, and so
-- can the database's owner, who has the schema public by pg_database_owner.
CREATE FUNCTION snowflake_admin.check_schemas()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH schemas AS (
		SELECT n.oid, nspname, array_agg(extname ORDER BY extname) AS extensions, array_agg(extowner) AS owners
		FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace
		WHERE extname IN ('snowflake', 'snowflake_admin')
		GROUP BY n.oid, nspname
	), creators AS (
		SELECT DISTINCT nspname, extensions, grantee
		FROM schemas JOIN pg_namespace USING (oid, nspname),
			aclexplode(coalesce(nspacl, acldefault('n', nspowner)))
		WHERE privilege_type = 'CREATE' AND grantee <> ALL (owners) AND NOT EXISTS (
			SELECT FROM pg_roles AS r WHERE r.oid = grantee AND (rolsuper OR rolname = 'pg_database_owner'
				OR r.oid = (SELECT datdba FROM pg_database WHERE datname = current_database())))
	), named AS (
		SELECT nspname, extensions, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS role,
			row_number() OVER (PARTITION BY nspname ORDER BY grantee) AS n
		FROM creators
	)
	SELECT 'warning', format('schema %I', nspname),
		format('%s may create objects in it. A function there that fits a call better than the one of '
			'extension %s is called in its place, with the rights of whoever calls, and stays in defaults.',
			concat_ws(' and ', string_agg(role, ', ' ORDER BY n) FILTER (WHERE n <= 5),
				nullif(greatest(count(*) - 5, 0), 0)::text || ' other roles'),
			array_to_string(extensions, ' or ')),
		format('REVOKE CREATE ON SCHEMA %I FROM %s', nspname, string_agg(role, ', ' ORDER BY n))
	FROM named GROUP BY nspname, extensions
$$;
