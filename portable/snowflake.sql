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
'time and slot of the last ID of calls that name no sequence';

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
			HINT = 'Set it with ALTER DATABASE, which takes effect in new sessions, or with SET in this one, or give the shard as an argument: next_id(5).';
	END IF;
	RETURN shard;
END $$;

COMMENT ON FUNCTION snowflake_shard_setting() IS
'for next_id(): the shard in the setting snowflake.shard';

-- Which layout of the extension has sequences of this MAXVALUE, if it is not
-- Instagram's.
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
	WHEN 281474976710527 THEN 'javascript'
	WHEN 9435509593701641 THEN 'trace'
	WHEN 92233720199999 THEN 'decimal' END;

COMMENT ON FUNCTION snowflake_other_layout(bigint) IS
'for error messages: the extension''s other layout that has this MAXVALUE';

-- Raise an error if the arguments or the sequence cannot be used.  "privilege"
-- is what the caller needs on the sequence: 'UPDATE' to take values,
-- 'SELECT, USAGE' (either) to look, or 'owner' to alter it, for which its
-- parameters do not matter.
CREATE FUNCTION snowflake_check(shard bigint, sequence regclass, privilege text)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	class record;
	seq record;
	name text;
	qualified text;
	served text;
	message text := 'cannot make IDs from sequence "%s"';
	detail text;
	hint text;
BEGIN
	IF shard IS NULL OR sequence IS NULL THEN
		RAISE null_value_not_allowed USING
			MESSAGE = CASE WHEN shard IS NULL THEN 'shard' ELSE 'sequence' END || ' must not be null';
	END IF;
	IF shard NOT BETWEEN 0 AND 8191 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('shard %s is out of range', shard),
			DETAIL = 'The shards of the layout "instagram" are 0 to 8191.',
			HINT = 'Use a shard that no other server uses. To compute it from a key, which may be negative, use abs(key % 8192).';
	END IF;

	SELECT * INTO class FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = sequence;
	-- An old snapshot does not show a new sequence; the functions below do.
	IF NOT FOUND AND pg_relation_filenode(sequence) IS NULL THEN
		RAISE undefined_table USING
			MESSAGE = format('sequence with OID %s does not exist', sequence::oid);
	END IF;
	IF class.relkind <> 'S' THEN
		RAISE wrong_object_type USING
			MESSAGE = format('"%s" is not a sequence', class.relname);
	END IF;
	name := coalesce(class.relname, sequence::text);
	qualified := coalesce(quote_ident(class.nspname) || '.' || quote_ident(class.relname), sequence::text);

	IF privilege = 'owner' THEN
		IF NOT pg_has_role(class.relowner, 'USAGE') THEN
			RAISE insufficient_privilege USING
				MESSAGE = format('must be owner of sequence %s', name);
		END IF;
	ELSIF NOT has_sequence_privilege(sequence, privilege) THEN
		RAISE insufficient_privilege USING
			MESSAGE = format('permission denied for sequence %s', name),
			HINT = format('The sequence''s owner can GRANT %s ON SEQUENCE.',
						  CASE privilege WHEN 'UPDATE' THEN 'USAGE, UPDATE' ELSE 'USAGE' END);
	END IF;

	seq := pg_sequence_parameters(sequence);
	IF class.relpersistence = 't' THEN
		detail := 'The sequence is temporary.';
		hint := 'Use a sequence that all sessions share and that outlives them.';
	ELSIF class.relpersistence = 'u' THEN
		detail := 'The sequence is unlogged and would repeat IDs after a crash.';
		hint := format('Use ALTER SEQUENCE %s SET LOGGED.', qualified);
	ELSIF privilege = 'owner' THEN
		RETURN;
	ELSIF seq.maximum_value <> 1125899906841599 THEN
		served := snowflake_other_layout(seq.maximum_value);
		message := 'cannot make IDs of layout "instagram" from sequence "%s"';
		IF served IS NULL THEN
			detail := format('The sequence has MAXVALUE %s, but a sequence for this layout has MAXVALUE 1125899906841599.', seq.maximum_value);
		ELSE
			detail := format('The sequence serves layout "%s".', served);
			hint := 'Use another sequence.';
		END IF;
	ELSIF seq.increment <> 1 THEN
		detail := format('The sequence has INCREMENT %s.', seq.increment);
	ELSIF seq.cache_size <> 1 THEN
		detail := format('The sequence has CACHE %s, and sessions that keep values back would return IDs out of order.', seq.cache_size);
	ELSIF seq.cycle_option THEN
		detail := 'The sequence has CYCLE and would repeat IDs.';
	ELSE
		RETURN;
	END IF;
	IF hint IS NULL THEN
		-- A column that owns the sequence needs its numbers.
		SELECT CASE
				   WHEN deptype = 'i' THEN
					   format('Use another sequence, as this one belongs to identity column "%s" of table "%s".', attname, relname)
				   WHEN coalesce(nullif(typbasetype, 0), atttypid) IN ('int2'::regtype, 'int4'::regtype) THEN
					   format('Use another sequence, as this one belongs to column "%s" of table "%s", whose type %s cannot hold IDs.',
							  attname, relname, atttypid::regtype)
				   ELSE
					   format('The sequence belongs to column "%s" of table "%s". To put IDs into that column, use SELECT snowflake_alter_sequence(%L) and make next_id() the column''s default. Otherwise use another sequence.',
							  attname, relname, qualified) END
		INTO hint
		FROM pg_depend JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid JOIN pg_class c ON c.oid = attrelid
			 JOIN pg_type t ON t.oid = atttypid
		WHERE classid = 'pg_class'::regclass AND objid = sequence AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i');
	END IF;
	RAISE object_not_in_prerequisite_state USING
		MESSAGE = format(message, name),
		DETAIL = detail,
		HINT = coalesce(hint, format('If nothing else takes numbers from it, its owner can use SELECT snowflake_alter_sequence(%L).', qualified));
