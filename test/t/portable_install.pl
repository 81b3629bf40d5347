# Installing portable/snowflake.sql as doc/portable.md says, and where else it
# can be installed and used from.

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

# --- as the owner of a database, who is not a superuser --------------------

my @install = blocks_in('doc/portable.md', 'Install');
my ($shell) = grep { $_->{language} eq 'sh' } @install;
$node->safe_psql('postgres', 'CREATE ROLE app_owner LOGIN');
$node->safe_psql('postgres', 'CREATE DATABASE app OWNER app_owner');
{
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGUSER => 'app_owner');
	my ($out, $err) = run_command([ 'sh', '-ec', $shell->{code} ]);
	is($err, '', 'the owner of a database can install the portable version');
	my $errors;
	ok(!IPC::Run::run([ 'sh', '-ec', $shell->{code} ], '>', '/dev/null', '2>', \$errors), 'a script sees that the command fails the second time');
	like($errors, qr/\A\S+ ERROR:  relation "next_id_seq" already exists\n\z/, 'the error is what the document shows, and the only one');
}
run_examples($node, 'app', @install);
is($node->safe_psql('app', q{
		SELECT count(*) FILTER (WHERE d IS NULL), count(*) > 50
		FROM (SELECT obj_description(oid, 'pg_proc') FROM pg_proc WHERE proowner = 'app_owner'::regrole
		      UNION ALL SELECT obj_description('next_id_seq'::regclass, 'pg_class')
		      UNION ALL SELECT obj_description(t, 'pg_type')
				FROM unnest(ARRAY['snowflake', 'snowflake_layout', 'snowflake_parameters']::regtype[]) t
		      UNION ALL SELECT obj_description(oid, 'pg_cast') FROM pg_cast WHERE castsource = 'snowflake'::regtype) t (d)}),
	'0|t', 'everything in the portable version has a comment');
is($node->safe_psql('app', q{
		SELECT next_id(5) > 0 AND next_id(5) < next_id(5), (SELECT count(*) FROM next_ids(5, 10))},
		extra_params => [ '-U', 'app_owner' ]),
	't|10', 'the owner of a database can use the portable version');

# --- the shard, for who is no superuser ------------------------------------

{
	local %ENV = (%ENV, PGUSER => 'app_owner');
	run_examples($node, 'app', blocks_in('doc/portable.md', 'The shard'));
	is($node->safe_psql('app', q{
			INSERT INTO users (name) VALUES ('first') RETURNING snowflake_shard(id);
			CREATE OR REPLACE FUNCTION server_shard() RETURNS bigint LANGUAGE sql STABLE RETURN 6;
			INSERT INTO users (name) VALUES ('second') RETURNING snowflake_shard(id)}),
		"5\n6", 'the shard of the defaults is what server_shard() returns');
	fails_with($node, 'ALTER DATABASE app SET snowflake.shard = 5', qr/^42501 /, 'the owner cannot store the shard', dbname => 'app');
	fails_with($node, 'SELECT next_id()', qr/^55000 "snowflake.shard" is not set/, 'a client that brings no shard gets no ID', dbname => 'app');
	$ENV{PGOPTIONS} = '-c snowflake.shard=5';
	is($node->safe_psql('app', 'SELECT snowflake_shard(next_id())'), 5, 'a client brings the shard');
}

# --- once only, and not where the extension is -----------------------------

my $before = $node->safe_psql('app', 'SELECT count(*) FROM pg_proc');
like(install_portable($node, 'app'), qr/relation "next_id_seq" already exists/, 'the file does not run twice');
is($node->safe_psql('app', 'SELECT count(*) FROM pg_proc'), $before, 'a second run changes nothing');
$node->safe_psql('postgres', 'CREATE DATABASE extension');
$node->safe_psql('extension', 'CREATE SCHEMA other; CREATE EXTENSION snowflake SCHEMA other');
like(install_portable($node, 'extension'), qr/ERROR:  an extension named "snowflake" is installed in this database/,
	'the file does not run beside the extension');
is($node->safe_psql('extension', q{SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace}),
	0, 'a run beside the extension changes nothing');

# --- in any schema, called from anywhere -----------------------------------

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
	CREATE SEQUENCE trap.next_id_seq;
	CREATE SEQUENCE "Other Ids"."Own";
	CREATE SEQUENCE trap."Own"});
