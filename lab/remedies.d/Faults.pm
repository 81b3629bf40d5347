# lab/remedies.d/Faults.pm
#	  What goes wrong in a world: clocks, shards, sequences, privileges, partitions, defaults, and
#	  sessions that hold locks.  And what changes between a look of the check and its remedy.
#
# Each is done by the role that could do it by mistake.  Knows no remedy.

package Faults;

use strict;
use warnings;
use Exporter 'import';
use Time::HiRes qw(sleep);
use World;

our @EXPORT = qw(%FAULTS %BETWEEN %YEARS);

my $huge = '9223372036854775807';

# A block of rows in each table, so dense that IDs which come again meet them
sub _dense_rows
{
	my ($round) = @_;

	foreach my $table (@{ $round->{world}{tables} })
	{
		# Whoever is refused has no rows.
		$round->add_rows($table, 'lab_app', $table->{number} == 0 ? 1500 : 300);
	}
	return;
}

# A sequence's value that many seconds ahead: a custom layout has Instagram's ticks
sub _set_ahead
{
	my ($round, $sequence, $seconds) = @_;

	return $round->as('postgres', "SELECT setval('$sequence', greatest(last_value, 1024) + $seconds * coalesce((SELECT ids_per_tick / "
		. "extract(epoch FROM tick) FROM snowflake_layouts() WHERE max_value = (SELECT seqmax FROM pg_sequence WHERE seqrelid = '$sequence'::regclass)), "
		. "1024000)::bigint) FROM $sequence");
}

# Rows that somebody brings, with IDs of a shard at a time
sub _import
{
	my ($round, $table, $shard, $after, $count) = @_;
	my $layout = $table->{layout} eq 'instagram' ? '' : ", '$table->{layout}'";

	return $round->add_rows($table, 'lab_app', $count // 5,
		"snowflake_id(now() + interval '$after' + g / 20 * interval '1 ms', $shard, g * 37 % 1024$layout)");
}

sub _table { my ($round, $name) = @_; return (grep { $_->{name} eq $name } @{ $round->{world}{tables} })[0] }

sub _owner { my ($round, $table) = @_; return $table->{owner} }

