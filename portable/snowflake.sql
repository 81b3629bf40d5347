--
-- portable/snowflake.sql
--	  Instagram's IDs for databases in which no extension in C can be installed:
--	  the same functions, the same bits and the same sequences as those of the
--	  extension, slower and with fewer promises.  See doc/portable.md.
--
-- To be run once, by the owner of the database or of a schema, as a whole:
--
--		psql -X -1 -f portable/snowflake.sql
--
-- Everything goes into the first schema of the search path.  If anything is
-- wrong, nothing is installed.  It does not run a second time: nor does that
-- change anything.
--
-- A sequence's value is a time and a slot, tick * 1024 + slot, as for the
-- extension.  This file knows no other layout.
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
'time and slot of the last ID made by next_id() without a sequence of its own';

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
			HINT = 'Set it for this server or database with ALTER SYSTEM or ALTER DATABASE, or give the shard as an argument: next_id(5).';
	END IF;
	RETURN shard;
END $$;

COMMENT ON FUNCTION snowflake_shard_setting() IS
'for next_id(): the shard in the setting snowflake.shard';

-- What is wrong with the arguments, or with the sequence, if anything is.
CREATE FUNCTION snowflake_check(shard bigint, sequence regclass)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	seq record;
	detail text;
	change text;
BEGIN
	IF shard IS NULL OR sequence IS NULL THEN
		RAISE null_value_not_allowed USING
			MESSAGE = CASE WHEN shard IS NULL THEN 'shard' ELSE 'sequence' END || ' must not be null';
	END IF;
	IF shard NOT BETWEEN 0 AND 8191 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('shard %s is out of range', shard),
			DETAIL = 'The shards of the layout "instagram" are 0 to 8191.',
			HINT = 'To spread rows over all shards, use a key modulo 8192.';
	END IF;

	SELECT * INTO seq
	FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace LEFT JOIN pg_sequence s ON seqrelid = c.oid
	WHERE c.oid = sequence;
	-- An old snapshot does not show a new sequence; this function does.
	IF NOT FOUND AND pg_relation_filenode(sequence) IS NULL THEN
		RAISE undefined_table USING
			MESSAGE = format('sequence with OID %s does not exist', sequence::oid);
	END IF;
	IF seq.relkind <> 'S' THEN
		RAISE wrong_object_type USING
			MESSAGE = format('"%s" is not a sequence', seq.relname);
	END IF;
	IF seq.relpersistence = 't' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot make IDs from sequence "%s"', seq.relname),
			DETAIL = 'The sequence is temporary.',
			HINT = 'Use a sequence that all sessions share and that outlives them.';
	END IF;

	IF seq.relpersistence = 'u' THEN
		detail := 'The sequence is unlogged and would repeat IDs after a crash.';
		change := 'SET LOGGED';
	ELSIF seq.seqtypid <> 'bigint'::regtype THEN
		detail := format('The sequence is of type %s, which is too small.', seq.seqtypid::regtype);
		change := 'AS bigint';
	ELSIF seq.seqincrement <> 1 THEN
		detail := format('The sequence has INCREMENT %s.', seq.seqincrement);
		change := 'INCREMENT 1';
	ELSIF seq.seqcache <> 1 THEN
		detail := format('The sequence has CACHE %s, and sessions that keep values back would return IDs out of order.', seq.seqcache);
		change := 'CACHE 1';
	ELSIF seq.seqcycle THEN
		detail := 'The sequence has CYCLE and would repeat IDs.';
		change := 'NO CYCLE';
	ELSIF seq.seqmax NOT IN (1125899906841599, 9223372036854775807) THEN
		detail := format('The sequence has MAXVALUE %s, but the last value of the layout is 1125899906841599.', seq.seqmax);
		change := 'MAXVALUE 1125899906841599';
	ELSE
		RETURN;
	END IF;
	RAISE object_not_in_prerequisite_state USING
		MESSAGE = format('cannot make IDs from sequence "%s"', seq.relname),
		DETAIL = detail,
		HINT = format('Use ALTER SEQUENCE %I.%I %s.', seq.nspname, seq.relname, change);
END $$;

COMMENT ON FUNCTION snowflake_check(bigint, regclass) IS
'for next_id(): an error if the shard or the sequence cannot be used';

