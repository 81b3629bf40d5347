-- Who may make IDs from which sequence
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_lines

CREATE ROLE regress_sf_app;
CREATE ROLE regress_sf_owner;
CREATE SEQUENCE guarded MAXVALUE 1125899906841599;
ALTER SEQUENCE guarded OWNER TO regress_sf_owner;
SELECT next_id(5, 'guarded') AS id \gset

-- The default sequence needs no privilege but EXECUTE on next_id(), ...
SET ROLE regress_sf_app;
SELECT next_id(5) > 0 AS app_takes_id, (SELECT count(*) FROM next_ids(5, 3)) AS app_takes_ids;
SELECT last_timestamp IS NOT NULL AS time_is_shown, state <> 'no privilege' AS permitted
FROM snowflake_sequences('next_id_seq');
-- ... which gives no other.
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT nextval(''next_id_seq'')', 'SELECT setval(''next_id_seq'', 1)',
    'SELECT last_value FROM next_id_seq', 'ALTER SEQUENCE next_id_seq RESTART'
]) AS statement, error_of(statement);
RESET ROLE;

-- Any other sequence needs USAGE or UPDATE, as with nextval(), and any privilege to be shown.
:as_table
CREATE FUNCTION calls_with(privilege text, OUT next_id text, OUT state text, OUT time_is_shown boolean)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('GRANT %s ON SEQUENCE guarded TO regress_sf_app', privilege);
    SET LOCAL ROLE regress_sf_app;
    SELECT sqlstate_ INTO next_id FROM error_of('SELECT next_id(5, ''guarded'')');
    SELECT s.state, s.last_timestamp IS NOT NULL INTO state, time_is_shown
    FROM snowflake_sequences('guarded') AS s;
    RESET ROLE;
    EXECUTE format('REVOKE %s ON SEQUENCE guarded FROM regress_sf_app', privilege);
END $$;
SELECT * FROM unnest(ARRAY['SELECT', 'USAGE', 'UPDATE']) AS privilege, calls_with(privilege);
SET ROLE regress_sf_app;
SELECT * FROM error_of('SELECT next_id(5, ''guarded'')');
RESET ROLE;

-- Whatever else is wrong with a sequence, or with the shard: without a privilege, calls tell nothing of it.
CREATE SEQUENCE hidden MAXVALUE 9007199254736895;
CREATE SEQUENCE hidden_cached CACHE 7 MAXVALUE 1125899906841599;
CREATE UNLOGGED SEQUENCE hidden_unlogged MAXVALUE 1125899906841599;
CREATE SEQUENCE hidden_counter;
CREATE VIEW hidden_sequences AS
SELECT seq FROM unnest(ARRAY['hidden', 'hidden_cached', 'hidden_unlogged', 'hidden_counter']) AS seq;
GRANT SELECT ON hidden_sequences TO regress_sf_app;
SELECT count(nextval(seq::regclass)) AS used FROM hidden_sequences \gset
SET ROLE regress_sf_app;
SELECT count(*) AS calls,
       count(*) FILTER (WHERE sqlstate_ = '42501' AND message = 'permission denied for sequence ' || seq) AS denied,
       string_agg(format(call, seq), ', ') FILTER (WHERE sqlstate_ <> '42501') AS others
FROM unnest(ARRAY['next_id(1, %L)', 'next_id(1, %L, ''twitter'')', 'next_id(1, %L, ''timestamp:41 shard:22 epoch:0'')',
                  'next_id(99999, %L)', 'next_id(-1, %L, ''twitter'')', 'next_ids(1, 2, %L)',
                  'next_ids(99999, 2, %L)',
                  'next_ids(-1, 2, %L, ''twitter'')', 'snowflake_advance(%L, 1)',
                  'snowflake_advance(%L, 9223372036854775807)']) AS call,
     hidden_sequences, error_of('SELECT ' || format(call, seq));
SELECT sequence, shown.layout, shown.state, in_layout.layout AS given_layout, in_layout.state AS state_in_layout,
       num_nonnulls(shown.last_timestamp, shown.lead, in_layout.last_timestamp, in_layout.lead) AS times
FROM hidden_sequences, snowflake_sequences(seq::regclass) AS shown
JOIN snowflake_sequences(seq::regclass, 'twitter') AS in_layout USING (sequence);
-- A relation that is no sequence is reported as such, also before the shard.
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT next_id(99999, ''pg_class'')', 'SELECT next_ids(99999, 1, ''pg_class'')'
]) AS statement, error_of(statement);
RESET ROLE;
-- With the privilege, the sequence is reported before the shard.
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT next_id(99999, ''hidden_unlogged'')', 'SELECT next_id(99999, ''hidden_counter'')',
    'SELECT next_id(99999, ''hidden'')', 'SELECT next_ids(99999, 1, ''hidden'')'
]) AS statement, error_of(statement);

