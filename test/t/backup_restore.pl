# A dump can lack the shard, and its target the extension.  What "Backup and restore"
# in doc/administration.md says of both is so.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = server_in_utc('dumped');
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
delete $ENV{PGDATABASE};

sub shell
{
	my ($command, $name) = @_;
	command_ok([ 'sh', '-ec', "cd '$dir'\n$command" ], $name);
	return;
}

$node->safe_psql('postgres', 'CREATE DATABASE app; ALTER DATABASE app SET snowflake.shard = 5');
$node->safe_psql('app', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
	CREATE SEQUENCE albums_id_seq MAXVALUE 1125899906841599;
	CREATE TABLE albums (id bigint PRIMARY KEY DEFAULT next_id(7, 'albums_id_seq'), title text);
	CREATE TABLE victim ();
	INSERT INTO photos (title) VALUES ('sunrise'), ('; DROP TABLE public.victim; --'), ('harbour');
	INSERT INTO albums (title) VALUES ('boats')});
my $rows = 'SELECT * FROM photos UNION ALL SELECT * FROM albums ORDER BY 1';
my $expected = $node->safe_psql('app', $rows);
my $largest = $node->safe_psql('app', 'SELECT max(id) FROM photos');

# --- the shard ------------------------------------------------------------

shell('pg_dump -f plain.sql app; pg_dump --create -f create.sql app; pg_dumpall -f all.sql',
	'pg_dump and pg_dumpall dump a database whose shard is set');
my %setting = map { $_ => slurp_file("$dir/$_.sql") =~ /^ALTER DATABASE app SET "?snowflake\.shard"? TO '5';/m ? 1 : 0 }
  qw(plain create all);
is_deeply(\%setting, { plain => 0, create => 1, all => 1 }, 'of dumps as SQL, those with --create and of pg_dumpall have the shard');
shell('pg_dump -Fc -f archive.dump app', 'pg_dump writes an archive');
foreach ([ 'plain dump', 'psql -Xq -v ON_ERROR_STOP=1 -f plain.sql plain' ], [ 'archive', 'pg_restore -d plain archive.dump' ])
{
	my ($what, $restore) = @$_;
	shell("dropdb --if-exists plain; createdb plain; $restore", "a database is restored from a $what");
	fails_with($node, 'INSERT INTO photos DEFAULT VALUES', qr/^55000 "snowflake.shard" is not set/,
		"a database restored from a $what has no shard", dbname => 'plain');
}
$node->safe_psql('postgres', 'ALTER DATABASE app RENAME TO original');
foreach ([ 'a dump made with --create', 'psql -Xq -v ON_ERROR_STOP=1 -f create.sql postgres' ],
	[ 'an archive with --create', 'pg_restore --create -d postgres archive.dump' ])
{
	my ($what, $restore) = @$_;
	shell($restore, "a database is restored from $what");
	is($node->safe_psql('app', 'INSERT INTO photos DEFAULT VALUES RETURNING snowflake_shard(id)'), 5,
		"a database restored from $what has its shard");
	$node->safe_psql('postgres', 'DROP DATABASE app');
}
$node->safe_psql('postgres', 'ALTER DATABASE original RENAME TO app');

# --- a target that makes IDs already ---------------------------------------

my ($leave_out) = slurp_file("$top/doc/administration.md") =~ /`(pg_restore -l app\.dump\s+\|\s+grep -v [^`]*)`/;
shell('pg_dump -Fc -f app.dump app; pg_dump -t photos -f single.sql app', 'pg_dump dumps all, and a single table');
my $goes_back = q{SELECT last_value < (1::bigint << 49) FROM next_id_seq};
foreach my $target ([ 'whole', 'pg_restore -d whole app.dump', 1 ], [ 'filtered', "$leave_out; pg_restore -L list -d filtered app.dump", 0 ],
	[ 'single', 'psql -Xq -v ON_ERROR_STOP=1 -f single.sql single', 0 ])
{
	my ($name, $restore, $sets) = @$target;
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	# A sequence that is far ahead shows best whether it was set back.
	$node->safe_psql($name, q{CREATE EXTENSION snowflake; SELECT setval('next_id_seq', 1::bigint << 49)});
	shell($restore, "a dump is restored into a database that makes IDs: $name");
	is($node->safe_psql($name, 'SELECT count(*) FROM photos'), 3, "the rows are restored: $name");
	is($node->safe_psql($name, $goes_back), $sets ? 't' : 'f', ($sets ? 'a whole dump sets' : 'this restore does not set') . " the target's sequence: $name");
}

# --- a target without the extension ---------------------------------------

# A dump of an extension of another name stands for it.
append_to_file("$dir/lacks.sql", slurp_file("$dir/plain.sql") =~ s/EXTENSION IF NOT EXISTS snowflake/$&_of_elsewhere/r);
$node->safe_psql('postgres', 'CREATE DATABASE careless; CREATE DATABASE careful');
like(($node->psql('careless', "\\i $dir/lacks.sql", on_error_stop => 0))[2], qr/extension "snowflake_of_elsewhere" is not available/,
	'psql goes on with a dump whose extension is not available');
is($node->safe_psql('careless', q{SELECT to_regclass('photos')}), '', 'psql cannot make the table of a dump whose extension is not available');
note('psql ' . ($node->safe_psql('careless', q{SELECT to_regclass('victim') IS NULL}) eq 't' ? 'runs' : 'does not run') . ' a row of that dump as SQL');
is(($node->psql('careful', "\\i $dir/lacks.sql", on_error_stop => 1))[0], 3, 'ON_ERROR_STOP stops psql at CREATE EXTENSION');
is($node->safe_psql('careful', q{SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace}), 0,
	'ON_ERROR_STOP stops psql before anything is made of a dump');

my $all = server_in_utc('all');
$all->safe_psql('postgres', 'CREATE DATABASE app');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/with.dump", 'app' ], 'pg_dump -Fc dumps a database with the extension');
$all->command_fails([ 'pg_restore', '-e', '--no-owner', '--role=pg_monitor', '-d', $all->connstr('app'), "$dir/with.dump" ],
	'pg_restore -e stops where CREATE EXTENSION fails');
is($all->safe_psql('app', q{SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace}), 0,
	'pg_restore -e stops before anything is made');

$_->stop foreach $node, $all;
done_testing();
