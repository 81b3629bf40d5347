/* admin/move_back.sql */

-- CALL snowflake_move_back() and snowflake_move_back_schema(): a key that an identity is to generate,
-- above every existing ID.  A move of a table is one transaction, the caller's; that of a schema is one
-- for each table:
--
--     1. keep others from changing the table and, for a superuser, from renaming the schemas
--     2. say which partitions will get the new rows
--     3. find the largest ID of a large table that has no index for it
--     4. lock the table, decide on the commands, run them and show them: the values keep to the
--        shard of the default
--
-- Knows nothing of what keeps a key from moving there.  What it refuses of keys of next_id(),
-- move_table_back() and table_key() say.

-- The sequence of a former serial, which the column still owns and which is unused, or NULL
CREATE FUNCTION snowflake_admin.unused_serial(target regclass, key_col name, used regclass) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH owned AS MATERIALIZED (	-- as is_needless() must see nothing but sequences
		SELECT seqrelid FROM pg_depend JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
		JOIN pg_sequence ON seqrelid = objid
		WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND deptype = 'a'
			AND attrelid = target AND attname = key_col AND objid <> used
	)
	SELECT seqrelid FROM owned WHERE is_needless(target, key_col, seqrelid::regclass) LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_admin.unused_serial IS 'for finding the sequence that an identity''s takes the place of';

-- The commands that let children take values of an identity's sequence.  A child that is no
-- partition gets no identity from its parent.  Chunks get rows through their hypertable alone.
CREATE FUNCTION snowflake_admin.child_commands(target regclass, key_col name, sequence text) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH children AS MATERIALIZED (
		SELECT oid::regclass AS child FROM family(target) JOIN pg_class ON oid = family
		WHERE oid <> target AND NOT relispartition AND NOT EXISTS (SELECT FROM engines(ARRAY[target]))
	)
	SELECT ARRAY(SELECT format('ALTER TABLE %s ALTER %I SET DEFAULT nextval(%L::regclass)', child, key_col, sequence)
			FROM children)
		|| ARRAY(SELECT sequence_grants(target, sequence, true) WHERE EXISTS (SELECT FROM children))
$$;
COMMENT ON FUNCTION snowflake_admin.child_commands IS 'for the children of a table whose key an identity generates';

-- The value from which an identity goes on: an ID of this shard, so that id_step() further is
-- the next one.  That one is above the largest ID of the table and, if IDs have a time, above
-- the last one of the sequence, which may have generated some for rows that are not there, and a
-- second ahead of the clock.
CREATE FUNCTION snowflake_admin.number_before(largest bigint, last_time timestamptz, shard bigint, layout text)
RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT own + greatest(0, (largest - own) / step) * step
	FROM id_at(greatest(last_time, clock_timestamp() + interval '1 s'), shard, layout) AS own, id_step(layout) AS step
$$;
COMMENT ON FUNCTION snowflake_admin.number_before IS
'for letting an identity begin above every existing ID, in its own shard';

-- An expression for the largest ID of a table.  If the table is large and has no index for it, it is
-- looked for here, before everybody is locked out, unless this is a dry run or the layout has no
-- time.  Who inserts meanwhile gets smaller IDs than the other bounds; without a time, only rows tell
-- the largest ID.
CREATE FUNCTION snowflake_admin.largest_expression(target regclass, key_col name, layout text, dry_run boolean)
RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN dry_run OR NOT has_time(to_layout(layout)) OR finds_maximum(target, key_col)
		THEN format('snowflake_admin.largest(%L, %L)', target, key_col)
		ELSE coalesce(largest(target, key_col)::text, 'NULL') END
$$;
COMMENT ON FUNCTION snowflake_admin.largest_expression IS 'for reading a large table while it is in use';

-- An expression for the value from which an identity goes on
CREATE FUNCTION snowflake_admin.last_number(shard bigint, layout text, used regclass, largest text) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF NOT has_time(to_layout(layout)) THEN
		RETURN format('snowflake_admin.number_before(%s, NULL, %s, %L)', largest, shard, layout);
	END IF;
	PERFORM last_time(used, layout);	-- an error already in a dry run
	RETURN format('snowflake_admin.number_before(%1$s, snowflake_admin.last_time(%2$L, %4$L), %3$s, %4$L)',
		largest, used, shard, layout);
END
$$;
COMMENT ON FUNCTION snowflake_admin.last_number IS 'for letting an identity begin above every existing ID';

