/*-------------------------------------------------------------------------
 *
 * run.c
 *	  The ledger's command line, and the processes of "ledger run", each of
 *	  which is a session.
 *
 * A session that loses its connection connects again to where the environment
 * says that the server is, as for every client of libpq.  PGSERVICEFILE lets a
 * test move it: libpq reads that file at each connection.
 *
 * Knows nothing of how IDs are asked for and noted.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ledger.h"

static const char *const usage =
"usage: ledger run [OPTION...] LEDGER      load a server until SIGTERM; writes LEDGER.*\n"
"  The environment says where the server is, as for psql: PGHOST, PGSERVICEFILE...\n"
"  It needs CREATE TABLE ledger_rows (id bigint), and the sequences.\n"
"  --sessions N              4 if not given\n"
"  --sequences NAME[=LAYOUT],...    next_id_seq if not given; a layout with Instagram's fields\n"
"  --max-lead MS             how far an ID's time may be ahead of the server's clock; 1000\n"
"  --seed N                  1 if not given\n"
"  --quiet                   only SELECT, which writes no WAL of its own\n"
"  --bulk                    also many IDs at a time, COPY, rewrites of tables and sequences,\n"
"                            and calls of snowflake_advance()\n"
"       ledger check [--steps LOG] [--pauses LOG] LEDGER...    report what was found; status 1 if there is a fault\n"
"  --steps LOG               when clocks were set, as lines of two times; excuses calls at that time\n"
"  --pauses LOG              when an old primary that had been paused went on; excuses disorder\n"
"       ledger selftest                    plant faults, and see that they are found\n";

static volatile sig_atomic_t stopping;

static void
doze(int64_t nsecs)
{
	struct timespec delay = {nsecs / NSECS, nsecs % NSECS};

	nanosleep(&delay, NULL);
}

static void
ignore_notice(void *arg, const char *message)
{
	(void) arg;
	(void) message;
}

/*
 * Be a session until killed.  It connects to where the server is now.
 */
static void
run_session(const Options *options, Ledger *ledger, int number, pid_t parent)
{
	static Session session;
	int64_t		pause;

	session.options = options;
	session.ledger = ledger;
	session.number = number;
	session.dice[0] = number;
	session.dice[1] = options->seed;
	session.dice[2] = options->seed >> 16;
	while (getppid() == parent)
	{
		session.conn = PQconnectdb("application_name=ledger connect_timeout=5");
		PQsetNoticeProcessor(session.conn, ignore_notice, NULL);
		pause = NSECS / 100 + random_below(&session, NSECS / 50);
		if (PQstatus(session.conn) == CONNECTION_OK)
		{
			/* The next turn may be that of another session of the server. */
			while (take_turn(&session) && getppid() == parent &&
				   !(options->bulk && random_below(&session, 100) == 0))
				;
			pause = random_below(&session, NSECS / 100);
		}
		PQfinish(session.conn);
		doze(pause);
	}
	exit(0);
}

static void
stop(int signal)
{
	(void) signal;
	stopping = true;
}

static void
split_sequences(Options *options, char *list)
{
	options->sequence_count = 0;
	for (char *name = strtok(list, ","); name != NULL; name = strtok(NULL, ","))
	{
		if (options->sequence_count == MAX_SEQUENCES || strlen(name) > 200)
			errx(2, "too many sequences, or too long a name: \"%s\"", name);
		options->sequences[options->sequence_count++] = name;
	}
}

static void
read_options(Options *options, Ledger *ledger, int argc, char **argv)
{
	const struct option long_options[] = {
		{"sessions", required_argument, NULL, 'n'},
		{"sequences", required_argument, NULL, 's'},
		{"max-lead", required_argument, NULL, 'l'},
		{"seed", required_argument, NULL, 'S'},
		{"quiet", no_argument, &options->quiet, true},
		{"bulk", no_argument, &options->bulk, true},
		{NULL, 0, NULL, 0}
	};
	int64_t		max_lead = 1000;
	int			option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
	{
		if (option == 'n')
			options->sessions = atoi(optarg);
		else if (option == 's')
			split_sequences(options, optarg);
		else if (option == 'l')
			max_lead = atoll(optarg);
		else if (option == 'S')
			options->seed = atoi(optarg);
		else if (option != 0)
			errx(2, "\"ledger help\" shows the options");
	}
	if (optind != argc - 1 || options->sessions < 1 || options->sequence_count == 0)
		errx(2, "run needs sessions, sequences and the name of a ledger");
	open_ledger(ledger, argv[optind], options->sequence_count);
	ledger->max_lead = max_lead * 1000;
}

/*
 * run [OPTION...] LEDGER: start the sessions, and kill them when told to stop.
 * None ends by itself unless it fails.
 */
static int
run(int argc, char **argv)
{
	Options		options = {.sessions = 4, .sequences = {"next_id_seq"}, .sequence_count = 1, .seed = 1};
	struct sigaction action = {.sa_handler = stop};
	Ledger		ledger;
	pid_t	   *sessions;
	pid_t		self = getpid();
	pid_t		parent = getppid();
	bool		failed = false;

	read_options(&options, &ledger, argc, argv);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);

	sessions = calloc(options.sessions, sizeof(pid_t));
	for (int i = 0; i < options.sessions; i++)
	{
		sessions[i] = fork();
		if (sessions[i] == 0)
			run_session(&options, &ledger, i, self);
		if (sessions[i] < 0)
			err(2, "could not fork");
	}

	while (!failed && !stopping && getppid() == parent)
	{
		doze(NSECS / 100);
		failed = waitpid(-1, NULL, WNOHANG) != 0;
	}
	for (int i = 0; i < options.sessions; i++)
		kill(sessions[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return failed ? 2 : 0;
}

int
main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "run") == 0)
		return run(argc - 1, argv + 1);
	if (strcmp(verb, "check") == 0)
		return check(argc - 1, argv + 1);
	if (strcmp(verb, "selftest") == 0)
		return selftest();
	fputs(usage, stderr);
	return 2;
}
