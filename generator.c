/*-------------------------------------------------------------------------
 *
 * generator.c
 *	  A sequence that ticks with the clock.
 *
 * A generator is an ordinary sequence whose value is a time and a slot:
 *
 *		value = tick * slots + slot
 *
 * The next value is the last one plus one, with its tick moved up to the
 * clock's if it is behind; the slot runs on whatever the clock does.  Both
 * happen under the exclusive lock of the sequence's one page, so values grow
 * in the order in which they are taken, by whomever, and a clock that steps
 * back only means that the values' ticks are ahead of it for a while.
 *
 * The state on the page is that of nextval(): last_value, and log_cnt values
 * beyond it that the WAL already covers.  nextval(), setval(), replay,
 * pg_dump and a standby without this library all understand it.
 *
 * A value that was returned to anyone is never returned again.  nextval()
 * promises less, so where this file departs from it, a comment says why.
 *
 * This file knows nothing of IDs, shards or settings.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/rmgr.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_control.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/interrupt.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/s_lock.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "compat.h"

#include "generator.h"
#include "shared.h"

/*
 * A busy sequence writes one WAL record in this time.  It is also how far a
 * sequence may be ahead of the clock after a crash, when all that was logged
 * counts as used.
 */
#define LOG_AHEAD_USECS		USECS_PER_SEC

/*
 * Values that the clock has no part in are logged ahead by their number.
 * nextval() takes 32; but we flush every record before a value goes out, and
 * those who number things by the million would feel that.
 */
#define LOG_AHEAD_VALUES	1024

/*
 * A wait shorter than this is spun out, as going to sleep takes longer.
 * Longer ones are slept in pieces, so that a clock that is set forward ends
 * a wait soon.
 */
#define SPIN_USECS			20
#define NAP_USECS			INT64CONST(100000)

/*
 * A clock that has not moved for so long stands still.  Some move in steps,
 * and none in step with the one that tells how long that was.
 */
#define FROZEN_USECS		INT64CONST(100000)

/*
 * While a reload of the configuration is pending, a backend relies for so long
 * on a wait for standbys before it waits again.
 */
#define RELY_USECS			INT64CONST(10000)

/*
 * A sequence's tuple: a header without nulls, and three columns.
 */
#define SEQUENCE_TUPLE_SIZE \
	(MAXALIGN(SizeofHeapTupleHeader) + \
	 offsetof(FormData_pg_sequence_data, is_called) + sizeof(bool))

/*
 * The sequence whose page this transaction keeps pinned: the last one used.
 * Pinning and unpinning the page at every call would be a third of the cost
 * of a call.  The pin belongs to the top transaction, as the lock does, and
 * goes at its end.
 */
static SequenceState *pinned = NULL;

/*
 * The file of the pinned page.  A rewrite gives the sequence another one.
 */
static RelFileLocator pinned_file;

/*
 * The tuple on the pinned page, once the page has been found good.  Sequences
 * are changed in place or get a new file, so it stays where it is.
 */
static HeapTupleHeader pinned_tuple = NULL;

static uint32 wait_event = 0;

/* Which bit of SharedStandbyStatus() says that there are synchronous standbys. */
static uint8 standbys_defined_bit;

/*
 * The last wait for standbys that was completed: up to where they had the WAL,
 * as which wait mode counts it, and how long (in monotonic_time()) a backend
 * whose configuration is out of date may rely on that.
 */
static struct
{
	XLogRecPtr	lsn;
	int			mode;
	int64		good_until;
}			last_wait;

/*
 * Why there is no next value.
 */
typedef enum Refusal
{
	VALUE_AVAILABLE,			/* there is one */
	REFUSED_AHEAD,				/* not before the clock has moved on */
	REFUSED_EARLY,				/* the clock is behind the epoch */
	REFUSED_USED_UP,			/* the last tick has passed */
	REFUSED_IMPOSSIBLE			/* the sequence's value is out of range */
} Refusal;

/*
 * What a look at the clock and the page led to.
 */
typedef struct Attempt
{
	TimestampTz now;			/* the clock */
	int64		stored;			/* the sequence's last value */
	int64		value;			/* the next one */
	int64		count;			/* and as many from there on */
	int64		lead;			/* microseconds that it is ahead of the clock */
} Attempt;


