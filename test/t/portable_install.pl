# Installing portable/snowflake.sql as doc/portable.md says, who may use it and
# from where, IDs in PostgREST's JSON, a restore, and the move to the extension and
# back.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use PortableTest;
use SnowflakeTest;

# where the document's commands find the file
chdir "$top" or die "chdir: $!";
my $node = server_in_utc('portable');

# --- as the owner of a database, who is not a superuser ---------------------

my @install = blocks_in('doc/portable.md', 'Install');
my ($shell) = map { $_->{code} } grep { $_->{language} eq 'sh' } @install;
$node->safe_psql('postgres', 'CREATE ROLE app_owner LOGIN CREATEROLE');
$node->safe_psql('postgres', 'CREATE DATABASE app OWNER app_owner');
{
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGUSER => 'app_owner');
	my ($out, $err) = run_command([ 'sh', '-ec', $shell ]);
	like($err, qr/\A\S+ WARNING:  cast will be ignored because the source data type is a domain\n?\z/,
		'the owner of a database can install the portable version, with the warning that the document names');
	ok(!IPC::Run::run([ 'sh', '-ec', $shell ], '>', '/dev/null', '2>', \my $errors), 'a second run fails');
	like($errors, qr/\A\S+ ERROR:  relation "next_id_seq" already exists\n\z/, '... at its first command');
	run_examples($node, 'app', @install);
}
is($node->safe_psql('app', q{
		SELECT count(*) FILTER (WHERE d IS NULL), count(*) > 20
		FROM (SELECT obj_description(oid, 'pg_proc') FROM pg_proc WHERE proowner = 'app_owner'::regrole
		      UNION ALL SELECT obj_description('next_id_seq'::regclass, 'pg_class')
		      UNION ALL SELECT obj_description('snowflake'::regtype, 'pg_type')
		      UNION ALL SELECT obj_description(oid, 'pg_cast') FROM pg_cast WHERE castsource = 'snowflake'::regtype) t (d)}),
	'0|t', 'everything in the portable version has a comment');

# A session that is there already sees a new shard.
my $session = $node->background_psql('app');
my $shard = 'INSERT INTO photos (title) VALUES (\'\') RETURNING snowflake_shard(id)';
is($session->query_safe("PREPARE add AS $shard; EXECUTE add"), 5, 'a default makes IDs of the shard');
$node->safe_psql('app', 'SELECT snowflake_set_shard(6)');
is($session->query_safe('EXECUTE add'), 6, 'other sessions use a new shard at once');

# --- privileges -------------------------------------------------------------

$node->safe_psql('app', q{CREATE ROLE nobody; GRANT INSERT, SELECT ON photos, views TO nobody, app_user});
my @commands = (q{INSERT INTO photos (title) VALUES ('') RETURNING 'done'}, q{SELECT 'done' FROM next_ids(5, 1)},
	q{INSERT INTO views DEFAULT VALUES RETURNING 'done'}, q{SELECT snowflake_advance('next_id_seq', next_id(5))},
	q{SELECT setval('next_id_seq', 17)}, q{SELECT snowflake_take(5, 1, 'next_id_seq', NULL)}, 'SELECT snowflake_set_shard(5)');
is(join(', ', map { (sqlstate_of($node, "SET ROLE nobody; $_", dbname => 'app') =~ /^(\w+(?: error: \w+)?)/)[0] } @commands),
	'no error: done, no error: done, 42501, 42501, 42501, 42501, 42501', 'a role without privileges can insert, and do nothing else');
like(sqlstate_of($node, "SET ROLE app_user; $commands[2]", dbname => 'app'), qr/^no error/,
	'the privileges that the document grants suffice for a separate sequence');

# --- other snapshots --------------------------------------------------------

$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('app', q{CREATE SEQUENCE late MAXVALUE 1125899906841599});
is($session->query_safe(q{SELECT next_id(5, 'late') > 0, (SELECT count(*) FROM next_ids(5, 3000, 'late'))}), 't|3000',
	'a transaction with an old snapshot can use a new sequence');
$session->quit;

