# A process that holds the lock on the sequence's page stops: it goes on later, or
# it is killed.

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep);
use SnowflakeTest;

plan skip_all => 'gdb is not installed' unless gdb_is_installed();

my $next = q{SELECT next_id(5, 'used')};
my $node = server_ahead_of_clock('stopped', "autovacuum = off\nrestart_after_crash = on\n");
my ($holder, $waiter) = map { $node->background_psql('postgres', on_error_stop => 0) } 1, 2;
my ($holder_pid, $waiter_pid) = map { $_->query_safe('SELECT pg_backend_pid()') } $holder, $waiter;
$_->query_safe($next) foreach $holder, $waiter;

# Stop the one session at a function, or when that returns, where it holds the lock
# on the page.  Have the other one ask for an ID.
sub stop_holder
{
	my $held = hold_at($holder_pid, @_);
	return undef unless $held->{attached};
	send_sql($holder, $next);
	wait_for(sub { $held->{run}->pump_nb; -e $held->{reached} }) or die "not reached: ${$held->{log}}";
	send_sql($waiter, $next);
	return $held;
}

my $waits = 'SELECT ' . WAITS_FOR_PAGE . " FROM pg_stat_activity WHERE pid = $waiter_pid";
my $held = stop_holder('GetRedoRecPtr');
if (!defined $held)
{
	$node->stop('immediate');
	plan skip_all => 'gdb cannot attach to a server process or finds no functions';
}
ok($node->poll_query_until('postgres', $waits), 'a session waits while the holder of the page\'s lock is stopped');

# nextval() cannot be canceled here either.
$node->safe_psql('postgres', "SELECT pg_cancel_backend($waiter_pid)");
sleep(0.2);
is($node->safe_psql('postgres', $waits), 't',
	'a session that waits for the page\'s lock goes on waiting when it is canceled');
$waiter->{run}->pump_nb;
is($waiter->{stdout} . $waiter->{stderr}, '',
	'a session that waits for the page\'s lock gets no ID when it is canceled');
let_go($held);
ok(session_prints($waiter, qr/\n/), 'a session goes on when the holder of the page\'s lock goes on');
$held->{run}->finish;
$waiter->{stderr} = '';
my $taken = $waiter->query_safe($next);

# The holder is killed when it has inserted a record.
$node->safe_psql('postgres', q{SELECT setval('used', last_value + 2000000) FROM used});
$held = stop_holder('XLogInsert', 1);
ok($node->poll_query_until('postgres', $waits),
	'a session waits while the holder of the page\'s lock is stopped again');
kill 'KILL', $holder_pid;
let_go($held);
$held->{run}->finish;
eval { $_->quit } foreach $holder, $waiter;
ok($node->poll_query_until('postgres', 'SELECT true'),
	'the server recovers when the holder of the page\'s lock is killed');
cmp_ok(next_id($node), '>', $taken, 'the next ID is larger after the holder of the page\'s lock was killed');

$node->stop;
done_testing();
