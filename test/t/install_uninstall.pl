# The section "Uninstall" of doc/migrating.md keeps columns of the type snowflake, and
# replaces functions and defaults.  A statement that is about to call next_id() says that
# the extension has been dropped.

use SnowflakeTest;

my $node = server_in_utc('uninstall');

# --- leaving by the document --------------------------------------------------

my ($times, $identities, $decoded) = map { $_->{code} } blocks_in('doc/migrating.md', 'Uninstall');
$node->sql('CREATE DATABASE kept');
$node->safe_psql('kept', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE albums (id snowflake PRIMARY KEY DEFAULT next_id(1));
	CREATE TABLE photos (id snowflake PRIMARY KEY DEFAULT next_id(1), album_id snowflake REFERENCES albums, n int,
		created_at timestamptz, taken_at timestamp);
	CREATE TABLE "Stories" ("the id" bigint PRIMARY KEY DEFAULT next_id(1), n int);
	CREATE SCHEMA own;
	CREATE FUNCTION own.next_id(n integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1';
	CREATE TABLE foreigners (id bigint DEFAULT own.next_id(1));
	INSERT INTO albums SELECT FROM generate_series(1, 10);
	INSERT INTO photos (album_id, n) SELECT id, 17 FROM albums;
	INSERT INTO photos (id, n) VALUES (18, 18);
	INSERT INTO photos (n, created_at, taken_at) VALUES (19, '2026-11-24Z', '2026-11-24');
	CREATE ROLE app LOGIN;
	GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO app});

