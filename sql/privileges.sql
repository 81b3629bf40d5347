--
-- Who may make IDs from which sequence
--
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_sf_app;
CREATE ROLE regress_sf_owner;
CREATE SEQUENCE guarded MAXVALUE 1125899906841599;
ALTER SEQUENCE guarded OWNER TO regress_sf_owner;
SELECT next_id(5, 'guarded') > 0 AS taken;

-- the default sequence needs no privilege but EXECUTE, and gives no other
SET ROLE regress_sf_app;
SELECT next_id(5) > 0 AS taken;
SELECT last_timestamp IS NOT NULL AS last, state <> 'no privilege' AS permitted FROM snowflake_sequences('next_id_seq');
SELECT sqlstate_, message FROM error_of('SELECT nextval(''next_id_seq'')');
SELECT sqlstate_, message FROM error_of('SELECT setval(''next_id_seq'', 1)');
SELECT sqlstate_, message FROM error_of('SELECT last_value FROM next_id_seq');
SELECT sqlstate_, message FROM error_of('ALTER SEQUENCE next_id_seq RESTART');

-- any other sequence needs what nextval() needs
SELECT * FROM error_of('SELECT next_id(5, ''guarded'')');
SELECT layout, last_timestamp, lead, state FROM snowflake_sequences('guarded');
RESET ROLE;
GRANT SELECT ON SEQUENCE guarded TO regress_sf_app;
SET ROLE regress_sf_app;
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''guarded'')');
SELECT last_timestamp IS NOT NULL AS last, state FROM snowflake_sequences('guarded');
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''guarded'')');
RESET ROLE;
REVOKE SELECT ON SEQUENCE guarded FROM regress_sf_app;
GRANT USAGE ON SEQUENCE guarded TO regress_sf_app;
SET ROLE regress_sf_app;
SELECT next_id(5, 'guarded') > 0;
RESET ROLE;
REVOKE USAGE ON SEQUENCE guarded FROM regress_sf_app;
GRANT UPDATE ON SEQUENCE guarded TO regress_sf_app;
SET ROLE regress_sf_app;
SELECT next_id(5, 'guarded') > 0;
RESET ROLE;
REVOKE UPDATE ON SEQUENCE guarded FROM regress_sf_app;
SET ROLE regress_sf_app;
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''guarded'')');
RESET ROLE;

-- whatever else is wrong with the sequence: without a privilege nothing of it is told
CREATE SEQUENCE hidden MAXVALUE 9007199254736895;
CREATE SEQUENCE hidden_cached CACHE 7 MAXVALUE 1125899906841599;
CREATE UNLOGGED SEQUENCE hidden_unlogged MAXVALUE 1125899906841599;
CREATE SEQUENCE hidden_counter;
SELECT next_id(5, 'hidden', 'twitter') > 0;
SELECT count(nextval(seq)) AS used FROM unnest(ARRAY['hidden', 'hidden_cached', 'hidden_unlogged', 'hidden_counter']::regclass[]) AS seq;
SET ROLE regress_sf_app;
SELECT command, sqlstate_, message, detail
FROM unnest(ARRAY['next_id(1, %L)', 'next_id(1, %L, ''twitter'')', 'next_id(1, %L, ''timestamp:41 shard:22 epoch:0'')',
                  'next_ids(1, 2, %L)',
                  -- also for a shard that no layout has
                  'next_id(99999, %L)', 'next_id(-1, %L, ''twitter'')', 'next_ids(99999, 2, %L)', 'next_ids(-1, 2, %L, ''twitter'')',
                  'snowflake_advance(%L, 1)', 'snowflake_advance(%L, 9223372036854775807)']) AS command,
     unnest(ARRAY['hidden', 'hidden_cached', 'hidden_unlogged', 'hidden_counter']) AS seq,
     error_of('SELECT ' || format(command, seq))
WHERE sqlstate_ <> '42501' OR message <> 'permission denied for sequence ' || seq;
SELECT sequence, found.layout, last_timestamp, lead, state
FROM unnest(ARRAY['hidden', 'hidden_cached', 'hidden_unlogged', 'hidden_counter']::regclass[]) AS seq, snowflake_sequences(seq) AS found;
SELECT sequence, found.layout, last_timestamp, lead, state
FROM unnest(ARRAY['hidden', 'hidden_cached', 'hidden_unlogged', 'hidden_counter']::regclass[]) AS seq, snowflake_sequences(seq, 'twitter') AS found;
-- nor of what is no sequence
SELECT sqlstate_, message, command
FROM unnest(ARRAY['next_id(1, ''pg_class'')', 'next_id(99999, ''pg_class'')', 'next_ids(99999, 1, ''pg_class'')', 'next_id(99999, ''pg_class'', ''twitter'')']) AS command,
     error_of('SELECT ' || command);
RESET ROLE;
-- a shard that is out of range is an error of its own only then
SELECT sqlstate_, message, command
FROM unnest(ARRAY['next_id(99999, ''hidden'')', 'next_ids(99999, 1, ''hidden'')', 'next_id(99999, ''hidden_unlogged'')', 'next_id(99999, ''hidden_counter'')']) AS command,
     error_of('SELECT ' || command);
