# Installing beside another next_id(), as doc/reference.md says.

use SnowflakeTest;

my $node = server_in_utc('install');
my $reference = slurp_file("$top/doc/reference.md");
my $entries = join '', grep { /\(#beside-another-next_id\)/ } split /^- /m, $reference;
my ($way_out) = $reference =~ /^    (CREATE SCHEMA .*)$/m or die 'there is no way out';
my ($default) = $reference =~ /`DEFAULT (ids\.[^`]*)`/;
my ($back) = $reference =~ /`(ALTER EXTENSION [^`]*)`/;
my $stored = q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'photos'::regclass};
$node->safe_psql('postgres', 'CREATE ROLE app');

foreach my $case (
	[ 'sequence', 'CREATE SEQUENCE next_id_seq', '42P07', 'relation "next_id_seq" already exists' ],
	[ 'function', q{CREATE FUNCTION next_id() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'},
		'42723', 'function "next_id" already exists with same argument types' ])
{
	my ($database, $other, $code, $message) = @$case;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, $other);
	is(sqlstate_of($node, 'CREATE EXTENSION snowflake', dbname => $database), "$code $message",
		"CREATE EXTENSION fails beside another $database");
	like($entries, qr/`\Q$message\E`\s\($code\)/, '... and the reference leads from this error to the way out');
	$node->safe_psql($database, $way_out);
	$node->safe_psql($database, "CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT $default, n int)");
	is($node->safe_psql($database, 'INSERT INTO photos VALUES (DEFAULT, 1) RETURNING ids.snowflake_shard(id)'), 5,
		'... by which the extension makes IDs in a schema of its own');
	is($node->safe_psql($database, $stored), 'ids.next_id((5)::bigint)', '... which a stored default names');
}
is($node->safe_psql('function', 'SELECT next_id()'), 1, 'the old next_id() is what the unqualified name means');

# A role that uses a default needs no privilege on the schema.
$node->safe_psql('function', 'GRANT INSERT, SELECT ON photos TO app; REVOKE USAGE ON SCHEMA ids FROM PUBLIC');
is($node->safe_psql('function', "SET ROLE app;
		INSERT INTO photos (n) VALUES (3);\nCOPY photos (n) FROM stdin;\n4\n\\.
		SELECT count(*) FROM photos WHERE n > 2"),
	2, q{a role without USAGE on the extension's schema uses a default of next_id() in INSERT and COPY});

# The extension moves when the old next_id() is no longer needed.
$node->safe_psql('sequence', "DROP SEQUENCE next_id_seq; $back");
is($node->safe_psql('sequence', q{INSERT INTO photos VALUES (DEFAULT, 3) RETURNING snowflake_shard(id)}), 5,
	'the extension makes IDs when it has moved to the schema of the old next_id()');

$node->stop;
done_testing();
