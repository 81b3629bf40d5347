/* snowflake_admin--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_admin" to load this file. \quit

-- This file knows catalogs, locks and tables.  Which bits of an ID are what, it
-- asks the extension "snowflake".
--
-- No name is looked up in the caller's search_path.  Functions have their own;
-- procedures that commit may not have one, so each of their transactions begins
-- with SET LOCAL.  Functions of "snowflake" may be in any schema: they are called
-- in bodies that are BEGIN ATOMIC, which name them for good, and in commands by
-- the schema's present name.

--
-- What the procedures share
--

CREATE FUNCTION snowflake_admin_schema()
RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
	WHERE extname = 'snowflake';
END;

COMMENT ON FUNCTION snowflake_admin_schema() IS
'for snowflake_admin''s procedures: the schema of snowflake''s functions, quoted';

-- Who holds a lock on one of these relations?  This is asked after a command has
-- given up, so that it may name a session that came later, or none.
CREATE FUNCTION snowflake_admin_blocker(relations regclass[])
RETURNS TABLE (pid integer, description text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT l.pid, CASE WHEN l.pid IS NULL THEN format('A prepared transaction (see pg_prepared_xacts) has used %s.', l.relation::regclass)
		ELSE format('Process %s has used %s in a transaction since %s; its last query begins: %s', l.pid, l.relation::regclass,
			coalesce(date_trunc('second', a.xact_start)::text, 'an unknown time'), left(coalesce(a.query, 'unknown'), 60)) END
	FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
	WHERE l.relation = ANY (relations) AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
	ORDER BY a.xact_start NULLS FIRST LIMIT 1
$$;

COMMENT ON FUNCTION snowflake_admin_blocker(regclass[]) IS
'for snowflake_admin''s procedures: the oldest transaction that holds a lock on a relation';

-- Lock tables in the given order, or the other way round, then execute commands.
-- The caller gives parents before the tables that refer to them.
--
-- The first locks keep out vacuums and commands like this one, but neither readers
-- nor writers, who need not wait while this waits.  An autovacuum in the way is
-- ended by PostgreSQL once the wait has lasted for deadlock_timeout.
--
-- The last locks keep everybody out.  An application that waits for one of them
-- while this waits for one of its own must not be ended as a deadlock.  So all
-- these waits together are shorter than deadlock_timeout.
CREATE FUNCTION snowflake_admin_try(commands text[], relations regclass[], mode text, backwards boolean)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = 0
AS $$
DECLARE
	tables text[] := ARRAY(
		SELECT r::text FROM unnest(relations) WITH ORDINALITY AS u (r, n) JOIN pg_class ON oid = r
		WHERE relkind IN ('r', 'p', 'v') ORDER BY CASE WHEN backwards THEN -n ELSE n END);
	deadlock_ms integer := extract(epoch FROM current_setting('deadlock_timeout')::interval) * 1000;
	command text;
BEGIN
	PERFORM set_config('lock_timeout', (deadlock_ms + 500)::text, true);
	FOREACH command IN ARRAY tables LOOP
		EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', command);
	END LOOP;
	PERFORM set_config('lock_timeout', greatest(10, least(300,
		deadlock_ms * 9 / 10 / greatest(1, cardinality(relations))))::text, true);
	FOREACH command IN ARRAY tables LOOP
		EXECUTE format('LOCK TABLE %s IN %s MODE', command, mode);
	END LOOP;
	FOREACH command IN ARRAY commands LOOP
		EXECUTE command;
	END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_admin_try(text[], regclass[], text, boolean) IS
'for snowflake_admin''s procedures: lock tables and execute commands, or give up soon';

-- Show commands, and execute them under locks that are tried for again and again,
-- with growing pauses in which everybody else goes on.  A failed try is a
-- subtransaction, so that nothing of it stays.  The locks last until the caller's
-- transaction ends.
CREATE FUNCTION snowflake_admin_run(
	commands text[],
	relations regclass[],
	tries integer,
	dry_run boolean,
	mode text DEFAULT 'ACCESS EXCLUSIVE')
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	blocker record;
	command text;
BEGIN
	FOREACH command IN ARRAY commands LOOP
		RAISE NOTICE '%;', command;
	END LOOP;
	IF dry_run THEN
		RETURN;
	END IF;
	FOR try IN 1 .. tries LOOP
		BEGIN
			PERFORM @extschema@.snowflake_admin_try(commands, relations, mode, try % 2 = 0);
			RETURN;
		EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
			SELECT * INTO blocker FROM @extschema@.snowflake_admin_blocker(relations);
		END;
		IF try < tries THEN
			PERFORM pg_sleep(least(0.05 * try * (0.5 + random()), 2));
		END IF;
	END LOOP;
	RAISE lock_not_available USING
		MESSAGE = format('could not get the locks in %s, and changed nothing in this step',
			CASE tries WHEN 1 THEN 'one try' ELSE tries || ' tries' END),
		DETAIL = blocker.description,
		HINT = CASE WHEN blocker.pid IS NULL THEN 'Call it again, perhaps with more tries.'
			ELSE format('Call it again when that transaction has ended, or with more tries. SELECT pg_terminate_backend(%s) would end its session.', blocker.pid) END;
END
$$;

COMMENT ON FUNCTION snowflake_admin_run(text[], regclass[], integer, boolean, text) IS
'for snowflake_admin''s procedures: show commands, and execute them as soon as all locks are free';

-- The message of an error that a COMMIT raises in every function, in the
-- session's language
CREATE FUNCTION snowflake_admin_commit_error()
RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
	COMMIT;
EXCEPTION WHEN invalid_transaction_termination THEN
	RETURN SQLERRM;
END
$$;

COMMENT ON FUNCTION snowflake_admin_commit_error() IS
'for snowflake_admin''s procedures: what PostgreSQL says of a COMMIT that cannot be';

-- Raise an error in a transaction block.  COMMIT fails here in any case, because
-- of the subtransaction, but in a transaction block with another message.
CREATE PROCEDURE snowflake_admin_require_no_transaction(caller text)
LANGUAGE plpgsql
AS $$
BEGIN
	BEGIN
		COMMIT;
	EXCEPTION WHEN invalid_transaction_termination THEN
		IF SQLERRM OPERATOR(pg_catalog.<>) @extschema@.snowflake_admin_commit_error() THEN
			RETURN;
		END IF;
	END;
	RAISE invalid_transaction_termination USING
		MESSAGE = pg_catalog.format('%s cannot run inside a transaction block', caller),
		HINT = 'Call it without BEGIN, and not in a function, because it commits after each step.';
END
$$;

COMMENT ON PROCEDURE snowflake_admin_require_no_transaction(text) IS
'for snowflake_admin''s procedures: raise an error in a transaction block';

-- Say how far a long step is, in pg_stat_activity always, and in a NOTICE every
-- five seconds.  Returns when it last did the latter.
CREATE FUNCTION snowflake_admin_progress(
	step text,
	done bigint,
	total bigint,
	begun timestamptz,
	reported timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	share double precision := least(done::double precision / greatest(total, 1), 1);
	line text := format('%s: %s of about %s rows, %s %%', step, done, greatest(total, done), floor(100 * share));
BEGIN
	PERFORM set_config('application_name', line, true);
	IF clock_timestamp() < reported + interval '5 seconds' THEN
		RETURN reported;
	END IF;
	RAISE NOTICE '%, % left', line, CASE WHEN share > 0
		THEN date_trunc('second', (clock_timestamp() - begun) * (1 / share - 1))::text ELSE 'unknown time' END;
	RETURN clock_timestamp();
END
$$;

COMMENT ON FUNCTION snowflake_admin_progress(text, bigint, bigint, timestamptz, timestamptz) IS
'for snowflake_admin''s procedures: report how far a long step is';
