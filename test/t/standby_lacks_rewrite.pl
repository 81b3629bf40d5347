# A transaction rewrites a sequence and makes IDs from the new file.  The synchronous
# standby has the records of these IDs, but not the commit, and still has the old
# file.  Calls after the commit return no ID until the standby has the commit.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;
use StandbyTest;

my $primary = primary('primary');
$primary->safe_psql('postgres', "CREATE SEQUENCE $_ MAXVALUE 92233720199999") foreach 'one', 'two';
my $standby = standby_of($primary, 'standby');
make_synchronous($primary) or die 'the standby is not synchronous';

# Each of the two takes from a sequence of its own after the commit, since the first
# call after it may write a record that hides the fault from the second.
my ($rewriter, $other) = map { session($primary) } 1, 2;
my %caller = (one => $other, two => $rewriter);
my %name = (one => 'another session', two => 'the session that rewrote the sequence');
my (%returned, $receiver);

# The standby could not stop while its WAL receiver is stopped.
END { kill 'CONT', $receiver if defined $receiver }

sub next_of
{
	my ($sequence) = @_;
	return "SELECT next_id(1, '$sequence', 'decimal')";
}

# More IDs than a record covers, so that the records of the old file do not cover the
# values that follow.
sub many_of
{
	my ($sequence) = @_;
	return next_of($sequence) . ' FROM generate_series(1, 1500)';
}

# Rewrite the sequences, and commit when the standby has all of the transaction but
# the commit, and receives nothing more.  Returns the IDs that the transaction made.
sub rewrite_and_stop_receiver
{
	my %made;

	$rewriter->query_safe('BEGIN');
	foreach my $sequence (sort keys %caller)
	{
		$rewriter->query_safe("ALTER SEQUENCE $sequence CACHE 1");
		$made{$sequence} = [ split /\n/, $rewriter->query_safe(many_of($sequence)) ];
	}
	all_flushed($primary, $standby);
	$receiver = $standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
	kill 'STOP', $receiver;
	set_names($primary, '*', 1);
	$rewriter->query_safe('SET LOCAL synchronous_commit = local');
	$rewriter->query_safe('COMMIT');
	return %made;
}

foreach my $sequence (sort keys %caller)
{
	push @{ $returned{$sequence} }, $caller{$sequence}->query_safe(next_of($sequence)) for 1 .. 3;
}

# The standby gets the commit later.
my %made = rewrite_and_stop_receiver();
send_sql($caller{$_}, next_of($_)) foreach sort keys %caller;
waits($caller{$_}, "$name{$_} waits while the standby lacks the commit of the rewrite") foreach sort keys %caller;
kill 'CONT', $receiver;
foreach my $sequence (sort keys %caller)
{
	my $id = result($caller{$sequence});

	like($id, qr/^\d+$/, "$name{$sequence} gets an ID when the standby has the commit of the rewrite");
	push @{ $returned{$sequence} }, @{ $made{$sequence} }, $id;
}

# The standby never gets the commit, and is promoted.
my %lost = rewrite_and_stop_receiver();
foreach my $sequence (sort keys %caller)
{
	send_sql($caller{$sequence}, next_of($sequence));
	my $id = result_or_wait($caller{$sequence});
	canceled_wait_is_error($caller{$sequence},
		"$name{$sequence} gets an error and no ID when its wait for the commit of the rewrite is canceled");
	$caller{$sequence}->{$_} = '' foreach 'stdout', 'stderr';
	is($caller{$sequence}->query_safe('\echo :LAST_ERROR_SQLSTATE'), '57014',
		"$name{$sequence} gets the SQLSTATE of a canceled query");
	push @{ $returned{$sequence} }, $id if $id ne '';
}
my %file = map { $_ => $primary->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") } keys %caller;

# The stopped WAL receiver would not let the standby be promoted.
crash($standby);
$receiver = undef;
fail_over($primary, $standby);
foreach my $sequence (sort keys %caller)
{
	isnt($standby->safe_psql('postgres', "SELECT pg_relation_filepath('$sequence')"), $file{$sequence},
		"$sequence: the standby was promoted without the rewrite (control)");
	my %after = map { $_ => 1 } split /\n/, $standby->safe_psql('postgres', many_of($sequence));
	ok($after{ $lost{$sequence}[-1] }, "$sequence: the promoted standby repeats IDs of the lost transaction (control)");
	is(join(' ', grep { $after{$_} } @{ $returned{$sequence} }), '',
		"$sequence: the promoted standby repeats no ID that was returned outside of the lost transaction");
}

$standby->stop;
done_testing();
