# The objects of each version are on record.  For example, test/catalog/snowflake--1.0.txt
# is what test/catalog.sql prints of version 1.0 of snowflake.  What is internal to
# snowflake_admin has rules instead.

use SnowflakeTest;

my $node = server_in_utc('catalog');
# This role is no superuser, so the record tells its objects from a superuser's.
$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN');

foreach my $script (glob "$top/snowflake--*.sql $top/admin/snowflake_admin--*.sql")
{
	my ($extension, $version) = $script =~ m{(\w+)--([^-]+)\.sql$} or next;
	my ($what, $record) = ("$extension $version", "test/catalog/$extension--$version.txt");
	my $made = PostgreSQL::Test::Utils::tempdir . "/$extension--$version.txt";

	$node->safe_psql('postgres', qq{CREATE DATABASE "$what" OWNER owner});
	$node->safe_psql($what, qq{SET ROLE owner; CREATE EXTENSION $extension VERSION '$version' CASCADE});
	my @objects = split /\n/, catalog_of($node, $what, $extension);
	append_to_file($made, join '', map { "$_\n" } grep { !/^\w+ snowflake_admin\./ } @objects);
	my ($difference, $error) = run_command([ 'diff', '-U0', "$top/$record", $made ]);
	is(join("\n", grep { /NOT LOOKED AT/ } @objects), '', "test/catalog.sql knows every kind of object of $what");
	is(scalar(@objects), $node->safe_psql($what, qq{
			SELECT count(*) FROM pg_depend d WHERE deptype = 'e'
			AND refobjid = (SELECT oid FROM pg_extension WHERE extname = '$extension')
			AND NOT EXISTS (SELECT FROM pg_depend i
				WHERE i.classid = d.classid AND i.objid = d.objid AND i.deptype = 'i')}),
		"test/catalog.sql lists every object of $what");
	is("$error$difference", '', "$what consists of what $record says") or diag <<EOM;
If $what is released, do not change it: write an upgrade script to a new version, and
add the record of that one.  Until then, replace the record.  This prints it, if a role
that is no superuser has created the extension:
    psql -XAt -v extension=$extension -f test/catalog.sql | grep -v '^[a-z]* snowflake_admin\.' >$record
EOM

	my @internal = grep { /^\w+ snowflake_admin\./ } @objects;
	is(join("\n", grep { !/ \| superuser \| (EXECUTE|USAGE) TO PUBLIC \| for / } @internal), '',
		"the internal objects of $what belong to the superuser, and say what they are for");
	# The search path is fixed, or names were looked up when the function was made, or it is in C.
	# What commits cannot have one, and qualifies names.
	is($node->safe_psql($what, q{
			SELECT oid::regprocedure FROM pg_proc
			WHERE pronamespace = to_regnamespace('snowflake_admin') AND prokind = 'f' AND proname <> 'commit_error'
			AND prosqlbody IS NULL AND prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c')
			AND ('search_path=pg_catalog, snowflake_admin, pg_temp' = ANY (proconfig)) IS NOT TRUE}), '',
		"no search path leads the internal functions of $what astray");
	is($node->safe_psql($what, q{
			SELECT oid::regprocedure FROM pg_proc
			WHERE pronamespace = to_regnamespace('snowflake_admin') AND (prosecdef OR proleakproof OR provolatile = 'v'
				AND (proparallel = 's' OR proisstrict AND proname <> 'ids_between'
					AND prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c')))}), '',
		"no internal function of $what has its owner's rights, or is volatile and parallel safe or strict");
}

# Whoever creates the extensions cannot change what others, a superuser among them, call there.
$node->sql('CREATE DATABASE ours OWNER owner; CREATE DATABASE restored OWNER owner');
my @as_owner = (dbname => 'ours', extra_params => [ '-U', 'owner' ]);
$node->safe_psql('ours', 'CREATE EXTENSION snowflake_admin CASCADE', extra_params => [ '-U', 'owner' ]);
fails_with($node, $_, qr/^42501 /, "the owner of the extensions cannot: $_", @as_owner)
  foreach q{CREATE OR REPLACE FUNCTION snowflake_check()
	RETURNS TABLE (severity text, object text, problem text, remedy text) LANGUAGE sql AS 'SELECT 1, 2, 3, 4'},
  q{CREATE OR REPLACE FUNCTION snowflake_sequences() RETURNS SETOF record LANGUAGE sql AS 'SELECT 1'},
  q{CREATE FUNCTION snowflake_admin.run(text) RETURNS void LANGUAGE sql AS ''},
  'ALTER FUNCTION snowflake_check() SET search_path = public',
  'ALTER EXTENSION snowflake_admin DROP FUNCTION snowflake_check()',
  'ALTER SCHEMA snowflake_admin RENAME TO mine', 'ALTER SCHEMA snowflake_admin OWNER TO owner';

# That role can dump and restore them all the same.
my $file = PostgreSQL::Test::Utils::tempdir . '/ours.sql';
$node->safe_psql('ours', 'CREATE TABLE photos (id bigint DEFAULT next_id(5)); INSERT INTO photos DEFAULT VALUES',
	extra_params => [ '-U', 'owner' ]);
$node->command_ok([ 'pg_dump', '-U', 'owner', '-f', $file, 'ours' ], 'the owner of a database with the extensions dumps it');
$node->command_ok([ 'psql', '-XqU', 'owner', '-v', 'ON_ERROR_STOP=1', '-f', $file, 'restored' ], '... and restores it');
foreach my $extension ('snowflake', 'snowflake_admin')
{
	is(catalog_of($node, 'restored', $extension), catalog_of($node, 'ours', $extension), "... with all objects of $extension");
}
is($node->safe_psql('restored', 'SELECT last_value FROM next_id_seq'),
	$node->safe_psql('ours', 'SELECT last_value FROM next_id_seq'), '... and the sequence where it was');

# A role's name may need quotes.
my $name = q{o'brien "$1\\};
(my $quoted = $name) =~ s/"/""/g;
$node->safe_psql('postgres', qq{CREATE ROLE "$quoted" LOGIN; CREATE DATABASE quoted OWNER "$quoted"});
$node->safe_psql('quoted', qq{SET SESSION AUTHORIZATION "$quoted"; CREATE EXTENSION snowflake});
is($node->safe_psql('quoted', q{SELECT relowner::regrole = extowner::regrole, rolname
		FROM pg_class, pg_extension JOIN pg_roles ON pg_roles.oid = extowner
		WHERE relname = 'next_id_seq' AND extname = 'snowflake'}),
	"t|$name", 'a role whose name needs quotes creates the extension and owns its sequence');

$node->stop;
done_testing();
