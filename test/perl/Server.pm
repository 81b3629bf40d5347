# Servers that die at once, as in a power failure, and servers with a clock that can be set.
#
# Knows processes, and nothing of who starts a server, or of what it is asked.  Tests and
# the programs of lab/ use it.
package Server;

use strict;
use warnings;
use Exporter 'import';
use Time::HiRes qw(sleep time);

our @EXPORT = qw(children ended freeze kill_servers wait_until faketime_library faketime_environment
  remove_faketime_files);

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
	wait_until('processes are left after a kill', 100, sub {
		waitpid $_, 0 foreach @postmasters;
		return ended(@pids) && !kill 0, @postmasters });
	return remove_faketime_files();
}

# Where Debian, and others, put libfaketime.
sub faketime_library
{
	my ($found) = grep { -e } glob '/usr/{lib/*,lib,lib64,local/lib}/faketime/libfaketime.so.1';
	return $found;
}

# The environment of a server whose clock a file sets.  Without libfaketime, it has the
# true time.
sub faketime_environment
{
	my ($file) = @_;
	# A stat() that needs the time can make libfaketime of 2026 wait for itself.  It also
	# calls malloc() at each look at the clock, so a handler of SIGALRM breaks the heap once
	# in some ten thousand timeouts, and a server dies of signal 6 or 11.  PostgreSQL without
	# the extension does, too.
	return (LD_PRELOAD => faketime_library() // '', FAKETIME_TIMESTAMP_FILE => $file,
		map { $_ => 1 } qw(FAKETIME_NO_CACHE DONT_FAKE_MONOTONIC FAKETIME_DONT_FAKE_MONOTONIC NO_FAKE_STAT));
}

# libfaketime makes two files for each program that starts.  Remove those of programs that
# were killed since this one began, or, like the shell of an archive_command, replaced by another program.
sub remove_faketime_files
{
	unlink grep { /_(\d+)$/ && -o && -M _ <= 0 && !kill 0, $1 } glob '/dev/shm/{faketime_shm,sem.faketime_sem}_*';
	return;
}

END { remove_faketime_files() }

1;
