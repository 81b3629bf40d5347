/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  The settings: their definitions and values.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SETTINGS_H
#define SNOWFLAKE_SETTINGS_H

/* Values of "snowflake.shard" */
#define SHARD_UNSET			(-1)
#define SHARD_MAX			8191	/* the last shard of layout "instagram" */

#pragma GCC visibility push(hidden)
extern void settings_define(void);
extern int64 settings_get_shard(void);
extern void settings_get_limits(int64 *lead_usecs, int64 *wait_usecs);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_SETTINGS_H */
