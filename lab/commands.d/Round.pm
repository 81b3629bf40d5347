# lab/commands.d/Round.pm
#	  One round: a world, a load, a command, and what happens to it meanwhile; then the
#	  same call until it ends, and the judgment.
#
# What the tables must have, the ledgers say.  What the catalogs must say, other copies of
# the same world do, in which nobody disturbs the command: others' changes come before or
# after it there.  Where these differ from each other, each line of the catalogs may be as
# in one or another.

package Round;

use strict;
use warnings;
use Connection;
use Controls;
use List::Util qw(uniq);
use Load;
use POSIX qw(strftime);
use PostgreSQL::Test::Utils ();
use SnowflakeTest ();
use Time::HiRes qw(sleep time);
use World;

my $fingerprint = PostgreSQL::Test::Utils::slurp_file(__FILE__ =~ s{[^/]*$}{fingerprint.sql}r);

# Errors that a client may get: conflicts with others, lost or refused connections, and what
# became of its statement when a server process was canceled or killed
my $usual = qr/^(silent|40001|40P01|55P03|57014|57P0\d|08\w+|53300|25P02) /;

# A round in a database of a server, "node", made from database "base", with files in a directory; with
# "events" if they are not left to chance, and "control" if a fault is planted
sub new
{
	my ($class, %round) = @_;
	return bless { %round, clients => [], started => 0, changes => [], happened => [], faults => [],
		database => 'work' }, $class;
}

sub fault { my ($self, $kind, @what) = @_; push @{ $self->{faults} }, map { [ $kind, $_ ] } @what; return }

# Print the first faults of each kind.  Returns the number of each kind.
sub print_faults
{
	my ($self, $out) = @_;
	my %count;

	foreach (@{ $self->{faults} })
	{
		my ($kind, $what) = @$_;
		print $out "    $kind: $what\n" if $count{$kind}++ < 8;
	}
	return %count;
}

sub happened { my ($self, $what) = @_; return push @{ $self->{happened} }, $what }

sub connect
{
	my ($self, %to) = @_;
	my $node = $self->{node};
	return Connection->new(host => $node->host, port => $node->port, database => $self->{database},
		user => 'postgres', %to);
}

# The same, but wait until the server accepts connections.
sub connect_patiently
{
	my ($self, %to) = @_;
	my $end = time() + 60;
	while (time() < $end)
	{
		my $connection = $self->connect(%to);
		return $connection if $connection;
		sleep 0.05;
	}
	die "the server accepts no connections: $DBI::errstr\n";
}

# Execute statements that must succeed, in a session of its own.
sub must
{
	my ($self, $database, @sql) = @_;
	my $session = $self->connect_patiently(database => $database);
	foreach my $sql (@sql)
	{
		my $result = $session->query($sql, 120);
		die "$sql: $result->{error}{message}\n" if $result->{error};
	}
	return $session->close;
}

# A copy of a database.  In one by WAL, PostgreSQL's nextval() repeats values after a crash, because
# such a copy keeps how many values need no record, and gets a newer page.
sub copy
{
	my ($self, $from, $to) = @_;
	return $self->must('postgres', "DROP DATABASE IF EXISTS $to WITH (FORCE)",
		"CREATE DATABASE $to TEMPLATE $from STRATEGY file_copy");
}

# --- the world ----------------------------------------------------------------------

