# Accidents: pages pushed out of a tiny cache amid checkpoints and crashes, no
# room for WAL, a lock holder that stops, a clock that was years ahead.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $next = q{SELECT next_id(5, 'used')};
my $dir = PostgreSQL::Test::Utils::tempdir;

sub new_node
{
	my ($name, $conf, @extra) = @_;
	return server_ahead_of_clock($name, <<EOC, extra => \@extra);
autovacuum = off
checkpoint_timeout = 1h
log_statement = none
restart_after_crash = on
max_prepared_transactions = 2
$conf
EOC
}

# Sessions of psql that run a script until the server is gone.  What they
# print is what clients have received.
my $sessions = 0;

sub start_sessions
{
	my ($node, $count, $script) = @_;
	my @run;

	foreach (1 .. $count)
	{
		my $file = "$dir/received" . $sessions++;
		append_to_file($file, '');
		push @run, {
			file => $file,
			run => IPC::Run::start(
				[ 'psql', '-XAtq', '-f', $script, '-o', $file, '-d', $node->connstr('postgres') ],
				'<', \'', '2>', \my $err) };
	}
	return @run;
}

# The IDs that sessions have received, each in its order.
sub received
{
	my (@run) = @_;
	return map { [ grep { /^\d+$/ } split /\n/, slurp_file($_->{file}) ] } @run;
}

sub out_of_order
{
	my ($ids) = @_;
	return scalar grep { $ids->[ $_ - 1 ] >= $ids->[$_] } 1 .. $#$ids;
}

# Eviction and checkpoints under load, and kill -9 in the middle, three times.
{
	my $node = new_node('tiny', "shared_buffers = 128kB\nbgwriter_delay = 10ms\nmax_connections = 20");
	my $some = "$next;\n" x 20 . "SELECT FROM pg_attribute WHERE attrelid = (random() * 5000)::int \\g /dev/null\n";
	append_to_file("$dir/tiny.sql", $some x 2000);
	append_to_file("$dir/tiny_checkpoint.sql",
		"SELECT pg_sleep(random() * 0.1) \\g /dev/null\nCHECKPOINT;\n" x 1000);
	my (%seen, $twice, $disorder, $smaller);
	my $last = 0;
	$twice = $disorder = $smaller = 0;
	foreach my $round (1 .. 3)
	{
		my @users = start_sessions($node, 4, "$dir/tiny.sql");
		my @checkpoints = start_sessions($node, 1, "$dir/tiny_checkpoint.sql");
		sleep(1.5);
		crash($node);
		$_->{run}->finish for @users, @checkpoints;
		my $max = $last;
		foreach my $ids (received(@users))
		{
			$disorder += out_of_order($ids);
			$smaller += grep { $_ <= $last } @$ids;
			$twice += grep { $seen{$_}++ } @$ids;
			$max = $ids->[-1] if @$ids && $ids->[-1] > $max;
		}
		$last = $max;
		$node->start;
	}
	cmp_ok(scalar keys %seen, '>', 3000, 'sessions receive more than 3,000 IDs amid evictions, checkpoints and crashes');
	note(scalar(keys %seen) . ' IDs');
	is($twice, 0, 'no ID was received twice amid evictions, checkpoints and crashes');
	is($disorder, 0, 'each session received its IDs in order amid evictions and checkpoints');
	is($smaller, 0, 'all IDs were larger than those received before a crash');

	# What a subtransaction took that was rolled back; and a transaction that
	# is prepared keeps the sequence as it is, across a crash.
	my $taken = $node->safe_psql('postgres', qq{
		BEGIN;
		SAVEPOINT s;
		SELECT setval('used', last_value + 2000000) FROM used \\g /dev/null
		$next;
		ROLLBACK TO s;
		COMMIT});
	next_id_is_larger_after_crash($node, $taken, 'one whose transaction rolled back to a savepoint');
	$node->safe_psql('postgres', "BEGIN; $next; PREPARE TRANSACTION 'p'");
	crash_and_start($node);
	like(
		sqlstate_of($node, q{SET lock_timeout = '100ms'; ALTER SEQUENCE used RESTART}),
		qr/^55P03 /, 'a transaction prepared before a crash keeps others from restarting its sequence');
	like($node->safe_psql('postgres', $next), qr/^\d+$/, 'next_id() uses the sequence of a prepared transaction');
	$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});

	# Outside the promise: a rewrite that is rolled back brings the old file back.
	my ($inside, $outside) = split /\n/, $node->safe_psql('postgres', qq{
		BEGIN;
		SAVEPOINT s;
		ALTER SEQUENCE used SET UNLOGGED;
		ALTER SEQUENCE used SET LOGGED;
		$next;
		ROLLBACK TO s;
		$next;
		COMMIT});
	is($outside, $inside, 'an ID is repeated after a rewrite of the sequence was rolled back to a savepoint (as documented)');
	$node->stop;
}

