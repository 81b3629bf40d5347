# The recipes of doc/operations.md and doc/administration.md do what they show,
# and settings work for roles that are not superusers.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('operations');
$node->safe_psql('postgres', 'CREATE DATABASE app');
$node->safe_psql('app', 'CREATE EXTENSION snowflake');
# The runbook, which comes first, is about the tables that Monitoring makes.
my ($make) = blocks_in('doc/administration.md', 'Monitoring');
run_examples($node, 'app', $make,
	grep { $_->{code} ne $make->{code} && $_->{code} !~ /^-- on / && $_->{section} !~ /^(Settings|Take a new shard|Privileges|No shard is set|No partition|The synchronous standby does not answer)$/ }
	  map { blocks("doc/$_.md") } 'operations', 'administration');

# --- empty tables ------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE renewed; CREATE ROLE app LOGIN');
$node->safe_psql('renewed', 'CREATE EXTENSION snowflake_admin CASCADE');
run_examples($node, 'renewed', $make);
my ($advance) = grep { /photos/ } map { $_->{code} } blocks_in('doc/administration.md', 'Advance a sequence beyond an ID');
like(sqlstate_of($node, "BEGIN; TRUNCATE photos, tweets; $advance ROLLBACK", dbname => 'renewed'), qr/^no error/,
	'the sequence of an empty table is not advanced, without an error');

# --- a new shard -------------------------------------------------------------

my ($new_shard, $restart, $own_sequence) = blocks_in('doc/operations.md', 'Take a new shard');
$node->safe_psql('renewed', 'GRANT SELECT, INSERT ON photos TO app');
run_examples($node, 'renewed', $new_shard, $restart);
is($node->safe_psql('renewed', 'SELECT snowflake_shard(next_id())'), 6, 'a new session has the new shard');
run_examples($node, 'renewed', $own_sequence);
is( $node->safe_psql('renewed', 'INSERT INTO photos DEFAULT VALUES RETURNING snowflake_shard(id)',
		extra_params => [ '-U', 'app' ]),
	6, 'a role that inserts makes IDs of the new sequence and shard');
is($node->safe_psql('renewed', q{SELECT snowflake_shard(max(id)) FROM photos WHERE title = 'sunrise'}), 5, 'old IDs stay');
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION snowflake');
run_examples($node, 'other', blocks_in('doc/operations.md', 'No shard is set'));
is($node->safe_psql('other', 'SELECT snowflake_shard()'), 5, 'a database without a shard gets one');
$node->safe_psql('other', 'CREATE EXTENSION snowflake_admin; CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id()) PARTITION BY RANGE (id)');
fails_with($node, 'INSERT INTO photos DEFAULT VALUES', qr/^23514/, 'a row without a partition is refused', dbname => 'other');
run_examples($node, 'other', blocks_in('doc/operations.md', 'No partition'));
like(sqlstate_of($node, 'INSERT INTO photos DEFAULT VALUES', dbname => 'other'), qr/^no error/, '... until the partitions are made');

# Through a view, the role that inserts needs the privilege, and not the view's owner.
$node->safe_psql('renewed', q{
	CREATE ROLE viewer LOGIN;
	GRANT SELECT, INSERT ON photos TO viewer;
	CREATE VIEW pictures AS SELECT * FROM photos;
	ALTER VIEW pictures OWNER TO viewer;
	GRANT SELECT, INSERT ON pictures TO app;
	GRANT SELECT, INSERT ON pictures TO viewer});
my $through_view = 'INSERT INTO pictures DEFAULT VALUES RETURNING snowflake_shard(id)';
is($node->safe_psql('renewed', $through_view, extra_params => [ '-U', 'app' ]), 6,
	'a role with the privilege inserts through a view whose owner lacks it');
fails_with($node, $through_view, qr/^42501 permission denied for sequence/, 'a role without the privilege does not insert through a view',
	dbname => 'renewed', extra_params => [ '-U', 'viewer' ]);

# --- the names of wait events, which 17 and later list ---------------------

