/* admin/chain.sql */

-- A column and all that refer to it by foreign keys.  Changes nothing.

-- A column and all that refer to it by foreign keys, directly or not; parents have smaller
-- places.  A partition stands for its partitioned table.
--
-- A column's place is the length of the longest way to it.  There may be very many ways, so
-- none of them is walked: a column gets its place when all that it refers to have theirs,
-- and each foreign key is looked at once.  Where columns refer to each other, so that none
-- of them could be the first, the one that is nearest to the first column is.
CREATE FUNCTION snowflake_admin.chain(tab regclass, col name)
RETURNS TABLE (rel regclass, name name, place integer)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp SET jit = off AS $$
DECLARE
	rels oid[];
	names name[];
	children integer[];	-- of all columns, one column's after the other's
	first_child integer[];	-- where those of a column begin
	parents_left integer[];	-- how many of a column's parents have no place yet
	places integer[];
	is_placed boolean[];
	ready integer[];	-- columns whose parents have places
	next_ready integer := 1;
	next_column integer := 1;
	parent integer;
	child integer;
BEGIN
	-- The columns, nearest first, and which of them refer to which
	WITH RECURSIVE links AS MATERIALIZED (
		SELECT DISTINCT coalesce(pg_partition_root(confrelid), confrelid)::oid AS rel, parent.attname AS name,
			conrelid AS to_rel, child.attname AS to_name
		FROM pg_constraint
		CROSS JOIN unnest(conkey, confkey) AS pair (referring, referred)
		JOIN pg_attribute AS child ON child.attrelid = conrelid AND child.attnum = referring
		JOIN pg_attribute AS parent ON parent.attrelid = confrelid AND parent.attnum = referred
		WHERE contype = 'f' AND conparentid = 0
	), reached (rel, name) AS (
		SELECT attrelid, attname FROM pg_attribute
		WHERE attrelid = tab AND attname = col AND attnum > 0 AND NOT attisdropped
		UNION SELECT to_rel, to_name FROM reached JOIN links USING (rel, name)
	), columns AS MATERIALIZED (
		SELECT r.rel, r.name, row_number() OVER ()::integer AS n FROM reached AS r
	), edges AS MATERIALIZED (
		SELECT p.n AS parent, c.n AS child
		FROM links AS l JOIN columns AS p ON p.rel = l.rel AND p.name = l.name
		JOIN columns AS c ON c.rel = l.to_rel AND c.name = l.to_name
		WHERE p.n <> c.n AND c.n > 1	-- the first column has the first place in any case
	)
	SELECT array_agg(c.rel ORDER BY n), array_agg(c.name ORDER BY n),
		(SELECT array_agg(e.child ORDER BY e.parent) FROM edges AS e),
		array_agg((1 + coalesce(o.before, 0))::integer ORDER BY n),
		array_agg(coalesce(i.parents, 0)::integer ORDER BY n)
	INTO rels, names, children, first_child, parents_left
	FROM columns AS c
	LEFT JOIN (SELECT e.child, count(*) AS parents FROM edges AS e GROUP BY 1) AS i ON i.child = n
	LEFT JOIN (
		SELECT k.n, (sum(count(e.child)) OVER (ORDER BY k.n) - count(e.child)) AS before
		FROM columns AS k LEFT JOIN edges AS e ON e.parent = k.n GROUP BY k.n) AS o USING (n);
	IF rels IS NULL THEN
		RETURN;
	END IF;
	first_child := first_child || coalesce(cardinality(children), 0) + 1;
	places := array_fill(1, ARRAY[cardinality(rels)]);
	is_placed := array_fill(false, ARRAY[cardinality(rels)]);
	ready := '{1}';
	is_placed[1] := true;
	LOOP
		IF next_ready > cardinality(ready) THEN
			WHILE is_placed[next_column] LOOP
				next_column := next_column + 1;
			END LOOP;
			EXIT WHEN next_column > cardinality(rels);
			ready := ready || next_column;
			is_placed[next_column] := true;
		END IF;
		parent := ready[next_ready];
		next_ready := next_ready + 1;
		FOR edge IN first_child[parent] .. first_child[parent + 1] - 1 LOOP
			child := children[edge];
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
