# IDs of other systems, made where and when those systems made them; the end
# of each layout; short and long ticks; layouts in dumps and in binary form.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

plan skip_all => 'libfaketime is not installed' unless faketime_library();

my $node = PostgreSQL::Test::Cluster->new('layouts');
$node->init;
$node->append_conf('postgresql.conf', "timezone = 'UTC'\nmax_connections = 50\n");
start_with_clock($node, '+0');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');

sub sql { return $node->safe_psql('postgres', join ';', @_) }

my %definition = (
	cockroachdb => 'timestamp:48 node:15 epoch:1420070400000 tick:10us',
	baidu => 'timestamp:29 worker:21 sequence:13 epoch:1474329600000 tick:1s',
	yitter => 'timestamp:51 worker:6 sequence:6 epoch:1582165202020',
	idgen => 'timestamp:41 generator:10 sequence:12 epoch:1420070400000',
	atproto => 'timestamp:53 shard:10 epoch:0 tick:1us',
	hundredths => 'timestamp:42 shard:10 sequence:10 epoch:0 tick:10ms',
	milliseconds => 'timestamp:45 shard:10 epoch:0',
	seconds => 'timestamp:35 shard:10 sequence:8 epoch:0 tick:1s');

# A sequence for a layout: altered as the error says.
sub prepare
{
	my ($name) = @_;
	my $layout = $definition{$name} // $name;

	sql("CREATE SEQUENCE $name");
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT next_id(0, '$name', '$layout')");
	sql($1) if $stderr =~ /HINT: .* (SELECT snowflake_alter_sequence.*)\.$/m;
	return $layout;
}

# What a system made, the next ID here is, too: with its clock at that moment,
# and its sequence at the number before.
sub remake
{
	my ($name, $id, $time, $shard, $slots, $slot) = @_;
	my $layout = prepare($name);

	set_clock($node, $time);
	my $tick = sql("SELECT value FROM snowflake_fields($id, '$layout') WHERE field = 'timestamp'");
	sql("ALTER SEQUENCE $name RESTART " . ($tick * $slots + $slot));
	is(sql("SET snowflake.max_lead = 0; SELECT next_id($shard, '$name', '$layout')"),
		$id, "$name: made again");
	return;
}

remake('instagram', '1671372309237077023', '2017-12-16 22:25:27.280005', 5, 1024, 31);
remake('discord', '175928847299117063', '2016-04-30 11:18:25.796005', 32, 4096, 7);
remake('mastodon', '101767036616676231', '2019-03-17 16:55:45.249005', 0, 65536, 37767);
remake('pgedge', '136169504773242881', '2024-01-11 18:08:59.845005', 0, 4096, 1);
remake('sonyflake', '282372624875847938', '2020-01-01 00:00:00.000005', 258, 256, 5);
remake('shardingsphere', '624998537125429249', '2021-07-22 16:01:03.162005', 0, 4096, 1);
remake('cockroachdb', '235191684988928001', '2017-04-10 17:26:46.210005', 1, 1, 0);
remake('baidu', '180363646902239241', '2017-01-19 12:15:46.5', 4, 8192, 9);
remake('yitter', '129053495681099', '2021-02-18 18:20:03.114005', 1, 64, 11);
remake('idgen', '862817670527975424', '2021-07-08 22:09:23.031005', 0, 4096, 0);

# IDs with the sign bit set, which other makers of a layout issue when its 63 bits are used up
is(sql(q{SELECT string_agg(name || ' ' || snowflake_timestamp(-1, name::snowflake_layout)::date, ', ' ORDER BY name)
		FROM snowflake_layouts() WHERE name NOT IN ('javascript', 'trace', 'decimal')}),
	'discord 2154-05-15, instagram 2081-04-30, mastodon 10889-08-02, pgedge 2162-05-15, '
	  . 'shardingsphere 2156-03-15, sonyflake 2363-02-02, twitter 2150-03-18',
	'the last moment of IDs with the sign bit, in each layout of 64 bits');

