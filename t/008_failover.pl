# Promotion: what the new primary knows of the IDs that the old one gave out.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $next = q{SELECT next_id(5, 'used')};
my $nextval = q{SELECT nextval('plain')};
my $count = 0;

# A primary and a standby that has all of it.
sub pair
{
	my (%params) = @_;
	$count++;
	my $primary = server_ahead_of_clock("primary$count", <<EOC, allows_streaming => 1);
autovacuum = off
checkpoint_timeout = 1h
wal_receiver_status_interval = 1
wal_retrieve_retry_interval = 100ms
EOC
	$primary->safe_psql('postgres', 'ALTER SEQUENCE used RESTART') if $params{clock};
	$primary->backup('base');
	my $standby = PostgreSQL::Test::Cluster->new("standby$count");
	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->start;
	if ($params{synchronous})
	{
		$primary->safe_psql('postgres', q{
			ALTER SYSTEM SET synchronous_standby_names = '*';
			SELECT pg_reload_conf()});
		standby_is_synchronous($primary) or die 'the standby is not synchronous';
	}
	return ($primary, $standby);
}

# The old primary is gone for good.
sub fail_over
{
	my ($primary, $standby) = @_;
	crash($primary) if defined $primary->{_pid};
	$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
	$standby->start unless defined $standby->{_pid};
	$standby->promote;
	return;
}

