/* admin/drop_partitions.sql */

-- CALL snowflake_drop_partitions(): old partitions, each detached in one transaction, and old rows
-- of a former table that has become the oldest partition:
--
--     1. look which partitions are older than the interval, and never take the newest
--     2. look whether the clock that says so can be wrong
--     3. for each of them, do to the rows that refer to it what their foreign keys do when rows are
--        deleted, in slices
--     4. detach and drop it, under locks in the order of foreign keys; leave those that somebody
--        detaches, who wants to keep them, and those on which views and such depend, which is an error
--        when all others are dropped
--     5. delete old rows of the one without a lower bound, in slices
--
-- With keep => true, it only detaches, and changes no row.
--
-- What reads or deletes rows runs as their table's owner, whose index expressions, triggers and
-- policies it runs.  So does DETACH PARTITION, which reads the rows that refer to the partition.
-- Knows nothing of the rows but their IDs.

-- The partitions below a bound, but never the newest of all.  Those that are pending detach are among
-- them, and are not to be dropped.  The body is BEGIN ATOMIC, as that of ranges(), so a query about one
-- of them does not read the bounds of all.
CREATE FUNCTION snowflake_admin.old_partitions(parent regclass, stop bigint)
RETURNS TABLE (partition regclass, lower_id bigint, upper_id bigint, pending boolean)
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT old.* FROM snowflake_admin.ranges(parent) AS old
	WHERE old.upper_id <= stop
		AND EXISTS (SELECT FROM snowflake_admin.ranges(parent) AS newer
			WHERE newer.upper_id > old.upper_id AND NOT newer.pending);
END;
COMMENT ON FUNCTION snowflake_admin.old_partitions IS 'for the partitions that are old';

-- A condition: the values of a column from "low" on, if it is not NULL, and below "high".  With
-- 'OPERATOR(pg_catalog.%s)' it means the same with any search_path.
CREATE FUNCTION snowflake_admin.between_ids(col text, low bigint, high bigint, operator text DEFAULT '%s') RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT concat_ws(' AND ', col || format(' ' || operator || ' ', '>=') || low,
		col || format(' ' || operator || ' ', '<') || high)
$$;
COMMENT ON FUNCTION snowflake_admin.between_ids IS 'for rows in a range of IDs';

-- Does a table have rows for which a condition is true?  An error if policies hide rows from its owner.
CREATE FUNCTION snowflake_admin.has_rows(tab regclass, condition text) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp SET row_security = off AS $$
	SELECT is_there FROM as_owner(tab, format('SELECT EXISTS (SELECT FROM %s WHERE %s)', tab, condition))
		AS look (is_there boolean)
$$;
COMMENT ON FUNCTION snowflake_admin.has_rows IS 'for whether a table has certain rows';

