# What the TAP tests share: servers that crash, clocks that can be set, sessions
# that wait, and documents whose examples are run.
#
# Knows PostgreSQL's test modules and nothing of the extension's insides.
package SnowflakeTest;

use strict;
use warnings;
use parent 'Exporter';
use Cwd qw(realpath);
use File::Basename;
use File::Path qw(make_path);
use File::Spec;
use IPC::Run;
use POSIX ();
use PostgreSQL::Test::BackgroundPsql;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;
use Time::HiRes qw(usleep time);

# The directory of the project's files
our $top = realpath(dirname(__FILE__) . '/../..');

our @EXPORT = (qw($top
  server_in_utc server_with_clock server_ahead_of_clock ahead_of_clock setval_ahead value_of
  new_portable_database next_id last_result next_id_is_larger_after_crash nextval_repeats
  crash crash_and_start start_with_clock set_clock
  cpu_seconds times_asleep send_sql session_prints waits_for_clock fails_with sqlstate_of plan_of catalog_of wait_for ends
  session gdb_runs hold_at is_held send_and_hold let_go
  start_load end_load file_of evict write_file copied_installation get_extension
  blocks blocks_in run_examples wal_records NOBODY_FLUSHES WAITS_FOR_PAGE),
  @Test::More::EXPORT, @PostgreSQL::Test::Utils::EXPORT);

# A test that uses this module is strict, warns, and has what it needs to report.
sub import
{
	strict->import;
	warnings->import;
	return __PACKAGE__->export_to_level(1, @_);
}

# PostgreSQL's modules write what a program dies of to its log alone.  A test that dies says it in its
# output, too.
$SIG{__DIE__} = sub {
	my ($error) = @_;
	return if !defined $^S || $^S || $0 !~ m{(^|/)test/(t|external)/};
	fail('the test runs to its end' . _place());
	diag($error);
};

# Settings of a server where nobody but the test flushes WAL or pages, and where
# a sequence's mark may be far ahead of the clock.
use constant NOBODY_FLUSHES => <<EOC;
wal_writer_delay = 10s
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
autovacuum = off
snowflake.max_lead = '30d'
EOC

# What pg_waldump prints of the WAL from one LSN to another.
sub wal_records
{
	my ($node, $from, $to, @options) = @_;
	my ($records) = run_command([ 'pg_waldump', '-p', $node->data_dir . '/pg_wal', '-s', $from, '-e', $to, @options ]);
	return $records;
}

# Whether what pg_stat_activity shows waits for the lock on a page, which until
# 18 has one name for all modes.
use constant WAITS_FOR_PAGE =>
  "wait_event IN ('BufferContent', 'BufferExclusive', 'BufferShareExclusive')";

# PostgreSQL's test modules delete LC_ALL.  Without it, initdb would take the encoding
# and the locale of whoever runs the tests, and fail if that locale is not installed.
$ENV{LC_ALL} = 'C.UTF-8';

