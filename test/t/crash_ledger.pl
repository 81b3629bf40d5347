# Clients note every ID that they receive in a ledger, and beyond which IDs they have
# advanced a sequence, while servers are killed, clocks stepped and standbys promoted.
# Sequences begin half a day ahead of the clock, which is stepped by less: its own progress
# would hide a generator that forgot a value.  lab/soak is the long form.

use File::Spec;
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC);
use SnowflakeTest;
use LedgerTest;
use StandbyTest;

my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
my @ten_days = ('--max-lead', 10 * 86_400_000);	# snowflake.max_lead of most servers

# Step a server's clock, and log when, as the ledger cannot judge an ID's time
# at that moment.
sub step_clock
{
	my ($node, $clock) = @_;
	my $begin = clock_gettime(CLOCK_MONOTONIC);

	set_clock($node, $clock);
	append_to_file("$dir/steps", sprintf "%.0f %.0f\n", map { $_ * 1e9 } $begin, clock_gettime(CLOCK_MONOTONIC));
}

sub new_server
{
	my ($name, $max_lead, $conf, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%params);
	# Nobody but the test flushes WAL.
	$node->append_conf('postgresql.conf', <<EOC);
snowflake.max_lead = '$max_lead'
wal_writer_delay = 10s
checkpoint_timeout = 1h
autovacuum = off
wal_sender_timeout = 0
wal_receiver_timeout = 0
wal_retrieve_retry_interval = 50ms
wal_keep_size = 256MB
max_connections = 120
wal_buffers = 4MB
log_statement = none
$conf
EOC
	start_with_clock($node, '+0');
	$node->sql(q{
		CREATE EXTENSION snowflake;
		CREATE SEQUENCE ahead MAXVALUE 1125899906841599;
		CREATE SEQUENCE near MAXVALUE 1125899906841599;} . sql_for_clients());
	return $node;
}

sub no_client_saw_a_fault
{
	my ($whose, $ledger) = @_;
	my $report = no_client_received_a_bad_id($whose, -e "$dir/steps" ? ('--steps', "$dir/steps") : (), $ledger);

	like($report, qr/^errors that must not be +0$/m,
		"no client of $whose received an error that a crash does not explain");
	return $report;
}

# --- the ledger finds the faults that it is there to find -------------------

