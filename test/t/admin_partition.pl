# snowflake_partition(): a table becomes the first partition of a new one while
# sessions insert, change and delete rows of it and of tables beside it, and a
# subscriber gets them.  The new table has all that the old one had.

use AdminTest;
use SnowflakeTest;

my $node = start_admin_server('partition', 'loaded');
# Which tables have statistics is compared later.
$node->append_conf('postgresql.conf', "wal_level = logical\nmax_wal_senders = 4\nautovacuum = off");
$node->restart;
value('postgres', 'CREATE ROLE "the Auditors"');

# The commands that a call shows
sub commands_of
{
	my ($database, $sql) = @_;
	return grep { /;$/ && !/^table / } run_psql($database, $sql) =~ /NOTICE:  \w+: (.*)/g;
}

# --- under load -----------------------------------------------------------

value('loaded', <<'EOS');
CREATE SCHEMA "My App";
SELECT snowflake_set_shard(5);
SET search_path = "My App", public;
CREATE TABLE users (id bigint PRIMARY KEY DEFAULT next_id(5), name text, photos bigint NOT NULL DEFAULT 0);
CREATE TABLE "Photos" (
	id bigint PRIMARY KEY DEFAULT next_id(5), user_id bigint NOT NULL REFERENCES users, title text,
	version int GENERATED ALWAYS AS IDENTITY, "Original" bigint REFERENCES "Photos",
	length int GENERATED ALWAYS AS (length(title)) STORED, changes int NOT NULL DEFAULT 0);
CREATE INDEX "by title" ON "Photos" (title);
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.changes := NEW.changes + 1;
	RETURN NEW;