-- Why no value can follow the last one.
CREATE FUNCTION snowflake_refuse_value(sequence regclass, last bigint, clock bigint)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	name text := (SELECT relname FROM pg_class WHERE oid = sequence);
BEGIN
	IF last NOT BETWEEN -1 AND 1125899906841599 THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('value %s of sequence "%s" is impossible for the layout', last, name),
			DETAIL = 'The values of the layout are 0 to 1125899906841599.',
			HINT = 'Use another sequence, or setval() this one to a value that is above all that were used.';
	END IF;
	IF clock < 0 THEN
		RAISE datetime_field_overflow USING
			MESSAGE = 'the clock is behind the epoch of the layout',
			DETAIL = format('The clock says %s; the epoch is %s.',
							clock_timestamp(), '2011-08-24 21:07:01.721+00'::timestamptz),
			HINT = 'Set the server''s clock.';
	END IF;
	RAISE sequence_generator_limit_exceeded USING
		MESSAGE = 'the time of the layout is used up',
		DETAIL = format('Sequence "%s" is at %s and the clock says %s; the last value is 1125899906841599.',
						name, last, clock_timestamp()),
		HINT = CASE WHEN clock / 1000 > 1099511627774
					THEN 'Use a layout with a later epoch, or check the server''s clock.'
					ELSE 'It is the sequence that is at its end, not the clock. Use a new sequence with a new shard.' END;
END $$;

COMMENT ON FUNCTION snowflake_refuse_value(regclass, bigint, bigint) IS
'for next_id(): the error that says why no value can follow the last one';

CREATE FUNCTION snowflake_refuse_lead(sequence regclass, lead bigint, clock bigint, max_lead bigint, max_wait bigint)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	us constant interval := '1 microsecond';
	now constant timestamptz := '2011-08-24 21:07:01.721+00'::timestamptz + clock * us;
BEGIN
	RAISE configuration_limit_exceeded USING
		MESSAGE = format('sequence "%s" is %s ahead of the clock',
						 (SELECT relname FROM pg_class WHERE oid = sequence), justify_hours(lead * us)),
		DETAIL = format('The next ID would have the time %s; the clock says %s. "snowflake.max_lead" allows %s, and "snowflake.max_wait" allows waiting for %s.',
						now + lead * us, now, justify_hours(max_lead * us), justify_hours(max_wait * us)),
		HINT = 'If the clock is wrong, set it right. If it was, and the sequence was used meanwhile, wait, raise "snowflake.max_lead", or use a new sequence with a new shard.';
END $$;

COMMENT ON FUNCTION snowflake_refuse_lead(regclass, bigint, bigint, bigint, bigint) IS
'for next_id(): the error that says that a sequence is too far ahead of the clock';

