# From Instagram's function to next_id(), and back, by the recipe of
# doc/migrating.md, again and again while sessions make IDs.  Also with the
# extension in the schema that doc/reference.md gives it beside another next_id().

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('from_instagram');
new_database('app');
my $photos = slurp_file("$top/bench/instagram.sql") . q{
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), title text);
	INSERT INTO insta5.photos (title) SELECT 'photo ' || n FROM generate_series(1, 1000) AS n;};
$node->safe_psql('app', $photos);
my ($first) = recipe(q{From Instagram's own function});
my $published = value('app', q{SELECT pg_get_functiondef('insta5.next_id'::regproc)});

# Changed functions, which the recipe is not for
foreach my $change ([ '1314220021721', '1420070400000', 'epoch', '5\|f' ], [ '<< 23', '<< 22', 'shift of the time', '\d+\|f' ], [ '<< 10', '<< 12', 'shift of the shard', '20\|t' ])
{
	my ($from, $to, $what, $shown) = @$change;
	my $changed = $published =~ s/\Q$from\E/$to/r;
	is($changed eq $published, '', "the function can have another $what");
	like(value('app', "BEGIN; $changed; $first->{code} ROLLBACK"), qr/^$shown$/, "the first query shows that a function has another $what");
}

# IDs from a default, by the dozen, and taken before the row is made
my $sessions = start_sessions('app', <<'EOS', '-c', '8', '-R', '800');
INSERT INTO insta5.photos (title) VALUES ('');
INSERT INTO insta5.photos (title) SELECT '' FROM generate_series(1, 12);
SELECT insta5.next_id() AS id \gset
INSERT INTO insta5.photos (id) VALUES (:id);
EOS
run_examples($node, 'app', recipe(q{From Instagram's own function})) foreach 1 .. 4;
sessions_end_without_error($sessions);

is(value('app', 'SELECT count(DISTINCT snowflake_shard(id)) FROM insta5.photos'), 1, 'IDs of both functions have one shard');
is(value('app', q{SELECT pg_get_functiondef('insta5.next_id'::regproc)}), $published, q{Instagram's function is back});

# The extension in a schema of its own.  A role that owns nothing inserts after each
# step, because the new function calls next_id() as the role that inserts.
my ($own_schema) = slurp_file("$top/doc/reference.md") =~ /^    (CREATE SCHEMA .*)$/m or die 'there is no schema';
$node->safe_psql('postgres', 'CREATE DATABASE beside; CREATE ROLE web LOGIN');
$node->safe_psql('beside', "$own_schema; $photos" . q{
	GRANT USAGE ON SCHEMA insta5 TO web;
	GRANT USAGE ON SEQUENCE insta5.table_id_seq TO web;
	GRANT SELECT, INSERT ON insta5.photos TO web});
foreach my $step (recipe(q{From Instagram's own function}))
{
	my $code = $step->{code} =~ s/\bpublic\./ids./gr =~ s/(?<![.\w])(?=snowflake_\w+\(|next_id\()/ids./gr;
	run_examples($node, 'beside', { %$step, code => $code });
	like(sqlstate_of($node, q{INSERT INTO insta5.photos (title) VALUES ('')}, dbname => 'beside', extra_params => [ '-U', 'web' ]),
		qr/^no error/, 'a role that owns nothing inserts after this step');
}

$node->stop;
done_testing();
