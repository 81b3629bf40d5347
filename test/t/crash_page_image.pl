# An image of a sequence's page is logged, as enabling checksums online would do.  Its
# replay undoes what earlier records covered, so the next ID writes a record, although
# the page still has the note of an earlier one.
#
# gdb has a backend log the image.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

plan skip_all => 'gdb is not installed' unless gdb_is_installed();

my $node = server_ahead_of_clock('image', NOBODY_FLUSHES);
plan skip_all => 'pg_buffercache is not installed'
  unless $node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_buffercache'});
$node->safe_psql('postgres', 'CREATE EXTENSION pg_buffercache; CHECKPOINT');

# A transaction keeps the page of the sequence pinned that it used last.
my $session = $node->background_psql('postgres');
my $next = q{SELECT next_id(5, 'used')};
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
if ($err =~ /^(Could not attach|ptrace:)/m)
{
	$node->stop('immediate');
	plan skip_all => 'gdb cannot attach to a server process';
}
my $to = $node->lsn('insert');

my $last;
$last = $session->query_safe($next) for 1 .. 3;
like(wal_records($node, $from, $to), qr{ FPI .* blk 0 FPW}, 'an image of the page is logged');
next_id_is_larger_after_crash($node, $last, 'one taken after an image of the page was logged', sessions => [$session]);

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
	ok($node->poll_query_until('postgres', q{SELECT current_setting('data_checksums') = 'on'}), 'checksums are enabled while IDs are made');
	$last = $session->query_safe($next) for 1 .. 3;
	next_id_is_larger_after_crash($node, $last, 'one taken after checksums were enabled', sessions => [$session]);
	$node->stop;
}
done_testing();
