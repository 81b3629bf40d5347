# The examples of the README, the reference, the internals and the guide to
# layouts do what they show.  That guide draws the default layout as it is, says when
# layouts end, and has definitions of other systems' layouts.

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

$node->safe_psql('postgres', 'ALTER DATABASE app RESET snowflake.shard; CREATE DATABASE reference');
$node->safe_psql('reference', 'CREATE EXTENSION snowflake');
run_examples($node, 'reference', blocks('doc/reference.md'));
run_examples($node, 'app', blocks('doc/internals.md'));
run_examples($node, 'postgres', blocks('doc/layouts.md'));

# the examples in the reference's lines of text
my $reference = slurp_file("$top/doc/reference.md");
my @examples = $reference =~ /`([^`\n]+)` →\s`([^`\n]+)`/g;
is(@examples / 2, scalar(() = $reference =~ /` →/g), 'doc/reference.md: each arrow belongs to an example');
while (my ($expression, $result) = splice @examples, 0, 2)
{
	is($node->safe_psql('reference', "SELECT $expression"), $result,
		"doc/reference.md: $expression has the result that is shown");
}

# --- what doc/layouts.md says of layouts ------------------------------------

my $document = slurp_file("$top/doc/layouts.md");

# The drawing of the default layout
my ($positions, $fields) = $document =~ /^```\n( 63 .*)\n(\|.*)\n```/m or die 'there is no drawing';
my @fields = $fields =~ /([a-z]\w*) (\d+)/g;
is("@fields", join(' ', $node->safe_psql('app', q{SELECT definition FROM snowflake_layouts()
		WHERE name = 'instagram'}) =~ /(\w+):(\d+) (?=.*epoch)/g),
	'doc/layouts.md: the drawing has the fields of the default layout');
my ($bit, @ends) = (64);
foreach my $bits (@fields[ 1, 3, 5 ])
{
	push @ends, $bit - 1, $bit -= $bits;
}
# All fields but the last fill up to the sign bit.
$ends[0] = 63;
is("@ends", join(' ', $positions =~ /\d+/g), 'doc/layouts.md: the drawing has their bits');

my ($choices) = $document =~ /^## Choose a layout\n(.*?)^## /ms;
my %year = map { /^\*.*?`(\w+)`.*\buntil\s(\d+)/s ? ($1 => $2) : () } split /^- /m, $choices;
is(join(' ', map { $_, $node->safe_psql('app',
	"SELECT extract(year FROM expires) FROM snowflake_layouts() WHERE name = '$_'") } sort keys %year),
	join(' ', map { $_, $year{$_} } qw(instagram javascript)),
		'doc/layouts.md: layouts end in the years that are shown');

# IDs from the documents, tests or issues of other systems, and their times
my %published = (
	'bwmarrin/snowflake' => [ 1116766490855473152, '2019-04-12 18:14:14.595' ],
	'MyBatis-Plus' => [ 1561666810058739714, '2022-08-22 10:49:16.541' ],
	'Hutool' => [ 1278735254782615552, '2020-07-02 17:00:17.149' ],
	'FlakeId' => [ 1108047973760811023, '2023-05-16 15:07:03.48' ],
	'TSID' => [ 501438102971408389, '2023-10-15 16:56:00.017' ],
	'CockroachDB' => [ 235191684988928001, '2017-04-10 17:26:46.21' ],
	'baidu/uid-generator' => [ 180363646902239241, '2017-01-19 12:15:46' ],
	'yitter/IdGenerator' => [ 129053495681099, '2021-02-18 18:20:03.114' ],
	'RobThree/IdGen' => [ 862817670527975424, '2021-07-08 22:09:23.031' ],
	'TiDB' => [ 443852055297916932, '2023-08-27 18:33:41.687' ],
	'AT Protocol' => [ 1728652679052295174, '2023-06-30 15:03:01.887007' ]);
my ($systems) = $document =~ /^## Other systems\n(.*?)^## /ms;
foreach my $line (map { s/\s+/ /gr } $systems =~ /^- (.*?)(?=^- |\n\n)/gms)
{
	my ($layout) = $line =~ /`([^`]+)` ?$/ or die "no layout: $line";
	foreach my $system (grep { $published{$_} } $line =~ /\[([^]]+)\]/g)
	{
		my ($id, $time) = @{ delete $published{$system} };
		is($node->safe_psql('app', "SELECT snowflake_timestamp($id, '$layout')"), "$time+00",
			"doc/layouts.md: an ID of $system has the time of the layout");
	}
}
is(join(' ', sort keys %published), '', 'doc/layouts.md has the layouts of these systems');
my ($base32, $id) = $systems =~ /`(snowflake_from_text[^`]+)`\s+is\s+(\d+)/ or die 'no text of a TSID';
is($node->safe_psql('app', "SELECT $base32"), $id, 'doc/layouts.md: a TSID is read from its text');

$node->stop;
done_testing();
