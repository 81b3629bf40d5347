# Two servers made from one backup: one recovers to a point in time while its clock is
# behind the last ID of the original.  It makes IDs of the original again, unless it has
# another shard, its sequence is advanced, or its clock catches up.

use SnowflakeTest;

my $insert = 'INSERT INTO photos DEFAULT VALUES RETURNING id';

# --- the original, two hours beyond the point ------------------------------

my $original = server_with_clock('original', '@2026-11-20 10:00:00', "autovacuum = off\n",
	allows_streaming => 1, has_archiving => 1);
$original->sql(qq{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), n int);
	$insert});
$original->backup('base');
$original->sql("$insert; SELECT pg_create_restore_point('point')");
set_clock($original, '@2026-11-20 12:00:00');
my $seen = $original->sql(q{
	INSERT INTO photos SELECT FROM generate_series(1, 100);
	SELECT max(id) FROM photos});
$original->sql('SELECT pg_switch_wal()');
$original->poll_query_until('postgres', 'SELECT failed_count = 0 AND archived_count > 0 FROM pg_stat_archiver');
$original->stop;

sub recovered
{
	my ($name, $clock) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($original, 'base', has_restoring => 1, standby => 0);
	$node->append_conf('postgresql.conf',
		"archive_mode = off\nrecovery_target_name = 'point'\nrecovery_target_action = 'promote'\n");
	start_with_clock($node, $clock);
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no recovery';
	return $node;
}

# --- a clock that is behind by an hour --------------------------------------

my $node = recovered('behind', '@2026-11-20 11:00:00');
is($node->sql('SELECT count(*) FROM photos'), 2, 'a server recovers to a point in time with a clock that is behind');
cmp_ok($node->sql($insert), '<', $seen,
	'a clock that is behind the last ID of the original makes a smaller one, without an error');
is($node->sql('SELECT snowflake_shard(next_id(6))'), 6, 'another shard makes IDs at once');
# at the millisecond of that ID
set_clock($node, $node->sql(
		"SELECT to_char(snowflake_timestamp($seen) + interval '500 us', 'YYYY-MM-DD HH24:MI:SS.US')"));
is($node->sql("SELECT count(*) FROM next_ids(5, 2000) AS id WHERE id = $seen"), 1,
	'a clock that is behind makes an ID of the original again');
set_clock($node, '@2026-11-20 12:00:10');
cmp_ok($node->sql($insert), '>', $seen, 'a clock that is right makes IDs above those of the original');
$node->stop;

# --- the sequence advanced to a time ----------------------------------------

my $advance = q{SELECT snowflake_advance('next_id_seq', snowflake_max_id('2026-11-20 12:00:01Z'))};
$node = recovered('advanced', '@2026-11-20 11:00:00');
like(join('', $node->psql('postgres', $advance)),
	qr/WARNING:  sequence "next_id_seq" is (01:00|00:5\d):.* ahead of the clock/,
	'to advance a sequence far beyond a clock that is behind gives a warning');
fails_with($node, $insert, qr/^53400 sequence "next_id_seq" is (01:00|00:5\d):.* ahead of the clock/,
	'a sequence advanced beyond the last ID is ahead of a clock that is behind');
cmp_ok($node->sql("SET snowflake.max_lead = '2h'; $insert"), '>', $seen,
	'an advanced sequence makes larger IDs than the original with a longer lead');
set_clock($node, '@2026-11-20 12:00:02');
cmp_ok($node->sql($insert), '>', $seen, 'IDs go on above those of the original when the clock has caught up');
$node->stop;

done_testing();
