/*-------------------------------------------------------------------------
 *
 * ledger.c
 *	  Keep a ledger of every ID that clients received, and check it.
 *
 * "ledger run" is a crowd of clients.  Each of them writes down, outside the
 * server, every ID that reached it, whatever became of the transaction and of
 * the server afterwards, with the time when the call began and when it ended.
 * A client that loses its connection asks again where the server is, and goes
 * on.  "ledger check" reads the ledgers of all of them and looks for an ID
 * that came twice or out of order, among other things.  "ledger selftest"
 * shows that the checker sees what it is there to see.
 *
 * What it knows of the extension is what every client may know: next_id(), and
 * Instagram's layout of an ID.  It knows nothing of sequences' pages, of WAL,
 * of why a server went away, or of who set its clock.  What sets a clock says
 * so in a file, through "ledger step".
 *
 * Times are CLOCK_MONOTONIC's nanoseconds, so all clients and whoever steps a
 * server's clock must be on one machine.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

/* Instagram's layout */
#define ID_SHARD(id)		(((id) >> 10) & 8191)
#define ID_MSECS(id)		((int64_t) ((id) >> 23) + INT64_C(1314220021721))
/* the sequence's value, which holds everything but the shard */
#define ID_VALUE(id)		(((id) >> 23 << 10) | ((id) & 1023))

/* PostgreSQL's timestamps are microseconds since 2000-01-01. */
#define POSTGRES_EPOCH		INT64_C(946684800000000)
#define NO_CLOCK			INT64_MIN

#define MAX_NAMES			64
#define MAX_BATCH			10000
#define MAX_EXAMPLES		10
#define NSECS				INT64_C(1000000000)

/*
 * In half of all spells nobody writes anything: a commit flushes everybody's
 * WAL, and so do full buffers, which would hide that next_id() forgot to.
 */
#define SPELL				(8 * NSECS)

/* A session that was told to stop waits no longer than this for an answer. */
#define LAST_WAIT			(2 * NSECS)

#define CALL_MAGIC			0x4c444752

/*
 * A call in the ledger, followed by its IDs.
 */
typedef struct Call
{
	uint32_t	magic;
	uint32_t	count;			/* IDs that were received */
	uint32_t	session;
	uint16_t	shard;
	uint16_t	sequence;		/* its number */
	int64_t		begin;			/* before it was sent */
	int64_t		end;			/* after the last ID, or the error */
	int64_t		clock_before;	/* the server's clock, or NO_CLOCK */
	int64_t		clock_after;
	char		kind;			/* see the sessions' turns */
	char		sqlstate[6];	/* empty if all went well */
	char		complete;		/* all was received that was asked for */
} Call;

typedef enum Fault
{
	DUPLICATE,
	DISORDER_IN_SESSION,
	DISORDER_IN_TIME,
	WRONG_SHARD,
	AHEAD_OF_CLOCK,
	BEHIND_CLOCK,
	BAD_ERROR,
	BAD_FILE,
	FAULTS
} Fault;

static const char *const fault_names[FAULTS] = {
	"duplicates",
	"not growing within a session",
	"out of order in time",
	"wrong shard",
	"too far ahead of the clock",
	"behind the clock",
	"errors that must not be",
	"damaged ledgers"
};

#if defined(__GNUC__)
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#else
#define PRINTF_LIKE(text, first)
#endif

static const char *progname = "ledger";
static volatile sig_atomic_t stopping = 0;


static void die(const char *format,...) PRINTF_LIKE(1, 2);

static void
die(const char *format,...)
{
	va_list		args;

	fprintf(stderr, "%s: ", progname);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static void *
allocate(size_t size)
{
	void	   *memory = calloc(1, size > 0 ? size : 1);

	if (memory == NULL)
		die("out of memory");
	return memory;
}

static int64_t
monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSECS + now.tv_nsec;
}

static void
doze(int64_t nsecs)
{
	struct timespec delay = {nsecs / NSECS, nsecs % NSECS};

	if (nsecs > 0)
		nanosleep(&delay, NULL);
}

/* splitmix64 */
static uint64_t
scramble(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static int64_t
number_argument(const char *text, int64_t min, int64_t max)
{
	char	   *end;
	long long	number;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || number < min || number > max)
		die("\"%s\" is not a number from %" PRId64 " to %" PRId64, text, min, max);
	return number;
}

/* Split a list at its commas, in place. */
static int
split_list(char *list, char **items)
{
	int			count = 0;
	char	   *item;

	for (item = strtok(list, ","); item != NULL; item = strtok(NULL, ","))
	{
		if (count == MAX_NAMES)
			die("more than %d items in a list", MAX_NAMES);
		items[count++] = item;
	}
	if (count == 0)
		die("a list is empty");
	return count;
}

/*
 * Append a call to a ledger, at once.
 */
static void
write_call(int file, const Call *call, const uint64_t *ids)
{
	struct iovec parts[2] = {
		{(void *) call, sizeof(Call)},
		{(void *) ids, call->count * sizeof(uint64_t)}
	};
	ssize_t		size = parts[0].iov_len + parts[1].iov_len;

	if (writev(file, parts, 2) != size)
		die("could not write to a ledger: %s", strerror(errno));
}


/*-------------------------------------------------------------------------
 * run: the clients
 *-------------------------------------------------------------------------
 */

typedef struct RunOptions
{
	const char *connection;		/* connection string */
	const char *connection_file;	/* or the file that holds it */
	const char *settings;		/* of all sessions' connections */
	const char *async_settings; /* and of some */
	int			async_sessions;
	int			sessions;
	char	   *sequences[MAX_NAMES];
	int			sequence_count;
	int			first_sequence; /* number of the first one */
	char	   *shards[MAX_NAMES];
	int			shard_count;
	int			batch;			/* most IDs in a call */
	bool		quiet;			/* nothing but SELECT */
	int64_t		rate;			/* IDs a second and session */
	int64_t		duration;
	uint64_t	seed;
	const char *path;
} RunOptions;

typedef struct Session
{
	const RunOptions *options;
	int			number;
	int			file;
	uint64_t	random;
	PGconn	   *conn;
	Call		call;
	uint64_t	ids[MAX_BATCH];
	volatile uint64_t *received;
} Session;

static uint64_t
random_below(Session *session, uint64_t limit)
{
	session->random++;
	return scramble(session->random) % limit;
}

