# lab/remedies.d/Obey.pm
#	  One round: a world, a load, faults, and then snowflake_check() as some role, whose
#	  remedies are run as that role, or as the one that they name, up to five times.  Time goes
#	  on to where rows are dated, so that an ID which can come again does.  Then the judgment.
#
# A remedy that is a statement is run, one that is a sentence is counted.  In the end the check
# has nothing but sentences, no row is lost, clients can insert, and no ID has come twice that a
# row has.  Clients, ledgers and the comparison of rows are those of lab/commands.

package Obey;

use strict;
use warnings;
use parent 'Round';
use Connection;
use Faults;
use Load;
use POSIX ();
use PostgreSQL::Test::Utils ();
use Remedy;
use Time::HiRes qw(sleep time);
use World;

my $shards = 100;

sub new
{
	my ($class, %round) = @_;
	my $self = $class->SUPER::new(%round);

	@$self{qw(counts refused sentences turns pooled blocks tasks tokens kind)} = ({}, {}, {}, 0, [], [], [], 0, 'remedies');
	$self->{role} //= one_of('postgres', 'boss', 'boss', 'lender');
	return $self;
}

# --- servers, sessions and the clock ---------------------------------------------------------

sub major { my ($self) = @_; return int $self->{node}->pg_version }

# That many of some values, none twice
sub some_of { my ($count, @all) = @_; return map { splice @all, rand @all, 1 } 1 .. $count }

# A shard that no server has had, and that each layout has
sub new_shard { $shards = 100 if ++$shards > 1000; return $shards }

