# Standbys: read only, promoted, and waited for if they are synchronous.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $primary = server_ahead_of_clock('primary', '', allows_streaming => 1);
$primary->safe_psql('postgres', q{CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5, 'used'))});
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

my $next = q{SELECT next_id(5, 'used')};
my $id = $primary->safe_psql('postgres', 'INSERT INTO photos DEFAULT VALUES RETURNING id');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

like(sqlstate_of($standby, $next), qr/^25006 cannot execute next_id\(\) during recovery/,
	'a standby refuses to make IDs');
is($standby->safe_psql('postgres', 'SELECT snowflake_shard(id) FROM photos'), 5, 'a standby reads IDs');
is( $standby->safe_psql('postgres', q{
		SELECT last_timestamp >= snowflake_timestamp(id), logged_ahead
		FROM snowflake_status('used'), photos}),
	't|00:00:00', 'snowflake_status() on a standby shows the last value that the WAL covers');

# A transaction that has looked at it does not hold up replay, nor keep to the
# old file.  A query that has been run before looks nothing else up.
my $looked = $standby->background_psql('postgres', on_error_stop => 0);
my $unused = q{SELECT last_timestamp IS NULL FROM snowflake_status()};
$looked->query_safe($unused) foreach 1 .. 3;
$looked->query_safe('BEGIN');
like($looked->query_safe($unused), qr/^t$/, 'a standby\'s transaction sees a sequence that has not been used');
$primary->safe_psql('postgres', q{
	ALTER SEQUENCE next_id_seq RESTART; SELECT next_id(5)});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
like($looked->query($unused), qr/^f$/, 'a standby\'s open transaction sees that a sequence has a new file and was used');
$looked->quit;

# Synchronous: an ID goes out when the standby has the record that covers it.
$primary->safe_psql('postgres', q{
	ALTER SYSTEM SET synchronous_standby_names = '*';
	SELECT pg_reload_conf()});
ok(standby_is_synchronous($primary), 'the standby becomes synchronous');
my $open = $primary->background_psql('postgres', on_error_stop => 0);
my $other = $primary->background_psql('postgres', on_error_stop => 0);
$open->query_safe($next);
$other->query_safe($next);
my $new_file = q{ALTER SEQUENCE used SET UNLOGGED; ALTER SEQUENCE used SET LOGGED};
# which makes the next ID write a record
$primary->safe_psql('postgres', $new_file);
$standby->stop;
send_sql($open, "BEGIN; $next");
ok(sessions_wait_for_standby($primary, 1), 'a session that wrote a record waits for the standby');
send_sql($other, $next);
ok(sessions_wait_for_standby($primary, 2), 'a session that needs another\'s record waits for the standby, too');
$primary->safe_psql('postgres', q{
	SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'});
ok( wait_for(sub { $_->{run}->pump_nb for $open, $other;
		2 == grep { $_->{stderr} =~ /ERROR:  canceling next_id\(\) while it waited/ } $open, $other }),
	'a canceled wait for the standby is an error');
is($open->{stdout} . $other->{stdout}, '', 'sessions whose wait for the standby was canceled get no ID');
$_->{stderr} = '' for $open, $other;
$open->quit;

# A session that asks for less gets less.
like($primary->safe_psql('postgres', "SET synchronous_commit = local; $next"), qr/^\d+$/,
	'next_id() with synchronous_commit = local does not wait for the standby');

$standby->start;
ok(standby_is_synchronous($primary), 'the standby is synchronous again after a restart');
my $last = $primary->safe_psql('postgres', 'INSERT INTO photos DEFAULT VALUES RETURNING id');
cmp_ok($last, '>', $id, 'IDs grow after the standby is back');

# Nor does the postmaster's death end the wait with an ID: enough of them to
# be sent before the session comes to its end.
$primary->safe_psql('postgres', $new_file);
$standby->stop;
my $orphan = $primary->background_psql('postgres', on_error_stop => 0);
send_sql($orphan, "COPY ($next FROM generate_series(1, 100000)) TO STDOUT");
ok(sessions_wait_for_standby($primary, 1), 'COPY of IDs waits for the standby');
my ($postmaster) = split /\n/, slurp_file($primary->data_dir . '/postmaster.pid');
my @orphans = split ' ', `ps -o pid= --ppid $postmaster`;
kill 'KILL', $postmaster;
ok(wait_for(sub { !grep { kill 0, $_ } @orphans }), 'all server processes end when the postmaster is killed');
eval { $orphan->{run}->finish };
unlike($orphan->{stdout}, qr/\d{15}/, 'a session that waited for the standby when the postmaster was killed gets no ID');
$primary->{_pid} = undef;

# Promotion: what the standby has replayed covers all that was given out.
eval { $other->quit };
$standby->start;
$standby->promote;
$standby->safe_psql('postgres', q{
	ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf()});
$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$standby->reload;
is($standby->safe_psql('postgres', 'SELECT max(id) FROM photos'), $last, 'the promoted standby has the last row');
cmp_ok($standby->safe_psql('postgres', $next), '>', $last, 'the next ID of the promoted standby is larger');

$standby->stop;
# A server removes the shared memory of its last life when it starts.
$primary->start;
$primary->stop;
done_testing();
