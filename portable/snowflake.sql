--
-- portable/snowflake.sql
--	  Time-sortable 64-bit IDs in SQL, for a managed service or another server
--	  that cannot have the extension "snowflake".  PostgreSQL 15 or later.
--
-- Paste the whole file into the console of your database, as the role that owns
-- the tables.  Everything goes into the first schema of the search_path.  Then
-- choose a shard from 0 to 8191 that no other database has, and create tables:
--
--		SELECT snowflake_set_shard(5);
--		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
--
-- The functions have the names, results and SQLSTATEs of the extension's.
-- doc/portable.md says what they do not promise, and how to move to the extension.
--
-- An ID has, from its highest bit, 41 bits of time in milliseconds since
-- 2011-08-24 21:07:01.721 UTC, 13 bits of shard and 10 bits of sequence number.
-- The value of a sequence is the time and the sequence number of its last ID.
--

-- The first schema of the search_path is safe if nobody else has functions and operators in it
-- or may create some, because later calls could mean these.  (require_closed_schema.sql is a
-- copy of this command.)  Below, arguments have exactly the types of what is meant, so that no
-- function or operator fits better, whatever else the search_path finds.
DO $$
DECLARE
	schema record;
	other record;
BEGIN
	IF pg_catalog.array_position(pg_catalog.current_schemas(true), 'pg_catalog'::pg_catalog.name) OPERATOR(pg_catalog.>=)
		pg_catalog.array_position(pg_catalog.current_schemas(true), pg_catalog.current_schema()) THEN
		RAISE invalid_schema_name USING
			MESSAGE = 'pg_catalog is not the first schema to be searched',
			HINT = 'Leave pg_catalog out of the search_path.';
	END IF;

	SELECT n.oid, quote_ident(nspname::text) AS name,
		CASE pg_get_userbyid(nspowner) WHEN 'pg_database_owner'::name THEN datdba ELSE nspowner END AS owner
	INTO schema FROM pg_namespace AS n, pg_database WHERE nspname = current_schema() AND datname = current_database();
	SELECT * INTO other FROM (
		SELECT grantee, 'may create objects in '::text || schema.name, 'REVOKE CREATE ON SCHEMA '::text || schema.name
			|| ' FROM '::text || CASE grantee WHEN 0::oid THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)::text) END
		FROM pg_namespace, aclexplode(nspacl)
		WHERE oid = schema.oid AND privilege_type = 'CREATE' AND grantee <> nspowner
		UNION ALL
		SELECT proowner, 'owns '::text || name, 'DROP ROUTINE '::text || name
		FROM pg_proc, LATERAL (SELECT (pg_identify_object('pg_proc'::regclass::oid, oid, 0)).identity) AS object (name)
		WHERE pronamespace = schema.oid
		UNION ALL
		SELECT oprowner, 'owns '::text || name, 'DROP OPERATOR '::text || name
		FROM pg_operator, LATERAL (SELECT (pg_identify_object('pg_operator'::regclass::oid, oid, 0)).identity) AS object (name)
		WHERE oprnamespace = schema.oid) AS others (role, act, remedy)
	WHERE role <> schema.owner
	  AND NOT EXISTS (SELECT FROM pg_roles WHERE oid = role AND (rolsuper OR rolname = current_user))
	LIMIT 1;
	IF FOUND THEN
		RAISE insufficient_privilege USING
			MESSAGE = 'others could choose what names in schema '::text || schema.name || ' mean'::text,
			DETAIL = CASE other.role WHEN 0::oid THEN 'Every role'::text
				ELSE 'Role '::text || quote_ident(pg_get_userbyid(other.role)::text) END || ' '::text || other.act || '.'::text,
			HINT = 'As the owner of the schema: '::text || other.remedy || '.'::text;
	END IF;
END $$;

CREATE SEQUENCE next_id_seq MAXVALUE 1125899906841599;

COMMENT ON SEQUENCE next_id_seq IS 'time and sequence number of the last ID of calls that name none';

--
-- The shard of this database
--

CREATE FUNCTION snowflake_no_shard()
RETURNS integer
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RAISE object_not_in_prerequisite_state USING
		MESSAGE = 'the shard of this database is not set',
		HINT = 'SELECT snowflake_set_shard(...) sets it, to a shard that no other database has.';
END $$;

