# Values of type snowflake_layout in tables, defaults, dumps and binary form.  One
# that is damaged, or of a later version, is an error.

use SnowflakeTest;

my $node = server_in_utc('values');
my $dir = PostgreSQL::Test::Utils::tempdir;
my $custom = 'timestamp:48 node:15 epoch:1420070400000 tick:10us';
$node->safe_psql('postgres', qq{
	CREATE EXTENSION snowflake;
	CREATE DATABASE restored;
	CREATE TABLE systems (name text PRIMARY KEY, layout snowflake_layout DEFAULT 'sonyflake');
	INSERT INTO systems SELECT name, name::snowflake_layout FROM snowflake_layouts();
	INSERT INTO systems VALUES ('custom', '$custom');
	CREATE SEQUENCE twitter;
	SELECT snowflake_alter_sequence('twitter', 'twitter');
	CREATE SEQUENCE custom;
	SELECT snowflake_alter_sequence('custom', '$custom');
	CREATE TABLE tweets (id bigint PRIMARY KEY DEFAULT next_id(3, 'twitter', 'twitter'),
		other bigint DEFAULT next_id(3, 'custom', '$custom'));
	INSERT INTO tweets DEFAULT VALUES});

my $contents = q{SELECT string_agg(name || '=' || layout::text, ',' ORDER BY name) FROM systems};
my $systems = $node->safe_psql('postgres', $contents);
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/dump", '-d', $node->connstr('postgres') ],
	'pg_dump dumps tables of layouts, and defaults with layouts');
$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr('restored'), "$dir/dump" ],
	'pg_restore restores tables of layouts, and defaults with layouts');
is($node->safe_psql('restored', $contents), $systems, 'layouts are the same in a restored dump');
is($node->safe_psql('restored', qq{
		INSERT INTO tweets DEFAULT VALUES;
		SELECT DISTINCT snowflake_shard(id, 'twitter'), snowflake_shard(other, '$custom') FROM tweets}),
	'3|3', 'restored defaults make IDs of their layouts with their sequences');

$node->safe_psql('postgres', "COPY systems TO '$dir/binary' BINARY");
$node->safe_psql('restored', "TRUNCATE systems; COPY systems FROM '$dir/binary' BINARY");
is($node->safe_psql('restored', $contents), $systems, 'layouts are the same after COPY in binary form');

# In binary form a layout has its version before its text.
my $binary = slurp_file("$dir/binary");
write_file("$dir/version", $binary =~ s/\x01twitter/\x02twitter/r);
write_file("$dir/garbled", $binary =~ s/\x01twitter/\x01twotter/r);
fails_with($node, "COPY systems FROM '$dir/version' BINARY", qr/^22P03 unsupported version 2 of type snowflake_layout/,
	'a binary layout of a later version is refused', dbname => 'restored');
fails_with($node, "COPY systems FROM '$dir/garbled' BINARY",
	qr/^22P02 invalid input syntax for type snowflake_layout: "twotter"/,
	'a binary layout with an invalid text is refused', dbname => 'restored');

$node->stop;

# --- damaged on disk --------------------------------------------------------------

# Checksums, which clusters have since 18, would find the damage first.
$node = server_ahead_of_clock('damaged', "ignore_checksum_failure = on\n");
$node->safe_psql('postgres', q{
	CREATE TABLE layouts (layout snowflake_layout);
	INSERT INTO layouts VALUES ('instagram'), ('instagram'), ('instagram'), ('instagram');
	CHECKPOINT});
my $path = file_of($node, 'layouts');
$node->stop;
my $page = slurp_file($path);
my ($upper, $special) = unpack 'SS', substr($page, 14, 4);
my $size = ($special - $upper) / 4;
# The first row is last on the page.  After its length, a value has its version
# and its text, which ends with a zero.
substr($page, $special - $size + 28, 1) = "\x63";
substr($page, $special - 2 * $size + 29, 1) = 'x';
substr($page, $special - 3 * $size + 29 + length('instagram'), 1) = 'x';
# This one ends after the version, which has become the zero that ends a text.
my $length = unpack 'L', substr($page, $special - 4 * $size + 24, 4);
substr($page, $special - 4 * $size + 24, 5) = pack 'Lx', $length / (6 + length('instagram')) * 5;
write_file($path, $page);
$node->start;
foreach my $use ('layout', 'snowflake_shard(5, layout)', q{next_id(5, 'used', layout)},
	q{next_ids(5, 1, 'used', layout)})
{
	my $row = 0;
	foreach my $what ('of an unknown version', 'with a damaged text', 'whose text does not end', 'without a text')
	{
		my $error = $row++ ? qr/^XX001 damaged value of type/ : qr/^0A000 unsupported version 99 of type/;
		fails_with($node, "SELECT $use FROM layouts WHERE ctid = '(0,$row)'", $error, "$use reports a layout $what");
	}
}

$node->stop;
done_testing();