static void
stop(int signal)
{
	(void) signal;
	stopping = 1;
}

static bool
orphaned(pid_t parent)
{
	return getppid() != parent;
}

static void
ignore_notice(void *arg, const char *message)
{
	(void) arg;
	(void) message;
}

/*
 * Connect to where the server is now.  Returns false if it is not there.
 */
static bool
connect_session(Session *session)
{
	const RunOptions *options = session->options;
	char		where[1024] = "";
	char		settings[1024];
	const char *more = session->number < options->async_sessions ?
		options->async_settings : "";
	const char *keywords[] = {"dbname", "options", "application_name", "connect_timeout", NULL};
	const char *values[] = {where, settings, "ledger", "5", NULL};

	if (options->connection_file != NULL)
	{
		FILE	   *file = fopen(options->connection_file, "r");

		if (file == NULL)
			return false;
		if (fgets(where, sizeof(where), file) == NULL)
			where[0] = '\0';
		fclose(file);
		where[strcspn(where, "\n")] = '\0';
		if (where[0] == '\0')
			return false;		/* nowhere, for the time being */
	}
	else
		snprintf(where, sizeof(where), "%s", options->connection);

	/* A pooler takes a blank alone for settings it does not know. */
	snprintf(settings, sizeof(settings), "%s%s%s", options->settings,
			 options->settings[0] != '\0' && more[0] != '\0' ? " " : "", more);

	session->conn = PQconnectdbParams(keywords, values, 1);
	if (PQstatus(session->conn) == CONNECTION_OK)
	{
		PQsetNoticeProcessor(session->conn, ignore_notice, NULL);
		return true;
	}
	PQfinish(session->conn);
	session->conn = NULL;
	return false;
}

static void
disconnect(Session *session)
{
	PQfinish(session->conn);
	session->conn = NULL;
}

/*
 * Wait for a result as PQgetResult() does, but not for ever once we are to
 * stop.  Returns false if there will be none.
 */
static bool
await_result(Session *session)
{
	int64_t		last = 0;

	while (PQisBusy(session->conn))
	{
		struct pollfd socket = {PQsocket(session->conn), POLLIN, 0};

		if (stopping)
		{
			if (last == 0)
				last = monotonic() + LAST_WAIT;
			else if (monotonic() > last)
				return false;
		}
		if (poll(&socket, 1, 100) > 0 && !PQconsumeInput(session->conn))
			return true;		/* PQgetResult() tells the error */
	}
	return true;
}

static int64_t
get_int64(const PGresult *result, int row, int column)
{
	const unsigned char *bytes = (const unsigned char *) PQgetvalue(result, row, column);
	uint64_t	value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | bytes[i];
	return (int64_t) value;
}

/*
 * One call: send a query whose rows are clock, ID, clock, write down what
 * comes, and return whether the session can go on with what it was at.
 */
static bool
call(Session *session, char kind, const char *query, int count)
{
	const RunOptions *options = session->options;
	Call	   *call = &session->call;
	int			sequence = random_below(session, options->sequence_count);
	const char *shard = options->shards[random_below(session, options->shard_count)];
	char		number[16];
	const char *values[] = {shard, options->sequences[sequence], number};
	bool		sent;
	bool		usable = true;

	snprintf(number, sizeof(number), "%d", count);
	memset(call, 0, sizeof(Call));
	call->magic = CALL_MAGIC;
	call->session = session->number;
	call->shard = atoi(shard);
	call->sequence = options->first_sequence + sequence;
	call->kind = kind;
	call->clock_before = NO_CLOCK;
	call->clock_after = NO_CLOCK;

	call->begin = monotonic();
	if (count > 0)
		sent = PQsendQueryParams(session->conn, query, 3, NULL, values, NULL, NULL, 1);
	else
		sent = PQsendQuery(session->conn, query);
	if (sent)
		PQsetSingleRowMode(session->conn);
	else
		usable = false;

	while (sent)
	{
		PGresult   *result;

		if (!await_result(session))
		{
			strcpy(call->sqlstate, "stop");
			usable = false;
			break;
		}
		result = PQgetResult(session->conn);
		if (result == NULL)
			break;
		if (PQresultStatus(result) == PGRES_SINGLE_TUPLE && count > 0)
		{
			if (call->count < MAX_BATCH)
				session->ids[call->count++] = get_int64(result, 0, 1);
			if (!PQgetisnull(result, 0, 0) && call->clock_before == NO_CLOCK)
				call->clock_before = get_int64(result, 0, 0);
			if (!PQgetisnull(result, 0, 2))
				call->clock_after = get_int64(result, 0, 2);
			else
				call->clock_after = NO_CLOCK;
		}
		else if (PQresultStatus(result) == PGRES_FATAL_ERROR)
		{
			const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

			/* a lost connection comes after the server's own words */
			if (sqlstate != NULL || call->sqlstate[0] == '\0')
				snprintf(call->sqlstate, sizeof(call->sqlstate), "%s",
						 sqlstate != NULL ? sqlstate : "08006");
			usable = false;
		}
		PQclear(result);
	}
	call->end = monotonic();
	if (PQstatus(session->conn) != CONNECTION_OK && call->sqlstate[0] == '\0')
	{
		strcpy(call->sqlstate, "08006");
		usable = false;
	}
	call->complete = call->sqlstate[0] == '\0' && (int) call->count == count;

	if (call->count > 0 || call->sqlstate[0] != '\0')
		write_call(session->file, call, session->ids);
	*session->received += call->count;
	return usable;
}

/* Queries for IDs.  Each row has the server's clock around its ID, if any. */
static const char *const select_one =
"SELECT clock_timestamp(), next_id($1::bigint, $2::regclass), clock_timestamp() WHERE $3::int > 0";

static const char *const select_many =
"SELECT CASE WHEN i = 1 THEN clock_timestamp() END, next_id($1::bigint, $2::regclass),"
" CASE WHEN i = $3::int THEN clock_timestamp() END FROM generate_series(1, $3::int) i";

static const char *const insert_many =
"INSERT INTO ledger_rows SELECT next_id($1::bigint, $2::regclass) FROM generate_series(1, $3::int)"
" RETURNING NULL::timestamptz, id, clock_timestamp()";

