# What the tests of snowflake_admin share: a server behind a pooler, sessions that
# work through it while a procedure runs, and kills at each step of a procedure.
package AdminTest;

use Exporter 'import';
use PgBouncer;
use SnowflakeTest;

our @EXPORT = qw(start_admin_server new_admin_database value holds run_psql said succeeds
  start_sessions sessions_go_on end_sessions clock_passes_identities hostile_schema wait_for_restart run_killed_at_each_step);

my ($node, $pooler);

# Start a server that has databases, and the roles owner, app and nobody.  Databases
# that a load uses must be named here, for the pooler.
sub start_admin_server
{
	my ($name, @databases) = @_;

	plan skip_all => 'pgbouncer is not installed' unless pgbouncer_program();
	$node = server_in_utc($name,
		"statement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s'\nrestart_after_crash = on\n");
	$pooler = start_pgbouncer($node, { map { ($_ => "dbname=$_ pool_mode=transaction pool_size=8") } @databases });
	value('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE app LOGIN; CREATE ROLE nobody LOGIN');
	new_admin_database($_) foreach @databases;
	return $node;
}

sub new_admin_database
{
	my ($database) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION snowflake_admin CASCADE');
}

sub value
{
	my ($database, $query) = @_;
	return $node->safe_psql($database, $query);
}

# Names of facts, each with what SELECT shows to be true
sub holds
{
	my ($database, @facts) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	while (my ($name, $condition) = splice @facts, 0, 2)
	{
		is(value($database, "SELECT $condition"), 't', $name);
	}
}

# A call succeeds.  Returns what it says.
sub succeeds
{
	my ($database, $call, $name) = @_;
	my ($status, undef, $said) = $node->psql($database, $call);
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($status, 0, $name) or diag $said;
	return $said;
}