# The times of rows: without a time of their own, of before the move, and with their own time
my ($without_zone) = slurp_file("$top/doc/migrating.md") =~ /without time zone, write `(snowflake_timestamp[^`]+)`/;
$node->safe_psql('kept', $times);
$node->safe_psql('kept', q{SET timezone = 'Asia/Tokyo';}
	. $times =~ s/created_at/taken_at/gr =~ s/snowflake_timestamp\(id\)/$without_zone/r);
is($node->safe_psql('kept', q{
		SELECT n, count(created_at), bool_and(created_at = snowflake_timestamp(id)),
			bool_and(taken_at AT TIME ZONE 'UTC' = snowflake_timestamp(id))
		FROM photos GROUP BY n ORDER BY n}),
	join("\n", '17|10|t|t', '18|0||', '19|1|f|f'), 'rows without a time get that of their IDs');

my $rows = q{SELECT 'album', a::text FROM albums a UNION ALL SELECT 'photo', p::text FROM photos p ORDER BY 1, 2};
my $before = $node->safe_psql('kept', $rows);
my $files = q{SELECT relname, pg_relation_filenode(oid) FROM pg_class
	WHERE relname IN ('albums', 'albums_pkey', 'photos', 'photos_pkey') ORDER BY 1};
my $files_before = $node->safe_psql('kept', $files);

# Expressions in place of the functions, for times of all years and of three milliseconds
my ($expressions) = $decoded =~ /SELECT (.*) FROM photos;/s;
$expressions =~ s/now\(\)/t/g;
is($node->safe_psql('kept', qq{
		SELECT bool_and(
			($expressions) IS NOT DISTINCT FROM (snowflake_timestamp(id), snowflake_shard(id), snowflake_min_id(t)))
		FROM (SELECT '2011-09-01Z'::timestamptz + random() * interval '34 years' FROM generate_series(1, 3000)
			UNION ALL SELECT '2026-11-24 12:00:00.001Z'::timestamptz + n * interval '1 us'
			FROM generate_series(-1500, 1500) AS n) AS made (t),
			LATERAL (SELECT snowflake_id(t, (random() * 8191)::int, (random() * 1023)::int)) AS ids (id)}),
	't', 'expressions are equal to the functions');

# Identities in place of next_id()
$node->safe_psql('kept', $identities);
is($node->safe_psql('kept', 'SELECT count(*) FROM snowflake_uses()'), 0, 'nothing makes IDs any more');
my ($ret, $stdout, $refusal) = $node->psql('kept', 'DROP EXTENSION snowflake_admin; DROP EXTENSION snowflake');
is(join("\n", $refusal =~ /^(?:DETAIL:  )?(.*) depends on type snowflake$/mg), 'column album_id of table photos',
	'the other column of the type is named');
$node->safe_psql('kept', 'ALTER TABLE photos ALTER album_id TYPE bigint; DROP EXTENSION snowflake');
is($node->safe_psql('kept', $files), $files_before, 'the files of tables and indexes are what they were');
is($node->safe_psql('kept', $rows), $before, 'IDs stay without the extension');
foreach my $case ([ 'albums', 'id' ], [ '"Stories"', '"the id"' ])
{
	my ($table, $key) = @$case;
	my $insert = "WITH largest AS (SELECT coalesce(max($key), 0) AS id FROM $table)
		INSERT INTO $table DEFAULT VALUES RETURNING $key > (SELECT id FROM largest)";
	is($node->safe_psql('kept', $insert, extra_params => [ '-U', 'app' ]), 't',
		"a role that inserts into $table gets a larger ID without the extension");
}
is($node->safe_psql('kept', 'INSERT INTO foreigners DEFAULT VALUES RETURNING id'), 1,
	'a default that calls another next_id() stays');

# --- dropped while a statement runs ---------------------------------------------

# Nothing locks a function that a statement calls.  In the defaults of COPY, the planner puts another
# function in the place of next_id(), also where it comes from the text of a function, on which
# nothing depends.
$node->sql(q{
	CREATE TABLE gate ();
	CREATE FUNCTION wait_at_gate() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM FROM gate; RETURN 1; END $$;
	CREATE TABLE calls (call text);
	CREATE FUNCTION call() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE NEW.call; RETURN NULL; END $$;
	CREATE TRIGGER call BEFORE INSERT ON calls FOR EACH ROW EXECUTE FUNCTION call();
	SET check_function_bodies = off;
	CREATE FUNCTION five() RETURNS bigint LANGUAGE sql AS 'SELECT next_id(5)';
	CREATE TABLE copied (gate bigint DEFAULT wait_at_gate(), id bigint DEFAULT five(), n int)});
my $no_function = qr/ERROR:  42883: function with OID \d+ does not exist/;
my $no_sequence = qr/ERROR:  42P01: sequence (with OID \d+|"next_id_seq" of extension "snowflake") does not exist/;

foreach my $case (
	[ q{COPY copied (n) FROM PROGRAM 'echo 1'}, $no_function ],
	[ q{COPY calls FROM PROGRAM 'echo "EXECUTE larger (wait_at_gate(), next_id(5))"'}, $no_sequence ],
	[ q{COPY calls FROM PROGRAM 'echo "EXECUTE larger (wait_at_gate(), next_id())"'}, $no_sequence ],
	[ 'SELECT wait_at_gate(), next_id(5)', $no_sequence ],
	[ 'SELECT wait_at_gate(), next_id()', $no_sequence ])
{
	my ($statement, $error) = @$case;
	my $caller = $node->background_psql('postgres', on_error_stop => 0);
	my $other = $node->background_psql('postgres');

	$node->sql('CREATE EXTENSION snowflake');
	$caller->query_safe(q{
		PREPARE larger (bigint, bigint) AS SELECT $1 > $2;
		SET snowflake.shard = 5;
		SELECT next_id(5), next_id()});
	$other->query_safe('BEGIN; LOCK TABLE gate');
	send_sql($caller, "\\set VERBOSITY verbose\n$statement;\n\\echo done");
	$node->poll_query_until('postgres', 'SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)')
	  or die 'the statement does not wait';
	$other->query_safe('DROP EXTENSION snowflake; COMMIT');
	session_prints($caller, qr/done/);
	like($caller->{stderr}, $error, "$statement says what has been dropped");
	$_->quit foreach $caller, $other;
}

done_testing();
