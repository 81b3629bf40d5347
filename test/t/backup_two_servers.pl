# Two servers made from one backup: a clone that runs beside the original, and a
# server that is recovered to a point in time.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use Test::More;
use SnowflakeTest;

my $node = server_ahead_of_clock('original', "autovacuum = off\nwal_consistency_checking = 'all'\n",
	allows_streaming => 1, has_archiving => 1);
$node->safe_psql('postgres', 'CREATE SEQUENCE clock MAXVALUE 1125899906841599');
$node->safe_psql('postgres', 'CREATE SEQUENCE busy MAXVALUE 1125899906841599');
$node->backup('base');
# Records and page images of all kinds of calls, for the copies to replay
$node->safe_psql('postgres', q{
	SELECT count(next_id(5, 'busy')) FROM generate_series(1, 3000);
	SELECT nextval('busy');
	CHECKPOINT;
	BEGIN; SELECT next_id(5, 'busy'); ROLLBACK;
	SELECT setval('busy', last_value + 2000000) FROM busy}) foreach 1 .. 20;

# Recover a server of its own from the backup and the archived WAL.
sub recover
{
	my ($name, $conf) = @_;
	my $copy = PostgreSQL::Test::Cluster->new($name);

	$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
	$copy->init_from_backup($node, 'base', has_restoring => 1, standby => 0);
	$copy->append_conf('postgresql.conf', "archive_mode = off\n$conf");
	$copy->start;
	ok($copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()'), "a server recovers from a backup: $name");
	return $copy;
}

# Count the IDs of the clone that the original also makes, from the same values.
sub made_by_both
{
	my ($clone, $shard) = @_;
	my @ids = split /\n/, $clone->safe_psql('postgres',
		"SELECT next_id($shard, 'used') FROM generate_series(1, 1000)");

	return $node->safe_psql('postgres', qq{
		SELECT setval('used', @{[value_of($ids[0]) - 1]}) \\g /dev/null
		SELECT count(*) FROM (SELECT next_id(5, 'used') AS id FROM generate_series(1, 1000)) t
		WHERE id IN (@{[join ',', @ids]})});
}

my $clone = recover('clone', '');
is(made_by_both($clone, 5), 1000, 'a clone with the same shard repeats the IDs of the original (as documented)');
is(made_by_both($clone, 6), 0, 'a clone with another shard repeats no ID of the original');
$clone->stop;

# The restore point comes before the last IDs of both sequences.  The clock has
# passed the time of the one, and not that of the other.
my $by_clock = $node->safe_psql('postgres', q{
	SELECT next_id(5, 'clock') \g /dev/null
	SELECT pg_create_restore_point('point') \g /dev/null
	SELECT pg_sleep(1.1) \g /dev/null
	SELECT next_id(5, 'clock')});
my $ahead = $node->safe_psql('postgres', q{
	SELECT setval('used', last_value + 2000000) FROM used \g /dev/null
	SELECT next_id(5, 'used')});
my $recovered = recover('recovered', "recovery_target_name = 'point'\nrecovery_target_action = 'promote'\n");
is($recovered->safe_psql('postgres', "SELECT last_value < ($by_clock >> 23) * 1024 FROM clock"), 't',
	'the sequence recovered to a point in time is behind the last ID');
cmp_ok(next_id($recovered, 'clock'), '>', $by_clock, 'the next ID is larger after recovery to a point in time, by the clock');
cmp_ok(next_id($recovered), '<', $ahead,
	'a recovered server makes smaller IDs than a lost one that was a day ahead of the clock');
$recovered->safe_psql('postgres', "SELECT setval('used', ($ahead >> 23) * 1024 + 1023)");
cmp_ok(next_id($recovered), '>', $ahead, 'setval() takes a recovered sequence above the lost IDs');

$recovered->stop;
$node->stop;
done_testing();
