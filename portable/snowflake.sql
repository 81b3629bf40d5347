--
-- portable/snowflake.sql
--	  IDs of the layouts "instagram" and "javascript" for databases in which no
--	  extension in C can be installed: the same functions, the same bits and the
--	  same sequences as those of the extension, slower and with fewer promises.
--	  See doc/portable.md.
--
-- To be run once, by the owner of the database or of a schema, as a whole:
--
--		psql -X -1 -v ON_ERROR_STOP=1 -f portable/snowflake.sql
--
-- Everything goes into the first schema of the search path.  If anything is
-- wrong, nothing is installed.  It does not run a second time: nor does that
-- change anything.
--
-- A sequence's value is a time and a slot, tick * slots + slot, as for the
-- extension.  Both layouts have ticks of a millisecond, and as many shards and
-- slots as some number of bits can count.
--

DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'snowflake') THEN
		RAISE duplicate_object USING
			MESSAGE = 'an extension named "snowflake" is installed in this database',
			DETAIL = 'This file is for databases that cannot have it; its functions have the same names.',
			HINT = 'Use the extension, or drop it first.';
	END IF;

	-- Where the functions below look for each other, whoever calls them.
	PERFORM pg_catalog.set_config('search_path',
		pg_catalog.quote_ident(pg_catalog.current_schema()) || ', pg_temp', true);
END $$;

CREATE SEQUENCE next_id_seq MAXVALUE 1125899906841599;

COMMENT ON SEQUENCE next_id_seq IS
'time and slot of the last ID of calls that name no sequence';

--
-- Layouts
--

-- A text, so that both 'javascript' and 'javascript'::snowflake_layout work, as
-- they do with the extension.
CREATE DOMAIN snowflake_layout AS text;

COMMENT ON DOMAIN snowflake_layout IS
'which bits of an ID are its time, shard and sequence: instagram or javascript';

CREATE TYPE snowflake_parameters AS (
	name text,
	epoch bigint,				-- Unix time in milliseconds
	end_tick bigint,			-- the first one that is never issued
	shard_bits integer,
	slot_bits integer,
	id_bits integer,			-- to the right of the tick: those of shard and slot
	max_value bigint			-- of sequences that serve the layout: the last value
);

COMMENT ON TYPE snowflake_parameters IS
'for the functions of this file: what follows from a layout''s name';

-- Everything that these functions know about a layout.  The planner replaces the
-- call by its result if the name is a constant, and then takes the fields.
CREATE FUNCTION snowflake_parameters(layout snowflake_layout)
RETURNS snowflake_parameters
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	name text COLLATE "C" := lower(btrim(layout COLLATE "C", E' \t\n\r\f\v'));
BEGIN
	CASE
		WHEN name = 'instagram' THEN
			RETURN ROW('instagram', 1314220021721, 1099511627775, 13, 10, 23, 1125899906841599)::snowflake_parameters;
		WHEN name = 'javascript' THEN
			RETURN ROW('javascript', 1577836800000, 2199023255551, 5, 7, 12, 281474976710527)::snowflake_parameters;
		WHEN name LIKE '%:%' OR name IN ('twitter', 'discord', 'shardingsphere', 'sonyflake', 'mastodon', 'pgedge',
										 'trace', 'decimal') THEN
			RAISE feature_not_supported USING
				MESSAGE = format('layout "%s" needs the extension', layout),
				HINT = 'The portable version has the layouts "instagram" and "javascript".';
		ELSE
			RAISE invalid_text_representation USING
				MESSAGE = format('invalid input syntax for type snowflake_layout: "%s"', layout),
				HINT = 'The portable version has the layouts "instagram" and "javascript".';
	END CASE;
END $$;

COMMENT ON FUNCTION snowflake_parameters(snowflake_layout) IS
'what follows from a layout''s name; an error if there is no such layout here';

-- For functions that are not STRICT, because NULL must not become a NULL ID.
CREATE FUNCTION snowflake_named_layout(layout snowflake_layout)
RETURNS snowflake_parameters
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path FROM CURRENT
AS $$
BEGIN
	IF layout IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'layout must not be null';
	END IF;
	RETURN snowflake_parameters(layout);
END $$;

COMMENT ON FUNCTION snowflake_named_layout(snowflake_layout) IS
'for next_id(): what follows from a layout''s name, which must not be null';

CREATE FUNCTION snowflake_served_layout(max_value bigint)
RETURNS snowflake_parameters
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE max_value
	WHEN (snowflake_parameters('instagram')).max_value THEN snowflake_parameters('instagram')
	WHEN (snowflake_parameters('javascript')).max_value THEN snowflake_parameters('javascript') END;

COMMENT ON FUNCTION snowflake_served_layout(bigint) IS
'the layout that sequences of this MAXVALUE serve, or NULL';

CREATE FUNCTION snowflake_tick_time(layout snowflake_parameters, tick bigint)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_timestamp(((layout).epoch + tick)::float8 / 1000);

COMMENT ON FUNCTION snowflake_tick_time(snowflake_parameters, bigint) IS
'time at which a tick of a layout begins';

CREATE FUNCTION snowflake_layouts(
	OUT name text,
	OUT definition text,
	OUT epoch timestamptz,
	OUT tick interval,
	OUT shards bigint,
	OUT ids_per_tick bigint,
	OUT expires timestamptz,
	OUT max_value bigint)
RETURNS SETOF record
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 2
BEGIN ATOMIC
	SELECT p.name,
		   format('timestamp:41 shard:%s sequence:%s epoch:%s', p.shard_bits, p.slot_bits, p.epoch),
		   snowflake_tick_time(p, 0), interval '1 ms', 1::bigint << p.shard_bits, 1::bigint << p.slot_bits,
		   snowflake_tick_time(p, p.end_tick), p.max_value
	FROM unnest(ARRAY['instagram', 'javascript']) n, snowflake_parameters(n) p;
END;

COMMENT ON FUNCTION snowflake_layouts() IS
'the layouts: fields, limits, end, and the MAXVALUE of a sequence for each';

--
-- Making IDs
--

-- A setting that is a time, in microseconds.  As no library knows the setting,
-- it is a text that anyone can set.
CREATE FUNCTION snowflake_time_setting(name text, otherwise text)
RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN extract(epoch FROM regexp_replace(coalesce(nullif(current_setting(name, true), ''), otherwise),
										 '^[\d.]+$', '\&ms')::interval) * 1000000;

COMMENT ON FUNCTION snowflake_time_setting(text, text) IS
'for next_id(): a setting in microseconds; a number without a unit is milliseconds';

