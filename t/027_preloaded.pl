# With the library preloaded, sessions share which files have WAL of their own.
#
# A session that knows of another's record writes none, so it neither waits for
# the disk nor lengthens the WAL.  It must not believe this of a file whose page
# is a copy.  The mark is a day ahead of the clock, as the clock's own progress
# would hide a value that comes again.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('preloaded');
$node->init;
$node->append_conf('postgresql.conf', NOBODY_FLUSHES);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE used MAXVALUE 1125899906841599;
});
ahead_of_clock($node, 'used', '1 day');

# Take an ID in a session of its own.
sub take
{
	my ($database) = @_;
	return $node->safe_psql($database // 'postgres', q{SELECT next_id(5, 'used')});
}

# Does a new session's call write WAL?
sub writes_wal
{
	my $before = $node->lsn('insert');
	take();
	return $node->lsn('insert') ne $before;
}

# Crash, and see whether the next ID is larger than the last one.
sub is_larger_after_crash
{
	my ($name, $last, $database) = @_;

	crash($node);
	$node->start;
	cmp_ok(take($database), '>', $last, "$name: after a crash the next ID is larger");
	return;
}

ok(writes_wal(), 'the first session after setval() writes a record');
ok(!writes_wal(), 'a session that comes after it writes none');
$node->safe_psql('postgres', 'CHECKPOINT');
ok(writes_wal(), 'the first session after a checkpoint writes a record');
ok(!writes_wal(), 'a session that comes after that one writes none');
is_larger_after_crash('a value taken without a record', take());
is_larger_after_crash('a value taken after a restart', take());

# The image of a page that a copy is made of has a count that no record of the
# copy covers.
take() for 1 .. 2;
$node->safe_psql('postgres', 'ALTER SEQUENCE used SET UNLOGGED; ALTER SEQUENCE used SET LOGGED');
is_larger_after_crash('another file', take());

# A database that has the OID of one that was dropped has its files' names.
my $create = 'CREATE DATABASE again TEMPLATE postgres OID 99999 STRATEGY wal_log';
take() for 1 .. 2;
$node->safe_psql('template1', $create);
take('again') for 1 .. 2;
my $file = $node->safe_psql('again', q{SELECT pg_relation_filepath('used')});
$node->safe_psql('template1', 'DROP DATABASE again');
take() for 1 .. 2;
$node->safe_psql('template1', $create);
is($node->safe_psql('again', q{SELECT pg_relation_filepath('used')}), $file, 'a file has the name of a dropped one');
is_larger_after_crash('a file with the name of a dropped one', take('again'), 'again');

# Without preloading nobody knows of another's record.
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;
take();
ok(writes_wal(), 'without preloading each session writes a record');

$node->stop;
done_testing();
