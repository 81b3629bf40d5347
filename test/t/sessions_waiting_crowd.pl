# A crowd waits for the clock for long, and leaves the processors to others.

use strict;
use warnings;
use POSIX qw(sysconf _SC_CLK_TCK);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use SnowflakeTest;

my $sessions = 100;
my $node = PostgreSQL::Test::Cluster->new('waiting');
$node->init;
$node->append_conf('postgresql.conf', "max_connections = 120\nsnowflake.max_wait = '1h'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
ahead_of_clock($node, 'next_id_seq', '10 minutes');
append_to_file($node->basedir . '/wait.sql', "SELECT next_id(5);\n");
my $crowd = IPC::Run::start(
	[ 'pgbench', '-n', '-c', $sessions, '-f', $node->basedir . '/wait.sql', $node->connstr('postgres') . ' application_name=crowd' ],
	'>', \my $out, '2>', \my $err);
my $waiting = q{pg_stat_activity WHERE application_name = 'crowd' AND wait_event_type = 'Extension'};
ok($node->poll_query_until('postgres', "SELECT count(*) = $sessions FROM $waiting"), 'a crowd waits for the clock');
my @pids = split /\n/, $node->safe_psql('postgres', "SELECT pid FROM $waiting");

# Count the processor time of the crowd, in seconds, and how often it went to sleep.
sub used
{
	my ($seconds, $sleeps) = (0, 0);

	foreach my $pid (@pids)
	{
		my ($user, $system) = slurp_file("/proc/$pid/stat") =~ /\) \w(?: -?\d+){10} (\d+) (\d+)/;
		$seconds += ($user + $system) / sysconf(_SC_CLK_TCK);
		$sleeps += $1 if slurp_file("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s*(\d+)/m;
	}
	return ($seconds, $sleeps);
}

# A loaded machine makes sessions sleep less often, and a session that does not
# sleep takes all the time that it can get.
SKIP:
{
	skip 'there is no /proc here', 3 unless -e "/proc/$$/stat";
	my $start = time();
	my @before = used();
	sleep(2);
	my @after = used();
	my ($share, $rate) = map { ($after[$_] - $before[$_]) / (time() - $start) } 0, 1;

	note(sprintf '%d waiting sessions take %.1f %% of a processor and go to sleep %.0f times a second', $sessions, 100 * $share, $rate);
	cmp_ok($rate, '>', 0, 'waiting sessions go to sleep (control)');
	cmp_ok($rate / $sessions, '<', 20, 'a waiting session goes to sleep fewer than 20 times a second');
	cmp_ok($share, '<', 0.5, 'a waiting crowd takes less than half a processor');
}

ok($node->stop('fast', fail_ok => 1), 'a fast shutdown does not wait for a crowd that waits for the clock');
$crowd->finish;
done_testing();