/* Reads pages at random, so that others have to go. */
static const char *const churn =
"SELECT count(pad) FROM ledger_ballast WHERE n = ANY "
"(ARRAY(SELECT 1 + (random() * 9999)::int FROM generate_series(1, 40)))";

static bool
get_one(Session *session, char kind)
{
	return call(session, kind, select_one, 1);
}

static bool
get_many(Session *session, char kind)
{
	return call(session, kind, select_many,
				1 + random_below(session, session->options->batch));
}

static bool
insert_some(Session *session, char kind)
{
	return call(session, kind, insert_many, 1 + random_below(session, 10));
}

static bool
command(Session *session, char kind, const char *query)
{
	return call(session, kind, query, 0);
}

/*
 * One turn: a call by itself, or a transaction with some.
 */
static bool
take_turn(Session *session, bool quiet)
{
	int			dice = random_below(session, 100);

	if (dice < 25)
		return get_one(session, 's');
	if (dice < 55)
		return get_many(session, 'b');
	if (dice < 57 && !quiet)
		return command(session, 'x', churn);
	if (dice < 75 || quiet)
		return command(session, 'r', "BEGIN") &&
			get_one(session, 'r') &&
			(dice % 2 && !quiet ? insert_some(session, 'r') : get_many(session, 'r')) &&
			command(session, 'r', "ROLLBACK");
	if (dice < 85)
		return command(session, 'c', "BEGIN") &&
			insert_some(session, 'c') &&
			get_one(session, 'c') &&
			command(session, 'c', "COMMIT");
	if (dice < 90)
		return insert_some(session, 'i');
	return command(session, 'p', "BEGIN") &&
		get_one(session, 'p') &&
		command(session, 'p', "SAVEPOINT s") &&
		(dice % 2 ? insert_some(session, 'p') : get_many(session, 'p')) &&
		command(session, 'p', "ROLLBACK TO s") &&
		get_one(session, 'p') &&
		command(session, 'p', dice % 3 ? "COMMIT" : "ROLLBACK");
}

/*
 * A client, until it is told to stop.
 */
static void
run_session(const RunOptions *options, int number, volatile uint64_t *received,
			pid_t parent)
{
	Session    *session = allocate(sizeof(Session));
	char		path[1024];
	int64_t		start = monotonic();
	uint64_t	before = *received;

	session->options = options;
	session->number = number;
	session->random = scramble(options->seed * 1000003 + number);
	session->received = received;
	snprintf(path, sizeof(path), "%s.%d", options->path, number);
	session->file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (session->file < 0)
		die("could not open \"%s\": %s", path, strerror(errno));

	while (!stopping && !orphaned(parent))
	{
		uint64_t	spell;

		if (session->conn == NULL && !connect_session(session))
		{
			doze(NSECS / 100 + random_below(session, NSECS / 50));
			continue;
		}

		spell = scramble(options->seed ^ (monotonic() / SPELL));
		if (!take_turn(session, options->quiet || spell % 2 != 0))
		{
			/* whatever it was, begin anew */
			disconnect(session);
			doze(random_below(session, NSECS / 100));
		}

		if (options->rate > 0)
		{
			int64_t		due = start + (*received - before) * NSECS / options->rate;
			int64_t		now = monotonic();

			if (due > now)
				doze(due - now < NSECS / 5 ? due - now : NSECS / 5);
			else if (now - due > NSECS)
			{
				/* no hurry to make up for a time without server */
				start = now;
				before = *received;
			}
		}
	}
	if (session->conn != NULL)
		PQfinish(session->conn);
	exit(0);
}

static void
write_count(const char *path, uint64_t count)
{
	char		name[1024];
	char		new_name[1032];
	FILE	   *file;

	snprintf(name, sizeof(name), "%s.count", path);
	snprintf(new_name, sizeof(new_name), "%s.new", name);
	file = fopen(new_name, "w");
	if (file == NULL)
		die("could not write \"%s\": %s", new_name, strerror(errno));
	fprintf(file, "%" PRIu64 "\n", count);
	fclose(file);
	if (rename(new_name, name) != 0)
		die("could not rename \"%s\": %s", new_name, strerror(errno));
}

static const char *const init_sql =
"CREATE TABLE ledger_rows (id bigint);"
"CREATE TABLE ledger_ballast (n int PRIMARY KEY, pad text);"
"INSERT INTO ledger_ballast SELECT n, repeat('x', 500) FROM generate_series(1, 10000) n;";

