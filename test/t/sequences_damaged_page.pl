# A damaged page of a sequence is an error, never an ID, and so is a damaged value of type
# snowflake_layout, or one of a later version.  A row that an old version of PostgreSQL left
# locked is none.

use SnowflakeTest;

# Checksums would find the damage first.
my $node = server_ahead_of_clock('damaged', "ignore_checksum_failure = on\n", extra => ['--data-checksums']);

# --- a row that looks locked ------------------------------------------------------

# SELECT FOR UPDATE of old versions of PostgreSQL left its transaction in the xmax
# of a sequence's row.  This hides the row when the transaction has committed.
next_id($node);
my $committed = $node->sql('SELECT pg_current_xact_id()::xid');
my $path = file_of($node, 'used');
$node->stop;
my $page = slurp_file($path);
my $upper = unpack 'S', substr($page, 14, 2);
my $flags = unpack 'S', substr($page, $upper + 20, 2);
substr($page, $upper + 4, 4) = pack 'L', $committed;
substr($page, $upper + 20, 2) = pack 'S', $flags & ~0x0800 | 0x0400;
write_file($path, $page);
$node->start;
is($node->sql('SELECT count(*) FROM used'), 0, 'an old xmax hides the row of a sequence');
like(next_id($node), qr/^\d+$/, 'next_id() finds a row that an old xmax hides');
# A SELECT could set the flags, so none may come before.
$node->sql('CHECKPOINT');
$page = slurp_file($path);
is(unpack('L', substr($page, $upper + 4, 4)), 0, 'next_id() removes an old xmax');
is(unpack('S', substr($page, $upper + 20, 2)), $flags, 'next_id() restores the flags that go with no xmax');
is($node->sql('SELECT count(*) FROM used'), 1, 'next_id() makes a hidden row visible again');

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
# Have a tuple begin at another place.
my $set_tuple = sub {
	my (undef, $offset) = @_;
	$set_line_pointer->($_[0], $offset, 1, $length);
	substr($_[0], $offset + 22, 1) = "\x18";
};
# Each of these but the zeroes damages one thing only.
my %damage = (
	'magic number' => sub { substr($_[0], $special, 4) = "\0\0\0\0" },
	'zeroes' => sub { $_[0] = "\0" x length $_[0] },
	'header size' => sub { substr($_[0], $upper + 22, 1) = "\xff" },
	'end of line pointers' => sub { substr($_[0], 12, 2) = pack 'S', $lower + 4 },
	'dead line pointer' => sub { $set_line_pointer->($_[0], $upper, 3, $length) },
	'short tuple' => sub { $set_line_pointer->($_[0], $upper, 1, $length - 1) },
	'tuple in the page header' => sub { $set_tuple->($_[0], 16) },
	'tuple in the place of the note' => sub { $set_tuple->($_[0], 56) },
	'tuple in the special space' => sub { $set_tuple->($_[0], $upper + 8) },
	'large special space' => sub {
		substr($_[0], $upper - 8, $length) = substr($_[0], $upper, $length);
		substr($_[0], $special - 8, 4) = substr($_[0], $special, 4);
		substr($_[0], 14, 4) = pack 'SS', $upper - 8, $special - 8;
		$set_line_pointer->($_[0], $upper - 8, 1, $length) });
my %path;
foreach my $what (sort(keys %damage), 'checksum')
{
	$node->sql(qq{CREATE SEQUENCE "$what" MAXVALUE 1125899906841599; SELECT next_id(5, '"$what"')});
	$path{$what} = file_of($node, qq{"$what"});
}
my $unreadable = delete $path{checksum};
$node->sql(q{
	CREATE TABLE layouts (layout snowflake_layout);
	INSERT INTO layouts SELECT 'instagram' FROM generate_series(1, 20);
	CHECKPOINT});
