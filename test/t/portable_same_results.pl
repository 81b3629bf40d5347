# The portable version and the extension, in schemas of one database, return the
# same results for the same calls, or raise errors with the same SQLSTATE.

use SnowflakeTest;

my $node = server_in_utc('both_versions');
new_portable_database($node, 'beside', schema => 'portable');
$node->safe_psql('beside', 'CREATE EXTENSION snowflake');

# --- what there is ----------------------------------------------------------

is($node->safe_psql('beside', q{
		WITH functions AS (
			SELECT pronamespace::regnamespace::text AS schema, proname AS name,
			       format('%s(%s) %s %s %s %s %s', proname, replace(pg_get_function_arguments(oid), '::text', ''),
			              proretset, prorettype::regtype, provolatile, proisstrict, proparallel) AS description
			FROM pg_proc WHERE pronamespace IN ('portable'::regnamespace, 'public'::regnamespace))
		SELECT description FROM functions
		WHERE schema = 'portable' AND description NOT IN (SELECT description FROM functions WHERE schema = 'public')
		ORDER BY name}),
	join("\n",
		'snowflake_alter_sequence(sequence regclass) f void v f u',
		'snowflake_no_shard() f integer s f s',
		'snowflake_replace_shard(shard bigint, function regprocedure, no_shard regprocedure) f void v f u',
		'snowflake_take(shard bigint, count bigint, sequence regclass, skip_to bigint) f bigint v f u',
		'snowflake_to_json(id portable.snowflake) f json i t s'),
	'all other functions have the names, arguments and labels of the extension\'s');

# In how many rows of a query (input, a, b) the extension's result a and the portable version's
# result b differ, and the first one of them; nothing if there is none
sub differences
{
	my ($query) = @_;
	return $node->safe_psql('beside', qq{
		SET client_min_messages = error;
		WITH results AS MATERIALIZED ($query), first AS (
			SELECT input, a, b FROM results WHERE a IS DISTINCT FROM b ORDER BY input LIMIT 1)
		SELECT format(E'%s of %s differ, the first for %s:\nextension %L\nportable  %L',
			(SELECT count(*) FROM results WHERE a IS DISTINCT FROM b), (SELECT count(*) FROM results), input, a, b)
		FROM first});
}

# --- numbers and times ------------------------------------------------------

$node->safe_psql('beside', q{
	SELECT setseed(0.5);
	CREATE TABLE ids AS
	SELECT ('x' || md5(random()::text))::bit(64)::bigint >> unused AS id
	FROM generate_series(1, 5000), unnest(ARRAY[0, 11]) unused
	UNION SELECT d + (1::bigint << n) FROM generate_series(0, 63) n, generate_series(-1, 0) d WHERE n < 63 OR d = 0
	UNION SELECT unnest(ARRAY[-1, 0, 9223372036854775807, 9223372036846387199, 9223372036846387200]);
	CREATE TABLE times AS
	SELECT snowflake_timestamp(id) + d * interval '1 us' AS ts
	FROM ids, unnest(ARRAY[-1000, -999, -1, 0, 1, 500, 999]) d
	UNION SELECT unnest(ARRAY['-infinity', 'infinity', '4713-11-24 00:00Z BC',
	                          '294276-12-31 23:59:59.999999Z']::timestamptz[])
	UNION SELECT t + d * interval '1 us'
	FROM unnest(ARRAY['2011-08-24 21:07:01.721Z', '2046-06-27 17:00:49.494Z', '2046-06-27 17:00:49.495Z',
	                  '2046-06-27 17:00:49.496Z', '2081-04-30 12:54:37.271Z']::timestamptz[]) t,
	     unnest(ARRAY[-1000, -1, 0, 1, 1000]) d});

