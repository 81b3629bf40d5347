# portable/snowflake.sql as an extension of pg_tle, as doc/portable.md says, what
# pg_dump makes of that, and the way to the real extension.  pg_tle is not in
# Debian; test/external/citus.pl says how to test with such an extension.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

plan skip_all => 'pg_tle is not installed, and not in Debian: see the head of this test' unless get_extension('pg_tle');

# where the document's commands find the file
chdir "$top" or die "chdir: $!";

my $node = server_in_utc('tle', "shared_preload_libraries = 'pg_tle'\n");

run_examples($node, 'postgres', grep { $_->{section} eq 'With pg_tle' } blocks('doc/portable.md'));
is($node->safe_psql('postgres', q{SELECT extname FROM pg_extension JOIN pg_depend ON refobjid = pg_extension.oid
		WHERE classid = 'pg_class'::regclass AND objid = 'next_id_seq'::regclass AND deptype = 'e'}),
	'snowflake_portable', 'next_id_seq belongs to the extension that pg_tle made');

# ahead of the clock, which would hide that the value was lost
$node->safe_psql('postgres', q{SELECT count(*) FROM next_ids(5, 500000)});
my $last = $node->safe_psql('postgres', 'SELECT next_id(5)');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
run_log([ 'sh', '-c', 'pg_dump -d "$1" | psql -Xq -v ON_ERROR_STOP=1 -d "$2"', '-',
		$node->connstr('postgres'), $node->connstr('restored') ]);
is($node->safe_psql('restored', 'SELECT last_value FROM next_id_seq'),
	$node->safe_psql('postgres', 'SELECT last_value FROM next_id_seq'), 'a dump carries the value of an extension\'s sequence that pg_tle made');
cmp_ok($node->safe_psql('restored', 'SELECT next_id(5)'), '>', $last, 'IDs grow after a restore with pg_tle');

# --- to the extension, and back ----------------------------------------------

my ($replaced, $instead, $back) = map { $_ // die 'the document does not say how to move' } slurp_file("$top/doc/portable.md") =~
  /write `(DROP EXTENSION \w+;)`\s+in\s+place\s+of\s+all\s+lines\s+between\s+`\\else`\s+and\s+`(CREATE EXTENSION snowflake)`, and for the way\s+back,\s+`(CREATE\s+EXTENSION\s+\w+;)`/;
my ($move) = blocks_in('doc/portable.md', 'Move to the extension, and back');
$move->{code} =~ s/(?<=\\else\n).*?(?=^\s*\Q$instead\E;)/$replaced\n/ms or die 'no lines to replace';
$move->{code} =~ s/^\s*\\i .*/$back/m or die 'no file';
$node->safe_psql('postgres', q{
	CREATE ROLE app_user;
	CREATE SEQUENCE albums_id_seq;
	SELECT snowflake_alter_sequence('albums_id_seq');
	CREATE TABLE albums (id snowflake PRIMARY KEY DEFAULT next_id(5, 'albums_id_seq'));
	INSERT INTO albums DEFAULT VALUES});
foreach my $version ([ 'snowflake', $move ], [ 'snowflake_portable', { %$move, code => "\\set back on\n$move->{code}" } ])
{
	run_examples($node, 'postgres', $version->[1]);
	is($node->safe_psql('postgres', q{SELECT extname FROM pg_extension WHERE extname LIKE 'snowflake%'}), $version->[0], "the database moves to $version->[0]");
	is($node->safe_psql('postgres', q{WITH new AS (INSERT INTO albums DEFAULT VALUES RETURNING id) SELECT (SELECT id FROM new) > max(id) FROM albums}),
		't', '... and the next ID is larger than the last one');
}

$node->stop;
done_testing();
