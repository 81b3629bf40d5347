# The WAL after the last checkpoint is lost, and pg_resetwal begins new WAL before the
# place where the old one ended.  The note on the page is of a record that was lost, so
# the next ID writes a record, and later ones are larger after a crash.

use strict;
use warnings;
use File::Basename;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_ahead_of_clock('lost', NOBODY_FLUSHES . "shared_buffers = '128kB'\n");
my $first = $node->safe_psql('postgres', 'CHECKPOINT; SELECT pg_walfile_name(pg_current_wal_lsn())');

sub use_up_segments
{
	$node->safe_psql('postgres', 'SELECT pg_logical_emit_message(false, 0::text, 0::text); SELECT pg_switch_wal()') for 1 .. 3;
	return;
}

# Have the page written, but without a checkpoint, by reading others into the tiny
# cache.
use_up_segments();
my $file = file_of($node, 'used');
my $written = slurp_file($file);
next_id($node);
ok( wait_for(sub {
		$node->safe_psql('postgres', q{
			SELECT count((SELECT count(*) FROM pg_attribute WHERE attrelid = n)) FROM generate_series(1, 5000) n});
		return slurp_file($file) ne $written }),
	'the page is written');
my $lsn = $node->lsn('insert');
my $last = next_id($node);
is($node->lsn('insert'), $lsn, 'the page on disk has a note of the record that covers the last ID');
$node->stop('immediate');

my $wal = $node->data_dir . '/pg_wal';
unlink grep { -f && basename($_) ne $first } glob "$wal/*" or die "unlink: $!";
system_or_bail('pg_resetwal', '-f', '-D', $node->data_dir);
$node->start;
is($node->safe_psql('postgres', "SELECT pg_current_wal_lsn() < '$lsn'"), 't', 'the new WAL begins before the end of the old (control)');

# What is lost is lost; the value on the page counts.
my $next = next_id($node);
cmp_ok($next, '>', 0, 'next_id() returns an ID after the WAL was lost');
use_up_segments();
is($node->safe_psql('postgres', "SELECT pg_current_wal_lsn() > '$lsn'"), 't', 'the new WAL passes the end of the old (control)');
my $later = next_id($node);
cmp_ok($later, '>', $next, 'the next ID is larger');
next_id_is_larger_after_crash($node, $later, 'one taken when the new WAL had passed the end of the old');

$node->stop;
done_testing();
