# META.json names files that exist, and all files that name the version name the
# same one.  The workflows call programs as these explain themselves.  make says what to
# install, or to set, where the headers of PostgreSQL's server are missing.

use JSON::PP;
use SnowflakeTest;

# Return what the first match of a pattern in a file captures.
sub found
{
	my ($file, $pattern) = @_;
	return (slurp_file("$top/$file") =~ $pattern)[0] // 'nothing';
}

my $meta = decode_json(slurp_file("$top/META.json"));
is(join(' ', grep { !$meta->{$_} } qw(name version abstract maintainer license provides meta-spec)), '',
	'META.json has all keys that PGXN requires');
my @extensions = map { $meta->{provides}{$_} } 'snowflake', 'snowflake_admin';
ok(-f "$top/$_", "META.json names a file that exists: $_") foreach map { ($_->{file}, $_->{docfile}) } @extensions;

# 1.2.3, or 1.2.3-beta1 before it; the SQL script has 1.2
my $version = $meta->{version};
my ($release, $script) = $version =~ /^((\d+\.\d+)\.\d+)(?:-[a-z]\w*)?$/
  or die "META.json: \"$version\" is no version";

is($_->{version}, $version, "$_->{file} has the version of the distribution in META.json") foreach @extensions;
foreach my $extension ('snowflake', 'admin/snowflake_admin')
{
	is(found("$extension.control", qr/^default_version = '(.*)'$/m), $script,
		"$extension.control has the version of META.json");
	like(found('Makefile', qr/^((?:DATA|DATA_built) = \Q$extension\E--.*(?:\\\n.*)*)/m),
		qr/\s\Q$extension\E--(?:\S+--)?\Q$script\E\.sql\b/,
		"the Makefile installs a script that leads to the version of $extension.control");
}
is(found('snowflake.c', qr/^#define SNOWFLAKE_VERSION\s+"(.*)"/m), $version, 'snowflake.c has the version of META.json');
is(found('doc/reference.md', qr/^`snowflake_version\(\)` → `(.*)`/m), $version, 'the reference has the version of META.json');
is(found('CHANGELOG.md', qr/^## (\S+) \(.*\)$/m), $release, 'CHANGELOG.md begins with the version of META.json');
is(found('debian/changelog', qr/^postgresql-snowflake \((.*)-[^-]*\)/), $version =~ s/-/~/r,
	'debian/changelog begins with the version of META.json');
is(found('CHANGELOG.md', qr/^## \S+ \((.*)\)$/m) eq 'unreleased', $meta->{release_status} ne 'stable',
	'META.json calls the version stable if CHANGELOG.md has a date for it, and only then');
is(found('debian/changelog', qr/\) (\S+);/) eq 'UNRELEASED', $meta->{release_status} ne 'stable',
	'META.json calls the version stable if debian/changelog names a suite for it, and only then');

# The workflows, which the archives of a release do not have
foreach my $file (map { s/^\Q$top\E\///r } glob("$top/.github/workflows/*.yml"))
{
	my $workflow = slurp_file("$top/$file");

	foreach my $command ($workflow =~ /^\h*(?:- )?run: (?:sudo )?((?:script|lab)\/.*)$/mg)
	{
		my ($script, @arguments) = split / /, $command;
		my ($usage) = -x "$top/$script" ? run_command([ "$top/$script", '--help' ]) : '';
		is(join(' ', grep { $usage !~ /^usage: .*\Q$_\E\b/m } grep { /^-/ } @arguments), '',
			"$file: $script explains the options of $command");
		isnt($usage, '', "$file: $script is there");
	}
}

# No pg_config, and Debian's pg_config for clients.  The make that runs the tests passes
# its own PG_CONFIG on.
delete @ENV{ 'MAKEFLAGS', 'MAKELEVEL', 'MFLAGS' };
my $directory = PostgreSQL::Test::Utils::tempdir;
write_file("$directory/pg_config", "#!/bin/sh\necho $directory/pgxs.mk\n");
chmod 0755, "$directory/pg_config" or die "chmod: $!";
foreach my $case (
	[ '/nonexistent/pg_config', '"/nonexistent/pg_config --pgxs" failed' ],
	[ "$directory/pg_config", "$directory/pgxs.mk is missing" ])
{
	my ($config, $problem) = @$case;

	IPC::Run::run([ 'make', '--no-print-directory', '-C', $top, "PG_CONFIG=$config" ], '>&', \my $printed);
	is($printed =~ s/^Makefile:\K\d+/LINE/r, "Makefile:LINE: *** $problem: install the headers of PostgreSQL's server "
		  . '(in Debian, the package postgresql-server-dev-NN for major version NN), '
		  . "or set PG_CONFIG to the pg_config of an installation that has them.  Stop.\n",
		"make prints one message: $problem");
}

done_testing();