# The notices and errors of a call
sub said
{
	my ($call, $database) = @_;
	return ($node->psql($database // 'app', $call))[2] =~ s/^psql:<stdin>:\d+: //gmr;
}

# The same, with SQLSTATEs
sub run_psql
{
	my ($database, $sql, @params) = @_;
	return ($node->psql($database, "\\set VERBOSITY verbose\n$sql", @params))[2];
}

# A load (see SnowflakeTest.pm) of sessions that connect through the pooler.  A sequence
# counts their transactions.  Emulated, sessions that never paused would hold their locks
# for seconds.
sub start_sessions
{
	my ($database, $script, @options) = @_;

	value($database, 'CREATE SCHEMA IF NOT EXISTS load; CREATE SEQUENCE IF NOT EXISTS load.transactions');
	my $load = start_load(sprintf('host=%s port=%s dbname=%s', $pooler->host, $pooler->port, $database),
		"$script\nSELECT nextval('load.transactions');\n", '-c', '6', @options,
		$ENV{EMULATED} ? ('-R', '5') : ());
	$load->{database} = $database;
	sessions_go_on($load, "sessions begin to work in database $database");
	return $load;
}

# The sessions carry out many more transactions from now on.  If not, pgbench says why.
sub sessions_go_on
{
	my ($load, $name) = @_;
	my $count = sub { value($load->{database}, 'SELECT last_value FROM load.transactions') };
	my $begun = $count->();
	my $go_on;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	# pgbench ends when all its sessions have got an error.
	wait_for(sub {
		$load->{run}->pump_nb;
		$go_on = $count->() > $begun + 50;
		return $go_on || $load->{output} ne '' || !$load->{run}->pumpable }, $name);
	diag "pgbench: $load->{output}" if $load->{output} ne '';
	ok($go_on, $name);
}

sub end_sessions
{
	my ($load) = @_;

	sessions_go_on($load, "sessions still work at the end in database $load->{database}");
	end_load($load, "database $load->{database}");
}

# Wait until the clock has passed the numbers of identities that a move back has made go on from IDs.  IDs may
# lead the clock, and so do these numbers.
sub clock_passes_identities
{
	my ($database) = @_;
	wait_for(sub { value($database, q{
		SELECT count(*) FROM pg_sequences WHERE last_value >= snowflake_min_id(clock_timestamp())}) == 0 })
	  or die 'an identity is ahead of the clock';
}

# A schema with functions, operators, types and tables that a search_path finds before
# those that are meant.  Each call of them is an error.  A function cannot be declared with
# most pseudo-types, so types are named here for functions of any type.
sub hostile_schema
{
	my ($server, $database) = @_;

	$server->safe_psql($database, <<'EOS');
CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
WITH meant AS (
	SELECT oid, proname, format('%I(%s)', proname, oidvectortypes(proargtypes)) AS signature, prorettype FROM pg_proc
	WHERE NOT EXISTS (SELECT FROM pg_type AS t WHERE (typtype = 'p' OR typnamespace <> 'pg_catalog'::regnamespace)
		AND (t.oid = ANY (proargtypes) OR t.oid = prorettype AND typname <> 'void'))
)
SELECT format('CREATE FUNCTION evil.%s RETURNS %s LANGUAGE plpgsql AS $$BEGIN RAISE ''hostile''; END$$',
	signature, result)
FROM (SELECT signature, prorettype::regtype FROM meant
	UNION ALL SELECT unnest(ARRAY['count(bigint)', 'unnest(bigint[])', 'cardinality(regclass[])']), 'bigint'
	UNION ALL SELECT format('format(text, %s)', unnest(ARRAY['text', 'name', 'regclass', 'text, text', 'name, name',
		'text, regclass', 'regclass, text', 'regclass, name'])), 'text') AS functions(signature, result)
UNION ALL
SELECT format('CREATE OPERATOR evil.%s (FUNCTION = evil.%I, RIGHTARG = %s', oprname, proname, oprright::regtype)
	|| coalesce(', LEFTARG = ' || nullif(oprleft, 0)::regtype, '') || ')'
FROM pg_operator JOIN meant ON oprcode = meant.oid \gexec
SELECT format('CREATE TABLE evil.%I ()', relname) FROM pg_class WHERE relkind = 'r' AND relname ~ '^pg_'
UNION ALL
SELECT format('CREATE DOMAIN evil.%I AS integer CHECK (false)',
	unnest('{text,record,regclass,timestamptz}'::name[])) \gexec
EOS
}

# Wait until the server accepts connections after a backend was killed.  Its log tells
# when, from an offset before the kill on: a query may get an answer before the server
# has noticed, and one that is refused could end the test by a broken pipe.
sub wait_for_restart { return $node->wait_for_log(qr/database system is ready to accept connections/, $_[0]) }

# Call a procedure again and again in a database, each time killed with its whole server,
# until a call succeeds.  Each step is killed once: each command that changes the
# definition of something, or with once_a_transaction the first of each transaction,
# which is enough, because what a killed transaction did is not seen.  Commands that run as
# the owner of a table count, too: what they SET is undone, so sequences count them.  What $state
# returns, which may have several named parts, must in the end be what it is after one
# call that nobody killed, in the same database made anew by $prepare.  Returns the
# number of kills.
sub run_killed_at_each_step
{
	my ($database, $prepare, $call, $state, %options) = @_;
	my $once = $options{once_a_transaction} ? 'true' : 'false';
	my $kills = 0;
	my $step = 1;
	my $make = sub {
		value('postgres', "DROP DATABASE IF EXISTS $database WITH (FORCE)");
		new_admin_database($database);
		$prepare->($database) };

	$make->();
	succeeds($database, $call, "$call: runs undisturbed");
	my $expected = $state->($database);

	$make->();
	value($database, qq{
		CREATE SCHEMA killing;
		CREATE SEQUENCE killing.steps;
		CREATE SEQUENCE killing.seen;
		CREATE FUNCTION killing.kill() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS \$\$
		DECLARE
			transaction bigint := pg_current_xact_id()::text;
		BEGIN
			IF $once AND (SELECT last_value FROM killing.seen) = transaction THEN
				RETURN;
			END IF;
			PERFORM setval('killing.seen', transaction);
			IF nextval('killing.steps') = current_setting('killing.step')::bigint THEN
				EXECUTE format('COPY (SELECT) TO PROGRAM ''kill -9 %s''', pg_backend_pid());
				PERFORM pg_sleep(60);
			END IF;
		END \$\$;
		CREATE EVENT TRIGGER killing ON ddl_command_end EXECUTE FUNCTION killing.kill()});
	my $changes = join ';',
	  map { "SELECT count(*), max(xmin::text::bigint) FROM pg_$_" } qw(class attribute attrdef constraint);
	my $before = value($database, $changes);
	while (1)
	{
		my $offset = -s $node->logfile;
		my ($status, undef, $error) = $node->psql($database,
			"SET killing.step = $step; SELECT setval('killing.steps', 1, false); $call");
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
	is_deeply($state->($database), $expected, "... and ends as if undisturbed after $kills kills");
	return $kills;
}

1;
