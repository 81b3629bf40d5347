# Several servers at once, with shards of their own: all write, and their rows
# are brought together by logical replication and by postgres_fdw.  One server's
# clock is three minutes fast, one fails over to a standby that has not got
# everything, a logical shard moves, two servers are merged, and one is cloned.
#
# Packages: libfaketime
#
# The recipes are those of doc/scaling.md, run from its text, but for failover and
# clones, which are in doc/administration.md.  Knows IDs' bits, and nothing of
# sequences' pages.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use RecipeTest;
use SnowflakeTest;

plan skip_all => 'libfaketime is not installed' unless faketime_library();

my @writers = ('s1', 's2', 's3', 's4');
my %shard = (s1 => 1, s2 => 2, s3 => 3, s4 => 4);
my $fast = 180;    # seconds that the clock of s4 is ahead
my $dir = PostgreSQL::Test::Utils::tempdir;
my (%node, @report);

# What the report says at the end
sub report { my ($what, $figure) = @_; push @report, sprintf '%-58s %s', $what, $figure; return }

# Sessions that write to a server until they are stopped, or their time is over.
append_to_file("$dir/single.sql", "INSERT INTO photos (title) VALUES ('s' || :shard);\n");
append_to_file("$dir/many.sql", "INSERT INTO photos (title) SELECT 's' || :shard FROM generate_series(1, 200);\n");
append_to_file("$dir/transaction.sql", <<'EOS');
BEGIN;
INSERT INTO photos (title) VALUES ('s' || :shard), ('s' || :shard);
INSERT INTO photos (title) VALUES ('s' || :shard);
SAVEPOINT s;
INSERT INTO photos (title) VALUES ('rolled back');
ROLLBACK TO s;
COMMIT;
EOS
# quicker than the layout has IDs: they run ahead of the clock
append_to_file("$dir/burst.sql", <<'EOS');
SELECT count(*) FROM next_ids(current_setting('snowflake.shard')::bigint, 600000);
INSERT INTO photos (title) VALUES ('s' || :shard);
EOS

my @scripts = ('single.sql@60', 'many.sql@4', 'transaction.sql@30');

sub start_load
{
	my ($name, $seconds, %params) = @_;
	my $load = { output => '' };

	$load->{run} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '4', '-T', $seconds, '-R', '1000', '-D', "shard=$shard{$name}",
			map({ ('-f', "$dir/$_") } $params{script} // @scripts, $params{burst} ? 'burst.sql@1' : ()),
			'-h', $node{$name}->host, '-p', $node{$name}->port, 'app' ],
		'<', \undef, '>', \$load->{output}, '2>', \$load->{output});
	return $load;
}

sub finished { my ($load) = @_; return $load->{run}->finish || diag($load->{output}) && 0 }

# Every ID of every server is on the hub, once, and nothing else is.
sub nothing_missing
{
	my ($what, @names) = @_;
	my ($rows, $sum) = (0, 0);

	caught_up(@names);
	foreach my $name (@names)
	{
		my ($here, $ids) = split /\|/, on($name, 'SELECT count(*), sum(id) FROM photos');
		$rows += $here;
		$sum = on('hub', "SELECT $sum + $ids");
	}
	is(on('hub', "SELECT count(*), count(DISTINCT id), sum(id) FROM photos"), "$rows|$rows|$sum",
		"the subscriber has every row of every server once, $what");
	return $rows;
}

# ---------------------------------------------------------------------------
# The servers

foreach my $name ('hub', @writers)
{
	$node{$name} = PostgreSQL::Test::Cluster->new($name);
	$node{$name}->init(allows_streaming => 'logical');
	$node{$name}->append_conf('postgresql.conf', <<EOC);
autovacuum = off
# The document does not show notices.
client_min_messages = warning
timezone = 'UTC'
track_commit_timestamp = on
shared_buffers = 16MB
max_connections = 50
max_worker_processes = 16
max_logical_replication_workers = 10
wal_retrieve_retry_interval = 100ms
wal_sender_timeout = 0
wal_receiver_timeout = 0
EOC
}
servers_are(\%node);
foreach my $name ('hub', @writers)
{
	start_with_clock($node{$name}, $name eq 's4' ? "+$fast" : '+0');
	$node{$name}->safe_psql('postgres', 'CREATE DATABASE app');
}