CREATE FUNCTION snowflake_shard_setting()
RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	shard bigint := coalesce(nullif(current_setting('snowflake.shard', true), ''), '-1');
BEGIN
	IF shard = -1 THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = '"snowflake.shard" is not set',
			HINT = format('Give this database a number that no other one has, with ALTER DATABASE %I SET snowflake.shard = ..., which takes effect in new sessions, or name the shard in the call of next_id().',
						  current_database());
	END IF;
	RETURN shard;
END $$;

COMMENT ON FUNCTION snowflake_shard_setting() IS
'for next_id(): the shard in the setting snowflake.shard';

-- Which layout of the extension has sequences of this MAXVALUE, if it is not one
-- of this file's.
CREATE FUNCTION snowflake_other_layout(max_value bigint)
RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE max_value
	WHEN 9007199254736895 THEN 'twitter'
	WHEN 9007199254736894 THEN 'discord'
	WHEN 9007199254736893 THEN 'shardingsphere'
	WHEN 140737488355071 THEN 'sonyflake'
	WHEN 9223372036854710271 THEN 'mastodon'
	WHEN 9007199254736892 THEN 'pgedge'
	WHEN 9435509593701641 THEN 'trace'
	WHEN 92233720199999 THEN 'decimal' END;

COMMENT ON FUNCTION snowflake_other_layout(bigint) IS
'for error messages: the layout of the extension alone that has this MAXVALUE';

CREATE FUNCTION snowflake_check_shard(shard bigint, layout snowflake_parameters)
RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF shard >> layout.shard_bits <> 0 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('shard %s is out of range', shard),
			DETAIL = format('The shards of the layout "%s" are 0 to %s.', layout.name, (1 << layout.shard_bits) - 1),
			HINT = format(CASE shard
				WHEN -1 THEN
					'If this is the value of "snowflake.shard", no shard is set. Set it with ALTER DATABASE, which takes effect in new sessions. To compute a shard from a key, which may be negative, use abs(key %% %s).'
				ELSE 'Use a shard that no other server uses. To compute it from a key, which may be negative, use abs(key %% %s).' END,
						  1 << layout.shard_bits);
	END IF;
END $$;

COMMENT ON FUNCTION snowflake_check_shard(bigint, snowflake_parameters) IS
'for next_id(): an error if a layout has no such shard';

CREATE FUNCTION snowflake_check_relation(sequence regclass)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	class record;
BEGIN
	SELECT * INTO class FROM pg_class WHERE oid = sequence;
	-- An old snapshot does not show a new sequence, but functions find it.
	IF NOT FOUND AND pg_relation_filenode(sequence) IS NULL THEN
		RAISE undefined_table USING
			MESSAGE = format('sequence with OID %s does not exist', sequence::oid);
	END IF;
	IF class.relkind <> 'S' THEN
		RAISE wrong_object_type USING
			MESSAGE = format('"%s" is not a sequence', class.relname);
	END IF;
END $$;

COMMENT ON FUNCTION snowflake_check_relation(regclass) IS
'for next_id(): an error if a relation does not exist or is no sequence';

-- Return the layout of a sequence: "asked" or, if that is NULL, the one that the
-- sequence serves.  Raise an error if the arguments or the sequence cannot be
-- used.  "privilege" is what the caller needs on the sequence: 'UPDATE' to take
-- values, 'SELECT, USAGE' (either) to look, or 'owner' to alter it, for which its
-- parameters do not matter.
CREATE FUNCTION snowflake_check(shard bigint, sequence regclass, asked snowflake_parameters, privilege text)
RETURNS snowflake_parameters
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	class record;
	seq record;
	name text;
	qualified text;
	served snowflake_parameters;
	other text;
	needs_extension boolean;
	message text := 'cannot make IDs from sequence "%s"';
	detail text;
	hint text;
BEGIN
	IF shard IS NULL OR sequence IS NULL THEN
		RAISE null_value_not_allowed USING
			MESSAGE = CASE WHEN shard IS NULL THEN 'shard' ELSE 'sequence' END || ' must not be null';
	END IF;
	PERFORM snowflake_check_relation(sequence);
	SELECT * INTO class FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = sequence;
	name := coalesce(class.relname, sequence::text);
	qualified := coalesce(quote_ident(class.nspname) || '.' || quote_ident(class.relname), sequence::text);

	IF privilege = 'owner' THEN
		IF NOT pg_has_role(class.relowner, 'USAGE') THEN
			RAISE insufficient_privilege USING
				MESSAGE = format('must be owner of sequence %s', name);
		END IF;
	ELSE
		IF NOT has_sequence_privilege(sequence, privilege) THEN
			RAISE insufficient_privilege USING
				MESSAGE = format('permission denied for sequence %s', name),
				HINT = format('The sequence''s owner can GRANT %s ON SEQUENCE.',
							  CASE privilege WHEN 'UPDATE' THEN 'USAGE, UPDATE' ELSE 'SELECT' END);
		END IF;

		seq := pg_sequence_parameters(sequence);
		served := snowflake_served_layout(seq.maximum_value);
		other := snowflake_other_layout(seq.maximum_value);
		needs_extension := asked IS NULL AND other IS NOT NULL;
		asked := coalesce(asked, served);
	END IF;

	IF class.relpersistence = 't' THEN
		detail := 'The sequence is temporary.';
		hint := 'Use a sequence that all sessions share and that outlives them.';
	ELSIF class.relpersistence = 'u' THEN
		detail := 'The sequence is unlogged and would repeat IDs after a crash.';
		hint := format('Use ALTER SEQUENCE %s SET LOGGED.', qualified);
	ELSIF privilege = 'owner' THEN
		RETURN asked;
	ELSIF needs_extension THEN
		detail := format('The sequence serves layout "%s", which needs the extension.', other);
		hint := 'Use another sequence. The portable version has the layouts "instagram" and "javascript".';
	ELSIF asked IS NULL THEN
		message := 'sequence "%s" serves no built-in layout';
		detail := format('It has MAXVALUE %s.', seq.maximum_value);
	ELSIF seq.maximum_value <> asked.max_value THEN
		message := format('cannot make IDs of layout "%s" from sequence "%%s"', asked.name);
		IF served IS NOT NULL THEN
			detail := format('The sequence serves layout "%s".', served.name);
			hint := format('Name layout "%s" in the call, or use another sequence.', served.name);
		ELSIF other IS NOT NULL AND sequence <> 'next_id_seq'::regclass THEN
			detail := format('The sequence serves layout "%s".', other);
			hint := 'Use another sequence.';
		ELSE
			detail := format('The sequence has MAXVALUE %s, but a sequence for this layout has MAXVALUE %s.',
							 seq.maximum_value, asked.max_value);
		END IF;
	ELSIF seq.increment <> 1 THEN
		detail := format('The sequence has INCREMENT %s.', seq.increment);
	ELSIF seq.cache_size <> 1 THEN
		detail := format('The sequence has CACHE %s, and sessions that keep values back would return IDs out of order.', seq.cache_size);
	ELSIF seq.cycle_option THEN
		detail := 'The sequence has CYCLE and would repeat IDs.';
	ELSE
		PERFORM snowflake_check_shard(shard, asked);
		RETURN asked;
	END IF;
	IF hint IS NULL AND sequence = 'next_id_seq'::regclass AND served IS NULL THEN
		hint := format('Use ALTER SEQUENCE %s MAXVALUE %s.', qualified, (snowflake_parameters('instagram')).max_value);
	END IF;
	IF hint IS NULL THEN
		-- A column that owns the sequence needs its numbers.
		SELECT format('Use another sequence, as this one belongs to column "%s" of table "%s".', attname, relname)
		INTO hint
		FROM pg_depend JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid JOIN pg_class c ON c.oid = attrelid
		WHERE classid = 'pg_class'::regclass AND objid = sequence AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i');
		-- A sequence that serves no layout is not given one by name: the table may have IDs already.
		IF hint IS NOT NULL THEN
			NULL;
		ELSIF seq.maximum_value = asked.max_value THEN
			hint := format('If nothing else takes numbers from it, its owner can use SELECT snowflake_alter_sequence(%L, %L).',
						   qualified, asked.name);
		ELSE
			hint := format('%s nothing else takes numbers from it, its owner can call snowflake_alter_sequence(%L, ...) with the layout of the table''s IDs.',
						   CASE WHEN seq.maximum_value = 9223372036854775807 THEN 'If'
						   ELSE 'If it serves a custom layout, name that layout in this call, as its last argument. Otherwise, if' END, qualified);
		END IF;
	END IF;
	RAISE object_not_in_prerequisite_state USING
		MESSAGE = format(message, name),
		DETAIL = detail,
		HINT = hint;
