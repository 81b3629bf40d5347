-- IDs as text, and IDs that do not show their order
\getenv srcdir PG_ABS_SRCDIR
\i :srcdir/test/setup.sql
:as_table

-- Users keep these texts and images, in links and in other databases: they must be the same for ever.  All inputs
-- are fixed, so that the statistics are the same at every run, too.

-- Known texts
SELECT id, snowflake_to_text(id) AS base62, snowflake_to_text(id, 'base32') AS base32,
       snowflake_to_text(id, 'base64url') AS base64url
FROM unnest(ARRAY[0, 1, 61, 62, 63, 64, 4294967296, 1671372309237077023, 9223372036854775807]) AS id;

-- The neighbours of powers, and numbers all over the range
CREATE TABLE numbers AS SELECT n::bigint AS id
FROM (SELECT base ^ e + d AS n
      FROM unnest(ARRAY[2, 62]::numeric[]) base, generate_series(0, 63) e, generate_series(-2, 2) d
      UNION SELECT (g * 6364136223846793005::numeric % 9223372036854775808)::bigint >> g % 63
      FROM generate_series(1, 20000) g) x
WHERE n BETWEEN 0 AND 9223372036854775807;
SELECT snowflake_from_text('1zStymKCBR9') AS "default", count(*) AS numbers, min(id), max(id),
       snowflake_from_text(encoding => 'base32', encoded => '1ECF88A5R050Z') AS named FROM numbers;
-- In the collation "C", texts of a fixed width sort as IDs do.
SELECT encoding, count(*) FILTER (WHERE snowflake_from_text(encoded, encoding) <> id) AS wrong,
       count(*) - count(DISTINCT encoded) AS repeated, min(length(encoded)) AS shortest,
       max(length(encoded)) AS longest, count(*) FILTER (WHERE by_id <> by_text) = 0 AS same_order
FROM (SELECT *, row_number() OVER (PARTITION BY encoding ORDER BY id) AS by_id,
             row_number() OVER (PARTITION BY encoding ORDER BY encoded COLLATE "C") AS by_text
      FROM (SELECT id, encoding, snowflake_to_text(id, encoding) AS encoded
            FROM numbers, unnest(ARRAY['base62', 'base32', 'base64url']) encoding OFFSET 0) n) n
GROUP BY encoding ORDER BY encoding;

-- base32 is read from what people make of it.
SELECT count(*) AS texts, count(*) FILTER (WHERE snowflake_from_text(typed, 'base32') <> id) AS wrong
FROM (SELECT id, snowflake_to_text(id, 'base32') AS encoded FROM numbers) n,
     LATERAL unnest(ARRAY[lower(encoded), translate(encoded, '01', 'OI'), translate(encoded, '01', 'oi'),
                          translate(encoded, '1', 'L'), translate(encoded, '1', 'l')]) typed;

