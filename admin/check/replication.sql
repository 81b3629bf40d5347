/* admin/check/replication.sql */

-- snowflake_check() judges replication: synchronous standbys that are missing, and
-- subscriptions that have stopped.  Knows no table and no sequence.

-- What synchronous_standby_names is, how many standbys it needs, and their names.  No row if it is
-- empty, or on a standby, where it is for later.
CREATE FUNCTION snowflake_admin.standby_names(OUT value text, OUT needed integer, OUT names text[])
RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT value, coalesce(substring(value, '^\s*(?:[a-zA-Z]+\s+)?(\d+)\s*\(')::integer, 1),
		ARRAY(SELECT lower(coalesce(replace(m[1], '""', '"'), m[2])) FROM regexp_matches(
			regexp_replace(value, '^\s*(?:[a-zA-Z]+\s+)?\d+\s*\((.*)\)\s*$', '\1'),
			'"((?:[^"]|"")+)"|([^\s,"]+)', 'g') AS m)
	FROM current_setting('synchronous_standby_names') AS value
	WHERE value <> '' AND NOT pg_is_in_recovery()
$$;
COMMENT ON FUNCTION snowflake_admin.standby_names IS 'for what synchronous_standby_names says';

-- What streams from here, and whether it is a standby
CREATE FUNCTION snowflake_admin.streamers()
RETURNS TABLE (name text, is_standby boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT application_name, replay_lsn IS NOT NULL AND NOT EXISTS (SELECT FROM pg_replication_slots
		WHERE active_pid = pid AND slot_type = 'logical')
	FROM pg_stat_replication WHERE state = 'streaming'
$$;
COMMENT ON FUNCTION snowflake_admin.streamers IS 'for standbys and others that stream';

-- Standbys that synchronous_standby_names asks for and that are missing.  If too few are left,
-- every commit and every ID waits for them.
CREATE FUNCTION snowflake_admin.check_standbys()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	setting record;
	present integer;		-- how many of the named ones stream
	absent text;			-- which of the names nobody has
	standbys text[];		-- those that stream, named or not
BEGIN
	SELECT * INTO setting FROM standby_names();
	IF NOT FOUND THEN
		RETURN;
	END IF;
	object := 'synchronous_standby_names';
	IF NOT pg_has_role('pg_read_all_stats', 'USAGE') THEN
		severity := 'note';
		problem := format('It is %L, and %I may not see which standbys are streaming. If too few are, commits and '
			'next_id() wait. Only a superuser can grant this.', setting.value, current_user);
		remedy := format('GRANT pg_read_all_stats TO %I', current_user);
		RETURN NEXT;
		RETURN;
	END IF;
	SELECT count(*) FILTER (WHERE '*' = ANY (setting.names) OR lower(name) = ANY (setting.names)),
		coalesce(array_agg(DISTINCT name) FILTER (WHERE is_standby), '{}')
	INTO present, standbys FROM streamers();
	absent := string_agg(name, ', ' ORDER BY name) FROM unnest(setting.names) AS name
		WHERE name <> '*' AND name NOT IN (SELECT lower(s.name) FROM streamers() AS s);
	IF present < setting.needed THEN
		severity := 'error';
		problem := format('It is %L, but %s, so commits and next_id() wait. Repair %s; or else, unless Patroni '
			'or CloudNativePG manages this setting, %s.', setting.value,
			CASE present WHEN 0 THEN 'none of these standbys is streaming'
				ELSE format('%s of the %s standbys that it needs are streaming', present, setting.needed) END,
			coalesce(absent, 'a standby'), CASE standbys WHEN '{}'
			THEN 'continue without one: then a failover can lose commits and repeat IDs'
			ELSE 'name the standbys that are streaming' END);
		remedy := format('Decide, then, as a superuser, ALTER SYSTEM SET synchronous_standby_names = %L, '
			'and SELECT pg_reload_conf().',
			CASE WHEN standbys <> '{}' THEN format('%s %s (%s)',
				CASE WHEN setting.value ~* '^\s*any\M' THEN 'ANY' ELSE 'FIRST' END,
				least(setting.needed, cardinality(standbys)),
				(SELECT string_agg(format('"%s"', replace(s, '"', '""')), ', ' ORDER BY s)
					FROM unnest(standbys) AS s)) ELSE '' END);
		RETURN NEXT;
	ELSIF absent IS NOT NULL THEN
		severity := 'warning';
		problem := format('It names standbys that are not streaming: %s. Others suffice for now.', absent);
		remedy := 'Repair them, or remove them from the setting.';
		RETURN NEXT;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.check_standbys IS 'for the row about synchronous standbys';

-- Subscriptions that stop with an error, such as an ID that exists.  A worker that is about
-- to start again has no process.
CREATE FUNCTION snowflake_admin.check_subscriptions()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'warning', format('subscription %I', o.subname),
		format('It is not running, and has had %s errors.', apply_error_count),
		'The server log names the last one; of 23505, "Duplicate IDs" in doc/operations.md names the causes.'
	FROM pg_stat_subscription_stats JOIN pg_subscription AS o ON o.oid = subid
	JOIN pg_database AS d ON d.oid = subdbid AND datname = current_database()
	WHERE apply_error_count > 0 AND NOT EXISTS (
		SELECT FROM pg_stat_subscription AS s WHERE s.subid = o.oid AND pid IS NOT NULL)
$$;
COMMENT ON FUNCTION snowflake_admin.check_subscriptions IS 'for rows about subscriptions that have stopped';
