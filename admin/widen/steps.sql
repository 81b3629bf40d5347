/* admin/widen/steps.sql */

-- The steps of snowflake_widen() up to the swap: which are still to do, and the commands of
-- each.  All is read from the catalogs, so a call goes on where another one ended.  Executes no
-- step, and knows nothing of the swap but that it comes last.

-- Step 1: a new column and the trigger that keeps it equal, for each column of a table that
-- has none.  The trigger fires always, also in a session that replays changes of another
-- server.  The table's owner gets the function, so that he can go on with it, or undo it, if he may
-- create objects in its schema or the caller is a superuser; otherwise it stays the caller's.
-- Nobody else may execute it: his trigger would keep it from being dropped.  The names are looked
-- for again, because a step for another table may have taken one.
CREATE FUNCTION snowflake_admin.widen_add(columns widening[], tab regclass) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_agg(command ORDER BY w.num, n) FILTER (WHERE command IS NOT NULL)
	FROM unnest(columns) AS old
	JOIN pg_class ON oid = old.rel
	CROSS JOIN LATERAL widen_column(old.rel, old.num, old.place) AS w
	CROSS JOIN unnest(ARRAY[
		format('ALTER TABLE %s ADD %I bigint', w.rel, w.wide),
		format('CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS %L', w.func, widen_body(w.narrow, w.wide)),
		format('REVOKE ALL ON FUNCTION %s() FROM PUBLIC', w.func),
		CASE WHEN relowner <> caller() AND (has_schema_privilege(relowner, relnamespace, 'CREATE')
			OR (SELECT rolsuper FROM pg_roles WHERE oid = caller()))
			THEN format('ALTER FUNCTION %s() OWNER TO %s', w.func, relowner::regrole) END,
		format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION %s()', w.trig,
			w.rel, w.func),
		format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', w.rel, w.trig)]) WITH ORDINALITY AS c (command, n)
	WHERE old.rel = tab AND w.wide_num IS NULL
$$;
COMMENT ON FUNCTION snowflake_admin.widen_add IS 'for adding new columns to a table';

-- Step 2: the command that would fill a table's new columns at once.  It is only shown, and
-- widen_fill() does the same in batches.
CREATE FUNCTION snowflake_admin.widen_fill_command(columns widening[], tab regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('UPDATE %s SET %s WHERE %s', tab, string_agg(format('%I = %I', wide, narrow), ', ' ORDER BY num),
		string_agg(format('%I IS DISTINCT FROM %I', wide, narrow), ' OR ' ORDER BY num))
	FROM unnest(columns) WHERE rel = tab
$$;
COMMENT ON FUNCTION snowflake_admin.widen_fill_command IS 'for showing how the new columns of a table are filled';

-- Step 3: a CHECK that both columns agree, whose validation is the proof for all rows, and
-- all CHECKs of the old columns.  It also says in the catalogs that the table has been filled.
CREATE FUNCTION snowflake_admin.widen_add_checks(columns widening[], tab regclass) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER TABLE %s %s', tab, string_agg(format('ADD CONSTRAINT %I %s NOT VALID', fresh, definition), ', '))
	FROM (
		SELECT c.fresh, CASE WHEN con IS NOT NULL THEN r.definition ELSE format(CASE WHEN attnotnull
			THEN 'CHECK (%1$I IS NOT NULL AND %1$I = %2$I)' ELSE 'CHECK (%1$I IS NOT DISTINCT FROM %2$I)' END,
			wide, narrow) END AS definition
		FROM widen_checks(columns) AS c
		LEFT JOIN widen_rehearse(columns, tab) AS r ON object = con
		LEFT JOIN unnest(columns) AS w ON w.rel = tab AND wide = c.fresh
		LEFT JOIN pg_attribute ON attrelid = tab AND attnum = num
		WHERE c.rel = tab AND c.fresh_validated IS NULL) AS c
$$;
COMMENT ON FUNCTION snowflake_admin.widen_add_checks IS 'for adding the CHECK constraints of new columns';

-- Step 3, second part: the command that validates these CHECKs, but for those whose old one is NOT
-- VALID
CREATE FUNCTION snowflake_admin.widen_validate_checks(columns widening[], tab regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER TABLE %s %s', tab, string_agg(format('VALIDATE CONSTRAINT %I', fresh), ', '))
	FROM widen_checks(columns) WHERE rel = tab AND validated AND fresh_validated IS NOT TRUE
$$;
COMMENT ON FUNCTION snowflake_admin.widen_validate_checks IS 'for proving the CHECK constraints of new columns';

-- A process that is creating an index.  Of a session of another role, we know no more than that
-- it creates some index, and has the lock for it.
CREATE FUNCTION snowflake_admin.widen_builder(tab regclass, index oid) RETURNS integer
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT p.pid FROM pg_stat_progress_create_index AS p
	WHERE p.index_relid = index OR p.index_relid IS NULL AND index IS NOT NULL
		AND EXISTS (SELECT FROM pg_locks AS l WHERE l.pid = p.pid AND l.relation = tab AND l.granted
			AND l.mode = 'ShareUpdateExclusiveLock')
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_admin.widen_builder IS 'for leaving alone an index that somebody is creating';

-- Step 4: the indexes that a table's new columns lack, each with the commands that create it
CREATE FUNCTION snowflake_admin.widen_create_indexes(columns widening[], tab regclass)
RETURNS TABLE (index oid, by_caller boolean, builder integer, commands text[])
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT i.index, i.by_caller, widen_builder(tab, fresh_oid), array_remove(ARRAY[
		CASE WHEN fresh_oid IS NOT NULL THEN format('DROP INDEX CONCURRENTLY %s.%I', schema, fresh) END,
		format('CREATE %sINDEX %s%I ON %s USING %s%s%s', CASE WHEN is_unique THEN 'UNIQUE ' END,
			CASE WHEN by_caller THEN 'CONCURRENTLY ' END, fresh, tab,
			left(definition, length(definition) - length(predicate)),
			' TABLESPACE ' || quote_ident(spcname::text), predicate)], NULL)
	FROM widen_indexes(columns) AS i
	JOIN widen_rehearse(columns, tab) ON object = i.index
	JOIN pg_class ON oid = i.index
	LEFT JOIN pg_tablespace ON pg_tablespace.oid = reltablespace
	WHERE i.rel = tab AND fresh_valid IS NOT TRUE
$$;
COMMENT ON FUNCTION snowflake_admin.widen_create_indexes IS
'for creating the indexes of new columns, or asking for it';

-- What is still to do, in its order.  An object is an index or a foreign key.
CREATE FUNCTION snowflake_admin.widen_todo(columns widening[])
RETURNS TABLE (kind text, tab regclass, object oid)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
BEGIN
	RETURN QUERY SELECT 'add', rel, NULL::oid FROM unnest(columns)
		WHERE wide_num IS NULL GROUP BY rel, place ORDER BY place, rel;
	RETURN QUERY SELECT 'fill', rel, NULL::oid FROM unnest(columns)
		WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = rel AND contypid = 0 AND conname = wide)
		GROUP BY rel, place ORDER BY place, rel;
	RETURN QUERY SELECT 'check', rel, NULL::oid FROM widen_checks(columns)
		WHERE fresh_validated IS NULL GROUP BY rel, place ORDER BY place, rel;
	RETURN QUERY SELECT 'validate', rel, NULL::oid FROM widen_checks(columns)
		WHERE validated AND fresh_validated IS NOT TRUE GROUP BY rel, place ORDER BY place, rel;
	RETURN QUERY SELECT CASE WHEN by_caller THEN 'concurrently' ELSE 'index' END, rel, index
		FROM widen_indexes(columns) WHERE fresh_valid IS NOT TRUE ORDER BY by_caller, rel, index;
	-- Foreign keys, for which the parents' new columns need their indexes
	RETURN QUERY SELECT 'key', child, con FROM widen_keys(columns)
		WHERE fresh_validated IS NULL ORDER BY place, con;
	RETURN QUERY SELECT 'validate key', child, con FROM widen_keys(columns)
		WHERE validated AND fresh_validated IS NOT TRUE ORDER BY place, con;
	RETURN QUERY SELECT 'swap', NULL::regclass, NULL::oid WHERE columns <> '{}';
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_todo IS 'for going on where another call ended';

-- The steps that come next: of one kind, for all tables that lack it
CREATE FUNCTION snowflake_admin.widen_next(columns widening[])
RETURNS TABLE (kind text, tab regclass, object oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH todo AS MATERIALIZED (
		SELECT * FROM widen_todo(columns) WITH ORDINALITY AS t (kind, tab, object, n))
	SELECT kind, tab, object FROM todo
	WHERE kind = (SELECT kind FROM todo ORDER BY n LIMIT 1) ORDER BY n
$$;
COMMENT ON FUNCTION snowflake_admin.widen_next IS 'for doing a step for all tables before the next one';

-- The commands of a step, the tables whose locks in which mode they need, parents first, and
-- the table whose owner executes them, if it is not the caller.  What this costs does not depend
-- on how many tables there are.  Step 5, the foreign keys, is composed here.
CREATE FUNCTION snowflake_admin.widen_step(columns widening[], kind text, tab regclass, object oid,
	OUT commands text[], OUT relations regclass[], OUT mode text, OUT owner_of regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
DECLARE
	own widening[] := ARRAY(SELECT w FROM unnest(columns) AS w WHERE rel = tab);
	key record;
BEGIN
	relations := ARRAY[tab];
	CASE kind
		WHEN 'add' THEN
			commands := widen_add(own, tab);
			mode := 'ACCESS EXCLUSIVE';
		WHEN 'fill' THEN
			commands := ARRAY[widen_fill_command(own, tab)];
			owner_of := tab;
		WHEN 'check' THEN
			commands := ARRAY[widen_add_checks(own, tab)];
			mode := 'ACCESS EXCLUSIVE';
			owner_of := tab;
		WHEN 'validate' THEN
			commands := ARRAY[widen_validate_checks(own, tab)];
			mode := 'SHARE UPDATE EXCLUSIVE';
			owner_of := tab;
		WHEN 'index', 'concurrently' THEN
			-- None if somebody has created it, or if the table has grown too large.
			commands := coalesce((SELECT c.commands FROM widen_create_indexes(own, tab) AS c
				WHERE c.index = object AND (kind = 'concurrently' OR NOT c.by_caller)), '{}');
			mode := 'SHARE';
		WHEN 'key', 'validate key' THEN
			SELECT confrelid::regclass AS parent, n.name AS fresh INTO key
			FROM pg_constraint, widen_new_constraint(oid) AS n WHERE oid = object;
			IF NOT FOUND THEN
				commands := '{}';	-- Somebody has dropped it.
			ELSIF kind = 'key' THEN
				commands := ARRAY[format('ALTER TABLE %s ADD CONSTRAINT %I %s NOT VALID', tab, key.fresh,
					widen_key_definition(columns, object))];
				relations := CASE WHEN key.parent = tab THEN ARRAY[tab] ELSE ARRAY[key.parent, tab] END;
				mode := 'SHARE ROW EXCLUSIVE';
			ELSE
				commands := ARRAY[format('ALTER TABLE %s VALIDATE CONSTRAINT %I', tab, key.fresh)];
				mode := 'SHARE UPDATE EXCLUSIVE';
				owner_of := tab;
			END IF;
	END CASE;
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_step IS 'for composing a step';