static void
unpin_page(void)
{
	if (pinned != NULL)
	{
		ResourceOwner owner = CurrentResourceOwner;

		CurrentResourceOwner = TopTransactionResourceOwner;
		ReleaseBuffer(pinned->buffer);
		CurrentResourceOwner = owner;
		pinned = NULL;
	}
}

/*
 * Let go of the page before the resource owner finds it left over, and, under
 * wal_level = minimal, before the files made in this transaction are synced.
 * Callbacks of others may use a sequence again after the first event.  After
 * an error the resource owner is expected to clean up.
 */
static void
end_transaction(XactEvent event, void *arg pg_attribute_unused())
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		pinned = NULL;
	else
		unpin_page();
}

/*
 * The end of a subtransaction may delete a file that was made in it, which
 * must not be pinned then.
 */
static void
end_subtransaction(SubXactEvent event,
				   SubTransactionId mySubid pg_attribute_unused(),
				   SubTransactionId parentSubid pg_attribute_unused(),
				   void *arg pg_attribute_unused())
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		unpin_page();
}

/*
 * Called once, when the library is loaded.
 */
void
generator_init(void)
{
	standbys_defined_bit = StandbysDefinedBit(atoi(GetConfigOption("server_version_num",
																   false, false)));

	RegisterXactCallback(end_transaction, NULL);
	RegisterSubXactCallback(end_subtransaction, NULL);
}

/*
 * Lock and check a sequence; see sequence_open().
 */
static bool
open_sequence(SequenceState *seq, const TickSpec *spec, bool take, bool wait)
{
	if (!sequence_open(seq, spec, take, wait))
		return false;
	seq->window.end = seq->window.start;	/* of another kind of value */
	if (pinned == seq && !RelFileLocatorEquals(pinned_file, seq->file))
		unpin_page();
	return true;
}

/*
 * Pin the sequence's only page, if it is not yet.
 */
static void
pin_page(SequenceState *seq)
{
	ResourceOwner owner = CurrentResourceOwner;
	bool		found;

	unpin_page();

	/*
	 * ReadBuffer() wants an open relation and a look-up in the buffer table.
	 * The page is nearly always where it was.
	 */
	CurrentResourceOwner = TopTransactionResourceOwner;
	found = BufferIsValid(seq->buffer) &&
		ReadRecentBuffer(seq->file, MAIN_FORKNUM, 0, seq->buffer);
	CurrentResourceOwner = owner;

	/*
	 * If the page has to be read and cannot be, its pin must go with the
	 * subtransaction that fails: a page that a backend has pinned is taken to
	 * be good.  So the top transaction gets its pin afterwards.
	 */
	if (!found)
	{
		Relation	rel;
		Buffer		buffer;

		/* On a standby, replay may just have deleted the file. */
		AcceptInvalidationMessages();
		rel = relation_open(seq->relid, NoLock);
		buffer = ReadBuffer(rel, 0);
		relation_close(rel, NoLock);

		CurrentResourceOwner = TopTransactionResourceOwner;
		IncrBufferRefCount(buffer);
		CurrentResourceOwner = owner;
		ReleaseBuffer(buffer);
		seq->buffer = buffer;
	}

	pinned = seq;
	pinned_file = seq->file;
	pinned_tuple = NULL;		/* not yet found good */
}

static inline void
unlock_page(SequenceState *seq)
{
	LockBuffer(seq->buffer, BUFFER_LOCK_UNLOCK);
}

/*
 * Find the tuple on the locked page.  A page that is not exactly as expected
 * is an error, never a value.
 */
