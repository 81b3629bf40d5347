# How snowflake_admin's procedures get their locks: without making an application
# wait for long or end as a deadlock, and saying who is in the way.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
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

# Run a command under the locks of both tables.
sub run
{
	my ($command, $tries) = @_;
	return $node->psql('app', qq{
		SELECT snowflake_admin_run(ARRAY['$command'], ARRAY['"My Shop"."Photos"', '"My Shop".comments']::regclass[], $tries, false)});
}

# Most applications insert a parent and its children in one transaction, others
# touch a child first.
my $parent_first = q{
	BEGIN;
	INSERT INTO "My Shop"."Photos" DEFAULT VALUES RETURNING id AS photo \gset
	\sleep 40 ms
	INSERT INTO "My Shop".comments (photo) VALUES (:photo), (:photo);
	COMMIT;
};
my $child_first = q{
	\set id random(1, 1000)
	BEGIN;
	UPDATE "My Shop".comments SET n = n + 1 WHERE id = :id;
	\sleep 40 ms
	INSERT INTO "My Shop"."Photos" DEFAULT VALUES;
	COMMIT;
};
my %script = ('parent before child' => $parent_first, 'child before parent' => $child_first);
foreach my $order (sort keys %script)
{
	my $load = start_sessions('app', $script{$order});
	my @status = map { (run('ALTER TABLE "My Shop".comments ALTER n SET DEFAULT 0', 30))[0] } 1 .. 15;
	is("@status", join(' ', (0) x 15), "both tables are locked 15 times of 15 while transactions lock $order");
	end_sessions($load);
}

# The session in the way is named.
my $session = $node->background_psql('app');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe('BEGIN; INSERT INTO "My Shop".comments DEFAULT VALUES /* an order */');
my ($status, $output, $error) = run('ALTER TABLE "My Shop".comments ALTER n SET DEFAULT 1', 2);
like($error, qr/ERROR:  could not get the locks in 2 tries, and changed nothing in this step\nDETAIL:  Process $pid has used "My Shop"\.\S+ in a transaction since \d{4}-.*; its last query begins: INSERT.*\nHINT:  .*pg_terminate_backend\($pid\)/,
	'giving up names the process in the way, since when, and its query');
like((run('ALTER TABLE "My Shop".comments ALTER n SET DEFAULT 1', 1))[2], qr/the locks in one try, and/, 'one try is one try');
# Who only reads is not in the way of a lock that lets readers read.
my $reader = $node->background_psql('app');
$reader->query_safe('BEGIN; SELECT FROM "My Shop".comments');
$session->query_safe('COMMIT; BEGIN; INSERT INTO "My Shop".comments DEFAULT VALUES');
my $weaker = q{SELECT snowflake_admin_run('{}', ARRAY['"My Shop".comments']::regclass[], 1, false, 'SHARE')};
like(($node->psql('app', $weaker))[2], qr/DETAIL:  Process $pid has used "My Shop"\.comments/, 'a session whose lock conflicts is named, and no reader before it');
$reader->quit;
like(($node->psql('app', q{SELECT snowflake_admin_run(ARRAY['LOCK TABLE "My Shop".comments'], '{}', 1, false, NULL)}))[2],
	qr/DETAIL:  No other transaction is in the way/, 'nobody is named where nobody is seen');
fails_with($node, q{SELECT snowflake_admin_run('{}', '{}', 0, true)}, qr/^22023 tries must be at least 1, not 0/, 'no try at all is an error', dbname => 'app');
$session->query_safe("PREPARE TRANSACTION 'order'");
like((run('ALTER TABLE "My Shop".comments ALTER n SET DEFAULT 1', 1))[2],
	qr/DETAIL:  A prepared transaction \(see pg_prepared_xacts\) has used "My Shop"\./, 'giving up names a prepared transaction in the way');
$session->query_safe("ROLLBACK PREPARED 'order'");
$session->quit;
is(value('app', q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = '"My Shop".comments'::regclass AND adnum = 3}), 0,
	'... and has changed nothing');

# An autovacuum that would take hours does not block a command.
value('app', q{
	CREATE TABLE slow (n int) WITH (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1,
		autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0);
	INSERT INTO slow SELECT generate_series(1, 100000);
	DELETE FROM slow});
$node->poll_query_until('app', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'autovacuum: VACUUM%slow%')}) or die;
is(($node->psql('app', q{SELECT snowflake_admin_run(ARRAY['ALTER TABLE public.slow ADD c int'], ARRAY['slow'::regclass], 2, false)}))[0], 0,
	'an autovacuum gives way');

# In a transaction block, procedures that commit say so at once.
is((run_command([ 'psql', '-XAtq', '-d', $node->connstr('app'), '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=sqlstate', '-c',
	"BEGIN; CALL snowflake_admin_require_no_transaction('x()')" ]))[1], 'ERROR:  2D000', 'a transaction block is recognised');
is(($node->psql('app', "SET lc_messages = 'C'; CALL snowflake_admin_require_no_transaction('x()')"))[0], 0, 'a call of its own is none');

$node->stop;
done_testing();
