# Logical replication of tables carries rows and no sequences.  Publisher and
# subscriber have a shard each.  A clone of the subscriber lets go of the
# subscription as doc/administration.md says, and the subscriber does not lose its
# slot.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

# Publisher and subscriber are databases of one server.
my $node = server_ahead_of_clock('server', '', allows_streaming => 'logical');
ahead_of_clock($node, 'next_id_seq', '1 day');

sub publisher { return $node->safe_psql('postgres', $_[0]) }
sub subscriber { return $node->safe_psql('subscriber', $_[0]) }

publisher('CREATE DATABASE subscriber');
publisher(q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), n int);
	INSERT INTO photos SELECT FROM generate_series(1, 100);
	CREATE TABLE notes (n int PRIMARY KEY);
	INSERT INTO notes SELECT generate_series(1, 100);
	CREATE PUBLICATION p FOR TABLE photos, notes;
	SELECT pg_create_logical_replication_slot('s', 'pgoutput')});
my $ahead = publisher('INSERT INTO photos DEFAULT VALUES RETURNING id');
subscriber(q{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(6), n int);
	INSERT INTO photos SELECT FROM generate_series(1, 50);
	CREATE TABLE notes (n int PRIMARY KEY, id bigint DEFAULT next_id(6))});
subscriber("CREATE SUBSCRIPTION s CONNECTION '" . $node->connstr('postgres') =~ s/'/''/gr
	  . "' PUBLICATION p WITH (create_slot = false)");
$node->wait_for_subscription_sync($node, 's', 'subscriber');
publisher(q{
	INSERT INTO photos SELECT FROM generate_series(1, 100);
	INSERT INTO notes SELECT generate_series(101, 200)});
subscriber('INSERT INTO photos SELECT FROM generate_series(1, 50)');
$node->wait_for_catchup('s');

is(subscriber('SELECT snowflake_shard(id), count(*) FROM photos GROUP BY 1 ORDER BY 1'),
	"5|201\n6|100", 'a subscriber has the publisher\'s rows beside its own');
is(subscriber(q{SELECT lead < interval '1 hour' FROM snowflake_sequences('next_id_seq')}),
	't', 'replicated rows leave the subscriber\'s sequence where it is');
is(subscriber(qq{
		UPDATE photos SET n = 2 WHERE id = $ahead RETURNING snowflake_timestamp(id) > now() + interval '1 hour'}),
	't', 'replicated rows keep their IDs\' times');
is(subscriber('SELECT count(DISTINCT id), bool_and(snowflake_shard(id) = 6) FROM notes'),
	'200|t', 'a subscriber makes an ID for each row, copied or replicated, if the publisher has none');

$node->backup('base');
my $clone = PostgreSQL::Test::Cluster->new('clone');
$clone->init_from_backup($node, 'base');
my ($options, $drop) = map { $_->{code} } blocks_in('doc/administration.md', 'Clones');
$clone->append_conf('postgresql.conf', join '', map { "$_\n" } $options =~ /-c (\w+=\S+?)"?(?= )/g);
$clone->start;
$clone->safe_psql('subscriber', $drop =~ s/\bs3\b/s/gr);
is($clone->safe_psql('postgres', 'SELECT count(*) FROM pg_subscription'), 0,
	'a clone of a subscriber drops its subscription');
publisher('INSERT INTO notes VALUES (201)');
$node->wait_for_catchup('s');
is(subscriber('SELECT count(*) FROM notes'), 201, 'the subscriber that was cloned has its slot and gets rows');
$clone->stop;

subscriber('DROP SUBSCRIPTION s');
$node->stop;
done_testing();
