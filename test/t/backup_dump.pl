# Dumps and restores.  IDs go on above the last ones, also where the clock is behind them,
# and values of the extension's types are the same.  A dump can lack the shard, and its
# target can have IDs of its own.  What "Backup and restore" in doc/administration.md says
# of both is so.

use SnowflakeTest;

# Sequences a day ahead of the clock stand for a clock set back by a day.
my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = server_in_utc('dumped', "snowflake.max_lead = '30d'\n");
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
delete $ENV{PGDATABASE};

sub shell
{
	my ($command, $name) = @_;
	command_ok([ 'sh', '-ec', "cd '$dir'\n$command" ], $name);
}

$node->sql('CREATE ROLE owner LOGIN; CREATE DATABASE app; ALTER DATABASE app SET snowflake.shard = 5');
$node->safe_psql('app', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE used MAXVALUE 1125899906841599;
	CREATE TABLE photos (id snowflake PRIMARY KEY DEFAULT next_id(), title text,
		seen snowflake[] DEFAULT '{17}', layout snowflake_layout DEFAULT 'timestamp:48 node:15 epoch:0 tick:10us');
	ALTER SEQUENCE used OWNED BY photos.id;
	INSERT INTO photos (title) VALUES ('sunrise'), ('noon'), ('harbour');} . join ';',
	map { setval_ahead($_, '1 day') } 'used', 'next_id_seq');
my %last = map { $_ => next_id($node, $_, 'app') } 'used', 'next_id_seq';
my $rows = 'SELECT to_json(p) FROM photos p ORDER BY id';
my $photos = $node->safe_psql('app', $rows);
shell(<<'EOS', 'pg_dump and pg_dumpall dump a database whose shard is set');
pg_dump -f plain app
pg_dump --create -f create app
pg_dumpall -f all
pg_dump -t photos -f single app
pg_dump -Fc -f app.dump app
pg_dump -Fc -s -f schema app
pg_dump -Fc -a -f data app
EOS

# --- IDs, and the shard ----------------------------------------------------

my $set_shard = qr/^ALTER DATABASE app SET "?snowflake\.shard"? TO '5';/m;
is(join(' ', grep { slurp_file("$dir/$_") =~ $set_shard } qw(plain create all)),
	'create all', 'of dumps as SQL, those with --create and of pg_dumpall have the shard');
my $psql = 'psql -Xq -v ON_ERROR_STOP=1';
foreach my $case (
	[ 'a plain dump', "$psql -f plain restored" ],
	[ 'an archive, by an owner without superuser', 'pg_restore -e -O -x -U owner -d restored app.dump' ],
	[ 'the schema and then the data', 'pg_restore -e -d restored schema; pg_restore -e -d restored data' ])
{
	my ($what, $restore) = @$case;
	shell("dropdb --if-exists restored; createdb -O owner restored; $restore", "a database is restored from $what");
	cmp_ok(next_id($node, $_, 'restored'), '>', $last{$_}, "the next ID of $_ is larger after a restore of $what")
	  foreach sort keys %last;
	is($node->safe_psql('restored', $rows), $photos, "rows are the same after a restore of $what");
	fails_with($node, 'INSERT INTO photos DEFAULT VALUES', qr/^55000 "snowflake.shard" is not set/,
		"a database restored from $what has no shard", dbname => 'restored');
}
shell('createdb schema; pg_restore -e -d schema schema', 'a database is restored from the schema alone');
is($node->safe_psql('schema',
		'SELECT abs(extract(epoch FROM snowflake_timestamp(next_id(5)) - clock_timestamp())) < 3600'),
	't', 'IDs begin with the clock after a restore of the schema alone');

$node->sql('ALTER DATABASE app RENAME TO original');
foreach my $case (
	[ 'a dump made with --create', "$psql -f create postgres" ],
	[ 'an archive with --create', 'pg_restore --create -d postgres app.dump' ])
{
	my ($what, $restore) = @$case;
	shell($restore, "a database is restored from $what");
	is($node->safe_psql('app', 'INSERT INTO photos DEFAULT VALUES RETURNING snowflake_shard(id)'), 5,
		"a database restored from $what has its shard");
	$node->sql('DROP DATABASE app');
}

# --- a target that makes IDs already ---------------------------------------

my ($leave_out) = slurp_file("$top/doc/administration.md") =~ /`(pg_restore -l app\.dump\s+\|\s+grep -v [^`]*)`/;
foreach my $case (
	[ 'whole', 'pg_restore -d whole app.dump', 't' ],
	[ 'filtered', "$leave_out; pg_restore -L list -d filtered app.dump", 'f' ],
	[ 'single', "$psql -f single single", 'f' ])
{
	my ($name, $restore, $set_back) = @$case;
	$node->sql("CREATE DATABASE $name");
	# A sequence that is far ahead shows best whether it was set back.
	$node->safe_psql($name, q{CREATE EXTENSION snowflake; SELECT setval('next_id_seq', 1::bigint << 49)});
	shell($restore, "a dump is restored into a database that makes IDs: $name");
	is($node->safe_psql($name, $rows), $photos, "the rows are restored: $name");
	is($node->safe_psql($name, 'SELECT last_value < (1::bigint << 49) FROM next_id_seq'), $set_back,
		"whether this restore sets the target's sequence back: $name");
}

$node->stop;
done_testing();
