/* admin/check/columns.sql */

-- snowflake_check() judges columns: those that are too small for IDs or nearly full, and those
-- whose values nextval() takes from a sequence that generates IDs, or from one that counts among them.
-- Knows nothing of the clock.

-- Columns that cannot hold IDs: a key of next_id() and what refers to it must.  A numeric without a
-- precision, or with a large one, holds them, and what texts hold depends on how they are written.
CREATE FUNCTION snowflake_admin.check_width()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH keys AS MATERIALIZED (
		SELECT DISTINCT tab, col FROM keys_of() WHERE made_by = 'next_id'
	), arrays AS (
		SELECT array_agg(tab ORDER BY tab, col) AS tabs, array_agg(col ORDER BY tab, col) AS cols FROM keys
	)
	SELECT 'error', (pg_identify_object('pg_class'::regclass, s.tab, s.col)).identity,
		concat_ws(' ', format('It is %s, which %s IDs of %s.%I.', format_type(small.atttypid, small.atttypmod), f.fault,
			tabs[s.n]::regclass, key.attname), coalesce(r.who, only_owner(s.tab))),
		coalesce(r.remedy, widen_instead(s.tab, small.attname))
	FROM arrays CROSS JOIN LATERAL cannot_hold_ids(tabs, cols) AS s
	JOIN pg_attribute AS key ON key.attrelid = tabs[s.n] AND key.attnum = cols[s.n]
	JOIN pg_attribute AS small ON small.attrelid = s.tab AND small.attnum = s.col
	CROSS JOIN LATERAL base_type(small.atttypid) AS base
	CROSS JOIN LATERAL (SELECT CASE
		WHEN base IN ('smallint'::regtype, 'integer'::regtype, 'oid'::regtype)
			OR base = 'numeric'::regtype AND small.atttypmod >= 4	-- precision and scale, as PostgreSQL packs them
			AND (small.atttypmod - 4 >> 16) - ((small.atttypmod - 4 & 2047) # 1024) + 1024 < 19 THEN 'is too small for'
		WHEN base IN ('real'::regtype, 'double precision'::regtype) THEN 'rounds' END) AS f (fault)
	LEFT JOIN LATERAL widen_remedy(s.tab, small.attname) AS r ON base IN ('smallint'::regtype, 'integer'::regtype)
	WHERE fault IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_admin.check_width IS 'for rows about columns that are too small for IDs';

-- Keys of type integer or smallint that are beyond four fifths of its range.  Sequences are
-- not read, as each would stay locked until the caller's transaction ends.
CREATE FUNCTION snowflake_admin.check_integer_keys()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT 'warning', (pg_identify_object('pg_class'::regclass, tab, col)).identity,
		concat_ws(' ', format('Its largest value is %s, and %s ends at %s.', ids[1], format_type(base, NULL), high),
			r.who), r.remedy
	FROM keys_of() CROSS JOIN LATERAL base_type(type) AS base
	CROSS JOIN LATERAL (SELECT CASE base WHEN 'integer'::regtype THEN 2147483647
		WHEN 'smallint'::regtype THEN 32767 END) AS m (high)
	CROSS JOIN LATERAL ids_between(tab, col_name, (high * 0.8)::bigint, high, 1) AS i
	LEFT JOIN LATERAL widen_remedy(tab, col_name) AS r ON made_by <> 'next_id' AND ids IS NOT NULL
	WHERE made_by <> 'next_id' AND ids IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_admin.check_integer_keys IS 'for rows about keys that come to the end of their type';

-- Keys of an identity or of nextval() that count among IDs, as Django lets them after a move:
-- by one, through the IDs of all shards of a moment.  Only where a table has IDs is its sequence
-- read.
CREATE FUNCTION snowflake_admin.check_counting_keys()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN s.shard IS NULL THEN 'note' ELSE 'warning' END,
		(pg_identify_object('pg_class'::regclass, tab, col)).identity,
		concat_ws(' ', format('Sequence %s counts among IDs, through those of all shards, so new rows can have IDs '
			'that another server generates.', sequence::regclass), r.who),
		coalesce(r.remedy, 'Do nothing if rows of no other server come to this table.')
	FROM keys_of() JOIN pg_sequence ON seqrelid = sequence CROSS JOIN shard_setting() AS s
	CROSS JOIN bound('2026-01-01Z', to_layout('instagram')) AS low
	CROSS JOIN LATERAL ids_between(tab, col_name, low, 9223372036854775807, 1) AS i
	-- A key that was moved back counts by id_step(), which is 4096 at least in built-in layouts, and keeps
	-- to its shard.  A smaller value than that of this year is no ID that this extension has generated.
	CROSS JOIN LATERAL (SELECT made_by <> 'next_id' AND is_id(base_type(type)) AND seqincrement BETWEEN -4095 AND 4095
		AND seqmax NOT IN (SELECT max_value FROM layouts())
		AND CASE WHEN ids IS NOT NULL THEN sequence_last_value(sequence) >= low END OFFSET 0) AS c (counts)
	LEFT JOIN LATERAL move_remedy(tab, col_name, '') AS r ON counts AND s.shard IS NOT NULL
	WHERE counts
$$;
COMMENT ON FUNCTION snowflake_admin.check_counting_keys IS 'for rows about keys that count among IDs';

-- The range in which nextval() of a sequence of each layout returns its values.  They are too
-- large for a counter of rows, and as IDs would be of the layout's first weeks.  No row for
-- a layout in which they are not.
CREATE FUNCTION snowflake_admin.nextval_ranges()
RETURNS TABLE (layout text, low bigint, high bigint)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	-- No sequence had a smaller value when the extension was published.
	SELECT name, ids_per_tick
		* (extract(epoch FROM '2026-01-01Z' - epoch) / extract(epoch FROM tick))::bigint, max_value
	FROM layouts()
	WHERE expires IS NOT NULL AND bound_time(max_value, to_layout(name)) < epoch + interval '60 days'
$$;
COMMENT ON FUNCTION snowflake_admin.nextval_ranges IS 'for values that nextval() returns of a sequence for IDs';

-- Keys that nextval() generated from a sequence that generates IDs
CREATE FUNCTION snowflake_admin.check_nextval_keys(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH keys AS (
		SELECT DISTINCT t.tab, t.col, low, high FROM unnest(generators)
		JOIN (SELECT * FROM nextval_ranges() OFFSET 0) AS r USING (layout)
		CROSS JOIN LATERAL unnest(tabs, cols) AS t (tab, col)
	)
	SELECT 'warning', format('table %s', tab),
		concat_ws(' ', format('Keys that nextval() generated in place of next_id(): %s%s, the last of them %s. '
			'Find the program that calls nextval(), and change it first. No ID is equal to such a key, '
			'so they may stay, but show a wrong time and shard.',
			CASE WHEN cardinality(ids) > 10000 THEN 'more than ' END, least(cardinality(ids), 10000), ids[1]),
			only_owner(tab)),
		CASE WHEN EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND confrelid = tab
			AND confupdtype <> 'c')
			THEN format('Give these rows, and those that refer to them, new keys: %I from %s to %s.',
				col, low, high)
			-- The table's triggers would run with the rights of whoever pastes a plain UPDATE.
			-- There may be such a foreign key when it runs.
			ELSE pasteable(format('UPDATE %s SET %I = DEFAULT WHERE %2$I::bigint BETWEEN %s::bigint AND %s::bigint '
				'AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE contype = ''f'' '
				'AND confrelid = %L::regclass AND confupdtype <> ''c'')', tab, col, low, high, tab), tab) END
	FROM keys CROSS JOIN LATERAL ids_between(tab, col, low, high, 10001)
	WHERE ids IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_admin.check_nextval_keys IS 'for rows about keys that nextval() generated';

-- Defaults that call nextval() of a sequence that generates IDs
CREATE FUNCTION snowflake_admin.check_nextval_defaults(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'warning', format('%s.%I', tab::regclass, attname),
		format('Its default calls nextval() of %s, which generates IDs, so such keys '
			'show a wrong time and shard.', g.sequence),
		coalesce(same_default(tab, attname,
				(SELECT inhparent FROM pg_inherits WHERE inhrelid = tab LIMIT 1)),
			format('Let its default be %s.next_id(N, %L%s), where N is this database''s shard in your list.',
				snowflake_schema(), g.sequence, layout_argument(g.layout)))
	FROM filled() AS f JOIN unnest(generators) AS g USING (sequence)
	JOIN pg_attribute ON attrelid = tab AND attnum = f.col
	WHERE made_by = 'nextval' AND g.layout IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_admin.check_nextval_defaults IS
'for rows about defaults that call nextval() in place of next_id()';
