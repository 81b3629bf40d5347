# Two clients of a pooler use one server connection by turns.  Each has the privileges
# of its role, and its shard from an argument, its role, SET LOCAL or the pooler.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use PgBouncer;
use SnowflakeTest;

plan skip_all => 'pgbouncer is not installed' unless defined pgbouncer_program();

my $node = server_in_utc('server');
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE guarded MAXVALUE 1125899906841599;
	CREATE ROLE may LOGIN;
	CREATE ROLE may_not LOGIN;
	CREATE ROLE web LOGIN NOINHERIT;
	ALTER ROLE web SET snowflake.shard = 7;
	GRANT may, may_not TO web;
	GRANT USAGE ON SEQUENCE guarded TO may;
	CREATE FUNCTION guarded_id() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
	AS $$ BEGIN RETURN next_id(5, 'guarded'); END $$;
	ALTER FUNCTION guarded_id() OWNER TO may});
my $by_query = q{pool_size=1 connect_query='SET snowflake.shard = 11'};
my $pooler = start_pgbouncer($node, {
		one => 'pool_mode=transaction pool_size=1',
		by_query => "pool_mode=transaction $by_query",
		by_query_in_session => "pool_mode=session $by_query" }, qw(may may_not web));

# --- roles ------------------------------------------------------------------------

my @web = map { $pooler->background_psql('one', on_error_stop => 0, extra_params => [ '-U', 'web' ]) } 1, 2;
$_->query_safe('\set VERBOSITY sqlstate') foreach @web;

# The results of a client's commands, or the error
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

my $next = q{SELECT next_id(5, 'guarded') > 0};
foreach my $round (1, 2)
{
	is(answer(0, "BEGIN; SET LOCAL ROLE may; $next; COMMIT"), 't',
		"round $round: a client whose role has USAGE makes an ID");
	is(answer(1, "BEGIN; SET LOCAL ROLE may_not; $next"), 42501,
		"round $round: a client whose role lacks USAGE is refused in the same connection");
	is(answer(1, 'ROLLBACK'), '', "round $round: a client that was refused rolls back");
	is(answer(0, 'SELECT guarded_id() > 0'), 't', "round $round: a function whose owner has USAGE makes an ID");
	is(answer(1, $next), 42501, "round $round: the function's caller, who lacks USAGE, is refused");
	is(answer(1, "BEGIN; SET LOCAL ROLE may_not; SELECT guarded_id() > 0; $next"), 42501,
		"round $round: the caller is refused after the function in the same transaction");
	is(answer(1, 'ROLLBACK'), '', "round $round: a caller that was refused after the function rolls back");
}
$_->quit foreach @web;

# --- settings ---------------------------------------------------------------------

@web = map { $pooler->background_psql('one', extra_params => [ '-U', 'web' ]) } 1, 2;
my $shard = 'SELECT snowflake_shard(next_id())';

is($web[$_]->query_safe($shard), 7, "client $_ has the shard of its role") foreach 0, 1;
foreach my $end ('COMMIT', 'ROLLBACK')
{
	is($web[0]->query_safe("BEGIN; SET LOCAL snowflake.shard = 9; $shard; $end"), 9,
		"SET LOCAL sets the shard until $end");
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

like(shard_from_options(), qr/-1$/,
	'a shard in the options of a connection string is lost if the pooler ignores options');
$pooler->safe_psql('pgbouncer', q{SET ignore_startup_parameters = 'extra_float_digits'});
like(shard_from_options(), qr/unsupported startup parameter/,
	'a shard in the options of a connection string is refused if the pooler does not ignore options');

$node->stop;
done_testing();
