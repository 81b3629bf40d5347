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
	'21|21', 'each function has a comment');

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

# --- where others have put objects, or could --------------------------------

$node->safe_psql('postgres', 'CREATE ROLE mallory; CREATE DATABASE hostile OWNER app_owner');
$node->safe_psql('hostile', q{
	CREATE SCHEMA mine AUTHORIZATION app_owner;
	GRANT USAGE, CREATE ON SCHEMA mine TO mallory});
my $install = slurp_file('portable/snowflake.sql');
my ($check) = $install =~ /^(DO \$\$.*?^END \$\$;\n)/ms or die 'no check';
is($check, slurp_file('portable/require_closed_schema.sql') =~ s/\A(--.*\n)*//r, 'all files have the same check');

# Install as a role that is no superuser.  Returns the SQLSTATE and the message.
sub installs
{
	my ($path) = @_;
	my (undef, undef, $error) = $node->psql('hostile',
		"\\set VERBOSITY verbose\nSET ROLE app_owner; SET search_path = $path; SET client_min_messages = error;\n$install",
		on_error_stop => 1);
	return $error;
}

my $unsafe = qr/ERROR:  42501: others could choose what names in schema mine mean\n/;
like(installs('mine'), qr/$unsafe
DETAIL:\ \ Role\ mallory\ may\ create\ objects\ in\ mine\.\n
HINT:\ \ As\ the\ owner\ of\ the\ schema:\ (REVOKE\ CREATE\ ON\ SCHEMA\ mine\ FROM\ mallory)\.\n/x, 'a schema in which another role may create is refused');

# Functions and operators that fit calls with arguments of like types better than those of
# pg_catalog or snowflake.sql do, where these are not called with exactly their own types
my $own = join ', ', map { "'$_'" } split /\n/, $node->safe_psql('app', q{
	SELECT format('%s(%s)', proname, array_to_string(proargtypes::regtype[], ','))
	FROM pg_proc WHERE proowner = 'app_owner'::regrole});
my %called = map { $_ => 1 } ($install =~ s/--.*//gr) =~ /\b([a-z_]+)\(/g;
my $called = join ', ', map { "'$_'" } sort keys %called;
$node->safe_psql('hostile', <<EOS);
SET SESSION AUTHORIZATION mallory;
SET check_function_bodies = off;
DO \$do\$
DECLARE
	types text[] := '{integer,bigint,text,name,oid,regclass,numeric,double precision,timestamp with time zone,interval}';
	few text[] := '{integer,bigint,text,regclass}';
	body text := E' LANGUAGE plpgsql AS \$\$BEGIN RAISE WARNING \\'hostile: %%\\', %L; RETURN NULL; END\$\$';
	object record;
	signature text;
	operator text;
BEGIN
	FOR object IN
		SELECT name, coalesce(max(format_type(prorettype, NULL)) FILTER (WHERE typtype <> 'p'), 'bigint') AS result
		FROM unnest(ARRAY[$called]) AS name LEFT JOIN pg_proc ON proname = name AND pronamespace = 'pg_catalog'::regnamespace
			LEFT JOIN pg_type ON pg_type.oid = prorettype
		GROUP BY name
	LOOP
		FOR signature IN
			SELECT a FROM unnest(types) AS a
			UNION ALL SELECT concat_ws(',', a, b) FROM unnest(types) AS a, unnest(types) AS b
			UNION ALL SELECT concat_ws(',', a, b, c) FROM unnest(few) AS a, unnest(few) AS b, unnest(few) AS c
			UNION ALL SELECT concat_ws(',', a, b, c, d) FROM unnest(few) AS a, unnest(few) AS b, unnest(few) AS c, unnest(few) AS d
				WHERE object.name = 'snowflake_take'
		LOOP
			CONTINUE WHEN format('%s(%s)', object.name, signature) IN ($own);
			EXECUTE format('CREATE FUNCTION mine.%I(%s) RETURNS %s' || body, object.name, signature, object.result, object.name);
		END LOOP;
	END LOOP;
	FOR object IN
		SELECT oprname AS name, CASE WHEN oprresult = 'boolean'::regtype THEN 'boolean' ELSE 'bigint' END AS result
		FROM pg_operator WHERE oprname = ANY ('{=,<>,<,<=,>,>=,+,-,*,/,%,&,|,<<,>>,||}') GROUP BY 1, 2
	LOOP
		FOR signature IN SELECT concat_ws(',', a, b) FROM unnest(types) AS a, unnest(types) AS b LOOP
			operator := format('operator of %s', object.result);
			EXECUTE format('CREATE OR REPLACE FUNCTION mine.%I(%s) RETURNS %s' || body, operator, signature, object.result, operator);
			CONTINUE WHEN to_regoperator(format('mine.%s(%s)', object.name, signature)) IS NOT NULL;
			EXECUTE format('CREATE OPERATOR mine.%s (FUNCTION = mine.%I, LEFTARG = %s, RIGHTARG = %s)',
				object.name, operator, split_part(signature, ',', 1), split_part(signature, ',', 2));
		END LOOP;
	END LOOP;
END
\$do\$;
EOS
$node->safe_psql('hostile', 'REVOKE CREATE ON SCHEMA mine FROM mallory');
like(installs('mine'), qr/$unsafe
DETAIL:\ \ Role\ mallory\ owns\ mine\.\S+\(.*\)\.\n
HINT:\ \ As\ the\ owner\ of\ the\ schema:\ DROP\ ROUTINE\ mine\.\S+\(.*\)\.\n/x, 'a schema with functions of another role is refused');
like(installs('mine, pg_catalog'), qr/ERROR:  3F000: pg_catalog is not the first schema to be searched\n/,
	'a search_path with pg_catalog in another place is refused');
is($node->safe_psql('hostile', 'SELECT count(*) FROM pg_class WHERE relnamespace = \'mine\'::regnamespace'), '0',
	'... and nothing is created');

# without the check
$install =~ s/\Q$check\E//;
is(installs('mine'), '', 'the names in the file are found beside hostile objects');
my (undef, $printed, $errors) = $node->psql('hostile', q{
	\set ON_ERROR_STOP 1
	SET search_path = mine;
	SET client_min_messages = warning;
	SELECT snowflake_set_shard(5::bigint) \gset
	SELECT next_id() AS id, next_id(7::bigint) AS other \gset
	CREATE SEQUENCE own MAXVALUE 1125899906841599;
	SELECT snowflake_alter_sequence('own'::regclass),
		snowflake_advance('own'::regclass, :id::bigint), next_id(5::bigint, 'own'::regclass) \gset
	SELECT pg_catalog.count(i) FROM next_ids(5::bigint, 3000::bigint) AS i;
	SELECT pg_catalog.count(i) FROM next_ids(5::bigint, 3000::bigint, 'own'::regclass) AS i;
	SELECT snowflake_shard(:id::bigint), snowflake_shard(:other::bigint), snowflake_sequence_number(1025::bigint),
		snowflake_id(snowflake_timestamp(:id::bigint), 5::bigint, 1::bigint) OPERATOR(pg_catalog./) 1000000000000000000,
		snowflake_max_id('-infinity'::timestamptz), snowflake_to_text(17::bigint, 'base62'::text), snowflake_to_json(17::snowflake),
		pg_catalog.array_agg(snowflake_fields) FROM snowflake_fields(17::bigint)});
is($errors, '', '... and the functions call none of these');
is($printed, "3000\n3000\n5|7|1|4|-1|0000000000H|\"17\"|{\"(timestamp,0)\",\"(shard,0)\",\"(sequence,17)\"}",
	'... and return what they should');
is($node->safe_psql('hostile', q{
		SELECT DISTINCT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend AS d
		LEFT JOIN pg_proc ON refclassid = 'pg_proc'::regclass AND pg_proc.oid = refobjid
		LEFT JOIN pg_operator ON refclassid = 'pg_operator'::regclass AND pg_operator.oid = refobjid
		JOIN pg_proc AS f ON d.classid = 'pg_proc'::regclass AND f.oid = d.objid AND f.proowner = 'app_owner'::regrole
		WHERE 'mallory'::regrole IN (pg_proc.proowner, oprowner)}), '', '... and depend on none');

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
