# What "Backup and restore" in doc/operations.md leaves to the operator: a shard
# that is not in the dump, a target without the extension, and recovery to a
# point in time with a clock that is behind.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $dir = PostgreSQL::Test::Utils::tempdir;
my $root = "$FindBin::RealBin/..";
my @blocks = grep { $_->{section} eq 'Backup and restore' } blocks('doc/operations.md');
my ($without) = map { $_->{code} } grep { $_->{language} eq 'sh' } @blocks;
my ($lift) = map { $_->{code} } grep { $_->{code} =~ /setval/ } @blocks;
my ($from) = slurp_file("$root/doc/operations.md") =~ /`(FROM \(VALUES [^`]*)`/ or die 'no FROM';

my $node = PostgreSQL::Test::Cluster->new('dumped');
$node->init;
$node->start;
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
delete $ENV{PGDATABASE};

sub shell
{
	my ($command, $name) = @_;
	command_ok([ 'sh', '-ec', "cd '$dir'\n$command" ], $name);
	return;
}

# --- dumps ----------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE app; ALTER DATABASE app SET snowflake.shard = 5');
$node->safe_psql('app', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
	CREATE SEQUENCE albums_id_seq MAXVALUE 1125899906841599;
	CREATE TABLE albums (id bigint PRIMARY KEY DEFAULT next_id(7, 'albums_id_seq'), title text);
	CREATE TABLE victim ();
	INSERT INTO photos (title) VALUES ('sunrise'), ('; DROP TABLE public.victim; --'), ('harbour');
	INSERT INTO albums (title) VALUES ('boats')});
my $rows = 'SELECT * FROM photos UNION ALL SELECT * FROM albums ORDER BY 1';
my $expected = $node->safe_psql('app', $rows);
my $largest = $node->safe_psql('app', 'SELECT max(id) FROM photos');

shell('pg_dump -f plain.sql app; pg_dump --create -f create.sql app; pg_dumpall -f all.sql',
	'pg_dump and pg_dumpall dump a database whose shard is set');
my %setting = map { $_ => slurp_file("$dir/$_.sql") =~ /^ALTER DATABASE app SET "?snowflake\.shard"? TO '5';/m ? 1 : 0 }
  qw(plain create all);
is_deeply(\%setting, { plain => 0, create => 1, all => 1 }, 'the shard is in dumps with --create and of pg_dumpall, and in no other');
shell('createdb plain; psql -Xq -v ON_ERROR_STOP=1 -f plain.sql plain', 'a plain dump is restored');
like(sqlstate_of($node, 'INSERT INTO photos DEFAULT VALUES', dbname => 'plain'), qr/^55000 "snowflake.shard" is not set/,
	'a database restored from a plain dump has no shard');
$node->safe_psql('postgres', 'ALTER DATABASE app RENAME TO original');
shell('psql -Xq -v ON_ERROR_STOP=1 -f create.sql postgres', 'a dump made with --create is restored');
is($node->safe_psql('app', 'INSERT INTO photos DEFAULT VALUES RETURNING snowflake_shard(id)'), 5, 'a database restored from a dump made with --create has its shard');
$node->safe_psql('postgres', 'DROP DATABASE app; ALTER DATABASE original RENAME TO app');

# As on a server that lacks the extension: there is none of that name.
append_to_file("$dir/lacks.sql", slurp_file("$dir/plain.sql") =~ s/EXTENSION IF NOT EXISTS snowflake/$&_of_elsewhere/r);
$node->safe_psql('postgres', 'CREATE DATABASE careless; CREATE DATABASE careful');
my ($ret, $stdout, $stderr) = $node->psql('careless', "\\i $dir/lacks.sql", on_error_stop => 0);
like($stderr, qr/extension "snowflake_of_elsewhere" is not available/, 'psql goes on with a dump whose extension is not available');
is( $node->safe_psql('careless', q{SELECT to_regclass('photos') IS NULL, to_regclass('victim') IS NULL}),
	$node->pg_version < 17 ? 't|t' : 't|f',
	'without the table, psql before 17 runs a row of a dump as SQL');
($ret, $stdout, $stderr) = $node->psql('careful', "\\i $dir/lacks.sql", on_error_stop => 1);
is($ret, 3, 'ON_ERROR_STOP stops psql at CREATE EXTENSION');
is($node->safe_psql('careful', q{SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace}), 0,
	'ON_ERROR_STOP stops psql before anything is made of a dump');

# The recipe, with the file where it looks for it
symlink "$root/portable", "$dir/portable" or die "symlink: $!";
shell($without, 'a dump is restored with the portable version in place of the extension');
is($node->safe_psql('copy', 'SELECT count(*) FROM pg_extension WHERE extname = \'snowflake\''), 0,
	'a dump restored with the portable version has no extension');
is($node->safe_psql('copy', $rows), $expected, 'a dump restored with the portable version has all rows');
is($node->safe_psql('copy', qq{SET snowflake.shard = 5;
		INSERT INTO photos DEFAULT VALUES RETURNING id > $largest AND snowflake_shard(id) = 5;
		INSERT INTO albums DEFAULT VALUES RETURNING id > $largest AND snowflake_shard(id) = 7}), "t\nt", 'IDs of the portable version go on above those of the dump');
my $all = PostgreSQL::Test::Cluster->new('all');
$all->init;
$all->start;
$all->safe_psql('postgres', 'CREATE DATABASE app');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/with.dump", 'app' ], 'pg_dump -Fc dumps a database with the extension');
$all->command_fails([ 'pg_restore', '-e', '--no-owner', '--role=pg_monitor', '-d', $all->connstr('app'), "$dir/with.dump" ],
	'pg_restore -e stops where CREATE EXTENSION fails');
is($all->safe_psql('app', q{SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace}), 0,
	'pg_restore -e stops before anything is made');
$_->stop for $node, $all;

# --- recovery to a point in time, with a clock that is behind -------------

SKIP:
{
	skip 'libfaketime is not installed', 10 unless faketime_library();

	my $original = PostgreSQL::Test::Cluster->new('original');
	$original->init(allows_streaming => 1, has_archiving => 1);
	$original->append_conf('postgresql.conf', "autovacuum = off\ntimezone = 'UTC'\n");
	start_with_clock($original, '@2026-11-20 10:00:00');
	$original->safe_psql('postgres', q{
		CREATE EXTENSION snowflake;
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), n int);
		INSERT INTO photos DEFAULT VALUES});
	$original->backup('base');
	$original->safe_psql('postgres', q{INSERT INTO photos DEFAULT VALUES; SELECT pg_create_restore_point('point')});
	set_clock($original, '@2026-11-20 12:00:00');
	my $seen = $original->safe_psql('postgres', q{
		INSERT INTO photos SELECT FROM generate_series(1, 100);
		SELECT max(id) FROM photos});
	$original->safe_psql('postgres', 'SELECT pg_switch_wal()');
	$original->poll_query_until('postgres', 'SELECT failed_count = 0 AND archived_count > 0 FROM pg_stat_archiver');
	$original->stop;

	# It went on for two hours; the clock has passed one of them.
	my $recover = sub {
		my ($name, $clock) = @_;
		my $recovered = PostgreSQL::Test::Cluster->new($name);
		$recovered->init_from_backup($original, 'base', has_restoring => 1, standby => 0);
		$recovered->append_conf('postgresql.conf',
			"archive_mode = off\nrecovery_target_name = 'point'\nrecovery_target_action = 'promote'\n");
		start_with_clock($recovered, $clock);
		$recovered->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no recovery';
		return $recovered;
	};
	my $id = 'INSERT INTO photos DEFAULT VALUES RETURNING id';

	my $behind = $recover->('behind', '@2026-11-20 11:00:00');
	is($behind->safe_psql('postgres', 'SELECT count(*) FROM photos'), 2, 'a server recovers to a point in time with a clock that is behind');
	cmp_ok($behind->safe_psql('postgres', $id), '<', $seen,
		'a clock that is behind the last ID of the original makes a smaller one, without an error');
	# at the millisecond of that ID
	set_clock($behind, $behind->safe_psql('postgres',
			"SELECT to_char(snowflake_timestamp($seen) + interval '500 us', 'YYYY-MM-DD HH24:MI:SS.US')"));
	is($behind->safe_psql('postgres', "SELECT count(*) FROM next_ids(5, 2000) AS id WHERE id = $seen"), 1,
		'a clock that is behind makes an ID of the original again');
	$behind->stop;

	my $lifted = $recover->('lifted', '@2026-11-20 11:00:00');
	my ($time) = $from =~ /'([^']*)'/;
	is($lifted->safe_psql('postgres', "SELECT '$time' > snowflake_timestamp($seen)"), 't',
		'the time of the document\'s example is later than the last ID of the original');
	$lifted->safe_psql('postgres', $lift =~ s/^FROM photos/$from/mr);
	like(sqlstate_of($lifted, $id), qr/^53400 sequence "next_id_seq" is (01:00|00:5\d):.* ahead of the clock/,
		'a sequence lifted above the last ID is ahead of a clock that is behind');
	cmp_ok($lifted->safe_psql('postgres', "SET snowflake.max_lead = '2h'; $id"), '>', $seen,
		'a lifted sequence makes larger IDs than the original with a longer lead');
	set_clock($lifted, '@2026-11-20 12:00:02');
	cmp_ok($lifted->safe_psql('postgres', $id), '>', $seen, 'IDs go on above those of the original when the clock has caught up');
	$lifted->stop;

	my $right = $recover->('right', '@2026-11-20 12:00:10');
	cmp_ok($right->safe_psql('postgres', $id), '>', $seen, 'a clock that is right makes IDs above those of the original');
	$right->stop;

	my $other = $recover->('other', '@2026-11-20 11:00:00');
	is($other->safe_psql('postgres', 'SELECT snowflake_shard(next_id(6))'), 6, 'another shard makes IDs at once');
	$other->stop;
}

done_testing();
