# snowflake_check() finds each fault that it knows, says what to do, and is silent
# again when that has been done.  Faults of the clock are in admin_check_clock.pl.

use SnowflakeTest;
use Time::HiRes qw(time);

my $node = server_in_utc('primary', '', allows_streaming => 'logical');

my $database;

sub value { return $node->safe_psql($database, @_) }

# Execute commands that may leave out schemas.
sub plant { my ($commands) = @_; return value(qq{SET search_path = shop, "Id's", "The Admin"; $commands}) }

# The rows of the check.  Nothing that is named without its schema is found, and all
# names need quotes.
sub rows
{
	my ($role) = @_;
	$role //= 'postgres';
	return value(qq{SET SESSION AUTHORIZATION $role;
		SELECT concat_ws('|', severity || ' ' || object, problem, remedy) FROM "The Admin".snowflake_check()});
}

sub new_database
{
	my ($name, $shard) = @_;

	$database = $name;
	$node->safe_psql('postgres', qq{CREATE DATABASE "$name"; ALTER DATABASE "$name" SET search_path = ''});
	value(qq{
		CREATE SCHEMA "Id's";
		CREATE SCHEMA "The Admin";
		CREATE EXTENSION snowflake SCHEMA "Id's";
		CREATE EXTENSION snowflake_admin SCHEMA "The Admin";
		SELECT "Id's".snowflake_set_shard($shard)});
}

# These rows are all that a check finds, at once or soon.  In them, ... is any text.
sub finds
{
	my ($rows, $name, %how) = @_;
	my $pattern = join '.*', map { quotemeta } split /\.\.\./, $rows, -1;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	wait_for(sub { rows($how{role}) =~ /\A$pattern\z/ }) if $how{soon};
	return like(rows($how{role}), qr/\A$pattern\z/, $name);
}

# The remedies of the rows that are found
sub remedies
{
	return map { (split /\|/)[2] } split /\n/, rows();
}

# Is it a statement, which may end with a comment on N, or are these sentences?
sub is_one
{
	my ($remedy) = @_;
	return $remedy =~ /^[^;]*;(?: -- N is .*[^.])?\z/ || $remedy =~ /\.\z/ && $remedy !~ / -- /;
}

