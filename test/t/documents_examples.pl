# The examples of the README, the reference, the internals and the guide to
# layouts do what they show.  That guide draws the built-in layouts as they are, and
# says when they end.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('documents');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE ROLE owner LOGIN; CREATE DATABASE app OWNER owner');

# --- README.md: the first example creates the extension --------------------

# Each use is a session of its own, of the database's owner, who is no superuser.
my ($first, @uses) = grep { $_->{language} eq 'sql' } blocks('README.md');
$ENV{PGUSER} = 'owner';
run_examples($node, 'app', $first);
foreach my $use (@uses)
{
	my ($title) = $use->{code} =~ /^(.{1,60})/;
	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('app'), '-c', $use->{code} ],
		"README.md: this use is accepted: $title");
}
is($node->safe_psql('app', q{INSERT INTO albums (title) VALUES ('first') RETURNING snowflake_shard(id)}), 5,
	'README.md: the shard that is set is that of new sessions');

$ENV{PGUSER} = 'postgres';

# --- the other documents --------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE reference');
$node->safe_psql('reference', 'CREATE EXTENSION snowflake');
run_examples($node, 'reference', blocks('doc/reference.md'));
$node->safe_psql('reference', $_->{code}) foreach blocks_in('doc/performance.md', 'In the long run, and by many sessions');
is($node->safe_psql('reference', 'INSERT INTO events DEFAULT VALUES RETURNING snowflake_shard(id, $$twitter$$)'), 5,
	'doc/performance.md: a table has a sequence of a layout with more IDs, and the shard of the setting');
run_examples($node, 'app', blocks('doc/internals.md'));
run_examples($node, 'postgres', blocks('doc/layouts.md'));

# in one session, too, by somebody who goes on with the role that a block has set
$node->safe_psql('postgres', 'CREATE DATABASE layouts; DROP OWNED BY event_writer; DROP ROLE event_writer');
$node->safe_psql('layouts', 'CREATE EXTENSION snowflake');
is($node->psql('layouts', join "\n", map { $_->{code} } grep { $_->{language} eq 'sql' } blocks('doc/layouts.md')), 0,
	'doc/layouts.md: all examples can be typed into one session');

# the examples in the reference's lines of text
my $reference = slurp_file("$top/doc/reference.md");
my @examples = $reference =~ /`([^`\n]+)` →\s`([^`\n]+)`/g;
is(@examples / 2, scalar(() = $reference =~ /` →/g), 'doc/reference.md: each arrow belongs to an example');
while (my ($expression, $result) = splice @examples, 0, 2)
{
	is($node->safe_psql('reference', "SELECT $expression"), $result, "doc/reference.md: $expression has the result that is shown");
}

# --- the drawings of doc/layouts.md ----------------------------------------

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

my %end;
while ($document =~ /^### (\w+)\n(.*?)(?=^#|\z)/gms)
{
	my ($name, $section) = ($1, $2);
	($end{$name}) = $section =~ /\buntil\s(\d+-\d\d-\d\d)/ if $section =~ /^```\n 63 /m;
}
my %expires = split /[|\n]/, $node->safe_psql('app', 'SELECT name, expires::date FROM snowflake_layouts() WHERE expires IS NOT NULL');
is($end{$_}, $expires{$_}, "doc/layouts.md: $_ ends on the day that its section says") foreach sort keys %expires;

# A drawing is a line of positions and a line of fields.
my %drawing = $document =~ /^### (\w+)\n\n```\n( 63 .*\n\|.*)\n```/gm;
is(scalar(keys %drawing), 9, 'doc/layouts.md: all layouts of bits are drawn');
foreach my $name (sort keys %drawing)
{
	my ($positions, $fields) = split /\n/, $drawing{$name};
	my @fields = $fields =~ /([a-z]\w*) (\d+)/g;

	# The definition of trace is its name, because it is not only a list of fields.
	my $definition = $node->safe_psql('app', "SELECT definition FROM snowflake_layouts() WHERE name = '$name'");
	is("@fields", join(' ', $definition =~ /(\w+):(\d+) (?=.*epoch)/g), "doc/layouts.md: the drawing of $name has its fields")
	  if $name ne 'trace';
	is(join(' ', $positions =~ /\d+/g), ends_of_fields(@fields), "doc/layouts.md: the drawing of $name has its bits");
}

$node->stop;
done_testing();