# What a session is answered, while those who hold locks go on
sub answer
{
	my ($self, $session, $sql, $seconds) = @_;
	my $end = time() + ($seconds // 60);
	my $result;

	$session->send($sql);
	do { $result = $session->poll(0.02); $self->run_tasks } until $result || time() > $end;
	return $result // { rows => [], error => { sqlstate => 'silent', message => 'no answer' } };
}

# Execute statements in a new session of a role.  Each must succeed.
sub as
{
	my ($self, $role, @statements) = @_;
	my $session = $self->connect_patiently(user => $role);

	foreach my $statement (@statements)
	{
		my $result = $self->answer($session, $statement);
		die "$role: $statement: $result->{error}{message}\n" if $result->{error};
	}
	return $session->close;
}

# What a superuser is answered
sub ask
{
	my ($self, $sql) = @_;
	my $session = $self->connect_patiently;
	my $result = $self->answer($session, $sql);

	die "$sql: $result->{error}{message}\n" if $result->{error};
	$session->close;
	return $result->{rows}[0][0];
}

sub step_clock
{
	my ($self, $seconds) = @_;

	$self->{node}{lab_offset} += $seconds;
	return SnowflakeTest::set_clock($self->{node}, sprintf '%+.6f', $self->{node}{lab_offset});
}

# Let others work for some seconds.
sub work
{
	my ($self, $seconds) = @_;
	my $end = time() + $seconds;

	do { $self->run_tasks; sleep 0.02 } while time() < $end;
	return;
}

# Let what others have begun come to its end.
sub finish_tasks
{
	my ($self) = @_;
	my $end = time() + 30;

	$self->work(0.1) while @{ $self->{tasks} } && time() < $end;
	return $self->fault('sessions that do not end', scalar @{ $self->{tasks} }) if @{ $self->{tasks} };
}

# A session that stays, as those of a pooler do
sub add_pooled
{
	my ($self) = @_;
	my $session = $self->connect(user => 'lab_app') or return;
	$session->query('SELECT snowflake_shard()');
	push @{ $self->{pooled} }, $session;
	return;
}

# All clients connect again.
sub new_sessions
{
	my ($self) = @_;
	my @others = map { $_->{connection}->pid } @{ $self->{tasks} };

	$self->ask("SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = 'work' "
		. "AND usename = 'lab_app' AND pid <> ALL ('{" . join(',', @others) . "}')");
	$self->{pooled} = [];
	return $self->add_pooled;
}

# --- rows ---------------------------------------------------------------------------------------

# A token of a row that may be committed or not
sub new_token { my ($self) = @_; return 'm-' . ++$self->{tokens} }

# Insert rows, and expect them from then on if that succeeds.
sub add_rows
{
	my ($self, $table, $role, $count, $id) = @_;
	my $first = $self->{tokens} + 1;
	my $session = $self->connect_patiently(user => $role);
	my $result = $self->answer($session, "INSERT INTO $table->{full} (token" . ($id ? ', id' : '') . ") SELECT 'x-' || g + $first" . ($id ? ", $id" : '')
		. " FROM generate_series(0, $count - 1) AS g");

	$self->{tokens} += $count;
	$session->close;
	return if $result->{error};
	$self->{first}[ $table->{number} ]{"x-$_"} = { n => 0, refers => {} } foreach $first .. $first + $count - 1;
	return 1;
}

# --- the world ---------------------------------------------------------------------------------------

# The sequence of the extension, as a literal has it
sub sequence { return 'public.next_id_seq' }

sub make_world
{
	my ($self) = @_;
	my $boss = 'boss';
	my $layout = one_of('instagram', 'twitter', 'discord', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000');
	my $names_layout = $layout =~ /:/ || chance(0.3);
	my $tweet = $self->{tweet_shard} = $self->new_shard % 30 + 1;
	my $columns = "token text NOT NULL, n integer NOT NULL DEFAULT 0";
	my @tables = (
		{ name => 'photos', owner => $boss, made_by_setting => 1 },
		{ name => 'comments', owner => $boss, made_by_setting => 1, to => 0 },
		{ name => 'tweets', owner => $boss, layout => $layout, names_layout => $names_layout, to => 0,
			default => "next_id($tweet, 'app.tweets_seq'" . ($names_layout ? ", '$layout')" : ')') },
		{ name => 'events', owner => $boss, made_by_setting => 1, partitioned => 1 },
		{ name => 'loans', owner => 'lender', made_by_setting => 1, chance(0.3) ? (to => 0) : () });
	my $number = 0;

	$self->{shard} = $self->new_shard;
	foreach my $table (@tables)
	{
		$table->{$_->[0]} //= $_->[1] foreach [ number => $number++ ], [ full => "app.$table->{name}" ], [ key => 'id' ],
			[ maker => 'next_id' ], [ count => 20 ], [ layout => 'instagram' ], [ default => 'next_id()' ];
		$table->{references} = defined $table->{to} ? [ { column => 'photo', to => $tables[ $table->{to} ], action => 'CASCADE' } ] : [];
	}
	$self->{world} = { tables => \@tables };
	$self->must('postgres', "DROP DATABASE IF EXISTS work WITH (FORCE)", 'DROP DATABASE IF EXISTS original WITH (FORCE)',
		"CREATE DATABASE work TEMPLATE $self->{base} STRATEGY file_copy OWNER boss");
	$self->as('postgres', 'CREATE SCHEMA app AUTHORIZATION boss; GRANT USAGE, CREATE ON SCHEMA app TO lender; GRANT USAGE ON SCHEMA app TO PUBLIC;'
		. 'CREATE SCHEMA lab; GRANT USAGE ON SCHEMA lab TO PUBLIC; CREATE TABLE lab.tx (client integer, number integer, PRIMARY KEY (client, number));'
		. 'GRANT ALL ON lab.tx TO PUBLIC; GRANT SELECT ON SEQUENCE next_id_seq TO boss, lender');
	$self->as('boss', "SELECT snowflake_set_shard($self->{shard}); CREATE SEQUENCE app.tweets_seq; SELECT snowflake_alter_sequence('app.tweets_seq', '$layout');"
		. 'GRANT USAGE' . ($names_layout && $layout =~ /:/ ? ', UPDATE' : '') . ' ON SEQUENCE app.tweets_seq TO lab_app; GRANT SELECT ON SEQUENCE app.tweets_seq TO lender');
	foreach my $table (@tables)
	{
		$self->as('boss', 'GRANT REFERENCES ON app.photos TO lender') if $table->{owner} ne 'boss';
		$self->as($table->{owner}, "CREATE TABLE $table->{full} (id bigint DEFAULT $table->{default}, $columns"
			. (defined $table->{to} ? ', photo bigint REFERENCES app.photos ON DELETE CASCADE' : '') . ", CONSTRAINT $table->{name}_pkey PRIMARY KEY (id))"
			. ($table->{partitioned} ? ' PARTITION BY RANGE (id)' : '') . ';'
			. "CREATE INDEX ON $table->{full} (token); GRANT SELECT, INSERT, UPDATE, DELETE ON $table->{full} TO lab_app; GRANT SELECT ON $table->{full} TO boss, lender");
		$self->as($table->{owner}, "CREATE INDEX ON $table->{full} (photo)") if defined $table->{to} && chance(0.5);
		$self->as($table->{owner}, "CALL snowflake_make_partitions('$table->{full}')") if $table->{partitioned};
		$self->as('boss', "INSERT INTO $table->{full} (token) SELECT '0-' || g FROM generate_series(1, $table->{count}) AS g") if $table->{owner} eq 'boss';
		$self->as($table->{owner}, "INSERT INTO $table->{full} (token) SELECT '0-' || g FROM generate_series(1, $table->{count}) AS g") if $table->{owner} ne 'boss';
	}
	my $session = $self->connect_patiently;
	$self->{first} = [ map { $self->rows($session, $_) } @tables ];
	return $session->close;
}

# The database is a restored copy from now on: it has no setting, while the original goes on.
sub become_a_copy
{
	my ($self) = @_;

	return if $self->{is_copy} || @{ $self->{tasks} };
	$self->stop_load;
	$self->ask("SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = 'work' AND pid <> pg_backend_pid()");
	$self->{pooled} = [];
	$self->must('postgres', 'CREATE DATABASE original TEMPLATE work STRATEGY file_copy OWNER boss',
		"ALTER DATABASE original SET snowflake.shard = $self->{shard}", 'ALTER DATABASE work RESET ALL');
	$self->{is_copy} = 1;
	$self->start_load;
	return $self->add_pooled;
}

# How many rows of the original and of the copy have one ID, but for those that were copied
sub count_of_both
{
	my ($self) = @_;
	my @ids = map { my $name = $_; my $session = $self->connect_patiently(database => $name);
		my $ids = $session->query("SELECT id, token FROM app.photos")->{rows}; $session->close; $ids } qw(original work);
	my %token = map { ($_->[0] => $_->[1]) } @{ $ids[0] };

	return scalar grep { exists $token{ $_->[0] } && $token{ $_->[0] } ne $_->[1] } @{ $ids[1] };
}

# Cancel a command when it has begun.
sub interrupt
{
	my ($self, $role, $call) = @_;
	my $session = $self->connect_patiently(user => $role);

	$session->send($call);
	sleep 0.1 + rand(0.4);
	my $result = $session->poll(0);
	unless ($result)
	{
		kill 'INT', $session->pid;
		$result = $session->wait(30);
	}
	$self->note_line("  interrupted: $call", $result->{error} ? $result->{error}{message} : 'ended');
	return $session->close;
}

# Have commits wait for a program that receives the WAL.
sub start_standby
{
	my ($self) = @_;
	my $node = $self->{node};

	return if $self->{standby};
	mkdir "$self->{directory}/wal";
	$self->{standby} = fork() // die "fork: $!";
	unless ($self->{standby})
	{
		open STDOUT, '>>', "$self->{directory}/receivewal";
		open STDERR, '>&', \*STDOUT;
		exec 'pg_receivewal', '--synchronous', '-D', "$self->{directory}/wal", '-d',
			'application_name=lab_standby user=postgres host=' . $node->host . ' port=' . $node->port or POSIX::_exit(127);
	}
	my $end = time() + 20;
	sleep 0.05 until time() > $end || $self->ask("SELECT count(*) FROM pg_stat_replication WHERE application_name = 'lab_standby' AND state = 'streaming'");
	$self->as('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'lab_standby'", 'SELECT pg_reload_conf()');
	return;
}

# Files of another version of snowflake_admin, or those that are installed
sub offer_version
{
	my ($self, $version) = @_;
	my $control = "$self->{node}{lab_extensions}/snowflake_admin.control";
	my $text = PostgreSQL::Test::Utils::slurp_file($control);

	(my $script = $control) =~ s/\.control$/--1.0--$version.sql/;
	SnowflakeTest::write_file($script, "-- nothing\n") if $version ne '1.0';
	$text =~ s/(default_version\s*=\s*)'[^']*'/$1'$version'/;
	SnowflakeTest::write_file($control, $text);
	return $self->{version} = $version;
}

# Take back what the round has done to the server.
sub clean_up
{
	my ($self) = @_;

	$self->offer_version('1.0') if ($self->{version} // '1.0') ne '1.0';
	if ($self->{standby})
	{
		$self->as('postgres', 'ALTER SYSTEM RESET synchronous_standby_names', 'SELECT pg_reload_conf()');
		kill 'TERM', $self->{standby};
		waitpid $self->{standby}, 0;
	}
	$self->as('postgres', 'ALTER DATABASE base RESET ALL', 'REVOKE pg_read_all_stats FROM boss, lender');
	if ($self->{step_back})
	{
		$self->step_clock(-$self->{step_back});
		$self->as('postgres', 'CHECKPOINT');
	}
	$_->close foreach @{ $self->{pooled} };
	return;
}

# --- obey ---------------------------------------------------------------------------------------------

# The rows of the check
sub check
{
	my ($self, $role) = @_;
	my $session = $self->connect_patiently(user => $role);
	my $result = $self->answer($session, 'SELECT severity, object, problem, remedy FROM snowflake_check()', 120);

	die "snowflake_check(): $result->{error}{message}\n" if $result->{error};
	$session->close;
	return map { { severity => $_->[0], object => $_->[1], problem => $_->[2], remedy => $_->[3] } } @{ $result->{rows} };
}

# Who runs a remedy: the one whom its row names, or whoever called the check
sub who
{
	my ($self, $row) = @_;
	return $1 eq 'a superuser' ? 'postgres' : $1
	  if $row->{problem} =~ /Only (a superuser|\w+)(?:, the owner of .*,)? can (?:do|grant) this\.$/;
	return $self->{role};
}

sub note_line
{
	my ($self, @words) = @_;
	open my $file, '>>', "$self->{directory}/obeyed" or die "$self->{directory}: $!";
	print $file join(' | ', @words), "\n";
	return close $file;
}

# Run the remedy of a row.
sub obey
{
	my ($self, $row) = @_;
	my $remedy = $row->{remedy};
	my $kind = kind_of($remedy);
	my $who = $self->who($row);
	my $number = $kind eq 'set_shard, own' ? $self->own_shard($row) : $self->new_shard;

	$remedy =~ s/\bN\b/$number/;
	my $result = $self->run_as($who, $remedy);
	my $error = $result->{error};
	if ($error && $error->{sqlstate} eq '42501' && $error->{message} =~ /HINT: +Let a superuser call/)
	{
		$result = $self->run_as($who = 'postgres', $remedy);
		$error = $result->{error};
	}
	$self->note_line("  as $who", $remedy, $error ? "$error->{sqlstate} $error->{message}" : 'done');
	if ($error)
	{
		# Another remedy may have taken what this one is about, and sessions that have gone on keep others waiting.
		my $what = "$error->{sqlstate} $error->{message}";
		$self->{refused}{$kind}++;
		$self->{too_early} = 1 if $what =~ /HINT: +Call it again when/;
		$self->fault('remedies that do not say who must run them', "$who: $row->{object}: $remedy: $what")
			if $error->{sqlstate} eq '42501';
		$self->fault('remedies that fail', "$who: $row->{object}: $remedy: $what")
			if $error->{sqlstate} !~ /^(silent|42501|42P01|55000|55P03|40P01|40001|57|53400|08)/;
		return 0;
	}
	$self->{counts}{$kind}++;
	$self->{shard} = $number if $kind =~ /^set_shard/;
	return $kind;
}

# The number that stands for this server in the list
sub own_shard { my ($self, $row) = @_; return $row->{remedy} =~ /tweets/ ? $self->{tweet_shard} : $self->{is_copy} ? $self->new_shard : $self->{shard} }

sub run_as
{
	my ($self, $role, $sql) = @_;
	my $session = $self->connect_patiently(user => $role);
	my $result = $self->answer($session, $sql, 90);

	$self->fault('remedies that do not end', "$role: $sql") if $result->{error} && $result->{error}{sqlstate} eq 'silent';
	$session->close;
	return $result;
}

# Check and obey, until nothing but sentences is left.
sub obey_until_well
{
	my ($self) = @_;
	my @between = $self->{between} ? @{ $self->{between} } : ();
	my $patience = 10;
	my $turns = 0;

	while (1)
	{
		my @rows = $self->check($self->{role});
		my @statements = grep { is_statement($_->{remedy}) } @rows;
		my @sentences = grep { !is_statement($_->{remedy}) } @rows;
		$self->note_line("check as $self->{role}", map { "$_->{severity} $_->{object}: $_->{problem} => $_->{remedy}" } @rows);
		$self->{sentences}{ kind_of($_->{remedy}) }++ foreach @sentences;
		if (!@statements)
		{
			# Whatever was locked is soon free.
			my @later = grep { $_->{remedy} =~ /^Call snowflake_check\(\) again|^End that transaction/ } @sentences;
			if (@later && $patience-- > 0) { $self->work(0.5); next; }
			$self->fault('looks that fail again and again', map { "$_->{object}: $_->{problem}" } @later);
			return @rows;
		}
		$self->{turns}++;
		if (++$turns > 5)
		{
			$self->fault('remedies that are left after five turns', map { "as $self->{role}: $_->{object}: $_->{problem} => $_->{remedy}" } @statements);
			return @rows;
		}
		$self->{too_early} = 0;
		foreach my $row (@statements)
		{
			my $between = $self->{between} ? shift @between : chance(0.25) ? $self->something_else : undef;
			if ($between)
			{
				$self->happened("($between)");
				$self->note_line("  between: $between");
				$BETWEEN{$between}->($self);
				# The five turns count from the last thing that gives the check a new reason.
				$turns = 1 if $self->{had}{$between};
			}
			my $done = $self->obey($row);
			# Not where a row has said that IDs will come again, and its remedy may not have been run
			$self->let_time_pass if $done && $done =~ /^set_back/ && ($self->{control} || chance(0.4))
				&& !grep { $_->{problem} =~ /will generate such IDs again/ } @rows;
		}
		# A turn in which somebody's lock was in the way is not one of the five.
		if ($self->{too_early} && $patience-- > 0) { $turns--; $self->work(0.5); }
	}
	return;
}

# What happens between a look and its remedy.  What gives the check a new reason happens once a round.
sub something_else
{
	my ($self) = @_;
	my $name = one_of(sort grep { !$self->{had}{$_} } keys %BETWEEN);

	$self->{had}{$name} = 1 if $name =~ /^(another shard|row of a kept ID)$/;
	return $name;
}

# --- time goes on -----------------------------------------------------------------------------------------

# Let the clock go to where rows are dated, where clients then ask for more IDs than ever.
sub let_time_pass
{
	my ($self) = @_;

	foreach my $table (grep { $_->{number} == 0 || $_->{name} eq 'tweets' } @{ $self->{world}{tables} })
	{
		my $layout = $table->{layout} eq 'instagram' ? '' : ", '$table->{layout}'";
		my $bound = "snowflake_min_id(clock_timestamp() + interval '2 s'$layout)";
		my $ahead = $self->ask("SELECT extract(epoch FROM snowflake_timestamp(min(id)$layout) - clock_timestamp()) FROM $table->{full} "
			. "WHERE id > $bound AND id < snowflake_min_id(clock_timestamp() + interval '3 days'$layout) AND token LIKE 'x-%'");
		next unless defined $ahead;
		$self->happened('time passes');
		$self->step_clock($ahead - 0.1);
		$self->ask_for_many($table);
	}
	return;
}

# As many IDs as a session can get in a moment, by each session that is connected.  None may be one
# that a row has.
sub ask_for_many
{
	my ($self, $table) = @_;
	my $default = $self->ask("SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum "
		. "WHERE adrelid = '$table->{full}'::regclass AND attname = 'id'");
	my @tables = grep { $table->{name} eq 'tweets' ? $_ == $table : $_->{name} ne 'tweets' } @{ $self->{world}{tables} };
	my $union = join ' OR ', map { "id IN (SELECT id FROM $_->{full})" } @tables;
	my $many = "SET statement_timeout = '10s'; WITH made AS MATERIALIZED (SELECT $default AS id FROM generate_series(1, 60000)) "
	  . "SELECT count(*), min(id), (SELECT count(*) FROM made) FROM made WHERE $union";
	my @sessions = grep { !$_->{lost} } @{ $self->{pooled} }, $self->connect(user => 'lab_app');

	$_->send($many) foreach @sessions;
	foreach my $session (@sessions)
	{
		my $result = $session->wait(30);
		my ($twice, $first, $made) = @{ $result->{rows}[0] // [] };
		$self->{many} += $made // 0;
		$self->fault('IDs that came twice', "$twice, such as $first, of $default") if $twice;
	}
	return;
}

# --- the judgment ---------------------------------------------------------------------------------------------

sub judge
{
	my ($self, @left) = @_;
	my $session = $self->connect_patiently;
	my %committed = map { ("$_->[0] $_->[1]" => 1) } @{ $session->query('SELECT client, number FROM lab.tx')->{rows} };
	my ($errors, $transactions, @lost) = Load::replay($self->{first}, \%committed,
		map { "$self->{directory}/ledger.$_" } 1 .. $self->{started});
	my @tables = @{ $self->{world}{tables} };

	$self->{transactions} = $transactions;
	$self->fault('transactions that were acknowledged and are lost', @lost);
	foreach my $table (@tables)
	{
		# Nobody knows whether a session that was ended had committed.
		foreach my $token (grep { /^m/ } keys %{ $self->rows($session, $table) }) { $self->{first}[ $table->{number} ]{$token} = { n => 0, refers => {} }; }
		# Remedies give rows new keys.
		$_->{key} = 'none' foreach values %{ $self->{first}[ $table->{number} ] };
		$self->judge_rows($session, $table, $self->{first}[ $table->{number} ]);
	}
	# A counter that goes on from an ID can make that of a row of another table, of the same millisecond, until a
	# remedy ends it.
	my $union = join ' UNION ALL ', map { "SELECT '$_->{name}', id FROM $_->{full}" }
	  grep { $_->{name} ne 'tweets' && !$_->{counted} } @tables;
	$self->fault('IDs that two rows have', map { "$_->[0]: $_->[1]" }
		@{ $session->query("SELECT id, string_agg(t, ', ') FROM ($union) AS u (t, id) GROUP BY id HAVING count(*) > 1 LIMIT 5")->{rows} });
	if ($self->{is_copy})
	{
		my $count = $self->count_of_both or 0;
		$self->fault('IDs that two databases have made', $count) if $count;
	}
	return $session->close;
}

# If no error is left, clients can insert into each table.
sub judge_inserts
{
	my ($self, @left) = @_;

	return if grep { $_->{severity} eq 'error' } @left;
	foreach my $table (@{ $self->{world}{tables} })
	{
		my $session = $self->connect_patiently(user => 'lab_app');
		my $result = $session->query("SET lock_timeout = '5s'; BEGIN; INSERT INTO $table->{full} (token) VALUES ('probe'); ROLLBACK", 30);
		$self->fault('tables that refuse a row, of which the check says nothing',
			"$table->{full}: $result->{error}{sqlstate} $result->{error}{message}") if $result->{error};
		$session->close;
	}
	return;
}

# --- all of it -------------------------------------------------------------------------------------------------

sub run
{
	my ($self) = @_;
	my @faults = $self->{faults_of} ? @{ $self->{faults_of} } : chance(0.02) ? one_of(sort keys %YEARS)
	  : some_of(one_of(1, 1, 2, 2, 3), sort keys %FAULTS);

	$self->make_world;
	$self->start_load;
	$self->add_pooled foreach 1, 2;
	$self->work(0.3 + rand(0.3));
	foreach my $fault (@faults)
	{
		$self->happened($fault);
		$self->note_line("fault: $fault");
		($FAULTS{$fault} // $YEARS{$fault})->($self);
	}
	my @left = $self->obey_until_well;
	$self->finish_tasks;
	# What is left would be found again, and where a row has said that IDs will come again, they do.
	unless (@{ $self->{faults} })
	{
		$self->let_time_pass unless grep { $_->{problem} =~ /will generate such IDs again/ } @left;
		$self->work(0.3);
		$self->judge_inserts(@left);
	}
	$self->stop_load;
	$self->judge(@left);
	$self->clean_up;
	return sprintf 'as %s, extension of %s, %d turns, %d transactions, %s', $self->{role}, $self->{owner}, $self->{turns},
		$self->{transactions}, join '; ', @{ $self->{happened} };
}

1;
