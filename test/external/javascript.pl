# The programs of test/clients/javascript/, with the versions of npm's packages and of
# Node.js in package.json, whose rows of doc/clients.md are held against what ran.
#
# Packages: nodejs npm

use ClientTest;
use SnowflakeTest;

# The packages are installed beside a copy of the programs.
my $directory = PostgreSQL::Test::Utils::tempdir();
system("cp '$clients'/javascript/* '$directory'") == 0 or die 'could not copy the programs';
chdir $directory or die "chdir: $!";
# What they need in turn is that of a day, which is no older than the versions in package.json.
my $day = '2026-11-27';
my $output = `npm install --before=$day --no-package-lock --ignore-scripts --no-audit --no-fund 2>&1`;
plan skip_all => "npm's packages cannot be had: $1"
  if $? && $output =~ /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT)\b/;
die "npm install: $output" if $?;
my ($nodejs) = glob 'node_modules/node-linux-*/bin/node' or plan skip_all => 'npm has no Node.js for this machine';

my $node = start_server();
my $one = q{FROM photos WHERE title = 'one'};
my $rounded = "SELECT id::float8::bigint $one AND id::float8::bigint <> id";

sub test_javascript
{
	my ($name, %facts) = @_;
	# Drivers have the document's tables, and the others make their own.
	my @tables = $name =~ /pg|postgres/ ? () : (tables => '');

	test_client($name, [ $nodejs, "$name.mjs" ], @tables,
		facts => \%facts,
		prepared => $name =~ /postgres_js|pg_promise/);
	return;
}

test_javascript('node_postgres',
	json => $rounded,
	json_of_cast => "SELECT id $one",
	# What was deleted by the ID that a Number makes of 4020418040280650772
	mistaken => '4020418040280651000',
	binary => 'string false');
test_javascript('postgres_js', with_types => "SELECT 'bigint', 'bigint', id $one");
test_javascript('pg_promise');
test_javascript('databases_pg', by_default => "SELECT 'number', id::float8::bigint $one AND id::float8::bigint <> id");
test_javascript('kysely',
	json => "SELECT id::float8::bigint, id::float8::bigint $one AND id::float8::bigint <> id",
	json_of_cast => "SELECT id $one");
test_javascript('knex',
	model => q{SELECT id FROM photos WHERE title = 'model'},
	json_schema => "SELECT 'ValidationError', id $one",
	altered => 'null next_id((5)::bigint)');
test_javascript('drizzle',
	push => 'changed same',
	generate => 'changed same',
	sequence_of_generate => 'CREATE SEQUENCE "public"."next_id_seq"',
	with => "SELECT 'bigint', id::float8::bigint $one",
	as_number => $rounded,
	pulled => 'id: bigint({ mode: "number" }) id: unknown("id")',
	push_without_sequence => 'failed DROP SEQUENCE "public"."next_id_seq";',
	'push_of_next_id(5)' => 'changed changed');
test_javascript('typeorm',
	differences => 0,
	columns_dropped => 1,
	'differences_of_next_id(5)' => '1 1');
test_javascript('sequelize',
	without_default => '23502',
	with_autoincrement => q{SELECT id FROM photos WHERE title = 'auto'});
test_javascript('mikro_orm',
	differences => 0,
	ids_of_insertMany => 1,
	'differences_of_next_id()' => 0,
	'differences_of_next_id(5)' => 2,
	bigserials => 1);
test_javascript('prisma', hours_off => '9 -9');

# Prisma's migrations of a serial key
my %moved = run_client('prisma_migrate', '', $nodejs, 'prisma_migrate.mjs');
is($moved{generated_for_autoincrement}, '42704',
	'prisma_migrate: what it generates for BigInt and autoincrement() fails');
is($moved{generated_for_next_id}, '"userId" SET DATA TYPE BIGINT "id" SET DATA TYPE BIGINT',
	'prisma_migrate: what it generates for BigInt and next_id() rewrites the tables');
is($moved{widened}, 'empty migration', 'prisma_migrate: after the widening, it finds no difference');
is($moved{shadow_without_shard}, '"snowflake.shard" is not set', 'prisma_migrate: the shadow database needs a shard');
is($moved{dev}, 'Already in sync', 'prisma_migrate: after the move, it finds no difference');
is(sql('prisma_migrate', 'SELECT max("userId") FROM "Post"'), $moved{moved},
	'prisma_migrate: a referring column is widened');
is(sql('prisma_migrate', "SELECT snowflake_shard($moved{moved})"), 5, 'prisma_migrate: a new key is an ID');
is($moved{returned_to_autoincrement}, '23505', 'prisma_migrate: with autoincrement(), the key returns to 1');

# the document's program, which makes a row, prints it as JSON, and finds it again
my ($program) = map { $_->{code} } grep { $_->{language} eq 'js' } blocks($document);
append_to_file('printed.mjs', $program // die "$document has no program");
my $table = 'CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5), title text)';
my $printed = join '', run_client('printed', $table, $nodejs, 'printed.mjs');
my $id = sql('printed', q{SELECT id FROM photos WHERE title = 'sunset'});
is($printed =~ s/ //gr, qq({"id":"$id","title":"sunset"}sunset),
	"the program of $document sends the ID as text, and finds the row by it");

check_rows('From npm', 0);
$node->stop;
chdir '/';
done_testing();
