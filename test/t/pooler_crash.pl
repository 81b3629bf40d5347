# The server is killed behind a pooler.  The ledger's clients connect again, and
# an idle client keeps its connection to the pooler.

use strict;
use warnings;
use File::Spec;
use PostgreSQL::Test::Utils;
use Test::More;
use LedgerTest;
use PgBouncer;
use SnowflakeTest;

plan skip_all => 'pgbouncer is not installed' unless defined pgbouncer_program();

my $received = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir) . '/ledger';
my $node = server_ahead_of_clock('server', "log_statement = none\n");
$node->safe_psql('postgres', sql_for_clients());
ahead_of_clock($node, 'next_id_seq', '1 day');
my $pooler = start_pgbouncer($node, { transaction => 'pool_mode=transaction' });

my $clients = start_clients($received, $pooler->connstr('transaction'), '--sessions', 12,
	'--sequences', 'used,next_id_seq', '--max-lead', 30 * 86_400_000);
my $idle = $pooler->background_psql('transaction');
my $id = $idle->query_safe(q{SELECT next_id(5, 'used')});
ok(more_ids($received, 5000), 'clients receive IDs through the pooler');
foreach my $round (1 .. 3)
{
	crash_and_start($node);
	ok(more_ids($received, 5000), "clients receive IDs through the same pooler after crash $round");
	my $after = $idle->query_safe(q{SELECT next_id(5, 'used')});
	cmp_ok($after, '>', $id, "an idle client receives a larger ID in its old connection after crash $round");
	$id = $after;
}
$idle->quit;
clients_end_without_error($clients, 'the pooler');
command_ok([ ledger_program(), 'check', $received ],
	'no client received an ID twice, out of order or of a wrong shard through the pooler');

$node->stop;
done_testing();
