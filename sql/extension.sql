-- Installing, moving and removing the extension, and what it is made of
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup

-- Every object has a comment, but for types of arrays and views, which the server makes and since 17
-- makes members.
SELECT pg_describe_object(classid, objid, objsubid) AS object_without_comment
FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
  AND deptype = 'e' AND obj_description(objid, classid::regclass::name) IS NULL
  AND NOT (classid = 'pg_type'::regclass
           AND objid IN (SELECT typarray FROM pg_type UNION SELECT oid FROM pg_type WHERE typrelid <> 0));

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
SELECT title, ids.snowflake_shard(id) AS shard FROM photos ORDER BY id;
SELECT pg_get_expr(adbin, adrelid) AS stored_default FROM pg_attrdef WHERE adrelid = 'photos'::regclass;

-- It does not go while a table needs it, and leaves the IDs when it goes.
DROP EXTENSION snowflake;
DROP EXTENSION snowflake CASCADE;
SELECT count(*) AS rows, count(DISTINCT id) AS ids FROM photos;
DROP TABLE photos;

-- It can be created in another schema.
CREATE EXTENSION snowflake SCHEMA ids;
SELECT ids.snowflake_shard(ids.next_id(7)) AS shard;
DROP EXTENSION snowflake;
DROP SCHEMA ids;