recipe('Logical replication into one table');
on('hub', 'ALTER TABLE photos ADD began timestamptz, ADD ended timestamptz');
on($_, q{ALTER TABLE photos ADD began timestamptz DEFAULT now(), ADD ended timestamptz DEFAULT clock_timestamp()})
  for @writers;
$node{hub}->wait_for_subscription_sync($node{$_}, $_, 'app') for @writers;

$node{s3}->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node{s3}, 'base', has_streaming => 1);
start_with_clock($standby, '-1');
report('servers', 'hub, ' . join(', ', map { "$_ (shard $shard{$_})" } @writers) . ", standby; clock of s4 +$fast s");

# ---------------------------------------------------------------------------
# All write at once

my ($by_name) = slurp_file("$top/doc/scaling.md") =~ /`(BEGIN;\s+DROP PUBLICATION photos;[^`]*)`/ or die 'no change to a publication of named tables';
on('s1', 'BEGIN; DROP PUBLICATION photos; CREATE PUBLICATION photos FOR ALL TABLES; COMMIT');
my @loads = map { start_load($_, 5, burst => $_ eq 's1') } @writers;
sleep(2);
on('s1', $by_name);
is(scalar(grep { finished($_) } @loads), 4, 'four servers were written to at once, from four sessions each');
my $rows = nothing_missing('after the load', @writers);
cmp_ok($rows, '>', 10_000, 'four servers made more than 10,000 rows at once');
report('rows made at once, in 5 s, by 16 sessions', $rows);
is(on('hub', 'SELECT count(*) FROM photos WHERE title <> \'s\' || snowflake_shard(id)'), 0, 'each ID says which server made it');
is(on('hub', q{SELECT count(*) FROM (SELECT snowflake_shard(id) FROM photos GROUP BY 1 HAVING count(*) > 1000) t}), 4,
	'each server made more than a thousand rows');

# No shard is that of two servers.
recipe('See which servers');

# An ID's time, held against the clock of its server before and after it was
# made; "began" is the transaction's beginning.  Then what follows of it for the
# order between servers, by the true time: of two rows, that with the larger ID
# is not the older one by more than clocks and lead allow.
my $lead = 1000;
my $worst = sub
{
	my ($ids, $which) = @_;
	return on('hub', qq{
		SELECT ceil(1000 * extract(epoch FROM max(later - ended))) FROM (
			SELECT max(began) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later, ended
			FROM (SELECT $ids AS id, began - late AS began, ended - late AS ended
				FROM photos, LATERAL (SELECT CASE snowflake_shard(id) WHEN 4 THEN interval '$fast s' ELSE '0' END AS late) l
				WHERE $which) p
		) o});
};
is( on('hub', qq{SELECT count(*) FROM photos
		WHERE snowflake_timestamp(id) < date_trunc('milliseconds', began)
		   OR snowflake_timestamp(id) > ended + interval '$lead ms'}),
	0, 'an ID\'s time is not behind its server\'s clock, nor ahead of it by more than max_lead');
my ($right, $all, $corrected) = (
	$worst->('id', 'snowflake_shard(id) <> 4'),
	$worst->('id', 'true'),
	$worst->("CASE snowflake_shard(id) WHEN 4 THEN id - (${fast}000::bigint << 23) ELSE id END", 'true'));
cmp_ok($right, '<=', $lead + 1, 'IDs of servers with the right time are in the order of time, to within max_lead');
cmp_ok($right, '>', 100, 'bursts put some IDs out of the order of time');
cmp_ok($all, '<=', $lead + 1 + $fast * 1000, 'IDs of all servers are in the order of time, to within max_lead and the difference of the clocks');
cmp_ok($all, '>', $lead + 1, 'the difference of the clocks puts IDs out of the order of time');
cmp_ok($corrected, '<=', $lead + 1, 'without that difference, IDs are in the order of time to within max_lead');
report('worst inversion between servers, by true time, clocks right', "$right ms of " . ($lead + 1) . ' allowed');
report("with the server whose clock is $fast s fast", "$all ms of " . ($lead + 1 + $fast * 1000) . ' allowed, in a run of 5 s');
report('the same, its clock\'s error subtracted', "$corrected ms of " . ($lead + 1) . ' allowed');

# ---------------------------------------------------------------------------
# Each row is found by its ID alone

# Of a logical shard, the subscriber has the rows, too.
recipe('Move a shard', 0);
on('hub', 'CREATE SCHEMA shard5; CREATE TABLE shard5.photos (id bigint PRIMARY KEY, title text)');
on('s4', 'ALTER PUBLICATION photos ADD TABLE shard5.photos');
on('hub', 'ALTER SUBSCRIPTION s4 REFRESH PUBLICATION');
on('s4', q{INSERT INTO shard5.photos (title) SELECT 'shard5' FROM generate_series(1, 100)});

recipe('postgres_fdw behind one parent', 0);
recipe('Inserting through postgres_fdw');
is(on('s1', q{SELECT count(*) FROM photos WHERE title IS NULL OR snowflake_shard(id) <> 1}), 0,
	'rows inserted through postgres_fdw have IDs of the server');

# Rows of each shard by each way
sub found
{
	my ($what, %where) = @_;

	foreach my $shard (sort keys %where)
	{
		my ($server, $table) = @{ $where{$shard} };
		my @ids = split /\n/, on($server, "SELECT id FROM $table WHERE snowflake_shard(id) = $shard ORDER BY random() LIMIT 50");
		my $title = on($server, "SELECT title FROM $table WHERE id = $ids[0]");
		my $foreign = join ' UNION ALL ',
		  map { "SELECT title FROM all_photos WHERE id = $_ AND (id >> 10) & 8191 = ($_ >> 10) & 8191" } @ids;

		is(on('hub', "SELECT count(*) FROM ($foreign) t WHERE title = '$title'"), scalar(@ids),
			"postgres_fdw finds rows of shard $shard by their IDs, $what");
	}
	return;
}

my %where = (1 => [ 's1', 'photos' ], 2 => [ 's2', 'photos' ], 3 => [ 's3', 'photos' ], 4 => [ 's4', 'photos' ],
	5 => [ 's4', 'shard5.photos' ]);
found('after the load', %where);

# Which servers are asked: they log every statement.
my %offset;
sub forget { %offset = map { $_ => -s $node{$_}->logfile } @writers; return }
sub asked { my ($what) = @_; return join ' ', grep { slurp_file($node{$_}->logfile, $offset{$_}) =~ $what } @writers }

my $id = on('s2', 'SELECT min(id) FROM photos');
my ($by_id) = slurp_file("$top/doc/scaling.md") =~ /`(WHERE id = \$1 AND [^`]*)`/ or die 'no condition on an ID';
forget();
on('hub', 'SELECT * FROM all_photos ' . $by_id =~ s/\$1/$id/gr);
is(asked(qr/FROM public\.photos/), 's2', 'postgres_fdw asks one server for an ID');
forget();
on('hub', qq{
	SET plan_cache_mode = force_generic_plan;
	PREPARE photo(bigint) AS SELECT * FROM all_photos $by_id;
	EXECUTE photo($id)});
is(asked(qr/FROM public\.photos/), 's2', 'postgres_fdw asks one server for a prepared statement');

my ($since, $until) = split /\|/, on('hub', q{SELECT min(began) + interval '1 s', min(began) + interval '2 s' FROM photos});
my $there = 0;
$there += on($_, "SELECT count(*) FROM photos WHERE snowflake_timestamp(id) >= '$since' AND snowflake_timestamp(id) < '$until'")
  for @writers;
my $range = "id >= snowflake_min_id('$since') AND id < snowflake_min_id('$until')";
cmp_ok($there, '>', 100, 'more than 100 rows were made in a second');
is(on('hub', "SELECT count(*) FROM photos WHERE $range"), $there,
	'the subscriber finds all rows of a second');
forget();
is(on('hub', "SELECT count(*) FROM all_photos WHERE $range"), $there, 'postgres_fdw finds all rows of a second');
is(asked(qr/WHERE \(\(id >= '?\d+/), 's1 s2 s3 s4', 'postgres_fdw sends a range of time to all servers');
forget();
on('hub', q{SELECT count(*) FROM all_photos WHERE id >= (SELECT snowflake_min_id(now() - interval '1 day'))});
is(asked(qr/WHERE \(\(id >= \$1/), 's1 s2 s3 s4', 'postgres_fdw sends a bound that a subquery computes from now()');
my $explain = 'EXPLAIN (VERBOSE, COSTS OFF) SELECT title FROM photos_s1 WHERE id >=';
like(on('hub', "$explain (SELECT snowflake_min_id(now() - interval '1 day'))"),
	qr/Remote SQL: SELECT title FROM public\.photos WHERE \(\(id >= \$1::bigint\)\)$/m, 'the plan has that bound for the server');
like(on('hub', "$explain snowflake_min_id(now() - interval '1 day')"),
	qr/Filter: .*snowflake_min_id.*\n *Remote SQL: SELECT id, title FROM public\.photos$/m,
	'postgres_fdw does not send a bound that depends on now()');

# Whether a condition on the foreign table is in what the server gets, with the
# option "extensions" and without it.
foreach my $case (
	[ 'id >= (SELECT snowflake_min_id(now()))', qr/id >= \$1::bigint/, qr/id >= \$1::bigint/ ],
	[ q{id >= snowflake_min_id('2026-11-01Z')}, qr/id >= \d+::bigint/, qr/id >= \d+::bigint/ ],
	[ 'id >= snowflake_min_id($1)', qr/id >= public\.snowflake_min_id\(\$1::/, qr/photos$/ ],
	[ 'id >= snowflake_min_id(now())', qr/photos$/, qr/photos$/ ],
	[ q{snowflake_timestamp(id) >= '2026-11-01Z'}, qr/public\.snowflake_timestamp\(id\) >= '/, qr/photos$/ ])
{
	my ($condition, $with, $without) = @$case;
	my $sent = sub {
		my ($plan) = on('hub', qq{
			BEGIN;
			$_[0]
			SET LOCAL plan_cache_mode = force_generic_plan;
			PREPARE bounded(timestamptz) AS SELECT title FROM photos_s1 WHERE $condition;
			EXPLAIN (VERBOSE, COSTS OFF) EXECUTE bounded(now());
			ROLLBACK}) =~ /Remote SQL: (.*)/;
		return $plan;
	};

	like($sent->(''), $with, "with the option extensions the server gets what it can use of: $condition");
	like($sent->('ALTER SERVER s1 OPTIONS (DROP extensions);'), $without, "without the option extensions the server gets what it can use of: $condition");
}

# The trap of import_default: the hub makes IDs of the server's shard.  No key,
# so that both rows of an ID can be counted.  How many meet is a matter of chance.
on('s2', q{CREATE TABLE notes (id bigint DEFAULT next_id(5), title text)});
on('hub', q{
	IMPORT FOREIGN SCHEMA public LIMIT TO (notes) FROM SERVER s2 INTO public OPTIONS (import_default 'true');
	ALTER FOREIGN TABLE notes OPTIONS (ADD batch_size '1000')});
my $twice;
wait_for(sub {
	on('s2', 'TRUNCATE notes');
	my @sessions = map {
		IPC::Run::start([ 'psql', '-Xq', '-d', $node{$_}->connstr('app'), '-c',
				"INSERT INTO notes (title) SELECT '$_' FROM generate_series(1, 100000)" ]) } 's2', 'hub';
	$_->finish for @sessions;
	$twice = on('s2', 'SELECT count(id) - count(DISTINCT id) FROM notes');
	return $twice > 0;
});
cmp_ok($twice, '>', 0, 'the hub and the server make the same IDs with import_default (as documented)');
report('IDs made twice with import_default, of 200,000', $twice);
is(on('s2', 'SELECT count(id), count(DISTINCT snowflake_shard(id)) FROM notes'), '200000|1',
	'all IDs made with import_default are of one shard');

# A default without a number takes the hub's.
is(on('hub', q{
		CREATE SCHEMA imported;
		IMPORT FOREIGN SCHEMA public LIMIT TO (photos) FROM SERVER s2 INTO imported OPTIONS (import_default 'true');
		BEGIN;
		SET LOCAL snowflake.shard = 7;
		INSERT INTO imported.photos (title) VALUES ('hub') RETURNING snowflake_shard(id);
		ROLLBACK}), 7,
	'next_id() without a shard makes IDs of the hub\'s shard with import_default');

# ---------------------------------------------------------------------------
# A standby that has not got everything is promoted, under load.  Bursts keep the
# IDs a second ahead of the clock, and the standby's clock is a second behind.

@loads = map { $_ eq 's3' ? start_load($_, 600, burst => 1) : start_load($_, 6) } @writers;
sleep(1);
$standby->stop;
# beyond what the standby's last record covers
sleep(2);
my $dead = $node{s3};
my $crashed = time();
crash($dead);
$node{s3} = $standby;
servers_are(\%node);
start_with_clock($standby, '-1');
my $lost = on('hub', q{SELECT count(*) FROM photos p
	WHERE snowflake_shard(id) = 3 AND NOT EXISTS (SELECT FROM photos_s3 s WHERE s.id = p.id)});
cmp_ok($lost, '>', 100, 'the standby lacks rows that the subscriber has');
my ($promote) = grep { $_->{code} =~ /^-- on the standby/ } blocks_in('doc/administration.md', 'Failover');
on('s3', $promote->{code});
my $first = on('s3', q{INSERT INTO photos (title) VALUES ('s3') RETURNING id});
my $gap = time() - $crashed;
push @loads, start_load('s3', 8);
my @after = recipe_blocks('After a failover of a publisher');
recipe('After a failover of a publisher', 0 .. $#after - 1);
is(join(', ', map { $_->{run}->finish ? 'finished' : 'broken off' } @loads),
	'finished, finished, broken off, finished, finished',
	'the other servers are written to during the failover, and the promoted standby after it');
$dead->start;
$node{dead} = $dead;
my $last = on('dead', 'SELECT max(id) FROM photos');
caught_up('s3');
is(on('hub', 'SELECT count(*) FROM photos_s3 s WHERE NOT EXISTS (SELECT FROM photos p WHERE p.id = s.id)'), 0,
	'the subscriber has every row of the promoted standby');
cmp_ok($first, '>', $last, 'the first ID after the promotion is larger than the last one of the old primary');
report('the last ID before the crash was ahead of the clock by', on('dead', "SELECT snowflake_timestamp($last) - ended FROM photos WHERE id = $last"));
report('from the crash to the first ID of the promoted standby', sprintf '%.1f s', $gap);
report('rows that only the subscriber had', $lost);
# The last step takes all rows again.
recipe('After a failover of a publisher', -1);
$node{hub}->wait_for_subscription_sync($node{s3}, 's3', 'app');
is(on('hub', q{SELECT count(*), sum(id), md5(string_agg(title, ',' ORDER BY id)) FROM photos WHERE snowflake_shard(id) = 3}),
	on('s3', q{SELECT count(*), sum(id), md5(string_agg(title, ',' ORDER BY id)) FROM photos}),
	'the subscriber that has taken all rows of the promoted standby again has these and no others');

# ---------------------------------------------------------------------------
# A logical shard moves to a server whose clock is three minutes behind, under
# load.

append_to_file("$dir/shard5.sql", "INSERT INTO shard5.photos (title) VALUES ('shard5');\n");
my $before = on('s4', 'SELECT count(*) FROM shard5.photos');
my $load = start_load('s4', 600, script => 'shard5.sql');
ok($node{s4}->poll_query_until('app', "SELECT count(*) > $before + 200 FROM shard5.photos"), 'sessions write to the shard that will move');
{
	# snowflake_advance() warns that the clock of s1 is behind.
	local $ENV{PGOPTIONS} = '-c client_min_messages=error';
	my @steps = recipe_blocks('Move a shard');
	# The servers that are merged below need the procedure, too.
	run_examples($node{s2}, 'app', grep { $_->{code} =~ /^CREATE PROCEDURE hand_over/m } @steps);
	my ($call) = grep { $steps[$_]{code} =~ /^CALL hand_over/m } 0 .. $#steps;
	recipe('Move a shard', 1 .. $call - 1);
	my ($with_hub) = slurp_file("$top/doc/scaling.md") =~ /`(CALL hand_over\('shard5\.photos', 'shard5', 's4'\))`/ or die 'no call that waits for the hub';
	on('s4', $with_hub);
	recipe('Move a shard', $call);
	$node{s1}->safe_psql('app', q{LOAD 'snowflake'; ALTER SYSTEM SET snowflake.max_lead = '4h'});
	$node{s1}->reload;
	# A row that only one of them has is seen before anything is dropped.
	my ($compare) = map { $_->{code} } grep { $_->{code} =~ /uniq --unique/ } @steps;
	on('s1', q{INSERT INTO shard5.photos (id, title) VALUES (1, 'of s1')});
	isnt((run_command([ 'bash', '-c', $compare ]))[0], '', 'the recipe shows that two servers do not have the same rows');
	on('s1', 'DELETE FROM shard5.photos WHERE id = 1');
	(my $compare_hub = $compare) =~ s/\bs1 s4\b/s1 s4 hub/ or die 'no servers to compare';
	is((run_command([ 'bash', '-c', $compare_hub ]))[0], '', 'the subscriber has all rows of the shard before it takes them from the new server');
	# A sequence that has made no ID has no time.
	my ($time) = map { $_->{code} =~ /^(SELECT .*\nFROM snowflake_sequences.*) \\gset$/m } @steps;
	on('s4', q{CREATE SEQUENCE unused_seq; SELECT snowflake_alter_sequence('unused_seq')});
	my $unused = on('s4', $time =~ s/'shard5\.photos_id_seq'/'unused_seq'/r);
	is(on('s4', "SELECT snowflake_advance('unused_seq', $unused)"), '', 'a sequence that has made no ID is moved, too');
	recipe('Move a shard', $call + 1 .. $#steps);
}
ok(!$load->{run}->finish, 'the load on the server that a shard leaves is broken off');
like($load->{output}, qr/shard5\.photos has moved/, 'the trigger says that the shard has moved');
my ($written) = $load->{output} =~ /transactions actually processed: (\d+)/;
is(on('s1', 'SELECT count(*) FROM shard5.photos'), $written + $before, 'every row that was written moves with its shard');
$last = on('s1', 'SELECT max(id) FROM shard5.photos');
like(
	sqlstate_of($node{s1}, q{SET snowflake.max_lead = '1s'; INSERT INTO shard5.photos DEFAULT VALUES}, dbname => 'app'),
	qr/^53400 .* ahead of the clock/,
	'a server whose clock is behind refuses to make IDs of a shard that has moved there, with the usual lead');
ok(finished(start_load('s1', 1, script => 'shard5.sql')), 'the shard is written to on the server where it is now');
is(on('s1', "SELECT count(*) FILTER (WHERE id > $last) > 100, count(*) FILTER (WHERE id <= $last) FROM shard5.photos"),
	't|' . ($written + $before), 'IDs of a shard that has moved are larger than before');
caught_up('s1');
is(on('hub', 'SELECT count(*), sum(id) FROM shard5.photos'), on('s1', 'SELECT count(*), sum(id) FROM shard5.photos'),
	'the subscriber has the rows that were written before and after the shard moved, each once');
$where{5} = [ 's1', 'shard5.photos' ];
recipe('postgres_fdw behind one parent', 1, 2);
found('after the move', 5 => $where{5});
on('s4', q{INSERT INTO photos (id, title) VALUES (snowflake_id('2026-11-20Z', 6, 0), 'of another number')});
found('after a server has got another number', 6 => [ 's4', 'photos' ]);
is(on('hub', 'SELECT count(*) - count(DISTINCT id) FROM all_photos'), 0, 'a query without a shard finds each row once');
report('rows of the shard that moved, under load', $written + $before);

# ---------------------------------------------------------------------------
# Two servers become one, under load

$load = start_load('s2', 600);
my $other = start_load('s1', 600);
recipe('Split and merge');
on('hub', q{
	BEGIN;
	DROP FOREIGN TABLE photos_s1, photos_s2;
	CREATE FOREIGN TABLE photos_s1 PARTITION OF all_photos FOR VALUES IN (1, 2) SERVER s1 OPTIONS (table_name 'photos');
	COMMIT});
ok(!$load->{run}->finish, 'the load on the server that is merged into another is broken off');
like($load->{output}, qr/photos has moved/, 'the trigger says that the rows have moved');
$other->{run}->signal('TERM');
$other->{run}->finish;
$rows = on('s2', 'SELECT count(*), sum(id) FROM photos');
is(on('s1', 'SELECT count(*), sum(id) FROM photos WHERE snowflake_shard(id) = 2'), $rows,
	'the server that another was merged into has every row of it');
is(on('hub', 'SELECT count(*), sum(id) FROM photos WHERE snowflake_shard(id) = 2'), $rows,
	'the subscriber has every row of the server that was merged, once');
$node{s2}->stop;
@writers = grep { $_ ne 's2' } @writers;
caught_up(@writers);
is(on('s1', 'DELETE FROM photos WHERE id = (SELECT max(id) FROM photos WHERE snowflake_shard(id) = 2)'), '',
	'a row of the server that was merged can be deleted on the other');
caught_up('s1');
is( on('hub', 'SELECT count(*) FROM photos WHERE snowflake_shard(id) = 2'),
	on('s1', 'SELECT count(*) FROM photos WHERE snowflake_shard(id) = 2'), 'a row that is deleted after the merge is deleted on the subscriber, too');
$where{2} = [ 's1', 'photos' ];
found('after the merge', %where);

# ---------------------------------------------------------------------------
# A clone gets a number of its own

$node{s3}->backup('clone');
$node{clone} = PostgreSQL::Test::Cluster->new('clone');
$node{clone}->init_from_backup($node{s3}, 'clone');
servers_are(\%node);
$node{clone}->start;
is(on('clone', 'SHOW snowflake.shard'), 3, 'a clone has the number of its original');
my ($places, $change) = map { $_->{code} } grep { $_->{code} =~ /^-- on the clone\n(CREATE|SELECT snowflake_set)/ } blocks_in('doc/administration.md', 'Places that set a shard');
like(on('clone', $places), qr/^setting of database app\|3\|snowflake.shard=3$/m, 'the list of places shows where the clone has its number from');
on('clone', $change);
like(on('clone', $places), qr/^setting of database app\|6\|snowflake.shard=6$/m, 'the list of places shows the clone\'s own number');
$shard{clone} = 6;
@loads = map { start_load($_, 1) } 's3', 'clone';
is(scalar(grep { finished($_) } @loads), 2, 'the clone and its original are written to');
is(on('clone', q{SELECT DISTINCT snowflake_shard(id) FROM photos WHERE title = 's6'}), 6,
	'the clone makes IDs of its own number');

# ---------------------------------------------------------------------------
# Over all: the rows of every server, those that died among them.  "ended" tells
# rows apart.

$node{s2}->start;
caught_up(@writers);
my (%ended, @twice);
foreach my $name ('dead', 's2', @writers, 'clone', 'hub')
{
	foreach my $row (split /\n/, on($name, 'SELECT id, ended FROM photos WHERE ended IS NOT NULL'))
	{
		my ($id, $ended) = split /\|/, $row;
		push @twice, $id if ($ended{$id} //= $ended) ne $ended;
	}
}
is(scalar(@twice), 0, 'no ID was made twice, by any server at any time');
report('rows of all servers and times, compared', scalar(keys %ended));
report('IDs that were made twice', scalar(@twice));
$node{$_}->stop for 'dead', 's2', 'clone';

# ---------------------------------------------------------------------------

is(join("\n", blocks_not_run('Citus', 'Stop it', 'Repair the rows')),
	'', 'every recipe of the document for several servers was run');
note(join "\n", 'Report', @report);
$_->stop for map { $node{$_} } 'hub', @writers;
done_testing();
