# The recipes and figures of doc/scaling.md that need one server: giving out
# numbers, how long they suffice, and a pod's number.
# test/external/servers.pl runs the others.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('scaling');
$node->safe_psql('postgres', 'CREATE DATABASE app; CREATE EXTENSION snowflake');

run_examples($node, 'postgres', grep { $_->{code} !~ /^(--|#) on / } blocks('doc/scaling.md'));

# What the numbers suffice for, and how soon two servers with one number collide
my $text = slurp_file("$top/doc/scaling.md");
my ($billions, @spare) = $text =~ /up\sto\s(\d+)\sbillion\sIDs\sa\sday\..*?\b(64)\s.*?([\d.]+)\snew\snumbers.*?
	\b(256)\s.*?([\d.]+)\seach.*?\b(1,024)\s([\d.]+\d).*?\b(4,096)\s([\d.]+\d)/sx
  or die 'no figures';
is($node->safe_psql('postgres', q{SELECT round(ids_per_tick / extract(epoch FROM tick) * 86400 / 1e9)
		FROM snowflake_layouts() WHERE name = 'instagram'}), $billions, 'a server makes as many IDs a day as the text says');
while (my ($servers, $numbers) = splice @spare, 0, 2)
{
	my $n = $servers =~ tr/,//dr;
	my $digits = length($numbers) - 2;
	is($node->safe_psql('postgres', qq{
			SELECT round((shards - $n) / $n.0 / ((expires::date - '2027-01-01') / 365.25), $digits)
			FROM snowflake_layouts() WHERE name = 'instagram'}),
		$numbers, "each of $servers servers can take as many numbers a year as the text says");
}
like($text, qr/twelve days with a row a second.*\b840 a day with 100 rows/s, 'the text says how soon IDs of one shard are equal');
is($node->safe_psql('postgres', 'SELECT round(1000 * 1024 / 86400.0), round(86400 * 100 * 100 / (1000 * 1024.0), -1)'),
	'12|840', 'IDs of one shard are equal as soon as the text says');

# The first number was used within a day, then not for two.
$node->safe_psql('postgres', 'UPDATE shards SET last_id = snowflake_min_id(now()) WHERE last_id IS NOT NULL');
my ($take) = grep { $_->{code} =~ /^UPDATE.*RETURNING/s } blocks_in('doc/scaling.md', 'Give out numbers');
is($node->safe_psql('postgres', $take->{code}), 1, 'a number that was used lately is not given again');
like($node->safe_psql('postgres', q{
		UPDATE shards SET holder = NULL, last_id = snowflake_min_id(now() - interval '2 days') WHERE shard = 0}
	  . ";UPDATE shards SET holder = NULL; $take->{code}"), qr/^0$/m, 'a number is given again a day later');

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
