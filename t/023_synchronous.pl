# Synchronous standbys that lag, are replaced or are no longer asked for while
# sessions make IDs.
#
# A standby lags because its WAL receiver is stopped: nothing else keeps it
# from having all WAL a moment later, whether anybody waits for it or not.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $next = 'SELECT next_id(5)';
my $count = q{SELECT next_id(9, 'counted', 'decimal')};

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', <<EOC);
autovacuum = off
checkpoint_timeout = 1h
wal_sender_timeout = 0
snowflake.max_lead = '30d'
EOC
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE counted MAXVALUE 92233720199999;
});
ahead_of_clock($primary, 'next_id_seq', '1 day');
$primary->backup('base');
my ($s1, $s2) = map {
	my $standby = PostgreSQL::Test::Cluster->new($_);
	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->start;
	$standby;
} qw(s1 s2);

sub sql { return $primary->safe_psql('postgres', "@_"); }

# Start a session of the primary.
sub session
{
	my $session = $primary->background_psql('postgres', on_error_stop => 0);

	$session->{backend} = $session->query_safe('SELECT pg_backend_pid()');
	return $session;
}

# Send a query without waiting for its result.
sub send_query
{
	my ($session, $query) = @_;

	$session->{stdout} = $session->{stderr} = '';
	$session->{stdin} .= "$query;\n";
	$session->{run}->pump_nb;
	return;
}

