# No row comes later with an ID below a bound that snowflake_settled_id() has
# returned, whatever sessions do and in whichever order they commit.

use SnowflakeTest;

my $node = server_in_utc('settled', "max_prepared_transactions = 10\nsnowflake.shard = 5\nmax_connections = 40\n"
	  # so that the first session is also the first one of pg_stat_activity
	  . "autovacuum = off\nmax_logical_replication_workers = 0\n");
$node->sql(q{
	CREATE ROLE reader LOGIN;
	CREATE DATABASE other;
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE own;
	SELECT snowflake_alter_sequence('own');
	CREATE TABLE events (id bigint PRIMARY KEY DEFAULT next_id(), kind text);
	CREATE TABLE own_events (id bigint PRIMARY KEY DEFAULT next_id(6, 'own'), kind text)});
$node->safe_psql('other', 'CREATE EXTENSION snowflake');

my $insert = q{INSERT INTO events DEFAULT VALUES RETURNING id};
my ($first, $second) = map { session($node) } 1, 2;

sub newest { return $node->sql('SELECT max(id) FROM events') }

# The bound that a role without privileges gets.  An error is a failure, and no number.
sub settled
{
	my ($error, $bound, $message) = $node->psql('postgres', 'SELECT snowflake_settled_id()', extra_params => [ '-U', 'reader' ]);
	return $bound unless $error;
	fail('a role without privileges gets a bound');
	diag($message);
	return 'nan';
}

sub refuses
{
	my ($error, $name) = @_;
	return fails_with($node, 'SELECT snowflake_settled_id()', qr/^55000 cannot tell which IDs are settled while $error/,
		$name);
}

# --- transactions that hold the bound back, and those that do not -----------

cmp_ok(settled(), '<=', $node->sql($insert), 'an ID that is taken after the look is not below the bound');
cmp_ok(settled(), '>', newest(), 'a committed ID soon is');

$first->query_safe('BEGIN');
my $one = $first->query_safe($insert);
my $two = $node->sql($insert);
cmp_ok(settled(), '<=', $one, 'an ID that is not committed is not below the bound, nor are those after it');
$second->query_safe('BEGIN');
my $three = $second->query_safe($insert);
$first->query_safe('COMMIT');
my $bound = settled();
ok($two < $bound && $bound <= $three, 'the bound moves up to the next transaction when the first commits');
$second->query_safe('ROLLBACK');
cmp_ok(settled(), '>', $three, 'an ID that was rolled back is below the bound, too');

$first->query_safe('BEGIN; SELECT count(*) FROM events');
$bound = settled();
cmp_ok($bound, '>', $three, 'a transaction that has taken no ID does not hold the bound back');
cmp_ok($bound, '<=', $first->query_safe($insert), 'an ID that it takes after the look is not below the bound');
$first->query_safe('COMMIT');

foreach my $case (
	[ 'a sequence of its own' => 'INSERT INTO own_events DEFAULT VALUES RETURNING id' ],
	[ 'a savepoint that was rolled back to' => "SAVEPOINT s; $insert; ROLLBACK TO s" ],
	[ 'a sequence that it made' => q{CREATE SEQUENCE made; SELECT snowflake_alter_sequence('made');
			SELECT next_id(5, 'made')} ],
	[ 'a sequence that it renamed' => q{ALTER SEQUENCE own RENAME TO renamed; SELECT next_id(5, 'renamed')} ])
{
	my ($from, $sql) = @$case;
	$first->query_safe('BEGIN');
	my ($id) = $first->query_safe($sql) =~ /(\d{15,})/;
	my $bound = settled();
	ok($bound <= $id, "a transaction that took an ID from $from holds the bound back")
	  or diag "snowflake_settled_id() returns $bound, while a transaction is open that took $id by\n$sql\nIt has these locks: "
	  . $first->query_safe(q{SELECT string_agg(concat_ws(' ', mode, locktype, relation::regclass), ', ') FROM pg_locks WHERE pid = pg_backend_pid()});
	$first->query_safe('ROLLBACK');
	cmp_ok(settled(), '>', $id, "until it ends, after an ID from $from");
}

