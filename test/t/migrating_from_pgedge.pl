# From pgEdge's snowflake to next_id(), by the recipe of doc/migrating.md, while
# sessions insert rows.
#
# A function in PL/pgSQL stands in for pgEdge's extension.  It keeps a sequence
# as pgEdge's does, with the last ID for its value.

use strict;
use warnings;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('from_pgedge');
new_database('app');
$node->safe_psql('app', q{
	CREATE SCHEMA snowflake;
	CREATE FUNCTION snowflake.nextval(sequence regclass) RETURNS bigint LANGUAGE plpgsql AS $$
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
	ALTER EXTENSION snowflake ADD FUNCTION snowflake.nextval(regclass)});
$node->safe_psql('app', q{
	CREATE SEQUENCE orders_id_seq;
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake.nextval('orders_id_seq'), item text);
	CREATE ROLE app;
	GRANT USAGE ON SCHEMA snowflake TO app;
	GRANT SELECT, UPDATE ON SEQUENCE orders_id_seq TO app;
	GRANT SELECT, INSERT ON orders TO app;
	INSERT INTO orders (item) SELECT 'order ' || n FROM generate_series(1, 1000) AS n});
# pgEdge's sequence may be ahead of the clock.
$node->safe_psql('app', q{SELECT setval('orders_id_seq', last_value + (600::bigint << 22)) FROM orders_id_seq});

my $sessions = start_sessions('app', <<'EOS');
SET ROLE app;
INSERT INTO orders (item) VALUES ('') RETURNING id AS order, 1 / (id > :last)::int AS growing \gset
SELECT 1 / count(*) FROM orders WHERE id = :order;
\set last :order
EOS
like(join('', $node->psql('app', 'DROP EXTENSION snowflake')), qr/default value for column id of table orders depends on/,
	'DROP EXTENSION refuses while a default needs the extension');

foreach my $step (recipe(q{From pgEdge's snowflake}))
{
	my $last = value('app', 'SELECT max(id) FROM orders');
	run_examples($node, 'app', $step);
	sessions_go_on($sessions, 'rows are inserted after a step');
	is(value('app', "SELECT count(*) FROM orders WHERE id > $last AND snowflake_shard(id, 'pgedge') <> 10"), 0, 'IDs keep their node')
	  if value('app', q{SELECT count(*) FROM pg_extension WHERE extname = 'snowflake'});
}
sessions_end_without_error($sessions);

is(value('app', q{
	SELECT last_value = (max(id) >> 22) * 4096 + (max(id) & 4095) FROM orders, orders_next_seq GROUP BY last_value}),
	't', 'the new sequence has the value of the last ID');
like(sqlstate_of($node, q{SELECT snowflake_alter_sequence('orders_id_seq', 'pgedge')}, dbname => 'app'),
	qr/^55000 cannot make sequence "orders_id_seq" serve layout "pgedge"/, q{pgEdge's own sequence cannot serve the layout});
is(value('app', q{
	SET snowflake.shard = 10;
	SELECT next_id(current_setting('snowflake.shard')::bigint, 'orders_next_seq', 'pgedge') > max(id) FROM orders}),
	't', 'the node can come from snowflake.shard');

$node->stop;
done_testing();
