/* admin/end.sql */

-- From here on, nothing of the extension "snowflake" is needed, in whose schema others may
-- have created functions and operators.
SET LOCAL search_path = pg_catalog, snowflake_admin, pg_temp;

-- What each internal function is for, the comment above it says, where it is created.
DO $$
DECLARE
	name regprocedure;
BEGIN
	FOR name IN SELECT object FROM snowflake_admin.extension_members()
		WHERE extension = 'snowflake_admin' AND class = 'pg_proc'::regclass
			AND obj_description(object, 'pg_proc') IS NULL
	LOOP
		EXECUTE format('COMMENT ON ROUTINE %s IS %L', name,
			'for other functions and procedures of snowflake_admin');
	END LOOP;
END
$$;
