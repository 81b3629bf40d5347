# After snowflake_advance() has returned, every later ID of the sequence is larger
# than the given one, also after a crash, and while other sessions make IDs.
# sql/advance.sql shows what it does in one session.
#
# The sequences are hours ahead of the clock, whose own progress would hide a
# smaller ID.  snowflake_advance() refuses IDs more than a day ahead.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_ahead_of_clock('advance', NOBODY_FLUSHES . "snowflake.shard = 5\n");
ahead_of_clock($node, 'used', '6 hours');
$node->safe_psql('postgres', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5, 'used'), title text);
	CREATE TABLE other_photos (id bigint PRIMARY KEY DEFAULT next_id(8191))});

# The last but one ID of a shard in the millisecond so long after the sequence's last
# value.  A WAL record covers one second of it.
sub id_after
{
	my ($seconds, $shard) = @_;

	return $node->safe_psql('postgres',
		"SELECT snowflake_id(snowflake_timestamp(last_value / 1024 << 23) + interval '$seconds s', $shard, 1022) FROM used");
}

sub advance
{
	my ($id) = @_;
	return "SELECT snowflake_advance('used', $id)";
}

# Crash, and see that the next ID of the smallest shard is larger than this one.
sub larger_after_crash
{
	my ($id, $what, @sessions) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	next_id_is_larger_after_crash($node, $id, $what, sessions => \@sessions, query => q{SELECT next_id(0, 'used')});
	return;
}

# --- a crash after it has returned -------------------------------------------

my $id = id_after(30, 8191);
$node->safe_psql('postgres', advance($id));
larger_after_crash($id, 'one beyond which its sequence was advanced');

$id = id_after(30, 8191);
$node->safe_psql('postgres', 'BEGIN; ' . advance($id) . '; ROLLBACK');
larger_after_crash($id, 'one beyond which its sequence was advanced in a transaction that was rolled back');

$id = id_after(30, 8191);
$node->safe_psql('postgres', 'BEGIN; SAVEPOINT s; ' . advance($id) . '; ROLLBACK TO s; CREATE TABLE unrelated (); COMMIT; DROP TABLE unrelated; ' . advance(17));
larger_after_crash($id, 'one beyond which its sequence was advanced in a subtransaction that was rolled back');

# Recovery starts at the checkpoint, and does not see an earlier record.
{
	my $session = $node->background_psql('postgres');

	$session->query_safe(advance(id_after(30, 0)));
	$node->safe_psql('postgres', 'CHECKPOINT');
	$id = id_after(0.5, 8191);
	$session->query_safe(advance($id));
	larger_after_crash($id, 'one beyond which its sequence was advanced after a checkpoint, as far as an earlier record covers', $session);
}

# The sequence is where it has to be, but its last value has not been taken.
$id = id_after(30, 5);
$node->safe_psql('postgres', "SELECT setval('used', " . (value_of($id) | 1023) . ', false); ' . advance($id));
larger_after_crash($id, 'one whose sequence was about to make the last ID of that time when it was advanced');

# Session A is held while it puts its value on the page.
SKIP:
{
	skip 'gdb is not installed', 2 unless gdb_is_installed();
	my ($a, $b) = map { $node->background_psql('postgres') } 1, 2;
	my ($pid_a, $pid_b) = map { $_->query_safe('SELECT pg_backend_pid()') } $a, $b;
	my ($smaller, $larger) = map { id_after($_, 8191) } 20, 30;

	$_->query_safe(q{SELECT next_id(5, 'used')}) foreach $a, $b;
	my $gdb = hold_at($pid_a, 'XLogInsert');
	skip 'gdb cannot attach to a server process or finds no functions', 2 unless $gdb->{attached};
	send_sql($a, advance($smaller));
	wait_for(sub { $a->{run}->pump_nb; $gdb->{run}->pump_nb; -e $gdb->{reached} }) or die "XLogInsert was not reached: ${$gdb->{log}}";
	send_sql($b, advance($larger));
	my $waits = 'SELECT count(*) FROM pg_stat_activity WHERE ' . WAITS_FOR_PAGE . " AND pid = $pid_b";
	wait_for(sub { $b->{run}->pump_nb; $b->{stdout} ne '' || $node->safe_psql('postgres', $waits) });
	is($b->{stdout}, '', 'a session waits while another one advances the same sequence');
	let_go($gdb);
	$gdb->{run}->finish;
	session_prints($_, qr/\n/) or die 'a session did not go on' foreach $a, $b;
	cmp_ok($node->safe_psql('postgres', q{SELECT next_id(0, 'used')}), '>', $larger,
		'of two sessions that advance a sequence at once, the one with the smaller ID does not set it back');
	$_->quit foreach $a, $b;
}

