# A promoted standby repeats no ID that the old primary gave out and that it or
# its clock knows of.  standby_wait.pl has a synchronous standby that does not answer.

use Time::HiRes qw(sleep);
use SnowflakeTest;
use StandbyTest;

# A synchronous standby that has all WAL and replays none.
{
	my $primary = primary('primary');
	my $standby = standby_of($primary, 'paused');
	make_synchronous($primary);

	$standby->sql('SELECT pg_wal_replay_pause()');
	$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die 'no pause';
	need_record($primary);
	# A session's first ID has a record of its own, so take them all in one.
	my $last = $primary->sql(q{SELECT max(next_id(5, 'used')) FROM generate_series(1, 1000)});
	cmp_ok($standby->sql('SELECT last_value FROM used'), '<', value_of($last),
		'a standby whose replay is paused does not know of the last ID');
	# A standby may have its primary's setting, which does nothing before promotion.
	$standby->append_conf('postgresql.conf', q{synchronous_standby_names = 's1'});
	$standby->reload;
	fail_over($primary, $standby);

	my $call_waits = sub {
		my $session = session($standby);
		send_sql($session, q{SELECT next_id(5, 'used')});
		ok(sessions_wait_for_standby($standby, 1), 'a promoted standby waits for the one that it asks for');
		return $session;
	};
	my $waiting = $call_waits->();
	my ($ask_for_other) = map { $_->{code} }
	  blocks_in('doc/operations.md', 'The synchronous standby does not answer');
	my $other = standby_of($standby, 's3');
	$standby->sql($ask_for_other);
	cmp_ok(result($waiting), '>', $last,
		'a call on a promoted standby goes on when it asks for a standby that follows it');
	$other->stop;
	# A session's record may have come with the last call.
	need_record($standby);
	$waiting = $call_waits->();
	set_names($standby, '', 0);
	cmp_ok(result($waiting), '>', $last, 'a call on a promoted standby goes on when it no longer asks for a standby');
	$standby->stop;
}

# An asynchronous standby that lags.  The clock covers what it has not received, once it
# has reached a later tick than the last ID's.  A later time in the same tick does not
# do.  Ticks are of 10 ms here, and the new primary's clock stands still.
my $primary = primary('coarse');
my $standby = standby_of($primary, 'frozen');
my $many = q{SELECT next_id(5, 'coarse', 'sonyflake') FROM generate_series(1, 100)};

$primary->sql(q{
	CREATE SEQUENCE coarse;
	SELECT snowflake_alter_sequence('coarse', 'sonyflake');
	SELECT next_id(5, 'coarse', 'sonyflake')});
all_flushed($primary, $standby);
$standby->stop;
sleep(1.1);
my @lost = split /\n/, $primary->sql($many);
crash($primary);
start_with_clock($standby, '+0');
$standby->promote;

foreach my $case ([ '9 ms', 't', 'while the clock is in the tick of the last lost ID (control)' ],
	[ '10 ms', 'f', 'once the clock is in the tick after the last lost ID' ])
{
	my ($later, $repeats, $when) = @$case;
	set_clock($standby, $standby->sql(
		"SELECT to_char(snowflake_timestamp($lost[-1], 'sonyflake') + interval '$later',
			'YYYY-MM-DD HH24:MI:SS.US')"));
	is($standby->sql("SELECT ARRAY($many) && '{" . join(',', @lost) . "}'"), $repeats,
		"whether IDs are repeated $when");
}
$standby->stop;

done_testing();
