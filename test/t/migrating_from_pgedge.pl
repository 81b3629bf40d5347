# From pgEdge's snowflake to next_id() by doc/migrating.md, while sessions insert rows.
#
# A function in PL/pgSQL stands in for pgEdge's extension.  It keeps a sequence
# as pgEdge's does, with the last ID for its value.  It belongs to our extension,
# whose own functions nobody finds as long as it stands in.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('from_pgedge');
$node->safe_psql('postgres', 'CREATE DATABASE app');
$node->safe_psql('app', q{
	CREATE SCHEMA hidden;
	CREATE SCHEMA snowflake;
	CREATE EXTENSION snowflake SCHEMA hidden;
	CREATE FUNCTION snowflake.nextval(sequence regclass) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
	DECLARE
		last bigint;
		clock bigint := extract(epoch FROM clock_timestamp()) * 1000 - 1672531200000;
	BEGIN
		PERFORM pg_advisory_lock(1);
		EXECUTE 'SELECT last_value FROM ' || sequence INTO last;
		last := CASE WHEN clock > last >> 22 THEN clock << 22
			WHEN last & 4095 = 4095 THEN ((last >> 22) + 1) << 22
			ELSE last + 1 END | (10 << 12);
		PERFORM setval(sequence, last), pg_advisory_unlock(1);
		RETURN last;
	END $$;
	-- DROP EXTENSION drops it, or refuses while a default uses it.
	ALTER EXTENSION snowflake ADD FUNCTION snowflake.nextval(regclass);
	CREATE ROLE owner;
	CREATE ROLE "Shop clerk";
	GRANT USAGE ON SCHEMA snowflake TO PUBLIC;
	CREATE SCHEMA shop AUTHORIZATION owner;
	SET ROLE owner;
	GRANT USAGE ON SCHEMA shop TO PUBLIC;
	CREATE SEQUENCE shop.orders_id_seq;
	CREATE TABLE shop.orders (id bigint PRIMARY KEY DEFAULT snowflake.nextval('shop.orders_id_seq'), item text);
	GRANT UPDATE ON SEQUENCE shop.orders_id_seq TO "Shop clerk";
	GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA shop TO "Shop clerk";
	RESET ROLE;
	INSERT INTO shop.orders (item) SELECT 'order ' || n FROM generate_series(1, 1000) AS n});
# pgEdge's sequence may be ahead of the clock, and the clock's own progress must not
# hide an ID that comes again.
$node->safe_psql('app', q{
	SELECT setval('shop.orders_id_seq', last_value + (600000::bigint << 22)) FROM shop.orders_id_seq;
	ALTER DATABASE app SET snowflake.max_lead = '1h'});

my $sessions = start_sessions('app', <<'EOS');
SET ROLE "Shop clerk";
INSERT INTO shop.orders (item) VALUES ('') RETURNING id AS order, 1 / (id > :last)::int AS growing \gset
SELECT 1 / count(*) FROM shop.orders WHERE id = :order;
\set last :order
EOS

my ($to_nextval, $to_next_id) = recipe(q{From pgEdge's snowflake});
like(sqlstate_of($node, 'DROP EXTENSION snowflake', dbname => 'app'), qr/^2BP01/, q{pgEdge's extension cannot be dropped while a default uses it});
run_examples($node, 'app', $to_nextval);
# More rows than there are sequence numbers
$node->safe_psql('app', 'INSERT INTO shop.orders (item) SELECT $$bulk$$ FROM generate_series(1, 5000)');
$node->safe_psql('app', 'DROP EXTENSION snowflake');
sessions_go_on($sessions, 'rows are inserted without an extension');

$node->safe_psql('app', 'CREATE EXTENSION snowflake');
{
	# The sequence is ahead here, of which snowflake_advance() warns.
	local $ENV{PGOPTIONS} = '-c client_min_messages=error';
	run_examples($node, 'app', $to_next_id);
}
sessions_go_on($sessions, 'rows are inserted with next_id()');
sessions_end_without_error($sessions);
is(value('app', 'SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef'), q{next_id((10)::bigint, 'shop.orders_id_seq'::regclass)}, 'next_id() makes the key');
is(value('app', q{SELECT min(snowflake_shard(id, 'pgedge')), max(snowflake_shard(id, 'pgedge')), count(*) > 6000 FROM shop.orders}),
	'10|10|t', 'all IDs have the number of the node');

$node->stop;
done_testing();
