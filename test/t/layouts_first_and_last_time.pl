# The time of a layout begins with its epoch and ends with its last timestamp.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_with_clock('layout_time', '+0');
my $next = 'SELECT next_id(5)';

$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');

set_clock($node, '2011-08-24 21:07:01');
fails_with($node, $next, qr/^22008 the clock is behind the epoch of the layout/,
	'next_id() fails a second before the epoch');
set_clock($node, '2011-08-24 21:07:02');
is($node->safe_psql('postgres', "$next BETWEEN 1 AND 1::bigint << 40"), 't',
	'next_id() makes the first IDs in the second of the epoch');

SKIP:
{
	skip 'the clock ends in 2038', 3 unless far_future($node);

	set_clock($node, '2046-06-27 17:00:45');
	cmp_ok($node->safe_psql('postgres', 'SELECT next_id(8191)'), '>', 9_223_371_900_000_000_000,
		'next_id() makes the largest IDs in the last seconds of the layout');
	foreach my $time ('2046-06-27 17:00:50', '@2080-01-01 00:00:00')
	{
		set_clock($node, $time);
		fails_with($node, $next, qr/^2200H the time of the layout is used up/,
			"next_id() fails after the end of the layout: $time");
	}
}

$node->stop;
done_testing();