END $$;
CREATE TRIGGER note_change BEFORE UPDATE ON "Photos" FOR EACH ROW EXECUTE FUNCTION note_change();
CREATE TABLE comments (id bigint PRIMARY KEY DEFAULT next_id(5), body text,
	photo_id bigint NOT NULL REFERENCES "Photos" ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
CREATE INDEX ON comments (photo_id);
CREATE TABLE likes (photo_id bigint REFERENCES "Photos" ON DELETE CASCADE);
CREATE INDEX ON likes (photo_id);
CREATE TABLE ledger (photo bigint, deleted boolean);
INSERT INTO users SELECT n, 'user ' || n FROM generate_series(1, 100) AS n;
INSERT INTO "Photos" (id, user_id, title, "Original") SELECT n, 1 + n % 100, 'old', nullif(n / 2, 0)
	FROM generate_series(1, 120000) AS n;
INSERT INTO comments (body, photo_id) SELECT 'on ' || n, n FROM generate_series(1, 120000) AS n;
CREATE PUBLICATION "of Photos" FOR TABLE "Photos" (id, title)
	WHERE (id > 120000) WITH (publish_via_partition_root = true);
VACUUM ANALYZE;
EOS
# A subscriber that does not know the partitions.  It gets new rows only.
value('postgres', 'CREATE DATABASE subscriber');
value('subscriber', 'CREATE SCHEMA "My App"; CREATE TABLE "My App"."Photos" (id bigint PRIMARY KEY, title text)');
value('loaded', q{SELECT pg_create_logical_replication_slot('photos', 'pgoutput')});
value('subscriber', q{CREATE SUBSCRIPTION photos CONNECTION '} . $node->connstr('loaded') =~ s/'/''/gr
	  . q{' PUBLICATION "of Photos" WITH (create_slot = false, copy_data = false, slot_name = photos)});

my $load = start_sessions('loaded', <<'EOS');
\set user random(1, 100)
\set old random(1, 120000)
\set delete random(0, 3)
BEGIN;
INSERT INTO "My App"."Photos" (user_id, title, "Original") VALUES (:user, 'new', :old)
RETURNING id AS photo, version \gset
INSERT INTO "My App".comments (body, photo_id) VALUES ('on ' || :photo, :photo) RETURNING id AS comment \gset
INSERT INTO "My App".likes VALUES (:photo), (:old);
INSERT INTO "My App".ledger VALUES (:photo, false);
UPDATE "My App".users SET photos = photos + 1 WHERE id = :user;
COMMIT;
UPDATE "My App"."Photos" SET title = 'changed' WHERE id = :old;
SELECT 1 / (count(*) = 1)::integer FROM "My App".comments JOIN "My App"."Photos" AS p ON p.id = photo_id
WHERE comments.id = :comment AND body = 'on ' || p.id AND version = :version;
\if :delete
\else
BEGIN;
DELETE FROM "My App"."Photos" WHERE id = :photo;
INSERT INTO "My App".ledger VALUES (:photo, true);
COMMIT;
\endif
EOS
my $call = q{CALL snowflake_partition('"My App"."Photos"', 'day', tries => 1000)};
my $offset = -s $node->logfile;
my ($status, undef, $error) = $node->psql('loaded', "SET log_min_messages = debug1; $call");
# All that follows is about what it has done.
if ($status != 0)
{
	diag(($error =~ /(ERROR: .*)/s)[0] // $error, "\n$call");
	die 'the call under load failed';
}
pass('the table becomes a partition while sessions work');
my @reads = slurp_file($node->logfile, $offset) =~ /DEBUG:  ((?:partition constraint for|verifying|building|validating) .*)/g;
is(join("\n", grep { /"Photos_old"/ } @reads),
	'partition constraint for table "Photos_old" is implied by existing constraints',
	'no row of the old table is read again for the bound of the partition, or for an index');
my $partitions = value('loaded', q{SELECT count(*) - 1 FROM snowflake_partitions('"My App"."Photos"')});
is(scalar(grep { /foreign key constraint "Photos_user_id_fkey"/ } @reads), $partitions,
	'... nor for a foreign key, which is checked for new partitions only');
is(scalar(grep { /foreign key constraint "Photos_Original_fkey"/ } @reads),
	$partitions + 1, 'rows of a foreign key to the table itself are checked once');
like($error, qr/until it is renamed; to give up: ALTER TABLE "My App"."Photos" DROP CONSTRAINT snowflake_partition;/,
	'the first step says how to give up');
sessions_go_on($load, 'sessions go on after that');
end_sessions($load);

my $expected = q{SELECT generate_series(1, 120000) UNION SELECT photo FROM "My App".ledger
	EXCEPT SELECT photo FROM "My App".ledger WHERE deleted};
is(value('loaded', qq{
		(SELECT id FROM "My App"."Photos" EXCEPT ($expected))
		UNION ALL ($expected EXCEPT SELECT id FROM "My App"."Photos")}),
	'', 'no photo is lost, and none is there twice');
is(value('loaded', q{SELECT count(*) - count(DISTINCT id) - count(DISTINCT version) + count(*)
		FROM "My App"."Photos"}), 0, 'no number of the identity repeats');
is(value('loaded', q{SELECT (SELECT count(*) FROM "My App".comments) = (SELECT count(*) FROM "My App"."Photos"),
		(SELECT sum(photos) FROM "My App".users) = (SELECT count(*) FROM "My App".ledger WHERE NOT deleted)}), 't|t',
	'no comment and no change of a user is lost');
is(value('loaded', q{SELECT count(*) FROM "My App"."Photos"
		WHERE (changes > 0) <> (title = 'changed')}), 0, 'the trigger fired for each change');
is(value('loaded', q{SELECT count(*) FROM pg_index WHERE NOT indisvalid OR NOT indisready}), 0,
	'all indexes are valid');

# Rows of later partitions, too, are published as those of one table.
value('loaded', q{
		INSERT INTO "My App"."Photos" (id, user_id, title)
		VALUES (snowflake_id(now() + interval '3 days', 5, 0), 1, 'later')})
  if value('loaded', q{SELECT max(until) > now() + interval '3 days 1 hour'
		FROM snowflake_partitions('"My App"."Photos"')}) eq 't';
$node->wait_for_catchup('photos', 'replay', $node->lsn('write'));
my $digest = q{SELECT count(*), sum(id), count(*) FILTER (WHERE title = 'later') FROM "My App"."Photos"
		WHERE id > 120000};
is(value('subscriber', $digest), value('loaded', $digest), 'a subscriber that knows no partitions has all new rows');
value('subscriber', 'DROP SUBSCRIPTION photos');

# --- what comes along -------------------------------------------------------

# What a table has that could get lost: each fact's name, and the query that shows it
my @properties = (
	'owner, row-level security and replica identity' => q{
		SELECT relowner::regrole, relrowsecurity, relforcerowsecurity, relreplident
		FROM pg_class WHERE oid = 'app.photos'::regclass},
	'comment' => q{SELECT obj_description('app.photos'::regclass, 'pg_class')},
	'privileges' => q{
		SELECT unnest(coalesce(relacl, acldefault('r', relowner)))::text
		FROM pg_class WHERE oid = 'app.photos'::regclass ORDER BY 1},
	(map {
		my ($name, $what) = @$_;
		($name => qq{
			SELECT attname, $what FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
			WHERE attrelid = 'app.photos'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum})
	  }
	  [ 'columns' => 'format_type(atttypid, atttypmod), attnotnull, attcollation::regcollation' ],
	  [ 'privileges on columns' => 'attacl' ],
	  [ 'identities, and sequences of columns' => q{attidentity, pg_get_serial_sequence('app.photos', attname)} ],
	  [ 'defaults and generated columns' => 'attgenerated, pg_get_expr(adbin, adrelid)' ],
	  [ 'statistics targets and options of columns' =>
		  q{attstattarget, ARRAY(SELECT option FROM unnest(attoptions) AS option WHERE option LIKE 'n%')} ],
	  [ 'storage and compression of columns' => 'attstorage, attcompression' ],
	  [ 'comments on columns' => 'col_description(attrelid, attnum)' ]),
	'policies' => q{
		SELECT policyname, permissive, roles, cmd, qual, with_check FROM pg_policies WHERE tablename = 'photos' ORDER BY 1},
	'comments on policies' => q{
		SELECT polname, obj_description(oid, 'pg_policy') FROM pg_policy WHERE polrelid = 'app.photos'::regclass ORDER BY 1},
	'triggers' => q{
		SELECT pg_get_triggerdef(oid), tgenabled, obj_description(oid, 'pg_trigger') FROM pg_trigger
		WHERE tgrelid = 'app.photos'::regclass AND NOT tgisinternal ORDER BY 1},
	'constraints, and foreign keys to it' => q{
		SELECT conname, pg_get_constraintdef(oid), obj_description(oid, 'pg_constraint') FROM pg_constraint
		WHERE 'app.photos'::regclass IN (conrelid, confrelid) AND conparentid = 0 ORDER BY 1},
	'indexes' => q{
		SELECT replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON '), indisreplident,
			obj_description(indexrelid, 'pg_class')
		FROM pg_index WHERE indrelid = 'app.photos'::regclass ORDER BY 1},
	'statistics targets of indexes' => q{
		SELECT indexrelid::regclass, attnum, attstattarget FROM pg_index JOIN pg_attribute ON attrelid = indexrelid
		WHERE indrelid = 'app.photos'::regclass ORDER BY 1, 2},
	'statistics objects' => q{
		SELECT stxname, stxnamespace::regnamespace, stxowner::regrole, stxstattarget, pg_get_statisticsobjdef(oid),
			obj_description(oid, 'pg_statistic_ext')
		FROM pg_statistic_ext WHERE stxrelid = 'app.photos'::regclass ORDER BY 1},
	'publications' => q{
		SELECT pubname, tablename, attnames, rowfilter FROM pg_publication_tables WHERE tablename = 'photos' ORDER BY 1},
	'number of tables that publications publish for it' => q{
		SELECT pubname, count(*) FROM pg_publication_tables WHERE tablename ~ 'photos' GROUP BY 1 ORDER BY 1},
	'sequences' => q{
		SELECT relname, relowner::regrole, relacl, obj_description(c.oid, 'pg_class'), seqtypid::regtype, seqstart,
			seqincrement, seqmax, seqcache, seqcycle
		FROM pg_class AS c JOIN pg_sequence ON seqrelid = c.oid WHERE relnamespace = 'app'::regnamespace ORDER BY 1},
	'rows' => q{
		SELECT count(DISTINCT photos.id), count(DISTINCT original), max(version)
		FROM app.photos JOIN app.comments ON photo_id = photos.id});

# What a table has now, by the facts' names
sub properties_of
{
	my ($database) = @_;
	my %query = @properties;
	return { map { $_ => value($database, $query{$_}) } keys %query };
}

# It has what it had: each fact is an assertion.
sub keeps_properties
{
	my ($database, $before, $name) = @_;
	my $after = properties_of($database);
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($after->{$_}, $before->{$_}, "$name: $_") foreach grep { exists $before->{$_} } @properties;
}

my $tables = <<'EOS';
CREATE SCHEMA app;
GRANT ALL ON SCHEMA app TO owner;
GRANT USAGE ON SCHEMA app TO PUBLIC;
SELECT snowflake_set_shard(5);
SET search_path = app, public;
CREATE TABLE users (id bigint PRIMARY KEY, name text);
CREATE TABLE photos (
	dropped int,
	id bigint DEFAULT next_id(snowflake_shard()),
	title text NOT NULL COLLATE "C",
	user_id bigint,
	changed_by text,
	n serial,
	tenant int NOT NULL DEFAULT 1,
	original bigint,
	version smallint GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME versions START 7 INCREMENT 3 CACHE 2 CYCLE),
	rank int GENERATED BY DEFAULT AS IDENTITY,
	size int GENERATED ALWAYS AS (length(title)) STORED,
	CONSTRAINT "the Key" PRIMARY KEY (id) INCLUDE (title),
	CHECK (title <> 'x'),
	CONSTRAINT "Both" UNIQUE (tenant, id),
	CONSTRAINT numbers UNIQUE (n, id) DEFERRABLE);
ALTER TABLE photos DROP dropped;
ALTER TABLE photos ADD FOREIGN KEY (user_id) REFERENCES users ON DELETE SET NULL;
ALTER TABLE photos ADD CONSTRAINT self FOREIGN KEY (tenant, original) REFERENCES photos (tenant, id) MATCH SIMPLE;
CREATE INDEX "ON it USING this" ON photos USING hash (title) WITH (fillfactor = 60) WHERE title <> 'y';
CREATE UNIQUE INDEX ON photos (lower(title) DESC, id);
CREATE INDEX copy_of_key ON photos (id) INCLUDE (title);
CREATE SCHEMA other; GRANT ALL ON SCHEMA other TO owner;
CREATE STATISTICS other.photos_title_stat (ndistinct) ON tenant, user_id FROM photos;
CREATE STATISTICS stats ON lower(title), n, tenant FROM photos;
CREATE STATISTICS "of one" ON (n + 1) FROM photos;
ALTER STATISTICS stats SET STATISTICS 300;
COMMENT ON STATISTICS "of one" IS 'of one expression';
ALTER STATISTICS other.photos_title_stat OWNER TO owner; ALTER STATISTICS stats OWNER TO owner;
ALTER STATISTICS "of one" OWNER TO owner;
ALTER INDEX photos_lower_id_idx ALTER COLUMN 1 SET STATISTICS 900;
-- Names that the old ones would get
CREATE TABLE photos_old (); CREATE TYPE photos_old2 AS (n int); CREATE SEQUENCE "the Key_old";
CREATE STATISTICS stats_old ON id, name FROM users;
CREATE TABLE comments (photo_id bigint, tenant int, n int);
ALTER TABLE comments ADD CONSTRAINT to_both FOREIGN KEY (tenant, photo_id)
	REFERENCES photos (tenant, id) MATCH FULL ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE comments ADD FOREIGN KEY (photo_id) REFERENCES photos ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
COMMENT ON CONSTRAINT to_both ON comments IS 'to both';
COMMENT ON CONSTRAINT self ON photos IS 'to itself';
COMMENT ON CONSTRAINT photos_user_id_fkey ON photos IS 'to users';
COMMENT ON CONSTRAINT "the Key" ON photos IS 'the key';
COMMENT ON CONSTRAINT photos_title_check ON photos IS 'a check';
COMMENT ON INDEX "ON it USING this" IS 'an index';
COMMENT ON TABLE photos IS 'everybody''s photos';
COMMENT ON COLUMN photos.title IS 'as shown';
COMMENT ON SEQUENCE versions IS 'versions';
ALTER TABLE photos ALTER title SET STATISTICS 77, ALTER title SET (n_distinct = -0.5),
	ALTER title SET STORAGE EXTERNAL, REPLICA IDENTITY FULL;
ALTER TABLE photos SET (fillfactor = 70);
GRANT SELECT ON users TO app; GRANT REFERENCES, SELECT ON users TO owner;
ALTER TABLE photos OWNER TO owner;
ALTER TABLE comments OWNER TO owner, REPLICA IDENTITY FULL;
REVOKE TRUNCATE ON photos FROM owner;
GRANT SELECT, UPDATE (title) ON photos TO app;
GRANT INSERT (title, user_id), REFERENCES (id) ON photos TO app;
GRANT SELECT ON photos TO "the Auditors" WITH GRANT OPTION;
GRANT TRIGGER ON photos TO PUBLIC;
GRANT USAGE ON SEQUENCE versions, photos_n_seq, photos_rank_seq TO app;
ALTER TABLE photos ENABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON photos TO app, "the Auditors"
	USING (EXISTS (SELECT FROM users WHERE users.id = photos.user_id AND name = current_user));
CREATE POLICY "All Rows" ON photos FOR SELECT USING (pg_has_role('the Auditors', 'USAGE'));
CREATE POLICY titles ON photos AS RESTRICTIVE FOR INSERT WITH CHECK (title <> '');
COMMENT ON POLICY titles ON photos IS 'a policy';
CREATE FUNCTION note_role() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.changed_by := concat(NEW.changed_by, current_user, tg_argv[0]);
	RETURN NEW;
END $$;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM TG_TABLE_NAME; RETURN NULL; END $$;
CREATE TRIGGER note_role BEFORE INSERT OR UPDATE OF title ON photos FOR EACH ROW WHEN (NEW.title <> 'z')
	EXECUTE FUNCTION note_role('');
CREATE TRIGGER disabled BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION note_role('disabled');
CREATE TRIGGER replica BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION note_role('replica');
CREATE TRIGGER "Always" AFTER DELETE ON photos FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TRIGGER statement AFTER INSERT ON photos REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT
	EXECUTE FUNCTION nothing();
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON photos DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
	EXECUTE FUNCTION nothing();
ALTER TABLE photos DISABLE TRIGGER disabled, ENABLE REPLICA TRIGGER replica, ENABLE ALWAYS TRIGGER "Always";
COMMENT ON TRIGGER late ON photos IS 'late';
ALTER DEFAULT PRIVILEGES GRANT SELECT, DELETE ON TABLES TO app;
ALTER DEFAULT PRIVILEGES FOR ROLE owner IN SCHEMA app GRANT SELECT, DELETE ON TABLES TO app, PUBLIC;
CREATE PUBLICATION columns FOR TABLE photos (id, title, tenant)
	WHERE (title <> 'secret') WITH (publish_via_partition_root = true, publish = 'insert');
CREATE PUBLICATION "All" FOR ALL TABLES WITH (publish_via_partition_root = true, publish = 'insert');
CREATE PUBLICATION of_schema FOR TABLES IN SCHEMA app WITH (publish_via_partition_root = true, publish = 'insert');
ALTER PUBLICATION columns OWNER TO owner;
INSERT INTO users VALUES (1, 'app'), (2, 'somebody else');
INSERT INTO photos (title, user_id) SELECT 'photo ' || n, 2 FROM generate_series(1, 1000) AS n;
UPDATE photos SET original = (SELECT min(id) FROM photos) WHERE title LIKE '%0';
INSERT INTO comments SELECT id, 1 FROM photos;
EOS
new_admin_database('owned');
value('owned', "GRANT CREATE ON DATABASE owned TO owner; $tables");
my $before = properties_of('owned');
foreach my $params ("'month', dry_run => true", "'month'")
{
	local $ENV{PGUSER} = 'owner';
	$error = run_psql('owned', "CALL snowflake_partition('app.photos', $params)");
	unlike($error, qr/ERROR/, "the owner may call it: $params");
	like($error,
		qr/WARNING:  \w+: trigger "Always" of table app.photos will see the name of the partition in TG_TABLE_NAME/,
		"... and a warning names a trigger that depends on the table's name");
	like($error, qr/NOTICE:  \w+: programs will notice that table app.photos is partitioned\nDETAIL:  ctid is unique only/,
		'... and a notice says what programs will notice');
}
keeps_properties('owned', $before, 'what the old table had, the new one has');
is(value('owned', q{
		SELECT (SELECT count(*) FROM pg_index WHERE indrelid = 'app.photos_old3'::regclass), count(*)
		FROM pg_inherits JOIN pg_index ON inhrelid = indexrelid WHERE indrelid = 'app.photos_old3'::regclass}),
	'6|6', 'each index of the old table belongs to one of the new table');
my @as_app = (dbname => 'owned', extra_params => [ '-U', 'app' ]);
is($node->safe_psql('owned', q{INSERT INTO app.photos (title, user_id) VALUES ('harbour', 1)
		RETURNING tableoid = 'app.photos_old3'::regclass, changed_by, version % 3}, @as_app),
	't|app|1', "the application's role inserts into the new table, and the right triggers fire once");
my $later = q{snowflake_id((SELECT max(until) - interval '1 hour' FROM snowflake_partitions('app.photos')), 5, 0)};
is(value('owned', qq{
		INSERT INTO app.photos (id, title, user_id, original) SELECT $later, 'later', 1, min(id) FROM app.photos
		RETURNING tableoid::regclass <> 'app.photos_old3'::regclass, changed_by}), 't|postgres',
	'later rows go to a later partition');
is(value('owned', q{DROP TABLE app.photos_old3 CASCADE; SELECT count(*) FROM app.photos}), 1,
	'the old table can be dropped with nothing of the new one');

# Policies that apply to the owner hide rows from that role.
value('owned', q{
	CREATE TABLE app.forced (id bigint PRIMARY KEY DEFAULT next_id(5), hidden boolean);
	ALTER TABLE app.forced OWNER TO owner, ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	CREATE POLICY p ON app.forced USING (NOT hidden);
	INSERT INTO app.forced VALUES (snowflake_id(now() + interval '400 days', 5, 0), true)});
fails_with($node, q{CALL snowflake_partition('app.forced', 'month')}, qr/^55000 table app.forced has IDs from \d+ on/,
	'an ID beyond the partition is found where a policy hides it', dbname => 'owned', extra_params => [ '-U', 'owner' ]);
value('owned', 'DELETE FROM app.forced');
$node->safe_psql('owned', q{CALL snowflake_partition('app.forced', 'month')}, extra_params => [ '-U', 'owner' ]);
is(value('owned', q{SELECT relname, relkind, relforcerowsecurity FROM pg_class WHERE relname ~ '^forced(_old)?$' ORDER BY 1}),
	"forced|p|t\nforced_old|r|t", 'FORCE ROW LEVEL SECURITY stays on the old table and the new one');

value('owned', q{
	CREATE TABLE keyed (id bigint PRIMARY KEY DEFAULT next_id(5), n int NOT NULL);
	CREATE UNIQUE INDEX by_n ON keyed (n, id);
	ALTER TABLE keyed REPLICA IDENTITY USING INDEX by_n;
	CALL snowflake_partition('keyed', 'month')});
is(value('owned', q{SELECT relreplident, indexrelid::regclass FROM pg_class AS c
		JOIN pg_index ON indrelid = c.oid AND indisreplident WHERE c.oid = 'keyed'::regclass}), 'i|by_n',
	'an index may be the replica identity');

# --- killed ---------------------------------------------------------------

my $kills = run_killed_at_each_step('killed', sub { value('killed', $tables) },
	q{CALL snowflake_partition('app.photos', 'day')},
	sub {
		return {
			%{ properties_of('killed') },
			'partitions' => value('killed', q{SELECT partition FROM snowflake_partitions('app.photos')}),
			'constraints of the old table, and those that are NOT VALID' => value('killed', q{
				SELECT conname FROM pg_constraint
				WHERE conrelid = 'app.photos_old3'::regclass OR NOT convalidated ORDER BY 1}),
			'relations, and which have statistics' => value('killed', q{
				SELECT relname, reltuples >= 0 FROM pg_class
				WHERE relnamespace = 'app'::regnamespace ORDER BY 1}) } },
	once_a_transaction => 1);
cmp_ok($kills, '>', 6, "killed $kills times");
keeps_properties('killed', $before, 'called by a superuser, the new table has what the old one had');

# --- called again, at once, or to give up -----------------------------------

new_admin_database('again');
value('again', q{
	SELECT snowflake_set_shard(5);
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
	INSERT INTO photos (title) SELECT n FROM generate_series(1, 1000) AS n;
	CREATE TABLE other (LIKE photos INCLUDING ALL)});
my $state = q{SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace
		AND relname !~ 'next_id' ORDER BY 1;
	SELECT conrelid::regclass, conname, convalidated FROM pg_constraint WHERE conrelid <> 0 ORDER BY 1, 2};
$before = value('again', $state);
my @planned = commands_of('again', q{CALL snowflake_partition('other', 'week', dry_run => true)});
is(value('again', $state), $before, 'a dry run changes nothing');
like($planned[0],
	qr/ALTER TABLE public.other ADD CONSTRAINT snowflake_partition CHECK \(id < snowflake_admin.partition_limit\(\)\) NOT VALID;/,
	'... and shows commands');
value('again', "@planned");
is(value('again', q{
		SELECT count(*) FILTER (WHERE since <> '-infinity' AND until = since + interval '7 days'), count(*) > 1,
			min(until) > now() + interval '24 hours', extract(isodow FROM min(until))
		FROM snowflake_partitions('other')}) =~ /^(\d)\|t\|t\|1$/ ? $1 : 0, 1,
	'the commands of a dry run can be pasted, and begin partitions with a week');

# A call that was interrupted, and is not called again for a year
my $asked = q{CALL snowflake_partition('photos', 'day', at => date_trunc('day', now()) + interval '36 hours')};
value('again', $_) foreach (commands_of('again', $asked =~ s/\)$/, dry_run => true)/r))[ 0 .. 2 ];
is(value('again', q{SELECT convalidated FROM pg_constraint WHERE conname = 'snowflake_partition'}), 't',
	'a call that ends before the swap leaves a valid constraint');
is(value('again', q{
		WITH i AS (INSERT INTO photos (id) VALUES (snowflake_id(now() + interval '1 year', 5, 0)) RETURNING id)
		SELECT count(*) FROM i}), 1, 'that constraint rejects no ID, however late');
fails_with($node, $asked, qr/^55000 table public.photos has IDs, or soon gets some, that are later than its partition/,
	'a table with IDs later than its partition is refused, also after the first steps', dbname => 'again');
value('again', q{DELETE FROM photos WHERE id > snowflake_min_id(now() + interval '1 day')});
my $goes_on = said($asked =~ s/\)$/, dry_run => true)/r, 'again');
like($goes_on, qr/NOTICE:  ALTER TABLE .* RENAME TO photos_old;/, 'a call goes on where another one ended');
unlike($goes_on, qr/to give up/, '... and does not say again how to give up');
my $remedy = value('again', q{SELECT remedy FROM snowflake_check() WHERE problem ~ 'snowflake_partition'});
like($remedy, qr/\ACALL public.snowflake_partition\('public.photos'::regclass, 'day'::text, at => '[-0-9 :.]+\+00'::timestamptz\);\z/,
	'snowflake_check() shows the whole call that has not ended');
