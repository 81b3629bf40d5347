# lab/commands.d/Controls.pm
#	  Faults to plant: each changes functions of the snowflake_admin that is installed in a
#	  database, and is one that a round must find.

package Controls;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(%CONTROLS plant);

# For each rule, the command that it breaks, the faults of which one must be found, what of the world
# and the events is not left to chance, and what is replaced in the text of the one function that has it
our %CONTROLS = (
	trigger => {
		kind => 'widen', shows => qr/^(rows|errors of clients)/,
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
		kind => 'widen', shows => qr/^helpers /, undo => 1, events => [qw(cancel cancel)],
		replace => [ [ 'SELECT 4, format(\'ALTER TABLE %s DROP %I\', rel, wide) FROM added',
			'SELECT 4, NULL FROM added WHERE false' ] ] },
	rows => {
		kind => 'widen', shows => qr/^stored rows /, force => { special => 'row' },
		replace => [ [ 'WHERE c.relkind IN (\'r\', \'p\', \'m\', \'i\', \'I\') AND', 'WHERE false AND' ] ] },
	published => {
		kind => 'widen', shows => qr/^rows that a subscriber /, force => { subscriber => 1 },
		replace => [ [ 'FROM t WHERE published IS NOT TRUE', 'FROM t WHERE false' ] ] },
	full => {
		kind => 'widen', shows => qr/^rows that a subscriber /, force => { subscriber => 'full' },
		replace => [ [ 'FROM t WHERE relreplident = \'f\'', 'FROM t WHERE false' ] ] },
	names => {
		kind => 'widen', shows => qr/^helpers /, force => { big => 1 }, events => [ ('dump and restore') x 2 ],
		replace => [
			[ 'with_suffix((\'snowflake_widen_\' || relname)::name, \'_\' || a.attnum)',
				'\'snowflake_widen_\' || tab::oid || \'_\' || a.attnum' ],
			[ 'WHERE tgrelid = tab AND tgtype = 23',
				'WHERE tgrelid = tab AND starts_with(proname, \'snowflake_widen_\' || tab::oid) AND tgtype = 23' ] ] },
	grants => {
		kind => 'widen', shows => qr/^differences /,
		force => { big => 0 }, at => 'swap', events => [ ('reader', 'change', 'change') x 3 ], changes => qr/^GRANT SELECT \(/,
		replace => [ [ 'SELECT string_agg(line, E\'\n\' ORDER BY line COLLATE "C") FROM (', 'SELECT NULL::text FROM (' ] ] },
	default => {
		kind => 'move', shows => qr/^(errors of clients|next keys)/,
		replace => [ [ 'SET DEFAULT %s.next_id(%s)', 'SET DEFAULT 100 + 0 * %s.next_id(%s)' ] ] },
	block => {
		kind => 'move', shows => qr/^transaction blocks /, force => { block => 1 },
		replace => [ [ 'WHEN in_block THEN 3', 'WHEN in_block THEN 30' ] ] },
	beyond => {
		kind => 'move_back', shows => qr/^(errors of clients|next keys)/,
		replace => [ [ 'format(\'SELECT setval(%L::regclass, %s)\', sequence,',
			'format(\'SELECT setval(%L::regclass, greatest(1, 0 * (%s)))\', sequence,' ] ] },
	step => {
		kind => 'move_back', shows => qr/^next keys that are IDs of another shard/,
		replace => [ [ 'target, key_col, sequence, id_step(layout))', 'target, key_col, sequence, 1)' ] ] },
	children => {
		kind => 'renumber', shows => qr/^rows that refer /,
		replace => [ [ 'format(\'(SELECT l.new FROM %s AS l WHERE l.old OPERATOR(pg_catalog.=) t.%I)\', list, name)',
			'format(CASE WHEN rel = tab THEN \'(SELECT l.new FROM %s AS l WHERE l.old OPERATOR(pg_catalog.=) t.%I)\' '
			  . 'ELSE \'(SELECT pg_catalog.min(l.new) FROM %s AS l WHERE t.%I IS NOT NULL)\' END, list, name)' ] ] },
	isolation => {
		kind => 'partition', shows => qr/^differences /, options => '-c default_transaction_isolation=repeatable\\ read',
		events => [ ('change') x 6 ], changes => qr/^CREATE (POLICY|TRIGGER)/,
		replace => [ [ 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED;', '' ],
			[ 'PERFORM require_read_committed(\'snowflake_admin.attach_before()\');', '' ] ] },
	check => {
		kind => 'partition', shows => qr/^rows of a later day /, events => [ ('cancel', 'terminate') x 3 ],
		replace => [
			[ 'CHECK (%I < snowflake_admin.partition_limit()) NOT VALID\', target, id.col)',
				'CHECK (%I < %s) NOT VALID\', target, id.col, bound)' ],
			[ "\n\t\tAND replace(translate(pg_get_expr(conbin, conrelid), '()', ''), '::bigint', '')\n"
			  . "\t\t\t= translate(format('%I < partition_limit', attname), '()', '')", '' ] ] },
	pair => {
		kind => 'partition', shows => qr/^helpers /, force => { other => 'snowflake_move_back' },
		events => [ 'cancel', 'other command', 'cancel', 'other command' ],
		replace => [ [ 'WHERE require_no_other.command = ANY (bars)', 'WHERE false' ] ] },
	policies => {
		kind => 'partition', shows => qr/^(lost by|differences) /, force => { policies => 1 },
		replace => [ [ "WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')')\n\tFROM pg_policy WHERE",
			"WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')')\n\tFROM pg_policy WHERE polcmd = '*' AND" ] ] },
	newest => {
		kind => 'drop_partitions', shows => qr/^rows that are lost/, force => { former => 0, old_references => 0 },
		replace => [ [ 'old.upper_id <= old_partitions.stop',
			'old.upper_id <= old_partitions.stop + (86400000::bigint << 23)' ] ] },
	pending => {
		kind => 'drop_partitions', shows => qr/ detached /, force => { former => 0, old_references => 0 },
		events => ['detach'],
		replace => [ [ 'ELSIF old.pending THEN', 'ELSIF false THEN' ],
			[ 'format(\'ALTER TABLE %s DETACH PARTITION %s\', parent, partition)',
				'(format(\'ALTER TABLE %s DETACH PARTITION %s\', parent, partition) || CASE WHEN EXISTS (SELECT FROM pg_inherits '
				  . 'WHERE inhrelid = partition AND inhdetachpending) THEN \' FINALIZE\' ELSE \'\' END)' ] ] },
	day => {
		kind => 'make_partitions', shows => qr/^gaps /,
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
