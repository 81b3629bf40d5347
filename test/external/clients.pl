# The clients of Debian's packages: the programs of test/clients/, whose rows of
# doc/clients.md are held against what ran.
#
# Packages: python3-psycopg python3-psycopg2 python3-sqlalchemy python3-alembic python3-django
# Packages: ruby-activerecord ruby-pg
# Packages: default-jdk-headless libpostgresql-jdbc-java
# Packages: python3-asyncpg python3-pandas
# Packages: php-cli php-pgsql php-illuminate-database php-illuminate-events php-doctrine-orm php-symfony-cache
# Packages: python3-pg8000 python3-pygresql python3-pyodbc odbc-postgresql libdbd-pg-perl librose-db-object-perl
# Packages: golang-go golang-github-lib-pq-dev golang-github-jinzhu-gorm-dev
# Packages: cargo rustc librust-tokio-postgres-dev
# Packages: libpq-dev libecpg-dev g++ libpqxx-dev

use ClientTest;
use SnowflakeTest;

my $node = start_server();
my $python = '/usr/bin/python3';
my $directory = PostgreSQL::Test::Utils::tempdir();

# A client whose version is its package's
sub packaged
{
	my ($client, $package) = @_;
	ran($client, `dpkg-query -W -f='\${Version}' $package`);
	return;
}

