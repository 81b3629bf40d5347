\set newest 'SELECT id, snowflake_timestamp(id) AS made FROM insta5.photos\nWHERE id >= snowflake_min_id(now() - interval ''1 hour'')\nORDER BY id DESC LIMIT 4'
\echo :bold'3. Newest first, with the primary key alone':plain
\echo
:newest;
EXPLAIN (COSTS OFF)
:newest;

\set ECHO none
CREATE FUNCTION plan_of(query text, OUT plan text) LANGUAGE plpgsql AS
  $$ BEGIN EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan; END $$;
CALL check_that(plan_of(:'newest') ~ 'Index.*photos_pkey', 'this plan does not use the primary key');
SELECT min(id) AS last FROM (:newest) AS page \gset
\set ECHO queries

\echo 'IDs sort by time, so there is no created_at column and no second index. The'
\echo 'next page begins where this one ends, however many rows were added since:'
\echo
SELECT id, snowflake_timestamp(id) AS made FROM insta5.photos
WHERE id < :last ORDER BY id DESC LIMIT 4;
