# Copies of a server: backup, restore to a point in time, clone, dump,
# pg_upgrade, logical replication; and a standby compared page by page.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $next = q{SELECT next_id(5, 'used')};
my $dir = PostgreSQL::Test::Utils::tempdir;

my $node = server_ahead_of_clock('original', <<EOC, allows_streaming => 1, has_archiving => 1);
autovacuum = off
wal_level = logical
wal_consistency_checking = 'all'
wal_keep_size = '1GB'
EOC
$node->safe_psql('postgres', q{
	CREATE SEQUENCE clock MAXVALUE 1125899906841599;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), n int);
});

# A backup made under load, as a standby, as a clone and as a base to recover
# from.
append_to_file("$dir/load.sql", <<'EOS');
SELECT next_id(5, 'used');
SELECT nextval('used');
BEGIN; INSERT INTO photos SELECT FROM generate_series(1, 20); ROLLBACK;
SELECT count(next_id(5, 'used')) FROM generate_series(1, 3000);
SELECT setval('used', last_value + 3) FROM used;
EOS
append_to_file("$dir/checkpoint.sql", "\\sleep 50 ms\nCHECKPOINT;\n");

sub load
{
	my ($seconds) = @_;
	my $log = '';
	return IPC::Run::start(
		[ 'pgbench', '-n', '-c', '4', '-R', '300', '-T', $seconds, '-h', $node->host, '-p', $node->port,
			'-f', "$dir/load.sql\@30", '-f', "$dir/checkpoint.sql\@1", 'postgres' ],
		'>', \$log, '2>', \$log);
}

my $load = load(60);
sleep(0.5);
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
sleep(2);
$load->signal('TERM');
$load->finish;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));

# Every record was replayed to the page that it was made from, or the standby
# would have stopped.  At rest, the pages differ in what the record has used up.
is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 't',
	'wal_consistency_checking finds no difference under load');
$_->safe_psql('postgres', 'CHECKPOINT') for $node, $standby;
ok( wait_for(sub {
		$standby->safe_psql('postgres', 'CHECKPOINT');
		return page($node, 'used')->{lsn} eq page($standby, 'used')->{lsn} }),
	'a sequence\'s page has the same LSN on the standby as on the primary');

# A sequence's page, with what may differ between servers set apart.
sub page
{
	my ($server, $sequence) = @_;
	my $page = slurp_file(file_of($server, $sequence));
	# The page's one tuple is where its free space ends.
	my $offset = unpack 'S', substr($page, 14, 2);
	my ($last, $ahead) = unpack 'qq', substr($page, $offset + 24, 16);
	my $lsn = unpack 'H*', substr($page, 0, 8);

	substr($page, $offset + 24, 16) = '';
	substr($page, 0, 10) = '';	# LSN and checksum
	return { lsn => $lsn, rest => unpack('H*', $page), mark => $last + $ahead, ahead => $ahead };
}

foreach my $sequence ('used', 'next_id_seq')
{
	my ($ours, $theirs) = map { page($_, $sequence) } $node, $standby;
	is($theirs->{rest}, $ours->{rest}, "the page of $sequence is the same on the standby, but for its values");
	is($theirs->{mark}, $ours->{mark}, "the standby's sequence $sequence goes up to what the WAL covers");
	is($theirs->{ahead}, 0, "the standby's sequence $sequence has used up what the WAL covers");
}
$standby->stop;

# Replay does not need the file's name in the record's own data, but
# pg_waldump shows it.
my $from = $node->lsn('insert');
$node->safe_psql('postgres', qq{
	SELECT setval('used', last_value + 2000000) FROM used; $next});