# The last hour of each layout whose end has a year of four digits, and what comes after it
prepare($_) foreach qw(twitter javascript hundredths seconds);
my $far_future = far_future($node);
foreach my $name (qw(instagram twitter discord shardingsphere sonyflake mastodon pgedge javascript
	cockroachdb baidu hundredths seconds))
{
	my $layout = $definition{$name} // $name;

	sql("ALTER SEQUENCE $name RESTART");
	if (!$far_future)
	{
		SKIP: { skip "$name: the clock ends in 2038", 4 }
		next;
	}
	my $end = sql("SELECT expires FROM snowflake_status('$name', '$layout')");
	my $last = sql("SELECT to_char('$end'::timestamptz - interval '1 hour', 'YYYY-MM-DD HH24:MI:SS.US')");
	set_clock($node, $last);
	my ($ret, $id, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT next_id(0, '$name', '$layout')");
	like($stderr, qr/\bWARNING:  01000: layout "[^"]*" ends at \Q$end\E/m, "$name: the end is announced");
	is(sql("SELECT $id > 0 AND snowflake_timestamp($id, '$layout') BETWEEN '$end'::timestamptz - interval '1 hour 1 s' AND '$end'"),
		't', "$name: an ID of the last hour, up to $end");
	is(sql("SELECT $id < snowflake_min_id('infinity', '$layout')"), 't', "$name: there is a bound above it");
	set_clock($node, sql("SELECT to_char('$end'::timestamptz + interval '1 second', 'YYYY-MM-DD HH24:MI:SS.US')"));
	like(
		sqlstate_of($node, "SELECT next_id(0, '$name', '$layout')"),
		qr/^2200H the time of the layout is used up/,
		"$name: nothing after the end");
}
set_clock($node, '+0');

# Never ahead of the clock, in ticks of each length
prepare($_) foreach qw(atproto milliseconds);
sql("ALTER SEQUENCE $_ RESTART") foreach qw(cockroachdb hundredths seconds);
foreach my $case (['atproto', 20000], ['cockroachdb', 20000], ['milliseconds', 300], ['hundredths', 3000], ['seconds', 600])
{
	my ($name, $count) = @$case;
	my $layout = $definition{$name};

	my ($ahead, $distinct, $ordered, $ticks) = split /\|/, sql("SET snowflake.max_lead = 0", "SET snowflake.max_wait = '10ms'", qq{
		SELECT count(*) FILTER (WHERE snowflake_timestamp(id, '$layout') > time), count(DISTINCT id), bool_and(id > before),
		       max(tick) - min(tick) + 1
		FROM (SELECT *, lag(id, 1, 0::bigint) OVER (ORDER BY n) AS before,
		             (SELECT value FROM snowflake_fields(id, '$layout') WHERE field = 'timestamp') AS tick
		      FROM (SELECT n, next_id(7, '$name', '$layout') AS id, clock_timestamp() AS time
		            FROM generate_series(1, $count) n OFFSET 0) made OFFSET 0) made});
	is("$ahead|$distinct|$ordered", "0|$count|t", "$name: $count IDs, none ahead of the clock, over $ticks ticks");
	# a latch, which counts in milliseconds, would need a hundred ticks an ID
	cmp_ok($ticks, '<', 50 * $count, 'cockroachdb: a wait is not a millisecond') if $name eq 'cockroachdb';
}

# Many sessions, in layouts of all shapes
prepare($_) foreach qw(decimal trace);
my $dir = PostgreSQL::Test::Utils::tempdir;
sql('CREATE TABLE taken (layout text, id bigint)');
my @files;
foreach my $name (qw(cockroachdb sonyflake decimal trace seconds mastodon))
{
	my $layout = $definition{$name} // $name;
	my $shard = $name eq 'mastodon' ? 0 : 9;

	sql("ALTER SEQUENCE $name RESTART");	# it was at the layout's end
	append_to_file("$dir/$name.sql", "INSERT INTO taken SELECT '$name', next_id($shard, '$name', '$layout') FROM generate_series(1, 10);\n");
	push @files, '-f', "$dir/$name.sql";
}
$node->command_ok([ 'pgbench', '-n', '-c', '16', '-j', '2', '-t', '60', @files, 'postgres' ], '16 sessions');
is(sql('SELECT count(DISTINCT (layout, id)) = count(*), count(*) FROM taken'), 't|9600', 'no ID twice in any layout');

# A crash without a clock to cover what was lost
my $before = sql(q{SELECT max(next_id(9, 'decimal', 'decimal')) FROM generate_series(1, 5000)});
crash($node);
start_with_clock($node, '+0');
my $after = sql(q{SELECT next_id(9, 'decimal', 'decimal')});
cmp_ok($after, '>', $before, 'decimal: IDs go on after a crash');
cmp_ok(($after - $before) / 10**10, '<=', 1025, 'and skip 1,024 numbers at most, which were logged ahead');

# Two servers of decimal: each has generators of its own.
my $other = PostgreSQL::Test::Cluster->new('other');
$other->init;
$other->start;
$other->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE decimal MAXVALUE 92233720199999 START 46116860100000;	-- 50000 * 922337202
});
my %seen;
$seen{$_}++ foreach map { split /\n/, $_->safe_psql('postgres',
		q{SELECT next_id(65, 'decimal', 'decimal') FROM generate_series(1, 3000)}) } $node, $other;
