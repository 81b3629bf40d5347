# DROP EXTENSION ... CASCADE drops what doc/uninstall.md says, and keeps the rows of tables
# that are not partitioned by a function or by a column of the type snowflake.  The recipes of
# that document keep these, and replace functions and defaults of the extension.

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

# --- keeping columns of the type snowflake --------------------------------------

my ($to_bigint, $anew, $decoded, $bounds, $strings, $identities) = map { $_->{code} } blocks_in('doc/uninstall.md',
	'Change columns of type snowflake', 'Recreate partitioned tables', 'Replace calls of functions', 'Give the tables other defaults');
$node->safe_psql('postgres', 'CREATE DATABASE kept');
$node->safe_psql('kept', q{
	CREATE EXTENSION snowflake;
	CREATE DOMAIN photo_id AS snowflake CHECK (VALUE > 0);
	CREATE TABLE albums (id snowflake PRIMARY KEY DEFAULT next_id(1));
	CREATE TABLE photos (id snowflake PRIMARY KEY, "an album" snowflake REFERENCES albums, seen snowflake[], best photo_id, n int);
	CREATE TABLE child (title text) INHERITS (photos);
	CREATE TABLE viewed (id snowflake PRIMARY KEY);
	CREATE VIEW newest AS SELECT id FROM viewed;
	CREATE TABLE events (id snowflake PRIMARY KEY) PARTITION BY RANGE (id);
	CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (MAXVALUE);
	CREATE TABLE by_shard (id bigint NOT NULL DEFAULT next_id(1), title text DEFAULT 'none') PARTITION BY LIST (snowflake_shard(id));
	CREATE TABLE "by shard 1" PARTITION OF by_shard FOR VALUES IN (1);
	CREATE TABLE by_shard_2 PARTITION OF by_shard FOR VALUES IN (2, 3);
	CREATE TABLE by_shard_others PARTITION OF by_shard DEFAULT;
	CREATE TABLE "Stories" ("the id" bigint PRIMARY KEY DEFAULT next_id(1), label text DEFAULT snowflake_to_text(next_id(1)));
	CREATE SCHEMA own;
	CREATE FUNCTION own.next_id(n integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1';
	CREATE TABLE foreigners (id bigint DEFAULT own.next_id(1));
	CREATE FUNCTION upper_case() RETURNS bigint LANGUAGE sql AS 'SELECT NEXT_ID (1)';
	CREATE FUNCTION decoded(id bigint) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN snowflake_shard(id); END';
	CREATE FUNCTION in_json(id bigint) RETURNS json LANGUAGE sql AS 'SELECT to_json(id::snowflake)';
	CREATE FUNCTION last() RETURNS bigint LANGUAGE sql AS 'SELECT last_value FROM next_id_seq';
	CREATE FUNCTION neither() RETURNS int LANGUAGE sql AS $$SELECT 1 AS next_id$$;
	INSERT INTO albums SELECT FROM generate_series(1, 10);
	INSERT INTO photos SELECT id, id, ARRAY[id], 17 FROM albums;
	INSERT INTO child VALUES (17);
	INSERT INTO viewed SELECT id FROM albums;
	INSERT INTO by_shard SELECT next_id(n) FROM generate_series(1, 5) AS n;
	INSERT INTO events SELECT id FROM albums});
$rows = q{SELECT 'album', a::text FROM albums a UNION ALL SELECT tableoid::regclass::text, p::text FROM photos p
	UNION ALL SELECT 'viewed', id::text FROM newest UNION ALL SELECT 'event', id::text FROM events
	UNION ALL SELECT tableoid::regclass::text, b::text FROM by_shard b ORDER BY 1, 2};
$before = $node->safe_psql('kept', $rows);
my $columns = q{SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
	WHERE relkind IN ('r', 'p', 'v') AND attnum > 0 AND atttypid::regtype::text ~ 'snowflake|photo_id' AND relnamespace = 'public'::regnamespace
	ORDER BY 1, 2};
my $files = q{SELECT relname, pg_relation_filenode(oid) FROM pg_class
	WHERE relname IN ('albums', 'albums_pkey', 'viewed', 'viewed_pkey', 'events_1', 'events_1_pkey') ORDER BY 1};
my $files_before = $node->safe_psql('kept', $files);

my $reading = $node->background_psql('kept');
$reading->query_safe('BEGIN; SELECT FROM viewed');
my (undef, undef, $in_the_way) = $node->psql('kept', "SET statement_timeout = '20s'; $to_bigint", on_error_stop => 0);
like($in_the_way, qr/canceling statement due to lock timeout/, 'the recipe does not wait for an open transaction');
$reading->quit;
(undef, undef, $in_the_way) = $node->psql('kept', $to_bigint, on_error_stop => 0);
like($in_the_way, qr/view newest depends on column "id"/, 'the recipe names a view that is in its way');
like($in_the_way, qr/column "id" because it is part of the partition key of relation "events"/,
	'the recipe names a partition key, whose type cannot be changed');
is($node->safe_psql('kept', $columns), "viewed|id\nnewest|id\nevents|id\nevents_1|id", 'the recipe changes all other columns');
$node->safe_psql('kept', 'DROP VIEW newest');
$node->psql('kept', $to_bigint, on_error_stop => 0);
$node->safe_psql('kept', 'CREATE VIEW newest AS SELECT id FROM viewed');

# Tables that are partitioned by a column of the type, and by a function
my $reader = $node->background_psql('kept');
$reader->query_safe('BEGIN; SELECT FROM by_shard_2');
my $anew_by_shard = $anew =~ s/\bevents/by_shard/gr;
(undef, undef, $in_the_way) = $node->psql('kept', $anew_by_shard, on_error_stop => 0);
like($in_the_way, qr/canceling statement due to lock timeout/, 'a table is not made anew while a transaction reads a partition');
is($node->safe_psql('kept', $rows), $before, 'a table that could not be made anew is as it was');
$reader->quit;
$node->safe_psql('kept', $anew =~ s/PARTITION BY .*;/PARTITION BY RANGE (id);/r);
$node->safe_psql('kept', $anew_by_shard);
is( $node->safe_psql('kept', q{
		SELECT relname, pg_get_expr(relpartbound, oid) FROM pg_class WHERE relispartition AND relkind = 'r' ORDER BY 1}),
	"by shard 1|FOR VALUES IN ('1')\nby_shard_2|FOR VALUES IN ('2', '3')\nby_shard_others|DEFAULT\n"
	  . "events_1|FOR VALUES FROM ('0') TO (MAXVALUE)", 'partitions keep their bounds');
is($node->safe_psql('kept', q{SELECT pg_get_partkeydef('by_shard'::regclass)}), 'LIST ((((id >> 10) & (8191)::bigint)))', 'the new key calls no function');
is($node->safe_psql('kept', q{SELECT count(*) FROM pg_constraint WHERE conrelid = 'events'::regclass AND contype = 'p'}), 1,
	'a table that was made anew has its primary key');

# Expressions in place of the functions
my $times = q{(SELECT '2011-09-01Z'::timestamptz + random() * interval '34 years' FROM generate_series(1, 3000)
	UNION ALL SELECT '2026-11-24 12:00:00.001Z'::timestamptz + n * interval '1 us' FROM generate_series(-1500, 1500) AS n) AS made (t)};
my ($fields) = $decoded =~ /SELECT (.*) FROM photos;/;
is( $node->safe_psql('kept', qq{
		SELECT bool_and(($fields) IS NOT DISTINCT FROM (snowflake_timestamp(id), snowflake_shard(id), snowflake_sequence_number(id))), count(*)
		FROM (SELECT snowflake_id(t, (random() * 8191)::int, (random() * 1023)::int) AS id FROM $times) AS ids}),
	't|6001', 'expressions decode IDs as the functions do');
my ($min_max) = $bounds =~ /SELECT (.*);/s;
$min_max =~ s/now\(\)/t/g;
is($node->safe_psql('kept', "SELECT bool_and(($min_max) = (snowflake_min_id(t), snowflake_max_id(t))), count(*) FROM $times"),
	't|6001', 'expressions bound times as the functions do');
is($node->safe_psql('kept', $strings), "upper_case()\ndecoded(bigint)\nin_json(bigint)\nlast()", 'functions with a string as their body that use the extension are found');

my ($generated) = slurp_file("$top/doc/uninstall.md") =~ /`ALTER TABLE (photos DROP made_at, ADD made_at[^`]*)`/
  or die 'the document replaces no generated column';
my ($time) = $fields =~ /^(.*\)), \(\(id/ or die 'no expression of the time';
is( $node->safe_psql('kept', q{
		CREATE TABLE decoding (id bigint, made_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED);
		INSERT INTO decoding SELECT * FROM next_ids(1, 10);
		ALTER TABLE } . $generated =~ s/photos/decoding/r =~ s/\Q(...)\E/($time)/r . q{;
		SELECT bool_and(made_at = snowflake_timestamp(id)), count(made_at) FROM decoding;
		DROP TABLE decoding}),
	't|10', 'a generated column is replaced by one that calls no function');

# Identities in place of next_id()
$node->safe_psql('kept', 'CREATE ROLE app LOGIN; GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO app');
$reader = $node->background_psql('kept');
$reader->query_safe('BEGIN; SELECT FROM albums');
(undef, undef, $in_the_way) = $node->psql('kept', $identities, on_error_stop => 0);
like($in_the_way, qr/WARNING:  public\.albums stays as it is: could not get the locks/, 'a table that somebody uses is named');
$reader->quit;
$node->safe_psql('kept', "$identities; DROP EXTENSION snowflake_admin");
is($node->safe_psql('kept', $columns), '', 'no column of the type is left when the recipe has been run again');
is($node->safe_psql('kept', $files), $files_before, 'the recipe leaves the files of tables and indexes as they are');
(undef, undef, $refusal) = $node->psql('kept', 'DROP EXTENSION snowflake');
is(join("\n", $refusal =~ /^(?:DETAIL:  )?(.*) depends on /mg), qq{default value for column label of table "Stories"\ntype photo_id},
	'after these recipes only the domain depends on the extension, and a default that they leave out');
$node->safe_psql('kept', 'SET client_min_messages = warning; DROP EXTENSION snowflake CASCADE');
is($node->safe_psql('kept', $rows), $before, 'IDs stay without the extension after the recipe');
fails_with($node, 'INSERT INTO photos VALUES (1, 1)', qr/^23503/, 'a foreign key stays without the extension after the recipe', dbname => 'kept');
foreach my $table (qw(albums "Stories"))
{
	is($node->safe_psql('kept', "WITH largest AS (SELECT max(a) FROM $table AS t (a))
			INSERT INTO $table DEFAULT VALUES RETURNING " . ($table eq 'albums' ? 'id' : '"the id"') . ' > (SELECT coalesce(max, 0) FROM largest)',
			extra_params => [ '-U', 'app' ]),
		't', "a role that inserts into $table gets a larger ID without the extension");
}
is($node->safe_psql('kept', 'INSERT INTO foreigners DEFAULT VALUES RETURNING id'), 1, 'a default that calls another next_id() stays');
like($node->safe_psql('kept', 'EXPLAIN (COSTS OFF) SELECT FROM albums WHERE id = 17'), qr/albums_pkey/,
	'an index is used without the extension after the recipe');

$node->stop;
done_testing();
