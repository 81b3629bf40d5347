# Keys move from nextval() and identities to next_id(), and back, in one command,
# while programs insert, update and delete.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('move', 'app');
$node->safe_psql('postgres', 'CREATE ROLE clerk LOGIN; CREATE ROLE visitor LOGIN; CREATE ROLE manager LOGIN');

sub default_of
{
	my ($table) = @_;
	return value('app', qq{
		SELECT pg_get_expr(adbin, adrelid)
		FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
		WHERE adrelid = '$table'::regclass AND lower(attname) IN ('id', 'key')});
}

# --- under load ------------------------------------------------------------

value('app', q{
	CREATE TABLE photos (id bigserial PRIMARY KEY, title text, n int DEFAULT 0);
	CREATE TABLE albums (
		id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		photo bigint REFERENCES photos ON DELETE CASCADE,
		n int DEFAULT 0);
	CREATE INDEX ON albums (photo);
	INSERT INTO photos (title) SELECT 'old' FROM generate_series(1, 100000);
	INSERT INTO albums (photo) SELECT id FROM photos;
	GRANT SELECT, UPDATE, DELETE ON photos, albums TO clerk;
	GRANT INSERT ON photos TO clerk;
	GRANT INSERT (photo) ON albums TO clerk;
	GRANT USAGE ON photos_id_seq TO clerk});
my $load = start_sessions('app', <<'EOS');
\set old random(1, 100000)
BEGIN;
SET LOCAL ROLE clerk;
INSERT INTO photos (title) VALUES ('new') RETURNING id AS photo \gset
INSERT INTO albums (photo) VALUES (:photo), (:photo);
UPDATE photos SET n = n + 1 WHERE id = :photo;
UPDATE albums SET n = n + 1 WHERE photo = :old;
INSERT INTO photos (title) VALUES ('deleted') RETURNING id AS gone \gset
DELETE FROM photos WHERE id = :gone;
COMMIT;
EOS
like(said(q{CALL snowflake_move('photos')}), qr/ERROR:  "snowflake.shard" is not set\n.*snowflake_set_shard/s,
	'a key does not move to a shard that is not set');
foreach my $own ('false', 'true', 'false')
{
	value('app', "CALL snowflake_move('$_', 5, own_sequence => $own)") foreach 'photos', 'albums';
	like(default_of($_), qr/next_id\(\(5\)::bigint/, "$_ moves, own_sequence => $own") foreach 'photos', 'albums';
	sessions_go_on($load, '... and the sessions go on');
	value('app', "CALL snowflake_move_back('$_')") foreach 'photos', 'albums';
	sessions_go_on($load, '... also after the move back');
	clock_passes_identities('app');
}
end_sessions($load);
is(value('app', q{SELECT count(*) FROM photos WHERE title = 'old' AND id <= 100000}), 100000,
	'old keys are as they were');

# --- one of several servers -------------------------------------------------

# While one server moves back, another one makes all IDs that its shard has in these
# milliseconds.
my %shard = (east => 31, west => 32);
foreach my $server (sort keys %shard)
{
	new_admin_database($server);
	value($server, qq{
		SELECT snowflake_set_shard($shard{$server});
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id());
		INSERT INTO photos DEFAULT VALUES});
}
my $west = start_load($node->connstr('west'), "INSERT INTO photos SELECT FROM generate_series(1, 5000);\n",
	'-c', '2', '-R', '400');
value('east', q{INSERT INTO photos VALUES (snowflake_id(now() + '3 s', 8191, 1023))});	# of a third server
value('east', q{CALL snowflake_move_back('photos')});
my $counted = value('east', q{SELECT last_value FROM photos_id_seq});
value('east', q{INSERT INTO photos SELECT FROM generate_series(1, 100000)});
ok(wait_for(sub { value('west', "SELECT max(id) > $counted + (500::bigint << 23) FROM photos") eq 't' }),
	'another server makes IDs of the times at which an identity has begun');
end_load($west, 'server west');
# ... and perhaps it has used each of its IDs of the first of them.
value('west', qq{
	INSERT INTO photos SELECT snowflake_id(snowflake_timestamp($counted) + n / 1024 * interval '1 ms', 32, n % 1024)
	FROM generate_series(0, 4095) AS n ON CONFLICT DO NOTHING});
is(value('east', q{
		SELECT count(*), count(DISTINCT snowflake_shard(id)), min(snowflake_shard(id)) FROM photos
		WHERE id > (SELECT max(id) FROM photos WHERE snowflake_shard(id) = 8191)}),
	'100000|1|31', "... but an identity's numbers, beyond all IDs of the table, are those of its own server alone");
