# DROP EXTENSION ... CASCADE drops what doc/migrating.md says, and keeps the rows of
# tables that are not partitioned by a function or by a column of the type snowflake.
# The section "Uninstall" keeps columns of the type, and replaces functions and defaults.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('uninstall');
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
	CREATE TABLE stories (id snowflake, ids snowflake[], title text);
	CREATE TABLE by_snowflake (id snowflake) PARTITION BY RANGE (id);
	CREATE FUNCTION story(id snowflake) RETURNS int LANGUAGE sql AS 'SELECT 1';
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
	'column id of table stories',
	'column ids of table stories',
	'function story(snowflake)',
	'table by_snowflake',
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

# --- leaving by the document --------------------------------------------------

my ($identities, $decoded) = map { $_->{code} } blocks_in('doc/migrating.md', 'Uninstall');
$node->safe_psql('postgres', 'CREATE DATABASE kept');
$node->safe_psql('kept', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE albums (id snowflake PRIMARY KEY DEFAULT next_id(1));
	CREATE TABLE photos (id snowflake PRIMARY KEY DEFAULT next_id(1), album_id snowflake REFERENCES albums, n int);
	CREATE TABLE "Stories" ("the id" bigint PRIMARY KEY DEFAULT next_id(1), n int);
	CREATE SCHEMA own;
	CREATE FUNCTION own.next_id(n integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1';
	CREATE TABLE foreigners (id bigint DEFAULT own.next_id(1));
	INSERT INTO albums SELECT FROM generate_series(1, 10);
	INSERT INTO photos (album_id, n) SELECT id, 17 FROM albums;
	CREATE ROLE app LOGIN;
	GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO app});
$rows = q{SELECT 'album', a::text FROM albums a UNION ALL SELECT 'photo', p::text FROM photos p ORDER BY 1, 2};
$before = $node->safe_psql('kept', $rows);
my $files = q{SELECT relname, pg_relation_filenode(oid) FROM pg_class
	WHERE relname IN ('albums', 'albums_pkey', 'photos', 'photos_pkey') ORDER BY 1};
my $files_before = $node->safe_psql('kept', $files);

# Expressions in place of the functions
my ($expressions) = $decoded =~ /SELECT (.*) FROM photos;/s;
$expressions =~ s/now\(\)/t/g;
is( $node->safe_psql('kept', qq{
		SELECT bool_and(($expressions) IS NOT DISTINCT FROM (snowflake_timestamp(id), snowflake_shard(id), snowflake_min_id(t))), count(*)
		FROM (SELECT t, snowflake_id(t, (random() * 8191)::int, (random() * 1023)::int) AS id FROM
			(SELECT '2011-09-01Z'::timestamptz + random() * interval '34 years' FROM generate_series(1, 3000)
			UNION ALL SELECT '2026-11-24 12:00:00.001Z'::timestamptz + n * interval '1 us' FROM generate_series(-1500, 1500) AS n) AS made (t)) AS ids}),
	't|6001', 'expressions are equal to the functions');

# Identities in place of next_id()
my $reader = $node->background_psql('kept');
$reader->query_safe('BEGIN; SELECT FROM albums');
my (undef, undef, $in_the_way) = $node->psql('kept', $identities, on_error_stop => 0);
like($in_the_way, qr/WARNING:  public\.albums stays as it is: could not get the locks/, 'a table that somebody uses is named');
$reader->quit;
$node->safe_psql('kept', $identities);
is($node->safe_psql('kept', 'SELECT count(*) FROM snowflake_uses()'), 0, 'nothing makes IDs any more');
(undef, undef, $refusal) = $node->psql('kept', 'DROP EXTENSION snowflake_admin; DROP EXTENSION snowflake');
is(join("\n", $refusal =~ /^(?:DETAIL:  )?(.*) depends on type snowflake$/mg), 'column album_id of table photos', 'the other column of the type is named');
my ($change) = slurp_file("$top/doc/migrating.md") =~ /`(ALTER TABLE likes\s+ALTER\s+photo_id TYPE bigint)`/ or die 'no change of a column';
$node->safe_psql('kept', ($change =~ s/likes/photos/r =~ s/photo_id/album_id/r) . '; DROP EXTENSION snowflake');
is($node->safe_psql('kept', $files), $files_before, 'the files of tables and indexes are what they were');
is($node->safe_psql('kept', $rows), $before, 'IDs stay without the extension');
fails_with($node, 'INSERT INTO photos (album_id) VALUES (1)', qr/^23503/, 'a foreign key stays without the extension', dbname => 'kept');
foreach my $case ([ 'albums', 'id' ], [ '"Stories"', '"the id"' ])
{
	my ($table, $key) = @$case;
	is($node->safe_psql('kept', "WITH largest AS (SELECT coalesce(max($key), 0) AS id FROM $table)
			INSERT INTO $table DEFAULT VALUES RETURNING $key > (SELECT id FROM largest)", extra_params => [ '-U', 'app' ]),
		't', "a role that inserts into $table gets a larger ID without the extension");
}
is($node->safe_psql('kept', 'INSERT INTO foreigners DEFAULT VALUES RETURNING id'), 1, 'a default that calls another next_id() stays');
like($node->safe_psql('kept', 'EXPLAIN (COSTS OFF) SELECT FROM albums WHERE id = 17'), qr/albums_pkey/, 'an index is used without the extension');

$node->stop;
done_testing();
