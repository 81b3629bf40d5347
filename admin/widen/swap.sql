/* admin/widen/swap.sql */

-- The last step of snowflake_widen(): the commands that give the new columns all that the old
-- ones have, drop these, and give the new ones their names.  Changes nothing itself.
--
-- One function for each thing that a column has; widen_swap() at the end says in which order.

-- The sequences of the columns: of a serial (deptype a) or of an identity (i)
CREATE FUNCTION snowflake_admin.widen_sequences(columns widening[])
RETURNS TABLE (rel regclass, wide name, seq regclass, deptype "char")
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT rel, wide, objid::regclass, deptype
	FROM unnest(columns)
	JOIN pg_depend ON classid = 'pg_class'::regclass AND refclassid = classid AND refobjid = rel AND refobjsubid = num
	JOIN pg_class ON oid = objid AND relkind = 'S'
$$;
COMMENT ON FUNCTION snowflake_admin.widen_sequences IS 'for finding what makes the numbers of a column';

-- The indexes that new ones replace, with the constraints that they make
CREATE FUNCTION snowflake_admin.widen_replaced_indexes(columns widening[])
RETURNS TABLE (rel regclass, index oid, name name, schema regnamespace, fresh text, is_clustered boolean,
	is_identity boolean, con oid, contype "char")
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT w.rel, index, name, relnamespace, fresh, indisclustered, indisreplident, con.oid, con.contype
	FROM widen_indexes(columns) AS w
	JOIN pg_index ON indexrelid = index
	JOIN pg_class ON pg_class.oid = index
	LEFT JOIN pg_constraint AS con ON conindid = index AND conrelid = w.rel AND con.contype IN ('p', 'u')
$$;
COMMENT ON FUNCTION snowflake_admin.widen_replaced_indexes IS 'for giving new indexes what the old ones have';

-- The foreign keys, CHECK and NOT NULL constraints that new ones replace
CREATE FUNCTION snowflake_admin.widen_replaced_constraints(columns widening[])
RETURNS TABLE (rel regclass, con oid, name name)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT child, con, name FROM widen_keys(columns)
	UNION SELECT rel, oid, conname
	FROM unnest(columns) JOIN pg_constraint ON conrelid = rel AND contype IN ('c', 'n') AND num = ANY (conkey)
	WHERE NOT starts_with(conname, 'snowflake_widen_')
$$;
COMMENT ON FUNCTION snowflake_admin.widen_replaced_constraints IS 'for giving new constraints what the old ones have';

-- NOT NULL.  The validated CHECK proves it without a scan.  Since PostgreSQL 18 it is a
-- constraint with a name.
CREATE FUNCTION snowflake_admin.widen_not_null_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN c.oid IS NULL THEN format('ALTER TABLE %s ALTER %I SET NOT NULL', rel, wide)
		ELSE format('ALTER TABLE %s ADD CONSTRAINT snowflake_widen_%s NOT NULL %I', rel, c.oid, wide) END
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
			relnamespace::regnamespace AS schema, format('snowflake_widen_%s', seq::oid) AS away
		FROM widen_sequences(columns) JOIN pg_class ON oid = seq WHERE deptype = 'i') AS s,
	LATERAL (
		SELECT 0, format('ALTER SEQUENCE %s RENAME TO %s', seq, away)
		UNION ALL SELECT * FROM identity_like(seq, format('%s.%s', schema, away), rel::text, wide, named)
	) AS c (n, command)
	WHERE command IS NOT NULL
	ORDER BY seq::oid, n, starts_with(command, 'GRANT '), command
$$;
COMMENT ON FUNCTION snowflake_admin.widen_identity_commands IS 'for the identities of new columns';

-- Privileges on a column, its comment, statistics target and n_distinct
CREATE FUNCTION snowflake_admin.widen_column_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT command FROM unnest(columns) JOIN pg_attribute ON attrelid = rel AND attnum = num,
	LATERAL (
		SELECT 1, format('COMMENT ON COLUMN %s.%I IS ', rel, wide) || quote_literal(col_description(rel, num))
		UNION ALL SELECT 2, column_commands(rel, num, rel::text, wide)
		UNION ALL SELECT 3, grant_commands(attacl, format(' (%I)', wide), rel::text)
	) AS c (n, command)
	WHERE command IS NOT NULL
	ORDER BY n, command
