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
		my ($first) = $said =~ /HINT:  ((?:CALL|ALTER TABLE) .*?)(?: first[ ,.]| makes )/;
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

done_testing();
