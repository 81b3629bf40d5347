# portable/snowflake.sql, for servers without the extension: it does what the
# extension does, as far as doc/portable.md says so, and gives way to it.
#
# The extension's own SQL tests are run on it, from the same text.  Where its
# output differs from theirs is listed in 018_portable.diff.  A run leaves that
# list as it found it in tmp_check.

use strict;
use warnings;
use File::Spec;
use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $top = File::Spec->rel2abs("$FindBin::RealBin/..");
my $file = "$top/portable/snowflake.sql";
my $ledger = ledger_program();
my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
# where the document's commands find the file
chdir $top or die "chdir: $!";

my $node = PostgreSQL::Test::Cluster->new('portable');
$node->init;
$node->append_conf('postgresql.conf', "max_connections = 60\ntimezone = 'UTC'\n");
$node->start;

my @blocks = blocks('doc/portable.md');
my %recipe;
push @{ $recipe{ $_->{section} } }, $_ foreach @blocks;

# The file into a database of its own
sub install
{
	my ($database, @settings) = @_;

	local $ENV{PGOPTIONS} = join(' ', map { "-c $_" } @settings);
	my ($out, $err) = run_command([ 'psql', '-XqAt', '-1', '-d', $node->connstr($database), '-f', $file ]);
	return $err;
}

sub new_database
{
	my ($database, $owner) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $database" . ($owner ? " OWNER $owner" : ''));
	return;
}

# --- installing -----------------------------------------------------------

# the command of the document, as the owner of a database and no superuser
{
	my ($block) = grep { $_->{language} eq 'sh' } @{ $recipe{Install} };
	$node->safe_psql('postgres', 'CREATE ROLE app_owner LOGIN');
	new_database('app', 'app_owner');
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGUSER => 'app_owner');
	my ($out, $err) = run_command([ 'sh', '-ec', $block->{code} ]);
	is($err, '', 'the owner of a database can install it');
}
run_examples($node, 'app', @{ $recipe{Install} });
is($node->safe_psql('app', q{
		SELECT count(*) FILTER (WHERE d IS NULL), count(*) > 15
		FROM (SELECT obj_description(oid, 'pg_proc') FROM pg_proc WHERE proowner = 'app_owner'::regrole
		      UNION ALL SELECT obj_description(c, 'pg_class') FROM unnest(ARRAY['next_id_seq', 'snowflake_sequences']::regclass[]) c) t (d)}),
	'0|t', 'everything has a comment');
is($node->safe_psql('app', q{
		SELECT next_id(5) > 0 AND next_id(5) < next_id(5), (SELECT count(*) FROM next_ids(5, 10))},
		extra_params => [ '-U', 'app_owner' ]),
	't|10', 'the owner of a database can use it');

# once only, and not where the extension is
my $before = $node->safe_psql('app', 'SELECT count(*) FROM pg_proc');
like(install('app'), qr/relation "next_id_seq" already exists/, 'the file does not run twice');
is($node->safe_psql('app', 'SELECT count(*) FROM pg_proc'), $before, 'a second run changes nothing');
new_database('extension');
$node->safe_psql('extension', 'CREATE SCHEMA other; CREATE EXTENSION snowflake SCHEMA other');
like(install('extension'), qr/ERROR:  an extension named "snowflake" is installed in this database/,
	'the file does not run beside the extension');
is($node->safe_psql('extension', q{SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace}),
	0, 'a run beside the extension changes nothing');