COMMENT ON FUNCTION snowflake_no_shard() IS 'for snowflake_shard(): the error that no shard is set';

-- snowflake_set_shard() replaces this function by one that returns a number.  A
-- managed service may not allow a setting.
CREATE FUNCTION snowflake_shard()
RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE
RETURN snowflake_no_shard();

COMMENT ON FUNCTION snowflake_shard() IS 'the shard of this database';

-- Functions in PL/pgSQL find nothing by the caller's search_path, so this one needs to be told
-- the other two.
CREATE FUNCTION snowflake_replace_shard(shard bigint, function regprocedure, no_shard regprocedure)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF shard NOT BETWEEN -1 AND 8191 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('shard %s is not between 0 and 8191', shard);
	END IF;
	EXECUTE format('CREATE OR REPLACE FUNCTION %s RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN %s',
				   function, coalesce(nullif(shard, -1)::text, no_shard::text));
END $$;

COMMENT ON FUNCTION snowflake_replace_shard(bigint, regprocedure, regprocedure) IS 'for snowflake_set_shard()';

CREATE FUNCTION snowflake_set_shard(shard bigint)
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN snowflake_replace_shard(shard, 'snowflake_shard()'::regprocedure, 'snowflake_no_shard()'::regprocedure);

COMMENT ON FUNCTION snowflake_set_shard(bigint) IS 'set the shard of this database; -1 or NULL removes it';

--
-- Generating IDs
--

-- Take values of a sequence: "count" of them, but none after the millisecond of
-- the first.  Return the first one's ID; those of the others follow it by one.
-- With "skip_to", set the sequence beyond that ID, unless it is already, and return
-- its value.
--
-- The last value is read and the next one set under an advisory lock.  A lock of
-- the transaction would make all others wait for its end, and a lock of the session
-- would be left behind by a cancel at the wrong moment.  So a subtransaction takes
-- the lock and is always rolled back.  That releases the lock, however the
-- subtransaction ends, and does not bring back a value of a sequence.
--
-- nextval() would not do.  While one session is about to set the sequence to the
-- clock's time, another could take a value beyond it, and the sequence would be set
-- back.  Also, nextval() leaves most values out of the WAL and could give them again
-- after a crash; setval() logs each.
CREATE FUNCTION snowflake_take(shard bigint, count bigint, sequence regclass, skip_to bigint)
RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	epoch constant bigint := 1314220021721;			-- these four in milliseconds
	max_lead constant bigint := 1000;				-- how far ahead of the clock IDs may be
	max_wait constant bigint := 5000;				-- how long a call may wait for that
	waited bigint := 0;
	max_value constant bigint := 1125899906841599;	-- by which sequences for IDs are known
	may_update constant boolean := has_sequence_privilege(sequence, 'UPDATE');
	-- the last value of the ID's millisecond, so that IDs of all shards are larger
	skip_to_value constant bigint := (skip_to >> 23 << 10) | 1023;
	parameters record;
	last bigint;
	value bigint;
	clock bigint;
	lead bigint;
	wait bigint;
