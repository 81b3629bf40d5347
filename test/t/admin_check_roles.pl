# Whoever calls snowflake_check() is told who can obey each remedy, and is shown no statement
# that fails.

use SnowflakeTest;

my $node = server_in_utc('roles');
my $n = 0;
my $database;

$node->sql('CREATE ROLE boss LOGIN; CREATE ROLE lender LOGIN; CREATE ROLE landlord LOGIN');

sub as_role
{
	my ($role, $sql) = @_;
	return $node->safe_psql($database, $sql, connstr => $node->connstr($database) . " user=$role");
}

# A database of boss, with tables of boss and lender
sub new_database
{
	$database = 'roles_' . ++$n;
	$node->sql("CREATE DATABASE $database");
	$node->safe_psql($database, qq{
		CREATE EXTENSION snowflake_admin CASCADE;
		ALTER DATABASE $database OWNER TO boss;
		SELECT snowflake_set_shard(5);
		CREATE SCHEMA app AUTHORIZATION boss;
		CREATE SCHEMA loans AUTHORIZATION lender;
		GRANT USAGE ON SCHEMA app TO lender;
		GRANT USAGE ON SCHEMA loans TO boss});
	as_role('boss', q{
		CREATE TABLE app.photos (id bigint PRIMARY KEY DEFAULT next_id());
		CREATE SEQUENCE app.tweets_seq;
		SELECT snowflake_alter_sequence('app.tweets_seq', 'twitter');
		CREATE TABLE app.tweets (id bigint PRIMARY KEY DEFAULT next_id(3, 'app.tweets_seq'))});
	as_role('lender', 'CREATE TABLE loans.loans (id bigint PRIMARY KEY DEFAULT next_id())');
}