cmp_ok($node->safe_psql('beside', "SELECT count(*) FROM $_"), '>', 5000, "there are many $_") foreach 'ids', 'times';
foreach my $call ('snowflake_timestamp(id)', 'snowflake_shard(id)', 'snowflake_sequence_number(id)',
	'ARRAY(SELECT snowflake_fields(id)::text)', 'snowflake_to_text(greatest(id, 0))',
	q{snowflake_to_text(greatest(id, 0), 'base32')}, q{snowflake_to_text(greatest(id, 0), 'base64url')},
	'snowflake_min_id(ts)', 'snowflake_max_id(ts)')
{
	my $portable = $call =~ s/(?=snowflake_)/portable./r;
	my ($column, $table) = $call =~ /\(ts/ ? ('ts', 'times') : ('id', 'ids');

	is(differences("SELECT $column AS input, $call AS a, $portable AS b FROM $table"), '',
		"both versions return the same for $call");
}

# --- calls, and their errors ------------------------------------------------

# The result of a command: an error as its SQLSTATE, and a new ID as "ID".  A function in SQL that
# returns void returns NULL, and one in C an empty string.
$node->safe_psql('beside', q{
	CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		result text;
	BEGIN
		EXECUTE command INTO result;
		RETURN CASE WHEN command ~ 'next_id' THEN regexp_replace(result, '^\d{19}$', 'ID')
			WHEN command ~ 'snowflake_advance' THEN coalesce(result, '') ELSE result END;
	EXCEPTION WHEN OTHERS THEN
		RETURN SQLSTATE;
	END $$;
	SET client_min_messages = error;
	CREATE SEQUENCE fresh MAXVALUE 1125899906841599;
	CREATE SEQUENCE used MAXVALUE 1125899906841599;
	SELECT next_id(5, 'used');
	CREATE SEQUENCE cached MAXVALUE 1125899906841599 CACHE 7;
	CREATE SEQUENCE by_two MAXVALUE 1125899906841599 INCREMENT 2;
	CREATE SEQUENCE cycling MAXVALUE 1125899906841599 CYCLE;
	CREATE UNLOGGED SEQUENCE unlogged MAXVALUE 1125899906841599;
	CREATE SEQUENCE ended MAXVALUE 1125899906841599;
	SELECT setval('ended', 1125899906841599);
	CREATE SEQUENCE negative MINVALUE -10 START 1 MAXVALUE 1125899906841599;
	SELECT setval('negative', -5);
	CREATE SEQUENCE counter;
	CREATE SEQUENCE ahead MAXVALUE 1125899906841599;
	SELECT setval('ahead', (snowflake_min_id(now() + interval '90 min') >> 23) * 1024);
	CREATE TABLE identity (id bigint GENERATED ALWAYS AS IDENTITY);
	CREATE ROLE nobody});

# Calls in pairs, which have these SQLSTATEs, or "ID", among their results
sub same_results
{
	my ($what, $expected, $calls, $settings) = @_;

	$node->safe_psql('beside', 'CREATE TABLE results (call text, a text, b text); GRANT ALL ON results TO nobody');
	$node->safe_psql('beside', ($settings // '') . qq{
		SET client_min_messages = error;
		CREATE TEMPORARY SEQUENCE temporary MAXVALUE 1125899906841599;
		INSERT INTO results SELECT call, attempt('SELECT ' || call),
			attempt('SELECT ' || regexp_replace(call, '(next_id|snowflake_)', 'portable.\\&', 'g'))
		FROM ($calls) c (call)});
	is(differences('SELECT call AS input, a, b FROM results'), '',
		"both versions return the same, or raise the same errors, for $what");
	my $seen = $node->safe_psql('beside', q{
		SELECT string_agg(DISTINCT b COLLATE "C", ' ') FROM results WHERE b ~ '^(ID|\w{5})$';
		DROP TABLE results});
	return is($seen, $expected, "... which are $expected");
}

same_results('compositions', '22008 22023', q{
	SELECT format('snowflake_id(%L::timestamptz, %s, %s)', ts, shard, number)
	FROM (SELECT ts FROM times ORDER BY random() LIMIT 300) t, unnest(ARRAY[-1, 0, 5, 8191, 8192]) shard,
	     unnest(ARRAY[-1, 0, 1023, 1024]) number
	UNION ALL SELECT format('snowflake_id(%L, 0, %s)', t, number)
	FROM unnest(ARRAY['2011-08-24 21:07:01.720999Z', '2011-08-24 21:07:01.721Z', '2011-08-24 21:07:01.721999Z',
	                  '2046-06-27 17:00:49.495999Z', '2046-06-27 17:00:49.496Z', 'infinity', '-infinity']) t,
	     generate_series(0, 1) number
	UNION ALL SELECT unnest(ARRAY['snowflake_to_text(-1)', 'snowflake_to_text(1, ''base'')',
	                              'snowflake_to_text(NULL)'])});
same_results('shards and sequences', '22004 2200H 22023 42809 42P01 53400 55000 ID', q{
	SELECT format(call, shard) FROM unnest(ARRAY['next_id(%s)', 'next_ids(%s, 1)', 'next_id(%s, ''used'')']) call,
	     unnest(ARRAY['-1', '0', '8191', '8192', 'NULL']) shard
	UNION ALL SELECT format(call, sequence)
	FROM unnest(ARRAY['next_id(5, %L)', 'next_ids(5, 1, %L)', 'snowflake_advance(%L, 17)']) call,
	     unnest(ARRAY['used', 'fresh', 'cached', 'by_two', 'cycling', 'unlogged', 'ended', 'negative', 'counter',
	                  'temporary', 'ahead', 'times', 'missing', '4294967295', NULL]) sequence
	UNION ALL SELECT unnest(ARRAY['next_ids(5, 0)', 'next_ids(5, NULL)', 'next_ids(5, 0, ''used'')', 'next_ids(5, -1)',
		'snowflake_advance(''used'', NULL)', 'snowflake_advance(''used'', 0)', 'snowflake_advance(''used'', -5)',
		'snowflake_advance(''used'', 9223372036854775807)'])}, 'SET snowflake.max_wait = 1;');
same_results('sequences to alter', '22004 42809 42P01 55000', q{
	SELECT format('snowflake_alter_sequence(%L)', sequence)
	FROM unnest(ARRAY['identity_id_seq', 'unlogged', 'temporary', 'times', 'missing', '4294967295', NULL,
	                  'next_id_seq']) sequence});
same_results('roles that may use next_id_seq and no other sequence', '42501 ID', q{
	SELECT unnest(ARRAY['next_id(5, ''used'')', 'next_ids(5, 1, ''cached'')', 'snowflake_advance(''used'', 17)',
		'snowflake_alter_sequence(''counter'')', 'snowflake_set_shard(5)', 'next_id(5)', 'next_ids(5, 1)'])},
	'GRANT USAGE ON SCHEMA portable TO nobody; SET ROLE nobody;');
same_results('read-only transactions', '25006', q{
	SELECT call || ' FROM set_config(''transaction_read_only'', ''on'', true)'
	FROM unnest(ARRAY['next_id(5)', 'next_id(5, ''used'')', 'next_ids(5, 1)',
	                  'snowflake_advance(''used'', 17)', 'snowflake_set_shard(5)']) call});
same_results('the shard', '22023 55000 ID', q{
	SELECT unnest(ARRAY['snowflake_shard()', 'next_id()', 'snowflake_set_shard(8192)', 'snowflake_set_shard(-2)',
		'snowflake_set_shard(8191)', 'snowflake_shard()', 'snowflake_shard(next_id())', 'next_id()',
		'next_id(snowflake_shard(), ''used'')', 'snowflake_set_shard(0)', 'snowflake_shard()',
		'snowflake_set_shard(-1)', 'next_id()', 'snowflake_set_shard(7)', 'snowflake_set_shard(NULL)',
		'snowflake_shard()'])});

# --- what errors say ----------------------------------------------------------

# What the portable version prints, without places and numbers that depend on the clock
sub portable_says
{
	my ($sql) = @_;
	my (undef, undef, $said) = $node->psql('beside', "SET search_path = portable, public; $sql");
	return $said =~ s/^psql:<stdin>:\d+: //gmr =~ s/\nCONTEXT: .*//sr =~ s/\d\d:\d\d:\d\d[.\d]*/TIME/gr;
}

$node->safe_psql('beside', q{
	CREATE SEQUENCE large;
	SELECT setval('large', 1099511627776);
	CREATE SEQUENCE later MAXVALUE 1125899906841599});
foreach my $case (
	[ 'next_id()',
		"the shard of this database is not set\n"
		  . 'HINT:  SELECT snowflake_set_shard(...) sets it, to a shard that no other database has.' ],
	[ 'snowflake_set_shard(8192)', 'shard 8192 is not between 0 and 8191' ],
	[ 'next_id(8192)', 'shard 8192 is not between 0 and 8191' ],
	[ q{snowflake_id('2020-01-01Z', -1, 1)}, 'shard -1 is not between 0 and 8191' ],
	[ q{snowflake_id('2020-01-01Z', 1, 1024)}, 'sequence number 1024 is not between 0 and 1023' ],
	[ q{snowflake_id('2000-01-01Z', 1, 1)}, 'timestamp 2000-01-01 TIME+00 is out of range' ],
	[ q{snowflake_id('2011-08-24 21:07:01.721Z', 0, 0)}, 'cannot compose the ID 0' ],
	[ 'next_id(NULL)', 'arguments must not be null' ],
	[ 'next_id(5, 4294967295)', 'sequence with OID 4294967295 does not exist' ],
	[ 'next_ids(5, 0)', 'count 0 is out of range' ],
	[ q{next_id(5, 'cached')},
		"cannot generate IDs from sequence \"public.cached\"\n"
		  . "DETAIL:  It must be logged, and have the parameters of next_id_seq.\n"
		  . q{HINT:  If nothing else uses it: SELECT snowflake_alter_sequence('public.cached').} ],
	[ q{next_id(5, 'negative')}, 'value -5 of sequence "public.negative" is out of range' ],
	[ q{next_id(5, 'ended')}, 'the time of IDs is used up' ],
	[ q{next_id(5, 'ahead')},
		"sequence \"public.ahead\" is TIME ahead of the clock\n"
		  . 'HINT:  Correct the clock if it is wrong, or wait for it to catch up.' ],
	[ q{snowflake_alter_sequence(NULL)}, 'sequence must not be null' ],
	[ q{snowflake_alter_sequence('large')},
		"cannot generate IDs from sequence \"public.large\"\n"
		  . "DETAIL:  Its last value 1099511627776 is not that of a counter of rows.\n"
		  . 'HINT:  Use a new sequence, with a new shard if the table has IDs already.' ],
	[ q{snowflake_advance('used', NULL)}, 'arguments must not be null' ],
	[ q{snowflake_advance('used', 0)}, 'ID 0 is not positive' ],
	[ q{snowflake_advance('used', 7505864531621450783)}, 'ID 7505864531621450783 is over a day ahead of the clock' ],
	[ q{snowflake_to_text(1, 'base')},
		"unrecognized encoding: \"base\"\nHINT:  The encodings are base62, base32 and base64url." ],
	[ 'snowflake_to_text(-1)', 'ID -1 has no text form' ])
{
	is(portable_says("SELECT $case->[0]"), "ERROR:  $case->[1]", "the portable version says of $case->[0]");
}
is(portable_says(q{SELECT snowflake_advance('later', snowflake_max_id(now() + interval '1 hour'))}),
	"WARNING:  sequence \"public.later\" is TIME ahead of the clock\n"
	  . 'DETAIL:  Until that is at most a second, calls of next_id() wait, or fail if it takes too long.',
	'it warns of a sequence that it moves ahead of the clock');
is(portable_says(q{SELECT snowflake_advance('fresh', snowflake_max_id(now() - interval '1 hour'))}), '',
	'... and of no other');
# Half a second ahead of the clock, where next_id() does not wait
is(portable_says(q{
		DO $$
		DECLARE
			largest bigint := snowflake_max_id(clock_timestamp() + interval '0.5 s');
			next bigint;
		BEGIN
			PERFORM snowflake_advance('fresh', largest);
			next := next_id(0, 'fresh');
			IF next <= largest THEN
				RAISE 'snowflake_advance() to ms %, shard %, sequence number %; then next_id(0) has ms %, sequence number %',
					largest >> 23, snowflake_shard(largest), snowflake_sequence_number(largest), next >> 23,
					snowflake_sequence_number(next);
			END IF;
		END $$}), '', 'after the portable snowflake_advance(), IDs of each shard are larger than the given one');
is(portable_says(q{SET ROLE nobody; SELECT next_id(5, 'used')}),
	"ERROR:  permission denied for sequence public.used\nHINT:  The sequence's owner can GRANT USAGE, UPDATE ON SEQUENCE.",
	'it says what privileges a role needs');
is(portable_says(q{
		SELECT snowflake_set_shard(5), next_id(), snowflake_alter_sequence('cached'), next_id(5, 'cached');
		GRANT USAGE, UPDATE ON SEQUENCE used TO nobody;
		SET ROLE nobody;
		SELECT next_id(5, 'used')}), '', 'and its hints are right');

# Ahead of the clock, whose progress would hide it, a call takes as many values as it returns IDs.
is($node->safe_psql('beside', qq{
		SET search_path = portable;
		SELECT setval('next_id_seq', (snowflake_min_id(now() + interval '900 ms') >> 13)) AS before \\gset
		SELECT max(id) AS id FROM (SELECT $_->[0] AS id) AS t \\gset
		SELECT last_value - :before FROM next_id_seq}), $_->[1], "$_->[0] takes $_->[1] of the portable sequence's values")
  foreach [ 'next_id()', 1 ], [ 'next_id(5)', 1 ], [ q{next_id(5, 'next_id_seq')}, 1 ], [ 'next_ids(5, 3)', 3 ],
  [ q{next_ids(5, 3, 'next_id_seq')}, 3 ];

# --- sequences that both use ------------------------------------------------

# The first ID has the last slot but one of its millisecond.
is($node->safe_psql('beside', q{
		CREATE SEQUENCE shared MAXVALUE 1125899906841599;
		SELECT setval('shared', (snowflake_min_id(now() + interval '900 ms') >> 13) + 1024 - 3);
		SELECT next_id(5, 'shared') AS a, portable.next_id(5, 'shared') AS b, next_id(5, 'shared') AS c,
		       portable.next_ids(5, 1, 'shared') AS d, next_ids(5, 1, 'shared') AS e,
		       portable.next_id(5, 'shared') AS f \gset
		SELECT :a % 1024, :b - :a, :c - :b - 8191 * 1024, :d - :c, :e - :d, :f - :e}) =~ s/^\d+\n//r,
	'1022|1|1|1|1|1', 'each version goes on from the other\'s last value');

# What snowflake_alter_sequence() does to a new sequence that a setting has changed
$node->safe_psql('beside', q{
	CREATE FUNCTION probe(schema text, max_value bigint, setting text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		result text;
	BEGIN
		EXECUTE format('CREATE SEQUENCE probe MINVALUE -10 MAXVALUE %s START 1', max_value);
		EXECUTE format('SELECT %s FROM probe', setting);
		result := attempt(format('SELECT %I.snowflake_alter_sequence(''probe'')', schema));
		SELECT concat_ws(' ', result, seqtypid::regtype, seqmax, seqincrement) INTO result
		FROM pg_sequence WHERE seqrelid = 'probe'::regclass;
		SELECT concat_ws(' ', result, last_value, is_called) INTO result FROM probe;
		DROP SEQUENCE probe;
		RETURN result;
	END $$;
	CREATE TABLE probes AS
	SELECT max_value, format('setval(''probe'', %s, %s)', last, called::text) AS setting
	FROM unnest(ARRAY[-10, 0, 5, 1099511627775, 1099511627776, 1125899906841599, 1125899906841600]) last,
	     unnest(ARRAY[1125899906841599, 9223372036854775807, 2147483647, 281474976710527]) max_value,
	     unnest(ARRAY[false, true]) called
	WHERE last <= max_value});
$node->safe_psql('beside', q{
	SET client_min_messages = error;
	CREATE TABLE altered AS
	SELECT format('MAXVALUE %s after %s', max_value, setting) AS input, probe('public', max_value, setting) AS a,
	       probe('portable', max_value, setting) AS b FROM probes});
is(differences('TABLE altered'), '', 'both versions alter the same sequences in the same way');
is($node->safe_psql('beside', q{
		SELECT count(*) FILTER (WHERE b ~ '^55000') || ' refused, '
			|| count(*) FILTER (WHERE b ~ '^ bigint 1125899906841599 1') || ' altered' FROM altered}),
	'11 refused, 31 altered', '... and refuse the others');

$node->stop;
done_testing();
