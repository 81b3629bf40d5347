# synchronous_standby_names changes while sessions make IDs.  An ID goes out only
# when the standbys that are asked for now have its record, also when the one that
# had it dies and another takes over, and while the checkpointer has not read the
# setting.

use SnowflakeTest;
use StandbyTest;

my $primary = primary('primary');
$primary->sql('CREATE SEQUENCE counted MAXVALUE 92233720199999');
my ($s1, $s2) = map { standby_of($primary, $_) } 's1', 's2';
my ($session, $locker) = map { session($primary) } 1, 2;
my $next = q{SELECT next_id(5, 'used')};
my $lsn;

$answering = $s1;

# Send a statement that makes an ID, waits for the locker, and goes on with $then.
sub send_interrupted
{
	my ($then) = @_;

	$locker->query_safe('SELECT pg_advisory_lock(1)');
	send_sql($session, qq{DO \$\$ BEGIN
		PERFORM next_id(5, 'used');
		PERFORM pg_advisory_xact_lock(1);
		$then
		RAISE NOTICE 'went on';
		END \$\$});
	return waits_for_lock($session, 1);
}

sub waits_for_lock
{
	my ($session, $lock) = @_;
	return $session->{node}->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks
		WHERE pid = $session->{backend} AND locktype = 'advisory' AND objid = $lock AND NOT granted")
	  || die 'the statement does not wait for the lock';
}

