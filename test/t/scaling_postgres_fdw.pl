# Foreign tables of several servers behind one parent, by the text of doc/scaling.md: a query
# by ID asks one server.

use SnowflakeTest;

my ($sharedir) = run_command([ 'pg_config', '--sharedir' ]);
plan skip_all => 'postgres_fdw is not installed' unless -e "$sharedir/extension/postgres_fdw.control";

my ($text) = slurp_file("$top/doc/scaling.md") =~ /^## postgres_fdw\n(.*?)^## /ms;
my ($partition_by, $of_id) = map { s/\s+/ /gr } $text =~ /`(PARTITION BY .*?)`.*`(WHERE .*?)`/s;

my $node = server_in_utc('fdw');
my %shards = (one => 1, two => 2);

$node->safe_psql('postgres', 'CREATE DATABASE hub');
$node->safe_psql('hub', qq{
	CREATE EXTENSION snowflake;
	CREATE EXTENSION postgres_fdw;
	CREATE TABLE photos (id bigint, title text) $partition_by});
foreach my $name (sort keys %shards)
{
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql($name, qq{
		CREATE EXTENSION snowflake;
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id($shards{$name}), title text);
		INSERT INTO photos (title) SELECT '$name' FROM generate_series(1, 10)});
	$node->safe_psql('hub', sprintf q{
		CREATE SERVER %1$s FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%2$s', port '%3$s', dbname '%1$s');
		CREATE USER MAPPING FOR PUBLIC SERVER %1$s OPTIONS (user 'postgres');
		CREATE FOREIGN TABLE photos_%1$s PARTITION OF photos FOR VALUES IN (%4$d)
			SERVER %1$s OPTIONS (table_name 'photos')}, $name, $node->host, $node->port, $shards{$name});
}

# The servers of a query, and the conditions that it sends to them
sub sent
{
	my ($query) = @_;
	return $node->safe_psql('hub', "EXPLAIN (VERBOSE, COSTS OFF) $query") =~ /Remote SQL: (.*)/g;
}

my $id = $node->safe_psql('two', q{SELECT max(id) FROM photos});
my $by_id = qq{SELECT title FROM photos @{[ $of_id =~ s/\$1/$id/gr ]}};
is($node->safe_psql('hub', $by_id), 'two', 'a query by ID finds the row');
is(scalar(my @servers = sent($by_id)), 1, '... on one server');
is(scalar(@servers = sent("SELECT title FROM photos WHERE id = $id")), 2, '... and on all without the bits (control)');

# The hub evaluates defaults of a foreign table itself.
$node->safe_psql('hub', q{
	CREATE SCHEMA imported;
	IMPORT FOREIGN SCHEMA public LIMIT TO (photos) FROM SERVER one INTO imported OPTIONS (import_default 'true')});
like($node->safe_psql('hub', q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef}), qr/^next_id\(/,
	"import_default would have the hub generate a server's IDs");

$node->stop;
done_testing();
