# snowflake_check() rests no verdict on a look that failed, whoever made it fail: it says what
# was in the way, and leaves out what would have rested on it.

use SnowflakeTest;

my $node = server_in_utc('sight');
my $n = 0;
my $database;

$node->sql('CREATE ROLE mallory LOGIN; CREATE ROLE reader LOGIN');

# A database of shard 5 whose next_id_seq is a day ahead, with a table that has a future-dated
# ID of this shard, and schema mine of mallory
sub new_database
{
	$database = 'sight_' . ++$n;
	$node->sql("CREATE DATABASE $database");
	$node->safe_psql($database, q{
		REVOKE CREATE ON SCHEMA public FROM PUBLIC;
		CREATE EXTENSION snowflake_admin CASCADE;
		CREATE SCHEMA mine AUTHORIZATION mallory;
		SELECT snowflake_set_shard(5);
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
		CREATE TABLE busy (id bigint);
		CREATE FUNCTION uses_busy() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT next_id(5) FROM busy; END});
}

sub set_ahead { return $node->safe_psql($database, setval_ahead('next_id_seq', '1 day')) }

sub future_row
{
	return $node->safe_psql($database,
		q{INSERT INTO photos (id) VALUES (snowflake_id(clock_timestamp() + interval '23 hours', 5, 1))});
}

sub as_mallory
{
	my ($sql) = @_;
	return $node->safe_psql($database, "SET search_path = mine, public;\n$sql", connstr => $node->connstr($database) . ' user=mallory');
}

sub rows
{
	my ($role) = @_;
	return $node->safe_psql($database, q{SELECT concat_ws('|', severity, object, problem, remedy) FROM snowflake_check()},
		$role ? (connstr => $node->connstr($database) . " user=$role") : ());
}

my $locker;

sub locked
{
	my ($table) = @_;
	$locker //= $node->background_psql($database);
	$locker->query_safe("BEGIN; LOCK TABLE $table");
	return $locker->query_safe('SELECT pg_backend_pid()');
}

sub unlock { $locker->quit; undef $locker; return }

# --- code, catalogs, tables and sequences that somebody has locked ------------------------------

new_database();
set_ahead();
future_row();
like(rows(), qr/\Aerror\|sequence public.next_id_seq\|.* its shard: 1, .* So it must not be set back.*\|CALL public.snowflake_move/,
	'a sequence must not be set back');
my $pid = locked('busy');
my $rows = rows();
like($rows, qr/^warning\|function public.uses_busy\(\)\|Its code could not be read, .* Process $pid has used (?:public\.)?busy /m,
	'code that names a locked table is a warning, which names the session');
like($rows, qr/^error\|sequence public.next_id_seq\|.* So it must not be set back\..*\|Call snowflake_check\(\) again when/m,
	'... and the sequence still must not');
unlike($rows, qr/No row of|No default|snowflake_(?:set_back|set_shard|move)|Drop it/, '... and nothing is said that rests on that code');
unlock();

new_database();
set_ahead();
locked('busy');
unlike(rows(), qr/No row of|No default|snowflake_set_back|Drop it/, 'nor is it where no row has such an ID');
unlock();
like(rows(), qr/No row of public.photos .*CALL public.snowflake_set_back/, '... until the code can be read');
$pid = locked('pg_trigger');
$rows = rows();
like($rows, qr/^error\|check of what generates IDs\|It failed: .* Process $pid has used pg_trigger/m,
	'if the look at what generates IDs fails, that is an error');
unlike($rows, qr/sequence/, '... and nothing is said of sequences');
unlock();
$pid = locked('photos');
$rows = rows();
like($rows, qr/^warning\|table public.photos\|It could not be looked at, .* Process $pid has used (?:public\.)?photos /m,
	'a table that is locked is a warning');
like($rows, qr/^error\|sequence public.next_id_seq\|.* postgres cannot look at public.photos \(locked\)\.\|Call snowflake_check\(\) again when nobody has locked public\.photos\.$/m,
	'... and the sequence is not said to go back');
unlock();
new_database();
$node->safe_psql($database, q{CREATE TABLE events (id bigint PRIMARY KEY DEFAULT next_id()) PARTITION BY RANGE (id)});
$node->safe_psql($database, q{CALL snowflake_make_partitions('events')});
$pid = locked('events');
my $locked = qr/\|It could not be looked at, because another transaction has locked it\./;
like(rows(), qr/\Awarning\|table public.events$locked.* Process $pid has used public\.events\w* in a transaction [^\n]*\nnote[^\n]*\z/,
	'... and so is a locked partitioned table, which is named, as is the session');
$locker->query_safe('ALTER SEQUENCE next_id_seq NO CYCLE');
like(rows(), qr/\Awarning\|sequence public.next_id_seq$locked[^\n]*\nwarning\|table public.events$locked[^\n]*\nnote[^\n]*\z/,
	'... and if the sequence is locked, too, there is a row for each');
unlock();

new_database();
$node->safe_psql($database, 'SELECT snowflake_set_shard(NULL)');
locked('busy');
like(rows(), qr/^error\|database $database\|No shard is set/m, 'no other error goes away beside a lock');
unlock();
my ($status, $out, $said) = $node->psql($database, q{SET statement_timeout = '1ms'; SELECT * FROM snowflake_check()});
is($status, 3, 'a check that is cancelled is an error') or diag $said;
is($out, '', '... and has no rows');

