/*-------------------------------------------------------------------------
 *
 * generator.c
 *	  Take the next value of a sequence that follows the clock.
 *
 * The generator takes values of an ordinary sequence.  The next value is the
 * last one plus one, moved up to the clock's tick if its own tick is behind.
 * doc/internals.md says why that is safe, and generator.h what the words mean.
 *
 * The page has what nextval() puts there: last_value, and in log_cnt how many
 * values beyond it the WAL already covers.  So nextval(), setval(), replay,
 * pg_dump and a standby without this library all understand it.
 *
 * Unlike nextval(), this never repeats a returned value after a crash.
 * Comments say where and why it differs from nextval().  Comments that begin
 * with "Step", such as "Step LOCK", give the name that the place has in the
 * model of this file, lab/generator.pml.
 *
 * This file reads no setting, as callers pass the limits.  It composes no IDs:
 * all that it does for them is never to take value 0.  Of shards it knows only
 * what its messages say.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/rmgr.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "compat.h"

#include "arguments.h"
#include "generator.h"
#include "page.h"
#include "wait.h"

/*
 * A WAL record covers the values of this much time beyond the last value that
 * is taken with it, or of one tick if a tick were longer, which none is.  So a
 * busy sequence writes about one record a second.  After a crash, all covered
 * values count as used, so that the sequence may be ahead of the clock by this
 * time in addition to max_lead.
 */
#define LOG_AHEAD_USECS		USECS_PER_SEC

/*
 * The same as a number of values, for a layout without a clock.  A record of
 * nextval() covers 32 values.  Here a record must be on disk before a value is
 * returned, so with 32 a user who takes millions of values would wait for the
 * disk too often.
 */
#define LOG_AHEAD_VALUES	1024

/*
 * A call that waits for the next tick takes the clock for stopped if the clock
 * has not changed for this long, measured by the monotonic clock, or for
 * max_wait if that is longer.  It is far longer than the steps in which the
 * coarsest clocks advance, which are some milliseconds.
 */
#define CLOCK_STOPPED_USECS INT64CONST(100000)

typedef enum TakeResult
{
	VALUE_AVAILABLE,
	REFUSED_AHEAD,				/* the clock has to move on first */
	REFUSED_EARLY,				/* the clock is behind the epoch */
	REFUSED_USED_UP,			/* the clock is past the last tick, or the
								 * value past max_value */
	REFUSED_OUT_OF_RANGE		/* the value on the page is outside the spec's
								 * range */
} TakeResult;

/* What an attempt to take a value found */
typedef struct Attempt
{
	TimestampTz now;			/* the clock */
	int64		stored;			/* last_value as read from the page */
	int64		value;			/* the next value */
	int64		count;			/* number of values that can be taken,
								 * starting with it */
	int64		lead;			/* how long after "now" the next value's tick
								 * begins, in microseconds; not positive if
								 * that is the clock's own tick */
} Attempt;

/* The last value that can be taken while the clock is at "now" */
static int64
last_allowed(const GeneratorSpec *spec, int64 max_lead, TimestampTz now)
{
	int64		since_epoch = now - spec->epoch;
	int64		tick;

	/* A layout without a clock */
	if (spec->tick_usecs == 0)
		return spec->max_value;

	/*
	 * The last tick that is not too far ahead of the clock.  A max_lead of
	 * decades must not make the sum overflow.  The clock is not behind the
	 * epoch, because next_value() has refused that.
	 */
	tick = (since_epoch + Min(max_lead, PG_INT64_MAX - since_epoch)) /
		spec->tick_usecs;
	if (tick >= spec->last_tick)
		return spec->max_value;
	return Min(spec->max_value, (tick + 1) * spec->slots - 1);
}

/*
 * Find the value that comes after the one on the page, and how many values, up
 * to "wanted", can be taken starting with it.
 */