SKIP:
{
	# QEMU 7.2 keeps 72 bytes for each page that a program maps, and a ledger has
	# 64 million.  The selftest opens twenty ledgers.
	skip 'the selftest of the ledger needs too much memory when it is emulated', 3 if $ENV{EMULATED};
	my ($results) = run_command([ ledger_program(), 'selftest' ]);
	my @results = $results =~ /^((?:not )?ok - .*)$/mg;

	ok(!/^not/, 'selftest of the ledger: ' . s/^.*?- //r) foreach @results;
	cmp_ok(scalar @results, '>', 15, 'the selftest of the ledger plants many faults');
	like($results, qr/^0 failed$/m, 'the selftest of the ledger passes to its end');
}

# --- a server that is killed again and again ---------------------------------

{
	my $ledger = "$dir/killed";
	my $node = new_server('killed', '10d', "shared_buffers = 128kB\nbgwriter_delay = 10ms\nsynchronous_commit = off");
	my $connstr = $node->connstr('postgres');

	ahead_of_clock($node, $_, '12 hours') foreach 'ahead', 'next_id_seq';
	$node->sql('CHECKPOINT');

	# Nobody writes anything, as a commit would flush everybody's WAL.  The tiny cache evicts
	# the sequence's page again and again, amid checkpoints, if few clients keep it pinned.
	my @quiet = ($ledger, $connstr, @ten_days, '--quiet', '--sequences', 'ahead');
	my $clients = start_clients(@quiet);
	append_to_file("$dir/evict.sql", "SELECT FROM pg_attribute WHERE attrelid = (random() * 5000)::int;\n");
	append_to_file("$dir/checkpoint.sql", "\\sleep 50 ms\nCHECKPOINT;\n");
	foreach my $round (1 .. 3)
	{
		my $others = IPC::Run::start(
			[ 'pgbench', '-n', '-c', 3, '-T', 3600, '-f', "$dir/evict.sql\@20", '-f', "$dir/checkpoint.sql", $connstr ],
			'>', '/dev/null', '2>&1');
		ok(more_ids($ledger, 1000), "clients receive IDs before crash $round with evictions");
		ok( $node->poll_query_until('postgres',
				q{SELECT blks_read > 10 FROM pg_statio_all_sequences WHERE relname = 'ahead'}),
			"the sequence's page is evicted and read again before crash $round");
		crash_and_start($node);
		ends($others, 'pgbench with evictions');
	}
	clients_end_without_error($clients, 'a server with evictions that crashes');

	# Crashes follow soon on each other, as one loses only what its life has logged.
	$clients = start_clients(@quiet, '--sessions', 16);
	$node->append_conf('postgresql.conf', "shared_buffers = 1MB\n");
	foreach my $round (1 .. 4)
	{
		ok(more_ids($ledger, 2000), "clients receive IDs before crash $round without writes");
		crash_and_start($node);
	}
	clients_end_without_error($clients, 'a server without writes that crashes');

	# All kinds of transactions, clock steps, checkpoints, and files of sequences
	# that come with the old file's count of logged values
	$clients = start_clients($ledger, $connstr, @ten_days, '--seed', 2, '--bulk', '--sessions', 16,
		'--sequences', 'ahead,near,next_id_seq');
	foreach my $clock ('+3600', '-7200', '+0', '-0.250', '+10800')
	{
		ok(more_ids($ledger, 5000), "clients receive IDs before the clock is stepped to $clock s");
		step_clock($node, $clock);
		$node->sql('CHECKPOINT');
		ok(more_ids($ledger, 5000), '... after that');
		$node->sql(q{
			BEGIN; ALTER SEQUENCE ahead SET UNLOGGED; ALTER SEQUENCE ahead SET LOGGED; COMMIT});
		ok(more_ids($ledger, 1000), '... and from a new file of a sequence');
		crash_and_start($node);
	}
	ok(more_ids($ledger, 1000), 'clients receive IDs after the last crash');
	clients_end_without_error($clients, 'a server with writes that crashes');
	my $report = no_client_saw_a_fault('a server that crashes', $ledger);
	like($report, qr/^snowflake_advance\(\) +\d{2}/m, 'clients of a server that crashes advance sequences');
	like($report, qr/^errors by SQLSTATE .*\b08006: [1-9]/m, '... and notice that it crashes');
	$node->stop;
}

# --- a server with little lead, whose clock is stepped -----------------------

{
	my $ledger = "$dir/lead";
	my $node = new_server('lead', '100ms', '');
	my $clients = start_clients($ledger, $node->connstr('postgres'), '--max-lead', 100, '--sessions', 100,
		'--sequences', 'near,next_id_seq');

	more_ids($ledger, 20_000);
	crash_and_start($node);
	step_clock($node, '-0.5');
	ok(more_ids($ledger, 20_000), 'clients receive IDs again when a clock that was set back has caught up');
	step_clock($node, '+0.5');
	ok(more_ids($ledger, 20_000), 'clients receive IDs after the clock has leapt ahead');
	clients_end_without_error($clients, 'a server with little lead');
	no_client_saw_a_fault('a server with little lead', $ledger);
	$node->stop;
}

# --- a synchronous standby is promoted, and gets a standby of its own ---------

{
	my $ledger = "$dir/primary";
	my $primary = new_server('primary', '10d', '', allows_streaming => 1);
	my ($standby, $count);

	my $new_standby = sub
	{
		$standby = standby_of($primary, 'standby' . ++$count, '+0');
		make_synchronous($primary);
	};
	my $promote = sub
	{
		$standby->promote;
		direct_clients($ledger, $standby->connstr('postgres'));
		$primary = $standby;
		$new_standby->();
	};

	ahead_of_clock($primary, $_, '12 hours') foreach 'ahead', 'next_id_seq';
	$new_standby->();
	my $clients = start_clients($ledger, $primary->connstr('postgres'), @ten_days, '--bulk', '--sessions', 16,
		'--sequences', 'ahead,near,next_id_seq');

	ok(more_ids($ledger, 5000), 'clients receive IDs from a primary with a synchronous standby');
	# Without its standby the primary logs more values, and must not return
	# the IDs that they cover.
	crash($standby);
	crash_and_start($primary);
	usleep(500_000);
	crash($primary);
	step_clock($standby, '-3600');
	start_with_clock($standby, '-3600');
	$promote->();

	ok(more_ids($ledger, 5000), 'clients receive IDs from the promoted standby of a primary that was without it');
	crash($primary);
	$promote->();

	ok(more_ids($ledger, 5000), 'clients receive IDs from the promoted standby of a primary that crashed');
	clients_end_without_error($clients, 'servers that are promoted');
	like(no_client_saw_a_fault('servers that are promoted', $ledger), qr/^snowflake_advance\(\) +\d{2}/m,
		'clients of servers that are promoted advance sequences');
	$standby->stop('immediate');
	$primary->stop('immediate');
}

done_testing();
