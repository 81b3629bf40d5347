# A call that waits for the clock can be seen, canceled, timed out and shut down, and
# a crowd that waits leaves the processors to others.

use strict;
use warnings;
use POSIX qw(sysconf _SC_CLK_TCK);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use SnowflakeTest;

my $node = server_in_utc('wait', "max_connections = 120\nsnowflake.max_wait = '1h'\n");
my $next = q{SELECT next_id(5, 'ahead')};

sub query { return $node->safe_psql('postgres', $_[0]) }

# Send a call of next_id() that will wait.
my $session;
sub call_waits
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	send_sql($session, $next);
	return ok($node->poll_query_until('postgres', q{
			SELECT count(*) = 1 FROM pg_stat_activity
			WHERE query LIKE '%next_id(5, ''ahead'')%' AND pid <> pg_backend_pid()
			  AND wait_event_type = 'Extension'}),
		$name);
}

query(q{CREATE EXTENSION snowflake; CREATE SEQUENCE ahead MAXVALUE 1125899906841599});

# Without an interrupt these calls would wait for ten minutes.
ahead_of_clock($node, 'ahead', '10 minutes');
fails_with($node, "SET statement_timeout = '300ms'; $next", qr/^57014 canceling statement due to statement timeout/,
	'statement_timeout ends a wait for the clock',
	timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \my $late);

$session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
call_waits('a call that waits for the clock shows a wait event');
is(query(q{SELECT count(*) FROM pg_locks WHERE relation = 'ahead'::regclass AND granted}), 1,
	'a call that waits for the clock holds the lock that nextval() takes');
is(query(q{SELECT nextval('ahead') IS NOT NULL}), 't', 'nextval() succeeds while another call waits for the clock');
is(query(q{SET snowflake.max_lead = '1h'; SELECT count(next_id(5, 'ahead')) FROM generate_series(1, 10)}), 10,
	'next_id() with a longer lead succeeds while another call waits for the clock');
query("SELECT pg_cancel_backend($pid)");
ok(session_prints($session, qr/canceling statement due to user request/),
	'pg_cancel_backend() ends a wait for the clock');

# Try again if the machine is so slow that the clock gets there before the call.
my ($waited, $early);
ok(wait_for(sub {
	query(setval_ahead('ahead', '1.6 s'));
	($waited, $early) = split /\|/, query(qq{
		SELECT clock_timestamp() AS before \\gset
		$next AS id \\gset
		SELECT snowflake_timestamp(:id) - :'before' > interval '1 s',
		       snowflake_timestamp(:id) - clock_timestamp() > interval '1 s'});
	return $waited eq 't' || $early eq 't' }),
	'a call waits if its ID would be further ahead than max_lead');
is($early, 'f', 'a wait ends no earlier than max_lead allows');

# --- waits of less than a millisecond, for the next tick ----------------------------

# A sequence that makes four IDs in a millisecond
my $few = q{next_id(5, 'few', 'timestamp:41 shard:13 sequence:2 epoch:0')};
query(q{CREATE SEQUENCE few; SELECT snowflake_alter_sequence('few', 'timestamp:41 shard:13 sequence:2 epoch:0')});
$session->{stderr} = '';
$session->query_safe('SET snowflake.max_lead = 0');

SKIP:
{
	skip 'there is no /proc here', 1 unless -e "/proc/$$/status";
	my $ticks = 1000;
	my $before = times_asleep($pid);

	$session->query_safe("SELECT count($few) FROM generate_series(1, 4 * $ticks)");
	cmp_ok(times_asleep($pid) - $before, '>', $ticks / 10, 'a session that waits for the next tick goes to sleep');
}

# Ticks of a second, so that the session waits most of the time even if it gets little of a
# processor, and few rows, because generate_series() makes all of them first.
my $slow = q{next_id(5, 'slow', 'timestamp:33 shard:13 sequence:2 epoch:0 tick:1s')};
query(q{CREATE SEQUENCE slow;
	SELECT snowflake_alter_sequence('slow', 'timestamp:33 shard:13 sequence:2 epoch:0 tick:1s')});
send_sql($session, "SELECT count($slow) FROM generate_series(1, 10000)");
ok($node->poll_query_until('postgres', "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid"),
	'a session that waits for the next tick shows a wait event');
query("SELECT pg_cancel_backend($pid)");
session_prints($session, qr/canceling statement due to user request/) or die 'the statement goes on';

# psql sends both statements at once, so that the session does not wait for its client
# in between.
is( last_result($node, 'SET snowflake.max_lead = 0', "SELECT count($few) FROM generate_series(1, 400) \\; "
		  . q{SELECT coalesce(wait_event, 'none') FROM pg_stat_activity WHERE pid = pg_backend_pid()}),
	'none', 'a session that has waited for the next tick shows no wait event');

# --- a crowd that waits for long, and leaves the processors to others --------------

ahead_of_clock($node, 'ahead', '10 minutes');
$session->quit;
my $sessions = 100;
append_to_file($node->basedir . '/wait.sql', "$next;\n");
my $crowd = IPC::Run::start(
	[ 'pgbench', '-n', '-c', $sessions, '-f', $node->basedir . '/wait.sql',
		$node->connstr('postgres') . ' application_name=crowd' ],
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
		$sleeps += times_asleep($pid);
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

	note(sprintf '%d waiting sessions take %.1f %% of a processor and go to sleep %.0f times a second',
		$sessions, 100 * $share, $rate);
	cmp_ok($rate, '>', 0, 'waiting sessions go to sleep (control)');
	cmp_ok($rate / $sessions, '<', 20, 'a waiting session goes to sleep fewer than 20 times a second');
	cmp_ok($share, '<', 0.5, 'a waiting crowd takes less than half a processor');
}

ok($node->stop('fast', fail_ok => 1), 'a fast shutdown ends the waits of a crowd');
$crowd->finish;
done_testing();
