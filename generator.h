/*-------------------------------------------------------------------------
 *
 * generator.h
 *	  A sequence that ticks with the clock.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_GENERATOR_H
#define SNOWFLAKE_GENERATOR_H

#include "datatype/timestamp.h"

/*
 * What a sequence's values mean: value = tick * slots + slot.
 *
 * The owner of a sequence says with its MAXVALUE which kind of value it has.
 * Where another kind may have the same one, naming this kind takes the right
 * to set the sequence: with a wrong epoch one call could push it years ahead.
 */
typedef struct TickSpec
{
	uint64		number;			/* no other spec of the session has it */
	TimestampTz epoch;			/* when tick 0 began */
	int64		tick;			/* length of a tick in microseconds; 0 if the
								 * clock does not matter */
	int64		slots;			/* values per tick */
	int64		last_tick;		/* the last one */
	int64		max_value;		/* the last value, and so the MAXVALUE that a
								 * sequence of this kind has */
	bool		is_default;		/* do the extension's own sequence and those
								 * with bigint's MAXVALUE have this kind? */
	bool		needs_update;	/* may another kind have this max_value? */
} TickSpec;

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
 * What a sequence says of itself.
 */
typedef struct TickStatus
{
	bool		called;			/* has a value been taken yet? */
	int64		value;			/* the last value taken */
	int64		logged;			/* the value that the WAL covers */
} TickStatus;

extern void generator_init(void);
extern int64 generator_next(Oid relid, const TickSpec *spec,
							const TickLimits *limits, int64 *count);
extern bool generator_owns(Oid relid);
extern void generator_status(Oid relid, const TickSpec *spec,
							 TickStatus *status);

#endif							/* SNOWFLAKE_GENERATOR_H */
