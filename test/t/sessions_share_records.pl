# A session that finds another's WAL record by the note on the sequence's page writes none,
# so it neither waits for the disk nor lengthens the WAL, and COPY writes a record for many
# rows.  crash_stale_note.pl has pages on whose note it must not rely.

use SnowflakeTest;

# The WAL has what a transaction does to a file that it makes.
my $node = server_ahead_of_clock('sessions', NOBODY_FLUSHES . "wal_level = replica\n");

# Does a call, by a new session if none is given, write WAL?
sub writes_wal
{
	my ($session) = @_;
	my $call = q{EXPLAIN (ANALYZE, WAL) SELECT next_id(5, 'used')};

	return ($session ? $session->query_safe($call) : $node->sql($call)) =~ /WAL: records=/;
}

ok(writes_wal(), 'the first session after setval() writes a record');
ok(!(grep { writes_wal() } 1 .. 20), 'none of the twenty sessions that come after it writes WAL');
$node->restart;
cmp_ok(scalar(grep { writes_wal() } 1 .. 10), '<=', 1,
	'ten new sessions that take an ID each write one record at most in all');
$node->sql('CHECKPOINT');
ok(writes_wal(), 'the first session after a checkpoint writes a record');
next_id_is_larger_after_crash($node, next_id($node), 'one taken without a record');

# A transaction that makes a sequence has to rely on its own record, because the page
# has no note of it.  The time that the record covers is never over, as the sequence is
# ahead of the clock.
my ($from, $ids, $to) = split /\n/, $node->sql(q{
	BEGIN;
	SELECT format('CREATE SEQUENCE new MAXVALUE 1125899906841599 START %s',
		(snowflake_min_id(now() + interval '1 day') >> 23) * 1024) \gexec
	SELECT pg_current_wal_insert_lsn();
	SELECT count(next_id(5, 'new')) FROM generate_series(1, 1000);
	SELECT pg_current_wal_insert_lsn();
	COMMIT});
is($ids, 1000, 'a transaction takes a thousand IDs of a sequence that it has made');
my $records = wal_records($node, $from, $to, '-r', 'Sequence');
is(scalar(() = $records =~ /^rmgr/mg), 1, 'and writes one record for them');

# A session that has used the sequence, too, does not trust a page that owes its LSN
# to somebody else's record, such as nextval()'s, which covers 32 values.
my $session = session($node);
writes_wal($session);
$node->sql(q{SELECT setval('used', last_value) FROM used; SELECT nextval('used')});
ok(writes_wal($session), 'a session writes a record after one that is not of next_id()');
ok(!(grep { writes_wal($_) } undef, $session), 'and sessions then rely on that');

# --- COPY, as with nextval() -------------------------------------------------------------

$node->append_conf('postgresql.conf', "snowflake.shard = 7\n");
$node->reload;

# COPY of 1,000 rows writes a record of many rows at a time, or one for each row.
foreach my $case (
	(map { [ $_, 'many rows' ] }
		'bigint GENERATED ALWAYS AS IDENTITY',
		'bigint DEFAULT next_id(5)',
		q{bigint DEFAULT next_id(snowflake_shard(), 'used')},
		q{bigint DEFAULT next_id(5, 'used', 'instagram')},
		'snowflake DEFAULT next_id()',
		'text DEFAULT snowflake_to_text(next_id(5))'),
	# The default calls another volatile function.
	[ 'bigint DEFAULT next_id((random() * 8)::bigint)', 'one row' ])
{
	my ($column, $expected) = @$case;

	$node->sql("DROP TABLE IF EXISTS photos; CREATE TABLE photos (id $column, n int)");
	my $from = $node->lsn('insert');
	$node->sql("COPY photos (n) FROM stdin;\n" . join("\n", 1 .. 1000) . "\n\\.\n");
	my $records = wal_records($node, $from, $node->sql('SELECT pg_switch_wal()'));
	my $many = () = $records =~ /desc: MULTI_INSERT/g;
	my $one = () = $records =~ /desc: INSERT(?:\+INIT)? off/g;
	is($one == 1000 && $many == 0 ? 'one row' : $one == 0 && $many > 0 && $many < 50 ? 'many rows' : "$one, $many",
		$expected, "COPY into a table with $column writes records of $expected");
}

done_testing();
