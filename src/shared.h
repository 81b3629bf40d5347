/*-------------------------------------------------------------------------
 *
 * shared.h
 *	  What backends tell each other of their WAL records.
 *
 * Include it after compat.h.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SHARED_H
#define SNOWFLAKE_SHARED_H

#include "access/xlogdefs.h"

#pragma GCC visibility push(hidden)
extern void shared_init(void);
extern void shared_attach(void);
extern bool shared_is_available(void);
extern void shared_note_record(const RelFileLocator *file, XLogRecPtr lsn);
extern bool shared_has_record(const RelFileLocator *file, XLogRecPtr lsn);
#pragma GCC visibility pop

#endif							/* SNOWFLAKE_SHARED_H */
