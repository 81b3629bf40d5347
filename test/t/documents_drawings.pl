# doc/layouts.md draws the built-in layouts as they are, and says when they end.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('drawings');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my $document = slurp_file("$top/doc/layouts.md");

# The numbers of the bits at either end of each field, from the left.  A field of
# one bit has one number.
sub ends_of_fields
{
	my @fields = @_;
	my ($bit, @ends) = (0);

	for (my $i = $#fields; $i > 0; $i -= 2)
	{
		unshift @ends, $bit + $fields[$i] - 1, $bit;
		$bit += $fields[$i];
	}
	unshift @ends, $bit if $bit < 63;
	unshift @ends, 63 if $bit < 64;
	return "@ends";
}

# The walls between fields, by their columns, that are not below a space
sub walls_out_of_line
{
	my ($positions, $fields) = @_;
	my @walls;

	push @walls, $-[0] while $fields =~ /\|/g;
	return grep { substr("$positions ", $_, 1) ne ' ' } @walls;
}

my %end;
while ($document =~ /^### (\w+)\n(.*?)(?=^#|\z)/gms)
{
	my ($name, $section) = ($1, $2);
	($end{$name}) = $section =~ /\buntil\s(\d+-\d\d-\d\d)/ if $section =~ /^```\n 63 /m;
}
my %expires = split /[|\n]/, $node->safe_psql('postgres', 'SELECT name, expires::date FROM snowflake_layouts() WHERE expires IS NOT NULL');
is($end{$_}, $expires{$_}, "doc/layouts.md: $_ ends on the day that its section says") foreach sort keys %expires;

# A drawing is a line of positions and a line of fields.
my %drawing = $document =~ /^### (\w+)\n\n```\n( 63 .*\n\|.*)\n```/gm;
is(scalar(keys %drawing), 9, 'doc/layouts.md: all layouts of bits are drawn');
foreach my $name (sort keys %drawing)
{
	my ($positions, $fields) = split /\n/, $drawing{$name};
	my @fields = $fields =~ /([a-z]\w*) (\d+)/g;

	# The definition of trace is its name, because it is not only a list of fields.
	my $definition = $node->safe_psql('postgres', "SELECT definition FROM snowflake_layouts() WHERE name = '$name'");
	is("@fields", join(' ', $definition =~ /(\w+):(\d+) (?=.*epoch)/g), "doc/layouts.md: the drawing of $name has its fields")
	  if $name ne 'trace';
	is(join(' ', $positions =~ /\d+/g), ends_of_fields(@fields), "doc/layouts.md: the drawing of $name has its bits");
	is(scalar(walls_out_of_line($positions, $fields)), 0, "doc/layouts.md: the drawing of $name lines up")
	  if length($positions) < length($fields);
}

$node->stop;
done_testing();
