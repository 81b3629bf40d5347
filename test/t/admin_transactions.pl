# How commands of snowflake_admin begin and end transactions: what others commit while a
# command waits counts, whatever isolation is the default, and nothing of it lasts in a
# block of the caller's.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('transactions');
value('postgres', 'CREATE ROLE reader');

# A command waits for a table that another session is changing.  That session commits, and the
# command ends.  Returns what the command says.
sub waits_for
{
	my ($database, $change, $call) = @_;
	my $other = $node->background_psql($database);
	my $caller = session($node, $database);

	$other->query_safe("BEGIN ISOLATION LEVEL READ COMMITTED; $change");
	send_sql($caller, "$call;\nSELECT 'done'");
	$node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $caller->{backend} AND NOT granted)")
	  or die 'does not wait';
	$other->query_safe('COMMIT');
	session_prints($caller, qr/^done/m);
	my $said = $caller->{stderr};
	$_->quit foreach $other, $caller;
	return $said;
}

foreach my $isolation ('read committed', 'repeatable read', 'serializable')
{
	my $database = $isolation =~ s/ /_/r;

	new_admin_database($database);
	value('postgres', "ALTER DATABASE $database SET default_transaction_isolation = '$isolation'");
	value($database, q{
		CREATE TABLE docs (id bigint PRIMARY KEY DEFAULT next_id(5), secret boolean);
		INSERT INTO docs (secret) SELECT n % 2 = 0 FROM generate_series(1, 100) AS n;
		GRANT SELECT ON docs TO reader;
		ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
		CREATE POLICY everything ON docs USING (true);
		CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TABLE wide (id serial PRIMARY KEY, n int, filler text DEFAULT repeat('x', 700));
		INSERT INTO wide (n) SELECT generate_series(1, 14000);
		CREATE TABLE moved (id bigserial PRIMARY KEY)});

	waits_for($database, q{
			CREATE POLICY no_secrets ON docs AS RESTRICTIVE USING (NOT secret);
			CREATE TRIGGER late BEFORE INSERT ON docs FOR EACH ROW EXECUTE FUNCTION nothing()},
		q{CALL snowflake_partition('docs', 'day', tries => 100)});
	holds($database, "$isolation: the table is partitioned" => q{relkind = 'p' FROM pg_class WHERE oid = 'docs'::regclass},
		"$isolation: ... with the trigger that was committed while the command waited" =>
		  q{EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'docs'::regclass AND tgname = 'late')});
	is(value($database, 'SET ROLE reader; SELECT count(*) FROM docs WHERE secret'), 0, "$isolation: ... and the policy");

	my $widen = q{CALL snowflake_widen('wide', 'id', pause => '0', tries => 100)};
	like(said($widen, $database), qr/need indexes/, "$isolation: a widening stops for its index");
	value($database, q{SELECT * FROM snowflake_widen_indexes('wide', 'id') \gexec});
	waits_for($database, 'CREATE UNIQUE INDEX late ON wide (n) WHERE id > 0', $widen);
	said($_, $database) foreach $widen, q{SELECT * FROM snowflake_widen_indexes('wide', 'id') \gexec}, $widen;
	holds($database,
		"$isolation: ... and does not lose a unique index that was committed while it waited for the table" =>
		  q{indisunique FROM pg_index WHERE indexrelid = to_regclass('late')},
		"$isolation: ... whatever it says" => q{format_type(atttypid, NULL) = 'bigint' FROM pg_attribute
			WHERE attrelid = 'wide'::regclass AND attname = 'id'});

	# Part of the caller's transaction, these cannot begin another one.
	my $move = q{CALL snowflake_move('moved', 5)};
	if ($isolation eq 'read committed')
	{
		succeeds($database, $move, "$isolation: a key moves");
	}
	else
	{
		like(run_psql($database, $move), qr/55000: snowflake_move\(\) cannot run in a transaction that is $isolation\n/,
			"$isolation: a key moves not in a transaction that does not see what others commit");
		succeeds($database, "BEGIN ISOLATION LEVEL READ COMMITTED; $move; COMMIT", "$isolation: ... but as the hint says");
	}
	like(said(q{CALL snowflake_move_back_schema('public')}, $database), qr/[1-9]\d* of \d+ tables done/,
		"$isolation: keys of a schema move back in any case");
}

# One command after another in a block, with names that the block's search_path finds
my $blocks = session($node, 'read_committed');
$blocks->query(q{
	CREATE SCHEMA shop;
	SET search_path = shop, public;
	CREATE TABLE days (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT next_id(5));
	CREATE TABLE narrow (id int PRIMARY KEY);
	CREATE TABLE notes (text text);
	CREATE SCHEMA keys;
	CREATE TABLE keys.moved (id bigserial PRIMARY KEY)});
my $commands = join ';', map { "CALL $_; INSERT INTO notes VALUES (current_setting('search_path'))" }
  q{snowflake_make_partitions('days', unit => 'day')}, q{snowflake_make_partitions('days', '5 days', dry_run => true)},
  q{snowflake_drop_partitions('days', '1 day')}, q{snowflake_renumber('days', 5, 6)},
  q{snowflake_renumber('days', 5, 6, dry_run => true)}, q{snowflake_move_schema('keys', 5)},
  q{snowflake_renumber_schema('keys', 5, 6)},
  q{snowflake_move_back_schema('keys')}, q{snowflake_partition('orders', 'day')}, q{snowflake_widen('narrow', 'id')},
  q{snowflake_widen('narrow', 'id', undo => true)};
$blocks->{stderr} = '';
$blocks->query("DO \$\$ BEGIN $commands; END \$\$");
unlike($blocks->{stderr}, qr/ERROR/, 'one command after another in a block');
is($blocks->query('SELECT DISTINCT text FROM notes'), 'shop, public', '... each with the search_path of its caller');
$blocks->quit;

my $said = ($node->psql('read_committed', '',
	extra_params => [ '-c', q{CALL snowflake_make_partitions('docs'); CALL snowflake_make_partitions('docs')} ]))[2];
like($said, qr/cannot run inside a transaction block\nHINT: .* not in one query string with another statement\./,
	'two commands in one query string are refused with what to do');

$node->stop;
done_testing();
