/* admin/check/shard.sql */

-- snowflake_check() judges shards: one that is not set, or is another database's.

-- What the newest IDs of three of these tables tell about the database's shard, NULL if
-- nothing.  Those that came from other servers have the shards of these.
CREATE FUNCTION snowflake_admin.shards_of_rows(fillers filler[]) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH lacking AS MATERIALIZED (
		SELECT DISTINCT f.tab FROM unnest(fillers) AS f WHERE f.by_setting AND f.shard IS NULL ORDER BY f.tab LIMIT 3
	), columns AS (
		SELECT DISTINCT tab, col, layout FROM unnest(fillers)
		WHERE tab IN (SELECT l.tab FROM lacking AS l) AND is_built_in
	)
	SELECT string_agg(DISTINCT format('%s has rows of shard %s', c.tab, s.shard), ', ')
	FROM columns AS c
	CROSS JOIN LATERAL ids_between(c.tab, c.col, least_id(), 9223372036854775807, 1) AS newest
	CROSS JOIN LATERAL unnest(shards_of(newest.ids, to_layout(c.layout))) AS s (shard)
$$;
COMMENT ON FUNCTION snowflake_admin.shards_of_rows(filler[]) IS
'for the shard that a database without one may have had';

-- Do the roles that insert into a table have shards of their own?  If any has one that may
-- insert, those are looked at that can log in, but the table's owner and superusers, who
-- may only create tables.
CREATE FUNCTION snowflake_admin.roles_have_shards(tab regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH inserting AS MATERIALIZED (
		SELECT oid, rolcanlogin AND NOT rolsuper AND oid <> (SELECT relowner FROM pg_class WHERE oid = tab) AS counts,
			EXISTS (SELECT FROM pg_db_role_setting, unnest(setconfig) AS setting
				WHERE setrole = r.oid AND setting ILIKE 'snowflake.shard=%' AND setdatabase IN (0,
					(SELECT oid FROM pg_database WHERE datname = current_database()))) AS has_shard
		FROM pg_roles AS r WHERE has_table_privilege(r.oid, tab, 'INSERT')
	)
	SELECT coalesce(bool_or(has_shard AND NOT (SELECT rolsuper FROM pg_roles WHERE oid = i.oid)), false)
		AND coalesce(bool_and(has_shard) FILTER (WHERE counts), true)
	FROM inserting AS i
$$;
COMMENT ON FUNCTION snowflake_admin.roles_have_shards(regclass) IS 'for roles with settings of their own';

-- No shard is set, although a default needs one.  Not so where roles have their own.
CREATE FUNCTION snowflake_admin.check_shard_setting(fillers filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH lacking AS (
		SELECT count(DISTINCT (f.root, f.col)) AS n, min(format('%s.%I', f.root, f.col)) AS first
		FROM unnest(fillers) AS f WHERE f.by_setting AND f.shard IS NULL AND NOT roles_have_shards(f.tab)
	)
	SELECT 'error', format('database %I', current_database()),
		concat_ws('. ', format('No shard is set, so the default of %s fails%s', first,
				CASE WHEN n > 1 THEN format(', and %s more', n - 1) END),
			'The newest IDs may tell the number: ' || shards_of_rows(fillers)
				|| '. A copy needs another number while its original makes IDs.'),
		format('SELECT %s.snowflake_set_shard(N::bigint); -- N is this server''s number in your list.',
			snowflake_schema())
	FROM lacking WHERE n > 0
$$;
COMMENT ON FUNCTION snowflake_admin.check_shard_setting(filler[]) IS 'for the row about a missing shard';

-- Defaults of next_id_seq with a shard that is not the database's
CREATE FUNCTION snowflake_admin.check_shard_in_defaults(fillers filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT 'warning', format('%s.%I', root, col),
		format('The default makes IDs of shard %s, but the database has number %s. If the table was copied from '
			'a database that still makes IDs, they can come twice.', f.shard, s.shard),
		format('ALTER TABLE %s ALTER %I SET DEFAULT %s.next_id()', root, col, snowflake_schema())
	FROM unnest(fillers) AS f, shard_setting() AS s
	WHERE NOT by_setting AND f.shard <> s.shard AND class = 'pg_attrdef'::regclass
		AND sequence = next_id_seq()
		-- check_makers() compares several.
		AND (f.root, f.col) NOT IN (SELECT o.root, o.col FROM unnest(fillers) AS o
			GROUP BY o.root, o.col HAVING count(DISTINCT o.code) > 1)
$$;
COMMENT ON FUNCTION snowflake_admin.check_shard_in_defaults(filler[]) IS
'for rows about defaults with another shard than the database';

-- Other databases of this server that have the same setting
CREATE FUNCTION snowflake_admin.check_other_databases()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'note', format('database %I', current_database()),
		format('Other databases of this server with its shard %s: %s. Their IDs can be equal, which matters '
			'only where rows of both come together.', own.shard,
			string_agg(DISTINCT quote_ident(datname), ', ')),
		format('SELECT %s.snowflake_set_shard(N::bigint); -- N is a number from your list that no server uses.',
			snowflake_schema())
	FROM shard_setting() AS own, pg_database AS d
	JOIN pg_db_role_setting ON setdatabase = d.oid, unnest(setconfig) AS setting
	WHERE datname <> current_database() AND setting ILIKE 'snowflake.shard=%'
		AND to_integer(split_part(setting, '=', 2)) = own.shard
	GROUP BY own.shard
$$;
COMMENT ON FUNCTION snowflake_admin.check_other_databases() IS
'for the row about databases of this server with the same shard';