# The superuser of all servers is named postgres.  initdb would name it like the
# user who runs the tests, and that can be the name of a role that a test creates.
my $superuser = $ENV{PGUSER} = 'postgres';
{
	my $init = \&PostgreSQL::Test::Cluster::init;

	no warnings 'redefine';
	*PostgreSQL::Test::Cluster::init = sub {
		my ($self, %params) = @_;
		return $init->($self, %params, extra => [ '-U', $superuser, @{ $params{extra} // [] } ]);
	};
}

# A query that does not end within the time that PostgreSQL's modules allow says what it is,
# where the test asked for it, and what the servers' sessions do, also one of psql(), for
# which the modules have no limit.  So does one whose session ends.
my @nodes;
{
	my $new = \&PostgreSQL::Test::Cluster::new;
	my $psql = \&PostgreSQL::Test::Cluster::psql;
	my $poll = \&PostgreSQL::Test::Cluster::poll_query_until;
	my %asked_by = (
		wait_connect => sub { return 'a session that begins' },
		query => sub { return $_[0] },
		query_until => sub { return $_[1] },
		quit => sub { return 'a session that is to end' });

	no strict 'refs';
	no warnings 'redefine';
	*PostgreSQL::Test::Cluster::new = sub {
		push @nodes, $new->(@_);
		return $nodes[-1];
	};
	*PostgreSQL::Test::Cluster::psql = sub {
		my ($node, $database, $sql, @params) = @_;
		my @limit = (timeout => $PostgreSQL::Test::Utils::timeout_default);
		return _must_end($sql, sub { $psql->($node, $database, $sql, @limit, @params) });
	};
	*PostgreSQL::Test::Cluster::poll_query_until = sub {
		my ($node, $database, $sql, @expected) = @_;
		my $begun = time();
		my $true = $poll->($node, $database, $sql, @expected);
		_not_true($sql, $begun, defined wantarray) unless $true;
		return $true;
	};
	foreach my $name (keys %asked_by)
	{
		my $method = PostgreSQL::Test::BackgroundPsql->can($name) or next;
		*{"PostgreSQL::Test::BackgroundPsql::$name"} = sub {
			my ($session, @params) = @_;
			return _must_end($asked_by{$name}->(@params), sub { $method->($session, @params) }, $session);
		};
	}
}

# Call a function, in this call's context, which may have asked a session for something.  If its time is over or the
# session has ended, die with what was asked.
sub _must_end
{
	my ($what, $call, $session) = @_;
	my $begun = time();
	my $wants_list = wantarray;
	my @result = eval { $wants_list ? $call->() : scalar $call->() };
	my $error = $@;

	$error = _hang($what, $begun) . $error if $error =~ /^(IPC::Run: timeout|(psql (query |startup )?)?timed out)/;
	$error = sprintf "This was asked of a session that has ended%s:\n%s\n%s%s", _place(), _text($what),
		$session ? $session->{stderr} : '', $error if $error =~ /^(process ended prematurely|ack Broken pipe)/;
	die $error if $error;
	return $wants_list ? @result : $result[0];
}

# Say what did not become true since when.  Where nobody looks at the result, that ends the test.
sub _not_true
{
	my ($what, $begun, $is_looked_at) = @_;
	my $hang = _hang($what, $begun);

	$is_looked_at ? diag $hang : die $hang;
	return;
}

# Where the test is
sub _place
{
	my $level = 0;
	my @caller;

	do { @caller = caller($level++) } until !@caller || $caller[1] =~ m{(^|/)test/(t|external)/};
	return @caller ? ", at $caller[1] line $caller[2]" : '';
}

sub _text { my ($what) = @_; return ref $what ? $what->() : $what }

# What hangs since when, where in the test, and what each server's sessions do and wait for
sub _hang
{
	my ($what, $begun) = @_;

	return sprintf("This hangs since %s, for %d s%s:\n%s\n", scalar localtime $begun, time() - $begun, _place(),
		_text($what)) . join '', map { 'Server ' . $_->name . ":\n" . _sessions($_) . "\n" } grep { defined $_->{_pid} } @nodes;
}

# A server that does not answer says so.
sub _sessions
{
	my ($node) = @_;
	my $query = <<'EOS';
SET statement_timeout = '10s';
SELECT pid, datname AS database, application_name AS application, state,
	date_trunc('milliseconds', clock_timestamp() - xact_start) AS in_transaction_for,
	date_trunc('milliseconds', clock_timestamp() - state_change) AS in_state_for,
	concat_ws(': ', wait_event_type, wait_event) AS waits_for,
	(SELECT string_agg(concat_ws(' ', mode, locktype, relation::regclass, transactionid, virtualxid, objid), ', ')
	 FROM pg_locks WHERE pg_locks.pid = a.pid AND NOT granted) AS waits_for_lock,
	nullif(pg_blocking_pids(pid), '{}') AS blocked_by, query
FROM pg_stat_activity AS a WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY xact_start;
EOS
	my $shown = '';
	local $ENV{PGCONNECT_TIMEOUT} = 5;

	eval { IPC::Run::run([ 'psql', '-Xxq', '-d', $node->connstr('postgres') ], '<', \$query, '>&', \$shown,
			IPC::Run::timeout(20)) };
	return $shown . $@;
}

# Run SQL in the database that every server has, and return what psql prints.
sub PostgreSQL::Test::Cluster::sql
{
	my ($node, $sql, %params) = @_;
	return $node->safe_psql('postgres', $sql, %params);
}

# Servers that crashed.  One that no test starts again would leave shared memory:
# at its next start a server removes what it finds of its last life.
my @crashed;

END
{
	local $?;
	foreach my $node (@crashed)
	{
		$node->start(fail_ok => 1) if !defined $node->{_pid} && -e $node->data_dir . '/postmaster.pid';
	}
}

# Kill every process of a server at once, as a power failure would.
sub crash
{
	my ($node) = @_;
	my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');

	kill_servers($postmaster);
	# Let the module know that nothing is running.
	$node->{_pid} = undef;
	push @crashed, $node;
}

sub crash_and_start
{
	my ($node) = @_;

	crash($node);
	defined $node->{clock} ? start_with_clock($node, $node->{clock}) : $node->start;
}

# A server whose sessions are in UTC
sub server_in_utc
{
	my $node = _initialized(@_);

	$node->start;
	return $node;
}

# The same, but its clock can be set.
sub server_with_clock
{
	my ($name, $clock, $conf, %init) = @_;

	my $node = _initialized($name, $conf, %init);
	start_with_clock($node, $clock);
	return $node;
}

# A server whose sequence "used" is a day ahead of the clock.  The clock's own
# progress would hide a value that comes again.
sub server_ahead_of_clock
{
	my ($name, $conf, %init) = @_;
	my $node = server_in_utc($name, "snowflake.max_lead = '30d'\n$conf", %init);

	$node->sql(q{
		CREATE EXTENSION snowflake;
		CREATE SEQUENCE used MAXVALUE 1125899906841599;
		CREATE SEQUENCE plain});
	ahead_of_clock($node, 'used', '1 day');
	return $node;
}

sub _initialized
{
	my ($name, $conf, %init) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%init);
	$node->append_conf('postgresql.conf', "timezone = 'UTC'\n" . ($conf // ''));
	return $node;
}

# Make a database with the portable version, in a schema if one is named.  With
# "max_lead", in milliseconds, sequences may be that far ahead of the clock, whose
# own progress would hide an ID that comes again.
sub new_portable_database
{
	my ($node, $database, %params) = @_;
	my $sql = slurp_file("$top/portable/snowflake.sql");

	$sql =~ s/max_lead constant bigint := \K1000(?=;)/$params{max_lead}/ or die 'no max_lead' if $params{max_lead};
	$sql = "CREATE SCHEMA $params{schema}; SET search_path = $params{schema};\n$sql" if $params{schema};
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	# PostgreSQL warns that it ignores the cast of a domain.
	$node->safe_psql($database, "SET client_min_messages = error;\n$sql");
	return;
}

# Take an ID from a sequence, "used" unless told, in a session of its own.
sub next_id
{
	my ($node, $sequence, $database) = @_;
	$sequence //= 'used';
	return $node->safe_psql($database // 'postgres', "SELECT next_id(5, '$sequence')");
}

# The value of the sequence from which an ID was made
sub value_of
{
	my ($id) = @_;
	return ($id >> 23) * 1024 + ($id & 1023);
}

# Run statements in one session, and return the last line that they print.
sub last_result
{
	my ($node, @statements) = @_;
	return (split /\n/, $node->sql(join ";\n", @statements))[-1];
}

# Crash, and see that the next ID is larger than the last one.  "query" can say
# how to take it.
sub next_id_is_larger_after_crash
{
	my ($node, $last, $what, %params) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	crash_and_start($node);
	my $next = $params{query} ? $node->sql($params{query}) :
	  next_id($node, $params{sequence}, $params{database});
	cmp_ok($next, '>', $last, "after a crash, the next ID is larger than $what");
}

# Note that nextval() repeats a value in a crash that next_id() survives, which shows
# that the schedule is the right one.  What PostgreSQL does is for PostgreSQL to
# change, so where nextval() does not, this is skipped.
sub nextval_repeats
{
	my ($repeats, $when) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

  SKIP:
	{
		skip "nextval() does not repeat a value here: $when", 1 unless $repeats;
		pass("nextval() repeats a value after a crash: $when (control)");
	}
}

# Start a server whose clock set_clock() sets, while it runs, as write_clock() says.
sub start_with_clock
{
	my ($node, $clock) = @_;

	set_clock($node, $clock);
	# The server has another working directory.
	local %ENV = (%ENV, clock_environment(File::Spec->rel2abs($node->basedir . '/clock')));
	$node->start;
}

sub set_clock
{
	my ($node, $clock) = @_;

	$node->{clock} = $clock;
	write_clock($node->basedir . '/clock', $clock);
}

# The command that moves a sequence's mark ahead of the clock, where the clock's
# own progress cannot hide a value that comes twice.  max_lead must allow it.
sub setval_ahead
{
	my ($sequence, $lead) = @_;
	return "SELECT setval('$sequence', (snowflake_min_id(clock_timestamp() + interval '$lead') >> 23) * 1024)";
}

sub ahead_of_clock
{
	my ($node, $sequence, $lead, %params) = @_;

	$node->sql(setval_ahead($sequence, $lead), %params);
}

sub send_sql
{
	my ($session, $sql) = @_;

	$session->{sent} = $sql;
	$session->{stdout} = $session->{stderr} = '';
	$session->{stdin} .= "$sql;\n";
	_must_end($sql, sub { $session->{run}->pump_nb }, $session);
}

# Wait until a session has printed something, results and errors included, or until
# something else is true.
sub session_prints
{
	my ($session, $pattern, $or) = @_;

	return wait_for(sub {
		_must_end($session->{sent}, sub { $session->{run}->pump_nb }, $session);
		"$session->{stdout}$session->{stderr}" =~ $pattern || $or && $or->() },
		sub { "$session->{sent}\nprints nothing like $pattern, but: $session->{stdout}$session->{stderr}" });
}

sub waits_for_clock
{
	my ($session) = @_;
	return $session->{node}->poll_query_until('postgres',
		"SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $session->{backend}");
}

sub fails_with
{
	my ($node, $sql, $error, $name, %params) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return like(sqlstate_of($node, $sql, %params), $error, $name) || diag("This was asked: $sql");
}

sub sqlstate_of
{
	my ($node, $sql, %params) = @_;
	my ($ret, $stdout, $stderr) = $node->psql($params{dbname} // 'postgres', "\\set VERBOSITY verbose\n$sql", %params);

	return $stderr =~ /ERROR:  (\w{5}): (.*)/ ? "$1 $2" : "no error: $stdout$stderr";
}

# The plan of a query, after settings if there are any
sub plan_of
{
	my ($node, $query, $settings) = @_;
	return $node->sql(($settings // '') . "EXPLAIN (COSTS OFF) $query");
}

sub file_of
{
	my ($node, $relation, $database) = @_;
	return $node->data_dir . '/'
	  . $node->safe_psql($database // 'postgres', "SELECT pg_relation_filepath('$relation')");
}

# Have a server with a tiny cache write a sequence's page, without a checkpoint, by
# reading other pages.
sub evict
{
	my ($node, $sequence) = @_;
	my $path = file_of($node, $sequence);
	my $last = $node->sql("SELECT last_value FROM $sequence");

	wait_for(sub {
		$node->sql(q{
			SELECT count(*) FROM pg_class, LATERAL pg_relation_size(oid);
			SET enable_seqscan = off;
			SELECT count(*) FROM pg_proc p JOIN pg_type t ON t.oid = p.prorettype
				JOIN pg_operator o ON o.oprcode = p.oid});
		# The page's one tuple is where its free space ends.
		my $page = slurp_file($path);
		return $last == unpack 'q', substr($page, 24 + unpack('S', substr($page, 14, 2)), 8) })
	  or die 'the page was not written';
}

sub write_file
{
	my ($path, $contents) = @_;

	open my $file, '>:raw', $path or die "open: $!";
	print $file $contents;
	close $file or die "close: $!";
}

# List the extension's objects in a database, a line an object.
sub catalog_of
{
	my ($node, $database, $extension) = @_;
	return $node->safe_psql($database, slurp_file("$top/test/catalog.sql"),
		extra_params => [ '-v', 'extension=' . ($extension // 'snowflake') ]);
}

# Wait until a condition is true.  Returns false, and says what hangs, if it does not become
# true within the time that PostgreSQL's modules allow.  Where nobody looks at the result, it
# dies.
sub wait_for
{
	my ($condition, $what) = @_;
	my $begun = time();
	my $end = $begun + $PostgreSQL::Test::Utils::timeout_default;

	$what //= 'a condition';
	while (time() < $end)
	{
		return 1 if _must_end($what, $condition);
		usleep(10_000);
	}
	_not_true($what, $begun, defined wantarray);
	return 0;
}

# Wait until a program that was started ends.  Returns whether it succeeded.
sub ends
{
	my ($run, $what) = @_;

	return _must_end("$what, which is to end", sub {
		local $SIG{ALRM} = sub { die "timed out\n" };
		alarm $PostgreSQL::Test::Utils::timeout_default;
		my $succeeded = $run->finish;
		alarm 0;
		return $succeeded });
}

# The processor's time that a process has used, in seconds.  Needs /proc.
sub cpu_seconds
{
	my ($pid) = @_;
	my ($user, $system) = slurp_file("/proc/$pid/stat") =~ /\) \w(?: -?\d+){10} (\d+) (\d+)/;

	return ($user + $system) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# How often a process has gone to sleep, which a process that waits for a processor
# has not.  Needs /proc.
sub times_asleep
{
	my ($pid) = @_;
	return (slurp_file("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s*(\d+)/m)[0];
}

# Start a session that goes on after an error.  {backend} is its process.
sub session
{
	my ($node, $database) = @_;
	my $session = $node->background_psql($database // 'postgres', on_error_stop => 0);

	$session->{node} = $node;
	$session->{backend} = $session->query_safe('SELECT pg_backend_pid()');
	return $session;
}

my @gdb = ('gdb', '-nx', '-batch', '-iex', 'set debuginfod enabled off');

sub _gdb_is_installed { return scalar grep { -x "$_/gdb" } split /:/, $ENV{PATH} }

# Have gdb run commands in the process of a session.  Returns whether it could.
sub gdb_runs
{
	my ($session, @commands) = @_;
	return 0 unless _gdb_is_installed();
	my ($out, $err) = run_command([ @gdb, '-p', $session->{backend}, map { ('-ex', $_) } @commands ]);
	return $err !~ /^(Could not attach|ptrace:)/m;
}

# Have gdb hold a process when it comes to a function, or returns from it, until
# let_go() is called or the test has ended.  Instead of a process, a command can be
# given; gdb starts it, and holds the first process that it starts.  Returns nothing
# if there is no gdb that can do that here.
my @held;

sub hold_at
{
	my ($process, $function, $return) = @_;
	my $log = '';
	my ($program, @arguments) = ref $process ? @$process : ();
	my $name = PostgreSQL::Test::Utils::tempdir_short . '/gdb';
	my %held = (log => \$log, reached => "$name.reached", go => "$name.go");

	return unless _gdb_is_installed();
	# A test that is killed leaves its directory behind, so look for the process.
	$held{run} = IPC::Run::start(
		[ @gdb, $program // ('-p', $process),
			(map { ('-ex', $_) } 'set confirm off', 'set pagination off', 'set follow-fork-mode child',
				'handle all nostop noprint pass', "break $function", 'echo attached\n',
				$program ? "run @arguments >$name.out 2>&1 </dev/null" : 'continue',
				$return ? 'finish' : (),
				"shell touch $held{reached}; while kill -0 $$ && [ ! -e $held{go} ]; do sleep 0.02; done",
				'delete', 'detach') ],
		'<', \'', '>', \$log, '2>', \$log,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	push @held, \%held;
	# gdb goes on after an error, to the file "reached" as well, so only what it says
	# tells.
	wait_for(sub { $held{run}->pump_nb; $log =~ /^attached$/m || !$held{run}->pumpable });
	return $log =~ /^Breakpoint 1 at.*^attached$/ms ? \%held : undef;
}

# Wait until a process is held, which carries out what a session has been sent.
sub is_held
{
	my ($held, @session) = @_;

	wait_for(sub { $_->{run}->pump_nb foreach $held, @session; -e $held->{reached} })
	  or die "gdb holds nothing: ${$held->{log}}";
}

sub send_and_hold
{
	my ($session, $sql, @where) = @_;
	my $held = hold_at($session->{backend}, @where) or return;

	send_sql($session, $sql);
	is_held($held, $session);
	return $held;
}

sub let_go
{
	my ($held) = @_;

	append_to_file($held->{go}, '');
	ends($held->{run}, 'gdb');
}

# A server cannot stop while gdb holds one of its processes.
END { append_to_file($_->{go}, '') foreach @held }

# Sessions that repeat a script of pgbench until end_load().  A query of the script that
# divides by zero, or has no row for \gset, is an error.
sub start_load
{
	my ($connstr, $script, @options) = @_;
	my %load = (output => '');
	my $file = PostgreSQL::Test::Utils::tempdir() . '/script.sql';

	append_to_file($file, $script);
	$load{run} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '4', '-R', '150', '-T', '3600', '--verbose-errors', '-D', 'last=0', @options,
			'-f', $file, $connstr ],
		'<', \undef, '>', '/dev/null', '2>', \$load{output});
	return \%load;
}

# All sessions still work.  End them as when their time is over.
sub end_load
{
	my ($load, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok($load->{run}->pumpable, "$name: sessions work to the end");
	$load->{run}->signal('ALRM');
	ends($load->{run}, "pgbench ($name)");
	is($load->{output}, '', "$name: no session got an error");
}

# Copy PostgreSQL's installation, the extension, and what is installed below another
# directory, if one is named, into a directory.  PostgreSQL finds its other directories from
# where its programs are.  Returns the directories of programs and of extensions.
sub copied_installation
{
	my ($copy, $other) = @_;
	my ($bindir, @directories) = map { (run_command([ 'pg_config', "--$_" ]))[0] } qw(bindir pkglibdir sharedir);

	foreach my $directory ($bindir, @directories)
	{
		make_path("$copy$directory");
		system_or_bail('cp', '-RL', "$_$directory/.", "$copy$directory")
		  foreach grep { -d "$_$directory" } '', $ENV{DESTDIR} // (), $other // ();
	}
	return ("$copy$bindir", "$copy$directories[-1]/extension");
}

# Have an extension that is no part of PostgreSQL.  If it is installed below one of
# the directories that $EXTENSIONS names, and not in PostgreSQL's own, servers run
# from a copy of the installation from now on, as some extensions look for their
# files there only.  Returns false if it is nowhere.
sub get_extension
{
	my ($name) = @_;
	my ($sharedir) = run_command([ 'pg_config', '--sharedir' ]);
	my ($directory) = grep { -e "$_$sharedir/extension/$name.control" } '', split /:/, $ENV{EXTENSIONS} // '';

	if ($directory)
	{
		my ($bindir) = copied_installation(PostgreSQL::Test::Utils::tempdir_short, $directory);
		$ENV{PATH} = "$bindir:$ENV{PATH}";
		# It could hold settings that lead to extensions outside the installation.
		delete $ENV{TEMP_CONFIG};
	}
	return defined $directory;
}

# The fenced blocks of a document, each with its document, its language, its
# code, the heading above it, and what is shown below it: the text of a block
# without a language that follows.
sub blocks
{
	my ($document) = @_;
	my $text = slurp_file("$top/$document");
	my $section = '';
	my @blocks;

	die "$document has a block that is indented, and would not be found" if $text =~ /^[ \t]+```/m;

	while ($text =~ /^#+ ([^\n]*)\n|^```(\w*)\n(.*?)^```\n(?:```\n(.*?)^```\n)?/gms)
	{
		$section = $1 // $section;
		push @blocks,
			{ document => $document, language => $2, code => $3, shown => $4, section => $section } unless defined $1;
	}
	return @blocks;
}

sub blocks_in
{
	my ($document, @sections) = @_;

	return map {
		my $section = $_;
		my @found = grep { $_->{section} eq $section } blocks($document);
		die "$document has no block in \"$section\"" unless @found;
		@found;
	} @sections;
}

# Type a document's blocks of SQL into psql, as a newcomer would, each into a
# session of its own.  psql must print what the document shows below the block,
# or nothing if it shows nothing; notices may be left out.  The comparison leaves
# out numbers and layout where they depend on the clock.  A block that ends with a
# lock timeout has changed nothing, and is typed again.
sub run_examples
{
	my ($node, $database, @blocks) = @_;
	my $of_clock = join '|', 'next_ids?\(', '\bnow\(', 'clock_timestamp\(', 'current_date', 'snowflake_sequences',
	  'snowflake_settled_id', '_partitions\(', 'last_value', 'bench/';

	@blocks = grep { $_->{language} eq 'sql' } @blocks;
	die 'there are no examples' unless @blocks;
	foreach my $block (@blocks)
	{
		my ($title) = $block->{code} =~ /^(?!--|BEGIN;|SET |DO \$\$)(.{1,60})/m;
		my $shown = $block->{shown} // '';
		my $printed;

		wait_for(sub {
			$printed = '';
			IPC::Run::run([ 'psql', '-Xq', '-P', 'footer=off', '-d', $node->connstr($database) ],
				'<', \$block->{code}, '>&', \$printed);
			return $printed !~ /canceling statement due to lock timeout/ });
		$printed =~ s/^NOTICE:  .*\n((DETAIL|HINT):  .*\n)*//mg unless $shown =~ /NOTICE:/;
		foreach ($printed, $shown)
		{
			s/\d+(\.\d+)?/0/g, s/-+/-/g, s/ +/ /g if $block->{code} =~ /$of_clock/;
			s/\s*\n\s*/\n/g;
			s/\s+$//;
		}
		is($printed, $shown,
			"$block->{document}: this example prints " . ($shown eq '' ? 'nothing' : 'what is shown') . ": $title");
	}
}

1;