# A task that holds a lock for a while
sub _hold
{
	my ($round, $role, $sql, $seconds) = @_;
	$round->add_task($role, [ 0, 'BEGIN', $sql ], [ $seconds // 0.3 + rand(2), 'COMMIT' ]);
	$round->work(0.05);
	return;
}

our %FAULTS = (
	'fast clock' => sub {
		my ($round) = @_;
		my $seconds = 1200 + int rand(chance(0.5) ? 6000 : 100_000);
		$round->step_clock($seconds);
		_dense_rows($round);
		$round->work(0.2 + rand(0.3));
		$round->step_clock(-$seconds);
	},
	'clock fast by minutes' => sub {
		my ($round) = @_;
		my $seconds = 20 + int rand(200);
		$round->step_clock($seconds);
		_dense_rows($round);
		$round->step_clock(-$seconds);
	},
	ahead => sub {
		my ($round) = @_;
		_set_ahead($round, chance(0.7) ? $round->sequence : 'app.tweets_seq', 1200 + int rand(80_000));
	},
	'far ahead' => sub { my ($round) = @_; _set_ahead($round, $round->sequence, 86400 * 400); },
	'imported rows of soon' => sub {
		my ($round) = @_;
		_import($round, one_of(grep { $_->{made_by_setting} } @{ $round->{world}{tables} }), $round->{shard}, '4 s');
	},
	'imported rows, far ahead' => sub {
		my ($round) = @_;
		_import($round, _table($round, one_of('photos', 'comments')), $round->{shard}, '5 h');
	},
	'rows of another server' => sub {
		my ($round) = @_;
		_import($round, _table($round, one_of('photos', 'comments', 'loans')), $round->new_shard, '3 h', 20);
	},
	'lost MAXVALUE' => sub {
		my ($round) = @_;
		$round->as('postgres', 'ALTER SEQUENCE ' . (chance(0.5) ? $round->sequence : 'app.tweets_seq') . one_of(' NO MAXVALUE', " MAXVALUE $huge"));
	},
	'new sequence' => sub {
		my ($round) = @_;
		$round->as('boss', "CREATE SEQUENCE app.views_seq; CREATE TABLE app.views (id bigint PRIMARY KEY DEFAULT next_id(7, 'app.views_seq'));"
			. 'GRANT INSERT, SELECT ON app.views TO lab_app, lender; GRANT USAGE, SELECT ON SEQUENCE app.views_seq TO lab_app, lender');
	},
	'another layout' => sub {
		my ($round) = @_;
		my $table = _table($round, 'tweets');
		return if $table->{layout} =~ /:/ || $table->{names_layout};
		my $other = one_of(grep { $_ ne $table->{layout} } qw(twitter discord instagram));
		my $largest = $round->ask("SELECT max_value FROM snowflake_layouts() WHERE name = '$other'");
		return if $largest < $round->ask('SELECT last_value FROM app.tweets_seq');
		$round->as('boss', "ALTER SEQUENCE app.tweets_seq MAXVALUE $largest");
		$round->add_rows($table, 'lab_app', 3);
	},
	unlogged => sub {
		my ($round) = @_;
		return if $round->major < 15;
		$round->as('postgres', 'ALTER SEQUENCE ' . (chance(0.5) ? $round->sequence : 'app.tweets_seq') . ' SET UNLOGGED');
	},
	parameters => sub {
		my ($round) = @_;
		$round->as('postgres', 'ALTER SEQUENCE ' . (chance(0.5) ? $round->sequence : 'app.tweets_seq') . one_of(' CACHE 10', ' INCREMENT 2', ' CYCLE'));
	},
	'no USAGE' => sub {
		my ($round) = @_;
		$round->as('boss', 'REVOKE USAGE, UPDATE ON SEQUENCE app.tweets_seq FROM lab_app');
	},
	'no EXECUTE' => sub {
		my ($round) = @_;
		$round->as('postgres', 'REVOKE EXECUTE ON FUNCTION ' . one_of('next_id()', 'next_id(bigint, regclass)') . ' FROM PUBLIC');
	},
	'hidden table' => sub {
		my ($round) = @_;
		$round->as($_->{owner}, "REVOKE SELECT ON $_->{full} FROM $round->{role}")
		  foreach grep { $_->{owner} ne $round->{role} && chance(0.7) } @{ $round->{world}{tables} };
	},
	'hidden sequence' => sub {
		my ($round) = @_;
		$round->as('boss', "REVOKE ALL ON SEQUENCE app.tweets_seq FROM $round->{role}") if $round->{role} eq 'lender';
		$round->as('postgres', 'REVOKE ALL ON SEQUENCE ' . $round->sequence . " FROM $round->{role}")
			if $round->{role} ne $round->{owner} && $round->{role} ne 'postgres';
	},
	'no index' => sub {
		my ($round) = @_;
		my $table = _table($round, one_of('comments', 'tweets', 'loans', 'events'));
		$round->as($table->{owner}, "ALTER TABLE $table->{full} DROP CONSTRAINT $table->{name}_pkey");
	},
	'no partitions' => sub {
		my ($round) = @_;
		$round->as('boss', "DROP TABLE $_") foreach split /\n/, $round->ask(
			"SELECT string_agg(partition::text, E'\\n') FROM snowflake_partitions('app.events') WHERE since > clock_timestamp()") // '';
	},
	'dead job' => sub { my ($round) = @_; $round->step_clock(86400 * one_of(1, 2, 3, 4, 12)); },
	'narrow column' => sub {
		my ($round) = @_;
		my $to = _table($round, one_of('photos', 'loans'));
		$round->as($to->{owner}, "CREATE TABLE app.likes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, photo integer REFERENCES $to->{full})");
	},
	'nearly full key' => sub {
		my ($round) = @_;
		my $owner = one_of('boss', 'lender');
		my ($type, $value) = @{ one_of([ serial => 2_000_000_000 ], [ smallserial => 30_000 ]) };
		$round->as($owner, "CREATE TABLE app.counted (id $type PRIMARY KEY, x integer); INSERT INTO app.counted (id) VALUES ($value); SELECT setval('app.counted_id_seq', $value)");
	},
	'counted key' => sub {
		my ($round) = @_;
		my $table = _table($round, one_of('comments', 'loans'));
		$round->as($table->{owner}, "BEGIN; LOCK TABLE $table->{full}; ALTER TABLE $table->{full} ALTER id DROP DEFAULT; ALTER TABLE $table->{full} ALTER id ADD GENERATED BY DEFAULT AS IDENTITY; "
			. "SELECT setval(pg_get_serial_sequence('$table->{full}', 'id'), (SELECT max(id) FROM $table->{full})); COMMIT");
	},
	'nextval in a default' => sub {
		my ($round) = @_;
		my $table = _table($round, 'tweets');
		$round->as($table->{owner}, "ALTER TABLE $table->{full} ALTER id SET DEFAULT nextval('app.tweets_seq')");
		$round->add_rows($table, 'lab_app', 4);
		# Whoever did it may have seen it, and keys are left.
		$round->as($table->{owner}, "ALTER TABLE $table->{full} ALTER id SET DEFAULT $table->{default}") if chance(0.6);
	},
	'default of a child' => sub {
		my ($round) = @_;
		if (chance(0.5))
		{
			$round->as('boss', 'CREATE TABLE app.old_photos () INHERITS (app.photos); ALTER TABLE app.old_photos ALTER id SET DEFAULT next_id(' . $round->new_shard . ')');
			return;
		}
		my $partition = $round->ask("SELECT partition FROM snowflake_partitions('app.events') ORDER BY since DESC LIMIT 1");
		$round->as('boss', "ALTER TABLE $partition ALTER id SET DEFAULT next_id(" . $round->new_shard . ')') if $partition;
	},
	'shard in a default' => sub {
		my ($round) = @_;
		my $table = one_of(grep { $_->{made_by_setting} } @{ $round->{world}{tables} });
		$round->as($table->{owner}, "ALTER TABLE $table->{full} ALTER id SET DEFAULT next_id(" . $round->new_shard . ')');
	},
	'open schema' => sub { my ($round) = @_; $round->as('boss', 'GRANT CREATE ON SCHEMA public TO ' . one_of('PUBLIC', 'lab_app')); },
	'no shard' => sub {
		my ($round) = @_;
		# A restored database has no setting, and its sessions begin anew.
		$round->as('boss', 'SELECT snowflake_set_shard(-1)');
		$round->new_sessions;
	},
	'restored copy' => sub { my ($round) = @_; $round->become_a_copy; },
	'another shard' => sub {
		my ($round) = @_;
		$round->{shard} = $round->new_shard;
		$round->as('boss', "SELECT snowflake_set_shard($round->{shard})");
	},
	'two databases' => sub {
		my ($round) = @_;
		$round->as('postgres', "ALTER DATABASE base SET snowflake.shard = $round->{shard}");
	},
	stranger => sub {
		my ($round) = @_;
		$round->as('postgres', 'CREATE SCHEMA AUTHORIZATION stranger; GRANT USAGE ON SCHEMA stranger TO PUBLIC');
		$round->as('stranger', "CREATE TABLE stranger.t (id bigint PRIMARY KEY DEFAULT next_id(), x integer); GRANT SELECT ON stranger.t TO PUBLIC;"
			. "INSERT INTO stranger.t (id) SELECT snowflake_id(clock_timestamp() + interval '1 hour', $round->{shard}, g) FROM generate_series(1, 5) AS g");
		_set_ahead($round, $round->sequence, 7200);
	},
	'missing standby' => sub { my ($round) = @_; $round->start_standby; },
	'older version' => sub { my ($round) = @_; $round->offer_version('1.1'); },
	'half-done widen' => sub {
		my ($round) = @_;
		$round->as('boss', 'CREATE TABLE app.wide (id serial PRIMARY KEY, x text); INSERT INTO app.wide (x) SELECT 1 FROM generate_series(1, 30000)');
		$round->interrupt('boss', "CALL snowflake_widen('app.wide', 'id', pause => '200 ms')");
	},
	'half-done partition' => sub {
		my ($round) = @_;
		my $table = _table($round, 'loans');
		$round->interrupt($table->{owner}, "CALL snowflake_partition('app.loans', 'day')");
	},
	'half-done renumber' => sub {
		my ($round) = @_;
		$round->interrupt('boss', "CALL snowflake_renumber('app.photos', $round->{shard}, " . $round->new_shard . ', until => now(), batch => 1)');
	},
	'locked table' => sub {
		my ($round) = @_;
		_hold($round, 'postgres', 'LOCK TABLE ' . one_of(@{ $round->{world}{tables} })->{full});
	},
	'locked sequence' => sub {
		my ($round) = @_;
		_hold($round, 'postgres', 'ALTER SEQUENCE ' . (chance(0.5) ? $round->sequence : 'app.tweets_seq') . ' OWNED BY NONE');
	},
	'locked code' => sub {
		my ($round) = @_;
		$round->as('boss', "CREATE TABLE app.busy (id bigint); CREATE FUNCTION app.uses_busy() RETURNS bigint LANGUAGE sql "
			. "BEGIN ATOMIC SELECT next_id($round->{shard}) FROM app.busy; END");
		_hold($round, 'boss', 'LOCK TABLE app.busy', $round->{control} ? 6 : undef);
	},
	'larger max_lead' => sub {
		my ($round) = @_;
		$round->as('postgres', "LOAD 'snowflake'; ALTER DATABASE work SET snowflake.max_lead = '" . one_of('1min', '2h') . "'");
	},
	'shard of a role' => sub {
		my ($round) = @_;
		$round->as('postgres', 'ALTER ROLE lab_app IN DATABASE work SET snowflake.shard = ' . $round->new_shard);
		$round->new_sessions;
	});

# Long times, in which nothing else goes wrong
our %YEARS = (
	'a year' => sub {
		my ($round) = @_;
		# The job of a month makes the partitions of 40 days.
		my $job = sub { return $round->as('boss', "CALL snowflake_make_partitions('app.events', '40 days')") };
		$job->();
		foreach my $month (1 .. 12)
		{
			$round->step_clock(30 * 86400);
			$job->();
			$round->work(0.3);
			# Nobody told the check that a step of a month is not one of the clock.
			$round->fault('false alarms', map { "month $month: $_->{object}: $_->{problem}" }
				grep { $_->{object} ne 'clock' && $_->{problem} !~ /look at the clock/i } $round->check($round->{role}));
		}
	},
	'end of a layout' => sub {
		my ($round) = @_;
		my $to = sub { my ($time) = @_; return $round->ask("SELECT extract(epoch FROM timestamptz '$time Z' - clock_timestamp())") };
		my $start = $to->('2046-06-26 12:00');
		$round->{step_back} = $start;
		$round->step_clock($start);
		# One partition for the years between, and then days
		my $last = $round->ask("SELECT snowflake_min_id(max(until)) FROM snowflake_partitions('app.events')");
		$round->as('boss', "CREATE TABLE app.events_of_years PARTITION OF app.events FOR VALUES FROM ($last) TO ("
			. $round->ask("SELECT snowflake_min_id('2046-06-26 00:00Z')") . ')',
			"CALL snowflake_make_partitions('app.events', unit => 'day', trust_clock => true)");
		$round->add_rows($_, 'lab_app', 20) foreach grep { $_->{layout} eq 'instagram' } @{ $round->{world}{tables} };
		$round->work(0.5);
		$round->obey_until_well;
		my $end = $to->('2046-06-27 18:00');
		$round->{step_back} += $end;
		$round->step_clock($end);
		my %keys = map { ($_ => $round->ask("SELECT string_agg(id::text, ' ' ORDER BY id) FROM $_ WHERE token LIKE 'x-%'")) } qw(app.photos app.loans);
		$round->obey_until_well;
		# What doc/layouts.md says: the same fields with a later epoch, and a shard that no row has
		my $layout = 'timestamp:41 shard:13 sequence:10 epoch:2046-01-01T00:00:00Z';
		foreach my $table (grep { $_->{name} =~ /photos|loans/ } @{ $round->{world}{tables} })
		{
			my $sequence = "app.later_$table->{name}";
			my $shard = $round->new_shard;
			$round->as($table->{owner}, "CREATE SEQUENCE $sequence; SELECT snowflake_alter_sequence('$sequence', '$layout');"
				. "GRANT USAGE, UPDATE ON SEQUENCE $sequence TO lab_app; GRANT SELECT ON SEQUENCE $sequence TO boss, lender;"
				. "ALTER TABLE $table->{full} ALTER id SET DEFAULT next_id($shard, '$sequence', '$layout')");
			$table->{layout} = $layout;
		}
		$round->work(0.5);
		$round->obey_until_well;
		foreach my $table (sort keys %keys)
		{
			$round->fault('old rows with other keys after the end of a layout', $table)
			  if $keys{$table} ne $round->ask("SELECT string_agg(id::text, ' ' ORDER BY id) FROM $table WHERE token LIKE 'x-%'");
		}
	});

# What others do after the check has looked
our %BETWEEN = (
	'row of a kept ID' => sub {
		my ($round) = @_;
		# A program that kept the ID inserts it late: one that the sequence has made.
		my $table = _table($round, 'photos');
		my $lead = $round->ask("SELECT extract(epoch FROM lead) FROM snowflake_sequences() WHERE sequence = '" . $round->sequence . "'::regclass") // 0;
		_import($round, $table, $round->{shard}, int($lead / 2) . ' s', 2000) if $lead > 20;
	},
	'open transaction' => sub {
		my ($round) = @_;
		_hold($round, 'lab_app', 'INSERT INTO app.photos (token) VALUES (' . literal($round->new_token) . ')', 0.5 + rand);
	},
	'another session' => sub { my ($round) = @_; $round->add_pooled; },
	'another shard' => sub { my ($round) = @_; $FAULTS{'another shard'}->($round); },
	'locked table' => sub { my ($round) = @_; $FAULTS{'locked table'}->($round); },
	'locked sequence' => sub { my ($round) = @_; $FAULTS{'locked sequence'}->($round); },
	'a while' => sub { my ($round) = @_; $round->work(rand(0.5)); });

1;
