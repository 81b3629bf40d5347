--
-- bench/setup.sql
--    What bench/run compares, and how it measures.
--
CREATE EXTENSION snowflake;
CREATE SCHEMA bench;

CREATE SEQUENCE bench.plain;
CREATE SEQUENCE bench.cached CACHE 32;
CREATE SEQUENCE bench.ticking;
CREATE SEQUENCE bench.table_id_seq;

-- Instagram's function, as published: with now(), as it is usually quoted, and
-- with clock_timestamp().
CREATE FUNCTION bench.instagram_now(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('bench.table_id_seq') % 1024 INTO seq_id;
    SELECT FLOOR(EXTRACT(EPOCH FROM now()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END $$;

CREATE FUNCTION bench.instagram_clock(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('bench.table_id_seq') % 1024 INTO seq_id;
    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END $$;

CREATE TABLE bench.result (measure text, candidate text, round int, usec float8);

-- Time of a command in microseconds a row.
CREATE FUNCTION bench.time_of(command text, n bigint) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
    start timestamptz := clock_timestamp();
BEGIN
    EXECUTE command;
    RETURN extract(epoch FROM clock_timestamp() - start) * 1e6 / n;
END $$;

-- Calls in a statement that does nothing else, by turns.  The empty call is
-- the cheapest function of a bigint.
CREATE PROCEDURE bench.calls(rounds int) LANGUAGE plpgsql AS $$
DECLARE
    n bigint := 2000000;
    small bigint := 100000;
    empty float8;
    candidate text;
    call text;
    cost float8;
BEGIN
    -- What the lead allows is a burst; beyond it the layout sets the pace.
    SET snowflake.max_lead = '1h';
    FOR round IN 0..rounds LOOP     -- round 0 warms up
        empty := bench.time_of(format('SELECT count(int8up(b)) FROM generate_series(1, %s) a, generate_series(1, 1000::bigint) b', n / 1000), n);
        FOR candidate, call IN VALUES
            ('nextval()', 'nextval(''bench.plain'')'),
            ('nextval(), CACHE 32', 'nextval(''bench.cached'')'),
            ('next_id()', 'next_id(5, ''bench.ticking'')'),
            ('Instagram''s function', 'bench.instagram_clock()')
        LOOP
            cost := bench.time_of(format('SELECT count(%s) FROM generate_series(1, %s) a, generate_series(1, 1000::bigint) b', call,
                                         CASE WHEN candidate LIKE 'Inst%' THEN small ELSE n END / 1000),
                                  CASE WHEN candidate LIKE 'Inst%' THEN small ELSE n END);
            IF round > 0 THEN
                INSERT INTO bench.result VALUES ('call', candidate, round, cost - empty);
            END IF;
        END LOOP;
        COMMIT;
    END LOOP;
    RESET snowflake.max_lead;
END $$;

-- The same rows into the same kind of table, by turns.
CREATE TABLE bench.t_identity (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int);
CREATE TABLE bench.t_next_id (id bigint PRIMARY KEY DEFAULT next_id(5), n int);
CREATE TABLE bench.t_instagram (id bigint PRIMARY KEY DEFAULT bench.instagram_clock(), n int);

CREATE PROCEDURE bench.inserts(rounds int) LANGUAGE plpgsql AS $$
DECLARE
    n bigint := 1000000;
    candidate text;
    into_table text;
    cost float8;
BEGIN
    FOR round IN 0..rounds LOOP
        FOR candidate, into_table IN VALUES
            ('IDENTITY', 'bench.t_identity'), ('next_id()', 'bench.t_next_id'),
            ('Instagram''s function', 'bench.t_instagram')
        LOOP
            EXECUTE 'TRUNCATE ' || into_table;
            COMMIT;
            cost := bench.time_of(format('INSERT INTO %s (n) SELECT g FROM generate_series(1, %s) g', into_table, n), n);
            COMMIT;
            IF round > 0 THEN
                INSERT INTO bench.result VALUES ('insert', candidate, round, cost);
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- Medians, and ratios to one of the candidates, taken round by round.
CREATE FUNCTION bench.report(wanted text, base text)
RETURNS TABLE (candidate text, "ns each" text, "times the base" text) LANGUAGE sql AS $$
    SELECT r.candidate,
           format('%s [%s..%s]', round(1000 * percentile_cont(0.5) WITHIN GROUP (ORDER BY r.usec)),
                  round(1000 * min(r.usec)), round(1000 * max(r.usec))),
           format('%s [%s..%s]', round((percentile_cont(0.5) WITHIN GROUP (ORDER BY r.usec / b.usec))::numeric, 2),
                  round(min(r.usec / b.usec)::numeric, 2), round(max(r.usec / b.usec)::numeric, 2))
    FROM bench.result r
    JOIN bench.result b ON b.measure = r.measure AND b.round = r.round AND b.candidate = base
    WHERE r.measure = wanted
    GROUP BY r.candidate
    ORDER BY percentile_cont(0.5) WITHIN GROUP (ORDER BY r.usec)
$$;
