# After a crash, the next ID is larger than the last one of a sequence's new
# file, whose WAL does not cover the values that its page counts as logged.
# nextval() repeats values in such crashes.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_ahead_of_clock('new_file', NOBODY_FLUSHES);
my $next = q{SELECT next_id(5, 'used')};

# Take so many values from a plain sequence with nextval(), each in a session of
# its own, and return the last one.
sub nextvals
{
	my ($count, $database) = @_;
	my $last;

	$last = $node->safe_psql($database // 'postgres', q{SELECT nextval('plain')}) for 1 .. $count;
	return $last;
}

# The file of SET LOGGED has the count of the old file.
my @rewrite = ('ALTER SEQUENCE used SET UNLOGGED', 'ALTER SEQUENCE used SET LOGGED');
$node->safe_psql('postgres', 'CHECKPOINT');
next_id($node);
last_result($node, @rewrite);
next_id($node) for 1 .. 4;
nextvals(4);
last_result($node, 'ALTER SEQUENCE plain SET UNLOGGED', 'ALTER SEQUENCE plain SET LOGGED');
my $value = nextvals(4);
next_id_is_larger_after_crash($node, next_id($node), 'one taken after SET UNLOGGED and SET LOGGED');
nextval_repeats(nextvals(1) <= $value, 'the sequence was SET UNLOGGED and SET LOGGED');
next_id_is_larger_after_crash($node, last_result($node, $next, @rewrite, ($next) x 3),
	'one taken after SET UNLOGGED and SET LOGGED by a session that has logged the old file');

# So has a copy made by CREATE DATABASE, whether WAL holds the copy or not.
foreach my $strategy ('wal_log', 'file_copy')
{
	my $copy = "copy_$strategy";

	next_id($node);
	nextvals(4);
	$node->safe_psql('template1', "CREATE DATABASE $copy TEMPLATE postgres STRATEGY $strategy");
	next_id($node, 'used', $copy) for 1 .. 2;
	$value = nextvals(4, $copy);
	next_id_is_larger_after_crash($node, next_id($node, 'used', $copy),
		"one taken in a copy made with STRATEGY $strategy", database => $copy);
	# STRATEGY file_copy ends with a checkpoint, after which nextval() writes a record, too.
	nextval_repeats(nextvals(1, $copy) <= $value, 'the database is a copy of a template') if $strategy eq 'wal_log';
}

# With wal_level = minimal, a file made in a transaction has no WAL before the
# commit.
$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = 0\n");
$node->restart;

# Make a sequence in a transaction, and use it.
sub make
{
	my ($sequence, @uses) = @_;
	return ('BEGIN', "CREATE SEQUENCE $sequence MAXVALUE 1125899906841599",
		setval_ahead($sequence, '1 day'), @uses, 'COMMIT');
}

# The session that made the sequences goes on with them.  The commit writes a small
# file's page to WAL, and a larger one's to disk.
foreach my $threshold ('0', '1GB')
{
	my ($young, $plain) = ("young_$threshold", "plain_$threshold");
	my $next_id = "SELECT next_id(5, '$young')";
	my $nextval = "SELECT nextval('$plain')";
	my @taken = split /\n/, $node->safe_psql('postgres', join ";\n", "SET wal_skip_threshold = '$threshold'",
		make($young, "CREATE SEQUENCE $plain", ($next_id, $nextval) x 2), ($next_id, $nextval) x 3);

	next_id_is_larger_after_crash($node, $taken[-2],
		"one taken by the session that made the sequence with wal_level = minimal and wal_skip_threshold = $threshold",
		sequence => $young);
	nextval_repeats($node->safe_psql('postgres', $nextval) <= $taken[-1],
		'the sequence was made with wal_level = minimal')
	  if $threshold eq '1GB';
}

last_result($node, make('younger', q{SELECT count(next_id(5, 'younger')) FROM generate_series(1, 10)}));
next_id_is_larger_after_crash($node, next_id($node, 'younger'),
	'one taken by another session than made the sequence with wal_level = minimal', sequence => 'younger');

my $younger = q{SELECT next_id(5, 'younger')};
next_id_is_larger_after_crash($node,
	last_result($node, 'BEGIN', 'ALTER SEQUENCE younger SET UNLOGGED', 'ALTER SEQUENCE younger SET LOGGED',
		($younger) x 2, 'COMMIT', $younger),
	'one taken from a file made in the transaction with wal_level = minimal', sequence => 'younger');

# The commit logs an image of a small file's page.  nextval() must not find a
# count in it, neither one of next_id() nor one of an earlier nextval().
my $nextval = q{SELECT nextval('youngest')};
my $last = last_result($node, q{SET wal_skip_threshold = '2MB'},
	make('youngest', $nextval, q{SELECT count(next_id(5, 'youngest')) FROM generate_series(1, 10)}),
	($nextval) x 2);
crash_and_start($node);
cmp_ok($node->safe_psql('postgres', $nextval), '>', $last,
	'after a crash, nextval() is larger than one of a sequence made with wal_level = minimal and used by next_id()');

$node->stop;
done_testing();
