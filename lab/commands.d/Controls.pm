# lab/commands.d/Controls.pm
#	  Faults to plant: each changes functions of the snowflake_admin that is installed in a
#	  database, and is one that a round must find.

package Controls;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(%CONTROLS plant);

# For each rule, the command that it breaks, where several calls are needed what must happen, and
# what is replaced in the text of the one function that has it
our %CONTROLS = (
	trigger => {
		kind => 'widen',
		replace => [
			[ 'BEGIN NEW.%I := NEW.%I; RETURN NEW; END',
				'BEGIN IF TG_OP = \'\'INSERT\'\' THEN NEW.%I := NEW.%I; END IF; RETURN NEW; END' ],
			[ 'CHECK (%1$I IS NOT NULL AND %1$I = %2$I)', 'CHECK (%1$I IS NOT NULL OR %2$I IS NULL)' ],
			[ 'CHECK (%1$I IS NOT DISTINCT FROM %2$I)', 'CHECK (%1$I IS NULL OR %1$I IS NOT DISTINCT FROM %1$I)' ],
			[ 'format(\'CHECK (((%1$I IS NOT NULL) AND (%1$I = %2$I)))\', wide, narrow)',
				'regexp_replace(pg_get_constraintdef(oid), \' NOT VALID$\', \'\')' ],
			# The load would make such rows again and again.
			[ 'EXIT WHEN NOT left_over', 'EXIT' ] ] },
	undo => {
		kind => 'widen', undo => 1,
		replace => [ [ 'SELECT 4, format(\'ALTER TABLE %s DROP %I\', rel, wide) FROM added', 'SELECT 4, NULL FROM added WHERE false' ] ] },
	default => {
		kind => 'move',
		replace => [ [ 'SET DEFAULT %s.next_id(%s)', 'SET DEFAULT 100 + 0 * %s.next_id(%s)' ] ] },
	beyond => {
		kind => 'move_back',
		replace => [ [ 'format(\'SELECT setval(%L::regclass, %s)\', sequence, ', 'format(\'SELECT setval(%L::regclass, greatest(1, 0 * %s))\', sequence, ' ] ] },
	children => {
		kind => 'renumber',
		replace => [ [ 'format(\'(SELECT l.new FROM %s AS l WHERE l.old OPERATOR(pg_catalog.=) t.%I)\', list, name)',
			'format(CASE WHEN rel = tab THEN \'(SELECT l.new FROM %s AS l WHERE l.old OPERATOR(pg_catalog.=) t.%I)\' '
			  . 'ELSE \'(SELECT pg_catalog.min(l.new) FROM %s AS l WHERE t.%I IS NOT NULL)\' END, list, name)' ] ] },
	policies => {
		kind => 'partition',
		replace => [ [ 'FROM pg_policy WHERE polrelid = target', 'FROM pg_policy WHERE polrelid = target AND polcmd = \'*\'' ] ] },
	newest => {
		kind => 'drop_partitions',
		replace => [ [ 'WHERE upper_id <= stop', 'WHERE upper_id <= stop + (86400000::bigint << 23)' ] ] },
	day => {
		kind => 'make_partitions',
		replace => [ [ 'FOR VALUES FROM (%s) TO (%s)', 'FOR VALUES FROM (%s) TO (%s - 8388608)' ] ] });

# Plant a fault in the database of a session.
sub plant
{
	my ($session, $rule) = @_;

	foreach (@{ $CONTROLS{$rule}{replace} })
	{
		my ($what, $by) = @$_;
		my $result = $session->query(q{SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'snowflake_admin'::regnamespace});
		my @texts = grep { index($_, $what) >= 0 } map { $_->[0] } @{ $result->{rows} };
		die "the rule $rule is in " . @texts . " functions: $what\n" unless @texts == 1;
		substr($texts[0], index($texts[0], $what), length $what) = $by;
		my $error = $session->query($texts[0])->{error};
		die "the rule $rule: $error->{message}\n" if $error;
	}
	return;
}

1;