END $$;

COMMENT ON FUNCTION snowflake_check(bigint, regclass, text) IS
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
			MESSAGE = format('value %s of sequence "%s" is out of range for the layout', last, name),
			DETAIL = 'The values of the layout are 0 to 1125899906841599.',
			HINT = 'Use a new sequence with a new shard, or setval() this one to a value that is above all that were used.';
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
					ELSE 'The sequence has reached its last value, although the clock has not reached the end of the layout. Use a new sequence with a new shard.' END;
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
		HINT = CASE WHEN lead > 86400000000
					THEN 'Correct the clock if it is wrong. If the sequence was used while the clock was fast, or was set ahead by mistake, use a new sequence with a new shard. If you raise "snowflake.max_lead" instead, new IDs will have times more than a day ahead.'
					ELSE 'Correct the clock if it is wrong. If the sequence was used while the clock was fast, wait until the clock has caught up, or raise "snowflake.max_lead" until then.' END;
END $$;

COMMENT ON FUNCTION snowflake_refuse_lead(regclass, bigint, bigint, bigint, bigint) IS
'for next_id(): the error that says that a sequence is too far ahead of the clock';

-- Take values of a sequence: "count" of them, but none beyond the millisecond of
-- the first.  Return the first one's ID; those of the others follow it by one.
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
		PERFORM snowflake_check(shard, sequence, 'UPDATE');
	END IF;

	LOOP
		wait := 0;
		BEGIN
			-- This locks the sequence until the end of the transaction, as
			-- nextval() does.  So nobody alters what is checked next, and who
			-- has the other lock waits for nothing.
			last := pg_sequence_last_value(sequence);
			parameters := pg_sequence_parameters(sequence);
			IF parameters.maximum_value <> 1125899906841599 OR parameters.increment <> 1 OR
				parameters.cache_size <> 1 OR parameters.cycle_option THEN
				PERFORM snowflake_check(shard, sequence, 'UPDATE');
			END IF;

			lock := pg_advisory_xact_lock(1936617335, sequence::oid::integer);

			-- There is no last value if there has been none.
			last := coalesce(pg_sequence_last_value(sequence), nextval(sequence) - 1);
			clock := date_part('epoch', clock_timestamp()) * 1000000 - 1314220021721000;
			value := last + 1;
			IF value >> 10 < clock / 1000 THEN
				-- That the sequence is not logged is too dear to look for each time.
				IF (SELECT relpersistence FROM pg_class WHERE oid = sequence) <> 'p' THEN
					PERFORM snowflake_check(shard, sequence, 'UPDATE');
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
			WHEN internal_error OR wrong_object_type OR insufficient_privilege THEN
				PERFORM snowflake_check(shard, sequence, 'UPDATE');
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
'next ID for a shard, unique and larger than all earlier ones of this shard from the same sequence';

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
			HINT = 'Use a shard that no other server uses. To compute it from a key, which may be negative, use abs(key % 8192).';
	END IF;
	IF sequence NOT BETWEEN 0 AND 1023 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('sequence %s is out of range', sequence),
			DETAIL = 'The sequence numbers of the layout "instagram" are 0 to 1023.',
			HINT = 'Number the rows of each tick of 1 ms from 0 to 1023. If there are more, give the rest a later time or another shard.';
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
	PERFORM snowflake_check(0, sequence, 'SELECT, USAGE');
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

