# Many sessions use the portable version at once, and are cancelled or terminated
# at any moment.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use LedgerTest;
use PortableTest;
use SnowflakeTest;

my $node = server_in_utc('portable', "max_connections = 60\n");
my $ledger = PostgreSQL::Test::Utils::tempdir() . '/ledger';
my $locks = q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'};
new_portable_database($node, 'crowd');
$node->safe_psql('crowd', 'CREATE SEQUENCE own MAXVALUE 1125899906841599;' . sql_for_clients());

# For a few seconds, cancel sessions at random moments, some of them twice, and
# terminate some.  Returns how often.
sub strike
{
	my ($whom, $terminated) = @_;

	return $node->safe_psql('postgres', qq{
		CREATE TEMPORARY TABLE struck AS SELECT 0 AS times;
		DO \$\$ BEGIN
			FOR i IN 1 .. 400 LOOP
				PERFORM pg_stat_clear_snapshot();
				WITH victims AS MATERIALIZED (
					SELECT pid FROM pg_stat_activity WHERE $whom AND state = 'active' ORDER BY random() LIMIT 3)
				UPDATE struck SET times = times + (
					SELECT count(pg_cancel_backend(pid)) + count(CASE
						WHEN random() < 0.5 THEN pg_cancel_backend(pid)
						WHEN random() < $terminated THEN pg_terminate_backend(pid) END) FROM victims);
				PERFORM pg_sleep(random() * 0.01);
			END LOOP;
		END \$\$;
		SELECT times FROM struck});
}

# --- sessions that end ----------------------------------------------------

my $load = start_clients($ledger, $node->connstr('crowd'), '--max-lead', 1000, '--sessions', 12,
	'--sequences', 'next_id_seq,own');
ok(more_ids($ledger, 20_000), 'many sessions make IDs');
foreach (1 .. 5)
{
	is(sqlstate_of($node, 'BEGIN; ALTER SEQUENCE next_id_seq NO CYCLE; SELECT count(next_id(5)) FROM generate_series(1, 10); COMMIT',
			dbname => 'crowd'), 'no error: 10', 'a transaction that alters and uses a sequence does not deadlock') or last;
}

# Most of them wait for the lock, some have it.
cmp_ok(strike(q{application_name = 'ledger'}, 0.05), '>', 50, 'many sessions are cancelled or terminated');
ok(more_ids($ledger, 20_000), 'the other sessions go on');
clients_end_without_error($load, 'the crowd');
no_client_received_an_error_except('57014|57P01|08006|stop', 'the crowd',
	no_client_received_a_bad_id('the crowd', $ledger));
ok($node->poll_query_until('crowd', "SELECT ($locks) = 0"), 'cancelled and terminated sessions leave no lock');

# --- sessions that stay, as a pooler's do ---------------------------------

my @sessions = map { $node->background_psql('crowd', on_error_stop => 0) } 1 .. 4;
my $pids = join(',', map { $_->query_safe('SELECT pg_backend_pid()') } @sessions);
$_->{stdin} .= "SELECT count(next_id(5)) FROM generate_series(1, 3000);\n" x 150 foreach @sessions;
$_->{run}->pump_nb foreach @sessions;
cmp_ok(strike("pid IN ($pids)", 0), '>', 50, 'sessions that stay are cancelled');
ok($node->poll_query_until('postgres',
		"SELECT count(*) = 4 FROM pg_stat_activity WHERE pid IN ($pids) AND state = 'idle'"), 'cancelled sessions become idle');
is($node->safe_psql('crowd', $locks), 0, 'cancelled sessions do not keep the lock');
$_->quit foreach @sessions;

# --- sessions that advance the sequence -----------------------------------

# It is ahead of the clock, which would hide that it went back.
$node->safe_psql('crowd', q{ALTER DATABASE crowd SET snowflake.max_lead = '1d';
	CREATE SEQUENCE advanced MAXVALUE 1125899906841599;} . setval_ahead('advanced', '12 hours'));
$load = start_clients("$ledger-advanced", $node->connstr('crowd'), '--max-lead', 86_400_000, '--sessions', 8,
	'--sequences', 'advanced');
ok(more_ids("$ledger-advanced", 5_000), 'many sessions make IDs from a sequence that is ahead');
my @advancing = map { $node->background_psql('crowd', on_error_stop => 0) } 1 .. 3;
send_sql($_, q{DO $$
	DECLARE
		id bigint;
	BEGIN
		FOR i IN 1 .. 2000 LOOP
			id := next_id(8191, 'advanced');
			PERFORM snowflake_advance('advanced', id);
			IF next_id(0, 'advanced') < id THEN
				RAISE 'a later ID is smaller';
			END IF;
			COMMIT;
		END LOOP;
		RAISE NOTICE 'advanced';
	END $$}) foreach @advancing;
ok(session_prints($_, qr/NOTICE:  advanced|ERROR:/) && $_->{stderr} !~ /ERROR:/, 'every later ID is larger than the one to which the sequence was advanced, whatever its shard')
  foreach @advancing;
$_->quit foreach @advancing;
ok(more_ids("$ledger-advanced", 5_000), 'the other sessions make IDs while the sequence is advanced');
clients_end_without_error($load, 'a sequence that is advanced');
no_client_received_an_error_except('stop', 'a sequence that is advanced',
	no_client_received_a_bad_id('a sequence that is advanced', "$ledger-advanced"));

$node->stop;
done_testing();