-- An ID has one text: put every ASCII character in every place, and what is read is written the same way, but for
-- the letters that base32 also reads: 28 in 12 places, and 6 in the first.
CREATE FUNCTION read_or_null(encoded text, encoding text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN snowflake_from_text(encoded, encoding);
EXCEPTION WHEN invalid_text_representation THEN
    RETURN NULL;
END $$;
SELECT encoding, count(*) AS texts, count(id) AS read,
       count(*) FILTER (WHERE snowflake_to_text(id, encoding) <> typed) AS written_differently
FROM (SELECT encoding, typed, read_or_null(typed, encoding) AS id
      FROM (VALUES ('base62', '1zStymKCBR9'), ('base32', '1ECF88A5R050Z'),
                   ('base64url', 'Bcx6EKLgBQf')) AS e (encoding, t),
           generate_series(1, length(t)) place, generate_series(1, 127) code,
           LATERAL overlay(t PLACING chr(code) FROM place) typed OFFSET 0) t
GROUP BY encoding ORDER BY encoding;

-- Errors
SELECT e.* FROM unnest(ARRAY['to_text(-1)', 'to_text(-9223372036854775808, ''base32'')', 'to_text(1, ''base'')',
    'from_text(''1'', ''BASE62'')', 'from_text(''1'', '''')', 'obfuscate(0, 1)', 'obfuscate(-9223372036854775808, 1)',
    'reveal(0, 1)', 'reveal(-1, 1)']) AS call, error_of('SELECT snowflake_' || call) AS e;
SELECT e.sqlstate_, e.message, e.hint
FROM (VALUES
    ('base62', ARRAY['', '1zStymKCBR', '1zStymKCBR99', '1zSty!KCBR9', '1zStymKCB 9', ' 1zStymKCBR9', '1zSty-KCBR9',
        '1zS"', 'AzL8n0Y58m8', 'AzL8n0Y6000', 'B0000000000', 'zzzzzzzzzzz']),
    ('base32', ARRAY['', '1ECF88A5R050', '1ECF88A5R050Z0', '1ECF88A5R05UZ', '1ecf88a5r05uz', '1ECF-88A5-R05',
        '8000000000000', 'zzzzzzzzzzzzz']),
    ('base64url', ARRAY['', 'AB', 'AA', 'Bcx6EKLgBQf=', 'Bcx6EKLgBQfA', 'ABcx6EKLgBQf', 'Bcx6+', '/',
        'IAAAAAAAAAA', '___________'])) AS t (encoding, texts),
    -- The last two are an ID that is not encoded, and a text that is too short for one.
    unnest(texts || ARRAY['4035711191333476115', '01234567']) AS encoded,
    error_of(format('SELECT snowflake_from_text(%L, %L)', encoded, encoding)) AS e;

-- Positions count characters, which a database in UTF-8 shows.
\set count 45
\set right t
SELECT getdatabaseencoding() = 'UTF8' AS utf8 \gset
\if :utf8
SELECT count(*), bool_and(sqlstate_ = '22P02' AND message = format('invalid %s ID "%s" at position %s',
                                                  encoding, encoded, position(character IN encoded))) AS right
FROM unnest(ARRAY[chr(228), chr(8364), chr(128247), chr(770), chr(65313)]) character,
     unnest(ARRAY['base62', 'base32', 'base64url']) encoding,
     unnest(ARRAY['', '1', '1EC']) start,
     LATERAL concat(start, character, chr(228), 'B') encoded,
     error_of(format('SELECT snowflake_from_text(%L, %L)', encoded, encoding)) \gset
\endif
\echo texts: :count, right: :right

-- Known images
SELECT key, snowflake_obfuscate(1, key) AS of_1, snowflake_obfuscate(2, key) AS of_2,
       snowflake_obfuscate(1671372309237077023, key) AS of_1671372309237077023,
       snowflake_obfuscate(9223372036854775807, key) AS of_the_largest
FROM unnest(ARRAY[0, 1, -1, -9223372036854775808, 9223372036854775807, 81985529216486895]) AS key;

-- Revealing is the inverse of obfuscating, and the other way round.
SELECT count(*) AS pairs,
       count(*) FILTER (WHERE snowflake_reveal(snowflake_obfuscate(id, key), key) <> id) AS wrongly_revealed,
       count(*) FILTER (WHERE snowflake_obfuscate(snowflake_reveal(id, key), key) <> id) AS wrongly_obfuscated
FROM (SELECT id FROM numbers UNION SELECT unnest(ARRAY[1, 2, 1671372309237077023, 9223372036854775807])) n,
     unnest(ARRAY[0, 1, -1, -9223372036854775808, 9223372036854775807, 81985529216486895]) key
WHERE id > 0;

-- The images of consecutive IDs are IDs, and none comes twice.
CREATE TABLE consecutive AS
SELECT id, snowflake_obfuscate(id, 42) AS image
FROM generate_series(1671372309237077023, 1671372309237077023 + 199999) id;
-- They do not show which came first: half are larger than the one before, within six standard deviations.
SELECT count(*) AS ids, count(DISTINCT image) AS images, min(image) > 0 AS all_positive,
       count(*) FILTER (WHERE image > before) BETWEEN 99225 AND 100775 AS half_are_larger
FROM (SELECT image, lag(image) OVER (ORDER BY id) AS before FROM consecutive) c;
-- They fall evenly into 256 classes by their low bits, and by their high bits: chi-square has 255 degrees of freedom,
-- and is outside of these bounds less than once in ten million cases.
SELECT bits, count(*) AS classes, sum((n - 781.25) ^ 2 / 781.25) BETWEEN 150 AND 400 AS even
FROM (SELECT bits, count(*) AS n
      FROM consecutive, LATERAL (VALUES ('low', image & 255), ('high', image >> 55)) b (bits, class)
      GROUP BY bits, class) c
GROUP BY bits ORDER BY bits;

-- If one bit of the ID or of the key changes, so do 31.5 of the image's 63, again within six standard deviations.
CREATE TABLE flips AS
SELECT 'id' AS input, bit, image # snowflake_obfuscate(id # (1::bigint << bit), 42) AS flipped
FROM consecutive, generate_series(0, 62) bit WHERE id < 1671372309237077023 + 1000
UNION ALL SELECT 'key', bit, image # snowflake_obfuscate(id, 42 # (1::bigint << bit))
FROM consecutive, generate_series(0, 63) bit WHERE id < 1671372309237077023 + 1000;
-- Each bit of the image changes in half of all cases.
SELECT input, bits, count(*), count(*) FILTER (WHERE mean NOT BETWEEN low AND high) AS wrong
FROM (SELECT input, 'of input' AS bits, avg(bit_count(flipped::bit(64))) AS mean, 30.75 AS low, 32.25 AS high
      FROM flips GROUP BY input, bit
      UNION ALL SELECT input, 'of image', avg(flipped >> bit_of_image & 1), 0.488, 0.512
      FROM flips, generate_series(0, 62) bit_of_image GROUP BY input, bit_of_image) f
GROUP BY input, bits ORDER BY bits DESC, input;
