# Operations: the recipes of doc/operations.md do what they say, on a server whose
# clock is stepped and for roles that are no superusers.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my @blocks = blocks('doc/operations.md');

sub recipe
{
	my ($section) = @_;
	my @found = map { $_->{code} } grep { $_->{section} eq $section } @blocks;
	die "no recipe in \"$section\"" if !@found;
	return @found;
}

my $node = PostgreSQL::Test::Cluster->new('operations');
$node->init;
$node->append_conf('postgresql.conf', "timezone = 'UTC'\n");
my $faked = faketime_library();
$faked ? start_with_clock($node, '+0') : $node->start;
$node->safe_psql('postgres', 'CREATE DATABASE app');
$node->safe_psql('app', 'CREATE EXTENSION snowflake');

run_examples($node, 'app', grep { $_->{section} !~ /^(Settings|A sequence ahead of the clock)$/ } @blocks);

# the names of wait events, of which 17 and later have a list
SKIP:
{
	my $major = int($node->pg_version =~ s/\D.*//r);
	skip 'no list of wait events in this version', 1 if $major < 17;
	my $text = slurp_file("$FindBin::RealBin/../doc/operations.md");
	my ($header, @rows) = map { [ split /\s*\|\s*/ ] } $text =~ /^(\| what they wait for .*|\| the .* \| .*)$/gm;
	my ($column) = grep { $header->[$_] =~ /\b$major\b/ } 0 .. $#$header;
	foreach my $row (@rows)
	{
		my ($type, $name) = $row->[$column] =~ /`(\w+)`, `(\w+)`/;
		next if $name eq 'SnowflakeClock';	# which t/003 sees
		is($node->safe_psql('app', "SELECT count(*) FROM pg_wait_events WHERE type = '$type' AND name = '$name'"),
			1, "$major: $type, $name");
	}
}

# the view's states, and whether calls do as they say
SKIP:
{
	skip 'libfaketime is not installed', 8 if !$faked;
	my %expected = ('+0' => 'ok', '-0.5' => 'ahead', '-3' => 'waits', '-3600' => 'refuses');
	foreach my $clock ('+0', '-0.5', '-3', '-3600')
	{
		$node->safe_psql('app', 'SELECT next_id(5)') if $clock eq '+0';
		set_clock($node, $clock);
		is($node->safe_psql('app', "SELECT state FROM snowflake_sequences WHERE sequence = 'next_id_seq'::regclass"),
			$expected{$clock}, "the clock at $clock: $expected{$clock}");
		is( sqlstate_of($node, "SET snowflake.max_wait = 0; SELECT 'made ' || (next_id(5) > 0)", dbname => 'app') =~ /made true/ ? 'goes' : 'does not go',
			$expected{$clock} =~ /ok|ahead/ ? 'goes' : 'does not go', "the clock at $clock: a call that does not wait") if $clock !~ /3600/;
		like(sqlstate_of($node, 'SELECT next_id(5)', dbname => 'app'), qr/^53400/, "the clock at $clock: a call is refused") if $clock =~ /3600/;
	}

	# and the way out
	$node->psql('app', recipe('A sequence ahead of the clock'));
	ok(wait_for(sub { $node->safe_psql('app', q{LOAD 'snowflake'; SHOW snowflake.max_lead}) eq '2h' }), 'max_lead is 2h');
	ok($node->safe_psql('app', 'SELECT next_id(5) > 0'), 'IDs go on ahead of the clock');
	set_clock($node, '+0');
	$node->safe_psql('app', 'ALTER SYSTEM RESET snowflake.max_lead');
	$node->reload;
}

# Settings
my ($database, $system, $owner, $grant) = recipe('Settings');
my $old = $node->pg_version < 17;
like(sqlstate_of($node, 'ALTER SYSTEM SET snowflake.shard = 5'), $old ? qr/^42704/ : qr/^no error/, 'ALTER SYSTEM without the library fails before PostgreSQL 17');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
foreach my $recipe ($database, $system)
{
	$node->safe_psql('postgres', $recipe);
	ok(wait_for(sub { $node->safe_psql('app', 'SELECT snowflake_shard(next_id())') == 5 }), 'new calls have the shard that was set');
	$node->safe_psql('postgres', 'ALTER DATABASE app RESET ALL; ALTER SYSTEM RESET ALL; SELECT pg_reload_conf()');
	ok(wait_for(sub { sqlstate_of($node, 'SELECT next_id()', dbname => 'app') =~ /^55000 "snowflake.shard" is not set/ }),
		'new calls have no shard after it was reset');
}

$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE operator LOGIN; ALTER DATABASE app OWNER TO owner');
my @as_owner = (extra_params => [ '-U', 'owner' ]);
$node->append_conf('pg_hba.conf', "local all all trust\n");
$node->reload;
like(sqlstate_of($node, 'ALTER DATABASE app SET snowflake.shard = 6', dbname => 'app', @as_owner), qr/^42501/,
	'ALTER DATABASE by an owner who has not loaded the library fails');
$node->safe_psql('app', $owner, @as_owner);
is($node->safe_psql('app', 'SELECT snowflake_shard(next_id())'), 6, 'ALTER DATABASE by an owner who has loaded the library sets the shard');

my @as_operator = (extra_params => [ '-U', 'operator' ]);
my $raise = "SELECT snowflake_shard(1); SET snowflake.max_lead = '1h'";
like(sqlstate_of($node, $raise, dbname => 'app', @as_operator), qr/^42501/, 'an ordinary role cannot raise max_lead');
$node->safe_psql('app', $grant);
like(sqlstate_of($node, $raise, dbname => 'app', @as_operator), qr/^no error/, 'a role with GRANT SET can raise max_lead');

# The view needs no superuser.
$node->safe_psql('app', "CREATE ROLE watcher LOGIN IN ROLE pg_monitor; GRANT SELECT ON tweets_id_seq TO watcher");
is( $node->safe_psql('app', 'SELECT count(*) FROM snowflake_sequences', extra_params => [ '-U', 'watcher' ]),
	2, 'a monitoring role sees the generators');

# Asked for a state in a new session, it works before the library is loaded.  Nor do sequences that cannot be used, or not by everybody, hide the others.
$node->safe_psql('app', q{
	CREATE SEQUENCE secret MAXVALUE 1125899906841599;
	CREATE SEQUENCE cached MAXVALUE 1125899906841599 CACHE 10;
	CREATE UNLOGGED SEQUENCE careless MAXVALUE 1125899906841599});
my $temporary = $node->background_psql('app');
$temporary->query_safe('CREATE TEMPORARY SEQUENCE own MAXVALUE 1125899906841599');
my $states = q{SELECT string_agg(format('%s %s', sequence, state), ', ' ORDER BY sequence::text)
	FROM snowflake_sequences WHERE layout = 'instagram'};
$node->safe_psql('app', 'GRANT SELECT ON careless TO watcher');
is($node->safe_psql('app', $states),
	'cached refuses, careless refuses, next_id_seq ok, secret ok', 'the view shows which sequences cannot be used');
is( $node->safe_psql('app', $states, extra_params => [ '-U', 'watcher' ]),
	'cached no privilege, careless refuses, next_id_seq ok, secret no privilege',
	'the view shows which sequences the role may not read');
# nor one that is being altered, or whose file is damaged
my $altering = $node->background_psql('app');
$altering->query_safe('BEGIN; ALTER SEQUENCE secret RESTART');
is( $node->safe_psql('app', "SET lock_timeout = '1ms'; $states"),
	'cached refuses, careless refuses, next_id_seq ok, secret waits', 'the view does not wait for a session that alters a sequence');
like( sqlstate_of($node, "SET lock_timeout = '100ms'; SELECT snowflake_alter_sequence('secret')", dbname => 'app',
		extra_params => [ '-U', 'watcher' ]),
	qr/^42501/, 'a role that does not own a sequence does not wait to alter it');
$altering->query_safe('ROLLBACK');
$altering->quit;
$temporary->quit;
my $file = $node->data_dir . '/' . $node->safe_psql('app', q{SELECT pg_relation_filepath('secret')});
$node->stop;
open my $page, '+<', $file or die "$file: $!";
binmode $page;
seek $page, 8192 - 8, 0;	# the magic number
print $page 'xxxx';
close $page;
$faked ? start_with_clock($node, '+0') : $node->start;
is($node->safe_psql('app', $states),
	'cached refuses, careless refuses, next_id_seq ok, secret refuses', 'the view shows a damaged sequence among the others');
foreach my $sequence (qw(cached careless))
{
	like(sqlstate_of($node, "SELECT next_id(5, '$sequence')", dbname => 'app'), qr/^55000/, "calls with $sequence are refused");
}
$node->safe_psql('app', 'DROP SEQUENCE secret, cached, careless');

# Lifted above rows that the sequence does not know
my ($lift) = grep { /setval/ } recipe('Backup and restore');
$node->safe_psql('app', "INSERT INTO photos SELECT snowflake_id(now() + interval '10 s', 9, 1023), 'from elsewhere'");
$node->safe_psql('app', $lift);
is($node->safe_psql('app', "SET snowflake.max_lead = '1h'; SELECT next_id(0) > max(id) FROM photos"), 't',
	'a lifted sequence makes IDs above those in the table, with any shard');
my $before = $node->safe_psql('app', 'SELECT last_value FROM next_id_seq');
$node->safe_psql('app', $lift);
is($node->safe_psql('app', 'SELECT last_value FROM next_id_seq'), $before, 'lifting a sequence again does not lower it');

# Nobody takes an ID between the sequence's value being read and set, below which it would be set back.
my $lifting = $node->background_psql('app');
$lifting->query_safe($lift =~ s/^COMMIT;\n//mr);
like(sqlstate_of($node, "SET lock_timeout = '100ms'; SELECT next_id(5)", dbname => 'app'), qr/^55P03/, 'nobody makes an ID while the sequence is lifted');
$lifting->query_safe('COMMIT');
$lifting->quit;

$node->stop;
done_testing();
