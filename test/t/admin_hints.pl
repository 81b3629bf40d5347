# Where a command refuses a table, its hint says what to do first.  Obeyed to the letter, hint after
# hint, the command ends.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('hints', 'app');

# Run a command and, while it fails, the command of its hint.  Returns all that was run, in the
# order in which it succeeded.
sub obey
{
	my ($command, $depth) = @_;
	my @done;

	foreach (0 .. 9)
	{
		my ($status, undef, $said) = $node->psql('app', $command);
		return (@done, $command) if $status == 0;
		my ($first) = $said =~ /HINT:  (?:First: )?((?:CALL|ALTER TABLE) .*?)(?: first[ ,.]| changes |, or to give up)/;
		die "$command: $said" unless $first && ($depth // 0) < 9;
		push @done, obey($first, ($depth // 0) + 1);
	}
	die "$command: a hint leads in a circle: " . join '; ', @done;
}

# The first word or two of each of these commands, as a way to be read
sub way { return join ', ', map { /^CALL (?:public\.)?snowflake_(\w+)/ ? $1 : /(TYPE \w+)/ ? $1 : $_ } @_ }

# --- a key of a domain, which neither a partition key nor an identity can be --------------

$node->safe_psql('app', q{
	SELECT snowflake_set_shard(5);
	CREATE DOMAIN positive AS bigint CHECK (VALUE > 0);
	CREATE DOMAIN id AS positive DEFAULT next_id(5);
	CREATE SEQUENCE numbers;
	CREATE DOMAIN small AS integer;
	CREATE DOMAIN number AS small;
	CREATE TABLE plain (id positive PRIMARY KEY DEFAULT next_id(5));
	CREATE TABLE of_domain (id id PRIMARY KEY);
	CREATE TABLE back (id id PRIMARY KEY);
	CREATE TABLE narrow (id number PRIMARY KEY DEFAULT nextval('numbers'), n int)});
is(way(obey(q{CALL snowflake_partition('plain', 'day')})), 'TYPE bigint, partition', 'a key of a domain is partitioned');
is(way(obey(q{CALL snowflake_partition('of_domain', 'day')})), 'TYPE bigint, partition',
	'... also with the default of a domain of a domain');
is(way(obey(q{CALL snowflake_move_back('back')})), 'TYPE bigint, move_back', '... or moved back');
is(way(obey(q{CALL snowflake_partition('narrow', 'day')})), 'TYPE integer, widen, move, partition',
	'... or widened and moved before');
is($node->safe_psql('app', q{
		INSERT INTO plain DEFAULT VALUES;
		INSERT INTO of_domain DEFAULT VALUES;
		INSERT INTO back DEFAULT VALUES;
		INSERT INTO narrow DEFAULT VALUES;
		SELECT string_agg(snowflake_shard(id)::text, ' ') FROM (
			TABLE plain UNION ALL TABLE of_domain UNION ALL TABLE back UNION ALL SELECT id FROM narrow) AS ids}),
	'5 5 5 5', '... and all get IDs of this shard');

# --- a column that is being widened with the key to which it refers ------------------------

$node->safe_psql('app', q{
	CREATE TABLE users (id integer PRIMARY KEY);
	CREATE TABLE orders (id integer PRIMARY KEY, user_id integer REFERENCES users);
	CREATE FUNCTION interrupt() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'interrupted'; END $$;
	CREATE EVENT TRIGGER interrupt ON ddl_command_start WHEN TAG IN ('DROP TRIGGER') EXECUTE FUNCTION interrupt()});
like(said(q{CALL snowflake_widen('users', 'id')}), qr/ERROR:  interrupted/, 'all steps but the last one are done');
$node->safe_psql('app', 'DROP EVENT TRIGGER interrupt');
is(join('; ', obey(q{CALL snowflake_widen('orders', 'user_id')})),
	q{CALL public.snowflake_widen('public.users'::regclass, 'id'::name); CALL snowflake_widen('orders', 'user_id')},
	'who widens a column that refers to such a key is told to end that first');
is($node->safe_psql('app', q{SELECT format_type(atttypid, NULL) FROM pg_attribute
		WHERE attrelid = 'orders'::regclass AND attname = 'user_id'}), 'bigint', '... and both are bigint then');

done_testing();
