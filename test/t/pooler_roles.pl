# Two clients of a pooler with different roles use one server connection by turns.

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
	CREATE SEQUENCE guarded MAXVALUE 1125899906841599;
	CREATE ROLE may LOGIN;
	CREATE ROLE may_not LOGIN;
	CREATE ROLE web LOGIN NOINHERIT;
	GRANT may, may_not TO web;
	GRANT USAGE ON SEQUENCE guarded TO may;
	CREATE FUNCTION guarded_id() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
	AS $$ BEGIN RETURN next_id(5, 'guarded'); END $$;
	ALTER FUNCTION guarded_id() OWNER TO may});
my $pooler = start_pgbouncer($node, {
		one => 'pool_mode=transaction pool_size=1', transaction => 'pool_mode=transaction' }, qw(may may_not web));

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
$_->quit foreach @web;

# The pooler keeps connections of its own for each user.
foreach my $round (1, 2)
{
	is($pooler->safe_psql('transaction', $next, extra_params => [ '-U', 'may' ]), 't',
		"round $round: a user with USAGE makes an ID");
	like(
		sqlstate_of($pooler, $next, dbname => 'transaction', extra_params => [ '-U', 'may_not' ]),
		qr/^42501 permission denied for sequence guarded/,
		"round $round: a user without USAGE is refused");
}

$node->stop;
done_testing();
