/* admin/check/check.sql */

-- SELECT * FROM snowflake_check(): all checks, one after the other, and their rows in order.
--
--     1. find what generates IDs, which columns it fills (fillers.sql), and which sequences do so,
--        and where these stand (generators.sql).  All that follows rests on this one look.  If it
--        fails, there is an error that says so, and only what needs no look is judged.
--     2. judge it, one subject after the other.  Each file judges one or more subjects, and says
--        which rows they have.  A subject that fails is an error, too, and leaves the others alone.
--     3. say what could not be seen (sight.sql)
--     4. sort the rows, the worst ones first
--
-- Judges nothing itself.

-- The row for a look or a subject that failed
CREATE FUNCTION snowflake_admin.failed(subject text, message text, relations regclass[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'error', 'check of ' || subject, concat_ws(' ', format('It failed: %s.', message),
		'So nothing that depends on it is judged.', in_the_way(relations, 'AccessExclusiveLock')),
		'Call snowflake_check() again later.'
$$;
COMMENT ON FUNCTION snowflake_admin.failed IS 'for the row about a check that failed';

-- The rows of steps 1 to 3
CREATE FUNCTION snowflake_admin.all_checks()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	makers maker[];
	fillers filler[];
	generators generator[];
	subjects text[] := ARRAY['other databases', 'width', 'integer keys', 'counting keys', 'unfinished work',
		'standbys', 'subscriptions', 'version', 'schemas'];
	subject text;
BEGIN
	BEGIN
		makers := ARRAY(SELECT m FROM id_makers() AS m);
		fillers := ARRAY(SELECT f FROM fillers(makers) AS f);
		generators := ARRAY(SELECT g FROM generators(makers, fillers) AS g);
		subjects := subjects || ARRAY['code', 'shard setting', 'shards in defaults', 'refused calls', 'shards of rows',
			'waits', 'makers', 'parameters', 'expiry',
			'position', 'clock', 'jump of the clock', 'privileges', 'partitions', 'keys of nextval()',
			'defaults of nextval()', 'read privileges', 'readable tables', 'locks'];
	EXCEPTION WHEN OTHERS THEN
		-- What is locked here is a catalog, as nothing else is waited for.
		RETURN QUERY SELECT * FROM failed('what generates IDs', SQLERRM, ARRAY(
			SELECT oid::regclass FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'));
	END;
	FOREACH subject IN ARRAY subjects LOOP
		BEGIN
			CASE subject
				WHEN 'shard setting' THEN RETURN QUERY SELECT * FROM check_shard_setting(fillers);
				WHEN 'shards in defaults' THEN RETURN QUERY SELECT * FROM check_shard_in_defaults(fillers);
				WHEN 'refused calls' THEN RETURN QUERY SELECT * FROM check_refused_calls(fillers);
				WHEN 'other databases' THEN RETURN QUERY SELECT * FROM check_other_databases();
				WHEN 'makers' THEN RETURN QUERY SELECT * FROM check_makers(fillers);
				WHEN 'parameters' THEN RETURN QUERY SELECT * FROM check_parameters(generators);
				WHEN 'expiry' THEN RETURN QUERY SELECT * FROM check_expiry(generators);
				WHEN 'position' THEN RETURN QUERY SELECT * FROM check_position(generators);
				WHEN 'clock' THEN RETURN QUERY SELECT * FROM check_clock(generators);
				WHEN 'jump of the clock' THEN RETURN QUERY SELECT * FROM check_clock_jump(generators);
				WHEN 'width' THEN RETURN QUERY SELECT * FROM check_width();
				WHEN 'integer keys' THEN RETURN QUERY SELECT * FROM check_integer_keys();
				WHEN 'counting keys' THEN RETURN QUERY SELECT * FROM check_counting_keys();
				WHEN 'unfinished work' THEN RETURN QUERY SELECT * FROM check_unfinished();
				WHEN 'waits' THEN RETURN QUERY SELECT * FROM check_waits(generators);
				WHEN 'shards of rows' THEN RETURN QUERY SELECT * FROM check_shards_of_rows(fillers);
				WHEN 'privileges' THEN RETURN QUERY SELECT * FROM check_privileges(fillers);
				WHEN 'partitions' THEN RETURN QUERY SELECT * FROM check_partitions(fillers);
				WHEN 'keys of nextval()' THEN RETURN QUERY SELECT * FROM check_nextval_keys(generators);
				WHEN 'defaults of nextval()' THEN RETURN QUERY SELECT * FROM check_nextval_defaults(generators);
				WHEN 'standbys' THEN RETURN QUERY SELECT * FROM check_standbys();
				WHEN 'subscriptions' THEN RETURN QUERY SELECT * FROM check_subscriptions();
				WHEN 'version' THEN RETURN QUERY SELECT * FROM check_version();
				WHEN 'schemas' THEN RETURN QUERY SELECT * FROM check_schemas();
				WHEN 'read privileges' THEN RETURN QUERY SELECT * FROM check_read_privileges(generators);
				WHEN 'readable tables' THEN RETURN QUERY SELECT * FROM check_readable(generators);
				WHEN 'locks' THEN RETURN QUERY SELECT * FROM check_locked(generators);
				WHEN 'code' THEN RETURN QUERY SELECT * FROM check_code(makers);
			END CASE;
		EXCEPTION WHEN OTHERS THEN
			RETURN QUERY SELECT * FROM failed(subject, SQLERRM, '{}');
		END;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.all_checks IS 'for the rows of snowflake_check(), in any order';

-- How many tables a table refers to, itself included.  From a hundred on, the order of rows
-- matters to nobody.
CREATE FUNCTION snowflake_admin.depth(tab oid) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE referred (tab) AS (
		SELECT depth.tab
		UNION SELECT confrelid FROM referred JOIN pg_constraint ON conrelid = referred.tab AND contype = 'f')
	SELECT count(*) FROM (SELECT FROM referred LIMIT 100) AS r
$$;
COMMENT ON FUNCTION snowflake_admin.depth IS 'for showing a table after those that it refers to';

-- All rows.  20 ms are no wait: they let a command that is just ending end.
CREATE FUNCTION @extschema@.snowflake_check()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp
	SET lock_timeout = '20ms' SET jit = off AS $$
BEGIN
	PERFORM keep_extension(false);
	-- A remedy that does not end with a period is a statement.  A table comes after those that it
	-- refers to.  It is found by its name without a look at the caller's privileges.
	RETURN QUERY WITH rows AS MATERIALIZED (
		SELECT DISTINCT c.severity, c.object, c.problem, c.remedy FROM all_checks() AS c
	), tables AS MATERIALIZED (
		SELECT name, depth(oid) AS depth FROM pg_class CROSS JOIN LATERAL (SELECT 'table ' || oid::regclass) AS n (name)
		WHERE relkind IN ('r', 'p', 'f') AND name IN (SELECT r.object FROM rows AS r)
	)
	SELECT r.severity, r.object, r.problem,
		CASE WHEN r.remedy ~ '[.]$' THEN r.remedy ELSE regexp_replace(r.remedy, '( -- N is [^"]*)?$', ';\1') END
	FROM rows AS r LEFT JOIN tables AS t ON t.name = r.object
	ORDER BY array_position('{error,warning,note}'::text[], r.severity), t.depth NULLS FIRST,
		r.object COLLATE "C", r.problem COLLATE "C";
END
$$;
COMMENT ON FUNCTION @extschema@.snowflake_check() IS
'what is wrong, or soon will be, with the IDs of this database, and what to do about it';