static int
run(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"connection", required_argument, NULL, 'd'},
		{"connection-file", required_argument, NULL, 'f'},
		{"sessions", required_argument, NULL, 'n'},
		{"sequences", required_argument, NULL, 's'},
		{"first-sequence", required_argument, NULL, 'F'},
		{"shards", required_argument, NULL, 'h'},
		{"batch", required_argument, NULL, 'b'},
		{"quiet", no_argument, NULL, 'q'},
		{"rate", required_argument, NULL, 'r'},
		{"duration", required_argument, NULL, 't'},
		{"seed", required_argument, NULL, 'S'},
		{"settings", required_argument, NULL, 'c'},
		{"some-sessions", required_argument, NULL, 'a'},
		{"some-settings", required_argument, NULL, 'A'},
		{NULL, 0, NULL, 0}
	};
	RunOptions	options = {0};
	struct sigaction action = {0};
	volatile uint64_t *received;
	pid_t	   *pids;
	pid_t		self = getpid();
	pid_t		parent = getppid();
	int64_t		end;
	int			option;
	int			status = 0;

	options.connection = "";
	options.settings = "";
	options.async_settings = "";
	options.sessions = 4;
	options.sequences[0] = "next_id_seq";
	options.sequence_count = 1;
	options.shards[0] = "5";
	options.shard_count = 1;
	options.batch = 200;
	options.seed = 1;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
	{
		switch (option)
		{
			case 'd':
				options.connection = optarg;
				break;
			case 'f':
				options.connection_file = optarg;
				break;
			case 'n':
				options.sessions = number_argument(optarg, 1, 1000);
				break;
			case 's':
				options.sequence_count = split_list(optarg, options.sequences);
				break;
			case 'F':
				options.first_sequence = number_argument(optarg, 0, 60000);
				break;
			case 'h':
				options.shard_count = split_list(optarg, options.shards);
				for (int i = 0; i < options.shard_count; i++)
					number_argument(options.shards[i], 0, 8191);
				break;
			case 'b':
				options.batch = number_argument(optarg, 1, MAX_BATCH);
				break;
			case 'q':
				options.quiet = true;
				break;
			case 'r':
				options.rate = number_argument(optarg, 1, 100000000);
				break;
			case 't':
				options.duration = number_argument(optarg, 1, 100000000);
				break;
			case 'S':
				options.seed = number_argument(optarg, 0, INT64_MAX);
				break;
			case 'c':
				options.settings = optarg;
				break;
			case 'a':
				options.async_sessions = number_argument(optarg, 0, 1000);
				break;
			case 'A':
				options.async_settings = optarg;
				break;
			default:
				return 2;
		}
	}
	if (optind != argc - 1)
		die("run needs the name of the ledger");
	options.path = argv[optind];

	received = mmap(NULL, options.sessions * 64, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (received == MAP_FAILED)
		die("could not share memory: %s", strerror(errno));

	action.sa_handler = stop;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);

	pids = allocate(options.sessions * sizeof(pid_t));
	for (int i = 0; i < options.sessions; i++)
	{
		/* each on a cache line of its own */
		pids[i] = fork();
		if (pids[i] < 0)
			die("could not fork: %s", strerror(errno));
		if (pids[i] == 0)
			run_session(&options, i, received + i * 8, self);
	}

	end = options.duration > 0 ? monotonic() + options.duration * NSECS : INT64_MAX;
	for (int running = options.sessions; running > 0;)
	{
		uint64_t	total = 0;
		int			child_status;
		pid_t		pid;

		for (int i = 0; i < options.sessions; i++)
			total += received[i * 8];
		write_count(options.path, total);

		if (stopping || monotonic() > end || orphaned(parent))
		{
			stopping = 1;
			for (int i = 0; i < options.sessions; i++)
				if (pids[i] > 0)
					kill(pids[i], SIGTERM);
		}
		doze(NSECS / 10);
		while ((pid = waitpid(-1, &child_status, WNOHANG)) > 0)
		{
			running--;
			for (int i = 0; i < options.sessions; i++)
				if (pids[i] == pid)
					pids[i] = 0;
			if (child_status != 0)
			{
				fprintf(stderr, "%s: a session failed, status %d\n", progname, child_status);
				status = 2;
				stopping = 1;
			}
		}
	}
	{
		uint64_t	total = 0;

		for (int i = 0; i < options.sessions; i++)
			total += received[i * 8];
		write_count(options.path, total);
	}
	return status;
}


/*-------------------------------------------------------------------------
 * step: set a clock, and say so
 *-------------------------------------------------------------------------
 */

/*
 * Replace the one line of a file, which holds a clock's setting, and log
 * between which moments that happened.
 */
static int
step(int argc, char **argv)
{
	char		new_name[1024];
	FILE	   *file;
	int64_t		begin;

	if (argc != 4)
		die("usage: ledger step LOG FILE SETTING");
	snprintf(new_name, sizeof(new_name), "%s.new", argv[2]);
	file = fopen(new_name, "w");
	if (file == NULL || fprintf(file, "%s\n", argv[3]) < 0 || fclose(file) != 0)
		die("could not write \"%s\": %s", new_name, strerror(errno));

	begin = monotonic();
	if (rename(new_name, argv[2]) != 0)
		die("could not rename \"%s\": %s", new_name, strerror(errno));

	file = fopen(argv[1], "a");
	if (file == NULL ||
		fprintf(file, "%" PRId64 " %" PRId64 " %s %s\n", begin, monotonic(), argv[2], argv[3]) < 0 ||
		fclose(file) != 0)
		die("could not write \"%s\": %s", argv[1], strerror(errno));
	return 0;
}


/*-------------------------------------------------------------------------
 * check: the checker
 *-------------------------------------------------------------------------
 */

/* A ledger in memory */
typedef struct Ledger
{
	const char *name;
	const char *bytes;
	size_t		size;
} Ledger;

/* What the checker keeps of a call. */
typedef struct Entry
{
	const Call *call;
	uint64_t	least;
	uint64_t	greatest;
} Entry;

/* A time in which a clock was stepped */
typedef struct Step
{
	int64_t		begin;
	int64_t		end;
} Step;

typedef struct Check
{
	Ledger	   *ledgers;
	int			ledger_count;
	Step	   *steps;
	int			step_count;
	int64_t		max_lead;		/* microseconds, or -1 */
	bool		silent;

	/* results */
	uint64_t	faults[FAULTS];
	uint64_t	ids;
	uint64_t	calls;
	uint64_t	incomplete;		/* calls that were cut off, with IDs */
	uint64_t	clock_checked;
	uint64_t	exempt;
	const Call *slowest;
	struct
	{
		char		sqlstate[6];
		uint64_t	count;
	}			errors[MAX_NAMES];
	int			error_kinds;
} Check;

static void show_args(Fault fault, const Call *call, uint64_t id,
					  const char *format, va_list args) PRINTF_LIKE(4, 0);
static void show(Fault fault, const Call *call, uint64_t id,
				 const char *format,...) PRINTF_LIKE(4, 5);
static void blame(Check *check, Fault fault, const Call *call, uint64_t id,
				  const char *format,...) PRINTF_LIKE(5, 6);

static void
show_args(Fault fault, const Call *call, uint64_t id, const char *format, va_list args)
{
	printf("%s: ", fault_names[fault]);
	if (call != NULL)
		printf("session %u, sequence %u, shard %u, call %c %" PRId64 " .. %" PRId64 ": ",
			   call->session, call->sequence, call->shard, call->kind,
			   call->begin, call->end);
	if (id != 0)
		printf("%" PRIu64 " ", id);
	vprintf(format, args);
	putchar('\n');
}

static void
show(Fault fault, const Call *call, uint64_t id, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	show_args(fault, call, id, format, args);
	va_end(args);
}

/*
 * Count a fault, and show the first ones.
 */
static void
blame(Check *check, Fault fault, const Call *call, uint64_t id, const char *format,...)
{
	va_list		args;

	if (++check->faults[fault] > MAX_EXAMPLES || check->silent)
		return;
	va_start(args, format);
	show_args(fault, call, id, format, args);
	va_end(args);
}

static const uint64_t *
ids_of(const Call *call)
{
	return (const uint64_t *) (call + 1);
}