my %ids = map { $_ => [ split /\n/, value($_, 'SELECT id FROM photos') ] } keys %shard;
my %is_west = map { $_ => 1 } @{ $ids{west} };
is(scalar(grep { $is_west{$_} } @{ $ids{east} }), 0, '... so no ID is in both databases');
foreach my $case (
	[ 'instagram', 'next_id()', 31 ],
	[ 'decimal', q{next_id(12345, 'keys_seq', 'decimal')}, 12345 ],
	[ 'trace', q{next_id(77, 'keys_seq', 'trace')}, 77 ],
	[ 'timestamp:45 sequence:8 shard:10 epoch:1577836800000 tick:10us', q{next_id(9, 'keys_seq',
		'timestamp:45 sequence:8 shard:10 epoch:1577836800000 tick:10us')}, 9 ])
{
	my ($layout, $default, $number) = @$case;
	is(value('east', qq{
			CREATE SEQUENCE keys_seq;
			SELECT FROM snowflake_alter_sequence('keys_seq', '$layout');
			CREATE DOMAIN key_$number AS bigint DEFAULT $default;
			CREATE TABLE keys (id key_$number PRIMARY KEY);
			INSERT INTO keys DEFAULT VALUES;
			CREATE TABLE before AS SELECT * FROM keys;
			CALL snowflake_move_back('keys');
			INSERT INTO keys SELECT FROM generate_series(1, 1000);
			SELECT count(*) FILTER (WHERE id > (SELECT max(id) FROM before)), count(DISTINCT snowflake_shard(id, '$layout')),
				min(snowflake_shard(id, '$layout'))
			FROM keys;
			DROP TABLE keys, before;
			DROP DOMAIN key_$number;
			DROP SEQUENCE IF EXISTS keys_seq}),
		"1000|1|$number", "also in layout $layout, in the default of a domain");
}

# --- what it says ----------------------------------------------------------

value('app', q{
	CREATE SCHEMA "My Shop";
	SET search_path = "My Shop", public;
	CREATE TABLE "Items" (
		"Key" bigint GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME "Item's ""No""") PRIMARY KEY);
	GRANT INSERT ON "Items" TO PUBLIC;
	GRANT USAGE ON SCHEMA "My Shop" TO PUBLIC;
	CREATE TABLE small (id serial PRIMARY KEY);
	CREATE TABLE people (id bigserial PRIMARY KEY);
	CREATE TABLE likes (person integer REFERENCES people);
	CREATE TABLE keyless (id bigint PRIMARY KEY);
	CREATE TABLE bills (id uuid PRIMARY KEY, number bigserial);
	CREATE TABLE pairs (a bigserial, b bigserial, PRIMARY KEY (b, a));
	CREATE TABLE days (id bigserial, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
	CREATE TABLE day_1 PARTITION OF days FOR VALUES FROM (1) TO (2);
	CREATE TABLE nights (id bigint GENERATED ALWAYS AS IDENTITY, night int, PRIMARY KEY (id, night))
		PARTITION BY RANGE (night);
	CREATE TABLE night_1 PARTITION OF nights FOR VALUES FROM (1) TO (2);
	CREATE TABLE animals (id bigserial PRIMARY KEY);
	CREATE TABLE cats () INHERITS (animals);
	CREATE TABLE typed (id snowflake PRIMARY KEY DEFAULT next_id(3));
	CREATE SEQUENCE tweets_seq;
	SELECT snowflake_alter_sequence('tweets_seq', 'twitter');
	CREATE TABLE tweets (id bigint PRIMARY KEY DEFAULT next_id(33, 'tweets_seq'));
	INSERT INTO tweets DEFAULT VALUES});
my ($notices, @commands) = split /^NOTICE:  (?!programs)/m,
  said(q{CALL snowflake_move('"My Shop"."Items"', 5, own_sequence => true, dry_run => true)}) . "\n";
is($notices, <<'EON', 'a dry run shows what programs will notice');
NOTICE:  programs will notice that new keys of table "My Shop"."Items" are IDs
DETAIL:  They have 19 digits, which JavaScript rounds and a 32-bit integer cannot hold. currval() and lastval() do not know them, and values that nextval() takes from the former sequence are not IDs.
HINT:  Use INSERT ... RETURNING. Restart programs that cache the types of columns, such as Rails, if the key was an integer when they began.
EON
is(join('', @commands), <<'EOC', '... and the commands');
ALTER TABLE "My Shop"."Items" ALTER "Key" DROP IDENTITY;
CREATE SEQUENCE "My Shop"."Item's ""No""";
SELECT public.snowflake_alter_sequence('"My Shop"."Item''s ""No"""'::regclass, 'instagram'::public.snowflake_layout);
SELECT public.snowflake_advance('"My Shop"."Item''s ""No"""'::regclass, largest) FROM snowflake_admin.largest('"My Shop"."Items"', 'Key') WHERE largest >= snowflake_admin.least_id();
GRANT USAGE ON SEQUENCE "My Shop"."Item's ""No""" TO PUBLIC;
ALTER TABLE "My Shop"."Items" ALTER "Key" SET DEFAULT public.next_id(5::bigint, '"My Shop"."Item''s ""No"""'::regclass);
EOC
is(default_of('"My Shop"."Items"'), '', '... and changes nothing');

# The largest number of a layout without a time is known by rows alone.
value('app', q{
	CREATE SEQUENCE decimals_seq;
	SELECT snowflake_alter_sequence('decimals_seq', 'decimal');
	CREATE TABLE decimals (id bigint PRIMARY KEY DEFAULT next_id(1, 'decimals_seq', 'decimal'));
	INSERT INTO decimals DEFAULT VALUES});
