# Behind a connection pooler: many clients share few server connections, so
# what one of them leaves there is there for the next one.

use strict;
use warnings;
use File::Spec;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
plan skip_all => 'pgbouncer is not installed' unless defined $pgbouncer;

my $ledger = ledger_program();

my $clients = 12;
my $connections = 3;
my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);

my $node = PostgreSQL::Test::Cluster->new('server');
$node->init;
$node->append_conf('postgresql.conf', "snowflake.max_lead = '10d'\nlog_statement = none\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE ahead MAXVALUE 1125899906841599;
	CREATE SEQUENCE guarded MAXVALUE 1125899906841599;
	CREATE ROLE may LOGIN;
	CREATE ROLE may_not LOGIN;
	CREATE ROLE web LOGIN NOINHERIT;
	GRANT may, may_not TO web;
	GRANT USAGE ON SEQUENCE guarded TO may;
	CREATE FUNCTION guarded_id() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
	AS $$ BEGIN RETURN next_id(5, 'guarded'); END $$;
	ALTER FUNCTION guarded_id() OWNER TO may;
	ALTER ROLE web SET snowflake.shard = 7;
	-- no unique index: it would only hide where a duplicate came from
	CREATE TABLE taken (run int, client int, n int, i int, id bigint,
		-- what an ID has of the sequence, which all shards share
		value bigint GENERATED ALWAYS AS ((id >> 23) * 1024 + (id & 1023)) STORED,
		backend int DEFAULT pg_backend_pid());
} . `$ledger init`);
ahead_of_clock($node, $_, '1 day') for qw(ahead next_id_seq);

# The pooler has the address of a node that never gets a server.
my $pooler = PostgreSQL::Test::Cluster->new('pooler');
my $server = sprintf 'host=%s port=%d dbname=postgres', $node->host, $node->port;
append_to_file("$dir/users", join '', map { "\"$_\" \"\"\n" }
	$node->safe_psql('postgres', 'SELECT current_user'), qw(may may_not web));
append_to_file("$dir/pgbouncer.ini", <<EOC);
[databases]
transaction = $server pool_mode=transaction
one = $server pool_mode=transaction pool_size=1
statement = $server pool_mode=statement
session = $server pool_mode=session
by_query = $server pool_mode=transaction pool_size=1 connect_query='SET snowflake.shard = 11'
by_query_in_session = $server pool_mode=session pool_size=1 connect_query='SET snowflake.shard = 11'
[pgbouncer]
unix_socket_dir = @{[$pooler->host]}
listen_port = @{[$pooler->port]}
logfile = @{[File::Spec->rel2abs($pooler->logfile)]}
auth_type = trust
auth_file = $dir/users
admin_users = @{[$node->safe_psql('postgres', 'SELECT current_user')]}
default_pool_size = $connections
server_round_robin = 1
server_login_retry = 1
ignore_startup_parameters = options,extra_float_digits
EOC
my $daemon = IPC::Run::start([ $pgbouncer, '-q', "$dir/pgbouncer.ini" ], '<', \'');

END
{
	my $status = $?;
	$daemon->kill_kill(grace => 1) if defined $daemon;
	$? = $status;
}

# Not by standard input: a psql whose connection is refused does not read it, and
# the broken pipe would end this test.
wait_for(sub { (run_command([ 'psql', '-XAt', '-c', 'SELECT true', '-d', $pooler->connstr('transaction') ]))[0] eq 't' })
  or die 'the pooler does not answer';
note(`$pgbouncer --version`);

# Every client has a shard of its own, and counts what it does.
my %script = (
	single => q{
		INSERT INTO taken VALUES (:run, :client_id, :n, 1, next_id(:client_id));
	},
	many => q{
		INSERT INTO taken SELECT :run::int, :client_id::int, :n::int, i, next_id(:client_id)
		FROM generate_series(1, 100) i;
	},
	transaction => q{
		BEGIN;
		SELECT set_config('snowflake.shard', :client_id::text, true);
		INSERT INTO taken VALUES (:run, :client_id, :n, 1, next_id());
		SAVEPOINT s;
		SELECT next_id();
		ROLLBACK TO s;
		INSERT INTO taken SELECT :run::int, :client_id::int, :n::int, i, next_id()
		FROM generate_series(2, 20) i;
		COMMIT;
	});