/* The call at an offset of a ledger, or NULL */
static const Call *
call_at(const Ledger *ledger, size_t offset)
{
	const Call *call = (const Call *) (ledger->bytes + offset);

	if (ledger->size - offset < sizeof(Call) || call->magic != CALL_MAGIC ||
		(ledger->size - offset - sizeof(Call)) / sizeof(uint64_t) < call->count)
		return NULL;
	return call;
}

static size_t
size_of(const Call *call)
{
	return sizeof(Call) + call->count * sizeof(uint64_t);
}

/* Has a clock been stepped in a call?  Steps are in order. */
static bool
clock_stepped(const Check *check, const Call *call)
{
	int			low = 0;
	int			high = check->step_count;

	/* the first step that ended after the call began */
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (check->steps[middle].end < call->begin)
			low = middle + 1;
		else
			high = middle;
	}
	return low < check->step_count && check->steps[low].begin <= call->end;
}

/*
 * Errors that a client has to live with when servers die, are promoted or
 * shut down.  Anything else is a fault.
 */
static bool
expected_error(const char *sqlstate)
{
	return strncmp(sqlstate, "08", 2) == 0 ||	/* connection lost */
		strncmp(sqlstate, "57P", 3) == 0 || /* server shuts down, starts up */
		strcmp(sqlstate, "57014") == 0 ||	/* cancelled, by a shutdown */
		strcmp(sqlstate, "25006") == 0 ||	/* not promoted yet */
		strcmp(sqlstate, "53300") == 0 ||	/* too many connections */
		strcmp(sqlstate, "53400") == 0 ||	/* too far ahead of the clock */
		strcmp(sqlstate, "stop") == 0;	/* it was us */
}

static void
count_error(Check *check, const Call *call)
{
	int			i;

	for (i = 0; i < check->error_kinds; i++)
		if (strcmp(check->errors[i].sqlstate, call->sqlstate) == 0)
			break;
	if (i == MAX_NAMES)
		return;
	if (i == check->error_kinds)
	{
		strcpy(check->errors[i].sqlstate, call->sqlstate);
		check->error_kinds++;
	}
	check->errors[i].count++;
	if (!expected_error(call->sqlstate))
		blame(check, BAD_ERROR, call, 0, "SQLSTATE %s", call->sqlstate);
}

/*
 * What can be seen by looking at one call.
 */
static void
check_call(Check *check, const Call *call)
{
	const uint64_t *ids = ids_of(call);
	uint32_t	last = call->count - 1;

	for (uint32_t i = 0; i < call->count; i++)
		if (ID_SHARD(ids[i]) != call->shard)
			blame(check, WRONG_SHARD, call, ids[i], "has shard %u",
				  (unsigned) ID_SHARD(ids[i]));

	if (call->clock_before == NO_CLOCK && call->clock_after == NO_CLOCK)
		return;
	if (clock_stepped(check, call))
	{
		check->exempt++;
		return;
	}
	check->clock_checked++;

	/*
	 * The last ID was taken before the clock was read again; the first one
	 * after it was read.
	 */
	if (call->clock_after != NO_CLOCK && check->max_lead >= 0)
	{
		int64_t		ahead = ID_MSECS(ids[last]) * 1000 - POSTGRES_EPOCH - call->clock_after;

		if (ahead > check->max_lead)
			blame(check, AHEAD_OF_CLOCK, call, ids[last],
				  "is %" PRId64 " us ahead of the clock", ahead);
	}
	if (call->clock_before != NO_CLOCK)
	{
		int64_t		behind = (call->clock_before + POSTGRES_EPOCH) / 1000 - ID_MSECS(ids[0]);

		if (behind > 0)
			blame(check, BEHIND_CLOCK, call, ids[0],
				  "is %" PRId64 " ms behind the clock", behind);
	}
}

static int
compare_begin(const void *a, const void *b)
{
	int64_t		x = (*(const Entry *const *) a)->call->begin;
	int64_t		y = (*(const Entry *const *) b)->call->begin;

	return (x > y) - (x < y);
}

static int
compare_end(const void *a, const void *b)
{
	int64_t		x = (*(const Entry *const *) a)->call->end;
	int64_t		y = (*(const Entry *const *) b)->call->end;

	return (x > y) - (x < y);
}

static int
compare_steps(const void *a, const void *b)
{
	int64_t		x = ((const Step *) a)->begin;
	int64_t		y = ((const Step *) b)->begin;

	return (x > y) - (x < y);
}

/*
 * Sort by all eight bytes, skipping those that are all the same.
 */
static void
radix_sort(uint64_t *values, uint64_t *spare, size_t count)
{
	uint64_t   *original = values;

	for (int shift = 0; shift < 64; shift += 8)
	{
		size_t		counts[256] = {0};
		size_t		position = 0;
		uint64_t   *swap;

		for (size_t i = 0; i < count; i++)
			counts[values[i] >> shift & 255]++;
		if (counts[values[0] >> shift & 255] == count)
			continue;
		for (int i = 0; i < 256; i++)
		{
			size_t		here = counts[i];

			counts[i] = position;
			position += here;
		}
		for (size_t i = 0; i < count; i++)
			spare[counts[values[i] >> shift & 255]++] = values[i];
		swap = values;
		values = spare;
		spare = swap;
	}
	if (values != original)
		memcpy(original, values, count * sizeof(uint64_t));
}

/*
 * Show who received a value that came twice.
 */
static void
show_receivers(const Check *check, uint64_t value, const Entry *entries, size_t count)
{
	if (check->silent)
		return;
	for (size_t i = 0; i < count; i++)
	{
		const uint64_t *ids = ids_of(entries[i].call);

		for (uint32_t j = 0; j < entries[i].call->count; j++)
			if (ID_VALUE(ids[j]) == value)
				show(DUPLICATE, entries[i].call, ids[j], "came more than once");
	}
}

/*
 * What is seen by looking at all calls for one sequence.  A value comes from a
 * sequence once and in order, whatever the shard.
 */
