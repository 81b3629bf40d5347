# The synchronous standby that had a record dies, and another one without it takes
# over.  No ID goes out from that record any more.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;
use StandbyTest;

my $primary = primary('primary');
$primary->safe_psql('postgres', 'CREATE SEQUENCE counted MAXVALUE 92233720199999');
my ($s1, $s2) = map { standby_of($primary, $_) } 's1', 's2';
my %query = (time => q{SELECT next_id(5, 'used')}, counter => q{SELECT next_id(9, 'counted', 'decimal')});
my %session = map { $_ => session($primary) } keys %query;

$answering = $s1;
set_names($primary, 'FIRST 2 (s1, s2)', 0);
$session{$_}->query_safe($query{$_}) foreach keys %query;

# s2 is connected but receives nothing.
kill 'STOP', $s2->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
set_names($primary, 'FIRST 1 (s1, s2)', 0);
need_record($primary);
$primary->safe_psql('postgres', q{
	SET synchronous_commit = local;
	SELECT setval('counted', last_value + 2000) FROM counted});
my %had = map { $_ => $session{$_}->query_safe($query{$_}) } keys %query;

$s1->stop('immediate');
$answering = undef;
ok( $primary->poll_query_until('postgres', q{
		SELECT string_agg(application_name || sync_state, '') = 's2sync' FROM pg_stat_replication}),
	's1 is dead, and s2 synchronous');
send_sql($session{$_}, $query{$_}) foreach keys %query;
my %taken = map { $_ => result_or_wait($session{$_}) } keys %query;
is($taken{$_}, '', "$_: no ID goes out from the record that only s1 had") foreach sort keys %query;

# The stopped WAL receiver would not let s2 be promoted.
crash($s2);
fail_over($primary, $s2);
foreach my $kind (sort keys %query)
{
	my $after = $s2->safe_psql('postgres', $query{$kind});

	cmp_ok($after, '<=', $had{$kind}, "$kind: s2 was promoted without the record that s1 had (control)");
	ok($taken{$kind} eq '' || $taken{$kind} < $after, "$kind: s2 repeats no ID that went out after the death of s1");
}

$s2->stop;
done_testing();
