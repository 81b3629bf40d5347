/* admin/partition/partition.sql */

-- CALL snowflake_partition(): a live table becomes the first partition of a new one.  Steps 1 to 3
-- are one transaction each, 4 is one for each partition, and 5 several.  What is still to do is read
-- from the catalogs:
--
--     1. add the CHECK of attach.sql, which rejects nothing
--     2. validate it
--     3. swap: rename the table, create the new one, give it all that the table has, attach the
--        old one and create the first partitions
--     4. create the partitions that are still missing
--     5. validate foreign keys that refer to it, add one that it has to itself, analyze it, and drop
--        the CHECK
--
-- The CHECK marks a table that is to become a partition, and one that has become it while
-- something is left to do.  Its comment has the arguments of the last call.  To give up before the
-- swap is to drop it.
--
-- While a step decides and acts, SHARE UPDATE EXCLUSIVE locks keep out other such calls and all
-- that would change the table's definition.  It keeps nobody from creating views, functions and
-- publications of all tables, from GRANT on the table, and from changing what partition_unlocked()
-- lists.
--
-- What proves or checks something about rows or indexes evaluates expressions that the table's
-- owner has written, and runs as that role: VALIDATE CONSTRAINT, ATTACH PARTITION, and a foreign
-- key that is checked at once.  So do policies and triggers, whose expressions are created anew.
-- All else is the caller's.

-- The error if somebody has changed what the new table was to get
CREATE FUNCTION snowflake_admin.partition_refuse_change(tab regclass) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE object_not_in_prerequisite_state USING
		MESSAGE = format('a privilege, a sequence or a comment of table %s was changed, or something that depends on it '
			'was created, by a concurrent transaction', tab),
		HINT = 'Call snowflake_partition() again.';
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_refuse_change IS
'for ending a swap that would lose what somebody has changed meanwhile';

