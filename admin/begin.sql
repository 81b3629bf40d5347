/* snowflake_admin--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_admin" to load this file. \quit

-- The beginning of the script that make concatenates from the files of admin/: the schema of all
-- internals, and where names are looked up.  Knows no function but those of PostgreSQL.
--
-- No name is looked up in the caller's search_path.  Functions have their own.  Procedures that
-- commit may not have one, nor may those that look whether they could, because PostgreSQL takes a
-- SET clause for a transaction block.  Of these, next_transaction() sets it in each transaction of
-- those that commit, whose declarations, which are compiled before that, name the schema of types
-- that are no keywords.  The others qualify all names.

-- Only what the documents name is in the schema that the user has chosen.  All else is
-- here, where only a superuser may create objects.  Everybody may use it, because the
-- functions run with their caller's rights.
CREATE SCHEMA snowflake_admin;
COMMENT ON SCHEMA snowflake_admin IS 'for the functions and procedures of the extension snowflake_admin';
GRANT USAGE ON SCHEMA snowflake_admin TO PUBLIC;

-- This script looks up names in these schemas, and not in the one that the user has chosen,
-- where others may have created objects.  What it creates there, it names with that schema.
-- Of these schemas, others may have created objects in that of "snowflake", which is here
-- for its types.  So what this script runs or binds, as in bodies that are BEGIN ATOMIC, obeys
-- the rule at the head of snowflake's own script.
SELECT pg_catalog.set_config('search_path',
	pg_catalog.format('pg_catalog, snowflake_admin, %I, pg_temp', nspname), true)
FROM pg_catalog.pg_extension JOIN pg_catalog.pg_namespace ON pg_namespace.oid OPERATOR(pg_catalog.=) extnamespace
WHERE extname OPERATOR(pg_catalog.=) 'snowflake'::pg_catalog.name;
