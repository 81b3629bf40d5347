# A reader of new rows by the recipe of doc/ranges.md, "Reading what is new", misses
# none, although transactions commit in another order than they took their IDs.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('new_rows');
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
run_examples($node, 'postgres', blocks_in('doc/ranges.md', 'Time ranges and partitions'));
my ($recipe) = blocks_in('doc/ranges.md', 'Reading what is new');

my ($early, $late) = map { $node->background_psql('postgres') } 1 .. 2;
my ($last_of_naive, $last) = (0, 0);
my (%naive, @read);

# The recipe's query begins at an ID of the document.  A reader that remembers
# the last ID gets those of its rows that are larger.
sub read_new_rows
{
	my @new = grep { $_ > $last } split /\n/, $node->safe_psql('postgres', $recipe->{code});

	$last = $new[-1] if @new;
	push @read, @new;
	return;
}

# One that only asks for IDs larger than the last
sub read_naively
{
	my @new = split /\n/, $node->safe_psql('postgres', "SELECT id FROM events WHERE id > $last_of_naive ORDER BY id");

	$last_of_naive = $new[-1] if @new;
	$naive{$_} = 1 foreach @new;
	return;
}

read_naively();
read_new_rows();
my @expected = @read;
my @early;
foreach my $round (1 .. 20)
{
	# Begun and used in one message, so mostly in one millisecond
	push @early, $early->query_safe("BEGIN; INSERT INTO events (kind) VALUES ('early') RETURNING id");
	push @expected, $early[-1], $late->query_safe("INSERT INTO events (kind) VALUES ('late') RETURNING id");
	read_naively();
	read_new_rows();
	$early->query_safe('COMMIT');
}
read_naively();
read_new_rows();
$_->quit foreach $early, $late;

is_deeply(\@read, \@expected, 'a reader that stops short of running transactions misses nothing, and reads nothing twice');
is(scalar(grep { !$naive{$_} } @early), 20, 'control: a reader that does not stop short of them skips rows');

$node->stop;
done_testing();
