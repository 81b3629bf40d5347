# Servers that die at once, as in a power failure, and servers with a clock that can be set.
#
# Knows processes, and nothing of who starts a server, or of what it is asked.  Tests and
# the programs of lab/ use it.
package Server;

use strict;
use warnings;
use Exporter 'import';
use Fcntl;
use File::Basename;
use File::Temp qw(tempdir);
use Time::HiRes qw(sleep time);
use Time::Local qw(timegm);

our @EXPORT = qw(children ended freeze kill_servers wait_until write_clock clock_environment);

sub children { my ($pid) = @_; return split ' ', `ps -o pid= --ppid $pid` }

# How many of some processes are in another state than these, which ps shows as letters
sub _in_other_states
{
	my ($states, @pids) = @_;
	return @pids && grep { !/^[$states]/ } split ' ', `ps -o stat= -p @{[ join ',', @pids ]}`;
}

# Whether all of some processes are gone, or are zombies, which some init reaps late
sub ended { return !_in_other_states('ZX', @_) }

# Stop the processes that a function returns, also those that are started meanwhile.
sub freeze
{
	my ($pids) = @_;
	kill 'STOP', $pids->() while _in_other_states('TZX', $pids->());
	return;
}

sub wait_until
{
	my ($otherwise, $limit, $condition) = @_;
	my $deadline = time() + $limit;
	until ($condition->())
	{
		die "$otherwise for $limit s\n" if time() > $deadline;
		sleep 0.02;
	}
	return;
}

# Kill every process of some servers at once, named by their postmasters.
sub kill_servers
{
	my @postmasters = @_;
	my @pids;

	foreach my $postmaster (@postmasters)
	{
		# So that it starts no child that the list lacks
		freeze(sub { $postmaster });
		# Kill the postmaster last.  A process that sees its death runs code that a power
		# failure does not.  PostgreSQL 15 may panic there if the process has committed and
		# waits for room in the queue of sync requests.
		push @pids, children($postmaster), $postmaster;
	}
	kill 'KILL', @pids;
	# A server does not start while there is a process with its predecessor's number, even a zombie.
	return wait_until('processes are left after a kill', 100, sub {
		waitpid $_, 0 foreach @postmasters;
		return ended(@pids) && !kill 0, @postmasters });
}

# Set the clock of servers that clock_environment() has given a file: '+0' is the true time, '-3600' an hour ago,
# '@2046-06-27 17:00:45' a time in UTC from which it goes on, and a time without @ stands still.
sub write_clock
{
	my ($path, $clock) = @_;
	my $microseconds;

	if ($clock =~ /^[-+]\d+(\.\d+)?$/) { $microseconds = $clock * 1e6; }
	elsif ($clock =~ /^(@?)(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(\.\d+)?$/)
	{
		$microseconds = timegm($7, $6, $5, $4, $3 - 1, $2) * 1e6 + ($8 // 0) * 1e6 - ($1 ? time() * 1e6 : 0);
	}
	else { die "a clock cannot be set to $clock\n"; }

	# In place and at once, as servers have the file in their memory.
	sysopen my $file, $path, O_WRONLY | O_CREAT or die "$path: $!\n";
	syswrite $file, pack 'q', 2 * sprintf('%.0f', $microseconds) + ($clock =~ /^\d/);
	close $file or die "$path: $!\n";
	return;
}

# The environment of a server whose clock a file sets.  The first call builds the library.
my $library;

sub clock_environment
{
	my ($path) = @_;

	unless ($library)
	{
		$library = tempdir(CLEANUP => 1) . '/clock.so';
		system($ENV{CC} // 'cc', '-O2', '-Wall', '-Wextra', '-shared', '-fPIC', '-o', $library,
			dirname(__FILE__) . '/../clock.c') == 0 or die "test/clock.c cannot be built\n";
	}
	return (LD_PRELOAD => $library, CLOCK_FILE => $path);
}

1;
