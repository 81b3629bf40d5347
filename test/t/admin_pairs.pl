# Two commands on one table: one is interrupted at each of its transactions, and then the other
# one is called, or both run at the same time.  Either one is refused by the other's name, or
# both end.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('pairs', 'app');

# What the commands are about, anew for each pair: users and what refers to them, IDs that
# refer to each other, and a partitioned table.  An event trigger or a row trigger ends a command.
my $tables = q{
	DROP SCHEMA IF EXISTS shop CASCADE;
	CREATE SCHEMA shop;
	CREATE TABLE shop.users (id int PRIMARY KEY);
	CREATE TABLE shop.orders (id bigint PRIMARY KEY DEFAULT next_id(5), user_id int REFERENCES shop.users, note text);
	CREATE INDEX ON shop.orders (user_id);
	CREATE TABLE shop.items (id bigint PRIMARY KEY DEFAULT next_id(5), order_id bigint REFERENCES shop.orders);
	CREATE INDEX ON shop.items (order_id);
	INSERT INTO shop.users SELECT generate_series(1, 20);
	INSERT INTO shop.orders (id, user_id) SELECT snowflake_id(now() - interval '1 hour', 5, n), 1 + n % 20
	FROM generate_series(1, 30) AS n;
	INSERT INTO shop.items (order_id) SELECT id FROM shop.orders;
	CREATE TABLE shop.days (id bigint PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	DO $$ BEGIN
		FOR n IN -3 .. 0 LOOP
			EXECUTE format('CREATE TABLE shop.day_%s PARTITION OF shop.days FOR VALUES FROM (%s) TO (%s)', 3 + n,
				snowflake_min_id(today + n * interval '1 day'), snowflake_min_id(today + (n + 1) * interval '1 day'))
			FROM date_trunc('day', now()) AS today;
		END LOOP;
	END $$;
	INSERT INTO shop.days SELECT snowflake_id(now() - n * interval '30 hours', 5, n) FROM generate_series(0, 2) AS n;
	CREATE SEQUENCE shop.transactions;
	CREATE SEQUENCE shop.seen;
	CREATE FUNCTION shop.interrupt() RETURNS event_trigger LANGUAGE plpgsql AS $$
	DECLARE
		transaction bigint := pg_current_xact_id()::text;
	BEGIN
		IF (SELECT last_value FROM shop.seen) <> transaction THEN
			PERFORM setval('shop.seen', transaction);
			IF nextval('shop.transactions') = current_setting('shop.stop', true)::bigint THEN
				RAISE 'interrupted';
			END IF;
		END IF;
	END $$;
	CREATE FUNCTION shop.interrupt_row() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF nextval('shop.transactions') = current_setting('shop.stop', true)::bigint * TG_ARGV[0]::bigint THEN
			RAISE 'interrupted';
		END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER interrupt BEFORE UPDATE OF id ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.interrupt_row(10);
	CREATE TRIGGER interrupt BEFORE UPDATE OF id ON shop.days FOR EACH ROW EXECUTE FUNCTION shop.interrupt_row(1);
	CREATE EVENT TRIGGER interrupt ON ddl_command_end EXECUTE FUNCTION shop.interrupt();
};

my %command = (
	'widen of users' => q{CALL snowflake_widen('shop.users', 'id')},
	'widen of orders' => q{CALL snowflake_widen('shop.orders', 'user_id')},
	'partition of orders' => q{CALL snowflake_partition('shop.orders', 'day')},
	'partition of items' => q{CALL snowflake_partition('shop.items', 'day')},
	'renumber of orders' => q{CALL snowflake_renumber('shop.orders', 5, 6, batch => 10)},
	'move of orders' => q{CALL snowflake_move('shop.orders', 7, own_sequence => true)},
	'move back of orders' => q{CALL snowflake_move_back('shop.orders')},
	'new partitions' => q{CALL snowflake_make_partitions('shop.days', '5 days', unit => 'day')},
	'old partitions' => q{CALL snowflake_drop_partitions('shop.days', '24 hours')},
	'move of days' => q{CALL snowflake_move('shop.days', 7, own_sequence => true)},
	'move back of days' => q{CALL snowflake_move_back('shop.days')},
	'renumber of days' => q{CALL snowflake_renumber('shop.days', 5, 6, batch => 1)});
# These have a state between two transactions that others must know: they are interrupted at each
# transaction, and the others after the first one.
my %interrupted = (
	'widen of orders' => 'snowflake_widen',
	'partition of orders' => 'snowflake_partition', 'partition of items' => 'snowflake_partition',
	'renumber of orders' => 'snowflake_renumber', 'new partitions' => 'snowflake_make_partitions',
	'old partitions' => 'snowflake_drop_partitions', 'renumber of days' => 'snowflake_renumber');

# What commands leave, how many rows find those to which they refer, and how many IDs there are
my $look = q{SELECT (SELECT count(*) FROM snowflake_admin.unfinished(ARRAY(
		SELECT oid::regclass FROM pg_class WHERE relnamespace = 'shop'::regnamespace AND relkind IN ('r', 'p')))) AS left_over,
	(SELECT count(*) FROM shop.orders JOIN shop.users ON users.id = user_id) + (
		SELECT count(DISTINCT orders.id) FROM shop.items JOIN shop.orders ON orders.id = order_id) AS rows \gset};

# Run commands, of which each begins with a name.  Returns what each says, by these names.
sub sections
{
	my ($script) = @_;
	my $said = run_psql('app', "SET client_min_messages = error;\n$script", on_error_stop => 0) . "\n";
	return $said =~ /^== ?([^\n]*)\n(.*?)(?=^== |\z)/gms;
}

sub error_in { return $_[0] =~ /ERROR:  (.*?)(?:\nCONTEXT|\nLOCATION|\z)/s ? $1 : '' }

# How many transactions of a command can be interrupted?
sub transactions
{
	my ($name) = @_;
	return value('app', "SET client_min_messages = error; $tables; $command{$name}; SELECT last_value FROM shop.transactions");
}

# Interrupt a command at its n-th transaction, and call another one, then the first one again,
# and the second one.
sub pair
{
	my ($first, $second, $n) = @_;
	my $undo = $first =~ /widen/ ? $command{$first} =~ s/\)$/, undo => true)/r : 'SELECT';

	return qq{
		SET shop.stop = 0;
		$tables;
		SET shop.stop = $n;
		\\warn == $n interrupted
		$command{$first};
		SET shop.stop = 0;
		\\warn == $n second
		$command{$second};
		\\warn == $n end
		$command{$first};
		\\if :ERROR
			\\warn == $n undo
			$undo;
		\\endif
		$look
		\\warn == $n left_over
		\\warn :left_over
		\\warn == $n again
		$command{$second};
		$look
		\\warn == $n left_over again
		\\warn :left_over
		\\warn == $n rows
		\\warn :rows
	} =~ s/^\t+//gmr;
}

