-- Type snowflake: bigint in all but its JSON
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_table

SET jit = off;

-- The type has no operators: it becomes bigint where one is needed, and must not lose an index by that.  So statements
-- are run twice, where ID is bigint, and where ID is snowflake; there is a schema for each.
CREATE SCHEMA as_bigint;
CREATE SCHEMA as_snowflake;

-- The rows that a statement returns, a line a row, or its error
CREATE FUNCTION outcome(statement text, kind text) RETURNS text
SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
DECLARE
    line record;
    lines text[];
BEGIN
    PERFORM set_config('search_path', 'as_' || kind || ', public', true);
    statement := regexp_replace(statement, '(\m|_)ID\M', '\1' || kind, 'g');
    BEGIN
        FOR line IN EXECUTE statement LOOP
            lines := lines || line::text;
        END LOOP;
    EXCEPTION WHEN invalid_cursor_definition THEN
        EXECUTE statement;    -- it returns no rows
    END;
    RETURN coalesce(array_to_string(lines, E'\n'), 'no rows');
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

-- A plan with the numbers of rows that the planner expects, without the type's name, the brackets around casts that do
-- nothing, and costs.  From 17 on the planner leaves IS NOT NULL out for columns that cannot be NULL, but not where
-- max() and min() cast them.
CREATE FUNCTION plan(statement text, kind text) RETURNS text LANGUAGE sql AS $$
    SELECT regexp_replace(regexp_replace(outcome('EXPLAIN ' || statement, kind),
                                         '::(bigint|snowflake)\M|[][()"]|cost=\S+|width=\d+', '', 'g'),
                          '\n *Index Cond: id IS NOT NULL(?=\n|$)|id IS NOT NULL AND ', '', 'g') $$;

-- The statements that fail, or whose rows or, if asked for, plans are not the same in both schemas
CREATE FUNCTION compare(what text, VARIADIC statements text[])
RETURNS TABLE (statement text, compared text, "bigint" text, "snowflake" text) LANGUAGE plpgsql AS $$
BEGIN
    FOREACH statement IN ARRAY statements LOOP
        FOREACH compared IN ARRAY string_to_array(CASE
            WHEN statement ~ '^(SELECT|WITH|INSERT|UPDATE|DELETE|MERGE|EXECUTE)' THEN what ELSE 'rows' END, ' and ')
        LOOP
            IF compared = 'plans' THEN
                "bigint" := plan(statement, 'bigint');
                "snowflake" := plan(statement, 'snowflake');
            ELSE
                "bigint" := outcome(statement, 'bigint');
                "snowflake" := outcome(statement, 'snowflake');
            END IF;
            IF "bigint" <> "snowflake" OR "bigint" ~ '^[0-9A-Z]{5} ' THEN
                RETURN NEXT;
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- Text and casts, for numbers at the ends of each type's range and beyond: a row for each expression, with the numbers
-- whose result or error is not bigint's
CREATE TABLE numbers AS SELECT * FROM unnest(ARRAY['-9223372036854775809', '-9223372036854775808', '-2147483649',
    '-32769', '-1', '0', '5.5', ' 17 ', '32767', '32768', '2147483647', '2147483648', '9007199254740993',
    '9223372036854775807', '9223372036854775807.5', '1e19', 'x', '']) number;
SELECT expression, string_agg(number, ', ') FILTER (WHERE outcome(format('SELECT ' || expression, number), 'bigint')
    <> outcome(format('SELECT ' || expression, number), 'snowflake')) AS different
FROM unnest(ARRAY['%L::ID', '%L::ID::text', '%L::ID::bigint', '%L::bigint::ID', '%L::smallint::ID', '%L::int::ID',
    '%L::numeric::ID', '%L::float8::ID', '%L::ID::int', '%L::ID::numeric', '%L::ID::float8', '%L::ID::text::ID',
    'ARRAY[%L]::ID[]::numeric[]::ID[]', 'to_hex(%L::ID)']) expression, numbers GROUP BY expression ORDER BY expression;

