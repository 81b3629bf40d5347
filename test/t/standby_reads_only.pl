# A standby reads IDs and makes none.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;
use StandbyTest;

my $primary = primary('primary');
$primary->safe_psql('postgres', q{CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5, 'used'))});
my $standby = standby_of($primary, 'standby');
$primary->safe_psql('postgres', 'INSERT INTO photos DEFAULT VALUES');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

fails_with($standby, q{SELECT next_id(5, 'used')}, qr/^25006 cannot execute next_id\(\) during recovery/,
	'a standby refuses to make IDs');
is($standby->safe_psql('postgres', 'SELECT snowflake_shard(id) FROM photos'), 5, 'a standby reads IDs');
is( $standby->safe_psql('postgres', q{
		SELECT last_timestamp >= snowflake_timestamp(id), logged_ahead
		FROM snowflake_status('used'), photos}),
	't|00:00:00', 'snowflake_status() on a standby shows the last value that the WAL covers');

# A transaction that has called snowflake_status() must not hold up replay, nor
# keep to the old file.  The query is run before, so that it looks up nothing
# else in the transaction.
my $session = $standby->background_psql('postgres', on_error_stop => 0);
my $unused = 'SELECT last_timestamp IS NULL FROM snowflake_status()';
$session->query_safe($unused) foreach 1 .. 3;
$session->query_safe('BEGIN');
like($session->query_safe($unused), qr/^t$/, 'a standby\'s transaction sees a sequence that has not been used');
$primary->safe_psql('postgres', 'ALTER SEQUENCE next_id_seq RESTART; SELECT next_id(5)');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
like($session->query($unused), qr/^f$/, 'a standby\'s open transaction sees that a sequence has a new file and was used');
$session->quit;

$standby->stop;
$primary->stop;
done_testing();
