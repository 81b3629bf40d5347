/* admin/end.sql */

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
