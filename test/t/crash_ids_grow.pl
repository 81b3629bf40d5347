# After a crash, the next ID is larger than every ID that somebody has received,
# whatever becomes of its transaction.

use SnowflakeTest;

my $node = server_ahead_of_clock('crash', NOBODY_FLUSHES . "max_prepared_transactions = 2\n");
my $next = q{SELECT next_id(5, 'used')};

# Session A writes the record that covers B's value in an open transaction, so no
# commit flushes it, and B has nothing to commit.  Both have used the file before,
# because each would otherwise write a record of its own.  Returns what they took.
sub take_without_flush
{
	my ($sql, $commit) = @_;
	my ($a, $b) = map { session($node) } 1, 2;

	$_->query_safe("SET synchronous_commit = $commit; $sql") foreach $a, $b;
	$node->sql('CHECKPOINT');
	my $inside = $a->query_safe("BEGIN; $sql");
	return ($inside, scalar $b->query_safe($sql));
}

foreach my $commit ('on', 'off')
{
	my ($inside, $outside) = take_without_flush($next, $commit);

	cmp_ok($outside, '>', $inside,
		"synchronous_commit = $commit: an ID is larger than one taken before in an open transaction");
	next_id_is_larger_after_crash($node, $outside,
		"one that needed no record of its own, with synchronous_commit = $commit");
}

# A background process may flush nextval()'s record, so there are three tries.
my $repeats = 0;
foreach (1 .. 3)
{
	my (undef, $value) = take_without_flush(q{SELECT nextval('plain')}, 'on');
	crash_and_start($node);
	$repeats ||= $node->sql(q{SELECT nextval('plain')}) <= $value;
}
nextval_repeats($repeats, 'its record was not flushed');

# Each case takes an ID in a session of its own.
my $id;
foreach my $case (
	[ 'one made of a value that setval() left to be taken', $next,
		q{SELECT setval('used', last_value + 100, false) FROM used}, $next ],
	[ 'one taken in turn with nextval() and setval()', q{SELECT nextval('used')}, $next,
		q{SELECT setval('used', last_value + 5000000) FROM used}, q{SELECT nextval('used')}, $next ],
	# Recovery starts at the checkpoint, and does not see an earlier record.
	[ 'one taken after a checkpoint', $next, 'CHECKPOINT', $next, $next ],
	[ 'one whose transaction rolled back to a savepoint',
		q{BEGIN; SAVEPOINT s; SELECT setval('used', last_value + 2000000) FROM used}, $next, 'ROLLBACK TO s; COMMIT' ],
	[ 'one of a prepared transaction',
		'CREATE TABLE kept (id bigint)', 'BEGIN', "INSERT INTO kept $next RETURNING id", q{PREPARE TRANSACTION 'p'} ])
{
	my ($what, @statements) = @$case;
	$id = last_result($node, @statements);
	next_id_is_larger_after_crash($node, $id, $what);
}
is($node->sql(q{COMMIT PREPARED 'p'; SELECT id FROM kept}), $id,
	'a transaction prepared before a crash commits the ID that it took');

# A batch of next_ids() must be covered to its end.  This sequence has no clock
# that could hide a loss.
$node->sql('CREATE SEQUENCE counter MAXVALUE 2147483647');
foreach my $batches (2, 3, 4, 7)
{
	my $last = last_result($node, (q{SELECT max(id) FROM next_ids(0, 700, 'counter', 'sequence:31') id}) x $batches);
	next_id_is_larger_after_crash($node, $last, "those of $batches batches of next_ids()",
		query => q{SELECT next_id(0, 'counter', 'sequence:31')});
}

# The first record of a sequence covers this many values, the last of which is used.
$node->sql('CREATE SEQUENCE first MAXVALUE 2147483647');
my $next_first = q{next_id(0, 'first', 'sequence:31')};
next_id_is_larger_after_crash($node, $node->sql("SELECT max($next_first) FROM generate_series(1, 1025)"),
	'the last one that the first record covers', query => "SELECT $next_first");

# The WAL covers no more values than the layout has.
last_result($node, q{SELECT setval('counter', 2147483640)}, q{SELECT next_id(0, 'counter', 'sequence:31')});
crash_and_start($node);
is($node->sql('SELECT last_value FROM counter'), 2147483647, 'after a crash near the end of a layout, its last value is used');

# A layout without a clock skips what the WAL covered, and no more.
$node->sql('CREATE SEQUENCE decimal MAXVALUE 92233720199999');
my $next_decimal = q{SELECT next_id(9, 'decimal', 'decimal')};
my $decimal = last_result($node, "SELECT max(id) FROM ($next_decimal AS id FROM generate_series(1, 5000)) t");
next_id_is_larger_after_crash($node, $decimal, 'one of the layout decimal', query => $next_decimal);
cmp_ok(($node->sql($next_decimal) - $decimal) / 10**10, '<=', 1026,
	'a crash skips no more than the 1,024 numbers that the WAL covered');

$node->sql("BEGIN; $next; PREPARE TRANSACTION 'p'");
crash_and_start($node);
fails_with($node, q{SET lock_timeout = '100ms'; ALTER SEQUENCE used RESTART}, qr/^55P03 /,
	'a transaction prepared before a crash keeps others from restarting its sequence');
like(next_id($node), qr/^\d+$/, 'next_id() uses the sequence of a prepared transaction');
$node->sql(q{ROLLBACK PREPARED 'p'});

# The promise ends here: the rollback of a rewrite brings the old file back.
my ($inside, $outside) = split /\n/, $node->sql(qq{
	BEGIN;
	SAVEPOINT s;
	ALTER SEQUENCE used SET UNLOGGED;
	ALTER SEQUENCE used SET LOGGED;
	$next;
	ROLLBACK TO s;
	$next;
	COMMIT});
is($outside, $inside,
	'an ID is repeated after a rewrite of the sequence was rolled back to a savepoint (as documented)');

# The gap that a crash leaves is what was logged.  The clock would hide a value
# that was lost, so compare the values of the sequence.
$node->append_conf('postgresql.conf', "snowflake.max_lead = 0\n");
$node->reload;
$node->sql('CREATE SEQUENCE with_clock MAXVALUE 1125899906841599');
my $last = next_id($node, 'with_clock');
crash_and_start($node);
my $value = $node->sql('SELECT last_value FROM with_clock');
is($value, value_of($last) + 1000 * 1024, 'after a crash, the sequence is a second ahead of the last ID');
cmp_ok(value_of(next_id($node, 'with_clock')), '>', $value,
	'after a crash, the next ID waits for the clock if max_lead is 0');

$node->stop;
done_testing();