END $$;

COMMENT ON FUNCTION snowflake_check(bigint, regclass, snowflake_parameters, text) IS
'for next_id(): the layout of a sequence; an error if the shard or the sequence cannot be used';

-- Why no value can follow the last one.
CREATE FUNCTION snowflake_refuse_value(sequence regclass, last bigint, clock bigint, layout snowflake_parameters)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	name text := (SELECT relname FROM pg_class WHERE oid = sequence);
BEGIN
	IF last NOT BETWEEN -1 AND layout.max_value THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('value %s of sequence "%s" is out of range for the layout', last, name),
			DETAIL = format('The values of the layout are 0 to %s.', layout.max_value),
			HINT = 'Use a new sequence with a new shard, or setval() this one to a value that is above all that were used.';
	END IF;
	IF clock < 0 THEN
		RAISE datetime_field_overflow USING
			MESSAGE = 'the clock is behind the epoch of the layout',
			DETAIL = format('The clock says %s; the epoch is %s.', clock_timestamp(), snowflake_tick_time(layout, 0)),
			HINT = 'Check the server''s clock and the layout''s epoch.';
	END IF;
	RAISE sequence_generator_limit_exceeded USING
		MESSAGE = 'the time of the layout is used up',
		DETAIL = format('Sequence "%s" is at %s and the clock says %s; the last value is %s.',
						name, last, clock_timestamp(), layout.max_value),
		HINT = CASE WHEN clock / 1000 >= layout.end_tick
					THEN 'Check the server''s clock. If it is right, use another layout with shards that no old ID has, or another primary key.'
					ELSE 'The sequence has reached its last value, although the clock has not reached the end of the layout. Use a new sequence with a new shard.' END;
END $$;

COMMENT ON FUNCTION snowflake_refuse_value(regclass, bigint, bigint, snowflake_parameters) IS
'for next_id(): the error that says why no value can follow the last one';

CREATE FUNCTION snowflake_refuse_lead(sequence regclass, lead bigint, now timestamptz, max_lead bigint, max_wait bigint)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	us constant interval := '1 microsecond';
BEGIN
	RAISE configuration_limit_exceeded USING
		MESSAGE = format('sequence "%s" is %s ahead of the clock',
						 (SELECT relname FROM pg_class WHERE oid = sequence), justify_hours(lead * us)),
		DETAIL = format('The next ID would have the time %s; the clock says %s. "snowflake.max_lead" allows %s, and "snowflake.max_wait" allows waiting for %s.',
						now + lead * us, now, justify_hours(max_lead * us), justify_hours(max_wait * us)),
		HINT = format('Correct the clock if it is wrong. If nextval(), setval() or snowflake_advance() moved the sequence ahead and no row has a future-dated ID, the owner can set it back with ALTER SEQUENCE ... RESTART, and then advance it to the largest ID with snowflake_advance(). Otherwise wait for the clock to catch up%s.',
					  CASE WHEN lead > 86400000000 THEN ', or use a new sequence with a new shard'
					  ELSE ', or raise "snowflake.max_lead" until it has' END);
END $$;

COMMENT ON FUNCTION snowflake_refuse_lead(regclass, bigint, timestamptz, bigint, bigint) IS
'for next_id(): the error that says that a sequence is too far ahead of the clock';

-- Take values of a sequence: "count" of them, but none beyond the millisecond of
-- the first.  Return the first one's ID; those of the others follow it by one.
-- The layout is "asked" or, if that is NULL, the one that the sequence serves.
--
-- The last value is read and the next one set under one lock.  A cancel at the
-- wrong moment would leave a lock of the session behind, and no exception handler
-- is safe from a second cancel.  All others would wait for a lock of the
-- transaction until it ends, and transactions with two sequences could deadlock.
-- So a subtransaction takes the lock and is always rolled back.  That releases
-- the lock, however the subtransaction ends, and brings no value of a sequence
-- back.
--
-- To try nextval() without the lock first would be quicker, but wrong.  While one
-- session is about to set the sequence to the clock's time, others may take values
-- beyond it, and it would be set back.
--
-- Every value is set, even where nextval() would do.  nextval() leaves most of
-- them out of the WAL, and after a crash could give them again.
CREATE FUNCTION snowflake_take(shard bigint, count bigint, sequence regclass, asked snowflake_parameters)
RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	parameters record;
	slot_bits integer;
	lock text;
	last bigint;
	clock bigint;				-- microseconds since the epoch of the layout
	value bigint;
	lead bigint;				-- likewise, as all that follow
	max_lead bigint;
	max_wait bigint;
	wait bigint;
	waited bigint := 0;
