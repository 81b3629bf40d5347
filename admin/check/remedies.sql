/* admin/check/remedies.sql */

-- Commands that several rows of snowflake_check() show.  Judges nothing.
--
-- A remedy is one statement, or sentences, the last of which ends with a period.  A statement may
-- end with a comment on a number N in it, without a period.  Whoever runs it does so later, beside
-- sessions that have gone on, so what it does must be right then: it looks again by itself, or is
-- right whatever has happened.

-- Give the future-dated rows of a shard new IDs, or first create an index that this needs.
CREATE FUNCTION snowflake_admin.renumber_command(tab regclass, col name, shard integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce((SELECT command FROM renumber_indexes(tab, col) ORDER BY command LIMIT 1),
		format('CALL @extschema@.snowflake_renumber(%L::regclass, %s::bigint, since => now() + interval ''1 s'')',
			tab, shard))
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_command IS 'for the remedy of future-dated rows';

-- Give a table a sequence of its own, with another shard.
CREATE FUNCTION snowflake_admin.move_command(tab regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('CALL @extschema@.snowflake_move(%L::regclass, shard => N::bigint, own_sequence => true) '
		'-- N is a number from your list that no server uses', tab)
$$;
COMMENT ON FUNCTION snowflake_admin.move_command IS 'for the remedy that gives a table another shard';

-- The default of a topmost parent's column, for a child that has another one
CREATE FUNCTION snowflake_admin.same_default(tab regclass, col name, root regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT pasteable(format('ALTER TABLE %s ALTER %I SET DEFAULT %s', tab, col, pg_get_expr(adbin, 0)), tab)
	FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
	WHERE adrelid = root AND attname = col AND tab <> root
$$;
COMMENT ON FUNCTION snowflake_admin.same_default IS
'for the remedy of a child table with another default than its parent';
