# The clients of Debian's packages: the programs of test/clients/, whose rows of
# doc/clients.md are held against what ran.
#
# Packages: python3-psycopg python3-psycopg2 python3-sqlalchemy python3-alembic python3-django
# Packages: ruby-activerecord ruby-pg golang-go golang-github-lib-pq-dev
# Packages: default-jdk-headless libpostgresql-jdbc-java
# Packages: python3-asyncpg python3-pandas
# Packages: php-cli php-pgsql php-doctrine-orm php-symfony-cache php-illuminate-database php-illuminate-events
# Packages: libpq-dev
# Packages: cargo rustc librust-tokio-postgres-dev

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use ClientTest;
use SnowflakeTest;

my $node = start_server();
my %said;

# the document's own examples
$node->safe_psql('postgres', 'CREATE DATABASE examples');
$node->safe_psql('postgres', "ALTER DATABASE examples SET timezone = 'UTC'");
$node->safe_psql('examples', 'CREATE EXTENSION snowflake');
run_examples($node, 'examples', blocks($document));

# For clients that reset sequences, tables with a bigserial: one that has it
# still, one whose sequence serves a layout, and one whose sequence only has the
# layout's MAXVALUE and still belongs to the column.
my $converted = q{
	CREATE TABLE plain (id bigserial PRIMARY KEY, title text NOT NULL);
	CREATE TABLE altered (id bigserial PRIMARY KEY, title text NOT NULL);
	CREATE TABLE by_hand (id bigserial PRIMARY KEY, title text NOT NULL);
	INSERT INTO altered (title) SELECT 'small' FROM generate_series(1, 10);
	INSERT INTO by_hand (title) SELECT 'small' FROM generate_series(1, 10);
	SELECT snowflake_alter_sequence('altered_id_seq');
	ALTER SEQUENCE by_hand_id_seq MAXVALUE 1125899906841599;
	ALTER TABLE altered ALTER id SET DEFAULT next_id(5, 'altered_id_seq');
	ALTER TABLE by_hand ALTER id SET DEFAULT next_id(5, 'by_hand_id_seq')};

