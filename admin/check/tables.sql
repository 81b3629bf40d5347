/* admin/check/tables.sql */

-- snowflake_check() judges: columns that are too narrow, privileges, partitions, and keys
-- that nextval() made.

-- A key of next_id() and what refers to it must hold IDs.
CREATE FUNCTION snowflake_admin.check_width()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH keys AS MATERIALIZED (
		SELECT DISTINCT tab, col FROM all_keys() WHERE made_by = 'next_id'
	), arrays AS (
		SELECT array_agg(tab ORDER BY tab, col) AS tabs, array_agg(col ORDER BY tab, col) AS cols FROM keys
	)
	SELECT 'error', (pg_identify_object('pg_class'::regclass, s.tab, s.col)).identity,
		format('It is %s, which is too small for IDs of %s.%I.', format_type(small.atttypid, NULL),
			tabs[s.n]::regclass, key.attname),
		format('CALL @extschema@.snowflake_widen(%L::regclass, %L::name)', s.tab::regclass, small.attname)
	FROM arrays CROSS JOIN LATERAL too_small(tabs, cols) AS s
	JOIN pg_attribute AS key ON key.attrelid = tabs[s.n] AND key.attnum = cols[s.n]
	JOIN pg_attribute AS small ON small.attrelid = s.tab AND small.attnum = s.col
$$;