-- The status, with errors as states, for the view.  It waits only briefly for a
-- session that alters the sequence.
CREATE FUNCTION snowflake_sequence_state(
	sequence regclass,
	OUT last_timestamp timestamptz,
	OUT lead interval,
	OUT state text)
RETURNS record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path FROM CURRENT
SET lock_timeout = '100ms'
AS $$
DECLARE
	wait bigint;				-- microseconds
BEGIN
	SELECT s.last_timestamp, s.lead INTO last_timestamp, lead FROM snowflake_status(sequence) s;
	wait := extract(epoch FROM lead) * 1000000 - snowflake_time_setting('snowflake.max_lead', '1s');
	state := CASE WHEN pg_sequence_last_value(sequence) = 1125899906841599 THEN 'refuses'
				  WHEN (lead > '0') IS NOT TRUE THEN 'ok'
				  WHEN wait <= 0 THEN 'ahead'
				  WHEN wait <= greatest(snowflake_time_setting('snowflake.max_wait', '5s'), 1000) THEN 'waits'
				  ELSE 'refuses' END;
EXCEPTION
	WHEN insufficient_privilege THEN state := 'no privilege';
	WHEN lock_not_available THEN state := 'waits';
	WHEN OTHERS THEN state := 'refuses';
END $$;

COMMENT ON FUNCTION snowflake_sequence_state(regclass) IS
'for the view snowflake_sequences: state of a sequence, with errors as states';

CREATE VIEW snowflake_sequences AS
SELECT seqrelid::regclass AS sequence, 'instagram'::text AS layout, last_timestamp, lead,
	   '2046-06-27 17:00:49.496+00'::timestamptz AS expires, state
FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid AND relpersistence <> 't', snowflake_sequence_state(seqrelid)
WHERE seqmax = 1125899906841599;

COMMENT ON VIEW snowflake_sequences IS
'sequences that make IDs, by their MAXVALUE: layout, last ID''s time, its lead over the clock, the layout''s end, and ok, ahead, waits, refuses or no privilege';

GRANT SELECT ON snowflake_sequences TO PUBLIC;

--
-- Making a sequence serve
--

CREATE FUNCTION snowflake_alter_sequence(sequence regclass)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path FROM CURRENT
AS $$
DECLARE
	name text := (SELECT relname FROM pg_class WHERE oid = sequence);
	owner record;
	max_value bigint;
	last bigint;
	called boolean;
	detail text;
	row tid;					-- where in pg_sequence the sequence's row is
	locked_row tid;
BEGIN
	PERFORM snowflake_check(0, sequence, 'owner');

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

	-- This locks the sequence, so that nobody takes a value after it is read.
	row := (SELECT ctid FROM pg_sequence WHERE seqrelid = sequence);
	EXECUTE format('ALTER SEQUENCE %s OWNED BY NONE', sequence);
	locked_row := (SELECT ctid FROM pg_sequence WHERE seqrelid = sequence);
	EXECUTE format('SELECT maximum_value, last_value, is_called FROM %s, pg_sequence_parameters(%s)', sequence, sequence::oid)
	INTO max_value, last, called;

	-- If the sequence has served another layout, its value is no time of this one.
	-- No counter of rows reaches 2^40.
	detail := CASE
		WHEN max_value = 1125899906841599 THEN NULL
		WHEN called AND last >= 1099511627776 THEN
			format('Its last value %s is too large for a counter of rows, so the sequence may have been used for another layout.', last)
		WHEN last NOT BETWEEN 0 AND 1125899906841599 THEN
			format('Its last value is %s, and the values of the layout are 0 to 1125899906841599.', last) END;
	IF detail IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot make sequence "%s" serve layout "instagram"', name),
			DETAIL = detail,
			HINT = 'Use a new sequence.';
	END IF;

	EXECUTE format('ALTER SEQUENCE %s AS bigint INCREMENT 1 MAXVALUE 1125899906841599 CACHE 1 NO CYCLE', sequence);

	-- Each command names the sequence and writes a new row.  If its schema has
	-- been renamed, the name may have become that of another sequence.
	IF locked_row IN (row, (SELECT ctid FROM pg_sequence WHERE seqrelid = sequence)) THEN
		RAISE serialization_failure USING
			MESSAGE = format('could not alter sequence "%s" because of a concurrent change', name),
			DETAIL = 'Its schema was renamed, and its name became that of another sequence.',
			HINT = 'Call snowflake_alter_sequence() again.';
	END IF;
END $$;

COMMENT ON FUNCTION snowflake_alter_sequence(regclass) IS
'make an existing sequence serve: set its type, MAXVALUE and other parameters, and detach it from its column';
