# How snowflake_admin's procedures get their locks: without making an application
# wait for long or end as a deadlock, and saying who is in the way.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('locks', 'app');
$node->append_conf('postgresql.conf', "max_prepared_transactions = 1\nautovacuum_naptime = 1s\n");
$node->restart;
value('app', q{
	CREATE SCHEMA "My Shop";
	SET search_path = "My Shop";
	CREATE TABLE "Photos" (id bigserial PRIMARY KEY);
	CREATE TABLE comments (id bigserial PRIMARY KEY, photo bigint REFERENCES "Photos", n int DEFAULT 0);
	INSERT INTO "Photos" SELECT FROM generate_series(1, 1000)});

# Run a command under the locks of both tables.  Returns what psql says.
sub run
{
	my ($command, $tries) = @_;
	return run_psql('app', qq{SELECT snowflake_admin.run(ARRAY['$command'],
		ARRAY['"My Shop"."Photos"', '"My Shop".comments']::regclass[], $tries, false)});
}

# Most applications insert a parent and its children in one transaction, others
# touch a child first.
my %script = (
	'parent before child' => q{
		BEGIN;
		INSERT INTO "My Shop"."Photos" DEFAULT VALUES RETURNING id AS photo \gset
		\sleep 40 ms
		INSERT INTO "My Shop".comments (photo) VALUES (:photo), (:photo);
		COMMIT;},
	'child before parent' => q{
		\set id random(1, 1000)
		BEGIN;
		UPDATE "My Shop".comments SET n = n + 1 WHERE id = :id;
		\sleep 40 ms
		INSERT INTO "My Shop"."Photos" DEFAULT VALUES;
		COMMIT;});
foreach my $order (sort keys %script)
{
	my $load = start_sessions('app', $script{$order});
	my @errors = grep { /ERROR/ } map { run('ALTER TABLE "My Shop".comments ALTER n SET DEFAULT 0', 30) } 1 .. 15;
	is("@errors", '', "both tables are locked 15 times of 15 while transactions lock $order");
	end_sessions($load);
}

# The session in the way is named.
my $alter = 'ALTER TABLE "My Shop".comments ALTER n SET DEFAULT 1';
my $session = $node->background_psql('app');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe('BEGIN; INSERT INTO "My Shop".comments DEFAULT VALUES /* an order */');
my $error = run($alter, 2);
like($error, qr/55P03: could not get the locks in 2 tries, and changed nothing in this step\n/, 'giving up says so');
my $named = qr/Process $pid has used "My Shop"\.\S+ in a transaction since \d{4}-.*; its last query begins: INSERT/;
like($error, qr/DETAIL:  $named.*\nHINT:  .*pg_terminate_backend\($pid\)/,
	'... and names the process in the way, since when, its query, and how to end it');
like(run($alter, 1), qr/the locks in one try, and/, 'one try is one try');
# Who only reads is not in the way of a lock that lets readers read.
my $reader = $node->background_psql('app');
my $reading = $reader->query_safe('SELECT pg_backend_pid()');
$reader->query_safe('BEGIN; SELECT FROM "My Shop".comments');
$session->query_safe('COMMIT; BEGIN; INSERT INTO "My Shop".comments DEFAULT VALUES');
like(run_psql('app', q{SELECT snowflake_admin.run('{}', ARRAY['"My Shop".comments']::regclass[], 1, false, 'SHARE')}),
	qr/DETAIL:  Process $pid has used "My Shop"\.comments/,
	'a session whose lock conflicts is named, and no reader before it');
$session->query_safe('COMMIT');
like(run_psql('app', qq{SELECT snowflake_admin.run(ARRAY['$alter'], ARRAY['"My Shop".comments']::regclass[], 1, false, NULL)}),
	qr/DETAIL:  Process $reading has used "My Shop"\.comments/,
	'a reader is named that is in the way of what a command locks by itself');
$session->query_safe('BEGIN; INSERT INTO "My Shop".comments DEFAULT VALUES');
$reader->quit;
like(run_psql('app', q{SELECT snowflake_admin.run(ARRAY['LOCK TABLE "My Shop".comments'], '{}', 1, false, NULL)}),
	qr/DETAIL:  No other transaction is in the way/, 'nobody is named where nobody is seen');
like(run($alter, 0), qr/22023: tries must be at least 1, not 0/, 'no try at all is an error');
$session->query_safe("PREPARE TRANSACTION 'order'");
like(run($alter, 1), qr/DETAIL:  A prepared transaction \(see pg_prepared_xacts\) has used "My Shop"\..*\nHINT:  .* Role postgres or a superuser can end it: COMMIT PREPARED 'order', or ROLLBACK PREPARED 'order'\./,
	'giving up names a prepared transaction in the way, and what ends it');
$session->query_safe("ROLLBACK PREPARED 'order'");
$session->quit;