static void
check_sequence(Check *check, Entry *entries, size_t count)
{
	Entry	  **begins = allocate(count * sizeof(Entry *));
	Entry	  **ends = allocate(count * sizeof(Entry *));
	size_t		ended = 0;
	size_t		ids = 0;
	uint64_t	greatest = 0;
	const Call *by = NULL;
	uint64_t   *values;
	uint64_t   *spare;

	/* Does a call have a smaller ID than one that ended before it began? */
	for (size_t i = 0; i < count; i++)
	{
		begins[i] = ends[i] = &entries[i];
		ids += entries[i].call->count;
	}
	qsort(begins, count, sizeof(Entry *), compare_begin);
	qsort(ends, count, sizeof(Entry *), compare_end);
	for (size_t i = 0; i < count; i++)
	{
		for (; ended < count && ends[ended]->call->end < begins[i]->call->begin; ended++)
			if (ends[ended]->greatest > greatest)
			{
				greatest = ends[ended]->greatest;
				by = ends[ended]->call;
			}
		if (begins[i]->least <= greatest)
			blame(check, DISORDER_IN_TIME, begins[i]->call, 0,
				  "value %" PRIu64 " came after %" PRIu64 ", which session %u had at %" PRId64,
				  begins[i]->least, greatest, by->session, by->end);
	}
	free(begins);
	free(ends);

	/* Did a value come twice? */
	values = allocate(ids * sizeof(uint64_t));
	spare = allocate(ids * sizeof(uint64_t));
	ids = 0;
	for (size_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < entries[i].call->count; j++)
			values[ids++] = ID_VALUE(ids_of(entries[i].call)[j]);
	radix_sort(values, spare, ids);
	for (size_t i = 1; i < ids; i++)
		if (values[i] == values[i - 1] && ++check->faults[DUPLICATE] <= MAX_EXAMPLES)
			show_receivers(check, values[i], entries, count);
	free(values);
	free(spare);
}

static void
check_ledgers(Check *check)
{
	Entry	   *entries;
	Entry	   *sorted;
	size_t		count = 0;
	size_t		starts[65536 + 1] = {0};

	if (check->step_count > 0)
		qsort(check->steps, check->step_count, sizeof(Step), compare_steps);

	/* How many calls are there? */
	for (int i = 0; i < check->ledger_count; i++)
	{
		const Ledger *ledger = &check->ledgers[i];
		const Call *call;
		size_t		offset;

		for (offset = 0; offset < ledger->size; offset += size_of(call))
		{
			call = call_at(ledger, offset);
			if (call == NULL)
			{
				blame(check, BAD_FILE, NULL, 0, "%s ends at %zu of %zu bytes",
					  ledger->name, offset, ledger->size);
				break;
			}
			if (call->count > 0)
				count++;
		}
	}

	/* One by one, and session by session */
	entries = allocate(count * sizeof(Entry));
	count = 0;
	for (int i = 0; i < check->ledger_count; i++)
	{
		const Ledger *ledger = &check->ledgers[i];
		uint64_t   *last = allocate(65536 * sizeof(uint64_t));	/* of each sequence */
		const Call *call;

		for (size_t offset = 0;
			 offset < ledger->size && (call = call_at(ledger, offset)) != NULL;
			 offset += size_of(call))
		{
			const uint64_t *ids = ids_of(call);
			Entry	   *entry;

			check->calls++;
			if (call->sqlstate[0] != '\0')
				count_error(check, call);
			else if (check->slowest == NULL ||
					 call->end - call->begin > check->slowest->end - check->slowest->begin)
				check->slowest = call;
			if (call->count == 0)
				continue;
			if (!call->complete)
				check->incomplete++;
			check->ids += call->count;

			entry = &entries[count++];
			entry->call = call;
			entry->least = UINT64_MAX;
			for (uint32_t j = 0; j < call->count; j++)
			{
				uint64_t	value = ID_VALUE(ids[j]);

				if (value <= last[call->sequence])
					blame(check, DISORDER_IN_SESSION, call, ids[j],
						  "has value %" PRIu64 " after %" PRIu64,
						  value, last[call->sequence]);
				last[call->sequence] = value;
				if (value < entry->least)
					entry->least = value;
				if (value > entry->greatest)
					entry->greatest = value;
			}
			starts[call->sequence + 1]++;
			check_call(check, call);
		}
		free(last);
	}

	/* Sequence by sequence */
	for (int i = 1; i <= 65536; i++)
		starts[i] += starts[i - 1];
	sorted = allocate(count * sizeof(Entry));
	for (size_t i = 0; i < count; i++)
		sorted[starts[entries[i].call->sequence]++] = entries[i];
	for (size_t i = 0, start = 0; i < count; i++)
		if (i + 1 == count ||
			sorted[i + 1].call->sequence != sorted[start].call->sequence)
		{
			check_sequence(check, sorted + start, i + 1 - start);
			start = i + 1;
		}
	free(entries);
	free(sorted);
}

static void
open_ledger(Ledger *ledger, const char *name)
{
	int			file = open(name, O_RDONLY);
	struct stat status;

	if (file < 0 || fstat(file, &status) != 0)
		die("could not open \"%s\": %s", name, strerror(errno));
	ledger->name = name;
	ledger->size = status.st_size;
	ledger->bytes = NULL;
	if (ledger->size > 0)
	{
		ledger->bytes = mmap(NULL, ledger->size, PROT_READ, MAP_PRIVATE, file, 0);
		if (ledger->bytes == MAP_FAILED)
			die("could not read \"%s\": %s", name, strerror(errno));
	}
	close(file);
}

static void
read_steps(Check *check, const char *name)
{
	FILE	   *file = fopen(name, "r");
	char		line[1024];

	if (file == NULL)
		die("could not open \"%s\": %s", name, strerror(errno));
	while (fgets(line, sizeof(line), file) != NULL)
	{
		Step	   *steps = realloc(check->steps, (check->step_count + 1) * sizeof(Step));

		if (steps == NULL)
			die("out of memory");
		check->steps = steps;
		if (sscanf(line, "%" SCNd64 " %" SCNd64, &steps[check->step_count].begin,
				   &steps[check->step_count].end) != 2)
			die("\"%s\" is not a log of clock steps", name);
		check->step_count++;
	}
	fclose(file);
}

