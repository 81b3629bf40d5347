# pg_upgrade carries tables and sequences over to a new cluster of the same version,
# where IDs go on above the last ones.

use SnowflakeTest;

my $old = server_ahead_of_clock('old', '');
ahead_of_clock($old, 'next_id_seq', '1 day');
my %last = map { $_ => next_id($old, $_) } 'used', 'next_id_seq';
$old->sql(q{
	CREATE TABLE photos (id snowflake PRIMARY KEY DEFAULT next_id(5, 'used'), seen snowflake[]);
	INSERT INTO photos (seen) SELECT ARRAY[i] FROM generate_series(1, 100) i});
my $rows = 'SET enable_seqscan = off; SELECT to_json(p) FROM photos p ORDER BY id';
my $photos = $old->sql($rows);
$last{used} = $old->sql('SELECT max(id) FROM photos');
$old->stop;

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
$new->append_conf('postgresql.conf', "snowflake.max_lead = '30d'\nautovacuum = off\n");

my $bindir = $old->config_data('--bindir');
# pg_upgrade looks for libraries in the new installation only.
my ($new_bindir) = copied_installation(PostgreSQL::Test::Utils::tempdir_short);
# It writes its logs into the current directory.
chdir PostgreSQL::Test::Utils::tempdir;
command_ok(
	[ 'pg_upgrade', '-N', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $bindir, '-B', $new_bindir,
		'-s', $old->host, '-p', $old->port, '-P', $new->port ],
	'pg_upgrade carries a cluster with the extension over');
$new->start;
my %next = map { $_ => next_id($new, $_) } sort keys %last;
cmp_ok($next{$_}, '>', $last{$_}, "the next ID of $_ is larger after pg_upgrade") foreach sort keys %last;
is($new->sql($rows), $photos, 'a table of type snowflake and its index have the same rows after pg_upgrade');
next_id_is_larger_after_crash($new, $next{used}, 'one taken after pg_upgrade');

$new->stop;
done_testing();
