# A crowd that wants more IDs than the layout has: everyone gets some, nobody
# waits long, and whoever gives up gets an answer at once.
#
# How long things took is noted.  What must end does so before a statement that
# takes many times as long.

use strict;
use warnings;
use List::Util qw(min max sum);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $sessions = 100;
my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = PostgreSQL::Test::Cluster->new('crowd');
$node->init;
$node->append_conf('postgresql.conf', "max_connections = 120\nlog_statement = none\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE ahead MAXVALUE 1125899906841599;
});
append_to_file("$dir/take.sql", "SELECT count(next_id(:client_id)) FROM generate_series(1, 1000);\n");
append_to_file("$dir/wait.sql", "SELECT next_id(5, 'ahead');\n");

sub crowd
{
	my ($script, $log) = @_;
	my $out = '';
	return IPC::Run::start(
		[ 'pgbench', '-n', '-c', $sessions, '-j', '2', '-T', 3600,
			defined $log ? ('--log', "--log-prefix=$dir/$log") : (),
			'-f', "$dir/$script.sql", $node->connstr('postgres') . ' application_name=crowd' ],
		'<', \'', '>', \$out, '2>', \$out);
}

sub crowd_is_there
{
	return $node->poll_query_until('postgres', qq{
		SELECT count(*) >= $sessions FROM pg_stat_activity
		WHERE application_name = 'crowd' AND query LIKE '%next_id%'});
}

# End a crowd; pgbench writes its log to the end.
sub disperse
{
	my ($run) = @_;
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'crowd'});
	$run->finish;
	return;
}

# Seconds until something that was sent to a session gives the given error;
# undefined if it does not.
sub answer
{
	my ($session, $sql, $error, $after) = @_;

	$session->{stderr} = '';
	$session->{stdin} .= "$sql;\n";
	$session->{run}->pump_nb;
	my $start = $after->();
	return wait_for(sub { $session->{run}->pump_nb; $session->{stderr} =~ /$error/ })
	  ? time() - $start : undef;
}

foreach my $max_lead ('0', '1s')
{
	$node->append_conf('postgresql.conf', "snowflake.max_lead = $max_lead\n");
	$node->reload;
	my $run = crowd('take', "lead$max_lead");
	ok(crowd_is_there(), "max_lead = $max_lead: all sessions ask for IDs");
	my $start = time();
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $many = 'SELECT count(next_id(5)) FROM generate_series(1, 10000000)';
	my @cancelled = map {
		answer($session, $many, 'due to user request', sub {
			$node->poll_query_until('postgres',
				"SELECT state = 'active' FROM pg_stat_activity WHERE pid = $pid");
			sleep(0.05);
			kill 'INT', $pid;
			return time() }) } 1 .. 3;
	my @timed_out = map {
		answer($session, "SET statement_timeout = '100ms'; $many", 'due to statement timeout',
			sub { time() }) } 1 .. 3;
	$session->quit;
	sleep(max(0, $start + 4 - time()));
	my $seconds = time() - $start;
	disperse($run);
	is(scalar(grep { !defined } @cancelled), 0, "max_lead = $max_lead: a cancel ends a statement");
	is(scalar(grep { !defined } @timed_out), 0, "max_lead = $max_lead: a timeout ends a statement");
	note(sprintf 'cancelled after %s ms, timed out after %s ms, 100 of which were granted',
		map { join ', ', map { sprintf '%.0f', 1000 * ($_ // -1) } @$_ } \@cancelled, \@timed_out);

	# client, transaction, microseconds, script, time
	my (%count, @time);
	foreach my $line (map { split /\n/, slurp_file($_) } glob "$dir/lead$max_lead.*")
	{
		my ($client, undef, $time) = split / /, $line;
		$count{$client}++;
		push @time, $time / 1000;
	}
	note(sprintf '%d sessions, %.0f IDs a second; a session got %d to %d thousand; 1000 IDs took %.0f ms on average, %.0f ms at worst',
		scalar keys %count, 1000 * @time / $seconds, min(values %count), max(values %count),
		sum(@time) / @time, max(@time));
	is(scalar keys %count, $sessions, 'every session got IDs');
	cmp_ok(min(values %count), '>', max(values %count) / 10, 'nobody much less than others');
	cmp_ok($node->safe_psql('postgres',
			'SELECT extract(epoch FROM lead) FROM snowflake_status()'),
		'<=', $max_lead eq '0' ? 0 : 1, 'the lead is bounded');
}

# One role with USAGE uses up the lead for everybody.
$node->safe_psql('postgres', q{
	CREATE SEQUENCE shared MAXVALUE 1125899906841599;
	CREATE ROLE greedy;
	GRANT USAGE ON SEQUENCE shared TO greedy});
my $greedy = $node->background_psql('postgres', on_error_stop => 0);
$greedy->query_safe('SET ROLE greedy');
$greedy->{stdin} .= "SELECT count(*) FROM (SELECT next_ids(5, 2000000000, 'shared')) t;\n";
$greedy->{run}->pump_nb;
ok( $node->poll_query_until('postgres', q{
		SELECT snowflake_timestamp(next_id(6, 'shared')) > clock_timestamp() + interval '0.9 s'}),
	'while one role takes a great many, the IDs of others are ahead of the clock, too');
my @waited = map {
	my $start = time();
	$node->safe_psql('postgres', q{SELECT count(next_id(6, 'shared')) FROM generate_series(1, 100)});
	time() - $start } 1 .. 5;
note(sprintf 'a call beside it took %.1f to %.1f ms, that of psql included', 10 * min(@waited), 10 * max(@waited));
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%2000000000%' AND pid <> pg_backend_pid()});
ok($node->poll_query_until('postgres', q{SELECT lead = '0' FROM snowflake_status('shared')}),
	'when it ends, the clock catches up');
$greedy->quit;

# Those who wait for the clock for long leave the processors to others.
ahead_of_clock($node, 'ahead', '10 minutes');
$node->append_conf('postgresql.conf', "snowflake.max_wait = '1h'\n");
$node->reload;
my $run = crowd('wait');
ok( $node->poll_query_until('postgres', qq{
		SELECT count(*) = $sessions FROM pg_stat_activity
		WHERE application_name = 'crowd' AND wait_event_type = 'Extension'}),
	'all wait for the clock');

sub cpu_time
{
	my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
	my $ticks = 0;
	foreach my $pid (split ' ', `ps -o pid= --ppid $postmaster`)
	{
		my $stat = -e "/proc/$pid/stat" ? slurp_file("/proc/$pid/stat") : '';
		$ticks += $1 + $2 if $stat =~ /\) \w(?: -?\d+){10} (\d+) (\d+)/;
	}
	return $ticks / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

SKIP:
{
	skip 'there is no /proc here', 1 unless -e "/proc/$$/stat";
	require POSIX;
	my ($time, $cpu) = (time(), cpu_time());
	sleep(2);
	my $share = (cpu_time() - $cpu) / (time() - $time);
	note(sprintf '%d waiting sessions take %.1f %% of a processor', $sessions, 100 * $share);
	cmp_ok($share, '<', 0.1, 'which takes little of the processors');
}

# Shutdown, with all of them waiting
ok($node->stop('fast', fail_ok => 1), 'a fast shutdown does not wait for them');
$run->finish;

done_testing();
