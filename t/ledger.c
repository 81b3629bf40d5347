/*-------------------------------------------------------------------------
 *
 * ledger.c
 *	  Keep a ledger of every ID that clients received, and check it.
 *
 * "ledger run" is a crowd of clients.  Each of them notes every ID that
 * reached it, outside the server, whatever became of the transaction and of
 * the server afterwards, and checks it at once: no client may have received it
 * before, and it must be larger than every ID that any client had received
 * when the call began.  A client that loses its connection asks again where
 * the server is, and goes on.  "ledger check" tells what was found, and
 * "ledger selftest" shows that the ledger sees what it is there to see.
 *
 * A ledger is LEDGER.state, with counts, and a LEDGER.N for each sequence: its
 * greatest value, and a bit for each value that was received.  Both are mapped
 * by all clients.  A file of bits is large and sparse: the kernel may write it
 * to disk, so a ledger of any length takes little memory.
 *
 * What it knows of the extension is what every client may know: next_id(), and
 * the place of Instagram's fields in an ID.  It knows nothing of sequences'
 * pages, of WAL, of why a server went away, or of who set its clock.  What
 * sets a clock says so in a file, through "ledger step".
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

/* Instagram's fields */
#define ID_SHARD(id)		(((id) >> 10) & 8191)
#define ID_MSECS(id)		((int64_t) ((id) >> 23) + INT64_C(1314220021721))
/* the sequence's value, which holds everything but the shard */
#define ID_VALUE(id)		(((id) >> 23 << 10) | ((id) & 1023))

/* PostgreSQL's timestamps are microseconds since 2000-01-01. */
#define POSTGRES_EPOCH		INT64_C(946684800000000)
#define NO_CLOCK			INT64_MIN

#define MAX_NAMES			64
#define MAX_BATCH			20000
#define MAX_EXAMPLES		3
#define NSECS				INT64_C(1000000000)

/*
 * In half of all spells nobody writes anything: a commit flushes everybody's
 * WAL, and so do full buffers, which would hide that next_id() forgot to.
 */
#define SPELL				(3 * NSECS)

/* A session that was told to stop waits no longer than this for an answer. */
#define LAST_WAIT			(2 * NSECS)

/*
 * A call for IDs, or for something that goes with it.
 */
typedef struct Call
{
	uint32_t	count;			/* IDs that were received */
	uint32_t	session;
	uint16_t	shard;
	uint16_t	sequence;		/* its number */
	int64_t		begin;			/* before it was sent */
	int64_t		end;			/* after the last ID, or the error */
	uint64_t	floor;			/* all that were received before are no larger */
	uint64_t	first;			/* the values of its IDs */
	uint64_t	last;
	int64_t		clock_before;	/* the server's clock, or NO_CLOCK */
	int64_t		clock_after;
	char		kind;			/* see take_turn() */
	char		sqlstate[6];	/* empty if all went well */
	bool		complete;		/* all was received that was asked for */
} Call;

typedef enum Fault
{
	DUPLICATE,
	DISORDER_IN_CALL,
	DISORDER_IN_TIME,
	WRONG_SHARD,
	AHEAD_OF_CLOCK,
	BEHIND_CLOCK,
	BAD_ERROR,
	FAULTS
} Fault;

static const char *const fault_names[FAULTS] = {
	"duplicates",
	"not growing within a call",
	"out of order in time",
	"wrong shard",
	"too far ahead of the clock",
	"behind the clock",
	"errors that must not be"
};

/* Something that is counted by its name */
typedef struct Tally
{
	char		name[72];
	uint64_t	count;
} Tally;

/*
 * The values received from one sequence, in LEDGER.N.  A bit for each of VALUES
 * values follows, from "base" on.
 */
#define VALUES				(UINT64_C(1) << 41)

typedef struct Received
{
	uint64_t	base;			/* 0 before the first value */
	uint64_t	greatest;
} Received;

/*
 * What all clients of a ledger share, in LEDGER.state.
 */
#define RECENT_CALLS		65536
#define MAX_SUSPECTS		100000

typedef struct State
{
	uint64_t	faults[FAULTS];
	uint64_t	ids;
	uint64_t	calls;
	uint64_t	incomplete;		/* calls that were cut off, with IDs */
	uint64_t	clock_checked;
	int64_t		slowest;
	uint64_t	kinds[128];		/* IDs by kind of call */
	uint32_t	locked;			/* one process at a time adds a tally */
	Tally		errors[MAX_NAMES];
	Tally		errands[MAX_NAMES];

	/* Calls that the clock accuses, unless it was stepped meanwhile */
	uint64_t	suspect_count;
	struct
	{
		Call		call;
		Fault		fault;
		int64_t		usecs;
	}			suspects[MAX_SUSPECTS];

	/* The last calls with IDs, for whoever wants to know who had one before */
	uint64_t	recent_count;
	Call		recent[RECENT_CALLS];
} State;

typedef struct Ledger
{
	const char *path;
	State	   *state;
	Received   *received[MAX_NAMES];	/* NULL if not mapped yet */
	int64_t		max_lead;		/* microseconds, or -1 */
	bool		silent;
} Ledger;

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

#define count_up(counter, n) __atomic_fetch_add(&(counter), n, __ATOMIC_RELAXED)

/*
 * Count something by its name.
 */
static void
tally(State *state, Tally *tallies, const char *name)
{
	int			i = 0;

	while (__atomic_exchange_n(&state->locked, 1, __ATOMIC_ACQUIRE) != 0)
		;
	while (tallies[i].name[0] != '\0' &&
		   strncmp(tallies[i].name, name, sizeof(tallies[i].name) - 1) != 0)
		if (++i == MAX_NAMES)
			die("more than %d things to count", MAX_NAMES);
	strncpy(tallies[i].name, name, sizeof(tallies[i].name) - 1);
	tallies[i].count++;
	__atomic_store_n(&state->locked, 0, __ATOMIC_RELEASE);
}