$$;
COMMENT ON FUNCTION snowflake_admin.widen_column_commands IS
'for the privileges, comments and statistics of new columns';

-- What goes: triggers, their functions, and the old columns with their indexes and constraints.
-- Other sessions' temporary objects go with them.
CREATE FUNCTION snowflake_admin.widen_drop_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT command FROM unnest(columns), LATERAL (VALUES
		(1, format('DROP TRIGGER %I ON %s', trig, rel)),
		(2, format('DROP FUNCTION %s()', func)),
		(3, format('ALTER TABLE %s DROP %I%s', rel, narrow, CASE WHEN has_others_temporary(rel, num) THEN ' CASCADE' END))
	) AS c (n, command)
	ORDER BY n, command
$$;
COMMENT ON FUNCTION snowflake_admin.widen_drop_commands IS 'for dropping old columns and the triggers';

-- New indexes and columns get the names of the old ones, and make the same constraints.
CREATE FUNCTION snowflake_admin.widen_rename_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT command FROM (
		SELECT 1, format('ALTER INDEX %s RENAME TO %I', fresh, name) FROM widen_replaced_indexes(columns)
		UNION ALL SELECT 2, format('ALTER TABLE %1$s ADD CONSTRAINT %2$I %3$s USING INDEX %2$I', rel, name,
			CASE contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END)
		FROM widen_replaced_indexes(columns) WHERE con IS NOT NULL
		UNION ALL SELECT 3, format('ALTER TABLE %s RENAME %I TO %I', rel, wide, narrow) FROM unnest(columns)
		UNION ALL SELECT 4, format('ALTER TABLE %s RENAME CONSTRAINT snowflake_widen_%s TO %I', rel, con, name)
		FROM widen_replaced_constraints(columns)
	) AS c (n, command)
	ORDER BY n, command
$$;
COMMENT ON FUNCTION snowflake_admin.widen_rename_commands IS 'for the names of new columns, indexes and constraints';

-- What indexes are marked as, and the comments on them and on constraints
CREATE FUNCTION snowflake_admin.widen_mark_commands(columns widening[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT command FROM (
		SELECT 1, format('ALTER TABLE %s CLUSTER ON %I', rel, name)
		FROM widen_replaced_indexes(columns) WHERE is_clustered
		UNION ALL SELECT 1, format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', rel, name)
		FROM widen_replaced_indexes(columns) WHERE is_identity
		UNION ALL SELECT 2, format('COMMENT ON INDEX %s.%I IS ', schema, name)
			|| quote_literal(obj_description(index, 'pg_class')) FROM widen_replaced_indexes(columns)
		UNION ALL SELECT 2, format('COMMENT ON CONSTRAINT %I ON %s IS ', name, rel)
			|| quote_literal(obj_description(con, 'pg_constraint'))
		FROM (
			SELECT rel, con, name FROM widen_replaced_indexes(columns)
			UNION SELECT * FROM widen_replaced_constraints(columns)) AS replaced
	) AS c (n, command)
	WHERE command IS NOT NULL
	ORDER BY n, command
$$;
COMMENT ON FUNCTION snowflake_admin.widen_mark_commands IS
'for CLUSTER, REPLICA IDENTITY and comments of new indexes and constraints';

-- The first commands of the swap, as the owner of the tables: for NOT NULL, and for a default,
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

-- All other commands of the swap, in their order.  Old foreign keys go before the columns, and
-- the new ones, which only the names are left to, have been there since an earlier step.
CREATE FUNCTION snowflake_admin.widen_swap(columns widening[]) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
BEGIN
	RETURN QUERY SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', child, name) FROM widen_keys(columns) ORDER BY 1;
	RETURN QUERY SELECT widen_serial_commands(columns);
	RETURN QUERY SELECT widen_identity_commands(columns);
	RETURN QUERY SELECT widen_column_commands(columns);
	RETURN QUERY SELECT widen_drop_commands(columns);
	RETURN QUERY SELECT widen_rename_commands(columns);
	RETURN QUERY SELECT widen_mark_commands(columns);
END
$$;
COMMENT ON FUNCTION snowflake_admin.widen_swap IS 'for the part of the swap that the caller executes';

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
