/* admin/check/check.sql */

-- SELECT * FROM snowflake_check(): all checks, one after the other, and their rows in order.

-- All rows.  A check that fails is a row, and the others go on without it.
CREATE FUNCTION snowflake_admin.all_checks()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	fillers filler[];
	generators generator[];
	fault text;
BEGIN
	FOREACH fault IN ARRAY ARRAY['fillers', 'generators', 'shard($1)', 'makers($1)',
		'layout($2)', 'position', 'clock($2)', 'width()', 'privileges($1)', 'partitions($1)',
		'nextval($2)', 'replication()', 'version()', 'schemas()', 'sight($2)', 'code()']
	LOOP
		BEGIN
			CASE fault
				WHEN 'fillers' THEN fillers := ARRAY(SELECT f
					FROM fillers() AS f);
				WHEN 'generators' THEN generators := ARRAY(
					SELECT g FROM generators(fillers) AS g);
				WHEN 'position' THEN RETURN QUERY
					SELECT p.* FROM unnest(generators) AS g CROSS JOIN LATERAL
						check_position(g, to_layout(g.layout)) AS p
					WHERE g.layout IS NOT NULL;
				ELSE RETURN QUERY EXECUTE format('SELECT * FROM check_%s', fault)
					USING fillers, generators;
			END CASE;
		EXCEPTION WHEN OTHERS THEN
			RETURN QUERY SELECT 'note', format('check of %s', regexp_replace(fault, '\(.*', '')),
				format('It failed: %s.', SQLERRM), 'Call snowflake_check() again later.';
		END;
	END LOOP;
END
$$;

-- How many tables a table refers to, itself included.  From a hundred on, the order of rows
-- matters to nobody.
CREATE FUNCTION snowflake_admin.depth(tab oid) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE referred (tab) AS (
		SELECT depth.tab
		UNION SELECT confrelid FROM referred JOIN pg_constraint ON conrelid = referred.tab AND contype = 'f')
	SELECT count(*) FROM (SELECT FROM referred LIMIT 100) AS r
$$;

-- The first call of a function of "snowflake" loads the library, whose settings the
-- checks read.  20 ms are no wait: they let a command that is just ending end.
CREATE FUNCTION @extschema@.snowflake_check()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp SET lock_timeout = '20ms' SET jit = off AS $$
BEGIN
	PERFORM layouts();
	-- A remedy that is no sentence is a command, or several.  A table comes after those that
	-- it refers to.  It is found by its name without a look at the caller's privileges.
	RETURN QUERY WITH rows AS MATERIALIZED (
		SELECT c.severity, c.object, c.problem, c.remedy FROM all_checks() AS c
	), tables AS MATERIALIZED (
		SELECT 'table ' || oid::regclass::text AS name, depth(oid) AS depth
		FROM pg_class WHERE relkind IN ('r', 'p', 'f')
		AND 'table ' || oid::regclass::text IN (SELECT r.object FROM rows AS r)
	)
	SELECT r.severity, r.object, r.problem, regexp_replace(r.remedy, '([^.])$', '\1;')
	FROM rows AS r LEFT JOIN tables AS t ON t.name = r.object
	ORDER BY array_position('{error,warning,note}'::text[], r.severity), t.depth NULLS FIRST,
		r.object COLLATE "C", r.problem COLLATE "C";
END
$$;

COMMENT ON FUNCTION @extschema@.snowflake_check() IS
'what is wrong, or soon will be, with the IDs of this database, and what to do about it';
