/*-------------------------------------------------------------------------
 *
 * run.c
 *	  The processes of "ledger run", each of which is a session.
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

#include "session.h"

static State *state;

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

static void
disconnect(Session *session)
{
	PQfinish(session->conn);
	session->conn = NULL;
}

static bool
learn_wal_level(Session *session)
{
	PGresult   *result = PQexec(session->conn, "SHOW wal_level");
	bool		learned = PQresultStatus(result) == PGRES_TUPLES_OK;

	if (learned)
		snprintf(session->wal_level, sizeof(session->wal_level), "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	return learned;
}

/*
 * Connect to where the server is now.  Returns false if it is not there.
 */
static bool
reconnect(Session *session)
{
	/* An errand must not wait for a session that waits for it. */
	const char *settings = session->number >= session->options->sessions ? "-c lock_timeout=200ms" :
		session->number % 2 == 0 ? session->options->half_settings : "";
	const char *keywords[] = {"dbname", "options", "application_name", "connect_timeout", NULL};
	const char *values[] = {session->database, settings, "ledger", "5", NULL};

	disconnect(session);
	session->conn = PQconnectdbParams(keywords, values, 0);
	if (PQstatus(session->conn) == CONNECTION_OK)
		PQsetNoticeProcessor(session->conn, ignore_notice, NULL);
	else
		disconnect(session);
	if (session->conn != NULL && session->options->nextvals > 0 && !learn_wal_level(session))
		disconnect(session);
	return session->conn != NULL;
}

/*
 * Carry out a command that is none of the ledger's calls, and so may fail.
 * Counts it by a name if it did not.
 */
static bool
carry_out(Session *session, const char *name, const char *command)
{
	bool		done = PQsendQuery(session->conn, command);
	PGresult   *result;

	while (await_result(session) && (result = PQgetResult(session->conn)) != NULL)
	{
		done = done && (PQresultStatus(result) == PGRES_COMMAND_OK ||
						PQresultStatus(result) == PGRES_TUPLES_OK);
		PQclear(result);
	}
	if (done)
		tally(state, state->errands, name, 1);
	else
		disconnect(session);
	return done;
}

/*
 * Copy the session's database, copy_N, so that the session can continue in the
 * copy.  It does not use the original again, so all copies of a sequence are
 * one to the ledger.  Nor does it use a copy unless the server said that it is
 * there; the next try takes the same number.
 */
static void
copy_database(Session *session, int *copy)
{
	const char *strategy = random_below(session, 2) ? "WAL_LOG" : "FILE_COPY";
	char		drop_previous[64];
	char		drop_remains[64];
	char		name[64];
	char		create[256];

	snprintf(drop_previous, sizeof(drop_previous), "DROP DATABASE IF EXISTS \"copy_%d\"", *copy - 1);
	snprintf(drop_remains, sizeof(drop_remains), "DROP DATABASE IF EXISTS copy_%d", *copy + 1);
	snprintf(name, sizeof(name), "CREATE DATABASE %s", strategy);
	snprintf(create, sizeof(create), "CREATE DATABASE copy_%d TEMPLATE copy_%d STRATEGY %s",
			 *copy + 1, *copy, strategy);
	session->database[0] = '\0';
	if (reconnect(session) &&
		carry_out(session, "DROP DATABASE", drop_previous) &&
		carry_out(session, "DROP DATABASE", drop_remains) &&
		carry_out(session, name, create))
		++*copy;
	disconnect(session);
}

/*
 * Be a session until told to stop.  The first ones ask for IDs, then there are
 * those with an errand, and one that asks for IDs in a copied database.
 */
static void
run_session(const Options *options, Ledger *ledger, int number, pid_t parent)
{
	static Session session;
	const char *errand = number >= options->sessions ? options->errands[number - options->sessions] : NULL;
	bool		in_copies = number == options->sessions + options->errand_count;
	int			copy = 0;

	session.options = options;
	session.ledger = ledger;
	session.number = number;
	session.dice[0] = number;
	session.dice[1] = options->seed;
	session.dice[2] = options->seed >> 16;
	while (!state->stopping && getppid() == parent)
	{
		if (in_copies)
		{
			if (random_below(&session, 100) < options->copies)
				copy_database(&session, &copy);
			snprintf(session.database, sizeof(session.database), "copy_%d", copy);
		}
		if (session.conn == NULL && !reconnect(&session))
			doze(NSECS / 100 + random_below(&session, NSECS / 50));
		else if (errand != NULL)
		{
			doze(random_below(&session, atoi(errand) * 2) * (NSECS / 1000));
			(void) carry_out(&session, strchr(errand, ':') + 1, strchr(errand, ':') + 1);
		}
		else if (!take_turn(&session) || (options->bulk && random_below(&session, 100) == 0))
		{
			/* The next turn is that of another session of the server. */
			disconnect(&session);
			doze(random_below(&session, NSECS / 100));
		}
	}
	disconnect(&session);
	exit(0);
}