static TakeResult
next_value(const FormData_pg_sequence_data *data, const GeneratorSpec *spec,
		   int64 max_lead, int64 wanted, Attempt *attempt)
{
	int64		value = data->last_value;

	attempt->stored = value;
	attempt->lead = 0;

	if (value < 0 || value > spec->max_value)
		return REFUSED_OUT_OF_RANGE;

	/*
	 * Value 0 is never taken: in most layouts, the ID made of value 0 and
	 * shard 0 would be 0, and IDs are positive.
	 */
	if (data->is_called || value == 0)
		value++;

	if (likely(spec->tick_usecs != 0))
	{
		int64		since_epoch = attempt->now - spec->epoch;
		int64		tick = value / spec->slots;
		int64		clock_tick;

		if (since_epoch < 0)
			return REFUSED_EARLY;
		clock_tick = since_epoch / spec->tick_usecs;
		if (clock_tick > spec->last_tick)
			return REFUSED_USED_UP;

		/*
		 * Move up to the clock's tick.  Keep the slot instead of beginning
		 * with slot 0, so that a slot is a counter that goes round, as in
		 * Instagram's layout.  If the value is not moved up, then its tick is
		 * the clock's own or a later one.
		 */
		if (tick < clock_tick)
			value += (clock_tick - tick) * spec->slots;
		else
			attempt->lead = tick * spec->tick_usecs - since_epoch;
	}

	attempt->value = value;
	if (value > spec->max_value)
		return REFUSED_USED_UP;
	if (attempt->lead > max_lead)
		return REFUSED_AHEAD;

	attempt->count = wanted == 1 ? 1 :
		Min(wanted, last_allowed(spec, max_lead, attempt->now) - value + 1);
	return VALUE_AVAILABLE;
}

/*
 * Log that all values up to "last" and some beyond it are used.  Returns the
 * last value that the record covers.
 *
 * lock_page_to_change() has locked the page and marked it dirty.  On return
 * the page shows what was logged.  The caller, put_value(), puts the real
 * state there before it unlocks the page.
 */
static int64
log_values(KnownSequence *seq, const GeneratorSpec *spec,
		   FormData_pg_sequence_data *data, int64 last)
{
	int64		ahead = spec->tick_usecs == 0 ? LOG_AHEAD_VALUES :
		Max(LOG_AHEAD_USECS / spec->tick_usecs, 1) * spec->slots;
	int64		covered = last + Min(ahead, spec->max_value - last);
	Page		page = BufferGetPage(seq->buffer);
	xl_seq_rec	xlrec;
	XLogRecPtr	recptr;

	/*
	 * At this point nextval() has a transaction ID assigned, so that the
	 * commit flushes the record and waits for standbys.  No transaction ID is
	 * needed here, because wait_until_durable() does both before the value is
	 * returned.
	 */
	START_CRIT_SECTION();

	/* Step INSERT. */
	XLogBeginInsert();
	XLogRegisterBuffer(0, seq->buffer, REGBUF_WILL_INIT);

	/* The record shows the sequence as if all that it covers were used. */
	data->last_value = covered;
	data->log_cnt = 0;
	data->is_called = true;

	SeqRecordLocator(xlrec) = seq->file;
	XLogRegisterData((char *) &xlrec, sizeof(xl_seq_rec));
	XLogRegisterData((char *) page_pinned.tuple, SEQUENCE_TUPLE_SIZE);

	recptr = XLogInsert(RM_SEQ_ID, XLOG_SEQ_LOG);
	PageSetLSN(page, recptr);

	/*
	 * Note on the page that log_cnt counts what this record covers.
	 *
	 * If this transaction made the file, then the record precedes the record
	 * of its commit in the WAL.  A standby that has received this record but
	 * not the commit goes back to the old file when it is promoted.  So leave
	 * no note for other transactions.  The next one that uses the file writes
	 * a record again, which is after the commit, and a value that it covers is
	 * returned only when the standbys have it.  This transaction finds its own
	 * record by record_lsn.
	 */
	if (likely(!seq->new_file))
	{
		RecordNote *note = page_note(page);

		note->lsn = recptr;
		note->server_start = PgStartTime;
		note->file = seq->file;
		note->version = RECORD_NOTE_VERSION;
	}

	END_CRIT_SECTION();

	seq->record_lsn = recptr;
	return covered;
}

