# Several servers by doc/scaling.md, run from its text while they are written to: their
# rows in one table, the failover of a publisher, the repair of two servers that had one
# shard, the move of a tenant to a server whose clock is behind, a clone that has the shard
# of its original, and a clone of the hub.

use SnowflakeTest;

my $dir = PostgreSQL::Test::Utils::tempdir;
my $document = 'doc/scaling.md';
my %node;

$ENV{PGSERVICEFILE} = "$dir/pg_service.conf";

sub on { return $node{ shift() }->sql(@_) }

# Run a block on the servers that its first line names, as the role that it names, and return what
# the last one prints.  Most blocks of this document show no result.
sub run_block
{
	my ($block) = @_;
	my ($names, $role) = $block->{code} =~ /^-- on ([\w, ]+), as (the owner|a superuser)\n/
	  or die "where to run this, and as whom?\n$block->{code}";
	my $user = $role eq 'the owner' ? 'app_owner' : 'postgres';
	my ($printed, $errors);

	foreach my $name (split /, /, $names)
	{
		ok(IPC::Run::run(
				[ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-U', $user, '-d', $node{$name}->connstr('postgres') ],
				'<', \$block->{code}, '>', \$printed, '2>', \$errors),
			"on $name, as $role: " . ($block->{code} =~ /^(?!--)(.{1,60})/m)[0]) or diag($errors);
	}
	return $printed;
}

sub recipe { run_block($_) foreach blocks_in($document, @_); return }

# Writers of a server, who insert, update and delete rows of tenants
sub start_writers
{
	my ($name, $first, $last) = @_;

	return start_load($node{$name}->connstr('postgres'), <<EOS, '-c', '2', '-R', '50');
\\set tenant random($first, $last)
INSERT INTO photos (tenant, title) VALUES (:tenant, 'new') RETURNING id AS photo \\gset
UPDATE photos SET title = title || '.' WHERE id = :photo;
INSERT INTO photos (tenant, title) SELECT :tenant, 'many' FROM generate_series(1, 5);
DELETE FROM photos WHERE id = (SELECT id FROM photos WHERE tenant = :tenant AND title = 'many' LIMIT 1);
EOS
}

# The hub has every row of the servers as it is there, and nothing else.
sub hub_has_all
{
	my ($what, @names) = @_;
	my $rows = q{SELECT id, tenant, title FROM photos};

	$node{hub}->wait_for_subscription_sync($node{$_}, $_, 'postgres') foreach @names;
	my @there = sort map { split /\n/, on($_, $rows) } @names;
	my @here = sort split /\n/, on('hub', $rows);
	cmp_ok(scalar(@here), '>', 100, "the hub has rows $what");
	is(join("\n", @here), join("\n", @there), "the hub has every row of every server as it is there, $what");
	return;
}

# --- rows of several servers in one table ----------------------------------

foreach my $name ('hub', 's1', 's2', 's3')
{
	my $node = $node{$name} = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf', <<EOC);
autovacuum = off
client_min_messages = warning
max_worker_processes = 16
max_logical_replication_workers = 10
wal_retrieve_retry_interval = 100ms
EOC
	start_with_clock($node, $name eq 's3' ? '+3' : '+0');
	on($name, 'CREATE ROLE app_owner LOGIN; ALTER DATABASE postgres OWNER TO app_owner');
	append_to_file($ENV{PGSERVICEFILE},
		sprintf "[%s]\nhost=%s\nport=%d\ndbname=postgres\n", $name, $node->host, $node->port);
}
recipe('Logical replication into one table');
# Rows go to the hub's column from one of the same type and, in binary form, from bigint.
on('s1', 'ALTER TABLE photos ALTER id TYPE snowflake');
on('hub', 'ALTER TABLE photos ALTER id TYPE snowflake; ALTER SUBSCRIPTION s2 SET (binary = true)');
fails_with($node{s1}, 'CREATE PUBLICATION selected FOR TABLE photos WHERE (id > 17)',
	qr/^0A000 invalid publication WHERE expression/, 'a publication cannot select rows by a column of type snowflake');
on($_, 'SELECT snowflake_set_shard(' . substr($_, 1) . ')') foreach 's1', 's2', 's3';
my @load = map { start_writers($_, 1, 9) } 's1', 's2', 's3';
sleep 2;
end_load($_, 'a server was written to') foreach @load;
hub_has_all('after the load', 's1', 's2', 's3');
is(on('hub', 'SELECT string_agg(DISTINCT snowflake_shard(id)::text, \' \') FROM photos'), '1 2 3',
	'each server generated IDs of its own shard');

# --- a publisher fails over to a standby that lacks its last rows ----------

$node{s3}->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node{s3}, 'base', has_streaming => 1);
start_with_clock($standby, '+3');
$node{s3}->wait_for_catchup($standby, 'replay', $node{s3}->lsn('insert'));
$standby->stop;
on('s3', q{INSERT INTO photos (tenant, title) SELECT 1, 'lost' FROM generate_series(1, 50)});
ok($node{hub}->poll_query_until('postgres', q{SELECT count(*) = 50 FROM photos WHERE title = 'lost'}),
	'the hub has rows that the standby lacks');
