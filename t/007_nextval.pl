# next_id() and nextval() in the same crashes, where nextval() repeats.
#
# That nextval() does shows that the schedules, which are those of
# 004_crash.pl, are the right ones.  Where it does not, that is said and
# counted as skipped: next_id()'s part is then no proof.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = server_ahead_of_clock('nextval', NOBODY_FLUSHES);
my $next_id = q{SELECT next_id(5, 'used')};
my $nextval = q{SELECT nextval('plain')};

# What core does is for core to change.
sub control
{
	my ($repeats, $when) = @_;

  SKIP:
	{
		skip "nextval() does not repeat a value here: $when", 1 unless $repeats;
		pass("nextval() repeats a value after a crash: $when (control)");
	}
	return;
}

# A logs within an open transaction; B takes a value and has nothing to
# commit; nobody flushes.  The background writers could, so nextval() has
# three tries.
sub leak
{
	my ($sql) = @_;
	my @session = map { $node->background_psql('postgres') } 1, 2;

	$_->query_safe($sql) for @session;
	$node->safe_psql('postgres', 'CHECKPOINT');
	$session[0]->query_safe("BEGIN; $sql");
	my $taken = $session[1]->query_safe($sql);
	crash_and_start($node, @session);
	return $node->safe_psql('postgres', $sql) <= $taken;
}

my $repeats = 0;
for (my $try = 0; $try < 3 && !$repeats; $try++)
{
	$repeats = leak($nextval);
}
my $unflushed = 'its record was not flushed';
control($repeats, $unflushed);
ok(!leak($next_id), "next_id() repeats no ID after a crash: $unflushed");

# Take some values of both and return the last ones.
sub use_both
{
	my ($database) = @_;

	$node->safe_psql($database, $_) for ($next_id, $nextval) x 3;
	return map { $node->safe_psql($database, $_) } $next_id, $nextval;
}

# Does what was taken come again?
sub compare
{
	my ($database, $when, @taken) = @_;
	my ($ids, $values) =
	  map { $node->safe_psql($database, $_) <= shift @taken } $next_id, $nextval;

	control($values, $when);
	ok(!$ids, "next_id() repeats no ID after a crash: $when");
	return;
}

sub crash_and_compare
{
	my ($database, $when) = @_;
	my @taken = use_both($database);

	crash_and_start($node);
	return compare($database, $when, @taken);
}

# The new file has a count of values that the old one's WAL covers.
use_both('postgres');
$node->safe_psql('postgres',
	"ALTER SEQUENCE $_ SET UNLOGGED; ALTER SEQUENCE $_ SET LOGGED") for qw(used plain);
crash_and_compare('postgres', 'the sequence was SET UNLOGGED and SET LOGGED');

# So has a copied one.  (STRATEGY file_copy ends with a checkpoint, after which
# nextval() writes a record, too.)
use_both('postgres');
$node->safe_psql('template1', 'CREATE DATABASE copy TEMPLATE postgres STRATEGY wal_log');
crash_and_compare('copy', 'the database is a copy of a template');

# The image of the page that is logged at commit has one, and the session that
# made the sequence goes on with it.
$node->append_conf('postgresql.conf',
	"wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = '1GB'\n");
$node->restart;
my @taken = split /\n/, $node->safe_psql('postgres', qq{
	DROP SEQUENCE used;
	DROP SEQUENCE plain;
	BEGIN;
	CREATE SEQUENCE used MAXVALUE 1125899906841599;
	CREATE SEQUENCE plain;
	SELECT setval('used', (snowflake_min_id(now() + interval '1 day') >> 23) * 1024) \\g /dev/null
	$next_id \\g /dev/null
	$nextval \\g /dev/null
	COMMIT;
	$next_id \\g /dev/null
	$nextval \\g /dev/null
	$next_id;
	$nextval});
crash_and_start($node);
compare('postgres', 'the sequence was made with wal_level = minimal', @taken);

$node->stop;
done_testing();
