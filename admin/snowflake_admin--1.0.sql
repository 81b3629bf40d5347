/* snowflake_admin--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_admin" to load this file. \quit

-- Which bits of an ID are what, only the extension "snowflake" knows.
--
-- No name is looked up in the caller's search_path.  Functions have their own;
-- procedures that commit may not have one.  So each of their transactions begins
-- with SET LOCAL, and their declarations, which are compiled before that, name the
-- schema of types that are no keywords.  Functions of "snowflake" may be in any
-- schema: they are called in bodies that are BEGIN ATOMIC, which name them for
-- good, and in commands by the schema's present name.

--
-- What the procedures share
--

CREATE FUNCTION snowflake_admin_schema() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
	WHERE extname = 'snowflake';
END;

-- Who holds a lock on one of these relations that is at least as strong as "weakest"?
-- Asked after a command has given up, it may name a session that came later, or none.
CREATE FUNCTION snowflake_admin_blocker(relations regclass[], weakest text)
RETURNS TABLE (description text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN l.pid IS NULL
		THEN format('A prepared transaction (see pg_prepared_xacts) has used %s.', l.relation::regclass)
		ELSE format('Process %s has used %s in a transaction since %s; its last query begins: %s',
			l.pid, l.relation::regclass,
			coalesce(date_trunc('second', a.xact_start)::text, 'an unknown time'),
			left(coalesce(a.query, 'unknown'), 60)) END,
		'A member of pg_signal_backend can end its session by SELECT pg_terminate_backend(' || l.pid || ').'
	FROM (VALUES ('{AccessShareLock,RowShareLock,RowExclusiveLock,ShareUpdateExclusiveLock,ShareLock,'
		'ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}'::text[])) AS lock (modes),
		pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
	WHERE l.relation = ANY (relations) AND l.database = (SELECT oid FROM pg_database
		WHERE datname = current_database())
		AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
		AND array_position(modes, l.mode) >= array_position(modes, weakest)
	ORDER BY a.xact_start NULLS FIRST LIMIT 1
$$;

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
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = 0 AS $$
DECLARE
	tables text[] := ARRAY(
		SELECT CASE WHEN relkind = 'p' AND mode IS NULL THEN 'ONLY ' ELSE '' END || r::text
		FROM unnest(relations) WITH ORDINALITY AS u (r, n) JOIN pg_class ON oid = r
		WHERE relkind IN ('r', 'p', 'v') ORDER BY CASE WHEN backwards THEN -n ELSE n END);
	deadlock_ms integer := extract(epoch FROM current_setting('deadlock_timeout')::interval) * 1000;
	wait_ms integer := greatest(10, least(300, deadlock_ms * 9 / 10 / greatest(1, cardinality(relations))));
	command text;
BEGIN
	PERFORM set_config('lock_timeout', (deadlock_ms + 500)::text, true);
	FOREACH command IN ARRAY tables LOOP
		EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', command);
	END LOOP;
	PERFORM set_config('lock_timeout', wait_ms::text, true);
	IF mode IS NOT NULL THEN
		FOREACH command IN ARRAY tables LOOP
			EXECUTE format('LOCK TABLE %s IN %s MODE', command, mode);
			-- Whoever holds the next lock may already wait for this one, so that more
			-- waiting is in vain.  Mostly be short, but now and then long enough for a
			-- transaction that needs its time.
			PERFORM set_config('lock_timeout', greatest(10,
				wait_ms * (0.1 + 0.9 * random() ^ 3))::integer::text, true);
		END LOOP;
		PERFORM set_config('lock_timeout', wait_ms::text, true);
	END IF;
	FOREACH command IN ARRAY commands LOOP
		EXECUTE command;
	END LOOP;
END
$$;

-- Show commands, and execute them under locks that are tried for again and again,
-- with growing pauses in which everybody else goes on.  The locks last until the caller's
-- transaction ends.  Without a mode, the commands themselves lock what they need.
-- Without commands, too, it keeps others from changing the tables, on which depends what
-- the next commands are to be.  Nobody who reads or writes waits for that.
CREATE FUNCTION snowflake_admin_run(commands text[], relations regclass[], tries integer, dry_run boolean,
	mode text DEFAULT 'ACCESS EXCLUSIVE') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	blocker record;
	command text;
	-- The weakest lock that is in the way of the mode, or of the first locks
	weakest text := CASE WHEN mode = 'ACCESS EXCLUSIVE' OR mode IS NULL AND commands <> '{}'
		THEN 'AccessShareLock'
		WHEN mode IN ('SHARE', 'SHARE ROW EXCLUSIVE') THEN 'RowExclusiveLock'
			ELSE 'ShareUpdateExclusiveLock' END;
BEGIN
	IF coalesce(tries, 0) < 1 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('tries must be at least 1, not %s', coalesce(tries::text, 'null'));
	END IF;
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
			SELECT * INTO blocker FROM @extschema@.snowflake_admin_blocker(relations, weakest);
		END;
		IF try < tries THEN
			PERFORM pg_sleep(least(0.05 * try * (0.5 + random()), 2));
		END IF;
	END LOOP;
	RAISE lock_not_available USING
		MESSAGE = format('could not get the locks in %s, and changed nothing in this step',
			CASE tries WHEN 1 THEN 'one try' ELSE tries || ' tries' END),
		DETAIL = coalesce(blocker.description, 'No other transaction is in the way in this moment.'),
		HINT = coalesce('Call it again when that transaction has ended, or with more tries. ' || blocker.remedy,
			'Call it again, perhaps with more tries.');
END
$$;

-- One session at a time does a work on a table.  The lock ends with each transaction, so
-- that an error leaves nothing behind in a pooled session.  A session that goes on
-- waits for it.  One that has just been called may get it between two transactions
-- of another one, so it looks for that one's waiting, and leaves the table to it.
CREATE FUNCTION snowflake_admin_take_turn(work text, relations oid[], going_on boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	class bigint := hashtext(work) & 2147483647;
	free boolean;
	other record;
BEGIN
	IF going_on THEN
		PERFORM pg_advisory_xact_lock(class << 32 | r::bigint) FROM unnest(relations) AS r;
		RETURN;
	END IF;
	free := bool_and(pg_try_advisory_xact_lock(class << 32 | r::bigint)) FROM unnest(relations) AS r;
	PERFORM pg_sleep(CASE WHEN free THEN 0.1 ELSE 0 END);
	SELECT l.pid, l.objid::regclass AS tab INTO other FROM pg_locks AS l
	WHERE l.locktype = 'advisory' AND l.classid = class::oid AND l.objid = ANY (relations) AND l.objsubid = 1
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND l.pid <> pg_backend_pid();
	IF FOUND OR NOT free THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('%s works on table %s in process %s', work,
				coalesce(other.tab, relations[1]::regclass),
				coalesce(other.pid::text, 'that has just ended')),
			HINT = 'Wait for it to end, then call it again to see that nothing is left to do.';
	END IF;
END
$$;

-- The message of an error that COMMIT raises in functions, in the session's language
CREATE FUNCTION snowflake_admin_commit_error() RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	COMMIT;
EXCEPTION WHEN invalid_transaction_termination THEN
	RETURN SQLERRM;
END
$$;

-- Raise an error in a transaction block.  COMMIT fails here in any case, because
-- of the subtransaction, but in a transaction block with another message.
CREATE PROCEDURE snowflake_admin_require_no_transaction(caller text)
LANGUAGE plpgsql AS $$
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

CREATE FUNCTION snowflake_admin_grant_commands(acl aclitem[], columns text, object text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT format('GRANT %s%s ON %s TO %s%s', privilege_type, columns, object,
		CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
		CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
	FROM aclexplode(acl)
$$;

-- Copies only the options that users set.  Since 17.12 the server has its own in attoptions, too.
CREATE FUNCTION snowflake_admin_column_commands(rel regclass, num smallint, new_tab text, new_col name)
RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT format('ALTER TABLE %s ALTER %I SET %s', new_tab, new_col, setting)
	FROM pg_attribute, LATERAL (
		SELECT 'STATISTICS ' || attstattarget WHERE attstattarget >= 0
		UNION ALL SELECT format('(%s)', string_agg(option, ', ')) FROM unnest(attoptions) AS option
		WHERE option LIKE 'n\_distinct%' HAVING count(*) > 0) AS s (setting)
	WHERE attrelid = rel AND attnum = num
$$;

-- The commands that give a column an identity like the one that a sequence serves, which
-- has been renamed.  The new sequence goes on from its value.  MAXVALUE of a narrower
-- type becomes that of bigint.
CREATE FUNCTION snowflake_admin_identity_like(sequence oid, renamed text, new_tab text, new_col name,
	new_sequence text)
RETURNS TABLE (n integer, command text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH s AS (
		SELECT pg_sequence.*, attidentity, relacl, obj_description(seqrelid, 'pg_class') AS comment
		FROM pg_sequence JOIN pg_class AS c ON c.oid = seqrelid
		JOIN pg_depend ON classid = 'pg_class'::regclass AND objid = seqrelid AND deptype = 'i'
		JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
		WHERE seqrelid = sequence
	)
	SELECT 1, format('ALTER TABLE %s ALTER %I ADD GENERATED %s AS IDENTITY '
		'(SEQUENCE NAME %s INCREMENT %s %s %s START %s CACHE %s %s)', new_tab, new_col,
		CASE attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, new_sequence, seqincrement,
		CASE WHEN seqincrement < 0 AND seqmin IN (-32768, -2147483648) THEN 'NO MINVALUE'
			ELSE 'MINVALUE ' || seqmin END,
		CASE WHEN seqincrement > 0 AND seqmax IN (32767, 2147483647) THEN 'NO MAXVALUE'
			ELSE 'MAXVALUE ' || seqmax END,
		seqstart, seqcache, CASE WHEN seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END)
	FROM s
	UNION ALL SELECT 2, format('SELECT pg_catalog.setval(%L, last_value, is_called) FROM %s', new_sequence,
		renamed) FROM s
	UNION ALL SELECT 3, g FROM s, @extschema@.snowflake_admin_grant_commands(relacl, '',
		'SEQUENCE ' || new_sequence) AS g
	UNION ALL SELECT 4, format('COMMENT ON SEQUENCE %s IS ', new_sequence) || quote_literal(comment) FROM s
$$;

-- Say how far a long step is.  Returns when it last did so in a NOTICE.
CREATE FUNCTION snowflake_admin_progress(step text, done bigint, total bigint, begun timestamptz,
	reported timestamptz) RETURNS timestamptz
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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

--
-- What makes IDs
--

-- The built-in layouts, and the MAXVALUE of their sequences.  Some have no time.
CREATE FUNCTION snowflake_admin_layouts()
RETURNS TABLE (name text, max_value bigint, epoch timestamptz, tick interval, ids_per_tick bigint,
	expires timestamptz)
LANGUAGE sql STABLE PARALLEL RESTRICTED
BEGIN ATOMIC
	SELECT name, max_value, epoch, tick, ids_per_tick, expires FROM snowflake_layouts();
END;

-- What belongs to the two extensions, of which another schema may have a namesake
CREATE FUNCTION snowflake_admin_members()
RETURNS TABLE (extension name, class oid, object oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT extname, classid, objid FROM pg_extension AS e
	JOIN pg_depend ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND deptype = 'e'
	WHERE extname IN ('snowflake', 'snowflake_admin')
$$;

CREATE FUNCTION snowflake_admin_next_id_seq() RETURNS regclass
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT oid FROM @extschema@.snowflake_admin_members() JOIN pg_class ON oid = object
	WHERE extension = 'snowflake' AND class = 'pg_class'::regclass AND relname = 'next_id_seq'
$$;

-- The functions that make IDs or set a shard
CREATE FUNCTION snowflake_admin_makers()
RETURNS TABLE (name text, parameters text[])
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	VALUES ('next_id', '{shard,sequence,layout}'::text[]),
		('next_ids', '{shard,count,sequence,layout}'),
		('snowflake_id', '{ts,shard,sequence_number,layout}'),
		('snowflake_backdated_id', '{ts,shard,layout}'),
		('snowflake_set_shard', '{shard}')
$$;

-- The beginning of a call of one of them, as a regular expression
CREATE FUNCTION snowflake_admin_call_pattern() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT '\m(?:' || string_agg(name, '|') || ')"?\s*\(' FROM @extschema@.snowflake_admin_makers()
$$;

-- An object that has code, in the same words for every search_path and language
CREATE FUNCTION snowflake_admin_place(class oid, object oid) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN class = 'pg_attrdef'::regclass THEN (
			SELECT 'column ' || (pg_identify_object('pg_class'::regclass, adrelid, adnum)).identity
			FROM pg_attrdef WHERE oid = object)
		WHEN class = 'pg_type'::regclass THEN 'domain ' || o.identity
		WHEN class = 'pg_rewrite'::regclass THEN (
			SELECT CASE rulename WHEN '_RETURN' THEN concat_ws(' ', v.type, v.identity)
				ELSE 'rule ' || o.identity END
			FROM pg_rewrite, pg_identify_object('pg_class'::regclass, ev_class, 0) AS v WHERE oid = object)
		ELSE concat_ws(' ', o.type, o.identity) END
	FROM pg_identify_object(class, object, 0) AS o
$$;

-- The text of a literal, whatever it is cast to, or NULL for everything else.  In
-- a command that is itself in quotation marks, those of the literal are doubled.
CREATE FUNCTION snowflake_admin_literal(argument text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT replace(btrim(bare, E' \t\r\n()'''), '''''', '''')
	FROM regexp_replace(argument, '::\s*(?:[\w.]|"[^"]*")+', '', 'g') AS bare
	WHERE bare ~ '^[\s(]*(?:-?\d+|''(?:[^'']|'''')*''|''''[^'']*'''')[\s)]*$'
$$;

CREATE FUNCTION snowflake_admin_integer(literal text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN literal ~ '^\s*-?\d{1,10}\s*$' THEN
		CASE WHEN literal::bigint BETWEEN -2147483648 AND 2147483647 THEN literal::integer END END
$$;

-- The calls in code that make IDs or set a shard, with those of their arguments
-- that matter here.  The code is SQL or any other language, so this looks for names,
-- parentheses and quotation marks only.  A call whose parentheses do not end, or
-- are nested deeper than five, is known by its beginning.
CREATE FUNCTION snowflake_admin_calls(code text)
RETURNS TABLE (call text, function text, complete boolean, shard text, sequence text, layout text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH patterns (beginning, inside) AS (
		SELECT @extschema@.snowflake_admin_call_pattern(),
			repeat('(?:[^()''"]|''[^'']*''|"[^"]*"|\(', 5) || '[^()]*' || repeat('\))*', 5)
	), calls AS (
		SELECT n, lower(substring(piece, '^\w+')) AS function, left(piece, 60) AS excerpt,
			substring(piece, '^\w+"?\s*\(' || inside || '\)') AS call
		FROM patterns,
			regexp_split_to_table(code, '(?=' || beginning || ')', 'i') WITH ORDINALITY AS p (piece, n)
		WHERE piece ~* ('^' || beginning)
	), arguments AS (
		SELECT calls.n, regexp_replace(a[1], '^\s*"?\w+"?\s*(?:=>|:=)\s*', '') AS value,
			coalesce(lower(substring(a[1], '^\s*"?(\w+)"?\s*(?:=>|:=)')), parameters[position]) AS parameter
		FROM patterns, calls JOIN @extschema@.snowflake_admin_makers() AS m ON m.name = function,
			regexp_matches(substring(call, '\((.*)\)$'),
				'(?:[^(),''"]|''[^'']*''|"[^"]*"|\(' || inside || '\))+', 'g')
			WITH ORDINALITY AS a (a, position)
	)
	SELECT coalesce(call, excerpt), function, call IS NOT NULL,
		max(value) FILTER (WHERE parameter = 'shard'),
		max(value) FILTER (WHERE parameter = 'sequence'),
		max(value) FILTER (WHERE parameter = 'layout')
	FROM calls LEFT JOIN arguments USING (n)
	GROUP BY n, function, call, excerpt
$$;

-- The layout of the IDs that a default makes: the one that it names, or that of its
-- sequence, or next_id_seq's.  NULL if the sequence serves none that is built in.
CREATE FUNCTION snowflake_admin_layout_of(expression text, sequence regclass) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(
		(SELECT min(@extschema@.snowflake_admin_literal(layout))
			FROM @extschema@.snowflake_admin_calls(expression)),
		CASE WHEN sequence IS NULL THEN 'instagram' ELSE (
			SELECT name FROM pg_sequence JOIN @extschema@.snowflake_admin_layouts() ON max_value = seqmax
			WHERE seqrelid = sequence) END)
$$;

-- Objects whose expression or parsed body calls something that makes IDs
CREATE FUNCTION snowflake_admin_callers()
RETURNS TABLE (class oid, object oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH members AS MATERIALIZED (SELECT * FROM @extschema@.snowflake_admin_members())
	SELECT DISTINCT classid, objid
	FROM members AS m JOIN pg_proc AS p ON class = 'pg_proc'::regclass AND p.oid = object
	JOIN @extschema@.snowflake_admin_makers() AS f ON f.name = proname
	JOIN pg_depend ON refclassid = class AND refobjid = object AND deptype = 'n'
	WHERE extension = 'snowflake'
	AND (classid, objid) NOT IN (SELECT own.class, own.object FROM members AS own)
$$;

-- The code of functions that could make IDs or set a shard.  A constant in a parsed body
-- is stored as a list of its bytes.  PostgreSQL's own functions have OIDs below 16384.
CREATE FUNCTION snowflake_admin_function_code()
RETURNS TABLE (function oid, code text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
	WITH callers AS MATERIALIZED (
		SELECT object FROM @extschema@.snowflake_admin_callers() WHERE class = 'pg_proc'::regclass
	)
	SELECT p.oid, concat_ws(E'\n', 'SET snowflake.shard TO ' || setting,
		CASE WHEN parsed THEN pg_get_expr(proargdefaults, 0) END,
		CASE WHEN prosqlbody IS NULL THEN prosrc WHEN parsed THEN pg_get_function_sqlbody(p.oid) END)
	FROM pg_proc AS p
	CROSS JOIN LATERAL (
		SELECT (SELECT split_part(c, '=', 2) FROM unnest(proconfig) AS c WHERE c ILIKE 'snowflake.shard=%'),
			p.oid IN (SELECT object FROM callers) OR prosqlbody::text LIKE '%' || array_to_string(
				ARRAY(SELECT ascii(c) FROM string_to_table('snowflake.shard', NULL) AS c), ' ') || '%'
	) AS x (setting, parsed)
	WHERE p.oid >= 16384 AND (parsed OR setting IS NOT NULL
		OR prosrc ~* ((SELECT @extschema@.snowflake_admin_call_pattern()) || '|snowflake\.shard'))
	AND p.oid NOT IN (
		SELECT object FROM @extschema@.snowflake_admin_members() WHERE class = 'pg_proc'::regclass)
$$;

-- Settings of snowflake.shard that sessions in this database begin with.  A role
-- that may not read pg_file_settings sees what its own session began with, which
-- pg_settings knows only once the library is loaded: any call of "snowflake" does that.
CREATE FUNCTION snowflake_admin_shard_settings()
RETURNS TABLE (place text, value text)
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM FROM @extschema@.snowflake_admin_layouts();
	RETURN QUERY SELECT 'setting of ' || coalesce(nullif(concat_ws(' in ',
			CASE WHEN setrole <> 0 THEN format('role %I', pg_get_userbyid(setrole)) END,
			CASE WHEN setdatabase <> 0 THEN format('database %I', current_database()) END), ''), 'all roles'),
		split_part(setting, '=', 2)
	FROM pg_db_role_setting, unnest(setconfig) AS setting
	WHERE setting ILIKE 'snowflake.shard=%'
	AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()));
	IF has_table_privilege('pg_file_settings', 'SELECT')
		AND has_function_privilege('pg_show_all_file_settings()', 'EXECUTE') THEN
		RETURN QUERY SELECT 'file ' || sourcefile, setting FROM pg_file_settings
		WHERE name ILIKE 'snowflake.shard' AND applied;
	ELSE
		RETURN QUERY SELECT coalesce('file ' || sourcefile, 'configuration file'), reset_val FROM pg_settings
		WHERE name = 'snowflake.shard' AND source = 'configuration file';
	END IF;
	RETURN QUERY SELECT source, reset_val FROM pg_settings
	WHERE name = 'snowflake.shard' AND source IN ('command line', 'environment variable');
END
$$;

-- Sequences by their names in code: without a schema, one is known if no other has its name.
CREATE FUNCTION snowflake_admin_sequence_names()
RETURNS TABLE (name text, oid oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT name, min(oid) FROM pg_class, unnest(ARRAY[oid::regclass::text, quote_ident(relname)]) AS name
	WHERE relkind = 'S' GROUP BY name HAVING count(DISTINCT oid) = 1
$$;

-- Only what depends on our functions is turned into text, since that locks the tables
-- of views.  For the default of a column, pg_get_expr() need not know, and lock, the
-- table, unless the column is generated.  A partition or child table that has its parent's
-- default is no place of its own.
CREATE FUNCTION snowflake_uses()
RETURNS TABLE (place text, shard integer, sequence regclass, layout text, code text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off AS $$
	WITH callers AS MATERIALIZED (SELECT * FROM @extschema@.snowflake_admin_callers()),
	columns AS MATERIALIZED (
		SELECT class, object, adrelid, attname,
			ltrim(pg_get_expr(adbin, CASE attgenerated WHEN '' THEN 0 ELSE adrelid END), E'\n') AS code
		FROM callers JOIN pg_attrdef AS d ON class = 'pg_attrdef'::regclass AND object = d.oid
		JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
	), pieces AS MATERIALIZED (
		SELECT class, object, code FROM columns AS c
		WHERE NOT EXISTS (
			SELECT FROM pg_inherits JOIN columns AS parent ON parent.adrelid = inhparent
			WHERE inhrelid = c.adrelid AND parent.attname = c.attname AND parent.code = c.code)
		UNION ALL SELECT class, object, ltrim(pg_get_expr(typdefaultbin, 0), E'\n')
		FROM callers JOIN pg_type AS t ON class = 'pg_type'::regclass AND object = t.oid
		UNION ALL
		SELECT class, object, pg_get_ruledef(object) FROM callers WHERE class = 'pg_rewrite'::regclass
		UNION ALL SELECT 'pg_proc'::regclass, function, code FROM @extschema@.snowflake_admin_function_code()
	), calls AS MATERIALIZED (
		SELECT class, object, shard, layout, function,
			CASE WHEN class IN ('pg_attrdef'::regclass, 'pg_type'::regclass) THEN code ELSE call END AS code,
			CASE WHEN function NOT IN ('next_id', 'next_ids') OR NOT complete THEN NULL
				WHEN sequence IS NULL THEN (SELECT @extschema@.snowflake_admin_next_id_seq())
				ELSE s.oid END AS seq
		FROM pieces CROSS JOIN LATERAL @extschema@.snowflake_admin_calls(code)
		LEFT JOIN @extschema@.snowflake_admin_sequence_names() AS s
			ON s.name = @extschema@.snowflake_admin_literal(sequence)
	), places AS (
		SELECT @extschema@.snowflake_admin_place(class, object) AS place,
			@extschema@.snowflake_admin_literal(shard) AS shard, seq::regclass AS sequence, CASE
				WHEN calls.layout IS NOT NULL THEN @extschema@.snowflake_admin_literal(calls.layout)
				WHEN function IN ('snowflake_id', 'snowflake_backdated_id') THEN 'instagram'
				ELSE l.name END AS layout, code
		FROM calls LEFT JOIN pg_sequence ON seqrelid = seq
		LEFT JOIN @extschema@.snowflake_admin_layouts() AS l ON max_value = seqmax
		UNION ALL
		-- What sets snowflake.shard, and to which number if that is there.  Where the
		-- setting is only read or reset, nothing is returned.
		SELECT @extschema@.snowflake_admin_place(class, object),
			substring(m[2], '(?i)\.shard["'']*(?:::text)?\s*(?:=|,|to\M)\s*''*(-?\d+)'), NULL, NULL, m[2]
		FROM pieces, regexp_matches(code, '(current_setting\s*\(\s*''*|\mshow\s+"?|\mreset\s+"?)?('
			|| '\mset_config\s*\(\s*''+snowflake\.shard[^;)]{0,60}\)?|'
			|| '\mset\s+(?:local\s+|session\s+)?"?snowflake\.shard[^;'']{0,4}''*[^;''\n]{0,40}|'
			|| 'snowflake\.shard\M)', 'gi') AS m
		WHERE class = 'pg_proc'::regclass AND m[1] IS NULL
		UNION ALL SELECT place, value, NULL, NULL, 'snowflake.shard=' || value
		FROM @extschema@.snowflake_admin_shard_settings()
	)
	SELECT place, @extschema@.snowflake_admin_integer(p.shard) AS number, p.sequence, p.layout, p.code
	FROM places AS p
	ORDER BY place COLLATE "C", number, p.sequence::text COLLATE "C", p.code COLLATE "C"
$$;

COMMENT ON FUNCTION snowflake_uses() IS
'places of this database that make IDs or set a shard';

--
-- Keys
--

-- Columns that next_id() or nextval() fills by their own default or by that of their
-- domain.  That a default calls nextval() is not in pg_depend, only in the expression.
-- An old dump may name the sequence as a text, on which nothing depends.
CREATE FUNCTION snowflake_admin_filled()
RETURNS TABLE (tab oid, col int2, made_by text, sequence oid, expression text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
	WITH own AS MATERIALIZED (
		SELECT classid, objid
		FROM @extschema@.snowflake_admin_members()
		JOIN pg_proc AS p ON class = 'pg_proc'::regclass AND p.oid = object
		JOIN pg_depend ON refclassid = class AND refobjid = object
		WHERE extension = 'snowflake' AND proname = 'next_id'
	), defaults AS (
		SELECT 'pg_attrdef'::regclass::oid AS class, oid AS object,
			adrelid AS tab, adnum AS col, adbin AS tree
		FROM pg_attrdef
		UNION ALL SELECT 'pg_type'::regclass, t.oid, attrelid, attnum, typdefaultbin
		FROM pg_type AS t JOIN pg_attribute ON atttypid = t.oid AND NOT atthasdef AND attnum > 0
		WHERE typtype = 'd' AND typdefaultbin IS NOT NULL
	), fillers AS MATERIALIZED (
		SELECT *, (class, object) IN (SELECT * FROM own) AS is_own FROM defaults
		WHERE (class, object) IN (SELECT * FROM own)
		OR tree::text LIKE '%:funcid ' || 'nextval'::regproc::oid || ' %'
	), sequences AS (
		SELECT classid AS class, objid AS object, refobjid AS sequence
		FROM pg_depend JOIN pg_sequence ON seqrelid = refobjid
		WHERE refclassid = 'pg_class'::regclass AND deptype = 'n'
	)
	SELECT DISTINCT tab, col, CASE WHEN is_own THEN 'next_id' ELSE 'nextval' END,
		coalesce(sequence, CASE WHEN is_own THEN (SELECT @extschema@.snowflake_admin_next_id_seq()) END),
		pg_get_expr(tree, 0)
	FROM fillers LEFT JOIN sequences USING (class, object)
$$;

-- All keys but those that a partition or child table has from its parent, as they
-- move together with it.  Those that have not moved yet have the first numbers.
CREATE FUNCTION snowflake_admin_keys()
RETURNS TABLE (n bigint, tab oid, tab_name name, col int2, col_name name, type oid, made_by text,
	sequence oid, sequence_name name, expression text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off AS $$
	WITH found AS (
		SELECT * FROM @extschema@.snowflake_admin_filled()
		UNION ALL SELECT attrelid, attnum, 'GENERATED ' || CASE attidentity WHEN 'a' THEN 'ALWAYS'
			ELSE 'BY DEFAULT' END, objid, NULL
		FROM pg_attribute JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = attrelid
			AND refobjsubid = attnum AND classid = 'pg_class'::regclass AND deptype = 'i'
		WHERE attidentity <> ''
	), made AS MATERIALIZED (
		SELECT f.*, relname, attname, atttypid
		FROM found AS f
		JOIN pg_class AS c ON c.oid = tab AND relkind IN ('r', 'p', 'f') AND relpersistence <> 't'
		JOIN pg_attribute ON attrelid = tab AND attnum = col AND NOT attisdropped
	)
	SELECT row_number() OVER (ORDER BY made_by = 'next_id'),
		tab, m.relname, col, attname, atttypid, made_by, sequence, s.relname, expression
	FROM made AS m LEFT JOIN pg_class AS s ON s.oid = m.sequence
	WHERE NOT EXISTS (
		SELECT FROM pg_inherits JOIN made AS parent ON parent.tab = inhparent
		WHERE inhrelid = m.tab AND parent.attname = m.attname
		AND (parent.made_by = m.made_by OR parent.made_by <> 'next_id' AND m.made_by = 'nextval')
		AND coalesce(parent.sequence, 0) = coalesce(m.sequence, 0))
$$;

CREATE FUNCTION snowflake_admin_base_type(type oid) RETURNS oid
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH RECURSIVE base (oid, of_type) AS (
		SELECT oid, typbasetype FROM pg_type WHERE oid = type
		UNION ALL SELECT t.oid, t.typbasetype FROM base JOIN pg_type AS t ON t.oid = of_type
	)
	SELECT oid FROM base WHERE of_type = 0
$$;

-- Which columns are too small for the IDs of the n-th key: its own, and all that refer to it
-- or to one of its partitions.  A column that is one of a parent's is not named again.
CREATE FUNCTION snowflake_admin_too_small(tabs oid[], cols int2[])
RETURNS TABLE (n bigint, obstacle text, tab oid, col int2)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off AS $$
	WITH RECURSIVE links (tab, col, to_tab, to_col) AS MATERIALIZED (
		SELECT confrelid, f.col, conrelid, to_col
		FROM pg_constraint, unnest(confkey, conkey) AS f (col, to_col)
		WHERE contype = 'f' AND conparentid = 0
		UNION ALL SELECT inhparent, parent.attnum, inhrelid, child.attnum FROM pg_inherits
		JOIN pg_attribute AS parent ON parent.attrelid = inhparent AND parent.attnum > 0
		JOIN pg_attribute AS child ON child.attrelid = inhrelid AND child.attname = parent.attname
	), takers AS (
		SELECT * FROM unnest(tabs, cols) WITH ORDINALITY AS k (tab, col, n)
		UNION SELECT to_tab, to_col, n FROM takers JOIN links USING (tab, col)
	), small AS MATERIALIZED (
		SELECT t.*, atttypid, attname FROM takers AS t JOIN pg_attribute ON attrelid = tab AND attnum = t.col
		WHERE NOT @extschema@.snowflake_admin_is_id(@extschema@.snowflake_admin_base_type(atttypid))
	)
	SELECT n, format('%s is %s',
		(pg_identify_object('pg_class'::regclass, tab, col)).identity, format_type(atttypid, NULL)), tab, col
	FROM small AS s
	WHERE NOT EXISTS (
		SELECT FROM pg_inherits JOIN small AS parent ON parent.tab = inhparent
		WHERE inhrelid = s.tab AND parent.attname = s.attname AND parent.n = s.n)
$$;

-- What depends on a sequence.  A child table that has its parent's default does not count.
CREATE FUNCTION snowflake_admin_sequence_users()
RETURNS TABLE (sequence oid, class oid, object oid, tab oid, col int2)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH users AS MATERIALIZED (
		SELECT DISTINCT seqrelid, classid, objid, adrelid, adnum, attname
		FROM pg_depend JOIN pg_sequence ON seqrelid = refobjid
		LEFT JOIN (pg_attrdef AS d JOIN pg_attribute AS a ON attrelid = adrelid AND attnum = adnum)
			ON classid = 'pg_attrdef'::regclass AND objid = d.oid
		WHERE refclassid = 'pg_class'::regclass AND deptype = 'n'
	)
	SELECT seqrelid, classid, objid, adrelid, adnum FROM users AS u
	WHERE NOT EXISTS (
		SELECT FROM pg_inherits JOIN users AS parent ON parent.adrelid = inhparent
		WHERE inhrelid = u.adrelid AND parent.attname = u.attname AND parent.seqrelid = u.seqrelid)
	AND NOT EXISTS (	-- of the parent's identity
		SELECT FROM pg_inherits JOIN pg_attribute AS a ON attrelid = inhparent AND attidentity <> ''
		JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = attrelid AND refobjsubid = attnum
			AND classid = 'pg_class'::regclass AND deptype = 'i'
		WHERE inhrelid = u.adrelid AND a.attname = u.attname AND pg_depend.objid = u.seqrelid)
$$;

-- Functions that name the n-th sequence, or that ask for the last number of the n-th
-- table.  Nothing finds a name that a function composes.  The condition on the body is
-- for speed, as it leaves few functions to be searched for each of many names.
CREATE FUNCTION snowflake_admin_namers(sequence_names text[], table_names text[])
RETURNS TABLE (n bigint, function oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
	WITH functions AS MATERIALIZED (
		SELECT p.oid, body, body ~ 'lastval|pg_get_serial_sequence' AS asks_for_table
		FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang, lower(prosrc) AS body
		WHERE p.oid >= 16384 AND lanname NOT IN ('c', 'internal') AND prosqlbody IS NULL
		AND body ~ 'seq|(?:next|curr|set|last)val|last_value'
		AND p.oid NOT IN (
			SELECT object FROM @extschema@.snowflake_admin_members() WHERE class = 'pg_proc'::regclass)
	), names (name, n, of_table) AS MATERIALIZED (
		SELECT lower(s.name), s.n, false FROM unnest(sequence_names) WITH ORDINALITY AS s (name, n)
		UNION ALL SELECT lower(t.name), t.n, true FROM unnest(table_names) WITH ORDINALITY AS t (name, n)
	)
	SELECT DISTINCT n, f.oid
	FROM functions AS f JOIN names ON strpos(body, name) > 0 AND (asks_for_table OR NOT of_table)
	WHERE body ~ ('(?<!\w)' || regexp_replace(name, '(\W)', '\\\1', 'g') || '(?!\w)')
$$;

-- The last value of a sequence, or NULL if it has none or the caller may not read it
CREATE FUNCTION snowflake_admin_last_value(sequence regclass) RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN has_sequence_privilege(sequence, 'USAGE, SELECT')
		AND (relpersistence = 'p' OR NOT pg_is_in_recovery()) THEN pg_sequence_last_value(sequence) END
	FROM pg_class WHERE oid = sequence
$$;

CREATE FUNCTION snowflake_keys()
RETURNS TABLE (tab regclass, col name, type regtype, made_by text, sequence regclass, obstacle text)
LANGUAGE sql VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off AS $$
	WITH keys AS MATERIALIZED (SELECT * FROM @extschema@.snowflake_admin_keys()),
	movable AS MATERIALIZED (SELECT * FROM keys WHERE made_by <> 'next_id' ORDER BY n),
	arrays AS MATERIALIZED (
		SELECT array_agg(tab ORDER BY n) AS tabs, array_agg(tab_name::text ORDER BY n) AS tab_names,
			array_agg(col ORDER BY n) AS cols, array_agg(sequence_name::text ORDER BY n) AS sequence_names
		FROM movable
	), obstacles (n, obstacle) AS (
		SELECT s.n, s.obstacle FROM arrays, @extschema@.snowflake_admin_too_small(tabs, cols) AS s
		UNION ALL SELECT n, @extschema@.snowflake_admin_place(class, object) || ' uses its sequence'
		FROM movable AS m JOIN @extschema@.snowflake_admin_sequence_users() AS u USING (sequence)
		WHERE (u.tab, u.col) IS DISTINCT FROM (m.tab, m.col)
		UNION ALL
		SELECT n, @extschema@.snowflake_admin_place('pg_proc'::regclass, function) || ' names its sequence'
		FROM arrays, @extschema@.snowflake_admin_namers(sequence_names, tab_names)
		UNION ALL SELECT n, 'it is not in the primary key' FROM movable
		WHERE NOT EXISTS (SELECT FROM pg_index WHERE indrelid = tab AND indisprimary AND col = ANY (indkey))
		UNION ALL SELECT n, CASE WHEN sequence IS NULL THEN 'its default names the sequence as a text'
			ELSE 'its default is an expression' END
		FROM movable WHERE expression <> coalesce(format('nextval(%L::regclass)', sequence::regclass), '')
		UNION ALL SELECT n, 'its sequence advances by ' || seqincrement
		FROM movable JOIN pg_sequence ON seqrelid = sequence AND seqincrement <> 1
		UNION ALL
		SELECT n, 'its numbers are larger than new IDs'	-- which begin with the milliseconds since 2011
		FROM movable WHERE @extschema@.snowflake_admin_last_value(sequence) >> 23
			>= extract(epoch FROM now()) * 1000 - 1314220021721
	)
	SELECT k.tab::regclass, k.col_name, k.type::regtype, k.made_by, k.sequence::regclass, o.obstacle
	FROM keys AS k LEFT JOIN obstacles AS o USING (n)
	ORDER BY k.tab::regclass::text COLLATE "C", col_name, k.sequence::regclass::text COLLATE "C",
		obstacle COLLATE "C"
$$;

COMMENT ON FUNCTION snowflake_keys() IS
'keys that a sequence, an identity or next_id() makes, and what keeps them from moving to next_id()';

-- Partitions by time
--
-- Bounds are IDs, as PostgreSQL keeps them.  MINVALUE and MAXVALUE stand here as
-- the least and the largest bigint, which are no IDs.  Units of time are those of
-- UTC: they are counted in timestamps without time zone.
--

CREATE FUNCTION snowflake_admin_bound(ts timestamptz, layout snowflake_layout) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT snowflake_min_id(ts, layout);
END;

-- A bound need not be an ID that anything has made.
CREATE FUNCTION snowflake_admin_bound_time(id bigint, layout snowflake_layout) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
	SELECT CASE id
		WHEN '-9223372036854775808' THEN '-infinity'
		WHEN 9223372036854775807 THEN 'infinity'
		ELSE snowflake_timestamp(greatest(id, 0), layout) END;
END;

CREATE FUNCTION snowflake_admin_is_id(type oid) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT type IN ('bigint'::regtype, 'snowflake'::regtype);
END;

-- The column by whose ranges a table is partitioned, quoted
CREATE FUNCTION snowflake_admin_partition_key(parent regclass) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	strategy "char";
	key text;
	suits boolean;
BEGIN
	SELECT partstrat, quote_ident(attname), partnatts = 1 AND @extschema@.snowflake_admin_is_id(atttypid)
	INTO strategy, key, suits
	FROM pg_partitioned_table LEFT JOIN pg_attribute
		ON attrelid = partrelid AND attnum = partattrs[0] AND attnum > 0
	WHERE partrelid = parent;
	IF parent IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'parent must not be null';
	ELSIF NOT FOUND THEN
		RAISE wrong_object_type USING
			MESSAGE = format('%s is not a partitioned table', parent),
			HINT = 'CALL @extschema@.snowflake_partition(...) makes a partitioned table of a table.';
	ELSIF strategy <> 'r' OR suits IS NOT TRUE THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s is not partitioned by ranges of one bigint or snowflake column',
				parent),
			DETAIL = format('It is partitioned by %s.', pg_get_partkeydef(parent));
	END IF;
	RETURN key;
END
$$;

-- By the numbers of an identity or nextval(), new rows would be old.  Without any default,
-- programs may take the IDs themselves.  Rows come by the tables above, if there are any.
CREATE FUNCTION snowflake_admin_require_times(parent regclass) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	key text := @extschema@.snowflake_admin_partition_key(parent);
	made record;
BEGIN
	SELECT tab::regclass, made_by INTO made FROM @extschema@.snowflake_admin_keys()
	WHERE tab IN (SELECT relid FROM pg_partition_ancestors(parent)) AND quote_ident(col_name) = key
		AND made_by <> 'next_id';
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('the key of table %s does not tell the time', parent),
			DETAIL = format('Column %s is %s. Its new rows look older than they are.', key, CASE made.made_by
				WHEN 'nextval' THEN 'filled by nextval()' ELSE made.made_by || ' AS IDENTITY' END),
			HINT = format('CALL @extschema@.snowflake_move(%L) first. If programs supply all keys, drop '
				'the identity or default.', made.tab);
	END IF;
	RETURN key;
END
$$;

-- The layout of the IDs that a partitioned table's key gets by default
CREATE FUNCTION snowflake_admin_key_layout(parent regclass) RETURNS snowflake_layout
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT @extschema@.snowflake_admin_to_layout(coalesce(
		min(@extschema@.snowflake_admin_layout_of(pg_get_expr(adbin, adrelid), seqrelid)), 'instagram'))
	FROM pg_partitioned_table JOIN pg_attrdef AS d ON adrelid = partrelid AND adnum = partattrs[0]
	LEFT JOIN (pg_depend JOIN pg_sequence ON seqrelid = refobjid)
		ON classid = 'pg_attrdef'::regclass AND objid = d.oid AND refclassid = 'pg_class'::regclass
	WHERE partrelid = parent
$$;

-- All partitions.  Both bounds of the DEFAULT partition are NULL.  One that is
-- pending detach is none any more, but still occupies its range.
CREATE FUNCTION snowflake_admin_ranges(parent regclass)
RETURNS TABLE (partition regclass, lower_id bigint, upper_id bigint, pending boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT oid,
		replace(substring(bound FROM 'FROM \(''?([^'')]+)'), 'MINVALUE', '-9223372036854775808')::bigint,
		replace(substring(bound FROM 'TO \(''?([^'')]+)'), 'MAXVALUE', '9223372036854775807')::bigint,
		inhdetachpending
	FROM pg_inherits JOIN pg_class ON oid = inhrelid, pg_get_expr(relpartbound, oid) AS bound
	WHERE inhparent = parent
$$;

CREATE FUNCTION snowflake_partitions(parent regclass, layout snowflake_layout DEFAULT NULL)
RETURNS TABLE (partition regclass, since timestamptz, until timestamptz)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM @extschema@.snowflake_admin_partition_key(parent);
	layout := coalesce(layout, @extschema@.snowflake_admin_key_layout(parent));
	-- A layout without a time is an error also where there is no partition.
	PERFORM @extschema@.snowflake_admin_bound(now(), layout);
	RETURN QUERY SELECT r.partition, @extschema@.snowflake_admin_bound_time(lower_id, layout),
			@extschema@.snowflake_admin_bound_time(upper_id, layout)
		FROM @extschema@.snowflake_admin_ranges(parent) AS r WHERE NOT pending
		ORDER BY lower_id;
END
$$;

COMMENT ON FUNCTION snowflake_partitions(regclass, snowflake_layout) IS
'partitions of a table that is partitioned by its IDs, oldest first, with the times of their bounds';

-- The tables that foreign keys connect with a partitioned table, and that the caller may
-- lock: those to which it refers before it, and those that refer to it after it
CREATE FUNCTION snowflake_admin_related(parent regclass)
RETURNS TABLE (tab regclass, place integer)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT other, min(sign)
	FROM pg_constraint, LATERAL (VALUES (confrelid, -1), (conrelid, 1)) AS side (other, sign)
	WHERE contype = 'f' AND conparentid = 0 AND confrelid <> conrelid
		AND parent = CASE sign WHEN 1 THEN confrelid ELSE conrelid END
		AND has_table_privilege(other, 'UPDATE, DELETE, TRUNCATE')
	GROUP BY other
$$;

-- The unit of the newest partition, which may be cut short by the one before it
CREATE FUNCTION snowflake_admin_unit(parent regclass, layout snowflake_layout) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(
		(SELECT CASE WHEN span <= '1 hour' THEN 'hour' WHEN span <= '24 hours' THEN 'day'
				WHEN span <= '7 days' THEN 'week' WHEN span <= '31 days' THEN 'month' ELSE 'year' END
			FROM @extschema@.snowflake_partitions(parent, layout),
				LATERAL (SELECT until - since) AS length (span)
			WHERE isfinite(since) AND isfinite(until) ORDER BY since DESC LIMIT 1),
		'day')
$$;

-- Until when there should be partitions.  IDs may be ahead of the clock by max_lead, which
-- can be set to a hundred years, and then says nothing.
CREATE FUNCTION snowflake_admin_until(ahead interval, unit text) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	newest timestamp := clock_timestamp() AT TIME ZONE 'UTC'
		+ least(current_setting('snowflake.max_lead')::interval, '31 days');
BEGIN
	IF unit NOT IN ('hour', 'day', 'week', 'month', 'year') THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('unit must be hour, day, week, month or year, not %L', unit);
	ELSIF ahead IS NULL OR ahead < interval '0' THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('ahead must be at least 0, not %s', coalesce(ahead::text, 'null'));
	END IF;
	RETURN greatest(newest + ahead, date_trunc(unit, newest) + 2 * ('1 ' || unit)::interval)
		AT TIME ZONE 'UTC';
END
$$;

-- The ranges without a partition, from the end of the newest one that has begun.
-- The first may begin at any ID, and each ends with its unit.
CREATE FUNCTION snowflake_admin_missing(parent regclass, unit text, until timestamptz,
	layout snowflake_layout)
RETURNS TABLE (low bigint, high bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	present timestamp := clock_timestamp() AT TIME ZONE 'UTC';
	stop bigint := @extschema@.snowflake_admin_bound(until, layout);
	next timestamp;
BEGIN
	SELECT max(upper_id) INTO low FROM @extschema@.snowflake_admin_ranges(parent)
	WHERE lower_id <= @extschema@.snowflake_admin_bound(present AT TIME ZONE 'UTC', layout);
	low := coalesce(low,
		@extschema@.snowflake_admin_bound(date_trunc(unit, present) AT TIME ZONE 'UTC', layout));
	WHILE low < stop LOOP
		SELECT upper_id INTO high FROM @extschema@.snowflake_admin_ranges(parent)
		WHERE lower_id <= low AND upper_id > low;
		IF NOT FOUND THEN
			next := date_trunc(unit, @extschema@.snowflake_admin_bound_time(low, layout) AT TIME ZONE 'UTC')
				+ ('1 ' || unit)::interval;
			high := least(@extschema@.snowflake_admin_bound(next AT TIME ZONE 'UTC', layout),
				(SELECT min(lower_id) FROM @extschema@.snowflake_admin_ranges(parent) WHERE lower_id > low));
			-- The layout's time ends here.
			EXIT WHEN high <= low;
			RETURN NEXT;
		END IF;
		low := high;
	END LOOP;
END
$$;

-- Make one partition, or nothing if another session has just made it.  ATTACH PARTITION
-- scans the DEFAULT partition while nobody else can use it, and fails if that has rows
-- of the range.  Such a row is found here by the key's index.
CREATE FUNCTION snowflake_admin_make_partition(parent regclass, key text, low bigint, high bigint, unit text,
	layout snowflake_layout, tries integer, dry_run boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	commands text[];
	default_partition regclass;
	found_id bigint;
BEGIN
	PERFORM @extschema@.snowflake_admin_run('{}', ARRAY[parent], tries, dry_run, NULL);
	IF EXISTS (SELECT FROM @extschema@.snowflake_admin_ranges(parent)
			WHERE lower_id < high AND upper_id > low) THEN
		RETURN;
	END IF;
	SELECT partition INTO default_partition FROM @extschema@.snowflake_admin_ranges(parent)
	WHERE lower_id IS NULL;
	IF FOUND THEN
		EXECUTE format('SELECT min(%1$s) FROM %2$s WHERE %1$s >= %3$s AND %1$s < %4$s',
			key, default_partition, low, high) INTO found_id;
	END IF;
	IF found_id IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('default partition %s has rows of the partition that is missing', default_partition),
			DETAIL = format('The first of them has the ID %s; the partition would have those from %s to %s.',
				found_id, low, high - 1),
			HINT = format('Detach %s, call this procedure again, and move those rows into %s.',
				default_partition, parent);
	END IF;
	-- CREATE TABLE ... PARTITION OF would lock out everybody.  ATTACH PARTITION does
	-- not, but with foreign keys it locks the other tables against writers.  A role
	-- with privileges on the partition itself must not see there what the table's
	-- policies hide.  The partition's name says the time at which it begins, as short as
	-- the unit allows; the cast to the type name keeps 63 bytes.
	SELECT ARRAY[
		format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY)', partition, parent)
			|| coalesce(' USING ' || (SELECT quote_ident(amname) FROM pg_am WHERE pg_am.oid = relam), '')
			|| coalesce(' TABLESPACE ' || (SELECT quote_ident(spcname)
				FROM pg_tablespace WHERE pg_tablespace.oid = reltablespace), ''),
		format('ALTER TABLE %s OWNER TO %s, %s ROW LEVEL SECURITY', partition, relowner::regrole,
			CASE WHEN relrowsecurity THEN 'ENABLE' ELSE 'DISABLE' END)
			|| CASE relreplident WHEN 'f' THEN ', REPLICA IDENTITY FULL'
				WHEN 'n' THEN ', REPLICA IDENTITY NOTHING' ELSE '' END,
		format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)',
			parent, partition, low, high)]
	INTO commands
	FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace,
		unnest(ARRAY[CASE unit WHEN 'year' THEN '_YYYY' WHEN 'month' THEN '_YYYYMM' ELSE '_YYYYMMDD' END,
			'_YYYYMMDD', '_YYYYMMDDHH24', '_YYYYMMDDHH24MISSMS']) WITH ORDINALITY AS forms (form, nr),
		to_char(@extschema@.snowflake_admin_bound_time(low, layout) AT TIME ZONE 'UTC', form) AS suffix,
		format('%I.%I', nspname, substr((suffix || relname)::name::text, 1 + length(suffix)) || suffix)
			AS partition
	WHERE pg_class.oid = parent AND (unit <> 'hour' OR nr >= 3) AND (nr = 4 OR to_regclass(partition) IS NULL)
	ORDER BY nr LIMIT 1;
	PERFORM @extschema@.snowflake_admin_run(commands[1:2], ARRAY[parent], tries, dry_run, NULL);
	PERFORM @extschema@.snowflake_admin_run(commands[3:],
		ARRAY(SELECT tab FROM @extschema@.snowflake_admin_related(parent) ORDER BY place, tab)
			|| array_remove(ARRAY[default_partition], NULL),
		tries, dry_run, 'SHARE ROW EXCLUSIVE');
END
$$;

-- A partition is created and attached in one transaction, so a call that is
-- interrupted leaves no table behind.
CREATE PROCEDURE snowflake_make_partitions(parent regclass, ahead interval DEFAULT '3 days',
	unit text DEFAULT NULL, layout snowflake_layout DEFAULT NULL, dry_run boolean DEFAULT false,
	tries integer DEFAULT 30)
LANGUAGE plpgsql AS $$
DECLARE
	key pg_catalog.text;
	until pg_catalog.timestamptz;
	pieces pg_catalog.record;
	piece pg_catalog.record;
BEGIN
	SET LOCAL search_path = pg_catalog, pg_temp;
	CALL @extschema@.snowflake_admin_require_no_transaction('snowflake_make_partitions()');
	key := @extschema@.snowflake_admin_require_times(parent);
	layout := coalesce(layout, @extschema@.snowflake_admin_key_layout(parent));
	unit := coalesce(unit, @extschema@.snowflake_admin_unit(parent, layout));
	-- This loads the library, whose setting the next function reads.
	PERFORM @extschema@.snowflake_admin_bound(now(), layout);
	until := @extschema@.snowflake_admin_until(ahead, unit);
	SELECT count(*), min(low) AS low INTO pieces
	FROM @extschema@.snowflake_admin_missing(parent, unit, until, layout);
	IF pieces.count > 1000 THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s lacks %s partitions, which is more than 1000', parent, pieces.count),
			DETAIL = format('They are missing from %s until %s.',
				@extschema@.snowflake_admin_bound_time(pieces.low, layout), until),
			HINT = 'Check the clock. If it is right, give a longer unit.';
	END IF;
	FOR piece IN SELECT * FROM @extschema@.snowflake_admin_missing(parent, unit, until, layout) LOOP
		SET LOCAL search_path = pg_catalog, pg_temp;
		PERFORM @extschema@.snowflake_admin_make_partition(
			parent, key, piece.low, piece.high, unit, layout, tries, dry_run);
		COMMIT;
	END LOOP;
END
$$;

COMMENT ON PROCEDURE snowflake_make_partitions(regclass, interval, text, snowflake_layout, boolean,
	integer) IS
'make the partitions that a table lacks, from its last one on, up to a time ahead of now';

-- The partitions below a bound, oldest first, but never the newest of all
CREATE FUNCTION snowflake_admin_old(parent regclass, stop bigint)
RETURNS TABLE (partition regclass, upper_id bigint, pending boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT r.partition, r.upper_id, r.pending FROM @extschema@.snowflake_admin_ranges(parent) AS r
	WHERE upper_id <= stop
		AND upper_id < (SELECT max(upper_id) FROM @extschema@.snowflake_admin_ranges(parent))
	ORDER BY upper_id
$$;

-- Say which rows of other tables refer to IDs in a range, and have to be deleted first: by a
-- warning, or by the hint of an error of PostgreSQL.  With a lower bound, the IDs' rows are
-- to be deleted, so that a foreign key with an action takes care of its own.
CREATE FUNCTION snowflake_admin_say_references(parent regclass, low bigint, high bigint, error text,
	detail text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	rows text;
	is_there boolean;
	hint text;
BEGIN
	FOR rows IN SELECT format('FROM %s WHERE %s', conrelid::regclass, concat_ws(' AND ',
			quote_ident(attname) || ' >= ' || low, quote_ident(attname) || ' < ' || high))
		FROM pg_constraint JOIN pg_partitioned_table ON partrelid = confrelid
		JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[array_position(confkey, partattrs[0])]
		WHERE contype = 'f' AND confrelid = parent AND conparentid = 0 AND conrelid <> confrelid
			AND (low IS NULL OR confdeltype IN ('a', 'r')) AND has_column_privilege(conrelid, attnum, 'SELECT')
		ORDER BY conrelid::regclass::text COLLATE "C"
	LOOP
		EXECUTE format('SELECT EXISTS (SELECT %s)', rows) INTO is_there;
		IF is_there THEN
			hint := concat_ws(' ', coalesce(hint, 'Delete such rows first:'), format('DELETE %s;', rows));
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

-- The oldest partition may be a table that was there before, without a lower bound.
-- Until it can be dropped as a whole, its old rows are deleted.  Numbers of a serial that
-- it once had count as made on the layout's first day; as nobody knows their age, they are
-- kept.
--
-- A commit after each slice lets others and standbys keep up.  The rows are deleted through
-- the table, for its triggers, which need the caller's search_path.  What is old is the same
-- all day, so that rows that refer to it can be deleted before another call.
CREATE PROCEDURE snowflake_admin_delete_old_rows(parent regclass, key text, stop bigint,
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
	detail pg_catalog.text;
	begun pg_catalog.timestamptz := pg_catalog.clock_timestamp();
	reported pg_catalog.timestamptz := begun;
BEGIN
	SET LOCAL search_path = pg_catalog, pg_temp;
	SELECT r.partition INTO partition FROM @extschema@.snowflake_admin_ranges(parent) AS r
	WHERE lower_id = '-9223372036854775808' AND NOT pending
		AND r.partition NOT IN (
			SELECT old.partition FROM @extschema@.snowflake_admin_old(parent, stop) AS old);
	stop := @extschema@.snowflake_admin_bound(date_trunc(
		CASE @extschema@.snowflake_admin_unit(parent, layout) WHEN 'hour' THEN 'hour' ELSE 'day' END,
		@extschema@.snowflake_admin_bound_time(stop, layout) AT TIME ZONE 'UTC') AT TIME ZONE 'UTC', layout);
	first := @extschema@.snowflake_admin_bound((date_trunc('day',
		@extschema@.snowflake_admin_bound_time(0, layout) AT TIME ZONE 'UTC') + interval '1 day')
		AT TIME ZONE 'UTC', layout);
	IF partition IS NULL OR first >= stop THEN
		RETURN;
	END IF;
	EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %s < %s)', partition, key, first) INTO has_numbers;
	IF has_numbers THEN
		RAISE NOTICE '%', format('rows of %s with %s below %s stay until it is dropped, as such numbers '
			'do not tell their age', partition, key, first);
	END IF;
	RAISE NOTICE '%;', format('DELETE FROM %1$s WHERE %2$s >= %3$s AND %2$s < %4$s', parent, key, first, stop);
	IF dry_run THEN
		PERFORM @extschema@.snowflake_admin_say_references(parent, first, stop, NULL, NULL);
		RETURN;
	END IF;
	-- The planner's statistics know how the IDs are spread, and thus about how many rows these are.
	EXECUTE format('EXPLAIN (FORMAT JSON) SELECT FROM %1$s WHERE %2$s >= %3$s AND %2$s < %4$s',
		partition, key, first, stop) INTO plan;
	LOOP
		reported := @extschema@.snowflake_admin_progress(format('delete old rows of %s', partition),
			done, (plan #>> '{0,Plan,Plan Rows}')::bigint, begun, reported);
		EXECUTE format('SELECT max(id) FROM (SELECT %1$s AS id FROM %2$s WHERE %1$s >= %3$s AND %1$s < %4$s '
			'ORDER BY %1$s LIMIT 10000) AS slice', key, partition, first, stop) INTO last;
		EXIT WHEN last IS NULL;
		PERFORM set_config('search_path', path, true);
		BEGIN
			EXECUTE pg_catalog.format('DELETE FROM %1$s WHERE %2$s OPERATOR(pg_catalog.>=) %3$s '
				'AND %2$s OPERATOR(pg_catalog.<=) %4$s', parent, key, first, last);
			GET DIAGNOSTICS slice = ROW_COUNT;
		EXCEPTION WHEN foreign_key_violation THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
			PERFORM @extschema@.snowflake_admin_say_references(parent, first, stop, SQLERRM, detail);
		END;
		COMMIT;
		SET LOCAL search_path = pg_catalog, pg_temp;
		done := done + slice;
		first := last + 1;
	END LOOP;
	RAISE NOTICE 'deleted % rows of %', done, partition;
END
$$;

CREATE PROCEDURE snowflake_drop_partitions(parent regclass, older_than interval,
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
	SET LOCAL search_path = pg_catalog, pg_temp;
	CALL @extschema@.snowflake_admin_require_no_transaction('snowflake_drop_partitions()');
	key := @extschema@.snowflake_admin_require_times(parent);
	IF older_than IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'older_than must not be null';
	ELSIF older_than < interval '0' THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('older_than must be at least 0, not %s', older_than);
	END IF;
	layout := coalesce(layout, @extschema@.snowflake_admin_key_layout(parent));
	stop := @extschema@.snowflake_admin_bound(
		(clock_timestamp() AT TIME ZONE 'UTC' - older_than) AT TIME ZONE 'UTC', layout);
	SELECT max(upper_id) INTO high FROM @extschema@.snowflake_admin_old(parent, stop);
	IF dry_run AND high IS NOT NULL THEN
		PERFORM @extschema@.snowflake_admin_say_references(parent, NULL, high, NULL, NULL);
	END IF;
	FOR old IN SELECT * FROM @extschema@.snowflake_admin_old(parent, stop) LOOP
		SET LOCAL search_path = pg_catalog, pg_temp;
		PERFORM @extschema@.snowflake_admin_run('{}', ARRAY[parent], tries, dry_run, NULL);
		-- Another session may have dropped it meanwhile.
		IF EXISTS (SELECT FROM @extschema@.snowflake_admin_old(parent, stop) AS still
				WHERE still.partition = old.partition) THEN
			-- DETACH PARTITION ... CONCURRENTLY cannot be run here.  Everybody is locked out, but
			-- not for long: only where foreign keys refer to the rows they are looked at.
			tables := ARRAY(
				SELECT tab FROM (SELECT tab, place FROM @extschema@.snowflake_admin_related(parent)
					UNION ALL VALUES (parent, 0), (old.partition, 0)) AS involved
				ORDER BY place, tab <> parent, tab);
			BEGIN
				PERFORM @extschema@.snowflake_admin_run(ARRAY[
					(SELECT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE',
							string_agg('ONLY ' || tab::text, ', ' ORDER BY nr))
						FROM unnest(tables) WITH ORDINALITY AS involved (tab, nr)),
					format('ALTER TABLE %s DETACH PARTITION %s', parent, old.partition)
						|| CASE WHEN old.pending THEN ' FINALIZE' ELSE '' END,
					format('DROP TABLE %s', old.partition)], tables, tries, dry_run, NULL);
			EXCEPTION WHEN foreign_key_violation THEN
				GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
				PERFORM @extschema@.snowflake_admin_say_references(parent, NULL, high, SQLERRM, detail);
			END;
		END IF;
		COMMIT;
	END LOOP;
	CALL @extschema@.snowflake_admin_delete_old_rows(parent, key, stop, layout, path, dry_run);
END
$$;

COMMENT ON PROCEDURE snowflake_drop_partitions(regclass, interval, snowflake_layout, boolean, integer) IS
'drop the partitions that are older than an interval, and delete such rows of one without a lower bound';

--
-- Moving keys to next_id(), and back
--

-- A shard that the layout has, or that of the setting, or next_id()'s errors.  The
-- layout is a text, because its type may be in another schema than we are.
CREATE FUNCTION snowflake_admin_require_shard(shard bigint, layout text) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT CASE WHEN shard IS NULL THEN snowflake_shard()
		ELSE snowflake_shard(snowflake_id(now(), shard, 1, layout::snowflake_layout), layout::snowflake_layout) END;
END;

-- The key of a table is what is listed of its primary key, or else of its other columns.
CREATE FUNCTION snowflake_admin_main_keys()
RETURNS TABLE (tab regclass, col name, type regtype, made_by text, sequence regclass, obstacle text,
	is_main boolean)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT k.*, rank() OVER (PARTITION BY k.tab ORDER BY i.indrelid IS NULL) = 1
	FROM @extschema@.snowflake_keys() AS k
	JOIN pg_attribute AS a ON a.attrelid = k.tab AND a.attname = k.col
	LEFT JOIN pg_index AS i ON i.indrelid = k.tab AND i.indisprimary AND a.attnum = ANY (i.indkey)
$$;

-- The key of a table, an obstacle, and the parts of its default if that is next_id()
CREATE FUNCTION snowflake_admin_key(target regclass)
RETURNS TABLE (col name, type regtype, made_by text, sequence regclass, obstacle text, shard text,
	named_layout text, layout text, is_plain boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	key record;
BEGIN
	IF target IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'tab must not be null';
	END IF;
	WITH keys AS MATERIALIZED (
		SELECT * FROM @extschema@.snowflake_admin_main_keys() AS k WHERE k.tab = target AND k.is_main
	)
	SELECT k.*, (SELECT count(DISTINCT keys.col) FROM keys) AS columns,
		(SELECT string_agg(DISTINCT quote_ident(keys.col), ', ') FROM keys) AS names
	INTO key FROM keys AS k ORDER BY k.obstacle LIMIT 1;
	IF NOT FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has no key that a sequence, an identity or next_id() makes', target),
			HINT = coalesce((
				SELECT format('Its key may be that of its parent. Call this for %s instead.',
					inhparent::regclass)
				FROM pg_inherits WHERE inhrelid = target ORDER BY inhseqno LIMIT 1),
				'SELECT * FROM snowflake_keys() lists the keys of this database.');
	ELSIF key.columns > 1 THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has more than one key', target),
			DETAIL = format('A sequence, an identity or next_id() makes each of the columns %s.', key.names),
			HINT = 'Use ALTER TABLE ... SET DEFAULT for each column that is to change.';
	END IF;
	RETURN QUERY SELECT key.col, key.type, key.made_by, key.sequence, key.obstacle,
			c.shard, @extschema@.snowflake_admin_literal(c.layout),
			coalesce(@extschema@.snowflake_admin_layout_of(expression,
				CASE WHEN key.made_by = 'next_id' THEN key.sequence END), 'instagram'),
			c.call = regexp_replace(expression, '^(\w+|"([^"]|"")+")\.', '')
		FROM (SELECT (SELECT pg_get_expr(adbin, adrelid)
			FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
			WHERE adrelid = target AND attname = key.col AND key.made_by = 'next_id')) AS d (expression)
		LEFT JOIN LATERAL @extschema@.snowflake_admin_calls(expression) AS c ON true
		LIMIT 1;
END
$$;

-- An error that says why a key cannot move, and what has to happen first
CREATE FUNCTION snowflake_admin_require_no_obstacle(target regclass, col name, obstacle text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF obstacle IS NULL THEN
		RETURN;
	END IF;
	RAISE object_not_in_prerequisite_state USING
		MESSAGE = format('cannot move column %I of table %s to next_id()', col, target),
		DETAIL = format('Obstacle: %s.', obstacle),
		HINT = coalesce((SELECT hint FROM (VALUES
			(' is (integer|smallint)$', format('CALL %s.snowflake_widen(%L, %L) makes the key and all '
				'columns that refer to it bigint.', @extschema@.snowflake_admin_schema(), target, col)),
			(' (uses|names) its sequence$', 'Change this first, for example to INSERT ... RETURNING.'),
			('^its sequence advances', 'A program may reserve blocks of numbers and make keys itself. '
				'Change it first, and then ALTER SEQUENCE ... INCREMENT 1.'),
			('^its numbers are larger', 'An ID could be the number of an old row. If the key was moved back '
				'a moment ago, wait for the clock to pass its numbers.'),
			('^its default', 'Set the default to nextval() of its sequence alone first.'),
			('^it is not in the primary key', 'The column may be a number for people, which should stay '
				'small. If not, use ALTER TABLE ... SET DEFAULT.')) AS h (pattern, hint)
			WHERE obstacle ~ pattern LIMIT 1), 'Remove this obstacle first.');
END
$$;

-- A table, its partitions and the tables that inherit from it
CREATE FUNCTION snowflake_admin_family(target regclass) RETURNS SETOF oid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH RECURSIVE family (oid) AS (
		SELECT target::oid
		UNION SELECT inhrelid FROM family JOIN pg_inherits ON inhparent = oid
	)
	SELECT oid FROM family
$$;

-- Can the largest value of a column be found while everybody is locked out?
CREATE FUNCTION snowflake_admin_finds_maximum(target regclass, col name) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT NOT EXISTS (
		SELECT FROM @extschema@.snowflake_admin_family(target) AS member
		JOIN pg_attribute ON attrelid = member AND attname = col
		WHERE pg_relation_size(member) > 8 * 1024 * 1024 AND NOT EXISTS (
			SELECT FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
			WHERE indrelid = member AND indkey[0] = attnum AND indisvalid AND indpred IS NULL
			AND relam = (SELECT oid FROM pg_am WHERE amname = 'btree')))
$$;

-- Let everybody take values of a sequence who may insert into a table, a member of its
-- family, or a view of these: a default is computed with the rights of the role that inserts.
CREATE FUNCTION snowflake_admin_grants(target regclass, sequence text, is_new boolean) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH RECURSIVE targets (oid) AS (
		SELECT * FROM @extschema@.snowflake_admin_family(target)
		UNION SELECT ev_class FROM targets
		JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = targets.oid
			AND classid = 'pg_rewrite'::regclass
		JOIN pg_rewrite AS r ON r.oid = objid AND ev_type = '1'
	), acls (acl) AS (
		SELECT coalesce(relacl, acldefault('r', relowner)) FROM targets JOIN pg_class USING (oid)
		UNION ALL SELECT attacl FROM targets JOIN pg_attribute ON attrelid = oid AND NOT attisdropped
	)
	SELECT DISTINCT format('GRANT USAGE ON SEQUENCE %s TO %s', sequence,
		CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
	FROM acls, aclexplode(acl)
	WHERE privilege_type = 'INSERT' AND grantee <> (SELECT relowner FROM pg_class WHERE oid = target)
		AND (is_new OR NOT has_sequence_privilege(grantee, to_regclass(sequence)::oid, 'USAGE, UPDATE'))
$$;

-- A new sequence's name, of as many characters of table and column as fit into 63 bytes
CREATE FUNCTION snowflake_admin_new_sequence(target regclass, col name) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT sequence
	FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace, generate_series(1, 1000) AS n,
		LATERAL concat('_seq', nullif(n, 1)) AS suffix,
		LATERAL format('%I.%I', nspname, substr((suffix || left(relname, 45) || '_' || col)::name::text,
			1 + length(suffix)) || suffix) AS sequence
	WHERE pg_class.oid = target AND to_regclass(sequence) IS NULL ORDER BY n LIMIT 1
$$;

-- Restart the sequence of a former serial if it has whole IDs as its numbers, as it has once the
-- key was moved back.
--
-- A number of the table cannot come again.  If nextval() or an identity made it, the
-- clock has passed what they made, and a row of a later time is found by an index.  If
-- next_id() made it from another sequence with the same shard, this one begins beyond
-- that one.  With another shard it need not: this is how to leave a sequence, and
-- rows, that are ahead of the clock.
CREATE FUNCTION snowflake_admin_sequence_commands(target regclass, key_col name, sequence text,
	is_new boolean, layout text, former regclass) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT array_remove(ARRAY[
			CASE WHEN is_new THEN 'CREATE SEQUENCE ' || sequence END,
			CASE WHEN is_new AND relowner::regrole::text <> quote_ident(current_user)
				THEN format('ALTER SEQUENCE %s OWNER TO %s', sequence, relowner::regrole) END,
			CASE WHEN NOT is_new
				AND @extschema@.snowflake_admin_last_value(to_regclass(sequence)) >= 1::bigint << 40
				AND NOT EXISTS (
					SELECT FROM pg_sequence JOIN @extschema@.snowflake_admin_layouts() ON max_value = seqmax
					WHERE seqrelid = to_regclass(sequence) AND name = layout)
				THEN format('ALTER SEQUENCE %s RESTART', sequence) END,
			format('SELECT %s.snowflake_alter_sequence(%L, %L)', schema, sequence, layout),
			CASE WHEN former IS NOT NULL
				THEN format('SELECT %1$s.snowflake_advance(%2$L, %1$s.snowflake_max_id(last_timestamp, %4$L)%5$s) '
					'FROM %1$s.snowflake_sequences(%3$L, %4$L) WHERE last_timestamp IS NOT NULL',
					schema, sequence, former, layout, named_layout)
				WHEN key_col IS NOT NULL AND @extschema@.snowflake_admin_finds_maximum(target, key_col)
				THEN format('SELECT %1$s.snowflake_advance(%2$L, max(%3$I)%5$s) FROM %4$s '
					'HAVING max(%3$I) >= 1::bigint << 40',
					schema, sequence, key_col, target, named_layout) END], NULL)
		|| ARRAY(SELECT @extschema@.snowflake_admin_grants(target, sequence, is_new))
	FROM pg_class, @extschema@.snowflake_admin_schema() AS schema,
		LATERAL (SELECT CASE WHEN layout LIKE '%:%' THEN format(', %L', layout) END) AS l (named_layout)
	WHERE oid = target
$$;

-- The commands of a move, or none if next_id() already makes the key in this way.  A key
-- of next_id() keeps its own sequence, unless it is to have another shard.
CREATE FUNCTION snowflake_admin_move_commands(target regclass, shard bigint, own_sequence boolean,
	OUT commands text[], OUT relations regclass[], OUT was_always boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	next_id_seq regclass := @extschema@.snowflake_admin_next_id_seq();
	setting text := current_setting('snowflake.shard', true);
	key record;
	number text := shard;
	sequence text;
	is_moved boolean;
	is_new boolean := false;
	same_text boolean;
	same_shard boolean;
	maker text := @extschema@.snowflake_admin_schema() || '.';
BEGIN
	SELECT * INTO key FROM @extschema@.snowflake_admin_key(target);
	PERFORM @extschema@.snowflake_admin_require_no_obstacle(target, key.col, key.obstacle);
	is_moved := key.made_by = 'next_id';
	was_always := key.made_by = 'GENERATED ALWAYS';
	commands := '{}';
	relations := ARRAY[target] || CASE WHEN key.sequence <> next_id_seq THEN key.sequence END;
	IF number IS NULL THEN
		setting := @extschema@.snowflake_admin_require_shard(NULL, NULL);
	ELSIF key.layout NOT IN ('trace', 'decimal') THEN
		PERFORM @extschema@.snowflake_admin_require_shard(shard, key.layout);
	END IF;
	key.shard := coalesce(@extschema@.snowflake_admin_literal(key.shard),
		CASE WHEN key.shard !~ '\msnowflake_shard\(\)\)*(::bigint)?$' THEN 'computed' END);
	same_text := key.shard IS NOT DISTINCT FROM number;
	same_shard := coalesce(key.shard, setting) IS NOT DISTINCT FROM coalesce(number, setting);

	IF is_moved THEN
		is_new := own_sequence AND NOT (same_shard AND key.layout IN ('trace', 'decimal'))
			AND (NOT same_text OR key.sequence = next_id_seq OR EXISTS (
				SELECT FROM @extschema@.snowflake_admin_sequence_users() AS u
				JOIN pg_attribute AS a ON a.attrelid = u.tab AND a.attnum = u.col
				WHERE u.sequence = key.sequence AND (u.tab, a.attname) <> (target, key.col)));
		sequence := CASE WHEN is_new THEN @extschema@.snowflake_admin_new_sequence(target, key.col)
			WHEN key.sequence <> next_id_seq THEN key.sequence::text END;
	ELSIF own_sequence THEN
		is_new := key.made_by <> 'nextval';
		sequence := key.sequence;
	END IF;
	IF is_moved AND NOT is_new AND same_text AND key.is_plain THEN
		RAISE NOTICE 'the key of % already comes from next_id() with this shard', target;
		RETURN;
	END IF;

	IF key.made_by LIKE 'GENERATED%' THEN
		-- After a move back, the defaults of children take numbers of the identity's sequence.
		commands := ARRAY(SELECT format('ALTER TABLE %s ALTER %I DROP DEFAULT', member::regclass, key.col)
				FROM @extschema@.snowflake_admin_family(target) AS member
				JOIN pg_class ON oid = member AND member <> target AND NOT relispartition
				JOIN pg_attribute ON attrelid = member AND attname = key.col AND atthasdef)
			|| format('ALTER TABLE %s ALTER %I DROP IDENTITY', target, key.col);
	END IF;
	IF is_new OR sequence IS NOT NULL AND NOT is_moved THEN
		commands := commands || @extschema@.snowflake_admin_sequence_commands(target,
			CASE WHEN NOT is_moved THEN key.col END, sequence, is_new, key.layout,
			CASE WHEN is_moved AND (same_shard OR key.shard = 'computed') THEN key.sequence END)
			|| ARRAY(SELECT @extschema@.snowflake_admin_grant_commands(relacl, '', 'SEQUENCE ' || sequence)
				FROM pg_class WHERE oid = key.sequence AND is_new AND NOT is_moved);
	END IF;
	commands := commands || format('ALTER TABLE %s ALTER %I SET DEFAULT %snext_id(%s)', target, key.col,
		maker,
		concat_ws(', ', coalesce(number, CASE WHEN sequence IS NOT NULL
			THEN maker || 'snowflake_shard()' END),
			quote_literal(sequence), CASE WHEN sequence IS NOT NULL
				THEN quote_literal(key.named_layout) END));
END
$$;

-- No catalog says since when the database has its shard, so this counts all others.
CREATE FUNCTION snowflake_admin_count_other_sessions() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	others bigint := count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND usesysid IS NOT NULL
			AND coalesce(backend_type, 'client backend') = 'client backend';
BEGIN
	IF others > 0 THEN
		RAISE NOTICE USING MESSAGE = format('other sessions: %s. Those that began before the shard was set '
			'must reconnect before their next INSERT', others);
	END IF;
END
$$;

-- One transaction: the caller's.  The table is locked before its sequence, as an
-- INSERT does.  Without row_security, a policy that hid the largest ID is an error.
CREATE PROCEDURE snowflake_admin_move_table(tab regclass, shard bigint, own_sequence boolean, dry_run boolean,
	tries integer, in_schema boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
	plan record;
BEGIN
	PERFORM @extschema@.snowflake_admin_run('{}', ARRAY[tab], tries, dry_run, NULL);
	SELECT * INTO plan FROM @extschema@.snowflake_admin_move_commands(tab, shard, own_sequence);
	IF cardinality(plan.commands) > 0 THEN
		IF plan.was_always AND NOT in_schema THEN
			RAISE NOTICE 'a default does not keep programs from choosing keys, as GENERATED ALWAYS did: %', tab;
		END IF;
		IF shard IS NULL AND NOT in_schema THEN
			PERFORM @extschema@.snowflake_admin_count_other_sessions();
		END IF;
		PERFORM @extschema@.snowflake_admin_run(plan.commands, plan.relations, tries, dry_run);
	END IF;
END
$$;

CREATE PROCEDURE snowflake_move(tab regclass, shard bigint DEFAULT NULL, own_sequence boolean DEFAULT false,
	dry_run boolean DEFAULT false, tries integer DEFAULT 30)
LANGUAGE plpgsql AS $$
BEGIN
	CALL @extschema@.snowflake_admin_move_table(tab, shard, own_sequence, dry_run, tries, false);
END
$$;

COMMENT ON PROCEDURE snowflake_move(regclass, bigint, boolean, boolean, integer) IS
'let next_id() make the key of a table, in place of nextval(), an identity, or another shard or sequence';

-- Does nothing need a sequence once an identity makes a column?  It is that of a former
-- serial, which the column still owns, or one that next_id() had for this column.
CREATE FUNCTION snowflake_admin_is_needless(target regclass, key_col name, sequence regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT EXISTS (
		SELECT FROM pg_class AS s JOIN pg_class AS t ON t.oid = target
		JOIN pg_attribute AS a ON attrelid = target AND attname = key_col
		WHERE s.oid = sequence AND s.relowner = t.relowner AND s.relnamespace = t.relnamespace
		AND NOT EXISTS (SELECT FROM pg_depend
			WHERE classid = 'pg_class'::regclass AND objid = s.oid AND deptype = 'e')
		AND NOT EXISTS (SELECT FROM @extschema@.snowflake_admin_sequence_users() AS u
			WHERE u.sequence = s.oid AND (u.tab, u.col) IS DISTINCT FROM (target::oid, attnum))
		AND NOT EXISTS (SELECT FROM @extschema@.snowflake_admin_namers(ARRAY[s.relname::text], '{}')))
$$;

-- Commands that give a column an identity, which begins beyond all IDs of the table, and
-- those that the sequence has made for rows that are not there.  Where no index finds the
-- table's largest ID, it is looked for before everybody is locked out; who inserts
-- meanwhile gets smaller IDs than the second bound.
CREATE FUNCTION snowflake_admin_identity_commands(target regclass, key_col name, layout text, used regclass,
	dry_run boolean) RETURNS text[]
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	-- The unused sequence of a former serial
	serial regclass := (
		SELECT objid FROM pg_depend JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
		JOIN pg_sequence ON seqrelid = objid
		WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND deptype = 'a'
			AND attrelid = target AND attname = key_col AND objid <> used
			AND @extschema@.snowflake_admin_is_needless(target, key_col, objid::regclass)
		LIMIT 1);
	sequence text := coalesce(serial::text, @extschema@.snowflake_admin_new_sequence(target, key_col));
	is_needless boolean := @extschema@.snowflake_admin_is_needless(target, key_col, used);
	children text[] := ARRAY(
		SELECT format('ALTER TABLE %s ALTER %I SET DEFAULT nextval(%L)', oid::regclass, key_col, sequence)
		FROM @extschema@.snowflake_admin_family(target) JOIN pg_class ON oid = snowflake_admin_family
		WHERE oid <> target AND NOT relispartition);
	largest text := format('(SELECT max(%I) FROM %s)', key_col, target);
BEGIN
	-- A child that is no partition gets no identity from its parent.
	IF cardinality(children) > 0 THEN
		children := children || ARRAY(SELECT @extschema@.snowflake_admin_grants(target, sequence, true));
	END IF;
	-- Without a time, only rows tell the largest ID, and a snapshot of before the lock lacks some.
	IF layout IN ('trace', 'decimal') AND current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot move the key of table %s back in a transaction that is %s', target,
				current_setting('transaction_isolation')),
			HINT = 'Call it in a transaction that is READ COMMITTED.';
	ELSIF NOT dry_run AND layout NOT IN ('trace', 'decimal')
		AND NOT @extschema@.snowflake_admin_finds_maximum(target, key_col) THEN
		EXECUTE 'SELECT ' || largest INTO largest;
	END IF;
	RETURN array_remove(ARRAY[format('ALTER TABLE %s ALTER %I DROP DEFAULT', target, key_col),
			'DROP SEQUENCE ' || serial::text]
		|| format('ALTER TABLE %s ALTER %I ADD GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME %s)',
			target, key_col, sequence)
		|| format('SELECT setval(%L, greatest(%s))', sequence,
			concat_ws(', ', CASE WHEN layout NOT IN ('trace', 'decimal') THEN
				format('(SELECT %1$s.snowflake_max_id('
					'greatest(max(last_timestamp), clock_timestamp() + interval ''1 s''), %2$L) '
					'FROM %1$s.snowflake_sequences(%3$L, %2$L))',
					@extschema@.snowflake_admin_schema(), layout, used) END, '1', largest))
		|| ARRAY(SELECT DISTINCT @extschema@.snowflake_admin_grant_commands(relacl, '', 'SEQUENCE ' || sequence)
			FROM pg_class WHERE oid = serial OR oid = used AND is_needless)
		|| children
		|| CASE WHEN is_needless THEN 'DROP SEQUENCE ' || used::text END
		|| CASE WHEN is_needless AND serial IS NULL THEN format('ALTER SEQUENCE %s RENAME TO %I', sequence,
			(SELECT relname FROM pg_class WHERE oid = used)) END, NULL);
END
$$;

CREATE PROCEDURE snowflake_move_back(tab regclass, dry_run boolean DEFAULT false, tries integer DEFAULT 30)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
	key record;
	commands text[] := '{}';
	partitions text;
BEGIN
	PERFORM @extschema@.snowflake_admin_run('{}', ARRAY[tab], tries, dry_run, NULL);
	SELECT * INTO key FROM @extschema@.snowflake_admin_key(tab);
	IF key.made_by <> 'next_id' THEN
		RAISE NOTICE 'the key of % does not come from next_id()', tab;
		RETURN;
	END IF;
	-- A view with the column would refuse this, and an identity refuses the type.
	IF key.type::oid <> 'bigint'::regtype THEN
		commands := ARRAY[format('ALTER TABLE %s ALTER %I TYPE bigint', tab, key.col)];
	END IF;
	commands := commands || @extschema@.snowflake_admin_identity_commands(tab, key.col,
		key.layout, key.sequence, dry_run);
	-- An identity begins a second ahead of the clock, and hardly gets on from there.
	SELECT string_agg(r.partition::text, ', ') INTO partitions
	FROM @extschema@.snowflake_admin_family(tab) AS member JOIN pg_partitioned_table ON partrelid = member
	JOIN pg_attribute ON attrelid = member AND attnum = partattrs[0] AND attname = key.col,
		@extschema@.snowflake_admin_bound(clock_timestamp() + interval '1 s',
			@extschema@.snowflake_admin_to_layout(key.layout)) AS next
		LEFT JOIN LATERAL @extschema@.snowflake_admin_ranges(member) AS r ON lower_id <= next AND next < upper_id
	WHERE partstrat = 'r' AND partnatts = 1 AND key.layout NOT IN ('trace', 'decimal')
	HAVING count(*) > 0;
	IF FOUND THEN
		RAISE WARNING USING
			MESSAGE = format('new keys of table %s will not tell the time', tab),
			DETAIL = coalesce('Their rows will all go into ' || partitions || '.',
				'There is no partition for them.'),
			HINT = 'Stop jobs that call snowflake_make_partitions() and snowflake_drop_partitions().';
	END IF;
	PERFORM @extschema@.snowflake_admin_run(commands,
		ARRAY[tab] || CASE WHEN key.sequence <> @extschema@.snowflake_admin_next_id_seq()
			THEN key.sequence END,
		tries, dry_run);
END
$$;

COMMENT ON PROCEDURE snowflake_move_back(regclass, boolean, integer) IS
'let an identity make the key of a table, beyond all IDs that next_id() made for it';

-- Call a procedure for each table of a schema whose key it would change, each in a
-- transaction of its own.  What stays as it is, is named by a warning.
CREATE PROCEDURE snowflake_admin_each_table(schema name, to_next_id boolean, command text, tries integer)
LANGUAGE plpgsql AS $$
DECLARE
	tables pg_catalog.regclass[];
	others pg_catalog.text[];
	always pg_catalog.text;
	target pg_catalog.regclass;
	other pg_catalog.text;
	failed integer := 0;
	detail pg_catalog.text;
	hint pg_catalog.text;
BEGIN
	SET LOCAL search_path = pg_catalog, pg_temp;
	IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = schema) THEN
		RAISE invalid_schema_name USING MESSAGE = format('schema "%s" does not exist', schema);
	END IF;
	SELECT coalesce(array_agg(DISTINCT k.tab) FILTER (WHERE k.is_main), '{}'),
		coalesce(array_agg(DISTINCT format('column %I of table %s', k.col, k.tab))
			FILTER (WHERE NOT k.is_main), '{}'),
		string_agg(DISTINCT k.tab::text, ', ') FILTER (WHERE k.is_main AND k.made_by = 'GENERATED ALWAYS')
	INTO tables, others, always
	FROM @extschema@.snowflake_admin_main_keys() AS k JOIN pg_class ON oid = k.tab
	WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = schema)
		AND (k.made_by = 'next_id') <> to_next_id;
	IF always IS NOT NULL THEN
		RAISE NOTICE 'a default does not keep programs from choosing keys, as GENERATED ALWAYS did: %', always;
	END IF;
	PERFORM @extschema@.snowflake_admin_run('{}', '{}', tries, true);
	COMMIT;
	FOREACH target IN ARRAY tables LOOP
		SET LOCAL search_path = pg_catalog, pg_temp;
		BEGIN
			EXECUTE format(command, target::text);
		EXCEPTION WHEN OTHERS THEN
			failed := failed + 1;
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
			RAISE WARNING USING
				MESSAGE = format('%s stays as it is: %s', target, SQLERRM),
				DETAIL = coalesce(nullif(detail, ''), format('The SQLSTATE is %s.', SQLSTATE)),
				HINT = coalesce(nullif(hint, ''), 'Call this again when the cause is gone.');
		END;
		COMMIT;
	END LOOP;
	SET LOCAL search_path = pg_catalog, pg_temp;
	FOREACH other IN ARRAY others LOOP
		RAISE WARNING '% stays as it is: it is not the key of its table', other;
	END LOOP;
	RAISE NOTICE '% of % tables done', cardinality(tables) - failed, cardinality(tables);
END
$$;

CREATE PROCEDURE snowflake_move_schema(schema name, shard bigint DEFAULT NULL,
	own_sequence boolean DEFAULT false, dry_run boolean DEFAULT false, tries integer DEFAULT 5)
LANGUAGE plpgsql AS $$
BEGIN
	CALL @extschema@.snowflake_admin_require_no_transaction('snowflake_move_schema()');
	SET LOCAL search_path = pg_catalog, pg_temp;
	PERFORM @extschema@.snowflake_admin_require_shard(shard, 'instagram');
	IF shard IS NULL THEN
		PERFORM @extschema@.snowflake_admin_count_other_sessions();
	END IF;
	CALL @extschema@.snowflake_admin_each_table(schema, true,
		format('CALL @extschema@.snowflake_admin_move_table(%%L, %L, %L, %L, %L, true)',
			shard, own_sequence, dry_run, tries),
		tries);
END
$$;

COMMENT ON PROCEDURE snowflake_move_schema(name, bigint, boolean, boolean, integer) IS
'let next_id() make the keys of all tables of a schema';

CREATE PROCEDURE snowflake_move_back_schema(schema name, dry_run boolean DEFAULT false,
	tries integer DEFAULT 5)
LANGUAGE plpgsql AS $$
BEGIN
	CALL @extschema@.snowflake_admin_require_no_transaction('snowflake_move_back_schema()');
	SET LOCAL search_path = pg_catalog, pg_temp;
	CALL @extschema@.snowflake_admin_each_table(schema, false,
		format('CALL @extschema@.snowflake_move_back(%%L, %L, %L)', dry_run, tries), tries);
END
$$;

COMMENT ON PROCEDURE snowflake_move_back_schema(name, boolean, integer) IS
'let identities make the keys of all tables of a schema, beyond all IDs that next_id() made for them';

-- A column and all that refer to it by foreign keys, directly or not; parents have smaller
-- places.  A partition stands for its partitioned table.
CREATE FUNCTION snowflake_admin_chain(tab regclass, col name)
RETURNS TABLE (rel regclass, name name, place integer)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH RECURSIVE chain (rel, name) AS (
		SELECT attrelid, attname FROM pg_attribute
		WHERE attrelid = tab AND attname = col AND attnum > 0 AND NOT attisdropped
		UNION ALL SELECT conrelid, child.attname
		FROM chain JOIN pg_constraint ON coalesce(pg_partition_root(confrelid), confrelid) = rel
			AND contype = 'f' AND conparentid = 0
		CROSS JOIN unnest(conkey, confkey) AS pair (referring, referred)
		JOIN pg_attribute AS child ON child.attrelid = conrelid AND child.attnum = referring
		JOIN pg_attribute AS parent ON parent.attrelid = confrelid AND parent.attnum = referred
		WHERE parent.attname = chain.name
	) CYCLE rel, name SET again USING path
	SELECT rel, name, max(cardinality(path)) FROM chain WHERE NOT again
	GROUP BY rel, name ORDER BY rel <> tab, rel::regclass::text, name
$$;

--
-- Widen an integer column, and all that refer to it
--
-- Each column gets a second one of type bigint, which a trigger keeps equal, and
-- which takes its place in the end.  What the steps make is named snowflake_widen_
-- and a number: that of the column in its table, or the OID of the index or
-- constraint that it is to replace.  So the catalogs say what is still to do, and
-- a call goes on where another one ended.
--

-- A column that a former call has added is complete: its trigger came with it.
CREATE FUNCTION snowflake_admin_widen_columns(tab regclass, col name)
RETURNS TABLE (rel regclass, num smallint, place integer, narrow name, wide name, func text, trig name,
	added boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT c.rel, a.attnum, max(c.place) OVER (PARTITION BY c.rel), a.attname, wide.name,
		format('%s.%I', relnamespace::regnamespace, format('snowflake_widen_%s_%s', c.rel::oid, attnum)),
		format('zz_snowflake_widen_%s', attnum)::name,
		EXISTS (SELECT FROM pg_attribute AS b
			WHERE b.attrelid = c.rel AND b.attname = wide.name AND NOT b.attisdropped)
	FROM @extschema@.snowflake_admin_chain(tab, col) AS c
		JOIN pg_attribute AS a ON a.attrelid = c.rel AND a.attname = c.name
		JOIN pg_class ON pg_class.oid = c.rel
		CROSS JOIN LATERAL CAST(format('snowflake_widen_%s', attnum) AS name) AS wide (name)
	WHERE a.atttypid IN ('smallint'::regtype, 'integer'::regtype)
$$;

CREATE FUNCTION snowflake_admin_widen_indexes(tab regclass, col name)
RETURNS TABLE (rel regclass, index oid, name name, is_unique boolean, tail text, fresh text, fresh_oid oid,
	fresh_valid boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT c.rel, i.indexrelid, r.relname, i.indisunique,
		substr(pg_get_indexdef(i.indexrelid), 1 + length(format('CREATE %sINDEX %I ON %s.%I USING ',
			CASE WHEN i.indisunique THEN 'UNIQUE ' END, r.relname, r.relnamespace::regnamespace, t.relname))),
		format('%s.snowflake_widen_%s', r.relnamespace::regnamespace, i.indexrelid), fresh.oid, f.indisvalid
	FROM (SELECT rel, array_agg(num) AS nums FROM @extschema@.snowflake_admin_widen_columns(tab, col)
		GROUP BY rel) AS c
		JOIN pg_class AS t ON t.oid = c.rel
		JOIN pg_index AS i ON i.indrelid = c.rel
		JOIN pg_class AS r ON r.oid = i.indexrelid
		LEFT JOIN (pg_index AS f JOIN pg_class AS fresh ON fresh.oid = f.indexrelid)
			ON f.indrelid = c.rel AND fresh.relname = format('snowflake_widen_%s', i.indexrelid)
	WHERE NOT starts_with(r.relname, 'snowflake_widen_')
		AND (i.indkey::smallint[] && c.nums OR EXISTS (SELECT FROM pg_depend
			WHERE classid = 'pg_class'::regclass AND objid = i.indexrelid
				AND refclassid = 'pg_class'::regclass
				AND refobjid = c.rel AND refobjsubid = ANY (c.nums)))
$$;

-- Foreign keys consist of columns only, so they are composed anew.
CREATE FUNCTION snowflake_admin_widen_keys(tab regclass, col name)
RETURNS TABLE (con oid, name name, child regclass, parent regclass, place integer, definition text,
	validated boolean, fresh text, fresh_validated boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH w AS (SELECT * FROM @extschema@.snowflake_admin_widen_columns(tab, col)),
	action (code, command) AS (VALUES ('a', ''), ('r', 'RESTRICT'), ('c', 'CASCADE'), ('n', 'SET NULL'),
		('d', 'SET DEFAULT'))
	SELECT c.oid, c.conname, c.conrelid, c.confrelid,
		coalesce((SELECT max(w.place) FROM w WHERE rel = c.conrelid), 0),
		format('FOREIGN KEY (%s) REFERENCES %s (%s)', names.referring, c.confrelid::regclass, names.referred)
			|| CASE c.confmatchtype WHEN 'f' THEN ' MATCH FULL' ELSE '' END
			|| coalesce(' ON UPDATE ' || nullif(u.command, ''), '')
			|| coalesce(' ON DELETE ' || nullif(d.command, '') || coalesce(' (' || names.set || ')', ''), '')
			|| CASE WHEN c.condeferrable THEN ' DEFERRABLE' ELSE '' END
			|| CASE WHEN c.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END,
		c.convalidated, fresh.name, f.convalidated
	FROM pg_constraint AS c JOIN action AS u ON u.code = c.confupdtype
		JOIN action AS d ON d.code = c.confdeltype
		CROSS JOIN LATERAL format('snowflake_widen_%s', c.oid) AS fresh (name)
		LEFT JOIN pg_constraint AS f ON f.conrelid = c.conrelid AND f.conname = fresh.name
		CROSS JOIN LATERAL (SELECT
			string_agg(quote_ident(names.name), ', ' ORDER BY n) FILTER (WHERE which = 1) AS referring,
			string_agg(quote_ident(names.name), ', ' ORDER BY n) FILTER (WHERE which = 2) AS referred,
			string_agg(quote_ident(names.name), ', ' ORDER BY n) FILTER (WHERE which = 3) AS set
			FROM (SELECT which, n, coalesce(w.wide, attname) AS name
				FROM (SELECT 1 AS which, c.conrelid AS of_rel, k, n
					FROM unnest(c.conkey) WITH ORDINALITY AS x (k, n)
					UNION ALL SELECT 2, c.confrelid, k, n FROM unnest(c.confkey) WITH ORDINALITY AS x (k, n)
					UNION ALL SELECT 3, c.conrelid, k, n
						FROM unnest(c.confdelsetcols) WITH ORDINALITY AS x (k, n)) AS k
				JOIN pg_attribute ON attrelid = of_rel AND attnum = k
					LEFT JOIN w ON w.rel = of_rel AND w.num = k) AS names) AS names
	WHERE c.contype = 'f' AND c.conparentid = 0 AND NOT starts_with(c.conname, 'snowflake_widen_')
		AND EXISTS (SELECT FROM w WHERE rel = c.conrelid AND num = ANY (c.conkey) OR rel = c.confrelid
			AND num = ANY (c.confkey))
$$;

-- How indexes and CHECK constraints read with the new columns, PostgreSQL itself must say,
-- because they may have expressions.  The columns of an empty copy of the table become
-- bigint and get the new names.  This is also a rehearsal, which fails where an expression
-- does not accept a bigint.
CREATE FUNCTION snowflake_admin_widen_rehearse(tab regclass, col name)
RETURNS TABLE (object oid, definition text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
	copy record;
	command text;
BEGIN
	FOR copy IN SELECT rel, array_agg(narrow) AS narrow, array_agg(wide) AS wide
		FROM @extschema@.snowflake_admin_widen_columns(tab, col) GROUP BY rel
	LOOP
		FOR command IN
			SELECT format('CREATE TEMPORARY TABLE snowflake_widen (LIKE %s INCLUDING CONSTRAINTS)', copy.rel)
			UNION ALL SELECT format('CREATE %sINDEX snowflake_widen_%s ON pg_temp.snowflake_widen USING %s',
				CASE WHEN is_unique THEN 'UNIQUE ' END, index, tail)
			FROM @extschema@.snowflake_admin_widen_indexes(tab, col) WHERE rel = copy.rel
			UNION ALL SELECT 'ALTER TABLE pg_temp.snowflake_widen ' || string_agg(
				format('DROP COLUMN IF EXISTS %I, ALTER %I TYPE bigint', wide, narrow), ', ')
			FROM unnest(copy.wide, copy.narrow) AS c (wide, narrow)
			UNION ALL SELECT format('ALTER TABLE pg_temp.snowflake_widen RENAME %I TO %I', narrow, wide)
			FROM unnest(copy.wide, copy.narrow) AS c (wide, narrow)
		LOOP
			BEGIN
				EXECUTE command;
			EXCEPTION WHEN insufficient_privilege THEN
				RAISE;
			WHEN syntax_error_or_access_rule_violation OR invalid_text_representation THEN
				RAISE object_not_in_prerequisite_state USING
					MESSAGE = format('an index or a constraint of table %s cannot be made for type bigint',
						copy.rel),
					DETAIL = SQLERRM,
					HINT = 'It calls something that has an argument of type integer, or none for bigint.';
			END;
		END LOOP;
		RETURN QUERY SELECT substr(relname, 17)::oid, substr(def, 7 + strpos(def, ' USING '))
			FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid, pg_get_indexdef(indexrelid) AS d (def)
			WHERE indrelid = 'pg_temp.snowflake_widen'::regclass
			UNION ALL SELECT old.oid, pg_get_constraintdef(new.oid) FROM pg_constraint AS new
				JOIN pg_constraint AS old USING (conname)
			WHERE new.conrelid = 'pg_temp.snowflake_widen'::regclass AND old.conrelid = copy.rel
				AND old.contype = 'c';
		DROP TABLE pg_temp.snowflake_widen;
	END LOOP;
END
$$;

-- A trigger that is ENABLE REPLICA or ALWAYS is meant to fire while columns are filled.
CREATE FUNCTION snowflake_admin_widen_fires(rel regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT EXISTS (SELECT FROM pg_trigger
		WHERE tgrelid = rel AND NOT tgisinternal AND tgenabled = 'O' AND tgtype & 16 <> 0)
$$;

CREATE FUNCTION snowflake_admin_widen_obstacle(tab regclass, col name)
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH w AS (SELECT * FROM @extschema@.snowflake_admin_widen_columns(tab, col)),
	t AS (SELECT DISTINCT w.rel, pg_class.* FROM w JOIN pg_class ON oid = w.rel)
	SELECT format('Column %I of table %s has type %s.', attname, c.rel, format_type(atttypid, NULL)),
		'Give it type integer or bigint first.'
	FROM @extschema@.snowflake_admin_chain(tab, col) AS c
		JOIN pg_attribute ON attrelid = c.rel AND attname = c.name
		JOIN pg_type ON pg_type.oid = atttypid
	WHERE typtype = 'd' AND typbasetype <> 'bigint'::regtype OR typtype <> 'd' AND typcategory <> 'N'
	UNION ALL SELECT format('Table %s %s.', rel, reason),
		'Change this first, or the type by ALTER TABLE while the application is stopped.'
	FROM t CROSS JOIN LATERAL (SELECT CASE
		WHEN relkind = 'p' THEN 'is partitioned'
		WHEN relkind <> 'r' OR relpersistence = 't' OR reloftype <> 0 THEN 'is foreign, temporary or typed'
		WHEN EXISTS (SELECT FROM pg_inherits WHERE rel IN (inhrelid, inhparent)) THEN 'is a partition, a parent or a child'
		WHEN EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid = rel) THEN 'is filled by a subscription'
		WHEN EXISTS (SELECT FROM pg_rewrite WHERE ev_class = rel) THEN 'has a rule' END) AS r (reason)
	WHERE reason IS NOT NULL
	UNION ALL SELECT format('Foreign key "%s" of partitioned table %s refers to it.', name, child),
		'Drop it first, and add it again afterwards.'
	FROM @extschema@.snowflake_admin_widen_keys(tab, col) JOIN pg_class ON oid = child
	WHERE relkind = 'p' AND current_setting('server_version_num')::integer < 180000
	UNION ALL SELECT format('Table %s is in publication "%s".', rel, p.pubname),
		'Its subscribers would not get the new column. Take it out of the publication first.'
	FROM t JOIN pg_publication_tables AS p ON quote_ident(schemaname) = relnamespace::regnamespace::text
		AND tablename = relname
	UNION ALL SELECT format('Row-level security of table %s applies to you.', rel),
		'Call it as a role with BYPASSRLS, or as the owner without FORCE ROW LEVEL SECURITY.'
	FROM t WHERE row_security_active(rel)
	UNION ALL SELECT format('Column %I of table %s is generated, or has a security label.', narrow, w.rel),
		'Make it an ordinary column first.'
	FROM w JOIN pg_attribute ON attrelid = rel AND attnum = num
	WHERE attgenerated <> '' OR EXISTS (SELECT FROM pg_seclabel
		WHERE classoid = 'pg_class'::regclass AND objoid = rel AND objsubid = num)
	UNION ALL SELECT format('The sequence of identity column %I of table %s is used by %s.', narrow, rel,
		@extschema@.snowflake_admin_place(u.class, u.object)),
		'Give that its own sequence first.'
	FROM w JOIN pg_depend AS d ON refclassid = 'pg_class'::regclass AND refobjid = rel AND refobjsubid = num
		AND classid = 'pg_class'::regclass AND deptype = 'i'
	JOIN @extschema@.snowflake_admin_sequence_users() AS u ON u.sequence = d.objid
	UNION ALL SELECT format('%s depends on column %I of table %s.', upper(left(o.name, 1))
		|| substr(o.name, 2), narrow, rel),
		'Save its definition and its privileges, drop it, and create it again afterwards.'
	FROM w JOIN pg_depend AS d ON refclassid = 'pg_class'::regclass AND refobjid = rel AND refobjsubid = num
		CROSS JOIN LATERAL (SELECT CASE classid WHEN 'pg_rewrite'::regclass
			THEN (SELECT pg_describe_object('pg_class'::regclass, ev_class, 0) FROM pg_rewrite
				WHERE oid = objid)
			ELSE pg_describe_object(classid, objid, objsubid) END) AS o (name)
	WHERE (classid, objid) NOT IN (
		SELECT 'pg_class'::regclass, oid FROM pg_class WHERE relkind IN ('i', 'S')
		UNION ALL SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid = rel AND adnum = num
		UNION ALL SELECT 'pg_constraint'::regclass, oid FROM pg_constraint
			WHERE contype IN ('c', 'f', 'n', 'p', 'u'))
	UNION ALL
	SELECT format('Constraint "%s" of table %s is deferrable, for periods, not enforced, or not valid.',
		conname, conrelid::regclass), 'Drop it first.'
	FROM pg_constraint AS c
		JOIN w ON conrelid = rel AND num = ANY (conkey) OR confrelid = rel AND num = ANY (confkey)
	WHERE contype IN ('p', 'u') AND condeferrable OR contype = 'n' AND NOT convalidated
		OR 'true' = to_jsonb(c) ->> 'conperiod' OR 'false' = to_jsonb(c) ->> 'conenforced'
	UNION ALL SELECT format('"%s" of table %s replaces something that has been dropped.', fresh.name,
		fresh.rel), 'Drop it first, too, or call snowflake_widen() with undo => true.'
	FROM (
		SELECT indrelid::regclass, relname FROM pg_index JOIN pg_class ON oid = indexrelid
		WHERE indrelid IN (SELECT rel FROM w)
		UNION SELECT conrelid, conname FROM pg_constraint
		WHERE conparentid = 0 AND (conrelid IN (SELECT rel FROM w) OR confrelid IN (SELECT rel FROM w))
	) AS fresh (rel, name)
	WHERE fresh.name ~ '^snowflake_widen_\d{5,}$' AND fresh.name NOT IN (
		SELECT 'snowflake_widen_' || indexrelid FROM pg_index
		UNION SELECT 'snowflake_widen_' || oid FROM pg_constraint)
	UNION ALL SELECT format('Index "%s" is invalid.', name), 'Drop it first, or create it again.'
	FROM @extschema@.snowflake_admin_widen_indexes(tab, col) JOIN pg_index ON indexrelid = index
		WHERE NOT indisvalid
	UNION ALL SELECT format('Trigger "%s" of table %s would fire after "%s".', tgname, rel, trig),
		'Rename it first.'
	FROM w JOIN pg_trigger ON tgrelid = rel
	WHERE tgtype & 3 = 3 AND tgname > trig COLLATE "C" AND tgname !~ '^zz_snowflake_widen_'
		AND NOT tgisinternal
	UNION ALL SELECT format('Triggers of table %s would fire for old rows.', rel),
		format('A superuser can prevent it: GRANT SET ON PARAMETER session_replication_role TO %I.',
			current_user)
	FROM t WHERE @extschema@.snowflake_admin_widen_fires(rel)
		AND NOT has_parameter_privilege('session_replication_role', 'SET')
	LIMIT 1
$$;

CREATE FUNCTION snowflake_admin_widen_check(tab regclass, col name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	first record;
BEGIN
	IF tab IS NULL OR col IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = format('%s must not be null',
			CASE WHEN tab IS NULL THEN 'tab' ELSE 'col' END);
	ELSIF NOT EXISTS (SELECT FROM @extschema@.snowflake_admin_chain(tab, col)) THEN
		RAISE undefined_column USING MESSAGE = format('column "%s" of table %s does not exist', col, tab);
	END IF;
	SELECT oid::regclass AS rel INTO first FROM pg_class
	WHERE NOT pg_has_role(relowner, 'USAGE') AND oid = ANY (@extschema@.snowflake_admin_widen_tables(tab, col));
	IF FOUND THEN
		RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', first.rel);
	END IF;
	SELECT * INTO first FROM @extschema@.snowflake_admin_widen_obstacle(tab, col);
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot widen column %I of table %s', col, tab),
			DETAIL = first.problem, HINT = first.remedy;
	END IF;
END
$$;

-- Steps 1 and 2: add columns, each with its trigger, and fill them.  The trigger fires
-- always, also in a session that replays changes of another server.  Step 3: a CHECK that
-- both columns agree, whose validation is the proof for all rows.
CREATE FUNCTION snowflake_admin_widen_first_steps(tab regclass, col name)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	WITH w AS (SELECT * FROM @extschema@.snowflake_admin_widen_columns(tab, col)),
	c AS (
		SELECT rel, place, wide AS name, true AS validated, format(CASE WHEN attnotnull
			THEN 'CHECK (%1$I IS NOT NULL AND %1$I = %2$I)' ELSE 'CHECK (%1$I IS NOT DISTINCT FROM %2$I)' END,
				wide, narrow) AS def
		FROM w JOIN pg_attribute ON attrelid = rel AND attnum = num
		UNION ALL
		SELECT DISTINCT rel, place, format('snowflake_widen_%s', o.oid), o.convalidated, r.definition
		FROM w JOIN pg_constraint AS o ON o.conrelid = rel AND o.contype = 'c' AND num = ANY (o.conkey)
			LEFT JOIN @extschema@.snowflake_admin_widen_rehearse(tab, col) AS r ON r.object = o.oid
		WHERE NOT starts_with(o.conname, 'snowflake_widen_')
	),
	todo AS (SELECT c.*, f.convalidated FROM c
		LEFT JOIN pg_constraint AS f ON f.conrelid = rel AND f.conname = name)
	(SELECT 'add', array_agg(command ORDER BY num, n), ARRAY[rel], 'ACCESS EXCLUSIVE'
	FROM w, unnest(ARRAY[
		format('ALTER TABLE %s ADD %I bigint', rel, wide),
		format('CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS %L', func,
			format('BEGIN NEW.%I := NEW.%I; RETURN NEW; END', wide, narrow)),
		format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION %s()', trig,
			rel, func),
		format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', rel, trig)]) WITH ORDINALITY AS c (command, n)
	WHERE NOT added GROUP BY rel, place ORDER BY place, rel)
	UNION ALL (SELECT 'fill', ARRAY[format('UPDATE %s SET %s WHERE %s', rel,
		string_agg(format('%I = %I', wide, narrow), ', ' ORDER BY num),
		string_agg(format('%I IS DISTINCT FROM %I', wide, narrow), ' OR ' ORDER BY num))], ARRAY[rel], NULL
	FROM w WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = rel AND conname = wide)
	GROUP BY rel, place ORDER BY place, rel)
	UNION ALL (SELECT 'check', ARRAY[format('ALTER TABLE %s %s', rel,
		string_agg(format('ADD CONSTRAINT %s %s NOT VALID', name, def), ', '))], ARRAY[rel],
			'ACCESS EXCLUSIVE'
	FROM todo WHERE convalidated IS NULL GROUP BY rel, place ORDER BY place, rel)
	UNION ALL (SELECT 'validate', ARRAY[format('ALTER TABLE %s %s', rel,
		string_agg('VALIDATE CONSTRAINT ' || name, ', '))],
		ARRAY[rel], 'SHARE UPDATE EXCLUSIVE'
	FROM todo WHERE validated AND NOT coalesce(convalidated, false) GROUP BY rel, place ORDER BY place, rel)
$$;

-- What the new columns get before the old ones go, with their indexes and constraints, and
-- then the names of these.  The validated CHECK proves NOT NULL without a scan.  The
-- sequence of an identity column cannot change its column, so a new one takes its place.
CREATE FUNCTION snowflake_admin_widen_swap(tab regclass, col name)
RETURNS TABLE (part integer, command text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH w AS (SELECT * FROM @extschema@.snowflake_admin_widen_columns(tab, col)
		JOIN pg_attribute ON attrelid = rel AND attnum = num),
	s AS (SELECT w.*, objid::regclass AS seq,
		format('%s.%I', relnamespace::regnamespace, relname) AS seq_name,
			format('snowflake_widen_%s', objid) AS away, relnamespace::regnamespace AS schema, deptype
		FROM w JOIN pg_depend ON classid = 'pg_class'::regclass AND refclassid = classid AND refobjid = rel
			AND refobjsubid = num
			JOIN pg_class ON pg_class.oid = objid AND relkind = 'S'),
	i AS (SELECT w.rel, index, name, fresh, indisclustered, indisreplident, con.oid AS con, contype,
		relnamespace::regnamespace AS schema
		FROM @extschema@.snowflake_admin_widen_indexes(tab, col) AS w JOIN pg_index ON indexrelid = index
			JOIN pg_class ON pg_class.oid = index
			LEFT JOIN pg_constraint AS con ON conindid = index AND conrelid = w.rel
				AND contype IN ('p', 'u')),
	k AS (SELECT con, name, child AS rel FROM @extschema@.snowflake_admin_widen_keys(tab, col)
		UNION SELECT oid, conname, rel FROM w
			JOIN pg_constraint ON conrelid = rel AND contype IN ('c', 'n') AND num = ANY (conkey)
		WHERE NOT starts_with(conname, 'snowflake_widen_'))
	SELECT 10, format('ALTER TABLE %s DROP CONSTRAINT %I', child, name)
	FROM @extschema@.snowflake_admin_widen_keys(tab, col)
	UNION ALL SELECT 20, format('ALTER TABLE %s ALTER %I SET NOT NULL', rel, wide) FROM w
	WHERE attnotnull AND NOT EXISTS (SELECT FROM pg_constraint
		WHERE conrelid = rel AND contype = 'n' AND num = ANY (conkey))
	UNION ALL SELECT 20, format('ALTER TABLE %s ADD CONSTRAINT snowflake_widen_%s NOT NULL %I', rel, c.oid,
		wide)
	FROM w JOIN pg_constraint AS c ON conrelid = rel AND contype = 'n' AND num = ANY (conkey)
	UNION ALL SELECT 21, format('ALTER SEQUENCE %s AS bigint', seq) FROM (
		SELECT seq FROM s WHERE deptype = 'a'
		UNION SELECT d.refobjid::regclass FROM w JOIN pg_attrdef ON adrelid = rel AND adnum = num
			JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = pg_attrdef.oid
				AND d.refclassid = 'pg_class'::regclass) AS u
		JOIN pg_sequence ON seqrelid = seq WHERE seqtypid <> 'bigint'::regtype
	UNION ALL SELECT 22, format('ALTER SEQUENCE %s OWNED BY %s.%I', seq, rel, wide) FROM s WHERE deptype = 'a'
	UNION ALL SELECT 23, format('ALTER TABLE %s ALTER %I SET DEFAULT %s', rel, wide,
		pg_get_expr(adbin, adrelid))
	FROM w JOIN pg_attrdef ON adrelid = rel AND adnum = num
	UNION ALL SELECT 24, format('ALTER SEQUENCE %s RENAME TO %s', seq, away) FROM s WHERE deptype = 'i'
	UNION ALL SELECT 24 + n, i.command FROM s,
		@extschema@.snowflake_admin_identity_like(seq, format('%s.%s', schema, away), rel::text, wide,
			seq_name) AS i
	UNION ALL SELECT 29, g FROM w,
		@extschema@.snowflake_admin_grant_commands(attacl, format(' (%I)', wide), rel::text) AS g
	UNION ALL SELECT 29, format('COMMENT ON COLUMN %s.%I IS ', rel, wide)
		|| quote_literal(col_description(rel, num)) FROM w
	UNION ALL SELECT 29, c FROM w, @extschema@.snowflake_admin_column_commands(rel, num, rel::text, wide) AS c
	UNION ALL SELECT 30, format('DROP TRIGGER %I ON %s', trig, rel) FROM w
	UNION ALL SELECT 31, format('DROP FUNCTION %s()', func) FROM w
	UNION ALL SELECT 40, format('ALTER TABLE %s DROP %I', rel, narrow) FROM w
	UNION ALL SELECT 50, format('ALTER INDEX %s RENAME TO %I', fresh, name) FROM i
	UNION ALL SELECT 51, format('ALTER TABLE %1$s ADD CONSTRAINT %2$I %3$s USING INDEX %2$I', rel, name,
		CASE contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END) FROM i WHERE con IS NOT NULL
	UNION ALL SELECT 51, format('ALTER TABLE %s RENAME %I TO %I', rel, wide, narrow) FROM w
	UNION ALL SELECT 52, format('ALTER TABLE %s RENAME CONSTRAINT snowflake_widen_%s TO %I', rel, con, name)
		FROM k
	UNION ALL SELECT 53, format('ALTER TABLE %s CLUSTER ON %I', rel, name) FROM i WHERE indisclustered
	UNION ALL SELECT 53, format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', rel, name) FROM i
		WHERE indisreplident
	UNION ALL SELECT 54, format('COMMENT ON INDEX %s.%I IS ', schema, name)
		|| quote_literal(obj_description(index, 'pg_class')) FROM i
	UNION ALL SELECT 54, format('COMMENT ON CONSTRAINT %I ON %s IS ', name, rel)
		|| quote_literal(obj_description(con, 'pg_constraint'))
	FROM (SELECT con, name, rel FROM i UNION SELECT con, name, rel FROM k) AS c
$$;

-- All tables, those that a foreign key refers to first
CREATE FUNCTION snowflake_admin_widen_tables(tab regclass, col name) RETURNS regclass[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT array_agg(rel ORDER BY place, rel) FROM (
		SELECT rel, max(place) AS place FROM (
			SELECT rel, place FROM @extschema@.snowflake_admin_widen_columns(tab, col)
			UNION ALL SELECT parent, 0 FROM @extschema@.snowflake_admin_widen_keys(tab, col)
			UNION ALL SELECT child, place FROM @extschema@.snowflake_admin_widen_keys(tab, col)) AS t
				GROUP BY rel) AS t
$$;

-- What is still to do.  The last transaction analyzes and swaps all columns: without
-- statistics of the new columns, queries would be planned badly after it.
CREATE FUNCTION snowflake_admin_widen_steps(tab regclass, col name)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM @extschema@.snowflake_admin_widen_columns(tab, col)) THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT * FROM @extschema@.snowflake_admin_widen_first_steps(tab, col);
	-- Step 4: indexes.  Only the caller can create one CONCURRENTLY.  That of a small
	-- table is created here, while writers wait for some tenths of a second.
	RETURN QUERY SELECT CASE WHEN small THEN 'index' ELSE 'concurrently' END,
			CASE WHEN builder.pid IS NOT NULL
				THEN ARRAY[format('-- Index %s is being created by process %s', fresh, builder.pid)]
			ELSE array_remove(ARRAY[
				CASE WHEN fresh_oid IS NOT NULL THEN format('DROP INDEX CONCURRENTLY %s', fresh) END,
				format('CREATE %sINDEX %sON %s USING %s', CASE WHEN is_unique THEN 'UNIQUE ' END,
					CASE WHEN small THEN '' ELSE 'CONCURRENTLY ' END || 'snowflake_widen_' || index || ' ', rel,
					CASE WHEN spcname IS NULL THEN definition
					ELSE left(definition, length(definition) - length(predicate))
						|| format(' TABLESPACE %I', spcname) || predicate END)], NULL)
			END, ARRAY[rel], 'SHARE'
		FROM @extschema@.snowflake_admin_widen_indexes(tab, col)
			JOIN @extschema@.snowflake_admin_widen_rehearse(tab, col) ON object = index
			JOIN pg_class ON oid = index LEFT JOIN pg_tablespace ON pg_tablespace.oid = reltablespace
			LEFT JOIN pg_stat_progress_create_index AS builder ON builder.index_relid = fresh_oid,
			LATERAL (SELECT pg_relation_size(rel) <= 8 * 1024 * 1024 AND fresh_oid IS NULL) AS s (small),
			LATERAL (SELECT coalesce(substring(definition FROM ' WHERE .*$'), '')) AS p (predicate)
		WHERE fresh_valid IS NOT TRUE ORDER BY small DESC, rel, index;
	-- Step 5: foreign keys, in which the parents' new columns need their indexes.
	RETURN QUERY WITH k AS (SELECT * FROM @extschema@.snowflake_admin_widen_keys(tab, col))
		(SELECT 'key', ARRAY[format('ALTER TABLE %s ADD CONSTRAINT %s %s NOT VALID', child, fresh, definition)],
			CASE WHEN parent = child THEN ARRAY[child] ELSE ARRAY[parent, child] END, 'SHARE ROW EXCLUSIVE'
		FROM k WHERE fresh_validated IS NULL ORDER BY place, con)
		UNION ALL
		(SELECT 'validate', ARRAY[format('ALTER TABLE %s VALIDATE CONSTRAINT %s', child, fresh)], ARRAY[child],
			'SHARE UPDATE EXCLUSIVE'
		FROM k WHERE validated AND NOT coalesce(fresh_validated, false) ORDER BY place, con);
	RETURN QUERY SELECT 'analyze', ARRAY(SELECT DISTINCT format('ANALYZE %s', rel)
		FROM @extschema@.snowflake_admin_widen_columns(tab, col)),
		@extschema@.snowflake_admin_widen_tables(tab, col), NULL;
	RETURN QUERY SELECT 'swap', array_agg(command ORDER BY part, command) FILTER (WHERE command IS NOT NULL),
		@extschema@.snowflake_admin_widen_tables(tab, col), 'ACCESS EXCLUSIVE'
	FROM @extschema@.snowflake_admin_widen_swap(tab, col);
END
$$;

-- Until the swap, all can be taken back.
CREATE FUNCTION snowflake_admin_widen_undo(tab regclass, col name) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH w AS (SELECT * FROM @extschema@.snowflake_admin_widen_columns(tab, col) WHERE added)
	SELECT coalesce(array_agg(command ORDER BY part, command), '{}') FROM (
		SELECT DISTINCT 1, format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
		FROM w JOIN pg_constraint ON confrelid = rel AND contype = 'f' AND conparentid = 0
		WHERE starts_with(conname, 'snowflake_widen_')
		UNION ALL SELECT 2, format('DROP TRIGGER %I ON %s', trig, rel) FROM w
		UNION ALL SELECT 3, format('DROP FUNCTION %s()', func) FROM w
		UNION ALL SELECT 4, format('ALTER TABLE %s DROP %I', rel, wide) FROM w) AS c (part, command)
$$;

-- Fill new columns of a table's old rows, 16 pages at a time.  Rows that somebody has locked
-- are left to the next round.  The pause, in which vacuum and standbys keep up, is made at
-- the beginning of a transaction, which holds no lock on rows yet.
CREATE PROCEDURE snowflake_admin_widen_fill(tab regclass, col name, filling regclass, chain oid[],
	pause interval)
LANGUAGE plpgsql AS $$
DECLARE
	assignments pg_catalog.text;
	lacking pg_catalog.text;
	total bigint;
	pages bigint;
	page bigint;
	filled bigint;
	begun pg_catalog.timestamptz;
	reported pg_catalog.timestamptz;
	left_over boolean;
BEGIN
	SET LOCAL search_path = pg_catalog, pg_temp;
	SELECT string_agg(format('%I = %I', wide, narrow), ', '),
		string_agg(format('%I IS DISTINCT FROM %I', wide, narrow), ' OR ')
	INTO assignments, lacking
	FROM @extschema@.snowflake_admin_widen_columns(tab, col) WHERE rel = filling;
	reported := clock_timestamp();
	LOOP
		SELECT greatest(reltuples, 0), pg_relation_size(filling) / current_setting('block_size')::integer
		INTO total, pages FROM pg_class WHERE oid = filling;
		begun := clock_timestamp();
		page := 0;
		filled := 0;
		WHILE page < pages LOOP
			PERFORM @extschema@.snowflake_admin_take_turn('snowflake_widen()', chain, true);
			reported := @extschema@.snowflake_admin_progress(format('snowflake_widen: %s', filling),
				total * page / pages, total, begun, reported);
			IF filled > 0 THEN
				PERFORM pg_sleep(extract(epoch FROM pause));
			END IF;
			IF @extschema@.snowflake_admin_widen_fires(filling) THEN
				SET LOCAL session_replication_role = replica;
			END IF;
			EXECUTE format('UPDATE %1$s SET %2$s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$s '
				'WHERE ctid >= ''(%3$s,0)'' AND ctid < ''(%4$s,0)'' AND (%5$s) FOR NO KEY UPDATE SKIP LOCKED))',
				filling, assignments, page, page + 16, lacking);
			GET DIAGNOSTICS filled = ROW_COUNT;
			page := page + 16;
			COMMIT;
			SET LOCAL search_path = pg_catalog, pg_temp;
		END LOOP;
		EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %s)', filling, lacking) INTO left_over;
		COMMIT;
		EXIT WHEN NOT left_over;
		-- Some rows were locked.
		SET LOCAL search_path = pg_catalog, pg_temp;
		PERFORM pg_sleep(1);
	END LOOP;
END
$$;

CREATE FUNCTION snowflake_widen_indexes(tab regclass, col name)
RETURNS TABLE (command text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT unnest(commands)
	FROM (SELECT *, bool_or(kind = 'fill') OVER () AS lacks_rows
		FROM @extschema@.snowflake_admin_widen_steps(tab, col)) AS s
	WHERE kind = 'concurrently' AND NOT lacks_rows
$$;

COMMENT ON FUNCTION snowflake_widen_indexes(regclass, name) IS
'commands that create the indexes for which snowflake_widen() waits';

CREATE PROCEDURE snowflake_widen(tab regclass, col name, dry_run boolean DEFAULT false,
	tries integer DEFAULT 30, undo boolean DEFAULT false, pause interval DEFAULT '10 ms')
LANGUAGE plpgsql AS $$
DECLARE
	step pg_catalog.record;
	chain pg_catalog.oid[];
	undoing pg_catalog.text[];
	going_on boolean := false;
BEGIN
	CALL @extschema@.snowflake_admin_require_no_transaction('snowflake_widen()');
	SET LOCAL search_path = pg_catalog, pg_temp;
	chain := ARRAY(SELECT DISTINCT rel FROM @extschema@.snowflake_admin_chain(tab, col) ORDER BY 1);
	LOOP
		SET LOCAL search_path = pg_catalog, pg_temp;
		PERFORM @extschema@.snowflake_admin_take_turn('snowflake_widen()', chain, going_on);
		going_on := true;
		IF undo THEN
			undoing := @extschema@.snowflake_admin_widen_undo(tab, col);
			IF undoing = '{}' THEN
				RAISE NOTICE 'nothing to undo: column % of table % is being widened no longer, or not yet',
					quote_ident(col), tab;
			END IF;
			PERFORM @extschema@.snowflake_admin_run(undoing,
				@extschema@.snowflake_admin_widen_tables(tab, col), tries, dry_run);
			EXIT;
		END IF;
		PERFORM @extschema@.snowflake_admin_widen_check(tab, col);
		IF dry_run THEN
			PERFORM @extschema@.snowflake_admin_run(commands, relations, tries, true)
			FROM @extschema@.snowflake_admin_widen_steps(tab, col);
		END IF;
		SELECT * INTO step FROM @extschema@.snowflake_admin_widen_steps(tab, col) LIMIT 1;
		IF NOT FOUND OR dry_run THEN
			RAISE NOTICE 'column % of table %, and all that refer to it, % bigint', quote_ident(col), tab,
				CASE WHEN FOUND THEN 'would be' ELSE 'are' END
				USING HINT = 'A session with a prepared statement that returns such a column fails after the swap with '
				'"cached plan must not change result type" until it reconnects or prepares it again.';
			EXIT;
		ELSIF step.kind = 'concurrently' THEN
			RAISE object_not_in_prerequisite_state USING
				MESSAGE = 'the new columns need indexes, which a procedure cannot create concurrently',
				DETAIL = (SELECT string_agg(command || ';', E'\n')
					FROM @extschema@.snowflake_widen_indexes(tab, col)),
				HINT = format('Execute these commands, in psql by SELECT * FROM %s(%L, %L) \gexec, '
					'then call snowflake_widen() again.', '@extschema@.snowflake_widen_indexes', tab, col);
		END IF;
		PERFORM set_config('application_name',
			format('snowflake_widen: %s %s', step.kind, step.relations[1])::name::text, true);
		IF step.kind = 'fill' THEN
			RAISE NOTICE '%;', step.commands[1];
			CALL @extschema@.snowflake_admin_widen_fill(tab, col, step.relations[1], chain, pause);
			-- The CHECK marks in the catalogs that this has been done.
			SET LOCAL search_path = pg_catalog, pg_temp;
			PERFORM @extschema@.snowflake_admin_take_turn('snowflake_widen()', chain, true);
			PERFORM @extschema@.snowflake_admin_widen_check(tab, col);
			SELECT * INTO STRICT step FROM @extschema@.snowflake_admin_widen_steps(tab, col)
			WHERE kind = 'check' AND relations = step.relations;
		ELSIF step.kind = 'analyze' THEN
			-- From here to the swap, this lock keeps others from creating indexes and
			-- constraints, which would go with the old columns.
			PERFORM @extschema@.snowflake_admin_run('{}', step.relations, tries, false, NULL);
			PERFORM @extschema@.snowflake_admin_widen_check(tab, col);
			FOR step IN SELECT * FROM @extschema@.snowflake_admin_widen_steps(tab, col) LOOP
				EXIT WHEN step.kind NOT IN ('analyze', 'swap');
				PERFORM @extschema@.snowflake_admin_run(step.commands, step.relations, tries, false, step.mode);
			END LOOP;
			COMMIT;
			CONTINUE;
		END IF;
		PERFORM @extschema@.snowflake_admin_run(step.commands, step.relations, tries, false, step.mode);
		COMMIT;
	END LOOP;
END
$$;

COMMENT ON PROCEDURE snowflake_widen(regclass, name, boolean, integer, boolean, interval) IS
'replace an integer column, and all that refer to it, by bigint columns while they are in use';

--
-- A live table becomes the first partition of a new one
--
-- Each step is one transaction, and what is still to do is read from the catalogs.
-- A CHECK constraint, whose name ends with the bound, marks a table that is to
-- become a partition, and one that has become it while something is left to do.
-- While a step decides and acts, a SHARE UPDATE EXCLUSIVE lock keeps out other such
-- calls and all that would change the table's definition.  Only views, functions,
-- publications of all tables and GRANT do not ask for a lock that conflicts with it.
--

-- The constraint that spares ATTACH PARTITION its scan
CREATE FUNCTION snowflake_admin_partition_check(target regclass)
RETURNS TABLE (name name, bound bigint, validated boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT conname, substring(conname, '\d+$')::bigint, convalidated FROM pg_constraint
	WHERE conrelid = target AND contype = 'c' AND conname ~ '^snowflake_partition_before_\d{10,19}$'
$$;

-- Names that end with _old, for the table, its indexes and the sequences of its
-- identities.  The new table's get the present ones.
CREATE FUNCTION snowflake_admin_partition_names(target regclass)
RETURNS TABLE (object oid, kind "char", qualified text, old_name text, old_qualified text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH relations (rel) AS (
		SELECT target::oid UNION ALL
		SELECT indexrelid FROM pg_index WHERE indrelid = target AND indisvalid UNION ALL
		SELECT objid FROM pg_depend JOIN pg_sequence ON seqrelid = objid
		WHERE classid = 'pg_class'::regclass AND refclassid = classid AND refobjid = target AND deptype = 'i'
	)
	SELECT rel, relkind, format('%I.%I', nspname, relname), old_name, format('%I.%I', nspname, old_name)
	FROM relations JOIN pg_class AS c ON c.oid = rel JOIN pg_namespace AS s ON s.oid = relnamespace,
		LATERAL (SELECT substr(('_old' || relname)::name::text, 5) || '_old') AS fitting (old_name)
$$;

-- What depends on the table or on its row type and does not come along.  A view would go on
-- without an error, and miss the rows of later partitions.
CREATE FUNCTION snowflake_admin_partition_dependents(target regclass)
RETURNS TABLE (class oid, object oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT DISTINCT classid, objid
	FROM pg_class AS t JOIN pg_type AS r ON r.oid = t.reltype
	JOIN pg_depend AS d ON refclassid = 'pg_class'::regclass AND refobjid = t.oid
		OR refclassid = 'pg_type'::regclass AND refobjid IN (r.oid, r.typarray)
	WHERE t.oid = target AND (classid, objid) NOT IN (
		SELECT 'pg_class'::regclass, oid FROM pg_class WHERE relkind IN ('i', 'S', 't')
		UNION ALL SELECT 'pg_type'::regclass, unnest(ARRAY[r.oid, r.typarray])
		UNION ALL SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid = target
		UNION ALL SELECT 'pg_constraint'::regclass, oid FROM pg_constraint
			WHERE target IN (conrelid, confrelid)
		UNION ALL SELECT 'pg_trigger'::regclass, oid FROM pg_trigger WHERE tgrelid = target OR tgisinternal
		UNION ALL SELECT 'pg_policy'::regclass, oid FROM pg_policy WHERE polrelid = target
		UNION ALL SELECT 'pg_statistic_ext'::regclass, oid FROM pg_statistic_ext WHERE stxrelid = target
		UNION ALL SELECT 'pg_publication_rel'::regclass, oid FROM pg_publication_rel)
$$;

CREATE FUNCTION snowflake_admin_partition_obstacles(target regclass, col name)
RETURNS TABLE (obstacle text, hint text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT 'it is unlogged, typed, inherited, of an extension, excepted from a publication, '
		'or has a security label', 'Change this first, or do not partition the table.'
	FROM pg_class WHERE oid = target AND (relpersistence = 'u' OR reloftype <> 0
		OR EXISTS (SELECT FROM pg_inherits WHERE inhrelid = target)
		OR EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = target
			AND deptype = 'e')
		OR EXISTS (SELECT FROM pg_publication_rel AS r WHERE prrelid = target
			AND to_jsonb(r) ->> 'prexcept' = 'true')
		OR EXISTS (SELECT FROM pg_seclabel WHERE classoid = 'pg_class'::regclass AND objoid = target))
	UNION ALL SELECT format('column %I may be NULL', attname),
		'ALTER TABLE ... ALTER ... SET NOT NULL first, or make it the primary key.'
	FROM pg_attribute WHERE attrelid = target AND attname = col
		AND (NOT attnotnull OR EXISTS (SELECT FROM pg_constraint
			WHERE conrelid = target AND contype = 'n' AND NOT convalidated AND conkey[1] = attnum))
	UNION ALL SELECT format('its replica identity is index %s', indexrelid::regclass),
		'ALTER TABLE ... REPLICA IDENTITY DEFAULT or FULL first.'
	FROM pg_index JOIN pg_class AS t ON t.oid = indrelid WHERE t.oid = target AND relreplident = 'i'
		AND indisreplident AND NOT indisprimary
	UNION ALL SELECT format('%s %s does not contain column %I',
		CASE WHEN indisexclusion THEN 'index of exclusion constraint' ELSE 'unique index' END,
		indexrelid::regclass, col),
		'PostgreSQL would have to look for equal values in all partitions. Drop the index or its '
		'constraint if the application does not need this check. Otherwise do not partition the table.'
	FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attname = col
	WHERE indrelid = target AND indisvalid AND (indisunique OR indisexclusion)
		AND attnum <> ALL (indkey[0:indnkeyatts - 1])
	UNION ALL SELECT format('trigger %I is FOR EACH ROW and has transition tables', tgname),
		'Make it a trigger FOR EACH STATEMENT first.'
	FROM pg_trigger WHERE tgrelid = target AND tgtype & 1 <> 0
		AND (tgoldtable IS NOT NULL OR tgnewtable IS NOT NULL)
	UNION ALL SELECT place || ' depends on it', CASE WHEN place LIKE 'table %'
			THEN 'ALTER TABLE ... NO INHERIT, or drop its column of that type, first.'
			ELSE 'Save its definition, drop it, call snowflake_partition() again, and create it again '
				'after that.' END
	FROM @extschema@.snowflake_admin_partition_dependents(target), LATERAL (
		SELECT @extschema@.snowflake_admin_place(class, object)) AS p (place)
	UNION ALL SELECT format('constraint %I of table %s is NOT VALID, NOT ENFORCED or NO INHERIT', conname,
			conrelid::regclass),
		format('ALTER TABLE %s VALIDATE CONSTRAINT %I first, or drop it.', conrelid::regclass, conname)
	FROM pg_constraint WHERE contype IN ('c', 'f', 'n') AND (conrelid = target OR confrelid = target)
		AND (NOT convalidated OR contype = 'c' AND connoinherit)
		AND conname NOT IN (SELECT name FROM @extschema@.snowflake_admin_partition_check(target))
	UNION ALL
	SELECT format('foreign key %I of partitioned table %s refers to it', conname, conrelid::regclass),
		'Drop it, call snowflake_partition() again, and add it again after that.'
	FROM pg_constraint JOIN pg_class AS c ON c.oid = conrelid
	WHERE contype = 'f' AND confrelid = target AND conparentid = 0 AND relkind = 'p'
	UNION ALL SELECT format('subscription %I fills it', subname),
		'Let it end first. It would not know the new table, and skip all rows.'
	FROM pg_subscription_rel JOIN pg_subscription AS s ON s.oid = srsubid WHERE srrelid = target
	UNION ALL SELECT format('publication %I would publish its partitions', pubname),
		format('ALTER PUBLICATION %I SET (publish_via_partition_root = true) first, unless that changes how '
			'tables that are partitioned already are published.', pubname)
	FROM pg_publication AS p WHERE NOT pubviaroot AND (puballtables
		OR EXISTS (SELECT FROM pg_publication_rel WHERE prpubid = p.oid AND prrelid = target)
		OR EXISTS (SELECT FROM pg_publication_namespace JOIN pg_class AS c ON relnamespace = pnnspid
			WHERE pnpubid = p.oid AND c.oid = target))
$$;

-- In the end, create the new table under the old one's later name and roll that back, so that
-- PostgreSQL's own errors come before anything has been changed.
CREATE FUNCTION snowflake_admin_partition_require(target regclass, col name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
	lacking text;
	obstacles text[];
	hints text[];
	command text;
BEGIN
	SELECT format('must be owner of table %s', c.oid::regclass) INTO lacking FROM pg_class AS c
	WHERE (c.oid = target OR c.oid IN (SELECT conrelid FROM pg_constraint WHERE contype = 'f'
		AND confrelid = target))
		AND NOT pg_has_role(relowner, 'USAGE')
	UNION ALL SELECT format('must be owner of publication %I', pubname) FROM pg_publication AS p
		JOIN pg_publication_rel ON prpubid = p.oid
	WHERE prrelid = target AND NOT pg_has_role(pubowner, 'USAGE')
	UNION ALL
	SELECT format('must have privilege REFERENCES on table %s', confrelid::regclass) FROM pg_constraint
	WHERE contype = 'f' AND conrelid = target AND NOT has_any_column_privilege(confrelid, 'REFERENCES');
	IF lacking IS NOT NULL THEN
		RAISE insufficient_privilege USING MESSAGE = lacking;
	END IF;
	SELECT array_agg(o.obstacle), array_agg(o.hint) INTO obstacles, hints
	FROM @extschema@.snowflake_admin_partition_obstacles(target, col) AS o;
	IF obstacles IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot partition table %s: %s', target, obstacles[1]),
			DETAIL = format('All obstacles: %s.', array_to_string(obstacles, '; ')),
			HINT = hints[1];
	END IF;
	FOR command IN SELECT c FROM @extschema@.snowflake_admin_partition_names(target),
			@extschema@.snowflake_admin_partition_new(target, col, target::text, old_qualified) AS c
				WHERE object = target
		UNION ALL SELECT format('ALTER TABLE %s OWNER TO %s', old_qualified, relowner::regrole)
		FROM @extschema@.snowflake_admin_partition_names(target) JOIN pg_class ON oid = object
			WHERE oid = target
		UNION ALL SELECT create_command FROM @extschema@.snowflake_admin_partition_indexes(target, true)
	LOOP
		EXECUTE command;
	END LOOP;
	command := '';
	RAISE 'end of the rehearsal';
EXCEPTION WHEN insufficient_privilege OR lock_not_available THEN
	RAISE;
WHEN OTHERS THEN
	IF command IS NULL THEN
		RAISE;
	ELSIF command <> '' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('PostgreSQL cannot make a partitioned table like %s', target),
			DETAIL = format('%s: %s', command, SQLERRM);
	END IF;
END
$$;

CREATE FUNCTION snowflake_admin_partition_new(target regclass, col name, source text, new text)
RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING INDEXES EXCLUDING IDENTITY) '
			'PARTITION BY RANGE (%I)', new, source, col)
		|| CASE WHEN current_setting('server_version_num')::integer >= 170000
			THEN ' USING ' || quote_ident(amname) ELSE '' END
		|| coalesce(' TABLESPACE ' || quote_ident(spcname), '')
	FROM pg_class AS t LEFT JOIN pg_am ON pg_am.oid = relam
	LEFT JOIN pg_tablespace AS s ON s.oid = reltablespace
	WHERE t.oid = target
$$;

-- Each index is created without partitions and gets the old table's as its first
-- one, so that names stay and no index can be built on the old table.
CREATE FUNCTION snowflake_admin_partition_indexes(target regclass, rehearsal boolean)
RETURNS TABLE (create_command text, attach_command text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN c.oid IS NOT NULL THEN
			format('ALTER TABLE ONLY %s ADD CONSTRAINT %I %s', new_table, new_name,
				pg_get_constraintdef(c.oid))
		ELSE format('CREATE %sINDEX %I ON ONLY %s USING %s', CASE WHEN indisunique THEN 'UNIQUE ' END,
			new_name, new_table,
			substr(pg_get_indexdef(indexrelid), 1 + length(format('CREATE %sINDEX %I ON %s USING ',
				CASE WHEN indisunique THEN 'UNIQUE ' END, relname, target)))) END,
		format('ALTER INDEX %s ATTACH PARTITION %s', n.qualified, n.old_qualified)
	FROM pg_index JOIN pg_class AS i ON i.oid = indexrelid
	JOIN @extschema@.snowflake_admin_partition_names(target) AS n ON n.object = indexrelid
	JOIN @extschema@.snowflake_admin_partition_names(target) AS t ON t.object = target
	LEFT JOIN pg_constraint AS c ON conindid = indexrelid AND conrelid = target
		AND contype IN ('p', 'u', 'x'),
	LATERAL (SELECT CASE WHEN rehearsal THEN t.old_qualified ELSE t.qualified END,
		CASE WHEN rehearsal THEN n.old_name ELSE relname END) AS names (new_table, new_name)
	WHERE indrelid = target ORDER BY indexrelid
$$;

CREATE FUNCTION snowflake_admin_table_grants(rel regclass, new_tab text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT g FROM (
		SELECT relacl, '' FROM pg_class WHERE oid = rel
		UNION ALL
		SELECT attacl, format(' (%I)', attname) FROM pg_attribute WHERE attrelid = rel AND NOT attisdropped
	) AS granted (acl, columns), @extschema@.snowflake_admin_grant_commands(acl, columns, new_tab) AS g
$$;

-- What the new table gets before the old one is attached.  The creator's default
-- privileges, which the old table need not have, are removed again.  Nobody can give a
-- sequence to another identity, so that a new one goes on from the old one's value.  A
-- trigger of the old table would fire beside that which the partition gets.
CREATE FUNCTION snowflake_admin_partition_before(target regclass, old text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT format('ALTER TABLE %s OWNER TO %s, %s ROW LEVEL SECURITY, %s ROW LEVEL SECURITY', target,
		relowner::regrole, CASE WHEN relrowsecurity THEN 'ENABLE' ELSE 'DISABLE' END,
		CASE WHEN relforcerowsecurity THEN 'FORCE' ELSE 'NO FORCE' END)
	FROM pg_class WHERE oid = target
	UNION ALL (
		SELECT DISTINCT format('REVOKE ALL ON %s FROM %s', target,
			CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
		FROM pg_class, LATERAL (
			SELECT grantee FROM pg_default_acl, aclexplode(defaclacl)
			WHERE defaclobjtype = 'r' AND defaclnamespace IN (0, relnamespace) AND grantee <> relowner
			UNION ALL SELECT relowner WHERE relacl IS NOT NULL) AS g
		WHERE oid = target)
	UNION ALL SELECT @extschema@.snowflake_admin_table_grants(target, target::text)
	UNION ALL SELECT format('CREATE POLICY %I ON %s AS %s FOR %s TO %s%s%s', polname, target,
		CASE WHEN polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
		CASE polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
			WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
		(SELECT string_agg(CASE role WHEN 0 THEN 'PUBLIC' ELSE role::regrole::text END, ', ')
			FROM unnest(polroles) AS role),
		' USING (' || pg_get_expr(polqual, polrelid) || ')',
		' WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')')
	FROM pg_policy WHERE polrelid = target
	UNION ALL SELECT command
	FROM pg_depend AS d JOIN pg_sequence ON seqrelid = objid JOIN pg_class AS s ON s.oid = objid
	JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
	LEFT JOIN @extschema@.snowflake_admin_partition_names(target) AS n ON object = objid,
	LATERAL (
		SELECT format('ALTER SEQUENCE %s OWNED BY %s.%I', s.oid::regclass, target, attname)
			WHERE d.deptype = 'a'
		UNION ALL SELECT i.command FROM @extschema@.snowflake_admin_identity_like(s.oid, n.old_qualified,
			target::text, attname, n.qualified) AS i
			WHERE d.deptype = 'i'
		UNION ALL SELECT format('ALTER TABLE %s ALTER %I DROP IDENTITY', old, attname) WHERE d.deptype = 'i'
	) AS of_sequence (command)
	WHERE d.classid = 'pg_class'::regclass AND d.refclassid = d.classid AND d.refobjid = target
		AND d.deptype IN ('a', 'i')
	UNION ALL
	SELECT c FROM pg_attribute, @extschema@.snowflake_admin_column_commands(target, attnum, target::text,
		attname) AS c
	WHERE attrelid = target AND attnum > 0 AND NOT attisdropped
	UNION ALL (
		SELECT c FROM pg_trigger AS g, unnest(ARRAY[
			format('DROP TRIGGER %I ON %s', tgname, old),
			pg_get_triggerdef(oid),
			'ALTER TABLE ' || target || CASE tgenabled WHEN 'D' THEN ' DISABLE' WHEN 'R' THEN ' ENABLE REPLICA'
				WHEN 'A' THEN ' ENABLE ALWAYS' END || format(' TRIGGER %I', tgname),
			format('COMMENT ON TRIGGER %I ON %s IS ', tgname, target)
				|| quote_literal(obj_description(oid, 'pg_trigger'))]) WITH ORDINALITY AS u (c, n)
		WHERE tgrelid = target AND NOT tgisinternal ORDER BY g.oid, n
	)
$$;

-- Foreign keys.  ATTACH PARTITION takes over those of the old table to others, and
-- checks no row again.  Those that refer to it are added again without a check, which
-- VALIDATE CONSTRAINT does later.  So is one of the table to itself: the partition
-- has it first, and the new table takes it over when it is valid.
CREATE FUNCTION snowflake_admin_partition_keys(target regclass, old text, attached boolean) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN confrelid <> target THEN format('ALTER TABLE %s ADD CONSTRAINT %I %s', target, conname,
			pg_get_constraintdef(oid))
		WHEN attached THEN format('ALTER TABLE %s ADD CONSTRAINT %I %s NOT VALID', referring, conname,
			pg_get_constraintdef(oid))
		ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', referring, conname) END
	FROM pg_constraint, LATERAL (
		SELECT CASE conrelid WHEN target THEN old ELSE conrelid::regclass::text END) AS r (referring)
	WHERE contype = 'f' AND conparentid = 0 AND (conrelid = target OR confrelid = target)
		AND NOT (attached AND confrelid <> target)
	ORDER BY oid
$$;

-- What the new table gets in the end.  LIKE copies comments of columns and CHECK constraints.
CREATE FUNCTION snowflake_admin_partition_after(target regclass, old text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	(
		SELECT c FROM pg_publication AS p JOIN pg_publication_rel ON prpubid = p.oid, unnest(ARRAY[
			format('ALTER PUBLICATION %I DROP TABLE %s', pubname, old),
			format('ALTER PUBLICATION %I ADD TABLE %s%s%s', pubname, target,
				(SELECT format(' (%s)', string_agg(quote_ident(attname), ', ' ORDER BY attnum)) FROM pg_attribute
					WHERE attrelid = target AND attnum = ANY (prattrs) HAVING count(*) > 0),
				' WHERE (' || pg_get_expr(prqual, prrelid) || ')')]) WITH ORDINALITY AS u (c, n)
		WHERE prrelid = target ORDER BY p.oid, n
	)
	UNION ALL
	SELECT format('COMMENT ON TABLE %s IS ', target) || quote_literal(obj_description(target, 'pg_class'))
	UNION ALL SELECT format('COMMENT ON INDEX %s IS ', indexrelid::regclass)
		|| quote_literal(obj_description(indexrelid, 'pg_class'))
	FROM pg_index WHERE indrelid = target AND indisvalid
	UNION ALL SELECT format('COMMENT ON CONSTRAINT %I ON %s IS ', conname,
			CASE WHEN conrelid = confrelid THEN old ELSE conrelid::regclass::text END)
		|| quote_literal(obj_description(oid, 'pg_constraint'))
	FROM pg_constraint WHERE (conrelid = target AND contype <> 'c' OR confrelid = target) AND conparentid = 0
	UNION ALL SELECT format('COMMENT ON POLICY %I ON %s IS ', polname, target)
		|| quote_literal(obj_description(oid, 'pg_policy')) FROM pg_policy WHERE polrelid = target
	UNION ALL SELECT format('ALTER TABLE %s REPLICA IDENTITY ', target)
		|| CASE relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING' END
	FROM pg_class WHERE oid = target
$$;

-- All commands that put the new table in the old one's place.  After the first ones, the
-- old table's former name is the new table's.  What the old table lacks is left out.
CREATE FUNCTION snowflake_admin_partition_swap_commands(target regclass, col name, "check" name, bound bigint)
RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT array_remove(ARRAY[format('ALTER TABLE %s RENAME TO %I', target, t.old_name)]
		|| ARRAY(SELECT format('ALTER %s %s RENAME TO %I',
				CASE kind WHEN 'S' THEN 'SEQUENCE' ELSE 'INDEX' END, qualified, old_name)
			FROM @extschema@.snowflake_admin_partition_names(target) WHERE object <> target ORDER BY object)
		|| ARRAY(SELECT @extschema@.snowflake_admin_partition_new(target, col, old, target::text))
		|| format('ALTER TABLE %s DROP CONSTRAINT %I', target, "check")
		|| ARRAY(SELECT @extschema@.snowflake_admin_partition_before(target, old))
		|| ARRAY(SELECT @extschema@.snowflake_admin_partition_keys(target, old, false))
		|| format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (MINVALUE) TO (%s)', target, old, bound)
		|| ARRAY(SELECT unnest(ARRAY[create_command, attach_command])
			FROM @extschema@.snowflake_admin_partition_indexes(target, false))
		|| ARRAY(SELECT @extschema@.snowflake_admin_partition_keys(target, old, true))
		|| ARRAY(SELECT @extschema@.snowflake_admin_partition_after(target, old)), NULL)
	FROM @extschema@.snowflake_admin_partition_names(target) AS t, LATERAL (SELECT t.old_qualified) AS o (old)
	WHERE t.object = target
$$;

-- One transaction: the new table, with the old one and the partitions after it, so
-- that no ID is without a partition for some time, even if nobody calls again.
CREATE FUNCTION snowflake_admin_partition_swap(target regclass, commands text[], unit text, tries integer)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	parent regclass;
	piece record;
BEGIN
	PERFORM @extschema@.snowflake_admin_run(commands, ARRAY(
		SELECT tab FROM (SELECT tab, place FROM @extschema@.snowflake_admin_related(target)
			UNION ALL VALUES (target, 0)) AS involved ORDER BY place, tab), tries, false);
	SELECT inhparent INTO STRICT parent FROM pg_inherits WHERE inhrelid = target;
	-- Others may have done this while the swap waited for its locks.
	IF EXISTS (SELECT FROM @extschema@.snowflake_admin_partition_dependents(target))
		OR EXISTS (SELECT @extschema@.snowflake_admin_table_grants(target, parent::text)
			EXCEPT SELECT @extschema@.snowflake_admin_table_grants(parent, parent::text))
	THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('somebody has granted a privilege on table %s, or created something that '
				'depends on it, in this moment', parent),
			HINT = 'Call snowflake_partition() again.';
	END IF;
	-- Here all locks are there, while later each partition would have to try for those
	-- of foreign keys.  Five do not take long.
	FOR piece IN SELECT low, high, layout
		FROM @extschema@.snowflake_admin_key_layout(parent) AS layout,
			@extschema@.snowflake_admin_partition_check(target),
			@extschema@.snowflake_admin_bound_time(bound, layout) AS at,
			@extschema@.snowflake_admin_missing(parent, unit,
				greatest(@extschema@.snowflake_admin_until('3 days', unit),
					(at AT TIME ZONE 'UTC' + ('1 ' || unit)::interval) AT TIME ZONE 'UTC'), layout) LIMIT 5
	LOOP
		PERFORM @extschema@.snowflake_admin_make_partition(parent,
			@extschema@.snowflake_admin_partition_key(parent), piece.low, piece.high, unit, piece.layout, tries,
			false);
	END LOOP;
END
$$;

-- The column that next_id() fills, rather one of the primary key, and the last ID's time
CREATE FUNCTION snowflake_admin_partition_id(target regclass, OUT col name, OUT layout snowflake_layout,
	OUT last_time timestamptz)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	key record;
BEGIN
	SELECT attname, min(expression) AS expression, array_agg(sequence) AS sequences INTO key
	FROM @extschema@.snowflake_admin_filled() AS f JOIN pg_attribute ON attrelid = tab AND attnum = f.col
	LEFT JOIN pg_index AS i ON i.indrelid = tab AND indisprimary AND attnum = ANY (indkey[0:indnkeyatts - 1])
	WHERE tab = target AND made_by = 'next_id' AND @extschema@.snowflake_admin_is_id(atttypid)
	GROUP BY attname, attnum ORDER BY bool_or(i.indrelid IS NOT NULL) DESC, attnum LIMIT 1;
	IF NOT FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has no bigint or snowflake key that next_id() makes', target),
			HINT = 'CALL snowflake_move(...) first, because the key''s numbers must be times.';
	END IF;
	col := key.attname;
	layout := coalesce(@extschema@.snowflake_admin_layout_of(key.expression, key.sequences[1]), 'instagram');
	-- This also loads the library, whose setting is read later.
	SELECT max(last_timestamp) INTO last_time
	FROM unnest(key.sequences) AS s, @extschema@.snowflake_admin_states(s,
		snowflake_admin_partition_id.layout);
END
$$;

-- The first ID that is not to be the old table's.  There must be none of it yet, and
-- none before the new table is there.
CREATE FUNCTION snowflake_admin_partition_bound(target regclass, col name, unit text, at timestamptz,
	layout snowflake_layout, last_time timestamptz) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	earliest timestamptz := clock_timestamp() + interval '5 minutes'
		+ least(current_setting('snowflake.max_lead')::interval, '31 days');
	tomorrow timestamp := clock_timestamp() AT TIME ZONE 'UTC' + interval '24 hours';
	since timestamptz := coalesce(at, (date_trunc(unit,
		tomorrow) + ('1 ' || unit)::interval) AT TIME ZONE 'UTC');
	bound bigint := @extschema@.snowflake_admin_bound(since, layout);
	newest bigint;
BEGIN
	IF since < earliest THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('at must be later than %s, and not %s', date_trunc('second', earliest), since),
			DETAIL = 'Until the new table is there, the old one rejects the IDs of that time and later.';
	ELSIF NOT isfinite(since)
		OR @extschema@.snowflake_admin_bound_time(bound, layout) 
			NOT BETWEEN since AND since + interval '10 seconds' THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('IDs of table %s cannot have the time %s', target, since),
			DETAIL = format('Their layout is %s.', layout);
	END IF;
	EXECUTE format('SELECT max(%1$I) FROM %2$s WHERE %1$I >= %3$s', col, target, bound) INTO newest;
	IF newest IS NOT NULL OR last_time > since - interval '5 minutes' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s would reject IDs that it has, or soon gets', target),
			DETAIL = format('They reach to %s, and new partitions would begin at %s.',
				greatest(last_time, @extschema@.snowflake_admin_bound_time(newest, layout)), since),
			HINT = 'Give a later time as at. SELECT * FROM snowflake_check() says more about IDs that are '
				'ahead of the clock.';
	END IF;
	RETURN bound;
END
$$;

-- What is left to do after the swap.  Each step is gone from here once it is done.
-- Before the swap this is only a plan, and old and parent are the same table.
CREATE FUNCTION snowflake_admin_partition_rest(parent regclass, old regclass, old_name text, "check" name,
	planned boolean)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT 'validate', ARRAY[format('ALTER TABLE %s VALIDATE CONSTRAINT %I',
		CASE conrelid WHEN old THEN old_name ELSE conrelid::regclass::text END, conname)],
			ARRAY[conrelid::regclass], NULL
	FROM pg_constraint
	WHERE contype = 'f' AND conparentid = 0 AND confrelid = parent AND (planned OR NOT convalidated)
	UNION ALL SELECT 'add', array_remove(ARRAY[
			format('ALTER TABLE %s ADD CONSTRAINT %I %s', parent, conname, pg_get_constraintdef(oid)),
			format('COMMENT ON CONSTRAINT %I ON %s IS ', conname, parent)
				|| quote_literal(obj_description(oid, 'pg_constraint'))], NULL),
		ARRAY[parent], 'SHARE ROW EXCLUSIVE'
	FROM pg_constraint
	WHERE contype = 'f' AND conparentid = 0 AND conrelid = old AND confrelid = parent
	UNION ALL
	-- Autovacuum analyzes partitions, but not the table above them.
	SELECT 'analyze', ARRAY[format('ANALYZE %s', parent)], ARRAY[parent], NULL
	FROM pg_class WHERE oid = parent AND (planned OR reltuples < 0)
	UNION ALL
	SELECT 'drop', ARRAY[format('ALTER TABLE %s DROP CONSTRAINT %I', old_name, "check")], ARRAY[old],
		'ACCESS EXCLUSIVE'
$$;

-- The table, or the partitioned table that has already taken its name
CREATE FUNCTION snowflake_admin_partition_target(target regclass, OUT parent regclass, OUT old regclass)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	tab record;
BEGIN
	SELECT relkind, relispartition, relpersistence, pg_has_role(relowner, 'USAGE') AS is_own INTO tab
	FROM pg_class WHERE oid = target;
	IF target IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'tab must not be null';
	ELSIF tab.relkind IS NULL OR tab.relkind NOT IN ('r', 'p') THEN
		RAISE wrong_object_type USING MESSAGE = format('%s is not a table', target);
	ELSIF tab.relpersistence = 't' THEN
		RAISE object_not_in_prerequisite_state USING MESSAGE = format('table %s is temporary', target);
	ELSIF NOT tab.is_own THEN
		RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', target);
	END IF;
	IF tab.relispartition THEN
		SELECT inhparent INTO parent FROM pg_inherits WHERE inhrelid = target;
	ELSIF tab.relkind = 'p' THEN
		parent := target;
	END IF;
	-- An error unless its bounds are IDs
	IF parent IS NOT NULL THEN
		PERFORM @extschema@.snowflake_admin_partition_key(parent);
	END IF;
	SELECT r.partition INTO old FROM @extschema@.snowflake_admin_ranges(parent) AS r
	WHERE lower_id = '-9223372036854775808' AND (tab.relkind = 'p' OR r.partition = target);
	IF parent IS NOT NULL AND old IS NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = CASE tab.relkind WHEN 'p' THEN format('table %s is partitioned already', target)
				ELSE format('table %s is a partition of %s', target, parent) END,
			HINT = 'CALL snowflake_make_partitions(...) makes the next partitions of a partitioned table.';
	END IF;
END
$$;

-- The steps that are left.  A CHECK constraint whose time has nearly come, or that
-- has another bound than the caller asks for, goes first of all.
CREATE FUNCTION snowflake_admin_partition_steps(target regclass, unit text, at timestamptz)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	done record;
	id record;
	found record;
	bound bigint;
	name name;
BEGIN
	IF unit IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'unit must not be null';
	END IF;
	SELECT * INTO done FROM @extschema@.snowflake_admin_partition_target(target);
	IF done.old IS NOT NULL THEN
		RETURN QUERY SELECT 'partition', '{}'::text[], ARRAY[done.parent::regclass], NULL
			FROM @extschema@.snowflake_admin_partition_check(done.old),
				@extschema@.snowflake_admin_key_layout(done.parent) AS layout
			-- The first call here loads the library, whose setting the second one reads.
			WHERE @extschema@.snowflake_admin_bound(now(), layout) IS NOT NULL AND EXISTS (
				SELECT FROM @extschema@.snowflake_admin_until('3 days', unit) AS until,
					@extschema@.snowflake_admin_missing(done.parent, unit, until, layout));
		RETURN QUERY SELECT r.* FROM @extschema@.snowflake_admin_partition_check(done.old) AS c,
			@extschema@.snowflake_admin_partition_rest(done.parent, done.old, done.old::text, c.name, false) AS r;
		RETURN;
	END IF;
	SELECT * INTO id FROM @extschema@.snowflake_admin_partition_id(target);
	PERFORM @extschema@.snowflake_admin_until('3 days', unit);
	SELECT * INTO found FROM @extschema@.snowflake_admin_partition_check(target);
	IF @extschema@.snowflake_admin_bound_time(found.bound, id.layout)
			< clock_timestamp() + interval '1 minute' +
				least(current_setting('snowflake.max_lead')::interval, '31 days')
		OR @extschema@.snowflake_admin_bound(at, id.layout) <> found.bound THEN
		RETURN QUERY SELECT 'give up', ARRAY[format('ALTER TABLE %s DROP CONSTRAINT %I', target, found.name)],
			ARRAY[target], 'ACCESS EXCLUSIVE';
		RETURN;
	END IF;
	PERFORM @extschema@.snowflake_admin_partition_require(target, id.col);
	bound := coalesce(found.bound,
		@extschema@.snowflake_admin_partition_bound(target, id.col, unit, at, id.layout, id.last_time));
	name := 'snowflake_partition_before_' || bound;
	RETURN QUERY SELECT s.kind, s.commands, ARRAY[target], s.mode FROM (VALUES
		('check', ARRAY[format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%I < %s) NOT VALID', target, name,
			id.col, bound)], 'ACCESS EXCLUSIVE'),
		('validate', ARRAY[format('ALTER TABLE %s VALIDATE CONSTRAINT %I', target, name)], NULL),
		('swap', @extschema@.snowflake_admin_partition_swap_commands(target, id.col, name, bound),
			'ACCESS EXCLUSIVE'),
		('plan', ARRAY[format('CALL @extschema@.snowflake_make_partitions(%L, unit => %L)', target, unit)],
			NULL)) AS s (kind, commands, mode)
		WHERE NOT (s.kind = 'check' AND found.name IS NOT NULL OR s.kind = 'validate'
			AND found.validated IS TRUE);
	RETURN QUERY SELECT 'plan', r.commands, r.relations, r.mode
		FROM @extschema@.snowflake_admin_partition_names(target) AS n,
			@extschema@.snowflake_admin_partition_rest(target, target, n.old_qualified, name, true) AS r
		WHERE n.object = target;
END
$$;

CREATE PROCEDURE snowflake_partition(tab regclass, unit text, at timestamptz DEFAULT NULL,
	dry_run boolean DEFAULT false, tries integer DEFAULT 30)
LANGUAGE plpgsql AS $$
DECLARE
	step pg_catalog.record;
	trigger pg_catalog.name;
BEGIN
	CALL @extschema@.snowflake_admin_require_no_transaction('snowflake_partition()');
	LOOP
		SET LOCAL search_path = pg_catalog, pg_temp;
		PERFORM @extschema@.snowflake_admin_partition_target(tab);
		PERFORM @extschema@.snowflake_admin_run('{}', ARRAY[tab], tries, dry_run, NULL);
		SELECT * INTO step FROM @extschema@.snowflake_admin_partition_steps(tab, unit, at) LIMIT 1;
		EXIT WHEN NOT FOUND;
		PERFORM set_config('application_name',
			format('snowflake_partition: %s %s', step.kind, step.relations[1])::name::text, true);
		IF step.kind = 'check' THEN
			FOR trigger IN SELECT tgname FROM pg_trigger JOIN pg_proc AS p ON p.oid = tgfoid
				WHERE tgrelid = tab AND NOT tgisinternal AND tgtype & 1 <> 0
					AND prosrc ~* '\mtg_(table_name|relname|relid)\M'
			LOOP
				RAISE WARNING 'trigger % of table % will see the name of the partition in TG_TABLE_NAME',
					quote_ident(trigger), tab;
			END LOOP;
			RAISE NOTICE '%', (
				SELECT format('table %1$s rejects IDs from %2$s on until all steps are done; to give up: '
					'ALTER TABLE %1$s DROP CONSTRAINT %3$s;', tab,
					@extschema@.snowflake_admin_bound_time(substring(name, '\d+')::bigint, layout), name)
				FROM @extschema@.snowflake_admin_partition_id(tab),
					substring(step.commands[1], 'snowflake_partition_before_\d+') AS name);
		END IF;
		IF dry_run THEN
			PERFORM @extschema@.snowflake_admin_run(commands, relations, tries, true)
			FROM @extschema@.snowflake_admin_partition_steps(tab, unit, at);
			EXIT;
		ELSIF step.kind = 'swap' THEN
			PERFORM @extschema@.snowflake_admin_partition_swap(tab, step.commands, unit, tries);
		ELSIF step.kind = 'partition' THEN
			CALL @extschema@.snowflake_make_partitions(step.relations[1], unit => unit, tries => tries);
		ELSE
			PERFORM @extschema@.snowflake_admin_run(step.commands, step.relations, tries, false, step.mode);
		END IF;
		COMMIT;
	END LOOP;
	IF NOT dry_run THEN
		RAISE NOTICE 'table % is partitioned',
			(SELECT parent FROM @extschema@.snowflake_admin_partition_target(tab));
	END IF;
END
$$;

COMMENT ON PROCEDURE snowflake_partition(regclass, text, timestamptz, boolean, integer) IS
'let a table that is in use become the first partition of a new table, by ranges of time of its IDs';

--
-- Renumbering rows
--

-- Indexes without which each batch would read a whole table
CREATE FUNCTION snowflake_admin_renumber_indexes(tab regclass, col name)
RETURNS TABLE (rel regclass, name name, command text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT rel, name, format('CREATE INDEX %sON %s (%I)',
		CASE WHEN relkind <> 'p' THEN 'CONCURRENTLY ' END, rel, name)
	FROM @extschema@.snowflake_admin_chain(tab, col) JOIN pg_class AS t ON t.oid = rel
	JOIN pg_attribute ON attrelid = rel AND attname = name
	WHERE attgenerated = '' AND attidentity <> 'a' AND NOT EXISTS (
		SELECT FROM pg_index JOIN pg_class AS i ON i.oid = indexrelid JOIN pg_am ON pg_am.oid = i.relam
		WHERE indrelid = rel AND indisvalid AND indkey[0] = attnum AND amname IN ('btree', 'hash')
			AND (indpred IS NULL OR pg_get_expr(indpred, indrelid) = format('(%I IS NOT NULL)', name)))
$$;

-- What is in the way of new IDs.  A foreign key could set a column to NULL or its default
-- where a row comes to an ID in the moment in which it changes.
CREATE FUNCTION snowflake_admin_renumber_obstacle(tab regclass, col name)
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH found AS MATERIALIZED (
		SELECT f.*, relispartition, attnum, attgenerated <> '' OR attidentity = 'a' AS is_generated
		FROM @extschema@.snowflake_admin_chain(tab, col) AS f
		JOIN pg_class ON oid = f.rel JOIN pg_attribute ON attrelid = f.rel AND attname = f.name
	), keys AS (
		SELECT conname, f.name, conrelid::regclass AS child, confrelid::regclass AS parent, confupdtype,
			EXISTS (SELECT FROM found AS p WHERE p.rel = coalesce(pg_partition_root(confrelid),
				confrelid::regclass)
				AND p.name = parent.attname) AS is_inside
		FROM pg_constraint CROSS JOIN unnest(conkey, confkey) AS u (child_number, parent_number)
		JOIN found AS f ON f.rel = conrelid AND f.attnum = child_number
		JOIN pg_attribute AS parent ON parent.attrelid = confrelid AND parent.attnum = parent_number
		WHERE contype = 'f' AND conparentid = 0
	)
	SELECT format('%s is a partition', rel), format(CASE WHEN rel = tab THEN 'Call it for %s.'
		ELSE 'Its foreign key must be one of %s.' END, pg_partition_root(rel))
	FROM found WHERE relispartition
	UNION ALL
	SELECT format('column "%s" of table %s holds IDs that would change, and has no index', name, rel),
		'Create an index that begins with it: ' || command
	FROM @extschema@.snowflake_admin_renumber_indexes(tab, col)
	UNION ALL SELECT format('column "%s" of table %s refers to the IDs, and is generated', name, rel),
		'Drop its foreign key, and add the column again afterwards.'
	FROM found WHERE is_generated
	UNION ALL SELECT format('column "%s" of table %s also refers to table %s', name, child, parent),
		format('Perhaps %s is the table to renumber. Otherwise drop foreign key "%s" first.', parent, conname)
	FROM keys WHERE NOT is_inside
	UNION ALL
	SELECT format('foreign key "%s" of table %s is ON UPDATE SET NULL or SET DEFAULT', conname, child),
		'Replace it by one without.'
	FROM keys WHERE confupdtype IN ('n', 'd')
	LIMIT 1
$$;

-- The table that keeps old and new IDs, and the command that creates it, unless it exists
--
-- A subscriber stops at a row of a table that it lacks.  So where a publication or
-- a slot of another plugin would send the list, it is unlogged, as these send no
-- unlogged table.  Nothing but the list is lost when a crash empties it: the rows
-- that still have old IDs show what is left to do.
CREATE FUNCTION snowflake_admin_renumber_list(tab regclass, OUT list text, OUT command text, OUT sender text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	schema oid;
	present record;
BEGIN
	SELECT relnamespace, format('%s.%I', relnamespace::regnamespace,
		substr(('_renumbered' || relname)::name::text, 12) || '_renumbered')
	INTO schema, list FROM pg_class WHERE oid = tab;
	SELECT name INTO sender FROM (
		SELECT format('publication %I', pubname) FROM pg_publication WHERE puballtables
		UNION ALL SELECT format('publication %I', pubname)
		FROM pg_publication JOIN pg_publication_namespace ON pnpubid = pg_publication.oid
		WHERE pnnspid = schema
		UNION ALL SELECT format('replication slot %I', slot_name) FROM pg_replication_slots
		WHERE slot_type = 'logical' AND database = current_database() AND plugin <> 'pgoutput') AS s (name)
	LIMIT 1;
	SELECT relkind, relpersistence, ARRAY(SELECT attname FROM pg_attribute
		WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum) AS columns
	INTO present FROM pg_class AS c WHERE c.oid = to_regclass(list);
	IF NOT FOUND THEN
		command := format('CREATE %sTABLE %s (old bigint PRIMARY KEY, new bigint NOT NULL)',
			CASE WHEN sender IS NULL THEN '' ELSE 'UNLOGGED ' END, list);
	ELSIF present.relkind <> 'r' OR present.columns <> '{old,new}' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('%s exists, and is not a list of old and new IDs', list),
			HINT = 'Rename it, because the list has this name.';
	ELSIF present.relpersistence = 'p' AND sender IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('%s would send the rows of %s', sender, list),
			HINT = format('Rename that list, or make it unlogged: ALTER TABLE %s SET UNLOGGED', list);
	END IF;
END
$$;

-- The column that holds the IDs of a table, what makes them, and their layout.  A unique
-- index must contain it, and one by which its rows are found must begin with it.
CREATE FUNCTION snowflake_admin_renumber_key(tab regclass, new_shard bigint, given_layout text, OUT col name,
	OUT made_by text, OUT layout text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	key record;
BEGIN
	SELECT *, count(*) OVER (PARTITION BY calls, is_primary) AS rivals INTO key
	FROM (
		SELECT a.attname, a.attnum, a.attidentity <> '' AS is_identity, f.sequence, f.calls, i.is_primary,
			pg_get_expr(coalesce(d.adbin, t.typdefaultbin), coalesce(d.adrelid, 0)) AS expression
		FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = atttypid
		LEFT JOIN pg_attrdef AS d ON adrelid = attrelid AND adnum = attnum
		CROSS JOIN LATERAL (
			SELECT bool_or(indisprimary) AS is_primary, bool_or(indisunique) AS is_unique,
				bool_or(indkey[0] = attnum AND indpred IS NULL AND amname = 'btree') AS is_first
			FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
			WHERE indrelid = tab AND indisvalid AND attnum = ANY (indkey)) AS i
		CROSS JOIN LATERAL (
			SELECT bool_or(f.made_by = 'next_id') IS TRUE AS calls, min(f.sequence) AS sequence
			FROM @extschema@.snowflake_admin_filled() AS f WHERE f.tab = attrelid AND f.col = attnum) AS f
		WHERE attrelid = tab AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
			AND i.is_unique AND i.is_first
			AND @extschema@.snowflake_admin_is_id(@extschema@.snowflake_admin_base_type(t.oid))) AS found
	ORDER BY calls DESC, is_primary DESC, attnum LIMIT 1;
	col := key.attname;
	made_by := key.expression;
	layout := coalesce(given_layout, @extschema@.snowflake_admin_layout_of(made_by, key.sequence));
	IF col IS NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has no column of IDs', tab),
			DETAIL = 'It would be a bigint or snowflake in a unique index, and the first column of an index.';
	ELSIF key.rivals > 1 THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has %s columns that could be the one with the IDs', tab, key.rivals),
			HINT = 'Make one of them the primary key.';
	ELSIF key.is_identity OR made_by ~ '\mnextval\(' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('column "%s" of table %s gets its numbers from nextval(), not from next_id()',
				col, tab),
			HINT = 'Such numbers have no shard and no time.';
	ELSIF new_shard IS NULL AND made_by IS NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('column "%s" of table %s has no default that makes IDs', col, tab),
			HINT = 'Give it a default with next_id(), or give new_shard for new IDs that keep their time.';
	ELSIF layout IS NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('the sequence of column "%s" of table %s serves no built-in layout', col, tab),
			HINT = 'Give the layout, as in layout => ''twitter''.';
	END IF;
END
$$;

-- The tables to work in, and the statements for a batch
--
--	find	the smallest ID > $1 and <= $2 of the shard
--	take	lock up to $3 such rows that nobody else has locked, and return their IDs
--	make	new IDs for the old ones, $1
--	change	change old IDs, $1, to new ones, $2
--	present	the largest ID that is not future-dated
CREATE FUNCTION snowflake_admin_renumber_plan(tab regclass, shard bigint, new_shard bigint, given_layout text,
	OUT relations regclass[], OUT list text, OUT create_list text, OUT sender text, OUT col name,
	OUT source text, OUT layout text, OUT expression text, OUT find text, OUT take text, OUT make text,
	OUT change text, OUT present text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	own text := @extschema@.snowflake_admin_schema();
	bad record;
	made_by text;
	rows_of_shard text;
BEGIN
	SELECT k.col, k.made_by, format('%L::%s.snowflake_layout', k.layout, own) INTO col, made_by, layout
	FROM @extschema@.snowflake_admin_renumber_key(tab, new_shard, given_layout) AS k;
	SELECT c.rel, c.name INTO bad FROM @extschema@.snowflake_admin_chain(tab, col) AS c
	WHERE NOT has_table_privilege(c.rel, 'SELECT') OR NOT has_table_privilege(c.rel, 'UPDATE') LIMIT 1;
	IF FOUND THEN
		RAISE insufficient_privilege USING MESSAGE = format('permission denied for table %s', bad.rel),
			HINT = format('SELECT and UPDATE are needed, as its column "%s" holds IDs that would change.',
				bad.name);
	END IF;
	SELECT * INTO bad FROM @extschema@.snowflake_admin_renumber_obstacle(tab, col);
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING MESSAGE = bad.problem, HINT = bad.remedy;
	END IF;
	SELECT l.list, l.command, l.sender INTO list, create_list, sender
	FROM @extschema@.snowflake_admin_renumber_list(tab) AS l;
	relations := tab || ARRAY(SELECT DISTINCT c.rel FROM @extschema@.snowflake_admin_chain(tab, col) AS c
		WHERE c.rel <> tab);
	SELECT CASE relkind WHEN 'p' THEN '' ELSE 'ONLY ' END || tab::text INTO source
	FROM pg_class WHERE oid = tab;

	rows_of_shard := format('FROM %1$s AS t WHERE t.%2$I > $1 AND t.%2$I <= $2'
		' AND %3$s.snowflake_shard(t.%2$I, %4$s) = %5$s', source, col, own, layout, shard);
	-- The tick and the sequence number of an ID belong to one row of its shard, so with a
	-- shard that nobody has used they are free.
	expression := CASE WHEN new_shard IS NULL THEN made_by
		ELSE format('%1$s.snowflake_id(%1$s.snowflake_timestamp(t.%2$I, %3$s), %4$s,'
			' %1$s.snowflake_sequence_number(t.%2$I, %3$s), %3$s)', own, col, layout, new_shard) END;
	find := format('SELECT min(t.%I) %s', col, rows_of_shard);
	take := format('SELECT array_agg(id) FROM (SELECT t.%I::bigint AS id %s'
		' ORDER BY t.%1$I LIMIT $3 FOR UPDATE SKIP LOCKED) AS t', col, rows_of_shard);
	make := format('SELECT ARRAY(SELECT %s FROM (SELECT old AS %I FROM unnest($1) WITH ORDINALITY AS u (old, n)'
		' ORDER BY n) AS t)', expression, col);
	-- The rows change with all that refer to them, so that foreign keys are satisfied at
	-- the statement's end.  One row may be changed only once in a statement, so each table
	-- has one UPDATE.  It runs with the caller's search_path, for the triggers' sake, and
	-- names the schema even of operators.
	WITH found AS (
		SELECT rel, name, CASE relkind WHEN 'p' THEN '' ELSE 'ONLY ' END || rel::text AS only_rel,
			count(*) OVER (PARTITION BY rel) = 1 AS alone,
			format('(SELECT l.new FROM %s AS l WHERE l.old OPERATOR(pg_catalog.=) t.%I)', list, name) AS new
		FROM @extschema@.snowflake_admin_chain(tab, col) JOIN pg_class ON oid = rel),
	changes AS (
		SELECT row_number() OVER (ORDER BY rel <> tab, rel::text) AS n,
			format('UPDATE %s AS t SET %s WHERE %s%s', only_rel,
			string_agg(format(CASE WHEN alone THEN '%1$I = %2$s'
				ELSE '%1$I = CASE WHEN t.%1$I OPERATOR(pg_catalog.=) ANY ($1) THEN %2$s ELSE t.%1$I END' END,
				name, new), ', ' ORDER BY name),
			string_agg(format('t.%I OPERATOR(pg_catalog.=) ANY ($1)', name), ' OR ' ORDER BY name),
			CASE WHEN rel = tab THEN format(' RETURNING t.%I AS id', col) ELSE '' END) AS command
		FROM found GROUP BY rel, only_rel)
	SELECT format('WITH %s SELECT pg_catalog.count(*) FROM change1 WHERE id OPERATOR(pg_catalog.=) ANY ($2)',
		string_agg(format('change%s AS (%s)', n, command), ', ' ORDER BY n))
	INTO change FROM changes;
	present := format('SELECT %s.snowflake_max_id(clock_timestamp() + interval ''1 s'', %s)', own, layout);
END
$$;

-- Look at all rows once, and create the list if there are any.  IDs above "last" come later
-- than this look, and are not followed, so that there is an end.
CREATE FUNCTION snowflake_admin_renumber_look(tab regclass, plan record, shard bigint, new_shard bigint,
	since timestamptz, until timestamptz, tries integer, dry_run boolean, OUT lowest bigint, OUT last bigint,
	OUT highest bigint, OUT total bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
	own text := @extschema@.snowflake_admin_schema();
	taken bigint;
BEGIN
	-- snowflake_id() knows which shards a layout has.
	EXECUTE format('SELECT count(%s.snowflake_id(now(), s, 0, %s)) FROM unnest($1) AS s', own, plan.layout)
	USING ARRAY[shard, new_shard];
	-- Numbers of a former serial would be IDs of the layout's first day.
	EXECUTE format('SELECT %1$s.snowflake_min_id('
			'greatest($1, %1$s.snowflake_timestamp(0, %2$s) + interval ''24 hours''), %2$s) - 1, '
			'coalesce(%1$s.snowflake_min_id($2, %2$s) - 1, $3)', own, plan.layout)
	INTO lowest, highest USING since, until, 9223372036854775807;
	IF new_shard IS NULL THEN
		EXECUTE plan.present INTO last;
		lowest := greatest(lowest, last);
	END IF;
	EXECUTE format('SELECT max(t.%I) FROM %s AS t WHERE t.%1$I <= $1', plan.col, plan.source)
	INTO last USING highest;
	EXECUTE format('SELECT count(*), min(n.%1$I) FROM %2$s AS t LEFT JOIN %2$s AS n ON n.%1$I = %3$s
			WHERE t.%1$I > $1 AND t.%1$I <= $2 AND %4$s.snowflake_shard(t.%1$I, %5$s) = $3',
		plan.col, plan.source, CASE WHEN new_shard IS NULL THEN 'NULL' ELSE plan.expression END,
		own, plan.layout)
	INTO total, taken USING lowest, last, shard;
	IF taken IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has a row with an ID that another row would get: %s', tab, taken),
			HINT = format('Shard %s was used at these times. Choose a shard that no server has ever used.', new_shard);
	ELSIF total > 0 THEN
		IF plan.create_list IS NOT NULL THEN
			IF plan.sender IS NOT NULL THEN
				RAISE NOTICE '% is unlogged, because % would send it otherwise; a crash of the server empties it',
					plan.list, plan.sender;
			END IF;
			PERFORM @extschema@.snowflake_admin_run(ARRAY[plan.create_list], '{}', tries, dry_run);
		END IF;
		RAISE NOTICE '%; -- for each batch of old IDs, $1, and new ones, $2', plan.change;
		IF dry_run THEN
			RAISE NOTICE '% rows of % would get new IDs', total, tab;
		END IF;
	END IF;
END
$$;

-- Change one batch, the first rows after an ID that nobody else has locked.
--
-- The rows are locked before the statement that changes them begins, so that it
-- sees every row that refers to them: a foreign key's check needs a lock that
-- conflicts.  A row elsewhere that somebody holds, or that has come to a row
-- further down a chain of references, ends the try.  The next one is smaller,
-- and a row with which even a batch of one fails is left for the next round.
--
-- We wait for others so briefly that nobody who waits for us waits long enough
-- to look for a deadlock.  Nor may they wait for a compiler, or for a scan of a
-- table that the planner thinks is small.
CREATE FUNCTION snowflake_admin_renumber_batch(plan record, callers_path text, future boolean, batch integer,
	last bigint, INOUT after bigint, INOUT size integer, OUT done integer, OUT trouble text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off SET lock_timeout = '20ms'
	SET jit = off SET enable_seqscan = off AS $$
DECLARE
	old_ids bigint[];
	new_ids bigint[];
	present bigint;
	changed bigint;
BEGIN
	done := 0;
	IF future THEN
		EXECUTE plan.present INTO present;
		after := greatest(after, present);
	END IF;
	BEGIN
		EXECUTE plan.take INTO old_ids USING after, last, size;
		IF old_ids IS NULL THEN
			after := NULL;
			RETURN;
		END IF;
		EXECUTE plan.make INTO new_ids USING old_ids;
		IF future THEN
			EXECUTE plan.present INTO present;
			IF present < (SELECT max(new) FROM unnest(new_ids) AS u (new)) THEN
				RAISE object_not_in_prerequisite_state USING
					MESSAGE = format('the default of table %s makes future-dated IDs, too',
						plan.relations[1]),
					HINT = 'SELECT * FROM snowflake_check() shows how it gets IDs of the present again.';
			END IF;
		END IF;
		EXECUTE format('INSERT INTO %s AS l
			SELECT DISTINCT ON (old) old, new FROM unnest($1, $2) AS u (old, new)
			ON CONFLICT (old) DO UPDATE SET new = excluded.new', plan.list) USING old_ids, new_ids;
		-- From here on, no name is looked up but those of triggers and the like.
		PERFORM set_config('search_path', callers_path, true);
		SET CONSTRAINTS ALL IMMEDIATE;
		EXECUTE plan.change INTO changed USING old_ids, new_ids;
		PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
		IF changed < cardinality(old_ids) THEN
			RAISE object_not_in_prerequisite_state USING
				MESSAGE = format('%s of %s rows kept their IDs',
					cardinality(old_ids) - changed, cardinality(old_ids)),
				HINT = format('A trigger or a rule of %s must have prevented the UPDATE.', plan.relations[1]);
		END IF;
		done := cardinality(old_ids);
		after := old_ids[cardinality(old_ids)];
		size := least(batch, size * 2);
	EXCEPTION WHEN lock_not_available OR deadlock_detected OR foreign_key_violation THEN
		IF old_ids IS NULL THEN
			RAISE;
		END IF;
		trouble := SQLERRM;
		IF cardinality(old_ids) = 1 THEN
			after := old_ids[1];
		END IF;
		size := greatest(1, cardinality(old_ids) / 4);
	END;
END
$$;

-- A round found no row that it could change.  If somebody holds one, pause, unless this was
-- the last try.  Returns where the next round begins, or NULL at the end.
CREATE FUNCTION snowflake_admin_renumber_pause(plan record, lowest bigint, last bigint, future boolean,
	idle integer, tries integer, trouble text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
	blocker record;
	next_id bigint;
	present bigint;
BEGIN
	EXECUTE plan.present INTO present;
	EXECUTE plan.find INTO next_id
	USING CASE WHEN future THEN greatest(lowest, present) ELSE lowest END, last;
	IF next_id IS NOT NULL AND idle >= tries THEN
		SELECT * INTO blocker FROM @extschema@.snowflake_admin_blocker(plan.relations, 'RowShareLock');
		RAISE lock_not_available USING
			MESSAGE = format('could not renumber all rows of %s in %s tries, such as %s',
				plan.relations[1], tries, next_id),
			DETAIL = concat_ws(' ', 'The last error was: ' || trouble || '.', blocker.description),
			HINT = coalesce('Call it again when that transaction has ended. ' || blocker.remedy,
				'Call it again for the rest, perhaps with more tries.');
	ELSIF next_id IS NOT NULL AND idle > 0 THEN
		PERFORM pg_sleep(least(0.05 * idle * (0.5 + random()), 2));
	END IF;
	RETURN next_id - 1;
END
$$;

CREATE FUNCTION snowflake_admin_renumber_end(plan record, shard bigint, done bigint, last bigint,
	highest bigint, future boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
	present bigint;
	later bigint;
	child regclass;
BEGIN
	RAISE NOTICE '% rows of % have new IDs%', done, plan.relations[1],
		CASE WHEN done > 0 THEN format('; %s keeps old and new', plan.list) ELSE '' END;
	EXECUTE plan.present INTO present;
	EXECUTE plan.find INTO later USING greatest(last, 0, CASE WHEN future THEN present END), highest;
	IF later IS NOT NULL THEN
		RAISE WARNING 'table % still gets IDs of shard %, such as %', plan.relations[1], shard, later
			USING HINT = 'SELECT * FROM snowflake_uses() shows what makes them. If that has another shard, '
				'older sessions make them: end those. Then call it again.';
	END IF;
	FOR child IN SELECT inhrelid::regclass FROM pg_inherits JOIN pg_class ON oid = inhrelid
		WHERE inhparent = plan.relations[1] AND NOT relispartition ORDER BY 1 LOOP
		RAISE WARNING 'table % inherits from %, and its rows have kept their IDs', child, plan.relations[1]
			USING HINT = 'Call it for that table, too.';
	END LOOP;
END
$$;

CREATE PROCEDURE snowflake_renumber(tab regclass, shard bigint, new_shard bigint DEFAULT NULL,
	since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL, layout snowflake_layout DEFAULT NULL,
	batch integer DEFAULT 500, dry_run boolean DEFAULT false, tries integer DEFAULT 30)
LANGUAGE plpgsql AS $$
DECLARE
	callers_path pg_catalog.text;
	plan pg_catalog.record;
	look pg_catalog.record;
	step pg_catalog.record;
	begun timestamp with time zone;
	reported timestamp with time zone;
	done bigint := 0;
	done_before bigint := 0;
	idle integer := 0;
	trouble pg_catalog.text;
BEGIN
	callers_path := pg_catalog.current_setting('search_path');
	SET LOCAL search_path = pg_catalog, pg_temp;
	CALL @extschema@.snowflake_admin_require_no_transaction('snowflake_renumber()');
	IF tab IS NULL OR shard IS NULL THEN
		RAISE null_value_not_allowed USING
			MESSAGE = CASE WHEN tab IS NULL THEN 'table cannot be NULL' ELSE 'shard cannot be NULL' END;
	ELSIF new_shard = shard THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('new shard %s is the old one', new_shard),
			HINT = 'Choose a shard that no server has ever used, or leave it out to get IDs of the present.';
	ELSIF coalesce(batch, 0) < 1 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('batch %s is not positive', coalesce(batch::text, 'NULL'));
	ELSIF since >= until THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('no ID is from %s on and before %s', since, until);
	ELSIF new_shard IS NULL AND least(since, until) <= now() THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('without new_shard, only future-dated rows get new IDs, but %s is past',
				least(since, until)),
			HINT = 'Give new_shard for IDs that keep their time, or leave the times out for all '
				'future-dated rows.';
	END IF;
	PERFORM @extschema@.snowflake_admin_take_turn('snowflake_renumber()', ARRAY[tab], false);
	SELECT * INTO plan FROM @extschema@.snowflake_admin_renumber_plan(tab, shard, new_shard, layout::text);
	SELECT * INTO look FROM @extschema@.snowflake_admin_renumber_look(
		tab, plan, shard, new_shard, since, until, tries, dry_run);
	IF dry_run THEN
		RETURN;
	END IF;
	begun := clock_timestamp();
	reported := begun;
	SELECT look.lowest AS after, batch AS size INTO step;
	WHILE look.total > 0 AND step.after IS NOT NULL LOOP
		COMMIT;
		SET LOCAL search_path = pg_catalog, pg_temp;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		PERFORM @extschema@.snowflake_admin_take_turn('snowflake_renumber()', ARRAY[tab], true);
		reported := @extschema@.snowflake_admin_progress(
			format('renumbering %s', tab), done, look.total, begun, reported);
		PERFORM @extschema@.snowflake_admin_run('{}', plan.relations, tries, false, 'ROW EXCLUSIVE');
		SELECT * INTO step FROM @extschema@.snowflake_admin_renumber_batch(
			plan, callers_path, new_shard IS NULL, batch, look.last, step.after, step.size);
		done := done + step.done;
		trouble := coalesce(step.trouble, trouble);
		IF step.after IS NULL THEN
			COMMIT;
			SET LOCAL search_path = pg_catalog, pg_temp;
			PERFORM @extschema@.snowflake_admin_take_turn('snowflake_renumber()', ARRAY[tab], true);
			idle := CASE WHEN done > done_before THEN 0 ELSE idle + 1 END;
			done_before := done;
			step.after := @extschema@.snowflake_admin_renumber_pause(
				plan, look.lowest, look.last, new_shard IS NULL, idle, tries, trouble);
		END IF;
	END LOOP;
	PERFORM @extschema@.snowflake_admin_renumber_end(plan, shard, done, look.last, look.highest,
		new_shard IS NULL);
END
$$;

COMMENT ON PROCEDURE snowflake_renumber(
	regclass, bigint, bigint, timestamptz, timestamptz, snowflake_layout, integer, boolean, integer) IS
'give rows with IDs of a shard new ones, and change all that refer to them';

--
-- Checking
--
-- Each snowflake_admin_check_*() looks for one kind of fault.  None of them writes,
-- so they run on a standby, too.  None waits for locks: what somebody else has
-- locked is in a note.
--

-- snowflake_sequences(), whatever schema it is in, of all sequences or of one
CREATE FUNCTION snowflake_admin_states(sequence regclass DEFAULT NULL, layout snowflake_layout DEFAULT NULL)
RETURNS TABLE (sequence regclass, layout text, last_timestamp timestamptz, lead interval, expires timestamptz,
	state text)
LANGUAGE sql VOLATILE
BEGIN ATOMIC
	SELECT * FROM snowflake_sequences() WHERE $1 IS NULL
	UNION ALL SELECT * FROM snowflake_sequences($1, $2);
END;

-- The layout of a text.  In the code of a function it may be none, and is NULL then.
CREATE FUNCTION snowflake_admin_to_layout(layout text) RETURNS snowflake_layout
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN layout;
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END
$$;

-- Shards of IDs, or NULL if the layout has none
CREATE FUNCTION snowflake_admin_shards_of(ids bigint[], layout snowflake_layout) RETURNS integer[]
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT array_agg(snowflake_shard(id, layout) ORDER BY n) FROM unnest(ids) WITH ORDINALITY AS i (id, n)
	WHERE EXISTS (SELECT FROM snowflake_fields(ids[1], layout) WHERE field NOT IN ('timestamp', 'sequence'));
END;

-- The shard that sessions of this database begin with, if their role has no own
-- setting.  What a client brings along counts for this session's client alone, but
-- nobody can look up what others bring.
CREATE FUNCTION snowflake_admin_setting(OUT place text, OUT shard integer)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT place, nullif(@extschema@.snowflake_admin_integer(value), -1) FROM (
		SELECT * FROM @extschema@.snowflake_admin_shard_settings() WHERE place NOT LIKE 'setting of role %'
		UNION ALL
		SELECT 'client', reset_val FROM pg_settings WHERE name = 'snowflake.shard' AND source = 'client'
	) AS settings
	ORDER BY place <> 'client', place NOT LIKE 'setting of database %', place <> 'setting of all roles',
		place <> 'command line'
	LIMIT 1
$$;

CREATE TYPE snowflake_admin_filler AS (tab regclass, col name, root regclass, class oid, object oid,
	code text, by_setting boolean, shard integer, sequence regclass, layout text, is_built_in boolean);

COMMENT ON TYPE snowflake_admin_filler IS
'for snowflake_check(): what fills a column with IDs';

CREATE TYPE snowflake_admin_generator AS (sequence regclass, layout text, last_timestamp timestamptz,
	lead interval, expires timestamptz, state text, named text, by_setting boolean, unset boolean,
	tabs regclass[], cols name[], shards integer[]);

COMMENT ON TYPE snowflake_admin_generator IS
'for snowflake_check(): a sequence that makes IDs, and the tables that it fills';

-- What fills columns with IDs: a column's own default or that of its domain, the functions
-- that such a default calls, and triggers that assign to the column.  "shard" is NULL where
-- it is computed, or comes from a setting that is missing.
CREATE FUNCTION snowflake_admin_fillers() RETURNS SETOF snowflake_admin_filler
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
	WITH RECURSIVE tops (tab, top) AS (
		SELECT inhrelid, inhparent FROM pg_inherits
		UNION SELECT tab, inhparent FROM tops JOIN pg_inherits ON inhrelid = top
	), callers AS MATERIALIZED (SELECT * FROM @extschema@.snowflake_admin_callers()),
	functions AS MATERIALIZED (SELECT * FROM @extschema@.snowflake_admin_function_code()),
	pieces (tab, num, class, object, code) AS (
		SELECT adrelid, adnum, class, object, ltrim(pg_get_expr(adbin, 0), E'\n')
		FROM callers JOIN pg_attrdef AS d ON class = 'pg_attrdef'::regclass AND object = d.oid
		JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE attgenerated = ''
		UNION ALL SELECT attrelid, attnum, class, object, ltrim(pg_get_expr(typdefaultbin, 0), E'\n')
		FROM callers JOIN pg_type AS t ON class = 'pg_type'::regclass AND object = t.oid
		JOIN pg_attribute ON atttypid = t.oid AND NOT atthasdef AND attnum > 0
		UNION ALL SELECT adrelid, adnum, 'pg_proc'::regclass, function, f.code
		FROM functions AS f JOIN pg_depend AS p ON refclassid = 'pg_proc'::regclass AND refobjid = function
		JOIN pg_attrdef AS d ON classid = 'pg_attrdef'::regclass AND objid = d.oid
		UNION ALL SELECT tgrelid, attnum, 'pg_proc'::regclass, function, f.code
		FROM functions AS f JOIN pg_trigger ON tgfoid = function
			AND tgtype & 7 = 7	-- BEFORE INSERT FOR EACH ROW
		JOIN pg_attribute ON attrelid = tgrelid AND attnum > 0
			AND f.code ~* ('\mnew\."?' || regexp_replace(attname, '(\W)', '\\\1', 'g')
				|| '"?\s*:?=[^;]*' || (SELECT @extschema@.snowflake_admin_call_pattern()))
	), calls AS MATERIALIZED (
		SELECT p.*, coalesce(c.shard ~* 'snowflake_shard"?\s*\(\s*\)|current_setting',
			c.shard IS NULL) AS by_setting,
			@extschema@.snowflake_admin_integer(@extschema@.snowflake_admin_literal(c.shard)) AS number,
			CASE WHEN c.sequence IS NULL THEN (SELECT @extschema@.snowflake_admin_next_id_seq())
				ELSE s.oid END AS seq,
			c.layout IS NULL AS unnamed, @extschema@.snowflake_admin_literal(c.layout) AS layout
		FROM pieces AS p CROSS JOIN LATERAL @extschema@.snowflake_admin_calls(code) AS c
		LEFT JOIN @extschema@.snowflake_admin_sequence_names() AS s
			ON s.name = @extschema@.snowflake_admin_literal(c.sequence)
		WHERE function IN ('next_id', 'next_ids') AND complete
	)
	SELECT c.tab, attname, coalesce(top, c.tab), class, object, code, by_setting,
		CASE WHEN by_setting THEN (SELECT s.shard FROM @extschema@.snowflake_admin_setting() AS s)
			ELSE number END,
		seq, CASE WHEN unnamed THEN l.name ELSE c.layout END,
		unnamed OR c.layout IN (SELECT name FROM @extschema@.snowflake_admin_layouts())
	FROM calls AS c JOIN pg_class ON oid = c.tab AND relkind IN ('r', 'p') AND relpersistence <> 't'
	JOIN pg_attribute ON attrelid = c.tab AND attnum = num AND NOT attisdropped
	LEFT JOIN (SELECT tab, max(top) AS top FROM tops
		WHERE top NOT IN (SELECT inhrelid FROM pg_inherits) GROUP BY tab) AS t
		ON t.tab = c.tab
	LEFT JOIN pg_sequence ON seqrelid = seq
	LEFT JOIN @extschema@.snowflake_admin_layouts() AS l ON max_value = seqmax
$$;

-- The largest IDs in a range, most of them first, read by an index that begins with
-- the column, or why they could not be read.  A layout without a time has no range.
-- Rows of partitions are read through their table, those of other children are not.
-- The lock on the table would last until the caller's transaction ends, and all who come
-- after somebody who waits for it would wait, too.  So an error ends the
-- subtransaction, and the lock with it.
CREATE FUNCTION snowflake_admin_ids(tab regclass, col name, low bigint, high bigint, most integer,
	OUT ids bigint[], OUT obstacle text)
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
	SET jit = off AS $$
BEGIN
	IF NOT has_column_privilege(tab, col::text, 'SELECT') THEN
		obstacle := 'no privilege';
	ELSIF row_security_active(tab) THEN
		obstacle := 'policies hide rows';
	ELSIF NOT EXISTS (
			SELECT FROM pg_index JOIN pg_class ON oid = indexrelid
			JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
			WHERE indrelid = tab AND attname = col AND indisvalid AND indpred IS NULL
			AND relam = (SELECT oid FROM pg_am WHERE amname = 'btree')) THEN
		obstacle := 'no index';
	ELSE
		EXECUTE format('SELECT array_agg(id::bigint) FROM (SELECT %1$I AS id FROM %2$s %3$s '
			'WHERE %1$I >= %4$s AND %1$I <= %5$s ORDER BY %1$I DESC LIMIT %6$s) AS found',
			col, (SELECT CASE relkind WHEN 'p' THEN '' ELSE 'ONLY' END FROM pg_class WHERE oid = tab),
			tab, low, high, most) INTO ids;
		RAISE SQLSTATE 'SF000';
	END IF;
EXCEPTION
	WHEN SQLSTATE 'SF000' THEN NULL;
	WHEN lock_not_available THEN obstacle := 'locked';
	WHEN OTHERS THEN obstacle := SQLERRM;
END
$$;

CREATE FUNCTION snowflake_admin_renumber_command(tab regclass, col name, shard integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT concat_ws('; ', string_agg(command, '; ' ORDER BY command),
		format('CALL @extschema@.snowflake_renumber(%L, %s, since => now() + interval ''1 s'')',
			tab, coalesce(shard, 0)))
	FROM @extschema@.snowflake_admin_renumber_indexes(tab, col)
$$;

-- The largest IDs of each table from "low" on, "most" of them; with "more", there may be
-- others.  A sequence's own are those of its shard for the table, NULL for any.
CREATE FUNCTION snowflake_admin_counts(tabs regclass[], cols name[], shards integer[],
	layout snowflake_layout, low bigint, most integer)
RETURNS TABLE (tab regclass, col name, own_shard integer, shard integer, is_own boolean, number bigint,
	more boolean, largest bigint, obstacle text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT t.tab, t.col, t.shard, coalesce(i.shard, t.shard), coalesce(i.shard = t.shard, true), count(id),
		cardinality(f.ids) = most, max(id), f.obstacle
	FROM unnest(tabs, cols, shards) AS t (tab, col, shard)
	CROSS JOIN LATERAL @extschema@.snowflake_admin_ids(t.tab, t.col, low, 9223372036854775807, most) AS f
	LEFT JOIN LATERAL unnest(f.ids, @extschema@.snowflake_admin_shards_of(f.ids, layout)) AS i (id, shard)
		ON true
	WHERE id IS NOT NULL OR f.obstacle IS NOT NULL
	GROUP BY t.tab, t.col, t.shard, i.shard, cardinality(f.ids), f.obstacle
$$;

-- ... all together, and a command for each table that has a sequence's own
CREATE FUNCTION snowflake_admin_reach(tabs regclass[], cols name[], shards integer[], layout snowflake_layout,
	low bigint, most integer, OUT own bigint, OUT others bigint, OUT more boolean, OUT largest bigint,
	OUT tab regclass, OUT renumber text, OUT unseen text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(sum(number) FILTER (WHERE is_own), 0)::bigint,
		coalesce(sum(number) FILTER (WHERE NOT is_own), 0)::bigint, coalesce(bool_or(more), false),
		max(largest) FILTER (WHERE is_own),
		(array_agg(tab ORDER BY largest DESC) FILTER (WHERE is_own AND obstacle IS NULL))[1],
		string_agg(DISTINCT @extschema@.snowflake_admin_renumber_command(tab, col, shard), '; ')
			FILTER (WHERE is_own AND obstacle IS NULL),
		string_agg(DISTINCT format('%s (%s)', tab, obstacle), ', ') FILTER (WHERE obstacle IS NOT NULL)
	FROM @extschema@.snowflake_admin_counts(tabs, cols, shards, layout, low, most)
$$;

-- All sequences that make IDs, with their tables, and the shard of the sequence's IDs
-- there, NULL for any.  Those of a custom layout are known by the defaults that name it.
CREATE FUNCTION snowflake_admin_generators(fillers snowflake_admin_filler[])
RETURNS SETOF snowflake_admin_generator
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
	WITH read AS (
		SELECT f.sequence, min(f.layout) OVER s AS layout, bool_and(f.is_built_in) OVER s AS is_built_in,
			bool_and(f.by_setting) OVER s AS by_setting,
			bool_or(f.by_setting AND f.shard IS NULL) OVER s AS unset,
			CASE WHEN relispartition THEN f.root ELSE f.tab END AS tab, f.col, f.shard
		FROM unnest(fillers) AS f JOIN pg_class ON oid = f.tab
		WHERE f.sequence IS NOT NULL
		WINDOW s AS (PARTITION BY f.sequence)
	), counted AS (
		SELECT DISTINCT sequence, layout, is_built_in, by_setting, unset, tab, col,
			CASE WHEN count(*) OVER c = count(shard) OVER c THEN shard END AS shard
		FROM read
		WINDOW c AS (PARTITION BY sequence, tab, col)
	), readers AS MATERIALIZED (
		SELECT sequence, layout, NOT is_built_in AND layout IS NOT NULL AS is_custom, by_setting, unset,
			array_agg(tab ORDER BY tab, col, shard) AS tabs, array_agg(col ORDER BY tab, col, shard) AS cols,
			array_agg(shard ORDER BY tab, col, shard) AS shards
		FROM counted GROUP BY sequence, layout, is_built_in, by_setting, unset
	)
	SELECT s.sequence, s.layout, s.last_timestamp, justify_hours(s.lead), s.expires, s.state,
		r.layout, r.by_setting, r.unset, r.tabs, r.cols, r.shards
	FROM @extschema@.snowflake_admin_states() AS s LEFT JOIN readers AS r USING (sequence)
	WHERE r.is_custom IS NOT TRUE
	UNION ALL SELECT r.sequence, r.layout, s.last_timestamp, justify_hours(s.lead), s.expires, s.state,
		r.layout, r.by_setting, r.unset, r.tabs, r.cols, r.shards
	FROM readers AS r CROSS JOIN LATERAL
		@extschema@.snowflake_admin_states(r.sequence, @extschema@.snowflake_admin_to_layout(r.layout)) AS s
	WHERE r.is_custom
$$;

-- Shards that are not set, or those of another database.  Rows may tell the number, but
-- those of other servers have theirs.
CREATE FUNCTION snowflake_admin_check_shard(fillers snowflake_admin_filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	WITH lacking AS MATERIALIZED (
		SELECT count(DISTINCT (f.root, f.col)) AS n, min(format('%s.%I', f.root, f.col)) AS first,
			array_agg(DISTINCT f.tab) AS tabs
		FROM unnest(fillers) AS f WHERE f.by_setting AND f.shard IS NULL
	)
	SELECT 'error', format('database %I', current_database()),
		concat_ws('. ', format('No shard is set, so the default of %s fails%s', first,
			CASE WHEN n > 1 THEN format(', and %s more', n - 1) END),
			'The newest IDs may tell the number: ' || (
				SELECT string_agg(DISTINCT format('%s has rows of shard %s', f.tab, s.shard), ', ')
				FROM (SELECT DISTINCT tab, col, layout FROM unnest(fillers)
					WHERE tab = ANY (tabs[1:3]) AND is_built_in) AS f
				CROSS JOIN LATERAL @extschema@.snowflake_admin_ids(
					f.tab, f.col, 1::bigint << 40, 9223372036854775807, 1) AS newest
				CROSS JOIN LATERAL unnest(@extschema@.snowflake_admin_shards_of(
					newest.ids, @extschema@.snowflake_admin_to_layout(f.layout))) AS s (shard))
			|| '. A copy needs another number while its original makes IDs.'),
		format('SELECT %s.snowflake_set_shard(N); -- N is this server''s number in your list.',
			@extschema@.snowflake_admin_schema())
	FROM lacking WHERE n > 0 AND NOT EXISTS (
		SELECT FROM @extschema@.snowflake_admin_shard_settings() WHERE place LIKE 'setting of role %')
	UNION SELECT 'warning', format('%s.%I', root, col),
		format('The default makes IDs of shard %s, but the database has number %s. If the table was copied from '
			'a database that still makes IDs, they can come twice.', f.shard, s.shard),
		format('ALTER TABLE %s ALTER %I SET DEFAULT %s.next_id()', root, col,
			@extschema@.snowflake_admin_schema())
	FROM unnest(fillers) AS f, @extschema@.snowflake_admin_setting() AS s
	WHERE NOT by_setting AND f.shard <> s.shard AND class = 'pg_attrdef'::regclass
		AND sequence = @extschema@.snowflake_admin_next_id_seq()
		-- snowflake_admin_check_makers() compares several.
		AND NOT EXISTS (SELECT FROM unnest(fillers) AS o WHERE o.root = f.root AND o.col = f.col
			AND o.code <> f.code)
	UNION SELECT 'note', format('database %I', current_database()),
		format('Other databases of this server with its shard %s: %s. Their IDs can be equal, which matters '
			'only where rows of both come together.', own.shard,
			string_agg(DISTINCT quote_ident(datname), ', ')),
		format('SELECT %s.snowflake_set_shard(N); -- N is a number from your list that no server uses.',
			@extschema@.snowflake_admin_schema())
	FROM @extschema@.snowflake_admin_setting() AS own, pg_database AS d
	JOIN pg_db_role_setting ON setdatabase = d.oid, unnest(setconfig) AS setting
	WHERE datname <> current_database() AND setting ILIKE 'snowflake.shard=%'
		AND @extschema@.snowflake_admin_integer(split_part(setting, '=', 2)) = own.shard
	GROUP BY own.shard
$$;

-- The default of a topmost parent's column, for a child that has another one
CREATE FUNCTION snowflake_admin_same_default(tab regclass, col name, root regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT format('ALTER TABLE %s ALTER %I SET DEFAULT %s', tab, col, pg_get_expr(adbin, 0))
	FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
	WHERE adrelid = root AND attname = col AND tab <> root
$$;

-- Two makers of one column.  One default may use several sequences, if each has its shard.
CREATE FUNCTION snowflake_admin_check_makers(fillers snowflake_admin_filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH makers AS MATERIALIZED (
		SELECT DISTINCT root, col, tab, shard, sequence, code, CASE class
			WHEN 'pg_proc'::regclass THEN @extschema@.snowflake_admin_place(class, object)
			ELSE format('the default of %s', tab) END AS place
		FROM unnest(fillers) WHERE shard IS NOT NULL AND sequence IS NOT NULL
	), pairs AS (
		SELECT DISTINCT ON (a.root, a.col, a.sequence = b.sequence)
			a.root, a.col, a.shard, a.sequence, a.place, b.tab, b.shard AS other_shard,
			b.sequence AS other_sequence, b.place AS other_place
		FROM makers AS a JOIN makers AS b USING (root, col)
		WHERE CASE WHEN a.sequence = b.sequence THEN a.shard <> b.shard AND a.code <> b.code
			ELSE a.shard = b.shard AND (a.code <> b.code OR a.sequence < b.sequence) END
		ORDER BY a.root, a.col, a.sequence = b.sequence, a.place <> format('the default of %s', a.root),
			b.tab = b.root, a.place, b.place
	)
	SELECT CASE WHEN sequence = other_sequence THEN 'warning' ELSE 'error' END, format('%s.%I', root, col),
		CASE WHEN sequence = other_sequence
			THEN format('%s makes IDs of shard %s, and %s those of shard %s.',
				place, shard, other_place, other_shard)
			ELSE format(
				'Two sequences make IDs of shard %s, so IDs can come twice: %s in %s, and %s in %s.',
				shard, sequence, place, other_sequence, other_place) END,
		coalesce(CASE WHEN place = format('the default of %s', root) AND other_place LIKE 'the default of %'
			THEN @extschema@.snowflake_admin_same_default(tab, col, root) END,
			CASE WHEN sequence = other_sequence THEN 'Use one shard in both places.'
				ELSE 'Give one of these two another free shard, or the sequence of the other.' END)
	FROM pairs
$$;

CREATE FUNCTION snowflake_admin_largest(tabs regclass[], cols name[], low bigint)
RETURNS TABLE (tab regclass, id bigint)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT tab, ids[1] FROM unnest(tabs, cols) AS t (tab, col)
	CROSS JOIN LATERAL @extschema@.snowflake_admin_ids(tab, col, low, 9223372036854775807, 1)
	WHERE ids IS NOT NULL ORDER BY ids[1] DESC LIMIT 1
$$;

-- The built-in layout in which a sequence's value, or else an ID, is closest to the present
CREATE FUNCTION snowflake_admin_nearest(value bigint, id bigint)
RETURNS TABLE (layout text, max_value bigint, expires timestamptz, ts timestamptz)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT name, max_value, expires, ts FROM @extschema@.snowflake_admin_layouts()
	CROSS JOIN LATERAL (SELECT coalesce(epoch + tick * (value / ids_per_tick)::double precision,
		@extschema@.snowflake_admin_bound_time(id, @extschema@.snowflake_admin_to_layout(name)))) AS t (ts)
	WHERE expires IS NOT NULL AND ts IS NOT NULL
	ORDER BY abs(extract(epoch FROM clock_timestamp() - ts)) LIMIT 1
$$;

-- Sequences that next_id() refuses for their parameters, and layouts that end within a year
CREATE FUNCTION snowflake_admin_check_layout(generators snowflake_admin_generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN g.tabs IS NULL AND g.sequence <> @extschema@.snowflake_admin_next_id_seq()
			THEN 'warning' ELSE 'error' END,
		format('sequence %s', g.sequence),
		CASE WHEN relpersistence = 'u' THEN 'It is unlogged, so next_id() refuses it.'
			WHEN g.layout IS NULL THEN format(
				'Its MAXVALUE %s belongs to no built-in layout, so next_id() refuses it.%s', seqmax,
				CASE WHEN v.is_lost THEN ' A schema tool may have changed it.' END)
			ELSE 'Its parameters are not those of its layout, so next_id() refuses it.' END,
		CASE WHEN relpersistence = 'u' THEN format('ALTER SEQUENCE %s SET LOGGED', g.sequence)
			WHEN g.layout IS NOT NULL OR v.last < 1::bigint << 40 AND (v.is_lost OR l.name IS NOT NULL)
			THEN format('SELECT %s.snowflake_alter_sequence(%L, %L)',
				@extschema@.snowflake_admin_schema(), g.sequence, coalesce(g.layout, l.name, 'instagram'))
			WHEN l.max_value IS NOT NULL THEN format('ALTER SEQUENCE %s MAXVALUE %s', g.sequence, l.max_value)
			ELSE 'Let the default name its layout, if that is a custom one: next_id(SHARD, SEQUENCE, LAYOUT). '
				'Otherwise give it the MAXVALUE of its layout, which snowflake_layouts() lists.' END
	FROM unnest(generators) AS g
	JOIN pg_class ON oid = g.sequence JOIN pg_sequence ON seqrelid = oid
	-- A tool sets it to the largest value of a type.  Any other is that of a custom layout.
	CROSS JOIN LATERAL (SELECT coalesce(@extschema@.snowflake_admin_last_value(g.sequence), 0),
		seqmax IN (9223372036854775807, 2147483647, 32767)) AS v (last, is_lost)
	LEFT JOIN @extschema@.snowflake_admin_layouts() AS l ON g.layout IS NULL
		AND l.name = coalesce(g.named,
			CASE g.sequence WHEN @extschema@.snowflake_admin_next_id_seq() THEN 'instagram' END,
			CASE WHEN v.is_lost THEN (SELECT layout FROM @extschema@.snowflake_admin_nearest(
				CASE WHEN v.last >= 1::bigint << 40 THEN v.last END,
				(SELECT id FROM @extschema@.snowflake_admin_largest(g.tabs, g.cols, 1::bigint << 40)))) END)
	WHERE g.state = 'refuses' AND (g.layout IS NULL OR relpersistence = 'u' OR seqcycle
		OR seqincrement <> 1 OR seqcache <> 1 OR seqtypid <> 'bigint'::regtype
		OR g.layout NOT IN (SELECT name FROM @extschema@.snowflake_admin_layouts())
			AND g.last_timestamp IS NULL AND (v.is_lost OR v.last > 0))
	UNION ALL SELECT CASE WHEN expires < clock_timestamp() THEN 'error' ELSE 'warning' END,
		format('sequence %s', sequence),
		format('Its layout %s %s on %s.', layout,
			CASE WHEN expires < clock_timestamp() THEN 'ended' ELSE 'ends' END, expires),
		format('Before that, let another sequence with a layout that ends later, or with new shards '
			'of a later epoch, make the IDs of %s, as "When a layout ends" in doc/layouts.md says.',
			coalesce(array_to_string(tabs, ', '), 'its programs'))
	FROM unnest(generators)
	WHERE expires < clock_timestamp() + interval '1 year'
		AND (tabs IS NOT NULL OR last_timestamp > clock_timestamp() - interval '30 days')
$$;

-- Set a sequence back, but beyond the IDs of its tables.  Where the shard has been changed
-- before, sessions that still have the old one would make the future-dated IDs again.
CREATE FUNCTION snowflake_admin_set_back(sequence regclass, tabs regclass[], cols name[], layout text,
	max_value bigint, end_sessions boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT concat_ws('; ',
		CASE WHEN end_sessions THEN 'SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity '
			'WHERE datname = current_database() AND pid <> pg_backend_pid() '
			'AND backend_type = ''client backend''' END,
		'BEGIN', 'SET LOCAL lock_timeout = ''300ms''',
		format('ALTER SEQUENCE %s RESTART', sequence) || coalesce(' MAXVALUE ' || max_value, ''),
		(SELECT string_agg(DISTINCT format('SELECT %1$s.snowflake_advance(%2$L, max(%3$I)%5$s) FROM %4$s '
				'WHERE %3$I <= %1$s.snowflake_max_id(now() + interval ''1 s''%6$s) '
				'HAVING max(%3$I) >= 1::bigint << 40',
				@extschema@.snowflake_admin_schema(), sequence, col, tab,
				CASE WHEN layout LIKE '%:%' THEN format(', %L', layout) END,
				CASE WHEN layout <> 'instagram' THEN format(', %L', layout) END), '; ')
			FROM unnest(tabs, cols) AS t (tab, col)),
		'COMMIT')
$$;

-- Another shard for those who use a sequence, as rows have IDs that it must not make
-- again.  The next check then shows how to set the sequence back.
CREATE FUNCTION snowflake_admin_new_shard(sequence regclass, tabs regclass[], by_setting boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN by_setting AND coalesce(place, 'client') LIKE 'setting of database %' AND NOT EXISTS (
				SELECT FROM @extschema@.snowflake_uses() AS u
				WHERE u.sequence = new_shard.sequence AND u.shard IS NOT NULL)
			THEN format('SELECT %s.snowflake_set_shard(N)', @extschema@.snowflake_admin_schema())
		ELSE (SELECT string_agg(DISTINCT format(
				'CALL @extschema@.snowflake_move(%L, shard => N, own_sequence => true)', tab), '; ')
			FROM unnest(tabs) AS t (tab)) END || '; -- N is a number from your list that no server uses.'
	FROM (VALUES (sequence)) AS new_shard (sequence) CROSS JOIN @extschema@.snowflake_admin_setting()
$$;

-- Who has future-dated IDs of a sequence that is ahead, and what follows
CREATE FUNCTION snowflake_admin_who_is_ahead(g snowflake_admin_generator, own bigint, others bigint,
	more boolean, latest timestamptz, tab regclass, unseen text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT concat_ws(' ',
		CASE WHEN g.tabs IS NULL THEN 'No default of this database uses it, but programs may.' END, CASE
		WHEN own = 0 AND NOT more AND unseen IS NULL AND g.expires IS NOT NULL
			THEN format('No row of %s has a future-dated ID of its %s. '
			'Set it back only if no program has kept one of this %2$s (if unsure, wait or take a new shard), '
			'and if this server is neither a restored copy nor a promoted asynchronous standby, which may lack '
			'IDs that the original made. Check again directly before. After a lock timeout, wait for '
			'the transaction that uses the sequence to end, and check again.',
			coalesce((SELECT string_agg(DISTINCT t::text, ', ') FROM unnest(g.tabs) AS t), 'a table'), kind)
		WHEN own > 0 THEN format('Future-dated IDs of its %s: %s%s, the latest of %s in %s. '
			'So it must not be set back.%s', kind, CASE WHEN more THEN 'at least ' END, own, latest, tab,
			CASE kind WHEN 'shard'
			THEN ' When another shard is in use, check again to see how their rows get new ones.' END) END,
		CASE WHEN others > 0 THEN format(
			'Future-dated IDs of other shards, which it cannot make again: %s%s.',
			CASE WHEN more THEN 'at least ' END, others) END,
		'Nobody could look at ' || unseen || '.')
	FROM (VALUES (CASE WHEN g.tabs IS NULL THEN 'layout' ELSE 'shard' END)) AS k (kind)
$$;

CREATE FUNCTION snowflake_admin_ahead(g snowflake_admin_generator, layout snowflake_layout)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	reach record;
	patience interval := current_setting('snowflake.max_lead')::interval
		+ current_setting('snowflake.max_wait')::interval;
	until timestamptz := date_trunc('second', g.last_timestamp - patience) + interval '1 s';
	present bigint := CASE WHEN g.expires IS NOT NULL
		THEN @extschema@.snowflake_admin_bound(clock_timestamp() + interval '1 s', layout) END;
	tabs regclass[];
	cols name[];
	shards integer[];
BEGIN
	-- Tables that have moved to another sequence may still have IDs of this one: of any
	-- shard, if no default names this sequence and its shard any more.
	SELECT g.tabs || coalesce(array_agg(k.tab), '{}'), g.cols || coalesce(array_agg(k.col), '{}'),
		g.shards || coalesce(array_agg(s.shard), '{}')
	INTO tabs, cols, shards
	FROM (SELECT DISTINCT u.tab, u.col FROM @extschema@.snowflake_keys() AS u
			JOIN @extschema@.snowflake_admin_states() AS o ON o.sequence = u.sequence AND o.layout = g.layout
			WHERE u.made_by = 'next_id' AND u.sequence <> g.sequence) AS k
		CROSS JOIN (SELECT DISTINCT unnest(coalesce(g.shards, '{NULL}'))) AS s (shard);
	SELECT * INTO reach FROM @extschema@.snowflake_admin_reach(tabs, cols,
		-- A role with a setting of its own may have made IDs of any shard.
		CASE WHEN NOT EXISTS (SELECT FROM @extschema@.snowflake_admin_shard_settings()
			WHERE place LIKE 'setting of role %') THEN shards END,
		layout, present, 1000001);
	severity := CASE WHEN g.tabs IS NULL
		AND NOT EXISTS (SELECT FROM @extschema@.snowflake_uses() AS u WHERE u.sequence = g.sequence)
		THEN 'note' WHEN g.state <> 'refuses' THEN 'warning' ELSE 'error' END;
	object := format('sequence %s', g.sequence);
	problem := concat_ws(' ',
		format('It is %s ahead of the clock: its last ID has the time %s, and the clock says %s, so '
			'next_id() %s.',
			g.lead, g.last_timestamp, clock_timestamp(),
			CASE g.state WHEN 'refuses' THEN 'fails until ' || until WHEN 'waits' THEN 'waits'
				ELSE 'makes future-dated IDs, as max_lead is ' || current_setting('snowflake.max_lead') END),
		'If the clock is slow, set it right, and do nothing else.',
		nullif(@extschema@.snowflake_admin_who_is_ahead(g, reach.own, reach.others, reach.more,
			@extschema@.snowflake_admin_bound_time(reach.largest, layout), reach.tab, reach.unseen), ''));
	remedy := CASE
		WHEN g.state <> 'refuses' THEN format('Wait until %s.',
			date_trunc('second', g.last_timestamp) + interval '1 s')
		WHEN severity = 'note' AND g.sequence <> @extschema@.snowflake_admin_next_id_seq()
			THEN format('DROP SEQUENCE %s', g.sequence)
		WHEN present IS NULL THEN format('Wait until %s. If neither rows nor programs have '
			'future-dated IDs of it, ALTER SEQUENCE %s RESTART sets it back.', until, g.sequence)
		WHEN reach.unseen IS NOT NULL THEN
			'Find out whether those tables have future-dated IDs, as a role that may read them.'
		WHEN reach.own = 0 AND NOT reach.more THEN @extschema@.snowflake_admin_set_back(
			g.sequence, g.tabs, g.cols, g.layout, NULL, g.by_setting AND reach.others > 0)
		WHEN g.tabs IS NULL THEN format('Wait until %s, or check again when these rows have new IDs.', until)
		WHEN g.lead < patience + interval '10 min' THEN format('Wait until %s.', until)
		ELSE @extschema@.snowflake_admin_new_shard(g.sequence, g.tabs, g.by_setting) END;
	RETURN NEXT;
END
$$;

CREATE FUNCTION snowflake_admin_behind(g snowflake_admin_generator, layout snowflake_layout, low bigint)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	reach record;
	id_time timestamptz;
BEGIN
	SELECT * INTO reach FROM @extschema@.snowflake_admin_reach(g.tabs, g.cols, g.shards, layout, low, 10001);
	IF reach.own = 0 THEN
		RETURN;
	END IF;
	-- Other sessions have gone on, and the sequence is ahead of all that they have inserted.
	id_time := @extschema@.snowflake_admin_bound_time(reach.largest, layout);
	IF EXISTS (SELECT FROM @extschema@.snowflake_admin_states(g.sequence, layout) AS s
		WHERE s.last_timestamp >= id_time) THEN
		RETURN;
	END IF;
	severity := CASE WHEN id_time > clock_timestamp() THEN 'error' ELSE 'warning' END;
	object := format('sequence %s', g.sequence);
	problem := format('%s, but %s has the ID %s of %s, with its shard. %s',
		coalesce('Its last ID has the time ' || g.last_timestamp, 'It has made no ID'), reach.tab,
			reach.largest, id_time,
		CASE severity WHEN 'error' THEN 'It will make such IDs again.'
			ELSE 'If the clock is set back, it makes such IDs again.' END);
	-- To advance the sequence far beyond the clock would stop all calls.
	remedy := CASE WHEN id_time > clock_timestamp() + interval '1 day'
		THEN @extschema@.snowflake_admin_new_shard(g.sequence, g.tabs, g.by_setting)
		WHEN id_time > clock_timestamp() + current_setting('snowflake.max_lead')::interval
			+ current_setting('snowflake.max_wait')::interval
		THEN reach.renumber
		ELSE format('SELECT %s.snowflake_advance(%L, %s%s)', @extschema@.snowflake_admin_schema(), g.sequence,
			reach.largest, CASE WHEN g.layout LIKE '%:%' THEN format(', %L', g.layout) END) END;
	RETURN NEXT;
END
$$;

-- A sequence that is ahead of the clock, or behind its tables
CREATE FUNCTION snowflake_admin_position(g snowflake_admin_generator, served snowflake_layout)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	beyond bigint;
	future bigint;
	latest record;
BEGIN
	IF g.expires IS NOT NULL THEN
		beyond := greatest(1::bigint << 40, @extschema@.snowflake_admin_bound(
			coalesce(g.last_timestamp + interval '1 microsecond', '-infinity'), served));
		-- Clocks of other servers may differ a little.
		future := @extschema@.snowflake_admin_bound(clock_timestamp() + interval '1 min', served);
	END IF;
	SELECT * INTO latest FROM @extschema@.snowflake_admin_largest(g.tabs, g.cols, least(beyond, future));
	IF latest.id >= future THEN
		-- A sequence served another layout before, and its IDs go back by that, if the largest
		-- ID of its tables is ahead of the clock in the layout that it serves now, and of the
		-- past and closer in the one that made it.  The IDs of a layout that ends may be larger
		-- than those of the next one.
		RETURN QUERY SELECT 'error', format('sequence %s', g.sequence),
			format('It serves layout %s, but %s has IDs of layout %s, the last of them %s of %s, and its next '
				'IDs are smaller. If it made those until something changed its MAXVALUE, set that back. '
				'IDs that it has made since stay as they are.', g.layout, latest.tab, n.layout, latest.id, n.ts),
			@extschema@.snowflake_admin_set_back(g.sequence, g.tabs, g.cols, n.layout, n.max_value, false)
		FROM @extschema@.snowflake_admin_nearest(NULL, latest.id) AS n
		-- Nothing makes a sequence serve a custom layout by accident.
		WHERE g.layout NOT LIKE '%:%' AND n.ts < clock_timestamp() + interval '1 min'
			AND n.expires > clock_timestamp() + interval '1 year' AND clock_timestamp() - n.ts
				< @extschema@.snowflake_admin_bound_time(latest.id, served) - clock_timestamp();
		IF FOUND THEN
			RETURN;
		END IF;
	END IF;
	-- After a crash, and on a standby, it may be what WAL covers for another second.
	IF g.lead > '2 s' THEN
		RETURN QUERY SELECT * FROM @extschema@.snowflake_admin_ahead(g, served);
	END IF;
	IF latest.id >= future THEN
		-- It cannot make these again, as it makes those of another shard.
		RETURN QUERY SELECT 'warning', format('table %s', c.tab), format(
				'Future-dated IDs of shard %s, while new rows get those of shard %s: %s%s, the latest of %s. '
				'If this server made them, and nobody outside has seen them, give their rows new ones.', c.shard,
				c.own_shard, CASE WHEN c.more THEN 'at least ' END, c.number,
				@extschema@.snowflake_admin_bound_time(c.largest, served)),
			CASE WHEN g.lead > '2 s'
				THEN format('Do what the row of sequence %s says, and check again.', g.sequence)
				ELSE @extschema@.snowflake_admin_renumber_command(c.tab, c.col, c.shard) END
		FROM @extschema@.snowflake_admin_counts(g.tabs, g.cols, g.shards, served, future, 10001) AS c
		WHERE NOT c.is_own;
	END IF;
	IF latest.id >= beyond AND NOT g.unset AND (g.state = 'ok' OR g.last_timestamp IS NOT NULL) THEN
		RETURN QUERY SELECT * FROM @extschema@.snowflake_admin_behind(g, served, beyond);
	END IF;
EXCEPTION WHEN OTHERS THEN
	RETURN QUERY SELECT * FROM @extschema@.snowflake_admin_note(g.sequence, SQLSTATE, SQLERRM);
END
$$;

-- A key of next_id() and what refers to it must hold IDs.
CREATE FUNCTION snowflake_admin_check_width()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
	WITH keys AS MATERIALIZED (
		SELECT DISTINCT tab, col FROM @extschema@.snowflake_admin_keys() WHERE made_by = 'next_id'
	), arrays AS (
		SELECT array_agg(tab ORDER BY tab, col) AS tabs, array_agg(col ORDER BY tab, col) AS cols FROM keys
	)
	SELECT 'error', substring(obstacle, '^(.*) is '), format('It %s, which is too small for IDs of %s.%I.',
			substring(obstacle, ' (is .*)$'), tabs[s.n]::regclass, attname),
		format('CALL @extschema@.snowflake_widen(%L, %L)', s.tab::regclass,
			(SELECT a.attname FROM pg_attribute AS a WHERE a.attrelid = s.tab AND a.attnum = s.col))
	FROM arrays CROSS JOIN LATERAL @extschema@.snowflake_admin_too_small(tabs, cols) AS s
	JOIN pg_attribute ON attrelid = tabs[s.n] AND attnum = cols[s.n]
$$;

-- Who may insert into a table, but not use what its default uses?  Whoever inserts
-- needs the privileges, except where a trigger's function has its owner's.  Grantee 0 is
-- PUBLIC, also to functions such as has_sequence_privilege().
CREATE FUNCTION snowflake_admin_check_privileges(fillers snowflake_admin_filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH fillers AS MATERIALIZED (
		SELECT * FROM unnest(fillers)
		WHERE object NOT IN (SELECT oid FROM pg_proc WHERE prosecdef)
	), inserters AS MATERIALIZED (
		SELECT DISTINCT c.oid, grantee, CASE grantee WHEN 0 THEN 'PUBLIC'
			ELSE grantee::regrole::text END AS role
		FROM pg_class AS c, LATERAL (
			SELECT coalesce(relacl, acldefault('r', relowner))
			UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = c.oid
				AND NOT attisdropped) AS given (acl),
			aclexplode(acl)
		WHERE privilege_type = 'INSERT' AND c.oid IN (SELECT tab FROM fillers)
	), lacking AS (
		SELECT DISTINCT ON (role, sequence, needed) role, f.tab, 'sequence ' || sequence AS thing,
			format('GRANT %s ON SEQUENCE %s TO %s', needed, sequence, role) AS remedy
		FROM fillers AS f JOIN inserters AS i ON i.oid = f.tab
		CROSS JOIN LATERAL (SELECT CASE WHEN is_built_in THEN 'USAGE' ELSE 'UPDATE' END) AS n (needed)
		WHERE sequence <> @extschema@.snowflake_admin_next_id_seq()
			AND NOT has_sequence_privilege(grantee, sequence::oid, needed || ', UPDATE')
		UNION ALL SELECT DISTINCT ON (role, p.oid) role, f.tab, 'function ' || p.oid::regprocedure,
			format('GRANT EXECUTE ON FUNCTION %s TO %s', p.oid::regprocedure, role)
		FROM fillers AS f JOIN inserters AS i ON i.oid = f.tab
		JOIN pg_depend AS d ON (d.classid, d.objid) = (f.class, f.object)
			AND d.refclassid = 'pg_proc'::regclass
		JOIN pg_proc AS p ON p.oid = d.refobjid
		WHERE f.class <> 'pg_proc'::regclass AND NOT has_function_privilege(grantee, p.oid, 'EXECUTE')
	)
	SELECT 'error', thing, format('%s may insert into %s, but not use this %s, so such an INSERT fails.',
		role, tab, split_part(thing, ' ', 1)), remedy
	FROM lacking
$$;

-- Tables that are partitioned by ranges of IDs must have partitions for the IDs of now and
-- of soon.  Those within a partition of a range need only that range.
CREATE FUNCTION snowflake_admin_check_partitions(fillers snowflake_admin_filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	WITH parents AS MATERIALIZED (
		SELECT DISTINCT tab, layout FROM unnest(fillers) JOIN pg_partitioned_table ON partrelid = tab
		JOIN pg_attribute ON attrelid = tab AND attname = col AND attnum = partattrs[0]
		WHERE partstrat = 'r' AND partnatts = 1 AND @extschema@.snowflake_admin_is_id(atttypid)
		AND layout NOT IN ('trace', 'decimal')
		AND NOT EXISTS (SELECT FROM pg_partition_ancestors(tab) AS a JOIN pg_partitioned_table AS above
			ON above.partrelid = a.relid AND a.relid <> tab WHERE above.partstrat = 'r')
	), ranges AS MATERIALIZED (
		SELECT tab, lower_id, upper_id
		FROM parents CROSS JOIN LATERAL @extschema@.snowflake_admin_ranges(tab) WHERE NOT pending
	), times (n, name, ts) AS (
		VALUES (1, 'now', clock_timestamp()),
			(2, 'now + max_lead', clock_timestamp()
				+ least(current_setting('snowflake.max_lead')::interval, '31 days')),
			(3, 'tomorrow', clock_timestamp() + interval '1 day')
	), gaps AS (
		SELECT DISTINCT ON (p.tab) p.tab, n, format('%s (%s)', name, date_trunc('second', ts)) AS missing,
			EXISTS (SELECT FROM ranges AS r WHERE r.tab = p.tab AND lower_id IS NULL) AS has_default
		FROM parents AS p CROSS JOIN times CROSS JOIN LATERAL
			@extschema@.snowflake_admin_bound(ts, @extschema@.snowflake_admin_to_layout(layout)) AS id
		WHERE NOT EXISTS (SELECT FROM ranges AS r WHERE r.tab = p.tab AND lower_id <= id AND id < upper_id)
		ORDER BY p.tab, n
	)
	SELECT CASE WHEN n = 1 AND NOT has_default THEN 'error' ELSE 'warning' END, format('table %s', tab),
		format('It has no partition for IDs of %s, so %s. Look at the clock first: '
			'with partitions for the wrong time, it would get future-dated IDs.', missing,
			CASE WHEN has_default THEN 'such rows go to the DEFAULT partition'
				ELSE 'an INSERT of such a row fails' END),
		format('CALL @extschema@.snowflake_make_partitions(%L)', tab)
	FROM gaps
$$;

-- Numbers that nextval() made of a sequence that makes IDs.  They are too large for
-- a counter of rows, and as IDs would be of the layout's first weeks.
CREATE FUNCTION snowflake_admin_check_nextval(generators snowflake_admin_generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT 'warning', format('table %s', tab),
		format('Keys that nextval() made in place of next_id(): %s%s, the last of them %s. '
			'Find the program that calls nextval(), and change it first. No ID is equal to such a key, '
			'so they may stay, but show a wrong time and shard.',
			CASE WHEN number > 10000 THEN 'more than ' END, least(number, 10000), largest),
		CASE WHEN EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND confrelid = tab
			AND confupdtype <> 'c')
			THEN format('Give these rows, and those that refer to them, new keys: %I from %s to %s.',
				col, low, high)
			ELSE format('UPDATE %s SET %I = DEFAULT WHERE %2$I BETWEEN %s AND %s', tab, col, low, high) END
	FROM (
		SELECT DISTINCT t.tab, t.col, low, max_value
		FROM unnest(generators) JOIN (
			-- No sequence had a smaller value when the extension was published.
			SELECT name AS layout, max_value, ids_per_tick * (extract(epoch FROM '2026-01-01Z' - epoch)
				/ extract(epoch FROM tick))::bigint AS low
			FROM @extschema@.snowflake_admin_layouts()
			WHERE expires IS NOT NULL AND @extschema@.snowflake_admin_bound_time(max_value,
				@extschema@.snowflake_admin_to_layout(name)) < epoch + interval '60 days' OFFSET 0) AS e
			USING (layout)
		CROSS JOIN LATERAL unnest(tabs, cols) AS t (tab, col)
	) AS keys (tab, col, low, high)
	CROSS JOIN LATERAL @extschema@.snowflake_admin_ids(tab, col, low, high, 10001)
	CROSS JOIN LATERAL (SELECT cardinality(ids), ids[1]) AS found (number, largest)
	WHERE number > 0
	UNION ALL SELECT 'warning', format('%s.%I', tab::regclass, attname),
		format('Its default takes nextval() of %s, which makes IDs, so such keys '
			'show a wrong time and shard.', g.sequence),
		coalesce(@extschema@.snowflake_admin_same_default(tab, attname,
				(SELECT inhparent FROM pg_inherits WHERE inhrelid = tab LIMIT 1)),
			format('ALTER TABLE %s ALTER %I SET DEFAULT %s.next_id(N, %L%s); '
				'-- N is this server''s number in your list.', tab::regclass, attname,
				@extschema@.snowflake_admin_schema(), g.sequence,
				CASE WHEN g.layout LIKE '%:%' THEN format(', %L', g.layout) END))
	FROM @extschema@.snowflake_admin_filled() AS f JOIN unnest(generators) AS g USING (sequence)
	JOIN pg_attribute ON attrelid = tab AND attnum = f.col
	WHERE made_by = 'nextval' AND g.layout IS NOT NULL
$$;

-- Every commit and every ID waits for the standbys that synchronous_standby_names
-- asks for.  On a standby, the setting is for later.  Subscriptions stop with an error, such
-- as an ID that exists.  A worker that is about to start again has no process.
CREATE FUNCTION snowflake_admin_check_replication()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	WITH setting AS (
		SELECT value, coalesce(substring(value, '^\s*(?:[a-zA-Z]+\s+)?(\d+)\s*\(')::integer, 1) AS needed,
			regexp_replace(value, '^\s*(?:[a-zA-Z]+\s+)?\d+\s*\((.*)\)\s*$', '\1') AS list
		FROM current_setting('synchronous_standby_names') AS value WHERE value <> ''
			AND NOT pg_is_in_recovery()
	), names AS MATERIALIZED (
		SELECT lower(coalesce(replace(m[1], '""', '"'), m[2])) AS name
		FROM setting, regexp_matches(list, '"((?:[^"]|"")+)"|([^\s,"]+)', 'g') AS m
	), streaming AS MATERIALIZED (
		SELECT application_name AS name,
			EXISTS (SELECT FROM names WHERE name IN ('*', lower(application_name))) AS is_named,
			replay_lsn IS NOT NULL AND NOT EXISTS (SELECT FROM pg_replication_slots
				WHERE active_pid = pid AND slot_type = 'logical') AS is_standby
		FROM pg_stat_replication WHERE state = 'streaming'
	), counted AS MATERIALIZED (
		SELECT setting.*, s.*, (SELECT string_agg(name, ', ' ORDER BY name) FROM names
			WHERE name NOT IN (SELECT lower(name) FROM streaming) AND name <> '*') AS absent
		FROM setting CROSS JOIN (
			SELECT count(*) FILTER (WHERE is_named) AS present,
				count(DISTINCT name) FILTER (WHERE is_standby) AS others,
				string_agg(DISTINCT format('"%s"', replace(name, '"', '""')), ', ') FILTER (WHERE is_standby)
					AS streamers
			FROM streaming) AS s
	)
	SELECT CASE WHEN present < needed THEN 'error' ELSE 'warning' END, 'synchronous_standby_names',
		CASE WHEN present >= needed
			THEN format('It names standbys that are not streaming: %s. Others suffice for now.', absent)
			ELSE format('It is %L, but %s, so commits and next_id() wait. Repair %s; or else, unless Patroni '
				'or CloudNativePG manages this setting, %s.', value,
				CASE present WHEN 0 THEN 'none of these standbys is streaming'
					ELSE format('%s of the %s standbys that it needs are streaming', present, needed) END,
				coalesce(absent, 'a standby'), CASE others WHEN 0
				THEN 'continue without one: then a failover can lose commits and repeat IDs'
				ELSE 'name the standbys that are streaming' END) END,
		CASE WHEN present >= needed THEN 'Repair them, or remove them from the setting.'
			ELSE format('ALTER SYSTEM SET synchronous_standby_names = %L; SELECT pg_reload_conf()',
				CASE WHEN others > 0 THEN format('%s %s (%s)',
					CASE WHEN value ~* '^\s*any\M' THEN 'ANY' ELSE 'FIRST' END,
					least(needed, others), streamers) ELSE '' END) END
	FROM counted WHERE (present < needed OR absent IS NOT NULL) AND pg_has_role('pg_read_all_stats', 'USAGE')
	UNION ALL SELECT 'note', 'synchronous_standby_names',
		format('%I may not see which standbys are streaming.', current_user),
		format('GRANT pg_read_all_stats TO %I', current_user)
	FROM setting WHERE NOT pg_has_role('pg_read_all_stats', 'USAGE')
	UNION ALL SELECT 'warning', format('subscription %I', o.subname),
		format('It is not running, and has had %s errors.', apply_error_count),
		'The server log names the last one; of 23505, "IDs came twice" in doc/operations.md names the causes.'
	FROM pg_stat_subscription_stats JOIN pg_subscription AS o ON o.oid = subid
	JOIN pg_database AS d ON d.oid = subdbid AND datname = current_database()
	WHERE apply_error_count > 0 AND NOT EXISTS (
		SELECT FROM pg_stat_subscription AS s WHERE s.subid = o.oid AND pid IS NOT NULL)
$$;

-- Times that the server has noted, and that the clock has not reached
CREATE FUNCTION snowflake_admin_later()
RETURNS TABLE (what text, ts timestamptz)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN QUERY VALUES ('the server was started', pg_postmaster_start_time()),
		('the configuration was read', pg_conf_load_time());
	RETURN QUERY SELECT format('session %s was active', pid),
		greatest(backend_start, xact_start, query_start, state_change) FROM pg_stat_activity
		WHERE backend_type = 'client backend';
	IF has_function_privilege('pg_control_checkpoint()', 'EXECUTE') THEN
		RETURN QUERY SELECT 'a checkpoint began', checkpoint_time FROM pg_control_checkpoint();
	END IF;
	IF current_setting('track_commit_timestamp')::boolean AND NOT pg_is_in_recovery() THEN
		RETURN QUERY SELECT 'a transaction was committed', timestamp FROM pg_last_committed_xact();
	END IF;
	RETURN QUERY SELECT 'the last replayed transaction was committed', pg_last_xact_replay_timestamp();
END
$$;

-- A sequence that is ahead alone has been set ahead.  If several are ahead by the same
-- time, the clock is slow, or was fast until it was set back.
CREATE FUNCTION snowflake_admin_check_clock(generators snowflake_admin_generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	WITH latest AS (
		SELECT what, ts FROM @extschema@.snowflake_admin_later() WHERE ts > clock_timestamp() + interval '1 s'
		ORDER BY ts DESC LIMIT 1
	), ahead AS (
		SELECT count(*) AS n, min(lead) AS least, max(lead) AS most
		FROM unnest(generators) WHERE lead > '1 s' HAVING count(*) > 1
	), evidence (line) AS (
		SELECT format('%s at %s', what, ts) FROM latest
		UNION ALL SELECT format('%s sequences are ahead of it by %s to %s', n, least, most) FROM ahead
		WHERE most - least < '1 min'
	)
	SELECT 'warning', 'clock', format('The clock says %s, but %s. '
			'So it is slow, or was fast until it was set back.',
			clock_timestamp(), string_agg(line, ', and ')),
		'Compare the clock with that of other servers (date, chronyc tracking): '
			'if it is slow, set it right, and calls succeed.'
	FROM evidence HAVING count(*) > 0
$$;

CREATE FUNCTION snowflake_admin_check_version()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT 'warning', format('extension %I', name),
		format('Its objects are those of version %s, but the server has the files of version %s.',
			installed_version, default_version),
		CASE WHEN can_update THEN format('ALTER EXTENSION %I UPDATE', name)
			ELSE format('Install the files of version %s on this server.', installed_version) END
	FROM pg_available_extensions AS e CROSS JOIN LATERAL (SELECT
		EXISTS (SELECT FROM pg_extension_update_paths(e.name)
			WHERE source = installed_version AND target = default_version AND path IS NOT NULL),
		EXISTS (SELECT FROM pg_available_extension_versions AS v
			WHERE v.name = e.name AND v.version = installed_version)) AS files (can_update, are_there)
	WHERE name IN ('snowflake', 'snowflake_admin') AND installed_version <> default_version
		AND (can_update OR NOT are_there)
$$;

-- What this role may not see, and tables that somebody has locked
CREATE FUNCTION snowflake_admin_check_sight(generators snowflake_admin_generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	WITH hidden AS (
		SELECT 'SEQUENCE' AS kind, g.sequence FROM unnest(generators) AS g
		WHERE g.state = 'no privilege'
		UNION
		SELECT 'TABLE', tab FROM unnest(generators) CROSS JOIN LATERAL unnest(tabs, cols) AS t (tab, col)
		WHERE NOT has_column_privilege(tab, col::text, 'SELECT')
	), tables AS (SELECT DISTINCT tab FROM unnest(generators) CROSS JOIN LATERAL unnest(tabs) AS t (tab))
	SELECT 'note', format('role %I', current_user),
		format('It may not read %s %s%s, so this check is incomplete.', count(*), lower(kind),
			CASE WHEN count(*) > 1 THEN 's' END),
		format('GRANT SELECT ON %s %s TO %I', kind, string_agg(sequence::text, ', ' ORDER BY sequence::text),
			current_user)
	FROM hidden GROUP BY kind
	UNION ALL SELECT 'note', format('table %s', tab),
		'Policies hide rows from this role, so its IDs were not looked at.',
		'Call snowflake_check() as a role that has BYPASSRLS or owns the table.'
	FROM tables WHERE row_security_active(tab)
	UNION ALL SELECT n.* FROM (
		SELECT DISTINCT relation::regclass AS locked FROM pg_locks
		WHERE granted AND pid IS DISTINCT FROM pg_backend_pid()
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND (mode = 'AccessExclusiveLock' AND relation IN (SELECT tab FROM tables)
			-- of ALTER SEQUENCE
			OR mode IN ('AccessExclusiveLock', 'ShareRowExclusiveLock')
				AND relation IN (SELECT sequence FROM unnest(generators)))
	) AS l CROSS JOIN LATERAL @extschema@.snowflake_admin_note(locked, '55P03', NULL) AS n
$$;

-- The row for a table that could not be looked at
CREATE FUNCTION snowflake_admin_note(tab regclass, error text, said text)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT 'note', format('%s %s', CASE relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, tab), CASE error
		WHEN '55P03' THEN concat_ws(' ', 'Somebody has locked it, so not all of it was looked at.',
			(SELECT regexp_replace(description, '\s+', ' ', 'g')
				FROM @extschema@.snowflake_admin_blocker(ARRAY[tab], 'ShareRowExclusiveLock')))
		ELSE format('It could not be looked at: %s.', said) END, 'Call snowflake_check() again later.'
	FROM pg_class WHERE oid = tab
$$;

-- One check that fails leaves the others alone.
CREATE FUNCTION snowflake_admin_checks()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	fillers @extschema@.snowflake_admin_filler[];
	generators @extschema@.snowflake_admin_generator[];
	fault text;
BEGIN
	FOREACH fault IN ARRAY ARRAY['fillers', 'generators', 'shard($1)', 'makers($1)',
		'layout($2)', 'position', 'clock($2)', 'width()', 'privileges($1)', 'partitions($1)',
		'nextval($2)', 'replication()', 'version()', 'sight($2)']
	LOOP
		BEGIN
			CASE fault
				WHEN 'fillers' THEN fillers := ARRAY(SELECT f
					FROM @extschema@.snowflake_admin_fillers() AS f);
				WHEN 'generators' THEN generators := ARRAY(
					SELECT g FROM @extschema@.snowflake_admin_generators(fillers) AS g);
				WHEN 'position' THEN RETURN QUERY
					SELECT p.* FROM unnest(generators) AS g CROSS JOIN LATERAL
						@extschema@.snowflake_admin_position(g, @extschema@.snowflake_admin_to_layout(g.layout)) AS p
					WHERE g.layout IS NOT NULL;
				ELSE RETURN QUERY EXECUTE format('SELECT * FROM @extschema@.snowflake_admin_check_%s', fault)
					USING fillers, generators;
			END CASE;
		EXCEPTION WHEN OTHERS THEN
			RETURN QUERY SELECT 'note', format('check of %s', regexp_replace(fault, '\(.*', '')),
				format('It failed: %s.', SQLERRM), 'Call snowflake_check() again later.';
		END;
	END LOOP;
END
$$;

-- The first call of a function of "snowflake" loads the library, whose settings the
-- checks read.  20 ms are no wait: they let a command that is just ending end.
CREATE FUNCTION snowflake_check()
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET lock_timeout = '20ms' SET jit = off AS $$
BEGIN
	PERFORM @extschema@.snowflake_admin_layouts();
	-- A remedy that is no sentence is a command, or several.
	RETURN QUERY SELECT c.severity, c.object, c.problem, regexp_replace(c.remedy, '([^.])$', '\1;')
	FROM @extschema@.snowflake_admin_checks() AS c
	ORDER BY array_position('{error,warning,note}'::text[], c.severity), (
			-- a table after those that it refers to
			WITH RECURSIVE referred (tab) AS (
				SELECT to_regclass(substring(c.object, '^table (.*)'))::oid
				UNION SELECT confrelid FROM referred JOIN pg_constraint ON conrelid = tab AND contype = 'f')
			SELECT count(*) FROM referred),
		c.object COLLATE "C", c.problem COLLATE "C";
END
$$;

COMMENT ON FUNCTION snowflake_check() IS
'what is wrong, or soon will be, with the IDs of this database, and what to do about it';

-- What is named snowflake_admin_ is described above, where it is created.
DO $$
DECLARE
	name regprocedure;
BEGIN
	FOR name IN SELECT object FROM @extschema@.snowflake_admin_members()
		WHERE extension = 'snowflake_admin' AND class = 'pg_proc'::regclass
			AND obj_description(object, 'pg_proc') IS NULL
	LOOP
		EXECUTE format('COMMENT ON ROUTINE %s IS %L', name,
			'for other functions and procedures of snowflake_admin');
	END LOOP;
END
$$;