static void
check_page(SequenceState *seq)
{
	Page		page = BufferGetPage(seq->buffer);
	PageHeader	header = (PageHeader) page;
	ItemId		item = PageGetItemId(page, FirstOffsetNumber);

	if (header->pd_special != BLCKSZ - MAXALIGN(sizeof(sequence_magic)) ||
		((sequence_magic *) (page + header->pd_special))->magic != SEQ_MAGIC ||
		header->pd_lower != SizeOfPageHeaderData + sizeof(ItemIdData) ||
		!ItemIdIsNormal(item) ||
		ItemIdGetOffset(item) < header->pd_lower ||
		ItemIdGetOffset(item) + ItemIdGetLength(item) > header->pd_special ||
		ItemIdGetLength(item) != SEQUENCE_TUPLE_SIZE ||
		((HeapTupleHeader) PageGetItem(page, item))->t_hoff !=
		MAXALIGN(SizeofHeapTupleHeader))
	{
		unlock_page(seq);
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("page of sequence \"%s\" is damaged",
						get_rel_name(seq->relid)),
				 errhint("Make a new sequence, starting above every value that was used, or restore this one from a backup.")));
	}

	pinned_tuple = (HeapTupleHeader) PageGetItem(page, item);
}

/*
 * Lock the sequence's page, and find what it says.
 */
static inline FormData_pg_sequence_data *
lock_page(SequenceState *seq, int lockmode)
{
	if (unlikely(pinned != seq))
		pin_page(seq);

	LockBuffer(seq->buffer, lockmode);

	if (unlikely(pinned_tuple == NULL))
		check_page(seq);

	return (FormData_pg_sequence_data *)
		((char *) pinned_tuple + MAXALIGN(SizeofHeapTupleHeader));
}

/*
 * Of the values wanted from attempt->value on, how many are there now?
 */
static int64
count_values(const TickSpec *spec, int64 max_lead, int64 wanted,
			 const Attempt *attempt)
{
	int64		last = spec->max_value;

	if (spec->tick != 0)
	{
		int64		since_epoch = attempt->now - spec->epoch;
		int64		tick;

		/* The last tick that is not too far ahead of the clock. */
		tick = (since_epoch + Min(max_lead, PG_INT64_MAX - since_epoch)) /
			spec->tick;
		if (tick < spec->last_tick)
			last = Min(last, (tick + 1) * spec->slots - 1);
	}

	return Min(wanted, last - attempt->value + 1);
}

/*
 * Find the value that comes after the one on the page, and how many of those
 * wanted can be had with it.
 */
static Refusal
next_value(const FormData_pg_sequence_data *data, const TickSpec *spec,
		   int64 max_lead, int64 wanted, Attempt *attempt)
{
	int64		value = attempt->stored = data->last_value;

	attempt->lead = 0;

	if (value < 0 || value > spec->max_value)
		return REFUSED_IMPOSSIBLE;

	/* Whoever makes an ID of a value would make 0 of 0. */
	if (data->is_called || value == 0)
		value++;

	if (likely(spec->tick != 0))
	{
		int64		since_epoch = attempt->now - spec->epoch;
		int64		tick = value / spec->slots;
		int64		clock_tick;

		if (since_epoch < 0)
			return REFUSED_EARLY;
		clock_tick = since_epoch / spec->tick;
		if (clock_tick > spec->last_tick)
			return REFUSED_USED_UP;

		if (tick < clock_tick)
			value += (clock_tick - tick) * spec->slots;
		else
			attempt->lead = tick * spec->tick - since_epoch;
	}

	attempt->value = value;
	if (value > spec->max_value)
		return REFUSED_USED_UP;
	if (attempt->lead > max_lead)
		return REFUSED_AHEAD;

	attempt->count = wanted == 1 ? 1 :
		count_values(spec, max_lead, wanted, attempt);
	return VALUE_AVAILABLE;
}

/*
 * Remember which values can be taken until the clock's tick ends.
 */
static void
remember_window(TickWindow *window, const TickSpec *spec, int64 max_lead,
				TimestampTz now)
{
	Attempt		first = {0};

	window->max_lead = max_lead;
	if (spec->tick == 0)
	{
		window->start = PG_INT64_MIN;
		window->end = PG_INT64_MAX;
		window->first = 1;
	}
	else
	{
		int64		clock_tick = (now - spec->epoch) / spec->tick;

		window->start = spec->epoch + clock_tick * spec->tick;
		window->end = window->start + spec->tick;
		window->first = Max(clock_tick * spec->slots, 1);
	}

	/* Later in the tick there may be more, which next_value() finds. */
	first.now = window->start;
	window->last = count_values(spec, max_lead, PG_INT64_MAX, &first) - 1;
}

