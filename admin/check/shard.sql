/* admin/check/shard.sql */

-- snowflake_check() judges shards: one that is not set, that defaults or new rows do not have, or
-- that another database has, too.  Knows nothing of where a sequence stands.

-- What the newest IDs of three of these tables tell about the database's shard, NULL if
-- nothing.  Those that came from other servers have the shards of these.
CREATE FUNCTION snowflake_admin.shards_of_rows(fillers filler[]) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH lacking AS MATERIALIZED (
		SELECT DISTINCT f.tab FROM unnest(fillers) AS f WHERE f.by_setting AND f.shard IS NULL ORDER BY f.tab LIMIT 3
	), columns AS (
		SELECT DISTINCT tab, col, layout FROM unnest(fillers)
		WHERE tab IN (SELECT l.tab FROM lacking AS l) AND is_built_in AND NOT alters
	)
	SELECT string_agg(DISTINCT format('%s has rows of shard %s', c.tab, s.shard), ', ')
	FROM columns AS c
	CROSS JOIN LATERAL ids_between(c.tab, c.col, least_id(), 9223372036854775807, 1) AS newest
	CROSS JOIN LATERAL unnest(shards_of(newest.ids, to_layout(c.layout))) AS s (shard)
$$;
COMMENT ON FUNCTION snowflake_admin.shards_of_rows IS 'for the shard that a database without one may have had';

-- Do the roles that may insert into a table have their own shards?  At least one role that is no
-- superuser must have one, and so must all that can log in, but for superusers and the table's
-- owner: these may insert, but perhaps only create tables.
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
COMMENT ON FUNCTION snowflake_admin.roles_have_shards IS 'for roles with their own settings';