is(last_result($node, 'BEGIN', q{INSERT INTO events (kind) VALUES ('mine')}, 'SELECT pg_sleep(0.01)',
		"SELECT snowflake_settled_id() AS bound \\gset\n",
		q{SELECT count(*) FROM events WHERE kind = 'mine' AND id < :bound}),
	1, 'its own IDs are below the bound, and the next statement sees them');

# A reader may look again within a transaction.  What was new to it before may be a table.
my $again = session($node);
$first->query_safe('BEGIN; CREATE TABLE made_later (n integer); INSERT INTO made_later VALUES (1)');
$again->query_safe('BEGIN; SELECT snowflake_settled_id()');
$first->query_safe('COMMIT; BEGIN; INSERT INTO made_later VALUES (2)');
my $inserted = $node->sql('SELECT snowflake_min_id(clock_timestamp())');
cmp_ok($again->query_safe('SELECT snowflake_settled_id()'), '>', $inserted,
	'a transaction holds the bound back only by sequences, also where others have made a table meanwhile');
$first->query_safe('COMMIT');
$again->quit;

# Ticks of a second: an ID of the present second is below its end.
my $layout = q{'timestamp:32 sequence:20 epoch:0 tick:1s'};
$node->sql("CREATE SEQUENCE slow; SELECT snowflake_alter_sequence('slow', $layout)");
$first->query_safe('BEGIN');
my $slow = $first->query_safe("SELECT next_id(0, 'slow', $layout)");
cmp_ok($node->sql("SELECT snowflake_settled_id($layout)"),
	'<=', $slow, 'the bound is rounded down to a tick of the layout');
$first->query_safe('COMMIT');

# --- what it refuses ---------------------------------------------------------

# Any role can leave one behind, and only it and superusers can end it, so the error names both.
$node->sql(q{CREATE ROLE "Worker"});
$first->query_safe(q{SET SESSION AUTHORIZATION "Worker"; BEGIN; SELECT next_id(); PREPARE TRANSACTION 'it''s pending'});
foreach my $when ('', ', and so after a restart')
{
	refuses('a prepared transaction may have taken some', "a prepared transaction that has taken an ID is refused$when");
	like(($node->psql('postgres', 'SELECT snowflake_settled_id()', extra_params => [ '-U', 'reader' ]))[2],
		qr/HINT:  Role "Worker", which prepared it, or a superuser can .* ROLLBACK PREPARED 'it''s pending'\.$/m,
		"... and named$when");
	$node->restart if $when eq '';
}
$node->sql(q{ROLLBACK PREPARED 'it''s pending'});
$node->safe_psql('other', q{BEGIN; SELECT next_id(); PREPARE TRANSACTION 'elsewhere'});
cmp_ok(settled(), '>', newest(), 'one of another database does not matter');
$node->safe_psql('other', q{ROLLBACK PREPARED 'elsewhere'});

$first = session($node);
$first->query_safe('SET track_activities = off');
cmp_ok(settled(), '>', 0, 'a session that hides its transactions does not matter while it has none');
$first->query_safe("BEGIN; $insert");
my $hides = qr/process \d+ hides when its transaction began/;
refuses($hides, 'a hidden transaction that has taken an ID is refused');
$first->query_safe('SET track_activities = on');
refuses($hides, 'and so it is when it is shown too late');
$first->query_safe('COMMIT; BEGIN');
my $shown = $first->query_safe($insert);
cmp_ok(settled(), '<=', $shown, 'its next transaction is not refused');
$first->query_safe('COMMIT');

fails_with($node, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT snowflake_settled_id()',
	qr/^55000 cannot use snowflake_settled_id\(\) in a transaction with isolation level/,
	'isolation level REPEATABLE READ is refused');
cmp_ok(last_result($node, 'BEGIN READ ONLY', 'SELECT snowflake_settled_id()'), '>', $shown,
	'a transaction that may not write is not');

# --- readers beside many writers ---------------------------------------------

