# The portable version decodes, composes and writes IDs as the extension does: both
# are in one database, the portable one in a schema.

use strict;
use warnings;
use Test::More;
use PortableTest;

my $node = server_with_both_versions();

# What the extension has and the portable version does not: COPY's replacement of
# next_id(), obfuscated IDs, and what belongs to its types.
is($node->safe_psql('beside', q{
		WITH functions AS (
			SELECT pronamespace::regnamespace::text AS schema, p.proname AS name,
			       format('%s(%s) %s %s %s %s %s', proname,
			              regexp_replace(pg_get_function_arguments(oid), 'portable\.|::(text|snowflake_layout)$', '', 'g'),
			              proretset, prorettype::regtype, provolatile, proisstrict, proparallel) AS description
			FROM pg_proc p WHERE pronamespace IN ('portable'::regnamespace, 'public'::regnamespace))
		SELECT count(*) FILTER (WHERE schema = 'portable' AND name IN (SELECT name FROM functions WHERE schema = 'public')),
		       string_agg(description, ' ') FILTER (WHERE schema = 'portable'
			AND name IN (SELECT name FROM functions WHERE schema = 'public')
			AND description NOT IN (SELECT description FROM functions WHERE schema = 'public')),
		       string_agg(DISTINCT name, ' ') FILTER (WHERE schema = 'public'
			AND name NOT IN ('attempt') AND name NOT IN (SELECT name FROM functions WHERE schema = 'portable'))
		FROM functions}),
	'30||snowflake snowflake_backdated_id snowflake_in snowflake_layout_in snowflake_layout_out snowflake_layout_recv snowflake_layout_send '
	  . 'snowflake_next_id_in_copy snowflake_obfuscate snowflake_out snowflake_recv snowflake_reveal snowflake_send snowflake_set_shard snowflake_settled_id snowflake_support '
	  . 'snowflake_to_float8 snowflake_to_integer snowflake_to_numeric',
	'functions have the names, arguments and labels of the extension\'s');
is($node->safe_psql('beside', q{
		SELECT count(*) FROM portable.snowflake_layouts() p JOIN snowflake_layouts() e USING (name, definition, epoch, tick, shards,
			ids_per_tick, expires, max_value)}),
	2, 'both layouts are the extension\'s');

$node->safe_psql('beside', q{
	SELECT setseed(0.5);
	CREATE TABLE ids AS
	SELECT ('x' || md5(random()::text))::bit(64)::bigint >> unused AS id FROM generate_series(1, 5000), unnest(ARRAY[0, 11]) unused
	UNION SELECT d + (1::bigint << n) FROM generate_series(0, 63) n, generate_series(-1, 0) d WHERE n < 63 OR d = 0
	UNION SELECT -(1::bigint << n) FROM generate_series(0, 62) n
	UNION SELECT unnest(ARRAY[-1, 0, 9223372036854775807, 9223372036846387199, 9223372036846387200, 11637205501278089,
	                          9007199254736895, 9007199254736896]);
	CREATE TABLE times AS
	SELECT snowflake_timestamp(id, layout::snowflake_layout) + d * interval '1 us' AS ts
	FROM ids, unnest(ARRAY[-1000, -999, -1, 0, 1, 500, 999]) d, unnest(ARRAY['instagram', 'javascript']) layout
	WHERE layout = 'instagram' OR id BETWEEN 0 AND 9007199254740991
	UNION SELECT '2000-01-01Z'::timestamptz + (random() - 0.02) * interval '200000 years' FROM generate_series(1, 1000)
	UNION SELECT unnest(ARRAY['-infinity', 'infinity', '4713-11-24 00:00Z BC', '294276-12-31 23:59:59.999999Z', '1970-01-01Z',
	                          '2000-01-01Z']::timestamptz[])
	UNION SELECT t + d * interval '1 us'
	FROM unnest(ARRAY['2011-08-24 21:07:01.721Z', '2046-06-27 17:00:49.494Z', '2046-06-27 17:00:49.495Z', '2046-06-27 17:00:49.496Z',
	                  '2081-04-30 12:54:37.271Z', '2020-01-01Z', '2089-09-06 15:47:35.550Z', '2089-09-06 15:47:35.551Z',
	                  '2089-09-06 15:47:35.552Z']::timestamptz[]) t, unnest(ARRAY[-1000, -1, 0, 1, 1000]) d});

