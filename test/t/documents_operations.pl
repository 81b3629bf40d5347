# The recipes of doc/operations.md do what they show, and its settings work for
# roles that are not superusers.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('operations');
$node->safe_psql('postgres', 'CREATE DATABASE app');
$node->safe_psql('app', 'CREATE EXTENSION snowflake');
run_examples($node, 'app', grep { $_->{section} !~ /^(Settings|A sequence ahead of the clock)$/ } blocks('doc/operations.md'));

# --- the names of wait events, which 17 and later list ---------------------

SKIP:
{
	my $major = int($node->pg_version =~ s/\D.*//r);
	skip 'no list of wait events in this version', 1 if $major < 17;
	my $text = slurp_file("$top/doc/operations.md");
	my ($header, @rows) = map { [ split /\s*\|\s*/ ] } $text =~ /^(\| what they wait for .*|\| the .* \| .*)$/gm;
	my ($column) = grep { $header->[$_] =~ /\b$major\b/ } 0 .. $#$header;
	foreach my $row (@rows)
	{
		my ($type, $name) = $row->[$column] =~ /`(\w+)`, `(\w+)`/;
		next if $name eq 'SnowflakeClock';    # which clock_wait_ends.pl sees
		is($node->safe_psql('app', "SELECT count(*) FROM pg_wait_events WHERE type = '$type' AND name = '$name'"),
			1, "PostgreSQL $major has the wait event $type, $name");
	}
}

# --- settings -------------------------------------------------------------

my ($for_database, $for_server, $by_owner, $show, $grant) = map { $_->{code} } blocks_in('doc/operations.md', 'Settings');
fails_with($node, $show, qr/^42704 unrecognized configuration parameter/, 'a new session cannot show a shard that was never set');
like(sqlstate_of($node, 'ALTER SYSTEM SET snowflake.shard = 5'), $node->pg_version < 17 ? qr/^42704/ : qr/^no error/,
	'ALTER SYSTEM without the library fails before PostgreSQL 17');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
foreach my $recipe ($for_database, $for_server)
{
	$node->safe_psql('postgres', $recipe);
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
$node->safe_psql('app', $by_owner, @as_owner);
is($node->safe_psql('app', 'SELECT snowflake_shard(next_id())'), 6, 'ALTER DATABASE by an owner who has loaded the library sets the shard');

is($node->safe_psql('app', $show, @as_operator), 6, 'a new session shows the shard that applies to it');
$node->safe_psql('postgres', 'ALTER DATABASE app RESET ALL');
is($node->safe_psql('app', $show), '', 'a new session shows nothing for a shard that was set for the server and is no longer');
is($node->safe_psql('app', "SELECT FROM snowflake_shard(1); $show"), -1, 'a session that has loaded the library shows -1 for a shard that is not set');

my $raise = "SELECT snowflake_shard(1); SET snowflake.max_lead = '1h'";
fails_with($node, $raise, qr/^42501/, 'an ordinary role cannot raise max_lead', @as_operator);
$node->safe_psql('app', $grant);
like(sqlstate_of($node, $raise, @as_operator), qr/^no error/, 'a role with GRANT SET can raise max_lead');
my ($way_out) = blocks_in('doc/operations.md', 'A sequence ahead of the clock');
$node->psql('app', $way_out->{code} =~ s/^LOAD .*?(SELECT .*)/$1;/r, @as_operator);
ok(wait_for(sub { $node->safe_psql('postgres', q{LOAD 'snowflake'; SHOW snowflake.max_lead}) eq '2h' }),
	'a role with these grants can raise max_lead for the server');

$node->stop;
done_testing();
