# An existing table becomes the first partition by the recipe of doc/ranges.md:
# alone, beside an open transaction, with an application's role that uses it, with
# objects that refer to it, and while sessions use it and these objects.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use MigrationTest;
use SnowflakeTest;

my $node = start_server('existing_table');
my ($function, $left_behind, @steps) = blocks_in('doc/ranges.md', 'An existing table');
is(@steps, 4, 'the recipe has four steps');
my $recipe = join "\n", map { $_->{code} } @steps;
my $text = slurp_file("$top/doc/ranges.md") =~ s/\s+/ /gr;
my $in_three_days = q{snowflake_id(now() + interval '3 days', 5, 0)};

# A database with make_partitions() and a table, or tables
sub database_with
{
	my ($database, $tables) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, "CREATE EXTENSION snowflake; $function->{code}; $tables");
	return;
}

# --- alone ----------------------------------------------------------------

database_with('alone', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text);
	INSERT INTO photos (title) VALUES ('sunrise'), ('harbour')});
run_examples($node, 'alone', $left_behind, @steps);
is($node->safe_psql('alone', q{INSERT INTO photos (title) VALUES ('night market'); SELECT title, tableoid::regclass FROM photos ORDER BY id}),
	"sunrise|photos_old\nharbour|photos_old\nnight market|photos_old", 'an existing table is the first partition');
is($node->safe_psql('alone', qq{INSERT INTO photos VALUES ($in_three_days) RETURNING
		tableoid::regclass::text = to_char(now() AT TIME ZONE 'UTC' + interval '3 days', '"photos_"YYYYMMDD')}),
	't', 'an existing table gets a partition for each coming day');

# --- in publications that do not name it ------------------------------------

my ($via_root) = $text =~ /`(ALTER PUBLICATION everything SET \(.*?)`/ or die 'no command for a publication';
database_with('published', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text);
	CREATE SCHEMA other;
	CREATE PUBLICATION of_all_tables FOR ALL TABLES;
	CREATE PUBLICATION of_schema FOR TABLES IN SCHEMA public;
	CREATE PUBLICATION of_other_schema FOR TABLES IN SCHEMA other});
is($node->safe_psql('published', $left_behind->{code}), "publication of_all_tables\npublication of_schema",
	'publications of all tables and of the schema are listed');
$node->safe_psql('published', $via_root =~ s/everything/$_/r) foreach 'of_all_tables', 'of_schema';
is($node->safe_psql('published', $left_behind->{code}), '', 'publications that publish partitions as their table are not listed');
$node->safe_psql('published', $recipe);
is($node->safe_psql('published', q{SELECT pubname, tablename FROM pg_publication_tables ORDER BY 1}),
	"of_all_tables|photos\nof_schema|photos", 'such publications publish the partitioned table as one');

# --- beside an open transaction ---------------------------------------------

