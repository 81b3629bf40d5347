# Moves from the portable version to the extension and back, by the recipe of
# doc/portable.md, while clients make IDs and insert rows.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use LedgerTest;
use PortableTest;
use SnowflakeTest;

# where the document's commands find the file
chdir "$top" or die "chdir: $!";
my $dir = PostgreSQL::Test::Utils::tempdir;
my @sequences = ('next_id_seq', 'albums_id_seq');
my $node = server_in_utc('portable');
new_portable_database($node, 'moving');

# The sequences are ahead of the clock, which would hide that one went back.
$node->safe_psql('postgres', q{CREATE ROLE app_user; ALTER DATABASE moving SET snowflake.max_lead = '10d'});
$node->safe_psql('moving', 'CREATE SEQUENCE albums_id_seq MAXVALUE 1125899906841599;'
	  . join(';', map { setval_ahead($_, '1 day') } @sequences) . q{;
	CREATE TABLE photos (id snowflake PRIMARY KEY DEFAULT next_id(5), n serial);
	CREATE TABLE comments (photo snowflake REFERENCES photos);
	CREATE TABLE events (id bigint DEFAULT next_id(5)) PARTITION BY RANGE (id);
	CREATE TABLE a_partition PARTITION OF events FOR VALUES FROM (0) TO (1);
	CREATE TABLE partition_of_shard_7 PARTITION OF events DEFAULT;
	ALTER TABLE a_partition ALTER id DROP DEFAULT;
	ALTER TABLE partition_of_shard_7 ALTER id SET DEFAULT next_id(7);
	CREATE SCHEMA other;
	CREATE FUNCTION other.server_shard() RETURNS bigint LANGUAGE sql STABLE RETURN 9;
	ALTER DATABASE moving SET search_path = public, other;
	SET search_path = public, other;
	CREATE TABLE users (id bigint DEFAULT next_id(server_shard()));
	CREATE TABLE albums (id bigint PRIMARY KEY DEFAULT next_id(6, 'albums_id_seq'), n serial);
	GRANT INSERT ON photos, albums TO app_user;
	GRANT USAGE ON SEQUENCE photos_n_seq, albums_n_seq TO app_user;
	GRANT USAGE, UPDATE ON SEQUENCE next_id_seq, albums_id_seq TO app_user;} . sql_for_clients());

# Clients of one sequence each: a transaction with both could deadlock with the
# owner's.
my %load = map {
	$_ => start_clients("$dir/$_", $node->connstr('moving'), '--max-lead', 10 * 86_400_000, '--sessions', 3,
		'--sequences', $_) } @sequences;
sub ids_are_made { my ($when) = @_; return ok(!(grep { !more_ids("$dir/$_", 10_000) } @sequences), "IDs are made $when") }

# INSERTs by the role to which the document grants privileges
my $errors;
my $inserts = do {
	local $ENV{PGOPTIONS} = '-c role=app_user';
	append_to_file("$dir/insert.sql", "INSERT INTO photos DEFAULT VALUES;\nINSERT INTO albums DEFAULT VALUES;\n");
	IPC::Run::start([ 'pgbench', '-n', '-c', 4, '-T', 600, '-f', "$dir/insert.sql", $node->connstr('moving') ],
		'>', '/dev/null', '2>', \$errors);
};

# How many of these functions the defaults call, and whether they are in C
my $called = q{SELECT count(DISTINCT refobjid), bool_and(refobjid IN (SELECT oid FROM pg_proc WHERE probin IS NOT NULL))
	FROM pg_depend WHERE classid = 'pg_attrdef'::regclass AND refclassid = 'pg_proc'::regclass
	  AND refobjid <> 'other.server_shard'::regproc};
is($node->safe_psql('moving', $called), '2|f', 'both defaults call the portable version');

my $typed = q{SELECT count(*), min(typtype) FROM pg_attribute JOIN pg_type t ON t.oid = atttypid
	WHERE attrelid IN ('photos'::regclass, 'comments'::regclass) AND typname = 'snowflake'};
my $files = q{SELECT pg_relation_filenode('photos'), pg_relation_filenode('photos_pkey')};
my $files_before = $node->safe_psql('moving', $files);
my ($move) = blocks_in('doc/portable.md', 'Move to the extension, and back');
my %to = (
	'the extension' => { typed => $move, called => '2|t', portable => 'f', privileges => 'USAGE', type => 'b' },
	'the portable version' => { typed => { %$move, code => "\\set back on\n$move->{code}" }, called => '2|f', portable => 't',
		privileges => 'UPDATE USAGE', type => 'd' });
