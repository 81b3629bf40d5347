/*-------------------------------------------------------------------------
 *
 * shared.c
 *	  What backends tell each other of their WAL records.
 *
 * A backend that uses a sequence's file for the first time cannot know whether
 * the count on its page is of WAL of that file, or came with a copy of another
 * one.  So it would have to write and flush a record of its own.  Where each ID
 * has a connection of its own, each ID would wait for the disk.
 *
 * So a backend that writes a record for a file notes the record's LSN here.  A
 * page that still has that LSN has the count that came with the record.  No
 * other page can have it, even if the file's name is used again, since an LSN
 * belongs to one record.  A crash, which can bring an LSN again, ends the shared
 * memory.
 *
 * PostgreSQL 15 and 16 have no memory for a library that is not preloaded.  Then
 * nothing is known, and each backend writes its records.
 *
 * This file does not read pages and writes no WAL.
 *
 * Copyright (c) 2026, snowflake contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/resowner.h"

#include "compat.h"

#include "shared.h"

typedef struct FileRecord
{
	RelFileLocator file;
	XLogRecPtr	lsn;			/* end of the last record written for it */
} FileRecord;

/*
 * A file has one of the places in its set, and may lose it to another file of
 * the set.  Backends that use the file then write records of their own, which
 * takes the place of a third file, and so on.  Sets are large enough that a
 * server needs thousands of busy sequences for that.
 */
#define PLACES		8
#define SETS		1024

typedef struct FileRecordSet
{
	slock_t		mutex;
	FileRecord	places[PLACES];
} FileRecordSet;

/*
 * Sessions may run libraries of two versions.  So a version that changes what is
 * above, or what it means, takes another name.
 */
#define MEMORY_NAME	"snowflake logged files 1"
#define MEMORY_SIZE	(SETS * sizeof(FileRecordSet))

static FileRecordSet *sets = NULL;

static bool preloaded = false;
static shmem_request_hook_type previous_request_hook;


static void
reserve_memory(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(MEMORY_SIZE);
}

static void
fill_memory(NewMemory(memory))
{
	FileRecordSet *new_sets = memory;

	MemSet(new_sets, 0, MEMORY_SIZE);
	for (int i = 0; i < SETS; i++)
		SpinLockInit(&new_sets[i].mutex);
}

/*
 * Called once, when the library is loaded.
 */
void
shared_init(void)
{
	preloaded = process_shared_preload_libraries_in_progress;

	if (SHARED_MEMORY_NEEDS_PRELOADING && preloaded)
	{
		previous_request_hook = shmem_request_hook;
		shmem_request_hook = reserve_memory;
	}
}

/*
 * Find the memory, or make it, before this backend takes its first value.  The
 * caller holds no lock on a page and is not in a critical section, because this
 * allocates memory and can fail.
 *
 * A failure must not keep rows from being inserted.  A server may lack space for
 * shared memory for a while, as in a container whose /dev/shm is small, and early
 * releases of 17 then refuse the memory until they are restarted.  So this
 * backend goes on without.  It does not try again, because find_record() relies
 * on one rule for as long as a backend lives.  The subtransaction releases the
 * locks that the failed attempt took.
 */
void
shared_attach(void)
{
	static bool tried = false;
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	if (likely(tried))
		return;
	tried = true;
	if (SHARED_MEMORY_NEEDS_PRELOADING && !preloaded)
		return;

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		sets = SharedMemory(MEMORY_NAME, MEMORY_SIZE, fill_memory);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		/* This is no cancellation, because nothing in there obeys interrupts. */
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		ereport(LOG,
				(errcode(error->sqlerrcode),
				 errmsg("next_id() cannot use shared memory in this session: %s",
						error->message),
				 errdetail("The session's first call for each sequence writes a WAL record and waits until it is on disk.")));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
}

static FileRecordSet *
find_set(const RelFileLocator *file)
{
	uint32		hash = hash_bytes((const unsigned char *) file,
								  sizeof(RelFileLocator));

	return &sets[hash % SETS];
}

bool
shared_is_available(void)
{
	return sets != NULL;
}

/*
 * Note the record that this backend has written for a file.
 */
void
shared_note_record(const RelFileLocator *file, XLogRecPtr lsn)
{
	FileRecordSet *set;
	FileRecord *place;

	if (!shared_is_available())
		return;

	set = find_set(file);
	SpinLockAcquire(&set->mutex);

	/* The file's own place, or that of the file that was logged longest ago */
	place = &set->places[0];
	for (int i = 0; i < PLACES; i++)
	{
		if (RelFileLocatorEquals(set->places[i].file, *file))
		{
			place = &set->places[i];
			break;
		}
		if (set->places[i].lsn < place->lsn)
			place = &set->places[i];
	}
	place->file = *file;
	place->lsn = lsn;

	SpinLockRelease(&set->mutex);
}

/*
 * Did a backend write, for this file, the record to which a page owes its LSN?
 */
bool
shared_has_record(const RelFileLocator *file, XLogRecPtr lsn)
{
	FileRecordSet *set;
	bool		logged = false;

	if (!shared_is_available())
		return false;

	set = find_set(file);
	SpinLockAcquire(&set->mutex);
	for (int i = 0; i < PLACES && !logged; i++)
		logged = set->places[i].lsn == lsn &&
			RelFileLocatorEquals(set->places[i].file, *file);
	SpinLockRelease(&set->mutex);
	return logged;
}
