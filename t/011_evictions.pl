# A tiny cache, from which the sequence's page is evicted again and again amid
# checkpoints and crashes.

use strict;
use warnings;
use File::Spec;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $ledger = ledger_program();
my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
my $node = server_ahead_of_clock('tiny', <<EOC);
autovacuum = off
checkpoint_timeout = 1h
shared_buffers = 128kB
bgwriter_delay = 10ms
log_statement = none
EOC
$node->safe_psql('postgres', `$ledger init`);
append_to_file("$dir/evict.sql", "SELECT FROM pg_attribute WHERE attrelid = (random() * 5000)::int;\n");
append_to_file("$dir/checkpoint.sql", "\\sleep 50 ms\nCHECKPOINT;\n");

my $clients = IPC::Run::start([
	$ledger, 'run', '--connection', $node->connstr('postgres'), '--sequences', 'used',
	'--quiet', '--max-lead', 30 * 86_400_000, "$dir/ledger" ]);
foreach my $round (1 .. 3)
{
	my $others = IPC::Run::start(
		[ 'pgbench', '-n', '-c', 3, '-T', 3600, '-f', "$dir/evict.sql\@20", '-f', "$dir/checkpoint.sql",
			$node->connstr('postgres') ],
		'>', \my $out, '2>', \my $err);
	ok(more_ids("$dir/ledger", 1000), "clients receive 1,000 IDs amid evictions and checkpoints before crash $round");
	ok( $node->poll_query_until('postgres', q{SELECT blks_read > 10 FROM pg_statio_all_sequences WHERE relname = 'used'}),
		"the sequence's page is evicted and read again before crash $round");
	crash($node);
	$others->finish;
	$node->start;
}
$clients->signal('TERM');
ok($clients->finish, 'the clients end without an error');
my ($report) = run_command([ $ledger, 'check', "$dir/ledger" ]);
note($report);
like($report, qr/^$_ +0$/m, "the ledger finds nothing amid evictions, checkpoints and crashes: $_")
  foreach 'duplicates', 'not growing within a call', 'out of order in time';

$node->stop;
done_testing();
