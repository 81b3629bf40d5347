# What snowflake_check() says when the clock was fast, is slow, or has come close to
# the end of a layout.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = server_with_clock('check', '@2026-11-20 12:00:00', "track_commit_timestamp = on\nautovacuum = off");

my $database;
my $shard = 3;

sub value { my ($query) = @_; return $node->safe_psql($database, $query) }

sub new_database
{
	($database) = @_;
	$shard += 2;
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	value(qq{
		CREATE EXTENSION snowflake_admin CASCADE;
		SELECT snowflake_set_shard($shard);
		CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), title text);
		CREATE TABLE notes (id bigint PRIMARY KEY DEFAULT next_id(), photo_id bigint REFERENCES photos)});
	return;
}

# The rows of the check.  What a clock has noted stays in the future until the clock
# gets there, so rows of the clock are left out unless they are asked for.
sub rows
{
	my ($columns, $condition) = @_;
	$condition //= q{object <> 'clock'};
	return value("SELECT concat_ws('|', $columns) FROM snowflake_check() WHERE $condition");
}

my $insert = 'INSERT INTO photos (title) VALUES ($$made$$)';

# --- a clock that was three hours fast ------------------------------------------------

new_database('fast');
# initdb had the true clock, and its checkpoint is on record.
value("CREATE INDEX ON notes (photo_id); CHECKPOINT; $insert");
is(rows('object', 'true'), '', 'nothing is wrong while the clock is right');
set_clock($node, '@2026-11-20 15:00:00');
value("$insert; $insert; INSERT INTO notes (photo_id) SELECT max(id) FROM photos; CHECKPOINT");
is(rows('object', 'true'), '', '... or fast, which nobody can know');
set_clock($node, '@2026-11-20 12:00:10');
like(rows('severity, object, problem'),
	qr/\Aerror\|sequence public.next_id_seq\|It is 02:59:.* ahead of the clock: .* fails until 2026-11-20 1[45]:.*Future-dated IDs of its shard: 3, the latest of 2026-11-20 15:00:0.* in public\.(photos|notes)\. So/,
	'after the clock was fast, future-dated IDs are counted');
like(rows('severity, problem, remedy', q{object = 'clock'}),
	qr/\Awarning\|The clock says 2026-11-20 12:00:1.*, but .* at 2026-11-20 15:00:0.* So it is slow, or was fast until it was set back\.\|Compare the clock/,
	'... and what the server has noted shows that the clock was another');
my $remedy = rows('remedy');
is($remedy, 'SELECT public.snowflake_set_shard(N); -- N is a number from your list that no server uses.',
	'... and the way out is another shard');
value($remedy =~ s/N/6/r);
$remedy = rows('remedy', q{severity = 'error'});
like($remedy, qr/^SELECT pg_terminate_backend\(pid, 5000\) .*; BEGIN; .*; ALTER SEQUENCE public.next_id_seq RESTART; .*COMMIT;$/,
	'... after which the sequence can be set back');
value($remedy);
value($insert);
is(value(q{SELECT snowflake_shard(id), snowflake_timestamp(id) < '2026-11-20 13:00Z' FROM photos WHERE id < snowflake_min_id('2026-11-20 13:00Z') ORDER BY id DESC LIMIT 1}),
	'6|t', 'new rows have it, and the right time');
like($remedy = rows('severity, object, problem, remedy'),
	qr/\Awarning\|table public.photos\|Future-dated IDs of shard 5, while new rows get those of shard 6: 2, the latest of 2026-11-20 15:00:0.*\nwarning\|table public.notes\|.*: 1, /,
	'... and then only rows with future-dated IDs are left');
