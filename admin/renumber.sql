/* admin/renumber.sql */

-- CALL snowflake_renumber(): new IDs for the rows that have a shard's IDs of a span, and for
-- all that refer to them.  CALL snowflake_renumber_schema() does this for one table after the other:
--
--     1. plan: the key, all that refers to it, the statements of a batch, the list of old and new
--     2. look at all rows once and, if there are any, create the list and mark it with this call
--     3. change batch after batch, each in one transaction; a round ends at the last row
--     4. begin another round while rows were locked, until as many rounds in a row as there are
--        tries have changed nothing
--     5. remove the mark, and say how many rows were changed, and whether new ones have come since
--
-- A call that is interrupted is called again, also in a copy of the database: the rows that still have
-- the shard are those that are left to do.
--
-- All tables have one owner, as whom every statement runs that reads or changes one of them
-- or the list.  The caller only reads the catalogs, locks the tables and creates the list,
-- which runs no code of the tables.  Changes nothing that generates IDs, and knows no shard but those
-- of the rows.

-- The columns of a chain without an index that begins with them, and the commands that create one.
-- Without it each batch would read the whole table.
CREATE FUNCTION snowflake_admin.renumber_indexes(tab regclass, col name)
RETURNS TABLE (rel regclass, name name, command text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT rel, name, format('CREATE INDEX %sON %s (%I)',
		CASE WHEN relkind <> 'p' THEN 'CONCURRENTLY ' END, rel, name)
	FROM chain(tab, col) JOIN pg_class AS t ON t.oid = rel
	JOIN pg_attribute ON attrelid = rel AND attname = name
	WHERE attgenerated = '' AND attidentity <> 'a' AND NOT EXISTS (
		SELECT FROM pg_index JOIN pg_class AS i ON i.oid = indexrelid JOIN pg_am ON pg_am.oid = i.relam
		WHERE indrelid = rel AND indisvalid AND indkey[0] = attnum AND amname IN ('btree', 'hash')
			AND (indpred IS NULL OR pg_get_expr(indpred, indrelid) = format('(%I IS NOT NULL)', name)))
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_indexes IS 'for finding columns that need an index';

-- What is in the way of new IDs, if anything is.  A foreign key that is ON UPDATE SET NULL could
-- set a column to NULL if another session makes a row refer to an ID just while that changes.
CREATE FUNCTION snowflake_admin.renumber_obstacle(tab regclass, col name)
RETURNS TABLE (problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH found AS MATERIALIZED (
		SELECT f.*, relispartition, attnum, attgenerated <> '' OR attidentity = 'a' AS is_generated
		FROM chain(tab, col) AS f
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
	FROM renumber_indexes(tab, col)
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
COMMENT ON FUNCTION snowflake_admin.renumber_obstacle IS 'for refusing tables whose IDs cannot change';

-- What would send the rows of every table of a schema to a subscriber, if anything would
CREATE FUNCTION snowflake_admin.renumber_sender(schema oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('publication %I', pubname) FROM pg_publication WHERE puballtables
	UNION ALL SELECT format('publication %I', pubname)
	FROM pg_publication JOIN pg_publication_namespace ON pnpubid = pg_publication.oid
	WHERE pnnspid = schema
	UNION ALL SELECT format('replication slot %I', slot_name) FROM pg_replication_slots
	WHERE slot_type = 'logical' AND database = current_database() AND plugin <> 'pgoutput'
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_sender IS 'for keeping the list from being sent to subscribers';

-- Why a table cannot be the list of another one, or NULL if it can.  A list has no code, which would
-- run for each batch.
CREATE FUNCTION snowflake_admin.renumber_list_fault(list regclass, list_of regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE
		WHEN l.relkind <> 'r' OR columns <> '{old bigint,new bigint}' THEN 'does not have the columns of a list'
		WHEN l.relowner <> t.relowner THEN format('table %s to %s', list_of, t.relowner::regrole)
		WHEN l.relrowsecurity THEN 'has row-level security'
		WHEN NOT EXISTS (SELECT FROM pg_index WHERE indrelid = list AND indisprimary AND indimmediate)
			THEN 'has no primary key'
		ELSE 'has ' || code END
	FROM pg_class AS l JOIN pg_class AS t ON t.oid = list_of
	CROSS JOIN LATERAL (SELECT ARRAY(
		SELECT format('%s %s', attname, format_type(atttypid, NULL)) FROM pg_attribute
		WHERE attrelid = list AND attnum > 0 AND NOT attisdropped ORDER BY attnum) AS columns) AS a
	LEFT JOIN LATERAL (
		SELECT format('trigger "%s"', tgname) AS code FROM pg_trigger WHERE tgrelid = list AND NOT tgisinternal
		UNION ALL SELECT format('rule "%s"', rulename) FROM pg_rewrite WHERE ev_class = list
		UNION ALL SELECT 'a default' FROM pg_attrdef WHERE adrelid = list
		-- PostgreSQL 18 has constraints for NOT NULL.
		UNION ALL SELECT format('constraint "%s"', conname) FROM pg_constraint
		WHERE conrelid = list AND contype NOT IN ('p', 'n')
		UNION ALL SELECT format('index "%s"', indexrelid::regclass) FROM pg_index
		WHERE indrelid = list AND NOT indisprimary
		UNION ALL SELECT 'a parent or child table' FROM pg_inherits WHERE list IN (inhrelid, inhparent)
		LIMIT 1) AS c ON true
	WHERE l.oid = list
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_list_fault IS 'for refusing a table that only has the name of a list';

-- The name of the table that keeps old and new IDs, and the commands that create it, unless it
-- exists.  "sender" is what would send its rows.
--
-- It belongs to the table's owner, and nobody else may read it: it shows all IDs.  The caller
-- creates it, because the owner may have no right to do so in the schema.
--
-- A subscriber stops at a row of a table that it lacks.  So where a publication or
-- a slot of another plugin would send the list, it is unlogged, as these send no
-- unlogged table.  Nothing but the list is lost when a crash empties it: the rows
-- that still have old IDs show what is left to do.
CREATE FUNCTION snowflake_admin.renumber_list(tab regclass, OUT list text, OUT commands text[], OUT sender text)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	schema oid;
	owner regrole;
	present record;
	fault text;
BEGIN
	SELECT relnamespace, relowner, format('%s.%I', relnamespace::regnamespace, with_suffix(relname, '_renumbered'))
	INTO schema, owner, list FROM pg_class WHERE oid = tab;
	sender := renumber_sender(schema);
	SELECT oid, relpersistence, relowner::regrole AS owner INTO present
	FROM pg_class WHERE oid = to_regclass(list);
	IF NOT FOUND THEN
		commands := ARRAY[format('CREATE %sTABLE %s (old bigint PRIMARY KEY, new bigint NOT NULL)',
				CASE WHEN sender IS NULL THEN '' ELSE 'UNLOGGED ' END, list)]
			|| ARRAY(SELECT revoke_defaults('r', schema, list, caller(), caller()))
			|| ARRAY(
				SELECT format('ALTER TABLE %s OWNER TO %s', list, owner)
				FROM pg_roles WHERE oid = owner AND oid <> caller());
		RETURN;
	END IF;
	fault := renumber_list_fault(present.oid, tab);
	IF fault IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('%s exists, and is not a list of old and new IDs', list),
			DETAIL = format('It belongs to %s, and %s.', present.owner, fault),
			HINT = 'Rename it, because the list has this name.';
	ELSIF present.relpersistence = 'p' AND sender IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('%s would send the rows of %s', sender, list),
			HINT = format('Rename that list, or make it unlogged: ALTER TABLE %s SET UNLOGGED', list);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_list IS 'for the list of old and new IDs';

-- Mark a list with a call, or remove the mark.  Other lines of its comment stay.
CREATE FUNCTION snowflake_admin.renumber_mark_list(tab regclass, list text, mark text, ended boolean, tries integer,
	dry_run boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	rel regclass := to_regclass(list);
	lines text[] := coalesce(string_to_array(obj_description(rel, 'pg_class'), E'\n'), '{}');
BEGIN
	IF (mark = ANY (lines)) = ended THEN
		lines := CASE WHEN ended THEN array_remove(lines, mark) ELSE lines || mark END;
		PERFORM run(ARRAY[format('COMMENT ON TABLE %s IS %L', list, nullif(array_to_string(lines, E'\n'), ''))],
			array_remove(ARRAY[rel], NULL), tries, dry_run, mode => NULL, owner_of => tab);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_mark_list IS 'for finding calls that have not ended';

-- The default of a column, its own or that of its domain
CREATE FUNCTION snowflake_admin.renumber_default(tab regclass, col name) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT pg_get_expr(coalesce(adbin, typdefaultbin), coalesce(adrelid, 0))
	FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
	LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
	WHERE attrelid = tab AND attname = col
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_default IS 'for generating new IDs as the table does';

-- The columns of a table that could be the one with its IDs, the likeliest first: one that next_id()
-- fills, or one of the primary key.  "rivals" counts those that are as likely, itself included.
CREATE FUNCTION snowflake_admin.renumber_candidates(tab regclass)
RETURNS TABLE (col name, column_default text, sequence regclass, is_identity boolean, rivals bigint)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT attname, renumber_default(attrelid, attname), f.sequence, attidentity <> '',
		count(*) OVER (PARTITION BY calls, is_primary)
	FROM pg_attribute
	CROSS JOIN LATERAL (
		SELECT bool_or(indisprimary) AS is_primary, bool_or(indisunique) AS is_unique,
			bool_or(indkey[0] = attnum AND indpred IS NULL AND amname = 'btree') AS is_first
		FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
		WHERE indrelid = renumber_candidates.tab AND indisvalid AND attnum = ANY (indkey)) AS i
	CROSS JOIN LATERAL (
		SELECT bool_or(f.made_by = 'next_id') IS TRUE AS calls, min(f.sequence) AS sequence
		FROM filled() AS f WHERE f.tab = attrelid AND f.col = attnum) AS f
	WHERE attrelid = renumber_candidates.tab AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
		AND i.is_unique AND i.is_first AND is_id(base_type(atttypid))
	ORDER BY calls DESC, is_primary DESC, attnum
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_candidates IS 'for finding the column of IDs';

-- The column that holds the IDs of a table, what generates them, and their layout.  A unique
-- index must contain it, and one by which its rows are found must begin with it.
CREATE FUNCTION snowflake_admin.renumber_key(tab regclass, new_shard bigint, given_layout text, OUT col name,
	OUT column_default text, OUT layout text)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	key record;
BEGIN
	SELECT * INTO key FROM renumber_candidates(tab) LIMIT 1;
	col := key.col;
	column_default := key.column_default;
	layout := coalesce(given_layout, layout_of(column_default, key.sequence));
	IF col IS NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has no column of IDs', tab),
			DETAIL = 'It would be a bigint or snowflake in a unique index, and the first column of an index.';
	ELSIF key.rivals > 1 THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has %s columns that could be the one with the IDs', tab, key.rivals),
			HINT = 'Make one of them the primary key.';
	ELSIF key.is_identity OR column_default ~ '\mnextval\(' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('column "%s" of table %s gets its values from nextval(), not from next_id()',
				col, tab),
			DETAIL = 'Such values have no shard and no time.';
	ELSIF new_shard IS NULL AND column_default IS NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('column "%s" of table %s has no default that generates IDs', col, tab),
			HINT = 'Give it a default with next_id(), or give new_shard for new IDs that keep their time.';
	ELSIF layout IS NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('the sequence of column "%s" of table %s serves no built-in layout', col, tab),
			HINT = 'Give the layout, as in layout => ''twitter''.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_key IS 'for finding the column of IDs, or refusing the table';

-- The statement that changes the IDs $1 of a table to $2, with all columns that refer to them, and
-- returns how many rows have got one of the new IDs.
--
-- The rows change together with all that refer to them, so that foreign keys are satisfied at the
-- statement's end.  One row may be changed only once in a statement, so each table
-- has one UPDATE.  It runs with the caller's search_path, for the triggers' sake, and
-- names the schema even of operators.
CREATE FUNCTION snowflake_admin.renumber_change(tab regclass, col name, list text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH found AS (
		SELECT rel, name, CASE relkind WHEN 'p' THEN '' ELSE 'ONLY ' END || rel::text AS only_rel,
			count(*) OVER (PARTITION BY rel) = 1 AS alone,
			format('(SELECT l.new FROM %s AS l WHERE l.old OPERATOR(pg_catalog.=) t.%I)', list, name) AS new
		FROM chain(tab, col) JOIN pg_class ON oid = rel),
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
	FROM changes
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_change IS 'for composing the UPDATE of a batch';

-- The tables to work in, and the statements for a batch.  These are executed in later transactions,
-- so they name no function of "snowflake", but those of snowflake.sql.
--
--	find	the smallest ID > $1 and <= $2 of the shard
--	take	lock up to $3 such rows that nobody else has locked, and return their IDs
--	make	new IDs for the old ones, $1
--	change	change old IDs, $1, to new ones, $2
CREATE FUNCTION snowflake_admin.renumber_plan(tab regclass, shard bigint, new_shard bigint, given_layout text,
	OUT relations regclass[], OUT names text[], OUT list text, OUT create_list text[], OUT sender text, OUT col name,
	OUT column_default text, OUT source text, OUT layout text, OUT expression text, OUT find text, OUT take text,
	OUT make text, OUT change text)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	bad record;
	rows_of_shard text;
BEGIN
	SELECT k.col, k.column_default, k.layout INTO col, column_default, layout
	FROM renumber_key(tab, new_shard, given_layout) AS k;
	relations := tab || ARRAY(SELECT DISTINCT c.rel FROM chain(tab, col) AS c
		WHERE c.rel <> tab);
	names := relations::text[];
	PERFORM require_no_engine('snowflake_renumber()', relations);
	PERFORM require_one_owner(relations);
	SELECT * INTO bad FROM renumber_obstacle(tab, col);
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING MESSAGE = bad.problem, HINT = bad.remedy;
	END IF;
	SELECT l.list, l.commands, l.sender INTO list, create_list, sender
	FROM renumber_list(tab) AS l;
	SELECT CASE relkind WHEN 'p' THEN '' ELSE 'ONLY ' END || tab::text INTO source
	FROM pg_class WHERE oid = tab;

	rows_of_shard := format('FROM %1$s AS t WHERE t.%2$I > $1 AND t.%2$I <= $2'
		' AND snowflake_admin.shard_of(t.%2$I::bigint, %3$L::text) = %4$s', source, col, layout, shard);
	-- The tick and the sequence number of an ID belong to one row of its shard, so with a
	-- shard that nobody has used they are free.
	expression := CASE WHEN new_shard IS NULL THEN column_default
		ELSE format('snowflake_admin.with_shard(t.%I::bigint, %s::bigint, %L::text)', col, new_shard, layout) END;
	find := format('SELECT min(t.%I) %s', col, rows_of_shard);
	take := format('SELECT array_agg(id) FROM (SELECT t.%I::bigint AS id %s'
		' ORDER BY t.%1$I LIMIT $3 FOR UPDATE SKIP LOCKED) AS t', col, rows_of_shard);
	make := format('SELECT ARRAY(SELECT (%s)::bigint FROM (SELECT old AS %I FROM unnest($1) '
		'WITH ORDINALITY AS u (old, n) ORDER BY n) AS t)', expression, col);
	change := renumber_change(tab, col, list);
END
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_plan IS 'for composing the statements of all batches';

-- Look at all rows once, and create and mark the list if there are any to change: "total" rows with
-- IDs above "lowest" and up to "last".  IDs above "last", and up to "highest", come later than this
-- look, and are not followed, so that there is an end.
CREATE FUNCTION snowflake_admin.renumber_look(tab regclass, plan record, mark text, shard bigint, new_shard bigint,
	since timestamptz, until timestamptz, tries integer, dry_run boolean, OUT lowest bigint, OUT last bigint,
	OUT highest bigint, OUT total bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET row_security = off AS $$
DECLARE
	taken bigint;
BEGIN
	-- An error if the layout has no such shard
	PERFORM compose(now(), s, to_layout(plan.layout)) FROM unnest(ARRAY[shard, new_shard]) AS s;
	-- Values of a former serial would be IDs of the layout's first day.
	SELECT bound(greatest(since, bound_time(0, l) + interval '24 hours'), l) - 1,
		coalesce(bound(until, l) - 1, 9223372036854775807)
	INTO lowest, highest FROM to_layout(plan.layout) AS l;
	IF new_shard IS NULL THEN
		lowest := greatest(lowest, present_id(plan.layout));
	END IF;
	SELECT l.id INTO last FROM as_owner(tab,
		format('SELECT max(t.%I) FROM %s AS t WHERE t.%1$I <= $1', plan.col, plan.source), highest) AS l (id bigint);
	SELECT f.total, f.taken INTO total, taken FROM as_owner(tab,
		format('SELECT count(*), min(n.%1$I) FROM %2$s AS t LEFT JOIN %2$s AS n ON n.%1$I = %3$s
				WHERE t.%1$I > $1 AND t.%1$I <= $2 AND snowflake_admin.shard_of(t.%1$I::bigint, %4$L::text) = $3',
			plan.col, plan.source, CASE WHEN new_shard IS NULL THEN 'NULL' ELSE plan.expression END,
			plan.layout),
		lowest, last, shard) AS f (total bigint, taken bigint);
	IF taken IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s already has an ID that another row would get: %s', tab, taken),
			HINT = format('Shard %s was used at these times. Choose a shard that no database has ever used.', new_shard);
	ELSIF total > 0 THEN
		IF plan.create_list IS NOT NULL THEN
			IF plan.sender IS NOT NULL THEN
				RAISE NOTICE '% is unlogged, because % would send it otherwise; a crash of the server empties it',
					plan.list, plan.sender;
			END IF;
			PERFORM run(plan.create_list, '{}', tries, dry_run);
		END IF;
		PERFORM renumber_mark_list(tab, plan.list, mark, false, tries, dry_run);
		RAISE NOTICE '%; -- for each batch of old IDs, $1, and new ones, $2', plan.change;
		IF dry_run THEN
			RAISE NOTICE '% rows of % would get new IDs', total, tab;
		END IF;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_look IS 'for the first look at the rows';

-- Lock the tables and the list until the transaction ends, and see that they are still those
-- of the plan, and one owner's, and that the IDs are generated as the plan says.  Since the last
-- transaction somebody else could have put another table in the place of one of them, or moved
-- the key.  lock() takes SHARE UPDATE EXCLUSIVE first, so no vacuum runs during a batch: an autovacuum
-- that is running is ended, as try_locks() says, and any other is waited for.  Between batches they
-- can run.
CREATE FUNCTION snowflake_admin.renumber_lock(plan record, tries integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	tab regclass := plan.relations[1];
	present record;
BEGIN
	PERFORM keep_snowflake();
	PERFORM lock(plan.relations || to_regclass(plan.list), tries, false, 'ROW EXCLUSIVE');
	IF plan.relations::text[] = plan.names THEN
		PERFORM require_owner(ARRAY[tab]);
		PERFORM require_one_owner(plan.relations);
		SELECT * INTO present FROM renumber_list(tab);
		IF present.commands IS NULL AND renumber_default(tab, plan.col) IS NOT DISTINCT FROM plan.column_default THEN
			RETURN;
		END IF;
	END IF;
	RAISE object_not_in_prerequisite_state USING
		MESSAGE = format('table %s, one that refers to it, or %s was changed, renamed or dropped by a concurrent transaction',
			plan.names[1], plan.list),
		HINT = 'Call it again for the rest.';
END
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_lock IS 'for the locks of a batch';

-- Change one batch: the first "size" rows after the ID "after" that nobody else has locked.  Returns
-- after which ID the next batch begins, or NULL if no row is left in this round, how many rows that
-- takes, how many rows are "done", and what kept this from changing them.
--
-- The rows are locked before the statement that changes them begins, so that it
-- sees every row that refers to them: a foreign key's check needs a lock that
-- conflicts.  A row elsewhere that somebody holds, or that has come to a row
-- further down a chain of references, ends the try.  The next one is smaller,
-- and a row with which even a batch of one fails is left for the next round.
--
-- This waits for others so briefly that nobody who waits for it waits long enough
-- to look for a deadlock.  Nor may they wait for a compiler, or for a scan of a
-- table that the planner thinks is small.
CREATE FUNCTION snowflake_admin.renumber_batch(plan record, callers_path text, future boolean, batch integer,
	last bigint, INOUT after bigint, INOUT size integer, OUT done integer, OUT trouble text)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET row_security = off SET lock_timeout = '20ms'
	SET jit = off SET enable_seqscan = off AS $$
DECLARE
	tab regclass := plan.relations[1];
	old_ids bigint[];
	new_ids bigint[];
	changed bigint;
BEGIN
	done := 0;
	IF future THEN
		after := greatest(after, present_id(plan.layout));
	END IF;
	BEGIN
		SELECT t.ids INTO old_ids FROM as_owner(tab, plan.take, after, last, size) AS t (ids bigint[]);
		IF old_ids IS NULL THEN
			after := NULL;
			RETURN;
		END IF;
		SELECT m.ids INTO new_ids FROM as_owner(tab, plan.make, old_ids) AS m (ids bigint[]);
		IF future THEN
			IF present_id(plan.layout) < (SELECT max(new) FROM unnest(new_ids) AS u (new)) THEN
				RAISE object_not_in_prerequisite_state USING
					MESSAGE = format('the default of table %s generates future-dated IDs, too', tab),
					HINT = 'SELECT * FROM snowflake_check() shows how it gets IDs of the present again.';
			END IF;
		END IF;
		PERFORM do_as_owner(tab, format('INSERT INTO %s AS l
			SELECT DISTINCT ON (old) old, new FROM unnest($1, $2) AS u (old, new)
			ON CONFLICT (old) DO UPDATE SET new = excluded.new', plan.list), old_ids, new_ids);
		-- From here on, no name is looked up but those of triggers and the like.  Those that
		-- are deferred would run at COMMIT, not as the owner, so PostgreSQL refuses them.
		PERFORM set_config('search_path', callers_path, true);
		SET CONSTRAINTS ALL IMMEDIATE;
		SELECT c.rows INTO changed
		FROM snowflake_admin.as_owner(tab, plan.change, old_ids, new_ids) AS c (rows bigint);
		PERFORM pg_catalog.set_config('search_path', 'pg_catalog, snowflake_admin, pg_temp', true);
		IF changed < cardinality(old_ids) THEN
			RAISE object_not_in_prerequisite_state USING
				MESSAGE = format('%s of %s rows kept their IDs',
					cardinality(old_ids) - changed, cardinality(old_ids)),
				HINT = format('A trigger or a rule of %s must have prevented the UPDATE.', tab);
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
COMMENT ON FUNCTION snowflake_admin.renumber_batch IS 'for changing one batch';

-- A round has come to its end.  Returns after which ID the next one begins, or NULL if no row is left.
-- "idle" counts the last rounds that have changed nothing, because somebody has locked the rows.
-- After such a round this pauses, or if they are as many as "tries", raises an error.
CREATE FUNCTION snowflake_admin.renumber_next_round(plan record, lowest bigint, last bigint, future boolean,
	idle integer, tries integer, trouble text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET row_security = off AS $$
DECLARE
	blocker record;
	next_id bigint;
BEGIN
	SELECT f.id INTO next_id FROM as_owner(plan.relations[1], plan.find, greatest(lowest,
		CASE WHEN future THEN present_id(plan.layout) END), last) AS f (id bigint);
	IF next_id IS NOT NULL AND idle >= tries THEN
		SELECT * INTO blocker FROM blocker(plan.relations, 'RowShareLock');
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
COMMENT ON FUNCTION snowflake_admin.renumber_next_round IS 'for what happens between two rounds';

-- Say how many rows have new IDs, which rows have not, and whether others have come since
CREATE FUNCTION snowflake_admin.renumber_end(plan record, shard bigint, done bigint, last bigint,
	highest bigint, future boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp SET row_security = off AS $$
DECLARE
	later bigint;
	child regclass;
BEGIN
	RAISE NOTICE '% rows of % have new IDs%', done, plan.relations[1],
		CASE WHEN done > 0 THEN format('; %s keeps old and new', plan.list) ELSE '' END;
	SELECT f.id INTO later FROM as_owner(plan.relations[1], plan.find, greatest(last, 0,
		CASE WHEN future THEN present_id(plan.layout) END), highest) AS f (id bigint);
	IF later IS NOT NULL THEN
		RAISE WARNING 'table % still gets IDs of shard %, such as %', plan.relations[1], shard, later
			USING HINT = 'SELECT * FROM snowflake_uses() shows what generates them. If that has another shard, '
				'older sessions generate them: end those. Then call it again.';
	END IF;
	FOR child IN SELECT inhrelid::regclass FROM pg_inherits JOIN pg_class ON oid = inhrelid
		WHERE inhparent = plan.relations[1] AND NOT relispartition ORDER BY 1 LOOP
		RAISE WARNING 'table % inherits from %, and its rows have kept their IDs', child, plan.relations[1]
			USING HINT = 'Call it for that table, too.';
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_end IS 'for the last messages';

-- An error unless the arguments of a call fit together.  The times of a call that goes on, as one of
-- the tables is marked with it, may have passed since it was first called.
CREATE FUNCTION snowflake_admin.renumber_require(tables regclass[], shard bigint, new_shard bigint, since timestamptz,
	until timestamptz, layout text, batch integer) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	this_mark text := renumber_mark(shard, new_shard, since, until, layout);
BEGIN
	IF shard IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'shard must not be null';
	ELSIF new_shard = shard THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('new shard %s is the old one', new_shard),
			HINT = 'Choose a shard that no database has ever used, or leave it out to get IDs of the present.';
	ELSIF coalesce(batch, 0) < 1 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('batch %s is not positive', coalesce(batch::text, 'NULL'));
	ELSIF since >= until THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('no ID is from %s on and before %s', since, until);
	ELSIF new_shard IS NULL AND least(since, until) <= now()
		AND NOT EXISTS (SELECT FROM renumber_marks(tables) AS m WHERE m.mark = this_mark) THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('without new_shard, only future-dated rows get new IDs, but %s is past',
				least(since, until)),
			HINT = 'Give new_shard for IDs that keep their time, or leave the times out for all '
				'future-dated rows.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_require IS 'for validating arguments';

-- Renumber the rows of one table, or show how.  It ends with a transaction that is still open.
CREATE PROCEDURE snowflake_admin.renumber_table(tab regclass, shard bigint, new_shard bigint, since timestamptz,
	until timestamptz, layout text, batch integer, dry_run boolean, tries integer, callers_path text)
LANGUAGE plpgsql AS $$
DECLARE
	mark pg_catalog.text;
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
	PERFORM require_owner(ARRAY[tab]);
	PERFORM take_turn('snowflake_renumber()', ARRAY[tab], false);
	-- Until the mark is there, the lock keeps out commands that would refuse a table with it.  Vacuums
	-- and builds of indexes, too, wait for the first look at all rows.
	IF dry_run THEN
		PERFORM keep_names(ARRAY[tab], tries);
	ELSE
		PERFORM lock(ARRAY[tab], tries, false);
	END IF;
	SELECT * INTO plan FROM renumber_plan(tab, shard, new_shard, layout);
	mark := renumber_mark(shard, new_shard, since, until, layout);
	SELECT * INTO look FROM renumber_look(tab, plan, mark, shard, new_shard, since, until, tries, dry_run);
	IF dry_run THEN
		RETURN;
	END IF;
	begun := clock_timestamp();
	reported := begun;
	SELECT look.lowest AS after, batch AS size INTO step;
	WHILE look.total > 0 AND step.after IS NOT NULL LOOP
		CALL next_transaction();
		PERFORM take_turn('snowflake_renumber()', ARRAY[tab], true);
		reported := progress(format('renumbering %s', tab), done, look.total, begun, reported);
		PERFORM renumber_lock(plan, tries);
		SELECT * INTO step FROM renumber_batch(
			plan, callers_path, new_shard IS NULL, batch, look.last, step.after, step.size);
		done := done + step.done;
		trouble := coalesce(step.trouble, trouble);
		IF step.after IS NULL THEN
			CALL next_transaction();
			PERFORM take_turn('snowflake_renumber()', ARRAY[tab], true);
			PERFORM renumber_lock(plan, tries);
			idle := CASE WHEN done > done_before THEN 0 ELSE idle + 1 END;
			done_before := done;
			step.after := renumber_next_round(
				plan, look.lowest, look.last, new_shard IS NULL, idle, tries, trouble);
		END IF;
	END LOOP;
	PERFORM renumber_mark_list(tab, plan.list, mark, true, tries, false);
	PERFORM renumber_end(plan, shard, done, look.last, look.highest, new_shard IS NULL);
END
$$;
COMMENT ON PROCEDURE snowflake_admin.renumber_table IS 'for renumbering the rows of one table';

-- The command for one table
CREATE PROCEDURE @extschema@.snowflake_renumber(tab regclass, shard bigint, new_shard bigint DEFAULT NULL,
	since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL, layout snowflake_layout DEFAULT NULL,
	batch integer DEFAULT 500, dry_run boolean DEFAULT false, tries integer DEFAULT 30)
LANGUAGE plpgsql AS $$
DECLARE
	callers_path pg_catalog.text;
BEGIN
	callers_path := pg_catalog.current_setting('search_path');
	CALL snowflake_admin.begin_command('snowflake_renumber()');
	IF tab IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'tab must not be null';
	END IF;
	PERFORM renumber_require(ARRAY[tab], shard, new_shard, since, until, layout::text, batch);
	CALL renumber_table(tab, shard, new_shard, since, until, layout::text, batch, dry_run, tries, callers_path);
	CALL snowflake_admin.end_command();
END
$$;
COMMENT ON PROCEDURE @extschema@.snowflake_renumber(
	regclass, bigint, bigint, timestamptz, timestamptz, snowflake_layout, integer, boolean, integer) IS
'give rows with IDs of a shard new ones, and change all that refer to them';

-- The tables of a schema with columns that next_id() fills.  A table whose column refers to that of
-- another one gets new IDs with that one.
CREATE FUNCTION snowflake_admin.renumber_tables(schema name) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH keys AS MATERIALIZED (
		SELECT DISTINCT tab, attname AS name
		FROM filled(ARRAY(
			SELECT pg_class.oid FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
			WHERE nspname = schema AND relkind IN ('r', 'p') AND NOT relispartition AND relpersistence <> 't'))
		JOIN pg_attribute ON attrelid = tab AND attnum = col
		WHERE made_by = 'next_id'
	)
	SELECT tab::regclass FROM keys WHERE (tab, name) NOT IN (
		SELECT from_rel, from_name FROM references_between() AS r JOIN keys AS k ON k.tab = r.rel AND k.name = r.name
		WHERE from_rel <> r.rel)
	GROUP BY tab ORDER BY tab::regclass::text COLLATE "C"
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_tables IS 'for renumbering each table of a schema once';

-- Those of these tables that can be renumbered.  Each of the others is named by a warning, which
-- says why.
CREATE FUNCTION snowflake_admin.renumber_possible(tables regclass[], shard bigint, new_shard bigint) RETURNS regclass[]
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	possible regclass[] := '{}';
	target regclass;
	detail text;
	hint text;
BEGIN
	FOREACH target IN ARRAY tables LOOP
		BEGIN
			PERFORM require_owner(ARRAY[target]);
			PERFORM renumber_plan(target, shard, new_shard, NULL);
			possible := possible || target;
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
			PERFORM warn_of_error(format('%s keeps its IDs: %s', target, SQLERRM), SQLSTATE, detail, hint);
		END;
	END LOOP;
	RETURN possible;
END
$$;
COMMENT ON FUNCTION snowflake_admin.renumber_possible IS 'for leaving out tables that cannot be renumbered';

-- The command for all tables of a schema, one after the other.  What cannot be renumbered is known
-- before the first one.  An error later ends the command, because what commits cannot catch it, and
-- another call finds nothing to do in the tables that are done.
CREATE PROCEDURE @extschema@.snowflake_renumber_schema(schema name, shard bigint, new_shard bigint DEFAULT NULL,
	since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL, dry_run boolean DEFAULT false,
	tries integer DEFAULT 30)
LANGUAGE plpgsql AS $$
DECLARE
	callers_path pg_catalog.text;
	tables pg_catalog.regclass[];
	possible pg_catalog.regclass[];
	target pg_catalog.regclass;
BEGIN
	callers_path := pg_catalog.current_setting('search_path');
	CALL snowflake_admin.begin_command('snowflake_renumber_schema()');
	PERFORM require_schema(schema);
	tables := ARRAY(SELECT renumber_tables(schema));
	PERFORM renumber_require(tables, shard, new_shard, since, until, NULL, 500);
	possible := renumber_possible(tables, shard, new_shard);
	FOREACH target IN ARRAY possible LOOP
		CALL next_transaction();
		CALL renumber_table(target, shard, new_shard, since, until, NULL, 500, dry_run, tries, callers_path);
	END LOOP;
	RAISE NOTICE '% of % tables done', cardinality(possible), cardinality(tables);
	CALL snowflake_admin.end_command();
END
$$;
COMMENT ON PROCEDURE @extschema@.snowflake_renumber_schema(
	name, bigint, bigint, timestamptz, timestamptz, boolean, integer) IS
'give rows of all tables of a schema with IDs of a shard new ones, and change all that refer to them';