/*
 * Does the next value come just after the one on the page, as far as is known
 * without a division?
 */
static inline bool
next_is_in_window(const FormData_pg_sequence_data *data,
				  const TickWindow *window, int64 max_lead, TimestampTz now)
{
	return now >= window->start && now < window->end &&
		max_lead == window->max_lead &&
		data->last_value >= window->first &&
		data->last_value < window->last &&
		data->is_called;
}

/*
 * Log that values are used, up to "last" and some beyond it.  Returns the last
 * value that the record covers.  The page, which is locked and dirty, has the
 * same from here on.
 */
static int64
log_values(SequenceState *seq, const TickSpec *spec,
		   FormData_pg_sequence_data *data, int64 last)
{
	int64		ahead = spec->tick == 0 ? LOG_AHEAD_VALUES :
		Max(LOG_AHEAD_USECS / spec->tick, 1) * spec->slots;
	int64		mark = last + Min(ahead, spec->max_value - last);
	xl_seq_rec	xlrec;
	XLogRecPtr	recptr;

	/*
	 * nextval() has the transaction take an ID here, so that its commit
	 * flushes the record and waits for standbys.  We do both ourselves,
	 * before the value is returned.
	 */
	START_CRIT_SECTION();

	/* Step INSERT. */
	XLogBeginInsert();
	XLogRegisterBuffer(0, seq->buffer, REGBUF_WILL_INIT);

	/* The record has the sequence as it is when all of it is used. */
	data->last_value = mark;
	data->log_cnt = 0;
	data->is_called = true;

	SeqRecordLocator(xlrec) = seq->file;
	XLogRegisterData((char *) &xlrec, sizeof(xl_seq_rec));
	XLogRegisterData((char *) pinned_tuple, SEQUENCE_TUPLE_SIZE);

	recptr = XLogInsert(RM_SEQ_ID, XLOG_SEQ_LOG);
	PageSetLSN(BufferGetPage(seq->buffer), recptr);

	END_CRIT_SECTION();

	seq->logged = true;
	shared_note_logged(&seq->file, recptr);
	return mark;
}

/*
 * Is the count on a page with this LSN known to be of WAL of the sequence's
 * file, because this backend or another one has written some?
 */
static inline bool
count_is_known(SequenceState *seq, XLogRecPtr lsn)
{
	if (unlikely(!seq->logged))
		seq->logged = shared_is_logged(&seq->file, lsn);
	return seq->logged;
}

/*
 * Take the next value, or several, if there are any now.  Also hands out the
 * page's LSN: they must not leave this backend before the WAL up to there is
 * safe.
 */
