# The portable version uses sequences as the extension does: both are in one
# database, the portable one in a schema.

use strict;
use warnings;
use Test::More;
use PortableTest;

my $node = server_with_both_versions();

# IDs in turn from both, of which the first has the last slot of its millisecond
foreach my $layout ([ 'instagram', 1024, 13, 1125899906841599 ], [ 'javascript', 128, 5, 281474976710527 ])
{
	my ($name, $slots, $shard_bits, $max_value) = @$layout;

	is($node->safe_psql('beside', qq{
			SET snowflake.max_lead = '2h';
			CREATE SEQUENCE shared_$name MAXVALUE $max_value;
			SELECT setval('shared_$name', (snowflake_min_id(now() + interval '1 hour', '$name') >> $shard_bits) + $slots - 2);
			SELECT next_id(5, 'shared_$name', '$name') AS a, portable.next_id(5, 'shared_$name') AS b,
			       next_id(5, 'shared_$name') AS c, portable.next_ids(5, 1, 'shared_$name', '$name') AS d,
			       portable.next_id(5, 'shared_$name', '$name') AS e, next_ids(5, 1, 'shared_$name') AS f,
			       portable.next_ids(5, 1, 'shared_$name') AS g \\gset
			SELECT :a % $slots, :b - :a - ((1 << $shard_bits) - 1) * $slots, :c - :b, :d - :c, :e - :d, :f - :e, :g - :f}) =~ s/^\d+\n//r,
		$slots - 1 . '|1|1|1|1|1|1', "each version goes on from the other's last value in layout $name");
}

# Sequences of each MAXVALUE, with values at each limit and near each layout's
# value of now
is($node->safe_psql('beside', q{
		CREATE FUNCTION altered(schema text, layout text, max_value bigint, last bigint, called boolean) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE
			result text;
		BEGIN
			EXECUTE format('CREATE SEQUENCE probe MINVALUE -10 MAXVALUE %s START 1', max_value);
			PERFORM setval('probe', last, called);
			result := attempt(format('SELECT %I.snowflake_alter_sequence(%L, %L)', schema, 'probe', layout));
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
			SELECT format('%s: %s of %s, %s', layout, last, max_value, called) AS values,
			       altered('public', layout, max_value, last, called) AS a, altered('portable', layout, max_value, last, called) AS b
			FROM values_made, (SELECT max_value FROM snowflake_layouts() UNION VALUES (9223372036854775807), (2147483647)) m,
			     unnest(ARRAY[false, true]) called, unnest(ARRAY['instagram', 'javascript']) layout
			WHERE last <= max_value)
		SELECT count(*) > 200, count(*) FILTER (WHERE b LIKE '55000 %') > 100, count(*) FILTER (WHERE b LIKE ' bigint %') > 50,
		       string_agg(concat_ws(': ', values, a, b), '; ') FILTER (WHERE a <> b)
		FROM results}),
	't|t|t|', 'both versions alter the same sequences, and refuse the others');