my $user = $node->background_psql('again');
$user->query_safe('BEGIN; SELECT count(*) FROM photos');
my $by_week = "CALL snowflake_partition('photos', 'week', tries => 1)";
fails_with($node, $by_week, qr/^55P03/, 'a call with another unit gets no lock for the swap', dbname => 'again');
$user->quit;
is(value('again', q{SELECT remedy FROM snowflake_check() WHERE problem ~ 'snowflake_partition'}),
	q{CALL public.snowflake_partition('public.photos'::regclass, 'week'::text);}, '... and is the one that snowflake_check() then shows');
my @shown = commands_of('again', $remedy);
like("@shown", qr/\A(?!.*(NOT VALID|VALIDATE CONSTRAINT)).*RENAME TO photos_old;/s, '... and that goes on with the swap') or diag $remedy;
is(value('again', q{
		SELECT min(until) = date_trunc('day', now()) + interval '36 hours',
			string_agg(CASE WHEN since + interval '12 hours' = until THEN 'half' END, ' '),
			count(*) > 3, max(until) > now() + interval '3 days' FROM snowflake_partitions('photos')}), 't|half|t|t',
	'a first partition that begins within a day ends with it');
unlike(run_psql('again', $asked), qr/ALTER|ERROR/, 'the next call has nothing to do') or diag $asked;

