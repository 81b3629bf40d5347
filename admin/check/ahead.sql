/* admin/check/ahead.sql */

-- snowflake_check() judges a sequence that is ahead of the clock: may it be set back, or have
-- rows future-dated IDs that it would generate again?  snowflake_set_back() judges the same.  Sets
-- nothing back.

-- The columns that may have IDs of a sequence, and the shards with which it may generate IDs, NULL for
-- any.  The columns are those that it fills, and those that may have moved from it to another one: as
-- nothing says which have moved, all that another sequence of its layout fills.  The shards count for
-- all of them, whatever each is filled with now: a table that had one may have another one today, while
-- the next table has still that one.  The tables in "altered" have only values made of IDs.
CREATE FUNCTION snowflake_admin.columns_of(g generator, OUT tabs regclass[], OUT cols name[], OUT shards integer[],
	OUT altered regclass[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
BEGIN
	SELECT g.tabs || coalesce(array_agg(k.tab) FILTER (WHERE NOT k.is_altered), '{}'),
		g.cols || coalesce(array_agg(k.col) FILTER (WHERE NOT k.is_altered), '{}'),
		g.altered || coalesce(array_agg(k.tab) FILTER (WHERE k.is_altered), '{}')
	INTO tabs, cols, altered
	FROM (SELECT DISTINCT u.tab, u.col, is_altered(u.tab, u.col) AS is_altered FROM keys() AS u
		JOIN sequence_states() AS o ON o.sequence = u.sequence AND o.layout = g.layout
		WHERE u.made_by = 'next_id' AND u.sequence <> g.sequence) AS k;
	IF NOT (has_role_shards() OR g.lacks_shard OR g.tabs IS NULL OR array_position(g.used, NULL) IS NOT NULL) THEN
		shards := g.used;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.columns_of IS 'for the columns that may have IDs of a sequence';

-- The future-dated IDs in these columns, all together.  "own" are those that the sequence would
-- generate again, and "shards" are theirs.  "unseen" says what could not be read, and "way" what lets the
-- command see the first of it, and "who" can do that, or NULL.  Not so "altered", in which nothing can be seen.
CREATE FUNCTION snowflake_admin.future_ids(g generator, layout snowflake_layout, since bigint, command text,
	OUT own bigint, OUT others bigint, OUT more boolean, OUT latest timestamptz, OUT tab regclass, OUT shards integer[],
	OUT unseen text, OUT way text, OUT who text, OUT altered text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT t.own, t.others, t.more, id_time(t.largest, layout), t.tab, t.own_shards, t.unseen,
		way_to_see(command, t.unseen_tab, t.unseen_col, t.obstacle),
		CASE WHEN t.obstacle LIKE 'no index%' THEN only_owner(t.unseen_tab) END,
		(SELECT string_agg(DISTINCT format('%s (its default makes other values of IDs)', a), ', ') FROM unnest(c.altered) AS a)
	FROM columns_of(g) AS c CROSS JOIN LATERAL id_totals(c.tabs, c.cols, c.shards, layout, since, 1000000) AS t
$$;
COMMENT ON FUNCTION snowflake_admin.future_ids IS 'for future-dated IDs that a sequence may have generated';

-- ', which belongs to ROLE' for a table whose owner is not the caller
CREATE FUNCTION snowflake_admin.whose(tab regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT CASE WHEN relowner <> caller() THEN ', which belongs to ' || relowner::regrole ELSE '' END
	FROM pg_class WHERE oid = tab
$$;
COMMENT ON FUNCTION snowflake_admin.whose IS 'for naming the owner of a table';

-- What future-dated IDs mean for a sequence, in words
CREATE FUNCTION snowflake_admin.describe_future_ids(g generator, future record) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	at_least text := CASE WHEN future.more THEN 'at least ' ELSE '' END;
	kind text := CASE WHEN g.tabs IS NULL OR NOT has_shards(to_layout(g.layout)) THEN 'layout' ELSE 'shard' END;
	own_text text;
BEGIN
	IF future.own > 0 THEN
		own_text := format('Future-dated IDs of its %s: %s%s, the latest of %s in %s%s. So it must not be set back.',
			kind, at_least, future.own, future.latest, future.tab, whose(future.tab));
		IF kind = 'shard' THEN
			own_text := own_text
				|| ' When another shard is in use, check again to see how their rows get new ones.';
		END IF;
	ELSIF NOT future.more AND future.unseen IS NULL AND future.altered IS NULL AND g.unread = '{}' THEN
		own_text := format('No row of %s has a future-dated ID of its %s. '
			'Set it back only if no program has kept one of this %2$s (if unsure, wait or take a new shard), '
			'and if this server is neither a restored copy nor a promoted asynchronous standby, which may lack '
			'IDs that the original generated.',
			coalesce((SELECT string_agg(DISTINCT t::text, ', ') FROM unnest(g.tabs) AS t), 'a table'), kind);
	END IF;
	RETURN concat_ws(' ',
		CASE WHEN g.tabs IS NULL AND g.altered = '{}' AND g.unread = '{}'
			THEN 'No default of this database uses it, but programs may.' END,
		own_text,
		CASE WHEN future.others > 0 THEN format('Future-dated IDs of other shards, which it cannot generate again: %s%s.',
			at_least, future.others) END,
		format('%I cannot look at ', current_user) || future.unseen || '.',
		'Nothing can tell which future-dated IDs are in ' || future.altered || '.');
END
$$;
COMMENT ON FUNCTION snowflake_admin.describe_future_ids IS 'for the problem of a sequence that is ahead';

-- The columns that a sequence fills with one of these shards, or with a computed one
CREATE FUNCTION snowflake_admin.columns_with(g generator, shards integer[])
RETURNS TABLE (tab regclass, col name)
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT u.tab, u.col FROM unnest(g.tabs, g.cols, g.shards) AS u (tab, col, shard)
	WHERE coalesce(u.shard = ANY (columns_with.shards), true)
$$;
COMMENT ON FUNCTION snowflake_admin.columns_with IS 'for the tables that need another shard';

-- How those who use a sequence get another shard than these, as rows have IDs that it must not generate
-- again.  NULL if each of its tables needs its own command.  The next check then shows how to set the
-- sequence back.  Where no table has such a shard, other code does.
CREATE FUNCTION snowflake_admin.new_shard(g generator, shards integer[], until timestamptz, OUT remedy text, OUT who text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	tabs regclass[];
	cols name[];
BEGIN
	SELECT array_agg(c.tab), array_agg(c.col) INTO tabs, cols FROM columns_with(g, shards) AS c;
	IF g.by_setting AND NOT g.has_own_shard
		AND coalesce((SELECT place FROM shard_setting()), 'client') LIKE 'setting of database %'
	THEN
		remedy := format('SELECT %s.snowflake_set_shard(N::bigint) -- N is a shard from your list that no database '
			'uses', snowflake_schema());
		who := only_database_owner();
	ELSIF tabs IS NULL THEN
		remedy := format('Wait until %s, or check again when %s generates no IDs of this sequence and of shard %s.', until,
			coalesce((SELECT min(place(m.class, m.object)) FROM id_makers() AS m
				WHERE m.is_read AND coalesce(m.sequence, g.sequence) = g.sequence AND may_use(m.owner, g.sequence)
				AND CASE WHEN NOT by_setting THEN coalesce(m.shard = ANY (shards), true) END), 'other code'),
			array_to_string(shards, ', '));
	ELSIF (SELECT count(DISTINCT t) FROM unnest(tabs) AS t) = 1 THEN
		SELECT r.remedy, r.who INTO remedy, who FROM new_shard_remedy(tabs[1], cols[1]) AS r;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.new_shard IS 'for the remedy that gives the tables of a sequence another shard';

-- A row for each table, if each needs its own command
CREATE FUNCTION snowflake_admin.check_tables_to_move(g generator, shards integer[])
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT DISTINCT 'error', format('table %s', tab), concat_ws(' ', format('Its IDs come from sequence %s, which is '
		'ahead of the clock, and must not be set back.', g.sequence), r.who), r.remedy
	FROM columns_with(g, shards) CROSS JOIN LATERAL new_shard_remedy(tab, col) AS r
$$;
COMMENT ON FUNCTION snowflake_admin.check_tables_to_move IS
'for the rows about tables of a sequence that must not be set back';

-- Does a table belong to neither a sequence's owner nor the database's nor a superuser?  Whoever has a
-- table can write any ID into it, and must not decide by that what happens to the tables of others.
CREATE FUNCTION snowflake_admin.is_strange(tab regclass, sequence regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT NOT (rolsuper OR t.relowner IN (
		SELECT relowner FROM pg_class WHERE oid = sequence
		UNION ALL SELECT datdba FROM pg_database WHERE datname = current_database()))
	FROM pg_class AS t JOIN pg_roles AS r ON r.oid = t.relowner WHERE t.oid = tab
$$;
COMMENT ON FUNCTION snowflake_admin.is_strange IS 'for tables whose rows have no say in the tables of others';

-- The tables that alone keep a sequence from being set back, if all of them are strange, with ten
-- shards each.
CREATE FUNCTION snowflake_admin.strange_tables(g generator, layout snowflake_layout)
RETURNS TABLE (tab regclass, col name, shard integer)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	WITH found AS MATERIALIZED (
		SELECT i.tab, i.col, i.shard, is_strange(i.tab, g.sequence) AS is_strange,
			row_number() OVER (PARTITION BY i.tab, i.col ORDER BY i.largest DESC) AS place
		FROM columns_of(g) AS c CROSS JOIN LATERAL id_counts(c.tabs, c.cols, c.shards, layout,
			bound(clock_timestamp() + interval '1 s', layout), 1000000) AS i
		WHERE i.is_own
	)
	SELECT f.tab, f.col, f.shard FROM found AS f WHERE place <= 10 AND (SELECT bool_and(is_strange) FROM found)
$$;
COMMENT ON FUNCTION snowflake_admin.strange_tables IS 'for tables whose owners have no say in the tables of others';

-- The rows about such tables
CREATE FUNCTION snowflake_admin.check_strange_tables(g generator, layout snowflake_layout)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE sql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
	SELECT 'error', format('table %s', tab), concat_ws(' ', format('It has future-dated IDs of shard %s%s, and no '
			'table of the owners of sequence %s or of the database has one. They keep the sequence from being set '
			'back.', shard, whose(tab), g.sequence), r.who), r.remedy
	FROM strange_tables(g, layout) CROSS JOIN LATERAL renumber_remedy(tab, col, shard, layout, true) AS r
$$;
COMMENT ON FUNCTION snowflake_admin.check_strange_tables IS 'for the rows about these tables';

-- The row about a sequence that is ahead of the clock, and rows about its tables
CREATE FUNCTION snowflake_admin.check_ahead(g generator, layout snowflake_layout)
RETURNS TABLE (severity text, object text, problem text, remedy text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, snowflake_admin, pg_temp AS $$
DECLARE
	patience interval := time_setting('max_lead')
		+ time_setting('max_wait');
	until timestamptz := date_trunc('second', g.last_timestamp - patience) + interval '1 s';
	is_unused boolean := NOT g.is_used AND g.unread = '{}' AND g.sequence <> next_id_seq();
	future record;
	way record;		-- to another shard
BEGIN
	severity := CASE WHEN NOT g.is_used AND g.unread = '{}' THEN 'note'
		WHEN g.state <> 'refuses' THEN 'warning' ELSE 'error' END;
	object := format('sequence %s', g.sequence);
	problem := format('It is %s ahead of the clock: its last ID has the time %s, and the clock says %s, so '
		'next_id() %s. If the clock is slow, set it right, and do nothing else.',
		g.lead, g.last_timestamp, clock_timestamp(),
		CASE g.state WHEN 'refuses' THEN 'fails until ' || until WHEN 'waits' THEN 'waits'
			ELSE 'generates future-dated IDs, as max_lead is ' || current_setting('snowflake.max_lead') END);
	IF g.expires IS NULL THEN
		remedy := format('Wait until %s.', until);
		RETURN NEXT;
		RETURN;
	END IF;
	SELECT * INTO future FROM future_ids(g, layout, bound(clock_timestamp() + interval '1 s', layout),
		'snowflake_check()');
	problem := concat_ws(' ', problem, nullif(describe_future_ids(g, future), ''));
	remedy := CASE
		WHEN g.state <> 'refuses' THEN format('Wait until %s.',
			date_trunc('second', g.last_timestamp) + interval '1 s')
		WHEN is_unused THEN 'Drop it if no program uses it.'
		WHEN g.unread <> '{}' THEN 'Call snowflake_check() again when all code can be read.'
		WHEN future.unseen IS NOT NULL
			THEN coalesce(future.way, format('Wait until %s.', until))
		WHEN future.own = 0 AND future.altered IS NOT NULL THEN format('Wait until %s.', until)
		WHEN future.own = 0 AND NOT future.more THEN call_of('snowflake_set_back',
			g.sequence, CASE WHEN future.others > 0 THEN ', end_sessions => true' ELSE '' END)
		WHEN NOT has_shards(layout) THEN format('Wait until %s, or check again when these rows have new IDs. '
			'Those of layout %s have no shards, so another shard would generate them again, too.', until, g.layout)
		WHEN has_role_shards() THEN format('Wait until %s, or check again when these rows have new IDs. '
			'Roles have their own shards, so it may generate IDs of any shard.', until)
		WHEN g.tabs IS NULL THEN format('Wait until %s, or check again when these rows have new IDs.', until)
		WHEN g.lead < patience + interval '10 min' THEN format('Wait until %s.', until) END;
	IF remedy IS NOT NULL THEN
		problem := concat_ws(' ', problem, CASE WHEN remedy LIKE 'CALL %' THEN only_owner(g.sequence)
			WHEN future.unseen IS NOT NULL THEN future.who END);
		RETURN NEXT;
	ELSIF EXISTS (SELECT FROM strange_tables(g, layout)) THEN
		remedy := 'Do what the rows of tables of other roles say, and check again.';
		RETURN NEXT;
		RETURN QUERY SELECT * FROM check_strange_tables(g, layout);
	ELSE
		-- More IDs than were looked at may be of any shard.
		SELECT * INTO way FROM new_shard(g, CASE WHEN NOT future.more THEN future.shards END, until);
		IF way.remedy IS NOT NULL THEN
			problem := concat_ws(' ', problem, way.who);
			remedy := way.remedy;
			RETURN NEXT;
		ELSE
			remedy := 'Give each of its tables that has such a shard its own sequence with another one, as the '
				'rows of these tables say.';
			RETURN NEXT;
			RETURN QUERY SELECT * FROM check_tables_to_move(g, CASE WHEN NOT future.more THEN future.shards END);
		END IF;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_admin.check_ahead IS 'for the row about a sequence that is ahead of the clock';
