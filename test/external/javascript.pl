# The clients of npm's packages: the programs of test/clients/javascript/, whose rows
# of doc/clients.md are held against what ran.  Their versions, and that of
# Node.js, are those of package.json.
#
# Packages: nodejs npm

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use ClientTest;

# The packages are installed beside a copy of the programs.
my $directory = PostgreSQL::Test::Utils::tempdir();
system("cp '$clients'/javascript/* '$directory'") == 0 or die 'could not copy the programs';
chdir $directory or die "chdir: $!";
my $output = `npm install --no-package-lock --ignore-scripts --no-audit --no-fund 2>&1`;
plan skip_all => "npm's packages cannot be had: $1" if $? && $output =~ /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT)\b/;
die "npm install: $output" if $?;
my ($nodejs) = glob 'node_modules/node-linux-*/bin/node' or plan skip_all => 'npm has no Node.js for this machine';

start_server();
my %said;

# A client that makes its own tables.
sub test_own
{
	my ($name) = @_;

	prepare($name, 'own');
	my %said = test_client($name, $nodejs, "$name.mjs");
	is($said{relation}, $said{pair}, "$name: a parent read with its child");
	return %said;
}

# An ID as JavaScript's numbers round it.
sub rounded
{
	my ($name, $title) = @_;

	return sql($name, "SELECT id::float8::bigint FROM photos WHERE title = '$title'");
}

