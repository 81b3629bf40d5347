/* admin/drop_partitions.sql */

-- CALL snowflake_drop_partitions(): old partitions, each in one transaction, and old rows
-- of a former table that has become the oldest partition:
--
--     1. look which partitions are older than the interval, and never take the newest
--     2. detach and drop each of them, under locks in the order of foreign keys
--     3. delete old rows of the one without a lower bound, in slices
--
-- What reads or deletes rows runs as their table's owner, whose index expressions, triggers and
-- policies it runs.  So does DETACH PARTITION, which reads the rows that refer to the partition.

-- The partitions below a bound, oldest first, but never the newest of all
CREATE FUNCTION snowflake_admin.old_partitions(parent regclass, stop bigint)
RETURNS TABLE (partition regclass, upper_id bigint, pending boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT r.partition, r.upper_id, r.pending FROM ranges(parent) AS r
	WHERE upper_id <= stop
		AND upper_id < (SELECT max(upper_id) FROM ranges(parent))
	ORDER BY upper_id
$$;

-- What deletes rows of a table, to be shown to the caller.  The table's triggers would run with
-- the rights of whoever executes a plain DELETE.
CREATE FUNCTION snowflake_admin.deletion(tab regclass, condition text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN pg_has_role(relowner, 'USAGE') THEN pasteable(command, tab) || ';'
		ELSE format('Let %s, who owns it, execute %s;', relowner::regrole, command) END
	FROM pg_class, format('DELETE FROM %s WHERE %s', tab, condition) AS command WHERE oid = tab
$$;

-- Say which rows of other tables refer to IDs in a range, and have to be deleted first: by a
-- warning, or by the hint of an error of PostgreSQL.  With a lower bound, the IDs' rows are
-- to be deleted, so that a foreign key with an action takes care of its own.
--
-- REFERENCES lets other roles have tables that refer to this one.  Those are not looked at here,
-- because a query runs what their owners have written, even as their owners for any length of time.
CREATE FUNCTION snowflake_admin.say_references(parent regclass, low bigint, high bigint, error text,
	detail text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp SET row_security = off AS $$
DECLARE
	referring record;
	is_there boolean;
	hint text;
BEGIN
	FOR referring IN SELECT r.oid::regclass AS tab, concat_ws(' AND ',
			quote_ident(attname) || ' >= ' || low, quote_ident(attname) || ' < ' || high) AS condition
		FROM pg_constraint JOIN pg_partitioned_table ON partrelid = confrelid
		JOIN pg_class AS t ON t.oid = confrelid JOIN pg_class AS r ON r.oid = conrelid AND r.relowner = t.relowner
		JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[array_position(confkey, partattrs[0])]
		WHERE contype = 'f' AND confrelid = parent AND conparentid = 0 AND conrelid <> confrelid
			AND (low IS NULL OR confdeltype IN ('a', 'r'))
		ORDER BY conrelid::regclass::text COLLATE "C"
	LOOP
		SELECT look.is_there INTO is_there FROM as_owner(referring.tab,
			format('SELECT EXISTS (SELECT FROM %s WHERE %s)', referring.tab, referring.condition)) AS look (is_there boolean);
		IF is_there THEN
			hint := concat_ws(' ', coalesce(hint, 'Delete such rows first:'), deletion(referring.tab, referring.condition));
		END IF;
	END LOOP;
	IF error IS NOT NULL THEN
		RAISE foreign_key_violation USING MESSAGE = error, DETAIL = detail,
			HINT = coalesce(hint, 'Delete the rows that refer to it first.');
	ELSIF hint IS NOT NULL THEN
		RAISE WARNING USING MESSAGE = format('rows refer to old rows of table %s', parent), HINT = hint;
	END IF;
END
$$;

-- Before PostgreSQL detaches a partition, it reads the rows that refer to it as whoever detaches
-- it, which is the table's owner here.  For this, too, those tables must not be another role's.
CREATE FUNCTION snowflake_admin.require_detachable(parent regclass) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	other record;
BEGIN
	SELECT r.oid::regclass AS tab, conname, t.relowner::regrole AS owner INTO other
	FROM pg_constraint JOIN pg_class AS t ON t.oid = confrelid JOIN pg_class AS r ON r.oid = conrelid
	WHERE contype = 'f' AND confrelid = parent AND conparentid = 0
		AND NOT (has_schema_privilege(t.relowner, r.relnamespace, 'USAGE')
			AND (has_table_privilege(t.relowner, r.oid, 'SELECT')
				OR (SELECT bool_and(has_column_privilege(t.relowner, r.oid, col, 'SELECT')) FROM unnest(conkey) AS col)))
	ORDER BY r.oid LIMIT 1;
	IF FOUND THEN
		RAISE insufficient_privilege USING
			MESSAGE = format('role %s, which owns table %s, may not read table %s, which refers to it', other.owner,
				parent, other.tab),
			DETAIL = 'PostgreSQL looks there for rows that refer to a partition before it detaches the partition.',
			HINT = format('Grant it SELECT on table %s, or drop foreign key %I of that table.', other.tab, other.conname);
	END IF;
END
$$;

-- The oldest partition may be a table that was there before, without a lower bound.
-- Until it can be dropped as a whole, its old rows are deleted.  Numbers of a serial that
-- it once had count as made on the layout's first day; as nobody knows their age, they are
-- kept.
--
-- A commit after each slice lets others and standbys keep up.  The rows are deleted through
-- the table, for its triggers, which need the caller's search_path.  What is old is the same
-- all day, so that rows that refer to it can be deleted before another call.
--
-- A deferred trigger would run at the commit, when the caller is itself again, or could become
-- the user of the session.  So all triggers are immediate unless the owner's session calls.
CREATE PROCEDURE snowflake_admin.delete_old_rows(parent regclass, key text, stop bigint,
	layout snowflake_layout, path text, dry_run boolean)
LANGUAGE plpgsql AS $$
DECLARE
	partition pg_catalog.regclass;
	first bigint;
	last bigint;
	slice bigint;
	done bigint := 0;
	has_numbers boolean;
	plan pg_catalog.json;
	is_own pg_catalog.bool;
	is_hidden pg_catalog.bool;
	detail pg_catalog.text;
	begun pg_catalog.timestamptz := pg_catalog.clock_timestamp();
	reported pg_catalog.timestamptz := begun;
BEGIN
	SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
	SELECT r.partition INTO partition FROM ranges(parent) AS r
	WHERE lower_id = '-9223372036854775808' AND NOT pending
		AND r.partition NOT IN (
			SELECT old.partition FROM old_partitions(parent, stop) AS old);
	stop := bound(date_trunc(
		CASE newest_unit(parent, layout) WHEN 'hour' THEN 'hour' ELSE 'day' END,
		bound_time(stop, layout) AT TIME ZONE 'UTC') AT TIME ZONE 'UTC', layout);
	first := bound((date_trunc('day',
		bound_time(0, layout) AT TIME ZONE 'UTC') + interval '1 day')
		AT TIME ZONE 'UTC', layout);
	IF partition IS NULL OR first >= stop THEN
		RETURN;
	END IF;
	SELECT relowner = caller() AND current_user = session_user INTO is_own FROM pg_class WHERE oid = parent;
	SELECT look.is_hidden INTO is_hidden FROM as_owner(parent, format(
		'SELECT pg_catalog.row_security_active(%L::pg_catalog.regclass) '
		'OR pg_catalog.row_security_active(%L::pg_catalog.regclass)', parent, partition)) AS look (is_hidden boolean);
	IF is_hidden THEN
		RAISE insufficient_privilege USING
			MESSAGE = format('row-level security can hide rows of table %s from its owner', parent),
			HINT = format('ALTER TABLE ... NO FORCE ROW LEVEL SECURITY for %s and %s first.', parent, partition);
	END IF;
	SELECT look.has_numbers INTO has_numbers FROM as_owner(partition,
		format('SELECT EXISTS (SELECT FROM %s WHERE %s < %s)', partition, key, first)) AS look (has_numbers boolean);
	IF has_numbers THEN
		RAISE NOTICE '%', format('rows of %s with %s below %s stay until it is dropped, as such numbers '
			'do not tell their age', partition, key, first);
	END IF;
	RAISE NOTICE '%', deletion(parent, format('%1$s >= %2$s AND %1$s < %3$s', key, first, stop));
	IF dry_run THEN
		PERFORM say_references(parent, first, stop, NULL, NULL);
		RETURN;
	END IF;
	-- The planner's statistics know how the IDs are spread, and thus about how many rows these are.
	SELECT look.plan INTO plan FROM as_owner(partition,
		format('EXPLAIN (FORMAT JSON) SELECT FROM %1$s WHERE %2$s >= %3$s AND %2$s < %4$s',
			partition, key, first, stop)) AS look (plan json);
	LOOP
		reported := progress(format('delete old rows of %s', partition),
			done, (plan #>> '{0,Plan,Plan Rows}')::bigint, begun, reported);
		SELECT look.id INTO last FROM as_owner(partition,
			format('SELECT max(id) FROM (SELECT %1$s AS id FROM %2$s WHERE %1$s >= %3$s AND %1$s < %4$s '
				'ORDER BY %1$s LIMIT 10000) AS slice', key, partition, first, stop)) AS look (id bigint);
		EXIT WHEN last IS NULL;
		IF NOT is_own THEN
			SET CONSTRAINTS ALL IMMEDIATE;
		END IF;
		PERFORM set_config('search_path', path, true);
		BEGIN
			slice := snowflake_admin.do_as_owner(parent, pg_catalog.format(
				'DELETE FROM %1$s WHERE %2$s OPERATOR(pg_catalog.>=) %3$s AND %2$s OPERATOR(pg_catalog.<=) %4$s',
				parent, key, first, last));
		EXCEPTION WHEN foreign_key_violation THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
			PERFORM snowflake_admin.say_references(parent, first, stop, SQLERRM, detail);
		END;
		COMMIT;
		SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
		done := done + slice;
		first := last + 1;
	END LOOP;
	RAISE NOTICE 'deleted % rows of %', done, partition;
END
$$;

CREATE PROCEDURE @extschema@.snowflake_drop_partitions(parent regclass, older_than interval,
	layout snowflake_layout DEFAULT NULL, dry_run boolean DEFAULT false, tries integer DEFAULT 30)
LANGUAGE plpgsql AS $$
DECLARE
	path pg_catalog.text;
	key pg_catalog.text;
	stop bigint;
	high bigint;
	old pg_catalog.record;
	tables pg_catalog.regclass[];
	detail pg_catalog.text;
BEGIN
	path := pg_catalog.current_setting('search_path');
	SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
	CALL require_no_transaction('snowflake_drop_partitions()');
	key := require_times(parent);
	PERFORM require_owner(ARRAY[parent]);
	IF older_than IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'older_than must not be null';
	ELSIF older_than < interval '0' THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('older_than must be at least 0, not %s', older_than);
	END IF;
	layout := coalesce(layout, key_layout(parent));
	stop := bound(
		(clock_timestamp() AT TIME ZONE 'UTC' - older_than) AT TIME ZONE 'UTC', layout);
	SELECT max(upper_id) INTO high FROM old_partitions(parent, stop);
	IF high IS NOT NULL THEN
		PERFORM require_one_owner(ARRAY[parent] || ARRAY(SELECT conrelid::regclass FROM pg_constraint
			WHERE contype = 'f' AND confrelid = parent AND conparentid = 0));
		PERFORM require_detachable(parent);
	END IF;
	IF dry_run AND high IS NOT NULL THEN
		PERFORM say_references(parent, NULL, high, NULL, NULL);
	END IF;
	FOR old IN SELECT * FROM old_partitions(parent, stop) LOOP
		SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
		PERFORM lock(ARRAY[parent], tries, dry_run);
		PERFORM keep_names(ARRAY[parent, old.partition]::oid[], tries);
		-- Another session may have dropped it meanwhile.
		IF EXISTS (SELECT FROM old_partitions(parent, stop) AS still
				WHERE still.partition = old.partition) THEN
			-- DETACH PARTITION ... CONCURRENTLY cannot be run here.  Everybody is locked out, but
			-- not for long: only where foreign keys refer to the rows they are looked at.
			tables := ARRAY(
				SELECT tab FROM (SELECT tab, place FROM related_tables(parent)
					UNION ALL VALUES (parent, 0), (old.partition, 0)) AS involved
				ORDER BY place, tab <> parent, tab);
			BEGIN
				PERFORM run(ARRAY[
					(SELECT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE',
							string_agg('ONLY ' || tab::text, ', ' ORDER BY nr))
						FROM unnest(tables) WITH ORDINALITY AS involved (tab, nr)),
					format('ALTER TABLE %s DETACH PARTITION %s', parent, old.partition)
						|| CASE WHEN old.pending THEN ' FINALIZE' ELSE '' END,
					format('DROP TABLE %s', old.partition)], tables, tries, dry_run,
					mode => NULL, owner_of => parent, by_owner => ARRAY[false, true, false]);
			EXCEPTION WHEN foreign_key_violation THEN
				GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
				PERFORM say_references(parent, NULL, high, SQLERRM, detail);
			END;
		END IF;
		COMMIT;
	END LOOP;
	SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
	CALL delete_old_rows(parent, key, stop, layout, path, dry_run);
END
$$;

COMMENT ON PROCEDURE @extschema@.snowflake_drop_partitions(regclass, interval, snowflake_layout, boolean, integer) IS
'drop the partitions that are older than an interval, and delete such rows of one without a lower bound';