value($remedy =~ s/.*\|//gr);
is(rows('object'), '', '... which can be renumbered, each table by a command');
is(value(q{SELECT count(*), count(*) FILTER (WHERE id > snowflake_max_id(now())), (SELECT count(*) FROM notes JOIN photos ON photos.id = photo_id) FROM photos}),
	'4|0|1', 'rows with IDs of the future can get others after that');
set_clock($node, '@2026-11-20 15:00:20');
is(rows('object', 'true'), '', 'nothing is wrong when the clock has passed the IDs');

# --- nobody has future-dated IDs --------------------------------------------------------

new_database('failed');
value("$insert; ALTER TABLE photos ADD CHECK (id < snowflake_min_id('2026-11-20 16:00Z'))");
set_clock($node, '@2026-11-20 19:00:00');
isnt($node->psql($database, $insert), 0, 'an INSERT fails while the clock is fast');
set_clock($node, '@2026-11-20 15:00:30');
like(rows('severity, problem'), qr/^error\|It is 03:59:.*No row of .*notes, .*photos has a future-dated ID of its shard/,
	'its ID is in no row');
value(rows('remedy'));
is(rows('object'), '', 'the sequence can be set back');
is($node->psql($database, $insert), 0, '... and rows can be inserted');

# --- a few minutes -------------------------------------------------------------------------

new_database('minutes');
set_clock($node, '@2026-11-20 19:05:00');
value($insert);
set_clock($node, '@2026-11-20 19:00:30');
like(rows('severity, problem, remedy'), qr/^error\|It is 00:04:.*Future-dated IDs of its shard: 1, .*\|Wait until 2026-11-20 19:04:5\d\+00\.$/,
	'minutes can be waited for');
my ($time) = rows('remedy') =~ /until (.*)\+00/;
set_clock($node, "\@$time");
is($node->psql($database, $insert), 0, 'calls succeed at that time');
set_clock($node, '@2026-11-20 19:05:02');
is(rows('object', 'true'), '', '... and soon nothing is wrong');

# --- max_lead has been raised ------------------------------------------------------------------

set_clock($node, '@2026-11-20 20:05:00');
value($insert);
set_clock($node, '@2026-11-20 19:06:00');
value(q{LOAD 'snowflake'; ALTER DATABASE minutes SET snowflake.max_lead = '2h'});
like(rows('severity, problem, remedy'), qr/^warning\|.*makes future-dated IDs, as max_lead is 2h\..*\|Wait until 2026-11-20 20:05:0\d/,
	'with a raised max_lead, a sequence that is ahead is a warning');
value(q{ALTER DATABASE minutes RESET snowflake.max_lead});

# --- several sequences at once -----------------------------------------------------------------

set_clock($node, '@2026-11-21 12:00:00');
new_database('several');
$node->stop;
start_with_clock($node, '@2026-11-21 12:00:30');
value(q{
	CREATE SEQUENCE tweets_id_seq;
	SELECT snowflake_alter_sequence('tweets_id_seq', 'twitter');
	CREATE TABLE tweets (id bigint PRIMARY KEY DEFAULT next_id(snowflake_shard(), 'tweets_id_seq'))});
is(rows('object', 'true'), '', 'nothing is wrong with two sequences');
value(q{
	SELECT setval('next_id_seq', (snowflake_min_id(now() + interval '2 hours') >> 23) * 1024),
		setval('tweets_id_seq', (snowflake_min_id(now() + interval '2 hours', 'twitter') >> 22) * 4096)});
like(rows('problem', q{object = 'clock'}), qr/2 sequences are ahead of it by 0[12]:.* to 0[12]:/,
	'sequences that are ahead by the same time are a sign of the clock');
value(rows('remedy', q{object = 'sequence public.tweets_id_seq'}));
is(rows('object', 'true'), 'sequence public.next_id_seq', '... and one of them alone is not');
value(rows('remedy'));
is(rows('object', 'true'), '', '... and each can be set back');

# --- a clock that was three days fast: check, obey, check again, until nothing is left ---------------

# Executes the first command that the check shows, with a new shard where one is
# asked for, and returns which row has it
sub obey
{
	my ($row) = grep { /\|(?:BEGIN|CALL|SELECT)\b[^|]*$/ } split /\n/, rows('severity, object, remedy');
	return () unless defined $row;
	my ($severity, $object, $command) = split /\|/, $row;
	value($command =~ s/\bN\b/99/gr);
	return "$severity $object: " . ($command =~ /(RESTART|snowflake_set_shard|snowflake_renumber)/)[0];
}

# Rows of two tables get future-dated IDs.
sub be_fast
{
	my ($name, $day, $change) = @_;
	set_clock($node, "\@2026-11-$day 12:00:00");
	new_database($name);
	value("CREATE INDEX ON notes (photo_id); $change");
	set_clock($node, '@2026-11-' . ($day + 3) . ' 12:00:00');
	value("$insert; $insert; INSERT INTO notes (photo_id) SELECT id FROM photos");
	$node->stop;
	start_with_clock($node, "\@2026-11-$day 12:00:20");
	return;
}

my $left = q{SELECT count(*) FILTER (WHERE greatest(photos.id, notes.id) > snowflake_max_id(now())), count(*)
	FROM notes JOIN photos ON photos.id = photo_id};

be_fast('setting', 22, '');
like(rows('problem'), qr/^It is 2 days 23:59:/, 'a sequence is ahead by days');
is_deeply([ map { obey() } 1 .. 6 ],
	[ 'error sequence public.next_id_seq: snowflake_set_shard', 'error sequence public.next_id_seq: RESTART',
		'warning table public.photos: snowflake_renumber', 'warning table public.notes: snowflake_renumber' ],
	'after a new setting, and RESTART, each table with future-dated IDs is a warning, parents first');
is(rows('object') . value($left), '0|2', '... until all rows have IDs of the present');

be_fast('constant', 23, q{SELECT snowflake_set_shard(NULL);
	ALTER TABLE photos ALTER id SET DEFAULT next_id(5); ALTER TABLE notes ALTER id SET DEFAULT next_id(5)});
value(q{CALL snowflake_move('photos', shard => 6, own_sequence => true)});
my $rows = rows('severity, object, problem, remedy');
like($rows, qr/^error\|sequence public.next_id_seq\|.*Future-dated IDs of its shard: 4, .*snowflake_move\('public.notes'/,
	'future-dated IDs of a table that has moved count for the sequence that made them');
like($rows, qr/^warning\|table public.photos\|Future-dated IDs of shard 5, while new rows get those of shard 6: 2, .*snowflake_renumber/m,
	'... and are a warning, too');
value(q{CALL snowflake_move('notes', shard => 6, own_sequence => true)});
like(rows('severity, object, problem, remedy'),
	qr/^note\|sequence public.next_id_seq\|.*uses it, but programs may\. Future-dated IDs of its layout: 4, .*\|Wait until [^;|]*$/m,
	'a sequence that no default uses is a note, and not set back while tables have such IDs');
is_deeply([ map { obey() } 1 .. 6 ],
	[ 'warning table public.photos: snowflake_renumber', 'warning table public.notes: snowflake_renumber',
		'note sequence public.next_id_seq: RESTART' ],
	'... but after the tables have been renumbered');
is(rows('object') . value($left), '0|2', '... and all rows have IDs of the present');

# --- the end of a layout --------------------------------------------------------------------------

SKIP:
{
	skip 'the clock cannot be set that far', 4 unless far_future($node);
	$database = 'several';
	value(q{CREATE SEQUENCE notes_id_seq;
		SELECT snowflake_alter_sequence('notes_id_seq');
		ALTER TABLE notes ALTER id SET DEFAULT next_id(7, 'notes_id_seq')});
	set_clock($node, '@2045-06-20 00:00:00');
	value('INSERT INTO tweets DEFAULT VALUES');
	is(rows('object', 'true'), '', 'nothing is wrong more than a year before a layout ends');
	set_clock($node, '@2045-07-01 00:00:00');
	my $ends = qr/\|Its layout instagram ends on 2046-06-27 17:00:49.496\+00\.\|Before that, let another sequence .* make the IDs of/;
	like(rows('severity, object, problem, remedy'),
		qr/\Awarning\|sequence public.next_id_seq$ends .*photos.*\nwarning\|sequence public.notes_id_seq$ends .*notes, as/, '... but in the last year');
	set_clock($node, '@2046-07-01 00:00:00');
	like(rows('severity, problem'), qr/\Aerror\|Its layout instagram ended on .*\nerror\|Its layout instagram ended/, '... and after it');
	value(q{ALTER TABLE notes ALTER id DROP DEFAULT; ALTER TABLE photos ALTER id SET DEFAULT next_id(snowflake_shard(), 'tweets_id_seq')});
	is(rows('object', 'true'), '', '... until other sequences make the IDs');
}

$node->stop;
done_testing();