my $dead = $node{s3};
crash($dead);
$node{s3} = $standby;
start_with_clock($standby, '+3');
$standby->promote;
write_file($ENV{PGSERVICEFILE}, slurp_file($ENV{PGSERVICEFILE}) =~
	  s/(\[s3\]\n)host=.*\nport=.*/sprintf "%shost=%s\nport=%d", $1, $standby->host, $standby->port/er);
@load = (start_writers('s3', 1, 9));
recipe('After a failover of a publisher');
end_load($_, 'the new primary was written to') foreach @load;
hub_has_all('after the failover', 's1', 's2', 's3');

# --- two servers get one shard, and are repaired ---------------------------

on('s3', 'SELECT snowflake_set_shard(2)');
my $burst = q{INSERT INTO photos (tenant, title) SELECT 1, 'burst' FROM generate_series(1, 2000)};
set_clock($node{s3}, '+0');
ok(wait_for(sub {
	my @sessions = map { IPC::Run::start([ 'psql', '-XqAt', '-d', $node{$_}->connstr('postgres'), '-c', $burst ]) }
	  's2', 's3';
	ends($_, $burst) foreach @sessions;
	my %seen = map { $_ => 1 } split /\n/, on('s2', 'SELECT id FROM photos WHERE snowflake_shard(id) = 2');
	return grep { $seen{$_} } split /\n/, on('s3', 'SELECT id FROM photos WHERE snowflake_shard(id) = 2') }),
	'two servers with one shard make equal IDs');
my $conflict = qr/duplicate\ key\ value\ violates\ unique\ constraint\ "photos_pkey"
	|conflict\ detected\ on\ relation\ "public\.photos":\ conflict=insert_exists/x;
ok(wait_for(sub { slurp_file($node{hub}->logfile) =~ $conflict }),
	'equal IDs stop a subscription');
set_clock($node{s3}, '+3');
my ($see, $assign, $renumber, $own_rows, $again) = blocks_in($document, 'Two servers had one shard');
like(run_block($see), qr/^2$/m, 'the recipe shows the shard that two servers have used');
my $old = start_writers('s3', 1, 9);
@load = (start_writers('s2', 1, 9));
ok($node{s3}->poll_query_until('postgres',
	q{SELECT count(*) = 2 FROM pg_stat_activity WHERE query LIKE '% photos %' AND pid <> pg_backend_pid()}),
	'two sessions have the old shard');
run_block($assign);
ends($old->{run}, 'writers with the old shard');
push @load, start_writers('s3', 1, 9);
run_block($renumber);
is(on('s3', 'SELECT count(*) FROM photos WHERE snowflake_shard(id) = 2'), 0, 'no row keeps an ID of the shard');
run_block($again);
end_load($_, 'the servers were written to during the repair') foreach @load;
hub_has_all('after the repair', 's1', 's2', 's3');

# --- a tenant moves --------------------------------------------------------

on('s3', q{INSERT INTO photos (tenant, title) SELECT 42, 'old' FROM generate_series(1, 1000)});
my $tenant = start_writers('s3', 42, 42);
@load = (start_writers('s3', 1, 9), start_writers('s1', 1, 9));

my ($publish, $delete, $subscribe, $reject, $advance, $clean_up) = blocks_in($document, 'Move a tenant');
run_block($publish);
$node{s3}->wait_for_catchup('s3');
run_block($delete);
run_block($subscribe);
$node{s1}->wait_for_subscription_sync($node{s3}, 'tenant42', 'postgres');
run_block($reject);
ok(wait_for(sub { $tenant->{run}->pump_nb; return !$tenant->{run}->pumpable }),
	'the old server refuses writes for the tenant');
ends($tenant->{run}, 'writers of the tenant');
like($tenant->{output}, qr/violates check constraint "tenant42_has_moved"/, 'the error names the constraint');
$node{s3}->wait_for_catchup('tenant42');
my $all = 'SELECT id, title FROM photos WHERE tenant = 42 ORDER BY id';
my ($rows, $last) = map { on('s3', $_) } $all, 'SELECT max(id) FROM photos WHERE tenant = 42';
is(on('s1', $all), $rows, 'the new server has the rows of the tenant as they were handed over');
run_block($advance);
cmp_ok(on('s1', q{INSERT INTO photos (tenant, title) VALUES (42, 'moved') RETURNING id}), '>', $last,
	'the tenant\'s next ID is larger than its last, though the new server\'s clock is behind');
