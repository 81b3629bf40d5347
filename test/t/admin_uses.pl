# snowflake_uses() lists the places that make IDs or set a shard, and
# snowflake_keys() the keys of all tables with what keeps them from moving.

use SnowflakeTest;

my $node = server_in_utc('uses');

sub value { return $node->safe_psql(@_) }

sub new_database
{
	my ($database, $schema) = @_;

	value('postgres', qq{CREATE DATABASE "$database"});
	value($database, qq{
		CREATE SCHEMA IF NOT EXISTS $schema;
		CREATE EXTENSION snowflake SCHEMA $schema;
		CREATE EXTENSION snowflake_admin});
}

# Execute commands, and return the rows that --> announces in them, in the order of
# the lists: by columns, byte by byte.  A place without a sequence uses that of next_id().
sub announced
{
	my ($database, $commands) = @_;

	value($database, $commands);
	my @rows = map { s/^[^|]*\|[^|]*\K$/|next_id_seq|instagram/r } $commands =~ /--> (.*)/g;
	return join "\n", sort { $a =~ tr/|/\0/r cmp $b =~ tr/|/\0/r } @rows;
}

# --- where IDs are made ----------------------------------------------------

value('postgres', q{
	CREATE ROLE "Clerk's";
	CREATE ROLE auditor IN ROLE pg_read_all_settings;
	CREATE ROLE nobody_at_all});
