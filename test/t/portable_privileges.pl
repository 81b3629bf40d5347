# The privileges on a sequence that the portable version needs, what it tells
# without them, also after a recipe of doc/migrating.md, and sequences that are
# newer than a transaction's snapshot.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use PortableTest;
use SnowflakeTest;

my $node = server_in_utc('portable');
new_portable_database($node, 'app');
my ($error_of) = slurp_file("$top/sql/extension.sql") =~ /^(CREATE FUNCTION error_of.*)/ms;
$node->safe_psql('app', $error_of);

foreach my $privileges ('SELECT', 'USAGE', 'USAGE, UPDATE')
{
	my $role = 'has_' . lc($privileges) =~ s/\W+/_/gr;
	my $suffice = $privileges eq 'USAGE, UPDATE';
	$node->safe_psql('app', "CREATE ROLE $role; GRANT $privileges ON SEQUENCE next_id_seq TO $role");
	like(sqlstate_of($node, "SET ROLE $role; SELECT next_id(5) > 0", dbname => 'app'),
		$suffice ? qr/^no error: t$/ : qr/^42501 permission denied for sequence next_id_seq/,
		"next_id() " . ($suffice ? 'succeeds' : 'fails') . " for a role with $privileges on the sequence");
}

$node->safe_psql('app', q{
	CREATE SEQUENCE hidden;
	CREATE SEQUENCE hidden_tweets MAXVALUE 9007199254736895;
	CREATE SEQUENCE hidden_cached CACHE 7 MAXVALUE 1125899906841599;
	CREATE UNLOGGED SEQUENCE hidden_unlogged MAXVALUE 1125899906841599;
	SELECT nextval('hidden'), nextval('hidden_tweets'), nextval('hidden_cached'), nextval('hidden_unlogged');
	CREATE ROLE has_nothing;
	GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO has_select});
is($node->safe_psql('app', q{
		SET ROLE has_nothing;
		SELECT count(*) FILTER (WHERE sqlstate_ = '42501'), count(DISTINCT message), count(nullif(detail, ''))
		FROM unnest(ARRAY['next_id(1, %L)', 'next_ids(1, 2, %L)', 'snowflake_alter_sequence(%L)',
			'snowflake_advance(%L, 5)']) command,
		     unnest(ARRAY['hidden', 'hidden_tweets', 'hidden_cached', 'hidden_unlogged']) seq, error_of('SELECT ' || format(command, seq));
		SELECT state, last_timestamp, lead FROM snowflake_sequences()
		UNION SELECT state, last_timestamp, lead
		FROM unnest(ARRAY['hidden', 'hidden_tweets', 'hidden_cached', 'hidden_unlogged']::regclass[]) seq, snowflake_sequences(seq);
		SET ROLE has_select;
		SELECT DISTINCT sqlstate_ FROM unnest(ARRAY['hidden', 'hidden_tweets', 'hidden_cached', 'hidden_unlogged']) seq,
			error_of(format('SELECT next_id(1, %L)', seq))}),
	"16|8|0\nno privilege||\n42501", 'errors and snowflake_sequences() reveal nothing of a sequence to a role without a privilege');

# Roles that insert by the functions need both privileges.
new_portable_database($node, 'moved');
$node->safe_psql('moved', q{
	CREATE ROLE clerk;
	CREATE SEQUENCE photos_id_seq; SELECT snowflake_alter_sequence('photos_id_seq');
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5, 'photos_id_seq'), title text);
	CREATE TABLE albums (id bigint PRIMARY KEY DEFAULT next_id(5), name text);
	GRANT SELECT, INSERT ON photos, albums TO clerk;
	GRANT USAGE ON SEQUENCE photos_id_seq TO clerk});
my $insert = q{SET ROLE clerk; INSERT INTO photos (title) VALUES (''); INSERT INTO albums (name) VALUES (''); SELECT 'inserted'};
fails_with($node, $insert, qr/^42501 permission denied for sequence photos_id_seq/, 'USAGE is not enough', dbname => 'moved');
$node->safe_psql('moved', 'GRANT USAGE, UPDATE ON SEQUENCE photos_id_seq, next_id_seq TO clerk');
is($node->safe_psql('moved', $insert), 'inserted', '... and with UPDATE, too, the role can insert');

# A transaction's snapshot that is older than the sequence
my $old = $node->background_psql('app');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('app', 'CREATE SEQUENCE late MAXVALUE 1125899906841599');
is($old->query_safe(q{SELECT next_id(5, 'late') > 0, (SELECT count(*) FROM next_ids(5, 10, 'late')),
		(SELECT last_timestamp >= now() FROM snowflake_sequences('late'))}),
	't|10|t', 'a transaction with an old snapshot can use a new sequence');
$node->safe_psql('app', 'CREATE SEQUENCE late_counter; CREATE SEQUENCE late_cached MAXVALUE 1125899906841599 CACHE 7');
is($old->query_safe(q{SELECT (SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''late_counter'')')),
		(SELECT sqlstate_ FROM error_of('SELECT next_id(5, ''late_cached'')'))}),
	'55000|55000', 'a transaction with an old snapshot is refused a new sequence that cannot be used');
$old->quit;

$node->stop;
done_testing();
