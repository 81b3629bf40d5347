# snowflake_set_back() sets a sequence that is ahead of the clock back to it, or says what is
# in the way: rows, tables that it cannot read, code that it cannot read, and sessions.

use SnowflakeTest;

my $node = server_in_utc('set_back', "max_prepared_transactions = 1\n", allows_streaming => 1);
my $n = 0;
my $database;

$node->sql('CREATE ROLE boss LOGIN; CREATE ROLE web LOGIN; CREATE ROLE other LOGIN');

# Execute SQL as a role.  Returns what it returns.
sub as_role
{
	my ($role, $sql) = @_;
	return $node->safe_psql($database, $sql, connstr => $node->connstr($database) . " user=$role");
}

# The SQLSTATE and the words of an error, or what a command says otherwise
sub said
{
	my ($role, $sql) = @_;
	my (undef, undef, $said) = $node->psql($database, "\\set VERBOSITY verbose\n$sql",
		connstr => $node->connstr($database) . " user=$role");
	return $said =~ s/^(?:LOCATION|CONTEXT|PL\/pgSQL|SQL statement).*\n?//gmr =~ s/^psql:<stdin>:\d+: //gmr;
}

# A database of boss, whose next_id_seq is a day ahead.  Tables of the role other make IDs, too.
sub new_database
{
	$database = 'set_back_' . ++$n;
	$node->sql("CREATE DATABASE $database OWNER boss");
	as_role('boss', q{
		CREATE EXTENSION snowflake_admin CASCADE;
		SELECT snowflake_set_shard(35);
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
		INSERT INTO photos DEFAULT VALUES;
		GRANT INSERT, SELECT ON photos TO web});
	$node->safe_psql($database, setval_ahead('next_id_seq', '1 day'));
}

# Is the sequence where the clock is?
sub is_back
{
	my ($sequence) = @_;
	return $node->safe_psql($database, "SELECT abs(extract(epoch FROM lead)) < 5 FROM snowflake_sequences('$sequence')") eq 't';
}

# A row dated ahead of the clock
sub future_row
{
	my ($shard) = @_;
	return "INSERT INTO photos (id) VALUES (snowflake_id(clock_timestamp() + interval '1 hour', $shard, 1))";
}

my $call = q{CALL snowflake_set_back('next_id_seq')};
# A call that waits is past all that it does without the lock.
my $sequence_awaited = q{SELECT count(*) > 0 FROM pg_locks WHERE relation = 'next_id_seq'::regclass AND NOT granted};

