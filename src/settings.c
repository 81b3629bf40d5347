/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The settings: their definitions and values.
 *
 * This file does not know how an ID is generated.  Of layouts it knows the largest
 * shard of Instagram's, up to which "snowflake.shard" goes.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "access/xact.h"
#include "datatype/timestamp.h"
#include "utils/guc.h"

#include "compat.h"

#include "settings.h"

/* A hundred years, in milliseconds */
#define MAX_LEAD_LIMIT		(100.0 * DAYS_PER_YEAR * SECS_PER_DAY * 1000.0)

/* The times are in milliseconds. */
static int	shard_setting = SHARD_UNSET;
static double max_lead = 1000.0;
static int	max_wait = 5000;

/* Has settings_define() done its work? */
static bool defined = false;

/*
 * Define the settings, if that has not been done yet.
 *
 * A session may have values for them before the library is loaded, for example
 * from ALTER DATABASE.  DefineCustom...Variable() puts these values into
 * effect, except in parallel mode, where PostgreSQL allows no setting to
 * change: there it would drop them with a warning, for the rest of the
 * session.  So if the library happens to be loaded in parallel mode, the
 * settings are not defined then, and whoever needs a value calls this first.
 */
void
settings_define(void)
{
	if (likely(defined) || IsInParallelMode())
		return;
	defined = true;

	DefineCustomIntVariable("snowflake.shard",
							"Shard of the IDs that next_id() without arguments generates.",
							"-1 means that it is not set.",
							&shard_setting,
							SHARD_UNSET, SHARD_UNSET, SHARD_MAX,
							PGC_USERSET, 0,
							NULL, NULL, NULL);

	DefineCustomRealVariable("snowflake.max_lead",
							 "How far an ID's time may be ahead of the clock before next_id() waits.",
							 "0 means that it is never ahead.",
							 &max_lead,
							 1000.0, 0.0, MAX_LEAD_LIMIT,
							 PGC_SUSET, GUC_UNIT_MS,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("snowflake.max_wait",
							"How long next_id() may wait for the clock to catch up.",
							"It fails immediately if the required wait is longer. A wait for just the next tick is allowed unless the clock has stopped.",
							&max_wait,
							5000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	MarkGUCPrefixReserved("snowflake");
}

/*
 * The values of "snowflake.max_lead" and "snowflake.max_wait".  While they are
 * not defined, these are the defaults: in parallel mode, where next_id() fails
 * anyway.
 */
SettingsLimits
settings_limits(void)
{
	SettingsLimits limits;

	settings_define();
	limits.max_lead = (int64) (max_lead * 1000.0);
	limits.max_wait = max_wait * INT64CONST(1000);
	return limits;
}

/*
 * The value of "snowflake.shard" while the library has been loaded in parallel
 * mode and the settings are not defined: to PostgreSQL it is still a text.
 * Later, settings_define() ignores a text that is no shard, and so does this.
 */
static int
undefined_shard(void)
{
	const char *text = GetConfigOption("snowflake.shard", true, false);
	int			value;

	if (text != NULL && parse_int(text, &value, 0, NULL) &&
		value >= SHARD_UNSET && value <= SHARD_MAX)
		return value;
	return SHARD_UNSET;
}

/* The value of "snowflake.shard".  Raises an error if it is not set. */
int64
settings_get_shard(void)
{
	int			shard;

	settings_define();
	shard = likely(defined) ? shard_setting : undefined_shard();
	if (shard == SHARD_UNSET)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("\"snowflake.shard\" is not set"),
				 errhint("The database's owner sets it with SELECT snowflake_set_shard(...), to a shard that no other database has. Sessions that began before that must reconnect. SELECT * FROM snowflake_check(), of extension snowflake_admin, lists what needs it.")));
	return shard;
}
