# lab/commands.d/Connection.pm
#	  A session with a server, over PostgreSQL's protocol: libpq's Perl module is on few
#	  machines, and psql does not tell a lost connection from an error, nor a commit that
#	  was acknowledged from one that may have been.
#
# Knows servers that trust whoever connects to their Unix socket.

package Connection;

use strict;
use warnings;
use IO::Select;
use IO::Socket::UNIX;
use Time::HiRes qw(time);

# Why the last connection was refused
our $refused = '';

# Connect, within some seconds, to {socket}, {database} as {user}, with {options} for the
# server.  Returns nothing if that is impossible.
sub new
{
	my ($class, %to) = @_;
	my $socket = IO::Socket::UNIX->new(Peer => $to{socket});
	unless ($socket)
	{
		$refused = $!;
		return;
	}
	my $self = bless { %to, socket => $socket, buffer => '', result => { rows => [], notices => [] } }, $class;
	my $startup = join '', map { "$_\0" } user => $to{user}, database => $to{database}, client_encoding => 'UTF8',
	  application_name => 'lab', $to{options} ? (options => $to{options}) : (), '';

	$self->_write(pack('N N', length($startup) + 8, 196608) . $startup);
	my $ready = $self->wait($to{patience} // 20);
	return $self unless $ready->{lost} || $ready->{error};
	$refused = $ready->{error} ? $ready->{error}{message} : 'no answer';
	return;
}

sub pid { return $_[0]->{pid} }

sub _write
{
	my ($self, $bytes) = @_;
	local $SIG{PIPE} = 'IGNORE';
	while (length $bytes)
	{
		my $written = syswrite $self->{socket}, $bytes or return $self->{lost} = 1;
		substr($bytes, 0, $written) = '';
	}
	return;
}

# Send statements, whose result poll() or wait() will return.
sub send
{
	my ($self, $sql) = @_;
	my $text = "$sql\0";

	utf8::encode($text) if utf8::is_utf8($text);
	$self->{result} = { rows => [], notices => [] };
	$self->{busy} = 1;
	$self->_write('Q' . pack('N', length($text) + 4) . $text);
	return;
}

# The result, if it has come, or comes within some seconds: {rows}, {notices}, and {error}
# if there is one, or {lost} if the connection is.
sub poll
{
	my ($self, $seconds) = @_;
	my $end = time() + ($seconds // 0);

	while (1)
	{
		while (length $self->{buffer} >= 5)
		{
			my ($kind, $length) = unpack 'a N', $self->{buffer};
			last if length $self->{buffer} < $length + 1;
			my $body = substr $self->{buffer}, 5, $length - 4;
			substr($self->{buffer}, 0, $length + 1) = '';
			return $self->_end if $self->_message($kind, $body);
		}
		return $self->_end({ lost => 1 }) if $self->{lost};
		my $left = $end - time();
		IO::Select->new($self->{socket})->can_read($left > 0 ? $left : 0) or return;
		sysread $self->{socket}, $self->{buffer}, 65536, length $self->{buffer} or $self->{lost} = 1;
	}
}

sub _end
{
	my ($self, $more) = @_;
	$self->{busy} = 0;
	return { %{ $self->{result} }, %{ $more // {} } };
}

# Take in a message.  Returns whether the server is ready for the next statement.
sub _message
{
	my ($self, $kind, $body) = @_;
	my $result = $self->{result};

	if ($kind eq 'D')
	{
		my $at = 2;
		my @row;
		foreach (1 .. unpack 'n', $body)
		{
			my $length = unpack 'l>', substr $body, $at, 4;
			push @row, $length < 0 ? undef : substr $body, $at + 4, $length;
			$at += 4 + ($length < 0 ? 0 : $length);
		}
		push @{ $result->{rows} }, \@row;
	}
	elsif ($kind eq 'E' || $kind eq 'N')
	{
		my %field = map { substr($_, 0, 1) => substr $_, 1 } grep { length } split /\0/, $body;
		my $said = { sqlstate => $field{C}, message => $field{M}, detail => $field{D} // '', hint => $field{H} // '',
			severity => $field{V} // $field{S} };
		$kind eq 'E' ? $result->{error} //= $said : push @{ $result->{notices} }, $said;
	}
	elsif ($kind eq 'K') { $self->{pid} = unpack 'N', $body; }
	elsif ($kind eq 'Z') { $self->{status} = $body; return 1; }
	elsif ($kind eq 'R' && unpack('N', $body) != 0) { $self->{lost} = 1; }
	return 0;
}

# The same, but a server that says nothing for so long counts as lost.
sub wait { my ($self, $seconds) = @_; return $self->poll($seconds // 60) // $self->_end({ lost => 1, silent => 1 }) }

sub query { my ($self, $sql, $seconds) = @_; $self->send($sql); return $self->wait($seconds) }

# The first column of the first row
sub value { my ($self, $sql) = @_; return $self->query($sql)->{rows}[0][0] }

sub close { my ($self) = @_; $self->_write("X\0\0\0\4"); return $self->{socket}->close }

1;
