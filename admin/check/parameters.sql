/* admin/check/parameters.sql */

-- snowflake_check() judges the parameters of sequences: those that next_id() refuses, and
-- layouts that end soon.  Does not judge how far a sequence is.

-- The time of a sequence's value in a layout, NULL if it is beyond all that PostgreSQL knows
CREATE FUNCTION snowflake_admin.value_time(value bigint, epoch timestamptz, tick interval, ids_per_tick bigint)
RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN extract(epoch FROM tick) * (value / ids_per_tick) < 1e11
		THEN epoch + tick * (value / ids_per_tick)::double precision END
$$;
COMMENT ON FUNCTION snowflake_admin.value_time IS 'for the time at which a sequence stands';

-- Is a sequence's value ahead of the clock in a layout, if it is one of this layout?  No in a layout
-- without a time.
CREATE FUNCTION snowflake_admin.is_ahead(value bigint, layout snowflake_layout) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	epoch timestamptz;
BEGIN
	IF value IS NULL OR has_time(layout) IS NOT TRUE THEN
		RETURN false;
	END IF;
	epoch := id_time(0, layout);
	RETURN coalesce(value_time(value, epoch, id_time(id_step(layout::text), layout) - epoch, ids_per_tick(layout))
		BETWEEN clock_timestamp() + interval '1 s' AND id_time(bound('infinity', layout) - 1, layout), false);
END
$$;
COMMENT ON FUNCTION snowflake_admin.is_ahead IS 'for sequences that still have the position of a layout that they have lost';

-- The built-in layout in which a sequence's value, or else an ID, is closest to the present
CREATE FUNCTION snowflake_admin.nearest(value bigint, id bigint)
RETURNS TABLE (layout text, max_value bigint, expires timestamptz, ts timestamptz)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT name, max_value, expires, ts FROM layouts()
	CROSS JOIN LATERAL (SELECT CASE WHEN value IS NULL THEN id_time(id, to_layout(name))
		ELSE value_time(value, epoch, tick, ids_per_tick) END) AS t (ts)
	WHERE expires IS NOT NULL AND ts IS NOT NULL
	ORDER BY abs(extract(epoch FROM clock_timestamp() - ts)) LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_admin.nearest IS 'for the layout that a value or an ID most likely is of';

-- The built-in layout that a sequence without one has served: the one that defaults name or
-- that next_id_seq has or, if its MAXVALUE is lost, the one that its last value or the largest
-- ID of its tables tells.  No row if nothing tells it.
CREATE FUNCTION snowflake_admin.former_layout(g generator, last_value bigint, is_lost boolean)
RETURNS TABLE (layout text, max_value bigint)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT name, max_value FROM layouts()
	WHERE name = coalesce(CASE g.sequence WHEN next_id_seq() THEN 'instagram' END, g.named,
		CASE WHEN is_lost THEN (SELECT n.layout FROM nearest(
			CASE WHEN last_value >= least_id() THEN last_value END,
			(SELECT id FROM largest_id(g.tabs, g.cols, least_id()))) AS n) END)
$$;
COMMENT ON FUNCTION snowflake_admin.former_layout IS 'for the layout that a sequence with another MAXVALUE has served';

-- The row about one sequence that next_id() refuses for its parameters
CREATE FUNCTION snowflake_admin.check_parameters_of(g generator)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	s pg_sequence;
	is_unlogged boolean;
	last_value bigint := coalesce(sequence_last_value(g.sequence), 0);
	-- Is MAXVALUE one that a tool sets, the largest value of a type?  Any other is that of a custom layout.
	is_lost boolean;
	former record;
	-- A command without its layout
	alter_command text := format('SELECT %s.snowflake_alter_sequence(%L::regclass, ', snowflake_schema(), g.sequence);
