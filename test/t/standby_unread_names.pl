# No ID goes out before the server knows whether it has to wait for a standby.
#
# The checkpointer reads synchronous_standby_names when the server starts, and notes
# in shared memory whether any are asked for.  Here gdb stops it before it does that.
# No standby is there.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;
use StandbyTest;

plan skip_all => 'gdb is not installed' unless gdb_is_installed();

my $node = primary('unread');
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
plan skip_all => 'this release does not show whether the checkpointer has read the setting'
  unless grep { $version >= $_->[0] && $version < $_->[1] } [ 150013, 160000 ], [ 160009, 170000 ], [ 170005, 1e9 ];

$node->append_conf('postgresql.conf', "synchronous_standby_names = 'nosuch'\n");
$node->append_conf('postgresql.conf', "io_method = sync\n") if $version >= 180000;
$node->stop;

# The first process that the postmaster starts is the checkpointer, if there are no
# workers for input and output.
my $gdb = hold_at([ 'postgres', '-D', $node->data_dir ], 'SyncRepUpdateSyncStandbysDefined');
plan skip_all => 'gdb cannot start a server or finds no functions' unless $gdb->{attached};
wait_for(sub { $gdb->{run}->pump_nb; -e $gdb->{reached} }) or die "the setting was not read: ${$gdb->{log}}";
# gdb goes on, too, if it could not run the program.
plan skip_all => 'gdb cannot run a server here' unless ${$gdb->{log}} =~ /\bBreakpoint 1, /;
ok($node->poll_query_until('postgres', 'SELECT true'),
	'the server takes sessions before its checkpointer has read synchronous_standby_names');
$node->_update_pid(1);

my ($session, $interrupted, $locker) = map { session($node) } 1 .. 3;

# The session has printed nothing and waits for a standby.
sub waits_for_standby
{
	my ($session, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	wait_for(sub {
			$session->{run}->pump_nb;
			return "$session->{stdout}$session->{stderr}" =~ /\n/ || $node->safe_psql('postgres',
				"SELECT count(*) FROM pg_stat_activity WHERE pid = $session->{backend} AND wait_event = 'SyncRep'") });
	return is("$session->{stdout}$session->{stderr}", '', $name);
}

send_sql($session, q{SELECT next_id(5, 'used')});
waits_for_standby($session, 'a session waits for the standby of its own copy of the setting');

# A session in mid-statement does not know yet what the new configuration says.
$locker->query_safe('SELECT pg_advisory_lock(1)');
send_sql($interrupted, q{DO $$ BEGIN PERFORM pg_advisory_lock(1); RAISE NOTICE 'ID %', next_id(5, 'used'); END $$});
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_locks WHERE pid = $interrupted->{backend} AND NOT granted")
  or die 'the statement does not wait for the lock';
$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
$locker->query_safe('SELECT pg_advisory_unlock(1)');
waits_for_standby($interrupted, 'so does a session that has not read a new configuration yet');

let_go($gdb);
$gdb->{run}->finish;
waits_for_standby($_, 'when the checkpointer has read it, the session waits for the standby') foreach $session,
	$interrupted;
$node->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf()});
ok(session_prints($_, qr/\d{15}/), 'the session has its ID once no standby is asked for') foreach $session,
	$interrupted;

$node->stop;
done_testing();
