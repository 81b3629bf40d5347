# The default layout begins with its epoch.  IDs of other systems are made again where
# and when those systems made them.  Each layout ends with its last timestamp.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_with_clock('layouts', '+0');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');

sub sql { return $node->safe_psql('postgres', join ';', @_) }

# --- the first and the last time of the default layout ------------------------------

set_clock($node, '2011-08-24 21:07:01');
fails_with($node, 'SELECT next_id(5)', qr/^22008 the clock is behind the epoch of the layout/,
	'next_id() fails a second before the epoch');
set_clock($node, '2011-08-24 21:07:02');
is(sql('SELECT next_id(5) BETWEEN 1 AND 1::bigint << 40'), 't', 'next_id() makes the first IDs in the second of the epoch');

my $far_future = far_future($node);
SKIP:
{
	skip 'the clock ends in 2038', 3 unless $far_future;

	set_clock($node, '2046-06-27 17:00:45');
	cmp_ok(sql('SELECT next_id(8191)'), '>', 9_223_371_900_000_000_000,
		'next_id() makes the largest IDs in the last seconds of the layout');
	foreach my $time ('2046-06-27 17:00:50', '@2080-01-01 00:00:00')
	{
		set_clock($node, $time);
		fails_with($node, 'SELECT next_id(5)', qr/^2200H the time of the layout is used up/,
			"next_id() fails after the end of the layout: $time");
	}
}

# --- IDs of other systems, and the end of each layout --------------------------------

my %definition = (
	cockroachdb => 'timestamp:48 node:15 epoch:1420070400000 tick:10us',
	hundredths => 'timestamp:42 shard:10 sequence:10 epoch:0 tick:10ms',
	seconds => 'timestamp:35 shard:10 sequence:8 epoch:0 tick:1s');

# Create a sequence that serves a layout.
sub prepare
{
	my ($name) = @_;
	my $layout = $definition{$name} // $name;

	sql("CREATE SEQUENCE $name", "SELECT snowflake_alter_sequence('$name', '$layout')");
	return $layout;
}

# Set the clock to the time of an ID, and the sequence to the number before its own.
sub remake
{
	my ($name, $id, $time, $shard, $slots, $slot) = @_;
	my $layout = prepare($name);

	set_clock($node, $time);
	my $tick = sql("SELECT value FROM snowflake_fields($id, '$layout') WHERE field = 'timestamp'");
	sql("ALTER SEQUENCE $name RESTART " . ($tick * $slots + $slot));
	is(sql("SET snowflake.max_lead = 0; SELECT next_id($shard, '$name', '$layout')"),
		$id, "next_id() makes the ID again that another system made at that time: $name");
	return;
}

remake('instagram', '1671372309237077023', '2017-12-16 22:25:27.280005', 5, 1024, 31);
remake('discord', '175928847299117063', '2016-04-30 11:18:25.796005', 32, 4096, 7);
remake('mastodon', '101767036616676231', '2019-03-17 16:55:45.249005', 0, 65536, 37767);
remake('pgedge', '136169504773242881', '2024-01-11 18:08:59.845005', 0, 4096, 1);
remake('sonyflake', '282372624875847938', '2020-01-01 00:00:00.000005', 258, 256, 5);
remake('shardingsphere', '624998537125429249', '2021-07-22 16:01:03.162005', 0, 4096, 1);

# The last hour of each layout whose last year has four digits, and the second after
prepare($_) foreach qw(twitter javascript cockroachdb hundredths seconds);
my $format = 'YYYY-MM-DD HH24:MI:SS.US';
foreach my $name (qw(instagram twitter discord shardingsphere sonyflake mastodon pgedge javascript
	cockroachdb hundredths seconds))
{
	SKIP:
	{
		skip "the clock ends in 2038: $name", 4 unless $far_future;
		my $layout = $definition{$name} // $name;

		sql("ALTER SEQUENCE $name RESTART");
		my $end = sql("SELECT expires FROM snowflake_sequences('$name', '$layout')");
		set_clock($node, sql("SELECT to_char('$end'::timestamptz - interval '1 hour', '$format')"));
		my ($ret, $id, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT next_id(0, '$name', '$layout')");
		like($stderr, qr/\bWARNING:  01000: layout "[^"]*" ends at \Q$end\E/m, "next_id() warns of the end of a layout: $name");
		is(sql("SELECT $id > 0 AND snowflake_timestamp($id, '$layout') BETWEEN '$end'::timestamptz - interval '1 hour 1 s' AND '$end'"),
			't', "next_id() makes an ID in the last hour of a layout: $name, up to $end");
		is(sql("SELECT $id < snowflake_min_id('infinity', '$layout')"), 't',
			"snowflake_min_id('infinity') is above the IDs of a layout's last hour: $name");
		set_clock($node, sql("SELECT to_char('$end'::timestamptz + interval '1 second', '$format')"));
		fails_with($node, "SELECT next_id(0, '$name', '$layout')", qr/^2200H the time of the layout is used up/,
			"next_id() makes no ID after the end of a layout: $name");
	}
}

# The last tick of a layout, and the tick after it, with a sequence that has used all
# values.  The hint tells a clock past the end from a sequence that got there too early.
$definition{ending} = 'timestamp:20 shard:10 sequence:2 epoch:2026-01-01T00:00:00Z tick:1s';
my $ending = "SELECT next_id(0, 'ending', '" . prepare('ending') . "')";
my $end = sql("SELECT expires FROM snowflake_sequences('ending', '$definition{ending}')");

foreach my $case (
	[ 1, 'in the last tick of a layout', 'has reached its last value, although the clock has not reached the end of the layout' ],
	[ 0, 'in the tick after the last one', 'use another layout with shards that no old ID has' ])
{
	my ($before_end, $when, $hint) = @$case;

	sql('ALTER SEQUENCE ending RESTART');
	set_clock($node, sql("SELECT to_char('$end'::timestamptz - interval '$before_end s', '$format')"));
	like(sqlstate_of($node, $ending), $before_end ? qr/^no error: \d/ : qr/^2200H/,
		$before_end ? "next_id() makes an ID $when" : "next_id() makes no ID $when");
	sql(q{SELECT setval('ending', max_value) FROM pg_sequences WHERE sequencename = 'ending'});
	my ($ret, $stdout, $stderr) = $node->psql('postgres', $ending);
	like($stderr, qr/ERROR:  the time of the layout is used up\n.*\nHINT:  [^\n]*\Q$hint\E/s,
		"the hint $when says: $hint");
}

$node->stop;
done_testing();