-- The binary form
CREATE TABLE sent AS SELECT number::bigint FROM numbers WHERE number ~ '^-?\d{1,18}$' OR number ~ '^-?9.*[78]$';
CREATE TABLE received (number snowflake);
\copy sent TO results/snowflake_type.bin (FORMAT binary)
\copy received FROM results/snowflake_type.bin (FORMAT binary)
SELECT count(*) AS received, sum(number) = (SELECT sum(number) FROM sent) AS same, bool_and(int8send(number)
    = snowflake_send(number)) AS sent_as_bigint FROM received;

-- Operators: each of bigint with bigint, integer or smallint, or alone, with operands of this type on the left, on the
-- right and on both sides
CREATE TABLE types (oid, name) AS VALUES (0::oid, NULL), ('bigint'::regtype, 'ID'), ('bigint'::regtype, 'bigint'),
    ('integer'::regtype, 'integer'), ('smallint'::regtype, 'smallint');
SELECT count(*) AS expressions, string_agg(expression, ', ') FILTER (WHERE "bigint" <> "snowflake"
    OR "bigint" ~ '^\w{5} ') AS different
FROM pg_operator JOIN types l ON l.oid = oprleft JOIN types r ON r.oid = oprright,
    concat('a::' || l.name, ' ', oprname, ' b::', r.name) expression,
    concat('SELECT ', expression, ' FROM unnest(ARRAY[17, 3, -5]) a, unnest(ARRAY[3, 17, 2]) b') statement,
    outcome(statement, 'bigint') "bigint", outcome(statement, 'snowflake') "snowflake"
WHERE 'ID' IN (l.name, r.name);

-- Statements, from here on: shown are those that fail, or whose rows or plans are not the same.
:as_lines

-- Tables, and each kind of index.  Half of the IDs are small.  parent refers to the key by its own type, and copy by
-- bigint.
SELECT * FROM compare('plans and rows',
    'CREATE TABLE photos (id ID PRIMARY KEY, album int, n int, parent ID REFERENCES photos,
        copy bigint REFERENCES photos) WITH (autovacuum_enabled = off)',
    'INSERT INTO photos SELECT i, i % 7, i FROM generate_series(1, 2000) i',
    'INSERT INTO photos SELECT 4000000000000000000 + i * 8388608000000, i % 7, i, CASE WHEN i > 9 THEN i / 10 END, i
        FROM generate_series(1::bigint, 2000) i',
    'CREATE INDEX ON photos (parent, id)',
    'CREATE INDEX ON photos USING hash (copy)',
    'CREATE INDEX ON photos (n) INCLUDE (id)',
    'CREATE INDEX ON photos (album) WHERE id > 4010000000000000000',
    'CREATE INDEX ON photos (snowflake_shard(id))',
    'CREATE TABLE brin (id ID) WITH (autovacuum_enabled = off)',
    'INSERT INTO brin SELECT id FROM photos, generate_series(1, 5) ORDER BY id',
    'CREATE INDEX ON brin USING brin (id) WITH (pages_per_range = 4)',
    'CREATE INDEX ON brin USING brin (id int8_bloom_ops) WITH (pages_per_range = 4)',
    'CREATE TABLE hashed (id ID, EXCLUDE USING hash (id WITH =)) WITH (autovacuum_enabled = off)',
    'INSERT INTO hashed SELECT id FROM photos',
    'CREATE TABLE lists (id ID PRIMARY KEY, ids ID[]) WITH (autovacuum_enabled = off)',
    'INSERT INTO lists SELECT i, ARRAY[i, i + 1, i + 2] FROM generate_series(1, 2000) i',
    'CREATE INDEX ON lists USING gin (ids)',
    'ANALYZE photos, brin, hashed, lists');
-- Until all others see the rows, VACUUM does not mark their pages as visible to all, on which plans depend.
DO $$ BEGIN
    WHILE EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND age(backend_xmin) > 0
                  AND pid <> pg_backend_pid()) LOOP
        PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
    END LOOP;
