/*-------------------------------------------------------------------------
 *
 * wait.h
 *	  Waiting a moment, and until WAL is safe.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_WAIT_H
#define SNOWFLAKE_WAIT_H

#include "access/xlogdefs.h"
#include "utils/wait_event.h"

#pragma GCC visibility push(hidden)
extern void wait_until_durable(XLogRecPtr lsn);
extern int64 wait_monotonic_time(void);
extern void wait_usecs(int64 usecs, uint32 wait_event);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_WAIT_H */
