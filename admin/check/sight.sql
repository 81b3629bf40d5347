/* admin/check/sight.sql */

-- snowflake_check() says what it could not see.

-- What this role may not see, and tables that somebody has locked
CREATE FUNCTION snowflake_admin.check_sight(generators snowflake_admin.generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH hidden AS (
		SELECT 'SEQUENCE' AS kind, g.sequence FROM unnest(generators) AS g
		WHERE g.state = 'no privilege'
		UNION
		SELECT 'TABLE', tab FROM unnest(generators) CROSS JOIN LATERAL unnest(tabs, cols) AS t (tab, col)
		WHERE NOT has_column_privilege(tab, col::text, 'SELECT')
	), tables AS (SELECT DISTINCT tab FROM unnest(generators) CROSS JOIN LATERAL unnest(tabs) AS t (tab))
	SELECT 'note', format('role %I', current_user),
		format('It may not read %s %s%s, so this check is incomplete.', count(*), lower(kind),
			CASE WHEN count(*) > 1 THEN 's' END),
		format('GRANT SELECT ON %s %s TO %I', kind, string_agg(sequence::text, ', ' ORDER BY sequence::text),
			current_user)
	FROM hidden GROUP BY kind
	UNION ALL SELECT 'note', format('table %s', tab),
		'Policies hide rows from this role, so its IDs were not looked at.',
		'Call snowflake_check() as a role that has BYPASSRLS or owns the table.'
	FROM tables WHERE row_security_active(tab)
	UNION ALL SELECT 'note', format('table %s', tab), format('Its IDs were not looked at: %s.', obstacle),
		'Compare its newest IDs with the clock and with its sequence.'
	FROM (SELECT DISTINCT ON (t.tab) t.tab, obstacle
		FROM unnest(generators) CROSS JOIN LATERAL unnest(tabs, cols) AS t (tab, col)
		CROSS JOIN LATERAL ids_between(t.tab, t.col, 9223372036854775807, 9223372036854775807, 1)
		-- There are other rows for these.
		WHERE obstacle NOT IN ('no index', 'no privilege', 'policies hide rows', 'locked')) AS unread
	UNION ALL SELECT n.* FROM (
		SELECT DISTINCT relation::regclass AS locked FROM pg_locks
		WHERE granted AND pid IS DISTINCT FROM pg_backend_pid()
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND (mode = 'AccessExclusiveLock' AND relation IN (SELECT tab FROM tables)
			-- of ALTER SEQUENCE
			OR mode IN ('AccessExclusiveLock', 'ShareRowExclusiveLock')
				AND relation IN (SELECT sequence FROM unnest(generators)))
	) AS l CROSS JOIN LATERAL note(locked, '55P03', NULL) AS n
$$;

-- The row for a table that could not be looked at
CREATE FUNCTION snowflake_admin.note(tab regclass, error text, said text)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'note', format('%s %s', CASE relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, tab), CASE error
		WHEN '55P03' THEN concat_ws(' ', 'Somebody has locked it, so not all of it was looked at.',
			(SELECT regexp_replace(description, '\s+', ' ', 'g')
				FROM blocker(ARRAY[tab], 'ShareRowExclusiveLock')))
		ELSE format('It could not be looked at: %s.', said) END, 'Call snowflake_check() again later.'
	FROM pg_class WHERE oid = tab
$$;

-- Code that could not be read, because somebody has locked a table that it names
CREATE FUNCTION snowflake_admin.check_code()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'note', place(class, object), concat_ws(' ', 'Not all of its code could be looked at.',
		(SELECT regexp_replace(description, '\s+', ' ', 'g') FROM blocker(ARRAY(
			SELECT refobjid::regclass FROM pg_depend
			WHERE classid = class AND objid = object AND refclassid = 'pg_class'::regclass), 'AccessExclusiveLock'))),
		'Call snowflake_check() again later.'
	FROM pieces() WHERE NOT is_read
$$;
