\set ECHO none
-- What each test begins with: a schema and roles without what the test before has left, so that no test cleans
-- up.  A test or a section of it says first how its rows are shown: as lines, each with a column's name and its
-- value, or as a table.
\set as_lines '\\pset format unaligned \\pset expanded on \\pset tuples_only on'
\set as_table '\\pset format aligned \\pset expanded off \\pset tuples_only off'
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

-- A statement's error as a row; of a statement that succeeds, what it returns in its first row and column.  What
-- matches the regular expression "changing" differs from run to run and is left out.
CREATE FUNCTION error_of(statement text, changing text DEFAULT '$.')
RETURNS TABLE (sqlstate_ text, message text, detail text, hint text)
LANGUAGE plpgsql AS $$
BEGIN
    IF statement ~ '^(SELECT|EXECUTE|WITH)|RETURNING' THEN
        EXECUTE statement INTO message;
    ELSE
        EXECUTE statement;
    END IF;
    sqlstate_ := '00000';
    RETURN NEXT;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS sqlstate_ = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    message := regexp_replace(message, changing, '...', 'g');
    detail := regexp_replace(detail, changing, '...', 'g');
    RETURN NEXT;
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
\set ECHO all
