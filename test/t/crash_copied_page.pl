# A page that is copied with its LSN brings along the count of covered values and the
# note of the record that covers them.  That record is of another file, or before the
# redo pointer, so the next ID writes one of its own.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

# The last setting has a commit put a file that has no WAL on disk as it is.
my $node = server_ahead_of_clock('copied', NOBODY_FLUSHES . <<EOC);
wal_level = minimal
max_wal_senders = 0
wal_skip_threshold = 0
EOC

# The LSN of the sequence's page, after all pages have been written
sub page_lsn
{
	my ($database) = @_;
	my $page;

	$node->safe_psql('template1', 'CHECKPOINT');
	$page = slurp_file($node->data_dir . '/' . $node->safe_psql($database, q{SELECT pg_relation_filepath('used')}));
	return unpack 'H*', substr($page, 0, 8);
}

# Take IDs, and crash.
sub is_safe
{
	my ($what, $database) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $last;

	$last = next_id($node, 'used', $database) for 1 .. 3;
	next_id_is_larger_after_crash($node, $last, "one taken $what", database => $database);
	return;
}

# With wal_level = minimal, CREATE DATABASE copies pages without WAL, and without a
# checkpoint.
my @copy = map { "CREATE DATABASE $_ STRATEGY wal_log" } 'copy TEMPLATE postgres', 'copied_again TEMPLATE copy';
next_id($node) for 1 .. 2;
$node->safe_psql('template1', $copy[0]);
is_safe('from a copy that was made without WAL', 'copy');
is_safe('from the original of the copy', 'postgres');
next_id($node, 'used', 'copy') for 1 .. 2;
$node->safe_psql('template1', $copy[1]);
is_safe('from a copy of a copy', 'copied_again');
next_id($node) for 1 .. 2;
$node->safe_psql('template1', 'CREATE DATABASE compared TEMPLATE postgres STRATEGY wal_log');
is(page_lsn('compared'), page_lsn('postgres'), 'a copy has the LSN of the original (control)');

# A copy of the copy gets the OID of the original, and so the names of its files.
# Without the checkpoint, recovery would drop the copy's files with the original's.
$node->safe_psql('template1', 'CREATE DATABASE first TEMPLATE postgres OID 99999 STRATEGY wal_log');
next_id($node, 'used', 'first') for 1 .. 2;
my $file = $node->safe_psql('first', q{SELECT pg_relation_filepath('used')});
$node->safe_psql('template1', $_) foreach
  'CREATE DATABASE second TEMPLATE first STRATEGY wal_log',
  'DROP DATABASE first',
  'CHECKPOINT',
  'CREATE DATABASE first TEMPLATE second OID 99999 STRATEGY wal_log';
is($node->safe_psql('first', q{SELECT pg_relation_filepath('used')}), $file, 'a copy of the copy has the original\'s file name');
is_safe('from a copy of a copy that has the file name of the original', 'first');

# A database goes to another tablespace, and comes back.
my $directory = PostgreSQL::Test::Utils::tempdir_short;
next_id($node, 'used', 'second') for 1 .. 2;
$file = $node->safe_psql('second', q{SELECT pg_relation_filepath('used')});
$node->safe_psql('template1', $_) foreach
  "CREATE TABLESPACE elsewhere LOCATION '$directory'",
  'ALTER DATABASE second SET TABLESPACE elsewhere',
  'ALTER DATABASE second SET TABLESPACE pg_default';
is($node->safe_psql('second', q{SELECT pg_relation_filepath('used')}), $file, 'a database that came back has its old file names');
is_safe('after a database went to another tablespace and came back', 'second');

$node->stop;
done_testing();
