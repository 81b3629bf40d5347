# A WAL sender gives its standby the priority that synchronous_standby_names says, in
# shared memory.  If the setting changes while it does not run, the priority is out of
# date.  No ID goes out because of it, nor waits for more than a commit would.

use SnowflakeTest;
use StandbyTest;

my $primary = primary('primary');
$primary->sql('CREATE SEQUENCE counted MAXVALUE 92233720199999');
my ($s1, $s2) = map { standby_of($primary, $_) } 's1', 's2';
my %query = (time => q{SELECT next_id(5, 'used')}, counter => q{SELECT next_id(9, 'counted', 'decimal')});
my $session = session($primary);
my $sender = sender();

# s1 could not stop.
END { kill 'CONT', $sender if $sender }

sub sender { return $primary->sql(q{SELECT pid FROM pg_stat_replication WHERE application_name = 's1'}) }

sub read_names
{
	my ($names) = @_;
	return $primary->sql("ALTER SYSTEM SET synchronous_standby_names = '$names'; SELECT pg_reload_conf()");
}

# Take a last ID from a record that s1 has, and change the names while its WAL sender
# is stopped, until that of s2 has the priority.
sub change_names
{
	my ($old, $new, $priority) = @_;

	set_names($primary, $old, 0);
	$primary->sql(q{
		SET synchronous_commit = local;
		SELECT setval('counted', last_value + 2000) FROM counted});
	need_record($primary);
	my %had = map { $_ => $session->query_safe($query{$_}) } keys %query;

	kill 'STOP', $sender;
	read_names($new);
	$primary->poll_query_until('postgres', "SELECT sync_priority = $priority FROM pg_stat_replication
		WHERE application_name = 's2'") or die 'the WAL sender of s2 does not read the setting';
	return %had;
}

# --- priorities that are right --------------------------------------------------------

# A call that went by anything else would write WAL.
sub goes_by_priorities
{
	my ($name) = @_;

	$session->query_safe($query{time});
	ok(wait_for(sub {
			my $before = $primary->lsn('insert');
			$session->query_safe("SELECT pg_sleep(0.02); $query{time}");
			return $primary->lsn('insert') eq $before }),
		"a session goes by the priorities of standbys: $name");
}

foreach my $names ('s1', '"s1"', 'S1', 'FIRST 1 (nosuch, s1)', 'FIRST 2 (s1, s2)', 'ANY 1 (s2, "S1")', '*', 'nosuch, *')
{
	set_names($primary, $names, 0);
	goes_by_priorities($names);
}
set_names($primary, 's1, s2', 0);
goes_by_priorities('s1 is the first');
$s1->restart;
goes_by_priorities('s1 was away');
$sender = sender();

# --- a priority that is out of date, and a standby that has all -----------------------

change_names('ANY 1 (s1)', 'ANY 1 (s2)', 1);
foreach my $asking ($session, session($primary))
{
	my $lsn = $primary->lsn('insert');

	send_sql($asking, MANY_IDS);
	is(result($asking), MANY, 'IDs go out when the standby that is asked for now has the record');
	wrote_little($primary, $lsn, 'the statement does not wait at each call');
}
kill 'CONT', $sender;

# Somebody changes the file, and does not say so.  A session in mid-statement reads it late.
my $locker = session($primary);
set_names($primary, 's1', 0);
$locker->query_safe('SELECT pg_advisory_lock(1)');
send_sql($session, 'SELECT pg_advisory_xact_lock(1)');
$primary->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $session->{backend}")
  or die;
set_names($primary, 's1', 0);
$primary->sql(q{ALTER SYSTEM SET synchronous_standby_names = 'nosuch'});
$locker->query_safe('SELECT pg_advisory_unlock(1)');
result($session);
like($session->query_safe('SHOW synchronous_standby_names'), qr/nosuch/, 'a session has read the setting before WAL senders');
send_sql($session, $query{time});
like(result($session), qr/^\d+$/, 'it waits no longer than a commit does');

# --- a priority that is out of date, and a standby that lacks the record --------------

kill 'STOP', $s2->sql('SELECT pid FROM pg_stat_wal_receiver');
my (%had, %taken);
foreach my $change (
	[ 'ANY 1 (s1)', 'ANY 1 (s2)' ], [ 'FIRST 1 (s1, s2)', 'FIRST 1 (s2, s1)' ],
	[ 's1, *', 's2, *' ], [ 's1', 's2' ])
{
	my ($old, $new) = @$change;
	my $name = "$old is changed to $new";

	%had = change_names($old, $new, 1);
	my %asking = map { $_ => session($primary) } keys %query;
	$asking{'the same session'} = $session;
	foreach my $kind (sort keys %asking)
	{
		send_sql($asking{$kind}, $query{$kind} // $query{time});
		waits($asking{$kind}, "$name: $kind: no ID goes out from the record that s1 has");
		$taken{$kind} = $asking{$kind}{stdout};
		canceled_wait_is_error($asking{$kind}, "$name: $kind: a canceled wait is an error") if $taken{$kind} eq '';
		$asking{$kind}->quit if $kind ne 'the same session';
	}
	kill 'CONT', $sender if $new ne 's2';
}

# The stopped WAL receiver would not let s2 be promoted.
crash($s2);
fail_over($primary, $s2);
$sender = undef;
foreach my $kind (sort keys %query)
{
	my $after = $s2->sql($query{$kind});

	cmp_ok($after, '<=', $had{$kind}, "$kind: s2 was promoted without the record that s1 had (control)");
	ok($taken{$kind} eq '' || $taken{$kind} < $after, "$kind: s2 repeats no ID that went out while it was asked for");
}

$s2->stop;
done_testing();