/*
 * May this backend trust log_cnt?
 *
 * The page's record is the one whose LSN the page has.  log_cnt should say how
 * many values beyond last_value that record covers.  It is wrong if the page
 * is a copy, because that record is then of another file, or if PostgreSQL has
 * copied log_cnt into a new file, as ALTER SEQUENCE ... SET LOGGED does.  It is
 * also wrong if that record is an image of the page, because an image covers
 * nothing beyond the last value.
 *
 * So trust log_cnt only if log_values() noted this record for this file.
 * Whoever changes the page later, be it next_id(), nextval() or setval(),
 * keeps log_cnt right or gives the page another LSN.  An image gives it
 * another LSN, too.  A copy may keep LSN and note, but is another file.  If it
 * comes back to the first file's name, as when a database is moved to another
 * tablespace and back, then PostgreSQL has made a checkpoint in between, and
 * put_value() finds that the LSN is not newer than the redo pointer.
 *
 * After a crash, a new record may get the LSN of one that the crash has lost.
 * It cannot be taken for the one in a note: a page is written to disk only
 * after its WAL, so if a note is on disk, its record was not lost.  Recovery
 * replays that record, and so clears the note.  If the record is before the
 * redo pointer, it is not replayed, but then put_value() finds that the LSN is
 * too old.  This holds only if recovery reads the WAL that was written with
 * the page.  Somebody may have put an older page or other WAL in its place
 * while the server was down, so do not trust the note of an earlier start of
 * the postmaster.  If only a backend has crashed, the postmaster goes on, and so
 * does its start.
 */
static inline bool
log_cnt_is_valid(const KnownSequence *seq, Page page)
{
	const RecordNote *note = page_note(page);

	if (unlikely(seq->new_file))
		return seq->record_lsn == PageGetLSN(page);

	return note->lsn == PageGetLSN(page) &&
		note->server_start == PgStartTime &&
		note->version == RECORD_NOTE_VERSION &&
		RelFileLocatorEquals(note->file, seq->file);
}

/*
 * Step LOCK.  Lock the page to change it, and mark it dirty before put_value()
 * looks at the redo pointer.
 *
 * A checkpoint sets the redo pointer first and then writes the dirty pages.
 * So either put_value() sees the new redo pointer, and writes a WAL record
 * after it, or the checkpoint sees the dirty page, and writes it.  nextval()
 * looks at the redo pointer before it marks the page dirty.  A checkpoint that
 * begins in between skips the page, which is still clean, so that after a
 * crash neither the WAL from the redo pointer on nor the page on disk has the
 * value.
 *
 * A dirty page stays dirty while this backend holds the lock, because a
 * backend that writes the page locks it, too, in a mode that conflicts with
 * ours.  Looking whether the page is dirty is cheaper than marking it again.
 * A refused call dirties the page in vain, which is harmless.
 */
static inline FormData_pg_sequence_data *
lock_page_to_change(KnownSequence *seq)
{
	FormData_pg_sequence_data *data = page_lock(seq, BUFFER_LOCK_EXCLUSIVE);

	if (!BufferIsDirty(seq->buffer))
		MarkBufferDirty(seq->buffer);
	return data;
}

/*
 * Put the last value on the page, which lock_page_to_change() has locked, with
 * WAL that covers it, and unlock the page.  Returns the page's LSN.  The value
 * must not leave this backend before wait_until_durable() has been called with
 * that LSN.
 */
static pg_attribute_always_inline XLogRecPtr
put_value(KnownSequence *seq, const GeneratorSpec *spec,
		  FormData_pg_sequence_data *data, int64 last)
{
	Page		page = BufferGetPage(seq->buffer);
	int64		covered = data->last_value + data->log_cnt;
	XLogRecPtr	lsn;

	/*
	 * Clear what SELECT FOR UPDATE may have left in an old version of
	 * PostgreSQL, as read_seq_tuple() in PostgreSQL's sequence.c does.
	 */
	if (unlikely(HeapTupleHeaderGetRawXmax(page_pinned.tuple) != InvalidTransactionId))
	{
		HeapTupleHeaderSetXmax(page_pinned.tuple, InvalidTransactionId);
		page_pinned.tuple->t_infomask &= ~HEAP_XMAX_COMMITTED;
		page_pinned.tuple->t_infomask |= HEAP_XMAX_INVALID;
	}

	/*
	 * Step LOOK.
	 *
	 * A file that this transaction made under wal_level = minimal has no WAL.
	 * The commit logs or syncs the page as it is, so log_cnt must be 0 then.
	 * (Temporary and unlogged sequences, which have no WAL either, have been
	 * refused by sequence_lock_and_check().)
	 *
	 * For any other file, write a record unless the WAL covers "last" already.
	 * It does up to last_value + log_cnt, except in these cases:
	 *
	 * - The sequence has not been used yet, so that no record says that
	 * last_value itself is used.
	 *
	 * - log_cnt came with a copy or an image of the page.  CREATE DATABASE
	 * copies pages, and ALTER SEQUENCE ... SET LOGGED logs the last value with
	 * the log_cnt of the old file.  log_cnt_is_valid() finds that out by the
	 * note on the page.
	 *
	 * - Recovery may start after the record, because the page's LSN is not
	 * newer than the redo pointer.
	 */
	if (unlikely(!seq->needs_wal))
		covered = last;
	else if (unlikely(last > covered || !data->is_called ||
					  !log_cnt_is_valid(seq, page) ||
					  PageGetLSN(page) <= GetRedoRecPtr()))
		covered = log_values(seq, spec, data, last);

	/*
	 * Step TAKE.  After log_values(), which has put another state on the page,
	 * the model calls this step RESTORE.
	 */
	data->last_value = last;
	data->log_cnt = covered - last;
	data->is_called = true;

	lsn = PageGetLSN(page);
	page_unlock(seq);
	return lsn;
}

