/* admin/check/makers.sql */

-- snowflake_check() judges columns that are filled in two ways: with two shards of one sequence,
-- or with one shard of two sequences, which may generate the same IDs.  Knows neither where a sequence
-- stands nor what a table contains.

-- The ways in which columns are filled, with shards and sequences that are known, and the
-- place in words.  Those that do the same in one column are one, and there is one for each
-- shard, but never more than two.
CREATE FUNCTION snowflake_admin.distinct_fillers(fillers filler[])
RETURNS TABLE (root regclass, col name, tab regclass, shard integer, sequence regclass, code text, place text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH found AS MATERIALIZED (
		SELECT root, col, (array_agg(f ORDER BY tab = root DESC, tab))[1] AS f,
			row_number() OVER (PARTITION BY root, col, sequence, code ORDER BY shard) AS n, shard
		FROM unnest(fillers) AS f WHERE shard IS NOT NULL AND sequence IS NOT NULL
		GROUP BY root, col, sequence, code, shard
	)
	SELECT root, col, (f).tab, shard, (f).sequence, (f).code, CASE (f).class
		WHEN 'pg_proc'::regclass THEN place((f).class, (f).object)
		ELSE format('the default of %s', (f).tab) END
	FROM found WHERE n <= 2
$$;
COMMENT ON FUNCTION snowflake_admin.distinct_fillers IS 'for the ways in which a column is filled';

-- Two shards of one sequence, or two sequences with one shard, in one column.  One default may
-- use several sequences, if each has its shard.
CREATE FUNCTION snowflake_admin.check_makers(fillers filler[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH ways AS MATERIALIZED (SELECT * FROM distinct_fillers(fillers)),
	pairs AS (
		SELECT DISTINCT ON (a.root, a.col, a.sequence = b.sequence)
			a.root, a.col, a.shard, a.sequence, a.place, b.tab, b.shard AS other_shard,
			b.sequence AS other_sequence, b.place AS other_place
		FROM ways AS a JOIN ways AS b USING (root, col)
		WHERE CASE WHEN a.sequence = b.sequence THEN a.shard <> b.shard AND a.code <> b.code
			ELSE a.shard = b.shard AND (a.code <> b.code OR a.sequence < b.sequence) END
		ORDER BY a.root, a.col, a.sequence = b.sequence, a.place <> format('the default of %s', a.root),
			b.tab = b.root, a.place, b.place
	)
	SELECT CASE WHEN sequence = other_sequence THEN 'warning' ELSE 'error' END, format('%s.%I', root, col),
		CASE WHEN sequence = other_sequence
			THEN format('%s generates IDs of shard %s, and %s those of shard %s.',
				place, shard, other_place, other_shard)
			ELSE format(
				'Two sequences generate IDs of shard %s, so there can be duplicates: %s in %s, and %s in %s.',
				shard, sequence, place, other_sequence, other_place) END,
		coalesce(CASE WHEN place = format('the default of %s', root) AND other_place LIKE 'the default of %'
			THEN same_default(tab, col, root) END,
			CASE WHEN sequence = other_sequence THEN 'Use one shard in both places.'
				ELSE 'Give one of these two another free shard, or the sequence of the other.' END)
	FROM pairs
$$;
COMMENT ON FUNCTION snowflake_admin.check_makers IS 'for rows about columns that are filled in two ways';
