# Crashes: an ID that somebody has is never returned again.
#
# In all of these the sequence's mark is days ahead of the clock, or the
# clock's own progress would hide a value that comes again.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;

sub new_node
{
	my ($name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	$node->append_conf('postgresql.conf',
		NOBODY_FLUSHES . "max_prepared_transactions = 2\n" . ($params{conf} // ''));
	$node->start;
	$node->safe_psql('postgres', q{
		CREATE EXTENSION snowflake;
		CREATE SEQUENCE used MAXVALUE 1125899906841599;
	});
	ahead_of_clock($node, 'used', '1 day');
	$node->safe_psql('postgres', 'CHECKPOINT');
	return $node;
}

my $next = q{SELECT next_id(5, 'used')};

# A writes the record that covers B's ID within an open transaction, so that
# nobody flushes it; and B has nothing to commit.  Both have used the file
# before, or B would write a record of its own.
foreach my $commit ('on', 'off')
{
	my $node = new_node("leak_$commit", conf => "synchronous_commit = $commit\n");
	my $a = $node->background_psql('postgres');
	my $b = $node->background_psql('postgres');
	$_->query_safe($next) for $a, $b;
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $inside = $a->query_safe("BEGIN; $next");
	my $outside = $b->query_safe($next);
	cmp_ok($outside, '>', $inside, "synchronous_commit = $commit: B's ID is larger than A's");
	crash($node);
	eval { $_->quit } for $a, $b;
	$node->start;
	my $after = $node->safe_psql('postgres', $next);
	cmp_ok($after, '>', $outside, 'and larger after a crash than B\'s');
	$node->stop;
}

# Many at once, of which the WAL may have covered only the first.  No clock
# drives this sequence, so none hides what is lost.
{
	my $node = new_node('many');
	$node->safe_psql('postgres', 'CREATE SEQUENCE counter MAXVALUE 2147483647');
	foreach my $batches (2, 3, 4, 7)
	{
		my $last = $node->safe_psql('postgres',
			join(';', (q{SELECT max(id) FROM next_ids(0, 700, 'counter', 'sequence:31') id}) x $batches));
		crash($node);
		$node->start;
		cmp_ok($node->safe_psql('postgres', q{SELECT next_id(0, 'counter', 'sequence:31')}),
			'>', (split /\n/, $last)[-1], "$batches batches of next_ids(), crash");
	}
	$node->stop;
}

# SET UNLOGGED and back copies the count of values that the old file's WAL
# covers.
{
	my $node = new_node('persistence');
	$node->safe_psql('postgres', $next);
	$node->safe_psql('postgres', q{ALTER SEQUENCE used SET UNLOGGED; ALTER SEQUENCE used SET LOGGED});
	my $before = $node->safe_psql('postgres', $next);
	$node->safe_psql('postgres', $next) for 1 .. 3;
	my $last = $node->safe_psql('postgres', $next);
	crash($node);
	$node->start;
	cmp_ok($node->safe_psql('postgres', $next), '>', $last, 'SET UNLOGGED, SET LOGGED, crash');

	# All in one session, which has written WAL for the old file.
	$last = (split /\n/, $node->safe_psql('postgres', qq{
		$next;
		ALTER SEQUENCE used SET UNLOGGED; ALTER SEQUENCE used SET LOGGED;
		$next; $next; $next}))[-1];
	crash($node);
	$node->start;
	cmp_ok($node->safe_psql('postgres', $next), '>', $last,
		'SET UNLOGGED, SET LOGGED in a session that has logged the old file, crash');
	$node->stop;
}

# setval() logs a value that is yet to be taken, and nothing beyond it.
{
	my $node = new_node('setval');
	my $last = (split /\n/, $node->safe_psql('postgres', qq{
		$next;
		SELECT setval('used', last_value + 100, false) > 0 FROM used;
		$next}))[-1];
	crash($node);
	$node->start;
	cmp_ok($node->safe_psql('postgres', $next), '>', $last,
		'a value that setval() left to be taken, and next_id() took, does not come again after a crash');
	$node->stop;
}

# So does a database made from a template, even if the copy is not in WAL.
foreach my $strategy ('wal_log', 'file_copy')
{
	my $node = new_node("template_$strategy");
	$node->safe_psql('postgres', 'CREATE DATABASE source');
	$node->safe_psql('source', q{CREATE EXTENSION snowflake; CREATE SEQUENCE used MAXVALUE 1125899906841599});
	$node->safe_psql('source',
		q{SELECT setval('used', (snowflake_min_id(now() + interval '1 day') >> 23) * 1024)});
	$node->safe_psql('source', $next);
	$node->safe_psql('postgres', "CREATE DATABASE copy TEMPLATE source STRATEGY $strategy");
	my $last;
	$last = $node->safe_psql('copy', $next) for 1 .. 3;
	crash($node);
	$node->start;
	cmp_ok($node->safe_psql('copy', $next), '>', $last, "TEMPLATE with $strategy, crash");
	$node->stop;
}

# A sequence made in the same transaction has no WAL of its own here.
{
	my $node = new_node('minimal', conf => "wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = 0\n");
	my $last = $node->safe_psql('postgres', q{
		BEGIN;
		CREATE SEQUENCE young MAXVALUE 1125899906841599;
		SELECT setval('young', (snowflake_min_id(now() + interval '1 day') >> 23) * 1024) \g /dev/null
		SELECT next_id(5, 'young') \g /dev/null
		SELECT next_id(5, 'young') \g /dev/null
		COMMIT;
		SELECT next_id(5, 'young') \g /dev/null
		SELECT next_id(5, 'young') \g /dev/null
		SELECT next_id(5, 'young')});
	crash($node);
	$node->start;
	cmp_ok($node->safe_psql('postgres', q{SELECT next_id(5, 'young')}), '>', $last,
		'wal_level = minimal, made and used in a transaction and after it, crash');
	# and in another session after the commit
	$node->safe_psql('postgres', q{
		BEGIN;
		CREATE SEQUENCE younger MAXVALUE 1125899906841599;
		SELECT setval('younger', (snowflake_min_id(now() + interval '1 day') >> 23) * 1024);
		SELECT count(next_id(5, 'younger')) FROM generate_series(1, 10);
		COMMIT});
	$last = $node->safe_psql('postgres', q{SELECT next_id(5, 'younger')});
	crash($node);
	$node->start;
	cmp_ok($node->safe_psql('postgres', q{SELECT next_id(5, 'younger')}), '>', $last,
		'and used by another session');
	# The commit logs an image of a small file's page.  nextval() must not
	# find a count in it, neither one of next_id() nor one that an earlier
	# nextval() left.
	$last = $node->safe_psql('postgres', q{
		SET wal_skip_threshold = '2MB';
		BEGIN;
		CREATE SEQUENCE youngest MAXVALUE 1125899906841599;
		SELECT setval('youngest', (snowflake_min_id(now() + interval '1 day') >> 23) * 1024) \g /dev/null
		SELECT nextval('youngest') \g /dev/null
		SELECT count(next_id(5, 'youngest')) FROM generate_series(1, 10) \g /dev/null
		COMMIT;
		SELECT nextval('youngest') \g /dev/null
		SELECT nextval('youngest')});
	crash($node);
	$node->start;
	cmp_ok($node->safe_psql('postgres', q{SELECT nextval('youngest')}), '>', $last,
		'and used by nextval()');
	# rewritten in the transaction
	$last = $node->safe_psql('postgres', q{
		BEGIN;
		ALTER SEQUENCE younger SET UNLOGGED;
		ALTER SEQUENCE younger SET LOGGED;
		SELECT next_id(5, 'younger') \g /dev/null
		SELECT next_id(5, 'younger') \g /dev/null
		COMMIT;
		SELECT next_id(5, 'younger')});
	crash($node);
	$node->start;
	cmp_ok($node->safe_psql('postgres', q{SELECT next_id(5, 'younger')}), '>', $last,
		'and with a file made in a transaction');
	$node->stop;
}

# After a checkpoint, a record from before it is of no use.
{
	my $node = new_node('checkpoint');
	my $psql = $node->background_psql('postgres');
	$psql->query_safe($next);
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $last = $psql->query_safe($next);
	$last = $psql->query_safe($next);
	crash($node);
	eval { $psql->quit };
	$node->start;
	cmp_ok($node->safe_psql('postgres', $next), '>', $last, 'checkpoint, use, crash');

	# A prepared transaction survives; its ID does not come again.
	my $prepared = $node->safe_psql('postgres', qq{
		CREATE TABLE kept (id bigint);
		BEGIN;
		INSERT INTO kept SELECT next_id(5, 'used') RETURNING id;
		PREPARE TRANSACTION 'p'});
	crash($node);
	$node->start;
	my $after = $node->safe_psql('postgres', $next);
	cmp_ok($after, '>', $prepared, 'prepared transaction, crash');
	$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
	is($node->safe_psql('postgres', 'SELECT id FROM kept'), $prepared, 'its row is there');

	# nextval(), setval() and next_id() by turns
	$last = $node->safe_psql('postgres', q{
		SELECT nextval('used') \g /dev/null
		SELECT next_id(5, 'used') \g /dev/null
		SELECT setval('used', last_value + 5000000) FROM used \g /dev/null
		SELECT nextval('used') \g /dev/null
		SELECT next_id(5, 'used')});
	crash($node);
	$node->start;
	cmp_ok($node->safe_psql('postgres', $next), '>', $last, 'nextval(), setval(), next_id(), crash');

	# Under load, several times; aborted transactions count.
	my $dir = PostgreSQL::Test::Utils::tempdir;
	append_to_file("$dir/load.sql", "BEGIN;\nSELECT next_id(5, 'used') AS id \\gset\nROLLBACK;\n");
	foreach my $round (1 .. 3)
	{
		my $log = '';
		my $load = IPC::Run::start(
			[ 'pgbench', '-n', '-c', '8', '-T', '30', '-f', "$dir/load.sql",
				'-h', $node->host, '-p', $node->port, 'postgres' ],
			'>', \$log, '2>', \$log);
		my $watcher = $node->background_psql('postgres');
		my $seen = 0;
		$seen = $watcher->query_safe($next) for 1 .. 300;
		crash($node);
		eval { $watcher->quit };
		$load->finish;
		$node->start;
		cmp_ok($node->safe_psql('postgres', $next), '>', $seen, "under load, crash $round");
	}
	$node->stop;
}

# A damaged page is an error, never an ID.
{
	my $node = new_node('damaged');
	$node->safe_psql('postgres', $next);
	my $path = $node->data_dir . '/'
	  . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('used')});
	$node->stop;
	# Checksums, which clusters have since 18, would find it first.
	$node->append_conf('postgresql.conf', "ignore_checksum_failure = on\n");
	my $page = slurp_file($path);
	my ($lower, $upper, $special) = unpack 'SSS', substr($page, 12, 6);
	my $length = 41;
	my $set_line_pointer = sub {
		my (undef, $offset, $flags, $size) = @_;
		my $little_endian = unpack 'C', pack('S', 1);
		substr($_[0], 24, 4) = pack 'L', $little_endian
		  ? $offset | $flags << 15 | $size << 17
		  : $offset << 17 | $flags << 15 | $size;
	};
	my $set_header_size = sub { substr($_[0], $_[1] + 22, 1) = "\x18" };
	{
		my $same = $page;
		$set_line_pointer->($same, $upper, 1, $length);
		$set_header_size->($same, $upper);
		is($same eq $page, 1, 'the page has the form that the damages below start from');
	}
	# Each of these but the zeroes is wrong in one respect only.
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
		'tuple in the special space' => sub {
			$set_line_pointer->($_[0], $upper + 8, 1, $length);
			$set_header_size->($_[0], $upper + 8) },
		'large special space' => sub {
			my $tuple = substr($_[0], $upper, $length);
			substr($_[0], $upper - 8, $length) = $tuple;
			substr($_[0], $special - 8, 4) = substr($_[0], $special, 4);
			substr($_[0], 14, 4) = pack 'SS', $upper - 8, $special - 8;
			$set_line_pointer->($_[0], $upper - 8, 1, $length) });
	foreach my $what (sort keys %damage)
	{
		my $bad = $page;
		$damage{$what}->($bad);
		open my $file, '>:raw', $path or die;
		print $file $bad;
		close $file;
		$node->start;
		like(sqlstate_of($node, $next), qr/^XX001 page of sequence "used" is damaged/, "damaged: $what");
		like(sqlstate_of($node, q{SELECT snowflake_status('used')}), qr/^XX001 /, "status of it");
		$node->stop;
	}
	# SELECT FOR UPDATE of old versions left its transaction in the tuple's
	# xmax, which hides the row once that transaction has committed.
	my $locked = $page;
	my $flags = unpack('S', substr($page, $upper + 20, 2));
	substr($locked, $upper + 4, 4) = pack 'L', 700;
	substr($locked, $upper + 20, 2) = pack 'S', $flags & ~0x0800 | 0x0400;
	open my $file, '>:raw', $path or die;
	print $file $locked;
	close $file;
	$node->start;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM used'), 0, 'an old xmax hides the row');
	is($node->safe_psql('postgres', "SELECT next_id(5, 'used') > 0"), 't', 'next_id() works');
	# before a SELECT can set the flags
	$node->safe_psql('postgres', 'CHECKPOINT');
	$locked = slurp_file($path);
	is(unpack('L', substr($locked, $upper + 4, 4)), 0, 'the page has no xmax');
	is(unpack('S', substr($locked, $upper + 20, 2)), $flags, 'and the flags of before');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM used'), 1, 'the row shows again');
	$node->stop;
}