# Session A's record is not flushed, as A is held where it would do that.  B finds
# the sequence far enough ahead.  Both have used the file, because each would
# otherwise write a record of its own.
SKIP:
{
	skip 'gdb is not installed', 2 unless gdb_is_installed();

	foreach my $case (
		[ 'advanced it', sub { advance($_[0]) } ],
		[ 'taken IDs', sub { q{SELECT max(id) FROM next_ids(0, 1024, 'used') id} } ])
	{
		my ($what, $sql_of) = @$case;
		my ($a, $b) = map { $node->background_psql('postgres') } 1, 2;
		my $pid = $a->query_safe('SELECT pg_backend_pid()');

		$_->query_safe(q{SELECT next_id(5, 'used')}) foreach $a, $b;
		# The record of setval() covers its value, and nothing beyond it.
		$node->safe_psql('postgres', q{SELECT setval('used', last_value + 5000) FROM used; CREATE TABLE flushed (); DROP TABLE flushed});
		my $gdb = hold_at($pid, 'XLogFlush');
		skip 'gdb cannot attach to a server process or finds no functions', 1 unless $gdb->{attached};
		send_sql($a, $sql_of->(id_after(30, 5)));
		wait_for(sub { $a->{run}->pump_nb; $gdb->{run}->pump_nb; -e $gdb->{reached} }) or die "XLogFlush was not reached: ${$gdb->{log}}";
		# A stays there without gdb, which would keep the server from being killed.  The
		# WAL writer must not flush the record either.
		kill 'STOP', $pid, $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'});
		let_go($gdb);
		$gdb->{run}->finish;
		ok(wait_for(sub { `ps -o stat= -p $pid` =~ /^T/ }), "a session that has $what is held where it would flush its record");

		# The last ID of the last millisecond whose values A has used up
		$id = $node->safe_psql('postgres', q{SELECT ((last_value + 1) / 1024 - 1 << 23) | (8191 << 10) | 1023 FROM used});
		$b->query_safe(advance($id));
		larger_after_crash($id, "one that its sequence was beyond, as another session had $what a moment ago", $a, $b);
	}
}

# --- sessions that advance the same sequence at once --------------------------

my $dir = PostgreSQL::Test::Utils::tempdir;
write_file("$dir/advance.sql", <<'EOS');
\set msecs random(-2000, 2500)
\set shard random(0, 8191)
\set slot random(0, 1023)
SELECT (last_value / 1024 + :msecs << 23) | (:shard << 10) | :slot AS id FROM used \gset
SELECT snowflake_advance('used', :id);
SELECT 1 / (next_id(0, 'used') > :id)::int;
EOS
write_file("$dir/roll_back.sql", "BEGIN;\n" . slurp_file("$dir/advance.sql") . "ROLLBACK;\n");
write_file("$dir/insert.sql", "INSERT INTO photos DEFAULT VALUES;\n");

sub pgbench
{
	my ($scripts, $err, @options) = @_;
	return IPC::Run::start(
		[ 'pgbench', '-n', @options, map({ ('-f', "$dir/$_.sql") } @$scripts), $node->connstr('postgres') ], '>', \my $out, '2>', $err);
}

{
	my $load = pgbench([ 'advance', 'roll_back', 'insert' ], \my $errors, '-c', 8, '-t', 500);

	ok($load->finish, 'each of eight sessions that advance a sequence at once gets a larger ID from it') or note($errors);
	is($node->safe_psql('postgres', q{SELECT lead < '1 day' FROM snowflake_sequences('used')}), 't', 'their IDs were within a day of the clock');
}