/*
 * Take the next value, or several, if there are any now.  Also returns the
 * page's LSN.  The values must not leave this backend before
 * wait_until_durable(*lsn).
 */
static pg_attribute_always_inline TakeResult
take_values(KnownSequence *seq, const GeneratorSpec *spec, int64 max_lead,
			int64 wanted, Attempt *attempt, XLogRecPtr *lsn)
{
	FormData_pg_sequence_data *data = lock_page_to_change(seq);
	TakeResult	result;

	/*
	 * Read the clock under the lock.  After a wait for the lock, an earlier
	 * reading would make the sequence seem further ahead of the clock than it
	 * is.
	 */
	attempt->now = GetCurrentTimestamp();

	result = next_value(data, spec, max_lead, wanted, attempt);
	if (unlikely(result != VALUE_AVAILABLE))
	{
		page_unlock(seq);
		return result;
	}

	*lsn = put_value(seq, spec, data, attempt->value + attempt->count - 1);
	return VALUE_AVAILABLE;
}

/* A number of microseconds as an interval for messages */
static char *
interval_string(int64 usecs)
{
	/* The difference of two timestamps has days, and hours below 24. */
	return DatumGetCString(DirectFunctionCall1(interval_out,
											   DirectFunctionCall2(timestamp_mi,
																   TimestampTzGetDatum(usecs),
																   TimestampTzGetDatum(0))));
}

/* Raise the error for the result of an attempt. */
pg_noreturn static void
report_refusal(KnownSequence *seq, const GeneratorSpec *spec,
			   const SettingsLimits *limits, const Attempt *attempt,
			   TakeResult result)
{
	char	   *relname = get_rel_name(seq->relid);

	if (result == REFUSED_AHEAD)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("sequence \"%s\" is %s ahead of the clock",
						relname, interval_string(attempt->lead)),
				 errdetail("The next ID would have the time %s; the clock says %s. \"snowflake.max_lead\" allows %s, and \"snowflake.max_wait\" allows waiting for %s.",
						   arguments_time_string(attempt->now + attempt->lead),
						   arguments_time_string(attempt->now),
						   interval_string(limits->max_lead),
						   interval_string(limits->max_wait)),
				 errhint("Correct the clock if it is wrong, or wait for it to catch up. SELECT * FROM snowflake_check(), of extension snowflake_admin, says whether rows have future-dated IDs and what else can be done.")));
	if (result == REFUSED_EARLY)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				 errmsg("the clock is behind the epoch of the layout"),
				 errdetail("The clock says %s; the epoch is %s.",
						   arguments_time_string(attempt->now),
						   arguments_time_string(spec->epoch)),
				 errhint("Check the server's clock and the layout's epoch.")));
	if (result == REFUSED_OUT_OF_RANGE)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("value %lld of sequence \"%s\" is out of range for the layout",
						(long long) attempt->stored, relname),
				 errdetail("The values of the layout are 0 to %lld.",
						   (long long) spec->max_value),
				 errhint("Use a new sequence with a new shard.")));

	Assert(result == REFUSED_USED_UP);
	if (spec->tick_usecs == 0)
		ereport(ERROR,
				(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
				 errmsg("the values of the layout are used up"),
				 errdetail("Sequence \"%s\" is at %lld; the last value is %lld.",
						   relname, (long long) attempt->stored,
						   (long long) spec->max_value),
				 errhint("Use another layout with a new sequence.")));
	if ((attempt->now - spec->epoch) / spec->tick_usecs <= spec->last_tick)
		ereport(ERROR,
				(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
				 errmsg("sequence \"%s\" has reached the last value of the layout", relname),
				 errdetail("It is at %lld and the clock says %s; the layout has not ended.",
						   (long long) attempt->stored, arguments_time_string(attempt->now)),
				 errhint("Use a new sequence with a new shard.")));
	ereport(ERROR,
			(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
			 errmsg("the time of the layout is used up"),
			 errdetail("Sequence \"%s\" is at %lld and the clock says %s; the last value is %lld.",
					   relname, (long long) attempt->stored,
					   arguments_time_string(attempt->now),
					   (long long) spec->max_value),
			 errhint("Check the server's clock. If it is right, use another layout with shards that no old ID has, or another primary key.")));
}

