/* admin/widen/swap.sql */

-- The last step of snowflake_widen(): the commands that give the new columns all that the old
-- ones have, drop these, and give the new ones their names.  Changes nothing itself, and knows
-- nothing of the steps before.
--
-- One function for each thing that a column has; those at the end say in which order.

-- The sequences of the columns: of a serial (deptype a) or of an identity (i)
CREATE FUNCTION snowflake_admin.widen_sequences(columns widening[])
RETURNS TABLE (rel regclass, wide name, seq regclass, deptype "char")
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT rel, wide, objid::regclass, deptype
	FROM unnest(columns)
	JOIN pg_depend ON classid = 'pg_class'::regclass AND refclassid = classid AND refobjid = rel AND refobjsubid = num
	JOIN pg_class ON oid = objid AND relkind = 'S'
$$;
COMMENT ON FUNCTION snowflake_admin.widen_sequences IS 'for finding what generates the values of a column';

-- The indexes that new ones replace, with the constraints that they make
CREATE FUNCTION snowflake_admin.widen_replaced_indexes(columns widening[])
RETURNS TABLE (rel regclass, index oid, name name, schema regnamespace, fresh name, is_clustered boolean,
	is_identity boolean, con oid, contype "char")
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT w.rel, index, name, schema, fresh, indisclustered, indisreplident, con.oid, con.contype
	FROM widen_indexes(columns) AS w
	JOIN pg_index ON indexrelid = index
	LEFT JOIN pg_constraint AS con ON conindid = index AND conrelid = w.rel AND con.contype IN ('p', 'u')
$$;
COMMENT ON FUNCTION snowflake_admin.widen_replaced_indexes IS 'for giving new indexes what the old ones have';

-- The foreign keys, CHECK and NOT NULL constraints that new ones replace, and these
CREATE FUNCTION snowflake_admin.widen_replaced_constraints(columns widening[])
RETURNS TABLE (rel regclass, con oid, name name, fresh name)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT child, con, name, fresh FROM widen_keys(columns)
	UNION ALL SELECT rel, con, conname, fresh FROM widen_checks(columns) JOIN pg_constraint ON oid = con
	UNION ALL SELECT rel, oid, conname, (widen_new_constraint(oid)).name
	FROM unnest(columns) JOIN pg_constraint ON conrelid = rel AND contype = 'n' AND num = ANY (conkey)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_replaced_constraints IS 'for giving new constraints what the old ones have';

-- What comes before the locks that keep everybody out: statistics of the new columns, with the
-- targets of the old ones
CREATE FUNCTION snowflake_admin.widen_analyze_commands(columns widening[]) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT array_agg(command ORDER BY n, command) FROM (
		SELECT 1, column_statistics(rel, num, rel::text, wide) FROM unnest(columns)
		UNION ALL SELECT 2, index_statistics(index, format('%s.%I', schema, fresh)) FROM widen_indexes(columns)
		UNION ALL SELECT 3, format('CREATE STATISTICS %s.%I (%s) ON %s FROM %s', schema, fresh, kinds, list, rel)
		FROM widen_statistics(columns) WHERE fresh_oid IS NULL
		UNION ALL SELECT 4, statistics_options(statistics, format('%s.%I', schema, fresh)) FROM widen_statistics(columns)
		UNION ALL SELECT DISTINCT 5, format('ANALYZE %s', rel) FROM unnest(columns)) AS c (n, command)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_analyze_commands IS 'for having statistics of new columns when they are used';

-- NOT NULL.  The validated CHECK proves it without a scan.  Since PostgreSQL 18 it is a
-- constraint with a name.
CREATE FUNCTION snowflake_admin.widen_not_null_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN c.oid IS NULL THEN format('ALTER TABLE %s ALTER %I SET NOT NULL', rel, wide)
		ELSE format('ALTER TABLE %s ADD CONSTRAINT %I NOT NULL %I', rel, (widen_new_constraint(c.oid)).name, wide) END
	FROM unnest(columns)
	JOIN pg_attribute ON attrelid = rel AND attnum = num AND attnotnull
	LEFT JOIN pg_constraint AS c ON conrelid = rel AND contype = 'n' AND num = ANY (conkey)
	ORDER BY 1
