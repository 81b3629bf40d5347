# The examples of the README, the reference, the internals and the guide to
# layouts do what they show.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('documents');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE ROLE owner LOGIN; CREATE DATABASE app OWNER owner');

# --- README.md: the first example creates the extension --------------------

# Each use is a session of its own, of the database's owner, who is no superuser.
my ($first, @uses) = grep { $_->{language} eq 'sql' } blocks('README.md');
$ENV{PGUSER} = 'owner';
run_examples($node, 'app', $first);
$node->safe_psql('app', q{
	CREATE TABLE old_photos AS SELECT title, timestamptz '2019-01-01Z' + n / 2 * interval '1 ms' AS created_at
	FROM (VALUES (0, 'dusk'), (1, 'dunes'), (2, 'fog')) AS old (n, title)});
foreach my $use (@uses)
{
	my ($title) = $use->{code} =~ /^(.{1,60})/;
	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('app'), '-c', $use->{code} ],
		"README.md: this use is accepted: $title");
}
is($node->safe_psql('app', q{SELECT snowflake_timestamp(id) AS time, snowflake_shard(id), snowflake_sequence(id), title
		FROM photos WHERE id < snowflake_min_id('2020-01-01Z') ORDER BY id}),
	"2019-01-01 00:00:00+00|4|0|dusk\n2019-01-01 00:00:00+00|4|1|dunes\n2019-01-01 00:00:00.001+00|4|0|fog",
	'README.md: rows of earlier times get IDs of their times');
is($node->safe_psql('app', q{INSERT INTO albums (title) VALUES ('first') RETURNING snowflake_shard(id)}), 5,
	'README.md: a shard set by ALTER DATABASE is that of new sessions');

$ENV{PGUSER} = 'postgres';

# --- the other documents --------------------------------------------------

run_examples($node, 'app', blocks('doc/reference.md'));
run_examples($node, 'app', blocks('doc/internals.md'));
run_examples($node, 'postgres', blocks('doc/layouts.md'));

# the examples in the reference's lines of text
my $reference = slurp_file("$top/doc/reference.md");
my @examples = $reference =~ /`([^`\n]+)` →\s`([^`\n]+)`/g;
is(@examples / 2, scalar(() = $reference =~ /` →/g), 'doc/reference.md: each arrow belongs to an example');
while (my ($expression, $result) = splice @examples, 0, 2)
{
	is($node->safe_psql('app', "SELECT $expression"), $result, "doc/reference.md: $expression has the result that is shown");
}

$node->stop;
done_testing();
