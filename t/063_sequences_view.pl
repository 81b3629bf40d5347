# The view snowflake_sequences shows each generator in its state, also to a role
# that is not a superuser, and beside sequences that cannot be read.

use strict;
use warnings;
use FindBin;
use Test::More;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = server_in_utc('sequences_view');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
run_examples($node, 'postgres', blocks_in('doc/operations.md', 'Operations'));
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN IN ROLE pg_monitor; GRANT SELECT ON tweets_id_seq TO watcher');
my @as_watcher = (extra_params => [ '-U', 'watcher' ]);
is($node->safe_psql('postgres', 'SELECT count(*) FROM snowflake_sequences', @as_watcher), 2, 'a monitoring role sees the generators');

# Sequences that cannot be used, or not by everybody, hide no others.
$node->safe_psql('postgres', q{
	CREATE SEQUENCE secret MAXVALUE 1125899906841599;
	CREATE SEQUENCE cached MAXVALUE 1125899906841599 CACHE 10;
	CREATE UNLOGGED SEQUENCE careless MAXVALUE 1125899906841599;
	GRANT SELECT ON careless TO watcher});
my $temporary = $node->background_psql('postgres');
$temporary->query_safe('CREATE TEMPORARY SEQUENCE own MAXVALUE 1125899906841599');
my $states = q{SELECT string_agg(format('%s %s', sequence, state), ', ' ORDER BY sequence::text)
	FROM snowflake_sequences WHERE layout = 'instagram'};
is($node->safe_psql('postgres', $states), 'cached refuses, careless refuses, next_id_seq ok, secret ok',
	'the view shows which sequences cannot be used');
is($node->safe_psql('postgres', $states, @as_watcher),
	'cached no privilege, careless refuses, next_id_seq ok, secret no privilege',
	'the view shows which sequences the role may not read');
$temporary->quit;

my $altering = $node->background_psql('postgres');
$altering->query_safe('BEGIN; ALTER SEQUENCE secret RESTART');
is($node->safe_psql('postgres', "SET lock_timeout = '1ms'; $states"),
	'cached refuses, careless refuses, next_id_seq ok, secret waits', 'the view does not wait for a session that alters a sequence');
fails_with($node, "SET lock_timeout = '100ms'; SELECT snowflake_alter_sequence('secret')", qr/^42501/,
	'a role that does not own a sequence does not wait to alter it', @as_watcher);
$altering->query_safe('ROLLBACK');
$altering->quit;

my $file = file_of($node, 'secret');
$node->stop;
open my $page, '+<:raw', $file or die "$file: $!";
seek $page, 8192 - 8, 0;    # the magic number
print $page 'xxxx';
close $page or die "$file: $!";
$node->start;
is($node->safe_psql('postgres', $states),
	'cached refuses, careless refuses, next_id_seq ok, secret refuses', 'the view shows a damaged sequence among the others');
fails_with($node, "SELECT next_id(5, '$_')", qr/^55000/, "calls with the sequence \"$_\" are refused") foreach 'cached', 'careless';

$node->stop;
done_testing();
