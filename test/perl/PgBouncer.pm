# A pgbouncer in front of a server.
package PgBouncer;

use Exporter 'import';
use File::Spec;
use IPC::Run;
use SnowflakeTest;

our @EXPORT = qw(pgbouncer_program start_pgbouncer);

my @daemons;

sub pgbouncer_program
{
	return (grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin')[0];
}

# Start a pgbouncer with these databases, each with its options, for these users
# beside the superuser.  Returns a node that has the pooler's address.
sub start_pgbouncer
{
	my ($server, $databases, @users) = @_;
	my $pooler = PostgreSQL::Test::Cluster->new('pooler');
	my $dir = File::Spec->rel2abs($pooler->basedir);
	my $admin = $server->sql('SELECT current_user');

	append_to_file("$dir/users", join '', map { "\"$_\" \"\"\n" } $admin, @users);
	append_to_file("$dir/pgbouncer.ini", join '', "[databases]\n",
		(map { "$_ = " . $server->connstr('postgres') . " $databases->{$_}\n" } sort keys %$databases), <<EOC);
[pgbouncer]
unix_socket_dir = @{[$pooler->host]}
listen_port = @{[$pooler->port]}
logfile = @{[File::Spec->rel2abs($pooler->logfile)]}
auth_type = trust
auth_file = $dir/users
admin_users = $admin
default_pool_size = 3
server_round_robin = 1
server_login_retry = 1
ignore_startup_parameters = options,extra_float_digits
EOC
	push @daemons, IPC::Run::start([ pgbouncer_program(), '-q', "$dir/pgbouncer.ini" ], '<', \'');

	# Ask the pooler itself, as a client of a database would be its first.  A psql
	# whose connection is refused does not read its standard input, and a broken
	# pipe would end the test.
	my @ask = ('psql', '-XAt', '-c', 'SHOW VERSION', '-d', $pooler->connstr('pgbouncer'));
	wait_for(sub { (run_command(\@ask))[0] =~ /pgbouncer/i })
	  or die 'the pooler does not answer';
	return $pooler;
}

END
{
	local $?;
	$_->kill_kill(grace => 1) foreach @daemons;
}

1;
