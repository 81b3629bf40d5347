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

/*
 * What "snowflake.max_lead" and "snowflake.max_wait" allow a call, in
 * microseconds
 */
typedef struct SettingsLimits
{
	int64		max_lead;		/* how far an ID's time may be ahead of the
								 * clock */
	int64		max_wait;		/* how long to wait for the clock to catch up */
} SettingsLimits;

#pragma GCC visibility push(hidden)
extern void settings_define(void);
extern int64 settings_get_shard(void);
extern SettingsLimits settings_limits(void);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_SETTINGS_H */
