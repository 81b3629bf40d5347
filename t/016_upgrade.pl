# ALTER EXTENSION UPDATE: whoever comes from an older version has, object by
# object, what a fresh installation has; and the library serves older versions'
# SQL definitions as they are.
#
# Also with a next version made up here, and with upgrade scripts to it that
# lack something, each of which must be found out.  Its files are in a copy of
# the installation, as nobody should write into the real one.

use strict;
use warnings;
use Cwd qw(realpath);
use File::Spec;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

# a short one, as it has no spaces in it, which the test modules do not expect
my $temp = realpath(PostgreSQL::Test::Utils::tempdir_short);
my ($bindir, $extensions) = copied_installation("$temp/copy");
plan skip_all => 'this PostgreSQL does not work from another directory' unless defined $bindir;
# Settings that lead to the extension outside the installation
delete $ENV{TEMP_CONFIG};

#
# The versions
#

my ($newest) = slurp_file("$extensions/snowflake.control") =~ /^default_version = '(.*)'$/m;
my @installable = sort map { /--([^-]+)\.sql$/ ? $1 : () } glob "\Q$extensions\E/snowflake--*.sql";

# What CREATE EXTENSION would run for a version
my $node = PostgreSQL::Test::Cluster->new('upgrade', install_path => File::Spec->catdir($bindir, '..'));
$node->init;
$node->start;
my $path = $node->safe_psql('postgres',
	"SELECT path FROM pg_extension_update_paths('snowflake') WHERE source = '1.0' AND target = '$newest'");
my $script = slurp_file("$extensions/snowflake--1.0.sql");
if ($path ne '')
{
	my @steps = split /--/, $path;
	$script .= slurp_file("$extensions/snowflake--$steps[$_ - 1]--$steps[$_].sql") for 1 .. $#steps;
}

# The next version, as its own script says it, and as an upgrade.
my $next = '1000.0';
my $added = <<'EOS';
CREATE FUNCTION snowflake_later(id bigint, count integer DEFAULT 1, sequence regclass DEFAULT 'next_id_seq')
RETURNS bigint AS 'MODULE_PATHNAME', 'snowflake_reveal'
LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION snowflake_later(bigint, integer, regclass) IS 'of the next version';
CREATE SEQUENCE later_id_seq MAXVALUE 1125899906841599;
ALTER SEQUENCE later_id_seq OWNER TO @extowner@;
SELECT pg_catalog.pg_extension_config_dump('later_id_seq', '');
COMMENT ON SEQUENCE later_id_seq IS 'of the next version, too';
CREATE FUNCTION snowflake_later_same(snowflake_layout, snowflake_layout) RETURNS boolean
LANGUAGE sql IMMUTABLE AS 'SELECT $1::text = $2::text';
CREATE OPERATOR <<< (LEFTARG = snowflake_layout, RIGHTARG = snowflake_layout, FUNCTION = snowflake_later_same,
	COMMUTATOR = <<<, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES);
EOS
my $upgrade = $added . <<'EOS';
CREATE OR REPLACE FUNCTION snowflake_to_text(id bigint, encoding text DEFAULT 'base32')
RETURNS text AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
ALTER FUNCTION snowflake_layouts() ROWS 20;
COMMENT ON FUNCTION next_id() IS 'changed';
REVOKE EXECUTE ON FUNCTION snowflake_reveal(bigint, bigint) FROM PUBLIC;
EOS
append_to_file("$extensions/snowflake--$newest--$next.sql", $upgrade);

