/*-------------------------------------------------------------------------
 *
 * durable.c
 *	  Waiting until WAL is safe.
 *
 * nextval() leaves it to commits to flush WAL and to wait for standbys.  An ID
 * leaves its backend whether or not the transaction commits.  So the generator
 * waits here before it returns a value or has advanced a sequence.
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
#include "postmaster/interrupt.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/guc.h"

#include "compat.h"

#include "durable.h"
#include "wait.h"

/*
 * While a reload of the configuration is pending, a backend relies on a wait
 * for standbys for this long before it waits again.
 */
#define RELY_USECS			INT64CONST(10000)

/* The WAL up to here is known to be on disk. */
static XLogRecPtr flushed = InvalidXLogRecPtr;

/* The bit of SharedStandbyStatus() that says that standbys are asked for */
static uint8 standbys_defined_bit;

/*
 * The last wait for standbys that was completed.
 */
static struct
{
	XLogRecPtr	lsn;			/* the standbys have the WAL up to here */
	int			mode;			/* in the sense of this wait mode */
	int64		good_until;		/* wait_monotonic_time() up to which a backend whose
								 * configuration is out of date relies on it */
}			last_wait;


/*
 * Called once, when the library is loaded.
 */
void
durable_init(void)
{
	standbys_defined_bit = StandbysDefinedBit(atoi(GetConfigOption("server_version_num",
																   false, false)));
}

/*
 * Are synchronous standbys asked for?
 */
static inline bool
standbys_asked_for(void)
{
	uint8		status = SharedStandbyStatus();

	if (status != 0)
		return (status & standbys_defined_bit) != 0;

	/*
	 * The checkpointer has not read synchronous_standby_names yet, so look at
	 * this backend's own copy.  Servers that have only a flag show the same if
	 * the checkpointer has found the setting empty.  Then the copy may be out
	 * of date.
	 */
	return SyncRepStandbyNames != NULL && SyncRepStandbyNames[0] != '\0' &&
		!(standbys_defined_bit == 1 && ConfigReloadPending);
}

/*
 * Are these standbys enough for synchronous_standby_names?
 */
static inline bool
standbys_suffice(int have, int candidates)
{
	return have >= SyncRepConfig->num_sync &&
		(have == candidates || SyncRepConfig->syncrep_method == SYNC_REP_QUORUM);
}

/*
 * Do the standbys that are synchronous now have the WAL up to "lsn"?  This
 * backend's copy of the setting must be up to date.
 *
 * WalSndCtl->lsn[] does not tell.  Standbys that were synchronous at some time
 * had the WAL up to there, but others may have replaced them since.
 */
static bool
standbys_have(XLogRecPtr lsn, int mode)
{
	SyncRepStandbyData *standbys;
	int			candidates = 0;
	int			have = 0;

	/*
	 * Usually all candidates have it.  Then it does not matter which of them
	 * are synchronous.  An unused slot can be skipped without its lock.
	 */
	for (int i = 0; i < max_wal_senders; i++)
	{
		volatile WalSnd *walsnd = &WalSndCtl->walsnds[i];
		bool		candidate;
		XLogRecPtr	flush;
		XLogRecPtr	reported;

		if (walsnd->pid == 0)
			continue;

		SpinLockAcquire(&walsnd->mutex);
		flush = walsnd->flush;
		reported = mode == SYNC_REP_WAIT_WRITE ? walsnd->write : flush;
		candidate = walsnd->pid != 0 && walsnd->sync_standby_priority != 0 &&
			(walsnd->state == WALSNDSTATE_STREAMING ||
			 walsnd->state == WALSNDSTATE_STOPPING) &&
			!XLogRecPtrIsInvalid(flush);
		SpinLockRelease(&walsnd->mutex);

		if (candidate)
		{
			candidates++;
			if (lsn <= reported)
				have++;
		}
	}

	if (likely(standbys_suffice(have, candidates)))
		return true;

	candidates = SyncRepGetCandidateStandbys(&standbys);
	have = 0;
	for (int i = 0; i < candidates; i++)
	{
		if (lsn <= (mode == SYNC_REP_WAIT_WRITE ?
					standbys[i].write : standbys[i].flush))
			have++;
	}
	pfree(standbys);

	return standbys_suffice(have, candidates);
}

/*
 * Wait until the synchronous standbys have the WAL up to "lsn", as far as
 * synchronous_commit asks for that.
 *
 * An ID goes out only when the standbys that are synchronous now have the
 * record that covers it.  If others had it and were replaced, one that does
 * not have it may be promoted.
 *
 * A backend reads its configuration between commands only.  While a reload is
 * pending, it does not know which standbys are asked for.  The WAL senders do,
 * and end a wait accordingly.  The backend then relies on that wait for a
 * short time, since a wait for each ID would slow down a long statement by
 * orders of magnitude.  A second reload may thus take effect that much later.
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

		/* A background worker may never read its configuration again. */
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
		 * Until the checkpointer has read the setting, SyncRepWaitForLSN()
		 * may not wait.
		 */
		if (SharedStandbyStatus() == 0)
		{
			wait_usecs(1000);
			continue;
		}

		/*
		 * Many sessions wait for the same record at the same time, but no two
		 * may wait for the same LSN.  Every commit has its own LSN, so the
		 * queue of waiters asserts that no two are equal.  Hence each session
		 * waits for an empty record of its own.
		 */
		XLogBeginInsert();
		XLogRegisterData(&nothing, sizeof(nothing));
		noop = XLogInsert(RM_XLOG_ID, XLOG_NOOP);
		XLogFlush(noop);
		flushed = noop;

		/* Interrupts that are pending below arrived during the wait. */
		CHECK_FOR_INTERRUPTS();

		HOLD_INTERRUPTS();
		SyncRepWaitForLSN(noop, false);
		RESUME_INTERRUPTS();

		/*
		 * SyncRepWaitForLSN() returns early when it is interrupted, and does
		 * not report it, because a commit could not be undone.  We can still
		 * keep the ID back.  It also returns when the setting is emptied.
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

		/* At the postmaster's death it sets no more than this. */
		if (ProcDiePending)
			InterruptPending = true;

		if (InterruptPending && standbys_asked_for())
		{
			CHECK_FOR_INTERRUPTS();
			ereport(ERROR,
					(errcode(ERRCODE_QUERY_CANCELED),
					 errmsg("canceling wait for synchronous replication"),
					 errdetail("A standby that takes over may not know how far the sequence has advanced, so next_id() returns no ID, and later IDs may be smaller than the one given to snowflake_advance().")));
		}
	} while (standbys_asked_for());
}

/*
 * Wait until the WAL up to "lsn" is on disk and, where that is asked for, on
 * the synchronous standbys.
 *
 * nextval() leaves this to the commit of the transaction that wrote the
 * record.  But other sessions take values that the record covers, and one with
 * nothing to commit would hand them to its client before the record is safe.
 */
void
durable_wait(XLogRecPtr lsn)
{
	if (lsn > flushed)
	{
		XLogFlush(lsn);
		flushed = lsn;
	}

	if (unlikely(standbys_asked_for()) && SyncRepRequested())
		wait_for_standbys(lsn);
}