-- No shard is set, although a default needs one.  Not so where roles have their own.
CREATE FUNCTION snowflake_admin.check_shard_setting(fillers filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH lacking AS (
		SELECT count(DISTINCT (f.root, f.col)) AS n, min(format('%s.%I', f.root, f.col)) AS first
		FROM unnest(fillers) AS f WHERE f.by_setting AND f.shard IS NULL AND NOT roles_have_shards(f.tab)
	)
	SELECT 'error', format('database %I', current_database()),
		concat_ws(' ', format('No shard is set, so the default of %s fails%s.', first,
				CASE WHEN n > 1 THEN format(', and %s more', n - 1) END),
			(SELECT format('The %s is "%s", which is not between 0 and 8191.', place, value) FROM shard_settings()
				WHERE value <> '-1' AND (to_integer(value) BETWEEN 0 AND 8191) IS NOT TRUE ORDER BY place LIMIT 1),
			'The newest IDs may tell the shard: ' || shards_of_rows(fillers)
				|| '. A copy needs another shard while its original generates IDs.', only_database_owner()),
		format('SELECT %s.snowflake_set_shard(N::bigint) -- N is this database''s shard in your list',
			snowflake_schema())
	FROM lacking WHERE n > 0
$$;
COMMENT ON FUNCTION snowflake_admin.check_shard_setting IS 'for the row about a missing shard';

-- Why next_id() refuses this shard in a layout, or NULL
CREATE FUNCTION snowflake_admin.shard_error(shard text, layout text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF shard = 'NULL' THEN
		RETURN 'an argument is NULL';
	ELSIF shard ~ '^[ \t\r\n]*-?[0-9]{1,18}[ \t\r\n]*$' THEN
		PERFORM compose('2026-01-01Z', shard::bigint, to_layout(layout));
	END IF;
	RETURN NULL;
EXCEPTION
	WHEN invalid_parameter_value THEN RETURN SQLERRM;
	-- What is no layout, or has no time, or another epoch, tells nothing.
	WHEN OTHERS THEN RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_admin.shard_error IS 'for shards that no ID can have';

-- Calls that next_id() always refuses, in what fills columns: for an argument, or for a layout that the
-- sequence does not serve.  A sequence that serves no layout has its own row.
CREATE FUNCTION snowflake_admin.check_refused_calls(fillers filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH calls AS MATERIALIZED (
		SELECT f.root, f.col, f.layout, f.by_setting, f.sequence, l.name AS served, f.class = 'pg_attrdef'::regclass AS is_own,
			CASE f.class WHEN 'pg_proc'::regclass THEN place(f.class, f.object) ELSE 'Its default' END AS what,
			f.layout <> l.name AND (f.is_built_in OR f.sequence = next_id_seq()) IS TRUE AS names_other,
			shard_error(f.shard_text, coalesce(f.layout, l.name, 'instagram')) AS error
		FROM unnest(fillers) AS f LEFT JOIN pg_sequence ON seqrelid = f.sequence
		LEFT JOIN layouts() AS l ON l.max_value = seqmax
	)
	SELECT DISTINCT 'error', format('%s.%I', root, col),
		concat_ws(' ', format('%s generates no ID, so every INSERT that needs one fails: %s.', what, CASE WHEN names_other
			THEN format('it names layout %s, and sequence %s serves layout %s', layout, sequence, served) ELSE error END),
			coalesce(r.who, only_owner(root))),
		CASE WHEN r.remedy IS NOT NULL THEN r.remedy
			WHEN names_other THEN format('Let it name layout %s, or a sequence that serves layout %s.', served, layout)
			WHEN by_setting THEN 'Let it name a sequence of a layout that has the shard of this database.'
			ELSE 'Let it name a shard from your list, or none to use that of the database, and a sequence that exists.' END
	FROM calls CROSS JOIN shard_setting() AS s
	LEFT JOIN LATERAL move_remedy(root, col, '') AS r
		ON NOT names_other AND NOT by_setting AND is_own AND sequence = next_id_seq() AND s.shard IS NOT NULL AND error IS NOT NULL
	WHERE names_other OR error IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_admin.check_refused_calls IS 'for rows about calls that next_id() always refuses';

-- Defaults of next_id_seq with a shard that is not the database's
CREATE FUNCTION snowflake_admin.check_shard_in_defaults(fillers filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT 'warning', format('%s.%I', root, col),
		concat_ws(' ', format('The default generates IDs of shard %s, but the database has shard %s. If the table was '
			'copied from a database that still generates IDs, there can be duplicates.', f.shard, s.shard), r.who), r.remedy
	FROM unnest(fillers) AS f CROSS JOIN shard_setting() AS s
	LEFT JOIN LATERAL move_remedy(root, col, '') AS r ON f.shard <> s.shard AND sequence = next_id_seq()
	WHERE NOT by_setting AND f.shard <> s.shard AND class = 'pg_attrdef'::regclass
		AND sequence = next_id_seq() AND shard_error(f.shard_text, 'instagram') IS NULL
		-- check_makers() compares several.
		AND (f.root, f.col) NOT IN (SELECT o.root, o.col FROM unnest(fillers) AS o
			GROUP BY o.root, o.col HAVING count(DISTINCT o.code) > 1)
$$;
COMMENT ON FUNCTION snowflake_admin.check_shard_in_defaults IS
'for rows about defaults with another shard than the database';

-- The newest IDs of tables whose shard is that of the setting: how many of them have it, how many
-- have another one and came after the first of these, and the largest other shard
CREATE FUNCTION snowflake_admin.newest_shards(fillers filler[])
RETURNS TABLE (tab regclass, own bigint, others bigint, other_shard integer, newest timestamptz)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH columns AS (
		SELECT f.root AS tab, f.col, min(f.layout) AS layout, min(f.shard) AS setting FROM unnest(fillers) AS f
		WHERE NOT f.alters
		GROUP BY f.root, f.col HAVING bool_and(f.by_setting AND f.is_built_in AND f.shard IS NOT NULL)
			AND count(DISTINCT f.layout) = 1
	), ids AS MATERIALIZED (
		SELECT c.tab, c.layout, c.setting, i.id, i.shard
		FROM columns AS c JOIN layouts() AS l ON l.name = c.layout AND l.expires IS NOT NULL
		CROSS JOIN LATERAL ids_between(c.tab, c.col,
			bound(clock_timestamp() - interval '1 hour', to_layout(c.layout)),
			bound(clock_timestamp() + interval '1 min', to_layout(c.layout)), 1000) AS f
		CROSS JOIN LATERAL unnest(f.ids, shards_of(f.ids, to_layout(c.layout))) AS i (id, shard)
	), first AS (
		SELECT i.tab, min(id) AS id FROM ids AS i WHERE shard = setting GROUP BY i.tab
	)
	SELECT i.tab, count(*) FILTER (WHERE shard = setting),
		count(*) FILTER (WHERE shard <> setting AND i.id > first.id),
		max(shard) FILTER (WHERE shard <> setting AND (first.id IS NULL OR i.id > first.id)),
		id_time(max(i.id), to_layout(min(i.layout)))
	FROM ids AS i LEFT JOIN first USING (tab) GROUP BY i.tab
$$;
COMMENT ON FUNCTION snowflake_admin.newest_shards IS 'for the shards of the newest rows';

-- Rows of the last hour with another shard than the setting's.  On a standby, the setting is in
-- its own files.  Elsewhere, a session that began before the shard was changed keeps the old one.
-- Rows of other servers come by subscriptions, and roles may have their own.
CREATE FUNCTION snowflake_admin.check_shards_of_rows(fillers filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH newest_rows AS MATERIALIZED (SELECT * FROM newest_shards(fillers))
	SELECT 'warning', format('database %I', current_database()),
		format('This standby has shard %s, but the newest rows of %s have shard %s. If it is promoted, it generates IDs of '
			'another shard than the primary.', s.shard, n.tab, n.other_shard),
		format('Set snowflake.shard in the files of this server to the shard of the primary, unless no other '
			'database uses %s.', s.shard)
	FROM shard_setting() AS s, LATERAL (SELECT * FROM newest_rows ORDER BY newest DESC LIMIT 1) AS n
	WHERE pg_is_in_recovery() AND n.own = 0 AND n.other_shard IS NOT NULL
	UNION ALL SELECT 'warning', format('table %s', n.tab),
		format('Of the rows of the last hour, %s shard %s, while the database has %s. Sessions that began before the '
			'shard was changed keep the old one, and a client can set its own.',
			n.others || CASE n.others WHEN 1 THEN ' has' ELSE ' have' END, n.other_shard, s.shard),
		'Let all sessions reconnect. If more such rows come, take the setting out of the clients. Do nothing if '
			'another server inserted these rows.'
	FROM shard_setting() AS s, newest_rows AS n
	WHERE NOT pg_is_in_recovery() AND n.others > 0
		AND NOT EXISTS (SELECT FROM pg_subscription AS u JOIN pg_database AS d ON d.oid = subdbid
			WHERE datname = current_database())
		AND NOT has_role_shards()
$$;
COMMENT ON FUNCTION snowflake_admin.check_shards_of_rows IS 'for rows about sessions and standbys with another shard';

-- Other databases of this server that have the same setting
CREATE FUNCTION snowflake_admin.check_other_databases()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'note', format('database %I', current_database()),
		format('Other databases of this server with its shard %s: %s. Their IDs can be equal, which matters '
			'only where rows of both are combined.', own.shard,
			string_agg(DISTINCT quote_ident(datname), ', ')),
		'Give one of them another shard if rows of both are combined.'
	FROM shard_setting() AS own, pg_database AS d
	JOIN pg_db_role_setting ON setdatabase = d.oid, unnest(setconfig) AS setting
	WHERE datname <> current_database() AND setting ILIKE 'snowflake.shard=%'
		AND to_integer(split_part(setting, '=', 2)) = own.shard
	GROUP BY own.shard
$$;
COMMENT ON FUNCTION snowflake_admin.check_other_databases IS
'for the row about databases of this server with the same shard';