$node->append_conf('postgresql.conf', 'snowflake.shard = 45');
$node->reload;
new_database('App 1', q{"Id's"});
my $uses = announced('App 1', q{
	SET search_path = public, "Id's";
	CREATE SCHEMA "Shop";
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text DEFAULT 'next_id(6)');
		--> column public.photos.id|5
	CREATE TABLE large (id bigint DEFAULT next_id(99999999999));  --> column public.large.id|?
	CREATE TABLE albums (id bigint PRIMARY KEY DEFAULT next_id());  --> column public.albums.id|?
	CREATE SEQUENCE "Shop"."Item's ""Numbers""" MAXVALUE 9007199254736895;		-- of layout twitter
	CREATE TABLE "Shop"."Order Items" ("Id (1)" snowflake DEFAULT next_id(33, '"Shop"."Item''s ""Numbers"""'));
		--> column "Shop"."Order Items"."Id (1)"|33|"Shop"."Item's ""Numbers"""|twitter
	CREATE SEQUENCE free;
	CREATE TABLE computed (
		a bigint DEFAULT next_id(pg_backend_pid() % 8192),  --> column public.computed.a|?
		b bigint DEFAULT next_id(snowflake_shard(), 'free'),  --> column public.computed.b|?|free
		c bigint DEFAULT next_id(sequence => 'free', layout => 'timestamp:41 shard:13 sequence:10 epoch:0', shard => 7),
			--> column public.computed.c|7|free|timestamp:41 shard:13 sequence:10 epoch:0
		d bigint DEFAULT next_id(8::smallint, ('fr' || 'ee')::regclass, 'discord'),
			--> column public.computed.d|8||discord
		e bigint DEFAULT snowflake_id(now(), 12, 0),  --> column public.computed.e|12||instagram
		at timestamptz,
		f bigint GENERATED ALWAYS AS (snowflake_id(at, 34, 0)) STORED);  --> column public.computed.f|34||instagram
	CREATE SEQUENCE one;
	CREATE SEQUENCE two;
	SELECT snowflake_alter_sequence('one'), snowflake_alter_sequence('two', 'sonyflake');
	CREATE TABLE spread (id bigint DEFAULT CASE WHEN random() < 0.5 THEN next_id(1, 'one') ELSE next_id(2, 'two') END);
		--> column public.spread.id|1|one|instagram
		--> column public.spread.id|2|two|sonyflake
	CREATE DOMAIN photo_id AS bigint DEFAULT next_id(9);
		--> domain public.photo_id|9|next_id_seq|instagram|"Id's".next_id((9)::bigint)
	CREATE TABLE days (id bigint DEFAULT next_id(10), day date) PARTITION BY RANGE (day);  --> column public.days.id|10
	CREATE TABLE day_1 PARTITION OF days FOR VALUES FROM ('2020-01-01') TO ('2020-01-02');
	CREATE TABLE day_2 PARTITION OF days (id DEFAULT next_id(11)) FOR VALUES FROM ('2020-01-02') TO ('2020-01-03');
		--> column public.day_2.id|11
	CREATE VIEW ids AS SELECT next_id(15) AS a, id FROM next_ids(16, 10, 'one') AS i (id);
		--> view public.ids|15|next_id_seq|instagram|next_id((15)::bigint)
		--> view public.ids|16|one|instagram|next_ids((16)::bigint, (10)::bigint, 'public.one'::regclass)
	CREATE VIEW photo_titles AS SELECT id, title FROM photos;
	ALTER VIEW photo_titles ALTER id SET DEFAULT next_id(18);  --> column public.photo_titles.id|18
	CREATE RULE copy AS ON INSERT TO photos DO ALSO INSERT INTO albums VALUES (next_id(19));
		--> rule copy on public.photos|19|next_id_seq|instagram|next_id((19)::bigint)
	CREATE FUNCTION parsed(id bigint DEFAULT next_id(20)) RETURNS bigint LANGUAGE sql
	BEGIN ATOMIC SELECT next_id(21, 'two'); END;
		--> function public.parsed(bigint)|20|next_id_seq|instagram|next_id((20)::bigint)
		--> function public.parsed(bigint)|21|two|sonyflake|next_id((21)::bigint, 'public.two'::regclass)
	CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql SET snowflake.shard = 22 AS $$
	BEGIN
		NEW.id := "Id's".NEXT_ID ( 23 , 'one' );
		NEW.other := my_next_id(24) + next_id(nextval('free') + 1);
		EXECUTE 'SELECT next_id(25, ''two'')';
		PERFORM next_id(-5);
		RETURN NEW;
	END $$;
		--> function public.fill()|22|||SET snowflake.shard TO 22
		--> function public.fill()|23|one|instagram|NEXT_ID ( 23 , 'one' )
		--> function public.fill()|25|two|sonyflake|next_id(25, ''two'')
		--> function public.fill()|?|next_id_seq|instagram|next_id(nextval('free') + 1)
		--> function public.fill()|-5|next_id_seq|instagram|next_id(-5)
	CREATE PROCEDURE "Shop"."Set"(shard integer) LANGUAGE plpgsql AS $$
	BEGIN
		SET LOCAL snowflake.shard = 26;
		PERFORM set_config('snowflake.shard', '27', true), current_setting('snowflake.shard');
		PERFORM snowflake_set_shard(28);
		EXECUTE format('ALTER ROLE x SET snowflake.shard = %s', shard);
		RESET snowflake.shard;
	END $$;
		--> procedure "Shop"."Set"(integer)|26|||SET LOCAL snowflake.shard = 26
		--> procedure "Shop"."Set"(integer)|27|||set_config('snowflake.shard', '27', true)
		--> procedure "Shop"."Set"(integer)|28|||snowflake_set_shard(28)
		--> procedure "Shop"."Set"(integer)|?|||SET snowflake.shard = %s
	CREATE FUNCTION set_parsed() RETURNS text LANGUAGE sql
	BEGIN ATOMIC SELECT set_config('snowflake.shard', '29', true); END;
		--> function public.set_parsed()|29|||set_config('snowflake.shard'::text, '29'::text, true)
	CREATE FUNCTION unknown_end() RETURNS text LANGUAGE sql AS $$ SELECT '(next_id('$$;
		--> function public.unknown_end()|?|||next_id('
	-- no places
	CREATE FUNCTION my_next_id(integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	CREATE TABLE other (id bigint DEFAULT my_next_id(30), read text DEFAULT current_setting('snowflake.shard', true));
	CREATE VIEW decoded AS SELECT snowflake_timestamp(id) FROM photos;
	CREATE SCHEMA insta;
	CREATE FUNCTION insta.next_id(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT $1';
	CREATE TABLE insta.photos (id bigint DEFAULT insta.next_id(31));
	-- settings
	LOAD 'snowflake';  --> file|45|||snowflake.shard=45
	ALTER DATABASE "App 1" SET snowflake.shard = 40;  --> setting of database "App 1"|40|||snowflake.shard=40
	ALTER ROLE "Clerk's" IN DATABASE "App 1" SET snowflake.shard = 41;
		--> setting of role "Clerk's" in database "App 1"|41|||snowflake.shard=41
	ALTER ROLE "Clerk's" SET snowflake.shard = 42;  --> setting of role "Clerk's"|42|||snowflake.shard=42
	ALTER ROLE auditor SET snowflake.shard = -1;  --> setting of role auditor|-1|||snowflake.shard=-1
	ALTER ROLE ALL SET snowflake.shard = 43;  --> setting of all roles|43|||snowflake.shard=43
	ALTER DATABASE postgres SET snowflake.shard = 44});

# The default of a column is all of its code.
sub uses_are
{
	my ($role, $rows, $name) = @_;
	my $listed = value('App 1', qq{SET ROLE $role; SELECT place, coalesce(shard::text, '?'), sequence, layout,
		CASE WHEN place !~ '^column' THEN code END FROM snowflake_uses()});
	return is($listed =~ s/"Id's"\.(?=next_id_seq)|^file\K \S+(?=\|45)|\|+$//gmr, $rows, $name);
}

uses_are('postgres', $uses, 'all places are listed, and what each of them uses');
uses_are('nobody_at_all', $uses =~ s/^file.*\n//mr, 'a role without privileges sees all places but files');
value('App 1', q{CREATE SCHEMA moved; ALTER EXTENSION snowflake SET SCHEMA moved});
uses_are('postgres', $uses =~ s/"Id's"\.|(?=next_id_seq)/moved./gr, 'the extension may have moved to another schema');

new_database('plain', 'public');
value('postgres', 'ALTER ROLE ALL RESET snowflake.shard');

# Where the shard of this database is set, beside the settings of roles
sub setting_is
{
	my ($role, $setting, $name) = @_;
	my $listed = value('plain', "SET ROLE $role; SELECT place, shard FROM snowflake_uses()");
	my $settings = qq{$setting\nsetting of role "Clerk's"|42\nsetting of role auditor|-1};
	return is($listed =~ s/^file\K \S+(?=\|45)//mr, $settings, $name);
}

setting_is('auditor', 'file|45', 'pg_read_all_settings shows files');
setting_is('nobody_at_all', 'configuration file|45', 'a role without privileges sees what its session began with');
setting_is('nobody_at_all; SET snowflake.shard = 7', 'configuration file|45', '... also when that session has set another');
$node->adjust_conf('postgresql.conf', 'snowflake.shard', undef);
$node->stop;
system_or_bail('pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, '-o', '-c snowflake.shard=46', 'start');
$node->_update_pid(1);
setting_is('postgres', 'command line|46', 'the command line is listed');

# --- keys ------------------------------------------------------------------

new_database('keys', q{"Id's"});
my $keys = announced('keys', q{
	CREATE SCHEMA "Shop";
	SET search_path = "Shop", "Id's";
	-- keys that can move
	CREATE TABLE "Order Items" (
		"Id" bigint GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME "Item's ""Numbers""") PRIMARY KEY);
		--> "Order Items"|Id|bigint|GENERATED BY DEFAULT|"Item's ""Numbers"""
	CREATE TABLE days (id bigserial, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
		--> days|id|bigint|nextval|days_id_seq
	CREATE TABLE day_1 PARTITION OF days FOR VALUES FROM ('2020-01-01') TO ('2020-01-02');
	CREATE TABLE nights (id bigint GENERATED ALWAYS AS IDENTITY, night date, PRIMARY KEY (id, night))
		PARTITION BY RANGE (night);  --> nights|id|bigint|GENERATED ALWAYS|nights_id_seq
	CREATE TABLE night_1 PARTITION OF nights FOR VALUES FROM ('2020-01-01') TO ('2020-01-02');
	CREATE SEQUENCE free;
	CREATE TABLE typed (id snowflake PRIMARY KEY DEFAULT nextval('free'));  --> typed|id|snowflake|nextval|free
	SET check_function_bodies = off;
	CREATE TABLE long_names (id bigserial PRIMARY KEY);  --> long_names|id|bigint|nextval|long_names_id_seq
	CREATE FUNCTION other_name() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('public.very_long_names_id_seq') $$;
	CREATE TABLE answers (id bigserial PRIMARY KEY, answer bigint REFERENCES answers, question snowflake);
		--> answers|id|bigint|nextval|answers_id_seq
	-- keys that cannot
	CREATE TABLE small (id serial, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
		--> small|id|integer|nextval|small_id_seq|"Shop".small.id is integer
	CREATE TABLE small_1 PARTITION OF small FOR VALUES FROM ('2020-01-01') TO ('2020-01-02') PARTITION BY RANGE (id);
	CREATE TABLE small_1_1 PARTITION OF small_1 FOR VALUES FROM (1) TO (9);
	CREATE TABLE people (id bigserial PRIMARY KEY);
	CREATE DOMAIN person_id AS integer;
	CREATE TABLE profiles (person bigint PRIMARY KEY REFERENCES people);
	CREATE TABLE avatars ("Profile" integer REFERENCES profiles, second person_id REFERENCES profiles);
		--> people|id|bigint|nextval|people_id_seq|"Shop".avatars."Profile" is integer
		--> people|id|bigint|nextval|people_id_seq|"Shop".avatars.second is "Shop".person_id, based on integer
	CREATE TABLE faces (person integer);
	CREATE TABLE old_faces (FOREIGN KEY (person) REFERENCES people) INHERITS (faces);
		--> people|id|bigint|nextval|people_id_seq|"Shop".old_faces.person is integer
	CREATE TABLE weeks (id bigserial, week date, PRIMARY KEY (id, week)) PARTITION BY RANGE (week);
	CREATE TABLE week_1 PARTITION OF weeks FOR VALUES FROM ('2020-01-01') TO ('2020-01-08');
	CREATE TABLE notes (number integer, week date, FOREIGN KEY (week, number) REFERENCES week_1 (week, id));
		--> weeks|id|bigint|nextval|weeks_id_seq|"Shop".notes.number is integer
	CREATE TABLE plain_parent (id bigint);
	CREATE TABLE used (id bigserial PRIMARY KEY);
	CREATE TABLE user_child (id bigint PRIMARY KEY DEFAULT nextval('used_id_seq')) INHERITS (plain_parent);
		--> used|id|bigint|nextval|used_id_seq
		--> user_child|id|bigint|nextval|used_id_seq
	CREATE TABLE doubled (id bigserial PRIMARY KEY);
	CREATE TABLE doubles (id bigint PRIMARY KEY DEFAULT nextval('doubled_id_seq') * 2,
		last bigint DEFAULT currval('doubled_id_seq'));
		--> doubled|id|bigint|nextval|doubled_id_seq|column "Shop".doubles.id uses its sequence
		--> doubled|id|bigint|nextval|doubled_id_seq|column "Shop".doubles.last uses its sequence
		--> doubles|id|bigint|nextval|doubled_id_seq|column "Shop".doubles.last uses its sequence
		--> doubles|id|bigint|nextval|doubled_id_seq|its default is an expression
	CREATE TABLE called (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY);
	CREATE FUNCTION parsed() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT nextval('called_id_seq'); END;
		--> called|id|bigint|GENERATED BY DEFAULT|called_id_seq|function "Shop".parsed() uses its sequence
	CREATE TABLE noted (id bigserial PRIMARY KEY);
	CREATE FUNCTION last_noted() RETURNS bigint LANGUAGE sql AS 'INSERT INTO Noted DEFAULT VALUES; SELECT LastVal()';
		--> noted|id|bigint|nextval|noted_id_seq|function "Shop".last_noted() names its sequence
	CREATE FUNCTION next_noted() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('"Shop".noted_id_seq') $$;
		--> noted|id|bigint|nextval|noted_id_seq|function "Shop".next_noted() names its sequence
	CREATE TABLE far (id bigserial PRIMARY KEY);
	SELECT setval('far_id_seq', 9e18::bigint);  --> far|id|bigint|nextval|far_id_seq|its values are larger than new IDs
	CREATE TABLE evens (id bigserial PRIMARY KEY);
	ALTER TABLE evens ALTER id SET DEFAULT nextval('evens_id_seq') * 2;
		--> evens|id|bigint|nextval|evens_id_seq|its default is an expression
	CREATE TABLE bills (id uuid PRIMARY KEY, number bigserial UNIQUE);
		--> bills|number|bigint|nextval|bills_number_seq|it is not in the primary key
	CREATE TABLE old (id bigint PRIMARY KEY DEFAULT nextval('"Shop".free'::text));
		--> old|id|bigint|nextval||its default names the sequence as text
	CREATE SEQUENCE numbers;
	CREATE DOMAIN number AS bigint DEFAULT nextval('numbers');
	CREATE TABLE numbered (id number PRIMARY KEY, other integer DEFAULT 1);
		--> numbered|id|number|nextval|numbers|domain "Shop".number uses its sequence
	CREATE TABLE many (id serial UNIQUE);
	ALTER SEQUENCE many_id_seq INCREMENT -1;
		--> many|id|integer|nextval|many_id_seq|"Shop".many.id is integer
		--> many|id|integer|nextval|many_id_seq|it is not in the primary key
		--> many|id|integer|nextval|many_id_seq|its sequence advances by -1
	-- keys that have moved
	CREATE TABLE moved (id bigint PRIMARY KEY DEFAULT next_id(5));  --> moved|id|bigint|next_id|next_id_seq
	CREATE SEQUENCE own;
	CREATE TABLE moved_to_own (id bigint PRIMARY KEY DEFAULT next_id(5, 'own'));  --> moved_to_own|id|bigint|next_id|own
	CREATE DOMAIN moved_id AS bigint DEFAULT next_id(5);
	CREATE TABLE moved_domain (id moved_id PRIMARY KEY);  --> moved_domain|id|moved_id|next_id|next_id_seq
	CREATE TABLE months (id bigint DEFAULT next_id(5), month date) PARTITION BY RANGE (month);
		--> months|id|bigint|next_id|next_id_seq
	CREATE TABLE month_1 PARTITION OF months FOR VALUES FROM ('2020-01-01') TO ('2020-02-01');
	CREATE TABLE month_2 (id bigserial, month date);
	ALTER TABLE months ATTACH PARTITION month_2 FOR VALUES FROM ('2020-02-01') TO ('2020-03-01');
		--> month_2|id|bigint|nextval|month_2_id_seq|it is not in the primary key
	CREATE SEQUENCE quarters_seq MAXVALUE 1125899906841599;
	CREATE TABLE quarters (id bigint DEFAULT nextval('quarters_seq'), quarter integer, PRIMARY KEY (id, quarter))
		PARTITION BY LIST (quarter);
	CREATE TABLE quarter_1 PARTITION OF quarters FOR VALUES IN (1);
	ALTER TABLE quarter_1 ALTER id SET DEFAULT next_id(5, 'quarters_seq');
		--> quarter_1|id|bigint|next_id|quarters_seq
		--> quarters|id|bigint|nextval|quarters_seq
	-- no keys
	CREATE TABLE plain (id bigint PRIMARY KEY, n integer DEFAULT 1, last bigint DEFAULT lastval());
	CREATE FUNCTION insta() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	CREATE TABLE other (id bigint PRIMARY KEY DEFAULT insta());
	CREATE TEMPORARY TABLE gone (id bigserial PRIMARY KEY)});

sub keys_are
{
	my ($role, $rows, $name) = @_;
	my $listed = value('keys', "SET ROLE $role; SELECT * FROM snowflake_keys()");
	return is($listed =~ s/(^|\|)\K("Shop"|"Id's")\.(?=[^|\n]*\|)|\|$//gmr, $rows, $name);
}

keys_are('postgres', $keys, 'keys are listed with what keeps them from moving, and others without');
keys_are('nobody_at_all', $keys =~ s/\|its values are larger than new IDs//r,
	'a role without privileges sees all but what only a sequence says');

# --- locked tables ---------------------------------------------------------

my $locker = $node->background_psql('keys');
$locker->query_safe('BEGIN; LOCK TABLE "Shop".days, "Shop".moved, "Shop"."Order Items" IN ACCESS EXCLUSIVE MODE');
is(value('keys', "SET lock_timeout = '300ms'; SELECT count(*) > 1 FROM snowflake_$_()"), 't',
	"snowflake_$_() does not wait for who has locked tables")
  foreach 'uses', 'keys';
$locker->quit;

done_testing();
