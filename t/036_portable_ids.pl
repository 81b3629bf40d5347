# The portable version decodes and composes IDs as the extension does, of which
# it has the functions: both are in one database, the portable one in a schema.

use strict;
use warnings;
use FindBin;
use Test::More;
use lib $FindBin::RealBin;
use PortableTest;

my $node = server_with_both_versions();

# The extension's functions have a layout as their last argument.
is($node->safe_psql('beside', q{
		WITH functions AS (
			SELECT pronamespace::regnamespace::text AS schema, p.proname AS name,
			       format('%s(%s) %s %s %s %s %s', proname, replace(pg_get_function_arguments(oid), 'portable.', ''),
			              proretset, prorettype::regtype, provolatile, proisstrict, proparallel) AS description
			FROM pg_proc p WHERE pronamespace IN ('portable'::regnamespace, 'public'::regnamespace))
		SELECT count(*), string_agg(description, ' ') FILTER (WHERE description NOT IN (
			SELECT regexp_replace(description, ',? layout snowflake_layout( DEFAULT ''instagram''::snowflake_layout)?', '')
			FROM functions WHERE schema = 'public'))
		FROM functions WHERE schema = 'portable' AND name IN (SELECT name FROM functions WHERE schema = 'public')}),
	'13|', 'functions have the names, arguments and labels of the extension\'s');

$node->safe_psql('beside', q{
	SELECT setseed(0.5);
	CREATE TABLE ids AS
	SELECT ('x' || md5(random()::text))::bit(64)::bigint AS id FROM generate_series(1, 5000)
	UNION SELECT d + (1::bigint << n) FROM generate_series(0, 63) n, generate_series(-1, 0) d WHERE n < 63 OR d = 0
	UNION SELECT -(1::bigint << n) FROM generate_series(0, 62) n
	UNION SELECT unnest(ARRAY[-1, 0, 9223372036854775807, 9223372036846387199, 9223372036846387200, 11637205501278089]);
	CREATE TABLE times AS
	SELECT snowflake_timestamp(id) + d * interval '1 us' AS ts
	FROM ids, unnest(ARRAY[-1000, -999, -1, 0, 1, 500, 999]) d
	UNION SELECT '2000-01-01Z'::timestamptz + (random() - 0.02) * interval '200000 years' FROM generate_series(1, 1000)
	UNION SELECT unnest(ARRAY['-infinity', 'infinity', '4713-11-24 00:00Z BC', '294276-12-31 23:59:59.999999Z', '1970-01-01Z',
	                          '2000-01-01Z']::timestamptz[])
	UNION SELECT t + d * interval '1 us'
	FROM unnest(ARRAY['2011-08-24 21:07:01.721Z', '2046-06-27 17:00:49.494Z', '2046-06-27 17:00:49.495Z', '2046-06-27 17:00:49.496Z',
	                  '2081-04-30 12:54:37.271Z']::timestamptz[]) t, unnest(ARRAY[-1000, -1, 0, 1, 1000]) d});
is($node->safe_psql('beside', q{
		SELECT count(*) > 5000, count(*) FILTER (WHERE id < 0) > 2000,
		       count(*) FILTER (WHERE snowflake_timestamp(id) <> portable.snowflake_timestamp(id)),
		       count(*) FILTER (WHERE snowflake_shard(id) <> portable.snowflake_shard(id)),
		       count(*) FILTER (WHERE snowflake_sequence(id) <> portable.snowflake_sequence(id)),
		       count(*) FILTER (WHERE ARRAY(SELECT snowflake_fields(id)::text) <> ARRAY(SELECT portable.snowflake_fields(id)::text))
		FROM ids}),
	't|t|0|0|0|0', 'both versions decode IDs in the same way');
is($node->safe_psql('beside', q{
		SELECT count(*) > 30000, count(*) FILTER (WHERE snowflake_min_id(ts) <> portable.snowflake_min_id(ts)),
		       count(*) FILTER (WHERE snowflake_max_id(ts) <> portable.snowflake_max_id(ts))
		FROM times}),
	't|0|0', 'both versions have the same bounds of times');
is($node->safe_psql('beside', q{
		WITH calls AS (
			SELECT format('snowflake_id(%L::timestamptz, %s, %s)', ts, shard, sequence) AS call
			FROM (SELECT ts FROM times ORDER BY random() LIMIT 300) t, unnest(ARRAY[-1, 0, 5, 8191, 8192]) shard,
			     unnest(ARRAY[-1, 0, 1023, 1024]) sequence
			UNION ALL SELECT format('snowflake_id(%L::timestamptz, 0, %s)', t, sequence)
			FROM unnest(ARRAY['2011-08-24 21:07:01.720999Z', '2011-08-24 21:07:01.721Z', '2011-08-24 21:07:01.721999Z',
			                  '2046-06-27 17:00:49.495999Z', '2046-06-27 17:00:49.496Z', 'infinity', '-infinity']) t,
			     generate_series(0, 1) sequence)
		SELECT count(*) > 6000, count(DISTINCT left(attempt('SELECT ' || call), 5)) > 5,
		       string_agg(call, ' ') FILTER (WHERE attempt('SELECT ' || call) <> attempt('SELECT portable.' || call))
		FROM calls}),
	't|t|', 'both versions compose the same IDs, or report the same errors');

$node->stop;
done_testing();