# Hold the rows that a program found, updated and deleted by a rounded ID against
# the row that it meant: they are another row, whose ID is the same Number.
sub check_mistaken
{
	my ($name, $ids) = @_;
	my ($meant, @hit) = split / /, $ids // '';
	my $other = sql($name, "SELECT id FROM photos WHERE id <> '$meant' AND id::float8 = '$meant'::float8 AND id = '" . ($hit[0] // 0) . q{'});

	like($other, qr/^\d{19}$/, "$name: a rounded ID is another row's ID");
	is("@hit", "$other $other $other", "$name: it finds, updates and deletes that row");
	return;
}

%said = test_client('node_postgres', $nodejs, 'node_postgres.mjs');
is($said{received}, $said{one}, 'node_postgres: a row in JSON has the ID');
isnt($said{rounded}, $said{one}, 'node_postgres: a number in JSON is rounded');
is($said{rounded}, rounded('node_postgres', 'first'), 'node_postgres: to the next double');
is($said{text}, $said{one}, 'node_postgres: text in JSON is not rounded');
is($said{short}, sql('node_postgres', "SELECT snowflake_to_text(id) FROM photos WHERE title = 'first'"),
	'node_postgres: base62 in JSON is not rounded');
is($said{note}, 'number true ' . sql('node_postgres', 'SELECT id FROM notes'),
	"node_postgres: an ID of layout 'javascript' fits into a number");
check_mistaken('node_postgres', $said{mistaken});
is($said{binary}, 'string false', 'node_postgres: binary: true reads another ID');

run_printed('js', 'printed.mjs', $nodejs);

%said = test_client('postgres_js', $nodejs, 'postgres_js.mjs');
is($said{bigint}, "bigint $said{one}", 'postgres_js: types can make a BigInt of an ID');
is($said{snowflake_as_bigint}, 'bigint', 'postgres_js: also of a snowflake');
is($said{rounded}, rounded('postgres_js', 'first'), 'postgres_js: a number in JSON is rounded');
isnt($said{rounded}, $said{one}, 'postgres_js: to another ID');
check_mistaken('postgres_js', $said{mistaken});

%said = test_own('kysely');
is($said{rounded}, rounded('kysely', 'cover'), 'kysely: jsonArrayFrom() rounds a bigint');
isnt($said{rounded}, $said{pair} =~ s/.* //r, 'kysely: to another ID');

%said = test_own('knex');
is($said{joined}, $said{pair} =~ s/.* //r, 'knex: a child that Objection joined');
is($said{json_schema}, "ValidationError $said{one}", 'knex: a jsonSchema of Objection takes an ID as a string, and refuses it as an integer');
is($said{altered}, 'null', 'knex: alter() drops the default');
is($said{altered_with_default}, 'next_id((5)::bigint)', 'knex: alter() keeps the default that it repeats');

%said = test_own('drizzle');
is($said{push}, 'changed same', 'drizzle: push finds nothing more to change if the model has the sequence of the extension');
is($said{push_without_sequence}, 'failed DROP SEQUENCE "public"."next_id_seq";',
	'drizzle: otherwise push tries to drop the sequence, and nothing else that belongs to the extension');
is($said{generate}, 'changed same', 'drizzle: generate finds no difference');
is($said{migration}, 'CREATE SEQUENCE "public"."next_id_seq"', 'drizzle: but makes the sequence of the extension if the model has it');
is($said{with}, join(' ', $said{pair} =~ s/ .*//r, 'bigint', rounded('drizzle', 'cover')),
	'drizzle: a child read by "with" has a rounded ID if it is a bigint');
is($said{with_snowflake}, $said{pair} =~ s/ .*//r, 'drizzle: but not if it is a snowflake');
is($said{number}, rounded('drizzle', 'cover'), "drizzle: mode 'number' rounds IDs");
check_mistaken('drizzle', $said{mistaken});
is($said{pulled}, 'id: bigint({ mode: "number" }) id: bigint({ mode: "number" }) id: unknown("id")',
	"drizzle: pull writes mode 'number' for a bigint, and code that fails for a snowflake");
is($said{push_if_short}, 'changed changed', 'drizzle: push sets a default in another form each time');
is($said{push_if_setting}, 'changed same', 'drizzle: push sets next_id() once');

%said = test_own('typeorm');
is($said{drift}, 0, 'typeorm: synchronize finds no difference');
is($said{unknown_type}, 'DataTypeNotSupportedError', 'typeorm: an entity cannot have the type snowflake');
is($said{tags_lost}, 1, 'typeorm: synchronize would drop a column of this type if the entity has a bigint');
is($said{drift_if_short}, '1 2', 'typeorm: next_id(5) remains a difference, which drops the foreign key');
is($said{drift_if_stored}, '1 2', 'typeorm: the stored form remains a difference');
is($said{drift_if_setting}, '0 0', 'typeorm: next_id() is none');
is($said{generated}, "none nextval('photos_id_seq'::regclass)", 'typeorm: a generated key drops the default, and then has another');

%said = test_own('sequelize');
is($said{altered}, '2 0', 'sequelize: sync with alter makes the foreign key again, and leaves the default');
is($said{without_default}, '23502', 'sequelize: NULL is sent for a key without defaultValue');
like($said{left_to_default}, qr/^\d{19}$/, 'sequelize: autoIncrement leaves the key to an existing default');

%said = test_own('mikro_orm');
is($said{drift}, 0, 'mikro_orm: the update of the schema finds no difference, and drops nothing of the extension');
is("$said{drift_if_short} $said{drift_if_setting}", '3 0', 'mikro_orm: next_id(5) remains a difference, next_id() does not');
is($said{serial}, 2, 'mikro_orm: defaultRaw alone makes a bigserial');
is($said{insert_many}, 1, 'mikro_orm: insertMany() of two plain rows returns one ID');

%said = test_own('prisma');
is($said{drift}, 0, 'prisma: the schema engine finds no difference');
is("$said{drift_if_short} $said{drift_if_setting}", '3 3 3 0', 'prisma: next_id(5) remains a difference, next_id() does not');
is($said{joined}, $said{pair} =~ s/.* //r, 'prisma: a child that was joined');
is($said{pushed}, 'bigint', 'prisma: the schema engine makes a bigint of a snowflake');
is($said{json}, "TypeError $said{one}", 'prisma: JSON.stringify() needs to be told how to write a BigInt');
check_mistaken('prisma', $said{mistaken});
is("$said{interval} $said{interval_cast}", '42883 done', 'prisma: an interval needs a cast');
is($said{hours_off}, '9 -9', 'prisma: times are off if the session is not in UTC');

check_rows('From npm', 'version');
stop_server();
chdir '/';
done_testing();