sub make_world
{
	my ($self) = @_;
	my $world = $self->{world} = World->new($self->{kind}, $self->{control}
		? %{ $CONTROLS{ $self->{control} }{force} // {} } : ());

	$self->copy('base', 'template');
	$self->must('template', @{ $world->{sql} }, @{ $world->{prepare} // [] }, 'ANALYZE');
	my $session = $self->connect_patiently(database => 'template');
	$self->{first} = [ map { $self->rows($session, $_) } @{ $world->{tables} } ];
	$self->{first_keys} = { %{ $self->{first}[0] } };
	$self->{stored} = $session->value($world->{stored}) if $world->{stored};
	$self->{cut} = $session->value($world->{cut}) if $world->{cut};
	return $session->close;
}

# A copy of the world's first state
sub new_copy { my ($self, $name) = @_; $self->copy('template', $name); return $self->must($name,
	'SELECT snowflake_set_shard(7)') }

# What a table has: the rows, by their tokens, each with the tokens of the rows to which it refers
sub rows
{
	my ($self, $session, $table) = @_;
	my @references = @{ $table->{references} };
	my $result = $session->query('SELECT token, n, ' . join(', ', quoted($table->{key}), map {
			my $to = $_->{to};
			my $column = 't.' . quoted($_->{column});
			"CASE WHEN $column IS NOT NULL THEN coalesce((SELECT p.token FROM $to->{full} AS p WHERE p."
				. quoted($to->{key}) . " = $column), 'nobody') END"
		} @references) . " FROM $table->{full} AS t", 120);
	my %rows;

	die "rows: $result->{error}{message}\n" if $result->{error};
	foreach my $row (@{ $result->{rows} })
	{
		my ($token, $n, $key, @refers) = @$row;
		$rows{$token} = { n => $n, key => $key, refers => { map { $_ => $refers[$_] } 0 .. $#refers },
			times => ($rows{$token}{times} // 0) + 1 };
	}
	return \%rows;
}

# --- a subscriber -------------------------------------------------------------------

# A database that gets all changes of the world's tables, from its first state on
sub subscribe
{
	my ($self) = @_;
	my $connection = $self->{node}->connstr('work') . ' user=postgres';

	$self->new_copy('subscriber');
	# With a key, a subscriber finds a row by it, and does not compare the other columns.
	$self->must('subscriber', "DO \$\$ BEGIN EXECUTE (SELECT format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', conrelid::regclass, conname) "
		. 'FROM pg_constraint WHERE conrelid = ' . literal($self->{world}{tables}[0]{full}) . "::regclass AND contype = 'p'); END \$\$")
	  if $self->{world}{subscriber} eq 'full';
	$self->must('work', q{SELECT pg_create_logical_replication_slot('lab', 'pgoutput')});
	return $self->must('subscriber', 'CREATE SUBSCRIPTION lab CONNECTION ' . literal($connection)
		. " PUBLICATION $self->{world}{publication} WITH (create_slot = false, copy_data = false)");
}

# What a former round has left of such things, which keep a database from being dropped
sub clean_up
{
	my ($self) = @_;

	foreach ([ subscriber => 'ALTER SUBSCRIPTION lab DISABLE' ],
		[ subscriber => 'ALTER SUBSCRIPTION lab SET (slot_name = NONE)' ], [ subscriber => 'DROP SUBSCRIPTION lab' ],
		[ work => 'SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE active' ],
		[ work => 'SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots' ],
		[ work => q{ROLLBACK PREPARED 'lab'} ])
	{
		my ($database, $sql) = @$_;
		my $session = $self->connect(database => $database) or next;
		$session->query($sql);
		$session->close;
	}
	return;
}

# When all has come, the subscriber has the same rows.
sub judge_subscriber
{
	my ($self, $session) = @_;
	my $position = $session->value('SELECT pg_current_wal_insert_lsn()');
	my $end = time() + 30;

	sleep 0.05 until time() > $end || $session->value(
		"SELECT count(*) FROM pg_replication_slots WHERE confirmed_flush_lsn >= '$position'");
	my $subscriber = $self->connect_patiently(database => 'subscriber');
	foreach my $table (@{ $self->{world}{tables} })
	{
		my ($should, $has) = map { $self->rows($_, $table) } $session, $subscriber;
		# Partitions that are dropped or detached there are not here.
		my @tokens = grep { $should->{$_} || $self->{kind} ne 'drop_partitions' } uniq sort keys %$should, keys %$has;
		foreach my $token (@tokens)
		{
			my ($is, $be) = map { my $row = $_->{$token}; $row ? join ' ', $row->{key}, $row->{n},
				map { "$_=" . ($row->{refers}{$_} // '') } sort keys %{ $row->{refers} } : 'missing' } $has, $should;
			$self->fault('rows that a subscriber lacks or has otherwise', "$table->{full}, row $token: $is, not $be")
			  if $is ne $be;
		}
	}
	return $subscriber->close;
}

# --- the load -------------------------------------------------------------------------

sub start_load
{
	my ($self) = @_;

	foreach (1 .. 3)
	{
		my $number = ++$self->{started};
		push @{ $self->{clients} }, Load::start(number => $number, clients => 3, seed => int(rand 1e9),
			ledger => "$self->{directory}/ledger.$number",
			tables => $self->{world}{tables}, old_rows_go => $self->{kind} eq 'drop_partitions',
			connect => sub { $self->connect(user => 'lab_app') });
	}
	return;
}

sub stop_load
{
	my ($self) = @_;

	kill 'TERM', @{ $self->{clients} };
	foreach my $client (@{ $self->{clients} })
	{
		waitpid $client, 0;
		$self->fault('clients that failed', "client with status $?") if $?;
	}
	$self->{clients} = [];
	return;
}

# --- what happens meanwhile ---------------------------------------------------------------

# A session of a role with steps that it is to take, each after a pause
sub add_task
{
	my ($self, $role, @steps) = @_;
	my $connection = $self->connect(user => $role) or return;
	# Of several statements that are sent together, poll() would wait for all.
	my @single = map { my ($pause, @sql) = @$_; map { [ $_ ? 0 : $pause, $sql[$_] ] } 0 .. $#sql } @steps;
	my $task = { connection => $connection, steps => \@single, next => 0 };
	push @{ $self->{tasks} }, $task;
	return $task;
}

sub run_tasks
{
	my ($self) = @_;
	my @left;

	foreach my $task (@{ $self->{tasks} })
	{
		my $connection = $task->{connection};
		if ($connection->{busy})
		{
			my $result = $connection->poll(0);
			$task->{result} = $result if $result;
			next if $result && $result->{error};
			$task->{next} = time() + $task->{steps}[0][0] if $result && @{ $task->{steps} };
		}
		elsif (@{ $task->{steps} } && time() >= $task->{next}) { $connection->send((shift @{ $task->{steps} })->[1]); }
		push @left, $task if $connection->{busy} || @{ $task->{steps} };
	}
	$self->{tasks} = \@left;
	return $self->end_prepared;
}

my %events = (
	'kill of the server' => sub {
		my ($self) = @_;
		SnowflakeTest::crash_and_start($self->{node});
	},
	'kill of its backend' => sub { my ($self) = @_; kill 'KILL', $self->{caller}->pid or die; },
	'kill of another process' => sub {
		my ($self) = @_;
		my ($postmaster) = split /\n/, PostgreSQL::Test::Utils::slurp_file($self->{node}->data_dir . '/postmaster.pid');
		kill 'KILL', one_of(grep { $_ != $self->{caller}->pid } Server::children($postmaster));
	},
	cancel => sub { my ($self) = @_; kill 'INT', $self->{caller}->pid; },
	terminate => sub { my ($self) = @_; kill 'TERM', $self->{caller}->pid; },
	'lost client' => sub { my ($self) = @_; $self->{caller}->close; },
	change => sub {
		my ($self) = @_;
		return if @{ $self->{changes} } > ($self->{control} ? 9 : 2);
		my $change = $self->{world}->change;
		if (my $like = $self->{change_like})
		{
			$change = $self->{world}->change until $change =~ $like && $change =~ / ON \Q$self->{world}{tables}[0]{full}\E /;
		}
		push @{ $self->{changes} }, $change;
		$self->add_task('postgres', [ 0, "SET lock_timeout = '3s'", 'BEGIN', $change,
			'INSERT INTO lab.tx VALUES (0, ' . @{ $self->{changes} } . ')' ],
			[ rand(0.6), 'COMMIT' ]);
	},
	reader => sub {
		my ($self) = @_;
		my $table = one_of(@{ $self->{world}{tables} });
		$self->add_task('postgres', [ 0, 'BEGIN', "SELECT FROM $table->{full} " . one_of('', 'LIMIT 5 FOR UPDATE',
			'LIMIT 5 FOR KEY SHARE') ], [ rand(1.5), 'COMMIT' ]);
	},
	vacuum => sub { my ($self) = @_; $self->add_task('postgres', [ 0, 'VACUUM ANALYZE '
		. one_of(@{ $self->{world}{tables} })->{full} ]) },
	reindex => sub { my ($self) = @_; $self->add_task('postgres', [ 0, 'REINDEX TABLE ' . one_of('', 'CONCURRENTLY ')
		. one_of(@{ $self->{world}{tables} })->{full} ]) },
	'prepared transaction' => sub {
		my ($self) = @_;
		return if $self->{prepared_until};
		my $table = one_of(@{ $self->{world}{tables} });
		my $session = $self->connect_patiently;
		my $error;
		foreach my $sql ("SET lock_timeout = '1s'", 'BEGIN', "SELECT FROM $table->{full} LIMIT 5 FOR UPDATE",
			"PREPARE TRANSACTION 'lab'")
		{
			$error //= $session->query($sql)->{error};
		}
		$session->close;
		$self->{prepared_until} = time() + rand(1.5) unless $error;
	},
	'second call' => sub {
		my ($self) = @_;
		$self->add_task($self->{role}, [ 0, $self->{world}{call} ]);
	},
	'other command' => sub {
		my ($self) = @_;
		$self->{others} = 1;
		$self->add_task($self->{role}, [ 0, $self->{world}{other} ]);
	},
	detach => sub {
		my ($self) = @_;
		return if $self->{detached};
		my $table = $self->{world}{tables}[0];
		$self->{detached} = strftime('day %Y-%m-%d', gmtime(time() - 4 * 86400));
		$self->add_task('postgres', [ 0, 'BEGIN', "SELECT FROM $table->{full} LIMIT 1" ], [ rand(1.5), 'COMMIT' ]);
		$self->{detach} = $self->add_task('postgres', [ 0,
			"ALTER TABLE $table->{full} DETACH PARTITION $self->{world}{schema}." . quoted($self->{detached})
			. ' CONCURRENTLY' ]);
		return unless $self->{control} || chance(0.4);
		# Cancel it once it has begun, so that it stays pending.
		$self->{canceling} = $self->add_task('postgres', [ 0, 'SELECT' ], [ rand(0.5),
			q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query ~ '^ALTER .* DETACH' AND state = 'active'
			AND EXISTS (SELECT FROM pg_inherits WHERE inhdetachpending)} ]);
	},
	'dump and restore' => sub {
		my ($self) = @_;
		kill 'TERM', $self->{caller}->pid;
		# Clients would wait for locks of others, who take no step meanwhile.
		$self->{tasks} = [];
		$self->end_prepared('now');
		$self->stop_load;
		$self->dump_and_restore('work');
		$self->{dumped} = 1;
		$self->start_load;
	});

# What the world must have for an event
my %needs = (
	'other command' => sub { my ($world) = @_; return $world->{other} },
	detach => sub { my ($world) = @_; return $world->{kind} eq 'drop_partitions' && !$world->{former} },
	'dump and restore' => sub { my ($world) = @_; return !$world->{subscriber} });

sub dump_and_restore
{
	my ($self, $database) = @_;
	my $node = $self->{node};
	local @ENV{qw(PGHOST PGPORT)} = ($node->host, $node->port);
	my $file = "$self->{directory}/dump.sql";

	$self->must('postgres',
		"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '$database'");
	PostgreSQL::Test::Utils::system_or_bail('pg_dump', '-f', $file, $database);
	$self->must('postgres', "DROP DATABASE $database WITH (FORCE)", "CREATE DATABASE $database TEMPLATE template0");
	PostgreSQL::Test::Utils::system_or_bail('psql', '-Xq', '-o', '/dev/null', '-v', 'ON_ERROR_STOP=1', '-f', $file,
		$database);
	unlink $file;
	# The restored extension is as its script creates it.
	if ($self->{control})
	{
		my $session = $self->connect_patiently(database => $database);
		plant($session, $self->{control});
		$session->close;
	}
	return $self->must($database, 'SELECT snowflake_set_shard(7)', 'ANALYZE');
}

# End the prepared transaction, if there is one, when its time is over or now.
sub end_prepared
{
	my ($self, $now) = @_;
	return if !$self->{prepared_until} || !$now && time() < $self->{prepared_until};
	my $session = $self->connect_patiently;
	$self->{prepared_until} = 0 unless $session->query(q{COMMIT PREPARED 'lab'})->{error};
	return $session->close;
}

# Insert rows of a day that the table's IDs have not reached, again and again, and take them back.
sub insert_later_rows
{
	my ($self) = @_;
	my $table = $self->{world}{tables}[0];
	my $sql = "BEGIN; INSERT INTO $table->{full} (" . quoted($table->{key})
		. ", token) VALUES (snowflake_min_id(now() + interval '49 hours'), 'later'); ROLLBACK";
	my $task = $self->add_task('postgres', map { [ 0.05, $sql ] } 1 .. 40) or return;
	push @{ $self->{later} }, $task;
	return;
}

# A call in a transaction block, for whose locks others wait, gives up soon.
sub call_in_block
{
	my ($self) = @_;
	my $tables = $self->{world}{tables};
	my ($reader, $block) = map { $self->connect_patiently } 1, 2;

	$reader->query("BEGIN; SELECT FROM $tables->[0]{full} LIMIT 1");
	$block->query("BEGIN ISOLATION LEVEL READ COMMITTED; LOCK TABLE $tables->[-1]{full}");
	my $begun = time();
	my $result = $block->query($self->{world}{in_block});
	my $seconds = time() - $begun;
	my $error = $result->{error} // { sqlstate => '', message => 'no error' };
	$self->fault('transaction blocks that make others wait', sprintf '%.0f s, %s', $seconds, $error->{message})
	  if $seconds > 10 || $error->{sqlstate} ne '55P03';
	$block->close;
	return $reader->close;
}

# --- the call -----------------------------------------------------------------------------

# Whether the call has come to the step at which events are to begin.  A command says in its
# application_name where it is.
sub is_at_step
{
	my ($self) = @_;
	return 1 unless $self->{at};
	my $session = $self->connect or return 0;
	my $is_there = $session->value('SELECT count(*) FROM pg_stat_activity WHERE pid = ' . $self->{caller}->pid
		. " AND application_name LIKE '%: $self->{at} %'");
	$session->close;
	return $is_there;
}

# Call until it ends.  Returns how: "ended", or an SQLSTATE and a message with which it ends
# each time.
sub call_until_it_ends
{
	my ($self, $call, @events) = @_;
	my $is_first = $call eq $self->{world}{call};
	my $interrupted = 0;
	my $refused = 0;
	my $options = $self->{options};
	my $end = time() + 120;
	my $pause = sub { @events ? time() + ($self->{events} || $self->{at} ? rand(0.3) : one_of(rand(0.3), rand(1), rand(2.5)))
		: undef };
	my $next = $pause->();

	while (time() < $end)
	{
		$self->insert_later_rows if $self->{kind} eq 'partition' && $self->{database} eq 'work';
		my $caller = $self->{caller} = $self->connect_patiently(user => $self->{role}, options => $options);
		if ($interrupted && $is_first && $self->{world}{undo} && !$self->{undone} && chance($self->{must_undo} ? 1
			: $self->{control} ? 0 : 0.15))
		{
			$call = $self->{world}{undo};
			$self->{undone} = 1;
			$self->happened('undo');
		}
		$self->{calls}++;
		$caller->send($call);
		my $result;
		while (!$result && time() < $end)
		{
			$result = $caller->poll(0.02);
			$self->run_tasks;
			if (!$result && $next && time() >= $next && $self->is_at_step)
			{
				my $event = shift @events;
				$self->happened($event);
				$events{$event}->($self);
				$next = $pause->();
			}
		}
		last unless $result;
		my $error = $result->{error};
		$caller->close;
		return 'ended' unless $error;
		$interrupted = 1;
		next if $result->{lost} || $error->{sqlstate} =~ /^(57|40|55P03)/;
		# The call of a lost client goes on.
		next if $error->{message} =~ /works on table .* in process/;
		if ($error->{message} =~ /cannot run in a transaction that is/)
		{
			undef $options;
			next;
		}
		if ($error->{message} =~ /Execute this on each subscriber, or it will stop: (.*;) Then call this with published/)
		{
			$self->must('subscriber', $1) if $self->{world}{subscriber} && $self->{database} eq 'work';
			$call =~ s/\)$/, published => true)/;
			next;
		}
		if ($error->{sqlstate} eq '55000' && $error->{message} =~ /need indexes/)
		{
			$self->create_indexes;
			next;
		}
		my $what = "$error->{sqlstate} $error->{message}";
		return $what if ++$refused > 10;
		sleep 0.1 + 0.05 * $refused;
	}
	$self->fault('calls that do not end', $call);
	return 'no end';
}

sub create_indexes
{
	my ($self) = @_;
	my $session = $self->connect_patiently(user => $self->{role});

	foreach my $index (@{ $session->query($self->{world}{indexes})->{rows} })
	{
		my $end = time() + 60;
		$session->send($index->[0]);
		# It waits for transactions that others have begun.
		$self->run_tasks until $session->poll(0.02) || time() > $end;
	}
	return $session->close;
}

# The call in a copy that nobody disturbs, with changes before or after it.  Returns how it
# ended and the lines of the catalogs.
sub undisturbed
{
	my ($self, $undone, @steps) = @_;
	local $self->{database} = 'undisturbed';
	local @$self{qw(dumped calls)};
	my $how = 'ended';

	$self->new_copy('undisturbed');
	foreach my $step (@steps)
	{
		if ($step !~ /^(call|other)$/)
		{
			my $session = $self->connect_patiently;
			$session->query($step);
			$session->close;
		}
		elsif ($step eq 'other' || !$undone)
		{
			local $self->{undone} = 1;
			local $self->{options} = '';
			my $end = $self->call_until_it_ends($step eq 'call' ? $self->{world}{call} : $self->{world}{other});
			$how = $end if $step eq 'call';
		}
	}
	$self->dump_and_restore('undisturbed') if $self->{was_dumped};
	my $session = $self->connect_patiently;
	my @lines = $self->catalogs($session);
	$session->close;
	return ($how, @lines);
}

sub catalogs
{
	my ($self, $session) = @_;
	my $result = $session->query("SET search_path = pg_catalog; $fingerprint", 120);
	die "catalogs: $result->{error}{message}\n" if $result->{error};
	return map { $_->[0] =~ s/\n/ /gr } @{ $result->{rows} };
}

# --- the judgment ---------------------------------------------------------------------------

sub judge
{
	my ($self, $how) = @_;
	my $world = $self->{world};
	my $session = $self->connect_patiently;
	my %committed = map { ("$_->[0] $_->[1]" => 1) } @{ $session->query('SELECT client, number FROM lab.tx')->{rows} };
	my $expected = $self->{first};
	my ($errors, $transactions, @lost) = Load::replay($expected, \%committed,
		map { "$self->{directory}/ledger.$_" } 1 .. $self->{started});

	$self->{transactions} = $transactions;
	$self->fault('transactions that were acknowledged and are lost', @lost);
	foreach my $error (sort keys %$errors)
	{
		$self->fault('errors of clients', "$error ($errors->{$error} times)")
		  unless $error =~ $usual || $self->{kind} eq 'renumber' && $error =~ /^23503/;
	}
	if (defined $self->{cut})
	{
		# Numbers of a former serial do not tell their age.  A call that is refused has done what it could.
		my $left = $how eq 'ended' ? {} : $self->rows($session, $world->{tables}[0]);
		$self->delete_rows($expected, 0, grep { my $key = $expected->[0]{$_}{key}; $key < $self->{cut} && $key > 1 << 50
			&& !$left->{$_} } keys %{ $expected->[0] });
	}
	$self->judge_detached($session, $expected) if $self->{detached};
	$self->judge_rows($session, $_, $expected->[ $_->{number} ]) foreach @{ $world->{tables} };
	$self->judge_subscriber($session) if $world->{subscriber};
	foreach my $error (grep { $_ } map { $_->{result}{error} } @{ $self->{later} // [] })
	{
		my $what = "$error->{sqlstate} $error->{message}";
		$self->fault('rows of a later day that are refused', $what) unless $what =~ $usual;
	}
	# What an interrupted REINDEX CONCURRENTLY has left
	foreach (@{ $session->query(q{SELECT oid::regclass FROM pg_class WHERE relkind = 'i' AND relname ~ '_cc(new|old)\d*$'
		AND relnamespace <> 'pg_toast'::regnamespace})->{rows} })
	{
		$session->query("DROP INDEX $_->[0]");
	}
	# A restore fills a materialized view anew.
	if ($world->{stored} && !($self->{dumped} && $world->{special} eq 'materialized view'))
	{
		my $stored = $session->value($world->{stored}) // 'nothing';
		$self->fault('stored rows of a row type that have changed', "$stored, not $self->{stored}")
			if $stored ne $self->{stored};
	}
	$self->judge_ranges($session) if $how eq 'ended' && $self->{kind} =~ /partition/ && !$self->{detached};
	$self->judge_keys($_) foreach @{ $world->{tables} };
	$self->judge_catalogs($session, $how, \%committed);
	return $session->close;
}

# A partition that somebody detaches, or has begun to detach, stays with its rows.
sub judge_detached
{
	my ($self, $session, $expected) = @_;
	my $table = "$self->{world}{schema}." . quoted($self->{detached});
	my %mine = map { $_ => 1 } grep { /^0-\d*[49]$/ } keys %{ $self->{first_keys} };
	my $result = $session->query("SELECT count(*) FROM $table WHERE token ~ '^0-'");
	my $end = $self->{detach}{result} // { lost => 1 };
	my $stays_pending = !$self->{dumped} && @{ $self->{canceling}{result}{rows} // [] };

	$self->{first_rows}{$_} = 1 foreach keys %mine;
	if (!$result->{error})
	{
		$self->fault('rows of a detached partition that are lost', "$table has $result->{rows}[0][0] of " . keys %mine)
			if $result->{rows}[0][0] != keys %mine;
	}
	elsif ($stays_pending || !$end->{lost} && (!$end->{error} || $end->{error}{message} =~ /removed concurrently/))
	{
		$self->fault('partitions that somebody detached and that are gone', $table);
	}
	return;
}

# What the deletion of rows does by foreign keys
sub delete_rows
{
	my ($self, $expected, $number, @tokens) = @_;
	my %deleted = map { $_ => 1 } @tokens or return;

	delete @{ $expected->[$number] }{@tokens};
	foreach my $table (@{ $self->{world}{tables} })
	{
		foreach my $nr (grep { $table->{references}[$_]{to}{number} == $number } 0 .. $#{ $table->{references} })
		{
			my $rows = $expected->[ $table->{number} ];
			my @children = grep { $deleted{ $rows->{$_}{refers}{$nr} // '' } } keys %$rows;
			if ($table->{references}[$nr]{action} eq 'CASCADE') { $self->delete_rows($expected, $table->{number},
				@children) if @children; }
			else { $rows->{$_}{refers}{$nr} = undef foreach @children; }
		}
	}
	return;
}

sub judge_rows
{
	my ($self, $session, $table, $expected) = @_;
	my $rows = $self->rows($session, $table);
	my $where = "$table->{full}, row ";
	my @columns = map { $_->{column} } @{ $table->{references} };

	if ($table->{number} == 0)
	{
		foreach my $row (values %$expected)
		{
			# A row of shard 5 keeps its time and sequence number.
			$row->{key} += 4 << 10 if $self->{kind} eq 'renumber' && ($row->{key} >> 10 & 8191) == 5;
		}
	}
	foreach my $token (uniq sort keys %$expected, keys %$rows)
	{
		my ($has, $should) = ($rows->{$token}, $expected->{$token});
		next if $table->{number} == 0 && $self->{first_rows}{$token};	# in the detached partition, or not
		if (!$has) { $self->fault('rows that are lost', $where . $token); next; }
		if (!$should) { $self->fault('rows that nobody committed', $where . $token); next; }
		$self->fault('rows that are there twice', $where . $token) if $has->{times} > 1;
		$self->fault('rows with another value', "$where$token: n is $has->{n}, not $should->{n}")
			if $has->{n} ne ($should->{n} // '');
		$self->fault('rows with another key', "$where$token: $has->{key}, not $should->{key}")
		  if $should->{key} ne 'none' && $has->{key} ne $should->{key}
			# Taken back, or refused
			&& !($self->{kind} eq 'renumber' && ($self->{undone} || $self->{how} ne 'ended'));
		foreach my $nr (0 .. $#columns)
		{
			my ($of, $be) = map { $_->{refers}{$nr} // '' } $has, $should;
			next if $of eq $be;
			$self->fault($of eq 'nobody' ? 'orphans' : 'rows that refer to another row',
				"$where$token: $columns[$nr] is of row \"$of\", not \"$be\"");
		}
	}
	return;
}

# Each partition begins where the one before it ends.
sub judge_ranges
{
	my ($self, $session) = @_;
	my $of = literal($self->{world}{tables}[0]{full});
	my $gaps = $session->query("SELECT partition FROM (SELECT partition, since, lag(until) OVER (ORDER BY until) AS before FROM snowflake_partitions($of)) AS p WHERE since <> before");

	return $self->fault('gaps between partitions', map { "before $_->[0]" } @{ $gaps->{rows} });
}

# The next key is beyond all.
sub judge_keys
{
	my ($self, $table) = @_;
	return if $table->{maker} eq 'none';
	my $session = $self->connect_patiently(user => 'lab_app');
	my $key = quoted($table->{key});
	my $largest = $session->value("SELECT max($key) FROM $table->{full}") // 0;

	$session->query('BEGIN');
	# More than a shard has IDs in a millisecond
	my $count = $self->{kind} eq 'move_back' && $table->{number} == 0 ? 1100 : 1;
	my $result = $session->query("INSERT INTO $table->{full} (token) SELECT 'next' FROM generate_series(1, $count) RETURNING $key");
	my ($next, @more) = map { $_->[0] } @{ $result->{rows} };
	if ($result->{error}) { $self->fault('next keys that cannot be made',
		"$table->{full}: $result->{error}{sqlstate} $result->{error}{message}"); }
	elsif ($self->{kind} eq 'move_back' && $table->{number} == 0 && $self->{how} eq 'ended'
		&& grep { ($_ >> 10 & 8191) != 7 } $next, @more)
	{
		$self->fault('next keys that are IDs of another shard', "$table->{full}: $next");
	}
	elsif ($next <= $largest) { $self->fault('next keys that are not beyond all',
		"$table->{full}: $next after $largest"); }
	$session->query('ROLLBACK');
	return $session->close;
}

# What a command must leave as it is: policies, triggers, publications, keys and privileges of
# tables.  Column types that it changes are in none of them.
sub kept
{
	my ($self, $database) = @_;
	my $session = $self->connect_patiently(database => $database);
	my @kept = grep { /^(policy|trigger|published|constraint \S.* (f FOREIGN|p PRIMARY|u UNIQUE)|privilege (relation|column)|statistics of) / } $self->catalogs($session);
	my %sequences = map { $_->[0] => 1 } @{ $session->query(q{SELECT oid::regclass::text FROM pg_class WHERE relkind = 'S'})->{rows} };

	$session->close;
	return { map { $_ => 1 } grep { !(/^privilege relation (.*) (PUBLIC|"?lab|"Lab|postgres)/ && $sequences{$1})
		&& !/"day \d/ && !/ of parent / } @kept };
}

# Whether something that must stay is gone in the copy that nobody has disturbed
sub judge_kept
{
	my ($self) = @_;
	my $has = $self->kept('undisturbed');
	return $self->fault('lost by an undisturbed run', grep { !$has->{$_} } sort keys %{ $self->{kept} });
}

sub judge_catalogs
{
	my ($self, $session, $how, $committed) = @_;
	my @has = $self->catalogs($session);
	my @changes = map { $self->{changes}[$_] } grep { $committed->{ '0 ' . ($_ + 1) } } 0 .. $#{ $self->{changes} };
	my @best;

	$self->{was_dumped} = $self->{dumped};
	$self->fault('helpers that are left', grep { /snowflake_(widen|partition|renumber)/ } @has);
	foreach my $undone ($self->{undone} ? (1, 0) : 0)
	{
		my (%times, $runs, @hows);
		my @orders = $self->{others} ? ([qw(call other)], [qw(other call)]) : ['call'];
		@orders = map { ([ @changes, @$_ ], [ @$_, @changes ]) } @orders if @changes;
		foreach my $order (@orders)
		{
			my ($end, @lines) = $self->undisturbed($undone, @$order);
			push @hows, $end =~ s/ .*//sr;
			$runs++;
			$self->judge_kept unless @changes || $undone || $self->{others} || $end ne 'ended';
			$times{$_}++ foreach uniq @lines;
		}
		my %has = map { $_ => 1 } @has;
		if ($self->{detached})
		{
			delete @$_{ grep { /"\Q$self->{detached}\E/ } keys %$_ } foreach \%has, \%times;
		}
		my @different = (map({ "lacks: $_" } grep { $times{$_} == $runs && !$has{$_} } sort keys %times),
			map { "has: $_" } grep { !$times{$_} } sort keys %has);
		push @different, "the call ended with $how, and undisturbed with @hows" unless $undone || $self->{undone} || grep { $how =~ /^$_/ } @hows;
		@best = @different if !@best || @different < @best;
		return unless @different;
	}
	return $self->fault('differences from an undisturbed run', @best);
}

# --- all of it --------------------------------------------------------------------------------

my @interrupting = ('kill of the server', 'kill of its backend', 'kill of another process', 'cancel', 'cancel',
	'terminate', 'lost client');
my @others = ('change', 'change', 'change', 'reader', 'reader', 'vacuum', 'reindex', 'prepared transaction', 'second call',
	'other command', 'other command', 'detach');

# Returns a line that says what happened.
sub run
{
	my ($self) = @_;

	$self->clean_up;
	$self->make_world;
	$self->{kept} = $self->kept('template');
	$self->{options} = chance(0.3) ? '-c default_transaction_isolation=' . one_of('serializable', 'repeatable\\ read')
		: '';
	$self->{role} = $self->{control} ? 'postgres' : one_of('postgres', 'lab owner');
	my @events = map { chance(0.08) ? 'dump and restore' : chance(0.5) ? one_of(@interrupting)
		: one_of(@others) } 1 .. one_of(0, 1, 2, 2, 3, 4, 6);
	@events = @{ $self->{events} } if $self->{events};
	if (my $control = $self->{control} && $CONTROLS{ $self->{control} })
	{
		$self->{must_undo} = $control->{undo};
		@events = @{ $control->{events} } if $control->{events};
		$self->{options} = $control->{options} if $control->{options};
		@$self{qw(at change_like)} = @$control{qw(at changes)};
	}
	@events = grep { !$needs{$_} || $needs{$_}->($self->{world}) } @events;
	$self->{calls} = 0;
	$self->new_copy('work');
	$self->subscribe if $self->{world}{subscriber};
	$self->start_load;
	sleep 0.3 + rand(0.3);
	$self->call_in_block if $self->{world}{in_block};
	if (@events && $events[0] eq 'detach' && chance(0.7))
	{
		$self->happened(my $event = shift @events);
		$events{$event}->($self);
		my $begun = time();
		$self->run_tasks while time() < $begun + rand(1);
	}
	my $how = $self->{how} = $self->call_until_it_ends($self->{world}{call}, @events);
	# What others began has an end, too.
	my $end = time() + 30;
	while (@{ $self->{tasks} // [] } && time() < $end)
	{
		$self->run_tasks;
		sleep 0.02;
	}
	$self->end_prepared('now');
	# It leaves tables as they are that it could not change, and ends.
	$self->call_until_it_ends($self->{world}{call}) if $self->{world}{call} =~ /_schema\(/;
	$self->fault('sessions that do not end',
		map { $_->{connection}{result}{sql} // 'a session' } @{ $self->{tasks} // [] });
	if ($self->{others})
	{
		# Each of two commands ends, or refuses the other's state, but not both.
		my $other = $self->call_until_it_ends($self->{world}{other});
		$how = $self->{how} = $self->call_until_it_ends($self->{world}{call}) if $how ne 'ended' && !$self->{undone};
		$self->happened("other command: $other") if $other ne 'ended';
		$self->fault('two commands that both refuse', "$how / $other") if $how ne 'ended' && $other ne 'ended' && $how =~ /^55000/ && $other =~ /^55000/ && !$self->{world}{special};
	}
	sleep 0.2;
	$self->stop_load;
	$self->judge($how);
	return sprintf '%s%s: %d calls, %d transactions%s%s', $self->{kind}, $how eq 'ended' ? '' : " ($how)",
		$self->{calls}, $self->{transactions},
	  $self->{options} ? ', ' . $self->{options} =~ s/.*=//r =~ tr/\\//dr : '', join '', map { "; $_" } @{ $self->{happened} };
}

1;
