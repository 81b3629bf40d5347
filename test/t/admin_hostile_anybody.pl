# What a role that has nothing but EXECUTE on the functions can do to others, and cannot.

use SnowflakeTest;

my $node = server_in_utc('anybody');
$node->sql(q{
	CREATE EXTENSION snowflake;
	CREATE ROLE anybody LOGIN;
	CREATE ROLE rival LOGIN;
	CREATE ROLE web LOGIN;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5));
	GRANT INSERT ON photos TO web});
my @as_anybody = (extra_params => [ '-U', 'anybody' ]);

# --- it does not get at next_id_seq ---------------------------------------------

my %refused = (
	q{SELECT nextval('next_id_seq')} => 42501,
	q{SELECT setval('next_id_seq', 1)} => 42501,
	q{SELECT last_value FROM next_id_seq} => 42501,
	q{SELECT snowflake_advance('next_id_seq', snowflake_max_id(now()))} => 42501,
	q{SELECT snowflake_alter_sequence('next_id_seq')} => 42501,
	q{ALTER SEQUENCE next_id_seq RESTART} => 42501,
	q{BEGIN; LOCK TABLE next_id_seq} => 42809,
	q{SELECT next_id(5); SET snowflake.max_lead = '1h'} => 42501,
	q{SELECT snowflake_set_shard(7)} => 42501);
fails_with($node, $_, qr/^$refused{$_}/, "refused: $_", @as_anybody) foreach sort keys %refused;

is($node->sql(q{SET snowflake.max_lead = '1h'; SELECT next_id(5) AS id \gset
		SHOW snowflake.max_lead}, @as_anybody), '1s', 'nor does a session get a larger lead that sets it before the library is loaded');

# --- a flood of calls ------------------------------------------------------------

# Sessions of two roles take as many IDs as there are.  They wait for the clock like
# everybody, so others wait in turn with them and get no error.
my @flood = map { session($node) } 1 .. 3;
foreach my $n (0 .. $#flood)
{
	$flood[$n]->query_safe('SET ROLE ' . ($n ? 'anybody' : 'rival'));
	send_sql($flood[$n], 'SELECT count(*) FROM (SELECT next_ids(5, 2000000000)) t');
}
ok( $node->poll_query_until('postgres', q{SELECT lead > '0.9 s' FROM snowflake_sequences('next_id_seq')}),
	'three sessions use up the lead');
is($node->sql(q{
		SET ROLE web;
		DO $$ BEGIN FOR i IN 1 .. 200 LOOP INSERT INTO photos DEFAULT VALUES; END LOOP; END $$;
		RESET ROLE;
		SELECT count(*) FROM photos}), 200, '... and another role still inserts its rows');
is($node->sql(q{SELECT lead <= '1 s' FROM snowflake_sequences('next_id_seq')}), 't',
	'... and the sequence gets no further ahead');
kill 'INT', $_->{backend} foreach @flood;
ok($node->poll_query_until('postgres', q{
		SELECT clock_timestamp() >= last_timestamp - interval '1 ms' FROM snowflake_sequences('next_id_seq')}),
	'when they end, the clock soon catches up');
$_->quit foreach @flood;

# --- sequences of its own -------------------------------------------------------

# They are listed, and cost those that look in proportion to their number.
$node->sql(q{CREATE SCHEMA mine AUTHORIZATION anybody});
my $add = q{
	SET ROLE anybody;
	DO $$ BEGIN
		FOR i IN 1 .. 500 LOOP
			EXECUTE format('CREATE SEQUENCE mine.%I MAXVALUE 1125899906841599', format('s%s_%s', i, clock_timestamp()));
			IF i % 100 = 0 THEN
				COMMIT;
			END IF;
		END LOOP;
	END $$};
my $look = q{EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) SELECT * FROM snowflake_sequences()};
my @pages;
foreach (1 .. 4)
{
	$node->sql($add);
	$node->sql('VACUUM ANALYZE pg_sequence, pg_class, pg_depend');
	# The first look in a session reads each sequence's catalog rows, too.
	my @looks = $node->sql("$look;\n$look") =~ /^\s+Buffers: shared hit=(\d+)/mg;
	push @pages, $looks[-1];
}
note("pages: @pages");
cmp_ok($pages[3], '<', 5 * $pages[0], 'four times as many sequences need about four times as many pages');
is($node->sql(q{SELECT count(*) FROM snowflake_sequences() WHERE sequence::text ~ '^mine'}), 2000,
	'... and do not run out of locks');

# --- pinning the shard of a role -----------------------------------------------

# As doc/administration.md says: a setting of the session reaches a function that calls next_id().
$node->sql(q{
	CREATE SCHEMA safe;
	GRANT USAGE ON SCHEMA safe TO PUBLIC;
	CREATE FUNCTION safe.number() RETURNS bigint
	LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS 'SELECT next_id(5)';
	CREATE FUNCTION safe.setting() RETURNS bigint
	LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp SET snowflake.shard = 5 AS 'SELECT next_id()';
	CREATE FUNCTION safe.neither() RETURNS bigint
	LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS 'SELECT next_id()';
	REVOKE EXECUTE ON FUNCTION next_id(), next_id(bigint) FROM PUBLIC});
is($node->sql(q{
		SET snowflake.shard = 9;
		SELECT snowflake_shard(safe.number()), snowflake_shard(safe.setting()), snowflake_shard(safe.neither())},
		@as_anybody), '5|5|9',
	'a function that names the shard, or sets it, pins it, and another one does not');
fails_with($node, 'SELECT next_id(9)', qr/^42501/, '... if the role cannot call next_id()', @as_anybody);

done_testing();
