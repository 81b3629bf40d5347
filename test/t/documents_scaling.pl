# The recipes and figures of doc/scaling.md that need one server: giving out
# numbers, how soon two servers with one number collide, handing a table over,
# and a pod's number.
# test/external/servers.pl and test/t/standby_same_shard.pl run the others.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('scaling', "wal_level = logical\nmax_wal_senders = 5\n");
$node->safe_psql('postgres', 'CREATE DATABASE app; CREATE EXTENSION snowflake');

my @here = grep { $_->{code} !~ /^(--|#) on / } blocks('doc/scaling.md');
my ($set) = grep { /snowflake_set_shard/ } map { $_->{code} } @here;
run_examples($node, 'postgres', grep { $_->{code} ne $set } @here);

# The number is set on the new server.
$node->safe_psql('app', "CREATE EXTENSION snowflake; $set");
is($node->safe_psql('app', 'SELECT snowflake_shard(next_id())'), 0, 'the number that was given is set');

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

# A table is handed over only to subscribers that are there, and without making
# others wait behind a transaction that takes long.  Here a program that receives
# a slot's changes is the subscriber.
run_examples($node, 'postgres', grep { $_->{code} =~ /^CREATE PROCEDURE hand_over/m } blocks_in('doc/scaling.md', 'Move a shard'));
$node->safe_psql('postgres', q{
	CREATE TABLE photos (id bigint PRIMARY KEY);
	CREATE PUBLICATION photos FOR TABLE photos;
	SELECT pg_create_logical_replication_slot(name, 'pgoutput') FROM unnest(ARRAY['used', 'unused']) AS name;
	SELECT pg_create_physical_replication_slot('physical')});
my $subscriber = IPC::Run::start(
	[ 'pg_recvlogical', '-d', $node->connstr('postgres'), '--slot', 'used', '--start', '-f', '/dev/null', '-F', '0', '-s', '1',
		'-o', 'proto_version=1', '-o', 'publication_names=photos' ], '<', \undef, '>&', \my $received);
$node->poll_query_until('postgres', q{SELECT active FROM pg_replication_slots WHERE slot_name = 'used'}) or die 'nobody receives';
foreach my $slot ('misspelt', 'unused', 'physical')
{
	fails_with($node, "CALL hand_over('photos', 'used', '$slot')", qr/^P0001 not all of these .*: \{used,$slot\}/,
		"a table is not handed over to the slot $slot");
}
my $writer = $node->background_psql('postgres');
$writer->query_safe('BEGIN; INSERT INTO photos VALUES (1)');
fails_with($node, q{CALL hand_over('photos', 'used')}, qr/^55P03 canceling statement due to lock timeout/,
	'a transaction that takes long ends the attempt to hand a table over');
$writer->query_safe('COMMIT; INSERT INTO photos VALUES (2)');
$writer->quit;
pass('a table is written to after attempts to hand it over');

# A call that is cancelled can be repeated, and goes on to wait.
$subscriber->signal('STOP');
my $cancelled = q{SET statement_timeout = '1s'; CALL hand_over('photos', 'used')};
fails_with($node, $cancelled, qr/^57014 /, 'a table is not handed over before its rows have arrived') for 1 .. 2;
fails_with($node, 'INSERT INTO photos VALUES (3)', qr/^P0001 photos has moved/, 'a table that is handed over refuses writes');
$subscriber->signal('CONT');
is($node->safe_psql('postgres', q{CALL hand_over('photos', 'used')}), '', 'a table is handed over once its rows have arrived');
$subscriber->signal('INT');
$subscriber->finish;

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
