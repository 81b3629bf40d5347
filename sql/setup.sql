\set ECHO none
--
-- What each test begins with, so that it also runs alone
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
-- of a run that failed
DROP ROLE IF EXISTS regress_sf_app, regress_sf_owner, "regress sf second";
RESET client_min_messages;
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';

-- a statement's error as a row
CREATE OR REPLACE FUNCTION error_of(statement text)
RETURNS TABLE (sqlstate_ text, message text, detail text, hint text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    sqlstate_ := 'none';
    message := 'no error';
    RETURN NEXT;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS sqlstate_ = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN NEXT;
END $$;

-- a statement's error as a person reads it, with its SQLSTATE
CREATE OR REPLACE PROCEDURE show_error(statement text) LANGUAGE plpgsql AS $$
DECLARE
    error record;
BEGIN
    SELECT * INTO error FROM error_of(statement);
    RAISE INFO '%', concat_ws(E'\n', error.sqlstate_ || ': ' || error.message,
        'DETAIL:  ' || nullif(error.detail, ''), 'HINT:  ' || nullif(error.hint, ''));
END $$;
\set ECHO all
