# Crashes: an ID that somebody has is never returned again.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

sub new_node
{
	my ($name, $conf) = @_;
	my $node = server_ahead_of_clock($name, NOBODY_FLUSHES . "max_prepared_transactions = 2\n" . ($conf // ''));

	$node->safe_psql('postgres', 'CHECKPOINT');
	return $node;
}

my $next = q{SELECT next_id(5, 'used')};

# A writes the record that covers B's ID within an open transaction, so that
# nobody flushes it; and B has nothing to commit.  Both have used the file
# before, or B would write a record of its own.
foreach my $commit ('on', 'off')
{
	my $node = new_node("leak_$commit", "synchronous_commit = $commit\n");
	my $a = $node->background_psql('postgres');
	my $b = $node->background_psql('postgres');
	$_->query_safe($next) for $a, $b;
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $inside = $a->query_safe("BEGIN; $next");
	my $outside = $b->query_safe($next);
	cmp_ok($outside, '>', $inside,
		"synchronous_commit = $commit: an ID is larger than one taken before in an open transaction");
	next_id_is_larger_after_crash($node, $outside,
		"one that needed no record of its own, with synchronous_commit = $commit", sessions => [ $a, $b ]);
	$node->stop;
}

# Many at once, of which the WAL may have covered only the first.  No clock
# drives this sequence, so none hides what is lost.
{
	my $node = new_node('many');
	$node->safe_psql('postgres', 'CREATE SEQUENCE counter MAXVALUE 2147483647');
	foreach my $batches (2, 3, 4, 7)
	{
		my $last = $node->safe_psql('postgres',
			join(';', (q{SELECT max(id) FROM next_ids(0, 700, 'counter', 'sequence:31') id}) x $batches));
		crash_and_start($node);
		cmp_ok($node->safe_psql('postgres', q{SELECT next_id(0, 'counter', 'sequence:31')}),
			'>', (split /\n/, $last)[-1],
			"after a crash, the next ID is larger than those of $batches batches of next_ids()");
	}
	$node->stop;
}

# SET UNLOGGED and back copies the count of values that the old file's WAL
# covers.
{
	my $node = new_node('persistence');
	next_id($node);
	$node->safe_psql('postgres', q{ALTER SEQUENCE used SET UNLOGGED; ALTER SEQUENCE used SET LOGGED});
	next_id($node) for 1 .. 4;
	next_id_is_larger_after_crash($node, next_id($node), 'one taken after SET UNLOGGED and SET LOGGED');

	# All in one session, which has written WAL for the old file.
	my $last = (split /\n/, $node->safe_psql('postgres', qq{
		$next;
		ALTER SEQUENCE used SET UNLOGGED; ALTER SEQUENCE used SET LOGGED;
		$next; $next; $next}))[-1];
	next_id_is_larger_after_crash($node, $last,
		'one taken after SET UNLOGGED and SET LOGGED by a session that has logged the old file');
	$node->stop;
}

# setval() logs a value that is yet to be taken, and nothing beyond it.
{
	my $node = new_node('setval');
	my $last = (split /\n/, $node->safe_psql('postgres', qq{
		$next;
		SELECT setval('used', last_value + 100, false) > 0 FROM used;
		$next}))[-1];
	next_id_is_larger_after_crash($node, $last, 'one made of a value that setval() left to be taken');
	$node->stop;
}

# A database made from a template copies that count, even if the copy is not in WAL.
foreach my $strategy ('wal_log', 'file_copy')
{
	my $node = new_node("template_$strategy");
	next_id($node);
	$node->safe_psql('template1', "CREATE DATABASE copy TEMPLATE postgres STRATEGY $strategy");
	my $last;
	$last = next_id($node, 'used', 'copy') for 1 .. 3;
	next_id_is_larger_after_crash($node, $last, "one taken in a copy made with STRATEGY $strategy", database => 'copy');
	$node->stop;
}

# A sequence made in the same transaction has no WAL of its own here.
{
	my $node = new_node('minimal', "wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = 0\n");
	my $last = $node->safe_psql('postgres', q{
		BEGIN;
		CREATE SEQUENCE young MAXVALUE 1125899906841599;
		SELECT setval('young', (snowflake_min_id(now() + interval '1 day') >> 23) * 1024) \g /dev/null
		SELECT next_id(5, 'young') \g /dev/null
		SELECT next_id(5, 'young') \g /dev/null
		COMMIT;
		SELECT next_id(5, 'young') \g /dev/null
		SELECT next_id(5, 'young') \g /dev/null
		SELECT next_id(5, 'young')});
	next_id_is_larger_after_crash($node, $last,
		'one taken by the session that made the sequence with wal_level = minimal', sequence => 'young');

	$node->safe_psql('postgres', q{
		BEGIN;
		CREATE SEQUENCE younger MAXVALUE 1125899906841599;
		SELECT setval('younger', (snowflake_min_id(now() + interval '1 day') >> 23) * 1024);
		SELECT count(next_id(5, 'younger')) FROM generate_series(1, 10);
		COMMIT});
	next_id_is_larger_after_crash($node, next_id($node, 'younger'),
		'one taken by another session than made the sequence with wal_level = minimal', sequence => 'younger');

	# The commit logs an image of a small file's page.  nextval() must not
	# find a count in it, neither one of next_id() nor one that an earlier
	# nextval() left.
	$last = $node->safe_psql('postgres', q{
		SET wal_skip_threshold = '2MB';
		BEGIN;
		CREATE SEQUENCE youngest MAXVALUE 1125899906841599;
		SELECT setval('youngest', (snowflake_min_id(now() + interval '1 day') >> 23) * 1024) \g /dev/null
		SELECT nextval('youngest') \g /dev/null
		SELECT count(next_id(5, 'youngest')) FROM generate_series(1, 10) \g /dev/null
		COMMIT;
		SELECT nextval('youngest') \g /dev/null
		SELECT nextval('youngest')});
	crash_and_start($node);
	cmp_ok($node->safe_psql('postgres', q{SELECT nextval('youngest')}), '>', $last,
		'after a crash, nextval() is larger than one of a sequence made with wal_level = minimal and used by next_id()');

	$last = $node->safe_psql('postgres', q{
		BEGIN;
		ALTER SEQUENCE younger SET UNLOGGED;
		ALTER SEQUENCE younger SET LOGGED;
		SELECT next_id(5, 'younger') \g /dev/null
		SELECT next_id(5, 'younger') \g /dev/null
		COMMIT;
		SELECT next_id(5, 'younger')});
	next_id_is_larger_after_crash($node, $last,
		'one taken from a file made in the transaction with wal_level = minimal', sequence => 'younger');
	$node->stop;
}

# After a checkpoint, a record from before it is of no use.
{
	my $node = new_node('checkpoint');
	my $psql = $node->background_psql('postgres');
	$psql->query_safe($next);
	$node->safe_psql('postgres', 'CHECKPOINT');
	$psql->query_safe($next);
	next_id_is_larger_after_crash($node, $psql->query_safe($next), 'one taken after a checkpoint', sessions => [$psql]);

	my $prepared = $node->safe_psql('postgres', qq{
		CREATE TABLE kept (id bigint);
		BEGIN;
		INSERT INTO kept SELECT next_id(5, 'used') RETURNING id;
		PREPARE TRANSACTION 'p'});
	next_id_is_larger_after_crash($node, $prepared, 'one of a prepared transaction');
	$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
	is($node->safe_psql('postgres', 'SELECT id FROM kept'), $prepared,
		'a transaction prepared before a crash commits the ID that it took');

	my $last = $node->safe_psql('postgres', q{
		SELECT nextval('used') \g /dev/null
		SELECT next_id(5, 'used') \g /dev/null
		SELECT setval('used', last_value + 5000000) FROM used \g /dev/null
		SELECT nextval('used') \g /dev/null
		SELECT next_id(5, 'used')});
	next_id_is_larger_after_crash($node, $last, 'one taken in turn with nextval() and setval()');

	# Under load, several times; aborted transactions count.
	my $dir = PostgreSQL::Test::Utils::tempdir;
	append_to_file("$dir/load.sql", "BEGIN;\nSELECT next_id(5, 'used') AS id \\gset\nROLLBACK;\n");
	foreach my $round (1 .. 3)
	{
		my $log = '';
		my $load = IPC::Run::start(
			[ 'pgbench', '-n', '-c', '8', '-T', '30', '-f', "$dir/load.sql",
				'-h', $node->host, '-p', $node->port, 'postgres' ],
			'>', \$log, '2>', \$log);
		my $watcher = $node->background_psql('postgres');
		my $seen = 0;
		$seen = $watcher->query_safe($next) for 1 .. 300;
		next_id_is_larger_after_crash($node, $seen, "one taken beside eight busy sessions, round $round",
			sessions => [$watcher]);
		$load->finish;
	}
	$node->stop;
}

done_testing();
