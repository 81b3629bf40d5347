# In layouts with ticks of each length, no ID is ahead of the clock, and none is made
# twice.

use SnowflakeTest;

my $node = server_in_utc('ticks', "max_connections = 50\n");
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');

sub sql { return $node->sql(join ';', @_) }

my %layout = map { $_ => $_ } qw(sonyflake decimal trace mastodon);
$layout{microseconds} = 'timestamp:53 shard:10 epoch:0 tick:1us';
$layout{cockroachdb} = 'timestamp:48 node:15 epoch:1420070400000 tick:10us';
$layout{milliseconds} = 'timestamp:45 shard:10 epoch:0';
$layout{hundredths} = 'timestamp:42 shard:10 sequence:10 epoch:0 tick:10ms';
$layout{seconds} = 'timestamp:35 shard:10 sequence:8 epoch:0 tick:1s';
sql("CREATE SEQUENCE $_", "SELECT snowflake_alter_sequence('$_', '$layout{$_}')") foreach sort keys %layout;

foreach my $case ([ 'microseconds', 20000 ], [ 'cockroachdb', 20000 ], [ 'milliseconds', 300 ],
	[ 'hundredths', 3000 ], [ 'seconds', 600 ])
{
	my ($name, $count) = @$case;
	my ($ahead, $ordered, $ticks) = split /\|/, sql(
		"SET snowflake.max_lead = 0", "SET snowflake.max_wait = '10ms'", qq{
		SELECT count(*) FILTER (WHERE snowflake_timestamp(id, '$layout{$name}') > time),
		       bool_and(id > before), max(tick) - min(tick) + 1
		FROM (SELECT *, lag(id, 1, 0::bigint) OVER (ORDER BY n) AS before,
		             (SELECT value FROM snowflake_fields(id, '$layout{$name}') WHERE field = 'timestamp') AS tick
		      FROM (SELECT n, next_id(7, '$name', '$layout{$name}') AS id, clock_timestamp() AS time
		            FROM generate_series(1, $count) n OFFSET 0) made OFFSET 0) made});
	is("$ahead|$ordered", '0|t', "$count IDs grow, and none is ahead of the clock: $name");
	# A latch counts in milliseconds, so it would take a hundred ticks an ID.
	cmp_ok($ticks, '<', 50 * $count, 'next_id() does not wait a millisecond for a tick of 10 microseconds')
	  if $name eq 'cockroachdb';
}

# Sessions take IDs of layouts of all shapes.
sql('CREATE TABLE taken (layout text, id bigint)');
my $script = PostgreSQL::Test::Utils::tempdir . '/script.sql';
append_to_file($script, join '', map {
	my $shard = $_ eq 'mastodon' ? 0 : 9;
	"INSERT INTO taken SELECT '$_', next_id($shard, '$_', '$layout{$_}') FROM generate_series(1, 10);\n"
} qw(cockroachdb sonyflake decimal trace seconds mastodon));
$node->command_ok([ 'pgbench', '-n', '-c', '16', '-j', '2', '-t', '10', '-f', $script, 'postgres' ],
	'16 sessions take IDs of layouts of all shapes');
is(sql('SELECT count(DISTINCT (layout, id)) = count(*), count(*) FROM taken'), 't|9600',
	'16 sessions take no ID of a layout twice');

done_testing();
