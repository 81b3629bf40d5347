# Replay on a standby: its pages and records of sequences match the primary's.  A
# standby reads IDs and makes none.

use Time::HiRes qw(sleep);
use SnowflakeTest;
use StandbyTest;

my $node = server_ahead_of_clock('primary', <<EOC, allows_streaming => 1);
autovacuum = off
wal_consistency_checking = 'all'
wal_keep_size = '1GB'
EOC
$node->sql('CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), n int)');

# Make the standby from a backup under load.
my $load = start_load($node->connstr('postgres'), <<'EOS');
SELECT next_id(5, 'used');
SELECT nextval('used');
BEGIN; INSERT INTO photos SELECT FROM generate_series(1, 20); ROLLBACK;
SELECT count(next_id(5, 'used')) FROM generate_series(1, 3000);
SELECT setval('used', last_value + 3) FROM used;
EOS
sleep(0.5);
my $standby = standby_of($node, 'standby');
foreach (1 .. 20)
{
	$node->sql('CHECKPOINT');
	sleep(0.1);
}
end_load($load, 'a primary');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));

# A standby stops if a page that it has replayed differs from the record's image.
is($standby->sql('SELECT pg_is_in_recovery()'), 't', 'wal_consistency_checking finds no difference under load');

# Take a page apart: its LSN, the last value that its record covers, how far the
# sequence is from there, the note of the record, and everything else but the checksum.
sub page
{
	my ($server, $sequence) = @_;
	my $page = slurp_file(file_of($server, $sequence));
	# The page's one tuple is where its free space ends.
	my $offset = unpack 'S', substr($page, 14, 2);
	my ($last, $log_cnt) = unpack 'qq', substr($page, $offset + 24, 16);
	# The page's LSN is stored as two numbers, and the note's as one.
	my ($high, $low) = unpack 'LL', substr($page, 0, 8);
	my $noted_lsn = unpack 'Q', substr($page, 32, 8);
	my $note = unpack 'H*', substr($page, 32, 32);

	substr($page, $offset + 24, 16) = '';
	substr($page, 32, 32) = '';
	substr($page, 0, 10) = '';
	return { lsn => $high << 32 | $low, covered => $last + $log_cnt, log_cnt => $log_cnt,
		noted_lsn => $noted_lsn, note => $note, rest => unpack('H*', $page) };
}

# The last record may be one of setval(), of which there is no note.
next_id($node);
$node->sql('CHECKPOINT');
ok( wait_for(sub {
		$standby->sql('CHECKPOINT');
		return page($node, 'used')->{lsn} eq page($standby, 'used')->{lsn} }),
	'a sequence\'s page has the same LSN on the standby as on the primary');
foreach my $sequence ('used', 'next_id_seq')
{
	my ($ours, $theirs) = map { page($_, $sequence) } $node, $standby;
	is($theirs->{rest}, $ours->{rest},
		"the page of $sequence differs on the standby in its values and in the note only");
	is($ours->{noted_lsn}, $ours->{lsn}, "the note on the page of $sequence has the page's LSN");
	is($theirs->{note}, '0' x 64, "the standby's page of $sequence has no note");
	is($theirs->{covered}, $ours->{covered}, "the WAL of $sequence covers the same values on the standby");
	is($theirs->{log_cnt}, 0, "the standby's sequence $sequence is at the last value that the WAL covers");
}

# --- a standby reads IDs and makes none -----------------------------------------------

$node->sql(q{
	CREATE SEQUENCE unused MAXVALUE 1125899906841599;
	CREATE TABLE albums (id bigint PRIMARY KEY DEFAULT next_id(5, 'used'));
	INSERT INTO albums DEFAULT VALUES});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
foreach my $call ("next_id(5, 'used')", "snowflake_alter_sequence('used')", "snowflake_advance('used', 1)",
	'snowflake_settled_id()', 'snowflake_set_shard(5)')
{
	my ($function) = $call =~ /^(\w+)/;
	fails_with($standby, "SELECT $call", qr/^25006 cannot execute $function\(\) during recovery/,
		"a standby refuses $function()");
}
is($standby->sql('SELECT snowflake_shard(id) FROM albums'), 5, 'a standby reads IDs');
my ($last, $covered) = split /\|/, $node->sql(q{
	SELECT last_timestamp, snowflake_timestamp((last_value + log_cnt) / 1024 << 23)
	FROM snowflake_sequences('used'), used});
isnt($covered, $last, 'the WAL covers values beyond the last one');
is($standby->sql(q{SELECT last_timestamp FROM snowflake_sequences('used')}), $covered,
	'snowflake_sequences() on a standby shows the time of the last value that the WAL covers');

# A transaction that has called snowflake_sequences() must not hold up replay, nor
# keep to the old file.  The query is run before, so that it looks up nothing
# else in the transaction.
my $session = session($standby);
my $unused = q{SELECT last_timestamp IS NULL, state <> 'refuses' FROM snowflake_sequences('unused')};
$session->query_safe($unused) foreach 1 .. 3;
$session->query_safe('BEGIN');
like($session->query_safe($unused), qr/^t\|t$/, 'a standby\'s transaction sees a sequence that has not been used');
$node->sql(q{ALTER SEQUENCE unused RESTART; SELECT next_id(5, 'unused')});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
like($session->query($unused), qr/^f\|t$/,
	'a standby\'s open transaction sees that a sequence has a new file and was used');
$session->query_safe('COMMIT');

# Replay gives the sequence another file when the session has locked the sequence and
# is about to read its page.
SKIP:
{
	my $gdb = send_and_hold($session, $unused, 'ReadRecentBuffer') or skip 'gdb cannot hold a session', 1;

	$node->sql('ALTER SEQUENCE unused RESTART');
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	let_go($gdb);
	session_prints($session, qr/\n/) or die 'the session does not go on';
	is("$session->{stdout}$session->{stderr}", "t|t\n",
		'a session reads the new file of a sequence that has got one meanwhile');
}

$standby->stop;
$node->stop;
done_testing();
