/* admin/uses.sql */

-- What makes IDs or sets a shard in this database: snowflake_uses(), and how code is
-- searched for such calls.  Knows no key: whether a column's default is one, keys.sql says.

-- What belongs to the two extensions, of which another schema may have a namesake
CREATE FUNCTION snowflake_admin.extension_members()
RETURNS TABLE (extension name, class oid, object oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT extname, classid, objid FROM pg_extension AS e
	JOIN pg_depend ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND deptype = 'e'
	WHERE extname IN ('snowflake', 'snowflake_admin')
$$;

CREATE FUNCTION snowflake_admin.next_id_seq() RETURNS regclass
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT oid FROM extension_members() JOIN pg_class ON oid = object
	WHERE extension = 'snowflake' AND class = 'pg_class'::regclass AND relname = 'next_id_seq'
$$;

-- The functions that make IDs or set a shard
CREATE FUNCTION snowflake_admin.makers()
RETURNS TABLE (name text, parameters text[])
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	VALUES ('next_id', '{shard,sequence,layout}'::text[]),
		('next_ids', '{shard,count,sequence,layout}'),
		('snowflake_id', '{ts,shard,sequence_number,layout}'),
		('snowflake_backdated_id', '{ts,shard,layout}'),
		('snowflake_set_shard', '{shard}')
$$;

-- The beginning of a call of one of them, as a regular expression
CREATE FUNCTION snowflake_admin.call_pattern() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT '\m(?:' || string_agg(name, '|') || ')"?\s*\(' FROM makers()
$$;

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

-- The text of a literal, whatever it is cast to, or NULL for everything else.  In
-- a command that is itself in quotation marks, those of the literal are doubled.
CREATE FUNCTION snowflake_admin.literal(argument text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT replace(btrim(bare, E' \t\r\n()'''), '''''', '''')
	FROM regexp_replace(argument, '::\s*(?:[\w.]|"[^"]*")+', '', 'g') AS bare
	WHERE bare ~ '^[\s(]*(?:-?\d+|''(?:[^'']|'''')*''|''''[^'']*'''')[\s)]*$'
$$;

CREATE FUNCTION snowflake_admin.to_integer(literal text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN literal ~ '^\s*-?\d{1,10}\s*$' THEN
		CASE WHEN literal::bigint BETWEEN -2147483648 AND 2147483647 THEN literal::integer END END
$$;

-- The calls in code that make IDs or set a shard, with those of their arguments
-- that matter here.  The code is SQL or any other language, so this looks for names,
-- parentheses and quotation marks only.  A call whose parentheses do not end, or
-- are nested deeper than five, is known by its beginning.
CREATE FUNCTION snowflake_admin.calls(code text)
RETURNS TABLE (call text, function text, complete boolean, shard text, sequence text, layout text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH patterns (beginning, inside) AS (
		SELECT call_pattern(),
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
		FROM patterns, calls JOIN makers() AS m ON m.name = function,
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
CREATE FUNCTION snowflake_admin.layout_of(expression text, sequence regclass) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(
		(SELECT min(literal(layout))
			FROM calls(expression)),
		CASE WHEN sequence IS NULL THEN 'instagram' ELSE (
			SELECT name FROM pg_sequence JOIN layouts() ON max_value = seqmax
			WHERE seqrelid = sequence) END)
$$;

-- Objects whose expression or parsed body calls something that makes IDs
CREATE FUNCTION snowflake_admin.callers()
RETURNS TABLE (class oid, object oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH members AS MATERIALIZED (SELECT * FROM extension_members())
	SELECT DISTINCT classid, objid
	FROM members AS m JOIN pg_proc AS p ON class = 'pg_proc'::regclass AND p.oid = object
	JOIN makers() AS f ON f.name = proname
	JOIN pg_depend ON refclassid = class AND refobjid = object AND deptype = 'n'
	WHERE extension = 'snowflake'
	AND (classid, objid) NOT IN (SELECT own.class, own.object FROM members AS own)
$$;

-- The code of functions that could make IDs or set a shard.  A constant in a parsed body
-- is stored as a list of its bytes.  PostgreSQL's own functions have OIDs below 16384.
CREATE FUNCTION snowflake_admin.function_code()
RETURNS TABLE (function oid, code text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH callers AS MATERIALIZED (
		SELECT object FROM callers() WHERE class = 'pg_proc'::regclass
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
		OR prosrc ~* ((SELECT call_pattern()) || '|snowflake\.shard'))
	AND p.oid NOT IN (
		SELECT object FROM extension_members() WHERE class = 'pg_proc'::regclass)
$$;

-- Settings of snowflake.shard that sessions in this database begin with.  A role
-- that may not read pg_file_settings sees what its own session began with, which
-- pg_settings knows only once the library is loaded: any call of "snowflake" does that.
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
		WHERE name = 'snowflake.shard' AND source = 'configuration file';
	END IF;
	RETURN QUERY SELECT source, reset_val FROM pg_settings
	WHERE name = 'snowflake.shard' AND source IN ('command line', 'environment variable');
END
$$;

-- Sequences by their names in code: without a schema, one is known if no other has its name.
CREATE FUNCTION snowflake_admin.sequence_names()
RETURNS TABLE (name text, oid oid)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT name, min(oid) FROM pg_class, unnest(ARRAY[oid::regclass::text, quote_ident(relname)]) AS name
	WHERE relkind = 'S' GROUP BY name HAVING count(DISTINCT oid) = 1
$$;

-- Only what depends on our functions is turned into text, since that locks the tables
-- of views.  For the default of a column, pg_get_expr() need not know, and lock, the
-- table, unless the column is generated.  A partition or child table that has its parent's
-- default is no place of its own.
CREATE FUNCTION @extschema@.snowflake_uses()
RETURNS TABLE (place text, shard integer, sequence regclass, layout text, code text)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
	WITH callers AS MATERIALIZED (SELECT * FROM callers()),
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
		UNION ALL SELECT 'pg_proc'::regclass, function, code FROM function_code()
	), calls AS MATERIALIZED (
		SELECT class, object, shard, layout, function,
			CASE WHEN class IN ('pg_attrdef'::regclass, 'pg_type'::regclass) THEN code ELSE call END AS code,
			CASE WHEN function NOT IN ('next_id', 'next_ids') OR NOT complete THEN NULL
				WHEN sequence IS NULL THEN (SELECT next_id_seq())
				ELSE s.oid END AS seq
		FROM pieces CROSS JOIN LATERAL calls(code)
		LEFT JOIN sequence_names() AS s
			ON s.name = literal(sequence)
	), places AS (
		SELECT place(class, object) AS place,
			literal(shard) AS shard, seq::regclass AS sequence, CASE
				WHEN calls.layout IS NOT NULL THEN literal(calls.layout)
				WHEN function IN ('snowflake_id', 'snowflake_backdated_id') THEN 'instagram'
				ELSE l.name END AS layout, code
		FROM calls LEFT JOIN pg_sequence ON seqrelid = seq
		LEFT JOIN layouts() AS l ON max_value = seqmax
		UNION ALL
		-- What sets snowflake.shard, and to which number if that is there.  Where the
		-- setting is only read or reset, nothing is returned.
		SELECT place(class, object),
			substring(m[2], '(?i)\.shard["'']*(?:::text)?\s*(?:=|,|to\M)\s*''*(-?\d+)'), NULL, NULL, m[2]
		FROM pieces, regexp_matches(code, '(current_setting\s*\(\s*''*|\mshow\s+"?|\mreset\s+"?)?('
			|| '\mset_config\s*\(\s*''+snowflake\.shard[^;)]{0,60}\)?|'
			|| '\mset\s+(?:local\s+|session\s+)?"?snowflake\.shard[^;'']{0,4}''*[^;''\n]{0,40}|'
			|| 'snowflake\.shard\M)', 'gi') AS m
		WHERE class = 'pg_proc'::regclass AND m[1] IS NULL
		UNION ALL SELECT place, value, NULL, NULL, 'snowflake.shard=' || value
		FROM shard_settings()
	)
	SELECT place, to_integer(p.shard) AS number, p.sequence, p.layout, p.code
	FROM places AS p
	ORDER BY place COLLATE "C", number, p.sequence::text COLLATE "C", p.code COLLATE "C"
$$;

COMMENT ON FUNCTION @extschema@.snowflake_uses() IS
'places of this database that make IDs or set a shard';
