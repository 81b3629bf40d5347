\set ECHO none
-- What each test begins with: a schema and roles without what the test before has left, so that no test cleans
-- up.  Where most queries return one row, a test turns \x, \t and \a on: a line has a column's name and its value.
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS public, elsewhere, hostile, ids, as_bigint, as_snowflake CASCADE;
CREATE SCHEMA public;
GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE EXTENSION snowflake;
DROP ROLE IF EXISTS regress_sf_app, regress_sf_owner, "regress sf second";
RESET client_min_messages;
-- The rows themselves show how many there are.
\pset footer off
\pset fieldsep ': '
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';

-- A statement's error as a row
CREATE FUNCTION error_of(statement text)
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

-- What each statement returns in its first row and column, or its error.
CREATE FUNCTION results(VARIADIC statements text[]) RETURNS TABLE (statement text, result text)
LANGUAGE plpgsql AS $$
BEGIN
    FOREACH statement IN ARRAY statements LOOP
        BEGIN
            result := '';
            IF statement ~ '^(SELECT|EXECUTE|WITH)|RETURNING' THEN
                EXECUTE statement INTO result;
            ELSE
                EXECUTE statement;
            END IF;
        EXCEPTION WHEN OTHERS THEN
            result := SQLSTATE || ': ' || SQLERRM;
        END;
        RETURN NEXT;
    END LOOP;
END $$;

-- Plan for parallel workers wherever they are allowed
CREATE PROCEDURE prefer_parallel(preferred boolean DEFAULT true) LANGUAGE sql AS $$
    SELECT set_config(name, CASE WHEN preferred THEN '0' ELSE boot_val END, false) FROM pg_settings
    WHERE name IN ('parallel_setup_cost', 'parallel_tuple_cost', 'min_parallel_table_scan_size') $$;

CREATE FUNCTION plans_workers(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN plan::text ~ '"Workers Planned": 2';
END $$;

-- A statement's error as psql prints it, with its SQLSTATE.  What matches the regular expression
-- "changing" differs from run to run and is left out.
CREATE PROCEDURE show_error(statement text, changing text DEFAULT '$.')
LANGUAGE plpgsql AS $$
DECLARE
    error record;
BEGIN
    SELECT * INTO error FROM error_of(statement);
    RAISE INFO '%', regexp_replace(concat_ws(E'\n', error.sqlstate_ || ': ' || error.message,
        'DETAIL:  ' || nullif(error.detail, ''), 'HINT:  ' || nullif(error.hint, '')), changing, '...', 'g');
END $$;
\set ECHO all
