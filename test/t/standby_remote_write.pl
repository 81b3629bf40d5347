# A standby has written a record and not flushed it, which is enough for
# synchronous_commit = remote_write only.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;
use StandbyTest;

plan skip_all => 'gdb is not installed' unless gdb_is_installed();

my $primary = primary('primary');
my $standby = standby_of($primary, 'standby');
my $next = q{SELECT next_id(5, 'used')};

make_synchronous($primary) or die 'the standby is not synchronous';
my $session = session($primary);
$session->query_safe("$next; SET synchronous_commit = remote_write");

# The record must be the next WAL that the standby is sent.
need_record($primary);
my $writer = $primary->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'});
kill 'STOP', $writer;
all_flushed($primary, $standby);
my $receiver = $standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
my $gdb = hold_at($receiver, 'issue_xlog_fsync');
if (!$gdb->{attached})
{
	kill 'CONT', $writer;
	plan skip_all => 'gdb cannot attach to a server process or finds no functions';
}

send_sql($session, $next);
ok($primary->poll_query_until('postgres', 'SELECT write_lsn > flush_lsn FROM pg_stat_replication'),
	'the standby has written the record, and does not flush it');
like(result_or_wait($session), qr/^\d+$/, 'a record that is written, not flushed, is enough for synchronous_commit = remote_write');
send_sql($session, 'SET synchronous_commit = on');
send_sql($session, $next);
waits($session, 'a record that is written, not flushed, is not enough for synchronous_commit = on in the same session');

let_go($gdb);
$gdb->{run}->finish;
kill 'CONT', $writer;
like(result($session), qr/^\d+$/, 'a session gets its ID when the standby flushes the record');

$session->quit;
$standby->stop;
$primary->stop;
done_testing();
