/* admin/copies.sql */

-- What an object gets that takes the place of another: privileges, options of columns,
-- an identity.  Knows nothing of IDs.

CREATE FUNCTION snowflake_admin.grant_commands(acl aclitem[], columns text, object text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('GRANT %s%s ON %s TO %s%s', privilege_type, columns, object,
		CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
		CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
	FROM aclexplode(acl)
$$;

-- Copies only the options that users set.  Since 17.12 the server has its own in attoptions, too.
CREATE FUNCTION snowflake_admin.column_commands(rel regclass, num smallint, new_tab text, new_col name)
RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER TABLE %s ALTER %I SET %s', new_tab, new_col, setting)
	FROM pg_attribute, LATERAL (
		SELECT 'STATISTICS ' || attstattarget WHERE attstattarget >= 0
		UNION ALL SELECT format('(%s)', string_agg(option, ', ')) FROM unnest(attoptions) AS option
		WHERE option LIKE 'n\_distinct%' HAVING count(*) > 0) AS s (setting)
	WHERE attrelid = rel AND attnum = num
$$;

-- The commands that give a column an identity like the one that a sequence serves, which
-- has been renamed.  The new sequence goes on from its value.  MAXVALUE of a narrower
-- type becomes that of bigint.
CREATE FUNCTION snowflake_admin.identity_like(sequence oid, renamed text, new_tab text, new_col name,
	new_sequence text)
RETURNS TABLE (n integer, command text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH s AS (
		SELECT pg_sequence.*, attidentity, relacl, obj_description(seqrelid, 'pg_class') AS comment
		FROM pg_sequence JOIN pg_class AS c ON c.oid = seqrelid
		JOIN pg_depend ON classid = 'pg_class'::regclass AND objid = seqrelid AND deptype = 'i'
		JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
		WHERE seqrelid = sequence
	)
	SELECT 1, format('ALTER TABLE %s ALTER %I ADD GENERATED %s AS IDENTITY '
		'(SEQUENCE NAME %s INCREMENT %s %s %s START %s CACHE %s %s)', new_tab, new_col,
		CASE attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, new_sequence, seqincrement,
		CASE WHEN seqincrement < 0 AND seqmin IN (-32768, -2147483648) THEN 'NO MINVALUE'
			ELSE 'MINVALUE ' || seqmin END,
		CASE WHEN seqincrement > 0 AND seqmax IN (32767, 2147483647) THEN 'NO MAXVALUE'
			ELSE 'MAXVALUE ' || seqmax END,
		seqstart, seqcache, CASE WHEN seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END)
	FROM s
	UNION ALL SELECT 2, format('SELECT pg_catalog.setval(%L, last_value, is_called) FROM %s', new_sequence,
		renamed) FROM s
	UNION ALL SELECT 3, g FROM s, grant_commands(relacl, '',
		'SEQUENCE ' || new_sequence) AS g
	UNION ALL SELECT 4, format('COMMENT ON SEQUENCE %s IS ', new_sequence) || quote_literal(comment) FROM s
$$;

CREATE FUNCTION snowflake_admin.table_grants(rel regclass, new_tab text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT g FROM (
		SELECT relacl, '' FROM pg_class WHERE oid = rel
		UNION ALL
		SELECT attacl, format(' (%I)', attname) FROM pg_attribute WHERE attrelid = rel AND NOT attisdropped
	) AS granted (acl, columns), grant_commands(acl, columns, new_tab) AS g
$$;
