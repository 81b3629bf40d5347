# Shared by tests of recipes for several servers.  A block of such a recipe says
# in its first line on which servers to type it.
#
# Knows the documents' form, and nothing of the extension.
package RecipeTest;

use strict;
use warnings;
use Exporter 'import';
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

our @EXPORT = qw(servers_are on recipe recipe_blocks blocks_not_run caught_up);

my $document = 'doc/scaling.md';
my $on = qr/^(?:--|#) on ([\w, ]+?)(, until it is true)?\n/;
my ($node, %run);

# Servers that start read it, too.  Until INIT, there is no directory for it.
INIT { $ENV{PGSERVICEFILE} = PostgreSQL::Test::Utils::tempdir . '/pg_service.conf' }

# Name the servers: 's1' => node.  Their entries of pg_service.conf are those of
# the document.
sub servers_are
{
	my ($entry) = map { $_->{code} } grep { $_->{language} eq 'ini' } blocks($document);
	my $new = "$ENV{PGSERVICEFILE}.new";
	($node) = @_;

	foreach my $name (keys %$node)
	{
		my ($host, $port) = ($node->{$name}->host, $node->{$name}->port);
		(my $service = $entry) =~ s/^\[s1\]\nhost=.*/[$name]\nhost=$host\nport=$port/m or die "no service s1";
		append_to_file($new, "$service\n");
	}
	rename $new, $ENV{PGSERVICEFILE} or die "rename: $!";
	return;
}

sub on { my ($name, $sql) = @_; return $node->{$name}->safe_psql('app', $sql) }

# Wait until the subscriptions that are named like their publishers have all.
sub caught_up { $node->{$_}->wait_for_catchup($_) for @_; return }

sub recipe_blocks
{
	my ($section) = @_;
	my @blocks = grep { $_->{code} =~ $on } blocks_in($document, $section);
	die "nothing to run in \"$section\"" unless @blocks;
	return @blocks;
}

# Run a section's blocks in their order, or those of the numbers that are named,
# each on the servers that it names.  "until it is true" waits.
sub recipe
{
	my ($section, @numbers) = @_;
	my @blocks = recipe_blocks($section);

	foreach my $block (@numbers ? @blocks[@numbers] : @blocks)
	{
		my ($names, $until) = $block->{code} =~ $on;

		$run{ $block->{code} } = 1;
		if ($block->{language} eq 'sh')
		{
			my ($stdout, $stderr) = run_command([ 'bash', '-e', '-o', 'pipefail', '-c', $block->{code} ]);
			is("$stdout$stderr", '', "the shell commands of \"$section\" succeed and print nothing");
			next;
		}
		foreach my $name (split /, /, $names)
		{
			$until
			  ? ok($node->{$name}->poll_query_until('app', $block->{code}), "a condition of \"$section\" becomes true on $name")
			  : run_examples($node->{$name}, 'app', $block);
		}
	}
	return;
}

# Blocks for several servers that no recipe() of this test has run, but for some
# sections
sub blocks_not_run
{
	my %elsewhere = map { $_ => 1 } @_;
	return map { $_->{code} } grep { $_->{code} =~ $on && !$run{ $_->{code} } && !$elsewhere{ $_->{section} } } blocks($document);
}

1;
