# When snowflake_advance() has returned, the synchronous standby knows of it.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;
use StandbyTest;

my $primary = primary('primary');
ahead_of_clock($primary, 'used', '6 hours');
my $standby = standby_of($primary, 'standby');
make_synchronous($primary) or die 'the standby is not synchronous';

my ($session, $other) = map { session($primary) } 1, 2;
$_->query_safe(q{SELECT next_id(5, 'used')}) foreach $session, $other;

# The largest ID of the millisecond so many seconds after the last value.  A WAL
# record covers one second.
sub id_after
{
	my ($seconds) = @_;
	return $primary->safe_psql('postgres', "SELECT (last_value / 1024 + 1000 * $seconds << 23) | (8191 << 10) | 1023 FROM used");
}

sub advance
{
	my ($id) = @_;
	return "SELECT snowflake_advance('used', $id)";
}

# The standby does not answer.  The second call finds the sequence far enough ahead.
my $id = id_after(30);
my $smaller = id_after(20);
all_flushed($primary, $standby);
$standby->stop;
send_sql($session, 'BEGIN; ' . advance($id));
ok(sessions_wait_for_standby($primary, 1), 'a session that advances a sequence waits for the standby');
send_sql($other, advance($smaller));
ok(sessions_wait_for_standby($primary, 2), 'a session that finds the sequence advanced by another waits for the standby');
cancel($_) foreach $session, $other;
like($_->{stderr}, qr/ERROR:  canceling wait for synchronous replication/, 'a canceled wait for the standby is an error')
  foreach $session, $other;
is($session->{stdout} . $other->{stdout}, '', 'no canceled call returns');

$standby->start;
ok(standby_is_synchronous($primary), 'the standby is synchronous again after a restart');
$_->{stderr} = '' foreach $session, $other;
$session->query_safe('ROLLBACK');
$session->query_safe('BEGIN; ' . advance($id = id_after(30)) . '; ROLLBACK');
fail_over($primary, $standby);
cmp_ok($standby->safe_psql('postgres', q{SELECT next_id(0, 'used')}), '>', $id,
	'the next ID of the promoted standby is larger than the one beyond which the sequence was advanced');

$standby->stop;
done_testing();
