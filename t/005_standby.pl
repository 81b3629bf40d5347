# Standbys: read only, promoted, and waited for if they are synchronous.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "snowflake.max_lead = '30d'\n");
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE used MAXVALUE 1125899906841599;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5, 'used'));
});
ahead_of_clock($primary, 'used', '1 day');
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

my $next = q{SELECT next_id(5, 'used')};
my $id = $primary->safe_psql('postgres', 'INSERT INTO photos DEFAULT VALUES RETURNING id');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

like(sqlstate_of($standby, $next), qr/^25006 cannot execute next_id\(\) during recovery/,
	'a standby makes no IDs');
is($standby->safe_psql('postgres', 'SELECT snowflake_shard(id) FROM photos'), 5, 'but reads them');
is( $standby->safe_psql('postgres', q{
		SELECT last_timestamp >= snowflake_timestamp(id), logged_ahead
		FROM snowflake_status('used'), photos}),
	't|00:00:00', 'and sees the mark that the WAL covers');

# A transaction that has looked at it does not hold up replay, nor keep to the
# old file.  A query that has been run before looks nothing else up.
my $looked = $standby->background_psql('postgres', on_error_stop => 0);
my $unused = q{SELECT last_timestamp IS NULL FROM snowflake_status()};
$looked->query_safe($unused) foreach 1 .. 3;
$looked->query_safe('BEGIN');
like($looked->query_safe($unused), qr/^t$/, 'it sees a sequence that has not been used');
$primary->safe_psql('postgres', q{
	ALTER SEQUENCE next_id_seq RESTART; SELECT next_id(5)});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
like($looked->query($unused), qr/^f$/, 'and in the same transaction its new file, after it was used');
$looked->quit;

# Synchronous: an ID goes out when the standby has the record that covers it.
$primary->safe_psql('postgres', q{
	ALTER SYSTEM SET synchronous_standby_names = '*';
	SELECT pg_reload_conf()});
ok( $primary->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'}),
	'the standby is synchronous');
my $open = $primary->background_psql('postgres', on_error_stop => 0);
my $other = $primary->background_psql('postgres', on_error_stop => 0);
$open->query_safe($next);
$other->query_safe($next);
# a new file makes the next ID write a record
$primary->safe_psql('postgres', q{ALTER SEQUENCE used SET UNLOGGED; ALTER SEQUENCE used SET LOGGED});
$standby->stop;
$open->{stdin} .= "BEGIN; $next;\n";
$open->{run}->pump_nb;
ok( $primary->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'}),
	'without an answer of the standby, the session that wrote the record waits');
$other->{stdin} .= "$next;\n";
$other->{run}->pump_nb;
ok( $primary->poll_query_until('postgres', q{
		SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event = 'SyncRep'}),
	'and so does another');
$primary->safe_psql('postgres', q{
	SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'});
ok( wait_for(sub { $_->{run}->pump_nb for $open, $other;
		2 == grep { $_->{stderr} =~ /ERROR:  canceling next_id\(\) while it waited/ } $open, $other }),
	'a cancelled wait is an error');
is($open->{stdout} . $other->{stdout}, '', 'neither session got an ID');
$_->{stderr} = '' for $open, $other;
$open->quit;

# A session that asks for less gets less.
like($primary->safe_psql('postgres', "SET synchronous_commit = local; $next"), qr/^\d+$/,
	'synchronous_commit = local does not wait');

$standby->start;
ok( $primary->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'}),
	'the standby is back');
my $last = $primary->safe_psql('postgres', 'INSERT INTO photos DEFAULT VALUES RETURNING id');
cmp_ok($last, '>', $id, 'IDs go on');

# Nor does the postmaster's death end the wait with an ID: enough of them to
# be sent before the session comes to its end.
$primary->safe_psql('postgres', q{ALTER SEQUENCE used SET UNLOGGED; ALTER SEQUENCE used SET LOGGED});
$standby->stop;
my $orphan = $primary->background_psql('postgres', on_error_stop => 0);
$orphan->{stdin} .= "COPY ($next FROM generate_series(1, 100000)) TO STDOUT;\n";
$orphan->{run}->pump_nb;
ok( $primary->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'}),
	'a session waits for the standby');
my ($postmaster) = split /\n/, slurp_file($primary->data_dir . '/postmaster.pid');
my @orphans = split ' ', `ps -o pid= --ppid $postmaster`;
kill 'KILL', $postmaster;
ok(wait_for(sub { !grep { kill 0, $_ } @orphans }), 'the postmaster dies, and all others with it');
eval { $orphan->{run}->finish };
unlike($orphan->{stdout}, qr/\d{15}/, 'the session got no ID');
$primary->{_pid} = undef;

# Promotion: what the standby has replayed covers all that was given out.
eval { $other->quit };
$standby->start;
$standby->promote;
$standby->safe_psql('postgres', q{
	ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf()});
$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$standby->reload;
is($standby->safe_psql('postgres', 'SELECT max(id) FROM photos'), $last, 'the row is there');
cmp_ok($standby->safe_psql('postgres', $next), '>', $last, 'the next ID is larger');

$standby->stop;
# A server removes the shared memory of its last life when it starts.
$primary->start;
$primary->stop;
done_testing();
