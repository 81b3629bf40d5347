# Transactions that roll back to a savepoint, or that are prepared, and a crash.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $next = q{SELECT next_id(5, 'used')};
my $node = server_ahead_of_clock('transactions', "max_prepared_transactions = 2\n");

my $taken = $node->safe_psql('postgres', qq{
	BEGIN;
	SAVEPOINT s;
	SELECT setval('used', last_value + 2000000) FROM used \\g /dev/null
	$next;
	ROLLBACK TO s;
	COMMIT});
next_id_is_larger_after_crash($node, $taken, 'one whose transaction rolled back to a savepoint');

$node->safe_psql('postgres', "BEGIN; $next; PREPARE TRANSACTION 'p'");
crash_and_start($node);
like(
	sqlstate_of($node, q{SET lock_timeout = '100ms'; ALTER SEQUENCE used RESTART}),
	qr/^55P03 /, 'a transaction prepared before a crash keeps others from restarting its sequence');
like(next_id($node), qr/^\d+$/, 'next_id() uses the sequence of a prepared transaction');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});

# The promise ends here: the rollback of a rewrite brings the old file back.
my ($inside, $outside) = split /\n/, $node->safe_psql('postgres', qq{
	BEGIN;
	SAVEPOINT s;
	ALTER SEQUENCE used SET UNLOGGED;
	ALTER SEQUENCE used SET LOGGED;
	$next;
	ROLLBACK TO s;
	$next;
	COMMIT});
is($outside, $inside, 'an ID is repeated after a rewrite of the sequence was rolled back to a savepoint (as documented)');

$node->stop;
done_testing();