$node->sql(q{
	TRUNCATE events, own_events;
	CREATE UNLOGGED TABLE read (reader text, id bigint, PRIMARY KEY (reader, id));
	CREATE TABLE readers (reader text PRIMARY KEY, rounds int NOT NULL DEFAULT 0, refused int NOT NULL DEFAULT 0,
		last bigint NOT NULL DEFAULT 0);
	CREATE VIEW rows AS SELECT id FROM events UNION ALL SELECT id FROM own_events;
	CREATE PROCEDURE read_rows(reader_ text, bound_of text, until timestamptz) LANGUAGE plpgsql AS $$
	DECLARE
		last_ bigint := 0;
		bound bigint;
	BEGIN
		INSERT INTO readers (reader) VALUES (reader_);
		WHILE clock_timestamp() < until LOOP
			BEGIN
				EXECUTE 'SELECT ' || bound_of INTO bound;
			EXCEPTION WHEN object_not_in_prerequisite_state THEN
				bound := 0;
				UPDATE readers SET refused = refused + 1 WHERE reader = reader_;
			END;
			INSERT INTO read SELECT reader_, id FROM rows WHERE id >= last_ AND id < bound;
			last_ := greatest(last_, bound);
			UPDATE readers SET rounds = rounds + 1, last = last_ WHERE reader = reader_;
			COMMIT;
		END LOOP;
	END $$});
my $sleep = "\n\\sleep :pause us\n";
my %script = (
	one => "INSERT INTO events (kind) VALUES ('one');",
	many => "INSERT INTO own_events (kind) SELECT 'many' FROM generate_series(1, 20);",
	late => "BEGIN; SELECT 1; $sleep INSERT INTO events (kind) VALUES ('late'); $sleep COMMIT;",
	two => "BEGIN; INSERT INTO events (kind) VALUES ('two'); $sleep
		INSERT INTO own_events (kind) VALUES ('two'); COMMIT;",
	undone => "BEGIN; SAVEPOINT s; INSERT INTO own_events (kind) VALUES ('undone'); $sleep
		ROLLBACK TO s; INSERT INTO events (kind) VALUES ('after'); COMMIT;",
	rolled => "BEGIN; INSERT INTO events (kind) VALUES ('rolled'); ROLLBACK;",
	prepared => "BEGIN; INSERT INTO events (kind) VALUES ('prepared'); $sleep
		PREPARE TRANSACTION 'p:client_id'; COMMIT PREPARED 'p:client_id';\n\\sleep 30 ms");
my $dir = $node->basedir;
write_file("$dir/$_.sql", "\\set pause random(0, 3000)\n$script{$_}\n") foreach keys %script;
my $seconds = $ENV{EMULATED} ? 80 : 8;
my @clients = map {
	[ "pgbench of @{ $_->[1] }", IPC::Run::start([ 'pgbench', '-n', '-c', $_->[0], '-R', 3000, '-T', $seconds + 1,
			(map { ('-f', "$dir/$_.sql") } @{ $_->[1] }), $node->connstr('postgres') ], '>', '/dev/null', '2>&1') ]
} [ 10, [qw(one many late two undone rolled)] ], [ 1, ['prepared'] ];
my %bound_of = (settled => 'snowflake_settled_id()', clock => 'snowflake_min_id(clock_timestamp())');
push @clients, map {
	[ "reader \"$_\"", IPC::Run::start([ 'psql', '-Xq', '-d', $node->connstr('postgres'), '-c',
			"CALL read_rows('$_', '$bound_of{$_}', clock_timestamp() + interval '$seconds s')" ]) ]
} sort keys %bound_of;
ok(ends($_->[1], $_->[0]), "$_->[0] ends without an error") foreach @clients;

my %missed = map { split /\|/ } split /\n/, $node->sql(q{
	SELECT reader, count(id) FROM readers LEFT JOIN LATERAL (SELECT id FROM rows WHERE id < last
		EXCEPT SELECT id FROM read WHERE read.reader = readers.reader) AS missing ON true GROUP BY reader});
is($node->sql(q{SELECT rounds - refused > 1000 AND refused > 0 FROM readers
		WHERE reader = 'settled'}), 't',
	'the reader has had more than 1,000 bounds, and was refused at times');
is($node->sql(q{SELECT count(*) > 5000 FROM read WHERE reader = 'settled'}), 't',
	'the reader has read more than 5,000 rows');
is($missed{settled}, 0, 'the reader has missed none of the rows below its last bound');
cmp_ok($missed{clock}, '>', 0, 'control: a reader that reads up to the clock has missed some');

done_testing();