-- An error if a key has the type of a domain with CHECKs, or of one based on such a domain.  No
-- domain can have an identity, and the CHECKs would go with the domain.
CREATE FUNCTION snowflake_admin.require_no_check(target regclass, key_col name, type regtype) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	checks text;
BEGIN
	WITH RECURSIVE domains (oid) AS (
		SELECT type::oid
		UNION ALL SELECT typbasetype FROM domains JOIN pg_type USING (oid) WHERE typbasetype <> 0
	)
	SELECT string_agg(format('%s of %s', pg_get_constraintdef(c.oid), contypid::regtype), ', ' ORDER BY conname)
	INTO checks FROM domains JOIN pg_constraint AS c ON contypid = domains.oid AND contype = 'c';
	IF checks IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('column %I of table %s is of domain %s, which an identity cannot have', key_col, target, type),
			DETAIL = format('With the domain, these constraints would be lost: %s.', checks),
			HINT = leave_domain(target, key_col);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_no_check IS 'for losing no constraint of a domain';

-- The commands that give a column an identity, in place of the sequence that next_id() has used.
-- Whoever else has a part of the table, with another shard, may still generate IDs of the times at which
-- the identity begins.  If it counted by one, its values would be IDs of every shard.
CREATE FUNCTION snowflake_admin.identity_commands(target regclass, key_col name, shard bigint, layout text,
	used regclass, largest text) RETURNS text[]
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	tab pg_class := (SELECT c FROM pg_class AS c WHERE oid = target);
	serial regclass := unused_serial(target, key_col, used);
	drops_used boolean := is_needless(target, key_col, used);
	sequence text := coalesce(serial::text, new_sequence(target, key_col));
	commands text[] := ARRAY[format('ALTER TABLE %s ALTER %I DROP DEFAULT', target, key_col)];
BEGIN
	IF serial IS NOT NULL THEN
		commands := commands || format('DROP SEQUENCE %s', serial);
	END IF;
	commands := commands
		|| format('ALTER TABLE %s ALTER %I ADD GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME %s INCREMENT %s)',
			target, key_col, sequence, id_step(layout))
		|| format('SELECT setval(%L::regclass, %s)', sequence,
			last_number(shard, layout, used, largest))
		|| ARRAY(SELECT revoke_defaults('S', tab.relnamespace, 'SEQUENCE ' || sequence, tab.relowner, tab.relowner))
		|| ARRAY(SELECT DISTINCT grant_commands(relacl, '', 'SEQUENCE ' || sequence)
			FROM pg_class WHERE oid = serial OR oid = used AND drops_used)
		|| child_commands(target, key_col, sequence);
	IF drops_used THEN
		commands := commands || format('DROP SEQUENCE %s', used);
	END IF;
	IF drops_used AND serial IS NULL THEN
		commands := commands || format('ALTER SEQUENCE %s RENAME TO %I', sequence,
			(SELECT relname FROM pg_class WHERE oid = used));
	END IF;
	RETURN commands;
END
$$;
COMMENT ON FUNCTION snowflake_admin.identity_commands IS 'for deciding what a move back does';

