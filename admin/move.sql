/* admin/move.sql */

-- CALL snowflake_move() and snowflake_move_schema(): a key that next_id() is to generate.  A move of a
-- table is one transaction, the caller's; that of a schema is one for each table:
--
--     1. keep others from changing the table and, for a superuser, from renaming the schemas
--     2. refuse what keeps the key from moving
--     3. lock the table, decide on the commands, run them and show them
--
-- Knows nothing of partitions and of rows, but for the largest ID of a table.

-- An error that says why a key cannot move, and what has to happen first
CREATE FUNCTION snowflake_admin.require_no_obstacle(target regclass, col name, obstacle text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF obstacle IS NULL THEN
		RETURN;
	END IF;
	RAISE object_not_in_prerequisite_state USING
		MESSAGE = format('cannot move column %I of table %s to next_id()', col, target),
		DETAIL = format('Obstacle: %s.', obstacle),
		HINT = coalesce((SELECT hint FROM (VALUES
			(' (is|based on) (integer|smallint)$', call_of('snowflake_widen', target, format(', %L::name', col))
				|| ' changes the key and all columns that refer to it to bigint.'),
			(' (uses|names) its sequence$', 'Change this first, for example to INSERT ... RETURNING.'),
			('^its sequence advances', 'A program may reserve blocks of values and generate keys itself. '
				'Change it first, and then ALTER SEQUENCE ... INCREMENT 1.'),
			('^its values are larger', 'An ID could be the key of an old row. If the key was moved back '
				'a moment ago, wait for the clock to pass its values.'),
			('^its default', 'First set the default to nextval() of its sequence, and nothing else.'),
			('^Citus distributes', 'Call it before create_distributed_table(), or call undistribute_table() first.'),
			('^Citus does not', 'Copy its rows to a table whose key has the default next_id().'),
			('^it is not in the primary key', 'The column may have numbers for people to read, which should '
				'stay small. If not, use ALTER TABLE ... SET DEFAULT.')) AS h (pattern, hint)
			WHERE obstacle ~ pattern LIMIT 1), 'Remove this obstacle first.');
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_no_obstacle IS 'for refusing a move, and saying what to do first';

-- An error if a sequence that is to generate a table's IDs is not the owner's of the table.  Whoever
-- names somebody else's sequence in a default must not have it changed, nor its privileges
-- given to those who can insert into his table.
CREATE FUNCTION snowflake_admin.require_own_sequence(target regclass, sequence regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	owner regrole := (SELECT relowner FROM pg_class WHERE oid = target);
	other regrole := (SELECT relowner FROM pg_class WHERE oid = sequence);
BEGIN
	IF other <> owner THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('sequence %s has another owner than table %s', sequence, target),
			DETAIL = format('It belongs to %s, and the table to %s.', other, owner),
			HINT = 'Give both one owner, or call this without own_sequence.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_own_sequence IS 'for leaving the sequences of others alone';

-- The command that lets a sequence begin anew if it has IDs with a time as its values, as that of a
-- former serial has once the key was moved back, or NULL.  Values that count rows stay far below
-- least_id(), and IDs are above it soon after their layout's epoch.
CREATE FUNCTION snowflake_admin.restart_command(sequence text, layout text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER SEQUENCE %s RESTART', sequence)
	WHERE sequence_last_value(to_regclass(sequence)) >= least_id()
		AND NOT EXISTS (
			SELECT FROM pg_sequence JOIN layouts() ON max_value = seqmax
			WHERE seqrelid = to_regclass(sequence) AND name = layout)
$$;
COMMENT ON FUNCTION snowflake_admin.restart_command IS 'for using the sequence of a former serial again';

-- The command that advances a sequence above all IDs that must not be generated again, or NULL if
-- there is none.
--
-- A key of nextval() or an identity: the clock has passed their values, or it could not move.  Rows
-- that programs have given later IDs count where the largest is found at once.
--
-- A key of next_id() with the same shard, or one that is computed: the sequence begins above the
-- "former" one.
--
-- A key of next_id() with another shard: none.  This is how to leave a sequence, and rows, that are
-- ahead of the clock.
CREATE FUNCTION snowflake_admin.advance_command(target regclass, key_col name, sequence text, layout text,
	is_moved boolean, former regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE
		WHEN former IS NOT NULL
			THEN format('SELECT %1$s.snowflake_advance(%2$L::regclass, %1$s.snowflake_max_id(last_time, %5$s)%6$s) '
				'FROM snowflake_admin.last_time(%3$L, %4$L) WHERE last_time IS NOT NULL',
				schema, sequence, former, layout, layout_literal(layout), layout_argument(layout))
		WHEN NOT is_moved AND finds_maximum(target, key_col)
			THEN format('SELECT %s.snowflake_advance(%L::regclass, largest%s) '
				'FROM snowflake_admin.largest(%L, %L) WHERE largest >= snowflake_admin.least_id()',
				schema, sequence, layout_argument(layout), target, key_col) END
	FROM snowflake_schema() AS schema
$$;
COMMENT ON FUNCTION snowflake_admin.advance_command IS 'for duplicating no ID after a move';

-- The commands that make a sequence ready for the IDs of a key: one that is new, or one that
-- was there for the key's values
CREATE FUNCTION snowflake_admin.sequence_commands(target regclass, key_col name, sequence text,
	is_new boolean, layout text, is_moved boolean, former regclass) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_remove(ARRAY[
			CASE WHEN is_new THEN 'CREATE SEQUENCE ' || sequence END,
			CASE WHEN is_new AND relowner <> caller()
				THEN format('ALTER SEQUENCE %s OWNER TO %s', sequence, relowner::regrole) END,
			CASE WHEN NOT is_new THEN restart_command(sequence, layout) END,
			format('SELECT %s.snowflake_alter_sequence(%L::regclass, %s)', snowflake_schema(), sequence,
				layout_literal(layout)),
			advance_command(target, key_col, sequence, layout, is_moved, former)], NULL)
		|| ARRAY(SELECT revoke_defaults('S', relnamespace, 'SEQUENCE ' || sequence, caller(), relowner)
			WHERE is_new)
		|| ARRAY(SELECT sequence_grants(target, sequence, is_new))
	FROM pg_class WHERE oid = target
$$;
COMMENT ON FUNCTION snowflake_admin.sequence_commands IS 'for giving a key its own sequence';

-- The commands after which no identity generates a key.  All defaults of the key in children that are no
-- partitions go, such as those that snowflake_move_back() gives them: the new default of the parent
-- would replace them in any case.
CREATE FUNCTION snowflake_admin.drop_identity_commands(target regclass, key_col name) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT ARRAY(SELECT format('ALTER TABLE %s ALTER %I DROP DEFAULT', member::regclass, key_col)
			FROM family(target) AS member
			JOIN pg_class ON oid = member AND member <> target AND NOT relispartition
			JOIN pg_attribute ON attrelid = member AND attname = key_col AND atthasdef)
		|| format('ALTER TABLE %s ALTER %I DROP IDENTITY', target, key_col)
$$;
COMMENT ON FUNCTION snowflake_admin.drop_identity_commands IS 'for moving the key of an identity';

-- The command that lets next_id() generate a key.  Without a number, the shard is that of the setting;
-- without a sequence, next_id_seq serves.
CREATE FUNCTION snowflake_admin.default_command(target regclass, key_col name, number text, sequence text,
	named_layout text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER TABLE %s ALTER %I SET DEFAULT %s.next_id(%s)', target, key_col, schema, concat_ws(', ',
		coalesce(number, CASE WHEN sequence IS NOT NULL THEN schema || '.snowflake_shard()' END) || '::bigint',
		quote_literal(sequence) || '::regclass',
		CASE WHEN sequence IS NOT NULL THEN layout_literal(named_layout) END))
	FROM snowflake_schema() AS schema
$$;
COMMENT ON FUNCTION snowflake_admin.default_command IS 'for letting next_id() generate a key';

-- The functions that this default calls
CREATE FUNCTION snowflake_admin.default_calls(number text, sequence text, named_layout text) RETURNS regprocedure[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_agg(p.oid::regprocedure ORDER BY proname)
	FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = pronamespace
	WHERE quote_ident(nspname) = snowflake_schema() AND (
		proname = 'next_id' AND pronargs = CASE WHEN sequence IS NOT NULL AND layout_literal(named_layout) IS NOT NULL THEN 3
			WHEN sequence IS NOT NULL THEN 2 WHEN number IS NOT NULL THEN 1 ELSE 0 END
		OR proname = 'snowflake_shard' AND pronargs = 0 AND number IS NULL AND sequence IS NOT NULL)
$$;
COMMENT ON FUNCTION snowflake_admin.default_calls IS 'for the privileges that a default needs';

-- Warn of roles that may insert into a table, but not call what its new default calls.  The
-- functions are the extension's.
CREATE FUNCTION snowflake_admin.warn_of_execute(target regclass, calls regprocedure[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	lacking record;
BEGIN
	FOR lacking IN SELECT role, function FROM inserters(ARRAY[target::oid]), unnest(calls) AS function
		WHERE NOT has_function_privilege(grantee, function, 'EXECUTE') ORDER BY role, function
	LOOP
		RAISE WARNING USING
			MESSAGE = format('%s may insert into table %s, but not call %s, so its INSERTs fail after the move',
				lacking.role, target, lacking.function),
			HINT = format('Let a superuser GRANT EXECUTE ON FUNCTION %s TO %s first.', lacking.function, lacking.role);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.warn_of_execute IS 'for saying who could not insert any more';

-- The shard of a default: its number, NULL if it is that of the setting, or "computed"
CREATE FUNCTION snowflake_admin.shard_of_default(shard text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(literal(shard),
		CASE WHEN shard !~ '\msnowflake_shard\(\)\)*(::bigint)?$' THEN 'computed' END)
$$;
COMMENT ON FUNCTION snowflake_admin.shard_of_default IS 'for comparing shards';

-- Does a key take its IDs from next_id_seq, or from a sequence from which another column does, too?
CREATE FUNCTION snowflake_admin.shares_sequence(target regclass, key_col name, sequence regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT sequence = next_id_seq() OR EXISTS (
		SELECT FROM sequence_users(ARRAY[shares_sequence.sequence::oid]) AS u
		JOIN pg_attribute AS a ON a.attrelid = u.tab AND a.attnum = u.col
		WHERE (u.tab, a.attname) <> (target, key_col))
$$;
COMMENT ON FUNCTION snowflake_admin.shares_sequence IS 'for telling whether a key has its own sequence';

-- The commands of a move, or none if next_id() already generates the key in this way.  A key of next_id()
-- keeps its sequence, unless it is to have its own one, and this one is shared or of another shard.
CREATE FUNCTION snowflake_admin.move_commands(target regclass, shard bigint, own_sequence boolean,
	OUT commands text[], OUT relations regclass[], OUT was_always boolean, OUT was_number boolean,
	OUT calls regprocedure[])
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	setting text := current_setting('snowflake.shard', true);
	number text := shard;	-- as it stands in the default, NULL for the setting
	key record;
	is_moved boolean;
	old_shard text;
	same_text boolean;
	same_shard boolean;
	keeps_sequence boolean;
	drops_old boolean;
	is_new boolean := false;
	sequence text;
	former regclass;
BEGIN
	SELECT * INTO key FROM table_key(target);
	PERFORM require_no_obstacle(target, key.col, key.obstacle);
	IF own_sequence AND EXISTS (SELECT FROM engines(ARRAY[target]) WHERE engine = 'Citus') THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s of Citus cannot have its own sequence', target),
			DETAIL = 'Citus gives it another range of values on each worker, so next_id() fails there.',
			HINT = 'Call this without own_sequence.';
	END IF;
	is_moved := key.made_by = 'next_id';
	was_always := key.made_by = 'GENERATED ALWAYS';
	was_number := NOT is_moved;
	commands := '{}';
	relations := ARRAY[target] || nullif(key.sequence, next_id_seq());
	IF number IS NULL THEN
		setting := require_shard(NULL, NULL);
	ELSIF has_time(to_layout(key.layout)) THEN
		PERFORM require_shard(shard, key.layout);
	END IF;
	old_shard := shard_of_default(key.shard);
	same_text := old_shard IS NOT DISTINCT FROM number;
	same_shard := coalesce(old_shard, setting) IS NOT DISTINCT FROM coalesce(number, setting);

	IF is_moved THEN
		-- Without a time, nothing tells where a new sequence of the same shard would have to begin.
		keeps_sequence := same_text AND NOT shares_sequence(target, key.col, key.sequence)
			OR same_shard AND NOT has_time(to_layout(key.layout));
		is_new := own_sequence AND NOT keeps_sequence;
		sequence := CASE WHEN is_new THEN new_sequence(target, key.col)
			WHEN key.sequence <> next_id_seq() THEN key.sequence::text END;
	ELSIF own_sequence AND shares_sequence(target, key.col, key.sequence) THEN
		is_new := true;
		sequence := new_sequence(target, key.col);
	ELSIF own_sequence THEN
		-- The sequence of an identity goes with it, so that one of the same name is new.
		is_new := key.made_by <> 'nextval';
		sequence := key.sequence;
		PERFORM require_own_sequence(target, key.sequence);
	END IF;
	IF is_moved AND NOT is_new AND same_text AND key.is_plain THEN
		RAISE NOTICE 'the key of % already comes from next_id() with this shard', target;
		RETURN;
	END IF;

	IF key.made_by LIKE 'GENERATED%' THEN
		commands := drop_identity_commands(target, key.col);
	END IF;
	IF is_moved AND is_new AND (same_shard OR old_shard = 'computed') THEN
		former := key.sequence;
		PERFORM last_time(former, key.layout);	-- an error already in a dry run
	END IF;
	IF is_new OR sequence IS NOT NULL AND NOT is_moved THEN
		commands := commands || sequence_commands(target, key.col, sequence, is_new, key.layout, is_moved, former);
	END IF;
	-- The sequence that the new one takes the place of is dropped, with its grants.
	drops_old := is_new AND (key.made_by LIKE 'GENERATED%' OR is_moved AND is_needless(target, key.col, key.sequence));
	IF drops_old THEN
		commands := commands || ARRAY(SELECT grant_commands(relacl, '', 'SEQUENCE ' || sequence)
			FROM pg_class WHERE oid = key.sequence);
	END IF;
	commands := commands || default_command(target, key.col, number, sequence, key.named_layout);
	calls := default_calls(number, sequence, key.named_layout);
	IF drops_old AND is_moved THEN
		commands := commands || format('DROP SEQUENCE %s', key.sequence);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.move_commands IS 'for deciding what a move does';

-- Say how many sessions may not have the shard of the setting.  No catalog says since when the
-- database has it, so this counts all others.
CREATE FUNCTION snowflake_admin.count_other_sessions() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	others bigint := count(*) FROM other_sessions();
BEGIN
	IF others > 0 THEN
		RAISE NOTICE USING MESSAGE = format('other sessions: %s. Those that began before the shard was set '
			'must reconnect before their next INSERT', others);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.count_other_sessions IS 'for saying who may still have another shard';

-- Say what programs notice of a move from nextval() or an identity.
CREATE FUNCTION snowflake_admin.announce_move(what text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE NOTICE USING
		MESSAGE = format('programs will notice that new keys of %s are IDs', what),
		DETAIL = 'They have 19 digits, which JavaScript rounds and a 32-bit integer cannot hold. currval() and lastval() '
			'do not know them, and values that nextval() takes from the former sequence are not IDs.',
		HINT = 'Use INSERT ... RETURNING. Restart programs that cache the types of columns, such as Rails, if the key was '
			'an integer when they began.';
END
$$;
COMMENT ON FUNCTION snowflake_admin.announce_move IS 'for saying what programs notice before they do';

-- Move the key of a table which the caller has locked against everybody, unless it is a foreign one,
-- and show the commands.  Until then others could change what these carry over, such as privileges
-- and sequences, so they are decided on here.
CREATE FUNCTION snowflake_admin.move_locked(target regclass, shard bigint, own_sequence boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	commands text[];
BEGIN
	PERFORM keep_privileges(ARRAY(SELECT family(target) UNION SELECT key_sequences(target)));
	PERFORM keep_snowflake();
	commands := (move_commands(target, shard, own_sequence)).commands;
	PERFORM try_commands(commands, '{}', NULL, false, NULL, NULL);
	PERFORM show(commands);
END
$$;
COMMENT ON FUNCTION snowflake_admin.move_locked IS 'for losing nothing that others have changed before the lock';

-- Move the key of one table.  The table is locked before its sequence, as an INSERT does.  A move of
-- a schema has said for all its tables what is said here only for one.
CREATE PROCEDURE snowflake_admin.move_table(tab regclass, shard bigint, own_sequence boolean, dry_run boolean,
	tries integer, in_schema boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	plan record;
BEGIN
	PERFORM require_read_committed('snowflake_move()');
	PERFORM require_owner(ARRAY[tab]);
	PERFORM lock(ARRAY[tab], tries, dry_run);
	PERFORM require_no_other('snowflake_move()', ARRAY[tab]);
	PERFORM keep_names(ARRAY(SELECT key_sequences(tab)), tries);
	SELECT * INTO plan FROM move_commands(tab, shard, own_sequence);
	IF cardinality(plan.commands) > 0 THEN
		IF plan.was_always AND NOT in_schema THEN
			RAISE NOTICE 'a default does not keep programs from choosing keys, as GENERATED ALWAYS did: %', tab;
		END IF;
		IF plan.was_number AND NOT in_schema THEN
			PERFORM announce_move(format('table %s', tab));
		END IF;
		IF shard IS NULL AND NOT in_schema THEN
			PERFORM count_other_sessions();
		END IF;
		PERFORM warn_of_execute(tab, plan.calls);
	END IF;
	IF dry_run THEN
		PERFORM show(plan.commands);
	ELSIF cardinality(plan.commands) > 0 THEN
		PERFORM try_again(ARRAY[format('SELECT snowflake_admin.move_locked(%L::regclass, %L::bigint, %L::boolean)',
			tab, shard, own_sequence)], plan.relations, tries);
	END IF;
END
$$;
COMMENT ON PROCEDURE snowflake_admin.move_table IS 'for moving the key of one table';

-- The command for one table
CREATE PROCEDURE @extschema@.snowflake_move(tab regclass, shard bigint DEFAULT NULL, own_sequence boolean DEFAULT false,
	dry_run boolean DEFAULT false, tries integer DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
	CALL snowflake_admin.call_in_transaction(pg_catalog.format('CALL snowflake_admin.move_table(%L, %L, %L, %L, %%s, false)',
		tab::pg_catalog.oid, shard, own_sequence, dry_run), tries);
END
$$;
COMMENT ON PROCEDURE @extschema@.snowflake_move(regclass, bigint, boolean, boolean, integer) IS
'let next_id() generate the key of a table, in place of nextval(), an identity, or another shard or sequence';

-- An error unless there is a schema of this name
CREATE FUNCTION snowflake_admin.require_schema(schema name) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = schema) THEN
		RAISE invalid_schema_name USING MESSAGE = format('schema "%s" does not exist', schema);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.require_schema IS 'for refusing a schema that does not exist';

-- Warn of an error, after which a command goes on with other tables.
CREATE FUNCTION snowflake_admin.warn_of_error(message text, state text, detail text, hint text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE WARNING USING
		MESSAGE = message,
		DETAIL = coalesce(nullif(detail, ''), format('The SQLSTATE is %s.', state)),
		HINT = coalesce(nullif(hint, ''), 'Call this again when the cause is gone.');
END
$$;
COMMENT ON FUNCTION snowflake_admin.warn_of_error IS 'for tables of a schema that a command leaves as they are';

-- Call a procedure, with the table in place of %L, for each table of a schema whose key it would
-- change, each in its own transaction.  What stays as it is, is named by a warning.
CREATE PROCEDURE snowflake_admin.each_table(schema name, to_next_id boolean, command text, tries integer)
LANGUAGE plpgsql AS $$
DECLARE
	tables pg_catalog.regclass[];
	others pg_catalog.text[];
	always pg_catalog.text;
	target pg_catalog.regclass;
	other pg_catalog.text;
	failed integer := 0;
	detail pg_catalog.text;
	hint pg_catalog.text;
BEGIN
	PERFORM require_schema(schema);
	SELECT coalesce(array_agg(DISTINCT k.tab) FILTER (WHERE k.is_main), '{}'),
		coalesce(array_agg(DISTINCT format('column %I of table %s', k.col, k.tab))
			FILTER (WHERE NOT k.is_main), '{}'),
		string_agg(DISTINCT k.tab::text, ', ') FILTER (WHERE k.is_main AND k.made_by = 'GENERATED ALWAYS')
	INTO tables, others, always
	FROM main_keys(ARRAY(SELECT pg_class.oid FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
		WHERE nspname = schema AND relkind IN ('r', 'p', 'f'))) AS k
	WHERE (k.made_by = 'next_id') <> to_next_id;
	IF to_next_id AND tables <> '{}' THEN
		PERFORM announce_move(format('schema %I', schema));
	END IF;
	IF always IS NOT NULL THEN
		RAISE NOTICE 'a default does not keep programs from choosing keys, as GENERATED ALWAYS did: %', always;
	END IF;
	PERFORM require_tries(tries);
	FOREACH target IN ARRAY tables LOOP
		CALL next_transaction();
		BEGIN
			EXECUTE format(command, target::text);
		EXCEPTION WHEN OTHERS THEN
			failed := failed + 1;
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
			PERFORM warn_of_error(format('%s stays as it is: %s', target, SQLERRM), SQLSTATE, detail, hint);
		END;
	END LOOP;
	CALL next_transaction();
	FOREACH other IN ARRAY others LOOP
		RAISE WARNING '% stays as it is: it is not the key of its table', other;
	END LOOP;
	RAISE NOTICE '% of % tables done', cardinality(tables) - failed, cardinality(tables);
END
$$;
COMMENT ON PROCEDURE snowflake_admin.each_table IS 'for moving the keys of a schema, or moving them back';

-- The command for all tables of a schema, each in its own transaction
CREATE PROCEDURE @extschema@.snowflake_move_schema(schema name, shard bigint DEFAULT NULL,
	own_sequence boolean DEFAULT false, dry_run boolean DEFAULT false, tries integer DEFAULT 5)
LANGUAGE plpgsql AS $$
BEGIN
	CALL snowflake_admin.begin_command('snowflake_move_schema()');
	PERFORM require_shard(shard, 'instagram');
	IF shard IS NULL THEN
		PERFORM count_other_sessions();
	END IF;
	CALL each_table(schema, true,
		format('CALL move_table(%%L, %L, %L, %L, %L, true)',
			shard, own_sequence, dry_run, tries),
		tries);
	CALL snowflake_admin.end_command();
END
$$;
COMMENT ON PROCEDURE @extschema@.snowflake_move_schema(name, bigint, boolean, boolean, integer) IS
'let next_id() generate the keys of all tables of a schema';
