/*-------------------------------------------------------------------------
 *
 * snowflake.h
 *	  What all files with SQL functions share.
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
extern void define_settings(void);
extern TickLimits current_limits(void);
pg_noreturn extern void refuse_null(const char *argument, const char *hint);
extern int64 check_positive(int64 id);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_H */
