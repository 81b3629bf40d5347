# After snowflake_advance() has returned, every later ID of the sequence is larger
# than the given one, also after a crash.  sql/advance.sql shows what it does in one
# session, and the ledger's clients in crash_ledger.pl advance sequences all at once.
#
# The sequences are hours ahead of the clock, whose own progress would hide a
# smaller ID.  snowflake_advance() refuses IDs more than a day ahead.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_ahead_of_clock('advance', NOBODY_FLUSHES);
ahead_of_clock($node, 'used', '6 hours');

# The last but one ID of a shard in the millisecond so long after the sequence's last
# value.  A WAL record covers one second of it.
sub id_after
{
	my ($seconds, $shard) = @_;

	return $node->safe_psql('postgres',
		"SELECT snowflake_id(snowflake_timestamp(last_value / 1024 << 23) + interval '$seconds s', $shard, 1022) FROM used");
}

sub advance
{
	my ($id) = @_;
	return "SELECT snowflake_advance('used', $id)";
}

# Crash, and see that the next ID of the smallest shard is larger than this one.
sub larger_after_crash
{
	my ($id, $what, @sessions) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	next_id_is_larger_after_crash($node, $id, $what, sessions => \@sessions, query => q{SELECT next_id(0, 'used')});
	return;
}

# --- a crash after it has returned -------------------------------------------

my $id = id_after(30, 8191);
$node->safe_psql('postgres', advance($id));
larger_after_crash($id, 'one beyond which its sequence was advanced');

$id = id_after(30, 8191);
$node->safe_psql('postgres', 'BEGIN; ' . advance($id) . '; ROLLBACK');
larger_after_crash($id, 'one beyond which its sequence was advanced in a transaction that was rolled back');

$id = id_after(30, 8191);
$node->safe_psql('postgres', 'BEGIN; SAVEPOINT s; ' . advance($id) . '; ROLLBACK TO s; CREATE TABLE unrelated (); COMMIT; DROP TABLE unrelated; ' . advance(17));
larger_after_crash($id, 'one beyond which its sequence was advanced in a subtransaction that was rolled back');

# Recovery starts at the checkpoint, and does not see an earlier record.
{
	my $session = $node->background_psql('postgres');

	$session->query_safe(advance(id_after(30, 0)));
	$node->safe_psql('postgres', 'CHECKPOINT');
	$id = id_after(0.5, 8191);
	$session->query_safe(advance($id));
	larger_after_crash($id, 'one beyond which its sequence was advanced after a checkpoint, as far as an earlier record covers', $session);
}

# The sequence is where it has to be, but its last value has not been taken.
$id = id_after(30, 5);
$node->safe_psql('postgres', "SELECT setval('used', " . (value_of($id) | 1023) . ', false); ' . advance($id));
larger_after_crash($id, 'one whose sequence was about to make the last ID of that time when it was advanced');

# Session A is held while it puts its value on the page.
SKIP:
{
	skip 'gdb is not installed', 2 unless gdb_is_installed();
	my ($a, $b) = map { $node->background_psql('postgres') } 1, 2;
	my ($pid_a, $pid_b) = map { $_->query_safe('SELECT pg_backend_pid()') } $a, $b;
	my ($smaller, $larger) = map { id_after($_, 8191) } 20, 30;

	$_->query_safe(q{SELECT next_id(5, 'used')}) foreach $a, $b;
	my $gdb = hold_at($pid_a, 'XLogInsert');
	skip 'gdb cannot attach to a server process or finds no functions', 2 unless $gdb->{attached};
	send_sql($a, advance($smaller));
	wait_for(sub { $a->{run}->pump_nb; $gdb->{run}->pump_nb; -e $gdb->{reached} }) or die "XLogInsert was not reached: ${$gdb->{log}}";
	send_sql($b, advance($larger));
	my $waits = 'SELECT count(*) FROM pg_stat_activity WHERE ' . WAITS_FOR_PAGE . " AND pid = $pid_b";
	wait_for(sub { $b->{run}->pump_nb; $b->{stdout} ne '' || $node->safe_psql('postgres', $waits) });
	is($b->{stdout}, '', 'a session waits while another one advances the same sequence');
	let_go($gdb);
	$gdb->{run}->finish;
	session_prints($_, qr/\n/) or die 'a session did not go on' foreach $a, $b;
	cmp_ok($node->safe_psql('postgres', q{SELECT next_id(0, 'used')}), '>', $larger,
		'of two sessions that advance a sequence at once, the one with the smaller ID does not set it back');
	$_->quit foreach $a, $b;
}

# Session A's record is not flushed, as A is held where it would do that.  B finds
# the sequence far enough ahead.  Both have used the file, because each would
# otherwise write a record of its own.
SKIP:
{
	skip 'gdb is not installed', 2 unless gdb_is_installed();

	foreach my $case (
		[ 'advanced it', sub { advance($_[0]) } ],
		[ 'taken IDs', sub { q{SELECT max(id) FROM next_ids(0, 1024, 'used') id} } ])
	{
		my ($what, $sql_of) = @$case;
		my ($a, $b) = map { $node->background_psql('postgres') } 1, 2;
		my $pid = $a->query_safe('SELECT pg_backend_pid()');

		$_->query_safe(q{SELECT next_id(5, 'used')}) foreach $a, $b;
		# The record of setval() covers its value, and nothing beyond it.
		$node->safe_psql('postgres', q{SELECT setval('used', last_value + 5000) FROM used; CREATE TABLE flushed (); DROP TABLE flushed});
		my $gdb = hold_at($pid, 'XLogFlush');
		skip 'gdb cannot attach to a server process or finds no functions', 1 unless $gdb->{attached};
		send_sql($a, $sql_of->(id_after(30, 5)));
		wait_for(sub { $a->{run}->pump_nb; $gdb->{run}->pump_nb; -e $gdb->{reached} }) or die "XLogFlush was not reached: ${$gdb->{log}}";
		# A stays there without gdb, which would keep the server from being killed.  The
		# WAL writer must not flush the record either.
		kill 'STOP', $pid, $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'});
		let_go($gdb);
		$gdb->{run}->finish;
		ok(wait_for(sub { `ps -o stat= -p $pid` =~ /^T/ }), "a session that has $what is held where it would flush its record");

		# The last ID of the last millisecond whose values A has used up
		$id = $node->safe_psql('postgres', q{SELECT ((last_value + 1) / 1024 - 1 << 23) | (8191 << 10) | 1023 FROM used});
		$b->query_safe(advance($id));
		larger_after_crash($id, "one that its sequence was beyond, as another session had $what a moment ago", $a, $b);
	}
}

# --- a sequence that was rewritten in the same transaction ---------------------

foreach my $end ('COMMIT', 'ROLLBACK')
{
	ahead_of_clock($node, 'used', '6 hours');
	my $last = next_id($node);
	my $session = $node->background_psql('postgres');
	$id = $last + (1000 << 23);

	$session->query_safe('BEGIN; ALTER SEQUENCE used RESTART; ' . advance($id));
	$session->query_safe($end);
	larger_after_crash($end eq 'COMMIT' ? $id : $last,
		$end eq 'COMMIT' ? 'one beyond which its sequence was advanced when it had been rewritten' :
		  'the last one before a transaction that rewrote and advanced its sequence, and was rolled back', $session);
}

$node->stop;
done_testing();