my %refused = (
	q{CALL snowflake_move('"My Shop".people', 5)} =>
	  qr/Obstacle: "My Shop"\.likes\.person is integer\.\nHINT:  CALL .*snowflake_widen\('"My Shop"\.people'::regclass, 'id'::name\) /,
	q{CALL snowflake_move('"My Shop".bills', 5)} =>
	  qr/Obstacle: it is not in the primary key\.\nHINT: .*numbers for people/,
	q{CALL snowflake_move('"My Shop".pairs', 5)} =>
	  qr/ 55000: table "My Shop"\.pairs has more than one key\nDETAIL: .* each of the columns a, b\./,
	q{CALL snowflake_move('"My Shop".keyless', 5)} =>
	  qr/ 55000: table "My Shop"\.keyless has no key that .* next_id\(\) generates\nHINT: .*snowflake_keys/,
	q{CALL snowflake_move('"My Shop".day_1', 5)} => qr/HINT: .*Call this for "My Shop"\.days instead/,
	q{CALL snowflake_move(NULL, 5)} => qr/ 22004: tab must not be null/,
	q{CALL snowflake_move('photos', 8192)} => qr/ 22023: shard 8192 is out of range/,
	q{SET ROLE visitor; CALL snowflake_move('photos', 5)} => qr/ 42501: must be owner of table public\.photos/,
	q{BEGIN; CREATE SEQUENCE timeless;
		SELECT snowflake_alter_sequence('timeless', 'shard:13 sequence:31');
		CREATE TABLE timeless_keys (id bigint PRIMARY KEY DEFAULT next_id(5, 'timeless', 'shard:13 sequence:31'));
		CALL snowflake_move_back('timeless_keys')} =>
	  qr/ 55000: IDs of layout shard:13 sequence:31, which table public\.timeless_keys has, have no timestamp/,
	q{CALL snowflake_move_back_schema('none')} => qr/ 3F000: schema "none" does not exist/,
	q{BEGIN; CALL snowflake_move_schema('public', 5)} =>
	  qr/ 2D000: snowflake_move_schema\(\) cannot run inside a transaction block\nHINT/,
	q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT; CALL snowflake_move_back('decimals')} =>
	  qr/ 55000: snowflake_move_back\(\) cannot run in a transaction that is repeatable read\nDETAIL.*\nHINT: .* READ COMMITTED/,
	q{SET default_transaction_isolation = serializable; CALL snowflake_move('photos', 5)} =>
	  qr/ 55000: snowflake_move\(\) cannot run in a transaction that is serializable/);
like(run_psql('app', $_), $refused{$_}, "refused: $_") foreach sort keys %refused;
is(value('app', q{
		CALL snowflake_move_back('decimals');
		INSERT INTO decimals DEFAULT VALUES RETURNING id > (SELECT max(id) FROM decimals)}),
	't', 'a key without a time moves back by a new snapshot');

# Functions and operators that a search_path would find first
hostile_schema($node, 'app');
value('app', 'CREATE SCHEMA plain; CREATE TABLE plain.a (id bigserial PRIMARY KEY)');
my $moved = said(q{
	SET search_path = evil, pg_catalog, public;
	CALL snowflake_move_schema('plain', 5, own_sequence => true);
	CALL snowflake_move_back_schema('plain')});
