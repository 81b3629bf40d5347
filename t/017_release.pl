# What a release says of itself: META.json keeps the rules of PGXN's Meta Spec
# 1.0.0, and all files that name the version name the same one.

use strict;
use warnings;
use FindBin;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = "$FindBin::RealBin/..";

sub is_string { return defined $_[0] && !ref $_[0] && $_[0] ne '' }
sub is_term { return is_string(@_) && $_[0] =~ m{\A[^[:space:][:cntrl:]/\\]{2,}\z} }
sub is_tag { return is_string(@_) && $_[0] =~ m{\A[^[:cntrl:]/\\]{1,256}\z} }
sub is_url { return is_string(@_) && $_[0] =~ m{\A[a-z][a-z0-9+.-]*://[^/?#]+}i }
sub is_file { return is_string(@_) && $_[0] !~ m{\A/} && -f "$root/$_[0]" }

# three numbers without leading zeros, and perhaps a word after a dash
my $number = qr/(?:0|[1-9]\d*)/;
sub is_version { return is_string(@_) && $_[0] =~ /\A$number\.$number\.$number(?:-[a-zA-Z][0-9a-zA-Z-]*)?\z/ }

sub is_range
{
	my ($range) = @_;
	return 0 if !is_string($range);
	return !grep { !($_ eq '0' || is_version(s/\A(?:[<>]=?|[!=]=)\s*//r)) } split /\s*,\s*/, $range, -1;
}

sub list { my ($check) = @_; return sub { my ($v) = @_; return !grep { !$check->($_) } ref $v eq 'ARRAY' ? @$v : $v } }

# A map's faults.  The rules say for each key whether it must be there and what
# its value is; '*' is for keys that are not named, and has a check of their own.
sub faults
{
	my ($where, $rules, $map) = @_;
	my @faults;

	return "$where is no map" if ref $map ne 'HASH';
	foreach my $key (sort keys %$rules)
	{
		push @faults, "$where lacks " . $key =~ s|!$||r if $key =~ /!$/ && !defined $map->{ $key =~ s/!$//r };
	}
	foreach my $key (sort keys %$map)
	{
		my $rule = $rules->{"$key!"} // $rules->{$key};

		next if !$rule && $key =~ /\A[xX]_/;
		if (!$rule && $rules->{'*'})
		{
			my ($check, $of_any) = @{ $rules->{'*'} };
			push @faults, "$where cannot have the key $key" if !$check->($key);
			$rule = $of_any;
		}
		push @faults,
			!$rule ? "$where cannot have the key $key"
		  : ref $rule eq 'HASH' ? faults("$where.$key", $rule, $map->{$key})
		  : $rule->($map->{$key}) ? () : "$where.$key is wrong";
	}
	return @faults;
}

# Licenses that may be given by name
my %license = map { $_ => 1 } qw(agpl_3 apache_1_1 apache_2_0 artistic_1 artistic_2 bsd freebsd gfdl_1_2 gfdl_1_3
  gpl_1 gpl_2 gpl_3 lgpl_2_1 lgpl_3_0 mit mozilla_1_0 mozilla_1_1 openssl perl_5 postgresql qpl_1_0 ssleay sun
  zlib open_source restricted unrestricted unknown);

my $spec = {
	'name!' => \&is_term,
	'version!' => \&is_version,
	'abstract!' => \&is_string,
	'maintainer!' => list(\&is_string),
	'license!' => sub {
		my ($v) = @_;
		return ref $v eq 'HASH' ? !grep { !is_url($_) } values %$v : list(sub { $license{ $_[0] } })->($v) },
	'provides!' => { '*' => [ \&is_term, {
		'file!' => \&is_file, 'version!' => \&is_version, docfile => \&is_file, abstract => \&is_string } ] },
	'meta-spec!' => { 'version!' => sub { $_[0] eq '1.0.0' }, url => \&is_url },
	description => \&is_string,
	generated_by => \&is_string,
	release_status => sub { is_string(@_) && $_[0] =~ /\A(?:stable|testing|unstable)\z/ },
	tags => list(\&is_tag),
	no_index => { file => list(\&is_string), directory => list(\&is_string) },
	prereqs => { '*' => [ sub { $_[0] =~ /\A(?:configure|build|test|runtime|develop)\z/ },
		{ '*' => [ sub { $_[0] =~ /\A(?:requires|recommends|suggests|conflicts)\z/ },
			{ '*' => [ \&is_term, \&is_range ] } ] } ] },
	resources => {
		homepage => \&is_url,
		bugtracker => { web => \&is_url, mailto => sub { is_string(@_) && $_[0] =~ /@/ } },
		repository => { url => \&is_url, web => \&is_url, type => sub { is_string(@_) && $_[0] !~ /[A-Z]/ } } } };

my $text = slurp_file("$root/META.json");
my $meta = decode_json($text);
is(join("\n", faults('META.json', $spec, $meta)), '', 'META.json keeps the rules');

# the check sees what is wrong
my @wrong = (
	[ qr/"name": "snowflake",/, '"name": "snow flake",', 'META.json.name is wrong' ],
	[ qr/"abstract": .*?\n/, '', 'META.json lacks abstract' ],
	[ qr/1\.0\.0/, '1.0', 'META.json.version is wrong' ],
	[ qr/"unstable"/, '"alpha"', 'META.json.release_status is wrong' ],
	[ qr/"license": "postgresql"/, '"license": "PostgreSQL"', 'META.json.license is wrong' ],
	[ qr/"snowflake--1\.0\.sql"/, '"snowflake.sql"', 'META.json.provides.snowflake.file is wrong' ],
	[ qr/"runtime"/, '"run"', 'META.json.prereqs cannot have the key run' ],
	[ qr/"15\.0\.0"/, '"15"', 'META.json.prereqs.runtime.requires.PostgreSQL is wrong' ],
	[ qr/"tags": \[/, '"tags": ["a/b",', 'META.json.tags is wrong' ],
	[ qr/"maintainer"/, '"author"', "META.json lacks maintainer\nMETA.json cannot have the key author" ]);
foreach my $wrong (@wrong)
{
	my ($from, $to, $fault) = @$wrong;
	(my $changed = $text) =~ s/$from/$to/ or die "nothing replaced for $fault";
	is(join("\n", faults('META.json', $spec, decode_json($changed))), $fault, "found out: $fault");
}

# One version in all files
my ($version) = $meta->{version} =~ /^(\d+\.\d+)/;
my $patch = $meta->{version} =~ s/-.*//r;
is($meta->{provides}{snowflake}{version}, $meta->{version}, 'META.json: the extension has the version of the whole');

my ($default) = slurp_file("$root/snowflake.control") =~ /^default_version = '(.*)'$/m;
is($default, $version, 'snowflake.control');
my ($data) = slurp_file("$root/Makefile") =~ /^DATA = (.*(?:\\\n.*)*)/m;
like($data, qr/--\Q$version\E\.sql\b/, 'Makefile: installs a script that leads to it');
my ($module) = slurp_file("$root/snowflake.c") =~ /\.version = "(.*)"/;
is($module, $version, 'snowflake.c: the module');
my ($changes, $date) = slurp_file("$root/CHANGELOG.md") =~ /^## (\S+) \((.*)\)$/m;
is($changes, $patch =~ s/^(\d+\.\d+)\.0$/$1/r, 'CHANGELOG.md');
my ($package) = slurp_file("$root/debian/changelog") =~ /^postgresql-snowflake \((.*)-[^-]*\)/;
is($package, $meta->{version} =~ s/-/~/r, 'debian/changelog');
is($date eq 'unreleased', $meta->{release_status} ne 'stable', 'stable, once it is released');

done_testing();
