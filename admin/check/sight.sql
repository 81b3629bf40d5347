/* admin/check/sight.sql */

-- snowflake_check() says what it could not see.  What somebody has locked just now, and
-- a look that failed, is an error, because nobody knows what is behind it.  What this role may
-- never see is a note, and no other row says anything that rests on it.  Judges nothing that was
-- seen.

-- The session that has locked one of these relations, or nothing if it has gone
CREATE FUNCTION snowflake_admin.in_the_way(relations regclass[], weakest text) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT regexp_replace(description, '\s+', ' ', 'g') FROM blocker(relations, weakest)
$$;
COMMENT ON FUNCTION snowflake_admin.in_the_way IS 'for naming a session, in one line';

-- The row for a table or sequence that could not be looked at, because of this error
CREATE FUNCTION snowflake_admin.unseen(relation regclass, sqlstate text, message text)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'error', format('%s %s', CASE relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, relation),
		concat_ws(' ', CASE sqlstate
			WHEN '55P03' THEN 'It could not be looked at, because another transaction has locked it.'
			ELSE format('It could not be looked at: %s.', message) END,
			'So its IDs are not judged.', in_the_way(
			ARRAY[relation] || ARRAY(SELECT relid FROM pg_partition_tree(relation)),
			CASE relkind WHEN 'S' THEN 'ShareRowExclusiveLock' ELSE 'AccessExclusiveLock' END)),
		'Call snowflake_check() again later.'
	FROM pg_class WHERE oid = relation
$$;
COMMENT ON FUNCTION snowflake_admin.unseen IS 'for a relation that could not be looked at';

-- Code that could not be read.  It may generate IDs of any sequence that its owner may use.
CREATE FUNCTION snowflake_admin.check_code(makers maker[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'error', place(class, object), concat_ws(' ',
		'Its code could not be read, because another transaction has locked a table that it names. '
			'So nothing is judged that depends on what generates IDs, such as whether a sequence may be set back.',
		in_the_way(ARRAY(SELECT refobjid::regclass FROM pg_depend
			WHERE classid = class AND objid = object AND refclassid = 'pg_class'::regclass), 'AccessExclusiveLock')),
		'Call snowflake_check() again later.'
	FROM unnest(makers) WHERE NOT is_read
$$;
COMMENT ON FUNCTION snowflake_admin.check_code IS 'for rows about code that could not be read';

-- Sequences that somebody has locked.  Locked tables are reported by check_position_of().
CREATE FUNCTION snowflake_admin.check_locked(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT u.* FROM unnest(generators) AS g CROSS JOIN LATERAL unseen(g.sequence, '55P03', NULL) AS u
	WHERE is_locked(g)
$$;
COMMENT ON FUNCTION snowflake_admin.check_locked IS 'for rows about sequences that somebody has locked';

-- The columns that sequences fill
CREATE FUNCTION snowflake_admin.generated_columns(generators generator[])
RETURNS TABLE (tab regclass, col name)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT t.tab, t.col FROM unnest(generators) CROSS JOIN LATERAL unnest(tabs, cols) AS t (tab, col)
$$;
COMMENT ON FUNCTION snowflake_admin.generated_columns IS 'for the columns that sequences fill, each once';

-- Sequences and tables that this role may not read, a row for each owner of such
CREATE FUNCTION snowflake_admin.check_read_privileges(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH hidden (kind, relation) AS (
		SELECT 'sequence', g.sequence FROM unnest(generators) AS g WHERE g.state = 'no privilege'
		UNION SELECT 'table', tab FROM generated_columns(generators)
		WHERE NOT has_column_privilege(tab, col::text, 'SELECT')
	)
	SELECT 'note', format('role %I', current_user),
		concat_ws(' ', format('It may not read %s %s%s, so this check is incomplete.', count(*), kind,
			CASE WHEN count(*) > 1 THEN 's' END), only_role(relowner, min(relation::text)
			|| CASE WHEN count(*) > 1 THEN ' and the others' ELSE '' END)),
		format('GRANT SELECT ON %s %s TO %I', upper(kind),
			string_agg(relation::text, ', ' ORDER BY relation::text), current_user)
	FROM hidden JOIN pg_class ON oid = relation GROUP BY kind, relowner
$$;
COMMENT ON FUNCTION snowflake_admin.check_read_privileges IS 'for rows about what the role may not read';

-- Tables whose IDs could not be read for another reason, such as policies that hide rows, or no
-- index
CREATE FUNCTION snowflake_admin.check_readable(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'note', format('table %s', tab), concat_ws(' ', format('Its IDs were not looked at: %s.',
			CASE obstacle WHEN 'no index' THEN format('no index begins with %I', col) ELSE obstacle END),
			CASE obstacle WHEN 'no index' THEN only_owner(tab) END),
		CASE obstacle WHEN 'no index' THEN format('CREATE INDEX %sON %s (%I)',
			CASE WHEN relkind <> 'p' THEN 'CONCURRENTLY ' END, tab, col)
			WHEN 'policies hide rows' THEN 'Call snowflake_check() as a role that has BYPASSRLS or owns the table.'
			ELSE 'Compare its newest IDs with the clock and with its sequence.' END
	FROM (SELECT DISTINCT ON (c.tab) c.tab, c.col, obstacle
		FROM generated_columns(generators) AS c
		CROSS JOIN LATERAL ids_between(c.tab, c.col, 9223372036854775807, 9223372036854775807, 1)
		-- There are other rows for these.
		WHERE obstacle NOT IN ('no privilege', 'locked')) AS unread
	JOIN pg_class ON oid = tab
$$;
COMMENT ON FUNCTION snowflake_admin.check_readable IS 'for rows about tables that cannot be read';