unlike($moved, qr/hostile|ERROR/, 'a hostile search_path does nothing');
like($moved, qr/ALTER TABLE \w+\.\w+ ALTER id SET DEFAULT public\.next_id\(5.*ADD GENERATED/s, '... but keys move');

# In the transaction of a migration tool
clock_passes_identities('app');
value('app', q{BEGIN; CALL snowflake_move('photos', 5, own_sequence => true); ROLLBACK});
is(default_of('photos'), '', 'a key can move in a transaction block that is rolled back');

# There, others wait for what the transaction has locked before, so it soon gives up.
my $user = session($node, 'app');
$user->query_safe('BEGIN; SELECT FROM photos');
like(run_psql('app', q{BEGIN; ALTER TABLE albums ADD note text; CALL snowflake_move('photos', 5)}),
	qr/ERROR:  55P03: could not get the locks in 3 tries.*HINT:  Call it in its own transaction, /s,
	'in a transaction block, a move gives up after three tries');
like(run_psql('app', q{CALL snowflake_move('photos', 5, tries => 1)}),
	qr/ERROR:  55P03: could not get the locks in one try.*HINT:  Call it again when that transaction has ended/s,
	'... and elsewhere says to call it again');
$user->quit;
value('app', q{CALL snowflake_move('photos', 5)});
$user = session($node, 'app');
$user->query_safe('BEGIN; SELECT FROM photos');
like(run_psql('app', q{BEGIN; CALL snowflake_move_back('photos')}), qr/ in 3 tries/, '... so does a move back');
$user->quit;

# What a superuser is about to do is composed of the names of schemas, also of sequences'.
value('app', q{
	CREATE SCHEMA shelf;
	CREATE SEQUENCE shelf.numbers;
	CREATE SEQUENCE shelf.ids;
	SELECT snowflake_alter_sequence('shelf.ids', 'instagram');
	CREATE TABLE numbered (id bigint PRIMARY KEY DEFAULT nextval('shelf.numbers'));
	CREATE TABLE moved (id bigint PRIMARY KEY DEFAULT next_id(5, 'shelf.ids'))});
my $renaming = $node->background_psql('app');
$renaming->query_safe('BEGIN; ALTER SCHEMA shelf RENAME TO archive');
like(run_psql('app', $_), qr/ERROR:  55P03: could not get the locks in one try/, "the schema of a sequence is being renamed: $_")
  foreach q{CALL snowflake_move('numbered', 5, tries => 1)}, q{CALL snowflake_move_back('moved', tries => 1)};
$renaming->query_safe('ROLLBACK');
$renaming->quit;
succeeds('app', $_, "... and is not any more: $_")
  foreach q{CALL snowflake_move('numbered', 5)}, q{CALL snowflake_move_back('moved')};
value('app', 'DROP SCHEMA shelf CASCADE; DROP TABLE numbered, moved');

# A default that is more than a call would be lost.
foreach my $default (q{snowflake_to_text(next_id(5), 'base32')}, q{'ph_' || next_id(5)}, 'snowflake_obfuscate(next_id(5), 77)',
	'CASE WHEN random() < 0.5 THEN next_id(5) ELSE next_id(6) END')
{
	my $type = $default =~ /obfuscate|CASE/ ? 'bigint' : 'text';

	value('app', "CREATE TABLE wrapped (id $type PRIMARY KEY DEFAULT $default)");
	my $before = default_of('wrapped');
	like(run_psql('app', $_), qr/ERROR:  55000: the default of column id of table public.wrapped is an expression around next_id/,
		"refused: $_, DEFAULT $default")
	  foreach q{CALL snowflake_move('wrapped', 7)}, q{CALL snowflake_move('wrapped', 7, own_sequence => true)},
	  q{CALL snowflake_move_back('wrapped')};
	is(default_of('wrapped'), $before, '... and it stays');
	value('app', 'DROP TABLE wrapped');
}
foreach my $type ('snowflake', 'numeric', 'varchar(30)', 'text')
{
	value('app', "CREATE TABLE plain (id $type PRIMARY KEY DEFAULT next_id(5))");
	succeeds('app', q{CALL snowflake_move('plain', 7)}, "a default with a cast moves: $type");
	like(default_of('plain'), qr/next_id\(\(7\)::bigint\)/, '... to another shard');
	value('app', 'DROP TABLE plain');
}

# Whoever may not execute what the new default calls is named before the move.
value('app', q{
	CREATE TABLE revoked (id bigint PRIMARY KEY DEFAULT next_id(5));
	GRANT INSERT ON revoked TO visitor;
	REVOKE EXECUTE ON FUNCTION next_id(bigint, regclass) FROM PUBLIC});
foreach my $dry_run ('true', 'false')
{
	like(run_psql('app', "CALL snowflake_move('revoked', 6, own_sequence => true, dry_run => $dry_run)"),
		qr/WARNING:  \w+: visitor may insert into table public.revoked, but not call public.next_id\(bigint,regclass\), .*
HINT:  Let a superuser GRANT EXECUTE ON FUNCTION public.next_id\(bigint,regclass\) TO visitor first/,
		"a role that could not insert any more is named, dry_run => $dry_run");
}
value('app', 'GRANT EXECUTE ON FUNCTION next_id(bigint, regclass) TO visitor');
my $kept = run_psql('app', q{CALL snowflake_move('revoked', 7, dry_run => true)});
unlike($kept, qr/may insert/, '... and not after the GRANT');
like($kept, qr/SET DEFAULT public.next_id\(7::bigint, 'public.revoked_id_seq'::regclass\);/, 'a sequence that stays is named');
value('app', 'GRANT EXECUTE ON FUNCTION next_id(bigint, regclass) TO PUBLIC; DROP TABLE revoked CASCADE');

# --- a new sequence and shard in one command -------------------------

is(value('app', q{
		SELECT setval('"My Shop".tweets_seq', 9007199254736000) > 0;
		CALL snowflake_move('"My Shop".tweets', 34, own_sequence => true);
		INSERT INTO "My Shop".tweets DEFAULT VALUES
		RETURNING snowflake_shard(id, 'twitter'), clock_timestamp() - snowflake_timestamp(id, 'twitter') < '5 s'}),
	"t\n34|t", 'a new sequence with a new shard ends that one is far ahead of the clock, in the same layout');
value('app', q{CALL snowflake_move('"My Shop".tweets', 35)});
is(default_of('"My Shop".tweets'), q{next_id((35)::bigint, '"My Shop".tweets_id_seq'::regclass)},
	'a new shard alone keeps the sequence');

# Rows that the sequence made when it was ahead, or a clock was, stay where they are.
is(value('app', q{
		CREATE TABLE late (id bigint PRIMARY KEY DEFAULT next_id(5), t text);
		INSERT INTO late SELECT snowflake_max_id(now() + ahead) FROM unnest('{3 days,12 hours}'::interval[]) AS ahead;
		CALL snowflake_move('late', 6, own_sequence => true);
		INSERT INTO late (t) VALUES ('new')
		RETURNING snowflake_shard(id), clock_timestamp() - snowflake_timestamp(id) < '5 s'}),
	'6|t', 'with a new shard, a new sequence need not be beyond future-dated rows');
is(said(q{CALL snowflake_move('late', 6, own_sequence => true)}),
	'NOTICE:  the key of public.late already comes from next_id() with this shard',
	'... and another call changes nothing');
my $with_setting = q{SET snowflake.shard = 5; CALL snowflake_move('by_setting', own_sequence => true)};
value('app', "CREATE TABLE by_setting (id bigserial PRIMARY KEY); $with_setting");
like(said($with_setting), qr/NOTICE:  the key of public.by_setting already comes .*shard$/,
	"... nor does one with the database's shard");
is(value('app', q{
		CREATE TABLE late_too (id bigint PRIMARY KEY DEFAULT next_id(6, 'late_id_seq'));
		DO $$ BEGIN PERFORM snowflake_advance('late_id_seq', snowflake_max_id(now() + '4 s')); END $$;
		CALL snowflake_move('late_too', 6, own_sequence => true);
		SELECT new.last_timestamp >= old.last_timestamp
		FROM snowflake_sequences('late_too_id_seq') AS new, snowflake_sequences('late_id_seq') AS old}),
	't', 'a sequence in place of a shared one begins beyond all IDs that this one made with the same shard');
is(value('app', q{
		SELECT snowflake_max_id(last_timestamp) AS last FROM snowflake_sequences('late_too_id_seq') \gset
		CALL snowflake_move_back('late_too');
		INSERT INTO late_too DEFAULT VALUES RETURNING id > :last}),
	't', 'an identity begins beyond IDs of its sequence for which there are no rows');
is(value('app', q{SELECT relname FROM pg_class WHERE relkind = 'S' AND relname ~ '^late' ORDER BY 1}),
	"late_id_seq\nlate_too_id_seq", '... and takes the name of that sequence, which is gone');

value('app', 'CREATE TABLE twice (id bigint PRIMARY KEY DEFAULT next_id(5))');
my ($holder, @calls) = map { session($node, 'app') } 1 .. 3;
$holder->query_safe('BEGIN; SELECT FROM twice');
send_sql($_, q{CALL snowflake_move('twice', 9, own_sequence => true, tries => 1000)}) foreach @calls;
ok(wait_for(sub {
	value('app', q{SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query ~ '^CALL .*twice'}) == 2 }),
	'two sessions move one table at once');
$holder->query_safe('COMMIT');
$_->query('') foreach @calls;
is(join('', map { $_->{stderr} =~ /ERROR.*/g } @calls), '', '... without an error');
is(value('app', q{SELECT count(*) FROM pg_class WHERE relkind = 'S' AND relname ~ '^twice'}), 1,
	'... and one sequence is made');
$_->quit foreach $holder, @calls;

# --- one sequence of several tables, and sequences that are left ----------------

value('app', q{
	CREATE SCHEMA shared;
	SET search_path = shared, public;
	CREATE SEQUENCE hibernate_sequence;
	CREATE TABLE first (id bigint PRIMARY KEY DEFAULT nextval('hibernate_sequence'), t text);
	CREATE TABLE second (id bigint PRIMARY KEY DEFAULT nextval('hibernate_sequence'), t text);
	INSERT INTO first (t) VALUES ('x');
	INSERT INTO second (t) VALUES ('x');
	GRANT USAGE ON SCHEMA shared TO clerk;
	GRANT INSERT ON first TO clerk;
	GRANT ALL ON hibernate_sequence TO visitor});
my $sequences = q{SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
	WHERE relkind = 'S' AND relnamespace = 'shared'::regnamespace};
value('app', q{CALL snowflake_move('shared.first', 5, own_sequence => true)});
is(default_of('shared.first'), q{next_id((5)::bigint, 'shared.first_id_seq'::regclass)},
	'a key leaves a sequence that another one shares, for its own');
is(value('app', q{
		INSERT INTO shared.second (t) VALUES ('y') RETURNING id;
		SET ROLE clerk;
		INSERT INTO shared.first (t) VALUES ('y')}), 3, '... with which the other one goes on');
is(value('app', q{SELECT has_sequence_privilege('visitor', 'shared.first_id_seq', 'USAGE')}), 'f',
	'... and whose grants it keeps');
like(said(q{CALL snowflake_move_schema('shared', 5)}), qr/NOTICE:  1 of 1 tables done/, '... until it moves, too');
value('app', 'GRANT SELECT ON SEQUENCE shared.first_id_seq TO visitor');
foreach my $number (6, 7)
{
	value('app', "CALL snowflake_move('shared.first', $number, own_sequence => true)");
	my $sequence = $number == 6 ? 'first_id_seq2' : 'first_id_seq';
	is(value('app', "$sequences; SELECT has_sequence_privilege('visitor', 'shared.$sequence', 'SELECT')"),
		"$sequence hibernate_sequence\nt",
		"a new own sequence for shard $number takes the place and the grants of the old one");
}
value('app', q{
	CREATE FUNCTION shared.last() RETURNS bigint LANGUAGE sql AS 'SELECT last_value FROM shared.first_id_seq';
	CALL snowflake_move('shared.first', 8, own_sequence => true)});
is(value('app', $sequences), 'first_id_seq first_id_seq2 hibernate_sequence',
	'... unless something else needs the old one');
value('app', 'SET client_min_messages = warning; DROP SCHEMA shared CASCADE');

# --- domains --------------------------------------------------------------------

value('app', q{
	CREATE DOMAIN positive AS bigint CHECK (VALUE > 0);
	CREATE DOMAIN key AS positive;
	CREATE TABLE checked (id key PRIMARY KEY DEFAULT next_id(5))});
like(run_psql('app', q{CALL snowflake_move_back('checked')}),
	qr/ 55000: column id of table public.checked is of domain public.key, .*\nDETAIL: .*\(VALUE > 0\)\) of public.positive\./,
	'a move back drops no CHECK of a domain');
