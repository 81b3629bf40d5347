# Waiting for the clock: seen, cancelled, timed out, shut down.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('wait');
$node->init;
$node->append_conf('postgresql.conf', "snowflake.max_wait = '1h'\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE ahead MAXVALUE 1125899906841599;
});
ahead_of_clock($node, 'ahead', '10 minutes');

sub waiting
{
	return $node->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity
		WHERE query LIKE '%next_id(5, ''ahead'')%' AND pid <> pg_backend_pid()
		  AND wait_event_type = 'Extension'});
}

# statement_timeout.  Without it the call would wait for ten minutes.
like(
	sqlstate_of($node, q{SET statement_timeout = '300ms'; SELECT next_id(5, 'ahead')},
		timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \my $late),
	qr/^57014 canceling statement due to statement timeout/,
	'statement_timeout ends the wait');

# cancel
my $psql = $node->background_psql('postgres', on_error_stop => 0);
$psql->{stdin} .= "SELECT next_id(5, 'ahead');\n";
$psql->{run}->pump_nb;
ok(waiting(), 'a session waits');
is( $node->safe_psql('postgres', q{
		SELECT count(*) FROM pg_locks WHERE relation = 'ahead'::regclass AND granted}),
	1, 'with the lock that nextval() takes');
# it does not hold the page, so others get their turn
is( $node->safe_psql('postgres', q{SELECT nextval('ahead') IS NOT NULL}), 't',
	'others can use the sequence meanwhile');
is( $node->safe_psql('postgres', q{
		SET snowflake.max_lead = '1h';
		SELECT count(next_id(5, 'ahead')) FROM generate_series(1, 10)}), 10,
	'also by next_id(), with a longer lead');
$node->safe_psql('postgres', q{
	SELECT pg_cancel_backend(pid) FROM pg_stat_activity
	WHERE query LIKE '%next_id(5, ''ahead'')%' AND pid <> pg_backend_pid()});
ok(wait_for(sub { $psql->{run}->pump_nb; $psql->{stderr} =~ /canceling statement due to user request/ }),
	'cancel ends the wait');
$psql->{stderr} = '';

# A wait ends when the ID is no further ahead than max_lead.  There is one if the
# machine is not so slow that the clock gets there before the call.
my ($waits, $early);
ok(wait_for(sub {
	($waits, $early) = split /\|/, $node->safe_psql('postgres', q{
		SELECT FROM setval('ahead', (snowflake_min_id(clock_timestamp() + interval '1.6 s') >> 23) * 1024);
		SELECT clock_timestamp() AS before \gset
		SELECT next_id(5, 'ahead') AS id \gset
		SELECT snowflake_timestamp(:id) - :'before' > interval '1 s',
		       snowflake_timestamp(:id) - clock_timestamp() > interval '1 s'}) =~ s/^\n//r;
	return $waits eq 't' || $early eq 't' }), 'a call has to wait');
is($early, 'f', 'a wait does not end early');

# shutdown
ahead_of_clock($node, 'ahead', '10 minutes');
$psql->{stdin} .= "SELECT next_id(5, 'ahead');\n";
$psql->{run}->pump_nb;
ok(waiting(), 'a session waits again');
ok($node->stop('fast', fail_ok => 1), 'shutdown does not wait for it');
eval { $psql->quit };

# After a crash the sequence is ahead by what was logged: a wait, no error.  The
# clock would hide a value that was lost, so the sequence's value is looked at.
$node->append_conf('postgresql.conf', NOBODY_FLUSHES . "snowflake.max_wait = '5s'\nsnowflake.max_lead = 0\n");
$node->start;
$node->safe_psql('postgres', q{CREATE SEQUENCE crashed MAXVALUE 1125899906841599; SELECT next_id(5, 'crashed')});
my $last = $node->safe_psql('postgres', q{SELECT next_id(5, 'crashed')});
crash($node);
$node->start;
my $value = $node->safe_psql('postgres', q{SELECT last_value FROM crashed});
is($value, ($last >> 23) * 1024 + ($last & 1023) + 1000 * 1024,
	'after a crash the sequence is a second ahead of the last ID');
my $next = $node->safe_psql('postgres', q{SELECT next_id(5, 'crashed')});
cmp_ok(($next >> 23) * 1024 + ($next & 1023), '>', $value,
	'without any lead allowed, the next ID comes after that');

$node->stop;
done_testing();