$$;
COMMENT ON FUNCTION snowflake_admin.widen_not_null_commands IS 'for the NOT NULL of new columns';

-- The default of a column becomes the new column's as it is.
CREATE FUNCTION snowflake_admin.widen_default_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER TABLE %s ALTER %I SET DEFAULT %s', rel, wide, pg_get_expr(adbin, adrelid))
	FROM unnest(columns) JOIN pg_attrdef ON adrelid = rel AND adnum = num
	ORDER BY 1
$$;
COMMENT ON FUNCTION snowflake_admin.widen_default_commands IS 'for the defaults of new columns';

-- The sequences of serials, and those that defaults call, count as bigint; the new columns own
-- those that the old ones own.
CREATE FUNCTION snowflake_admin.widen_serial_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	(
		SELECT format('ALTER SEQUENCE %s AS bigint', seq) FROM (
			SELECT seq FROM widen_sequences(columns) WHERE deptype = 'a'
			UNION SELECT refobjid::regclass FROM unnest(columns)
			JOIN pg_attrdef ON adrelid = rel AND adnum = num
			JOIN pg_depend ON classid = 'pg_attrdef'::regclass AND objid = pg_attrdef.oid
				AND refclassid = 'pg_class'::regclass) AS s
		JOIN pg_sequence ON seqrelid = seq WHERE seqtypid <> 'bigint'::regtype
		ORDER BY 1
	)
	UNION ALL (
		SELECT format('ALTER SEQUENCE %s OWNED BY %s.%I', seq, rel, wide)
		FROM widen_sequences(columns) WHERE deptype = 'a'
		ORDER BY 1
	)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_serial_commands IS 'for the sequences of serials';

-- The sequence of an identity column cannot change its column, so a new one takes its place
-- and its name.
CREATE FUNCTION snowflake_admin.widen_identity_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT command FROM (
		SELECT rel, wide, seq, format('%s.%I', relnamespace::regnamespace, relname) AS named,
			relnamespace::regnamespace AS schema, free_name(widen_name(relname),
				ARRAY(SELECT other.relname FROM pg_class AS other WHERE other.relnamespace = c.relnamespace)) AS away
		FROM widen_sequences(columns) JOIN pg_class AS c ON oid = seq WHERE deptype = 'i') AS s,
	LATERAL (
		SELECT 0, format('ALTER SEQUENCE %s RENAME TO %s', seq, away)
		UNION ALL SELECT * FROM identity_like(seq, format('%s.%s', schema, away), rel::text, wide, named)
	) AS c (n, command)
	WHERE command IS NOT NULL
	ORDER BY seq::oid, n, starts_with(command, 'GRANT '), command
$$;
COMMENT ON FUNCTION snowflake_admin.widen_identity_commands IS 'for the identities of new columns';

-- Privileges on a column, and its comment
CREATE FUNCTION snowflake_admin.widen_column_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT command FROM unnest(columns) JOIN pg_attribute ON attrelid = rel AND attnum = num,
	LATERAL (
		SELECT 1, format('COMMENT ON COLUMN %s.%I IS ', rel, wide) || quote_literal(col_description(rel, num))
		UNION ALL SELECT 2, grant_commands(attacl, format(' (%I)', wide), rel::text)
	) AS c (n, command)
	WHERE command IS NOT NULL
	ORDER BY n, command
$$;
COMMENT ON FUNCTION snowflake_admin.widen_column_commands IS
'for the privileges and comments of new columns';

-- The triggers, with others that somebody has made of their functions, and the functions
CREATE FUNCTION snowflake_admin.widen_trigger_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT command FROM unnest(columns) AS w, LATERAL (
		SELECT 1, format('DROP TRIGGER %I ON %s', t.trig, rel) FROM (
			SELECT w.trig UNION SELECT p.trig FROM widen_pairs(rel) AS p WHERE p.num = w.num) AS t
		UNION ALL SELECT 2, format('DROP FUNCTION %s()', func)
	) AS c (n, command)
	ORDER BY n, command