is(install_portable($node, 'elsewhere', 'search_path="Other\\ Ids"'), '', 'the file installs into the first schema of the search path');
$node->safe_psql('elsewhere', q{
	CREATE FUNCTION trap.snowflake_take(bigint, bigint, regclass, "Other Ids".snowflake_parameters) RETURNS bigint
		LANGUAGE sql AS 'SELECT -1::bigint';
	CREATE FUNCTION trap.snowflake_parameters(text) RETURNS "Other Ids".snowflake_parameters LANGUAGE plpgsql
		AS 'BEGIN RAISE division_by_zero; END'});
is($node->safe_psql('elsewhere', q{
		SET snowflake.shard = 7;
		SET search_path = trap, pg_catalog;
		SELECT "Other Ids".snowflake_shard("Other Ids".next_id()),
		       "Other Ids".snowflake_timestamp("Other Ids".next_id(5)) BETWEEN now() AND clock_timestamp(),
		       (SELECT count(DISTINCT i) FROM "Other Ids".next_ids(5, 3000) i),
		       (SELECT last_timestamp >= now() FROM "Other Ids".snowflake_sequences('"Other Ids".next_id_seq')), (SELECT is_called FROM next_id_seq)}),
	'7|t|3000|t|f', 'no search path makes the functions use objects of other schemas');
is($node->safe_psql('elsewhere', q{
		SET search_path = trap, pg_catalog;
		SELECT "Other Ids".snowflake_alter_sequence('trap."Own"');
		SELECT "Other Ids".snowflake_shard("Other Ids".next_id(5, '"Own"')),
		       (SELECT string_agg(sequence || ' ' || state, ' ' ORDER BY sequence::text) FROM "Other Ids".snowflake_sequences()),
		       (SELECT max_value FROM pg_sequences WHERE schemaname = 'Other Ids' AND sequencename = 'Own')}),
	"\n" . '5|"Other Ids".next_id_seq ok "Own" ok|9223372036854775807',
	'snowflake_alter_sequence() and snowflake_sequences() use the sequence that the caller means');
like($node->safe_psql('elsewhere', q{
		SET search_path = "Other Ids";
		CREATE TABLE p (id bigint PRIMARY KEY DEFAULT next_id(3)) PARTITION BY RANGE (id);
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (snowflake_min_id('2020-01-01Z')) TO (snowflake_min_id('2025-01-01Z'));
		CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (snowflake_min_id('2025-01-01Z')) TO (MAXVALUE);
		CREATE INDEX by_time ON p2 (snowflake_timestamp(id));
		INSERT INTO p SELECT FROM generate_series(1, 100);
		SET enable_seqscan = off; SET enable_bitmapscan = off;
		EXPLAIN (COSTS OFF) SELECT FROM p WHERE id < snowflake_min_id('2024-01-01Z');
		EXPLAIN (COSTS OFF) SELECT FROM p2 WHERE snowflake_timestamp(id) > now() - interval '1 day'}),
	qr/^Index Only Scan using p1_pkey on p1 p\n +Index Cond: \(id < '\d+'::bigint\)\nIndex Scan using by_time on p2\n +Index Cond/,
	'bounds prune partitions, and the planner uses an index on snowflake_timestamp(id)');

# --- IDs in the JSON that PostgREST makes ----------------------------------

my @api = blocks_in('doc/portable.md', 'With PostgREST, and Supabase');
($shell) = grep { $_->{language} eq 'sh' } @api;
$node->safe_psql('postgres', 'CREATE DATABASE api OWNER app_owner');
{
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGUSER => 'app_owner');
	my ($out, $err) = run_command([ 'sh', '-ec', $shell->{code} =~ s/ app$/ api/mr ]);
	is($err, '', 'the owner of a database can install into a schema of its own');
}
run_examples($node, 'api', @api);
is($node->safe_psql('api', q{SET ROLE app_user; INSERT INTO albums (title) VALUES ('second') RETURNING ids.snowflake_shard(id)}),
	5, 'a role with the privileges of the example inserts into a table in an exposed schema');
is($node->safe_psql('api', q{SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace}),
	0, 'web clients find no function in the schema that PostgREST exposes');
# Where web clients can call all functions, a role with privileges on the sequence could stop all others, also by an
# internal function.  A role whose default calls a function of its owner needs none.
my $take = q{SELECT snowflake_take(5, 1, 'next_id_seq', jsonb_populate_record(p, jsonb_build_object('epoch', p.epoch - 86400000)))
	FROM snowflake_parameters('instagram') AS p};