/*
 * Wait until there is a value to take, or report why there will be none soon
 * enough.
 */
static void
wait_and_take_values(KnownSequence *seq, const GeneratorSpec *spec,
					 const SettingsLimits *limits, int64 wanted,
					 TakeResult result, Attempt *attempt, XLogRecPtr *lsn)
{
	static uint32 clock_event = 0;

	/*
	 * By the monotonic clock: when the wait began, when the clock was last
	 * seen to have changed, and when the last attempt began.
	 *
	 * At first all are the same.  Then "attempted" is from before an attempt
	 * reads the clock, and "clock_changed" from after one has, so their
	 * difference is at most the time for which the clock has stood still.  A
	 * pause of this process must not look like a clock that has stopped.
	 */
	int64		began = wait_monotonic_time();
	int64		clock_changed = began;
	int64		attempted = began;
	TimestampTz clock_seen = attempt->now;

	while (result != VALUE_AVAILABLE)
	{
		int64		wait;
		bool		too_long;

		if (result != REFUSED_AHEAD)
			report_refusal(seq, spec, limits, attempt, result);

		if (attempt->now != clock_seen)
		{
			clock_seen = attempt->now;
			clock_changed = wait_monotonic_time();
		}

		/*
		 * Fail as soon as max_wait is too short for what the clock says now.
		 * Somebody might set the clock forward meanwhile, but a caller should
		 * not wait for that.
		 *
		 * But if only the slots of a tick are used up, the wait for the next
		 * tick is never an error unless the clock has stopped.  Under load,
		 * when other sessions take the slots of one tick after another, a call
		 * may therefore wait for longer than max_wait in all.
		 */
		wait = attempt->lead - limits->max_lead;
		if (wait > spec->tick_usecs)
			too_long = attempted - began + wait > limits->max_wait;
		else
			too_long = attempted - clock_changed > Max(limits->max_wait, CLOCK_STOPPED_USECS);
		if (too_long)
			report_refusal(seq, spec, limits, attempt, result);

		if (clock_event == 0)
			clock_event = WaitEventExtensionNew("SnowflakeClock");
		wait_usecs(wait, clock_event);
		attempted = wait_monotonic_time();

		/*
		 * The sequence need not be checked again.  Our lock on it keeps others
		 * from altering it, and the privilege has been checked for this
		 * transaction.
		 */
		result = take_values(seq, spec, limits->max_lead, wanted, attempt, lsn);
	}
}

/*
 * Find a sequence, and raise an error unless this transaction and the current
 * role may take values of it for the spec.
 */
static inline KnownSequence *
find_to_take(Oid relid, const GeneratorSpec *spec, const char *caller)
{
	KnownSequence *seq = sequence_find(relid);

	/*
	 * XactReadOnly is also set during recovery.  Parallel mode is refused,
	 * because the leader and its workers would not share what each of them
	 * remembers of a sequence.
	 */
	if (unlikely(XactReadOnly || IsInParallelMode()))
	{
		PreventCommandDuringRecovery(caller);
		PreventCommandIfReadOnly(caller);
		PreventCommandIfParallelMode(caller);
	}

	if (unlikely(!sequence_is_checked(seq, spec)))
		sequence_lock_and_check(seq, spec, SEQUENCE_TAKE);
	return seq;
}

/*
 * Raise an error unless generator_next() would be allowed to take values of the
 * sequence.
 */
void
generator_check(Oid relid, const GeneratorSpec *spec, const char *caller)
{
	(void) find_to_take(relid, spec, caller);
}

/*
 * Take the next value, or several successive ones, and return the first.
 * *count is how many the caller wants, and on return how many were taken, at
 * least one.  Waits for the clock if no value is available yet.
 */
