# Two servers had one shard by mistake, and made the same IDs.  A subscriber to both
# is stuck.  The recipe of doc/scaling.md finds the two, and gives the rows of one
# of them new IDs, while both are written to and their rows change.  At the end,
# the subscriber has every row of both.
#
# The column "origin" shows which server made a row.

use strict;
use warnings;
use IPC::Run;
use List::Util qw(first);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use RecipeTest;
use SnowflakeTest;

my %node;
foreach my $name ('s3', 's4', 'hub')
{
	$node{$name} = PostgreSQL::Test::Cluster->new($name);
	$node{$name}->init(allows_streaming => 'logical');
	$node{$name}->append_conf('postgresql.conf', <<EOC);
autovacuum = off
# The document does not show notices.
client_min_messages = warning
wal_retrieve_retry_interval = 100ms
EOC
	$node{$name}->start;
	$node{$name}->safe_psql('postgres', 'CREATE DATABASE app');
}
# The recipe asks four servers.  The other two are of no matter here.
servers_are({ %node, s1 => $node{s3}, s2 => $node{hub} });

my $tables = q{
	CREATE EXTENSION snowflake;
	CREATE TABLE photos (id bigint PRIMARY KEY %s, title text, origin text DEFAULT current_setting('cluster_name'));
	CREATE TABLE comments (nr uuid PRIMARY KEY DEFAULT gen_random_uuid(), photo_id bigint REFERENCES photos, body text);
	CREATE INDEX ON comments (photo_id);
	CREATE TABLE albums (id bigint PRIMARY KEY, origin text DEFAULT current_setting('cluster_name'))};
foreach my $name ('s3', 's4')
{
	on($name, sprintf("$tables; CREATE PUBLICATION photos FOR ALL TABLES", 'DEFAULT next_id()'));
	$node{$name}->safe_psql('postgres', 'ALTER DATABASE app SET snowflake.shard = 3');
}
# Its foreign key must not be in the way of what the recipe does there.
on('hub', sprintf($tables, ''));
on('hub', "CREATE SUBSCRIPTION $_ CONNECTION 'service=$_' PUBLICATION photos") for 's3', 's4';
$node{hub}->wait_for_subscription_sync($node{$_}, $_, 'app') for 's3', 's4';

# Sessions of an application insert rows one by one, with rows that refer to them,
# and change rows.  None of their statements may fail while the recipe runs.
my $dir = PostgreSQL::Test::Utils::tempdir;
append_to_file("$dir/photo.sql", <<'EOS');
BEGIN;
INSERT INTO photos (title) VALUES ('one') RETURNING id AS photo \gset
INSERT INTO comments (photo_id, body) VALUES (:photo, 'first');
COMMIT;
UPDATE photos SET title = 'changed' WHERE id = :photo;
EOS
append_to_file("$dir/change.sql", <<'EOS');
UPDATE photos SET title = title || '.' WHERE id = (SELECT id FROM photos ORDER BY random() LIMIT 1);
EOS

sub sessions
{
	my ($name) = @_;
	my $load = { name => $name, output => '' };
	$load->{run} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '2', '-T', '600', '-R', '200', '-f', "$dir/photo.sql\@9", '-f', "$dir/change.sql\@1",
			'-h', $node{$name}->host, '-p', $node{$name}->port, 'app' ],
		'<', \undef, '>', \$load->{output}, '2>', \$load->{output});
	return $load;
}

sub end_sessions { my ($load) = @_; $load->{run}->signal('TERM'); $load->{run}->finish; return }

# Bursts of both make the same IDs: each has every sequence number of its
# milliseconds.
sub burst
{
	my ($name) = @_;
	return IPC::Run::start(
		[ 'pgbench', '-n', '-c', '1', '-t', '20', '-f', "$dir/burst.sql", '-h', $node{$name}->host, '-p', $node{$name}->port, 'app' ],
		'<', \undef, '>', \my $out, '2>', \my $err);
}
append_to_file("$dir/burst.sql", <<'EOS');
WITH photo AS (INSERT INTO photos (title) SELECT 'burst' FROM generate_series(1, 500) RETURNING id)
INSERT INTO comments (photo_id, body) SELECT id, 'of a burst' FROM photo WHERE id % 5 = 0;
EOS

# The row of s4 reaches the subscriber first.
my $first = on('s4', "INSERT INTO photos (title) VALUES ('first') RETURNING id");
caught_up('s4');
# Then those of s3 do.
on('hub', 'ALTER SUBSCRIPTION s4 DISABLE');
my $equal;
ok( wait_for(sub {
		$_->finish for map { burst($_) } 's3', 's4';
		my %seen = map { $_ => 1 } split /\n/, on('s3', 'SELECT id FROM photos');
		$equal = grep { $seen{$_} } split /\n/, on('s4', 'SELECT id FROM photos');
		return $equal > 100 }),
	'two servers with one shard make more than 100 equal IDs');
