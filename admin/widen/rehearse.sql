/* admin/widen/rehearse.sql */

-- How indexes and CHECK constraints read with the new columns, PostgreSQL itself must say,
-- because they may have expressions.  An empty copy of the table, whose columns are bigint,
-- gets them, and then the columns get the new names.  This is also a rehearsal, which fails
-- where an expression does not accept a bigint.
--
-- PostgreSQL plans the expressions of an index, and so may call what they call, as the owner
-- of the table.  So the copy has the same owner.
--
-- Knows nothing of steps, and changes nothing that lasts.

-- Create an index or a constraint on the copy.  Parsing a constraint may run code of the
-- table's owner, so that role adds it.
CREATE FUNCTION snowflake_admin.widen_try(tab regclass, command text, as_owner boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF as_owner THEN
		PERFORM do_as_owner(tab, command);
	ELSE
		EXECUTE command;
	END IF;
EXCEPTION WHEN insufficient_privilege THEN
	RAISE;
WHEN syntax_error_or_access_rule_violation OR invalid_text_representation THEN
	RAISE object_not_in_prerequisite_state USING
		MESSAGE = format('an index or a constraint of table %s cannot be created for type bigint', tab),
		DETAIL = SQLERRM,
		HINT = 'It uses a function, operator or operator class that does not accept type bigint. Replace it first.';
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_try IS
'for rehearsing one index or constraint, with an error that says of which table';

-- What a table's indexes and CHECK constraints will be.  The text of an index's predicate,
-- with which its definition ends, is empty if it has none.
--
-- The copy goes at the end of the transaction and not by a DROP TABLE, which an event trigger
-- that forbids to drop tables would refuse.  So the names of one call are not those of another.
CREATE FUNCTION snowflake_admin.widen_rehearse(columns widening[], tab regclass)
RETURNS TABLE (object oid, definition text, predicate text)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET client_min_messages = warning AS $$
DECLARE
	own widening[] := ARRAY(SELECT w FROM unnest(columns) AS w WHERE w.rel = tab);
	what text := format('an index of table %s', tab);
	suffix text := translate(gen_random_uuid()::text, '-', '');
	copy text := 'pg_temp.snowflake_widen_' || suffix;
	command text;
	trees text;
BEGIN
	EXECUTE format('CREATE TEMPORARY TABLE snowflake_widen_%s (LIKE %s) ON COMMIT DROP', suffix, tab);
	EXECUTE format('ALTER TABLE %s ', copy) || string_agg(
		format('DROP COLUMN IF EXISTS %I, ALTER %I TYPE bigint', wide, narrow), ', ') FROM unnest(own);
	FOR command IN
		SELECT format('ALTER TABLE %s OWNER TO %s', copy, relowner::regrole) FROM pg_class
		WHERE oid = tab AND relowner <> caller()
	LOOP
		EXECUTE command;
	END LOOP;
	FOR command IN
		SELECT format('ALTER TABLE %s ADD CONSTRAINT snowflake_widen_%s_%s %s', copy, oid, suffix,
			pg_get_constraintdef(oid)) || CASE WHEN convalidated THEN ' NOT VALID' ELSE '' END
		FROM pg_constraint WHERE oid IN (SELECT con FROM widen_checks(own))
	LOOP
		PERFORM widen_try(tab, command, true);
	END LOOP;
	-- One query reads an index's expressions and its definition, so that what is checked is what is
	-- executed: others may create indexes meanwhile.
	FOR command, trees IN
		SELECT format('CREATE %sINDEX snowflake_widen_%s_%s ON %s USING %s',
			CASE WHEN is_unique THEN 'UNIQUE ' END, index, suffix, copy, tail), index_trees(ARRAY[index])
		FROM widen_indexes(own)
	LOOP
		PERFORM require_plain_constants(tab, trees, what);
		PERFORM widen_try(tab, command, false);
	END LOOP;
	FOR command IN
		SELECT format('ALTER TABLE %s RENAME %I TO %I', copy, narrow, wide) FROM unnest(own)
	LOOP
		EXECUTE command;
	END LOOP;
	-- What is returned, the caller executes.
	PERFORM require_plain_constants(tab, index_trees(ARRAY(SELECT indexrelid FROM pg_index
		WHERE indrelid = copy::regclass)), what);
	RETURN QUERY
		SELECT split_part(relname, '_', 3)::oid, substr(def, 7 + strpos(def, ' USING ')),
			coalesce(' WHERE ' || pg_get_expr(indpred, indrelid), '')
		FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid, pg_get_indexdef(indexrelid) AS d (def)
		WHERE indrelid = copy::regclass
		UNION ALL SELECT split_part(conname, '_', 3)::oid, left(pg_get_constraintdef(oid), -length(' NOT VALID')), NULL
		FROM pg_constraint WHERE conrelid = copy::regclass AND contype = 'c';
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_rehearse IS
'for learning how indexes and CHECK constraints read with new columns, and whether they accept them';
