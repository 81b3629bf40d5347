# Lifting a sequence above rows that it does not know, by the recipe of
# doc/operations.md, "Backup and restore".

use strict;
use warnings;
use FindBin;
use Test::More;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = server_in_utc('lift');
my ($lift, $lift_other) = map { $_->{code} } grep { $_->{code} =~ /setval/ } blocks_in('doc/operations.md', 'Backup and restore');
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text);
	INSERT INTO photos SELECT snowflake_id(now() + interval '10 s', 9, 1023), 'from elsewhere'});

sub last_value { return $node->safe_psql('postgres', 'SELECT last_value FROM next_id_seq') }

$node->safe_psql('postgres', $lift);
is($node->safe_psql('postgres', "SET snowflake.max_lead = '1h'; SELECT next_id(0) > max(id) FROM photos"), 't',
	'a lifted sequence makes IDs above those in the table, with any shard');
my $before = last_value();
$node->safe_psql('postgres', $lift);
is(last_value(), $before, 'lifting a sequence again does not lower it');

# The recipe for other layouts, with the numbers of the reference
foreach my $case ([ 'twitter', 4096 ], [ 'sonyflake', 256 ], [ 'mastodon', 65536 ])
{
	my ($layout, $ids_per_tick) = @$case;

	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS tweets;
		DROP SEQUENCE IF EXISTS tweets_id_seq;
		CREATE SEQUENCE tweets_id_seq;
		SELECT snowflake_alter_sequence('tweets_id_seq', '$layout');
		CREATE TABLE tweets AS SELECT snowflake_id(now() + interval '10 s', 0, $ids_per_tick - 1, '$layout') AS id});
	$node->safe_psql('postgres', $lift_other =~ s/4096/$ids_per_tick/r =~ s/twitter/$layout/r);
	is($node->safe_psql('postgres', "SET snowflake.max_lead = '1h';
			SELECT next_id(0, 'tweets_id_seq', '$layout') > max(id), lead < '11 s'
			FROM tweets, snowflake_status('tweets_id_seq', '$layout') GROUP BY lead"), 't|t',
		"a lifted sequence of $layout makes the next ID above those in the table");
}

# An ID between the reading and the setting of the sequence would be set back.
# The recipe stops between them while another session locks the table.
my ($locking, $lifting) = map { $node->background_psql('postgres') } 1 .. 2;
$locking->query_safe('BEGIN; LOCK TABLE photos');
# The recipe's lock_timeout would end its wait for the table.
send_sql($lifting, $lift =~ s/^SET LOCAL lock_timeout.*\n//mr);
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'photos'::regclass AND NOT granted});
fails_with($node, "SET lock_timeout = '100ms'; SELECT next_id(5)", qr/^55P03/, 'nobody makes an ID while the sequence is lifted');
$locking->query_safe('COMMIT');
$_->quit foreach $lifting, $locking;

$node->stop;
done_testing();
