/* admin/set_back.sql */

-- CALL snowflake_set_back(sequence): a sequence that is ahead of the clock goes back to the
-- clock, if it generates no ID again.  With a layout, one that has lost its MAXVALUE gets it back.
--
--     1. note which sessions are connected, and if told to, end them and say whose they are.  Those that
--        connect later have the shard of the present setting.  Nothing tells since when that is so, so
--        those that are connected count, even if they began after it.
--     2. lock the sequence.  This waits for everybody who has an ID of it in an open transaction,
--        and keeps everybody from generating one.
--     3. RESTART the sequence, and give it its layout back
--     4. under this lock, look at what generates IDs, at the rows, and for the sessions.  An error undoes
--        the RESTART.
--     5. advance the sequence to a second ahead of the clock, as rows of that second were not looked
--        for, or, if it had lost its layout, above its rows
--
-- The first step is one transaction, the others are another one.  Tables are read by their indexes
-- alone, so nobody's code runs (check/ids.sql).  Changes no row, and knows no remedy for those that
-- are in the way: the check has it.

-- End these sessions, and say whose they are, or none if one of them is of a role whose sessions the caller
-- may not end.  A dry run does the same, but ends none.
CREATE FUNCTION snowflake_admin.end_sessions(pids integer[], dry_run boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	other record;
BEGIN
	SELECT s.pid, role::regrole AS role INTO other FROM other_sessions() AS s
	WHERE pid = ANY (pids) AND NOT (SELECT rolsuper FROM pg_roles WHERE oid = caller())
		AND ((SELECT rolsuper FROM pg_roles WHERE oid = role)
			OR NOT (pg_has_role(role, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE')))
	LIMIT 1;
	IF FOUND THEN
		RAISE insufficient_privilege USING
			MESSAGE = format('permission denied to end session %s, of role %s', other.pid, other.role),
			DETAIL = 'No session has been ended.',
			HINT = format('Let a superuser call this; or let one GRANT pg_signal_backend TO %s, which suffices unless role %s '
				'is a superuser; or stop the programs and call it without end_sessions.', caller()::regrole, other.role);
	END IF;
	FOR other IN
		SELECT role::regrole AS role,
			count(*) FILTER (WHERE CASE WHEN dry_run IS FALSE THEN pg_terminate_backend(pid, 5000) ELSE true END) AS sessions
		FROM other_sessions() WHERE pid = ANY (pids) GROUP BY 1 ORDER BY role::regrole::text
	LOOP
		RAISE NOTICE '%', format('%s sessions of role %s: %s', CASE WHEN dry_run IS FALSE THEN 'ended' ELSE 'would end' END,
			other.role, other.sessions);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.end_sessions IS 'for sessions that may still have a former shard';

-- What is known of one sequence
CREATE FUNCTION snowflake_admin.generator_of(sequence regclass) RETURNS generator
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH makers AS MATERIALIZED (SELECT array_agg(m) AS array FROM id_makers() AS m)
	SELECT g FROM makers CROSS JOIN LATERAL generators(makers.array,
		ARRAY(SELECT f FROM fillers(makers.array) AS f)) AS g
	WHERE g.sequence = generator_of.sequence
$$;
COMMENT ON FUNCTION snowflake_admin.generator_of IS 'for what is known of one sequence';

-- The largest future-dated ID, of any shard, to which next_id() may advance and then refuse calls for
-- less than ten minutes, for which the check, too, advises to wait.  NULL if there is none.  A table of
-- a role that owns neither the sequence nor the database must not make others wait, so of these it is
-- the largest for which no call fails.  "unseen" tells whether a table could not be read.
CREATE FUNCTION snowflake_admin.reachable_id(g generator, layout snowflake_layout, since bigint,
	OUT id bigint, OUT unseen boolean)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT max(i.ids[1]), coalesce(bool_or(i.obstacle IS NOT NULL), false) FROM columns_of(g) AS c
	CROSS JOIN LATERAL unnest(c.tabs, c.cols) AS t (tab, col)
	CROSS JOIN LATERAL ids_between(t.tab, t.col, since, bound(clock_timestamp() + time_setting('max_lead')
		+ time_setting('max_wait') + CASE WHEN is_strange(t.tab, g.sequence) THEN interval '0' ELSE '10 min' END,
		layout), 1) AS i
$$;
COMMENT ON FUNCTION snowflake_admin.reachable_id IS 'for the future-dated IDs of a sequence that gets its layout back';

-- The ID at which the sequence, which serves a layout or is about to, may go on.  An error if it
-- could then generate an ID again that is in a row.  While rows of other shards are dated ahead of the
-- clock, these sessions must have ended.
--
-- A sequence that has lost its layout generates no ID of it until it gets it back, whatever its rows have.
-- So it goes on above them.  What is too far ahead for that is most likely of another layout.  If it
-- is not, there is time to renumber it, as the check says.
CREATE FUNCTION snowflake_admin.next_safe_id(sequence regclass, g generator, layout text, is_lost boolean,
	pids integer[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET lock_timeout = '300ms' SET jit = off AS $$
DECLARE
	since bigint;
	future record;
	reachable record;
	other record;
BEGIN
	IF has_time(to_layout(layout)) IS NOT TRUE THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('sequence %s serves no layout with a timestamp', sequence),
			HINT = 'If it has served one, SELECT * FROM snowflake_check() shows what it lacks.';
	ELSIF g.unread <> '{}' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot read all code that may use sequence %s, such as %s', sequence, (
				SELECT place(c, g.unread[1]) FROM unnest('{pg_proc,pg_attrdef,pg_rewrite}'::regclass[]) AS c
				WHERE owner_of(c, g.unread[1]) IS NOT NULL LIMIT 1)),
			DETAIL = 'Another transaction has locked a table that this code names.',
			HINT = 'Call it again when that transaction has ended.';
	END IF;
	since := bound(clock_timestamp() + interval '1 s', to_layout(layout));
	SELECT * INTO future FROM future_ids(g, to_layout(layout), since, 'snowflake_set_back()');
	IF is_lost THEN
		SELECT * INTO reachable FROM reachable_id(g, to_layout(layout), since);
		IF reachable.unseen THEN
			future.unseen := coalesce(future.unseen, 'a table that another transaction has locked');
		END IF;
	END IF;
	-- What was lost has no remedy but this, and goes on above the clock.
	IF NOT is_lost THEN
		future.unseen := coalesce(future.unseen, future.altered);
	END IF;
	IF future.unseen IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot look for future-dated IDs in %s', future.unseen),
			HINT = coalesce(CASE WHEN future.way LIKE '%.' THEN future.way ELSE future.way || ', and call it again.' END,
				'Wait for the clock to catch up.');
	ELSIF is_lost THEN
		RETURN coalesce(reachable.id + 1, since);
	ELSIF future.own > 0 OR future.more THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('sequence %s would duplicate IDs of table %s', sequence, future.tab),
			DETAIL = format('Future-dated IDs: %s, the latest of %s.', future.own, future.latest),
			HINT = 'SELECT * FROM snowflake_check() shows the way out.';
	ELSIF future.others > 0 THEN
		-- Without this, it would show the sessions of the first time that this transaction looked.
		PERFORM pg_stat_clear_snapshot();
		SELECT pid, role::regrole AS role INTO other FROM other_sessions() WHERE pid = ANY (pids) LIMIT 1;
		IF FOUND THEN
			RAISE object_not_in_prerequisite_state USING
				MESSAGE = format('session %s, of role %s, may still have a shard of future-dated IDs',
					other.pid, other.role),
				DETAIL = format('There are %s, which it would generate again.', future.others),
				HINT = 'Call it with end_sessions => true, or stop the programs until this database has no other sessions.';
		END IF;
	END IF;
	RETURN since;
END
$$;
COMMENT ON FUNCTION snowflake_admin.next_safe_id IS 'for where a sequence may go on, or what is in the way';

-- Has a sequence lost this layout?  One that serves none, and whose value is ahead of the clock in this
-- one, still has its position, and only lacks the MAXVALUE.
CREATE FUNCTION snowflake_admin.has_lost(sequence regclass, g generator, layout text) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT layout IS NOT NULL AND CASE WHEN g.last_timestamp IS NULL
		THEN NOT is_ahead(sequence_last_value(sequence), to_layout(layout))
		ELSE g.layout <> layout END
$$;
COMMENT ON FUNCTION snowflake_admin.has_lost IS 'for whether a sequence is to get back a layout that it has lost';

-- Set it back, or show the commands.  The layout is the one that it shall serve, if another
-- than it does now.  What generates its IDs is looked for again when it serves that, but in a dry run.
CREATE FUNCTION snowflake_admin.set_back(sequence regclass, pids integer[], dry_run boolean, tries integer,
	layout text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	g generator;
	served text;
	is_lost boolean;
	start bigint;
BEGIN
	IF NOT has_sequence_privilege(sequence, 'USAGE, SELECT') THEN
		RAISE insufficient_privilege USING
			MESSAGE = format('permission denied for sequence %s', sequence),
			HINT = format('GRANT USAGE, SELECT ON SEQUENCE %s TO %s.', sequence, caller()::regrole);
	END IF;
	PERFORM keep_snowflake();
	-- Changes nothing in a sequence that next_id() takes, and locks it.
	PERFORM run(ARRAY[format('ALTER SEQUENCE %s NO CYCLE', sequence)], ARRAY[sequence], tries, dry_run,
		mode => NULL);
	g := generator_of(sequence);
	served := coalesce(layout, g.layout);
	is_lost := has_lost(sequence, g, layout);
	IF served = g.layout AND g.lead <= '2 s' THEN
		RAISE NOTICE 'sequence % is not ahead of the clock', sequence;
		RETURN;
	END IF;
	PERFORM run(array_remove(ARRAY[
		format('ALTER SEQUENCE %s RESTART', sequence),
		CASE WHEN layout IS NOT NULL THEN format('SELECT %s.snowflake_alter_sequence(%L::regclass, %s)',
			snowflake_schema(), sequence, layout_literal(layout)) END], NULL), '{}', tries, dry_run, mode => NULL);
	IF NOT dry_run THEN
		g := generator_of(sequence);
		IF g.sequence IS NULL AND layout IS NOT NULL THEN
			RAISE object_not_in_prerequisite_state USING
				MESSAGE = format('nothing in this database generates IDs of layout %s by sequence %s', layout, sequence),
				HINT = 'Let a default name the sequence and the layout first: next_id(SHARD, SEQUENCE, LAYOUT).';
		END IF;
	END IF;
	g.layout := served;
	start := next_safe_id(sequence, g, served, is_lost, pids);
	PERFORM run(ARRAY[format('SELECT %s.snowflake_advance(%L::regclass, %s::bigint%s)', snowflake_schema(),
		sequence, start - 1, layout_argument(served))], '{}', tries, dry_run, mode => NULL);
END
$$;
COMMENT ON FUNCTION snowflake_admin.set_back IS 'for setting a sequence back in one transaction';

-- Set a sequence back, or show how, unless something is in the way.
CREATE PROCEDURE @extschema@.snowflake_set_back(sequence regclass, end_sessions boolean DEFAULT false,
	dry_run boolean DEFAULT false, tries integer DEFAULT 30, layout snowflake_layout DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
	pids pg_catalog.int4[];
BEGIN
	CALL snowflake_admin.begin_command('snowflake_set_back()');
	PERFORM require_tries(tries);
	IF sequence IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'sequence must not be null';
	ELSIF NOT EXISTS (SELECT FROM pg_class WHERE oid = sequence AND relkind = 'S') THEN
		RAISE wrong_object_type USING MESSAGE = format('%s is not a sequence', sequence);
	ELSIF NOT (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = sequence) THEN
		RAISE insufficient_privilege USING MESSAGE = format('must be owner of sequence %s', sequence);
	END IF;
	pids := ARRAY(SELECT pid FROM other_sessions());
	IF end_sessions THEN
		PERFORM end_sessions(pids, dry_run);
	END IF;
	CALL next_transaction();
	PERFORM set_back(sequence, CASE WHEN end_sessions AND dry_run THEN '{}' ELSE pids END, dry_run, tries,
		layout::text);
	CALL snowflake_admin.end_command();
END
$$;
COMMENT ON PROCEDURE @extschema@.snowflake_set_back(regclass, boolean, boolean, integer, snowflake_layout) IS
'set a sequence that is ahead of the clock back to it, or say what is in the way';