-- Who may insert into a table, but not use what its default uses?  Whoever inserts
-- needs the privileges, except where a trigger's function has its owner's.  Grantee 0 is
-- PUBLIC, also to functions such as has_sequence_privilege().
CREATE FUNCTION snowflake_admin.check_privileges(fillers snowflake_admin.filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH fillers AS MATERIALIZED (
		SELECT * FROM unnest(fillers)
		WHERE object NOT IN (SELECT oid FROM pg_proc WHERE prosecdef)
	), inserters AS MATERIALIZED (
		SELECT DISTINCT c.oid, grantee, CASE grantee WHEN 0 THEN 'PUBLIC'
			ELSE grantee::regrole::text END AS role
		FROM pg_class AS c, LATERAL (
			SELECT coalesce(relacl, acldefault('r', relowner))
			UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = c.oid
				AND NOT attisdropped) AS given (acl),
			aclexplode(acl)
		WHERE privilege_type = 'INSERT' AND c.oid IN (SELECT tab FROM fillers)
	), lacking AS (
		SELECT DISTINCT ON (role, sequence, needed) role, f.tab, 'sequence ' || sequence AS thing,
			format('GRANT %s ON SEQUENCE %s TO %s', needed, sequence, role) AS remedy,
			(SELECT relowner FROM pg_class WHERE oid = sequence) AS owner, false AS is_ours
		FROM fillers AS f JOIN inserters AS i ON i.oid = f.tab
		CROSS JOIN LATERAL (SELECT CASE WHEN is_built_in THEN 'USAGE' ELSE 'UPDATE' END) AS n (needed)
		WHERE sequence <> next_id_seq()
			AND NOT has_sequence_privilege(grantee, sequence::oid, needed || ', UPDATE')
		UNION ALL SELECT DISTINCT ON (role, p.oid) role, f.tab, 'function ' || p.oid::regprocedure,
			format('GRANT EXECUTE ON FUNCTION %s TO %s', p.oid::regprocedure, role), proowner,
			p.oid IN (SELECT object FROM extension_members() WHERE class = 'pg_proc'::regclass)
		FROM fillers AS f JOIN inserters AS i ON i.oid = f.tab
		JOIN pg_depend AS d ON (d.classid, d.objid) = (f.class, f.object)
			AND d.refclassid = 'pg_proc'::regclass
		JOIN pg_proc AS p ON p.oid = d.refobjid
		WHERE f.class <> 'pg_proc'::regclass AND NOT has_function_privilege(grantee, p.oid, 'EXECUTE')
	)
	SELECT 'error', thing, format('%s may insert into %s, but not use this %s, so such an INSERT fails.',
		role, tab, split_part(thing, ' ', 1)),
		-- Whoever owns a table can name anybody's sequence or function in its default.
		CASE WHEN is_ours OR owner = relowner THEN remedy
			ELSE format('It belongs to %s, who can grant this to %s. Otherwise give the table another default.',
				owner::regrole, role) END
	FROM lacking JOIN pg_class ON pg_class.oid = tab
$$;

-- A table that is partitioned by ranges of IDs must have partitions for the IDs of now and
-- of soon.
CREATE FUNCTION snowflake_admin.partition_gap(tab regclass, layout snowflake_layout)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RETURN QUERY WITH ranges AS MATERIALIZED (
		SELECT lower_id, upper_id FROM ranges(tab) WHERE NOT pending
	), times (n, name, ts) AS (
		VALUES (1, 'now', clock_timestamp()),
			(2, 'now + max_lead', clock_timestamp()
				+ least(current_setting('snowflake.max_lead')::interval, '31 days')),
			(3, 'tomorrow', clock_timestamp() + interval '1 day')
	), gap AS (
		SELECT n, format('%s (%s)', name, date_trunc('second', ts)) AS missing,
			EXISTS (SELECT FROM ranges WHERE lower_id IS NULL) AS has_default
		FROM times CROSS JOIN LATERAL bound(ts, layout) AS id
		WHERE NOT EXISTS (SELECT FROM ranges WHERE lower_id <= id AND id < upper_id)
		ORDER BY n LIMIT 1
	)
	SELECT CASE WHEN n = 1 AND NOT has_default THEN 'error' ELSE 'warning' END, format('table %s', tab),
		format('It has no partition for IDs of %s, so %s. Look at the clock first: '
			'with partitions for the wrong time, it would get future-dated IDs.', missing,
			CASE WHEN has_default THEN 'such rows go to the DEFAULT partition'
				ELSE 'an INSERT of such a row fails' END),
		format('CALL @extschema@.snowflake_make_partitions(%L::regclass)', tab)
	FROM gap;
EXCEPTION WHEN OTHERS THEN
	RETURN QUERY SELECT * FROM note(tab, SQLSTATE, SQLERRM);
END
$$;

-- Those within a partition of a range need only that range.  A layout without a time has none.
CREATE FUNCTION snowflake_admin.check_partitions(fillers snowflake_admin.filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH parents AS MATERIALIZED (
		SELECT DISTINCT tab, layout FROM unnest(fillers) JOIN pg_partitioned_table ON partrelid = tab
		JOIN pg_attribute ON attrelid = tab AND attname = col AND attnum = partattrs[0]
		WHERE partstrat = 'r' AND partnatts = 1 AND is_id(atttypid)
		AND NOT EXISTS (SELECT FROM pg_partition_ancestors(tab) AS a JOIN pg_partitioned_table AS above
			ON above.partrelid = a.relid AND a.relid <> tab WHERE above.partstrat = 'r')
	)
	SELECT DISTINCT ON (tab) g.* FROM parents CROSS JOIN LATERAL to_layout(layout) AS l (timed)
	CROSS JOIN LATERAL partition_gap(tab, timed) AS g
	WHERE has_time(timed)
	ORDER BY tab, g.severity
$$;

-- Numbers that nextval() made of a sequence that makes IDs.  They are too large for
-- a counter of rows, and as IDs would be of the layout's first weeks.
CREATE FUNCTION snowflake_admin.check_nextval(generators snowflake_admin.generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'warning', format('table %s', tab),
		format('Keys that nextval() made in place of next_id(): %s%s, the last of them %s. '
			'Find the program that calls nextval(), and change it first. No ID is equal to such a key, '
			'so they may stay, but show a wrong time and shard.',
			CASE WHEN number > 10000 THEN 'more than ' END, least(number, 10000), largest),
		CASE WHEN EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND confrelid = tab
			AND confupdtype <> 'c')
			THEN format('Give these rows, and those that refer to them, new keys: %I from %s to %s.',
				col, low, high)
			-- The table's triggers would run with the rights of whoever pastes a plain UPDATE.
			ELSE pasteable(format('UPDATE %s SET %I = DEFAULT WHERE %2$I::bigint BETWEEN %s::bigint AND %s::bigint',
				tab, col, low, high), tab) END
	FROM (
		SELECT DISTINCT t.tab, t.col, low, max_value
		FROM unnest(generators) JOIN (
			-- No sequence had a smaller value when the extension was published.
			SELECT name AS layout, max_value, ids_per_tick * (extract(epoch FROM '2026-01-01Z' - epoch)
				/ extract(epoch FROM tick))::bigint AS low
			FROM layouts()
			WHERE expires IS NOT NULL AND bound_time(max_value,
				to_layout(name)) < epoch + interval '60 days' OFFSET 0) AS e
			USING (layout)
		CROSS JOIN LATERAL unnest(tabs, cols) AS t (tab, col)
	) AS keys (tab, col, low, high)
	CROSS JOIN LATERAL ids_between(tab, col, low, high, 10001)
	CROSS JOIN LATERAL (SELECT cardinality(ids), ids[1]) AS found (number, largest)
	WHERE number > 0
	UNION ALL SELECT 'warning', format('%s.%I', tab::regclass, attname),
		format('Its default takes nextval() of %s, which makes IDs, so such keys '
			'show a wrong time and shard.', g.sequence),
		coalesce(same_default(tab, attname,
				(SELECT inhparent FROM pg_inherits WHERE inhrelid = tab LIMIT 1)),
			format('ALTER TABLE %s ALTER %I SET DEFAULT %s.next_id(N::bigint, %L::regclass%s); '
				'-- N is this server''s number in your list.', tab::regclass, attname,
				snowflake_schema(), g.sequence,
				CASE WHEN g.layout LIKE '%:%' THEN layout_argument(g.layout) END))
	FROM filled() AS f JOIN unnest(generators) AS g USING (sequence)
	JOIN pg_attribute ON attrelid = tab AND attnum = f.col
	WHERE made_by = 'nextval' AND g.layout IS NOT NULL
$$;
