/*-------------------------------------------------------------------------
 *
 * durable.h
 *	  Waiting until WAL is safe.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_DURABLE_H
#define SNOWFLAKE_DURABLE_H

#include "access/xlogdefs.h"

#pragma GCC visibility push(hidden)
extern void durable_wait(XLogRecPtr lsn);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_DURABLE_H */
