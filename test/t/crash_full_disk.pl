# No ID comes twice from a server that runs out of room for WAL: its processes may
# not write files larger than half a segment.

use SnowflakeTest;

plan skip_all => 'prlimit is not installed'
  unless grep { -x "$_/prlimit" } split /:/, $ENV{PATH};

my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = server_ahead_of_clock('full', NOBODY_FLUSHES . "restart_after_crash = off\nlog_statement = none\n",
	extra => ['--wal-segsize=1']);

# Each ID needs a record of its own.  Two calls of setval() at the same time could
# set the sequence back.
write_file("$dir/ids.sql", <<'EOS' x 30000);
BEGIN;
SELECT pg_advisory_xact_lock(1) \g /dev/null
SELECT setval('used', last_value + 1100000) FROM used \g /dev/null
SELECT next_id(5, 'used');
ROLLBACK;
EOS
write_file("$dir/fill.sql", "SELECT pg_logical_emit_message(false, 'x', repeat('x', 500));\n" x 50000);
my %script = (1 => 'ids', 2 => 'ids', 3 => 'ids', 4 => 'fill');
my @sessions = map {
	IPC::Run::start(
		[ 'psql', '-XAtq', '-f', "$dir/$script{$_}.sql", '-o', "$dir/$_", '-d', $node->connstr('postgres') ],
		'2>', '/dev/null')
} keys %script;
wait_for(sub { !grep { !-s "$dir/$_" } keys %script }) or die 'a session does not begin';

my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
system('prlimit', '--fsize=524288:', '--pid', $_) foreach $postmaster, split ' ', `ps -o pid= --ppid $postmaster`;
ends($_, 'psql on a full disk') foreach @sessions;
ok(wait_for(sub { !kill 0, $postmaster }), 'a server without room for WAL stops');
$node->{_pid} = undef;
like(slurp_file($node->logfile), qr/PANIC:  could not write to .*: File too large/,
	'a server without room for WAL says why it stops');

$node->start;
my @ids = sort { $a <=> $b } map { slurp_file("$dir/$_") =~ /^(\d+)$/mg } 1 .. 3;
my %seen = map { $_ => 1 } @ids;
is(scalar keys %seen, scalar @ids, 'no ID was received twice from a server that ran out of room for WAL');
cmp_ok(next_id($node), '>', $ids[-1], 'with room for WAL again, the next ID is larger than all that were received');

done_testing();
