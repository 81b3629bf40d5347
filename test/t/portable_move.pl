# The scripts of doc/portable.md move a database from the portable version to the extension, and
# back, as its owner, who is no superuser.  Defaults, columns, the shard, and the order of IDs are
# taken over, and no table is rewritten.  A script that fails has changed nothing.

use SnowflakeTest;

# where the document's commands find the scripts
chdir "$top" or die "chdir: $!";
my $node = server_in_utc('move');
my ($to_extension, $from_extension) = map { $_->{code} } blocks_in('doc/portable.md', 'Move to the extension, and back');

$node->safe_psql('postgres', 'CREATE ROLE mallory; CREATE ROLE app_owner LOGIN IN ROLE mallory; CREATE DATABASE app OWNER app_owner');
local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGUSER => 'app_owner');
$node->safe_psql('app', 'CREATE SCHEMA "My IDs"; ALTER DATABASE app SET search_path = "My IDs", public');
$node->safe_psql('app', "SET client_min_messages = error;\n\\i portable/snowflake.sql");
$node->safe_psql('app', q{
	SELECT snowflake_set_shard(55);
	CREATE SEQUENCE views_id_seq;
	SELECT snowflake_alter_sequence('views_id_seq');
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
	CREATE TABLE public."the views" ("the id" bigint DEFAULT next_id(snowflake_shard(), 'views_id_seq'));
	CREATE TABLE albums (id snowflake PRIMARY KEY DEFAULT next_id(7));
	CREATE TABLE songs (id snowflake PRIMARY KEY DEFAULT next_id(), album snowflake REFERENCES albums);
	CREATE TABLE logs (id snowflake DEFAULT next_id(), kind text) PARTITION BY LIST (kind);
	CREATE TABLE logs_a PARTITION OF logs FOR VALUES IN ('a');
	INSERT INTO albums DEFAULT VALUES;
	INSERT INTO songs (album) SELECT id FROM albums;
	CREATE FUNCTION snowflake_of_user(id bigint) RETURNS bigint LANGUAGE sql RETURN id;
	CREATE FUNCTION next_id(of text) RETURNS text LANGUAGE sql RETURN of});

# The rows of each default by their shards, and the functions that the defaults call
my $inserts = q{
	INSERT INTO photos (title) VALUES ('') RETURNING 'photos ' || snowflake_shard(id);
	INSERT INTO public."the views" DEFAULT VALUES RETURNING 'views ' || snowflake_shard("the id");
	INSERT INTO albums DEFAULT VALUES RETURNING 'albums ' || snowflake_shard(id);
	INSERT INTO songs DEFAULT VALUES RETURNING 'songs ' || snowflake_shard(id);
	INSERT INTO logs (kind) VALUES ('a') RETURNING 'logs ' || snowflake_shard(id)};
my $inserted = join "\n", 'photos 55', 'views 55', 'albums 7', 'songs 55', 'logs 55';
my $callees = q{SELECT prolang = (SELECT oid FROM pg_language WHERE lanname = 'c'), count(DISTINCT objid)
	FROM pg_depend JOIN pg_proc ON pg_proc.oid = refobjid
	WHERE classid = 'pg_attrdef'::regclass AND refclassid = 'pg_proc'::regclass AND proname = 'next_id' GROUP BY 1};
my $objects = q{SELECT string_agg(format('%s %s', oid, pronamespace), ' ' ORDER BY oid) FROM pg_proc
	WHERE pronamespace >= 16384};
my $files = q{SELECT relname, pg_relation_filenode(oid) FROM pg_class
	WHERE relkind IN ('r', 'i') AND relnamespace >= 16384 ORDER BY 1};
my $files_before = $node->safe_psql('app', $files);

