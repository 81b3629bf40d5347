# After a crash, the next ID is larger than every ID that somebody has received.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_ahead_of_clock('crash', NOBODY_FLUSHES . "max_prepared_transactions = 2\n");
my $next = q{SELECT next_id(5, 'used')};

# Session A writes the record that covers B's ID in an open transaction, so no
# commit flushes it, and B has nothing to commit.  Both have used the file
# before, because each would otherwise write a record of its own.
foreach my $commit ('on', 'off')
{
	my ($a, $b) = map { $node->background_psql('postgres') } 1, 2;

	$_->query_safe("SET synchronous_commit = $commit; $next") for $a, $b;
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $inside = $a->query_safe("BEGIN; $next");
	my $outside = $b->query_safe($next);
	cmp_ok($outside, '>', $inside,
		"synchronous_commit = $commit: an ID is larger than one taken before in an open transaction");
	next_id_is_larger_after_crash($node, $outside,
		"one that needed no record of its own, with synchronous_commit = $commit", sessions => [ $a, $b ]);
}

# A batch of next_ids() must be covered to its end.  This sequence has no clock
# that could hide a loss.
$node->safe_psql('postgres', 'CREATE SEQUENCE counter MAXVALUE 2147483647');
foreach my $batches (2, 3, 4, 7)
{
	my $last = last_result($node, (q{SELECT max(id) FROM next_ids(0, 700, 'counter', 'sequence:31') id}) x $batches);
	next_id_is_larger_after_crash($node, $last, "those of $batches batches of next_ids()",
		query => q{SELECT next_id(0, 'counter', 'sequence:31')});
}

# setval() logs a value that is yet to be taken, and nothing beyond it.
next_id_is_larger_after_crash($node,
	last_result($node, $next, q{SELECT setval('used', last_value + 100, false) FROM used}, $next),
	'one made of a value that setval() left to be taken');
next_id_is_larger_after_crash($node,
	last_result($node, q{SELECT nextval('used')}, $next, q{SELECT setval('used', last_value + 5000000) FROM used},
		q{SELECT nextval('used')}, $next),
	'one taken in turn with nextval() and setval()');

# Recovery starts at the checkpoint, and does not see an earlier record.
{
	my $session = $node->background_psql('postgres');

	$session->query_safe($next);
	$node->safe_psql('postgres', 'CHECKPOINT');
	$session->query_safe($next);
	next_id_is_larger_after_crash($node, $session->query_safe($next), 'one taken after a checkpoint',
		sessions => [$session]);
}

my $prepared = $node->safe_psql('postgres', qq{
	CREATE TABLE kept (id bigint);
	BEGIN;
	INSERT INTO kept $next RETURNING id;
	PREPARE TRANSACTION 'p'});
next_id_is_larger_after_crash($node, $prepared, 'one of a prepared transaction');
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
is($node->safe_psql('postgres', 'SELECT id FROM kept'), $prepared,
	'a transaction prepared before a crash commits the ID that it took');

# IDs of transactions that roll back count as well.
my $load = PostgreSQL::Test::Utils::tempdir . '/load.sql';
write_file($load, "BEGIN;\n$next AS id \\gset\nROLLBACK;\n");
foreach my $round (1 .. 3)
{
	my $log = '';
	my $busy = IPC::Run::start([ 'pgbench', '-n', '-c', '8', '-T', '30', '-f', $load, '-d', $node->connstr('postgres') ],
		'>', \$log, '2>', \$log);
	my $session = $node->background_psql('postgres');

	$session->query_safe($next) for 2 .. 300;
	next_id_is_larger_after_crash($node, $session->query_safe($next),
		"one taken beside eight busy sessions, round $round", sessions => [$session]);
	$busy->finish;
}

# The gap that a crash leaves is what was logged.  The clock would hide a value
# that was lost, so compare the values of the sequence.
$node->append_conf('postgresql.conf', "snowflake.max_lead = 0\n");
$node->reload;
$node->safe_psql('postgres', 'CREATE SEQUENCE with_clock MAXVALUE 1125899906841599');
my $last = next_id($node, 'with_clock');
crash_and_start($node);
my $value = $node->safe_psql('postgres', 'SELECT last_value FROM with_clock');
is($value, value_of($last) + 1000 * 1024, 'after a crash, the sequence is a second ahead of the last ID');
cmp_ok(value_of(next_id($node, 'with_clock')), '>', $value,
	'after a crash, the next ID waits for the clock if max_lead is 0');

$node->stop;
done_testing();