# without a layout, and with each
foreach my $layout ('', 'instagram', 'javascript')
{
	my $argument = $layout eq '' ? '' : ", '$layout'";
	my $quoted = $argument =~ s/'/''/gr;
	my $with = $layout eq '' ? 'without a layout' : "in layout $layout";

	# Javascript's IDs have 53 bits, and the times of larger numbers are to the millisecond.
	is($node->safe_psql('beside', qq{
			SELECT count(*) > 8000, count(*) FILTER (WHERE id < 0) > 2000,
			       count(*) FILTER (WHERE snowflake_timestamp(id$argument) <> portable.snowflake_timestamp(id$argument)
				AND NOT ('$layout' = 'javascript' AND id NOT BETWEEN 0 AND 9007199254740991
				         AND portable.snowflake_timestamp(id$argument) - snowflake_timestamp(id$argument)
				             BETWEEN interval '-1 ms' AND interval '1 ms')),
			       count(*) FILTER (WHERE snowflake_shard(id$argument) <> portable.snowflake_shard(id$argument)),
			       count(*) FILTER (WHERE snowflake_sequence_number(id$argument) <> portable.snowflake_sequence_number(id$argument)),
			       count(*) FILTER (WHERE ARRAY(SELECT snowflake_fields(id$argument)::text)
				<> ARRAY(SELECT portable.snowflake_fields(id$argument)::text))
			FROM ids}),
		't|t|0|0|0|0', "both versions decode IDs in the same way $with");
	is($node->safe_psql('beside', qq{
			SELECT count(*) > 30000, count(*) FILTER (WHERE snowflake_min_id(ts$argument) <> portable.snowflake_min_id(ts$argument)),
			       count(*) FILTER (WHERE snowflake_max_id(ts$argument) <> portable.snowflake_max_id(ts$argument))
			FROM times}),
		't|0|0', "both versions have the same bounds of times $with");
	is($node->safe_psql('beside', qq{
			WITH calls AS (
				SELECT format('snowflake_id(%L::timestamptz, %s, %s$quoted)', ts, shard, sequence) AS call
				FROM (SELECT ts FROM times ORDER BY random() LIMIT 300) t, unnest(ARRAY[-1, 0, 5, 31, 32, 8191, 8192]) shard,
				     unnest(ARRAY[-1, 0, 127, 128, 1023, 1024]) sequence
				UNION ALL SELECT format('snowflake_id(%L::timestamptz, 0, %s$quoted)', t, sequence)
				FROM unnest(ARRAY['2011-08-24 21:07:01.720999Z', '2011-08-24 21:07:01.721Z', '2011-08-24 21:07:01.721999Z',
				                  '2046-06-27 17:00:49.495999Z', '2046-06-27 17:00:49.496Z', '2020-01-01Z',
				                  '2089-09-06 15:47:35.550999Z', '2089-09-06 15:47:35.551Z', 'infinity', '-infinity']) t,
				     generate_series(0, 1) sequence)
			SELECT count(*) > 6000, count(DISTINCT left(attempt('SELECT ' || call), 5)) > 4,
			       string_agg(call, ' ') FILTER (WHERE attempt('SELECT ' || call) <> attempt('SELECT portable.' || call))
			FROM calls}),
		't|t|', "both versions compose the same IDs, or report the same errors $with");
}