static pg_attribute_always_inline Refusal
take_values(SequenceState *seq, const TickSpec *spec, int64 max_lead,
			int64 wanted, Attempt *attempt, XLogRecPtr *lsn)
{
	FormData_pg_sequence_data *data;
	Page		page;
	int64		last;
	int64		covered;

	/* Step LOCK of model/generator.pml, whose steps are named below. */
	data = lock_page(seq, BUFFER_LOCK_EXCLUSIVE);
	page = BufferGetPage(seq->buffer);

	/*
	 * Dirty the page before anything else, as the redo pointer that we look
	 * at below must not be older than that.  nextval() does it the other way
	 * round: a checkpoint that begins and passes the page by in between,
	 * since it is still clean, leaves values without WAL and without a page
	 * on disk.  Dirty first, and either we see the checkpoint's redo pointer
	 * and write WAL after it, or the checkpoint sees the dirty page.
	 *
	 * A page that is dirty stays so while we hold the lock, as it takes the
	 * lock in shared mode to write it.  To look is cheaper than to mark.
	 */
	if (!BufferIsDirty(seq->buffer))
		MarkBufferDirty(seq->buffer);

	/* Now that nobody else can take a value. */
	attempt->now = GetCurrentTimestamp();

	if (likely(wanted == 1 &&
			   next_is_in_window(data, &seq->window, max_lead, attempt->now)))
	{
		attempt->value = data->last_value + 1;
		attempt->count = 1;
	}
	else
	{
		Refusal		refusal = next_value(data, spec, max_lead, wanted, attempt);

		if (refusal != VALUE_AVAILABLE)
		{
			unlock_page(seq);
			return refusal;
		}
		remember_window(&seq->window, spec, max_lead, attempt->now);
	}

	/* An old SELECT FOR UPDATE may have left this; see read_seq_tuple(). */
	if (unlikely(HeapTupleHeaderGetRawXmax(pinned_tuple) != InvalidTransactionId))
	{
		HeapTupleHeaderSetXmax(pinned_tuple, InvalidTransactionId);
		pinned_tuple->t_infomask &= ~HEAP_XMAX_COMMITTED;
		pinned_tuple->t_infomask |= HEAP_XMAX_INVALID;
	}

	/*
	 * The WAL covers values up to last_value + log_cnt.
	 *
	 * log_cnt means nothing if it may have come with a copy of the file
	 * rather than with the file's WAL: CREATE DATABASE copies files, and SET
	 * LOGGED logs the sequence's last value with the count of the old file.
	 * Hence a backend logs when it first touches a file, unless it is known
	 * where the count comes from.  log_cnt means nothing either if recovery
	 * would start after the record.
	 *
	 * A file made in this transaction under wal_level = minimal has no WAL;
	 * an image of the page will be logged at commit, and must not carry a
	 * count.
	 */
	last = attempt->value + attempt->count - 1;
	covered = data->last_value + data->log_cnt;

	/* Step LOOK. */
	if (unlikely(!seq->needs_wal))
		covered = last;
	else if (unlikely(last > covered || !data->is_called ||
					  !count_is_known(seq, PageGetLSN(page)) ||
					  PageGetLSN(page) <= GetRedoRecPtr()))
		covered = log_values(seq, spec, data, last);

	/* Step TAKE, or RESTORE if there is a new record. */
	data->last_value = last;
	data->log_cnt = covered - last;
	data->is_called = true;

	*lsn = PageGetLSN(page);
	unlock_page(seq);
	return VALUE_AVAILABLE;
}

/*
 * Microseconds of a clock that nobody sets.
 */
static int64
monotonic_time(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (int64) INSTR_TIME_GET_MICROSEC(now);
}

/*
 * Sleep or spin for about that long, not holding anything, or until this
 * backend is told something.
 */
static void
wait_for_clock(int64 usecs)
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
		int64		end = monotonic_time() + usecs;

		do
		{
			SPIN_DELAY();
		} while (monotonic_time() < end);
	}

	CHECK_FOR_INTERRUPTS();
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
	 * The checkpointer has not read synchronous_standby_names yet, so it is
	 * our own copy that tells.  Where there is only a flag, the checkpointer
	 * may as well have found the setting empty, and our copy be out of date.
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
 * WalSndCtl->lsn[] does not tell.  It is how far the standbys had got that
 * were synchronous at some time, and others may have replaced them.
 */
static bool
standbys_have(XLogRecPtr lsn, int mode)
{
	SyncRepStandbyData *standbys;
	int			candidates = 0;
	int			have = 0;

	/*
	 * Usually all of them have it, so it does not matter which of them are
	 * synchronous.  A slot without a process can be seen without its lock.
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
static void
wait_for_standbys(SequenceState *seq, XLogRecPtr lsn)
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
				 monotonic_time() < last_wait.good_until)
			return;

		/*
		 * Until the checkpointer has read the setting, SyncRepWaitForLSN()
		 * may not wait.
		 */
		if (SharedStandbyStatus() == 0)
		{
			wait_for_clock(1000);
			continue;
		}

		/*
		 * Many sessions wait for the same record at the same time, but no two
		 * may wait for the same LSN: as every commit has its own, the queue of
		 * waiters takes equal ones for an error (and asserts so).  Hence each
		 * waits for a record of its own, which says nothing.
		 */
		XLogBeginInsert();
		XLogRegisterData(&nothing, sizeof(nothing));
		noop = XLogInsert(RM_XLOG_ID, XLOG_NOOP);
		XLogFlush(noop);
		seq->flushed = noop;

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
			last_wait.good_until = monotonic_time() + RELY_USECS;
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
					 errmsg("canceling next_id() while it waited for synchronous replication"),
					 errdetail("No ID was returned, because a standby that takes over could repeat it.")));
		}
	} while (standbys_asked_for());
}

