# snowflake_sequences() shows each generator in its state, also to a role that is not a
# superuser, and beside sequences that cannot be read or are changed meanwhile.  Where
# snowflake_alter_sequence() finds that its sequence was changed, it alters no other.

use SnowflakeTest;

my $node = server_in_utc('sequences');
$node->sql('CREATE EXTENSION snowflake');
my ($make) = blocks_in('doc/administration.md', 'Monitoring');
run_examples($node, 'postgres', $make);
$node->sql(q{
	CREATE ROLE watcher LOGIN IN ROLE pg_monitor;
	GRANT SELECT ON tweets_id_seq TO watcher});
my @as_watcher = (extra_params => [ '-U', 'watcher' ]);
is($node->sql('SELECT count(*) FROM snowflake_sequences()', @as_watcher), 2, 'a monitoring role sees the generators');

# Sequences that cannot be used, or not by everybody, hide no others.
$node->sql(q{
	CREATE SEQUENCE secret MAXVALUE 1125899906841599;
	CREATE SEQUENCE cached MAXVALUE 1125899906841599 CACHE 10;
	CREATE UNLOGGED SEQUENCE careless MAXVALUE 1125899906841599;
	GRANT SELECT ON careless TO watcher});
my $temporary = session($node);
$temporary->query_safe('CREATE TEMPORARY SEQUENCE own MAXVALUE 1125899906841599');
my $states = q{SELECT string_agg(format('%s %s', sequence, state), ', ' ORDER BY sequence::text)
	FROM snowflake_sequences() WHERE layout = 'instagram'};
my $seen_by_watcher = 'cached no privilege, careless refuses, next_id_seq ok, secret no privilege';
is($node->sql($states, @as_watcher), $seen_by_watcher,
	'snowflake_sequences() shows which sequences the role may not read');
$temporary->quit;

my $altering = session($node);
$altering->query_safe('BEGIN; ALTER SEQUENCE secret RESTART');
is($node->sql("SET lock_timeout = '1ms'; $states"),
	'cached refuses, careless refuses, next_id_seq ok, secret waits',
	'snowflake_sequences() does not wait for a session that alters a sequence');
fails_with($node, "SET lock_timeout = '100ms'; SELECT snowflake_alter_sequence('secret')", qr/^42501/,
	'a role that does not own a sequence does not wait to alter it', @as_watcher);
$altering->query_safe('ROLLBACK');

# Who waits for somebody else's change looks at the sequence afterwards.
$node->sql('CREATE SEQUENCE going');
my $waiting = session($node);
$altering->query_safe('BEGIN; DROP SEQUENCE going');
send_sql($waiting, "SELECT snowflake_alter_sequence('going'); SELECT 'done'");
$node->poll_query_until('postgres',
	"SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $waiting->{backend}");
$altering->query_safe('COMMIT');
session_prints($waiting, qr/done/) or die 'the session goes on waiting';
like($waiting->{stderr}, qr/ERROR:  sequence with OID \d+ does not exist/,
	'a sequence that is dropped while snowflake_alter_sequence() waits for it is missing');
$waiting->quit;

$node->sql('CREATE SEQUENCE passing MAXVALUE 1125899906841599');
$altering->query_safe('BEGIN; LOCK pg_depend');
# One that is dropped after it was found, and before its state is read, is left
# out.  For next_id_seq, on which the role has no privilege, that reads pg_depend.
my $reading = $node->background_psql('postgres', @as_watcher);
send_sql($reading, $states);
ok($node->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND relation = 'pg_depend'::regclass}),
	'snowflake_sequences() waits after it has found the sequences');
fails_with($node, "SET statement_timeout = '200ms'; SELECT count(*) FROM snowflake_sequences('next_id_seq')",
	qr/^57014/, 'a cancel ends it, and is no state of a sequence', @as_watcher);
$altering->query_safe('DROP SEQUENCE passing; COMMIT');
ok(session_prints($reading, qr/^$seen_by_watcher$/m),
	'snowflake_sequences() leaves out a sequence that is dropped meanwhile');

# The server drops messages about changes that a session has not read when there are
# thousands of later ones, and tells the session only that it missed some.
my $instagram = "SELECT snowflake_shard(next_id(5, 'altered', 'instagram'))";
$node->sql('CREATE SEQUENCE altered MAXVALUE 1125899906841599');
my ($user, $owner) = map { session($node) } 1, 2;
is($user->query_safe($instagram), 5, 'a session uses a sequence');
kill 'STOP', $user->{backend};
$owner->query_safe(q{
	SELECT format('ALTER SEQUENCE altered MAXVALUE %s', max_value) FROM snowflake_layouts() WHERE name = 'twitter' \gexec
	SELECT format('CREATE TEMP TABLE many_%s ()', n) FROM generate_series(1, 1500) n \gexec});
