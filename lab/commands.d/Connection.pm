# lab/commands.d/Connection.pm
#	  A session with a server, whose statements others need not wait for, and which tells a
#	  lost connection from an error.
#
# Knows DBD::Pg, and servers that trust whoever connects.

package Connection;

use strict;
use warnings;
use DBD::Pg qw(:async);
use DBI;
use IO::Select;
use Time::HiRes qw(time);

# Connect to {database} of the server {host} and {port} as {user}, with {options} for the
# server.  Returns nothing if that is impossible; $DBI::errstr says why.
sub new
{
	my ($class, %to) = @_;
	my $source = join ';', 'dbi:Pg:application_name=lab', 'connect_timeout=20', "host=$to{host}", "port=$to{port}",
	  "dbname=$to{database}", $to{options} ? "options='" . $to{options} =~ s/([\\'])/\\$1/gr . "'" : ();
	my $handle = DBI->connect($source, $to{user}, '', { PrintError => 0, PrintWarn => 0, AutoInactiveDestroy => 1 })
	  or return;

	return bless { handle => $handle, pid => $handle->{pg_pid}, lost => 0, busy => 0 }, $class;
}

sub pid { return $_[0]->{pid} }

# Send a statement, whose result poll() or wait() will return.  Of several statements, DBD::Pg has the
# first one's result, and then waits for all.
sub send
{
	my ($self, $sql) = @_;

	# DBD::Pg would wait for the statement that it has in place of this one.
	return if $self->{lost};
	# Without pg_direct, DBD::Pg would take question marks for parameters.
	$self->{statement} = $self->{handle}->prepare($sql, { pg_direct => 1, pg_async => PG_ASYNC });
	$self->{statement}->execute;
	$self->{busy} = 1;
	return;
}

# The result, if it has come, or comes within some seconds: {rows} of the last statement, or
# {error}, and {lost} if the connection is.
sub poll
{
	my ($self, $seconds) = @_;
	my ($handle, $statement) = @$self{qw(handle statement)};
	my $end = time() + ($seconds // 0);

	until ($self->{lost} || $handle->pg_ready)
	{
		my $left = $end - time();
		return if $left <= 0;
		IO::Select->new($handle->{pg_socket})->can_read($left);
	}
	$self->{busy} = 0;
	# To DBD::Pg 3.21, a canceled statement is no error, but has its SQLSTATE.
	return { rows => $statement->{NUM_OF_FIELDS} ? $statement->fetchall_arrayref : [] }
	  if !$self->{lost} && $handle->pg_result && !$handle->state;
	$self->{lost} ||= $handle->state =~ /^08/;
	my $message = ($handle->errstr // '') =~ s/^ERROR: +//r =~ s/^CONTEXT: .*//msr =~ s/\n+/ /gr;
	return { rows => [], lost => $self->{lost}, error => { sqlstate => $handle->state, message => $message } };
}

# The same, but a server that says nothing for so long counts as lost.
sub wait
{
	my ($self, $seconds) = @_;
	my $result = $self->poll($seconds // 60);

	return $result if $result;
	$self->{lost} = 1;
	return { rows => [], lost => 1, error => { sqlstate => 'silent', message => 'no answer' } };
}

sub query { my ($self, $sql, $seconds) = @_; $self->send($sql); return $self->wait($seconds) }

# The first column of the first row
sub value { my ($self, $sql) = @_; return $self->query($sql)->{rows}[0][0] }

# End the session, also while a statement runs.
sub close { my ($self) = @_; $self->{lost} = 1; return $self->{handle}->disconnect }

# DBI would wait for the statement.
sub DESTROY { my ($self) = @_; return $self->{handle} && $self->close }

1;
