# No ID comes twice from a server that runs out of room for WAL: its processes may
# not write files larger than half a segment.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

plan skip_all => 'prlimit is not installed'
  unless grep { -x "$_/prlimit" } split /:/, $ENV{PATH};

my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = server_ahead_of_clock('full', <<EOC, extra => ['--wal-segsize=1']);
autovacuum = off
checkpoint_timeout = 1h
log_statement = none
restart_after_crash = off
EOC

# Each ID needs a record of its own.  Two calls of setval() at the same time could
# set the sequence back.
append_to_file("$dir/ids.sql", <<'EOS' x 30000);
BEGIN;
SELECT pg_advisory_xact_lock(1) \g /dev/null
SELECT setval('used', last_value + 1100000) FROM used \g /dev/null
SELECT next_id(5, 'used');
ROLLBACK;
EOS
append_to_file("$dir/fill.sql", "SELECT pg_logical_emit_message(false, 'x', repeat('x', 500));\n" x 50000);
my %script = (ids1 => 'ids', ids2 => 'ids', ids3 => 'ids', filler => 'fill');
my @sessions = map {
	IPC::Run::start(
		[ 'psql', '-XAtq', '-f', "$dir/$script{$_}.sql", '-o', "$dir/$_", '-d', $node->connstr('postgres') ],
		'2>', \my $err)
} sort keys %script;
wait_for(sub { !grep { !-s "$dir/$_" } keys %script }) or die 'a session does not begin';

my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
foreach my $pid ($postmaster, split ' ', `ps -o pid= --ppid $postmaster`)
{
	system('prlimit', '--fsize=524288:', '--pid', $pid);
}
$_->finish foreach @sessions;
ok(wait_for(sub { !kill 0, $postmaster }), 'a server without room for WAL stops');
$node->{_pid} = undef;
like(slurp_file($node->logfile), qr/PANIC:  could not write to .*: File too large/,
	'a server without room for WAL says why it stops');

$node->start;
my @ids = sort { $a <=> $b } map { /^(\d+)$/mg } map { slurp_file("$dir/ids$_") } 1 .. 3;
note(scalar(@ids) . ' IDs');
my %seen = map { $_ => 1 } @ids;
is(scalar keys %seen, scalar @ids, 'no ID was received twice from a server that ran out of room for WAL');
cmp_ok(next_id($node), '>', $ids[-1], 'with room for WAL again, the next ID is larger than all that were received');

$node->stop;
done_testing();
