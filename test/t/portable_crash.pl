# The portable version keeps what it promises after a crash, and after a restore.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use PortableTest;
use SnowflakeTest;

my $node = server_in_utc('portable', NOBODY_FLUSHES);
install_portable($node, 'postgres');
ahead_of_clock($node, 'next_id_seq', '1 day');

# A session has used the sequence in an open transaction, whose WAL nobody
# flushes.  Another's ID is committed.  nextval() alone would repeat it.
next_id($node, 'next_id_seq');
$node->safe_psql('postgres', 'CHECKPOINT');
my $open = $node->background_psql('postgres');
my $inside = $open->query_safe('BEGIN; SELECT next_id(5)');
my $committed = next_id($node, 'next_id_seq');
cmp_ok($committed, '>', $inside, 'an ID is committed after one in an open transaction');
next_id_is_larger_after_crash($node, $committed, 'a committed one', sequence => 'next_id_seq', sessions => [$open]);

$node->safe_psql('postgres', q{
	CREATE SEQUENCE careless MAXVALUE 1125899906841599;
	SELECT next_id(5, 'careless');
	ALTER SEQUENCE careless SET UNLOGGED});
crash_and_start($node);
fails_with($node, q{SELECT next_id(5, 'careless')}, qr/^55000/, 'an unlogged sequence is refused after a crash');

$node->safe_psql('postgres', q{
	CREATE TABLE photos (id snowflake PRIMARY KEY DEFAULT next_id(5), at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED);
	CREATE INDEX ON photos (snowflake_shard(id, 'instagram'));
	INSERT INTO photos DEFAULT VALUES;
	CREATE DATABASE restored});
run_log([ 'sh', '-c', 'pg_dump -d "$1" | psql -Xq -v ON_ERROR_STOP=1 -d "$2"', '-',
		$node->connstr('postgres'), $node->connstr('restored') ]);
my $dumped = $node->safe_psql('postgres', 'SELECT last_value FROM next_id_seq');
is($node->safe_psql('restored', 'SELECT next_id(5) > 0; SELECT last_value FROM next_id_seq'), "t\n" . ($dumped + 1),
	'after a restore, IDs go on from the dump');
is($node->safe_psql('restored', q{INSERT INTO photos DEFAULT VALUES;
		SELECT count(*), bool_and(at = snowflake_timestamp(id)), min(pg_typeof(id)::text), json_agg(snowflake_to_json(id))::text ~ '^\["' FROM photos}),
	'2|t|snowflake|t', 'after a restore, a table with a default and a column of type snowflake is as before');

$node->stop;
done_testing();
