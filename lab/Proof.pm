# lab/Proof.pm
#	  What the Perl parts of lab/soak, lab/power and lab/patroni share.

package Proof;

use strict;
use warnings;
use Exporter qw(import);
use POSIX qw(setsid);

our @EXPORT = qw(contents counted duplicates file_in_the_way one_of sql start start_housekeeper stop_clients write_file);

sub one_of { return $_[ rand @_ ] }

sub contents
{
	my ($path) = @_;
	open my $file, '<', $path or return '';
	local $/;
	return scalar(<$file>) // '';
}

# Write a file, which others see whole or not at all.
sub write_file
{
	my ($path, @text) = @_;
	open my $file, '>', "$path.new" or die "$path: $!";
	print $file @text;
	close $file;
	rename "$path.new", $path or die "$path: $!";
	return;
}

# PostgreSQL 15 does not start again if it crashed just after it rolled back a new
# unlogged relation, whose empty main file waits for a checkpoint to remove it.
# Returns the name of that file, if a server's log has its end in such a case.
sub file_in_the_way
{
	my ($log) = @_;
	return contents($log) =~ /.*FATAL: +could not create file "(base\/\d+\/\d+)": File exists/s ? $1 : '';
}

# Start a program in a directory and in a session of its own, with a log.  Returns its
# process ID.
sub start
{
	my ($directory, $log, @command) = @_;
	open my $output, '>>', $log or die "$log: $!";
	my $pid = fork() // die "fork: $!";
	return $pid if $pid;
	setsid();
	open STDIN, '<', '/dev/null';
	open STDOUT, '>&', $output;
	open STDERR, '>&', $output;
	# Not what the end of this program does to the processes that it has started
	chdir $directory and exec @command or POSIX::_exit(127);
}

# What a server answers; an empty string if that is an error.
sub sql
{
	my ($bindir, $host, $port, $sql) = @_;
	local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE PGCONNECT_TIMEOUT)} = ($host, $port, 'postgres', 'postgres', 3);
	open my $psql, '-|', 'sh', '-c', 'exec "$@" 2>/dev/null', 'sh', "$bindir/psql",
		qw(-X -q -At -v ON_ERROR_STOP=1 -c), $sql
		or die "psql: $!";
	my $answer = do { local $/; <$psql> } // '';
	close $psql or return '';
	return $answer =~ s/\n\z//r;
}

# One more client, which goes through some commands again and again.  It must not wait
# for a client that waits for it.
sub start_housekeeper
{
	my ($directory, $bindir, $pause, @commands) = @_;
	local $ENV{PGOPTIONS} = '-c lock_timeout=200ms';
	my $psql = join ' ', "$bindir/psql -Xq", map { "-c '$_'" } @commands;
	return start($directory, '/dev/null', 'sh', '-c', "while sleep $pause; do $psql; done");
}

# Returns whether all of the clients ended well.
sub stop_clients
{
	kill 'TERM', @_;
	return !grep { waitpid($_, 0) != $_ || $? != 0 } @_;
}

# A count in the report on a ledger, by the program in the current directory
sub counted { my ($what, $name) = @_; return `./ledger check $name 2>&1` =~ /^$what +(\d+)/m ? $1 : 0 }

# The ledgers that show an ID twice, of those whose state is in one of these files
sub duplicates { return grep { counted('duplicates', $_) } map { s/\.state\z//r } @_ }

1;
