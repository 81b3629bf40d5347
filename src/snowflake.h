/*-------------------------------------------------------------------------
 *
 * snowflake.h
 *	  What snowflake.c shares with the other files that have SQL functions:
 *	  the settings, and checks of arguments.
 *
 * Include it after compat.h.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_H
#define SNOWFLAKE_H

#include "generator.h"

#pragma GCC visibility push(hidden)
extern double snowflake_max_lead;
extern int	snowflake_max_wait;

extern void snowflake_define_settings(void);
pg_noreturn extern void snowflake_refuse_null(const char *argument,
											  const char *hint);
extern void snowflake_check_positive(int64 id);
#pragma GCC visibility pop

/*
 * The settings "snowflake.max_lead" and "snowflake.max_wait", in microseconds.
 */
static inline TickLimits
snowflake_limits(void)
{
	TickLimits	limits;

	limits.max_lead = (int64) (snowflake_max_lead * 1000.0);
	limits.max_wait = snowflake_max_wait * INT64CONST(1000);
	return limits;
}

#endif							/* SNOWFLAKE_H */
