/*-------------------------------------------------------------------------
 *
 * wait.c
 *	  Waiting a moment, and until WAL is safe.
 *
 * nextval() leaves it to commits to flush WAL and to wait for standbys.  But a
 * value leaves its backend whether or not the transaction commits.  So the
 * generator waits here before it returns a value, and after it has advanced a
 * sequence.
 *
 * This file knows nothing of sequences or values.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/rmgr.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_control.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/interrupt.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/s_lock.h"
#include "storage/spin.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/memutils.h"

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
 * A call that waits for standbys looks at once, and again after the first nap.
 * Each further nap is twice as long as the last one, up to the longest.
 */
#define FIRST_NAP_USECS		INT64CONST(100)
#define LONGEST_NAP_USECS	INT64CONST(100000)

/*
 * For how long a backend that does not know the synchronous standbys relies on
 * what they had
 */
#define RELY_USECS			INT64CONST(10000)

/*
 * The WAL that standbys were last found to have, and the wait_monotonic_time()
 * until which this backend relies on that
 */
static struct
{
	XLogRecPtr	lsn;
	int			mode;
	int64		good_until;
}			last_wait;

/* The time of a clock that nobody can set, in microseconds */
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

/*
 * The bit of SyncStandbysByte that says whether standbys are asked for, where
 * the byte is one flag ("true") and where it has two (SYNC_STANDBY_DEFINED,
 * which earlier headers lack)
 */
#define BIT_OF_ONE_FLAG		1
#define BIT_OF_TWO_FLAGS	(1 << 1)

/*
 * Has this backend read the configuration as it is now, as far as it knows?
 *
 * It reads the configuration between commands only, and knows by
 * ConfigReloadPending that there is something to read.  A background worker may
 * ignore the signal that sets it, and so never knows.
 */
static inline bool
configuration_is_current(void)
{
	return !ConfigReloadPending && MyBackendType == B_BACKEND;
}

/*
 * Does synchronous_standby_names ask for standbys?
 *
 * The checkpointer reads the setting and notes the answer in a byte of shared
 * memory.  Up to 15.12, 16.8 and 17.4 this is a flag.  Later releases have two
 * flags there: one with that meaning, and one that says whether the
 * checkpointer has read the setting.  The library may have been built with
 * headers from before the change and run on a server from after it, or the
 * reverse.  So the version of the running server decides what the byte means.
 *
 * While the byte is 0, this backend's own copy of the setting answers, as it
 * does in SyncRepWaitForLSN() of the later releases.  In these, 0 means that
 * the server has just started and the checkpointer has not read the setting
 * yet.  In the earlier releases, 0 can also mean that the setting is empty, so
 * there a copy is believed only if it is current, and otherwise the answer is
 * no.  Between the start of the server and the checkpointer's first reading
 * that may be wrong, which is accepted.
 */
static inline bool
standbys_defined(void)
{
	static uint8 defined_bit = 0;	/* one of the two, when it is known */
	uint8		status = *(volatile uint8 *) &SyncStandbysByte;

	if (unlikely(defined_bit == 0))
	{
		int			version = atoi(GetConfigOption("server_version_num", false, false));
		bool		two_flags = version >= 170005 ||
			(version >= 160009 && version < 170000) ||
			(version >= 150013 && version < 160000);

		defined_bit = two_flags ? BIT_OF_TWO_FLAGS : BIT_OF_ONE_FLAG;
	}

	if (status != 0)
		return (status & defined_bit) != 0;
	return SyncRepStandbyNames != NULL && SyncRepStandbyNames[0] != '\0' &&
		(defined_bit == BIT_OF_TWO_FLAGS || configuration_is_current());
}

/*
 * May this backend go by its own copy of synchronous_standby_names?
 *
 * The copy may be out of date before the signal to reload has reached this
 * backend.  If it is empty then, that is known, because standbys_defined() has
 * said that standbys are asked for.  If it is not empty, this backend goes by
 * it until the signal comes.
 */
static inline bool
names_are_current(void)
{
	return configuration_is_current() && SyncRepConfig != NULL;
}

