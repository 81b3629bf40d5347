# Installing portable/snowflake.sql as doc/portable.md says, who may use it and
# from where, IDs in PostgREST's JSON, and what a call costs.

use SnowflakeTest;

# where the document's command finds the file
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
is($node->safe_psql('app', q{SELECT count(*), count(obj_description(oid, 'pg_proc'))
		FROM pg_proc WHERE proowner = 'app_owner'::regrole}),
	'20|20', 'each function has a comment');

# A session that is there already sees a new shard.
my $session = $node->background_psql('app');
my $shard = 'INSERT INTO photos (title) VALUES (\'\') RETURNING snowflake_shard(id)';
is($session->query_safe("PREPARE add AS $shard; EXECUTE add"), 5, 'a default makes IDs of the shard');
$node->safe_psql('app', 'SELECT snowflake_set_shard(6)');
is($session->query_safe('EXECUTE add'), 6, 'other sessions use a new shard at once');
$session->quit;

# --- privileges -------------------------------------------------------------

$node->safe_psql('app', q{CREATE ROLE nobody; GRANT INSERT, SELECT ON photos, views TO nobody, app_user});
foreach my $case (
	[ 'nobody', 'INSERT INTO photos (title) VALUES (DEFAULT)', 1 ],
	[ 'nobody', 'INSERT INTO views DEFAULT VALUES', 0 ],
	[ 'nobody', q{SELECT snowflake_take(5, 1, 'next_id_seq', NULL)}, 0 ],
	[ 'app_user', 'INSERT INTO views DEFAULT VALUES', 1 ])
{
	my ($role, $command, $allowed) = @$case;
	like(sqlstate_of($node, "SET ROLE $role; $command", dbname => 'app'), $allowed ? qr/^no error/ : qr/^42501/,
		"$role " . ($allowed ? 'may' : 'may not') . ": $command");
}

# --- called from anywhere ---------------------------------------------------

new_portable_database($node, 'elsewhere', schema => 'ids');
$node->safe_psql('elsewhere', q{
	CREATE SCHEMA trap;
	SET search_path = trap;
	CREATE FUNCTION nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
	CREATE FUNCTION setval(regclass, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
	CREATE FUNCTION plus(bigint, integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	CREATE OPERATOR + (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = plus);
	CREATE FUNCTION equal(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1';
	CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = oid, FUNCTION = equal);
	CREATE FUNCTION snowflake_shard() RETURNS integer LANGUAGE sql AS 'SELECT 1';
	CREATE FUNCTION snowflake_take(bigint, bigint, regclass, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
	CREATE SEQUENCE next_id_seq;
	CREATE SEQUENCE own;
	CREATE SEQUENCE ids.own});
is($node->safe_psql('elsewhere', q{
		SET search_path = trap, pg_catalog;
		SET client_min_messages = error;
		SELECT ids.snowflake_set_shard(7) \gset
		SELECT ids.snowflake_alter_sequence('own') \gset
		SELECT ids.snowflake_advance('own', ids.next_id(5)) \gset
		SELECT ids.snowflake_shard(ids.next_id()), ids.snowflake_shard(ids.next_id(5, 'own')),
		       (SELECT count(DISTINCT i) FROM ids.next_ids(5, 3000) i),
		       (SELECT is_called FROM next_id_seq), snowflake_shard(),
		       (SELECT max_value FROM pg_sequences WHERE schemaname = 'ids' AND sequencename = 'own')}),
	'7|5|3000|f|1|9223372036854775807', 'no search path makes the functions use objects of other schemas');

# --- IDs in the JSON that PostgREST makes -----------------------------------

# the casts for which PostgREST looks, and its queries for rows and for new rows
$node->safe_psql('app', q{
	SET ROLE app_owner;
	CREATE TABLE songs (id snowflake PRIMARY KEY DEFAULT next_id(), album snowflake)});
is($node->safe_psql('app', q{
		SELECT count(*) FROM pg_cast JOIN pg_type s ON s.oid = castsource
		WHERE castcontext = 'i' AND castmethod = 'f' AND s.typtype = 'd' AND casttarget = 'json'::regtype
		  AND has_function_privilege('nobody', castfunc, 'execute');
		INSERT INTO songs (album)
		SELECT album FROM json_to_recordset('[{"album": "1671372309237077023"}, {"album": 17}]') AS _(album snowflake);
		SELECT json_agg(t) FROM (SELECT snowflake_to_json(album) AS album FROM songs ORDER BY id) t}),
	qq{1\n[{"album":"1671372309237077023"}, \n {"album":"17"}]},
	'IDs are strings in JSON that is made as by PostgREST');

# --- what a call costs -------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE bench');
like($node->safe_psql('bench', "SET client_min_messages = error;\n\\i bench/portable.sql"),
	qr/^portable\.next_id\(5\)\|\d+\|/m, 'bench/portable.sql measures a call');

$node->stop;
done_testing();