(my $fresh = $script) =~ s/(snowflake_to_text\(id bigint, encoding text DEFAULT) 'base62'/$1 'base32'/;
$fresh =~ s/PARALLEL SAFE ROWS 10/PARALLEL SAFE ROWS 20/;
$fresh =~ s/(COMMENT ON FUNCTION next_id\(\) IS)\s+'.*?'/$1 'changed'/;
$fresh .= $added . "REVOKE EXECUTE ON FUNCTION snowflake_reveal(bigint, bigint) FROM PUBLIC;\n";
append_to_file("$extensions/snowflake--$next.sql", $fresh);

$node->safe_psql('postgres', 'CREATE ROLE owner');
my $databases = 0;

# A new database, owned by a role, in which commands were run.
sub database
{
	my ($owner, @commands) = @_;
	my $name = 'db' . ++$databases;

	$node->safe_psql('postgres', "CREATE DATABASE $name OWNER $owner");
	$node->safe_psql($name, join('', map { "$_;\n" } "SET ROLE $owner", @commands));
	return $name;
}

# Objects that only one of two databases has, or has like this.
sub differences
{
	my ($ours, $theirs) = @_;
	my %count;

	$count{$_}++ foreach split /\n/, catalog_of($node, $ours);
	$count{$_}-- foreach split /\n/, catalog_of($node, $theirs);
	return map { ($count{$_} > 0 ? '+ ' : '- ') . $_ } grep { $count{$_} != 0 } sort keys %count;
}

my $superuser = $node->safe_psql('postgres', 'SELECT current_user');

my $listed = catalog_of($node, database($superuser, "CREATE EXTENSION snowflake VERSION '$next'"));
unlike($listed, qr/NOT LOOKED AT/, 't/catalog.sql knows every kind of object that the extension has');
is(scalar(split /\n/, $listed), $node->safe_psql("db$databases", q{
		SELECT count(*) FROM pg_depend d WHERE deptype = 'e'
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
		AND NOT EXISTS (SELECT FROM pg_depend i WHERE i.classid = d.classid AND i.objid = d.objid AND i.deptype = 'i')}),
	't/catalog.sql lists every object of the extension');

# Calls that every version since 1.0 understands
my $calls = q{
	SELECT snowflake_shard(next_id(7)), snowflake_shard(next_id(7, 'next_id_seq', 'instagram'));
	SET snowflake.shard = 8; SELECT snowflake_shard(next_id());
	SELECT count(*) FROM next_ids(5, 3);
	CREATE SEQUENCE tweets MAXVALUE 9007199254736895;
	SELECT snowflake_shard(next_id(33, 'tweets', 'twitter'), 'twitter');
	SELECT snowflake_timestamp(x) AT TIME ZONE 'UTC', snowflake_shard(x), snowflake_sequence(x),
		array(SELECT f.field || f.value FROM snowflake_fields(x) f) FROM (VALUES (4034545001571554305)) v(x);
	SELECT snowflake_timestamp(x, 'sonyflake') AT TIME ZONE 'UTC', snowflake_shard(x, 'sonyflake'), snowflake_sequence(x, 'sonyflake'),
		array(SELECT f.field || f.value FROM snowflake_fields(x, 'sonyflake') f) FROM (VALUES (282372624875847938)) v(x);
	SELECT snowflake_min_id('2026-11-20Z'), snowflake_max_id('2026-11-20Z'), snowflake_id('2026-11-20Z', 5, 6),
		snowflake_min_id('2026-11-20Z', 'discord'), snowflake_max_id('2026-11-20Z', 'discord'), snowflake_id('2026-11-20Z', 5, 6, 'discord');
	SELECT snowflake_obfuscate(4034545001571554305, 1), snowflake_reveal(snowflake_obfuscate(4034545001571554305, 1), 1);
	SELECT snowflake_to_text(4034545001571554305, 'base62'), snowflake_from_text('4o2G3FeQpNJ');
	SELECT name, definition, shards FROM snowflake_layouts() WHERE name = 'twitter';
	SELECT expires AT TIME ZONE 'UTC' FROM snowflake_status();
	CREATE SEQUENCE altered; SELECT snowflake_alter_sequence('altered', 'discord');
	SELECT sequence, layout, state FROM snowflake_sequences ORDER BY 1::text;
	SELECT 'Twitter'::snowflake_layout};
my $answers = $node->safe_psql(database($superuser, 'CREATE EXTENSION snowflake'), $calls);
like($answers, qr/^8\n3\n33\n.*^4o2G3FeQpNJ\|4034545001571554305$/ms, 'a fresh installation of the newest version answers calls that version 1.0 understands');

# Every older version there is, by a superuser and by one who owns no more than
# the database, becomes the newest and the one after that.
foreach my $version (@installable)
{
	next if $version eq $next;
	is($node->safe_psql(database($superuser, "CREATE EXTENSION snowflake VERSION '$version'"), $calls),
		$answers, "the library serves the SQL definitions of $version");

	foreach my $owner ($superuser, 'owner')
	{
		my $who = $owner eq $superuser ? 'superuser' : 'owner';
		foreach my $target ($newest, $next)
		{
			my $upgraded = database($owner, "CREATE EXTENSION snowflake VERSION '$version'",
				"ALTER EXTENSION snowflake UPDATE TO '$target'");
			is(join("\n", differences($upgraded, database($owner, "CREATE EXTENSION snowflake VERSION '$target'"))),
				'', "an update from $version to $target by the $who has what a fresh installation has");
		}
	}
}

# Upgrade scripts that lack something, and what gives them away.
my $right = database('owner', "CREATE EXTENSION snowflake VERSION '$next'");
my @mistakes = (
	[ 'no comment', qr/COMMENT ON FUNCTION snowflake_later.*?;\n/, '', qr/^\+ function snowflake_later\((?!.*next version)/ ],
	[ 'an old comment', qr/COMMENT ON FUNCTION next_id.*?;\n/, '', qr/^\+ function next_id\(\).*\| next ID/ ],
	[ 'an old default', qr/base32/, 'base62', qr/^\+ function snowflake_to_text.* DEFAULT 'base62'/ ],
	[ 'another default', qr/DEFAULT 1,/, 'DEFAULT 2,', qr/^\+ function snowflake_later.* DEFAULT 2/ ],
	[ 'a lost STRICT', qr/ STRICT(?= PARALLEL SAFE;\nALTER)/, '', qr/^\+ function snowflake_to_text(?!.* STRICT)/ ],
	[ 'no parallel label', qr/ PARALLEL SAFE COST/, ' COST', qr/^\+ function snowflake_later\((?!.* PARALLEL)/ ],
	[ 'another volatility', qr/STABLE/, 'IMMUTABLE', qr/^\+ function snowflake_later.* IMMUTABLE / ],
	[ 'another C function', qr/snowflake_reveal'/, q{snowflake_obfuscate'}, qr/^\+ function snowflake_later.*\$snowflake_obfuscate\$/ ],
	[ 'another cost', qr/COST 10/, 'COST 11', qr/^\+ function snowflake_later.* COST 11 / ],
	[ 'an old number of rows', qr/ALTER FUNCTION.*?;\n/, '', qr/^\+ function snowflake_layouts\(\).* ROWS 10 / ],
	[ 'privileges that stay', qr/REVOKE.*?;\n/, '', qr/^\+ function snowflake_reveal.*\| EXECUTE TO PUBLIC \|/ ],
	[ 'a sequence that ends elsewhere', qr/MAXVALUE \d+/, 'MAXVALUE 1000', qr/^\+ sequence later_id_seq.* MAXVALUE 1000 / ],
	[ 'a sequence of the superuser\'s', qr/ALTER SEQUENCE.*?;\n/, '', qr/^\+ sequence later_id_seq.*\| superuser \|/ ],
	[ 'a sequence that is not dumped', qr/SELECT pg_catalog.*?;\n/, '', qr/^\+ sequence later_id_seq.* dumped: f/ ],
	[ 'a function outside the extension', qr/\z/, "ALTER EXTENSION snowflake DROP FUNCTION snowflake_later;\n",
		qr/^- function snowflake_later\(/ ],
	[ 'an operator without HASHES', qr/, HASHES/, '', qr/^\+ operator <<<.* HASHES f/ ],
	[ 'something left over', qr/\z/, "CREATE FUNCTION left_over() RETURNS int LANGUAGE sql RETURN 1;\n", qr/^\+ function left_over\(\)/ ]);

foreach my $mistake (@mistakes)
{
	my ($what, $from, $to, $expected) = @$mistake;
	(my $wrong = $upgrade) =~ s/$from/$to/ or die "nothing replaced for $what";

	# a version of its own, as the right one's file is in use
	my $version = 'wrong' . ++$databases;
	append_to_file("$extensions/snowflake--$newest--$version.sql", $wrong);
	my $database = database('owner', 'CREATE EXTENSION snowflake', "ALTER EXTENSION snowflake UPDATE TO '$version'");
	my @differences = differences($database, $right);
	ok(scalar(grep { $_ =~ $expected } @differences), "an upgrade script with this mistake is found out: $what") or diag(join "\n", @differences);
}

# An upgrade while the extension is in use: what depends on it stays, and IDs
# go on larger, in sessions old and new, through a dump, too.
my $used = database('owner', "CREATE EXTENSION snowflake VERSION '1.0'",
	'CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), n int)',
	'CREATE VIEW times AS SELECT id, snowflake_timestamp(id) AS made FROM photos',
	'CREATE INDEX ON photos (snowflake_sequence(id))',
	q{CREATE TABLE layouts (layout snowflake_layout DEFAULT 'twitter')}, 'INSERT INTO layouts VALUES (DEFAULT)',
	'INSERT INTO photos (n) SELECT generate_series(1, 100)');
my ($in, $out, $err) = ('', '', '');
my $timer = IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
my $session = IPC::Run::start(
	[ "$bindir/psql", '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($used) ],
	'<', \$in, '>', \$out, '2>', \$err, $timer);
my $insert = 'INSERT INTO photos VALUES (DEFAULT) RETURNING id;';

sub from_session
{
	$out = '';
	$in = "$insert\n";
	$session->pump until $out =~ /\n/ || $err;
	return $out + 0;
}

my @ids = (from_session());
$node->safe_psql($used, "SET ROLE owner; ALTER EXTENSION snowflake UPDATE TO '$next'");
push @ids, from_session(), $node->safe_psql($used, $insert), from_session();
is($err, '', 'a session makes IDs before, during and after an update');
$in = "\\q\n";
$session->finish;
is("@ids", join(' ', sort { $a <=> $b } @ids), 'IDs grow in open and new sessions across an update');
is( $node->safe_psql($used, q{
		SELECT count(*), count(DISTINCT id), bool_and(made > now() - interval '1 hour') FROM times;
		SELECT layout FROM layouts}),
	"104|104|t\ntwitter", 'tables and views that depend on the extension are as before after an update');

$node->command_ok([ "$bindir/pg_dump", '-f', "$temp/dump", '-d', $node->connstr($used) ], 'pg_dump dumps a database whose extension was updated');
my $restored = database('owner', "CREATE EXTENSION snowflake VERSION '$next'");
$node->command_ok([ "$bindir/psql", '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$temp/dump", '-d', $node->connstr($restored) ], 'a dump of a database whose extension was updated is restored');
cmp_ok($node->safe_psql($restored, $insert), '>', $ids[-1], 'the next ID is larger where the dump was restored');

$node->stop;
done_testing();