# A call fails, and leaves the sequence where it is.
sub is_refused
{
	my ($pattern, $name, %how) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	as_role('boss', $how{before}) if $how{before};
	like(said($how{role} // 'boss', $how{call} // $call), $pattern, $name);
	ok(!is_back('next_id_seq'), '... and the sequence stays');
}

# --- it goes back ------------------------------------------------------------------------

new_database();
like(said('boss', q{CALL snowflake_set_back('next_id_seq', dry_run => true)}),
	qr/\ANOTICE:  00000: ALTER SEQUENCE public.next_id_seq NO CYCLE;\nNOTICE:  00000: ALTER SEQUENCE public.next_id_seq RESTART;\nNOTICE:  00000: SELECT public.snowflake_advance\(.*\);\n?\z/,
	'a dry run shows the commands');
ok(!is_back('next_id_seq'), '... and changes nothing');
unlike(said('boss', $call), qr/ERROR/, 'a sequence without future-dated rows goes back');
ok(is_back('next_id_seq'), '... to the clock');
as_role('web', 'INSERT INTO photos DEFAULT VALUES');
like(said('boss', $call), qr/NOTICE:  00000: sequence public.next_id_seq is not ahead of the clock/,
	'then there is nothing to do');

# --- rows ----------------------------------------------------------------------------------

new_database();
as_role('boss', future_row(35));
is_refused(qr/55000: sequence public.next_id_seq would duplicate IDs of table public.photos\n.*: 1, the latest/,
	'a row whose ID it could generate again is in the way');
as_role('boss', 'DELETE FROM photos WHERE id > snowflake_max_id(now()); ' . future_row(9));
$node->sql('ALTER ROLE web SET snowflake.shard = 7');
is_refused(qr/55000: sequence public.next_id_seq would duplicate IDs/,
	'... or, where a role has its own shard, one of any shard');
$node->sql('ALTER ROLE web RESET snowflake.shard');
is_refused(qr/55000: sequence public.next_id_seq would duplicate IDs/, 'a dry run says so, too',
	call => q{CALL snowflake_set_back('next_id_seq', dry_run => true)}, before => future_row(35));
as_role('boss', q{DELETE FROM photos WHERE id > snowflake_max_id(now());
	INSERT INTO photos (id) SELECT snowflake_id(now() + interval '1 hour', 9, n % 1024) + 8388608 * (n::bigint / 1024)
	FROM generate_series(1, 1000001) AS n});
is_refused(qr/55000: sequence public.next_id_seq would duplicate IDs/, 'more rows than it looks at are in the way');

# A row of a table that has another shard now, while other code generates IDs of its shard
new_database();
as_role('boss', 'CREATE TABLE kept (id bigint PRIMARY KEY DEFAULT next_id(5)); ' . future_row(5));
is_refused(qr/55000: sequence public.next_id_seq would duplicate IDs of table public.photos\n.*: 1, the latest/,
	'a row with the shard of another table of the sequence is in the way');
my $way = q{SELECT remedy FROM snowflake_check() WHERE object = 'sequence public.next_id_seq'};
my $kept = as_role('boss', $way);
like($kept, qr/\ACALL public.snowflake_move\('public.kept'::regclass, shard => N::bigint, own_sequence => true\); -- N is/,
	'... and the check has this table moved, and no other');
as_role('boss', 'CREATE FUNCTION made() RETURNS bigint LANGUAGE sql RETURN next_id(5)');
as_role('boss', $kept =~ s/\bN\b/6/r);
is_refused(qr/55000: sequence public.next_id_seq would duplicate IDs of table public.photos/,
	'... nor may a function generate IDs of this shard');
like(as_role('boss', $way), qr/\AWait until .*, or check again when function public.made\(\) generates no IDs of this sequence and of shard 5\.\z/,
	'... which the check names');
is_refused(qr/55000: sequence public.next_id_seq would duplicate IDs of table public.photos/,
	'... or IDs of any shard and any sequence', before => q{DROP FUNCTION made();
		CREATE FUNCTION made(shard bigint, sequence regclass) RETURNS bigint LANGUAGE plpgsql
		AS $$ BEGIN RETURN next_id(shard, sequence); END $$});
as_role('boss', 'DROP FUNCTION made(bigint, regclass)');
unlike(said('boss', $call), qr/ERROR/, 'then nothing generates IDs of this shard');
ok(is_back('next_id_seq'), '... and the sequence goes back');

# Whoever has an ID in an open transaction is waited for, and the row is seen then.
new_database();
my $writer = $node->background_psql($database);
$writer->query_safe(q{SET snowflake.max_lead = '2d'; BEGIN; INSERT INTO photos DEFAULT VALUES});
is_refused(qr/55P03: could not get the locks in one try.*\n.*has used next_id_seq|55P03/,
	'a transaction that has an ID is in the way', call => q{CALL snowflake_set_back('next_id_seq', tries => 1)});
my $caller = $node->background_psql($database);
$caller->query_safe(q{SET default_transaction_isolation = 'repeatable read'});
send_sql($caller, qq{\\set ON_ERROR_STOP 0\nCALL snowflake_set_back('next_id_seq', tries => 1000)});
ok($node->poll_query_until($database, $sequence_awaited), 'a call waits for it');
$writer->query_safe('COMMIT');
$writer->quit;
ok(session_prints($caller, qr/would duplicate IDs of table public\.photos/),
	'... and sees its row, also where transactions are repeatable reads by default');
ok(!is_back('next_id_seq'), '... so that the sequence stays');
$caller->quit;

# A prepared transaction may stay for ever.
new_database();
$node->safe_psql($database, q{SET snowflake.max_lead = '2d'; BEGIN; SELECT next_id(); PREPARE TRANSACTION 'an order'});
is_refused(qr/55P03: could not .*\nDETAIL:  A prepared transaction .* has used public.next_id_seq\.\nHINT:  .* Role postgres or a superuser can end it: COMMIT PREPARED 'an order', or ROLLBACK PREPARED 'an order'\./,
	'a prepared transaction is in the way, and what ends it is said', call => q{CALL snowflake_set_back('next_id_seq', tries => 1)});
my $queued = $node->background_psql($database);
send_sql($queued, 'ALTER SEQUENCE next_id_seq NO CYCLE');
ok($node->poll_query_until($database, $sequence_awaited), '... sessions wait for it');
like($node->safe_psql($database, q{SELECT remedy FROM snowflake_check() WHERE problem LIKE 'Sessions that wait%'}),
	qr/\ARole postgres or a superuser can end it: COMMIT PREPARED 'an order', or/, '... of which the check says the same');
$node->safe_psql($database, q{ROLLBACK PREPARED 'an order'});
$queued->quit;
unlike(said('boss', $call), qr/ERROR/, '... then the sequence goes back');

# --- what it cannot read -----------------------------------------------------------------------

new_database();
$node->safe_psql($database, q{CREATE SCHEMA mine AUTHORIZATION other; GRANT USAGE ON SCHEMA mine TO boss});
as_role('other', 'CREATE TABLE mine.t (id bigint PRIMARY KEY DEFAULT next_id())');
is_refused(qr/55000: cannot look for future-dated IDs in mine.t \(no privilege\)/, 'a table that it may not read is in the way');
as_role('other', 'GRANT SELECT ON mine.t TO boss; ALTER TABLE mine.t ENABLE ROW LEVEL SECURITY');
is_refused(qr/55000: cannot look .* mine.t \(policies hide rows\)/, '... and one whose policies hide rows');
as_role('other', 'ALTER TABLE mine.t DISABLE ROW LEVEL SECURITY, DROP CONSTRAINT t_pkey');
is_refused(qr/55000: cannot look .* mine.t \(no index\)/, '... and one without an index');
as_role('other', 'ALTER TABLE mine.t ADD PRIMARY KEY (id)');
my $locker = $node->background_psql($database);
$locker->query_safe('BEGIN; LOCK TABLE mine.t');
is_refused(qr/55000: cannot look .* mine.t \(locked\)/, '... and one that is locked');
$locker->query_safe('ROLLBACK');
as_role('boss', q{CREATE TABLE busy (id bigint);
	CREATE FUNCTION uses_busy() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT next_id(5) FROM busy; END});
$locker->query_safe('BEGIN; LOCK TABLE busy');
is_refused(qr/55000: cannot read all code that may use sequence public.next_id_seq, such as function public.uses_busy\(\)/,
	'... and code that names a locked table');
$locker->query_safe('ROLLBACK');
$locker->quit;
unlike(said('boss', $call), qr/ERROR/, 'then nothing is');
ok(is_back('next_id_seq'), '... and the sequence goes back');

# --- sessions -----------------------------------------------------------------------------------

new_database();
as_role('boss', future_row(35));
my $web = $node->background_psql($database, extra_params => [ '-U', 'web' ]);
$web->query('SELECT snowflake_shard()');
as_role('boss', 'SELECT snowflake_set_shard(36)');
is_refused(qr/55000: session \d+, of role web, may still have a shard of future-dated IDs/,
	'a session that was connected is in the way, although its kind is hidden');
is_refused(qr/42501: permission denied to end session \d+, of role web\n/, '... and is not ended by a role that may not do that',
	call => q{CALL snowflake_set_back('next_id_seq', end_sessions => true)});
is($web->query_safe('SELECT snowflake_shard()'), '35', '... but goes on');
$node->sql('GRANT pg_signal_backend TO boss');
my $super = $node->background_psql($database);
is_refused(qr/42501: permission denied to end session \d+, of role postgres\n/, '... nor is that of a superuser',
	call => q{CALL snowflake_set_back('next_id_seq', end_sessions => true)});
is($web->query_safe('SELECT snowflake_shard()'), '35', '... and then none is');
$super->quit;
my $dry = said('boss', q{CALL snowflake_set_back('next_id_seq', end_sessions => true, dry_run => true)});
like($dry, qr/^NOTICE:  00000: would end sessions of role web: 1$/m, 'a dry run says whose sessions it would end');
unlike($dry, qr/ERROR/, '... and goes on');
is($web->query_safe('SELECT snowflake_shard()'), '35', '... ends none');
said('boss', q{CALL snowflake_set_back('next_id_seq', end_sessions => true, dry_run => NULL)});
is($web->query_safe('SELECT snowflake_shard()'), '35', 'nor does a call for which dry_run is NULL');
is_refused(qr/22023: tries must be at least 1/, 'a call without a try',
	call => q{CALL snowflake_set_back('next_id_seq', end_sessions => true, tries => 0)});
is($web->query_safe('SELECT snowflake_shard()'), '35', '... ends none');
like(said('boss', q{CALL snowflake_set_back('next_id_seq', end_sessions => true)}),
	qr/\A(?!.*(ERROR|WARNING)).*ended sessions of role web: 1$/ms, 'a member of pg_signal_backend ends it');
ok(is_back('next_id_seq'), '... and the sequence goes back');
is($node->safe_psql($database, q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'web'}), '0', '... without that session');
$web->{run}->kill_kill if $web->{run};
$node->sql('REVOKE pg_signal_backend FROM boss; GRANT web TO boss');

# A role that has its own shard may generate IDs of it again whenever it connects.
new_database();
as_role('boss', future_row(35) . '; SELECT snowflake_set_shard(36)');
$node->sql('ALTER ROLE web SET snowflake.shard = 35');
is_refused(qr/55000: sequence public.next_id_seq would duplicate IDs of table/, 'IDs of the shard of a role count');
$node->sql('ALTER ROLE web RESET snowflake.shard');
unlike(said('boss', q{CALL snowflake_set_back('next_id_seq')}), qr/ERROR/, '... and are no longer in the way when the role has lost this shard');
ok(is_back('next_id_seq'), '... and then the sequence goes back');

# Sessions of another database, those for replication, and those that connect later are not in the way.
new_database();
as_role('boss', future_row(35) . '; SELECT snowflake_set_shard(36)');
my $elsewhere = $node->background_psql('postgres', extra_params => [ '-U', 'web' ]);
my $walsender = $node->background_psql($database, replication => 'database');
$web = $node->background_psql($database, extra_params => [ '-U', 'web' ]);
is_refused(qr/55000: session \d+, of role web, may still/, 'one session is in the way');
unlike(said('boss', q{CALL snowflake_set_back('next_id_seq', end_sessions => true)}), qr/ERROR|WARNING/,
	'a member of its role ends it');
ok(is_back('next_id_seq'), '... and the sequence goes back');
is($elsewhere->query_safe('SELECT 1'), '1', '... but goes on in another database');
is($walsender->query_safe('SELECT 1'), '1', '... and where it serves replication');
$_->quit foreach $elsewhere, $walsender;
$web->{run}->kill_kill;
$node->sql('REVOKE web FROM boss');

# A session that a call has waited for, and that has ended, and one that has connected meanwhile
new_database();
as_role('boss', future_row(35) . '; SELECT snowflake_set_shard(36)');
$writer = $node->background_psql($database);
$writer->query_safe(q{SET snowflake.max_lead = '2d'; BEGIN; SELECT next_id(36)});
$caller = $node->background_psql($database);
send_sql($caller, qq{\\set ON_ERROR_STOP 0\nCALL snowflake_set_back('next_id_seq', tries => 1000)});
ok($node->poll_query_until($database, $sequence_awaited), 'a call waits for a session');
my $late = $node->background_psql($database, extra_params => [ '-U', 'web' ]);
# The call has looked who is in the way when a try has failed.
ok($node->poll_query_until($database, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'
	AND datname = current_database()}), '... and tries again');
