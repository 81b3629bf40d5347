# next_id() repeats no ID in crashes where nextval() repeats a value.
#
# That nextval() does shows that the schedules, which crash_ids_grow.pl and
# crash_new_file.pl have as well, are the right ones.  Where it does not, its part
# is skipped, and next_id()'s part is no proof.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_ahead_of_clock('nextval', NOBODY_FLUSHES);
my $next_id = q{SELECT next_id(5, 'used')};
my $nextval = q{SELECT nextval('plain')};

# What core does is for core to change.
sub nextval_repeats
{
	my ($repeats, $when) = @_;

  SKIP:
	{
		skip "nextval() does not repeat a value here: $when", 1 unless $repeats;
		pass("nextval() repeats a value after a crash: $when (control)");
	}
	return;
}

sub next_id_does_not_repeat
{
	my ($repeats, $when) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return ok(!$repeats, "next_id() repeats no ID after a crash: $when");
}

# Session A logs in an open transaction, B takes a value and has nothing to
# commit, and nobody flushes.  Does B's value come again after a crash?
sub unflushed_repeats
{
	my ($sql) = @_;
	my ($a, $b) = map { $node->background_psql('postgres') } 1, 2;

	$_->query_safe($sql) for $a, $b;
	$node->safe_psql('postgres', 'CHECKPOINT');
	$a->query_safe("BEGIN; $sql");
	my $taken = $b->query_safe($sql);
	crash_and_start($node, $a, $b);
	return $node->safe_psql('postgres', $sql) <= $taken;
}

# A background process may flush the record, so nextval() has three tries.
my $repeats = 0;
$repeats ||= unflushed_repeats($nextval) for 1 .. 3;
nextval_repeats($repeats, 'its record was not flushed');
next_id_does_not_repeat(unflushed_repeats($next_id), 'its record was not flushed');

# Take values of both, each in a session of its own, and return the last ones.
sub use_both
{
	my ($database) = @_;
	my @last;

	@last = map { $node->safe_psql($database, $_) } $next_id, $nextval for 1 .. 4;
	return @last;
}

# Crash, and compare the next values with the last ones.
sub crash_and_compare
{
	my ($database, $when, @last) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	crash_and_start($node);
	my ($ids, $values) = map { $node->safe_psql($database, $_) <= shift @last } $next_id, $nextval;
	nextval_repeats($values, $when);
	next_id_does_not_repeat($ids, $when);
	return;
}

# The new file has a count of values that the old one's WAL covers.
use_both('postgres');
$node->safe_psql('postgres', "ALTER SEQUENCE $_ SET UNLOGGED; ALTER SEQUENCE $_ SET LOGGED") for 'used', 'plain';
crash_and_compare('postgres', 'the sequence was SET UNLOGGED and SET LOGGED', use_both('postgres'));

# So has a copied one.  STRATEGY file_copy ends with a checkpoint, after which
# nextval() writes a record as well.
use_both('postgres');
$node->safe_psql('template1', 'CREATE DATABASE copy TEMPLATE postgres STRATEGY wal_log');
crash_and_compare('copy', 'the database is a copy of a template', use_both('copy'));

# So has the image of the page that is logged at commit, and the session that
# made the sequence goes on with it.
$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = '1GB'\n");
$node->restart;
my @taken = split /\n/, $node->safe_psql('postgres', join ";\n",
	'DROP SEQUENCE used, plain', 'BEGIN', 'CREATE SEQUENCE used MAXVALUE 1125899906841599', 'CREATE SEQUENCE plain',
	setval_ahead('used', '1 day'), $next_id, $nextval, 'COMMIT', ($next_id, $nextval) x 2);
crash_and_compare('postgres', 'the sequence was made with wal_level = minimal', @taken[ -2, -1 ]);

$node->stop;
done_testing();
