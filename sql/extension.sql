-- Installing, moving and removing the extension
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_lines

-- The library says which version it is, the script's and a third number.
SELECT snowflake_version() LIKE extversion || '._%' AS library_fits_script FROM pg_extension WHERE extname = 'snowflake';

-- The extension moves to another schema.  Defaults stay, whatever the search path is.
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text);
INSERT INTO photos (title) VALUES ('before');
CREATE SCHEMA ids;
ALTER EXTENSION snowflake SET SCHEMA ids;
INSERT INTO photos (title) VALUES ('after');
SET search_path = pg_catalog;
INSERT INTO public.photos (title) VALUES ('elsewhere');
SET snowflake.shard = 5;
SELECT ids.next_id() > max(id) AS next_is_larger FROM public.photos;
RESET snowflake.shard;
RESET search_path;
SELECT string_agg(title || ' ' || ids.snowflake_shard(id), ', ' ORDER BY id) AS photos FROM photos;
SELECT pg_get_expr(adbin, adrelid) AS stored_default FROM pg_attrdef WHERE adrelid = 'photos'::regclass;

-- It leaves the IDs when it goes.
DROP EXTENSION snowflake CASCADE;
SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM photos;

-- It can be created in another schema.
CREATE EXTENSION snowflake SCHEMA ids;
SELECT ids.snowflake_shard(ids.next_id(7)) AS shard_in_another_schema;
DROP EXTENSION snowflake;
