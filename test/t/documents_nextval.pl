# The commands of doc/nextval.md, which need no extension, print what it shows:
# nextval() repeats a value after a crash.
#
# In the versions that the document lists, they must.  What PostgreSQL does is for
# PostgreSQL to change, so in another version a case whose values go on is skipped.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $document = 'doc/nextval.md';
my ($start, $stop) = map { $_->{code} } grep { $_->{language} eq 'sh' } blocks($document);
my @cases = grep { $_->{language} eq 'sql' } blocks($document);
my ($version) = `postgres --version` =~ /\(PostgreSQL\) (\S+)/;
my ($row) = slurp_file("$top/$document") =~ /^\| \Q$version\E \| (.*) \|$/m;
my @listed = split / \| /, $row // '';

# psql aligns columns, and leaves spaces at the end of some lines.
sub lines
{
	my ($text) = @_;
	return join "\n", map { s/^\s+|\s+$//gr } grep { /\S/ } split /\n/, $text;
}

# Run a case on a server of its own, as the document says.  Returns what it prints,
# and what gdb says if it takes part.
sub output_of
{
	my ($case) = @_;
	my ($output, $gdb);

	# The superuser is named after the user who runs initdb.
	local %ENV = (%ENV, TMPDIR => PostgreSQL::Test::Utils::tempdir_short());
	delete @ENV{ 'PGUSER', 'PGPORT' };
	IPC::Run::run([ 'bash', '-c', "$start\npsql -Xq -P footer=off 2>&1\n[ ! -e \$PGDATA/gdb ] || cat \$PGDATA/gdb >&2\n$stop" ],
		'<', \$case->{code}, '>', \$output, '2>', \$gdb);
	return (lines($output), $gdb);
}

foreach my $case (@cases)
{
	my ($number, $title) = $case->{section} =~ /^(\d)\. (.*)/;
	my $shown = lines($case->{shown});

  SKIP:
	{
		skip 'gdb is not installed', 1 if $case->{code} =~ /gdb/ && !gdb_is_installed();

		# A background process may flush WAL in the middle.
		my ($output, $gdb);
		foreach (1 .. 3)
		{
			($output, $gdb) = output_of($case);
			last if $output eq $shown;
		}
		skip 'gdb cannot attach to a server process or finds no functions', 1
		  if $case->{code} =~ /gdb/ && $gdb !~ /^Breakpoint 1 at/m;

		my @values = $output =~ /^(\d+)$/mg;
		my $go_on = $output !~ /ERROR/ && !grep { $values[$_] <= $values[ $_ - 1 ] } 1 .. $#values;
		skip "nextval() of PostgreSQL $version does not repeat a value here: $title", 1
		  if $go_on && ($listed[ $number - 1 ] // '') ne 'repeats';
		is($output, $shown, "$document: nextval() repeats a value after a crash: $title");
	}
}

# A CHECKPOINT after the command that makes the sequence, before it takes the value
# that came again
foreach my $case (grep { $_->{section} =~ /^[345]/ } @cases)
{
	(my $code = $case->{code}) =~ s/^(?=INSERT INTO \w+ DEFAULT VALUES RETURNING id;)/CHECKPOINT;\n/m or die 'no INSERT';
	my ($output) = output_of({ code => $code });
	my @values = $output =~ /^(\d+)$/mg;

	ok($output !~ /ERROR/ && @values == 2 && $values[0] < $values[1], "after a CHECKPOINT, values go on: $case->{section}")
	  or diag($output);
}

# In a shell with the directory of another server, the block that removes the
# server does nothing.
{
	my $directory = PostgreSQL::Test::Utils::tempdir_short() . '/data';
	mkdir $directory or die "mkdir: $!";
	PostgreSQL::Test::Utils::append_to_file("$directory/PG_VERSION", "15\n");
	local %ENV = (%ENV, PGDATA => $directory);

	is(PostgreSQL::Test::Utils::system_log('bash', '-c', $stop), 0, 'the block that removes the server succeeds elsewhere');
	ok(-e "$directory/PG_VERSION", q{it does not remove another server's directory});
}

done_testing();