kill 'CONT', $user->{backend};
$user->query($instagram);
like($user->{stderr}, qr/ERROR:  cannot generate IDs of layout "instagram" from sequence "altered"/,
	'... and notices that it serves another layout, also if it has missed the message');
$_->quit foreach $user, $owner;
$node->sql('DROP SEQUENCE altered');

# sequences_damaged_page.pl has sequences with a damaged page.
my $file = file_of($node, 'secret');
$node->stop;
unlink $file or die "$file: $!";
$node->start;
is($node->sql($states), 'cached refuses, careless refuses, next_id_seq ok, secret refuses',
	'snowflake_sequences() shows a sequence without a file among the others');
my $looking = session($node);
$looking->query_safe("BEGIN; $states");
is($looking->query_safe(q{SELECT count(*) FROM pg_locks WHERE relation IN (SELECT seqrelid FROM pg_sequence)}), 0,
	'snowflake_sequences() does not keep the sequences locked, which may be more than the server can lock');

# --- many sequences in one session ---------------------------------------------------

$node->sql(q{SELECT format('CREATE SEQUENCE many_%s MAXVALUE 1125899906841599', n) FROM generate_series(1, 500) n \gexec});
is($node->sql(q{
		CREATE TABLE ids AS SELECT n, next_id(n, format('many_%s', n)::regclass) AS id
		FROM generate_series(0, 1499) AS i CROSS JOIN LATERAL (SELECT i % 500 + 1) AS t (n);
		SELECT count(DISTINCT id), bool_and(snowflake_shard(id) = n) FROM ids;
		SELECT count(*) FROM (SELECT n, max(id) AS last FROM ids GROUP BY n) AS t
		WHERE pg_sequence_last_value(format('many_%s', n)::regclass) = (last >> 23) * 1024 + (last & 1023)}),
	"1500|t\n500", 'a session can use 500 sequences in turn');

# --- another sequence gets the name of the one that is altered ---------------

# An ALTER SEQUENCE waits for the lock on a table, after the statement has been read and
# before it looks for the sequence.
$node->sql('CREATE DATABASE beside');
$node->safe_psql('beside', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE gate ();
	CREATE FUNCTION wait_at_gate() RETURNS event_trigger LANGUAGE plpgsql
	AS 'BEGIN LOCK TABLE public.gate IN ACCESS SHARE MODE; END';
	CREATE EVENT TRIGGER wait_at_gate ON ddl_command_start WHEN TAG IN ('ALTER SEQUENCE')
		EXECUTE FUNCTION wait_at_gate()});
my ($caller, $other) = map { session($node, 'beside') } 1, 2;
my $sequences = q{SELECT string_agg(concat_ws(' ', nspname, seqmax, refobjid::regclass), ', ' ORDER BY nspname)
	FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid JOIN pg_namespace n ON n.oid = relnamespace
	     LEFT JOIN pg_depend ON objid = seqrelid AND deptype = 'a'
	WHERE relname = 'items_id_seq'};

$other->query_safe("CREATE SCHEMA $_ CREATE TABLE items (id serial)") foreach 'a', 'b';
# One that serves the layout already has to be altered if a column owns it.
$other->query_safe(q{
	SELECT snowflake_alter_sequence('a.items_id_seq');
	ALTER SEQUENCE a.items_id_seq OWNED BY a.items.id});
my $before = $other->query_safe($sequences);
$other->query_safe('BEGIN; LOCK TABLE gate');
send_sql($caller, "\\set VERBOSITY verbose\nSELECT snowflake_alter_sequence('a.items_id_seq');\n\\echo done");
$node->poll_query_until('beside', q{SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)})
  or die 'the call does not wait';
$other->query_safe('ALTER SCHEMA a RENAME TO c; ALTER SCHEMA b RENAME TO a; COMMIT');
session_prints($caller, qr/done/);
like($caller->{stderr}, qr/ERROR:  40001: could not alter sequence "items_id_seq" because of a concurrent change/,
	'the call fails when another sequence has got the name');
$other->query_safe('ALTER SCHEMA a RENAME TO b; ALTER SCHEMA c RENAME TO a');
is($other->query_safe($sequences), $before, 'the call has altered no sequence');

$node->stop;
done_testing();