-- Each role needs the privilege for itself, also within one transaction.
CREATE FUNCTION guarded_id() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
AS $$ BEGIN RETURN next_id(5, 'guarded'); END $$;
ALTER FUNCTION guarded_id() OWNER TO regress_sf_owner;
BEGIN;
SELECT statement, sqlstate_, message FROM unnest(ARRAY[
    'SELECT next_id(5, ''guarded'') > 0', 'SET LOCAL ROLE regress_sf_app',
    'SELECT next_id(5, ''guarded'')', 'SELECT guarded_id() > 0', 'SELECT next_id(5, ''guarded'')', 'RESET ROLE',
    'SELECT next_id(5, ''guarded'') > 0'
]) AS statement, error_of(statement);
COMMIT;
-- So it does where two roles make the same call in turn.
:as_lines
CREATE FUNCTION any_id() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN next_id(5, 'guarded'); END $$;
BEGIN;
SELECT any_id() > 0 AS by_superuser;
SET LOCAL ROLE regress_sf_app;
SELECT sqlstate_ AS by_app FROM error_of('SELECT any_id()');
ROLLBACK;

-- A privilege that is revoked in a transaction is gone within it.
BEGIN;
GRANT USAGE ON SEQUENCE guarded TO regress_sf_app;
SET LOCAL ROLE regress_sf_app;
SELECT next_id(5, 'guarded') > 0 AS before_revoke;
RESET ROLE;
REVOKE USAGE ON SEQUENCE guarded FROM regress_sf_app;
SET LOCAL ROLE regress_sf_app;
SELECT sqlstate_ AS after_revoke FROM error_of('SELECT next_id(5, ''guarded'')');
ROLLBACK;

-- The default sequence is like any other once it has left the extension, in the transaction that takes it out,
-- but not after a rollback.
SELECT next_id(5) AS id \gset
BEGIN;
ALTER EXTENSION snowflake DROP SEQUENCE next_id_seq;
SET LOCAL ROLE regress_sf_app;
SELECT message AS outside_of_the_extension FROM error_of('SELECT next_id(5)');
ROLLBACK;
SET ROLE regress_sf_app;
SELECT next_id(5) > 0 AS taken_after_rollback;
RESET ROLE;

-- EXECUTE can be revoked from each of the functions.
REVOKE EXECUTE ON FUNCTION next_id(bigint) FROM PUBLIC;
SET snowflake.shard = 3;
SET ROLE regress_sf_app;
SELECT message AS without_execute FROM error_of('SELECT next_id(5)');
SELECT snowflake_shard(next_id()) AS shard_of_next_id_without_arguments;
RESET ROLE;
RESET snowflake.shard;
GRANT EXECUTE ON FUNCTION next_id(bigint) TO PUBLIC;

-- A user may set the shard and how long to wait, but not the lead.
SET ROLE regress_sf_app;
SET snowflake.shard = 1;
SET snowflake.max_wait = '1s';
SELECT sqlstate_ AS max_lead FROM error_of('SET snowflake.max_lead = ''1h''');
RESET ROLE;
RESET snowflake.shard;
RESET snowflake.max_wait;

-- No search path leads next_id() to another's function or sequence, ...
CREATE SCHEMA hostile;
CREATE SEQUENCE hostile.next_id_seq MAXVALUE 1125899906841599;
CREATE FUNCTION hostile.next_id() RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
SET snowflake.shard = 1;
SET search_path = hostile, pg_catalog;
SELECT public.next_id() > 0 AS taken, public.next_id(1) > 0 AS taken_of_shard_1;
SELECT is_called AS trap_is_called FROM hostile.next_id_seq;
DROP SEQUENCE hostile.next_id_seq;
RESET search_path;
-- ... nor does another's sequence in the place of the extension's.
ALTER SEQUENCE next_id_seq SET SCHEMA hostile;
ALTER SEQUENCE hostile.next_id_seq RENAME TO moved;
CREATE SEQUENCE public.next_id_seq MAXVALUE 1125899906841599;
SELECT * FROM error_of('SELECT next_id()');
SELECT sqlstate_ AS next_ids FROM error_of('SELECT next_ids(1, 2)');
SELECT is_called AS other_is_called FROM next_id_seq;
DROP SEQUENCE public.next_id_seq;
SELECT sqlstate_ AS without_the_other FROM error_of('SELECT next_id()');
ALTER SEQUENCE hostile.moved RENAME TO next_id_seq;
ALTER SEQUENCE hostile.next_id_seq SET SCHEMA public;
SELECT next_id() > 0 AS taken_when_it_is_back;