# --- what a role may not read -------------------------------------------------------------------------

new_database();
set_ahead();
$node->safe_psql($database, 'GRANT SELECT ON next_id_seq TO reader');
$rows = rows('reader');
like($rows, qr/^error\|sequence public.next_id_seq\|.* reader cannot look at public.photos \(no privilege\)\.\|Let a role/m,
	'no sequence is said to go back to a role that cannot read its table');
unlike($rows, qr/No row of/, '... nor that no row has such an ID');

# --- what strangers do in their own tables ---------------------------------------------------------------

new_database();
$node->safe_psql($database, 'INSERT INTO photos DEFAULT VALUES');
as_mallory(q{CREATE TABLE c (id bigint PRIMARY KEY DEFAULT next_id(5, 'next_id_seq', 'shard:13 sequence:31'))});
set_ahead();
future_row();
like(rows(), qr/^error\|sequence public.next_id_seq\|It is .* ahead .* its shard: 1,/m,
	"a stranger's custom layout does not hide that next_id_seq is ahead");
as_mallory(q{INSERT INTO c VALUES (9223372036854775807)});
like(rows(), qr/^error\|sequence public.next_id_seq\|It is .* ahead .* in public.photos/m, '... nor does the largest ID');

new_database();
$node->safe_psql($database, q{SELECT snowflake_set_shard(NULL); ALTER TABLE photos ALTER id SET DEFAULT next_id(5)});
$node->safe_psql($database, q{INSERT INTO photos DEFAULT VALUES; INSERT INTO photos VALUES (snowflake_id(now() + interval '4 s', 5, 1))});
as_mallory('CREATE TABLE u (id bigint PRIMARY KEY DEFAULT next_id())');
like(rows(), qr/^(?:error|warning)\|sequence public.next_id_seq\|Its last ID .*, but public.photos has the ID/m,
	'a default without a shard does not hide that a sequence is behind a table');
$node->safe_psql($database, q{CREATE SEQUENCE toots_seq; SELECT snowflake_alter_sequence('toots_seq', 'mastodon');
	CREATE TABLE toots (id bigint PRIMARY KEY DEFAULT next_id(length(''), 'toots_seq'));
	INSERT INTO toots DEFAULT VALUES;
	INSERT INTO toots VALUES (snowflake_id(now() + interval '4 s', 0, 1, 'mastodon'))});
like(rows(), qr/^(?:error|warning)\|sequence public.toots_seq\|Its last ID .*, but public.toots has the ID/m,
	'... nor does a shard that is computed, in a layout without shards');

new_database();
$node->safe_psql($database, 'SELECT snowflake_set_shard(NULL); GRANT USAGE ON SCHEMA public TO mallory');
as_mallory('SELECT snowflake_timestamp(1); ALTER ROLE mallory SET snowflake.shard = 5');
like(rows(), qr/^error\|database $database\|No shard is set/m, "a stranger's setting does not hide that no shard is set");
$node->sql('ALTER ROLE mallory RESET ALL');

new_database();
$node->safe_psql($database, q{ALTER TABLE photos ALTER id SET DEFAULT next_id(5); INSERT INTO photos DEFAULT VALUES});
as_mallory(q{CREATE TABLE d (id bigint PRIMARY KEY DEFAULT next_id(5));
	INSERT INTO d VALUES (snowflake_id(clock_timestamp() + interval '2 days', 5, 1))});
like(rows(), qr/\Aerror\|table mine.d\|It has the ID .*, which belongs to mallory, .*\|CALL public.snowflake_renumber\('mine.d'[^\n]*\nnote/,
	"a stranger's future-dated row speaks for its own table");
$node->safe_psql($database, setval_ahead('next_id_seq', '3 days'));
$rows = rows();
like($rows, qr/^error\|sequence .*\|Do what the rows of tables of other roles say, and check again\.$/m,
	'... and does not have all tables moved where a sequence is ahead');
like($rows, qr/^error\|table mine.d\|It has future-dated IDs of shard 5, which belongs to mallory.*new_shard => N::bigint/m,
	'... but be renumbered');
$node->sql('GRANT pg_read_all_data TO reader');
like(rows('reader'),
	qr/^error\|table mine.d\|It has .* Only mallory, the owner of mine\.d, can do this\.\|CALL .*; -- N is .*[^.]$/m,
	'... by mallory, as whoever cannot do it is told');
my ($remedy) = $rows =~ /^error\|table mine.d\|.*\|(.*)$/m;
$node->safe_psql($database, $remedy =~ s/\bN\b/6/r);
like(rows(), qr/^error\|sequence public.next_id_seq\|.*\|CALL public.snowflake_set_back/m, '... after which it can be set back');

new_database();
set_ahead();
future_row();
like(rows('reader'), qr/^error\|sequence public.next_id_seq\|.* Only postgres, the owner of public\.photos, can do this\.\|CALL public.snowflake_move\('public.photos'.*; -- N is /m,
	'the owner of a sequence is not said to be who can move a table');

done_testing();
