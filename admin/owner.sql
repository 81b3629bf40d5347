/* admin/owner.sql */

-- As whom a table's code runs: its triggers, the expressions of its indexes, its CHECKs,
-- defaults and policies.  Whoever owns the table has chosen that code, so it runs with his
-- rights at most, as CREATE INDEX and VACUUM do it, and never with those of a superuser who
-- calls a command.  Knows no command and no ID.
--
-- What creates or renames something in a schema stays the caller's, because a table's owner
-- may have no right to create objects there.  Such commands run no code of the table:
-- PostgreSQL builds indexes as their table's owner.

-- The OID of the current role
CREATE FUNCTION snowflake_admin.caller() RETURNS oid
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT oid FROM pg_roles WHERE rolname = current_user
$$;
COMMENT ON FUNCTION snowflake_admin.caller IS 'for telling the caller from a table''s owner';

-- The rows of a query, which runs as the owner of a table and cannot become another role.  Nor
-- can it leave a setting behind, unless that owner can SET ROLE to the caller anyway.  The caller
-- must be allowed to SET ROLE to the owner.
CREATE FUNCTION snowflake_admin.as_owner(owner_of regclass, query text) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'snowflake_as_owner' LANGUAGE C VOLATILE PARALLEL UNSAFE;

-- The same for a query with the parameters $1, $2 and so on
CREATE FUNCTION snowflake_admin.as_owner(owner_of regclass, query text, VARIADIC parameters "any")
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'snowflake_as_owner' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_admin.as_owner(regclass, text) IS 'for queries that run a table''s code';
COMMENT ON FUNCTION snowflake_admin.as_owner(regclass, text, "any") IS
'for queries with parameters that run a table''s code';

-- Execute a command of any kind in the same way.  Returns how many rows the command has processed.
CREATE FUNCTION snowflake_admin.do_as_owner(owner_of regclass, command text) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_do_as_owner' LANGUAGE C VOLATILE PARALLEL UNSAFE;

-- The same for a command with the parameters $1, $2 and so on
CREATE FUNCTION snowflake_admin.do_as_owner(owner_of regclass, command text, VARIADIC parameters "any")
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_do_as_owner' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_admin.do_as_owner(regclass, text) IS 'for commands that run a table''s code';
COMMENT ON FUNCTION snowflake_admin.do_as_owner(regclass, text, "any") IS
'for commands with parameters that run a table''s code';

-- A command as it is shown to a caller who will paste it.  Where the caller has the rights of the table's
-- owner, but is another role, the pasted command runs as the owner.  Since 16, it fails if the caller has
-- these rights but may not SET ROLE.
CREATE FUNCTION snowflake_admin.pasteable(command text, owner_of regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN relowner <> caller() AND pg_has_role(relowner, 'USAGE')
		THEN format('SELECT snowflake_admin.do_as_owner(%L, %L)', owner_of::text, command) ELSE command END
	FROM pg_class WHERE oid = owner_of
$$;
COMMENT ON FUNCTION snowflake_admin.pasteable IS 'for showing commands that run a table''s code';

-- The triggers of a table whose functions its owner may not execute, so that no other table could
-- get them as the owner.  Partitions get those that fire for each row.
CREATE FUNCTION snowflake_admin.forbidden_triggers(tab regclass)
RETURNS TABLE (trigger name, for_each_row boolean, function regprocedure, owner regrole)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT tgname, tgtype & 1 <> 0, tgfoid::regprocedure, relowner::regrole
	FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
	WHERE tgrelid = tab AND NOT tgisinternal AND NOT has_function_privilege(relowner, tgfoid, 'EXECUTE')
$$;
COMMENT ON FUNCTION snowflake_admin.forbidden_triggers IS 'for triggers that a partition could not get';

-- An error unless the caller may do what the owner of each of these tables may do
CREATE FUNCTION snowflake_admin.require_owner(tables regclass[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	lacking regclass := (
		SELECT oid FROM pg_class WHERE oid = ANY (tables)
			AND NOT (pg_has_role(relowner, 'USAGE') AND pg_has_role(relowner,
				CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END))
		ORDER BY array_position(tables, oid::regclass) LIMIT 1);
BEGIN
	IF lacking IS NOT NULL THEN
		RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', lacking);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_owner IS 'for refusing a caller who could not do what a command does';

-- An error unless all tables of a chain of foreign keys have the owner of the first one.
-- REFERENCES on a table lets another role put its own table, with its own triggers, into the
-- chain.  PostgreSQL's ON UPDATE CASCADE changes that table as that role.  A command that
-- changes all tables in one statement cannot.
CREATE FUNCTION snowflake_admin.require_one_owner(tables regclass[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	other record;
BEGIN
	SELECT oid::regclass AS tab, relowner::regrole AS owner,
		(SELECT relowner::regrole FROM pg_class WHERE oid = tables[1]) AS expected
	INTO other
	FROM pg_class
	WHERE oid = ANY (tables) AND relowner <> (SELECT relowner FROM pg_class WHERE oid = tables[1])
	ORDER BY array_position(tables, oid::regclass) LIMIT 1;
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s, whose foreign keys lead to table %s, has another owner', other.tab, tables[1]),
			DETAIL = format('It belongs to %1$s, and table %2$s to %3$s. Its triggers would run with the rights '
				'of %3$s.', other.owner, tables[1], other.expected),
			HINT = format('Give both tables one owner, or drop the foreign key of table %s first and add it '
				'again afterwards.', other.tab);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_one_owner IS
'for refusing to run the code of a table as another table''s owner';

-- The expressions and conditions of indexes as PostgreSQL stores them
CREATE FUNCTION snowflake_admin.index_trees(indexes oid[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT string_agg(concat(indexprs, ' ', indpred), ' ') FROM pg_index WHERE indexrelid = ANY (indexes)
$$;
COMMENT ON FUNCTION snowflake_admin.index_trees IS 'for looking for constants in the expressions of indexes';

-- An error if stored expressions, which a command of the caller's repeats as text, have a
-- constant of a type that is not PostgreSQL's own.  "what" names the object that has them.  To the
-- owner of the table, no such constant is an error.
--
-- While PostgreSQL parses a command, it makes constants of texts, as the role that gives the
-- command.  For a type that somebody has made, this may run a function of that type's owner, such
-- as the CHECK of a domain of which the type is an array.
CREATE FUNCTION snowflake_admin.require_plain_constants(owner_of regclass, trees text, what text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	strange record;
BEGIN
	SELECT typ.oid::regtype AS type, relowner::regrole AS owner INTO strange
	FROM pg_class, regexp_matches(trees, ':consttype (\d+)', 'g') AS constant (type)
	JOIN pg_type AS typ ON typ.oid = constant.type[1]::oid
	WHERE pg_class.oid = owner_of AND relowner <> caller()
		AND typnamespace <> 'pg_catalog'::regnamespace
	LIMIT 1;
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('%s has a constant of type %s', what, strange.type),
			DETAIL = 'Whoever creates it again may run code of the owner of that type.',
			HINT = format('Let the owner of the table, %s, call this.', strange.owner);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_plain_constants IS
'for refusing expressions that would run code while a command is parsed';
