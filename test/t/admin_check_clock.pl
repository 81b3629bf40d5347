# What snowflake_check() says when the clock was fast, is slow, or has come close to
# the end of a layout.

use SnowflakeTest;

my $node = server_with_clock('check', '@2026-11-20 12:00:00', "track_commit_timestamp = on\nautovacuum = off");

my $database;
my $shard = 3;
my $insert = 'INSERT INTO photos (title) VALUES ($$made$$)';

sub value { return $node->safe_psql($database, @_) }

# Set the clock, and execute a command.
sub at
{
	my ($time, $command) = @_;
	set_clock($node, "\@$time");
	return value($command // '');
}

sub new_database
{
	($database) = @_;
	$shard += 2;
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	value(qq{
		REVOKE CREATE ON SCHEMA public FROM PUBLIC;	-- before 15, everybody has that
		CREATE EXTENSION snowflake_admin CASCADE;
		SELECT snowflake_set_shard($shard);
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
		CREATE TABLE notes (id bigint PRIMARY KEY DEFAULT next_id(), photo_id bigint REFERENCES photos)});
}

# The rows of the check.  What a clock has noted stays in the future until the clock
# gets there, so rows of the clock are left out unless they are asked for.
sub rows
{
	my ($condition) = @_;
	$condition //= q{object <> 'clock'};
	return value("SELECT concat_ws('|', severity, object, problem, remedy) FROM snowflake_check() WHERE $condition");
}

sub nothing_is_wrong
{
	my ($when) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(rows('true'), '', "nothing is wrong $when");
}

# Execute the first command that the check shows, with a new shard where one is asked
# for.  Returns which row has it, and what it does.
sub obey
{
	my ($row) = grep { /\|(?:BEGIN|CALL|CREATE|SELECT)\b[^|]*$/ } split /\n/, rows();
	return () unless defined $row;
	my ($severity, $object, undef, $command) = split /\|/, $row;
	value($command =~ s/\bN\b/99/gr);
	return join ' ', "$severity $object:",
	  $command =~ /CREATE INDEX|snowflake_(?:set_back|set_shard|renumber)|end_sessions/g;
}

# --- a clock that was three hours fast ------------------------------------------------

new_database('fast');
# initdb had the true clock, and its checkpoint is on record.
value("CHECKPOINT; $insert");
nothing_is_wrong('while the clock is right');
at('2026-11-20 15:00:00', "$insert; $insert; INSERT INTO notes (photo_id) SELECT max(id) FROM photos; CHECKPOINT");
nothing_is_wrong('while it is fast, which nobody can know');
at('2026-11-20 12:00:10');
like(rows(), qr/\Aerror\|sequence public.next_id_seq\|It is 02:5.* ahead .* fails until 2026-11-20 1[45]:[^\n]*\z/,
	'after the clock was fast, the sequence is ahead of it');
like(rows(), qr/Future-dated IDs of its shard: 3, the latest of 2026-11-20 15:0.* in public\.\w+\. So it must not/,
	'... and future-dated IDs are counted');
my $was_fast = qr/So it is slow, or was fast until it was set back\.\|Compare the clock/;
like(rows(q{object = 'clock'}),
	qr/\Awarning\|clock\|The clock says 2026-11-20 12:0.* at 2026-11-20 15:0.* $was_fast/,
	'... and what the server has noted shows that the clock was another');
is_deeply([ map { obey() } 1, 2 ],
	[ 'error sequence public.next_id_seq: snowflake_set_shard',
		'error sequence public.next_id_seq: snowflake_set_back end_sessions' ],
	'... and the way out is another shard, after which the sequence can be set back');
is(value("$insert RETURNING snowflake_shard(id), snowflake_timestamp(id) < '2026-11-20 13:00Z'"), '99|t',
	'new rows have that shard, and the right time');
my $left = qr/Future-dated IDs of shard 5, while new rows get those of shard \d+: [12], the latest of 2026-11-2\d 1/;
like(rows(), qr/\Awarning\|table public.photos\|$left.*\nwarning\|table public.notes\|$left[^\n]*\z/,
	'... and then only rows with future-dated IDs are left');
is_deeply([ map { obey() } 1 .. 4 ],
	[ 'warning table public.photos: CREATE INDEX', 'warning table public.photos: snowflake_renumber',
		'warning table public.notes: snowflake_renumber' ],
	'... which can be renumbered, each table by a command that creates a missing index, parents first');
is(value(q{SELECT count(*), count(*) FILTER (WHERE id > snowflake_max_id(now())),
		(SELECT count(*) FROM notes JOIN photos ON photos.id = photo_id) FROM photos}),
	'4|0|1', '... so that no row has a future-dated ID');
at('2026-11-20 15:10:00');
nothing_is_wrong('when the clock has passed the IDs');

# --- a few minutes -------------------------------------------------------------------------

new_database('minutes');
at('2026-11-20 19:05:00', $insert);
at('2026-11-20 19:00:30');
like(rows(), qr/^error\|.*\|It is 00:0[^0].*Future-dated IDs of its shard: 1, .*\|Wait until 2026-11-20 19:0\d:\d\d\+00\.$/,
	'minutes can be waited for');
my ($until) = rows() =~ /Wait until (.*)\+00/;
is(value("SELECT snowflake_timestamp(max(id)) - '${until}Z'::timestamptz BETWEEN '0 s' AND '10 s' FROM photos"), 't',
	'... until just before the time of the last ID');
at($until);
is($node->psql($database, $insert), 0, 'calls succeed at that time');
at('2026-11-20 19:10:00');
nothing_is_wrong('soon after');

# --- max_lead has been raised ------------------------------------------------------------------

at('2026-11-20 20:05:00', $insert);
at('2026-11-20 19:11:00', q{LOAD 'snowflake'; ALTER DATABASE minutes SET snowflake.max_lead = '2h'});
like(rows(), qr/^warning\|.*generates future-dated IDs, as max_lead is 2h\..*\|Wait until 2026-11-20 20:0/,
	'with a raised max_lead, a sequence that is ahead is a warning');

# --- several sequences at once -----------------------------------------------------------------

at('2026-11-21 12:00:00');
new_database('several');
$node->stop;
start_with_clock($node, '@2026-11-21 12:00:30');
value(q{
	CREATE SEQUENCE tweets_id_seq;
	SELECT snowflake_alter_sequence('tweets_id_seq', 'twitter');
	CREATE TABLE tweets (id bigint PRIMARY KEY DEFAULT next_id(snowflake_shard(), 'tweets_id_seq'))});
nothing_is_wrong('with two sequences');
value(q{
	SELECT setval('next_id_seq', (snowflake_min_id(now() + interval '2 hours') >> 23) * 1024),
		setval('tweets_id_seq', (snowflake_min_id(now() + interval '2 hours', 'twitter') >> 22) * 4096)});
like(rows(q{object = 'clock'}), qr/2 sequences are ahead of it by 0[12]:.* to 0[12]:/,
	'sequences that are ahead by the same time are a sign of the clock');
is(obey(), 'error sequence public.next_id_seq: snowflake_set_back', 'one of them can be set back, ...');
like(rows('true'), qr/\Aerror\|sequence public.tweets_id_seq\|[^\n]*\z/, '... and the other one alone is no sign');

# --- a clock that was three days fast, tables that have moved since ----------------------------

at('2026-11-23 12:00:00');
new_database('constant');
value(q{SELECT snowflake_set_shard(NULL);
	ALTER TABLE photos ALTER id SET DEFAULT next_id(5);
	ALTER TABLE notes ALTER id SET DEFAULT next_id(5)});
at('2026-11-26 12:00:00', "$insert; $insert; INSERT INTO notes (photo_id) SELECT id FROM photos");
at('2026-11-23 12:00:20', q{CALL snowflake_move('photos', shard => 6, own_sequence => true)});
my $move = q{CALL public.snowflake_move('public.notes'::regclass, shard => N::bigint, own_sequence => true)};
like(rows(), qr/^error\|sequence public.next_id_seq\|It is 2 days 23:.* its shard: 4, .*\Q$move\E/,
	'future-dated IDs of a table that has moved count for the sequence that made them');
like(rows(), qr/^warning\|table public.photos\|$left/m, '... and are a warning, too');
value($move =~ s/\bN\b/6/r);
like(rows(), qr/^note\|sequence public.next_id_seq\|.*uses it, but programs may\..* layout: 4, .*\|Wait until [^;|]*$/m,
	'a sequence that no default uses is a note, and not set back while tables have such IDs');
is_deeply([ map { obey() } 1 .. 7 ],
	[ 'warning table public.photos: CREATE INDEX', 'warning table public.photos: snowflake_renumber',
		'warning table public.notes: snowflake_renumber', 'note sequence public.next_id_seq: snowflake_set_back' ],
	'... but after the tables have been renumbered');

# --- a clock that has jumped -------------------------------------------------------------------------

# Rows of each of the last ten days, but for one
sub daily_rows
{
	my ($table, $idle) = @_;
	return value("INSERT INTO $table (id) SELECT snowflake_id(now() - n * interval '1 day', $shard, 1)
		FROM generate_series(0, 10) AS n WHERE n <> $idle");
}

# The rows about a clock that is fast, without what it says and without seconds
sub fast
{
	my $rows = rows(q{object = 'clock' AND problem LIKE '%is fast.'});
	return $rows =~ s/clock\|The clock says \K[^.]*\.\d+\+00/.../gr =~ s/\d\d:\d\d\K:\d\d[.\d]*\+00//gr;
}

sub jump
{
	my ($severity, $owner, $since, $until) = @_;
	return "$severity|clock|The clock says .... Tables of $owner have rows of each day until $since, and then none until "
	  . "$until. Unless nobody inserted rows in between, the clock is fast.|Compare the clock with that of other servers "
	  . '(date, chronyc tracking) before partitions are created or dropped. If it is right, do nothing.';
}

at('2026-12-01 12:00:00');
new_database('jumped');
value(q{
	CREATE TABLE events (id bigint DEFAULT next_id(), PRIMARY KEY (id)) PARTITION BY RANGE (id);
	CALL snowflake_make_partitions('events');
	CREATE ROLE stranger;
	CREATE TABLE theirs (id bigint PRIMARY KEY DEFAULT next_id());
	ALTER TABLE theirs OWNER TO stranger;
	DO $$ BEGIN EXECUTE format('CREATE TABLE before PARTITION OF events FOR VALUES FROM (MINVALUE) TO (%s)',
		snowflake_min_id((SELECT min(since) FROM snowflake_partitions('events')))); END $$});
daily_rows('photos', 3);
at('2026-12-04 13:00:00');
is(fast(), '', 'tables that get rows on most days tell nothing of the clock');
at('2026-12-01 12:00:10');
daily_rows('theirs', -1);
daily_rows('events', -1);
value('SELECT next_id()');
is(fast(), '', 'a clock that goes on is not fast');
at('2026-12-03 11:00:00');
is(fast(), '', '... nor if no rows come for less than two days');
at('2026-12-05 13:00:00');
my @jumped = (jump('warning', 'postgres', '2026-12-01 12:00', '2026-12-05 13:00'),
	jump('note', 'stranger', '2026-12-01 12:00', '2026-12-05 13:00'));
is(fast(), join("\n", @jumped), 'a jump by four days is seen by rows that came every day, and a warning where partitions are');
like(rows(), qr/\Aerror\|table public.events\|It has no partition for IDs of now[^\n]*\z/, '... as long as there is none for the present');
value(q{CALL snowflake_make_partitions('events')});
is(rows(), '', '... which goes away with partitions for the wrong time');
is(fast(), join("\n", @jumped), '... but not the jump');
value('INSERT INTO events DEFAULT VALUES');
is(fast(), join("\n", $jumped[0] =~ s/until 2026-12-0\K5/4/r, $jumped[1]), '... nor with new rows');
at('2026-12-07 13:00:00');
like(fast(), qr/^warning.* until 2026-12-01 12:00, and then none until 2026-12-05 13:00/m, '... for days');
value(q{INSERT INTO theirs SELECT snowflake_id('2026-12-01 12:00Z'::timestamptz + n * interval '1 hour', 3, 1)
	FROM generate_series(0, 144) AS n});
like(fast(), qr/\Awarning.* Tables of postgres [^\n]*\z/, "... and others' rows do not hide it");

value(q{DELETE FROM events WHERE id > snowflake_max_id('2026-12-02Z'); DELETE FROM theirs});
at('2028-01-05 12:00:00');
my $jumped = jump('warning', 'postgres', '2026-12-01 12:00', '2028-01-05 12:00');
is(fast(), $jumped, 'a jump by a year is seen, too');
is($node->psql($database, q{CALL snowflake_make_partitions('events')}), 3, '... and no partitions are made');
value(q{CALL snowflake_make_partitions('events', unit => 'month', trust_clock => true)});
is(fast(), $jumped, '... but if they are, it does not go away');
value(q{DELETE FROM events; DELETE FROM photos; INSERT INTO photos (id)
	SELECT snowflake_id('2026-12-01 12:00Z'::timestamptz - n * interval '7 days', 3, 1) FROM generate_series(0, 8) AS n});
is(fast(), $jumped =~ s/each \Kday/week/r, '... also where rows came every week');

at('2026-11-25 12:00:00');
unlike(rows(q{object = 'clock'}), qr/rows of each/, 'a clock that was fast has no rows of the time in between');
value(q{INSERT INTO photos (id) SELECT snowflake_id(now() + n * interval '1 day', 3, 2) FROM generate_series(1, 8) AS n});
like(rows(q{object = 'clock'}), qr/tables of postgres have rows of each of the next 7 days\. So it is slow/,
	'... but one that is slow has rows of each day');

# --- the end of a layout --------------------------------------------------------------------------

$database = 'several';
at('2045-06-20 00:00:00', 'INSERT INTO tweets DEFAULT VALUES');
nothing_is_wrong('more than a year before a layout ends');
at('2045-07-01 00:00:00');
my $ends = qr/Its layout instagram ends on 2046-06-27 17:00:49.496\+00\.\|Before that, let another sequence/;
like(rows(), qr/\Awarning\|sequence public.next_id_seq\|$ends .* generate the IDs of public\.(notes|photos), [^\n]*\z/,
	'... but in the last year');
at('2046-07-01 00:00:00');
like(rows(), qr/\Aerror\|sequence public.next_id_seq\|Its layout instagram ended on [^\n]*\z/, '... and after it');
value(q{
	ALTER TABLE notes ALTER id SET DEFAULT next_id(7, 'tweets_id_seq');
	ALTER TABLE photos ALTER id SET DEFAULT next_id(7, 'tweets_id_seq')});
nothing_is_wrong('once another sequence makes the IDs');

done_testing();
