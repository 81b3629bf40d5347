# The states of snowflake_sequences() while the clock is set back, the way
# out of doc/operations.md, "IDs are ahead of the clock", and which IDs come
# again if it is the sequence that is set back.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_with_clock('ahead_of_clock', '2026-11-20 12:00:00');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; SELECT next_id(5)');

# The clock stands still at times before that ID.
my $without_wait = q{SET snowflake.max_wait = 0; SELECT 'made ' || (next_id(5) > 0)};
foreach my $case (
	[ '12:00:00', 'ok', $without_wait, qr/made true/, 'a call succeeds without a wait' ],
	[ '11:59:59.5', 'ahead', $without_wait, qr/made true/, 'a call succeeds without a wait' ],
	[ '11:59:57', 'waits', $without_wait, qr/^53400/, 'a call that may not wait fails' ],
	[ '11:00:00', 'refuses', 'SELECT next_id(5)', qr/^53400/, 'a call fails' ])
{
	my ($time, $state, $call, $result, $name) = @$case;
	set_clock($node, "2026-11-20 $time");
	is($node->safe_psql('postgres', "SELECT state FROM snowflake_sequences() WHERE sequence = 'next_id_seq'::regclass"),
		$state, "a sequence with IDs up to 12:00:00 has the state $state at $time");
	like(sqlstate_of($node, $call), $result, "$name in the state $state");
}

$node->safe_psql('postgres', q{LOAD 'snowflake'; ALTER SYSTEM SET snowflake.max_lead = '4h'});
$node->reload;
ok(wait_for(sub { $node->safe_psql('postgres', q{LOAD 'snowflake'; SHOW snowflake.max_lead}) eq '4h' }),
	'max_lead is 4h by the way out');
ok($node->safe_psql('postgres', 'SELECT next_id(5) > 0'), 'IDs go on ahead of the clock');

# The clock stands still, so that nothing but the sequence tells IDs apart.
set_clock($node, '2026-11-20 13:00:00');
my $insert = 'INSERT INTO photos DEFAULT VALUES RETURNING id';
my $first = $node->safe_psql('postgres', qq{
	CREATE TABLE photos (id bigserial PRIMARY KEY);
	ALTER TABLE photos ALTER id SET DEFAULT next_id(5, 'photos_id_seq');
	SELECT FROM snowflake_alter_sequence('photos_id_seq');
	$insert});
my $second = $node->safe_psql('postgres', "TRUNCATE photos RESTART IDENTITY; $insert");
cmp_ok($second, '>', $first, 'RESTART IDENTITY does not set back a sequence after snowflake_alter_sequence()');
my $set_back = q{SELECT setval('photos_id_seq', 1) \g /dev/null};
is($node->safe_psql('postgres', "$set_back\nTRUNCATE photos; $insert"), $second,
	'after setval() to a smaller value, an ID whose time the clock has not passed comes again');
set_clock($node, '2026-11-20 13:00:00.001');
cmp_ok($node->safe_psql('postgres', "$set_back\nTRUNCATE photos; $insert"), '>', $second,
	'after setval() to a smaller value, no ID comes again whose time the clock has passed');

$node->stop;
done_testing();