END $$;
VACUUM as_bigint.photos, as_snowflake.photos;
SELECT * FROM compare('plans and rows',
    'SELECT * FROM photos WHERE id = 17',
    'SELECT * FROM photos WHERE id = ''17''',
    'SELECT * FROM photos WHERE id = 17::smallint',
    'SELECT * FROM photos WHERE id = 17::bigint',
    'SELECT * FROM photos WHERE id IN (17, 18, 4000083886080000000)',
    'SELECT * FROM photos WHERE id = ANY (ARRAY[17, 18]::ID[])',
    'SELECT * FROM photos WHERE id >= snowflake_min_id(''2026-10-10'') AND id < snowflake_min_id(''2026-10-12'')',
    'SELECT * FROM photos WHERE (parent, id) > (17, 4000083886080000000) ORDER BY parent, id LIMIT 3',
    'SELECT id FROM photos WHERE n BETWEEN 3 AND 5',
    'SELECT count(*) FROM photos WHERE album = 3 AND id > 4010000000000000000',
    'SELECT count(*) FROM photos WHERE snowflake_shard(id) = 5',
    'SELECT count(*) FROM brin WHERE id = 17',
    'SELECT count(*) FROM brin WHERE id BETWEEN 17 AND 4000083886080000000',
    'SELECT count(*) FROM hashed WHERE id = 17',
    'SELECT * FROM lists WHERE ids && ARRAY[17, 18]::ID[]');

-- Parameters, of a type and without one
SELECT * FROM compare('plans and rows',
    'PREPARE of_bigint_for_ID (bigint) AS SELECT * FROM photos WHERE id = $1',
    'PREPARE of_unknown_for_ID AS SELECT * FROM photos WHERE id = $1',
    'PREPARE of_itself_for_ID (ID) AS SELECT * FROM photos WHERE id = $1',
    'PREPARE of_unknown_array_for_ID AS SELECT * FROM photos WHERE id = ANY ($1)',
    'PREPARE of_insert_for_ID AS INSERT INTO photos (id, n) VALUES ($1, $2) RETURNING id',
    'PREPARE of_update_for_ID AS UPDATE photos SET n = $2 WHERE id = $1 RETURNING *',
    'SET plan_cache_mode = force_generic_plan',
    'EXECUTE of_insert_for_ID (''4000000000000000001'', 1)',
    'EXECUTE of_update_for_ID (4000000000000000001, 2)',
    'EXECUTE of_bigint_for_ID (17)',
    'EXECUTE of_unknown_for_ID (17)',
    'EXECUTE of_itself_for_ID (17)',
    'EXECUTE of_unknown_array_for_ID (''{17, 18}'')',
    'RESET plan_cache_mode');
-- What the server takes for the type of a parameter whose type the client leaves to it
SELECT name AS prepared, parameter_types FROM pg_prepared_statements
WHERE name ~ '^of_(unknown|insert|update).*_snowflake$' ORDER BY name;
DEALLOCATE ALL;

-- Joins, by index, by hash and by merging; order, aggregates, sets, expressions and recursion
SELECT * FROM compare('plans and rows',
    'SELECT * FROM photos a JOIN photos b ON a.id = b.parent WHERE a.id < 20',
    'SELECT * FROM photos WHERE id = ANY (SELECT copy FROM photos WHERE n < 10)',
    'SET enable_nestloop = off',
    'SET enable_hashjoin = off',
    'SELECT count(*) FROM photos a JOIN photos b ON a.id = b.copy',
    'RESET enable_hashjoin',
    'SET enable_mergejoin = off',
    'SELECT count(*) FROM photos a JOIN photos b ON a.id = b.copy',
    'RESET enable_nestloop',
    'RESET enable_mergejoin',
    'SELECT min(id), max(id) FROM photos WHERE id > 50',
    'SELECT count(DISTINCT parent), sum(id), avg(id), bit_or(id), mode() WITHIN GROUP (ORDER BY id) FROM photos',
    'SELECT parent, id FROM photos ORDER BY parent DESC, id DESC LIMIT 3',
    'SELECT * FROM (SELECT id FROM photos UNION ALL SELECT copy::ID FROM photos) u WHERE id = 17',
    'SELECT coalesce(parent, 0), coalesce(parent, ''0''), coalesce(parent, copy), greatest(id, 5), nullif(id, 5),
        id || ''x'', concat(id, 1), to_char(id, ''9''), snowflake_shard(id) FROM photos WHERE n < 12',
    'SELECT 17 = ANY (ids), array_position(ids, 18), array_remove(ids, 18), array_append(ids, id), ids || id, 5 || ids,
        ids || ids, ids || 18::bigint, ids[1] + 1, ids::bigint[], ids::text[]::ID[] FROM lists WHERE id = 17',
    'WITH RECURSIVE t AS (SELECT id, parent, ARRAY[id] AS path FROM photos WHERE id = 4000083886080000000
        UNION ALL SELECT p.id, p.parent, path || p.id FROM photos p JOIN t ON p.id = t.parent) SELECT * FROM t');