$writer->quit;
ok(wait_for(sub { is_back('next_id_seq') }), '... and sets the sequence back when it has gone, whoever has come meanwhile')
  or diag said('postgres', 'SELECT * FROM pg_stat_activity');
$_->quit foreach $late, $caller;

# A superuser may end all.
new_database();
as_role('boss', future_row(35) . '; SELECT snowflake_set_shard(36)');
$super = $node->background_psql($database);
unlike(said('postgres', q{CALL snowflake_set_back('next_id_seq', end_sessions => true)}), qr/ERROR|WARNING/,
	'a superuser ends the session of another one');
ok(is_back('next_id_seq'), '... and the sequence goes back');
$super->{run}->kill_kill;

# --- other sequences, and arguments ------------------------------------------------------------------

new_database();
as_role('boss', q{
	CREATE SEQUENCE tweets; CREATE SEQUENCE own; CREATE SEQUENCE traces; CREATE SEQUENCE plain;
	SELECT snowflake_alter_sequence('tweets', 'twitter'), snowflake_alter_sequence('traces', 'trace'),
		snowflake_alter_sequence('own', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000');
	CREATE TABLE tweeted (id bigint PRIMARY KEY DEFAULT next_id(7, 'tweets'));
	CREATE TABLE owned (
		id bigint PRIMARY KEY DEFAULT next_id(3, 'own', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000'));
	INSERT INTO tweeted DEFAULT VALUES;
	INSERT INTO owned DEFAULT VALUES;
	SELECT setval('own', last_value + 86400000::bigint * 1024) FROM own});
like(said('boss', q{CALL snowflake_set_back('own')}), qr/snowflake_advance\('public.own'::regclass, \d+::bigint, 'timestamp:41/,
	'a sequence of a custom layout');
is($node->safe_psql($database, q{INSERT INTO owned DEFAULT VALUES;
	SELECT bool_and(snowflake_timestamp(id, 'timestamp:41 shard:13 sequence:10 epoch:1577836800000') < now() + interval '3 s') FROM owned}),
	't', '... goes back');
as_role('boss', 'ALTER SEQUENCE tweets MAXVALUE 9007199254736894');
unlike(said('boss', q{CALL snowflake_set_back('tweets', layout => 'twitter')}), qr/ERROR/, 'a sequence that lost its layout');
as_role('boss', 'INSERT INTO tweeted DEFAULT VALUES');
is($node->safe_psql($database, q{SELECT count(*), bool_and(snowflake_timestamp(id, 'twitter') < now() + interval '3 s') FROM tweeted}),
	'2|t', '... goes back to it');

# One that has lost its layout makes no ID until it has it back, so it then goes on beyond its rows.
sub losing_layout
{
	my ($rows, $name, $lead) = @_;

	as_role('boss', "$rows; ALTER SEQUENCE tweets RESTART NO MAXVALUE");
	unlike(said('boss', q{CALL snowflake_set_back('tweets', layout => 'twitter')}), qr/ERROR/,
		"a sequence that lost its layout, $name");
	is(as_role('boss', "SELECT extract(epoch FROM lead) BETWEEN $lead - 5 AND $lead + 2 FROM snowflake_sequences('tweets')"),
		't', '... goes on beyond them');
}
is($node->safe_psql($database, q{SELECT string_agg(name, ' ') FROM snowflake_layouts()
	WHERE expires IS NOT NULL AND snowflake_admin.ids_per_tick(name::snowflake_layout) <> ids_per_tick}), '',
	'the IDs of a tick are counted as snowflake_layouts() does');
my $own_layout = 'timestamp:41 shard:13 sequence:10 epoch:1577836800000';
my $own_state = "SELECT extract(epoch FROM lead) BETWEEN 25 AND 32 FROM snowflake_sequences('own', '$own_layout')";
as_role('boss', "INSERT INTO owned VALUES (snowflake_id(now() + interval '30 s', 3, 1, '$own_layout')); ALTER SEQUENCE own NO MAXVALUE");
my $own_remedy = as_role('boss', q{SELECT remedy FROM snowflake_check() WHERE object = 'sequence public.own'});
like($own_remedy, qr/\ACALL public.snowflake_set_back\('public.own'::regclass, layout => '\Q$own_layout\E'::public.snowflake_layout\);\z/,
	'a custom layout that has been lost');
unlike(said('boss', $own_remedy), qr/ERROR/, '... comes back by what the check says');
is(as_role('boss', $own_state), 't', '... beyond rows that are ahead of the clock');
as_role('boss', "ALTER SEQUENCE own NO MAXVALUE");
like(as_role('boss', q{SELECT remedy FROM snowflake_check() WHERE object = 'sequence public.own'}), qr/\ACall snowflake_alter_sequence\(\)/,
	'... and one that is ahead, and has lost it, keeps its position');
my ($own_max) = said('boss', "SELECT snowflake_alter_sequence('own', '$own_layout')") =~ /Use (ALTER SEQUENCE \S+ MAXVALUE \d+)/;
as_role('boss', $own_max);
is(as_role('boss', $own_state), 't', '... by obeying the hint');
my $other_session = $node->background_psql($database, extra_params => [ '-U', 'web' ]);
losing_layout(q{INSERT INTO tweeted VALUES (snowflake_id(now() + interval '30 s', 7, 1, 'twitter'))}, 'with a row ahead of the clock', 30);
losing_layout(q{INSERT INTO tweeted VALUES (snowflake_id(now() + interval '50 s', 8, 1, 'twitter'))},
	'with a row of another shard ahead of the clock', 50);
$other_session->quit;
as_role('boss', q{DELETE FROM tweeted; INSERT INTO tweeted VALUES (snowflake_id(now() + interval '1 day', 7, 1, 'twitter'))});
losing_layout('SELECT', 'with a row that is too far ahead', 0);
is(as_role('boss', q{SELECT count(*) FROM snowflake_check() WHERE remedy LIKE 'CALL%snowflake_renumber(%tweeted%'}), 1,
	'... and the check shows how this row gets another ID');
like(said('boss', q{SELECT setval('tweets', last_value + 86400000::bigint * 4096) FROM tweets;
		CALL snowflake_set_back('tweets', layout => 'twitter')}),
	qr/55000: sequence public.tweets would duplicate IDs of table public.tweeted/, 'one that is ahead, and has not lost it');
like(said('boss', q{ALTER SEQUENCE tweets NO MAXVALUE; CALL snowflake_set_back('tweets', layout => 'twitter')}),
	qr/55000: sequence public.tweets would duplicate IDs of table public.tweeted/, '... or has only lost the MAXVALUE');


# What a lost layout hides from the look: tables that have moved to another sequence, and sequences
# that only programs use.
as_role('boss', q{
	CREATE SEQUENCE former; CREATE SEQUENCE later;
	SELECT snowflake_alter_sequence('former', 'discord'), snowflake_alter_sequence('later', 'discord');
	CREATE TABLE kept (id bigint PRIMARY KEY DEFAULT next_id(3, 'former'));
	CREATE TABLE moved (id bigint PRIMARY KEY DEFAULT next_id(3, 'later'));
	INSERT INTO kept DEFAULT VALUES;
	SELECT setval('former', last_value + 3600000::bigint * 4096) FROM former;
	INSERT INTO moved VALUES (snowflake_id(now() + interval '30 min', 3, 1, 'discord'));
	ALTER SEQUENCE former NO MAXVALUE});
like(said('boss', q{CALL snowflake_set_back('former', layout => 'discord')}),
	qr/55000: sequence public.former would duplicate IDs of table public.moved/, 'a table that has moved away counts');
as_role('boss', q{CREATE SEQUENCE of_programs;
	SELECT snowflake_alter_sequence('of_programs', 'timestamp:41 shard:13 sequence:10 epoch:1577836800001')});
like(said('boss', q{CALL snowflake_set_back('of_programs', layout => 'timestamp:41 shard:13 sequence:10 epoch:1577836800001')}),
	qr/55000: nothing in this database generates IDs of layout timestamp:\S+.* by sequence public.of_programs/,
	'a custom layout that no default names is an error');
like(said('boss', q{
	SELECT snowflake_alter_sequence('of_programs', 'twitter');
	ALTER SEQUENCE of_programs NO MAXVALUE;
	CALL snowflake_set_back('of_programs', layout => 'twitter')}),
	qr/snowflake_advance\('public.of_programs'::regclass, \d+::bigint\);\Z/, 'a built-in layout comes back without a default');
# Layouts without a time, or with one that ends after all times, and names with a percent sign
as_role('boss', q{
	CREATE SEQUENCE "100%z" MAXVALUE 1125899906841599 CACHE 2;
	CREATE SEQUENCE coarse;
	SELECT snowflake_alter_sequence('coarse', 'timestamp:32 shard:5 sequence:10 epoch:1577836800000 tick:1s');
	CREATE TABLE coarsely (id bigint PRIMARY KEY DEFAULT next_id(3, 'coarse', 'timestamp:32 shard:5 sequence:10 epoch:1577836800000 tick:1s'));
	INSERT INTO coarsely DEFAULT VALUES;
	ALTER SEQUENCE coarse NO MAXVALUE;
	CREATE SEQUENCE lost_traces;
	SELECT snowflake_alter_sequence('lost_traces', 'trace');
	CREATE TABLE traced (id bigint PRIMARY KEY DEFAULT next_id(3, 'lost_traces', 'trace'));
	INSERT INTO traced DEFAULT VALUES;
	ALTER SEQUENCE lost_traces NO MAXVALUE});
is(as_role('boss', q{SELECT string_agg(DISTINCT regexp_replace(object, '^sequence ', ''), ' ')
		FROM snowflake_check() WHERE problem ~ 'refuses it' AND object ~ '%z|coarse|traces' OR problem ~ 'failed'}),
	'public."100%z" public.coarse public.lost_traces', 'the check judges all of them');
is_refused($_->[0], "$_->[1] is an error", call => $_->[2], role => $_->[3])
  foreach [ qr/42809: public.photos is not a sequence/, 'a table', q{CALL snowflake_set_back('photos')} ],
  [ qr/22004: sequence must not be null/, 'NULL', q{CALL snowflake_set_back(NULL)} ],
  [ qr/42501: must be owner of sequence public.next_id_seq/, 'another role', $call, 'web' ],
  [ qr/2D000: snowflake_set_back\(\) cannot run inside a transaction block/, 'a transaction block', "BEGIN; $call" ],
  [ qr/55000: sequence public.traces serves no layout with a timestamp/, 'a layout without a time',
	q{CALL snowflake_set_back('traces')} ],
  [ qr/55000: sequence public.plain serves no layout/, 'a sequence that serves none', q{CALL snowflake_set_back('plain')} ],
  [ qr/22P02: invalid/, 'no layout', q{CALL snowflake_set_back('own', layout => 'none')} ];

done_testing();