run_block($clean_up);
is(on('s1', 'SELECT count(*) > 1000 FROM photos WHERE tenant = 42'), 't', 'the rows of the tenant stay on the new server');
end_load($_, 'both servers were written to during the move') foreach @load;
hub_has_all('after the move', 's1', 's2', 's3');

# --- a clone that has the shard of its original ------------------------------

# Rows of the clone are of its original until the time that its log shows.
# The clone takes the place of s3, and a shard that no other server has used.
on('hub', 'DROP SUBSCRIPTION s3; DELETE FROM photos WHERE snowflake_shard(id) = 3 AND tenant <> 42');
$node{s3}->stop;
on('s2', q{INSERT INTO photos (tenant, title) VALUES (1, 'before the clone')});
$node{s2}->backup('twin');
my $twin = $node{s3} = PostgreSQL::Test::Cluster->new('clone_of_s2');
$twin->init_from_backup($node{s2}, 'twin');
$twin->start;
my ($started) = slurp_file($twin->logfile) =~ /^(\S+ [\d:.]+ \S+) .* LOG:  database system is ready to accept connections$/m
  or die 'when did the clone start?';
write_file($ENV{PGSERVICEFILE}, slurp_file($ENV{PGSERVICEFILE}) =~
	  s/(\[s3\]\n)host=.*\nport=.*/sprintf "%shost=%s\nport=%d", $1, $twin->host, $twin->port/er);
on($_, $burst) foreach 's2', 's3';
on('s3', q{UPDATE photos SET title = 'changed on the clone' WHERE title = 'before the clone'});
my $log = -s $node{hub}->logfile;
on('hub', q{CREATE SUBSCRIPTION s3 CONNECTION 'service=s3' PUBLICATION photos});
ok(wait_for(sub { slurp_file($node{hub}->logfile, $log) =~ $conflict }), 'rows of both servers stop the subscription of the clone');
my $shared = on('s2', 'SELECT count(*) FROM photos') - 2000;
run_block({ code => $_->{code} =~ s/\b3\b/6/gr =~ s/new_shard => 6/$&, since => '$started'/r })
  foreach $assign, $renumber, $own_rows, $again;
is(on('s3', 'SELECT count(*) FROM photos WHERE snowflake_shard(id) <> 6'), $shared, 'the rows that both servers have keep their IDs');
is(on('s3', 'SELECT count(*) FROM photos WHERE snowflake_shard(id) = 6'), 2000, '... and those of the clone get others');
on($_, q{INSERT INTO photos (tenant, title) VALUES (1, 'after the repair')}) foreach 's2', 's3';
$node{hub}->wait_for_subscription_sync($node{$_}, $_, 'postgres') foreach 's2', 's3';
# A comparison with the rows of all servers
on('s3', q{DELETE FROM photos WHERE snowflake_shard(id) <> 6});
hub_has_all('after the repair of the clone', 's1', 's2', 's3');

# --- a clone of the hub ----------------------------------------------------

$node{hub}->backup('base');
my $clone = PostgreSQL::Test::Cluster->new('clone');
$clone->init_from_backup($node{hub}, 'base');
my ($options, $leave, $uses, $insert) = map { $_->{code} } blocks_in('doc/administration.md', 'Clones');
$clone->append_conf('postgresql.conf', join '', map { "$_\n" } $options =~ /-c (\w[\w.]+=\S+?)"?(?= |$)/gm);
$clone->start;
$clone->sql($leave =~ s/\bs3\b/$_/gr) foreach 's1', 's2', 's3';
is($clone->sql('SELECT count(*) FROM pg_subscription'), 0, 'a clone of a subscriber drops its subscriptions');
# The original's number, and then the clone's
$clone->sql('CREATE EXTENSION IF NOT EXISTS snowflake_admin; ALTER TABLE photos ALTER id SET DEFAULT next_id()');
foreach my $shard (4, 6)
{
	$clone->sql("SELECT snowflake_set_shard($shard); CALL snowflake_move('photos', $shard)");
	is($clone->sql($uses), "column public.photos.id|$shard|public.next_id(($shard)::bigint)\n"
		  . "setting of database postgres|$shard|snowflake.shard=$shard",
		"the places that set shard $shard are listed");
}
is($clone->sql($insert =~ s/DEFAULT VALUES/(tenant) VALUES (1)/r), 6, '... and a new row has the new number');
$clone->stop;
on('s1', q{INSERT INTO photos (tenant, title) VALUES (1, 'cloned')});
hub_has_all('after it was cloned', 's1', 's2', 's3');

# --- the rest --------------------------------------------------------------

run_examples($node{hub}, 'postgres', blocks_in($document, 'Assign shards'));
$_->stop foreach values %node;
done_testing();