-- Others have other plans.  A set of rows of both types is made before a condition on it is looked at.  From 18 on
-- the planner uses indexes for INTERSECT and EXCEPT, but only those of columns that it need not cast.
SELECT * FROM compare('rows',
    'SELECT * FROM (SELECT id FROM photos UNION ALL SELECT copy FROM photos) u WHERE id = 17',
    'SELECT id FROM photos EXCEPT SELECT copy FROM photos ORDER BY id');

-- Changes, constraints, generated columns and domains
SELECT * FROM compare('plans and rows',
    'CREATE TABLE tags (photo ID REFERENCES photos ON DELETE CASCADE ON UPDATE CASCADE, tag text, small int REFERENCES
        photos, seen snowflake REFERENCES photos, PRIMARY KEY (photo, tag)) WITH (autovacuum_enabled = off)',
    'INSERT INTO photos (id, n) VALUES (5001, 1), (''5002'', 2), (5003, 3) RETURNING id',
    'INSERT INTO photos (id, n) SELECT 5004::smallint, 4 RETURNING id',
    'INSERT INTO photos (id, n) VALUES (5001, 5)
        ON CONFLICT (id) DO UPDATE SET n = excluded.n, copy = excluded.id, parent = photos.copy RETURNING *',
    'MERGE INTO photos p USING (VALUES (5003, 4), (5010, 5)) v (x, y) ON p.id = x
        WHEN MATCHED THEN UPDATE SET n = y WHEN NOT MATCHED THEN INSERT (id, n) VALUES (x, y)',
    'INSERT INTO tags VALUES (5001, ''x'', 5, 5), (5002, ''y'', 18, 5010)',
    'UPDATE photos SET id = id + 1000, copy = NULL, parent = 17 WHERE id = 5001 RETURNING *',
    'DELETE FROM photos WHERE id = 5002',
    'SELECT * FROM tags',
    'CREATE TABLE made (id ID PRIMARY KEY CHECK (id > 0), at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id))
        STORED, twin ID GENERATED ALWAYS AS (id) STORED, o ID DEFAULT 0, next ID GENERATED ALWAYS AS (id + 1) STORED)',
    'INSERT INTO made VALUES (4000000000008388608) RETURNING *',
    'CREATE DOMAIN photo_id AS ID CHECK (VALUE > 0)',
    'CREATE TABLE of_domain (id photo_id PRIMARY KEY, copy photo_id REFERENCES photos) WITH (autovacuum_enabled = off)',
    'INSERT INTO of_domain SELECT i, i FROM generate_series(1, 1000) i',
    'ANALYZE of_domain',
    'SELECT coalesce(id, 0), id + 1 FROM of_domain JOIN photos USING (id) WHERE id = 17');
:as_table
SELECT statement, "bigint" = "snowflake" AS same_error FROM compare('rows',
    'UPDATE photos SET parent = 7777777 WHERE id = 17',
    'UPDATE photos SET copy = 7777777 WHERE id = 17',
    'INSERT INTO tags VALUES (6, ''x'', 7777777, 5)',
    'INSERT INTO tags VALUES (6, ''x'', 5, 7777777)',
    'INSERT INTO made VALUES (-1)',
    'INSERT INTO of_domain VALUES (-1)',
    'INSERT INTO hashed VALUES (17)',
    'SELECT n FROM photos WHERE id = ''x''');
:as_lines

