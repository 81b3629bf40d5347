/*-------------------------------------------------------------------------
 *
 * page.h
 *	  A sequence's page: pinned, checked and locked.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_PAGE_H
#define SNOWFLAKE_PAGE_H

#include "access/htup_details.h"
#include "commands/sequence.h"
#include "datatype/timestamp.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/itemid.h"

#include "sequence.h"

/* The size of a sequence's tuple: a header without nulls, and three columns */
#define SEQUENCE_TUPLE_SIZE \
	(MAXALIGN(SizeofHeapTupleHeader) + \
	 offsetof(FormData_pg_sequence_data, is_called) + sizeof(bool))

/*
 * A note on the page: log_cnt counts values that are covered by the WAL record
 * named here, which is of the sequence's file named here.  generator.c writes
 * the note and goes by it.
 *
 * It is in the page's free space, right behind the only line pointer.
 * PostgreSQL puts nothing there, and does not compare it when it checks the
 * replay of WAL.  A page that PostgreSQL makes or replays has no note:
 * PageInit() clears the page, and a standard image of the page leaves out
 * the free space.  What copies the page may copy the note.
 */
typedef struct RecordNote
{
	XLogRecPtr	lsn;			/* end of the record, which then was the page's
								 * LSN */
	TimestampTz server_start;	/* start of the postmaster that wrote it */
	RelFileLocator file;		/* the file that the record is of */
	uint32		version;		/* RECORD_NOTE_VERSION */
} RecordNote;

/*
 * After an update, sessions with the old and with the new version of the
 * library run at the same time.  So a version that changes the structure
 * above, or what it means, must take another number, and must leave "version"
 * where it is: new members come after it.
 */
#define RECORD_NOTE_VERSION	1

#define RECORD_NOTE_OFFSET	MAXALIGN(SizeOfPageHeaderData + sizeof(ItemIdData))

/*
 * The page that this transaction keeps pinned, if any: that of the sequence
 * that it last took values of or advanced.  Pinning and unpinning the page at
 * every call would take a third of a call's time.
 *
 * The pin is on the buffer that the KnownSequence names.  It belongs to the
 * top transaction, like the lock on the sequence that sequence.c takes, and is
 * released at the end of that transaction at the latest.
 */
typedef struct PinnedPage
{
	KnownSequence *seq;			/* NULL if no page is pinned */
	HeapTupleHeader tuple;		/* the tuple on the page, or NULL if the page
								 * has not been checked yet.  It never moves,
								 * because PostgreSQL changes a sequence in
								 * place or gives it a new file. */
} PinnedPage;

#pragma GCC visibility push(hidden)
extern PinnedPage page_pinned;

extern void page_init(void);
extern void page_pin(KnownSequence *seq);
extern void page_unpin(void);
extern void page_check(KnownSequence *seq);
extern FormData_pg_sequence_data page_read(KnownSequence *seq);
extern FormData_pg_sequence_data page_read_unchecked(KnownSequence *seq);
#pragma GCC visibility pop

static inline void
page_unlock(KnownSequence *seq)
{
	LockBuffer(seq->buffer, BUFFER_LOCK_UNLOCK);
}

static inline RecordNote *
page_note(Page page)
{
	return (RecordNote *) ((char *) page + RECORD_NOTE_OFFSET);
}

/* Lock the page of a locked sequence, and return the data on it */
static inline FormData_pg_sequence_data *
page_lock(KnownSequence *seq, int lockmode)
{
	if (unlikely(page_pinned.seq != seq))
		page_pin(seq);

	LockBuffer(seq->buffer, lockmode);

	if (unlikely(page_pinned.tuple == NULL))
		page_check(seq);

	return (FormData_pg_sequence_data *)
		((char *) page_pinned.tuple + MAXALIGN(SizeofHeapTupleHeader));
}

#endif							/* SNOWFLAKE_PAGE_H */