# A script that fails
sub fails
{
	my ($script, $prepare, $error, $name) = @_;
	$node->safe_psql('app', $prepare);
	my $before = $node->safe_psql('app', $objects);
	ok(!IPC::Run::run([ 'sh', '-c', $script ], '>', \my $printed, '2>', \my $errors), "a script fails beside $name");
	like($errors, $error, '... and says why');
	is($node->safe_psql('app', $objects), $before, '... and has changed nothing');
	is($node->safe_psql('app', $inserts), $inserted, '... and rows can be inserted');
	return;
}

# A script that moves the database, to functions in C or in SQL
sub moves
{
	my ($script, $in_c) = @_;
	my $last = value_of($node->safe_psql('app', 'SELECT next_id(8191)'));
	my $view = $node->safe_psql('app', 'SELECT max("the id") FROM public."the views"');
	ok(IPC::Run::run([ 'sh', '-c', $script ], '>', \my $printed, '2>', \my $errors), "this moves the database: $script");
	is("$printed$errors", '', '... and prints nothing');
	cmp_ok($node->safe_psql('app', 'SELECT last_value FROM next_id_seq'), '>', $last,
		'the new sequence begins above the old IDs');
	is($node->safe_psql('app', $callees), "$in_c|6", 'all defaults call the new functions');
	is($node->safe_psql('app', $inserts), $inserted, 'rows have the shards that they had before');
	cmp_ok($node->safe_psql('app', 'SELECT max("the id") FROM public."the views"'), '>', $view,
		'an own sequence goes on');
	is($node->safe_psql('app', q{SELECT DISTINCT to_json(id)::text ~ '"' FROM songs}), $in_c,
		'a column has the type of the new version');
	is($node->safe_psql('app', $files), $files_before, 'no table or index has been rewritten');
	is($node->safe_psql('app', q{SELECT snowflake_of_user(17), next_id('x'::text)}), '17|x',
		'functions of the user with like names stay');
	is($node->safe_psql('app', q{SELECT to_regnamespace('snowflake_portable')}), '', 'nothing is left in a second schema');
	$node->safe_psql('app', 'SELECT snowflake_set_shard(56)');
	is($node->safe_psql('app', 'SELECT snowflake_shard(next_id())'), 56, 'the owner can set another shard');
	$node->safe_psql('app', 'SELECT snowflake_set_shard(55)');
	return;
}

