# The page of a sequence has a note of a record that does not cover its values: a copy
# brought the note along, an image of the page was logged after the record, or the record
# was lost.  The next ID writes a record of its own, so that none comes again after a crash.

use strict;
use warnings;
use File::Basename;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

# The last setting has a commit put a file that has no WAL on disk as it is.
my $node = server_ahead_of_clock('stale', NOBODY_FLUSHES . <<EOC);
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

# --- a page that is copied with its LSN ------------------------------------------

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
is($node->safe_psql('first', q{SELECT pg_relation_filepath('used')}), $file,
	'a copy of the copy has the original\'s file name');
is_safe('from a copy of a copy that has the file name of the original', 'first');

# A database goes to another tablespace, and comes back.
my $directory = PostgreSQL::Test::Utils::tempdir_short;
next_id($node, 'used', 'second') for 1 .. 2;
$file = $node->safe_psql('second', q{SELECT pg_relation_filepath('used')});
$node->safe_psql('template1', $_) foreach
  "CREATE TABLESPACE elsewhere LOCATION '$directory'",
  'ALTER DATABASE second SET TABLESPACE elsewhere',
  'ALTER DATABASE second SET TABLESPACE pg_default';
is($node->safe_psql('second', q{SELECT pg_relation_filepath('used')}), $file,
	'a database that came back has its old file names');
is_safe('after a database went to another tablespace and came back', 'second');

# --- an image of the page, as enabling checksums online logs --------------------------

# Replay of the image undoes what earlier records covered.  gdb has a backend log it.
my $next = q{SELECT next_id(5, 'used')};
SKIP:
{
	skip 'gdb is not installed', 2 unless gdb_is_installed();
	skip 'pg_buffercache is not installed', 2
	  unless $node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_buffercache'});
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_buffercache; CHECKPOINT');

	# A transaction keeps the page of the sequence pinned that it used last.
	my $session = $node->background_psql('postgres');
	$session->query_safe('BEGIN');
	$session->query_safe($next) for 1 .. 2;
	my $buffer = $node->safe_psql('postgres', q{
		SELECT bufferid FROM pg_buffercache
		WHERE relfilenode = pg_relation_filenode('used') AND relforknumber = 0
			AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())});
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $from = $node->lsn('insert');
	my ($out, $err) = run_command([ 'gdb', '-nx', '-batch', '-iex', 'set debuginfod enabled off', '-p', $pid,
			map { ('-ex', $_) } 'set var *(unsigned int *) &CritSectionCount = 1',
				"call ((void (*)(int, int)) LockBuffer)($buffer, 2)",
				"call ((void (*)(int)) MarkBufferDirty)($buffer)",
				"call ((unsigned long (*)(int, int)) log_newpage_buffer)($buffer, 0)",
				"call ((void (*)(int, int)) LockBuffer)($buffer, 0)",
				'set var *(unsigned int *) &CritSectionCount = 0' ]);
	skip 'gdb cannot attach to a server process', 2 if $err =~ /^(Could not attach|ptrace:)/m;
	my $to = $node->lsn('insert');

	my $last;
	$last = $session->query_safe($next) for 1 .. 3;
	like(wal_records($node, $from, $to), qr{ FPI .* blk 0 FPW}, 'an image of the page is logged');
	next_id_is_larger_after_crash($node, $last, 'one taken after an image of the page was logged',
		sessions => [$session]);
}

# --- lost WAL -------------------------------------------------------------------------

# The WAL after the last checkpoint is lost, and pg_resetwal begins new WAL before the
# place where the old one ended.
$node->append_conf('postgresql.conf', "shared_buffers = '128kB'\n");
$node->restart;
my $first = $node->safe_psql('postgres', 'CHECKPOINT; SELECT pg_walfile_name(pg_current_wal_lsn())');

sub use_up_segments
{
	$node->safe_psql('postgres', 'SELECT pg_logical_emit_message(false, 0::text, 0::text); SELECT pg_switch_wal()')
	  for 1 .. 3;
	return;
}

# Have the page written, but without a checkpoint, by reading others into the tiny
# cache.
use_up_segments();
my $path = file_of($node, 'used');
my $written = slurp_file($path);
next_id($node);
ok( wait_for(sub {
		$node->safe_psql('postgres', q{
			SELECT count((SELECT count(*) FROM pg_attribute WHERE attrelid = n)) FROM generate_series(1, 5000) n});
		return slurp_file($path) ne $written }),
	'the page is written');
my $lsn = $node->lsn('insert');
my $last = next_id($node);
is($node->lsn('insert'), $lsn, 'the page on disk has a note of the record that covers the last ID');
$node->stop('immediate');

my $wal = $node->data_dir . '/pg_wal';
unlink grep { -f && basename($_) ne $first } glob "$wal/*" or die "unlink: $!";
system_or_bail('pg_resetwal', '-f', '-D', $node->data_dir);
$node->start;
is($node->safe_psql('postgres', "SELECT pg_current_wal_lsn() < '$lsn'"), 't',
	'the new WAL begins before the end of the old (control)');

# What is lost is lost; the value on the page counts.
my $id = next_id($node);
cmp_ok($id, '>', 0, 'next_id() returns an ID after the WAL was lost');
use_up_segments();
is($node->safe_psql('postgres', "SELECT pg_current_wal_lsn() > '$lsn'"), 't',
	'the new WAL passes the end of the old (control)');
my $later = next_id($node);
cmp_ok($later, '>', $id, 'the next ID is larger');
next_id_is_larger_after_crash($node, $later, 'one taken when the new WAL had passed the end of the old');

my $online = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_proc WHERE proname = 'pg_enable_data_checksums'});
$node->stop;

SKIP:
{
	skip 'this version cannot enable checksums online', 2 unless $online;
	my $node = server_ahead_of_clock('checksums', NOBODY_FLUSHES, extra => ['--no-data-checksums']);

	$node->safe_psql('postgres', 'CHECKPOINT');
	my $session = $node->background_psql('postgres');
	$session->query_safe($next) for 1 .. 2;
	$node->safe_psql('postgres', 'SELECT pg_enable_data_checksums()');
	ok($node->poll_query_until('postgres', q{SELECT current_setting('data_checksums') = 'on'}),
		'checksums are enabled while IDs are made');
	my $last;
	$last = $session->query_safe($next) for 1 .. 3;
	next_id_is_larger_after_crash($node, $last, 'one taken after checksums were enabled', sessions => [$session]);
	$node->stop;
}
done_testing();