# Two sessions
value('again', q{
	CREATE TABLE logs (id bigint PRIMARY KEY DEFAULT next_id());
	INSERT INTO logs SELECT next_id() FROM generate_series(1, 1000)});
my @sessions = map { $node->background_psql('again', on_error_stop => 0) } 1 .. 2;
send_sql($_, "CALL snowflake_partition('logs', 'day');\n\\echo ended\n") foreach @sessions;
ok(session_prints($_, qr/ended/), 'a session of two ends') foreach @sessions;
unlike(join('', map { $_->{stderr} } @sessions), qr/ERROR/, 'two sessions may call at once');
$_->quit foreach @sessions;
is(value('again', q{SELECT count(*), (SELECT count(*) FROM logs), count(DISTINCT since)
		FROM snowflake_partitions('logs')}), '3|1000|3', '... and partition the table once');

# Two sessions with other arguments write them once each into the comment on the constraint.
value('again', q{
	CREATE TABLE units (id bigint PRIMARY KEY DEFAULT next_id(), n int);
	CREATE TABLE of_units (unit bigint REFERENCES units);
	INSERT INTO units SELECT next_id() FROM generate_series(1, 1000)});
my $holds = $node->background_psql('again');
$holds->query_safe('BEGIN; LOCK TABLE units IN SHARE UPDATE EXCLUSIVE MODE');
@sessions = map { session($node, 'again') } 1 .. 2;
foreach my $n (0, 1)
{
	send_sql($sessions[$n], "SET statement_timeout = '30s';\nCALL snowflake_partition('units', '"
		  . (qw(week day))[$n] . "', tries => 1000);\n\\echo it is over\n");
	$node->poll_query_until('again',
		"SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $sessions[$n]{backend}") or die;
}
$holds->quit;
ok(session_prints($_, qr/it is over/), 'a session of two with other units ends') foreach @sessions;
my @remarks = map { scalar(() = $_->{stderr} =~ /COMMENT ON CONSTRAINT snowflake_partition/g) } @sessions;
cmp_ok($_, '<=', 1, '... after it has written its remark once at most') foreach @remarks;
is(join('', map { $_->{stderr} =~ /(ERROR.*)/ } @sessions), '', '... without an error');
$_->quit foreach @sessions;
is(value('again', q{SELECT relkind, (SELECT count(*) FROM pg_constraint WHERE conname = 'snowflake_partition'
		AND conrelid = 'units_old'::regclass) FROM pg_class WHERE oid = 'units'::regclass}), 'p|0', '... and the table is partitioned');

