# The page of a sequence has a note of a record that does not cover its values: a copy
# brought the note along, or the record was lost.  sessions_share_records.pl has a page
# that owes its LSN to another record.  The next ID writes a record of its own, so that none comes again after a crash.

use File::Basename;
use SnowflakeTest;

# The last setting has a commit put a file that has no WAL on disk as it is.
my $node = server_ahead_of_clock('stale', NOBODY_FLUSHES . <<EOC);
wal_level = minimal
max_wal_senders = 0
wal_skip_threshold = 0
EOC

# Take IDs, each in a session of its own, and crash.
sub is_safe
{
	my ($what, $database) = @_;
	my $last;

	$last = next_id($node, 'used', $database) for 1 .. 3;
	next_id_is_larger_after_crash($node, $last, "one taken $what", database => $database);
}

# --- a page that is copied with its LSN ------------------------------------------

# The LSN on the page in a file
sub page_lsn { my ($file) = @_; return unpack 'H*', substr(slurp_file($file), 0, 8) }

# Use a sequence, and then run commands for databases.
sub use_and_run
{
	my ($database, @commands) = @_;

	next_id($node, 'used', $database) for 1 .. 2;
	$node->safe_psql('template1', $_) foreach @commands;
}

# With wal_level = minimal, CREATE DATABASE copies pages without WAL, and without a
# checkpoint.
use_and_run('postgres', 'CREATE DATABASE copy TEMPLATE postgres STRATEGY wal_log');
is_safe('from a copy that was made without WAL', 'copy');
use_and_run('postgres', 'CREATE DATABASE compared TEMPLATE postgres STRATEGY wal_log', 'CHECKPOINT');
is(page_lsn(file_of($node, 'used', 'compared')), page_lsn(file_of($node, 'used')),
	'a copy has the LSN of the original (control)');

# A copy of the copy gets the OID of the original, and so the names of its files.
# Without the checkpoint, recovery would drop the copy's files with the original's.
use_and_run('postgres', 'CREATE DATABASE first TEMPLATE postgres OID 99999 STRATEGY wal_log');
my $file = file_of($node, 'used', 'first');
use_and_run('first',
	'CREATE DATABASE second TEMPLATE first STRATEGY wal_log',
	'DROP DATABASE first',
	'CHECKPOINT',
	'CREATE DATABASE first TEMPLATE second OID 99999 STRATEGY wal_log');
is(file_of($node, 'used', 'first'), $file, 'a copy of the copy has the original\'s file name');
is_safe('from a copy of a copy that has the file name of the original', 'first');

# A database goes to another tablespace, and comes back.
my $directory = PostgreSQL::Test::Utils::tempdir_short;
$file = file_of($node, 'used', 'second');
use_and_run('second',
	"CREATE TABLESPACE elsewhere LOCATION '$directory'",
	'ALTER DATABASE second SET TABLESPACE elsewhere',
	'ALTER DATABASE second SET TABLESPACE pg_default');
is(file_of($node, 'used', 'second'), $file, 'a database that came back has its old file names');
is_safe('after a database went to another tablespace and came back', 'second');

# --- lost WAL -------------------------------------------------------------------------

# The WAL after the last checkpoint is lost, and pg_resetwal begins new WAL before the
# place where the old one ended.
$node->append_conf('postgresql.conf', "shared_buffers = '128kB'\n");
$node->restart;
my $first = $node->sql('CHECKPOINT; SELECT pg_walfile_name(pg_current_wal_lsn())');

sub use_up_segments
{
	$node->sql('SELECT pg_logical_emit_message(false, 0::text, 0::text); SELECT pg_switch_wal()')
	  for 1 .. 3;
}

use_up_segments();
next_id($node);
evict($node, 'used');
my $lsn = $node->lsn('insert');
my $last = next_id($node);
is($node->lsn('insert'), $lsn, 'the page on disk has a note of the record that covers the last ID');
$node->stop('immediate');

unlink grep { -f && basename($_) ne $first } glob $node->data_dir . '/pg_wal/*' or die "unlink: $!";
system_or_bail('pg_resetwal', '-f', '-D', $node->data_dir);
$node->start;
is($node->sql("SELECT pg_current_wal_lsn() < '$lsn'"), 't', 'the new WAL begins before the end of the old (control)');

# What is lost is lost; the value on the page counts.
my $id = next_id($node);
use_up_segments();
is($node->sql("SELECT pg_current_wal_lsn() > '$lsn'"), 't', 'the new WAL passes the end of the old (control)');
my $later = next_id($node);
cmp_ok($later, '>', $id, 'the next ID is larger');
next_id_is_larger_after_crash($node, $later, 'one taken when the new WAL had passed the end of the old');

$node->stop;
done_testing();
