# A crowd, a burst and a single role want more IDs than the layout has.  Each session
# gets its share, and sessions can be canceled.
#
# The test notes how long things took, and compares no times.  What must end does
# so before a statement that takes many times as long.

use strict;
use warnings;
use List::Util qw(min max sum);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use SnowflakeTest;

my $sessions = 100;
my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = server_in_utc('crowd', "max_connections = 120\nlog_statement = none\n");
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
append_to_file("$dir/take.sql", "SELECT count(next_id(:client_id)) FROM generate_series(1, 1000);\n");

# Send a long statement three times, and have it ended.  Returns the seconds until
# each ended with this error, or undef.
sub ends_with
{
	my ($session, $error, $sql, $end) = @_;

	return map {
		send_sql($session, $sql);
		$end->();
		my $start = time();
		session_prints($session, qr/ERROR: .*$error/) ? time() - $start : undef;
	} 1 .. 3;
}

foreach my $max_lead ('0', '1s')
{
	$node->append_conf('postgresql.conf', "snowflake.max_lead = $max_lead\n");
	$node->reload;
	my $crowd = IPC::Run::start(
		[ 'pgbench', '-n', '-c', $sessions, '-j', 2, '-T', 3600, '--log', "--log-prefix=$dir/lead$max_lead",
			'-f', "$dir/take.sql", $node->connstr('postgres') . ' application_name=crowd' ],
		'>', \my $out, '2>', \my $err);
	ok( $node->poll_query_until('postgres', qq{
			SELECT count(*) >= $sessions FROM pg_stat_activity
			WHERE application_name = 'crowd' AND query LIKE '%next_id%'}),
		"max_lead = $max_lead: all sessions of a crowd ask for IDs");
	my $start = time();

	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $many = 'SELECT count(next_id(5)) FROM generate_series(1, 10000000)';
	my @canceled = ends_with($session, 'canceling statement due to user request', $many, sub {
		$node->poll_query_until('postgres', "SELECT state = 'active' FROM pg_stat_activity WHERE pid = $pid");
		sleep(0.05);
		kill 'INT', $pid });
	my @timed_out = ends_with($session, 'canceling statement due to statement timeout',
		"SET statement_timeout = '100ms'; $many", sub { });
	is(scalar(grep { !defined } @canceled), 0, "max_lead = $max_lead: a cancel ends a statement amid a crowd");
	is(scalar(grep { !defined } @timed_out), 0,
		"max_lead = $max_lead: statement_timeout ends a statement amid a crowd");
	note(sprintf 'canceled after %s ms, timed out after %s ms, 100 of which were granted',
		map { join ', ', map { sprintf '%.0f', 1000 * ($_ // -1) } @$_ } \@canceled, \@timed_out);
	$session->quit;

	# pgbench writes its log to the end if the server ends its sessions.
	sleep(max(0, $start + 4 - time()));
	my $seconds = time() - $start;
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = 'crowd'});
	$crowd->finish;

	# A line has the client, the number of its transaction, microseconds and more.
	my (%count, @times);
	foreach my $line (map { split /\n/, slurp_file($_) } glob "$dir/lead$max_lead.*")
	{
		my ($client, undef, $time) = split / /, $line;
		$count{$client}++;
		push @times, $time / 1000;
	}
	note(sprintf '%d sessions, %.0f IDs a second; a session got %d to %d thousand; '
		  . '1000 IDs took %.0f ms on average, %.0f ms at worst',
		scalar keys %count, 1000 * @times / $seconds, min(values %count), max(values %count),
		sum(@times) / @times, max(@times));
	is(scalar keys %count, $sessions, "max_lead = $max_lead: every session of a crowd gets IDs");
	cmp_ok(min(values %count), '>', max(values %count) / 10,
		"max_lead = $max_lead: no session of a crowd gets less than a tenth of what another one gets");
	is($node->safe_psql('postgres', q{SELECT lead <= '} . ($max_lead eq '0' ? '0' : '1 s') . q{'
			FROM snowflake_sequences('next_id_seq')}),
		't', "max_lead = $max_lead: a crowd leaves the sequence no further ahead");
}

# More IDs than the layout has for their time.  The sequence begins ahead of
# max_lead, so that even a slow machine reaches it.
$node->safe_psql('postgres', 'CREATE SEQUENCE own MAXVALUE 1125899906841599;
	CREATE TABLE burst (slot int, ids int, lead interval);' . setval_ahead('own', '3 seconds'));
write_file("$dir/burst.sql", <<'EOS');
INSERT INTO burst
SELECT snowflake_sequence_number(id), count(*), max(snowflake_timestamp(id) - time)
FROM (SELECT next_id(5, 'own') AS id, clock_timestamp() AS time FROM generate_series(1, 20000) OFFSET 0) i
GROUP BY 1;
EOS
$node->command_ok(
	[ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', '20', '-f', "$dir/burst.sql", 'postgres' ],
	'pgbench takes more IDs from 8 sessions than the layout has for their time');
is($node->safe_psql('postgres', q{SELECT max(lead) <= interval '1 second' FROM burst}), 't',
	'no ID of the burst was more than a second ahead of the clock');
# 8 * 20 * 20,000 IDs are 3,125 rounds of 1,024 slots.
is($node->safe_psql('postgres',
		'SELECT count(*), min(ids), max(ids) FROM (SELECT sum(ids) AS ids FROM burst GROUP BY slot) s'),
	'1024|3125|3125', 'the burst used every slot equally often');

# One role with USAGE takes so many IDs that the lead is used up for all roles.  The
# layout has few IDs a second, because an emulated processor makes hardly more than
# Instagram's.
$node->safe_psql('postgres', q{
	CREATE SEQUENCE shared;
	SELECT snowflake_alter_sequence('shared', 'sonyflake');
	CREATE ROLE greedy;
	GRANT USAGE ON SEQUENCE shared TO greedy});
my $greedy = $node->background_psql('postgres', on_error_stop => 0);
$greedy->query_safe('SET ROLE greedy');
my $pid = $greedy->query_safe('SELECT pg_backend_pid()');
send_sql($greedy, q{SELECT count(*) FROM (SELECT next_ids(5, 2000000000, 'shared')) t});

ok( $node->poll_query_until('postgres',
		q{SELECT snowflake_timestamp(next_id(6, 'shared'), 'sonyflake') > clock_timestamp() + interval '0.9 s'}),
	'while one role takes a great many IDs, those of others are also ahead of the clock');
is($node->safe_psql('postgres', q{SELECT count(next_id(6, 'shared')) FROM generate_series(1, 100)}), 100,
	'while one role takes a great many IDs, others get theirs');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
ok($node->poll_query_until('postgres', q{SELECT lead = '0' FROM snowflake_sequences('shared')}),
	'the clock catches up when the role takes no more IDs');

$greedy->quit;
$node->stop;
done_testing();
