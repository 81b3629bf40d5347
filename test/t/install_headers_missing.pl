# make says what to install, or to set, where the headers of PostgreSQL's server are missing.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

# The make that runs the tests passes its PG_CONFIG on.
delete @ENV{ 'MAKEFLAGS', 'MAKELEVEL', 'MFLAGS' };

# What make prints, without the number of the line
sub printed_by_make
{
	my ($config) = @_;
	my $printed;

	IPC::Run::run([ 'make', '--no-print-directory', '-C', $top, "PG_CONFIG=$config" ], '>&', \$printed);
	return $printed =~ s/^Makefile:\K\d+/LINE/r;
}

my $advice = q{install the headers of PostgreSQL's server }
  . '(in Debian, the package postgresql-server-dev-NN for major version NN), '
  . "or set PG_CONFIG to the pg_config of an installation that has them.  Stop.\n";
is(printed_by_make('/nonexistent/pg_config'), qq{Makefile:LINE: *** "/nonexistent/pg_config --pgxs" failed: $advice},
	'make without pg_config prints one message');

# Debian has a pg_config for clients, too.
my $directory = PostgreSQL::Test::Utils::tempdir;
write_file("$directory/pg_config", "#!/bin/sh\necho $directory/pgxs.mk\n");
chmod 0755, "$directory/pg_config" or die "chmod: $!";
is(printed_by_make("$directory/pg_config"), "Makefile:LINE: *** $directory/pgxs.mk is missing: $advice",
	'make without the makefiles of the server prints one message');

done_testing();
