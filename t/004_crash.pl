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
	# nextval() must not believe that WAL covers what follows what is
	# in the page's image, which a small file has in the WAL
	$last = $node->safe_psql('postgres', q{
		SET wal_skip_threshold = '2MB';
		BEGIN;
		CREATE SEQUENCE youngest MAXVALUE 1125899906841599;
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
	my $special = unpack 'S', substr($page, 16, 2);
	my %damage = (
		'magic number' => sub { substr($_[0], $special, 4) = "\0\0\0\0" },
		'line pointer' => sub { substr($_[0], 24, 4) = "\0\0\0\0" },
		'zeroes' => sub { $_[0] = "\0" x length $_[0] },
		'tuple header' => sub { substr($_[0], unpack('S', substr($_[0], 14, 2)) + 22, 1) = "\xff" });
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
	open my $file, '>:raw', $path or die;
	print $file $page;
	close $file;
	$node->start;
	is($node->safe_psql('postgres', "SELECT next_id(5, 'used') > 0"), 't', 'mended');
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

done_testing();