-- Partitions, by range and by hash
SELECT * FROM compare('plans and rows',
    'CREATE TABLE daily (id ID PRIMARY KEY, n int) PARTITION BY RANGE (id)',
    'CREATE TABLE daily_1 PARTITION OF daily FOR VALUES FROM (0) TO (''4000000000000000000'')
        WITH (autovacuum_enabled = off)',
    'CREATE TABLE daily_2 PARTITION OF daily FOR VALUES FROM (4000000000000000000) TO (snowflake_min_id(''2026-10-15''))
        WITH (autovacuum_enabled = off)',
    'CREATE TABLE daily_3 (id ID PRIMARY KEY, n int) WITH (autovacuum_enabled = off)',
    'ALTER TABLE daily ATTACH PARTITION daily_3 FOR VALUES FROM (snowflake_min_id(''2026-10-15'')) TO (MAXVALUE)',
    'INSERT INTO daily SELECT id, n FROM photos',
    'ANALYZE daily',
    'SELECT count(*) FROM daily WHERE id >= snowflake_min_id(''2026-10-10'') AND id < snowflake_min_id(''2026-10-11'')',
    'UPDATE daily SET id = 4000000000000000002 WHERE id = 17 RETURNING *, tableoid::regclass',
    'PREPARE pruned_for_ID (bigint) AS SELECT * FROM daily WHERE id = $1',
    'SET plan_cache_mode = force_generic_plan',
    'EXECUTE pruned_for_ID (18)',
    'RESET plan_cache_mode',
    'CREATE TABLE parts (id ID PRIMARY KEY, n int) PARTITION BY HASH (id)',
    'CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0) WITH (autovacuum_enabled = off)',
    'CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1) WITH (autovacuum_enabled = off)',
    'INSERT INTO parts SELECT i, i FROM generate_series(1, 100) i',
    'SELECT *, tableoid::regclass FROM parts WHERE id = 17');
-- The planner does not find the largest ID by the partitions' indexes.
SELECT * FROM compare('rows', 'SELECT max(id), min(id) FROM daily');

-- Functions
SELECT * FROM compare('plans and rows',
    'CREATE FUNCTION of_bigint(bigint) RETURNS bigint LANGUAGE sql AS ''SELECT $1 + 1''',
    'CREATE FUNCTION of_any(anyelement) RETURNS anyelement LANGUAGE sql AS ''SELECT $1''',
    'CREATE FUNCTION overloaded(bigint) RETURNS text LANGUAGE sql AS ''SELECT ''''bigint''''''',
    'CREATE FUNCTION overloaded(integer) RETURNS text LANGUAGE sql AS ''SELECT ''''integer''''''',
    'CREATE FUNCTION overloaded(text) RETURNS text LANGUAGE sql AS ''SELECT ''''text''''''',
    'SELECT of_bigint(id), of_any(id), overloaded(id), overloaded(17), overloaded(''17'')
        FROM photos WHERE id < 3',
    'CREATE FUNCTION rows_in_sql() RETURNS TABLE (id bigint) LANGUAGE sql AS ''SELECT id FROM photos WHERE n = 3''',
    'SELECT * FROM rows_in_sql()',
    'CREATE FUNCTION in_plpgsql(x int) RETURNS photos
        LANGUAGE plpgsql AS ''DECLARE b bigint; i int; r photos; v photos.id%TYPE;
        BEGIN SELECT id, id INTO STRICT b, i FROM photos WHERE id = x; SELECT * INTO STRICT r FROM photos WHERE id = b;
        v := i + r.id; v := v + 1; r.id := v; RETURN r; END''',
    'SELECT in_plpgsql(5)',
    'CREATE FUNCTION of_itself(ID) RETURNS text LANGUAGE sql AS ''SELECT $1::text''',
    'SELECT of_itself(5), of_itself(''5''), of_itself(id) FROM photos WHERE id = 5',
    'CREATE FUNCTION of_two(bigint) RETURNS text LANGUAGE sql AS ''SELECT ''''bigint''''''',
    'CREATE FUNCTION of_two(snowflake) RETURNS text LANGUAGE sql AS ''SELECT ''''snowflake''''''',
    'SELECT of_two(5::smallint), of_two(5::bigint)');

