# What the tests of clients share: databases to run the programs of test/clients/ in,
# what a program printed held against its tables, and the tables of
# doc/clients.md held against what ran.
#
# A program prints a word and values on each line: "version NAME VERSION" of
# itself and its libraries, the IDs that check() lists, and "types NAME: BIGINT
# SNOWFLAKE", which are the client's types for IDs of columns of these types, or
# "error".  A third type is what a snowflake becomes if the program tells the
# client of it.
package ClientTest;

use strict;
use warnings;
use Exporter 'import';
use IPC::Run;
use List::Util 'uniq';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

our @EXPORT = qw($clients $document start_server stop_server sql prepare run_client check test_client run_printed ran check_rows);

our $clients = "$top/test/clients";
our $document = 'doc/clients.md';

my ($node, $user, $tables, %prepared, %ran, %types);

# Server and clients are in different time zones, so that a time that loses its
# zone changes.
sub start_server
{
	$node = PostgreSQL::Test::Cluster->new('clients');
	$node->init;
	$node->append_conf('postgresql.conf', <<EOC);
listen_addresses = '127.0.0.1'
timezone = 'America/Los_Angeles'
log_parameter_max_length = 100
EOC
	$node->start;
	$user = $node->safe_psql('postgres', 'SELECT current_user');
	$tables = join '', map { $_->{code} } grep { $_->{code} =~ /^CREATE (TABLE|SEQUENCE)/ } blocks($document);
	return $node;
}

sub stop_server
{
	$node->stop;
	return;
}

# The result of a query on one line, or its error, as a failed client may have
# left no tables.
sub sql
{
	my ($database, $query) = @_;
	my ($status, $output, $errors) = $node->psql($database, $query, extra_params => [ '-R', ' ', '-F', ' ' ]);
	return $status == 0 ? $output : $errors;
}

# Make a database, with the document's tables and an old row unless the client
# makes its own.
sub prepare
{
	my ($name, $own) = @_;

	sql('postgres', "CREATE DATABASE $name");
	sql($name, 'CREATE EXTENSION snowflake');
	sql($name, "$tables INSERT INTO photos (id, title) VALUES (snowflake_id('2020-01-01Z', 5, 1), 'old')") unless $own;
	$prepared{$name} = 1;
	return;
}

