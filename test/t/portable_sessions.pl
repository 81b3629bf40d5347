# Many sessions use the portable version at once, are cancelled or terminated at
# any moment, and the server crashes.

use LedgerTest;
use SnowflakeTest;

my $node = server_in_utc('portable', NOBODY_FLUSHES . "max_connections = 60\n");
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

# --- sessions that end ------------------------------------------------------

my $load = start_clients($ledger, $node->connstr('crowd'), '--max-lead', 1000, '--sessions', 12, '--bulk',
	'--sequences', 'next_id_seq,own');
ok(more_ids($ledger, 20_000), 'many sessions make IDs');
my $alter = 'BEGIN; ALTER SEQUENCE next_id_seq NO CYCLE; SELECT count(next_id(5)) FROM generate_series(1, 10); COMMIT';
is(join(', ', map { sqlstate_of($node, $alter, dbname => 'crowd') } 1 .. 5), join(', ', ('no error: 10') x 5),
	'transactions that alter and use a sequence do not deadlock');

# Most of them wait for the lock, some have it.
cmp_ok(strike(q{application_name = 'ledger'}, 0.05), '>', 50, 'many sessions are cancelled or terminated');
ok(more_ids($ledger, 20_000), 'the other sessions go on');
clients_end_without_error($load, 'the crowd');
my $report = no_client_received_a_bad_id('the crowd', $ledger);
# Those that rewrite the sequence have a lock_timeout.
no_client_received_an_error_except('57014|57P01|08006|55P03|stop', 'the crowd', $report);
like($report, qr/^snowflake_advance\(\) +[1-9]/m, 'the crowd advances sequences');
ok($node->poll_query_until('crowd', "SELECT ($locks) = 0"), 'cancelled and terminated sessions leave no lock');

# --- sessions that stay, as a pooler's do -----------------------------------

my @sessions = map { $node->background_psql('crowd', on_error_stop => 0) } 1 .. 4;
my $pids = join(',', map { $_->query_safe('SELECT pg_backend_pid()') } @sessions);
$_->{stdin} .= "SELECT count(next_id(5)) FROM generate_series(1, 3000);\n" x 150 foreach @sessions;
$_->{run}->pump_nb foreach @sessions;
cmp_ok(strike("pid IN ($pids)", 0), '>', 50, 'sessions that stay are cancelled');
ok($node->poll_query_until('postgres',
		"SELECT count(*) = 4 FROM pg_stat_activity WHERE pid IN ($pids) AND state = 'idle'"),
	'cancelled sessions become idle');
is($node->safe_psql('crowd', $locks), 0, 'cancelled sessions do not keep the lock');
$_->quit foreach @sessions;

# --- a crash ----------------------------------------------------------------

# Sequences are ahead of the clock, whose own progress would hide an ID that comes again.
new_portable_database($node, 'ahead', max_lead => 30 * 86_400_000);
$node->safe_psql('ahead', q{CREATE SEQUENCE plain; SELECT nextval('plain');} . setval_ahead('next_id_seq', '12 hours'));

# A session has used the sequence in an open transaction, whose WAL nobody
# flushes.  Another's ID is committed.  nextval() alone would repeat it.
sub committed_id_is_not_repeated
{
	my ($next, $what) = @_;
	$node->safe_psql('ahead', 'CHECKPOINT');
	my $open = $node->background_psql('ahead');
	my $inside = $open->query_safe("BEGIN; SELECT $next");
	my $committed = $node->safe_psql('ahead', "SELECT $next");
	cmp_ok($committed, '>', $inside, "$what is committed after one in an open transaction");
	crash_and_start($node, $open);
	return $node->safe_psql('ahead', "SELECT $next") > $committed;
}
ok(committed_id_is_not_repeated('next_id(5)', 'an ID'), 'after a crash, the next ID is larger than a committed one');
nextval_repeats(!committed_id_is_not_repeated(q{nextval('plain')}, 'a value of nextval()'),
	'after one in an open transaction');

my $id = $node->safe_psql('ahead', q{SELECT snowflake_id(now() + interval '23 hours', 5, 3)});
$node->safe_psql('ahead', "SET client_min_messages = error; SELECT snowflake_advance('next_id_seq', $id)");
crash_and_start($node);
cmp_ok(next_id($node, 'next_id_seq', 'ahead'), '>', $id, 'after a crash, the sequence is as far as it was advanced');

$node->stop;
done_testing();
