# A test whose query never ends says which query, where, and what it waits for: by psql(), in a session, and
# while it waits for something else.

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

# What psql() has left in the queue has ended when the lock is free.
$holder->query_safe('COMMIT');
is($node->sql('SELECT count(*) FROM photos'), 0, 'the server goes on');
done_testing();
