# Clients that ask servers for IDs, and the ledger in which they note every ID
# that they receive (test/ledger).
#
# Knows nothing of what the servers go through meanwhile.
package LedgerTest;

use Exporter 'import';
use File::Spec;
use IPC::Run;
use SnowflakeTest;

our @EXPORT = qw(ledger_program sql_for_clients direct_clients start_clients
  clients_end_without_error more_ids no_client_received_a_bad_id no_client_received_an_error_except);

# The program, which the first test that needs it builds beside the tests' data.
sub ledger_program
{
	my $program = File::Spec->rel2abs(($ENV{TESTDATADIR} // 'tmp_check') . '/ledger');
	return $program if -x $program;

	my ($flags) = map { "-I$_" } run_command([ 'pg_config', '--includedir' ]);
	my ($libraries) = map { "-L$_" } run_command([ 'pg_config', '--libdir' ]);
	system_or_bail($ENV{CC} // 'cc', '-O2', '-Wall', '-Wextra', $flags, glob("$top/test/ledger/*.c"), $libraries,
		'-lpq', '-o', "$program.$$");
	rename "$program.$$", $program or die "rename: $!";
	return $program;
}

# SQL that makes what the clients need, except sequences
sub sql_for_clients { return 'CREATE TABLE ledger_rows (id bigint);' }

# Tell the clients of a ledger where the server is.  They connect again when
# they lose it, with the service file that is there then.
sub direct_clients
{
	my ($ledger, $connstr) = @_;
	(my $lines = $connstr) =~ s/ +/\n/g;

	append_to_file("$ledger.where.new", "[clients]\n" . $lines =~ tr/'//dr . "\n");
	rename "$ledger.where.new", "$ledger.where" or die "rename: $!";
}

sub start_clients
{
	my ($ledger, $connstr, @options) = @_;
	direct_clients($ledger, $connstr);
	local @ENV{ 'PGSERVICEFILE', 'PGSERVICE' } = ("$ledger.where", 'clients');

	return IPC::Run::start([ ledger_program(), 'run', @options, $ledger ]);
}

sub clients_end_without_error
{
	my ($clients, $whose) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$clients->signal('TERM');
	ok(ends($clients, "ledger ($whose)"), "the clients of $whose end without an error");
}

# Wait until the clients of a ledger have received so many IDs more.
sub more_ids
{
	my ($ledger, $ids) = @_;
	my $goal = _ids_received($ledger) + $ids;

	return wait_for(sub { _ids_received($ledger) >= $goal });
}

# The first number in the ledger's state
sub _ids_received
{
	my ($ledger) = @_;

	open my $file, '<:raw', "$ledger.state" or return 0;
	read $file, my $count, 8;
	return unpack('Q', $count) // 0;
}

# See that "ledger check" with some arguments finds no fault, other than errors,
# and return its report.
sub no_client_received_a_bad_id
{
	my ($whose, @check) = @_;
	my ($report) = run_command([ ledger_program(), 'check', @check ]);
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	note($report);
	foreach (
		[ 'duplicates', 'an ID that a client had received' ],
		[ 'not growing within a call', 'a smaller ID than the one before in its call' ],
		[ 'out of order in time', 'a smaller ID than one that a client had received when it asked' ],
		[ 'wrong shard', 'an ID of another shard' ],
		[ 'too far ahead of the clock', 'an ID that is ahead of the clock by more than max_lead' ],
		[ 'behind the clock', 'an ID that is behind the clock' ])
	{
		my ($fault, $bad_id) = @$_;
		like($report, qr/^$fault +0$/m, "no client of $whose received $bad_id");
	}
	my ($received, $compared) = map { $report =~ /^$_ +(\d+)/m } 'IDs received', 'compared with the clock';
	cmp_ok($compared, '<=', $received, "clients of $whose compared no more IDs with the clock than they received");
	return $report;
}

# See that the report of "ledger check" has no errors except those whose SQLSTATE
# matches a pattern.
sub no_client_received_an_error_except
{
	my ($allowed, $whose, $report) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($seen) = $report =~ /^errors by SQLSTATE +(.*)$/m;

	is(join(' ', grep { !/^($allowed)$/ } $seen =~ /(\w{5}):/g), '',
		"no client of $whose received an error except $allowed");
}

1;
