# What the documents refer to is there: figures of another document, files and
# headings.  The reference has all messages of the sources and all functions.

use SnowflakeTest;

# The files that match some patterns, by their paths in the project
sub files
{
	return map { s/^\Q$top\E\///r } map { glob("$top/$_") } @_;
}

# The anchors of a document's headings
sub anchors
{
	my ($file) = @_;
	return map { (lc =~ s/[^\w -]//gr =~ s/ /-/gr => 1) } slurp_file($file) =~ /^#+ (.*)$/gm;
}

my $reference = slurp_file("$top/doc/reference.md");

# The messages of the sources, with their SQLSTATEs
my ($headers) = run_command([ 'pg_config', '--includedir-server' ]);
my %sqlstates = map { tr/', //dr }
  slurp_file("$headers/utils/errcodes.h") =~ /^#define (ERRCODE_\w+) MAKE_SQLSTATE\((.*)\)$/mg;
foreach my $source (files('*.c', 'src/*.c'))
{
	my $code = slurp_file("$top/$source");
	while ($code =~ /(?:errcode\((\w+).*\),\s+)?errmsg(?:_plural)?\("((?:[^"\\]|\\.)*)"/g)
	{
		my $sqlstate = $sqlstates{ $1 // '' } // '';
		my $message = $2 =~ s/\\"/"/gr =~ s/%(lld|\.\*s|[dsu])/.../gr;
		like($reference, qr/`\Q$message\E`(?:,\s+`[^`]*`)*\s+\([^)]*$sqlstate/,
			"doc/reference.md explains the message \"$message\" ($sqlstate) of $source");
	}
}

# The functions of the SQL scripts, with the columns that they return.  Those whose
# schema is snowflake_admin are only for the others of that extension, and PostgreSQL
# calls some itself, for types, casts, the planner and COPY.
foreach my $script (files('snowflake--*.sql', 'admin/snowflake_admin--*.sql'))
{
	my $code = slurp_file("$top/$script");
	while ($code =~ /^CREATE PROCEDURE (?:\@extschema\@\.)?(\w+)\(\s*(.*?)\)\nLANGUAGE/gms)
	{
		my $signature = "CALL $1(" . join(', ', split /,\s+/, $2) . ')';
		like($reference =~ s/\n +/ /gr, qr/^ *\Q$signature\E$/m, "doc/reference.md has all of $signature");
	}
	my %of_casts = map { ($_ => 1) } $code =~ /^CREATE CAST .* WITH FUNCTION (\w+)\(/mg;
	while ($code =~ /^CREATE FUNCTION (?:\@extschema\@\.)?(\w+)\(\s*(.*?)\)\sRETURNS (.*?)$/gms)
	{
		my ($name, $result, @arguments) = ($1, $3, split /,\s+/, $2);
		next if $of_casts{$name} || "@arguments $result" =~ /\b(internal|cstring|bytea)\b/;
		my @columns = map { /^OUT (.*)/ } @arguments;
		push @columns, split /, /, $1 if $result =~ s/^TABLE \((.*)\)/SETOF record/;
		my $signature = "$name(" . join(', ', grep { !/^OUT / } @arguments) . ') → ' . $result =~ s/SETOF/setof/r;
		my ($section) = $reference =~ /^    \Q$signature\E\n(.*?)(?=^#|\z)/ms;
		is(join(', ', defined $section ? grep { index($section, "`$_`") < 0 } @columns : 'everything'), '',
			"doc/reference.md has all of $signature");
	}
}

# The figures of the README and of the picture are those of one run, which
# doc/performance.md has.
sub ratios
{
	my ($file, $table, $column) = @_;
	my ($rows) = slurp_file("$top/$file") =~ /^<!-- script\/bench: $table -->\n(.*?)^<!-- end -->$/ms;
	return map { my @cells = split / \| /; $cells[$column] =~ /^([\d.]+)/ ? "$cells[0] $1" : () }
	  $rows =~ /^\| (\S.*) \|$/gm;
}
my @bulk = ratios('README.md', 'bulk', 2);
cmp_ok(scalar @bulk, '>', 1, 'README.md compares the candidates of the benchmark');
my %ratio = map { ($_ => 1) } ratios('doc/performance.md', 'bulk', 2);
is(join(', ', grep { !$ratio{$_} } @bulk), '', 'README.md has ratios of doc/performance.md');
IPC::Run::run([ 'perl', "$top/bench/chart" ], '<', "$top/doc/performance.md", '>', \my $chart);
is($chart, slurp_file("$top/doc/img/cost.svg"), 'bench/chart draws doc/img/cost.svg from doc/performance.md');

# A pod's shard
my ($shard) = slurp_file("$top/doc/scaling.md") =~ /snowflake\.shard="(\$.*?)"/;
is(`HOSTNAME=my-db-7 sh -c 'echo "$shard"'`, "107\n", "doc/scaling.md takes the shard from a pod's name");

# Guides whose tests name the sections that they run
my $tests = join '', map { slurp_file("$top/$_") } files('test/*/*.pl');
foreach my $guide ('doc/ranges.md', 'doc/portable.md')
{
	my %sections = map { $_->{section} => 1 } grep { $_->{language} eq 'sql' } blocks($guide);
	is(join(', ', grep { index($tests, "'$_'") < 0 } sort keys %sections), '', "a test runs each section of $guide");
}

foreach my $file (files('*.md', 'doc/*.md'))
{
	my $text = slurp_file("$top/$file") =~ s/^```.*?^```//gmsr;
	my @broken;
	while ($text =~ /\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)
	{
		my ($path, $heading) = ($1, $2);
		my $target = "$top/" . ($path eq '' ? $file : $file =~ m{^doc/} ? "doc/$path" : $path);
		my %anchors = defined $heading && -f $target ? anchors($target) : ();
		push @broken, "$path#" . ($heading // '') if !-e $target || (defined $heading && !$anchors{$heading});
	}
	push @broken,
		grep { !-e "$top/$_" } $text =~ m{`((?:admin|bench|expected|lab|portable|script|specs|sql|src|test)/[\w./-]+)}g;
	is("@broken", '', "the links and file names in $file lead somewhere");
}

done_testing();