-- What only bigint can: operators with numbers that are not integers; places where two types must be the same, or where
-- an expression becomes bigint; references to integer, identities, and partitions of the other type
SELECT statement, "snowflake" AS error FROM compare('rows',
    'SELECT n FROM photos WHERE id = 5.0',
    'SELECT n FROM photos WHERE id = 5::float8',
    'SELECT round(id) FROM photos WHERE id = 5',
    'INSERT INTO photos (id) SELECT 8001::numeric',
    'INSERT INTO photos (id) SELECT 8001::float8',
    'SELECT id FROM lists WHERE ids @> ARRAY[17::bigint]',
    'SELECT id FROM photos WHERE int8range(5, 6) @> id',
    'WITH RECURSIVE t AS (SELECT min(id)::ID AS id FROM photos UNION ALL SELECT id + 1 FROM t WHERE id < 3) TABLE t',
    'CREATE FUNCTION rows_in_plpgsql() RETURNS TABLE (id bigint) LANGUAGE plpgsql AS
        ''BEGIN RETURN QUERY SELECT p.id FROM photos p WHERE p.id = 5; END''',
    'SELECT * FROM rows_in_plpgsql()',
    'SELECT of_itself(id + 1) FROM photos WHERE id = 5',
    'SELECT of_two(5)',
    'SELECT coalesce(parent, 0::smallint) FROM photos WHERE id = 5',
    'SELECT (ARRAY[1, 2])[id] FROM photos WHERE id = 2',
    'CREATE TABLE whole (id integer PRIMARY KEY)',
    'CREATE TABLE of_integer (id ID REFERENCES whole)',
    'CREATE TABLE numbered (id ID GENERATED ALWAYS AS IDENTITY)',
    'CREATE TABLE other (id bigint PRIMARY KEY, n int)',
    'ALTER TABLE daily DETACH PARTITION daily_3',
    'ALTER TABLE daily ATTACH PARTITION other FOR VALUES FROM (snowflake_min_id(''2026-10-15'')) TO (MAXVALUE)');

-- Types of expressions: what is still a snowflake is a string in JSON.
:as_table
SELECT btrim(outcome('SELECT DISTINCT pg_typeof(' || expression || ') FROM photos WHERE id = 17
    GROUP BY id, parent, copy', 'snowflake'), '()') AS type, expression
FROM unnest(ARRAY['id', 'coalesce(id, 0)', 'coalesce(id, parent)', 'coalesce(id, 0::bigint)', 'coalesce(id, copy)',
    'CASE WHEN true THEN id ELSE 0 END', 'greatest(id, 5)', 'nullif(id, 5)', 'max(id)', 'sum(id)',
    'mode() WITHIN GROUP (ORDER BY id)', 'array_agg(id)', 'array_agg(max(id)) OVER ()', 'ARRAY[id, 5]',
    'ARRAY[id, copy]', 'lead(id, 1, 0) OVER ()', 'id + 1', '-id', 'unnest(ARRAY[id])',
    '(SELECT id FROM (SELECT id FROM photos UNION ALL SELECT parent FROM photos) u LIMIT 1)',
    '(SELECT id FROM (SELECT id FROM photos UNION ALL SELECT copy FROM photos) u LIMIT 1)',
    '(SELECT id FROM photos JOIN lists USING (id) LIMIT 1)',
    '(SELECT id FROM photos JOIN as_bigint.lists USING (id) LIMIT 1)']) expression;

-- JSON has strings of digits, and is read back from strings and from numbers.  PostgreSQL 15 lacks JSON_OBJECT() and
-- pg_input_is_valid().
SET search_path = as_snowflake, public;
CREATE VIEW one AS SELECT id, parent, copy FROM photos WHERE n = 10 AND id > 100;
SELECT what, message AS result FROM current_setting('server_version_num') version, LATERAL (VALUES
    ('to_json', 'SELECT to_json(id) FROM one'),
    ('of a row', 'SELECT row_to_json(one) FROM one'),
    ('to_jsonb', 'SELECT to_jsonb(one) FROM one'),
    ('json_agg', 'SELECT json_agg(id) FROM one'),
    ('json_agg of bigint', 'SELECT json_agg(id::bigint) FROM one'),
    ('json_object_agg', 'SELECT json_object_agg(id, parent) FROM one'),
    ('json_build_object', $$SELECT json_build_object('max', max(id), 'cast', max(id)::snowflake) FROM one$$),
    ('JSON_OBJECT', CASE WHEN version < '160000' THEN $$SELECT json_build_object('id', id) FROM one$$
        ELSE $$SELECT JSON_OBJECT('id': id) FROM one$$ END),
    ('array', 'SELECT to_json(lists) FROM lists WHERE id = 17'),
    ('domain', 'SELECT to_json(of_domain) FROM of_domain WHERE id = 17'),
    ('->> and cast', $$SELECT (to_jsonb(one) ->> 'id')::snowflake FROM one$$),
    ('-> and cast', $$SELECT (to_jsonb(one) -> 'id')::bigint FROM one$$),
    ('@> a number', $$SELECT to_jsonb(one) @> '{"id": 4000083886080000000}' FROM one$$),
    ('@> an ID', $$SELECT to_jsonb(one) @> jsonb_build_object('id', id) FROM one$$),
    ('read', $$SELECT jsonb_populate_record(NULL::one, '{"id": "4000083886080000000", "parent": 17, "copy": null}')$$),
    ('read again', 'SELECT count(*) FROM photos p WHERE p = jsonb_populate_record(NULL::photos, to_jsonb(p))'),
    ('read lists', $$SELECT array_agg(l) FROM json_populate_recordset(NULL::lists,
        '[{"id": "17", "ids": ["1", 2]}, {"id": 18}]') l$$),
    ('read columns', $$SELECT array_agg(r) FROM json_to_recordset('[{"id": "17"}, {"id": 18}]') r (id snowflake)$$),
    ('pg_input_is_valid', CASE WHEN version < '160000' THEN $$SELECT '{t,f}'$$
        ELSE $$SELECT array_agg(pg_input_is_valid(t, 'snowflake')) FROM unnest(ARRAY['17', 'x']) t$$ END)
) statements (what, statement), error_of(statement);

-- ALTER TABLE leaves the files of the table and of its indexes as they are, with constraints and data.  It builds
-- indexes with conditions on the column again, drops the column's statistics, and rewrites arrays.
:as_lines
CREATE TABLE albums (id bigint PRIMARY KEY DEFAULT next_id(5));
CREATE TABLE moved (id bigint PRIMARY KEY, album bigint REFERENCES albums, n int, ids bigint[], CHECK (id > 0));
CREATE INDEX ON moved (album, id);
CREATE INDEX ON moved USING hash (album);
CREATE INDEX ON moved USING brin (id);
CREATE INDEX ON moved (n) INCLUDE (id);
CREATE INDEX moved_condition ON moved (n) WHERE id > 5;
INSERT INTO albums SELECT i FROM generate_series(1, 10) i;
INSERT INTO moved SELECT i, i % 10 + 1, i, ARRAY[i] FROM generate_series(1, 1000) i;
ANALYZE moved;
CREATE VIEW files AS SELECT relname, pg_relation_filenode(oid) AS file FROM pg_class
    WHERE relname ~ '^(albums|moved)' AND relkind IN ('r', 'i');
CREATE TABLE files_before AS SELECT * FROM files;
CREATE FUNCTION look(OUT new_files text, OUT statistics text, OUT joined int, OUT as_json text, OUT foreign_key text)
LANGUAGE sql AS $$
    SELECT (SELECT string_agg(relname, ' ' ORDER BY relname) FROM (TABLE files EXCEPT TABLE files_before) f),
        (SELECT string_agg(attname, ' ' ORDER BY attname) FROM pg_stats WHERE tablename = 'moved'),
        (SELECT count(*) FROM moved JOIN albums ON album = albums.id WHERE moved.id = n
            AND ids::text = format('{%s}', n)),
        (SELECT to_json(id) FROM moved WHERE n = 1),
        (SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'moved'::regclass AND contype = 'f') $$;
ALTER TABLE albums ALTER id TYPE snowflake;
ALTER TABLE moved ALTER id TYPE snowflake, ALTER album TYPE snowflake;
SELECT * FROM look();
INSERT INTO albums DEFAULT VALUES RETURNING snowflake_shard(id), pg_typeof(id);
ALTER TABLE moved ALTER id TYPE bigint, ALTER album TYPE bigint;
ALTER TABLE albums ALTER id TYPE bigint;
SELECT * FROM look();
ALTER TABLE moved ALTER ids TYPE snowflake[];
SELECT * FROM look();
