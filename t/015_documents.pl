# The documents keep their word: their examples do what they show, the reference
# explains every message of the sources, doc/layouts.md draws the built-in layouts
# as they are, and no link leads nowhere.

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

# The README's first screen shows what comes; the rest must be accepted.
my ($first, @uses) = grep { $_->{language} eq 'sql' } blocks('README.md');
$node->safe_psql('postgres', 'CREATE DATABASE app');
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

run_examples($node, 'app', blocks('doc/reference.md'));
run_examples($node, 'app', blocks('doc/internals.md'));
run_examples($node, 'postgres', blocks('doc/layouts.md'));

# the reference: examples in a line of text, and each message of the sources
my $root = "$FindBin::RealBin/..";
my $reference = slurp_file("$root/doc/reference.md");
my @examples = $reference =~ /`([^`\n]+)` →\s`([^`\n]+)`/g;
is(@examples / 2, scalar(() = $reference =~ /` →/g), 'doc/reference.md: each arrow belongs to an example');
while (my ($expression, $result) = splice @examples, 0, 2)
{
	is($node->safe_psql('app', "SELECT $expression"), $result, "doc/reference.md: $expression has the result that is shown");
}
foreach my $source (map { s/^\Q$root\E\///r } glob("$root/*.c"))
{
	my $code = slurp_file("$root/$source");
	while ($code =~ /errmsg(?:_plural)?\("((?:[^"\\]|\\.)*)"/g)
	{
		my $message = $1 =~ s/\\"/"/gr =~ s/%(lld|\.\*s|[dsu])/.../gr;
		ok(index($reference, "| `$message` |") >= 0, "doc/reference.md explains the message \"$message\" of $source");
	}
}

my $document = slurp_file("$FindBin::RealBin/../doc/layouts.md");

# the last day of each layout
my %end;
while ($document =~ /^### (\w+)\n(.*?)(?=^#|\z)/gms)
{
	my ($name, $section) = ($1, $2);
	($end{$name}) = $section =~ /\buntil\s(\d+-\d\d-\d\d)/ if $section =~ /^```\n 63 /m;
}
my %expires = split /[|\n]/, $node->safe_psql('postgres', 'SELECT name, expires::date FROM snowflake_layouts() WHERE expires IS NOT NULL');
is($end{$_}, $expires{$_}, "doc/layouts.md: $_ ends on the day that its section says") foreach sort keys %expires;

# the drawings: a line of positions, a line of fields
my %drawing = $document =~ /^### (\w+)\n\n```\n( 63 .*\n\|.*)\n```/gm;
is(scalar(keys %drawing), 9, 'doc/layouts.md: all layouts of bits are drawn');
foreach my $name (sort keys %drawing)
{
	my ($positions, $fields) = split /\n/, $drawing{$name};
	my @fields = $fields =~ /([a-z]\w*) (\d+)/g;
	my @walls;

	# trace, which is no list of fields only, has its name for a definition
	my $definition = $node->safe_psql('postgres', "SELECT definition FROM snowflake_layouts() WHERE name = '$name'");
	is("@fields", join(' ', $definition =~ /(\w+):(\d+) (?=.*epoch)/g), "doc/layouts.md: the drawing of $name has its fields")
	  if $name ne 'trace';

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
	is(join(' ', $positions =~ /\d+/g), "@expected", "doc/layouts.md: the drawing of $name has its bits");

	push @walls, $-[0] while $fields =~ /\|/g;
	is(scalar(grep { substr("$positions ", $_, 1) ne ' ' } @walls), 0, "doc/layouts.md: the drawing of $name lines up")
	  if length($positions) < length($fields);
}

# figures that the README has from doc/performance.md
my %tables = slurp_file("$root/doc/performance.md") =~ /^<!-- bench\/report: (\w+) -->\n(.*?)^<!-- end -->$/gms;
my %copies = slurp_file("$root/README.md") =~ /^<!-- bench\/report: (\w+) -->\n(.*?)^<!-- end -->$/gms;
is($copies{$_}, $tables{$_}, "README.md has the figures of doc/performance.md: $_") foreach sort keys %copies;

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
	push @broken, grep { !-e "$root/$_" } $text =~ m{`((?:model|script|specs|sql|t|tools|xt)/[\w.-]+)}g;
	is("@broken", '', "the links and file names in $file lead somewhere");
}

$node->stop;
done_testing();