# Hold what resets of a table's sequence did against what they should: the
# outcomes of the two kinds of reset, and rows made before, between and after.
sub check_resets
{
	my ($name, $table, $outcomes, %said) = @_;
	my ($reset, $loaded, @ids) = split / /, $said{"reset_$table"} // '';

	is("$reset $loaded", $outcomes, "$name: outcomes of resetting the sequence of table $table");
	is(sql($name, 'SELECT count(*), count(*) FILTER (WHERE id > before), min(snowflake_shard(id)), max(snowflake_shard(id))
			FROM (SELECT id, lag(id, 1, 1::bigint << 60) OVER (ORDER BY nr) AS before
				FROM unnest(ARRAY[' . join(',', @ids) . ']::bigint[]) WITH ORDINALITY AS ids (id, nr)) AS t'),
		'3 3 5 5', "$name: rows made before and after it have IDs in order");
	return;
}

test_client('psycopg', '/usr/bin/python3', "$clients/psycopg3.py");
run_printed('python', PostgreSQL::Test::Utils::tempdir() . '/printed.py', '/usr/bin/python3');

prepare('sqlalchemy', 'own');
%said = test_client('sqlalchemy', '/usr/bin/python3', "$clients/sqlalchemy_orm.py");
is($said{drift}, 0, 'sqlalchemy: Alembic finds no difference, also not in the type snowflake');
is($said{drift_if_short}, 1, 'sqlalchemy: but would if the default were written in short');
is($said{drift_if_setting}, 0, 'sqlalchemy: Alembic finds no difference in next_id()');

prepare('django', 'own');
%said = run_client('django', '/usr/bin/python3', "$clients/django_orm.py", $converted);
sql('django', "DELETE FROM gallery_photo WHERE title IN ('new', 'loaded')");
check('django', 'gallery_photo', 'gallery_album', %said);
is($said{same_row}, 'False', 'django: an object whose ID is text is not equal to the same row with a number');
like($said{reset_plain}, qr/^done done 1 2 3$/, 'django: resets the sequence of a bigserial');
check_resets('django', 'gallery_photo', 'done done', %said);
check_resets('django', 'altered', 'done done', %said);
check_resets('django', 'by_hand', '22003 22003', %said);

prepare('active_record', 'own');
%said = test_client('active_record', '/usr/bin/ruby', "$clients/active_record.rb", $converted);
is($said{all}, sql('active_record', 'SELECT id FROM photos ORDER BY id'), 'active_record: find_each goes by ID');
is($said{schema_of_tags}, 'Could not dump table "tags"', 'active_record: schema.rb leaves out a table with the type snowflake');
is($said{schema}, 'same', 'active_record: schema.rb, loaded and dumped again');
is($said{schema_default}, 'next_id((5)::bigint)', 'active_record: schema.rb has the default');
like($said{reset_plain}, qr/^done done 1 2 3$/, 'active_record: resets the sequence of a bigserial');
check_resets('active_record', 'altered', 'done done', %said);
check_resets('active_record', 'by_hand', '22003 22003', %said);

prepare('jdbc');
sql('postgres', "ALTER DATABASE jdbc SET log_statement = 'mod'");
%said = test_client('jdbc', 'java', '-cp', '/usr/share/java/postgresql.jar', "$clients/Jdbc.java");
like(slurp_file($node->logfile), qr/INSERT INTO photos \(id, title\) VALUES \(\$1, \$2\),\(\$3, \$4\)/,
	'jdbc: the driver rewrote the batch');

{
	local $ENV{GO111MODULE} = 'off';
	local $ENV{GOPATH} = '/usr/share/gocode';
	local $ENV{GOCACHE} = PostgreSQL::Test::Utils::tempdir();
	local $ENV{GOFLAGS} = '';

	%said = test_client('lib_pq', 'go', 'run', "$clients/lib_pq.go");
	ran('lib/pq', `dpkg-query -W -f='\${Version}' golang-github-lib-pq-dev`);
	is($said{json}, qq({"id":"$said{one}","title":"first"}), 'lib_pq: JSON has the ID as text');
	is($said{back}, $said{one}, 'lib_pq: which is read back');
	is($said{untyped}, "[]uint8 $said{one}", 'lib_pq: a snowflake without a type to scan into is text');
	is($said{loose}, sql('lib_pq', "SELECT id::float8::bigint FROM photos WHERE title = 'first'"),
		'lib_pq: a number without a type is rounded');
}

%said = test_client('asyncpg', '/usr/bin/python3', "$clients/async_pg.py");
is($said{layout_text}, 32, 'asyncpg: a layout as text');
is($said{layout_binary}, 32, 'asyncpg: a layout in binary');
is($said{layout_sent}, '01' . unpack('H*', 'discord'), 'asyncpg: the server sends the version and the text');
is($said{layout_version}, '22P03', 'asyncpg: a layout of another version is refused');
is($said{int_as_snowflake}, 'refused', 'asyncpg: an int as a snowflake is refused');
is($said{naive}, '9.0', "asyncpg: a time without a zone is the client's");
is($said{shard_text}, 'refused', 'asyncpg: a shard as text is refused');

%said = test_client('pandas', '/usr/bin/python3', "$clients/pandas_frame.py");
my ($album) = split / /, $said{pair};
my $rounded = sql('pandas', "SELECT $album\::float8::bigint");
isnt($rounded, $album, 'pandas: the ID is none that a double can have');
is($said{nullable}, "float64 $rounded", 'pandas: a column with NULLs is rounded');
is($said{named}, "Int64 $rounded", 'pandas: also if its type is named');
is($said{text}, $album, 'pandas: as text it is not');
is($said{replaced}, 0, 'pandas: if_exists="replace" makes a table without a key');

%said = test_client('pdo', 'php', "$clients/pdo.php");
is($said{last_insert_id}, '55000', 'pdo: lastInsertId() fails');
is($said{last_insert_id_of_other}, 1, "pdo: or is the value of another table's sequence");

prepare('doctrine', 'own');
%said = test_client('doctrine', 'php', "$clients/doctrine_orm.php");
is($said{difference}, 0, 'doctrine: the schema tool finds no difference');
is($said{unknown_type}, 'Unknown database type snowflake requested, Doctrine\DBAL\Platforms\PostgreSQL100Platform may not support it.',
	'doctrine: the schema tool fails at the type snowflake if it does not know what to take it for');
is($said{copied}, 2, 'doctrine: a default among the options is copied to the columns that refer to it');
is($said{auto}, 1, "doctrine: AUTO stores its sequence's value");
is($said{identity}, '55000', 'doctrine: IDENTITY asks for a sequence that made no value');
is($said{without_zone}, 0, 'doctrine: the type datetime_immutable loses the zone');

prepare('eloquent', 'own');
%said = test_client('eloquent', 'php', "$clients/eloquent.php");
ran('Eloquent', `dpkg-query -W -f='\${Version}' php-illuminate-database`);
is($said{json}, sql('eloquent', q(SELECT format('{"id":%s} {"id":"%1$s"}', id) FROM tags)),
	'eloquent: JSON has a number, unless the key is a string');
is($said{refers}, sql('eloquent', q(SELECT format('{"album_id":%s} {"album_id":"%1$s"}', album_id) FROM photos WHERE album_id IS NOT NULL)),
	'eloquent: JSON has a number for a column that refers to a key, unless it is cast to a string');
is($said{plain}, 1, 'eloquent: id() is a bigserial');
is($said{last_insert_id}, 1, "eloquent: lastInsertId() is the value of another table's sequence");
is($said{without_zone}, 0, 'eloquent: a bound DateTime loses its zone');

{
	my $program = PostgreSQL::Test::Utils::tempdir() . '/libpq_pipeline';
	my ($include, $lib) = map { $node->config_data($_) } '--includedir', '--libdir';
	system_or_bail('cc', "-I$include", "$clients/libpq_pipeline.c", "-L$lib", '-lpq', '-o', $program);
	test_client('libpq', $program);
}

{
	# Debian has the sources of the libraries, where Cargo does not look by itself.
	my $dir = PostgreSQL::Test::Utils::tempdir();
	mkdir "$dir/.cargo";
	append_to_file("$dir/.cargo/config.toml", <<EOC);
[source.crates-io]
replace-with = "debian"
[source.debian]
directory = "/usr/share/cargo/registry"
EOC
	append_to_file("$dir/Cargo.toml", <<EOC);
[package]
name = "client"
version = "0.1.0"
edition = "2021"
[[bin]]
name = "client"
path = "$clients/tokio_postgres.rs"
[dependencies]
tokio-postgres = "0.7"
tokio = { version = "1", features = ["rt", "macros"] }
EOC
	local $ENV{CARGO_HOME} = "$dir/home";
	my $build = "cd '$dir' && RUSTC=/usr/bin/rustc /usr/bin/cargo build -q --offline --config profile.dev.debug=false";
	command_ok([ 'sh', '-c', $build ], 'tokio-postgres: the program compiles');
	ran('tokio-postgres', slurp_file("$dir/Cargo.lock") =~ /name = "tokio-postgres"\nversion = "(.*)"/);
	%said = test_client('tokio_postgres', "$dir/target/debug/client");
	is($said{insert_i64}, 'false', 'tokio-postgres: an i64 as a snowflake is refused');
	is($said{shard_i32}, 'false', 'tokio-postgres: an i32 as shard is refused');
	is($said{regclass}, 'false', 'tokio-postgres: so is a string as sequence');
	is($said{regclass_cast}, 'true', 'tokio-postgres: a cast makes it possible');
	is($said{layout_cast}, 32, 'tokio-postgres: a layout as text');
	is($said{layout_binary}, 32, 'tokio-postgres: a layout in binary');
	is($said{layout_received}, '1 discord', 'tokio-postgres: the server sends the version and the text');
	is($said{layout_version}, '22P03', 'tokio-postgres: a layout of another version is refused');
}

check_rows('From Debian', slurp_file('/etc/debian_version') =~ /^(\d+)\./ ? "Debian $1" : '');
stop_server();
done_testing();
