# After snowflake_advance() has returned, every later ID of the sequence is larger than the
# given one, also after a crash.  The sequences are hours ahead of the clock, whose own
# progress would hide a smaller ID; snowflake_advance() refuses IDs more than a day ahead.

use SnowflakeTest;

my $node = server_ahead_of_clock('advance', NOBODY_FLUSHES);
ahead_of_clock($node, 'used', '6 hours');

# The last but one ID of a shard in the millisecond so long after the sequence's last
# value.  A WAL record covers one second of it.
sub id_after
{
	my ($seconds, $shard) = @_;
	return $node->sql("SELECT snowflake_id(snowflake_timestamp(last_value / 1024 << 23)
		+ interval '$seconds s', $shard, 1022) FROM used");
}

sub advance { my ($id) = @_; return "SELECT snowflake_advance('used', $id)" }

# Crash, and see that the next ID of the smallest shard is larger than this one.
sub larger_after_crash
{
	my ($id, $what) = @_;

	next_id_is_larger_after_crash($node, $id, "one beyond which its sequence was advanced $what",
		query => q{SELECT next_id(0, 'used')});
}

# --- a crash after it has returned -------------------------------------------

foreach my $case (
	[ 'outside of a transaction', '%s' ],
	[ 'in a transaction that was rolled back', 'BEGIN; %s; ROLLBACK' ],
	[ 'in a subtransaction that was rolled back',
		'BEGIN; SAVEPOINT s; %s; ROLLBACK TO s; CREATE TABLE flushed (); COMMIT; DROP TABLE flushed; ' . advance(17) ],
	[ 'after a rewrite in the same transaction', 'BEGIN; ALTER SEQUENCE used RESTART; %s; COMMIT' ])
{
	my ($what, $sql) = @$case;
	my $id = id_after(30, 8191);

	$node->sql(sprintf $sql, advance($id));
	larger_after_crash($id, $what);
}

my $last = next_id($node);
$node->sql('BEGIN; ALTER SEQUENCE used RESTART; ' . advance($last + (1000 << 23)) . '; ROLLBACK');
next_id_is_larger_after_crash($node, $last,
	'the last one before a transaction that rewrote and advanced its sequence, and was rolled back');

# Recovery starts at the checkpoint, and does not see an earlier record.
my $session = session($node);
$session->query_safe(advance(id_after(30, 0)));
$node->sql('CHECKPOINT');
my $id = id_after(0.5, 8191);
$session->query_safe(advance($id));
larger_after_crash($id, 'after a checkpoint, as far as an earlier record covers');

# --- what it says ------------------------------------------------------------

$id = id_after(30, 8191);
my (undef, undef, $warning) = $node->psql('postgres', "SET snowflake.max_lead = '10 s'; " . advance($id));
my ($lead, $until) = $warning =~ /sequence "used" is (.*) ahead of the clock\n.* wait until (.*), or fail/ or diag $warning;
is($node->sql("SELECT snowflake_timestamp($id) - interval '$lead' BETWEEN now() - interval '1 min' AND now()"), 't',
	'a warning says how far the sequence is ahead of the clock');
is($node->sql("SELECT timestamptz '$until' - snowflake_timestamp($id) BETWEEN interval '-10 s' AND interval '-9.998 s'"), 't',
	'... and until when calls wait');

# --- two sessions ------------------------------------------------------------

# Two that have used the file, as a session's first use of it writes a record
sub two_sessions
{
	my @sessions = map { session($node) } 1, 2;

	$_->query_safe(q{SELECT next_id(5, 'used')}) foreach @sessions;
	return @sessions;
}

# A is held while it puts its value on the page.
SKIP:
{
	my ($a, $b) = two_sessions();
	my ($smaller, $larger) = map { id_after($_, 8191) } 20, 30;
	my $gdb = send_and_hold($a, advance($smaller), 'XLogInsert') or skip 'gdb cannot hold a session', 2;
	my $waits = 'SELECT count(*) FROM pg_stat_activity WHERE ' . WAITS_FOR_PAGE . " AND pid = $b->{backend}";

	send_sql($b, advance($larger));
	session_prints($b, qr/./, sub { $node->sql($waits) });
	is($b->{stdout}, '', 'a session waits while another one advances the same sequence');
	let_go($gdb);
	session_prints($_, qr/\n/) or die 'a session did not go on' foreach $a, $b;
	cmp_ok($node->sql(q{SELECT next_id(0, 'used')}), '>', $larger,
		'of two sessions that advance a sequence at once, the one with the smaller ID does not set it back');
}

# A's record is not flushed, as A is held where it would do that.  B finds the sequence
# far enough ahead.
foreach my $case (
	[ 'advanced it', \&advance ],
	[ 'taken IDs', sub { q{SELECT max(id) FROM next_ids(0, 1024, 'used') id} } ])
{
	my ($what, $sql_of) = @$case;
	my ($a, $b) = two_sessions();

	# The record of setval() covers its value, and nothing beyond it.
	$node->sql(q{
		SELECT setval('used', last_value + 5000) FROM used;
		CREATE TABLE flushed ();
		DROP TABLE flushed});
  SKIP:
	{
		my $gdb = send_and_hold($a, $sql_of->(id_after(30, 5)), 'XLogFlush') or skip 'gdb cannot hold a session', 2;
		# A stays there without gdb, which would keep the server from being killed.  The
		# WAL writer must not flush the record either.
		kill 'STOP', $a->{backend},
		  $node->sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'});
		let_go($gdb);
		ok(wait_for(sub { `ps -o stat= -p $a->{backend}` =~ /^T/ }),
			"a session that has $what is held where it would flush its record");

		# The last ID of the last millisecond whose values A has used up
		$id = $node->sql(q{SELECT ((last_value + 1) / 1024 - 1 << 23) | (8191 << 10) | 1023 FROM used});
		$b->query_safe(advance($id));
		larger_after_crash($id, "by a session when another had $what a moment ago");
	}
}

done_testing();