int64
generator_next(Oid relid, const GeneratorSpec *spec, const SettingsLimits *limits,
			   int64 *count, const char *caller)
{
	KnownSequence *seq = find_to_take(relid, spec, caller);
	Attempt		attempt;
	TakeResult	result;
	XLogRecPtr	lsn;

	result = take_values(seq, spec, limits->max_lead, *count, &attempt, &lsn);
	if (unlikely(result != VALUE_AVAILABLE))
		wait_and_take_values(seq, spec, limits, *count, result, &attempt, &lsn);

	/*
	 * When this transaction commits, PostgreSQL's FlushRelationsAllBuffers()
	 * may write the pages of a file without WAL.  It pins each of them in a
	 * way that works only for pages that this backend has not pinned yet.
	 * Usually page.c has released the pin by then, but a callback of another
	 * library may call next_id() after that.
	 */
	if (unlikely(!seq->needs_wal))
		page_unpin();

	/* Steps FLUSH, WAIT and RETURN. */
	wait_until_durable(lsn);

	*count = attempt.count;
	return attempt.value;
}

/*
 * Let every later value of a sequence be larger than "value".  The caller has
 * called sequence_lock_and_check() with SEQUENCE_SET.
 *
 * If the last value is larger already, it stays.  But another session may have
 * put it on the page a moment ago, with a WAL record that is not on disk yet,
 * and a crash would take it back.  So treat it as if this call had put it
 * there.
 */
void
generator_advance(Oid relid, const GeneratorSpec *spec, const SettingsLimits *limits, int64 value)
{
	KnownSequence *seq = sequence_find(relid);
	FormData_pg_sequence_data *data = lock_page_to_change(seq);
	FormData_pg_sequence_data after = {.is_called = true};
	Attempt		attempt;
	TakeResult	result;
	XLogRecPtr	lsn;

	attempt.stored = data->last_value;
	if (attempt.stored < 0 || attempt.stored > spec->max_value)
	{
		page_unlock(seq);
		report_refusal(seq, spec, limits, &attempt, REFUSED_OUT_OF_RANGE);
	}
	after.last_value = Max(attempt.stored, value);
	lsn = put_value(seq, spec, data, after.last_value);

	/* As in generator_next() */
	if (!seq->needs_wal)
		page_unpin();
	wait_until_durable(lsn);

	/* What would the next call of next_id() do? */
	attempt.now = GetCurrentTimestamp();
	result = next_value(&after, spec, limits->max_lead, 1, &attempt);
	if (result == REFUSED_AHEAD)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("sequence \"%s\" is %s ahead of the clock",
						get_rel_name(relid), interval_string(attempt.lead)),
				 errdetail("Calls of next_id() wait until %s, or fail if that is longer than \"snowflake.max_wait\" allows.",
						   arguments_time_string(attempt.now + attempt.lead - limits->max_lead))));
}

/*
 * Read a sequence's data without changing them, and return what the next call
 * would do now, for a role that may take values, and on a standby if it were
 * promoted: "ok" is to return a value, "ahead" is to return one whose time
 * is ahead of the clock, "waits" is to wait for the clock or for another
 * session's lock, and "refuses" is to fail.  Raises an error if the role may
 * not look, or the sequence does not serve the spec.  *data is left alone if
 * the value is out of range for the spec, and if the next call would wait
 * because another session has a lock on the sequence that conflicts with ours,
 * as ALTER SEQUENCE takes.
 */
const char *
generator_state(Oid relid, const GeneratorSpec *spec, const SettingsLimits *limits,
				FormData_pg_sequence_data *data)
{
	KnownSequence *seq = sequence_find(relid);
	FormData_pg_sequence_data found;
	Attempt		attempt;
	TakeResult	result;

	/*
	 * On a standby our lock does not keep replay from giving the sequence
	 * another file, since only ACCESS EXCLUSIVE locks are in the WAL.  Replay
	 * sends an invalidation before it deletes the old file.  If it deletes the
	 * file after we accept invalidations and before we read the page, reading
	 * fails, as it does for a SELECT from the sequence.
	 */
	AcceptInvalidationMessages();
	if (!sequence_lock_to_look(seq, spec))
		return "waits";
	found = page_read(seq);
	sequence_unlock_after_look(seq);

	attempt.now = GetCurrentTimestamp();
	result = next_value(&found, spec, limits->max_lead, 1, &attempt);
	if (result == REFUSED_OUT_OF_RANGE)
		return "refuses";

	*data = found;
	if (result == VALUE_AVAILABLE)
		return attempt.lead > 0 ? "ahead" : "ok";
	if (result == REFUSED_AHEAD &&
		attempt.lead - limits->max_lead <= Max(limits->max_wait, spec->tick_usecs))
		return "waits";
	return "refuses";
}