# Two sessions that go on after the swap, each with another one of both tables.  Each locks the new table first.
value('again', q{
	ALTER TABLE logs_old ADD CONSTRAINT snowflake_partition CHECK (id < snowflake_admin.partition_limit());
	UPDATE pg_class SET reltuples = -1 WHERE oid = 'logs'::regclass});
my $keeps_out = $node->background_psql('again');
$keeps_out->query_safe('BEGIN; LOCK TABLE ONLY logs IN SHARE UPDATE EXCLUSIVE MODE');
@sessions = map { session($node, 'again') } 1 .. 2;
foreach my $n (0, 1)
{
	send_sql($sessions[$n], qq{CALL snowflake_partition('} . (qw(logs logs_old))[$n] . qq{', 'day');\n\\echo ended\n});
	$node->poll_query_until('again',
		"SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $sessions[$n]{backend}") or die;
}
is(value('again', q{SELECT count(*) FROM pg_locks WHERE relation = 'logs_old'::regclass AND mode = 'ShareUpdateExclusiveLock'}), 0,
	'sessions that wait for the new table have not locked the old one');
$keeps_out->quit;
ok(session_prints($_, qr/ended/), 'a session of two that go on ends') foreach @sessions;
is(join('', map { $_->{stderr} =~ /(ERROR.*)/ } @sessions), '',
	'two sessions may go on at once, one with the new table and one with its first partition');