-- Put the new table in the old one's place, and create the partitions after it, so that no ID is
-- without a partition for some time, even if nobody calls again.  In the end the old table is
-- closed to all but its owner, because what is revoked on the new one, or hidden by a later
-- policy there, would be open by the old one's name.
--
-- The caller has locked all tables against everybody.  So what the new table gets is read here and
-- not before.  keep_privileges() keeps others from changing privileges; that the new table has got
-- them all is looked at in the end.  What depends on the table can still be created, and is looked
-- at then, too.  All else that these locks leave open is compared when the commands have locked it.
CREATE FUNCTION snowflake_admin.partition_swap(target regclass, col name, bound bigint, unit text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	unlocked text;
	renames text[] := partition_renames(target);
	swap record;
	parent regclass;
	piece record;
BEGIN
	PERFORM keep_privileges(ARRAY(SELECT object FROM partition_names(target) WHERE kind IN ('r', 'S')));
	unlocked := partition_unlocked(target);
	PERFORM partition_require_no_obstacle(target, col);
	SELECT * INTO swap FROM partition_swap_commands(target, col, bound);
	PERFORM run(renames, '{}', 1, false, mode => NULL);
	IF partition_unlocked(target) <> unlocked THEN
		PERFORM partition_refuse_change(target);
	END IF;
	PERFORM run(swap.commands, '{}', 1, false, mode => NULL, owner_of => target, by_owner => swap.by_owner);
	SELECT inhparent INTO STRICT parent FROM pg_inherits WHERE inhrelid = target;
	IF EXISTS (SELECT FROM partition_dependents(target)) OR all_privileges(target) <> all_privileges(parent) THEN
		PERFORM partition_refuse_change(parent);
	END IF;
	PERFORM run(ARRAY(SELECT revoke_commands(target, target::text)), '{}', 1, false, mode => NULL);
	-- Here all locks are there, while later each partition would have to try for those
	-- of foreign keys.  Five do not take long.
	FOR piece IN SELECT low, high, layout
		FROM key_layout(parent) AS layout, ranges(parent) AS r,
			bound_time(r.upper_id, layout) AS at,
			missing_ranges(parent, unit,
				greatest(needed_until('3 days', unit),
					(at AT TIME ZONE 'UTC' + ('1 ' || unit)::interval) AT TIME ZONE 'UTC'), layout) LIMIT 5
	LOOP
		PERFORM make_partition(parent, partition_key(parent), piece.low, piece.high, unit, piece.layout, target, '{}', 1,
			false);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_swap IS
'for putting a new table in the place of the old one, with the partitions of the next days';

-- The first ID that is not to be the old table's: if no time is given, at the first start of a unit that
-- is more than a day, and max_lead, ahead, so that a table can be validated and swapped before.  An
-- error if the table has such an ID or a larger one, or may get one before the new table is there.
CREATE FUNCTION snowflake_admin.partition_bound(target regclass, col name, unit text, at timestamptz,
	layout snowflake_layout, last_time timestamptz) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	-- If five minutes are not enough to validate the table, attach_before() refuses it, and it is kept.
	earliest timestamptz := clock_timestamp() + interval '5 minutes' + partitions_lead();
	tomorrow timestamp := clock_timestamp() AT TIME ZONE 'UTC' + interval '24 hours' + partitions_lead();
	since timestamptz := coalesce(at, (date_trunc(unit, tomorrow) + ('1 ' || unit)::interval) AT TIME ZONE 'UTC');
	bound bigint := bound(since, layout);
	newest timestamptz;
BEGIN
	IF since < earliest THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('at must be later than %s, and not %s', date_trunc('second', earliest), since),
			DETAIL = 'Until the new table is there, the old one gets the IDs of that time.';
	ELSIF NOT isfinite(since)
		OR bound_time(bound, layout) NOT BETWEEN since AND since + interval '10 seconds'
	THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('IDs of table %s cannot have the time %s', target, since),
			DETAIL = format('Their layout is %s.', layout);
	END IF;
	newest := greatest(last_time, bound_time((
		SELECT id FROM as_owner(target, format('SELECT max(%1$I)::bigint FROM %2$s WHERE %1$I >= %3$s', col, target,
			bound)) AS look (id bigint)), layout));
	IF newest > since - interval '5 minutes' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has IDs, or soon gets some, that are later than its partition', target),
			DETAIL = format('They reach to %s, and new partitions would begin at %s.', newest, since),
			HINT = 'Use at => a later time. SELECT * FROM snowflake_check() says more about IDs that are '
				'ahead of the clock.';
	END IF;
	RETURN bound;
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_bound IS
'for choosing where the first partition ends, and refusing a time that its IDs have passed';

-- What is left to do after the swap.  Each step is gone from here once it is done, but for the last
-- one, which drops the CHECK.  Before the swap this is only a plan, and old and parent are the same
-- table.  What "by_owner" says runs as the owner of the first relation.  Of the foreign keys that
-- are to be validated, one or all.
CREATE FUNCTION snowflake_admin.partition_rest(parent regclass, old regclass, old_name text, planned boolean,
	all_keys boolean)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text, by_owner boolean[])
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	(
		SELECT 'validate', ARRAY[format('ALTER TABLE %s VALIDATE CONSTRAINT %I',
			CASE conrelid WHEN old THEN old_name ELSE conrelid::regclass::text END, conname)],
				ARRAY[conrelid::regclass], NULL, ARRAY[true]
		FROM pg_constraint
		WHERE contype = 'f' AND conparentid = 0 AND confrelid = parent AND (planned OR NOT convalidated)
		ORDER BY oid LIMIT CASE WHEN NOT all_keys THEN 1 END
	)
	UNION ALL SELECT 'add', array_remove(ARRAY[
			format('ALTER TABLE %s ADD CONSTRAINT %I %s', parent, conname, pg_get_constraintdef(oid)),
			format('COMMENT ON CONSTRAINT %I ON %s IS ', conname, parent)
				|| quote_literal(obj_description(oid, 'pg_constraint'))], NULL),
		ARRAY[parent], 'SHARE ROW EXCLUSIVE', ARRAY[true]
	FROM pg_constraint
	WHERE contype = 'f' AND conparentid = 0 AND conrelid = old AND confrelid = parent
	UNION ALL
	-- Autovacuum analyzes partitions, but not the table above them.  ANALYZE itself becomes the owner.
	SELECT 'analyze', ARRAY[format('ANALYZE %s', parent)], ARRAY[parent], NULL, NULL
	FROM pg_class WHERE oid = parent AND (planned OR reltuples < 0)
	UNION ALL
	SELECT 'drop', ARRAY[format('ALTER TABLE %s DROP CONSTRAINT snowflake_partition', old_name)], ARRAY[old],
		'ACCESS EXCLUSIVE', NULL