append_to_file("$dir/$_.sql", "\\set n :n + 1\n$script{$_}") for keys %script;

my $runs = 0;
my $largest = 0;

sub crowd
{
	my ($pooling, $protocol, $scripts, @options) = @_;
	my $run = ++$runs;
	my $name = "with $pooling pooling and the $protocol protocol";

	$pooler->command_ok(
		[
			'pgbench', '-n', '-c', $clients, '-j', 2, '-t', 60, '-M', $protocol, @options,
			'-D', "run=$run", '-D', 'n=0', (map { ('-f', "$dir/$_.sql") } @$scripts), $pooling
		],
		"$clients clients make IDs $name");
	my ($ids, $fewest, $backends, $smallest) = split /\|/, $node->safe_psql('postgres', qq{
		SELECT sum(ids), min(clients), count(*), min(smallest) FROM
		(SELECT count(*) AS ids, count(DISTINCT client) AS clients, min(value) AS smallest
		 FROM taken WHERE run = $run GROUP BY backend) b});
	note("$ids IDs; a server connection had at least $fewest clients");
	cmp_ok($fewest, '>', 1, "several clients share each server connection $name");
	cmp_ok($backends, '<=', $connections, "there are at most $connections server connections $name");
	cmp_ok($smallest, '>', $largest, "the clients' IDs are larger than those of earlier clients $name");
	is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT value) FROM taken'),
		0, "no time and slot comes twice $name");
	is( $node->safe_psql('postgres', q{
			SELECT count(*) FROM
			(SELECT id, lag(id) OVER (PARTITION BY run, client ORDER BY n, i) AS before FROM taken) t
			WHERE id <= before}),
		0, "the IDs of each client grow $name");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM taken WHERE snowflake_shard(id) <> client'),
		0, "every ID has its client's shard $name");
	$largest = $node->safe_psql('postgres', 'SELECT max(value) FROM taken');
	return;
}

crowd('transaction', 'simple', [ 'single', 'many', 'transaction' ]);
crowd('transaction', 'extended', [ 'single', 'many', 'transaction' ]);
crowd('statement', 'extended', [ 'single', 'many' ]);
# Here a client keeps its connection until it leaves.
crowd('session', 'simple', [ 'single', 'many', 'transaction' ], '-C');

# Two clients by turns in one server connection.
my @web = map {
	$pooler->background_psql('one', on_error_stop => 0, extra_params => [ '-U', 'web' ]) } 1, 2;
$_->query_safe('\set VERBOSITY sqlstate') for @web;

# The results of a client's commands, or the error.
sub answer
{
	my ($client, $sql) = @_;
	my $stdout = $web[$client]->query($sql);
	my $stderr = $web[$client]->{stderr};

	$web[$client]->{stderr} = '';
	return $stderr =~ /ERROR:  (\w+)/ ? $1 : $stdout;
}

is(answer(0, 'SELECT pg_backend_pid()'), answer(1, 'SELECT pg_backend_pid()'),
	'two clients share one server connection');

# Whatever the one may do, the other may not.
my $next = q{SELECT next_id(5, 'guarded') > 0};
foreach my $round (1 .. 3)
{
	is(answer(0, "BEGIN; SET LOCAL ROLE may; $next; COMMIT"), 't', "round $round: a client whose role has USAGE makes an ID");
	is(answer(1, "BEGIN; SET LOCAL ROLE may_not; $next"), 42501,
		"round $round: a client whose role lacks USAGE is refused in the same connection");
	is(answer(1, 'ROLLBACK'), '', "round $round: a client that was refused rolls back");
	is(answer(0, 'SELECT guarded_id() > 0'), 't', "round $round: a function whose owner has USAGE makes an ID");
	is(answer(1, $next), 42501, "round $round: the function's caller, who lacks USAGE, is refused");
	is(answer(1, "BEGIN; SET LOCAL ROLE may_not; SELECT guarded_id() > 0; $next"), 42501,
		"round $round: the caller is refused after the function in the same transaction");
	is(answer(1, 'ROLLBACK'), '', "round $round: a caller that was refused after the function rolls back");
}
# with users of their own, for whom the pooler has connections of their own
foreach my $round (1, 2)
{
	my $id = $pooler->safe_psql('transaction', $next, extra_params => [ '-U', 'may' ]);
	is($id, 't', "round $round: a user with USAGE makes an ID");
	like(
		sqlstate_of($pooler, $next, dbname => 'transaction', extra_params => [ '-U', 'may_not' ]),
		qr/^42501 permission denied for sequence guarded/,
		"round $round: a user without USAGE is refused");
}

