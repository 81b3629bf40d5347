# A checkpoint runs at the worst moment: while a backend is about to take a value.
#
# gdb stops the backend at each point where it matters.  A checkpoint runs as far
# as it can.  The backend goes on and returns its value, and the server is
# killed.  The same schedule for nextval(), which repeats the value, shows that
# it is the right one.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

plan skip_all => 'gdb is not installed' unless gdb_is_installed();

my $node = server_ahead_of_clock('checkpoint', NOBODY_FLUSHES . "shared_buffers = 128kB\n");
my %path = map { $_ => file_of($node, $_) } 'used', 'plain';
my $checkpoint_waits = q{SELECT count(*) FROM pg_stat_activity
	WHERE backend_type = 'checkpointer' AND } . WAITS_FOR_PAGE;

# The last value of a sequence on disk
sub on_disk
{
	my ($sequence) = @_;
	my $page = slurp_file($path{$sequence});
	# The page's one tuple is where its free space ends.
	my $offset = unpack 'S', substr($page, 14, 2);
	return unpack 'q', substr($page, $offset + 24, 8);
}

# Write a sequence's page by pushing it out of the cache.
sub evict
{
	my ($sequence) = @_;
	my $last = $node->safe_psql('postgres', "SELECT last_value FROM $sequence");

	return wait_for(sub {
		$node->safe_psql('postgres', q{
			SELECT count(*) FROM pg_class, LATERAL pg_relation_size(oid);
			SET enable_seqscan = off;
			SELECT count(*) FROM pg_proc p JOIN pg_type t ON t.oid = p.prorettype
				JOIN pg_operator o ON o.oprcode = p.oid});
		return on_disk($sequence) == $last }) || die 'the page was not written';
}

# Take a value with a checkpoint in the middle, and crash.  Returns the value and
# the next one, or nothing if gdb cannot stop the backend there.
sub take_amid_checkpoint
{
	my ($sql, $sequence, $function, $return) = @_;
	my $session = $node->background_psql('postgres');
	my $watcher = $node->background_psql('postgres');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $where = "in $function()" . ($return ? ', on return' : '');

	# The session has all in its caches, and the page is clean, with WAL since
	# the last checkpoint.
	$watcher->query_safe($checkpoint_waits);
	$session->query_safe($sql) for 1 .. 3;
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $before = $session->query_safe($sql);
	$before = $session->query_safe($sql);
	evict($sequence);
	$session->query_safe('SELECT 1');

	my $gdb = hold_at($pid, $function, $return);
	return unless $gdb->{attached};
	send_sql($session, $sql);
	wait_for(sub { $session->{run}->pump_nb; $gdb->{run}->pump_nb; -e $gdb->{reached} })
	  or die "$function was not reached: ${$gdb->{log}}";
	is($session->{stdout}, '', "a session that takes a value from \"$sequence\" is stopped $where");

	my $redo = sub { return $watcher->query_safe('SELECT redo_lsn FROM pg_control_checkpoint()') };
	my $redo_before = $redo->();
	my $checkpoint = IPC::Run::start([ 'psql', '-X', '-d', $node->connstr('postgres'), '-c', 'CHECKPOINT' ],
		'<', \'', '>', \my $out, '2>', \my $err);
	ok(wait_for(sub { $redo->() ne $redo_before || $watcher->query_safe($checkpoint_waits) }),
		"a checkpoint runs as far as it can while a session is stopped $where");
	note($redo->() ne $redo_before ? 'it is through' : 'it waits for the page');

	let_go($gdb);
	session_prints($session, qr/\d+\n/) or die 'the session did not go on';
	my ($taken) = $session->{stdout} =~ /(\d+)/;
	$checkpoint->finish;
	crash_and_start($node, $session, $watcher);
	$gdb->{run}->finish;
	cmp_ok($taken, '>', $before, "a session that was stopped $where takes a value");
	return ($taken, $node->safe_psql('postgres', $sql));
}

my ($taken, $after) = take_amid_checkpoint(q{SELECT nextval('plain')}, 'plain', 'MarkBufferDirty');
if (!defined $taken)
{
	$node->stop('immediate');
	plan skip_all => 'gdb cannot attach to a server process or finds no functions';
}
SKIP:
{
	skip 'nextval() does not repeat here', 1 if $after > $taken;
	pass('nextval() repeats a value after a checkpoint in MarkBufferDirty() and a crash (control)');
}

foreach my $function ('MarkBufferDirty', 'GetRedoRecPtr')
{
	foreach my $return (0, 1)
	{
		($taken, $after) = take_amid_checkpoint(q{SELECT next_id(5, 'used')}, 'used', $function, $return);
		cmp_ok($after, '>', $taken, "next_id() repeats no value after a checkpoint in $function() and a crash"
			  . ($return ? ', on return' : ''));
	}
}

$node->stop;
done_testing();