$$;
COMMENT ON FUNCTION snowflake_admin.partition_rest IS
'for composing the steps after the swap, and for planning them';

-- The comment that shows a table's mark with the arguments of this call, or NULL if it does already
CREATE FUNCTION snowflake_admin.partition_remark(old regclass, unit text, at timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('COMMENT ON CONSTRAINT snowflake_partition ON %s IS %L', old, partition_comment(unit, at))
	FROM pg_constraint WHERE conrelid = old AND conname = 'snowflake_partition'
		AND obj_description(oid, 'pg_constraint') IS DISTINCT FROM partition_comment(unit, at)
$$;
COMMENT ON FUNCTION snowflake_admin.partition_remark IS
'for letting the check show the last call and not the first one';

-- The steps that are left after the swap, all or, unless planned, at least the first one
CREATE FUNCTION snowflake_admin.partition_steps_after_swap(parent regclass, old regclass, unit text, at timestamptz,
	planned boolean, tries integer)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text, by_owner boolean[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	PERFORM partition_require_mark(old, attname) FROM pg_attribute
	WHERE attrelid = parent AND quote_ident(attname) = partition_key(parent);
	IF NOT EXISTS (SELECT FROM partition_mark(old)) THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT 'comment', ARRAY[command], ARRAY[old], NULL, NULL::boolean[]
		FROM partition_remark(old, unit, at) AS command WHERE NOT planned AND command IS NOT NULL;
	IF EXISTS (SELECT FROM missing_ranges(parent, unit, needed_until('3 days', unit), key_layout(parent))) THEN
		RETURN QUERY SELECT 'partition', '{}'::text[], ARRAY[parent], NULL, NULL::boolean[];
	END IF;
	PERFORM keep_names(ARRAY(SELECT conrelid FROM pg_constraint
		WHERE contype = 'f' AND conparentid = 0 AND confrelid = parent AND NOT convalidated
		ORDER BY oid LIMIT CASE WHEN NOT planned THEN 1 END), tries);
	RETURN QUERY SELECT * FROM partition_rest(parent, old, old::text, false, planned);
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_steps_after_swap IS 'for going on with a table that has become a partition';

-- The steps of a table that is still to become a partition.  If only planned, the swap is the
-- commands that it would execute now, and those after the swap are there, too.
CREATE FUNCTION snowflake_admin.partition_steps_before_swap(target regclass, unit text, at timestamptz, planned boolean,
	tries integer)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text, by_owner boolean[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
#variable_conflict use_column
DECLARE
	id record;
	validated boolean;
	bound bigint;
	old_name text;
	swap record;
BEGIN
	PERFORM keep_names(ARRAY(SELECT r.tab::oid FROM related_tables(target) AS r), tries);
	SELECT * INTO id FROM partition_id(target);
	PERFORM partition_require_mark(target, id.col);
	PERFORM partition_require(target, id.col);
	bound := partition_bound(target, id.col, unit, at, id.layout, id.last_time);
	SELECT c.validated INTO validated FROM partition_mark(target) AS c;
	IF validated IS NULL THEN
		RETURN QUERY SELECT 'check', ARRAY[format('ALTER TABLE %s ADD CONSTRAINT snowflake_partition '
			'CHECK (%I < snowflake_admin.partition_limit()) NOT VALID', target, id.col),
				format('COMMENT ON CONSTRAINT snowflake_partition ON %s IS %L', target, partition_comment(unit, at))],
			ARRAY[target], 'ACCESS EXCLUSIVE', NULL::boolean[];
	END IF;
	RETURN QUERY SELECT 'comment', ARRAY[command], ARRAY[target], NULL, NULL::boolean[]
		FROM partition_remark(target, unit, at) AS command WHERE NOT planned AND command IS NOT NULL;
	IF validated IS NOT TRUE THEN
		RETURN QUERY SELECT 'validate', ARRAY[format('ALTER TABLE %s VALIDATE CONSTRAINT snowflake_partition', target)],
			ARRAY[target], NULL, ARRAY[true];
	END IF;
	IF NOT planned THEN
		RETURN QUERY SELECT 'swap', ARRAY[format('SELECT snowflake_admin.partition_swap(%L::regclass, %L::name, '
				'%s::bigint, %L::text)', target, id.col, bound, unit)],
			ARRAY(SELECT tab FROM (SELECT * FROM related_tables(target) UNION ALL VALUES (target, 0)) AS r (tab, place)
				ORDER BY place, tab), 'ACCESS EXCLUSIVE', NULL::boolean[];
		RETURN;
	END IF;
	SELECT * INTO swap FROM partition_swap_commands(target, id.col, bound);
	RETURN QUERY SELECT 'swap', partition_renames(target) || swap.commands, ARRAY[target], 'ACCESS EXCLUSIVE',
		array_fill(false, ARRAY[cardinality(partition_renames(target))]) || swap.by_owner;
	SELECT old_qualified INTO old_name FROM partition_names(target) WHERE kind = 'r';
	RETURN QUERY SELECT 'plan', p.commands, ARRAY[target], NULL, NULL::boolean[]
		FROM (VALUES (ARRAY(SELECT revoke_commands(target, old_name))),
			(ARRAY[call_of('snowflake_make_partitions', target, format(', unit => %L::text', unit))])
		) AS p (commands);
	RETURN QUERY SELECT 'plan', r.commands, r.relations, r.mode, r.by_owner
		FROM partition_rest(target, target, old_name, true, true) AS r;
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_steps_before_swap IS 'for going on with a table that is to become a partition';

-- The steps that are left, with their commands, the relations that these lock, and the lock's
-- mode.  What "by_owner" says runs as the owner of the first relation.
CREATE FUNCTION snowflake_admin.partition_steps(target regclass, unit text, at timestamptz, planned boolean,
	tries integer)
RETURNS TABLE (kind text, commands text[], relations regclass[], mode text, by_owner boolean[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	done record;
BEGIN
	IF unit IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'unit must not be null';
	END IF;
	PERFORM require_unit(unit);
	SELECT * INTO done FROM partition_target(target);
	IF done.old IS NULL THEN
		RETURN QUERY SELECT * FROM partition_steps_before_swap(target, unit, at, planned, tries);
	ELSE
		RETURN QUERY SELECT * FROM partition_steps_after_swap(done.parent, done.old, unit, at, planned, tries);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_steps IS 'for knowing what is left to do, whoever has begun';

-- Say before the first step what changes for programs and roles, and how to give up.
CREATE FUNCTION snowflake_admin.partition_announce(target regclass) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	trigger name;
	old_name text;
BEGIN
	FOR trigger IN SELECT tgname FROM pg_trigger JOIN pg_proc AS p ON p.oid = tgfoid
		WHERE tgrelid = target AND NOT tgisinternal AND tgtype & 1 <> 0
			AND prosrc ~* '\mtg_(table_name|relname|relid)\M'
	LOOP
		RAISE WARNING 'trigger % of table % will see the name of the partition in TG_TABLE_NAME',
			quote_ident(trigger), target;
	END LOOP;
	PERFORM warn_of_grantors(ARRAY(
		SELECT object FROM partition_names(target) WHERE kind IN ('r', 'S') ORDER BY kind DESC));
	SELECT old_qualified INTO old_name FROM partition_names(target) WHERE kind = 'r';
	IF EXISTS (SELECT FROM revoke_commands(target, old_name)) THEN
		RAISE NOTICE 'only its owner will have privileges on the old table, %: REVOKE and policies of the new one do '
			'not reach it, and rows are found by the new one', old_name;
	END IF;
	RAISE NOTICE USING
		MESSAGE = format('programs will notice that table %s is partitioned', target),
		DETAIL = format('ctid is unique only within a partition. FROM ONLY %1$s finds no row. COPY %1$s TO, '
			'TRUNCATE ONLY and CREATE INDEX CONCURRENTLY fail.', target);
	RAISE NOTICE '%', format('table %1$s takes all rows as before until it is renamed; to give up: '
		'ALTER TABLE %1$s DROP CONSTRAINT snowflake_partition;', target);
END
$$;
COMMENT ON FUNCTION snowflake_admin.partition_announce IS
'for saying what a table''s programs and roles will notice';

-- Do what is left to do, or show it.
CREATE PROCEDURE @extschema@.snowflake_partition(tab regclass, unit text, at timestamptz DEFAULT NULL,
	dry_run boolean DEFAULT false, tries integer DEFAULT 30)
LANGUAGE plpgsql AS $$
DECLARE
	target pg_catalog.record;
	step pg_catalog.record;
	remarked boolean := false;
BEGIN
	CALL snowflake_admin.begin_command('snowflake_partition()');
	LOOP
		SELECT * INTO target FROM partition_target(tab);
		PERFORM require_no_engine('snowflake_partition()', ARRAY[tab]);
		-- Two calls, one for the new table and one for what has become its partition, lock both
		-- in the same order.  A swap while this waits changes what there is to lock.
		PERFORM lock(array_remove(ARRAY[target.parent, coalesce(target.old, tab)], NULL), tries, false);
		IF target IS DISTINCT FROM (SELECT t FROM partition_target(tab) AS t) THEN
			CALL snowflake_admin.next_transaction();
			CONTINUE;
		END IF;
		PERFORM require_no_other('snowflake_partition()', ARRAY[tab],
			ARRAY(SELECT r.tab FROM related_tables(tab) AS r));
		-- Another call, with other arguments, may have changed the comment since.  It writes it once, too.
		SELECT * INTO step FROM partition_steps(tab, unit, at, dry_run, tries) AS s
		WHERE s.kind <> 'comment' OR NOT remarked LIMIT 1;
		EXIT WHEN NOT FOUND;
		remarked := remarked OR step.kind IN ('check', 'comment');
		PERFORM set_config('application_name',
			format('snowflake_partition: %s %s', step.kind, tab)::name::text, true);
		IF step.kind = 'check' THEN
			PERFORM partition_announce(tab);
		END IF;
		IF dry_run THEN
			PERFORM run(commands, relations, tries, true,
				owner_of => CASE WHEN by_owner IS NOT NULL THEN relations[1] END, by_owner => by_owner)
			FROM partition_steps(tab, unit, at, true, tries);
			EXIT;
		ELSIF step.kind = 'partition' THEN
			CALL snowflake_admin.make_partitions(step.relations[1], '3 days', unit, NULL, false, tries, false);
		ELSE
			PERFORM run(step.commands, step.relations, tries, false, mode => step.mode,
				owner_of => CASE WHEN step.by_owner IS NOT NULL THEN step.relations[1] END,
				by_owner => step.by_owner);
		END IF;
		CALL snowflake_admin.next_transaction();
	END LOOP;
	IF NOT dry_run THEN
		RAISE NOTICE 'table % is partitioned',
			(SELECT parent FROM partition_target(tab));
	END IF;
	CALL snowflake_admin.end_command();
END
$$;
COMMENT ON PROCEDURE @extschema@.snowflake_partition(regclass, text, timestamptz, boolean, integer) IS
'let a table that is in use become the first partition of a new table, by ranges of time of its IDs';
