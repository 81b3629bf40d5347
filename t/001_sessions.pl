# Many sessions at once: no ID twice, and each session's IDs grow.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('sessions');
$node->init;
$node->append_conf('postgresql.conf', "max_connections = 50\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE own MAXVALUE 1125899906841599;
	-- no unique index: it would only hide where a duplicate came from
	CREATE TABLE taken (session int, n bigint GENERATED ALWAYS AS IDENTITY, id bigint);
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(7), session int);
});

my $dir = PostgreSQL::Test::Utils::tempdir;
append_to_file("$dir/single.sql",
	"INSERT INTO taken (session, id) VALUES (:client_id, next_id(5));\n");
append_to_file("$dir/many.sql",
	"INSERT INTO taken (session, id) SELECT :client_id, next_id(5) FROM generate_series(1, 200);\n");
append_to_file("$dir/transaction.sql", <<'EOS');
BEGIN;
INSERT INTO photos (session) VALUES (:client_id);
INSERT INTO taken (session, id) VALUES (:client_id, next_id(5));
SAVEPOINT s;
INSERT INTO taken (session, id) VALUES (:client_id, next_id(5));
ROLLBACK TO s;
INSERT INTO taken (session, id) VALUES (:client_id, next_id(5)), (:client_id, next_id(5));
INSERT INTO photos (session) VALUES (:client_id);
COMMIT;
EOS

append_to_file("$dir/batch.sql",
	"INSERT INTO taken (session, id) SELECT :client_id, id FROM next_ids(5, 1500) id;\n");

$node->command_ok(
	[
		'pgbench', '-n', '-c', '32', '-j', '2', '-t', '150',
		'-f', "$dir/single.sql\@4", '-f', "$dir/many.sql\@3",
		'-f', "$dir/transaction.sql\@3", '-f', "$dir/batch.sql\@1", 'postgres'
	],
	'pgbench takes IDs in 32 sessions at once');

my $ids = $node->safe_psql('postgres', 'SELECT count(*) FROM taken');
cmp_ok($ids, '>', 200_000, '32 sessions made more than 200,000 IDs');
note("$ids IDs");
is($node->safe_psql('postgres', 'SELECT count(DISTINCT id) FROM taken'),
	$ids, 'no ID of 32 sessions came twice');
is($node->safe_psql('postgres', 'SELECT count(DISTINCT session) FROM taken'),
	32, 'all 32 sessions made IDs');
is( $node->safe_psql('postgres', q{
		SELECT count(*) FROM
		(SELECT id, lag(id) OVER (PARTITION BY session ORDER BY n) AS before FROM taken) t
		WHERE id <= before}),
	0, 'the IDs of each session grow');
is( $node->safe_psql('postgres', q{
		SELECT count(*) FROM taken WHERE snowflake_shard(id) <> 5}),
	0, 'every ID has the shard that was asked for');
is( $node->safe_psql('postgres', q{
		SELECT count(*) FROM taken
		WHERE snowflake_timestamp(id) > clock_timestamp() + interval '1 second'
		   OR snowflake_timestamp(id) < now() - interval '10 minutes'}),
	0, 'every ID has the time at which it was made');
is( $node->safe_psql('postgres', q{
		SELECT count(*) FROM photos p JOIN taken t
		  ON p.id >> 23 = t.id >> 23 AND p.id & 1023 = t.id & 1023}),
	0, 'IDs of two shards on one sequence share no time and slot');

# More than the layout holds for a while: every ID's lead stays bounded.  The
# sequence begins beyond that bound, so that even a slow machine reaches it.
$node->safe_psql('postgres', q{
	CREATE TABLE burst (slot int, ids int, lead interval);
	SELECT setval('own', (snowflake_min_id(clock_timestamp() + interval '3 seconds') >> 23) * 1024)});
append_to_file("$dir/burst.sql", <<'EOS');
INSERT INTO burst
SELECT snowflake_sequence(id), count(*), max(snowflake_timestamp(id) - time)
FROM (SELECT next_id(5, 'own') AS id, clock_timestamp() AS time FROM generate_series(1, 20000) OFFSET 0) i
GROUP BY 1;
EOS
$node->command_ok(
	[ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', '20', '-f', "$dir/burst.sql", 'postgres' ],
	'pgbench takes more IDs from 8 sessions than the layout has for their time');
is($node->safe_psql('postgres', q{SELECT max(lead) <= interval '1 second' FROM burst}),
	't', 'no ID of the burst was more than a second ahead of the clock');
# 3125 rounds of 1024 slots
is( $node->safe_psql('postgres', q{
		SELECT count(*), min(ids), max(ids)
		FROM (SELECT slot, sum(ids) AS ids FROM burst GROUP BY slot) s}),
	'1024|3125|3125', 'the burst used every slot equally often');

$node->stop;
done_testing();
