# lab/commands.d/Commands.pm
#	  Rounds with a server, one after the other, for lab/commands and for the TAP test.

package Commands;

use strict;
use warnings;
use Connection;
use Controls;
use Exporter 'import';
use PostgreSQL::Test::Utils ();
use Round;
use SnowflakeTest ();
use World;

our @EXPORT = qw(start_lab_server rules plant_in one_round);

# A server with the roles of all worlds, and with a database "base" from which worlds are made, where
# a fault is planted if a rule of Controls.pm is named
sub start_lab_server
{
	my ($name, $control) = @_;
	my $node = SnowflakeTest::server_in_utc($name, <<EOC);
restart_after_crash = on
max_connections = 60
fsync = off
autovacuum_naptime = 5s
max_prepared_transactions = 10
wal_level = logical
max_wal_senders = 10
wal_receiver_status_interval = 1s
wal_retrieve_retry_interval = 500ms
log_statement = ddl
log_line_prefix = '%m [%p] %q%a %d '
EOC

	$node->sql("$_;") foreach World::roles();
	$node->sql('CREATE DATABASE base');
	$node->safe_psql('base', 'CREATE EXTENSION snowflake_admin CASCADE');
	plant_in($node, $control) if $control;
	return $node;
}

sub rules { my @rules = sort keys %CONTROLS; return @rules }

# Plant the fault of a rule in a database, "base" unless another one is named.
sub plant_in
{
	my ($node, $rule, $database) = @_;
	my $session = Connection->new(host => $node->host, port => $node->port, database => $database // 'base',
		user => 'postgres')
	  or die $DBI::errstr;

	plant($session, $rule);
	return $session->close;
}

# A round that the seed decides.  Returns it, and says what happened.
sub one_round
{
	my ($node, $seed, $directory, %round) = @_;
	my @kinds = $round{control} ? $CONTROLS{ $round{control} }{kind} : @{ $round{kinds} // \@KINDS };

	srand $seed;
	mkdir $directory or die "$directory: $!";
	my $round = Round->new(node => $node, directory => $directory, kind => one_of(@kinds), %round);
	$round->{line} = eval { $round->run };
	if (!defined $round->{line})
	{
		my $error = $@;
		$round->fault('rounds that failed', $error);
		eval { $round->stop_load };
		$round->{line} = "$round->{kind}; " . join '; ', @{ $round->{happened} };
	}
	return $round;
}

1;
