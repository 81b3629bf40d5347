/* admin/check/remedies.sql */

-- Commands that several rows of snowflake_check() show.  Judges nothing.

-- A layout as the last argument in a command
CREATE FUNCTION snowflake_admin.layout_argument(layout text) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format(', %L::%s.snowflake_layout', layout, snowflake_schema())
$$;
COMMENT ON FUNCTION snowflake_admin.layout_argument(text) IS 'for commands that name a layout';

-- Give the future-dated rows of a shard new IDs, and create the indexes that this needs before.
CREATE FUNCTION snowflake_admin.renumber_command(tab regclass, col name, shard integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT concat_ws('; ', string_agg(command, '; ' ORDER BY command),
		format('CALL @extschema@.snowflake_renumber(%L::regclass, %s::bigint, since => now() + interval ''1 s'')',
			tab, coalesce(shard, 0)))
	FROM renumber_indexes(tab, col)
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_command(regclass, name, integer) IS
'for the remedy of future-dated rows';

-- Set a sequence back, but beyond the IDs of its tables.  Where the shard has been changed
-- before, sessions that still have the old one would make the future-dated IDs again.
CREATE FUNCTION snowflake_admin.set_back(sequence regclass, tabs regclass[], cols name[], layout text,
	max_value bigint, end_sessions boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT concat_ws('; ',
		CASE WHEN end_sessions THEN 'SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity '
			'WHERE datname = current_database() AND pid <> pg_backend_pid() '
			'AND backend_type = ''client backend''' END,
		'BEGIN', 'SET LOCAL lock_timeout = ''300ms''',
		format('ALTER SEQUENCE %s RESTART', sequence) || coalesce(' MAXVALUE ' || max_value, ''),
		(SELECT string_agg(DISTINCT format('SELECT %1$s.snowflake_advance(%2$L::regclass, max(%3$I::bigint)%5$s) '
				'FROM %4$s WHERE %3$I::bigint <= %1$s.snowflake_max_id(now() + interval ''1 s''%6$s) '
				'HAVING max(%3$I::bigint) >= 1::bigint << 40',
				snowflake_schema(), sequence, col, tab,
				CASE WHEN layout LIKE '%:%' THEN layout_argument(layout) END,
				CASE WHEN layout <> 'instagram' THEN layout_argument(layout) END), '; ')
			FROM unnest(tabs, cols) AS t (tab, col)),
		'COMMIT')
$$;
COMMENT ON FUNCTION snowflake_admin.set_back(regclass, regclass[], name[], text, bigint, boolean) IS
'for the remedy that sets a sequence back';

-- Another shard for those who use a sequence, as rows have IDs that it must not make
-- again.  The next check then shows how to set the sequence back.
CREATE FUNCTION snowflake_admin.new_shard(sequence regclass, tabs regclass[], by_setting boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN by_setting AND coalesce(place, 'client') LIKE 'setting of database %' AND NOT EXISTS (
				SELECT FROM @extschema@.snowflake_uses() AS u
				WHERE u.sequence = new_shard.sequence AND u.shard IS NOT NULL)
			THEN format('SELECT %s.snowflake_set_shard(N::bigint)', snowflake_schema())
		ELSE (SELECT string_agg(DISTINCT format(
				'CALL @extschema@.snowflake_move(%L::regclass, shard => N::bigint, own_sequence => true)', tab), '; ')
			FROM unnest(tabs) AS t (tab)) END || '; -- N is a number from your list that no server uses.'
	FROM shard_setting()
$$;
COMMENT ON FUNCTION snowflake_admin.new_shard(regclass, regclass[], boolean) IS
'for the remedy that gives the tables of a sequence another shard';

-- The default of a topmost parent's column, for a child that has another one
CREATE FUNCTION snowflake_admin.same_default(tab regclass, col name, root regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT pasteable(format('ALTER TABLE %s ALTER %I SET DEFAULT %s', tab, col, pg_get_expr(adbin, 0)), tab)
	FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
	WHERE adrelid = root AND attname = col AND tab <> root
$$;
COMMENT ON FUNCTION snowflake_admin.same_default(regclass, name, regclass) IS
'for the remedy of a child table with another default than its parent';