-- Take values of a sequence: "count" of them, but none beyond the millisecond of
-- the first.  Return the first one's ID; those of the others follow it by one.
--
-- The last value is read and the next one set under one lock.  A lock of the
-- session would be left behind by a cancel at the wrong moment, and one of the
-- transaction would make all others wait for its end.  So it is held by a
-- subtransaction, which is always rolled back: that releases the lock, whatever
-- happens, and brings no value of a sequence back.
--
-- Every value is set, even where nextval() would do.  nextval() leaves most of
-- them out of the WAL, and after a crash could give them again.
CREATE FUNCTION snowflake_take(shard bigint, count integer, sequence regclass)
RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	parameters record;
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
	IF (shard BETWEEN 0 AND 8191) IS NOT TRUE OR sequence IS NULL THEN
		PERFORM snowflake_check(shard, sequence);
	END IF;

	LOOP
		wait := 0;
		BEGIN
			-- This locks the sequence until the end of the transaction, as
			-- nextval() does.  So nobody alters what is checked next, and who
			-- has the other lock waits for nothing.
			last := pg_sequence_last_value(sequence);
			parameters := pg_sequence_parameters(sequence);
			IF parameters.data_type <> 20 OR parameters.increment <> 1 OR
				parameters.cache_size <> 1 OR parameters.cycle_option OR
				parameters.maximum_value NOT IN (1125899906841599, 9223372036854775807) THEN
				PERFORM snowflake_check(shard, sequence);
			END IF;

			lock := pg_advisory_xact_lock(1936617335, sequence::oid::integer);

			-- There is no last value if there has been none.
			last := coalesce(pg_sequence_last_value(sequence), nextval(sequence) - 1);
			clock := date_part('epoch', clock_timestamp()) * 1000000 - 1314220021721000;
			value := last + 1;
			IF value >> 10 < clock / 1000 THEN
				-- That the sequence is not logged is too dear to look for each time.
				IF (SELECT relpersistence FROM pg_class WHERE oid = sequence) <> 'p' THEN
					PERFORM snowflake_check(shard, sequence);
				END IF;
				value := (clock / 1000 << 10) | (value & 1023);
			END IF;

			IF last < -1 OR value > 1125899906841599 OR clock < 0 THEN
				PERFORM snowflake_refuse_value(sequence, last, clock);
			END IF;

			lead := (value >> 10) * 1000 - clock;
			IF lead > 0 THEN
				max_lead := snowflake_time_setting('snowflake.max_lead', '1s');
				max_wait := snowflake_time_setting('snowflake.max_wait', '5s');
				wait := greatest(lead - max_lead, 0);
				-- To wait for the next millisecond, because others have taken
				-- all of this one's, is no error.
				IF wait > 1000 AND waited + wait > max_wait THEN
					PERFORM snowflake_refuse_lead(sequence, lead, clock, max_lead, max_wait);
				END IF;
			END IF;

			IF wait = 0 THEN
				last := setval(sequence, least(value + greatest(count, 1) - 1, value | 1023));
			END IF;
			RAISE SQLSTATE 'SF000';
		EXCEPTION
			WHEN SQLSTATE 'SF000' THEN
				NULL;
			WHEN read_only_sql_transaction THEN
				RAISE read_only_sql_transaction USING
					MESSAGE = 'cannot execute next_id() in a read-only transaction';
			WHEN internal_error OR wrong_object_type THEN
				PERFORM snowflake_check(shard, sequence);
				RAISE;
		END;

		IF wait = 0 THEN
			RETURN (value >> 10 << 23) | (shard << 10) | (value & 1023);
		END IF;
		-- A clock that is set forward ends the wait.
		wait := least(wait, 100000);
		PERFORM pg_sleep(wait / 1000000.0);
		waited := waited + wait;
	END LOOP;
END $$;

COMMENT ON FUNCTION snowflake_take(bigint, integer, regclass) IS
'for next_id() and next_ids(): take values of a sequence, and return the ID of the first';

CREATE FUNCTION next_id(shard bigint, sequence regclass DEFAULT 'next_id_seq')
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN snowflake_take(shard, 1, sequence);

COMMENT ON FUNCTION next_id(bigint, regclass) IS
'next ID for a shard, unique and larger than all before it from the same sequence';

CREATE FUNCTION next_id()
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN snowflake_take(snowflake_shard_setting(), 1, 'next_id_seq');

COMMENT ON FUNCTION next_id() IS
'next ID for the shard in the setting snowflake.shard';

CREATE FUNCTION next_ids(shard bigint, count integer, sequence regclass DEFAULT 'next_id_seq')
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	first bigint;
	taken integer;
BEGIN
	IF count IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'count must not be null';
	END IF;
	IF count < 1 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('count %s is out of range', count),
			HINT = 'Ask for one ID or more.';
	END IF;

	WHILE count > 0 LOOP
		first := snowflake_take(shard, count, sequence);
		taken := least(count, 1024 - (first & 1023));
		RETURN QUERY SELECT * FROM generate_series(first, first + taken - 1);
		count := count - taken;
	END LOOP;
END $$;

COMMENT ON FUNCTION next_ids(bigint, integer, regclass) IS
'next IDs for a shard, in order; quicker than as many calls of next_id()';

CREATE FUNCTION snowflake_id(ts timestamptz, shard bigint, sequence bigint)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	epoch constant timestamptz := '2011-08-24 21:07:01.721+00';
	id bigint;
