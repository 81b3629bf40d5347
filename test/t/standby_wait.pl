# A call waits until the synchronous standby has the record that covers its ID.
# If the wait ends before that, the session gets no ID.  snowflake_advance() waits,
# too.

use SnowflakeTest;
use StandbyTest;
use Time::HiRes qw(time);

my $primary = primary('primary');
# snowflake_advance() refuses IDs more than a day ahead of the clock.
ahead_of_clock($primary, 'used', '6 hours');
my $next = q{SELECT next_id(5, 'used')};
my $standby = standby_of($primary, 'standby');
make_synchronous($primary);

# One record covers many IDs.
my ($session, $other) = map { session($primary) } 1, 2;
$_->query_safe($next) foreach $session, $other;
my $lsn = $primary->lsn('insert');
$_->query_safe(MANY_IDS) foreach $session, $other;
wrote_little($primary, $lsn, 'sessions share what the standby has acknowledged');

# The standby does not answer.  A session that needs the record that another one has written
# waits, too.
sub both_wait
{
	my ($first, $second, $what) = @_;

	$standby->stop;
	my $asleep = times_asleep($session->{backend});
	my @since = (time());
	send_sql($session, "BEGIN; $first");
	foreach my $looks (10, 20)
	{
		wait_for(sub { times_asleep($session->{backend}) >= $asleep + $looks }, "look number $looks");
		push @since, time();
	}
	ok(sessions_wait_for_standby($primary, 1), "a session that $what waits for the standby");
	cmp_ok($since[1] - $since[0], '<', ($since[2] - $since[1]) / 2, "the pauses of a session that $what grow: ten looks at the standby take less than half the time of the next ten");
	send_sql($other, $second);
	ok(sessions_wait_for_standby($primary, 2), "so does one that finds that another session $what");
	canceled_wait_is_error($_, 'a canceled wait for the standby is an error, and returns nothing')
	  foreach $session, $other;
	$session->query_safe('ROLLBACK');
}

need_record($primary);
both_wait($next, $next, 'wrote a record');
like($primary->sql("SET synchronous_commit = local; $next"), qr/^\d+$/,
	'next_id() with synchronous_commit = local does not wait for the standby');

$standby->start;
make_synchronous($primary);

# A standby that has written the record and not flushed it
my $writer = writing_standby($primary);
need_record($primary);
$other->query_safe('SET synchronous_commit = remote_write');
send_sql($other, $next);
like(result($other), qr/^\d+$/,
	'a record that is written, not flushed, is enough for synchronous_commit = remote_write');
$other->query_safe('RESET synchronous_commit');
send_sql($other, $next);
waits($other, 'a record that is written, not flushed, is not enough for synchronous_commit = on in the same session');
$primary->sql('SELECT pg_switch_wal()');
like(result($other), qr/^\d+$/, 'a session gets its ID when the standby flushes the record');
$writer->kill_kill;
make_synchronous($primary);

# --- snowflake_advance() ------------------------------------------------------------

# The largest ID of the millisecond so many seconds after the last value.  A WAL
# record covers one second.
sub id_after
{
	my ($seconds) = @_;
	return $primary->sql("SELECT (last_value / 1024 + 1000 * $seconds << 23) | (8191 << 10) | 1023 FROM used");
}

sub advance { my ($id) = @_; return "SELECT snowflake_advance('used', $id)" }

all_flushed($primary, $standby);
both_wait(advance(id_after(30)), advance(id_after(20)), 'advanced a sequence');
$standby->start;
make_synchronous($primary);
my $advanced = id_after(30);
$session->query_safe('BEGIN; ' . advance($advanced) . '; ROLLBACK');

# --- the end of the server ----------------------------------------------------------

# The postmaster's death ends a wait without an ID.  The IDs are enough to fill the
# session's buffer, which it would send before it ends.  The first one needs the
# first record of a new file.
$primary->sql(q{
	SET synchronous_commit = local;
	ALTER SEQUENCE used SET UNLOGGED;
	ALTER SEQUENCE used SET LOGGED});
all_flushed($primary, $standby);
$standby->stop;
my $orphan = session($primary);
send_sql($orphan, "COPY ($next FROM generate_series(1, 100000)) TO STDOUT");
ok(sessions_wait_for_standby($primary, 1), 'COPY of IDs waits for the standby');
my $local = $primary->sql("SET synchronous_commit = local; $next");
my ($postmaster) = split /\n/, slurp_file($primary->data_dir . '/postmaster.pid');
my @children = split ' ', `ps -o pid= --ppid $postmaster`;
kill 'KILL', $postmaster;
ok(wait_for(sub { !grep { kill 0, $_ } @children }), 'all server processes end when the postmaster is killed');
eval { ends($orphan->{run}, 'a session without a server') };
unlike($orphan->{stdout}, qr/\d{15}/,
	'a session that waited for the standby when the postmaster was killed gets no ID');
$primary->{_pid} = undef;

fail_over($primary, $standby);
my $after = $standby->sql(q{SELECT next_id(0, 'used')});
cmp_ok($after, '>', $advanced,
	'the next ID of the promoted standby is larger than the one beyond which the sequence was advanced');
cmp_ok(value_of($after), '<=', value_of($local),
	'the promoted standby repeats a value that was taken with synchronous_commit = local (control)');
$standby->stop;

# A server removes the shared memory of its last life when it starts.
$primary->start;
$primary->stop;
done_testing();
