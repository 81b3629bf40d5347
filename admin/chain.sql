/* admin/chain.sql */

-- A column and all that refer to it by foreign keys.  Changes nothing.

-- A column and all that refer to it by foreign keys, directly or not; parents have smaller
-- places.  A partition stands for its partitioned table.
CREATE FUNCTION snowflake_admin.chain(tab regclass, col name)
RETURNS TABLE (rel regclass, name name, place integer)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH RECURSIVE chain (rel, name) AS (
		SELECT attrelid, attname FROM pg_attribute
		WHERE attrelid = tab AND attname = col AND attnum > 0 AND NOT attisdropped
		UNION ALL SELECT conrelid, child.attname
		FROM chain JOIN pg_constraint ON coalesce(pg_partition_root(confrelid), confrelid) = rel
			AND contype = 'f' AND conparentid = 0
		CROSS JOIN unnest(conkey, confkey) AS pair (referring, referred)
		JOIN pg_attribute AS child ON child.attrelid = conrelid AND child.attnum = referring
		JOIN pg_attribute AS parent ON parent.attrelid = confrelid AND parent.attnum = referred
		WHERE parent.attname = chain.name
	) CYCLE rel, name SET again USING path
	SELECT rel, name, max(cardinality(path)) FROM chain WHERE NOT again
	GROUP BY rel, name ORDER BY rel <> tab, rel::regclass::text, name
$$;
