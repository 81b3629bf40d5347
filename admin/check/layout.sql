/* admin/check/layout.sql */

-- snowflake_check() judges: sequences that next_id() refuses, and layouts that end soon.

-- The built-in layout in which a sequence's value, or else an ID, is closest to the present
CREATE FUNCTION snowflake_admin.nearest(value bigint, id bigint)
RETURNS TABLE (layout text, max_value bigint, expires timestamptz, ts timestamptz)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT name, max_value, expires, ts FROM layouts()
	CROSS JOIN LATERAL (SELECT CASE WHEN value IS NULL THEN bound_time(id, to_layout(name))
		-- The largest values have a time beyond all that PostgreSQL knows.
		WHEN extract(epoch FROM tick) * (value / ids_per_tick) < 1e11
		THEN epoch + tick * (value / ids_per_tick)::double precision END) AS t (ts)
	WHERE expires IS NOT NULL AND ts IS NOT NULL
	ORDER BY abs(extract(epoch FROM clock_timestamp() - ts)) LIMIT 1
$$;

-- Sequences that next_id() refuses for their parameters, and layouts that end within a year
CREATE FUNCTION snowflake_admin.check_layout(generators snowflake_admin.generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN g.tabs IS NULL AND g.sequence <> next_id_seq()
			THEN 'warning' ELSE 'error' END,
		format('sequence %s', g.sequence),
		CASE WHEN relpersistence = 'u' THEN 'It is unlogged, so next_id() refuses it.'
			WHEN g.layout IS NULL THEN format(
				'Its MAXVALUE %s belongs to no built-in layout, so next_id() refuses it.%s', seqmax,
				CASE WHEN v.is_lost THEN ' A schema tool may have changed it.' END)
			ELSE 'Its parameters are not those of its layout, so next_id() refuses it.' END,
		CASE WHEN relpersistence = 'u' THEN format('ALTER SEQUENCE %s SET LOGGED', g.sequence)
			WHEN g.layout IS NOT NULL OR v.last < least_id() AND (v.is_lost OR l.name IS NOT NULL)
			THEN format('SELECT %1$s.snowflake_alter_sequence(%2$L::regclass, %3$L::%1$s.snowflake_layout)',
				snowflake_schema(), g.sequence, coalesce(g.layout, l.name, 'instagram'))
			WHEN l.max_value IS NOT NULL THEN format('ALTER SEQUENCE %s MAXVALUE %s', g.sequence, l.max_value)
			ELSE 'Let the default name its layout, if that is a custom one: next_id(SHARD, SEQUENCE, LAYOUT). '
				'Otherwise give it the MAXVALUE of its layout, which snowflake_layouts() lists.' END
	FROM unnest(generators) AS g
	JOIN pg_class ON oid = g.sequence JOIN pg_sequence ON seqrelid = oid
	-- A tool sets it to the largest value of a type.  Any other is that of a custom layout.
	CROSS JOIN LATERAL (SELECT coalesce(sequence_last_value(g.sequence), 0),
		seqmax IN (9223372036854775807, 2147483647, 32767)) AS v (last, is_lost)
	LEFT JOIN layouts() AS l ON g.layout IS NULL
		AND l.name = coalesce(g.named,
			CASE g.sequence WHEN next_id_seq() THEN 'instagram' END,
			CASE WHEN v.is_lost THEN (SELECT layout FROM nearest(
				CASE WHEN v.last >= least_id() THEN v.last END,
				(SELECT id FROM largest_id(g.tabs, g.cols, least_id())))) END)
	WHERE g.state = 'refuses' AND (g.layout IS NULL OR relpersistence = 'u' OR seqcycle
		OR seqincrement <> 1 OR seqcache <> 1 OR seqtypid <> 'bigint'::regtype
		OR g.layout NOT IN (SELECT name FROM layouts())
			AND g.last_timestamp IS NULL AND (v.is_lost OR v.last > 0))
	UNION ALL SELECT CASE WHEN expires < clock_timestamp() THEN 'error' ELSE 'warning' END,
		format('sequence %s', sequence),
		format('Its layout %s %s on %s.', layout,
			CASE WHEN expires < clock_timestamp() THEN 'ended' ELSE 'ends' END, expires),
		format('Before that, let another sequence with a layout that ends later, or with new shards '
			'of a later epoch, make the IDs of %s, as "When a layout ends" in doc/layouts.md says.',
			coalesce(array_to_string(tabs, ', '), 'its programs'))
	FROM unnest(generators)
	WHERE expires < clock_timestamp() + interval '1 year'
		AND (tabs IS NOT NULL OR last_timestamp > clock_timestamp() - interval '30 days')
$$;
