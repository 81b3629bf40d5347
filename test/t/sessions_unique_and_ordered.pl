# Many sessions at once take no ID twice, each one's IDs grow, and a burst stays
# near the clock.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('sessions', "max_connections = 50\n");
my $dir = PostgreSQL::Test::Utils::tempdir;

sub query { return $node->safe_psql('postgres', $_[0]) }

sub no_rows
{
	my ($from, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is(query("SELECT count(*) FROM $from"), 0, $name);
}

# A unique index on "taken" would only hide where a duplicate came from.
query(q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE own MAXVALUE 1125899906841599;
	CREATE TABLE taken (session int, n bigint GENERATED ALWAYS AS IDENTITY, id bigint);
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(7), session int);
	CREATE TABLE burst (slot int, ids int, lead interval)});

write_file("$dir/single.sql", <<'EOS');
INSERT INTO taken (session, id) VALUES (:client_id, next_id(5));
EOS
write_file("$dir/many.sql", <<'EOS');
INSERT INTO taken (session, id) SELECT :client_id, next_id(5) FROM generate_series(1, 200);
EOS
write_file("$dir/batch.sql", <<'EOS');
INSERT INTO taken (session, id) SELECT :client_id, id FROM next_ids(5, 1500) id;
EOS
write_file("$dir/transaction.sql", <<'EOS');
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
$node->command_ok(
	[
		'pgbench', '-n', '-c', '32', '-j', '2', '-t', '150',
		'-f', "$dir/single.sql\@4", '-f', "$dir/many.sql\@3",
		'-f', "$dir/transaction.sql\@3", '-f', "$dir/batch.sql\@1", 'postgres'
	],
	'pgbench takes IDs in 32 sessions at once');

my $ids = query('SELECT count(*) FROM taken');
note("$ids IDs");
cmp_ok($ids, '>', 200_000, '32 sessions made more than 200,000 IDs');
is(query('SELECT count(DISTINCT id) FROM taken'), $ids, 'no ID of 32 sessions came twice');
is(query('SELECT count(DISTINCT session) FROM taken'), 32, 'all 32 sessions made IDs');
no_rows(q{(SELECT id, lag(id) OVER (PARTITION BY session ORDER BY n) AS before FROM taken) t
	WHERE id <= before}, 'the IDs of each session grow');
no_rows('taken WHERE snowflake_shard(id) <> 5', 'every ID has the shard that was asked for');
no_rows(q{taken
	WHERE snowflake_timestamp(id) > clock_timestamp() + interval '1 second'
	   OR snowflake_timestamp(id) < now() - interval '10 minutes'},
	'every ID has the time at which it was made');
no_rows('photos p JOIN taken t ON p.id >> 23 = t.id >> 23 AND p.id & 1023 = t.id & 1023',
	'IDs of two shards on one sequence share no time and slot');

# More IDs than the layout has for their time.  The sequence begins ahead of
# max_lead, so that even a slow machine reaches it.
query(setval_ahead('own', '3 seconds'));
write_file("$dir/burst.sql", <<'EOS');
INSERT INTO burst
SELECT snowflake_sequence_number(id), count(*), max(snowflake_timestamp(id) - time)
FROM (SELECT next_id(5, 'own') AS id, clock_timestamp() AS time FROM generate_series(1, 20000) OFFSET 0) i
GROUP BY 1;
EOS
$node->command_ok(
	[ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', '20', '-f', "$dir/burst.sql", 'postgres' ],
	'pgbench takes more IDs from 8 sessions than the layout has for their time');
is(query(q{SELECT max(lead) <= interval '1 second' FROM burst}), 't',
	'no ID of the burst was more than a second ahead of the clock');
# 8 * 20 * 20,000 IDs are 3,125 rounds of 1,024 slots.
is(query('SELECT count(*), min(ids), max(ids) FROM (SELECT sum(ids) AS ids FROM burst GROUP BY slot) s'),
	'1024|3125|3125', 'the burst used every slot equally often');

$node->stop;
done_testing();