-- The foreign keys that refer to a partitioned table.  For each, the column that refers to the
-- partition key, what foreign keys do when a row is deleted, the command that takes rows out of
-- the way, and a condition that ends it: rows refer to nothing if another column is NULL.
--
-- REFERENCES lets other roles have tables that refer to this one.  Those are not looked at, because
-- a query would run what their owners have written.  Even run as their owner, it could last for ever.
-- While there is a partition to drop, require_one_owner() refuses the command because of them.  When
-- only rows are deleted, PostgreSQL does what their foreign keys say.
CREATE FUNCTION snowflake_admin.references_to(parent regclass)
RETURNS TABLE (tab regclass, conname name, action "char", col text, command text, refers text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT r.oid::regclass, c.conname, c.confdeltype, quote_ident(key.attname),
		CASE WHEN c.confdeltype IN ('n', 'd') THEN format('UPDATE %s SET %s', r.oid::regclass, (
			SELECT string_agg(format('%I = %s', attname, CASE c.confdeltype WHEN 'n' THEN 'NULL' ELSE 'DEFAULT' END), ', '
				ORDER BY attnum)
			FROM pg_attribute WHERE attrelid = r.oid AND attnum = ANY (coalesce(c.confdelsetcols, c.conkey))))
		ELSE format('DELETE FROM %s', r.oid::regclass) END,
		(SELECT coalesce(string_agg(format(' AND %I IS NOT NULL', attname), '' ORDER BY attnum), '')
			FROM pg_attribute WHERE attrelid = r.oid AND attnum = ANY (c.conkey) AND attnum <> key.attnum)
	FROM pg_constraint AS c JOIN pg_partitioned_table ON partrelid = confrelid
	JOIN pg_class AS t ON t.oid = confrelid JOIN pg_class AS r ON r.oid = conrelid AND r.relowner = t.relowner
	JOIN pg_attribute AS key ON attrelid = conrelid AND attnum = conkey[array_position(confkey, partattrs[0])]
	WHERE contype = 'f' AND confrelid = parent AND conparentid = 0
	ORDER BY conrelid::regclass::text COLLATE "C", c.conname
$$;
COMMENT ON FUNCTION snowflake_admin.references_to IS 'for rows that refer to those of old partitions';

-- The hint that says what to do first with rows that refer to IDs in a range, or NULL if there are
-- none.  Without "all_actions", it leaves out foreign keys with an action ON DELETE, which this command
-- carries out.  With a lower bound, it is about rows that are to be deleted from the table, and
-- leaves out those of the same table that refer to them.
CREATE FUNCTION snowflake_admin.hint_to_remove_references(parent regclass, low bigint, high bigint,
	all_actions boolean) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT concat_ws(' ', 'Delete such rows first: ' || string_agg(statement, ' ') FILTER (WHERE action NOT IN ('n', 'd')),
		'Update such rows first: ' || string_agg(statement, ' ') FILTER (WHERE action IN ('n', 'd')))
	FROM references_to(parent), LATERAL (SELECT between_ids(col, low, high) || refers) AS old (condition),
		LATERAL (SELECT pasteable(command || ' WHERE ' || condition, tab) || ';') AS shown (statement)
	WHERE (all_actions OR action IN ('a', 'r')) AND (low IS NULL OR tab <> parent) AND has_rows(tab, condition)
	HAVING count(*) > 0
$$;
COMMENT ON FUNCTION snowflake_admin.hint_to_remove_references IS 'for saying what to do with rows that refer to others';

-- Warn of such rows, if there are any.
CREATE FUNCTION snowflake_admin.warn_of_references(parent regclass, low bigint, high bigint, all_actions boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	hint text := hint_to_remove_references(parent, low, high, all_actions);
BEGIN
	IF hint IS NOT NULL THEN
		RAISE WARNING USING MESSAGE = format('rows refer to old rows of table %s', parent), HINT = hint;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.warn_of_references IS 'for a dry run that sees rows which refer to old ones';

-- Raise an error about such rows, PostgreSQL's own or one in its words, with that hint.
CREATE FUNCTION snowflake_admin.raise_references(parent regclass, low bigint, high bigint, all_actions boolean,
	error text, detail text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE foreign_key_violation USING MESSAGE = error, DETAIL = detail,
		HINT = coalesce(hint_to_remove_references(parent, low, high, all_actions),
			'Delete the rows that refer to it first.');
END
$$;
COMMENT ON FUNCTION snowflake_admin.raise_references IS 'for refusing what rows refer to, with what to do first';

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
			DETAIL = 'Before PostgreSQL detaches a partition, it looks there for rows that refer to the partition.',
			HINT = format('Grant it SELECT on table %s, or drop foreign key %I of that table.', other.tab, other.conname);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_detachable IS 'for referring tables that the owner may not read';

-- Warn of large tables that refer to this one without an index, which PostgreSQL reads from end to end for
-- each partition that it detaches.
CREATE FUNCTION snowflake_admin.warn_of_scans(parent regclass) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	referring record;
BEGIN
	FOR referring IN SELECT tab, col FROM references_to(parent)
		JOIN pg_attribute ON attrelid = tab AND quote_ident(attname) = col
		WHERE pg_table_size(tab) > 8 * 1024 * 1024 AND NOT EXISTS (
			SELECT FROM pg_index JOIN pg_class AS i ON i.oid = indexrelid JOIN pg_am AS m ON m.oid = i.relam
			WHERE indrelid = tab AND indkey[0] = attnum AND indisvalid AND indpred IS NULL AND amname = 'btree')
	LOOP
		RAISE WARNING USING
			MESSAGE = format('table %s, which refers to table %s, has no index that begins with column %s', referring.tab,
				parent, referring.col),
			DETAIL = 'Whenever a partition is detached, all other sessions wait until PostgreSQL has read the whole table.',
			HINT = format('CREATE INDEX CONCURRENTLY ON %s (%s);', referring.tab, referring.col);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.warn_of_scans IS 'for the index that keeps the locks of a detach short';

-- Say that a partition stays, because somebody detaches it, or has begun to.
CREATE FUNCTION snowflake_admin.warn_of_detach(parent regclass, partition regclass) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE WARNING USING
		MESSAGE = format('partition %s is old, but is not dropped, because its detach is pending', partition),
		DETAIL = 'DETACH PARTITION ... CONCURRENTLY is running, or was interrupted.',
		HINT = format('If no session runs it, ALTER TABLE %s DETACH PARTITION %s FINALIZE completes it.',
			parent, partition);
END
$$;
COMMENT ON FUNCTION snowflake_admin.warn_of_detach IS 'for a partition that stays because somebody detaches it';

-- What depends on a partition, so that DROP TABLE would fail, or NULL.  Foreign keys of the whole table do
-- not count, because they leave a partition that is detached.
CREATE FUNCTION snowflake_admin.dependents(partition regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE dropped (class, object) AS (
		SELECT 'pg_class'::regclass::oid, partition::oid
		UNION SELECT classid, objid FROM dropped JOIN pg_depend ON refclassid = class AND refobjid = object
		WHERE deptype IN ('a', 'i', 'P', 'S')
	), dependent AS (
		SELECT DISTINCT place(classid, objid) AS named
		FROM dropped JOIN pg_depend ON refclassid = class AND refobjid = object
		WHERE deptype = 'n' AND (classid, objid) NOT IN (SELECT * FROM dropped)
			AND NOT (classid = 'pg_constraint'::regclass
				AND EXISTS (SELECT FROM pg_constraint WHERE oid = objid AND conparentid <> 0))
	)
	SELECT string_agg(named, ', ' ORDER BY named COLLATE "C")
		|| CASE WHEN (SELECT count(*) FROM dependent) > 5 THEN ' and others' ELSE '' END
	FROM (SELECT * FROM dependent ORDER BY named COLLATE "C" LIMIT 5) AS first_ones
$$;
COMMENT ON FUNCTION snowflake_admin.dependents IS 'for what keeps a partition from being dropped';

-- Say that a partition stays, because something depends on it.  Others may have named that, over several
-- lines, of which one could look like a hint.
CREATE FUNCTION snowflake_admin.warn_of_dependents(parent regclass, partition regclass, dependents text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE WARNING USING
		MESSAGE = format('partition %s is old, but is not dropped, because other objects depend on it', partition),
		DETAIL = regexp_replace(dependents, '\s+', ' ', 'g'),
		HINT = format('Drop them first, or with it: ALTER TABLE %1$s DETACH PARTITION %2$s; DROP TABLE %2$s CASCADE;',
			parent, partition);
END
$$;
COMMENT ON FUNCTION snowflake_admin.warn_of_dependents IS 'for a partition that stays because something depends on it';

-- About how many rows of a table have values of a column in a range?  The planner's statistics
-- know how they are spread.
CREATE FUNCTION snowflake_admin.estimated_rows(tab regclass, condition text) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT (plan #>> '{0,Plan,Plan Rows}')::bigint
	FROM as_owner(tab, format('EXPLAIN (FORMAT JSON) SELECT FROM %s WHERE %s', tab, condition)) AS look (plan json)
$$;
COMMENT ON FUNCTION snowflake_admin.estimated_rows IS 'for the progress of changing rows';

-- Delete or update rows of a table, as its owner, by a command in which all names are qualified.
-- Returns how many.  The table's triggers need the caller's search_path.  Those that are deferred
-- would run at COMMIT, as the caller, and could RESET ROLE to the user of the session.
CREATE FUNCTION snowflake_admin.change_rows(tab regclass, command text, path text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	SET CONSTRAINTS ALL IMMEDIATE;
	PERFORM set_config('search_path', path, true);
	RETURN snowflake_admin.do_as_owner(tab, command);
END
$$;
COMMENT ON FUNCTION snowflake_admin.change_rows IS 'for changing rows with triggers as their owner';

-- Delete or update the rows of a table for which a column has values in a range, as its owner.  They
-- are found in "place", the table or a partition of it, and changed through the table.  The command
-- ends with the condition "refers", which begins with AND, or is ''.  A commit after each slice lets
-- others and standbys keep up.
CREATE PROCEDURE snowflake_admin.change_in_slices(tab regclass, command text, place regclass, col text, low bigint,
	high bigint, refers text, path text, dry_run boolean)
LANGUAGE plpgsql AS $$
DECLARE
	condition pg_catalog.text := snowflake_admin.between_ids(col, low, high) || refers;
	verb pg_catalog.text := pg_catalog.lower(pg_catalog.split_part(command, ' ', 1));
	first bigint := low;
	last bigint;
	done bigint := 0;
	total bigint;
	detail pg_catalog.text;
	begun pg_catalog.timestamptz := pg_catalog.clock_timestamp();
	reported pg_catalog.timestamptz := begun;
BEGIN
	IF NOT has_rows(place, condition) THEN
		RETURN;
	END IF;
	RAISE NOTICE '%;', pasteable(format('%s WHERE %s', command, condition), tab);
	IF dry_run THEN
		RETURN;
	END IF;
	total := estimated_rows(place, condition);
	LOOP
		reported := progress(format('%s old rows of %s', verb, place), done, total, begun, reported);
		SELECT look.id INTO last FROM as_owner(place,
			format('SELECT max(id) FROM (SELECT %1$s AS id FROM %2$s WHERE %3$s%4$s ORDER BY %1$s LIMIT 10000) AS slice',
				col, place, between_ids(col, first, high), refers)) AS look (id bigint);
		EXIT WHEN last IS NULL;
		BEGIN
			done := done + change_rows(tab, format('%s WHERE %s%s', command,
				between_ids(col, first, last + 1, 'OPERATOR(pg_catalog.%s)'), refers), path);
		EXCEPTION WHEN foreign_key_violation THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
			PERFORM raise_references(tab, first, high, false, SQLERRM, detail);
		END;
		CALL next_transaction();
		first := last + 1;
	END LOOP;
	RAISE NOTICE '%', format('%sd %s rows of %s', verb, done, place);
END
$$;
COMMENT ON PROCEDURE snowflake_admin.change_in_slices IS 'for deleting or updating many rows without long transactions';

-- Do to the rows that refer to a partition what their foreign keys do when its rows are deleted, if
-- that is anything.
CREATE PROCEDURE snowflake_admin.remove_references(parent regclass, low bigint, high bigint, path text,
	dry_run boolean)
LANGUAGE plpgsql AS $$
DECLARE
	referring pg_catalog.record;
BEGIN
	FOR referring IN SELECT * FROM references_to(parent) WHERE action IN ('c', 'n', 'd') LOOP
		CALL change_in_slices(referring.tab, referring.command, referring.tab, referring.col, low, high, referring.refers,
			path, dry_run);
	END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake_admin.remove_references IS 'for ON DELETE CASCADE, SET NULL and SET DEFAULT';

-- An error if rows refer to a partition, other than those of which remove_references() takes care.
-- With "keep", that takes care of none.  PostgreSQL would see this, too, but while everybody waits.
-- The hint is about all that refers to IDs below the bound "high".
CREATE FUNCTION snowflake_admin.require_no_references(parent regclass, partition regclass, low bigint, upper_id bigint,
	high bigint, keep boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	referring record;
BEGIN
	SELECT tab, conname INTO referring FROM references_to(parent)
	WHERE (keep OR action IN ('a', 'r')) AND has_rows(tab, between_ids(col, low, upper_id) || refers) LIMIT 1;
	IF FOUND THEN
		PERFORM raise_references(parent, NULL, high, keep,
			format('removing partition "%s" violates foreign key constraint "%s"', relname, referring.conname),
			format('Rows of table %s refer to it.', referring.tab))
		FROM pg_class WHERE oid = partition;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_no_references IS 'for refusing a partition to which rows refer';

-- Detach one partition, and drop it unless it is to be kept, under its locks.  If rows have come to
-- refer to it since remove_references(), a second attempt does to them, under the locks, what their
-- foreign keys do.
--
-- DETACH PARTITION ... CONCURRENTLY cannot be run here.  Everybody is locked out, but with the indexes
-- of which warn_of_scans() warns not for long: the only rows that PostgreSQL looks for are those that
-- still refer to the partition.  It does so even where it could know that there are none.
CREATE FUNCTION snowflake_admin.drop_partition(parent regclass, partition regclass, low bigint, upper_id bigint,
	high bigint, keep boolean, path text, tries integer, dry_run boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	tables regclass[] := ARRAY(
		SELECT tab FROM (SELECT tab, place FROM related_tables(parent)
			UNION ALL VALUES (parent, 0), (partition, 0)) AS involved
		ORDER BY place, tab <> parent, tab);
	lock_all text := (
		SELECT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', string_agg('ONLY ' || tab::text, ', ' ORDER BY n))
		FROM unnest(tables) WITH ORDINALITY AS involved (tab, n));
	late text[] := '{}';
	error text;
	detail text;
BEGIN
	FOR attempt IN 1 .. 2 LOOP
		BEGIN
			PERFORM run(lock_all || late || format('ALTER TABLE %s DETACH PARTITION %s', parent, partition)
					|| CASE WHEN NOT keep THEN ARRAY[format('DROP TABLE %s', partition)] END, tables, tries, dry_run,
				mode => NULL, owner_of => parent, by_owner => array_fill(false, ARRAY[1 + cardinality(late)]) || true || false);
			RETURN;
		EXCEPTION WHEN foreign_key_violation THEN
			GET STACKED DIAGNOSTICS error = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
		END;
		late := ARRAY(SELECT format('SELECT snowflake_admin.change_rows(%L::regclass, %L::text, %L::text)', tab,
				format('%s WHERE %s%s', command, between_ids(col, low, upper_id, 'OPERATOR(pg_catalog.%s)'), refers), path)
			FROM references_to(parent) WHERE action IN ('c', 'n', 'd') AND NOT keep);
		EXIT WHEN late = '{}';
	END LOOP;
	PERFORM raise_references(parent, NULL, high, true, error, detail);
END
$$;
COMMENT ON FUNCTION snowflake_admin.drop_partition IS 'for detaching one partition, and dropping it, under its locks';

-- Drop or detach one partition, with what refers to it.  Another session may drop it meanwhile, or
-- begin to detach it, until the first lock is there.  Counts a partition that stays because something
-- depends on it, for which no other partition has to wait: whoever may use a schema can make such objects.
CREATE PROCEDURE snowflake_admin.drop_old_partition(parent regclass, partition regclass, stop bigint, high bigint,
	keep boolean, path text, tries integer, dry_run boolean, INOUT stayed integer)
LANGUAGE plpgsql AS $$
DECLARE
	old pg_catalog.record;
	low bigint;
	dependents pg_catalog.text;
BEGIN
	CALL next_transaction();
	SELECT * INTO old FROM old_partitions(parent, stop) AS o WHERE o.partition = drop_old_partition.partition;
	low := nullif(old.lower_id, '-9223372036854775808');
	IF FOUND AND NOT old.pending AND NOT keep THEN
		dependents := dependents(partition);
		IF dependents IS NOT NULL THEN
			PERFORM warn_of_dependents(parent, partition, format('These are: %s.', dependents));
			stayed := stayed + 1;
			RETURN;
		END IF;
		CALL remove_references(parent, low, old.upper_id, path, dry_run);
		CALL next_transaction();
	END IF;
	PERFORM lock(ARRAY[parent], tries, dry_run);
	SELECT * INTO old FROM old_partitions(parent, stop) AS o WHERE o.partition = drop_old_partition.partition;
	IF NOT FOUND THEN
		RETURN;
	ELSIF old.pending THEN
		PERFORM warn_of_detach(parent, partition);
		RETURN;
	END IF;
	PERFORM keep_names(ARRAY[parent, partition]::oid[], tries);
	IF NOT dry_run THEN
		PERFORM require_no_references(parent, partition, low, old.upper_id, high, keep);
	END IF;
	BEGIN
		PERFORM drop_partition(parent, partition, low, old.upper_id, high, keep, path, tries, dry_run);
	EXCEPTION WHEN dependent_objects_still_exist THEN
		GET STACKED DIAGNOSTICS dependents = PG_EXCEPTION_DETAIL;
		PERFORM warn_of_dependents(parent, partition, dependents);
		stayed := stayed + 1;
	END;
END
$$;
COMMENT ON PROCEDURE snowflake_admin.drop_old_partition IS 'for one partition with what refers to it';

-- The partition without a lower bound that is not dropped as a whole.  It may be a table that was
-- there before.
CREATE FUNCTION snowflake_admin.former_table(parent regclass, stop bigint) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT partition FROM ranges(parent)
	WHERE lower_id = '-9223372036854775808' AND NOT pending
		AND partition NOT IN (SELECT old.partition FROM old_partitions(parent, stop) AS old)
$$;
COMMENT ON FUNCTION snowflake_admin.former_table IS 'for the partition of which old rows are deleted';

-- The first ID that tells its row's age: that of the day, in UTC, after the one of the layout's
-- epoch.  Smaller ones count as values of a serial that a former table once had; nobody knows their
-- age.  Because rows are deleted by this bound, it depends on the layout, as least_id() does not.
CREATE FUNCTION snowflake_admin.first_id(layout snowflake_layout) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT bound((date_trunc('day', bound_time(0, layout) AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC',
		layout)
$$;
COMMENT ON FUNCTION snowflake_admin.first_id IS 'for keeping rows with the values of a former serial';

-- A bound moved back to where its day begins, or its hour if the table's partitions are hours
CREATE FUNCTION snowflake_admin.whole_unit_before(stop bigint, parent regclass, layout snowflake_layout) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT bound(date_trunc(CASE newest_unit(parent, layout) WHEN 'hour' THEN 'hour' ELSE 'day' END,
		bound_time(stop, layout) AT TIME ZONE 'UTC') AT TIME ZONE 'UTC', layout)
$$;
COMMENT ON FUNCTION snowflake_admin.whole_unit_before IS 'for a bound that stays the same for a whole unit';

-- Say that a former table has values of a serial, if it has any.  They are kept until it is dropped
-- as a whole.
CREATE FUNCTION snowflake_admin.say_numbers(partition regclass, key text, first bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF (SELECT has_numbers FROM as_owner(partition,
			format('SELECT EXISTS (SELECT FROM %s WHERE %s < %s)', partition, key, first)) AS look (has_numbers boolean))
	THEN
		RAISE NOTICE '%', format('rows of %s with %s below %s stay until it is dropped, because such '
			'values do not contain a time', partition, key, first);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.say_numbers IS 'for rows of a former table whose age nobody knows';

-- Delete a former table's rows below a bound in slices, until it can be dropped as a whole.  The bound
-- is the same for a whole day or hour, so that rows that refer to them can be deleted before another call.
CREATE PROCEDURE snowflake_admin.delete_old_rows(parent regclass, key text, stop bigint,
	layout snowflake_layout, path text, dry_run boolean)
LANGUAGE plpgsql AS $$
DECLARE
	partition pg_catalog.regclass;
	first bigint;
BEGIN
	partition := former_table(parent, stop);
	stop := whole_unit_before(stop, parent, layout);
	first := first_id(layout);
	IF partition IS NULL OR first >= stop THEN
		RETURN;
	END IF;
	PERFORM require_all_rows(ARRAY[parent, partition]);
	PERFORM say_numbers(partition, key, first);
	IF has_rows(partition, between_ids(key, first, stop)) THEN
		RAISE NOTICE USING
			MESSAGE = format('partition %s is not dropped, but its old rows are deleted', partition),
			DETAIL = 'A publication sends these deletes to its subscribers.';
	END IF;
	IF dry_run THEN
		PERFORM warn_of_references(parent, first, stop, false);
	END IF;
	CALL change_in_slices(parent, format('DELETE FROM %s', parent), partition, key, first, stop, '', path, dry_run);
END
$$;
COMMENT ON PROCEDURE snowflake_admin.delete_old_rows IS 'for old rows of a former table';

-- An error if there is something to drop, and no row would be left, or the newest row is far older
-- than the clock.  A table without rows is no error.  The bound "stop" is that of old partitions, and
-- "rows_before" that of old rows of a former table, or NULL.
CREATE FUNCTION snowflake_admin.require_young_rows(parent regclass, key text, stop bigint, rows_before bigint,
	older_than interval, layout snowflake_layout) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	high bigint := (SELECT max(upper_id) FROM old_partitions(parent, stop) WHERE NOT pending);
	newest bigint;
BEGIN
	IF high IS NULL AND (rows_before IS NULL OR former_table(parent, stop) IS NULL) THEN
		RETURN;
	END IF;
	newest := newest_id(parent, key, layout);
	IF high IS NULL AND NOT has_rows(parent, between_ids(key, first_id(layout), rows_before)) THEN
		RETURN;
	ELSIF newest < coalesce(high, rows_before) THEN
		PERFORM refuse_clock(format('all rows of table %s are older than %s', parent, older_than), newest, layout,
			'snowflake_drop_partitions()');
	ELSIF newest < recent_id(newest_unit(parent, layout), layout) THEN
		PERFORM refuse_clock(format('the newest row of table %s is far older than the clock', parent), newest, layout,
			'snowflake_drop_partitions()');
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_young_rows IS 'for a clock by which too much is old';

-- An error for an interval that no partition is as short as, but for 0, which says that all but the newest
-- partition are to go.  It was meant to be longer: '90' is 90 seconds, and what it drops is lost.
CREATE FUNCTION snowflake_admin.require_retention(older_than interval, unit text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	least interval := CASE unit WHEN 'hour' THEN '1 hour' ELSE '1 day' END;
BEGIN
	IF older_than > interval '0' AND older_than < least THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('older_than must be 0, or at least %s, not %s', least, older_than),
			HINT = 'A number without a unit is seconds. Write ''90 days'' for 90 days.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_retention IS 'for an interval that was meant to be longer';

-- The command: checks its arguments and the clock, and drops one partition after the other, then rows.
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
	stayed integer := 0;
BEGIN
	path := pg_catalog.current_setting('search_path');
	CALL snowflake_admin.begin_command('snowflake_drop_partitions()');
	key := time_key(parent);
	PERFORM require_owner(ARRAY[parent]);
	IF older_than IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'older_than must not be null';
	ELSIF older_than < interval '0' THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('older_than must be at least 0, not %s', older_than);
	END IF;
	PERFORM require_tries(tries);
	layout := coalesce(layout, key_layout(parent));
	PERFORM require_retention(older_than, newest_unit(parent, layout));
	stop := bound(
		(clock_timestamp() AT TIME ZONE 'UTC' - older_than) AT TIME ZONE 'UTC', layout);
	SELECT max(upper_id) INTO high FROM old_partitions(parent, stop);
	IF high IS NOT NULL THEN
		PERFORM require_one_owner(ARRAY[parent] || ARRAY(SELECT conrelid::regclass FROM pg_constraint
			WHERE contype = 'f' AND confrelid = parent AND conparentid = 0));
		PERFORM require_detachable(parent);
		PERFORM warn_of_scans(parent);
	END IF;
	IF trust_clock IS NOT TRUE THEN
		PERFORM require_young_rows(parent, key, stop,
			CASE WHEN NOT keep THEN whole_unit_before(stop, parent, layout) END, older_than, layout);
	END IF;
	IF dry_run AND high IS NOT NULL THEN
		PERFORM warn_of_references(parent, NULL, high, keep);
	END IF;
	FOR old IN SELECT partition FROM old_partitions(parent, stop) ORDER BY upper_id LOOP
		CALL drop_old_partition(parent, old.partition, stop, high, keep, path, tries, dry_run, stayed);
	END LOOP;
	CALL next_transaction();
	IF NOT keep THEN
		CALL delete_old_rows(parent, key, stop, layout, path, dry_run);
	END IF;
	-- All else is done and committed.  An error lets whoever runs jobs notice.
	IF stayed > 0 AND NOT dry_run THEN
		RAISE dependent_objects_still_exist USING
			MESSAGE = format('partitions of table %s that are old, but were not dropped: %s', parent, stayed),
			DETAIL = 'Other objects depend on them. The warnings before this error name them.',
			HINT = 'Drop these objects, and call this again.';
	END IF;
	CALL snowflake_admin.end_command();
END
$$;
COMMENT ON PROCEDURE @extschema@.snowflake_drop_partitions(regclass, interval, snowflake_layout, boolean, integer,
	boolean, boolean) IS
'drop or detach the partitions that are older than an interval, and delete such rows of one without a lower bound';
