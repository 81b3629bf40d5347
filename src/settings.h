/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  What other files need of settings.c.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SETTINGS_H
#define SNOWFLAKE_SETTINGS_H

#include "generator.h"

#define SHARD_UNSET			(-1)
#define SHARD_MAX			8191	/* the last one of the layout
									 * "instagram" */

#pragma GCC visibility push(hidden)
extern void settings_define(void);
extern GeneratorLimits settings_limits(void);
extern int64 settings_shard(void);
pg_noreturn extern void argument_refuse_null(const char *argument, const char *hint);
extern void argument_check_id(int64 id);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_SETTINGS_H */