BEGIN READ ONLY;
SELECT sqlstate_ FROM error_of('SELECT next_id(99999, ''hidden'')');
COMMIT;
DROP SEQUENCE hidden, hidden_cached, hidden_unlogged, hidden_counter;

-- each role for itself, also within one transaction
CREATE FUNCTION guarded_id() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
AS $$ BEGIN RETURN next_id(5, 'guarded'); END $$;
ALTER FUNCTION guarded_id() OWNER TO regress_sf_owner;
BEGIN;
SELECT next_id(5, 'guarded') > 0;
SET LOCAL ROLE regress_sf_app;
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''guarded'')');
SELECT guarded_id() > 0;
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''guarded'')');
SELECT guarded_id() > 0, (SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''guarded'')'));
RESET ROLE;
SELECT next_id(5, 'guarded') > 0;
COMMIT;

-- also where one call is made by two roles in turn
CREATE FUNCTION any_id() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN next_id(5, 'guarded'); END $$;
BEGIN;
SELECT any_id() > 0;
SET LOCAL ROLE regress_sf_app;
SELECT sqlstate_ FROM error_of('SELECT any_id()');
ROLLBACK;
DROP FUNCTION any_id();

-- a privilege that goes in the same transaction is gone
BEGIN;
GRANT USAGE ON SEQUENCE guarded TO regress_sf_app;
SET LOCAL ROLE regress_sf_app;
SELECT next_id(5, 'guarded') > 0;
RESET ROLE;
REVOKE USAGE ON SEQUENCE guarded FROM regress_sf_app;
SET LOCAL ROLE regress_sf_app;
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''guarded'')');
ROLLBACK;

-- a sequence that leaves the extension is like any other, at once
SET ROLE regress_sf_app;
SELECT next_id(5) > 0;
RESET ROLE;
ALTER EXTENSION snowflake DROP SEQUENCE next_id_seq;
SET ROLE regress_sf_app;
SELECT sqlstate_, message FROM error_of('SELECT next_id(5)');
RESET ROLE;
ALTER EXTENSION snowflake ADD SEQUENCE next_id_seq;
SET ROLE regress_sf_app;
SELECT next_id(5) > 0;
RESET ROLE;

-- also within the transaction that takes it out, and only there if that is rolled back
BEGIN;
ALTER EXTENSION snowflake DROP SEQUENCE next_id_seq;
SET LOCAL ROLE regress_sf_app;
SELECT sqlstate_ FROM error_of('SELECT next_id(5)');
ROLLBACK;
SET ROLE regress_sf_app;
SELECT next_id(5) > 0;
RESET ROLE;

-- EXECUTE can be taken away, for each of the functions
REVOKE EXECUTE ON FUNCTION next_id(bigint) FROM PUBLIC;
SET snowflake.shard = 3;
SET ROLE regress_sf_app;
SELECT sqlstate_, message FROM error_of('SELECT next_id(5)');
SELECT snowflake_shard(next_id());
RESET ROLE;
RESET snowflake.shard;
GRANT EXECUTE ON FUNCTION next_id(bigint) TO PUBLIC;

-- settings: a user chooses the shard and the patience, not the lead
SET ROLE regress_sf_app;
SET snowflake.shard = 1;
SET snowflake.max_wait = '1s';
SELECT sqlstate_, message FROM error_of('SET snowflake.max_lead = ''1h''');
RESET ROLE;
RESET snowflake.shard;
RESET snowflake.max_wait;

-- no search path leads next_id() to another's function, operator or sequence
CREATE SCHEMA regress_sf_trap;
CREATE SEQUENCE regress_sf_trap.next_id_seq MAXVALUE 1125899906841599;
CREATE FUNCTION regress_sf_trap.next_id() RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
SET snowflake.shard = 1;
SET search_path = regress_sf_trap, pg_catalog;
SELECT public.next_id() > 0, public.next_id(1) > 0;
SELECT is_called FROM regress_sf_trap.next_id_seq;
DROP SEQUENCE regress_sf_trap.next_id_seq;
RESET search_path;

-- nor does another's sequence of that name in the place of the extension's
ALTER SEQUENCE next_id_seq SET SCHEMA regress_sf_trap;
ALTER SEQUENCE regress_sf_trap.next_id_seq RENAME TO moved;
CREATE SEQUENCE public.next_id_seq MAXVALUE 1125899906841599;
SELECT * FROM error_of('SELECT next_id()');
SELECT sqlstate_, message FROM error_of('SELECT next_id(1)');
SELECT sqlstate_, message FROM error_of('SELECT next_ids(1, 2)');
SELECT is_called FROM next_id_seq;
DROP SEQUENCE public.next_id_seq;
SELECT * FROM error_of('SELECT next_id()');
ALTER SEQUENCE regress_sf_trap.moved RENAME TO next_id_seq;
ALTER SEQUENCE regress_sf_trap.next_id_seq SET SCHEMA public;
SELECT next_id() > 0;
RESET snowflake.shard;

DROP FUNCTION guarded_id();
DROP SEQUENCE guarded;
DROP FUNCTION regress_sf_trap.next_id();
DROP SCHEMA regress_sf_trap;
DROP ROLE regress_sf_app, regress_sf_owner;
