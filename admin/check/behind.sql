/* admin/check/behind.sql */

-- snowflake_check() judges a sequence that is behind IDs of its tables: it generates them again,
-- sooner or later, or it has served another layout when it generated them.  Knows nothing of sequences
-- that are ahead of the clock.

-- The row about a sequence that goes on in another layout, so that its next IDs are smaller
-- than this one, the largest of a table: the ID is ahead of the clock in the layout that the
-- sequence serves now, and of the past and closer in the one that generated it.  The IDs of a
-- layout that ends may be larger than those of the next one.
CREATE FUNCTION snowflake_admin.check_other_layout(g generator, served snowflake_layout, tab regclass, latest bigint)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'error', format('sequence %s', g.sequence),
		concat_ws(' ', format('It serves layout %s, but %s has IDs of layout %s, the last of them %s of %s, and its '
			'next IDs are smaller. If it generated those until something changed its MAXVALUE, set that back. '
			'IDs that it has generated since stay as they are.', g.layout, tab, n.layout, latest, n.ts),
			only_owner(g.sequence)),
		call_of('snowflake_set_back', g.sequence, ', layout => ' || layout_literal(n.layout))
	FROM nearest(NULL, latest) AS n JOIN pg_class AS t ON t.oid = tab
	-- Nothing makes a sequence serve a custom layout by accident.
	WHERE g.layout NOT LIKE '%:%' AND n.ts < clock_timestamp() + interval '1 min'
		AND n.expires > clock_timestamp() + interval '1 year'
		AND clock_timestamp() - n.ts < id_time(latest, served) - clock_timestamp()
		-- Rows of those count who may use the sequence, and next_id_seq has but one layout.
		AND CASE g.sequence WHEN next_id_seq() THEN n.layout = 'instagram'
			ELSE has_sequence_privilege(relowner, g.sequence::oid, 'USAGE, UPDATE') END
$$;
COMMENT ON FUNCTION snowflake_admin.check_other_layout IS 'for the row about a sequence that has served another layout';

-- The columns that a sequence fills, each with its shards, NULL for any, and with these in words.  One whose
-- shard is that of the setting, and missing there, gets no IDs, so it is not there.
CREATE FUNCTION snowflake_admin.shards_of_columns(g generator)
RETURNS TABLE (tab regclass, col name, shards integer[], new_rows text)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT u.tab, u.col, CASE WHEN count(*) = count(u.shard) THEN array_agg(u.shard) END,
		string_agg(u.shard::text, ', ' ORDER BY u.shard)
	FROM unnest(g.tabs, g.cols, g.shards, g.unset) AS u (tab, col, shard, unset) WHERE NOT unset GROUP BY u.tab, u.col
$$;
COMMENT ON FUNCTION snowflake_admin.shards_of_columns IS 'for the shards of the columns of a sequence';

-- How many IDs of such columns, from "low" on, are of each shard, "is_own" or not, as id_counts() has
-- it.  Of each column, ten shards of each kind: those with the largest IDs until "until", and those
-- with the largest IDs.  What follows looks at tables once for each, and values that are no IDs have
-- all shards.
CREATE FUNCTION snowflake_admin.counts_of_shards(g generator, layout snowflake_layout, low bigint, until bigint, own boolean)
RETURNS TABLE (tab regclass, col name, new_rows text, shard integer, number bigint, more boolean, largest bigint)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT r.tab, r.col, r.new_rows, r.shard, r.number, r.more, r.largest
	FROM (SELECT f.new_rows, c.*, row_number() OVER (PARTITION BY c.tab, c.col, c.largest <= until
				ORDER BY c.largest DESC) AS place
		FROM shards_of_columns(g) AS f
		CROSS JOIN LATERAL id_counts(ARRAY[f.tab], ARRAY[f.col], f.shards, layout, low, 10001) AS c
		WHERE c.is_own = own AND c.number > 0
		OFFSET 0) AS r
	WHERE place <= 10
$$;
COMMENT ON FUNCTION snowflake_admin.counts_of_shards IS 'for counts of IDs by shard, of a few shards';