# Compile a program with PostgreSQL's headers, and return it.
sub compiled
{
	my ($name, @command) = @_;
	my ($include, $lib) = map { $node->config_data($_) } '--includedir', '--libdir';

	command_ok([ $command[0], "-I$include", @command[ 1 .. $#command ], "-L$lib", '-lpq', '-o', "$directory/$name" ],
		"$name: the program compiles");
	return "$directory/$name";
}

# the document's own examples
$node->safe_psql('postgres', 'CREATE DATABASE examples');
$node->safe_psql('postgres', "ALTER DATABASE examples SET timezone = 'UTC'");
$node->safe_psql('examples', 'CREATE EXTENSION snowflake');
run_examples($node, 'examples', blocks($document));

test_client('psycopg', [ $python, "$clients/psycopg3.py" ]);
test_client('asyncpg', [ $python, "$clients/async_pg.py" ],
	facts => { int_for_snowflake => '22000', hours_off_without_zone => '9.0' });
test_client('sqlalchemy', [ $python, "$clients/sqlalchemy_orm.py" ],
	tables => '',
	facts => { differences => 0, differences_of_short_form => 1, differences_without_shard => 0 });
test_client('pandas', [ $python, "$clients/pandas_frame.py" ],
	facts => {
		null => q{SELECT 'float64', id::float8::bigint FROM photos WHERE title = 'one' AND id <> id::float8::bigint},
		null_in_Int64 => q{SELECT 'Int64', id::float8::bigint FROM photos WHERE title = 'one'} });
test_client('django', [ $python, "$clients/django_orm.py" ],
	tables => '',
	facts => { same_row_unless_registered => 'False' });

# The document's field, and its migration of a serial key
my %moved = run_client('django_moves', '', $python, "$clients/django_moves.py",
	map { $_->{code} } grep { $_->{language} eq 'python' } blocks_in($document, 'Django 3.2'));
is($moved{photos}, 'old widened moved', 'django_moves: rows are in order');
is($moved{shard}, 99, 'django_moves: the shard is that of the options');
is(sql('django_moves', 'SELECT photo_id FROM comments'), $moved{moved}, 'django_moves: a referring column is widened');
is($moved{old_model_refuses}, 'True', 'django_moves: the former model refuses new IDs');
is($moved{model_refuses}, 'False', 'django_moves: the changed model accepts them');

# It resets sequences: that of a bigserial, and one that serves a layout.  It makes a row
# before it resets both, and one after that.
my $bigserials = q{
	CREATE TABLE plain (id bigserial PRIMARY KEY, title text NOT NULL);
	CREATE TABLE altered (id bigserial PRIMARY KEY, title text NOT NULL);
	SELECT snowflake_alter_sequence('altered_id_seq');
	ALTER TABLE altered ALTER id SET DEFAULT next_id(5, 'altered_id_seq')};
test_client('active_record', [ '/usr/bin/ruby', "$clients/active_record.rb" ],
	tables => $bigserials,
	facts => {
		default_in_schema => 'next_id((5)::bigint)',
		sequences_in_schema => 0,
		schema_loaded => 'same',
		tags_in_schema => 'Could not dump table "tags"' });
is(sql('active_record', q{SELECT id FROM plain WHERE title = 'after'}), 11,
	'active_record: the sequence of a bigserial is reset to the largest ID');
is(sql('active_record', q{SELECT snowflake_shard(new.id), new.id > old.id FROM altered AS old, altered AS new
		WHERE old.title = 'before' AND new.title = 'after'}),
	'5 t', 'active_record: the sequence that serves a layout is not');

test_client('jdbc', [ 'java', '-cp', '/usr/share/java/postgresql.jar', "$clients/Jdbc.java" ],
	facts => { columns_of_generated_keys => 2 });
ok(slurp_file($node->logfile) =~ /^jdbc LOG: .* INSERT INTO photos \(id, title\) VALUES \(\$1, \$2\),\(\$3, \$4\)/m,
	'jdbc: the driver rewrote the batch');

test_client('eloquent', [ 'php', "$clients/eloquent.php" ],
	tables => '',
	facts => {
		hours_off_without_zone => 8,
		json => q{SELECT format('{"id":%s} {"id":"%1$s"}', id) FROM tags},
		last_insert_id => '55000',
		id_of_plain => 1,
		last_insert_id_after_plain => 1 });
packaged('Eloquent', 'php-illuminate-database');
test_client('doctrine', [ 'php', "$clients/doctrine_orm.php" ],
	tables => '',
	facts => {
		hours_off_without_zone => 8,
		differences => 0,
		differences_unless_registered => 'Unknown database',
		defaults_of_copied => 2,
		identity => '55000' });
packaged('Doctrine', 'php-doctrine-orm');

# drivers of Python's DB-API
foreach my $driver (qw(psycopg2 pg8000 pgdb pyodbc))
{
	test_client($driver, [ $python, "$clients/db_api.py", $driver ], prepared => $driver eq 'pyodbc');
}

test_client('dbd_pg', [ '/usr/bin/perl', "$clients/dbd_pg.pl" ],
	prepared => 1,
	facts => {
		rose_read => '22P02',
		rose_declared => '23502',
		rose_generated => q{SELECT id FROM photos WHERE title = 'Generated'} });

{
	local @ENV{qw(GO111MODULE GOPATH GOCACHE GOFLAGS)} = ('off', '/usr/share/gocode', "$directory/go", '');
	test_client('lib_pq', [ 'go', 'run', "$clients/lib_pq.go" ],
		prepared => 1,
		facts => {
			last_insert_id => 'LastInsertId is not supported by this driver',
			untyped_snowflake => q{SELECT '[]uint8', id FROM tags},
			json => q{SELECT format('{"id":"%s"}', id) FROM tags},
			json_without_type => q{SELECT id::float8::bigint FROM photos WHERE title = 'one' AND id <> id::float8::bigint} });
	packaged('lib/pq', 'golang-github-lib-pq-dev');
	test_client('gorm', [ 'go', 'run', "$clients/gorm.go" ], tables => '', facts => { id_of_plain => 1 });
	packaged('GORM', 'golang-github-jinzhu-gorm-dev');
}

# Debian has the sources of the libraries, where Cargo does not look by itself.
mkdir "$directory/.cargo";
append_to_file("$directory/.cargo/config.toml", <<EOC);
[source.crates-io]
replace-with = "debian"
[source.debian]
directory = "/usr/share/cargo/registry"
EOC
append_to_file("$directory/Cargo.toml", <<EOC);
[package]
name = "client"
version = "0.1.0"
edition = "2021"
[[bin]]
name = "client"
path = "$clients/tokio_postgres.rs"
[dependencies]
futures-util = "0.3"
tokio-postgres = "0.7"
tokio = { version = "1", features = ["rt", "macros"] }
EOC
$ENV{CARGO_HOME} = "$directory/home";
my $build = "cd '$directory' && RUSTC=/usr/bin/rustc /usr/bin/cargo build -q --offline --config profile.dev.debug=false";
command_ok([ 'sh', '-c', $build ], 'tokio_postgres: the program compiles');
test_client('tokio_postgres', [ "$directory/target/debug/client" ],
	prepared => 1,
	facts => { insert_of_i64 => 'false', shard_as_i32 => 'false', sequence_as_text => 'false', cast_of_text => 'true' });
ran('tokio-postgres', slurp_file("$directory/Cargo.lock") =~ /name = "tokio-postgres"\nversion = "(.*)"/);

# C and C++
test_client('libpq', [ compiled('libpq', 'cc', "$clients/libpq_pipeline.c") ], prepared => 1);
test_client('libpqxx', [ compiled('libpqxx', 'c++', '-std=c++17', "$clients/libpqxx.cpp", '-lpqxx') ], prepared => 1);
command_ok([ 'ecpg', '-o', "$directory/ecpg.c", "$clients/ecpg.pgc" ], 'ecpg: the program is translated');
test_client('ecpg', [ compiled('ecpg', 'cc', "$directory/ecpg.c", '-lecpg') ], prepared => 1);
packaged('ECPG', 'libecpg-dev');

check_rows('From Debian', slurp_file('/etc/debian_version') =~ /^(\d+)\./ ? $1 - 12 : undef);
$node->stop;
done_testing();