SKIP:
{
	my $major = int($node->pg_version =~ s/\D.*//r);
	skip 'no list of wait events in this version', 1 if $major < 17;
	my ($causes) = slurp_file("$top/doc/operations.md") =~ /^## Calls hang\n(.*?)^##/ms;
	foreach my $names ($causes =~ /\((`\w+`[^)]*)\)/g)
	{
		my $list = join ', ', map { "'$_'" } $names =~ /`(\w+)`/g;
		isnt($node->safe_psql('app', "SELECT count(*) FROM pg_wait_events WHERE name IN ($list)"), 0,
			"PostgreSQL $major has a wait event of $list");
	}
}

# --- settings -------------------------------------------------------------

my ($for_database, $for_server, $grant) = map { $_->{code} } blocks_in('doc/administration.md', 'Settings');
my $show = 'SELECT snowflake_shard()';
like(sqlstate_of($node, 'ALTER SYSTEM SET snowflake.shard = 5'), $node->pg_version < 17 ? qr/^42704/ : qr/^no error/,
	'ALTER SYSTEM without the library fails before PostgreSQL 17');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
foreach my $recipe ([ 'app', $for_database ], [ 'postgres', $for_server ])
{
	$node->safe_psql(@$recipe);
	ok(wait_for(sub { $node->safe_psql('app', 'SELECT snowflake_shard(next_id())') == 5 }), 'new calls have the shard that was set');
	$node->safe_psql('postgres', 'ALTER DATABASE app RESET ALL; ALTER SYSTEM RESET ALL; SELECT pg_reload_conf()');
	ok(wait_for(sub { sqlstate_of($node, 'SELECT next_id()', dbname => 'app') =~ /^55000 "snowflake.shard" is not set/ }),
		'new calls have no shard after it was reset');
}

$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE operator LOGIN; ALTER DATABASE app OWNER TO owner');
my @as_owner = (dbname => 'app', extra_params => [ '-U', 'owner' ]);
my @as_operator = (dbname => 'app', extra_params => [ '-U', 'operator' ]);
fails_with($node, 'ALTER DATABASE app SET snowflake.shard = 6', qr/^42501/,
	'ALTER DATABASE by an owner who has not loaded the library fails', @as_owner);
$node->safe_psql('app', $for_database, @as_owner);
is($node->safe_psql('app', 'SELECT snowflake_shard(next_id())'), 5, 'snowflake_set_shard() by such an owner sets the shard');

is($node->safe_psql('app', $show, @as_operator), 5, 'a new session shows the shard that applies to it');
$node->safe_psql('postgres', 'ALTER DATABASE app RESET ALL');
fails_with($node, $show, qr/^55000 "snowflake.shard" is not set/, 'a session without a shard says so', dbname => 'app');

my $raise = "SELECT snowflake_shard(1); SET snowflake.max_lead = '1h'";
fails_with($node, $raise, qr/^42501/, 'an ordinary role cannot raise max_lead', @as_operator);
$node->safe_psql('app', $grant);
like(sqlstate_of($node, $raise, @as_operator), qr/^no error/, 'a role with GRANT SET can raise max_lead');
$node->psql('app', q{SELECT snowflake_shard(1); ALTER SYSTEM SET snowflake.max_lead = '4h'; SELECT pg_reload_conf()}, @as_operator);
ok(wait_for(sub { $node->safe_psql('postgres', q{LOAD 'snowflake'; SHOW snowflake.max_lead}) eq '4h' }),
	'a role with these grants can raise max_lead for the server');

# --- clones ---------------------------------------------------------------

# admin_uses.pl has all kinds of places.
my ($places) = grep { /snowflake_uses/ } map { $_->{code} } blocks_in('doc/administration.md', 'Clones');
$node->append_conf('postgresql.conf', 'snowflake.shard = 2');
$node->safe_psql('postgres', 'CREATE DATABASE clone');
my $listed = $node->safe_psql('clone', qq{
	CREATE EXTENSION snowflake;
	CREATE ROLE web;
	ALTER DATABASE clone SET snowflake.shard = 3;
	ALTER ROLE web IN DATABASE clone SET snowflake.shard = 4;
	CREATE TABLE photos (id bigint DEFAULT next_id(), album bigint DEFAULT next_id(5));
	$places});
