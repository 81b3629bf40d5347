# The default layout begins with its epoch.  IDs of other systems are made again where
# and when those systems made them.  A layout ends with its last timestamp.

use SnowflakeTest;

my $node = server_with_clock('layouts', '+0');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');

sub sql { return $node->sql(join ';', @_) }

# Set the clock to a time that is so many seconds off another.
sub set_clock_near
{
	my ($time, $seconds) = @_;
	my $format = 'YYYY-MM-DD HH24:MI:SS.US';
	set_clock($node, sql("SELECT to_char('$time'::timestamptz + interval '$seconds s', '$format')"));
}

# --- the first and the last time of the default layout ------------------------------

my $ended = qr/^2200H the time of the layout is used up/;
set_clock($node, '2011-08-24 21:07:01');
fails_with($node, 'SELECT next_id(5)', qr/^22008 the clock is behind the epoch of the layout/,
	'next_id() fails a second before the epoch');
set_clock($node, '2011-08-24 21:07:02');
is(sql('SELECT next_id(5) BETWEEN 1 AND 1::bigint << 40'), 't',
	'next_id() makes the first IDs in the second of the epoch');

set_clock($node, '2046-06-27 17:00:45');
cmp_ok(sql('SELECT next_id(8191)'), '>', 9_223_371_900_000_000_000,
	'next_id() makes the largest IDs in the last seconds of the layout');
set_clock($node, '@2080-01-01 00:00:00');
fails_with($node, 'SELECT next_id(5)', $ended, 'next_id() fails long after the end of the layout');

# --- IDs of other systems --------------------------------------------------------------

# An ID, its time and its shard, the values of its layout's sequence in a tick, and its own
foreach my $case (
	[ 'instagram', '1671372309237077023', '2017-12-16 22:25:27.280005', 5, 1024, 31 ],
	[ 'discord', '175928847299117063', '2016-04-30 11:18:25.796005', 32, 4096, 7 ],
	[ 'mastodon', '101767036616676231', '2019-03-17 16:55:45.249005', 0, 65536, 37767 ],
	[ 'pgedge', '136169504773242881', '2024-01-11 18:08:59.845005', 0, 4096, 1 ],
	[ 'sonyflake', '282372624875847938', '2020-01-01 00:00:00.000005', 258, 256, 5 ],
	[ 'shardingsphere', '624998537125429249', '2021-07-22 16:01:03.162005', 0, 4096, 1 ])
{
	my ($name, $id, $time, $shard, $slots, $slot) = @$case;

	set_clock($node, $time);
	my $tick = sql("SELECT value FROM snowflake_fields($id, '$name') WHERE field = 'timestamp'");
	sql("CREATE SEQUENCE $name", "SELECT snowflake_alter_sequence('$name', '$name')",
		"ALTER SEQUENCE $name RESTART " . ($tick * $slots + $slot));
	is(sql("SET snowflake.max_lead = 0; SELECT next_id($shard, '$name', '$name')"),
		$id, "next_id() makes the ID again that another system made at that time: $name");
}

# --- the end of a layout ---------------------------------------------------------------

# The last hour of each layout whose last year has four digits, and the second after
foreach my $layout (
	qw(instagram twitter discord shardingsphere sonyflake mastodon pgedge javascript),
	'timestamp:48 node:15 epoch:1420070400000 tick:10us',
	'timestamp:42 shard:10 sequence:10 epoch:0 tick:10ms',
	'timestamp:35 shard:10 sequence:8 epoch:0 tick:1s')
{
	sql('CREATE SEQUENCE ends', "SELECT snowflake_alter_sequence('ends', '$layout')");
	my $next_id = "SELECT next_id(0, 'ends', '$layout')";
	my $end = sql("SELECT expires FROM snowflake_sequences('ends', '$layout')");
	set_clock_near($end, -3600);
	my ($ret, $id, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$next_id");
	like($stderr, qr/\bWARNING:  01000: layout "[^"]*" ends at \Q$end\E/m, "next_id() warns of the end of $layout");
	is(sql("SELECT $id > 0 AND snowflake_timestamp($id, '$layout')
			BETWEEN '$end'::timestamptz - interval '1 hour 1 s' AND '$end'"),
		't', "next_id() makes an ID in the last hour of $layout, up to $end");
	is(sql("SELECT $id < snowflake_min_id('infinity', '$layout')"), 't',
		"snowflake_min_id('infinity') is above the IDs of the last hour of $layout");
	set_clock_near($end, 1);
	fails_with($node, $next_id, $ended, "next_id() makes no ID after the end of $layout");
	sql('DROP SEQUENCE ends');
}

# The last tick of a layout, and the tick after it, with a sequence that has used all
# values.  The error tells a clock past the end from a sequence that got there too early.
my $layout = 'timestamp:20 shard:10 sequence:2 epoch:2026-01-01T00:00:00Z tick:1s';
my $next_id = "SELECT next_id(0, 'ends', '$layout')";
sql('CREATE SEQUENCE ends', "SELECT snowflake_alter_sequence('ends', '$layout')");
my $end = sql("SELECT expires FROM snowflake_sequences('ends', '$layout')");

foreach my $case (
	[ -1, qr/^no error: \d/, qr/ERROR:  sequence "ends" has reached the last value of the layout\n.*\nHINT:  Use a new sequence/ ],
	[ 0, $ended, qr/ERROR:  the time of the layout is used up\n.*\nHINT:  .* use another layout with shards/ ])
{
	my ($seconds, $expected, $error) = @$case;

	sql('ALTER SEQUENCE ends RESTART');
	set_clock_near($end, $seconds);
	like(sqlstate_of($node, $next_id), $expected, "next_id(), with the clock $seconds s from the end of a layout");
	sql(q{SELECT setval('ends', max_value) FROM pg_sequences WHERE sequencename = 'ends'});
	my ($ret, $stdout, $stderr) = $node->psql('postgres', $next_id);
	like($stderr, $error, '... and with a sequence that has used all values');
}

done_testing();
