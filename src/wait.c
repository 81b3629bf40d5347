/*-------------------------------------------------------------------------
 *
 * wait.c
 *	  Waiting a moment, and a monotonic clock, which nobody can set.
 *
 * This file does not know what is waited for.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/latch.h"
#include "storage/s_lock.h"

#include "compat.h"

#include "wait.h"

/*
 * Spin during a wait that is no longer than this, because going to sleep and
 * waking up takes longer.
 */
#define SPIN_USECS			20

/*
 * Sleep for no longer than this at a time, because what the caller waits for
 * may come sooner than expected.  For example, somebody may set the clock
 * forward.
 */
#define NAP_USECS			INT64CONST(100000)


/*
 * The time of a monotonic clock, which nobody can set, in microseconds since
 * some moment.
 */
int64
wait_monotonic_time(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (int64) INSTR_TIME_GET_MICROSEC(now);
}

/*
 * Wait for about this long, but no longer than NAP_USECS, and perhaps for a
 * shorter time, because setting this backend's latch ends a sleep.  While the
 * backend sleeps, pg_stat_activity shows the given wait event.
 *
 * This obeys cancel, timeouts and shutdown by raising an error.  The caller
 * must not hold a lock on a page, because PostgreSQL holds interrupts off
 * then.
 */
void
wait_usecs(int64 usecs, uint32 wait_event)
{
	CHECK_FOR_INTERRUPTS();

	if (usecs >= 1000)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(usecs, NAP_USECS) / 1000, wait_event);
		ResetLatch(MyLatch);
	}
	else if (usecs > SPIN_USECS)
	{
		/* WaitLatch() counts in milliseconds. */
		pgstat_report_wait_start(wait_event);
		pg_usleep((long) usecs);
		pgstat_report_wait_end();
	}
	else
	{
		int64		end = wait_monotonic_time() + usecs;

		do
		{
			SPIN_DELAY();
		} while (wait_monotonic_time() < end);
	}

	CHECK_FOR_INTERRUPTS();
}
