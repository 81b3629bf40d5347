# TimescaleDB: the recipe of doc/ranges.md does what it shows, and its chunks are UTC days.
# Debian has it for 17.  test/external/citus.pl says how to test with another one.
#
# Packages: postgresql-@MAJOR@-timescaledb

use SnowflakeTest;

plan skip_all => 'TimescaleDB is not installed: see the head of this test' unless get_extension('timescaledb');

my $node = server_in_utc('timescaledb', <<EOC);
shared_preload_libraries = 'timescaledb'
timescaledb.telemetry_level = off
EOC

my ($create, $drop) = grep { $_->{section} eq 'TimescaleDB' } blocks('doc/ranges.md');
run_examples($node, 'postgres', $create);
$node->sql(q{
	INSERT INTO events (id, kind)
	SELECT snowflake_id(t, 5, 0), 'minute'
	FROM generate_series('2026-11-01 00:00Z'::timestamptz, '2026-11-05 23:59Z', '1 minute') AS t;
	INSERT INTO events (kind) VALUES ('now')});

# Both kinds of condition leave out the chunks of later days.
foreach my $condition (q{id < snowflake_min_id('2026-11-02 12:00Z')}, q{snowflake_timestamp(id) < '2026-11-02 12:00Z'})
{
	my $plan = plan_of($node, "SELECT * FROM events WHERE $condition", 'ANALYZE events;');
	is(join(' ', $plan =~ /(_hyper_\w+)$/mg), '_hyper_1_1_chunk _hyper_1_2_chunk',
		"two chunks are read where $condition");
}
is($node->sql(<<'EOS'), join("\n", map { "2026-11-0$_ 00:00:00+00|1440" } 1 .. 5), 'time_bucket() counts days');
SELECT time_bucket('1 day', snowflake_timestamp(id)) AS day, count(*) FROM events
WHERE id < snowflake_min_id('2026-11-06Z') GROUP BY day ORDER BY day
EOS
run_examples($node, 'postgres', $drop);
is($node->sql('SELECT min(snowflake_timestamp(id)) FROM events'), '2026-11-03 00:00:00+00',
	'chunks before a time are dropped');
is($node->sql(<<EOS), '2026-11-03|2026-11-04|2026-11-05', 'a chunk is a day of UTC');
SELECT string_agg(DISTINCT snowflake_timestamp(id)::date::text, '|')
FROM (SELECT tableoid, min(id) AS first, max(id) AS last FROM events GROUP BY tableoid
	HAVING count(DISTINCT snowflake_timestamp(id)::date) = 1) AS chunks JOIN events ON id = first
WHERE id < snowflake_min_id('2026-11-06Z')
EOS
is($node->sql(<<EOS), 't', 'a row that is inserted now is in a chunk');
SELECT tableoid::regclass <> 'events'::regclass FROM events WHERE kind = 'now'
EOS

$node->stop;
done_testing();