static bool
report(const Check *check)
{
	bool		good = true;

	printf("%-30s %" PRIu64 " in %" PRIu64 " calls, %" PRIu64 " of them cut off\n",
		   "IDs received", check->ids, check->calls, check->incomplete);
	for (int i = 0; i < FAULTS; i++)
	{
		printf("%-30s %" PRIu64 "\n", fault_names[i], check->faults[i]);
		good = good && check->faults[i] == 0;
	}
	printf("%-30s %" PRIu64 " calls, %" PRIu64 " exempt in %d steps\n",
		   "compared with the clock", check->clock_checked, check->exempt, check->step_count);
	if (check->slowest != NULL)
		printf("%-30s %.3f s\n", "slowest call",
			   (check->slowest->end - check->slowest->begin) / 1e9);
	printf("%-30s", "errors by SQLSTATE");
	for (int i = 0; i < check->error_kinds; i++)
		printf(" %s: %" PRIu64, check->errors[i].sqlstate, check->errors[i].count);
	printf("%s\n", check->error_kinds == 0 ? " none" : "");
	return good;
}

static int
check(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"max-lead", required_argument, NULL, 'l'},
		{"steps", required_argument, NULL, 's'},
		{"at-least", required_argument, NULL, 'n'},
		{NULL, 0, NULL, 0}
	};
	Check		check = {0};
	uint64_t	at_least = 1;
	int			option;
	bool		good;

	check.max_lead = -1;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
	{
		switch (option)
		{
			case 'l':
				check.max_lead = number_argument(optarg, 0, INT64_MAX / 1000) * 1000;
				break;
			case 's':
				read_steps(&check, optarg);
				break;
			case 'n':
				at_least = number_argument(optarg, 0, INT64_MAX);
				break;
			default:
				return 2;
		}
	}
	if (optind == argc)
		die("check needs the names of ledgers");

	check.ledger_count = argc - optind;
	check.ledgers = allocate(check.ledger_count * sizeof(Ledger));
	for (int i = 0; i < check.ledger_count; i++)
		open_ledger(&check.ledgers[i], argv[optind + i]);

	check_ledgers(&check);
	good = report(&check);
	if (check.ids < at_least)
	{
		printf("fewer IDs than the %" PRIu64 " that there should be\n", at_least);
		good = false;
	}
	return good ? 0 : 1;
}


/*-------------------------------------------------------------------------
 * selftest: does the checker see what it is there to see?
 *-------------------------------------------------------------------------
 */

#define SELF_SESSIONS		4
#define SELF_CALLS			200
#define SELF_IDS			16
#define SELF_LEAD			1000

/*
 * Four sessions that call by turns, every call overlapping the one before it
 * and the one after it in another session.
 */
typedef struct SelfTest
{
	Call		call[SELF_SESSIONS][SELF_CALLS];
	uint64_t	ids[SELF_SESSIONS][SELF_CALLS][SELF_IDS];
	size_t		cut;			/* bytes to cut from the end */
} SelfTest;

static void
fill_selftest(SelfTest *test)
{
	uint64_t	msecs = UINT64_C(480000000000);

	memset(test, 0, sizeof(SelfTest));
	for (int n = 0; n < SELF_SESSIONS * SELF_CALLS; n++)
	{
		int			session = n % SELF_SESSIONS;
		Call	   *call = &test->call[session][n / SELF_SESSIONS];
		uint64_t   *ids = test->ids[session][n / SELF_SESSIONS];

		msecs++;
		call->magic = CALL_MAGIC;
		call->session = session;
		call->count = SELF_IDS;
		call->shard = 5 + n % 2;
		call->sequence = 3;
		call->begin = n * INT64_C(1000);
		call->end = call->begin + 1500;
		call->kind = 'b';
		call->complete = 1;
		call->clock_before = call->clock_after =
			ID_MSECS(msecs << 23) * 1000 - POSTGRES_EPOCH;
		for (int i = 0; i < SELF_IDS; i++)
			ids[i] = msecs << 23 | (uint64_t) call->shard << 10 | (uint64_t) (i * 7);
	}
}

static void
check_selftest(const SelfTest *test, Step *steps, int step_count, Check *result)
{
	Ledger		ledgers[SELF_SESSIONS];
	char		path[] = "/tmp/ledger.XXXXXX";
	int			file;

	memset(result, 0, sizeof(Check));
	for (int i = 0; i < SELF_SESSIONS; i++)
	{
		/* by way of a file, as for a real one */
		strcpy(path + strlen(path) - 6, "XXXXXX");
		file = mkstemp(path);
		if (file < 0)
			die("could not make \"%s\": %s", path, strerror(errno));
		for (int j = 0; j < SELF_CALLS; j++)
			write_call(file, &test->call[i][j], test->ids[i][j]);
		if (i == 0 && test->cut > 0 &&
			ftruncate(file, lseek(file, 0, SEEK_END) - test->cut) != 0)
			die("could not cut \"%s\"", path);
		close(file);
		open_ledger(&ledgers[i], path);
		unlink(path);
	}
	result->ledgers = ledgers;
	result->ledger_count = SELF_SESSIONS;
	result->steps = steps;
	result->step_count = step_count;
	result->max_lead = SELF_LEAD * 1000;
	result->silent = true;
	check_ledgers(result);
	for (int i = 0; i < SELF_SESSIONS; i++)
		if (ledgers[i].size > 0)
			munmap((void *) ledgers[i].bytes, ledgers[i].size);
}

static int
expect(const char *what, const SelfTest *test, Step *steps, int step_count,
	   unsigned expected)
{
	Check		result;
	unsigned	found = 0;

	check_selftest(test, steps, step_count, &result);
	for (int i = 0; i < FAULTS; i++)
		if (result.faults[i] > 0)
			found |= 1u << i;
	printf("%s - %s\n", found == expected ? "ok" : "not ok", what);
	for (int i = 0; i < FAULTS; i++)
		if ((found ^ expected) >> i & 1)
			printf("#   %s: %" PRIu64 ", which %s\n", fault_names[i], result.faults[i],
				   expected >> i & 1 ? "was planted" : "was not");
	return found != expected;
}

