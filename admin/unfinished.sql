/* admin/unfinished.sql */

-- Which commands have begun to change a table and not ended, by the marks that they leave meanwhile.
-- Each mark lasts through dump and restore, and pg_upgrade, and counts only if it is what the
-- command makes, and made by the table's owner or with his rights.  A command writes its marks and
-- removes them; what else is left to do, its own files know.
--
--     snowflake_widen()      a trigger that keeps a second column equal
--     snowflake_partition()  a CHECK by partition_limit()
--     snowflake_renumber()   a line in the comment of the list of old and new IDs
--
-- A command of several transactions can be interrupted between them, and another one that changes
-- the same table would leave it no way on, and none back.  So of the commands that change what a
-- table is, the one that comes later is refused.  Commands that change rows only, or make and drop
-- partitions, are not, and bar none but one: after snowflake_move_back(), keys would have no shard.

-- The body of a column's trigger function.  It looks up no name: the assignment takes
-- PostgreSQL's own cast.
CREATE FUNCTION snowflake_admin.widen_body(narrow name, wide name) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('BEGIN NEW.%I := NEW.%I; RETURN NEW; END', wide, narrow)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_body IS
'for creating the function that keeps two columns equal, and for recognizing it';

-- The new columns of a table, each with the trigger that keeps it equal to another one.  Whoever
-- has TRIGGER on a table can create a trigger, and whoever may create objects in its schema a
-- function, which would then run for each row that somebody writes.  So they count only if they
-- are what we make, and if the function's owner has the rights of the table's owner.
CREATE FUNCTION snowflake_admin.widen_pairs(tab regclass)
RETURNS TABLE (num smallint, wide name, wide_num smallint, func regproc, trig name)
LANGUAGE sql STABLE ROWS 1 SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT n.attnum, w.attname, w.attnum, p.oid::regproc, tgname
	FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
	JOIN pg_proc AS p ON p.oid = tgfoid JOIN pg_language AS l ON l.oid = prolang
	JOIN pg_attribute AS w ON w.attrelid = tgrelid AND w.attnum > 0 AND NOT w.attisdropped
	JOIN pg_attribute AS n ON n.attrelid = tgrelid AND n.attnum > 0 AND NOT n.attisdropped
		AND prosrc = widen_body(n.attname, w.attname)
	WHERE tgrelid = tab AND tgtype = 23 AND NOT tgisinternal AND tgnargs = 0 AND tgattr = '' AND tgqual IS NULL
		AND tgconstraint = 0 AND pg_has_role(proowner, relowner, 'USAGE') AND NOT prosecdef
		AND lanname = 'plpgsql' AND proconfig IS NULL AND prorettype = 'trigger'::regtype
		AND w.atttypid = 'bigint'::regtype AND NOT w.atthasdef AND w.attidentity = ''
$$;
COMMENT ON FUNCTION snowflake_admin.widen_pairs IS 'for finding what former calls have made, and nothing else';

-- The columns of tables, or of all, that calls of snowflake_widen() have begun to replace, each with
-- the one for which a call was: from all others, foreign keys lead to that one, directly or not.  Of
-- columns that refer to each other, it may be any.
CREATE FUNCTION snowflake_admin.widen_marks(tables regclass[])
RETURNS TABLE (tab regclass, key_of regclass, key name)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE marked AS MATERIALIZED (
		SELECT t.rel, p.num
		FROM unnest(coalesce(tables::oid[], ARRAY(SELECT DISTINCT tgrelid FROM pg_trigger WHERE NOT tgisinternal)))
			AS t (rel) CROSS JOIN LATERAL widen_pairs(rel) AS p
		WHERE (	-- looked up for each table, as no EXISTS is where PostgreSQL expects few functions of this kind
			SELECT true FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
			WHERE tgrelid = rel AND NOT tgisinternal AND prosrc LIKE 'BEGIN NEW.% := NEW.%; RETURN NEW; END' LIMIT 1)
	-- From each column to those to which it refers, and which are being replaced, too
	), ways (rel, num, child, child_num, parent, parent_num) AS (
		SELECT rel, num, NULL::oid, NULL::smallint, rel, num FROM marked
		UNION SELECT w.rel, w.num, w.parent, w.parent_num, confrelid, p.num
		FROM ways AS w CROSS JOIN LATERAL (	-- OFFSET has them looked up, where PostgreSQL expects few in all
			SELECT * FROM pg_constraint WHERE conrelid = w.parent AND contype = 'f' OFFSET 0) AS c
		CROSS JOIN LATERAL unnest(conkey, confkey) AS k (referring, referred)
		JOIN LATERAL widen_pairs(confrelid) AS p ON p.num = referred
		WHERE referring = w.parent_num
	)
	SELECT DISTINCT ON (rel, num) rel, parent, attname
	FROM ways JOIN pg_attribute ON attrelid = parent AND attnum = parent_num
	ORDER BY rel, num, (rel, num, parent, parent_num) IN (
		SELECT rel, num, child, child_num FROM ways WHERE (child, child_num) <> (parent, parent_num)), parent, parent_num
