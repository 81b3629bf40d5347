/*-------------------------------------------------------------------------
 *
 * page.c
 *	  A sequence's page: pinned, checked and locked.
 *
 * A sequence has one page with one tuple.  A transaction keeps the page of the
 * sequence that it used last pinned.
 *
 * This file does not know what the values on the page mean, and changes none.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "storage/bufpage.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/resowner.h"

#include "compat.h"

#include "page.h"

PinnedPage	page_pinned;


void
page_unpin(void)
{
	if (page_pinned.seq != NULL)
	{
		ResourceOwner owner = CurrentResourceOwner;

		CurrentResourceOwner = TopTransactionResourceOwner;
		ReleaseBuffer(page_pinned.seq->buffer);
		CurrentResourceOwner = owner;
		page_pinned.seq = NULL;
	}
}

/*
 * Release the pin when the transaction ends.  At a commit, the resource owner
 * would warn of a leaked pin.  At an abort, it releases the pin right after this
 * callback.
 */
static void
end_transaction(XactEvent event, void *arg pg_attribute_unused())
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		page_pinned.seq = NULL;
	else
		page_unpin();
}

/*
 * The abort of a subtransaction drops the files that were made in it, which
 * fails if this backend has pinned a page of one.
 */
static void
end_subtransaction(SubXactEvent event,
				   SubTransactionId mySubid pg_attribute_unused(),
				   SubTransactionId parentSubid pg_attribute_unused(),
				   void *arg pg_attribute_unused())
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		page_unpin();
}

/*
 * Called once, when the library is loaded.
 */
void
page_init(void)
{
	RegisterXactCallback(end_transaction, NULL);
	RegisterSubXactCallback(end_subtransaction, NULL);
}

/*
 * Unpin a sequence's page if it is that of a file that the sequence no longer
 * has.
 */
void
page_unpin_old_file(SequenceState *seq)
{
	if (page_pinned.seq == seq && !RelFileLocatorEquals(page_pinned.file, seq->file))
		page_unpin();
}

/*
 * Pin the sequence's only page instead of the one that is pinned now.
 */
void
page_pin(SequenceState *seq)
{
	ResourceOwner owner = CurrentResourceOwner;
	RelFileLocator file = seq->file;
	bool		found;

	page_unpin();

	/*
	 * The page is nearly always where it was.  This saves ReadBuffer(), which
	 * needs an open relation and a look-up in the buffer table.
	 */
	CurrentResourceOwner = TopTransactionResourceOwner;
	found = BufferIsValid(seq->buffer) &&
		ReadRecentBuffer(file, MAIN_FORKNUM, 0, seq->buffer);
	CurrentResourceOwner = owner;

	/*
	 * If ReadBuffer() fails, its pin must end with the subtransaction that
	 * fails.  Otherwise PinBuffer() of PostgreSQL 15 and 16 would later take the
	 * pinned page for valid.  So the top transaction gets its pin only after the page has been read.
	 */
	if (!found)
	{
		Relation	rel;
		Buffer		buffer;

		/* On a standby, replay may just have replaced the file. */
		AcceptInvalidationMessages();
		rel = relation_open(seq->relid, NoLock);
		file = RelationFileLocator(rel);
		buffer = ReadBuffer(rel, 0);
		relation_close(rel, NoLock);

		CurrentResourceOwner = TopTransactionResourceOwner;
		IncrBufferRefCount(buffer);
		CurrentResourceOwner = owner;
		ReleaseBuffer(buffer);
		seq->buffer = buffer;
	}

	page_pinned.seq = seq;
	page_pinned.file = file;
	page_pinned.tuple = NULL;		/* not checked yet */
}

/*
 * Find the tuple on the locked page.  Raise an error unless the page has the
 * form that sequence.c gives it.
 */
void
page_check(SequenceState *seq)
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
		page_unlock(seq);
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("page of sequence \"%s\" is damaged",
						get_rel_name(seq->relid)),
				 errhint("Make a new sequence that starts above every value that was used.")));
	}

	page_pinned.tuple = (HeapTupleHeader) PageGetItem(page, item);
}

/*
 * Read the data without changing them.
 */
FormData_pg_sequence_data
page_read(SequenceState *seq)
{
	FormData_pg_sequence_data data = *page_lock(seq, BUFFER_LOCK_SHARE);

	page_unlock(seq);

	/* A pin would keep replay from dropping the file on a standby. */
	page_unpin();
	return data;
}
