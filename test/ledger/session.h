/*-------------------------------------------------------------------------
 *
 * session.h
 *	  A session of "ledger run", for the two files that make it up.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SESSION_H
#define SESSION_H

#include <libpq-fe.h>

#include "ledger.h"

#define MAX_BATCH			10000

typedef struct Options
{
	int			sessions;
	int			sequence_count;
	const char *sequences[MAX_SEQUENCES];	/* NAME or NAME=LAYOUT */
	int			errand_count;
	const char *errands[MAX_NAMES]; /* MS:SQL, each in a session of its own */
	const char *half_settings;
	int			bulk;
	int			quiet;
	int			copies;			/* of 100 turns, in one more session */
	int			advances;		/* of 100 turns */
	int			nextvals;		/* of 100 turns */
	int			seed;
} Options;

typedef struct Session
{
	const Options *options;
	Ledger	   *ledger;
	int			number;
	unsigned short dice[3];		/* for nrand48() */
	PGconn	   *conn;
	char		database[64];	/* if not that of the environment */
	char		wal_level[16];	/* if nextval() is called */
	int			sequence;		/* of this turn, from 0 */
	Call		call;
	uint64_t	target;			/* value of the ID for snowflake_advance() */
	uint64_t	kept[MAX_BATCH];	/* IDs, or values of nextval(), that count
									 * if the call commits */
	int			kept_count;
	NextvalCase nextval;		/* of these values */
} Session;

/* turns.c */
extern int	random_below(Session *session, int limit);
extern bool await_result(Session *session);
extern bool take_turn(Session *session);

#endif