my $photos = 'CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text)';
my $partitions = q{SELECT count(*) FROM pg_inherits WHERE inhparent = 'photos'::regclass};
database_with('beside', $photos);
my $reader = $node->background_psql('beside');
foreach my $step (0 .. $#steps)
{
	my $number = $step + 1;

	$reader->query_safe('BEGIN; SELECT count(*) FROM photos');
	if ($step == 1)
	{
		# With this setting, as of a .psqlrc, psql goes on after a command that failed.
		$node->psql('beside', "\\set ON_ERROR_ROLLBACK on\n$steps[$step]{code}", on_error_stop => 0);
		is($node->safe_psql('beside', q{SELECT relname FROM pg_class JOIN pg_index ON indexrelid = oid WHERE indrelid = 'photos'::regclass}),
			'photos_pkey', 'step 2 changes nothing if it gives up, even if psql goes on after errors');
	}
	if ($step != 2)
	{
		fails_with($node, $steps[$step]{code}, qr/^55P03/, "step $number does not wait for a transaction that uses the table", dbname => 'beside');
	}
	else
	{
		$node->safe_psql('beside', $steps[$step]{code});
		pass("step $number is done beside a transaction that uses the table");
	}
	$reader->query_safe('COMMIT');
	$node->safe_psql('beside', $steps[$step]{code}) if $step != 2;
}
$reader->quit;
is($node->safe_psql('beside', $partitions), 3, 'steps that gave up can be repeated');

# Without a constraint that spares it, ATTACH would scan the table.
database_with('no_constraint', $photos);
foreach my $without ('a constraint', 'a validated one')
{
	$node->safe_psql('no_constraint', $steps[0]{code}) if $without ne 'a constraint';
	$node->psql('no_constraint', $steps[1]{code} =~ s/^ALTER TABLE photos VALIDATE.*//mr, on_error_stop => 0, stderr => \my $error);
	like($error, qr/syntax error at or near ":"/, "step 2 fails without $without");
	is($node->safe_psql('no_constraint', $partitions), 0, "step 2 changes nothing without $without");
}

# --- by months, in sessions of another time zone ---------------------------

# What the document says to write in place of the example's expressions
my ($first_of_month) = $text =~ /must be the first of a month in UTC .*?: `(.*?)`/ or die 'no first of a month';
my ($two_months) = $text =~ /partitions up to two months from now by `(.*?)`/ or die 'no call for months';
my ($every_day) = $text =~ /call `make_partitions\(\)` every day, .*? by `(.*?)`/ or die 'no call for every day';
my ($every_day_months) = $text =~ /Every day, call `(.*?)`/ or die 'no call for every day that makes months';

# Of the expression in sessions whose clocks change in the next month, and shortly
# before and on the last day of a month
foreach (
	[ 'America/New_York', '2026-03-10 12:00Z', '2026-04-01' ], [ 'America/New_York', '2026-10-10 12:00Z', '2026-11-01' ],
	[ 'America/New_York', '2026-11-01 01:00Z', '2026-12-01' ], [ 'Europe/Berlin', '2026-03-31 23:00Z', '2026-05-01' ],
	[ 'Europe/Berlin', '2026-10-10 12:00Z', '2026-11-01' ], [ 'Pacific/Auckland', '2026-12-31 12:00Z', '2027-02-01' ],
	[ 'UTC', '2026-12-30 23:59Z', '2027-01-01' ], [ 'UTC', '2027-01-31 00:00Z', '2027-03-01' ])
{
	my ($zone, $now, $expected) = @$_;

	local $ENV{PGTZ} = $zone;
	is($node->safe_psql('alone', 'SELECT (' . ($first_of_month =~ s/now\(\)/timestamptz '$now'/r) . q{) AT TIME ZONE 'UTC'}),
		"$expected 00:00:00", "the first of the month in UTC after $now in $zone");
}

# Make partitions, which must follow each other without a gap.
sub partitions_follow
{
	my ($database, $when, $call) = @_;
	my $ends = q{SELECT string_agg(b, ' ' ORDER BY b) FROM (SELECT snowflake_timestamp(substring(pg_get_expr(relpartbound, oid), '%s')::bigint)::text
		FROM pg_class WHERE relname LIKE 'photos\_%%' AND relkind = 'r') AS bounds (b) WHERE b IS NOT NULL};

	local $ENV{PGTZ} = 'America/New_York';
	$node->safe_psql($database, $call);
	delete $ENV{PGTZ};
	my ($begin, $end) = map { [ split / (?=\d{4}-)/, $node->safe_psql($database, sprintf $ends, $_) ] } 'FROM \(.(\d+)', 'TO \(.(\d+)';
	cmp_ok(scalar @$begin, '>=', 1, "$when: there are partitions after the existing table");
	is_deeply($begin, [ @$end[ 0 .. $#$end - 1 ] ], "$when: each partition begins where the one before it ends");
	return;
}

my $by_months = $recipe =~ s/date_trunc\('day', .* interval '48 hours'/$first_of_month/r =~ s/make_partitions\(.*\)/$two_months/r;
foreach (
	[ by_days => $recipe, $every_day, q{date_trunc('day', now(), 'UTC') + interval '48 hours'} ],
	[ by_months => $by_months, $every_day_months, $first_of_month ])
{
	my ($database, $code, $call, $midnight) = @$_;

	database_with($database, $photos);
	partitions_follow($database, "$database, by the recipe", $code);
	partitions_follow($database, "$database, by the daily call", 'SELECT ' . ($call =~ s/'[\d-]+Z'/$midnight/r));
	fails_with($node, q{SELECT make_partitions('photos', now(), now(), '} . ($database =~ s/by_(.*)s/$1/r) . q{')},
		qr/^42P17 .* would overlap partition "photos_old"/, "$database: the range of now belongs to the existing table", dbname => $database);
}

# If the midnight passes before the end
database_with('too_late', $photos);
$node->safe_psql('too_late', $steps[0]{code});
fails_with($node, "INSERT INTO photos VALUES ($in_three_days)", qr/^23514 .* violates check constraint "before_midnight"/,
	'an INSERT after the midnight fails', dbname => 'too_late');

# --- used by an application's role ----------------------------------------

# What a table has beside its columns and indexes
my $properties = q{
	SELECT relowner::regrole, relrowsecurity, relforcerowsecurity, obj_description(oid, 'pg_class'),
		col_description(oid, 2), (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(relacl) AS a)
	FROM pg_class WHERE oid = 'photos'::regclass;
	SELECT attname, attacl FROM pg_attribute WHERE attrelid = 'photos'::regclass AND attacl IS NOT NULL ORDER BY 1;
	SELECT policyname, permissive, roles, cmd, qual, with_check FROM pg_policies WHERE tablename = 'photos' ORDER BY 1;
	SELECT pg_get_triggerdef(oid), tgenabled FROM pg_trigger WHERE tgrelid = 'photos'::regclass AND NOT tgisinternal ORDER BY 1;
	SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'photos'::regclass ORDER BY 1};

$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE app LOGIN; CREATE ROLE "the Auditors" LOGIN');
foreach my $typist ('superuser', 'owner')
{
	my $database = "typed_by_$typist";
	my $when = "after the $typist typed the recipe";

	database_with($database, q{
		GRANT CREATE ON SCHEMA public TO owner;
		CREATE TABLE users (id bigint PRIMARY KEY, name text);
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text NOT NULL, user_id bigint REFERENCES users, changed_by text);
		GRANT SELECT ON users TO app;
		GRANT REFERENCES, SELECT ON users TO owner;
		ALTER TABLE photos OWNER TO owner;
		GRANT SELECT, UPDATE (title) ON photos TO app;
		GRANT INSERT (title, user_id) ON photos TO app;
		GRANT SELECT ON photos TO "the Auditors" WITH GRANT OPTION;
		GRANT TRIGGER ON photos TO PUBLIC;
		ALTER TABLE photos ENABLE ROW LEVEL SECURITY;
		CREATE POLICY own_rows ON photos TO app
			USING (EXISTS (SELECT FROM users WHERE users.id = photos.user_id AND name = current_user));
		CREATE POLICY all_rows ON photos FOR SELECT TO "the Auditors" USING (true);
		CREATE POLICY titles ON photos AS RESTRICTIVE FOR INSERT WITH CHECK (title <> '');
		CREATE FUNCTION note_role() RETURNS trigger LANGUAGE plpgsql
			AS $$ BEGIN NEW.changed_by := concat(NEW.changed_by, current_user); RETURN NEW; END $$;
		CREATE TRIGGER note_role BEFORE INSERT OR UPDATE ON photos FOR EACH ROW EXECUTE FUNCTION note_role();
		CREATE TRIGGER disabled BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION note_role();
		ALTER TABLE photos DISABLE TRIGGER disabled;
		ALTER DEFAULT PRIVILEGES GRANT SELECT, DELETE ON TABLES TO app;
		ALTER DEFAULT PRIVILEGES FOR ROLE owner GRANT SELECT, DELETE ON TABLES TO app;
		COMMENT ON TABLE photos IS 'everybody''s photos';
		COMMENT ON COLUMN photos.title IS 'as shown';
		INSERT INTO users VALUES (1, 'app'), (2, 'somebody else');
		INSERT INTO photos (title, user_id) VALUES ('sunrise', 2)});
	my @as_app = (dbname => $database, extra_params => [ '-U', 'app' ]);
	my @as_owner = (dbname => $database, extra_params => [ '-U', 'owner' ]);
	my $before = $node->safe_psql($database, $properties);
	{
		local %ENV = (%ENV, $typist eq 'owner' ? (PGUSER => 'owner') : ());
		run_examples($node, $database, $left_behind, @steps);
	}

	is($node->safe_psql($database, q{
			INSERT INTO photos (title, user_id) VALUES ('harbour', 1) RETURNING tableoid::regclass, changed_by}, @as_app),
		'photos_old|app', "$when: the application's role inserts into the new table, and the trigger fires once");
	is($node->safe_psql($database, $properties), $before,
		"$when: the new table has the owner, privileges, policies, triggers, foreign keys and comments of the old one");
	fails_with($node, "INSERT INTO photos (title, user_id) VALUES ('harbour', 2)", qr/^42501 new row violates row-level security/,
		"$when: a policy still applies to the application's role", @as_app);
	fails_with($node, 'INSERT INTO photos (id, title) VALUES (1, \'\')', qr/^42501 permission denied/,
		"$when: the application's role gets no privilege that it did not have", @as_app);
	$node->safe_psql($database, "GRANT INSERT (id) ON photos TO app");
	is($node->safe_psql($database, qq{
			INSERT INTO photos (id, title, user_id) VALUES ($in_three_days, 'later', 1) RETURNING tableoid::regclass <> 'photos_old'::regclass, changed_by},
			@as_app), 't|app', "$when: the trigger fires once in a later partition");
	is($node->safe_psql($database, 'SELECT string_agg(title, \' \' ORDER BY id) FROM photos', @as_app), 'harbour later',
		"$when: the application's role sees its own rows of all partitions, and no others");
	my $partition = $node->safe_psql($database, q{SELECT tableoid::regclass FROM photos WHERE title = 'later'});
	is($node->safe_psql($database, qq{SELECT has_table_privilege('$partition', 'SELECT'), count(*) FROM $partition}, @as_app), 't|0',
		"$when: the application's role sees nothing in a later partition itself, even if it has privileges there");
	is($node->safe_psql($database, "SELECT count(*) FROM $partition", @as_owner), 1, "$when: the owner sees the rows of a later partition");
	fails_with($node, "INSERT INTO photos (id, title, user_id) VALUES ($in_three_days + 1, 'lost', 3)", qr/^23503/,
		"$when: the foreign key applies in a later partition", dbname => $database);
	is($node->safe_psql($database, q{SELECT count(*) FROM pg_constraint WHERE conrelid = 'photos_old'::regclass AND contype = 'f'}),
		1, "$when: the foreign key takes over that of the old table");
	is($node->safe_psql($database, q{SELECT count(*) FROM make_partitions('photos', now() + interval '4 days', now() + interval '4 days')}, @as_owner),
		1, "$when: the owner makes the next partitions");
	is($node->safe_psql($database, q{SELECT DISTINCT relowner::regrole FROM pg_class WHERE relname LIKE 'photos\_2%' AND relkind = 'r'}),
		'owner', "$when: all new partitions belong to the owner");
}

# --- with objects that refer to it -----------------------------------------

my $with_objects = q{
	CREATE TABLE photos (id bigserial PRIMARY KEY, title text);
	CREATE VIEW titles AS SELECT title FROM photos;
	CREATE FUNCTION how_many() RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM photos; END;
	CREATE FUNCTION shown(photos) RETURNS text LANGUAGE sql AS 'SELECT $1.title';
	CREATE TABLE comments (photo_id bigint REFERENCES photos);
	CREATE POLICY of_photos ON comments USING (photo_id IN (SELECT id FROM photos));
	CREATE PUBLICATION of_photos FOR TABLE photos;
	GRANT SELECT ON photos TO reporter;
	ALTER VIEW titles OWNER TO reporter;
	ALTER VIEW titles SET (security_barrier);
	GRANT SELECT ON titles TO PUBLIC;
	CREATE VIEW titles_again AS SELECT title FROM titles;
	CREATE MATERIALIZED VIEW number AS SELECT count(*) FROM photos};
my $later = "INSERT INTO photos VALUES ($in_three_days, 'later')";
my $comment_later = q{INSERT INTO comments SELECT id FROM photos WHERE title = 'later'};
my $later_titles = q{SELECT count(*) FROM titles WHERE title = 'later'};

$node->safe_psql('postgres', 'CREATE ROLE reporter');
database_with('left_alone', $with_objects);
$node->safe_psql('left_alone', "$recipe; $later");
fails_with($node, $comment_later, qr/^23503/, 'control: a foreign key of another table stays with the old table', dbname => 'left_alone');
is($node->safe_psql('left_alone', $later_titles), 0, 'control: a view stays with the old table');

database_with('recreated', $with_objects);
$node->safe_psql('recreated', q{
	ALTER TABLE photos ADD version int GENERATED ALWAYS AS IDENTITY;
	INSERT INTO photos (title) VALUES ('first'), ('second'); INSERT INTO comments VALUES (1);
	ALTER PUBLICATION of_photos SET (publish_via_partition_root = true)});
is($node->safe_psql('recreated', $left_behind->{code}) . "\n", <<'EOS', 'all that would stay with the old table is listed');
constraint comments_photo_id_fkey on table comments
function how_many()
function shown(photos)
policy of_photos on table comments
publication of table photos in publication of_photos
rule _RETURN on materialized view number
rule _RETURN on view titles
sequence photos_id_seq
sequence photos_version_seq
EOS
my $view = q{
	SELECT relowner::regrole, relacl, reloptions FROM pg_class WHERE oid = 'titles'::regclass;
	SELECT count(*) FROM titles_again};
my $view_before = $node->safe_psql('recreated', $view);
my ($print_view, $print_function) = $text =~ /by `(\\sv) recent` or `(\\sf) how_many`/ or die 'no commands that print';
my $view_command = $node->safe_psql('recreated', "$print_view titles");
my $function_command = $node->safe_psql('recreated', "$print_function how_many");
my ($drop_table, $add_table) = $text =~ /`(ALTER PUBLICATION of_photos DROP TABLE .*?)`,\s+and\s+then\s+`(ALTER PUBLICATION of_photos ADD .*?)`/
  or die 'no commands for a publication that names the table';
my ($owned_by) = $text =~ /`(ALTER SEQUENCE \S+ OWNED BY .*?)`/ or die 'no command for the owner of a sequence';
my ($setval, $drop_identity) = $text =~ /`(SELECT setval\(.*?)`.*?`(ALTER TABLE photos_old ALTER version .*?)`/ or die 'no commands for an identity column';
my $in_step_2 = qq{
	$function_command;
	DROP FUNCTION shown; CREATE FUNCTION shown(photos) RETURNS text LANGUAGE sql AS 'SELECT \$1.title';
	ALTER TABLE comments DROP CONSTRAINT comments_photo_id_fkey;
	ALTER TABLE comments ADD CONSTRAINT comments_photo_id_fkey FOREIGN KEY (photo_id) REFERENCES photos NOT VALID;
	$drop_table;
	$add_table;
	$owned_by;
	$setval;
	$drop_identity;
};
my $after_step_2 = qq{
	$view_command;
	CREATE MATERIALIZED VIEW new_number AS SELECT count(*) FROM photos;
	BEGIN; DROP MATERIALIZED VIEW number; ALTER MATERIALIZED VIEW new_number RENAME TO number; COMMIT;
	ALTER POLICY of_photos ON comments USING (photo_id IN (SELECT id FROM photos))};
my $recreated = $recipe =~ s{^-- here .*\n}{$in_step_2}mr;
isnt($recreated, $recipe, 'the recipe has a place for these objects');
$node->safe_psql('recreated', $recreated);
is($node->safe_psql('recreated', $view), $view_before, 'a view that was not replaced yet goes on');
$node->safe_psql('recreated', $after_step_2);
is($node->safe_psql('recreated', $view), $view_before, 'a view keeps its owner, its privileges, its options and a view that reads it');
is($node->safe_psql('recreated', 'SELECT count FROM number'), 2, 'a materialized view has the rows');
is($node->safe_psql('recreated', $left_behind->{code} =~ s/'photos'/'photos_old'/gr), '',
	'nothing refers to the old table any more');
$node->safe_psql('recreated', "$later; $comment_later; ALTER TABLE comments VALIDATE CONSTRAINT comments_photo_id_fkey");
is($node->safe_psql('recreated', "SELECT how_many(), shown(photos) FROM photos WHERE title = 'later'; $later_titles"), "3|later\n1",
	'a view and functions that were created again have all rows');
is($node->safe_psql('recreated', q{SELECT tablename FROM pg_publication_tables}), 'photos',
	'a publication to which the new table was added publishes it as one table');
is($node->safe_psql('recreated', q{SELECT max(version) FROM photos}), 3, 'an identity column goes on');
is($node->safe_psql('recreated', 'DROP TABLE photos_old CASCADE; SELECT count(*) FROM photos'), 1,
	'the old partition can be dropped with its sequences');

# Step 2 was run without these commands.
database_with('afterwards', "$with_objects; INSERT INTO photos (title) VALUES ('first'); INSERT INTO comments VALUES (1)");
$node->safe_psql('afterwards', "$recipe; BEGIN; SET LOCAL lock_timeout = '300ms'; LOCK TABLE comments, photos IN ACCESS EXCLUSIVE MODE; "
	  . ($in_step_2 =~ s/^.*\bversion.*\n//gmr) . "COMMIT; $after_step_2");
$node->safe_psql('afterwards', "$later; $comment_later; ALTER TABLE comments VALIDATE CONSTRAINT comments_photo_id_fkey");
is($node->safe_psql('afterwards', "SELECT how_many(), shown(photos) FROM photos WHERE title = 'later'; $later_titles"), "2|later\n1",
	'the commands can be run after the steps');

# --- with a unique constraint on other columns ------------------------------

database_with('not_unique', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), slug text UNIQUE, title text, UNIQUE (title, id));
	CREATE UNIQUE INDEX ON photos (lower(slug)) INCLUDE (id);
	CREATE INDEX ON photos (title)});
is($node->safe_psql('not_unique', $left_behind->{code}), "index photos_lower_id_idx\nindex photos_slug_key", 'unique indexes without the key are listed');
$node->psql('not_unique', $recipe, on_error_stop => 0, stderr => \my $not_unique);
like($not_unique, qr/(?:unique|UNIQUE) constraint on partitioned table must include all partitioning columns/, 'such a table is refused');
is($node->safe_psql('not_unique', q{SELECT relkind FROM pg_class WHERE oid = 'photos'::regclass}), 'r', 'such a table stays as it was');

# --- filled by subscriptions -------------------------------------------------

# The one stops and goes on as the document says.  The control does not know the new table.
my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->start;
$publisher->safe_psql('postgres', q{
	CREATE TABLE photos (id bigint PRIMARY KEY, title text);
	INSERT INTO photos SELECT n FROM generate_series(1, 100) AS n;
	CREATE PUBLICATION photos FOR TABLE photos});
sub publish
{
	$publisher->safe_psql('postgres', 'INSERT INTO photos SELECT (SELECT max(id) FROM photos) + n FROM generate_series(1, 100) AS n');
	return;
}

my ($stop) = $text =~ /Right before step 2 run `(ALTER SUBSCRIPTION .*?)`/ or die 'no command that stops a subscription';
my ($refresh) = $text =~ /Right after step 2 run `(ALTER SUBSCRIPTION .*?)`/ or die 'no command that refreshes a subscription';
my ($go_on) = $text =~ /by default its own name: `(ALTER SUBSCRIPTION .*?)`/ or die 'no command that lets a subscription go on';
foreach my $subscription ('not_listed', 'photos_of_s2')
{
	my $database = "fed_$subscription";

	database_with($database, $photos);
	$node->safe_psql($database, "CREATE SUBSCRIPTION $subscription CONNECTION '" . $publisher->connstr('postgres') =~ s/'/''/gr
		  . "' PUBLICATION photos");
	$node->wait_for_subscription_sync($publisher, $subscription, $database);
	is($node->safe_psql($database, $left_behind->{code}), "subscription $subscription", 'a subscription is listed');
}
publish();
$publisher->wait_for_catchup($_) foreach 'not_listed', 'photos_of_s2';
$node->safe_psql('fed_photos_of_s2', "$steps[0]{code}; $stop");
# No process that knows the old table goes on.
$publisher->poll_query_until('postgres', q{SELECT NOT active FROM pg_replication_slots WHERE slot_name = 'photos_of_s2'})
  or die 'the subscription does not stop';
publish();
$node->safe_psql('fed_photos_of_s2', $steps[1]{code});
publish();
$node->safe_psql('fed_not_listed', $recipe);
# Another process, as after a restart
$node->safe_psql('fed_not_listed', 'ALTER SUBSCRIPTION not_listed DISABLE');
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_subscription WHERE subname = 'not_listed' AND pid IS NOT NULL});
$node->safe_psql('fed_not_listed', 'ALTER SUBSCRIPTION not_listed ENABLE');
fails_with($node, "ALTER SUBSCRIPTION photos_of_s2 DISABLE; $refresh", qr/not allowed for disabled subscriptions/,
	'a disabled subscription is not refreshed', dbname => 'fed_photos_of_s2');
$node->safe_psql('fed_photos_of_s2', 'ALTER SUBSCRIPTION photos_of_s2 ENABLE');
$node->safe_psql('fed_photos_of_s2', $_) foreach $refresh, $go_on, map { $_->{code} } @steps[ 2, 3 ];
publish();
$publisher->wait_for_catchup($_) foreach 'not_listed', 'photos_of_s2';
my $published = $publisher->safe_psql('postgres', 'SELECT count(*) FROM photos');
is($node->safe_psql('fed_photos_of_s2', 'SELECT count(*) FROM photos'), $published, 'a subscription that knows the new table skips no row');
cmp_ok($node->safe_psql('fed_not_listed', 'SELECT count(*) FROM photos'), '<', $published,
	'control: a subscription that does not know the new table skips rows');
$node->safe_psql("fed_$_", "DROP SUBSCRIPTION $_") foreach 'not_listed', 'photos_of_s2';
$publisher->stop;

# --- with a foreign key to itself ------------------------------------------

# The commands of the text
my ($drop, $add) = $text =~ /there by `(ALTER TABLE photos_old DROP CONSTRAINT) \.\.\.` and `(ALTER TABLE photos_old ADD CONSTRAINT) \.\.\. REFERENCES photos NOT VALID`/
  or die 'no commands for a foreign key to the table itself';
my ($validate) = $text =~ /`(ALTER TABLE photos_old VALIDATE CONSTRAINT) \.\.\.`\s+and\s+`SET lock_timeout/ or die 'no command that validates it';
database_with('to_itself', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text, original bigint REFERENCES photos);
	INSERT INTO photos (title) VALUES ('sunrise'); INSERT INTO photos (title, original) SELECT 'cropped', id FROM photos});
is($node->safe_psql('to_itself', $left_behind->{code}), 'constraint photos_original_fkey on table photos', 'a foreign key to the table itself is listed');
$node->safe_psql('to_itself', $_) foreach $steps[0]{code},
  $steps[1]{code} =~ s/^-- here .*/$drop photos_original_fkey; $add photos_original_fkey FOREIGN KEY (original) REFERENCES photos NOT VALID;/mr;
my $copy = q{INSERT INTO photos (title, original) VALUES ('copy', %s)};
fails_with($node, sprintf($copy, 17), qr/^23503/, 'the foreign key applies at once', dbname => 'to_itself');
{
	my $offset = -s $node->logfile;

	$node->safe_psql('to_itself', "$validate photos_original_fkey");
	local $ENV{PGOPTIONS} = '-c log_min_messages=debug1';
	$node->safe_psql('to_itself', 'ALTER TABLE photos ADD CONSTRAINT photos_original_fkey FOREIGN KEY (original) REFERENCES photos');
	unlike(slurp_file($node->logfile, $offset), qr/validating foreign key/, 'the partitioned table takes over the foreign key, and no row is checked');
}
$node->safe_psql('to_itself', $_->{code}) foreach @steps[ 2, 3 ];
my $later_copy = qq{INSERT INTO photos VALUES ($in_three_days, 'copy', %s)};
fails_with($node, sprintf($later_copy, 17), qr/^23503/, 'the foreign key applies in a later partition', dbname => 'to_itself');
$node->safe_psql('to_itself', sprintf $later_copy, '(SELECT id FROM photos WHERE original IS NULL)');
fails_with($node, q{DELETE FROM photos WHERE title = 'sunrise'}, qr/^23503/, 'a row with copies is not deleted', dbname => 'to_itself');
is($node->safe_psql('to_itself', q{SELECT count(*) FROM pg_constraint WHERE conrelid = 'photos_old'::regclass AND contype = 'f' AND convalidated}), 1,
	'the old table has one validated foreign key');

# --- with a foreign key that is not valid ----------------------------------

database_with('not_valid', qq{CREATE TABLE users (id bigint PRIMARY KEY); $photos;
	ALTER TABLE photos ADD user_id bigint; ALTER TABLE photos ADD FOREIGN KEY (user_id) REFERENCES users NOT VALID});
$node->psql('not_valid', $recipe, on_error_stop => 0, stderr => \my $refused);
if ($node->pg_version < 18)
{
	like($refused, qr/cannot add NOT VALID foreign key on partitioned table/, 'a foreign key that is not valid is refused');
	is($node->safe_psql('not_valid', $partitions), 0, 'a foreign key that is not valid lets nothing change');
	$node->safe_psql('not_valid', "ALTER TABLE photos VALIDATE CONSTRAINT photos_user_id_fkey; $steps[1]{code}");
}
is($node->safe_psql('not_valid', q{SELECT 'photos_old'::regclass}), 'photos_old', 'such a table becomes a partition, too');

# --- while sessions use it -------------------------------------------------

# A session numbers its rows, so that a lost one leaves a gap.
database_with('in_use', q{
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), session int, number int);
	CREATE TABLE comments (photo_id bigint NOT NULL REFERENCES photos, session int, number int);
	CREATE VIEW recent AS SELECT id, session FROM photos ORDER BY id DESC LIMIT 20;
	INSERT INTO photos (session, number) VALUES (0, 0)});
my @sessions = map { start_sessions('in_use', $_, '-R', 800) }
  "SELECT 1 / (count(*) > 0)::int FROM recent;\n",
  "\\set last :last + 1\nINSERT INTO photos (session, number) VALUES (:client_id, :last);\n",
  "SELECT id FROM recent LIMIT 1 \\gset\n\\set last :last + 1\nINSERT INTO comments VALUES (:id, :client_id, :last);\n";

my ($locks) = $text =~ /for example `(LOCK TABLE comments, photos IN ACCESS EXCLUSIVE MODE)`/ or die 'no locks';
my $transaction = $steps[1]{code};
$transaction =~ s/^LOCK TABLE photos IN .*(?=;)/$locks/m or die 'no lock';
$transaction =~ s{^-- here .*\n}{
	ALTER TABLE comments DROP CONSTRAINT comments_photo_id_fkey;
	ALTER TABLE comments ADD CONSTRAINT comments_photo_id_fkey FOREIGN KEY (photo_id) REFERENCES photos NOT VALID;
}m or die 'no place for commands';
my $replace_view = "SET lock_timeout = '300ms';\n" . $node->safe_psql('in_use', "$print_view recent");
$node->safe_psql('in_use', $steps[0]{code});
foreach (
	[ $transaction, 'the table becomes a partition while sessions write to it, to a table that refers to it, and read a view' ],
	[ $replace_view, 'a view is replaced while sessions read it' ])
{
	my ($commands, $what) = @$_;
	my ($tries, $status, $error) = (0, 3, '');

	while ($status != 0 && $tries++ < 10)
	{
		$status = $node->psql('in_use', $commands, stderr => \$error);
		like($error, qr/lock timeout/, "try $tries gave up") if $status != 0;
	}
	is($status, 0, $what) or diag($error);
	note("tries: $tries");
}
$node->safe_psql('in_use', $_->{code}) foreach @steps[ 2, 3 ];
$node->safe_psql('in_use', "INSERT INTO photos VALUES ($in_three_days, -1, 1); ALTER TABLE comments VALIDATE CONSTRAINT comments_photo_id_fkey");
sessions_end_without_error($_) foreach @sessions;
is($node->safe_psql('in_use', "SELECT sum(count) > 400, sum(count) = sum(last) FROM (
		SELECT count(*), max(number) AS last FROM $_ WHERE number > 0 GROUP BY session) AS of_session (count, last)"),
	't|t', "no row of $_ is lost") foreach 'photos', 'comments';

$node->stop;
done_testing();