$_->quit foreach @sessions;
is(value('again', q{SELECT count(*) FROM pg_constraint WHERE conname = 'snowflake_partition'
		AND conrelid = 'logs_old'::regclass}), 0, '... and all steps are done');

# A table after one to which it refers.  Before PostgreSQL 18, a part of the foreign key is NOT VALID then.
value('again', q{
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT next_id());
	CREATE TABLE lines (id bigint PRIMARY KEY DEFAULT next_id(), order_id bigint REFERENCES orders ON DELETE CASCADE);
	INSERT INTO orders DEFAULT VALUES;
	INSERT INTO lines (order_id) SELECT id FROM orders});
succeeds('again', qq{CALL snowflake_partition('$_', 'day')}, "a table after those to which it refers: $_")
  foreach qw(orders lines);
is(value('again', q{
		INSERT INTO orders VALUES (snowflake_id(now() + interval '49 hours', 5, 0));
		INSERT INTO lines (order_id) SELECT id FROM orders;
		SELECT count(*), count(DISTINCT orders.tableoid) FROM lines JOIN orders ON orders.id = order_id;
		DELETE FROM orders; SELECT count(*) FROM lines}), "3|2\n0", 'rows of both go into partitions, and the foreign key still deletes those of lines');

# Others act while the call tries to get its locks, and do not wait for the one that keeps
# out changes of the table.  What they do is done to the new table, too.
foreach my $case (
	[ 'GRANT UPDATE (title) ON visits TO app', q{has_column_privilege('app', 'visits', 'title', 'UPDATE')} ],
	[ 'REVOKE ALL ON visits FROM app', q{NOT has_table_privilege('app', 'visits', 'SELECT')} ],
	[ 'ALTER SEQUENCE visits_n_seq INCREMENT 10 CACHE 5',
		q{(SELECT (seqincrement, seqcache) = (10, 5) FROM pg_sequence WHERE seqrelid = 'visits_n_seq'::regclass)} ],
	[ 'GRANT USAGE ON SEQUENCE visits_n_seq TO app', q{has_sequence_privilege('app', 'visits_n_seq', 'USAGE')} ],
	[ q{COMMENT ON INDEX visits_pkey IS 'by ID'}, q{obj_description('visits_pkey'::regclass, 'pg_class') = 'by ID'} ],
	[ 'CREATE VIEW seen AS SELECT title FROM visits' ])
{
	my ($other, $holds) = @$case;
	value('again', q{
		DROP TABLE IF EXISTS visits CASCADE;
		CREATE TABLE visits (id bigint PRIMARY KEY DEFAULT next_id(), title text, n int GENERATED ALWAYS AS IDENTITY);
		GRANT SELECT ON visits TO app});
	value('again', $_)
	  foreach (commands_of('again', q{CALL snowflake_partition('visits', 'day', dry_run => true)}))[ 0, 1 ];
	my ($reader, $caller) = map { $node->background_psql('again', on_error_stop => 0) } 1 .. 2;
	$reader->query_safe('BEGIN; SELECT FROM visits');
	send_sql($caller, "CALL snowflake_partition('visits', 'day', tries => 1000);\n\\echo ended\n");
	ok(wait_for(sub { value('again', q{SELECT count(*) FROM pg_stat_activity
		WHERE application_name = 'snowflake_partition: swap visits'
		OR application_name = 'snowflake_partition: swap public.visits'}) }), "a call waits for its locks");
	value('again', $other);
	$reader->query_safe('COMMIT');
	session_prints($caller, qr/ended/);
	if ($holds)
	{
		unlike($caller->{stderr}, qr/ERROR/, "$other while a call waits for its locks does not make it fail");
		is(value('again', qq{SELECT relkind, $holds FROM pg_class WHERE oid = 'visits'::regclass}), 'p|t',
			'... holds for the new table');
	}
	else
	{
		like($caller->{stderr}, qr/ERROR:  cannot partition table public.visits: view public.seen depends on it/,
			"$other while a call waits for its locks makes it fail");
		is(value('again', q{SELECT relkind FROM pg_class WHERE oid = 'visits'::regclass}), 'r',
			'... and the table is not partitioned');
	}
	$_->quit foreach $reader, $caller;
}

# --- kinds of keys, hostile names -------------------------------------------

value('postgres', 'CREATE DATABASE names');
hostile_schema($node, 'names');
value('names', q{
	CREATE SCHEMA ids; CREATE EXTENSION snowflake SCHEMA ids;
	CREATE SCHEMA "the Admin"; CREATE EXTENSION snowflake_admin SCHEMA "the Admin";
	ALTER DATABASE names SET search_path = public, ids, "the Admin"; SET search_path = public, ids, "the Admin";
	SELECT snowflake_set_shard(5);
	CREATE SCHEMA "a ""schema""";
	CREATE TABLE "a ""schema"""."Tab's %s" (
		"a %I $ key" bigint PRIMARY KEY DEFAULT next_id(5),
		"t""t" text CHECK ("t""t" <> ';'));
	INSERT INTO "a ""schema"""."Tab's %s" DEFAULT VALUES;
	CREATE TABLE evil.typed (id snowflake PRIMARY KEY DEFAULT next_id(5), day int);
	INSERT INTO evil.typed DEFAULT VALUES;
	CREATE SEQUENCE tweets_seq;
	SELECT snowflake_alter_sequence('tweets_seq', 'twitter');
	CREATE TABLE tweets (
		day int,
		id bigint DEFAULT next_id(33, 'tweets_seq'),
		other bigint DEFAULT next_id(5) UNIQUE,
		PRIMARY KEY (day, id));
	ALTER TABLE tweets DROP CONSTRAINT tweets_other_key;
	CREATE INDEX ON tweets (id);
	CREATE TABLE own (id bigint PRIMARY KEY DEFAULT next_id(3, 'next_id_seq',
		'timestamp:41 worker:10 sequence:12 epoch:1288834974657')) });
my $long = 'ä' x 31;
value('names', qq{CREATE TABLE "$long" (id bigint PRIMARY KEY DEFAULT next_id())});
value('names', qq{
		SELECT set_config('search_path', 'evil, pg_catalog, public, ids', false);
		SET timezone = 'America/New_York';
		CALL "the Admin".snowflake_partition('$_', 'day')})
  foreach q{"a ""schema"""."Tab''s %s"}, 'evil.typed', 'public.tweets', qq{public."$long"}, 'public.own';
is(value('names', q{SELECT partition FROM snowflake_partitions('"a ""schema"""."Tab''s %s"') LIMIT 1}),
	q{"a ""schema"""."Tab's %s_old"}, 'all names are quoted');
