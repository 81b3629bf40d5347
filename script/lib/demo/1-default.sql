\set ECHO none
CREATE PROCEDURE check_that(it_holds boolean, fault text) LANGUAGE plpgsql AS
  'BEGIN ASSERT it_holds, fault; END';
\set ECHO queries
\echo :bold'1. An ID as a column default':plain
\echo
CREATE EXTENSION snowflake;
CREATE SCHEMA insta5;
CREATE TABLE insta5.photos (
  id bigint PRIMARY KEY DEFAULT next_id(5),
  caption text, session int, n int);
INSERT INTO insta5.photos (caption) VALUES ('lighthouse'), ('cat')
  RETURNING id, snowflake_timestamp(id), snowflake_shard(id) AS shard,
            snowflake_sequence_number(id) AS sequence;

\echo 'Each ID holds its time to the millisecond, the shard number from the column'
\echo 'default, and a sequence number. The bits and the epoch are Instagram''s. A'
\echo 'second shard in the same database differs in one number:'
\echo
CREATE SCHEMA insta6;
CREATE TABLE insta6.photos (
  id bigint PRIMARY KEY DEFAULT next_id(6),
  caption text, session int, n int);
CREATE VIEW photos AS
  SELECT * FROM insta5.photos UNION ALL SELECT * FROM insta6.photos;
\echo