# IDs of whose text a character is another, is missing or comes twice
is($node->safe_psql('beside', q{
		WITH texts AS (
			SELECT encoding, id, snowflake_to_text(id, encoding) AS encoded
			FROM ids, unnest(ARRAY['base62', 'base32', 'base64url']) encoding WHERE id >= 0),
		typed AS (
			SELECT encoding, encoded FROM texts
			UNION ALL SELECT encoding, typed
			FROM (SELECT * FROM texts ORDER BY random() LIMIT 1000) t, LATERAL (SELECT (random() * length(encoded))::integer + 1) r (place),
			     unnest(ARRAY[overlay(encoded PLACING chr((random() * 126)::integer + 1) FROM place), lower(encoded),
			                  overlay(encoded PLACING '' FROM place), overlay(encoded PLACING 'zA' FROM place), left(encoded, place),
			                  overlay(encoded PLACING chr(8364) FROM place)]) typed
			UNION ALL SELECT encoding, typed
			FROM unnest(ARRAY['base62', 'base32', 'base64url', 'BASE62', '']) encoding,
			     unnest(ARRAY['', 'A', 'AA', '0', '4035711191333476115', '123', 'AzL8n0Y58m8', '8000000000000', 'I__________']) typed)
		SELECT (SELECT count(*) FROM texts) > 5000,
		       (SELECT count(*) FROM texts WHERE encoded IS DISTINCT FROM portable.snowflake_to_text(id, encoding)),
		       count(*) FILTER (WHERE b LIKE '22P02 %') > 2000, count(*) FILTER (WHERE b ~ '^\d+$') > 5000,
		       string_agg(DISTINCT concat_ws(' / ', encoding, encoded, a, b), '; ') FILTER (WHERE a <> b)
		FROM (SELECT encoding, encoded, attempt(format('SELECT snowflake_from_text(%L, %L)', encoded, encoding)) AS a,
		             attempt(format('SELECT portable.snowflake_from_text(%L, %L)', encoded, encoding)) AS b FROM typed OFFSET 0) t}),
	't|0|t|t|', 'both versions write the same texts, and read the same or report the same errors');
is($node->safe_psql('beside', q{
		SELECT string_agg(call, ' ') FILTER (WHERE attempt('SELECT ' || call) <> attempt('SELECT portable.' || call))
		FROM unnest(ARRAY['snowflake_to_text(-1)', 'snowflake_to_text(1, ''base'')', 'snowflake_to_text(4035711191333476115)',
			'snowflake_from_text(''1zStymKCBR9'')', 'snowflake_to_text(NULL) IS NULL', 'snowflake_from_text(NULL) IS NULL']) call}),
	'', 'both versions have the same default encoding, and the same errors of what has no text');

# --- layouts --------------------------------------------------------------

is($node->safe_psql('beside', q{
		SELECT string_agg(layout || ' ' || left(attempt(format('SELECT portable.snowflake_timestamp(1, %L)', layout)), 5), '; ')
		FROM unnest(ARRAY['JavaScript', '	instagram ', 'twitter', 'Decimal', 'timestamp:41 shard:12 epoch:0', 'insta', '']) layout}),
	'JavaScript 2020-; 	instagram  2011-; twitter 0A000; Decimal 0A000; timestamp:41 shard:12 epoch:0 0A000; insta 22P02;  22P02',
	'layouts are found in upper and lower case, others need the extension, and what is no layout is an error');
is($node->safe_psql('beside', q{
		SELECT count(*) FROM snowflake_layouts()
		WHERE attempt(format('SELECT portable.snowflake_shard(1, %L)', name)) ~ (
			CASE WHEN name IN ('instagram', 'javascript') THEN '^\d+$' ELSE '^0A000 layout "' || name || '" needs the extension' END)}),
	10, 'each other layout of the extension is named in an error');
like($node->safe_psql('beside', q{
		CREATE TABLE inlined (id bigint);
		EXPLAIN (VERBOSE, COSTS OFF)
		SELECT portable.snowflake_timestamp(id), portable.snowflake_shard(id, 'javascript') FROM inlined}),
	qr/Output: (?!.*(snowflake|CASE))to_timestamp\(.*id >> 23.*, .*id >> 7/,
	'the planner makes plain arithmetic of decoders');

$node->stop;
done_testing();
