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
extern void snowflake_define_settings(void);
extern TickLimits snowflake_limits(void);
pg_noreturn extern void snowflake_refuse_null(const char *argument, const char *hint);
extern int64 snowflake_check_positive(int64 id);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_H */
