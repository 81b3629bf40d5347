\echo :bold'4. Instagram\'s own function beside it':plain
\echo
SET client_min_messages = warning;
\ir ../../../bench/instagram.sql
\echo
\echo 'It takes the number and the time in two steps, and another session may come in'
\echo 'between. 32 sessions take 800,000 IDs from each function:'
\echo
\set ECHO none
CREATE UNLOGGED TABLE made (by text, id bigint);
\! cat made.pgbench
\! for by in 'insta5.next_id()' 'next_id(5)'; do echo "$by:"; pgbench -n -j 2 -c 32 -t 25 -D by="$by" -f made.pgbench | grep -E 'processed|^tps'; done
\set ECHO queries
\echo
SELECT by, count(*) AS ids, count(*) - count(DISTINCT id) AS duplicates
FROM made GROUP BY by ORDER BY by DESC;
\set ECHO none
SELECT count(*) AS ids, count(DISTINCT id) AS distinct_ids FROM made WHERE by = 'next_id(5)' \gset
SELECT count(*) AS made FROM made \gset
CALL check_that(:made = 1600000, 'both functions should have made 800,000 IDs');
CALL check_that(:ids = 800000 AND :distinct_ids = :ids, 'next_id() should have made 800,000 IDs, none of them twice');
\echo 'Whether Instagram''s function has duplicates depends on the scheduler. In a burst'
\echo 'beyond 1,024 IDs a millisecond, the times in the IDs of next_id() run ahead of the'
\echo 'clock, by one second at most.'
\echo
