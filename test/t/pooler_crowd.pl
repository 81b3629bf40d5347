# A crowd of clients behind a connection pooler shares few server connections.  Each has its
# shard from an argument, its role, SET LOCAL or the pooler.  When the server is killed, the
# ledger's clients connect again.
# sql/privileges.sql shows that roles which take turns in a connection have their own privileges.

use File::Spec;
use LedgerTest;
use PgBouncer;
use SnowflakeTest;

plan skip_all => 'pgbouncer is not installed' unless defined pgbouncer_program();

my $clients = 12;
my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = server_ahead_of_clock('server', "log_statement = none\n");
# A unique index would hide where a duplicate came from.
$node->sql(q{
	CREATE TABLE taken (client int, n int, i int, id bigint,
		-- what an ID has of the sequence, which all shards share
		value bigint GENERATED ALWAYS AS ((id >> 23) * 1024 + (id & 1023)) STORED,
		backend int DEFAULT pg_backend_pid());
	CREATE ROLE web LOGIN;
	ALTER ROLE web SET snowflake.shard = 7;} . sql_for_clients());
ahead_of_clock($node, 'next_id_seq', '1 day');
my $by_query = q{pool_size=1 connect_query='SET snowflake.shard = 11'};
my $pooler = start_pgbouncer($node, {
		(map { $_ => "pool_mode=$_" } qw(transaction statement session)),
		one => 'pool_mode=transaction pool_size=1',
		by_query => "pool_mode=transaction $by_query",
		by_query_in_session => "pool_mode=session $by_query" }, 'web');

# Each client has a shard of its own, and counts its transactions.
my %script = (
	single => q{
		INSERT INTO taken VALUES (:client_id, :n, 1, next_id(:client_id));
	},
	many => q{
		INSERT INTO taken SELECT :client_id::int, :n::int, i, next_id(:client_id)
		FROM generate_series(1, 100) i;
	},
	transaction => q{
		BEGIN;
		SELECT set_config('snowflake.shard', :client_id::text, true);
		INSERT INTO taken VALUES (:client_id, :n, 1, next_id());
		INSERT INTO taken SELECT :client_id::int, :n::int, i, next_id()
		FROM generate_series(2, 20) i;
		COMMIT;
	});
write_file("$dir/$_.sql", "\\set n :n + 1\n$script{$_}") foreach keys %script;

my @scripts = ('single', 'many', 'transaction');
my $n = 0;
foreach my $case (
	[ 'transaction', 'extended', @scripts ],
	[ 'statement', 'extended', 'single', 'many' ],
	[ 'session', 'simple', @scripts ])
{
	my ($pooling, $protocol, @files) = @$case;
	my $how = "with $pooling pooling and the $protocol protocol";

	# With session pooling a client keeps its connection until it leaves.
	$pooler->command_ok(
		[ 'pgbench', '-n', '-c', $clients, '-j', 2, '-t', 60, '-M', $protocol, '-D', "n=$n",
			($pooling eq 'session' ? '-C' : ()), (map { ('-f', "$dir/$_.sql") } @files), $pooling ],
		"$clients clients make IDs $how");
	is($node->sql("SELECT count(DISTINCT client), count(DISTINCT backend) <= 3 FROM taken WHERE n > $n"),
		"$clients|t", "they share at most 3 server connections $how (control)");
	is($node->sql(q{
			SELECT count(*) - count(DISTINCT value), count(*) FILTER (WHERE id <= before),
				count(*) FILTER (WHERE snowflake_shard(id) <> client)
			FROM (SELECT *, lag(id) OVER (PARTITION BY client ORDER BY n, i) AS before FROM taken) t}),
		'0|0|0', "no time and slot comes twice, each client's IDs grow and have its shard $how");
	$n += 1000;
}

# --- the shard of each client --------------------------------------------------------

my @web = map { $pooler->background_psql('one', extra_params => [ '-U', 'web' ]) } 1, 2;
my $shard = 'SELECT snowflake_shard(next_id())';

foreach my $case (
	[ $shard, 7, 'a client has the shard of its role' ],
	[ "BEGIN; SET LOCAL snowflake.shard = 9; $shard; COMMIT", 9, 'SET LOCAL sets the shard' ])
{
	my ($sql, $expected, $name) = @$case;

	is($web[0]->query_safe($sql), $expected, $name);
	is($web[1]->query_safe($shard), 7, "$name; the next client has that of its role");
}
$web[0]->query_safe('SET snowflake.shard = 9');
is($web[1]->query_safe($shard), 9, 'SET without LOCAL sets the shard of the next client, too (control)');
$_->quit foreach @web;

# The pooler runs connect_query when it connects.  At the end of a session its
# server_reset_query (DISCARD ALL) resets the shard.
my $show = "SELECT snowflake_shard(1) \\g /dev/null\nSHOW snowflake.shard";
foreach my $case ([ 'by_query', '11 11' ], [ 'by_query_in_session', '11 -1' ])
{
	my ($database, $expected) = @$case;
	my @shards = map { $pooler->safe_psql($database, $show) } 1, 2;
	is("@shards", $expected, "what connect_query sets for the first client and the second: $database");
}

# --- the server is killed ------------------------------------------------------------

my $received = File::Spec->rel2abs($dir) . '/ledger';
my $ledger = start_clients($received, $pooler->connstr('transaction'), '--sessions', $clients,
	'--sequences', 'used,next_id_seq', '--max-lead', 30 * 86_400_000);
ok(more_ids($received, 5000), 'clients receive IDs through the pooler');
foreach my $round (1 .. 3)
{
	crash_and_start($node);
	ok(more_ids($received, 5000), "clients receive IDs through the same pooler after crash $round");
}
clients_end_without_error($ledger, 'the pooler');
command_ok([ ledger_program(), 'check', $received ],
	'no client received an ID twice, out of order or of a wrong shard through the pooler');

$node->stop;
done_testing();
