\echo :bold'2. 8 sessions at once':plain
\echo
\echo 'Half of the sessions insert into insta5.photos, half into insta6.photos. Each'
\echo 'runs this script of pgbench''s 1,250 times, and numbers its rows:'
\echo
\! cat photos.pgbench
\echo
\set ECHO none
TRUNCATE insta5.photos;
\! pgbench -n -M prepared -j 2 -c 8 -t 1250 -D n=0 -f photos.pgbench | grep -E 'processed|^tps'
VACUUM ANALYZE insta5.photos, insta6.photos;
\set ECHO queries

\echo
\echo 'An ID is out of order if it is not larger than the one that its session'
\echo 'received before:'
\echo
SELECT count(*) AS photos, count(DISTINCT id) AS distinct_ids,
       count(*) FILTER (WHERE id <= before) AS out_of_order
FROM (SELECT id,
             lag(id) OVER (PARTITION BY session ORDER BY n) AS before
      FROM photos) AS received;
\set ECHO none
\gset
CALL check_that(:photos = 100000 AND :distinct_ids = :photos AND :out_of_order = 0,
  'there should be 100,000 photos with as many IDs, all in order');
