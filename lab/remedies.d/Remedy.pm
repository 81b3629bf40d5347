# lab/remedies.d/Remedy.pm
#	  The remedies that snowflake_check() shows, by kinds, so that a run can count them.
#
# Knows their words, and nothing of when they are right.

package Remedy;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(@REMEDIES kind_of is_statement);

# A kind's name, and the pattern of its remedies.  The first one that fits counts.
my @statements = (
	[ 'set_back, layout' => qr/^CALL \S+snowflake_set_back\(.*layout =>/ ],
	[ 'set_back, end_sessions' => qr/^CALL \S+snowflake_set_back\(.*end_sessions/ ],
	[ 'set_back' => qr/^CALL \S+snowflake_set_back\(/ ],
	[ 'renumber, new_shard' => qr/^CALL \S+snowflake_renumber\(.*new_shard/ ],
	[ 'renumber' => qr/^CALL \S+snowflake_renumber\(/ ],
	[ 'move, own_sequence' => qr/^CALL \S+snowflake_move\(.*own_sequence/ ],
	[ 'move' => qr/^CALL \S+snowflake_move\(/ ],
	[ 'widen' => qr/^CALL \S+snowflake_widen\(/ ],
	[ 'make_partitions' => qr/^CALL \S+snowflake_make_partitions\(/ ],
	[ 'set_shard, new' => qr/^SELECT \S+snowflake_set_shard\(.*no server uses/ ],
	[ 'set_shard, own' => qr/^SELECT \S+snowflake_set_shard\(/ ],
	[ 'advance' => qr/^SELECT \S+snowflake_advance\(/ ],
	[ 'alter_sequence' => qr/^SELECT \S+snowflake_alter_sequence\(/ ],
	[ 'ALTER SEQUENCE MAXVALUE' => qr/^ALTER SEQUENCE .* MAXVALUE/ ],
	[ 'ALTER SEQUENCE SET LOGGED' => qr/^ALTER SEQUENCE .* SET LOGGED/ ],
	[ 'SET DEFAULT next_id(N, sequence)' => qr/SET DEFAULT .*N::bigint/ ],
	[ 'SET DEFAULT of the parent' => qr/^ALTER TABLE (\S+) .*SET DEFAULT .*next_id\(.* of (?!\1\.)/s ],
	[ 'SET DEFAULT next_id()' => qr/SET DEFAULT .*next_id\(\)/ ],
	[ 'UPDATE' => qr/UPDATE .* = DEFAULT/ ],
	[ 'CREATE INDEX' => qr/^CREATE INDEX/ ],
	[ 'GRANT SELECT ON TABLE' => qr/^GRANT SELECT ON TABLE/ ],
	[ 'GRANT SELECT ON SEQUENCE' => qr/^GRANT SELECT ON SEQUENCE/ ],
	[ 'GRANT ON SEQUENCE' => qr/^GRANT (?:USAGE|UPDATE) ON SEQUENCE/ ],
	[ 'GRANT EXECUTE' => qr/^GRANT EXECUTE/ ],
	[ 'GRANT pg_read_all_stats' => qr/^GRANT pg_read_all_stats/ ],
	[ 'REVOKE CREATE' => qr/^REVOKE CREATE/ ],
	[ 'ALTER EXTENSION UPDATE' => qr/^ALTER EXTENSION/ ]);

our @REMEDIES = map { $_->[0] } @statements;

# A remedy is a statement, perhaps with a comment, or sentences.
sub is_statement { return $_[0] =~ /;(?: -- N is [^"]*)?$/ }

# The kind of a row's remedy.  That of a sentence is its words without names, numbers and times.
sub kind_of
{
	my ($row) = @_;
	my ($object, $remedy) = @$row{qw(object remedy)};
	return $remedy =~ s/\d[-\d:.+ ]*|(?<!^)\b[A-Z]\w*|\S+[._(=']\S*//gr =~ s/\s+/ /gr =~ s/^ | $//gr unless is_statement($remedy);
	foreach (@statements) { return $_->[0] if "$remedy of $object" =~ $_->[1]; }
	return "another statement: $remedy";
}

1;