BEGIN
	IF shard IS NULL OR sequence IS NULL THEN
		PERFORM snowflake_check(shard, sequence, asked, 'UPDATE');
	END IF;

	LOOP
		wait := 0;
		BEGIN
			-- This locks the sequence until the end of the transaction, as
			-- nextval() does.  So nobody alters what is checked next, and who
			-- has the other lock waits for nothing.
			last := pg_sequence_last_value(sequence);
			parameters := pg_sequence_parameters(sequence);
			IF asked.max_value IS NULL THEN
				asked := snowflake_served_layout(parameters.maximum_value);
			END IF;
			IF parameters.maximum_value IS DISTINCT FROM asked.max_value OR parameters.increment <> 1 OR
				parameters.cache_size <> 1 OR parameters.cycle_option OR
				shard >> asked.shard_bits IS DISTINCT FROM 0 THEN
				PERFORM snowflake_check(shard, sequence, asked, 'UPDATE');
			END IF;
			slot_bits := asked.slot_bits;

			lock := pg_advisory_xact_lock(1936617335, sequence::oid::integer);

			-- There is no last value if there has been none.
			last := coalesce(pg_sequence_last_value(sequence), nextval(sequence) - 1);
			clock := date_part('epoch', clock_timestamp()) * 1000000 - asked.epoch * 1000;
			value := last + 1;
			IF value >> slot_bits < clock / 1000 THEN
				-- That the sequence is not logged is too dear to look for each time.
				IF (SELECT relpersistence FROM pg_class WHERE oid = sequence) <> 'p' THEN
					PERFORM snowflake_check(shard, sequence, asked, 'UPDATE');
				END IF;
				value := (clock / 1000 << slot_bits) | (value & ((1 << slot_bits) - 1));
			END IF;

			IF last < -1 OR value > asked.max_value OR clock < 0 THEN
				PERFORM snowflake_refuse_value(sequence, last, clock, asked);
			END IF;

			lead := (value >> slot_bits) * 1000 - clock;
			IF lead > 0 THEN
				max_lead := snowflake_time_setting('snowflake.max_lead', '1s');
				max_wait := snowflake_time_setting('snowflake.max_wait', '5s');
				wait := greatest(lead - max_lead, 0);
				-- To wait for the next millisecond, because others have taken
				-- all of this one's, is no error.
				IF wait > 1000 AND waited + wait > max_wait THEN
					PERFORM snowflake_refuse_lead(sequence, lead, snowflake_tick_time(asked, 0) + clock * interval '1 us',
												  max_lead, max_wait);
				END IF;
			END IF;

			IF wait = 0 THEN
				last := setval(sequence, least(value + greatest(count, 1) - 1, value | ((1 << slot_bits) - 1)));
			END IF;
			RAISE SQLSTATE 'SF000';
		EXCEPTION
			WHEN SQLSTATE 'SF000' THEN
				NULL;
			WHEN read_only_sql_transaction THEN
				RAISE read_only_sql_transaction USING
					MESSAGE = 'cannot execute next_id() in a read-only transaction';
			WHEN internal_error OR wrong_object_type OR insufficient_privilege THEN
				-- If these functions have been dropped with the sequence, a function
				-- of a type of theirs would fail with an internal error.
				PERFORM snowflake_check_relation(sequence);
				PERFORM snowflake_check(shard, sequence, asked, 'UPDATE');
				RAISE;
		END;

		IF wait = 0 THEN
			RETURN (value >> slot_bits << asked.id_bits) | (shard << slot_bits) | (value & ((1 << slot_bits) - 1));
		END IF;
		-- A clock that is set forward ends the wait.
		wait := least(wait, 100000);
		PERFORM pg_sleep(wait / 1000000.0);
		waited := waited + wait;
	END LOOP;
END $$;

COMMENT ON FUNCTION snowflake_take(bigint, bigint, regclass, snowflake_parameters) IS
'for next_id() and next_ids(): take values of a sequence, and return the ID of the first';

CREATE FUNCTION next_id()
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN snowflake_take(snowflake_shard_setting(), 1, 'next_id_seq', snowflake_parameters('instagram'));

COMMENT ON FUNCTION next_id() IS
'next ID for the shard in the setting snowflake.shard';

CREATE FUNCTION next_id(shard bigint)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN snowflake_take(shard, 1, 'next_id_seq', snowflake_parameters('instagram'));

COMMENT ON FUNCTION next_id(bigint) IS
'next ID for a shard, unique and larger than all earlier ones of this shard';

CREATE FUNCTION next_id(shard bigint, sequence regclass)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN snowflake_take(shard, 1, sequence, NULL);

COMMENT ON FUNCTION next_id(bigint, regclass) IS
'next ID for a shard from a sequence, in the layout that the sequence serves';

CREATE FUNCTION next_id(shard bigint, sequence regclass, layout snowflake_layout)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN snowflake_take(shard, 1, sequence, snowflake_named_layout(layout));

COMMENT ON FUNCTION next_id(bigint, regclass, snowflake_layout) IS
'next ID for a shard from a sequence, in a given layout';