# Plant a fault, which has these rows.  Their remedies are executed, with a number in
# place of N, and then nothing is found, or there are other rows to be executed.
sub fault
{
	my ($name, $commands, $found, %params) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	plant($commands);
	my @by_hand = ref $params{by_hand} ? @{ $params{by_hand} } : $params{by_hand};
	foreach my $rows (ref $found ? @$found : $found)
	{
		finds($rows, "$name: it is found");
		is(join("\n", grep { !is_one($_) } remedies()), '', '... with one statement or sentences each');
		my @commands = shift @by_hand // map { s/\bN\b/6/r } remedies();
		my ($status, undef, $error) = $node->psql($database, join("\n", @commands), on_error_stop => 1);
		is($status, 0, '... with a remedy that can be executed') or diag $error;
	}
	finds('', '... and is all there is to do');
	plant($params{clean} // '');
}

# --- a database without faults ---------------------------------------------------

new_database('faults 1', 5);
value('CREATE SCHEMA shop');
plant(q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
	CREATE TABLE notes (id bigint PRIMARY KEY DEFAULT next_id(), photo_id bigint REFERENCES photos);
	CREATE INDEX ON notes (photo_id);
	CREATE SEQUENCE "Tweets' seq";
	SELECT snowflake_alter_sequence('"Tweets'' seq"', 'twitter');
	CREATE TABLE "Tweets" (id snowflake PRIMARY KEY DEFAULT next_id(snowflake_shard(), '"Tweets'' seq"'));
	CREATE DOMAIN key AS bigint DEFAULT next_id(7);
	CREATE TABLE views (id key PRIMARY KEY, tenant integer NOT NULL DEFAULT 1);
	CREATE TABLE events (id bigint DEFAULT next_id(), PRIMARY KEY (id)) PARTITION BY RANGE (id);
	CREATE SEQUENCE one;
	CREATE SEQUENCE two;
	SELECT snowflake_alter_sequence('one'), snowflake_alter_sequence('two');
	CREATE TABLE spread (
		id bigint PRIMARY KEY DEFAULT CASE WHEN random() < 0.5 THEN next_id(1, 'one') ELSE next_id(2, 'two') END);
	CREATE TABLE counted (id bigserial PRIMARY KEY);
	CREATE TABLE moved (id bigserial PRIMARY KEY);
	INSERT INTO moved SELECT FROM generate_series(1, 1000);
	CALL snowflake_move('moved', own_sequence => true);
	CREATE SEQUENCE own;
	SELECT snowflake_alter_sequence('own', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000');
	CREATE TABLE owned (
		id bigint PRIMARY KEY DEFAULT next_id(3, 'own', 'timestamp:41 shard:13 sequence:10 epoch:1577836800000'));
	CREATE SEQUENCE traces;
	SELECT snowflake_alter_sequence('traces', 'trace');
	CREATE TABLE traced (id bigint PRIMARY KEY DEFAULT next_id(3, 'traces'))});
plant(q{CALL snowflake_make_partitions('events')});
my $insert = join '', map { "INSERT INTO shop.$_ DEFAULT VALUES;\n" }
  qw(photos notes "Tweets" views events spread counted moved owned traced);
finds('', 'a database without rows is healthy');
value($insert) foreach 1 .. 20;
finds('', '... and one with rows');

# --- shards and defaults ------------------------------------------------------------

my $set_shard = q{SELECT "Id's".snowflake_set_shard(N::bigint); -- N is};
my $is_free = 'a shard from your list that no database uses';
fault('no shard is set', 'SELECT snowflake_set_shard(NULL)',
	q{error database "faults 1"|No shard is set, so the default of shop."Tweets".id fails, and 4 more. }
	  . "The newest IDs ...photos has rows of shard 5...|$set_shard this database's shard in your list");
# Before a session has loaded the library, PostgreSQL takes any text.
fault('the setting is no shard', 'ALTER DATABASE "faults 1" SET snowflake.shard = 9000',
	q{error database "faults 1"|No shard is set, so the default of shop."Tweets".id fails, and 4 more. }
	  . q{The setting of database "faults 1" is "9000", which is not between 0 and 8191. }
	  . "The newest IDs ...photos has rows of shard 5...|$set_shard this database's shard in your list", clean => 'SELECT snowflake_set_shard(5)');
plant('SELECT snowflake_set_shard(NULL); CREATE ROLE service LOGIN; ALTER ROLE service SET snowflake.shard = 4;
	GRANT INSERT ON ALL TABLES IN SCHEMA shop TO service; GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA shop TO service');
finds('', 'each role may have its own shard');
plant('ALTER ROLE service RESET ALL; CREATE ROLE stranger; ALTER ROLE stranger SET snowflake.shard = 4');
finds('error database "faults 1"|No shard is set...', '... but one that inserts needs one, whatever others have');
plant('DROP ROLE stranger');
plant('SELECT snowflake_set_shard(5); DROP OWNED BY service; DROP ROLE service');
fault('another database has the same shard', 'CREATE DATABASE "Other"; ALTER DATABASE "Other" SET snowflake.shard = 5',
	qq{note database "faults 1"|Other databases of this server with its shard 5: "Other". ...|Give one of them another shard if rows of both are combined.},
	by_hand => 'ALTER DATABASE "Other" SET snowflake.shard = 7', clean => 'DROP DATABASE "Other"; SELECT snowflake_set_shard(5)');
fault('a table has the default of another database', q{
		CREATE TABLE copied (id bigint PRIMARY KEY DEFAULT next_id(8));
		INSERT INTO copied DEFAULT VALUES},
	'warning shop.copied.id|The default generates IDs of shard 8, but the database has shard 5. ...|'
	  . q{CALL "The Admin".snowflake_move('shop.copied'::regclass);},
	clean => 'DROP TABLE copied');

fault('a column that is no key has the default of another database',
	q{CREATE TABLE copied (id bigint PRIMARY KEY DEFAULT next_id(), number bigint UNIQUE DEFAULT next_id(8))},
	'warning shop.copied.number|The default generates IDs of shard 8, but the database has shard 5. ...|'
	  . 'snowflake_move() cannot do it yet: ... Obstacle: it is not in the primary key. ... use ALTER TABLE ... SET DEFAULT.',
	by_hand => 'DROP TABLE shop.copied');

plant(q{CREATE TABLE choosing (id bigint PRIMARY KEY DEFAULT CASE WHEN current_user = 'postgres'
	THEN next_id(5, 'one') ELSE next_id(8, 'one') END)});
finds('', 'one default may choose among shards');
plant('DROP TABLE choosing');

my $as_parent = q{Let the default of shop.older.id be that of shop.old: "Id's".next_id((5)::bigint).};
my $by_hand = q{ALTER TABLE shop.older ALTER id SET DEFAULT "Id's".next_id(5)};
my $give_another = 'Give one of these two another free shard, or the sequence of the other.';
fault('two shards in one table', q{
		CREATE TABLE old (id bigint PRIMARY KEY DEFAULT next_id(5), kind text);
		CREATE TABLE older (id bigint PRIMARY KEY DEFAULT next_id(9)) INHERITS (old)},
	"warning shop.old.id|...default of shop.old generates IDs of shard 5, and ... shop.older those of shard 9.|$as_parent", by_hand => $by_hand);
fault('two sequences with one shard in one table', q{ALTER TABLE older ALTER id SET DEFAULT next_id(5, 'one')},
	q{error shop.old.id|Two sequences generate IDs of shard 5, ... "Id's".next_id_seq in ... shop.old, }
	  . "and shop.one in ... shop.older.|$as_parent", by_hand => $by_hand);
fault('two sequences with one shard, which a trigger has', q{
		CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			NEW.id := "Id's".next_id(5, 'shop.one');
			RETURN NEW;
		END $$;
		CREATE TRIGGER fill BEFORE INSERT ON old FOR EACH ROW EXECUTE FUNCTION fill()},
	"error shop.old.id|...shop.one in function shop.fill().|$give_another",
	by_hand => 'DROP TRIGGER fill ON shop.old',
	clean => 'DROP TABLE older, old');
fault('two sequences with one shard, in one default', q{
		CREATE TABLE mixed (
			id bigint PRIMARY KEY DEFAULT CASE WHEN random() < 0.5 THEN next_id(1, 'one') ELSE next_id(1, 'two') END)},
	"error shop.mixed.id|...shop.one in the default of shop.mixed, and shop.two in ... shop.mixed.|$give_another",
	by_hand => 'DROP TABLE shop.mixed');

# --- calls that always fail ---------------------------------------------------------

my $own = q{'timestamp:41 shard:13 sequence:10 epoch:1577836800000'};
my $its_move = q{CALL "The Admin".snowflake_move('shop.failing'::regclass);};
foreach my $call (
	[ q{next_id(9000)}, 'shard 9000 is out of range', $its_move ],
	[ q{next_id(-1)}, 'shard -1 is out of range', $its_move ],
	[ q{next_id(NULL)}, 'an argument is NULL', $its_move ],
	[ q{next_id(5, NULL)}, 'an argument is NULL' ],
	[ q{next_id(99999999999)}, 'shard 99999999999 is out of range', $its_move ],
	[ q{next_id(1024, '"Tweets'' seq"')}, 'shard 1024 is out of range' ],
	[ q{next_id(5, 'one', 'twitter')}, 'it names layout twitter, and sequence shop.one serves layout instagram' ],
	[ qq{next_id(5, 'next_id_seq', $own)}, qq{it names layout timestamp..., and sequence "Id's".next_id_seq serves layout instagram} ])
{
	my ($default, $reason, $remedy) = (@$call, 'Let it name ...');
	plant("CREATE TABLE failing (id bigint PRIMARY KEY DEFAULT $default)");
	my ($status) = $node->psql($database, 'INSERT INTO shop.failing DEFAULT VALUES');
	is($status, 3, "$default fails");
	finds("error shop.failing.id|Its default generates no ID, so every INSERT that needs one fails: $reason.|$remedy",
		'... and is an error');
	plant('DROP TABLE failing');
}
plant(q{ALTER DATABASE "faults 1" SET snowflake.shard = 2000});
like(rows(), qr/^error shop\."Tweets"\.id\|Its default generates no ID.*: shard 2000 is out of range\.\|Let it name a sequence of a layout/m,
	'so does a shard of the database that a layout does not have');
plant(q{ALTER DATABASE "faults 1" SET snowflake.shard = 5});

# --- parameters of sequences -------------------------------------------------------

my $tweets = q{sequence shop."Tweets' seq"};
my $alter = q{SELECT "Id's".snowflake_alter_sequence};
my $its_type = q{::"Id's".snowflake_layout};
my $not_its = 'Its parameters are not those of its layout, so next_id() refuses it.';
fault('the MAXVALUE is lost', 'ALTER SEQUENCE next_id_seq NO MAXVALUE',
	q{error sequence "Id's".next_id_seq|Its MAXVALUE 9223372036854775807 belongs to no built-in layout...|}
	  . q{CALL "The Admin".snowflake_set_back('"Id''s".next_id_seq'::regclass, layout => 'instagram'} . "$its_type);");
fault('the MAXVALUE of another layout is lost', q{ALTER SEQUENCE "Tweets' seq" NO MAXVALUE},
	"error $tweets|...schema tool...|CALL ...snowflake_set_back(..., layout => 'twitter'$its_type);");
fault('... while the sequence is ahead', setval_ahead('one', '1 h') . '; ALTER SEQUENCE one NO MAXVALUE',
	[ 'error sequence shop.one|...schema tool...|ALTER SEQUENCE shop.one MAXVALUE 1125899906841599, and check again: '
		  . 'it is ahead of the clock.', 'error sequence shop.one|...ahead of the clock...|CALL ...snowflake_set_back(...);' ],
	by_hand => [ 'ALTER SEQUENCE shop.one MAXVALUE 1125899906841599', undef ]);
fault('the MAXVALUE of a custom layout is lost', 'ALTER SEQUENCE own NO MAXVALUE',
	qq{error sequence shop.own|$not_its|CALL "The Admin".snowflake_set_back('shop.own'::regclass, layout => $own$its_type);});
fault("a sequence of a custom layout has another one's MAXVALUE", 'ALTER SEQUENCE own MAXVALUE 9007199254736892',
	"error sequence shop.own|$not_its|CALL ...snowflake_set_back(..., layout => $own$its_type);");
is(value(q{
		CREATE TABLE shop.tree (id bigint PRIMARY KEY DEFAULT "Id's".next_id(), parent bigint REFERENCES shop.tree,
			other bigint REFERENCES shop.tree);
		SELECT string_agg(remedy, '; ') FROM snowflake_admin.renumber_remedy('shop.tree', 'id', 3, 'instagram', false);
		DROP TABLE shop.tree}),
	'CREATE INDEX CONCURRENTLY ON shop.tree (other); CREATE INDEX CONCURRENTLY ON shop.tree (parent)',
	'all indexes that a renumbering needs are shown at once');
fault('... that has generated no ID', q{
		CREATE SEQUENCE unused MAXVALUE 9007199254736892;
		CREATE TABLE of_unused (id bigint PRIMARY KEY DEFAULT next_id(5, 'unused', 'timestamp:41 shard:13 sequence:2 epoch:0'))},
	"error sequence shop.unused|$not_its|$alter('shop.unused'::regclass, 'timestamp:41 shard:13 sequence:2 epoch:0'$its_type);",
	clean => 'DROP TABLE of_unused; DROP SEQUENCE unused');
fault('a custom layout has future-dated IDs, which another one read as past', qq{
		INSERT INTO owned VALUES (snowflake_max_id(now() + interval '8 years', $own))},
	'note table shop.owned|Future-dated IDs of shard 8191, while ... shard 3... Most likely they are of another layout'
	  . ', and not dated in the future.|Do nothing if its rows had IDs of another layout before.',
	by_hand => qq{DELETE FROM shop.owned WHERE id > "Id's".snowflake_max_id(now() + interval '1 year', $own)});
fault('a default lacks its custom layout', q{ALTER TABLE owned ALTER id SET DEFAULT next_id(3, 'own')},
	'error sequence shop.own|Its MAXVALUE 1125899906841591 belongs to no built-in layout, so next_id() refuses it.|'
	  . 'Let the default name its layout, if that is a custom one...',
	by_hand => qq{ALTER TABLE shop.owned ALTER id SET DEFAULT "Id's".next_id(3, 'shop.own', $own)});
my $largest = plant('SELECT max(id) FROM "Tweets"');
fault('a sequence begins anew, and its rows tell the layout', q{ALTER SEQUENCE "Tweets' seq" NO MAXVALUE RESTART},
	[ "error $tweets|...schema tool...|$alter('shop.\"Tweets'' seq\"'::regclass, 'twitter'$its_type);",
		qq{warning $tweets|It has generated no ID, but shop."Tweets" has the ID ...|}
		  . qq{SELECT "Id's".snowflake_advance('shop."Tweets'' seq"'::regclass, ${largest}::bigint);} ]);
fault('a sequence has CYCLE', 'ALTER SEQUENCE one CYCLE CACHE 10',
	"error sequence shop.one|$not_its|$alter('shop.one'::regclass, 'instagram'$its_type);");
fault('a sequence is unlogged', 'ALTER SEQUENCE one SET UNLOGGED',
	'error sequence shop.one|It is unlogged...|ALTER SEQUENCE shop.one SET LOGGED;');

# --- sequences ahead of the clock, and behind their tables ----------------------------

sub rows_of
{
	my ($table, $time, $shard) = @_;
	return qq{INSERT INTO $table (id)
		SELECT snowflake_id(clock_timestamp() + interval '$time', $shard, n) FROM generate_series(1, 3) AS n;};
}

fault('next_id_seq is ahead, and no row has its IDs', setval_ahead('next_id_seq', '1 day'),
	q{error sequence "Id's".next_id_seq|...ahead of the clock... fails until ...}
	  . q{No row of shop.events, shop.notes, shop.photos, shop.views has ...|}
	  . q{CALL "The Admin".snowflake_set_back('"Id''s".next_id_seq'::regclass);});
fault('a sequence that nothing uses is ahead',
	q{CREATE SEQUENCE unused; SELECT snowflake_alter_sequence('unused');} . setval_ahead('unused', '1 day'),
	'note sequence shop.unused|...No default of this database uses it...|Drop it if no program uses it.',
	by_hand => 'DROP SEQUENCE shop.unused');

# Values that a default has made of IDs are no IDs, and tell nothing.
is(value(q{SELECT string_agg(code, ' ') FROM unnest(ARRAY['next_id()', '(next_id((5)::bigint))::numeric', 'a.f(next_id(5))',
		'CASE WHEN (random() < (0.5)::double precision) THEN next_id(1, ''x('') ELSE "I"".s".next_id(2) END', '(next_id(5) + 1)',
		'COALESCE(next_id(hashtext(''f(x'')), 1::bigint)', '"F g"((a.next_id(5))::text)', '(''u''::text || (next_id(5))::text)',
		'f(1, g(2), (next_id(5))::text)']) AS code WHERE snowflake_admin.alters_ids(code)}),
	q{a.f(next_id(5)) (next_id(5) + 1) "F g"((a.next_id(5))::text) ('u'::text || (next_id(5))::text) f(1, g(2), (next_id(5))::text)},
	'a default that gives its IDs to a function or an operator is told from one that does not');
my $begun = time;
rows();
my $usual = time - $begun;
plant(q{CREATE TABLE tokens (id bigint PRIMARY KEY DEFAULT snowflake_obfuscate(next_id(), 77));
	INSERT INTO tokens SELECT FROM generate_series(1, 20000)});
finds('', 'values made of IDs are not compared with the clock');
plant(setval_ahead('next_id_seq', '1 day'));
$begun = time;
finds('error ...Nothing can tell which future-dated IDs are in shop.tokens (its default makes other values of IDs).|Wait until ...',
	'but a sequence that is ahead cannot be said to go back');
cmp_ok(time - $begun, '<', 20 * $usual, '... which takes about as long as before');
is(($node->psql($database, q{CALL "The Admin".snowflake_set_back('"Id''s".next_id_seq')}))[0], 3, '... and it does not');
# Values of all shards, as programs may write them, do not make the check look at the table for each.
plant(q{ALTER TABLE tokens ALTER id SET DEFAULT next_id();
	TRUNCATE tokens;
	INSERT INTO tokens SELECT snowflake_id(now() + interval '2 h', n, 1) FROM generate_series(6, 3000) AS n;
	ALTER SEQUENCE next_id_seq RESTART});
value($insert);
$begun = time;
is(scalar(() = rows() =~ /^warning table shop\.tokens\|Future-dated IDs of shard/mg), 10, 'rows about many shards of one table are few');
cmp_ok(time - $begun, '<', 20 * $usual, '... which take about as long as before');
plant('DROP TABLE tokens');
plant(setval_ahead('next_id_seq', '1 day') . '; CREATE TABLE unindexed (id bigint PRIMARY KEY DEFAULT next_id(), other bigint DEFAULT next_id())');
my $index = 'CREATE INDEX CONCURRENTLY ON shop.unindexed (other)';
finds("error ...cannot look at shop.unindexed (no index).|$index;\nnote table shop.unindexed|...no index begins with other.|$index;",
	'what cannot be looked at without an index has this for its remedy');
like(($node->psql($database, q{CALL "The Admin".snowflake_set_back('"Id''s".next_id_seq')}))[2],
	qr/HINT:  \Q$index\E, and call it again\./, '... also if the command is called');
plant('DROP TABLE unindexed; ALTER SEQUENCE next_id_seq RESTART');
value($insert);

# More rows than are looked at at once
plant(setval_ahead('next_id_seq', '1 day') . q{;
	INSERT INTO photos (id)
	SELECT snowflake_id(clock_timestamp() + interval '1 day', 8, n % 1000) + 8388608 * (n / 1000)
	FROM generate_series(1, 25000) AS n});
my $others = 'Future-dated IDs of other shards, which it cannot generate again: 25000.';
finds("error ...No row of ... $others|...snowflake_set_back(..., end_sessions => true);\nwarning table shop.photos|...at least 10001...",
	'a sequence can be set back beside many IDs of other shards');
plant(q{INSERT INTO photos (id) VALUES (snowflake_id(clock_timestamp() + interval '10 hours', 5, 1))});
finds("error ...Future-dated IDs of its shard: 1, ... $others|Give each of its tables ...\n"
	  . join('', map { "error table shop.$_|Its IDs come from sequence ...|CALL ...snowflake_move('shop.$_'...; -- N is ...\n" }
		  qw(events photos notes)) . 'warning ...',
	'... but not if one is of its own: all tables move that have this shard');
plant(q{DELETE FROM photos WHERE id > snowflake_max_id(now() + '1 s'); ALTER SEQUENCE next_id_seq RESTART});
value($insert);
finds('', '... and in the end it is');

# Where the processor is emulated, one check takes seconds.
plant(q{ALTER DATABASE "faults 1" SET snowflake.max_wait = '1min'}) if $ENV{EMULATED};
plant(setval_ahead('one', $ENV{EMULATED} ? '50 s' : '5 s'));
finds('warning ...next_id() waits...|Wait until ...', 'a sequence for which calls wait is a warning');
finds('', '... until the clock has caught up', soon => 1);
plant(rows_of('moved', '500 ms', 6));
finds('warning table shop.moved|Of the rows of the last hour, 3 have shard 6, while the database has 5...|Let all sessions reconnect...',
	'IDs of another shard may be larger, but come from a session that has an old one');
plant('DELETE FROM moved WHERE snowflake_shard(id) = 6');
plant(rows_of('moved', '2 days', 5));
finds('error table shop.moved|It has the ID ... with the shard of sequence shop.moved_id_seq. The sequence will generate such IDs again.|'
	  . q{CALL "The Admin".snowflake_renumber('shop.moved'::regclass, 5::bigint, since => now() + interval '1 s');},
	'a sequence that will make IDs of its table again is an error');
plant('DELETE FROM moved WHERE id > snowflake_max_id(now())');

# Something takes the MAXVALUE of a layout, and somebody gives the sequence that of another.
fault('a sequence goes on in another layout, with smaller IDs',
	'ALTER SEQUENCE moved_id_seq MAXVALUE 9007199254736895; INSERT INTO moved DEFAULT VALUES',
	'error sequence shop.moved_id_seq|It serves layout twitter, but shop.moved has IDs of layout instagram, the last '
	  . q{of them ... its next IDs are smaller...|CALL ...snowflake_set_back(..., layout => 'instagram'::...);});
fault('... or years ahead', q{ALTER SEQUENCE "Tweets' seq" MAXVALUE 9007199254736894},
	qq{error $tweets|It serves layout discord, but shop."Tweets" has IDs of layout twitter...|}
	  . q{CALL ...snowflake_set_back(..., layout => 'twitter'::"Id's".snowflake_layout);});
plant(q{INSERT INTO "Tweets"
	SELECT snowflake_id(now() + n * interval '1 day', 9, 1, 'twitter') FROM unnest('{2,400}'::integer[]) AS n});
unlike(rows(), qr/^error/m, 'future-dated IDs of another server are not of another layout');
plant(q{DELETE FROM "Tweets" WHERE snowflake_timestamp(id, 'twitter') > now()});

# --- columns, privileges, partitions, keys of nextval() -----------------------------------

fault('a column that refers to a key is too small', 'ALTER TABLE notes ALTER photo_id TYPE integer USING NULL',
	'error shop.notes.photo_id|It is integer, which is too small for IDs of shop.photos.id.|'
	  . q{CALL "The Admin".snowflake_widen('shop.notes'::regclass, 'photo_id'::name);});

plant(q{
	CREATE TABLE of_numeric (id numeric PRIMARY KEY DEFAULT next_id());
	CREATE TABLE of_digits (id numeric(21,2) PRIMARY KEY DEFAULT next_id());
	CREATE TABLE of_text (id text PRIMARY KEY DEFAULT snowflake_to_text(next_id()));
	CREATE TABLE of_varchar (id varchar(19) PRIMARY KEY DEFAULT next_id())});
finds(join("\n", map { "note table shop.$_|Its IDs were not looked at: type ..." } qw(of_digits of_numeric of_varchar)),
	'a numeric or a text can hold IDs, and a text that is made of one is none');
plant('DROP TABLE of_numeric, of_digits, of_text, of_varchar');
fault("a key is $_->[0]", "CREATE TABLE odd (id $_->[0] PRIMARY KEY DEFAULT next_id(), parent $_->[0] REFERENCES odd)", qq{
	error shop.odd.id|It is $_->[0], which $_->[1] IDs of shop.odd.id.|While the application is stopped: ...
	error shop.odd.parent|It is $_->[0], which $_->[1] IDs of shop.odd.id.|...
	note table shop.odd|Its IDs were not looked at: type ...} =~ s/^\n\t//r =~ s/\n\t/\n/gr,
	by_hand => 'ALTER TABLE shop.odd ALTER parent TYPE bigint; ALTER TABLE shop.odd ALTER id TYPE bigint', clean => 'DROP TABLE odd')
  foreach [ 'double precision', 'rounds' ], [ 'real', 'rounds' ], [ 'numeric(20,2)', 'is too small for' ], [ 'numeric(18,0)', 'is too small for' ],
  [ 'oid', 'is too small for' ];

fault('a role may insert, but not use the sequence',
	'CREATE ROLE "App"; GRANT USAGE ON SCHEMA shop TO "App"; GRANT INSERT ON "Tweets", photos TO "App"',
	qq{error $tweets|"App" may insert into shop."Tweets"...|GRANT USAGE ON SEQUENCE shop."Tweets' seq" TO "App";});
fault('everybody may insert, but not use the sequence', 'GRANT INSERT (id) ON "Tweets" TO PUBLIC',
	qq{error $tweets|PUBLIC may insert...|GRANT USAGE ON SEQUENCE shop."Tweets' seq" TO PUBLIC;});
fault('a custom layout needs more', 'GRANT INSERT ON owned TO "App"; GRANT USAGE ON SEQUENCE own TO "App"',
	'error sequence shop.own|"App" may insert...|GRANT UPDATE ON SEQUENCE shop.own TO "App";');
fault('another role owns the table',
	q{GRANT USAGE ON SCHEMA shop, "Id's", "The Admin" TO "App"; ALTER TABLE moved OWNER TO "App"},
	'error table shop.moved|"App" may insert into shop.moved, but not use sequence shop.moved_id_seq...|It belongs to postgres, '
	  . 'who can grant this to "App". '
	  . 'Otherwise give the table another default.', by_hand => 'GRANT USAGE ON SEQUENCE shop.moved_id_seq TO "App"');
fault('nobody may call next_id()', 'REVOKE ALL ON FUNCTION next_id() FROM PUBLIC',
	q{error function "Id's".next_id()|"App" may insert...|GRANT EXECUTE ON FUNCTION "Id's".next_id() TO "App";});

my $make = q{CALL "The Admin".snowflake_make_partitions('shop.events'::regclass);};
my $drop = q{DO $$ BEGIN EXECUTE (SELECT 'DROP TABLE ' || string_agg(partition::text, ', ')
	FROM snowflake_partitions('events') WHERE since > %s); END $$;};
fault('there is no partition for the present', sprintf($drop, q{'-infinity'}),
	"error table shop.events|...no partition for IDs of now (...an INSERT of such a row fails...|$make");
fault('there is no partition for tomorrow', sprintf($drop, q{now() + '1 s'}),
	"warning table shop.events|...no partition for IDs of tomorrow...|$make");
fault('rows go to the DEFAULT partition',
	sprintf($drop, q{'-infinity'}) . 'CREATE TABLE other_events PARTITION OF events DEFAULT',
	"warning table shop.events|...now (...such rows go to the DEFAULT partition...|$make",
	clean => 'DROP TABLE other_events');

plant(q{INSERT INTO moved VALUES (snowflake_min_id('2011-08-25Z'))});
finds('', 'a row that was imported with the first time of the layout is no key of nextval()');
fault('a program still calls nextval()', q{INSERT INTO moved SELECT nextval('moved_id_seq') FROM generate_series(1, 2)},
	'warning table shop.moved|Keys that nextval() generated in place of next_id(): 2, the last of them ...|'
	  . q{SELECT snowflake_admin.do_as_owner('shop.moved', 'UPDATE shop.moved SET id = DEFAULT WHERE id::bigint }
	  . q{BETWEEN 463877712157696::bigint AND 1125899906841599::bigint AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint }
	  . q{WHERE contype = ''f'' AND confrelid = ''shop.moved''::regclass AND confupdtype <> ''c'')');});
fault('... of a table to which others refer', q{
		CREATE TABLE follows (moved bigint REFERENCES moved ON UPDATE CASCADE);
		INSERT INTO moved SELECT nextval('moved_id_seq')},
	q{warning table shop.moved|Keys ...|SELECT snowflake_admin.do_as_owner('shop.moved', 'UPDATE ...');},
	clean => 'DROP TABLE follows');
fault('... and could not follow', q{
		CREATE TABLE follows (moved bigint REFERENCES moved);
		INSERT INTO moved SELECT nextval('moved_id_seq')},
	'warning table shop.moved|Keys ...|Give these rows, and those that refer to them, new keys: id from ...',
	by_hand => 'DROP TABLE shop.follows; UPDATE shop.moved SET id = DEFAULT WHERE id <= 1125899906841599',
	clean => 'SELECT');
fault('a default still calls nextval()', q{
		CREATE SEQUENCE three;
		SELECT snowflake_alter_sequence('three');
		CREATE TABLE later (id bigint PRIMARY KEY DEFAULT nextval('three'))},
	'warning shop.later.id|...nextval() of shop.three, which generates IDs...|'
	  . q{Let its default be "Id's".next_id(N, 'shop.three'), where N is this database's shard in your list.},
	by_hand => q{ALTER TABLE shop.later ALTER id SET DEFAULT "Id's".next_id(6, 'shop.three')},
	clean => 'DROP TABLE later; DROP SEQUENCE three');

fault('an integer key comes to its end', 'CREATE TABLE narrow (id serial PRIMARY KEY); INSERT INTO narrow VALUES (1800000000)',
	'warning shop.narrow.id|Its largest value is 1800000000, and integer ends at 2147483647.|'
	  . q{CALL "The Admin".snowflake_widen('shop.narrow'::regclass, 'id'::name);}, clean => 'DROP TABLE narrow');
fault('a framework lets a key count among IDs',
	q{CREATE TABLE django (id bigserial PRIMARY KEY); INSERT INTO django VALUES (next_id());
		SELECT setval('django_id_seq', max(id)) FROM django},
	'warning shop.django.id|Sequence shop.django_id_seq counts among IDs, ...|'
	  . q{CALL "The Admin".snowflake_move('shop.django'::regclass);}, clean => 'DROP TABLE django');
fault('nobody has made partitions for a day', sprintf($drop, q{now() + '1 day'}),
	"warning table shop.events|It has no partition for IDs of the next days (...nobody has called snowflake_make_partitions() "
	  . "for a day...|$make");
# The partitions of longer units reach farther.
fault('only the present year has a partition', q{
		CREATE TABLE years (id bigint PRIMARY KEY DEFAULT next_id()) PARTITION BY RANGE (id);
		DO $$ BEGIN EXECUTE (SELECT format('CREATE TABLE years_now PARTITION OF years FOR VALUES FROM (%s) TO (%s)',
				snowflake_min_id(year AT TIME ZONE 'UTC'), snowflake_min_id((year + '1 year') AT TIME ZONE 'UTC'))
			FROM date_trunc('year', now() AT TIME ZONE 'UTC') AS year); END $$},
	'warning table shop.years|...no partition for IDs of ...|' . ($make =~ s/events/years/r), clean => 'DROP TABLE years');

# --- what waits, and what has not ended -----------------------------------------------------

my $user = $node->background_psql($database);
$user->query_safe(q{BEGIN; SELECT "Id's".next_id(1, 'shop.one')});
my $user_pid = $user->query_safe('SELECT pg_backend_pid()');
my $waiter = $node->background_psql($database);
my $waiter_pid = $waiter->query_safe('SELECT pg_backend_pid()');
send_sql($waiter, q{ALTER SEQUENCE shop.one NO CYCLE});
finds("error sequence shop.one|Sessions that wait for it: 1. They wait for process $user_pid, of role postgres, which is in a "
	  . "transaction since ... Others queue behind process $waiter_pid, of role postgres.|"
	  . "End that transaction, if need be by SELECT pg_terminate_backend($user_pid), as a member of its role or of "
	  . "pg_signal_backend. Or let the others go on by SELECT pg_cancel_backend($waiter_pid).\n"
	  . 'warning sequence shop.one|It could not be looked at, because another transaction has locked it...', 'a queue at a sequence is an error', soon => 1);
$user->query_safe('ROLLBACK');
$user->quit;
ok(wait_for(sub { value(q{SELECT count(*) FROM pg_locks WHERE NOT granted}) eq '0' }), '... which ends');
$waiter->query_safe('BEGIN; ALTER SEQUENCE shop.one NO CYCLE');
$user = $node->background_psql($database);
send_sql($user, q{SELECT "Id's".next_id(1, 'shop.one')});
finds("error sequence shop.one|Sessions that wait for it: 1. They wait for process $waiter_pid, of role postgres, which is in a "
	  . "transaction since ...|End that transaction, if need be by SELECT pg_terminate_backend($waiter_pid), as a member of its role "
	  . "or of pg_signal_backend.\n"
	  . 'warning sequence shop.one|It could not be looked at, because another transaction has locked it...', 'so are sessions that wait for a change of it', soon => 1);
$_->quit foreach $waiter, $user;
value($insert);

fault('a partitioning has not ended',
	'CREATE TABLE begun (id bigint PRIMARY KEY DEFAULT next_id(), CONSTRAINT snowflake_partition CHECK (id < snowflake_admin.partition_limit()))',
	'note table shop.begun|snowflake_partition() has begun to partition it, and has not ended. '
	  . 'To give up: ALTER TABLE shop.begun DROP CONSTRAINT snowflake_partition.|Call snowflake_partition() again with its unit.',
	by_hand => 'ALTER TABLE shop.begun DROP CONSTRAINT snowflake_partition', clean => 'DROP TABLE begun');
fault('... and cannot go on', q{
		CREATE TABLE put_back (id bigint PRIMARY KEY,
			CONSTRAINT snowflake_partition CHECK (id < snowflake_admin.partition_limit()));
		COMMENT ON CONSTRAINT snowflake_partition ON put_back IS 'snowflake_partition() has not ended: unit => ''day'''},
	'note table shop.put_back|snowflake_partition() has begun to partition it, and has not ended. It cannot go on, because next_id() '
	  . 'no longer fills the key, so give up.|ALTER TABLE shop.put_back DROP CONSTRAINT snowflake_partition;',
	clean => 'DROP TABLE put_back');
fault('a widening has not ended', q{
		CREATE FUNCTION widens() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.snowflake_widen_1 := NEW."Id"; RETURN NEW; END';
		CREATE FUNCTION widens_too() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.snowflake_widen_1 := NEW.id; RETURN NEW; END';
		CREATE TABLE "It's narrow" ("Id" integer PRIMARY KEY, snowflake_widen_1 bigint);
		CREATE TABLE refers (id integer REFERENCES "It's narrow", snowflake_widen_1 bigint);
		INSERT INTO "It's narrow" VALUES (3);
		INSERT INTO refers VALUES (3);
		CREATE TRIGGER widens BEFORE INSERT OR UPDATE ON "It's narrow" FOR EACH ROW EXECUTE FUNCTION widens();
		CREATE TRIGGER widens BEFORE INSERT OR UPDATE ON refers FOR EACH ROW EXECUTE FUNCTION widens_too();
		ALTER TABLE "It's narrow" ENABLE ALWAYS TRIGGER widens;
		ALTER TABLE refers ENABLE ALWAYS TRIGGER widens},
	qq{note table shop."It's narrow"|snowflake_widen() has begun to widen column "Id", and has not ended. }
	  . qq{To give up: CALL "The Admin".snowflake_widen('shop."It''s narrow"'::regclass, 'Id'::name, undo => true).|}
	  . qq{CALL "The Admin".snowflake_widen('shop."It''s narrow"'::regclass, 'Id'::name);},
	clean => q{DROP TABLE "It's narrow", refers});
fault('a renumbering has not ended', q{
		CREATE TABLE "It's old" (id bigint PRIMARY KEY DEFAULT next_id());
		INSERT INTO "It's old" SELECT snowflake_id(now() - interval '3 days', shard, 0) FROM generate_series(3, 4) AS shard;
		CREATE TABLE "It's old_renumbered" (old bigint PRIMARY KEY, new bigint NOT NULL);
		COMMENT ON TABLE "It's old_renumbered" IS E'Keep this.\nsnowflake_renumber() has not ended: '
			'shard => 3, new_shard => 6, since => ''2026-01-01 00:00:00+00'', layout => ''instagram''\n'
			'snowflake_renumber() has not ended: shard => 4, new_shard => 7'},
	qq{note table shop."It's old"|snowflake_renumber() has begun to give rows of shard 3 new IDs, and has not ended. }
	  . qq{To give up: take the line "snowflake_renumber() has not ended: shard => 3, new_shard => 6, since => }
	  . qq{'2026-01-01 00:00:00+00', layout => 'instagram'" out of the comment on table shop."It's old_renumbered".|}
	  . qq{CALL "The Admin".snowflake_renumber('shop."It''s old"'::regclass, 3::bigint, new_shard => 6::bigint, }
	  . qq{since => '2026-01-01 00:00:00+00'::timestamptz, layout => 'instagram'::"Id's".snowflake_layout);\n}
	  . qq{note table shop."It's old"|snowflake_renumber() has begun to give rows of shard 4 new IDs, and has not ended. }
	  . qq{To give up: take the line "snowflake_renumber() has not ended: shard => 4, new_shard => 7" out of the comment on }
	  . qq{table shop."It's old_renumbered".|}
	  . qq{CALL "The Admin".snowflake_renumber('shop."It''s old"'::regclass, 4::bigint, new_shard => 7::bigint);});
is(value(q{SELECT string_agg("Id's".snowflake_shard(id)::text, ' ' ORDER BY id), obj_description('shop."It''s old_renumbered"'::regclass)
	FROM shop."It's old"}), '6 7|Keep this.', '... and the rest of the comment stays');
value(q{DROP TABLE shop."It's old", shop."It's old_renumbered"});

# What others have made that looks alike
plant(q{
	CREATE ROLE forger;
	CREATE TABLE forged (id integer, snowflake_widen_1 bigint, CONSTRAINT snowflake_partition CHECK (id < 100));
	CREATE FUNCTION widens() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.snowflake_widen_1 := NEW.id; RETURN NEW; END';
	ALTER FUNCTION widens() OWNER TO forger;
	CREATE TRIGGER zz_snowflake_widen_1 BEFORE INSERT OR UPDATE ON forged FOR EACH ROW EXECUTE FUNCTION widens();
	CREATE TABLE forged_renumbered (old bigint PRIMARY KEY, new bigint NOT NULL);
	COMMENT ON TABLE forged_renumbered IS 'snowflake_renumber() has not ended: shard => 3, new_shard => 6';
	ALTER TABLE forged_renumbered OWNER TO forger});
finds('', "marks that only look like those of the table's owner are none");
plant('DROP TABLE forged, forged_renumbered; DROP FUNCTION widens(); DROP ROLE forger');

# --- what a role may not see, and what others have locked ---------------------------------

value(q{CREATE ROLE reader; GRANT USAGE ON SCHEMA shop, "Id's", "The Admin" TO reader});
finds("note role reader|It may not read 1 table, so ... Only \"App\", the owner of shop.moved, can do this.|GRANT SELECT ON TABLE shop.moved TO reader;\n"
	  . "note role reader|It may not read ... sequences, so ...|GRANT SELECT ON SEQUENCE ... TO reader;\n"
	  . 'note role reader|It may not read ... tables, so ... Only postgres, the owner of ... and the others, can do this.|'
	  . 'GRANT SELECT ON TABLE ... TO reader;',
	'a role without privileges gets notes of what it may not read', role => 'reader');
value(rows('reader') =~ s/.*\|//gr);
finds('', '... until it may', role => 'reader');
plant('ALTER TABLE photos ENABLE ROW LEVEL SECURITY');
finds('note table shop.photos|Its IDs were not looked at: policies hide rows.|...',
	'policies that hide rows are a note', role => 'reader');
plant('ALTER TABLE photos DISABLE ROW LEVEL SECURITY');

my $other = $node->background_psql($database);
$other->query_safe('BEGIN; LOCK TABLE shop.photos; ALTER SEQUENCE shop.one RESTART');
finds("warning sequence shop.one|...another transaction has locked it...\nwarning table shop.photos|... another transaction has locked it. ..."
	  . ' Process ... has used shop.photos in a transaction since ...',
	'what another session has locked is a warning, without a wait');
$other->query_safe('ROLLBACK');
$other->quit;
finds('', '... until it ends');
is(value(q{
		BEGIN;
		SELECT * FROM "The Admin".snowflake_check();
		SELECT DISTINCT relation::regclass FROM pg_locks WHERE relation >= 16384;
		SELECT pg_current_xact_id_if_assigned()}),
	'', 'a check holds no lock of a table, and has no transaction ID');

plant(q{
	CREATE FUNCTION nonsense() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		NEW.id := "Id's".next_id(1, 'shop.one', 'nonsense');
		NEW.id := "Id's".next_id('x', 'y z');
		RETURN NEW;
	END $$;
	CREATE TRIGGER nonsense BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION nonsense()});
unlike(rows(), qr/^error check of/m, 'code that makes no sense does not make a check fail');
plant('DROP FUNCTION nonsense() CASCADE');

# --- while the tables are in use ---------------------------------------------------------

my $load = start_load($node->connstr($database), $insert, '-R', '1000');
ok(wait_for(sub { value('SELECT count(*) > 2000 FROM shop.photos') eq 't' }), 'sessions insert rows');
is(join('', map { rows() } 1 .. 8), '', 'a healthy database that is in use has no faults');
end_load($load, 'a check');

# --- standbys ----------------------------------------------------------------------------

$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_conninfo = '" . $node->connstr . " application_name=s3'");
$standby->start;
$node->wait_for_catchup('s3');
is($standby->safe_psql($database, 'SELECT * FROM "The Admin".snowflake_check()'), '', 'a standby can be checked');

# A shard that stands in the servers' files
my $faults = $database;
$node->append_conf('postgresql.conf', 'snowflake.shard = 8');
$node->reload;
new_database('filed', 'NULL');
value(q{CREATE SCHEMA shop});
plant('CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id())');
ok(wait_for(sub { ($node->psql($database, 'INSERT INTO shop.photos DEFAULT VALUES'))[0] == 0 }), 'a shard of a file is used');
$node->wait_for_catchup('s3');
$standby->append_conf('postgresql.conf', 'snowflake.shard = 8');
$standby->restart;
is($standby->safe_psql($database, 'SELECT * FROM "The Admin".snowflake_check()'), '',
	'a standby with the same shard in its files is healthy');
$standby->append_conf('postgresql.conf', 'snowflake.shard = 7');
$standby->restart;
my $other_shard = qr/\Awarning\|database filed\|This standby has shard 7, but the newest rows of shop.photos have shard 8\.[^\n]*\z/;
like($standby->safe_psql($database, 'SELECT * FROM "The Admin".snowflake_check()'), $other_shard, '... but not one with another');
$standby->adjust_conf('postgresql.conf', 'snowflake.shard', 8);
$standby->stop;
system_or_bail('pg_ctl', '-w', '-D', $standby->data_dir, '-l', $standby->logfile, '-o', '-c snowflake.shard=7', 'start');
$standby->_update_pid(1);
like($standby->safe_psql($database, 'SELECT * FROM "The Admin".snowflake_check()'), $other_shard,
	'... nor one with another on the command line, which goes before its files');
$standby->stop;
$standby->adjust_conf('postgresql.conf', 'snowflake.shard', undef);
$node->adjust_conf('postgresql.conf', 'snowflake.shard', undef);
$node->reload;
$standby->start;
$database = $faults;

my $setting = 'synchronous_standby_names';

sub set_names
{
	my ($names) = @_;
	value("ALTER SYSTEM SET $setting = '$names'");
	$node->reload;
}

my $none = 'but none of these standbys is streaming, so commits and next_id() wait.';
set_names('FIRST 1 ("s-1", S3)');
finds("warning $setting|It names standbys that are not streaming: s-1. Others suffice for now.|Repair them, ...",
	'a missing standby of two is a warning', soon => 1);
set_names('ANY 1 (*)');
finds('', 'any standby may be meant', soon => 1);
$standby->stop;
finds("error $setting|It is 'ANY 1 (*)', $none Repair a standby; or else, unless Patroni or CloudNativePG manages "
	  . "this setting, continue without one...|Decide, then, as a superuser, ALTER SYSTEM SET $setting = '', and SELECT pg_reload_conf().",
	'no standby at all is an error', soon => 1);
$standby->start;
set_names('s1');
finds("error $setting|It is 's1', $none Repair s1; or else, ..., name the standbys that are streaming.|"
	  . qq{Decide, then, as a superuser, ALTER SYSTEM SET $setting = 'FIRST 1 ("s3")', and SELECT pg_reload_conf().},
	'a standby that does not stream is named, and one that does', soon => 1);
finds("note $setting|It is 's1', and reader may not see which standbys are streaming. If too few are, commits and next_id() wait. Only a superuser can grant this.|GRANT pg_read_all_stats TO reader;",
	'a role that may not see standbys gets a note', role => 'reader');
my ($set_names) = rows() =~ /(ALTER SYSTEM .*), and SELECT/;
$node->safe_psql($database, $set_names);
$node->reload;
finds('', 'the remedy is one', soon => 1);
set_names('');
$standby->stop;

# --- a subscription that stops at an ID that exists ---------------------------------------------

new_database('sender', 8);
value(q{
	CREATE TABLE public.sent (id bigint PRIMARY KEY);
	CREATE PUBLICATION everything FOR ALL TABLES});
value(q{SELECT pg_create_logical_replication_slot('s1', 'pgoutput')});
new_database('receiver', 6);
my $sender = $node->connstr('sender') =~ s/'/''/gr;
# On a slow machine, a worker that is started again twice a second would always run.
$node->append_conf('postgresql.conf', "wal_retrieve_retry_interval = 5s\n");
$node->reload;
value(qq{
	CREATE TABLE public.sent (id bigint PRIMARY KEY);
	INSERT INTO public.sent VALUES (1);
	CREATE SUBSCRIPTION s1 CONNECTION '$sender' PUBLICATION everything WITH (create_slot = false, copy_data = false)});
finds('', 'a subscription that runs is no problem');
$node->safe_psql('sender', 'INSERT INTO public.sent VALUES (1)');
finds('warning subscription s1|It is not running, and has had ... errors.|The server log ..."Duplicate IDs"...',
	'one that stops with an error is a warning', soon => 1);
$database = 'sender';
finds('', '... in its own database');
$database = 'receiver';
value('DELETE FROM public.sent');
ok(wait_for(sub { value('SELECT count(*) FROM public.sent') eq '1' }), '... until it runs again');
finds('', '... and then it is none');
value('ALTER SUBSCRIPTION s1 DISABLE');

done_testing();
