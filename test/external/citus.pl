# Citus 13: a coordinator and two workers, written to through all three by the recipes of
# doc/scaling.md.  Citus is not in Debian.  If it is installed below another directory, as
# by "make install DESTDIR=/opt/citus", run
# EXTENSIONS=/opt/citus script/test test/external/citus.pl

use SnowflakeTest;

my @names = ('coordinator', 'worker1', 'worker2');
my %node = map { $_ => PostgreSQL::Test::Cluster->new($_) } @names;

plan skip_all => 'Citus is not installed, and not in Debian: see the head of this test' unless get_extension('citus');

sub on { return $node{ shift() }->sql(@_) }

foreach my $name (@names)
{
	$node{$name}->init;
	$node{$name}->append_conf('postgresql.conf', <<EOC);
shared_preload_libraries = 'citus'
citus.enable_statistics_collection = off
citus.local_hostname = '@{[ $node{$name}->host ]}'
citus.shard_count = 4
wal_level = logical
max_wal_senders = 10
max_connections = 100
max_prepared_transactions = 100
EOC
	$node{$name}->start;
	on($name, 'CREATE EXTENSION citus');
	# From 15.19 and 17.11 on, PostgreSQL asks for that when a shard is split.
	my $plugins = on($name, q{SELECT setting FROM pg_settings WHERE name = 'output_plugin_libraries'});
	$node{$name}->append_conf('postgresql.conf', "output_plugin_libraries = '$plugins, citus'") if $plugins ne '';
	$node{$name}->reload;
}
on('coordinator', sprintf q{SELECT citus_set_coordinator_host('%s', %d)},
	$node{coordinator}->host, $node{coordinator}->port);
on('coordinator', sprintf q{SELECT citus_add_node('%s', %d)}, $node{$_}->host, $node{$_}->port)
  for 'worker1', 'worker2';

# The document's blocks in their order
my @blocks = grep { $_->{section} eq 'Citus' } blocks('doc/scaling.md');
foreach my $block (@blocks)
{
	my ($on) = $block->{code} =~ /^-- on ([\w, ]+), as \w+ \w+\n/ or die "where to run this?\n$block->{code}";
	run_examples($node{$_}, 'postgres', $block) for split /, /, $on;
}
my $watch = $blocks[-1]{code};
my %shard = map { $_ => on($_, 'SHOW snowflake.shard') } @names;
is(join(' ', map { $shard{$_} } @names), '0 1 2', 'each node has the number of its group');

# Statements inside a COPY, which Citus plans like any others
on('coordinator', q{
	CREATE TABLE kinds (id bigint PRIMARY KEY DEFAULT next_id(), kind text);
	SELECT create_reference_table('kinds');
	CREATE SCHEMA tenant;
	SELECT citus_schema_distribute('tenant');
	CREATE TABLE tenant.photos (id bigint PRIMARY KEY DEFAULT next_id(), title text)});
foreach my $name (@names)
{
	on($name, q{
		SET citus.enable_ddl_propagation = off;
		CREATE TABLE visits (user_id bigint);
		CREATE FUNCTION insert_photo(who bigint) RETURNS integer LANGUAGE plpgsql AS $$
		DECLARE shard integer;
		BEGIN
			INSERT INTO photos (user_id, title) VALUES (who, 'in COPY') RETURNING snowflake_shard(id) INTO shard;
			RETURN shard;
		END $$;
		CREATE FUNCTION log_visit() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM insert_photo(NEW.user_id); RETURN NEW; END $$;
		CREATE TRIGGER log_visit AFTER INSERT ON visits FOR EACH ROW EXECUTE FUNCTION log_visit()});
	is(on($name, $_), $shard{$name}, "the ID has the shard of $name: $_")
	  foreach q{COPY (INSERT INTO photos (user_id, title) VALUES (1, 'x') RETURNING snowflake_shard(id)) TO STDOUT},
	  q{COPY (INSERT INTO kinds (kind) VALUES ('x') RETURNING snowflake_shard(id)) TO STDOUT},
	  q{COPY (INSERT INTO tenant.photos (title) VALUES ('x') RETURNING snowflake_shard(id)) TO STDOUT},
	  q{COPY (SELECT insert_photo(1)) TO STDOUT};
	on($name, "COPY visits FROM STDIN;\n2\n2\n\\.\n");
	is(on($name, "SELECT count(DISTINCT id) FROM photos WHERE user_id = 2 AND snowflake_shard(id) = $shard{$name}"), 2,
		"a trigger of COPY FROM inserts two rows from $name");
}

