# Prometheus: doc/administration.md's query runs in postgres_exporter, and promtool
# evaluates the document's alert rules on what the exporter returns.
#
# Debian's packages are unpacked, as installing them would start services.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use SnowflakeTest;

my $packages = unpack_packages(qw(prometheus prometheus-postgres-exporter))
  or plan skip_all => 'prometheus and prometheus-postgres-exporter cannot be had';
my ($query, $rules, $left_out) = map { $_->{code} } blocks_in('doc/administration.md', 'Prometheus');
my $dir = PostgreSQL::Test::Utils::tempdir();
append_to_file("$dir/queries.yml", $query);
append_to_file("$dir/rules.yml", $rules);

# A sequence for each state, one whose layout tells no time, and one that the
# exporter may not read.
my $node = server_in_utc('monitored');
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE ahead;
	CREATE SEQUENCE refuses;
	CREATE SEQUENCE timeless;
	CREATE SEQUENCE hidden;
	SELECT snowflake_alter_sequence('ahead'), snowflake_alter_sequence('refuses'), snowflake_alter_sequence('timeless', 'trace'),
		snowflake_alter_sequence('hidden');
	SELECT next_id(5);
	SELECT setval('refuses', (snowflake_min_id(now() + interval '1 day') >> 23) << 10);
	-- ahead for as long as this test may take
	ALTER SYSTEM SET snowflake.max_lead = '1h';
	SELECT setval('ahead', (snowflake_min_id(now() + interval '30 min') >> 23) << 10);
	CREATE ROLE exporter LOGIN IN ROLE pg_monitor;
	GRANT SELECT ON ahead, refuses, timeless TO exporter});
$node->append_conf('pg_hba.conf', "local all all trust\n");
$node->reload;

my $port = PostgreSQL::Test::Cluster::get_free_port();
local $ENV{DATA_SOURCE_NAME} = 'user=exporter dbname=postgres host=' . $node->host . ' port=' . $node->port;
my $output = '';
my $exporter = IPC::Run::start(
	[
		"$packages/usr/bin/prometheus-postgres-exporter", "--web.listen-address=127.0.0.1:$port",
		"--extend.query-path=$dir/queries.yml", '--disable-default-metrics', '--disable-settings-metrics'
	], '<', \undef, '>&', \$output);

END
{
	my $status = $?;
	$exporter->kill_kill(grace => 1) if defined $exporter;
	$? = $status;
}

my $metrics;
my $scrape = q{use IO::Socket::INET; my $s = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or exit 1;
	print $s "GET /metrics HTTP/1.0\r\n\r\n"; print while <$s>};
ok(wait_for(sub {
		$exporter->pump_nb;
		($metrics) = run_command([ $^X, '-e', $scrape, $port ]);
		return $metrics =~ /^snowflake_/m }), 'postgres_exporter runs the query') or diag($output, $metrics);