# A client's shard is given by an argument, its role or database, or SET LOCAL.
my $shard = 'SELECT snowflake_shard(next_id())';
is(answer($_, $shard), 7, "client $_ has the shard of its role") for 0, 1;
foreach my $end ('COMMIT', 'ROLLBACK')
{
	is(answer(0, "BEGIN; SET LOCAL snowflake.shard = 9; $shard; $end"), 9, "SET LOCAL sets the shard until $end");
	is(answer($_, $shard), 7, "client $_ has the shard of its role after SET LOCAL and $end") for 1, 0;
}
is(answer(0, 'SELECT snowflake_shard(next_id(9))'), 9, 'an argument gives the shard');
is(answer(1, $shard), 7, 'an argument gives the shard for one call only');
answer(0, 'SET snowflake.shard = 9');
is(answer(1, $shard), 9, 'SET without LOCAL sets the shard of the next client, too (control)');
$_->quit for @web;

# The pooler sets the shard when it connects.  At the end of a session, its
# server_reset_query (DISCARD ALL) resets the shard, too.
my @clients = map { $pooler->safe_psql('by_query', $shard) } 1, 2;
is("@clients", '11 11', 'connect_query sets the shard for all clients of a connection in transaction mode');
@clients = map { $pooler->safe_psql('by_query_in_session', 'SELECT snowflake_shard(1); SHOW snowflake.shard') =~ /(\S+)$/ } 1, 2;
is("@clients", '11 -1', 'connect_query sets the shard for the first client alone in session mode');

# A shard in the client's connection string
my $with_options = $pooler->connstr('transaction') . q{ options='-csnowflake.shard=12'};
my $ask = sub {
	return join '', run_command([ 'psql', '-XAt', '-c', 'SELECT snowflake_shard(1)', '-c', 'SHOW snowflake.shard', '-d', $with_options ]);
};
like($ask->(), qr/-1$/, 'a shard in the options of a connection string is lost if the pooler ignores options');
$pooler->safe_psql('pgbouncer', q{SET ignore_startup_parameters = 'extra_float_digits'});
like($ask->(), qr/unsupported startup parameter/, 'a shard in the options of a connection string is refused if the pooler does not ignore options');
$pooler->safe_psql('pgbouncer', q{SET ignore_startup_parameters = 'options,extra_float_digits'});

# The server is killed behind the pooler.  The ledger's clients write down what
# they receive, and connect again; one that was idle keeps its connection.
my $load = IPC::Run::start([
	$ledger, 'run', '--connection', $pooler->connstr('transaction'),
	'--sessions', $clients, '--sequences', 'ahead,next_id_seq', '--shards', '5,8191',
	'--max-lead', 10 * 86_400_000, "$dir/ledger" ]);

my $idle = $pooler->background_psql('transaction');
my $id = $idle->query_safe(q{SELECT next_id(5, 'ahead')});
ok(more_ids("$dir/ledger", 5000), 'clients receive IDs through the pooler');
foreach my $round (1 .. 3)
{
	crash_and_start($node);
	ok(more_ids("$dir/ledger", 5000), "clients receive IDs through the same pooler after crash $round");
	my $after = $idle->query_safe(q{SELECT next_id(5, 'ahead')});
	cmp_ok($after, '>', $id, "an idle client receives a larger ID in its old connection after crash $round");
	$id = $after;
}
$idle->quit;
$load->signal('TERM');
ok($load->finish, 'the clients of the pooler end without an error');
command_ok([ $ledger, 'check', "$dir/ledger" ],
	'no client received an ID twice, out of order or of a wrong shard through the pooler');

$node->stop;
done_testing();
