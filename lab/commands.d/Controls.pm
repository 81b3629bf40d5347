# lab/commands.d/Controls.pm
#	  Faults to plant: each changes functions of the snowflake_admin that is installed in a
#	  database, and is one that a round must find.

package Controls;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(%CONTROLS plant);

# For each rule, the command that it breaks, what of the world and the events is not left to chance,
# and what is replaced in the text of the one function that has it
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
		kind => 'widen', undo => 1, events => [qw(cancel cancel)],
		replace => [ [ 'SELECT 4, format(\'ALTER TABLE %s DROP %I\', rel, wide) FROM added',
			'SELECT 4, NULL FROM added WHERE false' ] ] },
	rows => {
		kind => 'widen', force => { special => 'row' },
		replace => [ [ 'WHERE atttypid IN (SELECT type FROM types_with_row_of(tab))', 'WHERE false' ] ] },
	default => {
		kind => 'move',
		replace => [ [ 'SET DEFAULT %s.next_id(%s)', 'SET DEFAULT 100 + 0 * %s.next_id(%s)' ] ] },
	beyond => {
		kind => 'move_back',
		replace => [ [ 'format(\'SELECT setval(%L::regclass, %s)\', sequence, ',
			'format(\'SELECT setval(%L::regclass, greatest(1, 0 * %s))\', sequence, ' ] ] },
	step => {
		kind => 'move_back',
		replace => [ [ 'target, key_col, sequence, id_step(layout))', 'target, key_col, sequence, 1)' ] ] },
	children => {
		kind => 'renumber',
		replace => [ [ 'format(\'(SELECT l.new FROM %s AS l WHERE l.old OPERATOR(pg_catalog.=) t.%I)\', list, name)',
			'format(CASE WHEN rel = tab THEN \'(SELECT l.new FROM %s AS l WHERE l.old OPERATOR(pg_catalog.=) t.%I)\' '
			  . 'ELSE \'(SELECT pg_catalog.min(l.new) FROM %s AS l WHERE t.%I IS NOT NULL)\' END, list, name)' ] ] },
	policies => {
		kind => 'partition',
		replace => [ [ "WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')')\n\tFROM pg_policy WHERE",
			"WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')')\n\tFROM pg_policy WHERE polcmd = '*' AND" ] ] },
	newest => {
		kind => 'drop_partitions', force => { former => 0, old_references => 0 },
		replace => [ [ 'WHERE upper_id <= stop', 'WHERE upper_id <= stop + (86400000::bigint << 23)' ] ] },
	pending => {
		kind => 'drop_partitions', force => { former => 0, old_references => 0 }, events => ['detach'],
		replace => [ [ 'IF is_pending THEN', 'IF false THEN' ],
			[ 'format(\'ALTER TABLE %s DETACH PARTITION %s\', parent, partition)',
				'format(\'ALTER TABLE %s DETACH PARTITION %s\', parent, partition) || CASE WHEN EXISTS (SELECT FROM pg_inherits '
				  . 'WHERE inhrelid = partition AND inhdetachpending) THEN \' FINALIZE\' ELSE \'\' END' ] ] },
	day => {
		kind => 'make_partitions',
		replace => [ [ 'ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)\', parent, partition, low, high)',
			'ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)\', parent, partition, low, high - 8388608)' ] ] });

# Plant a fault in the database of a session.
sub plant
{
	my ($session, $rule) = @_;

	foreach (@{ $CONTROLS{$rule}{replace} })
	{
		my ($what, $by) = @$_;
		my $result = $session->query(q{SELECT pg_get_functiondef(objid) FROM pg_depend
			WHERE classid = 'pg_proc'::regclass AND deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension
				WHERE extname = 'snowflake_admin')});
		my @texts = grep { index($_, $what) >= 0 } map { $_->[0] } @{ $result->{rows} };
		die "the rule $rule is in " . @texts . " functions: $what\n" unless @texts == 1;
		substr($texts[0], index($texts[0], $what), length $what) = $by;
		my $error = $session->query($texts[0])->{error};
		die "the rule $rule: $error->{message}\n" if $error;
	}
	return;
}

1;