$$;
COMMENT ON FUNCTION snowflake_admin.widen_trigger_commands IS 'for dropping what keeps columns equal';

-- The old columns, with their indexes and constraints.  Other sessions' temporary objects go with
-- them.
CREATE FUNCTION snowflake_admin.widen_drop_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER TABLE %s DROP %I%s', rel, narrow, CASE WHEN has_others_temporary(rel, num) THEN ' CASCADE' END)
	FROM unnest(columns)
	ORDER BY 1
$$;
COMMENT ON FUNCTION snowflake_admin.widen_drop_commands IS 'for dropping old columns';

-- New indexes and columns get the names of the old ones, and make the same constraints.
CREATE FUNCTION snowflake_admin.widen_rename_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT command FROM (
		SELECT 1, format('ALTER INDEX %s.%I RENAME TO %I', schema, fresh, name) FROM widen_replaced_indexes(columns)
		UNION ALL SELECT 2, format('ALTER TABLE %1$s ADD CONSTRAINT %2$I %3$s USING INDEX %2$I', rel, name,
			CASE contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END)
		FROM widen_replaced_indexes(columns) WHERE con IS NOT NULL
		UNION ALL SELECT 2, format('ALTER STATISTICS %s.%I RENAME TO %I', schema, fresh, name) FROM widen_statistics(columns)
		UNION ALL SELECT 3, format('ALTER TABLE %s RENAME %I TO %I', rel, wide, narrow) FROM unnest(columns)
		UNION ALL SELECT 4, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', rel, fresh, name)
		FROM widen_replaced_constraints(columns)
	) AS c (n, command)
	ORDER BY n, command
$$;
COMMENT ON FUNCTION snowflake_admin.widen_rename_commands IS 'for the names of new columns, indexes and constraints';

-- What indexes are marked as, and the comments on them, on constraints and on statistics
CREATE FUNCTION snowflake_admin.widen_mark_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT command FROM (
		SELECT 1, format('ALTER TABLE %s CLUSTER ON %I', rel, name)
		FROM widen_replaced_indexes(columns) WHERE is_clustered
		UNION ALL SELECT 1, format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', rel, name)
		FROM widen_replaced_indexes(columns) WHERE is_identity
		UNION ALL SELECT 2, format('COMMENT ON INDEX %s.%I IS ', schema, name)
			|| quote_literal(obj_description(index, 'pg_class')) FROM widen_replaced_indexes(columns)
		UNION ALL SELECT 2, format('COMMENT ON STATISTICS %s.%I IS ', schema, name)
			|| quote_literal(obj_description(statistics, 'pg_statistic_ext')) FROM widen_statistics(columns)
		UNION ALL SELECT 2, format('COMMENT ON CONSTRAINT %I ON %s IS ', name, rel)
			|| quote_literal(obj_description(con, 'pg_constraint'))
		FROM (
			SELECT rel, con, name FROM widen_replaced_indexes(columns)
			UNION SELECT rel, con, name FROM widen_replaced_constraints(columns)) AS replaced
	) AS c (n, command)
	WHERE command IS NOT NULL
	ORDER BY n, command
$$;
COMMENT ON FUNCTION snowflake_admin.widen_mark_commands IS
'for CLUSTER, REPLICA IDENTITY and comments of new indexes and constraints';

-- The swap is in three parts.  The first is the tables' owner's: for NOT NULL, and for a default,
-- PostgreSQL looks at expressions of the table.
CREATE FUNCTION snowflake_admin.widen_swap_as_owner(columns widening[]) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
BEGIN
	RETURN QUERY SELECT widen_not_null_commands(columns);
	RETURN QUERY SELECT widen_default_commands(columns);
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_swap_as_owner IS
'for the part of the swap that runs as the owner of the tables';

