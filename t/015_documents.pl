# The documents keep their word: their examples do what they show, the reference
# explains every message of the sources, what doc/layouts.md says of the built-in
# layouts is so, and no link leads nowhere.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

my $node = PostgreSQL::Test::Cluster->new('documents');
$node->init;
$node->append_conf('postgresql.conf', "timezone = 'UTC'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');

$node->safe_psql('postgres', 'CREATE DATABASE newcomer');
run_examples($node, 'newcomer', (blocks('README.md'))[0]);
run_examples($node, 'newcomer', blocks('doc/reference.md'));
run_examples($node, 'newcomer', blocks('doc/internals.md'));
run_examples($node, 'postgres', blocks('doc/layouts.md'));

# the reference: examples in a line of text, and each message of the sources
my $root = "$FindBin::RealBin/..";
my $reference = slurp_file("$root/doc/reference.md");
my @examples = $reference =~ /`([^`\n]+)` →\s`([^`\n]+)`/g;
is(@examples / 2, scalar(() = $reference =~ /` →/g), 'each arrow belongs to an example');
while (my ($expression, $result) = splice @examples, 0, 2)
{
	is($node->safe_psql('newcomer', "SELECT $expression"), $result, "example: $expression");
}
foreach my $source (map { s/^\Q$root\E\///r } glob("$root/*.c"))
{
	my $code = slurp_file("$root/$source");
	while ($code =~ /errmsg(?:_plural)?\("((?:[^"\\]|\\.)*)"/g)
	{
		my $message = $1 =~ s/\\"/"/gr =~ s/%(lld|\.\*s|[dsu])/.../gr;
		ok(index($reference, "| `$message` |") >= 0, "$source: \"$message\" is explained");
	}
}

my $document = slurp_file("$FindBin::RealBin/../doc/layouts.md");

# the table of ends
my @ends = $document =~ /^\| `(\w+)` \| [^|]+ \| (\d+-\d+-\d+) \| (\d+-\d+-\d+|past 2\^53) \|$/gm;
is(scalar(@ends), 8 * 3, 'all layouts that end are in the table');
while (my ($name, $end, $unsigned) = splice @ends, 0, 3)
{
	is($node->safe_psql('postgres', "SELECT expires::date FROM snowflake_layouts() WHERE name = '$name'"),
		$end, "$name: its last day");
	is($node->safe_psql('postgres', "SELECT snowflake_timestamp(-1, '$name')::date"), $unsigned, "$name: read unsigned")
		if $unsigned =~ /-/;
}

# the drawings: a line of positions, a line of fields
my %drawing = $document =~ /^### (\w+)\n\n```\n( 63 .*\n\|.*)\n```/gm;
is(scalar(keys %drawing), 9, 'all layouts of bits are drawn');
foreach my $name (sort keys %drawing)
{
	my ($positions, $fields) = split /\n/, $drawing{$name};
	my @fields = $fields =~ /([a-z]\w*) (\d+)/g;
	my @walls;

	# trace, which is no list of fields only, has its name for a definition
	my $definition = $node->safe_psql('postgres', "SELECT definition FROM snowflake_layouts() WHERE name = '$name'");
	is("@fields", join(' ', $definition =~ /(\w+):(\d+) (?=.*epoch)/g), "$name: its fields") if $name ne 'trace';

	# positions from the right: 0, 9; 10, 22; ... 63
	my @expected;
	my $bit = 0;
	for (my $i = $#fields; $i > 0; $i -= 2)
	{
		unshift @expected, $bit + $fields[$i] - 1, $bit;
		$bit += $fields[$i];
	}
	unshift @expected, $bit if $bit < 63;
	unshift @expected, 63 if $bit < 64;
	is(join(' ', $positions =~ /\d+/g), "@expected", "$name: its bits");

	push @walls, $-[0] while $fields =~ /\|/g;
	is(scalar(grep { substr("$positions ", $_, 1) ne ' ' } @walls), 0, "$name: lines up") if length($positions) < length($fields);
}

# links from one document to another, or to a heading of it, and names of files
foreach my $file (map { s/^\Q$root\E\///r } glob("$root/*.md $root/doc/*.md"))
{
	my $text = slurp_file("$root/$file") =~ s/^```.*?^```//gmsr;
	my @broken;
	while ($text =~ /\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)
	{
		my ($path, $heading) = ($1, $2);
		my $target = "$root/" . ($path eq '' ? $file : $file =~ m{^doc/} ? "doc/$path" : $path);
		my %headings = !defined $heading || !-f $target ? () :
		  map { (lc =~ s/[^\w -]//gr =~ s/ /-/gr => 1) } slurp_file($target) =~ /^#+ (.*)$/gm;
		push @broken, "$path#" . ($heading // '') if !-e $target || (defined $heading && !$headings{$heading});
	}
	push @broken, grep { !-e "$root/$_" } $text =~ m{`((?:model|script|specs|sql|t|xt)/[\w.]+)}g;
	is("@broken", '', "$file: its links and files");
}

$node->stop;
done_testing();
