# A damaged page of a sequence is an error, never an ID.  A row that an old version
# of PostgreSQL left locked is none.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

# Checksums, which clusters have since 18, would find the damage first.
my $node = server_ahead_of_clock('damaged', "ignore_checksum_failure = on\n");

# --- a row that looks locked ------------------------------------------------------

# SELECT FOR UPDATE of old versions of PostgreSQL left its transaction in the xmax
# of a sequence's row.  This hides the row when the transaction has committed.
next_id($node);
my $committed = $node->safe_psql('postgres', 'SELECT pg_current_xact_id()::xid');
my $path = file_of($node, 'used');
$node->stop;
my $page = slurp_file($path);
my $upper = unpack 'S', substr($page, 14, 2);
my $locked = $page;
my $flags = unpack('S', substr($page, $upper + 20, 2));
substr($locked, $upper + 4, 4) = pack 'L', $committed;
substr($locked, $upper + 20, 2) = pack 'S', $flags & ~0x0800 | 0x0400;
write_file($path, $locked);
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM used'), 0, 'an old xmax hides the row of a sequence');
is($node->safe_psql('postgres', "SELECT next_id(5, 'used') > 0"), 't', 'next_id() finds a row that an old xmax hides');
# A SELECT could set the flags, so none may come before.
$node->safe_psql('postgres', 'CHECKPOINT');
$locked = slurp_file($path);
is(unpack('L', substr($locked, $upper + 4, 4)), 0, 'next_id() removes an old xmax');
is(unpack('S', substr($locked, $upper + 20, 2)), $flags, 'next_id() restores the flags that go with no xmax');
is($node->safe_psql('postgres', 'SELECT count(*) FROM used'), 1, 'next_id() makes a hidden row visible again');

# --- a damaged page ---------------------------------------------------------------

# Each damages the page of a separate sequence.
my ($lower, $special);
my $length = 41;
my $set_line_pointer = sub {
	my (undef, $offset, $flags, $size) = @_;
	my $little_endian = unpack 'C', pack('S', 1);
	substr($_[0], 24, 4) = pack 'L', $little_endian
	  ? $offset | $flags << 15 | $size << 17
	  : $offset << 17 | $flags << 15 | $size;
};
my $set_header_size = sub { substr($_[0], $_[1] + 22, 1) = "\x18" };
# Each of these but the zeroes damages one thing only.
my %damage = (
	'magic number' => sub { substr($_[0], $special, 4) = "\0\0\0\0" },
	'zeroes' => sub { $_[0] = "\0" x length $_[0] },
	'header size' => sub { substr($_[0], $upper + 22, 1) = "\xff" },
	'end of line pointers' => sub { substr($_[0], 12, 2) = pack 'S', $lower + 4 },
	'dead line pointer' => sub { $set_line_pointer->($_[0], $upper, 3, $length) },
	'short tuple' => sub { $set_line_pointer->($_[0], $upper, 1, $length - 1) },
	'tuple in the page header' => sub {
		$set_line_pointer->($_[0], 16, 1, $length);
		$set_header_size->($_[0], 16) },
	'tuple in the place of the note' => sub {
		$set_line_pointer->($_[0], 56, 1, $length);
		$set_header_size->($_[0], 56) },
	'tuple in the special space' => sub {
		$set_line_pointer->($_[0], $upper + 8, 1, $length);
		$set_header_size->($_[0], $upper + 8) },
	'large special space' => sub {
		my $tuple = substr($_[0], $upper, $length);
		substr($_[0], $upper - 8, $length) = $tuple;
		substr($_[0], $special - 8, 4) = substr($_[0], $special, 4);
		substr($_[0], 14, 4) = pack 'SS', $upper - 8, $special - 8;
		$set_line_pointer->($_[0], $upper - 8, 1, $length) });
my %path;
foreach my $what (sort keys %damage)
{
	$node->safe_psql('postgres', qq{CREATE SEQUENCE "$what" MAXVALUE 1125899906841599; SELECT next_id(5, '"$what"')});
	$path{$what} = file_of($node, qq{"$what"});
}
$node->stop;
foreach my $what (sort keys %damage)
{
	my $page = slurp_file($path{$what});
	($lower, $upper, $special) = unpack 'SSS', substr($page, 12, 6);
	my $same = $page;
	$set_line_pointer->($same, $upper, 1, $length);
	$set_header_size->($same, $upper);
	ok($same eq $page, "a sequence's page has the form that the damage starts from: $what");
	$damage{$what}->($page);
	write_file($path{$what}, $page);
}
$node->start;
foreach my $what (sort keys %damage)
{
	fails_with($node, qq{SELECT next_id(5, '"$what"')}, qr/^XX001 page of sequence "$what" is damaged/,
		"next_id() reports a damaged page: $what");
	is($node->safe_psql('postgres', qq{SELECT layout, last_timestamp, lead, state FROM snowflake_sequences('"$what"')}),
		'instagram|||refuses', "snowflake_sequences() tells nothing of a damaged page but that calls fail: $what");
}
$node->stop;

# A page that cannot be read at all
$node = server_in_utc('checksums', '', extra => ['--data-checksums']);
$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; SELECT next_id(5)');
my $file = $node->safe_psql('postgres', q{SELECT pg_relation_filepath('next_id_seq')});
$node->stop;
$node->corrupt_page_checksum($file, 0);
$node->start;
my ($ret, $stdout, $stderr) = $node->psql('postgres', q{
	DO $$
	BEGIN
		FOR i IN 1..3 LOOP
			BEGIN
				RAISE NOTICE 'ID %', next_id(5);
			EXCEPTION WHEN data_corrupted THEN
				RAISE NOTICE 'refused';
			END;
		END LOOP;
	END $$});
is(scalar(() = $stderr =~ /NOTICE:  refused/g), 3, 'next_id() refuses a page with a bad checksum every time');
unlike($stderr, qr/NOTICE:  ID|leak/, 'next_id() makes no ID of a page with a bad checksum, and leaks no buffer');
$node->stop;

done_testing();
