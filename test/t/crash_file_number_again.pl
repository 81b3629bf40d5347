# A sequence's new file has the number that an earlier file of the sequence had, as
# can happen when the server has used up the numbers and begins again.
#
# ALTER SEQUENCE copies to the new file how many values count as covered by the
# WAL, but no WAL of the new file covers them.  A session must not take a record of
# the earlier file for one of the new file.  gdb sets the server's counter back.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

plan skip_all => 'gdb is not installed' unless gdb_is_installed();

my $node = server_ahead_of_clock('file_number', NOBODY_FLUSHES);
my $next = q{SELECT next_id(5, 'used')};

sub file_number
{
	my ($session) = @_;
	return $session->query_safe(q{SELECT pg_relation_filenode('used')});
}

# Remove dropped files, and have the server give this number to the next file.
sub begin_again_at
{
	my ($number) = @_;
	my $session = $node->background_psql('postgres');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');

	# A checkpoint removes the files that were dropped before it began.
	$session->query_safe('CHECKPOINT') for 1 .. 2;
	# The counter is the first member of a structure, which 17 renamed.
	my @counters = map { ('-ex', "set var *(unsigned int *) *(char **) &$_ = $number") }
	  'ShmemVariableCache', 'TransamVariables';
	my ($out, $err) = run_command(
		[ 'gdb', '-nx', '-batch', '-iex', 'set debuginfod enabled off', '-p', $pid, @counters ]);
	$session->quit;
	if ($err =~ /^(Could not attach|ptrace:)/m)
	{
		$node->stop('immediate');
		plan skip_all => 'gdb cannot attach to a server process';
	}
	return;
}

# Give the sequence another file, and then one with the number of the first, while
# a session that took IDs from the first is stopped.  Take IDs, and crash.
sub is_safe
{
	my ($what, $other_file, $first_again) = @_;
	my $user = $node->background_psql('postgres');
	my $owner = $node->background_psql('postgres');

	$user->query_safe($next) for 1 .. 5;
	my $number = file_number($owner);
	my $pid = $user->query_safe('SELECT pg_backend_pid()');
	kill 'STOP', $pid;
	$owner->query_safe($other_file);
	begin_again_at($number);
	$owner->query_safe($first_again);
	kill 'CONT', $pid;
	is(file_number($owner), $number, "$what gives a sequence a file with the number of an earlier one")
	  or return;
	my $last;
	$last = $user->query_safe($next) for 1 .. 5;
	next_id_is_larger_after_crash($node, $last, "one taken from the file that $what made",
		sessions => [ $user, $owner ]);
	return;
}

# The same within a transaction, where the first file is that of a subtransaction
# that was rolled back.
sub is_safe_in_transaction
{
	my $user = $node->background_psql('postgres');

	$user->query_safe($next);
	$user->query_safe('BEGIN; SAVEPOINT s; ALTER SEQUENCE used AS bigint');
	my $number = file_number($user);
	$user->query_safe($next) for 1 .. 5;
	$user->query_safe('ROLLBACK TO s');
	begin_again_at($number);
	$user->query_safe('ALTER SEQUENCE used AS bigint');
	is(file_number($user), $number, 'a file has the number of one whose making was rolled back');
	my $last;
	$last = $user->query_safe($next) for 1 .. 5;
	$user->query_safe('COMMIT');
	next_id_is_larger_after_crash($node, $last, 'one taken from a file with the number of one that was rolled back',
		sessions => [$user]);
	return;
}

foreach my $wal_level ('replica', 'minimal')
{
	$node->append_conf('postgresql.conf', "wal_level = $wal_level\n");
	$node->restart;
	note("wal_level = $wal_level");
	is_safe('SET LOGGED', 'ALTER SEQUENCE used SET UNLOGGED', 'ALTER SEQUENCE used SET LOGGED');
	is_safe('ALTER SEQUENCE', ('ALTER SEQUENCE used AS bigint') x 2);
	# The server drops messages about changes that a session has not read when there
	# are thousands of later ones, and tells the session only that it missed some.
	is_safe('ALTER SEQUENCE before many other changes', 'ALTER SEQUENCE used AS bigint',
		q{ALTER SEQUENCE used AS bigint;
			SELECT format('CREATE TEMP TABLE many_%s ()', n) FROM generate_series(1, 1500) n \gexec});
  SKIP:
	{
		skip 'PostgreSQL asserts that no file number comes twice in a transaction', 2
		  if $wal_level eq 'minimal' && $node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on';
		is_safe_in_transaction();
	}
}

$node->stop;
done_testing();