-- Rows about future-dated IDs of other shards, from "future" on.  A sequence cannot generate
-- these again, because it generates only those of its own shards.  What is far ahead is most
-- likely no ID of this layout: a new epoch makes the old IDs look like that.
CREATE FUNCTION snowflake_admin.check_other_shards(g generator, layout snowflake_layout, future bigint)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH counts AS MATERIALIZED (
		SELECT c.*, latest, latest > clock_timestamp() + interval '1 year' AS is_far
		FROM counts_of_shards(g, layout, future, bound(clock_timestamp() + interval '1 year', layout), false) AS c
		CROSS JOIN LATERAL id_time(c.largest, layout) AS latest
	)
	SELECT CASE WHEN is_far THEN 'note' ELSE 'warning' END, format('table %s', c.tab), concat_ws(' ', format(
			'Future-dated IDs of shard %s, while new rows get those of shard %s: %s%s, the latest of %s. %s',
			c.shard, c.new_rows, CASE WHEN c.more THEN 'at least ' END, c.number, latest,
			CASE WHEN is_far THEN 'Most likely they are of another layout, and not dated in the future.'
				ELSE 'If this server generated them, and nobody outside has seen them, give their rows new ones.' END),
			r.who),
		CASE WHEN is_far THEN 'Do nothing if its rows had IDs of another layout before.'
			WHEN g.lead > '2 s' THEN format('Do what the row of sequence %s says, and check again.', g.sequence)
			ELSE r.remedy END
	FROM counts AS c
	LEFT JOIN LATERAL renumber_remedy(c.tab, c.col, c.shard, layout, false) AS r
		ON NOT is_far AND (g.lead > '2 s') IS NOT TRUE
$$;
COMMENT ON FUNCTION snowflake_admin.check_other_shards IS 'for rows about future-dated IDs of other shards';

-- Rows about IDs, from "low" on, that a sequence is behind: one for each table with IDs so far
-- ahead of the clock that to advance the sequence would stop all calls, and one about the sequence
-- for the others.
CREATE FUNCTION snowflake_admin.check_behind(g generator, layout snowflake_layout, low bigint)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	patience interval := time_setting('max_lead')
		+ time_setting('max_wait');
	last_time timestamptz;
	reachable record;		-- the largest ID that the sequence can be advanced to
	is_behind boolean := false;		-- is there any?
	newer record;
BEGIN
	FOR newer IN
		SELECT c.tab, c.col, c.shard, c.largest, id_time(c.largest, layout) AS ts
		FROM counts_of_shards(g, layout, low, bound(clock_timestamp() + patience, layout), true) AS c
		ORDER BY c.largest
	LOOP
		-- Other sessions have gone on, and the sequence is ahead of all that they have inserted.
		last_time := s.last_timestamp FROM sequence_states(g.sequence, layout) AS s;
		CONTINUE WHEN last_time >= newer.ts;
		IF newer.ts <= clock_timestamp() + patience THEN
			reachable := newer;
			is_behind := true;
			CONTINUE;
		END IF;
		severity := CASE WHEN newer.ts > clock_timestamp() + interval '1 year' THEN 'note' ELSE 'error' END;
		object := format('table %s', newer.tab);
		problem := format('It has the ID %s of %s%s, with the shard of sequence %s. %s',
			newer.largest, newer.ts, whose(newer.tab), g.sequence,
			CASE severity WHEN 'error' THEN 'The sequence will generate such IDs again.'
				ELSE 'Most likely it is of another layout, and not dated in the future.' END);
		IF severity = 'error' AND (g.lead > '2 s') IS NOT TRUE THEN
			RETURN QUERY SELECT check_behind.severity, check_behind.object,
				concat_ws(' ', check_behind.problem, r.who), r.remedy
			FROM renumber_remedy(newer.tab, newer.col, newer.shard, layout, false) AS r;
			CONTINUE;
		END IF;
		remedy := CASE severity WHEN 'error'
			-- Its next IDs are too far ahead for rows to get them.
			THEN format('Do what the row of sequence %s says, and check again.', g.sequence)
			ELSE 'Do nothing if its rows had IDs of another layout before.' END;
		RETURN NEXT;
	END LOOP;
	IF is_behind THEN
		severity := CASE WHEN reachable.ts > clock_timestamp() THEN 'error' ELSE 'warning' END;
		object := format('sequence %s', g.sequence);
		problem := concat_ws(' ', format('%s, but %s has the ID %s of %s, with its shard. %s',
			coalesce('Its last ID has the time ' || last_time, 'It has generated no ID'), reachable.tab,
			reachable.largest, reachable.ts,
			CASE severity WHEN 'error' THEN 'It will generate such IDs again.'
				ELSE 'If the clock is set back, it generates such IDs again.' END),
			CASE WHEN NOT has_sequence_privilege(g.sequence, 'UPDATE') THEN only_owner(g.sequence) END);
		remedy := format('SELECT %s.snowflake_advance(%L::regclass, %s::bigint%s)', snowflake_schema(), g.sequence,
			reachable.largest, layout_argument(g.layout));
		RETURN NEXT;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.check_behind IS 'for rows about a sequence that is behind its tables';
