# One role with USAGE takes so many IDs that the lead is used up for all roles.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('greedy');
$node->init;
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE shared MAXVALUE 1125899906841599;
	CREATE ROLE greedy;
	GRANT USAGE ON SEQUENCE shared TO greedy});
my $greedy = $node->background_psql('postgres', on_error_stop => 0);
$greedy->query_safe('SET ROLE greedy');
my $pid = $greedy->query_safe('SELECT pg_backend_pid()');
send_sql($greedy, q{SELECT count(*) FROM (SELECT next_ids(5, 2000000000, 'shared')) t});

ok( $node->poll_query_until('postgres',
		q{SELECT snowflake_timestamp(next_id(6, 'shared')) > clock_timestamp() + interval '0.9 s'}),
	'while one role takes a great many IDs, those of others are also ahead of the clock');
is($node->safe_psql('postgres', q{SELECT count(next_id(6, 'shared')) FROM generate_series(1, 100)}), 100,
	'while one role takes a great many IDs, others get theirs');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
ok($node->poll_query_until('postgres', q{SELECT lead = '0' FROM snowflake_status('shared')}),
	'the clock catches up when the role takes no more IDs');

$greedy->quit;
$node->stop;
done_testing();
