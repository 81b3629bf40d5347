-- Rollback, savepoints, and a sequence that changes while it is in use
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_lines

-- The sequence is far ahead of the clock, which would hide what is forgotten.
SET snowflake.max_lead = '30d';
CREATE TABLE taken (n serial, id bigint);
CREATE SEQUENCE changing MAXVALUE 1125899906841599;
SELECT setval('changing', (snowflake_min_id(now() + interval '1 day') >> 23) * 1024) AS start \gset

-- A rollback takes no ID back: each ID is larger by 1 than the one before.
SELECT next_id(5, 'changing') AS first \gset
BEGIN;
SELECT next_id(5, 'changing') - :first AS in_transaction;
SAVEPOINT s;
SELECT next_id(5, 'changing') - :first AS after_savepoint;
ROLLBACK TO s;
SELECT next_id(5, 'changing') - :first AS after_rollback_to_savepoint;
RELEASE s;
SELECT next_id(5, 'changing') - :first AS after_release;
ROLLBACK;
SELECT next_id(5, 'changing') - :first AS after_rollback;

-- RESTART in a subtransaction that is rolled back: the sequence goes on after its last ID.
PREPARE restarted AS SELECT snowflake_timestamp(next_id(5, 'changing')) < now() + interval '1 minute' AS restarted;
BEGIN;
SELECT next_id(5, 'changing') - :first AS before_restart;
SAVEPOINT s;
ALTER SEQUENCE changing RESTART;
EXECUTE restarted;
EXECUTE restarted;
ROLLBACK TO s;
SELECT next_id(5, 'changing') - :first AS after_restart_is_undone;
-- So it does where the subtransaction succeeds and the transaction is rolled back.
ALTER SEQUENCE changing RESTART;
EXECUTE restarted;
RELEASE s;
EXECUTE restarted;
ROLLBACK;
SELECT next_id(5, 'changing') - :first AS after_rollback;

-- Subtransactions create, restart and drop another sequence, and fail: the IDs of this one grow.
DO $$
DECLARE
    last bigint := 0;
    id bigint;
BEGIN
    FOR i IN 1..50 LOOP
        BEGIN
            CREATE SEQUENCE passing MAXVALUE 1125899906841599;
            id := next_id(5, 'passing');
            IF i % 2 = 0 THEN
                ALTER SEQUENCE passing RESTART;
                id := next_id(5, 'passing');
            END IF;
            IF i % 3 = 0 THEN
                DROP SEQUENCE passing;
                id := next_id(5, 'changing');
            END IF;
            RAISE EXCEPTION 'back';
        EXCEPTION WHEN raise_exception THEN
            NULL;
        END;
        id := next_id(5, 'changing');
        IF id <= last THEN
            RAISE 'an ID is not larger than the one before';
        END IF;
        last := id;
    END LOOP;
END $$;

-- A sequence is created, used and dropped in one transaction.
BEGIN;
CREATE SEQUENCE passing MAXVALUE 1125899906841599;
SELECT next_id(5, 'passing') > 0 AS taken_before_drop;
DROP SEQUENCE passing;
SELECT sqlstate_ AS after_drop FROM error_of('SELECT next_id(5, ''passing'')');
COMMIT;
-- One that was used by its OID is dropped, and another of the same name is created.
CREATE SEQUENCE passing MAXVALUE 1125899906841599;
SELECT 'passing'::regclass::oid AS old \gset
SELECT next_id(5, :old) > 0 AS taken_by_oid;
DROP SEQUENCE passing;
CREATE SEQUENCE passing MAXVALUE 1125899906841599;
SELECT sqlstate_ AS error_by_oid, regexp_replace(message, '\d+', 'N') AS message
FROM error_of('SELECT next_id(5, ' || :old || ')');
SELECT next_id(5, 'passing') > 0 AS taken_by_name;

-- TRUNCATE ... RESTART IDENTITY begins with the first number; rolled back, it goes on with the second.
CREATE TABLE owned (id bigserial);
ALTER SEQUENCE owned_id_seq MAXVALUE 1125899906841599;
INSERT INTO owned VALUES (next_id(5, 'owned_id_seq')) RETURNING snowflake_sequence_number(id) AS number_before;
BEGIN;
TRUNCATE owned RESTART IDENTITY;
INSERT INTO owned VALUES (next_id(5, 'owned_id_seq')) RETURNING snowflake_sequence_number(id) AS number_after_restart;
ROLLBACK;
INSERT INTO owned VALUES (next_id(5, 'owned_id_seq')) RETURNING snowflake_sequence_number(id) AS number_after_rollback;

-- SET UNLOGGED is noticed in the session that used the sequence, and SET LOGGED, too.
BEGIN;
SELECT next_id(5, 'changing') AS id \gset
ALTER SEQUENCE changing SET UNLOGGED;
SELECT * FROM error_of('SELECT next_id(5, ''changing'')');
ALTER SEQUENCE changing SET LOGGED;
SELECT next_id(5, 'changing') > 0 AS taken_when_logged;
COMMIT;
SELECT next_id(5, 'changing') > 0 AS taken_after_commit;

