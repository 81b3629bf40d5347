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
CREATE TABLE cost (round int, call text, cost float8);
SELECT format($$INSERT INTO cost
    SELECT %s, %L, extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1e9 / count(%s)
    FROM generate_series(1, 30000) g$$, round, call, call)
FROM generate_series(1, 5) round,
     unnest(ARRAY['g', 'next_id(5)', 'nextval(''s'')', 'portable.next_id(5)']) call \gexec

SELECT c.call, round(percentile_cont(0.5) WITHIN GROUP (ORDER BY c.cost - empty.cost)) AS ns, count(*) AS rounds
FROM cost c JOIN cost empty USING (round)
WHERE empty.call = 'g' AND c.call <> 'g'
GROUP BY c.call ORDER BY c.call;
