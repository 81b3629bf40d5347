/*-------------------------------------------------------------------------
 *
 * page.c
 *	  A sequence's page: pinned, checked and locked.
 *
 * A sequence has one page, and on it one tuple.
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

/* Release the pin of this transaction, if it has one */
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
 * A transaction ends.  At an abort, PostgreSQL releases the pin right after
 * this callback, so only forget it.  At all other events, release it, because
 * PostgreSQL warns of a pin that is left after a commit.
 *
 * PostgreSQL calls this twice for a commit, before and after it.  Deferred
 * triggers have fired when the first call comes.  So the second call finds a
 * pin only if another library's callback has called next_id() in between.
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
 * When a subtransaction aborts, PostgreSQL drops the files that were made in
 * it, which fails if this backend has pinned a page of one of them.
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

void
page_init(void)
{
	RegisterXactCallback(end_transaction, NULL);
	RegisterSubXactCallback(end_subtransaction, NULL);
}

/* Pin the sequence's page instead of the one that is pinned now */
void
page_pin(KnownSequence *seq)
{
	ResourceOwner owner = CurrentResourceOwner;
	bool		found;

	page_unpin();

	/*
	 * The page is nearly always in the buffer where it was last.  Then there
	 * is no need for ReadBuffer(), which takes an open relation and looks for
	 * the page among all buffers.
	 */
	CurrentResourceOwner = TopTransactionResourceOwner;
	found = BufferIsValid(seq->buffer) &&
		ReadRecentBuffer(seq->file, MAIN_FORKNUM, 0, seq->buffer);
	CurrentResourceOwner = owner;

	/*
	 * Read the page, and give the pin to the top transaction only afterwards.
	 * If reading fails in a subtransaction, PostgreSQL must release the pin
	 * when it rolls back that subtransaction.  If the pin stayed, the next
	 * call would use a page that has not been read: PostgreSQL 15 and 16 do
	 * not read a page that the backend has pinned already.
	 */
	if (!found)
	{
		Relation	rel;
		Buffer		buffer;

		/*
		 * On a standby our lock does not keep replay from giving the sequence
		 * another file, so the file in "seq" may be out of date.
		 */
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

	page_pinned.seq = seq;
	page_pinned.tuple = NULL;	/* not checked yet */
}

/*
 * Check the page, which is locked, and note where its tuple is.  Raises an
 * error unless the page has the form that fill_seq_with_data() in PostgreSQL's
 * sequence.c gives it, with room for a RecordNote.
 */
void
page_check(KnownSequence *seq)
{
	Page		page = BufferGetPage(seq->buffer);
	PageHeader	header = (PageHeader) page;
	ItemId		item = PageGetItemId(page, FirstOffsetNumber);

	if (header->pd_special != BLCKSZ - MAXALIGN(sizeof(sequence_magic)) ||
		((sequence_magic *) (page + header->pd_special))->magic != SEQ_MAGIC ||
		header->pd_lower != SizeOfPageHeaderData + sizeof(ItemIdData) ||
		!ItemIdIsNormal(item) ||
		ItemIdGetOffset(item) < RECORD_NOTE_OFFSET + sizeof(RecordNote) ||
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
				 errhint("Use a new sequence with a new shard.")));
	}

	page_pinned.tuple = (HeapTupleHeader) PageGetItem(page, item);
}

/* Read the data on the page, without changing them */
FormData_pg_sequence_data
page_read(KnownSequence *seq)
{
	FormData_pg_sequence_data data = *page_lock(seq, BUFFER_LOCK_SHARE);

	page_unlock(seq);

	/* A pin would keep replay from dropping the file on a standby. */
	page_unpin();
	return data;
}

/*
 * page_read() for a sequence that need not serve a layout or have been checked
 * in this transaction.  So it first takes the file from the catalogs: that in
 * "seq" may be out of date.
 *
 * Do not read it with a query instead.  A query names the sequence, and the
 * owner of its schema can rename schemas in the meantime, so that the name is
 * that of a view.  The functions in that view would run with our caller's
 * rights.
 */
FormData_pg_sequence_data
page_read_unchecked(KnownSequence *seq)
{
	/* Without a buffer, page_pin() asks the catalogs. */
	page_unpin();
	seq->buffer = InvalidBuffer;
	return page_read(seq);
}
