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
 * How far a value's time may be ahead of the clock, and how long a caller
 * waits for the clock before it gives up; both in microseconds.
 */
typedef struct TickLimits
{
	int64		max_lead;
	int64		max_wait;
} TickLimits;

/*
 * What would happen to a caller now.
 */
typedef enum TickState
{
	TICK_OK,
	TICK_AHEAD,					/* gets a value whose time is ahead of the
								 * clock */
	TICK_WAITS,					/* waits, for the clock or a lock */
	TICK_REFUSES				/* gets an error */
} TickState;

/*
 * What a sequence says of itself.
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
