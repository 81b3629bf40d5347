/* admin/check/sight.sql */

-- snowflake_check() says what it could not see.  A look that failed is an error, because nobody knows
-- what is behind it.  What somebody has locked is a warning, as the next check will mostly see it.  What
-- this role may never see is a note, and no other row says anything that rests on it.  Judges nothing that
-- was seen.

-- The session that has locked one of these relations, or nothing if it has gone
CREATE FUNCTION snowflake_admin.in_the_way(relations regclass[], weakest text) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT regexp_replace(description, '\s+', ' ', 'g') FROM blocker(relations, weakest)
$$;
COMMENT ON FUNCTION snowflake_admin.in_the_way IS 'for naming a session, in one line';

-- The first of these tables that somebody has locked, or of which a partition is locked, or NULL
CREATE FUNCTION snowflake_admin.locked_table(tabs regclass[]) RETURNS regclass
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH locked AS MATERIALIZED (
		SELECT relation FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock' AND pid IS DISTINCT FROM pg_backend_pid()
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	)
	SELECT min(t::oid)::regclass FROM unnest(tabs) AS t
	WHERE EXISTS (SELECT FROM family(t) AS member WHERE member IN (SELECT relation FROM locked))
$$;
COMMENT ON FUNCTION snowflake_admin.locked_table IS 'for naming the table that could not be looked at';

-- The row for a table or sequence that could not be looked at, because of this error.
-- pg_partition_tree() would wait for the same lock, and fail.
CREATE FUNCTION snowflake_admin.unseen(relation regclass, sqlstate text, message text)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE sqlstate WHEN '55P03' THEN 'warning' ELSE 'error' END,
		format('%s %s', CASE relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, relation),
		concat_ws(' ', CASE sqlstate
			WHEN '55P03' THEN 'It could not be looked at, because another transaction has locked it.'
			ELSE format('It could not be looked at: %s.', message) END,
			'So its IDs are not judged.', in_the_way(ARRAY(SELECT member::regclass FROM family(relation) AS member),
			CASE relkind WHEN 'S' THEN 'ShareRowExclusiveLock' ELSE 'AccessExclusiveLock' END)),
		'Call snowflake_check() again later.'
	FROM pg_class WHERE oid = relation
$$;
COMMENT ON FUNCTION snowflake_admin.unseen IS 'for a relation that could not be looked at';

-- Code that could not be read.  It may generate IDs of any sequence that its owner may use.
CREATE FUNCTION snowflake_admin.check_code(makers maker[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'warning', place(class, object), concat_ws(' ',
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

-- The index without which the IDs of a column could not be read, or NULL.  It may be one of a partition.
CREATE FUNCTION snowflake_admin.missing_index(tab regclass, col name, obstacle text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('CREATE INDEX %sON %s (%I)', CASE WHEN relkind <> 'p' THEN 'CONCURRENTLY ' END, oid::regclass, col)
	FROM pg_class WHERE oid = CASE WHEN obstacle = 'no index' THEN tab
		ELSE to_regclass(substring(obstacle FROM '^no index \(partition (.*)\)$')) END
$$;
COMMENT ON FUNCTION snowflake_admin.missing_index IS 'for the remedy of a table without an index';

-- What lets a command see the IDs of a column that it could not read: a statement, or a sentence, or NULL if
-- nothing does
CREATE FUNCTION snowflake_admin.way_to_see(command text, tab regclass, col name, obstacle text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(missing_index(tab, col, obstacle), CASE
		WHEN obstacle = 'locked' THEN format('Call %s again when nobody has locked %s.', command, tab)
		WHEN obstacle = 'no privilege' THEN format('Let a role call %s that may read %s.', command, tab)
		WHEN obstacle = 'policies hide rows'
			THEN format('Let a role call %s that has BYPASSRLS or owns %s.', command, tab) END)
$$;
COMMENT ON FUNCTION snowflake_admin.way_to_see IS 'for the remedy of a table that could not be read';

-- Tables whose IDs could not be read for another reason, such as policies that hide rows, or no
-- index
CREATE FUNCTION snowflake_admin.check_readable(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'note', format('table %s', tab), concat_ws(' ', format('Its IDs were not looked at: %s.',
			CASE obstacle WHEN 'no index' THEN format('no index begins with %I', col) ELSE obstacle END),
			CASE WHEN obstacle LIKE 'no index%' THEN only_owner(tab) END),
		CASE WHEN obstacle LIKE 'no index%' THEN missing_index(tab, col, obstacle)
			WHEN obstacle = 'policies hide rows' THEN 'Call snowflake_check() as a role that has BYPASSRLS or owns the table.'
			ELSE 'Compare its newest IDs with the clock and with its sequence.' END
	FROM (SELECT DISTINCT ON (c.tab) c.tab, c.col, obstacle
		FROM generated_columns(generators) AS c
		CROSS JOIN LATERAL ids_between(c.tab, c.col, 9223372036854775807, 9223372036854775807, 1)
		-- There are other rows for these.
		WHERE obstacle NOT IN ('no privilege', 'locked')) AS unread
	JOIN pg_class ON oid = tab
$$;
COMMENT ON FUNCTION snowflake_admin.check_readable IS 'for rows about tables that cannot be read';
