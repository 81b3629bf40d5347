# The clock of a running server steps back, steps forward and stands still.  A longer lead
# lets IDs go on, and a sequence that is set back repeats those whose time is not over.

use Time::HiRes qw(time);
use SnowflakeTest;

# PostgreSQL leaves the timer of authentication_timeout running in a session.  It
# must not end a sleep that only the new clock should end.
my $node = server_with_clock('clock', '+0', "authentication_timeout = '10min'\n");
my $insert = 'INSERT INTO taken DEFAULT VALUES RETURNING id';

$node->sql(q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE other MAXVALUE 1125899906841599;
	CREATE TABLE taken (n int GENERATED ALWAYS AS IDENTITY, id bigint DEFAULT next_id(5))});

# The lead allows for a small step back.
my $before = $node->sql($insert);
set_clock($node, '-0.5');
my $after = $node->sql($insert);
cmp_ok($after, '>', $before, 'the next ID is larger after the clock steps back by half a second');
set_clock($node, '+7200');
my $forward = $node->sql($insert);
cmp_ok(($forward >> 23) - ($after >> 23), '>', 7_190_000,
	'the next ID is two hours later after the clock steps forward by two hours');

# A session remembers the clock's tick, but must not rely on it.
my $session = session($node);
$forward = $session->query_safe('BEGIN; SELECT next_id(5)');

# A step back by more than max_wait
set_clock($node, '+0');
my $ahead = qr/sequence "next_id_seq" is 0[12]:[\d:.]+ ahead of the clock/;
fails_with($node, "SET snowflake.max_wait = '1h'; $insert", qr/^53400 $ahead/,
	'a call after the clock steps back by two hours is refused at once, not after max_wait',
	timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \my $late);
is($node->sql(q{SELECT lead > interval '1 hour 50 minutes' FROM snowflake_sequences('next_id_seq')}), 't',
	'snowflake_sequences() shows how far the clock has stepped back');
$session->query('SELECT next_id(5)');
like($session->{stderr}, $ahead, 'a transaction that took an ID before the clock steps back is refused the next one');

$after = $node->sql("SET snowflake.max_lead = '3h'; $insert");
is($after, $forward + 1, 'the next ID uses the next slot if max_lead allows for the step back');

# A step back by less than max_wait
set_clock($node, '+7204');
$node->sql($insert);
my $start = time();
set_clock($node, '+7201');
$before = $after;
$after = $node->sql($insert);
cmp_ok($after, '>', $before, 'the next ID is larger after the clock steps back by three seconds');
cmp_ok(time() - $start, '>', 1.5, 'a call after the clock steps back by three seconds waits');
cmp_ok($node->sql('SELECT extract(epoch FROM snowflake_timestamp(next_id(5)) - clock_timestamp())'), '<=', 1,
	'an ID is at most a second ahead of the clock after a wait');

# This wait would otherwise take an hour, longer than this test waits for
# anything.
set_clock($node, '+10900');
$node->sql($insert);
set_clock($node, '+7300');
$session = session($node);
$session->query_safe(q{SET snowflake.max_wait = '2h'});
send_sql($session, $insert);
ok(waits_for_clock($session), 'a session that waits for the clock shows a wait event');
set_clock($node, '+10910');
ok(session_prints($session, qr/^\d+\n/), 'a wait ends when the clock is set forward');

# Just before the next tick, a session that waits does not sleep.
my $many = q{SELECT count(next_id(5, 'other')) FROM generate_series(1, 5000)};
foreach my $still ([ '00:00:00', qr// ], [ '00:00:01.720990', qr/00:00:00\.00001 ahead/ ])
{
	my ($time, $lead) = @$still;

	set_clock($node, "2026-01-01 $time");
	fails_with($node, "SET snowflake.max_lead = 0; SET snowflake.max_wait = '200ms'; $many",
		qr/^53400 sequence "other" is $lead/, "calls with a clock that stands still at $time fail after max_wait");
}

# The clock is where the loop has left it.
$session = session($node);
$session->query_safe(q{SET snowflake.max_lead = 0; SET snowflake.max_wait = '1s'});
my $asleep = times_asleep($session->{backend});
$session->query($many);
cmp_ok(times_asleep($session->{backend}) - $asleep, '<', 25,
	'a session that waits for a tick that is 10 us away does not sleep');
is($node->sql("SET snowflake.max_lead = '1s'; $many"), 5000,
	'calls with a clock that stands still use the IDs that max_lead allows');

# A clock that stands still shows where a day ends.
set_clock($node, '2026-01-01 00:00:00');
foreach my $case (
	[ '1 day', 'takes', qr/^no error: / ],
	[ '1 day 1 ms', 'refuses', qr/^22023 ID \d+ is more than a day ahead of the clock/ ])
{
	my ($lead, $does, $advanced) = @$case;

	fails_with($node, "SELECT snowflake_advance('other', snowflake_min_id(clock_timestamp() + interval '$lead'))",
		$advanced, "snowflake_advance() $does an ID that is $lead ahead of the clock");
}

is($node->sql(q{
		SELECT count(*) FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM taken) t
		WHERE id <= before}),
	0, 'the IDs of all rows grow through all steps of the clock');

# --- a sequence that is set back ----------------------------------------------------

# The clock stands still, so that nothing but the sequence tells IDs apart.
set_clock($node, '2030-01-01 13:00:00');
my $again = q{SELECT setval('other', 1) \g /dev/null} . "\nSELECT next_id(5, 'other')";
my $first = $node->sql($again);
is($node->sql($again), $first,
	'after setval() to a smaller value, an ID whose time the clock has not passed comes again');
set_clock($node, '2030-01-01 13:00:00.001');
cmp_ok($node->sql($again), '>', $first,
	'after setval() to a smaller value, no ID comes again whose time the clock has passed');

$node->stop;
done_testing();