/*-------------------------------------------------------------------------
 * The ledger, and what is checked of each ID when it is received
 *-------------------------------------------------------------------------
 */

/* Map a file of a ledger, which is made if it is not there. */
static void *
map_file(const Ledger *ledger, const char *suffix, size_t size, bool make)
{
	char		path[1024];
	void	   *memory;
	int			file;

	snprintf(path, sizeof(path), "%s.%s", ledger->path, suffix);
	file = open(path, make ? O_RDWR | O_CREAT : O_RDWR, 0666);
	if (file < 0 || (make && ftruncate(file, size) != 0))
		die("could not open \"%s\": %s", path, strerror(errno));
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
	if (memory == MAP_FAILED)
		die("could not map \"%s\": %s", path, strerror(errno));
	close(file);
	return memory;
}

static void
open_ledger(Ledger *ledger, const char *path, bool make)
{
	memset(ledger, 0, sizeof(Ledger));
	ledger->path = path;
	ledger->max_lead = -1;
	ledger->state = map_file(ledger, "state", sizeof(State), make);
}

/* What was received from a sequence */
static Received *
received_from(Ledger *ledger, int sequence)
{
	if (ledger->received[sequence] == NULL)
	{
		char		suffix[16];

		snprintf(suffix, sizeof(suffix), "%d", sequence);
		ledger->received[sequence] = map_file(ledger, suffix, sizeof(Received) + VALUES / 8, true);
	}
	return ledger->received[sequence];
}

static void show(const Call *call, Fault fault, const char *format,...) PRINTF_LIKE(3, 4);

static void
show(const Call *call, Fault fault, const char *format,...)
{
	char		text[512];
	size_t		used;
	va_list		args;

	used = snprintf(text, sizeof(text) - 1,
					"%s: session %u, sequence %u, shard %u, call %c %" PRId64 " .. %" PRId64
					" with %u IDs of values %" PRIu64 " .. %" PRIu64 ": ",
					fault_names[fault], call->session, call->sequence, call->shard, call->kind,
					call->begin, call->end, call->count, call->first, call->last);
	va_start(args, format);
	used += vsnprintf(text + used, sizeof(text) - 1 - used, format, args);
	va_end(args);
	used = used < sizeof(text) - 1 ? used : sizeof(text) - 2;
	strcpy(text + used, "\n");
	fputs(text, stderr);
}

/* Count a fault, and show the first ones. */
#define blame(ledger, call, fault, ...) \
	do { \
		if (count_up((ledger)->state->faults[fault], 1) < MAX_EXAMPLES && !(ledger)->silent) \
			show(call, fault, __VA_ARGS__); \
	} while (0)

/*
 * Show which of the last calls may have received a value.
 */
static void
show_receivers(const Ledger *ledger, int sequence, uint64_t value)
{
	const State *state = ledger->state;

	for (int i = 0; i < RECENT_CALLS; i++)
	{
		const Call *call = &state->recent[i];

		if (call->count > 0 && call->sequence == sequence &&
			call->first <= value && value <= call->last)
			show(call, DUPLICATE, "may have had %" PRIu64 " before", value);
	}
}

static void
begin_call(Ledger *ledger, Call *call)
{
	call->floor = __atomic_load_n(&received_from(ledger, call->sequence)->greatest,
								  __ATOMIC_ACQUIRE);
}

/*
 * An ID has been received.
 */
