# A database is dumped and restored by its owner, who is not a superuser, while
# the clock is set back by a day.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

plan skip_all => 'libfaketime is not installed' unless faketime_library();

my $node = PostgreSQL::Test::Cluster->new('restore_clock');
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump.sql';

$node->init;
start_with_clock($node, '+0');
$node->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN;
	ALTER ROLE alice SET snowflake.max_lead = '2d';
	CREATE DATABASE dumped OWNER alice;
	CREATE DATABASE restored OWNER alice});
my ($dumped, $restored) = map { $node->connstr($_) . ' user=alice' } 'dumped', 'restored';

$node->safe_psql('', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5));
	INSERT INTO photos SELECT FROM generate_series(1, 1000)}, connstr => $dumped);
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $dumped ], 'an owner who is no superuser dumps the database');
set_clock($node, '-86400');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $restored ],
	'an owner who is no superuser restores the dump with the clock a day back');
is( $node->safe_psql('', q{
		SELECT max(id) AS last FROM photos \gset
		INSERT INTO photos DEFAULT VALUES RETURNING id > :last}, connstr => $restored),
	't', 'the next ID after a restore with the clock a day back is larger than all in the dump');
is( $node->safe_psql('restored', q{SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relname = 'next_id_seq'}),
	'alice', 'the owner who restores a dump owns its next_id_seq');

$node->stop;
done_testing();
