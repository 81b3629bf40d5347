# A server made IDs while its clock was five years ahead.  It refuses to make more
# when the clock is right again, and doc/operations.md has a way out.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $five_years = '+157680000';
my $insert = 'INSERT INTO photos DEFAULT VALUES';
my $node = server_with_clock('years', $five_years, "snowflake.max_wait = '1h'\n");
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (n int GENERATED ALWAYS AS IDENTITY, id bigint PRIMARY KEY DEFAULT next_id(5))});
my $future = $node->safe_psql('postgres', "$insert RETURNING id");

# An INSERT that waits would do so for an hour.
set_clock($node, '+0');
my $refused = qr/^53400 sequence "next_id_seq" is 18\d\d days [\d:.]+ ahead of the clock/;
my $timed_out;
like(sqlstate_of($node, $insert, timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \$timed_out),
	$refused, 'an INSERT after the clock was set back by five years is refused, with how far the sequence is ahead');
ok(!$timed_out, 'an INSERT is refused at once if the sequence is years ahead of the clock');
is( $node->safe_psql('postgres', q{
		SELECT lead > interval '1800 days', last_timestamp > now() + interval '1800 days' FROM snowflake_status()}),
	't|t', 'snowflake_status() shows that the sequence is years ahead of the clock');
crash($node);
start_with_clock($node, '+0');
like(sqlstate_of($node, $insert), $refused, 'the INSERT is still refused after a crash');

# The documentation shows this way out.
$node->safe_psql('postgres', 'CREATE ROLE app');
my ($new_sequence, $new_default) = map { $_->{code} } blocks_in('doc/operations.md', 'Give a table a new sequence and shard');
$node->safe_psql('postgres', $_) foreach $new_sequence, $new_default;
is( $node->safe_psql('postgres', qq{
		$insert RETURNING abs(extract(epoch FROM snowflake_timestamp(id) - clock_timestamp())) < 60, snowflake_shard(id)}),
	't|6', 'a new sequence with a new shard begins with the clock');
is( $node->safe_psql('postgres', "SELECT snowflake_timestamp(id) > now() + interval '1800 days' FROM photos WHERE id = $future"),
	't', 'IDs made while the clock was ahead keep their times');

# Five years later, the new shard's IDs have the same times as the old one's.
set_clock($node, $five_years);
$node->safe_psql('postgres', 'INSERT INTO photos SELECT FROM generate_series(1, 3000)');
is( $node->safe_psql('postgres', q{
		SELECT count(*) FROM photos a JOIN photos b ON a.id >> 23 = b.id >> 23 AND a.id <> b.id
		WHERE snowflake_shard(a.id) = snowflake_shard(b.id) AND snowflake_sequence(a.id) = snowflake_sequence(b.id)}),
	0, 'the new shard does not repeat the IDs that the old one made five years before their time');

$node->stop;
done_testing();
