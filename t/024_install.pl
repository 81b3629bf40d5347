# Installing beside another next_id(), as doc/reference.md says, and uninstalling:
# what README.md says of DROP EXTENSION ... CASCADE.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('install');
$node->init;
$node->start;

sub new_database
{
	my ($database, $sql) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, $sql);
	return;
}

# --- uninstalling ---------------------------------------------------------

my $arithmetic = '((id >> 10) & 8191)';
new_database('leaving', qq{
	CREATE EXTENSION snowflake;
	CREATE TABLE by_function (id bigint DEFAULT next_id(1)) PARTITION BY LIST (snowflake_shard(id));
	CREATE TABLE by_function_1 PARTITION OF by_function FOR VALUES IN (1);
	CREATE TABLE by_bits (id bigint DEFAULT next_id(1)) PARTITION BY LIST ($arithmetic);
	CREATE TABLE by_bits_1 PARTITION OF by_bits FOR VALUES IN (1);
	CREATE TABLE by_bits_2 PARTITION OF by_bits FOR VALUES IN (2);
	CREATE TABLE by_time (id bigint PRIMARY KEY DEFAULT next_id(1)) PARTITION BY RANGE (id);
	CREATE TABLE by_time_old PARTITION OF by_time
		FOR VALUES FROM (snowflake_min_id('2019-01-01Z')) TO (snowflake_min_id('2020-01-01Z'));
	CREATE TABLE by_time_new PARTITION OF by_time FOR VALUES FROM (snowflake_min_id('2020-01-01Z')) TO (MAXVALUE);
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(1),
		made timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED,
		CONSTRAINT own CHECK (snowflake_shard(id) = 1));
	CREATE INDEX by_shard ON photos (snowflake_shard(id));
	CREATE VIEW shards AS SELECT DISTINCT snowflake_shard(id) FROM photos;
	INSERT INTO by_function SELECT FROM generate_series(1, 10);
	INSERT INTO by_bits SELECT FROM generate_series(1, 10);
	INSERT INTO by_bits SELECT next_id(2) FROM generate_series(1, 10);
	INSERT INTO by_time SELECT FROM generate_series(1, 10);
	INSERT INTO photos SELECT FROM generate_series(1, 10)});

my $rows = q{SELECT count(*), sum(id) FROM by_bits UNION ALL SELECT count(*), sum(id) FROM by_time
	UNION ALL SELECT count(*), sum(id) FROM photos};
my $before = $node->safe_psql('leaving', $rows);
my @drops = (
	'default value for column id of table by_bits',
	'default value for column id of table photos',
	'column made of table photos',
	'constraint own on table photos',
	'index by_shard',
	'view shards',
	'table by_function');

my ($ret, $stdout, $refusal) = $node->psql('leaving', 'DROP EXTENSION snowflake');
is($ret, 3, 'DROP EXTENSION refuses while objects depend on the extension');
like($refusal, qr/^(DETAIL:  )?\Q$_\E depends on function/m, "DROP EXTENSION lists: $_") foreach @drops;
is($node->safe_psql('leaving', 'SELECT count(*) FROM by_function'), 10, 'DROP EXTENSION that was refused drops nothing');

my $notice;
$node->psql('leaving', 'DROP EXTENSION snowflake CASCADE', stderr => \$notice);
like($notice, qr/drop cascades to \Q$_\E$/m, "DROP EXTENSION ... CASCADE drops: $_") foreach @drops;
is($node->safe_psql('leaving', q{SELECT to_regclass('by_function') IS NULL AND to_regclass('by_function_1') IS NULL}),
	't', 'DROP EXTENSION ... CASCADE drops a table partitioned by its function, with the partition');
is($node->safe_psql('leaving', $rows), $before, 'tables that are not partitioned by a function keep their rows without the extension');
is($node->safe_psql('leaving', q{SELECT count(*) FROM pg_attribute WHERE attrelid = 'photos'::regclass AND attname = 'made'}),
	0, 'DROP EXTENSION ... CASCADE drops a generated column');

my $id = $node->safe_psql('leaving', 'SELECT min(id) FROM by_bits_2');
my $plan = $node->safe_psql('leaving',
	"EXPLAIN (COSTS OFF) SELECT FROM by_bits WHERE id = $id AND (id >> 10) & 8191 = ($id >> 10) & 8191");
like($plan, qr/by_bits_2/, 'a table partitioned by the bits is pruned to one partition without the extension');
unlike($plan, qr/by_bits_1/, 'the other partition by the bits is not read without the extension');
$plan = $node->safe_psql('leaving', "EXPLAIN (COSTS OFF) SELECT FROM by_time WHERE id > $id");
like($plan, qr/by_time_new/, 'a table partitioned by RANGE (id) reads the partition of the time without the extension');
unlike($plan, qr/by_time_old/, 'a table partitioned by RANGE (id) reads no partition of another time without the extension');

# --- beside a generator of the same name ----------------------------------

