# No ID comes twice from a server whose cache is tiny, so that the sequence's page is
# evicted again and again amid checkpoints and crashes.

use strict;
use warnings;
use File::Spec;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;
use LedgerTest;

my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
my $node = server_ahead_of_clock('tiny', <<EOC);
autovacuum = off
checkpoint_timeout = 1h
shared_buffers = 128kB
bgwriter_delay = 10ms
log_statement = none
EOC
$node->safe_psql('postgres', sql_for_clients());
append_to_file("$dir/evict.sql", "SELECT FROM pg_attribute WHERE attrelid = (random() * 5000)::int;\n");
append_to_file("$dir/checkpoint.sql", "\\sleep 50 ms\nCHECKPOINT;\n");

my $clients = start_clients("$dir/ledger", $node->connstr('postgres'), '--sequences', 'used',
	'--quiet', '--max-lead', 30 * 86_400_000);
foreach my $round (1 .. 3)
{
	my $others = IPC::Run::start(
		[ 'pgbench', '-n', '-c', 3, '-T', 3600, '-f', "$dir/evict.sql\@20", '-f', "$dir/checkpoint.sql",
			$node->connstr('postgres') ],
		'>', \my $out, '2>', \my $err);
	ok(more_ids("$dir/ledger", 1000), "clients receive 1,000 IDs amid evictions and checkpoints before crash $round");
	ok( $node->poll_query_until('postgres',
			q{SELECT blks_read > 10 FROM pg_statio_all_sequences WHERE relname = 'used'}),
		"the sequence's page is evicted and read again before crash $round");
	crash($node);
	$others->finish;
	$node->start;
}
clients_end_without_error($clients, 'a server with evictions');
no_client_received_a_bad_id('a server with evictions, checkpoints and crashes', "$dir/ledger");

$node->stop;
done_testing();