/*
 * Wait until the WAL up to "lsn" is on disk and, where that is asked for, on
 * the synchronous standbys.
 *
 * nextval() leaves this to the commit of the transaction that wrote the
 * record.  But every session takes values that the record covers, and one
 * that has nothing to commit would hand them to its client before the record
 * is safe.
 */
static void
make_durable(SequenceState *seq, XLogRecPtr lsn)
{
	if (lsn > seq->flushed)
	{
		XLogFlush(lsn);
		seq->flushed = lsn;
	}

	if (unlikely(standbys_asked_for()) && SyncRepRequested())
		wait_for_standbys(seq, lsn);
}

static char *
interval_string(int64 usecs)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = usecs;
	return DatumGetCString(DirectFunctionCall1(interval_out,
											   DirectFunctionCall1(interval_justify_hours,
																   IntervalPGetDatum(interval))));
}

static char *
time_string(TimestampTz time)
{
	return pstrdup(timestamptz_to_str(time));
}

/*
 * Report why there is no next value.
 */
static void
report_refusal(SequenceState *seq, const TickSpec *spec,
			   const TickLimits *limits, const Attempt *attempt,
			   Refusal refusal)
{
	char	   *name = get_rel_name(seq->relid);

	switch (refusal)
	{
		case VALUE_AVAILABLE:
			break;

		case REFUSED_AHEAD:
			ereport(ERROR,
					(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
					 errmsg("sequence \"%s\" is %s ahead of the clock",
							name, interval_string(attempt->lead)),
					 errdetail("The next ID would have the time %s; the clock says %s. \"snowflake.max_lead\" allows %s, and \"snowflake.max_wait\" allows waiting for %s.",
							   time_string(attempt->now + attempt->lead),
							   time_string(attempt->now),
							   interval_string(limits->max_lead),
							   interval_string(limits->max_wait)),
					 errhint("If the clock is wrong, set it right. If it was, and the sequence was used meanwhile, wait, raise \"snowflake.max_lead\", or use a new sequence with a new shard.")));
			break;

		case REFUSED_EARLY:
			ereport(ERROR,
					(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
					 errmsg("the clock is behind the epoch of the layout"),
					 errdetail("The clock says %s; the epoch is %s.",
							   time_string(attempt->now),
							   time_string(spec->epoch)),
					 errhint("Set the server's clock.")));
			break;

		case REFUSED_USED_UP:
			if (spec->tick == 0)
				ereport(ERROR,
						(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
						 errmsg("the numbers of the layout are used up"),
						 errdetail("Sequence \"%s\" is at %lld; the last value is %lld.",
								   name, (long long) attempt->stored,
								   (long long) spec->max_value),
						 errhint("Use another layout with a new sequence.")));
			ereport(ERROR,
					(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
					 errmsg("the time of the layout is used up"),
					 errdetail("Sequence \"%s\" is at %lld and the clock says %s; the last value is %lld.",
							   name, (long long) attempt->stored,
							   time_string(attempt->now),
							   (long long) spec->max_value),
					 (attempt->now - spec->epoch) / spec->tick > spec->last_tick ?
					 errhint("Use a layout with a later epoch, or check the server's clock.") :
					 errhint("It is the sequence that is at its end, not the clock. Use a new sequence with a new shard.")));
			break;

		case REFUSED_IMPOSSIBLE:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("value %lld of sequence \"%s\" is impossible for the layout",
							(long long) attempt->stored, name),
					 errdetail("The values of the layout are 0 to %lld.",
							   (long long) spec->max_value),
					 errhint("Use another sequence, or setval() this one to a value that is above all that were used.")));
			break;
	}
}

/*
 * There was no value to take.  Wait until there is one, or report why there
 * will not be one soon.
 */
