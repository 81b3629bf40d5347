# The extension is dropped while a statement runs that is about to call next_id().
#
# Nothing locks a function that a statement calls.  Arguments of EXECUTE are
# expressions without a query, where the planner puts another function in the place
# of next_id().

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('dropped_function');
$node->safe_psql('postgres', q{
	CREATE TABLE gate ();
	CREATE FUNCTION wait_at_gate() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM FROM gate; RETURN 1; END $$});

# Drop the extension while a statement waits at the gate.
sub fails_without_extension
{
	my ($statement, $error, $name) = @_;
	my $caller = $node->background_psql('postgres', on_error_stop => 0);
	my $other = $node->background_psql('postgres');

	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	$caller->query_safe(q{
		PREPARE larger (bigint, bigint) AS SELECT $1 > $2;
		SET snowflake.shard = 5;
		SELECT next_id(5), next_id()});
	$other->query_safe('BEGIN; LOCK TABLE gate');
	send_sql($caller, "\\set VERBOSITY verbose\n$statement;\n\\echo done");
	$node->poll_query_until('postgres', 'SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)')
	  or die 'the statement does not wait';
	$other->query_safe('DROP EXTENSION snowflake; COMMIT');
	session_prints($caller, qr/done/);
	like($caller->{stderr}, $error, $name);
	$_->quit foreach $caller, $other;
	return;
}

my $no_function = qr/ERROR:  42883: function with OID \d+ does not exist/;
my $no_sequence = qr/ERROR:  42P01: sequence (with OID \d+|"next_id_seq" of extension "snowflake") does not exist/;
fails_without_extension('EXECUTE larger (wait_at_gate(), next_id(5))', $no_function,
	'next_id(5) in an argument of EXECUTE says that it has been dropped');
fails_without_extension('EXECUTE larger (wait_at_gate(), next_id())', $no_function,
	'next_id() in an argument of EXECUTE says that it has been dropped');
fails_without_extension('SELECT wait_at_gate(), next_id(5)', $no_sequence,
	'next_id(5) in a query says that its sequence has been dropped');
fails_without_extension('SELECT wait_at_gate(), next_id()', $no_sequence,
	'next_id() in a query says that its sequence has been dropped');

$node->stop;
done_testing();