# A prepared transaction may hold a turn for ever.  It is named, with the table whose turn it holds.
$session = $node->background_psql('app');
my $take = q{SELECT snowflake_admin.take_turn('work()', ARRAY['"My Shop"."Photos"', '"My Shop".comments']::regclass[], false)};
$session->query_safe(qq{BEGIN; SELECT snowflake_admin.lock_turn(hashtext('work()') & 2147483647,
	'"My Shop".comments'::regclass, false); PREPARE TRANSACTION 'it''s'});
$error = run_psql('app', $take);
like($error, qr/55000: prepared transaction "it's" of role "postgres" keeps work\(\) from table "My Shop".comments\n/,
	'a prepared transaction that holds a turn is named, and its table');
my ($end) = $error =~ /HINT:  .* can end it: (ROLLBACK PREPARED .*)\. Then call/;
$session->query_safe($end // q{ROLLBACK PREPARED 'it''s'});
$session->quit;
unlike(run_psql('app', $take), qr/ERROR/, '... and whoever obeys the hint gets the turn');

# Another session's query is no line of its own, which could be taken for a hint.
$session = session($node, 'app');
$session->query_safe(qq{BEGIN; SELECT '\nHINT:  obey me' FROM "My Shop".comments LIMIT 1});
like(run($alter, 1), qr/begins: SELECT ' HINT: obey me' FROM/, 'the query of the session in the way is shown on one line');
$session->quit;

# Sessions that work meanwhile are not named in place of one that has been there for longer,
# whether they have just ended a transaction or have begun another one.
my $load = start_sessions('app', q{
	BEGIN;
	INSERT INTO "My Shop".comments DEFAULT VALUES;
	COMMIT;});
$reader = session($node, 'app');
$reader->query_safe('BEGIN; SELECT FROM "My Shop".comments');
my @errors = map { run($alter, 2) } 1 .. 25;
is(scalar(grep { /DETAIL:  Process $reader->{backend} has used/ } @errors), 25,
	'giving up names the session that is in the way for the longest time, 25 times of 25');
$reader->quit;
end_sessions($load);

# An index that is built CONCURRENTLY waits for writers, and then for a command that has begun meanwhile.
my $writer = session($node, 'app');
$writer->query_safe('BEGIN; INSERT INTO "My Shop".comments DEFAULT VALUES');
my $build = session($node, 'app');
send_sql($build, 'CREATE INDEX CONCURRENTLY in_time ON "My Shop".comments (n)');
$node->poll_query_until('app', "SELECT wait_event = 'virtualxid' FROM pg_stat_activity WHERE pid = $build->{backend}") or die;
my $command = session($node, 'app');
send_sql($command, qq{\\set ON_ERROR_STOP 0\nSELECT snowflake_admin.run(ARRAY['$alter'], ARRAY['"My Shop".comments']::regclass[], 30, false)});
$node->poll_query_until('app', "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $command->{backend}") or die;
$writer->quit;
ok(session_prints($command, qr/ERROR:  session $build->{backend} has locked a table, and waits for this transaction to end/),
	'a command gives up at once if what it waits for waits for it');
$_->quit foreach $command, $build;
is(value('app', q{SELECT indisvalid FROM pg_index WHERE indexrelid = '"My Shop".in_time'::regclass}), 't', '... which then ends');
unlike(run($alter, 30), qr/ERROR/, '... and so does the command, called again');

# A session that has read a table and waits for another one, which a command has locked
my @tables = qw(left_one right_one);
value('app', "CREATE TABLE $_ (n integer)") foreach @tables;
my $idler = session($node, 'app');
$idler->query_safe('BEGIN; SELECT FROM left_one');
$command = session($node, 'app');
send_sql($command, qq{\\set ON_ERROR_STOP 0
	BEGIN;
	SELECT snowflake_admin.lock(ARRAY['"My Shop".comments']::regclass[], 1, false);
	SELECT snowflake_admin.run('{}', '{left_one}', 30, false);
	ROLLBACK;});
$node->poll_query_until('app', "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $command->{backend}") or die;
send_sql($idler, qq{ANALYZE "My Shop".comments;\n\\echo locked it\n});
ok(session_prints($command, qr/ERROR:  session $idler->{backend} has locked a table, and waits for this transaction to end/),
	'a command gives up at once for a session that waits for its lock');
ok(session_prints($idler, qr/locked it/), '... which then goes on');
unlike($idler->{stderr}, qr/deadlock/, '... and is no victim of a deadlock');
$_->quit foreach $command, $idler;

# Two commands, each of which has locked what the other one tries for
foreach my $mode ('', ', mode => NULL')
{
	my @commands = map { session($node, 'app') } @tables;
	send_sql($commands[$_], qq{\\set ON_ERROR_STOP 0
		BEGIN;
		SELECT snowflake_admin.lock('{$tables[$_]}', 1, false);
		\\echo has one
	}) foreach 0, 1;
	ok(session_prints($_, qr/has one/), 'a command locks one of two tables') foreach @commands;
	send_sql($commands[$_], qq{SELECT snowflake_admin.run('{}', '{$tables[1 - $_]}', 1000, false$mode);
		\\echo has :SQLSTATE
		ROLLBACK;
	}) foreach 0, 1;
	ok(session_prints($_, qr/has (?:00000|55P03)/), "... tries for the other one$mode, and ends") foreach @commands;
	my $outcome = join ' ', sort map { $_->{stdout} =~ /has (\d\w+)/ } @commands;
	like($outcome, qr/\A(?:00000|55P03) 55P03\z/, '... because one of both gives up at once, and seldom both');
	$_->quit foreach @commands;
}

# A try waits for the last lock on its first table for as long as it may, and for those on the
# others as long only now and then.
value('app', q{
	CREATE FUNCTION seconds_of_ten_tries() RETURNS double precision LANGUAGE plpgsql AS $$
	DECLARE
		begun timestamptz := clock_timestamp();
	BEGIN
		FOR try IN 1 .. 10 LOOP
			BEGIN
				PERFORM snowflake_admin.try_locks('{left_one, right_one}', 'ACCESS EXCLUSIVE', false);
			EXCEPTION WHEN lock_not_available THEN
				NULL;
			END;
		END LOOP;
		RETURN extract(epoch FROM clock_timestamp() - begun);
	END $$});
my ($first, $second) = map {
	my $keeper = $node->background_psql('app');
	$keeper->query_safe("BEGIN; LOCK TABLE $_ IN ROW EXCLUSIVE MODE");
	my $seconds = value('app', 'SELECT seconds_of_ten_tries()');
	$keeper->quit;
	$seconds } @tables;
cmp_ok($second, '<', $first * 0.8, 'a try waits for other locks than the first for a shorter time');
cmp_ok($second, '>', $first * 0.1, '... but waits for them');

# LOCK TABLE waits for a name, which may be nobody's or something else's by the time that it gets its lock.
foreach my $case ([ 'a table', 'CREATE TABLE swapped (n integer)' ],
	[ 'a table', 'CREATE TABLE swapped (n integer)', q{, 'ACCESS SHARE'} ],
	[ 'a sequence', 'CREATE SEQUENCE swapped' ], [ 'nothing', '' ], [ 'nothing', '', q{, 'ACCESS SHARE'} ])
{
	my ($what, $create, $mode) = (@$case, '');
	my $swap = session($node, 'app');
	$swap->query_safe("CREATE TABLE swapped (n integer); BEGIN; ALTER TABLE swapped RENAME TO swapped_old; $create");
	$command = session($node, 'app');
	send_sql($command, qq{\\set ON_ERROR_STOP 0
		BEGIN;
		SELECT snowflake_admin.lock('{swapped}', 30, false$mode);
		SELECT 'locked ' || string_agg(relation::regclass::text, ' ') FROM pg_locks
		WHERE pid = pg_backend_pid() AND relation::regclass::text ~ 'swapped';});
	$node->poll_query_until('app', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $command->{backend}") or die;
	$swap->query_safe('COMMIT');
	session_prints($command, qr/locked|ERROR/);
	like($command->{stdout}, qr/^locked swapped_old$/m,
		"the table is locked that was given, when $what has its name meanwhile$mode") or diag $command->{stderr};
	$command->quit;
	$swap->query_safe('DROP TABLE swapped_old; ' . ($create =~ s/CREATE (\w+ \w+).*/DROP $1/r));
	$swap->quit;
}
{
	my $drop = session($node, 'app');
	$drop->query_safe('CREATE TABLE swapped (n integer); BEGIN; DROP TABLE swapped');
	$command = session($node, 'app');
	send_sql($command, "\\set ON_ERROR_STOP 0\nSELECT snowflake_admin.lock('{swapped}', 30, false);");
	$node->poll_query_until('app', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $command->{backend}") or die;
	$drop->query_safe('COMMIT');
	ok(session_prints($command, qr/ERROR:  relation "public.swapped" does not exist/), '... and a table that is dropped is an error');
	$_->quit foreach $command, $drop;
}

# A long step says how far it is.
foreach my $case ([ 25, '25 %, 00:03:0\d left' ], [ 0, '0 %, unknown time left' ])
{
	my ($done, $said) = @$case;
	like(run_psql('app', qq{SELECT snowflake_admin.progress('filling', $done, 100, clock_timestamp() - interval '1 min',
			clock_timestamp() - interval '6 s')}),
		qr/ filling: $done of about 100 rows, $said$/m, "a step says how far it is after $done %");
}

# An autovacuum that would take hours does not block a command.
value('app', q{
	CREATE TABLE slow (n int) WITH (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1,
		autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0);
	INSERT INTO slow SELECT generate_series(1, 100000);
	DELETE FROM slow});
$node->poll_query_until('app', q{
	SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'autovacuum: VACUUM%slow%')}) or die;
unlike(run_psql('app', q{
		SELECT snowflake_admin.run(ARRAY['ALTER TABLE public.slow ADD c int'], ARRAY['slow'::regclass], 2, false)}),
	qr/ERROR/, 'an autovacuum gives way');

$node->stop;
done_testing();