BEGIN
	IF shard IS NULL OR count IS NULL OR sequence IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'arguments must not be null';
	ELSIF may_update IS NULL THEN
		RAISE undefined_table USING MESSAGE = format('sequence with OID %s does not exist', sequence::oid);
	ELSIF NOT may_update THEN
		RAISE insufficient_privilege USING
			MESSAGE = format('permission denied for sequence %s', sequence),
			HINT = 'The sequence''s owner can GRANT USAGE, UPDATE ON SEQUENCE.';
	END IF;

	-- This locks the sequence until the end of the transaction, as nextval() does,
	-- so nobody alters what is checked here.
	last := pg_sequence_last_value(sequence);
	parameters := pg_sequence_parameters(sequence);
	IF parameters.maximum_value <> max_value OR parameters.increment <> 1 OR parameters.cache_size <> 1
		OR parameters.cycle_option OR (SELECT relpersistence FROM pg_class WHERE oid = sequence) <> 'p' THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot generate IDs from sequence "%s"', sequence),
			DETAIL = 'It must be logged, and have the parameters of next_id_seq.',
			HINT = format('If nothing else uses it: SELECT snowflake_alter_sequence(%L).', sequence);
	ELSIF shard NOT BETWEEN 0 AND 8191 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('shard %s is not between 0 and 8191', shard);
	ELSIF count < 1 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('count %s is out of range', count);
	ELSIF skip_to < 1 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('ID %s is not positive', skip_to);
	ELSIF (skip_to >> 23) + epoch > extract(epoch FROM clock_timestamp() + interval '24 hours') * 1000 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('ID %s is over a day ahead of the clock', skip_to);
	END IF;

	LOOP
		wait := 0;
		BEGIN
			PERFORM pg_advisory_xact_lock(1936617335, sequence::oid::integer);

			-- There is no last value if there has been none.
			last := coalesce(pg_sequence_last_value(sequence), nextval(sequence) - 1);
			clock := (date_part('epoch', clock_timestamp()) * 1000000)::bigint / 1000 - epoch;
			value := greatest(last + 1, (clock << 10) | ((last + 1) & 1023));
			IF last < -1 THEN
				RAISE object_not_in_prerequisite_state USING
					MESSAGE = format('value %s of sequence "%s" is out of range', last, sequence);
			ELSIF skip_to IS NOT NULL THEN
				last := setval(sequence, greatest(last, skip_to_value));
			ELSIF clock < 0 THEN
				RAISE datetime_field_overflow USING MESSAGE = 'the clock is behind the epoch of IDs';
			ELSIF value > max_value THEN
				RAISE sequence_generator_limit_exceeded USING MESSAGE = 'the time of IDs is used up';
			ELSE
				lead := (value >> 10) - clock;
				wait := greatest(lead - max_lead, 0);
				-- To wait for the next millisecond, because others have taken all
				-- of this one's, is no error.
				IF wait > 1 AND waited + wait > max_wait THEN
					RAISE configuration_limit_exceeded USING
						MESSAGE = format('sequence "%s" is %s ahead of the clock',
										 sequence, lead * interval '1 ms'),
						HINT = 'Correct the clock if it is wrong, or wait for it to catch up.';
				ELSIF wait = 0 THEN
					last := setval(sequence, least(value + count - 1, value | 1023));
				END IF;
			END IF;
			RAISE SQLSTATE 'SF000';
		EXCEPTION
			WHEN SQLSTATE 'SF000' THEN NULL;
		END;

		EXIT WHEN wait = 0;
		-- A clock that is set forward ends the wait.
		wait := least(wait, 100);
		PERFORM pg_sleep(wait / 1000.0);
		waited := waited + wait;
	END LOOP;

	IF skip_to IS NOT NULL THEN
		lead := ((last + 1) >> 10) - clock;
		IF lead > max_lead THEN
			RAISE WARNING USING
				MESSAGE = format('sequence "%s" is %s ahead of the clock', sequence, lead * interval '1 ms'),
				DETAIL = 'Until that is at most a second, calls of next_id() wait, or fail if it takes too long.';
		END IF;
		RETURN last;
	END IF;
	RETURN (value >> 10 << 23) | (shard << 10) | (value & 1023);
END $$;

COMMENT ON FUNCTION snowflake_take(bigint, bigint, regclass, bigint) IS 'for next_id() and others';

-- Functions that name no sequence use next_id_seq with its owner's privileges.
-- Their bodies name objects for good, whatever the caller's search_path.

CREATE FUNCTION next_id()
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
RETURN snowflake_take(snowflake_shard()::bigint, 1::bigint, 'next_id_seq'::regclass, NULL::bigint);

COMMENT ON FUNCTION next_id() IS 'next ID for the shard of this database';

CREATE FUNCTION next_id(shard bigint)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
RETURN snowflake_take(shard, 1::bigint, 'next_id_seq'::regclass, NULL::bigint);

COMMENT ON FUNCTION next_id(bigint) IS 'next ID for a shard, larger than all earlier ones of this shard';

CREATE FUNCTION next_id(shard bigint, sequence regclass)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
RETURN snowflake_take(shard, 1::bigint, sequence, NULL::bigint);

COMMENT ON FUNCTION next_id(bigint, regclass) IS 'next ID for a shard from a sequence';

