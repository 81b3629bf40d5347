# ALTER EXTENSION UPDATE from an older version leaves, object by object, what a
# fresh installation has.  It disturbs nobody who uses the extension, for which the test
# makes up a next version, and puts its files into a copy of the installation.

use Cwd qw(realpath);
use File::Basename;
use SnowflakeTest;

# The test modules do not expect spaces in this path.
my $copy = realpath(PostgreSQL::Test::Utils::tempdir_short);
my ($bindir, $extensions) = copied_installation($copy);
# It could hold settings that lead to the extension outside the installation.
delete $ENV{TEMP_CONFIG};

my $node = PostgreSQL::Test::Cluster->new('upgrade', install_path => dirname($bindir));
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE owner');

my ($newest) = slurp_file("$extensions/snowflake.control") =~ /^default_version = '(.*)'$/m;
my @older = grep { $_ ne $newest } map { /--([^-]+)\.sql$/ } glob "\Q$extensions\E/snowflake--*.sql";

# The next version
my $next = '1000.0';
append_to_file("$extensions/snowflake--$newest--$next.sql", <<'EOS');
REVOKE EXECUTE ON FUNCTION snowflake_reveal(bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION next_id() IS 'changed';
EOS
append_to_file("$extensions/snowflake_admin--$newest--$next.sql", <<'EOS');
CREATE PROCEDURE snowflake_later_step(tab regclass) LANGUAGE plpgsql AS 'BEGIN COMMIT; END';
EOS

# Make a database of an owner who is no superuser, and run commands there.
my $databases = 0;

sub database
{
	my (@commands) = @_;
	my $name = 'db' . ++$databases;

	$node->safe_psql('postgres', "CREATE DATABASE $name OWNER owner");
	$node->safe_psql($name, join ";\n", 'SET ROLE owner', @commands);
	return $name;
}

foreach my $version (@older)
{
	my $updated = database("CREATE EXTENSION snowflake VERSION '$version'", 'ALTER EXTENSION snowflake UPDATE');
	is(catalog_of($node, $updated), catalog_of($node, database('CREATE EXTENSION snowflake')),
		"an update from $version to $newest leaves what a fresh installation has");
}

# The library is still that of the newest version, as in a server that was not restarted.
my $library_is_old = 'Connect again. If that does not help, restart the server, which has loaded the library '
  . 'that was there when it was started.';

# Either extension can be updated first, and may then be in another schema.
foreach my $updates ([ 'snowflake', 'snowflake_admin' ], [ 'snowflake_admin', 'snowflake' ])
{
	my $updated = database('CREATE EXTENSION snowflake_admin CASCADE',
		map { "ALTER EXTENSION $_ UPDATE TO '$next'" } @$updates);
	is($node->safe_psql($updated, q{
			CREATE SCHEMA ids; ALTER EXTENSION snowflake SET SCHEMA ids;
			SELECT snowflake_admin.snowflake_schema(); SELECT remedy FROM snowflake_check()}),
		"ids\n$library_is_old", "snowflake_admin works after an update of @$updates, and a move of snowflake to another schema");
}

# Dependent objects stay, and IDs grow in open and new sessions.
my $used = database("CREATE EXTENSION snowflake VERSION '1.0'", q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), layout snowflake_layout DEFAULT 'twitter');
	CREATE VIEW times AS SELECT layout, snowflake_timestamp(id) AS made FROM photos;
	CREATE INDEX ON photos (snowflake_sequence_number(id))});
my $insert = 'INSERT INTO photos VALUES (DEFAULT) RETURNING id';
my $session = $node->background_psql($used);
my @ids = $session->query_safe($insert);
$node->safe_psql($used, "SET ROLE owner; ALTER EXTENSION snowflake UPDATE TO '$next'");
push @ids, scalar $session->query_safe($insert), $node->safe_psql($used, $insert), scalar $session->query_safe($insert);
ok($session->quit, 'a session makes IDs before and after an update');
is("@ids", join(' ', sort { $a <=> $b } @ids), 'IDs grow in open and new sessions across an update');
is($node->safe_psql($used,
		q{SELECT max(layout::text), count(*), bool_and(made > now() - interval '1 hour') FROM times}),
	'twitter|4|t', 'tables and views that depend on the extension are as before after an update');

# snowflake_check() says which extensions the new files are for, and where the library is an old one.
sub check
{
	my ($database) = @_;
	return $node->safe_psql($database, q{SELECT concat_ws('|', severity, problem, remedy) FROM snowflake_check()});
}

my $control = "$extensions/snowflake.control";
write_file($control, slurp_file($control) =~ s/^default_version = .*$/default_version = '$next'/mr);
my $old = database("CREATE EXTENSION snowflake VERSION '$newest'", 'CREATE EXTENSION snowflake_admin');
is(check($old), "warning|Its objects are those of version $newest, but the server has the files of version $next.|"
	  . 'ALTER EXTENSION snowflake UPDATE;', 'snowflake_check() shows that the files are of another version');
$node->safe_psql($old, 'ALTER EXTENSION snowflake UPDATE');
is(check($old), "error|Its objects are those of version $next, but this session runs the library of version $newest.|"
	  . $library_is_old,
	'... and, when the extension is updated, that the library is still the old one');
$node->safe_psql($old, q{UPDATE pg_extension SET extversion = '1001.0' WHERE extname = 'snowflake'});
is(check($old), "error|Its objects are those of version 1001.0, but the server has the files of version $next, and this session "
	  . "runs the library of version $newest.|Install the files of version 1001.0 on this server.",
	'... and that the files of a version are missing');
# A later library serves an older script.
$node->safe_psql($old, q{UPDATE pg_extension SET extversion = '0.9' WHERE extname = 'snowflake'});
write_file($control, slurp_file($control) =~ s/^default_version = .*$/default_version = '0.9'/mr);
is(check($old), '', '... but not that the library is a newer one');

$node->stop;
done_testing();
