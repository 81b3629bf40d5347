# ALTER EXTENSION UPDATE while the extension is in use: dependent objects stay, and
# IDs grow in open and new sessions, and through a dump.
#
# The next version is made up here, in a copy of the installation.

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

my ($newest) = slurp_file("$extensions/snowflake.control") =~ /^default_version = '(.*)'$/m;
append_to_file("$extensions/snowflake--$newest--1000.0.sql", <<'EOS');
CREATE OR REPLACE FUNCTION snowflake_to_text(id bigint, encoding text DEFAULT 'base32')
RETURNS text AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
EOS

my $node = PostgreSQL::Test::Cluster->new('update', install_path => dirname($bindir));
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE owner; CREATE DATABASE used OWNER owner; CREATE DATABASE restored OWNER owner');
$node->safe_psql('used', q{
	SET ROLE owner;
	CREATE EXTENSION snowflake VERSION '1.0';
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), n int);
	CREATE VIEW times AS SELECT id, snowflake_timestamp(id) AS made FROM photos;
	CREATE INDEX ON photos (snowflake_sequence(id));
	CREATE TABLE layouts (layout snowflake_layout DEFAULT 'twitter');
	INSERT INTO layouts VALUES (DEFAULT);
	INSERT INTO photos (n) SELECT generate_series(1, 100)});

my $insert = 'INSERT INTO photos VALUES (DEFAULT) RETURNING id';
my $session = $node->background_psql('used');
my @ids = $session->query_safe($insert);
$node->safe_psql('used', q{SET ROLE owner; ALTER EXTENSION snowflake UPDATE TO '1000.0'});
push @ids, scalar $session->query_safe($insert), $node->safe_psql('used', $insert), scalar $session->query_safe($insert);
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

$node->stop;
done_testing();
