# SELECT FOR UPDATE of old versions of PostgreSQL left its transaction in the xmax
# of a sequence's row.  This hides the row when the transaction has committed.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_ahead_of_clock('locked', "ignore_checksum_failure = on\n");
next_id($node);
my $committed = $node->safe_psql('postgres', 'SELECT pg_current_xact_id()::xid');
my $path = file_of($node, 'used');
$node->stop;
my $page = slurp_file($path);
my $upper = unpack 'S', substr($page, 14, 2);
my $locked = $page;
my $flags = unpack('S', substr($page, $upper + 20, 2));
substr($locked, $upper + 4, 4) = pack 'L', $committed;
substr($locked, $upper + 20, 2) = pack 'S', $flags & ~0x0800 | 0x0400;
write_file($path, $locked);
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM used'), 0, 'an old xmax hides the row of a sequence');
is($node->safe_psql('postgres', "SELECT next_id(5, 'used') > 0"), 't', 'next_id() finds a row that an old xmax hides');
# A SELECT could set the flags, so none may come before.
$node->safe_psql('postgres', 'CHECKPOINT');
$locked = slurp_file($path);
is(unpack('L', substr($locked, $upper + 4, 4)), 0, 'next_id() removes an old xmax');
is(unpack('S', substr($locked, $upper + 20, 2)), $flags, 'next_id() restores the flags that go with no xmax');
is($node->safe_psql('postgres', 'SELECT count(*) FROM used'), 1, 'next_id() makes a hidden row visible again');

$node->stop;
done_testing();