-- The second part gives the new columns what is left, and drops the triggers and the old foreign
-- keys.  The new ones have been there since an earlier step, and get their names later.
CREATE FUNCTION snowflake_admin.widen_swap_copy(columns widening[]) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
BEGIN
	RETURN QUERY SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', child, name) FROM widen_keys(columns) ORDER BY 1;
	RETURN QUERY SELECT widen_serial_commands(columns);
	RETURN QUERY SELECT widen_identity_commands(columns);
	RETURN QUERY SELECT widen_column_commands(columns);
	RETURN QUERY SELECT index_statistics(index, format('%s.%I', schema, fresh)) FROM widen_indexes(columns);
	RETURN QUERY SELECT widen_trigger_commands(columns);
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_swap_copy IS 'for the part of the swap before the old columns go';

-- The third part drops the old columns, and lets the new ones take their places.
CREATE FUNCTION snowflake_admin.widen_swap_replace(columns widening[]) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
BEGIN
	RETURN QUERY SELECT widen_drop_commands(columns);
	RETURN QUERY SELECT widen_rename_commands(columns);
	RETURN QUERY SELECT widen_mark_commands(columns);
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_swap_replace IS 'for the part of the swap in which the old columns go';

-- All three parts
CREATE FUNCTION snowflake_admin.widen_swap_commands(columns widening[], OUT by_owner text[], OUT to_copy text[],
	OUT to_replace text[])
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT ARRAY(SELECT widen_swap_as_owner(columns)), ARRAY(SELECT widen_swap_copy(columns)),
		ARRAY(SELECT widen_swap_replace(columns))
$$;
COMMENT ON FUNCTION snowflake_admin.widen_swap_commands IS 'for composing the swap before it changes what it reads';

-- What the new columns get, but no lock on a table keeps others from changing, in one text to be
-- compared: privileges on columns, identities' sequences, and what ALTER INDEX and COMMENT ON
-- INDEX change; and whether other sessions have temporary objects
CREATE FUNCTION snowflake_admin.widen_unlocked(columns widening[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT string_agg(line, E'\n' ORDER BY line COLLATE "C") FROM (
		SELECT concat_ws(' ', rel::oid, num, attacl, has_others_temporary(rel, num))
		FROM unnest(columns) JOIN pg_attribute ON attrelid = rel AND attnum = num
		UNION ALL SELECT concat_ws(' ', seq::oid, relacl, pg_sequence, obj_description(seq, 'pg_class'))
		FROM widen_sequences(columns) JOIN pg_class ON oid = seq JOIN pg_sequence ON seqrelid = seq
		WHERE deptype = 'i'
		UNION ALL SELECT concat_ws(' ', index, relname, reltablespace, reloptions, obj_description(index, 'pg_class'),
			(SELECT array_agg(attstattarget ORDER BY attnum) FROM pg_attribute WHERE attrelid = index))
		FROM widen_indexes(columns) JOIN pg_class ON oid = index) AS c (line)
$$;
COMMENT ON FUNCTION snowflake_admin.widen_unlocked IS 'for finding what others have changed during the swap';

-- Warn of grants that the swap makes anew.
CREATE FUNCTION snowflake_admin.widen_warn(columns widening[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
DECLARE
	granted record;
BEGIN
	FOR granted IN
		SELECT object, grantor::regrole, string_agg(format('%s to %s', privilege_type,
			grantee_name(grantee)), ', ') AS grants
		FROM (
			SELECT format('column %I of table %s', narrow, rel), relowner, attacl
			FROM unnest(columns) JOIN pg_class ON oid = rel
			JOIN pg_attribute ON attrelid = rel AND attnum = num
			UNION ALL SELECT format('sequence %s', seq), relowner, relacl
			FROM widen_sequences(columns) JOIN pg_class ON oid = seq WHERE deptype = 'i'
		) AS a (object, owner, acl), aclexplode(acl)
		WHERE grantor <> owner GROUP BY object, grantor ORDER BY object, 2
	LOOP
		PERFORM warn_of_grantor(granted.object::text, granted.grantor::text, granted.grants);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_warn IS 'for saying whose grants will be the owner''s';