my %value = $metrics =~ /^snowflake_sequences_(\w+\{.*sequence="\w+").*\} (\S+)$/mg;
%value = map { /^(\w+)\{.*sequence="(\w+)"/; ("$2 $1" => $value{$_}) } keys %value;

foreach my $expected (
	[ 'next_id_seq', 0, 0, 0 ], [ 'timeless', 0, 0, 0 ], [ 'ahead', 1, 0, 0 ], [ 'refuses', 0, 1, 0 ], [ 'hidden', 0, 0, 1 ])
{
	my ($sequence, @flags) = @$expected;
	is(join(' ', map { $value{"$sequence $_"} // 'none' } 'ahead', 'refuses', 'no_privilege'), "@flags",
		"$sequence has the metrics ahead, refuses and no_privilege that belong to its state");
}
cmp_ok($value{'ahead last_timestamp_seconds'}, '>', time() + 60, 'last_timestamp_seconds is the time of the last ID');
cmp_ok($value{'ahead lead_seconds'}, '>', 60, 'lead_seconds of a sequence ahead of the clock is its lead');
is($node->safe_psql('postgres', "SELECT abs(extract(epoch FROM expires) - $value{'next_id_seq expires_seconds'}) < 1
		FROM snowflake_sequences() WHERE sequence = 'next_id_seq'::regclass"), 't', 'expires_seconds is the end of the layout');
is($value{'timeless expires_seconds'}, 'NaN', 'a layout without an end has no expires_seconds');

# What the exporter returned, for promtool to repeat at each step of its time,
# which begins in 1970
my $series = '';
while ($metrics =~ /^(snowflake_.*) (\S+)$/mg)
{
	$series .= "  - series: '$1'\n    values: '" . join(' ', ($2) x 80) . "'\n";
}
my $year = 8760;

# The alerts that promtool's evaluation of the rules gives after so many hours,
# of this rule.
sub alerts
{
	my ($rule, $hours, @sequences) = @_;
	my ($severity) = $rules =~ /alert: $rule\n(?:.*\n)*?.*severity: (\w+)/;
	my $interval = $hours < $year ? '1m' : "${year}h";
	my ($server) = $metrics =~ /^snowflake_.*(server="[^"]*")/m;
	my $labels = "severity: $severity, datname: postgres, " . ($server =~ s/=/: /r);
	my $expected = join '', map { "      - exp_labels: {$labels, sequence: $_}\n" } @sequences;
	my $file = "$dir/$rule-$hours.yml";

	append_to_file($file, "rule_files: [rules.yml]\nevaluation_interval: $interval\ntests:\n- interval: $interval\n"
		  . "  input_series:\n$series  alert_rule_test:\n  - eval_time: " . ($hours < $year ? int($hours * 60) . 'm' : "${hours}h")
		  . "\n    alertname: $rule\n    exp_alerts:" . ($expected ? "\n$expected" : " []\n"));
	command_ok([ "$packages/usr/bin/promtool", 'test', 'rules', $file ], "$rule after $hours hours fires for: " . (join(', ', @sequences) || 'none'));
	return;
}

command_ok([ "$packages/usr/bin/promtool", 'check', 'rules', "$dir/rules.yml" ], 'promtool accepts the rules');
alerts('SnowflakeRefuses', 0, 'refuses');
alerts('SnowflakeAhead', 0);
alerts('SnowflakeAhead', 0.1, 'ahead');
alerts('SnowflakeLead', 0);
alerts('SnowflakeLead', 0.1, 'ahead', 'refuses');
alerts('SnowflakeNotWatched', 0.1);
alerts('SnowflakeNotWatched', 0.2, 'hidden');
alerts('SnowflakeExpires', 74 * $year);
alerts('SnowflakeExpires', 75 * $year, 'next_id_seq', 'ahead', 'refuses', 'hidden');

# A sequence that the rule leaves out, of the one server that there is here
my ($server) = $metrics =~ /^snowflake_.*(server="[^"]*")/m;
my $expression = $left_out =~ s/instance="[^"]*", datname="app", sequence="\w+"/$server, datname="postgres", sequence="refuses"/r;
my $rules_with = $rules =~ s/expr: snowflake_sequences_refuses == 1\n/$expression/r;
isnt($rules_with, $rules, 'the rule has the expression that is changed');
append_to_file("$dir/without.yml", $rules_with);
command_ok([ "$packages/usr/bin/promtool", 'check', 'rules', "$dir/without.yml" ], 'promtool accepts a rule that leaves one sequence out');
append_to_file("$dir/left_out.yml", "rule_files: [without.yml]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n"
	  . "  input_series:\n$series  alert_rule_test:\n  - eval_time: 0m\n    alertname: SnowflakeRefuses\n    exp_alerts: []\n");
command_ok([ "$packages/usr/bin/promtool", 'test', 'rules', "$dir/left_out.yml" ], 'SnowflakeRefuses does not fire for the sequence that was left out');

# When nothing comes from any server
append_to_file("$dir/nothing.yml", <<'EOS');
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series: []
  alert_rule_test:
  - eval_time: 12m
    alertname: SnowflakeNotWatched
    exp_alerts:
    - exp_labels: {severity: warning}
EOS
command_ok([ "$packages/usr/bin/promtool", 'test', 'rules', "$dir/nothing.yml" ], 'SnowflakeNotWatched fires if there is no metric at all');

$node->stop;
done_testing();