CREATE FUNCTION snowflake_take_many(shard bigint, count bigint, sequence regclass, asked snowflake_parameters)
RETURNS TABLE (first_id bigint, last_id bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	layout snowflake_parameters;
BEGIN
	IF count IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'count must not be null';
	END IF;
	IF count < 1 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('count %s is out of range', count),
			HINT = 'Ask for one ID or more.';
	END IF;

	layout := snowflake_check(shard, sequence, asked, 'UPDATE');
	WHILE count > 0 LOOP
		first_id := snowflake_take(shard, count, sequence, layout);
		last_id := least(first_id + count - 1, first_id | ((1 << layout.slot_bits) - 1));
		count := count - (last_id - first_id + 1);
		RETURN NEXT;
	END LOOP;
END $$;

COMMENT ON FUNCTION snowflake_take_many(bigint, bigint, regclass, snowflake_parameters) IS
'for next_ids(): take values of a sequence, and return the first and the last ID of each millisecond';

CREATE FUNCTION next_ids(shard bigint, count bigint)
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path FROM CURRENT
AS $$
BEGIN
	RETURN QUERY SELECT id FROM snowflake_take_many(shard, count, 'next_id_seq', snowflake_parameters('instagram')), generate_series(first_id, last_id) id;
END $$;

COMMENT ON FUNCTION next_ids(bigint, bigint) IS
'next IDs for a shard, in order; quicker than as many calls of next_id()';

CREATE FUNCTION next_ids(shard bigint, count bigint, sequence regclass)
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path FROM CURRENT
AS $$
BEGIN
	RETURN QUERY SELECT id FROM snowflake_take_many(shard, count, sequence, NULL), generate_series(first_id, last_id) id;
END $$;

COMMENT ON FUNCTION next_ids(bigint, bigint, regclass) IS
'next IDs for a shard from a sequence, in the layout that the sequence serves';

CREATE FUNCTION next_ids(shard bigint, count bigint, sequence regclass, layout snowflake_layout)
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path FROM CURRENT
AS $$
BEGIN
	RETURN QUERY SELECT id FROM snowflake_take_many(shard, count, sequence, snowflake_named_layout(layout)), generate_series(first_id, last_id) id;
END $$;

COMMENT ON FUNCTION next_ids(bigint, bigint, regclass, snowflake_layout) IS
'next IDs for a shard from a sequence, in a given layout';

CREATE FUNCTION snowflake_id(ts timestamptz, shard bigint, sequence_number bigint, layout snowflake_layout)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	p constant snowflake_parameters := snowflake_parameters(layout);
	last_slot constant integer := (1 << p.slot_bits) - 1;
	epoch constant timestamptz := snowflake_tick_time(p, 0);
	expires constant timestamptz := snowflake_tick_time(p, p.end_tick);
	id bigint;
BEGIN
	IF ts < epoch OR ts >= expires THEN
		RAISE datetime_field_overflow USING
			MESSAGE = format('timestamp %s is out of range', ts),
			DETAIL = format('The layout "%s" begins at %s and ends before %s.', p.name, epoch, expires);
	END IF;
	PERFORM snowflake_check_shard(shard, p);
	IF sequence_number NOT BETWEEN 0 AND last_slot THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('sequence number %s is out of range', sequence_number),
			DETAIL = format('The sequence numbers of the layout "%s" are 0 to %s.', p.name, last_slot),
			HINT = format('Number the rows of each tick of 1 ms from 0 to %s. If there are more, give the rest a later time or another shard.', last_slot);
	END IF;

	id := floor(extract(epoch FROM ts - epoch) * 1000);
	id := (id << p.id_bits) | (shard << p.slot_bits) | sequence_number;
	IF id = 0 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = 'cannot compose the ID 0',
			DETAIL = 'IDs are positive.';
	END IF;
	RETURN id;
END $$;

COMMENT ON FUNCTION snowflake_id(timestamptz, bigint, bigint, snowflake_layout) IS
'compose an ID from a time, a shard and a sequence number, as for rows of earlier times, in a given layout';

CREATE FUNCTION snowflake_id(ts timestamptz, shard bigint, sequence_number bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN snowflake_id(ts, shard, sequence_number, 'instagram');

COMMENT ON FUNCTION snowflake_id(timestamptz, bigint, bigint) IS
'compose an ID from a time, a shard and a sequence number, as for rows of earlier times';

--
-- Taking IDs apart
--
-- Written so that the planner puts the expressions in the place of the calls,
-- with numbers in the place of the layout's parameters if the layout is a
-- constant.  That needs every part of them to be strict and immutable.
--
-- The bits above a timestamp count as part of it.
--

CREATE FUNCTION snowflake_timestamp(id bigint, layout snowflake_layout)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN snowflake_tick_time(snowflake_parameters(layout),
	(id >> (snowflake_parameters(layout)).id_bits) & ((1::bigint << 64 - (snowflake_parameters(layout)).id_bits) - 1));

COMMENT ON FUNCTION snowflake_timestamp(bigint, snowflake_layout) IS
'time at which an ID was made, in a given layout';

CREATE FUNCTION snowflake_timestamp(id bigint)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN snowflake_timestamp(id, 'instagram');

COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
'time at which an ID was made';

CREATE FUNCTION snowflake_shard(id bigint, layout snowflake_layout)
RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ((id >> (snowflake_parameters(layout)).slot_bits) & ((1 << (snowflake_parameters(layout)).shard_bits) - 1))::integer;

COMMENT ON FUNCTION snowflake_shard(bigint, snowflake_layout) IS
'shard for which an ID was made, in a given layout';

CREATE FUNCTION snowflake_shard(id bigint)
RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN snowflake_shard(id, 'instagram');

COMMENT ON FUNCTION snowflake_shard(bigint) IS
'shard for which an ID was made';

CREATE FUNCTION snowflake_sequence_number(id bigint, layout snowflake_layout)
RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (id & ((1 << (snowflake_parameters(layout)).slot_bits) - 1))::integer;

COMMENT ON FUNCTION snowflake_sequence_number(bigint, snowflake_layout) IS
'sequence number of an ID within its time, in a given layout';

CREATE FUNCTION snowflake_sequence_number(id bigint)
RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN snowflake_sequence_number(id, 'instagram');

COMMENT ON FUNCTION snowflake_sequence_number(bigint) IS
'sequence number of an ID within its time';

CREATE FUNCTION snowflake_fields(id bigint, layout snowflake_layout)
RETURNS TABLE (field text, value bigint)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 3
BEGIN ATOMIC
	VALUES ('timestamp', (id >> (snowflake_parameters(layout)).id_bits) & ((1::bigint << 64 - (snowflake_parameters(layout)).id_bits) - 1)),
		   ('shard', snowflake_shard(id, layout)),
		   ('sequence', snowflake_sequence_number(id, layout));
END;

COMMENT ON FUNCTION snowflake_fields(bigint, snowflake_layout) IS
'fields of an ID as numbers, most significant first, in a given layout';

CREATE FUNCTION snowflake_fields(id bigint)
RETURNS TABLE (field text, value bigint)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 3
BEGIN ATOMIC
	SELECT * FROM snowflake_fields(id, 'instagram');
END;

COMMENT ON FUNCTION snowflake_fields(bigint) IS
'fields of an ID as numbers, most significant first';

--
-- Ranges of time
--
-- 0 is below every ID, and the first one of the last millisecond, which is never
-- issued, is above.
--

CREATE FUNCTION snowflake_min_id(ts timestamptz, layout snowflake_layout)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	p constant snowflake_parameters := snowflake_parameters(layout);
	epoch constant timestamptz := snowflake_tick_time(p, 0);
BEGIN
	RETURN CASE WHEN ts <= epoch THEN 0
				WHEN ts > snowflake_tick_time(p, p.end_tick - 1) THEN p.end_tick
				ELSE ceil(extract(epoch FROM ts - epoch) * 1000)::bigint END << p.id_bits;
END $$;

COMMENT ON FUNCTION snowflake_min_id(timestamptz, snowflake_layout) IS
'smallest ID of a time: id >= snowflake_min_id(t) selects the IDs made at t or later; in a given layout';

CREATE FUNCTION snowflake_min_id(ts timestamptz)
RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN snowflake_min_id(ts, 'instagram');

COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
'smallest ID of a time: id >= snowflake_min_id(t) selects the IDs made at t or later';

CREATE FUNCTION snowflake_max_id(ts timestamptz, layout snowflake_layout)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	p constant snowflake_parameters := snowflake_parameters(layout);
	epoch constant timestamptz := snowflake_tick_time(p, 0);
BEGIN
	RETURN (CASE WHEN ts < epoch THEN 0
				 WHEN ts >= snowflake_tick_time(p, p.end_tick - 1) THEN p.end_tick
				 ELSE floor(extract(epoch FROM ts - epoch) * 1000 + 1)::bigint END << p.id_bits) - 1;
END $$;

COMMENT ON FUNCTION snowflake_max_id(timestamptz, snowflake_layout) IS
'largest ID of a time: id <= snowflake_max_id(t) selects the IDs made at t or earlier; in a given layout';

CREATE FUNCTION snowflake_max_id(ts timestamptz)
RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN snowflake_max_id(ts, 'instagram');

COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
'largest ID of a time: id <= snowflake_max_id(t) selects the IDs made at t or earlier';

--
-- Watching a sequence
--

-- Errors become states, and a sequence that has been dropped has none.  It waits
-- only briefly for a session that alters the sequence.
CREATE FUNCTION snowflake_sequence_state(
	sequence regclass,
	asked snowflake_parameters,
	OUT layout text,
	OUT last_timestamp timestamptz,
	OUT lead interval,
	OUT expires timestamptz,
	OUT state text)
RETURNS record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path FROM CURRENT
SET lock_timeout = '100ms'
AS $$
DECLARE
	p snowflake_parameters := coalesce(asked, snowflake_served_layout(
		(SELECT seqmax FROM pg_sequence WHERE seqrelid = sequence)));
	last bigint;
	wait bigint;				-- microseconds
BEGIN
	BEGIN
		p := snowflake_check(0, sequence, asked, 'SELECT, USAGE');
		last := pg_sequence_last_value(sequence);
		IF last >= 0 THEN
			last_timestamp := snowflake_tick_time(p, last >> p.slot_bits);
			lead := greatest(last_timestamp - clock_timestamp(), '0');
		END IF;
		wait := extract(epoch FROM lead) * 1000000 - snowflake_time_setting('snowflake.max_lead', '1s');
		state := CASE WHEN last NOT BETWEEN 0 AND p.max_value - 1 THEN 'refuses'
					  WHEN (lead > '0') IS NOT TRUE THEN 'ok'
					  WHEN wait <= 0 THEN 'ahead'
					  WHEN wait <= greatest(snowflake_time_setting('snowflake.max_wait', '5s'), 1000) THEN 'waits'
					  ELSE 'refuses' END;
	EXCEPTION
		WHEN insufficient_privilege THEN state := 'no privilege';
		WHEN lock_not_available THEN state := 'waits';
		WHEN undefined_table THEN RETURN;
		WHEN OTHERS THEN state := 'refuses';
	END;
	layout := p.name;
	expires := snowflake_tick_time(p, p.end_tick);
END $$;

COMMENT ON FUNCTION snowflake_sequence_state(regclass, snowflake_parameters) IS
'for snowflake_sequences(): state of a sequence in a layout or, if that is null, in the one that the sequence serves';

CREATE FUNCTION snowflake_sequences(
	sequence regclass,
	OUT sequence regclass,
	OUT layout text,
	OUT last_timestamp timestamptz,
	OUT lead interval,
	OUT expires timestamptz,
	OUT state text)
RETURNS SETOF record
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE ROWS 1
BEGIN ATOMIC
	SELECT sequence, s.* FROM snowflake_sequence_state(sequence, NULL) s WHERE s.state IS NOT NULL;
END;

COMMENT ON FUNCTION snowflake_sequences(regclass) IS
'layout of a sequence, last ID''s time, its lead over the clock, the layout''s end, and ok, ahead, waits, refuses or no privilege';

CREATE FUNCTION snowflake_sequences(
	sequence regclass,
	layout snowflake_layout,
	OUT sequence regclass,
	OUT layout text,
	OUT last_timestamp timestamptz,
	OUT lead interval,
	OUT expires timestamptz,
	OUT state text)
RETURNS SETOF record
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE ROWS 1
BEGIN ATOMIC
	SELECT sequence, s.* FROM snowflake_sequence_state(sequence, snowflake_parameters(layout)) s WHERE s.state IS NOT NULL;
END;

COMMENT ON FUNCTION snowflake_sequences(regclass, snowflake_layout) IS
'last ID''s time of a sequence, its lead over the clock, the layout''s end, and ok, ahead, waits, refuses or no privilege, in a given layout';

CREATE FUNCTION snowflake_sequences(
	OUT sequence regclass,
	OUT layout text,
	OUT last_timestamp timestamptz,
	OUT lead interval,
	OUT expires timestamptz,
	OUT state text)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 10
BEGIN ATOMIC
	SELECT found.*
	FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid, snowflake_sequences(seqrelid::regclass) found
	WHERE relpersistence <> 't' AND seqmax IN (SELECT max_value FROM snowflake_layouts());
END;

COMMENT ON FUNCTION snowflake_sequences() IS
'sequences that make IDs, by their MAXVALUE: layout, last ID''s time, its lead over the clock, the layout''s end, and ok, ahead, waits, refuses or no privilege';

--
-- Making a sequence serve
--

CREATE FUNCTION snowflake_alter_sequence(sequence regclass, layout snowflake_layout DEFAULT 'instagram')
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	p constant snowflake_parameters := snowflake_named_layout(layout);
	name text := (SELECT relname FROM pg_class WHERE oid = sequence);
	owner record;
	max_value bigint;
	last bigint;
	called boolean;
	detail text;
	row tid;					-- where in pg_sequence the sequence's row is
	locked_row tid;
BEGIN
	PERFORM snowflake_check(0, sequence, p, 'owner');

	SELECT nspname, relname, attname INTO owner
	FROM pg_depend JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
		 JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace
	WHERE classid = 'pg_class'::regclass AND objid = sequence AND refclassid = 'pg_class'::regclass AND deptype = 'i';
	IF FOUND THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot make IDs from sequence "%s"', name),
			DETAIL = format('The sequence belongs to identity column "%s" of table "%s".', owner.attname, owner.relname),
			HINT = format('Use ALTER TABLE %I.%I ALTER COLUMN %I DROP IDENTITY, which drops the sequence as well, then set a default of next_id() with another sequence.',
						  owner.nspname, owner.relname, owner.attname);
	END IF;

	IF sequence = 'next_id_seq'::regclass AND p.name <> 'instagram' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot make sequence "%s" serve layout "%s"', name, p.name),
			DETAIL = 'The sequence of calls that name none serves layout "instagram" only.',
			HINT = 'Use a new sequence.';
	END IF;

	-- This locks the sequence, so that nobody takes a value after it is read.
	row := (SELECT ctid FROM pg_sequence WHERE seqrelid = sequence);
	EXECUTE format('ALTER SEQUENCE %s OWNED BY NONE', sequence);
	locked_row := (SELECT ctid FROM pg_sequence WHERE seqrelid = sequence);
	EXECUTE format('SELECT maximum_value, last_value, is_called FROM %s, pg_sequence_parameters(%s)', sequence, sequence::oid)
	INTO max_value, last, called;

	-- If the sequence has served another layout, its value is no time of this one.
	-- No counter of rows reaches 2^40.
	detail := CASE
		WHEN max_value = p.max_value THEN NULL
		WHEN called AND last >= 1099511627776 THEN
			format('Its last value %s is too large for a counter of rows, so the sequence may have been used for another layout.', last)
		WHEN last NOT BETWEEN 0 AND p.max_value THEN
			format('Its last value is %s, and the values of the layout are 0 to %s.', last, p.max_value) END;
	IF detail IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot make sequence "%s" serve layout "%s"', name, p.name),
			DETAIL = detail,
			HINT = 'Use a new sequence, with a new shard if the table has IDs already.' ||
				CASE WHEN called AND last >= 1099511627776
				THEN format(' But if this sequence made IDs of layout "%s" until something changed its MAXVALUE, use ALTER SEQUENCE %s MAXVALUE %s.',
							p.name, (SELECT format('%I.%I', nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = sequence), p.max_value)
				ELSE '' END;
	END IF;

	EXECUTE format('ALTER SEQUENCE %s AS bigint INCREMENT 1 MAXVALUE %s CACHE 1 NO CYCLE', sequence, p.max_value);

	-- Each command names the sequence and writes a new row.  If its schema has
	-- been renamed, the name may have become that of another sequence.
	IF locked_row IN (row, (SELECT ctid FROM pg_sequence WHERE seqrelid = sequence)) THEN
		RAISE serialization_failure USING
			MESSAGE = format('could not alter sequence "%s" because of a concurrent change', name),
			DETAIL = 'Its schema was renamed, and its name became that of another sequence.',
			HINT = 'Call snowflake_alter_sequence() again.';
	END IF;
END $$;

COMMENT ON FUNCTION snowflake_alter_sequence(regclass, snowflake_layout) IS
'make an existing sequence serve a layout: set its type, MAXVALUE and other parameters, and detach it from its column';

--
-- Making a sequence skip values
--

-- Set a sequence to the last value of an ID's tick, so that later IDs have later
-- ticks, and are larger whatever their shard.  The last value is read and the new
-- one set under the lock of snowflake_take(), in a subtransaction for the reasons
-- told there.  Without the lock, another session could take a value beyond the
-- new one in between, and the sequence would be set back.
CREATE FUNCTION snowflake_move_beyond(sequence regclass, id bigint, asked snowflake_parameters)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	layout snowflake_parameters;
	id_time timestamptz;
	now timestamptz;
	lead interval;				-- of the next ID
	max_lead interval;
	lock text;
	last bigint;
BEGIN
	IF sequence IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'sequence must not be null';
	END IF;
	IF id IS NULL THEN
		RAISE null_value_not_allowed USING
			MESSAGE = 'id must not be null',
			HINT = 'If it is the largest ID of a table without rows, there is nothing to do.';
	END IF;

	BEGIN
		last := pg_sequence_last_value(sequence);
		layout := snowflake_check(0, sequence, asked, 'UPDATE');
		IF id < 1 THEN
			RAISE invalid_parameter_value USING
				MESSAGE = format('ID %s is not positive', id),
				DETAIL = 'Valid IDs are 1 to 9223372036854775807.';
		END IF;
		IF id >> layout.id_bits >= layout.end_tick THEN
			RAISE invalid_parameter_value USING
				MESSAGE = format('ID %s is too large for layout "%s"', id, layout.name),
				HINT = 'Use the sequence that serves the layout of this ID.';
		END IF;
		id_time := snowflake_tick_time(layout, id >> layout.id_bits);
		now := clock_timestamp();
		IF id_time - now > interval '24 hours' THEN
			RAISE invalid_parameter_value USING
				MESSAGE = format('ID %s is more than a day ahead of the clock', id),
				DETAIL = format('In layout "%s" its time is %s; the clock says %s.', layout.name, id_time, now),
				HINT = 'Check the clock, and that it is an ID of this layout. If it was made while a clock was fast, use a new sequence with a new shard.';
		END IF;

		lock := pg_advisory_xact_lock(1936617335, sequence::oid::integer);

		-- There is no last value if there has been none.
		last := coalesce(pg_sequence_last_value(sequence), nextval(sequence));
		IF last < -1 THEN
			PERFORM snowflake_refuse_value(sequence, last, 0, layout);
		END IF;
		-- Another session may have set the last value a moment ago, and a crash
		-- would take it back.  To set it again has it logged for this session.
		last := setval(sequence, greatest(last, ((id >> layout.id_bits) + 1 << layout.slot_bits) - 1));
		RAISE SQLSTATE 'SF000';
	EXCEPTION
		WHEN SQLSTATE 'SF000' THEN
			NULL;
		WHEN read_only_sql_transaction THEN
			RAISE read_only_sql_transaction USING
				MESSAGE = 'cannot execute snowflake_advance() in a read-only transaction';
		WHEN internal_error OR wrong_object_type OR insufficient_privilege THEN
			PERFORM snowflake_check(0, sequence, asked, 'UPDATE');
			RAISE;
	END;

	lead := snowflake_tick_time(layout, last + 1 >> layout.slot_bits) - now;
	max_lead := snowflake_time_setting('snowflake.max_lead', '1s') * interval '1 us';
	IF lead > max_lead THEN
		RAISE WARNING USING
			MESSAGE = format('sequence "%s" is %s ahead of the clock', (SELECT relname FROM pg_class WHERE oid = sequence), lead),
			DETAIL = format('Calls of next_id() wait until %s, or fail if that is longer than "snowflake.max_wait" allows.',
							now + lead - max_lead);
	END IF;
END $$;

COMMENT ON FUNCTION snowflake_move_beyond(regclass, bigint, snowflake_parameters) IS
'for snowflake_advance(): set a sequence to the last value of an ID''s time';

CREATE FUNCTION snowflake_advance(sequence regclass, id bigint)
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN snowflake_move_beyond(sequence, id, NULL);

COMMENT ON FUNCTION snowflake_advance(regclass, bigint) IS
'let every later ID of a sequence be larger than an ID, in the layout that the sequence serves';

CREATE FUNCTION snowflake_advance(sequence regclass, id bigint, layout snowflake_layout)
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN snowflake_move_beyond(sequence, id, snowflake_named_layout(layout));

COMMENT ON FUNCTION snowflake_advance(regclass, bigint, snowflake_layout) IS
'let every later ID of a sequence be larger than an ID, in a given layout';

--
-- IDs as text
--
-- Links and other systems' databases keep these texts, so they are the
-- extension's for ever.
--

CREATE FUNCTION snowflake_encoding_digits(encoding text)
RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	CASE encoding COLLATE "C"
		WHEN 'base62' THEN
			RETURN '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
		WHEN 'base32' THEN
			RETURN '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
		WHEN 'base64url' THEN
			RETURN 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
		ELSE
			RAISE invalid_parameter_value USING
				MESSAGE = format('unrecognized encoding: "%s"', encoding),
				HINT = 'The encodings are base62, base32 and base64url.';
	END CASE;
END $$;

COMMENT ON FUNCTION snowflake_encoding_digits(text) IS
'for snowflake_to_text(): the digits of an encoding, or an error if there is none of this name';

CREATE FUNCTION snowflake_to_text(id bigint, encoding text DEFAULT 'base62')
RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	digits constant text := snowflake_encoding_digits(encoding);
	base constant integer := length(digits);
	encoded text := '';
	rest bigint := id;
BEGIN
	IF id < 0 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('ID %s has no text form', id),
			DETAIL = 'Numbers with a text form are 0 to 9223372036854775807.';
	END IF;

	LOOP
		encoded := substr(digits, (rest % base)::integer + 1, 1) || encoded;
		rest := rest / base;
		EXIT WHEN rest = 0;
	END LOOP;
	-- Base64url is as short as it can be.
	RETURN CASE base WHEN 62 THEN lpad(encoded, 11, '0') WHEN 32 THEN lpad(encoded, 13, '0') ELSE encoded END;
END $$;

COMMENT ON FUNCTION snowflake_to_text(bigint, text) IS
'ID as text: base62, base32 or base64url';

-- Reads what snowflake_to_text() could have written and nothing else, or one
-- thing would have two links.  (Base32's lower case and look-alikes are the
-- exception, for the sake of those who type it.)
CREATE FUNCTION snowflake_from_text(encoded text, encoding text DEFAULT 'base62')
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	digits constant text := snowflake_encoding_digits(encoding);
	base constant integer := length(digits);
	largest constant text := snowflake_to_text(9223372036854775807, encoding);
	width constant integer := length(largest);
	shortest constant integer := CASE base WHEN 64 THEN 1 ELSE width END;
	meant constant text := CASE base WHEN 32 THEN translate(upper(encoded COLLATE "C"), 'ILO', '110') ELSE encoded END;
	digit integer;
	largest_digit integer;
	as_largest boolean := octet_length(encoded) >= width;
	id bigint := 0;
	-- of the first wrong character, or of the end
	place integer := 1;
	message text;
BEGIN
	WHILE place <= least(length(meant), width) LOOP
		digit := strpos(digits, substr(meant, place, 1) COLLATE "C") - 1;
		largest_digit := strpos(digits, substr(largest, place, 1) COLLATE "C") - 1;
		-- As long as the digits are those of the largest ID, a larger digit
		-- makes a number that is no ID.
		EXIT WHEN digit < 0 OR as_largest AND digit > largest_digit
			OR base = 64 AND place = 1 AND digit = 0 AND length(meant) > 1;
		as_largest := as_largest AND digit = largest_digit;
		id := id * base + digit;
		place := place + 1;
	END LOOP;

	IF place <= length(meant) OR place <= shortest THEN
		message := format('invalid %s ID "%s" at position %s', encoding, encoded, place);
		IF length(encoded) > width AND length(ltrim(encoded, '0123456789')) = 0 THEN
			RAISE invalid_text_representation USING
				MESSAGE = message,
				HINT = 'If these are the ID''s decimal digits, cast the string to bigint.';
		END IF;
		RAISE invalid_text_representation USING MESSAGE = message;
	END IF;
	RETURN id;
END $$;

COMMENT ON FUNCTION snowflake_from_text(text, text) IS
'ID from its text: base62, base32 or base64url';

--
-- IDs that JSON cannot round
--
-- The extension has a type of this name.  A domain cannot do as much: to_json()
-- and the like show a number.  But PostgREST looks for an implicit cast of a
-- column's domain to json, and calls its function for each row that it returns.
-- Requests need no cast, as a domain's own input reads digits from a string and
-- from a number.
--

CREATE DOMAIN snowflake AS bigint;

COMMENT ON DOMAIN snowflake IS
'bigint that PostgREST shows as a string of digits, so that JavaScript does not round it';

CREATE FUNCTION snowflake_to_json(id snowflake)
RETURNS json
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_json(id::text);

COMMENT ON FUNCTION snowflake_to_json(snowflake) IS
'ID as a string of digits in JSON';

-- PostgreSQL warns that it will itself ignore the cast of a domain.
DO $$
DECLARE
	min_messages constant text := current_setting('client_min_messages');
BEGIN
	PERFORM set_config('client_min_messages', 'error', true);
	CREATE CAST (snowflake AS json) WITH FUNCTION snowflake_to_json(snowflake) AS IMPLICIT;
	PERFORM set_config('client_min_messages', min_messages, true);
END $$;

COMMENT ON CAST (snowflake AS json) IS
'for PostgREST, which calls the function of such a cast';