foreach my $version ('the extension', 'the portable version', 'the extension')
{
	my $to = $to{$version};

	ids_are_made("before the move to $version");
	run_examples($node, 'moving', $to->{typed});
	is($node->safe_psql('moving', $called), $to->{called}, "both defaults call $version after the move");
	is($node->safe_psql('moving', q{SELECT count(*) > 0 FROM pg_proc WHERE proname ~ '^next_id'
			AND prolang IN (SELECT oid FROM pg_language WHERE lanname IN ('sql', 'plpgsql'))}),
		$to->{portable}, "the only functions are those of $version after the move");
	is($node->safe_psql('moving', $typed), "2|$to->{type}", "columns of type snowflake have that of $version");
	is($node->safe_psql('moving', q{SELECT attrelid::regclass, pg_get_expr(adbin, adrelid)
			FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
			WHERE attrelid IN ('events'::regclass, 'a_partition'::regclass, 'partition_of_shard_7'::regclass) AND attnum = 1 ORDER BY 1}),
		"events|next_id((5)::bigint)\na_partition|\npartition_of_shard_7|next_id((7)::bigint)",
		"each partition has its own default after the move to $version");
	is($node->safe_psql('moving', 'INSERT INTO users DEFAULT VALUES RETURNING snowflake_shard(id)'), 9,
		"a default calls a function of another schema after the move to $version");
	my $quotes = $version eq 'the extension' ? '"' : '';
	like($node->safe_psql('moving', 'SELECT to_json(photos) FROM photos LIMIT 1'), qr/^\{"id":$quotes\d+$quotes,/,
		'to_json() shows IDs as ' . ($quotes ? 'strings' : 'numbers') . " after the move to $version");
	is($node->safe_psql('moving', $files), $files_before, "the move to $version rewrites neither a table nor an index");
	is($node->safe_psql('moving', q{SELECT string_agg(privilege_type, ' ' ORDER BY privilege_type)
			FROM pg_class, aclexplode(relacl) WHERE oid = 'albums_id_seq'::regclass AND grantee = 'app_user'::regrole}),
		$to->{privileges}, "app_user has the privileges on the sequence that $version needs");
}
ids_are_made('after the last move');

clients_end_without_error($load{$_}, $_) foreach @sequences;
# Calls that had begun before a move may fail.
no_client_received_an_error_except('stop|42P01|42883', 'sequences that move',
	no_client_received_a_bad_id('sequences that move', map { "$dir/$_" } @sequences));
$inserts->signal('TERM');
$inserts->finish;
unlike($errors, qr/error|abort/i, 'no INSERT failed');
is($node->safe_psql('moving', 'SELECT count(*) > 100 FROM photos'), 't', 'many rows were inserted');

# --- tables that are partitioned by a function or by such a column ----------

new_portable_database($node, 'partitioned');
$node->safe_psql('partitioned', q{
	CREATE TABLE by_shard (id bigint NOT NULL DEFAULT next_id(5)) PARTITION BY LIST (snowflake_shard(id));
	CREATE TABLE by_shard_5 PARTITION OF by_shard FOR VALUES IN (5);
	CREATE TABLE by_id (id snowflake PRIMARY KEY DEFAULT next_id(5)) PARTITION BY RANGE (id);
	CREATE TABLE by_id_1 PARTITION OF by_id DEFAULT;
	CREATE TABLE arrays (ids snowflake[]);
	INSERT INTO by_shard SELECT FROM generate_series(1, 10);
	INSERT INTO by_id SELECT FROM generate_series(1, 10);
	INSERT INTO arrays VALUES ('{17}')});
my $rows = 'SELECT count(*), sum(id) FROM by_shard UNION ALL SELECT count(*), sum(id) FROM by_id UNION ALL SELECT count(*), sum(ids[1]) FROM arrays';
my $before = $node->safe_psql('partitioned', $rows);
my ($anew) = map { $_->{code} } blocks_in('doc/uninstall.md', 'Recreate partitioned tables');
my $of_no_own_sequence = $move->{code} =~ s/^.*albums.*\n//gmr;
my $refused = sub {
	my ($why, $what) = @_;
	my (undef, undef, $errors) = $node->psql('partitioned', $of_no_own_sequence, on_error_stop => 0);
	like($errors, $why, "the block names $what that is in its way");
	return is($node->safe_psql('partitioned', $rows), $before, '... and drops no row');
};
$refused->(qr/column "id" because it is part of the partition key of relation "by_id"/, 'a table partitioned by a column of the type');
$node->safe_psql('partitioned', $anew =~ s/\bevents/by_id/gr =~ s/PARTITION BY .*;/PARTITION BY RANGE (id);/r);
$refused->(qr/table by_shard depends on function snowflake_shard/, 'a table partitioned by a function');
$node->safe_psql('partitioned', $anew =~ s/\bevents/by_shard/gr);
$refused->(qr/column ids of table arrays depends on type snowflake\[\]/, 'a column of arrays');
$node->safe_psql('partitioned', 'ALTER TABLE arrays ALTER ids TYPE bigint[]');
foreach my $version ('the extension', 'the portable version')
{
	$node->safe_psql('partitioned', $version eq 'the extension' ? $of_no_own_sequence : "\\set back on\n$of_no_own_sequence");
	is($node->safe_psql('partitioned', $rows), $before, "partitioned tables with another key keep their rows in the move to $version");
	is($node->safe_psql('partitioned', 'INSERT INTO by_id DEFAULT VALUES RETURNING id > 0; INSERT INTO by_shard DEFAULT VALUES RETURNING id > 0;'
		  . 'DELETE FROM by_id WHERE id = (SELECT max(id) FROM by_id); DELETE FROM by_shard WHERE id = (SELECT max(id) FROM by_shard)'),
		"t\nt", '... and their defaults make IDs');
}

$node->stop;
done_testing();