-- Warn that new rows of a table that is partitioned by its IDs will fill a partition, and then the next
-- one, as fast as they come.  An identity begins a second ahead of the clock, and gets on from there by a
-- tick of the layout for each row.
CREATE FUNCTION snowflake_admin.warn_of_partitions(target regclass, key_col name, layout text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	partitions text;
BEGIN
	SELECT string_agg(format('%s until it has %s more', r.partition, (upper_id - next) / id_step(layout)), ', ')
	INTO partitions
	FROM family(target) AS member JOIN pg_partitioned_table ON partrelid = member
	JOIN pg_attribute ON attrelid = member AND attnum = partattrs[0] AND attname = key_col,
		bound(clock_timestamp() + interval '1 s', to_layout(layout)) AS next
		LEFT JOIN LATERAL ranges(member) AS r ON lower_id <= next AND next < upper_id
	WHERE partstrat = 'r' AND partnatts = 1 AND has_time(to_layout(layout))
	HAVING count(*) > 0;
	IF FOUND THEN
		RAISE WARNING USING
			MESSAGE = format('new keys of table %s will not follow the clock', target),
			DETAIL = coalesce('Their rows will go into ' || partitions || '.',
				'There is no partition for them.'),
			HINT = 'Stop jobs that call snowflake_make_partitions() and snowflake_drop_partitions().';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.warn_of_partitions IS 'for saying what becomes of partitions by time';

-- The commands of a move back, and which of them run as the owner.  An identity refuses type snowflake
-- and domains, and a view with the column refuses the change to bigint, which can read the table for
-- its CHECKs.
CREATE FUNCTION snowflake_admin.move_back_commands(target regclass, shard bigint, largest text,
	OUT commands text[], OUT by_owner boolean[])
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	key record;
BEGIN
	SELECT * INTO key FROM table_key(target);
	PERFORM require_no_check(target, key.col, key.type);
	commands := identity_commands(target, key.col, shard, key.layout, key.sequence, largest);
	by_owner := '{}';
	IF key.type::oid <> 'bigint'::regtype THEN
		commands := format('ALTER TABLE %s ALTER %I TYPE bigint', target, key.col) || commands;
		by_owner := '{true}';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.move_back_commands IS 'for deciding what a move back does, the type included';

-- Move the key of a table back which the caller has locked against everybody, and show the commands.
-- Until then others could change what these carry over, so they are decided on here.
CREATE FUNCTION snowflake_admin.move_back_locked(target regclass, shard bigint, largest text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	plan record;
BEGIN
	PERFORM keep_privileges(ARRAY(SELECT family(target) UNION SELECT key_sequences(target)));
	SELECT * INTO plan FROM move_back_commands(target, shard, largest);
	PERFORM try_commands(plan.commands, '{}', NULL, false, target, plan.by_owner);
	PERFORM show(plan.commands, target, plan.by_owner);
END
$$;
COMMENT ON FUNCTION snowflake_admin.move_back_locked IS
'for losing nothing that others have changed before the lock of a move back';

-- Move the key of one table back
CREATE PROCEDURE snowflake_admin.move_table_back(tab regclass, dry_run boolean, tries integer)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	key record;
	shard bigint;
	largest text;
	plan record;
BEGIN
	PERFORM require_read_committed('snowflake_move_back()');
	PERFORM require_owner(ARRAY[tab]);
	PERFORM require_no_engine('snowflake_move_back()', ARRAY[tab], '{Citus}');
	PERFORM lock(ARRAY[tab], tries, dry_run);
	PERFORM require_no_other('snowflake_move_back()', ARRAY[tab]);
	PERFORM keep_names(ARRAY(SELECT key_sequences(tab)), tries);
	SELECT * INTO key FROM table_key(tab);
	IF key.made_by <> 'next_id' THEN
		RAISE NOTICE 'the key of % does not come from next_id()', tab;
		RETURN;
	END IF;
	PERFORM require_no_check(tab, key.col, key.type);
	IF key.layout LIKE '%:%' AND NOT has_time(to_layout(key.layout)) THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('IDs of layout %s, which table %s has, have no timestamp', key.layout, tab),
			DETAIL = 'The values of an identity would run into those of the next shard.',
			HINT = 'DROP DEFAULT, and add an identity whose values no other server generates.';
	END IF;
	shard := nullif(shard_of_default(key.shard), 'computed');
	IF shard IS NULL THEN
		shard := require_shard(NULL, NULL);
	END IF;
	PERFORM warn_of_partitions(tab, key.col, key.layout);
	largest := largest_expression(tab, key.col, key.layout, dry_run);
	SELECT * INTO plan FROM move_back_commands(tab, shard, largest);
	IF dry_run THEN
		PERFORM show(plan.commands, tab, plan.by_owner);
	ELSE
		PERFORM try_again(ARRAY[format('SELECT snowflake_admin.move_back_locked(%L::regclass, %s::bigint, %L::text)',
			tab, shard, largest)], ARRAY[tab] || nullif(key.sequence, next_id_seq()), tries);
	END IF;
END
$$;
COMMENT ON PROCEDURE snowflake_admin.move_table_back IS 'for moving the key of one table back';

-- The command for one table
CREATE PROCEDURE @extschema@.snowflake_move_back(tab regclass, dry_run boolean DEFAULT false,
	tries integer DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
	CALL snowflake_admin.call_in_transaction(pg_catalog.format('CALL snowflake_admin.move_table_back(%L, %L, %%s)',
		tab::pg_catalog.oid, dry_run), tries);
END
$$;
COMMENT ON PROCEDURE @extschema@.snowflake_move_back(regclass, boolean, integer) IS
'let an identity generate the key of a table, above every ID that next_id() generated for it';

-- The command for all tables of a schema, each in its own transaction
CREATE PROCEDURE @extschema@.snowflake_move_back_schema(schema name, dry_run boolean DEFAULT false,
	tries integer DEFAULT 5)
LANGUAGE plpgsql AS $$
BEGIN
	CALL snowflake_admin.begin_command('snowflake_move_back_schema()');
	CALL each_table(schema, false,
		format('CALL move_table_back(%%L, %L, %L)', dry_run, tries), tries);
	CALL snowflake_admin.end_command();
END
$$;
COMMENT ON PROCEDURE @extschema@.snowflake_move_back_schema(name, boolean, integer) IS
'let identities generate the keys of all tables of a schema, above every ID that next_id() generated for them';
