# snowflake_sequences() shows each generator in its state, also to a role
# that is not a superuser, and beside sequences that cannot be read.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('sequences');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my ($make) = blocks_in('doc/administration.md', 'Monitoring');
run_examples($node, 'postgres', $make);
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN IN ROLE pg_monitor; GRANT SELECT ON tweets_id_seq TO watcher');
my @as_watcher = (extra_params => [ '-U', 'watcher' ]);
is($node->safe_psql('postgres', 'SELECT count(*) FROM snowflake_sequences()', @as_watcher), 2, 'a monitoring role sees the generators');

# Sequences that cannot be used, or not by everybody, hide no others.
$node->safe_psql('postgres', q{
	CREATE SEQUENCE secret MAXVALUE 1125899906841599;
	CREATE SEQUENCE cached MAXVALUE 1125899906841599 CACHE 10;
	CREATE UNLOGGED SEQUENCE careless MAXVALUE 1125899906841599;
	GRANT SELECT ON careless TO watcher});
my $temporary = $node->background_psql('postgres');
$temporary->query_safe('CREATE TEMPORARY SEQUENCE own MAXVALUE 1125899906841599');
my $states = q{SELECT string_agg(format('%s %s', sequence, state), ', ' ORDER BY sequence::text)
	FROM snowflake_sequences() WHERE layout = 'instagram'};
is($node->safe_psql('postgres', $states, @as_watcher),
	'cached no privilege, careless refuses, next_id_seq ok, secret no privilege',
	'snowflake_sequences() shows which sequences the role may not read');
$temporary->quit;

my $altering = $node->background_psql('postgres');
$altering->query_safe('BEGIN; ALTER SEQUENCE secret RESTART');
is($node->safe_psql('postgres', "SET lock_timeout = '1ms'; $states"),
	'cached refuses, careless refuses, next_id_seq ok, secret waits', 'snowflake_sequences() does not wait for a session that alters a sequence');
fails_with($node, "SET lock_timeout = '100ms'; SELECT snowflake_alter_sequence('secret')", qr/^42501/,
	'a role that does not own a sequence does not wait to alter it', @as_watcher);
$altering->query_safe('ROLLBACK');

# A wait that is too long says nothing of a sequence.
$altering->query_safe('BEGIN; LOCK pg_depend');
fails_with($node, "SET lock_timeout = '100ms'; $states", qr/^55P03 canceling statement due to lock timeout/,
	'snowflake_sequences() fails with a timeout, and blames no sequence', @as_watcher);
$altering->query_safe('ROLLBACK');

# One that is dropped after it was found, and before its state is read, is left
# out.  For next_id_seq, on which the role has no privilege, that reads pg_depend.
$node->safe_psql('postgres', 'CREATE SEQUENCE passing MAXVALUE 1125899906841599');
$altering->query_safe('BEGIN; LOCK pg_depend');
my $reading = $node->background_psql('postgres', @as_watcher);
send_sql($reading, $states);
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND relation = 'pg_depend'::regclass}),
	'snowflake_sequences() waits after it has found the sequences');
$altering->query_safe('DROP SEQUENCE passing; COMMIT');
ok(session_prints($reading, qr/^cached no privilege, careless refuses, next_id_seq ok, secret no privilege$/m),
	'snowflake_sequences() leaves out a sequence that is dropped meanwhile');
$reading->quit;
$altering->quit;

my $file = file_of($node, 'secret');
$node->stop;
open my $page, '+<:raw', $file or die "$file: $!";
seek $page, 8192 - 8, 0;    # the magic number
print $page 'xxxx';
close $page or die "$file: $!";
$node->start;
is($node->safe_psql('postgres', $states),
	'cached refuses, careless refuses, next_id_seq ok, secret refuses', 'snowflake_sequences() shows a damaged sequence among the others');
$node->stop;
unlink $file or die "$file: $!";
$node->start;
is($node->safe_psql('postgres', $states),
	'cached refuses, careless refuses, next_id_seq ok, secret refuses', 'snowflake_sequences() shows a sequence without a file among the others');
$node->stop;

# More sequences than the server can lock at once
$node = server_in_utc('many_sequences', "max_locks_per_transaction = 10\nmax_connections = 10\nmax_wal_senders = 0\nfsync = off\n");
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	SELECT format('CREATE SEQUENCE s%s MAXVALUE 1125899906841599', n) FROM generate_series(1, 2000) n \gexec
	SELECT format('CREATE TABLE t%s ()', n) FROM generate_series(1, 20) n \gexec});
my $count = 'SELECT state, count(*) FROM snowflake_sequences() GROUP BY 1 ORDER BY 1';
my $watching = $node->background_psql('postgres', on_error_stop => 0);
is($watching->query_safe("BEGIN; $count"), 'ok|2001', 'snowflake_sequences() shows more sequences than the server can lock at once');
is($watching->query_safe(q{SELECT count(*) FROM pg_locks WHERE relation IN (SELECT seqrelid FROM pg_sequence)}), 0,
	'snowflake_sequences() does not keep the sequences locked');
# Locks that this session takes from now on need the table of locks.
$watching->query_safe('SELECT FROM ' . join(', ', map { "t$_" } 1 .. 20));
my $filling = $node->background_psql('postgres', on_error_stop => 0);
$filling->query('SELECT count(pg_advisory_lock(n)) FROM generate_series(1, 100000) n');
like($filling->{stderr}, qr/out of shared memory/, 'a session fills the table of locks');
$watching->query($count);
like($watching->{stderr}, qr/ERROR:  out of shared memory/, 'snowflake_sequences() fails with the server\'s trouble, and blames no sequence');
$filling->quit;
$watching->quit;
is($node->safe_psql('postgres', $count), 'ok|2001', 'snowflake_sequences() works again when the trouble is over');
$node->stop;
done_testing();