is(value('app', q{
		ALTER TABLE checked ALTER id TYPE bigint;
		CALL snowflake_move_back('checked');
		INSERT INTO checked DEFAULT VALUES RETURNING id > 0}), 't', '... and goes on as its hint says');

# --- nobody gets "permission denied" -----------------------------------------

value('app', q{
	CREATE TABLE items (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, t text);
	CREATE TABLE more_items () INHERITS (items);
	CREATE VIEW shown_items AS SELECT * FROM items;
	CREATE VIEW red_items AS SELECT * FROM shown_items WHERE t = 'red';
	GRANT INSERT ON items, more_items TO clerk;
	GRANT INSERT (t), INSERT (id) ON red_items TO visitor;
	GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO clerk});
my $insert_all = q{
	SET ROLE clerk;
	INSERT INTO items (t) VALUES ('blue');
	INSERT INTO more_items (t) VALUES ('blue');
	SET ROLE visitor;
	INSERT INTO red_items (t) VALUES ('red')};
my @granted = said(q{CALL snowflake_move('items', 5, own_sequence => true, dry_run => true)})
  =~ /GRANT USAGE ON SEQUENCE \S+ TO (\w+);/g;
is(scalar(grep { $_ eq 'visitor' } @granted), 1, 'a role that may insert two columns gets the privilege once');
value('app', q{CALL snowflake_move('items', 5, own_sequence => true)});
is(said($insert_all), '', 'everybody can insert after a move, also by a view, and who could use the old sequence');
value('app', q{CALL snowflake_move_back('items')});
is(said($insert_all), '', '... and after a move back, also into a child, whose key is no identity');
clock_passes_identities('app');
like(said(q{CALL snowflake_move('items', 5)}), qr/ALTER TABLE public\.more_items ALTER id DROP DEFAULT/,
	'... which moves forward again with its parent');
