/* admin/check/remedies.sql */

-- What rows of snowflake_check() advise, and who can do it.  Judges nothing.
--
-- A remedy is one statement, or sentences, the last of which ends with a period.  A statement may
-- end with a comment on a number N in it, without a period.  Whoever runs it does so later, beside
-- sessions that have gone on, so what it does must be right then: it looks again by itself, or is
-- right whatever has happened.
--
--	CALL snowflake_set_back(), _renumber(), _move(), _widen(), _make_partitions(): look again
--		under their locks
--	SELECT snowflake_advance(): never moves a sequence back, nor to an ID that is far ahead
--	SELECT snowflake_alter_sequence(): refuses a sequence that has generated IDs
--	UPDATE of keys of nextval(): has its conditions in itself
--	SELECT snowflake_set_shard(N), ALTER SEQUENCE ... SET LOGGED, ALTER EXTENSION ... UPDATE, CREATE
--		INDEX: do no harm where they are not needed any more
--	GRANT, REVOKE: say all that they do, and change nothing but what a role may do
--
-- A default, which somebody may have changed meanwhile, is a matter for sentences, and so is what a
-- command would refuse.

-- 'Only ROLE, the owner of ..., can do this.' unless the caller has that role's rights
CREATE FUNCTION snowflake_admin.only_role(owner oid, of text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('Only %s, the owner of %s, can do this.', owner::regrole, of)
	WHERE NOT pg_has_role(owner, 'USAGE')
$$;
COMMENT ON FUNCTION snowflake_admin.only_role IS 'for saying who can do what a remedy says';

-- The same for the owner of a table or sequence
CREATE FUNCTION snowflake_admin.only_owner(relation regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT only_role(relowner, relation::text) FROM pg_class WHERE oid = relation
$$;
COMMENT ON FUNCTION snowflake_admin.only_owner IS 'for saying whose table or sequence a remedy changes';

-- The same for the owner of the database
CREATE FUNCTION snowflake_admin.only_database_owner() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT only_role(datdba, 'the database') FROM pg_database WHERE datname = current_database()
$$;
COMMENT ON FUNCTION snowflake_admin.only_database_owner IS 'for saying who sets the shard';

-- What keeps a command from doing what a remedy would have it do, as sentences in one line, or NULL.
-- "look" is how the command finds out, which changes nothing.  A lock is no reason: it will have gone.
CREATE FUNCTION snowflake_admin.refusal(command text, look text) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	detail text;
	hint text;
BEGIN
	EXECUTE look;
	RETURN NULL;
EXCEPTION
	WHEN lock_not_available THEN
		RETURN NULL;
	WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
		RETURN regexp_replace(concat_ws(' ', format('%s cannot do it yet: %s.', command, SQLERRM), nullif(detail, ''),
			nullif(hint, '')), '\s+', ' ', 'g') || CASE WHEN concat(detail, hint) ~ '[^.]$' THEN '.' ELSE '' END;
END
$$;
COMMENT ON FUNCTION snowflake_admin.refusal IS 'for remedies that would fail';

-- Give the future-dated rows of a shard new IDs, or those of another shard N, or first create the
-- indexes that this needs, a row for each.
CREATE FUNCTION snowflake_admin.renumber_remedy(tab regclass, col name, shard integer, layout snowflake_layout,
	to_new_shard boolean)
RETURNS TABLE (remedy text, who text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	remedy := CASE WHEN NOT has_shards(layout)
		THEN format('Give these rows new IDs. Those of layout %s have no shards, so snowflake_renumber() cannot.',
			layout)
		ELSE refusal('snowflake_renumber()', format('SELECT require_one_owner(ARRAY[%L::regclass] '
			'|| ARRAY(SELECT rel FROM chain(%1$L::regclass, %L)))', tab, col)) END;
	IF remedy IS NOT NULL THEN
		RETURN NEXT;
		RETURN;
	END IF;
	RETURN QUERY SELECT command, only_owner(rel) FROM renumber_indexes(tab, col) ORDER BY command;
	IF FOUND THEN
		RETURN;
	END IF;
	-- Which shard the new one is makes no difference here.
	remedy := coalesce(
		refusal('snowflake_renumber()', format('SELECT renumber_plan(%L::regclass, %L::bigint, %L::bigint, NULL)', tab,
			shard, CASE WHEN to_new_shard THEN shard END)),
		call_of('snowflake_renumber', tab, format(', %s::bigint, %ssince => now() + interval ''1 s''',
				shard, CASE WHEN to_new_shard THEN 'new_shard => N::bigint, ' END))
			|| CASE WHEN to_new_shard THEN ' -- N is a shard from your list that no database uses' ELSE '' END);
	who := only_owner(tab);
	RETURN NEXT;
END
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_remedy IS 'for the remedy of future-dated rows';

-- Let next_id() fill a column, with the arguments of snowflake_move() that follow the table, and the
-- comment that follows the call.
CREATE FUNCTION snowflake_admin.move_remedy(tab regclass, col name, arguments text, comment text DEFAULT '',
	OUT remedy text, OUT who text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(
		refusal('snowflake_move()', format('SELECT require_no_obstacle(%L::regclass, %L, '
			'CASE WHEN col <> %2$L THEN ''it is not in the primary key'' ELSE obstacle END) '
			'FROM table_key(%1$L::regclass)', tab, col)),
		call_of('snowflake_move', tab, arguments) || comment), only_owner(tab)
$$;
COMMENT ON FUNCTION snowflake_admin.move_remedy IS 'for the remedy that lets next_id() generate a key';

-- Give a table its own sequence, with another shard.
CREATE FUNCTION snowflake_admin.new_shard_remedy(tab regclass, col name, OUT remedy text, OUT who text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT * FROM move_remedy(tab, col,
		', shard => N::bigint, own_sequence => true', ' -- N is a shard from your list that no database uses')
$$;
COMMENT ON FUNCTION snowflake_admin.new_shard_remedy IS 'for the remedy that gives a table another shard';

-- Make a column a bigint.  What is in the way, snowflake_widen() tells only whoever may call it.
CREATE FUNCTION snowflake_admin.widen_remedy(tab regclass, col name, OUT remedy text, OUT who text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	who := only_owner(tab);
	IF who IS NULL THEN
		remedy := refusal('snowflake_widen()', format('SELECT widen_require(%L::regclass, %L, true)', tab, col));
	END IF;
	remedy := coalesce(remedy, call_of('snowflake_widen', tab, format(', %L::name', col)));
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_remedy IS 'for the remedy of a column that is too small';

-- The default of a topmost parent's column, for a child that has another one
CREATE FUNCTION snowflake_admin.same_default(tab regclass, col name, root regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('Let the default of %s.%I be that of %s: %s.', tab, col, root, pg_get_expr(adbin, 0))
	FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
	WHERE adrelid = root AND attname = col AND tab <> root
$$;
COMMENT ON FUNCTION snowflake_admin.same_default IS
'for the remedy of a child table with another default than its parent';
