# A checkpoint runs as far as it can while gdb stops a backend that is about to take a
# value, at each point where it matters.  The backend returns its value, and the server is
# killed.  The same schedule for nextval(), which repeats the value, is the control.

use SnowflakeTest;

my $node = server_ahead_of_clock('checkpoint', NOBODY_FLUSHES . "shared_buffers = 128kB\n");
my $checkpoint_waits = q{SELECT count(*) FROM pg_stat_activity
	WHERE backend_type = 'checkpointer' AND } . WAITS_FOR_PAGE;

# Take a value with a checkpoint in the middle, and crash.  Returns the value and
# the next one, or nothing if gdb cannot stop the backend there.
sub take_amid_checkpoint
{
	my ($sql, $sequence, $where, @hold) = @_;
	my ($session, $watcher) = map { session($node) } 1, 2;

	# The session has all in its caches, and the page is clean, with WAL since
	# the last checkpoint.
	$watcher->query_safe($checkpoint_waits);
	$session->query_safe($sql) for 1 .. 3;
	$node->sql('CHECKPOINT');
	my $before;
	$before = $session->query_safe($sql) for 1 .. 2;
	evict($node, $sequence);
	$session->query_safe('SELECT 1');

	my $gdb = send_and_hold($session, $sql, @hold) or return;
	is($session->{stdout}, '', "a session that takes a value from \"$sequence\" is stopped $where");

	my $redo = sub { return $watcher->query_safe('SELECT redo_lsn FROM pg_control_checkpoint()') };
	my $redo_before = $redo->();
	my $checkpoint = IPC::Run::start([ 'psql', '-X', '-d', $node->connstr('postgres'), '-c', 'CHECKPOINT' ],
		'<', \'', '>', '/dev/null', '2>&1');
	ok(wait_for(sub { $redo->() ne $redo_before || $watcher->query_safe($checkpoint_waits) }),
		"a checkpoint runs as far as it can while a session is stopped $where");

	let_go($gdb);
	session_prints($session, qr/\d+\n/) or die 'the session did not go on';
	my ($taken) = $session->{stdout} =~ /(\d+)/;
	ends($checkpoint, 'CHECKPOINT');
	crash_and_start($node);
	cmp_ok($taken, '>', $before, "a session that was stopped $where takes a value");
	return ($taken, $node->sql($sql));
}

my ($taken, $after) =
  take_amid_checkpoint(q{SELECT nextval('plain')}, 'plain', 'in MarkBufferDirty()', 'MarkBufferDirty');
plan skip_all => 'gdb cannot hold a session' unless defined $taken;
nextval_repeats($after <= $taken, 'after a checkpoint in MarkBufferDirty()');

foreach my $function ('MarkBufferDirty', 'GetRedoRecPtr')
{
	foreach my $return (0, 1)
	{
		my $where = "in $function()" . ($return ? ', on return' : '');
		($taken, $after) = take_amid_checkpoint(q{SELECT next_id(5, 'used')}, 'used', $where, $function, $return);
		cmp_ok($after, '>', $taken, "next_id() repeats no value after a checkpoint $where, and a crash");
	}
}

done_testing();
