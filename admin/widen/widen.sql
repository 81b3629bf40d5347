/* admin/widen/widen.sql */

-- CALL snowflake_widen(): an integer column, and all that refer to it, become bigint while
-- the application goes on.  What is still to do is read from the catalogs, so a call goes on
-- where another one ended:
--
--     1. add: a second column of type bigint, and a trigger that keeps it equal
--     2. fill it for old rows, in batches
--     3. check, validate: prove by a validated CHECK that all rows agree
--     4. index; those of large tables the caller creates CONCURRENTLY
--     5. key, validate key: add the foreign keys, and validate them
--     6. swap: analyze, and swap all columns in one transaction
--
-- Each step is done for all tables before the next one begins, and is a transaction for each.  But
-- a table is filled in many, and then gets its CHECKs before the next table is filled.  steps.sql
-- has the commands of 1 to 5, swap.sql those of 6.
--
-- The tables' code runs as their owner: while columns are filled, where a CHECK, NOT NULL or a
-- default is added, and where CHECKs and foreign keys are validated.  All else the caller does, and
-- PostgreSQL builds indexes as the owner of their table.

-- The commands that take back all that has been made, which they can until the swap
CREATE FUNCTION snowflake_admin.widen_undo_commands(columns widening[]) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH added AS (SELECT * FROM unnest(columns) WHERE wide_num IS NOT NULL)
	SELECT coalesce(array_agg(command ORDER BY n, command), '{}') FROM (
		SELECT DISTINCT 1, format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
		FROM added JOIN pg_constraint ON confrelid = rel AND contype = 'f' AND conparentid = 0
		WHERE starts_with(conname, 'snowflake_widen_') AND wide_num = ANY (confkey)
		UNION ALL SELECT 2, format('DROP TRIGGER %I ON %s', p.trig, rel)
		FROM added, widen_pairs(rel) AS p WHERE p.num = added.num
		UNION ALL SELECT 3, format('DROP FUNCTION %s()', func) FROM added
		UNION ALL SELECT 4, format('ALTER TABLE %s DROP %I', rel, wide) FROM added) AS c (n, command)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_undo_commands IS 'for dropping all that has been made';

