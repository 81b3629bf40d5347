# Logical replication of tables carries rows and no sequences.  Publisher and
# subscriber have a shard each.  A clone of the subscriber lets go of the
# subscription as doc/administration.md says, and the subscriber does not lose its
# slot.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $publisher = server_ahead_of_clock('publisher', '', allows_streaming => 'logical');
$publisher->safe_psql('postgres', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), n int);
	INSERT INTO photos SELECT FROM generate_series(1, 100);
	CREATE TABLE notes (n int PRIMARY KEY);
	INSERT INTO notes SELECT generate_series(1, 100);
	CREATE PUBLICATION p FOR TABLE photos, notes});
ahead_of_clock($publisher, 'next_id_seq', '1 day');
my $ahead = $publisher->safe_psql('postgres', 'INSERT INTO photos DEFAULT VALUES RETURNING id');

my $subscriber = server_in_utc('subscriber', '', allows_streaming => 1);
$subscriber->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(6), n int);
	INSERT INTO photos SELECT FROM generate_series(1, 50);
	CREATE TABLE notes (n int PRIMARY KEY, id bigint DEFAULT next_id(6))});
$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION s CONNECTION '" . $publisher->connstr('postgres') =~ s/'/''/gr . "' PUBLICATION p");
$subscriber->wait_for_subscription_sync($publisher, 's');
$publisher->safe_psql('postgres', q{
	INSERT INTO photos SELECT FROM generate_series(1, 100);
	INSERT INTO notes SELECT generate_series(101, 200)});
$subscriber->safe_psql('postgres', 'INSERT INTO photos SELECT FROM generate_series(1, 50)');
$publisher->wait_for_catchup('s');

is($subscriber->safe_psql('postgres', 'SELECT snowflake_shard(id), count(*) FROM photos GROUP BY 1 ORDER BY 1'),
	"5|201\n6|100", 'a subscriber has the publisher\'s rows beside its own');
is($subscriber->safe_psql('postgres', q{SELECT lead < interval '1 hour' FROM snowflake_sequences('next_id_seq')}),
	't', 'replicated rows leave the subscriber\'s sequence where it is');
is( $subscriber->safe_psql('postgres', qq{
		UPDATE photos SET n = 2 WHERE id = $ahead RETURNING snowflake_timestamp(id) > now() + interval '1 hour'}),
	't', 'replicated rows keep their IDs\' times');
is($subscriber->safe_psql('postgres', 'SELECT count(DISTINCT id), bool_and(snowflake_shard(id) = 6) FROM notes'),
	'200|t', 'a subscriber makes an ID for each row, copied or replicated, if the publisher has none');

$subscriber->backup('base');
my $clone = PostgreSQL::Test::Cluster->new('clone');
$clone->init_from_backup($subscriber, 'base');
my ($options, $drop) = map { $_->{code} } blocks_in('doc/administration.md', 'Clones');
$clone->append_conf('postgresql.conf', join '', map { "$_\n" } $options =~ /-c (\w+=\S+?)"?(?= )/g);
$clone->start;
$clone->safe_psql('postgres', $drop =~ s/\bs3\b/s/gr);
is($clone->safe_psql('postgres', 'SELECT count(*) FROM pg_subscription'), 0,
	'a clone of a subscriber drops its subscription');
$publisher->safe_psql('postgres', 'INSERT INTO notes VALUES (201)');
$publisher->wait_for_catchup('s');
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM notes'), 201,
	'the subscriber that was cloned has its slot and gets rows');
$clone->stop;

$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
$subscriber->stop;
$publisher->stop;
done_testing();
