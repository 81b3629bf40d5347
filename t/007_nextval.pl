# next_id() and nextval() in the same crashes, where nextval() repeats.
#
# That nextval() does shows that the schedules, which are those of
# 004_crash.pl, are the right ones.  Where it does not, that is said and
# counted as skipped: next_id()'s part is then no proof.
#
# The mark is a day ahead of the clock, as the clock's own progress would hide
# a value that comes again.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('nextval');
$node->init;
$node->append_conf('postgresql.conf', NOBODY_FLUSHES);
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE used MAXVALUE 1125899906841599;
	CREATE SEQUENCE plain;
});
ahead_of_clock($node, 'used', '1 day');

my $next_id = q{SELECT next_id(5, 'used')};
my $nextval = q{SELECT nextval('plain')};

# What core does is for core to change.
sub control
{
	my ($repeats, $name) = @_;

  SKIP:
	{
		skip "nextval() does not repeat here: $name", 1 unless $repeats;
		pass("$name: nextval() repeats (control)");
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
	crash($node);
	eval { $_->quit } for @session;
	$node->start;
	return $node->safe_psql('postgres', $sql) <= $taken;
}

my $repeats = 0;
for (my $try = 0; $try < 3 && !$repeats; $try++)
{
	$repeats = leak($nextval);
}
control($repeats, 'leak before flush');
ok(!leak($next_id), 'leak before flush: next_id() does not');

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
	my ($database, $name, @taken) = @_;
	my ($ids, $values) =
	  map { $node->safe_psql($database, $_) <= shift @taken } $next_id, $nextval;

	control($values, $name);
	ok(!$ids, "$name: next_id() does not");
	return;
}

sub crash_and_compare
{
	my ($database, $name) = @_;
	my @taken = use_both($database);

	crash($node);
	$node->start;
	return compare($database, $name, @taken);
}

# The new file has a count of values that the old one's WAL covers.
use_both('postgres');
$node->safe_psql('postgres',
	"ALTER SEQUENCE $_ SET UNLOGGED; ALTER SEQUENCE $_ SET LOGGED") for qw(used plain);
crash_and_compare('postgres', 'SET UNLOGGED, SET LOGGED');

# So has a copied one.  (STRATEGY file_copy ends with a checkpoint, after which
# nextval() writes a record, too.)
use_both('postgres');
$node->safe_psql('template1', 'CREATE DATABASE copy TEMPLATE postgres STRATEGY wal_log');
crash_and_compare('copy', 'TEMPLATE');

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
crash($node);
$node->start;
compare('postgres', 'wal_level = minimal', @taken);

$node->stop;
done_testing();