BEGIN
	IF ts < epoch OR ts >= '2046-06-27 17:00:49.496+00' THEN
		RAISE datetime_field_overflow USING
			MESSAGE = format('timestamp %s is out of range', ts),
			DETAIL = format('The layout "instagram" begins at %s and ends before %s.',
							epoch, '2046-06-27 17:00:49.496+00'::timestamptz);
	END IF;
	IF shard NOT BETWEEN 0 AND 8191 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('shard %s is out of range', shard),
			DETAIL = 'The shards of the layout "instagram" are 0 to 8191.',
			HINT = 'To spread rows over all shards, use a key modulo 8192.';
	END IF;
	IF sequence NOT BETWEEN 0 AND 1023 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('sequence %s is out of range', sequence),
			DETAIL = 'The sequence numbers of the layout "instagram" are 0 to 1023.';
	END IF;

	id := floor(extract(epoch FROM ts - epoch) * 1000);
	id := (id << 23) | (shard << 10) | sequence;
	IF id = 0 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = 'cannot compose the ID 0',
			DETAIL = 'IDs are positive.';
	END IF;
	RETURN id;
END $$;

COMMENT ON FUNCTION snowflake_id(timestamptz, bigint, bigint) IS
'compose an ID from a time, a shard and a sequence number, as for rows of earlier times';

--
-- Taking IDs apart
--
-- Written so that the planner puts the expressions in the place of the calls.
--

CREATE FUNCTION snowflake_timestamp(id bigint)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_timestamp((((id >> 23) & 2199023255551) + 1314220021721)::float8 / 1000);

COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
'time at which an ID was made';

CREATE FUNCTION snowflake_shard(id bigint)
RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ((id >> 10) & 8191)::integer;

COMMENT ON FUNCTION snowflake_shard(bigint) IS
'shard for which an ID was made';

CREATE FUNCTION snowflake_sequence(id bigint)
RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (id & 1023)::integer;

COMMENT ON FUNCTION snowflake_sequence(bigint) IS
'sequence number of an ID within its time';

CREATE FUNCTION snowflake_fields(id bigint)
RETURNS TABLE (field text, value bigint)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 3
BEGIN ATOMIC
	VALUES ('timestamp', (id >> 23) & 2199023255551),
		   ('shard', (id >> 10) & 8191),
		   ('sequence', id & 1023);
END;

COMMENT ON FUNCTION snowflake_fields(bigint) IS
'fields of an ID as numbers, most significant first';

--
-- Ranges of time
--
-- 0 is below every ID, and the first one of the last millisecond, which is never
-- issued, is above.
--

CREATE FUNCTION snowflake_min_id(ts timestamptz)
RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN ts <= '2011-08-24 21:07:01.721+00' THEN 0
			WHEN ts > '2046-06-27 17:00:49.495+00' THEN 9223372036846387200
			ELSE ceil(extract(epoch FROM ts - '2011-08-24 21:07:01.721+00') * 1000)::bigint << 23 END;

COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
'smallest ID of a time: id >= snowflake_min_id(t) selects the IDs made at t or later';

CREATE FUNCTION snowflake_max_id(ts timestamptz)
RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN ts < '2011-08-24 21:07:01.721+00' THEN 0
			WHEN ts >= '2046-06-27 17:00:49.495+00' THEN 9223372036846387200
			ELSE floor(extract(epoch FROM ts - '2011-08-24 21:07:01.721+00') * 1000 + 1)::bigint << 23 END - 1;

COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
'largest ID of a time: id <= snowflake_max_id(t) selects the IDs made at t or earlier';

--
-- Watching a sequence
--

CREATE FUNCTION snowflake_status(
	sequence regclass DEFAULT 'next_id_seq',
	OUT last_timestamp timestamptz,
	OUT lead interval,
	OUT logged_ahead interval,
	OUT expires timestamptz)
RETURNS record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL RESTRICTED
SET search_path FROM CURRENT
AS $$
DECLARE
	last bigint;
BEGIN
	PERFORM snowflake_check(0, sequence);
	last := pg_sequence_last_value(sequence);
	IF last NOT BETWEEN 0 AND 1125899906841599 THEN
		PERFORM snowflake_refuse_value(sequence, last, 0);
	END IF;

	last_timestamp := snowflake_timestamp(last >> 10 << 23);
	lead := CASE WHEN last IS NOT NULL THEN greatest(last_timestamp - clock_timestamp(), '0') END;
	logged_ahead := last_timestamp - last_timestamp;
	expires := '2046-06-27 17:00:49.496+00';
END $$;

COMMENT ON FUNCTION snowflake_status(regclass) IS
'last ID''s time, its lead over the clock, the time logged beyond it, and the layout''s end';
