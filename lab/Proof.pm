# lab/Proof.pm
#	  What the Perl parts of lab/soak, lab/power and lab/patroni share.

package Proof;

use strict;
use warnings;
use Exporter qw(import);
use POSIX qw(setsid);
use Time::HiRes qw(sleep time);

our @EXPORT = qw(contents file_in_the_way one_of start wait_until write_file);

sub one_of { return $_[ rand @_ ] }

# What a file contains: nothing, if there is none
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

1;
