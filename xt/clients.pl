# The clients of Debian's packages: the programs of clients/, whose rows of
# doc/clients.md are held against what ran.
#
# Packages: python3-psycopg python3-psycopg2 python3-sqlalchemy python3-alembic python3-django
# Packages: ruby-activerecord ruby-pg golang-go golang-github-lib-pq-dev
# Packages: default-jdk-headless libpostgresql-jdbc-java

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../t";
use ClientTest;
use SnowflakeTest;

my $node = start_server();
my (%said, @absent);

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

prepare('sqlalchemy', 'own');
%said = run_client('sqlalchemy', '/usr/bin/python3', "$clients/sqlalchemy_orm.py");
check('sqlalchemy', 'photos', 'albums', %said);
is($said{drift}, 0, 'sqlalchemy: Alembic finds no difference');
is($said{drift_if_short}, 1, 'sqlalchemy: but would if the default were written in short');

prepare('django', 'own');
%said = run_client('django', '/usr/bin/python3', "$clients/django_orm.py", $converted);
sql('django', "DELETE FROM gallery_photo WHERE title IN ('new', 'loaded')");
check('django', 'gallery_photo', 'gallery_album', %said);
like($said{reset_plain}, qr/^done done 1 2 3$/, 'django: resets the sequence of a bigserial');
check_resets('django', 'gallery_photo', 'done done', %said);
check_resets('django', 'altered', 'done done', %said);
check_resets('django', 'by_hand', '22003 22003', %said);

prepare('active_record', 'own');
%said = run_client('active_record', '/usr/bin/ruby', "$clients/active_record.rb", $converted);
check('active_record', 'photos', 'albums', %said);
is($said{all}, sql('active_record', 'SELECT id FROM photos ORDER BY id'), 'active_record: find_each goes by ID');
is($said{schema}, 'same', 'active_record: schema.rb, loaded and dumped again');
is($said{schema_default}, 'next_id((5)::bigint)', 'active_record: schema.rb has the default');
like($said{reset_plain}, qr/^done done 1 2 3$/, 'active_record: resets the sequence of a bigserial');
check_resets('active_record', 'altered', 'done done', %said);
check_resets('active_record', 'by_hand', '22003 22003', %said);

my $drivers = '/usr/share/java/postgresql.jar';
prepare('jdbc');
sql('postgres', "ALTER DATABASE jdbc SET log_statement = 'mod'");
%said = run_client('jdbc', 'java', '-cp', $drivers, "$clients/Jdbc.java");
check('jdbc', 'photos', 'albums', %said);
like(slurp_file($node->logfile), qr/INSERT INTO photos \(id, title\) VALUES \(\$1, \$2\),\(\$3, \$4\)/,
	'jdbc: the driver rewrote the batch');

SKIP:
{
	my $packages = unpack_packages(qw(libhibernate3-java libhibernate-commons-annotations-java libantlr-java
		  libcommons-collections3-java libdom4j-java libgeronimo-jpa-2.0-spec-java libgeronimo-jta-1.2-spec-java
		  libjavassist-java libslf4j-java))
	  or push @absent, 'Hibernate' and skip 'Debian\'s packages of Hibernate cannot be had', 1;
	my $classes = PostgreSQL::Test::Utils::tempdir();
	my $path = join ':', $classes, $drivers, map { "$packages/usr/share/java/$_.jar" }
	  qw(hibernate3 hibernate-entitymanager hibernate-commons-annotations antlr commons-collections3 dom4j
	  geronimo-jpa_2.0_spec geronimo-jta-1.2-spec javassist slf4j-api slf4j-nop);

	prepare('hibernate');
	sql('postgres', "ALTER DATABASE hibernate SET snowflake.max_lead = '1h'");
	run_client('hibernate', 'javac', '-cp', $path, '-d', $classes, "$clients/NextId.java", "$clients/Hibernate.java");
	%said = run_client('hibernate', 'java', '-cp', $path, 'Hibernate');
	ran('Hibernate', glob("$packages/libhibernate3-java_*.deb") =~ m{java_([^/]*)_all}s);
	sql('hibernate', "DELETE FROM photos WHERE title = 'others'");
	check('hibernate', 'photos', 'albums', %said);

	my %taken = map { $_ => 1 } split / /, $said{others} // '';
	my @pooled = split / /, $said{pooled} // '';
	is(scalar(@pooled), 50, 'hibernate: the pooled optimiser counts 50 from one ID');
	is(scalar(grep { $taken{$_} } @pooled), 30, 'hibernate: of which others had 30');
	my $array = "'{" . join(',', @pooled) . "}'::bigint[]";
	is(sql('hibernate', "SELECT count(*) FROM unnest($array) AS id WHERE snowflake_shard(id) = 4"), 20,
		'hibernate: and 20 are of another shard');
	is($said{duplicate}, '23505', 'hibernate: so that the rows are refused');
}

{
	local $ENV{GO111MODULE} = 'off';
	local $ENV{GOPATH} = '/usr/share/gocode';
	local $ENV{GOCACHE} = PostgreSQL::Test::Utils::tempdir();
	local $ENV{GOFLAGS} = '';

	%said = test_client('lib_pq', 'go', 'run', "$clients/lib_pq.go");
	ran('lib/pq', `dpkg-query -W -f='\${Version}' golang-github-lib-pq-dev`);
	is($said{json}, qq({"id":"$said{one}","title":"first"}), 'lib_pq: JSON has the ID as text');
	is($said{back}, $said{one}, 'lib_pq: which is read back');
	is($said{loose}, sql('lib_pq', "SELECT id::float8::bigint FROM photos WHERE title = 'first'"),
		'lib_pq: a number without a type is rounded');
}

check_rows('From Debian', slurp_file('/etc/debian_version') =~ /^(\d+)\./ ? "Debian $1" : '', @absent);
stop_server();
done_testing();
