# ALTER EXTENSION UPDATE from an older version leaves, object by object, what a
# fresh installation has, and disturbs nobody who uses the extension.  The library
# serves the SQL definitions of all versions.
#
# The test also makes up a next version, and puts its files into a copy of the
# installation.

use strict;
use warnings;
use Cwd qw(realpath);
use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

# The test modules do not expect spaces in this path.
my $copy = realpath(PostgreSQL::Test::Utils::tempdir_short);
my ($bindir, $extensions) = copied_installation($copy);
plan skip_all => 'this PostgreSQL does not work from another directory' unless defined $bindir;
# It could hold settings that lead to the extension outside the installation.
delete $ENV{TEMP_CONFIG};

my $node = PostgreSQL::Test::Cluster->new('upgrade', install_path => dirname($bindir));
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE owner');
my $superuser = $node->safe_psql('postgres', 'SELECT quote_ident(current_user)');

my ($newest) = slurp_file("$extensions/snowflake.control") =~ /^default_version = '(.*)'$/m;
my @versions = sort map { /--([^-]+)\.sql$/ } glob "\Q$extensions\E/snowflake--*.sql";

# The next version, as an upgrade and as a script of its own
my $next = '1000.0';
my $added = <<'EOS';
CREATE FUNCTION snowflake_later(id bigint, count integer DEFAULT 1, sequence regclass DEFAULT 'next_id_seq')
RETURNS bigint AS 'MODULE_PATHNAME', 'snowflake_reveal'
LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION snowflake_later(bigint, integer, regclass) IS 'of the next version';
CREATE SEQUENCE later_id_seq MAXVALUE 1125899906841599;
ALTER SEQUENCE later_id_seq OWNER TO @extowner@;
SELECT pg_catalog.pg_extension_config_dump('later_id_seq', '');
CREATE FUNCTION snowflake_later_same(snowflake_layout, snowflake_layout) RETURNS boolean
LANGUAGE sql IMMUTABLE AS 'SELECT $1::text = $2::text';
CREATE OPERATOR <<< (LEFTARG = snowflake_layout, RIGHTARG = snowflake_layout, FUNCTION = snowflake_later_same,
	COMMUTATOR = <<<, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES);
REVOKE EXECUTE ON FUNCTION snowflake_reveal(bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION next_id() IS 'changed';
EOS
append_to_file("$extensions/snowflake--$newest--$next.sql", $added);
# CREATE EXTENSION runs the script of 1.0, and those that lead from there to the
# newest version.
my @steps = split /--/, $node->safe_psql('postgres',
	"SELECT path FROM pg_extension_update_paths('snowflake') WHERE source = '1.0' AND target = '$newest'");
my @scripts = ('1.0', map { "$steps[$_ - 1]--$steps[$_]" } 1 .. $#steps);
append_to_file("$extensions/snowflake--$next.sql",
	join '', (map { slurp_file("$extensions/snowflake--$_.sql") } @scripts), $added);

# The next version of snowflake_admin
my $admin_added = <<'EOS';
CREATE PROCEDURE snowflake_later_step(tab regclass) LANGUAGE plpgsql AS 'BEGIN COMMIT; END';
COMMENT ON PROCEDURE snowflake_later_step(regclass) IS 'of the next version';
EOS
append_to_file("$extensions/snowflake_admin--$newest--$next.sql", $admin_added);
append_to_file("$extensions/snowflake_admin--$next.sql",
	slurp_file("$extensions/snowflake_admin--$newest.sql") . $admin_added);

# Make a database owned by a role, and run commands there.
my $databases = 0;

sub database
{
	my ($owner, @commands) = @_;
	my $name = 'db' . ++$databases;

	$node->safe_psql('postgres', "CREATE DATABASE $name OWNER $owner");
	$node->safe_psql($name, join ";\n", "SET ROLE $owner", @commands);
	return $name;
}

# Calls that every version since 1.0 understands
my $calls = q{
	SELECT snowflake_shard(next_id(7)), snowflake_shard(next_id(7, 'next_id_seq', 'instagram'));
	SET snowflake.shard = 8; SELECT snowflake_shard(next_id());
	SELECT count(*) FROM next_ids(5, 3);
	SELECT snowflake_timestamp(x) AT TIME ZONE 'UTC', snowflake_shard(x), snowflake_sequence_number(x),
		array(SELECT f.field || f.value FROM snowflake_fields(x) f) FROM (VALUES (4034545001571554305)) v(x);
	SELECT snowflake_min_id('2026-11-20Z'), snowflake_max_id('2026-11-20Z'), snowflake_id('2026-11-20Z', 5, 6,
		'discord');
	SELECT snowflake_reveal(snowflake_obfuscate(4034545001571554305, 1), 1);
	SELECT snowflake_to_text(4034545001571554305, 'base62'), snowflake_from_text('4o2G3FeQpNJ');
	SELECT name, definition, shards FROM snowflake_layouts() WHERE name = 'twitter';
	CREATE SEQUENCE altered; SELECT snowflake_alter_sequence('altered', 'discord');
	SELECT sequence, layout, state FROM snowflake_sequences() ORDER BY 1::text;
	SELECT 'Twitter'::snowflake_layout};
my $answers = $node->safe_psql(database($superuser, 'CREATE EXTENSION snowflake'), $calls);
like($answers, qr/^8\n3\n.*^4o2G3FeQpNJ\|4034545001571554305$/ms,
	'a fresh installation of the newest version answers calls that version 1.0 understands');

foreach my $version (@versions)
{
	is($node->safe_psql(database($superuser, "CREATE EXTENSION snowflake VERSION '$version'"), $calls),
		$answers, "the library serves the SQL definitions of $version");
}

foreach my $owner ($superuser, 'owner')
{
	my $who = $owner eq $superuser ? 'a superuser' : 'the owner of the database';
	foreach my $target ($newest, $next)
	{
		my $fresh = catalog_of($node, database($owner, "CREATE EXTENSION snowflake VERSION '$target'"));
		foreach my $version (@versions)
		{
			my $updated = database($owner, "CREATE EXTENSION snowflake VERSION '$version'",
				"ALTER EXTENSION snowflake UPDATE TO '$target'");
			is(catalog_of($node, $updated), $fresh,
				"an update from $version to $target by $who leaves what a fresh installation has");
		}
	}
}

# Either extension can be updated first, and may then be in another schema.
foreach my $updates ([ 'snowflake', 'snowflake_admin' ], [ 'snowflake_admin', 'snowflake' ])
{
	my $fresh = database('owner', "CREATE EXTENSION snowflake VERSION '$next'",
		"CREATE EXTENSION snowflake_admin VERSION '$next'");
	my $updated = database('owner', 'CREATE EXTENSION snowflake_admin CASCADE',
		map { "ALTER EXTENSION $_ UPDATE TO '$next'" } @$updates);
	is(catalog_of($node, $updated, 'snowflake_admin'), catalog_of($node, $fresh, 'snowflake_admin'),
		"an update of @$updates leaves what a fresh installation of snowflake_admin has");
	is($node->safe_psql($updated, q{
			CREATE SCHEMA ids; ALTER EXTENSION snowflake SET SCHEMA ids;
			SELECT snowflake_admin_schema(); SELECT count(*) FROM snowflake_check()}),
		"ids\n0", '... and snowflake_admin works after snowflake has moved to another schema');
}

# --- while the extension is in use ----------------------------------------------

# Dependent objects stay, and IDs grow in open and new sessions, and through a dump.
$node->safe_psql('postgres', 'CREATE DATABASE used OWNER owner; CREATE DATABASE restored OWNER owner');
$node->safe_psql('used', q{
	SET ROLE owner;
	CREATE EXTENSION snowflake VERSION '1.0';
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), n int);
	CREATE VIEW times AS SELECT id, snowflake_timestamp(id) AS made FROM photos;
	CREATE INDEX ON photos (snowflake_sequence_number(id));
	CREATE TABLE layouts (layout snowflake_layout DEFAULT 'twitter');
	INSERT INTO layouts VALUES (DEFAULT);
	INSERT INTO photos (n) SELECT generate_series(1, 100)});

