# The recipes of doc/operations.md and doc/administration.md do what they show, also for
# roles that are not superusers.  clock_years_ahead.pl takes a new shard where the clock
# was ahead.

use SnowflakeTest;

my $node = server_in_utc('operations');
$node->safe_psql('postgres', 'CREATE DATABASE app; CREATE DATABASE other');
$node->safe_psql('app', 'CREATE EXTENSION snowflake');
# The runbook, which comes first, is about the tables that Monitoring makes.
my $other_tests = join '|', 'Settings', 'Take a new shard', 'Privileges', 'No shard is set', 'No partition',
  'The synchronous standby does not answer';
my ($make) = blocks_in('doc/administration.md', 'Monitoring');
run_examples($node, 'app', $make,
	grep { $_->{code} ne $make->{code} && $_->{code} !~ /^-- on / && $_->{section} !~ /^($other_tests)$/ }
	  map { blocks("doc/$_.md") } 'operations', 'administration');

# --- a database without a shard, or a partition --------------------------------

$node->safe_psql('other', q{
	CREATE EXTENSION snowflake_admin CASCADE;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id()) PARTITION BY RANGE (id)});
run_examples($node, 'other', blocks_in('doc/operations.md', 'No shard is set'));
is($node->safe_psql('other', 'SELECT snowflake_shard()'), 5, 'a database without a shard gets one');
fails_with($node, 'INSERT INTO photos DEFAULT VALUES', qr/^23514/,
	'a row without a partition is refused', dbname => 'other');
run_examples($node, 'other', blocks_in('doc/operations.md', 'No partition'));
like(sqlstate_of($node, 'INSERT INTO photos DEFAULT VALUES', dbname => 'other'), qr/^no error/,
	'... until the partitions are made');

# --- settings -------------------------------------------------------------

my ($for_database, $for_server) = map { $_->{code} } blocks_in('doc/administration.md', 'Settings');
foreach my $recipe ([ 'app', $for_database ], [ 'postgres', $for_server ])
{
	$node->safe_psql(@$recipe);
	ok(wait_for(sub { $node->safe_psql('app', 'SELECT snowflake_shard(next_id())') == 5 }),
		'new calls have the shard that was set');
	$node->safe_psql('postgres', 'ALTER DATABASE app RESET ALL; ALTER SYSTEM RESET ALL; SELECT pg_reload_conf()');
	ok(wait_for(sub { sqlstate_of($node, 'SELECT next_id()',
		dbname => 'app') =~ /^55000 "snowflake.shard" is not set/ }),
		'new calls have no shard after it was reset');
}

# A role that is no superuser, and has these grants
$node->safe_psql('postgres', 'CREATE ROLE operator LOGIN');
$node->safe_psql('app', q{
	GRANT SET, ALTER SYSTEM ON PARAMETER snowflake.max_lead TO operator;
	GRANT EXECUTE ON FUNCTION pg_reload_conf() TO operator});
my @as_operator = (dbname => 'app', extra_params => [ '-U', 'operator' ]);
$node->psql('app',
	q{SELECT snowflake_shard(1); ALTER SYSTEM SET snowflake.max_lead = '4h'; SELECT pg_reload_conf()}, @as_operator);
ok(wait_for(sub { $node->safe_psql('postgres', q{LOAD 'snowflake'; SHOW snowflake.max_lead}) eq '4h' }),
	'a role with these grants can raise max_lead for the server');

# --- monitoring -------------------------------------------------------------

my ($yaml) = grep { $_->{code} =~ /query: \|/ } blocks_in('doc/administration.md', 'Prometheus');
my ($query, $shards) = $yaml->{code} =~ /query: \|\n(.*?)^  metrics:/gms;
$node->safe_psql('app',
	q{SELECT setval('tweets_id_seq', (snowflake_min_id(now() + interval '1 day', 'twitter') >> 22 << 12))});
is($node->safe_psql('app', "$query ORDER BY 1, 2", extra_params => [ '-U', 'exporter' ]),
	"app|error|1\napp|warning|0", 'the query for Prometheus counts a sequence that refuses');
$node->safe_psql('app', 'SELECT snowflake_set_shard(6)');
is($node->safe_psql('app', "$shards ORDER BY shard", extra_params => [ '-U', 'exporter' ]), "app|5|1\napp|6|1\napp|33|1",
	'... and the other one names the shards of the database and of defaults');
$node->safe_psql('app', 'SELECT snowflake_set_shard(NULL)');
$node->safe_psql('app', 'ALTER SEQUENCE tweets_id_seq RESTART');

# --- privileges -------------------------------------------------------------

$node->safe_psql('app', 'CREATE SCHEMA own; CREATE FUNCTION own.next_id(n integer) RETURNS integer RETURN n');
$node->safe_psql('app', $_->{code}) foreach blocks_in('doc/administration.md', 'Privileges');
is($node->safe_psql('app', q{
		INSERT INTO photos (title) VALUES ('dusk');
		INSERT INTO tweets (body) VALUES ('good night') RETURNING id > 0}, extra_params => [ '-U', 'web' ]),
	't', 'a role with these privileges inserts');
foreach my $call ('next_id(5)', "next_id(5, 'next_id_seq')", 'next_id()', 'next_ids(5, 1)')
{
	fails_with($node, "SELECT $call", qr/^42501 permission denied for function/,
		"a role without them cannot call $call", @as_operator);
}
is($node->safe_psql('app', q{SELECT has_function_privilege('operator', 'own.next_id(integer)', 'EXECUTE')}), 't',
	'a function of the same name that is not of the extension keeps its privileges');

$node->stop;
done_testing();
