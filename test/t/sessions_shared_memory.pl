# Sessions share which files have WAL of their own.  Up to PostgreSQL 16 they do only if
# the library is preloaded.
#
# A session that knows of another's record writes none, so it neither waits for the
# disk nor lengthens the WAL.  It must not rely on that for a file whose page is a
# copy.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

# The WAL has what a transaction does to a file that it makes.
my $node = server_ahead_of_clock('shared', NOBODY_FLUSHES . "wal_level = replica\n");
share_memory($node, 1);

# Does a new session's call write WAL?
sub writes_wal
{
	my $before = $node->lsn('insert');
	next_id($node);
	return $node->lsn('insert') ne $before;
}

ok(writes_wal(), 'the first session after setval() writes a record');
ok(!(grep { writes_wal() } 1 .. 20), 'none of the twenty sessions that come after it writes WAL');
$node->safe_psql('postgres', 'CHECKPOINT');
ok(writes_wal(), 'the first session after a checkpoint writes a record');
ok(!writes_wal(), 'a session that comes after the first one since a checkpoint writes no record');
next_id_is_larger_after_crash($node, next_id($node), 'one taken without a record');
next_id_is_larger_after_crash($node, next_id($node), 'one taken after a restart');

# Sessions know of each other's records for many sequences at once.
# They are ahead of the clock, so that the time that a record covers is never over.
$node->safe_psql('postgres', q{
	SELECT format('CREATE SEQUENCE many_%s MAXVALUE 1125899906841599 START %s', n, (snowflake_min_id(now() + interval '1 day') >> 23) * 1024)
	FROM generate_series(1, 500) n \gexec});
my $all = q{SELECT count(next_id(5, oid)) FROM pg_class WHERE relname LIKE 'many\_%'};
$node->safe_psql('postgres', $all);
my $lsn = $node->lsn('insert');
is($node->safe_psql('postgres', $all), 500, 'a session uses 500 sequences that another one has used');
is($node->lsn('insert'), $lsn, 'and writes no record for any of them');

# A transaction that makes a sequence has to rely on its own record, because nobody
# notes it.
my ($from, $ids, $to) = split /\n/, $node->safe_psql('postgres', q{
	BEGIN;
	SELECT format('CREATE SEQUENCE new MAXVALUE 1125899906841599 START %s', (snowflake_min_id(now() + interval '1 day') >> 23) * 1024) \gexec
	SELECT pg_current_wal_insert_lsn();
	SELECT count(next_id(5, 'new')) FROM generate_series(1, 1000);
	SELECT pg_current_wal_insert_lsn();
	COMMIT});
is($ids, 1000, 'a transaction takes a thousand IDs of a sequence that it has made');
my $records = wal_records($node, $from, $to, '-r', 'Sequence');
is(scalar(() = $records =~ /^rmgr/mg), 1, 'and writes one record for them');

# A session that has used the sequence, too, does not trust a page that owes its LSN
# to somebody else's record, such as nextval()'s, which covers 32 values.
my $session = $node->background_psql('postgres');
$session->query_safe(q{SELECT next_id(5, 'used')});
$node->safe_psql('postgres', q{SELECT setval('used', last_value) FROM used; SELECT nextval('used')});
$lsn = $node->lsn('insert');
$session->query_safe(q{SELECT next_id(5, 'used')});
isnt($node->lsn('insert'), $lsn, 'a session writes a record after one that is not of next_id()');
$lsn = $node->lsn('insert');
next_id($node);
$session->query_safe(q{SELECT next_id(5, 'used')});
is($node->lsn('insert'), $lsn, 'and sessions then rely on that');
$session->quit;

# SET UNLOGGED and SET LOGGED copy the page, with a count that no record of the new
# file covers.
next_id($node) for 1 .. 2;
$node->safe_psql('postgres', 'ALTER SEQUENCE used SET UNLOGGED; ALTER SEQUENCE used SET LOGGED');
next_id_is_larger_after_crash($node, next_id($node), 'one taken from another file of the sequence');

