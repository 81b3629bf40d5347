# While snowflake_alter_sequence() runs, its sequence's schema is renamed, and
# another schema gets its name.  ALTER SEQUENCE then finds another sequence by the
# name of the one that was checked.

use strict;
use warnings;
use Test::More;
use SnowflakeTest;

my $node = server_in_utc('renamed');
$node->safe_psql('postgres', 'CREATE DATABASE beside');
$node->safe_psql('beside', 'CREATE EXTENSION snowflake');

# Each ALTER SEQUENCE of a session waits for the lock on the table of its number,
# after the statement has been read and before it looks for the sequence.
$node->safe_psql('beside', q{
	CREATE TABLE before_1 ();
	CREATE TABLE before_2 ();
	CREATE TABLE before_3 ();
	CREATE FUNCTION wait_for_table() RETURNS event_trigger LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM set_config('test.alters', (current_setting('test.alters')::int + 1)::text, false);
		EXECUTE format('LOCK TABLE public.before_%s IN ACCESS SHARE MODE', current_setting('test.alters'));
	END $$;
	CREATE EVENT TRIGGER wait_for_table ON ddl_command_start WHEN TAG IN ('ALTER SEQUENCE') EXECUTE FUNCTION wait_for_table();
	ALTER DATABASE beside SET test.alters = 0});

# Rename the schemas when a call has come to its ALTER SEQUENCE of this number.
# "served": does the sequence that is named serve the layout already?  A column owns
# it, so that it has to be altered nevertheless.
sub is_refused
{
	my ($number, $served) = @_;
	my $what = 'the extension refuses to alter another sequence'
	  . ($number > 1 ? ', also later on' : '')
	  . ($served ? ' where the sequence serves already' : '');
	my $caller = $node->background_psql('beside', on_error_stop => 0);
	my $other = $node->background_psql('beside');
	my $sequences = q{SELECT string_agg(concat_ws(' ', nspname, seqmax, refobjid::regclass), ', ' ORDER BY nspname)
		FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid JOIN pg_namespace n ON n.oid = relnamespace
		     LEFT JOIN pg_depend ON objid = seqrelid AND deptype = 'a'
		WHERE relname = 'items_id_seq'};

	$other->query_safe('CREATE SCHEMA a CREATE TABLE items (id serial); CREATE SCHEMA b CREATE TABLE items (id serial)');
	$other->query_safe("SELECT snowflake_alter_sequence('a.items_id_seq'); ALTER SEQUENCE a.items_id_seq OWNED BY a.items.id") if $served;
	my $before = $other->query_safe($sequences);
	$other->query_safe("BEGIN; LOCK TABLE before_$number");
	send_sql($caller, "\\set VERBOSITY verbose\nSELECT snowflake_alter_sequence('a.items_id_seq');\n\\echo done");
	$node->poll_query_until('beside', q{SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)})
	  or die 'the call does not wait';
	$other->query_safe('ALTER SCHEMA a RENAME TO c; ALTER SCHEMA b RENAME TO a; COMMIT');
	session_prints($caller, qr/done/);
	like("$caller->{stdout}$caller->{stderr}", qr/ERROR:  40001: could not alter sequence "items_id_seq" because of a concurrent change/, $what);
	$other->query_safe('ALTER SCHEMA a RENAME TO b; ALTER SCHEMA c RENAME TO a');
	is($other->query_safe($sequences), $before, "$what, and alters none");
	$node->safe_psql('beside', 'DROP SCHEMA a, b CASCADE');
	$_->quit foreach $caller, $other;
	return;
}

is_refused(1);
is_refused(1, 'served');

$node->stop;
done_testing();
