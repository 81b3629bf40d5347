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
	[ 'partition' => qr/^CALL \S+snowflake_partition\(/ ],
	[ 'DROP CONSTRAINT' => qr/^ALTER TABLE .* DROP CONSTRAINT snowflake_partition/ ],
	[ 'make_partitions' => qr/^CALL \S+snowflake_make_partitions\(/ ],
	[ 'set_shard, new' => qr/^SELECT \S+snowflake_set_shard\(.*no database uses/ ],
	[ 'set_shard, own' => qr/^SELECT \S+snowflake_set_shard\(/ ],
	[ 'advance' => qr/^SELECT \S+snowflake_advance\(/ ],
	[ 'alter_sequence' => qr/^SELECT \S+snowflake_alter_sequence\(/ ],
	[ 'ALTER SEQUENCE SET LOGGED' => qr/^ALTER SEQUENCE .* SET LOGGED/ ],
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

# The kind of a remedy.  That of a sentence is its words without names, numbers and times.
sub kind_of
{
	my ($remedy) = @_;
	return $remedy =~ s/snowflake_(\w+)\(\)/$1/gr =~ s/\d[-\d:.+ ]*|\w+[._(=']\S+//gr =~ s/\s+/ /gr =~ s/^ | $//gr unless is_statement($remedy);
	foreach (@statements) { return $_->[0] if $remedy =~ $_->[1]; }
	return "another statement: $remedy";
}

1;
