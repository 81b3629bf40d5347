# Whoever obeys snowflake_check() gets no ID twice and loses no row: rounds of lab/remedies, and
# one with a fault, which makes IDs come twice.

use lib 'lab/commands.d', 'lab/remedies.d';
use SnowflakeTest;

plan skip_all => 'DBD::Pg is not installed' unless eval { require DBD::Pg };
require Remedies;
Remedies->import;

my $node = start_remedies_server('obeyed');
my $directory = PostgreSQL::Test::Utils::tempdir;

# Faults of a round, as lines
sub faults
{
	my ($round) = @_;
	return join "\n", map { "$_->[0]: $_->[1]" } @{ $round->{faults} };
}

# What goes wrong, and who calls the check
my @worlds = (
	[ boss => 'fast clock', 'no USAGE' ],
	[ postgres => 'ahead', 'locked code' ],
	[ boss => 'stranger' ],
	[ boss => 'shard of a role', 'stranger' ],
	[ boss => 'lost MAXVALUE', 'imported rows of soon' ],
	[ lender => 'ahead', 'parameters' ],
	[ boss => 'restored copy', 'dead job' ],
	[ postgres => 'counted key', 'rows of another server' ],
	[ boss => 'nextval in a default', 'nearly full key', 'unlogged' ]);

my $seed = 1;
foreach (@worlds)
{
	my ($role, @faults) = @$_;
	my $round = one_round($node, $seed++, "$directory/$seed", role => $role, faults_of => \@faults);
	is(faults($round), '', "no ID comes twice, and the check is content: $round->{line}");
	ok(%{ $round->{counts} } || %{ $round->{sentences} }, '... after remedies that it has shown');
}

plant_in_server($node, 'again');
my $round = one_round($node, $seed, "$directory/control", control => 'again');
like(faults($round), qr/^IDs that came twice: /m, 'a remedy that does not look again makes IDs come twice');

done_testing();
