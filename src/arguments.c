/*-------------------------------------------------------------------------
 *
 * arguments.c
 *	  Errors about arguments, and the times in messages, for several files.
 *
 * This file knows no layout, sequence or setting.  To it, an ID is a number.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "compat.h"

#include "arguments.h"

/*
 * Raise an error about an argument that is NULL, in a function that is not
 * strict.  "hint" may be NULL.
 */
void
arguments_refuse_null(const char *argument, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("%s must not be null", argument),
			 hint == NULL ? 0 : errhint("%s", hint)));
}

/* Raise an error unless a number is positive, as IDs are. */
void
arguments_check_id(int64 id)
{
	if (id < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ID %lld is not positive", (long long) id),
				 errdetail("Valid IDs are 1 to %lld.",
						   (long long) PG_INT64_MAX)));
}

/*
 * A time for messages.  timestamptz_to_str() has one buffer, which is not
 * enough for two times in a message.
 */
char *
arguments_time_string(TimestampTz timestamp)
{
	return pstrdup(timestamptz_to_str(timestamp));
}
