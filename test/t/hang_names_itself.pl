# A test whose query never ends says which query, where, and what it waits for: by psql(), in a session, and
# while it waits for something else.  So does one whose program never ends, or whose session has ended.

use IPC::Run;
use SnowflakeTest;

my $node = server_in_utc('hang');
my ($holder, $waiter) = map { session($node) } 1 .. 2;
$node->sql('CREATE TABLE photos (id bigint)');
$holder->query_safe('BEGIN; LOCK TABLE photos');

# What a call dies with when its time is over
sub dies_with
{
	my ($call) = @_;
	local $PostgreSQL::Test::Utils::timeout_default = 3;
	eval { $call->() };
	return $@;
}

my $blocked = qr/
	^database\s+\|\ postgres\n.*
	^state\s+\|\ active\n.*
	^waits_for\s+\|\ Lock:\ relation\n
	^waits_for_lock\s+\|\ \w+\ relation\ photos\n
	^blocked_by\s+\|\ \{$holder->{backend}\}\n
	^query\s+\|\ /msx;
my $line = __LINE__ + 1;
my $said = dies_with(sub { $node->sql('SELECT count(*) FROM photos') });
like($said, qr/^This hangs since .* for [3-9] s, at \S*hang_names_itself.pl line $line:\nSELECT count/,
	'a query of psql() names itself, its place and its time');
like($said, qr/^Server hang:\n.*${blocked}SELECT count/ms, '... and what it waits for');

$waiter->{timeout}->start(3);
$said = dies_with(sub { $waiter->query('DELETE FROM photos') });
like($said, qr/^This hangs since .*:\nDELETE.*${blocked}DELETE/ms, 'so does a query of a session');

like(dies_with(sub { wait_for(sub { return 0 }, 'photos of tomorrow') }),
	qr/^This hangs since .*:\nphotos of tomorrow\n.*${blocked}/ms, 'a wait whose result nobody looks at ends the test');
like(dies_with(sub { $node->poll_query_until('postgres', "SELECT 'tomorrow' = 'today'") }),
	qr/^This hangs since .*:\nSELECT 'tomorrow'/m, '... also by a query');
is(wait_for(sub { return 1 }, 'photos of today'), 1, '... but not one that comes true');
like(dies_with(sub { ends(IPC::Run::start([ 'sleep', 60 ]), 'sleep') }), qr/^This hangs since .*:\nsleep, which is to end\n/m,
	'a program that does not end names itself');

# What psql() has left in the queue has ended when the lock is free.
$holder->query_safe('COMMIT');
is($node->sql('SELECT count(*) FROM photos'), 0, 'the server goes on');

# Sessions whose server has ended.  psql ends when it notices, or a moment later.
my ($asked, $sent) = map { session($node) } 1 .. 2;
$node->stop('immediate');
foreach my $session ($asked, $sent)
{
	eval { $session->query('SELECT 18') };
}
my $lost = qr/^This was asked of a session that has ended, at \S*hang_names_itself.pl line \d+:\n/;
like(dies_with(sub { $asked->query('SELECT 19') }), qr/${lost}SELECT 19\n/, 'a query of a session that has ended names itself');
like(dies_with(sub { send_sql($sent, 'SELECT 20'); session_prints($sent, qr/20/) }), qr/${lost}SELECT 20\n/,
	'... also one that was sent');
done_testing();
