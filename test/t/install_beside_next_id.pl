# Installing beside another next_id(), as doc/reference.md says.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('install');

my %made_before = (
	instagram => q{
		CREATE SEQUENCE next_id_seq;
		CREATE FUNCTION next_id(OUT result bigint) LANGUAGE plpgsql AS $$
		BEGIN
			result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
				| (4 << 10) | nextval('next_id_seq') % 1024;
		END $$;
		CREATE TABLE old (id bigint PRIMARY KEY DEFAULT next_id());
		INSERT INTO old DEFAULT VALUES},
	function => q{CREATE FUNCTION next_id() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'});
my %error = (
	instagram => '42P07 relation "next_id_seq" already exists',
	function => '42723 function "next_id" already exists with same argument types');
my $reference = slurp_file("$top/doc/reference.md");
my $entries = join '', grep { /\(#beside-another-next_id\)/ } split /^- /m, $reference;
my ($way_out) = $reference =~ /^    (CREATE SCHEMA .*)$/m or die 'there is no way out';
my ($default) = $reference =~ /`DEFAULT (ids\.[^`]*)`/;
my ($back) = $reference =~ /`(ALTER EXTENSION [^`]*)`/;

my $stored = q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'photos'::regclass};

foreach my $database (sort keys %error)
{
	my ($code, $message) = split / /, $error{$database}, 2;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, $made_before{$database});
	is(sqlstate_of($node, 'CREATE EXTENSION snowflake', dbname => $database), $error{$database},
		"CREATE EXTENSION fails beside another next_id(): $database");
	like($entries, qr/`\Q$message\E`\s\($code\)/,
		"the reference leads from the error of CREATE EXTENSION to the way out: $database");
	$node->safe_psql($database, $way_out);
	$node->safe_psql($database, "CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT $default, n int)");
	is($node->safe_psql($database, 'INSERT INTO photos VALUES (DEFAULT, 1) RETURNING ids.snowflake_shard(id)'),
		5, "the extension makes IDs in a schema of its own: $database");
	is($node->safe_psql($database, $stored),
		'ids.next_id((5)::bigint)', "a stored default names the extension's schema: $database");
	is($node->safe_psql($database, q{
			SELECT last_value = (max(id) >> 23) * 1024 + (max(id) & 1023)
			FROM photos, ids.next_id_seq GROUP BY last_value}),
		't', "the extension in a schema of its own uses its own next_id_seq: $database");
}
is($node->safe_psql('instagram', 'INSERT INTO old DEFAULT VALUES RETURNING (id >> 10) & 8191, id & 1023'), '4|2',
	'the old next_id() goes on with its own sequence');
is($node->safe_psql('function', 'SELECT next_id()'), 1, 'the old next_id() is what the unqualified name means');

# A role that uses a default needs no privilege on the schema.  One that calls
# next_id() itself has it by the line in the reference.
$node->safe_psql('function', 'CREATE ROLE app; GRANT INSERT, SELECT ON photos TO app');
is($node->safe_psql('function', 'SET ROLE app; SELECT ids.snowflake_shard(ids.next_id(5))'), 5,
	'a role that owns nothing calls next_id() in the schema of its own');
$node->safe_psql('function', 'REVOKE USAGE ON SCHEMA ids FROM PUBLIC');
foreach my $insert ("INSERT INTO photos (n) VALUES (3), (4);\n", "COPY photos (n) FROM stdin;\n5\n6\n\\.\n")
{
	my ($command) = $insert =~ /^(\w+)/;
	is($node->safe_psql('function', "SET ROLE app;\n${insert}SELECT count(*) FROM photos WHERE n > 2"),
		$command eq 'COPY' ? 4 : 2,
			"a role without USAGE on the extension's schema uses a default of next_id() in $command");
}

# The schema stays out of search_path for these reasons.
foreach my $case ([ 'public, ids', 4, 'the old one' ], [ 'ids, public', 7, q{the extension's} ])
{
	my ($path, $shard, $whose) = @$case;
	is($node->safe_psql('instagram',
			"SET snowflake.shard = 7; SET search_path = $path; SELECT snowflake_shard(next_id())"),
		$shard, "next_id() is $whose where its schema comes first in search_path");
}

# A dump of both
$node->safe_psql('postgres', 'CREATE DATABASE copy');
my $dir = PostgreSQL::Test::Utils::tempdir;
$node->command_ok([ 'pg_dump', '-f', "$dir/instagram.sql", '-d', $node->connstr('instagram') ],
	'pg_dump dumps a database with both next_id()');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/instagram.sql", '-d', $node->connstr('copy') ],
	'a dump with both next_id() is restored');
is($node->safe_psql('copy', q{INSERT INTO photos DEFAULT VALUES RETURNING id > (SELECT max(id) FROM photos)}), 't',
	'the next ID is larger where a dump with both next_id() was restored');

# The extension moves when the old next_id() is no longer needed.
$node->safe_psql('instagram', "DROP TABLE old; DROP FUNCTION next_id(); DROP SEQUENCE next_id_seq; $back");
is($node->safe_psql('instagram', q{INSERT INTO photos VALUES (DEFAULT, 3) RETURNING snowflake_shard(id)}), 5,
	'the extension makes IDs when it has moved to the schema of the old next_id()');
is($node->safe_psql('instagram', $stored),
	'next_id((5)::bigint)', 'a stored default follows the extension to another schema');

$node->stop;
done_testing();