-- Undo what former calls have made, all in one transaction.
CREATE FUNCTION snowflake_admin.widen_undo(tab regclass, col name, tries integer, dry_run boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	columns widening[] := widen_require(tab, col, false);
	commands text[];
BEGIN
	IF NOT dry_run THEN
		PERFORM lock(widen_tables(columns), tries, false);
		columns := widen_require(tab, col, false);
	END IF;
	commands := widen_undo_commands(columns);
	IF commands = '{}' THEN
		RAISE NOTICE 'nothing to undo: column % of table % is being widened no longer, or not yet',
			quote_ident(col), tab;
	END IF;
	PERFORM run(commands, widen_tables(columns), tries, dry_run);
	IF commands <> '{}' AND NOT dry_run THEN
		RAISE NOTICE USING
			MESSAGE = format('column %I of table %s, and all that refer to it, are as they were', col, tab),
			HINT = format('VACUUM %s makes the space of old versions of rows usable again.',
				(SELECT string_agg(DISTINCT rel::text, ', ') FROM unnest(columns) WHERE wide_num IS NOT NULL));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_undo IS 'for snowflake_widen() with undo => true';

-- Take the turn on the tables of a chain, and on the keys for which other calls have marked some of them.
-- That is where a session that goes on can be seen.
CREATE FUNCTION snowflake_admin.widen_take_turn(chain oid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	keys oid[];
BEGIN
	PERFORM take_turn('snowflake_widen()', chain, false);
	keys := ARRAY(SELECT DISTINCT key_of::oid FROM widen_marks(chain::regclass[]) WHERE key_of <> ALL (chain));
	IF keys <> '{}' THEN
		PERFORM take_turn('snowflake_widen()', keys, false);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_take_turn IS 'for refusing a call while another one works on its tables';

-- The tables on which a session takes the turn that goes on: all, until the marks on them say for which
-- keys they are, and then these.  Turns on many tables cost time in each transaction.
CREATE FUNCTION snowflake_admin.widen_turn(chain oid[], columns widening[]) RETURNS oid[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN EXISTS (SELECT FROM unnest(columns) WHERE wide_num IS NULL) THEN chain
		ELSE ARRAY(SELECT DISTINCT key_of::oid FROM widen_marks(chain::regclass[])) END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_turn IS 'for going on with the turn on few tables';

-- Fill new columns of a table's old rows, 16 pages at a time.  Rows that somebody has locked
-- are left to the next round.  The pause, in which vacuum and standbys keep up, is made at the
-- beginning of a transaction, which holds no lock on rows yet.
--
-- While ordinary triggers are off, no code of the owner's may run unless that role may turn them off,
-- too.  So each batch looks for it, and takes the lock of its UPDATE before, which keeps others from adding
-- triggers, CHECKs, rules and indexes, and from changing them.  CREATE INDEX CONCURRENTLY waits for it
-- before others fill that index.  Functions of triggers may be replaced in spite of it, and PostgreSQL
-- accepts no lock on them from most callers: then the batch is undone, with all that the function did.
CREATE PROCEDURE snowflake_admin.widen_fill(columns widening[], tab regclass, turn oid[], pause interval,
	tries integer)
LANGUAGE plpgsql AS $$
DECLARE
	own snowflake_admin.widening[] := ARRAY(SELECT w FROM unnest(columns) AS w WHERE rel = tab);
	assignments pg_catalog.text;
	lacking pg_catalog.text;
	functions pg_catalog.text;
	total bigint;
	pages bigint;
	page bigint;
	filled bigint;
	filled_so_far bigint;
	begun pg_catalog.timestamptz;
	reported pg_catalog.timestamptz;
	left_over boolean;
BEGIN
	SELECT string_agg(format('%I = %I', wide, narrow), ', '),
		string_agg(format('%I IS DISTINCT FROM %I', wide, narrow), ' OR ')
	INTO assignments, lacking
	FROM unnest(own);
	reported := clock_timestamp();
	LOOP
		SELECT greatest(reltuples, 0), pg_relation_size(tab) / current_setting('block_size')::integer
		INTO total, pages FROM pg_class WHERE oid = tab;
		filled_so_far := 0;
		begun := clock_timestamp();
		page := 0;
		filled := 0;
		WHILE page < pages LOOP
			PERFORM take_turn('snowflake_widen()', turn, true);
			-- Of a table that nobody has analyzed, the rows so far tell how many there are.
			total := greatest(total, filled_so_far * pages / greatest(page, 1));
			reported := progress(format('snowflake_widen: %s', tab), total * page / pages, total, begun, reported);
			IF filled > 0 THEN
				PERFORM pg_sleep(extract(epoch FROM pause));
			END IF;
			PERFORM lock(ARRAY[tab], tries, false, 'ROW EXCLUSIVE');
			functions := widen_trigger_functions(tab);
			PERFORM widen_refuse(tab, own[1].narrow, problem, remedy) FROM widen_table_obstacles(own);
			PERFORM widen_refuse(tab, own[1].narrow, problem, remedy) FROM widen_trigger_obstacles(own);
			IF EXISTS (SELECT FROM widen_fires(tab, 'O')) THEN
				SET LOCAL session_replication_role = replica;
			END IF;
			-- A deferred trigger would run at the commit, no longer as the owner, and is an error.
			SET CONSTRAINTS ALL IMMEDIATE;
			filled := do_as_owner(tab,
				format('UPDATE ONLY %1$s SET %2$s WHERE ctid = ANY (ARRAY(SELECT ctid FROM ONLY %1$s '
				'WHERE ctid >= ''(%3$s,0)'' AND ctid < ''(%4$s,0)'' AND (%5$s) FOR NO KEY UPDATE SKIP LOCKED))',
				tab, assignments, page, page + 16, lacking));
			IF widen_trigger_functions(tab) IS DISTINCT FROM functions THEN
				RAISE object_not_in_prerequisite_state USING
					MESSAGE = pg_catalog.format('a function of a trigger of table %s was replaced while rows were filled', tab),
					HINT = 'Call snowflake_widen() again.';
			END IF;
			filled_so_far := filled_so_far + filled;
			page := page + 16;
			CALL next_transaction();
		END LOOP;
		SELECT lacks INTO left_over
		FROM as_owner(tab, format('SELECT EXISTS (SELECT FROM ONLY %s WHERE %s)', tab, lacking)) AS (lacks boolean);
		CALL next_transaction();
		EXIT WHEN NOT left_over;
		-- Some rows were locked.
		PERFORM pg_sleep(1);
	END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake_admin.widen_fill IS 'for filling the new columns of a table while it is in use';

-- The commands that create the indexes for which the command waits.  There are none while rows
-- are still to be filled, which indexes would make slower; but what no index accepts is an error.
CREATE FUNCTION snowflake_admin.widen_lacking_indexes(tab regclass, col name)
RETURNS TABLE (command text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH checked AS MATERIALIZED (SELECT widen_require(tab, col, false) AS columns),
	todo AS MATERIALIZED (SELECT columns, t.* FROM checked, widen_todo(columns) AS t)
	SELECT unnest(CASE WHEN EXISTS (SELECT FROM todo WHERE kind = 'fill') THEN '{}' ELSE commands END) FROM (
		SELECT commands
		FROM (SELECT DISTINCT columns, todo.tab FROM todo WHERE kind IN ('index', 'concurrently')) AS t,
			widen_create_indexes(t.columns, t.tab)
		WHERE by_caller AND builder IS NULL
		ORDER BY t.tab, index) AS c
$$;
COMMENT ON FUNCTION snowflake_admin.widen_lacking_indexes IS 'for snowflake_widen_indexes()';

-- The same for users
CREATE FUNCTION @extschema@.snowflake_widen_indexes(tab regclass, col name)
RETURNS TABLE (command text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT keep_extension(false);
	SELECT * FROM widen_lacking_indexes(tab, col)
$$;
COMMENT ON FUNCTION @extschema@.snowflake_widen_indexes(regclass, name) IS
'commands that create the indexes for which snowflake_widen() waits';

-- An error that asks the caller to create indexes, or to wait for whoever does.  None if
-- somebody has just created them.
CREATE FUNCTION snowflake_admin.widen_ask_for_indexes(tab regclass, col name, columns widening[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	lacking text := (SELECT string_agg(command || ';', E'\n') FROM widen_lacking_indexes(tab, col));
	building record;
BEGIN
	IF lacking IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = 'the new columns need indexes, which a procedure cannot create concurrently',
			DETAIL = lacking,
			HINT = format('Execute these commands, in psql by SELECT * FROM %s(%L::regclass, %L::name) \gexec, '
				'then call snowflake_widen() again.', own_name('snowflake_widen_indexes'), tab, col);
	END IF;
	SELECT builder, rel INTO building
	FROM widen_indexes(columns), widen_builder(rel, fresh_oid) AS builder
	WHERE fresh_valid IS NOT TRUE AND builder IS NOT NULL LIMIT 1;
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = 'an index that the new columns need is being created',
			DETAIL = format('Process %s creates it for table %s.', building.builder, building.rel),
			HINT = 'Wait for it to end, then call snowflake_widen() again.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_ask_for_indexes IS 'for stopping where large tables need indexes';

-- The last step.  The first lock keeps others from creating indexes and constraints, which would
-- go with the old columns; if there are new ones, nothing is swapped.  Without statistics of the
-- new columns, queries would be planned badly after the swap.
--
-- Commands are composed before the last locks, under which everybody waits.  If others have
-- changed something by then, they are composed anew.  What these locks do not keep others from
-- changing is looked at once more before the old columns go.
CREATE FUNCTION snowflake_admin.widen_swap(tab regclass, col name, published boolean, tries integer) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	columns widening[] := ARRAY(SELECT w FROM widen_columns(tab, col) AS w);
	tables regclass[] := widen_tables(columns);
	unlocked text;
	swap record;
BEGIN
	PERFORM lock(tables, tries, false);
	columns := widen_require(tab, col, true, published);
	IF EXISTS (SELECT FROM widen_next(columns) WHERE kind <> 'swap') THEN
		RETURN;
	END IF;
	PERFORM widen_warn(columns);
	PERFORM run(widen_analyze_commands(columns), tables, tries, false, mode => NULL);
	unlocked := widen_unlocked(columns);
	SELECT * INTO swap FROM widen_swap_commands(columns);
	PERFORM try_again(ARRAY[format('SELECT snowflake_admin.keep_privileges(%L::oid[])',
		tables::oid[] || ARRAY(SELECT seq::oid FROM widen_sequences(columns)))], tables, tries);
	IF widen_unlocked(columns) <> unlocked THEN
		unlocked := widen_unlocked(columns);
		SELECT * INTO swap FROM widen_swap_commands(columns);
	END IF;
	PERFORM widen_refuse(tab, col, problem, remedy) FROM widen_unlocked_obstacles(columns, published);
	PERFORM run(swap.by_owner, tables, tries, false, owner_of => tab);
	PERFORM run(swap.to_copy, tables, tries, false);
	IF widen_unlocked(columns) <> unlocked THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('a privilege, a sequence or an index of table %s, or of one that refers to it, was changed by a '
				'concurrent transaction', tab),
			HINT = 'Call snowflake_widen() again.';
	END IF;
	PERFORM run(swap.to_replace, tables, tries, false);
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_swap IS 'for letting the new columns take the places of the old ones';

-- Carry out a step before the swap, or show it.
CREATE FUNCTION snowflake_admin.widen_do(columns widening[], kind text, tab regclass, object oid, tries integer,
	dry_run boolean) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT run(s.commands, s.relations, tries, dry_run, mode => s.mode, owner_of => s.owner_of)
	FROM widen_step(columns, kind, tab, object) AS s
$$;
COMMENT ON FUNCTION snowflake_admin.widen_do IS 'for carrying out a step';

-- Say what programs notice.
CREATE FUNCTION snowflake_admin.widen_announce(tab regclass, col name) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE NOTICE USING
		MESSAGE = format('programs will notice that column %I of table %s, and all that refer to it, become bigint',
			col, tab),
		DETAIL = 'From the first step on, SELECT * and RETURNING * return one more column, whose name begins with '
			'snowflake_widen_. A prepared statement with either fails with "cached plan must not change result type", and '
			'INSERT ... SELECT * into another table fails. After the swap, the column is the last one of its table, and a '
			'prepared statement that returns it fails in the same way.',
		HINT = 'Name the columns in INSERT, SELECT and COPY first. A session whose driver does not prepare a statement '
			'again must reconnect. Restart programs that cache the types of columns, such as Rails, after the swap: they '
			'refuse keys that are not integers, or write to columns that are gone.';
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_announce IS 'for saying what programs notice before they do';

-- Show all that is left to do.
CREATE FUNCTION snowflake_admin.widen_show(tab regclass, col name, columns widening[], tries integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	PERFORM widen_do(columns, todo.kind, todo.tab, todo.object, tries, true)
	FROM widen_todo(columns) AS todo WHERE todo.kind <> 'swap';
	IF columns <> '{}' THEN
		PERFORM run(widen_analyze_commands(columns), '{}', tries, true);
		PERFORM run(by_owner, '{}', tries, true, owner_of => tab), run(to_copy || to_replace, '{}', tries, true)
		FROM widen_swap_commands(columns);
		PERFORM widen_announce(tab, col);
		PERFORM widen_warn(columns);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_show IS 'for snowflake_widen() with dry_run => true';

-- Do what is left to do, or show it, or undo what has been done.
CREATE PROCEDURE @extschema@.snowflake_widen(tab regclass, col name, dry_run boolean DEFAULT false,
	tries integer DEFAULT 30, undo boolean DEFAULT false, pause interval DEFAULT '10 ms',
	published boolean DEFAULT false)
LANGUAGE plpgsql AS $$
DECLARE
	columns snowflake_admin.widening[];
	chain pg_catalog.oid[];
	turn pg_catalog.oid[];
	step pg_catalog.record;
BEGIN
	CALL snowflake_admin.begin_command('snowflake_widen()');
	chain := ARRAY(SELECT DISTINCT rel FROM chain(tab, col) ORDER BY 1);
	PERFORM widen_take_turn(chain);
	LOOP
		PERFORM keep_names(ARRAY(SELECT DISTINCT rel::oid FROM chain(tab, col)), tries);
		IF undo THEN
			PERFORM widen_undo(tab, col, tries, dry_run);
			EXIT;
		END IF;
		columns := widen_require(tab, col, true, published);
		turn := widen_turn(chain, columns);
		PERFORM require_no_other('snowflake_widen()', widen_tables(columns));
		IF dry_run THEN
			PERFORM widen_show(tab, col, columns, tries);
		END IF;
		IF columns = '{}' THEN
			RAISE NOTICE 'column % of table %, and all that refer to it, are wider than integer', quote_ident(col), tab
				USING HINT = 'Restart programs that cache the types of columns, such as Rails.';
		END IF;
		EXIT WHEN dry_run OR columns = '{}';
		IF EXISTS (SELECT FROM widen_next(columns) WHERE kind = 'add') THEN
			PERFORM widen_announce(tab, col);
			-- What cannot be done later is an error before anything is done.
			PERFORM widen_rehearse(columns, rel) FROM (SELECT DISTINCT rel FROM unnest(columns)) AS t;
		END IF;
		FOR step IN SELECT * FROM widen_next(columns) LOOP
			PERFORM take_turn('snowflake_widen()', turn, true);
			PERFORM set_config('application_name',
				format('snowflake_widen: %s %s', step.kind, coalesce(step.tab, tab))::name::text, true);
			IF step.kind = 'concurrently' THEN
				PERFORM widen_ask_for_indexes(tab, col, columns);
				EXIT;
			ELSIF step.kind = 'swap' THEN
				PERFORM widen_swap(tab, col, published, tries);
			ELSIF step.kind = 'fill' THEN
				PERFORM widen_do(columns, step.kind, step.tab, step.object, tries, true);
				CALL widen_fill(columns, step.tab, turn, pause, tries);
				PERFORM take_turn('snowflake_widen()', turn, true);
				PERFORM keep_names(ARRAY[step.tab], tries);
				PERFORM widen_do(columns, 'check', step.tab, NULL, tries, false);
			ELSE
				PERFORM lock(ARRAY[step.tab], tries, false);
				PERFORM require_no_other('snowflake_widen()', ARRAY[step.tab]);
				PERFORM widen_do(columns, step.kind, step.tab, step.object, tries, false);
			END IF;
			CALL next_transaction();
		END LOOP;
		CALL next_transaction();
		PERFORM take_turn('snowflake_widen()', turn, true);
	END LOOP;
	CALL snowflake_admin.end_command();
END
$$;
COMMENT ON PROCEDURE @extschema@.snowflake_widen(regclass, name, boolean, integer, boolean, interval, boolean) IS
'replace an integer column, and all that refer to it, by bigint columns while they are in use';
