# What the documents refer to is there: messages of the sources, figures of
# another document, files and headings.

use strict;
use warnings;
use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = "$FindBin::RealBin/..";

# The files that match some patterns, by their paths in the project
sub files
{
	return map { s/^\Q$root\E\///r } map { glob("$root/$_") } @_;
}

# The anchors of a document's headings
sub anchors
{
	my ($file) = @_;
	return map { (lc =~ s/[^\w -]//gr =~ s/ /-/gr => 1) } slurp_file($file) =~ /^#+ (.*)$/gm;
}

my $reference = slurp_file("$root/doc/reference.md");
foreach my $source (files('*.c'))
{
	my $code = slurp_file("$root/$source");
	while ($code =~ /errmsg(?:_plural)?\("((?:[^"\\]|\\.)*)"/g)
	{
		my $message = $1 =~ s/\\"/"/gr =~ s/%(lld|\.\*s|[dsu])/.../gr;
		ok(index($reference, "| `$message` |") >= 0, "doc/reference.md explains the message \"$message\" of $source");
	}
}

my %table = map { $_ => { slurp_file("$root/$_") =~ /^<!-- bench\/report: (\w+) -->\n(.*?)^<!-- end -->$/gms } }
  ('README.md', 'doc/performance.md');
is($table{'README.md'}{$_}, $table{'doc/performance.md'}{$_}, "README.md has the figures of doc/performance.md: $_")
  foreach sort keys %{ $table{'README.md'} };

foreach my $file (files('*.md', 'doc/*.md'))
{
	my $text = slurp_file("$root/$file") =~ s/^```.*?^```//gmsr;
	my @broken;
	while ($text =~ /\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)
	{
		my ($path, $heading) = ($1, $2);
		my $target = "$root/" . ($path eq '' ? $file : $file =~ m{^doc/} ? "doc/$path" : $path);
		my %anchors = defined $heading && -f $target ? anchors($target) : ();
		push @broken, "$path#" . ($heading // '') if !-e $target || (defined $heading && !$anchors{$heading});
	}
	push @broken, grep { !-e "$root/$_" } $text =~ m{`((?:model|script|specs|sql|t|tools|xt)/[\w.-]+)}g;
	is("@broken", '', "the links and file names in $file lead somewhere");
}

done_testing();