my $view = 'CREATE VIEW times AS SELECT snowflake_timestamp(id) FROM photos';
my $on_view = qr/^DETAIL:  view times depends on function \S*snowflake_timestamp\(bigint\)$/m;
# A script changes nothing of another owner than the caller, because code of this owner would run
# as the caller, who is a member of the owner or a superuser.
sub leaves_other_owners
{
	my ($script) = @_;
	my @superuser = (extra_params => [ '-U', 'postgres' ]);
	my $run = sub {
		my ($user) = @_;
		my $before = $node->safe_psql('app', $objects);
		local $ENV{PGUSER} = $user;
		ok(!IPC::Run::run([ 'sh', '-c', $script =~ s/psql/psql -v VERBOSITY=verbose/r ], '2>', \my $errors), "a script fails for $user");
		is($node->safe_psql('app', $objects), $before, '... and has changed nothing');
		return $errors;
	};

	$node->safe_psql('app', q{
		CREATE SCHEMA mine AUTHORIZATION mallory;
		GRANT USAGE ON SCHEMA "My IDs" TO mallory;
		SET SESSION AUTHORIZATION mallory;
		CREATE FUNCTION mine.hostile(what text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
			IF current_user <> 'mallory' THEN RAISE LOG 'hostile: % as %', what, current_user; END IF;
			RETURN true; END $$;
		CREATE DOMAIN mine.dom AS int CHECK (mine.hostile('domain'))}, @superuser);
	foreach my $case (
		[ 'a default', q{CREATE TABLE mine."T" ("I" bigint DEFAULT next_id() + cardinality('{1}'::mine.dom[]))},
			'ALTER TABLE ONLY mine."T" ALTER "I" DROP DEFAULT' ],
		[ 'a constraint and an index', q{CREATE TABLE mine."T" ("I" snowflake, CHECK ("I" > 0 AND mine.hostile('check')));
			CREATE INDEX ON mine."T" ((mine.hostile("I"::text)))}, 'ALTER TABLE mine."T" ALTER "I" TYPE bigint' ],
		[ 'a partition', q{RESET SESSION AUTHORIZATION;
			CREATE TABLE mine."T" PARTITION OF "My IDs".logs FOR VALUES IN ('t');
			ALTER TABLE mine."T" OWNER TO mallory;
			SET SESSION AUTHORIZATION mallory;
			ALTER TABLE mine."T" ADD CHECK (id > 0 AND mine.hostile('check'))}, undef ])
	{
		my ($what, $create, $remedy) = @$case;
		my $as_mallory = 'SET SESSION AUTHORIZATION mallory;';
		$node->safe_psql('app', "$as_mallory $create", @superuser);
		my $errors = $run->('app_owner');
		like($errors, qr/ERROR:  42501: table mine\."T" belongs to role mallory\nDETAIL:  \N* mallory with the rights of app_owner\.\n/,
			"... which names the owner of a table with $what");
		like($run->('postgres'), qr/ERROR:  42501: .*\nDETAIL:  .* app_owner, mallory with the rights of postgres\.\n/,
			'... and all owners to a superuser');
		if ($remedy)
		{
			like($errors, qr/^HINT:  .*\n\(as mallory\) \Q$remedy;\E\n/m, '... and the remedy');
			$node->safe_psql('app', "$as_mallory $remedy; RESET SESSION AUTHORIZATION; $view", @superuser);
			like($run->('app_owner'), $on_view, '... after which the table does not stop the script');
			$node->safe_psql('app', 'DROP VIEW times', @superuser);
		}
		$node->safe_psql('app', 'DROP TABLE mine."T"', @superuser);
	}
	$node->safe_psql('app', 'DROP SCHEMA mine CASCADE', @superuser);
	unlike(slurp_file($node->logfile), qr/LOG:  hostile: /, 'no code of another owner has run');
	return;
}

my @open = (q{GRANT CREATE ON SCHEMA "My IDs" TO PUBLIC}, qr/ERROR:  others could choose what names in schema "My IDs" mean$/m, 'roles that may create in the schema');
fails($to_extension, @open);
$node->safe_psql('app', q{REVOKE CREATE ON SCHEMA "My IDs" FROM PUBLIC});
fails($to_extension, $view, $on_view, 'a view that calls a function');
$node->safe_psql('app', 'DROP VIEW times');
leaves_other_owners($to_extension);
moves($to_extension, 't');

fails($from_extension, @open);
$node->safe_psql('app', q{REVOKE CREATE ON SCHEMA "My IDs" FROM PUBLIC});
fails($from_extension, $view, $on_view, 'a view that calls a function');
fails($from_extension, q{DROP VIEW times;
		CREATE SEQUENCE other;
		SELECT snowflake_alter_sequence('other', 'twitter')},
	qr/ERROR:  sequence other serves layout "twitter"$/m, 'a sequence of another layout');
$node->safe_psql('app', 'DROP SEQUENCE other');
leaves_other_owners($from_extension);
moves($from_extension, 'f');

# without a shard, and with the extension for operators
$node->safe_psql('app', 'SELECT snowflake_set_shard(NULL)');
ok(IPC::Run::run([ 'sh', '-c', $to_extension ], '2>', \my $errors), 'a database without a shard is moved');
is($errors, '', '... with no message');
like(sqlstate_of($node, 'SELECT next_id()', dbname => 'app'), qr/^55000/, '... and has none afterwards');
$node->safe_psql('app', 'CREATE EXTENSION snowflake_admin');
ok(IPC::Run::run([ 'sh', '-c', $from_extension ], '2>', \$errors), '... and back');
is($errors, '', '... with no message');
like(sqlstate_of($node, 'SELECT next_id()', dbname => 'app'), qr/^55000/, '... and has none then either');

$node->stop;
done_testing();
