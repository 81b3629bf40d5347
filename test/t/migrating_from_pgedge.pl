# From pgEdge's snowflake to next_id(), and back, by doc/migrating-from-pgedge.md,
# while sessions insert rows.
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
my $pgedge = q{
	CREATE SCHEMA IF NOT EXISTS hidden;
	CREATE SCHEMA IF NOT EXISTS snowflake;
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
	ALTER EXTENSION snowflake ADD FUNCTION snowflake.nextval(regclass)};
$node->safe_psql('app', $pgedge);
$node->safe_psql('app', q{
	CREATE ROLE owner;
	CREATE ROLE "Shop clerk";
	GRANT USAGE ON SCHEMA snowflake TO PUBLIC;
	CREATE SCHEMA shop AUTHORIZATION owner;
	SET ROLE owner;
	GRANT USAGE ON SCHEMA shop TO PUBLIC;
	CREATE SEQUENCE shop.orders_id_seq;
	CREATE SEQUENCE shop."Odd 'one'";
	CREATE TABLE shop.orders (id bigint PRIMARY KEY DEFAULT snowflake.nextval('shop.orders_id_seq'), item text);
	CREATE TABLE shop."Lines" ("Nr" bigint PRIMARY KEY DEFAULT snowflake.nextval($$shop."Odd 'one'"$$), n integer);
	GRANT UPDATE ON SEQUENCE shop.orders_id_seq TO "Shop clerk";
	GRANT USAGE ON SEQUENCE shop."Odd 'one'" TO PUBLIC;
	GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA shop TO "Shop clerk";
	RESET ROLE;
	INSERT INTO shop.orders (item) SELECT 'order ' || n FROM generate_series(1, 1000) AS n});
# pgEdge's sequence may be ahead of the clock, and the clock's own progress must not
# hide an ID that comes again.
$node->safe_psql('app', q{
	SELECT setval('shop.orders_id_seq', last_value + (600000::bigint << 22)) FROM shop.orders_id_seq;
	ALTER DATABASE app SET snowflake.max_lead = '1h'});

my $sessions = start_sessions('app', <<'EOS', '-D', 'last_line=0');
SET ROLE "Shop clerk";
INSERT INTO shop.orders (item) VALUES ('') RETURNING id AS order, 1 / (id > :last)::int AS growing \gset
SELECT 1 / count(*) FROM shop.orders WHERE id = :order;
INSERT INTO shop."Lines" (n) VALUES (1) RETURNING "Nr" AS line, 1 / ("Nr" > :last_line)::int AS growing \gset
\set last :order
\set last_line :line
EOS

# What makes the keys
sub makers_are
{
	my ($maker, $name) = @_;
	is(value('app', q{SELECT string_agg(DISTINCT substring(pg_get_expr(adbin, adrelid), '[\w.]+'), ' ') FROM pg_attrdef
		JOIN pg_class ON pg_class.oid = adrelid WHERE relnamespace = 'shop'::regnamespace}), $maker, $name);
	return;
}

my ($create_function, $to_function, $none_left, $drop, $create, $to_next_id, $check) = grep { $_->{language} eq 'sql' } blocks('doc/migrating-from-pgedge.md');

# An open transaction has the lock that one of the keys needs.
run_examples($node, 'app', $create_function);
my $open = $node->background_psql('app');
$open->query_safe('BEGIN; SELECT count(*) FROM shop."Lines"');
$node->psql('app', $to_function->{code});
isnt(value('app', $none_left->{code}), '', 'a key that does not get its lock stays as it is');
$open->quit;
$node->psql('app', $to_function->{code});
run_examples($node, 'app', $none_left);
makers_are('next_pgedge_id', 'all keys have the function in SQL');
my $last = value('app', 'SELECT max(id) FROM shop.orders');
run_examples($node, 'app', $drop);
sessions_go_on($sessions, 'rows are inserted without an extension');

run_examples($node, 'app', $create);
$node->psql('app', $to_next_id->{code});
run_examples($node, 'app', $check);
makers_are('next_id', 'all keys have next_id()');
sessions_go_on($sessions, 'rows are inserted with next_id()');
is(value('app', "SELECT count(*) FROM shop.orders WHERE id > $last AND snowflake_shard(id, 'pgedge') <> 10"), 0, 'IDs keep their node');
is(value('app', q{
	SELECT rolname, (SELECT string_agg(grantee::regrole || ' ' || privilege_type, ', ') FROM aclexplode(relacl) WHERE grantee <> relowner)
	FROM pg_class JOIN pg_roles ON pg_roles.oid = relowner WHERE relname IN ('orders_id_seq_next', $$Odd 'one'_next$$) ORDER BY relname}),
	qq{owner|- USAGE\nowner|"Shop clerk" USAGE}, 'the new sequences have the owner, and the roles that may use them, of the old ones');
like(sqlstate_of($node, q{SELECT snowflake_alter_sequence('shop.orders_id_seq', 'pgedge')}, dbname => 'app'),
	qr/^55000 cannot make sequence "orders_id_seq" serve layout "pgedge"/, q{pgEdge's own sequence cannot serve the layout});

# --- and back --------------------------------------------------------------

my $setval = (slurp_file("$top/doc/migrating-from-pgedge.md") =~ s/\s+/ /gr =~ /`(SELECT setval[^`]+)`/)[0];
my $back = sub {
	my ($maker, $after) = @_;
	$node->safe_psql('app', qq{
		ALTER TABLE shop.orders ALTER id SET DEFAULT $maker('shop.orders_id_seq$after');
		ALTER TABLE shop."Lines" ALTER "Nr" SET DEFAULT $maker(\$\$shop."Odd 'one'$after"\$\$)}) };
$back->('next_pgedge_id', '_next');
sessions_go_on($sessions, 'rows are inserted by the function again');
$node->safe_psql('app', "DROP EXTENSION snowflake; $pgedge");
my $other = $setval =~ s/'shop\.orders_id_seq'/'shop."Odd ''one''"'/r =~ s/shop\.orders_id_seq_next/shop."Odd 'one'_next"/r;
$node->safe_psql('app', qq{BEGIN; LOCK TABLE shop.orders, shop."Lines"; $setval; $other;
	ALTER TABLE shop.orders ALTER id SET DEFAULT snowflake.nextval('shop.orders_id_seq');
	ALTER TABLE shop."Lines" ALTER "Nr" SET DEFAULT snowflake.nextval(\$\$shop."Odd 'one'"\$\$); COMMIT});
makers_are('snowflake.nextval', q{all keys are pgEdge's again});
sessions_end_without_error($sessions);

$node->stop;
done_testing();
