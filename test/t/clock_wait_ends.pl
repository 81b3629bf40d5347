# A call that waits for the clock can be seen, canceled, timed out and shut down, and
# a crowd that waits leaves the processors to others.

use Time::HiRes qw(sleep time);
use SnowflakeTest;

my $node = server_in_utc('wait', "max_connections = 120\nsnowflake.max_wait = '1h'\n");
my $next = q{SELECT next_id(5, 'ahead')};

$node->sql(q{CREATE EXTENSION snowflake; CREATE SEQUENCE ahead MAXVALUE 1125899906841599});

# Without an interrupt these calls would wait for ten minutes.
ahead_of_clock($node, 'ahead', '10 minutes');
fails_with($node, "SET statement_timeout = '300ms'; $next", qr/^57014 canceling statement due to statement timeout/,
	'statement_timeout ends a wait for the clock',
	timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \my $late);

my $session = session($node);
my $canceled = qr/canceling statement due to user request/;
send_sql($session, $next);
ok(waits_for_clock($session), 'a call that waits for the clock shows a wait event');
like($node->sql(q{SELECT nextval('ahead')}), qr/^\d+$/, 'nextval() succeeds while another call waits for the clock');
is($node->sql(q{SET snowflake.max_lead = '1h'; SELECT count(next_id(5, 'ahead')) FROM generate_series(1, 10)}), 10,
	'next_id() with a longer lead succeeds while another call waits for the clock');
$node->sql("SELECT pg_cancel_backend($session->{backend})");
ok(session_prints($session, $canceled), 'pg_cancel_backend() ends a wait for the clock');

# Try again if the machine is so slow that the clock gets there before the call.
my ($waited, $early);
ok(wait_for(sub {
	$node->sql(setval_ahead('ahead', '1.6 s'));
	($waited, $early) = split /\|/, $node->sql(qq{
		SELECT clock_timestamp() AS before \\gset
		$next AS id \\gset
		SELECT snowflake_timestamp(:id) - :'before' > interval '1 s',
		       snowflake_timestamp(:id) - clock_timestamp() > interval '1 s'});
	return $waited eq 't' || $early eq 't' }),
	'a call waits if its ID would be further ahead than max_lead');
is($early, 'f', 'a wait ends no earlier than max_lead allows');

# --- waits for the next tick --------------------------------------------------------

# Sequences that make four IDs in a tick, of a millisecond and of a second
my %layout = (
	few => q{'timestamp:41 shard:13 sequence:2 epoch:0'},
	slow => q{'timestamp:33 shard:13 sequence:2 epoch:0 tick:1s'});
my %take;
foreach my $sequence (keys %layout)
{
	$node->sql("CREATE SEQUENCE $sequence; SELECT snowflake_alter_sequence('$sequence', $layout{$sequence})");
	$take{$sequence} = "SELECT count(next_id(5, '$sequence', $layout{$sequence})) FROM generate_series(1, %d)";
}
$session = session($node);
$session->query_safe('SET snowflake.max_lead = 0');
my $asleep = times_asleep($session->{backend});
$session->query_safe(sprintf $take{few}, 4 * 1000);
cmp_ok(times_asleep($session->{backend}) - $asleep, '>', 1000 / 10,
	'a session that waits for the next tick goes to sleep');

# The session waits most of the time even if it gets little of a processor.  There are few
# rows, because generate_series() makes all of them first.
send_sql($session, sprintf $take{slow}, 10000);
ok(waits_for_clock($session), 'a session that waits for the next tick shows a wait event');
$node->sql("SELECT pg_cancel_backend($session->{backend})");
session_prints($session, $canceled) or die 'the statement goes on';

# While it is held, it does not read the clock.
SKIP:
{
	my $gdb = send_and_hold($session, 'SET snowflake.max_wait = 0; ' . sprintf($take{slow}, 8),
		'wait_monotonic_time', 1) or skip 'gdb cannot hold a session', 1;

	sleep(0.3);
	let_go($gdb);
	session_prints($session, qr/\n/) or die 'the session does not go on';
	is($session->{stdout}, "8\n", 'a session that is stopped when it begins to wait for the next tick gets its IDs');
}

# --- a crowd that waits for long, and leaves the processors to others --------------

ahead_of_clock($node, 'ahead', '10 minutes');
my $sessions = 100;
my $crowd = start_load($node->connstr('postgres') . ' application_name=crowd', "$next;\n", '-c', $sessions);
my $waiting = q{pg_stat_activity WHERE application_name = 'crowd' AND wait_event_type = 'Extension'};
ok($node->poll_query_until('postgres', "SELECT count(*) = $sessions FROM $waiting"), 'a crowd waits for the clock');
my @pids = split /\n/, $node->sql("SELECT pid FROM $waiting");

# What the crowd has used until now: the time, in seconds, that of processors, and how often
# it went to sleep
sub used
{
	my ($seconds, $sleeps) = (0, 0);

	foreach my $pid (@pids)
	{
		$seconds += cpu_seconds($pid);
		$sleeps += times_asleep($pid);
	}
	return (time(), $seconds, $sleeps);
}

# A loaded machine makes sessions sleep less often, and a session that does not
# sleep takes all the time that it can get.  A reload wakes each of them once.
$node->reload;
my @before = used();
sleep(2);
my @after = used();
my ($time, $share, $rate) = map { $after[$_] - $before[$_] } 0 .. 2;
cmp_ok($rate / $time, '>', 0, 'waiting sessions go to sleep (control)');
cmp_ok($rate / $time / $sessions, '<', 20, 'a waiting session goes to sleep fewer than 20 times a second');
cmp_ok($share / $time, '<', 0.5, 'a waiting crowd takes less than half a processor');

ok($node->stop('fast', fail_ok => 1), 'a fast shutdown ends the waits of a crowd');
ends($crowd->{run}, 'pgbench of a crowd');
done_testing();
