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
$node->safe_psql('postgres', 'CREATE DATABASE app');
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
	  . ";UPDATE shards SET holder = NULL; $take->{code}"), qr/^0$/m, 'a number is given again a day later');

$node->stop;

# A pod's shard comes from its name.  Here the image's entry point only starts
# the server.
my ($pod) = map { $_->{code} } grep { $_->{section} eq 'Kubernetes' } blocks('doc/scaling.md');
my ($command) = $pod =~ /command: \[bash, -c, '(.*)'\]/ or die 'no command for a pod';
my $bin = PostgreSQL::Test::Utils::tempdir();
append_to_file("$bin/docker-entrypoint.sh", "#!/bin/sh\nexec \"\$@\" -D '" . $node->data_dir . "'\n");
chmod 0755, "$bin/docker-entrypoint.sh";
foreach my $name ('photos-3', 'photos-12')
{
	local %ENV = (%ENV, HOSTNAME => $name, PATH => "$bin:" . $node->config_data('--bindir') . ":$ENV{PATH}");
	my $server = IPC::Run::start([ 'bash', '-c', $command ], '<', \undef, '>&', \my $log);
	my $made;
	wait_for(sub { $server->pump_nb; $made = (run_command([ 'psql', '-XAtd', $node->connstr('postgres'), '-c', 'SELECT snowflake_shard(next_id())' ]))[0] });
	my ($ordinal) = $name =~ /(\d+)$/;
	is($made, 100 + $ordinal, "the shard of the pod $name") or diag($log);
	$server->signal('INT');
	$server->finish;
}
done_testing();
