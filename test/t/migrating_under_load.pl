# Keys move to next_id() by the recipes of doc/migrating.md while sessions insert rows.
# No session gets an error or a smaller ID.  IDs of Instagram's function and of next_id()
# differ where the clock stands still.  What the text says of old rows is so.

use SnowflakeTest;

# A statement that hangs must fail the test.
my $node = server_in_utc('migrating', "statement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s'\n");

sub value { return $node->safe_psql(@_) }

sub recipe { return blocks_in('doc/migrating.md', @_) }

sub rows_come
{
	my ($database, $table, $name) = @_;
	my $goal = value($database, "SELECT count(*) + 200 FROM $table");
	return ok($node->poll_query_until($database, "SELECT count(*) > $goal FROM $table"), $name);
}

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(serial import instagram pgedge whole control);
$node->safe_psql($_, 'CREATE EXTENSION snowflake') foreach qw(serial import instagram whole control);

# --- from bigserial ------------------------------------------------------------

run_examples($node, 'serial', recipe('From bigserial or identity'));

# --- old rows ------------------------------------------------------------------

my ($tables, @import) = recipe('Import old rows');
run_examples($node, 'import', $tables);
my $load = start_load($node->connstr('import'), <<'EOS');
INSERT INTO photos (title) VALUES ('new') RETURNING id AS photo, 1 / (id > :last)::int AS growing \gset
SELECT 1 / count(*) FROM photos WHERE id = :photo;
\set last :photo
EOS
rows_come('import', 'photos', 'rows are inserted before old ones come');
run_examples($node, 'import', @import);
rows_come('import', 'photos', 'rows are inserted when old ones are there');
end_load($load, 'an import of old rows');

# --- from Instagram's function ---------------------------------------------------

