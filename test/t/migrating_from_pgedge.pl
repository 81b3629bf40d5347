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
	INSERT INTO shop.orders (item) SELECT 'order ' || n FROM generate_series(1, 1000) AS n;
	-- not to be moved before the function is changed
	CREATE TABLE shop.called (id bigserial PRIMARY KEY);
	ALTER TABLE shop.called ALTER id SET DEFAULT snowflake.nextval('shop.called_id_seq');
	CREATE FUNCTION shop.new_called() RETURNS bigint LANGUAGE sql AS $$ SELECT snowflake.nextval('shop.called_id_seq') $$});
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

sub sources_are
{
	my ($source, $name) = @_;
	is(value('app', q{SELECT string_agg(DISTINCT source, ' ') FROM moving.keys WHERE schema = 'shop'}), $source, $name);
	return;
}

# The list, the log and the procedure are those of doc/migrating.md for whole schemas.
my ($list, undef, $steps) = grep { $_->{language} eq 'sql' } recipe('List the keys', 'Move the keys');
my ($commands, $move, $left, $drop, $create, $again, $none_left, $check, $clean_up, $back, $back_again) = grep { $_->{language} eq 'sql' } blocks('doc/migrating-from-pgedge.md');
run_examples($node, 'app', $list, $steps, $commands, $move);
is(value('app', q{SELECT key, obstacle FROM moving.keys WHERE schema = 'shop' AND source = 'snowflake.nextval'}),
	'shop.called.id|shop.new_called() names its sequence', q{a key whose sequence a function calls stays pgEdge's});
like(join('', $node->psql('app', $drop->{code})), qr/default value for column id of table shop\.called depends on/,
	'DROP EXTENSION refuses while a default needs the extension');
$node->safe_psql('app', 'DROP FUNCTION shop.new_called()');
run_examples($node, 'app', $move, $left);
sources_are('next_pgedge_id', 'all keys have the function in SQL');
my $last = value('app', 'SELECT max(id) FROM shop.orders');
run_examples($node, 'app', $drop);
sessions_go_on($sessions, 'rows are inserted without an extension');

run_examples($node, 'app', $create);
my ($from_setting) = slurp_file("$top/doc/migrating-from-pgedge.md") =~ /write\s+`([^`]+)`\s+in place of\s+`next_id\(10, %3\$L\)`/
  or die 'no way to take the node from a setting';
my $of_setting = $commands->{code} =~ s/.*?(?=CREATE OR REPLACE VIEW)//sr =~ s/next_id\(10, %3\$L\)/$from_setting/r;
like(value('app', "BEGIN; $of_setting SELECT commands FROM moving.steps WHERE key = 'shop.orders.id'; ROLLBACK"),
	qr/DEFAULT next_id\(current_setting\('snowflake\.shard'\)::bigint, 'shop\.orders_id_seq_next'\);/,
	'the node of the default can come from snowflake.shard');
{
	local $ENV{PGOPTIONS} = '-c search_path=shop';
	run_examples($node, 'app', $again);
	like(value('app', $none_left->{code}), qr/^shop\.orders\.id\|public\.next_pgedge_id\|$/m, 'where the search_path hides next_id(), no key moves');
}
run_examples($node, 'app', $again, $none_left, $check);
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('app'), '-c', "BEGIN; $clean_up->{code} ROLLBACK" ],
	'what is no longer needed can be dropped');
sources_are('', 'all keys have next_id()');
sessions_go_on($sessions, 'rows are inserted with next_id()');
is(value('app', "SELECT count(*) FROM shop.orders WHERE id > $last AND snowflake_shard(id, 'pgedge') <> 10"), 0, 'IDs keep their node');
is(value('app', q{
	SELECT rolname, (SELECT string_agg(grantee::regrole || ' ' || privilege_type, ', ') FROM aclexplode(relacl) WHERE grantee <> relowner)
	FROM pg_class JOIN pg_roles ON pg_roles.oid = relowner WHERE relname IN ('orders_id_seq_next', $$Odd 'one'_next$$) ORDER BY relname}),
	qq{owner|- USAGE\nowner|"Shop clerk" USAGE}, 'the new sequences have the owner, and the roles that may use them, of the old ones');
like(sqlstate_of($node, q{SELECT snowflake_alter_sequence('shop.orders_id_seq', 'pgedge')}, dbname => 'app'),
	qr/^55000 cannot make sequence "orders_id_seq" serve layout "pgedge"/, q{pgEdge's own sequence cannot serve the layout});
run_examples($node, 'app', $back);
sources_are('next_pgedge_id', 'the way back begins with the function in SQL');
sessions_go_on($sessions, 'rows are inserted by the function again');
$node->safe_psql('app', "DROP EXTENSION snowflake; $pgedge");
run_examples($node, 'app', $back_again);
sources_are('snowflake.nextval', q{all keys are pgEdge's again});
sessions_end_without_error($sessions);
is(value('app', 'SELECT count(*) FROM moving.log'), 0, 'the log is empty');
is(value('app', q{SELECT count(*) FROM pg_class WHERE relname LIKE '%next'}), 0, 'the new sequences are gone');

$node->stop;
done_testing();
