# portable/snowflake.sql as an extension of pg_tle, as doc/portable.md says, and
# what pg_dump makes of that.  pg_tle is not in Debian; test/external/citus.pl says how to
# test with such an extension.

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

$node->stop;
done_testing();