sub rows
{
	my ($role, $condition) = @_;
	return as_role($role, 'SELECT concat_ws($$|$$, severity, object, problem, remedy) FROM snowflake_check() WHERE '
		  . ($condition // 'true'));
}

# Obey each remedy as the caller or, if only another role can, as that role, with another shard for N
# each time.  What is no statement, nobody can run.
my $number = 100;

sub obey
{
	my ($role, $condition) = @_;
	my $count = 0;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	foreach my $row (split /\n/, rows($role, $condition))
	{
		my (undef, $object, $problem, $remedy) = split /\|/, $row;
		next if $remedy =~ /\.$/;
		my ($who) = $problem =~ /Only (.*?)(?:, the owner of .*)? can (?:do|grant) this/;
		$who = $role unless defined $who;
		$who = 'postgres' if $who eq 'a superuser';
		$number++;
		my ($status, undef, $said) = $node->psql($database, $remedy =~ s/\bN\b/$number/gr,
			connstr => $node->connstr($database) . " user=$who", on_error_stop => 1);
		is($status, 0, "$role, $object: $who can obey $remedy") or diag $said;
		unlike($said, qr/WARNING/, '... without a warning');
		$count++;
	}
	return $count;
}

my $ahead = q{SELECT setval('%s', (snowflake_min_id(now() + interval '1 day', '%s') >> %s) << %s)};

# --- who can obey -------------------------------------------------------------------------

foreach my $role (qw(boss lender postgres))
{
	# What the role may not read
	new_database();
	is(obey($role, "object LIKE 'role %'"), { boss => 1, lender => 2, postgres => 0 }->{$role},
		"$role gets a statement for each owner of what it may not read");
	is(rows($role), '', '... after which nothing is wrong');

	# No shard
	as_role('boss', 'SELECT snowflake_set_shard(NULL)');
	is(obey($role), 1, '... nor is a shard missing after one statement');
	is(rows($role), '', '... of the right role');

	# Others may create functions beside those of the extensions.
	$node->safe_psql($database, 'GRANT CREATE ON SCHEMA public TO lender');
	is(obey($role), 1, '... nor may others create functions');
	is(rows($role), '', '... any more');

	# Sequences that are ahead, of which rows have IDs
	$node->safe_psql($database, sprintf($ahead, 'app.tweets_seq', 'twitter', 22, 12));
	$node->safe_psql($database, sprintf($ahead, 'next_id_seq', 'instagram', 23, 10));
	as_role('boss', q{
		INSERT INTO app.tweets VALUES (snowflake_id(now() + interval '20 hours', 3, 1, 'twitter'));
		INSERT INTO app.photos VALUES (snowflake_id(now() + interval '20 hours', snowflake_shard(), 1))});
	obey($role) foreach 1 .. 4;
	is(rows($role), '', '... nor is a sequence ahead, or a row dated in the future');

	# Keys that are too small or count, missing partitions, and a missing index, of another role
	as_role('lender', q{CREATE TABLE loans.narrow (id serial PRIMARY KEY); INSERT INTO loans.narrow VALUES (1800000000);
		CREATE TABLE loans.counts (id bigserial PRIMARY KEY); INSERT INTO loans.counts VALUES (next_id());
		SELECT setval('loans.counts_id_seq', max(id)) FROM loans.counts;
		CREATE TABLE loans.parts (id bigint PRIMARY KEY DEFAULT next_id()) PARTITION BY RANGE (id);
		CREATE TABLE loans.bare (id bigint DEFAULT next_id());
		GRANT SELECT ON ALL TABLES IN SCHEMA loans TO boss; GRANT SELECT ON ALL SEQUENCES IN SCHEMA loans TO boss});
	is(obey($role), 4, '... nor are keys, partitions and an index');
	is(rows($role), '', '... left');
}

# --- the owner of this database, and that of another ----------------------------------------

new_database();
as_role('boss', 'SELECT snowflake_set_shard(NULL)');
$node->sql("ALTER DATABASE $database OWNER TO landlord; CREATE DATABASE elsewhere OWNER lender");
my $no_shard = 'No shard is set, so the default of app.photos.id fails, and 1 more.';
foreach my $case ([ 'landlord', '' ], [ 'lender', ' Only landlord, the owner of the database, can do this.' ])
{
	my ($role, $only) = @$case;
	is(as_role($role, "SELECT problem FROM snowflake_check() WHERE remedy ~ 'snowflake_set_shard'"), "$no_shard$only",
		"$role, who owns one database, is told who can set the shard of database $database");
}

# --- what a command would refuse ------------------------------------------------------------------

new_database();
as_role('boss', 'GRANT REFERENCES, SELECT ON app.photos TO lender');
as_role('lender', 'CREATE TABLE loans.photos (id bigint PRIMARY KEY DEFAULT next_id(), photo bigint REFERENCES app.photos);
	CREATE INDEX ON loans.photos (photo)');
as_role('boss', q{INSERT INTO app.photos VALUES (snowflake_id(now() + interval '2 days', 9, 1))});
like(rows('boss', q{object = 'table app.photos'}), qr/^warning\|.*\|snowflake_renumber\(\) cannot do it yet: table loans.photos, whose foreign keys lead to table app.photos, has another owner\. .*Give both tables one owner.*\.$/,
	'a table of another owner that refers to the rows is named in place of the command');
as_role('boss', q{CREATE TABLE app.plain (id bigint DEFAULT next_id()); CREATE INDEX ON app.plain (id);
	INSERT INTO app.plain VALUES (snowflake_id(now() + interval '2 days', 9, 2))});
like(rows('boss', q{object = 'table app.plain'}), qr/\|snowflake_renumber\(\) cannot do it yet: table app.plain has no column of IDs\. .*\.$/,
	'... and so is a column in no unique index');
as_role('lender', 'CREATE TABLE loans.narrow (id serial PRIMARY KEY); INSERT INTO loans.narrow VALUES (1800000000);
	CREATE VIEW loans.view AS SELECT id FROM loans.narrow');
like(rows('lender', q{object LIKE '%narrow%'}), qr/\|snowflake_widen\(\) cannot do it yet: cannot widen column id of table loans.narrow\. .*loans.view.*\.$/,
	'... and a view of a column that is too small');
is(rows('boss', q{object LIKE '%narrow%'}), '', '... which only roles see that may read the table');
as_role('lender', 'CREATE TABLE loans.counts (id bigserial PRIMARY KEY); INSERT INTO loans.counts VALUES (next_id());
	SELECT setval($$loans.counts_id_seq$$, max(id)) FROM loans.counts;
	CREATE FUNCTION loans.names() RETURNS bigint LANGUAGE sql AS $$SELECT currval($x$loans.counts_id_seq$x$)$$');
like(rows('lender', q{object LIKE '%counts%'}), qr/\|snowflake_move\(\) cannot do it yet: .* Obstacle: function loans.names\(\) names its sequence\. .*\.$/,
	'... and a function that names the sequence of a key');

# A layout without shards
foreach my $shard ('3', "length('')", 'snowflake_shard()')
{
	new_database();
	as_role('boss', qq{
		CREATE SEQUENCE app.toots_seq;
		SELECT snowflake_alter_sequence('app.toots_seq', 'mastodon');
		CREATE TABLE app.toots (id bigint PRIMARY KEY DEFAULT next_id($shard, 'app.toots_seq'));
		INSERT INTO app.toots VALUES (snowflake_id(now() + interval '2 days', 0, 1, 'mastodon'))});
	like(rows('boss', q{object = 'table app.toots'}), qr/^error\|table app.toots\|.*\|Give these rows new IDs\. Those of layout mastodon have no shards, so snowflake_renumber\(\) cannot\.\z/,
		"shard $shard: IDs without a shard are no matter for a command");
	as_role('boss', sprintf($ahead, 'app.toots_seq', 'mastodon', 16, 16));
	like(rows('boss', q{object LIKE '%toots_seq'}), qr/^error\|.* IDs of its layout: 1, .*\|Wait until .*, or check again when these rows have new IDs\. .* another shard would generate them again, too\.\z/,
		'... nor for another shard');
}

done_testing();