# Run a client; return what it prints, by the first word of each line.
sub run_client
{
	my ($name, @command) = @_;
	my ($output, $errors, %said) = ('', '');
	local %ENV = (
		%ENV,
		PGHOST => '127.0.0.1',
		PGPORT => $node->port,
		PGDATABASE => $name,
		PGUSER => $user,
		PGSSLMODE => 'disable',
		TZ => 'Asia/Tokyo');

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

# Compare lists of IDs, which are too long to be shown.
sub same_ids
{
	my ($got, $expected, $title) = @_;
	my @got = split / /, $got // '';
	my @expected = split / /, $expected;
	my ($first) = grep { ($got[$_] // '') ne ($expected[$_] // '') } 0 .. (@got > @expected ? $#got : $#expected);

	ok(!defined $first, $title)
	  or diag(sprintf 'number %d of %d is "%s", and not "%s" of %d',
		$first, scalar(@got), $got[$first] // '', $expected[$first] // '', scalar(@expected));
	return;
}

# Hold what a client printed against its tables.
sub check
{
	my ($name, $photos, $albums, %said) = @_;
	my $first = "FROM $photos WHERE title = 'first'";
	my $bulk = "FROM $photos WHERE title LIKE 'bulk %'";
	my $both = "(SELECT id FROM $photos UNION ALL SELECT id FROM $albums) AS rows";

	is($said{one}, sql($name, "SELECT id $first"), "$name: the ID that the default made");
	is($said{pair},
		sql($name, "SELECT a.id, p.id FROM $albums a JOIN $photos p ON p.id = a.cover_id AND a.id = p.album_id"),
		"$name: two rows that refer to each other");
	same_ids($said{bulk}, sql($name, "SELECT id $bulk ORDER BY substr(title, 6)::integer"),
		"$name: each of many rows has its ID");
	same_ids($said{bulk}, sql($name, "SELECT id $bulk ORDER BY id"), "$name: their IDs are in order");
	is(join(' ', uniq split / /, $said{tags} // ''), sql($name, 'SELECT id FROM tags'),
		"$name: a row whose ID is a snowflake");
	is($said{pages}, sql($name, "SELECT id FROM $photos ORDER BY id DESC LIMIT 40"),
		"$name: two pages of the newest rows");
	is($said{made}, sql($name, "SELECT (extract(epoch FROM snowflake_timestamp(id)) * 1000)::bigint $first"),
		"$name: the time at which a row was made");
	same_ids($said{recent}, sql($name, "SELECT id FROM $photos WHERE title <> 'old' ORDER BY id"),
		"$name: the rows of the last hour");
	is(sql($name, "SELECT count(*), count(DISTINCT id), min(snowflake_shard(id)), max(snowflake_shard(id)) FROM $both"),
		'10004 10004 5 5', "$name: all IDs differ and have the default's shard");
	is(sql($name, "SELECT DISTINCT pg_get_expr(adbin, adrelid) FROM pg_attrdef
			WHERE adrelid IN ('$photos'::regclass, '$albums'::regclass)"),
		'next_id((5)::bigint)', "$name: the default as PostgreSQL stores it");
	return;
}

# Run a client and check it, in a database with the document's tables unless another
# one was prepared for it.
sub test_client
{
	my ($name, @command) = @_;

	prepare($name) unless $prepared{$name};
	my %said = run_client($name, @command);
	check($name, 'photos', 'albums', %said);
	return %said;
}

# Run the document's program in a language.  It makes a row, prints it as JSON, and
# finds it again.
sub run_printed
{
	my ($language, $file, @command) = @_;
	my ($program) = map { $_->{code} } grep { $_->{language} eq $language } blocks($document);

	append_to_file($file, $program // die "$document has no program in $language");
	prepare($language);
	my $printed = join '', run_client($language, @command, $file);
	my $id = sql($language, "SELECT id FROM photos WHERE title = 'sunset'");
	is($printed =~ s/ //gr, qq({"id":"$id","title":"sunset"}sunset),
		"the program in $language of $document sends the ID as text, and finds the row by it");
	return;
}

# Note that a client ran.
sub ran
{
	my ($client, $version) = @_;

	note("ran $client $version");
	$ran{$client} = $version;
	return;
}

# Hold the rows of one of the document's tables against the clients that ran, their
# types for IDs against the columns bigint and snowflake, and their versions against
# the column of this name, where it has any.
sub check_rows
{
	my ($section, $column) = @_;
	my ($text) = slurp_file("$top/$document") =~ /^## \Q$section\E\n(.*?)(?=^## |\z)/ms
	  or die "$document has no section \"$section\"";
	my ($head, undef, @rows) = map { [ split / *\| */, s/^\| *//r ] } $text =~ /^\|.*$/mg;
	my %nr = map { $head->[$_] => $_ } 0 .. $#$head;
	my $nr = $nr{$column};
	my %shown;

	note("$document has no versions for $column") unless defined $nr;
	foreach my $row (@rows)
	{
		my ($client, $program) = $row->[0] =~ m{^\[(.*)\]\(\.\./test/clients/(.*)\)$}
		  or die "$document: a row names no client and program: $row->[0]";

		ok(-f "$clients/$program", "$client: $program is there");
		$shown{$client} = 1;
		ok($ran{$client}, "$client ran");
		like("$ran{$client}.", qr/^\Q$row->[$nr]\E\./, "$client ran in the version that $document shows")
		  if $ran{$client} && defined $nr && ($row->[$nr] // '') ne '';
		is($row->[$nr{"`$_`"}] =~ s/`//gr, $types{$client}{$_} // '', "$client has the type for a $_ that $document shows")
		  foreach qw(bigint snowflake);
	}
	is(join(', ', grep { !$shown{$_} } sort keys %ran), '', "$document shows all clients that ran");
	return;
}

1;
