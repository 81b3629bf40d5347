\echo :bold'5. A crash':plain
\echo
SELECT next_id(5) AS before;
\set ECHO none
\gset
SELECT pg_postmaster_start_time() AS started \gset
\echo '$ pg_ctl stop -m immediate'
\! pg_ctl -D "$PGHOST/data" stop -m immediate >/dev/null
\echo '$ pg_ctl start'
\! pg_ctl -D "$PGHOST/data" -l "$PGHOST/server.log" start >/dev/null
\echo
\c
\set ECHO queries
INSERT INTO insta5.photos (caption) VALUES ('after the crash') RETURNING id;
\set ECHO none
SELECT max(id) AS after FROM insta5.photos \gset
CALL check_that(pg_postmaster_start_time() <> :'started', 'the server should have started again');
CALL check_that(:after > :before, 'the ID after the crash should be larger than the one before');
\echo 'It is larger, although no row had the ID that came before the crash.'
\echo