# Nor is a page that cannot be read at all, however often it is tried.
{
	my $node = PostgreSQL::Test::Cluster->new('checksums');
	$node->init(extra => ['--data-checksums']);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; SELECT next_id(5)');
	my $path = $node->data_dir . '/'
	  . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('next_id_seq')});
	$node->stop;
	my $page = slurp_file($path);
	substr($page, -20, 1) ^= "\x01";
	open my $file, '>:raw', $path or die;
	print $file $page;
	close $file;
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
	is(scalar(() = $stderr =~ /NOTICE:  refused/g), 3, 'a bad checksum is refused every time');
	unlike($stderr, qr/NOTICE:  ID|leak/, 'without an ID, and without a leak');
	$node->stop;
}

# A stored layout of a later version, or one that is damaged, is an error, too.
{
	my $node = new_node('layouts');
	$node->safe_psql('postgres', q{
		CREATE TABLE layouts (layout snowflake_layout);
		INSERT INTO layouts VALUES ('instagram'), ('instagram'), ('instagram');
		CHECKPOINT});
	my $path = $node->data_dir . '/'
	  . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('layouts')});
	$node->stop;
	$node->append_conf('postgresql.conf', "ignore_checksum_failure = on\n");
	my $page = slurp_file($path);
	my ($upper, $special) = unpack 'SS', substr($page, 14, 4);
	my $size = ($special - $upper) / 3;
	# The first row is last on the page.  After its length, a value has its version
	# and its text, which ends with a zero.
	substr($page, $special - $size + 28, 1) = "\x63";
	substr($page, $special - 2 * $size + 29, 1) = 'x';
	substr($page, $special - 3 * $size + 29 + length('instagram'), 1) = 'x';
	open my $file, '>:raw', $path or die;
	print $file $page;
	close $file;
	$node->start;
	foreach my $use ('layout', 'snowflake_shard(5, layout)', q{next_id(5, 'used', layout)},
		q{next_ids(5, 1, 'used', layout)})
	{
		my @errors = map { sqlstate_of($node, "SELECT $use FROM layouts WHERE ctid = '(0,$_)'") } 1 .. 3;
		like($errors[0], qr/^0A000 unsupported version 99 of type snowflake_layout/, "$use: version");
		like($errors[1], qr/^XX001 damaged value of type snowflake_layout/, "$use: text");
		like($errors[2], qr/^XX001 damaged value of type snowflake_layout/, "$use: end of the text");
	}
	$node->stop;
}

done_testing();
