# Clients of a pooler get their shard from an argument, their role, SET LOCAL or
# the pooler.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use PgBouncer;
use SnowflakeTest;

plan skip_all => 'pgbouncer is not installed' unless defined pgbouncer_program();

my $node = PostgreSQL::Test::Cluster->new('server');
$node->init;
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE ROLE web LOGIN;
	ALTER ROLE web SET snowflake.shard = 7});
my $by_query = q{pool_size=1 connect_query='SET snowflake.shard = 11'};
my $pooler = start_pgbouncer($node, {
		one => 'pool_mode=transaction pool_size=1',
		by_query => "pool_mode=transaction $by_query",
		by_query_in_session => "pool_mode=session $by_query" }, 'web');
my @web = map { $pooler->background_psql('one', extra_params => [ '-U', 'web' ]) } 1, 2;
my $shard = 'SELECT snowflake_shard(next_id())';

is($web[$_]->query_safe($shard), 7, "client $_ has the shard of its role") foreach 0, 1;
foreach my $end ('COMMIT', 'ROLLBACK')
{
	is($web[0]->query_safe("BEGIN; SET LOCAL snowflake.shard = 9; $shard; $end"), 9, "SET LOCAL sets the shard until $end");
	is($web[$_]->query_safe($shard), 7, "client $_ has the shard of its role after SET LOCAL and $end") foreach 1, 0;
}
is($web[0]->query_safe('SELECT snowflake_shard(next_id(9))'), 9, 'an argument gives the shard');
is($web[1]->query_safe($shard), 7, 'an argument gives the shard for one call only');
$web[0]->query_safe('SET snowflake.shard = 9');
is($web[1]->query_safe($shard), 9, 'SET without LOCAL sets the shard of the next client, too (control)');
$_->quit foreach @web;

# The pooler runs connect_query when it connects.  At the end of a session its
# server_reset_query (DISCARD ALL) resets the shard.
my @shards = map { $pooler->safe_psql('by_query', $shard) } 1, 2;
is("@shards", '11 11', 'connect_query sets the shard for all clients of a connection in transaction mode');
my $show = 'SELECT snowflake_shard(1) \g /dev/null' . "\nSHOW snowflake.shard";
@shards = map { $pooler->safe_psql('by_query_in_session', $show) } 1, 2;
is("@shards", '11 -1', 'connect_query sets the shard for the first client alone in session mode');

sub shard_from_options
{
	return join '', run_command([ 'psql', '-XAt', '-c', 'SELECT snowflake_shard(1)', '-c', 'SHOW snowflake.shard',
			'-d', $pooler->connstr('one') . q{ options='-csnowflake.shard=12'} ]);
}

like(shard_from_options(), qr/-1$/, 'a shard in the options of a connection string is lost if the pooler ignores options');
$pooler->safe_psql('pgbouncer', q{SET ignore_startup_parameters = 'extra_float_digits'});
like(shard_from_options(), qr/unsupported startup parameter/,
	'a shard in the options of a connection string is refused if the pooler does not ignore options');

$node->stop;
done_testing();
