# What lab/commands and lab/remedies judge: rounds whose ledgers, tables, catalogs and answers are
# written by hand, with each fault that they must name, and with none that they must not.  The other tests
# of the two see rounds without faults, to which a judge that is blind is content, too.

use lib 'lab/commands.d', 'lab/remedies.d';
use SnowflakeTest;
use Time::HiRes qw(usleep);
use World;

plan skip_all => 'DBD::Pg is not installed' unless eval { require DBD::Pg };
require Commands;
require Obey;
Commands->import;

# Pauses are short, and a clock that is looked at goes on by as much as a test says.
my $tick = 0;
my $passed = 0;
{
	no strict 'refs';
	no warnings qw(redefine prototype);
	foreach my $package (qw(Round Obey))
	{
		*{"${package}::sleep"} = sub { return usleep(10_000) };
		*{"${package}::time"} = sub { return Time::HiRes::time() + ($passed += $tick) };
	}
}

my $node = start_lab_server('verdicts');
my $directory = PostgreSQL::Test::Utils::tempdir;
$node->sql("CREATE ROLE $_ LOGIN") foreach qw(boss lender);

# Faults that a round has had since they were asked for, as lines.  IDs and seconds are not those of another run.
sub faults
{
	my ($round) = @_;
	return join "\n", map { s/\b\d{15,}\b/ID/gr =~ s/: \K\d+(?= s, )/0/r =~ s/ +$//r } map { "$_->[0]: $_->[1]" } splice @{ $round->{faults} };
}

# Rounds of which {by_hand} has what a test does in place of a method.
sub methods_by_hand
{
	my ($class, $parent, @methods) = @_;
	no strict 'refs';

	@{"${class}::ISA"} = ($parent);
	foreach my $method (@methods)
	{
		my $real = $parent->can($method) or die $method;
		*{"${class}::$method"} = sub { my ($self) = @_; return ($self->{by_hand}{$method} // $real)->(@_) };
	}
	return;
}

methods_by_hand('Commanded', 'Round', qw(call_in_block call_until_it_ends catalogs clean_up judge judge_catalogs judge_kept judge_keys kept make_world
	new_copy rows start_load stop_load subscribe undisturbed));
methods_by_hand('Obeyed', 'Obey', qw(check judge_inserts let_time_pass make_world obey obey_until_well start_load step_clock stop_load work
	clean_up judge add_pooled));

sub ChangedByHand::change { return 'COMMENT ON TABLE app.photos IS $$changed$$' }

# --- lab/commands: whole rounds -----------------------------------------------------------

my $photos = { number => 0, full => 'app.photos', key => 'id', maker => 'next_id', count => 12, references => [] };
my $comments = { number => 1, full => 'app.comments', key => 'id', maker => 'next_id', count => 12,
	references => [ { column => 'photo', to => $photos, action => 'CASCADE' } ] };
my $world = <<'EOS';
CREATE SCHEMA app; GRANT ALL ON SCHEMA app TO PUBLIC;
CREATE SCHEMA lab; GRANT ALL ON SCHEMA lab TO PUBLIC;
CREATE TABLE lab.tx (client integer, number integer, PRIMARY KEY (client, number)); GRANT ALL ON lab.tx TO PUBLIC;
CREATE FUNCTION lab.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION lab.event() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE TABLE app.photos (id bigint PRIMARY KEY DEFAULT next_id(7), token text, n integer DEFAULT 0);
CREATE TABLE app.comments (id bigint DEFAULT next_id(7), token text, n integer DEFAULT 0, photo bigint);
CREATE TABLE app.likes (photo bigint REFERENCES app.photos, n integer UNIQUE CHECK (n > 0));
CREATE INDEX likes_n ON app.likes (n);
CREATE SEQUENCE app.numbers;
CREATE TABLE app.days (id bigint, n integer) PARTITION BY RANGE (id);
CREATE TABLE app."day 1" PARTITION OF app.days FOR VALUES FROM (1) TO (2);
INSERT INTO app.photos (id, token) SELECT g, '0-' || g FROM generate_series(1, 12) AS g;
INSERT INTO app.comments SELECT 20 + g, '0-' || g, g, g FROM generate_series(1, 12) AS g;
ALTER TABLE app.comments REPLICA IDENTITY FULL;
CREATE TRIGGER noticed AFTER INSERT ON app.likes EXECUTE FUNCTION lab.nothing();
CREATE TRIGGER noticed AFTER INSERT ON app.days FOR EACH ROW EXECUTE FUNCTION lab.nothing();
CREATE POLICY seen ON app.likes;
ALTER TABLE app.likes ALTER n SET STATISTICS 7;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.photos, app.comments TO lab_app;
GRANT SELECT ON app.photos, app.likes, app."day 1" TO lab_other;
GRANT UPDATE (n) ON app.likes TO lab_other;
GRANT USAGE ON SEQUENCE app.numbers TO lab_other;
CREATE PUBLICATION everything FOR TABLE app.photos, app.comments;
CREATE PUBLICATION chosen FOR TABLE app.likes;
ALTER TABLE app.photos OWNER TO "lab owner";
CREATE FUNCTION lab.give_up() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE lock_not_available; END $$;
CREATE FUNCTION lab.spoil() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
	DROP TRIGGER noticed ON app.likes; DROP TRIGGER noticed ON app.days; DROP POLICY seen ON app.likes; DROP PUBLICATION chosen;
	ALTER TABLE app.likes DROP CONSTRAINT likes_photo_fkey, DROP CONSTRAINT likes_n_key, DROP CONSTRAINT likes_n_check;
	ALTER TABLE app.comments ALTER n SET STATISTICS 8;
	REVOKE SELECT ON app.likes, app."day 1" FROM lab_other; REVOKE UPDATE (n) ON app.likes FROM lab_other;
	ALTER TABLE app.likes ALTER n SET STATISTICS -1; REVOKE USAGE ON SEQUENCE app.numbers FROM lab_other $$;
EOS
# What the clients have done: the third one, nothing
my %ledgers = (1 => <<'EOS', 2 => <<'EOS');
try 1
I 0 1-1 5 101
I 1 1-1 6 201 0=0-2
ok 1
try 2
U 1 1-1 7
R 1 1-1 0=1-1
ok 2
try 3
I 1 1-2 0 202
ok 3
try 4
D 1 0-12
ok 4
try 5
U 0 0-1 99
D 0 0-2
try 6
U 0 0-2 22
try 7
R 1 0-11 0=
ok 7
error 57P01 gone
error 08006 gone
error 40001 later
error 55P03 later
EOS
error 57014 canceled
error 40P01 deadlock
error 53300 full
error 25P02 ended
error silent silent
try 5
U 0 0-3 33
ok 5
EOS
my @load = ('INSERT INTO app.photos VALUES (101, $$1-1$$, 5); INSERT INTO app.comments VALUES (201, $$1-1$$, 7, 101), (202, $$1-2$$, 0, NULL)',
	'UPDATE app.comments SET photo = NULL WHERE token = $$0-11$$; DELETE FROM app.comments WHERE token = $$0-12$$',
	'UPDATE app.photos SET n = 22 WHERE token = $$0-2$$; UPDATE app.photos SET n = 33 WHERE token = $$0-3$$',
	'INSERT INTO lab.tx SELECT 1, unnest(ARRAY[1, 2, 3, 4, 6, 7]); INSERT INTO lab.tx VALUES (2, 5)');

# A round that runs in a world by hand, whose load is what the ledgers say, and that is tampered with
# before it is judged.
my $rounds = 0;
sub run_by_hand
{
	my ($by_hand, %round) = @_;
	no warnings 'redefine';
	local *World::new = sub { return { tables => [ $photos, $comments ], sql => [$world], special => 'row', %$by_hand } };

	srand 1;
	mkdir "$directory/" . ++$rounds;
	my $round = Commanded->new(node => $node, directory => "$directory/$rounds", events => [], %round);
	write_file("$round->{directory}/ledger.$_", ($round->{ledgers}{$_} // $ledgers{$_}) =~ s/ /\t/gr) foreach keys %ledgers;
	$round->{by_hand}{start_load} = sub { $round->{started} = 3; $round->must('work', @load) };
	$round->{by_hand}{judge} = sub { $round->must(@$_) foreach @{ $round->{tamper} }; Round::judge(@_) };
	$round->{line} = $round->run;
	return $round;
}

my %published = (subscriber => 'full', publication => 'everything',
	prepare => [ 'ALTER TABLE app.photos REPLICA IDENTITY FULL' ]);
my $keys = q{SELECT count(*) FROM pg_constraint WHERE conrelid = 'app.photos'::regclass AND contype = 'p'};
my $round = run_by_hand({ call => 'SELECT', in_block => 'SELECT lab.give_up()', stored => 'SELECT 1', %published },
	kind => 'move', tamper => [ [ work => 'CREATE INDEX photos_ccnew ON app.photos (n)' ] ]);
is(faults($round), '', 'a round without faults has none');
like($round->{line}, qr/^move: 1 calls, 7 transactions/, '... and one that is committed counts, acknowledged or not');
is($node->safe_psql('subscriber', $keys), 0, '... and a subscriber that is to compare all columns has no key');

%published = (subscriber => 1, publication => 'everything',
	prepare => [ q{ALTER TABLE app.photos ADD CONSTRAINT today CHECK (id < snowflake_min_id(now() + interval '1 day'))} ]);
$round = run_by_hand({ call => 'SELECT lab.spoil()', in_block => 'SELECT', stored => 'SELECT n FROM app.photos WHERE id = 2', %published },
	kind => 'partition', ledgers => { 1 => "$ledgers{1}error 23505 x\nerror 23505 x\nerror 23503 y\n" },
	tamper => [
		[ work => q{DELETE FROM app.comments WHERE token = '0-1'}, q{INSERT INTO app.comments VALUES (300, 'x-1', 0, 1)},
			q{UPDATE app.comments SET n = 77 WHERE token = '0-3'}, q{UPDATE app.comments SET id = 301 WHERE token = '0-4'},
			q{INSERT INTO app.comments SELECT * FROM app.comments WHERE token = '0-5'},
			q{UPDATE app.comments SET photo = 8 WHERE token = '0-6'}, q{UPDATE app.comments SET photo = 999 WHERE token = '0-7'},
			q{UPDATE app.comments SET photo = NULL WHERE token = '0-8'}, 'DELETE FROM lab.tx WHERE number = 3',
			q{UPDATE app.photos SET n = 23 WHERE token = '0-2'},
			q{INSERT INTO app.photos VALUES (snowflake_min_id(now() + interval '12 hours'), 'x-2')},
			'REVOKE INSERT ON app.comments FROM lab_app; GRANT DELETE ON app.comments TO lab_other',
			map { "CREATE EVENT TRIGGER snowflake_${_}_x ON sql_drop EXECUTE FUNCTION lab.event()" } qw(widen partition renumber) ],
		[ subscriber => q{DELETE FROM app.photos WHERE token = '0-9'; INSERT INTO app.photos VALUES (400, 'x-3')},
			q{UPDATE app.comments SET photo = 1 WHERE token = '0-10'} ] ]);
is(faults($round) . "\n", <<'EOS', 'each fault is named, and what it is about');
transaction blocks that make others wait: 0 s, no error
transactions that were acknowledged and are lost: transaction 3 of client 1
errors of clients: 23503 y (1 times)
errors of clients: 23505 x (2 times)
rows with another value: app.photos, row 0-2: n is 23, not 22
rows that nobody committed: app.photos, row x-2
rows that are lost: app.comments, row 0-1
rows with another value: app.comments, row 0-3: n is 77, not 3
rows with another key: app.comments, row 0-4: 301, not 24
rows that are there twice: app.comments, row 0-5
rows that refer to another row: app.comments, row 0-6: photo is of row "0-8", not "0-6"
orphans: app.comments, row 0-7: photo is of row "nobody", not "0-7"
rows that refer to another row: app.comments, row 0-8: photo is of row "", not "0-8"
rows that nobody committed: app.comments, row 1-2
rows that nobody committed: app.comments, row x-1
rows that a subscriber lacks or has otherwise: app.photos, row 0-9: missing, not 9 0
rows that a subscriber lacks or has otherwise: app.photos, row x-3: 400 0, not missing
rows that a subscriber lacks or has otherwise: app.comments, row 0-10: 30 10 0=0-1, not 30 10 0=0-10
rows that a subscriber lacks or has otherwise: app.comments, row 0-9: 29 9 0=nobody, not 29 9 0=0-9
rows of a later day that are refused: 23514 new row for relation "photos" violates check constraint "today" DETAIL:  Failing row contains (ID, later, 0).
stored rows of a row type that have changed: 23, not 0
next keys that are not beyond all: app.photos: ID after ID
next keys that cannot be made: app.comments: 42501 permission denied for table comments
helpers that are left: event trigger snowflake_partition_x O
helpers that are left: event trigger snowflake_renumber_x O
helpers that are left: event trigger snowflake_widen_x O
lost by an undisturbed run: constraint app.likes likes_n_key u UNIQUE (n) t f f
lost by an undisturbed run: constraint app.likes likes_photo_fkey f FOREIGN KEY (photo) REFERENCES app.photos(id) t f f
lost by an undisturbed run: policy app.likes seen * t PUBLIC
lost by an undisturbed run: privilege column app.likes.n lab_other UPDATE f of the owner
lost by an undisturbed run: privilege relation app.likes lab_other SELECT f of the owner
lost by an undisturbed run: published chosen app likes {n,photo}
lost by an undisturbed run: statistics of app.comments.n -1
lost by an undisturbed run: statistics of app.likes.n 7
lost by an undisturbed run: statistics of app.likes_n_key.1 -1
lost by an undisturbed run: trigger CREATE TRIGGER noticed AFTER INSERT ON app.days FOR EACH ROW EXECUTE FUNCTION lab.nothing() O
lost by an undisturbed run: trigger CREATE TRIGGER noticed AFTER INSERT ON app.likes FOR EACH STATEMENT EXECUTE FUNCTION lab.nothing() O
differences from an undisturbed run: lacks: privilege relation app.comments lab_app INSERT f of the owner
differences from an undisturbed run: has: event trigger snowflake_partition_x O
differences from an undisturbed run: has: event trigger snowflake_renumber_x O
differences from an undisturbed run: has: event trigger snowflake_widen_x O
differences from an undisturbed run: has: privilege relation app.comments lab_other DELETE f of the owner
EOS
is($node->safe_psql('subscriber', $keys), 1, '... and a subscriber has a key');

# --- lab/commands: how a call ends -----------------------------------------------------------

# Give the answers one after the other, then say in which session the call ended.
$node->safe_psql('work', <<'EOS');
CREATE SEQUENCE lab.calls; GRANT ALL ON SEQUENCE lab.calls TO PUBLIC;
CREATE TABLE lab.ended (how text); GRANT ALL ON lab.ended TO PUBLIC;
CREATE FUNCTION lab.answers(answers text[], published boolean DEFAULT false) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	answer text := answers[nextval('lab.calls')];
BEGIN
	IF answer = 'sleep' THEN PERFORM set_config('application_name', 'lab: asleep now', false), pg_sleep(100);
	ELSIF answer IS NOT NULL THEN RAISE '%', substr(answer, 7) USING ERRCODE = left(answer, 5); END IF;
	INSERT INTO lab.ended VALUES (concat_ws(' ', session_user, current_setting('transaction_isolation'),
		CASE WHEN published THEN 'published' END));
END $$;
EOS

# Call what gives some answers.  Returns how that ends, and the number of calls.
sub ends_after
{
	my ($answers, %round) = @_;
	my @events = @{ $round{events} // [] };
	my $call = $round{call} // "SELECT lab.answers('{" . join(',', map { qq{"$_"} } @$answers) . "}')";
	$node->safe_psql('work', 'SELECT setval($$lab.calls$$, 1, false); TRUNCATE lab.ended');
	$round = Commanded->new(node => $node, directory => $directory, kind => 'move', role => 'lab owner', calls => 0,
		options => '-c default_transaction_isolation=serializable', %round);
	$round->{world} //= {};
	%{ $round->{world} } = (call => $call, tables => [$photos], %{ $round->{world} });
	$round->{world}{call} = 'another' if $round{another};
	return $round->call_until_it_ends($call, @events) =~ s/ *$//r . ", $round->{calls} calls";
}
sub how_it_ended { return $node->safe_psql('work', 'SELECT how FROM lab.ended') }

is(ends_after([ '40001 x', '40P01 x', '57014 x', '55P03 x', ('P0001 works on table x in process 1') x 12 ]), 'ended, 17 calls',
	'a call that is disturbed is called again');
is(how_it_ended(), 'lab owner serializable', '... by its role, with its options');
is(ends_after([ ('P0001 no, never') x 20 ]), 'P0001 no, never, 11 calls', 'one that is refused ten times is not');
is(ends_after([ ('55P04 x') x 20 ]), '55P04 x, 11 calls', '... nor one that is refused in another way');
is(ends_after([ ('P0001 it cannot run in a transaction that is serializable') x 12 ]), 'ended, 13 calls', 'one that its session keeps from running');
is(how_it_ended(), 'lab owner read committed', '... is called without options');
is(ends_after([ '55000 these need indexes', ('P0001 x') x 10 ], world => { indexes => q{SELECT 'CREATE INDEX made ON app.photos (n)'} }), 'ended, 12 calls',
	'one that needs indexes gets them');
is(ends_after([ ('P0001 these need indexes') x 12 ]), 'P0001 these need indexes, 11 calls', '... unless it says so in another way');
my $told = 'P0001 Execute this on each subscriber, or it will stop: CREATE TABLE app.told (); Then call this with published';
is(ends_after([ $told, ('P0001 x') x 10 ], world => { subscriber => 1 }), 'ended, 12 calls', 'one whose subscriber needs something');
is(how_it_ended(), 'lab owner serializable published', '... is called with published');
is($node->safe_psql('subscriber', 'SELECT count(*) FROM app.told'), 0, '... after the subscriber has it');
my %undo = (world => { undo => q{SELECT lab.answers('{}', true)} }, must_undo => 1);
is(ends_after([ ('40001 x') x 3 ], %undo), 'ended, 2 calls', 'one that is to be undone');
is(how_it_ended(), 'lab owner serializable published', '... is undone after the first error');
is("$round->{undone} @{ $round->{happened} }", '1 undo', '... which the round knows');
is(ends_after([], %undo) . how_it_ended(), 'ended, 1 callslab owner serializable', '... but not without an error');
is(ends_after([ ('40001 x') x 3 ], %undo, another => 1), 'ended, 4 calls', '... nor another call');
is(ends_after([ ('40001 x') x 3 ], %undo, must_undo => 0, control => 'full'), 'ended, 4 calls', '... nor in a control that does not say so');
is(faults($round), '', 'all these calls end');
$tick = 30;
is(ends_after([ ('40001 x') x 20 ], another => 1) =~ s/ \d+ calls//r, 'no end,', 'one that never ends');
like(faults($round), qr/^calls that do not end: SELECT lab.answers/, '... is named');
$tick = 0;
my @interrupting = (qw(reader vacuum reindex cancel terminate), 'lost client');
is(ends_after([ ('sleep') x 3, '40001 x' ], events => \@interrupting, at => 'asleep'), 'ended, 5 calls', 'a call that is interrupted is called again');
is("@{ $round->{happened} }", "@interrupting", '... and all that is to happen does');
my @others = ('change', 'other command', 'prepared transaction', 'detach', 'second call', 'cancel');
is(ends_after(['sleep'], events => \@others, at => 'asleep', control => 'full',
	world => bless { other => q{INSERT INTO lab.ended VALUES ('other')}, schema => 'app' }, 'ChangedByHand'), 'ended, 2 calls', '... as is one beside others');
like($round->{detached}, qr/^day \d{4}-\d\d-\d\d$/, '... of which one detaches a partition');
ok($round->{canceling}, '... and may be canceled');
is("$round->{others} @{ $round->{changes} }", '1 COMMENT ON TABLE app.photos IS $$changed$$', '... others are known');
ok(defined $round->{prepared_until}, '... and one is prepared');
ok(wait_for(sub { $round->run_tasks; !@{ $round->{tasks} } }), '... until they have ended');
like($round->{detach}{result}{error}{message}, qr/"photos"/, '... the first table was to lose a partition');
$round->end_prepared('now');
is($round->{prepared_until}, 0, '... or committed, as the one that was prepared');
is($node->safe_psql('work', q{SELECT concat_ws(' ', obj_description('app.photos'::regclass), (SELECT number FROM lab.tx WHERE client = 0), (SELECT string_agg(how, ',' ORDER BY how) FROM lab.ended))}),
	'changed 1 lab owner read committed,lab owner serializable,other', '... and each has done what it was to do');

# --- lab/commands: what is judged -----------------------------------------------------------

# A round that runs nothing
sub round_by_hand
{
	my ($by_hand, %round) = @_;
	return $round = Commanded->new(node => $node, directory => $directory, kind => 'move', how => 'ended', by_hand => $by_hand,
		world => { schema => 'app', tables => [ $photos, $comments ] }, %round);
}

# Judge rows that a table has by those that it must have.
sub judged
{
	my ($table, $should, $has, %round) = @_;
	round_by_hand({ rows => sub { $has } }, %round)->judge_rows(undef, $table, $should);
	return faults($round);
}
sub row { my ($key, @more) = @_; return { key => $key, n => 0, times => 1, refers => {}, @more } }

my $five = 7 << 23 | 5 << 10 | 3;
my $nine = 7 << 23 | 9 << 10 | 3;
my $four = 7 << 23 | 4 << 10 | 3;
is(judged($photos, { a => row($five), b => row($four) }, { a => row($nine), b => row($four) }, kind => 'renumber'), '', 'a key of shard 5 gets shard 9');
is(judged($photos, { a => row($five) }, { a => row($five) }, kind => 'renumber'), "rows with another key: app.photos, row a: $five, not $nine", '... or is seen');
is(judged($photos, { a => row($five) }, { a => row($nine) }), "rows with another key: app.photos, row a: $nine, not $five", '... and no other command changes it');
is(judged($comments, { a => row($five) }, { a => row($five) }, kind => 'renumber'), '', '... nor is it changed in another table');
is(judged($photos, { a => row($five) }, { a => row($five) }, kind => 'renumber', @$_), '', "... nor if the command is @$_")
	foreach [ undone => 1 ], [ how => '55000' ];
is(judged($photos, { a => row($five) }, { a => row($nine) }, @$_), "rows with another key: app.photos, row a: $nine, not $five", "... as others do not, @$_")
	foreach [ undone => 1 ], [ how => '55000' ];
is(judged($photos, { a => row('none') }, { a => row(3) }), '', 'a key that is not known can be any');
is(judged($photos, { a => row(1) }, {}, first_rows => { a => 1 }), '', 'a row of a detached partition is not in the table');
is(judged($comments, { a => row(1) }, {}, first_rows => { a => 1 }), 'rows that are lost: app.comments, row a', '... as a row of another table is');
is(judged($photos, { a => row(1, n => undef) }, { a => row(1) }), 'rows with another value: app.photos, row a: n is 0, not', 'a row without a value has none');

# What the deletion of rows does
my $albums = { number => 2, full => 'app.albums', references => [ { to => $photos, action => 'SET NULL' }, { to => $comments, action => 'CASCADE' } ] };
my $rows = [ { a => row(1), b => row(2) }, { c => row(3, refers => { 0 => 'a' }), d => row(4, refers => { 0 => 'b' }) },
	{ e => row(5, refers => { 0 => 'a', 1 => 'd' }), f => row(6, refers => { 0 => 'b', 1 => 'c' }) } ];
round_by_hand({}, world => { tables => [ $photos, $comments, $albums ] })->delete_rows($rows, 0, 'a');
is(join(' ', map { join ',', sort keys %$_ } @$rows), 'b d e', 'rows go with the rows to which they refer');
is($rows->[2]{e}{refers}{0}, undef, '... or refer to none');
is($rows->[2]{e}{refers}{1}, 'd', '... or to one that stays');

# Old rows that drop_partitions drops, and must drop
my %old = (kind => 'drop_partitions', cut => 3 << 50);
my $others = { map { ($_ => sub { }) } qw(judge_catalogs judge_keys) };
foreach (
	[ 'old rows go, and those of a serial stay', 'ended', '', 0 ],
	[ 'old rows that are left are seen', 'ended', 'rows that nobody committed: app.photos, row old', 1 ],
	[ '... unless the command was refused', '55000', '', 1 ],
	[ '... which may have dropped them', '55000', '', 0 ])
{
	my ($name, $how, $fault, $has_old) = @$_;
	my @has = (serial => row(7), new => row(4 << 50), $has_old ? (old => row(2 << 50)) : ());
	my $first = { serial => row(7), new => row(4 << 50), old => row(2 << 50) };
	round_by_hand({ %$others, rows => sub { $_[2]{number} == 0 ? {@has} : {} } }, %old, first => [ $first, {} ])->judge($how);
	is(faults($round), $fault, $name);
}
$round = round_by_hand({ %$others, rows => sub { return {} } }, first => [ {}, {} ],
	later => [ undef, {}, map { { result => { error => { sqlstate => $_, message => 'later' } } } } '57014', '23514' ]);
$round->judge('ended');
is(faults($round), 'rows of a later day that are refused: 23514 later', 'rows of a later day may be disturbed only');
write_file("$directory/ledger.1", "error\t23503\tkey\nerror\t23505\tkey\n");
$round = round_by_hand({ %$others, rows => sub { return {} } }, kind => 'renumber', first => [ {}, {} ]);
$round->{started} = 1;
$round->judge('ended');
is(faults($round), 'errors of clients: 23505 key (1 times)', 'a client may refer to a row that gets another key');
foreach ([ { dumped => 1 }, 'materialized view', '' ], [ {}, 'materialized view', 'nothing, not 1' ], [ { dumped => 1 }, 'row', 'nothing, not 1' ])
{
	my ($dumped, $special, $fault) = @$_;
	$round = round_by_hand({ %$others, rows => sub { return {} } }, first => [ {}, {} ], stored => 1, %$dumped);
	@{ $round->{world} }{qw(stored special)} = ('SELECT NULL', $special);
	$round->judge('ended');
	is(faults($round), $fault && "stored rows of a row type that have changed: $fault", "stored rows of a $special" . ($fault ? ' are seen' : ' can be made anew'));
}

# A partition that somebody detaches
$node->safe_psql('work', q{CREATE TABLE app."day 4" AS SELECT '0-' || n AS token FROM unnest('{4,9,14}'::int[]) AS n UNION ALL SELECT '1-4'});
my %keys = map { ("0-$_" => $_) } 1 .. 15;
my $gone = 'partitions that somebody detached and that are gone: app."day 5"';
foreach (
	[ 'a detached partition has its rows', '', detached => 'day 4' ],
	[ 'a row that it lacks is seen', 'rows of a detached partition that are lost: app."day 4" has 3 of 4', detached => 'day 4', first_keys => { %keys, '0-19' => 1 } ],
	[ 'a partition that is gone is seen', $gone, detached => 'day 5', detach => { result => {} } ],
	[ '... also if it was being dropped', $gone, detached => 'day 5', detach => { result => { error => { message => 'removed concurrently' } } } ],
	[ '... unless nobody detached it', '', detached => 'day 5', detach => { result => { error => { message => 'no such table' } } } ],
	[ '... or nobody knows', '', detached => 'day 5' ],
	[ 'one whose detachment is pending stays', $gone, detached => 'day 5', canceling => { result => { rows => [1] } } ],
	[ '... until it is restored', '', detached => 'day 5', canceling => { result => { rows => [1] } }, dumped => 1 ])
{
	my ($name, $fault, %round) = @$_;
	my $session = round_by_hand({}, first_keys => \%keys, %round)->connect_patiently;
	$round->judge_detached($session);
	is(faults($round), $fault, $name);
	is(join(' ', sort keys %{ $round->{first_rows} }), '0-14 0-4 0-9', '... and its rows are none of the table') if $name =~ /has its rows/;
}

# Partitions with a gap, and keys
$node->safe_psql('work', 'CREATE TABLE app.weeks (id bigint) PARTITION BY RANGE (id);' . join ';', map {
	"CREATE TABLE app.week_$_->[0] PARTITION OF app.weeks FOR VALUES FROM ($_->[0]::bigint << 33) TO ($_->[1]::bigint << 33)" } [ 1, 2 ], [ 2, 3 ], [ 4, 5 ]);
my $session = $round->connect_patiently;
round_by_hand({}, world => { tables => [ { full => 'app.weeks' } ] })->judge_ranges($session);
my $gap = 'gaps between partitions: before app.week_4';
is(faults($round), $gap, 'a gap between partitions is seen');
foreach ([ ended => $gap, 'make_partitions' ], [ 55000 => '', 'make_partitions' ], [ ended => '', 'move' ],
	[ ended => $gone, 'drop_partitions', detached => 'day 5', detach => { result => {} } ])
{
	my ($how, $fault, $kind, @round) = @$_;
	round_by_hand({ %$others, rows => sub { return {} } }, kind => $kind, first => [ {} ], world => { schema => 'app',
		tables => [ { %$photos, full => 'app.weeks' } ] }, @round)->judge($how);
	is(faults($round), $fault, "... after $kind that ended with $how" . (@round ? ', but not where one is detached' : ''));
}
$node->safe_psql('work', 'CREATE TABLE app.moved (id bigint DEFAULT snowflake_id(now(), 7, 3), token text); GRANT ALL ON app.moved TO lab_app; CREATE SEQUENCE app.rows; GRANT ALL ON SEQUENCE app.rows TO lab_app');
my $moved = { %$photos, full => 'app.moved' };
my $key_of = sub { my ($of, @round) = @_; $node->safe_psql('work', "ALTER TABLE app.moved ALTER id SET DEFAULT $of");
	round_by_hand({}, kind => 'move_back', @round)->judge_keys($round->{table} // $moved); return faults($round) };
is($key_of->('snowflake_id(now(), 7, 3)'), '', 'a key of the shard is one');
is($key_of->('snowflake_id(now(), 7 + (nextval($$app.rows$$) = 1099)::int, 3)'), 'next keys that are IDs of another shard: app.moved: ID', 'one of many of another shard is seen');
is($key_of->('snowflake_id(now(), 8, 3)', how => '55000'), '', '... unless the command was refused');
is($key_of->('snowflake_id(now(), 8, 3)', kind => 'move'), '', '... or is another one');
is($key_of->('snowflake_id(now(), 8, 3)', table => { %$moved, number => 1 }), '', '... or of another table');
is($key_of->('1/0', table => { %$moved, maker => 'none' }), '', 'a table whose keys are made by clients makes none');
$node->safe_psql('work', 'INSERT INTO app.moved VALUES (5)');
is($key_of->(5, kind => 'move'), 'next keys that are not beyond all: app.moved: 5 after 5', 'a key that comes again is seen');

# Differences of the catalogs from runs in which nobody disturbs the command, by their orders
sub differences
{
	my ($has, $runs, %round) = @_;
	my ($kept, @runs) = (0);
	my $how = delete $round{how} // 'ended';
	my @changes = @{ delete $round{changes} // [] };
	round_by_hand({ judge_kept => sub { $kept++ }, catalogs => sub { return @$has },
		undisturbed => sub { my ($self, @steps) = @_; push @runs, "@steps"; my $run = $runs->{"@steps"} // ['none']; return ('ended', @$run) } }, %round);
	$round->{changes} = \@changes;
	$round->judge_catalogs(undef, $how, { '0 1' => 1, '0 3' => 1 });
	return join "\n", faults($round) || (), "after @runs" . ($kept ? ', which keep what they must' : '');
}

my $differs = 'differences from an undisturbed run:';
is(differences([qw(a b)], { '0 call' => [qw(a b)] }), 'after 0 call, which keep what they must', 'catalogs are as after an undisturbed run');
is(differences([qw(a b)], { '0 call' => [qw(a c)] }), "$differs lacks: c\n$differs has: b\nafter 0 call, which keep what they must", '... or not');
my %changed = ('0 x z call' => [qw(a b)], '0 call x z' => [qw(a c)]);
is(differences([qw(a)], \%changed, changes => [qw(x y z)]), 'after 0 x z call 0 call x z', 'a change that was committed comes before or after');
is(differences([qw(a b c)], \%changed, changes => [qw(x y z)]), 'after 0 x z call 0 call x z', '... each line as in one or another');
is(differences([qw(d)], \%changed, changes => [qw(x y z)]), "$differs lacks: a\n$differs has: d\nafter 0 x z call 0 call x z", '... or not');
my %both = ('0 call other' => [qw(a b)], '0 other call' => [qw(a c)]);
is(differences([qw(a c)], \%both, others => 1), 'after 0 call other 0 other call', 'another command comes before or after');
is(differences([qw(a c)], { '0 x call other' => ['a'], '0 call other x' => ['a'], '0 x other call' => ['a'], '0 other call x' => [qw(a c)] },
	others => 1, changes => ['x']), 'after 0 x call other 0 call other x 0 x other call 0 other call x', '... as do changes');
my %undone = ('1 call' => ['a'], '0 call' => ['b']);
is(differences(['a'], \%undone, undone => 1), 'after 1 call', 'a command that was undone has done nothing');
is(differences(['b'], \%undone, undone => 1), 'after 1 call 0 call, which keep what they must', '... or had ended');
is(differences([qw(b c d)], \%undone, undone => 1), "$differs has: c\n$differs has: d\nafter 1 call 0 call, which keep what they must", '... and is compared with what is nearer');
is(differences(['b'], \%undone, how => '55000 no'), "$differs the call ended with 55000 no, and undisturbed with ended\nafter 0 call, which keep what they must",
	'a command that ends as it would not is seen');
is(differences([ 'a', 'x "day 4"' ], { '0 call' => [ 'a', 'y "day 4_pkey"' ] }, detached => 'day 4'), 'after 0 call, which keep what they must', 'a partition that somebody detaches is left out');

# --- lab/commands: a round -----------------------------------------------------------

# Run a round whose calls end as told, one after the other.  Returns its faults, the calls and the verdict that it asks for.
sub run_of
{
	my ($ends, $by_hand, %round) = @_;
	my @ends = @$ends;
	my $hand = sub { };
	my @done;
	my %hand = (map({ ($_ => $hand) } qw(clean_up kept new_copy start_load stop_load)),
		make_world => sub { $_[0]{world} = { call => 'call', %$by_hand } }, judge => sub { push @done, "judge $_[1]" },
		map({ my $name = $_; ($name => sub { push @done, $name }) } qw(subscribe call_in_block)),
		call_until_it_ends => sub { my ($self, $call, @events) = @_; push @done, join ' ', $call, @events; %$self = (%$self, %round); return shift @ends });
	srand 1;
	round_by_hand(\%hand, events => [], %round);
	@$round{qw(transactions tasks)} = (0, $round{tasks});
	$round->run;
	return join '; ', faults($round) || (), @done;
}

is(run_of(['ended'], {}), 'call; judge ended', 'a round calls, and judges');
is(run_of(['ended'], { subscriber => 1, in_block => 1 }), 'subscribe; call_in_block; call; judge ended', '... with a subscriber, and in a transaction block');
is(run_of([ 'ended', 'ended' ], { call => 'call_schema()' }), 'call_schema(); call_schema(); judge ended', '... a command of a schema again');
my $twice = 'call; other; call';
is(run_of([ '55000 a', '55000 b', '55000 c' ], { other => 'other' }, others => 1), "two commands that both refuse: 55000 c / 55000 b; $twice; judge 55000 c", 'commands that refuse each other are seen');
is(run_of([ '55000 a', '55000 b', '55000 c' ], { other => 'other', special => 'row' }, others => 1), "$twice; judge 55000 c", '... but not where they may');
is(run_of([ '55000 a', '55000 b', 'ended' ], { other => 'other' }, others => 1), "$twice; judge ended", '... one of them may');
is(run_of([ '55000 a', 'ended', '55000 c' ], { other => 'other' }, others => 1), "$twice; judge 55000 c", '... or the other one');
is(run_of([ '42501 a', '55000 b', '42501 c' ], { other => 'other' }, others => 1), "$twice; judge 42501 c", '... or refuse for another reason');
is(run_of([ '55000 a', '42501 b', '55000 c' ], { other => 'other' }, others => 1), "$twice; judge 55000 c", '... each of them');
is(run_of([ 'ended', '55000 b' ], { other => 'other' }, others => 1), 'call; other; judge ended', '... and a call that has ended is not called again');
is(run_of([ '55000 a', 'ended' ], { other => 'other' }, others => 1, undone => 1), 'call; other; judge 55000 a', '... nor one that was undone');
is(run_of(['ended'], {}, events => [ 'other command', 'cancel', 'detach', 'dump and restore' ]), 'call cancel dump and restore; judge ended', 'what needs something else does not happen');
is(run_of(['ended'], { subscriber => 1, other => 'other' }, events => [ 'other command', 'dump and restore' ]), 'subscribe; call other command; judge ended', '... and what has it does');
is(run_of(['ended'], {}, control => 'undo'), 'call cancel cancel; judge ended', 'a control has its own events');
is($round->{must_undo}, 1, '... and may undo');
run_of(['ended'], {}, control => 'isolation');
is("$round->{options} $round->{role}", '-c default_transaction_isolation=repeatable\\ read postgres', '... with its options');
run_of(['ended'], {}, control => 'grants');
like("$round->{at} $round->{change_like}", qr/^swap .*GRANT SELECT/, '... and its step and changes');
$tick = 20;
my $endless = { connection => { busy => 0 }, steps => [ [ 0, 'SELECT' ] ], next => 1e12 };
is(run_of(['ended'], {}, tasks => [$endless]), 'sessions that do not end: a session; call; judge ended', 'a session that does not end is seen');
$tick = 0;

# The step at which events begin
$round = round_by_hand({});
ok($round->is_at_step, 'events begin at any step');
$round->{at} = 'swap';
$round->{caller} = $round->connect_patiently;
foreach ([ 'fill tab', 0 ], [ 'swap tab', 1 ])
{
	my ($step, $is_there) = @$_;
	$round->{caller}->query("SET application_name = 'snowflake_widen: $step'");
	is($round->is_at_step, $is_there, "... or at one: $step");
}
$round->{caller}->close;

# Clients that fail, and calls in transaction blocks
$round = Round->new(node => $node, directory => $directory);
foreach my $status (0, 3)
{
	local $SIG{TERM} = 'IGNORE';
	push @{ $round->{clients} }, fork() || POSIX::_exit($status);
}
$round->stop_load;
is(faults($round), 'clients that failed: client with status 768', 'a client that fails is seen');
is(eval { $round->must('postgres', 'SELECT 1', 'SELECT 1/0'); 'done' } // $@, "SELECT 1/0: division by zero\n", 'what must succeed ends the round otherwise');
$tick = 6;
round_by_hand({}, world => { tables => [ $photos, $comments ], in_block => 'SELECT lab.give_up()' })->call_in_block;
is(faults($round), '', 'a call in a transaction block may take some seconds');
$tick = 11;
$round->call_in_block;
like(faults($round), qr/^transaction blocks that make others wait: 0 s, /, '... but not more than ten');
$tick = 0;

# What is printed of faults
$round->fault('some', 1 .. 9);
$round->fault('another', 'one');
open my $out, '>', \my $printed;
my %count = $round->print_faults($out);
is($printed, join('', map { "    some: $_\n" } 1 .. 8) . "    another: one\n", 'the first faults of each kind are printed');
is("$count{some} $count{another}", '9 1', '... and all are counted');

# --- lab/remedies: a round -----------------------------------------------------------

# Subscriptions keep databases from being dropped.
Round->new(node => $node, directory => $directory)->clean_up;

# A round of lab/remedies, whose world is left for what follows
mkdir "$directory/obeyed";
$node->sql('ALTER DATABASE base SET snowflake.shard = 3; GRANT pg_read_all_stats TO boss, lender');
# Tweets have the layout of Twitter.
srand 7;
my @clock;
$round = Obeyed->new(node => $node, directory => "$directory/obeyed", base => 'base', owner => 'postgres', role => 'boss', faults_of => ['restored copy'],
	by_hand => {
		step_clock => sub { push @clock, $_[1] },
		obey_until_well => sub {
			my ($self) = @_;
			my ($first, $tweets) = @{ $self->{world}{tables} }[ 0, 2 ];
			$self->add_rows($first, 'postgres', 1, "snowflake_id(clock_timestamp() + interval '1 hour', 3, 1)");
			$self->add_rows($tweets, 'postgres', 1, "snowflake_id(clock_timestamp() + interval '1 hour', 3, 1, '$tweets->{layout}')");
			$self->must('work', q{CREATE FUNCTION lab.old() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT min(id) FROM app.photos WHERE token ~ $$^0-$$'},
				'ALTER TABLE app.photos ALTER id SET DEFAULT lab.old()', 'SELECT snowflake_set_shard(9)',
				q{DELETE FROM app.loans WHERE token = '0-1'}, q{UPDATE app.loans SET n = 5 WHERE token = '0-2'},
				q{UPDATE app.loans SET id = (SELECT id FROM app.photos WHERE token = '0-5') WHERE token = '0-5'},
				q{INSERT INTO app.tweets (id, token) SELECT id, 'y-1' FROM app.photos WHERE token = '0-5'},
				q{INSERT INTO app.photos (id, token) VALUES (77, 'm-1')}, 'REVOKE INSERT ON app.loans FROM lab_app');
			$self->must('original', q{INSERT INTO app.photos (id, token) VALUES (77, 'm-2')});
			write_file("$directory/obeyed/ledger." . ++$self->{started}, "ok\t1\n");
			return;
		} });
$round->{line} = $round->run;
is(faults($round) . "\n", <<'EOS', 'each fault of a round is named');
IDs that came twice: 60000, such as ID, of lab.old()
IDs that came twice: 60000, such as ID, of lab.old()
tables that refuse a row, of which the check says nothing: app.photos: 23505 duplicate key value violates unique constraint "photos_pkey" DETAIL:  Key (id)=(ID) already exists.
tables that refuse a row, of which the check says nothing: app.loans: 42501 permission denied for table loans
transactions that were acknowledged and are lost: transaction 1 of client 7
rows that nobody committed: app.tweets, row y-1
rows that are lost: app.loans, row 0-1
rows with another value: app.loans, row 0-2: n is 5, not 0
IDs that two rows have: ID: photos, loans
IDs that two databases have made: 1
EOS
is($node->sql(q{SELECT (SELECT count(*) FROM pg_db_role_setting JOIN pg_database AS d ON d.oid = setdatabase WHERE datname = 'base') || ' '
	|| count(*) FROM pg_auth_members WHERE roleid = 'pg_read_all_stats'::regrole}),
	'0 1', '... and what it did to the server is taken back');
is(scalar @clock, 2, '... and time passes for two tables');
cmp_ok(abs($clock[$_] - 3599), '<', 300, '... to where a row is dated') foreach 0, 1;

# --- lab/remedies: a remedy -----------------------------------------------------------

$node->safe_psql('work', <<'EOS');
CREATE TABLE lab.ran (role text, number integer); GRANT ALL ON lab.ran TO PUBLIC;
CREATE FUNCTION lab.fails(code text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'no' USING ERRCODE = code; END $$;
CREATE FUNCTION lab.early() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'no' USING ERRCODE = '55000', HINT = 'Call it again when it is over.'; END $$;
CREATE FUNCTION lab.ran(number integer DEFAULT 0) RETURNS void LANGUAGE sql AS 'INSERT INTO lab.ran VALUES (current_user, number)';
CREATE FUNCTION lab.needs_superuser() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
	IF current_setting('is_superuser') = 'off' THEN RAISE insufficient_privilege USING HINT = 'Let a superuser call this.'; END IF;
	PERFORM lab.ran(); END $$;
CREATE FUNCTION lab.snowflake_set_shard(number integer) RETURNS void LANGUAGE sql AS 'SELECT lab.ran(number)';
EOS

# Run a remedy.  Returns what the round counts, who has run it, and with which number.
sub obeyed
{
	my ($remedy, $problem, %round) = @_;
	$node->safe_psql('work', 'TRUNCATE lab.ran');
	$round = Obeyed->new(node => $node, directory => "$directory/obeyed", role => 'boss', shard => 1, tweet_shard => 2, %round);
	$round->{done} = $round->obey({ severity => 'error', object => 'it', problem => $problem // '', remedy => $remedy });
	my ($refused) = map { "refused $_" } keys %{ $round->{refused} };
	my $ran = $node->safe_psql('work', q{SELECT string_agg(role || ' ' || number, ', ') FROM lab.ran});
	return join ', ', $refused // (), keys %{ $round->{counts} }, $ran || ();
}

is(obeyed('SELECT lab.ran();'), 'another statement: SELECT lab.ran();, boss 0', 'a remedy is run by whoever has called the check');
is($round->{done}, 'another statement: SELECT lab.ran();', '... and is done');
foreach (
	[ 'Only lender, the owner of app.loans, can do this.', 'lender' ], [ 'Only lender can grant this.', 'lender' ], [ 'Only a superuser can do this.', 'postgres' ],
	[ 'Only lender can do this. Or so.', 'boss' ], [ 'Only lender can see this.', 'boss' ])
{
	my ($problem, $role) = @$_;
	like(obeyed('SELECT lab.ran();', $problem), qr/, $role 0$/, "... or by the one that is named: $problem");
}
like(obeyed('SELECT lab.needs_superuser();'), qr/^another .*, postgres 0$/, 'a superuser runs what says that one must');
is(faults($round), '', '... which is no fault');
is(obeyed('SELECT 1/0;'), 'refused another statement: SELECT 1/0;', 'a remedy that fails is refused');
is("$round->{done} " . faults($round), '0 remedies that fail: boss: it: SELECT 1/0;: 22012 division by zero', '... which is a fault');
obeyed('TABLE pg_authid;');
is(faults($round), 'remedies that do not say who must run them: boss: it: TABLE pg_authid;: 42501 permission denied for table pg_authid', 'one must say who may run it');
foreach my $code (qw(42P01 55000 55P03 40P01 40001 57014 53400 08006))
{
	obeyed("SELECT lab.fails('$code');");
	is(faults($round) . ($round->{too_early} // ''), '', "error $code is what others can make");
}
foreach my $code (qw(42P02 53300 55006 42883))
{
	obeyed("SELECT lab.fails('$code');");
	like(faults($round), qr/^remedies that fail: boss: it: .* $code no/, "... and error $code is not");
}
obeyed('SELECT lab.early();');
is(faults($round) . $round->{too_early}, 1, 'a remedy that is too early says so');
$tick = 20;
obeyed('SELECT pg_sleep(5);');
is(faults($round), 'remedies that do not end: boss: SELECT pg_sleep(5);', 'a remedy that does not end is seen');
$tick = 0;
my $set = 'SELECT lab.snowflake_set_shard(N); -- N is';
like(obeyed("$set one that no database uses"), qr/^set_shard, new, boss (\d{3})$/, 'a new shard is one that nobody has had');
my $last = $round->{shard};
unlike(obeyed("$set one that no database uses"), qr/ $last$/, '... each time');
like($node->safe_psql('work', 'SELECT number FROM lab.ran'), qr/^$round->{shard}$/, '... and is that of the round from then on');
is(obeyed("$set of this server"), 'set_shard, own, boss 1', 'its own shard is that of the server');
is(obeyed("$set of app.tweets"), 'set_shard, own, boss 2', '... or of the table');
like(obeyed("$set of this server", '', is_copy => 1), qr/^set_shard, own, boss \d{3}$/, '... or a new one in a copy');
is(obeyed('SELECT lab.ran(); -- N is', '', shard => 1) && $round->{shard}, 1, 'another remedy leaves the shard as it is');

# --- lab/remedies: turns -----------------------------------------------------------

# Obey rows that the check shows at one look after the other, the last ones again and again.  Returns faults, and how many
# remedies were run.
sub turns
{
	my ($looks, %round) = @_;
	my @looks = @$looks;
	my ($obeyed, $passes) = (0, 0);
	my %hand = (check => sub { return @{ @looks > 1 ? shift @looks : $looks[0] } }, work => sub { }, let_time_pass => sub { $passes++ },
		obey => sub { my ($self) = @_; $obeyed++; $self->{too_early} = $self->{early}; return $self->{does} // 'widen' });
	srand 1;
	$round = Obeyed->new(node => $node, directory => "$directory/obeyed", role => 'boss', between => [], by_hand => \%hand, %round);
	my @left = $round->obey_until_well;
	return join ', ', faults($round) || (), "$obeyed obeyed", $passes ? "$passes pass" : (), map { $_->{remedy} } @left;
}

my %bad = (severity => 'error', object => 'it', problem => 'bad', remedy => 'SELECT 1;');
my $bad = [ { %bad } ];
my $wait = [ { %bad, remedy => 'Call snowflake_check() again in a while.' } ];
my $end = [ { %bad, remedy => 'End that transaction.' } ];
my $left = 'remedies that are left after five turns: as boss: it: bad => SELECT 1;';
is(turns([ [] ]), '0 obeyed', 'a check that is content ends the turns');
is(turns([ [ { %bad, remedy => 'Look.' } ] ]), '0 obeyed, Look.', '... as does one with sentences');
is(join(' ', %{ $round->{sentences} }), 'Look. 1', '... which are counted');
is(turns([ ($bad) x 5, [] ]), '5 obeyed', 'remedies may be run in five turns');
is($round->{turns}, 5, '... which are counted');
is(turns([$bad]), "$left, 5 obeyed, SELECT 1;", '... and not in more');
is(turns([ ($bad) x 15, [] ], early => 1), '15 obeyed', 'ten turns that are too early do not count');
is(turns([$bad], early => 1), "$left, 15 obeyed, SELECT 1;", '... nor do more');
is(turns([ ($bad) x 9, [] ], between => [ 0, 0, 0, 0, 'another session' ], had => { 'another session' => 1 }), '9 obeyed', 'turns count from a new reason');
is(turns([$bad], between => [ 0, 0, 0, 0, 'another session' ]), "$left, 5 obeyed, SELECT 1;", '... and not from something else');
is(join(' ', @{ $round->{happened} }) . @{ $round->{pooled} }, '(another session)1', '... which happens, and is noted');
foreach ($wait, $end)
{
	is(turns([ ($_) x 10, [] ]), '0 obeyed', "what says \"$_->[0]{remedy}\" may be looked at ten times");
	is(turns([$_]), "looks that fail again and again: it: bad, 0 obeyed, $_->[0]{remedy}", '... and not more often');
}
my %control = (does => 'set_back', control => 'again');
is(turns([ $bad, [] ], %control), '1 obeyed, 1 pass', 'time passes after sequences are set back');
is(turns([ $bad, [] ], %control, does => 'widen'), '1 obeyed', '... and not after another remedy');
is(turns([ $bad, [] ], %control, does => 0), '1 obeyed', '... nor one that was refused');
is(turns([ [ { %bad, problem => 'it will generate such IDs again' } ], [] ], %control), '1 obeyed', '... nor where IDs will come again');

# The run: what is found, and what is then not looked at
foreach (
	[ 'time passes, and all is judged', 'pass insert judge clean', [] ],
	[ '... but not where IDs will come again', 'insert judge clean', [ { %bad, problem => 'it will generate such IDs again' } ] ],
	[ '... nor after a fault', 'judge clean', [], 'a fault' ])
{
	my ($name, $done, $rows, @faults) = @$_;
	my @done;
	my %hand = (map({ ($_ => sub { }) } qw(make_world start_load stop_load work add_pooled)),
		obey_until_well => sub { $_[0]->fault('x', @faults); return @$rows }, let_time_pass => sub { push @done, 'pass' },
		judge_inserts => sub { push @done, 'insert' if $#_ == @$rows }, judge => sub { push @done, 'judge' }, clean_up => sub { push @done, 'clean' });
	$round = Obeyed->new(node => $node, directory => "$directory/obeyed", role => 'boss', faults_of => [], owner => 'boss', transactions => 0, by_hand => \%hand);
	$round->run;
	is("@done", $done, $name);
}
$round = Obeyed->new(node => $node, world => { tables => [ { full => 'app.nothing' } ] });
like($round->{role}, qr/^(postgres|boss|lender)$/, 'some role calls the check');
$round->judge_inserts({ severity => 'error' });
is(faults($round), '', 'a table may refuse rows if the check says so');
$round->judge_inserts({ severity => 'warning' });
like(faults($round), qr/^tables that refuse a row, of which the check says nothing: app.nothing: 42P01 /, '... and not if it does not');
my $task = $round->add_task('postgres', [ 0, 'SELECT 1' ], [ 0.1, 'SELECT 2' ]);
$round->finish_tasks;
is(faults($round) . $task->{result}{rows}[0][0], 2, 'sessions come to their end');
$tick = 20;
$round->{tasks} = [ { connection => { busy => 0 }, steps => [ [ 0, 'SELECT' ] ], next => 1e12 } ];
$round->finish_tasks;
is(faults($round), 'sessions that do not end: 1', 'a session that does not end is seen');

done_testing();
