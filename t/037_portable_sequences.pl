# The portable version uses sequences as the extension does: both are in one
# database, the portable one in a schema.

use strict;
use warnings;
use FindBin;
use Test::More;
use lib $FindBin::RealBin;
use PortableTest;

my $node = server_with_both_versions();

# IDs in turn from both, of which the first has the last slot of its millisecond
is($node->safe_psql('beside', q{
		SET snowflake.max_lead = '2h';
		CREATE SEQUENCE shared MAXVALUE 1125899906841599;
		SELECT setval('shared', (snowflake_min_id(now() + interval '1 hour') >> 23) * 1024 + 1022);
		SELECT next_id(5, 'shared') AS a, portable.next_id(5, 'shared') AS b, next_id(5, 'shared') AS c,
		       portable.next_ids(5, 1, 'shared') AS d \gset
		SELECT :a % 1024, :b - :a - (8191 << 10), :c - :b, :d - :c}) =~ s/^\d+\n//r,
	'1023|1|1|1', 'each version goes on from the other\'s last value');

# Sequences of each MAXVALUE, with values at each limit and near each layout's
# value of now
is($node->safe_psql('beside', q{
		CREATE FUNCTION altered(schema text, max_value bigint, last bigint, called boolean) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE
			result text;
		BEGIN
			EXECUTE format('CREATE SEQUENCE probe MINVALUE -10 MAXVALUE %s START 1', max_value);
			PERFORM setval('probe', last, called);
			result := attempt(format('SELECT %I.snowflake_alter_sequence(%L)', schema, 'probe'));
			SELECT concat_ws(' ', result, seqtypid::regtype, seqmax) INTO result FROM pg_sequence WHERE seqrelid = 'probe'::regclass;
			SELECT concat_ws(' ', result, last_value, is_called) INTO result FROM probe;
			DROP SEQUENCE probe;
			RETURN result;
		END $$;
		CREATE TABLE values_made AS
		SELECT unnest(ARRAY[-10, 0, 5, 1099511627775, 1099511627776, 1125899906841599, 1125899906841600]) AS last
		UNION SELECT (extract(epoch FROM clock_timestamp() + d - epoch) / extract(epoch FROM tick) * ids_per_tick)::bigint
		FROM snowflake_layouts(), unnest(ARRAY['0', '-1 year', '364 days', '368 days']::interval[]) d WHERE tick IS NOT NULL
		UNION SELECT (extract(epoch FROM clock_timestamp() + d - epoch) / 2 * 1024000)::bigint
		FROM snowflake_layouts(), unnest(ARRAY['-1 hour', '1 hour']::interval[]) d WHERE name = 'instagram';
		WITH results AS (
			SELECT format('%s of %s, %s', last, max_value, called) AS values,
			       altered('public', max_value, last, called) AS a, altered('portable', max_value, last, called) AS b
			FROM values_made, (SELECT max_value FROM snowflake_layouts() UNION VALUES (9223372036854775807), (2147483647)) m,
			     unnest(ARRAY[false, true]) called
			WHERE last <= max_value)
		SELECT count(*) > 200, count(*) FILTER (WHERE b LIKE '55000 %') > 100, count(*) FILTER (WHERE b LIKE ' bigint %') > 50,
		       -- the extension also asks whether the value's time is closer to the clock in another layout
		       string_agg(concat_ws(': ', values, a, b), '; ') FILTER (WHERE a <> b
			AND NOT (values ~ '^\d{13,} of (9223372036854775807|2147483647), t' AND a LIKE '55000 %' AND b LIKE ' bigint %'))
		FROM results}),
	't|t|t|', 'both versions alter the same sequences, and refuse the others');

# A sequence in each state of the view, one of which a session is altering
$node->safe_psql('beside', q{
	CREATE SEQUENCE fresh MAXVALUE 1125899906841599;
	CREATE SEQUENCE altering MAXVALUE 1125899906841599;
	CREATE SEQUENCE cached MAXVALUE 1125899906841599 CACHE 7;
	CREATE SEQUENCE by_two MAXVALUE 1125899906841599 INCREMENT 2;
	CREATE SEQUENCE cycling MAXVALUE 1125899906841599 CYCLE;
	CREATE UNLOGGED SEQUENCE unlogged MAXVALUE 1125899906841599;
	CREATE SEQUENCE ended MAXVALUE 1125899906841599;
	SELECT setval('ended', 1125899906841599);
	CREATE SEQUENCE counter;
	CREATE SEQUENCE tweets MAXVALUE 9007199254736895;
	DO $$ DECLARE minutes integer;
	BEGIN
		FOREACH minutes IN ARRAY ARRAY[5, 30, 90] LOOP
			EXECUTE format('CREATE SEQUENCE ahead_%s MAXVALUE 1125899906841599', minutes);
			PERFORM setval('ahead_' || minutes, (snowflake_min_id(now() + minutes * interval '1 min') >> 23) * 1024);
		END LOOP;
	END $$;
	CREATE TEMPORARY SEQUENCE temporary MAXVALUE 1125899906841599});
my $states = q{SET snowflake.max_lead = '10min'; SET snowflake.max_wait = '1h';
	SELECT string_agg(concat_ws(' ', sequence, layout, last_timestamp, lead > '0', expires, state), '|' ORDER BY sequence::text)
	FROM %s.snowflake_sequences WHERE layout = 'instagram'};
{
	my $altering = $node->background_psql('beside');
	$altering->query_safe('BEGIN; ALTER SEQUENCE altering NO CYCLE');
	my $shown = $node->safe_psql('beside', sprintf($states, 'portable'));
	is($shown, $node->safe_psql('beside', sprintf($states, 'public')), 'the portable view shows the same as the extension\'s');
	is(join(' ', $shown =~ /(\w+) (?=instagram )[^|]* (\w+)/g),
		'ahead_30 waits ahead_5 ahead ahead_90 refuses altering waits by_two refuses cached refuses cycling refuses '
		  . 'ended refuses fresh ok next_id_seq ok next_id_seq ok shared waits unlogged refuses',
		'the view shows each sequence in its state, and does not wait for one that is being altered');
	$altering->quit;
}
is($node->safe_psql('beside', q{
		SET snowflake.max_lead = '10min'; SET snowflake.max_wait = 1;
		SELECT string_agg(sequence::text, ' ') FROM portable.snowflake_sequences
		WHERE (state IN ('ok', 'ahead')) <> (attempt(format('SELECT portable.next_id(5, %L)', sequence)) ~ '^\d{10,}$')}),
	'', 'next_id() does what the view says');

$node->stop;
done_testing();