# --- in any schema, called from anywhere ------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$node->safe_psql('elsewhere', q{
	CREATE SCHEMA "Other Ids";
	CREATE SCHEMA trap;
	CREATE FUNCTION trap.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
	CREATE FUNCTION trap.setval(regclass, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
	CREATE FUNCTION trap.plus(bigint, integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	CREATE OPERATOR trap.+ (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = trap.plus);
	CREATE FUNCTION trap.equal(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1';
	CREATE OPERATOR trap.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = trap.equal);
	CREATE FUNCTION trap.snowflake_shard() RETURNS integer LANGUAGE sql AS 'SELECT 1';
	CREATE FUNCTION trap.snowflake_take(bigint, bigint, regclass, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
	CREATE SEQUENCE trap.next_id_seq;
	CREATE SEQUENCE trap."Own";
	CREATE SEQUENCE "Other Ids"."Own"});
install_portable($node, 'elsewhere', schema => '"Other Ids"');
is($node->safe_psql('elsewhere', q{
		SET search_path = trap, pg_catalog;
		SET client_min_messages = error;
		SELECT "Other Ids".snowflake_set_shard(7) \gset
		SELECT "Other Ids".snowflake_alter_sequence('"Own"') \gset
		SELECT "Other Ids".snowflake_advance('"Own"', "Other Ids".next_id(5)) \gset
		SELECT "Other Ids".snowflake_shard("Other Ids".next_id()), "Other Ids".snowflake_shard("Other Ids".next_id(5, '"Own"')),
		       "Other Ids".snowflake_timestamp("Other Ids".next_id(5)) BETWEEN now() AND clock_timestamp() + '1s',
		       (SELECT count(DISTINCT i) FROM "Other Ids".next_ids(5, 3000) i), (SELECT is_called FROM next_id_seq), snowflake_shard(),
		       (SELECT max_value FROM pg_sequences WHERE schemaname = 'Other Ids' AND sequencename = 'Own')}),
	'7|5|t|3000|f|1|9223372036854775807', 'no search path makes the functions use objects of other schemas');
like($node->safe_psql('elsewhere', q{
		SET search_path = "Other Ids";
		CREATE TABLE p (id bigint PRIMARY KEY DEFAULT next_id(3)) PARTITION BY RANGE (id);
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (snowflake_min_id('2020-01-01Z')) TO (snowflake_min_id('2025-01-01Z'));
		CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (snowflake_min_id('2025-01-01Z')) TO (MAXVALUE);
		CREATE INDEX by_time ON p2 (snowflake_timestamp(id));
		INSERT INTO p SELECT FROM generate_series(1, 100);
		SET enable_seqscan = off; SET enable_bitmapscan = off;
		EXPLAIN (COSTS OFF) SELECT FROM p WHERE id <= snowflake_max_id('2024-01-01Z');
		EXPLAIN (COSTS OFF) SELECT FROM p2 WHERE snowflake_timestamp(id) > now() - interval '1 day'}),
	qr/^Index Only Scan using p1_pkey on p1 p\n +Index Cond: \(id <= '\d+'::bigint\)\nIndex Scan using by_time on p2\n +Index Cond/,
	'bounds prune partitions, and the planner uses an index on snowflake_timestamp(id)');

# --- IDs in the JSON that PostgREST makes -----------------------------------

# the casts for which PostgREST looks, and its queries for rows and for new rows
$node->safe_psql('app', 'SET ROLE app_owner; CREATE TABLE songs (id snowflake PRIMARY KEY DEFAULT next_id(), album snowflake)');
is($node->safe_psql('app', q{
		SELECT count(*) FROM pg_cast JOIN pg_type s ON s.oid = castsource
		WHERE castcontext = 'i' AND castmethod = 'f' AND s.typtype = 'd' AND casttarget = 'json'::regtype
		  AND has_function_privilege('nobody', castfunc, 'execute');
		INSERT INTO songs (album) SELECT album FROM json_to_recordset('[{"album": "1671372309237077023"}, {"album": 17}]') AS _(album snowflake);
		SELECT json_agg(t) FROM (SELECT snowflake_to_json(album) AS album FROM songs ORDER BY id) t}),
	qq{1\n[{"album":"1671372309237077023"}, \n {"album":"17"}]}, 'IDs are strings in JSON that is made as by PostgREST');

# --- a restore, and the way to the extension and back -----------------------

my $count = 'SELECT count(*), sum(hashint8(id)) FROM photos';
my $before = $node->safe_psql('app', $count);
my $filenode = q{SELECT pg_relation_filenode('songs'), pg_relation_filenode('songs_pkey')};
my $last = $node->safe_psql('app', q{SELECT count(*) FROM next_ids(5, 300000) \gset
	SELECT max(id) FROM next_ids(5, 600000) AS id});
$node->safe_psql('postgres', 'CREATE DATABASE moved OWNER app_owner');
run_log([ 'sh', '-c', 'pg_dump -d "$1" | psql -Xq -v ON_ERROR_STOP=1 -d "$2"', '-', map { $node->connstr($_) } 'app', 'moved' ]);
is($node->safe_psql('moved', $count), $before, 'a restored table has its rows');
cmp_ok($node->safe_psql('moved', 'SELECT next_id(5)'), '>', $last, 'after a restore, IDs go on from the dump');

my $files = $node->safe_psql('moved', $filenode);
my ($to_extension, $back, $both, $drop) = blocks_in('doc/portable.md', 'Move to the extension, and back');
my $state = q{SELECT count(*) FROM pg_extension WHERE extname = 'snowflake';
	INSERT INTO photos (title) VALUES ('') RETURNING snowflake_shard(id);
	INSERT INTO views DEFAULT VALUES RETURNING snowflake_shard(id);
	INSERT INTO songs DEFAULT VALUES RETURNING to_json(id)::text ~ '"'};
my $sequence = $node->safe_psql('moved', 'SELECT last_value FROM views_id_seq');
{
	local %ENV = (%ENV, PGUSER => 'app_owner');
	run_examples($node, 'moved', $to_extension, $both, $drop);
	is($node->safe_psql('moved', $state), "1\n5\n5\nt", 'all defaults call the extension, and JSON shows strings');
	cmp_ok($node->safe_psql('moved', 'SELECT max(id) FROM photos'), '>', $last, 'IDs of the extension are larger than the old ones');
}
$last = $node->safe_psql('moved', 'SELECT max(id) FROM next_ids(5, 900000) AS id');
run_examples($node, 'moved', $back, $both);
$node->safe_psql('moved', 'DROP EXTENSION snowflake; DROP SCHEMA before');
is($node->safe_psql('moved', $state), "0\n5\n5\nf", 'all defaults call the portable version after the way back');
cmp_ok($node->safe_psql('moved', 'SELECT max(id) FROM photos'), '>', $last, 'its IDs are larger than the extension\'s');
is($node->safe_psql('moved', $filenode), $files, 'neither way rewrites a table or an index');
cmp_ok($node->safe_psql('moved', 'SELECT last_value FROM views_id_seq'), '>', $sequence, 'a separate sequence stays as it is');

# --- what it costs ----------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE bench');
like($node->safe_psql('bench', "SET client_min_messages = error;\n\\i bench/portable.sql"), qr/^portable\.next_id\(5\)\|\d+\|/m,
	'bench/portable.sql measures a call');

$node->stop;
done_testing();