$$;
COMMENT ON FUNCTION snowflake_admin.widen_marks IS
'for finding what calls of snowflake_widen() have left half done';

-- The comment on the CHECK by partition_limit(): the arguments of the call that has made it
CREATE FUNCTION snowflake_admin.partition_comment(unit text, at timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('snowflake_partition() has not ended: unit => %L', unit)
		|| coalesce(', at => ' || quote_literal(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US+00')), '')
$$;
COMMENT ON FUNCTION snowflake_admin.partition_comment IS 'for showing the call that goes on';

-- Whether a table's CHECK by partition_limit() is valid, the column that it bounds, and the arguments
-- of the call that has made it, as literals, but not a time that is too near.  No row without it.  The
-- column is NULL if somebody has made a constraint of its name that says something else.
CREATE FUNCTION snowflake_admin.partition_mark(target regclass)
RETURNS TABLE (validated boolean, col name, unit text, at text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT convalidated, attname, call[1],
		CASE WHEN call[2] COLLATE "C" > quote_literal(to_char((now() + interval '10 min'
				+ least(time_setting('max_lead'), '31 days')) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'))
			THEN call[2] END
	FROM pg_constraint LEFT JOIN regexp_match(obj_description(pg_constraint.oid, 'pg_constraint'),
		'^snowflake_partition\(\) has not ended: unit => (''\w+'')(?:, at => (''[-\d :.+]+''))?$') AS call ON true
	LEFT JOIN pg_attribute ON attrelid = conrelid AND conkey = ARRAY[attnum] AND is_id(atttypid)
		AND replace(translate(pg_get_expr(conbin, conrelid), '()', ''), '::bigint', '')
			= translate(format('%I < partition_limit', attname), '()', '')
	WHERE conrelid = target AND contype = 'c' AND conname = 'snowflake_partition'
$$;
COMMENT ON FUNCTION snowflake_admin.partition_mark IS
'for finding the CHECK that marks a table which is to become a partition';

-- The line by which a call of snowflake_renumber() marks its list, and by which the same call knows
-- it again
CREATE FUNCTION snowflake_admin.renumber_mark(shard bigint, new_shard bigint, since timestamptz, until timestamptz,
	layout text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp
	SET timezone = 'UTC' SET datestyle = 'ISO' AS $$
	SELECT 'snowflake_renumber() has not ended: ' || concat_ws(', ', 'shard => ' || shard,
		'new_shard => ' || new_shard, 'since => ' || quote_literal(since::text),
		'until => ' || quote_literal(until::text), 'layout => ' || quote_literal(layout))
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_mark IS 'for the comment that marks a list of old and new IDs';

-- The calls of snowflake_renumber() that have not ended on a table, or on any, with their lists.  A
-- list has its table's schema, owner and, but for the suffix, name.  "others" tells whether its comment
-- has other lines.
CREATE FUNCTION snowflake_admin.renumber_marks(tables regclass[])
RETURNS TABLE (tab regclass, list regclass, mark text, shard text, new_shard text, since text, until text,
	layout text, others boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH names AS MATERIALIZED (
		SELECT with_suffix(relname, '_renumbered')::name AS name FROM pg_class WHERE oid = ANY (tables)
		UNION SELECT relname FROM pg_class WHERE tables IS NULL AND relname ~ '_renumbered$'
	), lists AS MATERIALIZED (
		SELECT c.oid, relname, relnamespace, relowner, description
		FROM names JOIN pg_class AS c ON relname = name AND relkind = 'r'
		JOIN pg_description ON objoid = c.oid AND classoid = 'pg_class'::regclass AND objsubid = 0
		WHERE description ~ 'snowflake_renumber\(\) has not ended'
	)
	SELECT t.oid, l.oid, call[1], call[2], call[3], call[4], call[5], call[6],
		description <> call[1]
	FROM lists AS l
	JOIN pg_class AS t ON t.relnamespace = l.relnamespace AND t.relowner = l.relowner AND t.relkind IN ('r', 'p')
		AND with_suffix(t.relname, '_renumbered') = l.relname
	CROSS JOIN regexp_matches(description, '^(snowflake_renumber\(\) has not ended: shard => (\d+)'
		'(?:, new_shard => (\d+))?(?:, since => ''([^'']+)'')?(?:, until => ''([^'']+)'')?'
		'(?:, layout => ''([^'']+)'')?)$', 'gn') AS call
	WHERE tables IS NULL OR t.oid = ANY (tables)
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_marks IS
'for finding what calls of snowflake_renumber() have left half done';

-- The commands that have not ended on tables or on their partitions, or on any: which others they
-- bar meanwhile, what they have begun to do, and how to go on or give up, by a statement or a
-- sentence.  One that is about another table has marked this one: what refers to its key, or its
-- partition.
CREATE FUNCTION snowflake_admin.unfinished(tables regclass[] DEFAULT NULL)
RETURNS TABLE (command text, tab regclass, marked regclass, bars text[], begun text, way_on text, way_back text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH all_changes (bars) AS (
		VALUES (ARRAY['snowflake_widen()', 'snowflake_partition()', 'snowflake_move()', 'snowflake_move_back()']))
	SELECT 'snowflake_widen()', key_of, tab, bars, format('to widen column %I', key),
		call_of('snowflake_widen', key_of, format(', %L::name', key)),
		call_of('snowflake_widen', key_of, format(', %L::name, undo => true', key))
	FROM widen_marks(tables), all_changes
	UNION ALL
	SELECT 'snowflake_partition()', coalesce(inhparent, conrelid)::regclass, conrelid::regclass, bars, 'to partition it',
		coalesce(call_of('snowflake_partition', conrelid, ', ' || unit || '::text'
				|| coalesce(', at => ' || CASE WHEN inhparent IS NULL THEN at END || '::timestamptz', '')),
			'Call snowflake_partition() again with its unit.'),
		CASE WHEN inhparent IS NULL
			THEN format('ALTER TABLE %s DROP CONSTRAINT snowflake_partition', conrelid::regclass) END
	FROM all_changes CROSS JOIN pg_constraint CROSS JOIN LATERAL partition_mark(conrelid) AS m
	LEFT JOIN pg_inherits ON inhrelid = conrelid
	WHERE conname = 'snowflake_partition' AND contype = 'c'
		AND (tables IS NULL OR conrelid = ANY (tables) OR inhparent = ANY (tables))
		AND col IS NOT NULL
	UNION ALL
	SELECT 'snowflake_renumber()', tab, tab, ARRAY['snowflake_move_back()'],
		format('to give rows of shard %s new IDs', shard),
		call_of('snowflake_renumber', tab, concat(', ', shard, '::bigint',
			', new_shard => ' || new_shard || '::bigint', ', since => ' || quote_literal(since) || '::timestamptz',
				', until => ' || quote_literal(until) || '::timestamptz', ', layout => ' || layout_literal(layout))),
		CASE WHEN others THEN format('take the line "%s" out of the comment on table %s', mark, list)
			ELSE format('COMMENT ON TABLE %s IS NULL', list) END
	FROM renumber_marks(tables)
$$;
COMMENT ON FUNCTION snowflake_admin.unfinished IS 'for finding the commands that have not ended';

-- An error if a command that bars this one has begun to change one of these tables and not ended,
-- unless it is this command, and the table one of its own.  The caller holds a lock of its tables until
-- its own mark is there, so that only one of two commands can begin.
CREATE FUNCTION snowflake_admin.require_no_other(command text, tables regclass[], related regclass[] DEFAULT '{}')
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	other record;
BEGIN
	SELECT u.* INTO other FROM unfinished(tables || related) AS u
	WHERE require_no_other.command = ANY (bars)
		AND (u.command <> require_no_other.command OR NOT (u.tab = ANY (tables) OR u.marked = ANY (tables))) LIMIT 1;
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('%s has begun to change table %s, and has not ended', other.command, other.tab),
			HINT = format('First: %s%s. Then call %s.', rtrim(other.way_on, '.'),
				', or to give up: ' || other.way_back, command);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_no_other IS 'for refusing a table that another command is changing';