is(said($insert_all), '', '... so that everybody can insert');
is(value('app', q{
		SELECT count(*), count(DISTINCT id),
			(SELECT min(snowflake_shard(id)) FROM (SELECT id FROM items ORDER BY id DESC LIMIT 3) AS last) FROM items}),
	'9|9|5', '... and no key repeats');

value('app', q{
	CREATE TABLE hidden (id bigint PRIMARY KEY DEFAULT next_id(5), t text);
	INSERT INTO hidden VALUES (snowflake_max_id(now() + '1 hour'), 'of others');
	ALTER TABLE hidden ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY, OWNER TO manager;
	CREATE POLICY own ON hidden USING (t <> 'of others');
	GRANT CREATE ON SCHEMA public TO manager});
my $as_manager = q{SET SESSION AUTHORIZATION manager; CALL snowflake_move_back('hidden')};
like(said($as_manager), qr/ERROR:  query would be affected by row-level security policy/,
	'an owner who may not see all rows is told so');
value('app', "ALTER TABLE hidden NO FORCE ROW LEVEL SECURITY; $as_manager");
is(value('app', 'INSERT INTO hidden DEFAULT VALUES RETURNING id > (SELECT max(id) FROM hidden), id & 1023'), 't|0',
	'... and the identity begins beyond all of them, with the first ID of a millisecond');

# --- extensions in two schemas, names of many bytes, keys beside the key -----

new_admin_database('apart');
my $long = 'ours."' . 'äöü' x 10 . '"';
value('apart', qq{
	CREATE SCHEMA "The IDs";
	ALTER EXTENSION snowflake SET SCHEMA "The IDs";
	CREATE SCHEMA ours;
	CREATE TABLE $long (id bigint PRIMARY KEY DEFAULT "The IDs".next_id(5), number bigserial)});
foreach my $shard (6, 7)
{
	unlike(said("CALL snowflake_move('$long', $shard, own_sequence => true)", 'apart'), qr/ERROR/,
		"a key moves to shard $shard where the extensions are in two schemas, the name of its table is long, and a "
		  . 'column beside it, which nextval() fills, stays as it is');
	is(value('apart', qq{INSERT INTO $long DEFAULT VALUES RETURNING "The IDs".snowflake_shard(id)}), $shard, '... and has its IDs');
}
like(said(q{
		CREATE TABLE stars (id bigserial PRIMARY KEY);
		CREATE TABLE fans (star integer REFERENCES stars);
		CALL snowflake_move('stars', 8)}, 'apart'),
	qr/HINT:  CALL public\.snowflake_widen\('public\.stars'::regclass, 'id'::name\) /, 'a hint names the schema of snowflake_admin');
is(said(q{CALL snowflake_move_schema('ours', 8)}, 'apart'),
	"WARNING:  column number of table $long stays as it is: it is not the key of its table\n"
	  . 'NOTICE:  0 of 0 tables done',
	'a column beside the key is named, and the key stays as it is');

