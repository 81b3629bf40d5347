# A server made IDs while its clock was five years ahead.  It refuses to make more
# when the clock is right again, and doc/operations.md has two ways out.

use SnowflakeTest;

my $five_years = '+157680000';
my $insert = 'INSERT INTO photos DEFAULT VALUES';
my $node = server_with_clock('years', $five_years, "snowflake.max_wait = '1h'\n");
$node->sql(qq{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5));
	$insert});

# Here the shard is a setting.
$node->sql(q{CREATE DATABASE app; LOAD 'snowflake'; ALTER DATABASE app SET snowflake.shard = 5});
$node->safe_psql('app', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
	INSERT INTO photos SELECT FROM generate_series(1, 3000)});

# An INSERT that waits would do so for an hour.
set_clock($node, '+0');
my $refused = qr/^53400 sequence "next_id_seq" is 18\d\d days [\d:.]+ ahead of the clock/;
fails_with($node, $insert, $refused, 'an INSERT is refused at once if the sequence is years ahead of the clock',
	timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \my $late);
crash_and_start($node);
fails_with($node, $insert, $refused, 'the INSERT is still refused after a crash');

# The first way out: a new number for the server
my ($change, $restart, $own_sequence) = blocks_in('doc/operations.md', 'Take a new shard');
run_examples($node, 'app', $change);
fails_with($node, $insert, $refused, 'the new number alone does not let INSERTs in', dbname => 'app');
$node->safe_psql('app', 'CREATE EXTENSION snowflake_admin');
run_examples($node, 'app', $restart);
is( $node->safe_psql('app', q{
		INSERT INTO photos SELECT FROM generate_series(1, 10);
		SELECT count(*), bool_and(abs(extract(epoch FROM snowflake_timestamp(id) - clock_timestamp())) < 60)
		FROM photos WHERE snowflake_shard(id) = 6}),
	'10|t', 'new rows have IDs of the new shard and of the present');

# The bound that readers need; admin_renumber.pl gives rows of the future new IDs
my $newest = 'SELECT snowflake_shard(id) FROM photos %s ORDER BY id DESC LIMIT 1';
is($node->safe_psql('app', sprintf($newest, '')), 5, 'the newest ID of all is one of the future');
my $bound = q{id <= snowflake_max_id(now() + interval '1 s')};
is($node->safe_psql('app', sprintf($newest, "WHERE $bound")), 6, 'the newest ID below a bound is one of the present');

# The second way out: a new sequence and shard for the table
$node->sql("CREATE EXTENSION snowflake_admin; $own_sequence->{code}");
is( $node->sql(qq{
		$insert RETURNING abs(extract(epoch FROM snowflake_timestamp(id) - clock_timestamp())) < 60,
			snowflake_shard(id)}),
	't|6', 'a new sequence with a new shard begins with the clock');

# Five years later, the new shard's IDs have the same times as the old one's.
set_clock($node, $five_years);
fails_with($node, 'INSERT INTO photos SELECT FROM generate_series(1, 100000)', qr/^no error/,
	'the sequence that was reset repeats no ID when the clock reaches the rows of the future', dbname => 'app');
$node->sql('INSERT INTO photos SELECT FROM generate_series(1, 3000)');
is( $node->sql(q{
		SELECT count(*) FROM photos a JOIN photos b ON a.id >> 23 = b.id >> 23 AND a.id <> b.id
		WHERE snowflake_shard(a.id) = snowflake_shard(b.id)
		  AND snowflake_sequence_number(a.id) = snowflake_sequence_number(b.id)}),
	0, 'the new shard does not repeat the IDs that the old one made five years before their time');

$node->stop;
done_testing();
