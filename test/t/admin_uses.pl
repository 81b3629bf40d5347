# snowflake_uses() lists the places that make IDs or set a shard, and
# snowflake_keys() the keys of all tables with what keeps them from moving.

use strict;
use warnings;
use Test::More;
use AdminTest qw(hostile_schema);
use SnowflakeTest;

my $node = server_in_utc('uses');

sub value
{
	my ($database, $query) = @_;
	return $node->safe_psql($database, $query);
}

# What a function lists, a line for each row
sub listed
{
	my ($database, $columns, $function, $before) = @_;
	return value($database, ($before // '') . "SELECT $columns FROM public.snowflake_$function");
}

sub new_database
{
	my ($database, $schema) = @_;

	value('postgres', qq{CREATE DATABASE "$database"});
	value($database, qq{CREATE SCHEMA IF NOT EXISTS $schema; CREATE EXTENSION snowflake SCHEMA $schema; CREATE EXTENSION snowflake_admin});
	return;
}

my $hostile = 'SET search_path = evil, pg_catalog, public;';

# --- where IDs are made ----------------------------------------------------

value('postgres', q{CREATE ROLE "Clerk's"; CREATE ROLE auditor IN ROLE pg_read_all_settings; CREATE ROLE nobody_at_all});
new_database('App 1', q{"Id's"});
value('App 1', q{
	SET search_path = public, "Id's";
	CREATE SCHEMA "Shop";
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text DEFAULT 'next_id(6)');
	CREATE TABLE albums (id bigint PRIMARY KEY DEFAULT next_id());
	CREATE SEQUENCE "Shop"."Item's ""Numbers""" MAXVALUE 9007199254736895;		-- of layout twitter
	CREATE TABLE "Shop"."Order Items" ("Id (1)" snowflake DEFAULT next_id(33, '"Shop"."Item''s ""Numbers"""'));
	CREATE SEQUENCE free;
	CREATE TABLE computed (
		a bigint DEFAULT next_id(pg_backend_pid() % 8192),
		b bigint DEFAULT next_id(snowflake_shard(), 'free'),
		c bigint DEFAULT next_id(layout => 'timestamp:41 shard:13 sequence:10 epoch:0', sequence => 'free', shard => '7'),
		d bigint DEFAULT next_id(8::smallint, ('fr' || 'ee')::regclass, 'discord'),
		e bigint DEFAULT snowflake_id(now(), 12, 0),
		at timestamptz,
		f bigint GENERATED ALWAYS AS (snowflake_id(at, 34, 0)) STORED);
	CREATE SEQUENCE one;
	CREATE SEQUENCE two;
	SELECT snowflake_alter_sequence('one'), snowflake_alter_sequence('two', 'sonyflake');
	CREATE TABLE spread (id bigint DEFAULT CASE WHEN random() < 0.5 THEN next_id(1, 'one') ELSE next_id(2, 'two') END);
	CREATE DOMAIN photo_id AS bigint DEFAULT next_id(9);
	CREATE TABLE days (id bigint DEFAULT next_id(10), day date) PARTITION BY RANGE (day);
	CREATE TABLE day_1 PARTITION OF days FOR VALUES FROM ('2020-01-01') TO ('2020-01-02');
	CREATE TABLE day_2 PARTITION OF days (id DEFAULT next_id(11)) FOR VALUES FROM ('2020-01-02') TO ('2020-01-03');
	CREATE TABLE animals (id bigint DEFAULT next_id(13));
	CREATE TABLE cats () INHERITS (animals);
	CREATE TABLE dogs (id bigint DEFAULT next_id(14)) INHERITS (animals);
	CREATE VIEW ids AS SELECT next_id(15) AS a, id FROM next_ids(16, 10, 'one') AS i (id);
	CREATE MATERIALIZED VIEW "Old Ids" AS SELECT next_id(17);
	CREATE VIEW photo_titles AS SELECT id, title FROM photos;
	ALTER VIEW photo_titles ALTER id SET DEFAULT next_id(18);
	CREATE RULE copy AS ON INSERT TO photos DO ALSO INSERT INTO albums VALUES (next_id(19));
	CREATE FUNCTION parsed(id bigint DEFAULT next_id(20)) RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT next_id(21, 'two'); END;
	CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql SET snowflake.shard = 22 AS $$
	BEGIN
		NEW.id := "Id's".NEXT_ID ( 23 , 'one' );
		NEW.other := my_next_id(24) + next_id(nextval('free') + 1);
		EXECUTE 'SELECT next_id(25, ''two'')';
		RETURN NEW;
	END $$;
	CREATE TRIGGER fill BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION fill();
	CREATE PROCEDURE "Shop"."Set"(shard integer) LANGUAGE plpgsql AS $$
	BEGIN
		SET LOCAL snowflake.shard = 26;
		PERFORM set_config('snowflake.shard', '27', true), current_setting('snowflake.shard');
		PERFORM snowflake_set_shard(28);
		EXECUTE format('ALTER ROLE x SET snowflake.shard = %s', shard);
		RESET snowflake.shard;
	END $$;
	CREATE FUNCTION set_parsed() RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT set_config('snowflake.shard', '29', true); END;
	CREATE FUNCTION unknown_end() RETURNS text LANGUAGE sql AS $$ SELECT '(next_id(' $$;
	-- no places
	CREATE FUNCTION my_next_id(integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	CREATE TABLE other (id bigint DEFAULT my_next_id(30), read text DEFAULT current_setting('snowflake.shard', true));
	CREATE VIEW decoded AS SELECT snowflake_timestamp(id) FROM photos;
	CREATE SCHEMA insta;
	CREATE FUNCTION insta.next_id(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT $1';
	CREATE TABLE insta.photos (id bigint DEFAULT insta.next_id(31));
	-- settings
	LOAD 'snowflake';
	ALTER DATABASE "App 1" SET snowflake.shard = 40;
	ALTER ROLE "Clerk's" IN DATABASE "App 1" SET snowflake.shard = 41;
	ALTER ROLE "Clerk's" SET snowflake.shard = 42;
	ALTER ROLE ALL SET snowflake.shard = 43;
	ALTER DATABASE postgres SET snowflake.shard = 44});
$node->append_conf('postgresql.conf', 'snowflake.shard = 45');
$node->reload;
my $conf = value('postgres', 'SHOW config_file');

my $uses = <<"EOL" =~ s/\n\z//r;
column "Shop"."Order Items"."Id (1)"|33|"Shop"."Item's ""Numbers"""|twitter
column public.albums.id||"Id's".next_id_seq|instagram
column public.animals.id|13|"Id's".next_id_seq|instagram
column public.computed.a||"Id's".next_id_seq|instagram
column public.computed.b||free|
column public.computed.c|7|free|timestamp:41 shard:13 sequence:10 epoch:0
column public.computed.d|8||discord
column public.computed.e|12||instagram
column public.computed.f|34||instagram
column public.day_2.id|11|"Id's".next_id_seq|instagram
column public.days.id|10|"Id's".next_id_seq|instagram
column public.dogs.id|14|"Id's".next_id_seq|instagram
column public.photo_titles.id|18|"Id's".next_id_seq|instagram
column public.photos.id|5|"Id's".next_id_seq|instagram
column public.spread.id|1|one|instagram
column public.spread.id|2|two|sonyflake
domain public.photo_id|9|"Id's".next_id_seq|instagram
file $conf|45||
function public.fill()|22||
function public.fill()|23|one|instagram
function public.fill()|25|two|sonyflake
function public.fill()||"Id's".next_id_seq|instagram
function public.parsed(bigint)|20|"Id's".next_id_seq|instagram
function public.parsed(bigint)|21|two|sonyflake
function public.set_parsed()|29||
function public.unknown_end()|||
materialized view public."Old Ids"|17|"Id's".next_id_seq|instagram
procedure "Shop"."Set"(integer)|26||
procedure "Shop"."Set"(integer)|27||
procedure "Shop"."Set"(integer)|28||
procedure "Shop"."Set"(integer)|||
rule copy on public.photos|19|"Id's".next_id_seq|instagram
setting of all roles|43||
setting of database "App 1"|40||
setting of role "Clerk's"|42||
setting of role "Clerk's" in database "App 1"|41||
view public.ids|15|"Id's".next_id_seq|instagram
view public.ids|16|one|instagram
EOL
my $columns = 'place, shard, sequence, layout';
is(listed('App 1', $columns, 'uses()'), $uses, 'all places are listed, and what each of them uses');
is(value('App 1', q{SELECT place, code FROM snowflake_uses() WHERE place ~ 'albums|fill|domain|parsed|Set|rule|role' ORDER BY 1, 2}), <<'EOL' =~ s/\n\z//r, '... with the code');
column public.albums.id|"Id's".next_id()
domain public.photo_id|"Id's".next_id((9)::bigint)
function public.fill()|NEXT_ID ( 23 , 'one' )
function public.fill()|SET snowflake.shard TO 22
function public.fill()|next_id(25, ''two'')
function public.fill()|next_id(nextval('free') + 1)
function public.parsed(bigint)|next_id((20)::bigint)
function public.parsed(bigint)|next_id((21)::bigint, 'public.two'::regclass)
function public.set_parsed()|set_config('snowflake.shard'::text, '29'::text, true)
procedure "Shop"."Set"(integer)|SET LOCAL snowflake.shard = 26
procedure "Shop"."Set"(integer)|SET snowflake.shard = %s
procedure "Shop"."Set"(integer)|set_config('snowflake.shard', '27', true)
procedure "Shop"."Set"(integer)|snowflake_set_shard(28)
rule copy on public.photos|next_id((19)::bigint)
setting of all roles|snowflake.shard=43
setting of role "Clerk's"|snowflake.shard=42
setting of role "Clerk's" in database "App 1"|snowflake.shard=41
EOL

hostile_schema($node, 'App 1');
is(listed('App 1', $columns, 'uses()', $hostile) =~ s/\|public\./|/gr, $uses, 'a hostile search_path changes nothing');
is(listed('App 1', $columns, 'uses()', 'SET ROLE nobody_at_all; SET search_path = "Id\'s", public;') =~ s/"Id's"\.//gr,
	$uses =~ s/^file .*\n//mr =~ s/"Id's"\.//gr, 'a role without privileges sees all places but files');
value('App 1', q{CREATE SCHEMA moved; ALTER EXTENSION snowflake SET SCHEMA moved});
is(listed('App 1', $columns, 'uses()', 'SET search_path = public;'), $uses =~ s/"Id's"\./moved./gr, 'the extension may have moved to another schema');

my $settings = q{SELECT place, shard FROM snowflake_uses() WHERE place !~ 'all roles' ORDER BY 1};
new_database('plain', 'public');
value('postgres', 'ALTER ROLE ALL RESET snowflake.shard');
is(value('plain', $settings), qq{file $conf|45\nsetting of role "Clerk's"|42}, 'settings of another database are not listed');
is(value('plain', "SET ROLE auditor; $settings"), qq{file $conf|45\nsetting of role "Clerk's"|42}, 'pg_read_all_settings shows files');
is(value('plain', "SET ROLE nobody_at_all; $settings"), qq{configuration file|45\nsetting of role "Clerk's"|42},
	'a role without privileges sees what its session began with');
$node->adjust_conf('postgresql.conf', 'snowflake.shard', undef);
{
	local $ENV{PG_TEST_INITDB_EXTRA_OPTS};
	$node->stop;
	PostgreSQL::Test::Utils::system_or_bail('pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, '-o', '-c snowflake.shard=46', 'start');
	$node->_update_pid(1);
}
is(value('plain', $settings), qq{command line|46\nsetting of role "Clerk's"|42}, 'the command line is listed');
value('plain', q{ALTER ROLE "Clerk's" SET snowflake.shard = -1; CREATE TABLE a (id bigint DEFAULT next_id(99999999999))});
is(value('plain', q{SELECT place, shard FROM snowflake_uses() WHERE place !~ 'command'}), qq{column public.a.id|\nsetting of role "Clerk's"|-1},
	'a number that is no shard is no error');

# --- keys ------------------------------------------------------------------

new_database('keys', q{"Id's"});
value('keys', q{
	CREATE SCHEMA "Shop";
	SET search_path = "Shop", "Id's";
	-- keys that can move
	CREATE TABLE "Order Items" ("Id" bigint GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME "Item's ""Numbers""") PRIMARY KEY);
	CREATE TABLE "Orders" ("Key" bigserial PRIMARY KEY);
	CREATE TABLE days (id bigserial, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
	CREATE TABLE day_1 PARTITION OF days FOR VALUES FROM ('2020-01-01') TO ('2020-01-02');
	CREATE TABLE nights (id bigint GENERATED ALWAYS AS IDENTITY, night date, PRIMARY KEY (id, night)) PARTITION BY RANGE (night);
	CREATE TABLE night_1 PARTITION OF nights FOR VALUES FROM ('2020-01-01') TO ('2020-01-02');
	CREATE TABLE animals (id bigserial PRIMARY KEY);
	CREATE TABLE cats () INHERITS (animals);
	CREATE SEQUENCE free;
	CREATE TABLE typed (id snowflake PRIMARY KEY DEFAULT nextval('free'));
	CREATE TABLE long_names (id bigserial PRIMARY KEY);
	CREATE FUNCTION other_name() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('public.very_long_names_id_seq') $$ SET check_function_bodies = off;
	CREATE TABLE answers (id bigserial PRIMARY KEY, answer bigint REFERENCES answers, question snowflake);
	-- keys that cannot
	CREATE TABLE small (id serial, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
	CREATE TABLE small_1 PARTITION OF small FOR VALUES FROM ('2020-01-01') TO ('2020-01-02') PARTITION BY RANGE (id);
	CREATE TABLE small_1_1 PARTITION OF small_1 FOR VALUES FROM (1) TO (9);
	CREATE TABLE people (id bigserial PRIMARY KEY);
	CREATE DOMAIN person_id AS integer;
	CREATE TABLE profiles (person bigint PRIMARY KEY REFERENCES people);
	CREATE TABLE avatars ("Profile" integer REFERENCES profiles, second person_id REFERENCES profiles);
	CREATE TABLE faces (person integer);
	CREATE TABLE old_faces (FOREIGN KEY (person) REFERENCES people) INHERITS (faces);
	CREATE TABLE new_faces (FOREIGN KEY (person) REFERENCES people) INHERITS (faces);
	CREATE TABLE weeks (id bigserial, week date, PRIMARY KEY (id, week)) PARTITION BY RANGE (week);
	CREATE TABLE week_1 PARTITION OF weeks FOR VALUES FROM ('2020-01-01') TO ('2020-01-08');
	CREATE TABLE notes (number integer, week date, FOREIGN KEY (week, number) REFERENCES week_1 (week, id));
	CREATE TABLE plain_parent (id bigint);
	CREATE TABLE used (id bigserial PRIMARY KEY);
	CREATE TABLE user_too (id bigint PRIMARY KEY DEFAULT nextval('used_id_seq'));
	CREATE TABLE user_child (id bigint DEFAULT nextval('used_id_seq')) INHERITS (plain_parent);
	CREATE VIEW used_until AS SELECT last_value, is_called FROM used_id_seq;
	CREATE TABLE called (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY);
	CREATE FUNCTION parsed() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT nextval('called_id_seq'); END;
	CREATE TABLE noted (id bigserial PRIMARY KEY);
	CREATE FUNCTION last_noted() RETURNS bigint LANGUAGE sql AS 'INSERT INTO Noted DEFAULT VALUES; SELECT LastVal()';
	CREATE FUNCTION next_noted() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('"Shop".noted_id_seq') $$;
	CREATE TABLE blocks (id bigserial PRIMARY KEY);
	ALTER SEQUENCE blocks_id_seq INCREMENT 50;
	CREATE TABLE far (id bigserial PRIMARY KEY);
	SELECT setval('far_id_seq', 9e18::bigint);
	CREATE TABLE evens (id bigserial PRIMARY KEY);
	ALTER TABLE evens ALTER id SET DEFAULT nextval('evens_id_seq') * 2;
	CREATE TABLE bills (id uuid PRIMARY KEY, number bigserial UNIQUE);
	CREATE TABLE old (id bigint PRIMARY KEY DEFAULT nextval('"Shop".free'::text));
	CREATE SEQUENCE numbers;
	CREATE DOMAIN number AS bigint DEFAULT nextval('numbers');
	CREATE TABLE numbered (id number PRIMARY KEY, other integer DEFAULT 1);
	CREATE TABLE many (id serial UNIQUE);
	ALTER SEQUENCE many_id_seq INCREMENT -1;
	-- keys that have moved
	CREATE TABLE moved (id bigint PRIMARY KEY DEFAULT next_id(5));
	CREATE SEQUENCE own;
	CREATE TABLE moved_to_own (id bigint PRIMARY KEY DEFAULT next_id(5, 'own'));
	CREATE DOMAIN moved_id AS bigint DEFAULT next_id(5);
	CREATE TABLE moved_domain (id moved_id PRIMARY KEY);
	CREATE TABLE months (id bigint DEFAULT next_id(5), month date) PARTITION BY RANGE (month);
	CREATE TABLE month_1 PARTITION OF months FOR VALUES FROM ('2020-01-01') TO ('2020-02-01');
	CREATE TABLE month_2 (id bigserial, month date);
	ALTER TABLE months ATTACH PARTITION month_2 FOR VALUES FROM ('2020-02-01') TO ('2020-03-01');
	-- no keys
	CREATE TABLE plain (id bigint PRIMARY KEY, n integer DEFAULT 1, last bigint DEFAULT lastval());
	CREATE FUNCTION insta() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	CREATE TABLE other (id bigint PRIMARY KEY DEFAULT insta());
	CREATE TEMPORARY TABLE gone (id bigserial PRIMARY KEY)});

my $keys = <<'EOL' =~ s/\n\z//r;
"Shop"."Order Items"|Id|bigint|GENERATED BY DEFAULT|"Shop"."Item's ""Numbers"""|
"Shop"."Orders"|Key|bigint|nextval|"Shop"."Orders_Key_seq"|
"Shop".animals|id|bigint|nextval|"Shop".animals_id_seq|
"Shop".answers|id|bigint|nextval|"Shop".answers_id_seq|
"Shop".bills|number|bigint|nextval|"Shop".bills_number_seq|it is not in the primary key
"Shop".blocks|id|bigint|nextval|"Shop".blocks_id_seq|its sequence advances by 50
"Shop".called|id|bigint|GENERATED BY DEFAULT|"Shop".called_id_seq|function "Shop".parsed() uses its sequence
"Shop".days|id|bigint|nextval|"Shop".days_id_seq|
"Shop".evens|id|bigint|nextval|"Shop".evens_id_seq|its default is an expression
"Shop".far|id|bigint|nextval|"Shop".far_id_seq|its numbers are larger than new IDs
"Shop".long_names|id|bigint|nextval|"Shop".long_names_id_seq|
"Shop".many|id|integer|nextval|"Shop".many_id_seq|"Shop".many.id is integer
"Shop".many|id|integer|nextval|"Shop".many_id_seq|it is not in the primary key
"Shop".many|id|integer|nextval|"Shop".many_id_seq|its sequence advances by -1
"Shop".month_2|id|bigint|nextval|"Shop".month_2_id_seq|it is not in the primary key
"Shop".months|id|bigint|next_id|"Id's".next_id_seq|
"Shop".moved|id|bigint|next_id|"Id's".next_id_seq|
"Shop".moved_domain|id|"Shop".moved_id|next_id|"Id's".next_id_seq|
"Shop".moved_to_own|id|bigint|next_id|"Shop".own|
"Shop".nights|id|bigint|GENERATED ALWAYS|"Shop".nights_id_seq|
"Shop".noted|id|bigint|nextval|"Shop".noted_id_seq|function "Shop".last_noted() names its sequence
"Shop".noted|id|bigint|nextval|"Shop".noted_id_seq|function "Shop".next_noted() names its sequence
"Shop".numbered|id|"Shop".number|nextval|"Shop".numbers|domain "Shop".number uses its sequence
"Shop".old|id|bigint|nextval||its default names the sequence as a text
"Shop".people|id|bigint|nextval|"Shop".people_id_seq|"Shop".avatars."Profile" is integer
"Shop".people|id|bigint|nextval|"Shop".people_id_seq|"Shop".avatars.second is "Shop".person_id
"Shop".people|id|bigint|nextval|"Shop".people_id_seq|"Shop".new_faces.person is integer
"Shop".people|id|bigint|nextval|"Shop".people_id_seq|"Shop".old_faces.person is integer
"Shop".small|id|integer|nextval|"Shop".small_id_seq|"Shop".small.id is integer
"Shop".typed|id|"Id's".snowflake|nextval|"Shop".free|
"Shop".used|id|bigint|nextval|"Shop".used_id_seq|column "Shop".user_child.id uses its sequence
"Shop".used|id|bigint|nextval|"Shop".used_id_seq|column "Shop".user_too.id uses its sequence
"Shop".used|id|bigint|nextval|"Shop".used_id_seq|view "Shop".used_until uses its sequence
"Shop".user_child|id|bigint|nextval|"Shop".used_id_seq|column "Shop".used.id uses its sequence
"Shop".user_child|id|bigint|nextval|"Shop".used_id_seq|column "Shop".user_too.id uses its sequence
"Shop".user_child|id|bigint|nextval|"Shop".used_id_seq|it is not in the primary key
"Shop".user_child|id|bigint|nextval|"Shop".used_id_seq|view "Shop".used_until uses its sequence
"Shop".user_too|id|bigint|nextval|"Shop".used_id_seq|column "Shop".used.id uses its sequence
"Shop".user_too|id|bigint|nextval|"Shop".used_id_seq|column "Shop".user_child.id uses its sequence
"Shop".user_too|id|bigint|nextval|"Shop".used_id_seq|view "Shop".used_until uses its sequence
"Shop".weeks|id|bigint|nextval|"Shop".weeks_id_seq|"Shop".notes.number is integer
EOL
is(listed('keys', '*', 'keys()'), $keys, 'keys are listed with what keeps them from moving, and others without');
hostile_schema($node, 'keys');
is(listed('keys', '*', 'keys()', $hostile), $keys, 'a hostile search_path changes nothing in the list of keys');
is(listed('keys', '*', 'keys()', 'SET ROLE nobody_at_all;'), $keys =~ s/its numbers are larger than new IDs//r,
	'a role without privileges sees all but what only a sequence says');
value('keys', 'CREATE SCHEMA moved; ALTER EXTENSION snowflake SET SCHEMA moved');
is(listed('keys', '*', 'keys()'), $keys =~ s/"Id's"\./moved./gr, 'the keys are the same after the extension has moved to another schema');

# --- locked tables ---------------------------------------------------------

my $locker = $node->background_psql('keys');
$locker->query_safe('BEGIN; LOCK TABLE "Shop".animals, "Shop".moved, "Shop"."Order Items" IN ACCESS EXCLUSIVE MODE');
is(value('keys', "SET lock_timeout = '300ms'; SELECT count(*) > 1 FROM snowflake_$_"), 't', "snowflake_$_ does not wait for who has locked tables")
  foreach 'uses()', 'keys()';
$locker->quit;

$node->stop;
done_testing();