# No room for WAL: the server's processes may not write files any longer than
# half a segment.
SKIP:
{
	skip 'prlimit is not installed', 4
	  unless grep { -x "$_/prlimit" } split /:/, $ENV{PATH};
	my $node = new_node('full', "restart_after_crash = off", '--wal-segsize=1');
	# Each ID needs a record of its own.  (Two setval()s at the same time could
	# set the sequence back.)
	my $one = "BEGIN; SELECT pg_advisory_xact_lock(1) \\g /dev/null\n"
		  . "SELECT setval('used', last_value + 1100000) FROM used \\g /dev/null\n$next; ROLLBACK;\n";
	append_to_file("$dir/full.sql", $one x 30000);
	append_to_file("$dir/fill.sql",
		"SELECT pg_logical_emit_message(false, 'x', repeat('x', 500)) \\g /dev/null\n" x 50000);
	my @users = start_sessions($node, 3, "$dir/full.sql");
	my @fill = start_sessions($node, 1, "$dir/fill.sql");
	sleep(0.5);
	my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
	foreach my $pid ($postmaster, split ' ', `ps -o pid= --ppid $postmaster`)
	{
		system('prlimit', '--fsize=524288:', '--pid', $pid);
	}
	$_->{run}->finish for @users, @fill;
	ok(wait_for(sub { !kill 0, $postmaster }), 'a server without room for WAL stops');
	$node->{_pid} = undef;
	like(slurp_file($node->logfile), qr/PANIC:  could not write to .*: File too large/, 'a server without room for WAL says why it stops');
	$node->start;
	my @ids = sort { $a <=> $b } map { @$_ } received(@users);
	note(scalar(@ids) . ' IDs');
	my %seen = map { $_ => 1 } @ids;
	is(scalar keys %seen, scalar @ids, 'no ID was received twice from a server that ran out of room for WAL');
	cmp_ok(next_id($node), '>', $ids[-1],
		'with room for WAL again, the next ID is larger than all that were received');
	$node->stop;
}

# The holder of the page's lock is stopped.  Nothing says whether a session
# holds it, so one that is busy is stopped until another waits for it.
{
	my $node = new_node('stopped', '');
	my $holder = $node->background_psql('postgres');
	my $waiter = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $holder->query_safe('SELECT pg_backend_pid()');
	my $waiter_pid = $waiter->query_safe('SELECT pg_backend_pid()');
	my $taken = $waiter->query_safe($next);
	$holder->query_safe($next);
	my $waits = sub {
		return $node->safe_psql('postgres',
			"SELECT " . WAITS_FOR_PAGE . " FROM pg_stat_activity WHERE pid = $waiter_pid") eq 't' };

	$holder->{stdin} .= "SELECT count(next_id(5, 'used')) FROM generate_series(1, 100000) a, generate_series(1, 100000) b;\n";
	wait_for(sub {
		$holder->{run}->pump_nb;
		$node->safe_psql('postgres', "SELECT state = 'active' FROM pg_stat_activity WHERE pid = $pid") eq 't' });
	my $stop_holder = sub {
		for (1 .. 200)
		{
			my $held = 0;
			sleep(0.01 + rand 0.01);
			kill 'STOP', $pid;
			$waiter->{stdout} = '';
			$waiter->{stdin} .= "$next;\n";
			wait_for(sub {
				$waiter->{run}->pump_nb;
				$waiter->{stdout} =~ /\n/ || ($held = $waits->()) });
			return 1 if $held;
			($taken) = $waiter->{stdout} =~ /(\d+)/;
			kill 'CONT', $pid;
		}
		return 0;
	};
	ok($stop_holder->(), 'a session waits while the holder of the page\'s lock is stopped');
	# A cancel has to wait, too, as with nextval().
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($waiter_pid)");
	sleep(0.2);
	$waiter->{run}->pump_nb;
	is($waiter->{stdout} . $waiter->{stderr}, '', 'a session that waits for the page\'s lock gets no ID when it is canceled');
	kill 'CONT', $pid;
	ok(wait_for(sub { $waiter->{run}->pump_nb; "$waiter->{stdout}$waiter->{stderr}" =~ /\n/ }),
		'a session goes on when the holder of the page\'s lock goes on');
	($taken) = $waiter->{stdout} =~ /(\d+)/ if $waiter->{stdout} =~ /\d/;
	$waiter->{stderr} = '';

	# Likewise, and it never goes on.
	ok($stop_holder->(), 'a session waits while the holder of the page\'s lock is stopped again');
	kill 'KILL', $pid;
	eval { $_->quit } for $holder, $waiter;
	ok($node->poll_query_until('postgres', 'SELECT true'), 'the server recovers when the holder of the page\'s lock is killed');
	cmp_ok(next_id($node), '>', $taken, 'the next ID is larger after the holder of the page\'s lock was killed');
	$node->stop;
}

