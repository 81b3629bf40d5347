# A ledger of every ID that clients received, kept while servers are killed,
# clocks are stepped and standbys promoted.  tools/soak is the long form.
#
# The sequences' marks are a day ahead of the clock at first, and steps of the
# clock stay below that: the clock's own progress would hide a generator that
# forgot something.

use strict;
use warnings;
use File::Spec;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $ledger = ledger_program();

my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
my $faked = defined faketime_library();
my $days = 10 * 86_400_000;	# snowflake.max_lead of most servers

# Does the ledger see what it is there to see?
my ($stdout, $stderr) = run_command([ $ledger, 'selftest' ]);
my @results = $stdout =~ /^((?:not )?ok - .*)$/mg;
ok(!/^not/, "ledger: " . s/^.*?- //r) for @results;
cmp_ok(scalar @results, '>', 15, 'the ledger was checked');
like($stdout, qr/^0 failed$/m, 'and is good');

# Start the server, with a clock that can be stepped if there can be one.
sub start
{
	my ($node) = @_;
	$faked ? start_with_clock($node, $node->{clock} // '+0') : $node->start;
	return;
}

sub step
{
	my ($node, $clock) = @_;
	$node->{clock} = $clock;
	PostgreSQL::Test::Utils::system_or_bail($ledger, 'step', "$dir/steps",
		$node->basedir . '/clock', $clock) if $faked;
	return;
}

sub new_node
{
	my ($name, $conf, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%params);
	# Nobody but us shall flush WAL.
	$node->append_conf('postgresql.conf', <<EOC);
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
	start($node);
	$node->safe_psql('postgres',
		'CREATE EXTENSION snowflake; CREATE SEQUENCE ahead MAXVALUE 1125899906841599; CREATE SEQUENCE near MAXVALUE 1125899906841599;' . `$ledger init`);
	return $node;
}

# Tell the clients where to go.
sub direct_to
{
	my ($node, $where) = @_;
	append_to_file("$where.new", $node->connstr('postgres') . "\n");
	rename "$where.new", $where or die "rename: $!";
	return;
}

sub start_load
{
	my ($name, @options) = @_;
	my $load = { name => "$dir/$name" };
	$load->{run} = IPC::Run::start([ $ledger, 'run', '--connection-file', "$dir/$name.where",
			'--shards', '5,8191', '--batch', 600, @options, "$dir/$name" ]);
	return $load;
}

sub stop_load
{
	my ($load) = @_;
	$load->{run}->signal('TERM');
	ok($load->{run}->finish, 'the clients ended well');
	return;
}

# Every assertion of the ledger, and its report
sub check
{
	my ($load, $what) = @_;
	my @steps = -e "$dir/steps" ? ('--steps', "$dir/steps") : ();
	my ($report) = run_command([ $ledger, 'check', @steps, $load->{name} ]);
	note($report);
	foreach my $fault ('duplicates', 'not growing within a call', 'out of order in time',
		'wrong shard', 'too far ahead of the clock', 'behind the clock', 'errors that must not be')
	{
		like($report, qr/^$fault +0$/m, "$what: $fault: none");
	}
	return;
}

# One server, which is killed.
{
	my $node = new_node('killed', "snowflake.max_lead = '10d'\nshared_buffers = 1MB\n");
	my $load;
	my $lives = 0;

	ahead_of_clock($node, $_, '1 day') for 'ahead', 'next_id_seq';
	$node->safe_psql('postgres', 'CHECKPOINT');
	direct_to($node, "$dir/killed.where");

	# Lives in which nobody writes anything, since a commit flushes everybody's
	# WAL; and one soon after the other, as what is lost is what the last one
	# logged.
	$load = start_load('killed', '--quiet', '--max-lead', $days, '--sessions', 16, '--sequences', 'ahead');
	foreach my $round (1 .. 4)
	{
		$lives += more_ids($load->{name}, 2000);
		crash($node);
		start($node);
	}
	stop_load($load);

	# Lives with all kinds of transactions, clock steps, checkpoints, and new
	# files that came with the old one's count.
	$load = start_load('killed', '--seed', 2, '--bulk', '--max-lead', $days, '--sessions', 16,
		'--sequences', 'ahead,near,next_id_seq',
		'--some-sessions', 4, '--some-settings', '-c synchronous_commit=off');
	foreach my $clock ('+3600', '-7200', '+0', '-0.250', '+10800')
	{
		$lives += more_ids($load->{name}, 5000);
		step($node, $clock);
		$node->safe_psql('postgres', 'CHECKPOINT');
		$lives += more_ids($load->{name}, 5000);
		$node->safe_psql('postgres', q{
			BEGIN; ALTER SEQUENCE ahead SET UNLOGGED; ALTER SEQUENCE ahead SET LOGGED; COMMIT});
		$lives += more_ids($load->{name}, 1000);
		crash($node);
		start($node);
	}
	$lives += more_ids($load->{name}, 1000);
	stop_load($load);
	is($lives, 20, 'IDs came again after each kill');
	check($load, 'killed');
	$node->stop;
}

# One server with the lead of every day, which is killed: not ahead of the
# clock by more than that, nor ever behind it.
{
	my $node = new_node('lead', "snowflake.max_lead = '100ms'\n");
	my $load;

	direct_to($node, "$dir/lead.where");
	$load = start_load('lead', '--max-lead', 100, '--sessions', 100, '--sequences', 'near,next_id_seq');
	more_ids($load->{name}, 20_000);
	crash($node);
	start($node);
	step($node, '-0.5');
	ok(more_ids($load->{name}, 20_000), 'IDs come again when the clock has caught up');
	step($node, '+0.5');
	ok(more_ids($load->{name}, 20_000), 'and when it has leapt');
	stop_load($load);
	check($load, 'lead');
	$node->stop;
}

# A synchronous standby takes over, and gets a standby of its own.
{
	my $primary = new_node('primary', "snowflake.max_lead = '10d'\n", allows_streaming => 1);
	my $load;
	my $count = 0;

	my $new_standby = sub
	{
		my $name = 'standby' . ++$count;
		my $standby = PostgreSQL::Test::Cluster->new($name);

		$primary->backup($name);
		$standby->init_from_backup($primary, $name, has_streaming => 1);
		start($standby);
		$primary->poll_query_until('postgres',
			q{SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'})
		  or die 'no synchronous standby';
		return $standby;
	};

	ahead_of_clock($primary, $_, '1 day') for 'ahead', 'next_id_seq';
	$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'\n");
	$primary->reload;
	my $standby = $new_standby->();
	direct_to($primary, "$dir/primary.where");
	$load = start_load('primary', '--bulk', '--max-lead', $days, '--sessions', 16, '--sequences', 'ahead,near,next_id_seq');

	foreach my $how ('starved', 'plain')
	{
		ok(more_ids($load->{name}, 5000), 'a primary with a synchronous standby makes IDs');
		if ($how eq 'starved')
		{
			# Without its standby the primary makes new records, and must not
			# let out what they cover.
			crash($standby);
			crash($primary);
			start($primary);
			usleep(500_000);
			crash($primary);
			step($standby, '-3600');
			start($standby);
		}
		else
		{
			crash($primary);
		}
		$standby->promote;
		direct_to($standby, "$dir/primary.where");
		$primary = $standby;
		$standby = $new_standby->();
	}
	ok(more_ids($load->{name}, 5000), 'IDs come after the last promotion');
	stop_load($load);
	check($load, 'promoted');
	$standby->stop('immediate');
	$primary->stop('immediate');
}

done_testing();
