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
	IF mode IS NOT NULL THEN
		FOREACH command IN ARRAY tables LOOP
			EXECUTE format('LOCK TABLE %s IN %s MODE', command, mode);
		END LOOP;
	END IF;
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
-- transaction ends.  Without a mode, the commands themselves lock what they need,
-- and the relations only say whose sessions may be in the way.
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

--
-- What makes IDs
--

CREATE FUNCTION snowflake_admin_layouts()
RETURNS TABLE (name text, max_value bigint)
LANGUAGE sql STABLE PARALLEL RESTRICTED
BEGIN ATOMIC
	SELECT name, max_value FROM snowflake_layouts();
END;

COMMENT ON FUNCTION snowflake_admin_layouts() IS
'for snowflake_admin''s functions: the built-in layouts, and the MAXVALUE of their sequences';

-- What belongs to the two extensions, of which another schema may have a namesake
CREATE FUNCTION snowflake_admin_members()
RETURNS TABLE (extension name, class oid, object oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT extname, classid, objid
	FROM pg_extension AS e JOIN pg_depend ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND deptype = 'e'
	WHERE extname IN ('snowflake', 'snowflake_admin')
$$;

COMMENT ON FUNCTION snowflake_admin_members() IS
'for snowflake_admin''s functions: members of the extensions snowflake and snowflake_admin';

CREATE FUNCTION snowflake_admin_makers(names text[])
RETURNS SETOF oid
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT oid FROM @extschema@.snowflake_admin_members() JOIN pg_proc ON oid = object
	WHERE extension = 'snowflake' AND class = 'pg_proc'::regclass AND proname = ANY (names)
$$;

COMMENT ON FUNCTION snowflake_admin_makers(text[]) IS
'for snowflake_admin''s functions: functions of the extension snowflake';

CREATE FUNCTION snowflake_admin_next_id_seq()
RETURNS regclass
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT oid FROM @extschema@.snowflake_admin_members() JOIN pg_class ON oid = object
	WHERE extension = 'snowflake' AND class = 'pg_class'::regclass AND relname = 'next_id_seq'
$$;

COMMENT ON FUNCTION snowflake_admin_next_id_seq() IS
'for snowflake_admin''s functions: the sequence of next_id() without a sequence';

-- An object that has code, in words that do not depend on search_path or on the
-- language of messages
CREATE FUNCTION snowflake_admin_place(class oid, object oid)
RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE
		WHEN class = 'pg_attrdef'::regclass THEN (
			SELECT 'column ' || (pg_identify_object('pg_class'::regclass, adrelid, adnum)).identity
			FROM pg_attrdef WHERE oid = object)
		WHEN class = 'pg_type'::regclass THEN 'domain ' || o.identity
		WHEN class = 'pg_rewrite'::regclass THEN (
			SELECT CASE rulename WHEN '_RETURN' THEN concat_ws(' ', r.type, r.identity) ELSE 'rule ' || o.identity END
			FROM pg_rewrite, pg_identify_object('pg_class'::regclass, ev_class, 0) AS r WHERE oid = object)
		ELSE concat_ws(' ', o.type, o.identity) END
	FROM pg_identify_object(class, object, 0) AS o
$$;

COMMENT ON FUNCTION snowflake_admin_place(oid, oid) IS
'for snowflake_admin''s functions: kind and name of a default, view, rule or function';

-- The text of a literal, whatever it is cast to, or NULL for everything else.  In
-- a command that is itself in quotation marks, those of the literal are doubled.
CREATE FUNCTION snowflake_admin_literal(argument text)
RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT replace(btrim(bare, E' \t\r\n()'''), '''''', '''')
	FROM regexp_replace(argument, '::\s*(?:[\w.]|"[^"]*")+', '', 'g') AS bare
	WHERE bare ~ '^[\s(]*(?:-?\d+|''(?:[^'']|'''')*''|''''[^'']*'''')[\s)]*$'
$$;

COMMENT ON FUNCTION snowflake_admin_literal(text) IS
'for snowflake_admin''s functions: the text of a literal in code';

CREATE FUNCTION snowflake_admin_integer(literal text)
RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN literal ~ '^\s*-?\d{1,10}\s*$' AND literal::bigint = least(greatest(literal::bigint, -2147483648), 2147483647)
		THEN literal::integer END
$$;

COMMENT ON FUNCTION snowflake_admin_integer(text) IS
'for snowflake_admin''s functions: the number in a text, or NULL';

-- The calls in code that make IDs, and what sets snowflake.shard, with those of
-- the arguments that matter here.  The code is SQL or any other language, so this
-- looks for names, parentheses and quotation marks only.  A call whose parentheses
-- do not end, or are nested deeper than five, has no arguments here.
CREATE FUNCTION snowflake_admin_calls(code text)
RETURNS TABLE (call text, function text, shard text, sequence text, layout text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH inner_part (pattern) AS (
		SELECT repeat('(?:[^()''"]|''[^'']*''|"[^"]*"|\(', 5) || '[^()]*' || repeat('\))*', 5)
	), calls AS (
		SELECT n, lower(substring(piece, '^\w+')) AS function, substring(piece, '^\w+"?\s*\(' || pattern || '\)') AS complete,
			left(piece, 60) AS beginning
		FROM inner_part, regexp_split_to_table(code,
			'(?=\m(?:next_ids?|snowflake_(?:id|backdated_id|set_shard))"?\s*\()', 'i') WITH ORDINALITY AS p (piece, n)
		WHERE piece ~* '^(?:next_ids?|snowflake_(?:id|backdated_id|set_shard))"?\s*\('
	), arguments AS (
		SELECT calls.n, coalesce(lower(substring(a[1], '^\s*"?(\w+)"?\s*(?:=>|:=)')), parameters[position]) AS parameter,
			regexp_replace(a[1], '^\s*"?\w+"?\s*(?:=>|:=)\s*', '') AS value
		FROM inner_part, calls JOIN (VALUES
			('next_id', '{shard,sequence,layout}'::text[]),
			('next_ids', '{shard,count,sequence,layout}'),
			('snowflake_id', '{ts,shard,sequence_number,layout}'),
			('snowflake_backdated_id', '{ts,shard,layout}'),
			('snowflake_set_shard', '{shard}')) AS f (function, parameters) USING (function),
			regexp_matches(substring(complete, '\((.*)\)$'), '(?:[^(),''"]|''[^'']*''|"[^"]*"|\(' || pattern || '\))+', 'g')
			WITH ORDINALITY AS m (a, position)
	)
	SELECT coalesce(complete, beginning), function, max(value) FILTER (WHERE parameter = 'shard'),
		CASE WHEN complete IS NULL THEN 'unknown' ELSE max(value) FILTER (WHERE parameter = 'sequence') END,
		max(value) FILTER (WHERE parameter = 'layout')
	FROM calls LEFT JOIN arguments USING (n)
	GROUP BY n, function, complete, beginning
	UNION ALL
	SELECT m[2], 'set', substring(m[2], '(?i)\.shard["'']*(?:::text)?\s*(?:=|,|to\M)\s*''*(-?\d+)'), NULL, NULL
	FROM regexp_matches(code, '(current_setting\s*\(\s*''*|\mshow\s+"?|\mreset\s+"?)?(\mset_config\s*\(\s*''+snowflake\.shard[^;)]{0,60}\)?|' ||
		'\mset\s+(?:local\s+|session\s+)?"?snowflake\.shard[^;'']{0,4}''*[^;''\n]{0,40}|snowflake\.shard\M)', 'gi') AS m
	WHERE m[1] IS NULL
$$;

COMMENT ON FUNCTION snowflake_admin_calls(text) IS
'for snowflake_admin''s functions: what in a piece of code makes IDs or sets a shard';

-- All code of this database that could make IDs or set a shard.  pg_depend tells
-- which expressions, views and parsed functions call ours; only these are turned
-- into text, since that takes locks on what they name.  A constant in a parsed
-- function is a list of its bytes.
CREATE FUNCTION snowflake_admin_code()
RETURNS TABLE (class oid, object oid, code text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	WITH callers AS MATERIALIZED (
		SELECT DISTINCT classid, objid
		FROM @extschema@.snowflake_admin_makers('{next_id,next_ids,snowflake_id,snowflake_backdated_id,snowflake_set_shard}') AS maker
		JOIN pg_depend ON refclassid = 'pg_proc'::regclass AND refobjid = maker AND deptype = 'n'
	), columns AS MATERIALIZED (
		SELECT d.oid, adrelid, attname, ltrim(pg_get_expr(adbin, adrelid), E'\n') AS code
		FROM callers JOIN pg_attrdef AS d ON classid = 'pg_attrdef'::regclass AND objid = d.oid
		JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
	)
	-- a partition or child table that has its parent's default is no place of its own
	SELECT 'pg_attrdef'::regclass, c.oid, code FROM columns AS c WHERE NOT EXISTS (
		SELECT FROM pg_inherits JOIN columns AS parent ON parent.adrelid = inhparent
		WHERE inhrelid = c.adrelid AND parent.attname = c.attname AND parent.code = c.code)
	UNION ALL
	SELECT 'pg_type'::regclass, t.oid, ltrim(pg_get_expr(typdefaultbin, 0), E'\n')
	FROM callers JOIN pg_type AS t ON classid = 'pg_type'::regclass AND objid = t.oid
	UNION ALL
	SELECT classid, objid, pg_get_ruledef(objid) FROM callers WHERE classid = 'pg_rewrite'::regclass
	UNION ALL
	SELECT 'pg_proc'::regclass, p.oid, concat_ws(E'\n',
		(SELECT 'SET snowflake.shard TO ' || split_part(c, '=', 2) FROM unnest(proconfig) AS c WHERE c LIKE 'snowflake.shard=%'),
		CASE WHEN parsed THEN pg_get_expr(proargdefaults, 0) END,
		CASE WHEN prosqlbody IS NULL THEN prosrc WHEN parsed THEN pg_get_function_sqlbody(p.oid) END)
	FROM pg_proc AS p CROSS JOIN LATERAL (
		SELECT EXISTS (SELECT FROM callers WHERE classid = 'pg_proc'::regclass AND objid = p.oid)
			OR prosqlbody::text LIKE '%' || array_to_string(ARRAY(
				SELECT ascii(c) FROM regexp_split_to_table('snowflake.shard', '') AS c), ' ') || '%') AS x (parsed)
	WHERE p.oid >= 16384 AND (parsed OR proconfig::text LIKE '%snowflake.shard=%'
		OR prosrc ~* '\m(?:next_ids?|snowflake_(?:id|backdated_id|set_shard))"?\s*\(|snowflake\.shard')
	AND p.oid NOT IN (SELECT object FROM @extschema@.snowflake_admin_members() WHERE class = 'pg_proc'::regclass)
$$;

COMMENT ON FUNCTION snowflake_admin_code() IS
'for snowflake_admin''s functions: defaults, views, rules and functions that could make IDs or set a shard';

-- Settings of snowflake.shard that sessions in this database begin with.  Who may
-- not read pg_file_settings sees what its own session began with; pg_settings
-- knows that only once the library is loaded, which any call of "snowflake" does.
CREATE FUNCTION snowflake_admin_shard_settings()
RETURNS TABLE (place text, value text)
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM FROM @extschema@.snowflake_admin_layouts();
	RETURN QUERY SELECT 'setting of ' || CASE WHEN setdatabase = 0 AND setrole = 0 THEN 'all roles' ELSE concat_ws(' in ',
			CASE WHEN setrole <> 0 THEN format('role %I', pg_get_userbyid(setrole)) END,
			CASE WHEN setdatabase <> 0 THEN format('database %I', current_database()) END) END,
		split_part(setting, '=', 2)
	FROM pg_db_role_setting, unnest(setconfig) AS setting
	WHERE setting ILIKE 'snowflake.shard=%'
	AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()));
	IF has_table_privilege('pg_file_settings', 'SELECT') AND has_function_privilege('pg_show_all_file_settings()', 'EXECUTE') THEN
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

COMMENT ON FUNCTION snowflake_admin_shard_settings() IS
'for snowflake_admin''s functions: where snowflake.shard is set for this database';

-- A sequence that the code names without its schema is known if no other has its name.
CREATE FUNCTION snowflake_uses()
RETURNS TABLE (place text, shard integer, sequence regclass, layout text, code text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH sequences AS (
		SELECT name, min(oid) AS oid
		FROM pg_class, unnest(ARRAY[oid::regclass::text, quote_ident(relname)]) AS name
		WHERE relkind = 'S' GROUP BY name HAVING count(DISTINCT oid) = 1
	), calls AS MATERIALIZED (
		SELECT class, object, c.*, CASE WHEN class IN ('pg_attrdef'::regclass, 'pg_type'::regclass) THEN code ELSE call END AS code,
			CASE WHEN function NOT LIKE 'next_id%' THEN NULL
				WHEN c.sequence IS NULL THEN (SELECT @extschema@.snowflake_admin_next_id_seq())
				ELSE s.oid END AS seq
		FROM @extschema@.snowflake_admin_code() CROSS JOIN LATERAL @extschema@.snowflake_admin_calls(code) AS c
		LEFT JOIN sequences AS s ON s.name = @extschema@.snowflake_admin_literal(c.sequence)
	), places AS (
		SELECT @extschema@.snowflake_admin_place(class, object) AS place,
			@extschema@.snowflake_admin_integer(@extschema@.snowflake_admin_literal(shard)) AS shard,
			seq::regclass AS sequence,
			CASE WHEN calls.layout IS NOT NULL THEN @extschema@.snowflake_admin_literal(calls.layout)
				WHEN function LIKE 'snowflake\_%id' THEN 'instagram' ELSE l.name END AS layout, code
		FROM calls LEFT JOIN pg_sequence ON seqrelid = seq
		LEFT JOIN @extschema@.snowflake_admin_layouts() AS l ON max_value = seqmax
		UNION ALL
		SELECT place, @extschema@.snowflake_admin_integer(value), NULL, NULL, 'snowflake.shard=' || value
		FROM @extschema@.snowflake_admin_shard_settings()
	)
	SELECT * FROM places ORDER BY place COLLATE "C", shard, sequence::text COLLATE "C"
$$;

COMMENT ON FUNCTION snowflake_uses() IS
'places of this database that make IDs or set a shard';

--
-- Keys
--

-- Columns whose numbers come from next_id(), from an identity, or from nextval():
-- in their own default or in that of their domain.  An old dump may name the
-- sequence as a text, on which nothing depends.  Identities and sequences are
-- linked by pg_depend, and no index leads from an expression to what it calls.
CREATE FUNCTION snowflake_admin_made()
RETURNS TABLE (tab oid, col int2, made_by text, sequence oid, expression text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	WITH own (oid) AS MATERIALIZED (
		SELECT * FROM @extschema@.snowflake_admin_makers('{next_id}')
	), defaults AS (
		SELECT 'pg_attrdef'::regclass AS class, d.oid AS object, adrelid AS tab, adnum AS col, adbin AS tree
		FROM pg_attrdef AS d
		UNION ALL
		SELECT 'pg_type'::regclass, t.oid, attrelid, attnum, typdefaultbin
		FROM pg_type AS t JOIN pg_attribute ON atttypid = t.oid AND NOT atthasdef AND attnum > 0
		WHERE typtype = 'd' AND typdefaultbin IS NOT NULL
	), makers AS MATERIALIZED (
		SELECT defaults.*, CASE WHEN own.oid IS NOT NULL THEN 'next_id' ELSE 'nextval' END AS made_by
		FROM defaults LEFT JOIN (pg_depend AS c JOIN own ON c.refclassid = 'pg_proc'::regclass AND c.refobjid = own.oid)
			ON c.classid = class AND c.objid = object
		WHERE own.oid IS NOT NULL OR tree::text LIKE '%:funcid ' || 'nextval'::regproc::oid || ' %'
	)
	SELECT tab, col, made_by, coalesce(s.oid, CASE made_by WHEN 'next_id' THEN (SELECT @extschema@.snowflake_admin_next_id_seq()) END),
		pg_get_expr(tree, CASE WHEN class = 'pg_attrdef'::regclass THEN tab ELSE 0 END)
	FROM makers LEFT JOIN (pg_depend AS d JOIN pg_class AS s ON d.refclassid = 'pg_class'::regclass AND s.oid = d.refobjid AND relkind = 'S')
		ON d.classid = class AND d.objid = object AND d.deptype = 'n'
	UNION
	SELECT attrelid, attnum, CASE attidentity WHEN 'a' THEN 'GENERATED ALWAYS' ELSE 'GENERATED BY DEFAULT' END, objid, NULL
	FROM pg_depend JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid AND attidentity <> ''
	WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND deptype = 'i'
$$;

COMMENT ON FUNCTION snowflake_admin_made() IS
'for snowflake_admin''s functions: columns that a sequence, an identity or next_id() fills';

-- The type that a domain is of in the end
CREATE FUNCTION snowflake_admin_base_type(type oid)
RETURNS oid
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE base (oid, domain) AS (
		SELECT oid, typtype = 'd' FROM pg_type WHERE oid = type
		UNION ALL
		SELECT t.oid, t.typtype = 'd' FROM base JOIN pg_type AS b ON b.oid = base.oid JOIN pg_type AS t ON t.oid = b.typbasetype
		WHERE domain
	)
	SELECT oid FROM base WHERE NOT domain
$$;

COMMENT ON FUNCTION snowflake_admin_base_type(oid) IS
'for snowflake_admin''s functions: the type under a domain';

-- The last value of a sequence, or NULL if there is none or if it may not be read
CREATE FUNCTION snowflake_admin_last_value(sequence regclass)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN has_sequence_privilege(sequence, 'USAGE, SELECT') THEN pg_sequence_last_value(sequence) END
$$;

COMMENT ON FUNCTION snowflake_admin_last_value(regclass) IS
'for snowflake_admin''s functions: the last value of a sequence that the role may read';

-- What functions name a sequence?  Their code is searched as a reader would: for
-- whole words, in any case.  A function can also ask for the last number of a
-- table.  Nothing finds a name that a function composes.  The first filter is for
-- speed: it leaves few functions to be searched for each of many names.
CREATE FUNCTION snowflake_admin_namers(sequence_names text[], table_names text[])
RETURNS TABLE (function oid, n bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH functions AS MATERIALIZED (
		SELECT p.oid, body, body ~ 'lastval|pg_get_serial_sequence' AS asks_by_table
		FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang, lower(prosrc) AS body
		WHERE p.oid >= 16384 AND lanname NOT IN ('c', 'internal') AND prosqlbody IS NULL
		AND body ~ 'seq|(?:next|curr|set|last)val|last_value'
		AND p.oid NOT IN (SELECT object FROM @extschema@.snowflake_admin_members() WHERE class = 'pg_proc'::regclass)
	), names AS MATERIALIZED (
		SELECT lower(name) AS name, n, false AS of_table FROM unnest(sequence_names) WITH ORDINALITY AS s (name, n)
		UNION ALL
		SELECT lower(name), n, true FROM unnest(table_names) WITH ORDINALITY AS t (name, n)
	)
	SELECT DISTINCT f.oid, n FROM functions AS f JOIN names ON strpos(body, name) > 0 AND (asks_by_table OR NOT of_table)
	WHERE body ~ ('(?<!\w)' || regexp_replace(name, '(\W)', '\\\1', 'g') || '(?!\w)')
$$;

COMMENT ON FUNCTION snowflake_admin_namers(text[], text[]) IS
'for snowflake_admin''s functions: functions whose text names sequences, or asks for the last number of tables';

-- All keys but those that a partition or child table has from its parent, as they
-- move together with it.  Those that have not moved yet have the first numbers.
CREATE FUNCTION snowflake_admin_keys()
RETURNS TABLE (tab oid, tab_name name, col int2, col_name name, type oid,
	made_by text, sequence oid, sequence_name name, expression text, n bigint)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH made AS MATERIALIZED (
		SELECT m.*, relname, attname, atttypid FROM @extschema@.snowflake_admin_made() AS m
		JOIN pg_class AS c ON c.oid = tab AND relkind IN ('r', 'p', 'f') AND relpersistence <> 't'
		JOIN pg_attribute ON attrelid = tab AND attnum = col AND NOT attisdropped
	)
	SELECT tab, m.relname, col, attname, atttypid, made_by, sequence, s.relname, expression,
		row_number() OVER (ORDER BY made_by = 'next_id')
	FROM made AS m LEFT JOIN pg_class AS s ON s.oid = m.sequence
	WHERE NOT EXISTS (
		SELECT FROM pg_inherits JOIN made AS parent ON parent.tab = inhparent
		WHERE inhrelid = m.tab AND parent.attname = m.attname AND parent.made_by = m.made_by
		AND coalesce(parent.sequence, 0) = coalesce(m.sequence, 0))
$$;

COMMENT ON FUNCTION snowflake_admin_keys() IS
'for snowflake_admin''s functions: keys that a sequence, an identity or next_id() makes';

-- Which columns are too small for the numbers of the n-th key: its own, those that
-- refer to it or to one of its partitions, those that refer to such a column, ...
CREATE FUNCTION snowflake_admin_too_small(tabs oid[], cols int2[])
RETURNS TABLE (n bigint, col text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH RECURSIVE links (tab, col, to_tab, to_col) AS MATERIALIZED (
		SELECT confrelid, f.col, conrelid, to_col FROM pg_constraint, unnest(confkey, conkey) AS f (col, to_col)
		WHERE contype = 'f' AND conparentid = 0
		UNION ALL
		SELECT inhparent, parent.attnum, inhrelid, child.attnum FROM pg_inherits
		JOIN pg_attribute AS parent ON parent.attrelid = inhparent AND parent.attnum > 0
		JOIN pg_attribute AS child ON child.attrelid = inhrelid AND child.attname = parent.attname
	), takers AS (
		SELECT * FROM unnest(tabs, cols) WITH ORDINALITY AS k (tab, col, n)
		UNION
		SELECT to_tab, to_col, n FROM takers JOIN links USING (tab, col)
	)
	SELECT t.n, format('%s is %s', (pg_identify_object('pg_class'::regclass, tab, t.col)).identity, format_type(atttypid, NULL))
	FROM takers AS t JOIN pg_attribute ON attrelid = tab AND attnum = t.col AND attinhcount = 0
	JOIN pg_type AS y ON y.oid = @extschema@.snowflake_admin_base_type(atttypid)
	WHERE typname NOT IN ('int8', 'snowflake')
$$;

COMMENT ON FUNCTION snowflake_admin_too_small(oid[], int2[]) IS
'for snowflake_admin''s functions: columns that take the numbers of keys and are too small for IDs';

CREATE FUNCTION snowflake_keys()
RETURNS TABLE (tab regclass, col name, type regtype, made_by text, sequence regclass, obstacle text)
LANGUAGE sql VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH keys AS MATERIALIZED (
		SELECT * FROM @extschema@.snowflake_admin_keys()
	), movable AS MATERIALIZED (
		SELECT * FROM keys WHERE made_by <> 'next_id'
	), obstacles (n, obstacle) AS (
		SELECT *
		FROM @extschema@.snowflake_admin_too_small(
			ARRAY(SELECT tab FROM movable ORDER BY n), ARRAY(SELECT col FROM movable ORDER BY n))
		UNION ALL
		SELECT DISTINCT n, @extschema@.snowflake_admin_place(classid, objid) || ' uses its sequence'
		FROM movable JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = sequence AND deptype = 'n'
		LEFT JOIN (pg_attrdef AS d JOIN pg_attribute AS a ON attrelid = adrelid AND attnum = adnum)
			ON classid = 'pg_attrdef'::regclass AND objid = d.oid
		WHERE (attrelid, attnum) IS DISTINCT FROM (tab, col) AND coalesce(a.attinhcount, 0) = 0
		UNION ALL
		SELECT n, @extschema@.snowflake_admin_place('pg_proc'::regclass, function) || ' names its sequence'
		FROM @extschema@.snowflake_admin_namers(
			ARRAY(SELECT sequence_name FROM movable ORDER BY n), ARRAY(SELECT tab_name FROM movable ORDER BY n))
		UNION ALL
		SELECT n, 'it is not in the primary key' FROM movable
		WHERE NOT EXISTS (SELECT FROM pg_index WHERE indrelid = tab AND indisprimary AND col = ANY (indkey))
		UNION ALL
		SELECT n, CASE WHEN sequence IS NULL THEN 'its default names the sequence as a text'
			ELSE 'its default is an expression' END
		FROM movable WHERE expression <> coalesce(format('nextval(%L::regclass)', sequence::regclass), '')
		UNION ALL
		SELECT n, 'its sequence advances by ' || seqincrement
		FROM movable JOIN pg_sequence ON seqrelid = sequence AND seqincrement <> 1
		UNION ALL
		SELECT n, 'its numbers are larger than new IDs'	-- which begin with the milliseconds since 2011
		FROM movable
		WHERE @extschema@.snowflake_admin_last_value(sequence) >> 23 >= extract(epoch FROM now()) * 1000 - 1314220021721
	)
	SELECT k.tab::regclass, k.col_name, k.type::regtype, k.made_by, k.sequence::regclass, o.obstacle
	FROM keys AS k LEFT JOIN obstacles AS o USING (n)
	ORDER BY k.tab::regclass::text COLLATE "C", k.col_name, k.sequence::regclass::text COLLATE "C", obstacle COLLATE "C"
$$;

COMMENT ON FUNCTION snowflake_keys() IS
'keys that a sequence, an identity or next_id() makes, and what keeps them from moving to next_id()';