is(scalar(keys %seen), 6000, 'decimal: two servers, no ID twice');
is($other->safe_psql('postgres', q{
		SELECT value FROM snowflake_fields(next_id(65, 'decimal', 'decimal'), 'decimal') WHERE field = 'generator'}),
	50000, 'the other has another generator');

# Layouts in tables, defaults, dumps, and the binary form
sql(q{
	CREATE TABLE systems (name text PRIMARY KEY, layout snowflake_layout DEFAULT 'sonyflake');
	INSERT INTO systems SELECT name, name::snowflake_layout FROM snowflake_layouts()},
	map { "INSERT INTO systems VALUES ('$_', '$definition{$_}')" } keys %definition);
sql(q{CREATE TABLE tweets (id bigint PRIMARY KEY DEFAULT next_id(3, 'twitter', 'twitter'),
	other bigint DEFAULT next_id(3, 'cockroachdb', 'timestamp:48 node:15 epoch:1420070400000 tick:10us'))},
	'ALTER SEQUENCE twitter RESTART', 'INSERT INTO tweets DEFAULT VALUES');
my $dump = "$dir/dump";
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('postgres') ], 'dump');
sql('CREATE DATABASE restored');
$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr('restored'), $dump ], 'restore');
my $contents = q{SELECT string_agg(name || '=' || layout::text, ',' ORDER BY name) FROM systems};
is($node->safe_psql('restored', $contents), sql($contents), 'layouts come back as they were');
is($node->safe_psql('restored', q{
		INSERT INTO tweets DEFAULT VALUES;
		SELECT bool_and(snowflake_shard(id, 'twitter') = 3 AND
			snowflake_shard(other, 'timestamp:48 node:15 epoch:1420070400000 tick:10us') = 3), count(*) FROM tweets}),
	't|2', 'and defaults, with their sequences');
$node->safe_psql('restored', 'TRUNCATE systems');
sql("COPY systems TO '$dir/binary' BINARY");
$node->safe_psql('restored', "COPY systems FROM '$dir/binary' BINARY");
is($node->safe_psql('restored', $contents), sql($contents), 'the binary form comes back as it was');
my $binary = slurp_file("$dir/binary");
(my $version = $binary) =~ s/\x01twitter/\x02twitter/ or die 'not found';
(my $garbled = $binary) =~ s/\x01twitter/\x01twotter/ or die 'not found';
append_to_file("$dir/version", $version);
append_to_file("$dir/garbled", $garbled);
like(
	sqlstate_of($node, "COPY systems FROM '$dir/version' BINARY", dbname => 'restored'),
	qr/^22P03 unsupported version 2 of type snowflake_layout/,
	'a later version is refused');
like(
	sqlstate_of($node, "COPY systems FROM '$dir/garbled' BINARY", dbname => 'restored'),
	qr/^22P02 invalid input syntax for type snowflake_layout: "twotter"/,
	'and what is no layout');

$node->stop;
$other->stop;
done_testing();