# A clock that was years ahead, and was used.
SKIP:
{
	skip 'libfaketime is not installed', 8 unless faketime_library();
	my $node = new_node('years', "snowflake.max_lead = '1s'");
	$node->stop;
	start_with_clock($node, '+157680000');
	$node->safe_psql('postgres',
		'CREATE TABLE photos (n int GENERATED ALWAYS AS IDENTITY, id bigint PRIMARY KEY DEFAULT next_id(5))');
	my $future = $node->safe_psql('postgres', 'INSERT INTO photos DEFAULT VALUES RETURNING id');
	set_clock($node, '+0');
	my $start = time();
	like(
		sqlstate_of($node, 'INSERT INTO photos DEFAULT VALUES'),
		qr/^53400 sequence "next_id_seq" is 18\d\d days [\d:.]+ ahead of the clock/,
		'an INSERT after the clock was set back by five years is refused, with how far the sequence is ahead');
	cmp_ok(time() - $start, '<', 3, 'an INSERT is refused at once if the sequence is years ahead of the clock');
	is( $node->safe_psql('postgres',
			q{SELECT lead > interval '1800 days', last_timestamp > now() + interval '1800 days'
			  FROM snowflake_status()}),
		't|t', 'snowflake_status() shows that the sequence is years ahead of the clock');
	crash($node);
	start_with_clock($node, '+0');
	like(
		sqlstate_of($node, 'INSERT INTO photos DEFAULT VALUES'),
		qr/^53400 sequence "next_id_seq" is 18\d\d days /, 'the INSERT is still refused after a crash');

	# The way out that the documentation shows.
	$node->safe_psql('postgres', q{
		CREATE SEQUENCE photos_id_seq MAXVALUE 1125899906841599;
		ALTER TABLE photos ALTER id SET DEFAULT next_id(6, 'photos_id_seq')});
	my $new = $node->safe_psql('postgres', 'INSERT INTO photos DEFAULT VALUES RETURNING id');
	is( $node->safe_psql('postgres', qq{
			SELECT abs(extract(epoch FROM snowflake_timestamp($new) - clock_timestamp())) < 60, snowflake_shard($new)}),
		't|6', 'a new sequence with a new shard begins with the clock');
	is( $node->safe_psql('postgres', "SELECT snowflake_timestamp($future) > now() + interval '1800 days' FROM photos WHERE id = $future"),
		't', 'IDs made while the clock was ahead keep their times');
	# five years on, the new shard comes to the same times
	set_clock($node, '+157680000');
	$node->safe_psql('postgres', 'INSERT INTO photos SELECT FROM generate_series(1, 3000)');
	is( $node->safe_psql('postgres', q{
			SELECT count(*) FROM photos a JOIN photos b ON a.id >> 23 = b.id >> 23 AND a.id <> b.id
			WHERE snowflake_shard(a.id) = snowflake_shard(b.id) AND snowflake_sequence(a.id) = snowflake_sequence(b.id)}),
		0, 'the new shard does not repeat the IDs that the old one made five years before their time');
	$node->stop;
}

done_testing();
