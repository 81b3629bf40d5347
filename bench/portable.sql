--
-- bench/portable.sql
--    What a call costs with the portable version: the median of five rounds in
--    one session, net of an empty call.
--
-- For psql, in an empty database.
--
CREATE SCHEMA portable;
SET search_path = portable;
\ir ../portable/snowflake.sql
SET search_path = public;
CREATE EXTENSION snowflake;

CREATE SEQUENCE s;
\ir instagram.sql

CREATE TABLE cost (round int, call text, cost float8);
SELECT format($$INSERT INTO cost
    SELECT %s, %L, extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1e9 / count(%s)
    FROM generate_series(1, 30000) g$$, round, call, call)
FROM generate_series(1, 5) round,
     unnest(ARRAY['g', 'next_id(5)', 'nextval(''s'')', 'insta5.next_id()', 'portable.next_id(5)']) call \gexec

-- On a busy machine an empty call can take the longer.
SELECT call, round(percentile_cont(0.5) WITHIN GROUP (ORDER BY net)) AS ns,
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY net / plain)::numeric, 1) AS times_nextval
FROM (SELECT c.call, greatest(c.cost - e.cost, 1) AS net, greatest(n.cost - e.cost, 1) AS plain
      FROM cost c JOIN cost e ON e.call = 'g' AND e.round = c.round
                  JOIN cost n ON n.call = 'nextval(''s'')' AND n.round = c.round
      WHERE c.call <> 'g') rounds
GROUP BY call ORDER BY call;
