# COPY calls snowflake_next_id_in_copy() of the library and no function that only has
# its name, also if that is a member of the extension.  The extension is trusted, so a
# role that is no superuser may have created it, and may then add functions to it.

use SnowflakeTest;

my $node = server_in_utc('namesake');

sub as { my ($role, $database, $sql) = @_; return $node->safe_psql($database, $sql, extra_params => [ '-U', $role ]) }

# A function of the name that an ordinary role adds to its extension
sub add_namesake
{
	my ($database, $arguments, $body) = @_;
	my $types = $arguments =~ s/\w+ (\w+)/$1/gr;

	as('mallory', $database, qq{
		CREATE FUNCTION ids.snowflake_next_id_in_copy($arguments) RETURNS bigint LANGUAGE plpgsql AS \$\$ $body \$\$;
		ALTER EXTENSION snowflake ADD FUNCTION ids.snowflake_next_id_in_copy($types)});
}

# COPY two rows into a table, and return the shards of their IDs.
sub shards_of_copied
{
	my ($role, $database, $table) = @_;
	as($role, $database, "COPY $table (t) FROM STDIN;\na\nb\n\\.\n");
	return as($role, $database, "SELECT string_agg(ids.snowflake_shard(id)::text, ' ') FROM $table");
}

$node->sql(q{CREATE ROLE mallory LOGIN; CREATE ROLE victim LOGIN});

# It may create in the database, and is the first to create the extension.
$node->sql(q{CREATE DATABASE app});
$node->sql(q{GRANT CREATE ON DATABASE app TO mallory});
as('mallory', 'app', q{CREATE SCHEMA ids; GRANT USAGE ON SCHEMA ids TO PUBLIC; CREATE EXTENSION snowflake SCHEMA ids});
as('postgres', 'app', q{CREATE TABLE photos (id bigint DEFAULT ids.next_id(5), t text)});
add_namesake('app', 'a regrole, replaced oid, shard bigint, sequence oid, layout bigint', q{
	BEGIN
		IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
			ALTER ROLE mallory SUPERUSER;
		END IF;
		RETURN 42;
	END});
is(shards_of_copied('postgres', 'app', 'photos'), '5 5', "a superuser's COPY calls no namesake");
is($node->sql(q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 'f', "... and gives its rights to nobody");
$node->sql(q{ALTER ROLE mallory NOSUPERUSER});

# It owns the database, in which others have tables.
$node->sql(q{CREATE DATABASE shared OWNER mallory});
as('mallory', 'shared', q{
	CREATE SCHEMA ids;
	GRANT USAGE ON SCHEMA ids TO PUBLIC;
	CREATE EXTENSION snowflake SCHEMA ids;
	CREATE TABLE ids.called (by name);
	GRANT INSERT ON ids.called TO PUBLIC;
	CREATE SCHEMA of_victim AUTHORIZATION CURRENT_USER;
	GRANT ALL ON SCHEMA of_victim TO victim});
as('victim', 'shared', q{CREATE TABLE of_victim.docs (id bigint DEFAULT ids.next_id(6), t text)});
add_namesake('shared', 'a regrole, replaced oid, shard bigint, sequence regclass, layout ids.snowflake_layout', q{
	BEGIN INSERT INTO ids.called VALUES (current_user); RETURN 43; END});
is(shards_of_copied('victim', 'shared', 'of_victim.docs'), '6 6', "an ordinary role's COPY calls no namesake");
is(as('postgres', 'shared', 'SELECT count(*) FROM ids.called'), '0', '... with its rights');

# Values of one type, read as those of another, would be addresses.
$node->sql(q{CREATE DATABASE crash OWNER mallory});
as('mallory', 'crash', q{
	CREATE SCHEMA ids;
	CREATE EXTENSION snowflake SCHEMA ids;
	CREATE TABLE photos (id bigint DEFAULT ids.next_id(7), t text)});
add_namesake('crash', 'a jsonb, replaced text, shard text, sequence oid, layout bigint',
	q{BEGIN RETURN length(replaced || shard); END});
my ($status) = $node->psql('crash', "COPY photos (t) FROM STDIN;\na\nb\n\\.\n", extra_params => [ '-U', 'mallory' ]);
is($status, 0, 'a namesake with other types is not called');
ok(!$node->log_contains('was terminated by signal'), '... and the server has not crashed');
is($status == 0 ? as('mallory', 'crash', q{SELECT string_agg(ids.snowflake_shard(id)::text, ' ') FROM photos}) : 'crash',
	'7 7', '... and the rows have IDs');

done_testing();
