\set ECHO none
\echo :bold'6. What it costs':plain
\echo
CREATE SEQUENCE plain_seq;
CREATE TABLE candidate (nr int, name text, call text, id text);
INSERT INTO candidate VALUES (0, 'empty', 'int8up(i)', NULL),
  (1, 'next_id(5)', 'next_id(5)', 'DEFAULT next_id(5)'),
  (2, 'nextval(), IDENTITY column', 'nextval(''plain_seq'')', 'GENERATED ALWAYS AS IDENTITY'),
  (3, 'Instagram''s function', 'insta5.next_id()', 'DEFAULT insta5.next_id()');
SELECT format('CREATE TABLE timed_%s (id bigint %s, n int)', nr, id), format('CREATE INDEX ON timed_%s (id)', nr)
FROM candidate WHERE id IS NOT NULL \gexec

CREATE TABLE timed (what text, nr int, ns float8);
CREATE PROCEDURE measure(what text, nr int, statement text) LANGUAGE plpgsql AS $$
DECLARE
  begun timestamptz := clock_timestamp();
BEGIN
  EXECUTE statement;
  INSERT INTO timed VALUES (what, nr, extract(epoch FROM clock_timestamp() - begun) * 1e9 / 50000);
  COMMIT;
END $$;

-- A call is quicker than the layout's pace of 1,024,000 IDs a second.
SET snowflake.max_lead = '1h';
DO $$
DECLARE
  c candidate;
BEGIN
  FOR round IN 1..7 LOOP
    -- The one that is first in this round is last in the next.
    FOR c IN SELECT * FROM candidate ORDER BY (nr - round) & 3 LOOP
      CALL measure('call', c.nr, format('SELECT count(%s) FROM generate_series(1, 50000::bigint) AS i', c.call));
      CONTINUE WHEN c.id IS NULL;
      EXECUTE format('TRUNCATE timed_%s', c.nr);
      COMMIT;
      CALL measure('row', c.nr, format('INSERT INTO timed_%s (n) SELECT generate_series(1, 50000)', c.nr));
    END LOOP;
  END LOOP;
END $$;

WITH median AS (
  SELECT what, nr, percentile_disc(0.5) WITHIN GROUP (ORDER BY ns) AS ns FROM timed GROUP BY what, nr),
net AS (
  SELECT name, nr, c.ns - (SELECT ns FROM median WHERE nr = 0) AS call, r.ns AS row
  FROM candidate JOIN median c USING (nr) JOIN median r USING (nr) WHERE (c.what, r.what) = ('call', 'row'))
SELECT name AS "by", call::int AS "ns a call", round((call / first_value(call) OVER (ORDER BY nr))::numeric, 1) AS "times",
  round(row::numeric / 1000, 2) AS "us a row", round((row / first_value(row) OVER (ORDER BY nr))::numeric, 1) AS "times"
FROM net ORDER BY nr;

\echo 'Medians of 7 rounds of 50,000 calls and as many rows. A call is net of an empty'
\echo 'one. A row with its index costs far more than its ID.'
\echo
