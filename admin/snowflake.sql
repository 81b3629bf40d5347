/* admin/snowflake.sql */

-- The functions of the extension "snowflake" that the rest needs, and what the rest must know
-- about IDs and layouts.  Which bits of an ID are what, only that extension knows, but for the
-- layouts trace and decimal, whose shards id_step() and id_at() place themselves.  The extension may
-- be in any schema: a body that is BEGIN ATOMIC names its functions for good, and a command that
-- is shown or executed names them by snowflake_schema().  Knows no table.

-- The name of a function or procedure that users call, with the present name of the schema of this
-- extension.  Nothing here calls one by this name, because whoever owns the schema may rename it, and
-- create others.  It is for what is shown.
CREATE FUNCTION snowflake_admin.own_name(name text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('%I.%s', nspname, name) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
	WHERE extname = 'snowflake_admin'
$$;
COMMENT ON FUNCTION snowflake_admin.own_name IS 'for naming commands where they are shown';

-- The present name of the schema of "snowflake", quoted
CREATE FUNCTION snowflake_admin.snowflake_schema() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT pg_catalog.quote_ident(nspname::text) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
	WHERE extname = 'snowflake';
END;
COMMENT ON FUNCTION snowflake_admin.snowflake_schema IS 'for naming functions and types of snowflake in commands';

-- Keep this name, and the extension in its schema, until the transaction ends, so that a command which
-- is composed of it after this, and executed later, finds no function of whoever can rename the schema.
-- Only superusers can lock these rows.
CREATE FUNCTION snowflake_admin.keep_snowflake() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
		PERFORM FROM pg_extension WHERE extname = 'snowflake' FOR SHARE;
		PERFORM FROM pg_namespace WHERE oid = (SELECT extnamespace FROM pg_extension WHERE extname = 'snowflake')
		FOR SHARE;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.keep_snowflake IS 'for keeping the names by which commands find functions of snowflake';

-- A call of a command for a table or sequence, as it is shown, with the present name of the schema.
-- The type is that of the command, so that no overload fits better.
CREATE FUNCTION snowflake_admin.call_of(command text, target regclass, arguments text DEFAULT '') RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('CALL %s(%L::regclass%s)', own_name(command), target, arguments)
$$;
COMMENT ON FUNCTION snowflake_admin.call_of IS 'for showing a call';

-- A layout as a literal in a command
CREATE FUNCTION snowflake_admin.layout_literal(layout text) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT format('%L::%s.snowflake_layout', layout, snowflake_schema())
$$;
COMMENT ON FUNCTION snowflake_admin.layout_literal IS 'for naming a layout in a command';

-- A custom layout as the last argument in a command, or NULL for a built-in one, which the
-- sequence tells
CREATE FUNCTION snowflake_admin.layout_argument(layout text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT ', ' || layout_literal(layout) WHERE layout LIKE '%:%'
$$;
COMMENT ON FUNCTION snowflake_admin.layout_argument IS 'for commands that need not name a built-in layout';

-- The built-in layouts, and the MAXVALUE of their sequences.  Those whose IDs do not tell their
-- time never expire.
CREATE FUNCTION snowflake_admin.layouts()
RETURNS TABLE (name text, max_value bigint, epoch timestamptz, tick interval, ids_per_tick bigint,
	expires timestamptz)
LANGUAGE sql STABLE PARALLEL RESTRICTED
BEGIN ATOMIC
	SELECT name, max_value, epoch, tick, ids_per_tick, expires FROM snowflake_layouts();
END;
COMMENT ON FUNCTION snowflake_admin.layouts IS 'for reading snowflake_layouts() from any search_path';

-- A setting of "snowflake" that is a time.  There are settings once a function of "snowflake" has loaded
-- the library.  PostgreSQL shows a long time with an exponent, such as 1.23457e+06ms, which is no
-- interval to it.
CREATE FUNCTION snowflake_admin.time_setting(name text) RETURNS interval
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	PERFORM layouts();
	RETURN (SELECT value[1]::double precision * ('1 ' || coalesce(nullif(value[2], ''), 'ms'))::interval
		FROM regexp_match(current_setting('snowflake.' || name), '^([0-9.]+(?:e[+-]?[0-9]+)?)([a-z]*)$') AS value);
END
$$;
COMMENT ON FUNCTION snowflake_admin.time_setting IS 'for reading max_lead and max_wait';

-- A text as a layout.  One that is no layout, as a text in the code of a function may be, is NULL.
CREATE FUNCTION snowflake_admin.to_layout(layout text) RETURNS snowflake_layout
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	RETURN layout;
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_admin.to_layout IS 'for reading a layout where an error would be in the way';

-- Can the IDs of a layout tell their time?
CREATE FUNCTION snowflake_admin.has_time(layout snowflake_layout) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT coalesce((SELECT expires IS NOT NULL FROM layouts() WHERE name = layout::text),
		layout::text ~ '^timestamp:')
$$;
COMMENT ON FUNCTION snowflake_admin.has_time IS 'for telling layouts with a time from trace, decimal and the like';

-- The smallest number that is taken for an ID.  Smaller ones are those of a former serial: as IDs
-- they would have been generated in the first minutes after their layout's epoch, with mastodon in
-- the first hours, and with javascript in the first days.  This bound is one for all layouts, and
-- only decides what is looked at.  Rows are deleted by first_id().
CREATE FUNCTION snowflake_admin.least_id() RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT 1::bigint << 40;
END;
COMMENT ON FUNCTION snowflake_admin.least_id IS 'for telling IDs from the values of a former serial';

-- The smallest ID that can have a time, with which a partition begins
CREATE FUNCTION snowflake_admin.bound(ts timestamptz, layout snowflake_layout) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT snowflake_min_id(ts, layout);
END;
COMMENT ON FUNCTION snowflake_admin.bound IS 'for comparing IDs with a time, and for bounds of partitions';

-- The time of a bound of a partition, which need not be an ID that anything has generated
CREATE FUNCTION snowflake_admin.bound_time(id bigint, layout snowflake_layout) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
	SELECT CASE id
		WHEN '-9223372036854775808' THEN '-infinity'
		WHEN 9223372036854775807 THEN 'infinity'
		ELSE snowflake_timestamp(greatest(id, 0), layout) END;
END;
COMMENT ON FUNCTION snowflake_admin.bound_time IS 'for the times of IDs and of bounds of partitions';

-- An ID of a time and a shard, or an error if its layout has no such time or shard
CREATE FUNCTION snowflake_admin.compose(ts timestamptz, shard bigint, layout snowflake_layout) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT snowflake_id(ts, shard, 1::bigint, layout);
END;
COMMENT ON FUNCTION snowflake_admin.compose IS 'for knowing whether a layout has a shard';

-- The shard of an ID, and the ID that another shard has in its place.  These are for statements that are
-- kept as texts and executed later, which name no type of "snowflake", either: its schema may have another
-- name by then.
CREATE FUNCTION snowflake_admin.shard_of(id bigint, layout text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT snowflake_shard(id, layout::snowflake_layout);
END;
COMMENT ON FUNCTION snowflake_admin.shard_of IS 'for finding the rows of a shard';

CREATE FUNCTION snowflake_admin.with_shard(id bigint, shard bigint, layout text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT snowflake_id(snowflake_timestamp(id, layout::snowflake_layout), shard,
		snowflake_sequence_number(id, layout::snowflake_layout)::bigint, layout::snowflake_layout);
END;
COMMENT ON FUNCTION snowflake_admin.with_shard IS 'for giving an ID another shard';

-- The largest ID that is not future-dated
CREATE FUNCTION snowflake_admin.present_id(layout text) RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT snowflake_max_id(clock_timestamp() + interval '1 s', layout::snowflake_layout);
END;
COMMENT ON FUNCTION snowflake_admin.present_id IS 'for telling future-dated IDs';

-- Can a column of this type hold IDs?  This does not look through domains; base_type() does.
CREATE FUNCTION snowflake_admin.is_id(type oid) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT type IN ('bigint'::regtype::oid, 'snowflake'::regtype::oid);
END;
COMMENT ON FUNCTION snowflake_admin.is_id IS 'for finding columns that can hold IDs';

-- The given shard if the layout has it, or without one that of the setting.  If there is none, the
-- error is that of the function of "snowflake".
CREATE FUNCTION snowflake_admin.require_shard(shard bigint, layout text) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT CASE WHEN shard IS NULL THEN snowflake_shard()
		ELSE snowflake_shard(snowflake_id(pg_catalog.now(), shard, 1::bigint, layout::snowflake_layout),
			layout::snowflake_layout) END;
END;
COMMENT ON FUNCTION snowflake_admin.require_shard IS 'for refusing a shard with which next_id() would fail';

-- How far IDs are apart that differ by one in their first field alone, the time or the counter of
-- decimal.  A shard's ID and any number of such steps are an ID of this shard.  Layouts without a
-- time are an error, but for trace and decimal.
CREATE FUNCTION snowflake_admin.id_step(layout text) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT CASE layout
		WHEN 'decimal' THEN 10000000000
		WHEN 'trace' THEN 1::bigint << 38
		ELSE (SELECT snowflake_max_id(tick, l) - snowflake_min_id(tick, l) + 1::bigint
			FROM (SELECT layout::snowflake_layout) AS x (l),
				LATERAL (SELECT snowflake_timestamp(snowflake_max_id(pg_catalog.now(), l), l)) AS y (tick)) END;
END;
COMMENT ON FUNCTION snowflake_admin.id_step IS 'for counting without generating the IDs of another shard';

-- How many IDs of one shard a layout has for each tick
CREATE FUNCTION snowflake_admin.ids_per_tick(layout snowflake_layout) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT coalesce(max(value), 0::bigint) + 1::bigint FROM snowflake_fields(9223372036854775807, layout)
	WHERE field = 'sequence';
END;
COMMENT ON FUNCTION snowflake_admin.ids_per_tick IS 'for the time at which a sequence of any layout stands';

-- An ID of a shard and a time.  With trace and decimal, it is the first one of the shard.  Other layouts
-- without a time are an error.
CREATE FUNCTION snowflake_admin.id_at(ts timestamptz, shard bigint, layout text) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT CASE layout
		WHEN 'decimal' THEN snowflake_admin.id_step(layout) + shard
		WHEN 'trace' THEN snowflake_admin.id_step(layout) + (shard << 10) + 1::bigint
		ELSE snowflake_id(ts, shard, 0::bigint, layout::snowflake_layout) END;
END;
COMMENT ON FUNCTION snowflake_admin.id_at IS 'for values that begin as IDs of a shard';

-- The shards of IDs, in their order, or NULL if the layout has none
CREATE FUNCTION snowflake_admin.shards_of(ids bigint[], layout snowflake_layout) RETURNS integer[]
LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT pg_catalog.array_agg(snowflake_shard(id, layout) ORDER BY n)
	FROM pg_catalog.unnest(ids) WITH ORDINALITY AS i (id, n)
	WHERE EXISTS (SELECT FROM snowflake_fields(ids[1], layout) WHERE field NOT IN ('timestamp', 'sequence'));
END;
COMMENT ON FUNCTION snowflake_admin.shards_of IS 'for finding out which shards rows have';

-- The state of a sequence in a layout, or if the sequence is NULL, of all sequences that generate IDs.
-- The second part then has no row, because that function of "snowflake" is STRICT.  So it has
-- none for a NULL layout, either.
CREATE FUNCTION snowflake_admin.sequence_states(sequence regclass DEFAULT NULL, layout snowflake_layout DEFAULT NULL)
RETURNS TABLE (sequence regclass, layout text, last_timestamp timestamptz, lead interval, expires timestamptz,
	state text)
LANGUAGE sql VOLATILE
BEGIN ATOMIC
	SELECT * FROM snowflake_sequences() WHERE $1 IS NULL
	UNION ALL SELECT * FROM snowflake_sequences($1, $2);
END;
COMMENT ON FUNCTION snowflake_admin.sequence_states IS 'for reading snowflake_sequences() from any search_path';

-- The sessions of this database that may generate IDs, but for this one.  Of those of other roles,
-- pg_stat_activity may hide the kind, but pg_stat_replication has all that serve replication.
-- Autovacuum has no role.
CREATE FUNCTION snowflake_admin.other_sessions() RETURNS TABLE (pid integer, role oid)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT pid, usesysid FROM pg_stat_activity
	WHERE datname = current_database() AND usesysid IS NOT NULL AND pid <> pg_backend_pid()
		AND leader_pid IS NULL AND pid NOT IN (SELECT r.pid FROM pg_stat_replication AS r)
	ORDER BY pid
$$;
COMMENT ON FUNCTION snowflake_admin.other_sessions IS 'for the sessions that may generate IDs';