static int
selftest(void)
{
	SelfTest   *test = allocate(sizeof(SelfTest));
	Step		step;
	uint64_t	swap;
	int			failed = 0;

#define BIT(fault) (1u << (fault))
	fill_selftest(test);
	failed += expect("nothing planted", test, NULL, 0, 0);

	/* the calls 401 and 402 overlap */
	fill_selftest(test);
	test->ids[2][100][0] = (test->ids[1][100][SELF_IDS - 1] & ~(UINT64_C(8191) << 10)) |
		(uint64_t) test->call[2][100].shard << 10;
	test->call[2][100].clock_before = NO_CLOCK;
	failed += expect("a value twice, in calls that overlap", test, NULL, 0, BIT(DUPLICATE));

	fill_selftest(test);
	test->ids[2][150][3] = test->ids[2][20][3];
	failed += expect("an ID twice, in a session", test, NULL, 0,
					 BIT(DUPLICATE) | BIT(DISORDER_IN_SESSION) | BIT(DISORDER_IN_TIME));

	fill_selftest(test);
	test->ids[2][150][3] = test->ids[0][20][3];
	test->call[2][150].kind = 'r';
	strcpy(test->call[2][150].sqlstate, "08006");
	test->call[2][150].complete = 0;
	test->call[2][150].clock_after = NO_CLOCK;
	failed += expect("an ID twice, in a call that was cut off", test, NULL, 0,
					 BIT(DUPLICATE) | BIT(DISORDER_IN_SESSION) | BIT(DISORDER_IN_TIME));

	fill_selftest(test);
	test->ids[3][199][SELF_IDS - 1] = test->ids[2][199][SELF_IDS - 1] ^ (UINT64_C(3) << 10);
	test->call[3][199].count = SELF_IDS;
	test->call[3][199].clock_after = NO_CLOCK;
	failed += expect("a value twice, for two shards", test, NULL, 0,
					 BIT(DUPLICATE) | BIT(DISORDER_IN_SESSION));

	fill_selftest(test);
	swap = test->ids[1][50][4];
	test->ids[1][50][4] = test->ids[1][50][5];
	test->ids[1][50][5] = swap;
	failed += expect("two IDs swapped within a call", test, NULL, 0, BIT(DISORDER_IN_SESSION));

	/* a hair before its neighbour's last ID, and after its end */
	fill_selftest(test);
	test->call[1][50].clock_before = test->call[1][50].clock_after = NO_CLOCK;
	test->call[2][50].clock_before = NO_CLOCK;
	for (int i = 0; i < SELF_IDS; i++)
	{
		test->ids[1][50][i] = (test->ids[2][50][i] & ~(UINT64_C(8191) << 10)) |
			(uint64_t) test->call[1][50].shard << 10;
		test->ids[1][50][i] += 3;
	}
	failed += expect("disorder between calls that overlap is none", test, NULL, 0, 0);
	test->call[1][50].end = test->call[2][50].begin - 1;
	failed += expect("disorder between calls that do not", test, NULL, 0, BIT(DISORDER_IN_TIME));

	fill_selftest(test);
	test->ids[0][7][9] ^= UINT64_C(1) << 12;
	failed += expect("a wrong shard", test, NULL, 0, BIT(WRONG_SHARD));

	fill_selftest(test);
	test->call[0][70].clock_after -= SELF_LEAD * 1000;
	failed += expect("a lead that is allowed", test, NULL, 0, 0);
	test->call[0][70].clock_after--;
	failed += expect("a microsecond more", test, NULL, 0, BIT(AHEAD_OF_CLOCK));
	step.begin = test->call[0][70].end;
	step.end = step.begin + 100;
	failed += expect("excused by a step of the clock", test, &step, 1, 0);
	step.begin++;
	failed += expect("but not by a step after the call", test, &step, 1, BIT(AHEAD_OF_CLOCK));
	step.end = test->call[0][70].begin - 1;
	step.begin = step.end - 100;
	failed += expect("nor by one before it", test, &step, 1, BIT(AHEAD_OF_CLOCK));

	fill_selftest(test);
	test->call[0][70].clock_before += 999;
	failed += expect("an ID of this millisecond", test, NULL, 0, 0);
	test->call[0][70].clock_before++;
	failed += expect("an ID of the last one", test, NULL, 0, BIT(BEHIND_CLOCK));

	fill_selftest(test);
	strcpy(test->call[3][10].sqlstate, "57P01");
	failed += expect("a server that shuts down", test, NULL, 0, 0);
	strcpy(test->call[3][10].sqlstate, "XX000");
	failed += expect("an internal error", test, NULL, 0, BIT(BAD_ERROR));

	fill_selftest(test);
	test->cut = 1;
	failed += expect("a ledger cut off", test, NULL, 0, BIT(BAD_FILE));

	printf("%d failed\n", failed);
	return failed > 0 ? 1 : 0;
}


static const char *const usage =
"usage: ledger run [OPTION...] LEDGER		load a server until SIGTERM; writes LEDGER.0, LEDGER.1, ...\n"
"  --connection STRING       where the server is\n"
"  --connection-file FILE    or a file that says so, read again at each connection\n"
"  --sessions N              4 if not given\n"
"  --sequences NAME,...      next_id_seq if not given\n"
"  --first-sequence N        number of the first one in the ledger, 0 if not given\n"
"  --shards N,...            5 if not given\n"
"  --batch N                 most IDs in a call, 200 if not given\n"
"  --rate N                  IDs a second for each session, at most\n"
"  --quiet                   nothing but SELECT, which writes no WAL of its own\n"
"  --duration SECONDS        for ever if not given\n"
"  --seed N\n"
"  --settings STRING         like -c name=value, for every session\n"
"  --some-sessions N --some-settings STRING    and more for the first N of them\n"
"       ledger init                        SQL that makes what \"run\" needs, but for sequences\n"
"       ledger step LOG FILE SETTING       set a clock by writing FILE, and log when\n"
"       ledger check [OPTION...] FILE...   check ledgers; status 1 if anything is wrong\n"
"  --max-lead MS             how far an ID's time may be ahead of the server's clock\n"
"  --steps LOG               when clocks were set; excuses calls at that time\n"
"  --at-least N              IDs that there must be, 1 if not given\n"
"       ledger selftest                    check the checker\n";

int
main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "run") == 0)
		return run(argc - 1, argv + 1);
	if (strcmp(verb, "init") == 0)
	{
		puts(init_sql);
		return 0;
	}
	if (strcmp(verb, "step") == 0)
		return step(argc - 1, argv + 1);
	if (strcmp(verb, "check") == 0)
		return check(argc - 1, argv + 1);
	if (strcmp(verb, "selftest") == 0)
		return selftest();
	fputs(usage, stderr);
	return 2;
}