static void
receive(Ledger *ledger, Call *call, uint64_t id)
{
	Received   *received = received_from(ledger, call->sequence);
	uint64_t	value = ID_VALUE(id);
	uint64_t	base = __atomic_load_n(&received->base, __ATOMIC_RELAXED);
	uint8_t    *bits = (uint8_t *) (received + 1);
	uint8_t		bit;

	if (base == 0)
	{
		/* The first value, with room below it for what must not come */
		uint64_t	mine = (value > VALUES / 4 ? value - VALUES / 4 : 1) | 1;

		if (__atomic_compare_exchange_n(&received->base, &base, mine, false,
										__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			base = mine;
	}
	if (value < base || value - base >= VALUES)
		die("value %" PRIu64 " of sequence %u is too far from the others", value, call->sequence);

	bit = 1 << (value - base) % 8;
	if (__atomic_fetch_or(&bits[(value - base) / 8], bit, __ATOMIC_RELAXED) & bit)
	{
		blame(ledger, call, DUPLICATE, "%" PRIu64 " came more than once", id);
		if (ledger->state->faults[DUPLICATE] <= MAX_EXAMPLES && !ledger->silent)
			show_receivers(ledger, call->sequence, value);
	}
	if (value <= call->floor)
		blame(ledger, call, DISORDER_IN_TIME, "value %" PRIu64 " came after %" PRIu64,
			  value, call->floor);
	if (call->count > 0 && value <= call->last)
		blame(ledger, call, DISORDER_IN_CALL, "value %" PRIu64 " came after %" PRIu64,
			  value, call->last);
	if (ID_SHARD(id) != call->shard)
		blame(ledger, call, WRONG_SHARD, "%" PRIu64 " has shard %u", id, (unsigned) ID_SHARD(id));

	if (call->count++ == 0)
		call->first = value;
	call->last = value;
}

/*
 * Let the calls that begin from here on know what this one has received.
 */
static void
publish(Ledger *ledger, const Call *call)
{
	Received   *received = received_from(ledger, call->sequence);
	uint64_t	greatest = __atomic_load_n(&received->greatest, __ATOMIC_RELAXED);

	while (call->last > greatest &&
		   !__atomic_compare_exchange_n(&received->greatest, &greatest, call->last, false,
										__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/*
 * A call whose ID does not fit the server's clock is a fault, unless the clock
 * was stepped at that time, which "ledger check" knows.
 */
static void
suspect(State *state, const Call *call, Fault fault, int64_t usecs)
{
	uint64_t	i = count_up(state->suspect_count, 1);

	if (i >= MAX_SUSPECTS)
		die("more than %d calls are %s", MAX_SUSPECTS, fault_names[fault]);
	state->suspects[i].call = *call;
	state->suspects[i].fault = fault;
	state->suspects[i].usecs = usecs;
}

/*
 * Errors that a client has to live with when servers die, are promoted or
 * shut down.  Anything else is a fault.
 */
static bool
expected_error(const Call *call)
{
	const char *sqlstate = call->sqlstate;

	return (call->kind == 'w' && strcmp(sqlstate, "55P03") == 0) ||	/* lock_timeout */
		strncmp(sqlstate, "08", 2) == 0 ||	/* connection lost */
		strncmp(sqlstate, "57P", 3) == 0 || /* server shuts down, starts up */
		strcmp(sqlstate, "57014") == 0 ||	/* cancelled, by a shutdown */
		strcmp(sqlstate, "25006") == 0 ||	/* not promoted yet */
		strcmp(sqlstate, "53300") == 0 ||	/* too many connections */
		strcmp(sqlstate, "53400") == 0 ||	/* too far ahead of the clock */
		strcmp(sqlstate, "stop") == 0;	/* it was us */
}

static void
end_call(Ledger *ledger, const Call *call)
{
	State	   *state = ledger->state;

	publish(ledger, call);
	count_up(state->calls, 1);
	if (call->sqlstate[0] != '\0')
	{
		tally(state, state->errors, call->sqlstate);
		if (!expected_error(call))
			blame(ledger, call, BAD_ERROR, "SQLSTATE %s", call->sqlstate);
	}
	else if (call->end - call->begin > state->slowest)
		state->slowest = call->end - call->begin;
	if (call->count == 0)
		return;

	count_up(state->ids, call->count);
	count_up(state->kinds[(int) call->kind], call->count);
	if (!call->complete)
		count_up(state->incomplete, 1);
	state->recent[count_up(state->recent_count, 1) % RECENT_CALLS] = *call;

	/*
	 * The last ID was taken before the clock was read again; the first one
	 * after it was read.
	 */
	if (call->clock_after != NO_CLOCK && ledger->max_lead >= 0)
	{
		int64_t		ahead = ID_MSECS(call->last << 13) * 1000 - POSTGRES_EPOCH - call->clock_after;

		count_up(state->clock_checked, 1);
		if (ahead > ledger->max_lead)
			suspect(state, call, AHEAD_OF_CLOCK, ahead);
	}
	if (call->clock_before != NO_CLOCK)
	{
		int64_t		behind = (call->clock_before + POSTGRES_EPOCH) / 1000 - ID_MSECS(call->first << 13);

		count_up(state->clock_checked, 1);
		if (behind > 0)
			suspect(state, call, BEHIND_CLOCK, behind * 1000);
	}
}


/*-------------------------------------------------------------------------
 * run: the clients
 *-------------------------------------------------------------------------
 */

typedef struct RunOptions
{
	const char *connection;		/* connection string */
	const char *connection_file;	/* or the file that holds it */
	const char *some_settings;	/* of the connections of the first sessions */
	int			some_sessions;
	int			sessions;
	char	   *sequences[MAX_NAMES];
	int			sequence_count;
	int			first_sequence; /* number of the first one */
	char	   *shards[MAX_NAMES];
	int			shard_count;
	int			batch;			/* most IDs in a call */
	bool		quiet;			/* nothing but SELECT */
	bool		bulk;			/* COPY, large INSERTs, rewrites */
	char	   *errands[MAX_NAMES];	/* MS:SQL, each in a session of its own */
	int			errand_count;
	const char *copies;			/* name of databases that are copied */
	uint64_t	seed;
	Ledger		ledger;
} RunOptions;

typedef struct Session
{
	RunOptions *options;
	int			number;
	uint64_t	random;
	PGconn	   *conn;
	char		database[64];	/* if not that of the connection string */
	int			first_sequence;
	int			sequence;		/* of this turn, from 0 */
	Call		call;
	uint64_t	ids[MAX_BATCH];	/* that count if the transaction is committed */
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
	const char *settings = session->number < options->some_sessions ? options->some_settings :
		session->number < options->sessions ? "" :
		"-c lock_timeout=200ms";	/* An errand must not wait for one that waits for it. */
	const char *keywords[] = {"dbname", "options", "application_name", "connect_timeout", "dbname", NULL};
	const char *values[] = {where, settings, "ledger", "5", session->database, NULL};

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

		/* Others may hear of what we have, before we know of more. */
		publish(&session->options->ledger, &session->call);
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
get_int64(const char *bytes)
{
	uint64_t	value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | (unsigned char) bytes[i];
	return (int64_t) value;
}

/*
 * Take an ID, or an array of them, from the second column of a row.  What a
 * rolled back change of the sequence gave is given again, so the IDs of a call
 * of that kind count when it has been committed.
 */
static void
take_ids(Session *session, const PGresult *result, uint32_t *deferred)
{
	Call	   *call = &session->call;
	const char *value = PQgetvalue(result, 0, 1);
	const char *end = value + PQgetlength(result, 0, 1);
	const char *next = value;

	if (PQfformat(result, 1) == 1 && end - value > 8)
		next += 20;				/* an array's header */
	while (next < end)
	{
		uint64_t	id;

		if (PQfformat(result, 1) == 1)
		{
			if (end - value > 8)
				next += 4;		/* an element's length */
			if (end - next < 8)
				break;
			id = get_int64(next);
			next += 8;
		}
		else
		{
			char	   *after;

			id = strtoull(next + !isdigit((unsigned char) *next), &after, 10);
			next = after + (*after == '}');
		}

		if (call->kind != 'w')
			receive(&session->options->ledger, call, id);
		else if (*deferred < MAX_BATCH)
			session->ids[(*deferred)++] = id;
	}
}

/*
 * Put a call's particulars into a query: $S for the shard, $Q for the sequence
 * and, if it has one, its layout, $R for the sequence alone, $N for the count,
 * $T for a number that no other session has.
 */
static void
fill_in(char *query, size_t size, const char *format, const Session *session,
		const char *sequence, int count)
{
	const char *layout = strchr(sequence, '=');
	int			length = layout != NULL ? (int) (layout - sequence) : (int) strlen(sequence);
	size_t		used = 0;

	for (; *format != '\0' && used < size - 1; format++)
	{
		char	   *next = query + used;
		size_t		room = size - used;

		if (*format != '$')
		{
			query[used++] = *format;
			continue;
		}
		switch (*++format)
		{
			case 'S':
				used += snprintf(next, room, "%u", session->call.shard);
				break;
			case 'Q':
				if (layout != NULL)
					used += snprintf(next, room, "'%.*s', '%s'", length, sequence, layout + 1);
				else
					used += snprintf(next, room, "'%s'", sequence);
				break;
			case 'R':
				used += snprintf(next, room, "%.*s", length, sequence);
				break;
			case 'N':
				used += snprintf(next, room, "%d", count);
				break;
			case 'T':
				used += snprintf(next, room, "%d", session->number);
				break;
		}
	}
	if (used >= size)
		die("a query is too long");
	query[used] = '\0';
}

/* Lines for COPY ... FROM STDIN */
static bool
send_lines(PGconn *conn, int count)
{
	while (count-- > 0)
		if (PQputCopyData(conn, "1\n", 2) != 1)
			return false;
	return PQputCopyEnd(conn, NULL) == 1;
}

/*
 * One call: send a query whose rows are clock, IDs, clock, note what comes, and
 * return whether the session can go on with what it was at.
 */
static bool
call(Session *session, char kind, const char *format, int count)
{
	RunOptions *options = session->options;
	Call	   *call = &session->call;
	const char *name;
	char		query[1024];
	uint32_t	deferred = 0;
	bool		sent;
	bool		usable = true;

	/*
	 * Transactions with several sequences would deadlock with those that rewrite
	 * one, and PostgreSQL's deadlock check comes late if the clock steps back.
	 */
	if (!options->bulk)
		session->sequence = random_below(session, options->sequence_count);
	name = options->sequences[session->sequence];
	memset(call, 0, sizeof(Call));
	call->session = session->number;
	call->shard = atoi(options->shards[random_below(session, options->shard_count)]);
	call->sequence = session->first_sequence + session->sequence;
	call->kind = kind;
	call->clock_before = NO_CLOCK;
	call->clock_after = NO_CLOCK;
	fill_in(query, sizeof(query), format, session, name, count);

	begin_call(&options->ledger, call);
	call->begin = monotonic();
	if (count == 0 || strchr(query, ';') != NULL)
		sent = PQsendQuery(session->conn, query);
	else
		sent = PQsendQueryParams(session->conn, query, 0, NULL, NULL, NULL, NULL, 1);
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
			take_ids(session, result, &deferred);
			if (PQfformat(result, 1) == 1 && strchr(name, '=') == NULL)
			{
				if (!PQgetisnull(result, 0, 0) && call->clock_before == NO_CLOCK)
					call->clock_before = get_int64(PQgetvalue(result, 0, 0));
				call->clock_after = PQgetisnull(result, 0, 2) ? NO_CLOCK :
					get_int64(PQgetvalue(result, 0, 2));
			}
		}
		else if (PQresultStatus(result) == PGRES_COPY_IN)
			(void) send_lines(session->conn, count);	/* an error comes as the next result */
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
	if (PQstatus(session->conn) != CONNECTION_OK && call->sqlstate[0] == '\0')
	{
		strcpy(call->sqlstate, "08006");
		usable = false;
	}
	if (call->sqlstate[0] == '\0')
		for (uint32_t i = 0; i < deferred; i++)
			receive(&options->ledger, call, session->ids[i]);
	call->end = monotonic();
	call->complete = call->sqlstate[0] == '\0' && (int) call->count >= count;

	if (call->count > 0 || call->sqlstate[0] != '\0')
		end_call(&options->ledger, call);
	return usable;
}

/* Queries for IDs.  Each row has the server's clock around its IDs, if any. */
static const char *const select_one =
"SELECT clock_timestamp(), next_id($S, $Q), clock_timestamp()";

static const char *const select_many =
"SELECT CASE WHEN i = 1 THEN clock_timestamp() END, next_id($S, $Q),"
" CASE WHEN i = $N THEN clock_timestamp() END FROM generate_series(1, $N) i";

static const char *const insert_many =
"INSERT INTO ledger_rows SELECT next_id($S, $Q) FROM generate_series(1, $N)"
" RETURNING NULL::timestamptz, id, clock_timestamp()";

static const char *const select_batch =
"SELECT NULL::timestamptz, id, NULL::timestamptz FROM next_ids($S, $N, $Q) id";

static const char *const select_array =
"SELECT NULL::timestamptz, array_agg(id), clock_timestamp() FROM next_ids($S, $N, $Q) id";

static const char *const insert_batch =
"WITH i AS (INSERT INTO ledger_rows SELECT next_ids($S, $N, $Q) RETURNING id)"
" SELECT NULL::timestamptz, array_agg(id), clock_timestamp() FROM i";

/* A table that is filled by COPY, and then rewritten */
static const char *const copy_and_rewrite =
"BEGIN; CREATE TABLE ledger_copy_$T (n int, id bigint DEFAULT next_id($S, $Q));"
" COPY ledger_copy_$T (n) FROM STDIN;"
" ALTER TABLE ledger_copy_$T ADD again bigint DEFAULT next_id($S, $Q);"
" SELECT NULL, array_agg(id) || array_agg(again), NULL FROM ledger_copy_$T;"
" DROP TABLE ledger_copy_$T; COMMIT";

static const char *const copy_and_roll_back =
"BEGIN; CREATE TABLE ledger_copy_$T (n int, id bigint DEFAULT next_id($S, $Q));"
" COPY ledger_copy_$T (n) FROM STDIN;"
" SELECT NULL, array_agg(id), NULL FROM ledger_copy_$T; ROLLBACK";

/* A new file for the sequence, with the old one's count of values that are logged */
static const char *const rewrite_sequence =
"BEGIN; SET LOCAL lock_timeout = 200; ALTER SEQUENCE $R SET UNLOGGED; ALTER SEQUENCE $R SET LOGGED; COMMIT";

static const char *const rewrite_and_use =
"BEGIN; SET LOCAL lock_timeout = 200; ALTER SEQUENCE $R SET UNLOGGED; ALTER SEQUENCE $R SET LOGGED;"
" SELECT NULL, array_agg(id), NULL FROM next_ids($S, $N, $Q) id; COMMIT";

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
 * A turn of many IDs, or of a rewrite.
 */
static bool
take_bulk_turn(Session *session, bool quiet)
{
	int			dice = random_below(session, 100);
	int			count = 1 + random_below(session, MAX_BATCH / 2);

	if (dice < 15)
		return call(session, 'n', select_batch, count);
	if (dice < 60 || quiet)
		return call(session, 'a', select_array, count);
	if (dice < 68)
		return call(session, 'I', insert_batch, 1 + count / 10);
	if (dice < 76)
		return call(session, 'C', copy_and_rewrite, 1 + count / 20);
	if (dice < 84)
		return call(session, 'C', copy_and_roll_back, 1 + count / 20);
	if (dice < 92)
		return command(session, 'w', rewrite_sequence);
	return call(session, 'w', rewrite_and_use, count);
}

/*
 * One turn: a call by itself, or a transaction with some.
 */
static bool
take_turn(Session *session, bool quiet)
{
	int			dice = random_below(session, 100);

	session->sequence = random_below(session, session->options->sequence_count);
	if (session->options->bulk && random_below(session, 10) == 0)
		return take_bulk_turn(session, quiet);
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
 * Carry out a command, which is counted by its name, and say whether it was.
 * The ledger has no word about errors.
 */
static bool
carry_out(Session *session, const char *name, const char *query)
{
	bool		done = PQsendQuery(session->conn, query);
	PGresult   *result;

	while (await_result(session) && (result = PQgetResult(session->conn)) != NULL)
	{
		ExecStatusType status = PQresultStatus(result);

		if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
			done = false;
		PQclear(result);
	}
	if (!done)
		disconnect(session);
	else
		tally(session->options->ledger.state, session->options->ledger.state->errands, name);
	return done;
}

/*
 * The session's database, of a series, is copied, and the session goes on with
 * the copy.  The original is not used again, so the sequences of all of them
 * are one in the ledger.  A copy is not used, and its number not taken, unless
 * the server said that it is there.
 */
static void
copy_database(Session *session, int *copy)
{
	static const char *const strategies[] = {"CREATE DATABASE WAL_LOG", "CREATE DATABASE FILE_COPY"};
	const char *name = session->options->copies;
	const char *strategy = strategies[random_below(session, 2)];
	char		query[256];
	bool		copied;

	disconnect(session);
	session->database[0] = '\0';
	if (!connect_session(session))
		return;
	if (*copy > 0)
	{
		snprintf(query, sizeof(query), "DROP DATABASE IF EXISTS %s_%d", name, *copy - 1);
		if (!carry_out(session, "DROP DATABASE", query))
			return;
	}
	snprintf(query, sizeof(query), "DROP DATABASE IF EXISTS %s_%d", name, *copy + 1);
	if (!carry_out(session, "DROP DATABASE", query))
		return;
	snprintf(query, sizeof(query), "CREATE DATABASE %s_%d TEMPLATE %s_%d STRATEGY %s",
			 name, *copy + 1, name, *copy, strategy + strlen("CREATE DATABASE "));
	copied = carry_out(session, strategy, query);
	disconnect(session);
	*copy += copied;
}

/*
 * A client, until it is told to stop.  The first ones ask for IDs, then there
 * are those with an errand, and one that copies databases.
 */
static void
run_session(RunOptions *options, int number, pid_t parent)
{
	Session    *session = allocate(sizeof(Session));
	int			errand = number - options->sessions;
	int64_t		pause = 0;		/* of an errand, milliseconds */
	int			copy = 0;		/* the database's number */
	bool		copies = errand == options->errand_count;

	session->options = options;
	session->number = number;
	session->random = scramble(options->seed * 1000003 + number);
	session->first_sequence = options->first_sequence + (copies ? options->sequence_count : 0);
	if (errand >= 0 && !copies)
		pause = atoi(options->errands[errand]);

	while (!stopping && !orphaned(parent))
	{
		uint64_t	spell = scramble(options->seed ^ (monotonic() / SPELL));

		if (copies)
		{
			if (random_below(session, 100) == 0)
				copy_database(session, &copy);
			snprintf(session->database, sizeof(session->database), "%s_%d", options->copies, copy);
		}
		if (session->conn == NULL && !connect_session(session))
		{
			doze(NSECS / 100 + random_below(session, NSECS / 50));
			continue;
		}

		if (pause > 0)
		{
			doze(random_below(session, pause * 2) * (NSECS / 1000));
			(void) carry_out(session, strchr(options->errands[errand], ':') + 1,
							 strchr(options->errands[errand], ':') + 1);
		}
		else if (!take_turn(session, options->quiet || spell % 2 != 0) ||
				 (options->bulk && random_below(session, 100) == 0))
		{
			/* Whatever it was, go on in another session. */
			disconnect(session);
			doze(random_below(session, NSECS / 100));
		}
	}
	if (session->conn != NULL)
		PQfinish(session->conn);
	exit(0);
}

static void
write_count(const Ledger *ledger)
{
	char		name[1024];
	char		new_name[1032];
	FILE	   *file;

	snprintf(name, sizeof(name), "%s.count", ledger->path);
	snprintf(new_name, sizeof(new_name), "%s.new", name);
	file = fopen(new_name, "w");
	if (file == NULL)
		die("could not write \"%s\": %s", new_name, strerror(errno));
	fprintf(file, "%" PRIu64 "\n", ledger->state->ids);
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
		{"bulk", no_argument, NULL, 'B'},
		{"every", required_argument, NULL, 'e'},
		{"copies", required_argument, NULL, 'C'},
		{"max-lead", required_argument, NULL, 'l'},
		{"seed", required_argument, NULL, 'S'},
		{"some-sessions", required_argument, NULL, 'a'},
		{"some-settings", required_argument, NULL, 'A'},
		{NULL, 0, NULL, 0}
	};
	RunOptions	options = {0};
	struct sigaction action = {0};
	pid_t	   *pids;
	pid_t		self = getpid();
	pid_t		parent = getppid();
	int64_t		max_lead = -1;
	int			processes;
	int			option;
	int			status = 0;

	options.connection = "";
	options.some_settings = "";
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
				options.first_sequence = number_argument(optarg, 0, MAX_NAMES - 1);
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
			case 'B':
				options.bulk = true;
				break;
			case 'e':
				if (options.errand_count == MAX_NAMES || atoi(optarg) < 1 || strchr(optarg, ':') == NULL)
					die("\"%s\" is no errand", optarg);
				options.errands[options.errand_count++] = optarg;
				break;
			case 'C':
				options.copies = optarg;
				break;
			case 'l':
				max_lead = number_argument(optarg, 0, INT64_MAX / 1000) * 1000;
				break;
			case 'S':
				options.seed = number_argument(optarg, 0, INT64_MAX);
				break;
			case 'a':
				options.some_sessions = number_argument(optarg, 0, 1000);
				break;
			case 'A':
				options.some_settings = optarg;
				break;
			default:
				return 2;
		}
	}
	if (optind != argc - 1)
		die("run needs the name of the ledger");
	if (options.first_sequence + options.sequence_count * 2 > MAX_NAMES)
		die("more than %d sequences", MAX_NAMES);
	open_ledger(&options.ledger, argv[optind], true);
	options.ledger.max_lead = max_lead;

	processes = options.sessions + options.errand_count + (options.copies != NULL);
	action.sa_handler = stop;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);

	pids = allocate(processes * sizeof(pid_t));
	for (int i = 0; i < processes; i++)
	{
		pids[i] = fork();
		if (pids[i] < 0)
			die("could not fork: %s", strerror(errno));
		if (pids[i] == 0)
			run_session(&options, i, self);
	}

	for (int running = processes; running > 0;)
	{
		int			child_status;
		pid_t		pid;

		write_count(&options.ledger);

		if (stopping || orphaned(parent))
		{
			stopping = 1;
			for (int i = 0; i < processes; i++)
				if (pids[i] > 0)
					kill(pids[i], SIGTERM);
		}
		doze(NSECS / 10);
		while ((pid = waitpid(-1, &child_status, WNOHANG)) > 0)
		{
			running--;
			for (int i = 0; i < processes; i++)
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
	write_count(&options.ledger);
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
 * check: what the clients found
 *-------------------------------------------------------------------------
 */

/* A time in which a clock was stepped */
typedef struct Step
{
	int64_t		begin;
	int64_t		end;
} Step;

typedef struct Steps
{
	Step	   *steps;
	int			count;
} Steps;

static bool
clock_stepped(const Steps *steps, const Call *call)
{
	for (int i = 0; i < steps->count; i++)
		if (steps->steps[i].begin <= call->end && steps->steps[i].end >= call->begin)
			return true;
	return false;
}

static void
read_steps(Steps *steps, const char *name)
{
	FILE	   *file = fopen(name, "r");
	char		line[1024];

	if (file == NULL)
		die("could not open \"%s\": %s", name, strerror(errno));
	while (fgets(line, sizeof(line), file) != NULL)
	{
		Step	   *step;

		steps->steps = realloc(steps->steps, (steps->count + 1) * sizeof(Step));
		if (steps->steps == NULL)
			die("out of memory");
		step = &steps->steps[steps->count++];
		if (sscanf(line, "%" SCNd64 " %" SCNd64, &step->begin, &step->end) != 2)
			die("\"%s\" is not a log of clock steps", name);
	}
	fclose(file);
}

/*
 * Blame the calls that no step of the clock excuses; returns how many one does.
 */
static uint64_t
try_suspects(Ledger *ledger, const Steps *steps)
{
	State	   *state = ledger->state;
	uint64_t	excused = 0;

	state->faults[AHEAD_OF_CLOCK] = state->faults[BEHIND_CLOCK] = 0;
	for (uint64_t i = 0; i < state->suspect_count; i++)
	{
		if (clock_stepped(steps, &state->suspects[i].call))
			excused++;
		else
			blame(ledger, &state->suspects[i].call, state->suspects[i].fault,
				  "by %" PRId64 " us", state->suspects[i].usecs);
	}
	return excused;
}

static void
add_tallies(Tally *sum, const Tally *tallies)
{
	for (; tallies->name[0] != '\0'; tallies++)
	{
		int			i = 0;

		while (sum[i].name[0] != '\0' && strcmp(sum[i].name, tallies->name) != 0)
			if (++i == MAX_NAMES - 1)
				die("more than %d things to count", MAX_NAMES);
		strcpy(sum[i].name, tallies->name);
		sum[i].count += tallies->count;
	}
}

static void
print_tallies(const char *title, const Tally *tallies)
{
	printf("%-30s", title);
	if (tallies->name[0] == '\0')
		printf(" none");
	for (; tallies->name[0] != '\0'; tallies++)
		printf(" %s: %" PRIu64, tallies->name, tallies->count);
	putchar('\n');
}

static int
check(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"steps", required_argument, NULL, 's'},
		{NULL, 0, NULL, 0}
	};
	State	   *sum = allocate(sizeof(State));
	Steps		steps = {0};
	uint64_t	excused = 0;
	int			option;
	bool		good;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
	{
		if (option != 's')
			return 2;
		read_steps(&steps, optarg);
	}
	if (optind == argc)
		die("check needs the names of ledgers");

	for (int i = optind; i < argc; i++)
	{
		Ledger		ledger;
		const State *state;

		open_ledger(&ledger, argv[i], false);
		excused += try_suspects(&ledger, &steps);
		state = ledger.state;
		for (int j = 0; j < FAULTS; j++)
			sum->faults[j] += state->faults[j];
		for (int j = 0; j < 128; j++)
			sum->kinds[j] += state->kinds[j];
		sum->ids += state->ids;
		sum->calls += state->calls;
		sum->incomplete += state->incomplete;
		sum->clock_checked += state->clock_checked;
		if (state->slowest > sum->slowest)
			sum->slowest = state->slowest;
		add_tallies(sum->errors, state->errors);
		add_tallies(sum->errands, state->errands);
	}

	good = sum->ids > 0;
	printf("%-30s %" PRIu64 " in %" PRIu64 " calls, %" PRIu64 " of them cut off\n",
		   "IDs received", sum->ids, sum->calls, sum->incomplete);
	for (int i = 0; i < FAULTS; i++)
	{
		printf("%-30s %" PRIu64 "\n", fault_names[i], sum->faults[i]);
		good = good && sum->faults[i] == 0;
	}
	printf("%-30s %" PRIu64 " times, %" PRIu64 " excused by %d steps\n",
		   "compared with the clock", sum->clock_checked, excused, steps.count);
	printf("%-30s %.3f s\n", "slowest call", sum->slowest / 1e9);
	printf("%-30s", "IDs by kind of call");
	for (int i = 0; i < 128; i++)
		if (sum->kinds[i] > 0)
			printf(" %c: %" PRIu64, i, sum->kinds[i]);
	putchar('\n');
	print_tallies("errors by SQLSTATE", sum->errors);
	print_tallies("carried out", sum->errands);
	return good ? 0 : 1;
}


/*-------------------------------------------------------------------------
 * selftest: does the ledger see what it is there to see?
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

/*
 * A moment of the test: a call begins or ends.
 */
typedef struct Event
{
	int64_t		time;
	Call	   *call;
	const uint64_t *ids;
} Event;

static int
compare_events(const void *a, const void *b)
{
	int64_t		x = ((const Event *) a)->time;
	int64_t		y = ((const Event *) b)->time;

	return (x > y) - (x < y);
}

/*
 * Receive the test's IDs in the order of its times, in a new ledger.
 */
static void
play_selftest(SelfTest *test, const Steps *steps, uint64_t *faults)
{
	char		path[] = "/tmp/ledger.XXXXXX";
	char		name[64];
	Event	   *events = allocate(SELF_SESSIONS * SELF_CALLS * 2 * sizeof(Event));
	Ledger		ledger;
	size_t		count = 0;
	int			file = mkstemp(path);

	if (file < 0)
		die("could not make \"%s\": %s", path, strerror(errno));
	close(file);
	open_ledger(&ledger, path, true);
	ledger.max_lead = SELF_LEAD * 1000;
	ledger.silent = true;

	for (int i = 0; i < SELF_SESSIONS; i++)
		for (int j = 0; j < SELF_CALLS; j++)
		{
			Call	   *call = &test->call[i][j];

			events[count++] = (Event) {call->begin, call, NULL};
			events[count++] = (Event) {call->end, call, test->ids[i][j]};
		}
	qsort(events, count, sizeof(Event), compare_events);
	for (size_t i = 0; i < count; i++)
	{
		Call		call = *events[i].call;

		if (events[i].ids == NULL)
			begin_call(&ledger, events[i].call);
		else
		{
			call.count = 0;
			for (uint32_t j = 0; j < events[i].call->count; j++)
				receive(&ledger, &call, events[i].ids[j]);
			end_call(&ledger, &call);
		}
	}
	(void) try_suspects(&ledger, steps);
	memcpy(faults, ledger.state->faults, sizeof(ledger.state->faults));

	free(events);
	munmap(ledger.state, sizeof(State));
	unlink(path);
	snprintf(name, sizeof(name), "%s.state", path);
	unlink(name);
	for (int i = 0; i < MAX_NAMES; i++)
		if (ledger.received[i] != NULL)
		{
			munmap(ledger.received[i], sizeof(Received) + VALUES / 8);
			snprintf(name, sizeof(name), "%s.%d", path, i);
			unlink(name);
		}
}

static int
expect(const char *what, SelfTest *test, const Step *step, unsigned expected)
{
	Steps		steps = {(Step *) step, step != NULL};
	uint64_t	faults[FAULTS];
	unsigned	found = 0;

	play_selftest(test, &steps, faults);
	for (int i = 0; i < FAULTS; i++)
		if (faults[i] > 0)
			found |= 1u << i;
	printf("%s - %s\n", found == expected ? "ok" : "not ok", what);
	for (int i = 0; i < FAULTS; i++)
		if ((found ^ expected) >> i & 1)
			printf("#   %s: %" PRIu64 ", which %s\n", fault_names[i], faults[i],
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
	failed += expect("nothing planted", test, NULL, 0);

	/* the calls 401 and 402 overlap */
	fill_selftest(test);
	test->ids[2][100][0] = (test->ids[1][100][SELF_IDS - 1] & ~(UINT64_C(8191) << 10)) |
		(uint64_t) test->call[2][100].shard << 10;
	test->call[2][100].clock_before = NO_CLOCK;
	failed += expect("a value twice, in calls that overlap", test, NULL, BIT(DUPLICATE));

	fill_selftest(test);
	test->ids[2][150][3] = test->ids[2][20][3];
	failed += expect("an ID twice, in a session", test, NULL,
					 BIT(DUPLICATE) | BIT(DISORDER_IN_CALL) | BIT(DISORDER_IN_TIME));

	fill_selftest(test);
	test->ids[2][150][3] = test->ids[0][20][3];
	test->call[2][150].kind = 'r';
	strcpy(test->call[2][150].sqlstate, "08006");
	test->call[2][150].complete = 0;
	test->call[2][150].clock_after = NO_CLOCK;
	failed += expect("an ID twice, in a call that was cut off", test, NULL,
					 BIT(DUPLICATE) | BIT(DISORDER_IN_CALL) | BIT(DISORDER_IN_TIME));

	fill_selftest(test);
	test->ids[3][199][SELF_IDS - 1] = test->ids[2][199][SELF_IDS - 1] ^ (UINT64_C(3) << 10);
	test->call[3][199].count = SELF_IDS;
	test->call[3][199].clock_after = NO_CLOCK;
	failed += expect("a value twice, for two shards", test, NULL,
					 BIT(DUPLICATE) | BIT(DISORDER_IN_CALL));

	fill_selftest(test);
	swap = test->ids[1][50][4];
	test->ids[1][50][4] = test->ids[1][50][5];
	test->ids[1][50][5] = swap;
	failed += expect("two IDs swapped within a call", test, NULL, BIT(DISORDER_IN_CALL));

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
	failed += expect("disorder between calls that overlap is none", test, NULL, 0);
	test->call[1][50].end = test->call[2][50].begin - 1;
	failed += expect("disorder between calls that do not", test, NULL, BIT(DISORDER_IN_TIME));

	fill_selftest(test);
	test->ids[0][7][9] ^= UINT64_C(1) << 12;
	failed += expect("a wrong shard", test, NULL, BIT(WRONG_SHARD));

	fill_selftest(test);
	test->call[0][70].clock_after -= SELF_LEAD * 1000;
	failed += expect("a lead that is allowed", test, NULL, 0);
	test->call[0][70].clock_after--;
	failed += expect("a microsecond more", test, NULL, BIT(AHEAD_OF_CLOCK));
	step.begin = test->call[0][70].end;
	step.end = step.begin + 100;
	failed += expect("excused by a step of the clock", test, &step, 0);
	step.begin++;
	failed += expect("but not by a step after the call", test, &step, BIT(AHEAD_OF_CLOCK));
	step.end = test->call[0][70].begin - 1;
	step.begin = step.end - 100;
	failed += expect("nor by one before it", test, &step, BIT(AHEAD_OF_CLOCK));

	fill_selftest(test);
	test->call[0][70].clock_before += 999;
	failed += expect("an ID of this millisecond", test, NULL, 0);
	test->call[0][70].clock_before++;
	failed += expect("an ID of the last one", test, NULL, BIT(BEHIND_CLOCK));

	fill_selftest(test);
	strcpy(test->call[3][10].sqlstate, "57P01");
	failed += expect("a server that shuts down", test, NULL, 0);
	strcpy(test->call[3][10].sqlstate, "XX000");
	failed += expect("an internal error", test, NULL, BIT(BAD_ERROR));

	printf("%d failed\n", failed);
	return failed > 0 ? 1 : 0;
}


static const char *const usage =
"usage: ledger run [OPTION...] LEDGER		load a server until SIGTERM; writes LEDGER.*\n"
"  --connection STRING       where the server is\n"
"  --connection-file FILE    or a file that says so, read again at each connection\n"
"  --sessions N              4 if not given\n"
"  --sequences NAME[=LAYOUT],...    next_id_seq if not given; a layout with Instagram's fields\n"
"  --first-sequence N        number of the first one in the ledger, 0 if not given\n"
"  --shards N,...            5 if not given\n"
"  --batch N                 most IDs in a call, 200 if not given\n"
"  --bulk                    many IDs at a time, COPY, and rewrites of tables and sequences, too\n"
"  --every MS:SQL            a session more that carries this out about every MS milliseconds\n"
"  --copies NAME             and one that uses the database NAME_0, then a copy, NAME_1, and so on\n"
"  --max-lead MS             how far an ID's time may be ahead of the server's clock\n"
"  --quiet                   nothing but SELECT, which writes no WAL of its own\n"
"  --seed N\n"
"  --some-sessions N --some-settings STRING    like -c name=value, for the first N sessions\n"
"       ledger init                        SQL that makes what \"run\" needs, but for sequences\n"
"       ledger step LOG FILE SETTING       set a clock by writing FILE, and log when\n"
"       ledger check [--steps LOG] LEDGER...    tell what was found; status 1 if anything is wrong\n"
"  --steps LOG               when clocks were set; excuses calls at that time\n"
"       ledger selftest                    plant faults, and see them found\n";

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