/*
 * If this is the status of the process "pid", copy its application_name, which
 * has up to NAMEDATALEN bytes.
 *
 * The functions behind pg_stat_activity copy the status of all backends, which
 * the rest of the transaction would then see.
 */
static bool
read_application_name(volatile PgBackendStatus *status, pid_t pid, char *name)
{
	for (;;)
	{
		int			before,
					after;
		bool		found;

		pgstat_begin_read_activity(status, before);
		found = status->st_procpid == pid;
		if (found)
			strlcpy(name, status->st_appname, NAMEDATALEN);
		pgstat_end_read_activity(status, after);

		if (pgstat_read_activity_complete(before, after))
			return found;
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Get the name of the standby that a WAL sender serves.  Returns false if the
 * WAL sender has ended.
 */
static bool
get_standby_name(int walsnd_index, pid_t pid, char *name)
{
	static int *last_number = NULL; /* of each WAL sender's status */
	int		   *number;

	if (last_number == NULL)
		last_number = MemoryContextAllocZero(TopMemoryContext, max_wal_senders * sizeof(int));
	number = &last_number[walsnd_index];
	if (read_application_name(BackendStatus(*number), pid, name))
		return true;

	for (int i = 0; i < MaxBackends; i++)
	{
		if (read_application_name(BackendStatus(i), pid, name))
		{
			*number = i;
			return true;
		}
	}
	return false;
}

/*
 * The priority of a standby by this backend's copy of synchronous_standby_names,
 * or 0 if it is not listed there: what its WAL sender gets from a copy of its
 * own in SyncRepGetStandbyPriority().
 *
 * PostgreSQL shows only 63 bytes of a name to other backends.  If a longer one
 * is listed in full, we do not find it, its priority seems out of date, and
 * wait_for_standbys() goes by what the WAL senders note.
 */
static int
listed_priority(const char *standby_name)
{
	const char *member = SyncRepConfig->member_names;

	for (int priority = 1; priority <= SyncRepConfig->nmembers; priority++)
	{
		if (pg_strcasecmp(member, standby_name) == 0 || strcmp(member, "*") == 0)
			return SyncRepConfig->syncrep_method == SYNC_REP_PRIORITY ? priority : 1;
		member += strlen(member) + 1;
	}
	return 0;
}

/*
 * Has each WAL sender given its standby the priority that this backend's copy of
 * synchronous_standby_names says?
 *
 * The priorities are in shared memory.  A WAL sender whose process is stopped
 * or hangs when the setting changes leaves its standby's priority as it was,
 * and so the standby counts as before.  That does no harm to a commit, because
 * such a WAL sender cannot say that the standby has the commit's WAL.  But an
 * ID may need only WAL that the standby had before.
 */
static bool
priorities_are_current(void)
{
	for (int i = 0; i < max_wal_senders; i++)
	{
		volatile WalSnd *walsnd = &WalSndCtl->walsnds[i];
		pid_t		pid;
		WalSndState state;
		int			priority;
		char		name[NAMEDATALEN];

		/*
		 * Spare the lock if there is no WAL sender.  One that begins now
		 * reads the setting first.
		 */
		if (walsnd->pid == 0)
			continue;

		SpinLockAcquire(&walsnd->mutex);
		pid = walsnd->pid;
		state = walsnd->state;
		priority = walsnd->sync_standby_priority;
		SpinLockRelease(&walsnd->mutex);

		/* SyncRepGetCandidateStandbys() passes over others, too. */
		if (pid != 0 &&
			(state == WALSNDSTATE_STREAMING || state == WALSNDSTATE_STOPPING) &&
			(!get_standby_name(i, pid, name) || listed_priority(name) != priority))
			return false;
	}
	return true;
}

/*
 * Do the standbys that are synchronous now have the WAL up to "lsn"?  This
 * backend's copy of synchronous_standby_names, and the priorities that WAL
 * senders have given the standbys, must be up to date.
 *
 * WalSndCtl->lsn[] does not answer that.  It says how much WAL was on standbys
 * that were synchronous at some time, but others may have replaced them since,
 * and one of those may be promoted.
 */
static bool
standbys_have(XLogRecPtr lsn, int mode)
{
	SyncRepStandbyData *standbys;
	int			candidates = SyncRepGetCandidateStandbys(&standbys);
	int			have = 0;

	for (int i = 0; i < candidates; i++)
	{
		if (lsn <= (mode == SYNC_REP_WAIT_WRITE ?
					standbys[i].write : standbys[i].flush))
			have++;
	}
	pfree(standbys);

	/*
	 * With ANY, the candidates are all standbys that are listed and connected,
	 * and any num_sync of them are enough.  With FIRST, the candidates are the
	 * num_sync ones of the highest priority, or fewer if fewer are connected,
	 * and all num_sync are needed.
	 */
	return have >= SyncRepConfig->num_sync;
}

/* Write a WAL record that changes nothing, and flush it.  Returns its end. */
static XLogRecPtr
write_empty_record(void)
{
	char		nothing = 0;
	XLogRecPtr	end;

	XLogBeginInsert();
	XLogRegisterData(&nothing, sizeof(nothing));
	end = XLogInsert(RM_XLOG_ID, XLOG_NOOP);
	XLogFlush(end);
	return end;
}

/*
 * Does WalSndCtl->lsn[], which WAL senders keep, say that synchronous standbys
 * had the WAL up to "lsn" at some time?
 */
static bool
wal_senders_noted(XLogRecPtr lsn, int mode)
{
	bool		had;

	LWLockAcquire(SyncRepLock, LW_SHARED);
	had = WalSndCtl->lsn[mode] >= lsn;
	LWLockRelease(SyncRepLock);
	return had;
}

/*
 * Wait until the synchronous standbys have the WAL up to "lsn", or until no
 * standbys are asked for any more.
 *
 * The standbys must have written the WAL if synchronous_commit is
 * remote_write, and must have it on disk with "on" and with remote_apply, which
 * SyncRepWaitForLSN(), too, takes for "on" unless it waits for a commit: an ID
 * must not be lost, but no query on a standby looks for it.
 *
 * SyncRepWaitForLSN() would not do.  It returns at once if the WAL was on
 * standbys that others have replaced in the meantime, and it returns without
 * an error when it is canceled, because a commit could not be undone any more.
 */
static pg_noinline void
wait_for_standbys(XLogRecPtr lsn)
{
	int			mode = synchronous_commit == SYNCHRONOUS_COMMIT_REMOTE_WRITE ?
		SYNC_REP_WAIT_WRITE : SYNC_REP_WAIT_FLUSH;
	XLogRecPtr	empty_record = InvalidXLogRecPtr;
	int64		nap = FIRST_NAP_USECS;

	do
	{
		if (names_are_current() && priorities_are_current())
		{
			if (standbys_have(lsn, mode))
				return;
		}
		else if (lsn <= last_wait.lsn && mode == last_wait.mode &&
				 wait_monotonic_time() < last_wait.good_until)
			return;
		else
		{
			/*
			 * This backend may not know which standbys are asked for, but WAL
			 * senders do.  They note in WalSndCtl->lsn[] how much WAL the
			 * standbys have.  These standbys may have been replaced, unless
			 * the WAL is newer than this call.  Hence the record.
			 */
			if (XLogRecPtrIsInvalid(empty_record))
				empty_record = write_empty_record();
			if (wal_senders_noted(empty_record, mode))
			{
				last_wait.lsn = empty_record;
				last_wait.mode = mode;
				last_wait.good_until = wait_monotonic_time() + RELY_USECS;
				return;
			}
		}

		/* Cancel and shutdown end the wait with an error. */
		wait_usecs(nap, WAIT_EVENT_SYNC_REP);
		nap = Min(2 * nap, LONGEST_NAP_USECS);
	} while (standbys_defined());
}

/*
 * Wait until the WAL up to "lsn" is on disk and, if synchronous standbys are
 * asked for, on those.  A session whose synchronous_commit is local or off does
 * not ask for them, as SyncRepRequested() knows.
 */
void
wait_until_durable(XLogRecPtr lsn)
{
	XLogFlush(lsn);

	if (unlikely(standbys_defined()) && SyncRepRequested())
		wait_for_standbys(lsn);
}
