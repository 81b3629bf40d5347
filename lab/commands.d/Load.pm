# lab/commands.d/Load.pm
#	  Clients that insert, change and delete rows of a world's tables, the ledger in which
#	  they note what they commit, and what the tables must have according to the ledger.
#
# Each client has its own rows, and may also change a share of the first ones.  It refers to
# its own rows and to first ones only, so it knows what a deletion does to others.  Each
# transaction also inserts its number into lab.tx: this tells whether one whose COMMIT had
# no answer took place.  A ledger has, for each transaction,
#
#	try NUMBER		before COMMIT is sent, and after it what the transaction did:
#	I TABLE TOKEN N KEY COLUMN=TOKEN...	inserted, with the rows to which columns refer
#	U TABLE TOKEN N		changed
#	R TABLE TOKEN COLUMN=TOKEN	lets a column refer to another row
#	D TABLE TOKEN		deleted
#	ok NUMBER		the server has acknowledged COMMIT
#	error SQLSTATE MESSAGE	what a client got instead
#
# separated by tabs; tables and columns are numbers.  Knows nothing of commands.

package Load;

use strict;
use warnings;
use Connection;
use IO::Handle;
use POSIX ();
use Time::HiRes qw(sleep);
use World;

# Start a client in a process of its own.  "connect" returns a connection, or nothing.
# Returns the process ID.
sub start
{
	my (%client) = @_;
	my $pid = fork() // die "fork: $!";

	return $pid if $pid;
	# What the end of this program does to servers is for the first process to do.
	my $ended = eval { bless(\%client)->_run; 1 };
	print STDERR "client $client{number}: $@" unless $ended;
	POSIX::_exit($ended ? 0 : 1);
}

sub _run
{
	my ($self) = @_;
	my $stop = 0;
	local $SIG{TERM} = sub { $stop = 1 };

	srand $self->{seed};
	open $self->{file}, '>', $self->{ledger} or die "$self->{ledger}: $!";
	$self->{file}->autoflush;
	$self->{rows} = {};
	$self->{transactions} = $self->{tokens} = 0;
	my $parent = getppid;
	while (!$stop && getppid == $parent)
	{
		sleep rand(0.05);
		my $connection = $self->{connection};
		if (!$connection)
		{
			$connection = $self->{connect}->() or next;
			$self->{connection} = $connection;
			if (my $doubt = delete $self->{doubt})
			{
				$self->_apply($doubt->{effects})
				  if $connection->value("SELECT count(*) FROM lab.tx WHERE (client, number) = ($self->{number}, $doubt->{number})");
			}
		}
		$self->_transaction;
		delete $self->{connection} if $connection->{lost};
	}
	return;
}

sub _note { my ($self, @lines) = @_; return print { $self->{file} } map { "$_\n" } @lines }

# Execute a statement.  Returns its result, or nothing after an error, which ends the transaction.
sub _execute
{
	my ($self, $sql) = @_;
	my $result = $self->{connection}->query($sql, 120);

	return $result unless $result->{error};
	$self->_note(join "\t", 'error', $result->{error}{sqlstate}, "$result->{error}{message}: $sql");
	$self->{connection}->query('ROLLBACK') unless $result->{lost};
	return;
}

sub _transaction
{
	my ($self) = @_;
	my $number = ++$self->{transactions};
	my @effects;

	$self->_execute('BEGIN' . (chance(0.1) ? ' ISOLATION LEVEL REPEATABLE READ' : '')) or return;
	$self->_execute("INSERT INTO lab.tx VALUES ($self->{number}, $number)") or return;
	my %touched;
	foreach (1 .. one_of(1, 1, 2, 3))
	{
		my ($sql, $token, $effects) = $self->_operation;
		# Two operations on one row, or of which one refers to the other's, would need to know of each other.
		next if !$sql || grep { $touched{$_}++ } map { /(?:^\w\t\d+\t|=)([1-9]\d*-\d+)/g,
			/^\w\t\d+\t(0-\d+)/ } @$effects;
		my $result = $self->_execute($sql) or return;
		$effects->[0] =~ s/\tKEY(?=\t|$)/"\t" . ($result->{rows}[0][0] \/\/ 'none')/e;
		push @effects, @$effects;
		sleep rand(0.1) if chance(0.03);
	}
	return $self->_execute('ROLLBACK') if chance(0.05);
	$self->_note("try\t$number", @effects);
	$self->{doubt} = { number => $number, effects => \@effects };
	$self->_execute('COMMIT') or do { delete $self->{doubt} unless $self->{connection}{lost}; return };
	delete $self->{doubt};
	$self->_note("ok\t$number");
	return $self->_apply(\@effects);
}

# The rows of a table to which this client may refer, or which it may change
sub _row
{
	my ($self, $table, $to_refer) = @_;
	my @own = grep { $self->{rows}{$_}{table} == $table->{number} } sort keys %{ $self->{rows} };

	return one_of(@own) if @own && chance(0.6);
	my $first = 1 + int rand $table->{count};
	return "0-$first" if $to_refer && !$self->{old_rows_go};
	# Others may go with old rows to which they refer.
	return if $to_refer && $table->{number} > 0;
	# Rows of yesterday, of five days
	return '0-' . (1 + 5 * int(($table->{count} - 1) * rand() / 5)) if $to_refer;
	$first += ($self->{number} - $first) % $self->{clients};
	return $first <= $table->{count} && !$self->{old_rows_go} ? "0-$first" : undef;
}