caught_up('s3');
on('s3', "INSERT INTO photos (id, title) VALUES ($first, 'second')");
# Another table has equal IDs, too.
on($_, "INSERT INTO albums (id) VALUES ($first)") for 's3', 's4';
# This update waits behind that row, and must not reach rows of s4.
on('s3', q{UPDATE photos SET title = 'of s3' WHERE title = 'burst'});
on('hub', 'ALTER SUBSCRIPTION s4 ENABLE');
my @load = map { sessions($_) } 's3', 's4';
foreach my $name ('s3', 's4')
{
	my $offset = -s $node{hub}->logfile;
	my $oid = on('hub', "SELECT oid FROM pg_subscription WHERE subname = '$name'");
	ok( wait_for(sub { slurp_file($node{hub}->logfile, $offset) =~
				/replication origin "pg_$oid" during message type "INSERT" for replication target relation "public.photos"/ }),
		"an ID that two servers have stops the subscription to $name");
}

# The row for which the subscription to s3 has stopped is deleted, but its slot
# brings it all the same.  So it is with one that makes way, below.
on('s3', "DELETE FROM photos WHERE id = $first");
my %of_s4 = map { $_ => 1 } split /\n/, on('s4', 'SELECT id FROM photos');
my $deleted = first { $_ % 5 && $of_s4{$_} } split /\n/, on('s3', q{SELECT id FROM photos WHERE title = 'of s3'});

# The loop of the document prints the shard that two servers have.
my ($loop) = recipe_blocks('See which servers');
is((run_command([ 'bash', '-c', $loop->{code} ]))[0], 3, 'the recipe shows the shard that two servers have used');

my $old = pop @load;
recipe('Stop it');
ok(wait_for(sub { $old->{run}->pump_nb; !$old->{run}->pumpable }), 'sessions with the old shard are ended');
end_sessions($old);
# One that cannot end is noticed.
my $stuck = $node{s4}->background_psql('app');
my $pid = $stuck->query_safe('SELECT pg_backend_pid()');
kill STOP => $pid;
my ($end) = grep { /pg_terminate_backend/ } map { $_->{code} } recipe_blocks('Stop it');
is(on('s4', $end), 'f', 'the recipe shows that a session has not ended');
kill CONT => $pid;
ok($node{s4}->poll_query_until('app', $end), 'repeated, the recipe shows that all sessions have ended');
$stuck->{run}->finish;
# The application connects again.
push @load, sessions('s4');

# Each step is done for both tables that have equal IDs.  Typing one of the last
# takes a while, in which nothing may go wrong.
my @steps = recipe_blocks('Repair the rows');
foreach my $number (0 .. $#steps)
{
	my $code = $steps[$number]{code};

	sleep(2) if $number >= $#steps - 1;
	on('hub', 'DROP TRIGGER make_way ON albums') if $code =~ /^DROP TRIGGER/m;
	recipe('Repair the rows', $number);
	on('s3', "DELETE FROM photos WHERE id = $deleted") if $code =~ /^CREATE TRIGGER/m;
	on('hub', $code =~ s/\bphotos\b/albums/gr) if $code =~ /^-- on hub\nUPDATE/;
	on('hub', join '', map { s/\bphotos\b/albums/gr } $code =~ /^((?:CREATE TRIGGER|ALTER TABLE) .*\n)/gm) if $code =~ /^CREATE TRIGGER/m;
	on('s4', q{CALL snowflake_renumber('albums', 3, 6)}) if $code =~ /CALL snowflake_renumber/;
}
isnt(on('s4', 'SELECT count(*) FROM photos_renumbered'), 0, 'the recipe renumbers rows');

# Both must still be running.
foreach my $load (@load)
{
	ok($load->{run}->pumpable, "$load->{name} is written to during the repair") or diag($load->{output});
	end_sessions($load);
}
caught_up('s3', 's4');

is( on('hub', 'SELECT (SELECT count(*) FROM photos WHERE id <= 0) + (SELECT count(*) FROM albums WHERE id <= 0)'), 0, 'no row of the subscriber keeps a negative ID');
is( on('s4', 'SELECT count(*) FROM photos_renumbered JOIN photos ON id = old'), 0, 'no row has an ID that was renumbered');
is( on('s4', q{SELECT count(*) FROM photos_renumbered
		WHERE snowflake_timestamp(old) <> snowflake_timestamp(new) OR snowflake_sequence_number(old) <> snowflake_sequence_number(new)
		   OR snowflake_shard(new) <> 6}),
	0, 'a new ID has the time and the sequence number of the old one, and the new shard');

# Every row of both servers, with what refers to it, as it is there now.
foreach my $table ("SELECT origin, id, title FROM photos", "SELECT nr, photo_id, body FROM comments", "SELECT origin, id FROM albums")
{
	my @there = sort map { split /\n/, on($_, $table) } 's3', 's4';
	my @here = sort split /\n/, on('hub', $table);
	is(join("\n", @here), join("\n", @there), 'the subscriber has every row of both servers as it is there: ' . $table =~ s/.* //r)
	  or diag(scalar(@here) . ' rows, and ' . scalar(@there) . ' on the servers');
}
is(on('hub', 'SELECT count(*) FROM comments c LEFT JOIN photos p ON p.id = photo_id WHERE p.id IS NULL'), 0,
	'each row that refers to another finds it on the subscriber');
note("$equal equal IDs, " . on('s4', 'SELECT count(*) FROM photos_renumbered') . ' renumbered, '
	  . on('hub', 'SELECT count(*) FROM photos') . ' rows');
$_->stop for values %node;
done_testing();
