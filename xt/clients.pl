# Real clients: the programs of clients/, from which doc/clients.md has its
# recipes.  Each prints the IDs that it knows of, and here they are held against
# what the tables have.
#
# Packages: python3-psycopg python3-psycopg2 python3-sqlalchemy python3-alembic python3-django
# Packages: ruby-activerecord ruby-pg nodejs golang-go golang-github-lib-pq-dev
# Packages: default-jdk-headless libpostgresql-jdbc-java

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib "$FindBin::RealBin/../t";
use SnowflakeTest;

my $clients = "$FindBin::RealBin/../clients";
my @blocks = blocks('doc/clients.md');

# Every recipe of the document is a part of a program, and the other way round.
my %recipe;
foreach my $file (glob "$clients/*")
{
	my $program = slurp_file($file);
	my ($name) = $file =~ m{([^/]*)$};
	my $number = 0;

	while ($program =~ m{^([ \t]*)(?://|\#) recipe\n(.*?)^\1(?://|\#) end$}gms)
	{
		my ($indent, $text) = ($1, $2);
		$text =~ s/^$indent//gm;
		$text =~ s/\s+$/\n/;
		$recipe{$text} = "$name, " . ++$number;
	}
	ok($number > 0, "$name: has recipes");
}
my %shown = map { $_->{code} => "$_->{section}: $_->{language}" } grep { $_->{language} !~ /^(sql|)$/ } @blocks;
is(join("\n", map { $shown{$_} } grep { !$recipe{$_} } sort keys %shown), '', 'the recipes shown are those run');
is(join("\n", map { $recipe{$_} } grep { !$shown{$_} } sort keys %recipe), '', 'the recipes run are those shown');

# Clients and server live in zones of their own, as a time without its zone
# would be another here.
my $node = PostgreSQL::Test::Cluster->new('clients');
$node->init;
$node->append_conf('postgresql.conf', <<EOC);
listen_addresses = '127.0.0.1'
timezone = 'America/Los_Angeles'
log_statement = 'mod'
EOC
$node->start;

# The document's own examples, and its tables for those clients that make none.
$node->safe_psql('postgres', 'CREATE DATABASE examples');
$node->safe_psql('postgres', "ALTER DATABASE examples SET timezone = 'UTC'");
$node->safe_psql('examples', 'CREATE EXTENSION snowflake');
run_examples($node, 'examples', @blocks);
my $tables = join '', map { $_->{code} } grep { $_->{code} =~ /^CREATE (TABLE|SEQUENCE)/ } @blocks;
my $user = $node->safe_psql('postgres', 'SELECT current_user');

# What a query gives, on one line; or its error, as a client may have left
# nothing to ask for.
sub sql
{
	my ($database, $query) = @_;
	my ($status, $output, $errors) = $node->psql($database, $query, extra_params => [ '-R', ' ', '-F', ' ' ]);
	return $status == 0 ? $output : $errors;
}

# Make a database, with the document's tables and a row of long ago unless the
# client makes its own.
sub prepare
{
	my ($name, $own) = @_;

	sql('postgres', "CREATE DATABASE $name");
	sql($name, 'CREATE EXTENSION snowflake');
	sql($name, "$tables INSERT INTO photos (id, title) VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')") unless $own;
	return;
}

# Run a client; return what it says, by the first word of each line.
sub run_client
{
	my ($name, @command) = @_;
	my ($output, $errors) = ('', '');
	local %ENV = (
		%ENV,
		PGHOST => '127.0.0.1',
		PGPORT => $node->port,
		PGDATABASE => $name,
		PGUSER => $user,
		PGSSLMODE => 'disable',
		TZ => 'Asia/Tokyo');

	ok(IPC::Run::run(\@command, '<', \undef, '>', \$output, '2>', \$errors), "$name: $command[0] succeeds")
	  or diag("@command\n", $output =~ s/^(.{200}).*$/$1.../gmr, $errors);
	return map { my ($what, @values) = split; $what => "@values" } split /\n/, $output;
}

# Hold what a client said against its tables.
sub check
{
	my ($name, $photos, $albums, %said) = @_;
	my $first = "FROM $photos WHERE title = 'first'";
	my $bulk = "FROM $photos WHERE title LIKE 'bulk %'";
	my $both = "(SELECT id FROM $photos UNION ALL SELECT id FROM $albums) AS rows";

	is($said{one}, sql($name, "SELECT id $first"), "$name: an ID of the default's");
	is($said{pair},
		sql($name, "SELECT a.id, p.id FROM $albums a JOIN $photos p ON p.id = a.cover_id AND a.id = p.album_id"),
		"$name: two rows that refer to each other");
	is($said{bulk}, sql($name, "SELECT id $bulk ORDER BY substr(title, 6)::integer"),
		"$name: each of many rows has its ID");
	is($said{bulk}, sql($name, "SELECT id $bulk ORDER BY id"), "$name: and in order");
	is($said{pages}, sql($name, "SELECT id FROM $photos ORDER BY id DESC LIMIT 40"),
		"$name: two pages of the newest");
	is($said{made}, sql($name, "SELECT (extract(epoch FROM snowflake_timestamp(id)) * 1000)::bigint $first"),
		"$name: when a row was made");
	is($said{recent}, sql($name, "SELECT id FROM $photos WHERE title <> 'old' ORDER BY id"),
		"$name: the rows of the last hour");
	is(sql($name, "SELECT count(*), count(DISTINCT id), min(snowflake_shard(id)), max(snowflake_shard(id)) FROM $both"),
		'104 104 5 5', "$name: no ID twice, all of the default's shard");
	is(sql($name, "SELECT DISTINCT pg_get_expr(adbin, adrelid) FROM pg_attrdef
			WHERE adrelid IN ('$photos'::regclass, '$albums'::regclass)"),
		'next_id((5)::bigint)', "$name: the default itself");
	return;
}

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

# Debian packages, unpacked but not installed: the directory, or undef if they
# cannot be had.  So a Node.js from elsewhere, which Debian's packages of its
# libraries do not go with, will do; and a release without Hibernate.
sub unpack_packages
{
	my @packages = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir();

	my $status = system("cd '$directory' && apt-get -qq download @packages >&2 && "
		  . 'for i in *.deb; do dpkg -x "$i" . || exit; done');
	return $status == 0 ? $directory : undef;
}

my %said;

prepare('psycopg');
%said = run_client('psycopg', '/usr/bin/python3', "$clients/psycopg3.py");
check('psycopg', 'photos', 'albums', %said);

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
%said = run_client('jdbc', 'java', '-cp', $drivers, "$clients/Jdbc.java");
check('jdbc', 'photos', 'albums', %said);
like(slurp_file($node->logfile), qr/INSERT INTO photos \(id, title\) VALUES \(\$1, \$2\),\(\$3, \$4\)/,
	'jdbc: the driver rewrote the batch');

SKIP:
{
	my $packages = unpack_packages(qw(libhibernate3-java libhibernate-commons-annotations-java libantlr-java
		  libcommons-collections3-java libdom4j-java libgeronimo-jpa-2.0-spec-java libgeronimo-jta-1.2-spec-java
		  libjavassist-java libslf4j-java))
	  or skip 'Debian\'s packages of Hibernate cannot be had', 1;
	my $classes = PostgreSQL::Test::Utils::tempdir();
	my $path = join ':', $classes, $drivers, map { "$packages/usr/share/java/$_.jar" }
	  qw(hibernate3 hibernate-entitymanager hibernate-commons-annotations antlr commons-collections3 dom4j
	  geronimo-jpa_2.0_spec geronimo-jta-1.2-spec javassist slf4j-api slf4j-nop);

	prepare('hibernate');
	sql('postgres', "ALTER DATABASE hibernate SET snowflake.max_lead = '1h'");
	run_client('hibernate', 'javac', '-cp', $path, '-d', $classes, "$clients/NextId.java", "$clients/Hibernate.java");
	%said = run_client('hibernate', 'java', '-cp', $path, 'Hibernate');
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

SKIP:
{
	my $packages = unpack_packages(qw(node-pg node-split2 node-xtend))
	  or skip 'Debian\'s package of node-postgres cannot be had', 1;
	local $ENV{NODE_PATH} = "$packages/usr/share/nodejs";

	prepare('node_postgres');
	%said = run_client('node_postgres', 'node', "$clients/node_postgres.js");
	check('node_postgres', 'photos', 'albums', %said);
	is($said{received}, $said{one}, 'node_postgres: a row in JSON has the ID');
	isnt($said{rounded}, $said{one}, 'node_postgres: a number in JSON is rounded');
	is($said{rounded}, sql('node_postgres', "SELECT id::float8::bigint FROM photos WHERE title = 'first'"),
		'node_postgres: to the next double');
	is($said{text}, $said{one}, 'node_postgres: text in JSON is not');
	is($said{short}, sql('node_postgres', "SELECT snowflake_to_text(id) FROM photos WHERE title = 'first'"),
		'node_postgres: nor is base62');
	is($said{note}, 'number true ' . sql('node_postgres', 'SELECT id FROM notes'),
		"node_postgres: the layout 'javascript' fits");
}

{
	local $ENV{GO111MODULE} = 'off';
	local $ENV{GOPATH} = '/usr/share/gocode';
	local $ENV{GOCACHE} = PostgreSQL::Test::Utils::tempdir();
	local $ENV{GOFLAGS} = '';

	prepare('lib_pq');
	%said = run_client('lib_pq', 'go', 'run', "$clients/lib_pq.go");
	check('lib_pq', 'photos', 'albums', %said);
	is($said{json}, qq({"id":"$said{one}","title":"first"}), 'lib_pq: JSON has the ID as text');
	is($said{back}, $said{one}, 'lib_pq: which is read back');
	is($said{loose}, sql('lib_pq', "SELECT id::float8::bigint FROM photos WHERE title = 'first'"),
		'lib_pq: a number without a type is rounded');
}

$node->stop;
done_testing();
