/* admin/unfinished.sql */

-- Which commands have begun to change a table and not ended, by what they leave in the table
-- meanwhile.  A command of several transactions can be interrupted between them, and another one
-- that changes the same table would leave it no way on, and none back.  So of the commands that
-- change what a table is, the one that comes later is refused.  Commands that change rows only, or
-- make and drop partitions, are not.  Knows nothing of what is left to do.
--
-- Only the owner of a table can add a column or a constraint.  So these marks are nobody else's.

-- The commands that have not ended on tables or on their partitions, and the way out.  A table that
-- has become a partition is marked, while the command is about its parent.
CREATE FUNCTION snowflake_admin.unfinished(tables regclass[])
RETURNS TABLE (command text, tab regclass, marked regclass, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT 'snowflake_widen()', attrelid::regclass, attrelid::regclass,
		'Call snowflake_widen() again until it ends, or with undo => true'
	FROM pg_attribute
	WHERE attrelid = ANY (tables) AND starts_with(attname, 'snowflake_widen_') AND NOT attisdropped
	UNION ALL
	SELECT 'snowflake_partition()', coalesce(inhparent, conrelid)::regclass, conrelid::regclass,
		'Call snowflake_partition() for it again until it ends' || CASE WHEN inhparent IS NULL
			THEN format(', or ALTER TABLE %s DROP CONSTRAINT snowflake_partition', conrelid::regclass) ELSE '' END
	FROM pg_constraint LEFT JOIN pg_inherits ON inhrelid = conrelid
	WHERE (conrelid = ANY (tables) OR inhparent = ANY (tables)) AND contype = 'c' AND conname = 'snowflake_partition'
$$;
COMMENT ON FUNCTION snowflake_admin.unfinished IS 'for finding the commands that have not ended on a table';

-- An error if a command has begun to change one of these tables and not ended, unless it is this
-- command, and the table one of its own.  The caller holds a lock of its tables until its own mark
-- is there, so that only one of two commands can begin.
CREATE FUNCTION snowflake_admin.require_no_other(command text, tables regclass[], related regclass[] DEFAULT '{}')
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	other record;
BEGIN
	SELECT u.* INTO other FROM unfinished(tables || related) AS u
	WHERE u.command <> require_no_other.command OR NOT (u.tab = ANY (tables) OR u.marked = ANY (tables)) LIMIT 1;
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('%s has begun to change table %s, and has not ended', other.command, other.tab),
			HINT = format('%s. Then call %s.', other.remedy, command);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_no_other IS 'for refusing a table that another command is changing';