-- A batch ends with its millisecond, whose last ID has the sequence number 1023.
CREATE FUNCTION next_ids(shard bigint, count bigint, sequence regclass)
RETURNS SETOF bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	WITH RECURSIVE batches (id, needed) AS (
		SELECT snowflake_take(shard, count, sequence, NULL::bigint), count
		UNION ALL
		SELECT snowflake_take(shard, needed - size, sequence, NULL::bigint), needed - size
		FROM batches, LATERAL (SELECT 1024 - (id & 1023::bigint)) AS batch (size)
		WHERE needed > size)
	SELECT generate_series(id, least(id + needed - 1, id | 1023::bigint)) FROM batches;
END;

COMMENT ON FUNCTION next_ids(bigint, bigint, regclass) IS 'next IDs for a shard from a sequence, in order';

CREATE FUNCTION next_ids(shard bigint, count bigint)
RETURNS SETOF bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
BEGIN ATOMIC
	SELECT next_ids(shard, count, 'next_id_seq'::regclass);
END;

COMMENT ON FUNCTION next_ids(bigint, bigint) IS 'next IDs for a shard, in order';

CREATE FUNCTION snowflake_id(ts timestamptz, shard bigint, sequence_number bigint)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	epoch constant timestamptz := '2011-08-24 21:07:01.721+00';
	id bigint;
BEGIN
	IF ts < epoch OR ts >= '2046-06-27 17:00:49.496+00' THEN
		RAISE datetime_field_overflow USING MESSAGE = format('timestamp %s is out of range', ts);
	ELSIF shard NOT BETWEEN 0 AND 8191 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('shard %s is not between 0 and 8191', shard);
	ELSIF sequence_number NOT BETWEEN 0 AND 1023 THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('sequence number %s is not between 0 and 1023', sequence_number);
	END IF;

	id := floor(extract(epoch FROM ts - epoch) * 1000);
	id := (id << 23) | (shard << 10) | sequence_number;
	IF id = 0 THEN
		RAISE invalid_parameter_value USING MESSAGE = 'cannot compose the ID 0';
	END IF;
	RETURN id;
END $$;

COMMENT ON FUNCTION snowflake_id(timestamptz, bigint, bigint) IS 'compose an ID, as for old rows';

--
-- Taking IDs apart, by expressions that the planner puts in the place of the calls
--

CREATE FUNCTION snowflake_timestamp(id bigint)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_timestamp((((id >> 23) & 2199023255551) + 1314220021721)::float8 / 1000::float8);

COMMENT ON FUNCTION snowflake_timestamp(bigint) IS 'time at which an ID was generated';

CREATE FUNCTION snowflake_shard(id bigint)
RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ((id >> 10) & 8191::bigint)::integer;

COMMENT ON FUNCTION snowflake_shard(bigint) IS 'shard for which an ID was generated';

CREATE FUNCTION snowflake_sequence_number(id bigint)
RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (id & 1023::bigint)::integer;

COMMENT ON FUNCTION snowflake_sequence_number(bigint) IS 'sequence number of an ID';

CREATE FUNCTION snowflake_fields(id bigint)
RETURNS TABLE (field text, value bigint)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 3
BEGIN ATOMIC
	VALUES ('timestamp', (id >> 23) & 2199023255551),
		   ('shard', (id >> 10) & 8191::bigint),
		   ('sequence', id & 1023::bigint);
END;

COMMENT ON FUNCTION snowflake_fields(bigint) IS 'fields of an ID as numbers, most significant first';

--
-- Ranges of time: 0 is below every ID, the first one of the last millisecond above
--

CREATE FUNCTION snowflake_min_id(ts timestamptz)
RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
	WHEN ts <= '2011-08-24 21:07:01.721+00'::timestamptz THEN 0
	WHEN ts > '2046-06-27 17:00:49.495+00'::timestamptz THEN 1099511627775
	ELSE ceil(extract(epoch FROM ts - '2011-08-24 21:07:01.721+00'::timestamptz) * 1000::numeric)::bigint END << 23;

COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
'smallest ID of a time: id >= snowflake_min_id(t) selects the IDs of t or later';

CREATE FUNCTION snowflake_max_id(ts timestamptz)
RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN snowflake_min_id(least(ts, '2046-06-28 00:00+00') + interval '1 microsecond') - 1;

COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
'largest ID of a time: id <= snowflake_max_id(t) selects the IDs of t or earlier';

--
-- Sequences
--

CREATE FUNCTION snowflake_alter_sequence(sequence regclass)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	max_value constant bigint := 1125899906841599;
	last bigint;
	called boolean;
	detail text;
