/*-------------------------------------------------------------------------
 *
 * ledger.h
 *	  A ledger of every ID that clients received, and what is wrong with it.
 *
 * LEDGER.state holds a State, and each LEDGER.N the values that came from one
 * sequence.  All clients of a ledger map these files, so they see each other's
 * IDs at once.  The files of values are large and sparse, and the kernel may
 * write them to disk, so a ledger of any length takes little memory.
 *
 * All that the ledger knows of the extension is what every client may know:
 * the functions next_id(), next_ids() and snowflake_advance(), and where
 * Instagram's fields are in an ID.  It knows nothing of sequences' pages, of
 * WAL, of why a server went away, or of who set its clock.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, so all clients, and the processes
 * that step a server's clock, must be on one machine.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <err.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

/* Instagram's fields */
#define ID_SHARD(id)		(((id) >> 10) & 8191)
#define ID_MSECS(id)		((int64_t) ((id) >> 23) + INT64_C(1314220021721))
/* the sequence's value, which holds everything except the shard */
#define ID_VALUE(id)		(((id) >> 23 << 10) | ((id) & 1023))
#define VALUE_ID(value, shard)	(((value) >> 10 << 23) | (uint64_t) (shard) << 10 | ((value) & 1023))
#define VALUE_MSECS(value)	ID_MSECS((value) << 13)

#define NSECS				INT64_C(1000000000)
#define MAX_SEQUENCES		8
#define MAX_ERRORS			64
#define MAX_SUSPECTS		100000
#define MAX_BATCH			10000

/*
 * A request for IDs, or for something that goes with it.
 */
typedef struct Call
{
	uint32_t	count;			/* IDs that were received */
	uint32_t	session;
	uint16_t	shard;
	uint16_t	sequence;		/* its number */
	int64_t		begin;			/* before it was sent */
	int64_t		end;			/* after the last ID, or the error */
	uint64_t	floor;			/* greatest value received by anyone before */
	uint64_t	first;			/* the values of its IDs */
	uint64_t	last;
	int64_t		clock_before;	/* the server's clock around the IDs, Unix */
	int64_t		clock_after;	/* microseconds, or 0 if it is not known */
	uint64_t	late;			/* its first ID that is not above the floor, or 0 */
	char		kind;			/* see turns[] in turns.c */
	char		sqlstate[8];	/* empty if there was no error */
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

extern const char *const fault_names[FAULTS];

typedef struct Tally
{
	uint64_t	sqlstate;		/* its characters; 0 if there is none yet */
	uint64_t	count;
} Tally;

/*
 * A call at fault, unless something happened at that time which excuses it.  The
 * number is the first ID at fault, or the microseconds by which an ID's time does
 * not fit the server's clock.
 */
typedef struct Suspect
{
	Call		call;
	Fault		fault;
	int64_t		number;
} Suspect;

typedef struct State
{
	uint64_t	ids;			/* at the start of the file, where tests read it */
	uint64_t	faults[FAULTS];
	uint64_t	calls;
	uint64_t	cut_off;		/* calls with some IDs and an error */
	uint64_t	clock_checked;
	uint64_t	kinds[128];		/* IDs by kind of call */
	uint64_t	advances;		/* calls of snowflake_advance() that returned */
	Tally		errors[MAX_ERRORS];
	bool		has_bad_error;	/* whose message is below, or soon will be */
	char		bad_error[256]; /* the first one, with the call's kind */

	/* "ledger check" acquits those that have an excuse */
	uint64_t	suspect_count;
	Suspect		suspects[MAX_SUSPECTS];
	uint64_t	unexcused[FAULTS];	/* for which there was no room */
} State;

typedef struct Values Values;

typedef struct Ledger
{
	State	   *state;
	Values	   *values[MAX_SEQUENCES];
	int64_t		max_lead;		/* microseconds */
	bool		silent;			/* shows no faults, as they were planted */
} Ledger;

/*
 * Times at which something happened: that a clock was stepped, or that an old
 * primary which had been paused went on beside its successor.
 */
typedef struct Span
{
	int64_t		begin;
	int64_t		end;
} Span;

typedef struct Log
{
	Span	   *spans;
	int			count;
} Log;

typedef struct Options
{
	int			sessions;
	int			sequence_count;
	const char *sequences[MAX_SEQUENCES];	/* NAME or NAME=LAYOUT */
	int			bulk;
	int			quiet;
	int			seed;
} Options;

typedef struct Session
{
	const Options *options;
	Ledger	   *ledger;
	int			number;
	unsigned short dice[3];		/* for nrand48() */
	PGconn	   *conn;
	int			sequence;		/* of this turn, from 0 */
	Call		call;
	uint64_t	target;			/* value of the ID for snowflake_advance() */
	uint64_t	kept[MAX_BATCH];	/* IDs that count if the call commits */
	int			kept_count;
	char		message[200];	/* the error's, if the server sent one */
} Session;

#define count_up(counter, n) __atomic_fetch_add(&(counter), n, __ATOMIC_RELAXED)

/* record.c */
extern int64_t monotonic(void);
extern void open_ledger(Ledger *ledger, const char *path, int sequences);
extern void begin_call(const Ledger *ledger, Call *call);
extern void receive(const Ledger *ledger, Call *call, uint64_t id);
extern void publish(const Ledger *ledger, const Call *call);
extern void end_call(const Ledger *ledger, const Call *call, const char *message);
extern void blame(const Ledger *ledger, const Call *call, Fault fault, int64_t number);
extern void tally_error(State *state, uint64_t sqlstate, uint64_t count);

/* turns.c */
extern int	random_below(Session *session, int limit);
extern bool take_turn(Session *session);

/* check.c */
extern int	check(int argc, char **argv);
extern uint64_t judge_suspects(const Ledger *ledger, const Log *steps, const Log *pauses);

/* selftest.c */
extern int	selftest(void);

#endif
