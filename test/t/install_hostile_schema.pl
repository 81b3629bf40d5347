# Installing where others have made objects first: functions and operators with every
# name that the scripts call, of which some fit these calls better than those that are
# meant.  None of them runs, neither in CREATE EXTENSION nor in what it leaves behind, and
# nothing depends on one.  An object in the place of one of the extension's own is an error.

use SnowflakeTest;

my $node = server_in_utc('hostile');
$node->sql('CREATE ROLE stranger; CREATE DATABASE clean');
$node->safe_psql('clean', 'CREATE EXTENSION snowflake_admin CASCADE');

# The names and arguments of the extensions' own functions, as rows
my $own = join ', ', split /\n/, $node->safe_psql('clean', q{
	SELECT format('(%L, %L, %L)', proname, array_to_string(proargtypes::regtype[], ', '), pronamespace::regnamespace)
	FROM pg_extension JOIN pg_depend ON refobjid = pg_extension.oid AND deptype = 'e'
	JOIN pg_proc ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid WHERE extname ~ '^snowflake' ORDER BY 1});

# The names of the functions that the scripts call, and their operators, with those that
# words of SQL stand for
my $code = join '', map { slurp_file($_) } glob "$top/snowflake--*.sql $top/admin/*.sql $top/admin/*/*.sql";
$code =~ s/--.*//g;
my %called = map { lc() => 1 } $code =~ /\b([a-z_]\w*)\s*\(/gi;
my $functions = join ' ', sort keys %called;
my $operators = join ' ', '= <> < <= > >= ~~ !~~ ~~* !~~*', $code =~ m{[-+*/<>=~!@#%^&|?`]+}g;

# --- what a stranger makes ---------------------------------------------------------

# Fill the schema public with functions of these names for one to three arguments, and
# with operators; or, for 'VARIADIC', with functions whose last parameter is a variadic
# array.  Each writes into the server's log as whom it runs, whatever becomes of the
# statement.
sub fill
{
	my ($database, $variadic) = @_;

	$node->sql("CREATE DATABASE $database");
	$node->safe_psql($database, <<EOS);
GRANT CREATE ON SCHEMA public TO PUBLIC;
CREATE TEMP TABLE own (name, arguments, schema) AS VALUES $own;
GRANT SELECT ON own TO stranger;
SET SESSION AUTHORIZATION stranger;
SET search_path = pg_catalog;
SET check_function_bodies = off;
DO \$do\$
DECLARE
	few text[] := ARRAY['integer', 'bigint', 'text', 'name', 'oid', 'regclass', 'regprocedure'];
	types text[] := few || ARRAY['boolean', 'text[]', '"char"', 'smallint', 'numeric', 'double precision', 'regtype',
		'timestamp with time zone', 'interval', 'record', 'bigint[]', 'oid[]', 'name[]', 'regclass[]', 'anyelement', 'anyarray'];
	body text := E'\$\$BEGIN RAISE LOG \\'a hostile object runs as %%: %%\\', current_user, %L; RETURN NULL; END\$\$';
	object record;
	operator text;
	signature text;
BEGIN
	-- A hostile object returns what is mostly returned by those of its name, and fits there.
	FOR object IN
		SELECT proname AS name, types, max(pronargs) > 2 OR bool_or(provariadic <> 0) AS three,
			mode() WITHIN GROUP (ORDER BY CASE typtype WHEN 'p' THEN 'text' ELSE t.oid::regtype::text END) AS result
		FROM pg_proc JOIN pg_type AS t ON t.oid = prorettype
		WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY (string_to_array('$functions', ' '))
		GROUP BY proname
		UNION SELECT name, few, max(schema) <> 'snowflake_admin', 'bigint' FROM pg_temp.own
			WHERE name NOT IN (SELECT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace) GROUP BY name
	LOOP
		FOR signature IN
			SELECT a FROM unnest(object.types) AS a
			UNION ALL SELECT concat_ws(', ', a, b) FROM unnest(object.types) AS a, unnest(object.types) AS b
			UNION ALL SELECT concat_ws(', ', a, b, c) FROM unnest(few) AS a, unnest(few) AS b, unnest(few) AS c
				WHERE object.three
			EXCEPT SELECT arguments FROM pg_temp.own WHERE name = object.name
		LOOP
			CONTINUE WHEN '$variadic' <> '' AND signature !~ '(\\[\\]|anyarray)\$';
			EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS ' || body, object.name,
				regexp_replace(signature, '(\\w+\\[\\]|anyarray)\$', '$variadic \\1'), object.result,
				object.name || '(' || signature || ')');
		END LOOP;
	END LOOP;
	IF '$variadic' <> '' THEN
		RETURN;
	END IF;
	FOR object IN
		WITH operators AS (
			SELECT oprname AS name,
				mode() WITHIN GROUP (ORDER BY CASE typtype WHEN 'p' THEN 'text' ELSE t.oid::regtype::text END) AS result
			FROM pg_operator JOIN pg_type AS t ON t.oid = oprresult
			WHERE oprname = ANY (string_to_array('$operators', ' ')) GROUP BY oprname)
		SELECT 'operator of ' || result AS function, result, array_agg(name) AS names FROM operators GROUP BY result
	LOOP
		FOR signature IN SELECT concat_ws(', ', a, b) FROM unnest(types) AS a, unnest(types || ARRAY[NULL]) AS b LOOP
			EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS ' || body,
				object.function, signature, object.result, 'operator of ' || signature);
			FOR operator IN SELECT unnest(object.names) LOOP
				EXECUTE format('CREATE OPERATOR public.%s (FUNCTION = public.%I, %s)', operator, object.function,
					CASE WHEN signature ~ ',' THEN regexp_replace(signature, '(.*), ', 'LEFTARG = \\1, RIGHTARG = ')
						ELSE 'RIGHTARG = ' || signature END);
			END LOOP;
		END LOOP;
	END LOOP;
	FOR object IN SELECT relname AS name FROM pg_class
		WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
	LOOP
		EXECUTE format('CREATE TABLE public.%I ()', object.name);
	END LOOP;
	FOREACH signature IN ARRAY '{bool,int4,int8,text,name,oid,regclass,regprocedure,timestamptz,interval}'::text[] LOOP
		EXECUTE format('CREATE DOMAIN public.%I AS text CHECK (false)', signature);
	END LOOP;
END
\$do\$;
EOS
}

# Beside each function of snowflake, make others in which one or two arguments have other types.
sub overload_snowflake
{
	my ($database) = @_;

	$node->safe_psql($database, q{
		SET SESSION AUTHORIZATION stranger;
		SET search_path = pg_catalog;
		SET check_function_bodies = off;
		WITH overloads AS (
			SELECT DISTINCT format('%I.%I(%s)', nspname, proname, array_to_string(ARRAY(
				SELECT CASE n WHEN i THEN a WHEN j THEN b ELSE format_type(type, NULL) END
				FROM unnest(proargtypes) WITH ORDINALITY AS argument (type, n) ORDER BY n), ', ')) AS signature
			FROM pg_extension JOIN pg_depend ON refobjid = pg_extension.oid AND deptype = 'e'
			JOIN pg_proc ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid
			JOIN pg_namespace ON pg_namespace.oid = pronamespace,
			generate_series(1, pronargs) AS i, generate_series(i, pronargs) AS j,
			unnest('{integer,numeric,text,name,oid}'::text[]) AS a, unnest('{integer,numeric,text,name,oid}'::text[]) AS b
			WHERE extname = 'snowflake' AND NOT proargtypes::oid[] && '{internal,cstring}'::regtype[]::oid[])
		SELECT format('CREATE FUNCTION %s RETURNS bigint LANGUAGE plpgsql AS '
			'$$BEGIN RAISE LOG ''a hostile object runs as %%: %%'', current_user, %L; RETURN NULL; END$$', signature, signature)
		FROM overloads WHERE to_regprocedure(signature) IS NULL \gexec});
}

# What hostile objects have written into the log since the last time
my $log_end = 0;

sub hostile_objects
{
	my $log = slurp_file($node->logfile, $log_end);
	$log_end += length $log;
	my %said = map { $_ => 1 } $log =~ /LOG:  (a hostile object runs as .*)/g;
	return join "\n", sort keys %said;
}

fill('arrays', '');
fill('lists', 'VARIADIC');
$node->safe_psql('arrays', q{SELECT public.format('%s'::text, 'x'::name), 1::oid OPERATOR(public.=) 1::regclass});
is(hostile_objects(), "a hostile object runs as postgres: format(text, name)\n"
	. 'a hostile object runs as postgres: operator of oid, regclass', 'the log shows which hostile objects run (control)');

# --- what is called ------------------------------------------------------------------

# Values for parameters of these names or types, where a call below gives none.  All that
# have a default get it explicitly: a call with fewer arguments may be one of a stranger's
# function.
my $id = $node->safe_psql('clean', q{SELECT snowflake_id('2026-11-27Z', 5, 1)});
my %value = (shard => 5, count => 2, sequence_number => 1, key => 1, sequence => 'app.used', id => $id,
	encoding => 'base62', encoded => $node->safe_psql('clean', "SELECT snowflake_to_text($id)"),
	'timestamp with time zone' => '2026-11-27Z', 'timestamp without time zone' => '2026-11-27',
	snowflake_layout => 'instagram', map { $_ => 7 } qw(integer smallint numeric snowflake), 'double precision');

# What each procedure and function of snowflake_admin needs, in an order in which each has
# something to do
my @admin_calls = (
	[ 'snowflake_widen', tab => 'app.users', col => 'id', dry_run => 'true' ],
	[ 'snowflake_widen', tab => 'app.users', col => 'id' ],
	[ 'snowflake_widen_indexes', tab => 'app.users', col => 'id' ],
	[ 'snowflake_keys' ],
	[ 'snowflake_move', tab => 'app.photos', shard => 5, own_sequence => 'true', dry_run => 'true' ],
	[ 'snowflake_move', tab => 'app.photos', shard => 5, own_sequence => 'true', dry_run => 'false' ],
	[ 'snowflake_move_schema', schema => 'app', shard => 5, dry_run => 'false' ],
	[ 'snowflake_uses' ],
	[ 'snowflake_renumber', tab => 'app.photos', shard => 5, new_shard => 6, dry_run => 'true' ],
	[ 'snowflake_renumber', tab => 'app.photos', shard => 5, new_shard => 6, dry_run => 'false' ],
	[ 'snowflake_renumber_schema', schema => 'app', shard => 6, new_shard => 7, dry_run => 'false' ],
	[ 'snowflake_move_back', tab => 'app.photos', dry_run => 'false' ],
	[ 'snowflake_partition', tab => 'app.events', unit => 'day', dry_run => 'true' ],
	[ 'snowflake_partition', tab => 'app.events', unit => 'day', dry_run => 'false' ],
	[ 'snowflake_make_partitions', parent => 'app.events', ahead => '9 days', dry_run => 'false' ],
	[ 'snowflake_partitions', parent => 'app.events' ],
	[ 'snowflake_drop_partitions', parent => 'app.events', older_than => '1 day', dry_run => 'false' ],
	[ 'snowflake_check' ],
	[ 'snowflake_set_back', sequence => 'app.ahead', dry_run => 'true' ],
	[ 'snowflake_set_back', sequence => 'app.ahead', dry_run => 'false' ],
	[ 'snowflake_move_back_schema', schema => 'app', dry_run => 'false' ]);
my $tables = q{
	SET search_path = pg_catalog;
	CREATE SCHEMA app;
	CREATE SEQUENCE app.used MAXVALUE 1125899906841599;
	CREATE SEQUENCE app.ahead MAXVALUE 1125899906841599;
	SELECT setval('app.ahead'::regclass,
		((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 + 3600000) * 1024);
	CREATE TABLE app.photos (id bigserial PRIMARY KEY, n integer);
	CREATE TABLE app.users (id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY, n integer);
	CREATE TABLE app.comments (id bigserial PRIMARY KEY, n integer,
		user_id integer REFERENCES app.users, photo_id bigint REFERENCES app.photos);
	CREATE INDEX ON app.comments (user_id);
	CREATE INDEX ON app.comments (photo_id);
	CREATE TABLE app.events (id bigserial PRIMARY KEY, n integer)};
my $rows = q{
	SET search_path = pg_catalog;
	INSERT INTO app.photos (n) VALUES (1);
	INSERT INTO app.users (n) VALUES (1);
	INSERT INTO app.comments (n, user_id, photo_id) SELECT 1, u.id, p.id FROM app.users AS u, app.photos AS p;
	INSERT INTO app.events (n) VALUES (1);
	COPY app.events (n) FROM PROGRAM 'echo 1'};

# Members of the extensions, and what PostgreSQL makes with them, as array types
my $members = q{
	WITH RECURSIVE members (classid, objid) AS (
		SELECT classid, objid FROM pg_depend JOIN pg_extension ON refobjid = pg_extension.oid
		WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND extname ~ '^snowflake'
		UNION SELECT d.classid, d.objid FROM members JOIN pg_depend AS d ON refclassid = members.classid
			AND refobjid = members.objid AND deptype IN ('a', 'i'))};

# Call all functions of snowflake that SQL can call, then others.  Returns the errors, and
# what is never called.
sub call_everything
{
	my ($database, @calls) = @_;
	my (%functions, %called, @errors);

	foreach (split /\n/, $node->safe_psql($database, q{
		SET search_path = pg_catalog;
		SELECT proname, extname, prokind, format('%I.%I', nspname, proname), array_to_string(ARRAY(
			SELECT concat_ws(':', coalesce(proargnames[n], ''), format_type(type, NULL),
				pg_get_function_arg_default(p.oid, n::integer))
			FROM unnest(proargtypes) WITH ORDINALITY AS a (type, n) ORDER BY n), ';')
		FROM pg_extension JOIN pg_depend ON refobjid = pg_extension.oid AND deptype = 'e'
		JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND objid = p.oid
		JOIN pg_namespace AS n ON n.oid = pronamespace
		WHERE extname ~ '^snowflake' AND nspname <> 'snowflake_admin'
			AND NOT proargtypes::oid[] && '{internal,cstring}'::regtype[]::oid[] ORDER BY p.oid}))
	{
		my ($name, $extension, @function) = split /\|/;
		push @{ $functions{$extension}{$name} }, \@function;
	}
	my $call = sub {
		my ($name, %given) = @_;
		foreach (@{ $functions{snowflake}{$name} // $functions{snowflake_admin}{$name} })
		{
			my ($kind, $function, $parameters) = @$_;
			my $arguments = join ', ', map {
				my ($parameter, $type, $default) = split /:/, $_, 3;
				my $value = $given{$parameter} // (defined $default ? undef
					: $value{$parameter} // $value{ $type =~ s/.*\.//r } // die "no value for $_ of $name");
				defined $value ? "'$value'::$type" : $default } split /;/, $parameters // '';
			my ($status, undef, $error) = $node->psql($database, ($kind eq 'p' ? 'CALL ' : 'SELECT ')
				. "$function($arguments)" . ($kind eq 'w' ? ' OVER ()' : ''));
			push @errors, "$name: $error" if $status;
			$called{$name} = 1;
		} };
	$node->safe_psql($database, $tables);
	$call->($_) foreach 'snowflake_set_shard', sort keys %{ $functions{snowflake} };
	foreach (@calls)
	{
		$node->safe_psql($database, $rows);
		$call->(@$_);
	}
	return (join("\n", grep { !/^snowflake_backdated_id: .* needs a timestamp with time zone/ } @errors),
		join(' ', grep { !$called{$_} } map { sort keys %$_ } values %functions));
}

# --- where they are installed --------------------------------------------------------

foreach my $case (
	# what, by whom, where snowflake and snowflake_admin go, beside which functions
	[ 'in public by the owner of the database', 'stranger', 'public', 'public', 'arrays' ],
	[ 'in public by a superuser', 'postgres', 'public', 'public', 'arrays', @admin_calls ],
	[ 'in public beside variadic functions', 'postgres', 'public', 'public', 'lists', @admin_calls ],
	[ 'in public, but snowflake elsewhere', 'postgres', 'elsewhere', 'public', 'arrays' ],
	[ 'elsewhere, but snowflake in public', 'postgres', 'public', 'elsewhere', 'arrays' ])
{
	my ($what, $role, $schema, $admin_schema, $template, @calls) = @$case;
	my $database = 'hostile';

	$node->sql("DROP DATABASE IF EXISTS $database");
	$node->sql("CREATE DATABASE $database OWNER stranger TEMPLATE $template");
	hostile_objects();
	$node->safe_psql($database, 'CREATE SCHEMA elsewhere; GRANT ALL ON SCHEMA elsewhere TO PUBLIC');
	my @errors = map {
		# Temporary objects are found, too, but after all others.
		my (undef, undef, $error) = $node->psql($database, qq{
			SET SESSION AUTHORIZATION $role;
			CREATE TEMP SEQUENCE next_id_seq;
			CREATE TEMP TABLE pg_extension ();
			CREATE EXTENSION $_});
		overload_snowflake($database) if /^snowflake /;
		$error } "snowflake SCHEMA $schema", "snowflake_admin SCHEMA $admin_schema";
	is(join('', @errors), '', "the extensions are created $what");
	is(hostile_objects(), '', '... which runs nothing that a stranger has made');
	is($node->safe_psql($database, qq{
			SET search_path = pg_catalog;
			$members
			SELECT pg_describe_object(classid, objid, 0) || ': ' || pg_describe_object(refclassid, refobjid, refobjsubid)
			FROM members JOIN pg_depend USING (classid, objid), pg_identify_object(refclassid, refobjid, 0) AS o
			WHERE (refclassid, refobjid) NOT IN (SELECT classid, objid FROM members)
			AND o.schema IS DISTINCT FROM 'pg_catalog'
			AND refclassid NOT IN ('pg_extension'::regclass, 'pg_namespace'::regclass, 'pg_language'::regclass)
			ORDER BY 1}),
		'', '... and they depend on nothing that is neither theirs nor in pg_catalog');
	$node->safe_psql($database, 'ALTER EXTENSION snowflake SET SCHEMA public') if $schema ne 'public';
	my ($errors, $not_called) = call_everything($database, @calls);
	is($errors, '', '... their functions and procedures succeed');
	is(hostile_objects(), '', '... and run nothing that a stranger has made');
	is($not_called, '', '... none of them left out') if @calls;
	is($node->safe_psql($database, q{
			SET search_path = pg_catalog;
			SELECT pg_describe_object(classid, objid, objsubid) || ': ' || pg_describe_object(refclassid, refobjid, 0)
			FROM pg_depend LEFT JOIN pg_proc AS p ON refclassid = 'pg_proc'::regclass AND refobjid = p.oid
			LEFT JOIN pg_operator AS o ON refclassid = 'pg_operator'::regclass AND refobjid = o.oid
			WHERE 'stranger'::regrole IN (proowner, oprowner) AND classid <> 'pg_operator'::regclass ORDER BY 1}),
		'', '... nor leave anything behind that would');
}

# --- in the place of one of the extension's own ----------------------------------------

# Only superusers can make functions of internal or cstring, and shell types.
my @places = (
	[ 'snowflake', '42P07', 'SEQUENCE next_id_seq' ],
	[ 'snowflake', '42P07', 'VIEW next_id_seq AS SELECT 1' ],
	[ 'snowflake', '42723', q{PROCEDURE next_id(bigint) LANGUAGE sql AS ''} ],
	[ 'snowflake_admin', '42P06', 'SCHEMA snowflake_admin' ]);
foreach my $type ('snowflake', 'snowflake_layout')
{
	push @places, map { [ 'snowflake', '42710', $_ ] } "DOMAIN $type AS bigint", "TYPE $type AS (n integer)",
	  "TYPE $type AS ENUM ()", "TABLE $type (n integer)";
}
foreach (split /\n/, $node->safe_psql('clean', q{
	SELECT extname, format('FUNCTION %I(%s)', proname, array_to_string(proargtypes::regtype[], ', '))
	FROM pg_extension JOIN pg_depend ON refobjid = pg_extension.oid AND deptype = 'e'
	JOIN pg_proc ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid
	WHERE extname ~ '^snowflake' AND pronamespace = 'public'::regnamespace AND NOT proargtypes::oid[] && (CASE extname
		WHEN 'snowflake' THEN '{internal,cstring,snowflake,snowflake_layout}' ELSE '{}' END)::regtype[]::oid[]
	ORDER BY pg_proc.oid}))
{
	my ($extension, $function) = split /\|/;
	push @places, [ $extension, '42723', "$function RETURNS text LANGUAGE sql AS 'SELECT NULL'" ];
}
$node->sql('CREATE DATABASE places OWNER stranger');
foreach (@places)
{
	my ($extension, $code, $object) = @$_;
	my $required = $extension eq 'snowflake' ? '' : 'CREATE EXTENSION snowflake;';
	like(sqlstate_of($node, "SET SESSION AUTHORIZATION stranger; BEGIN; $required CREATE $object;\n"
			. "CREATE EXTENSION $extension", dbname => 'places'), qr/^$code .* already exists/,
		"$extension is not created beside this: $object");
}

$node->stop;
done_testing();
