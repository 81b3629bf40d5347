# The commands of snowflake_admin lose nothing while they are disturbed: a round of lab/commands
# for each of them, and one with a fault, which the ledgers show.

use lib 'lab/commands.d';
use SnowflakeTest;
use World;

plan skip_all => 'DBD::Pg is not installed' unless eval { require DBD::Pg };
require Commands;
Commands->import;

my $node = start_lab_server('disturbed');
my $directory = PostgreSQL::Test::Utils::tempdir;

# Faults of a round, as lines
sub faults
{
	my ($round) = @_;
	return join "\n", map { "$_->[0]: $_->[1]" } @{ $round->{faults} };
}

my %events = (
	widen => [ 'kill of its backend', 'change', 'second call' ],
	move => [ 'prepared transaction', 'cancel' ],
	move_back => [ 'reader', 'terminate' ],
	renumber => [ 'cancel', 'dump and restore' ],
	partition => [ 'kill of the server', 'change' ],
	make_partitions => ['kill of another process'],
	drop_partitions => [ 'detach', 'kill of its backend' ]);

my $seed = 1;
foreach my $kind (@KINDS)
{
	my $round = one_round($node, $seed++, "$directory/$kind", kinds => [$kind], events => $events{$kind});
	is(faults($round), '', "no row, reference or privilege is lost: $round->{line}");
}

# The rules of lab/commands change what is in the sources, so that these must have it.
foreach my $rule (rules())
{
	$node->safe_psql('postgres', 'CREATE DATABASE planted TEMPLATE base');
	is(eval { plant_in($node, $rule, 'planted'); 'planted' } // $@, 'planted', "the fault of rule $rule can be planted");
	$node->safe_psql('postgres', 'DROP DATABASE planted');
}

# The tasks of a round pause before each step, and end with the first error.
my $steps = Round->new(node => $node, directory => $directory);
my $waits = $steps->add_task('postgres', [ 0, 'SELECT 1' ], [ 100, 'SELECT 2' ]);
my $fails = $steps->add_task('postgres', [ 0, 'SELECT 1/0', 'SELECT 2' ]);
ok(wait_for(sub { $steps->run_tasks; $waits->{result} && $fails->{result} }), 'two tasks take their first step');
cmp_ok($waits->{next} - time(), '>', 60, '... one waits for its next one');
is(scalar @{ $steps->{tasks} }, 1, '... and the other one ends');
$_->{connection}->close foreach $waits, $fails;

plant_in($node, 'newest');
my $round = one_round($node, $seed, "$directory/control", control => 'newest');
like(faults($round), qr/^rows that are lost: /m, 'a partition too many that is dropped is seen');

done_testing();