is(value('names', qq{SELECT partition FROM snowflake_partitions('"$long"') LIMIT 1}), '"' . ('ä' x 29) . '_old"',
	'a long name is cut between characters');
my $days = q{SELECT count(*), min(until) = date_trunc('day', now(), 'UTC') + interval '48 hours'};
is(value('names', "$days FROM snowflake_partitions('evil.typed')"), '3|t', 'a key may be a snowflake');
is(value('names', "$days FROM snowflake_partitions('$_->[0]', '$_->[1]')"), '3|t',
	"days are days in the layout of $_->[0]")
  foreach [ 'tweets', 'twitter' ], [ 'own', 'timestamp:41 worker:10 sequence:12 epoch:1288834974657' ];
is(value('names', q{SELECT pg_get_partkeydef('tweets'::regclass)}), 'RANGE (id)',
	'the column of the primary key is the partition key');

# --- refused ----------------------------------------------------------------

new_admin_database('refused');
value('refused', q{
	SELECT snowflake_set_shard(5);
	CREATE SCHEMA app;
	GRANT USAGE ON SCHEMA app TO PUBLIC;
	CREATE TABLE app.users (id bigint PRIMARY KEY);
	CREATE TABLE app.t (id bigint PRIMARY KEY DEFAULT next_id(), n integer, s text)});
$before = value('refused', '\d+ app.*');
my $refuses = q{CALL snowflake_partition('app.t', 'day')};
foreach my $case (
	[ 'CREATE VIEW app."V" AS SELECT id FROM app.t', 'DROP VIEW app."V"', qr/view app."V" depends on it/ ],
	[ q{CREATE FUNCTION app.f(app.t) RETURNS text LANGUAGE sql AS 'SELECT $1.s'}, 'DROP FUNCTION app.f',
		qr/function app.f\(app.t\) depends on it/ ],
	[ 'CREATE POLICY p ON app.users USING (id IN (SELECT n FROM app.t))', 'DROP POLICY p ON app.users',
		qr/policy p on app.users depends on it/ ],
	[ 'CREATE TABLE app.c (a app.t[])', 'DROP TABLE app.c', qr/app.c\S* depends on it/ ],
	[ 'CREATE TABLE app.c () INHERITS (app.t)', 'DROP TABLE app.c', qr/table app.c depends on it/ ],
	[ 'CREATE TABLE app.c (t bigint REFERENCES app.t) PARTITION BY LIST (t)', 'DROP TABLE app.c',
		qr/foreign key c_t_fkey of partitioned table app.c refers to it/ ],
	[ 'CREATE TABLE app.c (t bigint); ALTER TABLE app.c ADD FOREIGN KEY (t) REFERENCES app.t NOT VALID',
		'DROP TABLE app.c', qr/constraint c_t_fkey of table app.c is NOT VALID/ ],
	[ 'ALTER TABLE app.t ADD CONSTRAINT f FOREIGN KEY (n) REFERENCES app.users NOT VALID',
		'ALTER TABLE app.t DROP CONSTRAINT f',
		qr/constraint f of table app.t is NOT VALID.*HINT:  ALTER TABLE app.t VALIDATE CONSTRAINT f/s ],
	[ 'ALTER TABLE app.t ADD CONSTRAINT c CHECK (n > 0) NO INHERIT', 'ALTER TABLE app.t DROP CONSTRAINT c',
		qr/constraint c of table app.t is NOT VALID, NOT ENFORCED or NO INHERIT/ ],
	[ 'CREATE UNIQUE INDEX u ON app.t (s) INCLUDE (id)', 'DROP INDEX app.u',
		qr/unique index app.u does not contain column id/ ],
	[ 'ALTER TABLE app.t ADD CONSTRAINT x EXCLUDE (n WITH =)', 'ALTER TABLE app.t DROP CONSTRAINT x',
		qr/index of exclusion constraint app.x does not contain column id/ ],
	[ 'CREATE PUBLICATION "P" FOR ALL TABLES', 'DROP PUBLICATION "P"',
		qr/publication "P" would publish its partitions/ ],
	[ 'CREATE PUBLICATION "P" FOR TABLES IN SCHEMA app', 'DROP PUBLICATION "P"',
		qr/publication "P" would publish its partitions/ ],
	[ q{CREATE SUBSCRIPTION "S" CONNECTION '' PUBLICATION p WITH (connect = false);
			INSERT INTO pg_subscription_rel SELECT oid, 'app.t'::regclass, 'r' FROM pg_subscription},
		'DELETE FROM pg_subscription_rel; ALTER SUBSCRIPTION "S" SET (slot_name = NONE); DROP SUBSCRIPTION "S"',
		qr/subscription "S" fills it/ ],
	[ 'CREATE TRIGGER g AFTER INSERT ON app.t REFERENCING NEW TABLE AS new FOR EACH ROW
		EXECUTE FUNCTION suppress_redundant_updates_trigger()', 'DROP TRIGGER g ON app.t',
		qr/trigger g is FOR EACH ROW and has transition tables/ ],
	[ 'ALTER TABLE app.t SET UNLOGGED', 'ALTER TABLE app.t SET LOGGED', qr/it is unlogged, typed, inherited/ ],
	[ q{DO $$ BEGIN FOR n IN 1 .. 1000 LOOP EXECUTE concat('CREATE TABLE app.t_old', nullif(n, 1), ' ()'); END LOOP; END $$},
		q{DO $$ BEGIN FOR n IN 1 .. 1000 LOOP EXECUTE concat('DROP TABLE app.t_old', nullif(n, 1)); END LOOP; END $$},
		qr/names such as app.t_old and app.t_old1000 are taken.*HINT:  Rename what has these names\./s ],
	[ 'ALTER TABLE app.t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (s, id); CREATE INDEX i ON app.t (id) WHERE n > 0',
		'DROP INDEX app.i; ALTER TABLE app.t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id), ALTER s DROP NOT NULL',
		qr/no index begins with column id.*HINT:  CREATE INDEX CONCURRENTLY ON app.t \(id\) first/s ],
	[ 'ALTER TABLE app.t DROP CONSTRAINT t_pkey, ALTER id DROP NOT NULL', 'ALTER TABLE app.t ADD PRIMARY KEY (id)',
		qr/column id may be NULL/ ],
	[ 'ALTER TABLE app.t ALTER id SET DEFAULT 7', 'ALTER TABLE app.t ALTER id SET DEFAULT next_id()',
		qr/table app.t has no bigint or snowflake key that next_id\(\) generates/ ],
	[ 'INSERT INTO app.t VALUES (snowflake_id(now() + interval \'40 days\', 5, 0))', 'DELETE FROM app.t',
		qr/table app.t has IDs, or soon gets some, that are later than its partition/ ])
{
	my ($make, $drop, $expected) = @$case;
	my @errors = split /(?=ERROR:)/, run_psql('refused', "$make;\n$refuses;\n$drop;", on_error_stop => 0);

	is(@errors, 2, "refused: $make") && like($errors[1], qr/^ERROR:  55000: .*$expected/s, '... by name');
}
is(value('refused', '\d+ app.*'), $before, 'a table that is refused is left as it is');
my $serial = q{CALL snowflake_partition('app.serial', 'day')};
value('refused', 'CREATE TABLE app.serial (id serial PRIMARY KEY)');
like(run_psql('refused', $serial), qr/HINT:  CALL public.snowflake_widen\('app.serial'::regclass, 'id'::name\) first, and then snowflake_move/,
	'a serial key must first become a bigint');
