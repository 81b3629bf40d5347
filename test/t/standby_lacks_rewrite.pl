# A transaction rewrites a sequence and makes IDs from the new file.  The synchronous
# standby has the records of these IDs, but not the commit, and still has the old
# file.  Calls after the commit return no ID until the standby has the commit.

use SnowflakeTest;
use StandbyTest;

my $primary = primary('primary');
my $standby = standby_of($primary, 'standby');
make_synchronous($primary);

# Each of the two takes from a sequence of its own after the commit, since the first
# call after it may write a record that hides the fault from the second.
my ($rewriter, $other) = map { session($primary) } 1, 2;
my @cases = (
	{ sequence => 'one', session => $other, who => 'another session' },
	{ sequence => 'two', session => $rewriter, who => 'the session that rewrote the sequence' });
my $receiver;

# The standby could not stop while its WAL receiver is stopped.
END { kill 'CONT', $receiver if defined $receiver }

# Rewrite the sequences, and commit when the standby has all of the transaction but the
# commit, and receives nothing more.  The transaction makes more IDs than a record covers,
# so that the records of the old file do not cover the values that follow.
sub rewrite_and_stop_receiver
{
	$rewriter->query_safe('BEGIN');
	foreach my $case (@cases)
	{
		$rewriter->query_safe("ALTER SEQUENCE $case->{sequence} CACHE 1");
		$case->{made} = [ split /\n/, $rewriter->query_safe($case->{many}) ];
	}
	all_flushed($primary, $standby);
	$receiver = $standby->sql('SELECT pid FROM pg_stat_wal_receiver');
	kill 'STOP', $receiver;
	set_names($primary, '*', 1);
	$rewriter->query_safe('SET LOCAL synchronous_commit = local');
	$rewriter->query_safe('COMMIT');
}

foreach my $case (@cases)
{
	$primary->sql("CREATE SEQUENCE $case->{sequence} MAXVALUE 92233720199999");
	$case->{next} = "SELECT next_id(1, '$case->{sequence}', 'decimal')";
	$case->{many} = "$case->{next} FROM generate_series(1, 1500)";
	$case->{returned} = [ map { scalar $case->{session}->query_safe($case->{next}) } 1 .. 3 ];
}

# The standby gets the commit later.
rewrite_and_stop_receiver();
send_sql($_->{session}, $_->{next}) foreach @cases;
waits($_->{session}, "$_->{who} waits while the standby lacks the commit of the rewrite") foreach @cases;
kill 'CONT', $receiver;
foreach my $case (@cases)
{
	my $id = result($case->{session});

	like($id, qr/^\d+$/, "$case->{who} gets an ID when the standby has the commit of the rewrite");
	push @{ $case->{returned} }, @{ $case->{made} }, $id;
}

# The standby never gets the commit, and is promoted.
rewrite_and_stop_receiver();
foreach my $case (@cases)
{
	my $session = $case->{session};

	send_sql($session, $case->{next});
	push @{ $case->{returned} }, grep { $_ ne '' } result_or_wait($session);
	canceled_wait_is_error($session,
		"$case->{who} gets an error and no ID when its wait for the commit of the rewrite is canceled");
	$case->{file} = $primary->sql("SELECT pg_relation_filenode('$case->{sequence}')");
}

# The stopped WAL receiver would not let the standby be promoted.
crash($standby);
$receiver = undef;
fail_over($primary, $standby);
foreach my $case (@cases)
{
	my $sequence = $case->{sequence};

	isnt($standby->sql("SELECT pg_relation_filenode('$sequence')"), $case->{file},
		"$sequence: the standby was promoted without the rewrite (control)");
	my %after = map { $_ => 1 } split /\n/, $standby->sql($case->{many});
	ok($after{ $case->{made}[-1] }, "$sequence: the promoted standby repeats IDs of the lost transaction (control)");
	is(join(' ', grep { $after{$_} } @{ $case->{returned} }), '',
		"$sequence: the promoted standby repeats no ID that was returned outside of the lost transaction");
}

$standby->stop;
done_testing();