# Nobody waits until a large table has been read.
value('apart', q{
	CREATE TABLE tenants (tenant int, id bigint DEFAULT "The IDs".next_id(5), PRIMARY KEY (tenant, id));
	INSERT INTO tenants SELECT n % 100, n FROM generate_series(1, 200000) AS n});
like(said(q{CALL snowflake_move_back('tenants')}, 'apart'),
	qr/SELECT setval\('public.tenants_id_seq'::regclass, snowflake_admin.number_before\(200000, .*, 5, 'instagram'\)\);/,
	'the largest ID is looked for before the lock where no index begins with the key');

# --- a key that a recipe moved back ------------------------------------------

value('apart', q{
	CREATE TABLE returned (id bigserial PRIMARY KEY);
	INSERT INTO returned VALUES ("The IDs".snowflake_max_id(now() - interval '1 hour'));
	SELECT setval('returned_id_seq', id) FROM returned});
like(said(q{CALL snowflake_move('returned', 5, own_sequence => true)}, 'apart'),
	qr/ALTER SEQUENCE public.returned_id_seq RESTART;/, 'a sequence that has whole IDs as its numbers begins anew');
is(value('apart', q{
		INSERT INTO returned DEFAULT VALUES
		RETURNING id > (SELECT max(id) FROM returned), "The IDs".snowflake_shard(id)}),
	't|5', '... beyond all IDs of the table');

# --- a schema --------------------------------------------------------------

my $older = $node->background_psql('app');
$older->query_safe('BEGIN; SELECT FROM "My Shop".animals');
my $may_be_older = qr/NOTICE:  other sessions: [1-9]\. Those that began before the shard was set must reconnect .*\n/;
value('app', 'SELECT snowflake_set_shard(7)');
like(said(q{CALL snowflake_move('"My Shop".days', dry_run => true)}), qr/${may_be_older}NOTICE:  ALTER TABLE/,
	'a move to the shard of the setting counts the sessions that may not have it');
unlike(said(q{CALL snowflake_move('"My Shop".days', 7, dry_run => true)}), $may_be_older,
	'... and one with a number does not');
$moved = said(q{CALL snowflake_move_schema('My Shop')});
is(() = $moved =~ /$may_be_older/g, 1, '... and that of a schema counts once');
is(join(', ', $moved =~ /programs will notice that new keys of (.*) are IDs/g), 'schema "My Shop"',
	'... and so is what programs will notice');
unlike($moved, qr/ALTER TABLE "My Shop"\.animals/, 'no command is shown for a table that is in use');
is(join(' ', $moved =~ /as GENERATED ALWAYS did: (.*)/g), '"My Shop".nights',
	'keys that programs can choose then are named once');
like($moved, qr/"My Shop"\.small stays as it is: cannot move column id.*\nDETAIL:  Obstacle: .*\nHINT: .*_widen/,
	'a table with an obstacle is named, with the obstacle and what to do');
like($moved, qr/"My Shop"\.animals stays as it is: could not get the locks in 5 tries/, '... and one that is in use');
like($moved, qr/NOTICE:  3 of 8 tables done/, '... and the others move');
$older->quit;
like(said(q{CALL snowflake_move_schema('My Shop')}), qr/NOTICE:  1 of 5 tables done/, '... and later the last one');
is(default_of(qq{"My Shop".$_}), 'next_id()', "$_ has the default of the schema")
  foreach '"Items"', 'days', 'day_1', 'nights', 'animals', 'cats';
my $insert = q{
	SET search_path = "My Shop", public;
	INSERT INTO days (day) VALUES (1) RETURNING id > (SELECT max(id) FROM days);
	INSERT INTO animals DEFAULT VALUES RETURNING id > (SELECT max(id) FROM animals);
	INSERT INTO cats DEFAULT VALUES RETURNING id > (SELECT max(id) FROM animals)};
value('app', "$insert; INSERT INTO typed DEFAULT VALUES");
$older = session($node, 'app');
$older->query_safe('BEGIN; SELECT FROM "My Shop".animals');
$moved = said(q{CALL snowflake_move_back_schema('My Shop', tries => 1)});
like($moved, qr/"My Shop"\.animals stays as it is: .*NOTICE:  5 of 6 tables done/s, 'a table in use does not move back');
unlike($moved, qr/(SEQUENCE|ALTER TABLE) "My Shop"\.animals/, '... and no command is shown for it');
$older->quit;
like(said(q{CALL snowflake_move_back_schema('My Shop')}), qr/NOTICE:  1 of 1 tables done/, '... but later');
value('app', q{CALL snowflake_move_back_schema('public')});
is(value('app', q{SELECT tab FROM snowflake_keys() WHERE made_by = 'next_id'}), '', '... from next_id()');
is(value('app', $insert), "t\nt\nt", 'the next number of a partitioned table, a parent and a child is beyond all IDs');
value('app', 'DROP EXTENSION snowflake_admin; DROP EXTENSION snowflake');

# --- killed at each step ----------------------------------------------------