value('refused', q{CALL snowflake_widen('app.serial', 'id')});
value('refused', q{CALL snowflake_move('app.serial', 5)});
unlike(run_psql('refused', $serial), qr/ERROR/, '... and then the table is partitioned');
value('refused', 'DROP TABLE app.serial');
value('refused', q{
	CREATE SEQUENCE app.s;
	CREATE TABLE app.by_days (id bigint DEFAULT next_id(), PRIMARY KEY (id)) PARTITION BY RANGE (id);
	CREATE TABLE app.day PARTITION OF app.by_days FOR VALUES FROM (1) TO (2);
	CREATE TABLE app.mine (id bigint PRIMARY KEY DEFAULT next_id(), n bigint REFERENCES app.t, u bigint);
	ALTER TABLE app.mine OWNER TO owner; GRANT USAGE, CREATE ON SCHEMA app TO owner;
	CREATE TABLE app.counted (id bigint PRIMARY KEY DEFAULT next_id(), n int, u int);
	CREATE STATISTICS app.counts ON n, u FROM app.counted; ALTER TABLE app.counted OWNER TO owner});
foreach my $case (
	[ q{SET ROLE app; CALL snowflake_partition('app.t', 'day')}, qr/^42501 must be owner of table app.t/,
		'a role that owns nothing is refused' ],
	[ q{SET ROLE owner; CALL snowflake_partition('app.counted', 'day')},
		qr/^55000 cannot partition table app.counted: statistics object app.counts belongs to role postgres/,
		'a statistics object of a former owner is named before the first step' ],
	[ q{SET ROLE owner; CALL snowflake_partition('app.mine', 'day')},
		qr/^42501 must have privilege REFERENCES on table app.t/, 'a foreign key needs its privilege' ],
	[ q{GRANT REFERENCES ON app.t TO owner;
			CREATE TABLE app.others (id bigint REFERENCES app.mine);
			SET ROLE owner;
			CALL snowflake_partition('app.mine', 'day')},
		qr/^55000 table app.others, whose foreign keys lead to table app.mine, has another owner/,
		"another owner's foreign key is refused" ],
	[ q{DROP TABLE app.others;
			CREATE PUBLICATION p FOR TABLE app.mine WITH (publish_via_partition_root = true);
			SET ROLE owner;
			CALL snowflake_partition('app.mine', 'day')},
		qr/^42501 must be owner of publication p/, "another owner's publication is refused" ],
	[ q{DROP PUBLICATION p;
			REVOKE CREATE ON SCHEMA app FROM owner;
			SET ROLE owner;
			CALL snowflake_partition('app.mine', 'day')},
		qr/^42501 permission denied for schema app/,
		'a role that may not create tables is refused before the first step' ],
	[ q{BEGIN; CALL snowflake_partition('app.t', 'day')},
		qr/^2D000 snowflake_partition\(\) cannot run inside a transaction block/, 'a transaction block is refused' ],
	[ q{CALL snowflake_partition(NULL, 'day')}, qr/^22004/, 'table NULL is refused' ],
	[ q{CALL snowflake_partition('app.t', NULL)}, qr/^22004 unit must not be null/, 'unit NULL is refused' ],
	[ q{CALL snowflake_partition('app.t', 'decade')}, qr/^22023 unit must be/, 'unit decade is refused' ],
	[ q{CALL snowflake_partition('app.s', 'day')}, qr/^42809 app.s is not a table/, 'a sequence is refused' ],
	[ q{CALL snowflake_partition('app.by_days', 'day')}, qr/^55000 table app.by_days is partitioned already/,
		'a partitioned table is refused' ],
	[ q{CALL snowflake_partition('app.day', 'day')}, qr/^55000 table app.day is a partition of app.by_days/,
		'a partition is refused' ],
	[ q{CREATE TEMP TABLE x (LIKE app.t INCLUDING ALL); CALL snowflake_partition('x', 'day')},
		qr/^55000 table \S*x is temporary/, 'a temporary table is refused' ])
{
	fails_with($node, $case->[0], $case->[1], $case->[2], dbname => 'refused');
}
is(value('refused', q{SELECT count(*) FROM pg_constraint
		WHERE conname LIKE 'snowflake_partition%'}), 0, 'no refused call leaves a constraint');

# Times with which the first partition cannot end.  Each call gets a new table.
my $alone = q{SELECT relkind, (SELECT count(*) FROM pg_constraint WHERE conrelid = c.oid AND contype = 'c')
	FROM pg_class AS c WHERE oid = 'app.alone'::regclass};
foreach my $case (
	[ q{now() + interval '4 minutes'}, qr/^22023 at must be later than/, 'as it is about to come' ],
	[ q{now() + interval '1 hour'}, qr/^22023 at must be later than/, 'as IDs may have it already', q{SET snowflake.max_lead = '1h';} ],
	[ q{'2050-01-01Z'}, qr/^22023 IDs of table app.alone cannot have the time 2050/, 'as the layout has ended by then' ],
	[ q{'infinity'}, qr/^22023 IDs of table app.alone cannot have the time infinity/, 'as no ID has that time' ])
{
	my ($at, $expected, $why, $setting) = (@$case, '');

	value('refused', 'DROP TABLE IF EXISTS app.alone; CREATE TABLE app.alone (id bigint PRIMARY KEY DEFAULT next_id())');
	fails_with($node, "SET client_min_messages = warning; $setting CALL snowflake_partition('app.alone', 'day', at => $at)", $expected,
		"at => $at is refused, $why", dbname => 'refused');
	is(value('refused', $alone), 'r|0', '... and the table has neither partitions nor a new constraint');
}
succeeds('refused', q{SET snowflake.max_lead = '3d'; CALL snowflake_partition('app.alone', 'day', dry_run => true)},
	'a time that snowflake_partition() chooses is later than those that IDs may have');
done_testing();
