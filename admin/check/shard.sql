/* admin/check/shard.sql */

-- snowflake_check() judges: shards that are not set or are another's, and two makers of one
-- column.

-- Shards that are not set, or those of another database.  Rows may tell the number, but
-- those of other servers have theirs.
CREATE FUNCTION snowflake_admin.check_shard(fillers snowflake_admin.filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH lacking AS MATERIALIZED (
		SELECT count(DISTINCT (f.root, f.col)) AS n, min(format('%s.%I', f.root, f.col)) AS first,
			array_agg(DISTINCT f.tab) AS tabs
		FROM unnest(fillers) AS f WHERE f.by_setting AND f.shard IS NULL
	)
	SELECT 'error', format('database %I', current_database()),
		concat_ws('. ', format('No shard is set, so the default of %s fails%s', first,
			CASE WHEN n > 1 THEN format(', and %s more', n - 1) END),
			'The newest IDs may tell the number: ' || (
				SELECT string_agg(DISTINCT format('%s has rows of shard %s', f.tab, s.shard), ', ')
				FROM (SELECT DISTINCT tab, col, layout FROM unnest(fillers)
					WHERE tab = ANY (tabs[1:3]) AND is_built_in) AS f
				CROSS JOIN LATERAL ids_between(
					f.tab, f.col, least_id(), 9223372036854775807, 1) AS newest
				CROSS JOIN LATERAL unnest(shards_of(
					newest.ids, to_layout(f.layout))) AS s (shard))
			|| '. A copy needs another number while its original makes IDs.'),
		format('SELECT %s.snowflake_set_shard(N::bigint); -- N is this server''s number in your list.',
			snowflake_schema())
	FROM lacking WHERE n > 0 AND NOT EXISTS (
		SELECT FROM shard_settings() WHERE place LIKE 'setting of role %')
	UNION SELECT 'warning', format('%s.%I', root, col),
		format('The default makes IDs of shard %s, but the database has number %s. If the table was copied from '
			'a database that still makes IDs, they can come twice.', f.shard, s.shard),
		format('ALTER TABLE %s ALTER %I SET DEFAULT %s.next_id()', root, col,
			snowflake_schema())
	FROM unnest(fillers) AS f, shard_setting() AS s
	WHERE NOT by_setting AND f.shard <> s.shard AND class = 'pg_attrdef'::regclass
		AND sequence = next_id_seq()
		-- check_makers() compares several.
		AND (f.root, f.col) NOT IN (SELECT o.root, o.col FROM unnest(fillers) AS o
			GROUP BY o.root, o.col HAVING count(DISTINCT o.code) > 1)
	UNION SELECT 'note', format('database %I', current_database()),
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

-- The default of a topmost parent's column, for a child that has another one
CREATE FUNCTION snowflake_admin.same_default(tab regclass, col name, root regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT pasteable(format('ALTER TABLE %s ALTER %I SET DEFAULT %s', tab, col, pg_get_expr(adbin, 0)), tab)
	FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
	WHERE adrelid = root AND attname = col AND tab <> root
$$;

-- Two makers of one column.  One default may use several sequences, if each has its shard.
CREATE FUNCTION snowflake_admin.check_makers(fillers snowflake_admin.filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH found AS MATERIALIZED (
		-- Of those that do the same in one column, one.  One with many shards is there by two.
		SELECT root, col, (array_agg(f ORDER BY tab = root DESC, tab))[1] AS f,
			row_number() OVER (PARTITION BY root, col, sequence, code ORDER BY shard) AS n, shard
		FROM unnest(fillers) AS f WHERE shard IS NOT NULL AND sequence IS NOT NULL
		GROUP BY root, col, sequence, code, shard
	), makers AS MATERIALIZED (
		SELECT root, col, (f).tab, shard, (f).sequence, (f).code, CASE (f).class
			WHEN 'pg_proc'::regclass THEN place((f).class, (f).object)
			ELSE format('the default of %s', (f).tab) END AS place
		FROM found WHERE n <= 2
	), pairs AS (
		SELECT DISTINCT ON (a.root, a.col, a.sequence = b.sequence)
			a.root, a.col, a.shard, a.sequence, a.place, b.tab, b.shard AS other_shard,
			b.sequence AS other_sequence, b.place AS other_place
		FROM makers AS a JOIN makers AS b USING (root, col)
		WHERE CASE WHEN a.sequence = b.sequence THEN a.shard <> b.shard AND a.code <> b.code
			ELSE a.shard = b.shard AND (a.code <> b.code OR a.sequence < b.sequence) END
		ORDER BY a.root, a.col, a.sequence = b.sequence, a.place <> format('the default of %s', a.root),
			b.tab = b.root, a.place, b.place
	)
	SELECT CASE WHEN sequence = other_sequence THEN 'warning' ELSE 'error' END, format('%s.%I', root, col),
		CASE WHEN sequence = other_sequence
			THEN format('%s makes IDs of shard %s, and %s those of shard %s.',
				place, shard, other_place, other_shard)
			ELSE format(
				'Two sequences make IDs of shard %s, so IDs can come twice: %s in %s, and %s in %s.',
				shard, sequence, place, other_sequence, other_place) END,
		coalesce(CASE WHEN place = format('the default of %s', root) AND other_place LIKE 'the default of %'
			THEN same_default(tab, col, root) END,
			CASE WHEN sequence = other_sequence THEN 'Use one shard in both places.'
				ELSE 'Give one of these two another free shard, or the sequence of the other.' END)
	FROM pairs
$$;
