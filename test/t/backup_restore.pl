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
	INSERT INTO photos (title) VALUES ('sunrise'), ('noon'), ('harbour')});

# --- the shard ------------------------------------------------------------

shell('pg_dump -f plain.sql app; pg_dump --create -f create.sql app; pg_dumpall -f all.sql',
	'pg_dump and pg_dumpall dump a database whose shard is set');
is(join(' ',
	grep { slurp_file("$dir/$_.sql") =~ /^ALTER DATABASE app SET "?snowflake\.shard"? TO '5';/m } qw(plain create all)),
	'create all', 'of dumps as SQL, those with --create and of pg_dumpall have the shard');
shell('pg_dump -Fc -f archive.dump app', 'pg_dump writes an archive');
foreach (
	[ 'plain dump', 'psql -Xq -v ON_ERROR_STOP=1 -f plain.sql plain' ],
	[ 'archive', 'pg_restore -d plain archive.dump' ])
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
foreach my $target (
	[ 'whole', 'pg_restore -d whole app.dump', 't' ],
	[ 'filtered', "$leave_out; pg_restore -L list -d filtered app.dump", 'f' ],
	[ 'single', 'psql -Xq -v ON_ERROR_STOP=1 -f single.sql single', 'f' ])
{
	my ($name, $restore, $set_back) = @$target;
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	# A sequence that is far ahead shows best whether it was set back.
	$node->safe_psql($name, q{CREATE EXTENSION snowflake; SELECT setval('next_id_seq', 1::bigint << 49)});
	shell($restore, "a dump is restored into a database that makes IDs: $name");
	is($node->safe_psql($name, 'SELECT count(*) FROM photos'), 3, "the rows are restored: $name");
	is($node->safe_psql($name, 'SELECT last_value < (1::bigint << 49) FROM next_id_seq'), $set_back,
		"whether this restore sets the target's sequence back: $name");
}

# --- a target without the extension ---------------------------------------

# A dump of an extension of another name stands for it.
append_to_file("$dir/lacks.sql", slurp_file("$dir/plain.sql") =~ s/EXTENSION IF NOT EXISTS snowflake/$&_of_elsewhere/r);
$node->safe_psql('postgres', 'CREATE DATABASE careful');
is(($node->psql('careful', "\\i $dir/lacks.sql", on_error_stop => 1))[0], 3,
	'ON_ERROR_STOP stops psql at CREATE EXTENSION');
is($node->safe_psql('careful', q{SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace}), 0,
	'ON_ERROR_STOP stops psql before anything is made of a dump');

$node->safe_psql('postgres', 'CREATE DATABASE denied; CREATE ROLE nobody');
command_fails([ 'pg_restore', '-e', '--no-owner', '--role=nobody', '-d', 'denied', "$dir/app.dump" ],
	'pg_restore -e stops where CREATE EXTENSION fails');
is($node->safe_psql('denied', q{SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace}), 0,
	'pg_restore -e stops before anything is made');

$node->stop;
done_testing();