static void
wait_and_take_values(SequenceState *seq, const TickSpec *spec,
					 const TickLimits *limits, int64 wanted,
					 Refusal refusal, Attempt *attempt, XLogRecPtr *lsn)
{
	int64		wait_start = monotonic_time();
	int64		clock_moved = wait_start;	/* when the clock was last seen to
											 * move */
	TimestampTz clock_seen = attempt->now;

	while (refusal != VALUE_AVAILABLE)
	{
		int64		time = monotonic_time();
		int64		wait;

		if (refusal != REFUSED_AHEAD)
			report_refusal(seq, spec, limits, attempt, refusal);

		if (attempt->now != clock_seen)
		{
			clock_seen = attempt->now;
			clock_moved = time;
		}

		/*
		 * Give up as soon as it is certain that max_wait will not do.  A wait
		 * for the next tick, because others have taken this one's slots, goes
		 * on for as long as the clock does.
		 */
		wait = attempt->lead - limits->max_lead;
		if (wait > spec->tick ?
			time - wait_start + wait > limits->max_wait :
			time - clock_moved > Max(limits->max_wait, FROZEN_USECS))
			report_refusal(seq, spec, limits, attempt, refusal);

		wait_for_clock(wait);

		/* What interrupted the wait may have changed the sequence. */
		if (!sequence_is_open(seq, spec))
			(void) open_sequence(seq, spec, true, true);
		refusal = take_values(seq, spec, limits->max_lead, wanted, attempt, lsn);
	}
}

/*
 * Take the next value, waiting for the clock if need be; or several, one after
 * the other: up to *count, of which there may be fewer.
 */
int64
generator_next(Oid relid, const TickSpec *spec, const TickLimits *limits,
			   int64 *count)
{
	SequenceState *seq = sequence_find(relid);
	Attempt		attempt;
	Refusal		refusal;
	XLogRecPtr	lsn;

	/* What this backend remembers is not shared with its workers. */
	if (unlikely(XactReadOnly || IsInParallelMode()))
	{
		PreventCommandDuringRecovery("next_id()");
		PreventCommandIfReadOnly("next_id()");
		PreventCommandIfParallelMode("next_id()");
	}

	if (unlikely(!sequence_is_open(seq, spec)))
		(void) open_sequence(seq, spec, true, true);

	refusal = take_values(seq, spec, limits->max_lead, *count, &attempt, &lsn);
	if (unlikely(refusal != VALUE_AVAILABLE))
		wait_and_take_values(seq, spec, limits, *count, refusal, &attempt, &lsn);

	/* Steps FLUSH, WAIT and RETURN. */
	make_durable(seq, lsn);

	*count = attempt.count;
	return attempt.value;
}

/*
 * Read a sequence's state without changing it.  Returns false if another
 * session has locked the sequence and the caller does not want to wait.
 */
bool
generator_status(Oid relid, const TickSpec *spec, const TickLimits *limits,
				 bool wait, TickStatus *status)
{
	SequenceState *seq = sequence_find(relid);
	FormData_pg_sequence_data data;
	Attempt		attempt;
	Refusal		refusal;

	/*
	 * On a standby our lock does not keep replay from giving the sequence
	 * another file.  Replay announces that before it deletes the old one.  A
	 * file that is deleted between that look and the reading is an error, as
	 * it is for a SELECT from the sequence.
	 */
	AcceptInvalidationMessages();
	if (!open_sequence(seq, spec, false, wait))
		return false;

	data = *lock_page(seq, BUFFER_LOCK_SHARE);
	unlock_page(seq);

	/*
	 * No lock of ours keeps a standby's replay from dropping the file, and a
	 * pin would bring replay to a halt.
	 */
	unpin_page();

	attempt.now = GetCurrentTimestamp();
	refusal = next_value(&data, spec, limits->max_lead, 1, &attempt);
	if (refusal == REFUSED_IMPOSSIBLE)
		report_refusal(seq, spec, limits, &attempt, refusal);

	status->called = data.is_called;
	status->value = data.last_value;
	status->logged = data.last_value + data.log_cnt;
	if (refusal == VALUE_AVAILABLE)
		status->state = attempt.lead > 0 ? TICK_AHEAD : TICK_OK;
	else if (refusal == REFUSED_AHEAD &&
			 attempt.lead - limits->max_lead <= Max(limits->max_wait, spec->tick))
		status->state = TICK_WAITS;
	else
		status->state = TICK_REFUSES;
	return true;
}
