/*-------------------------------------------------------------------------
 *
 * generator.h
 *	  A sequence that ticks with the clock.
 *
 * Include it after compat.h.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_GENERATOR_H
#define SNOWFLAKE_GENERATOR_H

#include "sequence.h"

/*
 * Both in microseconds
 */
typedef struct TickLimits
{
	int64		max_lead;		/* how far a value's time may be ahead of the
								 * clock */
	int64		max_wait;		/* how long a caller waits for the clock */
} TickLimits;

/*
 * The outcome of a call that would be made now
 */
typedef enum TickState
{
	TICK_OK,
	TICK_AHEAD,					/* a value whose time is ahead of the clock */
	TICK_WAITS,					/* a wait for the clock or a lock */
	TICK_REFUSES				/* an error */
} TickState;

/*
 * The state of a sequence
 */
typedef struct TickStatus
{
	TickState	state;
	bool		called;			/* has a value been taken yet? */
	int64		value;			/* the last value taken */
	int64		logged;			/* the value that the WAL covers */
} TickStatus;

#pragma GCC visibility push(hidden)
extern void generator_init(void);
extern int64 generator_next(Oid relid, const TickSpec *spec,
							const TickLimits *limits, int64 *count);
extern bool generator_status(Oid relid, const TickSpec *spec,
							 const TickLimits *limits, bool wait,
							 TickStatus *status);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_GENERATOR_H */