$node->safe_psql('app', q{
	CREATE ROLE anon;
	CREATE FUNCTION title_id() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = '' AS 'SELECT public.next_id(7)';
	CREATE TABLE titles (id bigint PRIMARY KEY DEFAULT title_id(), title text);
	GRANT SELECT, INSERT ON titles TO anon});
is($node->safe_psql('app', q{SET ROLE anon; INSERT INTO titles (title) VALUES ('a') RETURNING snowflake_shard(id)}), 7,
	'a role without privileges on the sequence inserts by a default that calls a function of its owner');
foreach my $call ('SELECT next_id(5)', q{SELECT snowflake_advance('next_id_seq', snowflake_max_id(now()))}, $take)
{
	fails_with($node, "SET ROLE anon; $call", qr/^42501 /, "a role without privileges on the sequence cannot use $call", dbname => 'app');
}
$node->safe_psql('postgres', 'CREATE DATABASE exposed TEMPLATE app');
$node->safe_psql('exposed', "SET ROLE app_user; $take");
fails_with($node, 'SELECT next_id(5)', qr/^53400 .* ahead of the clock/, 'a role with privileges on the sequence can stop all others',
	dbname => 'exposed');
my @owner = (extra_params => [ '-U', 'app_owner' ]);
is($node->safe_psql('app', q{
		CREATE TABLE songs (id bigint PRIMARY KEY, album bigint);
		CREATE INDEX songs_album ON songs (album);
		INSERT INTO songs SELECT i, i FROM next_ids(5, 100) i;
		CREATE TEMPORARY TABLE files AS SELECT r, pg_relation_filenode(r) AS file
			FROM unnest(ARRAY['songs', 'songs_pkey', 'songs_album']::regclass[]) r;
		ALTER TABLE songs ALTER id TYPE snowflake, ALTER album TYPE snowflake;
		SELECT count(*), bool_and(pg_relation_filenode(r) = file) FROM files}, @owner),
	'3|t', 'to make columns of type snowflake rewrites neither a table nor an index');
# In the form of PostgREST's requests: the casts that it looks for, a row, rows by
# a list, new rows of which one has a number, and a table beneath another
is($node->safe_psql('app', q{
		SELECT count(*) FROM pg_cast JOIN pg_type s ON s.oid = castsource
		WHERE castcontext = 'i' AND castmethod = 'f' AND s.typtype = 'd' AND casttarget IN ('json'::regtype, 'text'::regtype)
		  AND has_function_privilege(castfunc, 'execute');
		SELECT id AS song FROM songs LIMIT 1 \gset
		SELECT replace(json_agg::text, :'song', '(id)') FROM (SELECT json_agg(t) FROM (SELECT snowflake_to_json(public.songs.id) AS id,
			public.songs.album AS number FROM public.songs WHERE public.songs.id = :'song') t) r;
		SELECT count(*) FROM songs WHERE id = ANY(format('{%s}', :'song')::snowflake[]);
		SELECT next_id(5) AS one, next_id(5) AS two \gset
		WITH source AS (
			INSERT INTO songs (id, album) SELECT body.id, body.album
			FROM (SELECT format('[{"id": "%s", "album": "%s"}, {"id": %s, "album": null}]', :one, :one, :two)::json AS json_data) payload,
			     LATERAL (SELECT id, album FROM json_to_recordset(payload.json_data) AS _(id snowflake, album snowflake)) body
			RETURNING *)
		SELECT string_agg(t ->> 'id', ' ') = :one || ' ' || :two FROM (SELECT to_json(t) AS t
			FROM (SELECT snowflake_to_json(source.id) AS id FROM source) t) t;
		SELECT (json_agg(t) -> 0 -> 'songs' -> 0 -> 'album')::text ~ '^"\d{19}"$'
		FROM (SELECT snowflake_to_json(a.id) AS id, songs.songs FROM songs a LEFT JOIN LATERAL (
			SELECT json_agg(s) AS songs FROM (SELECT snowflake_to_json(b.album) AS album FROM songs b WHERE b.album = a.id) s
		) songs ON true ORDER BY a.id LIMIT 1) t}, @owner),
	join("\n", 1, '[{"id":"(id)","number":(id)}]', 1, 't', 't'), 'queries in the form of PostgREST\'s read and write IDs as strings');

# --- what it costs ---------------------------------------------------------

run_examples($node, 'postgres', blocks_in('doc/portable.md', 'What it costs'));

$node->stop;
done_testing();
