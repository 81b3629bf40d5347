/* admin/drop_partitions.sql */

-- CALL snowflake_drop_partitions(): old partitions, each in one transaction, and old rows
-- of a former table that has become the oldest partition:
--
--     1. look which partitions are older than the interval, and never take the newest
--     2. look whether the clock that says so can be wrong
--     3. detach and drop each of them, under locks in the order of foreign keys; leave those that
--        somebody detaches, who wants to keep them
--     4. delete old rows of the one without a lower bound, in slices
--
-- With keep => true, it only detaches, and deletes nothing.
--
-- What reads or deletes rows runs as their table's owner, whose index expressions, triggers and
-- policies it runs.  So does DETACH PARTITION, which reads the rows that refer to the partition.
-- Knows nothing of the rows but their IDs.

-- The partitions below a bound, oldest first, but never the newest of all.  Those that are
-- pending detach are among them, and are not to be dropped.
CREATE FUNCTION snowflake_admin.old_partitions(parent regclass, stop bigint)
RETURNS TABLE (partition regclass, upper_id bigint, pending boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT r.partition, r.upper_id, r.pending FROM ranges(parent) AS r
	WHERE upper_id <= stop
		AND upper_id < (SELECT max(upper_id) FROM ranges(parent) WHERE NOT pending)
	ORDER BY upper_id
$$;

COMMENT ON FUNCTION snowflake_admin.old_partitions IS 'for the partitions that are to be dropped';

-- What deletes rows of a table, to be shown to the caller: a statement, or a sentence for another
-- owner.  The table's triggers would run with the rights of whoever executes a plain DELETE.
CREATE FUNCTION snowflake_admin.deletion(tab regclass, condition text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN pg_has_role(relowner, 'USAGE') THEN pasteable(command, tab) || ';'
		ELSE format('Let %s, who owns it, execute %s;', relowner::regrole, command) END
	FROM pg_class, format('DELETE FROM %s WHERE %s', tab, condition) AS command WHERE oid = tab
$$;

COMMENT ON FUNCTION snowflake_admin.deletion IS 'for showing how to delete rows';

-- The hint that says how to delete the rows of other tables that refer to IDs in a range, or NULL if
-- there are none.  With a lower bound, the IDs' rows are to be deleted, so that a foreign key with
-- an action takes care of its own.
--
-- REFERENCES lets other roles have tables that refer to this one.  Those are not looked at here,
-- because a query runs what their owners have written, even as their owners for any length of time.
CREATE FUNCTION snowflake_admin.hint_to_delete_references(parent regclass, low bigint, high bigint) RETURNS text
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
	RETURN hint;
END
$$;

COMMENT ON FUNCTION snowflake_admin.hint_to_delete_references IS 'for saying how to delete rows that refer to others';

-- Warn of such rows, if there are any.
CREATE FUNCTION snowflake_admin.warn_of_references(parent regclass, low bigint, high bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	hint text := hint_to_delete_references(parent, low, high);
BEGIN
	IF hint IS NOT NULL THEN
		RAISE WARNING USING MESSAGE = format('rows refer to old rows of table %s', parent), HINT = hint;
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_admin.warn_of_references IS 'for a dry run that sees rows which refer to old ones';

-- Raise PostgreSQL's own error about such rows once more, with that hint.
CREATE FUNCTION snowflake_admin.raise_references(parent regclass, low bigint, high bigint, error text, detail text)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE foreign_key_violation USING MESSAGE = error, DETAIL = detail,
		HINT = coalesce(hint_to_delete_references(parent, low, high), 'Delete the rows that refer to it first.');
END
$$;

COMMENT ON FUNCTION snowflake_admin.raise_references IS 'for refusing what rows refer to, with how to delete them';

-- An error unless the table's owner may read all tables that refer to it.  Before PostgreSQL
-- detaches a partition, it reads the rows that refer to it as whoever detaches it, which is the
-- table's owner here.
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

COMMENT ON FUNCTION snowflake_admin.require_detachable IS 'for referring tables that the owner may not read';

-- Say that a partition stays, because somebody detaches it, or has begun to.
CREATE FUNCTION snowflake_admin.warn_of_detach(parent regclass, partition regclass) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE WARNING USING
		MESSAGE = format('partition %s is old, but is not dropped, as somebody detaches it', partition),
		DETAIL = 'DETACH PARTITION ... CONCURRENTLY has begun. It is running, or was interrupted.',
		HINT = format('If no session runs it, ALTER TABLE %s DETACH PARTITION %s FINALIZE completes it.',
			parent, partition);
END
$$;

COMMENT ON FUNCTION snowflake_admin.warn_of_detach IS 'for a partition that stays because somebody detaches it';

-- Detach one partition, and drop it unless it is to be kept, under its locks.  Rows that refer to
-- it are looked for up to the bound "high".
--
-- DETACH PARTITION ... CONCURRENTLY cannot be run here.  Everybody is locked out, but not for long:
-- only where foreign keys refer to the rows they are looked at.
CREATE FUNCTION snowflake_admin.drop_partition(parent regclass, partition regclass, high bigint, keep boolean,
	tries integer, dry_run boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	tables regclass[] := ARRAY(
		SELECT tab FROM (SELECT tab, place FROM related_tables(parent)
			UNION ALL VALUES (parent, 0), (partition, 0)) AS involved
		ORDER BY place, tab <> parent, tab);
	detail text;
BEGIN
	PERFORM run(ARRAY[
		(SELECT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', string_agg('ONLY ' || tab::text, ', ' ORDER BY n))
			FROM unnest(tables) WITH ORDINALITY AS involved (tab, n)),
		format('ALTER TABLE %s DETACH PARTITION %s', parent, partition)]
			|| CASE WHEN NOT keep THEN ARRAY[format('DROP TABLE %s', partition)] END, tables, tries, dry_run,
		mode => NULL, owner_of => parent, by_owner => ARRAY[false, true, false]);
EXCEPTION WHEN foreign_key_violation THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	PERFORM raise_references(parent, NULL, high, SQLERRM, detail);
END
$$;

COMMENT ON FUNCTION snowflake_admin.drop_partition IS 'for detaching one partition, and dropping it, under its locks';

-- The partition without a lower bound that is not dropped as a whole.  It may be a table that was
-- there before.
CREATE FUNCTION snowflake_admin.former_table(parent regclass, stop bigint) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT partition FROM ranges(parent)
	WHERE lower_id = '-9223372036854775808' AND NOT pending
		AND partition NOT IN (SELECT old.partition FROM old_partitions(parent, stop) AS old)
$$;

COMMENT ON FUNCTION snowflake_admin.former_table IS 'for the partition of which old rows are deleted';

-- The first ID that tells its row's age.  Numbers of a serial that a former table once had count
-- as made on the layout's first day; nobody knows their age.
CREATE FUNCTION snowflake_admin.first_id(layout snowflake_layout) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT bound((date_trunc('day', bound_time(0, layout) AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC',
		layout)
$$;

COMMENT ON FUNCTION snowflake_admin.first_id IS 'for telling IDs from the numbers of a former serial';

-- A bound moved back to where its day begins, or its hour if the table's partitions are hours
CREATE FUNCTION snowflake_admin.whole_unit_before(stop bigint, parent regclass, layout snowflake_layout) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT bound(date_trunc(CASE newest_unit(parent, layout) WHEN 'hour' THEN 'hour' ELSE 'day' END,
		bound_time(stop, layout) AT TIME ZONE 'UTC') AT TIME ZONE 'UTC', layout)
$$;

COMMENT ON FUNCTION snowflake_admin.whole_unit_before IS 'for a bound that stays the same all day';

-- Say that a former table has numbers of a serial, if it has any.  They are kept until it is dropped
-- as a whole.
CREATE FUNCTION snowflake_admin.say_numbers(partition regclass, key text, first bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF (SELECT has_numbers FROM as_owner(partition,
			format('SELECT EXISTS (SELECT FROM %s WHERE %s < %s)', partition, key, first)) AS look (has_numbers boolean))
	THEN
		RAISE NOTICE '%', format('rows of %s with %s below %s stay until it is dropped, as such numbers '
			'do not tell their age', partition, key, first);
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_admin.say_numbers IS 'for rows of a former table whose age nobody knows';

-- About how many rows of a partition have IDs in a range?  The planner's statistics know how the
-- IDs are spread.
CREATE FUNCTION snowflake_admin.estimated_rows(partition regclass, key text, low bigint, high bigint) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT (plan #>> '{0,Plan,Plan Rows}')::bigint FROM as_owner(partition,
		format('EXPLAIN (FORMAT JSON) SELECT FROM %1$s WHERE %2$s >= %3$s AND %2$s < %4$s',
			partition, key, low, high)) AS look (plan json)
$$;

COMMENT ON FUNCTION snowflake_admin.estimated_rows IS 'for the progress of deleting rows';

-- Delete a former table's rows below a bound, until it can be dropped as a whole.
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
	total bigint;
	is_own pg_catalog.bool;
	detail pg_catalog.text;
	begun pg_catalog.timestamptz := pg_catalog.clock_timestamp();
	reported pg_catalog.timestamptz := begun;
BEGIN
	partition := former_table(parent, stop);
	stop := whole_unit_before(stop, parent, layout);
	first := first_id(layout);
	IF partition IS NULL OR first >= stop THEN
		RETURN;
	END IF;
	PERFORM require_all_rows(ARRAY[parent, partition]);
	PERFORM say_numbers(partition, key, first);
	RAISE NOTICE '%', deletion(parent, format('%1$s >= %2$s AND %1$s < %3$s', key, first, stop));
	IF dry_run THEN
		PERFORM warn_of_references(parent, first, stop);
		RETURN;
	END IF;
	total := estimated_rows(partition, key, first, stop);
	SELECT relowner = caller() AND current_user = session_user INTO is_own FROM pg_class WHERE oid = parent;
	LOOP
		reported := progress(format('delete old rows of %s', partition), done, total, begun, reported);
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
			PERFORM snowflake_admin.raise_references(parent, first, stop, SQLERRM, detail);
		END;
		CALL snowflake_admin.next_transaction();
		done := done + slice;
		first := last + 1;
	END LOOP;
	RAISE NOTICE 'deleted % rows of %', done, partition;
END
$$;

COMMENT ON PROCEDURE snowflake_admin.delete_old_rows IS 'for deleting old rows of a former table in slices';

-- Does a table have rows with IDs from "low" on and below "high"?
CREATE FUNCTION snowflake_admin.has_rows(tab regclass, key text, low bigint, high bigint) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT is_there FROM as_owner(tab, format('SELECT EXISTS (SELECT FROM %1$s WHERE %2$s >= %3$s AND %2$s < %4$s)',
		tab, key, low, high)) AS look (is_there boolean)
$$;

COMMENT ON FUNCTION snowflake_admin.has_rows IS 'for rows in a range of IDs';

-- An error if there is something to drop, and no row would be left, or the newest row is far older
-- than the clock.  The bound "stop" is that of old partitions, and "slices" that of old rows of a
-- former table, or NULL.
CREATE FUNCTION snowflake_admin.require_young_rows(parent regclass, key text, stop bigint, slices bigint,
	older_than interval, layout snowflake_layout) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	high bigint := (SELECT max(upper_id) FROM old_partitions(parent, stop) WHERE NOT pending);
	newest bigint;
BEGIN
	IF high IS NULL AND (slices IS NULL OR former_table(parent, stop) IS NULL) THEN
		RETURN;
	END IF;
	newest := newest_id(parent, key, layout);
	IF high IS NULL AND NOT has_rows(parent, key, first_id(layout), slices) THEN
		RETURN;
	ELSIF newest < coalesce(high, slices) THEN
		PERFORM refuse_clock(format('all rows of table %s are older than %s', parent, older_than), newest, layout,
			'snowflake_drop_partitions()');
	ELSIF newest < recent_id(newest_unit(parent, layout), layout) THEN
		PERFORM refuse_clock(format('the newest row of table %s is far older than the clock', parent), newest, layout,
			'snowflake_drop_partitions()');
	END IF;
END
$$;

COMMENT ON FUNCTION snowflake_admin.require_young_rows IS 'for a clock by which too much is old';

CREATE PROCEDURE @extschema@.snowflake_drop_partitions(parent regclass, older_than interval,
	layout snowflake_layout DEFAULT NULL, dry_run boolean DEFAULT false, tries integer DEFAULT 30,
	keep boolean DEFAULT false, trust_clock boolean DEFAULT false)
LANGUAGE plpgsql AS $$
DECLARE
	path pg_catalog.text;
	key pg_catalog.text;
	stop bigint;
	high bigint;
	old pg_catalog.record;
	is_pending pg_catalog.bool;
BEGIN
	path := pg_catalog.current_setting('search_path');
	CALL snowflake_admin.begin_command('snowflake_drop_partitions()');
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
	IF trust_clock IS NOT TRUE THEN
		PERFORM require_young_rows(parent, key, stop,
			CASE WHEN NOT keep THEN whole_unit_before(stop, parent, layout) END, older_than, layout);
	END IF;
	IF dry_run AND high IS NOT NULL THEN
		PERFORM warn_of_references(parent, NULL, high);
	END IF;
	FOR old IN SELECT partition FROM old_partitions(parent, stop) LOOP
		CALL next_transaction();
		PERFORM lock(ARRAY[parent], tries, dry_run);
		-- Another session may have dropped it meanwhile, or begun to detach it.  Nobody can now.
		SELECT pending INTO is_pending FROM old_partitions(parent, stop) AS still
		WHERE still.partition = old.partition;
		IF is_pending THEN
			PERFORM warn_of_detach(parent, old.partition);
		ELSIF FOUND THEN
			PERFORM keep_names(ARRAY[parent, old.partition]::oid[], tries);
			PERFORM drop_partition(parent, old.partition, high, keep, tries, dry_run);
		END IF;
	END LOOP;
	CALL next_transaction();
	IF NOT keep THEN
		CALL delete_old_rows(parent, key, stop, layout, path, dry_run);
	END IF;
	COMMIT;
END
$$;

COMMENT ON PROCEDURE @extschema@.snowflake_drop_partitions(regclass, interval, snowflake_layout, boolean, integer,
	boolean, boolean) IS
'drop or detach the partitions that are older than an interval, and delete such rows of one without a lower bound';