BEGIN
	IF sequence IS NULL THEN
		RAISE null_value_not_allowed USING MESSAGE = 'sequence must not be null';
	ELSIF NOT EXISTS (SELECT FROM pg_class WHERE oid = sequence) THEN
		RAISE undefined_table USING MESSAGE = format('sequence with OID %s does not exist', sequence::oid);
	END IF;

	-- Only the owner can do this, and nobody takes a value after it.
	EXECUTE format('ALTER SEQUENCE %s NO CYCLE', sequence);

	-- A value of another layout is no time of this one.  No counter reaches 2^40.
	EXECUTE format('SELECT last_value, is_called FROM %s', sequence) INTO last, called;
	SELECT CASE
		WHEN relpersistence <> 'p' THEN 'It is unlogged or temporary.'
		WHEN EXISTS (SELECT FROM pg_depend
					 WHERE classid = 'pg_class'::regclass AND objid = seqrelid AND deptype = 'i')
			THEN 'It belongs to an identity column.'
		WHEN seqmax <> max_value AND (last NOT BETWEEN 0 AND max_value OR called AND last >= 1099511627776)
			THEN format('Its last value %s is not that of a counter of rows.', last) END
	INTO detail
	FROM pg_class JOIN pg_sequence ON seqrelid = oid WHERE oid = sequence;
	IF detail IS NOT NULL THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('cannot generate IDs from sequence "%s"', sequence),
			DETAIL = detail,
			HINT = 'Use a new sequence, with a new shard if the table has IDs already.';
	END IF;

	EXECUTE format('ALTER SEQUENCE %s AS bigint INCREMENT 1 MAXVALUE %s CACHE 1 OWNED BY NONE',
				   sequence, max_value);
END $$;

COMMENT ON FUNCTION snowflake_alter_sequence(regclass) IS 'make an existing sequence serve IDs';

CREATE FUNCTION snowflake_advance(sequence regclass, id bigint)
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT snowflake_take(CASE WHEN id IS NOT NULL THEN 0::bigint END, 1::bigint, sequence, id);
END;

COMMENT ON FUNCTION snowflake_advance(regclass, bigint) IS 'make every later ID of a sequence larger than an ID';

--
-- IDs as text, and in JSON
--

CREATE FUNCTION snowflake_to_text(id bigint, encoding text DEFAULT 'base62')
RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	digits constant text := CASE encoding
		WHEN 'base62' THEN '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
		WHEN 'base32' THEN '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
		WHEN 'base64url' THEN 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_' END;
	-- Base64url is as short as it can be.
	width constant integer := CASE encoding WHEN 'base62' THEN 11 WHEN 'base32' THEN 13 ELSE 1 END;
	encoded text := '';
BEGIN
	IF digits IS NULL THEN
		RAISE invalid_parameter_value USING
			MESSAGE = format('unrecognized encoding: "%s"', encoding),
			HINT = 'The encodings are base62, base32 and base64url.';
	ELSIF id < 0 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('ID %s has no text form', id);
	END IF;

	WHILE id > 0 OR length(encoded) < width LOOP
		encoded := substr(digits, (id % length(digits))::integer + 1, 1) || encoded;
		id := id / length(digits);
	END LOOP;
	RETURN encoded;
END $$;

COMMENT ON FUNCTION snowflake_to_text(bigint, text) IS 'ID as text: base62, base32 or base64url';

-- The extension has a type of this name.  With a domain, to_json() shows a number.
-- But PostgREST looks for a cast of a column's domain to json, and calls its function.
CREATE DOMAIN snowflake AS bigint;

COMMENT ON DOMAIN snowflake IS 'bigint that PostgREST shows as a string, which JavaScript does not round';

CREATE FUNCTION snowflake_to_json(id snowflake)
RETURNS json
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN pg_catalog.to_json(id::text);

COMMENT ON FUNCTION snowflake_to_json(snowflake) IS 'ID as a string in JSON';

-- PostgreSQL warns that it will itself ignore the cast of a domain.
CREATE CAST (snowflake AS json) WITH FUNCTION snowflake_to_json(snowflake) AS IMPLICIT;

COMMENT ON CAST (snowflake AS json) IS 'for PostgREST, which calls the function of such a cast';
