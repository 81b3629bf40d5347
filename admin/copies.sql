/* admin/copies.sql */

-- What an object gets that takes the place of another: a name, privileges, options of columns,
-- an identity.  Composes commands, and executes none.  Knows nothing of IDs.

-- A name that ends with a suffix, shortened between two characters so that it fits
CREATE FUNCTION snowflake_admin.with_suffix(name name, suffix text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT substr((suffix || name)::name::text, 1 + length(suffix)) || suffix
$$;
COMMENT ON FUNCTION snowflake_admin.with_suffix IS 'for naming an object after another one';

-- A role in the form that GRANT and REVOKE take.  OID 0 is PUBLIC in a list of privileges.
CREATE FUNCTION snowflake_admin.grantee_name(grantee oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
$$;
COMMENT ON FUNCTION snowflake_admin.grantee_name IS 'for naming a role of a list of privileges in a command';

-- The commands that grant the privileges of a list on an object, or on columns of it.  Whoever
-- executes them does it for the object's owner, who becomes the grantor of all.
CREATE FUNCTION snowflake_admin.grant_commands(acl aclitem[], columns text, object text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('GRANT %s ON %s TO %s%s', string_agg(privilege_type || columns, ', ' ORDER BY n), object,
		grantee_name(grantee), CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
	FROM aclexplode(acl) WITH ORDINALITY AS a (grantor, grantee, privilege_type, is_grantable, n)
	GROUP BY grantee, is_grantable ORDER BY min(n)
$$;
COMMENT ON FUNCTION snowflake_admin.grant_commands IS 'for granting a list of privileges again on another object';

-- The privileges on a table or a sequence as a whole, without those on columns, which are in
-- pg_attribute.attacl
CREATE FUNCTION snowflake_admin.privileges(rel oid)
RETURNS TABLE (grantee oid, privilege text, is_grantable boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT a.grantee, privilege_type, bool_or(a.is_grantable)
	FROM pg_class, aclexplode(coalesce(relacl,
		acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner))) AS a
	WHERE oid = rel GROUP BY 1, 2
$$;
COMMENT ON FUNCTION snowflake_admin.privileges IS 'for comparing privileges that different roles may have granted';

-- All privileges on a table and on its columns in one text, to be compared with those on
-- another table
CREATE FUNCTION snowflake_admin.all_privileges(rel oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce(string_agg(line, E'\n' ORDER BY line COLLATE "C"), '') FROM (
		SELECT concat_ws(' ', grantee, privilege, is_grantable) FROM privileges(rel)
		UNION ALL SELECT concat_ws(' ', a.grantee, privilege_type, bool_or(a.is_grantable), quote_ident(attname))
		FROM pg_attribute, aclexplode(attacl) AS a WHERE attrelid = rel AND NOT attisdropped
		GROUP BY a.grantee, privilege_type, attname) AS p (line)
$$;
COMMENT ON FUNCTION snowflake_admin.all_privileges IS
'for finding a privilege that somebody else has granted or revoked meanwhile';

-- The privileges that come with a new table or sequence in the schema of another one: the default
-- privileges of the role that creates it, after OWNER TO has put the other one's owner in that
-- role's place.
CREATE FUNCTION snowflake_admin.default_privileges(rel oid, creator oid)
RETURNS TABLE (grantee oid, privilege text, is_grantable boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH kind (kind, owner, schema) AS (
		SELECT CASE relkind WHEN 'S' THEN 'S' ELSE 'r' END::"char", relowner, relnamespace FROM pg_class WHERE oid = rel
	), defaults (schema, acl) AS (
		SELECT defaclnamespace, defaclacl FROM kind JOIN pg_default_acl ON defaclobjtype = kind
		WHERE defaclrole = creator AND defaclnamespace IN (0, schema)
	), acls (acl) AS (
		SELECT acl FROM defaults
		UNION ALL SELECT acldefault(CASE kind WHEN 'S' THEN 's' ELSE kind END, creator) FROM kind
		WHERE NOT EXISTS (SELECT FROM defaults WHERE defaults.schema = 0)
	)
	SELECT CASE a.grantee WHEN creator THEN owner ELSE a.grantee END, privilege_type, bool_or(a.is_grantable)
	FROM kind, acls, aclexplode(acl) AS a GROUP BY 1, 2
$$;
COMMENT ON FUNCTION snowflake_admin.default_privileges IS
'for knowing which privileges a new object has before any GRANT';

-- The commands that turn the privileges of a new table or sequence, which a role has just
-- created, into those of the one whose schema and owner it has.  Privileges on columns come
-- with those on a table of the same columns.
CREATE FUNCTION snowflake_admin.privileges_like(rel oid, creator oid, named text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH wanted AS (SELECT * FROM privileges(rel)),
	present AS (SELECT * FROM default_privileges(rel, creator)),
	extra AS (TABLE present EXCEPT TABLE wanted),
	lacking AS (TABLE wanted EXCEPT TABLE present)
	(
		SELECT format('REVOKE %s ON %s FROM %s', string_agg(privilege, ', ' ORDER BY privilege), named,
			grantee_name(grantee))
		FROM extra GROUP BY grantee ORDER BY grantee
	)
	UNION ALL (
		SELECT format('GRANT %s ON %s TO %s%s', string_agg(privilege, ', ' ORDER BY privilege), named,
			grantee_name(grantee), CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
		FROM lacking GROUP BY grantee, is_grantable ORDER BY grantee, is_grantable
	)
	UNION ALL SELECT c FROM pg_attribute, grant_commands(attacl, format(' (%I)', attname), named) AS c
	WHERE attrelid = rel AND NOT attisdropped
$$;
COMMENT ON FUNCTION snowflake_admin.privileges_like IS
'for giving a new object the privileges of another one, and no others';

-- The commands that take all privileges on a table from everybody but its owner.  REVOKE ALL ON a
-- table CASCADE misses what a role has granted on a column by a grant option for the whole table.
-- So such a role first gets the option for that column.
CREATE FUNCTION snowflake_admin.revoke_commands(rel oid, named text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH granted (owner, col, grantor, grantee) AS (
		SELECT relowner, NULL::name, a.grantor, a.grantee FROM pg_class, aclexplode(relacl) AS a WHERE oid = rel
		UNION ALL SELECT relowner, attname, a.grantor, a.grantee
		FROM pg_class AS c JOIN pg_attribute ON attrelid = c.oid AND NOT attisdropped, aclexplode(attacl) AS a
		WHERE c.oid = rel
	)
	(
		SELECT DISTINCT format('GRANT ALL (%I) ON %s TO %s WITH GRANT OPTION', col, named, grantee_name(grantor))
		FROM granted WHERE col IS NOT NULL AND grantor <> owner
	)
	UNION ALL SELECT format('REVOKE ALL ON %s FROM %s CASCADE', named, string_agg(role, ', ' ORDER BY role))
	FROM (
		SELECT grantee_name(grantee) AS role FROM granted WHERE grantee <> owner
		UNION SELECT grantee_name(grantor) FROM granted WHERE grantor <> owner) AS roles
	HAVING count(*) > 0
$$;
COMMENT ON FUNCTION snowflake_admin.revoke_commands IS 'for closing a table to all but its owner';

-- The commands that take from others what the default privileges of its creator gave them on a new
-- table, of kind r, or sequence, of kind S.  One more role keeps its privileges.
CREATE FUNCTION snowflake_admin.revoke_defaults(kind "char", schema oid, named text, creator oid, keeper oid)
RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT format('REVOKE ALL ON %s FROM %s', named, grantee_name(grantee))
	FROM pg_default_acl, aclexplode(defaclacl)
	WHERE defaclobjtype = kind AND defaclrole = creator AND defaclnamespace IN (0, schema)
		AND grantee NOT IN (creator, keeper)
$$;
COMMENT ON FUNCTION snowflake_admin.revoke_defaults IS 'for keeping a new object to its owner and one more role';

-- Warn that a role's grants will be made anew.  Only the role itself could make them again in its
-- own name.
CREATE FUNCTION snowflake_admin.warn_of_grantor(object text, grantor text, grants text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RAISE WARNING USING
		MESSAGE = format('what role %s has granted on %s will be granted by the owner instead', grantor, object),
		DETAIL = format('It has granted %s.', grants),
		HINT = format('REVOKE ... FROM %s CASCADE will no longer take this back. Revoke it from each grantee.',
			grantor);
END
$$;
COMMENT ON FUNCTION snowflake_admin.warn_of_grantor IS 'for warning of grants whose grantor changes';

-- Warn of all such grants on tables and sequences, and on their columns.
CREATE FUNCTION snowflake_admin.warn_of_grantors(rels oid[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	granted record;
BEGIN
	FOR granted IN
		SELECT rel::regclass AS object, grantee_name(grantor) AS grantor,
			string_agg(format('%s%s to %s', privilege_type, columns, grantee_name(grantee)), ', '
				ORDER BY grantee_name(grantee) COLLATE "C", columns COLLATE "C", privilege_type) AS grants
		FROM (
			SELECT oid, relowner, '', relacl FROM pg_class
			UNION ALL SELECT c.oid, relowner, format(' (%I)', attname), attacl
			FROM pg_class AS c JOIN pg_attribute ON attrelid = c.oid AND NOT attisdropped
		) AS acls (rel, owner, columns, acl),
			LATERAL (SELECT * FROM aclexplode(acl)) AS a
		WHERE rel = ANY (rels) AND grantor <> owner
		GROUP BY rel, grantor ORDER BY array_position(rels, rel), 2
	LOOP
		PERFORM warn_of_grantor(granted.object::text, granted.grantor::text, granted.grants);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_admin.warn_of_grantors IS
'for warning of all grants on tables and sequences whose grantor changes';

-- The commands that give a column the statistics target and n_distinct of another one.  Only
-- options that users set are copied.  Since 17.12 the server has its own in attoptions, too.
CREATE FUNCTION snowflake_admin.column_statistics(rel regclass, num smallint, new_tab text, new_col name)
RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER TABLE %s ALTER %I SET %s', new_tab, new_col, setting)
	FROM pg_attribute, LATERAL (
		SELECT 'STATISTICS ' || attstattarget WHERE attstattarget >= 0
		UNION ALL SELECT format('(%s)', string_agg(option, ', ')) FROM unnest(attoptions) AS option
		WHERE option LIKE 'n\_distinct%' HAVING count(*) > 0) AS s (setting)
	WHERE attrelid = rel AND attnum = num
$$;
COMMENT ON FUNCTION snowflake_admin.column_statistics IS 'for giving a new column the statistics of another one';

-- The commands that give all columns of a table such options of another one's columns of the same
-- names
CREATE FUNCTION snowflake_admin.column_options_like(rel regclass, named text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT c FROM pg_attribute, column_statistics(rel, attnum, named, attname) AS c
	WHERE attrelid = rel AND attnum > 0 AND NOT attisdropped
$$;
COMMENT ON FUNCTION snowflake_admin.column_options_like IS
'for giving the columns of a new table the options of those of another one';

-- The command that gives a table the storage parameters of another one and of its TOAST table,
-- NULL if it has none.  PostgreSQL allows none for a partitioned table.
CREATE FUNCTION snowflake_admin.storage_like(rel regclass, named text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER TABLE %s SET (%s)', named, string_agg(format('%s%I = %L', prefix,
		split_part(option, '=', 1), substr(option, strpos(option, '=') + 1)), ', ' ORDER BY prefix, option))
	FROM (
		SELECT '', unnest(reloptions) FROM pg_class WHERE oid = rel
		UNION ALL SELECT 'toast.', unnest(t.reloptions) FROM pg_class AS c JOIN pg_class AS t ON t.oid = c.reltoastrelid
		WHERE c.oid = rel) AS o (prefix, option)
	HAVING count(*) > 0
$$;
COMMENT ON FUNCTION snowflake_admin.storage_like IS 'for giving a new table the storage parameters of another one';

-- The commands that give a new statistics object the owner, if the caller may, and the statistics
-- target of another one
CREATE FUNCTION snowflake_admin.statistics_options(statistics oid, named text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER STATISTICS %s OWNER TO %s', named, stxowner::regrole)
	FROM pg_statistic_ext WHERE oid = statistics AND stxowner <> caller() AND pg_has_role(stxowner, 'USAGE')
	UNION ALL SELECT format('ALTER STATISTICS %s SET STATISTICS %s', named, stxstattarget)
	FROM pg_statistic_ext WHERE oid = statistics AND stxstattarget >= 0
$$;
COMMENT ON FUNCTION snowflake_admin.statistics_options IS
'for giving a new statistics object the owner and the target of another one';

-- The commands that give the columns of a new index the statistics targets of another one's
CREATE FUNCTION snowflake_admin.index_statistics(index oid, named text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS %s', named, attnum, attstattarget)
	FROM pg_attribute WHERE attrelid = index AND attstattarget >= 0 ORDER BY attnum
$$;
COMMENT ON FUNCTION snowflake_admin.index_statistics IS 'for giving a new index the statistics targets of another one';

-- The commands that give a partition, which has been created like its parent and attached, what is
-- known by the names of its indexes and statistics objects alone: the targets and owners of these,
-- and a replica identity that is an index
CREATE FUNCTION snowflake_admin.partition_options(parent regclass, partition regclass) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH statistics AS (
		SELECT x.oid, format('%I.%I', nspname, stxname) AS named, stxrelid,
			pg_get_statisticsobjdef_columns(x.oid) AS of, stxkind AS kind,
			row_number() OVER (PARTITION BY stxrelid, pg_get_statisticsobjdef_columns(x.oid), stxkind
				ORDER BY x.oid) AS n
		FROM pg_statistic_ext AS x JOIN pg_namespace ON pg_namespace.oid = stxnamespace
		WHERE stxrelid IN (parent, partition)
	), indexes AS (
		SELECT inhparent AS index, inhrelid::regclass AS own
		FROM pg_inherits JOIN pg_index ON indexrelid = inhrelid WHERE indrelid = partition
	)
	SELECT statistics_options(p.oid, s.named)
	FROM statistics AS p JOIN statistics AS s USING (of, kind, n)
	WHERE p.stxrelid = parent AND s.stxrelid = partition
	UNION ALL SELECT index_statistics(index, own::text) FROM indexes
	UNION ALL SELECT format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', partition, own_index.relname)
	FROM pg_class AS p JOIN pg_index ON indrelid = p.oid AND indisreplident JOIN indexes ON index = indexrelid
	JOIN pg_class AS own_index ON own_index.oid = own
	WHERE p.oid = parent AND p.relreplident = 'i'
$$;
COMMENT ON FUNCTION snowflake_admin.partition_options IS
'for giving a new partition what its parent''s indexes and statistics objects have';

-- The commands, numbered in their order, that give a column an identity like the one that a
-- sequence serves, which has been renamed.  The new sequence goes on from its value.  A bound at
-- which a narrower type ends becomes that of bigint.
CREATE FUNCTION snowflake_admin.identity_like(sequence oid, renamed text, new_tab text, new_col name,
	new_sequence text)
RETURNS TABLE (n integer, command text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH s AS (
		SELECT pg_sequence.*, attidentity, relowner, obj_description(seqrelid, 'pg_class') AS comment
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
	-- The owner of the table creates its sequence, whoever adds the identity.
	UNION ALL SELECT 3, g FROM s, privileges_like(seqrelid, relowner, 'SEQUENCE ' || new_sequence) AS g
	UNION ALL SELECT 4, format('COMMENT ON SEQUENCE %s IS ', new_sequence) || quote_literal(comment) FROM s
$$;
COMMENT ON FUNCTION snowflake_admin.identity_like IS
'for giving a column an identity that goes on from that of another one';