# A statement, the token of its row, and its effects, or nothing
sub _operation
{
	my ($self) = @_;
	my $table = one_of(@{ $self->{tables} });
	my $kind = one_of(qw(insert insert insert update update refer refer delete));
	my $full = $table->{full};
	my $number = $table->{number};
	my @references = @{ $table->{references} };
	my $parent = sub {
		my ($to, $token) = @_;
		return '(SELECT p.' . quoted($to->{key}) . " FROM $to->{full} AS p WHERE p.token = '$token')" };

	if ($kind eq 'insert')
	{
		return if keys %{ $self->{rows} } > 300;
		my $token = "$self->{number}-" . ++$self->{tokens};
		my $n = int rand 1000;
		my (@columns, @values, @refers);
		foreach my $nr (0 .. $#references)
		{
			my $to = $references[$nr]{to};
			my $of = chance(0.8) ? $self->_row($to, 1) : undef;
			next unless defined $of;
			push @columns, quoted($references[$nr]{column});
			push @values, $parent->($to, $of);
			push @refers, "$nr=$of";
		}
		my $key = quoted($table->{key});
		unshift @columns, $key and unshift @values, "nextval('lab.keys')" if $table->{maker} eq 'none';
		return ("INSERT INTO $full (" . join(', ', 'token', 'n', @columns) . ') VALUES (' . join(', ', "'$token'", $n,
			@values)
			  . ") RETURNING $key", $token, [ join "\t", 'I', $number, $token, $n, 'KEY', @refers ]);
	}
	my $token = $self->_row($table) or return;
	if ($kind eq 'update')
	{
		my $n = int rand 1000;
		return ("UPDATE $full SET n = $n WHERE token = '$token'", $token, [ join "\t", 'U', $number, $token, $n ]);
	}
	if ($kind eq 'refer')
	{
		return unless @references;
		my $nr = int rand @references;
		my $of = $self->_row($references[$nr]{to}, 1) or return;
		return ("UPDATE $full SET " . quoted($references[$nr]{column}) . ' = ' . $parent->($references[$nr]{to}, $of)
			. " WHERE token = '$token'",
			$token, [ join "\t", 'R', $number, $token, "$nr=$of" ]);
	}
	my %deleted;
	my @effects = $self->_deletion($token, \%deleted) or return;
	return if grep { !defined } @effects;
	return ("DELETE FROM $full WHERE token = '$token'", $token, \@effects);
}

# What the deletion of a row does, with undef among it where a foreign key does not allow it
sub _deletion
{
	my ($self, $token, $deleted) = @_;
	my $row = $self->{rows}{$token} or return;
	my @effects = join "\t", 'D', $row->{table}, $token;

	return if $deleted->{$token}++;
	foreach my $other (sort keys %{ $self->{rows} })
	{
		my $child = $self->{rows}{$other};
		my @references = @{ $self->{tables}[ $child->{table} ]{references} };
		foreach my $nr (grep { ($child->{refers}{$_} // '') eq $token } 0 .. $#references)
		{
			my $action = $references[$nr]{action};
			push @effects, $action eq 'CASCADE' ? $self->_deletion($other, $deleted)
			  : $action eq 'SET NULL' && !$deleted->{$other} ? join("\t", 'R', $child->{table}, $other, "$nr=") : undef;
		}
	}
	# First rows that refer to it, which this client has let refer to it
	push @effects, undef if $self->{first_refers}{$token};
	return @effects;
}

# Take what a transaction did into the client's knowledge of its rows.
sub _apply
{
	my ($self, $effects) = @_;

	foreach (@$effects)
	{
		my ($what, $table, $token, @rest) = split /\t/;
		if ($what eq 'I')
		{
			$self->{rows}{$token} = { table => $table, refers => { map { split /=/ } @rest[ 2 .. $#rest ] } };
		}
		elsif ($what eq 'D') { delete $self->{rows}{$token}; }
		elsif ($what eq 'R')
		{
			my ($nr, $of) = split /=/, $rest[0];
			if ($self->{rows}{$token}) { $self->{rows}{$token}{refers}{$nr} = $of; }
			else { $self->{first_refers}{ $of // '' } = 1; }
		}
	}
	return;
}

# --- what the ledgers say ---------------------------------------------------------

# The rows that tables must have: those that they had first, and what has become of them.
# "committed" has the numbers of lab.tx.  Returns also the errors of clients, each with how
# often it was, the number of transactions, and those that were acknowledged and are not there.
sub replay
{
	my ($rows, $committed, @ledgers) = @_;
	my (%errors, @lost);
	my $transactions = 0;

	foreach my $ledger (@ledgers)
	{
		my ($client) = $ledger =~ /(\d+)$/;
		my $counts = 0;
		open my $file, '<', $ledger or next;
		while (my $line = <$file>)
		{
			chomp $line;
			my ($what, $table, $token, @rest) = split /\t/, $line, -1;
			if ($what eq 'try') { $counts = $committed->{"$client $table"}; $transactions++ if $counts; }
			elsif ($what eq 'ok') { push @lost, "transaction $table of client $client"
				unless $committed->{"$client $table"}; }
			elsif ($what eq 'error') { $errors{"$table $token"}++; }
			elsif (!$counts) { next; }
			elsif ($what eq 'I')
			{
				$rows->[$table]{$token} = { n => $rest[0], key => $rest[1],
					refers => { map { split /=/ } @rest[ 2 .. $#rest ] } };
			}
			elsif ($what eq 'U') { $rows->[$table]{$token}{n} = $rest[0]; }
			elsif ($what eq 'D') { delete $rows->[$table]{$token}; }
			elsif ($what eq 'R')
			{
				my ($nr, $of) = split /=/, $rest[0];
				$rows->[$table]{$token}{refers}{$nr} = $of;
			}
		}
	}
	return (\%errors, $transactions, @lost);
}

1;
