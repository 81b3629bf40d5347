--
-- Installing, moving and removing the extension, and what it is made of
--
\getenv srcdir PG_ABS_SRCDIR
\set setup :srcdir '/sql/setup.sql'
\i :setup
\pset format unaligned
\pset tuples_only on

-- every object has a comment (types of arrays and views, members since 17, are made by the server)
SELECT pg_describe_object(classid, objid, objsubid) AS object
FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
  AND deptype = 'e' AND obj_description(objid, classid::regclass::name) IS NULL
  AND NOT (classid = 'pg_type'::regclass
           AND objid IN (SELECT typarray FROM pg_type UNION SELECT oid FROM pg_type WHERE typrelid <> 0));

-- it moves with the extension, and whatever the search path is, defaults stay
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text);
INSERT INTO photos (title) VALUES ('before');
CREATE SCHEMA ids;
ALTER EXTENSION snowflake SET SCHEMA ids;
INSERT INTO photos (title) VALUES ('after');
SET search_path = pg_catalog;
INSERT INTO public.photos (title) VALUES ('elsewhere');
SET snowflake.shard = 5;
SELECT ids.next_id() > max(id) AS larger FROM public.photos;
RESET snowflake.shard;
RESET search_path;
SELECT title, ids.snowflake_shard(id) FROM photos ORDER BY id;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'photos'::regclass;

-- it does not go while a table needs it, and leaves the IDs when it goes
DROP EXTENSION snowflake;
DROP EXTENSION snowflake CASCADE;
SELECT count(*), count(DISTINCT id) AS ids FROM photos;
\pset tuples_only off
\d photos
\pset tuples_only on
DROP TABLE photos;

-- directly into another schema
CREATE EXTENSION snowflake SCHEMA ids;
SELECT ids.snowflake_shard(ids.next_id(7));
DROP EXTENSION snowflake;
DROP SCHEMA ids;