BEGIN
	SELECT * INTO s FROM pg_sequence WHERE seqrelid = g.sequence;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	is_unlogged := relpersistence = 'u' FROM pg_class WHERE oid = g.sequence;
	is_lost := s.seqmax IN (9223372036854775807, 2147483647, 32767);
	-- Only whoever may use it fails to.
	severity := CASE WHEN g.sequence = next_id_seq() OR EXISTS (SELECT FROM pg_class
		WHERE oid = ANY (g.tabs || g.altered) AND may_use(relowner, g.sequence)) THEN 'error' ELSE 'warning' END;
	object := format('sequence %s', g.sequence);
	IF is_unlogged THEN
		problem := 'It is unlogged, so next_id() refuses it.';
		remedy := format('ALTER SEQUENCE %s SET LOGGED', g.sequence);
	ELSIF g.layout IS NULL THEN
		SELECT * INTO former FROM former_layout(g, last_value, is_lost);
		problem := format('Its MAXVALUE %s belongs to no built-in layout, so next_id() refuses it.%s', s.seqmax,
			CASE WHEN is_lost THEN ' A schema tool may have changed it.' END);
		remedy := CASE
			WHEN last_value < least_id() AND (is_lost OR former.layout IS NOT NULL)
			THEN alter_command || layout_literal(coalesce(former.layout, 'instagram')) || ')'
			-- It goes back to the clock, too, if no row is in the way.
			WHEN former.layout IS NOT NULL AND NOT is_ahead(last_value, to_layout(former.layout))
			THEN call_of('snowflake_set_back', g.sequence, ', layout => ' || layout_literal(former.layout))
			WHEN former.layout IS NOT NULL
			THEN format('ALTER SEQUENCE %s MAXVALUE %s, and check again: it is ahead of the clock.', g.sequence,
				former.max_value)
			ELSE 'Let the default name its layout, if that is a custom one: next_id(SHARD, SEQUENCE, LAYOUT). '
				'Otherwise give it the MAXVALUE of its layout, which snowflake_layouts() lists.' END;
	ELSIF s.seqcycle OR s.seqincrement <> 1 OR s.seqcache <> 1 OR s.seqtypid <> 'bigint'::regtype
		-- It has another MAXVALUE than its custom layout.
		OR g.layout NOT IN (SELECT name FROM layouts()) AND g.last_timestamp IS NULL
	THEN
		problem := 'Its parameters are not those of its layout, so next_id() refuses it.';
		remedy := CASE
			WHEN g.last_timestamp IS NOT NULL OR last_value < least_id() OR g.layout IN (SELECT name FROM layouts())
			THEN alter_command || layout_literal(g.layout) || ')'
			WHEN NOT is_ahead(last_value, to_layout(g.layout))
			THEN call_of('snowflake_set_back', g.sequence, ', layout => ' || layout_literal(g.layout))
			ELSE format('Call snowflake_alter_sequence() for layout %s, set the MAXVALUE that its hint says, and check again: '
				'it is ahead of the clock.', g.layout) END;
	ELSE
		RETURN;
	END IF;
	problem := concat_ws(' ', problem, only_owner(g.sequence));
	RETURN NEXT;
END
$$;
COMMENT ON FUNCTION snowflake_admin.check_parameters_of IS 'for the row about the parameters of one sequence';

-- Sequences that next_id() refuses for their parameters
CREATE FUNCTION snowflake_admin.check_parameters(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT p.* FROM unnest(generators) AS g CROSS JOIN LATERAL check_parameters_of(g) AS p
	WHERE g.state = 'refuses'
$$;
COMMENT ON FUNCTION snowflake_admin.check_parameters IS 'for rows about the parameters of sequences';

-- Layouts that end within a year, or have ended
CREATE FUNCTION snowflake_admin.check_expiry(generators generator[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN expires < clock_timestamp() THEN 'error' ELSE 'warning' END,
		format('sequence %s', sequence),
		format('Its layout %s %s on %s.', layout,
			CASE WHEN expires < clock_timestamp() THEN 'ended' ELSE 'ends' END, expires),
		format('Before that, let another sequence with a layout that ends later, or with new shards '
			'of a later epoch, generate the IDs of %s, as "When a layout ends" in doc/layouts.md says.',
			coalesce(array_to_string(tabs, ', '), 'its programs'))
	FROM unnest(generators)
	WHERE expires < clock_timestamp() + interval '1 year'
		AND (tabs IS NOT NULL OR last_timestamp > clock_timestamp() - interval '30 days')
$$;
COMMENT ON FUNCTION snowflake_admin.check_expiry IS 'for rows about layouts that end';
