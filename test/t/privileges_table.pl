# Who may call what: a table of every function and procedure that the two extensions
# give to users, by a role that has
#
#	nothing		only what PUBLIC has
#	app			USAGE on the sequence, SELECT and INSERT on the table
#	owner		the table and its sequence
#	database	the database, in which it has created both extensions
#	reader		pg_read_all_data
#	superuser
#
# A result is "ok" or the SQLSTATE of the refusal.  Each call begins with the same
# tables.

use SnowflakeTest;

my @roles = qw(nothing app owner database reader superuser);

my $node = server_in_utc('privileges');
$node->sql(<<'EOS');
CREATE ROLE nothing LOGIN; CREATE ROLE app LOGIN; CREATE ROLE owner LOGIN; CREATE ROLE database LOGIN;
CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader; CREATE ROLE superuser SUPERUSER LOGIN;
CREATE DATABASE app OWNER database;
EOS
$node->safe_psql('app', <<'EOS');
SET SESSION AUTHORIZATION database;
CREATE EXTENSION snowflake_admin CASCADE;
CREATE SCHEMA data;
GRANT USAGE ON SCHEMA data TO PUBLIC;
GRANT CREATE ON SCHEMA data TO owner;
EOS

# What each call finds
my $prepare = <<'EOS';
SET client_min_messages = warning;
DROP OWNED BY owner;
GRANT CREATE ON SCHEMA data TO owner;
SET SESSION AUTHORIZATION owner;
CREATE SEQUENCE data.photos_seq;
SELECT snowflake_alter_sequence('data.photos_seq');
CREATE TABLE data.photos (id bigint PRIMARY KEY DEFAULT next_id(5, 'data.photos_seq'));
CREATE TABLE data.old (id serial PRIMARY KEY);
CREATE TABLE data.keys (id bigserial PRIMARY KEY);
CREATE TABLE data.days (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
INSERT INTO data.photos DEFAULT VALUES;
INSERT INTO data.old DEFAULT VALUES;
INSERT INTO data.keys DEFAULT VALUES;
GRANT SELECT, INSERT ON data.photos, data.old, data.keys, data.days TO app;
GRANT USAGE ON SEQUENCE data.photos_seq TO app;
RESET SESSION AUTHORIZATION;
EOS

# Each line: the results in the order of the roles above, and a call
my @table = grep { /\S/ && !/^#/ } split /\n/, <<'EOT';
ok     ok     ok     ok     ok     ok      SELECT snowflake_version()
# next_id_seq needs EXECUTE only, ...
ok     ok     ok     ok     ok     ok      SET snowflake.shard = 5; SELECT next_id()
ok     ok     ok     ok     ok     ok      SELECT next_id(5)
ok     ok     ok     ok     ok     ok      SELECT next_ids(5, 3)
# ... and any other sequence USAGE, or UPDATE for a custom layout.
42501  ok     ok     42501  42501  ok      SELECT next_id(5, 'data.photos_seq')
42501  ok     ok     42501  42501  ok      SELECT next_id(5, 'data.photos_seq', 'instagram')
42501  ok     ok     42501  42501  ok      SELECT next_ids(5, 3, 'data.photos_seq')
42501  ok     ok     42501  42501  ok      SELECT next_ids(5, 3, 'data.photos_seq', 'instagram')
42501  42501  ok     42501  42501  ok      SELECT snowflake_advance('data.photos_seq', 1)
42501  42501  ok     42501  42501  ok      SELECT snowflake_advance('data.photos_seq', 1, 'instagram')
42501  42501  ok     42501  42501  ok      SELECT snowflake_alter_sequence('data.photos_seq')
ok     ok     ok     ok     ok     ok      SELECT snowflake_sequences()
ok     ok     ok     ok     ok     ok      SELECT snowflake_sequences('data.photos_seq')
ok     ok     ok     ok     ok     ok      SELECT snowflake_sequences('data.photos_seq', 'instagram')
# The shard is the database's, and its owner sets it.
42501  42501  42501  ok     42501  ok      SELECT snowflake_set_shard(5)
55000  55000  55000  55000  55000  55000   SELECT snowflake_shard()
ok     ok     ok     ok     ok     ok      SET snowflake.shard = 5; SELECT snowflake_shard()
ok     ok     ok     ok     ok     ok      SELECT snowflake_settled_id()
ok     ok     ok     ok     ok     ok      SELECT snowflake_settled_id('twitter')
# What only computes is everybody's.
ok     ok     ok     ok     ok     ok      SELECT snowflake_timestamp(1), snowflake_timestamp(1, 'twitter')
ok     ok     ok     ok     ok     ok      SELECT snowflake_shard(1), snowflake_shard(1, 'twitter')
ok     ok     ok     ok     ok     ok      SELECT snowflake_sequence_number(1), snowflake_sequence_number(1, 'twitter')
ok     ok     ok     ok     ok     ok      SELECT snowflake_fields(1), snowflake_fields(1, 'twitter')
ok     ok     ok     ok     ok     ok      SELECT snowflake_min_id(now()), snowflake_min_id(now(), 'twitter')
ok     ok     ok     ok     ok     ok      SELECT snowflake_max_id(now()), snowflake_max_id(now(), 'twitter')
ok     ok     ok     ok     ok     ok      SELECT snowflake_id(now(), 1, 1), snowflake_id(now(), 1, 1, 'twitter')
ok     ok     ok     ok     ok     ok      SELECT snowflake_backdated_id(now(), 5) OVER (), snowflake_backdated_id(now(), 5, 'twitter') OVER ()
42804  42804  42804  42804  42804  42804   SELECT snowflake_backdated_id(localtimestamp, 5) OVER ()
ok     ok     ok     ok     ok     ok      SELECT snowflake_layouts()
ok     ok     ok     ok     ok     ok      SELECT snowflake_from_text(snowflake_to_text(1))
ok     ok     ok     ok     ok     ok      SELECT snowflake_reveal(snowflake_obfuscate(1, 2), 2)
ok     ok     ok     ok     ok     ok      SELECT 1::snowflake, 1::smallint::snowflake, 1.0::snowflake, 1::float8::snowflake
ok     ok     ok     ok     ok     ok      SELECT '1'::snowflake::int, '1'::snowflake::numeric, '1'::snowflake::float8
# What looks is everybody's, and says what the role may not see.
ok     ok     ok     ok     ok     ok      SELECT snowflake_check()
ok     ok     ok     ok     ok     ok      SELECT snowflake_uses()
ok     ok     ok     ok     ok     ok      SELECT snowflake_keys()
ok     ok     ok     ok     ok     ok      SELECT snowflake_partitions('data.days')
# What acts is for the owner of the table.
42501  42501  ok     42501  42501  ok      CALL snowflake_move('data.keys', 5)
42501  42501  ok     42501  42501  ok      CALL snowflake_move_back('data.photos')
42501  42501  ok     42501  42501  ok      CALL snowflake_widen('data.old', 'id')
42501  42501  ok     42501  42501  ok      CALL snowflake_renumber('data.photos', 5, new_shard => 6)
42501  42501  ok     42501  42501  ok      CALL snowflake_make_partitions('data.days')
42501  42501  ok     42501  42501  ok      CALL snowflake_set_back('data.photos_seq')
42501  42501  ok     42501  42501  ok      CALL snowflake_partition('data.photos', 'day')
# Of a whole schema, each table that stays as it is has a warning.
ok     ok     ok     ok     ok     ok      CALL snowflake_move_schema('data', 5)
ok     ok     ok     ok     ok     ok      CALL snowflake_renumber_schema('data', 5, new_shard => 6)
ok     ok     ok     ok     ok     ok      CALL snowflake_move_back_schema('data')
EOT

# Calls that need more than the tables above
my %also = (
	'widen_indexes' => [ '42501  42501  ok     42501  42501  ok', q{SELECT snowflake_widen_indexes('data.old', 'id')} ],
	'drop_partitions' => [ '42501  42501  ok     42501  42501  ok',
		q{CALL snowflake_drop_partitions('data.days', '1 day')},
		q{CREATE TABLE data.days_1 PARTITION OF data.days FOR VALUES FROM (0) TO (1000000000000000000);
		  CREATE TABLE data.days_2 PARTITION OF data.days FOR VALUES FROM (1000000000000000000) TO (9000000000000000000);
		  ALTER TABLE data.days_1 OWNER TO owner; ALTER TABLE data.days_2 OWNER TO owner;} ]);

# Call it as each role.  Returns the results.
sub results_of
{
	my ($call, $more) = @_;

	return join ' ', map {
		my (undef, $printed) = $node->psql('app', join "\n", '\set ON_ERROR_STOP 0', '\o /dev/null', $prepare, $more // '',
			"SET SESSION AUTHORIZATION $_;", "$call;", '\o', '\if :ERROR', '\echo :SQLSTATE', '\else', '\echo ok', '\endif',
			'RESET SESSION AUTHORIZATION;', 'ALTER DATABASE app RESET snowflake.shard;');
		$printed;
	} @roles;
}

my %called;
foreach my $row ((map { [ split / {2,}(?=SELECT|SET|CALL)/ ] } @table), values %also)
{
	my ($expected, $call, $more) = @$row;

	is(results_of($call, $more), join(' ', split(' ', $expected)), "$call (@roles)");
	$called{$_} = 1 foreach $call =~ /\b(next_ids?|snowflake\w*)\(/g;
}

is($node->safe_psql('app', q{
		SELECT string_agg(DISTINCT proname, ' ') FROM pg_proc AS p
		JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'
		JOIN pg_extension AS e ON e.oid = refobjid AND extname LIKE 'snowflake%'
		WHERE pronamespace <> 'snowflake_admin'::regnamespace
		-- the input and output of types, casts, and what only the planner calls
		AND proname !~ '_(in|out|recv|send)$|^snowflake(_to_(integer|numeric|float8)|_support|_next_id_in_copy)?$'
		AND proname NOT IN ('} . join(q{', '}, sort keys %called) . q{')}), '',
	'each function and procedure is in the table');

$node->stop;
done_testing();