my $insert = 'INSERT INTO photos VALUES (DEFAULT) RETURNING id';
my $session = $node->background_psql('used');
my @ids = $session->query_safe($insert);
$node->safe_psql('used', q{SET ROLE owner; ALTER EXTENSION snowflake UPDATE TO '1000.0'});
push @ids, scalar $session->query_safe($insert), $node->safe_psql('used', $insert);
push @ids, scalar $session->query_safe($insert);
ok($session->quit, 'a session makes IDs before and after an update');
is("@ids", join(' ', sort { $a <=> $b } @ids), 'IDs grow in open and new sessions across an update');
is( $node->safe_psql('used', q{
		SELECT count(*), count(DISTINCT id), bool_and(made > now() - interval '1 hour') FROM times;
		SELECT layout FROM layouts}),
	"104|104|t\ntwitter", 'tables and views that depend on the extension are as before after an update');

my $dump = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('used') ],
	'pg_dump dumps a database whose extension was updated');
$node->safe_psql('restored', q{SET ROLE owner; CREATE EXTENSION snowflake VERSION '1000.0'});
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('restored') ],
	'a dump of a database whose extension was updated is restored');
cmp_ok($node->safe_psql('restored', $insert), '>', $ids[-1], 'the next ID is larger where the dump was restored');

# snowflake_check() says which extensions the new files are for.
my $control = "$extensions/snowflake.control";
write_file($control, slurp_file($control) =~ s/^default_version = .*$/default_version = '$next'/mr);
my $old = database('owner', "CREATE EXTENSION snowflake VERSION '$newest'", 'CREATE EXTENSION snowflake_admin');
my $remedy = $node->safe_psql($old, 'SELECT remedy FROM snowflake_check()');
is($remedy, 'ALTER EXTENSION snowflake UPDATE;', 'snowflake_check() shows that the files are of another version');
is($node->safe_psql($old, "$remedy SELECT count(*) FROM snowflake_check()"), 0, '... until the extension is updated');
$node->safe_psql($old, q{UPDATE pg_extension SET extversion = '1001.0' WHERE extname = 'snowflake'});
is($node->safe_psql($old, 'SELECT remedy FROM snowflake_check()'),
	'Install the files of version 1001.0 on this server.', '... and that the files of a version are missing');

$node->stop;
done_testing();
