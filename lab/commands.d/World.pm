# lab/commands.d/World.pm
#	  A random schema for a command: tables that refer to each other, with keys, columns,
#	  indexes, triggers, policies, privileges and names of all kinds, their first rows, the
#	  call itself, and what others may change meanwhile.
#
# Perl's random numbers decide, so the same seed makes the same world.  In each table, a row
# has a token, which no command changes and by which clients and the ledger know it.
#
# Knows SQL, and nothing of sessions, or of what happens to the server.

package World;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(one_of chance quoted literal @KINDS);

our @KINDS = qw(widen move move_back renumber partition make_partitions drop_partitions);

sub one_of { return $_[ rand @_ ] }

sub chance { return rand() < $_[0] }

sub quoted { my ($name) = @_; return '"' . $name =~ s/"/""/gr . '"' }

sub literal { my ($text) = @_; return defined $text ? "'" . $text =~ s/'/''/gr . "'" : 'NULL' }

my @schemas = ('app', 'My App', 'select', 'a"b', "it's", 'x.y');
my @tables = ('photos', 'Order Items', 'user', 'o"brien', "d'arc", 'a.b', 'two  spaces', 'long' x 15, 'begin;', '%I %s',
	'Zeile', 't$1');
my @columns = ('id', 'Id', 'order', 'k"q', "it's", 'a.b', 'new', 'old', 'tab', 'col', 'key', '%s');

# The roles of all worlds, which a server needs once
sub roles { return map { "CREATE ROLE $_" } quoted('lab owner') . ' LOGIN', 'lab_app LOGIN', quoted('Lab "reader"'),
	'lab_other' }

my @grantees = (quoted('Lab "reader"'), 'lab_other', 'PUBLIC');

my %makers = (
	widen => [qw(serial always default nextval none)],
	move => [qw(serial always default)],
	move_back => [qw(next_id own)],
	renumber => [qw(next_id)],
	partition => [qw(next_id own)],
	make_partitions => [qw(next_id)],
	drop_partitions => [qw(next_id)]);

# A world in which a command of a kind is to be called, with "force" for what is not left to chance
sub new
{
	my ($class, $kind, %force) = @_;
	my $self = bless { kind => $kind, names => {}, tables => [], sql => [], number => 0 }, $class;

	$self->{schema_name} = one_of(@schemas);
	$self->{schema} = quoted($self->{schema_name});
	$self->{policies} = $force{policies};
	$self->{big} = $force{big} // ($kind eq 'widen' && chance(0.12));
	if ($kind eq 'drop_partitions')
	{
		# Whether other rows refer to old ones, and whether the oldest partition was a table before
		$self->{old_references} = $force{old_references} // chance(0.5);
		$self->{former} = $force{former} // chance(0.4);
	}
	# First rows of each table
	$self->{rows} = $self->{big} ? 14_000 : one_of(40, 200, 500);
	$self->_add("CREATE SCHEMA $self->{schema} AUTHORIZATION \"lab owner\"",
		"GRANT USAGE ON SCHEMA $self->{schema} TO PUBLIC",
		'CREATE SCHEMA lab', 'GRANT USAGE ON SCHEMA lab TO PUBLIC',
		'CREATE TABLE lab.tx (client integer, number integer, PRIMARY KEY (client, number))',
			'GRANT ALL ON lab.tx TO PUBLIC',
		'CREATE SEQUENCE lab.keys START 30000 MAXVALUE 32767', 'GRANT ALL ON SEQUENCE lab.keys TO PUBLIC',
		q{CREATE FUNCTION lab.same() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'},
		q{CREATE FUNCTION lab.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'},
		q{CREATE FUNCTION lab.event() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RETURN; END'},
		'CREATE DOMAIN lab.big AS bigint',
		# Without it, only a superuser can widen tables with triggers.
		(chance(0.8) ? 'GRANT SET ON PARAMETER session_replication_role TO' : 'REVOKE SET ON PARAMETER session_replication_role FROM')
			. ' "lab owner"', 'SELECT snowflake_set_shard(7)');
	my @makers = @{ $makers{$kind} };
	$self->_table(one_of(@makers), 1);
	$self->_table(one_of(qw(serial next_id default)), 0) foreach 1 .. one_of(1, 1, 2, 3);
	$self->_references;
	$self->_create;
	$self->_first_rows;
	$self->_decorate($_) foreach @{ $self->{tables} };
	$self->{subscriber} = $force{subscriber} // chance(0.12);
	$self->_publish if $self->{subscriber};
	$self->_special($force{special}) if $force{special} || chance(0.1) && !$self->{subscriber};
	$self->_call;
	$self->_call_in_block if $kind =~ /^move/ && ($force{block} || chance(0.2));
	$self->_other_call($force{other}) if $force{other} || chance(0.4);
	$self->_add(map { "CREATE EVENT TRIGGER lab_$_ ON $_ EXECUTE FUNCTION lab.event()" } qw(ddl_command_end sql_drop))
		if chance(0.1);
	return $self;
}

sub _add { my ($self, @sql) = @_; push @{ $self->{sql} }, @sql; return }

# A name that no other object of the world has
sub _name
{
	my ($self, @names) = @_;
	my $name = one_of(@names);
	$name = substr($name, 0, 55) . ++$self->{number} while $self->{names}{$name}++;
	return $name;
}

sub _table
{
	my ($self, $maker, $is_target) = @_;
	my $type = $maker eq 'next_id' ? one_of(('bigint') x 6, 'snowflake', 'snowflake', 'lab.big')
	  : !$is_target ? { serial => one_of(qw(integer bigint)), default => 'bigint' }->{$maker}
	  : $self->{kind} eq 'widen' ? ($self->{big} ? 'integer' : one_of(qw(integer integer smallint))) : 'bigint';
	my $name = $self->_name(@tables);

	push @{ $self->{tables} }, { number => scalar @{ $self->{tables} }, name => $name, full => "$self->{schema}."
		. quoted($name),
		key => one_of(@columns), type => $type, maker => $maker, references => [] };
	return;
}

# Later tables refer to earlier ones, tables to themselves, and at times the first to a later one.
sub _references
{
	my ($self) = @_;
	my @tables = @{ $self->{tables} };

	if ($self->{old_references})
	{
		$self->_refer($_, $tables[ chance(0.7) ? 0 : rand $_->{number} ], one_of('CASCADE', 'SET NULL'))
			foreach @tables[ 1 .. $#tables ];
		return;
	}
	foreach my $table (@tables[ 1 .. $#tables ])
	{
		$self->_refer($table, $tables[0]) if $table->{number} == 1 || chance(0.6);
		$self->_refer($table, $tables[ rand $table->{number} ]) if chance(0.5);
	}
	$self->_refer($tables[0], $tables[0]) if chance(0.4);
	$self->_refer($tables[0], $tables[-1]) if chance(0.25);
	return;
}

sub _refer
{
	my ($self, $from, $to, $action) = @_;

	push @{ $from->{references} }, { column => "of$to->{number}_" . @{ $from->{references} } . one_of('', ' x', '"'),
		to => $to,
		action => $action // one_of(('NO ACTION') x 2, 'CASCADE', 'CASCADE', 'SET NULL', 'RESTRICT'),
		deferrable => one_of('', '', ' DEFERRABLE', ' DEFERRABLE INITIALLY DEFERRED'),
		composite => $self->{kind} =~ /^(widen|move|move_back|renumber)$/ && chance(0.2),
		update => $self->{kind} eq 'widen' && chance(0.1) ? ' ON UPDATE CASCADE' : '' };
	return;
}

sub _key
{
	my ($self, $table) = @_;
	my $key = quoted($table->{key});
	my %short = (smallint => 'smallserial', integer => 'serial', bigint => 'bigserial');
	my %columns = (
		serial => "$key " . ($short{$table->{type}} // ''),
		always => "$key $table->{type} GENERATED ALWAYS AS IDENTITY",
		default => "$key $table->{type} GENERATED BY DEFAULT AS IDENTITY",
		nextval => "$key $table->{type} DEFAULT nextval('lab.numbers$table->{number}')",
		none => "$key $table->{type}",
		next_id => "$key $table->{type} DEFAULT next_id(7)",
		own => "$key bigserial");
	$self->_add("CREATE SEQUENCE lab.numbers$table->{number}",
		"GRANT ALL ON SEQUENCE lab.numbers$table->{number} TO PUBLIC",
		"ALTER SEQUENCE lab.numbers$table->{number} OWNER TO \"lab owner\"") if $table->{maker} eq 'nextval';
	return $columns{$table->{maker}};
}

sub _create
{
	my ($self) = @_;
	my $partitioned = $self->{kind} =~ /_partitions$/;

	foreach my $table (@{ $self->{tables} })
	{
		my $key = quoted($table->{key});
		my $part = $partitioned && $table->{number} == 0;
		my @columns = ($self->_key($table), 'token text NOT NULL', 'n integer NOT NULL DEFAULT 0',
			'tenant integer NOT NULL DEFAULT 1',
			"pad text DEFAULT repeat('x', " . ($self->{big} && $table->{number} == 0 ? 700 : one_of(0, 10, 100)) . ')',
			map { quoted($_->{column}) . " $_->{to}{type}" } @{ $table->{references} });
		# Since 18, publications leave such a column out, and a replica identity may not have it.
		$table->{generated} = chance(0.3) && !$self->{subscriber};
		push @columns, 'twice integer GENERATED ALWAYS AS (n * 2) STORED' if $table->{generated};
		push @columns, 'counted bigint GENERATED ALWAYS AS IDENTITY' if !$part && chance(0.2);
		@columns = reverse @columns if chance(0.3);
		$self->_add("CREATE TABLE $table->{full} (" . join(', ', @columns, "PRIMARY KEY ($key)",
			chance(0.3) ? 'CHECK (n > -1000000)' : (), chance(0.3) ? "CHECK ($key <> -5)" : ()) . ')' . ($part
				? " PARTITION BY RANGE ($key)" : ''));
		$self->_add("ALTER TABLE $table->{full} OWNER TO \"lab owner\"",
			"GRANT SELECT, INSERT, UPDATE, DELETE ON $table->{full} TO lab_app",
			"CREATE INDEX ON $table->{full} (token)");
		if ($table->{maker} =~ /^(serial|own)$/)
		{
			$self->_add('DO $$ BEGIN EXECUTE format(\'GRANT USAGE ON SEQUENCE %s TO lab_app\', pg_get_serial_sequence('
				  . literal($table->{full}) . ', ' . literal($table->{key}) . ')); END $$');
		}
	}
	foreach my $table (@{ $self->{tables} })
	{
		foreach my $reference (@{ $table->{references} })
		{
			my ($to, $column) = ($reference->{to}, quoted($reference->{column}));
			my $key = quoted($to->{key});
			$self->_add("ALTER TABLE $to->{full} ADD UNIQUE (tenant, $key)") if $reference->{composite}
				&& !$to->{composite}++;
			$self->_add("ALTER TABLE $table->{full} ADD FOREIGN KEY (" . ($reference->{composite} ? 'tenant, ' : '')
				. "$column) REFERENCES $to->{full} ("
				  . ($reference->{composite} ? 'tenant, ' : '')
					. "$key)$reference->{update} ON DELETE $reference->{action}"
				  . ($reference->{composite} && $reference->{action} eq 'SET NULL' ? " ($column)" : '')
					. $reference->{deferrable},
				"CREATE INDEX ON $table->{full} ($column)");
		}
	}
	return;
}

# The first rows, which refer to first rows, and which no client deletes
sub _first_rows
{
	my ($self) = @_;
	my $rows = $self->{rows};

	$self->_partition_for_first_rows if $self->{kind} =~ /_partitions$/;
	foreach my $table (@{ $self->{tables} })
	{
		my $key = quoted($table->{key});
		my $number = $table->{number};
		my $count = $number == 0 ? $rows : one_of(20, $rows);
		# Old IDs: those of shard 5 that are to be renumbered, or of many days
		my $ids = $number > 0 ? '' : $self->{kind} eq 'renumber'
			? "snowflake_id(now() - g * interval '1 minute', 5, g % 1000)"
		  : $self->{kind} =~ /_partitions$/ ? "snowflake_id(now() - (g % 5) * interval '1 day', 7, g % 1000)"
		  : $self->{kind} eq 'move_back' && $table->{maker} eq 'next_id' && chance(0.5)
			? "snowflake_id(now() - g * interval '1 s', g % 20, g % 1000)" : '';
		# Numbers of a former serial
		$ids = "CASE WHEN g % 10 = 3 THEN g ELSE $ids END" if $self->{former} && $number == 0;
		$ids = "(g + 100)::$table->{type}" if $table->{maker} eq 'none';
		my @references = grep { $_->{to}{number} < $number } @{ $table->{references} };
		my $columns = join ', ', 'token', 'n', $ids ? $key : (), map { quoted($_->{column}) } @references;
		my $values = join ', ', "'0-' || g", 'g', $ids || (), map {
			my $to = $_->{to};
			my $first = $self->{kind} eq 'drop_partitions' && $to->{number} == 0 && !$self->{old_references} ? 'g * 5'
				: 'g';
			"(SELECT p." . quoted($to->{key})
				. " FROM $to->{full} AS p WHERE p.token = '0-' || (1 + $first % $to->{count}))"
		} @references;
		$table->{count} = $count;
		$self->_add("INSERT INTO $table->{full} ($columns) SELECT $values FROM generate_series(1, $count) AS g");
	}
	foreach my $table (@{ $self->{tables} })
	{
		foreach my $reference (grep { $_->{to}{number} >= $table->{number} } @{ $table->{references} })
		{
			my ($to, $column) = ($reference->{to}, quoted($reference->{column}));
			my $last = $self->{kind} eq 'drop_partitions' ? 'n * 5' : 'n * 3';
			$self->_add("UPDATE $table->{full} AS t SET $column = (SELECT p." . quoted($to->{key})
				  . " FROM $to->{full} AS p WHERE p.token = '0-' || (1 + (t.$last) % $to->{count})) WHERE n % 4 <> 0");
		}
	}
	return;
}

# Indexes, triggers, policies, privileges, comments, publications of a table
sub _decorate
{
	my ($self, $table) = @_;
	my ($full, $key) = ($table->{full}, quoted($table->{key}));
	my $trigger = sub { return "CREATE TRIGGER " . quoted($self->_name(qw(before Trigger a_trigger)))
		. " $_[0] EXECUTE FUNCTION $_[1]()" };
	my @options = (
		"CREATE INDEX ON $full (n, $key DESC)", "CREATE INDEX ON $full ($key) WHERE n > 5",
			"CREATE INDEX ON $full (($key % 10))",
		"CREATE INDEX ON $full USING hash ($key)", "CREATE INDEX ON $full USING brin ($key)",
			"CREATE INDEX ON $full (n) INCLUDE ($key)",
		"CREATE UNIQUE INDEX ON $full ($key, n)", "CREATE INDEX ON $full (lower(token))",
		$trigger->("BEFORE INSERT OR UPDATE ON $full FOR EACH ROW", 'lab.same'),
		$trigger->("AFTER INSERT OR DELETE ON $full FOR EACH STATEMENT", 'lab.nothing'),
		$trigger->("AFTER UPDATE ON $full FOR EACH ROW WHEN (NEW.n > 10)", 'lab.nothing'),
		"GRANT SELECT ON $full TO \"Lab \"\"reader\"\"\"", "GRANT ALL ON $full TO lab_other",
			"GRANT UPDATE ($key, n) ON $full TO lab_other",
		"GRANT REFERENCES ON $full TO lab_other WITH GRANT OPTION", "COMMENT ON TABLE $full IS 'it''s a table'",
		"COMMENT ON COLUMN $full.$key IS 'the key'", "ALTER TABLE $full ALTER $key SET STATISTICS 77",
			"ALTER TABLE $full ALTER n SET STATISTICS 55",
		"ALTER TABLE $full ALTER $key SET (n_distinct = -1)", "ALTER TABLE $full ALTER token SET STORAGE EXTERNAL");
	my $publication = quoted($self->_name('pub', 'Pub'));
	my $statistics = "$self->{schema}." . quoted($self->_name('stats', 'Stats'));
	push @options, "CREATE STATISTICS $statistics ON n, tenant FROM $full"
		. (chance(0.9) ? "; ALTER STATISTICS $statistics OWNER TO \"lab owner\"" : ''),
	  "CREATE PUBLICATION $publication FOR TABLE $full WITH (publish_via_partition_root = true); ALTER PUBLICATION $publication OWNER TO \"lab owner\"";
	# What widen refuses
	push @options, "ALTER TABLE $full ADD UNIQUE ($key, token) DEFERRABLE" unless $self->{kind} eq 'widen';
	push @options, "ALTER TABLE $full REPLICA IDENTITY FULL" unless $self->{kind} eq 'widen' || $table->{generated};
	push @options, "ALTER TABLE $full SET (fillfactor = 70, autovacuum_analyze_threshold = 77)",
	  "CREATE INDEX named_$table->{number} ON $full ((n + 1)); ALTER INDEX $self->{schema}.named_$table->{number} ALTER COLUMN 1 SET STATISTICS 44"
	  unless $self->{kind} =~ /_partitions$/ && $table->{number} == 0;
	push @options, "ALTER TABLE $full ENABLE ROW LEVEL SECURITY; CREATE POLICY everything ON $full USING (true); "
	  . "CREATE POLICY \"some rows\" ON $full AS RESTRICTIVE FOR SELECT TO lab_other USING (n > 3)"
		unless $self->{kind} eq 'drop_partitions';

	foreach my $option (@options)
	{
		$self->_add($option) if chance($self->{policies} && $option =~ /CREATE POLICY/ ? 1 : 0.2);
	}
	return;
}

# A publication of all tables, for a subscriber
sub _publish
{
	my ($self) = @_;
	$self->{publication} = quoted($self->_name('all', 'All tables'));
	return $self->_add("ALTER TABLE $self->{tables}[0]{full} REPLICA IDENTITY " . ($self->{subscriber} eq 'full' ? 'FULL' : 'DEFAULT'),
		"CREATE PUBLICATION $self->{publication} FOR TABLE " . join(', ', map { $_->{full} } @{ $self->{tables} })
		. ' WITH (publish_via_partition_root = true)', "ALTER PUBLICATION $self->{publication} OWNER TO \"lab owner\"");
}

# Partitions for old rows, and for those of the next days
sub _partition_for_first_rows
{
	my ($self) = @_;
	my $table = $self->{tables}[0];

	$self->_add('DO $$ DECLARE day timestamptz; BEGIN FOR n IN ' . ($self->{former} ? -1 : -5)
		. ' .. 2 LOOP day := (date_trunc(\'day\', now() AT TIME ZONE \'UTC\') + n * interval \'1 day\') AT TIME ZONE \'UTC\'; '
		  . 'EXECUTE format(\'CREATE TABLE %s.%I PARTITION OF %s FOR VALUES FROM (%s) TO (%s)\', '
			. literal($self->{schema}) . ", 'day ' || to_char(day AT TIME ZONE 'UTC', 'YYYY-MM-DD'), "
		  . literal($table->{full}) . ', snowflake_min_id(day), snowflake_min_id(day + interval \'24 hours\')); '
		  . 'EXECUTE format(\'ALTER TABLE %s.%I OWNER TO "lab owner"\', ' . literal($self->{schema})
			. ", 'day ' || to_char(day AT TIME ZONE 'UTC', 'YYYY-MM-DD')); "
		  . 'END LOOP; END $$');
	return unless $self->{former};
	my $former = "$self->{schema}." . quoted($self->_name('former', 'old one'));
	$self->_add("DO \$\$ BEGIN EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (MINVALUE) TO (%s)', "
		. literal($former) . ', ' . literal($table->{full})
		  . ", snowflake_min_id((date_trunc('day', now() AT TIME ZONE 'UTC') - interval '1 day') AT TIME ZONE 'UTC')); END \$\$",
		"ALTER TABLE $former OWNER TO \"lab owner\"");
	return;
}

# Things that a command may refuse, and must not change: rows of a table's row type, views, a
# function with such an argument, a table of another owner
sub _special
{
	my ($self, $special) = @_;
	my $table = $special ? $self->{tables}[0] : one_of(@{ $self->{tables} });
	my ($full, $key) = ($table->{full}, quoted($table->{key}));
	my $name = "$self->{schema}.special";
	my $row = one_of("r $full", "r ${full}[]");
	my $value = $row =~ /\[\]$/ ? 'ARRAY[t]' : 't';
	$special //= one_of('row', 'row', 'view', 'whole view', 'materialized view', 'function', 'owner');
	my %sql = (
		row => [ "CREATE TABLE $name ($row)", "INSERT INTO $name SELECT $value FROM $full AS t LIMIT 10" ],
		view => ["CREATE VIEW $name AS SELECT $key, n FROM $full"],
		'whole view' => ["CREATE VIEW $name AS SELECT t AS whole FROM $full AS t"],
		'materialized view' => ["CREATE MATERIALIZED VIEW $name AS SELECT t AS r FROM $full AS t LIMIT 10"],
		function => ["CREATE FUNCTION $name(r $full) RETURNS integer LANGUAGE sql AS 'SELECT r.n'"],
		owner => ["ALTER TABLE $full OWNER TO lab_other; GRANT USAGE, CREATE ON SCHEMA $self->{schema} TO lab_other"]);

	$self->{special} = $special;
	$self->{stored} = "SELECT string_agg(r::text, ' ' ORDER BY r::text) FROM $name" if $special eq 'row'
		|| $special eq 'materialized view';
	return $self->_add(@{ $sql{$special} });
}

# A call in a transaction block, which chooses itself how often it tries
sub _call_in_block
{
	my ($self) = @_;
	my $of = literal($self->{tables}[0]{full});
	$self->{in_block} = $self->{kind} eq 'move' ? "CALL snowflake_move($of, 7)" : "CALL snowflake_move_back($of)";
	return;
}

# Another command, which may be called while the first one works; one of the target if it is named
sub _other_call
{
	my ($self, $command) = @_;
	my ($first, @others) = @{ $self->{tables} };
	my $kind = $self->{kind};
	my @calls = map {
		my $of = literal($_->{full});
		($_->{maker} eq 'next_id' ? ("CALL snowflake_partition($of, 'day', tries => 200)",
			"CALL snowflake_move_back($of, tries => 200)") : (),
			$_->{maker} =~ /^(serial|default)$/ && $_->{type} eq 'bigint' ? "CALL snowflake_move($of, 7, tries => 200)" : (),
			$_->{type} eq 'integer' ? "CALL snowflake_widen($of, " . literal($_->{key})
				. ', tries => 200, published => true)' : ())
	} @others;
	my $of = literal($first->{full});
	push @calls, ("CALL snowflake_partition($of, 'day', tries => 200)", "CALL snowflake_move_back($of, tries => 200)")
	  if $kind eq 'renumber' || $kind eq 'move_back' || $kind eq 'partition';
	push @calls, "CALL snowflake_move($of, 7, tries => 200)" if $kind =~ /^(widen|move)$/ && $first->{maker} ne 'none' && $first->{maker} ne 'nextval';
	push @calls, "CALL snowflake_make_partitions($of, '9 days', tries => 200)" if $kind eq 'drop_partitions';
	foreach my $table (@others)
	{
		push @calls, map { 'CALL snowflake_widen(' . literal($table->{full}) . ', ' . literal($_->{column})
			. ', tries => 200, published => true)' }
		  grep { $_->{to}{type} eq 'integer' } @{ $table->{references} };
	}
	@calls = grep { $_ ne $self->{call} && (!$command || /^CALL \Q$command($of,\E/) } @calls;
	$self->{other} = one_of(@calls) if @calls;
	return;
}

# The call, and how to take it back if that is possible
sub _call
{
	my ($self) = @_;
	my $table = $self->{tables}[0];
	my $of = literal($table->{full});
	my $key = literal($table->{key});
	my $schema = literal($self->{schema_name});
	my %calls = (
		widen => sub {
			my $pause = one_of(0, 1, 10);
			my $call = "CALL snowflake_widen($of, $key, tries => 200, pause => '$pause ms'" . (chance(0.8) && !$self->{subscriber}
				? ', published => true' : '');
			$self->{undo} = "$call, undo => true)";
			$self->{indexes} = "SELECT command FROM snowflake_widen_indexes($of, $key)";
			return "$call)" },
		move => sub { (chance(0.2) ? "CALL snowflake_move_schema($schema, " : "CALL snowflake_move($of, ") . one_of('NULL', 7)
			. ', own_sequence => ' . one_of('true', 'false') . ', tries => 200)' },
		move_back => sub { (chance(0.2) ? "CALL snowflake_move_back_schema($schema" : "CALL snowflake_move_back($of")
			. ', tries => 200)' },
		renumber => sub { "CALL snowflake_renumber($of, 5, 9, tries => 200, batch => " . one_of(1, 7, 50) . ')' },
		partition => sub { "CALL snowflake_partition($of, 'day', tries => 200)" },
		make_partitions => sub { "CALL snowflake_make_partitions($of, '" . one_of(4, 7) . " days', tries => 200)" },
		drop_partitions => sub {
			# Up to noon of a day, as midnight is when another partition would be old enough
			my $seconds = 2 * 86400 + (time() + 43200) % 86400;
			my $keep = !$self->{old_references} && chance(0.2);
			# Nothing is detached that is not a whole partition, and that of the former table is young.
			$self->{cut} = "SELECT snowflake_min_id(date_trunc('day', (now() - interval '$seconds s') AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')" unless $keep && $self->{former};
			return "CALL snowflake_drop_partitions($of, '$seconds s', tries => 200" . ($keep ? ', keep => true)' : ')') });
	$self->{call} = $calls{ $self->{kind} }->();
	# The sequence of a former serial makes IDs.
	push @{ $self->{prepare} }, map { 'CALL snowflake_move(' . literal($_->{full}) . ', 7, own_sequence => true)' }
	  grep { $_->{maker} eq 'own' } @{ $self->{tables} };
	return;
}

# Something that others may change in the schema, before, while or after the command works
sub change
{
	my ($self) = @_;
	my $table = one_of(@{ $self->{tables} });
	my ($full, $key) = ($table->{full}, quoted($table->{key}));
	my $name = quoted($self->_name(qw(change Change)));
	my $grantee = one_of(@grantees);

	return one_of(
		"CREATE POLICY $name ON $full AS RESTRICTIVE FOR SELECT TO lab_other USING (n > 7)",
		"GRANT SELECT, TRIGGER ON $full TO $grantee", "GRANT SELECT ($key) ON $full TO $grantee",
			"REVOKE ALL ON $full FROM $grantee",
		"REVOKE ALL ON $full FROM lab_other CASCADE",
		"CREATE TRIGGER $name BEFORE INSERT ON $full FOR EACH ROW EXECUTE FUNCTION lab.same()",
		"CREATE INDEX $name ON $full (n, $key)", "CREATE INDEX $name ON $full (token, n)",
		"COMMENT ON TABLE $full IS 'changed'", "COMMENT ON COLUMN $full.$key IS 'changed'",
		"ALTER TABLE $full ADD CONSTRAINT $name CHECK (n > -1000)", "ALTER TABLE $full ALTER $key SET STATISTICS 33",
		"ALTER TABLE $full ALTER n SET (n_distinct = 3)",
		# A subscriber would need it first, and would stop.
		$self->{subscriber} ? () : "ALTER TABLE $full ADD $name integer");
}

1;
