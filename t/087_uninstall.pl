# DROP EXTENSION ... CASCADE drops what doc/operations.md says, and keeps the rows of tables
# that are not partitioned by a function.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('uninstall');
$node->init;
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE by_function (id bigint DEFAULT next_id(1)) PARTITION BY LIST (snowflake_shard(id));
	CREATE TABLE by_function_1 PARTITION OF by_function FOR VALUES IN (1);
	CREATE TABLE by_bits (id bigint DEFAULT next_id(1)) PARTITION BY LIST (((id >> 10) & 8191));
	CREATE TABLE by_bits_1 PARTITION OF by_bits FOR VALUES IN (1);
	CREATE TABLE by_bits_2 PARTITION OF by_bits FOR VALUES IN (2);
	CREATE TABLE by_time (id bigint PRIMARY KEY DEFAULT next_id(1)) PARTITION BY RANGE (id);
	CREATE TABLE by_time_old PARTITION OF by_time
		FOR VALUES FROM (snowflake_min_id('2019-01-01Z')) TO (snowflake_min_id('2020-01-01Z'));
	CREATE TABLE by_time_new PARTITION OF by_time FOR VALUES FROM (snowflake_min_id('2020-01-01Z')) TO (MAXVALUE);
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(1),
		made timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED,
		CONSTRAINT own CHECK (snowflake_shard(id) = 1));
	CREATE INDEX by_shard ON photos (snowflake_shard(id));
	CREATE VIEW shards AS SELECT DISTINCT snowflake_shard(id) FROM photos;
	CREATE FUNCTION next_photo_id() RETURNS bigint BEGIN ATOMIC SELECT next_id(1); END;
	CREATE TABLE albums (id bigint DEFAULT next_photo_id(), layout snowflake_layout, kept snowflake_layout);
	INSERT INTO albums SELECT 1, 'twitter', 'discord';
	ALTER TABLE albums ALTER kept TYPE text;
	CREATE FUNCTION bits_of(layout snowflake_layout) RETURNS int LANGUAGE sql AS 'SELECT 1';
	CREATE POLICY of_shard ON albums USING (snowflake_shard(id) = 1);
	INSERT INTO by_function SELECT FROM generate_series(1, 10);
	INSERT INTO by_bits SELECT FROM generate_series(1, 10);
	INSERT INTO by_bits SELECT next_id(2) FROM generate_series(1, 10);
	INSERT INTO by_time SELECT FROM generate_series(1, 10);
	INSERT INTO photos SELECT FROM generate_series(1, 10)});

my $rows = q{SELECT count(*), sum(id) FROM by_bits UNION ALL SELECT count(*), sum(id) FROM by_time
	UNION ALL SELECT count(*), sum(id) FROM photos};
my $before = $node->safe_psql('postgres', $rows);
my @drops = (
	'default value for column id of table by_bits',
	'default value for column id of table photos',
	'column made of table photos',
	'constraint own on table photos',
	'index by_shard',
	'view shards',
	'function next_photo_id()',
	'function bits_of(snowflake_layout)',
	'policy of_shard on table albums',
	'default value for column id of table albums',
	'column layout of table albums',
	'table by_function');

my ($ret, $stdout, $refusal) = $node->psql('postgres', 'DROP EXTENSION snowflake');
is($ret, 3, 'DROP EXTENSION refuses while objects depend on the extension');
like($refusal, qr/^(DETAIL:  )?\Q$_\E depends on (function|type)/m, "DROP EXTENSION lists: $_") foreach @drops;
is($node->safe_psql('postgres', 'SELECT count(*) FROM by_function'), 10, 'DROP EXTENSION that was refused drops nothing');

my $notice;
$node->psql('postgres', 'DROP EXTENSION snowflake CASCADE', stderr => \$notice);
like($notice, qr/drop cascades to \Q$_\E$/m, "DROP EXTENSION ... CASCADE drops: $_") foreach @drops;
is($node->safe_psql('postgres', q{SELECT to_regclass('by_function') IS NULL AND to_regclass('by_function_1') IS NULL}),
	't', 'DROP EXTENSION ... CASCADE drops a table partitioned by its function, with the partition');
is($node->safe_psql('postgres', $rows), $before, 'tables that are not partitioned by a function keep their rows without the extension');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_attribute WHERE attrelid = 'photos'::regclass AND attname = 'made'}),
	0, 'DROP EXTENSION ... CASCADE drops a generated column');
is($node->safe_psql('postgres', 'SELECT kept FROM albums'), 'discord', 'a column of layouts that has become text stays');

my $id = $node->safe_psql('postgres', 'SELECT min(id) FROM by_bits_2');
my $plan = $node->safe_psql('postgres',
	"EXPLAIN (COSTS OFF) SELECT FROM by_bits WHERE id = $id AND (id >> 10) & 8191 = ($id >> 10) & 8191");
like($plan, qr/by_bits_2/, 'a table partitioned by the bits is pruned to one partition without the extension');
unlike($plan, qr/by_bits_1/, 'the other partition by the bits is not read without the extension');
$plan = $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) SELECT FROM by_time WHERE id > $id");
like($plan, qr/by_time_new/, 'a table partitioned by RANGE (id) reads the partition of the time without the extension');
unlike($plan, qr/by_time_old/, 'a table partitioned by RANGE (id) reads no partition of another time without the extension');

$node->stop;
done_testing();