# Who makes the IDs of a statement: the numbers that are in them
my $distributed = q{SELECT user_id, 'selected' FROM photos WHERE title = 'source'};
foreach my $name (@names)
{
	foreach my $case (
		[ q{INSERT INTO photos (user_id, title) VALUES (1, 'row')}, $shard{$name} ],
		[ q{INSERT INTO photos (user_id, title) SELECT n, 'series' FROM generate_series(1, 100) n}, $shard{$name} ],
		[ "COPY photos (user_id, title) FROM STDIN;\n1\tcopied\n2\tcopied\n3\tcopied\n\\.\n", $shard{$name} ],
		[ "INSERT INTO photos (user_id, title) $distributed", '1 2' ],
		[ "INSERT INTO photos (user_id, title) $distributed ORDER BY user_id LIMIT 50", '1 2' ],
		[ "SET citus.enable_repartitioned_insert_select = off;
			INSERT INTO photos (user_id, title) $distributed", '1 2' ])
	{
		my ($sql, $shards) = @$case;

		on('coordinator', q{
			TRUNCATE photos;
			INSERT INTO photos (user_id, title) SELECT n, 'source' FROM generate_series(1, 100) n});
		on($name, $sql);
		is(on($name, 'SELECT count(*) - count(DISTINCT id) FROM photos'), 0, "no ID comes twice on $name from: $sql");
		is(on($name, q{SELECT string_agg(shard::text, ' ' ORDER BY shard) FROM
				(SELECT DISTINCT snowflake_shard(id) AS shard FROM photos WHERE title <> 'source') s}),
			$shards, '... whose IDs have the shards of the nodes that evaluate the default');
	}
}
like(sqlstate_of($node{coordinator}, 'UPDATE photos SET id = next_id()'), qr/must not be VOLATILE/,
	'an UPDATE with next_id() is refused');
like(sqlstate_of($node{coordinator}, q{MERGE INTO photos USING (SELECT 1 AS who) AS s ON user_id = who AND title = 'merged'
		WHEN NOT MATCHED THEN INSERT (id, user_id, title) VALUES (next_id(), who, 'merged')}), qr/non-IMMUTABLE functions/,
	'... and a MERGE');

# Commands of snowflake_admin
on('coordinator', 'CREATE EXTENSION snowflake_admin');
is(on('coordinator', q{SELECT * FROM snowflake_admin.as_owner('photos',
		'SELECT count(*) FROM photos WHERE id IS NULL') AS f (count bigint)}),
	0, 'what runs as the owner of a distributed table needs no parameters');
on('coordinator', q{
	CREATE TABLE moved (id bigserial, user_id bigint, PRIMARY KEY (id, user_id));
	SELECT create_distributed_table('moved', 'user_id');
	CREATE TABLE by_id (id bigserial PRIMARY KEY);
	SELECT create_distributed_table('by_id', 'id');
	CREATE TABLE identities (id bigint GENERATED ALWAYS AS IDENTITY, user_id bigint, PRIMARY KEY (id, user_id));
	SELECT create_distributed_table('identities', 'user_id');
	CREATE TABLE narrow (id serial, user_id bigint, PRIMARY KEY (id, user_id));
	SELECT create_distributed_table('narrow', 'user_id');
	CREATE TABLE logs (id bigint DEFAULT next_id(), user_id bigint, PRIMARY KEY (id, user_id)) PARTITION BY RANGE (id);
	SELECT create_distributed_table('logs', 'user_id')});
is(on('coordinator', q{SELECT string_agg(concat_ws(' ', tab, obstacle), '; ' ORDER BY tab::text) FROM snowflake_keys()
		WHERE made_by <> 'next_id'}),
	join('; ', 'by_id Citus distributes the rows by it', 'identities Citus does not drop its identity',
		'moved', 'narrow public.narrow.id is integer'),
	'keys of distributed tables, with what keeps them from moving, and none of catalogs');

foreach my $case ([ widen => q{'narrow', 'id'} ], [ renumber => q{'photos', 0, 9} ], [ partition => q{'photos', 'day'} ],
	[ move_back => q{'photos'} ])
{
	my ($name, $arguments) = @$case;
	fails_with($node{coordinator}, "CALL snowflake_$name($arguments, dry_run => $_)",
		qr/^55000 cannot call snowflake_$name\(\) for table public.\w+ of Citus/,
		"snowflake_$name() refuses a distributed table, with dry_run => $_") foreach 'true', 'false';
}
fails_with($node{coordinator}, "CALL snowflake_move('$_', dry_run => true)", qr/^55000 cannot move column id of table public.$_ /,
	"snowflake_move() refuses the table $_") foreach 'by_id', 'identities';
fails_with($node{coordinator}, q{CALL snowflake_move('moved', own_sequence => true, dry_run => true)},
	qr/^55000 table public.moved of Citus cannot have its own sequence/, 'and a sequence for one table');

on('coordinator', q{CALL snowflake_move('moved')});
on('coordinator', q{CALL snowflake_make_partitions('logs', unit => 'day')});
foreach my $name (@names)
{
	is(on($name, "INSERT INTO $_ (user_id) VALUES (1) RETURNING snowflake_shard(id)"), $shard{$name},
		"$name inserts into $_ with its shard") foreach 'moved', 'logs';
}
on('coordinator', q{
	CREATE TABLE logs_old PARTITION OF logs
		FOR VALUES FROM (snowflake_min_id('2026-11-01Z')) TO (snowflake_min_id('2026-11-02Z'));
	INSERT INTO logs (id, user_id) SELECT snowflake_id('2026-11-01 12:00Z', 0, n), n FROM generate_series(1, 10) n;
	CALL snowflake_drop_partitions('logs', '1 day')});
is(on('coordinator', 'SELECT count(*) FROM logs'), 3, 'snowflake_drop_partitions() drops the old one alone');

# The hint
on('coordinator', q{
	SELECT undistribute_table('by_id');
	CALL snowflake_move('by_id');
	SELECT create_distributed_table('by_id', 'id');
	CREATE TABLE twice AS SELECT * FROM photos;
	ALTER TABLE twice ADD PRIMARY KEY (id, user_id), ALTER id SET DEFAULT next_id();
	SELECT create_distributed_table('twice', 'user_id');
	SELECT undistribute_table('twice');
	CALL snowflake_renumber('twice', 0, 9);
	CALL snowflake_partition('twice', 'day');
	SELECT create_distributed_table('twice', 'user_id')});
is(on('worker1', 'INSERT INTO by_id DEFAULT VALUES RETURNING snowflake_shard(id)'), $shard{worker1},
	'after undistribute_table(), a key moves by which rows are distributed');
is(on('worker1', 'SELECT count(*), count(*) FILTER (WHERE snowflake_shard(id) = 0) FROM twice'),
	on('worker1', 'SELECT count(*), 0 FROM photos'), '... a table is renumbered, and becomes a partition');

# Load through three nodes, while shards move to one worker, are rebalanced, and are split
on('coordinator', q{
	CREATE TABLE loaded (id bigint DEFAULT next_id(), user_id bigint, PRIMARY KEY (id, user_id));
	SELECT create_distributed_table('loaded', 'user_id', colocate_with => 'none')});
my $counts = q{SELECT count(*) FROM citus_shards WHERE table_name = 'loaded'::regclass GROUP BY nodeport};
my @loads = map { start_load($node{$_}->connstr('postgres'), q{
	\set who random(1, 1000)
	INSERT INTO loaded (user_id) VALUES (:who);
}) } @names;
on('coordinator', "SELECT citus_move_shard_placement($_, s.nodename, s.nodeport, n.nodename, n.nodeport, 'force_logical')
	FROM citus_shards AS s JOIN pg_dist_node AS n ON n.groupid = 1 WHERE s.shardid = $_")
  foreach split /\n/, on('coordinator', q{SELECT shardid FROM citus_shards JOIN pg_dist_node USING (nodename, nodeport)
	WHERE table_name = 'loaded'::regclass AND groupid = 2});
is(on('coordinator', $counts), '4', 'one worker has all shards');
on('coordinator', q{SELECT rebalance_table_shards('loaded', shard_transfer_mode => 'force_logical')});
is(on('coordinator', $counts), "2\n2", 'each worker has half of them');
on('coordinator', q{SELECT isolate_tenant_to_new_shard('loaded', 7, shard_transfer_mode => 'force_logical')});
on('coordinator', q{
	SELECT citus_split_shard_by_split_points(shardid, ARRAY[((shardminvalue::bigint + shardmaxvalue::bigint) / 2)::text],
		(SELECT array_agg(nodeid::integer) FROM pg_dist_node WHERE groupid <> 0), 'force_logical')
	FROM pg_dist_shard WHERE shardid = get_shard_id_for_distribution_column('loaded', 8)});
is(on('coordinator', q{SELECT count(*) FROM citus_shards WHERE table_name = 'loaded'::regclass}), 7,
	'a tenant has its own shard, and another shard is split');
end_load($loads[$_], "load through $names[$_]") foreach 0 .. $#names;
note(on('coordinator', 'SELECT count(*) FROM loaded'), ' rows were inserted meanwhile');
is(on('coordinator', 'SELECT count(*) - count(DISTINCT id) FROM loaded'), 0, 'no ID comes twice');
is(on('coordinator', 'SELECT count(DISTINCT snowflake_shard(id)) FROM loaded'), 3, '... from three nodes');

# What the document warns of
my $open = session($node{coordinator});
$open->query_safe("BEGIN; INSERT INTO photos (user_id, title) $distributed");
fails_with($node{$_}, 'SELECT snowflake_settled_id()', qr/^55000 cannot tell which IDs are settled where Citus/,
	"no bound of settled IDs on $_, while a transaction has IDs of the workers") for @names;
$open->query_safe('COMMIT');
$open->quit;
foreach my $name (@names)
{
	$node{$name}->append_conf('postgresql.conf', "citus.enable_change_data_capture = on\n");
	$node{$name}->reload;
	$node{$name}->poll_query_until('postgres', q{SELECT current_setting('citus.enable_change_data_capture')}, 'on');
}
on('coordinator', 'CREATE PUBLICATION new_photos FOR TABLE photos');
on($_, q{SELECT pg_create_logical_replication_slot('new_photos', 'pgoutput')}) for @names;
my @inserted = map { split /\n/, on($_, q{
	INSERT INTO photos (user_id, title) SELECT n, 'new' FROM generate_series(1, 20) n RETURNING id}) } @names;
my @decoded = map { on($_, q{
	SELECT encode(data, 'escape') FROM pg_logical_slot_get_binary_changes('new_photos', NULL, NULL,
		'proto_version', '1', 'publication_names', 'new_photos')}) =~ /^I.*?(\d{19})/mg } @names;
is("@{[ sort @decoded ]}", "@{[ sort @inserted ]}", 'logical decoding on each node returns each new row once');
on('coordinator', q{
	CREATE SEQUENCE own_seq MAXVALUE 1125899906841599;
	CREATE TABLE own (id bigint DEFAULT next_id(5, 'own_seq'), user_id bigint);
	SELECT create_distributed_table('own', 'user_id')});
like(sqlstate_of($node{worker1}, 'INSERT INTO own (user_id) VALUES (1)'), qr/^55000 sequence "own_seq" serves no/,
	'a worker refuses an INSERT whose default names another sequence');
on('coordinator', q{
	CREATE TABLE five (id bigint DEFAULT next_id(5), user_id bigint);
	SELECT create_distributed_table('five', 'user_id')});
my $ahead = on('worker1', q{SELECT (snowflake_min_id(now() + interval '1 minute') >> 23) * 1024});
on($_, qq{SET snowflake.max_lead = '1h'; SELECT setval('next_id_seq', $ahead) \\g /dev/null
	INSERT INTO five (user_id) VALUES (1)}) for 'worker1', 'worker2';
is(on('coordinator', 'SELECT count(*), count(DISTINCT id) FROM five'), '2|1',
	'a constant shard for all nodes makes the same ID twice (as documented)');
on('worker2', 'SELECT snowflake_shard(1)');
$node{worker2}->append_conf('postgresql.auto.conf', "snowflake.shard = 1\n");
$node{worker2}->reload;
ok($node{coordinator}->poll_query_until('postgres', $watch, '1|2'), 'two nodes with the same number are listed');
on('coordinator', 'ALTER DATABASE postgres SET snowflake.shard = 7');
is(on('coordinator', $watch), '7|3', 'ALTER DATABASE gives all nodes the same number');

# IDs ahead of the clock, which may be in shards
on('coordinator', setval_ahead('next_id_seq', '1 hour'));
like(on('coordinator', 'SELECT object, problem FROM snowflake_check()'), qr/^table public.photos\|.*Citus keeps its rows in shards/m,
	'snowflake_check() says that it does not see the rows');
fails_with($node{coordinator}, q{CALL snowflake_set_back('next_id_seq')},
	qr/^55000 cannot look for future-dated IDs in public.*Citus/, 'snowflake_set_back() refuses while rows could have them');

$node{$_}->stop for @names;
done_testing();
