/* admin/table_key.sql */

-- The key of one table, its sequence, and who may use that: what moving a key and moving
-- it back share.  Knows no partition by time, and decides on no command but those that
-- grant the use of a sequence.

-- The keys of tables with their obstacles.  The key of a table is what is listed of its primary key,
-- or else of its other columns.
CREATE FUNCTION snowflake_admin.main_keys(tables oid[])
RETURNS TABLE (tab regclass, col name, type regtype, made_by text, sequence regclass, obstacle text,
	is_main boolean)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT k.*, rank() OVER (PARTITION BY k.tab ORDER BY i.indrelid IS NULL) = 1
	FROM keys_with_obstacles(tables) AS k
	JOIN pg_attribute AS a ON a.attrelid = k.tab AND a.attname = k.col
	LEFT JOIN pg_index AS i ON i.indrelid = k.tab AND i.indisprimary AND a.attnum = ANY (i.indkey)
$$;
COMMENT ON FUNCTION snowflake_admin.main_keys IS 'for telling the key of a table from its other columns';

-- The default by which next_id() fills a column, its own or that of its domain: the shard as it
-- stands there, the layout if one is named, the layout that its IDs have, whether the default is
-- that call and nothing else, and whether it is more than that call and casts, such as
-- snowflake_obfuscate(next_id(5), 77)
CREATE FUNCTION snowflake_admin.default_parts(target regclass, col name, sequence regclass,
	OUT shard text, OUT named_layout text, OUT layout text, OUT is_plain boolean, OUT is_wrapped boolean,
	OUT expression text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT c.shard, literal(c.layout), coalesce(layout_of(d.expression, default_parts.sequence), 'instagram'),
		c.call = regexp_replace(d.expression, '^(\w+|"([^"]|"")+")\.', ''),
		replace(d.expression, c.call, '')
			!~ '^\(*((\w+|"([^"]|"")+")\.)?\)*(::([\w. ]|"([^"]|"")+")+(\(\d+\))?\)*)*$',
		d.expression
	FROM (SELECT pg_get_expr(coalesce(adbin, typdefaultbin), 0)
		FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
		WHERE attrelid = target AND attname = col) AS d (expression)
	LEFT JOIN LATERAL calls(d.expression) AS c ON true
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_admin.default_parts IS 'for taking the default of a key apart';

-- The key of a table, one obstacle, and the parts of its default if that is next_id().  An error
-- unless there is one such column.
CREATE FUNCTION snowflake_admin.table_key(target regclass, OUT col name, OUT type regtype, OUT made_by text,
	OUT sequence regclass, OUT obstacle text, OUT shard text, OUT named_layout text, OUT layout text,
	OUT is_plain boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	columns text[];
	parts record;
BEGIN
	IF target IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'tab must not be null';
	END IF;
	WITH keys AS MATERIALIZED (SELECT * FROM main_keys(ARRAY[target]) AS k WHERE k.is_main)
	SELECT k.col, k.type, k.made_by, k.sequence, k.obstacle,
		ARRAY(SELECT DISTINCT quote_ident(keys.col) FROM keys ORDER BY 1)
	INTO col, type, made_by, sequence, obstacle, columns
	FROM keys AS k ORDER BY k.obstacle LIMIT 1;
	IF NOT FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has no key that a sequence, an identity or next_id() generates', target),
			HINT = coalesce((
				SELECT format('Its key may be that of its parent. Call this for %s instead.',
					inhparent::regclass)
				FROM pg_inherits WHERE inhrelid = target ORDER BY inhseqno LIMIT 1),
				format('SELECT * FROM %s() lists the keys of this database.', own_name('snowflake_keys')));
	ELSIF cardinality(columns) > 1 THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has more than one key', target),
			DETAIL = format('A sequence, an identity or next_id() fills each of the columns %s.',
				array_to_string(columns, ', ')),
			HINT = 'Use ALTER TABLE ... SET DEFAULT for each column that is to change.';
	ELSIF made_by = 'next_id' THEN
		SELECT * INTO parts FROM default_parts(target, col, sequence);
		IF parts.is_wrapped THEN
			RAISE object_not_in_prerequisite_state USING
				MESSAGE = format('the default of column %I of table %s is an expression around next_id()', col, target),
				DETAIL = format('DEFAULT %s. Another default could generate other keys, for example in another form.',
					parts.expression),
				HINT = format('Change it by ALTER TABLE %s ALTER %I SET DEFAULT, for example to the same expression with '
					'another shard.', target, col);
		END IF;
		shard := parts.shard;
		named_layout := parts.named_layout;
		layout := parts.layout;
		is_plain := parts.is_plain;
	ELSE
		layout := 'instagram';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.table_key IS 'for finding the key of the table that a command is about';

-- The roles that may insert into tables.  Grantee 0 is PUBLIC, also to functions such as
-- has_sequence_privilege().
CREATE FUNCTION snowflake_admin.inserters(tables oid[])
RETURNS TABLE (tab oid, grantee oid, role text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT c.oid, grantee, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
	FROM pg_class AS c, LATERAL (
		SELECT coalesce(relacl, acldefault('r', relowner))
		UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = c.oid AND NOT attisdropped) AS given (acl),
		aclexplode(acl)
	WHERE privilege_type = 'INSERT' AND c.oid = ANY (tables)
$$;
COMMENT ON FUNCTION snowflake_admin.inserters IS 'for the roles that may insert into tables';

-- A table, its partitions and the tables that inherit from it
CREATE FUNCTION snowflake_admin.family(target regclass) RETURNS SETOF oid
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE family (oid) AS (
		SELECT target::oid
		UNION SELECT inhrelid FROM family JOIN pg_inherits ON inhparent = oid
	)
	SELECT oid FROM family
$$;
COMMENT ON FUNCTION snowflake_admin.family IS 'for reaching all tables that have the key';

-- Can the largest value of a column be found while everybody is locked out?
CREATE FUNCTION snowflake_admin.finds_maximum(target regclass, col name) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT NOT EXISTS (
		SELECT FROM family(target) AS member
		JOIN pg_attribute ON attrelid = member AND attname = col
		WHERE pg_relation_size(member) > 8 * 1024 * 1024 AND NOT EXISTS (
			SELECT FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
			WHERE indrelid = member AND indkey[0] = attnum AND indisvalid AND indpred IS NULL
			AND relam = (SELECT oid FROM pg_am WHERE amname = 'btree')))
$$;
COMMENT ON FUNCTION snowflake_admin.finds_maximum IS 'for telling whether a largest ID is found at once';

-- The largest value of a column.  Reading a table can run code of its owner, so it is read as
-- him.  Where a policy would hide rows even from him, that is an error.
CREATE FUNCTION snowflake_admin.largest(target regclass, col name) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp SET row_security = off AS $$
	SELECT largest FROM as_owner(target, format('SELECT max(%I)::bigint FROM %s', col, target)) AS (largest bigint)
$$;
COMMENT ON FUNCTION snowflake_admin.largest IS 'for finding the largest value of a key';

-- The time of the last ID of a sequence, or NULL if it has generated none.  If the caller does not
-- see it, that is an error, because what has to be above it could be too small.
CREATE FUNCTION snowflake_admin.last_time(sequence regclass, layout text) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	found record;
BEGIN
	SELECT * INTO found FROM sequence_states(sequence, to_layout(layout));
	IF found.state = 'no privilege' THEN
		RAISE insufficient_privilege USING
			MESSAGE = format('permission denied for sequence %s', sequence),
			DETAIL = 'Without its last value, keys could be duplicated.',
			HINT = 'Its owner can GRANT SELECT on it.';
	ELSIF found.last_timestamp IS NULL AND found.state = 'waits' THEN
		RAISE lock_not_available USING
			MESSAGE = format('cannot tell the last ID of sequence %s, because another session locks it', sequence),
			HINT = 'Call it again when that session''s transaction has ended.';
	ELSIF found.last_timestamp IS NULL AND found.state IS DISTINCT FROM 'ok' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot tell the last ID of sequence %s', sequence),
			DETAIL = format('snowflake_sequences() says: %s.', coalesce(found.state, 'there is no such sequence')),
			HINT = 'The error of next_id() says what is wrong with the sequence. Fix that first.';
	END IF;
	RETURN found.last_timestamp;
END
$$;
COMMENT ON FUNCTION snowflake_admin.last_time IS 'for going on above all IDs of a sequence';

-- The commands that change rows, and how catalogs tell them: as pg_rewrite.ev_type, as a bit of
-- pg_trigger.tgtype, of the privileges in a stored query, and of pg_relation_is_updatable()
CREATE FUNCTION snowflake_admin.changes()
RETURNS TABLE (command text, event "char", trigger_bit integer, privilege_bit bigint, updatable_bit integer)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	VALUES ('UPDATE', '2'::"char", 16, 4::bigint, 4), ('INSERT', '3', 4, 1, 8), ('DELETE', '4', 8, 8, 16)
$$;
COMMENT ON FUNCTION snowflake_admin.changes IS 'for reading what views, rules and triggers change';

-- May a role carry out such a command on at least one column?
CREATE FUNCTION snowflake_admin.may(role oid, command text, rel oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE command WHEN 'DELETE' THEN has_table_privilege(role, rel, command)
		ELSE has_any_column_privilege(role, rel, command) END
$$;
COMMENT ON FUNCTION snowflake_admin.may IS 'for asking for a privilege on columns';

-- Does a rule carry out a command on a relation?  This is not in pg_depend, only in the rule's
-- tree, where the privileges that it needs are bits.  A name cannot look like this, because
-- there are backslashes before its blanks.
CREATE FUNCTION snowflake_admin.rule_does(rule oid, command text, rel oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT EXISTS (
		SELECT FROM pg_rewrite,
			regexp_matches(ev_action::text, ':relid (\d+) [^{}]*:requiredPerms (\d+)', 'g') AS needed
		WHERE oid = rule AND needed[1]::oid = rel AND needed[2]::bigint
			& (SELECT privilege_bit FROM changes() AS c WHERE c.command = rule_does.command) <> 0)
$$;
COMMENT ON FUNCTION snowflake_admin.rule_does IS 'for following a rule to a table';

-- The relation whose rows a view shows and changes.  This is not in pg_depend, either: it is the
-- first one in the view's tree other than the view itself, because a view that can be changed
-- reads FROM one relation.
CREATE FUNCTION snowflake_admin.changed_by_view(view oid) RETURNS oid
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT read[1]::oid
	FROM pg_rewrite, regexp_matches(ev_action::text, ':rtekind 0 :relid (\d+) ', 'g') WITH ORDINALITY AS r (read, n)
	WHERE ev_class = view AND ev_type = '1' AND read[1]::oid <> view
	ORDER BY n LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_admin.changed_by_view IS 'for following a view to its table';

-- Does PostgreSQL itself turn a command on a view into the same command on this relation, with
-- the rights of the view's owner?  Not so with security_invoker, nor where a trigger or a rule
-- does something INSTEAD.
CREATE FUNCTION snowflake_admin.view_passes_on(view oid, command text, rel oid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE
		WHEN relkind <> 'v' OR rel IS DISTINCT FROM changed_by_view(view)
			OR EXISTS (SELECT FROM pg_options_to_table(reloptions)
				WHERE option_name = 'security_invoker' AND option_value::boolean)
			OR EXISTS (SELECT FROM pg_trigger
				WHERE tgrelid = view AND tgtype & 64 <> 0 AND tgtype & c.trigger_bit <> 0)
			OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = view AND is_instead AND ev_type = c.event)
			THEN false
		-- This locks the view, so it comes last.
		ELSE pg_relation_is_updatable(view::regclass, false) & c.updatable_bit <> 0 END
	FROM pg_class, changes() AS c WHERE oid = view AND c.command = view_passes_on.command
$$;
COMMENT ON FUNCTION snowflake_admin.view_passes_on IS 'for following a command on a view to its table';

-- The commands, and on what, that can insert a row into a table or a member of its family.
-- PostgreSQL checks what a view or a rule does with the rights of its owner, so these lead on only
-- if he has the privilege.
CREATE FUNCTION snowflake_admin.ways_to_insert(target regclass)
RETURNS TABLE (rel oid, command text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE ways (rel, command) AS (
		SELECT member, 'INSERT' FROM family(target) AS member
		UNION
		SELECT ev_class, CASE ev_type WHEN '1' THEN ways.command ELSE c.command END
		FROM ways JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = rel
			AND classid = 'pg_rewrite'::regclass
		JOIN pg_rewrite AS r ON r.oid = objid
		JOIN pg_class AS v ON v.oid = ev_class AND relpersistence <> 't'
		LEFT JOIN changes() AS c ON c.event = ev_type
		WHERE CASE WHEN NOT may(relowner, ways.command, rel) THEN false
			WHEN ev_type = '1' THEN view_passes_on(ev_class, ways.command, rel)
			ELSE rule_does(r.oid, ways.command, rel) END
	)
	SELECT * FROM ways
$$;
COMMENT ON FUNCTION snowflake_admin.ways_to_insert IS 'for finding by what a row can come into a table';

-- The commands that let everybody take values of a sequence who can insert into a table, as a
-- default is computed with the rights of the role that inserts.  Of a sequence that is there
-- already, only those that lack this.
--
-- This looks at views, which their owners may have locked for ever.
CREATE FUNCTION snowflake_admin.sequence_grants(target regclass, sequence text, is_new boolean) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET lock_timeout = '1s' AS $$
	WITH ways AS MATERIALIZED (SELECT * FROM ways_to_insert(target)),
	acls (acl, command) AS (
		SELECT coalesce(relacl, acldefault('r', relowner)), command FROM ways JOIN pg_class ON oid = rel
		UNION ALL SELECT attacl, command FROM ways JOIN pg_attribute ON attrelid = rel AND NOT attisdropped
	)
	SELECT DISTINCT format('GRANT USAGE ON SEQUENCE %s TO %s', sequence, grantee_name(grantee))
	FROM acls, aclexplode(acl)
	WHERE privilege_type = command AND grantee <> (SELECT relowner FROM pg_class WHERE oid = target)
		AND (is_new OR NOT has_sequence_privilege(grantee, to_regclass(sequence)::oid, 'USAGE, UPDATE'))
$$;
COMMENT ON FUNCTION snowflake_admin.sequence_grants IS 'for letting those use a sequence who can insert into its table';

-- The name of a new sequence: up to 45 characters of the table's name, then as many of the column's
-- as fit, and a suffix.  A relation that has the name already is another one, whoever made it.
CREATE FUNCTION snowflake_admin.new_sequence(target regclass, col name) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	tab record;
	n integer := 1;
	suffix text := '_seq';
	sequence text;
BEGIN
	SELECT relname, relnamespace INTO STRICT tab FROM pg_class WHERE oid = target;
	LOOP
		sequence := with_suffix((left(tab.relname, 45) || '_' || col)::name, suffix);
		IF NOT EXISTS (SELECT FROM pg_class
			WHERE relname = sequence::name AND relnamespace = tab.relnamespace) THEN
			RETURN format('%s.%I', tab.relnamespace::regnamespace, sequence);
		END IF;
		n := n + 1;
		suffix := concat('_seq', n);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.new_sequence IS 'for naming a new sequence';

-- Does nothing need a sequence once another one serves a column?  It is that of a former serial,
-- which the column still owns, or one that next_id() had for this column.
CREATE FUNCTION snowflake_admin.is_needless(target regclass, key_col name, sequence regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT EXISTS (
		SELECT FROM pg_class AS s JOIN pg_class AS t ON t.oid = target
		JOIN pg_attribute AS a ON attrelid = target AND attname = key_col
		WHERE s.oid = sequence AND s.relowner = t.relowner AND s.relnamespace = t.relnamespace
		AND NOT EXISTS (SELECT FROM pg_depend
			WHERE classid = 'pg_class'::regclass AND objid = s.oid AND deptype = 'e')
		AND NOT EXISTS (SELECT FROM sequence_users(ARRAY[s.oid]) AS u
			WHERE (u.tab, u.col) IS DISTINCT FROM (target::oid, attnum))
		AND NOT EXISTS (SELECT FROM namers(ARRAY[s.oid], '{}')))
$$;
COMMENT ON FUNCTION snowflake_admin.is_needless IS 'for telling whether a sequence may be dropped';

-- The sequences that the defaults of a table name, and those that its columns own
CREATE FUNCTION snowflake_admin.key_sequences(target regclass) RETURNS SETOF oid
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT refobjid FROM pg_attrdef AS d CROSS JOIN LATERAL (	-- OFFSET has it looked up: there are few in the statistics
		SELECT refobjid FROM pg_depend WHERE classid = 'pg_attrdef'::regclass AND objid = d.oid
			AND refclassid = 'pg_class'::regclass OFFSET 0) AS named
	JOIN pg_sequence ON seqrelid = refobjid
	WHERE adrelid = target
	UNION SELECT objid FROM pg_depend JOIN pg_sequence ON seqrelid = objid
	WHERE classid = 'pg_class'::regclass AND refclassid = classid AND refobjid = target AND deptype IN ('a', 'i')
$$;
COMMENT ON FUNCTION snowflake_admin.key_sequences IS 'for finding the sequences of a table';
