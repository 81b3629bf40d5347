# A crowd and a single role want more IDs than the layout has.  Each session gets its
# share, and sessions can be canceled.  No times are compared: what must end does so before
# a statement that takes many times as long.

use Time::HiRes qw(sleep time);
use SnowflakeTest;

my $sessions = 100;
my $node = server_in_utc('crowd', "max_connections = 120\nlog_statement = none\n");
$node->sql(q{
	CREATE EXTENSION snowflake;
	CREATE UNLOGGED TABLE taken (max_lead text, client int, ids int)});

# Send a long statement three times, and see that it ends with this error.
sub ends_with
{
	my ($session, $error, $sql, $end, $name) = @_;

	foreach my $time (1 .. 3)
	{
		send_sql($session, $sql);
		$end->();
		ok(session_prints($session, qr/ERROR: .*canceling statement due to $error/), "$name, time $time");
	}
}

foreach my $max_lead ('0', '1s')
{
	$node->append_conf('postgresql.conf', "snowflake.max_lead = $max_lead\n");
	$node->reload;
	my $start = time();
	my $crowd = start_load($node->connstr('postgres') . ' application_name=crowd',
		"INSERT INTO taken SELECT '$max_lead', :client_id, count(next_id(:client_id)) FROM generate_series(1, 1000);\n",
		'-c', $sessions, '-j', 2, '-R', 1_000_000);
	ok( $node->poll_query_until('postgres', qq{
			SELECT count(*) >= $sessions FROM pg_stat_activity
			WHERE application_name = 'crowd' AND query LIKE '%next_id%'}),
		"max_lead = $max_lead: all sessions of a crowd ask for IDs");

	my $session = session($node);
	my $many = 'SELECT count(next_id(5)) FROM generate_series(1, 10000000)';
	ends_with($session, 'user request', $many, sub {
		$node->poll_query_until('postgres',
			"SELECT state = 'active' FROM pg_stat_activity WHERE pid = $session->{backend}");
		sleep(0.05);
		kill 'INT', $session->{backend} }, "max_lead = $max_lead: a cancel ends a statement amid a crowd");
	ends_with($session, 'statement timeout', "SET statement_timeout = '100ms'; $many", sub { },
		"max_lead = $max_lead: statement_timeout ends a statement amid a crowd");

	# Where the processor is emulated, a session has few turns in a second.
	my $left = $start + ($ENV{EMULATED} ? 60 : 5) - time();
	sleep($left) if $left > 0;
	end_load($crowd, "max_lead = $max_lead");
	my ($clients, $fewest, $most) = split /\|/, $node->sql(qq{
		SELECT count(*), min(ids), max(ids)
		FROM (SELECT sum(ids) AS ids FROM taken WHERE max_lead = '$max_lead' GROUP BY client) t});
	is($clients, $sessions, "max_lead = $max_lead: every session of a crowd gets IDs");
	cmp_ok($fewest, '>', $most / 10,
		"max_lead = $max_lead: no session of a crowd gets less than a tenth of what another one gets");
	is($node->sql("SELECT lead <= '$max_lead' FROM snowflake_sequences('next_id_seq')"), 't',
		"max_lead = $max_lead: a crowd leaves the sequence no further ahead");
}

# One role with USAGE takes so many IDs that the lead is used up for all roles.  The
# layout has few IDs a second, because an emulated processor makes hardly more than
# Instagram's.
$node->sql(q{
	CREATE SEQUENCE shared;
	SELECT snowflake_alter_sequence('shared', 'sonyflake');
	CREATE ROLE greedy;
	GRANT USAGE ON SEQUENCE shared TO greedy});
my $greedy = session($node);
$greedy->query_safe('SET ROLE greedy');
send_sql($greedy, q{SELECT count(*) FROM (SELECT next_ids(5, 2000000000, 'shared')) t});

ok( $node->poll_query_until('postgres',
		q{SELECT snowflake_timestamp(next_id(6, 'shared'), 'sonyflake') > clock_timestamp() + interval '0.9 s'}),
	'while one role takes a great many IDs, those of others are also ahead of the clock');
is($node->sql(q{SELECT count(next_id(6, 'shared')) FROM generate_series(1, 100)}), 100,
	'while one role takes a great many IDs, others get theirs');
$node->sql("SELECT pg_cancel_backend($greedy->{backend})");
ok($node->poll_query_until('postgres', q{SELECT lead = '0' FROM snowflake_sequences('shared')}),
	'the clock catches up when the role takes no more IDs');

done_testing();