my $kills = run_killed_at_each_step('killed',
	sub {
		value($_[0], q{
			SELECT snowflake_set_shard(7);
			CREATE TABLE a (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
			CREATE TABLE b (id bigserial PRIMARY KEY)}) },
	q{CALL snowflake_move_schema('public', own_sequence => true)},
	sub { value($_[0], 'SELECT tab, made_by, sequence FROM snowflake_keys() ORDER BY 1') });
cmp_ok($kills, '>=', 5, 'a schema was killed at each step');

# --- what others do meanwhile ----------------------------------------------

# Others act while a call tries to get its locks, and do not wait for the one that keeps out
# changes of the table.  What they do holds for the sequence that takes the place of another one.
my $to_own = q{CALL snowflake_move('meant', 5, own_sequence => true, tries => 1000)};
my $back = q{CALL snowflake_move_back('meant', tries => 1000)};
new_admin_database('meanwhile');
foreach my $case (
	[ 'GRANT SELECT ON SEQUENCE meant_id_seq TO clerk', q{has_sequence_privilege('clerk', 'meant_id_seq', 'SELECT')},
		$to_own, $back ],
	[ 'REVOKE ALL ON SEQUENCE meant_id_seq FROM visitor',
		q{NOT has_sequence_privilege('visitor', 'meant_id_seq', 'SELECT')}, $to_own, $back ],
	[ 'GRANT INSERT ON meant TO clerk', q{has_sequence_privilege('clerk', 'meant_id_seq', 'USAGE')}, $to_own ],
	[ 'REVOKE INSERT ON meant FROM manager', q{NOT has_sequence_privilege('manager', 'meant_id_seq', 'USAGE')}, $to_own ],
	[ 'ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO clerk',
		q{NOT has_sequence_privilege('clerk', 'meant_id_seq', 'SELECT')}, $to_own ],
	[ q{CREATE FUNCTION last() RETURNS bigint LANGUAGE sql AS 'SELECT last_value FROM meant_id_seq'}, undef, $to_own ])
{
	my ($other, $holds, @calls) = @$case;
	foreach my $call (@calls)
	{
		my $key = $call eq $back ? q{bigint DEFAULT next_id(5, 'meant_id_seq')}
		  : $holds ? 'bigint GENERATED BY DEFAULT AS IDENTITY' : 'bigserial';
		value('meanwhile', qq{
			DROP TABLE IF EXISTS meant;
			DROP SEQUENCE IF EXISTS meant_id_seq;
			ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM clerk});
		value('meanwhile', q{
			CREATE SEQUENCE meant_id_seq;
			DO $$ BEGIN PERFORM snowflake_alter_sequence('meant_id_seq'); END $$}) if $call eq $back;
		value('meanwhile', qq{
			CREATE TABLE meant (id $key PRIMARY KEY, n int);
			GRANT INSERT ON meant TO manager;
			GRANT SELECT ON SEQUENCE meant_id_seq TO visitor});
		my ($reader, $caller) = map { session($node, 'meanwhile') } 1 .. 2;
		$reader->query_safe('BEGIN; SELECT FROM meant');
		send_sql($caller, "$call;\n\\echo ended\n");
		wait_for(sub { value('meanwhile', qq{
			SELECT count(*) FROM pg_locks WHERE pid = $caller->{backend} AND relation = 'meant'::regclass
				AND mode = 'AccessExclusiveLock'}) });
		value('meanwhile', $other);
		$reader->query_safe('COMMIT');
		session_prints($caller, qr/ended/);
		if ($holds)
		{
			unlike($caller->{stderr}, qr/ERROR/, "$other while $call tries");
			holds('meanwhile', '... holds afterwards', $holds);
		}
		else
		{
			like($caller->{stderr}, qr/ERROR:  cannot move .*\nDETAIL:  Obstacle: function public\.last\(\) names its sequence/,
				"$other while $call tries is an obstacle");
		}
		$_->quit foreach $reader, $caller;
	}
}

# --- grants on a sequence ----------------------------------------------------

# A new sequence that takes another one's place has its grants.  DROP IDENTITY drops
# those of an identity, so only its own sequence can get them.
foreach my $case (
	[ 'bigserial', 'false' ],
	[ 'bigint GENERATED ALWAYS AS IDENTITY', 'true' ])
{
	my ($type, $own) = @$case;
	my $grants = q{
		SELECT string_agg(format('%s %s %s', grantee::regrole, privilege_type, is_grantable), ', ' ORDER BY grantee, 2)
		FROM pg_class, aclexplode(relacl) WHERE oid = 'counted_id_seq'::regclass AND grantee <> relowner};
	my $granted = value('apart', qq{
		DROP TABLE IF EXISTS counted;
		CREATE TABLE counted (id $type PRIMARY KEY, n int);
		GRANT INSERT (n) ON counted TO clerk;
		GRANT USAGE, SELECT ON counted_id_seq TO clerk;
		GRANT SELECT ON counted_id_seq TO visitor WITH GRANT OPTION;
		$grants});
	like($granted, qr/visitor SELECT t/, "a sequence of a $type has grants");
	said("CALL snowflake_move('counted', 5, own_sequence => $own)", 'apart');
	is(value('apart', $grants), $granted, "... which a move with own_sequence => $own keeps");
	said(q{CALL snowflake_move_back('counted')}, 'apart');
	is(value('apart', $grants), $granted, '... and so does a move back');
	is(value('apart', q{
			SET ROLE clerk;
			INSERT INTO counted (n) VALUES (1);
			SELECT currval('counted_id_seq') = lastval()}), 't',
		'... so that a role can use the sequence');
}

done_testing();
