# What the tests of snowflake_admin share: a server behind a pooler, sessions that
# work through it while a procedure runs, and kills at each step of a procedure.
package AdminTest;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run;
use PgBouncer;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

our @EXPORT = qw(start_admin_server new_admin_database value
  start_load load_goes_on end_load wait_for_restart run_killed_at_each_step);

my ($node, $pooler);

# Databases that the load uses must be named here, for the pooler.
sub start_admin_server
{
	my ($name, @databases) = @_;

	plan skip_all => 'pgbouncer is not installed' unless pgbouncer_program();
	$node = server_in_utc($name, <<EOC);
statement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s'
restart_after_crash = on
EOC
	$pooler = start_pgbouncer($node, { map { ($_ => "dbname=$_ pool_mode=transaction pool_size=8") } @databases });
	new_admin_database($_) foreach @databases;
	return $node;
}

sub new_admin_database
{
	my ($database) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION snowflake_admin CASCADE');
	return;
}

sub value
{
	my ($database, $query) = @_;
	return $node->safe_psql($database, $query);
}

# Start sessions that repeat a script of pgbench through the pooler until
# end_load().  A query of the script that divides by zero, or has no row for \gset,
# is an error.
my $started = 0;

sub start_load
{
	my ($database, $script, @options) = @_;
	my $prefix = PostgreSQL::Test::Utils::tempdir() . '/load' . ++$started;
	my %load = (prefix => $prefix, database => $database, output => '');

	append_to_file("$prefix.sql", $script);
	$load{pgbench} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '6', '-R', '150', '-T', '3600', '-P', '1', '--verbose-errors', '-l', "--log-prefix=$prefix",
			@options, '-f', "$prefix.sql", '-h', $pooler->host, '-p', $pooler->port, $database ],
		'>', '/dev/null', '2>', \$load{output});
	load_goes_on(\%load, "sessions begin to work in database $database");
	return \%load;
}

# Each session's log has a line for each of its transactions.
sub _transactions
{
	my ($load) = @_;
	return grep { @$_ >= 6 } map { [ split ] } map { split /\n/, slurp_file($_) } glob "$load->{prefix}.[0-9]*";
}

# The sessions carry out many more transactions from now on.
sub load_goes_on
{
	my ($load, $name) = @_;
	my $begun = time;

	ok(wait_for(sub { (grep { defined $_->[4] && $_->[4] > $begun } _transactions($load)) > 50 }), $name);
	return;
}

# The sessions still work; stop them, look for errors of any of them, and return
# the longest time that a transaction took, in milliseconds.
sub end_load
{
	my ($load) = @_;

	load_goes_on($load, "sessions still work at the end in database $load->{database}");
	$load->{pgbench}->signal('TERM');
	$load->{pgbench}->finish;
	is($load->{output} =~ s/^progress: .*\n//gmr, '', "no session got an error in database $load->{database}");
	my ($longest) = sort { $b->[2] <=> $a->[2] } _transactions($load);
	my $pause = $longest->[2] / 1000;
	note("the longest transaction of the load took $pause ms, until " . gmtime($longest->[4]));
	return $pause;
}

# Wait until the server accepts connections after a backend was killed.  Its log tells
# when, from an offset before the kill on: a query may get an answer before the server
# has noticed, and one that is refused could end the test by a broken pipe.
sub wait_for_restart
{
	my ($offset) = @_;

	wait_for(sub { slurp_file($node->logfile, $offset) =~ /database system is ready to accept connections/ })
	  or die 'the server did not come back';
	return;
}

# Call a procedure again and again in a database, each time killed with its whole server,
# until a call succeeds.  Each step is killed once: each command that changes the
# definition of something, or with once_a_transaction the first of each transaction,
# which is enough, because what a killed transaction did is not seen.  What $state
# returns must in the end be what it is after one call that nobody killed, in the same
# database made anew by $prepare.  Returns the number of kills.
sub run_killed_at_each_step
{
	my ($database, $prepare, $call, $state, %options) = @_;
	my $once = $options{once_a_transaction} ? 'true' : 'false';
	my $kills = 0;
	my $step = 1;

	value('postgres', "DROP DATABASE IF EXISTS $database WITH (FORCE)");
	new_admin_database($database);
	$prepare->($database);
	my ($status, undef, $error) = $node->psql($database, $call);
	is($status, 0, "$call: runs undisturbed") or diag $error;
	my $expected = $state->($database);
	value('postgres', "DROP DATABASE $database WITH (FORCE)");

	new_admin_database($database);
	$prepare->($database);
	value($database, qq{
		CREATE SCHEMA killing;
		CREATE FUNCTION killing.kill() RETURNS event_trigger LANGUAGE plpgsql AS \$\$
		BEGIN
			IF $once AND current_setting('killing.seen', true) IS NOT DISTINCT FROM pg_current_xact_id()::text THEN
				RETURN;
			END IF;
			PERFORM set_config('killing.seen', pg_current_xact_id()::text, false),
				set_config('killing.step', (current_setting('killing.step')::int - 1)::text, false);
			IF current_setting('killing.step') = '0' THEN
				EXECUTE format('COPY (SELECT) TO PROGRAM ''kill -9 %s''', pg_backend_pid());
				PERFORM pg_sleep(60);
			END IF;
		END \$\$;
		CREATE EVENT TRIGGER killing ON ddl_command_end EXECUTE FUNCTION killing.kill()});
	my $changes = join '; ', map { "SELECT count(*), max(xmin::text::bigint) FROM pg_$_" } qw(class attribute attrdef constraint);
	my $before = value($database, $changes);
	while (1)
	{
		my $offset = -s $node->logfile;
		($status, undef, $error) = $node->psql($database, "SET killing.step = $step; $call");
		last if $status == 0;
		die "$call: not killed, but: $error" unless $error =~ /server closed the connection/ && $kills++ < 100;
		wait_for_restart($offset);
		# If something was committed before the kill, then the next call begins with the
		# step at which it was killed.
		my $after = value($database, $changes);
		$step = $after ne $before ? 2 : $step + 1;
		$before = $after;
	}
	value($database, 'DROP EVENT TRIGGER killing; DROP SCHEMA killing CASCADE');
	is($state->($database), $expected, "... and ends as if undisturbed after $kills kills");
	return $kills;
}

1;
