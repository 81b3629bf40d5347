# The layout decimal has no clock.  Its numbers go on after a crash, and two servers
# have generators of their own.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my @nodes = map {
	my ($name, $start) = @$_;
	my $node = server_in_utc($name);

	$node->safe_psql('postgres', qq{
		CREATE EXTENSION snowflake;
		CREATE SEQUENCE decimal MAXVALUE 92233720199999 START $start});
	$node;
} [ 'one', 1 ], [ 'other', 50000 * 922337202 ];
my ($node, $other) = @nodes;
my $next = q{SELECT next_id(9, 'decimal', 'decimal')};

my $before = $node->safe_psql('postgres', "SELECT max(id) FROM ($next AS id FROM generate_series(1, 5000)) t");
crash_and_start($node);
my $after = $node->safe_psql('postgres', $next);
cmp_ok($after, '>', $before, 'decimal: the next ID is larger after a crash');
cmp_ok(($after - $before) / 10**10, '<=', 1025, 'decimal: a crash skips no more than the 1,024 numbers that the WAL covered');

my %seen = map { $_ => 1 } map { split /\n/, $_->safe_psql('postgres',
		q{SELECT next_id(65, 'decimal', 'decimal') FROM generate_series(1, 3000)}) } @nodes;
is(scalar(keys %seen), 6000, 'decimal: two servers make no ID twice');
is($other->safe_psql('postgres', q{
		SELECT value FROM snowflake_fields(next_id(65, 'decimal', 'decimal'), 'decimal') WHERE field = 'generator'}),
	50000, 'decimal: a sequence that starts elsewhere has another generator');

$_->stop foreach @nodes;
done_testing();
