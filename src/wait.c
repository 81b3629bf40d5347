/*-------------------------------------------------------------------------
 *
 * wait.c
 *	  Waiting a moment, and a clock that is never set.
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
#include "utils/wait_event.h"

#include "compat.h"

#include "wait.h"

/*
 * Spin for a wait that is shorter than this, because going to sleep takes
 * longer.  Sleep no longer than this at a time, so that the caller soon looks
 * at the clock again, which somebody may have set forward.
 */
#define SPIN_USECS			20
#define NAP_USECS			INT64CONST(100000)

static uint32 wait_event = 0;


/*
 * Microseconds of a clock that is never set.
 */
int64
wait_monotonic_time(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (int64) INSTR_TIME_GET_MICROSEC(now);
}

/*
 * Wait for about that long, or until this backend's latch is set.  The caller
 * holds no lock of a page, as this obeys interrupts.
 */
void
wait_usecs(int64 usecs)
{
	CHECK_FOR_INTERRUPTS();

	if (wait_event == 0)
		wait_event = NewWaitEvent("SnowflakeClock");

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
