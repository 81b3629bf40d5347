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
#define MAX_SEQUENCES		16
#define MAX_NAMES			64
#define MAX_SUSPECTS		100000
#define RECENT_CALLS		65536

/*
 * Values of nextval(), which may come again.  What can cause that differs from
 * one of these to the next.
 */
typedef enum NextvalCase
{
	NEXTVAL_ON,					/* taken while synchronous_commit is not off,
								 * half of them in transactions that are
								 * rolled back */
	NEXTVAL_OFF,				/* the same while it is off */
	NEXTVAL_COMMITTED,			/* in rows whose commit was flushed, as all
								 * that follow */
	NEXTVAL_REPLICA,			/* of a sequence that is often rewritten, with
								 * this wal_level */
	NEXTVAL_MINIMAL,
	NEXTVAL_COPIED,				/* of a sequence in a copied database */
	NEXTVAL_CASES
} NextvalCase;

extern const char *const nextval_names[NEXTVAL_CASES];

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
	char		kind;			/* see turns[] in turns.c */
	char		sqlstate[6];	/* empty if there was no error */
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

/* Something that is counted by its name */
typedef struct Tally
{
	char		name[72];
	uint64_t	count;
} Tally;

/* A call whose IDs do not fit the server's clock */
typedef struct Suspect
{
	Call		call;
	Fault		fault;
	int64_t		usecs;
} Suspect;

typedef struct State
{
	uint64_t	ids;			/* at the start of the file, where tests read it */
	uint64_t	faults[FAULTS];
	uint64_t	calls;
	uint64_t	cut_off;		/* calls with some IDs and an error */
	uint64_t	clock_checked;
	int64_t		slowest;
	uint64_t	kinds[128];		/* IDs by kind of call */
	uint64_t	nextval_taken[NEXTVAL_CASES];
	uint64_t	nextval_repeated[NEXTVAL_CASES];
	volatile int stopping;
	int			locked;			/* one process at a time adds a tally */
	Tally		errors[MAX_NAMES];	/* by SQLSTATE */
	Tally		errands[MAX_NAMES];

	/* "ledger check" acquits those during which the clock was stepped */
	uint64_t	suspect_count;
	Suspect		suspects[MAX_SUSPECTS];

	/* The last calls with IDs, to show who received a duplicate before */
	uint64_t	recent_count;
	Call		recent[RECENT_CALLS];
} State;

typedef struct Values Values;

typedef struct Ledger
{
	State	   *state;
	Values	   *values[MAX_SEQUENCES];
	Values	   *nextval_values[NEXTVAL_CASES];	/* NULL if none are taken */
	int64_t		max_lead;		/* microseconds */
	bool		silent;
} Ledger;

/* A time during which a clock was stepped */
typedef struct Step
{
	int64_t		begin;
	int64_t		end;
} Step;

#define count_up(counter, n) __atomic_fetch_add(&(counter), n, __ATOMIC_RELAXED)

/* record.c */
extern int64_t monotonic(void);
extern void open_ledger(Ledger *ledger, const char *path, int sequences, bool nextval);
extern void begin_call(const Ledger *ledger, Call *call);
extern void receive(const Ledger *ledger, Call *call, uint64_t id);
extern void receive_nextval(const Ledger *ledger, NextvalCase nextval, uint64_t value);
extern void publish(const Ledger *ledger, const Call *call);
extern void end_call(const Ledger *ledger, const Call *call);
extern void blame(const Ledger *ledger, const Call *call, Fault fault, int64_t number);
extern void tally(State *state, Tally *tallies, const char *name, uint64_t count);

/* run.c */
extern int	run(int argc, char **argv);

/* check.c */
extern int	step(int argc, char **argv);
extern int	check(int argc, char **argv);
extern uint64_t judge_suspects(const Ledger *ledger, const Step *steps, int count);

/* selftest.c */
extern int	selftest(void);

#endif
