# The objects of each version are on record.  For example, test/catalog--1.0.txt is what
# test/catalog.sql prints of version 1.0.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('catalog');
# This role is no superuser, so the record tells its objects from a superuser's.
$node->safe_psql('postgres', 'CREATE ROLE owner');

my @versions = map { /--([^-]+)\.sql$/ } glob "$top/snowflake--*.sql";
foreach my $version (@versions)
{
	my $record = "catalog--$version.txt";
	my $made = PostgreSQL::Test::Utils::tempdir . "/$record";

	$node->safe_psql('postgres', qq{CREATE DATABASE "$version" OWNER owner});
	$node->safe_psql($version, qq{SET ROLE owner; CREATE EXTENSION snowflake VERSION '$version'});
	append_to_file($made, catalog_of($node, $version) . "\n");
	my ($difference, $error) = run_command([ 'diff', '-U0', "$top/test/$record", $made ]);
	unlike(slurp_file($made), qr/NOT LOOKED AT/, "test/catalog.sql knows every kind of object of version $version");
	is(scalar(split /\n/, slurp_file($made)), $node->safe_psql($version, q{
			SELECT count(*) FROM pg_depend d WHERE deptype = 'e'
			AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
			AND NOT EXISTS (SELECT FROM pg_depend i WHERE i.classid = d.classid AND i.objid = d.objid AND i.deptype = 'i')}),
		"test/catalog.sql lists every object of version $version");
	is("$error$difference", '', "version $version consists of what t/$record says") or diag <<EOM;
If version $version is released, do not change it: write an upgrade script to a
new version, and add the record of that one.  Until then, replace the record.
This prints it, if a role that is no superuser has created the extension:
    psql -XAt -f test/catalog.sql >t/$record
EOM
}

my $database = $versions[0];
my $catalog = catalog_of($node, $database);

# An upgrade script could forget or add each of these things.  The catalogue shows
# the change: with or without a line that matches.
my $reveal = 'FUNCTION snowflake_reveal(bigint, bigint)';
foreach my $change (
	[ 'a comment', 'COMMENT ON FUNCTION next_id() IS NULL', qr/^function next_id\(\):.* TO PUBLIC$/m ],
	[ 'the text of a comment', q{COMMENT ON FUNCTION next_id() IS 'changed'}, qr/^function next_id\(\):.* \| changed$/m ],
	[ 'a default', q{CREATE OR REPLACE FUNCTION snowflake_to_text(id bigint, encoding text DEFAULT 'base32') RETURNS text
		AS '$libdir/snowflake' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE}, qr/^function snowflake_to_text.* DEFAULT 'base32'/m ],
	[ 'STRICT', "ALTER $reveal CALLED ON NULL INPUT", qr/^function snowflake_reveal(?!.* STRICT)/m ],
	[ 'a parallel label', "ALTER $reveal PARALLEL UNSAFE", qr/^function snowflake_reveal(?!.* PARALLEL)/m ],
	[ 'the volatility', "ALTER $reveal STABLE", qr/^function snowflake_reveal.* STABLE /m ],
	[ 'the C function', q{CREATE OR REPLACE FUNCTION snowflake_reveal(id bigint, key bigint) RETURNS bigint
		AS '$libdir/snowflake', 'snowflake_obfuscate' LANGUAGE C}, qr/^function snowflake_reveal.*\$snowflake_obfuscate\$/m ],
	[ 'the cost', "ALTER $reveal COST 11", qr/^function snowflake_reveal.* COST 11 /m ],
	[ 'the number of rows', 'ALTER FUNCTION snowflake_layouts() ROWS 20', qr/^function snowflake_layouts\(\).* ROWS 20 /m ],
	[ 'privileges', "REVOKE EXECUTE ON $reveal FROM PUBLIC", qr/^function snowflake_reveal(?!.*\| EXECUTE TO PUBLIC)/m ],
	[ 'the end of a sequence', 'ALTER SEQUENCE next_id_seq MAXVALUE 1000', qr/^sequence next_id_seq.* MAXVALUE 1000 /m ],
	[ 'the owner of a sequence', 'ALTER SEQUENCE next_id_seq OWNER TO current_user', qr/^sequence next_id_seq.*\| superuser \|/m ],
	[ 'that a sequence is dumped', 'UPDATE pg_extension SET extconfig = NULL, extcondition = NULL', qr/^sequence next_id_seq.* dumped: f/m ],
	[ 'a function outside the extension', "ALTER EXTENSION snowflake DROP $reveal", qr/\A(?!.*^function snowflake_reveal)/ms ],
	[ 'another function', 'CREATE FUNCTION later() RETURNS int LANGUAGE sql RETURN 1; ALTER EXTENSION snowflake ADD FUNCTION later()',
		qr/^function later\(\)/m ],
	[ 'where a cast applies', q{UPDATE pg_cast SET castcontext = 'e' WHERE castsource = 'snowflake'::regtype},
		qr/^cast from snowflake to bigint: FUNCTION - CONTEXT e /m ],
	[ 'an operator', 'CREATE OPERATOR <<< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = int8eq, COMMUTATOR = <<<);
		ALTER EXTENSION snowflake ADD OPERATOR <<< (bigint, bigint)', qr/^operator <<<.* HASHES f/m ],
	[ 'HASHES of an operator', 'CREATE OPERATOR <<< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = int8eq, COMMUTATOR = <<<, HASHES);
		ALTER EXTENSION snowflake ADD OPERATOR <<< (bigint, bigint)', qr/^operator <<<.* HASHES t/m ])
{
	my ($what, $sql, $shown) = @$change;

	unlike($catalog, $shown, "test/catalog.sql does not show a change before it is made: $what");
	like(catalog_of($node, $database, $sql), $shown, "test/catalog.sql shows a change: $what");
}

$node->stop;
done_testing();
