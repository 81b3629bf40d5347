# What doc/scaling.md says of one server is so: where numbers come from, what
# they suffice for, and the columns that hold one.  xt/servers.pl runs the rest.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('scaling');
$node->init;
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SCHEMA shard5;
	CREATE SEQUENCE shard5.photos_id_seq;
	SELECT snowflake_alter_sequence('shard5.photos_id_seq');
	CREATE TABLE shard5.photos (id bigint PRIMARY KEY DEFAULT next_id(5, 'shard5.photos_id_seq'));
	CREATE TABLE albums (id bigint PRIMARY KEY DEFAULT next_id(5), n int DEFAULT 5);
	CREATE TABLE likes (id bigint PRIMARY KEY DEFAULT next_id());
});

run_examples($node, 'postgres', grep { $_->{code} !~ /^(--|#) on / } blocks('doc/scaling.md'));

# The next one that asks gets the next number, if the first was used lately.
$node->safe_psql('postgres', 'UPDATE shards SET last_id = snowflake_min_id(now()) WHERE last_id IS NOT NULL');
my ($take) = grep { $_->{code} =~ /^UPDATE.*RETURNING/s } blocks('doc/scaling.md');
is($node->safe_psql('postgres', $take->{code}), 1, 'a number that was used lately is not given again');
like($node->safe_psql('postgres', q{
		UPDATE shards SET holder = NULL, last_id = snowflake_min_id(now() - interval '2 days') WHERE shard = 0}
	  . ";UPDATE shards SET holder = NULL; $take->{code}"), qr/^0$/m, 'a day later it is');

$node->stop;
done_testing();
