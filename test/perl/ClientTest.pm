# Runs the programs of test/clients/, and holds what they print against their tables and
# doc/clients.md.  A program inserts photos "one" and, in its client's way to make many
# rows, "many 0" to "many 999", and a row of tags, whose key is a snowflake.  It prints:
#   version NAME VERSION	of itself and its libraries
#   types NAME: BIGINT SNOWFLAKE [REGISTERED]	its types for an ID of a column of the type, and for
#				a snowflake if the client is told of the type
#   one ID, many ID..., tags ID...	as it returned them, that of the tag in each way to read it
# All other lines are facts that its test names.
package ClientTest;

use Exporter 'import';
use IPC::Run;
use List::Util 'uniq';
use SnowflakeTest;

our @EXPORT = qw($clients $document start_server sql test_client run_client ran check_rows);

our $clients = "$top/test/clients";
our $document = 'doc/clients.md';

my ($node, $tables, %ran, %types);

# Server and clients are in different time zones, so that a time that loses its
# zone changes.
sub start_server
{
	$node = PostgreSQL::Test::Cluster->new('clients');
	$node->init;
	$node->append_conf('postgresql.conf', <<EOC);
listen_addresses = '127.0.0.1'
timezone = 'Etc/GMT+8'
log_parameter_max_length = 100
log_statement = 'mod'
log_line_prefix = '%d '
EOC
	$node->start;
	$tables = join '', map { $_->{code} } grep { $_->{code} =~ /^CREATE TABLE/ } blocks($document);
	return $node;
}

# The result of a query on one line, or its error, as a failed client may have
# left no tables.
sub sql
{
	my ($database, $query) = @_;
	my ($status, $output, $errors) = $node->psql($database, $query, extra_params => [ '-R', ' ', '-F', ' ' ]);
	return $status == 0 ? $output : $errors;
}

# Run a client in a new database, with these tables; return what it prints, by the
# first word of each line.
sub run_client
{
	my ($name, $tables, @command) = @_;
	my ($output, $errors, %said) = ('', '');
	local %ENV = (
		%ENV,
		PGHOST => '127.0.0.1',
		PGPORT => $node->port,
		PGDATABASE => $name,
		PGSSLMODE => 'disable',
		TZ => 'Asia/Tokyo');

	sql('postgres', "CREATE DATABASE $name");
	sql($name, "CREATE EXTENSION snowflake; $tables");
	ok(IPC::Run::run(\@command, '<', \undef, '>', \$output, '2>', \$errors), "$name: $command[0] succeeds")
	  or diag("@command\n", $output =~ s/^(.{200}).*$/$1.../gmr, $errors);
	foreach (split /\n/, $output)
	{
		my ($what, @values) = split;
		if (/^version (.*) (\S+)$/) { ran($1, $2); }
		elsif (/^types (.*): (\S+) (\S+)(?: (\S+))?$/)
		{
			$types{$1} = { bigint => $2, snowflake => $3 };
			is($4, $2, "$1: a snowflake can be read as a bigint is") if defined $4;
		}
		elsif (defined $what) { $said{$what} = "@values"; }
	}
	return %said;
}

# Run a client, in a database with the document's tables or others, and hold what it
# prints against its tables and the facts.  A fact that is a query is its result.  With
# "prepared", the client says that it prepares its INSERTs, which the log shows.
sub test_client
{
	my ($name, $command, %params) = @_;
	my %facts = %{ $params{facts} // {} };
	my %said = run_client($name, $params{tables} // $tables, @$command);
	my $many = "FROM photos WHERE title LIKE 'many %'";

	is($said{one}, sql($name, "SELECT id FROM photos WHERE title = 'one'"), "$name: the ID that the default made");
	my $ids = $said{many} // '';
	ok($ids eq sql($name, "SELECT id $many ORDER BY substr(title, 6)::integer"), "$name: each of many rows has its ID");
	ok($ids eq sql($name, "SELECT id $many ORDER BY id"), "$name: their IDs are in order");
	is(join(' ', uniq split / /, $said{tags} // ''), sql($name, 'SELECT id FROM tags'),
		"$name: a row whose ID is a snowflake");
	is(sql($name, "SELECT count(*) $many"), 1000, "$name: a thousand rows");
	is(sql($name, 'SELECT DISTINCT snowflake_shard(id) FROM (SELECT id FROM photos UNION SELECT id FROM tags) AS rows'),
		5, "$name: all IDs have the default's shard");
	is(sql($name, "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'photos'::regclass"),
		'next_id((5)::bigint)', "$name: the default as PostgreSQL stores it");
	ok(slurp_file($node->logfile) =~ /^$name LOG:  execute (?!<unnamed>)\S+: INSERT INTO photos /m,
		"$name: rows are inserted by a prepared statement") if $params{prepared};
	is($said{$_}, $facts{$_} =~ /^SELECT / ? sql($name, $facts{$_}) : $facts{$_}, "$name: $_") foreach sort keys %facts;
	return %said;
}

sub ran
{
	my ($client, $version) = @_;
	$ran{$client} = $version;
}

# Hold the rows of one of the document's tables against the clients that ran, their
# types for IDs against the columns bigint and snowflake, and their versions against the
# last column.  If it has several, the clients that ran are those of the one with this
# number, from 0 on.  A version that is not shown is not compared.
sub check_rows
{
	my ($section, $release) = @_;
	my ($text) = slurp_file("$top/$document") =~ /^## \Q$section\E\n(.*?)(?=^## |\z)/ms
	  or die "$document has no section \"$section\"";
	my ($head, undef, @rows) = map { [ split / *\| */, s/^\| *//r ] } $text =~ /^\|.*$/mg;
	my %nr = map { $head->[$_] => $_ } 0 .. $#$head;
	my %shown;

	foreach my $row (@rows)
	{
		my ($client) = $row->[0] =~ m{^\[(.*)\]\(\.\./test/clients/.*\)$}
		  or die "$document: a row names no client and program: $row->[0]";
		my $version = defined $release && (split /, /, $row->[3] // '')[$release];

		$shown{$client} = 1;
		like("$ran{$client}.", qr/^\Q$version\E\./, "$client ran in the version that $document shows")
		  if $ran{$client} && $version;
		is($row->[$nr{"`$_`"}] =~ s/`//gr, $types{$client}{$_} // '',
			"$client has the type for a $_ that $document shows")
		  foreach qw(bigint snowflake);
	}
	is(join(', ', sort keys %shown), join(', ', sort keys %ran), "$document shows the clients that ran");
}

1;