$path = file_of($node, 'layouts');
$node->stop;
foreach my $what (sort keys %damage)
{
	my $page = slurp_file($path{$what});
	($lower, $upper, $special) = unpack 'SSS', substr($page, 12, 6);
	my $same = $page;
	$set_tuple->($same, $upper);
	ok($same eq $page, "a sequence's page has the form that the damage starts from: $what");
	$damage{$what}->($page);
	write_file($path{$what}, $page);
}
$page = slurp_file($path);
($upper, $special) = unpack 'SS', substr($page, 14, 4);
my $size = ($special - $upper) / 20;
# The first row is last on the page.  After its length, a value has its version
# and its text, which ends with a zero.
substr($page, $special - $size + 28, 1) = "\x63";
substr($page, $special - 2 * $size + 29, 1) = 'x';
substr($page, $special - 3 * $size + 29 + length('instagram'), 1) = 'x';
# This one ends after the version, which has become the zero that ends a text.
my $bytes = unpack 'L', substr($page, $special - 4 * $size + 24, 4);
substr($page, $special - 4 * $size + 24, 5) = pack 'Lx', $bytes / (6 + length('instagram')) * 5;
# The last row is first on the page.  This one ends with a zero of a later row.
my $long = 300;
$long++ while substr($page, $upper + 24 + $long - 1, 1) ne "\0";
substr($page, $upper + 24, 4) = pack 'L', $bytes / (6 + length('instagram')) * $long;
write_file($path, $page);
$node->corrupt_page_checksum(substr($unreadable, length $node->data_dir), 0);
$node->start;
foreach my $what (sort keys %damage)
{
	fails_with($node, qq{SELECT next_id(5, '"$what"')}, qr/^XX001 page of sequence "$what" is damaged/,
		"next_id() reports a damaged page: $what");
	is($node->sql(qq{SELECT layout, last_timestamp, lead, state FROM snowflake_sequences('"$what"')}),
		'instagram|||refuses', "snowflake_sequences() tells nothing of a damaged page but that calls fail: $what");
}

foreach my $use ('layout', q{next_id(5, 'used', layout)})
{
	foreach my $case ([ 1, 'of an unknown version' ], [ 2, 'with a damaged text' ], [ 3, 'whose text does not end' ],
		[ 4, 'without a text' ], [ 20, 'with too long a text' ])
	{
		my ($row, $what) = @$case;
		my $error = $row > 1 ? qr/^XX001 damaged value of type/ : qr/^0A000 unsupported version 99 of type/;
		fails_with($node, "SELECT $use FROM layouts WHERE ctid = '(0,$row)'", $error, "$use reports a layout $what");
	}
}

# In binary form a layout has its version before its text.
my $copy = PostgreSQL::Test::Utils::tempdir . '/copy';
$node->sql("COPY (SELECT 'twitter'::snowflake_layout) TO '$copy' BINARY; TRUNCATE layouts");
my $binary = slurp_file($copy);
foreach my $case (
	[ "\x01twitter", qr/^no error/, 'the same layout is read from its binary form' ],
	[ "\x02twitter", qr/^22P03 unsupported version 2 of type snowflake_layout/, 'a later version is refused' ],
	[ "\x01twotter", qr/^22P02 invalid input syntax for type snowflake_layout: "twotter"/, 'another text is refused' ])
{
	my ($value, $error, $name) = @$case;

	write_file($copy, $binary =~ s/\x01twitter/$value/r);
	fails_with($node, "COPY layouts FROM '$copy' BINARY; SELECT layout FROM layouts", $error, $name);
}

# A page that cannot be read at all
my ($ret, $stdout, $stderr) = $node->psql('postgres', q{
	SET ignore_checksum_failure = off;
	DO $$
	BEGIN
		FOR i IN 1..3 LOOP
			BEGIN
				RAISE NOTICE 'ID %', next_id(5, 'checksum');
			EXCEPTION WHEN data_corrupted THEN
				RAISE NOTICE 'refused';
			END;
		END LOOP;
	END $$});
is(scalar(() = $stderr =~ /NOTICE:  refused/g), 3, 'next_id() refuses a page with a bad checksum every time');
unlike($stderr, qr/NOTICE:  ID|leak/, 'next_id() makes no ID of a page with a bad checksum, and leaks no buffer');

$node->stop;
done_testing();