-- A procedure that commits and rolls back, cursors and exceptions take IDs of two sequences by turns.
CREATE SEQUENCE other MAXVALUE 1125899906841599;
SELECT setval('other', (snowflake_min_id(now() + interval '2 days') >> 23) * 1024) AS start \gset
CREATE PROCEDURE in_pieces() LANGUAGE plpgsql AS $$
DECLARE
    c refcursor;
    a bigint;
BEGIN
    FOR i IN 1..20 LOOP
        INSERT INTO taken (id) VALUES (next_id(5, 'changing')), (next_id(5, 'other'));
        OPEN c FOR SELECT next_id(5, 'other') FROM generate_series(1, 5);
        FETCH c INTO a;
        INSERT INTO taken (id) VALUES (a);
        IF i % 2 = 0 THEN CLOSE c; END IF;
        c := NULL;
        BEGIN
            INSERT INTO taken (id) VALUES (next_id(5, 'changing'));
            PERFORM 1 / (i % 4);
        EXCEPTION WHEN division_by_zero THEN
            INSERT INTO taken (id) VALUES (next_id(5, 'other'));
        END;
        IF i % 3 = 0 THEN COMMIT; ELSIF i % 7 = 0 THEN ROLLBACK; END IF;
    END LOOP;
END $$;
CALL in_pieces();
SELECT count(*) FILTER (WHERE NOT of_other) AS ids_of_changing, count(*) FILTER (WHERE of_other) AS ids_of_other,
       count(*) FILTER (WHERE id <= before) AS not_larger_than_the_one_before
FROM (SELECT *, lag(id) OVER (PARTITION BY of_other ORDER BY n) AS before
      FROM (SELECT *, snowflake_timestamp(id) > now() + interval '36 hours' AS of_other FROM taken) AS t) AS t;

-- A cursor WITH HOLD takes the rest of its IDs at COMMIT, and a savepoint does not end it.
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT next_id(5, 'changing') > 0 AS taken_by_cursor FROM generate_series(1, 3);
FETCH held;
SAVEPOINT s;
FETCH held;
SELECT next_id(5, 'other') > 0 AS taken_of_other;
ROLLBACK TO s;
FETCH held;
COMMIT;
FETCH held;
\echo :ROW_COUNT rows after the last
CLOSE held;

-- A deferred trigger takes one ID at COMMIT.
CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM next_id(5, 'changing'); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON taken DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION late();
SELECT last_value AS before FROM changing \gset
INSERT INTO taken (id) VALUES (1);
SELECT last_value - :before AS taken_by_trigger FROM changing;

-- next_id() looks for its sequence once, not for each statement of a transaction that has changed something, ...
CREATE FUNCTION scans_of_catalogs() RETURNS bigint LANGUAGE sql AS
$$ SELECT sum(idx_scan)::bigint FROM pg_stat_xact_sys_tables WHERE relname IN ('pg_depend', 'pg_extension') $$;
SET snowflake.shard = 5;
INSERT INTO taken (id) VALUES (next_id());
BEGIN;
DELETE FROM taken WHERE id = 1;
INSERT INTO taken (id) VALUES (next_id());
SELECT scans_of_catalogs() AS before \gset
INSERT INTO taken (id) VALUES (next_id());
INSERT INTO taken (id) VALUES (next_id());
SELECT scans_of_catalogs() - :before AS scans_for_two_statements;
COMMIT;
-- ... nor for each row that COPY writes where a trigger calls it, too.
CREATE TABLE copied (n int, id bigint DEFAULT next_id(), by_trigger bigint);
CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.by_trigger := next_id(); RETURN NEW; END $$;
CREATE TRIGGER take BEFORE INSERT ON copied FOR EACH ROW EXECUTE FUNCTION take();
BEGIN;
INSERT INTO copied (n) VALUES (0);
SELECT scans_of_catalogs() AS before \gset
COPY copied (n) FROM stdin;
1
2
3
4
\.
SELECT scans_of_catalogs() - :before < 4 AS fewer_scans_than_rows;
COMMIT;
SELECT count(*) AS ids, count(DISTINCT made) AS different_ids FROM copied,
       LATERAL (VALUES (id), (by_trigger)) AS m (made);

-- next_id() notices at once that its sequence is renamed, or that one of the two is in another schema, ...
BEGIN;
ALTER SEQUENCE next_id_seq RENAME TO renamed;
SELECT * FROM error_of('SELECT next_id()');
ALTER SEQUENCE renamed RENAME TO next_id_seq;
SELECT next_id() > 0 AS taken_with_the_old_name;
CREATE SCHEMA elsewhere;
ALTER FUNCTION next_id() SET SCHEMA elsewhere;
SELECT elsewhere.next_id() > 0 AS taken_by_moved_function;
ALTER FUNCTION elsewhere.next_id() SET SCHEMA public;
ALTER SEQUENCE next_id_seq SET SCHEMA elsewhere;
SELECT next_id() > 0 AS taken_of_moved_sequence;
ALTER SEQUENCE elsewhere.next_id_seq SET SCHEMA public;
SELECT next_id() > 0 AS taken_of_returned_sequence;
ALTER SEQUENCE next_id_seq RENAME TO renamed;
COMMIT;
-- ... in the transaction and after it.
SELECT sqlstate_ AS renamed_after_commit FROM error_of('SELECT next_id()');
ALTER SEQUENCE renamed RENAME TO next_id_seq;
SELECT next_id() > 0 AS taken_with_the_old_name;