is($listed =~ s{/.*/}{}r, <<'EOS' =~ s/\n\z//r, 'all that sets the number of a server is listed');
column public.photos.album|5|public.next_id((5)::bigint)
column public.photos.id||public.next_id()
file postgresql.conf|2|snowflake.shard=2
setting of database clone|3|snowflake.shard=3
setting of role web in database clone|4|snowflake.shard=4
EOS
$node->safe_psql('postgres', 'DROP DATABASE clone; DROP ROLE web');

# A number in postgresql.conf that ALTER SYSTEM overrides
$node->safe_psql('postgres', q{LOAD 'snowflake'; ALTER SYSTEM SET snowflake.shard = 16});
is($node->safe_psql('app', $places) =~ s{/.*/}{}gmr =~ s/^column .*\n?//gmr, 'file postgresql.auto.conf|16|snowflake.shard=16', 'a number that another file overrides is not listed');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
$node->adjust_conf('postgresql.conf', 'snowflake.shard', undef);


# --- monitoring -------------------------------------------------------------

my ($yaml) = grep { $_->{code} =~ /query: \|/ } blocks_in('doc/administration.md', 'Prometheus');
my ($query) = $yaml->{code} =~ /query: \|\n(.*?)^  metrics:/ms;
my @as_exporter = (dbname => 'app', extra_params => [ '-U', 'exporter' ]);
is($node->safe_psql('app', "$query ORDER BY 1, 2", @as_exporter), "app|error|0\napp|warning|0", 'the query for Prometheus finds no problem');
$node->safe_psql('app', q{SELECT setval('tweets_id_seq', (snowflake_min_id(now() + interval '1 day', 'twitter') >> 22 << 12))});
is($node->safe_psql('app', "SELECT problems > 0 FROM ($query) AS q WHERE severity = 'error'", @as_exporter), 't',
	'the query for Prometheus counts a sequence that refuses');
$node->safe_psql('app', 'ALTER SEQUENCE tweets_id_seq RESTART');

# --- privileges -------------------------------------------------------------

$node->safe_psql('app', 'CREATE SCHEMA own; CREATE FUNCTION own.next_id(n integer) RETURNS integer RETURN n');
my ($privileges) = blocks_in('doc/administration.md', 'Privileges');
$node->safe_psql('app', $privileges->{code});
my @as_web = (dbname => 'app', extra_params => [ '-U', 'web' ]);
is($node->safe_psql('app', q{INSERT INTO photos (title) VALUES ('dusk'); INSERT INTO tweets (body) VALUES ('good night') RETURNING id > 0}, @as_web),
	't', 'a role with these privileges inserts');
foreach my $call ('next_id(5)', "next_id(5, 'next_id_seq')", 'next_id()', 'next_ids(5, 1)')
{
	fails_with($node, "SELECT $call", qr/^42501 permission denied for function/, "a role without them cannot call $call", @as_operator);
}
# A function in place of all privileges
$node->safe_psql('app', q{
	CREATE FUNCTION tweet_id() RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$SELECT public.next_id(33, 'public.tweets_id_seq')$$;
	REVOKE EXECUTE ON FUNCTION tweet_id() FROM PUBLIC; GRANT EXECUTE ON FUNCTION tweet_id() TO operator;
	CREATE TABLE replies (id bigint PRIMARY KEY DEFAULT tweet_id(), body text); GRANT SELECT, INSERT ON replies TO operator});
is($node->safe_psql('app', q{INSERT INTO replies (body) VALUES ('yes') RETURNING snowflake_shard(id, 'twitter')}, @as_operator), 33,
	'a role without privileges on next_id() and the sequence inserts through a function');
fails_with($node, "SELECT $_", qr/^42501/, "this role cannot call $_", @as_operator)
  foreach "nextval('tweets_id_seq')", "nextval('next_id_seq')", "next_id(33, 'tweets_id_seq')";
like(sqlstate_of($node, q{SELECT nextval('tweets_id_seq')}, @as_web), qr/^no error/, 'a role with USAGE can call nextval()');
fails_with($node, q{SELECT nextval('next_id_seq')}, qr/^42501/, 'a role that inserts cannot call nextval() of next_id_seq', @as_web);
is($node->safe_psql('app', q{SELECT has_function_privilege('operator', 'own.next_id(integer)', 'EXECUTE')}), 't',
	'a function of the same name that is not of the extension keeps its privileges');

$node->stop;
done_testing();
