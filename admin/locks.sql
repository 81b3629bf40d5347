/* admin/locks.sql */

-- How a command gets its locks without making an application wait, takes its turn on a
-- table, shows what it does, and refuses a transaction block.  Knows no ID, no key and no
-- partition.
--
-- A command takes each lock on a table that is stronger than that of a read by run(), lock() or
-- try_again() only.  A read waits as any SELECT does.  The statement by which snowflake_drop_partitions()
-- changes or removes rows batch by batch, also of tables that refer to them, goes without, because it takes
-- no more than the locks of an UPDATE or DELETE.

-- Another session's transaction in words, on one line, as that session could write a HINT on the next
-- one.  Of a session that is hidden from the caller, the times are NULL, and the query is
-- '<insufficient privilege>'.
CREATE FUNCTION snowflake_admin.describe_transaction(xact_start timestamptz, query text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('in a transaction since %s; its last query begins: %s',
		coalesce(date_trunc('second', xact_start)::text, 'an unknown time'),
		left(regexp_replace(coalesce(query, 'unknown'), '\s+', ' ', 'g'), 60))
$$;
COMMENT ON FUNCTION snowflake_admin.describe_transaction IS 'for saying what a session in the way does';

-- The modes in which tables are locked, from the weakest one to the strongest
CREATE FUNCTION snowflake_admin.strength(mode text) RETURNS integer
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_position('{AccessShareLock,RowShareLock,RowExclusiveLock,ShareUpdateExclusiveLock,ShareLock,
		ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}', mode)
$$;
COMMENT ON FUNCTION snowflake_admin.strength IS 'for comparing modes of locks';

-- The prepared transaction that holds the locks of this virtual transaction, which no process has
CREATE FUNCTION snowflake_admin.prepared_transaction(virtualtransaction text)
RETURNS TABLE (gid text, owner name)
LANGUAGE sql STABLE ROWS 1 SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT x.gid, x.owner FROM pg_locks AS own JOIN pg_prepared_xacts AS x ON x.transaction = own.transactionid
	WHERE own.pid IS NULL AND own.virtualtransaction = prepared_transaction.virtualtransaction
$$;
COMMENT ON FUNCTION snowflake_admin.prepared_transaction IS 'for naming a prepared transaction in the way';

-- Who holds a lock on one of these relations that is at least as strong as "weakest": a prepared
-- transaction if there is one, or else the session whose transaction is the oldest, and what to do
-- about it.  Called after a command has given up, this may name a session that came later, or none.
--
-- The two views are not of the same moment, and that of sessions is by default as it was when the
-- transaction first read it.  A session that has ended its transaction meanwhile is in nobody's
-- way.  Of a session that is hidden from the caller, the state is NULL.
CREATE FUNCTION snowflake_admin.blocker(relations regclass[], weakest text, OUT description text, OUT remedy text)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	blocker record;
BEGIN
	PERFORM pg_stat_clear_snapshot();
	SELECT l.pid, l.relation::regclass AS relation, a.xact_start, a.query, p.gid, p.owner INTO blocker
	FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
	LEFT JOIN LATERAL prepared_transaction(l.virtualtransaction) AS p ON l.pid IS NULL
	WHERE l.relation = ANY (relations) AND l.database = (SELECT oid FROM pg_database
			WHERE datname = current_database())
		AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
		AND strength(l.mode) >= strength(weakest)
		AND (a.xact_start IS NOT NULL OR a.state IS NULL)
	ORDER BY l.pid IS NOT NULL, a.xact_start NULLS LAST LIMIT 1;
	IF blocker.relation IS NULL THEN
		RETURN;
	ELSIF blocker.pid IS NULL THEN
		description := format('A prepared transaction (see pg_prepared_xacts) has used %s.', blocker.relation);
		-- No try gets its locks, and it may stay for days.
		remedy := format('Role %I or a superuser can end it: COMMIT PREPARED %L, or ROLLBACK PREPARED %2$L.',
			blocker.owner, blocker.gid);
		RETURN;
	END IF;
	description := format('Process %s has used %s %s', blocker.pid, blocker.relation,
		describe_transaction(blocker.xact_start, blocker.query));
	remedy := format('Its own role and, unless that is a superuser, a member of pg_signal_backend can end its session: '
		'SELECT pg_terminate_backend(%s).', blocker.pid);
END
$$;
COMMENT ON FUNCTION snowflake_admin.blocker IS 'for naming the session that is in the way of a lock';

-- deadlock_timeout in milliseconds
CREATE FUNCTION snowflake_admin.deadlock_ms() RETURNS integer
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT (extract(epoch FROM current_setting('deadlock_timeout')::interval) * 1000)::integer
$$;
COMMENT ON FUNCTION snowflake_admin.deadlock_ms IS 'for waiting longer, or shorter, than a deadlock lasts';

-- How many milliseconds a wait for one of the last locks of so many tables may last
--
-- An application that waits for one of these locks while this waits for one of the application's
-- must not be ended as a deadlock.  So the waits for the given tables are together shorter than
-- deadlock_timeout, unless 10 ms for each are longer.  A partitioned table counts as one, although
-- each of its partitions may be waited for as long: there, an application may be ended.
CREATE FUNCTION snowflake_admin.short_wait(tables integer) RETURNS integer
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT greatest(10, least(300, deadlock_ms() * 9 / 10 / greatest(1, tables)))
$$;
COMMENT ON FUNCTION snowflake_admin.short_wait IS 'for waiting so briefly that no application is ended as a deadlock';

-- What LOCK TABLE is told to lock.  It knows no sequence and no foreign table.  Without a mode, a
-- partitioned table is locked without its partitions.
CREATE FUNCTION snowflake_admin.tables_to_lock(relations regclass[], mode text, backwards boolean) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT ARRAY(SELECT CASE WHEN relkind = 'p' AND mode IS NULL THEN 'ONLY ' ELSE '' END || r::text
		FROM unnest(relations) WITH ORDINALITY AS u (r, n) JOIN pg_class ON oid = r
		WHERE relkind IN ('r', 'p', 'v') ORDER BY CASE WHEN backwards THEN -n ELSE n END)
$$;
COMMENT ON FUNCTION snowflake_admin.tables_to_lock IS 'for naming tables to LOCK TABLE';

-- Lock tables in the given order, or the other way round, or fail.  The caller gives parents
-- before the tables that refer to them.  Of a sequence or a foreign table that is given, only the
-- schema is locked, by a superuser.
--
-- LOCK TABLE looks a name up again when it has waited.  If somebody has renamed the table meanwhile, and
-- perhaps given its name to another one, as snowflake_partition() does, it finds none, or what it must not
-- lock, or has locked that one, and this fails as if it had not got the lock: the next try has the new
-- name.  A table that was dropped is PostgreSQL's own error.
--
-- The first locks, which modes ACCESS SHARE and ROW EXCLUSIVE do without, keep out vacuums and commands
-- like this one, but neither readers nor writers, who need not wait while this waits.  An autovacuum in the
-- way is ended by PostgreSQL once the wait has lasted for deadlock_timeout, unless it prevents
-- wraparound: then the try fails.
--
-- The last locks, if there is a mode, keep out whoever conflicts with it.  They are waited for
-- briefly, and a try that fails lets everybody else go on.
--
-- Without a mode, the lock on a partitioned table keeps its definition and its list of partitions.
-- With one, LOCK TABLE takes all of them in both rounds, so that the last locks wait for no vacuum.
--
-- Between two commands, somebody could rename a schema and another one to its name, so that
-- a superuser's next command would find somebody else's table.  Only superusers can lock the
-- rows of schemas in the catalog, and others can do no more to a table than its owner.
CREATE FUNCTION snowflake_admin.try_locks(relations regclass[], mode text, backwards boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET lock_timeout = 0 AS $$
DECLARE
	tables text[] := tables_to_lock(relations, mode, backwards);
	renamed CONSTANT text := 'a table was renamed while this waited for its lock';
	wait_ms integer := short_wait(cardinality(relations));
	names text[];
	tab text;
BEGIN
	PERFORM set_config('lock_timeout', (deadlock_ms() + 500)::text, true);
	IF mode IS NULL OR mode NOT IN ('ACCESS SHARE', 'ROW EXCLUSIVE') THEN
		FOREACH tab IN ARRAY tables LOOP
			EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', tab);
		END LOOP;
	END IF;
	IF (SELECT rolsuper FROM pg_roles WHERE oid = caller()) THEN
		PERFORM FROM pg_namespace WHERE oid IN (SELECT relnamespace FROM pg_class WHERE oid = ANY (relations))
		FOR SHARE;
	END IF;
	IF mode IS NOT NULL THEN
		PERFORM set_config('lock_timeout', wait_ms::text, true);
		FOREACH tab IN ARRAY tables LOOP
			EXECUTE format('LOCK TABLE %s IN %s MODE', tab, mode);
			-- Whoever holds the next lock may already wait for this one, so that more
			-- waiting is in vain.  Mostly be short, but now and then long enough for a
			-- transaction that needs its time.
			PERFORM set_config('lock_timeout', greatest(10,
				wait_ms * (0.1 + 0.9 * random() ^ 3))::integer::text, true);
		END LOOP;
	END IF;
	IF tables_to_lock(relations, mode, backwards) <> tables THEN
		RAISE lock_not_available USING MESSAGE = renamed;
	END IF;
EXCEPTION WHEN undefined_table OR invalid_schema_name OR wrong_object_type OR insufficient_privilege THEN
	names := tables_to_lock(relations, mode, backwards);
	IF names = tables OR cardinality(names) < cardinality(tables) THEN
		RAISE;
	END IF;
	RAISE lock_not_available USING MESSAGE = renamed;
END
$$;
COMMENT ON FUNCTION snowflake_admin.try_locks IS 'for one try to lock tables';

-- Lock tables, then execute commands, or fail
--
-- What runs as an owner to whom policies apply is an error, because PostgreSQL's own checks of
-- foreign keys would not see all rows.
CREATE FUNCTION snowflake_admin.try_commands(commands text[], relations regclass[], mode text, backwards boolean,
	owner_of regclass, by_owner boolean[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET lock_timeout = 0
	SET row_security = off AS $$
BEGIN
	PERFORM try_locks(relations, mode, backwards);
	PERFORM set_config('lock_timeout', short_wait(cardinality(relations))::text, true);
	FOR n IN 1 .. cardinality(commands) LOOP
		IF owner_of IS NULL OR by_owner IS NOT NULL AND by_owner[n] IS NOT TRUE THEN
			EXECUTE commands[n];
		ELSE
			PERFORM do_as_owner(owner_of, commands[n]);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.try_commands IS 'for one try to execute commands under locks';

-- An error unless a number of tries is positive
CREATE FUNCTION snowflake_admin.require_tries(tries integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF coalesce(tries, 0) < 1 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('tries must be at least 1, not %s', coalesce(tries::text, 'null'));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_tries IS 'for refusing a number with which nothing would be tried';

-- Show commands.  What runs as the owner of a table, all or what "by_owner" says, is shown to another
-- caller in a form that can be pasted, and does the same.
CREATE FUNCTION snowflake_admin.show(commands text[], owner_of regclass DEFAULT NULL, by_owner boolean[] DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	FOR n IN 1 .. cardinality(commands) LOOP
		RAISE NOTICE '%;', CASE WHEN owner_of IS NOT NULL AND (by_owner IS NULL OR by_owner[n])
			THEN pasteable(commands[n], owner_of) ELSE commands[n] END;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.show IS 'for showing commands';

-- A session that has a lock on one of these relations, at least as strong as "weakest", and waits for
-- one of ours, or for our transaction to end, as CREATE INDEX CONCURRENTLY does.  NULL if there is none.
-- Two commands that have each locked what the other one tries for see each other, although
-- neither waits for long: if not in this try, then in one of the next.
CREATE FUNCTION snowflake_admin.waits_for_us(relations regclass[], weakest text) RETURNS integer
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH locks AS MATERIALIZED (SELECT * FROM pg_locks WHERE pid <> pg_backend_pid())
	SELECT pid FROM locks
	WHERE granted AND relation = ANY (relations) AND strength(mode) >= strength(weakest)
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND pid IN (SELECT pid FROM locks WHERE NOT granted)
		AND pg_backend_pid() = ANY (pg_blocking_pids(pid))
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_admin.waits_for_us IS 'for tries that would be in vain as long as we try';

-- Execute commands, without showing them, under locks that are tried for again and again, with
-- growing pauses in which everybody else goes on.  The locks last until the caller's
-- transaction ends.  Without a mode, only the first locks of try_locks() are taken here, and the
-- commands themselves lock what else they need.
--
-- The commands run as the caller or, if a table is given as "owner_of", as its owner, then
-- only those for which "by_owner" is true, if it is given.  The locks are always the caller's.
CREATE FUNCTION snowflake_admin.try_again(commands text[], relations regclass[], tries integer,
	mode text DEFAULT 'ACCESS EXCLUSIVE', owner_of regclass DEFAULT NULL, by_owner boolean[] DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	blocker record;
	waiting integer;
	-- The weakest lock that is in the way of the mode, or without one of what the commands lock, or
	-- if there are none of the first locks
	weakest text := CASE WHEN mode = 'ACCESS EXCLUSIVE' OR mode IS NULL AND commands <> '{}'
		THEN 'AccessShareLock'
		WHEN mode IN ('SHARE', 'SHARE ROW EXCLUSIVE') THEN 'RowExclusiveLock'
		WHEN mode = 'ROW EXCLUSIVE' THEN 'ShareLock'
		WHEN mode = 'ACCESS SHARE' THEN 'AccessExclusiveLock'
			ELSE 'ShareUpdateExclusiveLock' END;
BEGIN
	FOR try IN 1 .. tries LOOP
		-- Neither could end before the other.  Another try would make one of both a deadlock's victim.
		waiting := waits_for_us(relations, weakest);
		IF waiting IS NOT NULL THEN
			RAISE lock_not_available USING
				MESSAGE = format('session %s has locked a table, and waits for this transaction to end', waiting),
				DETAIL = 'It may build an index CONCURRENTLY, or be another command of snowflake_admin.',
				HINT = 'Call it again when that has ended.';
		END IF;
		BEGIN
			PERFORM try_commands(commands, relations, mode, try % 2 = 0, owner_of, by_owner);
			RETURN;
		EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
			SELECT * INTO blocker FROM blocker(relations, weakest);
		END;
		IF try < tries THEN
			PERFORM pg_sleep(least(0.05 * try * (0.5 + random()), 2));
		END IF;
	END LOOP;
	RAISE lock_not_available USING
		MESSAGE = format('could not get the locks in %s, and changed nothing in this step',
			CASE tries WHEN 1 THEN 'one try' ELSE tries || ' tries' END),
		DETAIL = coalesce(blocker.description, 'No other transaction is in the way at the moment.'),
		HINT = coalesce('Call it again when that transaction has ended, or with more tries. ' || blocker.remedy,
			'Call it again, perhaps with more tries.');
END
$$;
COMMENT ON FUNCTION snowflake_admin.try_again IS 'for executing commands under locks that are tried for';

-- Show commands, and execute them in this way.
CREATE FUNCTION snowflake_admin.run(commands text[], relations regclass[], tries integer, dry_run boolean,
	mode text DEFAULT 'ACCESS EXCLUSIVE', owner_of regclass DEFAULT NULL, by_owner boolean[] DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	PERFORM require_tries(tries);
	PERFORM show(commands, owner_of, by_owner);
	IF NOT dry_run THEN
		PERFORM try_again(commands, relations, tries, mode, owner_of, by_owner);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.run IS 'for showing commands, and executing them under locks that are tried for';

-- Keep others from changing tables until the transaction ends, because the next commands depend
-- on what these are.  Without a mode, nobody who reads or writes waits for that.
CREATE FUNCTION snowflake_admin.lock(tables regclass[], tries integer, dry_run boolean, mode text DEFAULT NULL)
RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT run('{}', tables, tries, dry_run, mode)
$$;
COMMENT ON FUNCTION snowflake_admin.lock IS 'for keeping tables as they are until the transaction ends';

-- Keep the names of tables until the transaction ends and, for a superuser, those of the schemas of
-- tables and sequences.  Commands are composed of these names, and run later.  A command that
-- names a sequence which its owner has just renamed fails, and so does the transaction.
CREATE FUNCTION snowflake_admin.keep_names(relations oid[], tries integer) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT lock(ARRAY(SELECT oid::regclass FROM pg_class
		WHERE oid = ANY (relations) AND pg_has_role(relowner, 'USAGE')), tries, false, 'ACCESS SHARE')
$$;
COMMENT ON FUNCTION snowflake_admin.keep_names IS 'for keeping the names by which commands will be composed';

-- Keep privileges on a table and its columns, or on a sequence and how that is defined, as they are until
-- the transaction ends.  Only the owner may call this.  Whoever is changing them is waited for, and
-- whoever does it later waits and, if this transaction commits, fails.
CREATE FUNCTION snowflake_admin.keep_privileges(relation oid) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_keep_privileges' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_admin.keep_privileges(oid) IS 'for granting on another object what is granted on one';

-- The same for those of some relations of which the caller may do what the owner may
CREATE FUNCTION snowflake_admin.keep_privileges(relations oid[]) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT keep_privileges(oid) FROM pg_class WHERE oid = ANY (relations) AND pg_has_role(relowner, 'USAGE')
	ORDER BY oid
$$;
COMMENT ON FUNCTION snowflake_admin.keep_privileges(oid[]) IS 'for carrying over all privileges and no others';

-- Lock the turn of a work on a table until the transaction ends.  Without "wait", returns false
-- if another session has it.  Only the table's owner may call this.  pg_locks shows the lock as
-- an advisory one, with objsubid 3, which no function of PostgreSQL can take.
CREATE FUNCTION snowflake_admin.lock_turn(work integer, tab oid, wait boolean) RETURNS boolean
AS 'MODULE_PATHNAME', 'snowflake_lock_turn' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_admin.lock_turn IS 'for taking the turn of a work on a table';

-- Take the turn of a work on tables until the transaction ends, or raise an error that names the
-- session that does this work on one of them, or the prepared transaction that has done so.
--
-- The turn ends with each transaction, so that an error leaves nothing behind in a pooled
-- session.  A session that is "going_on" takes the turn again after each commit, and waits for it.
-- A session that has just been called may get the turn between two transactions of another one.
-- So it sleeps for 0.1 s, in which the other one begins to wait, and raises the error if it does.
--
-- All sessions take the turns of several tables in the same order.  A table of another
-- owner, for which the command is refused, needs none.
CREATE FUNCTION snowflake_admin.take_turn(work text, relations oid[], going_on boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	class integer := hashtext(work) & 2147483647;
	tables oid[] := ARRAY(SELECT oid FROM pg_class
		WHERE oid = ANY (relations) AND pg_has_role(relowner, 'USAGE') ORDER BY oid);
	busy regclass;
	other record;
BEGIN
	IF going_on THEN
		PERFORM lock_turn(class, t, true) FROM unnest(tables) AS t;
		RETURN;
	END IF;
	busy := min(t) FILTER (WHERE NOT lock_turn(class, t, false)) FROM unnest(tables) AS t;
	PERFORM pg_sleep(CASE WHEN busy IS NULL THEN 0.1 ELSE 0 END);
	SELECT l.pid, l.objid::regclass AS tab, x.gid, x.owner INTO other
	FROM pg_locks AS l LEFT JOIN LATERAL prepared_transaction(l.virtualtransaction) AS x ON l.pid IS NULL
	WHERE l.locktype = 'advisory' AND l.classid = class::oid AND l.objid = ANY (tables) AND l.objsubid = 3
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND l.pid IS DISTINCT FROM pg_backend_pid()
	ORDER BY l.granted DESC LIMIT 1;
	IF other.gid IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('prepared transaction "%s" of role "%s" keeps %s from table %s',
				other.gid, other.owner, work, other.tab),
			HINT = format('That role or a superuser can end it: ROLLBACK PREPARED %L. Then call this again.',
				other.gid);
	ELSIF FOUND OR busy IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('%s works on table %s in process %s', work, coalesce(other.tab, busy),
				coalesce(other.pid::text, 'that has just ended')),
			HINT = 'Wait for it to end, then call it again to see that nothing is left to do.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.take_turn IS 'for letting one session at a time do a work on a table';

-- Keep this extension from being dropped until the transaction ends or, "beyond" it, until a call of
-- release_extension() or an error.  Whoever has created the extension may drop it, and create functions
-- in its place, which the next statement of a command that is running would call.
CREATE FUNCTION snowflake_admin.keep_extension(beyond boolean) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_keep_extension' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_admin.keep_extension IS 'for calling no function of somebody else';

CREATE FUNCTION snowflake_admin.release_extension() RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_release_extension' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_admin.release_extension IS 'for the end of a command that commits';

-- The message of the error that COMMIT raises in a function, in the session's language
CREATE FUNCTION snowflake_admin.commit_error() RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	COMMIT;
EXCEPTION WHEN invalid_transaction_termination THEN
	RETURN SQLERRM;
END
$$;
COMMENT ON FUNCTION snowflake_admin.commit_error IS 'for telling a transaction block from a subtransaction';

-- Is the caller in a transaction block, or in a function?  COMMIT fails here in any case, because
-- of the subtransaction, but in a transaction block with another message.
CREATE PROCEDURE snowflake_admin.look_for_block(INOUT in_block boolean)
LANGUAGE plpgsql AS $$
BEGIN
	COMMIT;
EXCEPTION WHEN invalid_transaction_termination THEN
	in_block := SQLERRM OPERATOR(pg_catalog.=) snowflake_admin.commit_error();
END
$$;
COMMENT ON PROCEDURE snowflake_admin.look_for_block IS 'for telling whether a command is in a transaction block';

-- Call a procedure that is part of its caller's transaction, given as a CALL with the number of tries in
-- place of %s.  In a transaction block, whoever needs locks that the transaction has taken before
-- waits while it tries.  So unless told how often, it tries less often there, and says so.
CREATE PROCEDURE snowflake_admin.call_in_transaction(command text, tries integer)
LANGUAGE plpgsql AS $$
DECLARE
	in_block boolean;
	detail pg_catalog.text;
BEGIN
	CALL snowflake_admin.look_for_block(in_block);
	PERFORM snowflake_admin.keep_extension(false);
	BEGIN
		EXECUTE pg_catalog.format(command, COALESCE(tries, CASE WHEN in_block THEN 3 ELSE 30 END)::pg_catalog.text);
	EXCEPTION WHEN lock_not_available THEN
		IF NOT in_block THEN
			RAISE;
		END IF;
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
		RAISE lock_not_available USING
			MESSAGE = SQLERRM,
			DETAIL = detail,
			HINT = COALESCE(CASE WHEN tries IS NULL THEN 'Call it in its own transaction, where it tries longer.' END,
				'Call it in its own transaction.') OPERATOR(pg_catalog.||)
				' In this one, others wait for the locks that earlier commands have taken.';
	END;
END
$$;
COMMENT ON PROCEDURE snowflake_admin.call_in_transaction IS 'for trying less often in a transaction block';

-- Raise an error in a transaction block.
CREATE PROCEDURE snowflake_admin.require_no_transaction(caller text)
LANGUAGE plpgsql AS $$
DECLARE
	in_block boolean;
BEGIN
	CALL snowflake_admin.look_for_block(in_block);
	IF in_block THEN
		RAISE invalid_transaction_termination USING
			MESSAGE = pg_catalog.format('%s cannot run inside a transaction block', caller),
			HINT = 'Call it alone, because it commits after each step: not after BEGIN, not in a function, and '
				'not in one query string with another statement.';
	END IF;
END
$$;
COMMENT ON PROCEDURE snowflake_admin.require_no_transaction IS 'for refusing a command that commits where it could not';

-- An error in a transaction of the caller's that is not READ COMMITTED, for a command that is part
-- of it.  What this reads after it got a lock would be what others had committed before the
-- transaction's first statement, and what they committed later would be lost.
CREATE FUNCTION snowflake_admin.require_read_committed(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('%s cannot run in a transaction that is %s', name,
				current_setting('transaction_isolation')),
			DETAIL = 'It would not see what others commit while it waits for its locks.',
			HINT = 'Call it after BEGIN ISOLATION LEVEL READ COMMITTED, and then COMMIT.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_read_committed IS 'for refusing a transaction that has its own snapshot';

-- End a transaction of a command that commits, and begin the next one.  That is READ COMMITTED,
-- whatever the default is: what a command reads after it got a lock is what others had committed
-- before.  It looks up no name in the caller's search_path.
CREATE PROCEDURE snowflake_admin.next_transaction()
LANGUAGE plpgsql AS $$
BEGIN
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
END
$$;
COMMENT ON PROCEDURE snowflake_admin.next_transaction IS 'for the transactions of a command that commits';

-- Begin a command that commits, or raise an error in a transaction block.  The first transaction
-- ends here, because the CALL has taken its snapshot.
CREATE PROCEDURE snowflake_admin.begin_command(name text)
LANGUAGE plpgsql AS $$
BEGIN
	CALL snowflake_admin.require_no_transaction(name);
	PERFORM snowflake_admin.keep_extension(true);
	CALL snowflake_admin.next_transaction();
END
$$;
COMMENT ON PROCEDURE snowflake_admin.begin_command IS 'for the beginning of a command that commits';

-- End it.  COMMIT is the last thing that it does, so that neither its search_path nor another of its
-- settings lasts in the caller's DO block or procedure, and the extension is kept until then.
CREATE PROCEDURE snowflake_admin.end_command()
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM snowflake_admin.keep_extension(false);
	PERFORM snowflake_admin.release_extension();
	COMMIT;
END
$$;
COMMENT ON PROCEDURE snowflake_admin.end_command IS 'for the end of a command that commits';

-- Say how far a long step is: always in the session's application_name, and every five seconds in
-- a NOTICE.  Returns the time of the last NOTICE, which the next call takes as "reported".
CREATE FUNCTION snowflake_admin.progress(step text, done bigint, total bigint, begun timestamptz,
	reported timestamptz) RETURNS timestamptz
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	share double precision := least(done::double precision / greatest(total, 1), 1);
	line text := format('%s: %s of about %s rows, %s %%', step, done, greatest(total, done),
		floor(100 * share));
BEGIN
	PERFORM set_config('application_name', line::name::text, true);	-- shortened without a NOTICE
	IF clock_timestamp() < reported + interval '5 seconds' THEN
		RETURN reported;
	END IF;
	RAISE NOTICE '%, % left', line, CASE WHEN share > 0
		THEN date_trunc('second', (clock_timestamp() - begun) * (1 / share - 1))::text
			ELSE 'unknown time' END;
	RETURN clock_timestamp();
END
$$;
COMMENT ON FUNCTION snowflake_admin.progress IS 'for saying how far a long step is';
