# lab/remedies.d/Remedies.pm
#	  A server whose clock can be stepped, with the databases from which worlds are made, and
#	  rounds, one after the other, for lab/remedies and for the TAP test.

package Remedies;

use strict;
use warnings;
use Commands ();
use Controls;
use Exporter 'import';
use Obey;
use PostgreSQL::Test::Utils ();
use Server;
use SnowflakeTest ();
use World;

our @EXPORT = qw(start_remedies_server plant_in_server one_round);

# Faults to plant, and the fault of a world that a round then has.
$CONTROLS{sessions} = {
	faults_of => ['fast clock'], role => 'boss',
	# Of other roles' sessions, pg_stat_activity hides the kind.
	replace => [ [ q{leader_pid IS NULL AND pid NOT IN}, q{backend_type = 'client backend' AND pid NOT IN} ] ] };
$CONTROLS{look} = {
	faults_of => [ 'fast clock', 'locked code' ],
	# What cannot be read blinds the look for all others, and nobody says so.
	replace => [ [ 'FROM calls AS c JOIN pieces USING (n)',
			'FROM (SELECT * FROM calls WHERE (SELECT bool_and(is_read) FROM pieces)) AS c JOIN pieces USING (n)' ],
		[ "NULL, NULL, NULL\n\tFROM pieces WHERE NOT is_read", "NULL, NULL, NULL\n\tFROM pieces WHERE false" ] ] };
$CONTROLS{again} = {
	faults_of => ['ahead'], between => ['row of a kept ID'],
	replace => [ [ 'start := next_safe_id(sequence, g, served, is_lost, pids)',
		"start := bound(clock_timestamp() + interval '1 s', to_layout(served))" ] ] };

# Each of two databases has the extensions of another role.
my %bases = (base => 'postgres', base_of_boss => 'boss');

sub start_remedies_server
{
	my ($name, $control) = @_;

	# Servers run from a copy, where the version of the files can change, and PostgreSQL lists extensions only
	# where its own are.
	my ($bindir, $extensions) = SnowflakeTest::copied_installation(PostgreSQL::Test::Utils::tempdir_short);
	$ENV{PATH} = "$bindir:$ENV{PATH}";
	delete $ENV{TEMP_CONFIG};
	my $node = SnowflakeTest::server_with_clock($name, '+0', <<EOC);
restart_after_crash = on
max_connections = 80
fsync = off
autovacuum_naptime = 5s
dynamic_shared_memory_type = mmap
wal_level = replica
max_wal_senders = 4
log_statement = ddl
log_line_prefix = '%m [%p] %q%u %a %d '
EOC
	$node->{lab_extensions} = $extensions;
	$node->sql("CREATE ROLE $_ LOGIN") foreach qw(boss lender stranger lab_app);
	foreach my $base (sort keys %bases)
	{
		$node->sql("CREATE DATABASE $base OWNER boss");
		$node->safe_psql($base, 'CREATE EXTENSION snowflake_admin CASCADE',
			connstr => $node->connstr($base) . " user=$bases{$base}");
	}
	plant_in_server($node, $control) if $control;
	return $node;
}

sub plant_in_server
{
	my ($node, $rule) = @_;

	foreach my $base (keys %bases)
	{
		Commands::plant_in($node, $rule, $base);
	}
	return;
}

# A round that the seed decides.  Returns it, and says what happened.
sub one_round
{
	my ($node, $seed, $directory, %round) = @_;
	my $control = $round{control} ? $CONTROLS{ $round{control} } : {};

	srand $seed;
	mkdir $directory or die "$directory: $!";
	my $base = one_of(sort keys %bases);
	my $round = Obey->new(node => $node, directory => $directory, base => $base, owner => $bases{$base},
		%$control, %round);
	$round->{line} = eval { $round->run };
	if (!defined $round->{line})
	{
		my $error = $@;
		$round->fault('rounds that failed', $error);
		eval { $round->stop_load };
		eval { $round->clean_up };
		$round->{line} = join '; ', @{ $round->{happened} };
	}
	return $round;
}

1;
