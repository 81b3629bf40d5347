--
-- Rollback, savepoints, and a sequence that changes while it is in use
--
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup
\pset format unaligned
\pset tuples_only on

CREATE TABLE taken (n serial, id bigint);
CREATE SEQUENCE changing MAXVALUE 1125899906841599;
-- far ahead of the clock, which would hide what is forgotten
SET snowflake.max_lead = '30d';
SELECT setval('changing', (snowflake_min_id(now() + interval '1 day') >> 23) * 1024) > 0;

-- a rollback takes no ID back
SELECT next_id(5, 'changing') AS before \gset
BEGIN;
SELECT next_id(5, 'changing') - :before;
ROLLBACK;
SELECT next_id(5, 'changing') - :before;
BEGIN;
SAVEPOINT s;
SELECT next_id(5, 'changing') - :before;
ROLLBACK TO s;
SELECT next_id(5, 'changing') - :before;
RELEASE s;
SELECT next_id(5, 'changing') - :before;
COMMIT;
SELECT next_id(5, 'changing') - :before;

-- the file is replaced in a subtransaction that fails
BEGIN;
SELECT next_id(5, 'changing') - :before;
SAVEPOINT s;
ALTER SEQUENCE changing RESTART;
SELECT snowflake_timestamp(next_id(5, 'changing')) < now() + interval '1 minute' AS restarted;
SELECT snowflake_timestamp(next_id(5, 'changing')) < now() + interval '1 minute' AS restarted;
ROLLBACK TO s;
SELECT next_id(5, 'changing') - :before;
COMMIT;
SELECT next_id(5, 'changing') - :before;

-- in one that succeeds within a transaction that fails
BEGIN;
SAVEPOINT s;
ALTER SEQUENCE changing RESTART;
SELECT snowflake_timestamp(next_id(5, 'changing')) < now() + interval '1 minute' AS restarted;
RELEASE s;
SELECT snowflake_timestamp(next_id(5, 'changing')) < now() + interval '1 minute' AS restarted;
ROLLBACK;
SELECT next_id(5, 'changing') - :before;

-- made and dropped in subtransactions, again and again
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
            RAISE 'not growing';
        END IF;
        last := id;
    END LOOP;
END $$;

-- made, used and dropped, in one transaction
BEGIN;
CREATE SEQUENCE passing MAXVALUE 1125899906841599;
SELECT next_id(5, 'passing') > 0;
DROP SEQUENCE passing;
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''passing'')');
COMMIT;
-- dropped after use by OID, and another of the same name
CREATE SEQUENCE passing MAXVALUE 1125899906841599;
SELECT 'passing'::regclass::oid AS old \gset
SELECT next_id(5, :old) > 0;
DROP SEQUENCE passing;
CREATE SEQUENCE passing MAXVALUE 1125899906841599;
SELECT sqlstate_, regexp_replace(message, '\d+', 'N') FROM error_of('SELECT next_id(5, ' || :old || ')');
SELECT next_id(5, 'passing') > 0;
DROP SEQUENCE passing;

-- TRUNCATE ... RESTART IDENTITY
CREATE TABLE owned (id bigserial);
ALTER SEQUENCE owned_id_seq MAXVALUE 1125899906841599;
INSERT INTO owned VALUES (next_id(5, 'owned_id_seq'));
BEGIN;
TRUNCATE owned RESTART IDENTITY;
INSERT INTO owned VALUES (next_id(5, 'owned_id_seq'));
SELECT last_value % 1024 FROM owned_id_seq;
ROLLBACK;
INSERT INTO owned VALUES (next_id(5, 'owned_id_seq'));
SELECT count(DISTINCT id), max(id % 1024) FROM owned;
DROP TABLE owned;

-- SET UNLOGGED and back, in the same session
BEGIN;
SELECT next_id(5, 'changing') > 0;
ALTER SEQUENCE changing SET UNLOGGED;
SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''changing'')');
ALTER SEQUENCE changing SET LOGGED;
SELECT next_id(5, 'changing') > 0;
COMMIT;
SELECT next_id(5, 'changing') > 0;

-- a procedure that commits, cursors, exceptions, several sequences by turns
CREATE SEQUENCE other MAXVALUE 1125899906841599;
SELECT setval('other', (snowflake_min_id(now() + interval '2 days') >> 23) * 1024) > 0;
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
SELECT count(*) > 50, count(*) = count(DISTINCT id) FROM taken;
SELECT bool_and(id > before)
FROM (SELECT id, lag(id) OVER (PARTITION BY snowflake_timestamp(id) > now() + interval '36 hours' ORDER BY n) AS before
      FROM taken) t;

-- a holdable cursor and a portal that outlives a savepoint
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT next_id(5, 'changing') > 0 FROM generate_series(1, 3);
FETCH held;
SAVEPOINT s;
FETCH held;
SELECT next_id(5, 'other') > 0;
ROLLBACK TO s;
FETCH held;
COMMIT;
FETCH held;
CLOSE held;

-- in a deferred trigger, at commit
CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM next_id(5, 'changing'); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON taken DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION late();
SELECT last_value AS value FROM changing \gset
INSERT INTO taken (id) VALUES (1);
SELECT last_value - :value FROM changing;

-- next_id() finds its sequence once, and not for each statement of a transaction that has changed something
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
INSERT INTO taken (id) VALUES (next_id());
SELECT scans_of_catalogs() - :before AS scans;
COMMIT;
-- nor for each row that COPY writes, if a trigger calls it, too
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
5
6
7
8
9
10
11
12
13
14
15
16
17
18
19
20
\.
SELECT scans_of_catalogs() - :before < 20 AS few_scans;
COMMIT;
SELECT count(DISTINCT i) FROM copied, LATERAL (VALUES (id), (by_trigger)) AS made (i);
DROP TABLE copied;
DROP FUNCTION take();
-- it notices at once when the sequence gets another name, or the function another schema, in its own transaction and after
BEGIN;
ALTER SEQUENCE next_id_seq RENAME TO renamed;
SELECT sqlstate_ FROM error_of('SELECT next_id()');
ALTER SEQUENCE renamed RENAME TO next_id_seq;
SELECT next_id() > 0;
CREATE SCHEMA elsewhere;
ALTER FUNCTION next_id() SET SCHEMA elsewhere;
SELECT elsewhere.next_id() > 0;
ALTER FUNCTION elsewhere.next_id() SET SCHEMA public;
ALTER SEQUENCE next_id_seq SET SCHEMA elsewhere;
SELECT next_id() > 0;
ALTER SEQUENCE elsewhere.next_id_seq SET SCHEMA public;
SELECT next_id() > 0;
ALTER SEQUENCE next_id_seq RENAME TO renamed;
COMMIT;
SELECT sqlstate_ FROM error_of('SELECT next_id()');
ALTER SEQUENCE renamed RENAME TO next_id_seq;
SELECT next_id() > 0;
DROP SCHEMA elsewhere;
RESET snowflake.shard;

RESET snowflake.max_lead;
DROP FUNCTION scans_of_catalogs();
DROP TABLE taken;
DROP FUNCTION late();
DROP PROCEDURE in_pieces();
DROP SEQUENCE changing, other;
