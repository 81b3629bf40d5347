# What the tests of doc/migrating.md share: a server, and sessions that use its
# tables while the test types a recipe.
package MigrationTest;

use strict;
use warnings;
use Exporter 'import';
use List::Util qw(min sum);
use IPC::Run;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

our @EXPORT = qw(start_server new_database recipe value start_sessions sessions_go_on sessions_end_without_error);

my $node;

# A statement that hangs must fail the test, so statements have a timeout.
sub start_server
{
	my ($name) = @_;

	$node = server_in_utc($name, "statement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s'\n");
	return $node;
}

# Create a database with the extension.
sub new_database
{
	my ($database) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION snowflake');
	return;
}

sub recipe
{
	return blocks_in('doc/migrating.md', @_);
}

sub value
{
	my ($database, $query) = @_;
	return $node->safe_psql($database, $query);
}

# Start sessions that repeat a script until the test stops them.  A query of the
# script that divides by zero, or has no row for \gset, is an error.
my $started = 0;

sub start_sessions
{
	my ($database, $script, @options) = @_;
	my $name = 'sessions' . ++$started;
	my $file = PostgreSQL::Test::Utils::tempdir() . '/script.sql';
	my %sessions = (name => $name, database => $database, output => '');

	append_to_file($file, $script);
	local $ENV{PGAPPNAME} = $name;
	$sessions{pgbench} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '4', '-R', '150', '-T', '3600', '-P', '1', '--verbose-errors', '-D', 'last=0',
			@options, '-f', $file, '-h', $node->host, '-p', $node->port, $database ],
		'>', '/dev/null', '2>', \$sessions{output});
	sessions_go_on(\%sessions, "sessions begin to work in database $database");
	return \%sessions;
}

# pgbench reports the transactions of each second.  The server's own statistics
# would come too late.
my $progress = qr/^progress: [\d.]+ s, ([\d.]+) tps.*\n/m;

sub _rates
{
	my ($sessions) = @_;
	eval { $sessions->{pgbench}->pump_nb; 1 } or return;
	return $sessions->{output} =~ /$progress/g;
}

# The sessions carry out many more transactions from now on.
sub sessions_go_on
{
	my ($sessions, $name) = @_;
	my $seconds = _rates($sessions) + 1;    # and the one that has begun

	ok(wait_for(sub {
		my @rates = _rates($sessions);
		return sum(0, splice(@rates, min($seconds, scalar @rates))) > 200 }), $name);
	return;
}

# The sessions still work; stop them, and look for errors of any of them.
sub sessions_end_without_error
{
	my ($sessions) = @_;

	sessions_go_on($sessions, "sessions still work at the end in database $sessions->{database}");
	$sessions->{pgbench}->signal('TERM');
	$sessions->{pgbench}->finish;
	is($sessions->{output} =~ s/$progress//gr, '', "no session got an error in database $sessions->{database}");
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = '$sessions->{name}'");
	return;
}

1;