# Does a session wait for a standby that will not answer, rather than for s1,
# which is about to?  s1 has answered when it has answered something later.
my $s1_answers = 1;
sub waits
{
	my ($session) = @_;
	my $waiting = sub { sql("SELECT count(*) FROM pg_stat_activity
		WHERE pid = $session->{backend} AND wait_event = 'SyncRep'") };

	return 0 unless $waiting->();
	foreach (1 .. 2)
	{
		last unless $s1_answers;
		sql(q{SET synchronous_commit = local; SELECT pg_logical_emit_message(true, '', '')});
		$primary->wait_for_catchup($s1, 'flush', insert_lsn());
	}
	return $waiting->();
}

# Wait until the query that was sent has a result or waits for a standby.  The
# result, or '' if there is none.
sub result_or_wait
{
	my ($session) = @_;

	wait_for(sub {
			$session->{run}->pump_nb;
			"$session->{stdout}$session->{stderr}" =~ /\n/ || waits($session) })
	  or die 'neither a result nor a wait';
	# What the session had before it waited has arrived by now.
	$session->{run}->pump_nb;
	return $session->{stdout} =~ s/\n$//r;
}

# Wait until the query that was sent has a result or an error.
sub result
{
	my ($session) = @_;

	wait_for(sub {
			$session->{run}->pump_nb;
			$session->{stdout} =~ /\n/ || $session->{stderr} =~ /ERROR:.*\n/ })
	  or die 'no result';
	return $session->{stdout} =~ s/\n$//r;
}

my $committer = session();

# Set synchronous_standby_names, and wait until commits obey: until one waits
# for a standby, or does not.
sub set_names
{
	my ($names, $waits) = @_;

	sql("ALTER SYSTEM SET synchronous_standby_names = '$names'; SELECT pg_reload_conf()");
	wait_for(sub {
			send_query($committer, q{SELECT pg_logical_emit_message(true, '', '')});
			my $waited = result_or_wait($committer) eq '';
			sql("SELECT pg_cancel_backend($committer->{backend})") if $waited;
			result($committer);
			$waited == $waits })
	  or die "commits do not obey synchronous_standby_names = '$names'";
	return;
}

# Make the next call on each sequence write a record.
sub need_record
{
	sql(q{
		SET synchronous_commit = local;
		SELECT setval('next_id_seq', last_value + 2000000) FROM next_id_seq;
		SELECT setval('counted', last_value + 2000) FROM counted});
	return;
}

sub insert_lsn { return sql('SELECT pg_current_wal_insert_lsn()'); }

# A wait for a standby in each of many calls would write more than this.
my $calls = 20000;
sub wrote_little
{
	my ($since, $name) = @_;

	return is(sql("SELECT pg_current_wal_insert_lsn() - '$since'::pg_lsn < 8 * $calls"), 't', $name);
}
my $many = "SELECT count(next_id(5)) FROM generate_series(1, $calls)";

my $session = session();
my $other = session();
my $locker = session();

# A statement that makes an ID, waits for the locker, and goes on with $then.
sub send_interrupted
{
	my ($then) = @_;

	$locker->query_safe('SELECT pg_advisory_lock(1)');
	send_query($session, qq{DO \$\$ BEGIN
		PERFORM next_id(5);
		PERFORM pg_advisory_xact_lock(1);
		$then
		RAISE NOTICE 'went on';
		END \$\$});
	wait_for(sub { sql("SELECT count(*) FROM pg_stat_activity
		WHERE pid = $session->{backend} AND wait_event_type = 'Lock'") })
	  or die 'the statement does not wait for the locker';
	return;
}

sub let_go_on { return $locker->query_safe('SELECT pg_advisory_unlock(1)'); }

# While nothing changes, calls cost neither a record nor a wait.
set_names('s1', 0);
$_->query_safe($next) foreach $session, $other;
my $lsn = insert_lsn();
$_->query_safe($many) foreach $session, $other;
wrote_little($lsn, 'sessions share what the standby has acknowledged');

# Interrupts are held off during a wait, and no longer.
need_record();
$session->query_safe($next);
$session->query_safe("SET statement_timeout = '10ms'");
send_query($session, 'SELECT pg_sleep(60)');
result($session);
like($session->{stderr}, qr/ERROR:  canceling statement due to statement timeout/,
	'statement_timeout works after a wait for a standby');
$session->{stdout} = $session->{stderr} = '';
$session->query_safe('SET statement_timeout = 0');
need_record();
$session->query_safe($next);
send_query($session, 'SELECT pg_sleep(60)');
ok( $primary->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity
		WHERE pid = $session->{backend} AND wait_event = 'PgSleep'"),
	'a statement sleeps');
sql("SELECT pg_cancel_backend($session->{backend})");
result($session);
like($session->{stderr}, qr/ERROR:  canceling statement due to user request/,
	'cancel works after a wait for a standby');
$session->{stdout} = $session->{stderr} = '';

# The setting is emptied, as an operator does when the standby is dead.
set_names('nosuch', 1);
need_record();
send_query($session, $many);
is(result_or_wait($session), '', 'a statement waits for a standby that is not there');
$lsn = insert_lsn();
set_names('', 0);
is(result($session), $calls, 'a waiting statement goes on when the setting is emptied');
wrote_little($lsn, 'a statement that is no longer asked to wait does not wait at each call');

# The setting asks for one standby less, or for one for the first time.
set_names('FIRST 2 (s1, nosuch)', 1);
need_record();
send_query($session, $many);
is(result_or_wait($session), '', 'a statement waits for two standbys of which one is not there');
$lsn = insert_lsn();
set_names('FIRST 1 (s1, nosuch)', 0);
is(result($session), $calls, 'a waiting statement goes on when one standby is enough');
wrote_little($lsn, 'a statement that has enough standbys again does not wait at each call');

set_names('', 0);
send_interrupted("PERFORM next_id(5) FROM generate_series(1, $calls);");
set_names('s1', 0);
$lsn = insert_lsn();
let_go_on();
wait_for(sub { $session->{run}->pump_nb; $session->{stderr} =~ /\n/ });
like($session->{stderr}, qr/went on/, 'a statement goes on when a standby becomes synchronous');
wrote_little($lsn, 'a statement that gets its first standby does not wait at each call');
$session->{stdout} = $session->{stderr} = '';

set_names('', 0);
send_interrupted("RAISE NOTICE 'ID %', next_id(5);");
set_names('nosuch', 1);
let_go_on();
is(result_or_wait($session) . $session->{stderr}, '',
	'a statement waits for a standby that is asked for since it began');
sql("SELECT pg_cancel_backend($session->{backend})");
result($session);
like($session->{stderr}, qr/ERROR:  canceling next_id\(\) while it waited/, 'when that wait is cancelled, there is an error');
unlike($session->{stderr}, qr/NOTICE:  ID/, 'when that wait is cancelled, there is no ID');
$session->{stdout} = $session->{stderr} = '';
set_names('s1', 0);

# A standby that has written the record but not flushed it.
SKIP:
{
	skip 'gdb is not installed', 5 unless grep { -x "$_/gdb" } split /:/, $ENV{PATH};

	my $receiver = $s1->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
	my $writer = sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'});

	need_record();
	$session->query_safe('SET synchronous_commit = remote_write');
	# The record must be the next WAL that the standby is sent.
	kill 'STOP', $writer;
	$primary->wait_for_catchup($s1, 'flush', insert_lsn());
	my $gdb = hold_at($receiver, 'issue_xlog_fsync');
	ok($gdb->{attached}, 'gdb is attached to the WAL receiver') or note(${ $gdb->{log} });

	send_query($session, $next);
	ok( $primary->poll_query_until('postgres', q{
			SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = 's1' AND write_lsn > flush_lsn}),
		'the standby has written the record, and does not flush it');
	$s1_answers = 0;
	result_or_wait($session);
	sql("SELECT pg_cancel_backend($session->{backend})");
	result($session);

	send_query($session, $next);
	like(result_or_wait($session), qr/^\d+$/, 'written, not flushed: enough for synchronous_commit = remote_write');
	send_query($session, 'SET synchronous_commit = on');
	send_query($session, $next);
	is(result_or_wait($session), '', 'written, not flushed: not enough for synchronous_commit = on in the same session');

	let_go($gdb);
	$gdb->{run}->finish;
	$s1_answers = 1;
	kill 'CONT', $writer;
	like(result($session), qr/^\d+$/, 'the session gets its ID when the standby goes on');
	$session->{stdout} = $session->{stderr} = '';
}

# From now on the second standby has all connections but receives nothing.
set_names('FIRST 2 (s1, s2)', 0);
$session->query_safe($next);
kill 'STOP', $s2->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');

# The setting changes between statements.
set_names('s1', 0);
need_record();
like($session->query_safe($next), qr/^\d+$/, 'an ID goes out when s1 has the record');
my $names = 's1';
foreach my $change (
	[ 's2', 1 ], [ 'FIRST 1 (s1, s2)', 0 ], [ 'FIRST 2 (s1, s2)', 1 ],
	[ 'ANY 1 (s1, s2)', 0 ], [ 'ANY 2 (s1, s2)', 1 ], [ '*', 0 ], [ 'FIRST 1 (s2, s1)', 1 ])
{
	my ($new, $waits) = @$change;
	my $name = "$names is changed to $new";

	set_names($new, $waits);
	$lsn = insert_lsn();
	send_query($session, $many);
	if ($waits)
	{
		is(result_or_wait($session), '', "$name: no ID goes out from the record that s1 has");
		sql("SELECT pg_cancel_backend($session->{backend})");
		result($session);
		like($session->{stderr}, qr/ERROR:  canceling next_id\(\)/, "$name: a cancelled wait is an error");
	}
	else
	{
		is(result_or_wait($session), $calls, "$name: IDs go out from the record that s1 has");
		wrote_little($lsn, "$name: no wait at each call");
	}
	$session->{stdout} = $session->{stderr} = '';
	$names = $new;
}

# The setting changes in mid-statement.
foreach my $change ([ 's1', 's2' ], [ 'FIRST 1 (s1, s2)', 'FIRST 2 (s1, s2)' ])
{
	my ($old, $new) = @$change;

	set_names($old, 0);
	# The first reload is pending when the second one comes.
	send_interrupted('PERFORM next_id(5); PERFORM pg_advisory_xact_lock(2); PERFORM next_id(5);');
	$other->query_safe('SELECT pg_advisory_lock(2)');
	set_names($old, 0);
	let_go_on();
	wait_for(sub { sql("SELECT count(*) FROM pg_locks
		WHERE pid = $session->{backend} AND locktype = 'advisory' AND objid = 2 AND NOT granted") })
	  or die 'the statement does not wait for the lock';
	set_names($new, 1);
	$other->query_safe('SELECT pg_advisory_unlock(2)');
	is(result_or_wait($session) . $session->{stderr}, '',
		"$old is changed to $new in mid-statement: the statement waits");
	sql("SELECT pg_cancel_backend($session->{backend})");
	result($session);
	$session->{stdout} = $session->{stderr} = '';
}

# The standby that had the record dies, and the other one takes over.
set_names('FIRST 1 (s1, s2)', 0);
need_record();
my %query = (time => $next, counter => $count);
my %session = (time => $session, counter => $other);
my %had = map { $_ => $session{$_}->query_safe($query{$_}) } keys %query;
$s1->stop('immediate');
$s1_answers = 0;
ok( $primary->poll_query_until('postgres', q{
		SELECT string_agg(application_name || sync_state, '') = 's2sync' FROM pg_stat_replication}),
	's1 is dead, and s2 synchronous');
send_query($session{$_}, $query{$_}) foreach keys %query;
my %taken = map { $_ => result_or_wait($session{$_}) } keys %query;
is($taken{$_}, '', "$_: no ID goes out from the record that only s1 had") foreach sort keys %query;

crash($primary);
eval { $_->quit } foreach $session, $other, $locker, $committer;
crash($s2);
$s2->start;
$s2->promote;
foreach my $kind (sort keys %query)
{
	my $after = $s2->safe_psql('postgres', $query{$kind});

	cmp_ok($after, '<=', $had{$kind}, "$kind: s2 was promoted without that record (control)");
	ok($taken{$kind} eq '' || $taken{$kind} < $after, "$kind: no ID comes again that went out after the death of s1");
}
$s2->stop;

done_testing();