# A new database with the OID of a dropped one also has the names of its files.
my $create = 'CREATE DATABASE again TEMPLATE postgres OID 99999 STRATEGY wal_log';
next_id($node) for 1 .. 2;
$node->safe_psql('template1', $create);
next_id($node, 'used', 'again') for 1 .. 2;
my $file = $node->safe_psql('again', q{SELECT pg_relation_filepath('used')});
$node->safe_psql('template1', 'DROP DATABASE again');
next_id($node) for 1 .. 2;
$node->safe_psql('template1', $create);
is($node->safe_psql('again', q{SELECT pg_relation_filepath('used')}), $file, 'a sequence has a file of the same name as one that was dropped');
next_id_is_larger_after_crash($node, next_id($node, 'used', 'again'),
	'one taken from a file with the name of a dropped one', database => 'again');

# On all versions the library may be preloaded, also before or after another one
# that needs shared memory.  The server keeps some memory for libraries that ask for
# none.
my $unused = q{SELECT size FROM pg_shmem_allocations WHERE name IS NULL};
share_memory($node, 0);
my $kept = $node->safe_psql('postgres', $unused);
withhold_memory($node, 0);
foreach my $libraries ('snowflake', 'pg_stat_statements, snowflake', 'snowflake, pg_stat_statements')
{
	SKIP:
	{
		skip 'pg_stat_statements is not installed', 3 if $libraries =~ /pg_stat_statements/ && !$node->safe_psql('postgres',
			q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_stat_statements'});

		$node->stop;
		$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\n");
		ok($node->start(fail_ok => 1), "a server starts with shared_preload_libraries = '$libraries'");
		next_id($node);
		ok(!writes_wal(), "a session that comes after one that wrote a record writes none: shared_preload_libraries = '$libraries'");
		cmp_ok($node->safe_psql('postgres', $unused), '>', $kept - 65536,
			"the memory that sessions share was reserved: shared_preload_libraries = '$libraries'");
	}
}

# Without shared memory, no session knows of another's record.
my $log = -s $node->logfile;
share_memory($node, 0);
next_id($node);
ok(writes_wal(), 'without shared memory each session writes a record');
is(slurp_file($node->logfile, $log) =~ /LOG: .* next_id\(\) cannot use shared memory in this session: .*mmap/ ? 'told' : 'not told',
	$node->pg_version < 17 ? 'not told' : 'told', 'and the server log tells so where the server has refused the memory');
$session = $node->background_psql('postgres');
my @take_from_each = map { "SELECT next_id(5, 'many_$_')" } 1 .. 20;
$session->query_safe($_) foreach @take_from_each;
$lsn = $node->lsn('insert');
$session->query_safe($_) foreach @take_from_each;
is($node->lsn('insert'), $lsn, 'a session writes one record for each sequence, however many it meets afterwards');
$session->quit;

# A session that cannot have the memory beside one that has it
if ($node->pg_version >= 17)
{
	share_memory($node, 1);
	my ($with, $without) = map { $node->background_psql('postgres') } 1, 2;
	my $take = sub {
		my ($taker) = @_;
		my $before = $node->lsn('insert');
		my $id = $taker->query_safe(q{SELECT next_id(5, 'used')});
		return ($id, $node->lsn('insert') ne $before);
	};

	my $segments = $node->data_dir . '/pg_dynshmem/*';
	my %before = map { $_ => 1 } glob $segments;
	$take->($with);
	chmod 0, grep { !$before{$_} } glob $segments or die "chmod: $!";
	ok(($take->($without))[1], 'a session without shared memory writes a record, although others have shared theirs');
	ok(($take->($with))[1], 'a session with shared memory does not rely on that record');
	ok(!(grep { ($take->($_))[1] } $without, $with, $without), 'then both take IDs without writing records');

	# A file with a copy of the page
	$node->safe_psql('postgres', 'ALTER SEQUENCE used SET UNLOGGED; ALTER SEQUENCE used SET LOGGED');
	$take->($with);
	my ($last) = $take->($without);
	next_id_is_larger_after_crash($node, $last, 'one taken without shared memory after one taken with it',
		sessions => [ $with, $without ]);
}

$node->stop;
done_testing();