my $instagram = q{
	CREATE SEQUENCE next_id_seq;
	CREATE FUNCTION next_id(OUT result bigint) LANGUAGE plpgsql AS $$
	BEGIN
		result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
			| (4 << 10) | nextval('next_id_seq') % 1024;
	END $$;
	CREATE TABLE old (id bigint PRIMARY KEY DEFAULT next_id());
	INSERT INTO old DEFAULT VALUES};
new_database('instagram', $instagram);
new_database('function', q{CREATE FUNCTION next_id() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'});
new_database('sequence', q{CREATE SEQUENCE next_id_seq; CREATE TABLE old (id bigint DEFAULT nextval('next_id_seq'))});

my %error = (
	instagram => '42P07 relation "next_id_seq" already exists',
	sequence => '42P07 relation "next_id_seq" already exists',
	function => '42723 function "next_id" already exists with same argument types');
my $reference = slurp_file("$FindBin::RealBin/../doc/reference.md");
my ($row) = $reference =~ /^(.*\(#beside-another-next_id\).*)$/m or die 'there is no such error';
my ($way_out) = $reference =~ /^    (CREATE SCHEMA .*)$/m or die 'there is no way out';
my ($default) = $reference =~ /`DEFAULT (snowflake\.[^`]*)`/;
my ($back) = $reference =~ /`(ALTER EXTENSION [^`]*)`/;

foreach my $database (sort keys %error)
{
	my ($code, $message) = split / /, $error{$database}, 2;
	is(sqlstate_of($node, 'CREATE EXTENSION snowflake', dbname => $database), $error{$database},
		"CREATE EXTENSION fails beside another next_id(): $database");
	like($row, qr/`\Q$message\E`.* \| .*\b$code\b/, "the reference has the error of CREATE EXTENSION: $database");
	$node->safe_psql($database, $way_out);
	$node->safe_psql($database, "CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT $default, n int)");
	is($node->safe_psql($database, 'INSERT INTO photos VALUES (DEFAULT, 1), (DEFAULT, 2) RETURNING snowflake.snowflake_shard(id)'),
		"5\n5", "the extension makes IDs in a schema of its own: $database");
	is($node->safe_psql($database, q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'photos'::regclass}),
		'snowflake.next_id((5)::bigint)', "a stored default names the extension's schema: $database");
	is($node->safe_psql($database, q{
			SELECT last_value = (max(id) >> 23) * 1024 + (max(id) & 1023) FROM photos, snowflake.next_id_seq GROUP BY last_value}),
		't', "the extension in a schema of its own uses its own next_id_seq: $database");
}
is($node->safe_psql('instagram', 'INSERT INTO old DEFAULT VALUES RETURNING (id >> 10) & 8191, id & 1023'), '4|2',
	'the old next_id() goes on with its own sequence');
is($node->safe_psql('sequence', 'INSERT INTO old DEFAULT VALUES RETURNING id'), 1, 'an old default with nextval() goes on with its own sequence');
is($node->safe_psql('function', 'SELECT next_id()'), 1, 'the old next_id() is what the unqualified name means');

# why the schema stays out of search_path
is($node->safe_psql('instagram', q{SET snowflake.shard = 7; SET search_path = public, snowflake;
		SELECT snowflake_shard(next_id())}), 4,
	'next_id() is the old one where its schema comes first in search_path');
is($node->safe_psql('instagram', q{SET snowflake.shard = 7; SET search_path = snowflake, public;
		SELECT snowflake_shard(next_id())}), 7,
	'next_id() is the extension\'s where its schema comes first in search_path');
is($node->safe_psql('instagram', q{
		SELECT last_value AS before FROM snowflake.next_id_seq \gset
		SET search_path = snowflake, public;
		SELECT public.next_id() > 0;
		SELECT last_value - :before FROM snowflake.next_id_seq}), "t\n1",
	'the old next_id() uses up the extension\'s sequence where that schema comes first in search_path');

# a dump of it
$node->safe_psql('postgres', 'CREATE DATABASE copy');
my $dir = PostgreSQL::Test::Utils::tempdir;
$node->command_ok([ 'pg_dump', '-f', "$dir/instagram.sql", '-d', $node->connstr('instagram') ],
	'pg_dump dumps a database with both next_id()');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/instagram.sql", '-d', $node->connstr('copy') ],
	'a dump with both next_id() is restored');
is($node->safe_psql('copy', q{INSERT INTO photos DEFAULT VALUES RETURNING id > (SELECT max(id) FROM photos)}), 't',
	'the next ID is larger where a dump with both next_id() was restored');

# when the old one is not needed any more
$node->safe_psql('instagram', "DROP TABLE old; DROP FUNCTION next_id(); DROP SEQUENCE next_id_seq; $back");
is($node->safe_psql('instagram', q{INSERT INTO photos VALUES (DEFAULT, 3) RETURNING snowflake_shard(id)}), 5,
	'the extension makes IDs when it has moved to the schema of the old next_id()');
is($node->safe_psql('instagram', q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'photos'::regclass}),
	'next_id((5)::bigint)', 'a stored default follows the extension to another schema');

$node->stop;
done_testing();