# What is wrong after that?
sub verdict
{
	my ($first, $n, %said) = @_;
	my ($refused, $end, $undo, $again) = map { error_in($said{"$n $_"} // '') } 'second', 'end', 'undo', 'again';

	return "it is not interrupted: $said{qq{$n interrupted}}" if $said{"$n interrupted"} !~ /interrupted/;
	# Another widening, or what refuses a table for good, may do so by another name.
	return "refused: $refused"
	  if $refused && $refused !~ /^55000: $interrupted{$first}\(\)/ && $again ne $refused
	  && !($first =~ /widen/ && $refused =~ /^55000: cannot widen/);
	return "not refused, but the first one does not end: $end, $undo" if $end && ($end !~ /^55000/ || $undo);
	return "refused for good: $again" if $refused && $again =~ /^55000: $interrupted{$first}\(\)/;
	return "something is left over" if $said{"$n left_over"} ne "0\n" || $said{"$n left_over again"} ne "0\n";
	return "rows are lost: " . $said{"$n rows"} if $said{"$n rows"} ne "60\n";
	return '';
}

foreach my $first (sort keys %interrupted)
{
	my @stops = $first =~ /widen|partition of/ ? (1 .. transactions($first)) : (2);

	cmp_ok(scalar(@stops), '>', 2, "$first has several transactions") if $first =~ /widen|partition of/;
	foreach my $second (sort keys %command)
	{
		next if $second eq $first || ($second =~ /users|orders|items/) != ($first =~ /users|orders|items/);
		my %said = sections(join '', map { pair($first, $second, $_) } @stops);
		my %wrong = map { ($_ => verdict($first, $_, %said)) } @stops;
		is(join("\n", map { "at transaction $_: $wrong{$_}" } grep { $wrong{$_} } sort keys %wrong), '',
			"$first, interrupted at transaction @stops, and $second");
	}
}

# Both at the same time, from sessions of their own, and then one after the other
my @callers = (session($node, 'app'), session($node, 'app'));
foreach my $pair ([ 'widen of users', 'partition of orders' ], [ 'widen of orders', 'partition of orders' ],
	[ 'partition of orders', 'renumber of orders' ], [ 'partition of orders', 'move back of orders' ],
	[ 'renumber of orders', 'move of orders' ], [ 'widen of orders', 'renumber of orders' ])
{
	value('app', "SET client_min_messages = error; $tables; DROP EVENT TRIGGER interrupt");
	send_sql($callers[$_], "$command{$pair->[$_]};\nSELECT 'done'") foreach 0, 1;
	session_prints($_, qr/^done/m) foreach @callers;
	my %said = sections("\\warn == first\n$command{$pair->[0]};\n\\warn == second\n$command{$pair->[1]};\n"
		  . "\\warn == end\n$command{$pair->[0]};\n$look\n\\warn :left_over :rows\n");
	my $error = error_in($said{end});
	is($said{end} =~ s/.*^(?=\d+ \d+$)//smr, "0 60\n", "$pair->[0] and $pair->[1] at the same time leave nothing, and lose nothing");
	like($error, qr/^$|^55000/, '... and the first one ends, or is refused');
}
$_->quit foreach @callers;

$node->stop;
done_testing();