# --- a sequence that was rewritten in the same transaction ---------------------

foreach my $end ('COMMIT', 'ROLLBACK')
{
	ahead_of_clock($node, 'used', '6 hours');
	my $last = next_id($node);
	my $session = $node->background_psql('postgres');
	$id = $last + (1000 << 23);

	$session->query_safe('BEGIN; ALTER SEQUENCE used RESTART; ' . advance($id));
	$session->query_safe($end);
	larger_after_crash($end eq 'COMMIT' ? $id : $last,
		$end eq 'COMMIT' ? 'one beyond which its sequence was advanced when it had been rewritten' :
		  'the last one before a transaction that rewrote and advanced its sequence, and was rolled back', $session);
}

# --- a sequence that is set back ----------------------------------------------

# Somebody has set the sequence ten hours ahead, and no ID came from it.  This is what
# snowflake_check() offers then, without its timeout and its last command.
my $set_back = q{
	BEGIN;
	ALTER SEQUENCE next_id_seq RESTART;
	SELECT snowflake_advance('next_id_seq', max(id)) FROM other_photos HAVING max(id) IS NOT NULL;
};
my $insert = 'INSERT INTO other_photos DEFAULT VALUES';

$node->safe_psql('postgres', "$insert; " . setval_ahead('next_id_seq', '10 hours'));
$node->append_conf('postgresql.conf', "snowflake.max_lead = '1s'\n");
$node->reload;

# Sessions insert all the time, and try again after an error.  Their errors would fill
# a pipe.
write_file("$dir/other.sh", <<'EOS');
for i in 1 2 3 4; do
	while [ ! -e "$2" ] && kill -0 "$3"; do psql -XAtq -d "$1" -c 'INSERT INTO other_photos DEFAULT VALUES' 2>>"$4"; sleep 0.01; done &
done
wait
EOS
my $load = IPC::Run::start([ 'sh', "$dir/other.sh", $node->connstr('postgres'), "$dir/stop", $$, "$dir/errors" ]);

# A row from elsewhere has an ID that the clock does not cover.
my $last = $node->safe_psql('postgres', q{
	INSERT INTO other_photos VALUES (snowflake_id(clock_timestamp() + interval '10 min', 8191, 500)) RETURNING id});
fails_with($node, $insert, qr/^53400/, 'a session gets no ID from a sequence that was set ahead');

$node->safe_psql('postgres', "$set_back ROLLBACK");
fails_with($node, $insert, qr/^53400/, 'a session gets no ID when setting the sequence back was rolled back');

my $session = $node->background_psql('postgres');
# It warns of the ten minutes.
$session->query_safe("SET client_min_messages = error; $set_back");
crash_and_start($node, $session);
fails_with($node, $insert, qr/^53400/, 'a session gets no ID when the server was killed before the commit that sets the sequence back');
is($node->safe_psql('postgres', "SELECT max(id) = $last FROM other_photos"), 't', 'no session has got an ID until the sequence is set back');

$node->safe_psql('postgres', "$set_back COMMIT");
crash_and_start($node);
is($node->safe_psql('postgres', q{SELECT lead < '11 min' FROM snowflake_sequences('next_id_seq')}), 't',
	'a crash after the commit does not undo that the sequence was set back');
my $count = $node->safe_psql('postgres', 'SELECT count(*) FROM other_photos');
$node->append_conf('postgresql.conf', "snowflake.max_lead = '1h'\n");
$node->reload;
ok($node->poll_query_until('postgres', "SELECT count(*) > $count + 40 FROM other_photos"), 'sessions insert again when the sequence was set back');
is($node->safe_psql('postgres', "SELECT count(*) FROM other_photos WHERE id <= $last"), $count, 'their IDs are larger than all before');
write_file("$dir/stop", '');
$load->finish;
my $errors = slurp_file("$dir/errors");
like($errors, qr/sequence "next_id_seq" is 09:\d\d:\S+ ahead of the clock/, 'the sessions got errors before');
unlike($errors, qr/duplicate key/, 'no ID came twice');

$node->stop;
done_testing();
