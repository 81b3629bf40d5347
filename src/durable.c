/*-------------------------------------------------------------------------
 *
 * durable.c
 *	  Waiting until WAL is safe.
 *
 * nextval() leaves it to commits to flush WAL and to wait for standbys.  But a
 * value leaves its backend whether or not the transaction commits.  So the
 * generator waits here before it returns a value, and after it has advanced a
 * sequence.
 *
 * Except for a message, this file knows nothing of sequences or values.
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
#include "postmaster/interrupt.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lwlock.h"

#include "compat.h"

#include "durable.h"
#include "wait.h"

/*
 * For how long a backend that has not read its new configuration yet does
 * without a further wait for standbys; see wait_for_standbys()
 */
#define RELY_USECS			INT64CONST(10000)

/*
 * The last wait for standbys that was completed.
 */
static struct
{
	XLogRecPtr	lsn;			/* the standbys have the WAL up to here */
	int			mode;			/* what they have done with it: PostgreSQL's
								 * SYNC_REP_WAIT_WRITE or _FLUSH */
	int64		good_until;		/* wait_monotonic_time() up to which a backend
								 * whose configuration is out of date does not
								 * wait again */
}			last_wait;


/*
 * Do the standbys that are synchronous now have the WAL up to "lsn"?  This
 * backend's copy of synchronous_standby_names must be up to date.
 *
 * PostgreSQL's WalSndCtl->lsn[] does not answer that.  It says how much WAL
 * was on standbys that were synchronous at some time, but others may have
 * replaced them since.
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

/*
 * Wait until the synchronous standbys have the WAL up to "lsn": written if
 * synchronous_commit is remote_write, and otherwise on disk, also if it is
 * remote_apply.
 *
 * They have to be the standbys that are synchronous now.  If others had the
 * WAL and were replaced, a standby that does not have it may be promoted.
 *
 * A backend reads its configuration between commands only.  While a reload is
 * pending, it does not know which standbys are asked for, but WAL senders do,
 * and they end a wait when those standbys have the WAL.  Waiting in this way
 * for each value would slow down a long statement by orders of magnitude.  So
 * after one such wait the backend does not wait again for RELY_USECS, as long
 * as the WAL that it needs is not newer than what it has waited for.  If the
 * configuration is reloaded once more, that takes effect later by RELY_USECS
 * at most.
 */
static pg_noinline void
wait_for_standbys(XLogRecPtr lsn)
{
	char		nothing = 0;
	int			mode = synchronous_commit == SYNCHRONOUS_COMMIT_REMOTE_WRITE ?
		SYNC_REP_WAIT_WRITE : SYNC_REP_WAIT_FLUSH;

	do
	{
		XLogRecPtr	noop;
		bool		completed;

		/*
		 * Look at the standbys directly if this backend knows which ones are
		 * asked for.  A background worker may be written to never read its
		 * configuration again, so its copy may be out of date although no
		 * reload is pending.
		 */
		if (!ConfigReloadPending && SyncRepConfig != NULL &&
			MyBackendType == B_BACKEND)
		{
			if (standbys_have(lsn, mode))
				return;
		}
		else if (lsn <= last_wait.lsn && mode == last_wait.mode &&
				 wait_monotonic_time() < last_wait.good_until)
			return;

		/*
		 * Wait for an empty record of our own instead of "lsn".  Many sessions
		 * may have to wait for the same "lsn" at the same time, but
		 * SyncRepWaitForLSN() was made for commits, each of which has its own
		 * LSN, and it asserts that no two waiters have the same.
		 */
		XLogBeginInsert();
		XLogRegisterData(&nothing, sizeof(nothing));
		noop = XLogInsert(RM_XLOG_ID, XLOG_NOOP);
		XLogFlush(noop);

		/*
		 * Obey interrupts that came before the wait.  If one is pending after
		 * the wait, then it came during the wait and may have ended it.
		 */
		CHECK_FOR_INTERRUPTS();

		/* SyncRepWaitForLSN() expects that interrupts are held off. */
		HOLD_INTERRUPTS();
		SyncRepWaitForLSN(noop, false);
		RESUME_INTERRUPTS();

		/*
		 * SyncRepWaitForLSN() returns early without an error when it is
		 * interrupted, because a commit could not be undone any more.  A value
		 * can still be kept back.  SyncRepWaitForLSN() also returns early when
		 * synchronous_standby_names becomes empty.
		 *
		 * The record was written just now, so standbys that have it were
		 * synchronous during the wait, and lsn[] is enough to see that.
		 */
		LWLockAcquire(SyncRepLock, LW_SHARED);
		completed = WalSndCtl->lsn[mode] >= noop;
		LWLockRelease(SyncRepLock);

		if (completed)
		{
			last_wait.lsn = noop;
			last_wait.mode = mode;
			last_wait.good_until = wait_monotonic_time() + RELY_USECS;
			return;
		}

		/*
		 * When the postmaster dies, SyncRepWaitForLSN() sets ProcDiePending
		 * but not InterruptPending, without which CHECK_FOR_INTERRUPTS() does
		 * nothing.
		 */
		if (ProcDiePending)
			InterruptPending = true;

		if (InterruptPending && StandbysDefined())
		{
			CHECK_FOR_INTERRUPTS();

			/* A cancel no longer shows, as SyncRepWaitForLSN() has seen it. */
			ereport(ERROR,
					(errcode(ERRCODE_QUERY_CANCELED),
					 errmsg("canceling wait for synchronous replication"),
					 errdetail("A standby that takes over may not know how far the sequence has advanced, so next_id() returns no ID, and later IDs may be smaller than the one given to snowflake_advance().")));
		}
	} while (StandbysDefined());
}

/*
 * Wait until the WAL up to "lsn" is on disk and, if synchronous standbys are
 * asked for, on those.
 *
 * nextval() leaves this to the commit of the transaction that wrote the
 * record.  But other sessions take values that the record covers, and a
 * session that has nothing to commit would give them to its client before the
 * record is safe.
 */
void
durable_wait(XLogRecPtr lsn)
{
	XLogFlush(lsn);

	if (unlikely(StandbysDefined()) && SyncRepRequested())
		wait_for_standbys(lsn);
}
