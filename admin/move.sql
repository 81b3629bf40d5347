/* admin/move.sql */

-- CALL snowflake_move() and snowflake_move_schema(): a key that next_id() is to make.  One
-- transaction, the caller's:
--
--     1. keep others from changing the table
--     2. decide on the commands, or refuse what keeps the key from moving
--     3. lock the table, then its sequence, and run the commands

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
			(' is (integer|smallint)$', 'CALL @extschema@' || format('.snowflake_widen(%L, %L) makes the key and '
				'all columns that refer to it bigint.', target, col)),
			(' (uses|names) its sequence$', 'Change this first, for example to INSERT ... RETURNING.'),
			('^its sequence advances', 'A program may reserve blocks of numbers and make keys itself. '
				'Change it first, and then ALTER SEQUENCE ... INCREMENT 1.'),
			('^its numbers are larger', 'An ID could be the number of an old row. If the key was moved back '
				'a moment ago, wait for the clock to pass its numbers.'),
			('^its default', 'Set the default to nextval() of its sequence alone first.'),
			('^it is not in the primary key', 'The column may be a number for people, which should stay '
				'small. If not, use ALTER TABLE ... SET DEFAULT.')) AS h (pattern, hint)
			WHERE obstacle ~ pattern LIMIT 1), 'Remove this obstacle first.');
END
$$;

-- An error if a sequence that is to make a table's IDs is not the owner's of the table.  Whoever
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

-- Restart the sequence of a former serial if it has whole IDs as its numbers, as it has once the
-- key was moved back.
--
-- A number of the table cannot come again.  If nextval() or an identity made it, the
-- clock has passed what they made, and a row of a later time is found by an index.  If
-- next_id() made it from another sequence with the same shard, this one begins beyond
-- that one.  With another shard it need not: this is how to leave a sequence, and
-- rows, that are ahead of the clock.
CREATE FUNCTION snowflake_admin.sequence_commands(target regclass, key_col name, sequence text,
	is_new boolean, layout text, former regclass) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_remove(ARRAY[
			CASE WHEN is_new THEN 'CREATE SEQUENCE ' || sequence END,
			CASE WHEN is_new AND relowner <> caller()
				THEN format('ALTER SEQUENCE %s OWNER TO %s', sequence, relowner::regrole) END,
			CASE WHEN NOT is_new
				AND sequence_last_value(to_regclass(sequence)) >= least_id()
				AND NOT EXISTS (
					SELECT FROM pg_sequence JOIN layouts() ON max_value = seqmax
					WHERE seqrelid = to_regclass(sequence) AND name = layout)
				THEN format('ALTER SEQUENCE %s RESTART', sequence) END,
			format('SELECT %s.snowflake_alter_sequence(%L::regclass, %s)', schema, sequence, layout_literal),
			CASE WHEN former IS NOT NULL
				THEN format('SELECT %1$s.snowflake_advance(%2$L::regclass, %1$s.snowflake_max_id(last_time, %5$s)%6$s) '
					'FROM snowflake_admin.last_time(%3$L, %4$L) WHERE last_time IS NOT NULL',
					schema, sequence, former, layout, layout_literal, named_layout)
				WHEN key_col IS NOT NULL AND finds_maximum(target, key_col)
				THEN format('SELECT %s.snowflake_advance(%L::regclass, largest%s) '
					'FROM snowflake_admin.largest(%L, %L) WHERE largest >= 1::bigint << 40',
					schema, sequence, named_layout, target, key_col) END], NULL)
		|| ARRAY(SELECT revoke_defaults('S', relnamespace, 'SEQUENCE ' || sequence, caller(), relowner)
			WHERE is_new)
		|| ARRAY(SELECT sequence_grants(target, sequence, is_new))
	FROM pg_class, snowflake_schema() AS schema,
		LATERAL format('%L::%s.snowflake_layout', layout, schema) AS layout_literal,
		LATERAL (SELECT CASE WHEN layout LIKE '%:%' THEN ', ' || layout_literal END) AS l (named_layout)
	WHERE oid = target
$$;