my $to = $node->lsn('flush');
my ($records) = run_command([ 'pg_waldump', '-p', $node->data_dir . '/pg_wal', '-r', 'Sequence', '-s', $from, '-e', $to ]);
my ($file) = $node->safe_psql('postgres', q{SELECT pg_relation_filepath('used')}) =~ m{^base/(.*)};
is(scalar(() = $records =~ m{ rel 1663/\Q$file\E, blkref #0: rel 1663/\Q$file\E }g), 2,
	'the records of setval() and next_id() name the sequence\'s file');

# A clone that goes on with the same shard, beside the original, repeats IDs:
# nothing tells it that it is not alone.  With another shard it does not.
my $clone = PostgreSQL::Test::Cluster->new('clone');
$clone->init_from_backup($node, 'base', has_restoring => 1, standby => 0);
$clone->append_conf('postgresql.conf', "archive_mode = off\n");
$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
$clone->start;
ok($clone->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()'), 'a clone made of a backup starts');

# IDs of the clone that the original then makes, too, from the same values.
sub made_twice
{
	my ($shard) = @_;
	my @ids = split /\n/, $clone->safe_psql('postgres',
		"SELECT next_id($shard, 'used') FROM generate_series(1, 1000)");
	return $node->safe_psql('postgres', qq{
		SELECT setval('used', ($ids[0] >> 23) * 1024 + ($ids[0] & 1023) - 1) \\g /dev/null
		SELECT count(*) FROM (SELECT next_id(5, 'used') AS id FROM generate_series(1, 1000)) t
		WHERE id IN (} . join(',', @ids) . ')');
}

is(made_twice(5), 1000, 'a clone with the same shard repeats the IDs of the original (as documented)');
is(made_twice(6), 0, 'a clone with another shard repeats no ID of the original');
$clone->stop;

# Point-in-time recovery: the clock covers what was made after that point.
my $point = $node->safe_psql('postgres', q{
	SELECT next_id(5, 'clock') \g /dev/null
	SELECT pg_create_restore_point('point') \g /dev/null
	SELECT pg_sleep(1.1) \g /dev/null
	SELECT next_id(5, 'clock')});
my $lost = $node->safe_psql('postgres',
	q{SELECT setval('used', last_value + 2000000) FROM used \g /dev/null
	  SELECT next_id(5, 'used')});
$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
my $recovered = PostgreSQL::Test::Cluster->new('recovered');
$recovered->init_from_backup($node, 'base', has_restoring => 1, standby => 0);
$recovered->append_conf('postgresql.conf',
	"archive_mode = off\nrecovery_target_name = 'point'\nrecovery_target_action = 'promote'\n");
$recovered->start;
ok($recovered->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()'), 'a server recovers to a point in time');
is($recovered->safe_psql('postgres', "SELECT last_value < ($point >> 23) * 1024 FROM clock"), 't',
	'the sequence recovered to a point in time is behind the last ID');
cmp_ok($recovered->safe_psql('postgres', q{SELECT next_id(5, 'clock')}), '>', $point,
	'the next ID is larger after recovery to a point in time, by the clock');
# What was further ahead than the clock is not known there.
cmp_ok($recovered->safe_psql('postgres', $next), '<', $lost,
	'a recovered server makes smaller IDs than a lost one that was a day ahead of the clock');
$recovered->safe_psql('postgres', "SELECT setval('used', ($lost >> 23) * 1024 + 1023)");
cmp_ok($recovered->safe_psql('postgres', $next), '>', $lost, 'setval() takes a recovered sequence above the lost IDs');
$recovered->stop;

# Logical replication: rows travel, sequences do not.  Each side has a shard.
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init(allows_streaming => 'logical');
$subscriber->start;
$node->safe_psql('postgres', q{
	INSERT INTO photos SELECT FROM generate_series(1, 100);
	CREATE PUBLICATION p FOR TABLE photos});
my $last = $node->safe_psql('postgres', q{
	SELECT setval('next_id_seq', last_value + 86400000::bigint * 1024) FROM next_id_seq \g /dev/null
	INSERT INTO photos VALUES (DEFAULT, 1) RETURNING id});
$subscriber->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(6), n int);
	INSERT INTO photos SELECT FROM generate_series(1, 50)});
$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION s CONNECTION '" . $node->connstr . " dbname=postgres' PUBLICATION p");
$subscriber->wait_for_subscription_sync($node, 's');
$node->safe_psql('postgres', 'INSERT INTO photos SELECT FROM generate_series(1, 100)');
$subscriber->safe_psql('postgres', 'INSERT INTO photos SELECT FROM generate_series(1, 50)');
$node->wait_for_catchup('s');
is( $subscriber->safe_psql('postgres', q{
		SELECT snowflake_shard(id), count(*) FROM photos GROUP BY 1 ORDER BY 1}),
	"5|201\n6|100", 'a subscriber has the publisher\'s rows beside its own');
is( $subscriber->safe_psql('postgres', q{
		SELECT lead < interval '1 hour' FROM snowflake_status()}),
	't', 'replicated rows leave the subscriber\'s sequence where it is');
is( $subscriber->safe_psql('postgres', qq{
		UPDATE photos SET n = 2 WHERE id = $last RETURNING snowflake_timestamp(id) > now() + interval '1 hour'}),
	't', 'replicated rows keep their IDs\' times');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
$subscriber->stop;

# pg_dump in its formats and parts, restored where the clock is two days back.
# (How far the sequences are ahead stands for that: the last IDs' times are
# what counts.)
$node->safe_psql('postgres', q{DROP PUBLICATION p; CREATE TABLE taken (id bigint); ALTER SEQUENCE used OWNED BY taken.id});
my ($used, $default) = map { $node->safe_psql('postgres', "INSERT INTO taken VALUES ($_) RETURNING id") }
  q{next_id(5, 'used')}, 'next_id(5)';
my %dump = (
	plain => ['-Fp'], custom => ['-Fc'], directory => [ '-Fd', '-j2' ],
	schema => [ '-Fc', '-s' ], data => [ '-Fc', '-a' ]);
foreach my $what (sort keys %dump)
{
	$node->command_ok(
		[ 'pg_dump', @{ $dump{$what} }, '-f', "$dir/$what", '-d', $node->connstr('postgres') ],
		"pg_dump writes a dump: $what");
}

my $target = PostgreSQL::Test::Cluster->new('target');
$target->init;
$target->append_conf('postgresql.conf', "snowflake.max_lead = '30d'\nautovacuum = off\n");
$target->start;

sub restore
{
	my ($database, @parts) = @_;
	$target->safe_psql('postgres', "CREATE DATABASE $database") unless $database eq 'postgres';
	foreach my $part (@parts)
	{
		$target->command_ok(
			$part eq 'plain'
			? [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/plain", '-d', $target->connstr($database) ]
			: [ 'pg_restore', '-e', '-d', $target->connstr($database), "$dir/$part" ],
			"a dump is restored: $part");
	}
	return;
}

foreach my $parts ([ 'plain' ], [ 'custom' ], [ 'directory' ], [ 'schema', 'data' ])
{
	my $database = join '_', @$parts;
	restore($database, @$parts);
	cmp_ok($target->safe_psql($database, $next), '>', $used, "the next ID is larger after a restore: $database");
	cmp_ok($target->safe_psql($database, 'SELECT next_id(5)'), '>', $default,
		"the next ID of the default sequence is larger after a restore: $database");
}
# without data, a sequence begins with the clock
restore('empty', 'schema');
is( $target->safe_psql('empty', q{
		SELECT abs(extract(epoch FROM snowflake_timestamp(next_id(5)) - clock_timestamp())) < 3600}),
	't', 'IDs begin with the clock after a restore of the schema only');
$target->stop;

# pg_upgrade, to the same version.
my $upgraded = PostgreSQL::Test::Cluster->new('upgraded');
$upgraded->init;
$upgraded->append_conf('postgresql.conf', "snowflake.max_lead = '30d'\nautovacuum = off\n");
($used, $default) = map { $node->safe_psql('postgres', $_) } $next, 'SELECT next_id(5)';
$node->stop;
my $bindir = $node->config_data('--bindir');
# It looks for libraries in the new installation alone.
my ($new_bindir) = copied_installation(PostgreSQL::Test::Utils::tempdir_short);
chdir $dir;
command_ok(
	[ 'pg_upgrade', '-N', '-d', $node->data_dir, '-D', $upgraded->data_dir,
		'-b', $bindir, '-B', $new_bindir // $bindir, '-s', $node->host,
		'-p', $node->port, '-P', $upgraded->port ],
	'pg_upgrade carries a cluster with the extension over');
$upgraded->start;
my $after = $upgraded->safe_psql('postgres', $next);
cmp_ok($after, '>', $used, 'the next ID is larger after pg_upgrade');
cmp_ok($upgraded->safe_psql('postgres', 'SELECT next_id(5)'), '>', $default,
	'the next ID of the default sequence is larger after pg_upgrade');
next_id_is_larger_after_crash($upgraded, $after, 'one taken after pg_upgrade');
$upgraded->stop;

done_testing();