# Synchronous: A writes the record that covers B's ID within an open
# transaction, B has nothing to commit, and no standby answers.
{
	my ($primary, $standby) = pair(synchronous => 1);
	my @session = map { $primary->background_psql('postgres') } 1, 2;
	foreach my $session (@session)
	{
		$session->query_safe($next);
		$session->query_safe($nextval);
	}
	my $last = $session[0]->query_safe($next);
	$primary->wait_for_catchup($standby, 'flush', $primary->lsn('insert'));
	$primary->safe_psql('postgres', 'CHECKPOINT');
	# beyond what earlier records cover
	$primary->safe_psql('postgres', q{
		SET synchronous_commit = local;
		SELECT setval('used', last_value + 2000000) FROM used;
		SELECT setval('plain', last_value + 100) FROM plain});
	$primary->wait_for_catchup($standby, 'flush', $primary->lsn('insert'));
	$standby->stop;

	$session[0]->query_safe("BEGIN; $nextval");
	my $value = $session[1]->query_safe($nextval);
	send_sql($_, $next) for @session;
	ok( wait_for(sub {
			$_->{run}->pump_nb for @session;
			(grep { $_->{stdout} =~ /\d\n/ } @session)
			  || $primary->safe_psql('postgres',
				q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'}) == 2 }),
		'two sessions wait for a standby that does not answer');
	sleep(0.2);
	$_->{run}->pump_nb for @session;
	my @taken = map { $_->{stdout} =~ /(\d+)\n/ } @session;
	is(scalar @taken, 0, 'sessions that wait for a standby get no ID');

	my $local = $primary->safe_psql('postgres', "SET synchronous_commit = local; $next");
	$_->{run}->pump_nb for @session;
	push @taken, map { $_->{stdout} =~ /(\d+)\n/ } @session;

	crash($primary);
	eval { $_->quit } for @session;
	fail_over($primary, $standby);
	my $after = $standby->safe_psql('postgres', $next);
	cmp_ok($after, '<=', $local,
		'the promoted standby repeats an ID that was taken with synchronous_commit = local (control)');
	is(scalar(grep { $_ >= $after } $last, @taken), 0,
		'the promoted standby repeats no ID of sessions that waited for it');
  SKIP:
	{
		skip 'nextval() does not repeat a value here', 1
		  if $standby->safe_psql('postgres', $nextval) > $value;
		pass('nextval() on the promoted standby repeats a value (control)');
	}
	$standby->stop;
}

# Synchronous, with a standby that has all but replays nothing.
{
	my ($primary, $standby) = pair(synchronous => 1);
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	ok( $standby->poll_query_until('postgres',
			q{SELECT pg_get_wal_replay_pause_state() = 'paused'}),
		'the standby pauses its replay');
	$primary->safe_psql('postgres', q{SELECT setval('used', last_value + 2000000) FROM used});
	# in one session, as the first one of each has a record of its own
	my $last = $primary->safe_psql('postgres',
		q{SELECT max(next_id(5, 'used')) FROM generate_series(1, 1000)});
	is($standby->safe_psql('postgres',
			"SELECT last_value < ($last >> 23) * 1024 FROM used"), 't',
		'a standby whose replay is paused does not know of the last ID');
	fail_over($primary, $standby);
	cmp_ok($standby->safe_psql('postgres', $next), '>', $last,
		'the next ID is larger on a standby that was promoted while its replay was paused');
	$standby->stop;
}

# Asynchronous, and the standby lags behind: the clock covers what it has not
# received, once it has reached a later tick than the last ID's.
{
	my ($primary, $standby) = pair(clock => 1);
	$primary->append_conf('postgresql.conf', "snowflake.max_lead = '1s'\n");
	$primary->reload;
	my $received = $primary->safe_psql('postgres', $next);
	$primary->wait_for_catchup($standby, 'flush', $primary->lsn('insert'));
	$standby->stop;
	# beyond what the standby's last record covers
	sleep(1.1);
	my $last = $primary->safe_psql('postgres',
		q{SELECT max(next_id(5, 'used')) FROM generate_series(1, 100000)});
	my $time = $primary->safe_psql('postgres', "SELECT snowflake_timestamp($last) + interval '1 ms'");
	cmp_ok($last - $received, '>', 1100 << 23, 'the standby lags by more IDs than its last record covers');
	fail_over($primary, $standby);
	ok($standby->poll_query_until('postgres', "SELECT clock_timestamp() >= '$time'"),
		'the clock of the promoted standby passes the tick of the last ID');
	is($standby->safe_psql('postgres', "SELECT last_value < ($last >> 23) * 1024 FROM used"), 't',
		'the sequence of the standby that lagged is behind the last ID');
	cmp_ok(next_id($standby), '>', $last, 'the next ID is larger on a standby that lagged, by its clock');

	# That is all that is promised: IDs further ahead of the clock are lost
	# with the old primary.  Its operator sets the sequence to the last one.
	$standby->safe_psql('postgres', q{ALTER SYSTEM SET snowflake.max_lead = '30d'; SELECT pg_reload_conf()});
	my $lost = ($last >> 23) + 86_400_000 << 23;
	cmp_ok($standby->safe_psql('postgres', $next), '<', $lost,
		'a standby that lagged makes smaller IDs than a lost one that was a day ahead of the clock');
	$standby->safe_psql('postgres', "SELECT setval('used', ($lost >> 23) * 1024 + 1023)");
	cmp_ok($standby->safe_psql('postgres', $next), '>', $lost,
		'setval() takes the sequence of a standby that lagged above the lost IDs');
	$standby->stop;
}

# A later time in the same tick does not do.  The ticks are of 10 ms here, and
# the new primary's clock stands still.
SKIP:
{
	skip 'libfaketime is not installed', 2 unless faketime_library();

	my ($primary, $standby) = pair(clock => 1);
	my $many = q{SELECT next_id(5, 'coarse', 'sonyflake') FROM generate_series(1, 100)};
	$primary->safe_psql('postgres', q{
		SELECT format('CREATE SEQUENCE coarse MAXVALUE %s', max_value)
		FROM snowflake_layouts() WHERE name = 'sonyflake' \gexec
		SELECT next_id(5, 'coarse', 'sonyflake')});
	$primary->wait_for_catchup($standby, 'flush', $primary->lsn('insert'));
	$standby->stop;
	sleep(1.1);
	my @lost = split /\n/, $primary->safe_psql('postgres', $many);
	crash($primary);
	start_with_clock($standby, '+0');
	$standby->promote;

	# IDs of the new primary with its clock so long after the last ID's time
	my $repeated = sub {
		my ($later) = @_;
		set_clock($standby, $standby->safe_psql('postgres',
			"SELECT to_char(snowflake_timestamp($lost[-1], 'sonyflake') + interval '$later', 'YYYY-MM-DD HH24:MI:SS.US')"));
		my %made = map { $_ => 1 } split /\n/, $standby->safe_psql('postgres', $many);
		return scalar grep { $made{$_} } @lost;
	};
	cmp_ok($repeated->('9 ms'), '>', 0, 'IDs are repeated while the clock is in the tick of the last lost ID (control)');
	is($repeated->('10 ms'), 0, 'no ID is repeated once the clock is in the tick after the last lost ID');
	$standby->stop;
}

done_testing();