# in any schema, called from anywhere
new_database('elsewhere');
$node->safe_psql('elsewhere', q{
	CREATE SCHEMA "Other Ids";
	CREATE SCHEMA trap;
	CREATE FUNCTION trap.snowflake_take(bigint, integer, regclass) RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
	CREATE FUNCTION trap.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
	CREATE FUNCTION trap.setval(regclass, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
	CREATE FUNCTION trap.plus(bigint, integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	CREATE OPERATOR trap.+ (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = trap.plus);
	CREATE FUNCTION trap.equal(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1';
	CREATE OPERATOR trap.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = trap.equal);
	CREATE SEQUENCE trap.next_id_seq;
	CREATE SEQUENCE "Other Ids"."Own";
	CREATE SEQUENCE trap."Own"});
is(install('elsewhere', 'search_path="Other\\ Ids"'), '', 'the file installs into the first schema of the search path');
is($node->safe_psql('elsewhere', q{
		SET snowflake.shard = 7;
		SET search_path = trap, pg_catalog;
		SELECT "Other Ids".snowflake_shard("Other Ids".next_id()),
		       "Other Ids".snowflake_timestamp("Other Ids".next_id(5)) BETWEEN now() AND clock_timestamp(),
		       (SELECT count(DISTINCT i) FROM "Other Ids".next_ids(5, 3000) i),
		       (SELECT last_timestamp >= now() FROM "Other Ids".snowflake_status()), (SELECT is_called FROM next_id_seq)}),
	'7|t|3000|t|f', 'no search path leads the functions astray');
is($node->safe_psql('elsewhere', q{
		SET search_path = trap, pg_catalog;
		SELECT "Other Ids".snowflake_alter_sequence('trap."Own"');
		SELECT "Other Ids".snowflake_shard("Other Ids".next_id(5, '"Own"')),
		       (SELECT string_agg(sequence || ' ' || state, ' ' ORDER BY sequence::text) FROM "Other Ids".snowflake_sequences),
		       (SELECT max_value FROM pg_sequences WHERE schemaname = 'Other Ids' AND sequencename = 'Own')}),
	"\n" . '5|"Other Ids".next_id_seq ok "Own" ok|9223372036854775807',
	'snowflake_alter_sequence() and the view use the sequence that the caller means');

# --- the same SQL tests ---------------------------------------------------

my ($error_of) = slurp_file("$top/sql/extension.sql") =~ /^(CREATE FUNCTION error_of.*)/ms;

# The output in a form that depends neither on the width of columns nor on how a
# release words its own errors
sub canonical
{
	my ($output) = @_;

	$output =~ s/([ -])[ -]+/$1/g;
	$output =~ s/^ +//mg;
	$output =~ s/^(LINE \d+:|\^|HINT: .*\bfunction\b|CONTEXT:|SQL statement|PL\/pgSQL function).*\n//mg;
	$output =~ s/(does not exist)\|\|.*/$1/g;
	$output =~ s/cannot (start subtransactions|execute \w+\(\)) during/cannot ... during/g;
	return $output;
}

my %listed = slurp_file("$FindBin::RealBin/018_portable.diff") =~ /^(\w+)\n((?:[-+ @].*\n)*)/mg;
my @tests = qw(decode next_id next_ids errors sequences);
# When COMMIT fills a cursor WITH HOLD, an error that PL/pgSQL catches trips an
# assertion of PostgreSQL's, though nothing is wrong.
push @tests, 'transactions' if $node->safe_psql('postgres', 'SHOW debug_assertions') eq 'off';

foreach my $test (@tests)
{
	my $sql = slurp_file("$top/sql/$test.sql");
	my $expected = slurp_file("$top/expected/$test.out");
	my $output;

	# it is slower
	s/\b2000000\b/100000/g foreach $sql, $expected;
	# it has no layout to name
	s/(snowflake_alter_sequence\([^,()]*), ('+)instagram\2\)/$1)/gi foreach $sql, $expected;
	# it sets the sequence
	s/GRANT USAGE ON SEQUENCE orders/GRANT USAGE, UPDATE ON SEQUENCE orders/ foreach $sql, $expected;

	new_database("test_$test");
	install("test_$test");
	$node->safe_psql("test_$test", $error_of);
	{
		# as pg_regress does it
		local %ENV = (%ENV, PGTZ => 'PST8PDT', PGDATESTYLE => 'Postgres, MDY',
			PGOPTIONS => '-c intervalstyle=postgres_verbose');
		IPC::Run::run([ 'psql', '-X', '-a', '-q', '-d', $node->connstr("test_$test") ], '<', \$sql, '>&', \$output);
	}
	append_to_file("$dir/$test.$_->[0]", canonical($_->[1])) foreach [ expected => $expected ], [ output => $output ];
	my ($difference) = run_command([ 'diff', '-U1', "$dir/$test.expected", "$dir/$test.output" ]);
	$difference =~ s/\A---.*\n\+\+\+.*\n//;
	$difference =~ s/^@@.*/@@/mg;
	$difference .= "\n" if $difference ne '';
	append_to_file("$PostgreSQL::Test::Utils::tmp_check/018_portable.diff", "$test\n$difference");
	is($difference, $listed{$test}, "sql/$test.sql: the portable version differs as listed, and in nothing else");
}

# --- functions that decode and compose, beside the extension's ------------

new_database('beside');
$node->safe_psql('beside', 'CREATE SCHEMA portable');
install('beside', 'search_path=portable');
$node->safe_psql('beside', 'CREATE EXTENSION snowflake');
# the layout aside, which comes last where there is one
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
	CREATE FUNCTION attempt(command text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		result text;
	BEGIN
		EXECUTE command INTO result;
		RETURN result;
	EXCEPTION WHEN OTHERS THEN
		RETURN SQLSTATE || ' ' || SQLERRM;
	END $$;
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

# one takes over the sequence where the other left it, to the slot
is($node->safe_psql('beside', q{
		SET snowflake.max_lead = '2h';
		CREATE SEQUENCE shared MAXVALUE 1125899906841599;
		SELECT setval('shared', (snowflake_min_id(now() + interval '1 hour') >> 23) * 1024 + 1022);
		SELECT next_id(5, 'shared') AS a, portable.next_id(5, 'shared') AS b, next_id(5, 'shared') AS c,
		       portable.next_ids(5, 1, 'shared') AS d \gset
		SELECT :a % 1024, :b - :a - (8191 << 10), :c - :b, :d - :c}) =~ s/^\d+\n//r,
	'1023|1|1|1', 'each version goes on from the other\'s last value');

# which sequences it makes serve: of each MAXVALUE, with values at each limit
# and at each layout's time of now
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

# The view, with a sequence for each state, one of which somebody is altering.
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

# in an index, which the planner then finds
like($node->safe_psql('elsewhere', q{
		SET search_path = "Other Ids";
		CREATE TABLE p (id bigint PRIMARY KEY DEFAULT next_id(3)) PARTITION BY RANGE (id);
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (snowflake_min_id('2020-01-01Z')) TO (snowflake_min_id('2025-01-01Z'));
		CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (snowflake_min_id('2025-01-01Z')) TO (MAXVALUE);
		CREATE INDEX by_time ON p2 (snowflake_timestamp(id));
		INSERT INTO p SELECT FROM generate_series(1, 100);
		SET enable_seqscan = off; SET enable_bitmapscan = off;
		EXPLAIN (COSTS OFF) SELECT FROM p WHERE id < snowflake_min_id('2024-01-01Z');
		EXPLAIN (COSTS OFF) SELECT FROM p2 WHERE snowflake_timestamp(id) > now() - interval '1 day'}),
	qr/^Index Only Scan using p1_pkey on p1 p\n +Index Cond: \(id < '\d+'::bigint\)\nIndex Scan using by_time on p2\n +Index Cond/,
	'bounds prune partitions, and decoders use an index');

# in a transaction that is older than the sequence
my $old = $node->background_psql('app');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('app', 'CREATE SEQUENCE late MAXVALUE 1125899906841599');
is($old->query_safe(q{SELECT next_id(5, 'late') > 0, (SELECT count(*) FROM next_ids(5, 10, 'late')),
		(SELECT last_timestamp >= now() FROM snowflake_status('late'))}),
	't|10|t', 'an old snapshot uses a new sequence');
$node->safe_psql('app', 'CREATE SEQUENCE late_counter; CREATE SEQUENCE late_cached MAXVALUE 1125899906841599 CACHE 7');
$node->safe_psql('app', $error_of);
is($old->query_safe(q{SELECT (SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''late_counter'')')),
		(SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''late_cached'')'))}),
	'55000|55000', 'an old snapshot does not hide that a new sequence cannot be used');
$old->quit;

# --- privileges -----------------------------------------------------------

foreach my $privileges ('SELECT', 'USAGE', 'USAGE, UPDATE')
{
	my $role = 'has_' . lc($privileges) =~ s/\W+/_/gr;
	$node->safe_psql('app', "CREATE ROLE $role; GRANT $privileges ON SEQUENCE next_id_seq TO $role");
	like(sqlstate_of($node, "SET ROLE $role; SELECT next_id(5) > 0", dbname => 'app'),
		$privileges =~ /UPDATE/ ? qr/^no error: t$/ : qr/^42501 permission denied for sequence next_id_seq/,
		"privileges on the sequence: $privileges");
}

# nothing is told of a sequence without a privilege
$node->safe_psql('app', q{
	CREATE SEQUENCE hidden;
	CREATE SEQUENCE hidden_tweets MAXVALUE 9007199254736895;
	CREATE SEQUENCE hidden_cached CACHE 7 MAXVALUE 1125899906841599;
	CREATE UNLOGGED SEQUENCE hidden_unlogged MAXVALUE 1125899906841599;
	CREATE ROLE has_nothing;
	GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO has_select});
is($node->safe_psql('app', q{
		SET ROLE has_nothing;
		SELECT count(*) FILTER (WHERE sqlstate_ = '42501'), count(DISTINCT message), count(nullif(detail, ''))
		FROM unnest(ARRAY['next_id(1, %L)', 'next_ids(1, 2, %L)', 'snowflake_status(%L)', 'snowflake_alter_sequence(%L)']) command,
		     unnest(ARRAY['hidden', 'hidden_tweets', 'hidden_cached', 'hidden_unlogged']) seq, error_of('SELECT ' || format(command, seq));
		SELECT DISTINCT state, last_timestamp FROM snowflake_sequences;
		SET ROLE has_select;
		SELECT DISTINCT sqlstate_ FROM unnest(ARRAY['hidden', 'hidden_tweets', 'hidden_cached', 'hidden_unlogged']) seq,
			error_of(format('SELECT next_id(1, %L)', seq))}),
	"16|8|0\nno privilege|\n42501", 'without a privilege, nothing is told of a sequence');

# --- many sessions, cancelled and terminated at any moment ----------------

sub start_load
{
	my ($name, $database, $max_lead, @options) = @_;
	return IPC::Run::start([ $ledger, 'run', '--connection', $node->connstr($database), '--shards', '5,8191',
			'--max-lead', $max_lead, @options, "$dir/$name" ]);
}

# The ledger's report: no faults but the errors that are none here.
sub check_ledger
{
	my ($name, $errors, @ledgers) = @_;
	my ($report) = run_command([ $ledger, 'check', map { "$dir/$_" } @ledgers ]);
	note($report);
	foreach my $fault ('duplicates', 'not growing within a call', 'out of order in time', 'wrong shard',
		'too far ahead of the clock', 'behind the clock')
	{
		like($report, qr/^$fault +0$/m, "$name: $fault: none");
	}
	my ($seen) = $report =~ /^errors by SQLSTATE +(.*)$/m;
	is(join(' ', grep { !/^($errors)$/ } $seen =~ /(\w{5}):/g), '', "$name: no error that must not be");
	return;
}

# Cancel sessions at random moments for a few seconds, twice at times, as the
# impatient do, and terminate some; return how often.
sub strike
{
	my ($whom, $terminated) = @_;

	return qq{
		CREATE TEMPORARY TABLE struck AS SELECT 0 AS times;
		DO \$\$ BEGIN
			FOR i IN 1 .. 400 LOOP
				PERFORM pg_stat_clear_snapshot();
				WITH victims AS MATERIALIZED (
					SELECT pid FROM pg_stat_activity WHERE $whom AND state = 'active' ORDER BY random() LIMIT 3)
				UPDATE struck SET times = times + (
					SELECT count(pg_cancel_backend(pid)) + count(CASE
						WHEN random() < 0.5 THEN pg_cancel_backend(pid)
						WHEN random() < $terminated THEN pg_terminate_backend(pid) END) FROM victims);
				PERFORM pg_sleep(random() * 0.01);
			END LOOP;
		END \$\$;
		SELECT times FROM struck};
}

my $advisory = q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'};
{
	new_database('crowd');
	install('crowd');
	$node->safe_psql('crowd', 'CREATE SEQUENCE own MAXVALUE 1125899906841599;' . `$ledger init`);
	my $load = start_load('crowd', 'crowd', 1000, '--sessions', 12, '--sequences', 'next_id_seq,own', '--batch', 300);
	ok(more_ids("$dir/crowd", 20_000), 'many sessions make IDs');

	# who changes the sequence and uses it, in one transaction, deadlocks with nobody
	foreach (1 .. 5)
	{
		is(sqlstate_of($node, 'BEGIN; ALTER SEQUENCE next_id_seq NO CYCLE; SELECT count(next_id(5)) FROM generate_series(1, 10); COMMIT',
				dbname => 'crowd'), 'no error: 10', 'a transaction that alters and uses a sequence does not deadlock') or last;
	}

	# most often while they wait for the lock, sometimes while they have it
	my $cancels = $node->safe_psql('postgres', strike(q{application_name = 'ledger'}, 0.05));
	cmp_ok($cancels, '>', 50, 'many sessions are cancelled or terminated');
	ok(more_ids("$dir/crowd", 20_000), 'the other sessions go on');
	$load->signal('TERM');
	ok($load->finish, 'the clients ended without an error');
	check_ledger('crowd', '57014|57P01|08006|stop', 'crowd');
	ok($node->poll_query_until('crowd', "SELECT ($advisory) = 0"), 'cancelled and terminated sessions leave no lock');
}

# Sessions that stay, as a pooler's do, are left without the lock.
{
	my @sessions = map { $node->background_psql('crowd', on_error_stop => 0) } 1 .. 4;
	my $pids = join(',', map { $_->query_safe('SELECT pg_backend_pid()') } @sessions);

	$_->{stdin} .= "SELECT count(next_id(5)) FROM generate_series(1, 3000);\n" x 150 foreach @sessions;
	$_->{run}->pump_nb foreach @sessions;
	my $cancels = $node->safe_psql('postgres', strike("pid IN ($pids)", 0));
	cmp_ok($cancels, '>', 50, 'sessions that stay are cancelled');
	ok($node->poll_query_until('postgres',
			"SELECT count(*) = 4 FROM pg_stat_activity WHERE pid IN ($pids) AND state = 'idle'"), 'cancelled sessions become idle');
	is($node->safe_psql('crowd', $advisory), 0, 'cancelled sessions do not keep the lock');
	$_->quit foreach @sessions;
}

# --- crashes --------------------------------------------------------------

# A has used the sequence in an open transaction, which nobody flushes; B's ID
# is committed, and comes again from nextval() alone.
{
	my $crashing = PostgreSQL::Test::Cluster->new('crashing');
	$crashing->init;
	$crashing->append_conf('postgresql.conf', NOBODY_FLUSHES);
	$crashing->start;
	run_log([ 'psql', '-Xq', '-1', '-d', $crashing->connstr('postgres'), '-f', $file ]);
	ahead_of_clock($crashing, 'next_id_seq', '1 day');
	$crashing->safe_psql('postgres', 'SELECT next_id(5); CHECKPOINT');
	my $open = $crashing->background_psql('postgres');
	my $inside = $open->query_safe('BEGIN; SELECT next_id(5)');
	my $committed = $crashing->safe_psql('postgres', 'SELECT next_id(5)');
	cmp_ok($committed, '>', $inside, 'an ID is committed after one in an open transaction');
	crash($crashing);
	eval { $open->quit };
	$crashing->start;
	cmp_ok($crashing->safe_psql('postgres', 'SELECT next_id(5)'), '>', $committed, 'a committed ID does not come again after a crash');

	# what an unlogged sequence lost
	$crashing->safe_psql('postgres', 'CREATE SEQUENCE careless MAXVALUE 1125899906841599; SELECT next_id(5, \'careless\'); ALTER SEQUENCE careless SET UNLOGGED');
	crash($crashing);
	$crashing->start;
	like(sqlstate_of($crashing, q{SELECT next_id(5, 'careless')}), qr/^55000/, 'an unlogged sequence is refused after a crash');

	# dump and restore
	$crashing->safe_psql('postgres', 'CREATE DATABASE restored');
	run_log([ 'sh', '-c', 'pg_dump -d "$1" | psql -Xq -v ON_ERROR_STOP=1 -d "$2"', '-',
			$crashing->connstr('postgres'), $crashing->connstr('restored') ]);
	my $dumped = $crashing->safe_psql('postgres', 'SELECT last_value FROM next_id_seq');
	is($crashing->safe_psql('restored', 'SELECT next_id(5) > 0; SELECT last_value FROM next_id_seq'), "t\n" . ($dumped + 1),
		'after a restore, IDs go on from the dump');
	$crashing->stop;
}

# --- moves to the extension and back under load ---------------------

# The sequences are ahead of the clock, which would hide that one went back.
{
	new_database('moving');
	install('moving');
	$node->safe_psql('postgres', q{ALTER DATABASE moving SET snowflake.max_lead = '10d'});
	$node->safe_psql('moving', q{
		CREATE SEQUENCE albums_id_seq MAXVALUE 1125899906841599;
		SELECT setval(s, (snowflake_min_id(now() + interval '1 day') >> 23) * 1024)
		FROM unnest(ARRAY['next_id_seq', 'albums_id_seq']::regclass[]) s;
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), n serial);
		CREATE TABLE albums (id bigint PRIMARY KEY DEFAULT next_id(6, 'albums_id_seq'), n serial);
		GRANT INSERT ON photos, albums TO app_user;
		GRANT USAGE ON SEQUENCE photos_n_seq, albums_n_seq TO app_user;
		GRANT USAGE, UPDATE ON SEQUENCE next_id_seq, albums_id_seq TO app_user;} . `$ledger init`);
	my $maker = q{SELECT count(DISTINCT refobjid), bool_and(refobjid IN (SELECT oid FROM pg_proc WHERE probin IS NOT NULL))
		FROM pg_depend WHERE classid = 'pg_attrdef'::regclass AND refclassid = 'pg_proc'::regclass};
	# each with one sequence, as a transaction with two can deadlock with the owner's
	my @loads = (start_load('moving.a', 'moving', 10 * 86_400_000, '--sessions', 3),
		start_load('moving.b', 'moving', 10 * 86_400_000, '--sessions', 3, '--sequences', 'albums_id_seq', '--first-sequence', 1));
	append_to_file("$dir/insert.sql", "INSERT INTO photos DEFAULT VALUES;\nINSERT INTO albums DEFAULT VALUES;\n");
	# as the role that the document grants privileges to
	my $err;
	my $inserts = do {
		local $ENV{PGOPTIONS} = '-c role=app_user';
		IPC::Run::start([ 'pgbench', '-n', '-c', 4, '-T', 600, '-f', "$dir/insert.sql", $node->connstr('moving') ],
			'>', \my $out, '2>', \$err);
	};

	is($node->safe_psql('moving', $maker), '1|f', 'both defaults call the portable version');
	my ($move) = @{ $recipe{'Move to the extension, and back'} };
	my %to = ('the extension' => $move, 'the portable version' => { %$move, code => "\\set back on\n$move->{code}" });
	foreach my $version ('the extension', 'the portable version', 'the extension')
	{
		my $portable = $version eq 'the portable version' ? 't' : 'f';
		ok(more_ids("$dir/moving.a", 10_000) && more_ids("$dir/moving.b", 10_000), "IDs are made before the move to $version");
		run_examples($node, 'moving', $to{$version});
		is($node->safe_psql('moving', $maker), $portable eq 't' ? '1|f' : '1|t', "both defaults call $version");
		is($node->safe_psql('moving', q{SELECT count(*) > 0 FROM pg_proc WHERE proname ~ '^(next_id|snowflake)' AND probin IS NULL}),
			$portable, "the only functions are those of $version");
		is($node->safe_psql('moving', q{SELECT string_agg(privilege_type, ' ' ORDER BY privilege_type)
				FROM pg_class, aclexplode(relacl) WHERE oid = 'albums_id_seq'::regclass AND grantee = 'app_user'::regrole}),
			$portable eq 't' ? 'UPDATE USAGE' : 'USAGE', "app_user has what $version needs on the sequence");
	}
	ok(more_ids("$dir/moving.a", 10_000) && more_ids("$dir/moving.b", 10_000), 'IDs are made after the last move');

	foreach my $load (@loads)
	{
		$load->signal('TERM');
		ok($load->finish, 'the clients ended without an error');
	}
	# of calls that had begun
	check_ledger('moving', 'stop|42P01|42883', 'moving.a', 'moving.b');
	$inserts->signal('TERM');
	$inserts->finish;
	unlike($err, qr/error|abort/i, 'no INSERT failed');
	is($node->safe_psql('moving', 'SELECT count(*) > 100 FROM photos'), 't', 'many rows were inserted');
}

# --- what it costs --------------------------------------------------------

run_examples($node, 'postgres', @{ $recipe{'What it costs'} });

$node->stop;
done_testing();
