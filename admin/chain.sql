/* admin/chain.sql */

-- A column and all that refer to it by foreign keys, directly or not.  Knows no type and no
-- command, and changes nothing.

-- Each pair of columns of which a foreign key lets the second refer to the first.  Instead of a
-- partition that is referred to, its partitioned table is named.
CREATE FUNCTION snowflake_admin.references_between()
RETURNS TABLE (rel oid, name name, from_rel oid, from_name name)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT coalesce(pg_partition_root(confrelid), confrelid)::oid, parent.attname, conrelid, child.attname
	FROM pg_constraint
	CROSS JOIN unnest(conkey, confkey) AS pair (referring, referred)
	JOIN pg_attribute AS child ON child.attrelid = conrelid AND child.attnum = referring
	JOIN pg_attribute AS parent ON parent.attrelid = confrelid AND parent.attnum = referred
	WHERE contype = 'f' AND conparentid = 0
$$;
COMMENT ON FUNCTION snowflake_admin.references_between IS 'for following foreign keys from column to column';

-- The column and all that refer to it, directly or not.  Parents have smaller places.
--
-- A column's place is the length of the longest way to it.  There may be very many ways, so
-- none of them is walked: a column gets its place when all that it refers to have theirs,
-- and each foreign key is looked at once.  PostgreSQL expects few columns, and a nested loop would
-- compare each with each.  Where columns refer to each other, so that none of them could be the
-- first, the one that is nearest to the first column is.
CREATE FUNCTION snowflake_admin.chain(tab regclass, col name)
RETURNS TABLE (rel regclass, name name, place integer)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off
	SET enable_nestloop = off AS $$
DECLARE
	-- For each column, nearest first:
	rels oid[];
	names name[];
	children text[];	-- the columns that refer to it, as the text of an array
	parents_left integer[];	-- how many of those to which it refers have no place yet
	places integer[];
	is_placed boolean[];
	ready integer[] := '{1}';	-- columns whose parents have places
	next_ready integer := 1;
	next_column integer := 1;
	parent integer;
	child integer;
BEGIN
	WITH RECURSIVE links AS MATERIALIZED (
		SELECT * FROM references_between()
	), reached (rel, name) AS (
		SELECT attrelid, attname FROM pg_attribute
		WHERE attrelid = tab AND attname = col AND attnum > 0 AND NOT attisdropped
		UNION SELECT l.from_rel, l.from_name FROM reached JOIN links AS l USING (rel, name)
	), columns AS MATERIALIZED (
		SELECT r.rel, r.name, row_number() OVER ()::integer AS n FROM reached AS r
	), edges AS MATERIALIZED (
		SELECT p.n AS parent, c.n AS child
		FROM links AS l JOIN columns AS p USING (rel, name)
		JOIN columns AS c ON c.rel = l.from_rel AND c.name = l.from_name
		WHERE p.n <> c.n AND c.n > 1	-- the first column has the first place in any case
	)
	SELECT array_agg(c.rel ORDER BY c.n), array_agg(c.name ORDER BY c.n),
		array_agg(coalesce(down.children, '{}') ORDER BY c.n), array_agg(coalesce(up.parents, 0) ORDER BY c.n)
	INTO rels, names, children, parents_left
	FROM columns AS c
	LEFT JOIN (SELECT e.parent, array_agg(e.child)::text FROM edges AS e GROUP BY 1) AS down (n, children) USING (n)
	LEFT JOIN (SELECT e.child, count(*)::integer FROM edges AS e GROUP BY 1) AS up (n, parents) USING (n);
	IF rels IS NULL THEN
		RETURN;
	END IF;
	places := array_fill(1, ARRAY[cardinality(rels)]);
	is_placed := array_fill(false, ARRAY[cardinality(rels)]);
	is_placed[1] := true;
	LOOP
		IF next_ready > cardinality(ready) THEN
			-- All that are left refer to each other.  Begin with the nearest.
			WHILE is_placed[next_column] LOOP
				next_column := next_column + 1;
			END LOOP;
			EXIT WHEN next_column > cardinality(rels);
			ready := ready || next_column;
			is_placed[next_column] := true;
		END IF;
		parent := ready[next_ready];
		next_ready := next_ready + 1;
		FOREACH child IN ARRAY children[parent]::integer[] LOOP
			CONTINUE WHEN is_placed[child];
			places[child] := greatest(places[child], places[parent] + 1);
			parents_left[child] := parents_left[child] - 1;
			IF parents_left[child] = 0 THEN
				ready := ready || child;
				is_placed[child] := true;
			END IF;
		END LOOP;
	END LOOP;
	RETURN QUERY SELECT u.rel::regclass, u.name, u.place FROM unnest(rels, names, places) AS u (rel, name, place)
	ORDER BY u.rel <> tab, u.rel::regclass::text, u.name;
END
$$;
COMMENT ON FUNCTION snowflake_admin.chain IS
'for finding a column and all that refer to it, with places that put parents first';
