package StandbyTest;

# Primaries, standbys that they wait for, and sessions that may have to wait.

use Exporter 'import';
use IPC::Run;
use SnowflakeTest;

our @EXPORT = qw(primary standby_of writing_standby make_synchronous set_names
  all_flushed need_record sessions_wait_for_standby fail_over
  result result_or_wait cancel waits canceled_wait_is_error
  MANY MANY_IDS wrote_little $answering);

# A statement that would write more than wrote_little() allows if it waited for a
# standby in each of its calls.
use constant MANY => 20000;
use constant MANY_IDS => q{SELECT count(next_id(5, 'used')) FROM generate_series(1, } . MANY . ')';

# The standby, if there is one, that will answer what a session waits for.
our $answering;

# A primary whose WAL only the test writes, with a sequence "used" that is ahead
# of the clock.
sub primary
{
	my ($name) = @_;
	return server_ahead_of_clock($name, <<EOC, allows_streaming => 1);
autovacuum = off
checkpoint_timeout = 1h
wal_sender_timeout = 0
wal_receiver_status_interval = 1
wal_retrieve_retry_interval = 100ms
EOC
}

# Start a standby of a primary, with a clock that can be set if one is given.
sub standby_of
{
	my ($primary, $name, $clock) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);

	$primary->backup($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	defined $clock ? start_with_clock($standby, $clock) : $standby->start;

	# The backup's own WAL sender ends a moment later, and among standbys of equal
	# priority the one whose WAL sender has the lowest number is synchronous.
	$primary->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = '$name' AND state = 'streaming'")
	  or die "$name does not stream";
	return $standby;
}

# Ask for a standby that writes WAL, and flushes it when a segment is full.  It ends with
# the server, also if the test dies.
sub writing_standby
{
	my ($primary) = @_;

	$primary->sql(q{SELECT pg_create_physical_replication_slot('writer')});
	my $writer = IPC::Run::start([ 'pg_receivewal', '-n', '-S', 'writer', '-s', 1,
			'-D', PostgreSQL::Test::Utils::tempdir, '-d', $primary->connstr . ' application_name=writer' ]);
	set_names($primary, 'writer', 1);
	return $writer;
}

sub _ask_for
{
	my ($primary, $names) = @_;

	$primary->sql("ALTER SYSTEM SET synchronous_standby_names = '$names'; SELECT pg_reload_conf()");
}

# Ask for a synchronous standby, and wait until the primary's one is.
sub make_synchronous
{
	my ($primary) = @_;

	_ask_for($primary, '*');
	$primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'})
	  or die 'no standby becomes synchronous';
}

# Ask for standbys by their names, and wait until commits obey: until one waits
# for a standby, or does not.
sub set_names
{
	my ($primary, $names, $waits) = @_;
	my $committer = $primary->{committer} //= session($primary);

	_ask_for($primary, $names);
	wait_for(sub {
			send_sql($committer, q{SELECT pg_logical_emit_message(true, '', '')});
			my $waited = result_or_wait($committer) eq '';
			cancel($committer) if $waited;
			$waited == $waits })
	  or die "commits do not obey synchronous_standby_names = '$names'";
}

sub all_flushed
{
	my ($primary, $standby) = @_;

	$primary->wait_for_catchup($standby, 'flush', $primary->lsn('insert'));
}

# Make the next call write a record, as no earlier one covers its value.
sub need_record
{
	my ($primary) = @_;

	$primary->sql(q{
		SET synchronous_commit = local;
		SELECT setval('used', last_value + 2000000) FROM used});
}

sub sessions_wait_for_standby
{
	my ($primary, $count) = @_;
	return $primary->poll_query_until('postgres',
		"SELECT count(*) = $count FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
}

sub fail_over
{
	my ($primary, $standby) = @_;

	crash($primary) if defined $primary->{_pid};
	$standby->start unless defined $standby->{_pid};
	$standby->promote;
}

# Does a session wait for a standby that will not answer, rather than for one
# that is about to?  The latter has answered when it has answered something later.
sub _will_wait
{
	my ($session) = @_;
	my $primary = $session->{node};
	my $waiting = sub { $primary->sql(
		"SELECT count(*) FROM pg_stat_activity WHERE pid = $session->{backend} AND wait_event = 'SyncRep'") };

	return 0 unless $waiting->();
	foreach (1 .. 2)
	{
		last unless $answering;
		$primary->sql(q{SET synchronous_commit = local; SELECT pg_logical_emit_message(true, '', '')});
		all_flushed($primary, $answering);
	}
	return $waiting->();
}

# Wait until the query that was sent has a result or waits for a standby.  The
# result, or '' if there is none.
sub result_or_wait
{
	my ($session) = @_;

	session_prints($session, qr/\n/, sub { _will_wait($session) }) or die 'neither a result nor a wait';
	# What the session had before it waited has arrived by now.
	$session->{run}->pump_nb;
	return $session->{stdout} =~ s/\n$//r;
}

# Wait until the query that was sent has a result or an error.
sub result
{
	my ($session) = @_;

	# A warning can come before an error.
	session_prints($session, qr/ERROR:.*\n/, sub { $session->{stdout} =~ /\n/ }) or die 'no result';
	return $session->{stdout} =~ s/\n$//r;
}

# Cancel the query that was sent, and return all that the session has printed.
sub cancel
{
	my ($session) = @_;

	$session->{node}->sql("SELECT pg_cancel_backend($session->{backend})");
	result($session);
	my $printed = $session->{stdout} . $session->{stderr};
	$session->{stdout} = $session->{stderr} = '';
	return $printed;
}

sub waits
{
	my ($session, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is(result_or_wait($session) . $session->{stderr}, '', $name);
}

# A wait for a standby is canceled, and the session gets an error and nothing else.
sub canceled_wait_is_error
{
	my ($session, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return like(cancel($session) . $session->query('\echo :LAST_ERROR_SQLSTATE'),
		qr/^(psql:\S+ )?ERROR:  canceling statement due to user request\n(?s:.*)57014\z/, $name);
}

# The primary has written less than it would if each of many calls had waited.
sub wrote_little
{
	my ($primary, $since, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is($primary->sql("SELECT pg_current_wal_insert_lsn() - '$since'::pg_lsn < 8 * " . MANY), 't', $name);
}

1;
