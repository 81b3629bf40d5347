# snowflake_set_shard() stores a database's shard and says who does not get it.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('shard');
$node->safe_psql('postgres', q{
	CREATE ROLE owner LOGIN;
	CREATE ROLE app LOGIN;
	CREATE DATABASE app OWNER owner;
	CREATE DATABASE other});

# What a call prints on the way
sub said
{
	my ($sql, @options) = @_;
	my ($result, $stdout, $stderr) = $node->psql('app', $sql, @options);
	$stderr =~ s/^psql:<stdin>:\d+: //mg;
	return $stderr;
}
my @as_owner = (extra_params => [ '-U', 'owner' ]);

# The owner is no superuser, and nothing has loaded the library in the new session.
$node->safe_psql('app', 'CREATE EXTENSION snowflake', @as_owner);
is(said('SELECT snowflake_set_shard(-1)', @as_owner), '', 'an owner can call it in the first statement of a session');
my $first = $node->background_psql('app', on_error_stop => 0);
$first->query_safe('SELECT 1');
like(said('SELECT snowflake_set_shard(5)'), qr/^NOTICE:  1 other session of this database keeps its value of "snowflake.shard" until it reconnects\z/,
	'one session that keeps its value is counted');
is($node->safe_psql('app', 'SHOW snowflake.shard; SELECT snowflake_shard(), snowflake_shard(next_id())'), "5\n5|5",
	'new sessions have the shard');
$first->query('SELECT next_id()');
like($first->{stderr}, qr/ERROR:  "snowflake.shard" is not set\nHINT: .* Sessions that began before that must reconnect\./,
	'a session that began before the shard was set has none, and is told to reconnect');
fails_with($node, 'SELECT snowflake_set_shard(6)', qr/^42501 must be owner of database app/,
	'others may not set it', dbname => 'app', extra_params => [ '-U', 'app' ]);
my $second = $node->background_psql('app');
my $elsewhere = $node->background_psql('other');
$_->query_safe('SELECT 1') foreach $second, $elsewhere;
like(said('SELECT snowflake_set_shard(7)', @as_owner),
	qr/^NOTICE:  2 other sessions of this database keep their values of "snowflake.shard" until they reconnect\z/,
	'two sessions that keep their values are counted, also by a role that may not see them');
$_->quit foreach $first, $second, $elsewhere;

# What is in a file and on the command line gives way to the database's; roles do not.
$node->append_conf('postgresql.conf', "snowflake.shard = 9\n");
$node->restart;
is($node->safe_psql('app', 'SELECT snowflake_shard()'), 7, 'the shard of the database overrides that of the configuration file');
is($node->safe_psql('other', 'CREATE EXTENSION snowflake; SELECT snowflake_shard()'), 9,
	'a database without a shard has that of the configuration file');
is(said('SELECT snowflake_set_shard(5)'), '', 'no setting of a file is reported');
$node->safe_psql('postgres', 'ALTER ROLE ALL SET snowflake.shard = 10');
is($node->safe_psql('app', 'SELECT snowflake_shard()'), 5, 'the shard of the database overrides that of ALTER ROLE ALL');
is(said('SELECT snowflake_set_shard(5)'), '', 'ALTER ROLE ALL is not reported');
$node->safe_psql('postgres', 'ALTER ROLE app SET snowflake.shard = 11');
is($node->safe_psql('app', 'SELECT snowflake_shard()', extra_params => [ '-U', 'app' ]), 11, 'the shard of a role overrides that of the database');
like(said('SELECT snowflake_set_shard(5)'),
	qr/^WARNING:  role app has the setting "snowflake.shard" = 11, which overrides the database's\nHINT:  To remove it, use ALTER ROLE app RESET snowflake.shard.\z/,
	'the setting of a role is reported');
$node->safe_psql('postgres', 'ALTER ROLE app IN DATABASE other SET snowflake.shard = 12; ALTER ROLE app RESET snowflake.shard');
is(said('SELECT snowflake_set_shard(5)'), '', 'the setting of a role in another database is not reported');

# Other databases of the server
$node->safe_psql('postgres', q{
	CREATE DATABASE "new app";
	ALTER DATABASE "new app" SET snowflake.shard = 12;
	ALTER ROLE app IN DATABASE "new app" SET snowflake.shard = 12});
like(said('SELECT snowflake_set_shard(12)', @as_owner),
	qr/^NOTICE:  other databases of this server have the same "snowflake.shard": "new app", other\nHINT: .*\z/,
	'databases that have the same shard are named');
is(said('SELECT snowflake_set_shard(-1); SELECT snowflake_set_shard(5)'), '', '... and others are not');

$node->stop;
done_testing();