sub let_go_on
{
	my ($lock) = @_;
	return $locker->query_safe('SELECT pg_advisory_unlock(' . ($lock // 1) . ')');
}

# A statement waits while standbys are asked for that are not there.  An operator
# whose standby is dead then asks for fewer.
foreach my $change ([ 'nosuch', '' ], [ 'FIRST 2 (s1, nosuch)', 'FIRST 1 (s1, nosuch)' ])
{
	my ($old, $new) = @$change;

	set_names($primary, $old, 1);
	need_record($primary);
	send_sql($session, MANY_IDS);
	waits($session, "$old: a statement waits for a standby that is not there");
	$lsn = $primary->lsn('insert');
	set_names($primary, $new, 0);
	is(result($session), MANY, "$old is changed to '$new': a waiting statement goes on");
	wrote_little($primary, $lsn, "$old is changed to '$new': the statement does not wait again at each call");
}

# A statement that began while no standby was asked for
set_names($primary, '', 0);
send_interrupted(q{PERFORM next_id(5, 'used') FROM generate_series(1, } . MANY . ');');
set_names($primary, 's1', 0);
$lsn = $primary->lsn('insert');
let_go_on();
ok(session_prints($session, qr/went on/), 'a statement goes on when a standby becomes synchronous');
wrote_little($primary, $lsn, 'a statement that gets its first standby does not wait at each call');

set_names($primary, '', 0);
send_interrupted(q{RAISE NOTICE 'ID %', next_id(5, 'used');});
set_names($primary, 'nosuch', 1);
let_go_on();
waits($session, 'a statement waits for a standby that is asked for since it began');
canceled_wait_is_error($session,
	'a canceled wait for a standby that is asked for since the statement began is an error, and returns no ID');

# From now on s2 is connected but receives nothing.  Without that, it would have
# all WAL a moment later, whether anybody waits for it or not.
set_names($primary, 'FIRST 2 (s1, s2)', 0);
$session->query_safe($next);
kill 'STOP', $s2->sql('SELECT pid FROM pg_stat_wal_receiver');

# Changes between statements
set_names($primary, 's1', 0);
need_record($primary);
like($session->query_safe($next), qr/^\d+$/, 'an ID goes out when s1 has the record');
my $old = 's1';
foreach my $change (
	[ 's2', 1 ], [ 'FIRST 1 (s1, s2)', 0 ], [ 'FIRST 2 (s1, s2)', 1 ],
	[ 'ANY 1 (s1, s2)', 0 ], [ 'ANY 2 (s1, s2)', 1 ], [ '*', 0 ], [ 'FIRST 1 (s2, s1)', 1 ])
{
	my ($new, $waits) = @$change;
	my $name = "$old is changed to $new";

	set_names($primary, $new, $waits);
	$lsn = $primary->lsn('insert');
	send_sql($session, MANY_IDS);
	if ($waits)
	{
		waits($session, "$name: no ID goes out from the record that s1 has");
		canceled_wait_is_error($session, "$name: a canceled wait is an error");
	}
	else
	{
		is(result_or_wait($session), MANY, "$name: IDs go out from the record that s1 has");
		wrote_little($primary, $lsn, "$name: the statement does not wait at each call");
	}
	$old = $new;
}

# Changes in mid-statement.  The first reload is pending when the second comes.
foreach my $change ([ 's1', 's2' ], [ 'FIRST 1 (s1, s2)', 'FIRST 2 (s1, s2)' ])
{
	my ($old, $new) = @$change;

	set_names($primary, $old, 0);
	send_interrupted(q{PERFORM next_id(5, 'used'); PERFORM pg_advisory_xact_lock(2); PERFORM next_id(5, 'used');});
	$locker->query_safe('SELECT pg_advisory_lock(2)');
	set_names($primary, $old, 0);
	let_go_on();
	waits_for_lock($session, 2);
	set_names($primary, $new, 1);
	let_go_on(2);
	waits($session, "$old is changed to $new in mid-statement: the statement waits");
	cancel($session);
}

# A standby that has written WAL, and does not flush it.  That a call with remote_write
# has waited is not enough for one with "on" later in the same statement.
my $writer = writing_standby($primary);
$session->query_safe('SET synchronous_commit = remote_write');
send_interrupted(q{PERFORM next_id(5, 'used'); RAISE NOTICE 'written';
		SET LOCAL synchronous_commit = on; PERFORM next_id(5, 'used');});
set_names($primary, 'writer', 1);
let_go_on();
ok(session_prints($session, qr/written/), 'a call waits until a standby has written');
$session->{stderr} =~ s/.*written\n//;
waits($session, 'the next call in the statement waits until the standby has flushed');
cancel($session);
$writer->kill_kill;

# The synchronous standby that had a record dies, and s2, without it, takes over.
my %query = (time => $next, counter => q{SELECT next_id(9, 'counted', 'decimal')});
my %session = map { $_ => session($primary) } keys %query;
set_names($primary, 'FIRST 1 (s1, s2)', 0);
need_record($primary);
$primary->sql(q{
	SET synchronous_commit = local;
	SELECT setval('counted', last_value + 2000) FROM counted});
my %had = map { $_ => $session{$_}->query_safe($query{$_}) } keys %query;

$s1->stop('immediate');
$answering = undef;
ok( $primary->poll_query_until('postgres', q{
		SELECT string_agg(application_name || sync_state, '') = 's2sync' FROM pg_stat_replication}),
	's1 is dead, and s2 synchronous');
send_sql($session{$_}, $query{$_}) foreach keys %query;
my %taken = map { $_ => result_or_wait($session{$_}) } keys %query;
is($taken{$_}, '', "$_: no ID goes out from the record that only s1 had") foreach sort keys %query;

# The stopped WAL receiver would not let s2 be promoted.
crash($s2);
fail_over($primary, $s2);
foreach my $kind (sort keys %query)
{
	my $after = $s2->sql($query{$kind});

	cmp_ok($after, '<=', $had{$kind}, "$kind: s2 was promoted without the record that s1 had (control)");
	ok($taken{$kind} eq '' || $taken{$kind} < $after, "$kind: s2 repeats no ID that went out after the death of s1");
}

$s2->stop;

# --- a checkpointer that has not read the setting ------------------------------------

# It reads the setting when the server starts, and notes in shared memory whether standbys
# are asked for.  gdb stops it before it does that.
SKIP:
{
	my $node = primary('unread');
	$node->append_conf('postgresql.conf', "synchronous_standby_names = 'nosuch'\n");
	# The first process that the postmaster starts is the checkpointer, if there are no
	# workers for input and output.
	$node->append_conf('postgresql.conf', "io_method = sync\n") if $node->pg_version >= 18;
	$node->stop;
	my $gdb = hold_at([ 'postgres', '-D', $node->data_dir ], 'SyncRepUpdateSyncStandbysDefined')
	  or skip 'gdb cannot hold a server', 7;
	is_held($gdb);
	# gdb goes on, too, if it could not run the program.
	skip 'gdb cannot run a server here', 7 unless ${ $gdb->{log} } =~ /\bBreakpoint 1, /;
	ok($node->poll_query_until('postgres', 'SELECT true'),
		'the server takes sessions before its checkpointer has read synchronous_standby_names');
	$node->_update_pid(1);
	(my ($asking, $interrupted), $locker) = map { session($node) } 1 .. 3;

	send_sql($asking, $next);
	waits($asking, 'a session waits for the standby of its own copy of the setting');

	# A session in mid-statement does not know yet what the new configuration says.
	$locker->query_safe('SELECT pg_advisory_lock(1)');
	send_sql($interrupted, qq{DO \$\$ BEGIN
		PERFORM pg_advisory_lock(1);
		RAISE NOTICE 'ID %', ($next);
		END \$\$});
	waits_for_lock($interrupted, 1);
	$node->sql('SELECT pg_reload_conf()');
	let_go_on();
	waits($interrupted, 'so does a session that has not read a new configuration yet');

	let_go($gdb);
	foreach my $session ($asking, $interrupted)
	{
		waits($session, 'when the checkpointer has read it, the session waits for the standby');
	}
	$node->sql(q{ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf()});
	foreach my $session ($asking, $interrupted)
	{
		ok(session_prints($session, qr/\d{15}/), 'the session has its ID once no standby is asked for');
	}
	$node->stop;
}

done_testing();
