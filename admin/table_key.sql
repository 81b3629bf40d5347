/* admin/table_key.sql */

-- The key of one table, its sequence, and who may use that: what moving a key and moving
-- it back share.

-- The key of a table is what is listed of its primary key, or else of its other columns.
CREATE FUNCTION snowflake_admin.main_keys()
RETURNS TABLE (tab regclass, col name, type regtype, made_by text, sequence regclass, obstacle text,
	is_main boolean)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT k.*, rank() OVER (PARTITION BY k.tab ORDER BY i.indrelid IS NULL) = 1
	FROM @extschema@.snowflake_keys() AS k
	JOIN pg_attribute AS a ON a.attrelid = k.tab AND a.attname = k.col
	LEFT JOIN pg_index AS i ON i.indrelid = k.tab AND i.indisprimary AND a.attnum = ANY (i.indkey)
$$;

-- The key of a table, an obstacle, and the parts of its default if that is next_id()
CREATE FUNCTION snowflake_admin.table_key(target regclass)
RETURNS TABLE (col name, type regtype, made_by text, sequence regclass, obstacle text, shard text,
	named_layout text, layout text, is_plain boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	key record;
BEGIN
	IF target IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'tab must not be null';
	END IF;
	WITH keys AS MATERIALIZED (
		SELECT * FROM main_keys() AS k WHERE k.tab = target AND k.is_main
	)
	SELECT k.*, (SELECT count(DISTINCT keys.col) FROM keys) AS columns,
		(SELECT string_agg(DISTINCT quote_ident(keys.col), ', ') FROM keys) AS names
	INTO key FROM keys AS k ORDER BY k.obstacle LIMIT 1;
	IF NOT FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has no key that a sequence, an identity or next_id() makes', target),
			HINT = coalesce((
				SELECT format('Its key may be that of its parent. Call this for %s instead.',
					inhparent::regclass)
				FROM pg_inherits WHERE inhrelid = target ORDER BY inhseqno LIMIT 1),
				'SELECT * FROM snowflake_keys() lists the keys of this database.');
	ELSIF key.columns > 1 THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('table %s has more than one key', target),
			DETAIL = format('A sequence, an identity or next_id() makes each of the columns %s.', key.names),
			HINT = 'Use ALTER TABLE ... SET DEFAULT for each column that is to change.';
	END IF;
	RETURN QUERY SELECT key.col, key.type, key.made_by, key.sequence, key.obstacle,
			c.shard, literal(c.layout),
			coalesce(layout_of(expression,
				CASE WHEN key.made_by = 'next_id' THEN key.sequence END), 'instagram'),
			c.call = regexp_replace(expression, '^(\w+|"([^"]|"")+")\.', '')
		FROM (SELECT (SELECT pg_get_expr(adbin, adrelid)
			FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
			WHERE adrelid = target AND attname = key.col AND key.made_by = 'next_id')) AS d (expression)
		LEFT JOIN LATERAL calls(expression) AS c ON true
		LIMIT 1;
END
$$;

-- A table, its partitions and the tables that inherit from it
CREATE FUNCTION snowflake_admin.family(target regclass) RETURNS SETOF oid
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE family (oid) AS (
		SELECT target::oid
		UNION SELECT inhrelid FROM family JOIN pg_inherits ON inhparent = oid
	)
	SELECT oid FROM family
$$;

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

-- Let everybody take values of a sequence who may insert into a table, a member of its
-- family, or a view of these: a default is computed with the rights of the role that inserts.
CREATE FUNCTION snowflake_admin.sequence_grants(target regclass, sequence text, is_new boolean) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE targets (oid) AS (
		SELECT * FROM family(target)
		UNION SELECT ev_class FROM targets
		JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = targets.oid
			AND classid = 'pg_rewrite'::regclass
		JOIN pg_rewrite AS r ON r.oid = objid AND ev_type = '1'
	), acls (acl) AS (
		SELECT coalesce(relacl, acldefault('r', relowner)) FROM targets JOIN pg_class USING (oid)
		UNION ALL SELECT attacl FROM targets JOIN pg_attribute ON attrelid = oid AND NOT attisdropped
	)
	SELECT DISTINCT format('GRANT USAGE ON SEQUENCE %s TO %s', sequence,
		CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
	FROM acls, aclexplode(acl)
	WHERE privilege_type = 'INSERT' AND grantee <> (SELECT relowner FROM pg_class WHERE oid = target)
		AND (is_new OR NOT has_sequence_privilege(grantee, to_regclass(sequence)::oid, 'USAGE, UPDATE'))
$$;

-- A new sequence's name, of as many characters of table and column as fit into 63 bytes
CREATE FUNCTION snowflake_admin.new_sequence(target regclass, col name) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT sequence
	FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace, generate_series(1, 1000) AS n,
		LATERAL concat('_seq', nullif(n, 1)) AS suffix,
		LATERAL format('%I.%I', nspname, substr((suffix || left(relname, 45) || '_' || col)::name::text,
			1 + length(suffix)) || suffix) AS sequence
	WHERE pg_class.oid = target AND to_regclass(sequence) IS NULL ORDER BY n LIMIT 1
$$;

-- Call a procedure for each table of a schema whose key it would change, each in a
-- transaction of its own.  What stays as it is, is named by a warning.
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
	SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
	IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = schema) THEN
		RAISE invalid_schema_name USING MESSAGE = format('schema "%s" does not exist', schema);
	END IF;
	SELECT coalesce(array_agg(DISTINCT k.tab) FILTER (WHERE k.is_main), '{}'),
		coalesce(array_agg(DISTINCT format('column %I of table %s', k.col, k.tab))
			FILTER (WHERE NOT k.is_main), '{}'),
		string_agg(DISTINCT k.tab::text, ', ') FILTER (WHERE k.is_main AND k.made_by = 'GENERATED ALWAYS')
	INTO tables, others, always
	FROM main_keys() AS k JOIN pg_class ON oid = k.tab
	WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = schema)
		AND (k.made_by = 'next_id') <> to_next_id;
	IF always IS NOT NULL THEN
		RAISE NOTICE 'a default does not keep programs from choosing keys, as GENERATED ALWAYS did: %', always;
	END IF;
	PERFORM run('{}', '{}', tries, true);
	COMMIT;
	FOREACH target IN ARRAY tables LOOP
		SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
		BEGIN
			EXECUTE format(command, target::text);
		EXCEPTION WHEN OTHERS THEN
			failed := failed + 1;
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
			RAISE WARNING USING
				MESSAGE = format('%s stays as it is: %s', target, SQLERRM),
				DETAIL = coalesce(nullif(detail, ''), format('The SQLSTATE is %s.', SQLSTATE)),
				HINT = coalesce(nullif(hint, ''), 'Call this again when the cause is gone.');
		END;
		COMMIT;
	END LOOP;
	SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;
	FOREACH other IN ARRAY others LOOP
		RAISE WARNING '% stays as it is: it is not the key of its table', other;
	END LOOP;
	RAISE NOTICE '% of % tables done', cardinality(tables) - failed, cardinality(tables);
END
$$;
