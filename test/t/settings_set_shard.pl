# snowflake_set_shard() stores a database's shard and says who does not get it.

use SnowflakeTest;

# Without these processes, the first that PostgreSQL lists is a session.
my $node = server_in_utc('shard', "autovacuum = off\nmax_logical_replication_workers = 0\n");
$node->sql(q{
	CREATE ROLE owner LOGIN;
	CREATE ROLE app LOGIN;
	CREATE DATABASE app OWNER owner;
	CREATE DATABASE other});
my @as_owner = (extra_params => [ '-U', 'owner' ]);

# What a call prints on the way matches.
sub says
{
	my ($sql, $said, $name, @options) = @_;
	my ($result, $stdout, $stderr) = $node->psql('app', $sql, @options);

	return like($stderr =~ s/^psql:<stdin>:\d+: //mgr, qr/^$said\z/, $name);
}

# The owner is no superuser, and nothing has loaded the library in the new session.
$node->safe_psql('app', 'CREATE EXTENSION snowflake', @as_owner);
says('SELECT snowflake_set_shard(-1)', '', 'an owner can call it in the first statement of a session', @as_owner);
my $first = session($node, 'app');
says('SELECT snowflake_set_shard(5)',
	'NOTICE:  1 other session of this database keeps its value of "snowflake.shard" until it reconnects',
	'one session that keeps its value is counted');
is($node->safe_psql('app', 'SHOW snowflake.shard; SELECT snowflake_shard(), snowflake_shard(next_id())'), "5\n5|5",
	'new sessions have the shard');
$first->query('SELECT next_id()');
like($first->{stderr},
	qr/ERROR:  "snowflake.shard" is not set\nHINT: .* Sessions that began before that must reconnect\./,
	'a session that began before the shard was set has none, and is told to reconnect');
fails_with($node, 'SELECT snowflake_set_shard(6)', qr/^42501 must be owner of database app/,
	'others may not set it', dbname => 'app', extra_params => [ '-U', 'app' ]);
my ($second, $elsewhere) = map { session($node, $_) } 'app', 'other';
says('SELECT snowflake_set_shard(7)',
	'NOTICE:  2 other sessions of this database keep their values of "snowflake.shard" until they reconnect',
	'two sessions that keep their values are counted, also by a role that may not see them', @as_owner);

# What is in a file gives way to the database's, as does ALTER ROLE ALL.  sql/shard.sql has
# what overrides it.
$node->append_conf('postgresql.conf', "snowflake.shard = 9\n");
$node->restart;
foreach my $case (
	[ 'SELECT 1', '', 'a setting of a file is not reported' ],
	[ 'ALTER ROLE ALL SET snowflake.shard = 10', '', 'ALTER ROLE ALL is not reported' ],
	[ 'ALTER ROLE app IN DATABASE other SET snowflake.shard = 12', '',
		'the setting of a role in another database is not reported' ])
{
	my ($change, $said, $name) = @$case;

	$node->safe_psql('other', "LOAD 'snowflake'; $change");
	says('SELECT snowflake_set_shard(5)', $said, $name);
}

# Other databases of the server
$node->sql(q{
	CREATE DATABASE "new app";
	ALTER DATABASE "new app" SET snowflake.shard = 12;
	ALTER ROLE app IN DATABASE "new app" SET snowflake.shard = 12});
says('SELECT snowflake_set_shard(12)',
	qq{NOTICE:  other databases of this server have the same "snowflake.shard": "new app", other\nHINT: .*},
	'databases that have the same shard, or in which a role has it, are named', @as_owner);
says('SELECT snowflake_set_shard(-1); SELECT snowflake_set_shard(5)', '', '... and others are not');
$node->sql(q{LOAD 'snowflake'; ALTER DATABASE other SET snowflake.shard = -1});
says('SELECT snowflake_set_shard(-1)', '', '... nor those that have none either');

# Two calls at once, where the database has a setting already and where it has none
my ($one, $two) = map { session($node, 'app') } 1, 2;
$_->query_safe('SET client_min_messages = warning') foreach $one, $two;
foreach my $before (5, -1)
{
	$node->safe_psql('app', "SELECT snowflake_set_shard($before)");
	$one->query_safe('BEGIN; SELECT snowflake_set_shard(20)');
	send_sql($two, "SELECT snowflake_set_shard(21); SELECT 'done'");
	$node->poll_query_until('app', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $two->{backend}");
	$one->query_safe('COMMIT');
	ok(session_prints($two, qr/done/), "a call that follows another one waits for it (shard $before before)");
	unlike($two->{stderr}, qr/ERROR/, '... and does not fail');
	is($node->safe_psql('app', 'SHOW snowflake.shard'), 21, '... and stores its shard');
}

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'\n");
$node->restart;
is($node->safe_psql('app', 'SHOW snowflake.shard; SELECT snowflake_shard(next_id())', @as_owner), "21\n21",
	'a server that preloads the library makes IDs of its shard');

$node->stop;
done_testing();
