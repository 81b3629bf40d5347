# The recipes and figures of doc/scaling.md that need one server: giving out
# numbers, how soon two servers with one number collide, and a pod's number.
# test/external/servers.pl and test/t/standby_same_shard.pl run the others.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('scaling');
$node->safe_psql('postgres', 'CREATE DATABASE app; CREATE EXTENSION snowflake');

run_examples($node, 'postgres', grep { $_->{code} !~ /^(--|#) on / } blocks('doc/scaling.md'));

# How soon two servers with one number collide
my $text = slurp_file("$top/doc/scaling.md");
like($text, qr/one row a\s+second\b.*\babout\s+every\s+twelve\s+days; at 100 rows a second, 840 a day/s, 'the text says how soon IDs of one shard are equal');
is($node->safe_psql('postgres', 'SELECT round(1000 * 1024 / 86400.0), round(86400 * 100 * 100 / (1000 * 1024.0), -1)'),
	'12|840', 'IDs of one shard are equal as soon as the text says');

# A number that was given back is not taken again before a day.
my ($take) = grep { $_->{code} =~ /^UPDATE.*RETURNING/s } blocks_in('doc/scaling.md', 'Give out numbers');
is($node->safe_psql('postgres', $take->{code}), 1, 'a number that was given back just now is not given again');
is($node->safe_psql('postgres', q{
		UPDATE shards SET holder = NULL, free_since = now() - interval '2 days' WHERE shard = 0;
		UPDATE shards SET holder = NULL;}
	  . $take->{code}), 0, 'a number is given again a day later');

$node->stop;

# A pod's shard comes from its name.  Here the image's entry point only starts
# the server.
my ($pod) = blocks_in('doc/scaling.md', 'Kubernetes');
my ($command) = $pod->{code} =~ /command: \[bash, -c, '(.*)'\]/ or die 'no command for a pod';
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
	is($made, 100 + $ordinal, "the pod $name has the shard that its ordinal says") or diag($log);
	$server->signal('INT');
	$server->finish;
}
done_testing();
