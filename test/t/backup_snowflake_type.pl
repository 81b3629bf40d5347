# Tables with the type snowflake belong to a role without superuser.  Dumps, logical
# replication, with text and binary, and postgres_fdw carry the type, and what PostgreSQL has
# learned of types since 16 works with it.  A clone of a subscriber lets go of the
# subscription as doc/administration.md says.

use SnowflakeTest;

my $node = server_in_utc('owner', '', allows_streaming => 'logical');
my $major = int($node->pg_version =~ s/\D.*//r);
$node->sql('CREATE ROLE app LOGIN CREATEDB; CREATE DATABASE app OWNER app');
my @as_app = (extra_params => [ '-U', 'app' ]);
my ($host, $port) = ($node->host, $node->port);

# --- a role without superuser ----------------------------------------------

$node->safe_psql('app', q{
	CREATE EXTENSION snowflake;
	CREATE DOMAIN photo_id AS snowflake CHECK (VALUE > 0);
	CREATE TABLE albums (id snowflake PRIMARY KEY DEFAULT next_id(5));
	CREATE TABLE photos (id snowflake PRIMARY KEY DEFAULT next_id(5), album snowflake REFERENCES albums,
		old bigint REFERENCES photos, seen snowflake[], best photo_id DEFAULT 1, CHECK (album > 0));
	CREATE INDEX ON photos USING brin (id);
	CREATE INDEX ON photos USING hash (album);
	CREATE INDEX ON photos USING gin (seen);
	CREATE VIEW newest AS SELECT max(id)::snowflake AS id FROM photos;
	CREATE FUNCTION title(snowflake) RETURNS text LANGUAGE sql AS 'SELECT $1::text';
	CREATE TABLE events (id snowflake PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2020-01-01Z'));
	CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM (snowflake_min_id('2020-01-01Z')) TO (MAXVALUE);
	INSERT INTO albums SELECT FROM generate_series(1, 10);
	INSERT INTO photos (album, seen) SELECT id, ARRAY[id, 17] FROM albums;
	INSERT INTO events SELECT FROM generate_series(1, 10);
	INSERT INTO events VALUES (17)}, @as_app);
my $rows = q{
	SELECT 'photo', p::text FROM photos p
	UNION ALL SELECT 'album', a::text FROM albums a
	UNION ALL SELECT tableoid::regclass::text, id::text FROM events
	UNION ALL SELECT 'newest', to_json(id)::text FROM newest ORDER BY 1, 2};
my $before = $node->safe_psql('app', $rows, @as_app);
is(() = $before =~ /\n/g, 31, 'a role without superuser has tables, views and partitions with the type');

# --- dumps ------------------------------------------------------------------

# A sequence that is ahead of the clock stands for a clock that was set back.
$node->safe_psql('app', setval_ahead('next_id_seq', '1 day'), @as_app);
my $last = $node->safe_psql('app', q{SELECT last_value FROM next_id_seq}, @as_app);
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
$node->command_ok([ 'pg_dump', '-U', 'app', '-Fc', '-f', $dump, 'app' ], 'a role without superuser dumps the tables');
$node->sql('CREATE DATABASE copy', @as_app);
$node->command_ok([ 'pg_restore', '-e', '-U', 'app', '-d', 'copy', $dump ],
	'a role without superuser restores the tables');
is($node->safe_psql('copy', $rows, @as_app), $before, 'a restored database has the same rows');
is($node->safe_psql('copy', 'SELECT last_value FROM next_id_seq', @as_app), $last,
	'a role without superuser restores next_id_seq');
# \restrict has a random word.
my ($original, $restored) =
  map { s/^\\(un)?restrict.*//mgr } map { (run_command([ 'pg_dump', '-U', 'app', $_ ]))[0] } 'app', 'copy';
is($restored, $original, 'a restored database has the same definitions');

# --- logical replication, between the type, itself and bigint ----------------

my @tables = ('same', 'from', 'to');
foreach my $case (
	[ 'publisher', 'snowflake', 'snowflake', 'bigint' ],
	[ 'subscriber', 'snowflake', 'bigint', 'snowflake' ])
{
	my ($database, @types) = @$case;

	$node->sql("CREATE DATABASE $database");
	$node->safe_psql($database, join '', 'CREATE EXTENSION snowflake; CREATE TABLE notes (n int PRIMARY KEY);',
		map { qq{CREATE TABLE "$tables[$_]" (id $types[$_] PRIMARY KEY, ids $types[$_]\[], n int);} } 0 .. 2);
}
$node->safe_psql('subscriber', 'ALTER TABLE notes ADD id snowflake DEFAULT next_id(6)');
$node->safe_psql('publisher', 'INSERT INTO notes SELECT generate_series(1, 100)');
sub changes
{
	my ($first) = @_;
	$node->safe_psql('publisher', join '', map { my $table = $_; qq{
		INSERT INTO "$table" SELECT 4000000000000000000 + i, ARRAY[i], i
			FROM generate_series(${first}::bigint, $first + 99) i;
		UPDATE "$table" SET n = -n WHERE id = 4000000000000000002 + $first;
		UPDATE "$table" SET id = id + 100000 WHERE id = 4000000000000000003 + $first;
		DELETE FROM "$table" WHERE id = 4000000000000000004 + $first;} } @tables);
}
my $all = join ' UNION ALL ', map { qq{SELECT '$_', t::text FROM "$_" t} } @tables;
changes(0);
$node->safe_psql('publisher',
	q{CREATE PUBLICATION p FOR ALL TABLES; SELECT pg_create_logical_replication_slot('s', 'pgoutput')});
$node->safe_psql('subscriber', "CREATE SUBSCRIPTION s CONNECTION 'host=$host port=$port dbname=publisher user=postgres'
	PUBLICATION p WITH (create_slot = false)");
$node->wait_for_subscription_sync($node, 's', 'subscriber');
foreach my $binary ('false', 'true')
{
	$node->safe_psql('subscriber', "ALTER SUBSCRIPTION s SET (binary = $binary)");
	changes($binary eq 'true' ? 2000 : 1000);
	$node->wait_for_catchup('s');
	is($node->safe_psql('subscriber', "$all ORDER BY 1, 2"), $node->safe_psql('publisher', "$all ORDER BY 1, 2"),
		"a subscription with binary = $binary carries IDs between snowflake and bigint");
}
my $notes = 'SELECT count(DISTINCT id), bool_and(snowflake_shard(id) = 6) FROM notes';
is($node->safe_psql('subscriber', $notes), '100|t', 'a subscriber makes an ID for each row if the publisher has none');

$node->backup('base');
my $clone = PostgreSQL::Test::Cluster->new('clone');
$clone->init_from_backup($node, 'base');
my ($options, $drop) = map { $_->{code} } blocks_in('doc/administration.md', 'Clones');
$clone->append_conf('postgresql.conf', join '', map { "$_\n" } $options =~ /-c (\w+=\S+?)"?(?= )/g);
$clone->start;
$clone->safe_psql('subscriber', $drop =~ s/\bs3\b/s/gr);
is($clone->sql('SELECT count(*) FROM pg_subscription'), 0, 'a clone of a subscriber drops its subscription');
$node->safe_psql('publisher', 'INSERT INTO notes VALUES (101)');
$node->wait_for_catchup('s');
is($node->safe_psql('subscriber', $notes), '101|t', 'the subscriber that was cloned has its slot and gets rows');
$clone->stop;
$node->safe_psql('subscriber', 'DROP SUBSCRIPTION s');
fails_with($node, 'CREATE PUBLICATION selected FOR TABLE same WHERE (id > 17)',
	qr/^0A000 invalid publication WHERE expression/, 'a publication cannot select rows by a column of the type',
	dbname => 'publisher');

# --- postgres_fdw -------------------------------------------------------------

$node->safe_psql('app', qq{
	CREATE EXTENSION postgres_fdw;
	CREATE SCHEMA plain;
	CREATE SCHEMA shipping;
	CREATE SERVER plain FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'publisher');
	CREATE SERVER shipping FOREIGN DATA WRAPPER postgres_fdw
		OPTIONS (host '$host', port '$port', dbname 'publisher', extensions 'snowflake');
	CREATE USER MAPPING FOR postgres SERVER plain;
	CREATE USER MAPPING FOR postgres SERVER shipping;
	IMPORT FOREIGN SCHEMA public LIMIT TO (same) FROM SERVER plain INTO plain;
	IMPORT FOREIGN SCHEMA public LIMIT TO (same, "to") FROM SERVER shipping INTO shipping;
	CREATE FOREIGN TABLE plain.as_bigint (id bigint, n int) SERVER plain
		OPTIONS (schema_name 'public', table_name 'same')});
my $id = '4000000000000002017';
foreach my $case (
	[ 'plain.same', 'Filter:' ],
	[ 'plain.as_bigint', 'Remote SQL: .* WHERE ' ],
	[ 'shipping.same', 'Remote SQL: .* WHERE ' ])
{
	my ($table, $filter) = @$case;

	foreach my $condition ("id = $id", "id BETWEEN $id AND '$id'", "id = ANY ('{17, $id}')")
	{
		my $plan = $node->safe_psql('app', "EXPLAIN (VERBOSE, COSTS OFF) SELECT n FROM $table WHERE $condition");
		like($plan, qr/$filter/, "$table: who looks at $condition");
		is($node->safe_psql('app', "SELECT n FROM $table WHERE $condition"), 2017,
			"$table: finds the row where $condition");
	}
}
is($node->safe_psql('app', q{
		INSERT INTO shipping.same VALUES (5, '{5}', 5); UPDATE shipping.same SET id = 6 WHERE id = 5;
		DELETE FROM plain.same WHERE id = 6 RETURNING to_json(id), ids}), '"6"|{5}',
			'rows are written through foreign tables');

# --- versions of PostgreSQL ---------------------------------------------------

SKIP:
{
	skip 'input errors cannot be asked for before PostgreSQL 16', 3 if $major < 16;
	is($node->safe_psql('app', q{SELECT text FROM unnest('{x, "", 5.0, 9223372036854775808, 17}'::text[]) AS text
			WHERE pg_input_is_valid(text, 'snowflake')}), '17', 'pg_input_is_valid() knows what is an ID');
	is($node->safe_psql('app', q{SELECT JSON_OBJECT('id': 17::snowflake), JSON_ARRAY(17::snowflake, 17)}),
		'{"id" : "17"}|["17", 17]', 'the constructors of SQL/JSON quote IDs');
	skip 'SQL/JSON reads no columns before PostgreSQL 17', 1 if $major < 17;
	is($node->safe_psql('app', q{
			SELECT JSON_VALUE('{"id": "17"}', '$.id' RETURNING snowflake), id, JSON_SCALAR(id),
				JSON_SERIALIZE(JSON_SCALAR(id))
			FROM JSON_TABLE('[17, "18"]', '$[*]' COLUMNS (id snowflake PATH '$'))}),
		"17|17|\"17\"|\"17\"\n17|18|\"18\"|\"18\"", 'SQL/JSON reads IDs from numbers and strings');
}

$node->stop;
done_testing();
