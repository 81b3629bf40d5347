# The layout decimal has no clock.  Its numbers go on after a crash.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('decimal');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE SEQUENCE decimal MAXVALUE 92233720199999');
my $next = q{SELECT next_id(9, 'decimal', 'decimal')};

my $before = $node->safe_psql('postgres', "SELECT max(id) FROM ($next AS id FROM generate_series(1, 5000)) t");
crash_and_start($node);
my $after = $node->safe_psql('postgres', $next);
cmp_ok($after, '>', $before, 'the next ID is larger after a crash');
cmp_ok(($after - $before) / 10**10, '<=', 1025, 'a crash skips no more than the 1,024 numbers that the WAL covered');

$node->stop;
done_testing();
