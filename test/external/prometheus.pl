# Prometheus: doc/administration.md's query runs in postgres_exporter, and promtool
# evaluates the document's alert rules on what the exporter returns.
#
# Debian's packages are unpacked, as installing them would start services.

use HTTP::Tiny;
use SnowflakeTest;

my $packages = PostgreSQL::Test::Utils::tempdir();
plan skip_all => 'prometheus and prometheus-postgres-exporter cannot be had'
  if system("cd '$packages' && apt-get -qq download prometheus prometheus-postgres-exporter >&2"
	  . ' && for i in *.deb; do dpkg -x "$i" . || exit; done');
my ($query, $rules) = map { $_->{code} } blocks_in('doc/administration.md', 'Prometheus');
my $dir = PostgreSQL::Test::Utils::tempdir();
append_to_file("$dir/queries.yml", $query);
append_to_file("$dir/rules.yml", $rules);

# A table whose sequence refuses
my $node = server_in_utc('monitored');
$node->safe_psql('postgres', q{
	CREATE EXTENSION snowflake_admin CASCADE;
	CREATE SEQUENCE refuses;
	SELECT snowflake_alter_sequence('refuses');
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(5, 'refuses'));
	SELECT setval('refuses', (snowflake_min_id(now() + interval '1 day') >> 23) << 10);
	CREATE ROLE exporter LOGIN;
	GRANT pg_monitor, pg_read_all_data TO exporter});
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
ok(wait_for(sub {
		$exporter->pump_nb;
		$metrics = HTTP::Tiny->new(no_proxy => '127.0.0.1')->get("http://127.0.0.1:$port/metrics")->{content};
		return $metrics =~ /^snowflake_/m }), 'postgres_exporter runs the query') or diag($output, $metrics);
my %problems = $metrics =~ /^snowflake_check_problems\{.*severity="(\w+)".*\} (\S+)$/mg;
is_deeply(\%problems, { error => 1, warning => 0 }, 'the metrics count the sequence that refuses as an error')
  or diag($metrics);
like($metrics, qr/^snowflake_shard_used\{datname="postgres",.*shard="5"\} 1$/m, '... and name the shard of a default')
  or diag($metrics);

command_ok([ "$packages/usr/bin/promtool", 'check', 'rules', "$dir/rules.yml" ], 'promtool accepts the rules');

# A rule, minutes with metrics, and the labels of the alert if it fires.  Nothing is watched if no
# database is, or only another one.
my ($error, $warning) = map { qq(snowflake_check_problems{datname="app", severity="$_"}) } 'error', 'warning';
my ($one, $two, $three) = map { qq(snowflake_shard_used{instance="$_->[0]", datname="app", shard="$_->[1]"}) }
  [ 's1', 2 ], [ 's2', 2 ], [ 's3', 3 ];
my $case_number = 0;
foreach my $case (
	[ 'SnowflakeError', 0, $error, 'datname: app, severity: critical' ],
	[ 'SnowflakeError', 1, $warning, '' ],
	[ 'SnowflakeWarning', 1, $warning, '' ],
	[ 'SnowflakeWarning', 6, $warning, 'datname: app, severity: warning' ],
	[ 'SnowflakeNotWatched', 12, $error, '' ],
	[ 'SnowflakeNotWatched', 13, '', 'datname: app, severity: warning' ],
	[ 'SnowflakeNotWatched', 13, 'snowflake_check_problems{datname="other", severity="error"}',
		'datname: app, severity: warning' ],
	[ 'SnowflakeSharedShard', 6, "$one $two $three", "shard: '2', severity: critical" ],
	[ 'SnowflakeSharedShard', 6, "$one $three", '' ])
{
	my ($rule, $minutes, $metrics, $alert) = @$case;
	my $series = join ', ', map { "{series: '$_', values: '1x30'}" } $metrics =~ /\w+\{.*?\}/g;
	my $expected = $alert && "{exp_labels: {$alert}}";
	my $test = "$dir/case" . ++$case_number . '.yml';

	append_to_file($test, <<EOC);
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series: [$series]
  alert_rule_test: [{eval_time: ${minutes}m, alertname: $rule, exp_alerts: [$expected]}]
EOC
	command_ok([ "$packages/usr/bin/promtool", 'test', 'rules', $test ],
		"$rule after $minutes minutes of $metrics: {$alert}");
}

$node->stop;
done_testing();
