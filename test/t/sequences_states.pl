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

# sequences_damaged_page.pl has sequences with a damaged page.
my $file = file_of($node, 'secret');
$node->stop;
unlink $file or die "$file: $!";
$node->start;
is($node->safe_psql('postgres', $states),
	'cached refuses, careless refuses, next_id_seq ok, secret refuses', 'snowflake_sequences() shows a sequence without a file among the others');
my $looking = $node->background_psql('postgres');
$looking->query_safe("BEGIN; $states");
is($looking->query_safe(q{SELECT count(*) FROM pg_locks WHERE relation IN (SELECT seqrelid FROM pg_sequence)}), 0,
	'snowflake_sequences() does not keep the sequences locked, which may be more than the server can lock');
$looking->quit;
$node->stop;
done_testing();