static void
stop(int signal)
{
	(void) signal;
	state->stopping = true;
}

static int64_t
number_argument(const char *text, int64_t min, int64_t max)
{
	char	   *end;
	long long	number = strtoll(text, &end, 10);

	if (end == text || *end != '\0' || number < min || number > max)
		errx(2, "\"%s\" is not a number from %" PRId64 " to %" PRId64, text, min, max);
	return number;
}

static void
split_sequences(Options *options, char *list)
{
	options->sequence_count = 0;
	for (char *name = strtok(list, ","); name != NULL; name = strtok(NULL, ","))
	{
		if (options->sequence_count == MAX_SEQUENCES / 2 || strlen(name) > 200)
			errx(2, "too many sequences, or too long a name: \"%s\"", name);
		options->sequences[options->sequence_count++] = name;
	}
	if (options->sequence_count == 0)
		errx(2, "no sequence is named");
}

/*
 * run [OPTION...] LEDGER: start the sessions, and wait until they have stopped.
 */
int
run(int argc, char **argv)
{
	Options		options = {.sessions = 4, .sequences = {"next_id_seq"}, .sequence_count = 1,
	.half_settings = "", .seed = 1};
	const struct option long_options[] = {
		{"sessions", required_argument, NULL, 'n'},
		{"sequences", required_argument, NULL, 's'},
		{"max-lead", required_argument, NULL, 'l'},
		{"half", required_argument, NULL, 'h'},
		{"seed", required_argument, NULL, 'S'},
		{"advance", required_argument, NULL, 'a'},
		{"nextval", required_argument, NULL, 'v'},
		{"every", required_argument, NULL, 'e'},
		{"quiet", no_argument, &options.quiet, true},
		{"bulk", no_argument, &options.bulk, true},
		{"copies", required_argument, NULL, 'c'},
		{NULL, 0, NULL, 0}
	};
	struct sigaction action = {.sa_handler = stop};
	Ledger		ledger;
	int64_t		max_lead = 1000;
	pid_t		self = getpid();
	pid_t		parent = getppid();
	int			option;
	int			running;
	int			child_status;
	int			status = 0;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
	{
		if (option == 'n')
			options.sessions = number_argument(optarg, 1, 1000);
		else if (option == 's')
			split_sequences(&options, optarg);
		else if (option == 'l')
			max_lead = number_argument(optarg, 0, INT64_MAX / 1000);
		else if (option == 'h')
			options.half_settings = optarg;
		else if (option == 'a')
			options.advances = number_argument(optarg, 0, 100);
		else if (option == 'c')
			options.copies = number_argument(optarg, 1, 100);
		else if (option == 'v')
			options.nextvals = number_argument(optarg, 0, 100);
		else if (option == 'S')
			options.seed = number_argument(optarg, 0, INT32_MAX);
		else if (option == 'e' && options.errand_count < MAX_NAMES - 1 &&
				 atoi(optarg) > 0 && strchr(optarg, ':') != NULL)
			options.errands[options.errand_count++] = optarg;
		else if (option != 0)
			errx(2, "\"ledger help\" shows the options");
	}
	if (optind != argc - 1)
		errx(2, "run needs the name of a ledger");

	open_ledger(&ledger, argv[optind], options.sequence_count * (options.copies > 0 ? 2 : 1),
				options.nextvals > 0);
	ledger.max_lead = max_lead * 1000;
	state = ledger.state;
	state->stopping = false;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);

	running = options.sessions + options.errand_count + (options.copies > 0);
	for (int i = 0; i < running; i++)
	{
		pid_t		pid = fork();

		if (pid == 0)
			run_session(&options, &ledger, i, self);
		if (pid < 0)
			err(2, "could not fork");
	}

	for (; running > 0; doze(NSECS / 100))
	{
		if (getppid() != parent)
			state->stopping = true;
		while (waitpid(-1, &child_status, WNOHANG) > 0)
		{
			running--;
			if (child_status != 0)
			{
				warnx("a session failed, status %d", child_status);
				state->stopping = true;
				status = 2;
			}
		}
	}
	return status;
}
