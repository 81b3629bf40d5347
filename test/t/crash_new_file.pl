# After a crash, the next ID is larger than the last one of a sequence's new file, whose
# WAL does not cover the values that its page counts as logged.  nextval() repeats values
# in such crashes.  The file may even have the number that an earlier one of the sequence
# had, as can happen when the server has used up the numbers and begins again.

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
$node->sql('CHECKPOINT');
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

# --- a file with the number of an earlier one --------------------------------

# Remove dropped files, and have the server give this number to the next file.  Returns
# whether gdb could do that.
sub begin_again_at
{
	my ($number) = @_;
	my $session = session($node);

	# A checkpoint removes the files that were dropped before it began.
	$session->query_safe('CHECKPOINT') for 1 .. 2;
	# The counter is the first member of a structure, which 17 renamed.
	my $set = gdb_runs($session, map { "set var *(unsigned int *) *(char **) &$_ = $number" }
		  'ShmemVariableCache', 'TransamVariables');
	$session->quit;
	return $set;
}

my $file_number = q{SELECT pg_relation_filenode('used')};
my $alter = 'ALTER SEQUENCE used AS bigint';

# A session must not take its record of the earlier file for one of the file that has the
# earlier one's number now.
sub is_safe
{
	my ($what, $user, $number_now, $number) = @_;
	my $last;

	is($number_now, $number, "$what gives a sequence a file with the number of an earlier one");
	$last = $user->query_safe($next) for 1 .. 5;
	$user->query('COMMIT');
	next_id_is_larger_after_crash($node, $last, "one taken from the file that $what made");
}

SKIP: foreach my $wal_level ('replica', 'minimal')
{
	$node->append_conf('postgresql.conf', "wal_level = $wal_level\n");
	$node->restart;
	foreach my $case (
		[ 'SET LOGGED', @rewrite ],
		[ 'ALTER SEQUENCE', $alter, $alter ],
		# The server drops messages about changes that a session has not read when there
		# are thousands of later ones, and tells the session only that it missed some.
		[ 'ALTER SEQUENCE before many other changes', $alter, "$alter;" . q{
			SELECT format('CREATE TEMP TABLE many_%s ()', n) FROM generate_series(1, 1500) n \gexec} ])
	{
		my ($what, $other_file, $first_again) = @$case;
		my ($user, $owner) = map { session($node) } 1, 2;

		$user->query_safe($next) for 1 .. 5;
		my $number = $owner->query_safe($file_number);
		kill 'STOP', $user->{backend};
		$owner->query_safe($other_file);
		my $set = begin_again_at($number);
		$owner->query_safe($first_again);
		kill 'CONT', $user->{backend};
		skip 'gdb cannot attach to a session', 1 unless $set;
		is_safe("$what with wal_level = $wal_level", $user, $owner->query_safe($file_number), $number);
	}

	# The first file is that of a subtransaction that was rolled back.
	skip 'PostgreSQL asserts that no file number comes twice in a transaction', 2
	  if $wal_level eq 'minimal' && $node->sql('SHOW debug_assertions') eq 'on';
	my $user = session($node);
	$user->query_safe($next);
	$user->query_safe("BEGIN; SAVEPOINT s; $alter");
	my $number = $user->query_safe($file_number);
	$user->query_safe($next) for 1 .. 5;
	$user->query_safe('ROLLBACK TO s');
	begin_again_at($number);
	$user->query_safe($alter);
	is_safe("a subtransaction with wal_level = $wal_level", $user, $user->query_safe($file_number), $number);
}

# --- a file that is made in a transaction with wal_level = minimal ------------

# It has no WAL before the commit.
$node->append_conf('postgresql.conf', "wal_skip_threshold = 0\n");
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
	my @taken = split /\n/, $node->sql(join ";\n", "SET wal_skip_threshold = '$threshold'",
		make($young, "CREATE SEQUENCE $plain", ($next_id, $nextval) x 2), ($next_id, $nextval) x 3);

	next_id_is_larger_after_crash($node, $taken[-2],
		"one taken by the session that made the sequence with wal_skip_threshold = $threshold", sequence => $young);
	nextval_repeats($node->sql($nextval) <= $taken[-1], 'the sequence was made with wal_level = minimal')
	  if $threshold eq '1GB';
}

my $younger = q{SELECT next_id(5, 'younger')};
last_result($node, make('younger', q{SELECT count(next_id(5, 'younger')) FROM generate_series(1, 10)}));
next_id_is_larger_after_crash($node, next_id($node, 'younger'),
	'one taken by another session than made the sequence', sequence => 'younger');
next_id_is_larger_after_crash($node,
	last_result($node, 'BEGIN', 'ALTER SEQUENCE younger SET UNLOGGED', 'ALTER SEQUENCE younger SET LOGGED',
		($younger) x 2, 'COMMIT', $younger),
	'one taken from a file made in the transaction', sequence => 'younger');

# The commit logs an image of a small file's page.  nextval() must not find a
# count in it, neither one of next_id() nor one of an earlier nextval().
my $nextval = q{SELECT nextval('youngest')};
my $last = last_result($node, q{SET wal_skip_threshold = '2MB'},
	make('youngest', $nextval, q{SELECT count(next_id(5, 'youngest')) FROM generate_series(1, 10)}),
	($nextval) x 2);
crash_and_start($node);
cmp_ok($node->sql($nextval), '>', $last,
	'after a crash, nextval() is larger than one of a sequence that next_id() used in the transaction that made it');

$node->stop;
done_testing();