-- The commands of a move, or none if next_id() already makes the key in this way.  A key
-- of next_id() keeps its own sequence, unless it is to have another shard.
CREATE FUNCTION snowflake_admin.move_commands(target regclass, shard bigint, own_sequence boolean,
	OUT commands text[], OUT relations regclass[], OUT was_always boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	next_id_seq regclass := next_id_seq();
	setting text := current_setting('snowflake.shard', true);
	key record;
	number text := shard;
	sequence text;
	is_moved boolean;
	is_new boolean := false;
	same_text boolean;
	same_shard boolean;
	former regclass;
	maker text := snowflake_schema() || '.';
BEGIN
	SELECT * INTO key FROM table_key(target);
	PERFORM require_no_obstacle(target, key.col, key.obstacle);
	is_moved := key.made_by = 'next_id';
	was_always := key.made_by = 'GENERATED ALWAYS';
	commands := '{}';
	relations := ARRAY[target] || CASE WHEN key.sequence <> next_id_seq THEN key.sequence END;
	IF number IS NULL THEN
		setting := require_shard(NULL, NULL);
	ELSIF has_time(to_layout(key.layout)) THEN
		PERFORM require_shard(shard, key.layout);
	END IF;
	key.shard := coalesce(literal(key.shard),
		CASE WHEN key.shard !~ '\msnowflake_shard\(\)\)*(::bigint)?$' THEN 'computed' END);
	same_text := key.shard IS NOT DISTINCT FROM number;
	same_shard := coalesce(key.shard, setting) IS NOT DISTINCT FROM coalesce(number, setting);

	IF is_moved THEN
		is_new := own_sequence AND NOT (same_shard AND NOT has_time(to_layout(key.layout)))
			AND (NOT same_text OR key.sequence = next_id_seq OR EXISTS (
				SELECT FROM sequence_users() AS u
				JOIN pg_attribute AS a ON a.attrelid = u.tab AND a.attnum = u.col
				WHERE u.sequence = key.sequence AND (u.tab, a.attname) <> (target, key.col)));
		sequence := CASE WHEN is_new THEN new_sequence(target, key.col)
			WHEN key.sequence <> next_id_seq THEN key.sequence::text END;
	ELSIF own_sequence THEN
		is_new := key.made_by <> 'nextval';
		sequence := key.sequence;
		PERFORM require_own_sequence(target, key.sequence);
	END IF;
	IF is_moved AND NOT is_new AND same_text AND key.is_plain THEN
		RAISE NOTICE 'the key of % already comes from next_id() with this shard', target;
		RETURN;
	END IF;

	IF key.made_by LIKE 'GENERATED%' THEN
		-- After a move back, the defaults of children take numbers of the identity's sequence.
		commands := ARRAY(SELECT format('ALTER TABLE %s ALTER %I DROP DEFAULT', member::regclass, key.col)
				FROM family(target) AS member
				JOIN pg_class ON oid = member AND member <> target AND NOT relispartition
				JOIN pg_attribute ON attrelid = member AND attname = key.col AND atthasdef)
			|| format('ALTER TABLE %s ALTER %I DROP IDENTITY', target, key.col);
	END IF;
	IF is_new OR sequence IS NOT NULL AND NOT is_moved THEN
		IF is_moved AND (same_shard OR key.shard = 'computed') THEN
			former := key.sequence;
			PERFORM last_time(former, key.layout);	-- an error already in a dry run
		END IF;
		commands := commands || sequence_commands(target,
			CASE WHEN NOT is_moved THEN key.col END, sequence, is_new, key.layout, former)
			|| ARRAY(SELECT grant_commands(relacl, '', 'SEQUENCE ' || sequence)
				FROM pg_class WHERE oid = key.sequence AND is_new AND NOT is_moved);
	END IF;
	commands := commands || format('ALTER TABLE %s ALTER %I SET DEFAULT %snext_id(%s)', target, key.col,
		maker,
		concat_ws(', ', coalesce(number, CASE WHEN sequence IS NOT NULL
			THEN maker || 'snowflake_shard()' END) || '::bigint',
			quote_literal(sequence) || '::regclass', CASE WHEN sequence IS NOT NULL
				THEN quote_literal(key.named_layout) || '::' || maker || 'snowflake_layout' END));
END
$$;

-- No catalog says since when the database has its shard, so this counts all others.
CREATE FUNCTION snowflake_admin.count_other_sessions() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	others bigint := count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND usesysid IS NOT NULL
			AND coalesce(backend_type, 'client backend') = 'client backend';
BEGIN
	IF others > 0 THEN
		RAISE NOTICE USING MESSAGE = format('other sessions: %s. Those that began before the shard was set '
			'must reconnect before their next INSERT', others);
	END IF;
END
$$;

-- One transaction: the caller's.  The table is locked before its sequence, as an INSERT does.
CREATE PROCEDURE snowflake_admin.move_table(tab regclass, shard bigint, own_sequence boolean, dry_run boolean,
	tries integer, in_schema boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	plan record;
BEGIN
	PERFORM require_owner(ARRAY[tab]);
	PERFORM lock(ARRAY[tab], tries, dry_run);
	PERFORM keep_names(ARRAY(SELECT key_sequences(tab)), tries);
	SELECT * INTO plan FROM move_commands(tab, shard, own_sequence);
	IF cardinality(plan.commands) > 0 THEN
		IF plan.was_always AND NOT in_schema THEN
			RAISE NOTICE 'a default does not keep programs from choosing keys, as GENERATED ALWAYS did: %', tab;
		END IF;
		IF shard IS NULL AND NOT in_schema THEN
			PERFORM count_other_sessions();
		END IF;
		PERFORM run(plan.commands, plan.relations, tries, dry_run);
	END IF;
END
$$;

CREATE PROCEDURE @extschema@.snowflake_move(tab regclass, shard bigint DEFAULT NULL, own_sequence boolean DEFAULT false,
	dry_run boolean DEFAULT false, tries integer DEFAULT 30)
LANGUAGE plpgsql AS $$
BEGIN
	CALL snowflake_admin.move_table(tab, shard, own_sequence, dry_run, tries, false);
END
$$;

COMMENT ON PROCEDURE @extschema@.snowflake_move(regclass, bigint, boolean, boolean, integer) IS
'let next_id() make the key of a table, in place of nextval(), an identity, or another shard or sequence';

CREATE PROCEDURE @extschema@.snowflake_move_schema(schema name, shard bigint DEFAULT NULL,
	own_sequence boolean DEFAULT false, dry_run boolean DEFAULT false, tries integer DEFAULT 5)
LANGUAGE plpgsql AS $$
BEGIN
	CALL snowflake_admin.require_no_transaction('snowflake_move_schema()');
	SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
	PERFORM require_shard(shard, 'instagram');
	IF shard IS NULL THEN
		PERFORM count_other_sessions();
	END IF;
	CALL each_table(schema, true,
		format('CALL move_table(%%L, %L, %L, %L, %L, true)',
			shard, own_sequence, dry_run, tries),
		tries);
END
$$;

COMMENT ON PROCEDURE @extschema@.snowflake_move_schema(name, bigint, boolean, boolean, integer) IS
'let next_id() make the keys of all tables of a schema';
