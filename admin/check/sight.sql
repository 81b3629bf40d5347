/* admin/check/sight.sql */

-- snowflake_check() says what it could not see: what this role may not read, and what
-- somebody has locked.

-- The row for a table or sequence that could not be looked at, because of this error
CREATE FUNCTION snowflake_admin.note(relation regclass, sqlstate text, message text)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'note', format('%s %s', CASE relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, relation),
		CASE sqlstate
			WHEN '55P03' THEN concat_ws(' ', 'Somebody has locked it, so not all of it was looked at.',
				(SELECT regexp_replace(description, '\s+', ' ', 'g')
					FROM blocker(ARRAY[relation], 'ShareRowExclusiveLock')))
			ELSE format('It could not be looked at: %s.', message) END,
		'Call snowflake_check() again later.'
	FROM pg_class WHERE oid = relation
$$;
COMMENT ON FUNCTION snowflake_admin.note(regclass, text, text) IS 'for a relation that could not be looked at';

-- The columns that sequences fill
CREATE FUNCTION snowflake_admin.generated_columns(generators generator[])
RETURNS TABLE (tab regclass, col name)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT t.tab, t.col FROM unnest(generators) CROSS JOIN LATERAL unnest(tabs, cols) AS t (tab, col)
$$;
COMMENT ON FUNCTION snowflake_admin.generated_columns(generator[]) IS 'for the columns that sequences fill, each once';

-- Sequences and tables that this role may not read
CREATE FUNCTION snowflake_admin.check_read_privileges(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH hidden (kind, relation) AS (
		SELECT 'sequence', g.sequence FROM unnest(generators) AS g WHERE g.state = 'no privilege'
		UNION SELECT 'table', tab FROM generated_columns(generators)
		WHERE NOT has_column_privilege(tab, col::text, 'SELECT')
	)
	SELECT 'note', format('role %I', current_user),
		format('It may not read %s %s%s, so this check is incomplete.', count(*), kind,
			CASE WHEN count(*) > 1 THEN 's' END),
		format('GRANT SELECT ON %s %s TO %I', upper(kind),
			string_agg(relation::text, ', ' ORDER BY relation::text), current_user)
	FROM hidden GROUP BY kind
$$;
COMMENT ON FUNCTION snowflake_admin.check_read_privileges(generator[]) IS
'for rows about what the role may not read';

-- Tables whose rows this role does not see, and those that have no form that can be read
CREATE FUNCTION snowflake_admin.check_readable(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT 'note', format('table %s', tab),
		'Policies hide rows from this role, so its IDs were not looked at.',
		'Call snowflake_check() as a role that has BYPASSRLS or owns the table.'
	FROM generated_columns(generators) WHERE row_security_active(tab)
	UNION ALL SELECT 'note', format('table %s', tab), format('Its IDs were not looked at: %s.', obstacle),
		'Compare its newest IDs with the clock and with its sequence.'
	FROM (SELECT DISTINCT ON (c.tab) c.tab, obstacle
		FROM generated_columns(generators) AS c
		CROSS JOIN LATERAL ids_between(c.tab, c.col, 9223372036854775807, 9223372036854775807, 1)
		-- There are other rows for these.
		WHERE obstacle NOT IN ('no index', 'no privilege', 'policies hide rows', 'locked')) AS unread
$$;
COMMENT ON FUNCTION snowflake_admin.check_readable(generator[]) IS 'for rows about tables that cannot be read';

-- Sequences and their tables that somebody has locked
CREATE FUNCTION snowflake_admin.check_locked(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT n.* FROM (
		SELECT DISTINCT relation::regclass AS locked FROM pg_locks
		WHERE granted AND pid IS DISTINCT FROM pg_backend_pid()
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND (mode = 'AccessExclusiveLock' AND relation IN (SELECT tab FROM generated_columns(generators))
			-- of ALTER SEQUENCE
			OR mode IN ('AccessExclusiveLock', 'ShareRowExclusiveLock')
				AND relation IN (SELECT sequence FROM unnest(generators)))
	) AS l CROSS JOIN LATERAL note(locked, '55P03', NULL) AS n
$$;
COMMENT ON FUNCTION snowflake_admin.check_locked(generator[]) IS 'for rows about what somebody has locked';

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
COMMENT ON FUNCTION snowflake_admin.check_code() IS 'for rows about code that could not be read';