# A sequence in each state, one of which a session is altering
$node->safe_psql('beside', q{
	CREATE SEQUENCE numbers MAXVALUE 281474976710527;
	SELECT portable.next_id(5, 'numbers');
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
	FROM %s.snowflake_sequences() WHERE layout IN ('instagram', 'javascript')};
{
	my $altering = $node->background_psql('beside');
	$altering->query_safe('BEGIN; ALTER SEQUENCE altering NO CYCLE');
	my $shown = $node->safe_psql('beside', sprintf($states, 'portable'));
	is($shown, $node->safe_psql('beside', sprintf($states, 'public')), 'snowflake_sequences() of both versions show the same');
	is(join(' ', $shown =~ /(\w+) (?=instagram |javascript )[^|]* (\w+)/g),
		'ahead_30 waits ahead_5 ahead ahead_90 refuses altering waits by_two refuses cached refuses cycling refuses '
		  . 'ended refuses fresh ok next_id_seq ok numbers ok next_id_seq ok shared_instagram waits '
		  . 'shared_javascript waits unlogged refuses',
		'snowflake_sequences() shows each sequence in its state, and does not wait for one that is being altered');
	$altering->quit;
}

# Every call with every sequence, of which that for layout twitter needs the
# extension
is($node->safe_psql('beside', q{
		SET snowflake.max_lead = '10min'; SET snowflake.max_wait = 1;
		WITH calls AS (
			SELECT format(replace(command, '%s', shard), sequence) AS call
			FROM unnest(ARRAY['next_id(%s, %L)', 'next_id(%s, %L, ''instagram'')', 'next_id(%s, %L, ''javascript'')',
			                  'next_id(%s, %L, NULL)', 'next_ids(%s, 1, %L)', 'next_ids(%s, 1, %L, ''javascript'')',
			                  'next_ids(%s, 1, %L, NULL)', 'next_ids(%s, 0, %L)']) command,
			     unnest(ARRAY['-1', '0', '31', '32', '8191', '8192']) shard,
			     unnest(ARRAY['numbers', 'fresh', 'cached', 'by_two', 'cycling', 'unlogged', 'ended', 'counter', 'temporary',
			                  'ahead_90']) sequence
			UNION ALL SELECT format(command, sequence)
			FROM unnest(ARRAY['next_id(5, %L)', 'next_id(5, %L, ''instagram'')', 'next_id(NULL, %L)', 'next_id(NULL, %L, ''javascript'')',
			                  'next_ids(5, 1, %L)', 'next_ids(NULL, 1, %L)', 'next_ids(5, NULL, %L)', 'snowflake_advance(%L, 17)',
			                  'snowflake_advance(%L, 17, ''instagram'')', 'snowflake_advance(%L, 17, ''javascript'')',
			                  'snowflake_advance(%L, 17, NULL)', 'snowflake_advance(%L, NULL)', 'snowflake_advance(%L, 0)',
			                  'snowflake_advance(%L, -5)', 'snowflake_advance(%L, 9223372036854775807)',
			                  'snowflake_advance(%L, 4500000000000000000)', 'snowflake_alter_sequence(%L, NULL)',
			                  '(layout, last_timestamp, lead > ''0'', expires, state) FROM snowflake_sequences(%L)',
			                  '(layout, last_timestamp, lead > ''0'', expires, state) FROM snowflake_sequences(%L, ''instagram'')',
			                  '(layout, last_timestamp, lead > ''0'', expires, state) FROM snowflake_sequences(%L, ''javascript'')']) command,
			     unnest(ARRAY['numbers', 'fresh', 'cached', 'counter', 'tweets', 'ended', 'pg_class', 'missing', '4294967295', NULL]) sequence),
		-- The hint at a sequence that is ahead differs, as only the extension has snowflake_check().
		results AS (
			SELECT call, regexp_replace(attempt('SELECT ' || call), '\d{10,}\M|[\d.:-]+ ahead|\d\d:\d\d:\d\d[\d.]*|Correct the clock.*', '(number)', 'g') AS a,
			       regexp_replace(attempt('SELECT ' || regexp_replace(call, '(next|snowflake)_', 'portable.\&')),
			                      '\d{10,}\M|[\d.:-]+ ahead|\d\d:\d\d:\d\d[\d.]*|Correct the clock.*', '(number)', 'g') AS b
			FROM calls WHERE call !~ '\(NULL,.* NULL')
		SELECT count(*) > 600, count(DISTINCT b) > 40, string_agg(concat_ws(' / ', call, a, b), E'\n') FILTER (WHERE a IS DISTINCT FROM b
			AND NOT (call ~ 'tweets' AND b ~ '^55000 .*serves layout "twitter"|^\(,,,,refuses\)$'))
		FROM results}),
	't|t|', 'both versions make IDs for the same arguments, or report the same errors');

# Each version advances a sequence of each layout that is in each state.
is($node->safe_psql('beside', q{
		CREATE FUNCTION advanced(schema text, layout text, setting text, id bigint) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE
			result text;
		BEGIN
			EXECUTE format('CREATE SEQUENCE probe MINVALUE -10 START 1 MAXVALUE %s',
			               (SELECT max_value FROM portable.snowflake_layouts() l WHERE l.name = layout));
			EXECUTE format('SELECT %s FROM probe', setting);
			result := attempt(format('SELECT %I.snowflake_advance(%L, %s)', schema, 'probe', id));
			SELECT concat_ws(' ', result, last_value, is_called) INTO result FROM probe;
			DROP SEQUENCE probe;
			RETURN regexp_replace(result, 'clock says [^.]*\.\d+', 'clock says (time)');
		END $$;
		SET snowflake.max_lead = '1d';
		SET client_min_messages = error;
		WITH results AS (
			SELECT layout, setting, id, advanced('public', layout, setting, id) AS a, advanced('portable', layout, setting, id) AS b
			FROM unnest(ARRAY['instagram', 'javascript']) layout,
			     unnest(ARRAY['', 'nextval(''probe'')', 'setval(''probe'', 200000000000000)', 'setval(''probe'', 100, false)',
			                  'setval(''probe'', -5)']) setting,
			     LATERAL (SELECT unnest(ARRAY[-1, 0, 1, 127, 128, 5000, 8388607, 8388608, 9007199254736895, 9007199254736896,
			                                  9223372036846387199, 9223372036846387200, 9223372036854775807])
			              UNION ALL SELECT snowflake_id(clock_timestamp() + ahead, shard, 3, layout::snowflake_layout)
			              FROM unnest(ARRAY['-5 years', '23 hours 59 min', '24 hours 1 min']::interval[]) ahead,
			                   unnest(ARRAY[0, 31]) shard) i (id))
		SELECT count(*) > 150, count(*) FILTER (WHERE b ~ '^22023 .*more than a day') > 10,
		       count(*) FILTER (WHERE b ~ '^22023 .*too large') > 10, count(*) FILTER (WHERE b ~ '^ \d+ t$') > 50,
		       string_agg(concat_ws(' / ', layout, setting, id, a, b), E'\n') FILTER (WHERE a <> b)
		FROM results}),
	't|t|t|t|', 'both versions advance a sequence in the same way, or report the same errors');
my %warnings = map { my $schema = $_; $schema => do {
		my ($ret, $out, $err) = $node->psql('beside', qq{\\set VERBOSITY verbose
			CREATE SEQUENCE warned MAXVALUE 1125899906841599;
			SELECT $schema.snowflake_advance('warned', snowflake_id(clock_timestamp() + interval '2 hours', 5, 3));
			SELECT $schema.snowflake_advance('warned', 17);
			DROP SEQUENCE warned});
		$err =~ s/^(?:LOCATION|CONTEXT): .*\n?//mgr =~ s/<stdin>:\d+|\d+-\d+-\d+ |[\d:.]+(?=\+00)|\d\d:[\d:.]+(?= ahead)/-/gr } } qw(public portable);
is($warnings{portable}, $warnings{public}, 'both versions say until when calls wait');
like($warnings{portable}, qr/01000: sequence "warned" is - ahead of the clock\nDETAIL:  Calls.*\n.*01000: sequence "warned"/,
	'a warning names the sequence, also where that was beyond the ID before');
is($node->safe_psql('beside', q{
		SET snowflake.max_lead = '10min'; SET snowflake.max_wait = 1;
		SELECT string_agg(sequence::text, ' ') FROM portable.snowflake_sequences()
		WHERE (state IN ('ok', 'ahead')) <> (attempt(format('SELECT portable.next_id(5, %L)', sequence)) ~ '^\d{10,}$')}),
	'', 'next_id() does what snowflake_sequences() says');

$node->stop;
done_testing();
