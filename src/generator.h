/*-------------------------------------------------------------------------
 *
 * generator.h
 *	  Take the next value of a sequence that follows the clock.
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
 * Limits of a call, in microseconds
 */
typedef struct TickLimits
{
	int64		max_lead;		/* how far a value's time may be ahead of the
								 * clock */
	int64		max_wait;		/* the longest wait for a clock that is behind
								 * by more than a tick, or has stopped */
} TickLimits;

/*
 * What a call would do now
 */
typedef enum TickState
{
	TICK_OK,					/* return a value */
	TICK_AHEAD,					/* return one whose time is ahead of the clock */
	TICK_WAITS,					/* wait for the clock */
	TICK_REFUSES				/* fail */
} TickState;

/*
 * The state of a sequence
 */
typedef struct TickStatus
{
	TickState	state;
	bool		called;			/* has a value been taken yet? */
	int64		value;			/* the last value taken */
	int64		covered;		/* the value that the WAL covers */
} TickStatus;

#pragma GCC visibility push(hidden)
extern int64 generator_next(Oid relid, const TickSpec *spec,
							const TickLimits *limits, int64 *count);
extern void generator_advance(Oid relid, const TickSpec *spec,
							  const TickLimits *limits, int64 value);
extern int64 generator_last_value(Oid relid, bool *called);
extern bool generator_status(Oid relid, const TickSpec *spec,
							 const TickLimits *limits, bool wait,
							 TickStatus *status);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_GENERATOR_H */
