/* admin/uses.sql */

-- What generates IDs or sets a shard in this database: snowflake_uses(), and how code is
-- searched for such calls.  Knows no key: whether a column's default is one, keys.sql says.

-- What belongs to the two extensions.  Another schema may have a namesake of it.
CREATE FUNCTION snowflake_admin.extension_members()
RETURNS TABLE (extension name, class oid, object oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT extname, classid, objid FROM pg_extension AS e
	JOIN pg_depend ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND deptype = 'e'
	WHERE extname IN ('snowflake', 'snowflake_admin')
$$;
COMMENT ON FUNCTION snowflake_admin.extension_members IS 'for telling what is of the two extensions from its namesakes';

-- The sequence from which next_id() takes values where none is named
CREATE FUNCTION snowflake_admin.next_id_seq() RETURNS regclass
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	-- Not by way of extension_members(), which reads hundreds of rows: this is asked for each default.
	SELECT c.oid FROM pg_class AS c
	JOIN pg_depend ON classid = 'pg_class'::regclass AND objid = c.oid AND refclassid = 'pg_extension'::regclass
		AND deptype = 'e'
	JOIN pg_extension AS e ON e.oid = refobjid
	WHERE relname = 'next_id_seq' AND extname = 'snowflake'
$$;
COMMENT ON FUNCTION snowflake_admin.next_id_seq IS 'for naming the sequence that next_id() uses by default';

-- The temporary schemas of sessions.  What is in them counts for nothing: it ends with its session,
-- and every role may make it.  No other schema can have such a name.
CREATE FUNCTION snowflake_admin.temporary_schemas() RETURNS SETOF oid
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT oid FROM pg_namespace WHERE nspname LIKE 'pg\_temp\_%'
$$;
COMMENT ON FUNCTION snowflake_admin.temporary_schemas IS 'for telling what is temporary';

-- What is in these schemas and has code
CREATE FUNCTION snowflake_admin.temporary_objects()
RETURNS TABLE (class oid, object oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH schemas AS MATERIALIZED (SELECT * FROM temporary_schemas())
	SELECT 'pg_proc'::regclass::oid, oid FROM pg_proc WHERE pronamespace IN (SELECT * FROM schemas)
	UNION ALL SELECT 'pg_type'::regclass, oid FROM pg_type WHERE typnamespace IN (SELECT * FROM schemas)
	UNION ALL SELECT 'pg_attrdef'::regclass, d.oid FROM pg_attrdef AS d JOIN pg_class AS c ON c.oid = adrelid
	WHERE relnamespace IN (SELECT * FROM schemas)
	UNION ALL SELECT 'pg_rewrite'::regclass, r.oid FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = ev_class
	WHERE relnamespace IN (SELECT * FROM schemas)
$$;
COMMENT ON FUNCTION snowflake_admin.temporary_objects IS 'for leaving out what is temporary';

-- The functions that generate IDs or set a shard, with the names of their parameters
CREATE FUNCTION snowflake_admin.making_calls()
RETURNS TABLE (name text, parameters text[])
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	VALUES ('next_id', '{shard,sequence,layout}'::text[]),
		('next_ids', '{shard,count,sequence,layout}'),
		('snowflake_id', '{ts,shard,sequence_number,layout}'),
		('snowflake_backdated_id', '{ts,shard,layout}'),
		('snowflake_set_shard', '{shard}')
$$;
COMMENT ON FUNCTION snowflake_admin.making_calls IS 'for knowing what generates IDs or sets a shard';

-- The beginning of a call of one of them, as a regular expression
CREATE FUNCTION snowflake_admin.call_pattern() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT '\m(?:' || string_agg(name, '|') || ')"?[ \t\r\n]*\(' FROM making_calls()
$$;
COMMENT ON FUNCTION snowflake_admin.call_pattern IS 'for finding where a call begins';

-- An object that has code, in the same words for every search_path and language
CREATE FUNCTION snowflake_admin.place(class oid, object oid) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
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
COMMENT ON FUNCTION snowflake_admin.place IS 'for naming an object that has code';

-- The owner of an object that has code.  NULL for an object of any other kind.
CREATE FUNCTION snowflake_admin.owner_of(class oid, object oid) RETURNS oid
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE class
		WHEN 'pg_attrdef'::regclass THEN (
			SELECT relowner FROM pg_attrdef AS d JOIN pg_class AS c ON c.oid = adrelid WHERE d.oid = object)
		WHEN 'pg_rewrite'::regclass THEN (
			SELECT relowner FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = ev_class WHERE r.oid = object)
		WHEN 'pg_type'::regclass THEN (SELECT typowner FROM pg_type WHERE oid = object)
		WHEN 'pg_proc'::regclass THEN (SELECT proowner FROM pg_proc WHERE oid = object) END
$$;
COMMENT ON FUNCTION snowflake_admin.owner_of IS 'for looking at code as its owner''s';

-- The text of a literal, whatever it is cast to, or NULL for everything else.  In
-- a command that is itself in quotation marks, those of the literal are doubled.
CREATE FUNCTION snowflake_admin.literal(argument text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT replace(btrim(bare, E' \t\r\n()'''), '''''', '''')
	FROM regexp_replace(argument, '::[ \t\r\n]*(?:[\w.]|"[^"]*")+', '', 'g') AS bare
	WHERE bare ~ '^[ \t\r\n(]*(?:-?[0-9]+|''(?:[^'']|'''')*''|''''[^'']*'''')[ \t\r\n)]*$'
$$;
COMMENT ON FUNCTION snowflake_admin.literal IS 'for reading an argument that is a constant';

-- The number of a literal, or NULL if it is none or no integer.  \d would match digits of other
-- scripts, too, which bigint does not read.
CREATE FUNCTION snowflake_admin.to_integer(literal text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN literal ~ '^[ \t\r\n]*-?[0-9]{1,10}[ \t\r\n]*$' THEN
		CASE WHEN literal::bigint BETWEEN -2147483648 AND 2147483647 THEN literal::integer END END
$$;
COMMENT ON FUNCTION snowflake_admin.to_integer IS 'for reading a shard';

-- What may be between the parentheses of a call, as a regular expression.  No expression
-- counts parentheses, so they may be nested five deep.
CREATE FUNCTION snowflake_admin.inside_pattern() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT repeat('(?:[^()''"]|''[^'']*''|"[^"]*"|\(', 5) || '[^()]*' || repeat('\))*', 5)
$$;
COMMENT ON FUNCTION snowflake_admin.inside_pattern IS 'for finding where a call ends';

-- The arguments of a call of one of these functions, each with the name of its parameter
CREATE FUNCTION snowflake_admin.arguments(function text, call text)
RETURNS TABLE (parameter text, value text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(lower(substring(a[1], '^[ \t\r\n]*"?(\w+)"?[ \t\r\n]*(?:=>|:=)')), parameters[position]),
		regexp_replace(a[1], '^[ \t\r\n]*"?\w+"?[ \t\r\n]*(?:=>|:=)[ \t\r\n]*', '')
	FROM making_calls(), regexp_matches(substring(call, '\((.*)\)$'),
		'(?:[^(),''"]|''[^'']*''|"[^"]*"|\(' || inside_pattern() || '\))+', 'g') WITH ORDINALITY AS m (a, position)
	WHERE name = function
$$;
COMMENT ON FUNCTION snowflake_admin.arguments IS 'for reading the arguments of a call';

-- The calls in code that generate IDs or set a shard, with those of their arguments
-- that matter here.  The code is SQL or any other language, so this looks for names,
-- parentheses and quotation marks only.  A call whose parentheses do not end within 2000
-- characters, or are nested too deep, is known by its beginning.  So the time that
-- this takes grows with the code's length and no faster.
CREATE FUNCTION snowflake_admin.calls(code text)
RETURNS TABLE (call text, function text, complete boolean, shard text, sequence text, layout text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH found AS MATERIALIZED (
		SELECT lower(substring(piece, '^\w+')) AS function, left(piece, 60) AS excerpt,
			substring(piece, '^\w+"?[ \t\r\n]*\(' || inside_pattern() || '\)') AS call
		FROM regexp_split_to_table(code, '(?=' || call_pattern() || ')', 'i') AS whole, left(whole, 2000) AS piece
		WHERE piece ~* ('^' || call_pattern())
	)
	SELECT coalesce(call, excerpt), function, call IS NOT NULL, a.shard, a.sequence, a.layout
	FROM found CROSS JOIN LATERAL (
		SELECT max(value) FILTER (WHERE parameter = 'shard') AS shard,
			max(value) FILTER (WHERE parameter = 'sequence') AS sequence,
			max(value) FILTER (WHERE parameter = 'layout') AS layout
		FROM arguments(function, call)) AS a
$$;
COMMENT ON FUNCTION snowflake_admin.calls IS 'for finding the calls in code that generate IDs or set a shard';

-- The layout of the IDs that a default generates: the one that it names, or that of its
-- sequence, or next_id_seq's.  NULL if the sequence serves none that is built in.
CREATE FUNCTION snowflake_admin.layout_of(expression text, sequence regclass) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(
		(SELECT min(literal(layout)) FROM calls(expression)),
		CASE WHEN sequence IS NULL THEN 'instagram' ELSE (
			SELECT name FROM pg_sequence JOIN layouts() ON max_value = seqmax
			WHERE seqrelid = sequence) END)
$$;
COMMENT ON FUNCTION snowflake_admin.layout_of IS 'for telling the layout of the IDs of a default';

-- Objects whose expression or parsed body calls something that generates IDs or sets a shard
CREATE FUNCTION snowflake_admin.callers()
RETURNS TABLE (class oid, object oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH members AS MATERIALIZED (SELECT * FROM extension_members())
	SELECT DISTINCT classid, objid
	FROM members AS m JOIN pg_proc AS p ON class = 'pg_proc'::regclass AND p.oid = object
	JOIN making_calls() AS f ON f.name = proname
	JOIN pg_depend ON refclassid = class AND refobjid = object AND deptype = 'n'
	WHERE extension = 'snowflake'
	AND (classid, objid) NOT IN (SELECT own.class, own.object FROM members AS own)
	AND (classid, objid) NOT IN (SELECT t.class, t.object FROM temporary_objects() AS t)
$$;
COMMENT ON FUNCTION snowflake_admin.callers IS 'for finding the parsed expressions that generate IDs or set a shard';

-- The code of a rule, of a parsed body or of a generated column.  To turn it into text,
-- PostgreSQL locks the tables that it names.
CREATE FUNCTION snowflake_admin.deparsed(class oid, object oid) RETURNS text
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE class
		WHEN 'pg_rewrite'::regclass THEN pg_get_ruledef(object)
		WHEN 'pg_proc'::regclass THEN pg_get_function_sqlbody(object)
		ELSE (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE oid = object) END
$$;
COMMENT ON FUNCTION snowflake_admin.deparsed IS 'for turning a parsed object into code';

-- The code of many such objects.  A table that somebody else has locked, or that is just
-- being dropped, makes the code NULL, and nobody waits: not this, which looks for strong locks
-- before, nor those who come next, as the locks of each object end with a subtransaction.
CREATE FUNCTION snowflake_admin.parsed_code(classes oid[], objects oid[])
RETURNS TABLE (class oid, object oid, code text)
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp
	SET lock_timeout = '20ms' AS $$
DECLARE
	locked oid[];
	must_look boolean := true;
BEGIN
	FOR class, object IN SELECT * FROM unnest(classes, objects) LOOP
		IF must_look THEN
			locked := ARRAY(SELECT DISTINCT relation FROM pg_locks
				WHERE relation IS NOT NULL AND mode = 'AccessExclusiveLock'
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
				AND pid IS DISTINCT FROM pg_backend_pid());
			must_look := false;
		END IF;
		code := NULL;
		IF locked = '{}' OR NOT EXISTS (SELECT FROM pg_depend AS d
			WHERE d.classid = class AND d.objid = object
			AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY (locked)) THEN
			BEGIN
				code := deparsed(class, object);
				RAISE SQLSTATE 'SF000';	-- ends the subtransaction, and keeps the code
			EXCEPTION
				WHEN SQLSTATE 'SF000' THEN NULL;
				WHEN OTHERS THEN
					code := NULL;
					must_look := true;
			END;
		END IF;
		RETURN NEXT;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.parsed_code IS
'for turning parsed objects into code while others lock their tables';

-- Does a parsed body have the text snowflake.shard in it?  It is stored as a list of its bytes.
CREATE FUNCTION snowflake_admin.has_setting(body pg_node_tree) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT body::text LIKE '%' || array_to_string(
		ARRAY(SELECT ascii(c) FROM string_to_table('snowflake.shard', NULL) AS c), ' ') || '%'
$$;
COMMENT ON FUNCTION snowflake_admin.has_setting IS 'for finding parsed bodies that set a shard';

-- The functions that could generate IDs or set a shard, with the shard that a SET clause sets, and
-- whether what is parsed of them could: the body, and the defaults of parameters.
-- PostgreSQL's own functions have OIDs below 16384.
CREATE FUNCTION snowflake_admin.making_functions()
RETURNS TABLE (function oid, setting text, in_tree boolean)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT p.oid, setting, in_tree
	FROM pg_proc AS p CROSS JOIN LATERAL (
		SELECT (SELECT split_part(c, '=', 2) FROM unnest(proconfig) AS c WHERE c ILIKE 'snowflake.shard=%'),
			p.oid IN (SELECT object FROM callers() WHERE class = 'pg_proc'::regclass)
				OR prosqlbody IS NOT NULL AND has_setting(prosqlbody)) AS x (setting, in_tree)
	WHERE p.oid >= 16384 AND (in_tree OR setting IS NOT NULL OR prosrc ~* (call_pattern() || '|snowflake\.shard'))
	AND p.oid NOT IN (SELECT object FROM extension_members() WHERE class = 'pg_proc'::regclass)
	AND p.oid NOT IN (SELECT object FROM temporary_objects() WHERE class = 'pg_proc'::regclass)
$$;
COMMENT ON FUNCTION snowflake_admin.making_functions IS 'for choosing the functions whose code is searched';

-- The code of these functions, and whether all of it could be read
CREATE FUNCTION snowflake_admin.function_code()
RETURNS TABLE (function oid, code text, is_read boolean)
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH found AS MATERIALIZED (
		SELECT f.*, prosqlbody IS NOT NULL AS is_parsed FROM making_functions() AS f JOIN pg_proc ON oid = function
	), bodies AS MATERIALIZED (
		SELECT b.object, b.code
		FROM (SELECT array_agg('pg_proc'::regclass::oid) AS classes, array_agg(function) AS objects
			FROM found WHERE in_tree AND is_parsed) AS f, parsed_code(classes, objects) AS b
	)
	SELECT f.function, concat_ws(E'\n', 'SET snowflake.shard TO ' || setting,
		CASE WHEN in_tree THEN pg_get_expr(proargdefaults, 0) END,
		CASE WHEN is_parsed THEN b.code ELSE prosrc END),
		b.object IS NULL OR b.code IS NOT NULL
	FROM found AS f JOIN pg_proc ON oid = f.function LEFT JOIN bodies AS b ON b.object = f.function
$$;
COMMENT ON FUNCTION snowflake_admin.function_code IS 'for searching the code of functions';

-- The code of defaults, of columns or of domains, that generate IDs.  pg_get_expr() need not know,
-- and lock, the table.
CREATE FUNCTION snowflake_admin.default_code()
RETURNS TABLE (class oid, object oid, tab oid, col name, code text)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT class, object, adrelid, attname, pg_get_expr(adbin, 0)
	FROM callers() JOIN pg_attrdef AS d ON class = 'pg_attrdef'::regclass AND object = d.oid
	JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum AND attgenerated = ''
	UNION ALL SELECT class, object, NULL, NULL, pg_get_expr(typdefaultbin, 0)
	FROM callers() JOIN pg_type AS t ON class = 'pg_type'::regclass AND object = t.oid
$$;
COMMENT ON FUNCTION snowflake_admin.default_code IS 'for searching the code of defaults';

-- The code of rules and of generated columns that generate IDs, or NULL where it could not be read
CREATE FUNCTION snowflake_admin.rule_code()
RETURNS TABLE (class oid, object oid, tab oid, col name, code text)
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH found AS MATERIALIZED (
		SELECT class, object, adrelid, attname
		FROM callers() LEFT JOIN (pg_attrdef AS d JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum)
			ON class = 'pg_attrdef'::regclass AND object = d.oid
		WHERE class = 'pg_rewrite'::regclass OR attgenerated <> ''
	)
	SELECT class, object, adrelid, attname, p.code
	FROM (SELECT array_agg(class) AS classes, array_agg(object) AS objects FROM found) AS f,
		parsed_code(classes, objects) AS p JOIN found USING (class, object)
$$;
COMMENT ON FUNCTION snowflake_admin.rule_code IS 'for searching the code of rules and of generated columns';

-- All code that generates IDs or sets a shard, each piece with its owner, and NULL where it could
-- not be read.  Of what PostgreSQL has parsed, only what depends on our functions is turned into
-- text, and the bodies that have the text snowflake.shard.
CREATE FUNCTION snowflake_admin.pieces()
RETURNS TABLE (n bigint, class oid, object oid, owner oid, tab oid, col name, code text, is_read boolean)
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	SELECT row_number() OVER (), class, object, owner_of(class, object), tab, col, code, is_read
	FROM (
		SELECT class, object, tab, col, ltrim(code, E'\n'), true FROM default_code()
		UNION ALL SELECT class, object, tab, col, ltrim(code, E'\n'), code IS NOT NULL FROM rule_code()
		UNION ALL SELECT 'pg_proc'::regclass, function, NULL, NULL, code, is_read FROM function_code())
		AS found (class, object, tab, col, code, is_read)
$$;
COMMENT ON FUNCTION snowflake_admin.pieces IS 'for searching all code of the database';

-- Where in the code of a function snowflake.shard is set, and to which shard if that is there.
-- Where the setting is only read or reset, nothing is returned.
CREATE FUNCTION snowflake_admin.shard_changes(code text)
RETURNS TABLE (change text, shard text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT m[2], substring(m[2], '(?i)\.shard["'']*(?:::text)?[ \t\r\n]*(?:=|,|to\M)[ \t\r\n]*''*(-?[0-9]+)')
	FROM regexp_matches(code,
		'(current_setting[ \t\r\n]*\([ \t\r\n]*''*|\mshow[ \t\r\n]+"?|\mreset[ \t\r\n]+"?)?('
		|| '\mset_config[ \t\r\n]*\([ \t\r\n]*''+snowflake\.shard[^;)]{0,60}\)?|'
		|| '\mset[ \t\r\n]+(?:local[ \t\r\n]+|session[ \t\r\n]+)?"?snowflake\.shard[^;'']{0,4}''*[^;''\n]{0,40}|'
		|| 'snowflake\.shard\M)', 'gi') AS m
	WHERE m[1] IS NULL
$$;
COMMENT ON FUNCTION snowflake_admin.shard_changes IS 'for finding where code sets a shard';

-- Settings of snowflake.shard that sessions in this database begin with.  A role
-- that may not read pg_file_settings sees what RESET would give its own session, unless that comes
-- from a setting of the database or of the role.  pg_settings knows that only once the library is
-- loaded: any call of "snowflake" does that.
CREATE FUNCTION snowflake_admin.shard_settings()
RETURNS TABLE (place text, value text)
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	PERFORM FROM layouts();
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
		WHERE name = 'snowflake.shard' AND (source = 'configuration file'
			OR source = 'session' AND reset_val <> boot_val AND NOT EXISTS (
				SELECT FROM pg_db_role_setting, unnest(setconfig) AS setting
				WHERE setting ILIKE 'snowflake.shard=%' AND setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user))
				AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))));
	END IF;
	RETURN QUERY SELECT source, reset_val FROM pg_settings
	WHERE name = 'snowflake.shard' AND source IN ('command line', 'environment variable');
END
$$;
COMMENT ON FUNCTION snowflake_admin.shard_settings IS 'for finding the settings of snowflake.shard';

-- Sequences by their names in code, with and without their schemas.  A row with owner 0 has a name
-- that only one sequence has, and is for the code of all roles.  A row with another owner has a
-- name that only one sequence of this role has, and is for the code of this role's objects.  So no
-- role can make another role's code unknown by a sequence with the same name.
CREATE FUNCTION snowflake_admin.sequence_names()
RETURNS TABLE (name text, owner oid, oid oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH names AS MATERIALIZED (
		SELECT DISTINCT name, relowner, oid
		FROM pg_class, unnest(ARRAY[oid::regclass::text, quote_ident(relname)]) AS name
		WHERE relkind = 'S' AND relpersistence <> 't'
	)
	SELECT name, 0::oid, min(oid) FROM names GROUP BY name HAVING count(*) = 1
	UNION ALL SELECT name, relowner, min(oid) FROM names GROUP BY name, relowner HAVING count(*) = 1
$$;
COMMENT ON FUNCTION snowflake_admin.sequence_names IS 'for finding the sequence that code names';

-- The pieces of code that are places of their own, as a partition or child table that has its
-- parent's default is none.  A short default is shown as a whole, and of other code each call.
CREATE FUNCTION snowflake_admin.places_of_code()
RETURNS TABLE (place text, is_function boolean, owner oid, code text, is_read boolean, shown text)
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH pieces AS MATERIALIZED (SELECT * FROM pieces()),
	inherited AS MATERIALIZED (
		SELECT c.n FROM pieces AS c JOIN pg_inherits ON inhrelid = c.tab JOIN pieces AS parent ON parent.tab = inhparent
		WHERE parent.col = c.col AND parent.code = c.code
	)
	SELECT place(class, object), class = 'pg_proc'::regclass, owner, code, is_read,
		CASE WHEN class IN ('pg_attrdef'::regclass, 'pg_type'::regclass) AND length(code) <= 1000 THEN code END
	FROM pieces WHERE n NOT IN (SELECT * FROM inherited)
$$;
COMMENT ON FUNCTION snowflake_admin.places_of_code IS 'for snowflake_uses(), which lists the calls in this code';

-- The calls in all these places, the settings of snowflake.shard, and a row without code for each
-- place that could not be read
CREATE FUNCTION @extschema@.snowflake_uses()
RETURNS TABLE (place text, shard integer, sequence regclass, layout text, code text)
LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	SELECT keep_extension(false);
	WITH pieces AS MATERIALIZED (SELECT * FROM places_of_code()),
	calls AS MATERIALIZED (
		SELECT place, owner, coalesce(shown, c.call) AS code, c.function, c.complete, c.shard, c.layout,
			c.sequence IS NULL AS is_default, literal(c.sequence) AS name
		FROM pieces CROSS JOIN LATERAL calls(pieces.code) AS c
	), made AS (
		SELECT place, shard, layout, function, code,
			CASE WHEN function NOT IN ('next_id', 'next_ids') OR NOT complete THEN NULL
				WHEN is_default THEN (SELECT next_id_seq())
				ELSE coalesce(own.oid, s.oid) END AS sequence
		FROM calls LEFT JOIN sequence_names() AS s ON s.name = calls.name AND s.owner = 0
		LEFT JOIN sequence_names() AS own ON own.name = calls.name AND own.owner = calls.owner
	), places AS (
		SELECT place, literal(shard) AS shard, sequence::regclass, CASE
				WHEN made.layout IS NOT NULL THEN literal(made.layout)
				WHEN function IN ('snowflake_id', 'snowflake_backdated_id') THEN 'instagram'
				ELSE l.name END AS layout, code
		FROM made LEFT JOIN pg_sequence ON seqrelid = sequence LEFT JOIN layouts() AS l ON max_value = seqmax
		UNION ALL SELECT place, s.shard, NULL, NULL, s.change
		FROM pieces CROSS JOIN LATERAL shard_changes(code) AS s WHERE is_function
		UNION ALL SELECT place, NULL, NULL, NULL, NULL FROM pieces WHERE NOT is_read
		UNION ALL SELECT place, value, NULL, NULL, 'snowflake.shard=' || value FROM shard_settings()
	)
	SELECT place, to_integer(p.shard) AS number, p.sequence, p.layout, p.code
	FROM places AS p
	ORDER BY place COLLATE "C", number, p.sequence::text COLLATE "C", p.code COLLATE "C"
$$;
COMMENT ON FUNCTION @extschema@.snowflake_uses() IS
'places of this database that generate IDs or set a shard';
