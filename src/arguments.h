/*-------------------------------------------------------------------------
 *
 * arguments.h
 *	  Errors about arguments, and the times in messages, for several files.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ARGUMENTS_H
#define SNOWFLAKE_ARGUMENTS_H

#include "datatype/timestamp.h"

#pragma GCC visibility push(hidden)
pg_noreturn extern void arguments_refuse_null(const char *argument, const char *hint);
extern void arguments_check_id(int64 id);
extern char *arguments_time_string(TimestampTz timestamp);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_ARGUMENTS_H */