my $instagram = slurp_file("$top/bench/instagram.sql") . q{
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), title text);};
my ($look, $move) = recipe(q{From Instagram's own function});
$node->safe_psql('instagram', $instagram);

# Changed functions, which the recipe is not for
my $published = value('instagram', q{SELECT pg_get_functiondef('insta5.next_id'::regproc)});
foreach my $change (
	[ '1314220021721', '1420070400000', 'epoch', '5\|f' ],
	[ '<< 10', '<< 12', 'shift of the shard', '20\|t' ])
{
	my ($from, $to, $what, $shown) = @$change;
	my $changed = $published =~ s/\Q$from\E/$to/r;
	isnt($changed, $published, "the function can have another $what");
	like(value('instagram', "BEGIN; $changed; $look->{code} ROLLBACK"), qr/^$shown$/,
		"the first query shows that a function has another $what");
}

# Within a millisecond, Instagram's function itself may return a smaller ID.
$load = start_load($node->connstr('instagram'), <<'EOS', '-c', '8', '-R', '800');
INSERT INTO insta5.photos (title) VALUES ('') RETURNING 1 / (id > :last)::int AS growing, id AS last \gset
INSERT INTO insta5.photos (title) SELECT '' FROM generate_series(1, 12);
\sleep 2 ms
EOS
rows_come('instagram', 'insta5.photos', q{rows are inserted with Instagram's function});
run_examples($node, 'instagram', $look, $move);
rows_come('instagram', 'insta5.photos', 'rows are inserted with next_id() in its place');
end_load($load, q{the move from Instagram's function});
is(value('instagram', 'SELECT count(DISTINCT snowflake_shard(id)) FROM insta5.photos'), 1,
	'IDs of both functions have one shard');

# --- from pgEdge's snowflake -------------------------------------------------------

# A function in PL/pgSQL stands in for pgEdge's extension.  It keeps a sequence
# as pgEdge's does, with the last ID for its value.  It belongs to our extension,
# whose own functions nobody finds as long as it stands in.
$node->safe_psql('pgedge', q{
	CREATE SCHEMA hidden;
	CREATE SCHEMA snowflake;
	CREATE EXTENSION snowflake SCHEMA hidden;
	CREATE FUNCTION snowflake.nextval(sequence regclass) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
	DECLARE
		last bigint;
	BEGIN
		PERFORM pg_advisory_lock(1);
		EXECUTE 'SELECT last_value FROM ' || sequence INTO last;
		last := CASE WHEN last & 4095 = 4095 THEN ((last >> 22) + 1) << 22 | 10 << 12 ELSE last + 1 END;
		PERFORM setval(sequence, last), pg_advisory_unlock(1);
		RETURN last;
	END $$;
	-- DROP EXTENSION drops it, or refuses while a default uses it.
	ALTER EXTENSION snowflake ADD FUNCTION snowflake.nextval(regclass);
	CREATE SCHEMA shop;
	CREATE SEQUENCE shop.orders_id_seq;
	CREATE TABLE shop.orders (id bigint PRIMARY KEY DEFAULT snowflake.nextval('shop.orders_id_seq'), item text);
	-- pgEdge's sequence may be ahead of the clock, and the clock's own progress must
	-- not hide an ID that comes again.
	SELECT setval('shop.orders_id_seq', hidden.snowflake_id(now() + interval '10 min', 10, 0, 'pgedge'));
	INSERT INTO shop.orders (item) SELECT 'order ' || n FROM generate_series(1, 1000) AS n;
	ALTER DATABASE pgedge SET snowflake.max_lead = '1h'});
$load = start_load($node->connstr('pgedge'), <<'EOS');
INSERT INTO shop.orders (item) VALUES ('') RETURNING id AS order, 1 / (id > :last)::int AS growing \gset
SELECT 1 / count(*) FROM shop.orders WHERE id = :order;
\set last :order
EOS
rows_come('pgedge', 'shop.orders', q{rows are inserted with pgEdge's function});
my ($to_nextval, $to_next_id) = recipe(q{From pgEdge's snowflake});
run_examples($node, 'pgedge', $to_nextval);
# More rows than there are sequence numbers
$node->safe_psql('pgedge', q{INSERT INTO shop.orders (item) SELECT 'bulk' FROM generate_series(1, 5000)});
$node->safe_psql('pgedge', 'DROP EXTENSION snowflake');
rows_come('pgedge', 'shop.orders', 'rows are inserted without an extension');
$node->safe_psql('pgedge', 'CREATE EXTENSION snowflake');
{
	# The sequence is ahead here, of which snowflake_advance() warns.
	local $ENV{PGOPTIONS} = '-c client_min_messages=error';
	run_examples($node, 'pgedge', $to_next_id);
}
rows_come('pgedge', 'shop.orders', 'rows are inserted with next_id()');
end_load($load, q{the move from pgEdge's snowflake});
is(value('pgedge', q{SELECT min(snowflake_shard(id, 'pgedge')), max(snowflake_shard(id, 'pgedge')), count(*) > 6000
		FROM shop.orders}),
	'10|10|t', 'all IDs have the number of the node');

# --- Instagram's function, while the clock stands still --------------------------------

my $control = $move->{code} =~ s/^SELECT snowflake_advance.*\n//mr;

$node->append_conf('postgresql.conf', "snowflake.max_lead = '1h'\n");
$node->stop;
start_with_clock($node, '2026-11-21 12:00:00');
foreach my $case (
	[ 'whole', $move->{code}, qr/^no error/, 'IDs of both functions differ within one millisecond' ],
	[ 'control', $control, qr/^23505 duplicate key/, 'control: without snowflake_advance(), they meet' ])
{
	my ($database, $block, $expected, $name) = @$case;

	# The sequence is at the last slot of a tick.
	$node->safe_psql($database, $instagram . q{
		SELECT setval('insta5.table_id_seq', 999);
		INSERT INTO insta5.photos SELECT FROM generate_series(1, 100)});
	$node->safe_psql($database, $block);
	like(sqlstate_of($node, 'INSERT INTO insta5.photos SELECT FROM generate_series(1, 3000)', dbname => $database),
		$expected, $name);
}

done_testing();
